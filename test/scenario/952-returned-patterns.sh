#!/usr/bin/env bash
# A node returns one pattern after another. A node that is in several of them, and is shown by the one at hand, has run on its inputs after one run;
# one that is not shown need not run.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >p.json <<'END'
{ "pattern": 1, "name": "p", "argument": { "default": { "f": 1 } },
  "nodes": [ { "id": "made", "inputs": { "f": {"$": "argument/f"} }, "returns": "pattern",
               "module": { "type": "javascript", "implementation":
                 "({f}) => ({pattern: 1, name: 'm', nodes: Array.from({length: f % 3 + 1}, (_, i) => ({id: 'n' + i, inputs: {f: {$: 'argument/f'}}, module: {type: 'javascript', implementation: '({f}) => f + 1 + ' + i}})), result: {last: {$: 'n' + f % 3}}})" } } ],
  "result": { "made": {"$": "made"} } }
END
stet run p.json >/dev/null
for f in 2 4 5 8 7 3 4 1 6; do
    stet set piece:p:argument/f $f >/dev/null
    t "with $f the node and the one that is shown run" same 2 "$(stet run p.json --json | json runs)"
    t "the result is that of a first run"              same $((f + 1 + f % 3)) "$(stet get piece:p/made/last)"
    t "a second run runs nothing"                      same 0 "$(stet run p.json --json | json runs)"
done
finish
