#!/usr/bin/env bash
# An event is not applied on what a failed action made last: neither directly, nor two steps behind the failure, nor over another space.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
handler() { echo '{"id":"'"$1"'","stream":{"$":"'"$1"'"},"inputs":{"v":'"$2"',"log":{"$":"log","asCell":true}},"module":{"type":"javascript","handler":true,"implementation":"(e, {v, log}) => { log.push(v) }"}}'; }
cat >h.json <<X
{"pattern":1,"name":"h","argument":{"default":{"x":4}},"cells":{"log":{"default":[]}},"nodes":[
{"id":"root","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"sqrt"}},
{"id":"next","inputs":[{"$":"root"},1],"module":{"type":"ref","ref":"sum"}},
$(handler near '{"$":"root"}'), $(handler behind '{"$":"next"}'), $(handler beside '{"$":"argument/x"}')],
"result":{"next":{"$":"next"},"log":{"$":"log"}}}
X
cat >far.json <<X
{"pattern":1,"name":"far","cells":{"log":{"default":[]}},"nodes":[
$(handler over '{"/":{"link@1":{"id":"piece:h:node:next","space":"main"}}}')],
"result":{"log":{"$":"log"}}}
X
t "the pieces run"                     stet run h.json -q
t "the pieces run"                     stet run far.json --space other -q
stet set -q piece:h:argument/x -- -1
t "what failed is not read"            expect_status 1 stet piece send h near
t "nor what waits for it"              expect_status 1 stet piece send h behind
t "the message names it"               expect_err 'h/next, which waits for an action that failed' stet piece send h behind
t "nor over another space"             expect_status 1 stet piece send far over --space other
t "nothing was written"                same '[]' "$(stet get piece:h:cell:log --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["value"])')"
t "who reads neither goes on"          stet piece send h beside -q
stet set -q piece:h:argument/x 25
t "mended, it is applied"              stet piece send h near -q
t "behind, too"                        stet piece send h behind -q
t "and over another space"             stet piece send far over --space other -q
t "on fresh values"                    same '[-1, 5, 6]' "$(stet get piece:h:cell:log --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["value"])')"
t "there, too"                         same '[6]' "$(stet get piece:far:cell:log --space other --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["value"])')"
finish
