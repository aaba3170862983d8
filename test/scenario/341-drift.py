#!/usr/bin/env python3
"""`status --drift` asks a process that watches whether what it holds in memory agrees with the tables: it does, whatever has changed, failed or
waits; and it does not when somebody has changed the tables behind its back."""
import json, pathlib, signal, sqlite3, subprocess, time
from tap import STET, answer, finish, stet, t

node = lambda id, code, **inputs: {"id": id, "module": {"type": "javascript", "implementation": code}, "inputs": inputs}
pathlib.Path("p.json").write_text(json.dumps({
    "pattern": 1, "name": "p", "argument": {"default": {"v": 1}}, "result": {"c": {"$": "c"}, "d": {"$": "d"}}, "nodes": [
        node("a", "({v}) => { if (v === 0) throw new Error('zero'); return v }", v={"$": "argument/v"}),
        node("b", "({a}) => a % 2", a={"$": "a"}), node("c", "({b}) => b", b={"$": "b"}), node("d", "({v}) => v + 1", v={"$": "argument/v"})]}))


def drift(want=1):
    """What the process says once it is at rest."""
    for _ in range(200):
        said = answer("status", "--drift")
        if len(said["drift"]["processes"]) == want and all(p["answered"] for p in said["drift"]["processes"]):
            break
        time.sleep(0.05)
    return said["drift"]["processes"]


def settled(good):
    for _ in range(400):
        if good():
            return True
        time.sleep(0.05)
    return False


stet("init")
stet("run", "p.json")
t("nobody is there to be asked", answer("status", "--drift")["drift"] == {"processes": []})
t("people are told so", "no process holds the project open" in stet("status", "--drift").stdout)
watch = subprocess.Popen([STET, "run", "p.json", "--watch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
one = drift()
t("a watch answers", len(one) == 1 and one[0]["pid"] == watch.pid and one[0]["differ"] == 0, one)
for value, state in [(2, "stands"), (3, "stands"), (0, "failed"), (5, "stands"), (0, "failed"), (4, "stands")]:
    stet("set", "piece:p:argument/v", value)
    t(f"it takes {value} up", settled(lambda: answer("action", "list", "p")["actions"][0]["state"] == state and
                                      stet("get", "piece:p:node:d").stdout.strip() == str(value + 1)), stet("action", "list", "p").stdout)
    one = drift()
    t("and agrees with the tables", one and one[0]["differ"] == 0 and one[0]["actions"] >= 2, one)

db = sqlite3.connect(".stet/local/spaces/main.db", timeout=10)
with db:
    saved = db.execute("SELECT * FROM action WHERE name = 'd'").fetchall()
    db.execute("DELETE FROM action WHERE name = 'd'")
    # Otherwise the number of records tells that one is gone, and the watch makes it again.
    db.execute("UPDATE space_meta SET value = value - (1 << 32) WHERE name = 'digest:action'")
one = drift()
t("a record that is gone is told", [(d["action"], d["memory"], d["tables"]) for d in one[0]["drift"]] == [("d", "stands", "no record")], one)
r = stet("status", "--drift")
t("with exit status 1, to people as well", r.returncode == 1 and "p/d: stands in memory, no record in the tables" in r.stdout, r.stdout)
t("status alone is as before", stet("status").returncode == 0)
with db:
    db.executemany(f"INSERT INTO action VALUES({','.join('?' * len(saved[0]))})", saved)
    db.execute("UPDATE space_meta SET value = value + (1 << 32) WHERE name = 'digest:action'")
db.close()
one = drift()
t("put back, it agrees", one[0]["differ"] == 0, one)
watch.send_signal(signal.SIGSTOP)
time.sleep(0.2)
t("one that does not answer is told as that", answer("status", "--drift")["drift"]["processes"] == [{"pid": watch.pid, "answered": False}])
watch.send_signal(signal.SIGCONT)
watch.send_signal(signal.SIGKILL)
watch.wait()
t("one that was killed is not there", answer("status", "--drift")["drift"] == {"processes": []})
t("and leaves nothing behind", not [f for f in pathlib.Path(".stet/local/live").iterdir()])
finish()
