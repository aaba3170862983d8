#!/usr/bin/env python3
"""A link to what another node writes, inside a directory that is read, among the matches of a pattern, in the list of a node with `each`, and in a
dependency file. After the first run and after each edit of the writer's input one run is enough: the reader has the new content, all stand, and a
second run runs nothing. An edit makes the reader stale before anything has run. When the writer is gone, what it has left is not read."""
import os, pathlib, shutil
from tap import finish, stet, t

top = pathlib.Path("p").absolute()
ALL = "find -L {in}/ -type f | sort | xargs cat > {out}"


def case(name, links, reader, left=False):
    shutil.rmtree(top, ignore_errors=True)
    for d in ["lib", "sd/x", "out"]:
        (top / d).mkdir(parents=True)
    (top / "lib/s.txt").write_text("s\n")
    for at, target in links.items():
        os.symlink(target, top / at)
    stet("init", cwd=top)
    (top / "stet.toml").write_text(f"""name = "p"
[nodes.r]
{reader}
[nodes.w]
command = "sleep 0.1; cat {{in}} > {{out}}"
files = "src.txt"
produces = "lib/w.txt"
""")
    said, good = [], True
    for text in ["one", "two", "three"]:
        (top / "src.txt").write_text(text + "\n")
        dry = stet("run", "-n", cwd=top)
        first = stet("run", cwd=top)
        result = "".join(p.read_text(errors="replace") for p in sorted((top / "out").glob("r*")))
        status, again = stet("status", cwd=top), stet("run", cwd=top)
        fine = first.returncode == 0 and text in result and "ran 0," in again.stdout + again.stderr and status.stdout.split()[-4:] == ["0"] * 4
        if text != "one" and "each" not in reader:
            fine = fine and "r: stale, upstream" in dry.stdout
        good = good and fine
        if not fine:
            said += [text, result, dry.stdout, first.stdout + first.stderr, status.stdout, again.stdout + again.stderr]
    if left:
        pattern = top / "stet.toml"
        pattern.write_text(pattern.read_text().split("[nodes.w]")[0])
        last = stet("run", cwd=top)
        good = good and last.returncode != 0 and "left behind" in last.stdout + last.stderr
        said += [last.stdout + last.stderr]
    t(name, good, "\n".join(said))


def r(command, more=""):
    return f"command = {command}\nproduces = \"out/r.txt\"\n{more}"


to_dir, to_file = {"sd/l": "../lib"}, {"sd/l": "../lib/w.txt"}
case("a link to a file, deep in a declared directory", {"sd/x/l": "../../lib/w.txt"}, r(f'"{ALL}"', 'files = "sd"'), True)
case("a link to a directory in a declared directory", to_dir, r(f'"{ALL}"', 'files = "sd"'), True)
case("and no words count", to_dir, r(f'"{ALL}"', 'files = "sd"\nscripts = false'), True)
case("a link to a directory that holds the link", to_dir | {"k": "sd"}, r(f'"{ALL}"', 'files = "k"'), True)
case("two links, one behind the other", {"sd/l": "../lib2", "lib2": "lib"}, r(f'"{ALL}"', 'files = "sd"'), True)
case("a directory as a word of a string", to_dir, r('"grep -R . sd > {out}; true"'), True)
case("a directory as a word of a list", to_dir, r('["tar", "-chf", "{out}", "--sort=name", "sd"]'), True)
case("a link that a dependency file names", to_file, r('"cat sd/l > {out} 2>/dev/null; echo x: sd/l > out/dep"', 'scripts = false\ndepfile = "out/dep"'))
case("a file behind a linked directory, in a dependency file", {"ld": "lib"},
     r('"cat ld/w.txt > {out} 2>/dev/null; echo x: ld/w.txt > out/dep"', 'scripts = false\ndepfile = "out/dep"'))
for pattern, links in {"sd/*": to_file, "sd/**": to_file, "sd/*/*": to_dir}.items():
    case(f"the pattern {pattern}", links, r('"cat /dev/null {in} > {out}"', f'files = "{pattern}"'))
for pattern, links in {"sd/*": to_file, "sd/*/*": to_dir}.items():
    case(f"the pattern {pattern} in a shell string", links, r(f'"cat /dev/null {pattern} > {{out}} 2>/dev/null; true"'))
for pattern, links in {"ld/*.txt": {"ld": "lib"}, "ld/**": {"ld": "lib"}, "sd/*": {"sd/l.txt": "../lib/w.txt"}}.items():
    case(f"each = {pattern}", links, f'each = "{pattern}"\ncommand = "cat {{in}} > {{out}}"\nproduces = "out/r-{{in.name}}"')
case("a link in a directory that another node makes", {}, r(f'"{ALL}"', 'files = "$d.out"')
     + '\n[nodes.d]\ncommand = "mkdir {out}; ln -s ../../lib {out}/l"\nproduces = "made/d"\n')

finish(None)
