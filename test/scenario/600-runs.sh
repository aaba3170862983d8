#!/usr/bin/env bash
# Runs of two projects from the shell: found, shown, compared, archived, repeated, cancelled, exported, labelled, counted.
. "$STET_SOURCE/test/scenario/lib.sh"

# run PROJECT ID CREATED TASKS [MORE]: any program may write a run.
run() {
    mkdir -p "$1/.stet/runs/$2/logs"
    printf '{"schemaVersion":2,"id":"%s","createdAt":"%s","updatedAt":"%s","app":{"id":"report","version":"1","title":"Report"},"workflowId":"w","title":"Report of %s",
"loopStage":"running","inputs":{"region":"north"},"options":{},"tasks":[%s]%s}' "$2" "$3" "$3" "$2" "$4" "${5-}" >"$1/.stet/runs/$2/state.json"
}
done_task='{"id":"fetch","status":"completed","log":"logs/fetch.log","result":"aa"}'
mkdir one two
(cd one && stet init) >/dev/null
(cd two && stet init) >/dev/null
run one 20260101T000000Z-report-00000001 2026-01-01T00:00:00Z "$done_task" ',"summary":{"stood":30,"ran":10,"savedMs":60000}'
run one 20260102T000000Z-report-00000002 2026-01-02T00:00:00Z '{"id":"fetch","status":"failed","error":{"message":"no route"}},{"id":"print","status":"pending"}'
run two 20260103T000000Z-report-00000003 2026-01-03T00:00:00Z "$done_task,"'{"id":"print","status":"pending"}'
printf 'one line\nand another\n' >one/.stet/runs/20260101T000000Z-report-00000001/logs/fetch.log
cd one
field() { local path=$1; shift; stet "$@" --json | json "$path"; }
one=$(pwd -P)

t "the index is absent before the first refresh"  same absent "$(field freshness.status registry show)"
t "looking made no index"                         test ! -e .stet/local/registry -a ! -e "$STET_HOME"
t "runs are listed all the same"                  same 2 "$(field total runs list)"
t "refresh writes the index"                      expect_out "index valid" stet registry refresh
t "and is valid then"                             same valid "$(field freshness.status registry show)"
t "the project is known now"                      expect_out "$one" stet project list
t "the other one comes with its own refresh"      stet registry refresh --project ../two
t "search looks through all projects"             same 3 "$(field total runs search)"
t "or one"                                        same 2 "$(field total runs search --scope repo)"
t "by status"                                     same '"20260102T000000Z-report-00000002"' "\"$(field records.0.runId runs search --status failed)\""
t "by words in inputs and title"                  same 1 "$(field total runs search --text "NORTH 00000003")"
t "by time"                                       same 1 "$(field total runs search --since 2026-01-03T01:00:00+01:00)"
t "and does not tell to search next"                 sh -c '"$STET" registry refresh --scope home >/dev/null && "$STET" runs search >out.txt && ! grep -q "^next: stet runs search$" out.txt'
t "by project, named by a directory in it"        same 1 "$(field total runs search --repo ../two/.stet/runs)"
t "a first page tells that there is more"         expect_out "1 to 1 of 3, newest first" stet runs search --limit 1
t "and how to get it"                             expect_out "--cursor" stet runs search --limit 1
cursor=$(field nextCursor runs search --limit 1)
t "a cursor goes on"                              same 20260102T000000Z-report-00000002 "$(field records.0.runId runs search --limit 1 --cursor "$cursor")"
t "a limit of 0 is 0"                             same '[]' "$(field records runs search --limit 0)"
t "show names the failure"                        expect_out "fetch    no route" stet runs show 20260102T000000Z-report-00000002
t "the beginning of an id is enough"              expect_out 00000001 stet runs show 20260101
t "an unknown run is status 3"                    expect_status 3 stet runs show nothing-here
t "history is newest first"                       same 20260103T000000Z-report-00000003 "$(field entries.0.runId history)"
t "stats count what stood"                        same 0.75 "$(field actions.hitRate runs stats)"
t "compare names what differs"                    expect_out "task fetch: completed -> failed" stet runs compare 20260101T000000Z-report-00000001 20260102T000000Z-report-00000002
t "logs are printed"                              expect_out "and another" stet runs logs 20260101
t "following ends with the run"                   expect_out "fetch | one line" stet runs logs 20260101 --follow

t "resume says what is left"                      same '[{"action":"fetch","id":"fetch","status":"failed"},{"action":"print","id":"print","status":"pending"}]' "$(field nextTasks runs resume 20260102)"
before=$(sha256sum .stet/runs/*/state.json)
t "archive marks"                                 expect_out "archived 1 run" stet runs archive 20260101 --reason old
t "the lifecycle becomes archived"                same archived "$(field record.lifecycle runs show 20260101)"
t "what it was is kept below"                     same completed "$(field record.derivedLifecycle runs show 20260101)"
t "and found by that"                             same 1 "$(field total runs search --status completed)"
t "or left out"                                   same 2 "$(field total runs search --include-archived false)"
t "no state was touched"                          same "$before" "$(sha256sum .stet/runs/*/state.json)"
t "resume does not unarchive"                     same archived "$(field lifecycle runs resume 20260101)"
t "unarchive clears the mark"                     expect_out "unarchived 1 run" stet runs archive 20260101 --unarchive
t "without a window nothing is archived"          expect_status 2 stet runs archive
t "a dry run changes nothing"                     same 2 "$(field eligible runs archive --older-than-days 30 --state completed --state failed --dry-run)"
t "by window"                                     same 1 "$(field eligible runs archive --older-than-days 30 --state completed)"
t "the queue of archived ones is empty now"       same 0 "$(field eligible runs archive --older-than-days 30 --state completed)"
t "label"                                         expect_out "keep" stet runs label 20260102 --add keep --add v2
t "found by label"                                same 1 "$(field total runs search --label keep)"
t "label removed"                                 same '["v2"]' "$(field labels runs label 20260102 --remove keep)"

new=$(field newRunId runs rerun 20260102 --reason "try again" --input 'region="south"')
t "rerun makes a new run beside the original"     test -e ".stet/runs/$new/state.json"
t "with the inputs, and what was put over them"   same south "$(json inputs.region <".stet/runs/$new/state.json")"
t "linked to it"                                  same 20260102T000000Z-report-00000002 "$(field record.provenance.rerunOf runs show "$new")"
t "the original is as it was"                     same failed "$(field record.lifecycle runs show 20260102)"
newer=$(field newRunId runs rerun "$new")
t "a rerun of a rerun is generation 2"            same 2 "$(field record.provenance.generation runs show "$newer")"
t "its origin is the first"                       same 20260102T000000Z-report-00000002 "$(field record.provenance.originRunId runs show "$newer")"
t "cancel ends one that nobody drives"            expect_out "cancelled" stet runs cancel "$newer"
t "as failed"                                     same failed "$(field record.lifecycle runs show "$newer")"
t "there is nothing more to cancel"               expect_status 4 stet runs cancel "$newer"
t "what happened is told"                         expect_out "$newer" stet runs tail --from-start --seconds 1

t "export"                                        stet runs export 20260102 -o ../run.file
t "not over a file"                               expect_status 4 stet runs export 20260102 -o ../run.file
t "whole"                                         expect_out "whole" stet runs import ../run.file --verify-only
t "import elsewhere"                              stet --project ../two runs import ../run.file
t "with the very same bytes"                      cmp .stet/runs/20260102T000000Z-report-00000002/state.json ../two/.stet/runs/20260102T000000Z-report-00000002/state.json
t "not twice"                                     expect_status 4 stet --project ../two runs import ../run.file
sed -i 's/no route/no-route/' ../run.file
t "another byte is noticed"                       expect_status 6 stet runs import ../run.file --verify-only
t "the same id in two projects: here wins"        same "$one" "$(field repo runs show 20260102T000000Z-report-00000002)"
t "elsewhere it is a conflict that names both"    expect_err "--repo" stet --project ../two runs show 20260102T000000Z-report-00000002 --repo /nowhere
mkdir ../three && cd ../three
t "without a project too"                         expect_status 4 stet runs show 20260102T000000Z-report-00000002
t "until one is named"                            same "$one" "$(field repo runs show 20260102T000000Z-report-00000002 --repo ../one)"
cd ../one

run . 20260201T000000Z-live-0000000a 2026-02-01T00:00:00Z '{"id":"slow","status":"running","log":"logs/slow.log"}'
touch .stet/runs/20260201T000000Z-live-0000000a/events.jsonl
(
    stet runs tail --limit 1 >../tail.out
) &
tail=$!
(
    sleep 0.7
    echo "late line" >>.stet/runs/20260201T000000Z-live-0000000a/logs/slow.log
    echo '{"at":"2026-02-01T00:00:01Z","event":"task","task":"slow","from":"running","to":"completed"}' >>.stet/runs/20260201T000000Z-live-0000000a/events.jsonl
    sleep 0.5
    run . 20260201T000000Z-live-0000000a 2026-02-01T00:00:00Z '{"id":"slow","status":"completed","log":"logs/slow.log"}'
) &
t "a live log is followed to the end of the run"  expect_out "late line" stet runs logs 20260201T000000Z-live-0000000a --follow
wait $tail
t "and its events are told as they happen"        grep -q "slow completed" ../tail.out
wait

t "a deleted index is rebuilt"                    sh -c 'rm -r .stet/local/registry/index.json "$STET_HOME/registry/index.json" && "$STET" registry refresh'
rm .stet/local/registry/*.json
t "so are the links of reruns"                    sh -c '"$STET" registry refresh && grep -q originRunId .stet/local/registry/provenance.json'
t "a run that is gone is missing"                 sh -c 'rm -r .stet/runs/20260101T000000Z-report-00000001; ! "$STET" runs show 20260101T000000Z-report-00000001'
t "named by the registry"                         same 20260101T000000Z-report-00000001 "$(field freshness.missingRuns.0.runId registry show)"
t "no record is made up for it"                   not grep -q 00000001 <(stet runs list --json | json records)
t "only what was known of it is shown, flagged"   same missing "$(stet runs show 20260101T000000Z-report-00000001 --json | json persisted.freshness)"
finish
