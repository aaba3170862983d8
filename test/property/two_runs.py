#!/usr/bin/env python3
"""Random pipelines that two or three `stet run` do at once, from nothing or after an edit: every output is right, no process fails, a further run has
nothing to do, and each command whose inputs changed is started exactly once, no other at all. The commands count themselves; most of them have
`cache = false`, so that no stored result hides a second start.

STET_SEED, STET_ROUNDS."""
import collections, os, pathlib, random, shutil, subprocess, sys, time

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
ROUNDS = int(os.environ.get("STET_ROUNDS", "200" if LONG else "6" if SHORT else "15"))
SEED = int(os.environ.get("STET_SEED", "1"))
SLOW = 4 if "sanitize" in STET else 1
ENV = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""))
root, log = pathlib.Path("p").absolute(), pathlib.Path("log").absolute()
count = bad = 0


def t(name, good, show=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(show).splitlines()[:60]), flush=True)


def command(r, name, text):
    """A command that tells when it begins and ends."""
    pause = r.choice(["", "sleep 0.05; ", "sleep 0.2; "])
    return f'command = "echo start {name} >> {log}; {pause}{text}; echo end {name} >> {log}"\nscripts = false\n'


def pipeline(r, files):
    """(text of stet.toml, function that tells what the outputs are, output -> name in the log)"""
    text, made, cached = 'name = "p"\n', {}, r.random() < 0.3
    more = "" if cached else "cache = false\n"
    names = {}
    if r.random() < 0.7:
        text += '[nodes.up]\neach = { one = "src/*.txt" }\n' + command(r, "up {one}", "tr a-z A-Z < {one} > {out}") + f'produces = "up/{{one.stem}}"\n{more}'
        text += "[nodes.all]\nfiles = { in = \"$up.out\" }\n" + command(r, "all", "cat {in} > {out}") + f'produces = "o/all"\n{more}'
        names = {f"up/{pathlib.Path(f).stem}": f"up {f}" for f in files}
        names["o/all"] = "all"
        if r.random() < 0.5:  # a pattern over outputs
            text += '[nodes.list]\nfiles = { in = "up/*" }\n' + command(r, "list", "cat {in} > {out}") + f'produces = "o/list"\n{more}'
            names["o/list"] = "list"
    for i in range(r.randrange(1, 5)):
        reads = r.choice(files) if not made or r.random() < 0.6 else r.choice(sorted(made))
        made[f"c{i}"] = reads
        named = reads if reads not in made else r.choice([f"${reads}.out", f"o/{reads}"])
        text += f'[nodes.c{i}]\nfiles = {{ in = "{named}" }}\n' + command(r, f"c{i}", "cat {in} > {out}") + f'produces = "o/c{i}"\n{more}'
        names[f"o/c{i}"] = f"c{i}"

    def outputs():
        want = {}
        if "[nodes.up]" in text:
            want = {f"up/{pathlib.Path(f).stem}": (root / f).read_text().upper() for f in files}
            want["o/all"] = "".join(want[f"up/{pathlib.Path(f).stem}"] for f in sorted(files))
        if "[nodes.list]" in text:
            want["o/list"] = want["o/all"]
        for name, reads in made.items():
            want[f"o/{name}"] = want[f"o/{reads}"] if reads in made else (root / reads).read_text()
        return want
    return text, outputs, names


def runs(r, number):
    log.write_text("")
    ps = []
    for _ in range(number):
        ps.append(subprocess.Popen([STET, "run", *r.choice([[], [], ["-j", "1"], ["-j", "8"]])], cwd=root, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENV))
        time.sleep(r.choice([0, 0, 0.02, 0.1, 0.3, r.random()]))
    said = [p.communicate(timeout=300 * SLOW)[0] for p in ps]
    return [p.returncode for p in ps], said, log.read_text().splitlines()


for number in range(ROUNDS):
    seed = SEED * 1000 + number
    r = random.Random(seed)
    shutil.rmtree(root, ignore_errors=True)
    (root / "src").mkdir(parents=True)
    files = [f"src/f{i}.txt" for i in range(r.randrange(2, 6))]
    text, outputs, names = pipeline(r, files)
    (root / "stet.toml").write_text(text)
    subprocess.run([STET, "init"], cwd=root, stdout=subprocess.DEVNULL, env=ENV, check=True)
    before = {}
    for step in ["from nothing", "after an edit"]:
        for f in files if step == "from nothing" else r.sample(files, r.randrange(1, len(files) + 1)):
            (root / f).write_text(f"{f} {r.randrange(1000)}\n")
        status, said, lines = runs(r, r.choice([2, 2, 3]))
        show = "\n".join(said + lines) + "\n" + text
        want = outputs()
        have = {f: (root / f).read_text() if (root / f).exists() else None for f in want}
        t(f"seed {seed}, {step}: all are right", not any(status) and have == want, show)
        starts = collections.Counter(x[6:] for x in lines if x.startswith("start"))
        ends = collections.Counter(x[4:] for x in lines if x.startswith("end"))
        due = {names[f]: 1 for f in want if want[f] != before.get(f)}
        t(f"seed {seed}, {step}: each command that is due is done once", starts == due and ends == due, f"{dict(starts)}\n{show}")
        before = want
        after = subprocess.run([STET, "run"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENV)
        t(f"seed {seed}, {step}: nothing is left to do", after.returncode == 0 and "ran 0" in after.stdout, after.stdout + show)
    if bad:
        break
print(f"1..{count}")
sys.exit(1 if bad else 0)
