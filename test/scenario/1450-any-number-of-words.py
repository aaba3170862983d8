#!/usr/bin/env python3
"""A command takes any number of files: as words up to what the kernel takes, and beyond that in a file of names. With 10,000 names the run hung, or could not
talk to its supervisor."""
import os, pathlib, signal, subprocess, time
from tap import STET, answer, finish, stet, t

N = 10000
root = pathlib.Path("p").absolute()
(root / "in").mkdir(parents=True)
stet("init", cwd=root)
names = [f"in/a-file-with-a-long-name-{i:05d}.txt" for i in range(N)]
for i, name in enumerate(names):
    (root / name).write_text(f"{i}\n")
whole = "".join(f"{i}\n" for i in range(N))
words = "\n".join(f"""
[nodes.w{k}]
command = ["sh", "-c", 'out=$1; shift; cat "$@" > $out', "x", "{{out}}", "{{in}}"]
files = "in/*.txt"
produces = "build/w{k}"
""" for k in range(3))
toml = f"""name = "many"
{words}
[nodes.shell]
command = "xargs -d '\\\\n' cat < {{in@list}} > {{out}}"
files = "in/*.txt"
produces = "build/shell"
[nodes.cwd]
command = "xargs -d '\\\\n' cat < {{in@list}} > {{out}}"
files = "in/*.txt"
cwd = "in"
produces = "build/cwd"
[nodes.compiler]
command = ["sh", "-c", 'p=$1; shift; eval "set -- $(cat "${{p#@}}" | tr "\\n" " ")"; echo $# > build/compiler', "x", "@{{in@response}}"]
files = "in/*.txt"
produces = "build/compiler"
"""
(root / "stet.toml").write_text(toml)
r = stet("run", "-j4", cwd=root, timeout=300)
t("ten thousand names are given to several commands at once", r.returncode == 0, r.stdout + r.stderr)
for name in ("w0", "w1", "w2", "shell", "cwd"):
    t(f"and {name} read all of them, in order", (root / "build" / name).read_text() == whole)
t("a response file has them all", (root / "build/compiler").read_text() == f"{N}\n")
t("no file of names is left", not any((root / ".stet/local/exec/lists").glob("*")))
t("nothing runs again", answer("run", cwd=root).get("ran") == 0)

(root / "stet.toml").write_text(toml + """
[nodes.long]
command = "cat {in} > {out}"
files = "in/*.txt"
produces = "build/long"
""")
r = stet("run", "-k", cwd=root)
t("what the kernel does not take is an error that names the way out", r.returncode == 1 and "longer than the kernel takes" in r.stdout and "{NAME@list}" in r.stdout,
  r.stdout + r.stderr)

# Names with blanks and quotes; a name with a line end can't be in a list.
odd = pathlib.Path("odd").absolute()
(odd / "in").mkdir(parents=True)
stet("init", cwd=odd)
for name in ("a b", "it's", 'say "x"', "back\\slash", "-dash", "$HOME"):
    (odd / "in" / name).write_text(name + "\n")
(odd / "-top.txt").write_text("top\n")
(odd / "stet.toml").write_text("""name = "odd"
[nodes.list]
command = "xargs -d '\\\\n' cat < \\"{in@list}\\" > {out}"
files = ["in/*", "*.txt"]
produces = "build/list"
[nodes.response]
command = "xargs cat < {in@response} > {out}"
files = ["in/*", "*.txt"]
produces = "build/response"
[nodes.none]
command = "wc -c < {in@list} > {out}"
files = "nothing/*"
produces = "build/none"
""")
r = stet("run", cwd=odd)
said = sorted((odd / "build/list").read_text().splitlines()) if r.returncode == 0 else r.stdout + r.stderr
want = sorted(["a b", "it's", 'say "x"', "back\\slash", "-dash", "$HOME", "top"])
t("names with blanks and quotes are in a list as they are", said == want, said)
t("and in a response file with backslashes", r.returncode == 0 and sorted((odd / "build/response").read_text().splitlines()) == want)
t("a pattern that matches nothing is an empty list", (odd / "build/none").read_text().strip() == "0")
(odd / "in" / "two\nlines").write_text("x")
r = stet("run", "-k", cwd=odd)
t("a name with a line end is refused", r.returncode == 1 and "line end in its name" in r.stdout, r.stdout + r.stderr)
(odd / "in" / "two\nlines").unlink()
stet("run", cwd=odd)

# The process is killed while a command reads its list: the next run goes on with the command, which still has it.
kill = pathlib.Path("kill").absolute()
(kill / "in").mkdir(parents=True)
stet("init", cwd=kill)
for i in range(50):
    (kill / f"in/{i:02d}").write_text(f"{i}\n")
(kill / "stet.toml").write_text("""name = "kill"
[nodes.slow]
command = "l={in@list}; echo >> began; while [ ! -e go ]; do sleep 0.02; done; xargs -d '\\\\n' cat < $l > {out}"
files = "in/*"
produces = "build/slow"
scripts = false
""")
first = subprocess.Popen([STET, "run"], cwd=kill, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
end = time.monotonic() + 60
while not (kill / "began").exists() and time.monotonic() < end:
    time.sleep(0.01)
os.kill(first.pid, signal.SIGKILL)
first.wait()
(kill / "go").write_text("")
r = stet("run", cwd=kill)
t("a command that outlives its run still has its list", r.returncode == 0 and (kill / "build/slow").read_text() == "".join(f"{i}\n" for i in range(50)),
  r.stdout + r.stderr)
t("and was started once", (kill / "began").read_text() == "\n")
t("its list is gone", not any((kill / ".stet/local/exec/lists").glob("*")))
for p in (odd, kill):
    t(f"stet check of {p.name}", stet("check", cwd=p).returncode == 0)
(root / "stet.toml").write_text(toml)
stet("run", cwd=root)
finish(root)
