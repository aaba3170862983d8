#!/usr/bin/env bash
# The result of a piece links to what another piece makes, without an action that reads it: if that is out of date, so is the result, and status, why and a dry run say so.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
echo '{"pattern":1,"name":"r","argument":{"default":{"x":1}},"nodes":[{"id":"a","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"sqrt"}}],"result":{"a":{"$":"a"}}}' >r.json
echo '{"pattern":1,"name":"q","nodes":[{"id":"n","inputs":[1,1],"module":{"type":"ref","ref":"sum"}}],"result":{"n":{"$":"n"},"l":{"/":{"link@1":{"id":"piece:r","path":["a"]}}}}}' >q.json
t "both run"                           stet run r.json -q
t "both run"                           stet run q.json -q
t "all is well"                        expect_out 'q stands' stet why q
stet set piece:r:argument/x 25 -q
t "status says so"                     expect_out 'q: its result is out of date: it links to r/a (dirty)' stet status q
t "status --json says so"              same '[{"node":"a","piece":"r","state":"dirty"}]' "$(stet status q --json | python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin)["pieces"][0]["leadsTo"],separators=(",",":"),sort_keys=True))')"
t "why says so"                        expect_out 'it links to r/a (dirty)' stet why q
t "a dry run says so"                  expect_out 'r/a: dirty, linked' stet run q.json -n
t "run makes it fresh"                 expect_out 'ran 1' stet run q.json
t "with the right value"               same 5 "$(stet get piece:q/l)"
t "all is well again"                  expect_out 'q stands' stet why q
t "nothing is left to do"              expect_out '0 actions do not stand' stet run q.json -n
stet set -q piece:r:argument/x -- -1
t "a failure is one"                   expect_status 1 stet run q.json -q
t "which status tells"                 expect_out 'it links to r/a (failed)' stet status q
stet set piece:r:argument/x 36 -q
t "mended"                             stet run q.json -q
stet branch create side -q
t "on a fork nothing is known of it"   expect_out 'r/a (unknown)' stet status q --branch side
# Over spaces
sed 's/"name":"q"/"name":"far"/; s/"id":"piece:r"/"id":"piece:r","space":"main"/' q.json >far.json
t "from another space"                 stet run far.json --space other -q
stet set piece:r:argument/x 49 -q
t "status says so there"               expect_out 'r/a in space main (dirty)' stet status far --space other
t "run makes it fresh"                 stet run far.json --space other -q
t "with the right value"               same 7 "$(stet get piece:far/l --space other)"
t "check"                              stet check
t "check --rerun"                      stet check --rerun all
finish
