#!/usr/bin/env python3
"""While a job in place runs, a file of its call is another one for a moment: rewritten and written back, moved away and back, or below a directory that is. The job
runs again, whether it ended well or not, and the answer is that of the files as they are. A job beside which nothing happens runs once."""
import json, os, pathlib, shutil, subprocess, time
from tap import STET, finish, stet, t

os.environ["PATH"] = os.environ["STET_BUILD"] + ":" + os.environ["PATH"]
home = pathlib.Path("aside").absolute()
top = pathlib.Path("p").absolute()
SCRIPT = ("cd HOME; echo r >> rounds; if [ ! -e done ]; then touch begun; while [ ! -e go ]; do sleep 0.02; done; fi; cd TOP; cat a/b/x; code=$(cat a/b/code); cd HOME; "
          "if [ ! -e done ]; then touch read; while [ ! -e end ]; do sleep 0.02; done; touch done; fi; exit $code")


def wait(path):
    until = time.time() + 120
    while not path.exists() and time.time() < until:
        time.sleep(0.01)
    return path.exists()


def rewrite():
    kept = [(f, f.read_text()) for f in (top / "a/b/x", top / "a/b/code")]
    (top / "a/b/x").write_text('"other"\n')
    (top / "a/b/code").write_text("0\n" if kept[1][1] == "3\n" else "3\n")
    return lambda: [f.write_text(text) for f, text in kept]


def move(name):
    def begin():
        real, aside = top / name, top / "moved"
        code = "0\n" if (top / "a/b/code").read_text() == "3\n" else "3\n"
        real.rename(aside)
        (top / "a/b").mkdir(parents=True, exist_ok=True)
        for f, text in (("x", '"other"\n'), ("code", code)):
            if not (top / "a/b" / f).exists():
                (top / "a/b" / f).write_text(text)

        def end():
            if real.is_dir():
                shutil.rmtree(real)
            aside.replace(real)
        return end
    return begin


stet("init", str(top))
for number, (name, begin) in enumerate((("nothing", None), ("rewritten", rewrite), ("the file is moved", move("a/b/x")), ("its directory is moved", move("a/b")),
                                        ("the directory above is moved", move("a")))):
    for code in ("0", "3"):
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(top / "a", ignore_errors=True)
        home.mkdir()
        (top / "a/b").mkdir(parents=True)
        (top / "a/b/x").write_text(f'"x{number}"\n')
        (top / "a/b/code").write_text(code + "\n")
        (top / "s.sh").write_text(SCRIPT.replace("HOME", str(home)).replace("TOP", str(top)))
        p = subprocess.Popen([STET, "--json", "call", "run", "dml+exec://stet-exec-local/sh?arg=s.sh&in-place=true&files=a/b/x&files=a/b/code&stdin=null", str(number)],
                             cwd=top, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        t(f"{name}, exit {code}: the job runs", wait(home / "begun"))
        end = begin() if begin else None
        (home / "go").touch()
        wait(home / "read")
        if end:
            end()
        (home / "end").touch()
        out, err = p.communicate()
        said = json.loads(out or "{}")
        good = said.get("value") == f"x{number}" if code == "0" else said.get("failure", {}).get("exit") == 3
        t(f"{name}, exit {code}: the answer is that of the files", good, out + err)
        rounds = len((home / "rounds").read_text().split())
        t(f"{name}, exit {code}: the job ran {'again' if begin else 'once'}", rounds == (2 if begin else 1), rounds)
finish(str(top))
