"""wire.py - `stet mcp` spoken to in raw frames, and TAP. For the scenarios whose names begin with 7."""
import contextlib, json, os, pathlib, queue, re, shutil, signal, subprocess, sys, threading, time  # noqa: F401 (tests import all of it)

STET = os.environ["STET"]
SOURCE = pathlib.Path(os.environ["STET_SOURCE"])
META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
os.environ["STET_CHECK_RESULTS"] = "1"
SLOW = 5 if "san" in os.environ.get("STET_BUILD", "") else 1  # sanitizers take their time
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        for line in str(note).splitlines()[-30:]:
            print("# " + line[:2000], flush=True)


def same(name, got, want):
    test(name, got == want, f"expected: {want}\ngot:      {got}")


def finish():
    if pathlib.Path(".stet").is_dir():
        done = stet("check")
        test("stet check finds nothing", done.returncode == 0, done.stdout + done.stderr)
    print(f"1..{count}")
    sys.exit(failed != 0)


def stet(*words, **options):
    return subprocess.run([STET, *words], capture_output=True, text=True, timeout=120, **options)


def canonical(value):
    """As stet prints it. Numbers in tests are integers or short decimals, which Python prints alike."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def prepare():
    """The project in which the table's examples run: made once; `fresh` copies it."""
    here = pathlib.Path.cwd()
    prepared, home = here / "prepared", here / "prepared-home"
    prepared.mkdir()
    env = dict(os.environ, STET_HOME=str(home))
    stet("init", cwd=prepared, env=env)
    made = subprocess.run(["bash", str(SOURCE / "test/scenario/fixture.sh")], cwd=prepared, env=env, capture_output=True, text=True)
    test("the fixture can be prepared", made.returncode == 0, made.stdout + made.stderr)


def fresh():
    """A copy of it, always at the same path, and the environment to go with it."""
    here = pathlib.Path.cwd()
    work, home = here / "work", here / "work-home"
    for old, new in (here / "prepared", work), (here / "prepared-home", home):
        shutil.rmtree(new, ignore_errors=True)
        if old.exists():
            shutil.copytree(old, new, symlinks=True)
    for registry in home.glob("registry/*.json"):
        registry.write_text(registry.read_text().replace(str(here / "prepared"), str(work)))
    return {"cwd": work, "env": dict(os.environ, STET_HOME=str(home))}


def volatile(a, b, at=()):
    """The places at which two values differ."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return [p for k in a for p in volatile(a[k], b[k], (*at, k))]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [p for i in range(len(a)) for p in volatile(a[i], b[i], (*at, i))]
    return [] if canonical(a) == canonical(b) else [at]


def masked(value, places):
    """The value with something fixed at these places, where it has them."""
    value = json.loads(json.dumps(value))
    for place in places:
        into = value
        try:
            for key in place[:-1]:
                into = into[key]
            into[place[-1]] = "..." if place else value
        except (KeyError, IndexError, TypeError):
            pass
    return value


class Server:
    """One `stet mcp`. Lines it writes are read by a thread, so that nothing here can block it."""

    def __init__(self, *words, stderr=subprocess.PIPE, **options):
        self.process = subprocess.Popen([STET, "mcp", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, **options)
        self.lines = queue.Queue()
        self.raw = []
        self.kept = []
        self.next_id = 1000
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.raw.append(line)
            self.lines.put(line)
        self.lines.put(None)

    def send_bytes(self, data):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def send(self, message):
        self.send_bytes((json.dumps(message) + "\n").encode())

    def receive(self, timeout=20):
        """The next message, or None at the end or when the time is over."""
        try:
            line = self.lines.get(timeout=timeout * SLOW)
        except queue.Empty:
            return None
        return None if line is None else json.loads(line)

    def wait_for(self, wanted, timeout=20):
        """The first message for which `wanted` holds; the others are kept."""
        for message in self.kept:
            if wanted(message):
                self.kept.remove(message)
                return message
        end = time.monotonic() + timeout * SLOW
        while time.monotonic() < end:
            message = self.receive(max(0.01, (end - time.monotonic()) / SLOW))
            if message is None:
                return None
            if isinstance(message, dict) and wanted(message):
                return message
            self.kept.append(message)
        return None

    def answer(self, id, timeout=20):
        return self.wait_for(lambda m: m.get("id") == id and "method" not in m, timeout)

    def initialize(self, version=LEGACY[0]):
        answer = self.request("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def begin(self, method, id=None, **params):
        if id is None:
            self.next_id += 1
            id = self.next_id
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def request(self, method, **params):
        return self.answer(self.begin(method, **params))

    def modern(self, method, meta={}, **params):
        return self.request(method, _meta={META + "protocolVersion": MODERN, META + "clientCapabilities": {}, **meta}, **params)

    def begin_modern(self, method, meta={}, **params):
        return self.begin(method, _meta={META + "protocolVersion": MODERN, META + "clientCapabilities": {}, **meta}, **params)

    def call(self, tool, arguments=None, **more):
        """A tool's result in the legacy session."""
        return self.request("tools/call", name=tool, **({} if arguments is None else {"arguments": arguments}), **more)["result"]

    def notify(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def close(self, timeout=20):
        """Ends its input. Returns exit status and what was on standard error."""
        with contextlib.suppress(BrokenPipeError, ValueError):
            self.process.stdin.close()
        return self.ended(timeout)

    def ended(self, timeout=20):
        try:
            status = self.process.wait(timeout * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "hangs", ""
        error = self.process.stderr.read().decode() if self.process.stderr else ""
        return status, error


def code(message):
    return ((message or {}).get("error") or {}).get("code")
