#!/usr/bin/env python3
"""Two processes drive the same piece at once: the same result, no effect done twice, nobody waits for ever; and killed ones harm nobody."""
import json, random, signal, subprocess, time
from tap import SHORT, STET, finish, t


def run(*words, status=0):
    out = subprocess.run([STET, *words, "--json"], capture_output=True, text=True, timeout=120)
    return json.loads(out.stdout) if out.stdout else {}


layers, width = 12, 10
nodes = []
for l in range(layers):
    for i in range(width):
        source = {"$": f"argument/k{i}"} if l == 0 else {"$": f"n{l - 1}-{i}"}
        other = 1 if l == 0 else {"$": f"n{l - 1}-{(i + l) % width}"}
        nodes.append({"id": f"n{l}-{i}", "module": {"type": "ref", "ref": "max" if l % 2 else "add"}, "inputs": [source, other]})
last = [{"$": f"n{layers - 1}-{i}"} for i in range(width)]
nodes.append({"id": "total", "module": {"type": "ref", "ref": "sum"}, "inputs": {"values": last}})
nodes.append({"id": "announce", "kind": "effect", "module": {"type": "ref", "ref": "value"}, "inputs": [{"$": "total"}]})
pattern = {"pattern": 1, "name": "both", "argument": {"default": {f"k{i}": i for i in range(width)}}, "nodes": nodes, "result": {"total": {"$": "total"}}}


def scratch(keys):
    row = []
    for l in range(layers):
        f = max if l % 2 else lambda a, b: a + b
        row = [f(keys[i], 1) for i in range(width)] if l == 0 else [f(row[i], row[(i + l) % width]) for i in range(width)]
    return sum(row)


subprocess.run([STET, "init"], stdout=subprocess.DEVNULL)
with open("both.json", "w") as f:
    json.dump(pattern, f)
keys = list(range(width))
randomness = random.Random(7)
rounds = 3 if SHORT else 8
for turn in range(rounds):
    if turn:
        for _ in range(3):
            i = randomness.randrange(width)
            keys[i] = randomness.randrange(1000) + 1000 * turn
            run("set", f"piece:both:argument/k{i}", str(keys[i]))
    drivers = [subprocess.Popen([STET, "run", "both.json", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    outs = []
    for d in drivers:
        try:
            outs.append(d.communicate(timeout=100))
        except subprocess.TimeoutExpired:
            d.kill()
            outs.append(("", "time-out"))
    reports = [json.loads(o) if o else {} for o, e in outs]
    t(f"round {turn}: all end well", all(d.returncode == 0 for d in drivers), str([e for o, e in outs]))
    effects = sum(r.get("effects", 0) for r in reports)
    t(f"round {turn}: the effect is done once", effects == 1, f"{effects} times: {[r.get('effects') for r in reports]}")
    total = run("piece", "pull", "both").get("result", {}).get("total")
    t(f"round {turn}: the result is that of a run from scratch", total == scratch(keys), f"{total}, not {scratch(keys)}")
    t(f"round {turn}: nothing is left to run", run("run", "both.json").get("runs") == 0)

for turn in range(3 if SHORT else 8):
    i = randomness.randrange(width)
    keys[i] = 100000 + turn
    run("set", f"piece:both:argument/k{i}", str(keys[i]))
    victim = subprocess.Popen([STET, "run", "both.json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(randomness.random() * 0.03)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    total = run("piece", "pull", "both").get("result", {}).get("total")
    t(f"killed {turn}: the next one ends with the result from scratch", total == scratch(keys), f"{total}, not {scratch(keys)}")
finish()
