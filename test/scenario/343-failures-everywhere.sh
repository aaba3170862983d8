#!/usr/bin/env bash
# A failure makes what depends on it stale and keeps it waiting, over actions that stand and over spaces; every surface says so. An event finds what
# its handler reads in another space fresh.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
link() { echo '{"/":{"link@1":{"id":"'"$1"'","space":"'"$2"'"}}}'; }
node() { # ID CODE INPUTS
    echo '{"id":"'"$1"'","inputs":{'"$3"'},"module":{"type":"javascript","implementation":"'"$2"'"}}'
}
pattern() { # NAME NODES RESULT
    echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"v":1,"w":1}},"cells":{"total":{"default":0}},"nodes":['"$2"'],"result":'"$3"'}' >"$1.json"
}
says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -Eq -- "$want"; }
state() { stet action list "$1" --space "$2" --json | python3 -c 'import json,sys; print(" ".join(sorted(a["action"]+"="+a["state"] for a in json.load(sys.stdin)["actions"])))'; }
pattern a "$(node f "({v}) => { if (v === 0) throw new Error('zero'); return v * 10 }" '"v":{"$":"argument/v"}')" '{"f":{"$":"f"}}'
pattern b "$(node g '({f}) => f + 1' '"f":'"$(link piece:a:node:f far)")" '{"g":{"$":"g"}}'
pattern c "$(node h '({g, w}) => g + w' '"g":'"$(link piece:b:node:g mid)"',"w":{"$":"argument/w"}'),$(node k '({h}) => h' '"h":{"$":"h"}')" '{"h":{"$":"h"},"k":{"$":"k"}}'
stet -q run a.json --space far
stet -q run b.json --space mid
stet -q run c.json
t "all is up to date"                             same "h=stands k=stands" "$(state c main)"
stet -q set piece:a:argument/v 0 --space far
t "a run fails for a failure two spaces away"     expect_status 1 stet run c.json
t "which is named"                                says "failed a/f: .*zero" stet run c.json
t "nothing here ran"                              same "h=stale k=stale" "$(state c main)"
t "nor in between"                                same "g=stale" "$(state b mid)"
t "the cause is named"                            says "waits for a/f in space far, which failed" stet action list c
t "by why, too"                                   says "c/k is stale: it waits for a/f in space far, which failed: .*zero" stet why c k
t "status counts none as up to date"              same 0 "$(stet status c --json | json pieces.0.stands)"
t "a run does not either"                         same "0 2" "$(stet run c.json --json | python3 -c 'import json,sys; o=json.load(sys.stdin); print(o["stood"],o["waiting"])')"
t "nothing is fresh"                              expect_status 1 stet get piece:c/k --fresh
stet -q set piece:c:argument/w 5
t "what has changed waits as well"                same "0 5" "$(stet run c.json --no-retry-failed --json | json ran) $(stet get piece:c:argument/w)"
t "and keeps its last good output"                same 12 "$(stet get piece:c:node:h)"
stet -q set piece:a:argument/v 2 --space far
t "mended there, all of it runs"                  same 4 "$(stet run c.json --json | json ran)"
t "with what has changed meanwhile"               same 26 "$(stet get piece:c:node:k)"

# In one space, over an action that stands.
pattern one "$(node f "({v}) => { if (v === 0) throw new Error('zero'); return v * 10 }" '"v":{"$":"argument/v"}'),$(node g '({f}) => f + 1' '"f":{"$":"f"}'),$(node h '({g, w}) => g + w' '"g":{"$":"g"},"w":{"$":"argument/w"}')" '{"h":{"$":"h"}}'
stet -q run one.json
stet -q set piece:one:argument/v 0
t "one fails"                                     expect_status 1 stet run one.json
stet -q set piece:one:argument/w 7
t "what reads it over another waits"              same "1 2" "$(stet run one.json --json | python3 -c 'import json,sys; o=json.load(sys.stdin); print(o["ran"],o["waiting"])')"
t "it keeps what it made last"                    same 12 "$(stet get piece:one:node:h)"
t "it is not up to date"                          same "f=failed g=stale h=dirty" "$(state one main)"
stet -q set piece:one:argument/v 1
t "back to what it was: only the failed and the changed one run" same 2 "$(stet run one.json --json | json ran)"
t "and all is right"                              same 18 "$(stet get piece:one:node:h)"

# Events.
pattern s '{"id":"add","stream":{"$":"add"},"inputs":{"total":{"$":"total","asCell":true},"g":'"$(link piece:b:node:g mid)"'},"module":{"type":"javascript","handler":true,"implementation":"(event, {total, g}) => { total.set(g) }"}}' '{"total":{"$":"total"},"add":{"$":"add"}}'
stet -q run s.json
stet -q set piece:a:argument/v 7 --space far
t "an event is sent"                              stet piece send s add 1
t "its handler has read what two spaces away was made fresh first" same 71 "$(stet get piece:s:cell:total)"
# A node comes upon a failed child by way of a coordinator that is not up to date: that runs first, and has other children then.
child='{"type":"ref","ref":"reduce","pattern":{"pattern":1,"name":"c","nodes":[{"id":"c","inputs":{"value":{"$":"argument/element"}},"module":{"type":"ref","ref":"sqrt"}}],"result":{"$":"c"}}}'
way() { # LIST THEN
    echo '{"pattern":1,"name":"way","argument":{"default":{"bad":[-1],"good":[4],"no":false,"a":0,"b":0}},"nodes":[{"id":"n","module":'"$child"',"inputs":{"list":{"$":"argument/'"$1"'"},"initial":0}},{"id":"m","module":{"type":"ref","ref":"ifElse"},"inputs":{"condition":{"$":"argument/no"},"then":{"$":"argument/'"$2"'"},"else":{"$":"n"}}}],"result":{"m":{"$":"m"}}}' >way.json
}
way bad a
t "a child fails"                        expect_status 1 stet run way.json -q
way good b
t "another list, and another reader"     stet run way.json -q --no-retry-failed
t "with the right value"                 same 2 "$(stet get piece:way/m)"
t "which stands"                         expect_out 'way stands' stet why way
finish
