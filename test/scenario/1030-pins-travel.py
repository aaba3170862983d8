#!/usr/bin/env python3
"""Results of calls travel with push, fetch and merge: what one machine ran, another one that fetched it does not run again; two results of one call give way to the same one everywhere; lost and excised results do not travel."""
import json, os, pathlib, sqlite3, urllib.parse

from tap import answer, finish, stet, t

here = pathlib.Path.cwd()
log = here / "log"
log.write_text("")


def project(name, remote=None):
    p = here / name
    p.mkdir()
    stet("init", cwd=p)
    if remote:
        stet("remote", "add", "origin", remote, cwd=p)
    return p


def shell(text):
    return "dml+exec://stet-exec-local/?command=" + urllib.parse.quote_plus(text)


def call(n, p, *more):
    """Each run of a job leaves a line, and no two runs give the same result."""
    return answer("call", "run", shell(f"echo {n} >> {log}; date +%s%N"), *more, cwd=p)


def runs():
    return len(log.read_text().splitlines())


def value(got):
    return got.get("value")


shared = f"file://{here}/shared"
a, b, c = project("a", shared), project("b", shared), project("c", shared)

# ---- push and fetch
first = [value(call(n, a)) for n in range(40)]
failed = shell(f"echo bad >> {log}; exit 3")
t("calls run", runs() == 40 and None not in first, first[:3])
stet("call", "run", failed, cwd=a)
got = answer("remote", "push", "origin", cwd=a)
t("their results go with a push", got.get("pins") == 40, got)
t("once", answer("remote", "push", "origin", cwd=a).get("pins") == 0)
got = answer("remote", "fetch", "origin", cwd=b)
t("and come with a fetch", got.get("pins") == 40, got)
t("once", answer("remote", "fetch", "origin", cwd=b).get("pins") == 0)
before = runs()
t("another machine gets the same", [value(call(n, b)) for n in range(40)] == first)
t("and runs nothing again", runs() == before, log.read_text())
r = stet("call", "run", failed, cwd=b)
t("a failure stays where it happened", r.returncode == 1 and runs() == before + 1, r.stdout + r.stderr)
t("a fetch may leave results there", answer("remote", "fetch", "origin", "--no-pins", cwd=c).get("pins") == 0)
value(call(0, c))
t("then the call runs here too", runs() == before + 2)

# ---- two machines that ran the same call
for p in (a, b):
    call("twice", p)
t("each has its own result", value(call("twice", a)) != value(call("twice", b)))
for p in (a, b, c, a, b):
    stet("remote", "push", "origin", cwd=p)
    stet("remote", "fetch", "origin", cwd=p)
t("after an exchange all have the same one", len({value(call("twice", p)) for p in (a, b, c)}) == 1, [value(call("twice", p)) for p in (a, b, c)])
t("also where results had been left out", value(call(0, c)) == value(call(0, a)) == value(call(0, b)))
before = runs()
for p in (a, b, c):
    stet("remote", "push", "origin", cwd=p)
    t(f"nothing is left to be exchanged with {p.name}", answer("remote", "fetch", "origin", cwd=p).get("pins") == 0)

# ---- a push into a project
d, e = project("d"), project("e")
stet("remote", "add", "peer", f"file://{e}", cwd=d)
call("direct", d)
t("a push into a project", answer("remote", "push", "peer", cwd=d).get("pins") == 1)
before = runs()
t("has its results there", value(call("direct", e)) == value(call("direct", d)) and runs() == before)

# ---- merge
call("merged", d)
stet("dag", "commit", "x", "1", cwd=d)
stet("remote", "push", "peer", "--no-pins", cwd=d)
f = project("f", f"file://{e}")
t("heads alone", answer("remote", "fetch", "origin", "--no-pins", cwd=f).get("pins") == 0)
stet("dag", "merge", "origin/main", "--no-pins", cwd=f)
before = runs()
g = project("g", f"file://{e}")
stet("remote", "fetch", "origin", "--no-pins", cwd=g)
stet("dag", "commit", "y", "2", cwd=g)
stet("dag", "merge", "origin/main", cwd=g)
t("a merge brings what the commit had computed", value(call("merged", g)) == value(call("merged", d)) and runs() == before)
call("merged", f)
t("unless it is told not to", runs() == before + 1)


# ---- results that are lost or excised
def records(p, kind):
    db = sqlite3.connect(p / ".stet/local/repo.db")
    rows = [(bytes(i).hex(), json.loads(bytes(b))) for i, b in db.execute("SELECT id, bytes FROM object WHERE type = ?", (kind,))]
    db.close()
    return rows


def result_of(p, node):
    return next(x["result"] for _, x in records(p, 3) if x["node"] == node)


h = project("h")
nodes = [call(f"lost{n}", h)["node"] for n in range(3)]
db = sqlite3.connect(h / ".stet/local/repo.db")
db.execute("DELETE FROM object WHERE id = ?", (bytes.fromhex(result_of(h, nodes[0])),))
db.commit()
db.close()
stet("dag", "excise", result_of(h, nodes[1]), "--reason", "private", cwd=h)
i = project("i", f"file://{h}")
before = runs()
got = answer("remote", "fetch", "origin", cwd=i)
t("only complete results come", got.get("pins") == 1, got)
t("that one is used", value(call("lost2", i)) == value(call("lost2", h)) and runs() == before)
call("lost0", i), call("lost1", i)
t("the others run", runs() == before + 2)
kept = value(call("lost0", i)), value(call("lost1", i))
answer("remote", "fetch", "origin", cwd=i)
t("and what they gave is not replaced by what is lost", (value(call("lost0", i)), value(call("lost1", i))) == kept)
stet("remote", "add", "i", f"file://{i}", cwd=h)
got = answer("remote", "push", "i", cwd=h)
t("nor does a push send it", got.get("pins") == 0, got)

# ---- behind a program
bin = here / "bin"
bin.mkdir()
(bin / "stet-remote-dir").write_text('''#!/usr/bin/env python3
import json, pathlib, sys, urllib.parse
q = json.load(sys.stdin)
root = pathlib.Path(urllib.parse.urlparse(q["uri"]).path)
(root / "objects").mkdir(parents=True, exist_ok=True)
refs = root / "refs.json"
known = json.loads(refs.read_text()) if refs.exists() else {}
if q["op"] == "list-refs":
    out = {"refs": {k: v for k, v in known.items() if k.startswith(q["prefix"])}}
elif q["op"] == "get-manifest":
    out = {"have": [i for i in q["ids"] if (root / "objects" / i).exists()]}
elif q["op"] == "get-object":
    out = {"objects": [{"id": i, "record": (root / "objects" / i).read_text()} for i in q["ids"] if (root / "objects" / i).exists()]}
elif q["op"] == "put-object":
    for o in q["objects"]:
        (root / "objects" / o["id"]).write_text(o["record"])
    out = {"stored": len(q["objects"])}
else:
    for u in q["updates"]:
        known[u["ref"]] = u["set"]
    refs.write_text(json.dumps(known))
    out = {"ok": True}
print(json.dumps(dict(out, v=1)))
''')
(bin / "stet-remote-dir").chmod(0o755)
env = {"PATH": f"{bin}:{os.environ['PATH']}"}
for p in (a, b):
    stet("remote", "add", "dir", f"dml+remote://dir{here}/store", cwd=p)
call("program", a)
got = answer("remote", "push", "dir", cwd=a, env=env)
t("a program holds results too", got.get("pins", 0) >= 41, got)
call("other", b)
before = runs()
got = answer("remote", "push", "dir", cwd=b, env=env)
t("another one adds to them", got.get("pins") == 1, got)
answer("remote", "fetch", "dir", cwd=a, env=env)
t("without losing any", value(call("other", a)) == value(call("other", b)) and runs() == before)
for p in (a, b, c, d, e, f, g, i):
    r = stet("check", cwd=p)
    t(f"{p.name} is in order", r.returncode == 0, r.stdout)
finish(None)
