#!/usr/bin/env python3
"""Inputs that change while commands run and others commit, commands that stet itself ends or can't start: nothing crashes, and none of it
is a failure of the command."""
import json, os, pathlib, signal, subprocess, time
from tap import STET, answer, finish, stet, t


def start(*words):
    return subprocess.Popen([STET, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)


def wait_for(path, seconds=20):
    end = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.01)
    return os.path.exists(path)


def write(path, text):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(text)


def read(path):
    return pathlib.Path(path).read_text() if os.path.exists(path) else None


def one(command, more=""):
    write("stet.toml", f'name = "p"\n[nodes.a]\ncommand = "{command}"\nfiles = {{ in = "x" }}\nproduces = "out"\n{more}')


stet("init")

# An input is edited under its command, while another process commits.
one("touch began; sleep 0.4; cat {in} > {out}")
write("x", "1")
p = start("run")
t("the command has begun", wait_for("began"))
write("x", "2")
for i in range(8):
    stet("set", "other/n", i)
said, _ = p.communicate()
t("the run ends well", p.returncode == 0 and "failed 0" in said, (p.returncode, said))
t("with what the input is now", read("out") == "2", read("out"))

# The same below a watch, with another watch beside it.
w = [start("run", "--watch"), start("file", "watch")]
for i in range(6):
    write("x", f"w{i}")
    stet("set", "other/n", 100 + i)
    time.sleep(0.15)
end = time.monotonic() + 20
while read("out") != "w5" and time.monotonic() < end:
    time.sleep(0.05)
t("a watch gets there", read("out") == "w5", read("out"))
for q in w:
    q.send_signal(signal.SIGTERM)
said = [q.communicate()[0] for q in w]
# The second one is refused if the first one watches the files already (5: busy).
t("and ends as it was asked to", w[0].returncode == 130 and w[1].returncode in (130, 5) and "failed 1" not in said[0], said)

# An input that never holds still: outdated, not failed.
one("echo again >> {in}; cat {in} > {out}")
r = answer("run")
t("an input that changes each time leaves its node outdated", r.get("failed") == 0 and r.get("aside") == 1 and r["problems"][0].get("outdated"), r)
r = stet("run")
t("and the run says which one it is", r.returncode == 1 and "outdated p/a: x changed" in r.stdout, r.stdout)
r = answer("status")
t("nothing is recorded as failed", r["pieces"][0]["failed"] == 0 and r["pieces"][0]["stands"] == 0, r)
one("cat {in} > {out}")
t("once it holds still the node runs", stet("run").returncode == 0 and read("out") == read("x"))

# What stet can't start was not tried. It runs when the trouble is gone, without being asked to.
write("stet.toml", 'name = "p"\n[nodes.a]\ncommand = "cat {in} > {out}"\nfiles = { in = "x" }\nproduces = "dir/out"\n')
write("dir", "in the way")
r = answer("run")
t("an output that can't be made room for is no failure of the command", r.get("failed") == 0 and r.get("aside") == 1, r)
os.remove("dir")
r = answer("run")
t("it runs when there is room", r.get("ran") == 1 and r.get("failed") == 0 and read("dir/out") == read("x"), r)
write("x", "home")
r = stet("run", env={"STET_HOME": "not/absolute"})
t("a wrong setting is told", r.returncode != 0 and "STET_HOME" in r.stdout + r.stderr, r.stdout + r.stderr)
r = answer("run")
t("and is no failure of the command", r.get("ran") == 1 and r.get("failed") == 0 and read("dir/out") == "home", r)

# Stopped, and the second signal ends stet itself at once: how the command ended then says nothing about it.
for signals in ([signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM], [signal.SIGINT, signal.SIGKILL]):
    pathlib.Path("began").unlink(missing_ok=True)
    one("touch began; trap 'sleep 0.3; exit 7' TERM; sleep 1.5 & wait; cat {in} > {out}", "env = ['N']\n")
    write("x", f"stopped {len(signals)} {signals[-1]}")
    p = start("run")
    wait_for("began")
    for s in signals:
        p.send_signal(s)
        time.sleep(0.1)
    said, _ = p.communicate()
    if len(signals) == 1:
        t("a run that is stopped says so", p.returncode == 130, (p.returncode, said))
        states = [json.loads(f.read_text()) for f in pathlib.Path(".stet/runs").glob("*/state.json")]
        states.sort(key=lambda s: s["createdAt"])
        t("its record says that it was cancelled", states[-1]["summary"].get("cancelled") is True and
          all(k["status"] != "failed" for k in states[-1]["tasks"]), states[-1])
    time.sleep(0.6)
    one("cat {in} > {out}; exit 0" if len(signals) == 1 else "touch began; trap 'sleep 0.3; exit 7' TERM; sleep 1.5 & wait; cat {in} > {out}", "env = ['N']\n")
    r = answer("run")
    t(f"{len(signals)} signals: the command runs again, and has not failed", r.get("failed") == 0 and r.get("ran") == 1 and read("out") == read("x"), r)

# Ending a watch does not repeat what it said.
one("cat {in} > {out}")
p = start("run", "--watch")
end = time.monotonic() + 20
while read("out") != read("x") and time.monotonic() < end:
    time.sleep(0.05)
time.sleep(0.5)
stet("piece", "stop", "p")
said, _ = p.communicate()
t("a watch that is stopped by its piece says its summary once", p.returncode == 0 and said.count("ran ") == 1, said)
finish()
