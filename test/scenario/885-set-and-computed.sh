#!/usr/bin/env bash
# What was set by hand in a cell comes back when the computation that wrote over it no longer writes there: after the node is removed or renamed, on a fork, after the scheduler's tables are emptied; for outputs, children, handlers, the argument, and through links.
. "$STET_SOURCE/test/scenario/lib.sh"

# cells CELLS NODES: a pattern whose result is the cell c.
cells() { echo '{"pattern":1,"name":"f","argument":{"default":{"x":7,"on":true,"o":{}}},"cells":{'"$1"'},"nodes":['"$2"'],"result":{"c":{"$":"c"},"all":[{"$":"argument/on"}'"${3-}"']}}' >f.json; }
w() { echo '{"id":"'"$1"'","inputs":{"x":{"$":"argument/x"},"on":{"$":"argument/on"},"c":{"$":"'"${3-c}"'","asCell":true}},"module":{"type":"javascript","implementation":"({x, on, c}) => { '"$2"' return 1 }"}}'; }
is() { test "$(stet get piece:f/c --fresh --json "${@:2}" | json value)" = "$1" || { stet get piece:f/c "${@:2}"; return 1; }; }
new() { rm -rf .stet; stet -q init; }
run() { stet -q run f.json "$@"; }
one=',{"$":"w"}'

new
cells '"c":{"default":{"z":1}}' "$(w w 'c.key(\"a\").set(x);')" "$one"
run
stet -q set piece:f:cell:c/hand 5
run
t "both are in the cell"                                        is '{"a":7,"hand":5,"z":1}'
stet -q branch create b
cells '"c":{"default":{"z":1}}' ''
run --branch b
t "on a fork, where nothing is recorded, a removed node takes what it wrote with it"  is '{"hand":5,"z":1}' --branch b
cells '"c":{"default":{"z":1}}' "$(w v 'c.key(\"b\").set(x);')" ',{"$":"v"}'
run
t "a renamed one, too"                                          is '{"b":7,"hand":5,"z":1}'
sqlite() { python3 -c 'import sqlite3; d = sqlite3.connect(".stet/local/spaces/main.db"); [d.execute(f"DELETE FROM {t}") for t in ("action", "mark", "place_index")]; d.commit()'; }
sqlite
cells '"c":{"default":{"z":1}}' "$(w v 'if (on) c.key(\"q\").set(x);')" ',{"$":"v"}'
run
t "and one whose record is gone"                                is '{"hand":5,"q":7,"z":1}'
sqlite
run --set on=false
t "which writes nothing now"                                    is '{"hand":5,"z":1}'
run --unset cell:c
t "without what was set, the default is left"                   is '{"z":1}'

new
cells '"c":{"default":0}' "$(w w 'if (on) c.set(x);')" "$one"
run --set on=false
stet -q set piece:f:cell:c 42
run --set on=true
t "a computation hides what was set"                            is 7
t "and does not end the override"                               expect_out '"overridden":["cell:c","on"]' bash -c "'$STET' status f --json | sed 's/\"on\",\"cell:c\"/\"cell:c\",\"on\"/'"
run --set on=false
t "which is seen again afterwards"                              is 42
stet -q set piece:f:cell:c 43
run --set on=true
stet -q set piece:f:cell:c 44
t "what is set over it is restored"                             is 7
cells '"c":{"default":0}' ''
run
t "and is there without the node"                               is 44

new
cells '"c":{"default":{"m":1}}' '{"id":"n","inputs":[{"$":"argument/x"},1],"output":{"$":"c/out"},"module":{"type":"ref","ref":"sum"}}'
run
stet -q set piece:f:cell:c/out 3
stet -q set piece:f:cell:c/hand 4
run
t "the output of a node is a part of a cell"                    is '{"hand":4,"m":1,"out":8}'
cells '"c":{"default":{"m":2}}' ''
run
t "without the node it is what was set there"                   is '{"hand":4,"m":1,"out":3}'
cells '"c":{"default":9}' '{"id":"n","inputs":[{"$":"argument/x"},1],"output":{"$":"c"},"module":{"type":"ref","ref":"sum"}}'
run --unset cell:c
t "or all of it"                                                is 8
stet -q set piece:f:cell:c 6
run
t "which the node restores"                                     is 8
cells '"c":{"default":9}' ''
run
t "and what was set comes back"                                 is 6

new
cells '"c":{"default":{}}' "$(w w 'c.key(\"a\").set(x);'),"'{"id":"h","stream":{"$":"h"},"inputs":{"c":{"$":"c","asCell":true}},"module":{"type":"javascript","handler":true,"implementation":"(e, {c}) => { c.key(\"h\").set(e) }"}}' "$one"
run
stet -q piece send f h 2
t "a handler sets, too"                                         is '{"a":7,"h":2}'
cells '"c":{"default":{}}' ''
run
t "and what it set stays"                                       is '{"h":2}'

new
cells '"c":{"default":{"k":1}},"way":{"default":{"/":{"link@1":{"id":"piece:f:cell:c"}}}}' "$(w w 'c.set({l: x});' way)" "$one"
run
t "a computation writes through a link"                         is '{"l":7}'
t "which is not an override"                                    expect_out '"overridden":[]' stet status f --json
cells '"c":{"default":{"k":2}}' ''
run
t "so the cell follows its default without it"                  is '{"k":2}'

new
echo '{"pattern":1,"name":"f","argument":{"default":{"c":{"z":1},"x":7}},"nodes":[{"id":"w","inputs":{"x":{"$":"argument/x"},"c":{"$":"argument/c","asCell":true}},"module":{"type":"javascript","implementation":"({x, c}) => { c.key(\"a\").set(x) }"}}],"result":{"c":{"$":"argument/c"},"w":{"$":"w"}}}' >f.json
run
stet -q set piece:f:argument/c/hand 5
run
t "a key of the argument is like a cell"                        is '{"a":7,"hand":5,"z":1}'
echo '{"pattern":1,"name":"f","argument":{"default":{"c":{"z":1},"x":7}},"nodes":[],"result":{"c":{"$":"argument/c"}}}' >f.json
run
t "and keeps what was set alone"                                is '{"hand":5,"z":1}'

new
kids() { echo '{"pattern":1,"name":"f","cells":{"c":{"default":{}}},"nodes":[{"id":"m","inputs":{"list":'"$2"',"c":{"$":"c","asCell":true}},"module":{"type":"ref","ref":"map","key":"id","pattern":{"pattern":1,"name":"k","cells":{"z":{"default":'"$3"'}},"nodes":[{"id":"w","inputs":{"id":{"$":"argument/element/id"},"z":{"$":"z","asCell":true},"c":{"$":"argument/c","asCell":true}},"materializerWriteInputPaths":["z","c"],"module":{"type":"javascript","implementation":"({id, z, c}) => { '"$1"' return 1 }"}},{"id":"q","inputs":{"value":{"$":"z"}},"module":{"type":"ref","ref":"value"}}],"result":{"q":{"$":"q"},"w":{"$":"w"}}}}}],"result":{"c":{"$":"c"},"m":{"$":"m"}}}' >f.json; }
kids 'z.key(\"a\").set(1); c.key(id).set(1);' '[{"id":"p"},{"id":"q"}]' '{"y":1}'
run
stet -q set 'piece:f:cell:m[p].z/hand' 5
stet -q set piece:f:cell:c/hand 5
run
kids 'c.key(id).set(1);' '[{"id":"p"}]' '{"y":2}'
stet -q branch create b
run --branch b
kids 'z.key(\"a\").set(1); c.key(id).set(1);' '[{"id":"p"}]' '{"y":2}'
run --branch b
stet -q branch create d --from b
kids 'z.key(\"b\").set(1);' '[{"id":"p"}]' '{"y":2}'
run --branch d
t "on a fork of a fork, too, where a child has no record"       same '{"b":1,"hand":5,"y":1}' "$(stet get 'piece:f:cell:m[p].z' --json --branch d | json value)"
kids 'c.key(id).set(1);' '[{"id":"p"}]' '{"y":2}'
run --branch b
t "a child that is gone leaves what was set around it"          is '{"hand":5,"p":1}' --branch b
t "and one that writes less, what was set in it"                same '{"hand":5,"y":1}' "$(stet get 'piece:f:cell:m[p].z' --json --branch b | json value)"
finish
