#!/usr/bin/env python3
"""Random jobs, many at a time, that all write the same file names: they succeed, fail, crash, are killed, heal, print too little or too
much, while clients, adapters, supervisors, workers and jobs are killed at random. The oracle is what each run of a job has logged outside of stet, with a
number that no other run has. No call ever shows another call's bytes or those of a run that did not end well; what is kept never changes;
what is not kept runs again; a job whose supervisor nobody killed and that ends by itself runs once.

STET_SEED picks another run."""
import base64, json, os, pathlib, random, signal, subprocess, sys, time
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/scenario")
from tap import LONG, SHORT, STET, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
SEED = int(os.environ.get("STET_SEED", "1"))
print(f"# STET_SEED={SEED}")
rand = random.Random(SEED)
HERE = pathlib.Path.cwd()
LOG = HERE / "log"
ROUNDS = 400 if LONG else 15 if SHORT else 40
NAMES = ["out.bin", "a b/c.txt", "-x", "out.bin.2"]

JOB = r"""
import hashlib, json, os, signal, sys, time
[job] = json.load(sys.stdin)
nonce = os.urandom(8).hex()
def log(what):
    with open(job["log"], "a") as f:
        f.write(f"{what} {job['id']} {nonce} {os.getpid()}\n")
if os.listdir() != ["job.py"]:
    log("DIRTY")
log("BEGAN")
seen = sum(line.split()[:2] == ["BEGAN", job["id"]] for line in open(job["log"]))
for name in job["files"]:
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "wb") as f:
        half = job["size"] // 2
        f.write(b"%s %s " % (job["id"].encode(), nonce.encode()) + b"x" * half)
        f.flush()
        time.sleep(job["sleep"] / 2)
        f.write(b"y" * (job["size"] - half))
time.sleep(job["sleep"] / 2)
print(nonce, file=sys.stderr)
end = job["end"]
if end == "heals":
    end = "ok" if seen > 1 else "75"
log("ENDED-" + end)
if end == "missing":
    os.remove(job["files"][0])
if end == "garbage":
    print("{")
elif end != "silent":
    print(json.dumps({"id": job["id"], "nonce": nonce}))
sys.stdout.flush()
if end.isdigit():
    sys.exit(int(end))
if end.startswith("SIG"):
    os.kill(os.getpid(), getattr(signal, end))
"""

# What a job ends with, and what becomes of it: kept or not, tried again or not.
KEPT = {"ok", "silent", "3", "1", "missing", "garbage"}
AGAIN = {"75", "SIGKILL", "SIGTERM", "heals"}
ENDS = ["ok"] * 6 + ["heals", "silent", "3", "1", "missing", "garbage", "75", "SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT"]


class Call:
    def __init__(self, number):
        self.id = f"job{number}"
        self.end = rand.choice(ENDS)
        self.files = rand.sample(NAMES, rand.randrange(1, 3))
        self.size = rand.choice([0, 1, 4096, 100000])
        self.remote = rand.random() < 0.3
        self.argument = json.dumps({"id": self.id, "log": str(LOG), "end": self.end, "files": self.files, "size": self.size, "sleep": rand.random() * 0.3})
        query = "".join("&file=" + "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in f) for f in self.files)
        self.words = ["--json", "call", "run", *(["--remote", f"file://{HERE}/shared.db"] if self.remote else []),
                      f"dml+exec://stet-exec-local/python3?arg=job.py{query}", self.argument]
        self.kept = set()     # nonces of answers that are kept
        self.disturbed = 0    # supervisors and jobs that were killed while it may have run


def runs():
    out = {}
    for line in LOG.read_text().splitlines() if LOG.exists() else []:
        what, name, nonce, pid = line.split()
        out.setdefault(name, {}).setdefault(nonce, []).append((what, int(pid)))
    return out


def start(call):
    return subprocess.Popen([STET, *call.words], cwd="p", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def work():
    return subprocess.Popen([STET, "worker", "--remote", f"file://{HERE}/shared.db", "-j", "3", "--lease", "1s"], cwd="w", stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
        return True
    except OSError:
        return False


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def supervisors():
    for d in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (d / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 1 and words[0].endswith(b"stet-supervise") and words[1].startswith(str(HERE).encode()):
            yield int(d.name)


wrong = []


def check(call, p):
    """An answer against what the runs have logged."""
    out, err = p.communicate()
    if p.returncode < 0:
        return
    try:
        answer = json.loads(out)
    except ValueError:
        wrong.append((call.id, call.end, "no answer", p.returncode, out, err))
        return
    mine = runs().get(call.id, {})
    ended = {n for n, lines in mine.items() if any(w.startswith("ENDED") for w, _ in lines)}
    if answer.get("ok"):
        value = answer["value"]
        contents = {}
        for name, link in value["files"].items():
            text = link["/"]["bytes@1"]
            contents[name] = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        nonces = {c.split(b" ")[1].decode() for c in contents.values()} | ({value["stdout"]["nonce"]} if call.end != "silent" else set())
        half = call.size // 2
        good = (call.end in ("ok", "silent", "heals") and sorted(contents) == sorted(call.files) and len(nonces) == 1 and nonces <= ended
                and all(c == f"{call.id} {min(nonces)} ".encode() + b"x" * half + b"y" * (call.size - half) for c in contents.values())
                and (call.end == "silent" or value["stdout"]["id"] == call.id) and (call.end != "silent" or value["stdout"] is None))
        if not good:
            wrong.append((call.id, call.end, "a result that no run gave", answer))
        call.kept |= {(True, n) for n in nonces}
    elif "failure" in answer:
        failure = answer["failure"]
        said = failure.get("stderr", "").strip()
        if said and said not in mine:
            wrong.append((call.id, call.end, "a failure that no run had", answer))
        if call.end in ("3", "1"):
            if failure.get("exit") == int(call.end):
                call.kept.add((False, said))
            elif not call.disturbed:
                wrong.append((call.id, call.end, "another failure", answer))
        elif call.end in ("missing", "garbage"):
            call.kept.add((False, failure["message"]))
        elif call.end in ("ok", "silent") and not call.disturbed:
            wrong.append((call.id, call.end, "a failure of what succeeds", answer))
    elif not call.disturbed and "error" in answer:
        wrong.append((call.id, call.end, "no end", answer, err))


for place in "p", "w":
    os.mkdir(place)
    stet("init", cwd=place)
    with open(f"{place}/.stet/config.toml", "a") as f:
        f.write('[calls]\nfirst = "0.01s"\nmost = "0.05s"\nattempts = 4\nlease = "1s"\n')
(HERE / "p/job.py").write_text(JOB)

calls, running, workers, kills = [Call(i) for i in range(max(8, ROUNDS // 3))], [], [], 0
for _ in range(ROUNDS):
    while len(workers) < 2:
        workers.append(work())
    call = rand.choice(calls)
    running.append((call, start(call)))
    time.sleep(rand.random() * 0.1)
    dice = rand.random()
    if dice < 0.25 and running:
        _, p = rand.choice(running)
        for child in children(p.pid) if rand.random() < 0.5 else []:
            kill(child)  # its adapter
        kill(p.pid)
        kills += 1
    elif dice < 0.32:
        kill(rand.choice(workers).pid)
        kills += 1
        # Another worker may run what it ran a second time.
        for c in calls:
            c.disturbed += c.remote
    elif dice < 0.42:
        for pid in list(supervisors())[:1]:
            for c in calls:
                c.disturbed += 1
            kills += kill(pid)
    elif dice < 0.5:
        for name, mine in runs().items():
            for nonce, lines in mine.items():
                if len(lines) == 1 and rand.random() < 0.3:
                    next(c for c in calls if c.id == name).disturbed += 1
                    try:
                        alive = b"job.py" in pathlib.Path(f"/proc/{lines[0][1]}/cmdline").read_bytes()
                    except OSError:
                        alive = False
                    kills += alive and kill(lines[0][1])
    workers = [w for w in workers if w.poll() is None]
    for one in [r for r in running if r[1].poll() is not None]:
        running.remove(one)
        check(*one)
while len(workers) < 2:
    workers.append(work())
for one in running:
    check(*one)

# Undisturbed from here on: everybody twice. What is kept is not run; what is not kept is, as often as the budget says. The first time a job may still run that
# was left behind, and then the call waits for that; otherwise nobody is answered with a failure of before. (A worker may be about to publish one.)
for call in calls:
    before = runs().get(call.id, {})
    left = any(len(lines) == 1 and pathlib.Path(f"/proc/{lines[0][1]}").exists() for lines in before.values())
    check(call, start(call))
    if not left and not call.remote and call.end not in KEPT | {"heals"} and len(runs().get(call.id, {})) == len(before):
        wrong.append((call.id, call.end, "an old failure", before))
for call in calls:
    before = len(runs().get(call.id, {}))
    check(call, start(call))
    more = len(runs().get(call.id, {})) - before
    expected = 0 if call.end in KEPT | {"heals"} else 4 if call.end in AGAIN else 1
    if more != expected:
        wrong.append((call.id, call.end, "ran once more" if not expected else "ran another number of times", more, expected))
for w in workers:
    w.kill()
    w.wait()

log = runs()
t(f"no answer was wrong, with {kills} kills", not wrong, wrong[:4])
several = {c.id: (c.end, c.kept) for c in calls if len(c.kept) > 1}
t("what is kept never changed", not several, several)
t("every call that can have a result has one", all(len(c.kept) == 1 for c in calls if c.end in KEPT | {"heals"}), [(c.id, c.end, c.kept) for c in calls])
often = {c.id: (c.end, len(log.get(c.id, {}))) for c in calls if not c.disturbed and c.end in KEPT and len(log.get(c.id, {})) > 1}
t("a job that nobody disturbed ran once", not often, often)
dirty = [n for n, mine in log.items() if any(w == "DIRTY" for lines in mine.values() for w, _ in lines)]
t("every job began in a directory with its script alone", not dirty, dirty)
for place in "p", "w":
    r = stet("check", cwd=place)
    t(f"stet check in {place}", r.returncode == 0, r.stdout + r.stderr)
finish(None)
