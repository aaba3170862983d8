#!/usr/bin/env python3
"""Documents that share ids and differ in scope, against a plain evaluator.

Three pieces are drawn at random, each in a scope. Their nodes read arguments, outputs of nodes before them, and documents: of a few ids, among them
ids that look like parts of the pieces, in three scopes. A document is edited by hand, or holds a link to another one, or is the output of one node,
or is written by one node through a cell.

Steps: documents and arguments edited, links turned, code and inputs of nodes changed; one piece run, one document or one result made fresh.
Every step is a process of its own. What was asked for is what the evaluator says, and in the end everything is: values, states, `check`, and
every action computed again. Deleting the pieces leaves what people wrote."""
import json, os, random, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import seeds

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
PROGRAMS = seeds.setting("STET_PROGRAMS", 1000, 3, 10)
STEPS = seeds.setting("STET_STEPS", 40, 10, 16)
PIECES = ["p", "q", "r"]
SCOPES = ["", "user:ann", "user:bob"]
IDS = ["d", "e", "piece:p", "piece:p:argument", "piece:p:cell:c", "piece:p:node:n0", "piece:q:node:n0", "file:x", "piece:p:child:n0[1]"]


class Failed(Exception):
    pass


def cli(where, *words):
    done = subprocess.run([STET, "--json", *words], cwd=where, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode != 0:
        raise Failed(f"stet {' '.join(words)}: status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else None


def link(doc, **more):
    inside = {"id": doc[0], **more}
    if doc[1]:
        inside["scope"] = doc[1]
    return {"/": {"link@1": inside}}


class World:
    """What there is: documents with a value, a link or a writer; nodes in the order in which they may read each other."""

    def __init__(self, rng):
        self.rng = rng
        self.scope = {p: rng.choice(SCOPES) for p in PIECES}
        # In the scope of a piece such ids are its own; in the common one they are stet's.
        free = [(i, s) for i in IDS for s in SCOPES if (s or ":" not in i) and not (i[:6] == "piece:" and self.scope[i[6]] == s)]
        rng.shuffle(free)
        self.values = {free.pop(): rng.randint(0, 9) for _ in range(rng.randint(3, 6))}
        self.links = {}
        self.arguments = {p: rng.randint(0, 9) for p in PIECES}
        self.nodes = []
        self.made = {}  # document -> (node, "out" or "cell")
        for piece in PIECES:
            for i in range(rng.randint(1, 3)):
                node = {"piece": piece, "id": f"n{i}", "at": len(self.nodes), "code": [rng.randint(1, 3) for _ in range(4)]}
                node["inputs"] = self.sources(node)
                for what in ("out", "cell"):
                    node[what] = free.pop() if free and rng.random() < 0.6 else None
                self.nodes.append(node)
                for what in ("out", "cell"):
                    if node[what]:
                        self.made[node[what]] = (node["at"], what)
                if free and rng.random() < 0.4:
                    self.links[free.pop()] = self.target(node["at"] + 1)

    def target(self, before):
        """A document that nodes from this one on may read."""
        at = list(self.values) + [d for d, (n, _) in self.made.items() if n < before]
        return self.rng.choice(at)

    def sources(self, node):
        at = [("argument", node["piece"])] + [("document", d) for d in self.values]
        at += [("document", d) for d, (n, _) in self.made.items() if n < node["at"]] * 2
        at += [("document", d) for d, to in self.links.items() if self.made.get(to, (-1,))[0] < node["at"]] * 2
        at += [("node", n["at"]) for n in self.nodes if n["piece"] == node["piece"] and n["at"] < node["at"]]
        return [self.rng.choice(at) for _ in range(self.rng.randint(1, 3))]

    def pattern(self, piece):
        nodes = []
        for n in self.nodes:
            if n["piece"] != piece:
                continue
            inputs = {}
            for i, (kind, what) in enumerate(n["inputs"]):
                inputs[f"i{i}"] = ({"$": "argument/n"} if kind == "argument" else link(what) if kind == "document"
                                   else {"$": self.nodes[what]["id"]})
            names, (a, b, c, d) = ", ".join(inputs), n["code"]
            total = " + ".join(inputs)
            cell = f"c.set(({total}) * {c} + {d}); " if n["cell"] else ""
            one = {"id": n["id"], "inputs": inputs, "module": {"type": "javascript", "implementation":
                   f"({{{names}{', c' if n['cell'] else ''}}}) => {{ {cell}return ({total}) * {a} + {b} }}"}}
            if n["cell"]:
                inputs["c"] = link(n["cell"], asCell=True)
            if n["out"]:
                one["output"] = link(n["out"])
            nodes.append(one)
        return {"pattern": 1, "name": piece, "argument": {"default": {"n": 0}}, "cells": {"c": {"default": 5}}, "nodes": nodes,
                "result": {n["id"]: {"$": n["id"]} for n in nodes} | {"cell": {"$": "c"}}}

    def node(self, at, what="out"):
        n = self.nodes[at]
        total = sum(self.arguments[x] if kind == "argument" else self.document(x) if kind == "document" else self.node(x)
                    for kind, x in n["inputs"])
        a, b, c, d = n["code"]
        return (total * a + b) if what == "out" else (total * c + d)

    def document(self, doc):
        if doc in self.values:
            return self.values[doc]
        return self.document(self.links[doc]) if doc in self.links else self.node(*self.made[doc])

    def of(self, piece):
        return ["--scope", self.scope[piece]] if self.scope[piece] else []

    def result(self, piece):
        return {n["id"]: self.node(n["at"]) for n in self.nodes if n["piece"] == piece} | {"cell": 5}


def same(what, want, got):
    if want != got:
        raise Failed(f"{what}: {got}, expected {want}")


def put(where, doc, value):
    cli(where, "set", doc[0], json.dumps(value), *(["--scope", doc[1]] if doc[1] else []))


def get(where, doc, *words):
    return cli(where, "get", doc[0], *words, *(["--scope", doc[1]] if doc[1] else []))["value"]


def write(where, w, piece):
    (where / f"{piece}.json").write_text(json.dumps(w.pattern(piece)))


def step(where, w, log):
    rng = w.rng
    for _ in range(rng.randint(1, 2)):
        kind = rng.choice(["value", "value", "value", "argument", "link", "code", "inputs"])
        if kind == "value":
            doc = rng.choice(list(w.values))
            w.values[doc] = rng.randint(0, 99)
            put(where, doc, w.values[doc])
            log.append(f"set {doc} {w.values[doc]}")
        elif kind == "argument":
            piece = rng.choice(PIECES)
            w.arguments[piece] = rng.randint(0, 99)
            cli(where, "set", f"piece:{piece}:argument/n", str(w.arguments[piece]), *w.of(piece))
            log.append(f"argument {piece} {w.arguments[piece]}")
        elif kind == "link" and w.links:
            doc = rng.choice(list(w.links))
            before = min([n["at"] for n in w.nodes if ("document", doc) in n["inputs"]], default=len(w.nodes))
            w.links[doc] = w.target(before)
            put(where, doc, link(w.links[doc]))
            log.append(f"link {doc} {w.links[doc]}")
        elif kind in ("code", "inputs"):
            n = rng.choice(w.nodes)
            if kind == "code":
                n["code"] = [rng.randint(1, 3) for _ in range(4)]
            else:
                n["inputs"] = w.sources(n)
            write(where, w, n["piece"])
            log.append(f"{kind} {n['piece']}/{n['id']} {n['code']} {n['inputs']}")
    ask = rng.choice(["run", "run", "document", "result"])
    piece = rng.choice(PIECES)
    if ask == "document" and w.made:
        doc = rng.choice(list(w.made) + list(w.links))
        log.append(f"fresh {doc}")
        same(f"{doc}", w.document(doc), get(where, doc, "--fresh"))
    elif ask == "result":
        log.append(f"fresh result of {piece}")
        same(f"result of {piece}", w.result(piece), get(where, (f"piece:{piece}", w.scope[piece]), "--fresh"))
    else:
        log.append(f"run {piece}")
        cli(where, "run", f"{piece}.json", *w.of(piece))
        same(f"result of {piece}", w.result(piece), cli(where, "piece", "show", piece, *w.of(piece))["result"])


def settle(where, w):
    for piece in PIECES:
        cli(where, "run", f"{piece}.json", *w.of(piece))
    for piece in PIECES:
        same(f"result of {piece}", w.result(piece), cli(where, "piece", "show", piece, *w.of(piece))["result"])
    for doc in list(w.values) + list(w.made):
        same(f"{doc}", w.document(doc), get(where, doc))
    for row in cli(where, "status")["pieces"]:
        same(f"state of {row['piece']}", (0, 0, 0, 0), tuple(row[k] for k in ("dirty", "stale", "unknown", "failed")))
    cli(where, "check", "--rerun", "all")


def program(where, seed):
    w, log = World(random.Random(seed)), []
    where.mkdir()
    cli(where, "init")
    try:
        for doc, value in w.values.items():
            put(where, doc, value)
        for doc, to in w.links.items():
            put(where, doc, link(to))
        for piece in PIECES:
            write(where, w, piece)
            cli(where, "run", f"{piece}.json", "--set", f"n={w.arguments[piece]}", *w.of(piece))
        settle(where, w)
        for i in range(STEPS):
            step(where, w, log)
            if i % 8 == 7:
                settle(where, w)
        settle(where, w)
        for piece in PIECES:
            cli(where, "piece", "delete", piece, *w.of(piece))
        for doc, value in w.values.items():
            same(f"{doc} after the pieces are gone", value, get(where, doc))
        cli(where, "check")
    except Failed as failure:
        print(f"# seed {seed}: {failure}")
        for line in log:
            print(f"#   {line}")
        for piece in PIECES:
            print(f"#   {w.scope[piece]!r} {json.dumps(w.pattern(piece))}")
        return False
    return True


seeds.run("scopes", "programs of documents in several scopes", PROGRAMS, program)
