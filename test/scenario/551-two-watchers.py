#!/usr/bin/env python3
"""Two processes watch pieces of one project, and one of the pieces reads the other: each agrees with the tables (`status --drift`) about what the
other one has run."""
import json, pathlib, subprocess, time
from tap import STET, answer, finish, stet, t

link = lambda id: {"/": {"link@1": {"id": id}}}
ref = lambda id, name, inputs, **more: {"id": id, "inputs": inputs, "module": dict({"type": "ref", "ref": name}, **more)}
twice = {"pattern": 1, "name": "twice", "nodes": [ref("n", "add", {"0": {"$": "argument/element"}, "1": {"$": "argument/element"}})], "result": {"$": "n"}}
pathlib.Path("a.json").write_text(json.dumps({"pattern": 1, "name": "a", "argument": {"default": {"x": 1, "l": [1]}}, "result": {"n": {"$": "n"}, "l": {"$": "l"}}, "nodes": [
    ref("n", "negate", {"value": {"$": "argument/x"}}), ref("l", "value", {"value": {"$": "argument/l"}})]}))
pathlib.Path("b.json").write_text(json.dumps({"pattern": 1, "name": "b", "result": {"m": {"$": "m"}, "k": {"$": "k"}}, "nodes": [
    ref("m", "value", {"value": link("piece:a:node:n")}), ref("k", "map", {"list": link("piece:a:node:l")}, pattern=twice)]}))


def settled(good):
    for _ in range(200):
        if good():
            return True
        time.sleep(0.05)
    return False


def agree():
    """Both are at rest and say so. One may still be about to hear of the other."""
    said = answer("status", "--drift")["drift"]["processes"]
    return len(said) == 2 and all(p["answered"] and p["differ"] == 0 for p in said)


stet("init")
stet("run", "a.json")
stet("run", "b.json")
watches = [subprocess.Popen([STET, "run", f"{p}.json", "--watch"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for p in "ab"]
t("both watch, and agree with the tables", settled(agree), stet("status", "--drift").stdout)
for i in range(11, 15):
    stet("set", "piece:a:argument/x", i)
    t(f"the second takes up what the first made of {i}", settled(lambda: stet("get", "piece:b:node:m").stdout.strip() == str(-i)))
    t("and both agree with the tables", settled(agree), stet("status", "--drift").stdout)
for l, want in [([1, 2], [2, 4]), ([2], [4]), ([5, 2, 3], [10, 4, 6])]:
    stet("set", "piece:a:argument/l", json.dumps(l))
    t(f"a list of {len(l)} is taken up", settled(lambda: answer("get", "piece:b/k").get("value") == want), stet("get", "piece:b/k").stdout)
    t("and both agree with the tables", settled(agree), stet("status", "--drift").stdout)
for watch in watches:
    watch.terminate()
    watch.wait()
finish()
