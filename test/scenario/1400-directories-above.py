#!/usr/bin/env python3
"""A directory above what a command reads is moved away while the command runs, another one stands in its place, and the first comes back before the command ends.
The files themselves are untouched, so that nothing but the kernel's events tells. What the command made of the other directory does not count: it runs again. For
inputs, patterns, directories, words, what a dependency file names, and links; whether or not something is added to the directory afterwards; and if stet was
killed meanwhile and the command is taken over. A command beside which nothing moves runs once."""
import os, pathlib, shutil, signal, subprocess, time
from tap import STET, finish, stet, t

top, home = pathlib.Path("p").absolute(), pathlib.Path("home").absolute()
# Waits in the first round alone: who moves the directory says when to go on.
SCRIPTS = {"gate": "echo r >> rounds; [ -e done ] && exit; touch begun; while [ ! -e go ]; do sleep 0.02; done",
           "end": "[ -e done ] && exit; touch read; while [ ! -e end ]; do sleep 0.02; done; touch done"}


def wait(*paths):
    until = time.time() + 120
    while not all(p.exists() for p in paths) and time.time() < until:
        time.sleep(0.01)
    return all(p.exists() for p in paths)


def start():
    return subprocess.Popen([STET, "run"], cwd=top, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                            env=dict(os.environ, HOME=str(home)))


def case(name, reads, more, moved="a", adds=False, killed=False, moves=True):
    for d in (top, home):
        shutil.rmtree(d, ignore_errors=True)
    (top / "a/b").mkdir(parents=True)
    home.mkdir()
    for script, text in SCRIPTS.items():
        (home / f"{script}.sh").write_text(f"cd {home}; {text}\n")
    (top / "a/b/x").write_text("x\n")
    (top / "k").symlink_to("a/b")
    (top / "f").symlink_to("a/b/x")
    (top / "stet.toml").write_text(f'name = "p"\n[nodes.r]\ncommand = "sh {home}/gate.sh; {reads} > {{out}} 2>/dev/null; sh {home}/end.sh"\nproduces = "out"\n{more}\n')
    stet("init", cwd=top)
    p = start()
    t(f"{name}: the command runs", wait(home / "begun"))
    if killed:
        p.send_signal(signal.SIGKILL)
        p.communicate()
    real, aside = top / moved, top / "aside"
    if moves:
        real.rename(aside)
        other = real / pathlib.Path("a/b/x").relative_to(moved).parent if moved != "a/b" else real
        other.mkdir(parents=True)
        (other / "x").write_text("other\n")
        (other / "y").write_text("y\n")
    (home / "go").touch()
    wait(home / "read")
    if moves:
        shutil.rmtree(real)
        aside.rename(real)
    if adds:
        (real / "later").write_text("later\n")
        (real / "later").unlink()
    if killed:
        p = start()
    (home / "end").touch()
    said = p.communicate()[0]
    fresh = (top / "out").read_text() if (top / "out").exists() else "nothing"
    rounds = len((home / "rounds").read_text().split())
    t(f"{name}: it is made of what is there", p.returncode == 0 and fresh == "x\n", said + fresh)
    t(f"{name}: the command ran {'again' if moves else 'once'}", rounds == (2 if moves else 1), f"{rounds} rounds\n{said}")


for name, reads, more in (
    ("an input", "cat a/b/x", 'files = "a/b/x"\nscripts = false'),
    ("a pattern", "cat a/b/*", 'files = "a/b/*"\nscripts = false'),
    ("a directory", "cat a/b/*", 'files = "a/b"\nscripts = false'),
    ("a word", "cat a/b/x", ""),
    ("a pattern of the shell", "cat a/b/*", ""),
    ("a name behind a link", "cat k/x", 'files = "k/x"\nscripts = false'),
    ("a link to a file", "cat f", 'files = "f"\nscripts = false'),
    ("a dependency", "echo 'out: a/b/x' > dep; cat a/b/x", 'depfile = "dep"\nscripts = false'),
):
    for moved in ("a", "a/b"):
        case(f"{name}, {moved} is moved", reads, more, moved)
    case(f"{name}, and something is added", reads, more, "a/b", adds=True)
case("nothing moves", "cat a/b/x", 'files = "a/b/x"', moves=False)
case("nothing moves, something is added beside it", "cat a/b/x", 'files = "a/b/x"', moved="a/b", moves=False, adds=True)
for adds in (False, True):
    case(f"taken over{', and something is added' if adds else ''}", "cat a/b/x", 'files = "a/b/x"\nscripts = false', "a/b", adds=adds, killed=True)
case("taken over, nothing moves", "cat a/b/x", 'files = "a/b/x"\nscripts = false', moves=False, killed=True)
case("taken over, nothing moves, something is added beside it", "cat a/b/x", 'files = "a/b/x"\nscripts = false', moved="a/b", moves=False, adds=True, killed=True)
finish(str(top))
