"""Helpers of scenario scripts in Python, as lib.sh is for those of the shell. Import it first:

    from tap import STET, finish, stet, t

    t("init makes a project", stet("init").returncode == 0)
    r = stet("run", "totals.json", "--json")
    t("it runs", r.returncode == 0, r.stdout + r.stderr)
    finish()

`t(name, good, show)` is one test; `show` is printed if it is not good. `finish()` runs `stet check --rerun` if there is a project in the directory
given (the current one; None: it is not run), prints the plan, and exits 1 if a test failed. `answer(...)` is what a command prints with --json.
"""
import json, os, pathlib, subprocess, sys

STET = os.environ["STET"]
SHORT, LONG = bool(os.environ.get("STET_TEST_SHORT")), bool(os.environ.get("STET_TEST_LONG"))
_count = _bad = 0


def t(name, good, show=""):
    global _count, _bad
    _count += 1
    _bad += not good
    print(f"{'ok' if good else 'not ok'} {_count} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(show).splitlines()[:30]), flush=True)


def stet(*words, program=STET, cwd=None, env=None, **more):
    return subprocess.run([program, *map(str, words)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, **(env or {})), **more)


def answer(*words, **more):
    """What a command says to programs: its JSON, or {} with what it printed instead."""
    r = stet(*words, "--json", **more)
    try:
        return json.loads(r.stdout)
    except ValueError:
        return {"said": r.stdout + r.stderr, "status": r.returncode}


def finish(project="."):
    if project and (pathlib.Path(project) / ".stet").is_dir():
        r = stet("check", "--rerun", "40", cwd=project)
        t("stet check finds nothing, and a sample computed again is the same", r.returncode == 0, r.stdout + r.stderr)
    print(f"1..{_count}")
    sys.exit(1 if _bad else 0)
