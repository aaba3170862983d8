#!/usr/bin/env python3
"""File names that begin with a dash are passed to commands as `./-name`. A dependency file that is edited or removed by hand drops no input: what it listed when
its command ended counts, and if it was changed before stet could read it, the command runs again."""
import os, pathlib, shutil, signal, subprocess, time
from tap import STET, finish, stet, t

top = pathlib.Path("p").absolute()


def begin(toml, **files):
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    (top / "stet.toml").write_text("name = 'p'\n" + toml)
    for name, text in files.items():
        (top / name).write_text(text)
    stet("init", cwd=top)


def run(*words):
    r = stet("run", *words, cwd=top)
    return r.returncode == 0, r.stdout + r.stderr


def read(name):
    return (top / name).read_text() if (top / name).exists() else None


# Names that begin with a dash: inputs and outputs, in lists and strings, with `each`, and as a part of a word.
begin("""[nodes.list]
command = ["cp", "{in}", "{out}"]
files = "-n"
produces = "-rf"
[nodes.text]
command = "cat {in} > {out}; echo --file={in} >> {out}"
files = ["-n", "-rf"]
produces = "o/text"
[nodes.each]
each = "-*.txt"
command = ["sh", "-c", "cat $1 > $2; echo {in.stem} >> $2", "x", "{in}", "{out}"]
produces = "o/{in.stem}"
[nodes.inside]
command = ["cat", "{in}"]
cwd = "o"
files = "-n"
stdout = "text"
after = ["text"]
""", **{"-n": "dash\n", "-e.txt": "e\n"})
good, said = run()
t("names that begin with a dash", good and read("-rf") == "dash\n" and read("o/text") == "dash\ndash\n--file=./-n ./-rf\n" and read("o/-e") == "e\n-e\n", said + str(read("o/text")))
t("and nothing more to do", "ran 0," in run()[1])
(top / "-n").write_text("other\n")
good, said = run()
t("an edit counts", good and "ran 3," in said and read("o/text").startswith("other\nother\n"), said)
good, said = run()
t("once", good and "ran 0," in said, said)

# A dependency file is read when the command ends. Editing it or removing it afterwards changes nothing.
DEP = """[nodes.d]
command = "cat main $(cat main) > {out}; printf '{out}: main %s\\\\n' $(cat main) > d.d; sleep SLEEP"
files = "main"
scripts = false
produces = "o/d"
depfile = "d.d"
"""
for name, spoil in [("edited", lambda: (top / "d.d").write_text("o/d: main\n")), ("removed", lambda: (top / "d.d").unlink())]:
    begin(DEP.replace("SLEEP", "0"), main="head\n", head="1\n")
    t(f"{name}: it runs", run()[0])
    spoil()
    good, said = run()
    t(f"{name}: nothing has to run for that", good and "ran 0," in said, said)
    (top / "head").write_text("2\n")
    good, said = run()
    t(f"{name}: what it had listed is still an input", good and read("o/d") == "head\n2\n", said)
    (top / "head").write_text("1\n")
    good, said = run()
    t(f"{name}: also of a result that was kept", good and read("o/d") == "head\n1\n", said)

# stet was killed; its command went on, and ended; then somebody changed the dependency file.
for name, spoil in [("edited", lambda: (top / "d.d").write_text("o/d: main\n")), ("removed", lambda: (top / "d.d").unlink()),
                    ("set back", lambda: ((top / "d.d").write_text("o/d: main\n"), os.utime(top / "d.d", (1, 1))))]:
    begin(DEP.replace("SLEEP", "1"), main="head\n", head="1\n")
    p = subprocess.Popen([STET, "run"], cwd=top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.time() + 60
    while not (top / "d.d").exists() and time.time() < until:
        time.sleep(0.02)
    p.send_signal(signal.SIGKILL)
    p.wait()
    time.sleep(1.5)  # the command ends by itself
    spoil()
    t(f"killed, {name}: the next run succeeds", *run())
    (top / "head").write_text("2\n")
    good, said = run()
    t(f"killed, {name}: no input is lost", good and read("o/d") == "head\n2\n", said + str(read("d.d")))
finish(top)
