#!/usr/bin/env python3
"""The examples of docs/pipelines.md that have file names, as they stand there: they run, they do what the page says, and what is edited runs what uses it."""
import json, os, pathlib, re
from tap import answer, finish, stet, t

page = (pathlib.Path(os.environ["STET_SOURCE"]) / "docs/pipelines.md").read_text()
sections = {s.split("\n", 1)[0]: s for s in re.split(r"^## ", page, flags=re.M)[1:]}


def project(section):
    root = pathlib.Path(re.sub(r"\W+", "-", section)).absolute()
    for _, name, text in re.findall(r"^```(\w+) (\S+)\n(.*?)^```$", sections[section], flags=re.M | re.S):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    stet("init", cwd=root)
    r = stet("run", cwd=root)
    t(f"{section}: it runs", r.returncode == 0, r.stdout + r.stderr)
    t(f"{section}: and rests", answer("run", cwd=root).get("ran") == 0)
    return root


def edit(root, name, old, new):
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))
    return answer("run", cwd=root).get("ran")


# A compiler that says what it was given.
cc = "#!/bin/sh\nfor a; do last=$a; done; printf '%s\\n' \"$@\" > \"$last\"\n"
root = pathlib.Path("vars").absolute()
for _, name, text in re.findall(r"^```(\w+) (\S+)\n(.*?)^```$", sections["Variables and templates"], flags=re.M | re.S):
    root.mkdir(exist_ok=True)
    (root / name).write_text(text.replace('cc = "cc"', 'cc = "./tool"'))
(root / "src").mkdir()
for n in ("main", "b"):
    (root / f"src/{n}.c").write_text(f"int {n};\n")
(root / "tool").write_text(cc)
(root / "tool").chmod(0o755)
stet("init", cwd=root)
r = stet("run", cwd=root)
t("variables: it runs", r.returncode == 0, r.stdout + r.stderr)
t("variables: lists are words", (root / "build/b.o").read_text() == "-O2\n-Wall\n-c\nsrc/b.c\n-o\nbuild/b.o\n", (root / "build/b.o").read_text())
t("variables: those of the node come first", (root / "build/special.o").read_text().startswith("-O0\n-DMODE=a b\n-c\n"), (root / "build/special.o").read_text())
t("variables: an included value runs what uses it", edit(root, "rules.toml", "-Wall", "-Wextra") >= 2 and "-Wextra" in (root / "build/main.o").read_text())
t("variables: the other node stays", edit(root, "stet.toml", "-DMODE=a b", "-DMODE=c") == 1)

root = project("A node for each combination of values")
rows = json.loads((root / "out/report.json").read_text())["rows"]
t("matrix: the table", [(r["model"], r["seed"], r["files"]["out"]["path"]) for r in rows] == [(m, s, f"out/{m}-{s}.json") for m in ("small", "large") for s in (1, 2)], rows)
t("matrix: all files", (root / "out/all.txt").read_text().count("with seed") == 4)
names = [n["id"] for n in json.loads(stet("pattern", "convert", "stet.toml", cwd=root).stdout)["nodes"]]
t("matrix: names", set(names) == {"train", "report", "all", "train-large-1", "train-large-2", "train-small-1", "train-small-2"}, names)
t("matrix: a value runs what has it, the table and its readers", edit(root, "stet.toml", "seed = [1, 2]", "seed = [1, 2, 3]") == 5)
t("matrix: other names, other nodes", edit(root, "stet.toml", "[nodes.train]\n", '[nodes.train]\nname = "{model}.{seed}"\n') is not None and answer("run", "large.3", cwd=root).get("failed") == 0)

root = project("Parameters from files")
t("params: the values", (root / "out/fit.txt").read_text() == "0.001 http://localhost:8000\n" and (root / "out/plot.txt").read_text() == "red dark blue\n", (root / "out/fit.txt").read_text())
t("params: a key runs what uses it", edit(root, "params.yaml", "1e-3", "0.5") == 1 and (root / "out/fit.txt").read_text().startswith("0.5 "))
t("params: a variable that nobody names runs nothing", edit(root, ".env", "unused", "other") == 0)
t("params: one that is named does", edit(root, ".env", "8000", "9000") == 1)
finish(root)
