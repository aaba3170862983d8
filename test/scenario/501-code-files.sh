#!/usr/bin/env bash
# A file with code is an input: editing, deleting, restoring and replacing it is seen by every way to run, and old and new code never mix.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >p.json <<'END'
{ "pattern": 1, "name": "p", "argument": { "default": { "a": 1, "list": [1, 2] } },
  "nodes": [
    { "id": "x", "inputs": { "a": {"$": "argument/a"} }, "module": { "type": "javascript", "implementation": { "file": "steps.js", "export": "f" } } },
    { "id": "z", "inputs": { "a": {"$": "argument/a"} }, "module": { "type": "javascript", "implementation": { "file": "./steps.js", "export": "g" } } },
    { "id": "rows", "inputs": { "list": {"$": "argument/list"} }, "module": { "type": "ref", "ref": "map", "pattern": {
        "pattern": 1, "name": "row", "nodes": [ { "id": "one", "inputs": { "n": {"$": "argument/element"} },
          "module": { "type": "javascript", "implementation": { "file": "row.js", "export": "one" } } } ], "result": {"$": "one"} } } },
    { "id": "own", "inputs": { "a": {"$": "argument/a"} }, "module": { "type": "javascript", "implementation": "({a}) => a * 2" } } ],
  "result": { "x": {"$": "x"}, "z": {"$": "z"}, "rows": {"$": "rows"}, "own": {"$": "own"} } }
END
code() { printf 'export const f = ({a}) => a + %s;\nexport const g = ({a}) => a - %s;\n' "$1" "$1" >steps.js; }
row() { echo "export const one = ({n}) => n * $1" >row.js; }
value() { stet piece show p --json | json "result.$1"; }
code 10
row 3

t "it runs"                                  expect_out "ran 6" stet run p.json
t "and stands"                               expect_out "ran 0" stet run p.json
code 20
t "a dry run sees an edit"                   expect_out "file:steps.js" stet run -n p.json
t "as a run does: its two nodes alone"       expect_out "ran 2" stet run p.json
t "with the new code in both"                same "21 -19" "$(value x) $(value z)"
t "and it stands again"                      expect_out "ran 0" stet run p.json
row 5
t "code of children is seen, too"            expect_out "ran 2" stet run p.json
t "in every child"                           same "5 10" "$(value rows.0) $(value rows.1)"
code 30
t "piece pull sees an edit"                  expect_out '"x": 31' stet piece pull p
code 40
t "an edit and another input in one run"     expect_out "ran" stet run p.json --set a=2
t "never mix"                                same "42 -38 4" "$(value x) $(value z) $(value own)"
code 50; code 40
t "an edit that is taken back runs nothing"  expect_out "ran 0" stet run p.json
touch steps.js
t "nor does a touch"                         expect_out "ran 0" stet run p.json
rm steps.js
t "a file that is gone is a failure"         expect_status 1 stet run p.json
stet run p.json >gone.out 2>&1
t "that names it"                            grep -q "steps.js: no such file" gone.out
code 60
t "it is back: the nodes run"                expect_out "ran 2, up to date 4, failed 0" stet run p.json
t "with its code"                            same "62" "$(value x)"
mv steps.js other.js; ln -s other.js steps.js
t "a link to the same code is another file"  expect_out "ran 2" stet run p.json
t "with the same result"                     same "62" "$(value x)"
printf 'export const f = ({a}) => a;\nexport const g = ({a}) => -a;\n' >other.js
t "what the link leads to is the code"       expect_out "ran 2" stet run p.json
rm steps.js; mkdir steps.js
t "a directory is a failure"                 expect_status 1 stet run p.json
rmdir steps.js; echo 'export const f = (' >steps.js
t "text that is no code is one"              expect_status 1 stet run p.json
code 70
t "and is mended by an edit"                 expect_out "failed 0" stet run p.json
t "with the result of the edit"              same "72 -68" "$(value x) $(value z)"

stet branch create b >/dev/null
code 80
t "a branch sees files as they are"          expect_out "failed 0" stet run p.json --branch b
t "with its own result"                      same 82 "$(stet piece show p --branch b --json | json result.x)"
t "and stands"                               expect_out "ran 0" stet run p.json --branch b
t "the default branch sees them, too"        expect_out "ran 2" stet run p.json
t "with the same result"                     same 82 "$(value x)"

stet run p.json --watch >watch.out 2>&1 &
watch=$!
wait_for() { for _ in $(seq 200); do [ "$(value x)" = "$1" ] && return 0; sleep 0.05; done; value x; return 1; }
sleep 0.5
code 90
t "a watch takes an edit up"                 wait_for 92
code 91
t "and the next one, with new code alone"    wait_for 93
t "in both nodes"                            same "-89" "$(value z)"
kill -TERM $watch
wait $watch
finish
