#!/usr/bin/env python3
"""A hub in PostgreSQL: two directories as two hosts, with nothing in common but the server; labels, draining, upkeep; what goes wrong
says so and loses nothing; a password is nowhere to be found."""
import json, os, pathlib, signal, subprocess, time
from tap import STET, answer, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
SOURCE = os.environ["STET_SOURCE"]
HERE = pathlib.Path.cwd()


def server(*words):
    return subprocess.run([SOURCE + "/test/postgres", "pg", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


BASE = server("start")
HUB = BASE + "&schema=team"


def sql(text):
    return subprocess.run(["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", BASE, "-c", text], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def host(name):
    """A directory with a home of its own: nothing is shared with another."""
    home = HERE / name
    (home / "p").mkdir(parents=True)
    env = {"HOME": str(home), "STET_HOME": str(home / "state"), "STET_JOBS": str(home / "jobs")}
    stet("init", cwd=home / "p", env=env)
    return {"cwd": home / "p", "env": env}


def start(*words, cwd, env):
    return subprocess.Popen([STET, *words], cwd=cwd, env=dict(os.environ, **env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(good, seconds=30):
    end = time.monotonic() + seconds
    while not good() and time.monotonic() < end:
        time.sleep(0.02)
    return good()


alice, bob = host("alice"), host("bob")

# Making it.
r = stet("hub", "status", HUB)
t("a hub that is not there says how to make it", r.returncode == 3 and "stet hub init" in r.stderr, r.stderr)
t("it is made, outside of any project", answer("hub", "init", HUB).get("changed") is True)
t("once", answer("hub", "init", HUB).get("changed") is False)
status = answer("hub", "status", HUB)
t("and is empty", (status.get("queued"), status.get("objects"), status.get("workers"), status.get("schema")) == (0, 0, 0, 1), status)

# Two hosts: one submits, the other runs. The same call on one host alone gives the same bytes.
(alice["cwd"] / "make.py").write_text("import hashlib, sys\nopen('big.bin', 'wb').write(b''.join(hashlib.sha256(b'%d' % i).digest() for i in range(40000)))\nprint(len(sys.stdin.read()))\n")
FUNCTION = "dml+exec://stet-exec-local/python3?arg=make.py&file=big.bin&env=PATH=/usr/bin:/bin&env=HOME=/&env=USER=u&env=LOGNAME=u&env=SHELL=/bin/sh"
left = answer("call", "run", "--remote", HUB, FUNCTION, '{"seed": 7}', "--detach", **alice)
t("a call is left in the hub", left.get("state") == "poll_adapter", left)
r = stet("worker", "--hub", HUB, "--idle", "0", **bob)
t("the other host runs it", r.returncode == 0 and "1 ok" in r.stdout, r.stdout + r.stderr)
got = answer("call", "wait", left["id"], **alice)
blob = got.get("value", {}).get("files", {}).get("big.bin", {}).get("/", {}).get("blob@1", {})
t("the result came back", blob.get("size") == 40000 * 32, got)
stet("call", "get", left["id"], "big.bin", "-o", "far.bin", **alice)
alone = answer("call", "run", FUNCTION, '{"seed": 7}', "--no-cache", **alice)
stet("call", "get", alone["id"], "big.bin", "-o", "near.bin", **alice)
t("byte for byte as on this host", (alice["cwd"] / "far.bin").read_bytes() == (alice["cwd"] / "near.bin").read_bytes() and alone.get("result") == got.get("result"), alone)
t("the call's ref is gone from the hub", answer("hub", "status", HUB).get("refs") == 0)

# From the configuration, with a failure that is kept, and with a label.
with open(alice["cwd"] / ".stet/config.toml", "a") as f:
    f.write(f'[calls]\nremote = "{HUB}"\n')
stet("trust", **alice)
worker = start("worker", "--hub", HUB, "-j", "2", "--label", "gpu", **bob)
t("a worker is listed", until(lambda: answer("worker", "list", HUB).get("total") == 1))
row = answer("worker", "list", **alice)["workers"][0]
t("with what it has", row["labels"] == ["gpu"] and row["jobs"] == 2 and row["pid"] == worker.pid and row["state"] == "idle", row)
r = answer("call", "run", "--sh", "echo 5", **alice)
t("a call of a project whose configuration names the hub", r.get("value") == 5, r)
r = stet("call", "run", "--sh", "exit 3", **alice)
t("a failure comes back", r.returncode == 1 and "3" in r.stdout + r.stderr, r.stdout + r.stderr)
t("a call for a label that the worker has", answer("call", "run", "--with", "needs=gpu", "--sh", "echo 6", **alice).get("value") == 6)
other = answer("call", "run", "--with", "needs=tpu", "--sh", "echo 7", "--detach", **alice)["id"]
t("one behind a call that nobody may take", answer("call", "run", "--sh", "echo 8", **alice).get("value") == 8)
t("which waits", answer("hub", "status", HUB).get("queued") == 1)
stet("call", "cancel", other, **alice)
t("until it is cancelled", answer("hub", "status", HUB).get("queued") == 0)

# Stopping a worker lets it finish.
long = answer("call", "run", "--sh", "sleep 1; echo 9", "--detach", **alice)["id"]
t("a call runs", until(lambda: answer("hub", "status", HUB).get("running") == 1))
worker.send_signal(signal.SIGTERM)
answer("call", "run", "--sh", "echo 10", "--detach", **alice)
out, said = worker.communicate(timeout=120)
t("a worker that is stopped finishes what it has, and takes nothing new", worker.returncode == 0 and "4 ok, 1 failed, 0 lost" in out, (out, said))
t("its result is there", answer("call", "wait", long, **alice).get("value") == 9)
t("and it is listed no longer", answer("worker", "list", HUB).get("total") == 0)
t("the new one is left", answer("hub", "status", HUB).get("queued") == 1)

# Upkeep.
t("all of it verifies", answer("hub", "check", HUB).get("found") == 0)
before = answer("hub", "status", HUB)
kept = answer("hub", "gc", HUB)
t("what is young stays", kept.get("objects") == 0 and kept.get("claims") == 0, kept)
swept = answer("hub", "gc", HUB, "--grace", "0", "--ended", "0")
after = answer("hub", "status", HUB)
t("old calls go, with what only they named", swept.get("claims") == before["ended"] and swept.get("objects") > 0 and after["ended"] == 0 and after["queued"] == 1, (before, swept, after))
t("the rest is sound", answer("hub", "check", HUB).get("found") == 0)

# Commits and results of calls travel through the hub, too.
stet("dag", "commit", "report", "[1, 2, 3]", "-m", "numbers", **alice)
stet("remote", "add", "team", HUB, **alice)
stet("remote", "add", "team", HUB, **bob)
r = stet("remote", "push", "team", **alice)
t("a push to the hub", r.returncode == 0 and "refs/heads/main" in r.stdout, r.stdout + r.stderr)
r = stet("remote", "fetch", "team", **bob)
t("a fetch from it", r.returncode == 0 and "refs/remotes/team/main" in r.stdout, r.stdout + r.stderr)
shown = stet("dag", "show", "team/main:report", "--value", **bob)
t("brings what was committed", shown.stdout.split() == ["[1,2,3]"] or json.loads(shown.stdout) == [1, 2, 3], shown.stdout + shown.stderr)

# Damage.
sql("UPDATE team.object SET bytes = bytes || 'x' WHERE number = (SELECT min(number) FROM team.object)")
r = stet("hub", "check", HUB)
t("damage is found", r.returncode == 1 and "is damaged" in r.stdout, r.stdout + r.stderr)
sql("SET client_min_messages = error; DROP SCHEMA team CASCADE")
answer("hub", "init", HUB)

# What goes wrong.
r = stet("hub", "status", BASE.replace("/postgres?", "/absent?"))
t("a database that is not there", r.returncode == 3 and '"absent" does not exist' in r.stderr and "createdb" in r.stderr, r.stderr)
sql("UPDATE team.hub SET version = 99")
for words in ("hub", "status"), ("hub", "init"), ("worker", "--idle", "0", "--hub"):
    r = stet(*words, HUB, **bob)
    t(f"a hub of a newer stet: {words[-1]}", r.returncode == 8 and "version 99" in r.stderr and "newer stet" in r.stderr, (r.returncode, r.stderr))
sql("UPDATE team.hub SET version = 1")
r = stet("hub", "status", BASE + "&schema=Team%3B--")
t("a schema that is none", r.returncode == 2 and "not a valid schema" in r.stderr, r.stderr)
SECRET = "hunter2secret"
sql(f"CREATE ROLE carol LOGIN PASSWORD '{SECRET}'")
sql("GRANT ALL ON SCHEMA team TO carol; GRANT ALL ON ALL TABLES IN SCHEMA team TO carol; GRANT ALL ON ALL SEQUENCES IN SCHEMA team TO carol")
hba = HERE / "pg/data/pg_hba.conf"
hba.write_text("local all carol scram-sha-256\n" + hba.read_text())
sql("SELECT pg_reload_conf()")
CAROL = HUB.replace("user=stet", "user=carol")
until(lambda: stet("hub", "status", CAROL).returncode != 0)
r = stet("hub", "status", CAROL, env={"PGPASSWORD": "wrong"})
t("a wrong password", r.returncode == 9 and "password authentication failed" in r.stderr and "PGPASSWORD" in r.stderr, (r.returncode, r.stderr))
for bad in HUB.replace("///", f"//carol:{SECRET}@/"), CAROL + f"&password={SECRET}":
    for words in ("hub", "init", bad), ("call", "run", "--remote", bad, "--sh", "true"), ("remote", "add", "secret", bad), ("worker", "--hub", bad):
        r = stet(*words, **bob)
        t(f"an address with a password is refused: {words[0]}", r.returncode == 2 and "PGPASSWORD" in r.stderr and SECRET not in r.stdout + r.stderr, r.stdout + r.stderr)
(HERE / "bob/.pgpass").write_text(f"*:*:*:carol:{SECRET}\n")
os.chmod(HERE / "bob/.pgpass", 0o600)
(HERE / "bob/.pg_service.conf").write_text(f"[team]\nhost={HERE}/pg\nuser=carol\ndbname=postgres\n")
left = answer("call", "run", "--remote", "postgres:///?service=team&schema=team", "--sh", "echo 11", "--detach", **bob)
r = stet("worker", "--hub", "postgres:///?service=team&schema=team", "--idle", "0", **bob)
t("a service and a password file work", left.get("id") and "1 ok" in r.stdout, (left, r.stdout + r.stderr))
found = [p for p in (HERE / "bob").rglob("*") if p.is_file() and p.name != ".pgpass" and SECRET.encode() in p.read_bytes()]
found += [p for p in (HERE / "alice").rglob("*") if p.is_file() and SECRET.encode() in p.read_bytes()]
t("the password is in no file of stet's", found == [], found)

# The server is gone, and comes back.
left = answer("call", "run", "--remote", HUB, "--sh", "echo 12", "--detach", **alice)["id"]
server("kill")
r = stet("hub", "status", HUB)
t("a server that is gone", r.returncode == 7 and "is the server running" in r.stderr, (r.returncode, r.stderr))
waiting = start("call", "wait", left, "--json", **alice)
worker = start("worker", "--hub", HUB, "--idle", "0", **bob)
t("a worker that can't begin says so", worker.wait(timeout=60) == 7 and "is the server running" in worker.communicate()[1])
server("start")
r = stet("worker", "--hub", HUB, "--idle", "0", **bob)
t("nothing was lost", "1 ok" in r.stdout, (r.stdout, r.stderr, answer("hub", "status", HUB), answer("call", "show", left, **alice)))
out, said = waiting.communicate(timeout=120)
t("and who waited through it gets the result", json.loads(out).get("value") == 12, (out, said))

for who in alice, bob:
    r = stet("check", **who)
    t("stet check", r.returncode == 0, r.stdout + r.stderr)
server("stop")
finish(None)
