#!/usr/bin/env python3
"""What happens to a project in the life of its files: git checkout back and forth, a clock set back, a source tree that can't be written,
two runs at once, headers that are included no longer, many files."""
import os, pathlib, shutil, subprocess
from tap import LONG, SHORT, STET, finish, t

root = pathlib.Path("p").absolute()
log = pathlib.Path("log").absolute()


def stet(*words, where=None, **more):
    return subprocess.run([STET, *words], cwd=where or root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          text=True, env=dict(os.environ, LOG=str(log)), **more)


def executed(*words, **more):
    log.write_text("")
    r = stet("run", *words, **more)
    return sorted(log.read_text().split()) if r.returncode == 0 else [r.stdout]


def git(*words):
    r = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if r.returncode:
        print("# " + r.stdout)


# Git.
root.mkdir()
(root / "src").mkdir()
for n in "abc":
    (root / f"src/{n}.c").write_text(f"{n}\n#h1\n")
(root / "h1").write_text("one\n")
(root / "h2").write_text("two\n")
(root / ".gitignore").write_text("b/\n.stet/\n")
(root / "cc.sh").write_text('echo "$1" >> "$LOG"; h=$(sed -n "s/^#//p" "$1"); cat "$1" $h > "$2"; echo "$2: $1 $h" > "$3"\n')
toml = 'name = "p"\n' + "".join(f'[nodes.{n}]\ncommand = ["sh", "cc.sh", "{{in}}", "{{out}}", "b/{n}.d"]\nfiles = "src/{n}.c"\n'
                                f'produces = "b/{n}.o"\ndepfile = "b/{n}.d"\nenv = ["LOG"]\n' for n in "abc")
toml += '[nodes.all]\ncommand = "echo all >> $LOG; cat {objs} > {out}"\nfiles = { objs = ["$a.out", "$b.out", "$c.out"] }\nproduces = "b/all"\nenv = ["LOG"]\n'
(root / "stet.toml").write_text(toml)
stet("init")
git("init", "-q", "-b", "main")
git("add", "."), git("commit", "-qm", "1")
t("a first build", executed() == ["all", "src/a.c", "src/b.c", "src/c.c"])
first = (root / "b/all").read_text()
git("checkout", "-qb", "other")
(root / "src/a.c").write_text("A\n#h2\n")
(root / "src/d").mkdir()
(root / "src/d/new").write_text("x")
git("add", "."), git("commit", "-qm", "2")
t("a branch", executed() == ["all", "src/a.c"])
second = (root / "b/all").read_text()
for i in range(3):
    git("checkout", "-q", "main")
    t(f"back, {i}", executed() == [] and (root / "b/all").read_text() == first)
    git("checkout", "-q", "other")
    t(f"and forth, {i}", executed() == [] and (root / "b/all").read_text() == second)
git("checkout", "-q", "main")
shutil.rmtree(root / "b")
t("and from nothing", executed() == [] and (root / "b/all").read_text() == first)

# Headers that are included no longer.
files = stet("file", "list").stdout
t("headers are followed", "file:h1" in files and "file:h2" in files, files)
for n in "abc":
    (root / f"src/{n}.c").write_text(f"{n}\n#h2\n")
executed()
r = stet("gc", "--dry-run", "--only", "files")
t("gc would forget what nobody reads", "file:h1" in stet("file", "list").stdout and r.returncode == 0, r.stdout)
r = stet("gc")
t("gc forgets it", r.returncode == 0 and "file:h1" not in stet("file", "list").stdout, r.stdout + stet("file", "list").stdout)
t("and nothing that is needed", executed() == [] and "ran 0" in stet("run").stdout)
(root / "h2").write_text("changed\n")
t("what is still included counts", executed() == ["all", "src/a.c", "src/b.c", "src/c.c"])
(root / "h1").write_text("changed\n")
t("what is not does not", executed() == [])
(root / "src/a.c").write_text("a\n#h1\n")
t("until it is again", executed() == ["all", "src/a.c"])
(root / "h1").write_text("again\n")
t("and is followed then", executed() == ["all", "src/a.c"])

# Times that go backwards: everything is older than its outputs.
for p in root.rglob("*"):
    if p.is_file() and ".git" not in p.parts and ".stet" not in p.parts:
        os.utime(p, (1, 1))
t("all times set back: nothing runs", executed() == [])
(root / "src/b.c").write_text("B\n#h2\n")
os.utime(root / "src/b.c", (0, 0))
t("a change with a time of long ago", executed() == ["all", "src/b.c"])
for p in (root / "b").iterdir():
    os.utime(p, (4102444800, 4102444800))
(root / "src/b.c").write_text("b\n#h2\n")
t("outputs from the future hide nothing", executed() == [], log.read_text())  # this content was met before: its result is put back
t("and are right", (root / "b/b.o").read_text().startswith("b\n"))

# Two at once.
for i in range(3):
    (root / "h2").write_text(f"two at once {i}\n")
    log.write_text("")
    both = [subprocess.Popen([STET, "run"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, LOG=str(log)))
            for _ in range(2)]
    said = [p.communicate()[0] for p in both]
    ran = sorted(log.read_text().split())
    t(f"two runs at once: each command once, {i}", all(p.returncode == 0 for p in both) and ran == ["all", "src/b.c", "src/c.c"], f"{ran} {said}")

# A source tree that can't be written: results go elsewhere.
ro = pathlib.Path("ro").absolute()
(ro / "src").mkdir(parents=True)
(ro / "src/x").write_text("x\n")
work = pathlib.Path("work").absolute()
work.mkdir()
(work / "stet.toml").write_text(f'name = "r"\n[nodes.x]\ncommand = "echo x >> $LOG; cat {{in}} > {{out}}"\nfiles = "{ro}/src/x"\nproduces = "out"\nenv = ["LOG"]\n')
stet("init", where=work)
(ro / "src").chmod(0o555)
(ro / "src/x").chmod(0o444)
t("a read-only source tree", executed(where=work) == ["x"] and (work / "out").read_text() == "x\n", log.read_text())
t("stands", executed(where=work) == [])
(ro / "src").chmod(0o755)
(ro / "src/x").chmod(0o644)

# Many files.
many = 500 if SHORT else 100000 if LONG else 3000
(root / "many").mkdir()
for i in range(many):
    d = root / f"many/{i % 100}"
    if i < 100:
        d.mkdir()
    (d / f"{i}").write_text(f"{i}\n")
with open(root / "stet.toml", "a") as f:
    f.write('[nodes.many]\ncommand = "echo many >> $LOG; find many -type f | wc -l > {out}"\nfiles = { all = "many/**/*" }\nproduces = "b/many"\nenv = ["LOG"]\n')
t(f"a pattern of {many} files", executed() == ["many"] and (root / "b/many").read_text().strip() == str(many))
t("which stand", executed() == [])
(root / "many/7/7").write_text("changed\n")
t("one of them changes", executed() == ["many"])
(root / "many/8/new").write_text("new\n")
t("one more", executed() == ["many"] and (root / "b/many").read_text().strip() == str(many + 1))
finish(root)
