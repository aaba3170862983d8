#!/usr/bin/env python3
"""A name that stet prints is a name that stet takes. Random graphs with `each`, children of `map`, scopes and branches: every name that status, why,
action list, run and piece graph print is given back to run, why, status and action show, alone and with its piece, and each of them says the same of it."""
import json, os, pathlib, random, re, tempfile
from tap import LONG, SHORT, answer, finish, stet, t

SEED = int(os.environ.get("STET_SEED", "1"))
rand = random.Random(SEED)
TOP = pathlib.Path(tempfile.mkdtemp()).resolve()
os.environ["STET_HOME"] = str(TOP / "home")
FILES = ["a.c", "b c.c", "ü.c", "x[1].c", "50%.c", "-dash.c", "d.e.f.c"]


def toml():
    text = 'name = "pipe.line"\n'
    names = []
    for i in range(rand.randint(1, 3)):
        files = rand.choice(['"src/*.c"', '["src/a.c"]'] + [f'"${n}.out"' for n in names])
        text += f'[nodes.n{i}]\neach = {files}\ncommand = "cat {{in}} > {{out}}"\nproduces = "out{i}/{{in.name}}"\n'
        names.append(f"n{i}")
    text += f'[nodes."end-1"]\ncommand = "cat {{in}} /dev/null > {{out}}"\nfiles = "${rand.choice(names)}.out"\nproduces = "result.json"\n'
    if rand.random() < 0.5:
        text += '[nodes.fails]\ncommand = "cat {in}; exit 3"\nfiles = "src/a.c"\nproduces = "never"\n'
    return text


def json_pattern():
    child = {"pattern": 1, "name": "one", "nodes": [{"id": "plus", "module": {"type": "ref", "ref": "add"}, "inputs": {"values": [{"$": "argument/element"}, 1]}}],
             "result": {"$": "plus"}}
    return {"pattern": 1, "name": "values", "argument": {"default": {"list": {f"k/{i}": i for i in range(3)} | {"a b": 1, "é[": 2}}},
            "nodes": [{"id": "m", "module": {"type": "ref", "ref": "map", "pattern": child}, "inputs": {"list": {"$": "argument/list"}}},
                      {"id": "count", "module": {"type": "ref", "ref": "keys"}, "inputs": {"value": {"$": "m"}}}],
            "result": {"m": {"$": "m"}, "count": {"$": "count"}}}


def printed(more):
    """Every (piece, node) that some command prints, and every file that is named."""
    pairs, files = set(), set()
    for row in answer("status", *more).get("pieces", []):
        piece = row["piece"]
        pairs |= {(piece, None)} | {(piece, n) for n in row.get("failures", {})}
        pairs |= {(piece, a["action"]) for a in answer("action", "list", piece, *more)["actions"]}
        pairs |= {(piece, r["action"]) for r in answer("why", piece, *more)["reasons"] if "action" in r}
        graph = answer("piece", "graph", piece, *more)
        pairs |= {(piece, n["id"]) for n in graph.get("graph", graph).get("nodes", [])}
        why = stet("why", piece, *more).stdout
        for name in re.findall(r"^(\S+/\S+) (?:is|stands|failed)", why, re.M):
            pairs.add((None, name))
        files |= {f for f in re.findall(r"(file:\S+?)(?: has changed|$)", why, re.M)}
    r = stet("run", "-k", "--explain", *[w for w in more if w != "--scope" or True])
    for line in r.stdout.splitlines():
        m = re.match(r"(?:failed|aside|outdated) +(\S+/.+?): ", line) or re.match(r"(\S.*?): (?:dirty|stale|unknown|failed|stands), ", line)
        if m:
            pairs.add((None, m.group(1)))
    return pairs, files


def give_back(pair, more, several):
    """The mistakes that the four commands make with a name."""
    piece, node = pair
    bad = []
    words = [piece] if node is None else [node] if piece is None else [f"{piece}/{node}"]
    if node and piece and not several:
        words.append(node)
    states = set()
    for word in words:
        for command in (["why"], ["status"], ["action", "show"], ["run", "-n", "-k"]):
            if node is None and command[0] == "action":
                continue
            a = answer(*command, word, *more)
            if "error" in a or "said" in a:
                bad.append((command, word, more, a))
            elif command[0] == "why" and node and not a["reasons"]:
                bad.append((command, word, more, a))
            elif command[0] == "why" and node:
                states.add(a["reasons"][0]["state"])
            elif command[0] == "status" and node:
                states.add(a["actions"][0]["state"])
            elif command[0] == "action":
                states.add(a["state"])
    if len(states) > 1:
        bad.append((pair, states))
    if piece and node:
        a = answer("action", "show", piece, node, *more)
        if "error" in a or {a.get("state")} != states:
            bad.append(("show PIECE NODE", pair, a, states))
    return bad


total = 0
for project in range(6 if LONG else 1 if SHORT else 2):
    here = TOP / f"p{project}"
    (here / "src").mkdir(parents=True)
    os.chdir(here)
    for f in rand.sample(FILES, 4) + ["a.c"]:
        (here / "src" / f).write_text(f"{rand.random()}\n")
    (here / "stet.toml").write_text(toml())
    stet("init")
    several = project % 2 == 1
    if several:
        (here / "values.json").write_text(json.dumps(json_pattern()))
        stet("run", "./values.json")
        stet("run", "./values.json", "--scope", "user:x/y")
        stet("run", "./values.json", "--scope", "team")
    stet("run", "-k")
    stet("branch", "new", "side")
    rounds = [[]] + ([["--branch", "side"]] if several else [])
    bad = []
    for more in rounds:
        if more:
            stet("run", "-k", *more)
        for outdated in (False, True):
            if outdated:
                (here / "src/a.c").write_text(f"{rand.random()}\n")
            pairs, files = printed(more)
            if outdated:
                (here / "src/a.c").write_text(f"{rand.random()}\n")
            ordered = sorted(pairs, key=str)
            for pair in ordered if LONG else rand.sample(ordered, min(len(ordered), 7)):
                bad += give_back(pair, more, several)
                total += 1
            for f in sorted(files)[:3]:
                a = answer("why", f, *more)
                bad += [] if "file" in a else [("why", f, a)]
    made = answer("run", "result.json")
    if made.get("error") or made.get("failed"):
        bad.append(made)
    t(f"project {project}: every name is taken back", not bad, "\n".join(map(str, bad[:4])))
    t("stet check", stet("check").returncode == 0, stet("check").stdout)
t("names were tried", total > 10, total)

here = TOP / "files"
(here / "src/deep").mkdir(parents=True)
os.chdir(here)
(here / "src/a.c").write_text("a\n")
(here / "src/deep/b.c").write_text("b\n")
(here / "stet.toml").write_text('name = "f"\n[nodes.c]\neach = "src/**/*.c"\ncommand = "cat {in} > {out}"\nproduces = "build/{in.stem}.o"\n'
                                '[nodes.link]\ncommand = "cat {in} > {out}"\nfiles = "$c.out"\nproduces = "build/app.json"\n'
                                '[nodes.other]\ncommand = "echo > {out}; echo ran >> log"\nproduces = "other"\n')
stet("init")
r = answer("run", "build/app.json")
t("a file that a node makes is a demand for that node, in a fresh project too", r.get("failed") == 0 and (here / "build/app.json").exists() and not (here / "other").exists(), r)
(here / "src/a.c").write_text("aa\n")
(here / "src/deep/b.c").write_text("bb\n")
r = answer("run", "../../build/b.o", cwd=here / "src/deep")
t("it is seen from the current directory", r.get("ran") == 1 and (here / "build/b.o").read_text() == "bb\n" and (here / "build/a.o").read_text() == "a\n", r)
stet("run")
(here / "src/a.c").write_text("aaa\n")
a = answer("why", "../a.c", cwd=here / "src/deep")
t("why of a source: who reads it, and what it makes outdated", a["file"]["outdated"] == 1 and a["file"]["stale"] == 1 and a["reasons"][1]["action"] == "c[src%2Fa.c].run", a)
a = answer("status", "build/app.json")
t("status of a file that is made", a["file"]["maker"] == {"piece": "f", "action": "link", "state": "stale"}, a)
t("action show of one", answer("action", "show", "build/b.o")["action"] == "c[src%2Fdeep%2Fb.c].run")
t("a source is no demand", "no node of piece \"f\" has this name or makes this file" in stet("run", "src/a.c").stderr, stet("run", "src/a.c").stderr)
(here / "src/a.c").rename(here / "src/deep/a.c")
(here / "src/deep/a.c").write_text("moved\n")
r = answer("run", "build/a.o")
t("a file whose source has moved is made from the new one", (here / "build/a.o").read_text() == "moved\n" and r.get("failed") == 0, r)
(here / "src/deep/a.c").unlink()
r = stet("run", "build/a.o")
t("a file that nothing makes any more is refused", r.returncode == 3 and "build/a.o: no node" in r.stderr, (r.returncode, r.stderr))
t("why says whose it was", "was made by a command that is gone" in stet("why", "build/a.o").stdout, stet("why", "build/a.o").stdout)
(here / "data.json").write_text('{"rows": 1}')
t("JSON that is no pattern is not taken for one", "makes this file" in stet("run", "data.json").stderr, stet("run", "data.json").stderr)
t("words of two pieces are refused", stet("run", "f/link", "./nothing/x").returncode != 0)
t("all runs", stet("run").returncode == 0)
finish()
