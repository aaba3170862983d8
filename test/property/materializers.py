#!/usr/bin/env python3
"""Computations and children that write through cells, against a new project with the same pattern and the same argument.

A pattern is drawn at random. Writers of keys of their own, into cells of the pattern: plain computations, children of `map`, `filter` and
`reduce`, children of children, children of a pattern that a node returns; with a declared envelope, a part of one, or none; given the cell by
their coordinator or taking it as one themselves; shown in the result or not; over a list that is computed; failing for some inputs. Readers of
all of a cell, of its keys, of one key, through a cell, of other readers; a handler that stores what a reader says; another piece.

Steps: inputs and lists changed, the pattern edited, single nodes, parts and cells asked for, events sent, whole runs, branches forked, all
tables of the scheduler emptied, runs without records.

After each step: what `action list` calls up to date has the value that a new project gives it, and does not fail there; `status`, `why` and a
dry run agree with it. And in copies of the project, a part of the result that is asked for (--fresh, --demand, pull, a run of its node), what
a handler stores and what another piece reads are what the new project has, or are refused where something fails there, too; after a whole run
nothing is outdated but what waits for a failure, and cells and result are those of the new project."""
import json, os, pathlib, random, shutil, sqlite3, subprocess, sys, time

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
PROGRAMS = int(os.environ.get("STET_PROGRAMS") or (1000 if LONG else 2 if SHORT else 12))
STEPS = int(os.environ.get("STET_STEPS") or (20 if LONG else 4 if SHORT else 6))
SECONDS = 1e9 if LONG else 40
SEED = int(os.environ.get("STET_SEED", "1"))
TABLES = "action past_observation fingerprint place_index mark survey foreign_space foreign_read mirror_owner mirror complete_branch".split()
IDS = ["a", "b", "c", "d"]


class Failed(Exception):
    pass


def cli(where, *words, ok=(0,)):
    done = subprocess.run([STET, "--json", *words], cwd=where, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode not in ok:
        raise Failed(f"stet {' '.join(words)}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() and done.returncode == 0 else None


def arg(key):
    return {"$": f"argument/{key}"}


def js(text):
    return {"type": "javascript", "implementation": text}


# ---- Programs

class Program:
    def __init__(self, rng):
        self.rng = rng
        self.cells = {f"c{i}": rng.choice([{}, {"z": 1}, {"wa": 0}]) for i in range(rng.randint(1, 2))}
        self.writers = [self.draw_writer(i) for i in range(rng.randint(1, 3))]
        self.readers = []
        for i in range(rng.randint(2, 4)):
            self.readers.append({"how": rng.choice(["keys", "value", "key", "cell", "reader"]), "cell": rng.choice(list(self.cells)),
                                 "shown": i == 0 or rng.random() < 0.7})
        self.more = 0

    def draw_writer(self, i):
        r = self.rng
        return {"id": f"w{i}", "cell": r.choice(list(self.cells)), "kind": r.choice(["plain", "map", "map", "filter", "reduce", "nested", "returns"]),
                "declared": r.choice(["no", "all", "all", "part"]), "passed": r.random() < 0.7, "shown": r.random() < 0.5, "fails": r.random() < 0.4,
                "guard": r.choice(["", "", "if (on) "]), "computed": r.random() < 0.4, "reads": r.random() < 0.3, "split": r.random() < 0.3}

    def write(self, w, name, key, x, cell, fails):
        """A node that writes one key of its own. Those of children come by element."""
        inputs = {"x": x, "on": arg("on"), "bad": arg("bad"), "e": key, "c": cell}
        text = f"({{x, on, bad, e, c}}) => {{ " + (f"if (x === bad) throw new Error('bad'); " if fails else "")
        where = f"c.key('{w['id']}')" if w["declared"] == "part" else "c"
        text += f"{w['guard']}{where}.key('{w['id']}' + e).set(x); return x }}"
        node = {"id": name, "inputs": inputs, "module": js(text)}
        if w["declared"] != "no":
            node["materializerWriteInputPaths"] = ["c"] if w["declared"] == "all" else [f"c/{w['id']}"]
        return node

    def child(self, w):
        outer = {"on": arg("on"), "bad": arg("bad")}
        cell = {"$": "argument/c", "asCell": True}
        q = self.write(w, "q", arg("element/id"), arg("element/x"), cell, w["fails"])
        if w["kind"] == "nested":
            inner = {"pattern": 1, "name": "inner", "nodes": [self.write(w, "q", arg("element"), arg("x"), cell, w["fails"])], "result": {"$": "q"}}
            nodes = [{"id": "n", "inputs": {"list": arg("element/sub"), "x": arg("element/x"), "c": {"$": "argument/c", **({"asCell": True} if w["passed"] else {})}} | outer,
                      "module": {"type": "ref", "ref": "map", "pattern": inner}}]
            result = {"$": "n"} if w["shown"] or w["split"] else arg("element/id")
        else:
            nodes, result = [q], {"$": "q"}
            if w["split"]:
                nodes.append({"id": "v", "inputs": {"value": arg("element/x")}, "module": {"type": "ref", "ref": "value"}})
                result = {"$": "v"}
            if w["kind"] == "reduce":
                nodes.append({"id": "s", "inputs": [arg("accumulator"), arg("element/x")], "module": {"type": "ref", "ref": "add"}})
                result = {"$": "s"}
        return {"pattern": 1, "name": "child", "nodes": nodes, "result": result}

    def nodes_of(self, w):
        cell = {"$": w["cell"], "asCell": True}
        given = cell if w["passed"] else {"$": w["cell"]}
        if w["kind"] == "plain":
            return [self.write(w, w["id"], arg("k"), arg("x"), cell, w["fails"])]
        if w["kind"] == "returns":
            made = self.write(w, "q", arg("k"), arg("x"), {"$": "argument/c", "asCell": True}, w["fails"])
            made["inputs"] |= {"e": arg("k")}
            text = "({x, k, on, bad, c}) => x %% 3 ? %s : null" % json.dumps({"pattern": 1, "name": "made", "nodes": [made], "result": {"$": "q"}})
            return [{"id": w["id"], "returns": "pattern", "inputs": {"x": arg("x"), "k": arg("k"), "on": arg("on"), "bad": arg("bad"), "c": cell},
                     "module": js(text)}]
        nodes, of = [], arg("list")
        if w["computed"]:
            of = {"$": f"l{w['id']}"}
            nodes.append({"id": f"l{w['id']}", "inputs": {"list": arg("list"), "x": arg("x")}, "module": js("({list, x}) => x % 2 ? list : list.slice(1)")})
        node = {"id": w["id"], "inputs": {"list": of, "c": given, "on": arg("on"), "bad": arg("bad")},
                "module": {"type": "ref", "ref": {"nested": "map"}.get(w["kind"], w["kind"]), "key": "id", "pattern": self.child(w)}}
        if w["kind"] == "reduce":
            node["inputs"]["initial"] = 0
        return nodes + [node]

    def pattern(self, argument):
        nodes, result = [], {}
        for w in self.writers:
            nodes += self.nodes_of(w)
            if w["shown"]:
                result[w["id"]] = {"$": w["id"]}
        for i, r in enumerate(self.readers):
            id, cell = f"r{i}", {"$": r["cell"]}
            if r["how"] == "keys":
                nodes.append({"id": id, "inputs": {"value": cell}, "module": {"type": "ref", "ref": "keys"}})
            elif r["how"] == "key":
                nodes.append({"id": id, "inputs": {"value": {"$": f"{r['cell']}/w{i % 2}{IDS[i % 3]}"}}, "module": {"type": "ref", "ref": "value"}})
            elif r["how"] == "cell":
                nodes.append({"id": id, "inputs": {"c": cell | {"asCell": True}}, "module": js("({c}) => Object.keys(c.get()).sort()")})
            else:
                nodes.append({"id": id, "inputs": {"value": {"$": "r0"} if r["how"] == "reader" and i else cell}, "module": {"type": "ref", "ref": "value"}})
            if r["shown"]:
                result[id] = {"$": id}
        nodes.append({"id": "h", "stream": {"$": "h"}, "inputs": {"r": {"$": "r0"}, "out": {"$": "out", "asCell": True}},
                      "module": {"type": "javascript", "handler": True, "implementation": "(e, {r, out}) => { out.set({r}) }"}})
        for i in range(self.more):
            nodes.append({"id": f"more{i}", "inputs": [i, 1], "module": {"type": "ref", "ref": "sum"}})
        return {"pattern": 1, "name": "p", "argument": {"default": argument}, "cells": {n: {"default": d} for n, d in self.cells.items()} | {"out": {}},
                "nodes": nodes, "result": result}


# ---- The project and the new one

class World:
    def __init__(self, rng, root):
        self.rng, self.root = rng, root
        self.where = root / "p"
        self.program = Program(rng)
        self.argument = {"x": 1, "k": "a", "on": True, "bad": None, "list": [{"id": "a", "x": 1, "sub": ["as"]}]}
        self.first = dict(self.argument)
        self.branch = ""
        self.log = []
        shutil.rmtree(root, ignore_errors=True)
        self.where.mkdir(parents=True)
        cli(self.where, "init")
        self.write()
        other = {"pattern": 1, "name": "q", "nodes": [{"id": "z", "inputs": {"value": {"/": {"link@1": {"id": "piece:p", "path": ["r0"]}}}},
                                                       "module": {"type": "ref", "ref": "value"}}], "result": {"$": "z"}}
        (self.where / "q.json").write_text(json.dumps(other))

    def start(self):
        self.stet(self.where, "run", "p.json")
        self.stet(self.where, "run", "q.json")

    def write(self):
        (self.where / "p.json").write_text(json.dumps(self.program.pattern(self.first), indent=1))

    def stet(self, where, *words, ok=(0,)):
        if where == self.where and words[0] not in ("action", "status", "why"):
            self.log.append("stet " + " ".join(f"'{w}'" if any(c in w for c in ' "{}[]') else w for w in words))
        return cli(where, *words, *(["--branch", self.branch] if self.branch else []), ok=ok)

    # ---- Steps

    def set(self, key, value):
        self.argument[key] = value
        self.stet(self.where, "set", f"piece:p:argument/{key}", json.dumps(value))

    def do_scalar(self):
        r = self.rng
        self.set(*r.choice([("x", r.randint(0, 4)), ("k", r.choice(IDS)), ("on", r.random() < 0.5), ("bad", r.choice([None, None, None, 1, 2]))]))

    def do_list(self):
        ids = self.rng.sample(IDS, self.rng.randint(0, 3))
        self.set("list", [{"id": i, "x": self.rng.randint(0, 3), "sub": self.rng.sample([i + "s", i + "t"], self.rng.randint(0, 2))} for i in ids])

    def do_run(self):
        self.stet(self.where, "run", "p.json", ok=(0, 1))

    def do_ask(self):
        r = self.rng
        part = r.choice(list(self.program.pattern(self.first)["result"]))
        words = r.choice([("get", f"piece:p/{part}", "--fresh"), ("run", "p.json", "--demand", part), ("run", "p.json", r.choice(self.nodes())),
                          ("get", f"piece:p:cell:{r.choice(list(self.program.cells))}", "--fresh"), ("run", "q.json"), ("piece", "send", "p", "h")])
        self.stet(self.where, *words, ok=(0, 1, 3, 5, 10))

    def do_fork(self):
        if not self.branch:
            self.log.append("stet branch create b; from here on --branch b")
            cli(self.where, "branch", "create", "b")
            self.branch = "b"

    def do_empty(self):
        self.log.append("all tables of the scheduler emptied")
        db = sqlite3.connect(self.where / ".stet/local/spaces/main.db")
        for t in TABLES:
            db.execute(f"delete from {t}")
        db.commit()
        db.close()

    def do_volatile(self):
        config = self.where / ".stet/config.toml"
        text = config.read_text()
        config.write_text(text + "\n[scheduler]\npersist = false\n")
        self.log.append("without records:")
        self.stet(self.where, "run", "p.json", ok=(0, 1))
        config.write_text(text)

    def do_pattern(self):
        p, r = self.program, self.rng
        what = r.choice(["writer", "writer", "gone", "more"])
        if what == "writer":
            i = r.randrange(len(p.writers))
            p.writers[i] = p.draw_writer(i)
        elif what == "gone" and len(p.writers) > 1:
            p.writers.pop()
        else:
            p.more = 1 - p.more
        self.log.append(f"edit of the pattern: {what}")
        self.write()
        self.stet(self.where, "run", "p.json", ok=(0, 1)) if r.random() < 0.5 else None

    def nodes(self):
        return [n["id"] for n in self.program.pattern(self.first)["nodes"] if n["id"] != "h"]

    # ---- Looking

    def new(self):
        to = self.root / "new"
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        cli(to, "init")
        (to / "p.json").write_text(json.dumps(self.program.pattern(self.argument)))
        cli(to, "run", "p.json", ok=(0, 1))
        return to

    def copy(self):
        to = self.root / "copy"
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.where, to)
        return to

    def surfaces(self):
        """Actions that are called up to date. All surfaces agree."""
        if self.stet(self.where, "status", "p")["owed"]:
            return []  # commits without records, not looked at yet: all surfaces say that the next run may find more
        actions = self.stet(self.where, "action", "list", "p")["actions"]
        states = {a["action"]: a["state"] for a in actions}
        for state in ("stands", "dirty", "stale", "unknown"):
            want = sum(a["state"] == state and not (state == "stands" and a["failed"]) for a in actions)
            got = self.stet(self.where, "status", "p")["pieces"][0][state]
            if got != want:
                raise Failed(f"status: {got} {state}; action list: {json.dumps(states)}")
        for why in self.stet(self.where, "why", "p")["reasons"]:
            if why["state"] != states.get(why["action"]):
                raise Failed(f"why: {json.dumps(why)}; action list: {states.get(why['action'])}")
        dry = {a["node"]: a["state"] for a in self.stet(self.where, "run", "p.json", "-n", ok=(0, 1))["actions"]}
        for node, state in states.items():
            if node in dry and dry[node] != state or node not in dry and state in ("dirty", "stale"):
                raise Failed(f"{node}: dry run: {dry.get(node)}; action list: {state}")
        # What a coordinator makes are links to its children, which stand or not for themselves.
        lists = [w["id"] for w in self.program.writers if w["kind"] != "plain"]
        return [a["action"] for a in actions if a["state"] == "stands" and not a["failed"] and a["action"].rstrip("[]") not in lists and not a["action"].endswith(".n")]

    def look(self):
        stands = self.surfaces()
        new = self.new()
        for action in stands:
            was = self.stet(self.where, "get", f"piece:p:node:{action}", ok=(0, 1, 3))
            now = cli(new, "get", f"piece:p:node:{action}", "--fresh", ok=(0, 1, 3, 10))
            if (was and was["value"]) != (now and now["value"]):
                raise Failed(f"{action} is called up to date with {json.dumps(was and was['value'])}; in a new project: {json.dumps(now and now['value'])}")
        self.ask(new)
        self.whole(new)

    def ask(self, new):
        """One question, in a copy that nothing else was asked."""
        r, copy = self.rng, self.copy()
        how = r.choice(["fresh", "demand", "pull", "node", "cell", "handler", "other"])
        part = r.choice(list(self.program.pattern(self.first)["result"])) if how in ("fresh", "demand", "pull") else "r0"
        id, where = f"piece:p:node:{part}", None
        if how == "fresh":
            done = self.stet(copy, "get", f"piece:p/{part}", "--fresh", ok=(0, 1, 3, 10))
            got = done and done["value"]
        elif how == "cell":
            id = f"piece:p:cell:{r.choice(list(self.program.cells))}"
            done = self.stet(copy, "get", id, "--fresh", ok=(0, 1, 3, 10))
            got = done and done["value"]
        else:
            words = {"demand": ("run", "p.json", "--demand", part), "pull": ("piece", "pull", "p", "--demand", part), "node": ("run", "p.json", part),
                     "handler": ("piece", "send", "p", "h"), "other": ("run", "q.json")}[how]
            done = self.stet(copy, *words, ok=(0, 1, 3, 5, 10))
            where = {"handler": "piece:p:cell:out", "other": "piece:q:node:z"}.get(how, id)
            got = done and self.stet(copy, "get", where, ok=(0, 3))
            got = got and got["value"]
            if how == "handler":
                got = got and got["r"]
        want = cli(new, "get", id, "--fresh", ok=(0, 1, 3, 10))
        if bool(done) != bool(want) and not (how == "cell" and got == (want and want["value"])):
            raise Failed(f"asked for {part} ({how}): {'an answer' if done else 'refused'}; in a new project: {'an answer' if want else 'refused'}")
        if done and got != want["value"]:
            raise Failed(f"asked for {part} ({how}): {json.dumps(got)}; in a new project: {json.dumps(want['value'])}")

    def whole(self, new):
        copy = self.copy()
        self.stet(copy, "run", "p.json", ok=(0, 1))
        failing = cli(new, "status", "p")["pieces"][0]["failed"] > 0
        status = self.stet(copy, "status", "p")["pieces"][0]
        if (status["failed"] > 0) != failing:
            raise Failed(f"after a whole run {status['failed']} failed; in a new project: {'some' if failing else 'none'}")
        if failing:
            return
        want = cli(new, "get", "piece:p", "--fresh")["value"]
        got = self.stet(copy, "get", "piece:p", "--fresh")["value"]
        if got != want:
            raise Failed(f"after a whole run: {json.dumps(got)}; in a new project: {json.dumps(want)}")
        for c in self.program.cells:
            want = cli(new, "get", f"piece:p:cell:{c}", "--fresh", ok=(0, 1, 3, 10))
            got = self.stet(copy, "get", f"piece:p:cell:{c}", "--fresh", ok=(0, 1, 3, 10))
            if (got and got["value"]) != (want and want["value"]):
                raise Failed(f"after a whole run cell {c} is {json.dumps(got)}; in a new project: {json.dumps(want)}")


STEPS_OF = [(World.do_scalar, 6), (World.do_list, 6), (World.do_run, 3), (World.do_ask, 4), (World.do_fork, 1), (World.do_empty, 1),
            (World.do_volatile, 1), (World.do_pattern, 2)]


def play(seed, root):
    rng = random.Random(seed)
    w = World(rng, root)
    try:
        w.start()
        for _ in range(STEPS):
            for _ in range(rng.choice([1, 1, 2])):
                rng.choices([f for f, _ in STEPS_OF], [k for _, k in STEPS_OF])[0](w)
            w.look()
    except (Failed, subprocess.SubprocessError, KeyError, TypeError) as e:
        print(f"not ok 1 - STET_SEED={seed} STET_PROGRAMS=1\n# {type(e).__name__}: {e}")
        for line in w.log:
            print("#   " + line)
        print(f"#   p.json: {json.dumps(w.program.pattern(w.first))}")
        return False
    return True


def main():
    root = pathlib.Path("materializers").absolute()
    end = time.monotonic() + SECONDS
    played = 0
    for n in range(PROGRAMS):
        if n and time.monotonic() > end:
            break
        if not play(SEED + n, root):
            print("1..1")
            return 1
        played += 1
    shutil.rmtree(root, ignore_errors=True)
    print(f"ok 1 - {played} programs of {STEPS} steps: what is called up to date is what a new project has\n1..1")
    return 0


sys.exit(main())
