#!/usr/bin/env python3
"""docs/what-counts.md says of everything that can influence a result whether it is in the fingerprint, in the reads, or in neither. Each
row of its table is tried: the thing is changed, and what a dry run says of the action must be what the table says."""
import json, os, pathlib, re, resource, shutil, subprocess, sys

STET, SOURCE = os.environ["STET"], os.environ["STET_SOURCE"]
LOCAL = "dml+exec://stet-exec-local"
os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
base = pathlib.Path.cwd()
count = failed = 0


def stet(*args, cwd=None, env=None, umask=-1, **more):
    r = subprocess.run([STET, *args], cwd=cwd or root, env=env, capture_output=True, text=True, umask=umask, **more)
    if r.returncode not in (0, 1):
        raise SystemExit(f"{args}: {r.returncode} {r.stderr}")
    return r.stdout


def put(name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def pattern(**change):
    """One node of each kind; `change` says what differs from the first time."""
    c = {"text": "({a}) => a.n + 1", "export": "f", "timeMs": 5000, "ref": "add", "constant": 1, "cell": "argument/n", "child": 1, "function": "echo+2", "schema": {}, "result": {},
         "title": "one", "n": 1, "c": 1, "word": "one", "out": "out.txt", "cwd": ".", "set": "1", "seconds": 60, "var": "a", "debounce": 0, "whole": {}, "indent": None,
         "py": "f", "python": "venv/bin/python", "pyMs": 60000} | change
    node = lambda id, module, inputs, **more: {"id": id, "module": module, "inputs": inputs, **more}
    js = lambda implementation, **more: {"type": "javascript", "implementation": implementation, **more}
    child = {"pattern": 1, "name": "row", "nodes": [node("one", {"type": "ref", "ref": "add"}, [{"$": "argument/element"}, c["child"]])], "result": {"$": "one"}}
    nodes = [node("inline", js(c["text"], limits={"timeMs": c["timeMs"]}), {"a": {"$": "argument"}}, title=c["title"], metadata={"m": c["title"]},
                  argumentSchema=c["schema"], resultSchema=c["result"], debounceMs=c["debounce"]),
             node("look", js("({a}) => a.n"), {"a": {"$": "argument"}}),
             node("file", js({"file": "code.js", "export": c["export"]}), {"a": {"$": "argument/n"}}),
             node("python", {"type": "python", "implementation": {"file": "code.py", "export": c["py"]}, "interpreter": c["python"], "limits": {"timeMs": c["pyMs"]}, "files": ["path"]},
                  {"n": {"$": "argument/n"}, "path": {"/": {"link@1": {"id": "file:in.txt"}}}}),
             node("ref", {"type": "ref", "ref": c["ref"]}, [{"$": c["cell"]}, c["constant"]]),
             node("link", {"type": "ref", "ref": "value"}, {"value": {"/": {"link@1": {"id": "later"}}}}),
             node("far", {"type": "ref", "ref": "value"}, {"value": {"/": {"link@1": {"id": "rates", "space": "prices"}}}}),
             node("space", {"type": "ref", "ref": "value"}, {"value": {"/": {"link@1": {"id": "rates", "space": "absent"}}}}),
             node("set", {"type": "command", "argv": ["true", "{v}"], "vars": {"v": c["var"]}, "env": {"FIXED": c["set"]}, "timeout": c["seconds"], "cwd": c["cwd"]}, {}),
             node("cell", {"type": "ref", "ref": "add"}, [{"$": "c"}, 1]),
             node("map", {"type": "ref", "ref": "map", "pattern": child}, {"list": [1]}),
             node("choose", {"type": "ref", "ref": "ifElse"}, [True, {"$": "argument/n"}, {"$": "argument/other"}]),
             node("call", {"type": "call", "function": f"{LOCAL}/?command={c['function']}%3B+true+called.txt+calls/*.txt", "args": ["n"]},
                  {"n": {"$": "argument/n"}, "aside": {"$": "argument/aside"}}),
             node("command", {"type": "command", "argv": ["sh", "-c", f": {c['word']}; sh tool.sh; counts-program; ./tools/first; ls tree; cat way/../in.txt words/*.txt link in.txt head.txt data/*.txt > out.txt; echo out.txt: in.txt head.txt > out.d; date > /dev/null"],
                              "files": ["in", "all"], "produces": {"out": c["out"]}, "depfile": "out.d", "env": ["COUNTS"]},
                  {"in": {"/": {"link@1": {"id": "file:in.txt"}}}, "all": {"/": {"link@1": {"id": "glob:data/*.txt"}}}})]
    return json.dumps({"pattern": 1, "name": "p", "argument": {"default": {"n": c["n"], "other": 1, "aside": 1}, "schema": c["whole"]}, "cells": {"c": {"default": c["c"]}}, "nodes": nodes,
                       "result": {n["id"]: {"$": n["id"]} for n in nodes}}, indent=c["indent"])


def program(text, name="counts-program"):
    path = base / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + text + "\n")
    path.chmod(0o755)


def config(text):
    path = root / ".stet" / "config.toml"
    path.write_text(path.read_text() + text)


def plugins():
    shutil.copytree(pathlib.Path(os.environ["STET_BUILD"]) / "lib" / "stet", base / "plugins", dirs_exist_ok=True)
    return os.environ | {"STET_PLUGINS": str(base / "plugins")}


def touch(name):
    os.utime(root / name, ns=(1, 1))


def relink(name):
    """The same bytes, behind a symbolic link."""
    (root / name).rename(root / (name + ".real"))
    (root / name).symlink_to(name + ".real")


def limited():
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 22, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def other_program():
    place = base / "other-bin"
    place.mkdir(exist_ok=True)
    (place / "counts-program").write_text("#!/bin/sh\nexit 0 # from another directory\n")
    (place / "counts-program").chmod(0o755)
    return {"env": os.environ | {"PATH": f"{place}:{os.environ['PATH']}"}}


def library():
    (base / "bin" / "counts-data").write_text("other")


def set_runtime():
    subprocess.run([os.environ["STET_FAULTY"], "set", "--meta", "piece:p/process/runtime", json.dumps("0" * 64), "-q"], cwd=root, env=os.environ | {"STET_UNGUARDED": "1"}, check=True)


P = lambda **change: put("p.json", pattern(**change))
# What is changed, which action is looked at, and its state then if it is not the usual one. A dictionary given back is how the dry run is started.
CHANGES = {
    ("javascript", "text of a function in the pattern"): (lambda: P(text="({a}) => a.n + 1 "), "inline"),
    ("javascript", "file with the code"): (lambda: put("code.js", "export const f = () => 2, g = () => 3;"), "file"),
    ("javascript", "name of the export"): (lambda: P(export="g"), "file"),
    ("javascript", "limits of the module"): (lambda: P(timeMs=6000), "inline"),
    ("javascript", "limits in config.toml"): (lambda: config("\n[module.javascript]\ntime_limit_ms = 7000\n"), "inline"),
    ("javascript", "value that the function looked at"): (lambda: stet("set", "piece:p:argument/n", "5"), "look"),
    ("javascript", "value that the function did not look at"): (lambda: stet("set", "piece:p:argument/other", "5"), "look"),
    ("javascript", "environment variable"): (lambda: {"env": os.environ | {"SOMETHING": "else"}}, "inline"),
    ("javascript", "current directory"): (lambda: {"cwd": root / "data"}, "inline"),
    ("javascript", "umask"): (lambda: {"umask": 0o077}, "inline"),
    ("javascript", "locale"): (lambda: {"env": os.environ | {"LC_ALL": "C", "LANG": "de_DE.UTF-8"}}, "inline"),
    ("javascript", "clock and time zone"): (lambda: {"env": os.environ | {"TZ": "Asia/Tokyo"}}, "inline"),
    ("javascript", "file of the plug-in"): (lambda: {"env": plugins()}, "inline"),
    ("python", "file and name of the function"): (lambda: P(py="g"), "python"),
    ("python", "interpreter that the node names"): (lambda: P(python="./venv/bin/python"), "python"),
    ("python", "limits of the module"): (lambda: P(pyMs=61000), "python"),
    ("python", "limits in config.toml"): (lambda: config("\n[module.python]\ntime_limit_ms = 70000\n"), "python"),
    ("python", "value of an input"): (lambda: stet("set", "piece:p:argument/n", "5"), "python"),
    ("python", "file among its inputs"): (lambda: put("in.txt", "changed\n"), "python"),
    ("python", "file with the function"): (lambda: put("code.py", (root / "code.py").read_text() + "#"), "python"),
    ("python", "module of the project that it imports"): (lambda: put("helper.py", "N = 2\n"), "python"),
    ("python", "module that it looked for in vain"): (lambda: put("nowhere.py", ""), "python"),
    ("python", "module that would come before the one that it imports"): (lambda: put("colorsys.py", ""), "python"),
    ("python", "file of the project that it opens, or fails to open"): (lambda: put("opened.txt", "now it is there"), "python"),
    ("python", "installed version of a library that it imports"): (lambda: put(f"{SITE}/alib-1.0.dist-info/RECORD", "other"), "python"),
    ("python", "library that it looked for in vain"): (lambda: put(f"{SITE}/nowhere.py", ""), "python"),
    ("python", "program of the interpreter"): (lambda: ((root / "venv/bin/python").unlink(), (root / "venv/bin/python").symlink_to("/bin/python3"))[1], "python"),
    ("python", "whether a file is there that it does not open"): (lambda: put("asked.txt", ""), "python"),
    ("python", "file outside the project that it opens"): (lambda: (base / "outside.txt").write_text("2"), "python"),
    ("python", "environment variable"): (lambda: {"env": os.environ | {"SOMETHING": "else", "PYTHONPATH": "/", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}}, "python"),
    ("python", "current directory and umask of the caller"): (lambda: {"cwd": root / "data", "umask": 0o077}, "python"),
    ("python", "clock, network and chance"): (lambda: None, "python"),
    ("ref", "name of the function"): (lambda: P(ref="subtract"), "ref"),
    ("ref", "constant input"): (lambda: P(constant=2), "ref"),
    ("ref", "cell that an input is bound to"): (lambda: P(cell="argument/other"), "ref"),
    ("ref", "value of an input"): (lambda: stet("set", "piece:p:argument/n", "7"), "ref"),
    ("ref", "child pattern of map"): (lambda: P(child=2), "map"),
    ("ref", "branch that a condition does not take"): (lambda: stet("set", "piece:p:argument/other", "9"), "choose"),
    ("command", "words of the command"): (lambda: P(word="two"), "command"),
    ("command", "value of `[vars]`, `matrix` or a parameter that its words name"): (lambda: P(var="b"), "set"),
    ("command", "declared input file"): (lambda: put("in.txt", "changed\n"), "command"),
    ("command", "file in a dependency file"): (lambda: put("head.txt", "changed\n"), "command"),
    ("command", "dependency file itself"): (lambda: put("out.d", "out.txt: nothing\n"), "command"),
    ("command", "link that `..` comes after in a path"): (lambda: ((root / "way").unlink(), (root / "way").symlink_to("data"))[1], "command"),
    ("command", "script that a word names"): (lambda: put("tool.sh", ": other"), "command"),
    ("command", "directory that a word names"): (lambda: (root / "tree/empty").mkdir(), "command"),
    ("command", "files that a pattern of the shell matches"): (lambda: put("words/b.txt", "b"), "command"),
    ("command", "interpreter in the first line of a script"): (lambda: program("exit 1", "counts-interpreter"), "command"),
    ("command", "text of a symbolic link"): (lambda: ((root / "link").unlink(), (root / "link").symlink_to("./in.txt"))[1], "command"),
    ("command", "mode of an input"): (lambda: (root / "in.txt").chmod(0o755), "command"),
    ("command", "times and owner of an input"): (lambda: os.utime(root / "in.txt", (1, 1)), "command"),
    ("command", "program outside the project"): (lambda: program("exit 0 # other"), "command"),
    ("command", "files that a pattern matches"): (lambda: put("data/b.txt", "b\n"), "command"),
    ("command", "variable named in env"): (lambda: {"env": os.environ | {"COUNTS": "1"}}, "command"),
    ("command", "variable not named in env"): (lambda: {"env": os.environ | {"SOMETHING": "else", "LOGNAME": "other"}}, "command"),
    ("command", "current directory of the caller"): (lambda: {"cwd": root / "data"}, "command"),
    ("command", "clock"): (lambda: None, "command"),
    ("command", "umask"): (lambda: {"umask": 0o077}, "command"),
    ("command", "files that it produces"): (lambda: P(out="out.txt.2"), "command"),
    ("command", "output changed or removed by hand"): (lambda: (root / "out.txt").unlink(), "command"),
    ("command", "directory that it runs in"): (lambda: P(cwd="data"), "set"),
    ("command", "variable set in the pattern"): (lambda: P(set="2"), "set"),
    ("command", "time limit and other limits of the node"): (lambda: P(seconds=61), "set"),
    ("command", "mode of an input file"): (lambda: (root / "in.txt").chmod(0o755), "command"),
    ("command", "times of an input file"): (lambda: touch("in.txt"), "command"),
    ("command", "symbolic link to the same content"): (lambda: relink("in.txt"), "command"),
    ("command", "PATH that finds another program"): (other_program, "command"),
    ("command", "libraries and data of a program outside the project"): (library, "command"),
    ("command", "locale and time zone"): (lambda: {"env": os.environ | {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo"}}, "command"),
    ("command", "standard input of the caller"): (lambda: {"input": "something\n"}, "command"),
    ("command", "resource limits of the caller"): (lambda: {"preexec_fn": limited}, "command"),
    ("command", "settings of the result store in config.toml"): (lambda: config("\n[persist]\nmax_size_mb = 100\n"), "command"),
    ("call", "name of the function"): (lambda: P(function="echo+3"), "call"),
    ("call", "argument"): (lambda: stet("set", "piece:p:argument/n", "8"), "call"),
    ("call", "input that args leaves out"): (lambda: stet("set", "piece:p:argument/aside", "8"), "call"),
    ("call", "file of the project that the function names"): (lambda: put("called.txt", "text"), "call"),
    ("call", "which files a wildcard of the function matches"): (lambda: put("calls/one.txt", "text"), "call"),
    ("call", "file of the project that the job reaches through a directory above it, its home directory, or a path in a script or an argument"): (lambda: put("unnamed.txt", "text"), "call"),
    ("call", "variable of the environment that is passed on"): (lambda: {"env": os.environ | {"LOGNAME": "somebody"}}, "call"),
    ("call", "program of the adapter"): (lambda: adapter(), "call"),
    ("all", "argument schema of the node"): (lambda: P(schema={"type": "array"}), "inline"),
    ("all", "result schema of the node"): (lambda: P(result={"type": "integer"}), "inline"),
    ("all", "title and metadata of the node"): (lambda: P(title="two"), "inline"),
    ("all", "default of the argument"): (lambda: P(n=2), "ref"),
    ("all", "key that was set"): (lambda: stet("doc", "patch", "piece:p:argument", '[{"op":"add","path":"/n","value":3}]'), "ref"),
    ("all", "default of a cell"): (lambda: P(c=2), "cell"),
    ("all", "version of stet and of its records"): (set_runtime, "ref"),
    ("all", "document behind a link, also one that is created later"): (lambda: stet("set", "later", "5"), "link"),
    ("all", "document in another space"): (lambda: stet("set", "rates", "5", "--space", "prices"), "far"),
    ("all", "space that is created later"): (lambda: stet("set", "rates", "5", "--space", "absent"), "space", "unknown"),
    ("all", "argument schema of the pattern"): (lambda: P(whole={"type": "object"}), "ref"),
    ("all", "white space and order of members in the pattern file"): (lambda: P(indent=1), "inline"),
    ("all", "debounce and throttle of the node"): (lambda: P(debounce=5), "inline"),
    ("all", "number of observations kept, in config.toml"): (lambda: config("\n[scheduler]\nkeep_observations = 2\n"), "inline"),
    ("all", "number of jobs"): (lambda: {"more": ["-j", "3"]}, "command"),
    ("all", "name of the pattern file"): (lambda: {"file": (shutil.copy(root / "p.json", root / "q.json"), "q.json")[1]}, "inline"),
}
STATES = {"fingerprint": "unknown", "reads": "dirty", "neither": None}


def adapter():
    shutil.copy(pathlib.Path(os.environ["STET_BUILD"]) / "stet-exec-local", base / "bin/stet-exec-local")


def result(name, good, why=""):
    global count, failed
    count += 1
    failed += not good
    print(("ok " if good else "not ok ") + f"{count} - {name}" + ("" if good else f"\n# {why}"))


os.environ["PATH"] = str(base / "bin") + ":" + os.environ["PATH"]
program("exit 0")
first = base / "first"
root = first
first.mkdir()
stet("init")
put("p.json", pattern())
put("code.js", "export const f = () => 1, g = () => 3;")
(base / "outside.txt").write_text("1")
put("code.py", f"""
def f(n, path):
    import os, alib, helper, colorsys
    for name in ["opened.txt", "{base}/outside.txt"]:
        try: open(name).close()
        except OSError: pass
    try: import nowhere
    except ImportError: pass
    return [n, open(path).read(), os.path.exists("asked.txt"), helper.N, alib.N]
g = f
""")
put("helper.py", "N = 1\n")
SITE = "venv/lib/python%d.%d/site-packages" % sys.version_info[:2]
put(f"{SITE}/alib/__init__.py", "N = 1\n")
put(f"{SITE}/alib-1.0.dist-info/RECORD", "one")
put("venv/pyvenv.cfg", "home = /usr/bin\n")
put("venv/bin/x", "")
(root / "venv/bin/python").symlink_to("/usr/bin/python3")
put("tool.sh", ":")
program("exit 0", "counts-interpreter")
put("tools/first", f"#!{base}/bin/counts-interpreter\n")
(root / "tools/first").chmod(0o755)
put("tree/f", "f")
put("words/a.txt", "a")
(root / "link").symlink_to("in.txt")
(root / "way").symlink_to("tree")
put("in.txt", "in\n")
put("head.txt", "head\n")
put("data/a.txt", "a\n")
stet("set", "rates", "1", "--space", "prices")
ran = json.loads(stet("run", "p.json", "--json"))
result("everything runs once", ran["failed"] == 0 and ran["ran"] >= 9, json.dumps(ran))
result("and stands", json.loads(stet("run", "p.json", "--json"))["ran"] == 0)
rows = re.findall(r"^\| (\w+) \| ([^|]+) \| (fingerprint|reads|neither) \|", (pathlib.Path(SOURCE) / "docs" / "what-counts.md").read_text(), re.M)
result("the table has rows", len(rows) > 30)
result("each row is tried here, and nothing else", {(k, w) for k, w, _ in rows} == set(CHANGES), str({(k, w) for k, w, _ in rows} ^ set(CHANGES)))
for kind, what, where in rows:
    change, node, *state = CHANGES.get((kind, what), (None, None))
    if not change:
        continue
    root = base / "again"
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(first, root, symlinks=True)
    program("exit 0")
    program("exit 0", "counts-interpreter")
    stet("run", "p.json")  # in its own place
    how = change()
    how = how if isinstance(how, dict) else {}
    more, file = how.pop("more", []), how.pop("file", "p.json")
    said = json.loads(stet("run", str(root / file), "-n", "--json", *more, **how)).get("actions", [])
    states = {a["node"]: a["state"] for a in said}
    expected = state[0] if state else STATES[where]
    result(f"{kind}: {what}: {where}", states.get(node) == expected, f"{node} is {states.get(node)}, expected {expected}; {said}")
root = first
r = subprocess.run([STET, "check", "--rerun", "all"], cwd=first, capture_output=True, text=True)
result("check finds nothing, and what stands computed again is the same", r.returncode == 0, r.stdout)
print(f"1..{count}")
sys.exit(failed > 0)
