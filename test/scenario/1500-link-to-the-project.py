#!/usr/bin/env python3
"""A link that leads to the project's own directory. What a removed command has written through it counts as left behind under its other name, too; and what a
command writes through it is there, in the same run, for whoever reads it by its plain name, and the other way round."""
import pathlib, shutil
from tap import finish, stet, t

top = pathlib.Path("p").absolute()
LINKS = {"a link to .": ".", "a link through the directory above": "../p", "an absolute link": str(top)}
MAKER = '[nodes.m]\ncommand = "cat in > {out}"\nfiles = "in"\nproduces = "%s"\n'
READERS = {
    "a pattern": 'command = "cat {i} > {out}"\nfiles = { i = "%s/*.txt" }',
    "a file": 'command = "cat {i} > {out}"\nfiles = { i = "%s/g.txt" }',
    "words": 'command = "cat %s/g.txt > {out} 2>/dev/null; true"',
    "a pattern of words": 'command = "cat %s/*.txt > {out} 2>/dev/null; true"',
    "a dependency file": 'command = "cat %s/g.txt > {out} 2>/dev/null; echo o: %s/g.txt > dep"\ndepfile = "dep"\nscripts = false',
}


def begin(link, nodes):
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    (top / "lnk").symlink_to(link)
    (top / "in").write_text("one\n")
    (top / "keep.txt").write_text("kept\n")
    (top / "stet.toml").write_text(nodes)
    stet("init", cwd=top)


def reader(name, where):
    text = READERS[name].replace("%s", where).replace("./", "")
    return '[nodes.r]\n' + text + '\nproduces = "out/r"\n'


for kind, link in LINKS.items():
    for name in READERS if link == "." else ("a pattern", "words"):
        good, said = True, ""
        for here, there in (("lnk", "."), (".", "lnk")):
            maker = (MAKER % f"{here}/g.txt").replace("./", "")
            begin(link, reader(name, there) + maker)
            for text in ("one", "two"):
                (top / "in").write_text(text + "\n")
                r, again = stet("run", cwd=top), stet("run", cwd=top)
                got = (top / "out/r").read_text() if (top / "out/r").exists() else None
                want = text + "\n" + ("kept\n" if "pattern" in name else "")
                good &= r.returncode == 0 and got == want and again.stdout.startswith("ran 0,")
                said += f"{here} {there} {text}: {got!r} {r.stdout}{r.stderr}{again.stdout}{again.stderr}"
            (top / "stet.toml").write_text(reader(name, there))  # g.txt is left behind: nobody reads it in silence
            r = stet("run", cwd=top)
            got = (top / "out/r").read_text() if (top / "out/r").exists() else None
            fine = r.returncode != 0 and "g.txt" in r.stderr + r.stdout or r.returncode == 0 and (got or "") == ("kept\n" if "pattern" in name else "")
            good, said = good and fine, said + f"gone, {here} {there}: {got!r} {r.stdout}{r.stderr}"
        t(f"{kind}: {name}", good, said)
finish(top)
