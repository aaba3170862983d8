#!/usr/bin/env bash
# A map over 10,000 rows, each step in a process of its own: an edited field runs one row, an appended row itself, a removed first row none of the others; what belonged to it is gone.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >rows.json <<'END'
{ "pattern": 1, "name": "rows", "argument": { "default": { "rows": [] } },
  "nodes": [
    { "id": "rows", "inputs": { "list": {"$": "argument/rows"} }, "module": { "type": "ref", "ref": "map", "key": "id", "pattern":
      { "pattern": 1, "name": "row", "cells": { "note": { "default": "" } },
        "nodes": [ { "id": "double", "inputs": [ {"$": "argument/element/n"}, 2 ], "module": { "type": "ref", "ref": "multiply" } } ],
        "result": { "double": {"$": "double"}, "note": {"$": "note"} } } } } ],
  "result": { "rows": {"$": "rows"} } }
END
ran() { stet run rows.json --json | json runs; }
value() { stet get "piece:rows/rows/$1/double" --fresh --json | json value; }
documents() { stet doc list --prefix "piece:rows:$1" --json | json documents; }
list() { python3 -c 'import json; print(json.dumps([{"id": i, "n": i} for i in range(10000)]))'; }
stet run rows.json >/dev/null
list | stet set piece:rows:argument/rows - >/dev/null
t "each of 10,000 rows runs once"             same 10001 "$(ran)"
t "and then nothing"                          same 0 "$(ran)"
stet set 'piece:rows:cell:rows[9999].note' '"mine"' >/dev/null
stet set piece:rows:argument/rows/5000/n 7 >/dev/null
t "an edited field: the list, and one row"    same 2 "$(ran)"
t "with the right result"                     same 14 "$(value 5000)"
t "its neighbour is what it was"              same 9998 "$(value 4999)"
stet set piece:rows:argument/rows/5000/text '"x"' >/dev/null
t "a field that no row reads: the list alone" same 1 "$(ran)"
stet set piece:rows:argument/rows/10000 '{"id": "new", "n": 3}' >/dev/null
t "an appended row: the list, and that row"   same 2 "$(ran)"
t "with the right result"                     same 6 "$(value 10000)"
echo '[{"op":"remove","path":"/rows/0"}]' | stet doc patch piece:rows:argument - >/dev/null
t "the first row removed: the list alone"     same 1 "$(ran)"
t "the others have moved up"                  same 2 "$(value 0)"
t "its documents are gone"                    same '[] [] []' "$(documents 'child:rows[0]') $(documents 'node:rows[0]') $(documents 'cell:rows[0]')"
t "and so is what was known of it"            expect_status 3 stet action show rows 'rows[0].double'
t "nobody reads what it was given"            same '[]' "$(stet space readers 'piece:rows:child:rows[0]' --json | json readers)"
t "a user's value in a cell of a row stays"   same mine "$(stet get piece:rows/rows/9998/note --fresh --json | json value)"
t "nothing is left to do"                     same 0 "$(ran)"
finish
