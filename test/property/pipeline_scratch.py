#!/usr/bin/env python3
"""Random pipelines under random changes: after each change the tree is what a build from nothing gives, in a fresh project at
another place that has the sources alone and no earlier results. The oracle is stet itself without a past, so it shares no knowledge of what
changed; what it can't see, a run that is the same both times and wrong, is for pipeline.py, whose model knows the right answer.

Pipelines: plain names of files that a node makes, once made, or never; paths with `..` behind a link; names that begin with a dash; patterns over sources, over outputs of other nodes, of nodes with `each`, of produced directories and of dependency files; chains of
these; scripts and programs of the project that nobody declares, in lists and in shell strings; files that are not there; directories as
inputs and outputs; outputs that are read through a link; values from standard output; `after`; effects; nodes that fail.

Changes: sources edited, removed, added, made executable, turned into directories or links and back; scripts edited; outputs and dependency files edited and deleted by
hand; nodes added, removed, renamed, given other outputs; gc --outputs; a kill in the middle; runs of one node, with other options, and two at
once; a clone at another place with the results.

After each: the outputs are those of the fresh project, content and mode; leftovers aside, nothing else is there; the exit status and what
failed are the same; a second run runs nothing; now and then `stet check` finds nothing, and a clone builds the same.

STET_SEED, STET_STEPS. On a difference the project and the fresh one stay where they are, and the last steps are printed."""
import json, os, pathlib, random, re, shutil, subprocess, sys, time

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
SEED = int(os.environ.get("STET_SEED", "1"))
STEPS = int(os.environ.get("STET_STEPS", 0)) or (3000 if LONG else 15 if SHORT else 60)
random.seed(SEED)
base = pathlib.Path(".").absolute()
root, fresh, bystander = base / "first", base / "fresh", base / "clone"  # of one length: it is in some outputs
pick, chance = random.choice, lambda p: random.random() < p

SCRIPT = {  # each prints what it is given, in its own way; VERSION is what an edit changes
    "cat": 'echo "VERSION $0"; for f in "$@"; do echo "[$f]"; cat "$f"; done\n',
    "count": 'echo "VERSION"; cat "$@" /dev/null | wc -c\n',
}
sources = {}  # path -> ("f", text, executable) | ("l", target)
nodes = {}    # name -> Node
made_once = set()
history = []
touched = set()  # outputs, and produced directories, that were changed by hand and not made again since
produced_dirs = set()  # paths of directories that nodes produce, or of what holds one for each file
read_deps = set()  # dependency files that some pattern matches: these are outputs, the others are nobody's business


class Node:
    def __init__(self, name, kind):
        self.name, self.kind, self.salt, self.number = name, kind, random.randrange(1000), random.randrange(4)
        self.reads, self.out, self.tool, self.extra = [], "", None, {}
        self.extra_word = pick([plain(), plain(), "way/../a.in", "./-d.in"])  # what the words of the command name: an output of another node, or of none any more

    def toml(self):
        k, o = self.kind, self.out
        files = "[" + ", ".join(json.dumps(r) for r in self.reads) + "]"
        text = f"[nodes.{self.name}]\n"
        words = self.tool
        if k == "each":
            text += f"each = {files}\ncommand = {json.dumps(self.shell('{in}'))}\nproduces = {json.dumps(o)}\n"
        elif k == "eachdir":
            text += f"each = {files}\ncommand = {json.dumps(self.dir_shell())}\nproduces = {json.dumps(o)}\n"
        elif k == "dir":
            text += f"files = {files}\ncommand = {json.dumps(self.dir_shell())}\nproduces = {json.dumps(o)}\n"
        elif k == "dep":
            text += (f"files = {files}\ncommand = " + json.dumps(
                f"echo dep {self.salt} > {{out}}; printf '%s:' {{out}} > {o}.d; for f in {{in}}; do cat $f >> {{out}}; "
                f"for h in $(sed -n 's/^use //p' $f); do printf ' inc/%s' $h >> {o}.d; cat inc/$h >> {{out}} 2>/dev/null; done; done; echo >> {o}.d")
                + f"\nproduces = {json.dumps(o)}\ndepfile = {json.dumps(o + '.d')}\n")
        elif k == "value":
            text += f"files = {files}\ncommand = \"cat {{in}} /dev/null | cksum\"\nstdout = \"text\"\n"
        elif k == "list":
            text += f"files = {files}\ncommand = {json.dumps(words)}\nproduces = {json.dumps(o)}\n"
        else:
            text += f"files = {files}\ncommand = {json.dumps(self.shell('{in}'))}\nproduces = {json.dumps(o)}\n"
        for key, value in self.extra.items():
            text += f"{key} = {value}\n"
        return text

    def shell(self, files):
        head = f"echo {self.salt} > {{out}}; "
        if self.extra.get("inputs"):
            head += "echo {v} >> {out}; "
        if self.kind == "weak":
            return head + f"cat {files} /dev/null >> {{out}}; ! grep -q FAIL {{out}}"
        if self.kind == "place":
            return head + f"pwd >> {{out}}; cat {files} /dev/null >> {{out}}"
        tools = [f"sh tools/cat.sh {files} >> {{out}}", f"tools/count.sh {files} >> {{out}}", f"cd tools && . ./common.sh && common >> ../{{out}}",
                 f"[ ! -f tools/extra ] || cat tools/extra >> {{out}}; cat {files} /dev/null >> {{out}}",
                 f"cat < 'tools/with space' >> {{out}}; wc -c {files} /dev/null >> {{out}}", f"X=tools/extra; cat \"$X\" {files} >> {{out}} 2>/dev/null; true",
                 f"cat {files} /dev/null >> {{out}}; cat {self.extra_word} >> {{out}} 2>/dev/null; true"]
        if self.tool is not None and self.tool < len(tools):
            return head + tools[self.tool]
        return head + f"for f in {files}; do echo $f; cat $f; done >> {{out}}"

    def dir_shell(self):
        return f"mkdir -p {{out}}/sub; echo {self.salt} > {{out}}/zero.txt; cat {{in}} /dev/null | while read -r a b; do echo \"$a $b\" > {{out}}/d$a.txt; echo $a > {{out}}/sub/s$a.txt; done"


def write(top, path, what):
    p = top / path
    p.parent.mkdir(parents=True, exist_ok=True)
    if p.is_symlink() or p.is_file():
        p.unlink()
    elif p.is_dir():
        shutil.rmtree(p)
    if what[0] == "l":
        p.symlink_to(what[1])
    else:
        p.write_text(what[1])
        p.chmod(0o755 if what[2] else 0o644)


def toml():
    return 'name = "p"\n[argument]\nyear = 1\n' + "".join(n.toml() for n in nodes.values())


def text():
    return "".join(f"{random.randrange(5)} {pick('abcde')}\n" for _ in range(random.randrange(1, 4))) + pick(["", "", f"use h{random.randrange(4)}\n"])


def source_patterns():
    return pick(["src/*.in", "src/**/*.in", "src/a*.in", f"src/{pick('abcd')}.in", "src/[ab].in", "src/sub/*", "way/../a.in", "-d.in", "-*.in"])


def output_patterns():
    """What may take in outputs, of whomever; a circle is refused, and tried again."""
    return pick(["o1/*.txt", "o1/*", "o2/**/*.txt", "o1/a*.txt", "o[1-3]/*.txt", "o2/*/*.txt", "o3/*.txt", "o3/**", "o1/*.x", "o2/d1", "o3/a.txt", plain(), plain()])


def plain():
    """The name of a file that some node may make, once made, or never."""
    return f"{pick(['o1', 'o1', 'o3'])}/{pick([*'abx', *(f'n{i}' for i in range(4))])}.txt"


def reads(depth):
    refs = [f"${n.name}.out" for n in nodes.values() if n.kind not in ("value", "place", "linked") and n.out]
    out = []
    for _ in range(pick([1, 1, 1, 2])):
        kind = random.random()
        if kind < 0.4:
            out.append(source_patterns())
        elif kind < 0.8:
            out.append(output_patterns())
        elif refs:
            out.append(pick(refs))
        else:
            out.append("src/*.in")
    return out


def new_node():
    name = f"n{random.randrange(12)}"
    if name in nodes:
        return None
    kind = pick(["one", "one", "each", "each", "each", "dir", "eachdir", "dep", "weak", "value", "list", "effect", "place", "linked"])
    n = Node(name, kind)
    n.reads = reads(2) if kind != "linked" else [pick(["cur/*.txt", "cur/*.txt", "cur/a*.txt", "cur/**"])]
    top = "o4" if kind in ("place", "linked") else pick(["o1", "o1", "o2", "o3"])  # what has the path in it is no other node's business
    n.out = {"each": f"{top}/{{in.stem}}{pick(['.txt', '.txt', '-' + name + '.txt', '.x'])}", "eachdir": f"o2/{name}/{{in.stem}}", "dir": f"o2/{name}", "value": ""}.get(
        kind, f"{top}/{name}{pick(['.txt', '.txt', '.x'])}")
    n.tool = random.randrange(9)
    if kind == "list":
        n.tool = pick([["sh", "tools/list.sh", "{out}", "{in}"], ["tools/list.sh", "{out}", "{in}"], ["./tools/list.sh", "{out}", "--conf=tools/extra", "{in}"]])
    if kind == "effect":
        n.extra["kind"] = '"effect"'
    if kind in ("one", "weak", "effect") and chance(0.3):
        values = [m.name for m in nodes.values() if m.kind == "value"]
        if values:
            n.extra["inputs"] = f'{{ v = "${pick(values)}/stdout" }}'
    if chance(0.1) and nodes:
        n.extra["after"] = f'["{pick(list(nodes))}"]'
    return n


def accept(change):
    """Tries a change of the nodes; one that stet refuses (a circle, two that write one file) is taken back."""
    global nodes
    before = dict(nodes)
    change()
    if not nodes:
        nodes = before
        return False
    probe = base / "probe"
    shutil.rmtree(probe, ignore_errors=True)
    probe.mkdir()
    (probe / "stet.toml").write_text(toml())
    converted = subprocess.run([STET, "pattern", "convert", "stet.toml"], cwd=probe, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if converted.returncode != 0 or subprocess.run([STET, "pattern", "check", "stet.toml"], cwd=probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        nodes = before
        return False
    for old in [n.out + ".d" for n in before.values() if n.kind == "dep" and n.out + ".d" not in read_deps]:
        if old not in [n.out + ".d" for n in nodes.values() if n.kind == "dep"] and old not in sources:
            (root / old).unlink(missing_ok=True)  # nobody knows that a command wrote it: it would count as a source
    read_deps.clear()
    read_deps.update(p for n in json.loads(converted.stdout)["nodes"] for p in n["module"].get("produces", {}).values() if p.endswith(".d"))
    produced_dirs.update(n.out.replace("/{in.stem}", "/*") for n in nodes.values() if n.kind in ("dir", "eachdir"))
    (root / "stet.toml").write_text(toml())
    return True


def change_nodes():
    kind = pick(["add", "add", "add", "remove", "rename", "output", "reads", "salt"])

    def change():
        global nodes
        name = pick(list(nodes)) if nodes else None
        if kind == "add" or not name:
            n = new_node()
            if n and len(nodes) < 10:
                nodes[n.name] = n
        elif kind == "remove":
            nodes = {k: v for k, v in nodes.items() if k != name}
        else:
            n = Node(name, nodes[name].kind)
            n.__dict__.update({k: (list(v) if isinstance(v, list) else dict(v) if isinstance(v, dict) else v) for k, v in nodes[name].__dict__.items()})
            if kind == "rename":
                n.name = f"m{random.randrange(12)}"
                if n.name in nodes:
                    return
            elif kind == "output" and n.out and n.kind not in ("dir", "eachdir"):
                n.out = n.out.replace("o1", "oX").replace("o3", "o1").replace("oX", "o3") if chance(0.5) else n.out.replace(".txt", "-v.txt") if "-v" not in n.out else n.out.replace("-v", "")
            elif kind == "reads":
                n.reads = reads(2)
            else:
                n.salt = random.randrange(1000)
            nodes = {(n.name if k == name else k): (n if k == name else v) for k, v in nodes.items()}

    return f"{kind} node" if accept(change) else f"{kind} node, refused"


def change_source():
    if chance(0.05):
        put("cur", ("l", pick(["o1", "o1", "o3", "src", "nowhere"])))
        return "another end of the link cur"
    if chance(0.05):
        put("way", ("l", pick(["w1/in", "w2/in", "w2/in/../in", "nowhere"])))
        return "another end of the link way"
    path = pick([*(s for s in sources if s not in ("cur", "way") and not s.endswith("/keep")), f"src/{pick('abcd')}.in", f"src/sub/{pick('xyz')}.in", f"src/{pick('ab')}.in", f"inc/h{random.randrange(4)}", "tools/extra"])
    there = sources.get(path)
    kind = pick(["edit", "edit", "edit", "remove", "mode", "touch", "link", "swap"])
    if path.startswith("tools/"):
        name = pick([*SCRIPT, "extra", "with space", "common"])
        if name == "extra":
            if "tools/extra" in sources and chance(0.5):
                del sources["tools/extra"]
                (root / "tools/extra").unlink()
                return "remove tools/extra"
            path, what = "tools/extra", ("f", text(), False)
        else:
            path = "tools/with space" if name == "with space" else f"tools/{name}.sh"
            what = ("f", sources[path][1] + f"# {random.randrange(100)}\n" if chance(0.3) else first(name, random.randrange(100)), True)
        put(path, what)
        return f"edit {path}"
    if kind == "remove" and there and len(sources) > 8:
        drop(path)
    elif kind == "mode" and there and there[0] == "f":
        put(path, ("f", there[1], not there[2]))
    elif kind == "touch" and there:
        os.utime(root / path, follow_symlinks=False)
    elif kind == "link" and path.endswith(".in"):
        target = pick(["a.in", "b.in", "nowhere"])
        if (pathlib.Path(path).name != target or "sub" in path) and pathlib.Path(path).name not in ("a.in", "b.in"):
            put(path, ("l", target if "sub" not in path else "../" + target))
    elif kind == "swap" and path.endswith(".in") and "sub" not in path:  # a directory in its place, with a file in it
        drop(path)
        put(path + "/deep.in", ("f", text(), False))
    else:
        put(path, ("f", pick([text(), text(), "FAIL\n"]) if path.startswith("src") else text(), False))
    return f"{kind} {path}"


def drop(path):
    for p in [p for p in sources if p == path or p.startswith(path + "/")]:
        del sources[p]
    p = root / path
    if p.is_symlink() or p.is_file():
        p.unlink()
    elif p.is_dir():
        shutil.rmtree(p)
    if p.parent.suffix == ".in" and p.parent.is_dir() and not any(p.parent.iterdir()):
        p.parent.rmdir()  # the fresh project has files alone, and would not have it


def put(path, what):
    drop(path)
    for up in pathlib.PurePath(path).parents:
        if str(up) in sources:
            drop(str(up))
    write(root, path, what)
    sources[path] = what


def first(name, version):
    if name == "with space":
        return f"spaced {version}\n"
    if name == "common":
        return f'common() {{ echo "common {version}"; cat "$@" /dev/null; }}\n'
    if name == "list":
        return '#!/bin/sh\nout=$1; shift; echo list %s > "$out"; for f in "$@"; do case $f in --conf=*) cat "${f#--conf=}" >> "$out" 2>/dev/null;; *) cat "$f" >> "$out";; esac; done; true\n' % version
    return "#!/bin/sh\n" + SCRIPT[name].replace("VERSION", str(version))


def outputs():
    """Every file of the project that is no source."""
    out = {}
    for p in root.rglob("*"):
        r = str(p.relative_to(root))
        if ".stet" in p.parts or r == "stet.toml" or r in sources:
            continue
        if p.is_symlink() or p.is_file():
            out[r] = p
    return out


def unread(r):
    return r.endswith(".d") and r not in read_deps and any(n.kind == "dep" and n.out + ".d" == r for n in nodes.values())


def whole(r):
    """The produced directory that it is in, or itself: that is what counts as changed."""
    for up in pathlib.PurePath(r).parents:
        if str(up) in produced_dirs or str(up.parent) + "/*" in produced_dirs:
            return str(up)
    return r


def change_outputs():
    there = outputs()
    if not there:
        return "no outputs"
    r = pick(sorted(there))
    kind = pick(["edit", "delete", "mode", "directory"])
    if kind == "directory":
        top = pick(["o1", "o2", "o3"])
        for p in [p for p in sources if p.startswith(top + "/")]:
            del sources[p]
        shutil.rmtree(root / top, ignore_errors=True)
        return f"remove {top}"
    if unread(r):  # what it listed when its command ended counts
        there[r].unlink() if kind == "delete" else there[r].write_text(pick(["", "x: nothing\n", "x: src/a.in\n"]))
        return f"{kind} dependency file {r}"
    if kind == "edit":
        there[r].write_text("by hand\n")
    elif kind == "delete":
        there[r].unlink()
    else:
        there[r].chmod(0o644 if there[r].stat().st_mode & 0o111 else 0o755)
    touched.add(whole(r))
    return f"{kind} output {r}"


def take_over(oracle):
    """What was changed by hand and belongs to no node any more is a source. True: there are new ones."""
    made = tree(fresh)
    more = False
    for t in sorted(touched):
        mine = [r for r in outputs() if r == t or r.startswith(t + "/")]
        if not mine or any((p == t or p.startswith(t + "/")) and p not in sources for p in made):
            touched.discard(t)
        elif oracle.returncode == 0:  # all outputs are there
            for r in mine:
                sources[r] = ("f", (root / r).read_text(), bool((root / r).stat().st_mode & 0o111))
            touched.discard(t)
            more = True
        elif not any(n.out == t for n in nodes.values()):  # of a node that is gone, or of a command that waits? Nobody knows
            for r in mine:
                (root / r).unlink()
            touched.discard(t)
    return more


def give_up():
    """What commands have written over is a source no longer."""
    for r in [r for r in sources if r[:2] in ("o1", "o2", "o3", "o4")]:
        if not (root / r).is_file() or look(root, r) != (sources[r][1].encode(), sources[r][2]):
            del sources[r]


def stet(where, *words):
    return subprocess.run([STET, *words], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)


def look(top, r):
    p = top / r
    if p.is_symlink():
        return "link", os.readlink(p)
    return p.read_bytes().replace(str(top).encode(), b"@ROOT@"), bool(p.stat().st_mode & 0o111)


def tree(top):
    return {str(p.relative_to(top)): look(top, p.relative_to(top)) for p in top.rglob("*")
            if ".stet" not in p.parts and (p.is_symlink() or p.is_file()) and p.name != "stet.toml"}


count, failed, wanted = 0, False, {}


def check(name, good, show=""):
    global count, failed
    count += 1
    if not good and not failed:
        failed = True
        print(f"not ok {count} - {name}")
        print("# seed", SEED, "last steps:", ", ".join(history[-6:]))
        print("\n".join("# " + line for line in str(show).splitlines()[:80]), flush=True)


def failures(out):
    return sorted(set(re.findall(r"^failed (?:before )?(\S+): ", out, re.M)))


def build_fresh():
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for path, what in sources.items():
        write(fresh, path, what)
    (fresh / "stet.toml").write_text(toml())
    stet(fresh, "init")
    return stet(fresh, "run", "-k")


def compare(name, where, result, oracle, strict):
    both = result.stdout + oracle.stdout
    if "is written by" in both:  # of two writers the first wins
        check(f"{name}: status", result.returncode and oracle.returncode, f"{result.stdout}\nfrom nothing: {oracle.stdout}\n{toml()}")
        return
    have = tree(where)
    lines = [f"{p}: {have.get(p)!r}, from nothing {v!r}" for p, v in sorted(wanted.items()) if have.get(p) != v and not unread(p)]
    check(f"{name}: outputs", not lines, "\n".join(lines) + f"\n{result.stdout}\nfrom nothing:\n{oracle.stdout}\n{toml()}")
    more = [p for p in have if p not in wanted and p not in made_once and p[:2] not in ("o1", "o2", "o3", "o4")]  # leftovers of a state in between
    check(f"{name}: nothing else", not more or not strict, more)
    check(f"{name}: status", (result.returncode != 0) == (oracle.returncode != 0), f"{result.returncode} {result.stdout}\nfrom nothing: {oracle.returncode} {oracle.stdout}\n{toml()}")
    if oracle.returncode:
        check(f"{name}: what failed", failures(result.stdout) == failures(oracle.stdout), f"{result.stdout}\nfrom nothing:\n{oracle.stdout}\n{toml()}")


root.mkdir()
stet(root, "init")
for name in SCRIPT:
    put(f"tools/{name}.sh", ("f", first(name, 0), True))
put("tools/list.sh", ("f", first("list", 0), True))
put("tools/common.sh", ("f", first("common", 0), False))
put("cur", ("l", "o1"))  # outputs by another name
put("tools/with space", ("f", first("with space", 0), False))
for i in range(3):
    put(f"inc/h{i}", ("f", f"head {i}\n", False))
for c in "abc":
    put(f"src/{c}.in", ("f", text(), False))
put("src/sub/x.in", ("f", text(), False))
for d in ["w1", "w2"]:  # way/../a.in is in one of them
    put(f"{d}/in/keep", ("f", "", False))
    put(f"{d}/a.in", ("f", text(), False))
put("way", ("l", "w1/in"))
put("-d.in", ("f", text(), False))
while len(nodes) < 4:
    change_nodes()

for step in range(STEPS):
    if step:
        history.append(pick([change_nodes, change_source, change_source, change_source, change_outputs])())
        if chance(0.25):
            history.append(pick([change_nodes, change_source, change_outputs])())
    name = f"step {step} (seed {SEED})"
    if chance(0.06):
        p = subprocess.Popen([STET, "run", "-k"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.15)
        p.kill()
        p.wait()
        history.append("kill")
    if nodes and chance(0.12):  # whatever was run before, and however: what follows is judged
        words = pick([[pick(list(nodes))], ["-k", "-j4"], ["-k", "--no-retry-failed"], ["-j1"], ["-n"]])
        ran = [subprocess.Popen([STET, "run", *words], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(pick([1, 1, 2]))]
        for p in ran:
            check(f"{name}: {' '.join(words)} ends by itself", p.wait() in (0, 1), f"{p.returncode}\n{toml()}")
        history.append(f"{len(ran)} x run {' '.join(words)}")
    oracle = build_fresh()
    if touched and take_over(oracle):
        oracle = build_fresh()
    wanted = {p: v for p, v in tree(fresh).items()}
    result = stet(root, "run", "-k")
    for _ in range(3):  # one removed node's output may hide another's
        if "left behind" in result.stdout:
            history.append("gc of what is left")
            stet(root, "gc", "--outputs")
            result = stet(root, "run", "-k")
    check(f"{name}: gc --outputs removes what is in the way", "left behind" not in result.stdout, result.stdout + toml())
    compare(name, root, result, oracle, True)
    made_once |= {p for p in wanted if p not in sources}
    give_up()
    if failed:
        break
    if result.returncode == 0:
        again = stet(root, "run", "-k")
        check(f"{name}: nothing more to do", again.stdout.startswith("ran 0,"), again.stdout + toml())
    if chance(0.1):
        out = stet(root, "check")
        check(f"{name}: check", out.returncode == 0, out.stdout)
    if chance(0.08):
        history.append("gc")
        out = stet(root, "gc", "--outputs")
        check(f"{name}: gc", out.returncode == 0, out.stdout)
        again = stet(root, "run", "-k")
        check(f"{name}: gc removes nothing that is needed", result.returncode or again.stdout.startswith("ran 0,"), out.stdout + again.stdout + toml())
    if chance(0.08):
        shutil.rmtree(bystander, ignore_errors=True)
        bystander.mkdir(parents=True)
        for path, what in sources.items():
            write(bystander, path, what)
        (bystander / "stet.toml").write_text(toml())
        stet(bystander, "init")
        if (root / ".stet/persist").exists():
            shutil.rmtree(bystander / ".stet/persist", ignore_errors=True)
            shutil.copytree(root / ".stet/persist", bystander / ".stet/persist")
        compare(f"{name}: a clone", bystander, stet(bystander, "run", "-k"), oracle, True)
    if failed:
        break
if not failed:
    print(f"ok {count} - {count} checks over {STEPS} changes (seed {SEED})")
print(f"1..{count}")
sys.exit(1 if failed else 0)
