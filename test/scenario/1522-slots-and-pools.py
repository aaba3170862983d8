#!/usr/bin/env python3
"""Slots of a project and pools of the machine: jobs wait for their places, and have given them back when they end, whichever way."""
import json, os, pathlib, subprocess, time
from tap import STET, answer, finish, stet, t

TOP = pathlib.Path.cwd().resolve()
for name in ("one", "two"):
    (TOP / name).mkdir()
    stet("init", cwd=name)
    with open(f"{name}/.stet/config.toml", "a") as f:
        f.write("\n[calls]\nslots = 3\n[calls.pools]\ngpu = 1\nwide = 4\n")
LOG = TOP / "log"
# Each job says when it begins and ends; the pipe is written in one piece.
JOB = f"echo + $0 >> {LOG}; sleep .1; echo - $0 >> {LOG}"


def start(project, tag, *options):
    words = [w for o in options for w in ("--with", o)]
    return subprocess.Popen([STET, "--json", "call", "run", *words, "--", "sh", "-c", JOB, tag], cwd=TOP / project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def most(tags):
    """How many of these ran at a time, and how many began."""
    now = top = began = 0
    for line in LOG.read_text().splitlines():
        sign, tag = line.split()
        if tag.startswith(tags):
            now += 1 if sign == "+" else -1
            began += sign == "+"
            top = max(top, now)
    return top, began


jobs = [start("one", f"a{i}") for i in range(8)]
ends = [json.loads(j.communicate(timeout=120)[0]) for j in jobs]
t("8 jobs, 3 at a time", most("a") == (3, 8) and all(e.get("ok") for e in ends), (most("a"), ends[:2]))
jobs = [start("one", f"b{i}", "cpus=2") for i in range(3)]
[j.communicate(timeout=120) for j in jobs]
t("jobs that take two slots each: one at a time", most("b") == (1, 3), most("b"))
jobs = [start(p, f"c{p}{i}", "pool=gpu") for p in ("one", "two") for i in range(3)]
[j.communicate(timeout=120) for j in jobs]
t("a pool is shared by all projects", most("c") == (1, 6), most("c"))
jobs = [start("one", f"d{i}", "pool=wide:2", "pool=wide") for i in range(3)] + [start("one", f"e{i}", "pool=wide") for i in range(3)]
[j.communicate(timeout=120) for j in jobs]
t("places of one pool add up", most("d") == (1, 3) and most("e")[1] == 3 and most(("d", "e"))[0] <= 3, (most("d"), most("e")))

for options, text in ((["pool=none"], "no such pool"), (["pool=gpu:2"], "wants 2 places of gpu, which has 1")):
    out = json.loads(start("one", "x", *options).communicate()[0])
    t(f"{options[0]} is a failure that is not kept", text in str(out.get("failure")) and not answer("call", "list", cwd="one")["calls"][0].get("cached"), out)
for options, text in ((["cpus=0"], "from 1 to 1024"), (["pool=a/b"], "NAME or NAME:N"), (["pool=gpu:"], "NAME or NAME:N")):
    r = start("one", "x", *options).communicate()
    t(f"{options[0]} is an error", text in r[0] + r[1], r)
with open("two/.stet/config.toml", "a") as f:
    f.write("bad = 0\n")
r = stet("call", "run", "--sh", "true", cwd="two")
t("and so is a pool without places", r.returncode == 2 and "calls.pools.bad" in r.stderr, r.stderr)

# A job whose supervisor is killed gives its places back; so does one that is cancelled while it waits, or while it runs.
GO = TOP / "go"
first = answer("call", "run", "--with", "pool=gpu", "--detach", "--sh", f"echo + f1 >> {LOG}; while ! test -e {GO}; do sleep .05; done", cwd="one")
while "f1" not in LOG.read_text():
    time.sleep(0.02)
waits, last = (answer("call", "run", "--with", "pool=gpu", "--detach", "--sh", f"echo + f{i} >> {LOG}", cwd="one") for i in (2, 3))
began = most("f")
stet("call", "cancel", waits["id"], cwd="one")
stet("call", "cancel", first["id"], cwd="one")
end = answer("call", "wait", last["id"], cwd="one")
t("a cancelled job gives its places back, and one that waits never begins", began == (1, 1) and end.get("ok") and most("f") == (2, 2), (began, end, most("f")))
stet("call", "run", "--sh", "true", cwd="one")
os.chdir("one")
finish()
