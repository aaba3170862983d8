#!/usr/bin/env python3
"""Failures in children, in other spaces and in circles, against a project made from scratch in the same state.

A piece in the space `main` has nodes that fail for some inputs, a map whose children fail for some elements, circles (two that share a node,
one inside the children) that come to rest for some inputs and not for others, and nodes that read a piece of the space `far`, which fails for
some inputs as well. After each step (other inputs, documents, elements, code) a run must say what a new project says: the same failures, the
same member of a circle put aside, as many that wait, the same exit status, and the same values of all that is neither. Printed lines, --json
and `stet status` say the same. A second run names the same failures."""
import json, os, pathlib, random, re, shutil, subprocess, sys

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
STEPS = int(os.environ.get("STET_STEPS") or (2000 if os.environ.get("STET_TEST_LONG") else 8 if os.environ.get("STET_TEST_SHORT") else 25))
SEED = int(os.environ.get("STET_SEED", "1"))
rand = random.Random(SEED)
base = pathlib.Path.cwd()


def far(id):
    return {"/": {"link@1": {"id": id, "space": "far"}}}


def js(code):
    return {"type": "javascript", "implementation": code}


class State:
    def __init__(self):
        self.x = {k: rand.randrange(4) for k in ("a", "b", "c", "d")}  # 0 fails
        self.far = rand.randrange(4)
        self.list = self.draw_list()
        self.turn = [rand.random() < 0.5 for _ in range(4)]             # does that circle come to rest?
        self.code = 0
        self.share = rand.random() < 0.5
        self.demand_far = rand.random() < 0.7
        self.order = rand.sample(range(12), 12)

    def draw_list(self):
        return [{"id": i, "n": rand.randrange(4), "rest": rand.random() < 0.7} for i in rand.sample(["p", "q", "r", "s"], rand.randrange(0, 4))]

    def step(self):
        what = rand.choice(["x", "x", "far", "list", "list", "turn", "code", "share", "order"])
        if what == "x":
            self.x[rand.choice("abcd")] = rand.randrange(4)
        elif what == "far":
            self.far = rand.randrange(4)
        elif what == "list":
            self.list = self.draw_list()
        elif what == "turn":
            i = rand.randrange(4)
            self.turn[i] = not self.turn[i]
        elif what == "code":
            self.code += 1
        elif what == "share":
            self.share = not self.share
        else:
            rand.shuffle(self.order)
        return what

    def patterns(self):
        arg = lambda k: {"$": f"argument/{k}"}
        fails = lambda k: "({%s}) => { if (%s === 0) throw new Error('zero'); return %s + %d }" % (k, k, k, self.code)
        # A circle: each adds one to the other's value until it is 5, or without an end.
        turn = "({o, rest}) => rest ? Math.min((o ?? 0) + 1, 5) : (o ?? 0) + 1"
        both = "({o, p, rest}) => rest ? Math.min(Math.max(o ?? 0, p ?? 0) + 1, 5) : Math.max(o ?? 0, p ?? 0) + 1"
        q = {"pattern": 1, "name": "q", "argument": {"default": {"y": self.far}}, "nodes": [
            {"id": "v", "inputs": {"y": arg("y")}, "module": js(fails("y"))},
            {"id": "w", "inputs": {"v": {"$": "v"}}, "module": js("({v}) => v * 2")}], "result": {"w": {"$": "w"}}}
        inner = {"pattern": 1, "name": "k", "nodes": [
            {"id": "f", "inputs": {"n": arg("element/n")}, "module": js("({n}) => { if (n === 0) throw new Error('none'); return n }")},
            {"id": "l", "inputs": {"o": {"$": "m"}, "rest": arg("element/rest")}, "module": js(turn)},
            {"id": "m", "inputs": {"o": {"$": "l"}, "rest": arg("element/rest")}, "module": js(turn)},
            {"id": "g", "inputs": {"f": {"$": "f"}, "l": {"$": "l"}}, "module": js("({f, l}) => f * 10 + l")}], "result": {"g": {"$": "g"}, "f": {"$": "f"}}}
        nodes = [
            {"id": "na", "inputs": {"a": arg("a")}, "module": js(fails("a"))},
            {"id": "nb", "inputs": {"a": {"$": "na"}, "b": arg("b")}, "module": js("({a, b}) => { if (b === 0) throw new Error('b'); return a + b }")},
            {"id": "lazy", "inputs": {"c": arg("c"), "a": {"$": "na"}, "w": far("piece:q:node:w")}, "module": js("({c, a, w}) => c % 2 ? a : w")},
            {"id": "kids", "inputs": {"list": arg("list")}, "module": {"type": "ref", "ref": "map", "key": "id", "pattern": inner}},
            {"id": "sum", "inputs": {"kids": {"$": "kids"}}, "module": js("({kids}) => kids.map(k => k.f).join()")},
            {"id": "u1", "inputs": {"o": {"$": "hub"}, "rest": arg("t0")}, "module": js(turn)},
            {"id": "hub", "inputs": {"o": {"$": "u1"}, "p": {"$": "u2" if self.share else "u1"}, "rest": arg("t1")}, "module": js(both)},
            {"id": "u2", "inputs": {"o": {"$": "hub" if self.share else "u3"}, "rest": arg("t2")}, "module": js(turn)},
            {"id": "u3", "inputs": {"o": {"$": "u2"}, "rest": arg("t3")}, "module": js(turn)},
            {"id": "after", "inputs": {"h": {"$": "hub"}, "u": {"$": "u3"}}, "module": js("({h, u}) => h + u")},
            {"id": "thrower", "inputs": {"w": far("piece:q:node:w"), "d": arg("d")}, "module": js("({d, w}) => { if (d === 0) throw new Error('first'); return w }")},
            {"id": "end", "inputs": {"a": {"$": "nb"}, "t": {"$": "thrower"}}, "module": js("({a, t}) => a + t")}]
        argument = {**self.x, "list": self.list, **{f"t{i}": t for i, t in enumerate(self.turn)}}
        p = {"pattern": 1, "name": "p", "argument": {"default": argument}, "nodes": [nodes[i] for i in self.order],
             "result": {n["id"]: {"$": n["id"]} for n in nodes}}
        return p, q


def stet(where, *words):
    return subprocess.run([STET, *words], cwd=where, capture_output=True, text=True, timeout=120)


def wrong(text):
    print(f"not ok 1 - failures are the same as from scratch\n# seed {SEED}, step {step} ({what}): " + text.replace("\n", "\n# "))
    print("#", json.dumps(state.__dict__))
    sys.exit(1)


def write(where):
    p, q = state.patterns()
    (where / "p.json").write_text(json.dumps(p))
    (where / "q.json").write_text(json.dumps(q))


def name(x):
    return (x.get("space", ""), x["piece"], x["node"])


def run(where, *more):
    done = stet(where, "run", "-k", "p.json", "--json", *more)
    out = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"error": done.stderr}
    if "error" in out:
        wrong(f"{where.name}: {out['error']}")
    named = {name(x): x["error"]["message"] for x in out["problems"]} | {name(x): x["error"]["message"] for x in out.get("failedBefore", [])}
    if len(named) != out["failed"] + out["aside"] or done.returncode != (1 if named else 0):
        wrong(f"{where.name}: failed {out['failed']}, aside {out['aside']}, status {done.returncode}, named {sorted(named)}")
    if "--no-retry-failed" in more and out["ran"]:
        wrong(f"{where.name}: --no-retry-failed ran {out['ran']}")
    return out, named


def states(where):
    return {a["action"]: a["state"] for a in json.loads(stet(where, "action", "list", "p", "--limit", "1000", "--json").stdout)["actions"]}


def said(where, named):
    """Lines for people, and status."""
    done = stet(where, "run", "-k", "p.json")
    lines = re.findall(r"^(?:failed|aside) +(\S+?)/(\S+?): ", done.stdout, re.M)
    count = re.search(r"failed (\d+)", done.stdout)
    aside = re.search(r"aside (\d+)", done.stdout)
    total = int(count[1]) + (int(aside[1]) if aside else 0)
    if {(p, n) for p, n in lines} != {(p, n) for _, p, n in named} or total != len(named) or done.returncode != (1 if named else 0):
        wrong(f"{where.name}: a second run prints\n{done.stdout}with status {done.returncode}; named {sorted(named)}")
    row = json.loads(stet(where, "status", "p", "--json").stdout)["pieces"][0]
    own = {n for space, p, n in named if p == "p" and "did not come to rest" not in named[space, p, n]}
    if own != set(row.get("failures", {})):
        wrong(f"{where.name}: status lists {sorted(row.get('failures', {}))}, the run {sorted(own)}")
    if (row["failed"] + row["dirty"] + row["stale"] + row["unknown"] > 0) != bool(named):
        wrong(f"{where.name}: status {row}, the run {sorted(named)}")


print("1..1")
state, step, what = State(), 0, "start"
here = base / "here"
here.mkdir()
stet(here, "init")
write(here)
stet(here, "run", "-k", "q.json", "--space", "far")
failures = asides = waits = 0
for step in range(STEPS):
    if step:
        for _ in range(rand.choice([1, 1, 2])):
            what = state.step()
        write(here)
    mine, named = run(here)
    new = base / "new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    stet(new, "init")
    write(new)
    stet(new, "run", "-k", "q.json", "--space", "far")
    other, expected = run(new)
    if named != expected or mine["waiting"] != other["waiting"] or mine["aside"] != other["aside"] or mine["failed"] != other["failed"]:
        wrong(f"{named}, {mine['waiting']} wait\nfrom scratch {expected}, {other['waiting']} wait")
    failures, asides, waits = failures + mine["failed"], asides + mine["aside"], waits + mine["waiting"]
    stand, now = {n for n, s in states(new).items() if s == "stands"}, states(here)
    if bad := [n for n in stand if now.get(n) != "stands"]:
        wrong(f"{bad}: {[now.get(n) for n in bad]}, and from scratch they stand")
    for n in stand - {"kids"}:  # links to what the children made, whether or not that stands
        a, b = (json.loads(stet(w, "get", f"piece:p:node:{n}", "--json").stdout).get("value") for w in (here, new))
        if a != b:
            wrong(f"{n} is {a}, from scratch {b}")
    said(here, named)
    if not mine["aside"]:
        run(here, "--no-retry-failed")
if (found := stet(here, "check")).returncode != 0:
    wrong(found.stdout)
print(f"ok 1 - failures are the same as from scratch ({STEPS} steps, {failures} failures, {asides} put aside, {waits} waited)")
