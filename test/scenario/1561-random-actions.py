#!/usr/bin/env python3
"""Random programs of Python actions are edited at random: functions, modules that they import at the top, while they run, from packages and in vain, modules
that hide others, files that they open (one of them made by a command, which they do not name), inputs. After each edit the incremental result is that of plain Python, which knows nothing of stet: each function is
called in a process of its own. STET_SEED and STET_TEST_LONG=1 search elsewhere and further."""
import json, os, pathlib, random, shutil, subprocess, sys
from tap import LONG, SHORT, answer, finish, stet, t

SEED = int(os.environ.get("STET_SEED", "1"))
PROGRAMS, EDITS = (40, 60) if LONG else (2, 8) if SHORT else (3, 9)
PYTHON = "/usr/bin/python3"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "LANG": "C.UTF-8"}
CALL = """
import sys, json, importlib
sys.path[:1] = json.loads(sys.argv[3])
try:
    print(json.dumps([getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(**json.loads(sys.argv[4]))]))
except Exception as e:
    print("{}")
"""
MODULES = ["ma", "mb", "pk.one", "pk.deep.low", "colorsys", "lib.na"]
DATA = ["d0.txt", "d1.txt", "sub/d2.txt", "made.txt"]
FILES = {"fa": "fa.py", "fb": "fb.py", "fc": "code/fc.py"}


def module_text(r, name):
    """Some of them import others: at the top, if they are there, or when asked."""
    other = r.choice([m for m in MODULES if m != name])
    text = [f"MARK = {r.randrange(1000)}", "seen = []"]
    kind = r.randrange(6)
    if kind == 0:
        text += ["try:", f"    import {other} as other", "    MARK += getattr(other, 'MARK', 50)", "except ImportError:", "    MARK += 10"]
    elif kind == 1:
        text += ["def more():", f"    import {other} as other", "    return getattr(other, 'MARK', 70)"]
    elif kind == 2:
        text += ["import os.path", f"DATA = {r.choice(DATA)!r}", "try:", "    MARK += len(open(DATA).read())", "except OSError:", "    MARK += 100"]
    elif kind == 3 and name.startswith("pk."):
        text += ["from . import one as other" if name != "pk.one" else "from .. import nothing" if name == "pk.deep.low" else "other = None",
                 "MARK += getattr(other, 'MARK', 7)"]
    if r.random() < 0.015:
        text.append("raise ValueError('no')" if r.random() < 0.5 else "this is no Python")
    return "\n".join(text) + "\n"


def body(r):
    m, d = r.choice(MODULES), r.choice(DATA)
    return r.choice([
        ["x = value"],
        [f"x = value * {r.randrange(1, 4)}"],
        ["try:", f"    import {m} as m", "    x = getattr(m, 'MARK', 33)", "except ImportError:", "    x = -1"],
        ["try:", f"    import {m} as m", "    m.seen.append(value)", "    x = len(m.seen)", "except (ImportError, AttributeError):", "    x = -2"],
        ["try:", f"    import {m} as m", "    x = m.more()", "except (ImportError, AttributeError) as e:", "    x = type(e).__name__"],
        ["try:", f"    with open({d!r}) as f: x = f.read()", "except OSError as e:", "    x = type(e).__name__"],
        ["STATE.append(value)", "x = len(STATE)"],
        ["x = top and getattr(top, 'MARK', 44)"],
        [f"import {r.choice([m, 'ma', 'mb'])} as m", "x = getattr(m, 'MARK', 55)"] if r.random() < 0.4 else ["x = [value, other]"],
    ])


def file_text(r):
    m = r.choice(MODULES)
    text = ["STATE = []"]
    text += ["try:", f"    import {m} as top", "except ImportError:", "    top = None"] if r.random() < 0.97 else [f"import {m} as top"]
    for n in range(3):
        text += [f"def g{n}(value=0, other=None, path=None):", "    all = []"]
        for _ in range(3):
            text += ["    " + line for line in body(r)] + ["    all.append(x)"]
        text += ["    if path: all.append(open(path).read())", "    return [all, other]"]
    return "\n".join(text) + "\n"


def write(path, text):
    path = pathlib.Path(path)
    if path.is_dir():
        shutil.rmtree(path)
    for above in path.parents:
        if above.is_file():
            above.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def place(name, r):
    return name.replace(".", "/") + r.choice([".py", ".py", ".py", "/__init__.py"])


def edit(r, world):
    kind = r.randrange(14)
    if kind <= 2 or kind >= 11:
        write(place(r.choice(MODULES), r), module_text(r, r.choice(MODULES)))
    elif kind == 3:
        gone = [p for p in sorted(pathlib.Path(".").rglob("*.py")) if ".stet" not in p.parts and str(p) not in FILES.values()]
        if gone:
            r.choice(gone).unlink()
    elif kind == 4:
        name = r.choice(list(FILES))
        write(FILES[name], file_text(r))
    elif kind == 5:
        write(r.choice(DATA[:3]), "x" * r.randrange(4))
    elif kind == 6:
        pathlib.Path(r.choice(DATA[:3])).unlink(missing_ok=True)
    elif kind == 7:
        world["n"] = r.randrange(5)
    elif kind == 8:
        write("code/" + place(r.choice(MODULES[:3]), r), module_text(r, "ma"))
    elif kind == 9:
        target = pathlib.Path(r.choice(["pk/__init__.py", "pk/deep/__init__.py", "lib/__init__.py", "code/__init__.py"]))
        target.unlink() if target.exists() else write(target, r.choice(["", "MARK = 9\n"]))
    elif kind == 10:
        node = r.choice(list(world["nodes"]))
        world["nodes"][node][:2] = [r.choice(list(FILES)), f"g{r.randrange(3)}"]


def new_world(r):
    for name in FILES:
        write(FILES[name], file_text(r))
    for m in r.sample(MODULES, 4):
        write(place(m, r), module_text(r, m))
    for d in r.sample(DATA[:3], 2):
        write(d, "x" * r.randrange(4))
    nodes = {}
    for n in range(5):
        nodes[f"n{n}"] = [r.choice(list(FILES)), f"g{r.randrange(3)}", r.choice([None, *nodes]) if nodes else None, r.choice([None, None, "d0.txt"])]
    return {"n": 1, "nodes": nodes}


def pattern(world):
    text = []
    for name, (file, function, above, data) in world["nodes"].items():
        text += [f"[nodes.{name}]", f'python = "{FILES[file]}:{function}"', 'inputs.value = "$argument/n"']
        text += [f'inputs.other = "${above}"'] if above else []
        text += [f'files.path = "{data}"'] if data else []
    made = ["[nodes.made]", 'command = "printf %{n}s > {out}"', 'produces = "made.txt"', 'inputs.n = "$argument/n"']
    return "\n".join(["[argument]", f"n = {world['n']}"] + text + made) + "\n"


def plain(world):
    """The values by plain Python; nodes that fail, or follow one that does, have none."""
    values = {}
    for name, (file, function, above, data) in world["nodes"].items():
        if above and above not in values or data and not os.path.exists(data):
            continue
        inputs = {"value": world["n"], **({"other": values[above]} if above else {}), **({"path": data} if data else {})}
        top, parts = os.path.dirname(os.path.abspath(FILES[file])), [file]
        while top != os.getcwd() and os.path.isfile(top + "/__init__.py"):
            parts.insert(0, os.path.basename(top))
            top = os.path.dirname(top)
        r = subprocess.run([PYTHON, "-c", CALL, ".".join(parts), function, json.dumps(list(dict.fromkeys([top, os.getcwd()]))), json.dumps(inputs)],
                           env=ENVIRONMENT, capture_output=True, text=True)
        if r.returncode == 0 and r.stdout.startswith("["):
            values[name] = json.loads(r.stdout)[0]
    return values


home = os.getcwd()
compared = same = 0
for program in range(PROGRAMS):
    seed = SEED * 1000 + program
    r = random.Random(seed)
    directory = pathlib.Path(home, f"w{program}")
    directory.mkdir()
    os.chdir(directory)
    stet("init")
    world, wrong = new_world(r), ""
    for step in range(EDITS):
        write("stet.toml", pattern(world))
        said = stet("run")
        shown = answer("piece", "show", "pipeline").get("result", {})
        want = plain(world)
        rest = stet("run")
        bad = {n: [shown.get(n), v] for n, v in want.items() if shown.get(n) != v}
        compared += len(want)
        if bad or (said.returncode == 0) != (len(want) == len(world["nodes"])) or len(want) == len(world["nodes"]) and "ran 0" not in rest.stdout:
            wrong = f"seed {seed} step {step}: {bad}\n{said.stdout}{said.stderr}{rest.stdout}{pattern(world)}"
            break
        edit(r, world)
    t(f"program {seed}: every edit gives what plain Python gives, and then all is up to date", not wrong, wrong)
    if wrong:
        print("# kept in", directory, file=sys.stderr)
        break
    os.chdir(home)
t("many values were compared", compared > PROGRAMS * EDITS, compared)
os.chdir(home)
for program in range(PROGRAMS if not wrong else 0):
    r = stet("check", "--rerun", "40", cwd=f"w{program}")
    if r.returncode != 0:
        t(f"stet check finds nothing in w{program}", False, r.stdout + r.stderr)
finish(None)
