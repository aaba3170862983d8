#!/usr/bin/env bash
# Failures in a space that is read: they are tried once in a run, and told once, whatever they rest on.
. "$STET_SOURCE/test/scenario/lib.sh"

total() { case $("${@:2}" | tail -1) in "ran $1,"*) ;; *) return 1 ;; esac } # actions that ran, in all spaces

stet init >/dev/null
cat >m.json <<'X'
{"pattern":1,"name":"m","argument":{"default":{"l":[1,2]}},"nodes":[{"id":"f","inputs":{"list":{"$":"argument/l"}},"module":{"type":"ref","ref":"filter","pattern":{"pattern":1,"name":"c","nodes":[
  {"id":"n","inputs":{"x":{"$":"argument/element"}},"module":{"type":"javascript","implementation":"({x})=>x"}}],"result":{"$":"n"}}}}],"result":{"f":{"$":"f"}}}
X
cat >n.json <<'X'
{"pattern":1,"name":"n","nodes":[{"id":"f","inputs":{"x":{"/":{"link@1":{"id":"piece:m:node:f","space":"main"}}}},"module":{"type":"javascript","implementation":"({x})=>x"}}],"result":{"f":{"$":"f"}}}
X
missing() { STET_PLUGINS=/nonexistent stet "$@"; }
t "children fail, since the plug-in is missing"     expect_status 1 missing run m.json
t "so does a reader in another space"               expect_status 1 missing run n.json --space other
t "the children are tried once, and it waits"        total 2 missing run n.json --space other
t "with the plug-in all of it is made"              expect_out "failed 0" stet run n.json --space other
t "and is right"                                    same '[1,2]' "$(stet get piece:n/f --space other --json | json value)"

cat >a.json <<'X'
{"pattern":1,"name":"a","nodes":[
 {"id":"bad","inputs":{"a":1,"b":0},"module":{"type":"ref","ref":"divide"}},
 {"id":"waits","inputs":{"value":{"$":"bad"}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"waits"}}
X
reader() { # reader NAME CODE [MORE]
    cat >"$1.json" <<X
{"pattern":1,"name":"$1","nodes":[
 {"id":"r","inputs":{"x":{"/":{"link@1":{"id":"piece:a:node:waits","space":"main"}}}},${3-}"module":{"type":"javascript","implementation":"$2"}}],"result":{"\$":"r"}}
X
}
reader b "()=>'no pattern'" '"returns":"pattern",'
reader c "()=>{ throw new Error('always') }"
reader d "({x})=>{ if (x !== 7) throw new Error('not yet') }"
t "one fails and one waits for it"                  expect_status 1 stet run a.json
for p in b c; do
    t "$p fails before it reads what waits"         expect_status 1 stet run $p.json --space other
    t "$p waits then, and what failed runs once"    total 1 stet run $p.json --space other
    t "what failed is told once"                    same 1 "$(stet run $p.json --space other | grep -c "^failed a/bad")"
    t "and runs no more if that is not wanted"      total 0 stet run $p.json --space other --no-retry-failed
done
t "one that reads it waits"                         same "ran 1, up to date 0, failed 1, left 1 (1 wait for what failed)" "$(stet run d.json --space other | tail -1 | sed 's/ in .*//')"
sed -i 's/"b":0/"b":1/' a.json

cat >bad.json <<'X'
{"pattern":1,"name":"bad","nodes":[{"id":"bad","inputs":{"a":6,"b":0},"module":{"type":"ref","ref":"divide"}}],"result":{"$":"bad"}}
X
cat >q.json <<'X'
{"pattern":1,"name":"q","argument":{"default":{"c":0}},"nodes":[{"id":"n","inputs":{"condition":{"$":"argument/c"},"then":5,"else":{"/":{"link@1":{"id":"piece:bad:node:bad","space":"main"}}}},"module":{"type":"ref","ref":"ifElse"}}],"result":{"n":{"$":"n"}}}
X
switch() { stet set piece:q:argument/c "$1" --space other; }
t "one fails in the other space"                    expect_status 1 stet run bad.json
t "one that reads what fails waits"                 expect_status 1 stet run q.json --space other
switch 1 >/dev/null
t "it reads something else now: nothing fails"      expect_out "failed 0" stet run q.json --space other
switch 0 >/dev/null
t "back again it waits"                             expect_status 1 stet run q.json --space other
switch 1 >/dev/null
t "a value that needs no failed one is fresh"       same 5 "$(stet get piece:q/n --fresh --space other)"
switch 0 >/dev/null
t "it waits"                                        expect_status 1 stet run q.json --space other
t "and runs"                                        expect_status 1 stet run bad.json
switch 1 >/dev/null
t "failures before are told if they are needed"     expect_out "failed 0" stet run q.json --space other --no-retry-failed

cat >ring.json <<'X'
{"pattern":1,"name":"ring","nodes":[
 {"id":"up","inputs":{"n":{"$":"wind"}},"module":{"type":"javascript","implementation":"({n})=>(n||0)+1"}},
 {"id":"wind","inputs":{"n":{"$":"up"}},"module":{"type":"javascript","implementation":"({n})=>n+1"}}],"result":{"$":"up"}}
X
cat >e.json <<'X'
{"pattern":1,"name":"e","nodes":[{"id":"r","inputs":{"value":{"/":{"link@1":{"id":"piece:ring:node:up","space":"main"}}}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"r"}}
X
t "one that does not come to rest"                  expect_status 1 stet run ring.json
stet run e.json --space other >out
t "is given up once by a run that reads it"         same 1 "$(grep -c '^aside  ring/' out)"
t "and counted once"                                expect_out "put aside 1 in" cat out
stet piece delete ring >/dev/null
stet piece delete bad >/dev/null
finish
