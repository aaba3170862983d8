#!/usr/bin/env python3
"""A link on the way to what a command reads is taken away while the command runs, and put back before the command ends. What the command made of the gap does not
count: it runs again. For an input, a pattern, a directory and a word behind the link; and for a link that is itself the directory."""
import os, pathlib, shutil, subprocess, time
from tap import STET, finish, stet, t

top = pathlib.Path("p").absolute()
# Waits in the first round alone: who takes the link away says when to go on.
GATE = "if [ ! -e $HOME/done ]; then touch $HOME/begun; while [ ! -e $HOME/go ]; do sleep 0.02; done; fi; "
END = "; if [ ! -e $HOME/done ]; then touch $HOME/read; while [ ! -e $HOME/end ]; do sleep 0.02; done; touch $HOME/done; fi"


def wait(path):
    until = time.time() + 60
    while not path.exists() and time.time() < until:
        time.sleep(0.01)
    return path.exists()


for name, reads, more in (
    ("an input", "cat k/x", 'files = "k/x"\nscripts = false'),
    ("a pattern", "cat k/*", 'files = "k/*"\nscripts = false'),
    ("a directory", "ls k/", 'files = "k"\nscripts = false'),
    ("a word", "cat k/x", ""),
    ("a pattern of the shell", "cat k/*", ""),
):
    shutil.rmtree(top, ignore_errors=True)
    (top / "s").mkdir(parents=True)
    home = top.with_name("home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    (top / "s/x").write_text("x\n")
    (top / "k").symlink_to("s")
    (top / "stet.toml").write_text(f'name = "p"\n[nodes.r]\ncommand = "{GATE}{reads} > {{out}} 2>/dev/null{END}"\nproduces = "out"\n{more}\n')
    stet("init", cwd=top)
    p = subprocess.Popen([STET, "run"], cwd=top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=dict(os.environ, HOME=str(home)))
    t(f"{name}: the command runs", wait(home / "begun"))
    (top / "k").unlink()
    (home / "go").touch()
    wait(home / "read")
    (top / "k").symlink_to("s")
    (home / "end").touch()
    said = p.communicate()[0]
    t(f"{name}: what it made of the gap does not count", p.returncode == 0 and (top / "out").read_text() == "x\n", said + (top / "out").read_text())
finish(str(top))
