#!/usr/bin/env python3
"""What a removed node has left behind, in every way to list names: patterns of `echo` and `printf`, patterns in strings for other programs, and programs that list a
directory; a file, a link, and a link that leads to nothing by now. Either the result is that of a project without it, or the node fails, names what is left behind,
and the way out that the error names leads to that result. One that reads outputs of failed ones, too, may wait for them."""
import os, pathlib, shutil
from tap import answer, finish, stet, t

top, fresh = pathlib.Path("p").absolute(), pathlib.Path("f").absolute()
READERS = ["echo gen/*", "echo gen/*.txt", "printf '%s\\n' gen/*.txt", "sh -c 'echo gen/*'", "perl -e 'print join(q( ), sort glob(q(gen/*.txt)))'", "ls -A gen",
           "find gen | LC_ALL=C sort", "for f in gen/*; do echo $f; done", "(cd gen; echo *)", "perl -e 'opendir D, q(gen); print join q( ), sort(readdir D)'"]
LEFT = {"a file": "echo got > {out}", "a link": "ln -s ../src/x {out}", "a link to nothing": "ln -s ../src/x {out}"}
KEEP = '[nodes.k]\ncommand = "echo k > {out}"\nproduces = "gen/keep.txt"\n'


def pattern(reader, left):
    text = 'name = "p"\n' + KEEP + "".join(f"[nodes.r{i}]\ncommand = '''{r} > {{out}}'''\nproduces = 'out/r{i}'\n" for i, r in enumerate(reader))
    return text + (f'[nodes.m]\ncommand = "{left}"\nproduces = "gen/left.txt"\nscripts = false\n' if left else "")


def place(where, text):
    (where / "src").mkdir(parents=True, exist_ok=True)
    (where / "src/x").write_text("x\n")
    (where / "stet.toml").write_text(text)
    stet("init", cwd=where)


place(fresh, pattern(READERS, None))
first = stet("run", cwd=fresh)
right = [(fresh / f"out/r{i}").read_text() for i in range(len(READERS))]
t("from scratch each has its result", first.returncode == 0 and all("keep.txt" in r for r in right), first.stdout + first.stderr + str(right))
for kind, left in LEFT.items():
    shutil.rmtree(top, ignore_errors=True)
    place(top, pattern(READERS, left))
    r = stet("run", cwd=top)
    t(f"{kind}: with the node there", r.returncode == 0, r.stdout + r.stderr)
    (top / "stet.toml").write_text(pattern(READERS, None))
    if "nothing" in kind:
        (top / "src/x").unlink()
    said = stet("run", "-k", cwd=top)
    said = said.stdout + said.stderr
    stale = {a["action"] for a in answer("action", "list", "p", cwd=top)["actions"] if a["state"] != "stands"}
    for i, reader in enumerate(READERS):
        same = (top / f"out/r{i}").exists() and (top / f"out/r{i}").read_text() == right[i]
        t(f"{kind}: {reader}", same or f"failed p/r{i}: it would read gen/left.txt" in said or (f"r{i}" in stale and "cd gen" in reader), said)
    removed = stet("gc", "--outputs", cwd=top)
    r = stet("run", "-k", cwd=top)
    t(f"{kind}: the way out leads on", r.returncode == 0 and [(top / f"out/r{i}").read_text() for i in range(len(READERS))] == right and not os.path.lexists(top / "gen/left.txt"),
      removed.stdout + r.stdout + r.stderr)
    r = stet("run", cwd=top)
    t(f"{kind}: and nothing is left to do", r.stdout.startswith("ran 0,"), r.stdout + r.stderr)
finish(top)
