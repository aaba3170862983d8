#!/usr/bin/env python3
"""A healthy job is not started twice: its lease is renewed although nobody asks for it, after a detached client has gone and after its worker was killed, and its result is published."""
import json, os, pathlib, signal, sqlite3, subprocess, time, urllib.parse

from tap import STET, answer, stet, t, finish

here = pathlib.Path.cwd()
LEASE = "6s"


def project(name):
    p = here / name
    p.mkdir()
    stet("init", cwd=p)
    with open(p / ".stet/config.toml", "a") as f:
        f.write(f'\n[calls]\nlease = "{LEASE}"\n')
    return p


def function(name):
    """A job that says that it was started, and ends when it is told to."""
    text = f"echo x >> {here}/{name}.log; while [ ! -e {here}/{name}.go ]; do sleep 0.1; done; echo 7"
    return "dml+exec://stet-exec-local/?command=" + urllib.parse.quote_plus(text)


def starts(name):
    log = here / f"{name}.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def claims(path):
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows = db.execute("SELECT phase, lease_ms, body FROM claim").fetchall()
        db.close()
        return [(phase, lease, json.loads(body)) for phase, lease, body in rows]
    except sqlite3.OperationalError:
        return []


def until(what, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def renewed(path, times):
    """Waits until the lease of the only claim has been renewed so often."""
    seen = set()

    def look():
        seen.update(lease for phase, lease, _ in claims(path) if phase == 1)
        return len(seen) > times
    return until(look)


def worker(p, hub):
    return subprocess.Popen([STET, "worker", "--remote", hub, "--lease", LEASE, "-j", "2"], cwd=p, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def stop(w):
    w.send_signal(signal.SIGINT)
    return w.communicate(timeout=300)[0]


def keepers():
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"keep" in words[1:2] and str(here).encode() in b" ".join(words):
            found.append(pid)
    return found


# ---- a client that was detached
p, q = project("p"), project("q")
own = p / ".stet/local/repo.db"
got = answer("call", "run", function("a"), "--detach", cwd=p)
t("a call is detached", until(lambda: starts("a") == 1), got)
w = worker(q, f"file://{p}")
t("nobody asks, and its lease is renewed", renewed(own, 4), claims(own))
t("nobody else starts it", starts("a") == 1)
(here / "a.go").touch()
t("its result is published", until(lambda: [c[0] for c in claims(own)] == [2]), claims(own))
stop(w)
t("then its keeper ends", until(lambda: not keepers()), keepers())
r = stet("call", "run", function("a"), cwd=p)
t("whoever asks then has it", r.stdout.strip() == "7" and starts("a") == 1, r.stdout + r.stderr)

# ---- a worker that was killed
c, d, e = project("c"), project("d"), project("e")
hub = f"file://{here}/hub.db"
got = answer("call", "run", function("b"), "--detach", "--remote", hub, cwd=c)
w = worker(d, hub)
t("a worker runs a call", until(lambda: starts("b") == 1), got)
t("which has a keeper", until(lambda: len(keepers()) == 1), keepers())
t("and is noted as running", until(lambda: [x["state"] for _, _, x in claims(here / "hub.db")] == ["running"]))
first = claims(here / "hub.db")[0][2]
w.kill()
w.communicate()
other = worker(e, hub)
t("the worker is killed, and the lease is renewed", until(lambda: claims(here / "hub.db")[0][2]["owner"] != first["owner"]) and renewed(here / "hub.db", 3),
  claims(here / "hub.db"))
now = claims(here / "hub.db")[0][2]
t("with a new fencing number", now["attempt"] == first["attempt"] + 1 and first["owner"].startswith(now["owner"]), (first, now))
t("the other worker starts nothing", starts("b") == 1)
(here / "b.go").touch()
r = stet("call", "run", function("b"), "--remote", hub, cwd=c)
t("the result of the first job arrives", r.stdout.strip() == "7" and starts("b") == 1, r.stdout + r.stderr)
stop(other)

# ---- nothing is left
db = sqlite3.connect(here / "hub.db")
refs = [name for (name,) in db.execute("SELECT name FROM ref")]
db.close()
t("the hub has no ref of a call that has ended", refs == [], refs)
t("and keepers end when there is nothing to keep", until(lambda: not keepers()), keepers())
for x in (p, q, c, d, e):
    r = stet("check", cwd=x)
    t(f"{x.name} is in order", r.returncode == 0, r.stdout)
finish(None)
