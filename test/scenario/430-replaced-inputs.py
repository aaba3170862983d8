#!/usr/bin/env python3
"""An input that is another file for a while, and is put back before its command ends: what the command made of the other one does not
stand. A command that changes attributes of its own input (a second name, a mode, a time of access) stands all the same."""
import os, pathlib, subprocess, time
from tap import STET, answer, finish, stet, t

P = pathlib.Path


def wait_for(path, seconds=20):
    end = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.005)
    return os.path.exists(path)


def remove(*paths):
    for p in paths:
        subprocess.run(["rm", "-rf", p], check=True)


def rename_away():
    os.rename("x", "kept")
    P("x").write_text("B")


def rename_back():
    os.rename("kept", "x")


def write_over():
    global times
    st = os.stat("x")
    times = (st.st_atime_ns, st.st_mtime_ns)
    P("x").write_text("B")


def write_back():
    P("x").write_text("A")
    os.utime("x", ns=times)


def link_away():
    os.link("x", "kept")
    P("new").write_text("B")
    os.rename("new", "x")


def link_back():
    os.unlink("x")
    os.link("kept", "x")
    os.unlink("kept")


def point_away():
    os.unlink("x")
    os.symlink("b", "x")


def point_back():
    os.unlink("x")
    os.symlink("a", "x")


def dir_away():
    os.rename("x/f", "kept")
    P("x/f").write_text("B")


def dir_back():
    os.rename("kept", "x/f")


def dir_add():
    P("x/g").write_text("B")


def dir_take():
    os.unlink("x/g")


stet("init")
CASES = [("renamed away and back", "cat {in} > {out}", rename_away, rename_back, "A"),
         ("written over, and written back with its time", "cat {in} > {out}", write_over, write_back, "A"),
         ("replaced, and a second name put back", "cat {in} > {out}", link_away, link_back, "A"),
         ("renamed under a command that links it as well", "cat {in} > {out}; ln {in} second", rename_away, rename_back, "A"),
         ("a file in a directory, renamed away and back", "cat {in}/* > {out}", dir_away, dir_back, "A"),
         ("a file in a directory that is there for a while", "cat {in}/* > {out}", dir_add, dir_take, "A"),
         ("a link that leads elsewhere for a while", "cat {in} > {out}", point_away, point_back, "A")]
for undeclared in (False, True):
    for name, command, away, back, want in CASES:
        remove("x", "a", "b", "began", "go", "read", "end", "out", "second", "kept")
        if "directory" in name:
            os.mkdir("x")
            P("x/f").write_text("A")
        elif away is point_away:
            P("a").write_text("A")
            P("b").write_text("B")
            os.symlink("a", "x")
        else:
            P("x").write_text("A")
        text = f": > began; while [ ! -e go ]; do sleep 0.02; done; rm -f second; {command}; : > read; while [ ! -e end ]; do sleep 0.02; done"
        files = 'files = { in = "x" }\n'
        if undeclared:
            text, files = text.replace("{in}", "x"), ""
        P("stet.toml").write_text(f'name = "p"\n[nodes.a]\ncommand = "{text}"\n{files}produces = "out"\ncache = false\n')
        time.sleep(0.05)
        p = subprocess.Popen([STET, "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_for("began")
        os.unlink("began")
        away()
        P("go").touch()
        wait_for("read")
        back()
        P("end").touch()
        said, _ = p.communicate()
        kind = "named by a word" if undeclared else "declared"
        t(f"{name}, {kind}: the result is that of the input", P("out").exists() and P("out").read_text() == want, said)
        t(f"{name}, {kind}: and stands", p.returncode == 0 and answer("run")["ran"] == 0, said)

# Commands that change attributes of their own input end, and stand.
remove("x", "second")
P("x").write_text("A")
for command in ("ln {in} {out}", "cp -l {in} {out}", "touch -a {in}; cat {in} > {out}", "chmod a-w {in}; cat {in} > {out}; chmod u+w {in}",
                "cat {in} > {out}; ln {in} y; rm y"):
    P("stet.toml").write_text(f'name = "p"\n[nodes.a]\ncommand = "{command}"\nfiles = {{ in = "x" }}\nproduces = "out"\n')
    remove("out")
    r = answer("run")
    t(f"{command}: ends well", r.get("ran") == 1 and r.get("failed") == 0 and P("out").read_text() == "A", r)
    t(f"{command}: and stands", answer("run")["ran"] == 0)
remove("x", "out")
os.mkdir("x")
P("x/f").write_text("A")
P("stet.toml").write_text('name = "p"\n[nodes.a]\ncommand = "cp -al {in} {out}"\nfiles = { in = "x" }\nproduces = "out"\n')
r = answer("run")
t("a directory of second names: ends well", r.get("ran") == 1 and r.get("failed") == 0 and P("out/f").read_text() == "A", r)
t("a directory of second names: and stands", answer("run")["ran"] == 0)
finish()
