#!/usr/bin/env bash
# A dry run names effects that run at every start; a run tells what it did also when its result can't be shown.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >e.json <<'END'
{ "pattern": 1, "name": "e", "argument": { "default": { "n": 1, "a": {"/": {"link@1": {"id": "loop", "path": []}}} } },
  "nodes": [ { "id": "x", "inputs": { "value": {"$": "argument/n"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "once", "kind": "effect", "inputs": { "n": {"$": "argument/n"} }, "module": { "type": "command", "shell": "echo once {n} >>log" } },
             { "id": "each", "kind": "effect", "onRestart": "run", "inputs": { "n": {"$": "argument/n"} }, "module": { "type": "command", "shell": "echo each {n} >>log" } } ],
  "result": { "x": {"$": "x"}, "a": {"$": "argument/a"} } }
END
dry() { stet run e.json --dry-run --json "$@" | json actions; }
stet set loop 7 >/dev/null
t "a first run runs all"                         same 3 "$(stet run e.json --json | json runs)"
t "a dry run names what every start runs"        same '[{"node":"each","reason":"restart","state":"stands"}]' "$(dry)"
t "and says so"                                  expect_out "0 actions do not stand, 1 effect runs at every start" stet run e.json --dry-run
t "the run does as it says"                      same 1 "$(stet run e.json --json | json runs)"
t "a part does not start it"                     same '[]' "$(dry --demand x)"
t "nor does its run"                             same 0 "$(stet run e.json --demand x --json | json runs)"
stet set piece:e:argument/n 2 >/dev/null
t "one that is outdated is named once"           same 3 "$(dry | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')"

stet run e.json >/dev/null
stet set loop '{"/": {"link@1": {"id": "back", "path": []}}}' >/dev/null
stet set back '{"/": {"link@1": {"id": "loop", "path": []}}}' >/dev/null
t "the text form of a run ends well"             stet run e.json
stet run e.json --json >out; st=$?
t "so does the other"                            same "0 1" "$st $(json runs <out)"
t "without a result"                             same null "$(json result <out)"
t "and says why"                                 same limit "$(json resultError.code <out)"
t "with the circle"                              same "links lead in a circle: back -> loop -> back" "$(json resultError.message <out)"
t "who asks for the result is refused"           expect_status 10 stet piece pull e
stet set back '{"in": {"/": {"link@1": {"id": "loop", "path": []}}}}' >/dev/null
t "a circle over a value is named, too"          same "links lead in a circle: back -> loop -> back" "$(stet run e.json --json | json resultError.message)"
finish
