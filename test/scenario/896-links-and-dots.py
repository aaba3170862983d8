#!/usr/bin/env python3
"""A symbolic link that is pointed elsewhere, where `..` follows it in a path: inputs, words, directories, the command's own directory, outputs and dependency
files, in TOML, JSON and JavaScript patterns. After each change the result is that of a fresh copy of the project."""
import json, os, pathlib, shutil, subprocess
from tap import STET, finish, stet, t

top = pathlib.Path("p").absolute()


def link(id_):
    return {"/": {"link@1": {"id": id_}}}


def lay(where):
    for d in ["one/d", "two/d", "o"]:
        (where / d).mkdir(parents=True)
    for name in ["one", "two"]:
        (where / name / "x").write_text(f"{name}\n")
        (where / name / f"only-{name}").write_text("")


def point(where, target):
    (where / "ld").unlink(missing_ok=True)
    if target == "directory":
        (where / "ld").mkdir()
        (where / "x").write_text("top\n")
    else:
        os.symlink(target, where / "ld")


def result(where):
    return {str(p.relative_to(where)): p.read_text() for p in where.rglob("*")
            if p.is_file() and not p.is_symlink() and ".stet" not in p.parts and p.relative_to(where).parts[0] in ("o", "one", "two")}


def case(name, files, watch=False):
    """files: {pattern file: text}. The link leads to `one`, then to `two`, then back; each time as from scratch."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    lay(top)
    stet("init", cwd=top)
    pattern = next(iter(files))
    for f, text in files.items():
        (top / f).write_text(text)
    said, good = [], True
    point(top, "one/d")
    watcher = subprocess.Popen([STET, "file", "watch"], cwd=top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if watch else None
    for target in ["one/d", "two/d", "one/d"]:
        point(top, target)
        r = stet("run", pattern, cwd=top)
        again = stet("run", pattern, cwd=top)
        fresh = top.parent / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        lay(fresh)
        point(fresh, target)
        for f, text in files.items():
            (fresh / f).write_text(text)
        stet("init", cwd=fresh)
        oracle = stet("run", pattern, cwd=fresh)
        mine, wanted = result(top), result(fresh)
        said.append(f"{target}: {r.stdout}{r.stderr}{again.stdout}\n{mine}\nfresh: {oracle.stdout}{oracle.stderr}\n{wanted}")
        good &= r.returncode == oracle.returncode == 0 and "ran 0," in again.stdout and all(mine.get(k) == v for k, v in wanted.items())
    if watcher:
        watcher.kill()
        watcher.wait()
    t(name, good, "\n".join(said))


def toml(**node):
    return "name = 'p'\n[nodes.a]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in node.items())


def as_json(module, inputs=None):
    return json.dumps({"pattern": 1, "name": "p", "nodes": [{"id": "a", "inputs": inputs or {}, "module": {"type": "command", **module}}], "result": {"a": {"$": "a"}}})


def as_js(shell, options):
    return f"export default pattern('p', {{}}, () => ({{ a: command({json.dumps(shell)}, {{}}, {json.dumps({'id': 'a', **options})}) }}));\n"


out = {"produces": {"out": "o/a"}}
DEP = "printf 'o/a: ld/../x\\n' > o/a.d; cat one/x two/x > /dev/null; cat $(echo ld/..)/x > {out}"
case("an input, in TOML", {"stet.toml": toml(command="cat {in} > {out}", files="ld/../x", produces="o/a")})
case("an input, in JSON", {"p.json": as_json({"shell": "cat {i} > {out}", "files": ["i"], **out}, {"i": link("file:ld/../x")})})
for watch in [False, True]:
    case(f"a word, in TOML{', watched' * watch}", {"stet.toml": toml(command="cat ld/../x > {out}", produces="o/a")}, watch)
case("a word, in JSON", {"p.json": as_json({"shell": "cat ld/../x > {out}", **out})})
case("a word, in JavaScript", {"p.js": as_js("cat ld/../x > {out}", out)})
case("a directory", {"stet.toml": toml(command="ls ld/.. > {out}", produces="o/a")})
case("the command's own directory", {"stet.toml": toml(command="cat ../x > {out}", cwd="ld", produces="o/a")})
case("the same with cd", {"stet.toml": toml(command="cd .. && cat x > {out}", produces="o/a", cwd="ld")})
case("an output, in TOML", {"stet.toml": toml(command="cat one/x > {out}", produces="ld/../made")})
case("an output, in JSON", {"p.json": as_json({"shell": "cat one/x > {out}", "produces": {"out": "ld/../made"}})})
case("a dependency file", {"stet.toml": toml(command=DEP, produces="o/a", depfile="o/a.d", scripts=False)})
chain = "name = 'p'\n[nodes.a]\ncommand = 'cat {in} > {out}'\nfiles = 'ld/../m'\nproduces = 'o/a'\n"
chain += "".join(f"[nodes.{n}]\ncommand = 'sleep 0.1; echo {n} > {{out}}'\nproduces = '{n}/m'\n" for n in ["one", "two"])
case("an input that other nodes make", {"stet.toml": chain})
finish(None)
