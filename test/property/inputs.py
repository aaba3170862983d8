#!/usr/bin/env python3
"""Everything that makes a result besides documents: code in files, the pattern itself, its defaults, and what was set over them.

Random patterns in JSON and JavaScript, whose nodes have their code in the pattern or in files; random edits of code (also to
earlier states, to text that is no code, to nothing, to a link), of defaults (changed, added, removed), of the graph, of the form that
the pattern is written in; keys set and unset in every way; runs that are killed, a watch that is started and stopped, edits while a run is
under way. After each step the result equals that of a new project with the same files and the same overrides, and a second run runs
nothing."""
import json, os, pathlib, random, shutil, signal, subprocess, sys, time

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
STEPS = int(os.environ.get("STET_STEPS", 3000 if LONG else 30 if SHORT else 150))
SEED = int(os.environ.get("STET_SEED", "1"))
rng = random.Random(SEED)
root, fresh = pathlib.Path("p").absolute(), pathlib.Path("fresh").absolute()
KEYS, FILES = [f"k{i}" for i in range(5)], [f"f{i}.js" for i in range(3)]
TEXTS = [f"export const a = (i) => ({{n: {n}, i}});\nexport function b(i) {{ return [{n}, Object.keys(i).sort(), i.x ?? null] }}\n" for n in range(4)]
TEXTS += ["export const a = (", "", "export const b = () => 'b alone'\n"]
ABSENT = object()


def stet(where, *args, check=True):
    r = subprocess.run([STET, *args], cwd=where, capture_output=True, text=True, timeout=120)
    if r.returncode not in (0, 1) and check:
        raise SystemExit(f"{args}: status {r.returncode}\n{r.stdout}{r.stderr}")
    return r


class World:
    def __init__(self):
        self.defaults = {k: rng.randrange(5) for k in KEYS[:3]}
        self.cells = {"c": 0}
        self.set, self.cell_set = {}, {}
        self.files = {f: TEXTS[i] for i, f in enumerate(FILES)}
        self.form = "json"
        self.nodes = []
        for i in range(4):
            self.nodes.append(self.node(i))

    def node(self, i):
        inputs = {}
        for name in rng.sample(["x", "y", "z"], rng.randrange(1, 4)):
            inputs[name] = rng.choice([f"argument/{rng.choice(KEYS)}", "argument", "c"] + [f"n{j}" for j in range(i)] * 2)
        code = {"file": rng.choice(FILES), "export": rng.choice("ab")} if rng.random() < 0.7 else f"(i) => [{rng.randrange(3)}, i]"
        return {"inputs": inputs, "code": code, "child": rng.random() < 0.15}

    def module(self, n):
        return {"type": "javascript", "implementation": n["code"]}

    def pattern(self):
        nodes = []
        for i, n in enumerate(self.nodes):
            inputs = {k: {"$": v} for k, v in n["inputs"].items()}
            module = self.module(n)
            if n["child"]:
                child = {"pattern": 1, "name": "row", "nodes": [{"id": "one", "inputs": {"x": {"$": "argument/element"}}, "module": module}], "result": {"$": "one"}}
                inputs, module = {"list": [1, {"$": "argument/k0"}]}, {"type": "ref", "ref": "map", "pattern": child}
            nodes.append({"id": f"n{i}", "inputs": inputs, "module": module})
        return {"pattern": 1, "name": "p", "argument": {"default": self.defaults}, "cells": {k: {"default": v} for k, v in self.cells.items()},
                "nodes": nodes, "result": {f"n{i}": {"$": f"n{i}"} for i in range(len(self.nodes))}}

    def write(self, where):
        for f in FILES:
            path = where / f
            if path.is_symlink() or path.exists():
                if not path.is_symlink() and path.read_text() == self.files.get(f):
                    continue
                path.unlink()
            if f in self.files and rng.random() < 0.1 and where == root:
                (where / (f + ".real")).write_text(self.files[f])
                path.symlink_to(f + ".real")
            elif f in self.files:
                path.write_text(self.files[f])
        text = json.dumps(self.pattern())
        if self.form == "js":
            text = self.script()
        (where / self.name()).write_text(text)

    def script(self):
        """In JavaScript, with all code in the pattern."""
        def place(v):
            return "arg" + v[8:].replace("/", ".") if v.startswith("argument") else v
        lines = []
        for i, n in enumerate(self.nodes):
            inputs = ", ".join(f"{k}: {place(v)}" for k, v in n["inputs"].items())
            lines.append(f"const n{i} = lift({n['code'] if isinstance(n['code'], str) else '(i) => [i]'})({{ {inputs} }});")
        names = ", ".join(f"n{i}" for i in range(len(self.nodes)))
        return f"export default pattern('p', {json.dumps(self.defaults)}, (arg) => {{\nconst c = cell({self.cells['c']}, {{name: 'c'}});\n" + "\n".join(lines) + f"\nreturn {{ {names} }};\n}});\n"

    def name(self):
        return "p." + self.form


def result(where):
    shown = json.loads(stet(where, "piece", "show", "p", "--json").stdout)
    failures = json.loads(stet(where, "status", "p", "--json").stdout)["pieces"][0].get("failures", {})
    return shown["result"], sorted(failures), shown["argument"], sorted(shown["overridden"])


def expected(w):
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    w.write(fresh)
    stet(fresh, "init")
    sets = [x for k, v in w.set.items() if v is not ABSENT for x in ("--set", f"{k}={json.dumps(v)}")]
    gone = [k for k, v in w.set.items() if v is ABSENT]
    stet(fresh, "run", w.name(), *sets)
    for k in gone:
        if k in w.defaults:
            stet(fresh, "doc", "patch", "piece:p:argument", json.dumps([{"op": "remove", "path": f"/{k}"}]))
    for k, v in w.cell_set.items():
        stet(fresh, "set", f"piece:p:cell:{k}", json.dumps(v))
    if gone or w.cell_set:
        stet(fresh, "run", w.name())
    return result(fresh)


def compare(w, step, what, trace):
    want, got = expected(w), result(root)
    names = sorted(list(w.set) + [f"cell:{k}" for k in w.cell_set])
    bad = None
    if got[1] != want[1]:
        bad = f"failures {got[1]}, expected {want[1]}"
    elif not want[1] and got[0] != want[0]:
        bad = f"result {json.dumps(got[0])}\nexpected {json.dumps(want[0])}"
    elif got[2] != want[2]:
        bad = f"argument {got[2]}, expected {want[2]}"
    elif got[3] != names:
        bad = f"overridden {got[3]}, expected {names}"
    if not bad and not want[1]:
        again = json.loads(stet(root, "run", w.name(), "--json").stdout)
        if again["ran"]:
            bad = f"a second run ran {again['ran']}"
    if bad:
        print(f"not ok 1 - seed {SEED}, step {step}\n# {what}\n# " + "\n# ".join(trace[-8:]) + f"\n# {bad}\n1..1")
        sys.exit(1)


def edit(w):
    """One change of the world; says what to do to the project besides writing the files."""
    kind = rng.choice(["code", "code", "code", "default", "default", "cell", "set", "set", "unset", "remove", "replace", "node", "form", "gone", "cellset", "nothing"])
    if kind == "code":
        w.files[rng.choice(FILES)] = rng.choice(TEXTS[:4] * 3 + TEXTS)
    elif kind == "gone":
        w.files.pop(rng.choice(FILES), None)
    elif kind == "default":
        k = rng.choice(KEYS)
        if k in w.defaults and rng.random() < 0.3:
            del w.defaults[k]
        else:
            w.defaults[k] = rng.choice([rng.randrange(4), {"deep": rng.randrange(3)}, None, [1, rng.randrange(3)]])
    elif kind == "cell":
        w.cells["c"] = rng.randrange(4)
    elif kind == "node":
        i = rng.randrange(len(w.nodes))
        w.nodes[i] = w.node(i)
    elif kind == "form":
        w.form = rng.choice(["json", "js"])
    elif kind == "set":
        k, v = rng.choice(KEYS), rng.randrange(4)
        if rng.random() < 0.3 and k in w.defaults:
            v = w.defaults[k]
        w.set[k] = v
        how = rng.choice(["run", "set", "patch"])
        if how == "run":
            return kind, ["--set", f"{k}={json.dumps(v)}"], None
        if how == "set":
            return kind, [], ["set", f"piece:p:argument/{k}", json.dumps(v)]
        return kind, [], ["doc", "patch", "piece:p:argument", json.dumps([{"op": "add", "path": f"/{k}", "value": v}])]
    elif kind == "unset" and w.set:
        if rng.random() < 0.2:
            w.set.clear()
            return kind, ["--unset", "."], None
        k = rng.choice(sorted(w.set))
        del w.set[k]
        return kind, ["--unset", k], None
    elif kind == "remove":
        argument = result(root)[2]
        if argument:
            k = rng.choice(sorted(argument))
            w.set[k] = ABSENT
            return kind, [], ["doc", "patch", "piece:p:argument", json.dumps([{"op": "remove", "path": f"/{k}"}])]
    elif kind == "replace":
        argument = result(root)[2]
        value = {k: rng.randrange(4) for k in rng.sample(KEYS, 2)}
        for k in argument:
            w.set[k] = ABSENT
        w.set |= value
        return kind, [], ["set", "piece:p:argument", json.dumps(value)]
    elif kind == "cellset":
        if w.cell_set and rng.random() < 0.5:
            w.cell_set.clear()
            return kind, ["--unset", "cell:c"], None
        w.cell_set["c"] = rng.randrange(4)
        return kind, [], ["set", "piece:p:cell:c", json.dumps(w.cell_set["c"])]
    return kind, [], None


w = World()
root.mkdir()
w.write(root)
stet(root, "init")
stet(root, "run", w.name())
watch, trace = None, []
for step in range(STEPS):
    kind, flags, command = edit(w)
    how = rng.choice(["run", "run", "run", "pull", "kill", "during", "watch"])
    trace.append(f"step {step}: {kind} {flags} {command} {how} defaults {w.defaults} files { {f: TEXTS.index(t) for f, t in w.files.items()} }")
    if command:
        stet(root, *command)
    if how == "during" and not flags:
        run = subprocess.Popen([STET, "run", w.name() if (root / w.name()).exists() else "p.json"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.03)
        w.write(root)
        run.wait()
    w.write(root)
    if how == "kill" and not flags:
        run = subprocess.Popen([STET, "run", w.name()], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.08)
        run.kill()
        run.wait()
    if how == "watch" and not flags:
        watch = subprocess.Popen([STET, "run", w.name(), "--watch"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        watched = w.form
        for _ in range(rng.randrange(1, 3)):
            time.sleep(rng.random() * 0.4)
            kind, flags, command = edit(w)
            while kind == "form":  # a watch and a run that set up one piece from two files: whoever is last is right
                w.form = watched
                kind, flags, command = edit(w)
            if kind == "set" and flags:
                key, value = flags[1].split("=")
                command, flags = ["set", f"piece:p:argument/{key}", value], []
            if flags:  # these are a run's
                w.write(root)
                stet(root, "run", w.name(), *flags)
            trace.append(f"step {step} watched: {kind} {command} defaults {w.defaults}")
            if command:
                stet(root, *command)
            w.write(root)
        want, until = expected(w), time.monotonic() + 20
        while time.monotonic() < until:
            got = result(root)
            if got[1] == want[1] and (want[1] or got[0] == want[0]):
                break
            time.sleep(0.05)
        watch.send_signal(signal.SIGTERM)
        watch.wait()
        compare(w, step, "watch", trace)
        continue
    pulls = how == "pull" and not flags and json.loads(stet(root, "piece", "show", "p", "--json").stdout)["source"]["file"].endswith(w.name())
    stet(root, "piece", "pull", "p") if pulls else stet(root, "run", w.name(), *flags)
    compare(w, step, how, trace)
check = subprocess.run([STET, "check"], cwd=root, capture_output=True, text=True)
print(f"ok 1 - {STEPS} steps of seed {SEED}")
print("ok 2 - and check finds nothing" if check.returncode == 0 else "not ok 2 - check\n# " + check.stdout.replace("\n", "\n# "))
print("1..2")
sys.exit(check.returncode != 0)
