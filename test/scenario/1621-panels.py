#!/usr/bin/env python3
"""Lists of runs fit 80 columns, newest first, whatever runs are called; each run can be named by what the list shows; DONE counts actions; and colours are
for terminals alone."""
import fcntl, json, os, pathlib, pty, random, re, struct, sys, termios, unicodedata

sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/scenario")
from tap import STET, answer, finish, stet, t  # noqa: E402

rng = random.Random(1621)


def on_terminal(*args, **extra):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ.update({"TERM": "xterm", **extra})
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execv(STET, [STET, *args])
    out = b""
    while True:
        try:
            out += os.read(fd, 65536)
        except OSError:
            break
    os.waitpid(pid, 0)
    return out.decode().replace("\r\n", "\n")


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in re.sub(r"\x1b\[[0-9;]*m", "", line))


def make(i):
    """A run as any program may write it; the oracle counts its tasks here."""
    app = rng.choice(["work", "a-rather-long-name-of-an-application", "été", "x" * 40])
    kind = rng.randrange(4)
    run = [f"202611{i % 28 + 1:02}T10{i % 60:02}00Z-{re.sub('[^a-z]', '', app)[:40] or 'x'}-{rng.getrandbits(32):08x}", f"r-{i}", f"audit.{i}:" + "y" * 60 + f"{i:02}", f"run_{i}"][kind]
    tasks = [{"id": f"t{k}", "status": rng.choice(["completed", "completed", "failed", "skipped", "pending"])} for k in range(rng.randrange(5))]
    done, total = sum(x["status"] == "completed" for x in tasks), len(tasks)
    for x in tasks:
        if x["status"] == "failed":
            x["error"] = {"message": "m", "details": {"exit": 3, "stderr": "first\n" + "reason \u202e" * rng.randrange(1, 30) + "\n"}}
    if rng.random() < 0.5:
        tasks.append({"id": "settle", "kind": "settle", "status": "completed"})
    at = f"2026-11-{i % 28 + 1:02}T10:{i % 60:02}:00Z"
    state = {"schemaVersion": 2, "id": run, "createdAt": at, "updatedAt": at, "loopStage": "done", "app": {"id": app}, "workflowId": app, "tasks": tasks,
             "feedback": [], "commits": [], "summary": {}}
    path = pathlib.Path(".stet/runs", run)
    path.mkdir(parents=True)
    (path / "state.json").write_text(json.dumps(state))
    return run, at, done, total


stet("init")
runs = dict((r[0], r) for r in (make(i) for i in range(40)))
shown = on_terminal("runs", "list", "--limit", "100")
t("every line fits", max(map(columns, shown.splitlines())) <= 80, [line for line in shown.splitlines() if columns(line) > 80])
t("in colours, on a terminal", "\x1b[3" in shown, shown)
t("not with NO_COLOR", "\x1b" not in on_terminal("runs", "list", NO_COLOR="1"), "")
plain = stet("runs", "list", "--limit", "100").stdout
t("nor elsewhere", "\x1b" not in plain and "\u202e" not in plain, plain)
lines = plain.splitlines()[1:41]
order = sorted(runs.values(), key=lambda r: (r[1], r[0]), reverse=True)
bad = []
for line, (run, _, done, total) in zip(lines, order):
    brief = line.split()[0]
    if not run.endswith(brief) or f" {done}/{total} " not in line + " ":
        bad.append((line, run, done, total))
t("newest first, with what was done of what was to do", len(lines) == 40 and not bad, bad)
bad = []
for line, (run, *_) in zip(lines, order):
    got = answer("runs", "show", line.split()[0])
    if got.get("runId") != run:
        bad.append((line, got))
t("what the list shows names the run", not bad, str(bad)[:1000])
t("--json is oldest first, as ever", [r["runId"] for r in answer("runs", "list", "--limit", "100")["records"]] == [r[0] for r in reversed(order)])
twice = "20261115T100000Z-twice-abcd1234", "20261116T100000Z-twice-abcd1234"
for run in twice:
    pathlib.Path(".stet/runs", run).mkdir()
    pathlib.Path(".stet/runs", run, "state.json").write_text(json.dumps({"schemaVersion": 2, "id": run, "createdAt": "2026-01-01T00:00:00Z", "tasks": [],
        "updatedAt": "2026-01-01T00:00:00Z", "loopStage": "setup", "workflowId": "w", "feedback": [], "commits": [], "summary": {}}))
t("an ending that two runs have is refused", all(w in stet("runs", "show", "abcd1234").stderr for w in ("end with", "give more of the id")))
t("so is one that is too short", stet("runs", "show", "34").returncode == 3)
failed = next(r for r in order if any(x["status"] == "failed" for x in json.loads(pathlib.Path(".stet/runs", r[0], "state.json").read_text())["tasks"]))
one = stet("runs", "show", failed[0]).stdout
t("a failed task is shown with the last line that it printed", re.search(r"✗ t\d .*reason .*\(exit 3\)", one) and "\u202e" not in one, one)
t("history fits, too", max(map(columns, on_terminal("history").splitlines())) <= 80)
for i in range(3):
    stet("queue", "add", "--app", "a-rather-long-name-of-an-application", "--note", "note " * 30)
shown = on_terminal("queue", "list")
t("and the queue", max(map(columns, shown.splitlines())) <= 80, shown)
entry = shown.splitlines()[1].split()[0]
t("whose entries have short names", answer("queue", "show", entry).get("status") == "pending", entry)
finish(None)
