#!/usr/bin/python3
"""The package as pip installs it: `pip install .` from the tree into a new environment, without the network; a wheel with its types, and an sdist that builds the same wheel's files."""
import os, pathlib, subprocess, sys, tarfile, zipfile

SOURCE, BUILD = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path(os.environ["STET_BUILD"])
count = failed = 0


def ok(good, what, why=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    if not good:
        print("# " + str(why)[-3000:].replace("\n", "\n# "))


def run(*words, **more):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"BUILD": str(BUILD), "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "HOME": os.getcwd()}
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, env=environment, **more)


done = run(sys.executable, "-m", "venv", "env")
ok(done.returncode == 0, "a new environment", done.stderr)
done = run("env/bin/pip", "install", SOURCE)
ok(done.returncode == 0, "pip install from the tree", done.stdout + done.stderr)
pathlib.Path("use.py").write_text("""
import stet, pathlib
from importlib.metadata import entry_points, version
@stet.persistent_cache
def f(x): return x + 1
print(f(1), f(1), f.cache_info().hits, version("stet") == stet.__version__, [e.value for e in entry_points(group="marimo.cache.store")], (pathlib.Path(stet.__file__).parent / "py.typed").exists())
""")
done = run("env/bin/python", "use.py")
ok(done.stdout == "2 2 1 True ['stet.marimo:StetStore'] True\n", "the package works there", done.stdout + done.stderr)
done = run(BUILD / "stet", "check")
ok(done.returncode == 0, "stet check", done.stdout + done.stderr)
done = run("env/bin/pip", "uninstall", "-y", "stet")
ok(done.returncode == 0 and run("env/bin/python", "-c", "import stet").returncode != 0, "pip uninstall takes all of it away", done.stdout + done.stderr)
done = run(sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCE / 'python')!r}); import backend; print(backend.build_wheel('.')); print(backend.build_sdist('.'))")
ok(done.returncode == 0, "a wheel and an sdist", done.stderr)
if done.returncode == 0:
    wheel, sdist = done.stdout.split()[-2:]
    names = zipfile.ZipFile(wheel).namelist()
    ok("-cp311-abi3-" in wheel and {"stet/py.typed", "stet/_stet.pyi", "stet/_stet.abi3.so", "stet/steps.py"} <= set(names), "the wheel holds types, the extension and the modules", names)
    inside = tarfile.open(sdist).getnames()
    ok(any(n.endswith("/pyproject.toml") for n in inside) and any(n.endswith("/PKG-INFO") for n in inside) and not any("/build/" in n for n in inside), "the sdist holds the tree", inside[:20])
print(f"1..{count}")
sys.exit(1 if failed else 0)
