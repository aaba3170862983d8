#!/usr/bin/env python3
"""`check --rerun --commands` runs commands again in a copy of the project. What follows from the files is the same, in every way to name them; a result that does
not is found, with the file that is to blame; one that differs each time is told apart. Nothing in the project changes, and nothing is left in the directory for temporary files."""
import hashlib, pathlib, stat
from tap import answer, finish, stet, t

top, temp = pathlib.Path("p").absolute(), pathlib.Path("temp").absolute()
(top / "data").mkdir(parents=True)
temp.mkdir()
env = {"TMPDIR": str(temp)}


def write(path, text):
    (top / path).parent.mkdir(parents=True, exist_ok=True)
    (top / path).write_text(text)


def project():
    """All that is in the project and is no note of a look at files."""
    return {str(p): (stat.S_IFMT(p.lstat().st_mode), p.lstat().st_mtime_ns, hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "")
            for p in sorted(top.rglob("*")) if "lock" not in p.name and not p.name.endswith(("-shm", "-wal")) and not (p.is_dir() and ".stet" in p.parts)}


def rerun(*words):
    before = project()
    r = answer("check", "--only", "memory", "--rerun", "all", "--commands", *words, cwd=top, env=env)
    after = project()
    t("nothing in the project changes", before == after, [k for k in before | after if before.get(k) != after.get(k)])
    t("and nothing is left of the copy", not list(temp.iterdir()), list(temp.iterdir()))
    return r.get("rerun", r)


(top / "in.txt").write_text("one\n")
(top / "link").symlink_to("data")
(top / "absolute").symlink_to(top / "data")
write("data/x", "x\n")
write("data/y", "y\n")
write("seen.h", "h\n")
write("hidden", "1\n")
write("here.txt", f"{top}\n")
write("count.sh", "wc -l < in.txt\n")
write("stet.toml", '''name = "p"
[argument]
n = 2
[nodes.plain]
command = "cat {in} > {out}"
files = "in.txt"
produces = "out/plain"
[nodes.second]
command = "cat {in} {in} > {out}"
files = "$plain.out"
produces = "out/second"
[nodes.all]
command = "cat {in} > {out}; echo {in} >> {out}"
files = "data/*"
produces = "out/all"
[nodes.dir]
command = "mkdir {out}; cp link/x {out}/x; ln -s x {out}/l"
produces = "out/dir"
[nodes.each]
each = "data/*"
command = "cat {in} > {out}"
produces = "out/each/{in.name}"
[nodes.dep]
command = "cat seen.h > {out}; echo out/dep: seen.h > dep"
depfile = "dep"
scripts = false
produces = "out/dep"
[nodes.text]
command = "sh count.sh"
files = "in.txt"
stdout = "text"
[nodes.given]
command = "cat > {out}"
inputs = { n = "$argument/n" }
stdin = true
produces = "out/given"
[nodes.below]
command = "cat x > ../out/below"
cwd = "data"
produces = "out/below"
[nodes.list]
command = "cat $(cat {i@list}) > {out}"
files = { i = "data/*" }
produces = "out/list"
[nodes.note]
kind = "effect"
command = "echo done >> effects"
files = { i = "$plain.out" }
scripts = false
''')
stet("init", cwd=top)
r = stet("run", cwd=top)
t("a project with commands of many kinds", r.returncode == 0, r.stdout + r.stderr)
r = rerun()
t("each makes what is stored", r.get("differ") == 0 and r.get("compared") == 13 and "varying" not in r, r)
t("an effect is not done again", r.get("leftOut") == 1 and (top / "effects").read_text() == "done\n", r)
r = stet("check", "--rerun", "all", cwd=top)
t("without the flag they are left out", "left out (commands, calls, effects)" in r.stdout, r.stdout)
r = stet("check", "--commands", cwd=top)
t("the flag alone is refused", r.returncode == 2 and "only for --rerun" in r.stderr, r.stderr)

write("stet.toml", (top / "stet.toml").read_text() + '''[nodes.secret]
command = "python3 -c 'print(open(\\"hid\\" + \\"den\\").read())' > {out}"
produces = "out/secret"
[nodes.after]
command = "cat {in} > {out}"
files = "$secret.out"
produces = "out/after"
[nodes.random]
command = "head -c 20 /dev/urandom | od -x > {out}"
produces = "out/random"
[nodes.placed]
command = "pwd > {out}"
produces = "out/placed"
[nodes.named]
command = "cat %s/in.txt > {out}"
produces = "out/named"
[nodes.told]
command = "cat {in} > {out}; cp in.txt $(cat {in})/out/told.2"
files = "here.txt"
produces = { out = "out/told", two = "out/told.2" }
[nodes.linked]
command = "cat absolute/x > {out}"
produces = "out/linked"
''' % top)
r = stet("run", cwd=top)
t("more of them", r.returncode == 0, r.stdout + r.stderr)
r = rerun()
t("what varies is told apart, and is no difference", [v["node"] for v in r.get("varying", [])] == ["random"] and r.get("differ") == 0, r)
t("what depends on its place or names it is left out", r.get("leftOut") == 4 and r.get("compared") == 17, r)
write("hidden", "2\n")  # nothing tells of it
t("nobody notices an undeclared file", stet("run", cwd=top).stdout.startswith("ran 0,"))
for seed in ((), ("--seed", "5")):
    r = rerun(*seed)
    wrong = {w["node"]: [d["cell"] for d in w["differences"]] for w in r.get("wrong", [])}
    t("but its reader is found", list(wrong) == ["secret"] and "file:out/secret" in wrong["secret"], r)
r = stet("check", "--only", "memory", "--rerun", "all", "--commands", cwd=top)
t("the exit status and the text say so", r.returncode == 1 and "p/secret" in r.stdout and "p/random: not reproducible" in r.stdout and "some commands" in r.stdout, r.stdout)
write("hidden", "1\n")
(top / "in.txt").unlink()
r = rerun()
t("what is outdated is not compared", r.get("differ") == 0 and r.get("outdated", 0) >= 4, r)
finish(None)
