#!/usr/bin/env bash
# A document that is called like the result of a piece, and is none, is a document like any other: pieces beside it run, and are shown.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >f.json <<'X'
{"pattern":1,"name":"f","argument":{"default":{"x":6}},"nodes":[{"id":"n","inputs":{"a":{"$":"argument/x"},"b":2},"module":{"type":"ref","ref":"divide"}}],"result":{"$":"n"}}
X
t "such a document"                        stet set piece:x '{"a":1}'
t "is no piece in status"                  expect_out "no pieces" stet status
t "a piece runs"                           expect_out "ran 1, up to date 0, failed 0" stet run f.json
t "and stands"                             same '["f"]' "$(stet status --json | python3 -c 'import json,sys; print(json.dumps([p["piece"] for p in json.load(sys.stdin)["pieces"]]))')"
t "so it is told"                          expect_out "f stands" stet why f
t "its list alone is shown"                same '["f"]' "$(stet piece list --json | python3 -c 'import json,sys; print(json.dumps([p["piece"] for p in json.load(sys.stdin)["pieces"]]))')"
t "a value is made fresh"                  stet set piece:f:argument/x 8
t "and read"                               same 4 "$(stet get piece:f --fresh)"
t "on a branch, too"                       stet branch create b
t "where nothing is recorded"              expect_out "failed 0" stet run f.json --branch b
t "gc goes over it"                        stet gc
t "the document is what it was"            same '{"a":1}' "$(stet get piece:x --json | json value)"
finish
