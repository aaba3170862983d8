#!/usr/bin/env python3
"""A command whose words name what another node writes runs after that node, in the first run too, in all three forms of a pattern; nodes that wait for
each other this way are an error that names them."""
import json, os, pathlib, shutil
from tap import answer, finish, stet, t

P = pathlib.Path
# name, words of the reader (a string: for the shell), what the writer produces, how it makes that. The reader stands first, and its name too.
CASES = [
    ("a word", ["cp", "o/x", "out"], "o/x", "cat src > o/x"),
    ("a string", "cat o/x > out", "o/x", "cat src > o/x"),
    ("a directory that it changes to", "cd o && cat x > ../out", "o/x", "cat src > o/x"),
    ("a redirection", "cat < o/x > out", "o/x", "cat src > o/x"),
    ("an option", ["sh", "-c", "cat ${1#*=} > out", "x", "--from=o/x"], "o/x", "cat src > o/x"),
    ("a file in a directory", "cat o/d/x > out", "o/d", "mkdir -p o/d; cat src > o/d/x"),
    ("a directory around a file", "cat $(find o -type f) /dev/null > out; test -s out", "o/x", "cat src > o/x"),
    ("a pattern", "cat o/*.t > out", "o/x.t", "cat src > o/x.t"),
    ("a pattern of directories", "cat o/*/x > out", "o/d", "mkdir -p o/d; cat src > o/d/x"),
    ("a program", "./o/x > out", "o/x", "printf '#!/bin/sh\\necho %s\\n' $(cat src) > o/x; chmod +x o/x"),
    ("a script", ["sh", "o/x"], "o/x", "echo echo $(cat src) '> out' > o/x"),
    ("a variable", "F=o/x; cat $F > out", "o/x", "cat src > o/x"),
    ("a text among its inputs", "cat {f} > out", "o/x", "cat src > o/x"),
]


def node(form, name, words, produces, files=None, inputs=None, each=None):
    return dict(form=form, name=name, words=words, produces=produces, files=files, inputs=inputs or {}, each=each)


def toml(nodes):
    text = "name = 'p'\n"
    for n in nodes:
        text += f"[nodes.{n['name']}]\ncommand = {json.dumps(n['words'])}\nproduces = {json.dumps(n['produces'])}\n"
        for key in "files", "each":
            text += f"{key} = {json.dumps(n[key])}\n" if n[key] else ""
        text += f"inputs = {{ f = {json.dumps(n['inputs']['f'])} }}\n" if n["inputs"] else ""
    return {"stet.toml": text}


def row(n):
    inputs, module = dict(n["inputs"]), {"type": "command", "produces": {"out": n["produces"]}}
    module["shell" if isinstance(n["words"], str) else "argv"] = n["words"]
    if n["files"]:
        inputs["in"] = {"/": {"link@1": {"id": "file:" + n["files"]}}}
        module["files"] = ["in"]
    return {"id": n["name"], "inputs": inputs, "module": module}


def as_json(nodes):
    return {"p.json": json.dumps({"pattern": 1, "name": "p", "nodes": [row(n) for n in nodes], "result": {n["name"]: {"$": n["name"]} for n in nodes}})}


def javascript(nodes):
    text = "pattern('p', {}, () => {\n"
    for n in nodes:
        r = row(dict(n, files=None))  # a link is a value there; the words say what is read
        module = {k: v for k, v in r["module"].items() if k not in ("type", "argv", "shell")}
        text += f"  const {n['name']} = command({json.dumps(n['words'])}, {json.dumps(r['inputs'])}, {json.dumps(dict(module, id=n['name']))});\n"
    return {"p.js": text + "  return {" + ", ".join(n["name"] for n in nodes) + "};\n});\n"}


def project(name, files):
    shutil.rmtree("q", ignore_errors=True)
    os.makedirs("q/o")
    for path, text in files.items():
        P("q", path).parent.mkdir(parents=True, exist_ok=True)
        P("q", path).write_text(text)
    P("q/src").write_text("1\n")
    stet("init", cwd="q")
    pattern = next((f for f in files if f.startswith("p.")), None)
    return [pattern] if pattern else []


def right(what, run, count=2, result="out"):
    r = answer("run", *run, "-j4", cwd="q")
    t(f"{what}: the first run", (r.get("ran"), r.get("failed")) == (count, 0) and P("q", result).read_text() == "1\n", r)
    t(f"{what}: the second", answer("run", *run, cwd="q").get("ran") == 0)
    P("q/src").write_text("2\n")
    r = answer("run", *run, cwd="q")
    t(f"{what}: after a change", r.get("failed") == 0 and P("q", result).read_text() == "2\n", r)
    t(f"{what}: which leaves nothing to do", answer("run", *run, cwd="q").get("ran") == 0)


for form in toml, as_json, javascript:
    for what, words, produces, writer in CASES:
        nodes = [node(form, "a", words, "out", inputs={"f": "o/x"} if "{f}" in words else None),
                 node(form, "b", "sleep 0.1; mkdir -p o; " + writer, produces, files="src")]
        right(f"{form.__name__}: {what}", project("q", form(nodes)))

# A link to the document of a file that another node writes, which only the JSON form can have.
a = {"id": "a", "inputs": {"in": {"/": {"link@1": {"id": "file:o/x"}}}}, "module": {"type": "command", "argv": ["cp", "{in}", "out"], "files": ["in"], "produces": {"out": "out"}}}
b = row(node(as_json, "b", "sleep 0.1; cat src > o/x", "o/x", files="src"))
right("a link", project("q", {"p.json": json.dumps({"pattern": 1, "name": "p", "nodes": [a, b], "result": {"a": {"$": "a"}, "b": {"$": "b"}}})}))

# Commands for each file, on either side.
each = node(toml, "b", "sleep 0.1; cat src {in} > {out}", "o/{in.stem}.t", each="e/*")
right("what one command of many writes", project("q", {"e/x": "", **toml([node(toml, "a", "cat o/x.t > out", "out"), each])}), 4)
each = node(toml, "a", "cat o/x > {out}", "r/{in.stem}", each="e/*")
right("many that read it", project("q", {"e/x": "", "e/y": "", **toml([each, node(toml, "b", "sleep 0.1; cat src > o/x", "o/x", files="src")])}), 5, "r/x")
P("q/e/z").write_text("")
P("q/src").write_text("3\n")
shutil.rmtree("q/o")
r = answer("run", "-j4", cwd="q")
t("a new one waits for it as well", r.get("failed") == 0 and P("q/r/z").read_text() == "3\n", r)

# Only one node is asked for.
project("q", toml([node(toml, "a", "cat o/x > out", "out"), node(toml, "b", "sleep 0.1; cat src > o/x", "o/x", files="src"), node(toml, "c", "cat src > c", "c")]))
r = answer("run", "a", cwd="q")
t("a node that is asked for brings what it names", (r.get("ran"), r.get("failed")) == (2, 0) and not P("q/c").exists(), r)

# A failure is waited for.
project("q", toml([node(toml, "a", "cat o/x > out", "out"), node(toml, "b", "exit 3", "o/x", files="src")]))
r = answer("run", "-k", cwd="q")
t("a node waits while the one that it names fails", r.get("failed") == 1 and r.get("left") == 1, r)

# Circles.
for form in toml, as_json, javascript:
    nodes = [node(form, "a", "cat o/y > o/x", "o/x"), node(form, "b", "cat o/x > o/y", "o/y")]
    run = project("q", form(nodes))
    r = stet("run", *run, cwd="q")
    t(f"{form.__name__}: a circle is refused", r.returncode != 0 and 'a circle: node "a" names "o/y" of node "b", node "b" names "o/x" of node "a"' in r.stderr, r.stdout + r.stderr)
    r = stet("pattern", "check", *(run or ["stet.toml"]), cwd="q")
    t(f"{form.__name__}: also by a check", r.returncode != 0 and "a circle" in r.stdout + r.stderr, r.stdout + r.stderr)
text = toml([node(toml, "a", "cat o/y 2>/dev/null; cat src > o/x", "o/x"), node(toml, "b", "cat {in} > {out}", "o/y", files="$a.out")])["stet.toml"]
project("q", {"stet.toml": text})
r = stet("run", cwd="q")
t("a circle of a word and a reference", r.returncode != 0 and 'node "a" names "o/y" of node "b", node "b" needs node "a"' in r.stderr, r.stdout + r.stderr)
P("q/stet.toml").write_text(text.replace("[nodes.b]", "scripts = false\n[nodes.b]"))
t("without words it is none", answer("run", cwd="q").get("failed") == 0)

# What a word may be, and what is no circle.
text = toml([node(toml, "a", "echo see o/y; cat src > o/x; sed 's/o.y/o/; s, o/y , b ,' src >/dev/null", "o/x"), node(toml, "b", "cat {in} > {out}", "o/y", files="$a.out")])["stet.toml"]
project("q", {"stet.toml": text})
r = answer("run", cwd="q")
t("a name that is only printed, or stands in a program's own text, is no circle", r.get("failed") == 0 and P("q/o/y").read_text() == "1\n", r)
t("and comes to rest", answer("run", cwd="q").get("ran") == 0)
text = toml([node(toml, "a", "cat src o/none.t 2>/dev/null > {out}; :", "o/x", files="src"), node(toml, "b", "cat {in} > {out}", "o/{in.name}.t", each=["$a.out"])])["stet.toml"]
project("q", {"stet.toml": text})
r = answer("run", cwd="q")
t("a word that one command of many might write is no circle", r.get("failed") == 0 and P("q/o/x.t").exists(), r)
t("and comes to rest", answer("run", cwd="q").get("ran") == 0)
project("q", toml([node(toml, "a", "mkdir -p o && cat src > o/x && ls o >/dev/null", "o/x", files="src"), node(toml, "b", "ls o >/dev/null; cat o/x > o/y", "o/y")]))
r = answer("run", cwd="q")
t("a directory that it writes into is no reason to wait", r.get("failed") == 0 and P("q/o/y").read_text() == "1\n", r)
finish("q")
