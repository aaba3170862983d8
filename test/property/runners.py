#!/usr/bin/env python3
"""Random pipelines that several processes run at once while their inputs are edited, replaced, deleted and made again, and while processes are
stopped and killed at random times. When it is quiet again, one run ends well, a second one runs nothing, `stet check` finds nothing, and every
output and value is what a new project gives. Meanwhile nothing crashes, and nothing is called failed but what lacks a file.

Processes: `stet run` (whole and in part), `run --watch`, `file watch`, `stet set`, `status`, and an MCP server whose `stet_run` is cancelled
now and then."""
import json, os, pathlib, random, re, shutil, signal, subprocess, sys, threading, time

# The leak checker can't read the heap of the JavaScript engine, and ends the program.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"

STET = os.environ["STET"]
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
ROUNDS = int(os.environ.get("STET_ROUNDS", "60" if LONG else "2" if SHORT else "4"))
STORM_S = 12 if LONG else 3 if SHORT else 5
SEED = int(os.environ.get("STET_SEED", "1"))
SLOW = 4 if "sanitize" in STET else 1  # how much longer things take
ENV = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""))
root = pathlib.Path("p").absolute()
count = bad = 0


def t(name, good, show=""):
    global count, bad
    count += 1
    bad += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print("\n".join("# " + line for line in str(show).splitlines()[:60]), flush=True)


def stet(*words, where=None, timeout=120):
    return subprocess.run([STET, *map(str, words)], cwd=where or root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, env=ENV, timeout=timeout * SLOW)


def pipeline(r):
    """(text of stet.toml, names of sources). Every command is a function of what it declares."""
    sources = [f"src/s{i}.txt" for i in range(r.randrange(2, 5))]
    text, made = 'name = "p"\n[argument]\nk = 1\n', []

    def pause():
        return r.choice(["", "", f"sleep 0.0{r.randrange(1, 9)}; ", f"sleep 0.{r.randrange(1, 3)}; "])

    for i in range(r.randrange(3, 9)):
        inputs = [f'"{r.choice(sources)}"' if not made or r.random() < 0.4 else f'"${r.choice(made)}.out"' for _ in range(r.randrange(1, 4))]
        inputs = sorted(set(inputs))
        text += f'[nodes.c{i}]\ncommand = "{pause()}cat {{in}} > {{out}}; {pause()}echo c{i} >> {{out}}"\nfiles = {{ in = [{", ".join(inputs)}] }}\n'
        text += f'produces = {{ out = "o/c{i}" }}\n' + ("cache = false\n" if r.random() < 0.2 else "")
        made.append(f"c{i}")
    text += f'[nodes.up]\neach = {{ one = "src/*.txt" }}\ncommand = "{pause()}tr a-z A-Z < {{one}} > {{out}}"\nproduces = "up/{{one.stem}}"\n'
    text += f'[nodes.all]\ncommand = "{pause()}cat {{in}} > {{out}}"\nfiles = {{ in = "$up.out" }}\nproduces = "o/all"\n'
    if r.random() < 0.5:
        text += f'[nodes.list]\ncommand = "{pause()}ls {{in}} > {{out}}"\nfiles = {{ in = "src/*.txt" }}\nproduces = "o/list"\n'
    text += f'[nodes.size]\ncommand = "{pause()}cksum < {{in}} | cut -d\' \' -f1"\nstdout = "json"\nfiles = {{ in = "${r.choice(made)}.out" }}\n'
    text += '[nodes.js]\njavascript = "({n, k}) => ({n, twice: n * 2 + k})"\ninputs = { n = "$size/stdout", k = "$argument/k" }\n'
    text += '[nodes.add]\nref = "add"\ninputs = { 0 = "$js/twice", 1 = "$argument/k" }\n'
    text += '[result]\njs = "$js"\nadd = "$add"\n'
    return text, sources


def where_it_waits(p):
    """What the kernel says of a process that does not end, and of its threads: the system call, and the locks that it holds or waits for."""
    lines = [f"{p.pid} {p.args}"]
    for task in pathlib.Path(f"/proc/{p.pid}/task").glob("*"):
        for name in ["status", "wchan", "syscall"]:
            try:
                text = (task / name).read_text()
                lines.append(f"  {task.name} {name}: " + (re.search(r"State:.*", text)[0] if name == "status" else text.strip()))
            except OSError as e:
                lines.append(f"  {task.name} {name}: {e}")
    for fd in pathlib.Path(f"/proc/{p.pid}/fdinfo").glob("*"):
        try:
            lines += [f"  fd {fd.name} {os.readlink(f'/proc/{p.pid}/fd/{fd.name}')}: {x}" for x in fd.read_text().splitlines() if x.startswith("lock:")]
        except OSError:
            pass
    return "\n".join(lines)


class Storm:
    def __init__(self, seed, sources):
        self.r, self.sources = random.Random(seed), sources
        self.over, self.wrong, self.runs, self.kills = False, [], 0, 0
        self.lock, self.living = threading.Lock(), []

    def start(self, *words, **more):
        p = subprocess.Popen([STET, *words], cwd=root, stdin=more.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, env=ENV, **more)
        p.ended = False  # by a signal of ours
        with self.lock:
            self.living.append(p)
        return p

    def judge(self, p, said, words):
        with self.lock:
            if p in self.living:
                self.living.remove(p)
        self.runs += 1
        if (p.returncode < 0 and not p.ended) or p.returncode == 70 or "AddressSanitizer" in said or "Assertion" in said:
            self.wrong.append((words, p.returncode, said[-3000:]))
        # What reads the output of a failed or waiting command waits, whatever its kind: it never fails for that.
        for line in said.splitlines():
            if re.match(r"failed (before )?p/", line) and not re.search(r"no file|no such file|missing", line):
                self.wrong.append((words, p.returncode, said[-3000:]))
                break

    def runner(self, seed, *words):
        r = random.Random(seed)
        while not self.over:
            more = r.choice([[], [], ["-j", "1"], ["-k"], ["-n"]])
            p = self.start(*words, *more)
            self.judge(p, p.communicate()[0], words)

    def watcher(self, *words):
        while not self.over:
            p = self.start(*words)
            self.judge(p, p.communicate()[0], words)
            time.sleep(0.05)

    def setter(self, seed):
        r = random.Random(seed)
        while not self.over:
            words = r.choice([("set", "other/n", str(r.randrange(100))), ("status",), ("set", f"other/{r.randrange(5)}", "[1]")])
            p = self.start(*words)
            self.judge(p, p.communicate()[0], words)
            time.sleep(r.random() * 0.1)

    def client(self, seed):
        """An MCP client that lets the server run the pipeline, and cancels now and then."""
        r = random.Random(seed)
        while not self.over:
            p = self.start("mcp", "--all-tools", stdin=subprocess.PIPE)
            try:
                def send(**m):
                    p.stdin.write(json.dumps({"jsonrpc": "2.0", **m}) + "\n")
                    p.stdin.flush()
                send(id=0, method="initialize", params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
                send(method="notifications/initialized")
                for i in range(1, 8):
                    send(id=i, method="tools/call", params={"name": "stet_run", "arguments": {}})
                    time.sleep(r.random() * 0.4)
                    if r.random() < 0.5:
                        send(method="notifications/cancelled", params={"requestId": i})
                    if self.over:
                        break
            except (BrokenPipeError, OSError):
                pass
            try:
                said = p.communicate()[0]
            except (BrokenPipeError, OSError, ValueError):
                p.wait()
                said = ""
            self.judge(p, said, ("mcp",))

    def editor(self):
        r, n = self.r, 0
        while not self.over:
            n += 1
            path, kind = root / r.choice(self.sources), r.random()
            if kind < 0.35:
                path.write_text(f"edit {n % 7}\n" * r.randrange(1, 4))
            elif kind < 0.7:
                (root / "new").write_text(f"replace {n % 5}\n")
                os.rename(root / "new", path)
            elif kind < 0.8:
                path.unlink(missing_ok=True)
            elif kind < 0.87:
                (root / "src" / f"x{r.randrange(3)}.txt").write_text(f"extra {r.randrange(3)}\n")
            elif kind < 0.92:
                (root / "src" / f"x{r.randrange(3)}.txt").unlink(missing_ok=True)
            time.sleep(r.random() * r.choice([0.02, 0.1, 0.3]))

    def killer(self, seed):
        r = random.Random(seed)
        while not self.over:
            time.sleep(0.1 + r.random() * 0.6)
            with self.lock:
                p = r.choice(self.living) if self.living else None
            if p and p.poll() is None:
                p.ended = True
                self.kills += 1
                p.send_signal(r.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))

    def blow(self):
        r = random.Random(self.r.random())
        jobs = [(self.editor, ()), (self.killer, (r.random(),)), (self.setter, (r.random(),))]
        jobs += [(self.runner, (r.random(), "run")) for _ in range(r.randrange(1, 4))]
        jobs += [(self.runner, (r.random(), "run", "js"))] * (r.random() < 0.3)
        jobs += [(self.watcher, ("run", "--watch"))] * r.randrange(0, 3)
        jobs += [(self.watcher, ("file", "watch"))] * (r.random() < 0.5)
        jobs += [(self.client, (r.random(),))] * (r.random() < 0.5)
        threads = [threading.Thread(target=f, args=a) for f, a in jobs]
        [x.start() for x in threads]
        time.sleep(STORM_S)
        self.over = True
        until = time.monotonic() + 300 * SLOW
        while any(x.is_alive() for x in threads):
            with self.lock:
                left = [p for p in self.living if p.poll() is None]
            if time.monotonic() > until:
                self.wrong.append(("processes that do not end", len(left), "\n".join(map(where_it_waits, left))))
                [p.kill() for p in left]
                until = time.monotonic() + 60
            for p in left:
                if ("--watch" in p.args or "watch" in p.args or "mcp" in p.args) and not p.ended:
                    p.ended = True
                    p.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        [x.join() for x in threads]


def wait_for_commands():
    """Processes that were killed have left commands behind, which go on without them."""
    until = time.monotonic() + 60 * SLOW
    while time.monotonic() < until:
        busy = False
        for p in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                busy |= os.readlink(p / "cwd").startswith(str(root))
            except OSError:
                pass
        if not busy:
            return
        time.sleep(0.02)


def tree(where, tops):
    return {str(f.relative_to(where)): f.read_text() for top in tops for f in sorted((where / top).glob("**/*")) if f.is_file()}


for number in range(ROUNDS):
    seed = SEED * 1000 + number
    r = random.Random(seed)
    shutil.rmtree(root, ignore_errors=True)
    (root / "src").mkdir(parents=True)
    text, sources = pipeline(r)
    (root / "stet.toml").write_text(text)
    for s in sources:
        (root / s).write_text(f"first {s}\n")
    stet("init")
    storm = Storm(r.random(), sources)
    storm.blow()
    t(f"seed {seed}: {storm.runs} processes, {storm.kills} ended at random: none crashes, none fails", not storm.wrong,
      "\n".join(map(str, storm.wrong[:4])) + "\n" + text)
    for s in sources:
        if not (root / s).exists():
            (root / s).write_text(f"again {s}\n")
    wait_for_commands()
    for f in sorted([*(root / "o").glob("*"), *(root / "up").glob("*")]):  # outputs, by hand; not while commands write them
        if f.is_file() and r.random() < 0.2:
            f.write_text("spoilt\n") if r.random() < 0.5 else f.unlink()
    k = r.randrange(100)
    first = stet("run", "--set", f"k={k}")
    t(f"seed {seed}: when it is quiet a run ends well", first.returncode == 0, first.stdout)
    second = stet("run")
    t(f"seed {seed}: and a second one has nothing to do", second.returncode == 0 and "ran 0" in second.stdout, first.stdout + second.stdout)
    fresh = root.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    shutil.copytree(root / "src", fresh / "src")
    shutil.copy(root / "stet.toml", fresh)
    stet("init", where=fresh)
    scratch = stet("run", "--set", f"k={k}", where=fresh)
    t(f"seed {seed}: a new project runs", scratch.returncode == 0, scratch.stdout)
    is_, should = tree(root, ["o", "up"]), tree(fresh, ["o", "up"])
    wrong = {f: (is_.get(f), should[f]) for f in should if is_.get(f) != should[f]}
    t(f"seed {seed}: outputs are what a new project makes", not wrong, f"{wrong}\n{text}")
    values = [stet("piece", "pull", "p", "--json", where=w).stdout for w in (root, fresh)]
    same = len({json.dumps(json.loads(v).get("result"), sort_keys=True) for v in values}) == 1
    t(f"seed {seed}: and so are values", same, "\n".join(values))
    check = stet("check")
    t(f"seed {seed}: stet check finds nothing", check.returncode == 0, check.stdout)
    if bad:
        kept = os.environ.get("STET_KEEP")
        if kept:
            shutil.copytree(root, pathlib.Path(kept) / str(seed), dirs_exist_ok=True, symlinks=True)
        break
print(f"1..{count}")
sys.exit(1 if bad else 0)
