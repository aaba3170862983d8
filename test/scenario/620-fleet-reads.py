#!/usr/bin/env python3
"""Operations that only look write nothing, anywhere: system calls are traced, and every file is as it was, times included."""
import json, os, pathlib, re, shlex, subprocess, sys

STET, SOURCE, HERE = os.environ["STET"], pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path.cwd()
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for line in str(note).splitlines()[-20:] if note and not good else []:
        print("# " + line)


project, home = HERE / "project", HERE / "home"
project.mkdir()
env = dict(os.environ, STET_HOME=str(home))


def run(*words, **options):
    return subprocess.run([STET, *words], cwd=project, env=env, capture_output=True, text=True, timeout=120, **options)


made = run("init")
made = subprocess.run(["bash", str(SOURCE / "test/scenario/fixture.sh")], cwd=project, env=env, capture_output=True, text=True)
test("the project is prepared", made.returncode == 0, made.stderr)
run("set", "piece:totals:argument/factor", "7")
# Things that tempt a reader to mend or to note something: damage, a dead driver's lock, a run without a state.
broken = project / ".stet/runs/broken"
broken.mkdir()
(broken / "state.json").write_text("{")
(project / ".stet/runs/empty").mkdir()
lock = project / ".stet/runs/20261115T180000Z-report-4e5f6a7b/driver.lock"
lock.write_text(json.dumps({"process": {"pid": 1, "start": 1, "boot": "0123456789abcdef"}, "host": os.uname().nodename}))


def snapshot():
    result = {}
    for top in project, home:
        for path in [top, *top.rglob("*")]:
            st = path.lstat()
            if path.name.endswith((".db-shm", ".db-wal")):
                result[str(path)] = path.name.endswith("-wal") and path.stat().st_size  # what is not yet in the database itself
                continue
            result[str(path)] = (st.st_mode, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns, path.read_bytes() if path.is_file() else b"")
    return result


RUN, OTHER, ENTRY = "20261115T174500Z-report-0a1b2c3d", "20261115T180000Z-report-4e5f6a7b", "q20261115T174500Z-0a1b2c3d4e"
looks = ["registry show", "registry show --scope home --verify", "runs list", "runs search --text report", "runs search --status failed --limit 1",
         f"runs show {RUN}", "runs show broken", "runs show empty", "runs show gone-entirely", f"runs resume {RUN}", f"runs resume {OTHER}",
         f"runs compare {RUN} {OTHER}", f"runs logs {RUN}", f"runs logs {RUN} --follow", "runs tail --from-start --limit 1", "runs stats", "history", "queue list",
         f"queue show {ENTRY}", "runs archive --older-than-days 1 --dry-run", "runs import exported.stet-run --verify-only", "check --only runs"]
# These read a space. SQLite keeps order between processes in two files beside it, which hold nothing: they alone may be touched.
# A pattern file or code file that has changed since the last run is taken into a copy in a temporary directory.
looks += ["check", "status", "status totals", "why totals", "why totals total", "action list totals", "action show totals total", "piece list", "piece show totals",
          "piece graph totals", "get config", "doc list", "space readers config", "gc --dry-run"]
# Calls that change a file system; and opening for writing.
changing = re.compile(r"^(?:\d+\s+)?(mkdir|rmdir|unlink|rename|link|symlink|chmod|chown|truncate|ftruncate|utime|mknod|creat|fallocate|fsync|fdatasync|setxattr|"
                      r"mkdirat|unlinkat|renameat|linkat|symlinkat|fchmod|fchown|utimensat|mknodat)\w*\(", re.M)
writing = re.compile(r'open(?:at)?\([^"]*"([^"]*)".*O_(?:WRONLY|RDWR|CREAT|TRUNC)')
can_trace = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
test("system calls can be traced", can_trace)
for refreshed in False, True:
    if refreshed:
        run("registry", "refresh")
    run("status"), run("call", "list")  # the two files of each are there from here on
    before = snapshot()
    for look in looks:
        trace = HERE / "trace"
        done = subprocess.run(["strace", "-f", "-y", "-qq", "-s", "300", "-o", str(trace), "-e", "trace=file,desc", STET, *shlex.split(look)], cwd=project, env=env,
                              capture_output=True, text=True, timeout=120)
        calls = "\n".join(line for line in trace.read_text(errors="replace").splitlines() if not re.search(r"\.db-(shm|wal)\b|/stet-dry\.", line))
        opened = [path for path in writing.findall(calls) if not path.startswith("/dev/")]
        name = f"{look}{', with an index' if refreshed else ''}"
        test(f"{name}: writes nothing", not changing.search(calls) and not opened, "\n".join([*opened, *(m.group(0) for m in changing.finditer(calls))]))
        test(f"{name}: and ends as it should", done.returncode in (0, 1, 3, 6) and "internal" not in done.stderr, done.stderr)
    after = snapshot()
    changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    test(f"every file and directory is as it was{', with an index' if refreshed else ''}", not changed, "\n".join(changed))
shown = json.loads(run("runs", "show", OTHER, "--json").stdout)
test("a run whose driver is dead is interrupted", shown["record"]["lifecycle"] == "interrupted" and shown["record"]["derivedLifecycle"] == "running", shown)
test("and resume is what is next", shown["nextAction"] == f"stet runs resume {OTHER}", shown)
for gone in broken / "state.json", broken, project / ".stet/runs/empty":
    gone.unlink() if gone.is_file() else gone.rmdir()
test("stet check finds nothing", run("check").returncode == 0)
print(f"1..{count}")
sys.exit(failed != 0)
