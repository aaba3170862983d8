#!/usr/bin/env python3
"""What a removed node has left is no source for any kind of reader: a dependency file that names it, its directory or a link to it; a function or a ref over its
document, a document of its directory, or of a link to it; a pattern in a shell string below a directory that was produced; and a pattern behind a link that was
produced, whatever has changed behind the link since. Each such node fails and names it, or has what a fresh project has; when the file is removed, it has just that."""
import pathlib, shutil
from tap import finish, stet, t

top, fresh = pathlib.Path("q").absolute(), pathlib.Path("f").absolute()
DOC = 'inputs = { d = { "/" = { "link@1" = { id = "%s" } } } }'
DEP = 'command = "cat %s > {out} 2>/dev/null; echo o: %s > dep"\ndepfile = "dep"\nscripts = false\nproduces = "out/r"'
JS = 'javascript = "({d}) => d ? d.hash : 0"\n' + DOC
REF = 'ref = "get"\ninputs = { value = { "/" = { "link@1" = { id = "%s" } } }, path = "hash", default = 0 }'
PATTERN = 'command = "cat {in} /dev/null > {out}; echo {in} >> {out}"\nfiles = "%s"\nscripts = false\nproduces = "out/r"'
WORDS = 'command = "cat %s > {out} 2>/dev/null; true"\nproduces = "out/r"'
FILE = '[nodes.w]\ncommand = "cat in > {out}"\nfiles = "in"\nproduces = "g/w"\n'
TREE = '[nodes.w]\ncommand = "mkdir -p {out}; cat in > {out}/x"\nfiles = "in"\nproduces = "g/w"\n'
LINK = '[nodes.w]\ncommand = "ln -s ../s {out}"\nproduces = "g/w"\nscripts = false\n'


def place(where, nodes):
    (where / "s").mkdir(parents=True, exist_ok=True)
    (where / "g").mkdir(exist_ok=True)
    for path, text in {"in": "in\n", "s/y": "y\n", "g/keep": "keep\n"}.items():
        if not (where / path).exists():
            (where / path).write_text(text)
    for path, to in {"l": "g/w", "ld": "g"}.items():
        if not (where / path).is_symlink():
            (where / path).symlink_to(to)
    (where / "stet.toml").write_text('name = "p"\n' + nodes)


def outcome(where):
    out = where / "out/r"
    return out.read_text() if out.exists() else stet("get", "piece:p/r", "--json", cwd=where).stdout.split('"value":')[-1]


def case(name, writer, reader, edit=None):
    for where in (top, fresh):
        shutil.rmtree(where, ignore_errors=True)
    node = f"[nodes.r]\n{reader}\n"
    place(top, node + writer)
    stet("init", cwd=top)
    first = stet("run", cwd=top)
    place(top, node)
    if edit:
        (top / edit).write_text("edited\n")
    place(fresh, node)
    if edit:
        (fresh / edit).write_text("edited\n")
    stet("init", cwd=fresh)
    right = stet("run", cwd=fresh)
    dry, r = stet("run", "-n", cwd=top), stet("run", "-k", cwd=top)
    said = r.stdout + r.stderr
    names = r.returncode == 1 and "p/r: it would read" in said and "left behind" in said
    t(f"{name}: it fails and names it, or has what a fresh project has", first.returncode == 0 and right.returncode == 0 and
      (names or (r.returncode == 0 and outcome(top) == outcome(fresh))), f"{first.stdout}{first.stderr}{dry.stdout}{said}{outcome(top)}{outcome(fresh)}")
    stet("gc", "--outputs", cwd=top)
    left = top / "g/w"
    if left.is_symlink():
        left.unlink()
    r, again = stet("run", cwd=top), stet("run", cwd=top)
    t(f"{name}: without it all is as in a fresh project", r.returncode == 0 and outcome(top) == outcome(fresh) and again.stdout.startswith("ran 0,"),
      f"{r.stdout}{r.stderr}{outcome(top)}{outcome(fresh)}{again.stdout}")
    r = stet("check", cwd=top)
    t(f"{name}: stet check finds nothing", r.returncode == 0, r.stdout + r.stderr)


for path in ("g/w", "l", "ld/w"):
    case(f"a dependency file that names {path}", FILE, DEP % (path, path))
    case(f"a function over {path}", FILE, JS % f"file:{path}")
    case(f"a ref over {path}", FILE, REF % f"file:{path}")
case("a function over a file in a directory that was produced", TREE, JS % "file:g/w/x")
case("a function over the directory above", FILE, JS % "file:g")
case("a dependency file that names the directory above", FILE, DEP.replace("cat %s", "cat %s/w", 1) % ("g", "g"))
case("a pattern of the shell below a directory that was produced", TREE, WORDS % "g/w/*")
case("a pattern behind a link that was produced", LINK, PATTERN % "g/w/*")
case("and what is behind the link has changed", LINK, PATTERN % "g/w/*", "s/y")
case("a file behind such a link, in words", LINK, WORDS % "g/w/y", "s/y")
finish(None)
