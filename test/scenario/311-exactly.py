#!/usr/bin/env python3
"""Every step is a process of its own, and after each it is known by name which actions ran and which did not: what a change reaches runs,
once, and nothing else; before that, the states say so."""
import json, os, pathlib, signal, subprocess, time
from tap import STET, answer, finish, stet, t

FAULTY = os.environ["STET_FAULTY"]
known = {}


def node(name, ref, *inputs, **more):
    return {"id": name, "module": {"type": "ref", "ref": ref}, "inputs": list(inputs), **more}


def at(place):
    return {"$": place}


def link(document, *path, **more):
    return {"/": {"link@1": {"id": document, "path": list(path), **more}}}


def write(name, nodes, result, **more):
    text = {"pattern": 1, "name": name, "nodes": nodes, "result": result, **more}
    pathlib.Path(f"{name}.json").write_text(json.dumps(text))


def put(cell, value, **where):
    r = stet("set", cell, json.dumps(value), *(w for k, v in where.items() for w in (f"--{k}", v)))
    assert r.returncode == 0, r.stderr


def records(branch=""):
    """When each action of each piece was last run, as its record says."""
    where = ("--branch", branch)
    found = {}
    for piece in answer("piece", "list", *where)["pieces"]:
        for row in answer("action", "list", piece["piece"], *where)["actions"]:
            record = answer("action", "show", piece["piece"], row["action"], *where)
            found[f"{piece['piece']}/{row['action']}"] = (record.get("time"), record.get("observedAt"))
    return found


def who(do, **where):
    """The names of the actions whose record is another one after `do`, and what it returned. Nothing but a run makes one, so that what was
    found after the last is what was there before this."""
    before = known.get(where.get("branch", ""), {})
    got = do()
    after = known[where.get("branch", "")] = records(**where)
    return " ".join(sorted(n for n in after if after[n] != before.get(n) and after[n][0])), got


def ran(name, pattern, expected, runs=None, *words, **where):
    """A process runs the pattern: exactly these actions, each once unless `runs` says how often in all."""
    got, report = who(lambda: answer("run", f"{pattern}.json", *words, *(w for k, v in where.items() for w in (f"--{k}", v))), **where)
    times = len(expected.split()) if runs is None else runs
    t(name, got == expected and report.get("runs") == times, f"ran: {got}\nreport: {report}")


def states(name, piece, expected, *words):
    """What does not stand, before anything runs: {"x": "dirty", ...}."""
    got = {row["action"]: row["state"] for row in answer("action", "list", piece, *words)["actions"] if row["state"] != "stands"}
    t(name, got == expected, got)


def result(name, piece, expected, *words):
    got = answer("piece", "show", piece, *words).get("result")
    t(name, got == expected, got)


stet("init")
CHAIN = [node("x", "add", at("argument/a"), 1), node("y", "min", at("x"), 100), node("z", "add", at("y"), at("argument/b")), node("q", "add", at("argument/c"), 1)]
chain = {"argument": {"default": {"a": 1, "b": 10, "c": 5}}}
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
ran("a first run runs everything, writers before readers", "chain", "chain/q chain/x chain/y chain/z")
ran("a clean piece restarts with zero runs", "chain", "")
t("and loads nothing", answer("run", "chain.json")["loaded"] == 0)

# Writes that reach nothing, and writes that do.
put("unrelated", 1)
put("piece:chain:argument/unread", {"deep": 1})
put("piece:chain:argument/unread/deep", 2)
put("piece:chain:argument/a", 1)
states("an unrelated write, one beside and one of the same value dirty nothing", "chain", {})
ran("so nothing runs", "chain", "")
put("piece:chain:argument/a", 2)
states("an overlapping one: its reader is dirty, what follows stale, the rest stands", "chain", {"x": "dirty", "y": "stale", "z": "stale"})
ran("exactly the affected chain runs", "chain", "chain/x chain/y chain/z")
put("piece:chain:argument", {"a": 2, "b": 20, "c": 5})
ran("the whole argument written anew: what differs counts, and no more", "chain", "chain/z")
result("with the right result", "chain", {"z": 23, "q": 6})

# A piece that is not running, and what others do to it.
stet("set", "rates", '{"now": 7, "then": 1}', "--space", "other")
write("reader", [node("twice", "multiply", link("piece:chain", "z"), 2), node("after", "add", at("twice"), 1), node("idle", "add", 1, 2),
                 node("rate", "multiply", link("rates", "now", space="other"), link("piece:chain", "q"))],
      {n: at(n) for n in ("after", "idle", "rate")})
ran("another piece reads the first, and another space", "reader", "reader/after reader/idle reader/rate reader/twice")
put("piece:chain:argument/b", 30)
ran("the first runs alone", "chain", "chain/z")
states("that has dirtied the piece that was not running, where it reads", "reader", {"twice": "dirty", "after": "stale"})
ran("it starts dirty, and runs that", "reader", "reader/after reader/twice")
put("piece:chain:argument/b", 40)
states("a write by hand makes it stale, not dirty", "reader", {"twice": "stale", "after": "stale"})
ran("what it needs of another piece runs first", "reader", "chain/z reader/after reader/twice")
put("rates/then", 2, space="other")
states("an unrelated write in the other space", "reader", {})
put("rates/now", 8, space="other")
states("one that overlaps: only the space that changed counts", "reader", {"rate": "dirty"})
ran("and runs what reads there", "reader", "reader/rate")
put("piece:chain:argument/c", 6)
ran("the other of two spaces that one action reads", "reader", "chain/q reader/rate")
result("with the right results", "reader", {"after": 87, "idle": 3, "rate": 56})

# Demand: only what is asked for is made fresh.
put("piece:chain:argument/a", 3)
put("piece:chain:argument/c", 7)
got, value = who(lambda: answer("get", "piece:chain/q", "--fresh"))
t("a fresh value makes only what it needs", got == "chain/q" and value["value"] == 8, f"{got} {value}")
states("the rest is as dirty as it was", "chain", {"x": "dirty", "y": "stale", "z": "stale"})
got, value = who(lambda: answer("get", "piece:reader/after", "--fresh"))
t("through another piece as well", got == "chain/x chain/y chain/z reader/after reader/twice" and value["value"] == 89, f"{got} {value}")
ran("what nobody asked for is left over", "reader", "reader/rate")

# A condition.
write("cond", [node("left", "add", at("argument/a"), 10), node("right", "add", at("argument/b"), 20),
               {"id": "pick", "module": {"type": "ref", "ref": "ifElse"}, "inputs": {"condition": at("argument/c"), "then": at("left"), "else": at("right")}},
               node("after", "multiply", at("pick"), 2)], {"after": at("after")}, argument={"default": {"a": 1, "b": 2, "c": True}})
ran("the branch not taken does not run", "cond", "cond/after cond/left cond/pick", 4)  # who chooses runs first: only it knows
put("piece:cond:argument/b", 3)
ran("nor when it changes", "cond", "")
put("piece:cond:argument/c", False)
ran("the condition flips: the other branch runs, then who takes it, again", "cond", "cond/after cond/pick cond/right", 4)
put("piece:cond:argument/a", 9)
ran("the branch that was taken before no longer counts", "cond", "")
put("piece:cond:argument/b", 4)
ran("the one that is taken does", "cond", "cond/after cond/pick cond/right")
put("piece:cond:argument/a", 14)
got, value = who(lambda: answer("get", "piece:cond:node:left", "--fresh"))
t("both branches are fresh and equal", got == "cond/left" and value["value"] == 24, f"{got} {value}")
put("piece:cond:argument/c", True)
ran("a flip to an equal value stops there", "cond", "cond/pick")
put("piece:cond:argument/b", 5)
ran("and has rewired the reads all the same: not the old branch", "cond", "")
put("piece:cond:argument/a", 15)
ran("but the new one", "cond", "cond/after cond/left cond/pick")
result("with the right result", "cond", {"after": 50})

# The same value again, also when the process dies in between.
put("piece:chain:argument/a", 200)
ran("up to the bound", "chain", "chain/x chain/y chain/z")
put("piece:chain:argument/a", 300)
ran("a rerun with the same value leaves what is downstream standing", "chain", "chain/x chain/y")
kills = 0
for n in range(1, 40):
    put("piece:chain:argument/a", 300 + n)
    victim = stet("run", "chain.json", program=FAULTY, env={"STET_FAULT": f"call=fsync,n={n},action=kill"})
    killed = victim.returncode == -signal.SIGKILL
    kills += killed
    moved, r = who(lambda: answer("run", "chain.json"))
    good = moved == "chain/x chain/y" and r.get("runs", 9) <= 2 and answer("run", "chain.json")["runs"] == 0
    if not good or not killed:
        t("also when the process died in between, wherever that was", good and kills >= 2, f"killed at fsync {n} ({kills} kills): {moved} {r}")
        break
result("and the result stays", "chain", {"z": 140, "q": 8})

# What the process graph says now: only what differs is not known any more.
old = known[""]["chain/x"]
CHAIN[1] = node("y", "min", at("x"), 90)
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
put("piece:chain:argument/c", 8)
ran("another implementation, and only the other part wanted", "chain", "chain/q", None, "--demand", "q")
states("the changed one is unknown, what follows is stale, nothing else", "chain", {"y": "unknown", "z": "stale"})
ran("then it runs, and what its new output reaches", "chain", "chain/y chain/z")
t("what did not change kept its record across the generation", known[""]["chain/x"] == old)
CHAIN[1] = node("y", "min", at("x"), 90, resultSchema={"type": "integer"})
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
ran("another schema: it runs, its output is what it was", "chain", "chain/y")
CHAIN[0] = node("x", "add", at("argument/a"), 1, argumentSchema={"type": "array"})
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
ran("a schema of its inputs as well", "chain", "chain/x")
CHAIN[3] = node("q", "add", at("argument/c"), 1, debounceMs=1)
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
ran("another timing does not", "chain", "")
CHAIN.reverse()
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
ran("nor does another order", "chain", "")
CHAIN[2] = node("y", "min", at("w"), 90, resultSchema={"type": "integer"})
CHAIN.append(node("w", "add", at("x"), 0))
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
ran("another binding and a new node: those two, the value stays", "chain", "chain/w chain/y")
t("each of that was a generation", answer("piece", "show", "chain")["generation"] == 7, answer("piece", "show", "chain"))
ran("the other piece follows", "reader", "reader/after reader/rate reader/twice")
write("chain", [n for n in CHAIN if n["id"] != "q"], {"z": at("z")}, **chain)
ran("a node goes, and nothing runs for that", "chain", "")
t("with what it had written", stet("get", "piece:chain:node:q").returncode == 3)
t("and its record", stet("action", "show", "chain", "q").returncode == 3)
t("nobody reads there any more", answer("space", "readers", "piece:chain:argument/c").get("readers") == [], answer("space", "readers", "piece:chain:argument/c"))
states("who read it elsewhere is dirty", "reader", {"rate": "dirty"})
write("chain", CHAIN, {"z": at("z"), "q": at("q")}, **chain)
ran("it comes back, and is new", "chain", "chain/q")
ran("and who read it goes on", "reader", "reader/rate")

# The version that ran it.
runtime = answer("get", "piece:chain/process/runtime", "--meta")["value"]
subprocess.run([os.environ["STET_FAULTY"], "set", "piece:chain/process/runtime", json.dumps("0" * 64), "--meta", "-q"], env=os.environ | {"STET_UNGUARDED": "1"}, check=True)
ran("another version of what runs actions: all of that piece, and its values stay", "chain", "chain/q chain/w chain/x chain/y chain/z")
t("it has taken the piece over", answer("get", "piece:chain/process/runtime", "--meta")["value"] == runtime)
ran("the other piece stands, for nothing that it reads has changed", "reader", "")

# Branches.
stet("branch", "create", "try")
ran("on another branch nothing is known", "chain", "chain/q chain/w chain/x chain/y chain/z", branch="try")
ran("then it stands there", "chain", "", branch="try")
ran("as it does on the first", "chain", "")
put("piece:chain:argument/c", 50, branch="try")
ran("a write there does not count here", "chain", "")
ran("but there", "chain", "chain/q", branch="try")
put("piece:chain:argument/c", 60)
ran("and a write here not there", "chain", "", branch="try")
ran("but here", "chain", "chain/q")
result("each has its own", "chain", {"z": 130, "q": 51}, "--branch", "try")
result("result", "chain", {"z": 130, "q": 61})

# Records that were not kept.
config = pathlib.Path(".stet/config.toml").read_text()
pathlib.Path(".stet/config.toml").write_text(config + "\n[scheduler]\npersist = false\n")
put("piece:chain:argument/b", 41)
report = answer("run", "chain.json")
pathlib.Path(".stet/config.toml").write_text(config)
t("with the switch off everything runs, and nothing is recorded", report["runs"] == 5 and records() == known[""], report)
t("the value is published all the same", answer("piece", "show", "chain")["result"]["z"] == 131)
ran("on again: nothing is known of what ran meanwhile, and all of it runs", "chain", "chain/q chain/w chain/x chain/y chain/z")
ran("then all stands", "chain", "")

# The program is not needed to go on.
os.unlink("chain.json")
put("piece:chain:argument/b", 50)
got, report = who(lambda: answer("piece", "pull", "chain"))
t("a piece runs on from its own record, without the pattern", got == "chain/z" and report["result"] == {"z": 140, "q": 61}, f"{got} {report}")

# Failures: named, and nobody else is kept from going on.
write("odd", [node("missing", "add", link("nowhere", "x"), 1), node("after", "add", at("missing"), 1), node("narrow", "add", at("argument/n"), 1, resultSchema={"maximum": 10}),
              node("next", "add", at("narrow"), 1), node("free", "add", 1, 1)], {n: at(n) for n in ("after", "next", "free")}, argument={"default": {"n": 1}})
_, r = who(lambda: answer("run", "odd.json"))
said = {p["node"]: p["error"]["message"] for p in r["problems"]}
t("a link that leads nowhere is a failure of its reader, named with the place", said.get("missing") == "add: element 0: expected a number, found null", said)
result("the others go on", "odd", {"after": None, "free": 2, "next": 3})
put("piece:odd:argument/n", 50)
_, r = who(lambda: answer("run", "odd.json"))
said = {p["node"]: p["error"]["message"] for p in r["problems"]}
t("a result that breaks its schema is one, too", "narrow" in said and "result schema" in said["narrow"], said)
result("its last good output stays, and what is below stands on it", "odd", {"after": None, "free": 2, "next": 3})
put("nowhere", {"x": 5})
ran("the document appears: who failed for want of it runs, and what fails is tried again", "odd", "odd/after odd/missing odd/narrow")
stet("doc", "delete", "nowhere")
put("piece:odd:argument/n", 2)
ran("and goes: it fails again, the other is mended", "odd", "odd/missing odd/narrow odd/next")
result("with what was good last", "odd", {"after": 7, "free": 2, "next": 4})

# Ctrl-C in the middle.
many = 6000
write("many", [node("n0", "add", at("argument/a"), 1)] + [node(f"n{i}", "add", at(f"n{i - 1}"), 1) for i in range(1, many)], {"last": at(f"n{many - 1}")}, argument={"default": {"a": 0}})
for wait in (0.05, 0.1, 0.2, 0.4):
    p = subprocess.Popen([STET, "run", "many.json"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(wait)
    p.send_signal(signal.SIGINT)
    out = p.communicate()[0]
    rows = answer("status").get("pieces", [])
    stands = next((row["stands"] for row in rows if row["piece"] == "many"), 0)
    if p.returncode == 130 and 0 < stands < many:
        break
r = answer("run", "many.json")
t("Ctrl-C in the middle of a run: status 130, what was done stands, and the next start goes on from there",
  r.get("runs") == many - stands and (p.returncode == 130 or stands == many), f"status {p.returncode}, {stands} stood, then {r}\n{out}")
result("with the right result", "many", {"last": many})
finish()
