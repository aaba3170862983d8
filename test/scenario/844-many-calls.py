#!/usr/bin/env python3
"""Many calls, and calls that last: no more jobs at a time than -j says; gc keeps what calls that are under way need, also at a remote, and every
record of a call; whoever joins a call has a timeout of its own; a result that is damaged is mended by running the call again."""
import os, pathlib, sqlite3, subprocess, time, urllib.parse
from tap import STET, answer, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
HERE = pathlib.Path.cwd()
REMOTE = f"file://{HERE}/shared.db"


def command(text):
    return f"dml+exec://stet-exec-local/?command={urllib.parse.quote(text, safe='')}"


def until(good, seconds=60):
    end = time.monotonic() + seconds
    while not good() and time.monotonic() < end:
        time.sleep(0.01)
    return good()


def age():
    """Everything was stored long ago."""
    db = sqlite3.connect(".stet/local/repo.db", timeout=60)
    db.execute("UPDATE object SET added_s = 1")
    db.commit()
    db.close()


stet("init")

# Slots: what ran at the same time, by what the jobs have logged.
log = HERE / "log"
log.touch()
nodes = "".join(f'[nodes.n{i}]\ncall = "{command(f"echo + >> {log}; sleep 0.1; echo - >> {log}; echo {i}")}"\n' for i in range(12))
(HERE / "stet.toml").write_text('name = "many"\n' + nodes)
for jobs in 1, 3:
    log.write_text("")
    r = stet("run", "-j", str(jobs), "--json")
    now = most = 0
    for line in log.read_text().split():
        now += 1 if line == "+" else -1
        most = max(most, now)
    t(f"twelve calls with -j {jobs} run", r.returncode == 0 and log.read_text().count("+") == 12, r.stdout + r.stderr)
    t("and no more of them at a time", 1 <= most <= jobs, most)
    stet("set", "piece:many:argument", "{}")
    (HERE / "stet.toml").write_text('name = "many"\n' + nodes.replace("sleep%200.1", "sleep%200.11"))

# One of them fails, and others wait for a slot: they do not begin unless the run goes on.
(HERE / "stet.toml").write_text('name = "fails"\n' + "".join(
    f'[nodes.n{i}]\ncall = "{command(f"echo x >> {HERE}/began; sleep 0.1; exit 1")}&v={i}"\n' for i in range(5)))
r = stet("run", "-j", "1")
t("a failure is told", r.returncode == 1, r.stdout + r.stderr)
r = stet("run", "-j", "1", "--keep-going")
t("with all of them run in the end", r.returncode == 1 and (HERE / "began").read_text().count("x") >= 5, (HERE / "began").read_text())
(HERE / "stet.toml").unlink()

# gc while a call waits at a remote.
left = answer("call", "run", "--remote", REMOTE, "--detach", command("echo 5"))
age()
t("gc", stet("gc").returncode == 0)
r = stet("call", "list")
t("the call is still listed", r.returncode == 0 and left["id"] in r.stdout, r.stdout + r.stderr)
worker = subprocess.Popen([STET, "worker", "--remote", REMOTE], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
t("and has its result", answer("call", "wait", left["id"]).get("value") == 5)
worker.terminate()
worker.wait()

# Every record of a call outlives gc.
for more in ([], ["--no-cache"], ["--no-cache"]):
    last = answer("call", "run", command("cat /proc/sys/kernel/random/uuid; true") + "&stdout=text", *more)
execs = answer("call", "show", last["node"])["execs"]
age()
stet("gc")
t("records of earlier runs are kept", len(execs) == 3 and answer("call", "show", last["node"])["execs"] == execs, execs)

# Whoever joins has a time of its own, and does not end what another has begun.
slow = command(f"while ! test -e {HERE}/go; do sleep 0.02; done; echo 9")
first = subprocess.Popen([STET, "--json", "call", "run", slow], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
t("a call is under way", until(lambda: answer("call", "list", "--state", "live")["calls"]))
t("whoever joins stops waiting", stet("call", "run", slow, "--timeout", "0.3s").returncode == 5)
first.kill()
first.communicate()
r = stet("call", "run", slow, "--timeout", "0.3s")
t("also when its first caller was killed", r.returncode == 5, r.stdout + r.stderr)
(HERE / "go").touch()
t("it goes on", answer("call", "run", slow).get("value") == 9)

# A datum that was damaged on disk.
good = answer("call", "run", command("echo '\"precious\"'"))
db = sqlite3.connect(".stet/local/repo.db", timeout=60)
number, text = next(row for row in db.execute("SELECT number, bytes FROM object") if b'"payload":"precious"' in bytes(row[1]))
db.execute("UPDATE object SET bytes = ? WHERE number = ?", (bytes(text).replace(b"precious", b"Precious"), number))
db.commit()
db.close()
t("is noticed", stet("check").returncode != 0)
r = answer("call", "run", command("echo '\"precious\"'"))
t("and mended by running the call again", r.get("value") == "precious", r)
finish()
