#!/usr/bin/env python3
"""The summary of a run tells what was restored; `after` is order only; commands are shown while they run, not while they wait; a command of a JavaScript
pattern can be an effect."""
import json, os, pathlib, pty, re, select, subprocess, time
from tap import STET, answer, finish, stet, t


def new(name):
    root = pathlib.Path(name).absolute()
    root.mkdir()
    stet("init", cwd=root)
    return root


# What was restored is told apart from what ran.
p = new("p")
for i in range(5):
    (p / f"{i}.in").write_text(f"{i}\n")
(p / "stet.toml").write_text("""name = "p"
[nodes.copy]
each = "*.in"
command = "cat {in} > {out}"
produces = "build/{in.stem}"
""")
stet("run", cwd=p)
for i in range(5):
    (p / f"{i}.in").write_text("other\n")
r = answer("run", cwd=p)
t("what runs is not restored", r.get("ran") == 5 and r.get("restored") == 0, r)
for i in range(4):
    (p / f"{i}.in").write_text(f"{i}\n")
(p / "4.in").write_text("new\n")
r = stet("run", cwd=p)
t("a summary tells what was restored", "ran 5 (4 restored), up to date 2, failed 0 in" in r.stdout, r.stdout + r.stderr)
t("the files are the earlier ones", [(p / f"build/{i}").read_text() for i in range(5)] == ["0\n", "1\n", "2\n", "3\n", "new\n"])
(p / "0.in").write_text("other\n")
r = answer("run", cwd=p)
t("and so does JSON", (r.get("ran"), r.get("restored"), r.get("stood"), r.get("failed")) == (1, 1, 6, 0), r)
record = json.loads((p / ".stet/runs" / r["runId"] / "state.json").read_text())
t("and the record of the run", record["summary"].get("restored") == 1, record["summary"])

# `after` is order only.
o = new("o")
(o / "a").write_text("1")
(o / "b").write_text("x")
(o / "stet.toml").write_text("""name = "o"
[nodes.first]
command = "cat {in} > {out}"
files = "a"
produces = "build/first"
[nodes.second]
command = "cat build/first > {out}; echo ran >> log"
files = "b"
scripts = false
produces = "build/second"
after = ["first"]
[nodes.tell]
command = "echo told >> told"
kind = "effect"
scripts = false
after = ["first"]
""")
t("a first run runs all of it in order", stet("run", cwd=o).returncode == 0 and (o / "build/second").read_text() == "1")
(o / "a").write_text("2")
r = answer("run", cwd=o)
t("a follower does not run because what it comes after has run", r.get("ran") == 1 and (o / "log").read_text() == "ran\n", r)
t("neither does an effect", (o / "told").read_text() == "told\n")
(o / "a").write_text("3")
(o / "b").write_text("y")
stet("run", cwd=o)
t("if both run, the follower comes second", (o / "build/second").read_text() == "3" and (o / "log").read_text() == "ran\nran\n")
(o / "stet.toml").write_text((o / "stet.toml").read_text().replace('"cat {in} > {out}"', '"cat {in} > {out}; false"'))
(o / "b").write_text("z")
r = stet("run", "-k", cwd=o)
t("it waits if that fails", r.returncode == 1 and "wait for what failed" in r.stdout and (o / "log").read_text() == "ran\nran\n", r.stdout)
(o / "stet.toml").write_text((o / "stet.toml").read_text().replace("; false", ""))
t("and goes on when it is mended", stet("run", cwd=o).returncode == 0 and (o / "log").read_text() == "ran\n" * 3)

# A command of a JavaScript pattern that is an effect.
j = new("j")
(j / "e.js").write_text("""export default pattern("e", () => {
    command("echo done >> done", {}, { kind: 'effect', id: 'tell' });
    return {};
});
""")
r = stet("run", "e.js", cwd=j)
t("command(..., { kind: 'effect' }) is an effect", r.returncode == 0 and (j / "done").read_text() == "done\n", r.stdout + r.stderr)
stet("run", "e.js", cwd=j)
t("which is done once", (j / "done").read_text() == "done\n")

# Six commands, two at a time: progress names those that run.
w = new("w")
nodes = "".join(f"""
[nodes.n{i}]
command = "while [ ! -e go{i} ]; do sleep 0.02; done; echo > {{out}}"
produces = "build/{i}"
scripts = false
""" for i in range(6))
(w / "stet.toml").write_text(f'name = "w"\n{nodes}')
master, slave = pty.openpty()
child = subprocess.Popen([STET, "run", "-j2"], cwd=w, stdin=slave, stdout=slave, stderr=slave, env=dict(os.environ, TERM="xterm", COLUMNS="200"))
os.close(slave)
text, shown, end = "", [], time.monotonic() + 120
while time.monotonic() < end:
    ready, _, _ = select.select([master], [], [], 0.05)
    try:
        part = os.read(master, 65536).decode("utf-8", "replace") if ready else ""
    except OSError:
        break
    text += part
    if ready and not part:
        break
    for names in re.findall(r" s(?:, about [^:]* left)?: ([^\r\n\x1b]*)", part):
        shown.append(names.strip())
    last = shown[-1] if shown else ""
    for i in range(6):  # each is let go once it was shown
        if re.search(rf"\bn{i}\b", last):
            (w / f"go{i}").write_text("")
    if child.poll() is not None and not ready:
        break
child.wait(timeout=60)
os.close(master)
t("the run ends: each command was shown when it ran", child.returncode == 0 and all((w / f"build/{i}").exists() for i in range(6)), text[-1500:])
t("never more than run at once", shown and all(len(re.findall(r"\bn\d\b", s)) <= 2 and "more" not in s for s in shown), [s for s in shown if "more" in s or s.count("n") > 2][:5])
for root in (p, j, w):
    t(f"stet check of {root.name}", stet("check", cwd=root).returncode == 0)
finish(o)
