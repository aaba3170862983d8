#!/usr/bin/env python3
"""What commands print is shown when they end, once, under the name of their node: with -v line by line while they run, with -q and --json not at all. It is
kept with the run, and nothing of it controls a terminal."""
import fcntl, json, os, pathlib, pty, random, re, struct, subprocess, sys, tempfile, termios

sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/scenario")
from tap import LONG, STET, finish, stet, t  # noqa: E402

rng = random.Random(1620)
NODES = ["ann", "bob", "cyd", "dan"]
NASTY = ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "a\u202eb", "\u200bzero", "tab\there", "\x9b1m", "\x00nul", "50%\r100%", "grün", "\u2066x"]


def words():
    return rng.choice(NASTY) if rng.random() < 0.4 else f"line {rng.randrange(10 ** 6)}"


def texts():
    """What each node prints on its two streams: lines, sometimes without a newline at the end."""
    made = {}
    for node in NODES:
        streams = []
        for _ in range(2):
            lines = [words() for _ in range(rng.randrange(4))]
            streams.append("\n".join(lines) + ("\n" if lines and rng.random() < 0.7 else ""))
        made[node] = streams
    return made


def write(made, failing):
    for node, (out, err) in made.items():
        pathlib.Path(f"{node}.out").write_bytes(out.encode())
        pathlib.Path(f"{node}.err").write_bytes(err.encode())
        pathlib.Path(f"{node}.end").write_text("exit 3\n" if node in failing else f": {rng.random()}\n")


def on_terminal(*args):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm", "NO_COLOR": "1"})
        os.execv(STET, [STET, *args])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    out = b""
    while True:
        try:
            out += os.read(fd, 65536)
        except OSError:
            break
    os.waitpid(pid, 0)
    return out


def whole(text):
    return text + ("" if text.endswith("\n") or not text else "\n")


def run(*args):
    return subprocess.run([STET, "run", "-k", *args], stdin=subprocess.DEVNULL, capture_output=True)


def newest():
    """Ids sort by the second."""
    runs = [json.loads(p.read_text()) for p in pathlib.Path(".stet/runs").glob("*/state.json")]
    return max(runs, key=lambda run: run["createdAt"])["id"]


stet("init")
pathlib.Path("stet.toml").write_text("".join(f"""[nodes.{n}]
command = "cat {n}.out; cat {n}.err >&2; . ./{n}.end; cp {n}.out {{out}}"
files = ["{n}.out", "{n}.err", "{n}.end"]
produces = "build/{n}"
""" for n in NODES))

for round in range(20 if LONG else 2):
    made, failing = texts(), {n for n in NODES if rng.random() < 0.25}
    name = f"round {round}: "
    write(made, failing)
    got = run()
    blocks = {n: f"{n}:\n" + whole(made[n][0]) + whole(made[n][1]) for n in NODES}
    good = all(got.stdout.decode().count(blocks[n]) == 1 for n in NODES if any(made[n]))
    good &= not any(f"{n}:\n" in got.stdout.decode() for n in NODES if not any(made[n]))
    t(name + "each block once, whole, under its name", good, got.stdout.decode(errors="replace"))
    t(name + "the status is that of the commands", got.returncode == (1 if failing else 0), got.stderr)
    kept = {n: pathlib.Path(".stet/runs", newest(), "logs") for n in NODES}
    logs = {p.name.rsplit("-", 1)[0]: p.read_bytes().decode() for p in kept[NODES[0]].glob("*")} if kept[NODES[0]].exists() else {}
    good = all(sorted(logs.get(n, "").splitlines()) == sorted((whole(made[n][0]) + whole(made[n][1])).splitlines()) for n in NODES)
    t(name + "the run keeps all of it", good, (logs, made))

    write(made, failing)
    got = run("-v")
    lines = got.stdout.decode().split("\n")
    good = all(lines.count(f"{n} | {line}") >= sum(s.split("\n").count(line) for s in map(whole, made[n]))
               for n in NODES for s in map(whole, made[n]) for line in s.split("\n")[:-1])
    t(name + "-v puts the name before each line", good and not any(line == f"{n}:" for n in NODES for line in lines), got.stdout.decode(errors="replace"))

    write(made, set())
    got = run("-q")
    t(name + "-q shows nothing of it", got.stdout == b"" and got.returncode == 0, got.stdout)
    write(made, set())
    got = run("--json")
    t(name + "--json is a line of JSON alone", got.stdout.count(b"\n") == 1 and got.stdout.startswith(b"{"), got.stdout)

    write(made, failing)
    shown = on_terminal("run", "-k")
    shown = re.sub(rb"\r\x1b\[K", b"", shown).replace(b"\r\n", b"\n")  # the line of progress, and the end of a line
    text = shown.decode()
    t(name + "nothing controls the terminal", not re.search("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f]", text), repr(text))

write({n: ["", ""] for n in NODES}, set())
run("-q")
pathlib.Path("ann.end").write_text("echo why not >&2\nexit 3\n")
got = run().stdout.decode()
t("a failure names the last line", "failed pipeline/ann: exit status 3: why not\n" in got, got)
got = run("--no-retry-failed").stdout.decode()
t("also when nothing was tried again", "failed before pipeline/ann: exit status 3: why not\n" in got, got)
got = stet("why", "ann").stdout
t("and when somebody asks why", "exit status 3: why not;" in got, got)

# A long output is followed while it is printed.
go = pathlib.Path(tempfile.mkdtemp(), "go")
pathlib.Path("stet.toml").write_text(f"""[nodes.slow]
command = "echo first; while [ ! -e {go} ]; do sleep 0.05; done; echo last; cp ann.out {{out}}"
files = "ann.out"
produces = "build/slow"
""")
worker = subprocess.Popen([STET, "run"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
for _ in range(600):
    logs = list(pathlib.Path(".stet/runs", newest(), "logs").glob("slow*"))
    if logs and b"first\n" in logs[0].read_bytes():
        break
    subprocess.run(["sleep", "0.05"])
t("its log grows while it runs", logs and logs[0].read_bytes() == b"first\n" and worker.poll() is None, logs)
follower = subprocess.Popen([STET, "runs", "logs", newest().rsplit("-", 1)[1], "-f"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
t("who follows sees it at once, by a short id", follower.stdout.readline() == "slow | first\n")
go.touch()
rest = follower.stdout.read()
# A command whose inputs seem to have changed is started again, and its log goes on.
kept = [f"slow | {line}" for line in logs[0].read_text().splitlines()]
t("and the rest", kept[-1] == "slow | last" and ["slow | first"] + rest.splitlines() == kept, (rest, kept))
worker.wait()
finish()
