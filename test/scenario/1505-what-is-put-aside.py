#!/usr/bin/env python3
"""What reads an action that was put aside is not counted as up to date, in the line that a run prints, in --json, and by `status` alike."""
import pathlib
from tap import answer, finish, stet, t

top = pathlib.Path("p").absolute()
top.mkdir()
(top / "in").write_text("1\n")
(top / "stet.toml").write_text('name = "p"\n' + "".join(
    f'[nodes.{n}]\ncommand = "cat {{i}} > {{out}}"\nfiles = {{ i = "{i}" }}\nproduces = "{n}"\n' for n, i in (("a", "in"), ("b", "$a.out"), ("c", "$b.out"), ("other", "in"))))
stet("init", cwd=top)
none = {"STET_SUPERVISE": str(top / "nothing")}  # no command can be started
r = stet("run", "-j1", cwd=top, env=none)
t("nothing ran so far: all of it is left", "ran 0, up to date 0, failed 0, put aside 2, left 2 (2 wait for what was put aside)" in r.stdout, r.stdout + r.stderr)
stet("run", cwd=top)
(top / "in").write_text("2\n")
r = stet("run", "-j1", cwd=top, env=none)
t("what ran before waits, too", "ran 0, up to date 0, failed 0, put aside 2, left 2 (2 wait for what was put aside)" in r.stdout, r.stdout + r.stderr)
r = answer("run", "-j1", cwd=top, env=none)
t("the same in JSON", (r.get("stood"), r.get("aside"), r.get("left"), r.get("waiting")) == (0, 2, 2, 2), r)
r = stet("status", cwd=top)
t("and in status: nothing stands", r.stdout.splitlines()[1].split()[:2] == ["p", "0"], r.stdout)
r = stet("run", cwd=top)
t("with a supervisor all of it runs", r.returncode == 0 and "ran 4" in r.stdout and (top / "c").read_text() == "2\n", r.stdout + r.stderr)
finish(top)
