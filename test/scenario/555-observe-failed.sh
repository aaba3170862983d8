#!/usr/bin/env bash
# To observe an action that failed does not make it up to date.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
echo '{"pattern":1,"name":"a","argument":{"default":{"x":4}},"nodes":[{"id":"n","inputs":[{"$":"argument/x"}],"module":{"type":"ref","ref":"sqrt"}},{"id":"r","inputs":[{"$":"n"},100],"module":{"type":"ref","ref":"add"}}],"result":{"$":"r"}}' >a.json
stet -q run a.json
t "it fails"                       expect_status 1 stet run a.json --set x=-1
stet run a.json --observe-only >/dev/null 2>&1
t "it is not up to date then"      same "unknown stale" "$(stet action list a --json | json actions.0.state) $(stet action list a --json | json actions.1.state)"
t "no value is called fresh"       expect_status 1 stet get piece:a --fresh
t "and a run runs it"              expect_status 1 stet run a.json
t "until it succeeds"              same 103 "$(stet -q run a.json --set x=9; stet get piece:a --fresh)"
t "check finds nothing"            expect_status 0 stet check --rerun all
finish
