#!/usr/bin/env bash
# What computations write through cells is what a first run would write, whatever ran before: on forks, after edits by hand, of inputs and of patterns, in children, and after runs without records.
. "$STET_SOURCE/test/scenario/lib.sh"

# writer CODE DEFAULT [NODES]: the node "w" runs CODE with the cell c; "r" reads the cell.
writer() {
    echo '{"pattern":1,"name":"f","argument":{"default":{"x":7,"k":"a","on":true}},"cells":{"c":{"default":'"$2"'}},"nodes":[
{"id":"w","inputs":{"x":{"$":"argument/x"},"k":{"$":"argument/k"},"on":{"$":"argument/on"},"c":{"$":"c","asCell":true}},"module":{"type":"javascript","implementation":"({x,k,on,c}) => { '"$1"' return 1 }"},"materializerWriteInputPaths":["c"]},
{"id":"r","inputs":{"value":{"$":"c"}},"module":{"type":"ref","ref":"value"}}'"${3-}"'],"result":{"r":{"$":"r"},"w":{"$":"w"}}}' >f.json
}
is() { test "$(stet get piece:f/r --fresh --json "${@:2}" | json value)" = "$1" || { stet get piece:f/r "${@:2}"; return 1; }; }
new() { rm -rf .stet; stet -q init; }

new
writer 'c.set(x);' 0
stet -q run f.json
stet -q branch create b
stet -q run f.json --branch b
stet -q set piece:f:cell:c 99 --branch b
t "a writer that changed nothing on a fork restores its cell"   is 7 --branch b
writer 'c.set(x);' 0 ',{"id":"other","inputs":[1],"module":{"type":"ref","ref":"sum"}}'
stet -q run f.json --branch b
t "and writes it again when the pattern has changed"            is 7 --branch b
t "what was set is below it still"                              expect_out '"overridden":["cell:c"]' stet status f --branch b --json
stet -q run f.json --branch b --unset cell:c
t "and can be taken back"                                       expect_out '"overridden":[]' stet status f --branch b --json
t "which changes nothing where the computation writes"          is 7 --branch b

new
writer 'c.set(x);' 7
stet -q run f.json
stet -q set piece:f:cell:c 99
t "so does one whose first value was the default"               is 7
writer 'c.set(x);' 8
stet -q run f.json
t "also when the default changes"                               is 7

new
writer 'c.set({a:x,b:2});' '{}'
stet -q run f.json
stet -q set piece:f:cell:c/extra 1
t "a place that was set is owned whole"                         is '{"a":7,"b":2}'

new
writer 'c.key(k).set(x);' '{"z":1}'
stet -q run f.json
stet -q run f.json --set 'k="b"'
t "a place that is no longer written is taken back"             is '{"b":7,"z":1}'
stet -q run f.json --set 'k="z"'
stet -q run f.json --set 'k="b"'
t "to its default"                                              is '{"b":7,"z":1}'
stet -q branch create d
stet -q run f.json --branch d --set 'k="q"'
t "on a fork as well, where nothing is recorded yet"            is '{"q":7,"z":1}' --branch d
writer 'if (on) c.key(\"m\").key(k).set(x);' '{"z":1}'
stet -q run f.json
t "objects that hold it are made"                               is '{"m":{"b":7},"z":1}'
stet -q run f.json --set on=false
t "and go with it"                                              is '{"z":1}'
stet -q run f.json --set on=true
stet -q set piece:f:cell:c/hand 1
stet -q run f.json --set on=false
t "what somebody set beside it stays"                           is '{"hand":1,"z":1}'
stet -q run f.json --unset cell:c
writer 'c.key(0).set(x); if (on) c.key(1).set(5);' '[]'
stet -q run f.json --set on=true
t "elements of an array are made, too"                          is '[7,5]'
stet -q run f.json --set on=false
t "and an array is taken back as one"                           is '[7]'
writer 'if (on) c.push(x);' '[]'
stet -q run f.json --set on=true
stet -q run f.json --set x=8
stet -q run f.json --set on=false
t "what a run neither reads nor writes is as in a first run"    is '[]'
writer 'c.set((c.get() || 0) + x);' 0
stet -q run f.json --set x=1
stet -q run f.json --set x=2
t "a cell that is read first is state, and carried on"          is 3
t "all of it is right"                                          stet check

# Children
child() { echo '{"pattern":1,"name":"f","cells":{"c":{"default":{}}},"nodes":[{"id":"r","inputs":{"list":'"$3"',"c":{"$":"c","asCell":true}},"module":{"type":"ref","ref":"map","key":"id","pattern":{"pattern":1,"name":"k","cells":{"z":{"default":'"$2"'}},"nodes":[
 {"id":"w","inputs":{"n":{"$":"argument/element/n"},"z":{"$":"z","asCell":true},"c":{"$":"argument/c","asCell":true}},"module":{"type":"javascript","implementation":"({n,z,c}) => { '"$1"' return 1 }"},"materializerWriteInputPaths":["z","c"]},
 {"id":"q","inputs":{"value":{"$":"z"}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"q"}}}},{"id":"all","inputs":{"value":{"$":"c"}},"module":{"type":"ref","ref":"value"}}],"result":{"r":{"$":"r"},"all":{"$":"all"}}}' >f.json; }
all() { test "$(stet get piece:f/all --fresh --json | json value)" = "$1" || { stet get piece:f/all; return 1; }; }
new
child 'z.set(n*10); c.key("k" + n).set(1);' 0 '[{"id":"a","n":1},{"id":"b","n":2}]'
sed -i "s/c.key(\"k\" + n)/c.key('k' + n)/" f.json
stet -q run f.json
t "children write cells of their own"                           is '[10,20]'
t "and each its part of one of the pattern around"              all '{"k1":1,"k2":1}'
stet -q set 'piece:f:cell:r[a].z' 5
t "and put right what others write there"                       is '[10,20]'
stet -q run f.json --unset 'cell:r[a].z'
t "what a child is given, and its result, is not set by hand"   expect_status 2 stet set 'piece:f:child:r[a]/result' 77
t "a child's cell is not deleted"                               expect_err "--unset cell:r[a].z" stet doc delete 'piece:f:cell:r[a].z'
t "nor made for a child that is not there"                      expect_status 2 stet set 'piece:f:cell:r[x].z' 1
sed -i 's/,{"id":"b","n":2}//' f.json
stet -q run f.json
t "what a child wrote goes with it"                             all '{"k1":1}'
child '' 0 '[{"id":"a","n":1}]'
stet -q run f.json
t "a child's cell that nobody writes any more is the default"   is '[0]'
t "a cell of the pattern around, too"                           all '{}'
child '' 4 '[{"id":"a","n":1}]'
stet -q run f.json
t "and follows it"                                              is '[4]'
stet -q set 'piece:f:cell:r[a].z' 9
t "until somebody sets it"                                      is '[9]'
t "which is listed"                                             expect_out 'cell:r[a].z' stet status f
child '' 5 '[{"id":"a","n":1}]'
stet -q run f.json
t "and holds against another default"                           is '[9]'
stet -q run f.json --unset 'cell:r[a].z'
t "until it is taken back"                                      is '[5]'
t "it is right"                                                 stet check

# Runs without records
new
echo '{"pattern":1,"name":"f","nodes":[{"id":"r","inputs":{"list":{"/":{"link@1":{"id":"l"}}},"f":{"/":{"link@1":{"id":"d"}}}},"module":{"type":"ref","ref":"map","pattern":{"pattern":1,"name":"c",
  "nodes":[{"id":"q","inputs":[{"$":"argument/element"},{"$":"argument/f"}],"module":{"type":"ref","ref":"multiply"}}],"result":{"$":"q"}}}}],"result":{"r":{"$":"r"}}}' >f.json
stet -q set d 10
stet -q set l '[1]'
stet -q run f.json
cp .stet/config.toml keep
printf '\n[scheduler]\npersist = false\n' >>.stet/config.toml
stet -q set l '[1,3]'
stet -q run f.json
cp keep .stet/config.toml
stet -q set d 20
stet -q run f.json
t "a child made by a run without records runs afterwards"       is '[20,60]'
t "and has a record"                                            stet check

new
echo '{"pattern":1,"name":"f","nodes":[{"id":"r","inputs":{"value":2},"output":{"/":{"link@1":{"id":"out","path":["k"]}}},"module":{"type":"ref","ref":"value"}}],"result":{"r":{"$":"r"}}}' >f.json
stet -q set out '{"/":{"link@1":{"id":"elsewhere"}}}'
t "an output is not written into a link"                        bash -c '"$STET" run f.json 2>&1 | grep -q "below a link"'
t "which stays"                                                 expect_out elsewhere stet get out --raw --json
stet -q set out '{}'
stet -q run f.json
t "without the link it is"                                      is 2
finish
