#!/usr/bin/env python3
"""stet killed while commands run, Ctrl-C, an input edited under a running command, and a read-only source tree: no command runs
twice, none is lost, none is left behind."""
import os, pathlib, signal, subprocess, time
from tap import STET, finish, t


def stet(*words):
    return subprocess.run([STET, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)


def start(*words):
    return subprocess.Popen([STET, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)


def wait_for(path, seconds=10):
    end = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.01)
    return os.path.exists(path)


def lines(path):
    return pathlib.Path(path).read_text().split() if os.path.exists(path) else []


stet("init")
pathlib.Path("in").write_text("1\n")
nodes = "".join(f'[nodes.n{i}]\ncommand = "echo n{i} >> log; touch began{i}; sleep 0.6; cat {{in}} > {{out}}; echo done >> ended"\nfiles = "in"\nproduces = "o/{i}"\n'
                for i in range(3))
pathlib.Path("stet.toml").write_text('name = "k"\n' + nodes)

# Killed while three commands run; the next start goes on with them.
p = start("run", "-j", "3")
t("the commands have begun", all(wait_for(f"began{i}") for i in range(3)))
p.kill()
p.wait()
r = stet("run", "-j", "3")
t("the next start ends well", r.returncode == 0 and "ran 3" in r.stdout, r.stdout)
t("no command ran twice", sorted(lines("log")) == ["n0", "n1", "n2"], lines("log"))
t("and none is lost", len(lines("ended")) == 3 and all(pathlib.Path(f"o/{i}").read_text() == "1\n" for i in range(3)))
t("nothing more to do", "ran 0" in stet("run").stdout)

# Killed, and the commands end while nobody is there.
os.remove("log")
[os.remove(f"began{i}") for i in range(3)]
pathlib.Path("in").write_text("2\n")
p = start("run", "-j", "3")
t("they have begun again", all(wait_for(f"began{i}") for i in range(3)))
p.kill()
p.wait()
time.sleep(1.0)
r = stet("run", "-j", "3")
t("their ends are found", r.returncode == 0 and sorted(lines("log")) == ["n0", "n1", "n2"], r.stdout + str(lines("log")))
t("with what they wrote", all(pathlib.Path(f"o/{i}").read_text() == "2\n" for i in range(3)))

# Killed; then an input changes before the next start: what runs is of no use, and is out of the way before the new one begins.
os.remove("log")
[os.remove(f"began{i}") for i in range(3)]
pathlib.Path("in").write_text("3\n")
p = start("run", "-j", "3")
all(wait_for(f"began{i}") for i in range(3))
p.kill()
p.wait()
pathlib.Path("in").write_text("4\n")
r = stet("run", "-j", "3")
t("a changed input runs them anew", r.returncode == 0 and all(pathlib.Path(f"o/{i}").read_text() == "4\n" for i in range(3)), r.stdout)

# Ctrl-C ends the commands and their children.
pathlib.Path("stet.toml").write_text('name = "c"\n[nodes.c]\ncommand = "sleep 97 & echo $! > child; touch waiting; wait"\nproduces = "o/c"\n')
p = start("run")
t("a command waits", wait_for("waiting"))
time.sleep(0.1)
p.send_signal(signal.SIGINT)
p.wait(timeout=20)
t("Ctrl-C has its status", p.returncode == 130, p.returncode)
time.sleep(0.3)
child = int(pathlib.Path("child").read_text())
try:
    state = pathlib.Path(f"/proc/{child}/stat").read_text().split()[2]
except OSError:
    state = "gone"
t("and leaves no child behind", state in ("gone", "Z"), state)

# An input edited while its command runs: the result is not taken.
pathlib.Path("stet.toml").write_text('name = "e"\n[nodes.e]\ncommand = "cat {in} > {out}; echo e >> edits; touch reading; sleep 0.5"\nfiles = "in"\nproduces = "o/e"\n')
pathlib.Path("in").write_text("before\n")
p = start("run")
wait_for("reading")
pathlib.Path("in").write_text("after!\n")
p.wait()
t("it ran again", lines("edits") == ["e", "e"], lines("edits"))
t("on what is there now", pathlib.Path("o/e").read_text() == "after!\n")
pathlib.Path("in").write_text("before\n")
stet("run")
t("and the first result was not kept", lines("edits") == ["e", "e", "e"] and pathlib.Path("o/e").read_text() == "before\n", lines("edits"))

# stet is killed, its command ends well, and its output goes before anybody looks: that is not the command's failure.
pathlib.Path("stet.toml").write_text('name = "g"\n[nodes.g]\ncommand = "touch going; sleep 0.5; cat {in} > {out}; touch gone"\nfiles = "in"\nproduces = "o/g"\n')
p = start("run")
wait_for("going")
p.kill()
p.wait()
wait_for("gone")
time.sleep(0.2)
os.remove("o/g")
r = stet("run")
t("a command whose output was removed after its end runs again", r.returncode == 0 and "failed 0" in r.stdout, r.stdout)
t("and makes it", pathlib.Path("o/g").read_text() == "before\n")

# Two at once: each command once.
os.remove("log")
pathlib.Path("in").write_text("5\n")
pathlib.Path("stet.toml").write_text('name = "k"\n' + nodes)
both = [start("run", "-j", "3") for _ in range(2)]
out = [p.communicate()[0] for p in both]
t("two runs at once end well", all(p.returncode == 0 for p in both), out)
t("and run each command once", sorted(lines("log")) == ["n0", "n1", "n2"], lines("log"))

# Sources that can't be written.
os.makedirs("ro/src")
pathlib.Path("ro/src/a").write_text("a\n")
os.chmod("ro/src/a", 0o444)
os.chmod("ro/src", 0o555)
pathlib.Path("stet.toml").write_text('name = "r"\n[nodes.r]\ncommand = ["cp", "{in}", "{out}"]\nfiles = "ro/src/a"\nproduces = "o/r"\n')
t("a read-only source tree", stet("run").returncode == 0 and pathlib.Path("o/r").read_text() == "a\n")
os.chmod("ro/src", 0o755)
finish()
