#!/usr/bin/env python3
"""A run that was stopped or killed goes on where it was: its effects are not done again, its queue entry goes on with the same run, and what it keeps
as its argument and result is its own."""
import json, os, pathlib, signal, subprocess, time
from tap import STET, answer, finish, stet, t

base = pathlib.Path(".").absolute()
out, project = base / "out", base / "project"
out.mkdir()
project.mkdir()
os.environ["STET_HOME"] = str(base / "home")
stet("init", cwd=project)


def lines(name="log"):
    return (out / name).read_text().split("\n")[:-1] if (out / name).exists() else []


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def pattern(name):
    return f"""name = "{name}"
[argument]
n = 0
[nodes.first]
kind = "effect"
command = "echo first {{n}} >> {out}/log; echo {{n}} > {{out}}"
produces = "{name}.first"
inputs = {{ n = "$argument/n" }}
[nodes.plain]
kind = "effect"
command = "echo plain {{n}} >> {out}/log"
inputs = {{ n = "$argument/n", after = "$first/out" }}
[nodes.slow]
command = "echo slow {{n}} >> {out}/log; while [ -e {out}/wait ]; do sleep 0.02; done; echo {{n}}"
inputs = {{ n = "$argument/n", after = "$plain" }}
cache = false
stdout = "json"
after = ["plain"]
[result]
n = "$slow/stdout"
"""


def runs():
    return sorted(p.name for p in (project / ".stet/runs").iterdir() if not p.name.startswith("~"))


def state(run):
    return json.loads((project / ".stet/runs" / run / "state.json").read_text())


def worker():
    return subprocess.Popen([STET, "queue", "work"], cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            start_new_session=True)


(project / "p.toml").write_text(pattern("p"))
stet("run", "p.toml", cwd=project)
for how, number, between in ((signal.SIGTERM, 5, False), (signal.SIGKILL, 6, False), (signal.SIGTERM, 7, True), (signal.SIGKILL, 8, True)):
    (out / "log").write_text("")
    (out / "wait").touch()
    before = set(runs())
    entry = answer("queue", "add", "--app", "p.toml", "--input", f"n={number}", cwd=project)["id"]
    w = worker()
    t(f"{how.name}: the slow command began", until(lambda: f"slow {number}" in lines()), lines())
    os.kill(w.pid, how)
    w.wait(60)
    (out / "wait").unlink()
    run = answer("queue", "show", entry, cwd=project)["runId"]
    t(f"{how.name}: the entry names its run", run and set(runs()) - before == {run}, (run, set(runs()) - before))
    if between:
        r = stet("run", "p.toml", cwd=project)
        t("another run of the piece has its own argument", "first 0" in lines() and r.returncode == 0, r.stdout + r.stderr + str(lines()))
    r = stet("queue", "work", cwd=project)
    e = answer("queue", "show", entry, cwd=project)
    t(f"{how.name}: the entry is done by the same run", e["status"] == "done" and e["runId"] == run and len(set(runs()) - before) == 1 + between,
      (r.stdout + r.stderr, e, runs()))
    did = {k: lines().count(f"{k} {number}") for k in ("first", "plain")}
    # What the first effect writes is that of the other run by then, so it is done again; the second writes nothing.
    t(f"{how.name}: effects were done {'as often as their files need' if between else 'once'}", did == {"first": 1 + between, "plain": 1}, lines())
    said = {task["id"]: task["attempt"] for task in state(run)["tasks"]}
    t(f"{how.name}: the record says so", said["first"] == did["first"] and said["plain"] == 1 and state(run).get("result") == {"n": number}, state(run))
    t("all its tasks are completed", {x["status"] for x in state(run)["tasks"]} == {"completed"}, state(run)["tasks"])

# Killed before the run was made, after the entry had its name.
entry = answer("queue", "add", "--app", "p.toml", "--input", "n=9", cwd=project)["id"]
path = base / "home/registry/queue.json"
queue = json.loads(path.read_text())
for e in queue["entries"]:
    if e["id"] == entry:
        e["runId"] = "20260101T000000Z-p-00000000"
path.write_text(json.dumps(queue))
stet("queue", "work", cwd=project)
e = answer("queue", "show", entry, cwd=project)
t("an entry whose run was never made begins one", e["status"] == "done" and e["runId"] in runs(), e)

# Somebody resumes the run by hand before the worker comes.
(out / "wait").touch()
entry = answer("queue", "add", "--app", "p.toml", "--input", "n=10", cwd=project)["id"]
w = worker()
until(lambda: "slow 10" in lines())
os.kill(w.pid, signal.SIGTERM)
w.wait(60)
(out / "wait").unlink()
run = answer("queue", "show", entry, cwd=project)["runId"]
r = answer("runs", "resume", run, "--drive", cwd=project)
t("it is resumed by hand", r.get("drive", {}).get("status") == "completed", r)
stet("queue", "work", cwd=project)
e = answer("queue", "show", entry, cwd=project)
t("the entry of a run that was finished by hand is done", e["status"] == "done" and e["runId"] == run, e)

# Results: not of another argument.
(project / "two.toml").write_text(f"""name = "two"
[argument]
n = 1
[nodes.a]
command = "echo {{n}}"
inputs = {{ n = "$argument/n" }}
stdout = "json"
[nodes.b]
command = "[ ! -e {out}/bad ] && echo {{n}}"
inputs = {{ n = "$argument/n" }}
stdout = "json"
[result]
a = "$a/stdout"
b = "$b/stdout"
""")
stet("run", "two.toml", cwd=project)
r = answer("run", "two.toml", "--demand", "a", "--set", "n=2", "--record", cwd=project)
again = answer("runs", "rerun", r["runId"], "--input", "n=3", "--drive", cwd=project)
s = state(again["newRunId"])
t("a rerun of a part keeps that part as its result", "result" not in s and s["summary"].get("resultParts") == {"a": 3}, s)
(out / "bad").touch()
entry = answer("queue", "add", "--app", "two.toml", "--input", "n=4", cwd=project)["id"]
stet("queue", "work", cwd=project)
e = answer("queue", "show", entry, cwd=project)
t("a failed run keeps no result", e["status"] == "failed" and "result" not in state(e["runId"]), state(e["runId"]))
(out / "bad").unlink()

# An argument of any size.


def large(text):
    return f"""name = "large"
[argument]
n = 1
text = "{text}"
[nodes.a]
command = "wc -c"
stdin = true
inputs = {{ n = "$argument/n", text = "$argument/text" }}
stdout = "text"
[result]
a = "$a/stdout"
"""


(project / "large.toml").write_text(large("x" * (5 << 20)))
r = answer("run", "large.toml", "--set", "n=2", "--record", cwd=project)
run = r.get("runId")
s = state(run)
kept = project / ".stet/runs" / run / "argument.json"
t("a large argument lies beside the state", "argument" not in s and s["argumentFile"]["bytes"] == kept.stat().st_size > 5 << 20, r)
(project / "large.toml").write_text(large("short"))
stet("run", "large.toml", cwd=project)
again = answer("runs", "rerun", run, "--drive", cwd=project)
s = state(again["newRunId"])
t("a rerun has the argument of the run that it repeats", s.get("argumentFile", {}).get("bytes") == kept.stat().st_size and int(s["result"]["a"]) > 5 << 20,
  {k: v for k, v in s.items() if k != "tasks"})
stet("runs", "export", run, "-o", str(base / "run.bundle"), cwd=project)
(project / ".stet/runs" / run / "argument.json").write_text('"other"')
r = stet("runs", "rerun", run, "--drive", cwd=project)
t("an argument that is not the run's is refused", r.returncode == 6 and "argument" in r.stderr, r.stdout + r.stderr)
r = stet("runs", "import", str(base / "run.bundle"), "--verify-only", cwd=project)
t("the argument travels with the run", r.returncode == 0 and b"argument.json" in (base / "run.bundle").read_bytes()[:4096], r.stdout + r.stderr)
finish(project)
