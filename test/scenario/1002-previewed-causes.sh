#!/usr/bin/env bash
# A default that only the result reads is told as changed beside the columns of actions; what only the next run is going to write has no time and no sequence yet.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >p.json <<'END2'
{"pattern":1,"name":"p","argument":{"default":{"n":1,"m":2}},"nodes":[{"id":"x","inputs":[{"$":"argument/n"},1],"module":{"type":"ref","ref":"add"}}],
 "result":{"x":{"$":"x"},"m":{"$":"argument/m"}}}
END2
cp p.json q.json
sed -i 's/"name":"p"/"name":"q"/' q.json
stet run p.json >/dev/null
stet run q.json >/dev/null
row() { stet status | grep "^$1 " | tr -s ' '; }

t "nothing has changed: no column for patterns"        not grep -q PATTERN <(stet status)
sed -i 's/"m":2/"m":3/' p.json
t "a default that only the result reads"               same "p 1 0 0 0 0 changed" "$(row p)"
t "and of another piece nothing is said"               same "q 1 0 0 0 0" "$(row q)"
sed -i 's/"n":1/"n":4/' p.json
t "one that an action reads"                           same "p 0 1 0 0 0 changed" "$(row p)"
t "why says that the pattern has another value"        expect_out "piece:p:argument/n has another value in the pattern now" stet why p x
t "and no sequence"                                    not grep -q "sequence" <(stet why p x)
t "nor has the list of actions one"                    same '{"cell":"piece:p:argument/n","reason":"changed"}' "$(stet action list p --json | json actions.0.cause)"
stet -q set piece:q:argument/n 9
t "what was written has both"                          expect_out "was written at sequence" stet why q x
t "with the sequence in the list"                      not same '{"cell":"piece:q:argument/n","reason":"changed"}' "$(stet action list q --json | json actions.0.cause)"
stet -q run p.json
t "after the run there is nothing to tell"             same "p 1 0 0 0 0" "$(row p)"
finish
