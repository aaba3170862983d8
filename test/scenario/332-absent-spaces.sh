#!/usr/bin/env bash
# A link into a space that does not exist is a read: creating the space outdates its readers, and until then every surface names the space, the node and the input.
. "$STET_SOURCE/test/scenario/lib.sh"

lk() { printf '{"/":{"link@1":{"id":"%s","path":[],"space":"%s"}}}' "$1" "$2"; }
state() { stet action show "$1" "$2" --json "${@:3}" | json state; }
result() { stet piece show "$1" --json "${@:2}" | json result; }
says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -Eq -- "$want"; }

stet -q init
echo '{"pattern":1,"name":"p","nodes":[{"id":"s","inputs":{"value":'"$(lk rates prices)"'},"module":{"type":"ref","ref":"value"}},
 {"id":"j","inputs":{"o":{"deep":'"$(lk rates prices)"'}},"module":{"type":"javascript","implementation":"({o})=>JSON.stringify(o)"}}],"result":{"s":{"$":"s"},"j":{"$":"j"}}}' >p.json
echo '{"pattern":1,"name":"q","nodes":[{"id":"v","inputs":{"value":{"/":{"link@1":{"id":"pointer","path":[]}}}},"module":{"type":"ref","ref":"value"}}],"result":{"v":{"$":"v"}}}' >q.json
t "a run says which space is missing, and for whom"  says 'space "prices" does not exist \(input "value" of node p/s\)' stet run p.json
t "an input below a key is named with its path"      says 'input "o/deep" of node p/j' stet run p.json
t "for programs, too"                                same prices "$(stet run p.json --json 2>/dev/null | json absentSpaces.0.space)"
t "status says it"                                   says 'space "prices" does not exist \(input "value" of node p/s\)' stet status
t "why says it"                                      says 'space "prices" does not exist' stet why p
stet -q set pointer "$(lk rates prices)"
t "a link in a document says so as well"             says 'space "prices" does not exist \(node q/v follows a link there\)' stet run q.json
t "nothing fails because of it"                      same '{"v":null}' "$(result q)"
stet -q branch create dev
stet -q run p.json --branch dev 2>/dev/null
t "other pieces' spaces are not told"                not says 'q/v' stet run p.json

stet -q set rates 5 --space prices
t "the space is created: no reader stands"           same "stale stale stale" "$(state p s) $(state p j) $(state q v)"
t "nor on the branch"                                same stale "$(state p s --branch dev)"
t "why says which"                                   says "a space that did not exist when it ran exists now" stet why p s
t "a pull of a reader runs it"                       same 5 "$(stet get piece:q/v --fresh)"
t "a run runs the others"                            same 2 "$(stet run p.json --json | json ran)"
t "with what the space holds"                        same '{"j":"{\"deep\":5}","s":5}' "$(result p)"
t "on the branch, too"                               same '2 {"j":"{\"deep\":5}","s":5}' "$(stet run p.json --branch dev --json | json ran) $(result p --branch dev)"
t "there is nothing left to warn of"                 not says "does not exist" stet run p.json
t "and nothing to run"                               same 0 "$(stet run p.json --json | json ran)"
stet -q set rates 6 --space prices
t "changes there count from now on"                  same '{"j":"{\"deep\":6}","s":6}' "$(stet -q run p.json; result p)"

rm .stet/local/spaces/prices.db*
t "a space that is gone: its readers run again"      says 'space "prices" does not exist' stet run p.json
t "and read nothing"                                 same '{"j":"{}","s":null}' "$(result p)"
stet -q set rates 7 --space prices
t "and again when it is made anew"                   same '{"j":"{\"deep\":7}","s":7}' "$(stet -q run p.json; result p)"
rm .stet/local/spaces/prices.db*; stet -q set rates 8 --space prices
t "replaced without a run in between: outdated"      not same stands "$(state p s)"
t "and read anew"                                    same '{"j":"{\"deep\":8}","s":8}' "$(stet -q run p.json; result p)"

# A watch sees a space that appears, changes and goes.
rm .stet/local/spaces/prices.db*
stet -q run --watch p.json >watch.out 2>&1 & watch=$!
settle() { for _ in $(seq 300); do [ "$(result p)" = "$1" ] && return 0; sleep 0.05; done; result p; return 1; }
t "a watch reads that it is gone"                    settle '{"j":"{}","s":null}'
stet -q set rates 9 --space prices
t "a watch sees it appear"                           settle '{"j":"{\"deep\":9}","s":9}'
stet -q set rates 10 --space prices
t "and change"                                       settle '{"j":"{\"deep\":10}","s":10}'
rm .stet/local/spaces/prices.db*; stet -q set rates 11 --space prices
t "and replaced"                                     settle '{"j":"{\"deep\":11}","s":11}'
kill $watch; wait $watch 2>/dev/null
finish
