#!/usr/bin/env bash
# Runs of real patterns: recorded, repeated with other inputs, queued and worked off.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
cp "$STET_SOURCE/examples/totals.json" .
field() { local path=$1; shift; stet "$@" --json | json "$path"; }

first=$(field runId run totals.json)
t "a drive leaves a run"                        same completed "$(field record.lifecycle runs show "$first")"
t "one in which everything stands leaves none"  same null "$(field runId run totals.json)"
before=$(field result.total piece pull totals)
again=$(field drive.runId runs rerun "$first" --drive)
t "a rerun with the same inputs runs nothing"   same 0 "$(json summary.ran <".stet/runs/$again/state.json")"
t "and is completed"                            same completed "$(field record.lifecycle runs show "$again")"
other=$(field drive.runId runs rerun "$first" --input factor=3 --drive)
t "with another input it runs what follows"     same completed "$(field record.lifecycle runs show "$other")"
t "the result is another"                       same $((before * 3)) "$(field result.total runs show "$other")"
t "which holds for that run only"               same "$before" "$(field result.total piece pull totals)"
t "what differs is told"                        expect_out "inputs/factor" stet runs compare "$first" "$other"
t "the chain is kept"                           same "$first" "$(field record.provenance.originRunId runs show "$other")"
t "a completed run can't be resumed"            same false "$(field resumable runs resume "$other")"

new=$(field newRunId runs rerun "$first" --input factor=7)
t "one task, and no more"                       same paused "$(field drive.status runs resume "$new" --once)"
t "so that something is left"                   same true "$(field resumable runs resume "$new")"
t "which a drive completes"                     same completed "$(field drive.status runs resume "$new" --drive)"
t "the run with it"                             same completed "$(field record.lifecycle runs show "$new")"
t "with the inputs of the rerun"                same $((before * 7)) "$(field result.total runs show "$new")"

stet queue add --app totals.json --input factor=5 >/dev/null
stet queue add --app nothing-like-this --priority 9 >/dev/null
t "the queue is worked off; what can't be is told" expect_status 1 stet queue work -j 2
t "done"                                        same 1 "$(field total queue list --status done)"
t "hopeless: parked"                            same 1 "$(field total queue list --status parked)"
t "the queued inputs were used"                 same $((before * 5)) "$(field result.total runs show "$(field entries.0.runId queue list --status done)")"
t "its run is known to the entry"               same completed "$(field record.lifecycle runs show "$(field entries.0.runId queue list --status done)")"
t "stats know the app"                          expect_out totals stet runs stats
t "history has them all"                        same 6 "$(field total history)"

# A driver that dies in its first second leaves a run that says so.
mkdir quick && cd quick && stet -q init
cat >stet.toml <<'TOML'
name = "slow"
[nodes.only]
command = ["sh", "-c", "sleep 2; echo done"]
stdout = "text"
[result]
only = "$only/stdout"
TOML
"$STET" -q run &
driver=$!
for _ in $(seq 200); do [ -n "$(ls .stet/runs 2>/dev/null | grep -v '^~')" ] && break; sleep 0.01; done
kill -9 $driver
wait $driver 2>/dev/null
killed=$(ls .stet/runs)
t "killed at once: interrupted, not queued"     same interrupted "$(field record.lifecycle runs show "$killed")"
t "and resume is what is next"                  same "stet runs resume $killed --drive" "$(field nextAction runs show "$killed")"
t "which goes on, and runs it once"             same completed "$(field drive.status runs resume "$killed" --drive)"
t "it is completed"                             same completed "$(field record.lifecycle runs show "$killed")"
later=$(field newRunId runs rerun "$killed")
t "one that nobody has driven yet is queued"    same queued "$(field record.lifecycle runs show "$later")"
t "a run without a title goes by its app"       sh -c '"$STET" runs list --scope repo | grep -Eq "1/1 +slow *$"'

# Ctrl-C at a worker: the entry goes back, and the status says that it was stopped.
stet -q queue add --app stet.toml
sed -i "s/echo done/echo other/" stet.toml
"$STET" queue work >../worked &
worker=$!
for _ in $(seq 200); do [ "$(field total queue list --status leased)" = 1 ] && break; sleep 0.02; done
kill -TERM $worker
wait $worker
t "a worker that is stopped says so"            same 130 $?
t "what was under way is given back"            same 1 "$(field total queue list --status pending)"
t "and told"                                    grep -q "stopped: 0 done, 0 failed, 1 returned" ../worked
cd .. || exit 1
finish
