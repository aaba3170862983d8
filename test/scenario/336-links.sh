#!/usr/bin/env bash
# A link that leads nowhere, in a circle or to something else than before is read like any other value: mending it reruns its readers, in a new process each time.
. "$STET_SOURCE/test/scenario/lib.sh"

lk() { printf '{"/":{"link@1":{"id":"%s","path":[%s]}}}' "$1" "${2-}"; }
ran() { stet run "$1" --json 2>/dev/null | json runs; }
result() { stet piece show "$1" --json | json result; }
js() { printf '{"id":"%s","inputs":%s,"module":{"type":"javascript","implementation":"%s"}}' "$@"; }

stet -q init
echo '{"pattern":1,"name":"p","nodes":[
 '"$(js text '{"o":{"k":'"$(lk later)"'}}' '({o}) => JSON.stringify(o)')"',
 '"$(js each '{"o":[1,'"$(lk later)"']}' '({o}) => [...o].map(x => typeof x)')"',
 '"$(js spread '{"d":'"$(lk holder)"'}' '({d}) => ({...d})')"'],
 "result":{"text":{"$":"text"},"each":{"$":"each"},"spread":{"$":"spread"}}}' >p.json
stet -q set holder '{"x":'"$(lk later)"'}'
t "a missing document is no failure"             same 3 "$(ran p.json)"
t "and reads as nothing"                         same '{"each":["number","undefined"],"spread":{},"text":"{}"}' "$(result p)"
stet -q set later 5
t "it is created: all that met the link run"     same 3 "$(ran p.json)"
t "with what is there"                           same '{"each":["number","number"],"spread":{"x":5},"text":"{\"k\":5}"}' "$(result p)"
stet -q doc delete later
t "and when it goes"                             same 3 "$(ran p.json)"
t "as if it had never been"                      same '{"each":["number","undefined"],"spread":{},"text":"{}"}' "$(result p)"

echo '{"pattern":1,"name":"e","nodes":[
 {"id":"get","inputs":{"value":'"$(lk e)"',"path":"/q","default":"none"},"module":{"type":"ref","ref":"get"}},
 '"$(js in '{"e":'"$(lk e)"'}' "({e}) => 'q' in e")"'],"result":{"get":{"$":"get"},"in":{"$":"in"}}}' >e.json
stet -q set d '{"q":5}'; stet -q set e '{"x":1}'
t "a key that is not there"                      same 2 "$(ran e.json)"
stet -q set e "$(lk d)"
t "the object becomes a link: readers run"       same 2 "$(ran e.json)"
t "and find the key behind it"                   same '{"get":5,"in":true}' "$(result e)"
stet -q set e '{"x":1}'
t "and back"                                     same '2 {"get":"none","in":false}' "$(ran e.json) $(result e)"

echo '{"pattern":1,"name":"c","nodes":['"$(js s '{"v":'"$(lk round)"'}' '({v}) => v')"'],"result":{"s":{"$":"s"}}}' >c.json
stet -q set round "$(lk round)"
t "links in a circle fail their reader"          expect_status 1 stet run c.json
stet -q set round 7
t "which runs when the circle is broken"         same '1 {"s":7}' "$(ran c.json) $(result c)"

echo "export default pattern('g',{rows:[]},({rows})=>{const out=map(rows,e=>({c:computed({m:e.m},({m})=>m)}),{key:'id'});
 return {z:computed({out},({out})=>JSON.stringify(out))}})" >g.js
t "a reader of an empty list"                    same '2 {"z":"[]"}' "$(ran g.js) $(result g)"
stet -q set piece:g:argument/rows '[{"id":"a","m":5}]'
t "runs once, after the first child"             same '3 {"z":"[{\"c\":5}]"}' "$(ran g.js) $(result g)"
t "and stands then"                              same 0 "$(ran g.js)"
finish
