#!/usr/bin/env python3
"""Whatever a job reads of its project and of its environment is part of the call, or out of its sight: variables, files by any path, programs that
PATH finds, directories behind links. Every answer names its call, and directories of jobs do not outlive their project's record of them."""
import os, pathlib, shutil, signal, subprocess, tempfile, time, urllib.parse
from tap import STET, answer, finish, stet, t

HERE = pathlib.Path.cwd().resolve()
ASIDE = pathlib.Path(tempfile.mkdtemp()).resolve()
os.environ |= {"PATH": f"{HERE}/bin:{os.environ['STET_BUILD']}:{os.environ['PATH']}", "STET_JOBS": str(ASIDE / "jobs")}
LOCAL = "dml+exec://stet-exec-local/"


def command(text, more=""):
    return f"{LOCAL}?command={urllib.parse.quote(text, safe='')}&stdin=null&stdout=text{more}"


def run(function, *more, **env):
    os.environ |= env
    return answer("call", "run", *more, function)


stet("init")

# Variables.
foo = command("echo $FOO", "&env=FOO")
run(foo, FOO="1")
t("the value of a variable is part of the call", run(foo, FOO="2").get("value") == "2\n")
t("the first value has its result", run(foo, FOO="1").get("cached") is True)
t("text that is not ASCII is passed as it is", run(command("printf %s $FOO | wc -c", "&env=FOO"), FOO="üe\u0301").get("value") == "5\n")
home = os.environ["HOME"]
run(command("echo $HOME"))
t("so is HOME", run(command("echo $HOME"), HOME="/nowhere").get("value") == "/nowhere\n")
os.environ["HOME"] = home
t("a job has its own directory for temporary files", run(command("test -d $TMPDIR && echo ${TMPDIR%/*}")).get("value", "").startswith(f"{ASIDE}/jobs/drive."))
pathlib.Path("stet.toml").write_text(f'name = "p"\n[nodes.m]\ncall = "{foo}&v=2"\n[result]\nm = "$m"\n')
stet("run")
os.environ["FOO"] = "3"
t("a call node is outdated when a variable changed", "ran 1" in stet("run").stdout)
t("and has the new value", answer("piece", "show", "p")["result"]["m"] == "3\n")
t("and then nothing", "ran 0" in stet("run").stdout)
pathlib.Path("stet.toml").unlink()
(ASIDE / "w").mkdir()
stet("init", cwd=str(ASIDE / "w"))
worker = subprocess.Popen([STET, "worker", "--remote", f"file://{ASIDE}/r.db", "--idle", "60s"], cwd=ASIDE / "w", env=os.environ | {"FOO": "7"},
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
t("a worker uses the caller's value", run(foo + "&v=3", "--remote", f"file://{ASIDE}/r.db", FOO="5").get("value") == "5\n")
worker.terminate()
worker.wait()

# Files, by any path.
pathlib.Path("a.txt").write_text("1")
os.symlink(HERE, ASIDE / "link")
(ASIDE / "home").mkdir()
os.symlink(HERE, ASIDE / "home/p")
ways = {"an argument": f"{LOCAL}cat?arg={HERE}/a.txt&stdin=null", "a word": command(f"cat {HERE}/a.txt"), "a quoted word": command(f"cat '{HERE}/a.txt'"),
        "a pattern": command(f"cat {HERE}/a*.txt"), "a redirection": command(f"cat <{HERE}/a.txt"), "a link to the project": command(f"cat {ASIDE}/link/a.txt"),
        "a variable": command("cat $IN", f"&env=IN%3D{HERE}/a.txt"), "the home directory": command("cat ~/p/a.txt", f"&env=HOME%3D{ASIDE}/home"),
        "a name made of HOME": command('cat "$HOME/p/a.txt"', f"&env=HOME%3D{ASIDE}/home"), "a file that is opened to be written too": command("cat <>a.txt"),
        "text of a program": f"{LOCAL}python3?arg=-c&arg=print(open('{HERE}/a.txt').read())&stdin=null", "a directory": command(f"cd {HERE} && cat a.txt")}
before = {k: run(f).get("value") for k, f in ways.items()}
t("files of the project by every path", set(map(str, before.values())) <= {"1", "1\n"}, before)
pathlib.Path("a.txt").write_text("2")
after = {k: run(f).get("value") for k, f in ways.items()}
t("count by every path", set(map(str, after.values())) <= {"2", "2\n"}, after)
t("and are kept unless they can't be known", all(run(f).get("cached") == (k not in ("text of a program", "a directory")) for k, f in ways.items()))
r = stet("call", "run", ways["a directory"])
t("which is said", r.returncode == 0 and "not kept" in r.stderr and str(HERE) in r.stderr, r.stderr)
r = run(command(f"echo changed >> {HERE}/b.txt; cat {HERE}/a.txt; sed -i s/2/3/ {HERE}/a.txt"))
t("a job changes its own copy, and writes where > says", r.get("value") == "2" and pathlib.Path("a.txt").read_text() == "2" and pathlib.Path("b.txt").exists(), r)

# Programs.
pathlib.Path("bin").mkdir()
for n in "12":
    pathlib.Path("bin/prog").write_text(f"#!/bin/sh\necho {n}\n")
    pathlib.Path("bin/prog").chmod(0o755)
    got = [run(f).get("value") for f in (f"{LOCAL}prog", f"{LOCAL}/{HERE}/bin/prog", command("prog"), command(f"{HERE}/bin/prog"))]
    t(f"programs of the project that PATH or an absolute path finds, version {n}", list(map(str, got)) == [n, n, f"{n}\n", f"{n}\n"], got)
pathlib.Path("bin/prog").write_text("#!/bin/sh\nother\n")
pathlib.Path("bin/other").write_text("#!/bin/sh\necho 1\n")
pathlib.Path("bin/other").chmod(0o755)
t("a program that the call does not name is not there", run(command("prog")).get("ok") is False)
subprocess.run(["python3", "-m", "venv", "--without-pip", ".venv"], check=True)
os.environ["PATH"] = f"{HERE}/.venv/bin:{os.environ['PATH']}"
r = run(f"{LOCAL}python3?arg=-c&arg=import+sys;print(sys.prefix)&stdin=null&stdout=text")
t("a virtual environment of the project is installed software", r.get("value") == f"{HERE}/.venv\n", r)
os.environ["PATH"] = os.environ["PATH"].partition(":")[2]

# Directories.
os.makedirs("d/empty")
os.makedirs("real/deep")
pathlib.Path("real/deep/x").write_text("1")
os.symlink("../real", "d/s")
os.symlink("..", "real/back")
tree = command("cat d/s/deep/x; ls d", "&files=d")
t("linked and empty directories of files=", run(tree).get("value") == "1empty\ns\n", run(tree))
pathlib.Path("real/deep/x").write_text("2")
t("what is behind a link counts", run(tree).get("value") == "2empty\ns\n")
os.rmdir("d/empty")
t("so does an empty directory", run(tree).get("value") == "2s\n")
pathlib.Path("stet.toml").write_text(f'name = "q"\n[nodes.m]\ncall = "{tree}"\n')
stet("run")
pathlib.Path("real/deep/new").write_text("2")
t("a new file behind a link makes a call node outdated", "ran 1" in stet("run").stdout)
pathlib.Path("stet.toml").unlink()

pathlib.Path("stet.toml").write_text('name = "r"\n[nodes.m]\ncall = "%s"\n' % command("[ 1 = 1 ] && echo y"))
first = stet("run")
t("a bracket in a line is no pattern of files", "ran 1" in first.stdout and "ran 0" in stet("run").stdout, first.stdout + first.stderr)
pathlib.Path("stet.toml").unlink()

# What lies above.
subprocess.run("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one", shell=True, check=True)
t("a job does not find the repository that the project lies in", run(command("git rev-parse --show-toplevel")).get("ok") is False)
up = "d=$PWD; while [ $d != / ]; do d=$(dirname $d); test -e $d/a.txt && echo $d; done; true"
t("nor files of the project above it", run(command(up)).get("value") == "")

# In place.
pathlib.Path("m.py").write_text("import helper\nprint(helper.K)\n")
place = f"{LOCAL}python3?arg=m.py&in-place=true&stdin=null"
for n in 1, 20:
    pathlib.Path("helper.py").write_text(f"K = {n}\n")
    t("a job in place is not answered by an earlier one", run(place).get("value") == n)
declared = place + "&files=helper.py"
run(declared)
t("unless files= says what it reads", run(declared).get("cached") is True)
pathlib.Path("helper.py").write_text("K = 300\n")
t("which counts", run(declared).get("value") == 300)

# Every answer names its call.
many = [subprocess.Popen([STET, "call", "run", "--detach", command("sleep 1; echo 1")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(6)]
said = [p.communicate()[0].split() for p in many]
t("calls that are left at once name the call", all(stet("call", "wait", w[-1]).stdout == '"1\\n"\n' for w in said), said)
hit = run(command("sleep 1; echo 1"))
t("so does one whose result is there", hit["cached"] and stet("call", "wait", hit["id"]).stdout == '"1\\n"\n', hit)

# Directories of killed jobs.
left = answer("call", "run", "--detach", command("touch here; exec sleep 600"))
jobs = pathlib.Path(os.environ["STET_JOBS"])
end = time.monotonic() + 60
while not list(jobs.glob("*/*/here")) and time.monotonic() < end:
    time.sleep(0.02)
t("a job is at work in its directory", len(list(jobs.glob("*/*/here"))) == 1)
for place in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = (place / "cmdline").read_bytes().split(b"\0")
    except OSError:
        continue
    if len(words) > 1 and words[0].endswith(b"stet-supervise") and words[1].startswith(bytes(HERE)):
        os.kill(int(place.name), signal.SIGKILL)
stet("call", "cancel", left["id"])
stet("gc")
t("what a killed supervisor left is removed", not list(jobs.glob("*/*/here")), list(jobs.glob("*/*")))
lost = jobs / "drive.1.1.0123456789abcdef"
(lost / "1").mkdir(parents=True)
(lost / "of").write_text(f"{ASIDE}/gone/drive\n")
stet("gc")
t("gc removes directories of jobs whose project is gone", not lost.exists())
shutil.rmtree(ASIDE)
finish()
