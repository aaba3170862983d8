#!/usr/bin/env bash
# What has ended stays as it is: completed and archived runs are not driven again, a failure is found as one until a later
# run mends it, and each next step that is shown works.
. "$STET_SOURCE/test/scenario/lib.sh"
mkdir out project && cd project || exit 1
stet -q init
out=$PWD/../out
field() { local path=$1; shift; stet "$@" --json | json "$path"; }
print() { sha256sum <".stet/runs/$1/state.json"; }
cat >stet.toml <<TOML
name = "w"
[argument]
n = 1
[nodes.one]
command = "echo one {n} >> $out/log; echo {n} > one.txt"
inputs = { n = "\$argument/n" }
produces = "one.txt"
[nodes.two]
command = "echo two >> $out/log; cat {in} ok.txt > two.txt"
files = "\$one.out"
produces = "two.txt"
TOML
touch ok.txt
good=$(field runId run)
before=$(print "$good")
t "a completed run is not driven again"         expect_status 4 stet runs resume "$good" --drive
t "with the way out"                            expect_err "stet runs rerun $good" stet runs resume "$good" --once
stet -q queue add --run-id "$good"
t "nor by the queue, for which it is done"      expect_out "done $good" stet queue work
t "its record is as it was"                     same "$before" "$(print "$good")"

rm ok.txt
bad=$(field runId run)
t "a failing command is a failed run"           same failed "$(field record.lifecycle runs show "$bad")"
t "in the words of its source"                  same blocked "$(field record.derivedLifecycle runs show "$bad")"
t "found as failed"                             same "$bad" "$(field records.0.runId runs search --status failed)"
t "and as blocked"                              same "$bad" "$(field records.0.runId runs search --status blocked)"
t "in the history, too"                         same "$bad" "$(field entries.0.runId history --status failed)"
t "in the statistics, too"                      same 1 "$(field byLifecycle.failed runs stats)"
python3 - "$good" "$bad" <<'PY'
import json, sys
for year, run in enumerate(sys.argv[1:]):
    path = f".stet/runs/{run}/state.json"
    state = json.load(open(path))
    state["createdAt"] = state["updatedAt"] = f"202{year}-01-01T00:00:00Z"
    json.dump(state, open(path, "w"))
PY
t "archiving by state leaves it alone"          same 0 "$(field eligible runs archive --older-than-days 1 --state failed)"
t "and counts it"                               same 1 "$(field leftOpen runs archive --older-than-days 1 --state failed --dry-run)"
t "the next step is to go on with it"           same "stet runs resume $bad --drive" "$(field nextAction runs show "$bad")"
stet -q runs archive "$bad"
before=$(print "$bad")
t "an archived run is not driven"               expect_status 4 stet runs resume "$bad" --drive
t "it is as it was"                             same "$before" "$(print "$bad")"
t "the next step brings it back"                sh -c "$(field nextAction runs show "$bad" | sed 's/^stet/"$STET" -q/')"

touch ok.txt
before=$(print "$bad")
mended=$(field runId run)
t "a later run mends it"                        same "$mended" "$(field record.resolvedBy runs show "$bad")"
t "which is what it is now"                     same resolved "$(field record.lifecycle runs show "$bad")"
t "it is no open failure any more"              same 0 "$(field total runs search --status failed)"
t "its file is as it was"                       same "$before" "$(print "$bad")"
t "and it is not driven again"                  expect_status 4 stet runs resume "$bad" --drive
t "now it may be archived by state"             same 1 "$(field eligible runs archive --older-than-days 1 --state failed --dry-run)"

# Another argument mends nothing.
rm ok.txt
stet -q queue add --app w --input n=2
stet -q queue work
other=$(field entries.0.runId queue list --status failed)
touch ok.txt
stet -q run
t "a run with another argument mends nothing"   same failed "$(field record.lifecycle runs show "$other")"
t "the one that failed is resumed"              same completed "$(field drive.status runs resume "$other" --drive)"
t "and is completed, with its own argument"     same "completed 2" "$(field record.lifecycle runs show "$other") $(field argument.n runs show "$other")"
rm ok.txt
late=$(field runId run --record)
touch ok.txt
stet -q run
t "one that was mended is not resumed"          expect_status 4 stet runs resume "$late" --drive

# A rerun that can't begin leaves nothing behind.
count=$(ls .stet/runs | wc -l)
cp stet.toml keep.toml
echo "[" >>stet.toml
t "a rerun of a broken pattern fails"           expect_status 2 stet runs rerun "$good" --drive
t "and leaves no run behind"                    same "$count" "$(ls .stet/runs | wc -l)"
cp keep.toml stet.toml

# Runs of other programs.
mkdir -p .stet/runs/alien && cat >.stet/runs/alien/state.json <<'JSON'
{"schemaVersion": 2, "id": "alien", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "loopStage": "running",
 "tasks": [{"id": "a", "status": "completed"}, {"id": "b", "status": "pending"}],
 "feedback": [{"status": "rejected", "message": "no"}]}
JSON
t "rejected feedback is not open"               same running "$(field record.lifecycle runs show alien)"
t "the next step for a foreign run works"       sh -c "$(field nextAction runs show alien | sed 's/^stet/"$STET"/')"
t "it is left to whoever made it"               expect_out "for the program that made the run" stet runs resume alien
t "stet can't drive it"                         expect_status 8 stet runs resume alien --drive
echo '{' >.stet/runs/alien/state.json
t "the next step for an unreadable one tells"   expect_status 1 sh -c "$(field nextAction runs show alien | sed 's/^stet/"$STET"/')"
rm -r .stet/runs/alien

# A pattern with a mistake is not written.
t "a pattern is written if it is right"         stet pattern write new.json --text '{"pattern": 1, "name": "new", "nodes": []}'
t "one with a mistake is not"                   expect_status 2 stet pattern write new.json --text '{"pattern": 1, "nam": "new", "nodes": []}'
t "and the file is as it was"                   same '{"pattern": 1, "name": "new", "nodes": []}' "$(cat new.json)"
finish
