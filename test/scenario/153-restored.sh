#!/usr/bin/env bash
# A space is put back from a backup, beside newer files and newer other spaces: nothing that rests on those is called up to date.
. "$STET_SOURCE/test/scenario/lib.sh"

spaces=.stet/local/spaces
state() { stet action show "$1" "$2" --json | json state; }
back_up() { rm -rf backup; mkdir backup; cp $spaces/"$1".db* backup; } # nothing runs: a cold copy
put_back() { rm $spaces/"$1".db*; cp backup/* $spaces/; }
link='{"/":{"link@1":{"id":"d","space":"other"}}}'

stet -q init
stet -q set d 1 --space other
echo '{"pattern":1,"name":"p","nodes":[{"id":"a","inputs":{"value":'"$link"'},"module":{"type":"ref","ref":"value"}}],"result":{"$":"a"}}' > p.json
stet -q run p.json
back_up main
stet -q set d 2 --space other
t "a change in another space marks its reader"          same dirty "$(state p a)"
put_back main
t "the mark is lost with the newer space"               same 2 "$(stet get d --space other)"
t "and nothing is called up to date"                    same 0 "$(stet status p --json | json pieces.0.stands)"
t "a pull gives the new value"                          same 2 "$(stet get piece:p --fresh)"
t "and then it stands"                                  same stands "$(state p a)"

stet -q set e 5 --space other
t "a change that the reader has not read marks nobody"  same stands "$(state p a)"
back_up main
echo '{"pattern":1,"name":"q","nodes":[{"id":"b","inputs":{"value":'"$link"'},"module":{"type":"ref","ref":"negate"}}],"result":{"$":"b"}}' > q.json
stet -q run q.json; stet -q set d 3 --space other
put_back main
stet -q run q.json
t "another action of the older copy runs first"         same -3 "$(stet get piece:q)"
t "that hides nothing"                                  same 3 "$(stet get piece:p --fresh)"

echo 'export default () => 1' > c.js
echo '{"pattern":1,"name":"f","nodes":[{"id":"a","inputs":{"x":1},"module":{"type":"javascript","implementation":{"file":"c.js"}}}],"result":{"$":"a"}}' > f.json
stet -q run f.json
back_up main
echo 'export default () => 2' > c.js
stet -q run f.json
put_back main
t "a space older than what is known of files: dirty"    same dirty "$(state f a)"
t "status says so"                                      same 1 "$(stet status f --json | json pieces.0.dirty)"
t "a look runs nothing"                                 same 1 "$(stet get piece:f)"
stet -q run f.json
t "and a run does"                                      same 2 "$(stet get piece:f)"
finish
