#!/usr/bin/env python3
"""Outputs of commands that are gone: `stet gc --outputs` removes them if they are byte for byte what the command wrote and nobody else has
to do with them; nothing else removes them; and a kill between the record and the file loses nothing and removes nothing more."""
import os, pathlib, shutil, subprocess

from tap import STET, answer, finish, stet, t

root = pathlib.Path("p").absolute()
COMPILE = '''[nodes.compile]
each     = "src/*.c"
command  = "cp {in} {out}; echo {out}: {in} > build/{in.stem}.d"
produces = "build/{in.stem}.o"
depfile  = "build/{in.stem}.d"
'''
ONE = '''[nodes.one]
command  = "echo one > {out}"
produces = "one.txt"
'''
TWO = '''[nodes.two]
command  = "mkdir -p {tree}/sub && echo two | tee {tree}/a > {tree}/sub/b; echo two > {out}"
produces = { out = "two.txt", tree = "tree" }
'''


def toml(*nodes):
    (root / "stet.toml").write_text('name = "p"\n' + "".join(nodes))


def begin(*nodes, sources=("a", "b", "c")):
    shutil.rmtree(root, ignore_errors=True)
    (root / "src").mkdir(parents=True)
    for name in sources:
        (root / f"src/{name}.c").write_text(name)
    toml(*nodes)
    stet("init", cwd=root)
    return run()


def run(*words, **more):
    r = stet("run", *words, cwd=root, **more)
    return r.returncode == 0, r.stdout + r.stderr


def gc(*words, **more):
    """Paths that went, and paths that were kept with why."""
    o = answer("gc", *words, cwd=root, **more).get("outputs", {})
    return sorted(x["path"] for x in o.get("removed", [])), {x["path"]: x["why"] for x in o.get("kept", [])}


def there():
    return sorted(str(x.relative_to(root)) for x in root.rglob("*") if x.is_file() and ".stet" not in x.parts)


def same(name, found, wanted):
    t(name, found == wanted, f"found  {found}\nwanted {wanted}")


def checked(name):
    r = stet("check", cwd=root)
    t(f"{name}: stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)


# An element of `each`, and a node.
t("a pipeline runs", begin(COMPILE, ONE, TWO)[0])
same("while all is there nothing is a leftover", gc("--outputs"), ([], {}))
(root / "src/b.c").unlink()
before = there()
same("a command is gone before it was run without", gc("--outputs"), ([], {}))
t("run without it", run()[0])
same("a run removes nothing", there(), before)
r = stet("gc", cwd=root)
t("plain gc removes nothing and says what could go", there() == before and "1 output of commands that are gone" in r.stdout, r.stdout)
same("a dry run names it", gc("--outputs", "-n"), (["build/b.o"], {}))
same("and removes nothing", there(), before)
same("then it goes", gc("--outputs"), (["build/b.o"], {}))
same("alone", there(), [x for x in before if x != "build/b.o"])
same("once", gc("--outputs"), ([], {}))
same("nothing has to run for that", "ran 0" in run()[1], True)
toml(COMPILE, ONE)
run()
same("of a node that is gone, files and directories go", gc("--outputs"), (["tree", "two.txt"], {}))
same("whole", (root / "tree").exists(), False)
toml(COMPILE, ONE, TWO)
t("what comes back is made again", run()[0] and (root / "tree/sub/b").read_text() == "two\n")
checked("coming and going")

# Changed by hand, before and after somebody looked.
begin(COMPILE, ONE, TWO)
for name in "ab":
    (root / f"src/{name}.c").unlink()
run()
(root / "build/a.o").write_text("mine")
same("what was changed by hand stays, and the dry run says so", gc("--outputs", "-n"), (["build/b.o"], {"build/a.o": "it was changed since"}))
same("what was changed by hand stays", gc("--outputs"), (["build/b.o"], {"build/a.o": "it was changed since"}))
same("as it is", (root / "build/a.o").read_text(), "mine")
stet("gc", cwd=root)
same("and is nobody's then", gc("--outputs"), ([], {}))
(root / "tree/mine").write_text("mine")
(root / "one.txt").chmod(0o755)
toml(COMPILE)
run()
same("a directory with a file more stays, and one whose mode was changed", gc("--outputs"), (["two.txt"], {}))
t("they are there", (root / "tree/mine").exists() and (root / "one.txt").exists())
begin(TWO)
toml(COMPILE)
run()
(root / "tree/sub/.git").mkdir()
(root / "two.txt").unlink()
(root / "two.txt").symlink_to("src/a.c")
(root / "src/a.c").write_text("two\n")
same("so does one with a repository in it, and a link", gc("--outputs"),
     ([], {"tree": "a repository or a project lies in it", "two.txt": "it was changed since"}))
checked("changed by hand")

# Needed by somebody else.
begin(ONE, TWO)
toml('[nodes.other]\ncommand = "echo one > {out}"\nproduces = "one.txt"\n[nodes.use]\ncommand = "cat {in} > {out}"\nfiles = "tree/a"\nproduces = "use.txt"\n')
good, said = run("-k")
t("a command that names a file of a removed node's directory fails", not good and "tree/a, which a command that is gone" in said, said)
same("what another node writes stays; what a removed node wrote goes, though it is named", gc("--outputs"), (["tree", "two.txt"], {}))
t("the first is there", (root / "one.txt").exists() and not (root / "tree").exists())
begin(ONE, TWO)
toml('[nodes.use]\ncommand = "cat {in} > {out}"\nfiles = "*.txt"\nproduces = "use"\n[nodes.whole]\ncommand = "ls {in} > {out}"\nfiles = "tree"\nproduces = "whole"\n')
good, said = run("-k")
t("a command that names a removed node's directory fails", not good and "it would read tree" in said, said)
same("what only the name of a pattern fits goes, for patterns do not match it", gc("--outputs")[0], ["one.txt", "tree", "two.txt"])
begin(ONE, TWO)
toml('[nodes.late]\ncommand = "echo late > {out}"\nproduces = "one.txt"\n[nodes.now]\ncommand = "echo > {out}"\nproduces = "now"\n')
run("now")
same("what a node says that it writes stays, though it never ran", gc("--outputs"), (["tree", "two.txt"], {"one.txt": "a node says that it writes it"}))
begin(COMPILE)
toml(COMPILE.replace("nodes.compile", "nodes.built"), ONE)
run("one")
kept = gc("--outputs")
t("what an each may write that never ran stays", kept[0] == [] and len(kept[1]) == 3 and "may write it" in kept[1]["build/a.o"], kept)
run()
(root / "src/c.c").unlink()
run()
same("and is its own when it did, but for what is gone", gc("--outputs"), (["build/c.o"], {}))
checked("needed")

# Another space of the project reads it.
begin(ONE, TWO)
(root / "far.toml").write_text('name = "far"\n[nodes.use]\ncommand = "cat {in} > {out}"\nfiles = "one.txt"\nproduces = "far.txt"\n')
t("a piece of another space reads it", run("far.toml", "--space", "far")[0])
toml(TWO)
run()
same("so it stays", gc("--outputs"), ([], {}))

# Killed: at the removal, and between it and the record.
for n, call in [(1, "unlink"), (2, "unlink"), (4, "unlink"), (1, "fdatasync"), (2, "fsync")]:
    begin(COMPILE, ONE)
    for name in "ab":
        (root / f"src/{name}.c").unlink()
    toml(COMPILE)
    run()
    mine = root / "mine.txt"
    mine.write_text("mine")
    r = stet("gc", "--outputs", program=os.environ["STET_FAULTY"], cwd=root, env={"STET_FAULT": f"call={call},n={n},action=kill"})
    left = [x for x in ("build/a.o", "build/b.o", "one.txt") if (root / x).exists()]
    same(f"killed at {call} {n} ({r.returncode}, {len(left)} left), the rest goes the next time", sorted(gc("--outputs")[0]), left)
    same("and nothing else", there(), ["build/a.d", "build/b.d", "build/c.d", "build/c.o", "mine.txt", "src/c.c", "stet.toml"])
    t("a run finds nothing to do", "ran 0" in run()[1])
    checked(f"killed at {call} {n}")

# Commands are running.
begin(ONE)
toml('[nodes.slow]\ncommand = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo > {out}"\nproduces = "slow.txt"\n')
p = subprocess.Popen([STET, "run"], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while not (root / "begun").exists() and p.poll() is None:
    pass
r = stet("gc", "--outputs", cwd=root)
t("while commands run nothing is removed", r.returncode != 0 and "commands are running" in r.stderr and (root / "one.txt").exists(), r.stderr)
(root / "go").touch()
p.wait()
same("afterwards it is", gc("--outputs"), (["one.txt"], {}))
finish(root)
