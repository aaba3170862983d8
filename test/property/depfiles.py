#!/usr/bin/env python3
"""Dependency files with names that need escapes, as gcc, clang and ninja's generators write them: stet follows at least every file that was meant, and
at least every file that ninja reads from the same text (asked with `ninja -t deps`, where ninja is installed).

STET_SEED, STET_STEPS (texts)."""
import json, os, pathlib, random, shutil, subprocess, sys, urllib.parse

STET = os.environ["STET"]
SEED = int(os.environ.get("STET_SEED", "1"))
STEPS = int(os.environ.get("STET_STEPS", 0)) or (2000 if os.environ.get("STET_TEST_LONG") else 60)
rnd = random.Random(SEED)
PARTS = ["a", "b", "7", ".h", "-", "_", "é", "/", " ", "#", "$", ":", "\\", "%", "=", "~", "@", "+", "(", ","]


def name():
    text = "".join(rnd.choice(PARTS) for _ in range(rnd.randrange(1, 6)))
    return "n" + text.replace("//", "/").rstrip("/") + rnd.choice(["", "x"])


def gcc(n):  # libcpp: backslashes are doubled before white space alone
    out, run = "", 0
    for c in n:
        if c == " ":
            out += "\\" * run + "\\"
        elif c == "#":
            out += "\\"
        elif c == "$":
            out += "$"
        run = run + 1 if c == "\\" else 0
        out += c
    return out


def colons(n):  # those who escape a colon, too; a drive's is left alone
    return gcc(n).replace(":", "\\:")


def text(names, write):
    out = "out:"
    for n in names:
        out += rnd.choice([" ", "  ", " \\\n ", " \\\r\n  ", "\t"]) + write(n)
    out += rnd.choice(["\n", "", "\r\n", "\n# done\n"])
    if rnd.random() < 0.3:
        out += "".join(f"\n{write(n)}:\n" for n in names if not n.endswith((":", "\\")))
    return out


texts, meant = [], []
for i in range(STEPS):
    write = rnd.choice([gcc, gcc, colons])
    names = [n for n in (name() for _ in range(rnd.randrange(1, 6))) if not n.endswith("\\") and (write is gcc or "\\" not in n)]
    texts.append(text(names, write))
    meant.append({os.path.normpath(n) for n in names})

root = pathlib.Path("q")
shutil.rmtree(root, ignore_errors=True)
(root / "d").mkdir(parents=True)
toml, ninja = "name = 'p'\n", "rule r\n  command = cp d/$out d/$out.d && touch $out\n  depfile = d/$out.d\n  deps = gcc\n"
for i, body in enumerate(texts):
    (root / f"d/o{i}").write_bytes(body.replace("out:", f"o{i}:", 1).encode())
    toml += f"[nodes.n{i}]\ncommand = 'cp {{in}} e/{i}.d; : > {{out}}'\nfiles = 'd/o{i}'\nproduces = 's/{i}'\ndepfile = 'e/{i}.d'\n"
    ninja += f"build o{i}: r\n"
(root / "stet.toml").write_text(toml)
subprocess.run([STET, "init"], cwd=root, stdout=subprocess.DEVNULL, check=True)
r = subprocess.run([STET, "run", "-k"], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True)
print(f"1..{2 if not shutil.which('ninja') else 3}")
print(f"{'ok' if r.returncode == 0 else 'not ok'} 1 - every text is read")
if r.returncode:
    print("\n".join("# " + line for line in (r.stdout + r.stderr).splitlines()[:20]))


def followed(i):
    v = json.loads(subprocess.run([STET, "action", "show", "p", f"n{i}", "--json"], cwd=root, capture_output=True, text=True, check=True).stdout)
    cells = [x["cell"] for x in v["reads"] if x["cell"].startswith("file:")]
    return {urllib.parse.unquote(c[5:].replace("~1", "/").replace("~0", "~")) for c in cells}


have = [followed(i) for i in range(STEPS)]
bad = [(texts[i], sorted(meant[i] - have[i]), sorted(have[i])) for i in range(STEPS) if meant[i] - have[i]]
print(f"{'not ok' if bad else 'ok'} 2 - every name that was written is followed")
for b in bad[:5]:
    print("#", *map(ascii, b))
status = bool(bad) or r.returncode != 0
if shutil.which("ninja"):
    (root / "build.ninja").write_text(ninja)
    subprocess.run(["ninja", "-k0", "-j2"], cwd=root, capture_output=True)
    said = subprocess.run(["ninja", "-t", "deps"], cwd=root, capture_output=True).stdout.decode(errors="replace")
    bad, at = [], None
    for line in said.splitlines():
        if line.startswith("    ") and at is not None:
            n = os.path.normpath(line[4:])
            if n not in have[at] and "\\$" not in texts[at]:  # which ninja takes for two names
                bad.append((texts[at], n, sorted(have[at])))
        elif line.startswith("o") and ": #deps" in line:
            at = int(line[1:line.index(":")])
    print(f"{'not ok' if bad or not said else 'ok'} 3 - what ninja reads is followed")
    for b in bad[:5]:
        print("#", *map(ascii, b))
    status |= bool(bad)
sys.exit(status)
