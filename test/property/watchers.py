#!/usr/bin/env python3
"""Several watchers over children that come and go, and runs beside them: whoever reads the output of a child never sees the child without it.
One process makes the children, another one that has the piece in memory reads them. Every reader fails on anything but a number, and no process
may report a failure. When it is quiet the values are those of the last rows."""
import json, os, pathlib, random, re, shutil, signal, subprocess, sys, time

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
ROUNDS, STEPS = (40, 120) if LONG else (1, 40) if SHORT else (3, 100)
SEED = int(os.environ.get("STET_SEED", "1"))
root = pathlib.Path("p").absolute()
count = bad = 0


def t(name, good, show=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(show).splitlines()[:40]), flush=True)


def stet(*words, where=None):
    return subprocess.run([STET, *words], cwd=where or root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def js(text):
    return {"type": "javascript", "implementation": text}


# A number, or an error that says what was seen.
SURE = "if (typeof v !== 'number' || Number.isNaN(v)) throw new Error('saw ' + JSON.stringify(v));"


def pattern(r):
    child = {"pattern": 1, "name": "row", "nodes": [
        {"id": "a", "inputs": {"n": {"$": "argument/element/n"}}, "module": js("({n}) => n * 2")},
        {"id": "b", "inputs": {"v": {"$": "a"}}, "module": js("({v}) => { %s return v + 1; }" % SURE)}], "result": {"$": "b"}}
    rows = {"type": "ref", "ref": "map", "pattern": child}
    if r.random() < 0.8:
        rows["key"] = "id"
    return {"pattern": 1, "name": "p", "argument": {"default": {"rows": []}}, "nodes": [
        {"id": "rows", "inputs": {"list": {"$": "argument/rows"}}, "module": rows},
        {"id": "total", "inputs": {"rows": {"$": "rows"}}, "module": js("({rows}) => rows.reduce((s, v) => { %s return s + v; }, 0)" % SURE)},
        {"id": "again", "inputs": {"list": {"$": "rows"}}, "module": {"type": "ref", "ref": "map", "pattern": {
            "pattern": 1, "name": "next", "nodes": [{"id": "c", "inputs": {"v": {"$": "argument/element"}}, "module": js("({v}) => { %s return v * 10; }" % SURE)}],
            "result": {"$": "c"}}}},
        {"id": "last", "inputs": {"rows": {"$": "again"}, "total": {"$": "total"}}, "module": js(
            "({rows, total}) => { let s = 0; for (const v of rows) { %s s += v; } if (Number.isNaN(s - total)) throw new Error('NaN'); return s; }" % SURE)}],
        "result": {"total": {"$": "total"}, "last": {"$": "last"}}}


def rows_of(r, rows):
    kind = r.random()
    if kind < 0.4 or not rows:
        for _ in range(r.randrange(1, 6)):
            rows.insert(r.randrange(len(rows) + 1), {"id": f"k{r.randrange(40)}", "n": r.randrange(50)})
    elif kind < 0.6:
        del rows[r.randrange(len(rows)):]
    elif kind < 0.75:
        r.shuffle(rows)
    elif kind < 0.8:
        rows.clear()
    else:
        r.choice(rows)["n"] = r.randrange(50)
    seen = set()
    return [x for x in rows if not (x["id"] in seen or seen.add(x["id"]))]


for number in range(ROUNDS):
    seed = SEED * 1000 + number
    r = random.Random(seed)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    (root / "p.json").write_text(json.dumps(pattern(r)))
    stet("init")
    stet("run", "p.json")
    watchers = []
    for i in range(r.randrange(2, 4)):
        out = open(root.with_name(f"out{i}"), "w+")
        watchers.append((subprocess.Popen([STET, "run", "p.json", "--watch"], cwd=root, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT), out))
    rows, said = [], ""
    for step in range(STEPS):
        rows = rows_of(r, rows)
        done = stet("set", "piece:p:argument/rows", json.dumps(rows))
        if done.returncode != 0:
            said += f"failed set: {done.stdout}\n"
        if r.random() < 0.2:
            said += stet("run", "p.json").stdout
        time.sleep(r.choice([0, 0, 0.01, 0.03, 0.1]))
    time.sleep(0.3)
    crashed = [p.poll() for p, _ in watchers if p.poll() is not None]
    for p, out in watchers:
        p.send_signal(signal.SIGTERM)
        p.wait(60)
        out.seek(0)
        said += out.read()
        out.close()
    failed = [line for line in said.splitlines() if re.match(r"failed |outdated |stet: (?!stopped|[0-9]+/)", line) or "NaN" in line or "saw " in line]
    t(f"seed {seed}: no watcher ends, and no reader sees a child without its output", not failed and not crashed, f"{crashed} {len(failed)}\n" + "\n".join(failed))
    last = stet("run", "p.json")
    t(f"seed {seed}: a run ends well", last.returncode == 0, last.stdout)
    want = {"total": sum(x["n"] * 2 + 1 for x in rows), "last": sum((x["n"] * 2 + 1) * 10 for x in rows)}
    got = json.loads(stet("piece", "pull", "p", "--json").stdout).get("result")
    t(f"seed {seed}: with the values of the last rows", got == want, (got, want))
    check = stet("check")
    t(f"seed {seed}: stet check finds nothing", check.returncode == 0, check.stdout)
    if bad:
        break
print(f"1..{count}")
sys.exit(1 if bad else 0)
