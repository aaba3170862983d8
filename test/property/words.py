#!/usr/bin/env python3
"""Files that commands name by their words alone. Random commands, as shell strings and as lists, over a random little tree, none of whose
inputs is declared; random edits of the tree: content, times, modes, files that come and go, links, directories in place of files. Links that lead nowhere count as not there, and patterns of a shell match files alone (docs/pipelines.md): no command here
looks at either. After each
edit and a run, the output of every command equals what the same command writes in a copy of the tree, and a second run runs nothing. In
every third round a watch follows the files."""
import json, os, pathlib, random, shlex, shutil, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shell_forms

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
ROUNDS = int(os.environ.get("STET_ROUNDS", 40 if LONG else 1 if SHORT else 3))
EDITS = int(os.environ.get("STET_STEPS", 30 if LONG else 6 if SHORT else 12))
NODES = int(os.environ.get("STET_NODES", 30))
SEED = int(os.environ.get("STET_SEED", "1"))
rng = random.Random(SEED)
root, copy = pathlib.Path("p").absolute(), pathlib.Path("copy").absolute()
DIRS = ["src", "src/in", "lib", "a b"]
NAMES = ["f.txt", "g.txt", "h.dat", "one", "two words.txt", "ü.txt", "-dash.txt", "it's", "x=1", "q\"q", "new\nline"]
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
programs, watch = 0, None


def remove(path):
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def files():
    return [os.path.join(d, n) for d in DIRS for n in NAMES]


def quote(text):
    """One of the ways to write a word for a shell."""
    plain = not any(c in text for c in " '\"\n=-ü")
    ways = ["'" + text.replace("'", "'\\''") + "'", '"' + text.replace('"', '\\"') + '"'] + [text] * 3 * plain
    if "\n" not in text:
        ways.append("".join("\\" + c if c in " '\"" else c for c in text))
    return rng.choice(ways)


def name(path):
    """Another way to name the same file."""
    return rng.choice([path] * 6 + ["./" + path, "src/../" + path, "lib/../" + path if watch else str(root / path)] if not path.startswith("src/..") else [path])


class Writer:
    """A command that reads what its words name, and nothing else."""

    def __init__(self, n):
        self.n, self.tmp = n, f"tmp/{n}"

    def file(self):
        return rng.choice(files() if rng.random() < 0.3 else [f for f in files() if (root / f).is_file()] or files())

    def word(self):
        return quote(name(self.file()))

    def read(self):
        d, f = rng.choice(DIRS), self.file()
        w, v, q, dq = self.word(), self.word(), quote(f), quote(d)
        base, up = quote("./" + os.path.basename(f)), quote(os.path.dirname(f))
        t = self.tmp
        if rng.random() < 0.4 and not any(c in f for c in "'\"\n=ü") and "/-" not in f:
            return f"( {shell_forms.forms(rng, f, PYTHON)}\n)"
        return rng.choice([
            f"cat {w}", f"cat < {w}", f"cat <{w}", f"cat {w} {v}", f"cat 0<{w}", f"sort {w}", f"wc -c < {w}", f"sed -n p -- {w}", f"head -n 3 {w}",
            f"awk '{{print}}' {quote('./' + f)}", f"grep -h . {w} {v} 2>/dev/null", f"dd if={quote(f)} status=none", f"env cat {w}", f"exec 3< {q}; cat <&3",
            f"tee {t}.tee < {w} > /dev/null; cat {t}.tee", f"cat {w} | tee {t}.tee", f"cp {w} {t}.cp && cat {t}.cp", f"cp -t tmp/d{self.n} {quote('./' + f)}",
            f"mkdir -p {t}.m; cp -- {w} {t}.m/x; cat {t}.m/x", f"cat {w} >{t}.o 2>{t}.e; cat {t}.o", f"cat {w} 2>&1 | wc -c",
            f"(cd {up} && cat {base})", f"(cd -- {up}; cat {base})", f"(cd -P {up} && cat {base})", f"(cd {up} && cat < {base}); cat {v}",
            f"X={q}; cat \"$X\"", f"X={q} sh -c 'cat \"$X\"'", f"X=1 cat {w}", f"export X={q}; cat \"${{X}}\"", f"echo \"$(cat {w})\"", f"echo `cat {quote(f).replace(chr(96), '')}`" if "'" not in f and '"' not in f else f"cat {q}",
            f"if [ -f {w} ]; then cat {v}; fi", f"test -e {w} && echo yes", f"[ -x {w} ] || echo no", f"for f in {q} {v}; do cat \"$f\"; done", f"while read -r l; do echo \"$l\"; done < {w}",
            f"{{ cat {w}; }}", f"f() {{ cat {w}; }}; f", f"case x in x) cat {w};; esac", f"cat <<E\n$(cat {q})\nE", f"sh -c {shlex.quote('cat ' + q)}", f"bash -c {shlex.quote('cat < ' + q)}",
            f"cmp {w} {v}", f"[ {w} -ef {v} ] && echo same", f"[ -e {q} ] && readlink {q}", f"stat -c %F {w}", f"touch -r {w} {t}.r; cat {v}", f"false || cat {w}", f"true && cat {w}; cat {v}",
            f"[ -e {t}.none ] && cp {w} {t}.q; cat {w}", f"xargs cat < {t}.list 2>/dev/null; cat {w}", f"printf '%s' {w} | wc -c; cat {v}", f"cat {w} # {v}",
            f"touch {t}.t; cat {t}.t {w}", f"cp -n {t}.none {t}.n; cat {t}.n {w}", f"cp {w} {t}.p; cat {t}.p", f"cp {t}.none {w} || cat {w}",
            f"mkdir -p {t}.k; ls {t}.k {dq}", f"mkdir -p {dq}; ls {dq}", f"for i in f g; do cat {dq}/$i.txt; done", f"F=f.dat; cat {dq}/${{F%.dat}}.txt", f"for d in {dq}; do (cd \"$d\" && cat f.txt); done",
            f"(cd {dq} && ls)", f"cat {dq}/$(echo f).txt", f"eval {shlex.quote('cat ' + q)}", f"case {dq} in a*) cat {w};; *) cat {v};; esac", f"bash -c {shlex.quote(f'cat {dq}/*.{{txt,dat}}')}",
            f"cat \"$PWD\"/{q}",
            f"cat {dq}/*", f"cat {dq}/*.txt", f"cat {dq}/?.txt", f"cat {dq}/[fg]*", f"for f in {dq}/*.txt; do cat \"$f\"; done", f"(cd {dq} && cat *.txt)", f"cat {dq}/*/*.txt",
            f"ls {dq}", f"ls -R {dq}", f"find {dq} | sort", f"grep -r . {dq} | sort", f"tar cf - {dq} | tar tf - | sort", f"cp -r {dq} {t}.c && ls -R {t}.c; rm -rf {t}.c", f"cat {dq}/f.txt {dq}/g.txt", f"du -a --apparent-size {dq} | wc -l", f"[ -d {w} ] && echo directory"])

    def command(self):
        f, g = name(self.file()), name(self.file())
        if rng.random() < 0.25:
            return rng.choice([["cp", f, "{out}"], ["sort", "-o", "{out}", f], ["dd", f"if={f}", "of={out}", "status=none"], ["sh", "-c", "cat \"$1\" \"$2\" > \"$0\"", "{out}", f, g],
                               ["sh", "tools/cat.sh", "{out}", f, g], ["./tools/cat.sh", "{out}", f], ["./tools/py.sh", "{out}", f], ["cp", "--", f, "{out}"], ["cp", "-r", rng.choice(DIRS), "{out}"], ["cp", "-L", f, "{out}"],
                               ["cp", "-P", f, "{out}"], ["tar", "cf", "{out}", "--mtime=@0", "--sort=name", "--owner=0", "--group=0", "--mode=0", "--", f], ["install", "-m", "644", f, "{out}"]])
        parts = [f"{{ {self.read()}\n}}" for _ in range(rng.randrange(1, 4))]
        return "(" + rng.choice(["\n", "; "]).join(parts) + ") > {out} 2>/dev/null; true"


def make_tree():
    for d in DIRS:
        (root / d).mkdir(parents=True, exist_ok=True)
    for f in files():
        if rng.random() < 0.4:
            (root / f).write_text(f"{f} {rng.random()}\n")
    (root / "tools").mkdir(exist_ok=True)
    (root / "tools/cat.sh").write_text('#!/bin/sh\nout=$1; shift; cat "$@" > "$out"\n')
    (root / "tools/py.sh").write_text('#!/usr/bin/env sh\ncat "$2" > "$1"\n')
    for s in ("cat.sh", "py.sh"):
        (root / "tools" / s).chmod(0o755)


def edit():
    f = rng.choice(files())
    path = root / f
    kind = rng.choice(["write", "write", "write", "new", "new", "remove", "touch", "mode", "link", "dangling", "dir", "empty", "rename", "script", "same", "deep"])
    os.makedirs(path.parent, exist_ok=True)
    if kind == "write":
        there = [x for x in files() if (root / x).is_file()]
        path = root / rng.choice(there or [f])
        path.write_text(f"{f} {rng.random()}\n")
    elif kind == "new":
        remove(path)
        path.write_text(f"new {rng.random()}\n")
    elif kind == "same" and path.is_file() and not path.is_symlink():
        text = path.read_text()
        path.unlink()
        path.write_text(text)
    elif kind == "remove":
        remove(path)
    elif kind == "touch" and path.is_file():
        os.utime(path)
    elif kind == "mode" and path.is_file():
        path.chmod(path.stat().st_mode ^ 0o111)
    elif kind == "link":
        remove(path)
        path.symlink_to(os.path.relpath(root / rng.choice(files()), path.parent))
    elif kind == "dangling":
        remove(path)
        path.symlink_to("nowhere")
    elif kind == "dir":
        remove(path)
        path.mkdir()
        (path / "inner.txt").write_text(f"{rng.random()}\n")
    elif kind == "empty":
        (root / rng.choice(DIRS) / f"empty{rng.randrange(3)}").mkdir(exist_ok=True)
    elif kind == "deep":
        deep = root / rng.choice(DIRS) / "deep"
        if deep.is_dir():
            remove(deep)
        else:
            deep.mkdir()
            (deep / "z.txt").write_text(f"{rng.random()}\n")
    elif kind == "rename":
        other = root / rng.choice(files())
        if path.is_file() and not other.is_dir() and other.parent.is_dir():
            os.replace(path, other)
    elif kind == "script":
        s = root / "tools" / rng.choice(["cat.sh", "py.sh"])
        s.write_text(s.read_text() + f"echo {rng.random()} >> \"$out$1\"\n" if rng.random() < 0.3 else s.read_text().split("\necho")[0].rstrip() + "\n")
    return f"{kind} {f!r}"


def content(path):
    if path.is_symlink():
        return "link", os.readlink(path)
    if path.is_dir():
        return {n: content(path / n) for n in sorted(os.listdir(path))}
    return (path.read_bytes(), bool(path.stat().st_mode & 0o111)) if path.exists() else None


def expected(commands):
    """What each command writes in a copy of the tree, at the same place."""
    global programs
    results = []
    source, place = (root, copy) if watch else (root.with_name("hidden"), root)
    if not watch:
        root.rename(source)
    for i, c in enumerate(commands):
        shutil.copytree(source, place, symlinks=True, ignore=lambda d, names: [n for n in names if n in (".stet", "out")])
        (place / "out").mkdir()
        words = ["/bin/sh", "-c", c.replace("{out}", f"'out/{i}'")] if isinstance(c, str) else [w.replace("{out}", f"out/{i}") for w in c]
        r = subprocess.run(words, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, env={k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR")})
        programs += 1
        results.append(content(place / f"out/{i}") if r.returncode == 0 else None)
        shutil.rmtree(place)
    if not watch:
        source.rename(root)
    return results


def stet(*args):
    r = subprocess.run([STET, *args], cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
    if r.returncode not in (0, 1):
        raise SystemExit(f"Bail out! {args}: status {r.returncode}\n{r.stdout}{r.stderr}")
    return r


def one_round(number):
    global watch
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    stet("init")
    if number % 3 == 1:  # a watch tells runs what has changed
        watch = subprocess.Popen([STET, "file", "watch"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return steps(number)
    finally:
        if watch:
            watch.terminate()
            watch.wait()
        watch = None


def steps(number):
    make_tree()
    for i in range(NODES):
        (root / f"tmp/d{i}").mkdir(parents=True, exist_ok=True)
    commands = [Writer(i).command() for i in range(NODES)]
    lines = ["name = \"p\""]
    for i, c in enumerate(commands):
        lines += [f"[nodes.n{i}]", f"command = {json.dumps(c)}", f"produces = \"out/{i}\""]
    (root / "stet.toml").write_text("\n".join(lines) + "\n")
    trace = []
    for step in range(EDITS):
        if step:
            for _ in range(rng.choice([1, 1, 1, 2, 4])):
                trace.append(edit())
        said = stet("run", "-k")
        got = [content(root / f"out/{i}") for i in range(NODES)]
        again = json.loads(stet("run", "-k", "--no-retry-failed", "--json").stdout or "{}")
        want = expected(commands)
        for i in range(NODES):
            dangling = isinstance(want[i], tuple) and want[i][0] == "link" and got[i] is None  # no output: a failure
            if got[i] != want[i] and not dangling:
                why = stet("why", "p", f"n{i}")
                return f"seed {SEED}, round {number}, step {step}\ncommand {commands[i]!r}\nlast edits {trace[-5:]}\ngot  {got[i]!r}\nwant {want[i]!r}\n{why.stdout[-600:]}"
        if again.get("ran"):
            return f"seed {SEED}, round {number}, step {step}: a second run ran {again['ran']}\nlast edits {trace[-5:]}\n" + stet("run", "-k", "--explain").stdout[-800:] + said.stdout[-300:]
    check = stet("check")
    return "" if check.returncode == 0 else check.stdout


for number in range(ROUNDS):
    bad = one_round(number)
    if bad:
        print(f"not ok {number + 1} - round {number}\n# " + bad.replace("\n", "\n# "))
        print(f"1..{number + 1}")
        sys.exit(1)
    print(f"ok {number + 1} - {NODES} commands, {EDITS} states; {programs} programs so far", flush=True)
print(f"1..{ROUNDS}")
