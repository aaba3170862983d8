#!/usr/bin/env python3
"""The output of jobs, kept from their start on, and the progress that they report; of jobs here and of a worker's."""
import json, os, pathlib, subprocess, time
from tap import STET, answer, finish, stet, t

HERE = pathlib.Path.cwd().resolve()
GO = HERE / "go"  # outside of the project: whoever names a path in it runs again
pathlib.Path("project").mkdir()
os.chdir("project")
stet("init")


def until(what, seconds=60):
    end = time.monotonic() + seconds
    while not (got := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return got


def run(line, *words, **more):
    r = stet("--json", "call", "run", *words, "--sh", line, **more)
    return json.loads(r.stdout) if r.stdout else {"said": r.stderr}


line = f"echo first; echo wrong >&2; echo 3/10 epoch >&$STET_PROGRESS_FD; while ! test -e {GO}; do sleep .05; done; printf last; exec >&-; echo end >&2"
a = run(line, "--with", "stdout=text", "--detach", "--label", "night", "--label", "gpu")
id = a["id"]
t("what a job writes is there while it runs", until(lambda: answer("call", "logs", id).get("stderr") == "wrong\n") and answer("call", "logs", id)["stdout"] == "first\n" and not answer("call", "logs", id)["ended"], answer("call", "logs", id))
p = until(lambda: answer("call", "show", id).get("progress"))
t("with its progress, and when it said so", p and p["done"] == 3 and p["total"] == 10 and p["note"] == "epoch" and p["beat"] > "2", p)
r = stet("call", "list", "--state", "live")
t("which is in the list", "3/10 epoch" in r.stdout, r.stdout)
follower = subprocess.Popen([STET, "call", "logs", "-f", id], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
t("a follower gets the first line at once", follower.stdout.readline() == "first\n")
GO.touch()
rest = follower.stdout.read()  # communicate() would lose what readline() has buffered
follower.wait(60)
t("and the rest until the end, though nobody asks for the call", follower.returncode == 0 and sorted(rest.split()) == ["end", "last", "wrong"], rest)
t("the result is as without all that", answer("call", "wait", id)["value"] == "first\nlast")
r = stet("call", "logs", id, "--stream", "stderr")
t("afterwards the output is kept", r.stdout == "wrong\nend\n", r.stdout + r.stderr)
t("a label finds the call", [c["id"] for c in answer("call", "list", "--label", "gpu")["calls"]] == [id] and answer("call", "list", "--label", "none")["calls"] == [])
again = run(line, "--with", "stdout=text", "--label", "other")
t("and is no part of it", again.get("cached") is True, again)

b = run("echo x >&2; exit 3", "--with", "stdout=text")
t("the output of a failure", answer("call", "logs", b["id"])["stderr"] == "x\n")
c = run("echo one >&2; test -e ../again || { exit 75; }; echo two", "--with", "stdout=text", "--retries", "0")
t("a job that was not kept has its output, too", answer("call", "logs", c["id"])["stderr"] == "one\n", c)
d = run("printf 'a\\000b\\033[31m\\377\\n' >&2; echo 1")
r = stet("call", "logs", d["id"])
t("control characters do not reach the terminal", r.returncode == 0 and "\x1b" not in r.stdout and "a" in r.stdout and "b" in r.stdout, repr(r.stdout + r.stderr))
e = run("head -c 20000000 /dev/zero | tr '\\000' x", "--with", "stdout=text")
size = sum(f.stat().st_size for f in pathlib.Path(".stet/local/calls/logs").glob("*.out"))
t("a large output is a result, and 16 MiB of it are kept as output", e["value"]["/"]["blob@1"]["size"] == 20000000 and size < 17 << 20, (str(e)[:200], size))
t("of which the end is shown", len(answer("call", "logs", e["id"], "--bytes", "1000")["stdout"]) <= 1000)
r = stet("call", "logs", "0" * 36)
t("a call that there is not", r.returncode != 0 and "there is no call" in r.stderr, r.stderr)

# Of a worker: the claim says how far its job is.
GO.unlink()
pathlib.Path("other").mkdir()
stet("init", cwd="other")
remote = f"file://{HERE}/shared.db"
worker = subprocess.Popen([STET, "worker", "--remote", remote, "--idle", "3s"], cwd="other", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
f = run(f"echo '{{\"done\": 1, \"total\": 2}}' >&$STET_PROGRESS_FD; while ! test -e {GO}; do sleep .05; done; echo 7", "--remote", remote, "--detach")
p = until(lambda: (answer("call", "show", f["id"]).get("progress") or {}).get("total") and answer("call", "show", f["id"])["progress"])
t("the progress of a worker's job", p and p["done"] == 1 and p["total"] == 2, p)
GO.touch()
t("and its result", answer("call", "wait", f["id"]).get("value") == 7)
r = stet("call", "logs", f["id"])
t("its output is the worker's, as the error says", r.returncode != 0 and "worker" in r.stderr, r.stderr)
worker.wait()
finish()
