#!/usr/bin/env bash
# The pattern file of a piece counts for whoever reads the piece, however the piece is reached: over documents, arguments, named cells,
# other pieces and other spaces. So does the code in files of other spaces, and where a symlink leads.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
piece() { # NAME VALUE [ARGUMENT]
    echo '{"pattern":1,"name":"'"$1"'","argument":{"default":'"${3:-{\"v\":1\}}"'},"nodes":[{"id":"x","inputs":{"value":'"$2"'},
      "module":{"type":"ref","ref":"value"}}],"result":{"x":{"$":"x"}}}' >"$1.json"
}
link() { echo '{"/":{"link@1":{"id":"'"$1"'"'"${2:+,$2}"'}}}'; }
project() { cd "$(mktemp -d "$PWD/pXXXXXX")" && stet init >/dev/null; }
fresh() { test "$(stet get "$1" --fresh 2>&1)" = "$2" || { stet get "$1" --fresh; false; }; }
edit() { sed -i "s/\"v\":$1/\"v\":$2/" w.json; }
# Every surface, for readers of w that was 1 and is 2, 3, 4 by and by.
surfaces() { # HOW READER
    edit 1 2
    t "$1: status" test "$(stet status "$2" --json | json pieces.0.stale)" = 1
    t "$1: dry run" test "$(stet run -n "$2.json" --json | json actions)" != "[]"
    t "$1: run" stet run "$2.json"
    t "$1: the new value" test "$(stet get "piece:$2:node:x")" = 2
    edit 2 3
    t "$1: get --fresh" fresh "piece:$2/x" 3
    edit 3 4
    t "$1: pull" stet piece pull "$2"
    t "$1: the newest value" test "$(stet get "piece:$2:node:x")" = 4
    t "$1: then all stands" expect_out "ran 0" stet run "$2.json"
}
top=$PWD

project
piece w '{"$":"argument/v"}'
piece r "$(link hop)"
stet set hop "$(link piece:w '"path":["x"]')" >/dev/null
stet run w.json >/dev/null && stet run r.json >/dev/null
surfaces "over a document" r
echo '{"pattern":1,"name":"h","cells":{"c":{"default":0}},"nodes":[{"id":"go","stream":{"$":"go"},"inputs":{"c":{"$":"c","asCell":true},
  "v":'"$(link hop)"'},"module":{"type":"javascript","handler":true,"implementation":"(event, {c, v}) => { c.set(v) }"}}],
  "result":{"c":{"$":"c"},"go":{"$":"go"}}}' >h.json
t "an event's handler" stet run h.json
edit 4 6
t "gets it" stet piece send h go 1
t "as it is now" test "$(stet get piece:h:cell:c)" = 6
echo broken >w.json
t "a pattern that is wrong stops what rests on it" expect_status 2 stet run r.json
t "and is named"                                   expect_out 'the pattern of piece "w"' sh -c '"$STET" run r.json 2>&1 || true'
piece beside 5
t "others it does not stop"                        stet run beside.json
t "it stops its own piece" not stet piece pull w
cd "$top" && project
piece w '{"$":"argument/v"}'
piece r '{"$":"argument/l"}' "{\"l\":$(link piece:w '"path":["x"]')}"
stet run w.json >/dev/null && stet run r.json >/dev/null
surfaces "over an argument" r
cd "$top" && project
piece w '{"$":"argument/v"}'
piece m "$(link hop)"
piece r "$(link hop2)"
stet set hop "$(link piece:w:argument '"path":["v"]')" >/dev/null
stet set hop2 "$(link piece:m '"path":["x"]')" >/dev/null
stet run w.json >/dev/null && stet run m.json >/dev/null && stet run r.json >/dev/null
surfaces "two pieces on" r

cd "$top" && project
piece w '{"$":"argument/v"}'
piece r "$(link piece:w:node:x '"space":"two"')"
stet run w.json --space two >/dev/null && stet run r.json >/dev/null
surfaces "in another space" r
edit 4 5
t "why says so" expect_out "stale" stet why r
# Code in a file, in another space.
cd "$top" && project
echo 'export default () => 1' >c.js
echo '{"pattern":1,"name":"w","nodes":[{"id":"x","inputs":{},"module":{"type":"javascript","implementation":{"file":"c.js"}}}],"result":{"x":{"$":"x"}}}' >w.json
piece r "$(link piece:w:node:x '"space":"two"')"
t "code in a file of another space" stet run w.json --space two
t "is read" stet run r.json
echo 'export default () => 22' >c.js
t "edited, its readers are stale" test "$(stet status r --json | json pieces.0.stale)" = 1
t "and run" stet run r.json
t "with its value" test "$(stet get piece:r:node:x)" = 22

# A symlink that is pointed elsewhere.
cd "$top" && project
piece w '{"$":"argument/v"}'
mv w.json one && sed 's/"v":1/"v":2/' one >other
ln -s one w.json
t "a pattern behind a symlink" stet run w.json
ln -sfn other w.json
t "that is pointed elsewhere: status" test "$(stet status w --json | json pieces.0.stands)" != 1
t "that is pointed elsewhere: get --fresh" fresh piece:w/x 2
rm w.json && ln -s nowhere w.json
t "one that leads nowhere leaves the piece as it is" fresh piece:w/x 2
finish
