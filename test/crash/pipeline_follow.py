#!/usr/bin/env python3
"""stet killed at any point of a run that looks for files which are not there: those that a dependency file names, and those that a node
which is new in the pattern reads. Whenever it was, a later run sees the file when it comes."""
import os, pathlib, random, shutil, subprocess, sys

STET, FAULTY = os.environ["STET"], os.environ["STET_FAULTY"]
SHORT, LONG = os.environ.get("STET_TEST_SHORT"), os.environ.get("STET_TEST_LONG")
os.environ["STET_SUPERVISE"] = os.path.join(os.environ["STET_BUILD"], "stet-supervise")
random.seed(5)
log = pathlib.Path("log").absolute()
count = bad = 0


def stet(program, where, *words, **env):
    return subprocess.run([program, "run", "-k", *words], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          env=dict(os.environ, LOG=str(log), **env))


def base(name, before, after):
    """A project that was run with one pattern, and has another now."""
    where = pathlib.Path(name).absolute()
    where.mkdir()
    subprocess.run([STET, "init"], cwd=where, stdout=subprocess.DEVNULL)
    (where / "in").write_text("1\n")
    for text in (before, after):
        (where / "stet.toml").write_text('name = "c"\n' + text)
        if text is before:
            stet(STET, where)
    return where


OLD = '[nodes.old]\ncommand = "cat {in} > {out}"\nfiles = "in"\nproduces = "o/old"\n'
DEP = ('[nodes.dep]\ncommand = "echo dep >> $LOG; cat {in} > {out}; test ! -e found || cat found >> {out}; echo \\"o/dep: in found\\" > o/dep.d"\nfiles = "in"\n'
       'produces = "o/dep"\ndepfile = "o/dep.d"\nenv = ["LOG"]\n')
NEW = '[nodes.new]\ncommand = "cat {in} > {out}"\nfiles = { in = ["later", "many/*"] }\nproduces = "o/new"\n'
cases = [("dep", base("dep", OLD, OLD + DEP), "found", "o/dep", "1\nit is here\n"), ("new", base("new", OLD, OLD + NEW), "later", "o/new", "it is here\n")]
for name, source, missing, output, want in cases:
    where = pathlib.Path("work").absolute()

    def fresh():
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(source, where, symlinks=True)
        log.write_text("")

    def calls(what):
        fresh()
        stet(FAULTY, where, STET_FAULT=what, STET_FAULT_COUNT=str(log.parent / "calls"))
        return int((log.parent / "calls").read_text().split()[0])

    every, index = "call=durable", "call=durable,path=files/main"
    number = calls(every)
    places = [(every, n) for n in (range(1, number + 1) if LONG else sorted(random.sample(range(1, number + 1), min(number, 2 if SHORT else 5))))]
    places += [(index, n) for n in range(1, calls(index) + 1)]  # what is stored and not yet in the index
    if SHORT:
        places = places[:2] + places[-2:]
    for what, n in places:
        fresh()
        stet(FAULTY, where, STET_FAULT=f"{what},n={n},action=kill")
        stet(STET, where)
        (where / missing).write_text("it is here\n")
        last = stet(STET, where)
        count += 1
        got = (where / output).read_text() if (where / output).exists() else None
        if got != want or last.returncode != 0:
            bad += 1
            print(f"not ok {count} - {name}: {what}, killed at {n}: {got!r}")
            print("\n".join("# " + line for line in last.stdout.splitlines()[:20]), flush=True)
        if count % 10 == 0:
            checked = subprocess.run([STET, "check"], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            count += 1
            if checked.returncode != 0:
                bad += 1
                print(f"not ok {count} - {name}: stet check after a kill at {n}\n# {checked.stdout}", flush=True)
    # And when the index is gone altogether.
    fresh()
    stet(STET, where)
    shutil.rmtree(where / ".stet/local/files")
    stet(STET, where, "old")
    (where / missing).write_text("it is here\n")
    stet(STET, where)
    count += 1
    got = (where / output).read_text() if (where / output).exists() else None
    if got != want:
        bad += 1
        print(f"not ok {count} - {name}: the index was deleted: {got!r}")
if not bad:
    print(f"ok {count} - {count} checks")
print(f"1..{count}")
sys.exit(1 if bad else 0)
