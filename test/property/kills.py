#!/usr/bin/env python3
"""Slow commands, several runners, and kills at every moment: no two instances of a command are ever alive at the same time.

Each round is a new project whose commands write their outputs in pieces, in every way a shell can start things: one after the other, in the
background, under `timeout` (a process group of its own) and under `setsid` (a session of its own). Every command holds a lock of the kernel
for as long as any of its processes lives; an instance that does not get the lock writes that down, and that is the failure this test looks for.

One to four runners begin at once, as a project's very first runs. While they run, sources are edited and put back, nodes are renamed, and a
runner, a supervisor, a command or a part of one is killed, alone or with others; another runner goes on or begins. A run that nothing was
done to must end well. When it is quiet, one run ends well, a second one runs nothing, the outputs are those of a new project, and nothing
changes any more. STET_SEED, STET_ROUNDS."""
import json, os, pathlib, random, re, shutil, signal, subprocess, sys, time

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
ROUNDS = int(os.environ.get("STET_ROUNDS", "300" if LONG else "4" if SHORT else "12"))
SEED = int(os.environ.get("STET_SEED", "1"))
base = pathlib.Path.cwd()
root, fresh, logs = base / "p", base / "fresh", base / "logs"
count = bad = 0


def t(name, good, show=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(show).splitlines()[:80]), flush=True)


def command(r, out, slow):
    """A shell text that writes {out} in pieces. The lock is at descriptor 9, and every process of the command has it."""
    pause = f"sleep 0.0{r.randrange(1, 7)}" if slow else "true"
    pieces = "for i in 1 2 3 4 5; do for f in $F; do cat $f >> $O; done; echo $i >> $O; " + pause + "; done"
    head = f"exec 9>>{logs}/{out}.lock; flock -n 9 || echo {out} >> {logs}/clash; set -- {{in}}; F=\"$*\"; O={{out}}; : > $O; rm -f $O.done; "
    way = r.randrange(6)
    if way == 0:
        return head + pieces
    if way == 1:
        return head + f"export F O; timeout 60 sh -c '{pieces}'"
    if way == 2:
        return head + f"export F O; setsid -w sh -c '{pieces}'"
    if way == 3:  # in the background, without a parent to wait for it
        return head + f"( ( {pieces}; echo > $O.done ) & ); while [ ! -e $O.done ]; do sleep 0.01; done; rm $O.done"
    if way == 4:
        return head + f"( {pieces} ) & wait"
    return head + f"export F O; sh -c '{pieces}' 2>/dev/null </dev/null"


def pipeline(r, names, slow):
    text, made = 'name = "p"\n', []
    for i, name in enumerate(names):
        inputs = sorted({f'"src/s{r.randrange(3)}"' if not made or r.random() < 0.5 else f'"${r.choice(made)}.out"' for _ in range(r.randrange(1, 3))})
        text += f"[nodes.{name}]\ncommand = {json.dumps(command(r, f'o{i}', slow))}\nfiles = {{ in = [{', '.join(inputs)}] }}\nproduces = {{ out = \"o/o{i}\" }}\n"
        text += r.choice(["", "", "cache = false\n"])
        made.append(name)
    return text


def start(*words):
    return subprocess.Popen([STET, *words], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def stet(*words, where=None):
    return subprocess.run([STET, *words], cwd=where or root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)


def processes(kind):
    """Process numbers of supervisors of this project, or of what its commands started."""
    found = []
    for d in pathlib.Path("/proc").iterdir():
        if not d.name.isdigit() or int(d.name) == os.getpid():
            continue
        try:
            words = (d / "cmdline").read_bytes().split(b"\0")
            if kind == "supervisor":
                if b"stet-supervise" in words[0] and str(root).encode() in words[1]:
                    found.append(int(d.name))
            elif os.readlink(d / "cwd") == str(root) and b"stet" not in words[0].split(b"/")[-1]:
                found.append(int(d.name))
        except (OSError, IndexError):
            pass
    return found


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def tree(where):
    return {str(f.relative_to(where)): f.read_text() for f in sorted((where / "o").glob("**/*")) if f.is_file() and f.suffix != ".done"}


def clashes():
    return (logs / "clash").read_text().split() if (logs / "clash").exists() else []


for number in range(ROUNDS):
    seed = SEED * 1000 + number
    r = random.Random(seed)
    for d in (root, fresh, logs):
        shutil.rmtree(d, ignore_errors=True)
    (root / "src").mkdir(parents=True)
    logs.mkdir()
    names = [f"n{i}" for i in range(r.randrange(2, 6))]
    text = pipeline(r, names, True)
    (root / "stet.toml").write_text(text)
    content = {f"src/s{i}": f"first {i}\n" for i in range(3)}
    for s, v in content.items():
        (root / s).write_text(v)
    stet("init")
    runs = [start("run", *r.choice([[], ["-k"], ["-j4"], ["-j4", "-k"]])) for _ in range(r.randrange(1, 5))]
    ended = set()     # runners that were killed
    disturbed = False  # a command was killed: runs may say so
    history = []
    for _ in range(r.randrange(0, 6)):
        time.sleep(r.random() * r.choice([0.02, 0.1, 0.3]))
        what = r.choice(["edit", "edit", "back", "kill", "kill", "kill", "term", "supervisor", "command", "part", "both", "all", "rename"])
        history.append(what)
        if what == "edit":
            s = r.choice(list(content))
            (root / s).write_text(f"edit {r.randrange(3)}\n")
        elif what == "back":
            for s, v in content.items():
                (root / s).write_text(v)
        if what in ("kill", "term", "both", "all", "rename"):  # a run that began with other nodes is killed
            living = [p for p in runs if p.poll() is None]
            for p in living if what in ("all", "rename") else living[:1]:
                ended.add(p)
                p.send_signal(signal.SIGTERM if what == "term" else signal.SIGKILL)
        if what in ("supervisor", "both", "all"):
            for pid in processes("supervisor"):
                kill(pid)
        if what in ("command", "part"):
            for pid in processes("command")[: None if what == "command" else 1]:
                disturbed = True
                kill(pid)
        if what == "rename":
            i = r.randrange(len(names))
            fresh_name = f"m{i}" if names[i] == f"n{i}" else f"n{i}"
            text = text.replace(f"[nodes.{names[i]}]", f"[nodes.{fresh_name}]").replace(f'"${names[i]}.out"', f'"${fresh_name}.out"')
            names[i] = fresh_name
            (root / "stet.toml.new").write_text(text)
            os.rename(root / "stet.toml.new", root / "stet.toml")
        if what in ("kill", "term", "both", "all", "supervisor", "rename") and r.random() < 0.8:
            time.sleep(r.choice([0, 0, 0.01, 0.05]))
            runs.append(start("run", *r.choice([[], ["-j4"]])))
    said = [(p, p.communicate(timeout=100)[0]) for p in runs]
    wrong = [f"{p.args[1:]} ended with {p.returncode}: {out}" for p, out in said if p not in ended and p.returncode != 0 and not
             (disturbed and p.returncode == 1 and re.search(r"signal 9|exit status 137|did not write|stopped|has not succeeded", out))]
    name = f"seed {seed} ({len(runs)} runs: {', '.join(history)})"
    t(f"{name}: a run that nothing was done to ends well", not wrong, "\n".join(wrong) + text)
    last = stet("run")
    t(f"{name}: a quiet run ends well", last.returncode == 0, last.stdout + text)
    seen = tree(root)
    again = stet("run")
    t(f"{name}: a second one has nothing to do", again.returncode == 0 and again.stdout.startswith("ran 0,"), last.stdout + again.stdout + text)
    t(f"{name}: no two instances of a command at once", not clashes(), f"{clashes()}\n{text}")
    left = processes("supervisor") + processes("command")
    if left:
        time.sleep(1)
    t(f"{name}: nothing changes any more", tree(root) == seen, f"{seen}\n{tree(root)}\n{text}")
    (logs / "clash").unlink(missing_ok=True)
    fresh.mkdir()
    shutil.copytree(root / "src", fresh / "src")
    (fresh / "stet.toml").write_text(text)
    stet("init", where=fresh)
    scratch = stet("run", where=fresh)
    t(f"{name}: a new project runs", scratch.returncode == 0, scratch.stdout)
    is_, should = tree(root), tree(fresh)
    t(f"{name}: outputs are those of a new project", all(is_.get(f) == v for f, v in should.items()), f"{is_}\n{should}\n{text}")
    check = stet("check")
    t(f"{name}: check finds nothing", check.returncode == 0, check.stdout)
    if bad:
        break
print(f"1..{count}")
sys.exit(1 if bad else 0)
