#!/usr/bin/env bash
# Whoever asks about runs gets what was asked for, or is told: flags that stet can't follow, marks that can't be read, inputs that no pattern has, runs of other programs.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >stet.toml <<'TOML'
[argument]
n = 1
[nodes.a]
command = "test -e ok && echo {n} > {out}"
produces = "o.txt"
inputs = { n = "$argument/n" }
TOML
stet -q run >/dev/null
bad=$(ls .stet/runs)

t "--no-incremental is refused"               expect_status 8 stet runs resume "$bad" --drive --no-incremental
t "--format json is --json"                   same "$(stet runs list --json)" "$(stet runs list --format json)"
t "also before the command"                   test "$(stet --format json status | json persist)" = true
t "--format text is no JSON"                  expect_out RUN stet runs list --json --format text
t "another format is refused"                 expect_err "text, json" stet runs list --format yaml
t "operations with formats keep theirs"       expect_out digraph stet piece graph pipeline --format dot
t "stet run search says what was meant"       expect_err "did you mean: stet runs search?" stet run search
t "with flags, too"                           expect_err "did you mean: stet runs list?" stet run list --limit 3
t "a node of that name is run"                sh -c 'sed "s/nodes.a/nodes.list/" stet.toml > other.toml; "$STET" run other.toml list 2>&1 | grep -q "^failed"'

mkdir -p .stet/local/registry
echo '{' >.stet/local/registry/archive.json
t "show tells that marks can't be read"       expect_status 6 stet runs show "$bad"
t "which ones"                                sh -c '"$STET" runs show "$1" | grep -q "problem: .*archive.json"' - "$bad"
t "resume tells"                              expect_status 6 stet runs resume "$bad"
t "and drives nothing"                        expect_err "is not resumed while marks of its project can't be read" stet runs resume "$bad" --drive
rm .stet/local/registry/archive.json

before=$(ls .stet/runs)
t "an input that no pattern has is refused"   expect_err 'has no input "m"' stet runs rerun "$bad" --input m=2 --drive
t "with those that it has"                    expect_err "its inputs are: n" stet runs rerun "$bad" --input m=2 --drive
t "and leaves no run behind"                  same "$before" "$(ls .stet/runs)"
stet queue add --app stet.toml --input m=2 >/dev/null
t "nor does a worker run it"                  expect_status 1 stet queue work
t "its entry says why"                        expect_out 'has no input "m"' stet queue list --status parked
touch ok
t "one that it has is taken"                  expect_out "completed" stet runs rerun "$bad" --input n=5 --drive
t "the piece has its own argument again"      same '{"n":1}' "$(stet get piece:pipeline:argument --json | json value)"
cat >whole.json <<'JSON'
{"pattern": 1, "name": "whole", "argument": {"default": {}},
 "nodes": [{"id": "f", "inputs": [{"$": "argument"}], "module": {"type": "javascript", "implementation": "(a) => a.x || 0"}}], "result": {"x": {"$": "f"}}}
JSON
stet queue add --app whole.json --input x=3 >/dev/null
t "a pattern that reads all of it takes all"  expect_out "1 done, 0 failed" stet queue work

# Runs that another program keeps, in the layout of the system behind the registry.
mkdir -p foreign/.cw/runs/r-1 foreign/.cw/runs/r-2 foreign/.cw/registry
cd foreign
stet init >/dev/null
for i in 1 2; do
    cat >".cw/runs/r-$i/state.json" <<JSON
{"schemaVersion": 1, "id": "r-$i", "createdAt": "2026-01-0${i}T00:00:00Z", "updatedAt": "2026-01-0${i}T00:00:00Z", "loopStage": "done",
 "workflow": {"id": "audit", "title": "Audit", "app": {"id": "audit", "version": "1"}}, "tasks": [{"id": "t", "status": "completed"}],
 "feedback": [{"id": "f", "status": "rejected", "message": "no"}]}
JSON
done
echo '{"schemaVersion":1,"archived":{"r-1":{"archivedAt":"2026-02-01T00:00:00Z","reason":"old"}}}' >.cw/registry/archive.json
echo '{"schemaVersion":1,"links":{"r-2":{"rerunOf":"r-1","rerunOfRepo":"/x","originRunId":"r-1","generation":1,"reason":"again","createdAt":"2026-01-02T00:00:00Z"}}}' >.cw/registry/provenance.json
find .cw -type f | sort | xargs sha256sum >../before
t "runs of another program are listed"        expect_out "added" stet project add --runs .cw/runs
t "twice is once"                             expect_out "already listed" stet project add --runs .cw/runs
t "with their state; rejected is not open"    same completed "$(stet runs show r-2 --json | json record.lifecycle)"
t "with their marks"                          same "archived old" "$(stet runs show r-1 --json | python3 -c 'import json, sys; r = json.load(sys.stdin)["record"]; print(r["lifecycle"], r["archiveReason"])')"
t "and their links"                           same r-1 "$(stet runs show r-2 --json | json record.provenance.rerunOf)"
t "whose marks are theirs to clear"           expect_err "clear the mark with that program" stet runs archive r-1 --unarchive
t "ours lie elsewhere"                        expect_out "archived 1 run" stet runs archive r-2
t "they are not deleted"                      expect_out "its files belong to another program" stet runs delete r-2
echo '{"schemaVersion":1}' >.cw/registry/provenance.json
t "damage there is told"                      expect_status 6 stet runs search
echo '{"schemaVersion":1,"links":{"r-2":{"rerunOf":"r-1","rerunOfRepo":"/x","originRunId":"r-1","generation":1,"reason":"again","createdAt":"2026-01-02T00:00:00Z"}}}' >.cw/registry/provenance.json
t "nothing of theirs has changed"             sha256sum --quiet -c ../before
mkdir -p ../own && cd ../own && stet init >/dev/null && mkdir -p .stet/runs/mine
t "runs of its own are not replaced"          expect_err "has runs of its own" stet project add --runs ../foreign/.cw/runs
rmdir .stet/runs/mine
finish
