#!/usr/bin/env python3
"""`stet accept` against a model: random graphs of values, random edits, acceptances, revocations, runs of all and of single nodes, on the default branch,
a fork and across spaces. The model says after each step in which state every action is and which value it holds; after everything is revoked, a run makes
what a fresh project makes."""
import json, os, pathlib, random, tempfile
from tap import LONG, SHORT, answer, finish, stet, t

SEED = int(os.environ.get("STET_SEED", "1"))
rand = random.Random(SEED)
TOP = pathlib.Path(tempfile.mkdtemp()).resolve()
os.environ["STET_HOME"] = str(TOP / "home")
SOURCES = ["s0", "s1", "s2"]


class Model:
    """Sources are numbers; a node is the sum or the maximum of what it reads. A change is an event: it makes readers dirty, whatever the values are."""

    def __init__(self, n):
        self.reads = {}
        self.function = {}
        names = []
        for i in range(n):
            self.reads[f"n{i}"] = sorted(rand.sample(SOURCES + names, min(len(SOURCES + names), rand.randint(1, 3))))
            self.function[f"n{i}"] = rand.choice(["sum", "max", "max"])
            names.append(f"n{i}")
        self.nodes = names
        self.source = {s: rand.randint(0, 3) for s in SOURCES}
        self.value = {}
        self.dirty = {}
        self.accepted = set()
        self.unknown = set(names)

    def pattern(self, name):
        ref = {s: {"$": f"argument/{s}"} for s in SOURCES} | {n: {"$": n} for n in self.nodes}
        return {"pattern": 1, "name": name, "argument": {"default": dict(self.source)},
                "nodes": [{"id": n, "module": {"type": "ref", "ref": self.function[n]}, "inputs": {"values": [ref[r] for r in self.reads[n]]}} for n in self.nodes],
                "result": {n: {"$": n} for n in self.nodes}}

    def changed(self, what):
        for n in self.nodes:
            if what in self.reads[n] and n not in self.unknown:
                self.dirty[n] = True
                self.accepted.discard(n)

    def set(self, s, v):
        if self.source[s] != v:
            self.source[s] = v
            self.changed(s)

    def computed(self, n, values):
        xs = [values[r] for r in self.reads[n]]
        return sum(xs) if self.function[n] == "sum" else max(xs)

    def outdated(self, n):
        return n in self.unknown or n in self.dirty

    def above(self, n):
        out, todo = set(), [n]
        while todo:
            for r in self.reads.get(todo.pop(), []):
                if r in self.reads and r not in out:
                    out.add(r)
                    todo.append(r)
        return out

    def state(self, n):
        if n in self.unknown:
            return "unknown"
        if n in self.dirty:
            return "dirty"
        if any(self.outdated(a) for a in self.above(n)):
            return "stale"
        return "accepted" if n in self.accepted else "stands"

    def through(self, n):
        return self.state(n) == "stands" and any(a in self.accepted for a in self.above(n))

    def accept(self, n):
        if n not in self.dirty or n in self.unknown:
            return False
        del self.dirty[n]
        self.accepted.add(n)
        return True

    def revoke(self, n):
        if n not in self.accepted:
            return False
        self.accepted.discard(n)
        self.unknown.add(n)
        return True

    def run(self, wanted):
        wanted = set(self.nodes) if wanted is None else self.above(wanted) | {wanted}
        ran = 0
        for n in self.nodes:
            if n in wanted and self.outdated(n):
                was = self.value.get(n)
                self.unknown.discard(n)
                self.dirty.pop(n, None)
                self.value[n] = self.computed(n, self.source | self.value)
                ran += 1
                if was != self.value[n]:
                    self.changed(n)
        return ran

    def fresh(self):
        values = dict(self.source)
        for n in self.nodes:
            values[n] = self.computed(n, values)
        return {n: values[n] for n in self.nodes}


def compare(m, piece, more):
    """What stet says of every action, against the model."""
    bad = []
    for a in answer("action", "list", piece, *more)["actions"]:
        n = a["action"]
        if a["state"] != m.state(n) or bool(a.get("through")) != m.through(n):
            bad.append((n, a, m.state(n), m.through(n)))
    row = answer("status", piece, *more)["pieces"][0]
    states = [m.state(n) for n in m.nodes]
    if any(row[s] != states.count(s) for s in ("stands", "dirty", "stale", "unknown", "accepted")) or row.get("throughAccepted", 0) != sum(map(m.through, m.nodes)):
        bad.append((row, states))
    for n in m.nodes:
        if n in m.value and n in rand.sample(m.nodes, 1):
            v = answer("get", f"piece:{piece}:node:{n}", *more)
            if v.get("value", v) != m.value[n]:
                bad.append((n, v, m.value[n]))
            why = stet("why", piece, n, *more).stdout
            if ("is accepted" in why) != (m.state(n) == "accepted") or ("which was accepted" in why) != m.through(n):
                bad.append((n, why, m.state(n), m.through(n)))
    return bad


def step(m, piece, more, trace):
    what = rand.choice(["set", "set", "accept", "accept", "accept", "revoke", "run", "node"])
    if what == "set":
        s, v = rand.choice(SOURCES), rand.randint(0, 3)
        stet("set", f"piece:{piece}:argument/{s}", str(v), *more)
        m.set(s, v)
        trace.append((what, s, v))
        return []
    if what in ("accept", "revoke"):
        likely = list(m.dirty) if what == "accept" else list(m.accepted)
        n = rand.choice(likely) if likely and rand.random() < 0.8 else rand.choice(m.nodes)
        r = stet("accept", piece, n, *(["--reason", f"because {n}"] if what == "accept" else ["--revoke"]), *more)
        done = m.accept(n) if what == "accept" else m.revoke(n)
        trace.append((what, n, done))
        return [] if (r.returncode == 0) == done else [(what, n, done, r.stdout + r.stderr)]
    n = rand.choice(m.nodes) if what == "node" else None
    if n:
        r = answer("run", "./" + piece + ".json", n, *more)
        m.run(n)
        trace.append((what, n))
        return [] if "error" not in r else [r]
    r = answer("run", "./" + piece + ".json", *more)
    ran = m.run(None)
    trace.append((what,))
    accepted, through = sum(m.state(x) == "accepted" for x in m.nodes), sum(map(m.through, m.nodes))
    right = (r.get("ran"), r.get("accepted", 0), r.get("throughAccepted", 0), r.get("stood")) == (ran, accepted, through, len(m.nodes) - ran - accepted)
    return [] if right else [(r, ran, accepted, through)]


bad, steps, seen = [], 0, set()
for project in range(20 if LONG else 1):
    here = TOP / f"p{project}"
    here.mkdir()
    os.chdir(here)
    m = Model(rand.randint(4, 7))
    (here / "main.json").write_text(json.dumps(m.pattern("main")))
    stet("init")
    stet("run", "./main.json")
    m.run(None)
    trace = []
    for _ in range(80 if LONG else 12 if SHORT else 30):
        found = step(m, "main", [], trace)
        steps += 1
        if rand.random() < (1 if LONG else 0.5):
            found += compare(m, "main", [])
        seen |= {m.state(n) for n in m.nodes} | {"through" for n in m.nodes if m.through(n)}
        if found:
            bad.append((SEED, project, m.reads, m.function, trace, found))
            break
    for n in m.nodes:
        if m.accept(n):
            stet("accept", "main", n, "--reason", "for the fork")
    stet("branch", "create", "fork")
    r = answer("action", "list", "main", "--branch", "fork")
    if any(a["state"] == "accepted" or a.get("through") for a in r["actions"]):
        bad.append(("a fork has accepted actions", r))
    r = answer("run", "./main.json", "--branch", "fork")
    values = {n: r["result"][n] for n in m.nodes}
    if values != m.fresh():
        bad.append(("a fork computes all", values, m.fresh()))
    for n in m.nodes:
        if m.revoke(n):
            stet("accept", "main", n, "--revoke")
    m.run(None)
    r = answer("run", "./main.json")
    if {n: r["result"][n] for n in m.nodes} != m.fresh() or r.get("accepted"):
        bad.append(("after a revocation all is as in a fresh project", r, m.fresh(), trace))
    c = stet("check", "--rerun")
    if c.returncode:
        bad.append(("check", c.stdout))
t(f"{steps} steps are as in the model", not bad, "\n".join(map(str, bad[:2])))
t("all states occurred", not LONG or seen >= {"stands", "dirty", "stale", "accepted", "through"}, seen)

# Across spaces: what is accepted there is told here, and a change there lapses what is accepted here.
here = TOP / "spaces"
here.mkdir()
os.chdir(here)
stet("init")
(here / "far.json").write_text(json.dumps({"pattern": 1, "name": "far", "argument": {"default": {"a": 1}}, "nodes": [
    {"id": "sum", "module": {"type": "ref", "ref": "sum"}, "inputs": {"values": [{"$": "argument/a"}, 1]}}], "result": {"$": "sum"}}))
(here / "near.json").write_text(json.dumps({"pattern": 1, "name": "near", "nodes": [
    {"id": "twice", "module": {"type": "ref", "ref": "multiply"}, "inputs": {"values": [{"/": {"link@1": {"id": "piece:far:node:sum", "space": "other"}}}, 2]}},
    {"id": "check", "module": {"type": "ref", "ref": "equal"}, "inputs": {"a": {"$": "twice"}, "b": 4}, "verifier": True}], "result": {"$": "twice"}}))
stet("run", "./far.json", "--space", "other")
r = answer("run", "./near.json")
t("both spaces run", r.get("result") == 4, r)
stet("set", "piece:far:argument/a", "5", "--space", "other")
t("accepted there", stet("accept", "far", "sum", "--space", "other", "--reason", "there").returncode == 0)
a = {x["action"]: x for x in answer("action", "list", "near")["actions"]}
t("told here", a["twice"]["state"] == "stands" and a["twice"]["through"]["action"] == "far/sum" and a["twice"]["through"]["space"] == "other", a)
r = answer("run", "./near.json", "--record")
t("and by why", "which was accepted" in stet("why", "near").stdout, stet("why", "near").stdout)
t("a run that rests on it has no verdict", r["throughAccepted"] == 2 and not r["committed"] and r.get("unverified") in (None, ["check"]), r)
r = stet("get", "piece:near", "--fresh")
t("get --fresh says so", "not proved" in r.stderr and json.loads(r.stdout), r.stdout + r.stderr)
stet("accept", "far", "sum", "--space", "other", "--revoke")
stet("run", "./far.json", "--space", "other")
t("a far change marks the reader", answer("status", "near")["pieces"][0]["dirty"] == 1)
t("which can be accepted, too", stet("accept", "near", "twice", "--reason", "a far change").returncode == 0)
r = answer("run", "./near.json")
t("a dry run counts it", "1 accepted; nothing was run" in stet("run", "./near.json", "-n").stdout, stet("run", "./near.json", "-n").stdout)
t("and keeps its value", r["ran"] == 0 and r["accepted"] == 1 and r["result"] == 4, r)
t("a verifier can't be accepted", "verifier" in stet("accept", "near", "check", "--reason", "no").stderr)
stet("set", "piece:far:argument/a", "6", "--space", "other")
stet("run", "./far.json", "--space", "other")
t("the next far change lapses it", answer("run", "./near.json").get("result") == 14)
t("stet check", stet("check").returncode == 0, stet("check").stdout)

# Commands: the cache never learns of it, and what is refused.
here = TOP / "commands"
here.mkdir()
os.chdir(here)
stet("init")
(here / "a.c").write_text("a\n")
(here / "stet.toml").write_text('name = "c"\n[nodes.obj]\ncommand = "cat {in} > {out}"\nfiles = "a.c"\nproduces = "a.o"\n'
                                '[nodes.app]\ncommand = "cat {in} > {out}"\nfiles = "$obj.out"\nproduces = "app"\n'
                                '[nodes.fails]\ncommand = "cat {in}; false"\nfiles = "a.c"\nproduces = "never"\n')
stet("run", "-k")
refused = stet("accept", "obj", "--reason", "x")
t("what is up to date can't be accepted", refused.returncode and "nothing that it read has changed" in refused.stderr, refused.stderr)
(here / "a.c").write_text("a // comment\n")
t("a failed action can't be accepted", "its last run failed" in stet("accept", "fails", "--reason", "x").stderr)
t("an acceptance needs a reason", "needs a reason" in stet("accept", "obj").stderr)
t("an outdated one is accepted by its file", stet("accept", "a.o", "--reason", "only a comment").returncode == 0)
stet("run", "-k")
c = stet("check", "--rerun", "all", "--commands")
t("check --rerun leaves it out and says so", c.returncode == 0 and "1 accepted and not compared" in c.stdout, c.stdout + c.stderr)
t("its output stays", (here / "app").read_text() == "a\n")
(here / "a.o").unlink()
t("a lost output lapses it", answer("status", "c")["pieces"][0]["accepted"] == 0)
stet("run", "-k")
t("and it is made anew", (here / "app").read_text() == "a // comment\n")
(here / "a.c").write_text("a // again\n")
stet("accept", "obj", "--reason", "once more")
(here / "stet.toml").write_text((here / "stet.toml").read_text().replace('"cat {in} > {out}"\nfiles = "a.c"', '"cat  {in} > {out}"\nfiles = "a.c"'))
a = answer("action", "show", "c", "obj")
t("another command lapses it", a["state"] == "unknown", a)
r = stet("accept", "obj", "--reason", "no")
t("and can't be accepted", r.returncode and "more than its inputs has changed" in r.stderr, r.stderr)
clone = TOP / "clone"
clone.mkdir()
for f in ("a.c", "stet.toml"):
    (clone / f).write_text((here / f).read_text())
stet("init", cwd=clone)
stet("run", "-k", cwd=clone)
stet("run", "-k")
t("another project never sees it", (clone / "app").read_text() == (here / "app").read_text() == "a // again\n")
finish()
