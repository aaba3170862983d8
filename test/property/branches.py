#!/usr/bin/env python3
"""Pieces over up to three spaces and their branches, under random steps, against a model that computes each value from scratch.

Documents and results of pieces hold links, also in lists: most of those to the space that the link lies in do not name it, whoever reads them.

Steps: documents set, linked and deleted, arguments changed, outputs edited by hand, spaces created that were read before they existed, spaces
deleted and made anew, pieces set up before and after what they read, forks of forks at any time, branches deleted and made again, the
scheduler's tables emptied, rows that can't be decoded, runs, pulls and `get --fresh`, each by a new process or by one of two servers that stay
open, or by two processes at once.

After each step, on every branch of every space: whatever is called up to date has the value that a new project would compute; status, action
list, action show, why and a dry run agree; nothing that only looks changes anything. After a run of a piece all of it is up to date and right.
Now and then the whole is compared with a new project that is given the same documents."""
import json, os, pathlib, random, shutil, sqlite3, subprocess, sys
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import Server

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
STEPS = int(os.environ.get("STET_STEPS") or (20000 if LONG else 40 if SHORT else 150))
SEED = int(os.environ.get("STET_SEED", "1"))
rng = random.Random(SEED)
root = pathlib.Path("p").absolute()
SPACES = ["main", "two", "three"]
DOCS = ["d0", "d1", "d2"]
# One looks at each value, the other at the whole of it.
CODE = ["({a, b}) => { const n = (v, or) => Array.isArray(v) ? v.reduce((t, x) => t * 3 + n(x, 5), 1) : v ?? or;"
        " return (n(a, 7) * 31 + n(b, 11)) % 1000003; }",
        "(given) => { const {a, b} = JSON.parse(JSON.stringify(given)); const n = (v, or) => Array.isArray(v) ? v.reduce((t, x) => t * 3 + n(x, 5), 1)"
        " : v ?? or; return (n(a, 7) * 31 + n(b, 11)) % 1000003; }"]


def number(v, absent):
    if isinstance(v, list):
        total = 1
        for x in v:
            total = total * 3 + number(x, 5)
        return total
    return absent if v is None else v


def link(id, space=None, path=()):
    return {"/": {"link@1": {"id": id, "path": list(path), **({"space": space} if space else {})}}}


def written(v, space):
    """A model's value as a document of `space`: a pair is a link."""
    if isinstance(v, list):
        return [written(x, space) for x in v]
    return link(v[1], v[0] if v[0] != space else None) if isinstance(v, tuple) else v


class Failed(Exception):
    pass


class Stet:
    """Operations, by whichever way in comes up."""

    def __init__(self, where):
        self.where = where
        self.servers = []

    def server(self, i):
        while len(self.servers) <= i:
            s = Server("--all-tools", cwd=self.where)
            s.initialize()
            self.servers.append(s)
        return self.servers[i]

    def cli(self, *words, ok=(0,)):
        done = subprocess.run([STET, "--json", *words], cwd=self.where, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        if done.returncode not in ok:
            raise Failed(f"{words}: status {done.returncode}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None

    def __call__(self, op, *, may_fail=False, **args):
        args = {k: v for k, v in args.items() if v is not None}
        answer = self.server(rng.randrange(2)).call("stet_" + op.replace(" ", "_"), args)
        if answer.get("isError"):
            if may_fail:
                return None
            raise Failed(f"{op} {args}: {answer['content'][-1]['text']}")
        return answer["structuredContent"]

    def close(self):
        for s in self.servers:
            s.close()
        self.servers = []


class Branch:
    def __init__(self, of=None):
        self.docs = dict(of.docs) if of else {}          # id -> value, link, or list of these
        self.pieces = dict(of.pieces) if of else {}      # name -> argument
        self.seq = None


class Model:
    def __init__(self):
        self.spaces = {"main": {"": Branch()}}           # name -> {branch: Branch}; absent: it does not exist
        self.patterns = {}
        # Pieces have a fixed order: each reads documents, and nodes of pieces before it, of its own space or of others.
        for rank in range(7):
            name, home = f"p{rank}", rng.choice(SPACES)
            nodes = []
            for n in range(rng.randint(1, 3)):
                nodes.append((f"n{n}", [self.source(rank, n, home) for _ in "ab"]))
            self.patterns[name] = (home, nodes)

    def source(self, rank, n, home):
        kind = rng.randrange(5)
        if kind == 0:
            return ("argument",)
        if kind == 1 and n > 0:
            return ("node", home, f"p{rank}", f"n{rng.randrange(n)}")
        if kind < 4 and rank > 0:
            other = f"p{rng.randrange(rank)}"
            space, nodes = self.patterns[other]
            return (rng.choice(["node", "result"]), space, other, rng.choice(nodes)[0])
        return ("doc", rng.choice(SPACES), rng.choice(DOCS))

    def pattern(self, name):
        home, nodes = self.patterns[name]

        def binding(s):
            if s[0] == "argument":
                return {"$": "argument/x"}
            if s[0] == "node" and s[2] == name:
                return {"$": s[3]}
            if s[0] == "node":
                return link(f"piece:{s[2]}:node:{s[3]}", s[1] if s[1] != home else None)
            if s[0] == "result":
                return link(f"piece:{s[2]}", s[1] if s[1] != home else None, [s[3]])
            return link(s[2], s[1] if s[1] != home else None)
        rows = [{"id": id, "inputs": dict(zip("ab", map(binding, sources))), "module": {"type": "javascript", "implementation": CODE[len(id + name + str(sources)) % 2]}} for id, sources in nodes]
        return {"pattern": 1, "name": name, "argument": {"default": {"x": 1}}, "nodes": rows, "result": {id: {"$": id} for id, _ in nodes}}

    # What a new project computes, for an action of `space` on `branch`: its own space is read on that branch, also through links that come
    # back from elsewhere; other spaces on their default branch.
    def doc(self, space, branch, of, id):
        view = self.spaces.get(of, {}).get(branch if of == space else "")
        value = view.docs.get(id) if view else None
        follow = lambda v: self.doc(space, branch, *v) if isinstance(v, tuple) else v
        return [follow(v) for v in value] if isinstance(value, list) else follow(value)

    def node(self, space, branch, piece, id):
        view = self.spaces.get(space, {}).get(branch)
        if not view or piece not in view.pieces:
            return None
        values = []
        for s in dict(self.patterns[piece][1])[id]:
            if s[0] == "argument":
                values.append(view.pieces[piece])
            elif s[0] in ("node", "result"):
                values.append(self.node(s[1], branch if s[1] == space else "", s[2], s[3]))
            else:
                values.append(self.doc(space, branch, s[1], s[2]))
        return (number(values[0], 7) * 31 + number(values[1], 11)) % 1000003

    def places(self):
        return [(s, b) for s, branches in self.spaces.items() for b in branches]

    def installed(self):
        return [(s, b, p) for s, b in self.places() for p in self.spaces[s][b].pieces]


m = Model()
shutil.rmtree(root, ignore_errors=True)
root.mkdir()
subprocess.run([STET, "-q", "init"], cwd=root, check=True)
for name in m.patterns:
    (root / f"{name}.json").write_text(json.dumps(m.pattern(name)))
stet = Stet(root)
steps, looked, ran = [], 0, 0


def sql(space, text, *values):
    db = sqlite3.connect(root / f".stet/local/spaces/{space}.db", timeout=30)
    done = db.execute(text, values).fetchall()
    db.commit()
    db.close()
    return done


def place():
    return rng.choice(m.places())


# ---- Steps: each does something to stet and to the model, and says what ------------------------------------------------

def set_doc():
    space = rng.choice(SPACES)                           # may be one that is not there yet
    branch = rng.choice(list(m.spaces.get(space, {"": 0})))
    id = rng.choice(DOCS)
    view = m.spaces.setdefault(space, {"": Branch()})[branch]
    after = [(s, d) for s in SPACES for d in DOCS if d > id]
    after += [to for to in after if to[0] == space] * 2
    if rng.random() < 0.4 and after:
        to = rng.choice(after)
        value = written(to, space) if rng.random() < 0.8 else link(*reversed(to))
        if rng.random() < 0.4:
            to, value = [3, to, rng.choice(after)], None
        stet("set", cell=id, value=value or written(to, space), space=space, branch=branch)
        view.docs[id] = to
    elif rng.random() < 0.2 and id in view.docs:
        stet("doc delete", id=id, space=space, branch=branch)
        del view.docs[id]
    else:
        view.docs[id] = rng.randrange(1000)
        stet("set", cell=id, value=view.docs[id], space=space, branch=branch)
    return f"set {id} in {space}@{branch} to {view.docs.get(id)}"


def set_argument():
    if not m.installed():
        return None
    space, branch, piece = rng.choice(m.installed())
    x = rng.randrange(1000)
    stet("set", cell=f"piece:{piece}:argument/x", value=x, space=space, branch=branch)
    m.spaces[space][branch].pieces[piece] = x
    return f"argument of {piece} in {space}@{branch} is {x}"


def edit_output():
    if not m.installed():
        return None
    space, branch, piece = rng.choice(m.installed())
    node = rng.choice(m.patterns[piece][1])[0]
    stet("set", cell=f"piece:{piece}:node:{node}", value=-rng.randrange(1000), space=space, branch=branch)
    return f"output of {piece}/{node} in {space}@{branch} edited"


def check_right(space, branch, piece, how):
    for id, _ in m.patterns[piece][1]:
        got = stet("get", cell=f"piece:{piece}:node:{id}", space=space, branch=branch, may_fail=True)
        want = m.node(space, branch, piece, id)
        if (got and got["value"]) != want:
            raise Failed(f"after {how}: {piece}/{id} in {space}@{branch} is {got and got['value']}, a new project gives {want}")
    rows = stet("action list", piece=piece, space=space, branch=branch)["actions"]
    bad = [r for r in rows if r["state"] != "stands"]
    if bad or len(rows) != len(m.patterns[piece][1]):
        raise Failed(f"after {how}: {piece} in {space}@{branch}: {rows}")


def run_piece():
    global ran
    piece = rng.choice(list(m.patterns))
    space = m.patterns[piece][0]
    branches = m.spaces.setdefault(space, {"": Branch()})
    branch = rng.choice(list(branches))
    way = rng.randrange(4)
    if way == 0:
        answer = stet.cli("run", f"{piece}.json", "--space", space, "--branch", branch)
    elif way == 1:                                       # two at once
        both = [subprocess.Popen([STET, "--json", "run", f"{piece}.json", "--space", space, "--branch", branch], cwd=root, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True) for _ in range(2)]
        outs = [b.communicate(timeout=120) for b in both]
        if any(b.returncode for b in both):
            raise Failed(f"two runs of {piece}: {outs}")
        answer = json.loads(outs[0][0].splitlines()[-1])
    else:
        answer = stet("run", pattern=str(root / f"{piece}.json"), space=space, branch=branch)
    branches[branch].pieces.setdefault(piece, 1)
    ran += answer["ran"]
    check_right(space, branch, piece, "a run")
    return f"run {piece} in {space}@{branch} ({way}): ran {answer['ran']}"


def pull():
    if not m.installed():
        return None
    space, branch, piece = rng.choice(m.installed())
    if rng.random() < 0.5:
        got = stet("piece pull", piece=piece, space=space, branch=branch)["result"]
        want = {id: m.node(space, branch, piece, id) for id, _ in m.patterns[piece][1]}
        how = "piece pull"
    else:
        node = rng.choice(m.patterns[piece][1])[0]
        got = stet.cli("get", f"piece:{piece}/{node}", "--fresh", "--space", space, "--branch", branch)["value"]
        want = m.node(space, branch, piece, node)
        how = f"get --fresh of {node}"
    if got != want:
        raise Failed(f"{how} of {piece} in {space}@{branch} gives {got}, a new project {want}")
    return f"{how} of {piece} in {space}@{branch}"


def fork():
    space, branch = place()
    name = rng.choice(["x", "y"])
    if name == branch or not (root / f".stet/local/spaces/{space}.db").exists():
        return None
    if name in m.spaces[space]:
        stet("branch delete", name=name, space=space)
        del m.spaces[space][name]
    stet("branch create", name=name, **{"from": branch}, space=space)
    m.spaces[space][name] = Branch(m.spaces[space][branch])
    return f"fork {space}@{branch} as {name}"


def drop_branch():
    named = [(s, b) for s, b in m.places() if b]
    if not named:
        return None
    space, branch = rng.choice(named)
    stet("branch delete", name=branch, space=space)
    del m.spaces[space][branch]
    return f"delete branch {space}@{branch}"


def empty_tables():
    space, _ = place()
    if not (root / f".stet/local/spaces/{space}.db").exists():
        return None
    for table in ["action", "mark", "place_index"] + (["complete_branch", "past_observation"] if rng.random() < 0.5 else []):
        sql(space, f"DELETE FROM {table}")
    return f"empty the tables of {space}"


def damage_row():
    space, _ = place()
    if not (root / f".stet/local/spaces/{space}.db").exists():
        return None
    rows = sql(space, "SELECT action FROM action")
    if not rows:
        return None
    action = rng.choice(rows)[0]
    sql(space, "UPDATE action SET observation = ? WHERE action = ?", rng.randbytes(rng.randrange(1, 40)), action)
    return f"damage the row of action {action} in {space}"


def drop_space():
    space = rng.choice(SPACES[1:])
    if space not in m.spaces:
        return None
    stet.close()                                         # a file that is open may not be taken away under a writer
    for f in (root / ".stet/local/spaces").glob(f"{space}.db*"):
        f.unlink()
    shutil.rmtree(root / f".stet/local/files/{space}", ignore_errors=True)
    del m.spaces[space]
    return f"delete space {space}"


STEPS_OF = [(set_doc, 22), (set_argument, 14), (edit_output, 4), (run_piece, 16), (pull, 22), (fork, 8), (drop_branch, 2), (empty_tables, 2),
            (damage_row, 4), (drop_space, 2)]


# ---- What must hold after each ------------------------------------------------------------------------------------------

def look():
    global looked
    for space, branch in m.places():
        if not (root / f".stet/local/spaces/{space}.db").exists():
            continue
        status = {p["piece"]: p for p in stet("status", space=space, branch=branch)["pieces"]}
        if set(status) != set(m.spaces[space][branch].pieces):
            raise Failed(f"status in {space}@{branch}: {sorted(status)}, expected {sorted(m.spaces[space][branch].pieces)}")
        for piece in m.spaces[space][branch].pieces:
            at = dict(piece=piece, space=space, branch=branch)
            states = {r["action"]: r["state"] for r in stet("action list", **at)["actions"]}
            nodes = [id for id, _ in m.patterns[piece][1]]
            if set(states) != set(nodes):
                raise Failed(f"action list of {piece} in {space}@{branch}: {states}, expected {nodes}")
            counts = {s: list(states.values()).count(s) for s in ["stands", "dirty", "stale", "unknown"]}
            if any(status[piece][s] != n for s, n in counts.items()):
                raise Failed(f"status of {piece} in {space}@{branch}: {status[piece]}, but actions are {states}")
            for id, state in states.items():
                looked += 1
                if state == "stands":
                    got = stet("get", cell=f"piece:{piece}:node:{id}", space=space, branch=branch, may_fail=True)
                    want = m.node(space, branch, piece, id)
                    if (got and got["value"]) != want:
                        raise Failed(f"{piece}/{id} in {space}@{branch} is called up to date with {got and got['value']}; a new project gives {want}")
            id = rng.choice(nodes)
            if stet("action show", action=id, **at)["state"] != states[id]:
                raise Failed(f"action show of {piece}/{id} in {space}@{branch} does not say {states[id]}")
            if stet("why", action=id, **at)["reasons"][0]["state"] != states[id]:
                raise Failed(f"why {piece}/{id} in {space}@{branch} does not say {states[id]}")
            whole = stet("why", **at)["reasons"]
            if (counts["stands"] < len(nodes)) != bool(whole):
                raise Failed(f"why {piece} in {space}@{branch} says {whole}, but actions are {states}")
    if rng.random() < 0.15 and m.installed():
        space, branch, piece = rng.choice(m.installed())
        before = {r["action"]: r["state"] for r in stet("action list", piece=piece, space=space, branch=branch)["actions"]}
        dry = {r["node"]: r["state"] for r in stet("run", pattern=str(root / f"{piece}.json"), space=space, branch=branch, dry_run=True)["actions"]}
        # A dry run may know more than a look: it takes up marks that are owed, on its copy.
        if {a for a, s in before.items() if s != "stands"} != set(dry):
            raise Failed(f"a dry run of {piece} in {space}@{branch} names {dry}, but actions are {before}")
        after = {r["action"]: r["state"] for r in stet("action list", piece=piece, space=space, branch=branch)["actions"]}
        if before != after:
            raise Failed(f"a dry run of {piece} in {space}@{branch} changed {before} to {after}")


def compare_with_new():
    """The default branch of each space: other branches have no counterpart in a new project, where other spaces would read them."""
    for space, branch in m.places():
        if branch or not m.spaces[space][branch].pieces:
            continue
        other = pathlib.Path("new").absolute()
        shutil.rmtree(other, ignore_errors=True)
        other.mkdir()
        subprocess.run([STET, "-q", "init"], cwd=other, check=True)
        fresh = Stet(other)
        for name in m.patterns:
            shutil.copy(root / f"{name}.json", other)
        for s, branches in m.spaces.items():
            view = branches[branch if s == space else ""]
            for id, v in view.docs.items():
                fresh("set", cell=id, value=written(v, s), space=s)
        for rank in sorted(m.patterns):
            s = m.patterns[rank][0]
            view = m.spaces.get(s, {}).get(branch if s == space else "")
            if view and rank in view.pieces:
                fresh("run", pattern=str(other / f"{rank}.json"), space=s, set={"x": view.pieces[rank]})
        for piece in m.spaces[space][branch].pieces:
            got = stet("piece pull", piece=piece, space=space, branch=branch)["result"]
            want = fresh("piece show", piece=piece, space=space)["result"]
            if got != want:
                raise Failed(f"{piece} in {space}@{branch} is {got}, in a new project {want}")
        fresh.close()


print("1..1")
names, weights = [f for f, _ in STEPS_OF], [w for _, w in STEPS_OF]
try:
    for n in range(STEPS):
        said = rng.choices(names, weights)[0]()
        if said is None:
            continue
        steps.append(f"{n}: {said}")
        look()
        if n % (500 if LONG else 120) == 119:
            compare_with_new()
    compare_with_new()
    stet.close()
    done = subprocess.run([STET, "check", "--only", "memory"], cwd=root, capture_output=True, text=True)
    damaged = any("damage" in s or "empty" in s for s in steps)
    if done.returncode != 0 and not damaged:
        raise Failed(f"stet check: {done.stdout}{done.stderr}")
    print(f"# seed {SEED}: {len(steps)} steps, {looked} states looked at, {ran} actions ran")
    print("ok 1 - what is called up to date is what a new project computes")
except (Failed, subprocess.SubprocessError, KeyError, IndexError, TypeError, AttributeError) as failure:
    print("not ok 1 - what is called up to date is what a new project computes")
    print(f"# seed {SEED}, STET_SEED={SEED} repeats it: {type(failure).__name__}: {failure}")
    for s in steps[-25:]:
        print(f"#   {s}")
    stet.close()
    sys.exit(1)
