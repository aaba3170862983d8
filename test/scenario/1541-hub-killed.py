#!/usr/bin/env python3
"""Calls over PostgreSQL while the server is killed at random (as by `pg_ctl stop -m immediate`), and workers and callers, too: every call
ends with its result, and a job runs again only if its claim was taken over from a worker that was killed. With STET_TEST_LONG: 50 kills of
the server."""
import json, os, pathlib, random, re, signal, subprocess, threading, time
from tap import LONG, STET, answer, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
SOURCE = os.environ["STET_SOURCE"]
HERE = pathlib.Path.cwd()
SEED = int(os.environ.get("STET_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
KILLS, CALLS = (50, 300) if LONG else (3, 16)
print(f"# seed {SEED}")
dice = random.Random(SEED)


def server(*words):
    return subprocess.run([SOURCE + "/test/postgres", "pg", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


HUB = server("start") + "&schema=calls"
answer("hub", "init", HUB)
hosts = {}
for name in "alice", "bob", "carol", "dave":
    home = HERE / name
    (home / "p").mkdir(parents=True)
    env = {"HOME": str(home), "STET_HOME": str(home / "state"), "STET_JOBS": str(home / "jobs")}
    stet("init", cwd=home / "p", env=env)
    # A caller goes on for as long as the server may be away.
    (home / "p/.stet/config.toml").open("a").write('[calls]\nattempts = 1000\nfirst = "0.1s"\nmost = "1s"\nlease = "10s"\n')
    stet("trust", cwd=home / "p", env=env)
    hosts[name] = {"cwd": home / "p", "env": env}
RAN = HERE / "ran"
RAN.mkdir()


def start(*words, cwd, env):
    return subprocess.Popen([STET, *words], cwd=cwd, env=dict(os.environ, **env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def function(i):
    return f"dml+exec://stet-exec-local/?command=echo+x+%3E%3E+{RAN}/{i}%3B+sleep+0.{i % 3}%3B+echo+{i * i}"


done, left = {}, list(range(CALLS))
lock = threading.Lock()


def call(who):
    """Makes one call after the other; one that is killed is asked for again."""
    while True:
        with lock:
            if not left:
                return
            i = left.pop()
        for _ in range(50):
            p = start("call", "run", "--remote", HUB, "--retries", "500", function(i), "--json", **hosts[who])
            with lock:
                callers[who] = p
            out, said = p.communicate()
            try:
                done[i] = json.loads(out)["value"]
                break
            except (ValueError, KeyError, TypeError):
                done[i] = (p.returncode, out, said)


callers, killed = {}, {"server": 0, "worker": 0, "caller": 0}
workers = {name: start("worker", "--hub", HUB, "-j", "2", **hosts[name]) for name in ("carol", "dave")}
threads = [threading.Thread(target=call, args=(who,)) for who in ("alice", "bob")]
for thread in threads:
    thread.start()
while killed["server"] < KILLS or any(thread.is_alive() for thread in threads):
    time.sleep(dice.uniform(0.05, 0.5))
    if killed["server"] < KILLS:
        server("kill")
        killed["server"] += 1
        time.sleep(dice.choice([0, 0, 0.3]))
        server("start")
    if killed["worker"] < KILLS / 3 and dice.random() < 0.3:
        name = dice.choice(list(workers))
        workers[name].kill()
        workers[name].communicate()
        workers[name] = start("worker", "--hub", HUB, "-j", "2", **hosts[name])
        killed["worker"] += 1
    if killed["caller"] < KILLS / 3 and dice.random() < 0.3:
        with lock:
            if callers:
                dice.choice(list(callers.values())).kill()
                killed["caller"] += 1
    if not any(thread.is_alive() for thread in threads) and killed["server"] < KILLS:
        with lock:
            left.extend(range(CALLS, CALLS + 20))
            CALLS += 20
        threads = [threading.Thread(target=call, args=(who,)) for who in ("alice", "bob")]
        for thread in threads:
            thread.start()
for thread in threads:
    thread.join()
for p in workers.values():
    p.send_signal(signal.SIGTERM)
said = [p.communicate()[1] for p in workers.values()]
print(f"# killed: {killed}, calls: {CALLS}")
wrong = {i: v for i, v in done.items() if v != i * i}
t("every call has its result", len(done) == CALLS and not wrong, wrong)
runs = {i: len((RAN / str(i)).read_text()) // 2 if (RAN / str(i)).exists() else 0 for i in range(CALLS)}
claims = subprocess.run(["psql", "-qAtX", HUB.split("&schema")[0], "-c", "SELECT convert_from(body, 'utf8') FROM calls.claim"], stdout=subprocess.PIPE, text=True).stdout
owners = {}
for claim in map(json.loads, claims.splitlines()):  # attempt 1: queued, 2: taken; each further one: taken over
    owners[int(re.search(r"/ran/(\d+)", claim["request"]["function"].replace("%2F", "/"))[1])] = claim["attempt"] - 1
print(f"# taken over: {sum(owners.values()) - len(owners)}, jobs: {sum(runs.values())}")
t("a job runs once for each worker that the hub gave it to, at most", all(1 <= runs[i] <= owners.get(i, 0) for i in runs), {i: (runs[i], owners.get(i)) for i in runs})
t("which is one, but for workers that were killed", sum(owners.values()) - CALLS <= 4 * (killed["worker"] + killed["caller"]), owners)
status = answer("hub", "status", HUB)
t("nothing is left in the hub", (status["queued"], status["running"], status["lapsed"]) == (0, 0, 0) and status["workers"] <= killed["worker"], (status, said))
t("which is sound", answer("hub", "check", HUB).get("found") == 0)
for name in hosts:
    r = stet("check", **hosts[name])
    t(f"stet check of {name}", r.returncode == 0, r.stdout + r.stderr)
server("stop")
finish(None)
