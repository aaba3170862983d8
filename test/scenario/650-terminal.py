#!/usr/bin/env python3
"""What a terminal shows: a line of progress with an estimate from past runs, within its width, and nothing of that, nor colours, where there is none."""
import fcntl, os, pathlib, pty, re, signal, struct, subprocess, sys, termios, threading

STET = os.environ["STET"]
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for line in str(note).splitlines()[-20:] if note and not good else []:
        print("# " + line)


def on_terminal(*words, columns=80, stop_after=None, **extra):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.pop("NO_COLOR", None)
        os.environ.update({"TERM": "xterm", **extra})
        os.execv(STET, [STET, *words])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    out = b""
    if stop_after:
        threading.Timer(stop_after, os.kill, (pid, signal.SIGINT)).start()
    while True:
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        out += chunk
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out.decode()


def run(*words, **options):
    return subprocess.run([STET, *words], capture_output=True, text=True, timeout=120, **options)


def pipeline(word):
    nodes = "".join(f'[nodes."{name}"]\ncommand = ["sh", "-c", "sleep 0.8; echo {word}"]\nstdout = "text"\n' for name in names)
    pathlib.Path("stet.toml").write_text('name = "slow"\n' + nodes + "[result]\n" + "".join(f'r{i} = "${n}/stdout"\n' for i, n in enumerate(names)))


names = ["a-step-with-a-rather-long-name", "another-step-with-a-name-that-is-long", "schritt-ueber-alle-berge-und-taeler"]
run("init")
pipeline("one")
status, out = on_terminal("run", "-j", "2")
lines = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in re.split(r"\r\n|\r|\n", out)]
shown = [line for line in lines if re.match(r"\d+/3  ", line)]
test("a run on a terminal shows how far it is", status == 0 and shown, out)
test("what runs, and the time gone by", any(re.search(r"\d+ s: a-step", line) for line in shown), "\n".join(shown))
test("without a past there is no estimate", not any("left" in line for line in shown), "\n".join(shown))
test("the line is taken back before the result", re.search(r"\r\x1b\[Kran 3", out), out)
pipeline("two")
status, out = on_terminal("run", "-j", "2", columns=60)
lines = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line) for line in re.split(r"\r\n|\r|\n", out)]
shown = [line for line in lines if re.match(r"\d+/3  ", line)]
test("the second time there is an estimate", any(re.search(r"about \d+ s left: ", line) for line in shown), "\n".join(shown))
test("no line is wider than the terminal", shown and all(len(line) < 60 for line in shown), "\n".join(shown))
pipeline("three")
done = run("run")
test("no terminal: no progress, no control characters", done.returncode == 0 and "\x1b" not in done.stdout + done.stderr and not done.stderr, done)
test("quiet on a terminal: nothing", on_terminal("run", "-q") == (0, ""))
status, out = on_terminal("run", "--watch", stop_after=2)
test("a watch says how things stand", re.match(r"ran 0, up to date 3, failed 0 in \d\.\d\d s\r\n", out), out)
test("and nothing while it waits", status == 130 and "\x1b[K" not in out, out)
status, out = on_terminal("runs", "list")
test("colour on a terminal", "\x1b[" in out, out)
test("and none with NO_COLOR", "\x1b[3" not in on_terminal("runs", "list", NO_COLOR="1")[1])
test("nor in a pipe", "\x1b" not in run("runs", "list").stdout)
test("stats tell the time that was saved", "savedMs" in run("runs", "stats", "--json").stdout)
test("stet check finds nothing", run("check").returncode == 0)
print(f"1..{count}")
sys.exit(failed != 0)
