#!/usr/bin/env python3
"""[vars], templates, included files, parameters and .env files: each node runs again for what it uses, and for nothing else."""
import os, pathlib
from tap import answer, finish, stet, t

files = {
    "stet.toml": """name = "p"
include = ["lib/rules.toml"]
params = "params.yaml"
env-file = ".env"

[vars]
flags = ["-x", "a b", "{opt}"]
opt = "-q"
mode = "fast"
modes = ["fast", "slow"]

[nodes.words]
use = "show"
produces = "out/words"

[nodes.rate]
command = ["sh", "-c", "echo {params.train.lr} \\"$1\\" > out/rate", "x", "{lr}"]
inputs = { lr = "{params.train.lr}" }
produces = "out/rate"

[nodes.quoted]
command = "echo {flags} {who} \\"$TOKEN {who}\\" '{who}' ${who} {{who}} > {out}"
produces = "out/{mode}-quoted"
vars = { who = "it's" }
env = ["TOKEN"]

[nodes.only]
when = "{mode} == fast"
command = "echo only > {out}"
produces = "out/only"

[nodes.both]
command = "cat {in} > {out}"
files = ["$only.out", "$words.out"]
produces = "out/both"
after = ["only"]
""",
    "lib/rules.toml": """include = ["more.toml"]
[templates.show]
use = "base"
command = ["sh", "-c", "printf '%s\\\\n' \\"$@\\" > out/words", "x", "{flags}", "{more}", "{{flags}}"]
""",
    "lib/more.toml": """[vars]
more = ["m", 1, true]
opt = "never seen: the including file wins"
[templates.base]
title = "printed"
""",
    "params.yaml": "train:\n  lr: 1e-3   # a rate\n  n: 5\nother: [1, 2]\n",
    ".env": "TOKEN=\"a b\"\nX=1\n",
}
root = pathlib.Path("p").absolute()
os.environ["TOKEN"] = "not this"


def put(name, text):
    files[name] = text
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def edit(name, old, new):
    assert old in files[name], (name, old)
    put(name, files[name].replace(old, new))


def run(*words):
    r = answer("run", *words, cwd=root)
    return r.get("ran", r)


def read(name):
    return (root / name).read_text()


for name, text in list(files.items()):
    put(name, text)
stet("init", cwd=root)
r = stet("run", cwd=root)
t("it runs", "ran 5," in r.stdout, r.stdout + r.stderr)
t("a list becomes words", read("out/words") == "-x\na b\n-q\nm\n1\ntrue\n{flags}\n", read("out/words"))
t("a parameter is a value and a word", read("out/rate") == "0.001 0.001\n", read("out/rate"))
t("in a shell string words are quoted", read("out/fast-quoted") == "-x a b -q it's a b it's it's {who}\n", read("out/fast-quoted"))
t("a condition that holds", read("out/both").startswith("only\n-x"))
t("a second run runs nothing", run() == 0)

edit("params.yaml", "n: 5", "n: 6")
t("a parameter that nobody uses runs nothing", run() == 0)
edit(".env", "X=1", "X=2")
t("nor does a variable that nobody names", run() == 0)
edit("params.yaml", "1e-3", "0.5")
r = answer("status", cwd=root)
s = stet("run", "-n", cwd=root)
t("run -n tells of a parameter", "rate: unknown" in s.stdout and "1 changed, 0 gone, 4 kept" in s.stdout, s.stdout + s.stderr)
t("a parameter runs what uses it", run() == 1 and read("out/rate") == "0.5 0.5\n", read("out/rate"))
edit(".env", "a b", "c")
t("a variable runs what names it", run() == 1 and "it's c it's" in read("out/fast-quoted"), read("out/fast-quoted"))
edit("lib/more.toml", '"m"', '"n"')
r = stet("status", cwd=root)
t("status tells of an edit of an included file", "changed" in r.stdout or "stet.toml" in r.stdout or "outdated" in r.stdout, r.stdout + r.stderr)
t("an included file runs what uses it, and what reads that", run() == 2 and "\nn\n" in read("out/words"), read("out/words"))
edit("lib/rules.toml", '"{more}", ', "")
t("so does a template", run() == 2 and "\nn\n" not in read("out/words"), read("out/words"))
edit("lib/more.toml", '"n"', '"o"')
t("a var that nobody uses any more runs nothing", run() == 0)
edit("stet.toml", 'mode = "fast"', 'mode = "slow"')
t("a condition that does not hold takes its node out", run() == 2 and not read("out/both").startswith("only"), read("out/both"))
r = stet("gc", "--outputs", "--dry-run", cwd=root)
t("what it wrote is left over", "out/only" in r.stdout and "out/fast-quoted" in r.stdout, r.stdout + r.stderr)
stet("gc", "--outputs", cwd=root)
edit("stet.toml", '"{mode} == fast"', '["{mode} in {modes}", "not {params.off}"]')
put("params.yaml", files["params.yaml"] + "off: false\n")
r = answer("run", cwd=root)
t("conditions in a list all hold", r.get("ran") == 2 and read("out/both").startswith("only"), r)
edit("params.yaml", "off: false", "off: true")
r = answer("run", cwd=root)
t("one of them does not", r.get("ran") == 1 and not read("out/both").startswith("only"), r)

# What is filled in counts as if it was written in the command: files that it names are inputs.
put("tool.sh", "cat \"$1\" > out/tool; echo {} >> out/tool\n".format("tool"))
put("data.txt", "data\n")
put("in/a.txt", "a\n")
put("named.toml", """name = "named"
[vars]
tool = ["sh", "tool.sh"]
file = "data.txt"
script = "import glob; print([open(f).read() for f in sorted(glob.glob('in/*.txt'))])"
[nodes.tool]
command = ["{tool}", "{file}"]
produces = "out/tool"
[nodes.script]
command = ["python3", "-c", "{script}"]
stdout = "text"
[nodes.shell]
command = "cat {file} > {out}"
produces = "out/shell"
""")
named = lambda: answer("run", "named.toml", cwd=root).get("ran")
t("commands with files in vars", named() == 3)
put("tool.sh", files["tool.sh"] + "\n")
t("a script that a var names", named() == 1)
put("data.txt", "other\n")
t("a file that a var names", named() == 2 and read("out/tool") == "other\ntool\n" and read("out/shell") == "other\n", read("out/tool"))
put("in/b.txt", "b\n")
t("a pattern in a var", named() == 1 and "b" in answer("get", "piece:named/script", cwd=root).get("value", {}).get("stdout", ""), answer("get", "piece:named/script", cwd=root))
t("nothing more", named() == 0)

# Files by another way: removed, replaced by a link, of another format.
(root / "lib/more.toml").unlink()
r = stet("run", cwd=root)
t("an included file that is gone is named", r.returncode == 2 and "lib/more.toml: no such file" in r.stderr and "lib/rules.toml, line 1" in r.stderr, r.stderr)
r = stet("status", cwd=root)
t("and status says so", "more.toml" in r.stdout + r.stderr, r.stdout + r.stderr)
(root / "elsewhere.toml").write_text(files["lib/more.toml"])
(root / "lib/more.toml").symlink_to("../elsewhere.toml")
t("a link to it will do", run() == 0)
(root / "elsewhere.toml").write_text('vars.more = []\ntemplates.base = {}\n')
edit("lib/rules.toml", '"x", ', '"x", "{more}", ')
t("what a link leads to counts", run() == 1 and read("out/words").startswith("-x"), read("out/words"))
(root / "elsewhere.toml").write_text('vars.more = "z"\ntemplates.base = {}\n')
t("and an edit of it", run() == 2 and read("out/words").startswith("z\n-x"), read("out/words"))
for name, text in [("p.json", '{"train": {"lr": 0.5}, "off": true}'), ("p.toml", 'off = true\ntrain = { lr = 0.5 }\n')]:
    put(name, text)
    put("stet.toml", files["stet.toml"].replace(next(n for n in ["params.yaml", "p.json", "p.toml"] if f'"{n}"' in files["stet.toml"]), name))
    t(f"the same parameters from {name} run nothing", run() == 0)

# Another directory has the same results, and the pattern that is printed has all of it.
r = stet("pattern", "check", "stet.toml", cwd=root)
t("check reads the files as well", r.returncode == 0, r.stdout)
(root / "sub").mkdir()
r = stet("pattern", "convert", "../stet.toml", cwd=root / "sub")
t("so does convert, from any directory", '"-x"' in r.stdout, r.stderr)
put("sub/deep.toml", 'name = "deep"\ninclude = ["../lib/more.toml"]\n[nodes.a]\ncommand = "echo {more} > {out}"\nproduces = "out/deep"\n')
r = stet("run", "deep.toml", cwd=root / "sub")
t("a second pipeline of the project", r.returncode == 0 and read("out/deep") == "z\n", r.stdout + r.stderr)
(root / "elsewhere.toml").write_text('vars.more = "y"\ntemplates.base = {}\n')
r = answer("run", "sub/deep.toml", cwd=root)
t("shares the included file", r.get("ran") == 1 and read("out/deep") == "y\n", r)
r = answer("run", cwd=root)
t("with the first one", r.get("ran") == 2 and read("out/words").startswith("y\n"), r)
put("other.toml", 'name = "other"\n[nodes.a]\ncommand = "echo other > {out}"\nproduces = "out/deep"\n')
r = stet("run", "other.toml", cwd=root)
t("two pipelines that write one file are named", r.returncode != 0 and "out/deep" in r.stdout + r.stderr and "other/a" in r.stdout + r.stderr and "deep/a" in r.stdout + r.stderr, r.stdout + r.stderr)
stet("piece", "delete", "other", cwd=root)
finish(root)
