#!/usr/bin/env python3
"""A second process looks at files while a command of the first one runs, whose output is missing just then: nothing runs once more for that, what does
not need the command does not wait for it, and edits of other files are seen."""
import os, pathlib, subprocess, sys, time

STET = os.environ["STET"]
root, log, go = pathlib.Path("p").absolute(), pathlib.Path("log").absolute(), pathlib.Path("go").absolute()
count = bad = 0


def t(name, good, show=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(show).splitlines()[:40]), flush=True)


def start(*words):
    return subprocess.Popen([STET, *words], cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(p):
    said = p.communicate(timeout=120)[0]
    return p.returncode, said


def stet(*words):
    return end(start(*words))


def wait(what, name):
    until = time.monotonic() + 120
    while not what():
        if time.monotonic() > until:
            t(name, False, "it never came")
            print(f"1..{count}")
            sys.exit(1)
        time.sleep(0.01)


def starts():
    return sorted(log.read_text().split())


def slow_begins(edit):
    """A run whose command `slow` has begun, and waits."""
    go.unlink(missing_ok=True)
    log.write_text("")
    edit()
    p = start("run")
    wait(lambda: "slow" in starts(), "slow begins")
    t("its output is not there while it runs", not (root / "o/slow").exists())
    return p


root.mkdir()
(root / "in").write_text("1\n")
(root / "o").mkdir()
(root / "o/source").write_text("source\n")
(root / "stet.toml").write_text(f'''name = "p"
[nodes.slow]
command = "echo slow >> {log}; while [ ! -e {go} ]; do sleep 0.05; done; cut -c1 < {{in}} > {{out}}"
files = {{ in = "in" }}
produces = "o/slow"
cache = false
scripts = false
[nodes.fast]
command = "echo fast >> {log}; echo fast > {{out}}"
produces = "o/fast"
cache = false
scripts = false
[nodes.list]
command = "echo list >> {log}; cat {{in}} > {{out}}"
files = {{ in = "o/*" }}
produces = "list"
cache = false
scripts = false
[nodes.js]
javascript = "({{n}}) => n + 1"
inputs = {{ n = "$argument/n" }}
[argument]
n = 1
''')
stet("init")
go.write_text("")
log.write_text("")
status, said = stet("run")
t("a first run", status == 0 and starts() == ["fast", "list", "slow"] and (root / "list").read_text() == "fast\n1\nsource\n", said + str(starts()))

first = slow_begins(lambda: (root / "in").write_text("2\n"))
status, said = stet("run", "js")
t("what does not need it does not wait for it", status == 0 and first.poll() is None, said)
go.write_text("")
status, said = end(first)
t("the command and its reader ran once", status == 0 and starts() == ["list", "slow"], said + str(starts()))
t("and are right", (root / "list").read_text() == "fast\n2\nsource\n", (root / "list").read_text())

first = slow_begins(lambda: (root / "in").write_text("2 same output\n"))
stet("run", "js")
go.write_text("")
status, said = end(first)
t("the same output again: its reader did not run", status == 0 and starts() == ["slow"], said + str(starts()))

first = slow_begins(lambda: (root / "in").write_text("3\n"))
(root / "o/fast").write_text("by hand\n")
(root / "o/new").write_text("new\n")
second = start("run")
go.write_text("")
ends = [end(first), end(second)]
t("both end well", not any(s for s, _ in ends), ends)
t("an output that was edited meanwhile is made again", (root / "o/fast").read_text() == "fast\n" and "fast" in starts(), starts())
t("a file that came meanwhile is read", (root / "list").read_text() == "fast\nnew\n3\nsource\n", (root / "list").read_text())
status, said = stet("run")
t("nothing is left to do", status == 0 and "ran 0" in said, said)
status, said = stet("check")
t("stet check", status == 0, said)
print(f"1..{count}")
sys.exit(1 if bad else 0)
