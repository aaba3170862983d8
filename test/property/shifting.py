#!/usr/bin/env python3
"""Paths that change their type. Every path of a small tree is in turn a file, a directory, a link (to a file, a directory, an output, or nothing) and
absent; so are the directories above it. Commands make files, directories and links beside the tree, also one for each source; they come, go, change their
outputs, names and ways to fail, and leave files behind. Outputs are edited and deleted by hand, sources touched, and their modes changed. Readers read the tree and the outputs in every way: as an input, a directory, a pattern, a list of `each`, by a dependency
file, by words of a command, and as documents from JavaScript and `ref`; also through a link to the project itself. Now and then `stet run` is killed while commands run, and these go on.

The oracle is a fresh project with the sources alone. After each step:
  - before a run, what is shown as standing is what the fresh project has;
  - after `stet run -k` each node has the fresh project's value, or fails as it does there; while files of removed nodes lie around, it may fail instead and
    name such a file; when the way out that the error names is taken, or they are removed by hand, it has the fresh project's value;
  - a run that ends with 0 leaves nothing to do: for `action list`, `run -n` and another run; `get --fresh` gives the same value.

STET_SEED, STET_STEPS (projects)."""
import json, os, pathlib, random, re, shutil, signal, subprocess, sys, time

os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # its tracer fails beside processes that are stopped
STET = os.environ["STET"]
SEED = int(os.environ.get("STET_SEED", "1"))
STEPS = int(os.environ.get("STET_STEPS", 0)) or (200 if os.environ.get("STET_TEST_LONG") else 2 if os.environ.get("STET_TEST_SHORT") else 4)
ONLY = os.environ.get("STET_ONLY")  # one project
root, fresh = pathlib.Path("q").absolute(), pathlib.Path("f").absolute()
rnd = random.Random(SEED)
pick = rnd.choice
link = lambda id: '{"/"={"link@1"={id=%s}}}' % json.dumps(id)

# What a reader is given: F is a path that may be a file, D one that may be a directory.
TREE = r"""for f in D D/* D/*/*; do if [ -f \"$f\" ]; then echo \"$f\"; cat \"$f\"; elif [ -d \"$f\" ]; then echo \"$f/\"; fi; done"""
WAYS = {
    "input": 'command="cat {in} > {out}"\nfiles="F"\nscripts=false',
    "directory": 'command="%s > {out}"\nfiles="D"\nscripts=false' % TREE,
    "pattern": 'command="cat {in} /dev/null > {out}; echo {in} >> {out}"\nfiles="D/*"\nscripts=false',
    "pattern-deep": 'command="cat {in} /dev/null > {out}; echo {in} >> {out}"\nfiles="D/**"\nscripts=false',
    "pattern-name": 'command="cat {in} /dev/null > {out}; echo {in} >> {out}"\nfiles="D/[x]*"\nscripts=false',
    "depfile": 'command="cat F > {out} 2>/dev/null; echo o: F > dep/N"\ndepfile="dep/N"\nscripts=false',
    "depfile-dir": 'command="%s > {out}; echo o: D > dep/N"\ndepfile="dep/N"\nscripts=false' % TREE,
    "word": 'command="cat F > {out} 2>/dev/null; true"',
    "word-test": 'command="if [ -d F ]; then echo d; elif [ -f F ]; then echo f; else echo n; fi > {out}"',
    "word-dir": 'command="ls D/ > {out} 2>/dev/null; true"',
    "word-pattern": 'command="cat D/* > {out} 2>/dev/null; true"',
    "word-echo": 'command="echo D/* > {out}"',
    "word-ls": 'command="ls -A D > {out} 2>/dev/null; true"',
    "word-find": 'command="find D 2>/dev/null | LC_ALL=C sort > {out}"',
    "word-string": """command=["sh", "-c", 'perl -e "print join(q( ), sort glob(q(D/*)))" > "$1"', "-", "{out}"]""",
    "word-list": '''command=["sh", "-c", 'cat "$1" > "$2" 2>/dev/null; true', "-", "F", "{out}"]''',
    "js-file": 'javascript="({g}) => g ? [g.hash, g.mode] : 0"\ninputs={g=%s}' % link("file:F"),
    "js-pattern": 'javascript="({g}) => Object.keys(g ?? {})"\ninputs={g=%s}' % link("glob:D/*"),
    "js-content": 'javascript="({g}) => Object.entries(g ?? {}).map(([k, v]) => [k, v?.hash])"\ninputs={g=%s}' % link("glob:D/*"),
    "ref-file": 'ref="get"\ninputs={value=%s, path="hash", default=0}' % link("file:F"),
    "ref-pattern": 'ref="keys"\ninputs={value=%s}' % link("glob:D/*"),
    "each": 'each="D/*"\ncommand="cat {in} > {out}"\nscripts=false',
    "each-file": 'each=["F", "fixed"]\ncommand="cat {in} > {out}"\nscripts=false',
}
VALUE = ("js-file", "js-pattern", "js-content", "ref-file", "ref-pattern")
# What may be read, and where links may lead, seen from the project.
FILES = ["s/a", "s/a/x", "s/a/x/x", "s/b/x", "s/c", "s/c/x", "g/p", "g/d/x", "g/l", "g/l/x", "g/m", "g/e/1", "g/e/2", "g/t/x", "v/g/p", "k/g/p", "k/s/b/x"]
DIRS = ["s/a", "s/b", "s/c", "s/a/x", "g/d", "g/l", "g/e", "g/t", "v/g", "k/g", "k/s/a"]
MAKERS = {
    "p": 'command="test ! -e stop && cat in > {out}"\nfiles="in"\nproduces="MOVEDg/p"',
    "d": 'command="mkdir -p {out}/sub; cat in > {out}/x; echo y > {out}/sub/y"\nfiles="in"\nproduces="MOVEDg/d"',
    "l": 'command="ln -s ../TARGET {out}"\nproduces="g/l"\nscripts=false',
    "m": 'command="ln -s p {out}"\nfiles="g/p"\nproduces="g/m"\nscripts=false',
    "e": 'each="src/*"\ncommand="SLEEPcat {in} > {out}"\nproduces="g/e/{in.name}"',
    "t": 'command="ln -s ../TARGET {out}/x 2>/dev/null || { mkdir {out}; ln -s ../../TARGET {out}/x; }"\nproduces="g/t"\nscripts=false',
}


def stet(where, *words):
    return subprocess.run([STET, *words], cwd=where, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def wipe(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Project:
    def __init__(self):
        self.tree = {}  # path below s -> None (a directory), text, or ("link", target)
        self.src, self.text, self.target, self.slow = {"1": "one\n"}, "t0\n", "s/a", False
        self.way = pick(["v/", "k/v/"])  # where makers move to; k leads to the project
        self.moved, self.renamed, self.run_by, self.stop = set(), set(), set(), False  # makers, makers, sources that are executable, does p fail?
        self.makers = {m for m in MAKERS if rnd.random() < 0.6}
        self.readers = []
        for i in range(pick([2, 3, 4])):
            way = pick(list(WAYS))
            self.readers.append((f"r{i}", way, pick(FILES), pick(DIRS)))
        for top in "abc":
            self.put(top)
        self.said = []

    def text_of(self):
        return f"{rnd.randrange(100)}\n"

    def put(self, path):
        """Makes something else of a path."""
        for p in [p for p in self.tree if p == path or p.startswith(path + "/")]:
            del self.tree[p]
        kind = pick(["absent", "file", "dir", "dir", "link", "link"])
        if "/" in path and kind != "absent":  # what is above it becomes a directory
            above = path.rsplit("/", 1)[0]
            if above not in self.tree or self.tree[above] is not None:
                self.put_as(above, "dir")
        self.put_as(path, kind)
        return kind

    def put_as(self, path, kind):
        if "/" in path and kind != "absent" and self.tree.get(path.rsplit("/", 1)[0], 0) is not None:
            self.put_as(path.rsplit("/", 1)[0], "dir")
        self.tree.pop(path, None)
        if kind == "file":
            self.tree[path] = self.text_of()
        elif kind == "dir":
            self.tree[path] = None
            for name in "xy":
                if rnd.random() < 0.6:
                    self.tree[f"{path}/{name}"] = self.text_of()
            if rnd.random() < 0.2:
                self.tree[f"{path}/z"] = ("link", pick([p for p in self.targets(path) if not path.startswith(p[2:])] or ["nowhere"]))
        elif kind == "link":
            self.tree[path] = ("link", pick(self.targets(path)))

    def targets(self, path):
        top = "s/" + path.split("/")[0]
        return [p for p in ["s/a", "s/b", "s/c", "s/b/x", "g/p", "g/d", "g/l", "g/e", "g/m", "g/e/1", "g/e/2", "g/t", "s/gone", "v/g/p"] if not p.startswith(top)]

    def name(self, maker):
        return maker + maker if maker in self.renamed else maker

    def pattern(self):
        text = 'name="p"\n'
        for m in sorted(self.makers):
            text += f"[nodes.{self.name(m)}]\n" + MAKERS[m].replace("MOVED", self.way if m in self.moved else "").replace("TARGET", self.target).replace("SLEEP", "sleep 0.4; " if self.slow else "") + "\n"
        for name, way, f, d in self.readers:
            text += f"[nodes.{name}]\n" + re.sub(r"\bD\b", d, re.sub(r"\bF\b", f, re.sub(r"\bN\b", name, WAYS[way]))) + "\n"
            if way.startswith("each"):
                text += 'produces="out/%s/{in}"\n' % name
            elif way not in VALUE:
                text += f'produces="out/{name}"\n'
        return text

    def place(self, where):
        """Makes the sources what the model says; what is right is left alone."""
        s = where / "s"
        s.mkdir(exist_ok=True)
        (where / "src").mkdir(exist_ok=True)
        want = {s / p: v for p, v in self.tree.items()} | {where / "src" / n: t for n, t in self.src.items()}
        (where / "g/e").mkdir(parents=True, exist_ok=True)  # directories that become empty stay: it never does
        want |= {where / "stop": ""} if self.stop else {}
        if not (where / "k").is_symlink():
            (where / "k").symlink_to(".")
        if not self.stop:
            wipe(where / "stop")
        want |= {where / "in": self.text, where / "stet.toml": self.pattern(), where / "fixed": "fixed\n", where / "g/e/keep": "keep\n"}
        for p in sorted([*s.rglob("*"), *(where / "src").iterdir()], key=lambda p: len(p.parts)):
            inside = not any(a.is_symlink() for a in p.parents)
            if inside and (p.exists() or p.is_symlink()) and p not in want:
                wipe(p)
        for p, v in sorted(want.items(), key=lambda x: len(x[0].parts)):
            if v is None:
                good = p.is_dir() and not p.is_symlink()
            elif isinstance(v, tuple):
                to = os.path.relpath(where / v[1], p.parent)
                good = p.is_symlink() and os.readlink(p) == to
            else:
                good = p.is_file() and not p.is_symlink() and p.read_text() == v
            if good:
                continue
            wipe(p)
            if v is None:
                p.mkdir()
            elif isinstance(v, tuple):
                p.symlink_to(to)
            else:
                p.write_text(v)
        for p in [where / "in", *(where / "src" / n for n in self.src), *(s / p for p, v in self.tree.items() if isinstance(v, str))]:
            mode = 0o755 if str(p.relative_to(where)) in self.run_by else 0o644
            if p.stat().st_mode & 0o777 != mode:
                p.chmod(mode)

    def mine(self):
        """Outputs that nodes of the pattern make, and that are there."""
        out = {"p": "g/p", "d": "g/d/x", "l": "g/l", "m": "g/m", "t": "g/t", "e": "g/e/1"}
        paths = [root / (("v/" if m in self.moved else "") + out[m]) for m in self.makers] + [root / "out" / n for n, w, *_ in self.readers]
        return [p for p in paths if p.is_symlink() or p.is_file()]

    def change(self):
        what = pick(["put", "put", "put", "put", "put", "maker", "maker", "edit", "text", "target", "source", "source", "reader", "move", "rename", "stop", "mode", "touch", "hand", "delete"])
        if what == "put":
            path = pick(["a", "b", "c", "a/x", "b/x", "c/x", "a/x/x"])
            what += f" {path} {self.put(path)} {self.tree.get(path)!r}"
        elif what == "maker":
            m = pick(list(MAKERS))
            self.makers ^= {m}
            what += f" {m} {'comes' if m in self.makers else 'goes'}"
        elif what == "edit":
            files = [p for p, v in self.tree.items() if isinstance(v, str)]
            if files:
                self.tree[pick(files)] = self.text_of()
        elif what == "text":
            self.text = self.text_of()
        elif what == "target":
            self.target = pick(["s/a", "s/b", "s/c", "g/d", "s/a/x"])
            what += " " + self.target
        elif what == "source":
            n = pick("12")
            if n in self.src:
                del self.src[n]
            else:
                self.src[n] = self.text_of()
            what += f" {n} {'comes' if n in self.src else 'goes'}"
        elif what in ("move", "rename"):
            m = pick(["p", "d"] if what == "move" else list(MAKERS))
            changed = self.moved if what == "move" else self.renamed
            changed ^= {m}
            what += " " + m
        elif what == "stop":
            self.stop = not self.stop
            what += f" {self.stop}"
        elif what == "mode":
            p = pick(["in", "src/1", "s/b", "s/b/x", "s/a/x"])
            self.run_by ^= {p}
            what += " " + p
        elif what == "touch":
            for p in [root / "in", *(root / "src").iterdir()]:
                os.utime(p)
        elif what in ("hand", "delete") and self.mine():
            p = pick(self.mine())
            if what == "delete" or p.is_symlink():
                p.unlink()
            else:
                p.write_text(p.read_text() + "by hand\n")
            what += f" {p.relative_to(root)}"
        elif what == "reader":
            i = rnd.randrange(len(self.readers))
            self.readers[i] = (self.readers[i][0], pick(list(WAYS)), pick(FILES), pick(DIRS))
            what += f" {self.readers[i]}"
        self.said.append(what)

    def outputs(self):
        """Of makers: what is there, in the project, and in no fresh one."""
        out = {"p": ["g/p"], "d": ["g/d"], "l": ["g/l"], "m": ["g/m"], "t": ["g/t"], "e": [f"g/e/{n}" for n in "12"]}
        gone = [p for m in MAKERS for p in out[m] if (m not in self.makers or m in self.moved or (m == "e" and p[-1] not in self.src))]
        return gone + [f"v/g/{m}" for m in "pd" if m not in self.makers or m not in self.moved]

    def left(self):
        return [p for p in self.outputs() if (root / p).exists() or (root / p).is_symlink()]


def states(where):
    r = stet(where, "action", "list", "p", "--json")
    v = json.loads(r.stdout) if r.returncode == 0 else {}
    return {a["action"]: a for a in (v.get("actions", v) if isinstance(v, dict) else v)}


def value(where, name, *flags):
    r = stet(where, "get", *flags, f"piece:p/{name}", "--json")
    if r.returncode:
        return ("no value", r.returncode)
    v = json.loads(r.stdout)
    return v.get("value", v) if isinstance(v, dict) else v


def shown(name, now):
    """Does a node stand, with all that belongs to it?"""
    mine = {k: a["state"] for k, a in now.items() if k == name or k.startswith((name + ".", name + "["))}
    return mine and set(mine.values()) == {"stands"} and not any(now[k].get("failed") for k in mine)


def content(where, name, said):
    """What a node has written, beside what it says."""
    p = where / "out" / name
    return p.read_text() if p.is_file() and "files" in (said if isinstance(said, dict) else {}) else None


def outcome(where, name):
    v = value(where, name)
    return v, content(where, name, v)


def agree(names, when, right, failing, now, said):
    for name in names:
        if name not in right or not shown(name, now):
            continue
        got = outcome(root, name)
        if right[name] is None:
            if name in failing:
                return f"{when}: {name} is shown as standing, and fails from scratch: {got}: {said}"
            continue  # it waits there
        if got != right[name]:
            return f"{when}: {name} is shown as standing, and is\n{got}\nnot\n{right[name]}: {said}"
    return None


def killed(p):
    """A run that is killed while a command of `each` is at work."""
    p.slow = True
    p.makers |= {"e"}
    p.src["1"] = p.text_of()
    p.place(root)
    r = subprocess.Popen([STET, "run", "-k"], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.time() + 60
    begun = lambda: any("\nE " not in j.read_text(errors="replace") and len(j.read_text(errors="replace")) for j in (root / ".stet/local/exec").glob("drive.*/journal"))
    while r.poll() is None and not begun() and time.time() < until:
        time.sleep(0.01)
    r.send_signal(signal.SIGKILL)
    r.wait()
    p.slow = pick([True, False])
    p.said.append("kill")
    if rnd.random() < 0.6:
        p.src.pop("1", None)
        p.said.append("source 1 goes")


def ended():
    until = time.time() + 60
    while time.time() < until and any("\nE " not in j.read_text(errors="replace") and j.read_text(errors="replace")
                                      for j in (root / ".stet/local/exec").glob("drive.*/journal")):
        time.sleep(0.05)


def scratch(p):
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    slow, p.slow = p.slow, False
    p.place(fresh)
    p.slow = slow
    stet(fresh, "init")
    r = stet(fresh, "run", "-k")
    if r.returncode == 1:
        stet(fresh, "run", "-k")
    now = states(fresh)
    names = [n for n, *_ in p.readers] + sorted(p.name(m) for m in p.makers)
    failing = {n for n in names if any(a["state"] == "failed" for k, a in now.items() if k == n or k.startswith((n + ".", n + "[")))}
    return {n: outcome(fresh, n) if shown(n, now) else None for n in names}, failing, r


def project():
    p = Project()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    p.place(root)
    stet(root, "init")
    for step in range(6):
        if step:
            for _ in range(pick([1, 1, 2, 3])):
                p.change()
            if rnd.random() < 0.15:
                killed(p)
            p.place(root)
        right, failing, r0 = scratch(p)
        names = [n for n, *_ in p.readers]
        if r0.returncode not in (0, 1):
            return f"from nothing after {p.said}: {r0.stdout}{r0.stderr}", p
        if step:
            wrong = agree(names, f"before a run, after {p.said}", right, failing, states(root), stet(root, "run", "-n").stdout)
            if wrong:
                return wrong, p
        r = stet(root, "run", "-k")
        if r.returncode:  # a command that looks where a later one writes, as links may do unseen, fails and is run again
            r = stet(root, "run", "-k")
        said = r.stdout + r.stderr
        now = states(root)
        left = p.left()
        for text in re.findall(r"it would read (\S+), which", said):
            real = os.path.relpath(os.path.realpath(root / text), os.path.realpath(root))
            if not any(x == y or x.startswith(y + "/") for x in (text, real) for y in left):
                return f"after {p.said}: {text} is no leftover ({left}): {said}", p
        wrong = agree(names, f"after {p.said}", right, failing, now, said)
        if wrong:
            return wrong, p
        for n in names:
            if right[n] is not None and not shown(n, now) and "left behind" not in said:
                return f"after {p.said}: {n} fails, and not from scratch: {said}{ {k: a['state'] for k, a in now.items()} }", p
        if r.returncode == 0 and r0.returncode == 0:
            dry, r = stet(root, "run", "-n"), stet(root, "run", "-k")
            if not r.stdout.startswith("ran 0,") or "0 actions do not stand" not in dry.stdout:
                return f"after {p.said}: {said}again: {r.stdout}{r.stderr}{dry.stdout}{dry.stderr}", p
            n = pick(names)
            if value(root, n, "--fresh") != right[n][0]:
                return f"after {p.said}: get --fresh {n} is {value(root, n, '--fresh')}, not {right[n][0]}", p
        if left and rnd.random() < 0.5:  # without them it is the fresh project
            ended()
            if "left behind" in said or rnd.random() < 0.5:  # the way out that the error names
                r = stet(root, "gc", "--outputs")
                p.said.append(r.stdout)
            else:
                for path in p.left():
                    wipe(root / path)
            p.said.append("leftovers removed")
            r = stet(root, "run", "-k")
            if r.returncode:
                r = stet(root, "run", "-k")
            now = states(root)
            wrong = agree(names, f"after {p.said}", right, failing, now, r.stdout + r.stderr)
            if wrong:
                return wrong, p
            for n in names:
                if right[n] is not None and not shown(n, now):
                    return f"after {p.said}: {n} fails, and not from scratch: {r.stdout}{r.stderr}{ {k: a['state'] for k, a in now.items()} }", p
    ended()
    r = stet(root, "check")
    return (f"check: {r.stdout}{r.stderr}" if r.returncode else None), p


print(f"1..{1 if ONLY else STEPS}")
bad = 0
for i in [int(ONLY)] if ONLY else range(STEPS):
    rnd.seed(f"{SEED}.{i}")
    wrong, p = project()
    print(f"{'not ok' if wrong else 'ok'} {i + 1} - project {SEED}.{i}: {', '.join(w for _, w, *_ in p.readers)}", flush=True)
    if wrong:
        bad += 1
        print("\n".join("# " + line for line in (wrong + "\n" + p.pattern() + "\n" + str(p.tree)).splitlines()[:70]), flush=True)
sys.exit(bad > 0)
