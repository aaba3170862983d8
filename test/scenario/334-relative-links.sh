#!/usr/bin/env bash
# A link that names no space leads to the space that it lies in, whichever space reads it: chains, circles, nothing at the end, lists, cells.
. "$STET_SOURCE/test/scenario/lib.sh"

lk() { printf '{"/":{"link@1":{"id":"%s"%s%s}}}' "$1" "${2:+,\"space\":\"$2\"}" "${3:-}"; }
result() { stet piece show "$1" --json "${@:2}" | json result; }
says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -Eq -- "$want"; }

# d exists everywhere: who reads the wrong space gets another number, and no error.
stet -q init
for at in 1:main 2:two 3:three; do stet -q set d "${at%%:*}" --space "${at#*:}"; done
stet -q set near "$(lk d)" --space two
stet -q set over "$(lk back three)" --space two
stet -q set back "$(lk d)" --space three
stet -q set home "$(lk own main)" --space three
stet -q set own "$(lk d)"
stet -q set list "[$(lk d),{\"x\":$(lk near)},$(lk nothing)]" --space two
stet -q set cells "{\"c\":$(lk d '' ',"asCell":true')}" --space two
stet -q set ring "$(lk ring2 three)" --space two
stet -q set ring2 "$(lk ring3)" --space three
stet -q set ring3 "$(lk ring two)" --space three
cat >p.json <<END
{"pattern":1,"name":"p","nodes":[
 {"id":"near","inputs":{"value":$(lk near two)},"module":{"type":"ref","ref":"value"}},
 {"id":"over","inputs":{"value":$(lk over two)},"module":{"type":"ref","ref":"value"}},
 {"id":"home","inputs":{"value":$(lk home three)},"module":{"type":"ref","ref":"value"}},
 {"id":"list","inputs":{"value":$(lk list two)},"module":{"type":"ref","ref":"value"}},
 {"id":"each","inputs":{"list":$(lk list two)},"module":{"type":"ref","ref":"map","pattern":{"pattern":1,"name":"c","nodes":[{"id":"n","inputs":{"v":{"\$":"argument/element"}},"module":{"type":"javascript","implementation":"({v}) => JSON.stringify(v ?? null)"}}],"result":{"\$":"n"}}}},
 {"id":"seen","inputs":{"l":$(lk list two)},"module":{"type":"javascript","implementation":"({l}) => l[0] + ':' + l[1].x + ':' + [...l].length + ':' + JSON.stringify(l)"}}],
 "result":{"near":{"\$":"near"},"over":{"\$":"over"},"home":{"\$":"home"},"list":{"\$":"list"},"seen":{"\$":"seen"},"each":{"\$":"each"}}}
END
echo '{"pattern":1,"name":"r","nodes":[{"id":"v","inputs":{"value":'"$(lk ring two)"'},"module":{"type":"ref","ref":"value"}}],"result":{"v":{"$":"v"}}}' >r.json
echo '{"pattern":1,"name":"k","nodes":[{"id":"n","inputs":{"value":'"$(lk cells two)"'},"module":{"type":"ref","ref":"value"}}],"result":{"n":{"$":"n"}}}' >k.json
t "a pattern with such links runs"                   stet -q run p.json
t "in the space of the link, over three spaces too"  same '{"each":["2","{\"x\":2}","null"],"home":1,"list":[2,{"x":2},null],"near":2,"over":3,"seen":"2:2:3:[2,{\"x\":2},null]"}' "$(result p)"
t "a cell that is handed on names its space"         same two "$(stet -q run k.json; stet get piece:k:node:n --json | json value.c./.link@1.space)"
t "a circle over spaces is an error, not an answer"  says 'links lead in a circle' stet run r.json

stet -q set d 10
t "what was not read outdates nobody"                same 1 "$(stet run p.json --json | json ran)"
stet -q set d 20 --space two
stet -q set d 30 --space three
stet -q set nothing 40 --space two
t "what was read does"                               stet -q run p.json
t "whatever lay at the end, also what was not there" same '{"each":["20","{\"x\":20}","40"],"home":10,"list":[20,{"x":20},40],"near":20,"over":30,"seen":"20:20:3:[20,{\"x\":20},40]"}' "$(result p)"
t "all of it is up to date then"                     same 0 "$(stet run p.json --json | json ran)"
stet -q set ring3 7 --space three
t "a circle that is opened lets its reader run"      same '{"v":7}' "$(stet -q run r.json; result r)"

# The result of a piece is made of such links.
echo '{"pattern":1,"name":"s","argument":{"default":{"x":5}},"nodes":[{"id":"n","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"value"}}],"result":{"n":{"$":"n"}}}' >s.json
echo '{"pattern":1,"name":"u","nodes":[{"id":"n","inputs":{"value":'"$(lk piece:s two)"'},"module":{"type":"ref","ref":"value"}}],"result":{"n":{"$":"n"}}}' >u.json
stet -q run s.json
stet -q run s.json --space two --set x=6
t "a piece's result is read where the piece is"      same '{"n":{"n":6}}' "$(stet -q run u.json; result u)"
stet -q set piece:s:argument/x 8 --space two
t "and pulled there"                                 same 8 "$(stet get piece:u:node:n/n --fresh)"
t "the one of the same name here is left alone"      same '{"n":5}' "$(result s)"

# A result may lead on through documents and results of other pieces, here and elsewhere: a pull makes fresh what it leads to.
echo '{"pattern":1,"name":"q","argument":{"default":{"x":1}},"nodes":[{"id":"n","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"value"}}],"result":{"n":{"$":"n"},"far":'"$(lk piece:s two)"',"own":'"$(lk to)"',"back":'"$(lk to two)"'}}' >q.json
stet -q set to "$(lk piece:s)"
stet -q set to "$(lk piece:s)" --space two
t "a result that leads on"                           same '{"back":{"n":8},"far":{"n":8},"n":1,"own":{"n":5}}' "$(stet -q run q.json; result q)"
stet -q set piece:s:argument/x 9 --space two
t "a pull runs what it leads to in another space"    same '{"back":{"n":9},"far":{"n":9},"n":1,"own":{"n":5}}' "$(stet piece pull q --json | json result)"
stet -q set piece:s:argument/x 10
t "and here"                                         same '{"back":{"n":9},"far":{"n":9},"n":1,"own":{"n":10}}' "$(stet piece pull q --json | json result)"
stet -q set piece:s:argument/x 11
stet -q set piece:s:argument/x 12 --space two
t "so does a run"                                    same '{"back":{"n":12},"far":{"n":12},"n":1,"own":{"n":11}}' "$(stet run q.json --json | json result)"
stet -q set to "$(lk piece:u)"
stet -q set piece:s:argument/x 13 --space two
t "also after the document leads elsewhere"          same '{"n":{"n":13}}' "$(stet piece pull q --json | json result.own)"
t "what stands is right"                             stet -q check --rerun all
finish
