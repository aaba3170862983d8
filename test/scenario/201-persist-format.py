#!/usr/bin/env python3
"""What stet writes is read with Python's own tomllib, hashes recomputed in plain Python agree, and Python's sqlite3 and stet exclude each
other on the lock files."""
import base64, hashlib, os, pathlib, sqlite3, subprocess, sys, threading, time, tomllib

STET = os.environ["STET"]
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        for line in str(note).splitlines()[-20:]:
            print("# " + line)


def stet(*argv, cwd=None, **more):
    return subprocess.run([STET, *argv], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL, **more)


def b64(digest):
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def feed(h, value):
    """The mapping hash: sorted keys, each with its value; lists in order; no separators."""
    if isinstance(value, dict):
        for key in sorted(value, key=lambda k: k.encode()):
            h.update(key.encode())
            feed(h, value[key])
    elif isinstance(value, list):
        for item in value:
            feed(h, item)
    elif isinstance(value, bool):
        h.update(b"true" if value else b"false")
    else:
        h.update(str(value).encode())


def entry_hash(block, module, created, table):
    h = hashlib.sha256()
    h.update((block + module + created).encode())
    feed(h, {k: v for k, v in table.items() if k != "hash"})
    return b64(h.digest()[:8])


def snapshot_hash(document):
    own = document["header"]["snapshot_hash"]
    top = {}
    for key, value in document.items():
        if key == "header":
            top[key] = {k: v for k, v in value.items() if k != "snapshot_hash"}
        elif key == "parents":
            top[key] = {("" if k == own else k): v for k, v in value.items()}
        else:
            top[key] = {module: {created: table["hash"] for created, table in entries.items()} for module, entries in value.items()}
    h = hashlib.sha256()
    feed(h, top)
    return b64(h.digest())


def entries_of(document):
    for block, modules in document.items():
        if block not in ("header", "parents"):
            for module, entries in modules.items():
                for created, table in entries.items():
                    yield block, module, created, table


here = pathlib.Path.cwd()
persist = here / ".stet/persist"
assert stet("init").returncode == 0
modules = [b64(hashlib.sha256(str(i).encode()).digest()) for i in range(8)]
blocks = ["plain", "free text: é \"quoted\" \\ back", "zz", b64(hashlib.sha256(b"code").digest()), "call:resize@1", "header2", "paren"]
expected = {}
for n in range(24):
    block, module = blocks[n % len(blocks)], modules[n % len(modules)]
    (here / "v").write_bytes(b"variables %d" % (n % 5))
    (here / "o").write_bytes(b"" if n % 3 else b"output %d" % n)
    created = str(63875925237555 + n)
    done = stet("persist", "put", "--block", block, f"--module={module}", "--created-at", created, "--variables", "v", "--format", "bytes",
                *(["--output", "o"] if n % 2 else []), *(["--elapsed-ms", str(n)] if n % 4 == 0 else []))
    if done.returncode:
        test("put", False, done.stderr)
    expected[block, module, created] = b"variables %d" % (n % 5)
    if n == 11:
        stet("persist", "cleanup", "--max-entries-per-block=100", "--max-entries-per-module=100")
    if n == 20:
        stet("persist", "cleanup", "--max-entries-per-block=100", "--max-entries-per-module=100")

logs = list((persist / "entry_log").glob("machine_*.toml"))
snapshots = list((persist / "entry_snapshots").glob("*.toml"))
test("one log and one snapshot", len(logs) == len(snapshots) == 1, (logs, snapshots))
log = tomllib.loads(logs[0].read_text())
snapshot = tomllib.loads(snapshots[0].read_text())
test("the configuration", tomllib.loads((persist / "config.toml").read_text()) == {"version": "1"})
test("the header of the log", log["header"] == {"version": "1", "entry_table_name_parts": ["block_id", "module_hash", "created_at"]}, log["header"])
test("the snapshot is named by its hash", snapshots[0].stem == snapshot["header"]["snapshot_hash"] == snapshot_hash(snapshot), snapshot_hash(snapshot))
parents = snapshot["parents"]
test("its parents: its own row first, a root at the end", next(iter(parents)) == snapshots[0].stem and [] in parents.values(), parents)
seen = {}
wrong = []
for document in (snapshot, log):
    for block, module, created, table in entries_of(document):
        if entry_hash(block, module, created, table) != table["hash"]:
            wrong.append((block, module, created))
        seen[block, module, created] = table
test("every entry hash is recomputed", not wrong, wrong)
test("every entry is there once", set(seen) == set(expected), set(seen) ^ set(expected))
trivial = {b64(hashlib.sha256(b).digest()): b for b in (b"\x80\x04}\x94.", b"{}", b"")}
bad = []
for key, table in seen.items():
    for kind in ("variables", "output"):
        if kind in table:
            c = table[kind]
            data = trivial[c["id"]] if c["id"] in trivial else (persist / "objects" / c["id"]).read_bytes()
            if len(data) != c["size"] or b64(hashlib.sha256(data).digest()) != c["id"] or (kind == "variables" and data != expected[key]):
                bad.append(key)
test("every object is named by its hash", not bad, bad)
test("the trivial objects are not stored", not any((persist / "objects" / i).exists() for i in trivial))
test("a fresh marker for each object of the log", all((persist / "fresh_objects" / t["variables"]["id"]).exists() for *_, t in entries_of(log)))

# The other way round: files that Python writes are taken, if their hashes are right.
module, created = modules[0], "63875925299999"
body = b"from another program"
content = {"id": b64(hashlib.sha256(body).digest()), "size": len(body), "format": "bytes"}
(persist / "objects" / content["id"]).write_bytes(body)
document = {"header": {"version": "1", "snapshot_hash": "", "entry_table_name_parts": ["block_id", "module_hash", "created_at"]}, "parents": {"": []},
            "other": {module: {created: {"variables": content, "novelty": {"id": content["id"], "size": len(body), "format": "x", "weight": 1.5, "deep": [1, {"a": True}]}}}}}
table = document["other"][module][created]
table["hash"] = entry_hash("other", module, created, {**table, "novelty": {**table["novelty"], "weight": "1.5"}})
name = snapshot_hash(document)
text = f"""# a comment
[header]
version = '1'
entry_table_name_parts = [ "block_id",
  "module_hash", "created_at" ]
snapshot_hash = "{name}"

[parents]
{name} = []

[other.{module}.{created}]
hash = "{table['hash']}"
novelty = {{ deep = [1, {{a = true}}], weight = 1.5, format = "x", size = {len(body)}, id = "{content['id']}" }}
variables = {{ format = "bytes", id = "{content['id']}", size = {len(body)} }}
"""
(persist / "entry_snapshots" / "Dropbox (conflicted copy).toml").write_text(text)
test("a snapshot that another program wrote is taken", stet("persist", "get", "--block", "other", f"--module={module}").stdout == body.decode(),
     stet("persist", "get", "--block", "other", f"--module={module}").stderr)
done = stet("persist", "cleanup", "--max-entries-per-block=100", "--max-entries-per-module=100", "--json")
merged = list((persist / "entry_snapshots").glob("*"))
test("and merged", len(merged) == 1, merged)
snapshot = tomllib.loads(merged[0].read_text())
test("with both as parents", sorted(snapshot["parents"][merged[0].stem]) == sorted([name, snapshots[0].stem]) and snapshot_hash(snapshot) == merged[0].stem,
     snapshot["parents"])
test("what nobody knows is kept", snapshot["other"][module][created]["novelty"]["deep"] == [1, {"a": True}])

# Locks: each held by Python's sqlite3; stet gives up after 5 s with a clear message, and leaves nothing behind. All at once, in copies.
held = []
(here / "w").write_bytes(b"something new")
for lock, argv in ("modification", ["persist", "put", "--block", "b", f"--module={modules[1]}", "--variables", str(here / "w")]), \
                  ("modification", ["persist", "cleanup"]), ("objects", ["persist", "cleanup", "--include-content"]), \
                  ("entry_log", ["persist", "cleanup"]), ("entry_log", ["persist", "list"]):
    copy = here / f"copy{len(held)}"
    subprocess.run(["cp", "-a", str(here / ".stet"), str(copy) + ".stet"], check=True)
    copy.mkdir()
    os.rename(str(copy) + ".stet", copy / ".stet")
    stet("persist", "put", "--block", "log", f"--module={modules[2]}", "--variables", str(here / "w"), cwd=copy)
    for other in ("objects", "entry_log"):
        (copy / ".stet/persist/locks" / f"{other}.lock").touch()
    held.append((lock, argv, copy))


def files(directory):
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file() and p.suffix != ".lock" and p.name != "uses")


results = {}


def rogue(number):
    lock, argv, copy = held[number]
    connection = sqlite3.connect(copy / ".stet/persist/locks" / f"{lock}.lock", isolation_level=None, timeout=0)
    connection.execute("BEGIN EXCLUSIVE")
    before, started = files(copy), time.monotonic()
    done = stet(*argv, cwd=copy)
    results[number] = done, time.monotonic() - started, before == files(copy)
    connection.rollback()
    connection.close()
    results[number] += (stet(*argv, cwd=copy),)


threads = [threading.Thread(target=rogue, args=(i,)) for i in range(len(held))]
for t in threads:
    t.start()
for t in threads:
    t.join()
for number, (lock, argv, copy) in enumerate(held):
    done, seconds, same, after = results[number]
    what = f"{lock}.lock held by sqlite3: `{' '.join(argv[:2])}`"
    test(f"{what} gives up after 5 s", done.returncode == 5 and 4.5 < seconds < 60 and lock in done.stderr, f"{done.returncode} {seconds} {done.stderr}")
    test(f"{what} leaves nothing behind", same)
    test(f"{what} works afterwards", after.returncode == 0, after.stderr)

test("stet check finds nothing", stet("check").returncode == 0, stet("check").stdout)
print(f"1..{count}")
sys.exit(failed != 0)
