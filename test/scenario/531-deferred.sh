#!/usr/bin/env bash
# An action that a process puts off, by debounceMs or throttleMs, is not called up to date by anybody meanwhile, and any other process may run it.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >t.json <<'END'
{ "pattern": 1, "name": "t", "argument": { "default": { "n": 1 } },
  "nodes": [ { "id": "throttled", "throttleMs": 20000, "inputs": { "value": {"$": "argument/n"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "debounced", "debounceMs": 20000, "inputs": { "value": {"$": "argument/n"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "after", "inputs": [ {"$": "throttled"}, {"$": "debounced"} ], "module": { "type": "ref", "ref": "add" } } ],
  "result": {"$": "after"} }
END
state() { echo "$(stet action show t throttled --json | json state) $(stet action show t debounced --json | json state) $(stet action show t after --json | json state)"; }
until_says() { for _ in $(seq 100); do [ "$(state)" = "$1" ] && return 0; sleep 0.1; done; state; return 1; }
"$STET" run t.json --watch >watch.out 2>&1 &
watch=$!
t "a watch runs all of it"                       until_says "stands stands stands"
stet set piece:t:argument/n 2 >/dev/null
sleep 1
t "what it puts off is outdated"                 same "dirty dirty stale" "$(state)"
t "a dry run says so"                            same 3 "$(stet run t.json --dry-run --json | json actions | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')"
t "the value is the old one"                     same 2 "$(stet get piece:t)"
t "another process need not wait"                same 4 "$(stet get piece:t --fresh)"
t "then it is up to date"                        same "stands stands stands" "$(state)"
stet set piece:t:argument/n 3 >/dev/null
sleep 1
kill -9 $watch
wait $watch 2>/dev/null
t "the watch ends before it has run them"        same "dirty dirty stale" "$(state)"
t "the next run does"                            same "3 6" "$(stet run t.json --json | json runs) $(stet get piece:t)"
finish
