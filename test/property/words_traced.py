#!/usr/bin/env python3
"""What commands read, as the kernel tells it. Each random command runs under `strace -f` in a copy of the tree. Every file of the project that it
opened, asked for or listed is among what `stet action show` says the node reads: the file, a directory above it, or a pattern that matches
it. What the command wrote itself before does not count, nor do directories that it only went through. words.py compares outputs; this finds
a read that stet misses even if no edit of that round shows it."""
import json, os, pathlib, random, re, shutil, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shell_forms

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
ROUNDS = int(os.environ.get("STET_ROUNDS", 40 if LONG else 1 if SHORT else 2))
NODES = int(os.environ.get("STET_NODES", 30))
SEED = int(os.environ.get("STET_SEED", "1"))
rng = random.Random(SEED)
root = pathlib.Path("p").absolute()
hidden = root.with_name("hidden")
DIRS = ["src", "src/in", "lib", "a b"]
NAMES = ["f.txt", "g.txt", "h.dat", "one", "two words.txt", ".dot"]
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
ENV = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR")}
QUOTED = r'"((?:[^"\\]|\\.)*)"'
bad, traced = [], 0


def make_tree():
    for d in DIRS:
        (root / d).mkdir(parents=True, exist_ok=True)
        for n in NAMES:
            if rng.random() < 0.7:
                (root / d / n).write_text(f"{d} {n} {rng.random()}\n")
    (root / "mods/pkg").mkdir(parents=True)
    (root / "mods/one.py").write_text("print(1)\n")
    (root / "mods/pkg/__init__.py").write_text("print('init')\n")
    (root / "mods/pkg/__main__.py").write_text("print('main')\n")
    (root / "mods/pkg/two.py").write_text("print(2)\n")


def command():
    def one():
        return shell_forms.modules(rng, PYTHON) if rng.random() < 0.1 else shell_forms.forms(rng, rng.choice(DIRS) + "/" + rng.choice(NAMES), PYTHON)
    return "(" + "\n".join(f"( {one()}\n)" for _ in range(rng.randrange(1, 3))) + ") > {out} 2>/dev/null; true"


def unquote(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1").decode("utf-8", "surrogateescape")


def reads_of(trace):
    """Paths below the root that it asked for or listed, before it wrote them: path -> the call."""
    where, found, wrote, pending = {}, {}, set(), {}
    for line in open(trace, encoding="latin-1"):
        m = re.match(r"(\d+) +(.*)", line.rstrip("\n"))
        pid, call = m.group(1), m.group(2)
        if call.endswith("<unfinished ...>"):
            pending[pid] = call[:-len("<unfinished ...>")]
            new = re.match(r"(clone3?|v?fork)\(", call)
            if new:
                where["after " + pid] = where.get(pid)
            continue
        m = re.match(r"<\.\.\. \w+ resumed>(.*)", call)
        if m:
            call = pending.pop(pid, "") + m.group(1)
        m = re.match(r"(\w+)\((.*)\) += (-?\d+|\?)(.*)", call)
        if not m:
            continue
        name, args, result, rest = m.groups()
        if pid not in where:  # a process begins where the one that started it is
            where[pid] = None
        if re.fullmatch(r"clone3?|v?fork", name) and result.isdigit():
            where.setdefault(result, None)
            where[result] = where[result] or where.get(pid)
            continue
        at = re.search(r"AT_FDCWD<([^>]*)>", args)
        if at:
            where[pid] = unquote(at.group(1))
        here = where.get(pid) or str(root)
        paths = [unquote(x) for x in re.findall(QUOTED, args.split("[", 1)[0] if name == "execve" else args)]
        base = re.match(r"(?:AT_FDCWD|\d+)<([^>]*)>", args)
        start = unquote(base.group(1)) if base else here
        if not paths:
            continue
        full = os.path.normpath(os.path.join(start, paths[0]))
        failed = result == "-1"
        if name in ("chdir",) and not failed:
            where[pid] = full
            continue
        inside = full.startswith(str(root) + "/")
        path = full[len(str(root)) + 1:] if inside else None
        if not inside or path.split("/")[0] in (".stet", "out", "-") or path in wrote:
            continue
        if name in ("openat", "open", "creat"):
            if "O_CREAT" in args and "O_TRUNC" in args or name == "creat":
                wrote.add(path)
                continue
            if "O_WRONLY" in args:
                continue
            directory = "O_DIRECTORY" in args
            if (hidden / path).is_dir() and not directory:
                continue
            found.setdefault(path, call)
        elif re.match(r"(new)?(f|l)?stat(at|x|64|fs)?|newfstatat|access|faccessat2?|readlink(at)?|execve|getxattr|lgetxattr", name):
            if not paths[0] or (hidden / path).is_dir():
                continue
            found.setdefault(path, call)
        elif name in ("mkdir", "mkdirat", "symlink", "symlinkat", "mknod", "mknodat"):
            wrote.add(path)
    return found


def pattern(glob):
    """A pattern of stet as a regular expression."""
    parts, out = glob.split("/"), ""
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if part == "**":
            out += r"(?:[^/.][^/]*(?:/[^/.][^/]*)*)?" if last else r"(?:[^/.][^/]*/)*"
            continue
        one, k = "(?!\\.)" if part[0] in "*?[" else "", 0
        while k < len(part):
            c = part[k]
            close = part.find("]", k + 2) if c == "[" else -1
            if c == "\\":
                k += 1
                one += re.escape(part[k])
            elif c == "*":
                one += "[^/]*"
            elif c == "?":
                one += "[^/]"
            elif close > 0:
                one += "[" + part[k + 1:close].replace("!", "^", 1) + "]"
                k = close
            else:
                one += re.escape(c)
            k += 1
        out += one + ("" if last else "/")
    return re.compile(out + r"\Z", re.S)


def known(n):
    r = subprocess.run([STET, "action", "show", "p", f"n{n}", "--json"], cwd=root, capture_output=True, text=True)
    files, patterns, below = set(), [], []
    for cell in (x["cell"] for x in json.loads(r.stdout)["reads"]):
        kind, _, name = cell.partition(":")
        name = name.replace("~1", "/").replace("~0", "~")
        if kind == "file":
            files.add(name)
        elif kind == "glob":
            parts = name.split("/")
            patterns.append(pattern(name))
            below += [pattern("/".join(parts[:k] if parts[k - 1] != "**" else parts[:k] + ["*"])) for k in range(1, len(parts)) if parts[0] != "**"]
    return files, patterns, below


def one_round(number):
    global traced
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    make_tree()
    commands = [command() for _ in range(NODES)]
    lines = ['name = "p"']
    for i, c in enumerate(commands):
        lines += [f"[nodes.n{i}]", f"command = {json.dumps(c)}", f'produces = "out/{i}"']
    (root / "stet.toml").write_text("\n".join(lines) + "\n")
    subprocess.run([STET, "init"], cwd=root, capture_output=True, check=True)
    r = subprocess.run([STET, "run", "-k"], cwd=root, capture_output=True, text=True)
    if r.returncode != 0:
        return [f"seed {SEED}, round {number}: stet run fails\n{r.stdout}{r.stderr}"]
    what = [known(i) for i in range(NODES)]
    wrong = []
    root.rename(hidden)
    for i, c in enumerate(commands):
        shutil.copytree(hidden, root, ignore=lambda d, names: [n for n in names if n in (".stet", "out")])
        (root / "out").mkdir()
        subprocess.run(["strace", "-f", "-y", "-s", "4096", "-e", "trace=file,process,chdir", "-o", str(root.with_name("trace")), "/bin/sh", "-c", c.replace("{out}", f"'out/{i}'")],
                       cwd=root, stdin=subprocess.DEVNULL, capture_output=True, env=ENV)
        shutil.rmtree(root)
        traced += 1
        files, patterns, below = what[i]
        for path, call in reads_of(root.with_name("trace")).items():
            above = {path} | {path[:k] for k, x in enumerate(path) if x == "/"}
            listed = "O_DIRECTORY" in call or "AT_SYMLINK_NOFOLLOW" in call  # in search of what a pattern matches
            if not above & files and not any(p.match(path) for p in patterns + below * listed):
                wrong.append(f"seed {SEED}, round {number}, node {i}: {path!r} is read, and stet does not know\n{c}\n{call[:300]}")
    shutil.rmtree(hidden)
    return wrong


if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
    print("not ok 1 - strace traces a program here\n1..1")
    sys.exit(1)
count = 0
for number in range(ROUNDS):
    wrong = one_round(number)
    bad += wrong
    count += 1
    print(("not ok" if wrong else "ok") + f" {count} - {NODES} commands; {traced} traced so far", flush=True)
    for w in wrong:
        print("# " + w.replace("\n", "\n# "), flush=True)
print(f"1..{count}")
sys.exit(1 if bad else 0)
