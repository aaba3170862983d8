#!/usr/bin/env python3
"""A driver is killed at 100 random points of a real pattern and resumed after each: the result is that of an undisturbed run, and no action that stands runs again."""
import json, os, pathlib, random, shutil, signal, subprocess, sys, time

STET, FAULTY, HERE = os.environ["STET"], os.environ["STET_FAULTY"], pathlib.Path.cwd()
BUILD = os.environ["STET_BUILD"]  # the program with faults lies elsewhere than what it starts and loads
os.environ.update(STET_SUPERVISE=f"{BUILD}/stet-supervise", STET_PLUGINS=f"{BUILD}/lib/stet")
POINTS = 10 if os.environ.get("STET_TEST_SHORT") else 100
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    for line in str(note).splitlines()[-20:] if note and not good else []:
        print("# " + line)


def run(program, cwd, *words, **env):
    return subprocess.run([program, *words], cwd=cwd, env=dict(os.environ, STET_HOME=str(HERE / "home"), **env), capture_output=True, text=True, timeout=120)


def value(cwd, *words):
    done = run(STET, cwd, "--json", *words)
    if done.returncode not in (0, 1):
        raise SystemExit(f"not ok {count + 1} - stet {words}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def killed_after(cwd, seconds):
    driver = subprocess.Popen([STET, "run"], cwd=cwd, env=dict(os.environ, STET_HOME=str(HERE / "home")), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        driver.wait(seconds)
    except subprocess.TimeoutExpired:
        driver.kill()
    return driver.wait() == -signal.SIGKILL


# Commands over files, JavaScript over what they print, and a chain of small functions with verifiers beside it: what comes later stands on what came before.
# Each command leaves a line in a file that belongs to nobody, each time that it is started.
began = HERE / "began"
toml = ['name = "real"', "[argument]", "start = 1"]
for i in range(5):
    source = '"in.txt"' if i == 0 else f'"$step{i - 1}.out"'
    toml += [f"[nodes.step{i}]", f"""command = "echo step{i} >> '{began}'; sleep 0.01; cat {{in}} > {{out}}; echo line {i} >> {{out}}\"""", f"files = {{ in = {source} }}",
             f'produces = {{ out = "build/{i}.txt" }}']
toml += ["[nodes.size]", f"""command = "echo size >> '{began}'; wc -l < {{in}}\"""", 'files = { in = "$step4.out" }', 'stdout = "json"',
         "[nodes.twice]", "javascript = '({size, start}) => ({lines: size * 2, list: Array.from({length: size}, (_, i) => i + start)})'",
         'inputs = { size = "$size/stdout", start = "$argument/start" }',
         "[nodes.total]", "javascript = '({list}) => list.reduce((a, b) => a + b, 0)'", 'inputs = { list = "$twice/list" }']
previous = "$total"
for i in range(12):
    toml += [f"[nodes.n{i}]", f'ref = "{"sum" if i % 3 else "multiply"}"', f'inputs = {{ a = "{previous}", b = {i + 1} }}',
             f"[nodes.side{i}]", 'ref = "multiply"', f'inputs = {{ a = "$n{i}", b = 2 }}', *(["verifier = true"] if i % 5 == 1 else [])]
    previous = f"$n{i}"
toml += ["[result]", 'end = "$n11"', 'lines = "$twice/lines"', 'text = "$step4/files/out"', *(f'side{i} = "$side{i}"' for i in range(12))]
total, commands = sum(line.startswith("[nodes.") for line in toml), sorted([*(f"step{i}" for i in range(5)), "size"])
fresh = HERE / "fresh"
fresh.mkdir()
run(STET, fresh, "init")
(fresh / "in.txt").write_text("the first line\n")
(fresh / "stet.toml").write_text("\n".join(toml) + "\n")


def project(name):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(fresh, path)
    return path


def starts():
    return began.read_text().split() if began.exists() else []


whole = project("whole")
counted = HERE / "count"
began_at = time.monotonic()
done = run(FAULTY, whole, "--json", "run", STET_FAULT="call=durable", STET_FAULT_COUNT=str(counted))
took = time.monotonic() - began_at
test("undisturbed it completes, and each command runs once", done.returncode == 0 and sorted(starts()) == commands, [done.stdout + done.stderr, starts()])
calls = int(counted.read_text().split()[0])
expected = value(whole, "piece", "pull", "real")["result"]
test("there are enough points to be killed at", calls > 10, calls)
randomly = random.Random(20261115)
bad, resumed, killed, again = [], 0, 0, 0
for k in range(POINTS):
    work = project("work")
    time.sleep(0.02)  # in.txt is old
    began.unlink(missing_ok=True)
    if k % 2:  # before a call that changes the disk
        at = f"call {1 + randomly.randrange(calls)}"
        killed += run(FAULTY, work, "run", STET_FAULT=f"call=durable,n={at.split()[1]},action=kill").returncode == -9
    else:  # at any moment
        moment = randomly.random() * took
        at = f"{moment:.3f} s"
        killed += killed_after(work, moment)
    standing = run(STET, work, "--json", "action", "list", "real", "--state", "stands", "--limit", "1000")
    stands = {a["action"] for a in json.loads(standing.stdout)["actions"]} if standing.returncode == 0 else set()
    before = starts()
    shown = value(work, "registry", "show")
    if shown["counts"]["unreadable"] or shown["problems"]:
        bad.append(f"{at}: a state is not whole: {shown['freshness']['unreadableRuns']}")
    open_runs = [r for r in shown["index"]["records"] if r["lifecycle"] not in ("completed",)]
    if open_runs:
        resumed += 1
        drive = value(work, "runs", "resume", open_runs[0]["runId"], "--drive")["drive"]
        ran = drive["ran"]
        if drive["status"] != "completed":
            bad.append(f"{at}: the resumed drive is {drive}")
        after = value(work, "runs", "show", open_runs[0]["runId"])["record"]["lifecycle"]
        if after != "completed":
            bad.append(f"{at}: the resumed run is {after}")
    else:
        ran = value(work, "run")["ran"]
    # All that did not stand had to run, or the result would not be there: so nothing else ran if the numbers add up. Commands are seen themselves.
    if ran + len(stands) != total:
        bad.append(f"{at}: {len(stands)} stood, and {ran} of {total} ran")
    later = starts()[len(before):]
    if stands & set(later):
        bad.append(f"{at}: {stands & set(later)} stood and was started again")
    if sorted(set(starts())) != commands:
        bad.append(f"{at}: only {starts()} was ever started")
    again += len(starts()) - len(set(starts()))
    pulled = value(work, "piece", "pull", "real")
    if pulled["result"] != expected or pulled["ran"] != 0:
        bad.append(f"{at}: the result is {pulled['result']}, or {pulled['ran']} ran once more")
test(f"killed at {killed} of {POINTS} points, {resumed} runs resumed: each ended as the undisturbed one, and what stood did not run again",
     not bad and killed > POINTS // 2 and resumed > POINTS // 20, "\n".join(bad))
# Each command follows at once on the command that makes its input. What that input was when the command began is in the journal.
test(f"a command that was under way is taken up, not started again ({again} of {killed} kills)", again == 0, again)
test("stet check finds nothing", run(STET, HERE / "work", "check").returncode == 0)
print(f"1..{count}")
sys.exit(failed != 0)
