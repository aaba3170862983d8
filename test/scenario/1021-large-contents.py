#!/usr/bin/env python3
"""Contents of any size: large files go into a job and come out of it in bounded memory, here and through a worker; they are part of the call,
they are arguments of other calls, gc keeps them, and a damaged or missing part is said and mended by running again."""
import hashlib, json, os, pathlib, resource, shutil, sqlite3, subprocess, tempfile, urllib.parse
from tap import STET, answer, finish, stet, t

HERE = pathlib.Path.cwd().resolve()
ASIDE = pathlib.Path(tempfile.mkdtemp()).resolve()
os.environ |= {"PATH": f"{os.environ['STET_BUILD']}:{os.environ['PATH']}", "STET_JOBS": str(ASIDE / "jobs")}
LOCAL = "dml+exec://stet-exec-local/"
SIZE = 32 << 20
ROOM = 200 << 20  # of address space, for every process: less than a few copies of the file


def command(text, more=""):
    return f"{LOCAL}?command={urllib.parse.quote(text, safe='')}{more}"


def small(*words):
    """With little memory, of which the whole family has no more."""
    limit = None if "asan" in os.environ.get("STET_BUILD", "") else lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    r = subprocess.run([STET, "--json", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=limit)
    return json.loads(r.stdout) if r.stdout else {"error": r.stderr}


def sha(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while part := f.read(1 << 20):
            h.update(part)
    return h.hexdigest()


def blob(result, name):
    return result.get("value", {}).get("files", {}).get(name, {}).get("/", {}).get("blob@1", {})


stet("init")
with open("big.bin", "wb") as f:
    for i in range(SIZE >> 20):
        f.write(hashlib.shake_256(b"%d" % i).digest(1 << 20))
    f.write(b"end")
copy = command("tail -c +2 big.bin > out.bin; wc -c < big.bin", "&file=out.bin&stdin=null")
r = small("call", "run", copy)
t("a large file goes in and comes out", r.get("ok") and r["value"]["stdout"] == SIZE + 3 and blob(r, "out.bin").get("size") == SIZE + 2, r)
r = small("call", "get", r["id"], "out.bin", "-o", str(ASIDE / "out.bin"))
subprocess.run(f"tail -c +2 big.bin > {ASIDE}/expected", shell=True, check=True)
t("and is written to disk as it was", r.get("size") == SIZE + 2 and sha(ASIDE / "out.bin") == sha(ASIDE / "expected"), r)
r = small("call", "run", copy)
t("the same call is answered by it", r.get("cached") is True, r)
with open("big.bin", "r+b") as f:
    f.seek(SIZE // 2)
    f.write(b"?")
r = small("call", "run", copy)
t("one byte makes another call", r.get("cached") is False and blob(r, "out.bin").get("size") == SIZE + 2, r)
first, whole = r["id"], blob(r, "out.bin")["id"]
db = sqlite3.connect(".stet/local/repo.db")
t("what two contents have in common is stored once", db.execute("SELECT sum(length(bytes)) FROM object").fetchone()[0] < 3.2 * 4 / 3 * SIZE)

# As an argument of another call.
r = small("call", "run", command("python3 -c 'import hashlib,json,sys; [v] = json.load(sys.stdin); b = v[\"files\"][\"out.bin\"][\"/\"][\"blob@1\"]; "
                                 "print(json.dumps([hashlib.sha256(open(b[\"path\"],\"rb\").read()).hexdigest(), b[\"sha256\"]]))'", "&cwd=in/deep"), f"node:{r['node']}")
t("a content is an argument, as a file that the job finds", r.get("ok") and len(set(r["value"])) == 1, r)
r = answer("call", "run", f"{LOCAL}cat", json.dumps({"/": {"blob@1": {"id": "0" * 64, "sha256": "0" * 64, "size": 5}}}))
t("one that is not there is refused", "error" in r, r)

# Through a worker of another project.
(ASIDE / "w").mkdir()
stet("init", cwd=str(ASIDE / "w"))
worker = subprocess.Popen([STET, "worker", "--remote", f"file://{ASIDE}/r.db", "--idle", "120s"], cwd=ASIDE / "w", stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)))
r = small("call", "run", "--remote", f"file://{ASIDE}/r.db", copy + "&v=2")
t("a worker gets it and gives it back", r.get("ok") and blob(r, "out.bin").get("size") == SIZE + 2, r)
worker.terminate()
worker.wait()
far = r["id"]

# Sizes at the borders.
for size in 0, 1, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 3 * (256 << 10):
    r = answer("call", "run", command(f"head -c {size} /dev/zero > f", "&file=f&stdin=null"))
    got = answer("call", "get", r["id"], "f", "-o", str(ASIDE / "f"))
    t(f"{size} bytes", got.get("size") == size and (ASIDE / "f").read_bytes() == bytes(size), got)
r = answer("call", "run", command("head -c 20000000 /dev/zero | tr '\\0' x", "&stdin=null&stdout=text"))
t("much text is a content", r.get("ok") and r["value"]["/"]["blob@1"]["size"] == 20000000, str(r)[:300])
r = answer("call", "run", command("python3 -c 'print([\"x\" * 1000] * 20000)' | tr \"'\" '\"'", "&stdin=null"))
t("20 MB of JSON are a value", r.get("ok") and len(r["value"]) == 20000, str(r)[:300])

# gc, damage, loss.
stet("gc")
t("gc keeps what results name", answer("call", "get", far, "-o", str(ASIDE / "out.bin")).get("size") == SIZE + 2)
parts = json.loads(db.execute("SELECT bytes FROM object WHERE id = ?", (bytes.fromhex(whole),)).fetchone()[0])["payload"]["parts"]
part = db.execute("SELECT number, id, bytes FROM object WHERE id = ?", (bytes.fromhex(parts[3]),)).fetchone()
for what, change in ("damaged", ("UPDATE object SET bytes = ? WHERE number = ?", (part[2][:1000] + b"A" + part[2][1001:], part[0]))), ("missing", ("DELETE FROM object WHERE id = ?", (part[1],))):
    with db:
        db.execute(*change)
    (ASIDE / "out.bin").write_text("old")
    r = stet("call", "get", first, "-o", str(ASIDE / "out.bin"))
    t(f"a {what} part is an error, and no half of a file", r.returncode and (ASIDE / "out.bin").read_text() == "old" and not list(ASIDE.glob(".stet-temp*")), r.stdout)
    t("check names it", stet("check").returncode != 0)
    answer("call", "run", "--no-cache", copy)
    t("running again mends it", stet("call", "get", first, "-o", str(ASIDE / "out.bin")).returncode == 0 and stet("check").returncode == 0, stet("check").stdout)
db.close()
shutil.rmtree(ASIDE)
finish()
