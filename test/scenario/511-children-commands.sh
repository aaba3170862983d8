#!/usr/bin/env bash
# Commands and effects in children: one for each row, none for a row that stands, and a row that goes while its command runs takes it along.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
export LOG=$PWD/log
said() { sort log | uniq -c | tr -s ' \n' ' '; }
ran() { stet run "$1" --json | json runs; }

cat >rows.json <<'END'
{ "pattern": 1, "name": "rows", "argument": { "default": { "rows": [ {"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "c", "n": 3} ] } },
  "nodes": [ { "id": "rows", "inputs": { "list": {"$": "argument/rows"} },
               "module": { "type": "ref", "ref": "map", "key": "id", "pattern":
                 { "pattern": 1, "name": "row",
                   "nodes": [ { "id": "say", "inputs": { "n": {"$": "argument/element/n"} },
                                "module": { "type": "command", "shell": "echo ran {n} >>\"$LOG\"; echo {n}0", "env": ["LOG"], "stdout": "text" } },
                              { "id": "tell", "kind": "effect", "inputs": { "n": {"$": "argument/element/n"} },
                                "module": { "type": "command", "shell": "echo told {n} >>\"$LOG\"", "env": ["LOG"] } } ],
                   "result": {"$": "say/stdout"} } } } ],
  "result": {"$": "rows"} }
END
t "a command and an effect for each row"      same 7 "$(ran rows.json)"
t "each was run once"                         same " 1 ran 1 1 ran 2 1 ran 3 1 told 1 1 told 2 1 told 3 " "$(said)"
t "the result is theirs"                      same '["10\n","20\n","30\n"]' "$(stet piece show rows --json | json result)"
rm log
t "a restart runs none"                       same 0 "$(ran rows.json)"
t "no effect either"                          expect_status 1 test -e log
stet set piece:rows:argument/rows/1/n 5 >/dev/null
t "an edited row: its coordinator, its command, its effect" same 3 "$(ran rows.json)"
t "and no other"                              same " 1 ran 5 1 told 5 " "$(said)"
rm log
stet set piece:rows:argument/rows '[{"id":"b","n":5},{"id":"c","n":3},{"id":"d","n":4}]' >/dev/null
t "one gone and one new"                      same 3 "$(ran rows.json)"
t "the new one alone is run"                  same " 1 ran 4 1 told 4 " "$(said)"
stet doc list --json >docs.out
t "nothing is left of the one that is gone"   expect_status 1 grep -q 'rows\[a\]' docs.out
t "it stands"                                 same 0 "$(ran rows.json)"

# A row that is removed while its command runs.
cat >slow.json <<'END'
{ "pattern": 1, "name": "slow", "argument": { "default": { "rows": [ {"id": "a", "s": "0"}, {"id": "b", "s": "30"} ] } },
  "nodes": [ { "id": "rows", "inputs": { "list": {"$": "argument/rows"} },
               "module": { "type": "ref", "ref": "map", "key": "id", "pattern":
                 { "pattern": 1, "name": "row",
                   "nodes": [ { "id": "wait", "inputs": { "s": {"$": "argument/element/s"}, "id": {"$": "argument/element/id"} },
                                "module": { "type": "command", "shell": "echo begun {id} $$ >>\"$LOG\"; sleep {s}; echo ended {id} >>\"$LOG\"; echo {id}", "env": ["LOG"], "stdout": "text" } } ],
                   "result": {"$": "wait/stdout"} } } } ],
  "result": {"$": "rows"} }
END
: >log
began=$SECONDS
stet run slow.json >slow.out 2>&1 &
driver=$!
for _ in $(seq 200); do
    grep -q 'begun b' log && grep -q 'ended a' log && break
    sleep 0.05
done
t "both commands began"                       grep -q 'begun b' log
pid=$(sed -n 's/^begun b //p' log)
stet set piece:slow:argument/rows '[{"id":"a","s":"0"}]' >/dev/null
wait $driver
status=$?
t "the run ends well"                         same 0 "$status"
t "long before the command would have"        test $((SECONDS - began)) -lt 25
t "the command is gone"                       expect_status 1 kill -0 "$pid"
t "it did not come to its end"                expect_status 1 grep -q 'ended b' log
t "the result is that of the row that is left" same '["a\n"]' "$(stet piece show slow --json | json result)"
stet doc list --json >docs.out
t "no document is left of the other"          expect_status 1 grep -q 'slow:.*rows\[b\]' docs.out
stet action list slow >actions.out
t "nor an action"                             expect_status 1 grep -q 'rows\[b\]' actions.out
t "and all stands"                            same 0 "$(ran slow.json)"
finish
