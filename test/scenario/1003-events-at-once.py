#!/usr/bin/env python3
"""Three processes send events with two handlers and one that is sent on, at once: each event is done with all that follows from it before the next one begins, and each
handler sees what the handler before it has left."""
import json, os, pathlib, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

STET, EACH = os.environ["STET"], 8


def handler(name, stream, code):
    inputs = {"c": {"$": "c", "asCell": True}, "dbl": {"$": "dbl"}, "log": {"$": "log", "asCell": True}, "more": {"$": "more", "asCell": True}}
    return {"id": name, "stream": {"$": stream}, "inputs": inputs, "module": {"type": "javascript", "handler": True, "implementation": code}}


pattern = {"pattern": 1, "name": "t", "cells": {"s": {}, "c": {"default": 0}, "log": {"default": []}}, "nodes": [
    {"id": "dbl", "inputs": [{"$": "c"}, 2], "module": {"type": "ref", "ref": "multiply"}},
    handler("h1", "s", "(e, {c, more}) => { c.set(c.get() + 1); more.send(e) }"),
    handler("h2", "s", "(e, {c, dbl, log}) => { log.push([e, c.get(), dbl]) }"),
    handler("more", "more", "(e, {c, dbl, log}) => { log.push([e, c.get(), dbl]) }")], "result": {"log": {"$": "log"}}}


def stet(*words):
    return subprocess.run([STET, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)


def send(who):
    for i in range(EACH):
        for attempt in range(100):  # a sender that others keep from it is told so, and tries again
            done = stet("piece", "send", "t", "s", str(who * 100 + i), "--id", f"e{who}-{i}")
            if done.returncode != 4:
                break
        if done.returncode:
            return done.stdout
    return ""


pathlib.Path("t.json").write_text(json.dumps(pattern))
stet("init")
stet("run", "t.json")
with ThreadPoolExecutor(3) as pool:
    said = "".join(pool.map(send, [1, 2, 3]))
log = json.loads(stet("get", "piece:t:cell:log").stdout)
events = sorted(x[0] for x in log[::2])
right = not said and [x[1:] for x in log] == [[i // 2 + 1, i // 2 * 2 + 2] for i in range(6 * EACH)] and log[::2] == log[1::2] and \
    events == [who * 100 + i for who in (1, 2, 3) for i in range(EACH)]
checked = stet("check", "--rerun", "all")
print(f"{'ok' if right else 'not ok'} 1 - events of three senders do not mix")
if not right:
    print(f"# {said} {log}")
print(f"{'not ok' if checked.returncode else 'ok'} 2 - check finds nothing")
print("1..2")
sys.exit(0 if right and checked.returncode == 0 else 1)
