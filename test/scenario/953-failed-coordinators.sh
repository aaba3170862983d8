#!/usr/bin/env bash
# A node that fails while it gives its children what they are made from leaves them as they were, and so do patterns that return themselves.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
m=$(printf 'm%.0s' $(seq 200)) d=$(printf 'd%.0s' $(seq 85)) # with a key of more than a few bytes the ids of children are too long
cat >p.json <<END
{ "pattern": 1, "name": "p", "argument": { "default": { "rows": [ { "id": "a", "n": 1 }, { "id": "b", "n": 1 } ] } },
  "nodes": [ { "id": "$m", "inputs": { "list": {"$": "argument/rows"} },
               "module": { "type": "ref", "ref": "map", "key": "id", "pattern": { "pattern": 1, "name": "c",
                 "nodes": [ { "id": "$d", "inputs": { "x": {"$": "argument/element"} }, "module": { "type": "javascript", "implementation": "({x}) => x.n * 10" } } ],
                 "result": {"$": "$d"} } } } ],
  "result": { "m": {"$": "$m"} } }
END
values() { stet get piece:p/m --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["value"])'; }
stet run p.json >/dev/null
stet set piece:p:argument/rows '[{"id":"a","n":2},{"id":"a-key-that-is-too-long","n":1}]' >/dev/null
t "a child can't be made"                        expect_status 1 stet run p.json
t "the others were given nothing"                same "[10, 10]" "$(values)"
t "nothing is left of those that were begun"     stet check
stet set piece:p:argument/rows '[{"id":"a","n":1},{"id":"b","n":1}]' >/dev/null
t "the next run mends it"                        stet run p.json
t "the values are those of the list"             same "[10, 10]" "$(values)"
t "nothing is left to do"                        same 0 "$(stet run p.json --json | json runs)"

cat >q.json <<'END'
{ "pattern": 1, "name": "q", "argument": { "default": { "r": { "pattern": 1, "name": "r",
    "nodes": [ { "id": "x", "returns": "pattern", "inputs": { "p": {"$": "argument/p"} }, "module": { "type": "javascript", "implementation": "({p}) => p" } } ],
    "result": {"$": "x"} } } },
  "nodes": [ { "id": "n", "returns": "pattern", "inputs": { "p": {"$": "argument/r"} }, "module": { "type": "javascript", "implementation": "({p}) => p" } } ],
  "result": { "n": {"$": "n"} } }
END
t "a pattern that returns itself"                expect_status 1 stet run q.json
stet run q.json >out 2>&1
t "ends where the reference says"                grep -q "more than 8 patterns inside each other" out
t "also in another process"                      same 9 "$(stet action list q --json | json actions | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')"
stet set piece:q:argument/r '{"pattern":1,"name":"r","nodes":[{"id":"x","inputs":{"value":1},"module":{"type":"ref","ref":"value"}}],"result":{"$":"x"}}' >/dev/null
t "another one takes its place"                  same 1 "$(stet run q.json >/dev/null; stet get piece:q/n)"
finish
