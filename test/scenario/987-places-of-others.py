#!/usr/bin/env python3
"""What a cloned project says of places is not followed: a trusted link that leads elsewhere later is asked for again, a rerun takes the pattern of the
project that it runs in, and a pattern is not written over files of stet's own."""
import json, os, pathlib, shutil
from tap import finish, stet, t

base = pathlib.Path(".").absolute()
root, one, two = base / "p", base / "one", base / "two"
for d in (root, one, two):
    d.mkdir()
stet("init", cwd=root)
os.symlink(one, root / "sub")
with open(root / ".stet/config.toml", "a") as f:
    f.write('local = "sub"\n')
r = stet("trust", "--json", cwd=root)
t("what is trusted is the real place", json.loads(r.stdout)["reaches"][0]["where"] == str(one), r.stdout + r.stderr)
t("it works", stet("set", "x", "1", cwd=root).returncode == 0 and (one / "spaces/main.db").exists())
(root / "sub").unlink()
os.symlink(two, root / "sub")
r = stet("set", "x", "2", cwd=root)
t("the same link to another place is asked for again", r.returncode == 9 and not list(two.iterdir()), r.stdout + r.stderr)

first, clone = base / "first", base / "clone"
first.mkdir()
stet("init", cwd=first)
(first / "stet.toml").write_text('name = "p"\n[argument]\nn = 1\n[nodes.a]\ncommand = "echo first > {out}"\nproduces = "out"\n')
r = stet("run", "--record", cwd=first)
run = next((first / ".stet/runs").iterdir()).name
shutil.copytree(first, clone, ignore=shutil.ignore_patterns("local", "out"))
(clone / "stet.toml").write_text((first / "stet.toml").read_text().replace("first", "clone"))
r = stet("runs", "rerun", run, "--repo", str(clone), "--input", "n=2", "--drive", cwd=clone)
made = (clone / "out").read_text() if (clone / "out").exists() else None
t("a rerun in a clone runs the clone's pattern, or nothing", made in ("clone\n", None), r.stdout + r.stderr + str(made))

good = '{"pattern": 1, "name": "q", "nodes": []}'
for name in (".stet/config.toml", f".stet/runs/{run}/state.json"):
    before = (first / name).read_bytes()
    r = stet("pattern", "write", name, "--text", good, cwd=first)
    t(f"{name} is no place for a pattern", r.returncode == 2 and (first / name).read_bytes() == before, r.stdout + r.stderr)
r = stet("check", cwd=first)
t("stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)
finish()
