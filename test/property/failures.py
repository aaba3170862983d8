#!/usr/bin/env python3
"""Random graphs whose actions fail and recover, against a project made from scratch in the same state.

A graph has ref, javascript and command nodes that read arguments (numbers, texts, links to documents), documents (some of them links,
some of them links in a circle, some not there), files and each other, and choices that take one of two branches. After each step
(another argument, document, file, code, order of nodes, a node removed or brought back) `stet run` must say what a new project says:
the same failures, as many that wait, the same exit status, and the same values of all that is neither. The same must be said by the
printed lines, by --json, by the run's state.json and by `stet status`; a second run tries the failures again and nothing else, and
one with --no-retry-failed runs nothing at all."""
import json, os, pathlib, random, re, shutil, subprocess, sys

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
STEPS = 3000 if os.environ.get("STET_TEST_LONG") else 12 if os.environ.get("STET_TEST_SHORT") else 60
SEED = int(os.environ.get("STET_SEED", "1"))
rand = random.Random(SEED)
base = pathlib.Path.cwd()
LINK = lambda id: {"/": {"link@1": {"id": id}}}
ADD = "({a,b}) => { if (typeof a !== 'number' || typeof b !== 'number') throw new Error('no number'); return a + b }"
BROKEN = "({a,b}) => { throw new Error('broken') }"
CHOOSE = "({a,b,c}) => { const v = c > 0 ? a : b; if (typeof v !== 'number') throw new Error('none'); return v + 1 }"
EACH = "({a,b}) => { let n = 0; for (const v of [a, b]) { if (!Number.isInteger(v)) throw new Error('not whole'); n += v } return n }"


def value():
    return rand.choice([1, 2, 3, 3, "text", None, LINK(f"d{rand.randrange(4)}"), 1.5])


class State:
    def __init__(self):
        self.args = {f"a{i}": rand.choice([1, 2, LINK(f"d{i}")]) for i in range(4)}
        self.docs = {f"d{i}": i + 1 for i in range(3)}
        self.files = {f"f{i}": f"{i + 1}\n" for i in range(2)}
        self.on = {"c0": True, "c1": False}
        self.order = 0
        self.nodes = {}
        for i in range(rand.randrange(6, 14)):
            self.nodes[f"n{i}"] = self.node(i)
        self.gone = set()
        self.result = [n for n in self.nodes if rand.random() < 0.5] or ["n0"]

    def source(self, i):
        """What a node may be bound to: an argument, a document, or a node before it."""
        kind = rand.random()
        if i == 0 or kind < 0.3:
            return f"$argument/a{rand.randrange(4)}"
        if kind < 0.4:
            return LINK(f"d{rand.randrange(4)}")
        return f"@n{rand.randrange(i)}"

    def node(self, i):
        kind = rand.choice(["ref", "js", "js", "choose", "lazy", "file", "word"])
        return {"kind": kind, "a": self.source(i), "b": self.source(i), "c": rand.choice(["c0", "c1"]), "f": f"f{rand.randrange(2)}", "code": 0}

    def binding(self, b):
        if isinstance(b, str) and b.startswith("@"):
            of = b[1:]
            if of in self.gone:
                return "$argument/a0"
            b = f"${of}/stdout" if self.nodes[of]["kind"] in ("file", "word") else f"${of}"
        return b

    def toml(self):
        text = 'name = "p"\n'
        names = [n for n in self.nodes if n not in self.gone]
        if self.order:
            names = names[::-1]
        for name in names:
            n = self.nodes[name]
            t = lambda v: json.dumps(v) if isinstance(v, str) else '{ "/" = { "link@1" = { id = "%s" } } }' % v["/"]["link@1"]["id"]
            a, b = t(self.binding(n["a"])), t(self.binding(n["b"]))
            text += f"[nodes.{name}]\n"
            if n["kind"] == "ref":
                text += f'ref = "add"\ninputs = {{ 0 = {a}, 1 = {b} }}\n'
            elif n["kind"] in ("js", "lazy"):
                code = [ADD, EACH, BROKEN][n["code"]] if n["kind"] == "js" else CHOOSE
                more = f', c = "$argument/{n["c"]}"' if n["kind"] == "lazy" else ""
                text += f"javascript = {json.dumps(code)}\ninputs = {{ a = {a}, b = {b}{more} }}\n"
            elif n["kind"] == "choose":
                text += f'ref = "ifElse"\ninputs = {{ condition = "$argument/{n["c"]}", then = {a}, else = {b} }}\n'
            elif n["kind"] == "file":
                text += f'''command = "grep -E '^[0-9]+$' {{in}}"\nfiles = "{n["f"]}"\nstdout = "json"\n'''
            else:
                text += f'command = ["sh", "-c", "test \\"$0\\" -gt 1 2>/dev/null && echo \\"$0\\"", "{{v}}"]\ninputs = {{ v = {a} }}\nstdout = "json"\n'
        text += "[result]\n" + "".join(f'{n} = "{self.binding("@" + n)}"\n' for n in self.result if n not in self.gone)
        return text

    def step(self):
        what = rand.choice(["arg", "arg", "doc", "doc", "circle", "file", "code", "gone", "order", "choice", "nothing"])
        if what == "arg":
            self.args[f"a{rand.randrange(4)}"] = value()
        elif what == "doc":
            self.docs[f"d{rand.randrange(4)}"] = rand.choice([1, 2, 5, "x", LINK(f"d{rand.randrange(4)}"), "gone"])
        elif what == "circle":
            self.docs["d0"], self.docs["d1"] = rand.choice([(LINK("d1"), LINK("d0")), (4, LINK("d0")), (LINK("d1"), 7)])
        elif what == "file":
            self.files[f"f{rand.randrange(2)}"] = rand.choice(["1\n", "2\n", "bad\n", None])
        elif what == "code":
            n = rand.choice(list(self.nodes.values()))
            n["code"] = rand.randrange(3)
        elif what == "gone":
            n = rand.choice(list(self.nodes))
            self.gone ^= {n}
            if not [r for r in self.result if r not in self.gone]:
                self.gone ^= {n}
        elif what == "order":
            self.order ^= 1
        elif what == "choice":
            c = rand.choice(["c0", "c1"])
            self.on[c] = not self.on[c]
        return what


def stet(where, *words, check=True):
    p = subprocess.run([STET, *words], cwd=where, capture_output=True, text=True)
    if check and p.returncode not in (0, 1):
        wrong(f"stet {' '.join(words)}: status {p.returncode}\n{p.stdout}{p.stderr}")
    return p


def wrong(text):
    print(f"not ok 1 - a run says what a run from scratch says\n# seed {SEED}, step {step} ({what}): " + text.replace("\n", "\n# "))
    print("# " + state.toml().replace("\n", "\n# "))
    print("#", json.dumps([state.args, state.docs, state.files, state.on]))
    sys.exit(1)


def write(where, s, before=None):
    (where / "stet.toml").write_text(s.toml())
    for name, text in s.files.items():
        if text is None:
            (where / name).unlink(missing_ok=True)
        else:
            (where / name).write_text(text)
    for name, v in s.docs.items():
        if before is not None and before.get(name) == v:
            continue
        if v != "gone":
            stet(where, "set", name, json.dumps(v))
        elif before is not None and before.get(name, "gone") != "gone":
            stet(where, "doc", "delete", name)


def run(where, s, *more):
    sets = [w for k, v in {**s.args, **s.on}.items() for w in ("--set", f"{k}={json.dumps(v)}")]
    p = stet(where, "run", "-k", "--json", *sets, *more)
    out = json.loads(p.stdout)
    if "error" in out:
        wrong(f"run: {out['error']}")
    failed = {x["node"] for x in out["problems"]} | {x["node"] for x in out.get("failedBefore", [])}
    if len(failed) != out["failed"] + out["aside"] or p.returncode != (1 if failed else 0):
        wrong(f"{where.name}: failed {out['failed']}, aside {out['aside']}, status {p.returncode}, named {sorted(failed)}")
    if not out.get("part") and out["ran"] + out["stood"] + out["left"] + out["aside"] + len(out.get("failedBefore", [])) != out["nodes"]:
        wrong(f"{where.name}: ran {out['ran']}, up to date {out['stood']}, left {out['left']}, aside {out['aside']} of {out['nodes']}")
    if out["runId"]:
        record = json.loads((where / f".stet/runs/{out['runId']}/state.json").read_text())
        tasks = {t["id"] for t in record["tasks"] if t["status"] == "failed"}
        if tasks != failed or any(record["summary"][k] != out[k] for k in ("failed", "ran", "stood", "left", "waiting")):
            wrong(f"{where.name}: state.json has {sorted(tasks)} failed, {record['summary']}; the run {sorted(failed)}, {out}")
    return out, failed


def said(where, s, out, failed):
    """The lines for people, and status, say the same."""
    p = stet(where, "run", "-k")
    lines = {m for m in re.findall(r"^failed p/(\S+?): ", p.stdout, re.M)}
    counts = re.search(r"^ran (\d+)(?: \(\d+ restored\))?, up to date (\d+), failed (\d+)(?:, left (\d+))?(?: \((\d+) wait)?", p.stdout, re.M)
    if lines != failed or int(counts[3]) != len(failed) or p.returncode != (1 if failed else 0) or int(counts[1]) != len(failed):
        wrong(f"{where.name}: a second run prints {p.stdout} with status {p.returncode}; failed: {sorted(failed)}")
    if int(counts[5] or 0) != out["waiting"]:
        wrong(f"{where.name}: a second run prints {p.stdout}; {out['waiting']} waited before")
    row = json.loads(stet(where, "status", "--json").stdout)["pieces"][0]
    if not failed <= set(row.get("failures", {})):
        wrong(f"{where.name}: status lists {row.get('failures')}, the run {sorted(failed)}")
    again, named = run(where, s, "--no-retry-failed")
    if again["ran"] != 0 or named != failed or again["waiting"] != out["waiting"]:
        wrong(f"{where.name}: --no-retry-failed ran {again['ran']}, names {sorted(named)}, {again['waiting']} wait; before {sorted(failed)}, {out['waiting']}")


def states(where):
    return {a["action"]: a["state"] for a in json.loads(stet(where, "action", "list", "p", "--limit", "1000", "--json").stdout)["actions"]}


def values(where, nodes):
    return {n: json.loads(stet(where, "get", f"piece:p:node:{n}", "--json").stdout).get("value") for n in nodes}


print("1..1")
state, step, what = State(), 0, "start"
here = base / "here"
here.mkdir()
stet(here, "init")
write(here, state)
failures = waits = 0
for step in range(STEPS):
    if step:
        docs = dict(state.docs)
        for _ in range(rand.choice([1, 1, 1, 2, 3])):
            what = state.step()
        write(here, state, docs)
    quick = rand.random() < 0.2
    mine, failed = run(here, state, *(["--no-retry-failed"] if quick else []))
    fresh = base / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    stet(fresh, "init")
    write(fresh, state)
    other, expected = run(fresh, state)
    failures, waits = failures + len(failed), waits + mine["waiting"]
    if failed != expected or mine["waiting"] != other["waiting"] or mine["aside"] != other["aside"]:
        wrong(f"failed {sorted(failed)}, {mine['waiting']} wait; from scratch {sorted(expected)}, {other['waiting']} wait\n{mine}\n{other}")
    stand = [n for n, s in states(fresh).items() if s == "stands"]
    now = states(here)
    if bad := [n for n in stand if now.get(n) != "stands"]:
        wrong(f"{bad}: {[now.get(n) for n in bad]}, and from scratch they stand")
    if (a := values(here, stand)) != (b := values(fresh, stand)):
        wrong(f"values differ: {[(n, a[n], b[n]) for n in a if a[n] != b[n]]}")
    said(here, state, mine, failed)
if (found := stet(here, "check", check=False)).returncode != 0:
    wrong(found.stdout)
print(f"ok 1 - a run says what a run from scratch says ({STEPS} steps, {failures} failures, {waits} waited)")
