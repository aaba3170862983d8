#!/usr/bin/env python3
"""Cells that computations write, against a new project with the same pattern and the same overrides.

A pattern is drawn at random: cells with and without defaults; computations that write all of a cell, a part that depends on inputs, on
conditions or not at all, the value of the default, objects, arrays, below key(), by update(), with and without a declared envelope, with an
argument schema; nodes whose output is a cell or a part of one; computations that write through a link; computations that read what others
write; a `map` whose children have cells of their own and write into those around them; event handlers.

Steps: inputs, cells and parts of them set, patched and deleted by hand and by handlers, also those of children; overrides taken back; defaults,
code, nodes, cells and the pattern of children edited; nodes renamed; elements added, changed, moved and removed; branches forked and gone to;
runs without records; records lost.

The test notes by itself what was set by hand. After each run: everything is up to date, the overrides are those that were noted, and result and
cells are what a new project has that is given the same pattern and the same values by hand. Now and then every action is computed again (`check --rerun all`), and `check` finds nothing."""
import copy, json, os, pathlib, random, shutil, sqlite3, subprocess, sys, time

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
PROGRAMS = int(os.environ.get("STET_PROGRAMS") or (1000 if LONG else 3 if SHORT else 12))
STEPS = int(os.environ.get("STET_STEPS") or (30 if LONG else 10 if SHORT else 14))
SECONDS = 1e9 if LONG else 40
SEED = int(os.environ.get("STET_SEED", "1"))
KEYS = ["a", "b", "c"]
SCALARS = [0, 1, 7, "s", None, False]
OBJECTS = [{}, {"a": 0}, {"a": 0, "z": 1}, {"m": {"a": 1}, "z": 1}, {"m": {}}]


class Failed(Exception):
    pass


def cli(where, *words, ok=(0,)):
    done = subprocess.run([STET, "--json", *words], cwd=where, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode not in ok:
        raise Failed(f"stet {' '.join(words)}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() and done.returncode == 0 else None


# ---- Programs

def statement(rng, kind, key):
    """One that writes to `c`; of x, k, on. `key`: the text of a key of this writer's own."""
    s = []
    if kind == "scalar":
        s += ["c.set(x);", "c.set(7);", "c.set(0);", "c.set([x, 1]);", "c.set(on ? x : k);"]
    elif kind == "object":
        s += ["c.set({a: x, b: 2});", "c.set({m: {a: x}});", "c.set({});", "c.set(on ? {a: x} : {});"]
    else:
        s += [f"c.key({key}).set(x);", f"c.key({key}).set({{q: x}});", f"c.key('m').key({key}).set(x);", f"c.update({{[{key}]: x}});",
              f"c.key({key}).set(0);", f"c.key('d' + {key}).key('deep').key(k).set(x);"]
    return rng.choice(s)


def code(rng, kind, key):
    body = statement(rng, kind, key)
    for _ in range(rng.choice([0, 0, 1])):
        body += " " + statement(rng, kind, key)
    guard = rng.choice(["", "if (on) { %s }", "if (x % 2) { %s }", "if (k === 'a') { %s } else { %s }", ""])
    if guard:
        body = guard.replace("%s", body, 1).replace("%s", statement(rng, kind, key))
    # What it wrote itself it may read.
    tail = rng.choice(["return 1", "return x", "return x"])
    return body, tail


class Program:
    def __init__(self, rng):
        self.rng = rng
        self.cells = {}
        self.writers = {}
        self.outs, self.linked, self.child = {}, None, None
        for i in range(rng.randint(1, 3)):
            self.add_cell(i)
        for i in range(rng.randint(1, 3)):
            self.add_writer(f"w{i}")
        if rng.random() < 0.6:
            self.draw_child()
        self.extra = 0
        for _ in range(rng.choice([0, 1, 2])):
            self.draw_out()
        if rng.random() < 0.4:
            self.draw_linked()

    def add_cell(self, i):
        kind = self.rng.choice(["scalar", "object", "keys", "keys"])
        name = f"c{kind[0]}{i}"  # what was set by hand stays for a cell of the same name
        self.cells[name] = {"kind": kind}
        self.draw_default(name)

    def draw_default(self, name):
        c = self.cells[name]
        c["default"] = self.rng.choice([(v,) for v in (SCALARS if c["kind"] == "scalar" else OBJECTS)] + [None])

    def add_writer(self, name):
        free = [c for c, v in self.cells.items() if (v["kind"] == "keys" and not any(o["cell"] == c and not o["path"] for o in self.outs.values())
                                                     and self.linked != c) or self.free(c)]
        if not free:
            return False
        cell = self.rng.choice(free)
        self.writers[name] = {"cell": cell, "declared": self.rng.random() < 0.6, "schema": self.rng.random() < 0.2,
                              "reads": self.rng.choice([None, None] + [c for c in self.cells if c != cell])}
        self.draw_code(name)
        return True

    def free(self, cell):
        """Does nobody write all of it?"""
        return not any(w["cell"] == cell for w in self.writers.values()) and not any(o["cell"] == cell for o in self.outs.values()) \
            and self.linked != cell and not (self.child and self.child["outer"] == cell)

    def draw_out(self):
        """A node whose output is a cell that nobody else writes, or a part of one that others write other parts of."""
        whole = [c for c in self.cells if self.free(c)]
        part = [c for c, v in self.cells.items() if v["kind"] == "keys" and self.linked != c and not any(o["cell"] == c for o in self.outs.values())]
        at = [(c, "") for c in whole] + [(c, p) for c in part for p in ("/out", "/m/out")]
        if at:
            cell, path = self.rng.choice(at)
            self.outs[f"o{self.rng.randint(0, 2)}"] = {"cell": cell, "path": path, "object": self.cells[cell]["kind"] != "scalar"}

    def draw_linked(self):
        """A computation that has a cell with a link to another cell."""
        free = [c for c in self.cells if self.free(c)]
        self.linked = self.rng.choice(free) if free and self.linked is None else None

    def draw_code(self, name):
        w = self.writers[name]
        w["code"], w["tail"] = code(self.rng, self.cells[w["cell"]]["kind"], f"'{name}' + k")

    def draw_child(self):
        kind = self.rng.choice(["scalar", "keys"])
        default = self.rng.choice([(v,) for v in (SCALARS if kind == "scalar" else OBJECTS)] + [None])
        outer = [c for c, v in self.cells.items() if v["kind"] == "keys" and self.linked != c
                 and not any(o["cell"] == c and not o["path"] for o in self.outs.values())]
        had = self.child and self.child["kind"] == kind
        self.child = {"kind": kind, "default": self.child["default"] if had and self.rng.random() < 0.5 else default,
                      "code": code(self.rng, kind, "k")[0] if self.rng.random() < 0.8 else "",
                      "outer": self.rng.choice(outer) if outer and self.rng.random() < 0.6 else None,
                      "outer_code": self.rng.choice(["o.key('e' + id).set(x);", "if (on) o.key('e' + id).set(x);", "o.key('m').key('e' + k + id).set(x);"]),
                      "form": self.rng.random() < 0.5}

    def pattern(self):
        arg = lambda k: {"$": f"argument/{k}"}
        nodes = []
        for name, w in self.writers.items():
            inputs = {k: arg(k) for k in ("x", "k", "on")} | {"c": {"$": w["cell"], "asCell": True}}
            if w["reads"]:
                inputs["y"] = {"$": w["reads"]}
            tail = "return `${JSON.stringify(y)} ${x}`" if w["reads"] else w["tail"]
            node = {"id": name, "inputs": inputs, "module": {"type": "javascript", "implementation": "({x, k, on, c, y}) => { %s %s }" % (w["code"], tail)}}
            if w["declared"]:
                node["materializerWriteInputPaths"] = ["c"]
            if w["schema"]:
                node["argumentSchema"] = {"type": "object", "properties": {"c": {}}}
            nodes.append(node)
        for name, o in self.outs.items():
            value = "x % 2 ? {q: x} : {}" if o["object"] else "x"
            nodes.append({"id": name, "inputs": {"x": arg("x")}, "output": {"$": o["cell"] + o["path"]},
                          "module": {"type": "javascript", "implementation": f"({{x}}) => ({value})"}})
        if self.linked:
            inputs = {"x": arg("x"), "on": arg("on"), "c": {"$": "way", "asCell": True}}
            value = "x" if self.cells[self.linked]["kind"] == "scalar" else "{l: x}"
            nodes.append({"id": "wl", "inputs": inputs, "module": {"type": "javascript", "implementation": "({x, on, c}) => { if (on) c.set(%s); return x }" % value}})
        for name, c in self.cells.items():
            key = "c.key(e.at).set(e.v)" if c["kind"] != "scalar" else "c.set(e.v)"
            nodes.append({"id": f"h_{name}", "stream": {"$": f"h_{name}"}, "inputs": {"c": {"$": name, "asCell": True}},
                          "module": {"type": "javascript", "handler": True, "implementation": "(e, {c}) => { %s }" % key}})
        for name in self.cells:
            nodes.append({"id": f"r_{name}", "inputs": {"value": {"$": name}}, "module": {"type": "ref", "ref": "value"}})
        if self.child:
            c = self.child
            inputs = {"x": arg("element/x"), "k": arg("element/k"), "id": arg("element/id"), "on": arg("on"), "c": {"$": "z" + c["kind"], "asCell": True}}
            given = {"list": arg("list"), "on": arg("on")}
            body = c["code"]
            if c["outer"]:
                inputs["o"] = {"$": "argument/o", "asCell": True}
                given["o"] = {"$": c["outer"], "asCell": True}
                body += " " + c["outer_code"]
            inner = {"pattern": 1, "name": "inner", "cells": {"z" + c["kind"]: {"default": c["default"][0]} if c["default"] else {}}, "nodes": [
                {"id": "w", "inputs": inputs, "module": {"type": "javascript", "implementation": "({x, k, id, on, c, o}) => { %s return x }" % body},
                 "materializerWriteInputPaths": ["c"] + (["o"] if c["outer"] else [])},
                {"id": "q", "inputs": {"value": {"$": "z" + c["kind"]}}, "module": {"type": "ref", "ref": "value"}}],
                "result": {"$": "q"} if c["form"] else {"q": {"$": "q"}, "x": arg("element/x")}}
            nodes.append({"id": "m", "inputs": given, "module": {"type": "ref", "ref": "map", "key": "id", "pattern": inner}})
        for i in range(self.extra):
            nodes.append({"id": f"extra{i}", "inputs": [i, 1], "module": {"type": "ref", "ref": "sum"}})
        shown = [n["id"] for n in nodes if "stream" not in n and "output" not in n]
        cells = {n: {"default": c["default"][0]} if c["default"] else {} for n, c in self.cells.items()}
        if self.linked:
            cells["way"] = {"default": {"/": {"link@1": {"id": f"piece:f:cell:{self.linked}"}}}}
        return {"pattern": 1, "name": "f", "argument": {"default": {"x": 1, "k": "a", "on": True, "list": [{"id": "p", "x": 1, "k": "a"}]}},
                "cells": cells, "nodes": nodes, "result": {n: {"$": n} for n in shown}}


# ---- The project and the new one

class World:
    def __init__(self, rng, root):
        self.rng, self.root = rng, root
        self.where = root / "p"
        self.program = Program(rng)
        self.log = []
        self.branches = [""]
        self.branch = ""
        self.hand = {"": {}}  # by branch: {cell: value, or None: nothing is there}
        self.defaults = {"": {}}  # by branch: of the pattern that it was last set up with
        shutil.rmtree(root, ignore_errors=True)
        self.where.mkdir(parents=True)
        cli(self.where, "init")
        self.write(self.where)

    def write(self, where):
        (where / "f.json").write_text(json.dumps(self.program.pattern(), indent=1))

    def say(self, text):
        self.log.append(text)

    def stet(self, *words, ok=(0,)):
        self.say("stet " + " ".join(f"'{w}'" if any(c in w for c in ' "{}[]') else w for w in words))
        return cli(self.where, *words, *(["--branch", self.branch] if self.branch else []), ok=ok)

    def run(self, *words):
        self.stet("run", "f.json", *words)
        self.defaults[self.branch] = {n: copy.deepcopy(c["default"]) for n, c in self.program.cells.items()}

    def by_hand(self, name, at, value):
        """`at` None: all of it. `value` is (VALUE,), or None: removed."""
        hand, default = self.hand[self.branch], self.defaults[self.branch].get(name)
        if name not in hand and value is None and not (default and at in default[0]):
            return  # what a computation had written, and writes again
        if name not in hand:
            hand[name] = copy.deepcopy(default)
        value = copy.deepcopy(value)
        if at is None:
            hand[name] = value
        elif value is None:
            if hand[name] and isinstance(hand[name][0], dict):
                hand[name][0].pop(at, None)
        elif hand[name] and isinstance(hand[name][0], dict):
            hand[name][0][at] = value[0]
        else:
            hand[name] = ({at: value[0]},)

    def here(self, *words, ok=(0,)):
        return cli(self.where, *words, *(["--branch", self.branch] if self.branch else []), ok=ok)

    # ---- Steps

    def hand_value(self, kind):
        return self.rng.choice(SCALARS + [42]) if kind == "scalar" else self.rng.choice(OBJECTS + [{"hand": 1}])

    def do_argument(self):
        key, value = self.rng.choice([("x", self.rng.randint(0, 4)), ("k", self.rng.choice(KEYS)), ("on", self.rng.random() < 0.5)])
        if self.rng.random() < 0.5:
            self.run("--set", f"{key}={json.dumps(value)}")
        else:
            self.stet("set", f"piece:f:argument/{key}", json.dumps(value))

    def do_list(self):
        ids = self.rng.sample(["p", "q", "r", "s"], self.rng.randint(0, 4))
        value = [{"id": i, "x": self.rng.randint(0, 3), "k": self.rng.choice(KEYS)} for i in ids]
        self.stet("set", "piece:f:argument/list", json.dumps(value))

    def do_hand(self):
        name = self.rng.choice(list(self.program.cells))
        kind = self.program.cells[name]["kind"]
        if name not in self.defaults[self.branch]:
            return  # not set up yet
        whole, at = kind == "scalar" or self.rng.random() < 0.4, self.rng.choice(["hand", "a", "z", "w0a", "w1a", "ep", "m", "out"])
        value = self.hand_value(kind) if whole else self.rng.randint(50, 60) if at in ("hand", "a", "z") else {"by": 1}  # others hold what writers put below
        where = f"piece:f:cell:{name}" + ("" if whole else f"/{at}")
        way = self.rng.random()
        if way < 0.2 and (kind == "scalar") == whole:
            try:
                self.stet("piece", "send", "f", f"h_{name}", json.dumps({"at": at, "v": value}))
            except Failed as e:  # of a stream that the pattern did not have when it was last set up
                if "stream" not in str(e):
                    raise
                return
            self.by_hand(name, None if whole else at, (value,))
        elif whole or way < 0.7:
            if self.stet("set", where, json.dumps(value), ok=(0, 2)) is not None:
                self.by_hand(name, None if whole else at, (value,))
        elif self.stet("doc", "patch", f"piece:f:cell:{name}", json.dumps([{"op": "remove", "path": f"/{at}"}]), ok=(0, 1, 2, 3, 4, 5)):
            self.by_hand(name, at, None)

    def do_hand_child(self):
        if self.program.child:
            value, at = self.hand_value(self.program.child["kind"]), f"m[{self.rng.choice('pqrs')}].z{self.program.child['kind']}"
            if self.stet("set", f"piece:f:cell:{at}", json.dumps(value), ok=(0, 1, 2, 3, 4)) is not None:
                self.hand[self.branch][at] = (value,)

    def do_delete(self):
        where = self.rng.choice([f"piece:f:cell:{self.rng.choice(list(self.program.cells))}", "piece:f:cell:m[p].zkeys", "piece:f:node:m", "piece:f:child:m[p]"])
        if self.stet("doc", "delete", where, ok=(0, 1, 2, 3, 4)) is not None and where.startswith("piece:f:cell:"):
            self.hand[self.branch].pop(where[len("piece:f:cell:"):], None)

    def do_unset(self):
        names = self.here("status", "f")["pieces"][0].get("overridden") or []
        if names:
            name = self.rng.choice(names)
            self.run("--unset", name)
            self.hand[self.branch].pop(name.removeprefix("cell:"), None)

    def do_pattern(self):
        p, rng = self.program, self.rng
        what = rng.choice(["default", "default", "code", "code", "writer", "drop", "rename", "cell", "extra", "child", "child", "gone", "out", "no out", "linked"])
        if what == "default":
            p.draw_default(rng.choice(list(p.cells)))
        elif what == "code" and p.writers:
            p.draw_code(rng.choice(list(p.writers)))
        elif what == "writer":
            p.add_writer(f"w{rng.randint(0, 4)}") if len(p.writers) < 4 else None
        elif what == "drop" and p.writers:
            del p.writers[rng.choice(list(p.writers))]
        elif what == "rename" and p.writers:
            p.writers[f"v{rng.randint(0, 9)}"] = p.writers.pop(rng.choice(list(p.writers)))
        elif what == "out":
            p.draw_out()
        elif what == "no out" and p.outs:
            del p.outs[rng.choice(list(p.outs))]
        elif what == "linked":
            p.draw_linked()
        elif what == "cell" and len(p.cells) < 4:
            p.add_cell(next(i for i in range(9) if not any(n.endswith(str(i)) for n in p.cells)))
        elif what == "gone" and len(p.cells) > 1:
            name = rng.choice(list(p.cells))
            if p.free(name) and not any(w["reads"] == name for w in p.writers.values()):
                del p.cells[name]
        elif what == "child":
            if p.child and rng.random() < 0.2:
                p.child = None
            else:
                p.draw_child()
        else:
            p.extra = rng.randint(0, 2)
        self.say(f"edit of the pattern: {what}")
        self.write(self.where)

    def do_fork(self):
        if len(self.branches) < 4:
            name = f"b{len(self.branches)}"
            self.say(f"stet branch create {name} --from '{self.branch}'")
            cli(self.where, "branch", "create", name, "--from", self.branch)
            self.branches.append(name)
            self.hand[name], self.defaults[name] = copy.deepcopy(self.hand[self.branch]), copy.deepcopy(self.defaults[self.branch])
            self.branch = name
        else:
            self.branch = self.rng.choice(self.branches)
            self.say(f"to branch '{self.branch}'")

    def do_volatile(self):
        config = self.where / ".stet/config.toml"
        text = config.read_text()
        config.write_text(text + "\n[scheduler]\npersist = false\n")
        self.say("without records:")
        self.run()
        config.write_text(text)

    def do_forget(self):
        self.say("the tables of the scheduler are emptied")
        db = sqlite3.connect(self.where / ".stet/local/spaces/main.db", timeout=30)
        for table in ("action", "place_index", "mark"):
            db.execute(f"DELETE FROM {table}")
        db.commit()
        db.close()

    # ---- Looking

    def cells_of(self, where, *branch):
        out = {}
        for name in self.program.cells:
            got = cli(where, "get", f"piece:f:cell:{name}", *branch, ok=(0, 1, 3, 4))
            out[name] = got["value"] if got else None
        return out

    def look(self):
        self.run()
        branch = ["--branch", self.branch] if self.branch else []
        status = self.here("status", "f")["pieces"][0]
        for state in ("dirty", "stale", "unknown", "failed"):
            if status.get(state):
                raise Failed(f"after a run: {json.dumps(status)}")
        got = self.here("get", "piece:f", "--fresh")["value"], self.cells_of(self.where, *branch)
        names, hand = status.get("overridden") or [], self.hand[self.branch]
        noted = {f"cell:{n}" for n, v in hand.items() if n in self.program.cells and v}
        if {n for n in names if n.startswith("cell:") and "[" not in n} != noted:
            raise Failed(f"overridden {names}, set by hand {sorted(noted)}")
        new = self.root / "new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        cli(new, "init")
        self.write(new)
        argument = self.here("get", "piece:f:argument")["value"]
        words = []
        for n in names:
            if not n.startswith("cell:"):
                words += ["--set", f"{n}={json.dumps(argument[n])}"]
        cli(new, "run", "f.json", *words)
        for n in names:
            if n.startswith("cell:"):
                cli(new, "set", f"piece:f:{n}", json.dumps(hand[n.removeprefix("cell:")][0]))
        cli(new, "run", "f.json")
        want = cli(new, "get", "piece:f", "--fresh")["value"], self.cells_of(new)
        if got != want:
            raise Failed(f"overridden {names}\n#   is   {json.dumps(got, sort_keys=True)}\n#   new  {json.dumps(want, sort_keys=True)}")

    def check(self):
        cli(self.where, "check")
        cli(self.where, "check", "--rerun", "all")


STEPS_OF = [(World.do_argument, 8), (World.do_list, 3), (World.do_hand, 4), (World.do_hand_child, 2), (World.do_delete, 1), (World.do_unset, 2),
            (World.do_pattern, 6), (World.do_fork, 2), (World.do_volatile, 1), (World.do_forget, 1)]


def play(seed, root, steps):
    rng = random.Random(seed)
    w = World(rng, root)
    done = 0
    try:
        w.look()
        for n in range(steps):
            for _ in range(rng.choice([1, 1, 2])):
                rng.choices([f for f, _ in STEPS_OF], [k for _, k in STEPS_OF])[0](w)
                done += 1
            w.look()
        w.check()
    except (Failed, subprocess.SubprocessError, KeyError, IndexError, TypeError) as failure:
        print("not ok 1 - what computations write through cells is what a new project has")
        print(f"# STET_SEED={seed} STET_PROGRAMS=1 STET_STEPS={steps} repeats it: {type(failure).__name__}: {failure}")
        for s in w.log[-30:]:
            print(f"#   {s}")
        print("# " + json.dumps(w.program.pattern()))
        sys.exit(1)
    return done


print("1..1")
start, programs, total = time.monotonic(), 0, 0
for i in range(PROGRAMS):
    if i and time.monotonic() - start > SECONDS:
        break
    total += play(SEED + i, pathlib.Path("cells").absolute(), STEPS)
    programs += 1
print(f"# seeds {SEED} to {SEED + programs - 1}: {programs} programs, {total} steps")
print("ok 1 - what computations write through cells is what a new project has")
