#!/usr/bin/env python3
"""A node that reads the directory in which its own reader writes: after any edit the run ends. An output behind a link to a directory that another node is going to
make is inside the project from the start."""
import pathlib, shutil
from tap import finish, stet, t

top = pathlib.Path("p").absolute()


def begin(nodes):
    shutil.rmtree(top, ignore_errors=True)
    (top / "a").mkdir(parents=True)
    (top / "stet.toml").write_text('name = "p"\n' + nodes)
    stet("init", cwd=top)


begin('[nodes.r]\ncommand = "cat {in} /dev/null > {out}"\nfiles = "$w.out"\nproduces = "a/r.txt"\n'
      "[nodes.w]\ncommand = 'F=a; for x in f1 f2; do cat \"$F/$x.txt\" 2>/dev/null; done > {out}; true'\nproduces = \"out/w.txt\"\n")
first = stet("run", cwd=top)
t("the circle over a directory ends at first", first.returncode == 0, first.stdout + first.stderr)
for what in ("a file comes", "the output is edited", "both"):
    if what != "the output is edited":
        (top / "a/f1.txt").write_text(what + "\n")
    if what != "a file comes":
        (top / "a/r.txt").write_text("by hand\n")
    r = stet("run", cwd=top, timeout=120)
    right = (top / "a/f1.txt").read_text()
    t(f"{what}: the run ends, with the right outputs", r.returncode == 0 and (top / "a/r.txt").read_text() == right == (top / "out/w.txt").read_text(), r.stdout + r.stderr)
    r = stet("run", cwd=top)
    t(f"{what}: and nothing is left to do", r.stdout.startswith("ran 0,"), r.stdout + r.stderr)

for order in (0, 1):
    nodes = ['[nodes.a]\ncommand = "echo a > {out}"\nproduces = "lnk/n1"\n', '[nodes.b]\ncommand = "sleep 0.1; echo b > {out}"\nproduces = "gen/sub/n2"\n']
    begin("".join(nodes[::-1] if order else nodes))
    (top / "lnk").symlink_to("gen/sub")
    r, again = stet("run", cwd=top), stet("run", cwd=top)
    t("an output behind a link to a directory that is not there yet", r.returncode == 0 and (top / "gen/sub/n1").read_text() == "a\n" and again.stdout.startswith("ran 0,"),
      r.stdout + r.stderr + again.stdout)
begin('[nodes.a]\ncommand = "echo a > {out}"\nproduces = "lnk/n1"\n')
(top / "lnk").symlink_to("../nowhere")
r = stet("run", cwd=top)
t("behind a link that leads out of the project it is refused", r.returncode == 1 and "outside the project" in r.stdout + r.stderr and not (top / "../nowhere").exists(), r.stdout + r.stderr)
finish(None)
