#!/usr/bin/env python3
"""A sender is killed at every durability point of sending an event, with an action to be made fresh before it; the event is sent again: it is applied exactly once, what it
changed is settled right, and nothing is left half done."""
import json, os, pathlib, random, shutil, subprocess, sys

STET, FAULTY = os.environ["STET"], os.environ["STET_FAULTY"]
SHORT, LONG = os.environ.get("STET_TEST_SHORT"), os.environ.get("STET_TEST_LONG")
count = bad = applied_by_the_killed = 0
random.seed(7)
pattern = {"pattern": 1, "name": "t", "argument": {"default": {"n": 1, "rows": []}}, "cells": {"log": {"default": []}}, "nodes": [
    {"id": "x", "inputs": [{"$": "argument/n"}, 1], "module": {"type": "ref", "ref": "add"}},
    {"id": "sum", "inputs": {"values": {"$": "log"}}, "module": {"type": "ref", "ref": "sum"}},
    {"id": "add", "stream": {"$": "add"}, "inputs": {"x": {"$": "x"}, "log": {"$": "log", "asCell": True}},
     "module": {"type": "javascript", "handler": True, "implementation": "(event, {x, log}) => { log.push(event * x) }"}},
    {"id": "rows", "inputs": {"list": {"$": "argument/rows"}, "log": {"$": "log", "asCell": True}, "x": {"$": "x"}}, "module": {"type": "ref", "ref": "map", "key": "id", "pattern": {
        "pattern": 1, "name": "row", "nodes": [
            {"id": "add", "stream": {"$": "add"}, "inputs": {"x": {"$": "argument/x"}, "log": {"$": "argument/log", "asCell": True}},
             "module": {"type": "javascript", "handler": True, "implementation": "(event, {x, log}) => { log.push(event * x) }"}}],
        "result": {"add": {"$": "add"}}}}}],
    "result": {"sum": {"$": "sum"}, "add": {"$": "add"}, "rows": {"$": "rows"}}}
base = pathlib.Path("base").absolute()
base.mkdir()


def stet(where, *words, program=STET, **env):
    return subprocess.run([program, *words], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=dict(os.environ, **env))


(base / "t.json").write_text(json.dumps(pattern))
stet(base, "init")
stet(base, "run", "t.json")
stet(base, "set", "piece:t:argument/n", "2")  # x is dirty: sending makes it fresh
stet(base, "set", "piece:t:argument/rows", '[{"id": "a"}]')  # and there is an element whose child is not made yet
for stream in ("add", "rows[a].add"):
    for call in ("durable", "sql", "any"):
        for action in ("kill", "kill_after"):
            n = 1
            for attempt in range(1000 if LONG or (call == "durable" and not SHORT) else 5 if not SHORT else 1):
                where = pathlib.Path("work").absolute()
                shutil.rmtree(where, ignore_errors=True)
                shutil.copytree(base, where)
                first = stet(where, "piece", "send", "t", stream, "10", "--id", "e", program=FAULTY, STET_FAULT=f"call={call},n={n},action={action}")
                if first.returncode == 0:
                    break  # it got through untouched
                before = stet(where, "get", "piece:t:event:e").returncode == 0
                second = stet(where, "piece", "send", "t", stream, "10", "--id", "e", "--json")
                count += 1
                answer = json.loads(second.stdout.splitlines()[-1]) if second.returncode == 0 else {}
                log, settled = json.loads(stet(where, "get", "piece:t:cell:log").stdout or "null"), stet(where, "piece", "pull", "t", "--json")
                checked = stet(where, "check")
                total = json.loads(settled.stdout.splitlines()[-1])["result"]["sum"] if settled.returncode == 0 else None
                applied_by_the_killed += before
                if answer.get("applied") != (not before) or log != [30] or total != 30 or checked.returncode != 0:
                    bad += 1
                    print(f"not ok {count} - {stream} {call} {n} {action}: {answer} {log} {total}")
                    print("\n".join("# " + line for line in (first.stdout + second.stdout + settled.stdout + checked.stdout).splitlines()[:20]), flush=True)
                n += 1 if LONG or call == "durable" else random.randrange(1, 2 + n * 2)
if not bad:
    print(f"ok {count} - an event sent twice is applied once, also when killed in between: {count} kills, {applied_by_the_killed} of them after it was applied")
good = 0 < applied_by_the_killed < count
print(f"{'ok' if good else 'not ok'} {count + 1} - some kills came before, some after")
print(f"1..{count + 1}")
sys.exit(1 if bad or not good else 0)
