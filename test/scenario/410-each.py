#!/usr/bin/env python3
"""A command for each of many files (`each` in stet.toml): exactly the commands run that must, whatever happens to the files; random edits
end in the tree that a build from nothing gives; and a kill in the middle loses nothing and repeats nothing."""
import hashlib, os, pathlib, random, shutil, subprocess, time

from tap import LONG, SHORT, STET, finish, t

log = pathlib.Path("log").absolute()
root = pathlib.Path("p").absolute()

# A compiler of its own: it writes down that it ran, follows "#include" lines, and refuses files with "error" in them.
CC = '''echo "cc $1" >> "$LOG"; sleep ${SLOW:-0}
grep -q error "$1" && { echo "$1: an error"; exit 1; }
h=$(sed -n "s/^#include //p" "$1"); cat "$1" $h > "$2"; echo "$2: $1 $h" > "$3"
'''
TOML = '''name = "p"
[argument]
flag = "-O1"

[nodes.compile]
each     = { source = "src/**/*.c" }
command  = ["sh", "cc.sh", "{source}", "{out}", "build/{source.dir}/{source.stem}.d", "{flag}"]
files    = { script = "cc.sh" }
inputs   = { flag = "$argument/flag" }
produces = "build/{source.dir}/{source.stem}.o"
depfile  = "build/{source.dir}/{source.stem}.d"
env      = ["LOG", "SLOW"]

[nodes.sum]
each     = "$compile.out"
command  = "echo sum {in.name} >> $LOG; cksum < {in} > {out}"
produces = { out = "{in}.sum" }
env      = ["LOG"]

[nodes.link]
command  = "echo link >> $LOG; cat {objects} > {out}"
files    = { objects = "$compile.out" }
produces = "build/program"
env      = ["LOG"]

[nodes.all]
command  = "echo all >> $LOG; cat {in} > {out}"
files    = "build/**/*.sum"
produces = "all.txt"
env      = ["LOG"]
'''


def stet(*words, where=None, **env):
    return subprocess.run([STET, *words], cwd=where or root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          text=True, env=dict(os.environ, LOG=str(log), **env))


def ran(*words, code=0, **env):
    log.write_text("")
    r = stet("run", *words, **env)
    return sorted(log.read_text().splitlines()) if r.returncode == code else [f"exit {r.returncode}", r.stdout]


def same(name, found, wanted):
    t(name, found == sorted(wanted), f"found {found}, wanted {sorted(wanted)}")


def write(path, text):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def lay_out():
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    write("cc.sh", CC)
    write("stet.toml", TOML)
    write("one.h", "one\n")
    for n in "abc":
        write(f"src/{n}.c", f"{n}\n" + ("#include one.h\n" if n != "c" else ""))
    write("src/x/a.c", "deep\n")  # the name of another, in another directory
    stet("init")


lay_out()
same("the first run: each file its commands", ran(),
     ["all", "cc src/a.c", "cc src/b.c", "cc src/c.c", "cc src/x/a.c", "link", "sum a.o", "sum a.o", "sum b.o", "sum c.o"])
t("what they make lies where the path says", (root / "build/src/x/a.o").read_text() == "deep\n" and (root / "build/program").exists())
same("then everything stands", ran(), [])
write("src/b.c", "B\n#include one.h\n")
same("one edit: the commands of that file", ran(), ["all", "cc src/b.c", "link", "sum b.o"])
os.utime(root / "src/c.c")
same("a touch: none", ran(), [])
write("one.h", "uno\n")
same("a header that a dependency file names: those that include it", ran(), ["all", "cc src/a.c", "cc src/b.c", "link", "sum a.o", "sum b.o"])
write("src/d.c", "d\n")
same("a new file: its commands", ran(), ["all", "cc src/d.c", "link", "sum d.o"])
r = stet("run", "--set", 'flag="-O2"')
same("a changed input: all of them", ran(), [])
t("and what they write is the same: nothing behind them ran", "ran 5," in r.stdout, r.stdout)
same("and back: none, they are known", ran("--set", 'flag="-O1"'), [])
os.remove(root / "build/src/d.o")
same("a deleted output comes back without a command", ran(), [])
t("and is there", (root / "build/src/d.o").read_text() == "d\n")

write("src/b.c", "error\n")
same("one fails: the others stand, and what needs it waits", ran("-k", code=1), ["cc src/b.c"])
r = stet("run", "-k", "--no-retry-failed")
t("and says so at the next run, too", r.returncode == 1 and "src/b.c" not in log.read_text().replace("cc src/b.c", "", 1), r.stdout)
r = stet("why", "p")
t("why names the command that failed", "compile[src%2Fb.c].run" in r.stdout, r.stdout)
write("src/b.c", "B\n#include one.h\n")
ran()
same("mended: everything stands again", ran(), [])

write("src/y/a.c", "third\n")
write("stet.toml", TOML.replace("build/{source.dir}/{source.stem}.o", "build/{source.stem}.o"))
r = stet("run")
t("two files that would be one: refused, before any command, with both names", r.returncode == 1 and "src/a.c and src/x/a.c would both write build/a.o"
  in r.stdout and "{in.dir}" in r.stdout, r.stdout)
write("stet.toml", TOML.replace('each     = "$compile.out"', 'each = "src/*.c"').replace("{in}.sum", "build/src/{in.stem}.o"))
r = stet("run", "-k")
t("two nodes that write one file: the second is refused, and nothing goes round in circles",
  r.returncode == 1 and "would both write build/src/a.o" in r.stdout and "did not come to rest" not in r.stdout, r.stdout)
write("stet.toml", TOML)
os.remove(root / "src/y/a.c")
ran()
same("and the pattern as it was: everything stands", ran(), [])

for what, toml, message in [
        ("no command", "[nodes.n]\neach = '*.h'\njavascript = '() => 1'\n", "`each` is for commands"),
        ("one path for all", TOML.replace("{in}.sum", "one.sum"), 'every command of the node would write "one.sum"'),
        ("no such part", TOML.replace("{in}.sum", "{in.stam}.sum"), '"{in.stam}" is no part of a path'),
        ("without each", TOML.replace('each     = "$compile.out"', 'files = "one.h"'), "is for nodes with `each`"),
        ("two names", "[nodes.n]\neach = { a = 'x', b = 'y' }\ncommand = 'true'\n", "`each` has one name"),
        ("a name twice", TOML.replace('{ script = "cc.sh" }', '{ source = "cc.sh" }'), 'there is an input "source" already')]:
    write("stet.toml", toml)
    r = stet("run")
    t(f"refused, with the line: {what}", r.returncode == 2 and message in r.stdout and "stet.toml, line " in r.stdout, r.stdout)
write("stet.toml", TOML)
same("nothing was lost by that", ran(), [])
r = stet("check")
t("check", r.returncode == 0, r.stdout)

# Killed while commands run: the next start goes on with them.
lay_out()
log.write_text("")
p = subprocess.Popen([STET, "run"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, LOG=str(log), SLOW="0.4"))
for _ in range(200):
    if "cc" in log.read_text():
        break
    time.sleep(0.02)
p.kill()
p.wait()
r = stet("run", SLOW="0.4")
lines = sorted(log.read_text().splitlines())
t("killed in the middle: each command ran once", r.returncode == 0 and lines == sorted(
    ["all", "cc src/a.c", "cc src/b.c", "cc src/c.c", "cc src/x/a.c", "link", "sum a.o", "sum a.o", "sum b.o", "sum c.o"]), f"{lines}\n{r.stdout}")
r = stet("check")
t("check", r.returncode == 0, r.stdout)


# Random edits, each followed by a run: what is made is what a build from nothing makes.
def digest(where, names):
    return {n: hashlib.sha256((where / n).read_bytes()).hexdigest() for n in names}


def outputs(where):
    sources = [p.relative_to(where) for p in (where / "src").rglob("*.c")]
    return [f"build/{s.with_suffix('.o')}" for s in sources] + [f"build/{s.with_suffix('.o')}.sum" for s in sources] + ["build/program"]


seed = int(os.environ.get("STET_TEST_SEED", "7"))
rng = random.Random(seed)
lay_out()
names = ["src/a.c", "src/b.c", "src/c.c", "src/d.c", "src/x/a.c", "src/x/y/z.c", "src/sp ace.c"]
steps, wrong, idle = 10 if SHORT else 200 if LONG else 30, "", ""
for step in range(steps):
    for _ in range(rng.randint(1, 3)):
        name, kind = rng.choice(names), rng.random()
        if kind < 0.55:
            write(name, f"{rng.randint(1, 5)}\n" + rng.choice(["", "#include one.h\n"]))
        elif kind < 0.75 and (root / name).exists():
            os.remove(root / name)
        elif kind < 0.9:
            write("one.h", f"{rng.randint(1, 3)}\n")
        else:
            shutil.rmtree(root / "build", ignore_errors=True)
    if not list((root / "src").rglob("*.c")):
        write("src/a.c", "1\n")
    r = stet("run")
    if r.returncode:
        wrong = f"step {step}: {r.stdout}"
        break
    fresh = pathlib.Path("fresh").absolute()
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(root, fresh, ignore=lambda d, n: [x for x in n if x in (".stet", "build", "all.txt")])
    stet("init", where=fresh)
    r = stet("run", where=fresh)
    if r.returncode or digest(root, outputs(fresh)) != digest(fresh, outputs(fresh)):
        wrong = f"step {step}: {r.stdout}"
        break
    again = ran()
    if again:
        idle = f"step {step}: {again}"
        break
t(f"{steps} random edits (seed {seed}): the same files as from nothing", not wrong, wrong)
t("and no command runs when nothing changed", not idle, idle)
finish(root)
