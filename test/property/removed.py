#!/usr/bin/env python3
"""Every part of .stet is removed, emptied, cut or altered, and the project goes on.

A project has commands, functions, documents, finished runs, entries with a snapshot and entries in the log alone. Each file and each directory in
.stet is damaged once (in `make test` a part of them, which STET_SEED draws), and then

  R1. a run that says it succeeded leaves the files and values that a new project has, also after an input was edited;
  R2. whatever is damaged or lost, `check --repair` leads to a project of which `check` says ok, or says what it can't mend;
  R3. what is repaired stays repaired: after more edits and runs `check` says ok;
  R4. files that commands made, and that nobody touched, are never taken away."""
import json, os, pathlib, random, shutil, subprocess, sys

os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
SEED = int(os.environ.get("STET_SEED", "1"))
rng = random.Random(SEED)
base, root = pathlib.Path("base").absolute(), pathlib.Path("p").absolute()
PATTERN = """
name = "main"
[argument]
n = 1
[nodes.upper]
command = "tr a-z A-Z < {in} > {out}"
files = "in.txt"
produces = "out.txt"
[nodes.count]
command = "wc -c < {o} | tr -d ' ' > {out}"
files = { o = "$upper.out" }
produces = "n.txt"
stdout = "text"
[nodes.sum]
inputs = { d = { "/" = { "link@1" = { id = "doc" } } }, n = "$argument/n" }
javascript = "({d, n}) => (d?.x ?? 0) + n"
[nodes.twice]
inputs = { values = ["$sum", "$sum"] }
ref = "add"
"""


def stet(*args):
    return subprocess.run([STET, *args], cwd=root, capture_output=True, text=True)


def must(*args):
    r = stet(*args)
    if r.returncode:
        sys.exit(f"{args}: status {r.returncode}: {r.stdout}{r.stderr}")
    return r.stdout


def edit(step):
    (root / "in.txt").write_text("abc" * step)
    return step


def set_doc(step):
    return stet("set", "doc", json.dumps({"x": step}))


def wrong(step, x):
    """How the project differs from a new one."""
    text = "ABC" * step
    for name, want in ("out.txt", text), ("n.txt", f"{len(text)}\n"):
        path = root / name
        if not path.exists() or path.read_text() != want:
            return f"{name} is {path.read_text()!r}, not {want!r}" if path.exists() else f"{name} is missing"
    got = stet("get", "piece:main:node:twice")
    if got.returncode or json.loads(got.stdout) != 2 * (x + 1):
        return f"twice is {got.stdout.strip()}{got.stderr.strip()}, not {2 * (x + 1)}"
    return None


def build():
    root.mkdir()
    must("init", "--quiet")
    (root / "stet.toml").write_text(PATTERN)
    for step in range(1, 4):
        edit(step)
        if set_doc(step).returncode:
            sys.exit("set")
        must("run")
        if step == 2:
            must("persist", "cleanup")
    if problem := wrong(3, 3):
        sys.exit(f"the project itself: {problem}")
    root.rename(base)


def remove(path):
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def empty(path):
    path.write_bytes(b"")


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def append(path):
    path.write_bytes(path.read_bytes() + b"\n[junk")


def alter(path):
    data = bytearray(path.read_bytes())
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def junk(path):
    path.write_bytes(bytes(rng.randrange(256) for _ in range(200)))


def case(parts, damage):
    """None, or what went wrong."""
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(base, root, symlinks=True)
    for part in parts:
        if (root / part).exists():
            damage(root / part)
    is_database = any(".db" in str(part) for part in parts)
    said = []

    def ran(step, x, when):
        r = stet("run")
        said.append(f"{when}: run {r.returncode} {r.stdout.strip()} {r.stderr.strip()}")
        if r.returncode < 0:
            return f"{when}: killed by signal {-r.returncode}"
        if r.returncode == 0 and (problem := wrong(step, x)):
            return f"{when}: {problem}"
        return None

    r = stet("check")
    said.append(f"check {r.returncode}: {r.stdout}{r.stderr}")
    if r.returncode < 0:
        return f"check: signal {-r.returncode}", said
    early = rng.random() < 0.5  # what is lost is lost before or after the repair
    step = 3
    if early:
        has_doc = stet("get", "doc").returncode == 0
        if problem := ran(3, 3 if has_doc else 0, "at once"):
            return problem, said
        edit(4)
        step = 4
        if problem := ran(4, 3 if has_doc else 0, "after an edit"):
            return problem, said
    r = stet("check", "--repair")
    said.append(f"repair {r.returncode}: {r.stdout}{r.stderr}")
    beyond = r.returncode != 0
    if beyond and not (r.stdout + r.stderr).strip():
        return "repair says nothing", said
    r = stet("check")
    said.append(f"check {r.returncode}: {r.stdout}{r.stderr}")
    if r.returncode and not beyond:
        return "check after a repair that succeeded", said
    kept = any("config.toml" in str(part) or "runs/" in str(part) for part in parts)  # what people and runs said is not guessed
    if r.returncode and not is_database and not kept:
        return "never ok again", said
    if beyond and r.returncode:
        return None, said
    for name in "in.txt", "out.txt", "n.txt":
        if not (root / name).exists():
            return f"{name} was taken away", said
    if set_doc(7).returncode:
        return "set fails after the repair", said
    for step in step, 5, 6:
        edit(step)
        r = stet("run")
        said.append(f"then: run {r.returncode} {r.stdout.strip()} {r.stderr.strip()}")
        if r.returncode:
            return "a run fails after the repair", said
        if problem := wrong(step, 7):
            return f"after the repair: {problem}", said
    remove(root / "out.txt")
    r = stet("run")
    said.append(f"removed: run {r.returncode} {r.stdout.strip()} {r.stderr.strip()}")
    if r.returncode or (problem := wrong(6, 7)):
        return "an output that is removed is not made again", said
    r = stet("check")
    if r.returncode:
        said.append(f"check {r.returncode}: {r.stdout}{r.stderr}")
        return "check at the end", said
    return None, said


build()
everything = sorted(p.relative_to(base) for p in (base / ".stet").rglob("*"))
cases = [([p], d) for p in everything for d in ([remove] if (base / p).is_dir() else [remove, empty, cut, append, alter, junk])]
dirs = [p for p in everything if (base / p).is_dir()]
cases += [([a, b], remove) for i, a in enumerate(everything) for b in everything[i + 1:] if a in dirs or b in dirs]
whole = len(cases)
if not LONG:
    first = [c for c in cases if len(c[0]) == 1 and (c[0][0] in dirs)]
    rest = [c for c in cases if c not in first]
    rng.shuffle(rest)
    cases = (first if not SHORT else first[:3]) + rest[: 4 if SHORT else 40]
if only := os.environ.get("STET_CASE"):
    cases = [c for c in cases if only in f"{c[1].__name__} {' '.join(map(str, c[0]))}"]
bad = 0
for parts, damage in cases:
    problem, said = case(parts, damage)
    if problem:
        bad += 1
        print(f"# {damage.__name__} {' '.join(map(str, parts))}: {problem}")
        for line in "\n".join(said).splitlines():
            print(f"#    {line}")
        sys.stdout.flush()
print(f"# seed {SEED}: {len(cases)} of {whole} cases, {bad} wrong")
print(f"{'not ok' if bad else 'ok'} 1 - every part of a project can be lost")
print("1..1")
sys.exit(bad != 0)
