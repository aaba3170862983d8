#!/usr/bin/env python3
"""What a pattern matches only while the command runs: a result that may rest on such a file does not count."""
import os, pathlib, shutil, subprocess, time
from tap import STET, answer, finish, stet, t

P = pathlib.Path


def project(toml, **files):
    os.chdir(base)
    shutil.rmtree("q", ignore_errors=True)
    os.makedirs("q/d")
    os.chdir("q")
    stet("init")
    P("d/a.txt").write_text("a\n")
    # Tells that it has begun, waits to be let go, reads, tells that, waits again; a second time it waits for nobody.
    P("read.sh").write_text("echo x >>count; : >begun; while [ ! -e go ]; do sleep 0.01; done\ncat $1 >$2\n: >done; while [ ! -e end ]; do sleep 0.01; done\n")
    for name, text in files.items():
        P(name).write_text(text)
    P("stet.toml").write_text("name = 'p'\n" + toml)


def until(path):
    for _ in range(2000):
        if P(path).exists():
            return
        time.sleep(0.005)


def during(before, after):
    """One run; `before` is done when the command has begun, `after` when it has read and not ended."""
    p = subprocess.Popen([STET, "run"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until("begun")
    before()
    P("go").touch()
    until("done")
    after()
    P("end").touch()
    said = p.communicate(timeout=60)[0]
    return p.returncode, said


def count():
    return len(P("count").read_text().split())


base = os.getcwd()
READ = "[nodes.a]\ncommand = ['sh', 'read.sh', 'd/*.txt', 'out']\nfiles = 'd/*.txt'\nproduces = 'out'\nscripts = false\n"
b = P("d/b.txt")

project(READ)
status, said = during(lambda: b.write_text("b\n"), lambda: b.unlink())
t("a file that was there for a moment: the command runs again", count() == 2 and status == 0, said)
t("and its result is that of the files that stay", P("out").read_text() == "a\n")
t("which is up to date", answer("run").get("ran") == 0)

project(READ)
status, said = during(lambda: b.write_text("b\n"), lambda: None)
t("a file that came and stayed is in the result", count() == 2 and P("out").read_text() == "a\nb\n", said)
t("which is up to date at once", answer("run").get("ran") == 0)

project(READ)
status, said = during(lambda: (P("d/b.tmp").write_text("b\n"), P("d/b.tmp").unlink()), lambda: P("d/c.o").write_text(""))
t("what the pattern does not match is no matter", count() == 1 and P("out").read_text() == "a\n", said)

project(READ)
status, said = during(lambda: P("d").rename("e"), lambda: P("e").rename("d"))
t("a directory that is moved away and back", count() == 2 and P("out").read_text() == "a\n", said)

project(READ.replace("'d/*.txt', 'out'", "'d/*.txt', 'd/out.txt'").replace("'out'\n", "'d/out.txt'\n"))
status, said = during(lambda: None, lambda: None)
t("an output among what the pattern matches comes and goes with the command", count() == 1 and status == 0, said)
P("d/a.txt").write_text("2\n")
r = answer("run")
t("also when it is made again", count() == 2 and r.get("failed") == 0 and P("d/out.txt").read_text() == "2\n", r)
t("and it stands", answer("run").get("ran") == 0 and count() == 2)

project(READ.replace("'d/*.txt'\nproduces", "'d/**/*.txt'\nproduces").replace("'d/*.txt', 'out'", "'d/a.txt d/s/*.txt', 'out'").replace("read.sh", "r2.sh"),
        **{"r2.sh": "echo x >>count; : >begun; while [ ! -e go ]; do sleep 0.01; done\ncat $(find d -name '*.txt' | sort) >$2\n: >done; while [ ! -e end ]; do sleep 0.01; done\n"})
status, said = during(lambda: (os.mkdir("d/s"), P("d/s/b.txt").write_text("b\n")), lambda: shutil.rmtree("d/s"))
t("a file in a directory that was there for a moment", count() == 2 and P("out").read_text() == "a\n", said)

project(READ.replace("'d/*.txt'\nproduces", "'n/m/*.txt'\nproduces").replace("'d/*.txt', 'out'", "'d/a.txt n/m/*.txt', 'out'"), **{})
P("read.sh").write_text(P("read.sh").read_text().replace("cat $1 >$2", "cat $1 >$2 2>/dev/null"))
status, said = during(lambda: (os.makedirs("n/m"), P("n/m/b.txt").write_text("b\n")), lambda: shutil.rmtree("n"))
t("also of one whose directories were not there", count() == 2 and P("out").read_text() == "a\n", said)

project("[nodes.a]\ncommand = 'sh one.sh; cat d/*.txt >out; sh two.sh'\nproduces = 'out'\n",
        **{"one.sh": "echo x >>count; : >begun; while [ ! -e go ]; do sleep 0.01; done\n", "two.sh": ": >done; while [ ! -e end ]; do sleep 0.01; done\n"})
status, said = during(lambda: b.write_text("b\n"), lambda: b.unlink())
t("a pattern of a shell string", count() == 2 and P("out").read_text() == "a\n", said)
t("which is up to date", answer("run").get("ran") == 0)

project("[nodes.first]\ncommand = ['sh', 'read.sh', 'd/a.txt', 'one']\nproduces = 'one'\nscripts = false\n"
        "[nodes.a]\ncommand = ['sh', 'second.sh']\nfiles = 'd/*.txt'\nproduces = 'out'\nafter = ['first']\n", **{"second.sh": "cat d/*.txt >out\n"})
status, said = during(lambda: b.write_text("b\n"), lambda: None)
t("a file that came before the command began is among its inputs", P("out").read_text() == "a\nb\n", said)
b.unlink()
r = answer("run")
t("and is missed when it goes", r.get("ran") == 1 and P("out").read_text() == "a\n", r)

project("[nodes.a]\ncommand = ['sh', 'w.sh']\nfiles = 'd/*.txt'\nproduces = 'out'\n", **{"w.sh": "echo x >>count; : >d/tmp.txt; cat d/*.txt >out; rm d/tmp.txt\n"})
r = stet("run")
t("a command that makes such files itself is put aside, and the file is named", r.returncode == 1 and "d/tmp.txt" in r.stdout + r.stderr and count() > 2, r.stdout + r.stderr)

project("[nodes.a]\ncommand = 'echo x >>count; sh w.sh; cat d/*.txt >out'\nproduces = 'out'\n", **{"w.sh": ": >d/tmp.txt; rm d/tmp.txt\n"})
r = answer("run")
t("if only words match them it runs twice", r.get("failed") == 0 and count() == 2 and P("out").read_text() == "a\n", r)
t("and stands", answer("run").get("ran") == 0)

project("".join(f"[nodes.n{i}]\ncommand = 'echo x >>count; for i in 1 2 3 4 5; do : >d/t{i}.o; rm d/t{i}.o; done; cat {{in}} >d/n{i}.o'\nfiles = 'd/*.txt'\nproduces = 'd/n{i}.o'\nscripts = false\n" for i in range(8)))
r = answer("run", "-j8")
t("commands that write into the directory of each other's pattern run once", r.get("failed") == 0 and count() == 8, (r, count()))
finish()
