#!/usr/bin/env python3
"""Names of files that look like shell text, which stet itself puts into a command: they are names as a whole, and no part of them is a word. A reader of what
commands of a list make does not fail over what a removed one left beside it, and does not run again for what is made beside it; a node that reads the directory
does. As shell text, as a list of words, and from another directory."""
import pathlib
from tap import finish, stet, t

base = pathlib.Path(".").absolute()
NAMES = ("plain.txt", "photo[1].txt", "[1].txt", "{in}", "`id`.t", "x{a,b}", "a b", "$HOME", "a;b", "(x)", "a=b,c", "-v", "$(ls)", "it's")
FORMS = {
    "shell": 'command = "cat {in} > {out}"',
    "list": r'command = ["sh", "-c", "mkdir -p all; cp \"$@\" all", "sh", "{in}"]',
    "elsewhere": 'command = "cat {in} > {out}"\ncwd = "sub"',
}
for form, command in FORMS.items():
    for number, name in enumerate(NAMES):
        top = base / f"{form}{number}"
        (top / "src").mkdir(parents=True)
        (top / "sub").mkdir()
        (top / "src" / name).write_text("x\n")
        (top / "src/gone").write_text("y\n")
        out = "all/" if form == "list" else "all.txt"
        (top / "stet.toml").write_text(f"""name = "p"
[nodes.e]
each = "src/*"
command = "cat {{in}} > {{out}}"
produces = "out/{{in.name}}.o"
[nodes.all]
{command}
files = "$e.out"
produces = "{out}"
""")
        stet("init", cwd=top)
        r = stet("run", cwd=top)
        t(f"{form} {name}: it runs", r.returncode == 0, r.stdout + r.stderr)
        (top / "src/gone").unlink()
        r = stet("run", cwd=top)
        t(f"{form} {name}: what is left beside it is not read", r.returncode == 0, r.stdout + r.stderr)
        (top / "out/beside").write_text("z\n")
        r = stet("run", cwd=top)
        t(f"{form} {name}: nor is what is put beside it", r.returncode == 0 and "ran 0," in r.stdout + r.stderr, r.stdout + r.stderr)
finish()
