#!/usr/bin/env python3
"""A supervisor that is killed takes its commands along. The run that waits for them starts them again under another supervisor and ends well."""
import os, pathlib, signal, subprocess, time
from tap import STET, finish, stet, t

top = pathlib.Path("p").absolute()
top.mkdir()
(top / "in").write_text("in\n")
SLOW = 'command = "echo >> begun; while [ -e hold ]; do sleep 0.02; done; cat {i} > {out}"\nfiles = { i = "%s" }\nscripts = false\n'
(top / "stet.toml").write_text(f'name = "p"\n[nodes.a]\n{SLOW % "in"}produces = "a"\n[nodes.b]\n{SLOW % "$a.out"}produces = "b"\n')
stet("init", cwd=top)


def supervisors():
    found = []
    for d in pathlib.Path("/proc").iterdir():
        try:
            words = (d / "cmdline").read_bytes().split(b"\0") if d.name.isdigit() else []
            if len(words) > 1 and b"stet-supervise" in words[0] and str(top).encode() in words[1]:
                found.append(int(d.name))
        except OSError:
            pass
    return found


def until(good):
    end = time.time() + 60
    while not good() and time.time() < end:
        time.sleep(0.01)
    return good()


def begun():
    return len((top / "begun").read_text().splitlines()) if (top / "begun").exists() else 0


def killed(times):
    """A run whose supervisor is killed in a command, so many times."""
    (top / "hold").touch()
    before = begun()
    r = subprocess.Popen([STET, "run"], cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    good = True
    for i in range(times):
        good = good and until(lambda i=i: begun() == before + i + 1)
        for pid in supervisors():
            os.kill(pid, signal.SIGKILL)
    good = good and until(lambda: begun() == before + times + 1 or r.poll() is not None)
    (top / "hold").unlink()
    return good, r, r.communicate(timeout=60)[0]


good, r, said = killed(3)
t("the command is started again each time, and the run ends well", good and r.returncode == 0 and "ran 2" in said and begun() == 5, f"{begun()} {said}")
t("its outputs are right", (top / "b").read_text() == "in\n")
r = stet("run", cwd=top)
t("and nothing is left to do", r.stdout.startswith("ran 0,"), r.stdout + r.stderr)
(top / "stet.toml").write_text((top / "stet.toml").read_text() + '[nodes.e]\nkind = "effect"\n' + SLOW % "b" + 'produces = "e"\n')
good, r, said = killed(1)
t("so is an effect that was not done to its end", good and r.returncode == 0 and "ran 1" in said and begun() == 7 and (top / "e").read_text() == "in\n", said)
finish(top)
