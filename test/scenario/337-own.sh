#!/usr/bin/env bash
# What a piece owns stays right: nobody writes its result or deletes its parts by hand, a computation's writes are no overrides, and every surface sees an edited pattern.
. "$STET_SOURCE/test/scenario/lib.sh"

piece() { echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"v":1}},"cells":{"c":{"default":7}},"nodes":[{"id":"x","inputs":{"value":'"$2"'},"module":{"type":"ref","ref":"value"}}],"result":{"x":{"$":"x"}}}' >"$1.json"; }

stet -q init
piece w '{"$":"argument/v"}'
stet -q run w.json
t "a part of a result is not set"                expect_status 2 stet set piece:w/x 99
t "and the way out is named"                     expect_err "stet set piece:w:argument/KEY" stet set piece:w/x 99
t "nor the whole"                                expect_status 2 stet doc set piece:w '{"x":99}'
t "nor with its metadata"                        expect_status 2 stet set piece:w '{"value":{"x":99}}' --meta
t "nor by a patch"                               expect_status 2 stet doc patch piece:w '[{"op":"replace","path":"/x","value":99}]'
t "nor by one that moves"                        expect_status 2 stet doc patch piece:w '[{"op":"move","from":"/x","path":"/y"}]'
t "nor deleted"                                  expect_err "stet piece delete w" stet doc delete piece:w
t "an argument is not deleted"                   expect_err "--unset ." stet doc delete piece:w:argument
t "nor its value"                                expect_status 2 stet doc patch piece:w:argument '[{"op":"remove","path":""}]'
t "a cell neither"                               expect_err "--unset cell:c" stet doc delete piece:w:cell:c
t "nor the graph"                                expect_status 2 stet doc delete piece:w:process:0
t "the result is what it was"                    expect_out 1 stet get piece:w/x --fresh
t "the argument is set as before"                stet set piece:w:argument/v 3
t "and counts"                                   expect_out 3 stet get piece:w/x --fresh
t "on a branch, too"                             bash -c '"$STET" -q branch create b && ! "$STET" set piece:w/x 99 --branch b'
t "another scope is no piece's"                  stet set piece:w/x 99 --scope s
t "and goes"                                     stet doc delete piece:w --scope s
t "an output is its node's, which runs again"    bash -c '"$STET" set piece:w:node:x 99 && [ "$("$STET" get piece:w/x --fresh)" = 3 ]'
t "documents of no piece are like any others"    bash -c '"$STET" set piece:none/x 1 && "$STET" doc delete piece:none'

t "a part that the result lacks is not wanted"   expect_status 2 stet run w.json --demand nope
t "those that are there are named"               expect_err "there are: x" stet run w.json --demand nope
t "nor pulled"                                   expect_status 2 stet run w.json --dry-run --demand nope
t "one that is there is"                         stet run w.json --demand x

stet -q run w.json --unset v
sed -i 's/"v":1/"v":2/' w.json
t "an edited pattern shows in the list"          bash -c '! "$STET" action list w | grep -q stands'
t "and of one action"                            bash -c '! "$STET" action show w x | grep -q stands'
stet -q run w.json
t "until it ran"                                 expect_out stands stet action list w
t "a piece is still deleted"                     stet piece delete w

# What a computation writes through a cell is no person's.
for part in 'c:"cells":{"c":{"default":{"q":1}}}' 'argument/k:"argument":{"default":{"k":{"q":1}}}'; do
    at=${part%%:*} name=p${#at}
    echo '{"pattern":1,"name":"'$name'",'"${part#*:}"',"nodes":[
{"id":"m","inputs":{"c":{"$":"'$at'","asCell":true}},"materializerWriteInputPaths":["c"],"module":{"type":"javascript","implementation":"({c}) => { c.key(\"a\").set(1) }"}},
{"id":"r","inputs":{"value":{"$":"'$at'"}},"module":{"type":"ref","ref":"value"}}],"result":{"r":{"$":"r"}}}' >$name.json
    fresh() { stet get piece:$name/r --fresh | tr -d ' \n'; }
    stet -q run $name.json
    t "$at: written"                             same '{"a":1,"q":1}' "$(fresh)"
    sed -i 's/"q":1/"q":2/' $name.json
    stet -q run $name.json
    t "$at: a new default arrives"               same '{"a":1,"q":2}' "$(fresh)"
    t "$at: nothing is overridden"               bash -c '! "$STET" piece show '$name' | grep -q overridden'
    sed -i 's/"a\\")/"b\\")/; s/\.key(\\"a\\"/.key(\\"b\\"/' $name.json
    stet -q run $name.json
    t "$at: what is no longer written goes"      same '{"b":1,"q":2}' "$(fresh)"
    sed -i '/"id":"m"/d' $name.json
    stet -q run $name.json
    t "$at: and all of it with the computation"  same '{"q":2}' "$(fresh)"
done

# A failure upstream is said wherever the value is asked for.
echo '{"pattern":1,"name":"f","argument":{"default":{"a":5}},"nodes":[{"id":"x","inputs":[10,{"$":"argument/a"}],"module":{"type":"ref","ref":"divide"}}],"result":{"x":{"$":"x"}}}' >f.json
piece g '{"/":{"link@1":{"id":"piece:f","path":["x"]}}}'
stet -q run f.json; stet -q run g.json; stet -q set piece:f:argument/a 0
t "a failure in another piece fails the run"     expect_status 1 stet run g.json
t "the next one as well"                         expect_status 1 stet run g.json
t "and is counted"                               same 1 "$(stet run g.json --json 2>/dev/null | json failed)"
t "a value that failed is not given as fresh"    expect_err "f/x: " stet get piece:f/x --fresh
t "nor what depends on it"                       expect_status 1 stet get piece:g/x --fresh
t "the older one is there"                       expect_out 2 stet get piece:g:node:x
stet -q set piece:f:argument/a 2
t "mended, it is fresh"                          expect_out 5 stet get piece:g/x --fresh
finish
