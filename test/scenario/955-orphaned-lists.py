#!/usr/bin/env python3
"""stet is killed while a command of a list (`each`) runs, and then its source is removed. The next run ends the command or takes note of what it wrote: that is no
source, for patterns, readers of its directory, names, and functions; and it is none later, when the command would have ended. Commands whose sources are still
there go on, and run once."""
import pathlib, shutil, signal, subprocess, time
from tap import STET, finish, stet, t

base = pathlib.Path(".").absolute()
PATTERN = """name = "p"
[nodes.e]
each = "src/*"
command = "echo run >> runs/{in.name}; echo part > {out}; SLEEP; cat {in} >> {out}"
produces = "g/{in.name}"
[nodes.pattern]
command = "echo {in} > {out}"
files = ["g/*", "fixed"]
produces = "out/pattern"
[nodes.name]
command = "cat g/1 > {out} 2>/dev/null; true"
produces = "out/name"
[nodes.js]
javascript = "({f, g}) => [f?.size ?? 0, Object.keys(g ?? {})]"
inputs = { f = { "/" = { "link@1" = { id = "file:g/1" } } }, g = { "/" = { "link@1" = { id = "glob:g/*" } } } }
"""


def wait(what):
    until = time.time() + 60
    while not what() and time.time() < until:
        time.sleep(0.01)
    return what()


def killed(name, sleep, sources):
    top = base / name
    shutil.rmtree(top, ignore_errors=True)
    for d in ["src", "runs"]:
        (top / d).mkdir(parents=True)
    (top / "fixed").write_text("fixed\n")
    for n in sources:
        (top / "src" / n).write_text(n + "\n")
    (top / "stet.toml").write_text(PATTERN.replace("SLEEP", sleep))
    stet("init", cwd=top)
    p = subprocess.Popen([STET, "run", "-j", "4"], cwd=top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    t(f"{name}: the commands run", wait(lambda: all((top / "g" / n).exists() for n in sources)))
    p.send_signal(signal.SIGKILL)
    p.wait()
    return top


def ended(top):
    return wait(lambda: all("\nE " in j.read_text() for j in (top / ".stet/local/exec").glob("drive.*/journal")))


def as_from_scratch(name, top, matched):
    said = stet("run", "-k", cwd=top)
    said = said.stdout + said.stderr
    value = stet("get", "piece:p/js", "--json", cwd=top).stdout
    t(f"{name}: the pattern does not match it", (top / "out/pattern").read_text() == matched, said)
    t(f"{name}: who names it says whose it is, or does not find it", "p/name: it would read g/1" in said or (top / "out/name").read_text() == "", said)
    t(f"{name}: so does a function", "p/js: it would read g/1" in said or "[0," in value.replace(" ", "").replace("\n", ""), said + value)


# How long a command would go on: long after the next run; or it ends before it.
for name, sleep, first in (("running", "sleep 300", False), ("short", "sleep 0.3", True)):
    top = killed(name, sleep, ["1"])
    if first:
        ended(top)
    (top / "src/1").unlink()
    (top / "src/2").write_text("2\n")
    (top / "stet.toml").write_text(PATTERN.replace("SLEEP; ", ""))
    as_from_scratch(name, top, "g/2 fixed\n")
    t(f"{name}: nothing of it runs any more", ended(top))
    as_from_scratch(f"{name}, again", top, "g/2 fixed\n")
    stet("gc", "--outputs", cwd=top)
    r = stet("run", cwd=top)
    t(f"{name}: it is removed as an output, and all is as from scratch", r.returncode == 0 and not (top / "g/1").exists() and (top / "out/name").read_text() == "", r.stdout + r.stderr)
    r = stet("check", cwd=top)
    t(f"{name}: stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)

top = killed("kept", "sleep 2", ["1", "2"])
(top / "src/1").unlink()
r = stet("run", "-k", "e", cwd=top)
t("kept: the command of a source that is still there goes on", (top / "runs/2").read_text() == "run\n" and (top / "g/2").read_text() == "part\n2\n", r.stdout + r.stderr)
as_from_scratch("kept", top, "g/2 fixed\n")
r = stet("check", cwd=top)
t("kept: stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)
finish(None)
