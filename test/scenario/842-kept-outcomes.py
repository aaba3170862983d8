#!/usr/bin/env python3
"""Which outcomes of a job are kept: what it said itself, success and failure alike. What was done to it (killed, not started), what it
crashed of and what its limits ended is shown once and runs again next time; what failed for now is tried again; what can't be stored is a
failure that says so, and blocks nobody. The oracle is what each job has logged outside of stet."""
import json, os, pathlib, shutil, signal, subprocess, tempfile, time, urllib.parse
from tap import STET, answer, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
HERE = pathlib.Path.cwd()
ASIDE = pathlib.Path(tempfile.mkdtemp())  # not in the project: what a call names there would be part of it
REMOTE = f"file://{HERE}/shared.db"
LOCAL = "dml+exec://stet-exec-local/"


def command(name, text, more=""):
    return f"{LOCAL}?command={urllib.parse.quote(f'echo {name} >> {ASIDE}/log; {text}', safe='')}{more}"


def ran(name):
    return (ASIDE / "log").read_text().split().count(name) if (ASIDE / "log").exists() else 0


def until(good, seconds=60):
    end = time.monotonic() + seconds
    while not good() and time.monotonic() < end:
        time.sleep(0.01)
    return good()


def start(*words):
    return subprocess.Popen([STET, "--json", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*words):
    return answer("call", "run", *words)


stet("init")
with open(".stet/config.toml", "a") as f:
    f.write('[calls]\nattempts = 3\nfirst = "0.02s"\nmost = "0.05s"\n')

# Kept: what the job says itself.
for name, text, ok in (("zero", "echo 1", True), ("three", "exit 3", False), ("garbage", "echo {", False)):
    first, second = run(command(name, text)), run(command(name, text))
    t(f"{name}: kept", first.get("ok") is ok and second.get("state") == "pinned_hit" and ran(name) == 1, (first, second))

# Not kept, not tried again: what it crashed of, and its own limits.
for name, text, more in (("segv", "kill -SEGV $$", ""), ("abort", "kill -ABRT $$", ""), ("told", "sh -c 'kill -SEGV $$'; exit $?", ""),
                         ("late", "exec sleep 600", "&timeout=2s"), ("large", "exec dd if=/dev/zero of=x bs=4096 count=4096", "&max-file-size=8192"),
                         ("busy", "while :; do :; done", "&max-cpu=1s")):
    first = run(command(name, text, more))
    t(f"{name}: shown, after one run", first.get("ok") is False and ran(name) == 1, (first, ran(name)))
    t(f"{name}: and run again by the next call", run(command(name, text, more)).get("ok") is False and ran(name) == 2, ran(name))

# Not kept, tried again: signals from outside, and "not now".
for name, text, more in (("kill", "kill -KILL $$", ""), ("term", "kill -TERM $$", ""), ("shell", "sh -c 'kill -KILL $$'; exit $?", ""),
                         ("temporary", "exit 75", ""), ("asked", "exit 9", "&retry-on=8&retry-on=9")):
    first = run(command(name, text, more))
    t(f"{name}: tried as often as the budget says, then shown", first.get("ok") is False and ran(name) == 3, (first, ran(name)))
    shown = answer("call", "show", first["id"])
    t(f"{name}: every try is recorded", len(shown["execs"]) == 3, shown)
    t(f"{name}: fewer if that is asked for", run(command(name, text, more), "--retries", "0").get("ok") is False and ran(name) == 4, ran(name))
r = run(command("heals", f"test $(grep -c heals {ASIDE}/log) = 2 && echo 7 || exit 75"))
t("a job that heals has its result", r.get("value") == 7 and ran("heals") == 2, r)
t("which is kept", run(command("heals", f"test $(grep -c heals {ASIDE}/log) = 2 && echo 7 || exit 75")).get("state") == "pinned_hit")
t("a status that is none is refused", stet("call", "run", command("x", "true", "&retry-on=300")).returncode == 2)

# A job that somebody kills.
p = start("call", "run", command("victim", f"echo $$ > {ASIDE}/victim.$$; test $(grep -c victim {ASIDE}/log) = 1 && exec sleep 600; echo 8"))
t("the job has begun", until(lambda: any(f.read_text().strip() for f in ASIDE.glob("victim.*"))))
os.kill(int(next(ASIDE.glob("victim.*")).read_text()), signal.SIGKILL)
out, err = p.communicate(timeout=120)
t("a job that somebody killed is run again", json.loads(out).get("value") == 8 and ran("victim") == 2, (out, err))

# Not started.
(HERE / "bin").mkdir()
os.environ["PATH"] = f"{HERE}/bin:" + os.environ["PATH"]
r = run(f"{LOCAL}frobnicate")
t("a program that is not there", r.get("ok") is False and "could not be started" in r["failure"]["message"], r)
(HERE / "bin/frobnicate").write_text("#!/bin/sh\necho 6\n")
(HERE / "bin/frobnicate").chmod(0o755)
t("is looked for again", run(f"{LOCAL}frobnicate").get("value") == 6)

# Two wait for one job: both hear of its end, and it ran once.
text = f"while ! test -e {ASIDE}/go; do sleep 0.02; done; kill -SEGV $$"
two = [start("call", "run", command("both", text)), start("call", "run", command("both", text))]
t("it runs", until(lambda: ran("both") == 1))
time.sleep(0.3)
(ASIDE / "go").touch()
outs = [json.loads(p.communicate(timeout=120)[0]) for p in two]
t("both are told", all(o.get("failure", {}).get("signal") == 11 for o in outs), outs)

# What can't be stored.
odd = {"base64": "echo '{\"/\":{\"bytes@1\":\"!!!\"}}'", "keys": """printf '{"\\303\\251":1,"e\\314\\201":2}'""", "uri": "echo '{\"/\":{\"uri@1\":\"dml:x\"}}'",
       "long": "python3 -c 'print([0]*1100000)'"}
for name, text in odd.items():
    first, second = run(command(name, text)), run(command(name, text))
    t(f"{name}: a failure that says why, and is kept", first.get("ok") is False and "can't be stored" in first["failure"]["message"]
      and second.get("state") == "pinned_hit" and ran(name) == 1, (first, second, ran(name)))
calls = {name: start("call", "run", "--remote", REMOTE, command("far-" + name, text)) for name, text in odd.items()}
after = start("call", "run", "--remote", REMOTE, command("far-after", "echo 4"))
worker = subprocess.Popen([STET, "worker", "--remote", REMOTE, "-j", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
outs = {name: json.loads(p.communicate(timeout=300)[0]) for name, p in calls.items()}
t("callers of a worker are told", all("can't be stored" in o.get("failure", {}).get("message", "") for o in outs.values()), outs)
t("and the worker goes on", json.loads(after.communicate(timeout=300)[0]).get("value") == 4)

# A worker's job that is killed or fails for now is run again too, as often as the caller says.
far = run("--remote", REMOTE, command("far-kill", "kill -KILL $$"))
t("a worker's job that was killed is tried again", far.get("ok") is False and ran("far-kill") == 3, (far, ran("far-kill")))
t("and not kept", run("--remote", REMOTE, command("far-kill", "kill -KILL $$")).get("ok") is False and ran("far-kill") == 6, ran("far-kill"))
far = run("--remote", REMOTE, command("far-heals", f"test $(grep -c far-heals {ASIDE}/log) = 2 && echo 7 || exit 75"))
t("and what heals there has its result", far.get("value") == 7 and ran("far-heals") == 2, far)
(HERE / "script.sh").write_text("echo 11\n")
(HERE / "elsewhere").mkdir()
stet("init", cwd="elsewhere")
worker.terminate()
worker.wait()
worker = subprocess.Popen([STET, "worker", "--remote", REMOTE], cwd="elsewhere", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
far = run("--remote", REMOTE, f"{LOCAL}sh?arg=script.sh")
t("a worker of another project runs the caller's script", far.get("value") == 11, far)
worker.terminate()
worker.wait()

# The adapter is killed while its job runs: the call goes on.
adapter = HERE / "bin/stet-exec-local"
adapter.write_text(f"""#!/bin/sh
n=$(ls {HERE}/asked.* 2>/dev/null | wc -l)
touch {HERE}/asked.$n
test $n -lt 2 && kill -KILL $$
exec {os.environ["STET_BUILD"]}/stet-exec-local
""")
adapter.chmod(0o755)
r = run(command("orphan", "echo 12"))
t("an adapter that is killed is asked again", r.get("value") == 12 and ran("orphan") == 1, r)
adapter.unlink()
shutil.rmtree(ASIDE)
finish()
