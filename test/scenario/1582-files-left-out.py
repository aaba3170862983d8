#!/usr/bin/env python3
"""["src/*.c", "!src/gen.c"]: what a list of files leaves out is no input, whoever writes it."""
import pathlib
from tap import answer, finish, stet, t

root = pathlib.Path("p").absolute()
root.mkdir()


def put(name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def run():
    r = answer("run", cwd=root)
    return r.get("ran", r)


for n in ["src/a.c", "src/b.c", "src/gen.c", "src/vendor/x.c", "src/vendor/deep/y.c", "src/own/z.c"]:
    put(n, n + "\n")
put("stet.toml", """name = "p"
[nodes.all]
command = "cat {in} > {out}"
files = ["src/**/*.c", "!src/gen.c", "!src/vendor", "src/gen.c"]
produces = "out/all"

[nodes.each]
each = ["src/*.c", "!src/g*.c"]
command = "cat {in} > {out}"
produces = "out/{in.stem}.o"

[nodes.link]
command = "cat {in} > {out}"
files = ["$each.out", "$made.out", "!out/b.o", "!src/made.c"]
produces = "out/link"

[nodes.made]
command = "cat out/a.o > {out}"
produces = "src/made.c"
""".replace('"src/*.c", "!src/g*.c"', '"src/*.c", "!src/g*.c", "!src/made.c"').replace('"!src/vendor", "src/gen.c"', '"!src/vendor", "src/gen.c", "!src/made.c"'))
stet("init", cwd=root)
r = stet("run", cwd=root)
t("it runs, in no circle with the node that writes what is left out", r.returncode == 0, r.stdout + r.stderr)
t("what is left out is left out, wherever it stands in the list", (root / "out/all").read_text() == "src/a.c\nsrc/b.c\nsrc/own/z.c\n", (root / "out/all").read_text())
t("and has no command of its own", sorted(x.name for x in (root / "out").glob("*.o")) == ["a.o", "b.o"])
t("and is taken out of the files of other nodes", (root / "out/link").read_text() == "src/a.c\n", (root / "out/link").read_text())
t("a second run runs nothing", run() == 0)
put("src/gen.c", "other\n")
put("src/vendor/new.c", "new\n")
put("src/vendor/deep/y.c", "other\n")
t("a change of it runs nothing", run() == 0)
put("src/own/new.c", "new\n")
t("a file beside it does", run() == 1 and "new" in (root / "out/all").read_text())
put("stet.toml", (root / "stet.toml").read_text().replace('"!src/vendor", ', ""))
t("what is left out no longer is taken in", run() == 1 and "src/vendor/x.c" in (root / "out/all").read_text(), (root / "out/all").read_text())
put("src/!x.c", "mark\n")
put("stet.toml", (root / "stet.toml").read_text() + '[nodes.mark]\ncommand = "cat {in} > {out}"\nfiles = "./!src/../src/!x.c"\nproduces = "out/mark"\n'.replace("./!src/../", "./"))
t("a name may begin with the sign", stet("run", "mark", cwd=root).returncode == 0 and (root / "out/mark").read_text() == "mark\n")


def refused(files, *words):
    put("bad.toml", f'name = "bad"\n[nodes.n]\ncommand = "true"\nfiles = {files}\n')
    r = stet("pattern", "check", "bad.toml", cwd=root)
    t(f"{files} is refused", r.returncode == 2 and all(w in r.stdout for w in ("bad.toml:4:",) + words), r.stdout + r.stderr)


refused('"!a"', "begins what is left out")
refused('["!a"]', "only says what is left out")
refused('["a*", "!../b"]', '".."', "!src/gen.c")
refused('["a*", "![x"]', "never closed")
(root / "bad.toml").unlink()
finish(root)
