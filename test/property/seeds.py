"""Runs one random program per seed until the first that fails, or until the time is over. Not a test itself."""
import os, pathlib, shutil, sys, time

LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
SEED = int(os.environ.get("STET_SEED", "1"))


def setting(name, long, short, usual):
    """A number from the environment, or else the one for this kind of run."""
    return int(os.environ.get(name) or (long if LONG else short if SHORT else usual))


def run(name, what, programs, program, seconds=40):
    """`program(where, seed)` says whether all was right; the directory of one that failed is kept. Ends the process."""
    started, done, failed = time.monotonic(), 0, False
    root = pathlib.Path.cwd() / name
    root.mkdir()
    for seed in range(SEED, SEED + programs):
        if failed or (not LONG and time.monotonic() - started > seconds):
            break
        failed = not program(root / str(seed), seed)
        done += 1
        if not failed:
            shutil.rmtree(root / str(seed))
    print(f"{'not ' if failed else ''}ok 1 - {done} {what}")
    print("1..1")
    sys.exit(1 if failed else 0)
