#!/usr/bin/env python3
"""What the registry of runs promises, and where each promise is tested. The left side is the promise, in plain words; the right side names the file and the
test. This script makes sure that every test it names exists, and holds itself the tests of what no other file tests ("here").

The truth and what is derived from it
  a state.json is the only truth; what an index says is never the status  | unit/fleet_registry.c: a_source_that_changed_makes_the_index_stale_and_is_named
  every derived file can be deleted and is rebuilt from the sources       | unit/fleet_registry.c: every_derived_file_can_be_deleted_and_rebuilt; scenario/610-queue.sh: a deleted queue is an empty one
  nothing that was recorded is overwritten or removed                     | here: append-only
  a record has the fields that are told, no more and no fewer             | here: the fields of a record
  the registry lies in STET_HOME, XDG_STATE_HOME/stet or ~/.local/state   | here: where the registry lies
  files are plain, sorted and readable without stet                       | here: derived files are plain JSON
  a project is registered when refreshed, or when a queue entry names it  | scenario/600-runs.sh: the project is known now; scenario/610-queue.sh: the project is known now
  reads never write, not even the list of projects                        | scenario/620-fleet-reads.py: writes nothing
  the current project counts before it is registered                      | scenario/600-runs.sh: runs are listed all the same
  absent before the first refresh, and everything works                   | unit/fleet_registry.c: absent_before_the_first_refresh
  another program's conforming state.json is served alike                 | unit/fleet_run.c: states_conform_to_the_documented_schema
  an older schema is read, never written back                             | unit/fleet_state.c: an_older_schema_is_migrated_in_memory
Lifecycle
  the first rule that matches wins, for every pair of conditions          | unit/fleet_state.c: the_first_rule_that_matches_wins
  it is classified from the text of the source                            | unit/fleet_state.c: lifecycle_is_classified_from_the_text
  archived lies over it and keeps what it was below                       | unit/fleet_registry.c: archived_is_an_overlay_that_never_touches_the_source
  a run whose driver died is interrupted, whenever that was               | scenario/640-fleet-drive.sh: killed at once: interrupted, not queued; scenario/620-fleet-reads.py: a run whose driver is dead is interrupted
Fail closed
  a changed source is stale and named                                     | unit/fleet_registry.c: a_source_that_changed_makes_the_index_stale_and_is_named
  an edit of any field is seen, also one that hides its time              | unit/fleet_registry.c: the_fingerprint_covers_the_whole_content, an_edit_that_hides_its_time_is_seen
  a source that is gone is missing, and no record is made up              | unit/fleet_registry.c: a_source_that_is_gone_is_missing_and_not_made_up
  show of a missing run tells only what was known, flagged                | scenario/600-runs.sh: only what was known of it is shown, flagged
  unreadable and newer state is missing, never success                    | unit/fleet_registry.c: unreadable_and_newer_state_is_missing_and_never_success
  500 hostile files: each counted and named, none hides another           | property/fleet_hostile.c: each_is_counted_and_named_and_none_is_success
Search, list, history
  by app, status, time, project and free text                             | scenario/600-runs.sh: by status, by time, by words in inputs and title; here: by app
  free text looks in id, app, workflow, title, project, lifecycle, inputs | unit/fleet_registry.c: free_text_looks_where_it_is_told
  the digest of inputs is bounded                                         | unit/fleet_registry.c: the_digest_of_inputs_is_bounded
  ordered by creation, then id; pages neither overlap nor leave a gap     | unit/fleet_registry.c: the_order_is_fixed_and_pages_neither_overlap_nor_leave_a_gap; here: pages by offset
  all projects by default, one on demand                                  | scenario/600-runs.sh: search looks through all projects, or one
  archived ones are in, unless left out                                   | scenario/600-runs.sh: or left out
  history is newest first, filtered and paged                             | scenario/600-runs.sh: history is newest first; here: history by app and status, in pages
Resume, archive, rerun
  resume finds a run in any project and changes nothing by itself         | here: resume is read-only, and says the same twice
  resume does not unarchive                                               | scenario/600-runs.sh: resume does not unarchive
  --drive goes on, --once runs one task                                   | scenario/640-fleet-drive.sh: one task, and no more, which a drive completes
  what can't be driven fails closed and changes nothing                   | unit/fleet_ops.c: a_driver_that_refuses_fails_the_resume_and_changes_nothing
  only what changed, and what is downstream of it, runs live              | here: incremental: the unchanged prefix is not run again
  killed anywhere and resumed, the result is that of an undisturbed run   | crash/fleet_drive.c: killed_anywhere_and_resumed_it_ends_as_if_undisturbed; scenario/630-killed-driver.py: each ended as the undisturbed one
  archive marks and never deletes; --unarchive clears the mark            | scenario/600-runs.sh: no state was touched, unarchive clears the mark
  without a window nothing is archived; with one, what is eligible        | scenario/600-runs.sh: without a window nothing is archived, by window
  a rerun is a new run beside the original, linked to it                  | unit/fleet_registry.c: rerun_makes_a_linked_run_and_preserves_the_original
  a rerun of a rerun counts up, its origin stays the first                | scenario/600-runs.sh: a rerun of a rerun is generation 2, its origin is the first
Queue
  lower priority first, then time, then id                                | unit/fleet_queue.c: lower_priority_drains_first_then_time_then_id
  drain marks and returns; nothing is run by itself                       | here: the queue starts nothing by itself
  every move between states, the forbidden ones included                  | unit/fleet_queue.c: every_move_from_every_state
  40 adding, 8 draining, killed at random: nothing lost                   | crash/fleet_queue.c: nothing_is_lost_and_nothing_runs_twice_beyond_leases
Surfaces
  the command line and MCP give the same                                  | scenario/702-mcp-same.py: stet_
  panels by default, everything with --json                               | here: a panel is terse, and --json is whole
  the shapes of results are those that are told                           | here: the shape of
Mistakes that are not made
  booleans as text turned around                                          | scenario/705-mcp-bounds.py: is refused; unit/fleet_ops.c: unknown_names_wrong_types_and_odd_values_are_refused
  times compared as text                                                  | unit/fleet_registry.c: times_are_compared_as_times_and_not_as_text; unit/fleet_ops.c: times_are_taken_in_every_form_that_is_told
  the same id in two projects                                             | unit/fleet_registry.c: the_same_id_in_two_projects_is_two_runs
  a project reached by a link or a subdirectory counted twice             | unit/fleet_registry.c: a_project_is_one_however_it_is_reached
  a directory whose name is not the id in it                              | unit/fleet_registry.c: a_directory_whose_name_is_not_the_id_in_it_is_unreadable
  damaged runs dropped from lists without a count                         | here: a list counts what it can't show
  one damaged overlay breaking every read                                 | unit/fleet_registry.c: one_corrupt_overlay_breaks_nothing_else; here: a damaged overlay: named, the rest shown, status 6
  unknown flags and values ignored                                        | unit/fleet_ops.c: unknown_names_wrong_types_and_odd_values_are_refused
  a limit of 0 that drains one                                            | scenario/610-queue.sh: drain --limit 0 drains none
  an entry that names nothing                                             | unit/fleet_queue.c: an_entry_must_name_something
  a huge result turned into an error with status 0                        | scenario/705-mcp-bounds.py: comes as its first page, not as a failure; here: a large result is whole
  first pages with no hint of more                                        | scenario/600-runs.sh: a first page tells that there is more
  a crash after draining that loses the work                              | unit/fleet_queue.c: the_lease_of_a_dead_process_ends_at_once, a_lease_that_ends_returns_the_entry_and_the_last_one_parks_it
  archiving thousands by a file per run                                   | unit/fleet_registry.c: archiving_thousands_replaces_one_file_once
"""
import json, os, pathlib, subprocess, sys

STET, SOURCE, HERE = os.environ["STET"], pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path.cwd()
count = failed = 0
names = set()


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    names.add(name)
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for line in str(note).splitlines()[-20:] if note and not good else []:
        print("# " + line)


project, home = HERE / "project", HERE / "home"
project.mkdir()
env = dict(os.environ, STET_HOME=str(home))


def run(*words, **options):
    return subprocess.run([STET, *words], **{"cwd": project, "env": env, "capture_output": True, "text": True, "timeout": 120, **options})


def ask(*words, **options):
    return json.loads(run(*words, "--json", **options).stdout)


def made(name, created, tasks, app="report", root=project, **more):
    folder = root / ".stet/runs" / name
    folder.mkdir(parents=True, exist_ok=True)
    state = {"schemaVersion": 2, "id": name, "createdAt": created, "updatedAt": created, "app": {"id": app, "version": "1", "title": app.title()}, "workflowId": app,
             "title": "Nightly " + app, "loopStage": "running", "inputs": {"rows": 5}, "options": {}, "tasks": tasks, "feedback": [], "commits": [], **more}
    (folder / "state.json").write_text(json.dumps(state, indent=2))
    return folder / "state.json"


run("init")
done, bad, wait = [{"id": "t", "status": s, **({"error": {"message": "no route"}} if s == "failed" else {})} for s in ("completed", "failed", "pending")]
first = made("20260101T000000Z-report-00000001", "2026-01-01T00:00:00Z", [done])
made("20260102T000000Z-report-00000002", "2026-01-02T00:00:00Z", [bad])
half = made("20260103T000000Z-import-00000003", "2026-01-03T00:00:00Z", [done, {"id": "u", "status": "pending"}], app="import")
run("registry", "refresh")

# ---- records, results and where things lie ----
record = ask("runs", "show", "20260101T000000Z-report-00000001")["record"]
told = {"schemaVersion", "runId", "appId", "appVersion", "workflowId", "title", "repo", "runDir", "statePath", "createdAt", "updatedAt", "loopStage", "lifecycle",
        "derivedLifecycle", "archived", "archivedAt", "archiveReason", "tasks", "commitCount", "verifierGatedCommitCount", "openFeedbackCount", "inputsDigest",
        "sourceFingerprint", "freshness", "provenance"}
test("the fields of a record", told <= record.keys() and record.keys() - told == {"piece", "actor", "failure", "labels", "resolvedBy", "actions"}, sorted(record.keys() ^ told))
shapes = {
    "registry show": {"schemaVersion", "scope", "root", "generatedAt", "freshness", "index", "counts", "nextAction"},
    "runs search": {"schemaVersion", "scope", "query", "freshness", "total", "offset", "limit", "nextCursor", "records", "nextAction"},
    "runs show 20260101": {"schemaVersion", "runId", "found", "freshness", "resolvedFrom", "repo", "record", "persisted", "nextAction"},
    "runs resume 20260102": {"schemaVersion", "runId", "repo", "statePath", "resolvedFrom", "lifecycle", "derivedLifecycle", "loopStage", "freshness", "resumable", "reason",
                             "record", "nextTasks", "nextActions"},
    "runs archive --older-than-days 1 --dry-run": {"schemaVersion", "archived", "eligible", "policy", "dryRun"},
    "queue list": {"total", "entries"},
    "history": {"schemaVersion", "scope", "freshness", "total", "offset", "limit", "nextCursor", "repos", "entries", "nextAction"},
}
for words, keys in shapes.items():
    got = ask(*words.split())
    test(f"the shape of `{words}`", keys <= got.keys(), sorted(keys - got.keys()))
got = ask("registry", "show")
test("the shape of freshness, index and counts",
     {"status", "persistedFingerprint", "currentFingerprint", "staleRuns", "newRuns", "missingRuns", "unreadableRuns"} <= got["freshness"].keys()
     and {"repos", "records", "queue"} <= got["index"].keys()
     and got["counts"].keys() == {"total", "queued", "running", "blocked", "completed", "failed", "archived", "interrupted", "resolved", "unreadable"}, got)
test("derived files are plain JSON", all(json.loads(p.read_text()) for p in [project / ".stet/local/registry/index.json", home / "registry/index.json", home / "registry/repos.json"]))
for place, setting in (HERE / "xdg/stet", {"XDG_STATE_HOME": str(HERE / "xdg")}), (HERE / "user/.local/state/stet", {"HOME": str(HERE / "user")}):
    clean = {k: v for k, v in env.items() if k not in ("STET_HOME", "XDG_STATE_HOME")}
    run("registry", "refresh", env={**clean, **setting})
    test(f"where the registry lies: {', '.join(setting)}", (place / "registry/repos.json").is_file(), place)

# ---- searching ----
test("by app", [r["runId"] for r in ask("runs", "search", "--app", "import")["records"]] == ["20260103T000000Z-import-00000003"])
everything = [r["runId"] for r in ask("runs", "search")["records"]]
test("pages by offset", everything == sorted(everything) and len(everything) == 3
     and [ask("runs", "search", "--limit", "1", "--offset", str(i))["records"][0]["runId"] for i in range(3)] == everything
     and ask("runs", "search", "--limit", "1", "--offset", "3")["records"] == [], everything)
page = ask("history", "--app", "report", "--limit", "1")
next_page = ask("history", "--app", "report", "--limit", "1", "--offset", "1")
test("history by app and status, in pages", page["total"] == 2 and page["entries"][0]["runId"].startswith("20260102") and page["nextCursor"]
     and next_page["entries"][0]["runId"].startswith("20260101") and ask("history", "--status", "failed")["total"] == 1, page)
before = half.read_bytes(), half.stat().st_mtime_ns
twice = [run("runs", "resume", "20260103", "--json", cwd=HERE).stdout for _ in range(2)]
test("resume is read-only, and says the same twice", twice[0] == twice[1] and json.loads(twice[0])["nextTasks"] == [{"id": "u", "action": "u", "status": "pending"}]
     and (half.read_bytes(), half.stat().st_mtime_ns) == before, twice[0])
panel, whole = run("runs", "show", "20260102").stdout, run("runs", "show", "20260102", "--json").stdout
test("a panel is terse, and --json is whole", len(panel.splitlines()) < 20 and "no route" in panel and "failed" in panel and not panel.startswith("{")
     and json.loads(whole)["record"]["failure"] == {"task": "t", "message": "no route"}, panel)

# ---- the queue ----
before = sorted(p.name for p in (project / ".stet/runs").iterdir())
entry = ask("queue", "add", "--app", "report")
drained = ask("queue", "drain")
test("the queue starts nothing by itself", len(drained["drained"]) == 1 and drained["remaining"] == 0 and sorted(p.name for p in (project / ".stet/runs").iterdir()) == before, drained)

# ---- damage ----
(project / ".stet/runs/broken").mkdir()
(project / ".stet/runs/broken/state.json").write_text('{"schemaVersion": 2, "tasks": [')
listed = ask("runs", "list")
test("a list counts what it can't show", listed["total"] == 3 and "broken" in json.dumps(listed["freshness"]["unreadableRuns"]) and "broken" in run("runs", "list").stdout, listed)
other = HERE / "other"
other.mkdir()
run("init", cwd=other)
made("20260104T000000Z-other-00000004", "2026-01-04T00:00:00Z", [done], root=other)
run("registry", "refresh", cwd=other)
(other / ".stet/local/registry/archive.json").write_text("{]")
answer = run("runs", "list", "--json")
test("a damaged overlay: named, the rest shown, status 6", answer.returncode == 6 and json.loads(answer.stdout)["total"] == 4
     and any("archive.json" in (p["path"] or "") for p in json.loads(answer.stdout)["problems"]), answer)
(other / ".stet/local/registry/archive.json").unlink()
(project / ".stet/runs/broken/state.json").unlink()
(project / ".stet/runs/broken").rmdir()
large = "x" * 300
for i in range(3000):
    made(f"20260201T{i:06d}Z-bulk-{i:08x}", "2026-02-01T00:00:00Z", [done], title=large)
answer = run("runs", "list", "--limit", "5000", "--json")
test("a large result is whole", answer.returncode == 0 and len(answer.stdout) > 3_000_000 and len(json.loads(answer.stdout)["records"]) == 3004, len(answer.stdout))

# ---- a drive after a change ----
work = HERE / "work"
work.mkdir()
run("init", cwd=work)
nodes = "".join(f'[nodes.{name}]\ncommand = ["sh", "-c", "echo {name} >> ran; cat {name}.txt"]\nfiles = {{ own = "{name}.txt" }}\nstdout = "text"\n' for name in "ab")
chained = '[nodes.c]\ncommand = ["sh", "-c", "echo c >> ran; echo {text}"]\ninputs = { text = "$b/stdout" }\nstdout = "text"\n'
(work / "stet.toml").write_text('name = "chain"\n' + nodes + chained + '[result]\na = "$a/stdout"\nc = "$c/stdout"\n')
for name in "ab":
    (work / f"{name}.txt").write_text(name)
started = ask("run", cwd=work)
(work / "ran").write_text("")
(work / "b.txt").write_text("other")
again = ask("runs", "rerun", started["runId"], cwd=work)
driven = ask("runs", "resume", again["newRunId"], "--drive", "--incremental", cwd=work)
test("incremental: the unchanged prefix is not run again", driven["drive"]["status"] == "completed" and sorted((work / "ran").read_text().split()) == ["b", "c"],
     [driven.get("drive"), (work / "ran").read_text()])

# ---- append-only ----


def recorded():
    """What every run has said of itself so far: its state as it was, and its events."""
    return {p.parent.name: (p.read_bytes(), (p.parent / "events.jsonl").read_bytes() if (p.parent / "events.jsonl").exists() else b"")
            for p in (work / ".stet/runs").glob("*/state.json")}


def step(*words):
    done = run(*words, cwd=work)
    return done.stdout if done.returncode == 0 else f"{words}: {done.returncode} {done.stderr}"


(work / "a.txt").write_text("a third")
opened = ask("runs", "rerun", started["runId"], "--reason", "again", cwd=work)["newRunId"]  # this one is driven, cancelled and so on: it alone may change
spare = ask("runs", "rerun", opened, cwd=work)["newRunId"]
steps = [("runs", "archive", started["runId"], "--reason", "old"), ("runs", "archive", started["runId"], "--unarchive"), ("runs", "label", started["runId"], "--add", "kept"),
         ("registry", "refresh"), ("runs", "resume", opened), ("runs", "resume", opened, "--drive"), ("runs", "rerun", opened, "--drive"), ("runs", "cancel", spare),
         ("runs", "export", opened, "-o", "../exported"), ("runs", "archive", "--older-than-days", "1", "--state", "completed"), ("queue", "add", "--app", "stet.toml"), ("queue", "work"),
         ("gc",), ("check",)]
broken_promises = []
for words in steps:
    before = recorded()
    step(*words)
    now = recorded()
    touched = {"resume": {opened}, "cancel": {spare}}.get(words[1] if len(words) > 1 else "", set())
    for name, (state, events) in before.items():
        if name not in now:
            broken_promises.append(f"{words}: {name} is gone")
        elif now[name][0] != state and name not in touched:
            broken_promises.append(f"{words}: the state of {name} changed")
        elif not now[name][1].startswith(events):
            broken_promises.append(f"{words}: events of {name} were changed")
test("append-only: whatever is done to runs, others stay as they were, and events are only added", not broken_promises and len(recorded()) >= 5, broken_promises)
states = ask("runs", "search", "--scope", "repo", cwd=work)["records"]
test("append-only: each step left what it should", {r["runId"]: r["lifecycle"] for r in states}[opened] == "completed"
     and {r["runId"]: r["lifecycle"] for r in states}[spare] == "failed" and sum(r["provenance"] is not None for r in states) >= 3, states)

# ---- the table above ----
for line in __doc__.splitlines():
    if "|" not in line:
        continue
    promise, where = line.split("|")
    for part in where.split(";"):
        file, _, tests = part.strip().partition(": ")
        text = "" if file == "here" else (SOURCE / "test" / file).read_text()
        for name in [tests] if file == "here" or file.endswith((".sh", ".py")) and tests in text else tests.split(", "):
            there = any(n.startswith(name) for n in names) if file == "here" else name.strip() in text
            test(f"{promise.strip()}: {file}: {name.strip()}", there)
test("stet check finds nothing", run("check").returncode == 0)
print(f"1..{count}")
sys.exit(failed != 0)
