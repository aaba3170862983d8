#!/usr/bin/env python3
"""Paths as the kernel takes them, in patterns in JSON and in JavaScript as in stet.toml: an absolute path of a file of the project, `..` behind a symbolic
link, and a way out of the project and back. A node that names the output of another one so runs after it, in the first run, too, and again when it changes."""
import json, os, pathlib, shutil
from tap import finish, stet, t

top = pathlib.Path("p").absolute()


def link(id_):
    return {"/": {"link@1": {"id": id_}}}


def writer(out):
    return {"id": "z", "inputs": {}, "module": {"type": "command", "shell": "sleep 0.1; cat src > {out}", "produces": {"out": out}}}


def reader(shell, inputs=None):
    module = {"type": "command", "shell": shell, "produces": {"out": "o/a"}, **({"files": list(inputs)} if inputs else {})}
    return {"id": "a", "inputs": inputs or {}, "module": module}


def case(name, nodes, script):
    shutil.rmtree(top, ignore_errors=True)
    (top / "deep/d").mkdir(parents=True)
    (top / "o").mkdir()
    os.symlink("deep/d", top / "lnk")
    (top / "src").write_text("s\n")
    stet("init", cwd=top)
    text = json.dumps({"pattern": 1, "name": "p", "nodes": nodes, "result": {"a": {"$": "a"}, "z": {"$": "z"}}})
    pattern = "pattern.js" if script else "pattern.json"
    if script:
        text = "export default pattern('p', {}, () => {\n"
        for n in nodes:
            m = n["module"]
            options = {"id": n["id"], "produces": m["produces"]}
            text += f"    const {n['id']} = command({json.dumps(m['shell'])}, {{}}, {json.dumps(options)});\n"
        text += "    return { a, z };\n});\n"
    (top / pattern).write_text(text)
    said = []
    for content in ["s\n", None, "t\n", None]:
        if content:
            (top / "src").write_text(content)
        r = stet("run", pattern, cwd=top)
        said.append(r.stdout + r.stderr)
    good = all(f"ran {n}, " in s for n, s in zip([2, 0, 2, 0], said)) and (top / "o/a").read_text() == "t\n"
    t(f"{name}, in {'JavaScript' if script else 'JSON'}", good, "\n".join(said))


for script in [False, True]:
    case("a word, absolute", [reader(f"cat {top}/o/z > {{out}}"), writer("o/z")], script)
    case("a word, .. behind a link", [reader("cat lnk/../z > {out}"), writer("deep/z")], script)
    case("a word, out and back", [reader("cat ../p/o/z > {out}"), writer("o/z")], script)
    case("an output, .. behind a link", [reader("cat deep/z > {out}"), writer("lnk/../z")], script)
case("an input, absolute", [reader("cat {i} > {out}", {"i": link(f"file:{top}/o/z")}), writer("o/z")], False)
case("an input, .. behind a link", [reader("cat {i} > {out}", {"i": link("file:lnk/../z")}), writer("deep/z")], False)
case("an input, out and back", [reader("cat {i} > {out}", {"i": link("file:../p/o/z")}), writer("o/z")], False)
finish(None)
