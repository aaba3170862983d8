#!/usr/bin/env python3
"""stet killed at the n-th write of a run that begins with another pattern: nodes are added, removed, renamed, become something else; `each` loses its files,
its node, or becomes a plain node; children go. Then one run: `status`, `run -n`, `action list` and the outputs are those of a project without a past,
nothing is left to run, and `check` finds nothing. Before that run, too, the actions listed are those of one of the two patterns."""
import json, os, pathlib, random, shutil, subprocess, sys

STET, FAULTY = os.environ["STET"], os.environ["STET_FAULTY"]
SHORT, LONG = os.environ.get("STET_TEST_SHORT"), os.environ.get("STET_TEST_LONG")
os.environ["STET_SUPERVISE"] = os.path.join(os.environ["STET_BUILD"], "stet-supervise")
random.seed(int(os.environ.get("STET_TEST_SEED", "5")))


def plain(name, reads, out):
    return f'[nodes.{name}]\ncommand = "cat {reads} > {{out}}"\nproduces = "{out}"\n'


def each(name, files, out):
    return f'[nodes.{name}]\neach = "{files}"\ncommand = "cat {{in}} > {{out}}"\nproduces = "{out}/{{in.name}}"\n'


KEEP = plain("keep", "src/1", "keep")
CASES = {  # patterns before and after
    "removed": (KEEP + plain("m", "src/2", "m") + each("n", "src/*", "o"), KEEP),
    "added": (KEEP, KEEP + plain("m", "src/2", "m") + each("n", "src/*", "o")),
    "renamed": (KEEP + plain("m", "src/2", "m") + each("n", "src/*", "o"), KEEP + plain("m2", "src/2", "m") + each("n2", "src/*", "o")),
    "each to plain": (KEEP + each("n", "src/*", "o"), KEEP + plain("n", "src/2", "o/2")),
    "plain to each": (KEEP + plain("n", "src/2", "o/2"), KEEP + each("n", "src/*", "o")),
    "other files": (KEEP + each("n", "src/*", "o"), KEEP + each("n", "lib/*", "o")),
    "chain": (KEEP + each("n", "src/*", "o") + each("k", "$n.out", "k"), KEEP + each("k", "src/*", "k")),
}


def stet(where, *words, program=STET, **env):
    return subprocess.run([program, *words], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, env=dict(os.environ, **env))


def actions(where):
    return sorted((a["action"], a["state"]) for a in json.loads(stet(where, "action", "list", "--json").stdout)["actions"])


def nodes(names):
    """Without elements of `each`: those go when their list runs."""
    return {name for name in names if "[" not in name}


def surfaces(where, outputs):
    """What a user sees of a project in which everything has run."""
    return {"status": stet(where, "status").stdout, "run -n": stet(where, "run", "-n").stdout, "actions": actions(where),
            "outputs": [path.read_text() if path.exists() else None for path in (where / name for name in outputs)]}


def write(where, pattern, second):
    for name in ("src/1", "src/2", "src/3", "lib/2", "lib/4"):
        (where / name).parent.mkdir(parents=True, exist_ok=True)
        (where / name).write_text(name + "\n")
    if second:
        (where / "src/3").unlink()
        (where / "src/1").write_text("other\n")
    (where / "stet.toml").write_text('name = "t"\n' + pattern)


count = bad = 0
for title, (before, after) in CASES.items():
    base, fresh = pathlib.Path("base").absolute(), pathlib.Path("fresh").absolute()
    for where, pattern, second in ((base, before, False), (fresh, after, True)):
        shutil.rmtree(where, ignore_errors=True)
        write(where, pattern, second)
        stet(where, "init")
        assert stet(where, "run").returncode == 0
    old = {name for name, state in actions(base)}
    new = {name for name, state in actions(fresh)}
    write(base, after, True)
    outputs = sorted(str(path.relative_to(fresh)) for path in fresh.rglob("*") if path.is_file() and ".stet" not in path.parts)
    want = surfaces(fresh, outputs)
    for action in ("kill", "kill_after"):
        n = 1
        for attempt in range(2000 if LONG else 4 if SHORT else 9):
            where = pathlib.Path("work").absolute()
            shutil.rmtree(where, ignore_errors=True)
            shutil.copytree(base, where)
            first = stet(where, "run", program=FAULTY, STET_FAULT=f"call=durable,n={n},action={action}")
            if first.returncode == 0:
                break  # it got through untouched
            count += 1
            between = {name for name, state in actions(where)}
            second = stet(where, "run")
            got = surfaces(where, outputs)
            checked = stet(where, "check")
            wrong = [key for key in want if got[key] != want[key]]
            if nodes(between) not in (nodes(old), nodes(new)) or not between <= old | new or any(name.split("[")[0] not in between for name in between):
                wrong.append(f"actions after the kill: {sorted(between)}")
            if second.returncode or checked.returncode or wrong:
                bad += 1
                print(f"not ok {count} - {title}, {action} {n}: {wrong}")
                for text in (first.stdout, second.stdout, checked.stdout, *(str(got[key]) for key in want if got[key] != want[key])):
                    print("\n".join("# " + line for line in text.splitlines()[:12]), flush=True)
            n += 1 if LONG else random.randrange(1, 2 + n)
if not bad:
    print(f"ok {count} - {count} kills")
print(f"1..{count}")
sys.exit(1 if bad else 0)
