#!/usr/bin/env python3
"""A pipeline of commands under random edits, against a model that knows what a build from scratch gives and which commands
must run: those whose inputs, words or dependencies make a call that never succeeded before, and no others.

Edits: content (to new states and back to old ones), touch, times set back, a flag, a header that only a dependency file names,
includes added and removed, outputs deleted or overwritten, an input renamed, files that a pattern matches or no longer matches, a
step that fails and mends, a checkout of an earlier state of everything, stet killed while commands run, two runs at once. After
each, the tree is compared by content, and the log of executed commands with the model's.

With STET_PIPELINE_WATCH (pipeline_watch.py) all of it beside a live watch, which is killed, stopped and started now and then, and with
symbolic links, hard links and moved directories among the edits."""
import os, pathlib, random, shutil, subprocess, sys, time

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
STEPS = 2000 if LONG else 25 if SHORT else 110
SEED = int(os.environ.get("STET_SEED", "1"))
WATCH = os.environ.get("STET_PIPELINE_WATCH")
random.seed(SEED)
root = pathlib.Path("p").absolute()
log = pathlib.Path("log").absolute()
SOURCES = [f"s{i}" for i in range(5)]

CC = """#!/bin/sh
# cc.sh FLAG SOURCE OUT DEP: the source with its includes put in, and a dependency file.
echo "$(basename "$2")" >> "$LOG"
{ echo "flag $1"; while read -r a b; do if [ "$a" = include ]; then cat "inc/$b"; else echo "$a $b"; fi; done < "$2"; } > "$3"
{ printf '%s: %s' "$3" "$2"; while read -r a b; do [ "$a" != include ] || printf ' \\\\\\n inc/%s' "$b"; done < "$2"; echo; } > "$4"
"""


def toml(flag):
    text = 'name = "p"\n'
    for s in SOURCES:
        text += f'[nodes.{s}]\ncommand = ["sh", "cc.sh", "{flag}", "{{src}}", "{{out}}", "b/{s}.d"]\nfiles = {{ src = "src/{s}.c" }}\n'
        text += f'produces = {{ out = "b/{s}.o" }}\ndepfile = "b/{s}.d"\nenv = ["LOG"]\n'
    objects = ", ".join(f'"${s}.out"' for s in SOURCES)
    text += f'[nodes.link]\ncommand = "echo link >> $LOG; cat {{objs}} > {{out}}"\nfiles = {{ objs = [{objects}] }}\nproduces = {{ out = "b/program" }}\nenv = ["LOG"]\n'
    text += '[nodes.all]\ncommand = "echo all >> $LOG; cat {texts} /dev/null > {out}"\nfiles = { texts = "data/**/*.txt" }\nproduces = { out = "b/all.txt" }\nenv = ["LOG"]\n'
    ten = ", ".join(f'o{i} = "b/ten/{i}"' for i in range(10))
    text += f'[nodes.ten]\ncommand = "echo ten >> $LOG; for i in 0 1 2 3 4 5 6 7 8 9; do echo $i; cat {{in}}; done | split -l 2 -d -a 1 - b/ten/"\nfiles = "ten.in"\nproduces = {{ {ten} }}\nenv = ["LOG"]\n'
    text += '[nodes.weak]\ncommand = "echo weak >> $LOG; rm -f {out}; grep -v FAIL {in} > {out} && ! grep -q FAIL {in}"\nfiles = "weak.in"\nproduces = { out = "b/weak" }\nenv = ["LOG"]\n'
    text += '[nodes.strong]\ncommand = "echo strong >> $LOG; rev {in} > {out}"\nfiles = "$weak.out"\nproduces = { out = "b/strong" }\nenv = ["LOG"]\n'
    text += '[nodes.made]\ncommand = "echo made >> $LOG; cat {in} {in} > {out}"\nfiles = "ten.in"\nproduces = { out = "mix/m.txt" }\nenv = ["LOG"]\n'
    text += '[nodes.mixed]\ncommand = "echo mixed >> $LOG; cat {in} > {out}"\nfiles = "mix/*.txt"\nproduces = { out = "b/mixed" }\nenv = ["LOG"]\n'
    text += '[nodes.after]\ncommand = "echo after >> $LOG; wc -c < {in} > {out}"\nfiles = "$all.out"\nproduces = { out = "b/after" }\nenv = ["LOG"]\n'
    return text


class Model:
    def __init__(self):
        self.flag, self.succeeded, self.weak_last = "-O0", set(), None
        self.files = {f"src/{s}.c": f"code {s}\ninclude h{i % 3}\n" for i, s in enumerate(SOURCES)}
        self.files |= {f"inc/h{i}": f"head {i}\n" for i in range(4)}
        self.files |= {"data/a.txt": "a\n", "data/d/b.txt": "b\n", "ten.in": "ten\n", "weak.in": "ok\n", "mix/a.txt": "first\n", "mix/z.txt": "last\n"}
        self.last = {}

    def state(self):
        return self.flag, dict(self.files)

    def outcome(self):
        """(outputs, expected log): what from scratch gives, and what must run."""
        out, ran, objects = {}, [], {}

        def node(name, log_name, key, good=True):
            key = repr((name, key))
            if key in self.succeeded:
                self.last[name] = key
                return
            self.last[name] = key
            ran.append(log_name)
            if good:
                self.succeeded.add(key)

        for s in SOURCES:
            text, deps = f"flag {self.flag}\n", []
            for line in self.files[f"src/{s}.c"].splitlines():
                if line.startswith("include "):
                    header = root / "inc" / line[8:]  # the text of a link counts, beside what it leads to
                    deps.append((line[8:], self.files[f"inc/{line[8:]}"], header.is_symlink() and os.readlink(header)))
                    text += deps[-1][1]
                else:
                    text += line + "\n"
            out[f"b/{s}.o"] = text
            node(s, f"{s}.c", (self.flag, self.files[f"src/{s}.c"], deps))
            objects[s] = text
        node("link", "link", [objects[s] for s in SOURCES])
        out["b/program"] = "".join(objects[s] for s in SOURCES)
        texts = sorted((p.encode(), t) for p, t in self.files.items() if p.startswith("data/") and p.endswith(".txt"))
        node("all", "all", texts)
        out["b/all.txt"] = "".join(t for _, t in texts)
        node("after", "after", out["b/all.txt"])
        out["b/after"] = f"{len(out['b/all.txt'].encode())}\n"
        node("ten", "ten", self.files["ten.in"])
        for i in range(10):
            out[f"b/ten/{i}"] = f"{i}\n" + self.files["ten.in"]
        good = "FAIL" not in self.files["weak.in"]
        node("weak", "weak", self.files["weak.in"], good)
        if good:  # what reads its output waits while it fails
            out["b/weak"] = self.files["weak.in"]
            node("strong", "strong", out["b/weak"])
            out["b/strong"] = "".join(line[::-1] + "\n" for line in out["b/weak"].splitlines())
        node("made", "made", self.files["ten.in"])
        out["mix/m.txt"] = self.files["ten.in"] * 2
        mixed = sorted([(p, t) for p, t in self.files.items() if p.startswith("mix/")] + [("mix/m.txt", out["mix/m.txt"])])
        node("mixed", "mixed", mixed)
        out["b/mixed"] = "".join(t for _, t in mixed)
        return out, ran, good


def write(path, text):
    p = root / path
    p.parent.mkdir(parents=True, exist_ok=True)
    p.write_text(text)


model = Model()
history = []
count = 0
failed = 0


def check(name, good, show=""):
    global count, failed
    count += 1
    if not good:
        failed += 1
        print(f"not ok {count} - {name}")
        print("\n".join("# " + line for line in str(show).splitlines()[:60]), flush=True)


def sync(flag, files):
    """The tree becomes this state, as a checkout makes it: only what differs is written."""
    for path in set(model.files) - set(files):
        (root / path).unlink()
    for path, text in files.items():
        if model.files.get(path) != text:
            write(path, text)
    if flag != model.flag:
        write("stet.toml", toml(flag))
    model.flag, model.files = flag, dict(files)


def set_file(path, text):
    model.files[path] = text
    write(path, text)


def edit():
    kind = random.choice(["source", "source", "header", "header", "touch", "flag", "delete", "overwrite", "rename", "add", "remove", "weak",
                          "checkout", "checkout", "back", "include", "ten", "nothing", "directory", "mode", "mix"] +
                         (["move", "link", "hard"] if WATCH else []))
    if kind == "source":
        s = random.choice(SOURCES)
        lines = [l for l in model.files[f"src/{s}.c"].splitlines() if l.startswith("include")]
        set_file(f"src/{s}.c", "\n".join([f"code {s} {random.randrange(4)}"] + lines) + "\n")
    elif kind == "include":
        s = random.choice(SOURCES)
        set_file(f"src/{s}.c", f"code {s}\n" + "".join(f"include h{i}\n" for i in sorted(random.sample(range(4), random.randrange(4)))))
    elif kind == "header":
        i = random.randrange(4)
        set_file(f"inc/h{i}", f"head {i} {random.randrange(4)}\n")
    elif kind == "touch":
        os.utime(root / random.choice(list(model.files)))
    elif kind == "flag":
        sync(random.choice(["-O0", "-O1", "-O2"]), dict(model.files))
    elif kind in ("delete", "overwrite", "mode"):
        there = [p for p in [*root.glob("b/**/*"), root / "mix/m.txt"] if p.is_file() and p.suffix != ".d"]
        if there and kind == "delete":
            random.choice(there).unlink()
        elif there and kind == "mode":
            random.choice(there).chmod(0o755)
        elif there:
            random.choice(there).write_text("spoilt\n")
    elif kind == "directory":
        shutil.rmtree(root / "b", ignore_errors=True)
    elif kind == "rename":
        old = random.choice([p for p in model.files if p.startswith("data/")] or ["ten.in"])
        new = "data/%s%d.txt" % (random.choice(["x y", 'q"uote', "ä", "n\nl", "it's", "d/z", "$HOME"]), random.randrange(3))
        if old != "ten.in" and new not in model.files:
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            os.rename(root / old, root / new)
            model.files[new] = model.files.pop(old)
    elif kind == "add":
        set_file(f"data/{random.choice(['', 'd/', 'e/f/'])}n{random.randrange(3)}.{random.choice(['txt', 'txt', 'other'])}", f"{random.randrange(3)}\n")
    elif kind == "remove":
        there = [p for p in model.files if p.startswith("data/")]
        if there:
            path = random.choice(there)
            (root / path).unlink()
            del model.files[path]
    elif kind == "weak":
        text = random.choice(["ok\n", "FAIL\n", "fine\n", "FAIL again\n"])
        if WATCH and text == model.files["weak.in"]:  # written in place it may be seen while it is empty, which is a change for what failed
            write("weak.new", text)
            os.rename(root / "weak.new", root / "weak.in")
        else:
            set_file("weak.in", text)
    elif kind == "mix":
        path = f"mix/{random.choice('akz')}.txt"
        if path in model.files and path != "mix/a.txt" and random.random() < 0.4:
            (root / path).unlink()
            del model.files[path]
        else:
            set_file(path, f"{path} {random.randrange(3)}\n")
    elif kind == "ten":
        set_file("ten.in", f"ten {random.randrange(3)}\n")
    elif kind == "checkout" and history:
        sync(*random.choice(history))
    elif kind == "back":  # new content, the old size, a time long ago
        i = random.randrange(4)
        path = f"inc/h{i}"
        set_file(path, f"head {i} {random.randrange(4)}\n")
        os.utime(root / path, (1000000000, 1000000000))
    elif kind == "move":  # a directory, there and, the next time, back
        here, there = ("data/d", "data/moved") if (root / "data/d").is_dir() else ("data/moved", "data/d")
        if (root / here).is_dir() and not (root / there).exists():
            os.rename(root / here, root / there)
            for path in [p for p in model.files if p.startswith(here + "/")]:
                model.files[there + path[len(here):]] = model.files.pop(path)
    elif kind == "link":  # a header becomes a link to a file elsewhere, which then changes
        i = random.randrange(4)
        path = root / f"inc/h{i}"
        if path.is_symlink():
            text = f"head {i} {random.randrange(4)}\n"
            pathlib.Path(os.path.realpath(path)).write_text(text)
            model.files[f"inc/h{i}"] = text
        else:
            elsewhere = root.parent / f"elsewhere{random.randrange(2)}"
            elsewhere.mkdir(exist_ok=True)
            (elsewhere / f"h{i}").write_text(model.files[f"inc/h{i}"])
            path.unlink()
            path.symlink_to(elsewhere / f"h{i}")
    elif kind == "hard":  # changed under another name
        i = random.randrange(4)
        path, other = root / f"inc/h{i}", root.parent / f"other-name-{i}"
        if other.exists() and not path.is_symlink() and os.path.samefile(other, path):
            text = f"head {i} {random.randrange(4)}\n"
            other.write_text(text)
            model.files[f"inc/h{i}"] = text
        elif not path.is_symlink():
            other.unlink(missing_ok=True)
            os.link(path, other)
            os.utime(path)  # making a link is nothing that the kernel tells of the file
    return kind


watcher = None


def watch():
    """A live watch now and then ends, is stopped for a while, or begins."""
    global watcher
    how = random.random()
    if watcher and how < 0.04:
        watcher.kill() if random.random() < 0.5 else watcher.terminate()
        watcher.wait()
        watcher = None
        return " unwatched"
    if not watcher and how < 0.7:
        watcher = subprocess.Popen([STET, "file", "watch"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.05)
        return " watched"
    return None


def stet(*words, **more):
    return subprocess.run([STET, *words], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, LOG=str(log)), text=True, **more)


def tree():
    there = list(root.glob("b/**/*")) + [root / "mix/m.txt"]
    return {str(p.relative_to(root)): p.read_text() for p in there if p.is_file() and p.suffix != ".d"}


def as_wanted(now, want):
    """What waits keeps what it made last, or what somebody made of that."""
    return {p: t for p, t in now.items() if p in want or p != "b/strong"} == want


def ran():
    text = log.read_text() if log.exists() else ""
    log.write_text("")
    return sorted(text.split())


root.mkdir()
stet("init")
write("cc.sh", CC)
write("stet.toml", toml(model.flag))
for path, text in model.files.items():
    write(path, text)
edits = ["start"]
for step in range(STEPS):
    want, expected, good = model.outcome()
    how = random.random()
    once = True
    if how < 0.06:  # killed while it works, then again
        p = subprocess.Popen([STET, "run", "-k"], cwd=root, env=dict(os.environ, LOG=str(log)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(random.random() * 0.15)
        p.kill()
        p.wait()
        edits.append("kill")
        once = good  # what failed before the kill is tried again
    elif how < 0.1:  # two at once
        p = subprocess.Popen([STET, "run", "-k"], cwd=root, env=dict(os.environ, LOG=str(log)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        edits.append("two")
        stet("run", "-k")
        p.wait()
        once = good  # each of them tries what fails
    result = stet("run", "-k")
    name = f"step {step} (seed {SEED}): {', '.join(edits[-3:])}"
    check(name + ": status", result.returncode == (0 if good else 1), result.stdout)
    got = ran()
    check(name + ": commands", got == sorted(expected) or (not once and set(got) == set(expected)), f"ran {got}\nexpected {sorted(expected)}\n{result.stdout}")
    now = tree()
    check(name + ": tree", as_wanted(now, want), "\n".join(f"{p}: {now.get(p)!r}, expected {want.get(p)!r}" for p in sorted(set(now) | set(want)) if now.get(p) != want.get(p)))
    if failed:
        if watcher:
            watcher.kill()
            watcher.wait()
        break
    if step % 10 == 0:
        result = stet("run", "-k", "--no-retry-failed")
        check(f"step {step}: nothing more to do", ran() == [] and "ran 0," in result.stdout, result.stdout)
        history.append(model.state())
        del history[:-8]
    edits.append(edit())
    if WATCH:
        edits[-1] += watch() or ""
if watcher and not failed:
    asked = stet("run", "-k", "--json")
    check("the watch is asked in the end", '"watched":true' in asked.stdout, asked.stdout)
    watcher.kill()
    watcher.wait()
want, expected, good = model.outcome()
if not failed:  # the last edit
    result = stet("run", "-k")
    got = ran()
    check(f"the last edit (seed {SEED}): {edits[-1]}: commands", got == sorted(expected) or (watcher and not good and set(got) == set(expected)), f"ran {got}\nexpected {sorted(expected)}\n{result.stdout}")
    check("the last edit: tree", as_wanted(tree(), want), result.stdout)
result = stet("check")
check("stet check finds nothing", result.returncode == 0, result.stdout)
# A copy elsewhere that has the directory of results builds without running anything.
copy = pathlib.Path("copy").absolute()
shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns("b", "local", "m.txt"))
root = copy
if good and not failed:
    result = stet("run")
    got = ran()
    check("another machine with the results runs nothing", got == [] and result.returncode == 0, f"ran {got}\n{result.stdout}")
    check("and has the same tree", tree() == want, tree())
if not failed:
    print(f"ok {count} - {count} checks over {STEPS} edits")
print("1..%d" % count)
sys.exit(1 if failed else 0)
