#!/usr/bin/env bash
# An action that failed before, and waits for another failure now, needs the same in each run: the second one runs nothing.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >t.json <<'END'
{ "pattern": 1, "name": "t", "argument": { "default": { "k": 1 } },
  "nodes": [ { "id": "a", "inputs": { "x": {"$": "argument/k"} }, "module": { "type": "javascript", "implementation": { "file": "lib.js", "export": "a" } } },
             { "id": "fails", "inputs": { "values": {"$": "a/list"} }, "module": { "type": "ref", "ref": "max" } },
             { "id": "unread", "inputs": { "value": {"$": "argument/k"}, "condition": {"$": "a/none"} }, "module": { "type": "ref", "ref": "unless" } },
             { "id": "waits", "inputs": { "x": {"$": "fails"}, "y": {"$": "unread"} }, "module": { "type": "javascript", "implementation": { "file": "lib.js", "export": "b" } } } ],
  "result": { "a": {"$": "a"}, "fails": {"$": "fails"}, "waits": {"$": "waits"} } }
END
runs() { stet run t.json --no-retry-failed --json | json runs; }
t "without its code file it fails"               same 2 "$(runs)"
cat >lib.js <<'END'
export const a = ({x}) => JSON.stringify(x);
export const b = ({x}) => x ?? 0;
END
t "with it, another one fails, and it waits"     same 3 "$(runs)"
t "the second run runs nothing"                  same 0 "$(runs)"
echo 'export const a = ({x}) => ({list: [x, 7]}); export const b = ({x}) => x ?? 0;' >lib.js
t "when that is mended it runs"                  same 7 "$(stet run t.json >/dev/null; stet get piece:t/waits)"
t "then nothing runs"                            same 0 "$(runs)"
finish
