#!/usr/bin/env python3
"""`local` in .stet/config.toml that lies in the project: nothing in it is a file of the project, by whatever name. Patterns and directories leave it
out, a node that names a file of it is refused, and a database that is open is not opened as a file through a link either: closing it would drop
SQLite's locks."""
import os, pathlib
from tap import finish, stet, t

root = pathlib.Path("p").absolute()
root.mkdir()


def run(text, *words):
    (root / "stet.toml").write_text('name = "p"\n' + text)
    r = stet("run", *words, cwd=root)
    return r.returncode, r.stdout + r.stderr


stet("init", cwd=root)
with open(root / ".stet/config.toml", "a") as f:
    f.write('local = "state/db"\n')
(root / "state").mkdir()
(root / "state/mine.txt").write_text("mine\n")
(root / "a.txt").write_text("a\n")
os.symlink("state", root / "lnk")

everything = '[nodes.all]\nfiles = "**/*"\ncommand = "ls {in} > {out}"\nproduces = "o/all"\n'
everything += '[nodes.deep]\nfiles = ["lnk/*/*/*", "state/*/*/*", "state/*/*"]\ncommand = "echo {in} > {out}"\nproduces = "p/deep"\nafter = ["all"]\n'
everything = everything.replace('"**/*"', '["*.txt", "state/**/*"]')
status, said = run(everything)
t("databases are made there", status == 0 and (root / "state/db/spaces/main.db").exists(), said)
t("no pattern matches them", (root / "o/all").read_text() == "a.txt\nstate/mine.txt\n" and not (root / "p/deep").read_text().strip(),
  (root / "o/all").read_text() + (root / "p/deep").read_text())
status, said = run(everything)
t("and the next run has nothing to do", status == 0 and "ran 0" in said, said)

directory = '[nodes.tree]\nfiles = "state"\ncommand = "cat {in}/mine.txt > {out}"\nproduces = "o/tree"\n'
run(directory)
status, said = run(directory)
t("a directory does not count them", status == 0 and "ran 0" in said, said)

main = "state/db/spaces/main.db"
os.symlink(main, root / "by-link.txt")
os.link(root / main, root / "by-hard-link.txt")
os.link(root / (main + "-shm"), root / "shared.txt") if (root / (main + "-shm")).exists() else None
status, said = run(everything)
t("a pattern does not open a database through a link", "by-" not in (root / "o/all").read_text() and status == 0, said + (root / "o/all").read_text())
status, said = run(everything)
t("nor does that run again", status == 0 and "ran 0" in said, said)

for name in [main, "lnk/db/spaces/main.db", "by-link.txt", "by-hard-link.txt"]:
    status, said = run(f'[nodes.one]\nfiles = "{name}"\ncommand = "cksum {{in}} > {{out}}"\nproduces = "o/one"\n')
    t(f"as an input, {name} is refused", status != 0 and "belongs to stet" in said, said)
for name in ["state/db", "state/db/x", "lnk/db/x", "state"]:
    status, said = run(f'[nodes.one]\ncommand = "mkdir -p {{out}}"\nproduces = "{name}"\n')
    t(f"as an output, {name} is refused", status != 0 and ("belongs to stet" in said or "stet's own" in said), said)
t("all is still there", (root / main).exists() and (root / "state/mine.txt").exists())
for name in ["by-link.txt", "by-hard-link.txt", "shared.txt"]:
    (root / name).unlink(missing_ok=True)
r = stet("check", cwd=root)
t("stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)
finish(None)
