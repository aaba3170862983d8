#!/usr/bin/env python3
"""Nodes with `each` may share a template if their files differ: random files in three directories, with plain nodes beside them. The oracle is the
set of paths, computed here, and a fresh project: a run fails exactly if two commands would write one file, and otherwise makes what a fresh project
makes, after which nothing is left to run."""
import os, pathlib, random, shutil, tempfile
from tap import LONG, SHORT, finish, stet, t

SEED = int(os.environ.get("STET_SEED", "1"))
rand = random.Random(SEED)
TOP = pathlib.Path(tempfile.mkdtemp()).resolve()
DIRS, STEMS = ["a", "b", "c"], ["x", "y", "z", "q"]


def pattern():
    """Three nodes with one template, or with two that may meet; a plain node that may be in the way."""
    name = rand.choice(["out/{in.stem}.o", "out/{in.stem}.o", "out/{in.ext}-{in.stem}"])
    other = rand.choice([name, name, "out/{file.stem}.o"])
    text = 'name = "beside"\n'
    outs = {}
    for d in DIRS:
        template = rand.choice([name, other])
        member = "file" if "file" in template else "in"
        outs[d] = template
        each = f'{{ file = "{d}/*.t" }}' if member == "file" else f'"{d}/*.t"'
        text += f'[nodes.{d}]\neach = {each}\ncommand = "echo {{{member}}} >> log; cat {{{member}}} > {{out}}"\nproduces = "{template}"\n'
    plain = rand.choice(["out/q.o", "out/p.o"])
    text += f'[nodes.plain]\ncommand = "echo plain > {{out}}"\nproduces = "{plain}"\n'
    text += '[nodes.all]\ncommand = "cat {a} {b} {c} /dev/null > {out}"\nfiles = { a = "$a.out", b = "$b.out", c = "$c.out" }\nproduces = "all.txt"\n'
    return text, outs, plain


def expected(outs, plain):
    """{output: content}, or None if two commands would write one file."""
    made = {plain: "plain\n"}
    for d in DIRS:
        for f in sorted(pathlib.Path(d).glob("*.t")):
            path = outs[d].replace("{in.stem}", f.stem).replace("{file.stem}", f.stem).replace("{in.ext}", ".t")
            if path in made:
                return None
            made[path] = f.read_text()
    return made


def edit():
    d, s = rand.choice(DIRS), rand.choice(STEMS)
    f, g = pathlib.Path(d, s + ".t"), pathlib.Path(rand.choice(DIRS), rand.choice([s, rand.choice(STEMS)]) + ".t")
    what = rand.choice(["write", "write", "remove", "move", "copy", "same"])
    if what == "remove":
        f.unlink(missing_ok=True)
    elif what in ("move", "copy") and f.exists() and f != g:
        (shutil.move if what == "move" else shutil.copy)(f, g)
    else:
        f.write_text("same\n" if what == "same" else f"{rand.random()}\n")


def outputs():
    return {str(p): p.read_text() for p in sorted(pathlib.Path("out").glob("*"))}


bad = []
refused = allowed = 0
for project in range(8 if LONG else 2):
    here = TOP / f"p{project}"
    here.mkdir()
    os.chdir(here)
    for d in DIRS:
        os.mkdir(d)
    text, outs, plain = pattern()
    pathlib.Path("stet.toml").write_text(text)
    stet("init")
    for step in range(60 if LONG else 5 if SHORT else 9):
        for _ in range(rand.randint(1, 3)):
            edit()
        want = expected(outs, plain)
        r = stet("run", "-k")
        ok = (r.returncode == 0) == (want is not None)
        if want is None:
            refused += 1
            ok = ok and ("would both write" in r.stdout or "would write" in r.stdout)
        else:
            allowed += 1
            stet("gc", "--outputs")
            ok = ok and outputs() == want and "ran 0," in stet("run").stdout
            if step % 3 == 0:
                fresh = here / "fresh"
                fresh.mkdir()
                for name in DIRS + ["stet.toml"]:
                    (shutil.copytree if os.path.isdir(name) else shutil.copy)(name, fresh / name)
                stet("init", cwd=fresh)
                stet("run", cwd=fresh)
                ok = ok and (fresh / "all.txt").read_text() == pathlib.Path("all.txt").read_text()
                shutil.rmtree(fresh)
        if not ok:
            bad.append((SEED, project, step, want, outputs(), r.stdout + r.stderr, text))
    t(f"project {project}: stet check", stet("check").returncode == 0, stet("check").stdout)
t(f"{allowed} runs make what the files say, and {refused} are refused", not bad, bad[:1])
t("both cases occurred", allowed and refused, (allowed, refused))
twice = TOP / "twice"
twice.mkdir()
os.chdir(twice)
pathlib.Path("stet.toml").write_text('[nodes.n]\neach = "*.t"\ncommand = "cp {in} {a}; cp {in} {b}"\nproduces = { a = "{in.stem}.o", b = "{in.stem}.o" }\n')
stet("init")
t("one node that writes a path twice is refused", 'is produced by node "n" as well' in stet("run").stderr, stet("run").stderr)
finish(None)
