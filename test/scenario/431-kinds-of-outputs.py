#!/usr/bin/env python3
"""What an output may be: a file, a directory with files, links and empty directories in it, or a symbolic link. Each comes back from what is
kept as the command had made it."""
import os, pathlib, shutil, subprocess
from tap import answer, finish, stet, t

P = pathlib.Path


def tree(path):
    """Everything that a program can see of it."""
    p = P(path)
    if p.is_symlink():
        return ("link", os.readlink(p))
    if p.is_dir():
        return {n: tree(p / n) for n in sorted(os.listdir(p))}
    return ("file", p.read_bytes(), bool(p.stat().st_mode & 0o111)) if p.exists() else None


def remove(path):
    p = P(path)
    shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink() if p.is_symlink() or p.exists() else None


def node(command, more=""):
    P("stet.toml").write_text(f"name = 'p'\n[nodes.a]\ncommand = '''{command}'''\nfiles = {{ in = 'src/f' }}\nproduces = 'o/out'\n{more}")


stet("init")
os.makedirs("src")
KINDS = {"a file": "cp {in} {out}",
         "an empty file": ": > {out}",
         "an executable": "cp {in} {out}; chmod +x {out}",
         "a link to an input": "ln -s ../src/f {out}",
         "a link to a file of the project that is no input": "ln -s ../src/g {out}",
         "a link to a directory": "ln -s ../src {out}",
         "a link to a file outside": "ln -s /etc/passwd {out}",
         "a second name of the input": "ln {in} {out}",
         "a directory": "mkdir -p {out}/a/b; cp {in} {out}/a/b/f; cp {in} {out}/x; chmod +x {out}/x",
         "an empty directory": "mkdir {out}",
         "empty directories in a directory": "mkdir -p {out}/a/b {out}/c; cp {in} {out}/c/f",
         "links in a directory": "mkdir {out}; ln -s ../../src/f {out}/l; ln -s nowhere {out}/n; ln -s l {out}/m; ln -s ../../src {out}/d; ln -s . {out}/self",
         "two names of one file in a directory": "mkdir {out}; cp {in} {out}/a; ln {out}/a {out}/b",
         "strange names in a directory": "mkdir {out}; cp {in} {out}/\" a\nb\"; cp {in} {out}/-n; cp {in} {out}/ü; cp {in} {out}/$(printf \"\\377\")"}
for name, command in KINDS.items():
    remove("o")
    P("src/f").write_text("1")
    P("src/g").write_text("1")
    node(command)
    r = answer("run")
    first = tree("o/out")
    t(f"{name}: made", r.get("ran") == 1 and r.get("failed") == 0 and first is not None, r)
    t(f"{name}: stands", answer("run")["ran"] == 0)
    node(command + " ")  # another command in between, so that the first comes from what is kept
    answer("run")
    remove("o/out")
    node(command)
    r = answer("run")
    t(f"{name}: as it was when it comes back", tree("o/out") == first and r["failed"] == 0, (first, tree("o/out"), r))
    t(f"{name}: and stands", answer("run")["ran"] == 0)
    # A hand edit: a file in its place.
    remove("o/out")
    P("o/out").write_text("by hand")
    answer("run")
    t(f"{name}: mended after a hand edit", tree("o/out") == first, tree("o/out"))
    P("src/f").write_text("2")
    P("src/g").write_text("2")
    answer("run")
    got = tree("o/out")
    remove("o/out")
    os.makedirs("o", exist_ok=True)
    subprocess.run(["sh", "-c", command.replace("{in}", "src/f").replace("{out}", "o/out")], check=True)
    t(f"{name}: after an edit it is what the command makes now", got == tree("o/out"), (got, tree("o/out")))
    remove("o/out")
    answer("run")
    t(f"{name}: and what is kept of it is that", tree("o/out") == got and answer("run")["ran"] == 0, tree("o/out"))

# Readers of an output that is a link see what it leads to, and run when that changes, in the same run.
remove("o")
P("src/g").write_text("1")
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = 'ln -s ../src/g {out}'\nproduces = 'o/out'\n"
                          "[nodes.b]\ncommand = 'cat {in} > {out}'\nfiles = { in = '$a.out' }\nproduces = 'o/b'\n")
answer("run")
for text in ("2", "1", "3"):
    P("src/g").write_text(text)
    r = answer("run")
    t(f"a reader sees {text} through the link", P("o/b").read_text() == text and os.readlink("o/out") == "../src/g", r)
    t("and all stands", answer("run")["ran"] == 0)
# The link leads to what another node makes later.
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = 'mkdir -p late; : > late/x; ln -s ../late/f {out}; [ -e late/f ] || : > late/f'\nproduces = 'o/out'\n"
                          "[nodes.b]\ncommand = 'cat {in} > {out}'\nfiles = { in = '$a.out' }\nproduces = 'o/b'\n"
                          "[nodes.c]\ncommand = 'sleep 0.2; cat {in} > {out}'\nfiles = { in = 'src/f' }\nproduces = 'late/f'\n")
for text in ("5", "6"):
    P("src/f").write_text(text)
    r = answer("run")
    t(f"what another node makes is seen through the link, in the same run: {text}", P("o/b").read_text() == text, (P("o/b").read_text(), r))
# What is neither is a failure that says so.
for command, says in (("mkfifo {out}", "neither a file nor a directory"), ("ln -s nowhere {out}", "leads to no file"), (":", "did not write")):
    node(command)
    r = answer("run")
    t(f"{command}: {says}", r["failed"] == 1 and says in str(r["problems"]), r)
finish()
