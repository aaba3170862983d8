#!/usr/bin/env bash
# Whoever names a node of a child needs the child's coordinator: when the list changes, the coordinator runs first. That holds for a node
# asked for, a cell asked for, and a link in another piece or space, also while the child does not exist yet or no longer exists.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
times='{"id":"k","inputs":[{"$":"argument/element/n"},10],"module":{"type":"ref","ref":"multiply"}}'
inner='{"id":"i","inputs":{"list":{"$":"argument/element/more"}},"module":{"type":"ref","ref":"map","key":"id","pattern":{"pattern":1,"name":"s","nodes":['"$times"'],"result":{"$":"k"}}}}'
echo '{"pattern":1,"name":"ch","argument":{"default":{"l":[{"id":"a","n":1,"more":[]}]}},"nodes":[{"id":"m","inputs":{"list":{"$":"argument/l"}},"module":{"type":"ref","ref":"map","key":"id","pattern":{"pattern":1,"name":"r","nodes":['"$times,$inner"'],"result":{"k":{"$":"k"},"i":{"$":"i"}}}}}],"result":{"$":"m"}}' >ch.json
reader() { # NAME LINK
    echo '{"pattern":1,"name":"'"$1"'","nodes":[{"id":"n","inputs":{"v":{"/":{"link@1":{'"$2"'}}}},"module":{"type":"javascript","implementation":"({v}) => v === undefined ? \"none\" : v"}}],"result":{"$":"n"}}' >"$1.json"
}
reader rd '"id":"piece:ch:node:m[b].k"'
reader in '"id":"piece:ch:node:m[b].i[c].k"'
reader far '"space":"main","id":"piece:ch:node:m[b].k"'
rows() { stet -q set piece:ch:argument/l "$1"; }
stet -q run ch.json; stet -q run rd.json; stet -q run in.json; stet -q run far.json --space other
t "a child that does not exist is absent"        same '"none" "none" "none"' "$(stet get piece:rd) $(stet get piece:in) $(stet get piece:far --space other)"
rows '[{"id":"a","n":1,"more":[]},{"id":"b","n":2,"more":[{"id":"c","n":3}]}]'
t "its readers are stale when the list changes"  same 1 "$(stet status rd --json | json pieces.0.stale)"
t "from another space, too"                      same 1 "$(stet status far --space other --json | json pieces.0.stale)"
t "and a run of the reader makes the child"      same "20" "$(stet -q run rd.json; stet get piece:rd)"
t "a child of a child"                           same "30" "$(stet get piece:in --fresh)"
t "from another space"                           same "20" "$(stet -q run far.json --space other; stet get piece:far --space other)"
rows '[{"id":"a","n":1,"more":[]},{"id":"b","n":5,"more":[{"id":"c","n":6}]}]'
t "asked for by its cell"                        same 50 "$(stet get 'piece:ch:node:m[b].k' --fresh)"
t "nothing else has run for that"                same 60 "$(stet get 'piece:ch:node:m[b].i[c].k' --fresh)"
rows '[{"id":"a","n":1,"more":[]},{"id":"b","n":7,"more":[]}]'
t "asked for by its name"                        same 70 "$(stet -q run ch.json 'm[b].k'; stet get 'piece:ch:node:m[b].k')"
t "the readers follow"                           same '70 "none"' "$(stet get piece:rd --fresh) $(stet get piece:in --fresh)"
rows '[{"id":"a","n":1,"more":[]}]'
t "a child that is gone is absent"               same '"none" "none"' "$(stet get piece:rd --fresh) $(stet get piece:far --fresh --space other)"
stet -q run ch.json; stet -q run rd.json; stet -q run in.json; stet -q run far.json --space other
t "a run in between is a run of nothing"         same "0 0 0" "$(stet run ch.json --json | json ran) $(stet run rd.json --json | json ran) $(stet run far.json --space other --json | json ran)"
t "what stands is right"                         expect_status 0 stet check --rerun all
finish
