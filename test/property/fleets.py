#!/usr/bin/env python3
"""Random fleets: pieces, queue entries with inputs, workers, reruns, resumes, archive marks, deletions and kills. After each step every run's record equals what
really executed. The commands count themselves: each appends its piece, node and inputs to a file that stet does not know of.

    fleets.py [SEED [STEPS]]

The model knows the argument of each piece (default, --set, --unset), the inputs of each entry and the argument of each run. It shares no code with
stet: lifecycles, resolutions and archive marks are derived here again, from the rules in docs/runs.md."""
import collections, json, os, pathlib, random, signal, subprocess, sys, time

sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/scenario")
from tap import LONG, SHORT, STET, answer, finish, stet, t  # noqa: E402

HERE = pathlib.Path.cwd()
OUT, PROJECT = HERE / "out", HERE / "project"
KEYS = ["n", "m"]
PIECES = ["a", "b"]


def pattern(name):
    """`calc` fails while there is a file for its input; `say` is an effect after it."""
    return f"""name = "{name}"
[argument]
n = 0
m = 0
[nodes.calc]
command = ["{OUT}/act", "{name}", "calc", "{{n}}", "{{m}}"]
inputs = {{ n = "$argument/n", m = "$argument/m" }}
cache = false
stdout = "text"
[nodes.say]
kind = "effect"
command = ["{OUT}/act", "{name}", "say", "{{n}}", "{{m}}"]
inputs = {{ n = "$argument/n", m = "$argument/m", after = "$calc/stdout" }}
[result]
calc = "$calc/stdout"
"""


ACT = f"""#!/bin/sh
echo "$*" >> {OUT}/log
[ -e {OUT}/slow ] && sleep 0.3
if [ "$2" = calc ] && [ -e {OUT}/bad-$1-$3 ]; then echo "no $3 today"; exit 3; fi
echo "$3 $4"
"""


class Fleet:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.steps = []
        self.over = {p: {} for p in PIECES}  # what --set made of the argument
        self.ended = {}  # bytes of runs that are completed
        self.archived = set()
        self.entries = {}  # queue entry: (piece, inputs)
        self.gone = {}  # deleted runs: their states

    def argument(self, piece):
        return dict({"n": 0, "m": 0}, **self.over[piece])

    def inputs(self):
        return {k: self.random.randrange(4) for k in KEYS if self.random.random() < 0.6}

    def words(self, flag, values):
        return [w for k, v in values.items() for w in (flag, f"{k}={v}")]

    def app(self, piece):
        return self.random.choice([piece, f"{piece}.toml"])

    # What happens. Each returns what to say of it.
    def run(self):
        piece, values = self.random.choice(PIECES), self.inputs() if self.random.random() < 0.4 else {}
        self.over[piece].update(values)
        stet("run", f"{piece}.toml", *self.words("--set", values), cwd=PROJECT)
        return f"run {piece} --set {values}"

    def unset(self):
        piece = self.random.choice(PIECES)
        for key in list(self.over[piece]):
            stet("run", f"{piece}.toml", "--unset", key, cwd=PROJECT)
        self.over[piece] = {}
        return f"unset {piece}"

    def add(self):
        for _ in range(self.random.randrange(1, 5)):
            piece, values = self.random.choice(PIECES), self.inputs()
            entry = answer("queue", "add", "--app", self.app(piece), *self.words("--input", values), cwd=PROJECT)
            self.entries[entry["id"]] = (piece, values)
        return f"queue add, {len(self.entries)} so far"

    def work(self):
        jobs = [self.random.randrange(1, 5) for _ in range(self.random.randrange(1, 3))]
        workers = [self.start("queue", "work", "-j", n) for n in jobs]
        if self.random.random() < 0.3:
            workers.append(self.start("run", f"{self.random.choice(PIECES)}.toml"))
        for w in workers:
            w.wait(120)
        return f"queue work, {jobs} workers, {len(workers) - len(jobs)} runs beside them"

    def start(self, *words):
        return subprocess.Popen([STET, *map(str, words)], cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)

    def kill(self):
        self.add()
        (OUT / "slow").touch()
        worker = self.start("queue", "work", "-j", self.random.randrange(1, 3))
        before = self.log().total()
        until = time.monotonic() + self.random.random()
        for _ in range(2000):
            if worker.poll() is not None or (time.monotonic() > until and self.log().total() > before):
                break
            time.sleep(0.01)
        how = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        if worker.poll() is None:
            os.kill(worker.pid, how)
        worker.wait(120)
        self.rest()
        (OUT / "slow").unlink()
        return f"kill a worker ({how.name})"

    def rest(self):
        """What a killed worker's commands still do is over when nothing more is written."""
        last, since = None, time.monotonic()
        while time.monotonic() - since < 1:
            now = self.log().total()
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)

    def fail(self):
        bad = OUT / f"bad-{self.random.choice(PIECES)}-{self.random.randrange(4)}"
        bad.unlink() if bad.exists() else bad.touch()
        return f"{bad.name} {'there' if bad.exists() else 'gone'}"

    def pick(self):
        runs = sorted(self.records())
        return self.random.choice(runs) if runs else None

    def rerun(self):
        run = self.pick()
        if not run:
            return "nothing to rerun"
        drive = ["--drive"] if self.random.random() < 0.7 else []
        r = answer("runs", "rerun", run, *self.words("--input", self.inputs() if self.random.random() < 0.5 else {}), *drive, cwd=PROJECT)
        return f"rerun {run} {drive} {r.get('error', '')}"

    def resume(self):
        run = self.pick()
        if not run:
            return "nothing to resume"
        record = self.records()[run]
        r = answer("runs", "resume", run, self.random.choice(["--drive", "--drive", "--once"]), cwd=PROJECT)
        if run in self.archived or record["lifecycle"] in ("completed", "resolved"):
            assert "error" in r and r["error"]["code"] == "conflict", (run, record["lifecycle"], r)
        return f"resume {run}, which was {record['lifecycle']}: {r.get('drive') or r.get('error')}"

    def archive(self):
        run = self.pick()
        if not run:
            return "nothing to archive"
        on = self.random.random() < 0.7
        stet("runs", "archive", run, *([] if on else ["--unarchive"]), cwd=PROJECT)
        (self.archived.add if on else self.archived.discard)(run)
        return f"archive {run} {on}"

    def delete(self):
        """The plan names what the rules allow, and nothing else goes; a plan of before is refused once a run has changed."""
        states = {run: json.loads(text) for run, text in self.states().items()}
        lives = {run: self.derived(s) for run, s in states.items()}
        records = self.records()
        waiting = {e["runId"] for e in answer("queue", "list", cwd=PROJECT)["entries"] if e["status"] in ("pending", "leased", "drained", "parked")}
        named = self.random.sample(sorted(states), min(len(states), self.random.randrange(1, 4))) if self.random.random() < 0.6 else []
        words = named or ["--max-bytes", 1, "--state", "completed", "--state", "resolved"]
        asked = set(named) or {r for r in states if lives[r] == "completed" or self.resolver(r, states, lives) if lives[r] in ("completed", "blocked", "failed")}
        mender = {r: records[r]["resolvedBy"] for r in states}
        ended = {r for r in asked if records[r]["derivedLifecycle"] in ("completed", "blocked", "failed") and not (r in self.archived and records[r]["loopStage"] not in ("done", "setup"))}
        goes = {r for r in ended if r not in waiting}
        while any(mender[r] in goes for r in set(states) - goes):
            goes -= {mender[r] for r in set(states) - goes}
        was_broken = {run: self.broken(run, states[run], records[run]) for run in goes}
        plan = answer("runs", "delete", *words, cwd=PROJECT)
        told = {r["runId"] for r in plan["runs"]}
        assert told == goes, ("the plan", sorted(told ^ goes), plan["kept"])
        assert self.states().keys() == states.keys(), "a plan has deleted something"
        refused = answer("runs", "delete", *words, "--apply", "0" * 12, cwd=PROJECT)
        assert refused["error"]["code"] == "conflict" and self.states().keys() == states.keys(), refused
        done = answer("runs", "delete", *words, "--apply", plan["plan"][:12], cwd=PROJECT)
        assert done["applied"] and set(states) - set(self.states()) == goes, ("deleted", done)
        for run in goes:
            self.gone[run] = (states[run], was_broken[run])
            self.ended.pop(run, None)
            self.archived.discard(run)
        return f"delete {named or words}: {sorted(goes)}"

    def broken(self, run, state, record):
        """It may have done more than it could write down."""
        half = record["lifecycle"] == "interrupted" or (run in self.archived and self.derived(state) in ("running", "queued"))
        return half or state["summary"].get("cancelled") or any(line["event"] == "resumed" for line in self.events(run))

    def refresh(self):
        stet("registry", "refresh", cwd=PROJECT)
        return "refresh"

    # What is there.
    def log(self):
        text = (OUT / "log").read_text() if (OUT / "log").exists() else ""
        return collections.Counter(text.splitlines())

    def states(self):
        found = {}
        for path in (PROJECT / ".stet/runs").glob("[!~]*/state.json"):
            found[path.parent.name] = path.read_bytes()
        return found

    def records(self):
        rows, cursor = {}, []
        while True:
            page = answer("runs", "search", "--scope", "repo", "--limit", "200", *cursor, cwd=PROJECT)
            rows.update((r["runId"], r) for r in page["records"])
            if not page["nextCursor"]:
                return rows
            cursor = ["--cursor", page["nextCursor"]]

    def derived(self, state):
        """The seed's rules, first match wins."""
        tasks = [task["status"] for task in state["tasks"]]
        if "running" in tasks:
            return "running"
        if any(f["status"] in ("open", "tasked") for f in state["feedback"]):
            return "blocked"
        if "failed" in tasks:
            return "failed"
        if tasks and set(tasks) <= {"completed", "skipped"}:
            return "completed"
        return "running" if "completed" in tasks else "queued"

    def resolver(self, run, states, lives):
        """The first run that completed after this one and did the same work."""
        def work(s):
            return s["piece"], s.get("argument")

        def own(s):
            return s["options"].get("ownArgument", False)

        def origin(i, s):
            return (s.get("provenance") or {}).get("originRunId", i)

        mine, best = states[run], None
        for other, state in states.items():
            if lives[other] != "completed" or state["updatedAt"] < mine["updatedAt"]:
                continue
            again = origin(other, state) == origin(run, mine)
            same = lives[run] == "blocked" and (work(state) == work(mine) or (state["piece"] == mine["piece"] and not own(state) and not own(mine)))
            if (again or same) and (best is None or state["updatedAt"] < states[best]["updatedAt"]):
                best = other
        return best

    def check(self):
        wrong = []
        raw = self.states()
        states = {run: json.loads(text) for run, text in raw.items()}
        records = self.records()
        if set(states) != set(records):
            wrong.append(f"records of {set(states) ^ set(records)}")
        for run, text in self.ended.items():
            if raw.get(run) != text:
                wrong.append(f"{run} was completed, and has changed")
        lives = {run: self.derived(s) for run, s in states.items()}
        # What executed, and what the records say did. A run that was left may have done more than it could write down.
        did, said, left = self.log(), collections.Counter(), []
        for run, s in states.items():
            record = records[run]
            if lives[run] != record["derivedLifecycle"]:
                wrong.append(f"{run} is {lives[run]}, its record says {record['derivedLifecycle']}")
            if lives[run] == "completed":
                self.ended.setdefault(run, raw[run])
            if (run in self.archived) != record["archived"]:
                wrong.append(f"{run} archived: {record['archived']}")
            self.count(s, said)
            if self.broken(run, s, record):
                left.append((s["piece"], s["argument"]))
            if record["actions"]["total"] != len([1 for task in s["tasks"] if task.get("kind") != "settle"] or [1] * s["summary"].get("ran", 0)):
                wrong.append(f"{run} has {record['actions']} actions")
        for s, was_broken in self.gone.values():
            self.count(s, said)
            if was_broken:
                left.append((s["piece"], s["argument"]))
        for line in set(did) | set(said):
            piece, node, n, m = line.split()
            loose = sum(1 for p, a in left if (p, str(a["n"]), str(a["m"])) == (piece, n, m))
            if not (did[line] == said[line] or (loose and abs(did[line] - said[line]) <= 2 * loose)):
                wrong.append(f"\"{line}\" ran {did[line]} times, the records say {said[line]}")
        # Failures.
        for run, s in states.items():
            life, record = lives[run], records[run]
            by = self.resolver(run, states, lives) if life in ("blocked", "failed") else None
            if record["resolvedBy"] != by and states.get(record["resolvedBy"], {}).get("updatedAt") != states.get(by, {}).get("updatedAt"):
                wrong.append(f"{run} resolved by {record['resolvedBy']}, not by {by}")
            want = "archived" if run in self.archived else "resolved" if by else "failed" if life == "blocked" else life
            if record["lifecycle"] != want and not (life in ("running", "queued") and record["lifecycle"] == "interrupted"):
                wrong.append(f"{run} is shown as {record['lifecycle']}, not as {want}")
        # The queue.
        for entry in answer("queue", "list", cwd=PROJECT)["entries"]:
            piece, values = self.entries[entry["id"]]
            run = states.get(entry["runId"])
            if entry["status"] in ("done", "failed") and entry["runId"] not in self.gone:
                life = lives.get(entry["runId"])
                good = run and run["piece"] == piece and all(run["argument"][k] == v for k, v in values.items()) and (entry["status"] == "done") <= (life == "completed")
                if not good:
                    wrong.append(f"entry {entry['id']} {values} is {entry['status']}, its run {entry['runId']} {life} with {run and run['argument']}")
        return wrong

    def count(self, state, said):
        for task in state["tasks"]:
            if task["id"] in ("calc", "say") and task["attempt"] > 0:
                said[f"{state['piece']} {task['id']} {state['argument']['n']} {state['argument']['m']}"] += task["attempt"]

    def events(self, run):
        path = PROJECT / ".stet/runs" / run / "events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def arguments(self):
        """Nobody drives: each piece has its own argument again, at the latest after a run."""
        wrong = []
        for piece in PIECES:
            stet("run", f"{piece}.toml", cwd=PROJECT)
            got = answer("piece", "show", piece, cwd=PROJECT)
            if got["argument"] != self.argument(piece) or set(got["overridden"]) != set(self.over[piece]):
                wrong.append(f"the argument of {piece} is {got['argument']}, overridden {got['overridden']}, not {self.argument(piece)}, {self.over[piece]}")
        return wrong


def play(seed, steps):
    fleet = Fleet(seed)
    for path in (OUT, PROJECT, HERE / "home"):
        subprocess.run(["rm", "-rf", path], check=True)
        path.mkdir()
    (OUT / "act").write_text(ACT)
    (OUT / "act").chmod(0o755)
    stet("init", cwd=PROJECT)
    for piece in PIECES:
        (PROJECT / f"{piece}.toml").write_text(pattern(piece))
        stet("run", f"{piece}.toml", cwd=PROJECT)
    moves = [fleet.run] * 2 + [fleet.add] * 2 + [fleet.work] * 3 + [fleet.fail] * 2 + [fleet.rerun] * 2 + [fleet.resume] * 2 + [fleet.delete, fleet.archive, fleet.refresh, fleet.unset, fleet.kill]
    for i in range(steps):
        story = fleet.random.choice(moves)()
        fleet.steps.append(story)
        wrong = fleet.check()
        if i % 8 == 7 or i == steps - 1:
            wrong += fleet.arguments() + fleet.check()
        if wrong:
            return "\n".join(wrong[:12] + [f"step {n}: {s}" for n, s in enumerate(fleet.steps)][-18:])
    return ""


if __name__ == "__main__":
    os.environ["STET_HOME"] = str(HERE / "home")
    first, steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1, int(sys.argv[2]) if len(sys.argv) > 2 else 60 if LONG else 12 if SHORT else 25
    for seed in range(first, first + (100 if LONG else 1)):
        story = play(seed, steps)
        t(f"a fleet of seed {seed}, {steps} steps: every record is what executed", not story, story)
        if story:
            break
    finish(PROJECT)
