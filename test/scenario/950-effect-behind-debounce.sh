#!/usr/bin/env bash
# An effect is not done on what a debounced action is about to change, also where an action stands between them that is up to date.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >t.json <<'END'
{ "pattern": 1, "name": "t", "argument": { "default": { "a": 1, "b": 1 } },
  "nodes": [ { "id": "slow", "debounceMs": 700, "inputs": { "value": {"$": "argument/a"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "between", "inputs": { "value": {"$": "slow"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "direct", "kind": "effect", "inputs": { "x": {"$": "slow"}, "y": {"$": "argument/b"} },
               "module": { "type": "command", "argv": ["sh", "-c", "echo {x} {y} >>direct.log"] } },
             { "id": "behind", "kind": "effect", "inputs": { "x": {"$": "between"}, "y": {"$": "argument/b"} },
               "module": { "type": "command", "argv": ["sh", "-c", "echo {x} {y} >>behind.log"] } } ],
  "result": {} }
END
has() { for _ in $(seq 600); do grep -qx "$2" "$1" 2>/dev/null && return 0; sleep 0.1; done; cat "$1"; return 1; }
"$STET" run t.json --watch >watch.out 2>&1 &
watch=$!
t "a watch does both effects"                    has direct.log "1 1"
t "the one behind another action, too"           has behind.log "1 1"
stet doc patch piece:t:argument '[{"op":"replace","path":"/a","value":2},{"op":"replace","path":"/b","value":2}]' >/dev/null
t "both inputs change at once"                   has direct.log "2 2"
t "for both"                                     has behind.log "2 2"
kill $watch
wait $watch 2>/dev/null
t "an effect never saw the old with the new"     same "1 1,2 2" "$(paste -sd, direct.log)"
t "nor did the one behind an up-to-date action"  same "1 1,2 2" "$(paste -sd, behind.log)"
t "nothing is left to do"                        same 0 "$(stet run t.json --json | json runs)"
finish
