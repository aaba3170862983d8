#!/usr/bin/env python3
"""What waits for a failure waits in every run, and what failed is tried again when what it rests on has changed. Found by random programs: an action
ran on what a waiting one had made earlier, an effect was done before the children of another piece that it leads to, and a failed write was not tried
again after its place was mended."""
import json, pathlib, re, shutil
from tap import finish, stet, t

root = pathlib.Path("p").absolute()
LINK = lambda id, *path: {"/": {"link@1": {"id": id, "path": list(path)}}}  # noqa: E731


def new():
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    stet("init", cwd=root)


def write(name, nodes, result, argument=None, cells=None):
    doc = {"pattern": 1, "name": name, "nodes": nodes, "result": {r: {"$": r} for r in result}}
    if argument is not None:
        doc["argument"] = {"default": argument}
    if cells is not None:
        doc["cells"] = {k: {"default": v} for k, v in cells.items()}
    (root / f"{name}.json").write_text(json.dumps(doc))


def ref(id, ref, inputs, **more):
    return {"id": id, "module": {"type": "ref", "ref": ref, **more}, "inputs": inputs}


def run(name, *words):
    r = stet("run", f"{name}.json", *words, cwd=root)
    ran = re.search(r"ran (\d+)", r.stdout + r.stderr)
    return int(ran.group(1)) if ran else -1, r.stdout + r.stderr


def at_rest(what, *names, words=()):
    """After one more run of each, nothing runs."""
    for n in names:
        run(n, "--no-retry-failed", *words)
    said = [run(n, "--no-retry-failed", *words) for n in names]
    t(f"{what}: a second run runs nothing", all(ran == 0 for ran, _ in said), said)


# It failed before, and now waits for one that leads to it over an action that stands.
new()
write("p0", [ref("n4", "unique", {"value": {"$": "argument/k0"}}), ref("n5", "when", {"condition": LINK("d3"), "value": {"$": "n4/a"}})], ["n4", "n5"], {"k0": None})
write("p1", [ref("n0", "merge", [LINK("piece:p0:node:n5", "0")]), ref("n1", "max", {"values": {"$": "n0/0"}})], ["n0", "n1"])
run("p0", "--no-retry-failed")
run("p1", "--no-retry-failed")
stet("set", "d3", '"a"', cwd=root)
run("p1")
run("p0")
ran, said = run("p1", "--no-retry-failed")
t("one that failed before waits for what waits", ran == 0, said)
at_rest("after that", "p0", "p1")

# What it reads is chosen only while it runs, and turns out to wait.
new()
child = {"pattern": 1, "name": "c", "nodes": [ref("c1", "add", [{"$": "argument/element"}, {"$": "argument/element/n"}])], "result": {"$": "c1"}}
write("p1", [ref("n1", "filter", {"list": {"$": "argument/k3"}}, key="id", pattern=child),
             ref("n2", "ifElse", {"condition": LINK("nowhere"), "then": {"a": {"$": "n1/0"}}, "else": {"b": [{"$": "n1"}]}}),
             ref("n4", "length", {"value": {"$": "n1"}})], ["n2", "n4"], {"k3": [{"id": 1, "n": 2}]})
run("p1", "--no-retry-failed")
at_rest("a chosen input", "p1")
stet("branch", "create", "b1", cwd=root)
at_rest("a chosen input on a branch", "p1", words=("--branch", "b1"))

# What it is bound to grows while it waits.
new()
element = {"pattern": 1, "name": "c", "nodes": [ref("c1", "merge", [{"a": {"$": "argument/element/id"}}]), ref("r", "concat", [{"$": "argument/accumulator"}, [{"$": "c1"}]])],
           "result": {"$": "r"}}
each = {"pattern": 1, "name": "c", "nodes": [ref("c0", "merge", [{"a": {"$": "argument/element"}}])], "result": {"v": {"$": "c0"}}}
write("p0", [], [], {"k3": []})
write("p1", [ref("n1", "length", {"value": 7}), ref("n3", "map", {"list": {"$": "n1"}, "o": {"$": "argument/k2"}}, key="id", pattern=each)], ["n1", "n3"],
      {"k2": LINK("piece:p0:node:n3", "b")})
run("p0")
run("p1")
write("p0", [ref("n3", "reduce", {"list": {"$": "argument/k3"}, "initial": []}, key="id", pattern=element)], [], {"k3": [{"id": 0}, {"id": 5}, {"id": 1}]})
run("p0")
run("p1")
ran, said = run("p1", "--no-retry-failed")
t("children that its input leads to run in the same run", ran == 0, said)
at_rest("after that", "p0", "p1")

# An effect is done after the children of another piece that its inputs lead to, over a computation between them.
for failing in (False, True):
    new()
    inner = {"pattern": 1, "name": "c", "nodes": [ref("c0", "flatten", {"value": {"$": "argument/element"}})], "result": {"$": "c0"}}
    outer = {"pattern": 1, "name": "c", "nodes": [ref("c0", "reduce", {"list": {"$": "argument/element/m"}, "initial": []}, key="id", pattern=inner),
                                                  ref("r", "concat", [{"$": "argument/accumulator"}, [{"$": "c0"}]])], "result": {"$": "r"}}
    rows = [{"id": 2, "m": [1, {"n": 2}] if failing else [[1], [2]]}, {"id": 1, "m": [[3]]}]
    write("p0", [ref("n3", "reduce", {"list": {"$": "argument/k3"}, "initial": []}, pattern=outer)], [], {"k3": rows})
    write("p1", [ref("n1", "merge", [{"a": LINK("piece:p0:node:n3", "0")}]),
                 {"id": "n3", "kind": "effect", "module": {"type": "javascript", "implementation": "({y, seen}) => { seen.set([...(seen.get() ?? []), JSON.stringify(y ?? null)]); return 1 }"},
                  "inputs": {"y": {"$": "n1/a"}, "seen": {"$": "seen", "asCell": True}}}], ["n1", "n3"], cells={"seen": []})
    run("p0")
    run("p1")
    seen = json.loads(stet("get", "piece:p1:cell:seen", "--json", cwd=root).stdout)["value"]
    t(f"an effect behind children of another piece is done {'not at all' if failing else 'once'}", len(seen) == (0 if failing else 1), seen)
    run("p1")
    again = json.loads(stet("get", "piece:p1:cell:seen", "--json", cwd=root).stdout)["value"]
    t("and not again", again == seen, again)
    at_rest("after that", "p0", "p1")

# Whether a write succeeds depends on what is on its way.
code = "({m}) => { m.key('w').key('b').set(1); return null }"


def writes(default, **more):
    write("p", [{"id": "n", **more, "materializerWriteInputPaths": ["m"], "module": {"type": "javascript", "implementation": code}, "inputs": {"m": {"$": "m", "asCell": True}}}],
          ["n"], cells={"m": default})


new()
writes({"w": ""})
ran, said = run("p")
t("a write through a text fails", "leads through" in said, said)
writes({})
ran, said = run("p", "--no-retry-failed")
t("it is tried again when that is gone", ran == 1 and "failed 0" in said, said)
new()
writes({}, resultSchema={"type": "number"})
run("p")
writes({"w": ""}, resultSchema={"type": "number"})
ran, said = run("p", "--no-retry-failed")
t("one that failed for another reason is, too", ran == 1 and "leads through" in said, said)
r = stet("check", cwd=root)
t("stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)
finish()
