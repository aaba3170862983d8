#!/usr/bin/env python3
"""Random stet.toml files over the whole grammar that is expanded (vars, templates, include, matrix, foreach, when, params, env-file, files that are left out) under
random edits of all of these files. A model in Python knows what each command prints; it shares nothing with stet. After each edit:

  the outputs are what the model says;
  only commands whose words or files are others than before have run: a value counts for what uses it, and for nothing else;
  a second run runs nothing;
  now and then a fresh copy at another place, without results, gives the same files.

STET_SEED, STET_STEPS. On a difference the project stays where it is, and the last steps are printed."""
import itertools, json, os, pathlib, random, re, shutil, subprocess, sys

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
SEED = int(os.environ.get("STET_SEED", "1"))
STEPS = int(os.environ.get("STET_STEPS", 0)) or (3000 if LONG else 20 if SHORT else 45)
random.seed(SEED)
base = pathlib.Path(".").absolute()
root, fresh = base / "first", base / "fresh"
pick, chance = random.choice, lambda p: random.random() < p
WORDS = ["a", "b c", "it's", "$HOME", 'q"x', "*", "-n", "x;y", "é", "{in}", "{{v1}}", "\\", "", "#", "5"]
PLAIN = ["a", "b", "c", "d", "5"]
SCRIPT = 'o=$1; echo "$o" >> "$HOME/log"; mkdir -p out; { while [ "$2" != -- ]; do printf "[%s]\\n" "$2"; shift; done; printf "<%s>\\n" "$TOKEN" "$OTHER"; shift 2; cat /dev/null "$@"; } > "$o"\n'
TOMLS = ["stet.toml", "one.toml", "lib/two.toml"]
history, last = [], {}


class Bad(Exception):
    pass


class State:
    def __init__(self):
        self.vars = {f: {} for f in TOMLS}
        self.one_includes, self.kind, self.linked = False, "yaml", False
        self.params, self.env = {"p1": 1, "deep": {"q": "x", "list": ["m", "n o"]}}, {"TOKEN": "t", "OTHER": "o"}
        self.templates, self.nodes, self.src = {}, {}, {f"{c}.txt": c for c in "abc"}


def scalar(words=WORDS):
    return pick([pick(words), pick(words), pick(words), random.randrange(3), chance(0.5)])


def names(s, lists):
    """Names of vars (or parameters) that have a list, or that have none."""
    found = [n for f in TOMLS for n, v in s.vars[f].items() if isinstance(v, list) == lists]
    return found + (["params.deep.list"] if lists else ["params.p1", "params.deep.q", "env.TOKEN", "params.deep.list.0"])


def new_var(s, name):
    kind = random.random()
    if kind < 0.4:
        return scalar()
    if kind < 0.6:
        return [scalar(PLAIN + WORDS) for _ in range(random.randrange(4))]
    if kind < 0.8:
        return "{" + pick(names(s, False)) + "}" + pick(["", "-x", "{" + pick(names(s, False)) + "}"])
    return ["{" + pick(names(s, True)) + "}", pick(WORDS[:9])]


def new_word(s, local):
    kind = random.random()
    if kind < 0.3:
        return pick([w for w in WORDS if "{" not in w])
    if kind < 0.6 and local:
        return pick(["{%s}", "<{%s}>"]) % pick(local)
    if kind < 0.8:
        return pick(["{%s}", "<{%s}>", "{%s}{%s}"]).replace("%s", pick(names(s, False)))
    return "{" + pick(names(s, True)) + "}"


def new_axis(s):
    return pick([random.sample(PLAIN, random.randrange(1, 4)), random.sample([1, 2, 3], 2), "{axis}"])


def members(s, name, node):
    m, local = {}, []
    if node:
        kind = random.random()
        if kind < 0.35:
            m["matrix"] = {"x": new_axis(s)}
            if chance(0.6):
                m["matrix"]["y"] = new_axis(s)
            if chance(0.3):
                m["matrix"]["exclude"] = [{"x": pick(PLAIN)}]
            if chance(0.3):
                m["matrix"]["include"] = [pick([{"x": pick(PLAIN), "z": scalar(PLAIN)}, {"z": scalar(PLAIN)}, {"x": "new", "y": "new", "z": 1}])]
            local = ["x"]
        elif kind < 0.5:
            m["foreach"] = pick([random.sample(PLAIN, 2), {k: {"v": scalar(PLAIN)} for k in random.sample("klm", 2)}, "{axis}"])
            local = ["key", "item.v"] if isinstance(m["foreach"], dict) else ["item"]
        m["produces"] = f"out/{name}" + "".join("-{%s}" % n for n in ([k for k in m.get("matrix", {}) if len(k) == 1] or local[:1]))
        if chance(0.5):
            m["use"] = pick(["t0", "t1"])
        if chance(0.3):
            m["when"] = pick(["{flag}", "not {flag}", "{%s} == a" % pick(names(s, False)), "{%s} != b" % pick(local + ["mode"]), ["{mode} in {axis}", "{flag}"]])
    elif name == "t0" and chance(0.5):
        m["use"] = "t1"
    if chance(0.3 if node else 0.6):
        m["vars"] = {pick(["v1", "v2", "w"]): scalar() for _ in range(2)}
    if chance(0.6):
        m["files"] = pick([["src/*.txt"], ["src/*.txt", "!src/b*"], ["!src/c.txt", "src/[bc].txt", "src/a.txt", "!src/a*"], ["src/{mode}.txt"]] +
                          [[f"${n}.out"] for n in s.nodes if n < name] + [["src/a.txt", f"${n}.out"] for n in s.nodes if n < name])
    if chance(0.3):
        m["env"] = pick([["TOKEN"], ["TOKEN", "OTHER"], {"TOKEN": "{mode}"}, {"OTHER": "{params.p1}"}])
    if node and "use" not in m or chance(0.6):
        m["words"] = [new_word(s, local + list(m.get("vars", {}))) for _ in range(random.randrange(4))]
    if chance(0.5):
        m["shell"] = True
    return m


# The model.

def order(s):
    done = []

    def take(f):
        for g in {"stet.toml": ["one.toml", "lib/two.toml"], "one.toml": ["lib/two.toml"] if s.one_includes else []}.get(f, []):
            if g not in done:
                take(g)
        done.append(f)
    take("stet.toml")
    return done


def text(v):
    if isinstance(v, (list, dict)) or v is None:
        raise Bad(v)
    return str(v).lower() if isinstance(v, bool) else str(v)


class Scope:
    def __init__(self, s):
        self.s, self.locals, self.own = s, [], set()
        self.vars = {}
        for f in order(s):
            self.vars.update(s.vars[f])
        self.open = []

    def look(self, name):
        for table in self.locals:
            if (v := self.dig(table, name)) is not None:
                return v
        first = name.split(".")[0]
        if first in self.vars:
            if first in self.open:
                raise Bad(first)
            self.open.append(first)
            held, self.locals = self.locals, []
            value = self.fill(self.vars[first])
            self.locals = held
            self.open.pop()
            return self.dig({first: value}, name)
        return self.dig({"params": self.s.params, "env": self.s.env}, name)

    def dig(self, v, name):
        for part in name.split("."):
            if isinstance(v, list) and part.isdigit() and int(part) < len(v):
                v = v[int(part)]
            elif isinstance(v, dict) and part in v:
                v = v[part]
            else:
                return None
        return v

    def fill(self, v):
        if isinstance(v, list):
            out = []
            for item in v:
                one = self.fill(item)
                out += one if isinstance(item, str) and isinstance(one, list) else [one]
            return out
        if isinstance(v, dict):
            return {k: self.fill(x) for k, x in v.items()}
        if not isinstance(v, str):
            return v
        whole = re.fullmatch(r"\{([A-Za-z_][\w.-]*)\}", v)
        if whole and whole[1] not in self.own:
            found = self.look(whole[1])
            if found is None:
                raise Bad(v)
            return found

        def one(m):
            if m[1]:
                return "{" + m[1] + "}"
            found = self.look(m[2])
            if found is None:
                raise Bad(v)
            return text(found)
        return re.sub(r"\{\{([A-Za-z_][\w.-]*)\}\}|\{([A-Za-z_][\w.-]*)\}", one, v)


def truth(scope, when):
    if isinstance(when, list):
        return all([truth(scope, w) for w in when])
    for sign in (" == ", " != ", " in "):
        if sign in when:
            a, b = (scope.fill(x) for x in when.split(sign))
            if sign == " in ":
                if not isinstance(b, list):
                    raise Bad(when)
                return text(a) in [text(x) for x in b if not isinstance(x, (list, dict))]
            same = not isinstance(a, list) and text(a) == text(b)
            return same == (sign == " == ")
    v = scope.fill(when.removeprefix("not "))
    if v not in (True, False, "true", "false") or isinstance(v, int) and not isinstance(v, bool):
        raise Bad(when)
    return (v in (True, "true")) != when.startswith("not ")


def merged(s, m):
    if "use" not in m:
        return dict(m)
    below = merged(s, s.templates[m["use"]][1])
    out = dict(below, **m)
    for k in ("vars", "env"):
        if isinstance(below.get(k), dict) and isinstance(m.get(k), dict):
            out[k] = dict(below[k], **m[k])
    return out


def combinations(scope, m):
    if "matrix" in m:
        filled = scope.fill(m["matrix"])
        axes = sorted(k for k in filled if k not in ("include", "exclude"))
        if not all(isinstance(filled[k], list) for k in axes):
            raise Bad("axis")
        found = [dict(zip(axes, v)) for v in itertools.product(*(filled[k] for k in axes))]
        found = [c for c in found if not any(all(json.dumps(c[k]) == json.dumps(v) for k, v in e.items()) for e in filled.get("exclude", []))]
        own = len(found)
        for e in filled.get("include", []):
            fits = [i for i in range(own) if all(json.dumps(found[i][k]) == json.dumps(v) for k, v in e.items() if k in axes)]
            for i in fits:
                found[i] = dict(found[i], **e)
            if not fits:
                found.append(e)
        return found
    if "foreach" in m:
        items = scope.fill(m["foreach"])
        if isinstance(items, dict):
            return [{"key": k, "item": items[k]} for k in sorted(items)]
        if not isinstance(items, list):
            raise Bad("foreach")
        return [{"item": v} for v in items]
    return [{}]


def matches(s, entries, made):
    out, left = [], [e[1:] for e in entries if e[0] == "!"]
    glob = lambda p: re.compile(re.escape(p).replace(r"\*", "[^/]*").replace(r"\[", "[").replace(r"\]", "]"))
    skip = lambda path: any(glob(e).fullmatch(path) for e in left)
    for e in entries:
        if e[0] == "!":
            continue
        if e[0] == "$":
            if e[1:].removesuffix(".out") not in made:
                raise Bad(e)
            found = made[e[1:].removesuffix(".out")]
        elif re.search(r"[*\[]", e):
            found = [p for p in sorted(f"src/{n}" for n in s.src) if glob(e).fullmatch(p)]
        else:
            if not skip(e) and e[4:] not in s.src:
                raise Bad(e)
            found = [e]
        out += [p for p in found if not skip(p) and p not in out]
    return out


def model(s):
    """{output: (what the command is, its text)}, and the rows of each table."""
    outs, made, tables = {}, {}, {}
    for name in Scope(s).vars:  # also those that nobody uses
        Scope(s).look(name)
    for name in sorted(s.nodes):
        m = merged(s, s.nodes[name][1])
        scope = Scope(s)
        rows = made[name] = []
        many = "matrix" in m or "foreach" in m
        for c in combinations(scope, m):
            scope.locals, scope.own = [c], set()
            scope.locals = [c, {k: scope.fill(v) for k, v in m.get("vars", {}).items()}]
            if "when" in m and not truth(scope, m["when"]):
                continue
            out = text(scope.fill(m["produces"]))
            if out in outs:
                raise Bad(out)
            files = matches(s, [text(f) for f in scope.fill(m.get("files", []))], made)
            words = []
            for w in m.get("words", []):
                v = scope.fill(w) if not re.fullmatch(r"\{\{.*\}\}", w) else w
                words += [text(x) for x in v] if isinstance(v, list) else [text(v)]
            env = m.get("env", [])
            env = {n: s.env[n] for n in env} if isinstance(env, list) else {n: text(scope.fill(v)) for n, v in env.items()}
            content = "".join(f"[{w}]\n" for w in words) + "".join(f"<{env.get(n, '')}>\n" for n in ("TOKEN", "OTHER"))
            for f in files:
                content += s.src[f[4:]] if f.startswith("src/") else outs[f][1]
            outs[out] = ((words, files, env, m.get("shell", False), json.dumps(m.get("words"))), content)
            rows.append(out)
            if many:
                tables.setdefault(name, []).append(dict(c, out=out))
        if many:
            tables.setdefault(name, [])
    return outs, tables


# Rendering.

def toml(v):
    if isinstance(v, dict):
        return "{ " + ", ".join(f"{k} = {toml(x)}" for k, x in v.items()) + " }"
    if isinstance(v, list):
        return "[" + ", ".join(toml(x) for x in v) + "]"
    return json.dumps(v, ensure_ascii=False)


def command(m):
    words = m.get("words", [])
    if m.get("shell"):
        quoted = lambda w: w if re.fullmatch(r"\{[^{}]*\}", w) else "'" + w.replace("'", "'\\''") + "'"
        return toml("sh w.sh {out} " + " ".join(map(quoted, words)) + " -- {in}")
    return toml(["sh", "w.sh", "{out}", *words, "--", "{in}"])


def table_of(kind, name, m, s):
    lines = [f"[{kind}.{name}]"]
    whole = merged(s, m)
    for k, v in m.items():
        if k not in ("words", "shell"):
            lines.append(f"{k} = {toml(v)}")
    if "words" in m or "shell" in m:  # the model joins the two, so the file says the command where either is
        lines.append(f"command = {command(whole)}")
    if kind == "nodes" and "files" not in whole:
        lines.append("files = []")
    return "\n".join(lines) + "\n"


def render(s):
    out = {}
    for f in TOMLS:
        head = {"stet.toml": 'name = "p"\ninclude = ["one.toml", "lib/two.toml"]\nparams = "params.%s"\nenv-file = [".env"]\n' % s.kind,
                "one.toml": 'include = ["lib/two.toml"]\n' if s.one_includes else ""}.get(f, "")
        text = head + "[vars]\n" + "".join(f"{n} = {toml(v)}\n" for n, v in s.vars[f].items())
        for kind, table in (("templates", s.templates), ("nodes", s.nodes)):
            text += "".join(table_of(kind, n, m, s) for n, (g, m) in table.items() if g == f)
        if f == "stet.toml":
            for n, (g, m) in s.nodes.items():
                if "matrix" in m or "foreach" in m:
                    text += f'[nodes.tab-{n}]\ncommand = "cat > {{out}}"\nstdin = true\nscripts = false\ninputs = {{ rows = "${n}" }}\nproduces = "tab/{n}"\n'
        out[f] = text
    out["params." + s.kind] = {"yaml": lambda: "p1: %s\ndeep:\n  q: %s\n  list: %s\n" % tuple(json.dumps(x) for x in (s.params["p1"], s.params["deep"]["q"], s.params["deep"]["list"])),
                               "json": lambda: json.dumps(s.params), "toml": lambda: f"p1 = {toml(s.params['p1'])}\ndeep = {toml(s.params['deep'])}\n"}[s.kind]()
    out[".env"] = "".join(f"{k}='{v}'\n" for k, v in s.env.items())
    out.update({f"src/{n}": v for n, v in s.src.items()})
    out["w.sh"] = SCRIPT
    return out


def write(top, s, linked):
    want = render(s)
    for old in [*top.glob("params.*"), *top.glob("src/*")]:
        if str(old.relative_to(top)) not in want:
            old.unlink()
    for name, content in want.items():
        p = top / name
        p.parent.mkdir(parents=True, exist_ok=True)
        if name == "one.toml" and linked != p.is_symlink():
            p.unlink(missing_ok=True)
            if linked:
                (top / "real").mkdir(exist_ok=True)
                p.symlink_to("real/one.toml")
        if name == "lib/two.toml" and chance(0.2):
            p.unlink(missing_ok=True)
        if linked and name == "one.toml":
            p = top / "real/one.toml"
            # what a linked file includes is seen from where the link is named
        if not p.exists() or p.read_text() != content:
            p.write_text(content)


def edit(s):
    kind = pick(["var", "var", "var", "unvar", "param", "param", "env", "template", "node", "node", "renode", "source", "source", "unsource", "unnode", "include", "kind", "link", "axis", "mode", "words"])
    f, name = pick(TOMLS), pick(["v1", "v2", "v3", "l1"])
    if kind == "var":
        s.vars[f][name] = new_var(s, name)
    elif kind == "unvar":
        s.vars[f].pop(name, None)
    elif kind == "param":
        pick([lambda: s.params.update(p1=scalar(WORDS[:9])), lambda: s.params["deep"].update(q=scalar(WORDS[:9])), lambda: s.params["deep"].update(list=[pick(PLAIN) for _ in range(random.randrange(1, 3))]),
              lambda: s.params.update(unused=random.randrange(99)) if s.kind != "yaml" else None])()
    elif kind == "env":
        s.env[pick(["TOKEN", "OTHER", "UNUSED"])] = pick(["t", "u v", "$x", ""])
    elif kind == "template":
        t = pick(["t0", "t1"])
        s.templates[t] = (s.templates[t][0], members(s, t, False))
    elif kind in ("node", "renode"):
        n = f"n{random.randrange(5)}"
        if (n in s.nodes) == (kind == "renode"):
            s.nodes[n] = (f, members(s, n, True))
    elif kind == "unnode" and len(s.nodes) > 2:
        s.nodes.pop(pick(list(s.nodes)))
    elif kind == "source":
        s.src[pick(["a.txt", "b.txt", "c.txt", "bb.txt", "ca.txt"])] = f"{random.randrange(99)}\n"
    elif kind == "unsource":
        s.src.pop(pick(["bb.txt", "ca.txt", "b.txt"]), None)
    elif kind == "include":
        s.one_includes = not s.one_includes
    elif kind == "kind":
        s.kind = pick(["yaml", "json", "toml"])
        s.params.pop("unused", None)
    elif kind == "link":
        s.linked = not s.linked
    elif kind == "axis":
        s.vars["stet.toml"]["axis"] = random.sample(PLAIN, random.randrange(1, 4))
    elif kind == "mode":
        s.vars["stet.toml"].update(mode=pick("abc"), flag=chance(0.5))
    elif kind == "words" and s.nodes:
        n = pick(list(s.nodes))
        s.nodes[n] = (s.nodes[n][0], dict(s.nodes[n][1], words=[new_word(s, []) for _ in range(2)]))
    return f"{kind} {f} {name}"


def stet(top, *words):
    home = base / ("home-" + top.name)
    home.mkdir(exist_ok=True)
    return subprocess.run([STET, *words], cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, HOME=str(home), STET_HOME=str(home / "stet"), TOKEN="not this", OTHER="nor this"))


def log_of(top):
    log = base / ("home-" + top.name) / "log"
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def wrong(what, *more):
    print(f"not ok 1 - {what} (seed {SEED}, step {len(history)})")
    for line in [*history[-6:], *map(str, more)]:
        print("# " + line.replace("\n", "\n# "))
    print(f"# the project: {root}\n1..1")
    sys.exit(1)


def check(s, expected, tables, step):
    before = dict(last)
    r = stet(root, "run", "--json")
    if r.returncode != 0:
        wrong("the run failed", r.stdout[-800:], r.stderr)
    ran = log_of(root)
    for out, (key, content) in expected.items():
        if not (root / out).is_file() or (root / out).read_text() != content:
            wrong(f"{out} is not what the model says", repr(content), repr((root / out).read_text()) if (root / out).is_file() else "it is not there", key)
    for n, rows in tables.items():
        now = [dict({k: v for k, v in row.items() if k != "files"}, out=row["files"]["out"]["path"]) for row in json.loads((root / f"tab/{n}").read_text())["rows"]]
        if json.dumps(now, sort_keys=True) != json.dumps(rows, sort_keys=True):
            wrong(f"the table of {n} is not what the model says", now, rows)
    same = [out for out in ran if out in before and out in expected and before[out] == expected[out]]
    if same:
        wrong("commands ran whose words and files are what they were", same)
    last.clear()
    last.update(expected)
    again = json.loads(stet(root, "run", "--json").stdout)
    if again["ran"] or log_of(root):
        wrong("a second run runs something", again)
    if step % (5 if LONG else 9) == 0:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(base / "home-fresh", ignore_errors=True)
        write(fresh, s, False)
        stet(fresh, "init")
        r = stet(fresh, "run")
        for out in expected:
            if r.returncode != 0 or (fresh / out).read_text() != (root / out).read_text():
                wrong(f"{out} is another file in a fresh copy", r.stdout, r.stderr)
        if step % 4 == 0:
            stet(root, "gc", "--outputs")


s = State()
s.vars["stet.toml"] = {"axis": ["a", "b"], "mode": "a", "flag": True, "l1": ["x y", 2]}
s.vars["one.toml"] = {"v1": "one", "v2": "{v1}-two"}
s.vars["lib/two.toml"] = {"v1": "hidden", "v3": 3, "l1": []}
s.templates = {"t1": ("lib/two.toml", {"words": ["{v1}"]}), "t0": ("one.toml", {"words": ["{v2}", "{l1}"]})}
s.nodes = {"n0": ("stet.toml", {"matrix": {"x": "{axis}", "y": [1, 2]}, "produces": "out/n0-{x}-{y}", "use": "t0"}), "n1": ("one.toml", {"produces": "out/n1", "words": ["{params.p1}"], "files": ["$n0.out"]})}
root.mkdir()
stet(root, "init")
import copy
done = refused = 0
while done < STEPS:
    now = copy.deepcopy(s) if done else s
    did = edit(now) if done else "begin"
    try:
        expected, tables = model(now)
        good = all("/" not in o[4:] and re.fullmatch(r"[\w.-]+", o[4:]) for o in expected)
    except Bad:
        good = False
    if not good:
        refused += 1
        if refused > 100 * STEPS:
            wrong("no edit is good")
        continue
    s = now
    history.append(did + ": " + json.dumps(s.nodes)[:600])
    write(root, s, s.linked)
    check(s, expected, tables, done)
    done += 1
r = stet(root, "check")
if r.returncode != 0:
    wrong("stet check finds something", r.stdout, r.stderr)
print(f"ok 1 - {done} edits: outputs as the model says, nothing runs in vain\n1..1")
