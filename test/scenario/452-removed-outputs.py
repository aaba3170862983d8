#!/usr/bin/env python3
"""An output that somebody removes, or moves away, while its command runs: what the command writes after that is a part of the output at the most. The command
runs again, also if stet was killed meanwhile and another process goes on with the command. A command that removes its own output runs twice."""
import os, pathlib, shutil, subprocess, time
from tap import STET, finish, stet, t

root, log = pathlib.Path("p").absolute(), pathlib.Path("log").absolute()
HALVES = f'scripts = false\ncommand = "echo x >> {log}; cat {{in}} > {{out}}; while [ ! -e {root}/go ]; do sleep 0.02; done; echo end >> {{out}}"\n'


def wait_for(good):
    until = time.monotonic() + 60
    while not good() and time.monotonic() < until:
        time.sleep(0.01)


def case(name, take_away, killed, node=HALVES):
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    log.write_text("")
    (root / "in").write_text("first\n")
    (root / "stet.toml").write_text('name = "p"\n[nodes.a]\nfiles = { in = "in" }\nproduces = { out = "o/d/a" }\n' + node)
    stet("init", cwd=root)
    p = subprocess.Popen([STET, "run"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out = root / "o/d/a"
    wait_for(lambda: out.exists() and out.read_text() == "first\n")
    if killed:
        p.kill()
        p.wait()
    take_away(out)
    if "o" not in os.listdir(root):
        (root / "o/d").mkdir(parents=True)
    (root / "go").write_text("")
    said = "" if killed else p.communicate()[0]
    r = stet("run", cwd=root)
    t(f"{name}{', and stet is killed' if killed else ''}: the output is whole", out.read_text() == "first\nend\n" and r.returncode == 0,
      said + r.stdout + r.stderr + out.read_text())
    r = stet("run", cwd=root)
    t("and nothing is left to do", "ran 0" in r.stdout and len(log.read_text().split()) == 2, r.stdout + log.read_text())


for killed in [False, True]:
    case("it is removed", lambda out: out.unlink(), killed)
    case("it is moved away", lambda out: out.rename(root / "elsewhere"), killed)
    case("its directories are removed", lambda out: shutil.rmtree(root / "o"), killed)

shutil.rmtree(root, ignore_errors=True)
root.mkdir()
log.write_text("")
(root / "in").write_text("first\n")
(root / "stet.toml").write_text(f'name = "p"\n[nodes.a]\nscripts = false\nfiles = "in"\nproduces = "o/a"\n'
                                f'command = "echo x >> {log}; cat {{in}} > {{out}}; rm {{out}}; cat {{in}} > {{out}}"\n')
stet("init", cwd=root)
r = stet("run", cwd=root)
t("a command that removes its own output runs twice", r.returncode == 0 and len(log.read_text().split()) == 2, r.stdout + r.stderr + log.read_text())
r = stet("run", cwd=root)
t("and is done then", "ran 0" in r.stdout, r.stdout)
finish(None)
