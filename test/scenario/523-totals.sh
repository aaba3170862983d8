#!/usr/bin/env bash
# A pattern with everything in it: a function, a built-in, a handler that writes to the argument, an effect that is a command.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >totals.json <<'END'
{ "pattern": 1, "name": "totals", "version": "1.0.0",
  "argument": { "schema": {}, "default": { "rows": [1, 2, 3], "factor": 2 } },
  "cells": { "log": { "default": [] } },
  "nodes": [
    { "id": "scaled", "inputs": { "rows": {"$": "argument/rows"}, "factor": {"$": "argument/factor"} },
      "module": { "type": "javascript", "implementation": "({rows, factor}) => rows.map(r => r * factor)" } },
    { "id": "total", "inputs": { "values": {"$": "scaled"} }, "module": { "type": "ref", "ref": "sum" } },
    { "id": "add", "stream": {"$": "add"}, "inputs": { "rows": {"$": "argument/rows", "asCell": true} },
      "module": { "type": "javascript", "handler": true, "implementation": "(event, {rows}) => { rows.push(event) }" } },
    { "id": "plot", "kind": "effect", "inputs": { "total": {"$": "total"} },
      "module": { "type": "command", "argv": ["python3", "plot.py"] } } ],
  "result": { "total": {"$": "total"} } }
END
echo 'open("plots", "a").write("plot\n")' >plot.py

t "the pattern is right"              expect_out "no problems" stet pattern check totals.json
t "it runs"                           expect_out "ran 3, up to date 0, failed 0" stet run totals.json
t "with the right total"              same 12 "$(stet piece show totals --json | json result.total)"
t "the effect has had its effect"     same 1 "$(wc -l <plots)"
t "and does not have it again"        expect_out "ran 0, up to date 3" stet run totals.json
t "an event"                          stet piece send totals add 4 --id four
t "sent again"                        expect_out "had been applied" stet piece send totals add 4 --id four
t "is in the argument once"           same '{"factor":2,"rows":[1,2,3,4]}' "$(stet get piece:totals:argument --json | json value)"
t "what follows from it runs"         expect_out "ran 3, up to date 0" stet run totals.json
t "with the right total"              same 20 "$(stet piece show totals --json | json result.total)"
t "and the effect follows"            same 2 "$(wc -l <plots)"
t "an event that settles"             expect_out "ran 3, up to date 0" stet piece send totals add -10 --settle
t "has its effect, too"               same 3 "$(wc -l <plots)"
t "an event that leaves the total as it is" stet piece send totals add 0
t "stops there"                       expect_out "ran 2, up to date 1" stet run totals.json
t "without the effect"                same 3 "$(wc -l <plots)"
t "the graph names the stream"        expect_out '"id": "piece:totals:node:add"' stet piece graph totals
finish
