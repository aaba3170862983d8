#!/usr/bin/env python3
"""stet, its adapter, or the supervisor killed while a call runs, and Ctrl-C: the program runs once, its result is found, and only if
its supervisor is killed, too, does it run again."""
import os, pathlib, signal, subprocess, time
from tap import STET, answer, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
HERE = pathlib.Path.cwd()
LOCAL = "dml+exec://stet-exec-local/?command="


def start(*words):
    return subprocess.Popen([STET, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def until(good, seconds=20):
    end = time.monotonic() + seconds
    while not good() and time.monotonic() < end:
        time.sleep(0.01)
    return good()


def lines(path):
    return pathlib.Path(path).read_text().split() if os.path.exists(path) else []


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def job(name, seconds):
    """A program that says that it began, takes its time, and says that it ended."""
    return f"{LOCAL}echo+{name}+%3E%3E+{HERE}/began%3B+sleep+{seconds}%3B+echo+{name}+%3E%3E+{HERE}/ended%3B+echo+%24%24"


stet("init")

# stet is killed while its call runs.
p = start("call", "run", job("a", 1))
t("the program has begun", until(lambda: "a" in lines("began")))
p.kill()
p.wait()
live = answer("call", "list", "--state", "live")
t("the call is known", len(live.get("calls", [])) == 1, live)
r = answer("call", "run", job("a", 1))
t("the next one gets its result", r.get("ok") is True, r)
t("it ran once", lines("began") == ["a"] and lines("ended") == ["a"], (lines("began"), lines("ended")))
t("it is the attempt that was left", r.get("id") == live["calls"][0]["id"], r)
t("nothing is under way", answer("call", "list", "--state", "live").get("calls") == [])

# stet and its adapter are killed, again and again, until the call gets through.
function, kills = job("b", 0.8), 0
for _ in range(12):
    p = start("call", "run", function)
    until(lambda: children(p.pid) or p.poll() is not None)
    for child in children(p.pid):
        os.kill(child, signal.SIGKILL)
        kills += 1
    time.sleep(0.02 * (_ % 4))
    p.kill()
    p.wait()
r = answer("call", "run", function)
t("killed with its adapter, a dozen times, it gets through", r.get("ok") is True and kills > 0, (kills, r))
t("and ran once", lines("began").count("b") == 1, lines("began"))

# The adapter alone is killed: that is a transient failure, though a final one by its word would end the call.
p = start("call", "run", "--no-cache", job("c", 0.8), "--json")
t("another has begun", until(lambda: "c" in lines("began")))
p.kill()
p.wait()
left = answer("call", "list", "--state", "live")["calls"]
r = answer("call", "wait", left[0]["id"]) if left else {}
t("a call without cache is found by its id", r.get("ok") is True and lines("began").count("c") == 1, (r, lines("began")))

# Ctrl-C leaves it, and says how to wait for it.
p = start("call", "run", job("d", 1.2))
until(lambda: "d" in lines("began"))
p.send_signal(signal.SIGINT)
out, err = p.communicate()
t("Ctrl-C ends the waiting", p.returncode == 130 and "stet call wait" in err, (p.returncode, err))
id = err.split("stet call wait")[-1].split()[0] if "stet call wait" in err else "none"
r = answer("call", "wait", id)
t("as it says, the call can be waited for", r.get("ok") is True and lines("began").count("d") == 1, r)

# Two wait, the one that drives is killed.
function = job("e", 1)
first = start("call", "run", function, "--json")
until(lambda: "e" in lines("began"))
second = start("call", "run", function, "--json")
time.sleep(0.2)
first.kill()
first.wait()
out, err = second.communicate(timeout=60)
t("whoever waits goes on with it", second.returncode == 0 and lines("began").count("e") == 1, (out, err, lines("began")))

# The supervisor is killed with the program: then nobody knows how it ended, and it runs again.
function = f"{LOCAL}echo+f+%3E%3E+{HERE}/began%3B+echo+%24PPID+%24%24+%3E+{HERE}/pids%3B+test+-e+{HERE}/second+%7C%7C+sleep+60%3B+echo+1"
p = start("call", "run", function)
t("its supervisor is known", until(lambda: len(lines("pids")) == 2))
supervisor, program = map(int, lines("pids"))
pathlib.Path("second").touch()
os.kill(supervisor, signal.SIGKILL)
out, err = p.communicate(timeout=60)
t("a lost job runs again", p.returncode == 0 and lines("began").count("f") == 2, (out, err, lines("began")))
t("and what was left of the first is gone", until(lambda: not alive(program)))

# Twenty ask at once.
function = job("g", 0.5)
many = [start("call", "run", function, "--json") for _ in range(8)]
said = {p.communicate(timeout=120)[0].split('"value":')[-1] for p in many}
t("many who ask at once get one result", len(said) == 1 and all(p.returncode == 0 for p in many), said)
t("of one run", lines("began").count("g") == 1, lines("began"))
finish()
