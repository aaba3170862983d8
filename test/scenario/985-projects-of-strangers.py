#!/usr/bin/env python3
"""A project that somebody else made does not lead stet out of its own directory: links in .stet and settings that name another place are refused until
this user trusts them on this machine; what is swept carries stet's own names; `.git` and `.stet` are not restored; SQL that lies in a database does
not run."""
import json, os, pathlib, shutil, sqlite3, subprocess, time
from tap import finish, stet, t

base = pathlib.Path(".").absolute()
victim = base / "victim"


def fresh_victim():
    shutil.rmtree(victim, ignore_errors=True)
    (victim / "temp/deep").mkdir(parents=True)
    for name in ["a", "temp/b", "temp/deep/c", "put.1.2.x", "temp/put.old"]:
        (victim / name).write_text(name)
    long_ago = time.time() - 10 * 86400
    for p in [*victim.rglob("*")]:
        os.utime(p, (long_ago, long_ago))
    return seen()


def seen():
    return {str(p.relative_to(victim)): p.read_bytes() if p.is_file() else None for p in sorted(victim.rglob("*"))}


def project(config="", used=True):
    root = base / "p"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    stet("init", cwd=root)
    if used:
        (root / "stet.toml").write_text('name = "p"\n[nodes.one]\ncommand = "echo 1 > {out}"\nproduces = "out"\n')
        stet("run", cwd=root)
        stet("call", "run", "dml+exec://stet-exec-local/true", cwd=root)
    (root / ".stet/config.toml").write_text("version = 1\n" + config)
    return root


def replace_by_link(root, name, target):
    path = root / ".stet" / name
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(target, path)


commands = [["gc"], ["status"], ["check"], ["run"], ["run", "-n"], ["runs", "list"], ["persist", "list"], ["why", "one"], ["set", "x", "1"], ["get", "x"],
            ["call", "list"], ["action", "list"], ["doctor"], ["file", "list"]]
links = [".", "local", "persist", "runs", "config.toml", ".gitignore"]
root = project()
links += sorted({str(p.relative_to(root / ".stet")) for top in ("local", "local/spaces", "persist") for p in (root / ".stet" / top).iterdir()})
for name in links:
    before = fresh_victim()
    root = project()
    if name == ".":
        (root / ".stet").rename(base / "elsewhere") if not (base / "elsewhere").exists() else shutil.rmtree(root / ".stet")
        os.symlink(base / "elsewhere", root / ".stet")
    else:
        was = root / ".stet" / name
        target = victim if was.is_dir() else victim / "a"
        if name == "config.toml":
            (victim / "a").write_text("version = 1\n")
            before = seen()
        replace_by_link(root, name, target)
    said = [(c, stet(*c, cwd=root)) for c in commands]
    wrong = [(c, r.returncode, r.stdout, r.stderr) for c, r in said if c != ["doctor"] and (r.returncode != 9 or "stet trust" not in r.stderr)]
    t(f".stet/{name} is a link: every command refuses, and names the way out", not wrong, wrong)
    t(f".stet/{name} is a link: nothing there was changed", seen() == before)

for setting in [f'local = "{victim}"', 'local = "../victim"', f'[persist.defaults]\ndir_path = "{victim}"', '[persist.defaults]\ndir_path = "../../victim"',
                f'[calls]\nremote = "file://{victim}/a"']:
    before = fresh_victim()
    root = project(setting + "\n")
    said = [(c, stet(*c, cwd=root)) for c in commands]
    wrong = [(c, r.returncode, r.stdout, r.stderr) for c, r in said if c != ["doctor"] and (r.returncode != 9 or "stet trust" not in r.stderr)]
    t(f"{setting!r}: every command refuses", not wrong, wrong)
    t(f"{setting!r}: nothing there was changed", seen() == before)

before = fresh_victim()
root = project(f'local = "{victim}"\n')
r = stet("trust", "--show", "--json", cwd=root)
t("trust --show says what it reaches", json.loads(r.stdout)["trusted"] is False and json.loads(r.stdout)["reaches"][0]["where"] == str(victim), r.stdout)
t("and allows nothing", stet("status", cwd=root).returncode == 9)
r = stet("trust", cwd=root)
t("trust allows it", r.returncode == 0 and str(victim) in r.stdout and stet("status", cwd=root).returncode == 0, r.stdout + r.stderr)
r = stet("run", cwd=root)
t("then it works", r.returncode == 0 and (victim / "spaces/main.db").exists(), r.stdout + r.stderr)
t("gc deletes nothing there that is not stet's", stet("gc", cwd=root).returncode == 0 and before.items() <= seen().items(), seen())
(root / ".stet/config.toml").write_text(f'version = 1\nlocal = "{victim}/temp"\n')
t("another place is asked for again", stet("status", cwd=root).returncode == 9)
(root / ".stet/config.toml").write_text(f'version = 1\nlocal = "{victim}"\n')
t("the first one still holds", stet("status", cwd=root).returncode == 0)
copy = base / "copy"
shutil.copytree(root, copy, symlinks=True)
t("a copy elsewhere is another project", stet("status", cwd=copy).returncode == 9)
t("revoked", stet("trust", "--revoke", cwd=root).returncode == 0 and stet("status", cwd=root).returncode == 9)
r = stet("trust", cwd=project())
t("an ordinary project needs no trust", r.returncode == 0 and "nothing to trust" in r.stdout, r.stdout + r.stderr)
r = stet("trust", cwd=base)
t("outside of a project", r.returncode == 3, r.stdout + r.stderr)

# A directory of the project's own, moved within it, is not asked for; a link in it is.
root = project('local = "state"\n')
t("`local` inside the project needs no trust", stet("run", cwd=root).returncode == 0 and (root / "state/spaces").is_dir())
before = fresh_victim()
shutil.rmtree(root / "state/temp", ignore_errors=True)
os.symlink(victim, root / "state/temp")
t("a link in it does", stet("gc", cwd=root).returncode == 9 and seen() == before)

# Old files that are not stet's in its directory for temporary files stay; its own go.
root = project()
temp = root / ".stet/local/temp"
temp.mkdir(exist_ok=True)
for name in ["notes.txt", "restore.999999999.5.0123456789abcdef"]:
    (temp / name).write_text("x")
    os.utime(temp / name, (1, 1))
stet("gc", cwd=root)
t("gc sweeps stet's own temporary files alone", sorted(p.name for p in temp.iterdir()) == ["notes.txt"], [*temp.iterdir()])

# An entry whose directory has .git or .stet in it.
for name in [b".git", b".stet", b".GIT"]:
    root = project()
    made = name.replace(b".", b"_").decode()
    (root / "stet.toml").write_text('name = "p"\n[nodes.d]\ncommand = "echo ran >> log; mkdir -p d/%s; echo evil > d/%s/config"\nproduces = "d/"\n' % (made, made))
    stet("run", cwd=root)
    objects = [p for p in (root / ".stet/persist").rglob("*") if p.is_file() and p.read_bytes().startswith(b"stet-directory 1\n")]
    for o in objects:
        o.chmod(0o644)
        o.write_bytes(o.read_bytes().replace(made.encode(), name))
    with open(root / ".stet/config.toml", "a") as f:  # so that the tampered bytes are taken for what they should be
        f.write('\n[persist.defaults]\nverify = "size"\n')
    shutil.rmtree(root / "d")
    r = stet("run", cwd=root)
    t(f"{name.decode()} is not restored", len(objects) == 1 and r.returncode == 0 and (root / "d").is_dir() and not (root / "d" / name.decode()).exists()
      and (root / "log").read_text() == "ran\nran\n", r.stdout + r.stderr + (root / "log").read_text())

# SQL in the database.
for sql in ["CREATE TRIGGER evil AFTER INSERT ON commits BEGIN DELETE FROM head; END",
            "CREATE VIEW evil AS SELECT 1", "ALTER TABLE commits RENAME TO c2; CREATE VIEW commits AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r)"
            " SELECT x AS seq FROM r"]:
    root = project()
    db = sqlite3.connect(root / ".stet/local/spaces/main.db")
    db.executescript(sql)
    db.close()
    for c in [["status"], ["set", "x", "1"], ["get", "x"], ["run"]]:
        try:
            r = stet(*c, cwd=root, timeout=60)
            t(f"{sql[:24]}: {c[0]} refuses", r.returncode in (2, 6) and "did not make" in r.stderr, (r.returncode, r.stdout, r.stderr))
        except subprocess.TimeoutExpired:
            t(f"{sql[:24]}: {c[0]} refuses", False, "it does not end")

r = stet("check", cwd=project())
t("stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)
finish()
