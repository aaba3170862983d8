#!/usr/bin/env python3
"""stet killed at the n-th system call of a run with commands, for many n: the next run ends well, the tree is right, and no command
has run twice, whether it was running, had ended, or had not begun. With `cache = false` as well: then nothing but the record and the journal
of the supervisor says that a command was done."""
import os, pathlib, random, shutil, subprocess, sys

STET, FAULTY = os.environ["STET"], os.environ["STET_FAULTY"]
SHORT, LONG = os.environ.get("STET_TEST_SHORT"), os.environ.get("STET_TEST_LONG")
os.environ["STET_SUPERVISE"] = os.path.join(os.environ["STET_BUILD"], "stet-supervise")
random.seed(3)
bases = [pathlib.Path("cached").absolute(), pathlib.Path("uncached").absolute()]
for base in bases:
    base.mkdir()
    (base / "in").write_text("1\n")
    more = "" if base == bases[0] else "cache = false\n"
    (base / "stet.toml").write_text('name = "c"\n' + "".join(
        f'[nodes.n{i}]\ncommand = "echo n{i} >> $LOG; cat {{in}} > {{out}}; echo n{i} >> {{out}}"\n'
        f'files = {{ in = "{"in" if i == 0 else f"$n{i - 1}.out"}" }}\nproduces = "o/{i}"\nenv = ["LOG"]\n{more}' for i in range(3)))
log = pathlib.Path("log").absolute()
count = bad = 0


def stet(program, where, **env):
    return subprocess.run([program, "run"], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                          env=dict(os.environ, LOG=str(log), **env))


for base in bases:
    subprocess.run([STET, "init"], cwd=base, stdout=subprocess.DEVNULL)
for call in ("write", "fsync", "rename", "unlink", "open", "sql", "spawn", "mkdir", "lock"):
    for action, base in (("kill", bases[0]), ("kill_after", bases[0]), ("kill", bases[1]), ("kill_after", bases[1])):
        n, step = 1, 1
        for attempt in range(400 if LONG else 2 if SHORT else 5):
            where = pathlib.Path("work").absolute()
            shutil.rmtree(where, ignore_errors=True)
            shutil.copytree(base, where)
            log.write_text("")
            first = stet(FAULTY, where, STET_FAULT=f"call={call},n={n},action={action}")
            if first.returncode == 2:
                print("# " + first.stdout.splitlines()[0])
                sys.exit(1)
            if first.returncode == 0:
                break  # it got through untouched
            second = stet(STET, where)
            count += 1
            ran = log.read_text().split()
            outputs = [(where / f"o/{i}").read_text() if (where / f"o/{i}").exists() else None for i in range(3)]
            want = ["1\nn0\n", "1\nn0\nn1\n", "1\nn0\nn1\nn2\n"]
            checked = subprocess.run([STET, "check"], cwd=where, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if second.returncode != 0 or outputs != want or sorted(ran) != ["n0", "n1", "n2"] or checked.returncode != 0:
                bad += 1
                print(f"not ok {count} - {base.name} {call} {n} {action}: {ran} {outputs}")
                print("\n".join("# " + line for line in (first.stdout + second.stdout + checked.stdout).splitlines()[:20]), flush=True)
            n += step if LONG else random.randrange(1, 2 + n * 2)
if not bad:
    print(f"ok {count} - {count} kills")
print(f"1..{count}")
sys.exit(1 if bad else 0)
