#!/usr/bin/env python3
"""Workers: calls that are left in a shared repository are run by them, each by one; a worker that is killed loses its calls to
another; a worker of the same project goes on with the same process; cancelling reaches them."""
import json, os, pathlib, signal, subprocess, time
from tap import STET, answer, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
HERE = pathlib.Path.cwd()
REMOTE = f"file://{HERE}/shared/calls.db"
LOCAL = "dml+exec://stet-exec-local/?command="
LOG = HERE / "log"
(HERE / "shared").mkdir()


def start(*words, cwd):
    return subprocess.Popen([STET, *words], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(good, seconds=30):
    end = time.monotonic() + seconds
    while not good() and time.monotonic() < end:
        time.sleep(0.01)
    return good()


def lines():
    return LOG.read_text().split() if LOG.exists() else []


def job(name, seconds):
    return f"{LOCAL}echo+{name}+%3E%3E+{LOG}%3B+sleep+{seconds}%3B+echo+%24%24"


def run(function, *words, cwd="caller"):
    return answer("call", "run", "--remote", REMOTE, function, *words, cwd=cwd)


for name in "caller", "other", "one", "two":
    os.mkdir(name)
    stet("init", cwd=name)

# Nobody works: calls wait.
ids = [run(job(f"a{i}", 0.2), "--detach")["id"] for i in range(6)]
t("calls are left in the repository", [c["state"] for c in answer("call", "list", cwd="caller")["calls"]] == ["poll_adapter"] * 6)
t("and nothing runs", lines() == [])
shown = answer("call", "show", ids[0], cwd="caller")
t("they are queued", shown.get("claim", {}).get("state") == "queued", shown)

# Two workers share them.
workers = [start("worker", "--remote", REMOTE, "-j", "2", "--idle", "1s", "--json", cwd=w) for w in ("one", "two")]
reports = [json.loads(w.communicate(timeout=60)[0].splitlines()[-1]) for w in workers]
t("two workers share the work", sum(r["ok"] for r in reports) == 6 and all(r["failed"] == r["lost"] == 0 for r in reports), reports)
t("each call ran once", sorted(lines()) == [f"a{i}" for i in range(6)], lines())
results = [answer("call", "wait", i, cwd="caller") for i in ids]
t("and the caller gets the results", all(r.get("ok") for r in results), results)
again = run(job("a3", 0.2), cwd="other")
t("another project gets the same result, without a worker", again.get("value") == results[3].get("value"), again)
t("failures come back, too", run(f"{LOCAL}exit+5", "--detach")["state"] == "poll_adapter")
r = stet("worker", "--remote", REMOTE, "--idle", "0", cwd="two")
t("a worker says what it did", r.returncode == 0 and "error" in r.stdout and "1 taken: 0 ok, 1 failed, 0 lost" in r.stdout, r.stdout + r.stderr)
t("with how it ended", run(f"{LOCAL}exit+5").get("failure", {}).get("exit") == 5)


def power_cut(project):
    """Kills what stet runs for a project, as if its machine were gone: keepers and supervisors."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"stet-" in words[0] and any(f"/{project}/.stet/local".encode() in word for word in words):
                os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


# The machine of a worker is gone: its call is taken over by another, when the lease has run out.
first = start("worker", "--remote", REMOTE, "--lease", "1s", cwd="one")
call = run(job("b", 2), "--detach")["id"]
t("a worker has begun", until(lambda: "b" in lines()))
first.kill()
first.wait()
power_cut("one")
second = start("worker", "--remote", REMOTE, "--lease", "1s", "--idle", "2s", "--json", cwd="two")
r = answer("call", "wait", call, cwd="caller")
t("another takes the call over", r.get("ok") is True and lines().count("b") == 2, (r, lines()))
shown = answer("call", "show", call, cwd="caller")
t("by an attempt of its own", shown.get("claim", {}).get("attempt") == 3, shown)  # queued, taken, taken over
second.communicate(timeout=60)

# The same in one project: the very same process is gone on with.
first = start("worker", "--remote", REMOTE, "--lease", "1s", cwd="one")
call = run(job("c", 2), "--detach")["id"]
until(lambda: "c" in lines())
first.kill()
first.wait()
second = start("worker", "--remote", REMOTE, "--lease", "1s", "--idle", "1s", cwd="one")
r = answer("call", "wait", call, cwd="caller")
t("a worker of the same project goes on with the same process", r.get("ok") is True and lines().count("c") == 1, (r, lines()))
second.communicate(timeout=60)

# A worker that was stopped, not killed, comes back: what it has counts for nothing.
zombie = start("worker", "--remote", REMOTE, "--lease", "0.5s", "--json", cwd="one")
call = run(job("d", 1), "--detach")["id"]
until(lambda: "d" in lines())
zombie.send_signal(signal.SIGSTOP)
heir = start("worker", "--remote", REMOTE, "--lease", "0.5s", "--idle", "3s", cwd="two")
until(lambda: lines().count("d") == 2)
zombie.send_signal(signal.SIGCONT)
r = answer("call", "wait", call, cwd="caller")
t("the one that took over publishes", r.get("ok") is True, r)
t("and not the one that was away, by its second attempt", answer("call", "show", call, cwd="caller").get("claim", {}).get("attempt", 0) >= 3)
t("one result is kept", len(answer("call", "show", call, cwd="caller").get("execs", [])) == 1)
zombie.send_signal(signal.SIGINT)
t("a worker ends by Ctrl-C", zombie.wait(timeout=30) == 0 or zombie.returncode == 130)
report = json.loads(zombie.communicate()[0].splitlines()[-1])
t("and does not count the work of the other as its own", report["ok"] == 0 and report["lost"] == 1, report)
heir.communicate(timeout=60)

# Cancelling reaches a worker.
pid = HERE / "pid"
call = run(f"{LOCAL}echo+%24%24+%3E+{pid}%3B+exec+sleep+60", "--detach")["id"]
worker = start("worker", "--remote", REMOTE, "--idle", "1s", "--json", cwd="one")
t("it runs", until(lambda: pid.exists() and pid.read_text().strip()))
t("it is cancelled", stet("call", "cancel", call, cwd="caller").returncode == 0)
out = worker.communicate(timeout=60)[0]
t("the worker has ended it", not os.path.exists(f"/proc/{pid.read_text().strip()}") and '"lost":1' in out, out)

# A remote by its name.
stet("remote", "add", "pool", REMOTE, cwd="caller")
stet("call", "run", "--remote", "pool", f"{LOCAL}echo+77", "--detach", cwd="caller")
t("a worker of a remote by its name", stet("worker", "--remote", "file://" + str(HERE / "shared/calls.db"), "--idle", "0", cwd="one").returncode == 0)
t("runs what was left there by the name", run(f"{LOCAL}echo+77").get("value") == 77)
t("a name that there is not", stet("call", "run", "--remote", "nobody", f"{LOCAL}true", cwd="caller").returncode == 3)

# A remote from the configuration.
with open("other/.stet/config.toml", "a") as f:
    f.write(f'[calls]\nremote = "{REMOTE}"\n')
stet("trust", cwd="other")
p = start("call", "run", job("e", 0.1), cwd="other")
t("a project whose calls go to workers", not p.poll() and stet("worker", "--idle", "2s", cwd="other").returncode == 0)
t("gets them from there", p.wait(timeout=60) == 0 and "e" in lines(), lines())
p.communicate()

for name in "caller", "one", "two":
    t(f"stet check in {name}", stet("check", cwd=name).returncode == 0)
finish("other")
