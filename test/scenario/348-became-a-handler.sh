#!/usr/bin/env bash
# A computation becomes an event handler of the same name: nothing is left of its record, and its readers are up to date again.
. "$STET_SOURCE/test/scenario/lib.sh"

stet -q init
echo '{"pattern":1,"name":"p","argument":{"default":{"x":1}},"nodes":[{"id":"n","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"n"}}' > p.json
echo '{"pattern":1,"name":"q","nodes":[{"id":"r","inputs":{"value":{"/":{"link@1":{"id":"piece:p:node:n"}}}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"r"}}' > q.json
stet -q run p.json; stet -q run q.json
t "the reader has the value"                    same 1 "$(stet get piece:q)"
echo '{"pattern":1,"name":"p","argument":{"default":{"x":1}},"nodes":[{"id":"n","stream":{"$":"n"},"inputs":{"a":{"$":"argument","asCell":true}},"module":{"type":"javascript","handler":true,"implementation":"(e, {a}) => { a.key(\"x\").set(e) }"}}],"result":{"s":{"$":"n"}}}' > p.json
t "a changed node is no node that is gone"      expect_out "1 changed, 0 gone" stet run p.json
stet -q run q.json
t "the reader has the stream of the handler"        expect_out '$stream' stet get piece:q --fresh
t "and stands"                                  same 1 "$(stet status q --json | json pieces.0.stands)"
t "and there is nothing more to run"            expect_out "0 actions do not stand" stet run q.json --dry-run
t "no record is left of the computation"        same 0 "$(stet status p --json | json pieces.0.dirty)"
finish
