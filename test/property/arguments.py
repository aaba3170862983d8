#!/usr/bin/env python3
"""Arguments, cells, their defaults, schemas and overrides, under random commands and edits of the pattern, against a model and new projects.

One pattern file makes two kinds of pieces: the one that the pattern names, and "march" (`--piece march`). Steps: the pattern's default, schemas,
cells, outputs into parts of cells and its name are edited; keys, the whole argument, cells and parts of them are set and taken back in every way
that there is, half of the time by values that a schema refuses; commands are wrong in other ways (a node, a part of the result, a name, a
document that is stet's own); pieces are run, pulled and read with --fresh.

After each step: a command was refused exactly when the model says so, and then every document, the overrides and the status are what they were;
whatever is called up to date is what the model says. Now and then a new project is given the same pattern and the same overrides: it has the same
values, or refuses as well."""
import copy, json, os, pathlib, random, shutil, subprocess, sys

os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
STEPS = int(os.environ.get("STET_STEPS") or (20000 if LONG else 40 if SHORT else 250))
SEED = int(os.environ.get("STET_SEED", "1"))
rng = random.Random(SEED)
root, other = pathlib.Path("p").absolute(), pathlib.Path("scratch").absolute()


class GONE:  # a class: copies of it are itself
    pass


KEYS, CELLS, PLACES = ["x", "y", "z"], ["c0", "c1"], [["k"], ["p", "q"]]
VALUES = [1, 2, 3.5, "a", "b", True, None, [1, "a"], {"s": 1}, {"s": "t"}]
TYPES = {"number": (int, float), "string": str, "object": dict, "array": list, "boolean": bool}
trace = []


class Wrong(Exception):
    pass


def stet(*args, cwd=None, stdin=None):
    r = subprocess.run([STET, *args], cwd=cwd or root, capture_output=True, text=True, input=stdin)
    if r.returncode not in (0, 1, 2, 3):
        raise Wrong(f"{args}: status {r.returncode}: {r.stderr}")
    return r


def data(*args, cwd=None):
    r = stet(*args, "--json", cwd=cwd)
    if r.returncode:
        raise Wrong(f"{args}: status {r.returncode}: {r.stderr}")
    return json.loads(r.stdout)


# ---- The model -------------------------------------------------------------------------------------------------

def fits(schema, v):
    if schema is None:
        return True
    t = schema.get("type")
    if t and not (isinstance(v, TYPES[t]) and (t == "boolean" or not isinstance(v, bool))):
        return False
    if not isinstance(v, dict):
        return True
    known = schema.get("properties", {})
    return (all(k in v for k in schema.get("required", [])) and all(fits(s, v[k]) for k, s in known.items() if k in v)
            and (schema.get("additionalProperties", True) or all(k in known for k in v)))


def at(v, path):
    for key in path:
        if not isinstance(v, dict) or key not in v:
            return GONE
        v = v[key]
    return v


def put(v, path, new):
    """`v` with `new` at the path; parents are made. None: there is something in the way."""
    if not path:
        return copy.deepcopy(new)
    v = copy.deepcopy(v)
    here = v
    for i, key in enumerate(path):
        if not isinstance(here, dict):
            return None
        if i == len(path) - 1:
            here[key] = copy.deepcopy(new)
        else:
            here = here.setdefault(key, {})
    return v


class Pattern:
    def __init__(self):
        self.name, self.default, self.schema = "one", {"x": 1, "y": 2}, None
        self.cells = {c: {"default": {"z": 1}} for c in CELLS}
        self.writers = {}  # node: [cell, place, number]
        self.plus = 0

    def text(self):
        nodes = [{"id": "all", "inputs": {"value": {"$": "argument"}}, "module": {"type": "ref", "ref": "value"}},
                 {"id": "n", "inputs": [self.plus, 1], "module": {"type": "ref", "ref": "sum"}}]
        for c in CELLS:
            nodes.append({"id": "r" + c, "inputs": {"value": {"$": c}}, "module": {"type": "ref", "ref": "value"}})
        for id, (cell, place, number) in self.writers.items():
            nodes.append({"id": id, "inputs": [number, 0], "output": {"$": "/".join([cell, *place])}, "module": {"type": "ref", "ref": "sum"}})
        argument = {**({} if self.default is GONE else {"default": self.default}), **({"schema": self.schema} if self.schema else {})}
        return json.dumps({"pattern": 1, "name": self.name, "argument": argument, "cells": self.cells, "nodes": nodes,
                           "result": {"all": {"$": "all"}, "n": {"$": "n"}, **{c: {"$": "r" + c} for c in CELLS}}})

    def outputs(self, cell):
        return [place for c, place, _ in self.writers.values() if c == cell]

    def fine(self):
        """Are the defaults of the cells what their schemas want?"""
        return all(fits(c.get("schema"), c["default"]) for c in self.cells.values() if "default" in c)


class Piece:
    """What was set of it, and the pattern that it was last set up with."""

    def __init__(self, name, pattern):
        self.name, self.pattern = name, copy.deepcopy(pattern)
        self.keys, self.whole, self.cells = {}, GONE, {}
        self.tied = name != pattern.name

    def argument(self):
        default = {} if self.pattern.default is GONE else self.pattern.default
        if self.whole is not GONE:
            return self.whole
        if not isinstance(default, dict):
            return copy.deepcopy(default)
        v = copy.deepcopy(default)
        for k, x in self.keys.items():
            v.pop(k, None) if x is GONE else v.__setitem__(k, copy.deepcopy(x))
        return v

    def cell(self, c, outputs=True):
        v = self.cells[c] if c in self.cells else self.pattern.cells[c].get("default", GONE)
        for cell, place, number in self.pattern.writers.values():
            if cell == c and outputs:
                v = put({} if v is GONE else v, place, number)
        return v

    def follow(self, pattern):
        """The piece with the pattern as it is now, whether or not that is allowed."""
        p = copy.deepcopy(self)
        p.pattern = copy.deepcopy(pattern)
        p.tied = p.tied or pattern.name != p.name
        default = {} if pattern.default is GONE else pattern.default
        if p.keys and not isinstance(default, dict):  # keys can't be told apart any more
            p.whole, p.keys = self.argument(), {}
        return p

    def setup(self, pattern):
        """The same; None if that is refused."""
        p = self.follow(pattern)
        return p if p.fits() and pattern.fine() else None

    def fits(self):
        return fits(self.pattern.schema, self.argument()) and all(
            fits(self.pattern.cells[c].get("schema"), v) for c, v in self.cells.items() if not self.pattern.outputs(c))

    def overridden(self):
        return sorted((["."] if self.whole is not GONE else list(self.keys)) + ["cell:" + c for c in self.cells])

    def result(self):
        seen = {c: self.cell(c) for c in CELLS}
        return {"all": self.argument(), "n": self.pattern.plus + 1, **{c: None if v is GONE else v for c, v in seen.items()}}

    # What commands do to it. Each gives the piece that comes of it, or None if it is refused.

    def set(self, path, v):
        p = copy.deepcopy(self)
        now = put(self.argument(), path, v)
        if now is None:
            return None
        if self.whole is not GONE or not isinstance(now, dict):
            p.whole, p.keys = now, {}
        elif path:
            p.keys[path[0]] = now[path[0]]
        else:
            default = self.pattern.default if isinstance(self.pattern.default, dict) else {}
            if not isinstance(self.pattern.default, dict) and self.pattern.default is not GONE:
                p.whole, p.keys = now, {}
            else:  # what it leaves out is gone, and what it has is set
                p.keys = {k: now.get(k, GONE) for k in {*default, *now, *self.keys} if k in now or k in default or k in self.keys}
                p.keys = {k: x for k, x in p.keys.items() if x is not GONE or k in default or k in self.keys}
        return p

    def remove(self, key):
        if not isinstance(self.argument(), dict) or key not in self.argument():
            return None
        p = copy.deepcopy(self)
        if self.whole is not GONE:
            del p.whole[key]
        else:
            p.keys[key] = GONE
        return p

    def set_cell(self, c, path, v):
        p = copy.deepcopy(self)
        now = put({} if self.cell(c) is GONE else self.cell(c), path, v)
        if now is None:
            return None
        base = self.cell(c, outputs=False)  # what nodes write hides what is set, and comes and goes without changing it
        p.cells[c] = put({} if base is GONE else base, path, v)
        return p

    def unset(self, name):
        if name == ".":
            if not (self.keys or self.whole is not GONE):
                return None
            p = copy.deepcopy(self)
            p.keys, p.whole = {}, GONE
            return p
        if name not in self.overridden():
            return None
        p = copy.deepcopy(self)
        p.cells.pop(name[5:]) if name.startswith("cell:") else p.keys.pop(name)
        return p


def allowed(p):
    return p if p is not None and p.fits() else None


pattern = Pattern()
pieces = {}


# ---- Looking ---------------------------------------------------------------------------------------------------

def same(a, b):
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def state():
    """Everything that a refused command must leave alone. Programs and schemas are by hash: more of them say nothing."""
    docs = {}
    for d in data("doc", "list", "--limit", "10000")["documents"]:
        if not d["id"].startswith(("program:", "schema:")):
            docs[d["id"]] = d
    return docs, data("status")["pieces"]


def detached(p):
    return not p.tied and pattern.name != p.name


def look():
    """What is called up to date is right; what is wrong with a piece as a whole is said."""
    rows = {r["piece"]: r for r in data("status")["pieces"]}
    if set(rows) != set(pieces):
        raise Wrong(f"there are pieces {sorted(rows)} and should be {sorted(pieces)}")
    for name, p in pieces.items():
        row = rows[name]
        now = None if detached(p) else p.setup(pattern)
        if now is None and (row["stands"] or "wrong" not in row):
            raise Wrong(f"{name} can't be what its pattern says, and status does not say so: {row}")
        if now is not None and "wrong" in row:
            raise Wrong(f"{name} is called wrong: {row['wrong']}")
        if now is not None and sorted(row["overridden"]) != now.overridden():
            raise Wrong(f"{name} is overridden in {now.overridden()}, status says {row['overridden']}")
        if now is not None and row["stands"] == row["nodes"]:
            verify(name, now)


def verify(name, p, cwd=None):
    got = data("get", f"piece:{name}", cwd=cwd)["value"]
    want = p.result()
    got = {k: got.get(k) for k in want}
    if not same(got, want):
        raise Wrong(f"{name} is {json.dumps(got)}, should be {json.dumps(want)}")
    v = data("get", f"piece:{name}:argument", cwd=cwd)["value"]
    if not same(v, p.argument()):
        raise Wrong(f"the argument of {name} is {v}, should be {p.argument()}")


def scratch(name, p):
    """A new project with the pattern as it is now and the same overrides: the same values, or a refusal."""
    shutil.rmtree(other, ignore_errors=True)
    other.mkdir()
    stet("init", "-q", cwd=other)
    (other / "p.json").write_text(pattern.text())
    now = p.setup(pattern)
    p = p.follow(pattern)
    default = {} if pattern.default is GONE else pattern.default
    if isinstance(p.whole, dict) and isinstance(default, dict):  # there is no other way to begin with it
        p.keys, p.whole = {**{k: GONE for k in default}, **p.whole}, GONE
    command = ["run", "p.json", "-q", "--piece", name]
    if p.whole is not GONE:
        stet("set", f"piece:{name}:argument", json.dumps(p.whole), "-q", cwd=other)
    done = stet(*command, *(f"--set={k}={json.dumps(v)}" for k, v in p.keys.items() if v is not GONE), cwd=other)
    refused = done.returncode == 2
    gone = [{"op": "remove", "path": "/" + k} for k, v in p.keys.items() if v is GONE]
    if not refused and now is not None:
        there = data("get", f"piece:{name}:argument", cwd=other)["value"]
        gone = [g for g in gone if isinstance(there, dict) and g["path"][1:] in there]
        if gone:
            refused = stet("doc", "patch", f"piece:{name}:argument", json.dumps(gone), "-q", cwd=other).returncode == 2
        for c, v in now.cells.items():
            refused = refused or stet("set", f"piece:{name}:cell:{c}", json.dumps(v), "-q", cwd=other).returncode == 2
        if refused:
            raise Wrong(f"a new project refuses what {name} has")
        stet("run", "p.json", "-q", "--piece", name, cwd=other)
        verify(name, now, cwd=other)
    elif refused and now is not None and GONE not in p.keys.values():  # a new piece can't begin without a key of the default
        raise Wrong(f"a new project refuses {name}: {done.stderr}")


def command(expect, *args, ok=(0,), stdin=None):
    """Runs it. `expect` None: it must be refused, and nothing has changed."""
    trace.append(" ".join(args))
    before = state() if expect is None else None
    r = stet(*args, stdin=stdin)
    if expect is None and r.returncode not in (2, 3):
        raise Wrong(f"{args} was not refused: status {r.returncode}: {r.stdout}{r.stderr}")
    if expect is not None and r.returncode not in ok:
        raise Wrong(f"{args} was refused: {r.stderr}")
    if expect is None:
        after = state()
        for was, now in zip(before, after):
            if was != now:
                raise Wrong(f"{args} was refused and changed something:\n{was}\n{now}")
    return r


# ---- Steps -----------------------------------------------------------------------------------------------------

def write():
    trace.append("pattern " + json.dumps([pattern.name, None if pattern.default is GONE else pattern.default, pattern.schema, pattern.cells, pattern.writers, pattern.plus]))
    (root / "p.json").write_text(pattern.text())


def value():
    return copy.deepcopy(rng.choice(VALUES))


def some_schema():
    kinds = rng.sample(KEYS, rng.randint(1, 2))
    schema = {"properties": {k: {"type": rng.choice(list(TYPES))} if rng.random() < 0.4 else {"type": "number"} for k in kinds}}
    if rng.random() < 0.3:
        schema["type"] = "object"
    if rng.random() < 0.2:
        schema["required"] = [rng.choice(KEYS)]
    if rng.random() < 0.1:
        schema["additionalProperties"] = False
    return schema


def edit():
    kind = rng.randint(0, 7)
    if kind == 0:
        pattern.default = rng.choice([GONE, 5, "text"]) if rng.random() < 0.1 else {k: value() if rng.random() < 0.4 else rng.randint(1, 9) for k in rng.sample(KEYS, rng.randint(0, 3))}
    elif kind == 1:
        pattern.schema = some_schema() if rng.random() < 0.6 else None
    elif kind in (2, 3):
        c = rng.choice(CELLS)
        base = {k: rng.randint(1, 9) for k in rng.sample(["z", "k", "w"], rng.randint(0, 3))}
        if rng.random() < 0.3:
            base["p"] = {"q": rng.randint(1, 9), "r": 1} if rng.random() < 0.5 else {"r": 2}
        pattern.cells[c] = {"default": base} if rng.random() < 0.85 else {}
        if rng.random() < 0.4:
            pattern.cells[c]["schema"] = {"properties": {rng.choice(["z", "k", "w"]): {"type": rng.choice(["number", "number", "string"])}}}
    elif kind in (4, 5):
        id = rng.choice(["w0", "w1"])
        if id in pattern.writers:
            del pattern.writers[id]
        else:
            c, place = rng.choice(CELLS), rng.choice(PLACES)
            if [c, place] not in [w[:2] for w in pattern.writers.values()]:
                pattern.writers[id] = [c, place, rng.randint(10, 19)]
    elif kind == 6:
        pattern.plus = rng.randint(0, 99)
    else:
        pattern.name = rng.choice(["one", "two"])
    write()
    return rng.random() < 0.6


def fixed():
    """Back to a pattern that nothing refuses, now and then: a run of refusals tries little."""
    pattern.schema = None
    for c in CELLS:
        pattern.cells[c].pop("schema", None)
    write()


def run():
    by_name = rng.random() < 0.5
    name = pattern.name if by_name else "march"
    args = ["run", "p.json", "-q"] + ([] if by_name else ["--piece", "march"])
    there = name in pieces
    p = pieces[name] if there else Piece(name, pattern)
    q = p
    if there and rng.random() < 0.25:
        names = p.overridden()
        names = rng.sample(names, rng.randint(1, len(names))) if names and rng.random() < 0.8 else ["nope"]
        if "." in names or rng.random() < 0.1:
            names = ["."]
        for n in names:
            q = q.unset(n) if q is not None else None
            args += ["--unset", n]
    if q is not None and there:
        q = q.follow(pattern)
    sets = {}
    if rng.random() < 0.4:
        for k in rng.sample(KEYS, rng.randint(1, 2)):
            sets[k] = value() if rng.random() < 0.5 else rng.randint(1, 9)
        if rng.random() < 0.1:
            sets = {"/x/s": rng.randint(1, 9)}
    for k in sorted(sets):
        args.append(f"--set={k}={json.dumps(sets[k])}")
        if q is not None:
            q = q.set(k[1:].split("/") if k[0] == "/" else [k], sets[k])
    if q is not None and not (q.fits() and pattern.fine()):
        q = None
    slip = rng.random()
    if slip < 0.08:
        args += ["--demand", "nope"]
        q = None
    elif slip < 0.14:
        args.insert(2, "nope")
        q = None
    elif slip < 0.17:
        args += ["--set=/~3=1"]
        q = None
    command(q, *args)
    if q is not None:
        pieces[name] = q
        renewed()
        verify(name, q)


def by_hand():
    if not pieces:
        return
    name = rng.choice(sorted(pieces))
    p = pieces[name]
    v = value() if rng.random() < 0.6 else rng.randint(1, 9)
    kind = rng.randint(0, 7)
    doc = f"piece:{name}:argument"
    if kind in (0, 1):
        path = [rng.choice(KEYS)] + (["s"] if rng.random() < 0.2 else [])
        q = allowed(p.set(path, v))
        command(q, "set", "/".join([doc, *path]), json.dumps(v), "-q")
    elif kind == 2:
        k = rng.choice(KEYS)
        q = allowed(p.remove(k))
        if q is None and (not isinstance(p.argument(), dict) or k not in p.argument()):
            return
        command(q, "doc", "patch", doc, json.dumps([{"op": "remove", "path": "/" + k}]), "-q")
    elif kind == 3:
        q = p
        ops = []
        for k in rng.sample(KEYS, 2):
            x = rng.randint(1, 9) if rng.random() < 0.7 else value()
            ops.append({"op": "add", "path": "/" + k, "value": x})
            q = q.set([k], x) if q is not None else None
        if not isinstance(p.argument(), dict):
            return
        q = allowed(q)
        command(q, "doc", "patch", doc, json.dumps(ops), "-q")
    elif kind in (4, 5):
        c = rng.choice(CELLS)
        path = rng.choice([["z"], ["w"], []])
        x = v if path else {"z": rng.randint(1, 9), "w": v}
        q = p.set_cell(c, path, x)
        if q is None:
            return
        q = q if p.pattern.outputs(c) or fits(p.pattern.cells[c].get("schema"), q.cells[c]) else None
        command(q, "set", "/".join([f"piece:{name}:cell:{c}", *path]), json.dumps(x), "-q")
    else:
        id = rng.choice([f"piece:{name}", f"piece:{name}:process:0", "program:" + "0" * 64, "schema:" + "a" * 64])
        way = rng.randint(0, 2)
        if way == 0:
            command(None, "set", id, "1", "-q")
        elif way == 1:
            command(None, "set", "--meta", f"{id}/more", "1", "-q")
        else:
            command(None, "doc", "patch", id, json.dumps([{"op": "replace", "path": "", "value": 1}]), "-q")
        return
    if q is not None:
        pieces[name] = q


def refresh():
    if not pieces:
        return
    name = rng.choice(sorted(pieces))
    q = None if detached(pieces[name]) else pieces[name].setup(pattern)
    command(q, *rng.choice([["piece", "pull", name, "-q"], ["get", f"piece:{name}/all", "--fresh", "-q"]]))
    if q is not None:
        renewed()


def renewed():
    """Whoever drives a piece sets up every piece whose pattern has changed, as far as that is allowed."""
    for name, p in pieces.items():
        q = None if detached(p) else p.setup(pattern)
        pieces[name] = q or p


def drop():
    gone = [n for n, p in pieces.items() if detached(p)]
    if gone and rng.random() < 0.3:
        command(True, "piece", "delete", gone[0], "-q")
        del pieces[gone[0]]


def main():
    root.mkdir()
    stet("init", "-q")
    write()
    done = 0
    try:
        for done in range(STEPS):
            kind = rng.random()
            if kind < 0.25:
                while not edit():
                    pass
            elif kind < 0.3:
                fixed()
            elif kind < 0.6:
                run()
            elif kind < 0.9:
                by_hand()
            elif kind < 0.97:
                refresh()
            else:
                drop()
            look()
            if pieces and done % 9 == 8:
                name = rng.choice(sorted(pieces))
                if not detached(pieces[name]):
                    scratch(name, pieces[name])
            if done % 25 == 24 and stet("check").returncode:
                raise Wrong("check: " + stet("check").stdout)
    except Wrong as e:
        print("not ok 1 - arguments, cells and overrides")
        print(f"# seed {SEED}, step {done}: {e}")
        for line in trace[-40:]:
            print("# " + line)
        sys.exit(1)
    print(f"ok 1 - arguments, cells and overrides # seed {SEED}, {STEPS} steps")
    print("1..1")


main()
