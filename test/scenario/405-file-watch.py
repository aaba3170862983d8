#!/usr/bin/env python3
"""A live watch stands in for looking at files: stet run asks it, and believes it only if it answers. Changes of every kind that is
followed: content, patterns, directories, links that lead outside, hard links, directories that are made, moved and removed; a watch
that was killed, stopped, or can't be had."""
import json, os, pathlib, shutil, signal, subprocess, time
from tap import STET, finish, t

BUILD = os.environ["STET_BUILD"]
root = pathlib.Path("p").absolute()
outside = pathlib.Path("outside").absolute()


def stet(*words, program=STET, **env):
    return subprocess.run([program, *words], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                          env=dict(os.environ, **env))


def run(**env):
    r = stet("run", "--json", **env)
    try:
        return {"ran": -1, "watched": None, **json.loads(r.stdout)}
    except ValueError:
        return {"ran": -1, "watched": None, "error": r.stdout + r.stderr}


def write(path, text):
    p = pathlib.Path(root / path)
    p.parent.mkdir(parents=True, exist_ok=True)
    p.write_text(text)


def watch(program=STET, **env):
    w = subprocess.Popen([program, "file", "watch"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         env=dict(os.environ, **env))
    for _ in range(200):
        if stet("file", "watch", "--timeout", "0").returncode != 0 or w.poll() is not None:
            break
        time.sleep(0.02)
    return w


def result():
    return (root / "b/out").read_text()


def takes(name, expected, ran=1):
    """After an edit: one run by the watch's word alone, and the tree is right."""
    r = run()
    t(name, r["watched"] is True and r["ran"] == ran and result() == expected, f"{r} {result()!r}")


outside.mkdir()
(outside / "far").write_text("far\n")
root.mkdir()
write("src/a.c", "a\n")
write("tree/x/y", "y\n")
(root / "linked").symlink_to(outside / "far")
(root / "way").mkdir()
(root / "real").mkdir()
(root / "real/f").write_text("f\n")
(root / "way/to").symlink_to("../real")
write("stet.toml", """name = "w"
[nodes.all]
command = "cat {globs} {linked} {through} > {out}; cat $(find {tree} -type f | sort) >> {out}"
files = { globs = "src/**/*.c", linked = "linked", through = "way/to/f", tree = "tree" }
produces = { out = "b/out" }
env = ["TONE"]
""")
stet("init")
r = run(TONE="1")
t("nobody watches: files are looked at", r["ran"] == 1 and r["watched"] is False, r)
w = watch()
r = run(TONE="1")
t("a watch is asked, and nothing runs", r["watched"] is True and r["ran"] == 0 and r["files"] > 4, r)
r = stet("file", "watch", "--timeout", "1")
t("a second one is refused", r.returncode == 5 and "another process watches" in r.stderr, r.stderr)
r = run(TONE="2")
t("variables are those of the run, not of the watch", r["watched"] is True and r["ran"] == 1, r)
os.environ["TONE"] = "2"
write("src/a.c", "b\n")
takes("content", "b\nfar\nf\ny\n")
os.utime(root / "src/a.c")
takes("a touch", "b\nfar\nf\ny\n", 0)
write("src/new.c", "n\n")
takes("a file that a pattern now matches", "b\nn\nfar\nf\ny\n")
write("src/deep/er/z.c", "z\n")
takes("directories that are made, with files in them at once", "b\nz\nn\nfar\nf\ny\n")
write("src/deep/er/z.c", "zz\n")
takes("which are watched from then on", "b\nzz\nn\nfar\nf\ny\n")
os.rename(root / "src/deep", root / "src/moved")
takes("a directory that is moved", "b\nzz\nn\nfar\nf\ny\n")
write("src/moved/er/z.c", "z3\n")
takes("and changed under its new name", "b\nz3\nn\nfar\nf\ny\n")
write("src/deep/er/z.c", "again\n")
takes("while another gets its old name", "b\nagain\nz3\nn\nfar\nf\ny\n")
shutil.rmtree(root / "src/deep")
shutil.rmtree(root / "src/moved")
takes("directories that are removed", "b\nn\nfar\nf\ny\n")
write("tree/x/y", "yy\n")
takes("deep in a directory that is an input", "b\nn\nfar\nf\nyy\n")
write("tree/q/r/s", "s\n")
r = run()
t("a directory made in it", r["watched"] and r["ran"] == 1 and sorted(result().split()) == sorted("b n far f yy s".split()), f"{r} {result()}")
write("tree/q/r/s", "s2\n")
r = run()
t("and changed there", r["watched"] and r["ran"] == 1 and "s2" in result(), r)
shutil.rmtree(root / "tree/q")
takes("and removed", "b\nn\nfar\nf\nyy\n")
(outside / "far").write_text("farther\n")
takes("behind a link that leads outside", "b\nn\nfarther\nf\nyy\n")
(outside / "other").write_text("other\n")
(root / "linked").unlink()
(root / "linked").symlink_to(outside / "other")
takes("a link that leads elsewhere", "b\nn\nother\nf\nyy\n")
(outside / "other").write_text("other 2\n")
takes("and there", "b\nn\nother 2\nf\nyy\n")
(root / "real2").mkdir()
(root / "real2/f").write_text("f2\n")
(root / "way/to").unlink()
(root / "way/to").symlink_to("../real2")
takes("a link on the way", "b\nn\nother 2\nf2\nyy\n")
(root / "real2/f").write_text("f3\n")
takes("and behind it", "b\nn\nother 2\nf3\nyy\n")
os.link(root / "src/a.c", outside / "hard")
os.utime(root / "src/a.c")
takes("a hard link", "b\nn\nother 2\nf3\nyy\n", 0)
(outside / "hard").write_text("hard\n")
takes("and a change under its other name", "hard\nn\nother 2\nf3\nyy\n")
(root / "b/out").write_text("spoilt\n")
takes("an output that is overwritten", "hard\nn\nother 2\nf3\nyy\n")
shutil.rmtree(root / "b")
takes("an output directory that is removed", "hard\nn\nother 2\nf3\nyy\n")
takes("and nothing more", "hard\nn\nother 2\nf3\nyy\n", 0)
(root / ".stet/local/files/main/index").unlink()
write("src/a.c", "lost\n")
takes("the index is deleted under it", "lost\nn\nother 2\nf3\nyy\n")

# A pattern file that names more.
write("stet.toml", (root / "stet.toml").read_text().replace('tree = "tree"', 'tree = "tree", more = "more/m"'))
write("more/m", "m\n")
r = run()
t("a new input", r["watched"] and r["ran"] == 1, r)
write("more/m", "m2\n")
r = run()
t("is watched by the next run", r["watched"] and r["ran"] == 1, r)

# Something that is no file: its node says so, and the watch lives on.
(root / "more/m").unlink()
os.mkfifo(root / "more/m")
r = run()
t("an input that is no file is a failure of its node", r["failed"] == 1 and "neither" in str(r["problems"]), r)
(root / "more/m").unlink()
write("more/m", "m3\n")
r = run()
t("and the watch goes on", r["watched"] is True and r["ran"] == 1, r)

w.send_signal(signal.SIGSTOP)
write("src/a.c", "stopped\n")
start = time.time()
r = run()
t("a watch that does not answer is done without", r["watched"] is False and r["ran"] == 1 and result().startswith("stopped"), r)
t("after a second", time.time() - start < 5, time.time() - start)
write("src/a.c", "going\n")
w.send_signal(signal.SIGCONT)
takes("it goes on", "going\nn\nother 2\nf3\nyy\n")
t("no cookie is left behind", not [p for p in (root / ".stet/local/files/main").iterdir() if p.name.startswith(("ask", "tmp"))])

w.kill()
w.wait()
write("src/a.c", "killed\n")
r = run()
t("one that was killed is nobody", r["watched"] is False and r["ran"] == 1 and result().startswith("killed"), r)
write("src/a.c", "before\n")
w = watch()
takes("what changed before it began", "before\nn\nother 2\nf3\nyy\n")

# More events than the kernel keeps while the watch sleeps.
most = int(pathlib.Path("/proc/sys/fs/inotify/max_queued_events").read_text())
w.send_signal(signal.SIGSTOP)
fd = [os.open(root / f"src/{n}", os.O_CREAT | os.O_RDWR) for n in ("one", "two")]
for i in range(most // 2 + 1000):
    os.pwrite(fd[i % 2], b"x", 0)
    os.fchmod(fd[i % 2], 0o600 + i % 4 // 2)
write("src/a.c", "overflow\n")
w.send_signal(signal.SIGCONT)
takes("an overflow", "overflow\nn\nother 2\nf3\nyy\n")
w.terminate()
w.wait()
t("SIGTERM ends it", w.returncode == 130, w.returncode)

# No more watches to be had: the n-th is refused by the kernel.
faulty = os.environ["STET_FAULTY"]
for n in (3, 6, 12):
    w = subprocess.run([faulty, "file", "watch", "--timeout", "10"], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       env=dict(os.environ, STET_FAULT=f"call=watch,n={n},action=fail,errno=ENOSPC"))
    t(f"the limit of watches, at the {n}th", w.returncode == 10 and "max_user_watches" in w.stdout, f"{w.returncode} {w.stdout}")
write("src/a.c", "limit\n")
r = run()
t("files are looked at then", r["watched"] is False and r["ran"] == 1, r)

# stet run --watch is a watch for others as well.


def await_result(text):
    for _ in range(300):
        if (root / "b/out").exists() and result().startswith(text):
            return True
        time.sleep(0.02)
    return False


w = subprocess.Popen([STET, "run", "--watch"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
time.sleep(0.3)
write("src/a.c", "by itself\n")
t("run --watch takes it up", await_result("by itself"), result())
for _ in range(50):
    r = run()
    if r["watched"]:
        break
    time.sleep(0.05)
t("and answers others", r["watched"] is True and r["ran"] == 0, r)
write("src/a.c", "two\n")
t("again", await_result("two"), result())
w.terminate()
t("and ends", w.wait(10) == 130, w.returncode)
w = subprocess.Popen([faulty, "run", "--watch"], cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                     env=dict(os.environ, STET_FAULT="call=watch,n=5,action=fail,errno=ENOSPC", STET_SUPERVISE=f"{BUILD}/stet-supervise"))
time.sleep(0.3)
write("src/a.c", "by hand\n")
t("without watches it looks by itself", await_result("by hand"), result())
w.terminate()
_, said = w.communicate(timeout=10)
t("and says so", "max_user_watches" in said, said)
finish(root)
