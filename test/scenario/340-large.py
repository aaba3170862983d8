#!/usr/bin/env python3
"""Graphs that are large and deep: a chain with the default stack, many nodes in little memory, few changes among many, and a million nodes."""
import json, os, resource, subprocess, time
from tap import LONG, SHORT, STET, finish, t


def small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))


def run(*words):
    """The answer, the status and the peak memory in kilobytes."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        small_stack()
        os.dup2(write, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.execv(STET, [STET, *words, "--json"])
    os.close(write)
    with os.fdopen(read) as f:
        text = f.read()
    _, status, usage = os.wait4(pid, 0)
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {}
    return answer, os.waitstatus_to_exitcode(status), usage.ru_maxrss


def value(piece):
    return json.loads(subprocess.run([STET, "piece", "pull", piece, "--json"], capture_output=True, text=True).stdout)["result"]["last"]


def write(name, nodes, *results):
    with open(f"{name}.json", "w") as f:
        f.write('{"pattern":1,"name":"%s","argument":{"default":{"a":1,"b":1}},"nodes":[' % name)
        for i, node in enumerate(nodes):
            f.write("," * (i > 0) + node)
        f.write('],"result":{%s}}' % ",".join('"%s":{"$":"%s"}' % (r if len(results) > 1 else "last", r) for r in results))
    time.sleep(0.05)  # a file as new as the look at it is read again at the next start


def add(name, *inputs):
    return '{"id":"%s","module":{"type":"ref","ref":"add"},"inputs":[%s]}' % (name, ",".join('{"$":"%s"}' % i if isinstance(i, str) else str(i) for i in inputs))


subprocess.run([STET, "init"], stdout=subprocess.DEVNULL)

deep = 5000 if SHORT else 100000
write("deep", (add(f"n{i}", f"n{i - 1}" if i else "argument/a", 1) for i in range(deep)), f"n{deep - 1}")
answer, status, _ = run("run", "deep.json")
t(f"a chain {deep} deep runs with a stack of 8 MiB", status == 0 and answer.get("runs") == deep and value("deep") == deep + 1, f"status {status}, {str(answer)[:300]}")
answer, status, memory = run("run", "deep.json")
t("and stands at the next start", status == 0 and answer.get("runs") == 0, f"status {status}, {str(answer)[:300]}")
t("a start with nothing to do takes less than 20 MB", SHORT or memory < 20000, f"{memory} KB")
run("set", f"piece:deep:node:n{deep - 2}", "7")
answer, status, memory = run("run", "deep.json")
t("one of them overwritten: it alone runs, and what follows", status == 0 and 1 <= answer.get("runs", 0) <= 3 and value("deep") == deep + 1, f"status {status}, {str(answer)[:300]}")
t("and that takes less than 40 MB", SHORT or memory < 40000, f"{memory} KB")

# Every node reads the gate, whose value does not follow what it reads.
wide = 2000 if SHORT else 20000
write("wide", [add("sum", "argument/b", 1), '{"id":"gate","module":{"type":"ref","ref":"min"},"inputs":[{"$":"sum"},0]}'] + [add(f"w{i}", "gate", i) for i in range(wide)], *(f"w{i}" for i in range(wide)))
answer, status, _ = run("run", "wide.json")
t(f"a fan of {wide}", status == 0 and answer.get("runs") == wide + 2, f"status {status}, {str(answer)[:300]}")
run("set", "piece:wide:argument/b", "5")
answer, status, memory = run("run", "wide.json")
t("early cut-off before it: two run, and nothing downstream is loaded", status == 0 and answer.get("runs") == 2 and answer.get("loaded", 0) <= 2, f"status {status}, {str(answer)[:300]}")

million = 50000 if SHORT else 1000000
write("million", (add(f"n{i}", f"n{i // 1000 * 1000 - 1}" if i >= 1000 else "argument/a", i) for i in range(million)), f"n{million - 1}")
answer, status, _ = run("pattern", "check", "million.json")
t(f"{million} nodes can be checked", status == 0, f"status {status}, {str(answer)[:300]}")
if LONG:
    answer, status, memory = run("run", "million.json")
    t(f"{million} nodes run", status == 0 and answer.get("runs") == million, f"status {status}, {str(answer)[:300]}")
    answer, status, memory = run("run", "million.json")
    t("and stand, in less than 20 MB", status == 0 and answer.get("runs") == 0 and memory < 20000, f"status {status}, {memory} KB, {str(answer)[:300]}")
write("million", (add(f"n{i}", f"n{i - 1}" if i else "n-of-nobody", 1) for i in range(million // 10)), "n0")
answer, status, _ = run("run", "million.json")
t("a mistake among them is named, with its place", status == 2 and "n-of-nobody" in str(answer), f"status {status}, {str(answer)[:300]}")
finish("." if SHORT or LONG else None)
