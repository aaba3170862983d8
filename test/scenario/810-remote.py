#!/usr/bin/env python3
"""Remotes: a repository in a file, and one behind a program; what is new travels, is verified, goes on after a stop, and nothing is overwritten."""
import json, os, pathlib, shutil, sqlite3

from tap import answer, finish, stet, t

here = pathlib.Path.cwd()
a, b = here / "a", here / "b"
for p in (a, b):
    p.mkdir()
    stet("init", cwd=p)

# ---- a repository in a file
shared = f"file://{here}/shared"
t("a remote is named", stet("remote", "add", "origin", shared, cwd=a).returncode == 0)
t("once", stet("remote", "add", "origin", shared, cwd=a).returncode == 4)
t("by a name that is one", stet("remote", "add", "a/b", shared, cwd=a).returncode == 2)
t("and an address that is known", stet("remote", "add", "x", "ftp://host/", cwd=a).returncode == 8)
t("it is listed", answer("remote", "list", cwd=a)["remotes"][0]["uri"] == shared)
r = stet("remote", "fetch", "origin", cwd=a)
t("nothing is there to be fetched", r.returncode == 3 and not (here / "shared").exists(), r.stderr)
stet("dag", "commit", "rows", json.dumps([{"n": n, "text": "x" * n} for n in range(200)]), "-m", "rows", cwd=a)
got = answer("remote", "push", "origin", cwd=a)
t("a push makes it", got.get("refs", [{}])[0].get("change") == "new" and got["objects"] > 400, got)
t("once", answer("remote", "push", "origin", cwd=a)["objects"] == 0)
t("it is known here too", stet("dag", "show", "origin/main", cwd=a).returncode == 0)
stet("remote", "add", "origin", shared, cwd=b)
got = answer("remote", "fetch", "origin", cwd=b)
t("another fetches it", got.get("objects", 0) > 400 and got["refs"][0]["ref"] == "refs/remotes/origin/main", got)
t("and has the same", answer("dag", "show", "origin/main:rows", "--value", cwd=b)["value"][7] == {"n": 7, "text": "xxxxxxx"})
t("once", answer("remote", "fetch", "origin", cwd=b)["objects"] == 0)
stet("dag", "merge", "origin/main", cwd=b)
stet("dag", "commit", "mine", "1", cwd=b)
got = answer("remote", "push", "origin", "main", cwd=b)
t("what is new goes, and no more", got.get("refs", [{}])[0].get("change") == "moved" and got["objects"] < 10, got)
stet("dag", "commit", "theirs", "2", cwd=a)
r = stet("remote", "push", "origin", cwd=a)
t("no push over what others did", r.returncode == 4 and "not a fast-forward" in r.stderr, r.stderr)
stet("remote", "fetch", "origin", cwd=a)
t("merged", "(merged)" in stet("dag", "merge", "origin/main", cwd=a).stdout)
t("it goes", stet("remote", "push", "origin", cwd=a).returncode == 0)
t("no such head", stet("remote", "push", "origin", "nowhere", cwd=a).returncode == 3)
t("no such remote", stet("remote", "fetch", "nobody", cwd=a).returncode == 3)
for p in (b, here / "shared"):
    t(f"{p.name} is whole", True if p == b and stet("check", cwd=b).returncode == 0 else (p / "repo.db").exists())

# ---- a damaged remote gives nothing
bad = here / "bad"
shutil.copytree(here / "shared", bad)
db = sqlite3.connect(bad / "repo.db")
db.execute("UPDATE object SET bytes = CAST(replace(CAST(bytes AS TEXT), 'xxxxxxx', 'yyyyyyy') AS BLOB) WHERE CAST(bytes AS TEXT) LIKE '%xxxxxxx%'")
db.commit()
db.close()
c = here / "c"
c.mkdir()
stet("init", cwd=c)
stet("remote", "add", "bad", f"file://{bad}", cwd=c)
r = stet("remote", "fetch", "bad", cwd=c)
t("damage is seen before it is stored", r.returncode == 6 and "not those that were written" in r.stderr, r.stderr)
t("nothing of it is named", answer("dag", "refs", cwd=c)["total"] == 0)

# ---- lost objects come back
db = sqlite3.connect(b / ".stet/local/repo.db")
db.execute("DELETE FROM object WHERE type = 0 AND number % 3 = 0")
db.commit()
db.close()
t("something is lost", stet("check", "--only", "repo", cwd=b).returncode == 1)
t("a fetch does not look for it", answer("remote", "fetch", "origin", cwd=b).get("objects", 0) < 20)
got = answer("remote", "fetch", "origin", "--whole", cwd=b)
t("a whole one does", got.get("objects", 0) > 50, got)
r = stet("check", "--only", "repo", cwd=b)
t("all is whole again", r.returncode == 0, r.stdout)

# ---- results of calls


def pin(project):
    """Pins a result without running anything: the records are put together here, as any program may."""
    import hashlib, time
    db = sqlite3.connect(project / ".stet/local/repo.db")

    def put(record, number):
        text = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
        name = hashlib.sha256(text).digest()
        db.execute("INSERT OR IGNORE INTO object(id, type, state, added_s, bytes) VALUES(?, ?, 0, ?, ?)", (name, number, int(time.time()), text))
        return name.hex()
    datum = put({"kind": "int", "payload": 42, "type": "datum"}, 0)
    literal = put({"kind": "literal", "target": datum, "type": "node"}, 1)
    call = put({"function": "dml+exec://f/g", "inputs": [literal], "kind": "call", "type": "node"}, 1)
    dag = put({"names": {}, "root": literal, "type": "dag"}, 2)
    done = put({"attempt": 1, "node": call, "result": dag, "status": "ok", "timings": {}, "type": "exec"}, 3)
    tree = put({"dags": {}, "type": "tree"}, 4)
    execs = put({"execs": {call: done}, "type": "execmap"}, 6)
    commit = put({"execs": execs, "message": "", "parents": [], "time": 1, "tree": tree, "type": "commit"}, 5)
    db.execute("INSERT OR REPLACE INTO ref VALUES('refs/index/main', ?)", (bytes.fromhex(commit),))
    db.execute("INSERT OR REPLACE INTO pin VALUES(?, ?)", (bytes.fromhex(call), bytes.fromhex(done)))
    db.execute("INSERT OR IGNORE INTO exec_of SELECT ?, number FROM object WHERE id = ?", (bytes.fromhex(call), bytes.fromhex(done)))
    db.commit()
    return call


call = pin(a)
r = stet("check", "--only", "repo", cwd=a)
t("records that others put together are as good", r.returncode == 0, r.stdout)
t("a call means its result", answer("dag", "show", call, "--value", cwd=a)["value"] == 42)
stet("remote", "add", "peer", f"file://{a}", cwd=c)
t("left there if so asked", answer("remote", "fetch", "peer", "--no-pins", cwd=c)["pins"] == 0)
t("results are taken over", answer("remote", "fetch", "peer", cwd=c)["pins"] == 1)
t("and used", answer("dag", "show", call, "--value", cwd=c).get("value") == 42)
t("once", answer("remote", "fetch", "peer", cwd=c)["pins"] == 0)

# ---- behind a program
bin = here / "bin"
bin.mkdir()
program = bin / "stet-remote-dir"
program.write_text('''#!/usr/bin/env python3
# A remote in a directory: objects/ID, refs.json. Gives at most 50 objects at once. STOP names a file: after as many requests for
# objects as it says, the program asks to be asked later.
import json, os, pathlib, sys, urllib.parse
q = json.load(sys.stdin)
root = pathlib.Path(urllib.parse.urlparse(q["uri"]).path)
(root / "objects").mkdir(parents=True, exist_ok=True)
refs = root / "refs.json"
known = json.loads(refs.read_text()) if refs.exists() else {}
log = open(root / "log", "a"); log.write(q["op"] + " " + str(len(q.get("ids", q.get("objects", [])))) + chr(10))
assert q["v"] == 1
if q["op"] == "list-refs":
    out = {"refs": {k: v for k, v in known.items() if k.startswith(q["prefix"])}}
elif q["op"] == "get-manifest":
    out = {"have": [i for i in q["ids"] if (root / "objects" / i).exists()]}
elif q["op"] == "get-object":
    stop = os.environ.get("STOP")
    if stop:
        left = int(pathlib.Path(stop).read_text())
        if left == 0:
            print("closed for now", file=sys.stderr)
            sys.exit(75)
        pathlib.Path(stop).write_text(str(left - 1))
    here = [i for i in q["ids"] if (root / "objects" / i).exists()]
    out = {"objects": [{"id": i, "record": (root / "objects" / i).read_text()} for i in here[:50]]}
    if len(here) < len(q["ids"]) and len(here) <= 50:
        out["missing"] = [i for i in q["ids"] if i not in here]
elif q["op"] == "put-object":
    for o in q["objects"]:
        (root / "objects" / o["id"]).write_text(o["record"])
    out = {"stored": len(q["objects"])}
else:
    for u in q["updates"]:
        if known.get(u["ref"]) != u["expect"]:
            print(json.dumps({"v": 1, "ok": False, "ref": u["ref"], "actual": known.get(u["ref"])}))
            sys.exit(0)
    for u in q["updates"]:
        if u["set"] is None: known.pop(u["ref"], None)
        else: known[u["ref"]] = u["set"]
    refs.write_text(json.dumps(known))
    out = {"ok": True}
print(json.dumps(dict(out, v=1)))
''')
program.chmod(0o755)
path = {"PATH": f"{bin}:{os.environ['PATH']}"}
store = here / "store"
r = stet("remote", "add", "dir", f"dml+remote://dir{store}", cwd=a)
t("an address of a program", r.returncode == 0, r.stderr)
r = stet("remote", "push", "dir", cwd=a)
t("which is not there", r.returncode == 3 and "stet-remote-dir" in r.stderr, r.stderr)
got = answer("remote", "push", "dir", cwd=a, env=path)
t("it gets what is new", got.get("objects", 0) > 400, got)
t("as objects", len(list((store / "objects").iterdir())) == got.get("objects"))
t("once", answer("remote", "push", "dir", cwd=a, env=path)["objects"] == 0)
d = here / "d"
d.mkdir()
stet("init", cwd=d)
stet("remote", "add", "dir", f"dml+remote://dir{store}", cwd=d)
stop = here / "stop"
stop.write_text("8")
r = stet("remote", "fetch", "dir", cwd=d, env=dict(path, STOP=str(stop)))
t("it asks to be asked later", r.returncode == 5 and "closed for now" in r.stderr, r.stderr)
t("nothing is named yet", answer("dag", "refs", cwd=d)["total"] == 0)
t("and all is whole", stet("check", cwd=d).returncode == 0)
(store / "log").unlink()
got = answer("remote", "fetch", "dir", cwd=d, env=path)
asked = [int(line.split()[1]) for line in (store / "log").read_text().splitlines() if line.startswith("get-object")]
t("the next fetch goes on", got.get("refs", [{}])[0].get("change") == "new", got)
t("and does not ask for what came", sum(min(n, 50) for n in asked) <= got.get("objects", 0) - 100, (asked, got.get("objects")))
t("it has the same", answer("dag", "show", "dir/main:rows", "--value", cwd=d).get("value", [{}] * 8)[7].get("n") == 7)
# what it holds is not what it says
victim = next(p for p in (store / "objects").iterdir() if b"xxxxxxxxx" in p.read_bytes())
victim.write_text(victim.read_text().replace("xxx", "yyy"))
e = here / "e"
e.mkdir()
stet("init", cwd=e)
stet("remote", "add", "dir", f"dml+remote://dir{store}", cwd=e)
r = stet("remote", "fetch", "dir", cwd=e, env=path)
t("a program that lies is found out", r.returncode == 6 and "stet-remote-dir" in r.stderr, r.stderr)
for reply, why, status in [("not json", "not JSON", 6), ('{"v":1}', "no refs", 6), ('{"v":1,"refs":{"refs/heads/x":"zz"}}', "a ref that is none", 6),
                           ('{"v":2}', '"v":1', 6), ('{"v":1,"refs":{"refs/heads/../x":"%s"}}' % ("0" * 64), "a ref that is none", 6)]:
    (bin / "stet-remote-odd").write_text(f"#!/bin/sh\ncat >/dev/null\necho '{reply}'\n")
    (bin / "stet-remote-odd").chmod(0o755)
    stet("remote", "add", "odd", "dml+remote://odd/", cwd=e)
    r = stet("remote", "fetch", "odd", cwd=e, env=path)
    t(f"a reply that is none: {reply[:40]}", r.returncode == status and why in r.stderr, r.stderr)
(bin / "stet-remote-odd").write_text("#!/bin/sh\necho why >&2\nexit 3\n")
r = stet("remote", "fetch", "odd", cwd=e, env=path)
t("a program that fails", r.returncode == 1 and "status 3: why" in r.stderr, r.stderr)
t("an address starts no other program", stet("remote", "add", "sh", "dml+remote://../bin/sh", cwd=e).returncode == 2)
got = answer("remote", "remove", "origin", cwd=a)
t("a remote is forgotten", got.get("removed") and got["refs"] == 1, got)
for p in (a, b, c, d, e):
    r = stet("check", cwd=p)
    t(f"{p.name} is whole", r.returncode == 0, r.stdout)
finish(None)
