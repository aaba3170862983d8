# fixture.sh - prepares the project in which the example of every operation is run (010-table.py). It runs in an empty
# directory with `stet init` done; one block per layer adds what that layer's examples name. Each example gets a fresh copy
# of the result as its current directory, and a STET_HOME of its own, so examples do not depend on each other.
set -eu

# project: this one is on the list, so that `project remove` has something to remove
"$STET" project add

# memory: a document with some history, and a branch to delete. First, so that these are the sequences 1 and 2
"$STET" -q set config '{"theme":"dark","visits":3,"tags":["a"]}'
"$STET" -q set config/theme '"light"'
"$STET" -q branch create side

# fleet: two runs, an exported one, and a queue whose entries belong to another project
python3 - <<'PYTHON'
import json, os, pathlib

def run(name, created, tasks, log=None):
    folder = pathlib.Path(".stet/runs") / name
    (folder / "logs").mkdir(parents=True)
    state = {"schemaVersion": 2, "id": name, "createdAt": created, "updatedAt": created, "app": {"id": "report", "version": "1", "title": "Report"},
             "workflowId": "report", "title": "Nightly report", "loopStage": "running", "inputs": {"rows": 5}, "options": {}, "tasks": tasks, "feedback": [],
             "commits": [], "summary": {"stood": 3, "ran": 1}}
    (folder / "state.json").write_text(json.dumps(state, indent=2))
    (folder / "events.jsonl").write_text('{"at":"%s","event":"created"}\n' % created)
    (folder / "logs/fetch.log").write_text("fetched 5 rows\n")

run("20261115T174500Z-report-0a1b2c3d", "2026-11-15T17:45:00Z", [{"id": "fetch", "status": "failed", "log": "logs/fetch.log", "error": {"message": "no route"}}])
run("20261115T180000Z-report-4e5f6a7b", "2026-11-15T18:00:00Z", [{"id": "fetch", "status": "completed", "log": "logs/fetch.log"}, {"id": "print", "status": "pending"}])
queue = pathlib.Path(os.environ["STET_HOME"]) / "registry/queue.json"
entry = lambda name, status: {"schemaVersion": 1, "id": name, "runId": None, "app": "report", "workflow": None, "repo": "/elsewhere", "priority": 0,
                              "enqueuedAt": "2026-11-15T17:45:00Z", "updatedAt": "2026-11-15T17:45:00Z", "status": status, "attempts": 0, "maxAttempts": 3,
                              "lease": None, "note": None, "lastError": None, "inputs": None, "notBefore": None, "endedAt": None}
queue.write_text(json.dumps({"schemaVersion": 1, "entries": [entry("q20261115T174500Z-0a1b2c3d4e", "pending"), entry("q20261115T174501Z-1b2c3d4e5f", "drained")]}))
PYTHON
cp -r .stet/runs/20261115T174500Z-report-0a1b2c3d .stet/runs/20261115T190000Z-report-8c9d0e1f
sed -i s/20261115T174500Z-report-0a1b2c3d/20261115T190000Z-report-8c9d0e1f/ .stet/runs/20261115T190000Z-report-8c9d0e1f/state.json
"$STET" runs export 20261115T190000Z-report-8c9d0e1f -o exported.stet-run
rm -r .stet/runs/20261115T190000Z-report-8c9d0e1f

# persist: an entry of the block "plot", and a file to put
echo '{"x": 1}' >plot.json
printf 'weights' >model.bin
"$STET" persist put --block plot --module abcdefghijklmnopqrstuvwxyzABCDEFGH123456789 --variables plot.json --format json

# patterns: one that has run, so that its piece can be shown, pulled and deleted
cp "$STET_SOURCE/examples/totals.json" .
"$STET" run totals.json

# accept: an action of another scope that is outdated, because its argument is another one
"$STET" run totals.json --scope user:ann
"$STET" -q set --scope user:ann piece:totals:argument/factor 3

# events: a piece with streams
cp "$STET_SOURCE/examples/counter.json" .
"$STET" run counter.json

# calls: one that has ended, and one that nobody has taken yet. All variables are set: so their ids are the same everywhere
fixed="env=PATH=/usr/bin:/bin&env=HOME=/&env=USER=me&env=LOGNAME=me&env=SHELL=/bin/sh"
"$STET" call run "dml+exec://stet-exec-local/cat?$fixed" '{"a": 1}'
"$STET" call run "dml+exec://stet-exec-local/true?$fixed" --remote "file://$PWD/shared.db" --detach
# the repository of calls: two heads, and a remote that is a directory
"$STET" -q dag commit report '{"total":3}' -m "a report"
"$STET" -q dag commit report '{"total":4}' --head side
"$STET" -q remote add origin "file://$PWD/elsewhere"
"$STET" -q remote push origin
