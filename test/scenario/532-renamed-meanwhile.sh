#!/usr/bin/env bash
# Nodes that are renamed in the pattern while a run is active do not fail that run: it goes on with the new ones.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
pattern() { # pattern NAME: of the nodes
    cat >p.json <<END
{ "pattern": 1, "name": "p", "argument": { "default": { "n": 1 } },
  "nodes": [ { "id": "$1", "inputs": { "n": {"\$": "argument/n"} },
               "module": { "type": "command", "shell": "touch begun; while [ ! -e go ]; do sleep 0.05; done; echo {n} > out.txt", "produces": {"out": "out.txt"} } },
             { "id": "keys-$1", "inputs": { "v": {"\$": "$1"} }, "module": { "type": "javascript", "implementation": "({v}) => Object.keys(v.files)" } } ],
  "result": {"\$": "keys-$1"} }
END
}
await() { for _ in $(seq 200); do [ -e "$1" ] && return 0; sleep 0.05; done; return 1; }
pattern a
"$STET" run p.json >first.out 2>&1 &
first=$!
t "a command is under way"                       await begun
pattern b
"$STET" run p.json >second.out 2>&1 &
second=$!
for _ in $(seq 100); do stet piece show p --json 2>/dev/null | grep -q '"generation":2' && break; sleep 0.05; done
touch go
wait $first; one=$?
wait $second; two=$?
t "neither run fails"                            same "0 0" "$one $two"
t "the first has nothing to complain of"         sh -c '! grep -i fail first.out | grep -v "failed 0"'
t "all is up to date"                            same "2 0" "$(stet status p --json | json pieces.0.stands) $(stet run p.json --json | json runs)"
t "with the result"                              same '["out"]' "$(stet get piece:p --json | json value)"
finish
