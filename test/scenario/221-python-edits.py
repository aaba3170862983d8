#!/usr/bin/python3
"""Generated Python programs, each edited at one place: a cached result is never stale. (test/python/edits.py --count 1000 is the long form.)"""
import os, pathlib, subprocess, sys

SOURCE, BUILD = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path(os.environ["STET_BUILD"])
environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "STET": str(BUILD / "stet"), "TMPDIR": os.getcwd()}
done = subprocess.run([sys.executable, str(SOURCE / "test/python/edits.py"), "--count", "30", "--seed", "3"], env=environment, stdout=subprocess.PIPE, text=True)
for line in done.stdout.splitlines():
    print("#", line)
print("ok 1 - no edit is missed" if done.returncode == 0 else "not ok 1 - no edit is missed")
print("1..1")
sys.exit(done.returncode)
