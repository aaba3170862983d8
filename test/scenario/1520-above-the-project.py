#!/usr/bin/env python3
"""Calls that could read the project through a directory above it, its home directory, or a path in a script or an argument, run each time; others are kept."""
import json, os, pathlib, threading, time
from tap import answer, finish, stet, t

TOP = pathlib.Path.cwd().resolve()
HERE = TOP / "home/project"
(TOP / "home/data").mkdir(parents=True)
HERE.mkdir()
(TOP / "home/data/x").write_text("x\n")
os.environ |= {"HOME": str(TOP / "home"), "STET_JOBS": str(TOP / "jobs")}
os.chdir(HERE)
stet("init")
pathlib.Path("f").write_text("1\n")
pathlib.Path("up.sh").write_text("cd\ncat project/f\n")
pathlib.Path("full.py").write_text(f"print(open('{HERE}/f').read())\n")
pathlib.Path("home.py").write_text("import pathlib\nprint((pathlib.Path.home() / 'project' / 'f').read_text())\n")
pathlib.Path("fine.py").write_text("import os\n# a / b, /* c */\nprint('/'.join(['x', '..']), ~5, f'/{1}', open(os.path.expanduser('~/data/x')).read())\n")
pathlib.Path("venv/bin").mkdir(parents=True)
pathlib.Path("venv/pyvenv.cfg").write_text("")
pathlib.Path("tool.sh").write_text(f"PY={HERE}/venv/bin/python\necho $PY\n")

SH = ["--with", "stdout=text", "--sh"]
OPEN = [[*SH, "cat ~/p*/f"], [*SH, "cd ~ && cat project/f"], [*SH, "cd; cat project/f"], [*SH, f"tar -C {TOP} -cO home/project/f"], [*SH, "cat `echo ~`/project/f"],
        [*SH, f"d={TOP}; cat $d/home/project/f"], [*SH, "bash -c 'cat ~/p*/f'"], [*SH, f"cat {'../' * 15}{str(HERE)[1:]}/f"], [*SH, f"cat {TOP}/*/project/f"], [*SH, "find / -maxdepth 0"],
        [*SH, "tr -d '[]' | xargs cat", f'"{HERE}/f"'], ["--with", "stdout=text", "--", "sh", "up.sh"], ["--with", "stdout=text", "--", "python3", "full.py"],
        ["--with", "stdout=text", "--", "python3", "home.py"], ["--with", "stdout=text", "--", "python3", "-c", "import os; print(open(os.environ['HOME'] + '/project/f').read())"]]
KEPT = [[*SH, "cat ~/data/x f"], [*SH, 'cat "$HOME/data/x"'], [*SH, "sed -n '/^1.*/p' f"], [*SH, "tr / _ < f"], [*SH, "wc -c", '["/", "/x", "at HOME"]'], [*SH, "cat ~/project/f"],
        ["--with", "stdout=text", "--", "fine.py"], ["--with", "stdout=text", "--", "tool.sh"], ["--with", "stdout=text", "--with", "files=up.sh", "--", "sh", "up.sh"],
        ["--with", "env=HOME=/nonexistent", *SH, "echo ~"]]


def call(*words):
    r = stet("--json", "call", "run", *words)
    return json.loads(r.stdout) if r.stdout else {"said": r.stderr}


first = [call(*words) for words in OPEN]
pathlib.Path("f").write_text("2\n")
wrong = [(words, a, b) for words, a in zip(OPEN, first) for b in [call(*words)] if b.get("cached") or (a.get("value") == b.get("value") and "maxdepth" not in words[-1])]
t(f"{len(OPEN)} forms see an edit", not wrong, wrong[:3])
r = stet("call", "run", *OPEN[0])
t("and say why they run again", "~/p*/f leads to the project, or to a directory above it" in r.stderr, r.stderr)
for words in KEPT:
    stet("call", "run", *words)
wrong = [(words, a) for words in KEPT for a in [call(*words)] if not a.get("cached")]
t(f"{len(KEPT)} other forms are kept", not wrong, wrong[:3])

pathlib.Path("stet.toml").write_text('name = "p"\n[nodes.n]\ncall = "dml+exec://stet-exec-local/?command=cat+~/p*/f&stdin=null&stdout=text"\n[result]\nn = "$n"\n')
r = stet("run")
t("in a pattern such a call is an error that says what helps", r.returncode == 1 and "~/p*/f leads to the project" in r.stdout + r.stderr and "files=" in r.stdout + r.stderr, r.stdout + r.stderr)
pathlib.Path("stet.toml").unlink()
stet("piece", "rm", "p", "--yes")

# In place: changed before the job started and changed back after it had ended.
pathlib.Path("g").write_text("old\n")
URI = "dml+exec://stet-exec-local/?command=cat+g%3B+echo+x+%3E%3E+../runs&stdin=null&stdout=text&in-place=true&files=g"
blocker = threading.Thread(target=stet, args=("call", "run", "dml+exec://stet-exec-local/?command=touch+../begun%3B+while+!+test+-e+../go%3B+do+sleep+.05%3B+done&stdin=null&in-place=true&files=f"))
blocker.start()
while not (TOP / "home/begun").exists():
    time.sleep(0.02)
detached = answer("call", "run", URI, "--detach")  # its files are those of the call; it waits for the one in front of it
pathlib.Path("g").write_text("new\n")
(TOP / "home/go").touch()
blocker.join()
while not (TOP / "home/runs").exists():
    time.sleep(0.02)
pathlib.Path("g").write_text("old\n")
a = answer("call", "wait", detached["id"])
t("a file that was another one in between does not give a result", a.get("value") != "new\n", a)

r = stet("call", "run", "-q", "--sh", "echo 5")
t("-q prints the result", r.stdout == "5\n" and r.stderr == "", r)
r = stet("call", "run", "--sh", "echo what >&2; exit 3")
t("a failure is on standard error", r.returncode == 1 and r.stdout == "" and "what" in r.stderr, r)

# The second try comes after the worker has been idle for longer than it was told to wait.
with open(".stet/config.toml", "a") as f:
    f.write('\n[calls]\nfirst = "900ms"\n')
other = f"file://{TOP}/shared.db"
caller = threading.Thread(target=lambda: results.append(answer("call", "run", "--remote", other, "--sh", f"echo x >> {TOP}/data.n; test $(wc -l < {TOP}/data.n) -gt 1 || exit 75; echo 7")))
results = []
caller.start()
while not (TOP / "shared.db").exists():
    time.sleep(0.02)
r = stet("worker", "--remote", other, "--idle", "300ms")
caller.join(timeout=5)
if caller.is_alive():  # the worker has left it
    t("a worker waits for a call that is tried again", False, r.stdout)
    stet("worker", "--remote", other, "--idle", "5s")
    caller.join()
else:
    t("a worker waits for a call that is tried again", results[0].get("value") == 7, results)
finish()
