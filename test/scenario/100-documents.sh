#!/usr/bin/env bash
# Documents through the command line: set, get, patch, delete, log, list, preconditions, sessions, scopes, metadata.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
val() { stet get "$@" --json | json value; }

t "nothing is there at first"            expect_status 3 stet get config
t "and reading makes no space"           test ! -e .stet/local/spaces
t "a list of nothing is empty"           same '[]' "$(stet doc list --json | json documents)"
t "set makes the document"               expect_out "sequence 1" stet set config/theme '"dark"'
t "get a field"                          same dark "$(val config/theme)"
t "as text: pretty JSON"                 same '"dark"' "$(stet get config/theme)"
t "set again changes nothing"            expect_out "nothing to change" stet set config/theme '"dark"'
t "from standard input"                  bash -c 'echo "{\"a\":[1,2]}" | "$STET" doc set list -'
t "an element"                           same 2 "$(val list/a/1)"
t "doc get shows its hash and sequence"  same 2 "$(stet doc get list --json | json seq)"
t "a past sequence"                      expect_status 3 stet get list --at 1
t "one that is not there yet"            expect_err "is at 2" stet get list --at 99

t "every patch operation"                stet doc patch p '[
  {"op":"replace","path":"/deep/er","value":1},
  {"op":"add","path":"/rows","value":[]},
  {"op":"append","path":"/rows","values":["b","c"]},
  {"op":"add","path":"/rows/0","value":"a"},
  {"op":"add","path":"/rows/-","value":"d"},
  {"op":"add-unique","path":"/rows","value":"b"},
  {"op":"splice","path":"/rows","index":1,"remove":1,"add":["B","B"]},
  {"op":"remove-by-value","path":"/rows","value":"d"},
  {"op":"move","from":"/deep/er","path":"/top"},
  {"op":"remove","path":"/deep"},
  {"op":"increment","path":"/n","by":2.5}]'
t "gives"                                same '{"n":2.5,"rows":["a","B","B","c"],"top":1}' "$(val p)"
t "all or none"                          expect_err "patch 1 (remove): /value/none" stet doc patch p '[{"op":"increment","path":"/n"},{"op":"remove","path":"/none"}]'
t "none it was"                          same 2.5 "$(val p/n)"
t "an unknown operation"                 expect_status 2 stet doc patch p '[{"op":"frob","path":""}]'
t "an unknown member"                    expect_err 'unknown member "vlaue"' stet doc patch p '[{"op":"add","path":"/x","vlaue":1}]'
t "a path through a scalar"              expect_status 2 stet set config/theme/x 1
t "a name outside the grammar"           expect_status 2 stet set "$(printf 'a\tb')" 1
t "a space outside the grammar"          expect_status 2 stet set a 1 --space Main
t "an unknown space"                     expect_status 3 stet get a --space none
t "an unknown branch"                    expect_status 3 stet get config --branch none
t "too long"                             expect_status 10 stet set "$(printf 'x%.0s' {1..600})" 1
t "too deep"                             expect_status 10 stet set deep "$(printf '[%.0s' {1..511})$(printf ']%.0s' {1..511})"
t "nothing of that was stored"           same 3 "$(stet space stats --json | json seq)"

t "only if absent"                       stet set event:1 1 --if-absent
t "which it is not any more"             expect_status 4 stet set event:1 2 --if-absent
hash=$(stet get event:1 --json | json hash)
t "only if it is what was read"          stet set event:1 3 --if-hash "$hash"
t "which it is not any more either"      expect_status 4 stet set event:1 4 --if-hash "$hash"
t "a hash that is none"                  expect_status 2 stet set event:1 4 --if-hash 12
t "a session's commit"                   stet doc patch c '[{"op":"increment","path":""}]' --session s --local 1
t "again is the same one"                expect_out "done before" stet doc patch c '[{"op":"increment","path":""}]' --session s --local 1
t "it was counted once"                  same 1 "$(val c)"
t "with other content"                   expect_status 4 stet doc patch c '[{"op":"increment","path":"","by":2}]' --session s --local 1
t "a session needs its number"           expect_status 2 stet set c 1 --session s

t "a scope is another document"          stet set config/theme '"light"' --scope user:x
t "of the same id"                       same "dark light" "$(val config/theme) $(val config/theme --scope user:x)"
t "an id with a slash"                   stet set file:a~1b.txt/size 3
t "is one id"                            expect_out "file:a/b.txt" stet doc list
t "metadata"                             stet set config/source '"by hand"' --meta
t "stands beside the value"              same '{"source":"by hand","value":{"theme":"dark"}}' "$(val config --meta)"
t "which a set leaves alone"             bash -c '"$STET" set config 1 && [ "$("$STET" get config/source --meta)" = "\"by hand\"" ]'

t "delete"                               stet doc delete config
t "is gone"                              expect_status 3 stet get config
t "deleting what is not there"           expect_status 3 stet doc delete config
t "the log keeps it"                     same '["delete","patch","patch","set"]' "$(stet doc log config --json | python3 -c 'import json,sys; print(json.dumps([r["kind"] for r in json.load(sys.stdin)["revisions"]],separators=(",",":")))')"
t "in pages"                             same 2 "$(stet doc log config --limit 2 --json | json revisions | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')"
next=$(stet doc log config --limit 2 --json | json next)
t "the next one"                         expect_out "set" stet doc log config --before "$next"
t "no log of nothing"                    expect_status 3 stet doc log nobody
t "that it was made is said in words"      sh -c '"$STET" set made 1 >/dev/null && "$STET" doc log made | grep -q "keys   (the whole document)"'
for i in 1 2 3 4 5; do stet -q set "page:$i" 1; done
next=$(stet doc list --prefix page: --limit 3 --json | json next)
t "lists come in pages"                  same '[{"id":"page:4","scope":"","seq":'$(stet doc get page:4 --json | json seq)'},{"id":"page:5","scope":"","seq":'$(stet doc get page:5 --json | json seq)'}]' "$(stet doc list --prefix page: --after "$next" --json | json documents)"
t "a cursor that is none"                expect_status 2 stet doc list --after '!'
t "of one scope"                         same 1 "$(stet doc list --scope user:x --json | json documents | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')"
finish
