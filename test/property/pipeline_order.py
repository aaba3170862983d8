#!/usr/bin/env python3
"""Random pipelines in which each edge is declared in another way, or not at all: a reference, a path, a pattern, a word of a list or of a shell string,
behind `cd`, a directory around the file or the file in a produced directory, the files of a node with `each`, a dependency file with `after`, and a link
to the file, or to a directory around it, in a directory or among the matches of a pattern. Names and places of nodes say nothing about their order.

The oracle is a model: what a node writes is its name, its salt and what it reads, one after the other, so what a build in the right order gives
is computed here, without stet. After a first run in a fresh project, and after each of some changes (sources, salts, edges, outputs that
are removed), with any number of jobs: nothing failed, every file is what the model says, the first run ran each command once (with links inside
directories once or more), and a second run runs nothing.

STET_SEED, STET_STEPS (projects)."""
import json, os, pathlib, random, shutil, subprocess, sys

STET = os.environ["STET"]
SEED = int(os.environ.get("STET_SEED", "1"))
STEPS = int(os.environ.get("STET_STEPS", 0)) or (400 if os.environ.get("STET_TEST_LONG") else 4 if os.environ.get("STET_TEST_SHORT") else 20)
root = pathlib.Path("q").absolute()
rnd = random.Random(SEED)
pick = rnd.choice


class Node:
    def __init__(self, name):
        self.name, self.salt = name, rnd.randrange(1000)
        self.kind = pick(["file", "file", "file", "dir", "each", "dep"])
        self.reads = {}  # writer -> way
        self.list = rnd.random() < 0.3

    def out(self):  # what one file of it is called
        return {"file": f"o/{self.name}/x.txt", "dep": f"o/{self.name}/x.txt", "dir": f"o/{self.name}/d/f.txt", "each": f"o/{self.name}/a.txt"}[self.kind]

    def ways(self):
        more = {"file": ["ref", "path", "glob", "around"], "dep": ["ref", "path", "glob", "around"], "dir": ["ref", "path", "globdir", "inside"], "each": ["glob", "each-path"]}[self.kind]
        return more + ["word", "word", "cd", "redirect", "variable", "shellglob", "string", "option"] + LINKED


LINKED = ["link-declared", "link-around", "link-word", "link-glob", "link-shellglob"]  # links that no path names


def content(nodes, sources, n, made):
    text = f"{n.name} {n.salt}\n" + sources[n.name]
    for w in sorted(n.reads):
        text += made[w]
    return text


def model(nodes, sources):
    made = {}
    for name in order(nodes):
        made[name] = content(nodes, sources, nodes[name], made)
    return made


def order(nodes):
    done, out = set(), []

    def go(n):
        if n in done: return
        done.add(n)
        for w in nodes[n].reads: go(w)
        out.append(n)
    for n in nodes: go(n)
    return out


def toml(nodes):
    text, names = "name = 'p'\n", list(nodes)
    rnd.shuffle(names)
    for name in names:
        n = nodes[name]
        files, parts, after = {"src": f"src/{name}"}, [], []
        if n.kind == "each":
            files = {}
        for i, w in enumerate(sorted(n.reads)):
            way, o = n.reads[w], nodes[w].out()
            d, base = os.path.dirname(o), os.path.basename(o)
            made = {"ref": f"${w}.out", "path": o if nodes[w].kind != "dir" else d, "glob": o[:-3] + "t*", "each-path": o, "inside": o, "globdir": d + "/*"}.get(way)
            if made and way in ("ref", "path") and nodes[w].kind == "dir":
                files[f"f{i}"] = made
                parts.append(f"cat {{f{i}}}/f.txt")
            elif made:
                files[f"f{i}"] = made
                parts.append(f"cat {{f{i}}}")
            elif way in ("link-declared", "link-around"):
                files[f"f{i}"] = f"l/{w}/file" if way == "link-declared" else f"l/{w}/around"
                parts.append(f"find -L {{f{i}}}/ -type f -exec cat '{{}}' ';'")
            elif way == "link-word":
                parts.append(f"find -L l/{w}/around -type f -exec cat '{{}}' ';'")
            elif way == "link-glob":
                files[f"f{i}"] = f"l/{w}/file/*"
                parts.append(f"cat /dev/null {{f{i}}}")
            elif way == "link-shellglob":
                parts.append(f"for f in l/{w}/file/*; do test ! -f $f || cat $f; done")
            elif way == "around":
                parts.append(f"find {d} -type f -exec cat '{{}}' ';'")
            elif way == "cd":
                parts.append(f"(cd {d} && cat {base})")
            elif way == "redirect":
                parts.append(f"cat <{o}")
            elif way == "variable":
                parts.append(f"F={o}; cat $F")
            elif way == "shellglob":
                parts.append(f"cat {d}/*.txt")
            elif way == "string":
                parts.append(f"python3 -c \"print(open('{o}').read(), end='')\"")
            elif way == "option":
                parts.append(f"sed --file=/dev/null --expression= {o}")
            elif way == "script":
                parts.append(f"sh src/read-{w}.sh")
                after.append(w)
            else:
                parts.append(f"cat {o}")
        source = "{in}" if n.kind == "each" else "{src}"
        body = f"echo {name} {n.salt}; cat {source}; " + "; ".join(parts or [":"])
        body = f"set -e; {{ {body}; }} > " + ("{out}/f.txt" if n.kind == "dir" else "{out}")
        if n.kind == "dir":
            body = "mkdir {out}; " + body
        if n.kind == "dep":
            body += f"; echo '{{out}}: {{src}} " + " ".join(nodes[w].out() for w in n.reads if n.reads[w] == "script") + f"' > dep/{name}.d"
        text += f"[nodes.{name}]\n"
        text += "command = " + json.dumps(["sh", "-c", body] if n.list else body) + "\n"
        text += "produces = " + json.dumps({"file": n.out(), "dep": n.out(), "dir": f"o/{name}/d", "each": f"o/{name}/{{in.stem}}.txt"}[n.kind]) + "\n"
        if n.kind == "each":
            text += f"each = 'src/{name}/*'\n"
        if n.kind == "dep":
            text += f"depfile = 'dep/{name}.d'\n"
        if files:
            text += "files = { " + ", ".join(f"{k} = {json.dumps(v)}" for k, v in files.items()) + " }\n"
        if after:
            text += f"after = {json.dumps(after)}\n"
    return text


def place(nodes, sources):
    for name, text in sources.items():
        path = root / "src" / name
        if nodes[name].kind == "each":
            path = path / "a.in"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        for kind, target in {"file": nodes[name].out(), "around": f"o/{name}"}.items():
            link = root / "l" / name / kind / "x"
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.is_symlink():
                link.symlink_to("../../../" + target)
        script = root / f"src/read-{name}.sh"
        script.write_text(f"cat {nodes[name].out()}\n")
    (root / "stet.toml").write_text(toml(nodes))


def run(*words):
    r = subprocess.run([STET, "run", "--json", *words], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    try:
        return json.loads(r.stdout)
    except ValueError:
        return {"said": r.stdout + r.stderr}


def choose_way(nodes, n, w):
    return "script" if n.kind == "dep" and rnd.random() < 0.5 else pick(nodes[w].ways())


def compare(what, nodes, sources, r, count=None):
    said = {k: r.get(k) for k in ("ran", "failed", "left", "aside", "problems", "said") if r.get(k)}
    if r.get("failed") != 0 or r.get("aside") or r.get("left"):
        return f"{what}: {said}"
    if count is not None and r.get("ran") != count:
        return f"{what}: ran {r.get('ran')}, not {count}"
    for name, text in model(nodes, sources).items():
        path = root / nodes[name].out()
        if not path.exists() or path.read_text() != text:
            return f"{what}: {path} is {path.read_text() if path.exists() else None!r}, not {text!r}"
    return None


def project():
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    subprocess.run([STET, "init"], cwd=root, stdout=subprocess.DEVNULL, check=True)
    names = [f"{pick('abcdxyz')}{i}" for i in range(rnd.randrange(2, 9))]
    nodes = {n: Node(n) for n in names}
    for i, n in enumerate(names):
        for w in names[:i]:
            if rnd.random() < 0.4:
                nodes[n].reads[w] = choose_way(nodes, nodes[n], w)
    sources = {n: f"source {rnd.randrange(100)}\n" for n in names}
    place(nodes, sources)
    jobs = lambda: f"-j{pick([1, 2, 4, 8])}"
    actions = sum(3 if n.kind == "each" else 1 for n in nodes.values())
    linked = any(way in LINKED for n in nodes.values() for way in n.reads.values())
    wrong = compare("the first run", nodes, sources, run(jobs()), None if linked else actions) or compare("the second run", nodes, sources, run(), 0)
    for step in range(4):
        if wrong:
            break
        what = []
        for _ in range(rnd.randrange(1, 4)):
            n = pick(names)
            change = pick(["source", "salt", "way", "remove", "edge", "touch"])
            what.append(f"{change} {n}")
            if change == "source":
                sources[n] = f"source {rnd.randrange(100)}\n"
            elif change == "salt":
                nodes[n].salt = rnd.randrange(1000)
            elif change == "way" and nodes[n].reads:
                w = pick(sorted(nodes[n].reads))
                nodes[n].reads[w] = choose_way(nodes, nodes[n], w)
            elif change == "remove":
                path = root / nodes[n].out()
                path.unlink(missing_ok=True)
            elif change == "touch":
                (root / nodes[n].out()).touch()
            elif change == "edge" and names.index(n) > 0:
                w = names[rnd.randrange(names.index(n))]
                if w in nodes[n].reads:
                    del nodes[n].reads[w]
                else:
                    nodes[n].reads[w] = choose_way(nodes, nodes[n], w)
        place(nodes, sources)
        wrong = compare(f"after {what}", nodes, sources, run(jobs())) or compare(f"after {what}, again", nodes, sources, run(), 0)
    if not wrong:
        r = subprocess.run([STET, "check"], cwd=root, capture_output=True, text=True)
        wrong = f"check: {r.stdout}{r.stderr}" if r.returncode else None
    return wrong


print(f"1..{STEPS}")
bad = 0
for i in range(STEPS):
    rnd.seed(f"{SEED}.{i}")
    wrong = project()
    print(f"{'not ok' if wrong else 'ok'} {i + 1} - project {SEED}.{i}", flush=True)
    if wrong:
        bad += 1
        keep = root.parent / f"kept-{i}"
        shutil.rmtree(keep, ignore_errors=True)
        root.rename(keep)
        print("\n".join("# " + line for line in (wrong + "\n" + (keep / "stet.toml").read_text()).splitlines()[:60]), flush=True)
sys.exit(bad > 0)
