#!/usr/bin/env bash
# Children of a map write into a cell of the pattern around: whoever reads there waits for children that are outdated or not there yet, on every surface.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
# pattern NAME LIST CHILD-OPTIONS [asCell]: the last is how the map has the cell
pattern() {
    cat >"$1.json" <<END
{ "pattern": 1, "name": "$1", "argument": { "default": { "l": $2 } }, "cells": { "idx": { "default": {} }, "out": {} },
  "nodes": [
    { "id": "m", "inputs": { "list": {"\$": "argument/l"}, "c": {"\$": "idx"${4-, \"asCell\": true}} },
      "module": { "type": "ref", "ref": "${5-map}"${6-}, "pattern": { "pattern": 1, "name": "child", "nodes": [
        { "id": "q", "inputs": { "x": {"\$": "argument/element"}, "c": {"\$": "argument/c", "asCell": true} }, $3
          "module": { "type": "javascript", "implementation": "({x, c}) => { if (x === 'bad') throw new Error('bad'); c.key(x).set(1); return true }" } } ],
        "result": {"\$": "q"} } } },
    { "id": "r", "inputs": { "value": {"\$": "idx"} }, "module": { "type": "ref", "ref": "keys" } },
    { "id": "h", "stream": {"\$": "h"}, "inputs": { "r": {"\$": "r"}, "out": {"\$": "out", "asCell": true} },
      "module": { "type": "javascript", "handler": true, "implementation": "(e, {r, out}) => { out.set(r.join()) }" } } ],
  "result": { "r": {"\$": "r"} } }
END
}
state() { stet action show "$1" r --json | json state; }
list() { stet set "piece:$1:argument/l" "$2" >/dev/null; }
value() { stet get "$@" --json | json value; }
said='"materializerWriteInputPaths": ["c"],'
cat >z.json <<END
{ "pattern": 1, "name": "z", "nodes": [ { "id": "z", "module": { "type": "ref", "ref": "value" },
    "inputs": { "value": {"/": {"link@1": {"id": "piece:p", "path": ["r"]}}} } } ], "result": {"\$": "z"} }
END

for how in said unsaid plain filter; do
    case $how in
    said) pattern p '[]' "$said" ;;
    unsaid) pattern p '[]' "" ;;
    plain) pattern p '[]' "" "" ;;
    filter) pattern p '[]' "" ', "asCell": true' filter ;;
    esac
    stet run p.json >/dev/null
    list p '[]'
    stet run p.json >/dev/null
    stet run z.json >/dev/null
    t "$how: without children the reader stands"             test "$(state p)" = stands
    list p '["a", "b"]'
    t "$how: it is stale when there will be some"            test "$(state p)" = stale
    t "$how: so says a dry run"                              expect_out "r: stale" stet run p.json -n
    t "$how: and why"                                        expect_out "p/r is stale" stet why p r
    t "$how: --fresh makes them"                             test "$(value piece:p/r --fresh)" = '["a","b"]'
    t "$how: all stands then"                                expect_out "ran 0" stet run p.json
    list p '["b", "c"]'
    t "$how: a demand makes them"                            stet run p.json --demand r
    t "$how: and takes those back that are gone"             test "$(value piece:p/r)" = '["b","c"]'
    list p '["d"]'
    t "$how: a run of the node makes them"                   stet run p.json r
    t "$how: it has the new index"                           test "$(value piece:p/r)" = '["d"]'
    list p '["e"]'
    t "$how: an event makes them"                            stet piece send p h
    t "$how: its handler reads the new index"                test "$(value piece:p:cell:out)" = e
    list p '["f"]'
    t "$how: another piece makes them"                       stet run z.json
    t "$how: it reads the new index"                         test "$(value piece:z)" = '["f"]'
    list p '["g"]'
    t "$how: who asks for the cell makes them"               test "$(value piece:p:cell:idx --fresh)" = '{"g":1}'
    list p '["bad", "g"]'
    t "$how: a child that fails"                             expect_status 1 stet run p.json
    t "$how: and the reader waits"                           test "$(state p)" != stands
    t "$how: --fresh says so"                                expect_err "not fresh" stet get piece:p/r --fresh
    t "$how: an event is refused"                            expect_status 1 stet piece send p h
    list p '["a", "b"]'
    t "$how: mended"                                         stet run p.json
    stet branch create "$how" >/dev/null
    stet set piece:p:argument/l '["c"]' --branch "$how" >/dev/null
    t "$how: on a branch without records"                    stet run p.json --branch "$how"
    t "$how: what children that are gone wrote goes, too"    test "$(value piece:p/r --branch "$how")" = '["c"]'
    t "$how: and the other branch has its own"               test "$(value piece:p/r --fresh)" = '["a","b"]'
done

cat >n.json <<END
{ "pattern": 1, "name": "n", "argument": { "default": { "on": false } }, "cells": { "a": { "default": 0 }, "b": { "default": 0 } },
  "nodes": [ { "id": "w", "inputs": { "on": {"\$": "argument/on"}, "a": {"\$": "a", "asCell": true}, "b": {"\$": "b", "asCell": true} },
               "materializerWriteInputPaths": ["a"],
               "module": { "type": "javascript", "implementation": "({on, a, b}) => { a.set(1); if (on) b.set(1) }" } } ],
  "result": {"\$": "a"} }
END
t "who names its paths writes there"                         stet run n.json
t "and nowhere else"                                         expect_status 1 stet run n.json --set on=true
t "and says so"                                              expect_out "does not name" stet why n
t "it has written nothing then"                              test "$(value piece:n:cell:b)" = 0

made='{pattern: 1, name: `made`, nodes: [{id: `q`, inputs: {x: {$: `argument/x`}, c: {$: `argument/c`, asCell: true}}, module: {type: `javascript`, implementation: `({x, c}) => { c.key(x).set(1); return x }`}}], result: {$: `q`}}'
returns() { # returns CELL-OPTIONS
    cat >k.json <<END
{ "pattern": 1, "name": "k", "argument": { "default": { "x": "a" } }, "cells": { "idx": { "default": {} } },
  "nodes": [ { "id": "k", "returns": "pattern", "inputs": { "x": {"\$": "argument/x"}, "c": {"\$": "idx"$1} },
               "module": { "type": "javascript", "implementation": "({x}) => x ? ($made) : null" } },
             { "id": "r", "inputs": { "value": {"\$": "idx"} }, "module": { "type": "ref", "ref": "keys" } } ],
  "result": { "r": {"\$": "r"} } }
END
}
returns ', "asCell": true'
t "a node that returns a pattern"                            stet run k.json
t "its child writes the index"                               test "$(value piece:k/r)" = '["a"]'
stet set piece:k:argument/x '"b"' >/dev/null
t "the reader is stale while it is outdated"                 test "$(state k)" = stale
t "--fresh runs it"                                          test "$(value piece:k/r --fresh)" = '["b"]'
t "it returns none"                                          stet run k.json --set 'x=""'
t "and what its child wrote goes"                            test "$(value piece:k/r)" = '[]'
returns ""
stet run k.json --set 'x="c"' >/dev/null
stet get piece:k:node:k --fresh >/dev/null 2>&1
t "a cell must be one for the node that returns the pattern" expect_out "takes /c as a cell" stet why k
finish
