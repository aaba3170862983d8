#!/usr/bin/env python3
"""matrix and foreach: an instance for each combination of values, known by its values; their results are a table. Adding a value runs its instance,
removing one removes its instance and leaves its outputs for gc --outputs."""
import json, pathlib
from tap import answer, finish, stet, t

root = pathlib.Path("p").absolute()
root.mkdir()
text = """name = "p"
[vars]
models = ["a", "b"]
seeds = [1, 2]

[nodes.train]
matrix = { model = "{models}", seed = "{seeds}" }
command = "echo {model} {seed} {in} > {out}; echo {model}{seed} >> ran; echo {seed}"
files = "data/{model}.csv"
produces = "out/{model}-{seed}.json"
stdout = "json"
scripts = false
cache = false

[nodes.table]
command = "cat > {out}"
stdin = true
inputs = { rows = "$train" }
produces = "out/table.json"

[nodes.all]
command = "cat {in} > {out}"
files = "$train.out"
produces = "out/all"

[nodes.one]
command = ["sh", "-c", "echo $1 > out/one", "x", "{v}"]
inputs = { v = "$train-b-2/stdout" }
produces = "out/one"

[nodes.city]
foreach.uk = { temp = 10, name = "the UK" }
foreach.us = { temp = 20, name = "the US" }
command = ["sh", "-c", "echo \\"$1\\" $2 > out/$3", "x", "{item.name}", "{item.temp}", "{key}"]
produces = "out/{key}"

[nodes.letter]
foreach = ["x", "y z"]
command = "echo {item} > {out}"
produces = "out/letter {item}"
"""


def put(new):
    global text
    text = new
    (root / "stet.toml").write_text(text)


def ran():
    p = root / "ran"
    lines = p.read_text().split() if p.exists() else []
    p.unlink(missing_ok=True)
    return sorted(lines)


def run():
    r = answer("run", cwd=root)
    return r.get("ran", r)


(root / "data").mkdir()
for m in "abc":
    (root / f"data/{m}.csv").write_text(m)
put(text)
stet("init", cwd=root)
r = stet("run", cwd=root)
t("it runs", r.returncode == 0, r.stdout + r.stderr)
t("each pair of values has run", ran() == ["a1", "a2", "b1", "b2"])
table = lambda: json.loads((root / "out/table.json").read_text())["rows"]
rows = table()
t("the table has the values, the files and what was printed",
  [(x["model"], x["seed"], x["files"]["out"]["path"], x["stdout"]) for x in rows] == [(m, s, f"out/{m}-{s}.json", s) for m in "ab" for s in (1, 2)], rows)
t("all files", (root / "out/all").read_text() == "".join(f"{m} {s} data/{m}.csv\n" for m in "ab" for s in (1, 2)), (root / "out/all").read_text())
t("one of them by name", (root / "out/one").read_text() == "2\n")
t("foreach over a table", (root / "out/uk").read_text() == "the UK 10\n" and (root / "out/us").read_text() == "the US 20\n")
t("foreach over a list", (root / "out/letter y z").read_text() == "y z\n")
t("a second run runs nothing", run() == 0)

put(text.replace("seeds = [1, 2]", "seeds = [3, 1, 2]"))
r = answer("run", cwd=root)
t("a new value runs what has it, the table, and what reads it", ran() == ["a3", "b3"] and r["ran"] == 5, r)
t("the order of the table is that of the values", [x["seed"] for x in table()] == [3, 1, 2] * 2, table())
put(text.replace("temp = 10", "temp = 11"))
t("a value of one item runs that item, and its table", run() == 2 and (root / "out/uk").read_text() == "the UK 11\n")
put(text.replace("seeds = [3, 1, 2]", "seeds = [1, 2]"))
r = answer("run", cwd=root)
t("a value that goes runs none of the others", ran() == [] and [x["seed"] for x in table()] == [1, 2] * 2, r)
r = stet("gc", "--outputs", "--dry-run", cwd=root)
t("its outputs are left over", "out/a-3.json" in r.stdout and "out/b-3.json" in r.stdout and "a-1" not in r.stdout, r.stdout + r.stderr)
stet("gc", "--outputs", cwd=root)
(root / "data/b.csv").write_text("new")
run()
t("a file runs the instances that read it", ran() == ["b1", "b2"])

put(text.replace('seed = "{seeds}" }', 'seed = "{seeds}", exclude = [{ model = "a", seed = 2 }], include = [{ model = "c", seed = 9 }] }'))
run()
t("include adds a combination, exclude takes one out", ran() == ["c9"] and [(x["model"], x["seed"]) for x in table()] == [("a", 1), ("b", 1), ("b", 2), ("c", 9)], table())
put(text.replace('{ model = "c", seed = 9 }', '{ model = "b", rate = 5 }').replace('{ model = "a", seed = 2 }', '{ model = "a" }'))
run()
t("an entry that fits adds to combinations, whose commands do not use it", ran() == [] and [(x["model"], x["seed"], x.get("rate")) for x in table()] == [("b", 1, 5), ("b", 2, 5)], table())
put(text.replace('stdout = "json"\n', 'stdout = "json"\nwhen = "{seed} != 1"\n'))
run()
t("a condition over the values", [(x["model"], x["seed"]) for x in table()] == [("b", 2)], table())
r = stet("run", "train", cwd=root)
t("the table is a node", r.returncode == 0, r.stderr)
r = stet("status", "train-b-2", cwd=root)
stet("gc", "--outputs", cwd=root)


def refused(name, more, *words):
    (root / "bad.toml").write_text('name = "bad"\n' + more)
    r = stet("pattern", "check", "bad.toml", cwd=root)
    t(f"{name} is refused", r.returncode == 2 and all(w in r.stdout for w in words), r.stdout + r.stderr)


node = '[nodes.n]\ncommand = "true"\n'
refused("a value that stands twice", node + 'matrix = { a = [1, 1] }\n', 'two nodes are called "n-1"', "name = ", ":2:")
refused("two values with one name", node + 'matrix = { a = ["x/y", "x_y"] }\n', 'two nodes are called "n-x_y"')
refused("an axis that is no list", node + 'matrix = { a = "x" }\n', '"a" of `matrix` is no list')
refused("an axis that nobody has", node + 'matrix = { model = [1], exclude = [{ modl = 1 }] }\n', "did you mean `model`?")
refused("an output that all instances write", node + 'produces = "x"\nmatrix = { a = [1, 2] }\n', '"x" is produced by node "n-1" as well')
refused("matrix and foreach", node + 'foreach = []\nmatrix = { a = [1, 2] }\n', "both `matrix` and `foreach`")
refused("a name of a file and of a value", node + 'files = { a = "f" }\nmatrix = { a = [1, 2] }\n', '"a" is the name of a file')
refused("a value that is a column", node + 'matrix = { files = [1, 2] }\n', "column of the table")
refused("the name of another node", node + 'matrix = { a = [1] }\n[nodes.n-1]\ncommand = "true"\n', 'two nodes are called "n-1"')
refused("a value with braces in a path", node + 'produces = "o/{a}"\nmatrix = { a = ["{in.stem}"] }\n', "has braces")
refused("a condition that is none", node + 'when = "{a}"\nmatrix = { a = ["yes"] }\n', "must be true or false", ":4:")
refused("too many", node + 'matrix = { a = [' + "0," * 300 + "], b = [" + "0," * 300 + "] }\n", "more than 50000 instances")
(root / "bad.toml").unlink()
finish(root)
