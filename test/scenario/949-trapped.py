#!/usr/bin/env python3
"""What a shell is to do at its end, or at a signal, is a command: the programs that `trap` names are inputs, and so is what they read."""
import os, pathlib
from tap import finish, stet, t

base = pathlib.Path(".").absolute()
tools = base / "tools"
tools.mkdir()
env = {"PATH": f"{tools}:{os.environ['PATH']}"}
tool = tools / "mytool"
for number, command in enumerate(("trap mytool EXIT", "trap 'mytool' 0", "trap -- 'true && mytool' EXIT TERM", 'X=mytool; trap \\"$X\\" EXIT', "(trap 'mytool; exit 0' EXIT)",
                                  "trap 'trap mytool EXIT; exit' EXIT; trap mytool EXIT", "trap 'cat in > out' EXIT")):
    top = base / str(number)
    top.mkdir()
    (top / "in").write_text("1\n")
    tool.write_text("#!/bin/sh\necho 1 > out\n")
    tool.chmod(0o755)
    (top / "stet.toml").write_text(f'name = "p"\n[nodes.a]\ncommand = "{command}"\nproduces = "out"\n')
    stet("init", cwd=top, env=env)
    r = stet("run", cwd=top, env=env)
    t(f"{command}: it runs", r.returncode == 0 and (top / "out").read_text() == "1\n", r.stdout + r.stderr)
    (top / "in").write_text("2\n")
    tool.write_text("#!/bin/sh\necho 2 > out\n")
    r = stet("run", cwd=top, env=env)
    t(f"{command}: what changed is seen", r.returncode == 0 and (top / "out").read_text() == "2\n", r.stdout + r.stderr)
    r = stet("run", cwd=top, env=env)
    t(f"{command}: nothing more to do", "ran 0," in r.stdout + r.stderr, r.stdout + r.stderr)
finish()
