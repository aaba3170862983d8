#!/usr/bin/env python3
"""What a command has made is put back when the same command is met again: directories whole, large files by hard link without reading
them, and never bytes that somebody changed under stet's hands."""
import os, pathlib, shutil, subprocess
from tap import STET, finish, t

root = pathlib.Path("p").absolute()
log = pathlib.Path("log").absolute()


def stet(*words):
    return subprocess.run([STET, *words], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          env=dict(os.environ, LOG=str(log)))


def executed(*words):
    """What a run executed."""
    log.write_text("")
    r = stet("run", *words)
    return log.read_text().split() if r.returncode == 0 else [r.stdout]


def tree(top):
    found = {}
    for p in sorted(pathlib.Path(top).rglob("*")):
        name = os.fsencode(p.relative_to(top))
        found[name] = ("link", os.readlink(p)) if p.is_symlink() else ("dir",) if p.is_dir() else (p.read_bytes(), bool(p.stat().st_mode & 0o111))
    return found


root.mkdir()
(root / "in").write_text("1\n")
(root / "make.py").write_text(r'''
import os, sys
text = open(sys.argv[1]).read()
os.makedirs("d/a/b"), os.makedirs("d/empty"), os.makedirs("d/.stet"), os.makedirs(b"d/bad\xff")
open("d/a/b/f", "w").write(text * 3)
open("d/run", "w").write("#!/bin/sh\n"), os.chmod("d/run", 0o755)
open(b"d/bad\xff/new\nline", "w").write("x" * 300000)
os.symlink("../../../outside", "d/a/b/link"), os.symlink("a", "d/to"), os.symlink("nowhere", "d/dangling")
open(os.environ["LOG"], "a").write("make\n")
''')
(root / "stet.toml").write_text('''name = "o"
[nodes.make]
command = ["python3", "make.py", "{in}"]
files = { in = "in", script = "make.py" }
produces = { out = "d" }
env = ["LOG"]
[nodes.sum]
command = "echo sum >> $LOG; find {in} | sort | sha256sum > {out}; cat d/a/b/f >> {out}"
files = "$make.out"
produces = "sum"
env = ["LOG"]
''')
stet("init")
t("a command that makes a directory", executed() == ["make", "sum"])
shutil.rmtree(root / "d/.stet")
first, sums = tree(root / "d"), (root / "sum").read_text()
shutil.rmtree(root / "d")
t("removed, it is put back and nothing runs", executed() == [] and tree(root / "d") == first, tree(root / "d"))
(root / "d/a/b/f").write_text("spoilt")
(root / "d/more").write_text("more")
t("as it was, when it was changed", executed() == [] and tree(root / "d") == first, tree(root / "d"))
(root / "in").write_text("2\n")
t("another input makes another", executed() == ["make", "sum"] and tree(root / "d")[b"a/b/f"][0] == b"2\n2\n2\n")
(root / "in").write_text("1\n")
t("and back", executed() == [] and tree(root / "d") == first and (root / "sum").read_text() == sums)
shutil.rmtree(root / "d")
(root / "d").write_text("a file in its place")
t("in place of a file", executed() == [] and tree(root / "d") == first)
t("a file in place of a directory", True if (root / "sum").unlink() is None and (root / "sum").mkdir() is None and executed() == []
  and (root / "sum").read_text() == sums else False)
other = pathlib.Path("other").absolute()
shutil.copytree(root, other, symlinks=True, ignore=shutil.ignore_patterns("d", "sum", "local"))
root, here = other, root
t("on another machine that has the results", executed() == [] and tree(root / "d") == first and (root / "sum").read_text() == sums)
root = here
t("nothing is left in the project", not [p for p in root.rglob(".stet-restore*")] and not list((root / ".stet/local/temp").glob("restore*")))

# A stored directory that was tampered with: paths that lead out of it.
objects = [p for p in (root / ".stet/persist").rglob("*") if p.is_file() and p.read_bytes().startswith(b"stet-directory 1\n")]
t("directories lie in objects", len(objects) == 2, objects)
for o in objects:
    evil = o.read_bytes().replace(b'"path":"a/b/f"', b'"path":"../../z"')
    o.chmod(0o644)
    o.write_bytes(evil)
shutil.rmtree(root / "d")
t("a damaged object is no result: the command runs", executed() == ["make"] and not (root.parent / "z").exists() and not (root / "z").exists())
shutil.rmtree(root / "d/.stet")
t("and makes the same", tree(root / "d") == first)
(root / "in").write_text("2\n")
t("the other one, too", executed() == ["make"] and tree(root / "d")[b"a/b/f"][0] == b"2\n2\n2\n", log.read_text())
(root / "in").write_text("1\n")
t("and back again", executed() == [] and tree(root / "d") == first)

# Hard links.
with open(root / ".stet/config.toml", "a") as f:
    f.write("\n[module.command]\nhardlink = true\n")
(root / "stet.toml").write_text('''name = "o"
[nodes.big]
command = "echo big >> $LOG; head -c 3000000 /dev/zero | tr '\\\\0' x > {out}; cat {in} >> {out}"
files = "in"
produces = "big"
env = ["LOG"]
[nodes.small]
command = "echo small >> $LOG; cat {in} > {out}"
files = "in"
produces = "small"
env = ["LOG"]
''')
t("a large file and a small one", executed() == ["big", "small"] or sorted(log.read_text().split()) == ["big", "small"])
want = {n: (root / n).read_bytes() for n in ("big", "small")}


def right():
    return all((root / n).read_bytes() == want[n] for n in want)


def restored():
    for n in want:
        (root / n).unlink()
    return sorted(executed())


t("are put back", restored() == [] and right())
linked = os.stat(root / "big").st_nlink == 2
t("and can't be written to by accident, where they share their bytes", not linked or os.stat(root / "big").st_mode & 0o222 == 0)
for name in want:  # somebody insists, and writes through the link into the object
    (root / name).chmod(0o644)
    with open(root / name, "r+b") as f:
        f.write(b"SPOILT")
t("an edit in place is noticed, and its bytes are not taken for the result's", sorted(executed()) in (["big", "small"], []) and right(), log.read_text())
t("nor later", restored() in (["big", "small"], []) and right())
t("and then all is well again", restored() == [] and right())
(root / "in").write_text("3\n")
executed()
(root / "in").write_text("1\n")
t("a command does not write through a link", executed() == [] and right())
r = stet("check")
t("stet check finds nothing", r.returncode == 0, r.stdout)
r = stet("gc")
t("nor is anything in the way of stet gc", r.returncode == 0, r.stdout)
t("after which results are still there", restored() == [] and right())
finish(root)
