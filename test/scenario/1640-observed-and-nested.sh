#!/usr/bin/env bash
# What the central property found: a failed action that writes to a cell ran with every run, and `stet check` complained about children of a pattern that
# nothing wants any more.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null

# Two nodes write to one cell. One waits for a failure; the other one would fail, and waits since what it writes is not known to be its own.
cat >p.json <<'X'
{"pattern":1,"name":"p","argument":{"default":{"list":null,"x":null}},"cells":{"m":{"default":{}}},
 "nodes":[
  {"id":"n1","module":{"type":"ref","ref":"sort"},"inputs":{"value":{"$":"argument/list"}}},
  {"id":"n2","materializerWriteInputPaths":["m"],"module":{"type":"javascript","implementation":"({x, m}) => { m.key('w2').set(x) }"},
   "inputs":{"x":{"$":"n1"},"m":{"$":"m","asCell":true}}},
  {"id":"n3","resultSchema":{"type":"object"},"materializerWriteInputPaths":["m"],"module":{"type":"javascript","implementation":"({x, m}) => { m.key('w3').set(1) }"},
   "inputs":{"x":{"$":"argument/x"},"m":{"$":"m","asCell":true}}}],
 "result":{"n2":{"$":"n2"}}}
X
t "one fails, two wait"                          expect_status 1 stet run p.json
observe() { stet branch create b && stet run p.json --branch b --observe-only; }
again() { stet run p.json --branch b --no-retry-failed | grep "$1"; }
t "on a branch, what they read is looked at"  observe
t "there, one fails as well"                  expect_status 1 stet run p.json --branch b
t "the failures are not repeated"             again 'ran 0, up to date 0, failed 1'
t "nor the next time"                         again 'ran 0, up to date 0, failed 1'
stet set piece:p:argument/list '[2, 1]' --branch b >/dev/null
t "one runs again when its cause is gone"     again 'ran 3, up to date 0, failed 1'

# Nested children, by position at first and by a key later, while nothing wants them.
nested() { # module of the inner node, whether it is wanted
    cat >n.json <<X
{"pattern":1,"name":"n","argument":{"default":{"rows":[{"id":4,"m":["a","a"]},{"id":5,"m":[1,{"n":2}]}],"none":null}},
 "nodes":[{"id":"outer","module":{"type":"ref","ref":"map"$1},"inputs":{"list":{"\$":"argument/$2"}}}],
 "result":$3}
X
}
inner='{"pattern":1,"name":"d","nodes":[{"id":"v","module":{"type":"ref","ref":"value"},"inputs":{"value":{"$":"argument/element"}}}],"result":{"$":"v"}}'
outer() { printf '{"pattern":1,"name":"c","nodes":[{"id":"c0","module":{"type":"ref","ref":"%s","pattern":%s},"inputs":{"list":{"$":"argument/element/m"}%s}}],"result":{"$":"c0"}}' "$1" "$inner" "$2"; }
nested ",\"pattern\":$(outer reduce ',"initial":[]')" rows '{"outer":{"$":"outer"}}'
t "a reduce in a map runs"                    stet run n.json
nested ",\"pattern\":$(outer reduce ',"initial":[]')" rows '{}'
t "nothing wants it"                          stet run n.json
nested ",\"key\":\"id\",\"pattern\":$(outer map '')" none '{}'
t "it becomes a map in a map"                 stet run n.json
t "what is left of it is no problem"          stet check
nested ",\"key\":\"id\",\"pattern\":$(outer map '')" rows '{"outer":{"$":"outer"}}'
t "wanted again, it is right"                 expect_out '{"outer":[["a","a"],[1,{"n":2}]]}' stet run n.json --json
t "and all is well"                           stet check
finish
