#!/usr/bin/env bash
# The queue from the shell: order, drain, giving back, cancelling, and refusals.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
field() { local path=$1; shift; stet "$@" --json | json "$path"; }
first=$(field id queue add --app one --priority 5)
second=$(field id queue add --app two --priority 1 --note urgent)
third=$(field id queue add --workflow three --priority 5)

t "an entry that names nothing is refused"     expect_status 2 stet queue add
t "one for a run that is not there too"        expect_status 3 stet queue add --run-id 20990101T000000Z-x-00000000
t "the project is known now"                   expect_out "$(pwd -P)" stet project list
t "lower priority first, then time"            same "$second $first $third" "$(stet queue list --json | python3 -c 'import json,sys; print(*[e["id"] for e in json.load(sys.stdin)["entries"]])')"
t "show"                                       expect_out urgent stet queue show "$second"
t "move"                                       stet queue move "$third" --priority 0
t "drain --limit 0 drains none"                same '[]' "$(field drained queue drain --limit 0)"
t "drain takes the first"                      same "$third" "$(field drained.0.id queue drain --limit 1)"
t "it stays in the queue until it is done"     expect_out drained stet queue show "$third"
t "done"                                       expect_out done stet queue done "$third"
t "not twice"                                  expect_status 4 stet queue done "$third"
t "drain the next"                             same 1 "$(field remaining queue drain --limit 1)"
t "give it back"                               expect_out pending stet queue requeue "$second"
t "cancel"                                     expect_out cancelled stet queue cancel "$first" --note "no more"
t "by status"                                  same 1 "$(field total queue list --status pending)"
t "a status that is none is refused"           expect_status 2 stet queue list --status finished
t "work on what can't be driven is no success" sh -c '"$STET" queue work; s=$?; [ $s = 8 ] || [ $s = 1 ]'
t "an entry that is not there"                 expect_status 3 stet queue show q20990101T000000Z-0000000000
printf '{"schemaVersion":9,"entries":[]}' >"$STET_HOME/registry/queue.json"
t "a newer queue is refused"                   expect_status 8 stet queue list
t "and not written over"                       expect_status 8 stet queue add --app x
t "the registry names it and goes on"          expect_status 6 stet registry show
rm "$STET_HOME/registry/queue.json"
t "a deleted queue is an empty one"            same 0 "$(field total queue list)"
finish
