#!/usr/bin/env python3
"""Random functions over every way to name a file, a variable or a program, and random edits between calls. The oracle is a project at the same
place without a past: after each edit, a call and a call node give there what they give in the project that remembers.

STET_SEED picks another run."""
import json, os, pathlib, random, shutil, subprocess, sys, tempfile, time, urllib.parse
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/scenario")
from tap import LONG, SHORT, STET, finish, stet, t

SEED = int(os.environ.get("STET_SEED", "1"))
print(f"# STET_SEED={SEED}")
rand = random.Random(SEED)
TOP = pathlib.Path(tempfile.mkdtemp()).resolve()
HERE = TOP / "home/pro ject" if SEED % 2 else TOP / "home/project"
ALIAS = TOP / "alias"
HERE.mkdir(parents=True)
ALIAS.symlink_to(HERE)
os.chdir(HERE)
os.environ |= {"HOME": str(TOP / "home"), "PATH": f"{HERE}/bin:{os.environ['STET_BUILD']}:{os.environ['PATH']}", "STET_JOBS": str(TOP / "jobs")}
ROUNDS = 150 if LONG else 8 if SHORT else 20
FILES = ["a.txt", "d/b.txt", "d/e/c.txt", "real/x", "lib.sh", "bin/tool", "bin/helper", "sub/own", "helper.py", "marker", "conf", "d/new.txt"]
VARIABLES = ["FOO", "BAR"]


def q(text):
    return urllib.parse.quote(str(text), safe="")


def command(text, more=""):
    return f"?command={q(text)}&stdin=null&stdout=text{more}"


def program(name, *args, more=""):
    return f"{name}?" + "".join(f"arg={q(a)}&" for a in args) + f"stdin=null&stdout=text{more}"


def quoted(path):
    return rand.choice(["'%s'", '"%s"']) % path if " " in str(path) or rand.random() < 0.5 else str(path)


def ways():
    """One of each way, for some file, variable or program."""
    f = rand.choice(FILES[:3] + ["real/x", "conf", "d/new.txt"])
    v = rand.choice(VARIABLES)
    full, other = HERE / f, ALIAS / f
    up = "d=$PWD; while [ $d != / ]; do d=$(dirname $d); [ -e $d/marker ] && cat $d/marker; done; true"
    return [
        program("cat", f), program("cat", "./" + f), program("cat", full), program("cat", other), program("sed", "--expression=p", full),
        program("dd", f"if={full}"), program("dd", f"if={f}"), program("python3", "-c", f"print(open({str(full)!r}).read())"),
        command(f"cat {f}"), command(f"cat {quoted(full)}"), command(f"cat {quoted(other)}"), command(f"cat < {f}"), command(f"cat < {quoted(full)}"),
        command(f"cat <> {f}"), command(f"cat ~/{quoted(f'{HERE.name}/{f}')}"), command(f'cat "$HOME/{HERE.name}/{f}"'), command(f'cat "${{HOME}}/{HERE.name}/{f}"'),
        command("cat d/*.txt"), command(f'cat "{HERE}"/d/*.txt'), command(f"cd {quoted(HERE)} && cat {f}"), command(f"cat {quoted(HERE / 'd')}/*.txt"),
        command("ls -R d", "&files=d"), command("cat d/link/x", "&files=d"), command("cat d/*/*", "&files=d"), command("test -d d/empty && echo y || echo n", "&files=d"),
        command('cat "$IN"', f"&env=IN%3D{q(full)}"), command('cat "$IN"', f"&env=IN%3D{f}&files={f}"), command('cat "$WHERE"', "&env=WHERE"),
        command(f"echo ${v}", f"&env={v}"), command(f"echo ${v}"), command("echo $HOME"), command(f"echo ${v}", f"&env={v}%3Dset"),
        program("tool"), command("tool"), program("sub/own"), program(f"/{HERE}/bin/tool"), command(f"{quoted(HERE / 'sub/own')}"), command("./sub/own"),
        command(f"cat {f}", "&in-place=true"), program("python3", "main.py", more="&in-place=true"), program("python3", "main.py"), program("python3", "main.py", more="&files=helper.py"),
        program("python3", HERE / "main.py"), command(up), *above(f), command(f"test -e {quoted(full)} && echo y || echo n"), command(f"test -e {f} && echo y || echo n"),
    ]


def above(f):
    """Through a directory above the project, its home directory, or a path that a script or an argument of the call has in it."""
    top, name = quoted(TOP), HERE.name
    up = "../" * 12 + str(HERE)[1:]
    return [
        command(f"cat ~/p*/{f}"), command(f"cd ~ && cat {quoted(name)}/{f}"), command(f"cd; cat {quoted(name)}/{f}"), command(f"tar -C {top} -c home --exclude .stet -O"),
        command(f"cat {top}/h*/*/{f}"), command(f"cd {top}/home; cat */{f}"), command(f'cat "${{HOME%/}}"/*/{f}'), command(f'cd "$(dirname {top}/x)"; cat home/*/{f}'),
        command(f"d={top}; cat $d/home/*/{f}"), command(f"cat `echo ~`/*/{f}"), command(f"cat {quoted(up)}/{f}"), command(f"bash -c 'cat ~/p*/{f}'"),
        program("find", TOP / "home", "-name", pathlib.Path(f).name, "-exec", "cat", "{}", ";"), program("find", str(TOP / "home"), "-path", "*/.stet", "-prune", "-o", "-name", "a.txt", "-exec", "cat", "{}", "+"),
        program("bash", "-c", f"cd && cat */{f}"), program("tar", f"-C{TOP}", "-cO", f"home/{name}/{f}"), program("grep", "-rh", "--include=*.txt", "", TOP / "home"),
        program("python3", "-c", f"import os; print(open(os.environ['HOME'] + '/{name}/{f}').read())"), program("python3", "-c", f"import pathlib as p; print((p.Path.home() / '{name}' / '{f}').read_text())"),
        program("python3", "above.py"), program("sh", "above.sh"), program("sh", "full.sh"),
    ]


def edit():
    f = rand.choice(FILES)
    path = HERE / f
    dice = rand.random()
    if dice < 0.2:
        os.environ[rand.choice(VARIABLES)] = rand.choice(["1", "2", "ü", ""])
        return "variable"
    if dice < 0.25:
        os.environ["WHERE"] = str(HERE / rand.choice(FILES[:3]))
        return "WHERE"
    if dice < 0.3:
        os.environ.pop(rand.choice(VARIABLES), None)
        return "unset"
    if dice < 0.4 and f not in ("bin/tool", "sub/own", "conf"):
        path.unlink(missing_ok=True)
        return f"rm {f}"
    if dice < 0.45:
        shutil.rmtree(HERE / "d/empty") if (HERE / "d/empty").exists() else (HERE / "d/empty").mkdir()
        return "d/empty"
    write(f)
    return f"write {f}"


def write(f):
    n = rand.randrange(1000000)
    path = HERE / f
    path.parent.mkdir(parents=True, exist_ok=True)
    text = {"bin/tool": f"#!/bin/sh\necho {n}; helper\n", "bin/helper": f"#!/bin/sh\necho {n}\n", "sub/own": f'#!/bin/sh\necho {n}; . "$(dirname "$0")/../lib.sh"\n',
            "lib.sh": f"echo {n}\n", "helper.py": f"K = {n}\n"}.get(f, f"{n}\n")
    path.unlink(missing_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def calls(functions):
    out = []
    for f in functions:
        r = subprocess.run([STET, "--json", "call", "run", "dml+exec://stet-exec-local/" + f], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        answer = json.loads(r.stdout) if r.stdout else {"error": r.stderr}
        out.append(answer["value"] if answer.get("ok") else ("failed", answer.get("failure", {}).get("exit")) if "failure" in answer else ("error", str(answer)))
    return out


def nodes(functions):
    text = 'name = "p"\n' + "".join(f'[nodes.n{i}]\ncall = "dml+exec://stet-exec-local/{f}"\n' for i, f in enumerate(functions))
    text += "[result]\n" + "".join(f'n{i} = "$n{i}"\n' for i in range(len(functions)))
    if not pathlib.Path("stet.toml").exists() or pathlib.Path("stet.toml").read_text() != text:
        pathlib.Path("stet.toml").write_text(text)
    said = subprocess.run([STET, "run", "-q", "-k"], capture_output=True, text=True)
    r = subprocess.run([STET, "--json", "action", "list"], capture_output=True, text=True)
    actions = {a["action"]: a for a in json.loads(r.stdout).get("actions", [])}
    r = subprocess.run([STET, "--json", "piece", "show", "p"], capture_output=True, text=True)
    values = json.loads(r.stdout).get("result") or {}
    out = []
    for i in range(len(functions)):
        a = actions.get(f"n{i}", {"state": said.stderr})
        out.append(("failed",) if a.get("failed") else values.get(f"n{i}") if a["state"] == "stands" else a["state"])
    return out


def afresh(compute, functions):
    aside = TOP / "aside"
    os.rename(".stet", aside)
    kept = pathlib.Path("stet.toml").read_bytes() if pathlib.Path("stet.toml").exists() else None
    stet("init")
    got = compute(functions)
    for _ in range(100):  # a small process that stays with a job of some length may still be about to leave
        shutil.rmtree(".stet", ignore_errors=True)
        if not os.path.exists(".stet"):
            break
        time.sleep(0.05)
    os.rename(aside, ".stet")
    if kept is not None and pathlib.Path("stet.toml").read_bytes() != kept:
        pathlib.Path("stet.toml").write_bytes(kept)
    return got


stet("init")
for name in FILES:
    write(name)
(HERE / "main.py").write_text("import helper\nprint(helper.K)\n")
(HERE / "d/link").symlink_to("../real")
(HERE / "above.py").write_text(f"import os\nprint(open(os.path.join(os.path.expanduser('~'), '{HERE.name}', 'a.txt')).read())\n")
(HERE / "above.sh").write_text("cd\ncat */a.txt\n")
(HERE / "full.sh").write_text(f"cat '{HERE}/d/b.txt'\n")
os.environ["WHERE"] = str(HERE / "a.txt")
wrong, compared, ok = [], 0, 0
for turn in range(ROUNDS):
    if turn % 5 == 0:
        functions = rand.sample(ways(), 6)
        in_nodes = [f for f in functions if "in-place" not in f and " || " not in urllib.parse.unquote(f)][:4]
        nodes(in_nodes)
    what = edit() if turn % 5 else "first"
    for compute, given in (calls, functions), (nodes, in_nodes):
        got, expected = compute(given), afresh(compute, given)
        compared += len(got)
        ok += sum(isinstance(g, str) for g in got)
        wrong += [(turn, what, compute.__name__, urllib.parse.unquote(f), g, e) for f, g, e in zip(given, got, expected) if g != e]
t(f"{compared} answers are those of a project without a past", not wrong, wrong[:4])
t("and many of them are values", ok > ROUNDS, ok)
left = [str(p) for p in (TOP / "jobs").glob("*/[0-9]*")]
t("no directory of a job is left", not left, left)
r = stet("check")
t("stet check", r.returncode == 0, r.stdout + r.stderr)
os.chdir("/")
shutil.rmtree(TOP)
finish(None)
