#!/usr/bin/env python3
"""What is called fresh is fresh on one snapshot, while others write: event handlers compare what they read with what it was made from, and so does
whoever asks for a value with --fresh, and whoever is shown the result of a run or a pull: on the command line, through MCP, from C. Writers and runners
commit all the time, in the space itself and in another one. An answer may be that others keep writing; it may never be a value beside documents that
are newer, nor what a handler said about such a value."""
import json, os, pathlib, random, subprocess, sys, threading, time
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import Server

os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # it can't read the heap of the JavaScript engine
STET = os.environ["STET"]
STORM_S = 40 if os.environ.get("STET_TEST_LONG") else 5 if os.environ.get("STET_TEST_SHORT") else 10
SEED = int(os.environ.get("STET_SEED", "1"))
count = bad = 0


def t(name, good, show=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(show).splitlines()[:20]), flush=True)


def stet(*words):
    return subprocess.run([STET, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True)


def build_pull():
    """examples/pull.c: stet_pull from C."""
    build, here = os.environ["STET_BUILD"], pathlib.Path.cwd()
    symbols = subprocess.run(["nm", f"{build}/libstet.a"], capture_output=True, text=True).stdout
    done = subprocess.run(["gcc", f"-I{os.environ['STET_SOURCE']}/include", *(["-fsanitize=address,undefined"] if "__asan_init" in symbols else []),
                           "-o", "pull", os.environ["STET_SOURCE"] + "/examples/pull.c", f"{build}/libstet.a", "-l:libsqlite3.a", "-l:libuv_a.a",
                           "-l:libzstd.a", "-l:libutf8proc.a", "-l:libyaml.a", "-l:libcrypto.a", "-lm", "-ldl", "-lpthread"], capture_output=True, text=True)
    t("the example in C is built", done.returncode == 0, done.stderr)
    os.environ["STET_PLUGINS"] = f"{build}/lib/stet"
    return str(here / "pull")


def link(id, space=None):
    return {"/": {"link@1": dict({"id": id}, **({"space": space} if space else {}))}}


def storm(space):
    """The documents lie in `space`; None: in the piece's own."""
    d, where, end = link("d", space), (["--space", space] if space else []), time.time() + STORM_S
    for words in (["init"], ["set", "d", '{"a":1}', *where]):
        stet(*words)
    pathlib.Path("p.json").write_text(json.dumps({"pattern": 1, "name": "p", "cells": {"n": {"default": 0}, "bad": {"default": []}}, "nodes": [
        {"id": "s", "inputs": {"values": d}, "module": {"type": "ref", "ref": "sum"}},
        {"id": "twice", "inputs": {"0": {"$": "s"}, "1": {"$": "s"}}, "module": {"type": "ref", "ref": "add"}},
        *({"id": name, "stream": {"$": name}, "inputs": {"n": {"$": "n", "asCell": True}, "bad": {"$": "bad", "asCell": True}, "s": {"$": "twice"}, "d": d},
           "module": {"type": "javascript", "handler": True, "implementation":
                      "(e,{n,bad,s,d})=>{ n.set(n.get()+1); const t=2*Object.values(d).reduce((a,b)=>a+b,0); if (s!==t) %s }" % what}}
          for name, what in (("throws", "throw new Error('outdated '+s+' '+t)"), ("stores", "bad.push([s,t])")))],
        "result": {"s": {"$": "twice"}, "d": d}}))
    stet("run", "p.json")
    wrong, told = [], {"sent": 0, "read": 0, "busy": 0}
    shown = {name: 0 for name in ("pull", "run", "part", "node", "mcp", "c")}

    def write(i):
        r = random.Random(SEED * 100 + i)
        while time.time() < end:
            stet("set", "d/k%d" % r.randrange(4), r.randrange(100), *where)

    def run(i):
        while time.time() < end:
            stet("run", "p.json")

    def judge(what, p):
        if p.returncode == 0:
            told[what] += 1
        elif p.returncode == 4 and "others keep changing" in p.stdout + p.stderr:
            told["busy"] += 1
        else:
            wrong.append(f"{what}: {p.returncode} {p.stdout} {p.stderr}")
        return p.returncode == 0

    def send(i):
        while time.time() < end:
            judge("sent", stet("piece", "send", "p", ("throws", "stores")[i % 2]))

    def read(i):
        while time.time() < end:
            p = stet("get", "piece:p", "--fresh", "--json")
            if judge("read", p):
                v = json.loads(p.stdout)["value"]
                if v["s"] != 2 * sum(v["d"].values()):
                    wrong.append(f"read {v}")

    def look(name, v):
        shown[name] += 1
        if v["s"] != 2 * sum(v["d"].values()):
            wrong.append(f"{name} {v}")

    def busy(p):
        """Others kept changing what the result is made of, or what an action that was tried again and again reads."""
        said = json.loads(p.stdout) if p.stdout.startswith("{") else {}
        aside = said.get("aside") and not said["failed"] and all(x["error"]["code"] == "conflict" for x in said["problems"])
        return p.returncode == 1 and aside or p.returncode == 4 and "others keep changing" in p.stdout + p.stderr

    def show(i):
        words = {"pull": ["piece", "pull", "p"], "run": ["run", "p.json"], "part": ["run", "p.json", "--demand", "s"], "node": ["run", "p.json", "twice"]}
        server = Server("--all-tools")
        server.initialize()
        while time.time() < end:
            for name in words:
                p = stet(*words[name], "--json")
                if p.returncode == 0:
                    look(name, json.loads(p.stdout)["result"])
                elif not busy(p):
                    wrong.append(f"{name}: {p.returncode} {p.stdout} {p.stderr}")
            for tool, args in (("stet_run", {"pattern": "p.json"}), ("stet_piece_pull", {"piece": "p"})):
                answer = server.call(tool, args)
                if not answer.get("isError") and "stet/exit" not in answer.get("_meta", {}):
                    look("mcp", answer["structuredContent"]["result"])
                elif "others keep changing" not in json.dumps(answer) and '"conflict"' not in json.dumps(answer):
                    wrong.append(f"{tool}: {answer}")
            p = subprocess.run([PULL, "p.json"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if p.returncode == 0:
                look("c", json.loads(p.stdout.split(": ", 1)[1]))
            elif "conflict" not in p.stderr and "others" not in p.stderr:
                wrong.append(f"c: {p.returncode} {p.stdout} {p.stderr}")
        server.close()

    threads = [threading.Thread(target=f, args=(i,)) for i, f in enumerate([write, write, run, send, send, read, show, show])]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    name = f"documents in {space or 'the same space'}"
    t(f"{name}: nothing was told that is not so", not wrong, "\n".join(sorted(set(wrong))))
    t(f"{name}: nothing was stored on outdated values", json.loads(stet("get", "piece:p:cell:bad", "--json").stdout)["value"] == [])
    t(f"{name}: most were answered", told["sent"] + told["read"] > told["busy"] and told["sent"] > 0 and told["read"] > 0, told)
    t(f"{name}: every surface has shown a result", all(shown.values()), shown)
    t(f"{name}: each event that was applied counts", json.loads(stet("get", "piece:p:cell:n", "--json").stdout)["value"] == told["sent"], told)
    t(f"{name}: stet check finds nothing", stet("check").returncode == 0)


PULL = build_pull()
for space in (None, "other"):
    home = pathlib.Path(space or "own").absolute()
    home.mkdir()
    os.chdir(home)
    storm(space)
    os.chdir("..")
print(f"1..{count}")
sys.exit(bad > 0)
