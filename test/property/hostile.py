#!/usr/bin/env python3
"""Looking at a project that an attacker made is safe.

A project with commands, functions, documents, calls, runs and stored results is changed at random, as somebody could who sends it in an archive:
symbolic links (to files, directories, devices, circles, nowhere), FIFOs, sockets, large sparse files, deep directories, directories in place of
files and files in place of directories, names of every byte, crafted databases, settings, runs and stored results. Then every operation that reads
is run, and afterwards

  H1. none of the project's code ran (each command and each function of it would leave a mark outside);
  H2. nothing outside of the project, of STET_HOME and of temporary directories was written, made or deleted: strace saw each system call, and a
      directory outside is as it was;
  H3. no file of that directory outside was opened;
  H4. each operation ended within 20 seconds of processor time, used at most 256 MB, and did not crash;
  H5. nothing that would steer a terminal was printed."""
import json, os, pathlib, random, re, resource, shutil, socket, sqlite3, subprocess, sys, time

os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
STET = os.environ["STET"]
SANITIZED = "sanitize" in STET
LONG, SHORT = os.environ.get("STET_TEST_LONG"), os.environ.get("STET_TEST_SHORT")
SEED = int(os.environ.get("STET_SEED", "1"))
CASES = int(os.environ.get("STET_CASES", 2000 if LONG else 10 if SHORT else 60))
MEMORY = 256 << 20
here = pathlib.Path(".").absolute()
base, root, outside = here / "base", here / "p", here / "outside"
rng = random.Random(SEED)


class Failures(list):
    def append(self, text):
        super().append(text)
        if len(self) <= 40:
            print("#", text.encode("ascii", "backslashreplace").decode(), flush=True)


failures = Failures()

PATTERN = f"""
name = "main"
[argument]
n = 1
[nodes.upper]
command = "touch {outside}/ran; tr a-z A-Z < {{in}} > {{out}}"
files = "in.txt"
produces = "out.txt"
[nodes.dir]
command = "touch {outside}/ran; mkdir -p d/e; cp {{in}} d/e/f"
files = "in.txt"
produces = "d/"
[nodes.each]
command = "touch {outside}/ran; cp {{in}} {{out}}"

each = "src/*.txt"
produces = "o/{{in.stem}}"
[nodes.sum]
inputs = {{ d = {{ "/" = {{ "link@1" = {{ id = "doc" }} }} }}, n = "$argument/n" }}
javascript = "({{d, n}}) => (d?.x ?? 0) + n"
[nodes.twice]
inputs = {{ values = ["$sum", "$sum"] }}
ref = "add"
"""
READS = [["status"], ["status", "--drift"], ["why", "upper"], ["why", "twice"], ["run", "-n"], ["check"], ["runs", "list"], ["runs", "search", "x"], ["runs", "show", "RUN"],
         ["runs", "logs", "RUN"], ["persist", "list"], ["persist", "stats"], ["pattern", "check", "stet.toml"], ["action", "list"], ["action", "show", "main/upper"],
         ["piece", "list"], ["piece", "show", "main"], ["piece", "graph", "main"], ["get", "doc"], ["get", "piece:main"], ["space", "list"],
         ["call", "list"], ["dag", "list"], ["remote", "list"], ["branch", "list"], ["file", "list"], ["gc", "--dry-run"], ["doctor"], ["history"], ["queue", "list"],
         ["project", "list"], ["trust", "--show"], ["registry", "show"], ["runs", "search", "--status", "failed"], ["doc", "list"]]


def stet(*args, cwd=root):
    return subprocess.run([STET, *args], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def make_base():
    base.mkdir()
    (base / "src").mkdir()
    for n in "ab":
        (base / f"src/{n}.txt").write_text(n)
    (base / "in.txt").write_text("abc\n")
    stet("init", cwd=base)
    outside.mkdir(exist_ok=True)
    (base / "stet.toml").write_text(PATTERN)
    stet("set", "doc", '{"x": 3}', cwd=base)
    r = stet("run", cwd=base)
    assert r.returncode == 0, r.stdout + r.stderr
    stet("call", "run", "dml+exec://stet-exec-local/true", cwd=base)
    (base / "in.txt").write_text("abcd\n")
    r = stet("run", cwd=base)
    assert r.returncode == 0, r.stdout + r.stderr
    shutil.rmtree(outside)


def fresh_outside():
    shutil.rmtree(outside, ignore_errors=True)
    (outside / "sub").mkdir(parents=True)
    (outside / "secret").write_text("SECRET\n")
    (outside / "sub/other").write_text("OTHER\n")
    (outside / "state.json").write_text('{"runId": "SECRET", "version": 1}')
    old = time.time() - 30 * 86400
    for p in [*outside.rglob("*"), outside]:
        os.utime(p, (old, old))


def picture():
    return {str(p): (p.lstat().st_mode, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else None) for p in [outside, *outside.rglob("*")]}


def clear(path):
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)


def odd_name():
    kind = rng.randrange(4)
    if kind == 0:
        return "x" + "".join(chr(rng.choice([1, 7, 8, 9, 10, 13, 27, 127, 0x9b, 0x202e, 0x200f, 0x2066])) for _ in range(3)) + "y.txt"
    if kind == 1:
        return os.fsdecode(b"n\xff\xfe" + bytes([rng.randrange(1, 256) or 1]).replace(b"/", b"_") + b".txt")
    return rng.choice(["\x1b]0;owned\x07.txt", "\x1b[2J.txt", "-rf", "--help", " ", "a" * 250, "..." if kind == 2 else "$(touch ran)"])


def thing(path, was_dir):
    """Something else in place of `path`."""
    kind = rng.choice(["file-link", "dir-link", "self", "nowhere", "zero", "random", "fifo", "socket", "sparse", "deep", "other-kind", "proc", "many"])
    clear(path)
    if kind == "file-link":
        os.symlink(rng.choice([outside / "secret", outside / "state.json"]), path)
    elif kind == "dir-link":
        os.symlink(rng.choice([outside, outside / "sub", pathlib.Path("/"), root, path.parent]), path)
    elif kind == "self":
        os.symlink(path.name, path)
    elif kind == "nowhere":
        os.symlink(outside / "made-through-link", path)
    elif kind == "zero":
        os.symlink("/dev/zero", path)
    elif kind == "random":
        path.write_bytes(rng.randbytes(rng.choice([0, 1, 100, 100000])))
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        s = socket.socket(socket.AF_UNIX)
        where = os.getcwd()
        os.chdir(path.parent)
        try:
            s.bind(path.name)
        except OSError:
            pass
        os.chdir(where)
        s.close()
    elif kind == "sparse":
        with open(path, "wb") as f:  # stet hashes the project's own files whole, however large; its own ones have limits
            f.truncate(1 << 40 if ".stet" in path.parts else 1 << 28)
    elif kind == "deep":
        path.mkdir()
        at = os.open(path, os.O_RDONLY)
        for _ in range(400):
            os.mkdir("d" * 50, dir_fd=at)
            below = os.open("d" * 50, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
    elif kind == "other-kind":
        path.write_text("x") if was_dir else path.mkdir()
    elif kind == "proc":
        os.symlink("/proc/self/fd/0", path)
    elif kind == "many":
        path.mkdir()
        for _ in range(200):
            try:
                (path / odd_name()).write_text("x")
            except OSError:
                pass
    return f"{kind} at {os.fsencode(path.relative_to(root))!r}"


def sql():
    databases = [p for p in (root / ".stet").rglob("*.db") if p.is_file() and not p.is_symlink()]
    if not databases:
        return "no database"
    path = rng.choice(databases)
    try:
        db = sqlite3.connect(path)
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        table = rng.choice(tables)
        columns = [r[1] for r in db.execute(f"PRAGMA table_info({table})")]
        statement = rng.choice([
            f"CREATE TRIGGER t AFTER UPDATE ON {table} BEGIN DELETE FROM {table}; END",
            f"ALTER TABLE {table} RENAME TO zz; CREATE VIEW {table} AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT "
            + ", ".join(f"x AS {c}" for c in columns) + " FROM r",
            f"UPDATE {table} SET {rng.choice(columns)} = " + rng.choice(["9223372036854775807", "-9223372036854775808", "zeroblob(3000000)", "NULL", "'../../../etc/passwd'",
                                                                          "x'ff00ff'", "'\x1b]0;owned\x07'", "1e300", f"'{outside}/secret'"]),
            f"DELETE FROM {table}", f"DROP TABLE {table}",
            f"CREATE TABLE more AS SELECT * FROM {table}",
            "PRAGMA user_version = 2147483647", "PRAGMA application_id = 7"])
        db.executescript(statement)
        db.close()
        return f"{path.relative_to(root)}: {statement[:200]!r}"
    except sqlite3.Error as e:
        return f"{path.name}: {e}"


def setting():
    text = rng.choice([f'local = "{outside}"', f'local = "{outside}/new"', 'local = "/"', 'local = "."', 'local = ".."', 'local = "src"', f'[persist.defaults]\ndir_path = "{outside}"',
                       '[persist.defaults]\ndir_path = "../../outside"', f'[calls]\nremote = "file://{outside}/calls.db"', '[persist.defaults]\ndir_path = "local/spaces"',
                       '[scheduler]\npersist = 99999999999', f'[module.javascript]\nmodules = ["{outside}/secret"]', "x = " + "[" * 5000, "a" + ".a" * 5000 + " = 1", "\x00", "version = 99"])
    with open(root / ".stet/config.toml", "a") as f:
        f.write("\n" + text + "\n")
    return f"setting {text[:80]!r}"


def pattern():
    text = rng.choice([
        f'[nodes.x]\ncommand = "touch {outside}/ran"\nfiles = "../outside/*"\nproduces = "x"\n', f'[nodes.x]\ncommand = "cat {{in}}"\nfiles = "{outside}/secret"\n',
        '[nodes.x]\ncommand = "true"\nproduces = "../outside/x"\n', '[nodes.x]\ncommand = "true"\nproduces = ".git/config"\n', '[nodes.x]\njavascript = "() => { for (;;); }"\n',
        "[nodes.x]\njavascript = \"() => 'x'.repeat(1e9)\"\n", f'[nodes.x]\njavascript = {{ file = "{outside}/secret", export = "f" }}\n', '[nodes.x]\nfiles = "' + "**/" * 500 + '*"\ncommand = "true"\n',
        '[nodes."\\u001b]0;owned\\u0007"]\ncommand = "true"\nproduces = "x"\n', '[nodes.x]\nfiles = "' + "{a,b}" * 30 + '"\ncommand = "true"\n',
        '[nodes.x]\ncommand = "true"\nafter = ["x"]\n', "".join(f'[nodes.n{i}]\ncommand = "true"\nproduces = "z{i}"\n' for i in range(2000)),
        '[nodes.x]\ndepfile = "../outside/secret"\ncommand = "true"\nproduces = "x"\n'])
    with open(root / "stet.toml", "a") as f:
        f.write("\n" + text)
    return f"pattern {text[:100]!r}"


def a_run():
    runs = root / ".stet/runs"
    states = [p for p in runs.rglob("*.json") if p.is_file() and not p.is_symlink()] if runs.is_dir() else []
    if not states:
        return "no runs"
    path = rng.choice(states)
    try:
        doc = json.loads(path.read_text())
    except (ValueError, OSError):
        return "not JSON"

    def change(v, depth):
        if isinstance(v, dict) and v and (depth < 1 or rng.random() < 0.7):
            k = rng.choice(list(v))
            v[k] = change(v[k], depth + 1)
            return v
        if isinstance(v, list) and v and rng.random() < 0.7:
            v[rng.randrange(len(v))] = change(rng.choice(v), depth + 1)
            return v
        return rng.choice(["../../../outside/secret", f"{outside}", "\x1b]0;owned\x07\x1b[2J", "\u202eevil", 9223372036854775807, -1, 1e308, None, [], {}, "x" * 300000, ["\x07"] * 1000])
    doc = change(doc, 0)
    path.write_text(json.dumps(doc, ensure_ascii=rng.random() < 0.5))
    return f"{path.relative_to(root)} changed"


def replaced():
    inner = [p for p in (root / ".stet").rglob("*")]
    plain = [p for p in root.rglob("*") if ".stet" not in p.parts and p.name != "stet.toml"]
    path = rng.choice(inner if rng.random() < 0.7 or not plain else plain)
    return thing(path, path.is_dir())


def added():
    dirs = [p for p in [root, *root.rglob("*")] if p.is_dir() and not p.is_symlink()]
    path = rng.choice(dirs) / odd_name()
    try:
        return thing(path, False)
    except OSError as e:
        return f"nothing ({e.strerror})"


WRITES = re.compile(r"^\[pid +\d+\] |^\d+ +")
CALL = re.compile(r'(?:\d+ +)?(\w+)\((.*)')
ALLOWED = [str(root), os.environ["STET_HOME"], "/tmp/stet-", "/dev/null", "/dev/tty", "/dev/shm/", "/proc/self/", "/var/tmp/stet-"]
MAKING = {"unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir", "symlink", "symlinkat", "link", "linkat", "truncate", "chmod", "fchmodat", "chown", "utimensat",
          "mknod", "mknodat", "creat", "setxattr"}


def real(path):
    return os.path.realpath(os.path.join(root, path)) if not path.startswith("/") else os.path.realpath(path)


def audit(trace, what):
    """H2 and H3 from what strace saw."""
    for line in open(trace, errors="surrogateescape"):
        m = CALL.match(line)
        if not m or "= -1" in line:
            continue
        name, rest = m.groups()
        paths = [bytes(p, "latin-1", "replace").decode("unicode_escape", "replace") for p in re.findall(r'"((?:[^"\\]|\\.)*)"', rest)[:2]]
        if not paths:
            continue
        if name == "execve":
            if os.path.realpath(paths[0]).startswith((str(root), str(outside))):
                failures.append(f"H1 {what}: {line.strip()[:300]}")
            continue
        writing = name in MAKING or (name in ("open", "openat") and re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", rest))
        for p in paths:
            at = p if p.startswith("/") else None
            if at and writing and not at.startswith(tuple(ALLOWED)):
                failures.append(f"H2 {what}: {line.strip()[:300]}")
            named = "secret" in at and "pattern" in what if at else False  # an input that the pattern names is hashed, wherever it lies
            if at and name in ("open", "openat") and (at.startswith(str(outside)) or at in ("/etc/shadow", "/etc/passwd")) and not named:
                failures.append(f"H3 {what}: {line.strip()[:300]}")


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 20, 512 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def look(args, what):
    trace = here / "trace"
    command = [STET, *args] if SANITIZED else ["strace", "-f", "-qq", "-e", "trace=%file", "-s", "4096", "-o", str(trace), STET, *args]
    began = time.time()
    with open(here / "said", "wb") as said:
        p = subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, stdout=said, stderr=said, preexec_fn=limits)
        end = time.time() + 300
        while True:
            pid, status, usage = os.wait4(p.pid, os.WNOHANG)
            if pid:
                break
            if time.time() > end:
                p.kill()
                os.wait4(p.pid, 0)
                failures.append(f"H4 {what}: {args} does not end")
                return
            time.sleep(0.002 if time.time() - began < 0.5 else 0.05)
        p.returncode = 0
    code = os.waitstatus_to_exitcode(status)
    text = (here / "said").read_bytes()
    if code < 0 or code in (70, 134, 139) or b"AddressSanitizer" in text or b"runtime error:" in text:
        failures.append(f"H4 {what}: {args} ended with {code}: {text[-500:]!r}")
    if usage.ru_utime + usage.ru_stime > 15:
        failures.append(f"H4 {what}: {args} took {usage.ru_utime + usage.ru_stime:.0f} s")
    if usage.ru_maxrss * 1024 > MEMORY and not SANITIZED:
        failures.append(f"H4 {what}: {args} took {usage.ru_maxrss >> 10} MB")
    if re.search(rb"\x1b|\x07|\x08|\x9b(?<![\x80-\xbf\xc2-\xf4]\x9b)|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]", text):
        failures.append(f"H5 {what}: {args} printed {text[:300]!r}")
    if b"SECRET" in text:
        failures.append(f"H3 {what}: {args} printed a file from outside")
    if not SANITIZED:
        audit(trace, f"{what}: {args}")


make_base()
RUN = next((p.name for p in (base / ".stet/runs").iterdir() if p.is_dir()), "none")
ONLY = os.environ.get("STET_CASE")
for case in range(CASES):
    if ONLY and int(ONLY) != case:
        continue
    rng = random.Random(SEED * 100003 + case)
    subprocess.run(["rm", "-rf", str(root)], check=True)
    shutil.copytree(base, root, symlinks=True)
    fresh_outside()
    did = []
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        try:
            did.append(rng.choice([replaced, replaced, replaced, added, sql, sql, setting, pattern, a_run, a_run])())
        except (OSError, shutil.Error) as e:
            did.append(f"nothing ({e})")
    before = picture()
    what = f"seed {SEED} case {case} ({'; '.join(did)})"
    if ONLY:
        print("#", what)
    for args in rng.sample(READS, len(READS) if LONG or ONLY else 8):
        look([RUN if a == "RUN" else a for a in args], what)
        after = picture()
        if after != before:
            failures.append(f"H1/H2 {what}: {args} changed {sorted({k for k in set(before) | set(after) if before.get(k) != after.get(k)})}")
            break
subprocess.run(["rm", "-rf", str(root)], check=True)
print(f"{'not ok' if failures else 'ok'} 1 - {CASES} hostile projects of seed {SEED}, {len(failures)} failures")
print("1..1")
sys.exit(bool(failures))
