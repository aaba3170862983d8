#!/usr/bin/env python3
"""One pattern in several scopes of a project, against one project for each scope.

What is done to the piece of a scope is done to the piece of a project of its own, where it lies in the common scope. So whatever the first
project shows of a scope is what the other one shows: results, how many actions ran and stood, states, reasons, arguments and overrides, graphs.
A mark, an observation or a value that got from one scope into another is a difference, even where it only cost a needless run.

The pattern has computations, children of `map`, `filter` and `reduce`, cells of children, a node that writes through a cell, handlers, one
that fails for some arguments, a command, and one that returns a pattern. Steps: the argument, cells and outputs set by hand, `--set`, `--unset`, events, another pattern, runs of all or of a
part, `get --fresh`, runs that are killed, branches, a piece deleted, a handler that sends to its own stream, `gc`. Every step is a process of its own."""
import json, os, random, re, shutil, signal, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import seeds

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
PROGRAMS = seeds.setting("STET_PROGRAMS", 300, 1, 2)
STEPS = seeds.setting("STET_STEPS", 60, 12, 25)
SCOPES = ["", "s1", "user:a b/c@d é"]  # whatever a scope may hold


class Failed(Exception):
    pass


def js(code, **more):
    return {"type": "javascript", "implementation": code, **more}


def arg(key):
    return {"$": f"argument/{key}"}


def child(k):
    return {"pattern": 1, "name": "c", "cells": {"seen": {"default": k}},
            "nodes": [{"id": "d", "inputs": {"x": arg("element"), "f": arg("f"), "s": {"$": "seen"}}, "module": js("({x, f, s}) => x.n * f + s")},
                      {"id": "e", "inputs": {"d": {"$": "d"}}, "module": js("({d}) => [d, 1]")},
                      {"id": "bump", "stream": {"$": "bump"}, "inputs": {"s": {"$": "seen", "asCell": True}},
                       "module": js("(event, {s}) => { s.set(s.get() + event) }", handler=True)}],
            "result": {"$": "e"}}


# A pattern with as many nodes as the argument says.
RETURNS = """({f}) => ({pattern: 1, name: 'm', nodes: Array.from({length: f %% 3 + 1}, (_, i) => ({id: 'n' + i, inputs: {f: {$: 'argument/f'}},
  module: {type: 'javascript', implementation: '({f}) => f + %d + ' + i}})), result: {last: {$: 'n' + f %% 3}}})"""


def pattern(v):
    """Version `v` of the pattern."""
    key = {"pattern": 1, "name": "k", "nodes": [{"id": "o", "inputs": {"x": arg("element")}, "module": js("({x}) => x.n % 2 === 1")}], "result": {"$": "o"}}
    add = {"pattern": 1, "name": "a", "nodes": [{"id": "p", "inputs": {"x": arg("element"), "a": arg("accumulator")}, "module": js("({x, a}) => a + x.n")}],
           "result": {"$": "p"}}
    rows = {"list": arg("rows"), "keys": {"$": "ids"}}
    nodes = [{"id": "ids", "inputs": {"rows": arg("rows")}, "module": js("({rows}) => rows.map(r => r.id)")},
             {"id": "each", "inputs": {**rows, "f": arg("f")}, "module": {"type": "ref", "ref": "map", "pattern": child(v % 2)}},
             {"id": "odd", "inputs": rows, "module": {"type": "ref", "ref": "filter", "pattern": key}},
             {"id": "sum", "inputs": {**rows, "initial": v}, "module": {"type": "ref", "ref": "reduce", "pattern": add}},
             {"id": "picky", "inputs": {"f": arg("f")}, "module": js("({f}) => { if (f %% 3 === 0) throw new Error('no ' + f); return f * %d }" % (v + 1))},
             {"id": "after", "inputs": {"p": {"$": "picky"}, "s": {"$": "sum"}}, "module": js("({p, s}) => p + s")},
             {"id": "noter", "inputs": {"f": arg("f"), "c": {"$": "noted", "asCell": True}}, "module": js("({f, c}) => { c.set({['k' + f]: f}); return f }")},
             {"id": "reader", "inputs": {"c": {"$": "noted"}, "h": {"$": "held"}}, "module": js("({c, h}) => [Object.keys(c), h]")},
             {"id": "cmd", "inputs": {"f": arg("f"), "s": {"$": "sum"}}, "module": {"type": "command", "argv": ["echo", "{f}", "{s}"], "stdout": "text"}},
             {"id": "made", "inputs": {"f": arg("f")}, "returns": "pattern", "module": js(RETURNS % v)},
             {"id": "add", "stream": {"$": "add"}, "inputs": {"rows": {"$": "argument/rows", "asCell": True}, "held": {"$": "held", "asCell": True},
                                                              "again": {"$": "again", "asCell": True}},
              "module": js("(event, {rows, held, again}) => { rows.push({id: 'e' + event, n: event}); held.set(event); if (event % 2) again.send(event) }", handler=True)},
             {"id": "again", "stream": {"$": "again"}, "inputs": {"held": {"$": "held", "asCell": True}},
              "module": js("(event, {held}) => { held.set([event, held.get()]) }", handler=True)}]
    if v % 3 == 2:
        nodes = [n for n in nodes if n["id"] not in ("odd", "after")]
    names = [n["id"] for n in nodes if "stream" not in n]
    return {"pattern": 1, "name": "p", "argument": {"default": {"rows": [{"id": "a", "n": 1}, {"id": "b", "n": 2}], "f": v + 1}},
            "cells": {"noted": {"default": {}}, "held": {"default": v}}, "nodes": nodes, "result": {n: {"$": n} for n in names}}


class Project:
    def __init__(self, where):
        self.where = where
        where.mkdir()
        self.cli("init")

    def cli(self, *words, may_fail=False, kill=None):
        at = subprocess.Popen([STET, "--json", *words], cwd=self.where, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        try:
            out, err = at.communicate(timeout=120 if kill is None else kill)
        except subprocess.TimeoutExpired:
            at.send_signal(signal.SIGKILL)
            out, err = at.communicate()
            if kill is None:
                raise Failed(f"stet {' '.join(words)}: no end")
            return None
        # 1: an action failed, which is an answer
        if at.returncode not in (0, 1) and not may_fail:
            raise Failed(f"stet {' '.join(words)}: status {at.returncode}: {out[-2000:]}{err[-2000:]}")
        lines = out.strip().splitlines()
        return json.loads(lines[-1]) if lines else at.returncode


class Piece:
    """The piece of one scope, in the project of all and in its own."""

    def __init__(self, root, whole, number, scope):
        self.whole, self.scope, self.own, self.branch = whole, scope, Project(root / f"own{number}"), []

    def named(self, words, name="p"):
        """By --scope or by the name alone."""
        if not self.scope:
            return list(words)
        return [w if w != name else f"{name}@{self.scope}" for w in words] if len(words) % 2 else [*words, "--scope", self.scope]

    def both(self, *words, **more):
        """Of a piece: in the project of all, and in its own."""
        return self.whole.cli(*self.named(words), *self.branch, **more), self.own.cli(*words, *self.branch, **more)

    def both_docs(self, *words, **more):
        scope = ["--scope", self.scope] if self.scope else []
        return self.whole.cli(*words, *scope, *self.branch, **more), self.own.cli(*words, *self.branch, **more)

    def plain(self, v):
        """What is the same in both: names without scopes; no sequences, times, ids of runs and results taken from the store."""
        drop = {"seq", "hash", "runId", "durationMs", "metrics", "flushes", "loaded", "source", "setup", "committed", "generation", "next", "observedAt", "commitSeq",
                "owed", "scope", "files", "filesChanged", "event", "causes", "commits", "log", "conflicts", "watched", "time", "implementation", "errorFingerprint", "fingerprint",
                "restored"}  # another scope may have made the same result
        if isinstance(v, dict):
            return {self.plain(k): self.plain(x) for k, x in v.items() if k not in drop}
        if isinstance(v, list):
            return [self.plain(x) for x in v]
        if isinstance(v, str):
            if self.scope:
                v = v.replace(f"@{self.scope}", "").replace(f" (scope {self.scope})", "")
            return re.sub(r"(at )?sequence \d+|at \d{4}-\d\d-\d\dT[0-9:.]+Z|up to \d+", "", v)
        return v

    def check_links(self, v):
        """Every link to a part of a piece leads into its own scope."""
        if isinstance(v, list):
            for x in v:
                self.check_links(x)
        elif isinstance(v, dict):
            link = v.get("link@1")
            if isinstance(link, dict) and link["id"].startswith("piece:") and link.get("scope", "") != self.scope:
                raise Failed(f"scope {self.scope!r}: a link leads out of it: {link}")
            for x in v.values():
                self.check_links(x)

    def compare(self, what, pair):
        self.check_links(pair[0])
        mine, want = self.plain(pair[0]), self.plain(pair[1])
        if mine != want:
            raise Failed(f"scope {self.scope!r}: {what}:\n#   {json.dumps(mine)[:3000]}\n#   expected\n#   {json.dumps(want)[:3000]}")

    def look(self):
        """Every surface that only looks."""
        for words in (("piece", "show", "p"), ("action", "list", "p"), ("action", "list", "p", "--state", "dirty"), ("why", "p"), ("piece", "graph", "p"),
                      ("action", "show", "p", "each"), ("run", "p.json", "--piece", "p", "--dry-run", "--no-retry-failed")):
            self.compare(" ".join(words), self.both(*words))
        rows = [[r for r in s["pieces"]] for s in self.both("status", "p")]
        self.compare("status", rows)
        self.compare("result", self.both_docs("get", "piece:p"))
        self.compare("parts", self.both_docs("get", "piece:p:argument"))


def step(rng, pieces, version, root, log):
    p = rng.choice(pieces)
    kind = rng.choice(["argument", "argument", "set", "unset", "cell", "output", "child", "event", "event", "bump", "pattern", "fresh", "part", "kill", "delete", "branch",
                       "gc", "refused", "pull", "look"])
    n = rng.randint(0, 9)
    log.append(f"{p.scope!r} {p.branch} {kind} {n}")
    if kind == "argument":
        if rng.random() < 0.5:
            p.both_docs("set", "piece:p:argument/f", str(n))
        else:
            rows = [{"id": f"r{i}", "n": rng.randint(0, 5)} for i in rng.sample(range(6), rng.randint(0, 4))]
            p.both_docs("set", "piece:p:argument/rows", json.dumps(rows))
    elif kind == "set":
        p.compare("run --set", p.both("run", "p.json", "--set", f"f={n}"))
    elif kind == "unset":
        p.compare("run --unset", p.both("run", "p.json", "--unset", rng.choice(["f", "rows", ".", "cell:held"]), may_fail=True))
    elif kind == "cell":
        p.both_docs("set", "piece:p:cell:held", str(n))
    elif kind == "output":
        p.both_docs("set", f"piece:p:node:{rng.choice(['sum', 'picky', 'noter'])}", str(n))
    elif kind == "child":
        p.compare("a cell of a child", p.both_docs("set", "piece:p:cell:each[a].seen", str(n), may_fail=True))
    elif kind == "event":
        p.compare("event", p.both("piece", "send", "p", "add", str(n), "--id", f"e{rng.randint(0, 99)}", may_fail=True))
    elif kind == "bump":
        p.compare("event of a child", p.both("piece", "send", "p", "each[a].bump", str(n), "--id", f"b{rng.randint(0, 99)}", may_fail=True))
    elif kind == "pattern":
        version[0] = rng.randint(0, 5)
        for where in [p.whole.where] + [x.own.where for x in pieces]:
            (where / "p.json").write_text(json.dumps(pattern(version[0])))
        # The first run sets all pieces of its branch up; that makes no difference to what the others run.
        for x in rng.sample(pieces, len(pieces)):
            x.compare("run of another pattern", x.both("run", "p.json"))
    elif kind == "fresh":
        p.compare("get --fresh", p.both_docs("get", f"piece:p/{rng.choice(['each', 'sum', 'noter'])}", "--fresh", may_fail=True))
    elif kind == "part":
        p.compare("run --demand", p.both("run", "p.json", "--demand", rng.choice(["each", "reader", "sum"]), may_fail=True))
    elif kind == "kill":
        p.whole.cli(*p.named(["run", "p.json"]), *p.branch, kill=rng.random() * 0.2)
        p.both("run", "p.json")
    elif kind == "delete":
        p.compare("delete", p.both("piece", "delete", "p"))
        left = p.whole.cli("doc", "list", "--scope", p.scope, *p.branch)["documents"] if p.scope else []
        if left:
            raise Failed(f"scope {p.scope!r}: left after the piece was deleted: {left}")
        p.both("run", "p.json")
    elif kind == "branch":
        # All scopes are on the branch; only this one goes there. It runs on both from now on.
        if p.branch:
            p.branch = []
            p.both("run", "p.json")
        else:
            name = f"b{len(log)}"
            for project in (p.whole, p.own):
                project.cli("branch", "create", name)
            p.branch = ["--branch", name]
            p.look()
    elif kind == "gc":
        p.both_docs("gc") if not p.scope and not p.branch else p.whole.cli("gc")
    elif kind == "refused":
        for words in (("set", "piece:p", "1"), ("set", "piece:p:process:0", "1"), ("doc", "delete", "piece:p:argument"), ("doc", "delete", "piece:p:cell:held")):
            pair = p.both_docs(*words, may_fail=True)
            if not all(isinstance(x, int) and x == 2 or isinstance(x, dict) and "error" in x for x in pair):
                raise Failed(f"scope {p.scope!r}: {words} was not refused: {pair}")
    elif kind == "pull":
        p.compare("pull", p.both("piece", "pull", "p", may_fail=True))
    if rng.random() < 0.5:
        p.compare("run", p.both("run", "p.json"))
    if rng.random() < 0.4:
        rng.choice(pieces).look()


def fresh(root, p, version):
    """A new project with the argument and cells as they are: what was computed step by step is what is computed at once."""
    new = Project(root / "fresh")
    (new.where / "p.json").write_text(json.dumps(pattern(version)))
    overridden = p.own.cli("piece", "show", "p", *p.branch)
    words = [w for key in ("f", "rows") if key in overridden["overridden"] for w in ("--set", f"{key}={json.dumps(overridden['argument'][key])}")]
    for cell in ("held",):
        if f"cell:{cell}" in overridden["overridden"]:
            new.cli("run", "p.json")
            new.cli("set", f"piece:p:cell:{cell}", json.dumps(p.own.cli("get", f"piece:p:cell:{cell}", *p.branch)["value"]))
    new.cli("run", "p.json", *words)
    for key in ("sum", "noter", "reader", "cmd", "made"):
        p.compare(f"fresh {key}", (p.whole.cli("get", f"piece:p/{key}", *(["--scope", p.scope] if p.scope else []), *p.branch)["value"], new.cli("get", f"piece:p/{key}")["value"]))
    shutil.rmtree(new.where)


def settle(pieces, version, root):
    for p in pieces:
        p.compare("run", p.both("run", "p.json"))
    for p in pieces:
        p.look()
        fresh(root, p, version)
    listed = sorted(r["piece"] for r in pieces[0].whole.cli("piece", "list")["pieces"])
    want = sorted("p" + (f"@{p.scope}" if p.scope else "") for p in pieces)
    if listed != want:
        raise Failed(f"piece list: {listed}, expected {want}")
    pieces[0].whole.cli("check", "--rerun", "all")


def program(where, seed):
    rng, log = random.Random(seed), []
    where.mkdir()
    try:
        whole, version = Project(where / "whole"), [rng.randint(0, 5)]
        pieces = [Piece(where, whole, i, scope) for i, scope in enumerate(SCOPES)]
        for at in [whole.where] + [p.own.where for p in pieces]:
            (at / "p.json").write_text(json.dumps(pattern(version[0])))
        settle(pieces, version[0], where)
        for i in range(STEPS):
            step(rng, pieces, version, where, log)
            if i % 10 == 9:
                log.append("settle")
                settle(pieces, version[0], where)
        settle(pieces, version[0], where)
    except Failed as failure:
        print(f"# seed {seed}: {failure}")
        for line in log:
            print(f"#   {line}")
        return False
    return True


seeds.run("scoped", "programs of one piece in several scopes", PROGRAMS, program, seconds=60)
