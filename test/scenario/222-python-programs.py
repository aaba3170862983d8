#!/usr/bin/python3
"""Python programs in which a dependency is easily lost (blocks, imports inside functions, registries, patches): no result is stale."""
import os, pathlib, subprocess, sys

SOURCE, BUILD = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path(os.environ["STET_BUILD"])
environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "STET": str(BUILD / "stet"), "TMPDIR": os.getcwd()}
sys.exit(subprocess.run([sys.executable, str(SOURCE / "test/python/programs.py")], env=environment).returncode)
