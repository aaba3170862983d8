#!/usr/bin/env python3
"""Walks the operation table: every operation is described, its examples run and answer in valid JSON, and a scenario uses it."""
import json, os, pathlib, re, shlex, shutil, subprocess, sys

STET = os.environ["STET"]
SOURCE = pathlib.Path(os.environ["STET_SOURCE"])
HERE = pathlib.Path.cwd()
RESERVED = {"json", "project", "quiet", "color", "help", "version"}
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if note and not good:
        for line in str(note).splitlines()[-30:]:
            print("# " + line)


def run(argv, cwd, home, stdin=None):
    env = dict(os.environ, STET_HOME=str(home), STET_CHECK_RESULTS="1")
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, input=stdin if stdin is not None else "")


# The prepared project: made once, copied for each example.
prepared, prepared_home = HERE / "prepared", HERE / "prepared-home"
prepared.mkdir()
made = run([STET, "init"], prepared, prepared_home)
if made.returncode == 0:
    made = run(["bash", str(SOURCE / "test/scenario/fixture.sh")], prepared, prepared_home)
test("the fixture can be prepared", made.returncode == 0, made.stdout + made.stderr)

table = json.loads(run([STET, "help", "--json"], HERE, prepared_home).stdout)["operations"]
scenarios = "\n".join(p.read_text() for p in sorted((SOURCE / "test/scenario").glob("*"))
                      if p.suffix in (".sh", ".py", ".mjs") and p.name not in ("lib.sh", "fixture.sh", "010-table.py"))
# Argument lists of other languages ("runs", "search") count as the words too.
scenarios += "\n" + re.sub(r"[\"'],\s*[\"']", " ", scenarios)
names = [op["name"] for op in table]
test("names are sorted and unique", names == sorted(set(names)), names)
test("names are `noun verb` or one word", all(re.fullmatch(r"[a-z]+( [a-z][a-z-]*)?", n) for n in names), names)


def style(op):
    """What is wrong with the words of one operation."""
    if not 8 <= len(op["summary"]) <= 80 or op["summary"].endswith(".") or not op["summary"][0].isupper():
        yield "its summary is one line with a capital, no full stop, at most 80 characters"
    if op["description"] and not re.search(r"[.:`)]\s*$", op["description"]):
        yield "its description ends in a full stop"
    if not op["examples"]:
        yield "it has an example"
    for example in op["examples"]:
        if not example["purpose"]:
            yield f"the example `{example['command']}` has a purpose"
        if (example["command"] + " ").split(" -")[0].split()[: len(op["name"].split())] != op["name"].split():
            yield f"the example `{example['command']}` begins with its name"
    seen = set()
    for param in op["params"]:
        if not re.fullmatch(r"[a-z][a-zA-Z0-9-]*", param["name"]) or param["name"] in RESERVED:
            yield f"{param['name']} is a name that is free"
        if not param["summary"] or param["summary"].endswith("."):
            yield f"{param['name']} has a summary without a full stop"
        letter = param.get("letter")
        if letter and (letter in seen or letter in "Chq"):
            yield f"-{letter} is free"
        seen.add(letter)
    if op["resultSchema"].get("type") != "object":
        yield "its result is an object"


def fresh():
    """A copy of the prepared project, always at the same path: the list of projects holds absolute ones."""
    work, home = HERE / "work", HERE / "work-home"
    for old, new in (prepared, work), (prepared_home, home):
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(old, new, symlinks=True)
    for registry in home.glob("registry/*.json"):
        registry.write_text(registry.read_text().replace(str(prepared), str(work)))
    return work, home


for op in table:
    name = op["name"]
    problems = list(style(op))
    test(f"{name}: described", not problems, "\n".join(problems))
    shown = run([STET, *name.split(), "--help"], HERE, prepared_home)
    test(f"{name}: --help", shown.returncode == 0 and op["summary"] in shown.stdout and "usage: stet " + name in shown.stdout,
         shown.stdout + shown.stderr)
    words = re.escape(name).replace(r"\ ", r"\s+")
    test(f"{name}: a scenario uses it", re.search(rf"(?<![\w-]){words}(?![\w-])", scenarios),
         f"no file of test/scenario runs `stet {name}`")
    bad = run([STET, *name.split(), "--no-such-flag", "--json"], HERE, prepared_home)
    try:
        refused = bad.returncode == 2 and json.loads(bad.stdout)["error"]["code"] == "invalid"
    except (ValueError, KeyError):
        refused = False
    test(f"{name}: an unknown flag is refused", refused, bad.stdout + bad.stderr)
    for number, example in enumerate(op["examples"], 1):
        # As a shell reads it: an example may hold quotes.
        plain = example["command"].replace(" --json", "")
        for how, command in ("JSON", "--json " + plain), ("text", plain):
            work, home = fresh()
            done = run(["bash", "-c", f"{shlex.quote(STET)} {command}"], work, home)
            note = f"stet {command}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            good = done.returncode == 0 and "\x1b" not in done.stdout
            if how == "JSON":
                # Each line is a value; the last is the result, which the program has checked against its schema.
                try:
                    values = [json.loads(line) for line in done.stdout.splitlines()]
                    good = good and isinstance(values[-1], dict) and "error" not in values[-1]
                except (ValueError, IndexError):
                    good = False
            test(f"{name}: example {number} as {how}: stet {plain}", good, note)
            after = run([STET, "check"], work, home)
            test(f"{name}: example {number} as {how} leaves a whole project", after.returncode == 0, after.stdout + after.stderr)
print(f"1..{count}")
sys.exit(failed != 0)
