#!/usr/bin/env python3
"""Mistakes that would pass in silence are errors with a line and a way out, or warnings."""
import pathlib
from tap import answer, finish, stet, t

root = pathlib.Path("p").absolute()
(root / "src").mkdir(parents=True)
(root / "src/a.c").write_text("a\n")
stet("init", cwd=root)


def put(name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def refused(what, text, *words):
    put("bad.toml", 'name = "bad"\n' + text)
    r = stet("pattern", "check", "bad.toml", cwd=root)
    t(f"{what} is refused", r.returncode == 2 and all(w in r.stdout for w in words), r.stdout + r.stderr)


def fine(what, text):
    put("good.toml", 'name = "good"\n' + text)
    r = stet("pattern", "check", "good.toml", cwd=root)
    t(f"{what} is fine", r.returncode == 0, r.stdout + r.stderr)


refused("a misspelled name", '[nodes.a]\ncommand = "cat {inn} > {out}"\nfiles = "src/a.c"\nproduces = "o"\n', "bad.toml:3:", "{inn} stands for nothing", "did you mean {in}?", "{{inn}}")
refused("in a list", '[nodes.a]\ncommand = ["cat", "{suorce}"]\nfiles = { source = "src/a.c" }\n', "did you mean {source}?")
refused("a misspelled var", 'vars.cflags = ["-g"]\n[nodes.a]\ncommand = ["cc", "{cflag}"]\n', "did you mean {cflags}?")
refused("a part that paths do not have", '[nodes.a]\ncommand = "echo {in.stm}"\nfiles = "src/a.c"\n', "{in.stm}", "{NAME.stem}")
refused("a value in produces that is not expanded", '[argument]\nyear = 1\n[nodes.a]\ncommand = "echo > {out}"\ninputs = { year = "$argument/year" }\nproduces = "o/{year}"\n', "bad.toml:7:", "{year} stands for nothing", "[vars]")
refused("the output of a command that keeps none", '[nodes.a]\ncommand = "echo"\n[nodes.b]\ncommand = "echo {v}"\ninputs = { v = "$a/stdout" }\n', "bad.toml:6:", 'stdout = "text"')
refused("a circle of values", '[nodes.a]\ncommand = "echo {v}"\nstdout = "text"\ninputs = { v = "$b/stdout" }\n[nodes.b]\ncommand = "echo {v}"\nstdout = "text"\ninputs = { v = "$a/stdout" }\n',
        'a circle: node "a" needs node "b", node "b" needs node "a"')
refused("a circle of `after`", '[nodes.a]\ncommand = "a"\nafter = ["b"]\n[nodes.b]\ncommand = "b"\nafter = ["c"]\n[nodes.c]\ncommand = "c"\nafter = ["a"]\n',
        'a circle: node "a" comes after node "b", node "b" comes after node "c", node "c" comes after node "a"')
refused("a circle of vars", 'vars.a = "{b}"\nvars.b = ["{a}"]\n[nodes.n]\ncommand = "true"\n', 'vars use each other in a circle: "a" uses "b" uses "a"', "bad.toml:")
refused("a var that uses nothing", 'vars.a = "{nobody}"\n[nodes.n]\ncommand = "true"\n', "bad.toml:2:", "{nobody} stands for nothing")
refused("a member of a var that is not there", 'vars.a = { b = 1 }\n[nodes.n]\ncommand = "echo {a.c}"\n', "{a.c} stands for nothing")
refused("a list within a text", 'vars.a = [1, 2]\n[nodes.n]\ncommand = "true"\nproduces = "x-{a}"\n', "{a} is a list", "{NAME.0}")
refused("a template that is not there", '[templates.compile]\ncommand = "true"\n[nodes.n]\nuse = "compil"\n', "bad.toml:5:", 'did you mean "compile"?')
refused("templates in a circle", '[templates.a]\nuse = "b"\n[templates.b]\nuse = "a"\n[nodes.n]\nuse = "a"\n', 'template "a" uses itself')
refused("a wrong member of a template", '[templates.a]\nproducse = "x"\n[nodes.n]\nuse = "a"\ncommand = "true"\n', "bad.toml:3:", "did you mean `produces`?")
refused("a node that is left out", '[nodes.a]\nwhen = false\ncommand = "true"\nproduces = "a"\n[nodes.b]\ncommand = "true"\nfiles = "$a.out"\n', "bad.toml:8:", 'node "a" is left out: its `when` is false')
refused("the value of one", '[nodes.a]\nwhen = false\ncommand = "true"\nstdout = "text"\n[nodes.b]\ncommand = "true"\ninputs = { x = "$a/stdout" }\n', 'node "a" is left out')
refused("a condition over the argument", '[argument]\nx = true\n[nodes.a]\nwhen = "$argument/x"\ncommand = "true"\n', "bad.toml:5:", "known only when the pipeline runs")
refused("a circle of files", 'include = ["one.toml"]\n[nodes.n]\ncommand = "true"\n', "one.toml: no such file")
put("one.toml", 'include = ["sub/two.toml"]\n')
put("sub/two.toml", 'include = ["../one.toml"]\n')
refused("a circle of files", 'include = ["one.toml"]\n[nodes.n]\ncommand = "true"\n', "sub/two.toml:1:", "files include each other in a circle: one.toml includes sub/two.toml includes")
put("one.toml", '[nodes.n]\ncommand = "true"\n')
refused("a node that two files have", 'include = ["one.toml"]\n[nodes.n]\ncommand = "true"\n', "stands in one.toml as well")
put("one.toml", '[nodes.m]\ncommand = "true"\nprodcues = "x"\nresult = 1\n[results]\n')
refused("a wrong member of an included file", 'include = ["one.toml"]\n', "one.toml:5:", 'no member "results"')
put("one.toml", '[nodes.m]\ncommand = "true"\nprodcues = "x"\n')
refused("a wrong member of an included node", 'include = ["one.toml"]\n', "one.toml:3:", "did you mean `produces`?")
put("one.toml", "[nodes.m\n")
refused("an included file that is no TOML", 'include = ["one.toml"]\n', "one.toml:1:")
put("one.toml", "")
refused("an output that is an included file", 'include = ["one.toml"]\n[nodes.n]\ncommand = "true"\nproduces = "one.toml"\n', '"one.toml" is the file that says so')
for name, text, said in [("p.yaml", "a: 1\nb: yes\n", "line 2, column 4: this plain value means different things"), ("p.yaml", "a: &x 1\nb: *x\n", "line 1, column 4: tags and anchors"),
                         ("p.yaml", "a: !!python/object 1\n", "tags"), ("p.yaml", "- 1\n", "parameters have names"), ("p.yaml", "a: 1\na: 2\n", "stands twice"),
                         ("p.json", '{"a": 1,}', "line 1"), ("p.toml", "a = 1\na = 2\n", "defined already"), ("p.ini", "a = 1", "ends in .yaml")]:
    put(name, text)
    refused(f"{name} with {text!r}", f'params = "{name}"\n[nodes.n]\ncommand = "true"\n', "bad.toml:2:", said)
    (root / name).unlink()
put("p.yaml", "a: 1\nlist: [1, 2]\nnone: null\n")
refused("a parameter that is not there", 'params = "p.yaml"\n[nodes.n]\ncommand = "echo {params.b}"\n', "{params.b} stands for nothing")
refused("a parameter that is null", 'params = "p.yaml"\n[nodes.n]\ncommand = "echo {params.none}"\n', "{params.none} is no text")
for line in ["A=$B\n", "A=1\nA=2\n", "A\n", 'A="x\n', "A='x' y\n", 'A="\\x"\n']:
    put(".env", line)
    refused(f".env with {line!r}", 'env-file = ".env"\n[nodes.n]\ncommand = "true"\n', ".env: line ")
(root / ".env").unlink()

# Braces that are no names stay what they are.
fine("awk", "[nodes.a]\ncommand = \"awk '{print $1}' {in} > {out}; find . -exec echo {} \\\\; ; echo ${ins} x{2} {a,b}\"\nfiles = \"src/a.c\"\nproduces = \"o\"\n")
put("stet.toml", 'name = "p"\n[nodes.a]\ncommand = "echo {{inn}} {other} > {out}; cat {in} >> {out}"\nfiles = "src/a.c"\nproduces = "o"\n[nodes.b]\nref = "format"\ninputs = { template = "{in}-{x}", in = 1, x = 2 }\n'
    '[nodes.c]\ncommand = "cat /dev/null {in} > {out}"\nfiles = ["nothing/*.x", "!nothing/y*"]\nproduces = "c"\n')
r = stet("run", cwd=root)
t("an escape is taken back", (root / "o").read_text() == "{inn} {other}\na\n", (root / "o").read_text())
t("a template of `format` keeps its names", answer("get", "piece:p:node:b", cwd=root).get("value", answer("get", "piece:p:node:b", cwd=root)) == "1-2", answer("get", "piece:p:node:b", cwd=root))
t("a pattern that matches nothing is told", 'the pattern "nothing/*.x, !nothing/y*" matches no file' in r.stderr, r.stderr)

# A function sees nothing that stands around it, also if it asks first.
put("j.js", 'const FACTOR = 3;\nexport default pattern("j", {n: 1}, ({n}) => ({ total: lift(({n}) => typeof FACTOR === "number" ? n * FACTOR : n)({n}) }));\n')
r = stet("pattern", "check", "j.js", cwd=root)
if "lib/stet/javascript.so" not in r.stdout + r.stderr:
    t("a function that uses an outer constant is refused", r.returncode == 2 and "uses FACTOR, which the file declares outside of it" in r.stdout, r.stdout + r.stderr)
put("j.js", 'const n = 3;\nexport default pattern("j", {n: 1}, (a) => ({ total: lift(({n}) => { const f = (x) => n * x; return f(2); })({n: a.n}) }));\n')
t("one that has its own is not", stet("run", "j.js", cwd=root).returncode == 0)
for f in ("bad.toml", "good.toml", "j.js"):
    (root / f).unlink()
finish(root)
