#!/usr/bin/env python3
"""Files that commands have not made yet, and who wants them. Some nodes make files: with `each` over sources, over the files of another `each`, over
sources in directories of any depth; and plain nodes, which come and go. One node reads these files, in any of the ways in which a file, a directory or a
pattern can be read, in the same piece or in another one; a last node reads that one, and only the last one is asked for.

Between two asks sources are added, edited and removed (with their outputs, which would be leftovers), patterns of `each` and paths of outputs are
changed, and plain nodes are added and removed. The oracle is a fresh project with the sources alone. Before the ask: what is outdated is not shown as
standing. After it: no failure, the file is that of the fresh project, what was asked for stands, and the same ask again runs nothing.

STET_SEED, STET_STEPS (projects)."""
import json, os, pathlib, random, shutil, subprocess, sys

STET = os.environ["STET"]
SEED = int(os.environ.get("STET_SEED", "1"))
STEPS = int(os.environ.get("STET_STEPS", 0)) or (300 if os.environ.get("STET_TEST_LONG") else 4 if os.environ.get("STET_TEST_SHORT") else 16)
root, fresh = pathlib.Path("q").absolute(), pathlib.Path("f").absolute()
rnd = random.Random(SEED)
pick = rnd.choice
link = lambda id: '{"/"={"link@1"={id=%s}}}' % json.dumps(id)

# What it reads: a command with the directory of the files in place of D. Each is right for any set of files.
WAYS = {
    "pattern": 'command="cat D/*.txt /dev/null > {out}"',
    "pattern-all": 'command="cat D/* /dev/null > {out}"',
    "shell": """command="sh -c 'cat D/*.txt /dev/null' > {out}" """,
    "cd": 'command="cd D && cat *.txt /dev/null > ../out/r"',
    "cwd": 'command="cat *.txt /dev/null > {out}"\ncwd="D"',
    "variable": 'command="F=D; cat $F/*.txt /dev/null > {out}"',
    "names": 'command="cat D/a.txt D/b.txt D/c.txt > {out} 2>/dev/null; true"',
    "loop": 'command="for i in a b c d; do cat D/$i.txt; done > {out} 2>/dev/null; true"',
    "test": 'command="for i in 1; do [ -e D/b.txt ] && echo b; [ -f D/c.txt ] && echo c; done > {out}; true"',
    "list": 'command="ls D > {out}"',
    "find": 'command="find D -type f | sort | xargs cat /dev/null > {out}"',
    "tar": 'command="tar c --sort=name -C D . | tar x -O > {out}"',
    "files": 'command="cat {in} /dev/null > {out}"\nfiles="D/*.txt"',
    "files-dir": 'command="cat {in}/* /dev/null > {out}"\nfiles="D"',
    "link": 'command="cat {in} /dev/null > {out}"\nfiles="L/*.txt"',
    "link-dir": 'command="ls {in}/ > {out}"\nfiles="L"',
    "link-word": 'command="cat L/*.txt /dev/null > {out}"',
    "each": 'command="cat {in} > {out}"\nfiles="$r0.out"',
    "js": 'javascript="({g}) => Object.keys(g ?? {})"\ninputs={g=%s}' % link("glob:D/*.txt"),
    "js-file": 'javascript="({g}) => g ? g.hash : 0"\ninputs={g=%s}' % link("file:D/b.txt"),
    "js-link": 'javascript="({g}) => Object.keys(g ?? {}).length"\ninputs={g=%s}' % link("glob:L/*.txt"),
}
VALUE = ("js", "js-file", "js-link")


class Project:
    def __init__(self):
        self.two, self.way, self.deep = rnd.random() < 0.4, pick(list(WAYS)), rnd.random() < 0.2
        self.dir = pick(["gen", "gen", "gen2"])
        self.sources = {"src/a.in": "a0\n", "deep/x/a.in": "x0\n"}
        self.over, self.extra, self.salt = "src/*.in", [], 0
        self.ask = pick(["run", "run", "node", "demand", "fresh", "pull"])

    def makers(self):
        text = f'[nodes.e]\neach="{self.over}"\ncommand="cat {{in}} > {{out}}; echo {self.salt} >> {{out}}"\nproduces="gen/{{in.stem}}.txt"\n'
        if self.deep:
            text = '[nodes.e]\neach="deep/**/*.in"\ncommand="cat {in} > {out}"\nproduces="gen/{in.stem}.txt"\n'
        text += '[nodes.f]\neach="gen/*.txt"\ncommand="cat {in} > {out}; echo f >> {out}"\nproduces="gen2/{in.name}"\n'
        return text + "".join(f'[nodes.{n}]\ncommand="echo {n} > {{out}}"\nproduces="{self.dir}/{n}.txt"\n' for n in self.extra)

    def reader(self):
        text = ""
        if self.way == "each":
            text += '[nodes.r0]\neach="D/*.txt"\ncommand="cat {in} > {out}"\nproduces="own/{in.name}"\n'
        text += f"[nodes.r]\n{WAYS[self.way]}\n"
        if self.way not in VALUE:
            text += 'produces="out/r"\n[nodes.last]\ncommand="cat {in} > {out}"\nfiles="$r.out"\nproduces="out/last"\n'
        else:
            text += '[nodes.last]\ncommand="echo {v} > {out}"\ninputs={v="$r"}\nproduces="out/last"\n'
        return text.replace("D", self.dir).replace("L/", "link/").replace('"L"', '"link"') + '[result]\nlast="$last"\n'

    def place(self, where):
        for path, text in self.sources.items():
            p = where / path
            p.parent.mkdir(parents=True, exist_ok=True)
            if not p.exists() or p.read_text() != text:
                p.write_text(text)
        if not (where / "link").is_symlink():
            (where / "link").symlink_to(self.dir)
        for name, text in {"a": self.makers(), "b": self.reader()}.items() if self.two else [("p", self.makers() + self.reader())]:
            text = f'name="{name}"\n' + text
            p = where / f"{name}.toml"
            if not p.exists() or p.read_text() != text:
                p.write_text(text)

    def outputs_of(self, source):
        stem = pathlib.PurePath(source).stem
        return [f"gen/{stem}.txt", f"gen2/{stem}.txt", f"own/{stem}.txt"]

    def change(self):
        kind = pick(["add", "add", "add", "edit", "remove", "over", "salt", "plain", "plain-gone"])
        top = "deep/y" if self.deep else "src"
        there = [s for s in self.sources if s.startswith("deep" if self.deep else "src")]
        gone = []
        if kind == "remove" and len(there) > 1:
            s = pick(there)
            del self.sources[s]
            (root / s).unlink(missing_ok=True)  # it may have come in the same step
            gone = self.outputs_of(s)
        elif kind == "edit":
            self.sources[pick(there)] = f"edit {rnd.randrange(1000)}\n"
        elif kind == "over" and not self.deep:
            self.over = pick(["src/*.in", "src/*", "src/?.in"])
            self.sources["src/d.x"] = "d\n"
            gone = self.outputs_of("src/d.x")
        elif kind == "salt":
            self.salt += 1
        elif kind == "plain" and len(self.extra) < 2:
            self.extra = sorted({*self.extra, pick(["m", "n"])})
        elif kind == "plain-gone" and self.extra:
            gone = self.outputs_of(self.extra.pop())
        else:
            names = [n for n in "abc" if f"{top}/{n}.in" not in self.sources and not any(s.endswith(f"/{n}.in") for s in there)]
            if names:
                self.sources[f"{top}/{pick(names)}.in"] = f"new {rnd.randrange(1000)}\n"
        for path in gone:
            (root / path).unlink(missing_ok=True)
        return kind


def stet(where, *words):
    return subprocess.run([STET, *words], cwd=where, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def build(p, where):
    where.mkdir(parents=True, exist_ok=True)
    p.place(where)
    if not (where / ".stet").exists():
        stet(where, "init")


def ask(p, again=False):
    piece = "b" if p.two else "p"
    words = {"run": ["run", f"{piece}.toml"], "node": ["run", f"{piece}.toml", "last"], "demand": ["run", f"{piece}.toml", "--demand", "last"],
             "fresh": ["get", "--fresh", f"piece:{piece}/last/files/out/hash"], "pull": ["piece", "pull", piece]}
    return stet(root, *words["run" if not (root / "out/last").exists() else p.ask])


def made(where):
    p = where / "out/last"
    return p.read_text() if p.exists() else None


def states(p):
    r = stet(root, "action", "list", "b" if p.two else "p", "--json")
    v = json.loads(r.stdout) if r.returncode == 0 else {}
    rows = v.get("actions", v) if isinstance(v, dict) else v
    return {a["action"]: a["state"] for a in rows if a["action"] in ("r", "last")}


def project():
    p, said = Project(), []
    shutil.rmtree(root, ignore_errors=True)
    build(p, root)
    for step in range(5):
        if step:
            for _ in range(pick([1, 1, 2])):
                said.append(p.change())
            p.place(root)
        shutil.rmtree(fresh, ignore_errors=True)
        build(p, fresh)
        right = [stet(fresh, "run", f) for f in (["a.toml", "b.toml"] if p.two else ["p.toml"])]
        if any(r.returncode for r in right):
            return f"from nothing, after {said}: {right[-1].stdout}{right[-1].stderr}", p
        if step == 0 and p.two:  # the other piece is known from here on
            r = stet(root, "run", "a.toml")
        before = states(p) if step else {}
        if step and made(root) != made(fresh) and before.get("last") == "stands":
            return f"after {said}: last is shown as standing, and is {made(root)!r}, not {made(fresh)!r}", p
        r = ask(p)
        if r.returncode:
            return f"after {said}: {p.ask} ends with {r.returncode}: {r.stdout}{r.stderr}", p
        if made(root) != made(fresh):
            return f"after {said}: {p.ask} makes {made(root)!r}, not {made(fresh)!r}: {r.stdout}{r.stderr}{before}", p
        now = states(p)
        if set(now.values()) != {"stands"}:
            return f"after {said}: {p.ask} leaves {now}: {r.stdout}{r.stderr}", p
        r = stet(root, "run", "b.toml" if p.two else "p.toml")
        if not r.stdout.startswith("ran 0,"):
            return f"after {said}: again: {r.stdout}{r.stderr}", p
    r = stet(root, "check")
    return (f"check: {r.stdout}{r.stderr}" if r.returncode else None), p


print(f"1..{STEPS}")
bad = 0
for i in range(STEPS):
    rnd.seed(f"{SEED}.{i}")
    wrong, p = project()
    print(f"{'not ok' if wrong else 'ok'} {i + 1} - project {SEED}.{i}: {p.way} of {p.dir}, {p.ask}{', two pieces' if p.two else ''}{', deep' if p.deep else ''}", flush=True)
    if wrong:
        bad += 1
        print("\n".join("# " + line for line in (wrong + "\n" + p.makers() + p.reader()).splitlines()[:60]), flush=True)
sys.exit(bad > 0)
