#!/usr/bin/env python3
"""A project that is moved while a command runs: the run that was under way ends, whatever it says, and the next run at the new place makes what a build from
scratch makes there. Nothing is written at the old place later on, and `stet check` finds nothing. Moved while stet waits for its command, while nobody waits (stet was
killed), there and back, and twice."""
import os, pathlib, shutil, signal, subprocess, time
from tap import STET, finish, stet, t

base = pathlib.Path(".").absolute()
TOML = """name = "p"
[nodes.slow]
command = "cat {in} > {out}; sleep 0.7; cat {in} >> {out}"
files = "in"
produces = "o/slow"
[nodes.place]
command = "pwd > {out}; sleep 0.4"
produces = "o/place"
[nodes.both]
command = "cat {in} > {out}"
files = ["$slow.out", "$place.out"]
produces = "o/both"
"""


def begin(name):
    top = base / name
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    (top / "stet.toml").write_text(TOML)
    (top / "in").write_text(f"{name}\n")
    stet("init", cwd=top)
    return top, subprocess.Popen([STET, "run"], cwd=top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)


def await_file(path):
    until = time.time() + 60
    while not path.exists() and time.time() < until:
        time.sleep(0.01)
    return path.exists()


def case(name, moves, kill=False, edit=False):
    top, p = begin(name)
    t(f"{name}: the command runs", await_file(top / "o/slow"))
    if kill:
        p.send_signal(signal.SIGKILL)
    for to in moves:
        os.rename(top, base / to)
        top = base / to
        time.sleep(0.05)
    if edit:
        (top / "in").write_text("edited\n")
    try:
        said = p.communicate(timeout=120)[0]
    except subprocess.TimeoutExpired:
        p.kill()
        said = p.communicate()[0] + "\nit did not end"
    t(f"{name}: the run ends by itself", "did not end" not in said and (kill or p.returncode in (0, 1, 3)), f"{p.returncode} {said}")
    r = stet("run", cwd=top)
    content = (top / "in").read_text()
    wanted = {"o/slow": content * 2, "o/place": f"{top}\n", "o/both": content * 2 + f"{top}\n"}
    have = {k: (top / k).read_text() if (top / k).exists() else None for k in wanted}
    t(f"{name}: the next run makes what belongs there", r.returncode == 0 and have == wanted, f"{said}\n{r.stdout}{r.stderr}\n{have}")
    again = stet("run", cwd=top)
    t(f"{name}: nothing more to do", again.returncode == 0 and "ran 0," in again.stdout, again.stdout + again.stderr)
    time.sleep(0.8)
    old = [m for m in [name, *moves] if base / m != top and (base / m).exists()]
    t(f"{name}: nothing comes to be at the old place", not old, old)
    r = stet("check", cwd=top)
    t(f"{name}: check", r.returncode == 0, r.stdout + r.stderr)


case("one", ["one-moved"])
case("edited", ["edited-moved"], edit=True)
case("killed", ["killed-moved"], kill=True)
case("back", ["back-moved", "back"])
case("twice", ["twice-moved", "twice-moved-again"])
finish(None)
