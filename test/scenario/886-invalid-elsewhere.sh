#!/usr/bin/env bash
# A part that is asked for is refused only if it rests on an invalid pattern file itself, over whatever leads there; and every surface says which parts do.
. "$STET_SOURCE/test/scenario/lib.sh"
stet -q init
to() { echo '{"/":{"link@1":{"id":"'"$1"'"'"${2:-}"'}}}'; }
node() { echo '{"id":"'"$1"'","inputs":['"$2"',1],"module":{"type":"ref","ref":"sum"}}'; }
u() { echo '{"pattern":1,"name":"u","argument":{"default":{"x":3}},"nodes":['"$(node v 1)"'],"result":{"v":{"$":"v"},"lit":'"$1"'}}' >u.json; }
u 5
echo '{"pattern":1,"name":"f","argument":{"default":{"x":1}},"nodes":['"$(node a "$(to piece:u ',"path":["v"]')"),$(node b '{"$":"argument/x"}'),$(node c '{"$":"a"}'),$(node d "$(to piece:u ',"path":["lit"]')"),$(node e "$(to piece:u:argument ',"path":["x"]')"),$(node g "$(to L)")"'],"result":{"a":{"$":"a"},"b":{"$":"b"},"c":{"$":"c"},"d":{"$":"d"},"e":{"$":"e"},"g":{"$":"g"},"l":'"$(to piece:u ',"path":["lit"]')"'}}' >f.json
echo '{"pattern":1,"name":"far","nodes":['"$(node d "$(to piece:u ',"path":["lit"],"space":"main"')"),$(node b 2)"'],"result":{"d":{"$":"d"},"b":{"$":"b"}}}' >far.json
stet -q set L "$(to piece:u ',"path":["lit"]')"
stet -q set other 3
stet -q run u.json
stet -q run f.json
stet -q run far.json --space two
echo '{' >u.json
fresh() { stet -q get "$1" --fresh "${@:2}" 2>/dev/null; }
t "a part that does not rest on it is read"                same 2 "$(fresh piece:f/b)"
t "so is a node"                                           same 2 "$(fresh piece:f:node:b)"
t "and a document"                                         same 3 "$(fresh other)"
t "and a part in another space"                            same 3 "$(fresh piece:far/b --space two)"
t "one node runs"                                          expect_status 0 stet run f.json b
t "a part is pulled"                                       expect_status 0 stet piece pull f --demand b
t "a part is run"                                          expect_status 0 stet run f.json --demand b
for p in a c d e g l; do
    t "$p rests on it: it is not read"                     expect_status 2 stet get piece:f/$p --fresh
    t "$p rests on it: it is not pulled"                   expect_status 2 stet piece pull f --demand $p
done
for p in a c d e g; do
    t "$p rests on it: it does not run"                    expect_status 2 stet run f.json $p
    t "$p rests on it: it is not told as up to date"       expect_status 1 bash -c "'$STET' action show f $p --json 2>/dev/null | grep -q '\"state\":\"stands\"'"
done
t "b is told as up to date"                                same stands "$(stet action show f b --json 2>/dev/null | json state)"
t "a value that no node made, over spaces: not read"       expect_status 2 stet get piece:far/d --fresh --space two
t "and not told as up to date"                             same unknown "$(stet action show far d --space two --json 2>/dev/null | json state)"
t "all of it is refused"                                   expect_status 2 stet run f.json
t "the piece itself, too"                                  expect_status 2 stet get piece:u/lit --fresh
u 6
t "mended, what changed arrives"                           same '7 7 2' "$(fresh piece:f/d) $(fresh piece:f/g) $(fresh piece:f/b)"
t "over spaces as well"                                    same 7 "$(fresh piece:far/d --space two)"
finish
