#!/usr/bin/env bash
# What is recorded of actions: who reads a cell, marks with their cause, metrics; check derives the marks again and repairs.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
cp "$STET_SOURCE/examples/totals.json" .
t "a pattern runs"                          stet -q run totals.json
stats() { stet space stats --json | json "$1"; }
sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(".stet/local/spaces/main.db"); c.execute(sys.argv[1]); c.commit()' "$1"; }

t "eight actions are recorded"              same "8 8 0 0" "$(stats actions) $(stats observed) $(stats dirty) $(stats unknown)"
t "every commit has been looked at"         same "$(stats seq)" "$(stats marked_through)"
t "who reads a cell"                        expect_out "scaled" stet space readers piece:totals:argument/factor
t "exactly that one"                        same '["scaled"]' "$(stet space readers piece:totals:argument/factor --json | python3 -c 'import json,sys; print(json.dumps([r["action"] for r in json.load(sys.stdin)["readers"]]))')"
t "who writes it"                           expect_out "writes" stet space readers piece:totals:node:total
t "what nobody reads"                       expect_out "no action reads it" stet space readers nothing
t "a cell that is none"                     expect_status 2 stet space readers ""

t "an edit by hand"                         stet -q set piece:totals:argument/factor 7
t "makes its reader dirty"                  same "1 0" "$(stats dirty) $(stats unknown)"
t "with its cause"                          same 1 "$(stats marks.changed)"
t "told to people"                          expect_out "1 changed" stet space stats
t "and why"                                 expect_out "piece:totals:argument/factor was written at sequence" stet why totals scaled
t "what is below is stale, derived"         expect_out "stale" stet action list totals --state stale
t "check agrees"                            stet check --only memory

sql "DELETE FROM mark"
t "a mark that is lost is found"            expect_status 1 stet check --only memory
says() { stet check --only memory 2>&1 | grep -q "$1"; }
t "and named"                               says "not marked"
t "repair makes it unknown, not standing"   stet check --only memory --repair
t "so"                                      same "0 1" "$(stats dirty) $(stats unknown)"
t "with its reason"                         same 1 "$(stats marks.repaired)"
t "it runs again"                           expect_out "failed 0" stet run totals.json
t "and nothing is marked"                   same "0 0" "$(stats dirty) $(stats unknown)"

sql "DELETE FROM read_index"
t "index rows that are lost are found"      says "an index row is missing"
t "and built again"                         stet check --only memory --repair
t "all of it"                               same 12 "$(stats read_rows)"
stet -q run totals.json

sql "UPDATE action SET observation = x'ff00' WHERE name = 'total'"
t "a damaged observation is unknown"        expect_out "damaged" stet why totals total
t "found by check"                          expect_status 1 stet check --only memory
t "repaired"                                stet check --only memory --repair
t "and run again"                           expect_out "failed 0" stet run totals.json

t "a piece that is deleted"                 stet piece delete totals
t "leaves nothing after gc"                 stet gc --only memory
t "no action, no row"                       same "0 0 0" "$(stats actions) $(stats read_rows) $(stats write_rows)"
t "the store is sound"                      stet check
finish
