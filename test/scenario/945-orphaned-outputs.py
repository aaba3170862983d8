#!/usr/bin/env python3
"""stet is killed while a command runs, and then its node is taken out of the pattern, or writes another file. What the command wrote is no source: patterns do not
match it, readers of its directory say whose it is, and `gc --outputs` removes it. Whether the command has ended when the next run begins, still runs, or writes a
directory. A file that somebody wrote there later is a source, and a node that is still there goes on with its command."""
import pathlib, shutil, signal, subprocess, time
from tap import STET, finish, stet, t

base = pathlib.Path(".").absolute()
READERS = """name = "p"
[nodes.r]
command = "ls -R {in} > {out}"
files = "lib"
produces = "out/r"
[nodes.g]
command = "echo {in} > {out}"
files = "lib/*"
produces = "out/g"
"""
WRITER = """[nodes.w]
command = "echo run >> runs; echo part > {out}; sleep 1; echo all >> {out}"
produces = "lib/w"
"""
TREE = """[nodes.w]
command = "mkdir -p {out}; echo part > {out}/x; sleep 1; echo all > {out}/x"
produces = "lib/w/"
"""


def await_file(path):
    until = time.time() + 60
    while not path.exists() and time.time() < until:
        time.sleep(0.01)
    return path.exists()


def killed(name, writer=WRITER, begun="lib/w"):
    top = base / name
    shutil.rmtree(top, ignore_errors=True)
    (top / "lib").mkdir(parents=True)
    (top / "lib/s").write_text("s\n")
    (top / "stet.toml").write_text(READERS)
    stet("init", cwd=top)
    stet("run", cwd=top)
    (top / "stet.toml").write_text(READERS + writer)
    p = subprocess.Popen([STET, "run"], cwd=top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    t(f"{name}: the command runs", await_file(top / begun))
    p.send_signal(signal.SIGKILL)
    p.wait()
    return top


def ended(top):
    until = time.time() + 60
    journals = list((top / ".stet/local/exec").glob("drive.*/journal"))
    while time.time() < until and not all("\nE " in j.read_text() for j in journals):
        time.sleep(0.02)


def gone(name, top):
    r = stet("run", "-k", cwd=top)
    t(f"{name}: the reader of the directory says whose it is", r.returncode == 1 and "lib/w" in r.stdout + r.stderr, r.stdout + r.stderr)
    t(f"{name}: the pattern does not match it", (top / "out/g").read_text() == "lib/s\n", (top / "out/g").read_text())
    r = stet("gc", "--outputs", cwd=top)
    t(f"{name}: it is removed as an output", not (top / "lib/w").exists() and "removed 1" in r.stdout, r.stdout)
    time.sleep(1.2)
    r = stet("run", cwd=top)
    t(f"{name}: all is as from scratch then", r.returncode == 0 and not (top / "lib/w").exists() and (top / "out/g").read_text() == "lib/s\n", r.stdout + r.stderr)


for name, writer, begun, then in (
    ("removed", WRITER, "lib/w", READERS),
    ("renamed", WRITER, "lib/w", READERS + WRITER.replace("lib/w", "other/w")),
    ("tree", TREE, "lib/w/x", READERS),
):
    for running in (False, True):
        title = name + (" while it runs" if running else " after its end")
        top = killed(title.replace(" ", "-"), writer, begun)
        if not running:
            ended(top)
        (top / "stet.toml").write_text(then)
        gone(title, top)

top = killed("own")
ended(top)
time.sleep(0.05)
(top / "stet.toml").write_text(READERS)
(top / "lib/w").write_text("mine\n")
r = stet("run", cwd=top)
t("what somebody wrote there later is a source", r.returncode == 0 and (top / "out/g").read_text() == "lib/s lib/w\n", r.stdout + r.stderr)
stet("gc", "--outputs", cwd=top)
t("and stays", (top / "lib/w").read_text() == "mine\n")

for running in (False, True):
    top = killed("continued" + "-running" * running)
    if not running:
        ended(top)
    r = stet("run", cwd=top)
    runs = (top / "runs").read_text()
    t(f"a node that is still there goes on with its command{' that runs' * running}",
      r.returncode == 0 and runs == "run\n" and (top / "out/g").read_text() == "lib/s lib/w\n" and (top / "lib/w").read_text() == "part\nall\n", runs + r.stdout + r.stderr)
finish()
