#!/usr/bin/env python3
"""Readers behind links that lead nowhere at first, or elsewhere later. One run is enough: what reads a file, a pattern or a directory behind a link to an output has
it when the run ends, and nothing is left to do; an edit of the writer's input shows in `run -n` before anything has run. Circles of links are nothing, and stop no run.
A directory takes the place of a file, and a file that of a directory, on the way to what was read and to what is written."""
import pathlib, shutil
from tap import finish, stet, t

top = pathlib.Path("p").absolute()
DOC = 'javascript = "({d}) => %s"\ninputs = { d = { "/" = { "link@1" = { id = "%s" } } } }'
WRITER = '[nodes.w]\ncommand = "sleep 0.1; mkdir -p {out}; cat in > {out}/x"\nfiles = "in"\nproduces = "g/d"\n'


def begin(nodes, links):
    shutil.rmtree(top, ignore_errors=True)
    (top / "s").mkdir(parents=True)
    (top / "in").write_text("0\n")
    for at, to in links.items():
        (top / at).symlink_to(to)
    (top / "stet.toml").write_text('name = "p"\n' + nodes)
    stet("init", cwd=top)


def value():
    out = top / "out/r"
    return out.read_text() if out.exists() else stet("get", "piece:p/r", "--json", cwd=top).stdout.split('"value":')[-1]


for name, reader, links in (
    ("a function over a file behind a link", DOC % ("d ? d.hash : 0", "file:s/l/x"), {"s/l": "../g/d"}),
    ("a function over a pattern behind a link", DOC % ("Object.entries(d ?? {}).map(([k, v]) => [k, v?.hash])", "glob:s/l/*"), {"s/l": "../g/d"}),
    ("a function over a file of a produced directory", DOC % ("d ? d.hash : 0", "file:g/d/x"), {}),
    ("a function over two links", DOC % ("d ? d.hash : 0", "file:s/m/x"), {"s/l": "../g/d", "s/m": "l"}),
    ("a dependency file behind a link", 'command = "cat s/l/x > {out} 2>/dev/null; echo o: s/l/x > dep"\ndepfile = "dep"\nscripts = false\nproduces = "out/r"', {"s/l": "../g/d"}),
    ("a pattern behind a link", 'command = "cat {in} /dev/null > {out}"\nfiles = "s/l/*"\nscripts = false\nproduces = "out/r"', {"s/l": "../g/d"}),
):
    begin(f"[nodes.r]\n{reader}\n" + WRITER, links)
    seen, good, said = set(), True, ""
    for text in ("one", "two", "three"):
        (top / "in").write_text(text + "\n")
        dry, r = stet("run", "-n", cwd=top), stet("run", cwd=top)
        seen.add(value())
        rest, again = stet("run", "-n", cwd=top), stet("run", cwd=top)
        fine = r.returncode == 0 and "0 actions do not stand" in rest.stdout and again.stdout.startswith("ran 0,") and (text == "one" or "r: " in dry.stdout)
        good, said = good and fine, said + f"{text}: {dry.stdout}{r.stdout}{r.stderr}{rest.stdout}{again.stdout}"
    t(f"{name}: each edit shows at once, and one run is enough", good and len(seen) == 3, said + str(seen))

begin('[nodes.r]\ncommand = "cat s/*/x s/a/* > {out} 2>/dev/null; true"\nproduces = "out/r"\n[nodes.e]\neach = "s/a/*"\ncommand = "cat {in} > {out}"\nproduces = "out/{in.name}"\n',
      {"s/a": "b", "s/b": "a"})
r = stet("run", cwd=top)
t("a circle of links is nothing", r.returncode == 0, r.stdout + r.stderr)

# A directory on the way becomes a file, a link, and nothing, and comes back.
begin('[nodes.r]\ncommand = "cat s/a/x > {out} 2>/dev/null; true"\nproduces = "out/r"\n[nodes.f]\njavascript = "({d}) => d ? d.size : 0"\ninputs = { d = { "/" = { "link@1" = { id = "file:s/a/x" } } } }\n', {})
good, said = True, ""
for step in ("absent", "dir", "file", "link", "absent", "file", "dir", "link", "dir"):
    a = top / "s/a"
    if a.is_dir() and not a.is_symlink():
        shutil.rmtree(a)
    else:
        a.unlink(missing_ok=True)
    (top / "b").mkdir(exist_ok=True)
    (top / "b/x").write_text("behind\n")
    if step == "dir":
        a.mkdir()
        (a / "x").write_text("x\n")
    elif step == "file":
        a.write_text("file\n")
    elif step == "link":
        a.symlink_to("../b")
    right = {"dir": "x\n", "link": "behind\n"}.get(step, "")
    r, again = stet("run", cwd=top), stet("run", cwd=top)
    got = stet("get", "piece:p/f", "--json", cwd=top).stdout.split('"value":')[-1].strip().rstrip("}").strip()
    fine = r.returncode == 0 and value() == right and got == str(len(right)) and again.stdout.startswith("ran 0,")
    good, said = good and fine, said + f"{step}: {value()!r} {got} {r.stdout}{r.stderr}{again.stdout}"
t("whatever a directory above becomes, it is seen", good, said)

# What was an output becomes a directory above one.
begin('[nodes.e]\neach = "s/*"\ncommand = "cat {in} > {out}"\nproduces = "out/{in}"\n', {})
(top / "s/a").write_text("a\n")
r = stet("run", cwd=top)
(top / "s/a").unlink()
(top / "s/a").mkdir()
(top / "s/a/b").write_text("b\n")
(top / "stet.toml").write_text((top / "stet.toml").read_text().replace('"s/*"', '"s/**"'))
r = stet("run", cwd=top)
t("an output below what was an output", r.returncode == 0 and (top / "out/s/a/b").read_text() == "b\n", r.stdout + r.stderr)

# An output that is a link is replaced itself: who makes it does not make what it leads to.
begin('[nodes.m]\ncommand = "ln -s p {out}"\nfiles = "g/p"\nproduces = "g/m"\nscripts = false\n[nodes.p]\ncommand = "cat in > {out}"\nfiles = "in"\nproduces = "g/p"\n'
      '[nodes.r]\ncommand = "cat g/p > {out} 2>/dev/null; true"\nproduces = "out/r"\n', {})
first = stet("run", cwd=top)
text = (top / "stet.toml").read_text()
(top / "stet.toml").write_text(text.replace("[nodes.p]\n" + text.split("[nodes.p]\n")[1].split("[nodes.r]")[0], ""))
stet("gc", "--outputs", cwd=top)
(top / "g/p").unlink(missing_ok=True)
r = stet("run", "-k", cwd=top)
t("a failed node that made a link holds up nobody else", first.returncode == 0 and "failed p/m" in r.stdout + r.stderr and value() == "", r.stdout + r.stderr + value())

# A pattern that matches directories alone.
begin('[nodes.r]\ncommand = "cat {in} /dev/null > {out}"\nfiles = "s/*"\nproduces = "out/r"\n', {})
(top / "s/sub").mkdir()
r = stet("run", cwd=top)
t("a pattern that matches a directory alone says so", r.returncode == 0 and '"s/*" matches no file, but the directory s/sub' in r.stdout + r.stderr, r.stdout + r.stderr)
(top / "s/file").write_text("file\n")
r = stet("run", cwd=top)
t("and is silent with a file", "matches no file" not in r.stdout + r.stderr, r.stdout + r.stderr)
finish(str(top))
