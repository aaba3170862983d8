#!/usr/bin/env python3
"""Every job of a call runs in a directory of its own: parallel jobs that write one file name get their own files, stale files count for
nothing, files are collected when the job ends, scripts of the project are there and are part of the call, and jobs in place take turns."""
import base64, os, pathlib, shutil, subprocess, tempfile, time, urllib.parse
from tap import STET, answer, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
HERE = pathlib.Path.cwd()
ASIDE = pathlib.Path(tempfile.mkdtemp())  # not in the project: what a call names there would be part of it
JOBS = os.environ["STET_JOBS"] = str(ASIDE / "jobs")
LOCAL = "dml+exec://stet-exec-local/"


def command(text, more=""):
    return f"{LOCAL}?command={urllib.parse.quote(text, safe='')}{more}"


def program(name, *args, more=""):
    return f"{LOCAL}{name}?" + "&".join("arg=" + urllib.parse.quote(a, safe="") for a in args) + more


def start(*words):
    return subprocess.Popen([STET, "--json", "call", "run", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def said(p):
    import json
    out, _ = p.communicate(timeout=120)
    return json.loads(out)


def run(*words):
    return answer("call", "run", *words)


def content(result, name):
    text = result["value"]["files"][name]["/"]["bytes@1"]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


stet("init")

# Eight at once write the same name: each its own.
body = "i=$(cat); sleep 0.2; echo \"$i\" > out.txt; sleep 0.2; cat out.txt"
many = {i: start(command(body, "&file=out.txt"), str(i)) for i in range(8)}
results = {i: said(p) for i, p in many.items()}
t("eight jobs that write one file name give eight right results",
  all(r.get("ok") and content(r, "out.txt") == b"[%d]\n" % i and r["value"]["stdout"] == [i] for i, r in results.items()), results)
t("the project has none of their files", not (HERE / "out.txt").exists())

# A file that was there before is not one that the job has made.
(HERE / "stale.txt").write_text("stale")
r = run(command("true", "&file=stale.txt"))
t("a stale file is not a result", r.get("ok") is False and "without creating" in r["failure"]["message"], r)
r = run(program("true", "stale.txt", more="&file=stale.txt"))
t("not even if it is an argument too", r.get("ok") is False and "without creating" in r["failure"]["message"], r)
r = run(command("mkdir out", "&file=out"))
t("a directory is not a file", r.get("ok") is False and "not a regular file" in r["failure"]["message"], r)
r = run(command("mkfifo out", "&file=out"))
t("nor is a pipe", r.get("ok") is False and "not a regular file" in r["failure"]["message"], r)
r = run(command("mkdir -p a/b; echo deep > a/b/c; printf x > 'd e'", "&file=a/b/c&file=d+e"))
t("files in directories, and with blanks in their names", r.get("ok") and content(r, "a/b/c") == b"deep\n" and content(r, "d e") == b"x", r)
r = run(command("mkdir sub; cd sub; pwd > where", "&cwd=inner&file=sub/where"))
t("cwd is inside the directory of the job", r.get("ok") and content(r, "sub/where").decode().strip().startswith(f"{JOBS}/drive.") and content(r, "sub/where").endswith(b"/inner/sub\n"), r)

# What the job leaves running writes after its end, to its output, to the file and to the directory: nothing of that counts.
(ASIDE / "gate").mkdir()
late = command(f"while ! test -e {ASIDE}/gate/begin; do sleep 0.02; done; echo 1; echo good > f; (while ! test -e {ASIDE}/gate/go; do sleep 0.02; done; echo 2; echo bad > f; touch {ASIDE}/gate/done) &", "&file=f")
stet("--json", "call", "run", "--detach", late)
(ASIDE / "gate/begin").touch()
end = time.monotonic() + 60
while not any("\nE " in j.read_text() for j in HERE.glob(".stet/local/calls/drive.*/journal")) and time.monotonic() < end:
    time.sleep(0.02)
t("a job that nobody waits for has ended", time.monotonic() < end)
(ASIDE / "gate/go").touch()
while not (ASIDE / "gate/done").exists() and time.monotonic() < end:
    time.sleep(0.02)
r = run(late)
t("files and output are those of the moment at which the job ended", r.get("ok") and content(r, "f") == b"good\n" and r["value"]["stdout"] == 1, r)

# Scripts of the project.
(HERE / "lib").mkdir()
(HERE / "lib/help.py").write_text("def f(x):\n    return x + 1\n")
(HERE / "tool.py").write_text("import json, sys\nfrom lib.help import f\nprint(f(json.load(sys.stdin)[0]))\n")
tool = program("python3", "tool.py", more="&files=lib")
t("a script that is an argument, and the files that it needs", run(tool, "1").get("value") == 2)
t("the same again runs nothing", run(tool, "1").get("state") == "pinned_hit")
(HERE / "lib/help.py").write_text("def f(x):\n    return x + 10\n")
r = run(tool, "1")
t("an edited file is another call", r.get("value") == 11 and r.get("state") == "completed_ok", r)
(HERE / "lib/help.py").write_text("def f(x):\n    return x + 1\n")
r = run(tool, "1")
t("and edited back the earlier one", r.get("value") == 2 and r.get("state") == "pinned_hit", r)
r = run(program("python3", "tool.py"), "1")
t("without the file it fails", r.get("ok") is False, r)
(HERE / "sub").mkdir()
(HERE / "sub/own.sh").write_text("#!/bin/sh\necho 5\n")
t("a program of the project by its path", run(f"{LOCAL}sub/own.sh").get("value") == 5)
(HERE / "sub/line.sh").write_text("cat data/*.txt | wc -l\n")
(HERE / "data").mkdir()
for i in range(3):
    (HERE / f"data/{i}.txt").write_text("x\n")
line = command("sh sub/line.sh < data/0.txt; true data/*.txt")
t("words of a command line, and what its wildcards match", run(line).get("value") == 3)
(HERE / "data/3.txt").write_text("x\n")
t("a file more is another call", run(line).get("value") == 4)
r = run(command("cat data/0.txt > sum; echo 1 >> data/1.txt; cat sum data/1.txt | wc -l"))
t("a job changes its own copies", r.get("value") == 3 and (HERE / "data/1.txt").read_text() == "x\n" and not (HERE / "sum").exists(), r)
r = run(command("f=sub/; cat ${f}line.sh"))
t("what was not given to it is not there, and named", r.get("ok") is False and "files=sub/line.sh" in r["failure"].get("hint", ""), r)
t("files that there are not are refused", stet("call", "run", command("true", "&files=nothing/*")).returncode == 3)
t("and those outside", stet("call", "run", command("true", "&files=../x")).returncode == 2)
t("a program outside is refused", stet("call", "run", f"{LOCAL}../x/y").returncode == 2)

# In place: in the project, one at a time, with the files that the call was made with.
(HERE / "count").write_text("0")
step = "n=$(cat count); sleep 0.1; echo $((n + 1)) > count; cat > /dev/null; echo $n"
many = [start(command(step.replace("count", "./count"), "&in-place=true&env=X%3D" + str(i))) for i in range(6)]
results = [said(p) for p in many]
# (the word ./count is a file of the project, so it is part of the call: what changes it meanwhile voids the call)
t("calls in place whose files change under them are not kept", all(r.get("ok") or "not the file" in r["failure"]["message"] for r in results), results)
(ASIDE / "count").write_text("0")
step = f"n=$(cat {ASIDE}/count); sleep 0.1; echo $((n + 1)) > {ASIDE}/count; echo $n"
many = [start(command(step, "&in-place=true&env=X%3D" + str(i))) for i in range(6)]
results = [said(p) for p in many]
t("calls in place take turns", sorted(r.get("value", -1) for r in results) == list(range(6)) and (ASIDE / "count").read_text() == "6\n", results)
r = run(command("pwd", "&in-place=true&stdout=text&cwd=sub"))
t("they run in the project", r.get("value") == str(HERE.resolve() / "sub") + "\n", r)
p = start(command(f"touch {ASIDE}/gate/first; while ! test -e {ASIDE}/gate/next; do sleep 0.02; done; echo 1", "&in-place=true"))
end = time.monotonic() + 60
while not (ASIDE / "gate/first").exists() and time.monotonic() < end:
    time.sleep(0.02)
left = answer("call", "run", "--detach", command(f"touch {ASIDE}/gate/never; echo 2", "&in-place=true"))
t("one that waits for its turn is cancelled", stet("call", "cancel", left["id"]).returncode == 0)
(ASIDE / "gate/next").touch()
t("the one that ran has its result", said(p).get("value") == 1)
t("another has its turn after that", run(command("echo 3", "&in-place=true")).get("value") == 3)
t("the cancelled one never ran", not (ASIDE / "gate/never").exists())

left = [str(p) for p in ASIDE.glob("jobs/*/[0-9]*")]
t("no directory of a job is left", not left, left)
shutil.rmtree(ASIDE)
finish()
