#!/usr/bin/env python3
"""Functions of Python files as actions: what they are given and give back, what is refused, what counts, cells, effects and handlers, limits, and processes that are
killed."""
import json, os, pathlib, signal, subprocess, sys, time
from tap import STET, answer, finish, stet, t


def write(path, text):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(text)


def result(piece="pipeline"):
    return answer("piece", "show", piece).get("result", {})


def ran(said):
    return said.stdout.splitlines()[-1].split(",")[0] if said.stdout else said.stderr


stet("init")

# -- What a function is given and gives back
write("f.py", """
import sys
from decimal import Decimal
LOG = []
def double(value):
    LOG.append(value)
    print("doubling", value)
    return value * 2 + len(LOG) - 1
async def later(value, other=7):
    return [value, other]
def paths(one, many, made):
    return [one, many, made, open(one).read()]
def place(x, y): return x - y
def forms(): return {"t": (1, 2.5), "n": None, "é": True, "big": 2 ** 62}
class Box:
    @staticmethod
    def inner(): return "in a class"
""")
write("in/a.txt", "a"), write("in/b.txt", "b")
write("stet.toml", """
[argument]
n = 4
[nodes.two]
python = "f.py:double"
inputs.value = "$argument/n"
[nodes.again]
python = "f.py:double"
inputs.value = "$argument/n"
[nodes.later]
python = "f.py:later"
inputs.value = "$two"
[nodes.made]
command = "printf made > {out}"
produces = "made.txt"
[nodes.paths]
python = "f.py:paths"
files = { one = "in/a.txt", many = "in/*.txt", made = "made.txt" }
[nodes.forms]
python = "f.py:forms"
[nodes.box]
python = "f.py:Box.inner"
[nodes.place]
python = "f.py:place"
inputs = { 0 = 5, 1 = 3 }
""")
r = answer("run")
v = result()
t("functions run", r.get("ran") == 8, r)
t("with values, in processes of their own", (v.get("two"), v.get("again"), v.get("later"), v.get("place")) == (8, 8, [8, 7], 2), v)
t("with files as paths", v.get("paths") == ["in/a.txt", ["in/a.txt", "in/b.txt"], "made.txt", "a"], v.get("paths"))
t("and JSON comes back", v.get("forms") == {"t": [1, 2.5], "n": None, "é": True, "big": 2 ** 62} and v.get("box") == "in a class", v.get("forms"))
logs = stet("runs", "logs", r["runId"]).stdout
t("what they print is in the log", "doubling 4" in logs, logs)
t("everything stands", ran(stet("run")) == "ran 0")
write("in/a.txt", "A")
t("a file that is given counts by its content", ran(stet("run")) == "ran 1" and result()["paths"][3] == "A", result())
write("in/c.txt", "c")
t("and a pattern by what it matches", ran(stet("run")) == "ran 1" and len(result()["paths"][1]) == 3, result())
os.utime("f.py"), os.utime("in/a.txt")
t("a touch counts for nothing", ran(stet("run")) == "ran 0")

# -- What counts: modules found, and not found
write("one/top.py", "import util\nfrom . import near\ndef f(): return [util.N, near.N]\n")
write("one/__init__.py", ""), write("one/near.py", "N = 1\n"), write("util.py", "N = 10\n")
write("two/lazy.py", """
def f():
    import colorsys
    try:
        import extra
    except ImportError:
        extra = None
    try:
        import plugin.one as p
    except ImportError:
        p = None
    return [hasattr(colorsys, "MINE"), extra and extra.N, p and p.N]
""")
write("c.json", json.dumps({"pattern": 1, "name": "c", "nodes": [
    {"id": "top", "inputs": {}, "module": {"type": "python", "implementation": {"file": "one/top.py", "export": "f"}}},
    {"id": "lazy", "inputs": {}, "module": {"type": "python", "implementation": {"file": "two/lazy.py", "export": "f"}}}],
    "result": {"top": {"$": "top"}, "lazy": {"$": "lazy"}}}))


def after(what, runs, top, lazy):
    r = stet("run", "c.json")
    v = result("c")
    t(what, ran(r) == f"ran {runs}" and (v["top"], v["lazy"]) == (top, lazy), r.stdout + r.stderr + str(v))


after("packages, relative and plain imports", 2, [10, 1], [False, None, None])
write("one/near.py", "N = 2\n")
after("a module that was imported relatively", 1, [10, 2], [False, None, None])
write("one/util.py", "N = 11\n")
after("a module beside the file of a package hides none: the directory above the package comes first", 0, [10, 2], [False, None, None])
write("two/extra.py", "N = 5\n")
after("a module that was looked for in vain", 1, [10, 2], [False, 5, None])
write("two/plugin/one.py", "N = 6\n")
after("a directory without __init__.py", 1, [10, 2], [False, 5, 6])
write("two/colorsys.py", "MINE = 1\n")
after("a module that hides one of Python's", 1, [10, 2], [True, 5, 6])
os.remove("two/extra.py")
after("a module that is gone", 1, [10, 2], [True, None, 6])
write("util/__init__.py", "N = 12\n")
after("a package goes before a module; nothing that lazy imports", 1, [12, 2], [True, None, 6])
os.remove("util.py")
after("a module that was not taken", 0, [12, 2], [True, None, 6])
write("one/near.py", "N = (\n")
r = stet("run", "c.json")
t("a mistake names file and line", r.returncode == 1 and "one/near.py:1: SyntaxError" in r.stdout + r.stderr, r.stdout + r.stderr)
write("one/near.py", "N = 3\n")
after("and is mended by an edit", 1, [12, 3], [True, None, 6])
write("one/near.py", "N = 4\n"), os.utime("one/near.py", ns=(0, 0))
after("compiled files and times count for nothing", 1, [12, 4], [True, None, 6])

# -- Libraries: by their distribution, found and not found
site = pathlib.Path("venv/lib/python%d.%d/site-packages" % sys.version_info[:2])
subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "venv"], check=True)
site = next(pathlib.Path("venv/lib").glob("python3*")) / "site-packages"
write(site / "alib/__init__.py", "from .inner import N\n"), write(site / "alib/inner.py", "N = 1\n")
write(site / "alib-1.0.dist-info/RECORD", "alib/inner.py,1\n")
write("l.py", "import alib\ndef f():\n    try: import blib\n    except ImportError: return alib.N\n    return alib.N + blib.N\n")
write("l.json", json.dumps({"pattern": 1, "name": "l", "nodes": [
    {"id": "l", "inputs": {}, "module": {"type": "python", "interpreter": "venv/bin/python", "implementation": {"file": "l.py", "export": "f"}}}], "result": {"$": "l"}}))
t("an interpreter of one's own", stet("run", "l.json").returncode == 0 and result("l") == 1, result("l"))
t("with it all stands", ran(stet("run", "l.json")) == "ran 0")
write(site / "alib/inner.py", "N = 2\n"), write(site / "alib-1.0.dist-info/RECORD", "alib/inner.py,2\n")
t("a library that is installed anew counts", ran(stet("run", "l.json")) == "ran 1" and result("l") == 2, result("l"))
write(site / "blib.py", "N = 40\n")
t("and one that was not there", ran(stet("run", "l.json")) == "ran 1" and result("l") == 42, result("l"))
write(site / "blib.py", "N = 50\n")
t("one of no distribution counts by its files", ran(stet("run", "l.json")) == "ran 1" and result("l") == 52, result("l"))

# -- What is refused, and failures
write("bad.py", """
import os, subprocess, sys
def spin():
    while True: pass
def die(): os._exit(3)
def memory(): return len("a" * (900 << 20))
def nan(): return {"a": [float("nan")]}
def key(): return {1: 2}
def writes(): open("out.txt", "w")
def removes(): os.remove("bad.py")
def lists(): return os.listdir(".")
def starts(): return subprocess.run(["true"])
def own(): return open(".stet/config.toml").read()
def leaves(): sys.exit(1)
def circle():
    a = []
    a.append(a)
    return a
def wrong(): return {"x": object()}
""")
expected = {"spin": "time limit", "die": "exit code 3", "memory": "MemoryError", "nan": "the result['a'][0]: nan", "key": "keys are texts", "writes": "writes no file",
            "removes": "changes no file", "lists": "lists no directory", "starts": "starts no program", "own": "a file of stet's", "leaves": "sys.exit", "circle": "a circle",
            "wrong": "a object has no form", "nothing": "has no function nothing"}
write("bad.toml", "\n".join(f'[nodes.{n}]\npython = "bad.py:{n}"\nlimits = {{ timeMs = {300 if n == "spin" else 60000}, memoryMb = 200 }}' for n in expected))
problems = {p["node"]: p["error"]["message"] for p in answer("run", "bad.toml", "-k").get("problems", [])}
wrong = {n: problems.get(n) for n, words in expected.items() if words not in problems.get(n, "")}
t("failures say what is wrong", not wrong, wrong)
t("and nothing was written", not os.path.exists("out.txt") and os.path.exists("bad.py"))
for text, words in [('{"file": "../f.py", "export": "f"}', "no path inside"), ('{"file": "f.py"}', "no name of a function"), ('"f"', "a file and a function")]:
    write("x.json", '{"pattern": 1, "name": "x", "nodes": [{"id": "a", "inputs": {}, "module": {"type": "python", "implementation": %s}}], "result": {"$": "a"}}' % text)
    r = stet("pattern", "check", "x.json")
    t(f"{text} is refused", r.returncode != 0 and words in r.stdout + r.stderr, r.stdout + r.stderr)

# -- Cells, handlers and effects
write("cells.py", """
import os, subprocess
def add(event, total, seen, settings):
    total.update(lambda n: (n or 0) + event)
    seen.push(event, event)
    settings.key("last").set(event)
    settings.update({"name": "x"})
def report(total, path):
    with open(path) as f: words = f.read()
    with open("report.log", "a") as f: f.write("%s %s\\n" % (total, words))
    subprocess.run(["true"], check=True)
    return total
def stray(): return open("f.py").read()
""")
cells = {"total": {"default": 0}, "seen": {"default": []}, "settings": {"default": {"name": "", "last": None}}}
python = {"type": "python", "implementation": {"file": "cells.py", "export": "add"}, "handler": True}
write("e.json", json.dumps({"pattern": 1, "name": "e", "cells": cells, "nodes": [
    {"id": "add", "stream": {"$": "add"}, "inputs": {c: {"$": c, "asCell": True} for c in cells}, "module": python},
    {"id": "report", "kind": "effect", "inputs": {"total": {"$": "total"}, "path": {"/": {"link@1": {"id": "file:words.txt"}}}},
     "module": {"type": "python", "files": ["path"], "implementation": {"file": "cells.py", "export": "report"}}}],
    "result": {c: {"$": c} for c in cells} | {"add": {"$": "add"}}}))
write("words.txt", "w")
r = stet("run", "e.json")
t("a piece with a handler and an effect", r.returncode == 0, r.stdout + r.stderr)
r = stet("piece", "send", "e", "add", "5", "--settle")
t("an event reaches the handler", r.returncode == 0, r.stdout + r.stderr)
t("cells are read and written", dict(result("e"), add=0) == {"add": 0, "total": 5, "seen": [5, 5], "settings": {"name": "x", "last": 5}}, result("e"))
stet("piece", "send", "e", "add", "2", "--settle")
t("again", result("e")["total"] == 7 and result("e")["seen"] == [5, 5, 2, 2], result("e"))
stet("run", "e.json")
t("an effect is done once for each value", pathlib.Path("report.log").read_text() == "0 w\n5 w\n7 w\n", pathlib.Path("report.log").read_text())
write("words.txt", "W"), stet("run", "e.json"), stet("run", "e.json")
t("and when a file that it names changes", pathlib.Path("report.log").read_text().endswith("7 w\n7 W\n"), pathlib.Path("report.log").read_text())
write("s.toml", '[nodes.stray]\nkind = "effect"\npython = "cells.py:stray"\n')
r = stet("run", "s.toml")
t("an effect opens what it names, and nothing else", "add f.py to its files" in r.stdout + r.stderr, r.stdout + r.stderr)

# -- The forms of patterns
write("p.js", """
export default pattern('p', { n: 3 }, ({ n }) => {
    const two = python('f.py:double')({ value: n });
    const add = python('cells.py:add', { handler: true });
    const total = cell(0, { name: 'total' }), seen = cell([], { name: 'seen' }), settings = cell({ name: '', last: null }, { name: 'settings' });
    return { two, total, place: python('f.py:place', { limits: { timeMs: 5000 } })(9, 4), add: add({ total, seen, settings }) };
});
""")
r = stet("run", "p.js")
t("a function of Python in a pattern in JavaScript", r.returncode == 0 and (result("p")["two"], result("p")["place"]) == (6, 5), r.stdout + r.stderr)
stet("piece", "send", "p", "add", "4", "--settle")
t("and a handler", result("p")["total"] == 4, result("p"))
for text, words in [('[python]\nshell = "x"\n', "has no member"), ('[nodes.a]\npython = "f.py"\n', "names no function"), ('[nodes.a]\nref = "add"\ninterpreter = "/usr/bin/python3"\n', "functions of Python"),
                    ('[nodes.a]\npython = "f.py:double"\ninterpreter = "python3"\n', "no path of a program"), ('[nodes.a]\npython = "f.py:double"\ndepfile = "x"\n', "for commands")]:
    write("x.toml", text + ('[nodes.b]\nref = "add"\n' if "nodes" not in text else ""))
    r = stet("pattern", "check", "x.toml")
    t(f"{text!r} is refused", r.returncode != 0 and words in r.stdout + r.stderr, r.stdout + r.stderr)
write("y.toml", '[python]\ninterpreter = "venv/bin/nothing"\n[nodes.a]\npython = "f.py:forms"\n')
r = stet("run", "y.toml")
t("an interpreter that is not there is named, with a way out", "venv/bin/nothing" in r.stdout + r.stderr and "below [python]" in r.stdout + r.stderr, r.stdout + r.stderr)

# -- Files that change while a function runs
home = os.getcwd()
for kind, change, want in [("back", ["2", "1"], "11"), ("stays", ["2"], "22"), ("module", ["2"], "22")]:
    os.chdir(home)
    place = pathlib.Path(home, "race-" + kind)
    place.mkdir()
    (place / "project").mkdir()
    os.chdir(place / "project")
    stet("init")
    look = 'import m; return m.N' if kind == "module" else 'return open("x.txt").read()'
    write("x.txt", "1"), write("m.py", "N = '1'\n")
    write("stet.toml", '[nodes.f]\npython = "f.py:f"\n')
    write("f.py", f"""
import os, sys, time
def look():
    {look}
def f():
    first = look()
    sys.modules.pop("m", None)
    with open("{place}/begun", "a") as out: out.write("x")
    while not os.path.exists("{place}/go"): time.sleep(0.01)
    return first + look()
""")
    (place / "go").touch()
    stet("run")  # what it reads is known from now on
    (place / "go").unlink(), (place / "begun").unlink()
    write("f.py", pathlib.Path("f.py").read_text() + "#")
    p = subprocess.Popen([STET, "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    end = time.time() + 60
    while not (place / "begun").exists() and time.time() < end:
        time.sleep(0.01)
    for text in change:
        write(*(("m.py", f"N = '{text}'\n") if kind == "module" else ("x.txt", text)))
    (place / "go").touch()
    said = p.communicate(timeout=60)[0]
    runs = len((place / "begun").read_text())
    t(f"{kind}: the result is of one state", result() == {"f": want} and runs > 1, f"{said} {result()} {runs}")
    t(f"{kind}: and all is up to date", ran(stet("run")) == "ran 0")
os.chdir(home)

# -- Kills
write("slow.py", "import os, time\ndef f(x):\n    if not os.environ.get('never'):\n        with open('/dev/null'): pass\n    time.sleep(x)\n    return 'done'\n")
write("slow.toml", '[argument]\nx = 60\n[nodes.slow]\npython = "slow.py:f"\ninputs.x = "$argument/x"\n')


def children(pid):
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            words = p.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if words[1] == str(pid):
            found.append(int(p.parent.name))
    return found


def started(p):
    """The process of the file, and that of the action."""
    end = time.time() + 60
    while time.time() < end:
        for host in children(p.pid):
            if b"-c" in pathlib.Path(f"/proc/{host}/cmdline").read_bytes():
                for action in children(host):
                    return host, action
        time.sleep(0.02)
    return 0, 0


def gone(pid):
    end = time.time() + 60
    while time.time() < end and pathlib.Path(f"/proc/{pid}").exists():
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return not pathlib.Path(f"/proc/{pid}").exists()


for which in ["stet", "host", "action", "interrupt"]:
    p = subprocess.Popen([STET, "run", "slow.toml"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    host, action = started(p)
    t(f"{which}: it runs", host and action)
    os.kill({"stet": p.pid, "host": host, "action": action, "interrupt": p.pid}[which], signal.SIGINT if which == "interrupt" else signal.SIGKILL)
    said = p.communicate(timeout=60)[0]
    t(f"{which}: nothing of it is left", gone(host) and gone(action))
    t(f"{which}: and it has failed or ended", p.returncode != 0, said)
r = stet("run", "slow.toml", "--set", "x=0")
t("the next run does it", r.returncode == 0 and answer("piece", "show", "pipeline")["result"] == {"slow": "done"}, r.stdout + r.stderr)
finish()
