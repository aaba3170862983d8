#!/usr/bin/env python3
"""Many processes in two projects make the same calls at the same time, through one shared repository and without, and are killed at
random, with their adapters and workers. Whatever happens: a key's program runs once where its supervisor lives, everybody who gets an
answer gets the same, and in the end everybody gets one.

STET_SEED picks another run."""
import json, os, pathlib, random, signal, subprocess, sys, time
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/scenario")
from tap import LONG, SHORT, STET, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
SEED = int(os.environ.get("STET_SEED", "1"))
print(f"# STET_SEED={SEED}")
rand = random.Random(SEED)
HERE = pathlib.Path.cwd()
KEYS, ROUNDS = 5, 400 if LONG else 15 if SHORT else 40


def job(name, log):
    """Says that it ran, takes a moment, and gives something that no second run would give."""
    text = f"echo {name} >> {log}; sleep 0.{rand.randrange(1, 4)}; echo \\\"$(cat /proc/sys/kernel/random/uuid)\\\""
    return "dml+exec://stet-exec-local/?command=" + "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in text)


def start(words, cwd):
    return subprocess.Popen([STET, *words], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill(p):
    """The process, and often first what it has just started."""
    for child in children(p.pid) if rand.random() < 0.6 else []:
        try:
            os.kill(child, signal.SIGKILL)
        except OSError:
            pass
    p.kill()


def lines(path):
    return path.read_text().split() if path.exists() else []


def storm(name, places, words, helpers):
    """Calls, and kills, until ROUNDS are over; then everybody once more, undisturbed."""
    log = HERE / f"log.{name}"
    keys = {f"{name}{i}": job(f"{name}{i}", log) for i in range(KEYS)}
    answers, running, aides, killed, wrong = {}, [], [], 0, []

    def take(key, p):
        out, err = p.communicate()
        if p.returncode == 0:
            answers.setdefault(key, set()).add(json.loads(out)["value"])
        elif p.returncode > 0 and "ended by signal 9" not in out:
            wrong.append((key, p.returncode, out, err))

    for _ in range(ROUNDS):
        while len(aides) < helpers:
            aides.append(start(["worker", "--remote", *words[1:2], "-j", "2", "--lease", "0.5s"], places[0]))
        key = rand.choice(list(keys))
        running.append((key, start(["--json", "call", "run", *words, keys[key]], rand.choice(places))))
        time.sleep(rand.random() * 0.06)
        if running and rand.random() < 0.6:
            _key, p = rand.choice(running)
            kill(p)
            killed += 1
        if aides and rand.random() < 0.15:
            aides.pop().kill()  # not its children: those are the supervisors of what it runs
        for one in [r for r in running if r[1].poll() is not None]:
            running.remove(one)
            take(*one)
    while helpers and len(aides) < helpers:
        aides.append(start(["worker", "--remote", *words[1:2], "-j", "2", "--lease", "0.5s"], places[0]))
    for key, p in running:
        take(key, p)
    last = [(key, start(["--json", "call", "run", *words, keys[key]], place)) for key in keys for place in places]
    for key, p in last:
        take(key, p)
        if p.returncode != 0:
            wrong.append((key, p.returncode))
    for p in aides:
        p.kill()
        p.communicate()
    ran = lines(log)
    t(f"{name}: nothing went wrong but what was killed", not wrong, wrong[:5])
    t(f"{name}: everybody got one answer to each call", all(len(a) == 1 for a in answers.values()) and len(answers) == KEYS, answers)
    t(f"{name}: each program ran once, though {killed} callers were killed", sorted(ran) == sorted(keys), sorted(ran))


for place in "p", "q":
    os.mkdir(place)
    stet("init", cwd=place)
    with open(f"{place}/.stet/config.toml", "a") as f:
        f.write('[calls]\nfirst = "0.01s"\nmost = "0.05s"\nattempts = 50\n')
storm("own", ["p"], [], 0)
# Workers all of one project: what one leaves behind the next goes on with.
storm("shared", ["p", "q"], ["--remote", f"file://{HERE}/shared.db"], 2)
for place in "p", "q":
    r = stet("check", cwd=place)
    t(f"stet check in {place}", r.returncode == 0, r.stdout + r.stderr)
finish(None)
