#!/usr/bin/env bash
# A materializer writes through a link: wherever the link is pointed next, nobody calls what lies there up to date before it has written there.
. "$STET_SOURCE/test/scenario/lib.sh"

link() { # link ID [SPACE]
    echo "{\"/\": {\"link@1\": {\"id\": \"$1\", \"path\": []${2:+, \"space\": \"$2\"}}}}"
}
stet init >/dev/null
cat >w.json <<END
{ "pattern": 1, "name": "w", "argument": { "default": { "n": 1, "to": $(link t1) } },
  "nodes": [ { "id": "fill", "materializerWriteInputPaths": ["c"],
               "inputs": { "n": {"\$": "argument/n"}, "c": {"\$": "argument/to", "asCell": true} },
               "module": { "type": "javascript", "implementation": "({n, c}) => { c.set(n) }" } } ],
  "result": null }
END
cat >r.json <<END
{ "pattern": 1, "name": "r", "argument": { "default": { "t1": $(link t1), "t2": $(link t2), "t3": $(link t3) } },
  "nodes": [ { "id": "one", "inputs": { "value": {"\$": "argument/t1"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "two", "inputs": { "value": {"\$": "argument/t2"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "three", "inputs": { "value": {"\$": "argument/t3"} }, "module": { "type": "ref", "ref": "value" } } ],
  "result": { "one": {"\$": "one"}, "two": {"\$": "two"}, "three": {"\$": "three"} } }
END
for d in t1 t2 t3; do stet set $d 0 >/dev/null; done
point() { stet set "${2:-piece:w:argument/to}" "$(link "$1" "${3-}")" >/dev/null; }
n() { stet set piece:w:argument/n "$1" >/dev/null; }
state() { stet action show r "$1" --json | json state; }
demand() { stet run r.json --demand "$1" >/dev/null && stet get "piece:r:node:$1"; }

t "the writer runs"                              stet run w.json
t "and its readers"                              stet run r.json
t "with what it wrote"                           same '{"one":1,"three":0,"two":0}' "$(stet get piece:r --json | json value)"
point t2
t "the reader of the new target is not up to date" same stale "$(state two)"
t "others are"                                   same stands "$(state three)"
t "why says who"                                 expect_out "w/fill" stet why r two
t "a demand makes it fresh"                      same 1 "$(demand two)"
t "and all of it is up to date"                  same "stands stands stands" "$(state one) $(state two) $(state three)"
n 2
point t3
t "so does a question for the cell"              same 2 "$(stet get t3 --fresh)"

# Over two links.
stet set hop "$(link t1)" >/dev/null
point hop
n 3
t "over two links"                               same 3 "$(stet get t1 --fresh)"
stet run r.json >/dev/null
point t2 hop
t "the second is pointed elsewhere"              same stale "$(state two)"
t "and its target is made fresh"                 same 3 "$(demand two)"

# To a document that is not there, and over another space.
point absent hop
n 4
t "a document that is not there"                 same 4 "$(stet get absent --fresh)"
stet space create other >/dev/null 2>&1
stet set back "$(link t1 main)" --space other >/dev/null
point back hop other
t "another space, and back"                      same 4 "$(stet get t1 --fresh)"
stet set back "$(link t3 main)" --space other >/dev/null
t "pointed elsewhere over there"                 same 4 "$(stet get t3 --fresh)"

# What was found not to be needed is needed as soon as a link leads there.
demand one >/dev/null
n 5
t "it is not needed for what it does not write"  same 0 "$(stet run r.json --demand one --json | json runs)"
t "asked for again"                              same 0 "$(stet run r.json --demand one --json | json runs)"
point t1 hop
t "it is needed now"                             same 5 "$(demand one)"

# On a branch, where nothing is recorded of it.
stet branch create b >/dev/null
stet set hop "$(link t2)" --branch b >/dev/null
t "on a branch"                                  same 5 "$(stet get t2 --fresh --branch b)"
t "which the default branch does not see"        same 3 "$(stet get t2)"

# A circle of links leads nowhere, and says so.
point hop hop
t "a circle fails its writer alone"              expect_status 1 stet run w.json
t "nobody else waits for it"                     stet run r.json
point t2 hop
t "mended"                                       stet run w.json
t "with what it writes"                          same 5 "$(stet get t2)"
finish
