#!/usr/bin/env python3
"""A run is killed, and its command writes on while its source is removed. The next run reads the directory of that output before it knows that nobody wants
the command any more: then the reader is judged again."""
import os, pathlib, signal, subprocess, time

STET = os.environ["STET"]
os.environ["STET_SUPERVISE"] = os.path.join(os.environ["STET_BUILD"], "stet-supervise")
count = bad = 0


def t(what, good, *shown):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}")
    for text in () if good else shown:
        print("\n".join("# " + line for line in str(text).splitlines()))


def stet(*words):
    return subprocess.run([STET, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)


for way in 'command = "ls g/e/ > {out}; true"', 'command = "ls g > {out}; cat g/e/* >> {out}; true"\nfiles = "g"\nscripts = false', 'command = "ls l/ > {out}; true"':
    top = pathlib.Path(f"p{count}").absolute()
    (top / "src").mkdir(parents=True)
    (top / "g/e").mkdir(parents=True)
    os.chdir(top)
    pathlib.Path("src/1").write_text("one\n")
    pathlib.Path("g/e/keep").write_text("keep\n")
    os.symlink("g/e", "l")
    pathlib.Path("stet.toml").write_text('name = "p"\n[nodes.e]\neach = "src/*"\ncommand = "cat {in} > {out}; sleep 600"\nproduces = "g/e/{in.name}"\n'
                                         f'[nodes.r]\n{way}\nproduces = "r"\n')
    stet("init")
    run = subprocess.Popen([STET, "run", "-k"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.time() + 60
    while time.time() < until and not (os.path.exists("g/e/1") and os.path.getsize("g/e/1")):
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    os.unlink("src/1")
    said = stet("run", "-k")
    t(f"{way.split(chr(10))[0]}: it fails and names the file, or does not see it",
      (said.returncode == 1 and "would read g/e/1" in said.stdout) or (said.returncode == 0 and "1" not in pathlib.Path("r").read_text().split()), said.stdout)
    removed = stet("gc", "--outputs")
    after = stet("run", "-k")
    t("the way out that it names leads on", after.returncode == 0 and "1" not in pathlib.Path("r").read_text().split(), said.stdout, removed.stdout, after.stdout)
    again, checked = stet("run"), stet("check")
    t("nothing is left to do", again.stdout.startswith("ran 0,") and checked.returncode == 0, again.stdout, checked.stdout)
    os.chdir("..")

print(f"1..{count}")
raise SystemExit(1 if bad else 0)
