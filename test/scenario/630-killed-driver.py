#!/usr/bin/env python3
"""A driver is killed at 100 random points of a real pattern and resumed after each: the result is that of an undisturbed run, and no action that stands runs again."""
import json, os, pathlib, random, shutil, subprocess, sys

STET, FAULTY, HERE = os.environ["STET"], os.environ["STET_FAULTY"], pathlib.Path.cwd()
POINTS = 10 if os.environ.get("STET_TEST_SHORT") else 100
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in str(note).splitlines()[-20:] if note and not good else []:
        print("# " + line)


def run(program, cwd, *words, **env):
    return subprocess.run([program, *words], cwd=cwd, env=dict(os.environ, STET_HOME=str(HERE / "home"), **env), capture_output=True, text=True, timeout=120)


def value(cwd, *words):
    done = run(STET, cwd, "--json", *words)
    if done.returncode not in (0, 1):
        raise SystemExit(f"not ok {count + 1} - stet {words}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# A chain with a fan beside it: what comes later stands on what came before. Some are verifiers, which are listed as tasks of their own.
nodes = [{"id": "n0", "inputs": [{"$": "argument/start"}, 1], "module": {"type": "ref", "ref": "sum"}}]
for i in range(1, 30):
    nodes.append({"id": f"n{i}", "inputs": [{"$": f"n{i - 1}"}, i], "module": {"type": "ref", "ref": "sum" if i % 3 else "multiply"}})
    nodes.append({"id": f"side{i}", "inputs": [{"$": f"n{i}"}, 2], "module": {"type": "ref", "ref": "multiply"}, **({"verifier": True} if i % 7 == 1 else {})})
pattern = {"pattern": 1, "name": "chain", "argument": {"default": {"start": 1}}, "nodes": nodes,
           "result": {"end": {"$": "n29"}, **{f"side{i}": {"$": f"side{i}"} for i in range(1, 30)}}}
fresh = HERE / "fresh"
fresh.mkdir()
run(STET, fresh, "init")
(fresh / "chain.json").write_text(json.dumps(pattern))


def project(name):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(fresh, path)
    return path


whole = project("whole")
counted = HERE / "count"
done = run(FAULTY, whole, "--json", "run", "chain.json", STET_FAULT="call=durable", STET_FAULT_COUNT=str(counted))
test("undisturbed it completes", done.returncode == 0, done.stdout + done.stderr)
calls = int(counted.read_text().split()[0])
expected = value(whole, "piece", "pull", "chain")["result"]
total = len(nodes)
test("there are enough points to be killed at", calls > 10, calls)
randomly = random.Random(20261115)
bad, resumed, killed = [], 0, 0
for k in range(POINTS):
    work, at = project("work"), 1 + randomly.randrange(calls)
    done = run(FAULTY, work, "run", "chain.json", STET_FAULT=f"call=durable,n={at},action=kill")
    killed += done.returncode == -9
    standing = run(STET, work, "--json", "action", "list", "chain", "--state", "stands", "--limit", "1000")
    stood = len(json.loads(standing.stdout)["actions"]) if standing.returncode == 0 else 0
    shown = value(work, "registry", "show")
    if shown["counts"]["unreadable"] or shown["problems"]:
        bad.append(f"point {at}: a state is not whole: {shown['freshness']['unreadableRuns']}")
    open_runs = [r for r in shown["index"]["records"] if r["lifecycle"] not in ("completed",)]
    if open_runs:
        resumed += 1
        drive = value(work, "runs", "resume", open_runs[0]["runId"], "--drive")["drive"]
        ran = drive["ran"]
        if drive["status"] != "completed":
            bad.append(f"point {at}: the resumed drive is {drive}")
        after = value(work, "runs", "show", open_runs[0]["runId"])["record"]["lifecycle"]
        if after != "completed":
            bad.append(f"point {at}: the resumed run is {after}")
    else:
        ran = value(work, "run", "chain.json")["ran"]
    if ran + stood > total:
        bad.append(f"point {at}: {stood} stood, and {ran} of {total} ran")
    pulled = value(work, "piece", "pull", "chain")
    if pulled["result"] != expected or pulled["ran"] != 0:
        bad.append(f"point {at}: the result is {pulled['result']}, or {pulled['ran']} ran once more")
test(f"killed at {killed} of {POINTS} points, {resumed} runs resumed: each ended as the undisturbed one", not bad and killed > POINTS // 2 and resumed > POINTS // 20, "\n".join(bad))
test("stet check finds nothing", run(STET, HERE / "work", "check").returncode == 0)
print(f"1..{count}")
sys.exit(failed != 0)
