#!/usr/bin/env python3
"""What is filled in in a string for the shell stays what it is, in quotes of every kind, or is refused. "{in}" in double quotes was filled in with single quotes
around it, which were then part of the name."""
import itertools, json, pathlib, re
from tap import answer, finish, stet, t

VALUES = ["plain.txt", "a b", "it's", 'say "x"', "a$HOME", "`id`", "$(id)", "back\\slash", "end\\", "a;b", "a&b|c", "x}y", "x{y", "two\nlines", "#hash", "*", "-n", "!x", "~", "é", ""]
PLAIN = re.compile(r"[A-Za-z0-9,./_+@%:=-]*\Z")
SAME, BARE = "{}", "refusable"
FORMS = [  # text, what it prints, and whether it may be refused
    ('printf %s {v}', SAME, ""),
    ('printf %s "{v}"', SAME, ""),
    ("printf %s '{v}'", SAME, ""),
    ('printf %s "<{v}>"', "<{}>", ""),
    ('printf %s x{v}"{v}"\'{v}\'', "x{}{}{}", ""),
    ('x={v}; printf %s "$x"', SAME, ""),
    ('x="{v}"; printf %s "$x"', SAME, ""),
    ('printf %s "$(printf %s {v}.)"', "{}.", ""),
    ('printf %s "$(printf %s "{v}.")"', "{}.", ""),
    ('printf %s "$(printf %s \'{v}.\')"', "{}.", ""),
    ('( printf %s "{v}" ); printf %s {v}', "{}{}", ""),
    ('printf %s "\\\\{v}"', "\\{}", ""),
    ('printf %s "\\{v}"', "\\{}", ""),
    ('printf "%s" "a\\"b" {v}', 'a"b{}', ""),
    ("# it's a comment: {v}\nprintf %s {v}", SAME, ""),
    ('printf %s a#b"{v}"', "a#b{}", ""),
    ("printf %s \\{v}", "{{v}}", ""),
    ('printf %s "{{{{v}}}}"'.replace("{{{{v}}}}", "{{v}}"), "{{v}}", ""),
    ('case a in a) printf %s "{v}";; esac', SAME, ""),
    ('printf %s "$(case a in a) printf %s {v}.;; esac)"', "{}.", BARE),
    ('printf %s "`printf %s {v}.`"', "{}.", BARE),
    ('printf %s `printf %s {v}`', SAME, BARE),
    ('printf %s "${nothing:-{v}}"', SAME, BARE),
    ('cat <<EOF\n<{v}>\nEOF', "<{}>\n", BARE),
    ("cat <<'EOF'\n<{v}>\nEOF", "<{}>\n", BARE),
    ("cat <<-EOF && printf %s {v}\n\tit's\n\tEOF", "it's\n{}", ""),
]
root = pathlib.Path("p").absolute()
root.mkdir()
stet("init", cwd=root)
toml, cases = ['name = "quotes"'], []
for (i, (text, shows, refusable)), (k, value) in itertools.product(enumerate(FORMS), enumerate(VALUES)):
    node = f"n{i}-{k}"
    script = "{ " + text + "\n} > {out}"
    toml.append(f'[nodes.{node}]\ncommand = {json.dumps(script)}\ninputs = {{ v = {json.dumps(value, ensure_ascii=False)} }}\nproduces = "out/{node}"\nscripts = false'
                .replace('v = "$', 'v = "$$'))
    cases.append((node, text, value, shows.format(*[value] * 3), refusable))
(root / "stet.toml").write_text("\n".join(toml))
r = answer("run", "-k", "-j4", cwd=root)
failures = {p["node"]: p["error"] for p in r.get("problems", [])}
wrong, refused, shown = [], 0, 0
for node, text, value, want, refusable in cases:
    if node in failures:
        refused += 1
        if not refusable or PLAIN.match(value) or "can't be quoted" not in failures[node]["message"]:
            wrong.append((text, value, failures[node]))
        continue
    got = (root / "out" / node).read_text() if (root / "out" / node).exists() else None
    shown += 1
    if got != want:
        wrong.append((text, value, got, want))
t(f"{shown} of {len(cases)} values reach the command as they are", not wrong and shown > 450, "\n".join(map(repr, wrong[:12])))
t(f"{refused} that can't be quoted are refused with a message, and nothing else", 10 < refused < 100, refused)
t("the message says what to do", all("set a variable before" in e.get("hint", "") for e in failures.values()), list(failures.values())[:2])

# The same for names of files, and many of them.
files = pathlib.Path("files").absolute()
(files / "in").mkdir(parents=True)
stet("init", cwd=files)
NAMES = ["a b", "it's", 'say "x"', "a$HOME", "`id`", "a;b", "x}y", "-n", "#h"]
for n in NAMES:
    (files / "in" / n).write_text(f"<{n}>\n")
(files / "stet.toml").write_text("""name = "files"
[nodes.each]
each = "in/*"
command = 'cat "{in}" {in} > "{out}" && cat \\'{in}\\' >> \\'{out}\\''
produces = "out/{in.name}"
[nodes.many]
command = "cat {in} > {out}"
files = "in/*"
produces = "build/many"
""".replace("\\'", "'").replace("command = '", "command = '''").replace("'{out}''", "'{out}''''"))
r = stet("run", cwd=files)
t("names of files in quotes of every kind", r.returncode == 0 and all((files / "out" / n).read_text() == f"<{n}>\n" * 3 for n in NAMES), r.stdout + r.stderr)
t("many of them outside of quotes", r.returncode == 0 and sorted((files / "build/many").read_text().splitlines()) == sorted(f"<{n}>" for n in NAMES))
(files / "stet.toml").write_text("""name = "files"
[nodes.many]
command = 'cat "{in}" > {out}'
files = "in/*"
produces = "build/many"
""")
r = stet("run", cwd=files)
t("many files in quotes are refused", r.returncode == 1 and "stands for several files" in r.stdout + r.stderr, r.stdout + r.stderr)
(files / "stet.toml").write_text('name = "files"\n')
stet("run", cwd=files)
finish(files)
