#!/usr/bin/env python3
"""Writing through links: what a materializer may write, against a copy of the project in which everything is run.

Materializers (declared, opaque, children of a `map`) write a key of their own through a cell that is a link: to a document, over one or two
other links, to a part of a document, to a document that is not there, into another space and back, to a value with links inside, in a circle.
Other pieces read the documents at the end of these links, in the same space and in another one.

Steps: links pointed elsewhere, arguments of writers changed, documents deleted, single pieces or parts of them run, a branch forked.

After each step, with a copy of the project: whatever action is called up to date there has the value that it has after every piece was run;
a cell that is asked for with --fresh, and a part of a result that is demanded, have the value they have then; after a run of a piece that
piece is up to date."""
import json, os, pathlib, random, shutil, subprocess, sys, time

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
PROGRAMS = int(os.environ.get("STET_PROGRAMS") or (1000 if LONG else 3 if SHORT else 12))
STEPS = int(os.environ.get("STET_STEPS") or (30 if LONG else 6 if SHORT else 8))
SECONDS = 1e9 if LONG else 40
SEED = int(os.environ.get("STET_SEED", "1"))
TARGETS, LINKS = ["t0", "t1", "t2"], ["l0", "l1"]


class Failed(Exception):
    pass


def cli(where, *words, ok=(0,)):
    done = subprocess.run([STET, "--json", *words], cwd=where, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode not in ok:
        raise Failed(f"stet {' '.join(words)}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() and done.returncode == 0 else None


def link(id, *path, space=None):
    return {"/": {"link@1": {"id": id, "path": list(path), **({"space": space} if space else {})}}}


def arg(key):
    return {"$": f"argument/{key}"}


def writer(rng, name):
    """One that writes the key NAME, below the cell `to` or below what lies in there."""
    place = rng.choice([f"c.key('{name}')", f"c.key('{name}')", f"c.key('in').key('{name}')"])
    guard = rng.choice(["", "", "if (n % 2) "])
    node = {"id": "w", "inputs": {"n": arg("n"), "c": {"$": "argument/to", "asCell": True}},
            "module": {"type": "javascript", "implementation": "({n, c}) => { %s%s.set(n); return n }" % (guard, place)}}
    how = rng.choice(["declared", "declared", "opaque", "part"])
    if how == "declared":
        node["materializerWriteInputPaths"] = ["c"]
    elif how == "part":
        node["materializerWriteInputPaths"] = ["c/in"] if "'in'" in place else [f"c/{name}"]
    default = {"n": 1, "to": link(rng.choice(TARGETS))}
    if rng.random() < 0.4:
        default["list"] = ["a", "b"]
        node["inputs"]["k"] = arg("element")
        node["module"]["implementation"] = "({n, c, k}) => { %sc.key('%s' + k).set(n); return n }" % (guard, name)
        if how == "part":
            node["materializerWriteInputPaths"] = ["c"]
        child = {"pattern": 1, "name": "child", "nodes": [node | {"inputs": node["inputs"] | {"c": {"$": "argument/c", "asCell": True}}},
                                                          {"id": "v", "inputs": {"value": arg("n")}, "module": {"type": "ref", "ref": "value"}}],
                 "result": {"$": "v"}}
        node = {"id": "m", "inputs": {"list": arg("list"), "n": arg("n"), "c": {"$": "argument/to", "asCell": True}},
                "module": {"type": "ref", "ref": "map", "pattern": child}}
    shown = {"m": {"$": "m"}} if node["id"] == "m" else {"w": {"$": "w"}} if how in ("declared", "part") and rng.random() < 0.4 else None
    return {"pattern": 1, "name": name, "argument": {"default": default}, "nodes": [node], "result": shown}


def reader(name, docs, space=None):
    nodes = [{"id": d, "inputs": {"value": arg(d)}, "module": {"type": "ref", "ref": "value"}} for d in docs]
    return {"pattern": 1, "name": name, "argument": {"default": {d: link(d, space=space) for d in docs}}, "nodes": nodes,
            "result": {d: {"$": d} for d in docs}}


class World:
    def __init__(self, rng, root):
        self.rng, self.root = rng, root
        self.where = root / "p"
        self.branch = ""
        self.log = []
        shutil.rmtree(root, ignore_errors=True)
        self.where.mkdir(parents=True)
        cli(self.where, "init")
        self.pieces = {}
        for i in range(rng.randint(1, 2)):
            self.pieces[f"w{i}"] = (writer(rng, f"w{i}"), "main")
        self.pieces["r"] = (reader("r", TARGETS), "main")
        if rng.random() < 0.5:
            self.pieces["via"] = (reader("via", LINKS), "main")
        if rng.random() < 0.4:
            self.pieces["far"] = (reader("far", TARGETS, "main"), "two")
        for name, (pattern, _) in self.pieces.items():
            (self.where / f"{name}.json").write_text(json.dumps(pattern, indent=1))
        for t in TARGETS:
            self.set(t, {"in": {}})
        for d in LINKS:
            self.set(d, self.draw_link())
        self.set("x0", link(rng.choice(TARGETS), space="main"), "two")
        self.set("x1", {"in": {}}, "two")
        self.all(self.where)

    def draw_link(self):
        r = self.rng
        return r.choice([link(r.choice(TARGETS)), link(r.choice(TARGETS)), link(r.choice(LINKS)), link(r.choice(TARGETS), "in"), link("absent"),
                         link("x0", space="two"), link("x1", space="two"), link("y", space="nowhere"), {"in": link(r.choice(TARGETS))},
                         {"in": link(r.choice(LINKS)), "more": [link(r.choice(TARGETS))]}])

    def stet(self, where, *words, space="main", ok=(0,)):
        """`ok` is of a writer whose links lead where nothing may be written: it fails, and so does who waits for it."""
        if where == self.where and words[0] not in ("action", "get"):
            self.log.append("stet " + " ".join(f"'{w}'" if any(c in w for c in ' "{}[]') else w for w in words) + ("" if space == "main" else f" --space {space}"))
        branch = ["--branch", self.branch] if self.branch and space == "main" else []
        return cli(where, *words, *branch, *([] if space == "main" else ["--space", space]), ok=ok)

    def set(self, id, value, space="main"):
        self.stet(self.where, "set", id, json.dumps(value), space=space)

    # ---- Steps

    def do_link(self):
        self.set(self.rng.choice(LINKS), self.draw_link())

    def do_back(self):
        self.set("x0", link(self.rng.choice(TARGETS + LINKS), space="main"), "two")

    def do_to(self):
        self.set(f"piece:{self.writer()}:argument/to", self.draw_link())

    def do_n(self):
        self.set(f"piece:{self.writer()}:argument/n", self.rng.randint(0, 9))

    def do_delete(self):
        self.stet(self.where, "doc", "delete", self.rng.choice(["absent"] + TARGETS), ok=(0, 3))

    def do_run(self):
        name = self.rng.choice(list(self.pieces))
        self.stet(self.where, "run", f"{name}.json", space=self.pieces[name][1], ok=(0, 1))

    def do_demand(self):
        self.stet(self.where, "run", "r.json", "--demand", self.rng.choice(TARGETS), ok=(0, 1))

    def do_fork(self):
        if not self.branch and "far" not in self.pieces:
            self.log.append("stet branch create b; from here on --branch b")
            cli(self.where, "branch", "create", "b")
            self.branch = "b"

    def writer(self):
        return self.rng.choice([n for n in self.pieces if n[0] == "w"])

    # ---- Looking

    def all(self, where):
        """Everything, twice: a writer may make the links that another one writes through."""
        for _ in range(2):
            for name, (_, space) in self.pieces.items():
                self.stet(where, "run", f"{name}.json", space=space, ok=(0, 1))

    def copy(self, name):
        to = self.root / name
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.where, to)
        return to

    def value(self, where, id, *more, space="main"):
        got = self.stet(where, "get", id, *more, space=space, ok=(0, 1, 3, 10))
        return got["value"] if got else None

    def look(self):
        readers = {name: space for name, (_, space) in self.pieces.items() if name[0] != "w"}
        stands = {name: [a["action"] for a in self.stet(self.where, "action", "list", name, space=space)["actions"]
                         if a["state"] == "stands" and not a.get("failed")] for name, space in readers.items()}
        was = {name: self.value(self.where, f"piece:{name}", space=space) for name, space in readers.items()}
        whole = self.copy("whole")
        self.all(whole)
        failed = any(p["failed"] for p in self.stet(whole, "status")["pieces"])
        now = {name: self.value(whole, f"piece:{name}", space=space) for name, space in readers.items()}
        for name in readers:
            for action in stands[name]:
                if was[name] and now[name] and was[name][action] != now[name][action]:
                    raise Failed(f"{name}/{action} is called up to date with {json.dumps(was[name][action])}, and a run of all makes it {json.dumps(now[name][action])}")
        part = self.copy("part")
        cell = self.rng.choice(TARGETS + LINKS)
        got, want = self.value(part, cell, "--fresh"), self.value(whole, cell)
        if got != want and not (got is None and failed):
            raise Failed(f"{cell} --fresh is {json.dumps(got)}, and after a run of all {json.dumps(want)}")
        t = self.rng.choice([t for t in TARGETS if t != cell])
        got = self.stet(part, "run", "r.json", "--demand", t, ok=(0, 1))
        if got and now["r"] and (got := self.value(part, f"piece:r:node:{t}")) != now["r"][t]:
            raise Failed(f"a demand of {t} gives {json.dumps(got)}, a run of all {json.dumps(now['r'][t])}")
        status = self.stet(whole, "status", "r")["pieces"][0]
        if not failed and (status["dirty"] or status["stale"] or status["unknown"]):
            raise Failed(f"after a run of all: {json.dumps(status)}")


STEPS_OF = [(World.do_link, 6), (World.do_back, 1), (World.do_to, 5), (World.do_n, 5), (World.do_delete, 1), (World.do_run, 3), (World.do_demand, 1),
            (World.do_fork, 1)]


def play(seed, root):
    rng = random.Random(seed)
    w = World(rng, root)
    try:
        for _ in range(STEPS):
            for _ in range(rng.choice([1, 1, 2])):
                rng.choices([f for f, _ in STEPS_OF], [k for _, k in STEPS_OF])[0](w)
            w.look()
    except Failed as e:
        print(f"not ok 1 - program {seed}\n# {e}")
        for line in w.log:
            print("#   " + line)
        for name, (pattern, _) in w.pieces.items():
            print(f"#   {name}.json: {json.dumps(pattern)}")
        return False
    return True


def main():
    root = pathlib.Path("work").absolute()
    end = time.monotonic() + SECONDS
    played = 0
    for n in range(PROGRAMS):
        if n and time.monotonic() > end:
            break
        if not play(SEED * 1000 + n, root):
            print("1..1")
            return 1
        played += 1
    shutil.rmtree(root, ignore_errors=True)
    print(f"ok 1 - {played} programs of {STEPS} steps: what is called up to date is what a run of all makes it\n1..1")
    return 0


sys.exit(main())
