#!/usr/bin/env python3
"""Particular ways in which the words of a command name a file, a directory or a program, one by one. test/property/words.py tries them in all
combinations."""
import json, os, pathlib, subprocess, time
from tap import STET, answer, finish, stet, t

P = pathlib.Path
stet("init")
os.makedirs("src/in")
os.makedirs("empty")
READS = ["tee {out} < src/f", "cat <src/f > {out}", "cp -t o src/f; cat o/f > {out}", "cp --target-directory=o src/f; cat o/f > {out}", "cd -- src && cat ./f > ../{out}",
         "cd -P src; cat f > ../{out}", "(cd src; cat f) > {out}", "cat src/f* > {out}", "cat src/[f] > {out}", "grep -rh . src > {out}", "ls src > {out}; cat < src/f >> {out}",
         "cat --squeeze-blank -- 'src/f' > {out}", "cat s\\rc/f > {out}", "X=src; cat $X/f > {out}", "X=src/f; cat ${X} > {out}", "cat $(echo src/f) > {out}", "cat ${NONE:-src/f} > {out}",
         "[ -e o/none ] && rm src/f; cat src/f > {out}", "[ -e o/y ] || cp src/f o/y; cp src/f {out}", "sh -c 'cat src/f' > {out}", "bash -c 'cat src/{f,none}' > {out} 2>/dev/null; :",
         "cat <<E > {out}\n$(cat src/f)\nE\n", "python3 -c \"print(open('src/f').read())\" > {out}", "find src -type f -exec cat {} + > {out}", "timeout 10 cat src/f > {out}",
         "cat src/f > o/tmp && cat o/tmp > {out}", "false || cat src/f > {out}", "if true; then cat src/f; fi > {out}", "f() { cat src/f; }; f > {out}", "cat 0< src/f 2>/dev/null > {out}",
         "cat src/f > {out} # was: cat x > src/f", "echo 'writing: a > src/f'; cat src/f > {out}", "cat <> src/f > {out}",
         "sort src/f -o {out}", "tar cf - -C src f | tar xOf - > {out}", "cat $PWD/src/f > {out}; cat src/f > {out}", "cat src/../src/f > {out}", "cat src//f > {out}",
         "mkdir -p src; cat src/f > {out}", "touch src/f; cat src/f > {out}", "cp -n empty/none src/f 2>/dev/null; cat src/f > {out}", "cp empty/none src/f 2>/dev/null; cat src/f > {out}",
         "rm src 2>/dev/null; cat src/f > {out}", "cp empty/none src/f 2>/dev/null || cat src/f > {out}", "! cp empty/none src/f 2>/dev/null && cat src/f > {out}",
         "mkdir src 2>/dev/null; grep -rh . src > {out}", "echo > o/x && cp o/x src && cat src/f > {out}; rm -f src/x", "for i in f none; do cat src/$i 2>/dev/null; done > {out}; :", "X=f.txt; cat src/${X%.txt} > {out}",
         "cat src/$(echo f) > {out}", "for d in src; do (cd $d && cat f); done > {out}", "cat $PWD/src/f > {out}", "eval cat src/f > {out}", "eval 'cat src/f' > {out}",
         "case $HOME in /*) cat src/f;; *) cat src/f;; esac > {out}", "bash -c 'cat s*/{f,none}*' > {out} 2>/dev/null; :", "bash -c 'cat src/{e..g}' > {out} 2>/dev/null; :",
         "cat src/f$((1 - 1)) src/f > {out} 2>/dev/null; :",
         # arithmetic, and commands in commands in quotes
         "echo $(( $(cat src/f) * 1 )) > {out}", "echo \"$(( $(cat \"src/f\") * 1 ))\" > {out}", "echo \"${NONE:-$(cat \"src/f\")}\" > {out}", "echo \"$(echo \"$(cat \"src/f\")\")\" > {out}", "echo \"$(case x in x) cat src/f;; esac)\" > {out}",
         # where it is, and where it changes to
         "cat $(pwd)/src/f > {out}", "cat `pwd`/src/f > {out}", "W=$(pwd); cd empty; cat $W/src/f > ../{out}", "env -C src cat f > {out}", "env -i --chdir=src cat f > {out}", "env -iC src cat f > {out}", "HOME=$PWD/src; cat ~/f > {out}",
         # values of variables
         "F=src/f.c; cat ${F%.c} > {out}", "F=a/b/f; cat src/${F##*/} > {out}", "show() { cat $D/f; }; D=src; show > {out}", "g() { cat ${1%.c}; }; g src/f.c > {out}", "echo src | { read -r d; cat $d/f; } > {out}",
         "bash -c 'f=(src/f none); cat ${f[0]}' > {out}", "bash -c 'declare -A m=([x]=src/f); cat ${m[x]}' > {out}", "bash -c 'f=sr; f+=c/f; cat $f' > {out}", "bash -c 'f=xxsrc/f; cat ${f:2}' > {out}", "bash -c 'f=src/g; cat ${f/g/f}' > {out}",
         # words of bash, and patterns
         "bash -c \"cat $'src/f'\" > {out}", "bash -c \"cat $'src/\\\\x66'\" > {out}", "cat src/[[:lower:]] > {out}", "cat src/[![:digit:]] > {out}", "bash -c 'shopt -s extglob; eval \"cat src/@(f|none)\"' > {out}",
         # options, and strings for other programs
         "echo p > o/s; sed -nfo/s src/f > {out}", "echo x | sed 1rsrc/f > {out}", "printf 'none\\nsrc/f\\n' | xargs cat 2>/dev/null > {out}; :", "printf 'src/%s\\n' f | xargs cat > {out}", "echo f | xargs -I@ cat src/@ > {out}",
         "python3 -Bc 'import glob; print(open(glob.glob(\"src/?\")[0]).read())' > {out}", "awk 'BEGIN { getline l < \"src/f\"; print l }' > {out}"]
for command in READS:
    os.makedirs("o", exist_ok=True)
    plain = command.replace("../{out}", "\"$OLDPWD/o/out\"").replace("{out}", "o/out")
    P("src/f").write_text("1\n")
    P("stet.toml").write_text(f"name = 'p'\n[nodes.a]\ncommand = '''{plain}'''\nproduces = 'o/out'\n")
    r = answer("run")
    first = P("o/out").read_text() if P("o/out").exists() else None
    t(f"{command!r} runs", r.get("failed") == 0 and r.get("ran") == 1 and first and "1" in first, r)
    t(f"{command!r} stands", answer("run").get("ran") == 0)
    P("src/f").write_text("2\n")
    answer("run")
    t(f"{command!r} sees an edit", P("o/out").exists() and P("o/out").read_text() == first.replace("1", "2"), P("o/out").exists() and P("o/out").read_text())
    for f in os.listdir("o"):
        os.unlink(f"o/{f}")

# Names with a blank or a leading dash, modules, and a directory behind a link.
for command, file, text in (("cat < -dash > o/out", "-dash", "%s\n"), ("cat -- -dash > o/out", "-dash", "%s\n"), (["cp", "--", "-dash", "o/out"], "-dash", "%s\n"), ("python3 -c 'print(open(\"my file\").read())' > o/out", "my file", "%s\n"),
                            ("echo \"${NONE:-$(cat \"my file\")}\" > o/out", "my file", "%s\n"), ("xargs -d '\\n' cat <<E > o/out\nmy file\nE\n", "my file", "%s\n"), ("python3 -B -mmod > o/out", "mod.py", "print(%s)\n"),
                            ("python3 -Bm mod > o/out", "mod.py", "print(%s)\n"), ("python3 -Bc 'import mod' > o/out", "mod.py", "print(%s)\n"), ("python3 -Bc 'from pack import mod' > o/out", "pack/mod.py", "print(%s)\n"),
                            ("cd -P linked/.. && cat x > ../o/out", "real/x", "%s\n")):
    os.makedirs("pack", exist_ok=True)
    os.makedirs("real/d", exist_ok=True)
    if not os.path.islink("linked"):
        os.symlink("real/d", "linked")
    P(file).write_text(text % 1)
    P("stet.toml").write_text(f"name = 'p'\n[nodes.a]\ncommand = {json.dumps(command)}\nproduces = 'o/out'\n")
    r = answer("run")
    t(f"{command!r} runs", r.get("failed") == 0 and r.get("ran") == 1 and "1" in P("o/out").read_text(), r)
    t(f"{command!r} stands", answer("run").get("ran") == 0)
    P(file).write_text(text % 2)
    answer("run")
    t(f"{command!r} sees an edit", "2" in P("o/out").read_text(), P("o/out").read_text())
    P("o/out").unlink()

# What a command writes itself is none of its inputs: it runs once, and stands after the file was edited.
WRITES = ["cat src/f > tmp; cat tmp > o/out", "cp src/f tmp && sort tmp > o/out", "tee tmp < src/f > o/out", "echo x >> tmp; cat src/f > o/out", "touch tmp; cat src/f > o/out", "rm -f tmp; cat src/f > o/out"]
for command in WRITES:
    P("tmp").write_text("before\n")
    P("stet.toml").write_text(f"name = 'p'\n[nodes.a]\ncommand = '''echo run >> count; {command}'''\nproduces = 'o/out'\n")
    P("count").unlink(missing_ok=True)
    answer("run")
    t(f"{command!r} runs once", P("count").read_text() == "run\n", P("count").read_text())
    P("tmp").write_text("edited\n")
    t(f"{command!r} stands when what it writes is edited", answer("run").get("ran") == 0)

# What is listed in a directory that a command changes to, or makes if it is not there. Patterns of bash with braces in them.
os.makedirs("there/in")
for command, new in (("cd there && ls > ../o/out", "there/n1"), ("mkdir -p there; ls there > o/out", "there/n2"), ("mkdir -p made/here; ls made/here > o/out", "made/here/n3"),
                     ("rmdir there 2>/dev/null; ls there > o/out", "there/n4"), ("bash -c 'ls there/*.{c,h} > o/out'", "there/n5.h"), ("for d in in; do ls there/$d; done > o/out", "there/in/n6")):
    P("there/a.c").write_text("")
    P("there/b.h").write_text("")
    P("stet.toml").write_text(f"name = 'p'\n[nodes.a]\ncommand = '''{command}'''\nproduces = 'o/out'\n")
    answer("run")
    t(f"{command!r} stands", answer("run").get("ran") == 0)
    P(new).write_text("")
    answer("run")
    t(f"{command!r} sees {new}", os.path.basename(new) in P("o/out").read_text(), P("o/out").read_text())
    t(f"{command!r} stands then", answer("run").get("ran") == 0)
# What is not known is never the directory as a whole, nor is a choice of `case` a pattern of files.
for command in ("for i in 1 2; do echo $i; done > o/out", "case x in a*) echo;; (b) echo;; *) echo y > o/out;; esac", "X=`echo hello`; echo $X > o/out; test -n \"$X\""):
    P("stet.toml").write_text(f"name = 'p'\n[nodes.a]\ncommand = '''{command}'''\nproduces = 'o/out'\n")
    answer("run")
    P("another" + str(len(command))).write_text("")
    t(f"{command!r} stands when a file is made", answer("run").get("ran") == 0)
# Files that may be what another node writes make no circle.
P("stet.toml").write_text("""name = 'p'
[nodes.a]
command = 'for i in n; do cat $i.in; done > a.in'
produces = 'a.in'
[nodes.b]
command = 'for i in n; do cat $i.in; done > b.in'
produces = 'b.in'
""")
for text in ("1\n", "2\n"):
    P("n.in").write_text(text)
    r = answer("run")
    t("two commands that may read each other's output", r.get("failed") == 0 and P("a.in").read_text() == P("b.in").read_text() == text, r)
    t("and that stand", answer("run").get("ran") == 0)
# A package on the way to a module.
os.makedirs("pkg/sub")
P("pkg/__init__.py").write_text("V = 1\n")
P("pkg/sub/__init__.py").write_text("")
P("pkg/sub/mod.py").write_text("import pkg; print(pkg.V)\n")
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = 'python3 -m pkg.sub.mod > o/out'\nproduces = 'o/out'\n")
answer("run")
P("pkg/__init__.py").write_text("V = 22\n")
answer("run")
t("python3 -m reads the packages on the way", P("o/out").read_text() == "22\n", P("o/out").read_text())
# A node that comes to write what another has read as a file goes first, also if only the other is wanted.
P("gen.txt").write_text("old\n")
P("stet.toml").write_text("name = 'p'\n[nodes.b]\ncommand = 'cat gen.txt > o/out'\nproduces = 'o/out'\n[result]\nx = '$b'\n")
answer("run")
with open("stet.toml", "a") as f:
    f.write("[nodes.c]\ncommand = 'echo new > gen.txt'\nproduces = 'gen.txt'\n")
answer("run")
t("a node that is new and writes what another reads", P("o/out").read_text() == "new\n", P("o/out").read_text())
# A NUL is no part of an argument.
P("nul.json").write_text('"a\\u0000b"')
P("stet.toml").write_text("""name = 'p'
[nodes.a]
command = 'cat nul.json'
stdout = 'json'
[nodes.b]
command = 'echo {x} > o/out; echo second'
inputs = {x = '$a/stdout'}
produces = 'o/out'
""")
r = subprocess.run([STET, "run"], capture_output=True, text=True)
t("a value with a NUL in it fails the command", r.returncode != 0 and "NUL" in r.stdout + r.stderr, r)

# A file that the command makes if it is not there is read from then on.
P("tmp").unlink()
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = '[ -e tmp ] || cp src/f tmp; cat tmp > o/out'\nproduces = 'o/out'\n")
answer("run")
t("what the command made stands", answer("run").get("ran") == 0)
P("tmp").write_text("by hand\n")
answer("run")
t("and is an input when it is edited", P("o/out").read_text() == "by hand\n", P("o/out").read_text())

# Directories: what is in them, and that they are empty.
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = 'find empty src | sort > o/out'\nproduces = 'o/out'\n")
answer("run")
for change, undo in ((lambda: os.mkdir("empty/e"), lambda: os.rmdir("empty/e")), (lambda: os.mkdir("src/in/e"), lambda: os.rmdir("src/in/e")),
                     (lambda: os.symlink("nowhere", "src/l"), lambda: os.unlink("src/l"))):
    before = P("o/out").read_text()
    change()
    answer("run")
    t("a directory that changes is seen", P("o/out").read_text() != before)
    undo()
    answer("run")
    t("and that it is as it was", P("o/out").read_text() == before)
# A file becomes a directory, and the other way round.
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = 'cat src/f > o/out 2>/dev/null || ls src/f > o/out'\nproduces = 'o/out'\n")
answer("run")
P("src/f").unlink()
os.mkdir("src/f")
P("src/f/inner").write_text("")
answer("run")
t("a directory in place of a file", P("o/out").read_text() == "inner\n", P("o/out").read_text())
os.unlink("src/f/inner")
os.rmdir("src/f")
P("src/f").write_text("file\n")
answer("run")
t("a file in place of a directory", P("o/out").read_text() == "file\n", P("o/out").read_text())
# Pipes are not waited for.
os.unlink("src/f")
os.mkfifo("src/f")
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = 'ls src/f src/in > o/out'\nproduces = 'o/out'\n[nodes.b]\ncommand = 'ls src > o/b'\nproduces = 'o/b'\n")
t("a pipe that a word names is not waited for", answer("run").get("failed") == 0)
os.unlink("src/f")
# A pipe becomes a file.
os.mkfifo("w")
P("stet.toml").write_text("name = 'p'\n[nodes.a]\ncommand = 'test -f w && cat w > o/out || echo none > o/out'\nproduces = 'o/out'\n")
answer("run")
os.unlink("w")
P("w").write_text("file\n")
answer("run")
t("a file in place of a pipe", P("o/out").read_text() == "file\n", P("o/out").read_text())
# Somebody makes a file while the command runs, after it was looked for in vain.
P("stet.toml").write_text("""name = 'p'
[nodes.a]
command = 'cat late > o/out 2>/dev/null || echo none > o/out; touch looked; until test -f go; do sleep 0.02; done'
produces = 'o/out'
""")
beside = subprocess.Popen([STET, "run"], stdout=subprocess.DEVNULL)
deadline = time.monotonic() + 60
while not P("looked").exists() and time.monotonic() < deadline:
    time.sleep(0.02)
P("late").write_text("1\n")
P("go").write_text("")
beside.wait()
t("a file that was made while the command ran is read", P("o/out").read_text() == "1\n", P("o/out").read_text())
t("and then the command stands", answer("run").get("ran") == 0)
P("late").write_text("2\n")
answer("run")
t("and sees an edit of it", P("o/out").read_text() == "2\n", P("o/out").read_text())
# A word below a link that a command makes: who makes the link goes first.
os.mkdir("d")
P("d/x").write_text("1\n")
P("stet.toml").write_text("""name = 'p'
[nodes.link]
command = 'sleep 0.2; ln -s ../d b/l'
produces = 'b/l'
[nodes.word]
command = 'cat b/l/x > o/out'
produces = 'o/out'
""")
P("o/out").unlink()
r = answer("run")  # nothing is known of who makes what yet: the word may have been looked at too early
t("a run that a failure has stopped says so, also if what failed is to run again", r.get("failed") == (0 if P("o/out").exists() else 1), r)
answer("run")
for round in ("2\n", "3\n"):
    P("d/x").write_text(round)
    r = answer("run")
    t("a word below a link that is made waits for it", r.get("failed") == 0 and P("o/out").exists() and P("o/out").read_text() == round, r)
answer("run")
t("and stands", answer("run").get("ran") == 0)
finish()
