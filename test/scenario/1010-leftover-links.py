#!/usr/bin/env python3
"""What a removed node has left behind can be a symbolic link, or lie behind one. The reader's error names a way out, and that way always works."""
import os, pathlib, shutil, subprocess

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


def project(name, pattern, **files):
    os.chdir(top)
    shutil.rmtree(name, ignore_errors=True)
    pathlib.Path(name).mkdir()
    os.chdir(name)
    for path, text in files.items():
        write(path.replace("__", "/"), text)
    write("stet.toml", 'name = "t"\n' + pattern)
    stet("init")
    first = stet("run")
    t(f"{name}: it runs", first.returncode == 0, first.stdout)


def write(path, text):
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(path).write_text(text)


def there(path):
    return os.path.lexists(path)


def way_out(name, *more):
    """The run fails and names the way out; it is taken, and the next run succeeds."""
    failed = stet("run", "-k", *more)
    t(f"{name}: the run fails and says how to go on", failed.returncode == 1 and "stet gc --outputs" in failed.stdout, failed.stdout)
    removed = stet("gc", "--outputs")
    after = stet("run", "-k")
    t(f"{name}: that way leads on", after.returncode == 0, failed.stdout, removed.stdout, after.stdout)
    again, checked = stet("run"), stet("check")
    t(f"{name}: nothing is left to do", again.stdout.startswith("ran 0,") and checked.returncode == 0, again.stdout, checked.stdout)
    return removed.stdout


top = os.getcwd()
READER = '[nodes.r]\ncommand = "cat o/*.txt > {out} 2>/dev/null || true"\nproduces = "r"\n'
LINK = '[nodes.l]\ncommand = "ln -s TARGET {out}"\nproduces = "o/l.txt"\n'

project("link", READER + LINK.replace("TARGET", "../src/x"), src__x="1")
write("stet.toml", 'name = "t"\n' + READER)
said = way_out("link")
t("link: what it leads to stays", not there("o/l.txt") and there("src/x") and "removed o/l.txt" in said, said)

project("edited", READER + LINK.replace("TARGET", "../src/x"), src__x="1")
write("stet.toml", 'name = "t"\n' + READER)
write("src/x", "2")
way_out("edited")
t("edited: also after what it leads to has changed", not there("o/l.txt") and pathlib.Path("src/x").read_text() == "2")

DIRECTORY = '[nodes.r]\ncommand = "cat o/l/* > {out} 2>/dev/null || true"\nproduces = "r"\n'
project("directory", DIRECTORY + LINK.replace("TARGET", "../src").replace("l.txt", "l"), src__x="1", src__y="2")
write("stet.toml", 'name = "t"\n' + DIRECTORY)
way_out("directory")
t("directory: the link goes, the files stay", not there("o/l") and there("src/x") and there("src/y"))

project("dangling", READER + LINK.replace("TARGET", "../src/x"), src__x="1")
write("stet.toml", 'name = "t"\n' + READER)
os.unlink("src/x")
stet("run", "-k")
stet("gc")
write("src/x", "3")
stet("run", "-k")
t("dangling: a link that led nowhere for a while does not become a source", stet("run", "-k").returncode == 1 or pathlib.Path("r").read_text() == "",
  pathlib.Path("r").read_text())
os.unlink("src/x")
stet("run", "-k")
said = stet("gc", "--outputs").stdout
t("dangling: it is removed", not there("o/l.txt"), said)
t("dangling: and the next run succeeds", stet("run").returncode == 0 and stet("check").returncode == 0)

project("by hand", READER + LINK.replace("TARGET", "../src/x"), src__x="1", src__y="4")
write("stet.toml", 'name = "t"\n' + READER)
os.unlink("o/l.txt")
os.symlink("../src/y", "o/l.txt")
t("by hand: a link that was changed is the user's", stet("run").returncode == 0 and pathlib.Path("r").read_text() == "4")
said = stet("gc", "--outputs").stdout
t("by hand: it stays", there("o/l.txt") and stet("check").returncode == 0, said)

for out in "f/{in.name}", "o/{in.stem}", "f/{in.dir}/{in.name}":
    name = "behind " + out.replace("/", "-")
    EACH = ('[nodes.e]\neach = "lib/*"\ncommand = "cat {in} > {out}"\nproduces = "e/{in.name}"\n'
            f'[nodes.f]\neach = "$e.out"\ncommand = "cat {{in}} >> {{out}}"\nproduces = "{out}"\n')
    os.chdir(top)
    pathlib.Path(name, "lib").mkdir(parents=True)
    os.chdir(name)
    write("lib/a", "1")
    os.symlink("../o/n0", "lib/ln")
    write("stet.toml", 'name = "t"\n' + EACH + '[nodes.n0]\ncommand = "echo 5 > {out}"\nproduces = "o/n0"\n')
    stet("init")
    first, second = stet("run"), stet("run")
    t(f"{name}: it runs", first.returncode == 0 and second.returncode == 0, first.stdout, second.stdout)
    write("stet.toml", 'name = "t"\n' + EACH)
    write("lib/a", "2")
    way_out(name)
    t(f"{name}: what lay behind the link is gone", not there("o/n0") and os.path.islink("lib/ln"))

print(f"1..{count}")
raise SystemExit(1 if bad else 0)
