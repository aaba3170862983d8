#!/usr/bin/env bash
# A pattern file that is invalid, or no longer makes its piece: whatever rests on that piece is not up to date, on every surface, whichever way
# leads there: a link, a document that links, an argument, another piece, another space.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
a() { echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"x":'"$2"'}},"nodes":[{"id":"n","inputs":[{"$":"argument/x"}],"module":{"type":"ref","ref":"'"$3"'"}}],"result":{"n":{"$":"n"}}}' >a.json; }
piece() { echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"q":{"/":{"link@1":{"id":"piece:a","path":["n"],"space":"main"}}}}},"nodes":[{"id":"n","inputs":['"$2"'],"module":{"type":"ref","ref":"value"}}],"result":{"$":"n"}}' >"$1.json"; }
to() { echo '{"/":{"link@1":{"id":"'"$1"'"'"${2:-}"'}}}'; }
piece direct "$(to piece:a ',"path":["n"]')"
piece document "$(to L)"
piece argument '{"$":"argument/q"}'
piece piece "$(to piece:direct)"
piece far "$(to piece:a ',"path":["n"],"space":"main"')"
piece beside 5
places='direct document argument piece far:other'
a a 4 value
stet -q set L "$(to piece:a ',"path":["n"]')"
for p in a direct document argument piece beside; do stet -q run $p.json; done
stet -q run far.json --space other
state() { stet action list "$1" --space "$2" --json 2>/dev/null | json actions.0.state; }
for wrong in "a 44 nonsense" "z 44 value"; do
    a $wrong
    for p in $places; do
        s=main; [ "$p" = "${p%:*}" ] || s=${p#*:}; p=${p%:*}
        t "$wrong: $p is stale"               same stale "$(state $p $s)"
        t "$wrong: $p has no fresh value"     expect_status 2 stet get piece:$p --fresh --space $s
        t "$wrong: a run of $p does not say that it stands"  expect_status 2 stet run $p.json --space $s
    done
    t "$wrong: what does not rest on it runs" expect_status 0 stet run beside.json
    t "$wrong: and is up to date"             same "stands 5" "$(state beside main) $(stet get piece:beside --fresh 2>/dev/null)"
    a a 4 value
    t "$wrong: mended, nothing has to run"    same "0 0" "$(stet run direct.json --json | json ran) $(stet run far.json --space other --json | json ran)"
done
a a 5 value
t "another value reaches all of them"         same "5 5 5 5 5" "$(for p in direct document argument piece; do stet get piece:$p --fresh; done | xargs) $(stet get piece:far --fresh --space other)"
t "the stores are whole"                      stet check
finish
