#!/usr/bin/env python3
"""A file that the words of a command name, and that somebody edits while the command runs, once and again: it stays an input, and the result is of what
the file is in the end. A command that writes such a file itself and leaves the same is done after a few runs."""
import pathlib, shutil, subprocess, time
from tap import STET, finish, stet, t

root, log = pathlib.Path("p").absolute(), pathlib.Path("log").absolute()


def project(text):
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    log.write_text("")
    (root / "f").write_text("v0\n")
    (root / "stet.toml").write_text('name = "p"\n' + text)
    stet("init", cwd=root)


def edited(name, text, edits, output="o/a", keep=False):
    project(text)
    p = subprocess.Popen([STET, "run"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for i in range(edits):
        until = time.monotonic() + 20
        while len(log.read_text().split()) <= i and time.monotonic() < until:
            time.sleep(0.01)
        (root / "f").write_text("v0\n" if keep else f"v{i + 1}\n")
    said = p.communicate()[0]
    second = stet("run", cwd=root).stdout
    good = (root / output).read_text() == (root / "f").read_text()
    t(f"{name}, {edits} times: the result is of the last", good and "failed 0" in second, said + second + (root / output).read_text())
    (root / "f").write_text("later\n")
    third = stet("run", cwd=root).stdout
    t("and a later edit is noticed", (root / output).read_text() == "later\n", third)


one = f'[nodes.a]\ncommand = "cat f > {{out}}; echo x >> {log}; sleep 0.3"\nproduces = "o/a"\n'
for edits in [1, 2, 3]:
    edited("an edited file", one, edits)
two = f'[nodes.z]\ncommand = "cat {{in}} > {{out}}"\nfiles = "f"\nproduces = "o/z"\n[nodes.a]\ncommand = "cat o/z > {{out}}; echo x >> {log}; sleep 0.3"\nproduces = "o/a"\n'
edited("what the output of another node is made of", two, 2)

# It is edited in the first run, and stet is killed in the second one, which has read it; then it is gone. What the second run made is no result of that.
project(f'[nodes.a]\ncommand = "echo x >> {log}; cat f > {{out}}; echo y >> {log}; sleep 0.5"\nproduces = "o/a"\n')
p = subprocess.Popen([STET, "run"], cwd=root, stdout=subprocess.PIPE)
for lines, last in [(2, False), (4, True)]:
    until = time.monotonic() + 20
    while len(log.read_text().split()) < lines and time.monotonic() < until:
        time.sleep(0.01)
    if not last:
        (root / "f").write_text("v1\n")
p.kill()
p.wait()
(root / "f").unlink()
r = stet("run", cwd=root)
t("nor is a command taken up that began when the file was left out", (root / "o/a").read_text() == "", r.stdout + r.stderr + (root / "o/a").read_text())

project(f'[nodes.a]\ncommand = "echo x >> {log}; sh tool.sh side > {{out}}"\nproduces = "o/a"\n')
(root / "tool.sh").write_text("echo same > $1; cat f\n")
first = stet("run", cwd=root)
second = stet("run", cwd=root)
t("a command that writes a file which its words name, the same each time, is done", first.returncode == 0 and "ran 0" in second.stdout,
  first.stdout + first.stderr + second.stdout)
t("after a few runs", len(log.read_text().split()) <= 4, log.read_text())
finish(None)
