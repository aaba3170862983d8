#!/usr/bin/env bash
# Links in the output of an action (elements that filter keeps, children that show their element, a link that a function returns) lead to what other pieces make: a run of the piece makes that fresh, too.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
link() { # SPACE ID KEY...
    local space=$1 id=$2 keys
    shift 2
    keys=$(printf '"%s",' "$@")
    printf '{"/":{"link@1":{"id":"%s","path":[%s]%s}}}' "$id" "${keys%,}" "${space:+,\"space\":\"$space\"}"
}
made() { # NAME: a piece whose result is {"v": its argument k, doubled}
    echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"k":1}},"nodes":[{"id":"v","inputs":[{"$":"argument/k"},2],"module":{"type":"ref","ref":"multiply"}}],"result":{"v":{"$":"v"}}}' >"$1.json"
}
child='"pattern":{"pattern":1,"name":"c","nodes":[{"id":"y","inputs":{"value":true},"module":{"type":"ref","ref":"value"}}],"result":'
shown() { # NAME NODE: a piece whose result is the output of one node
    echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"l":[]}},"nodes":[{"id":"n",'"$2"'}],"result":{"n":{"$":"n"}}}' >"$1.json"
}
list='"inputs":{"list":{"$":"argument/l"}'
shown filter "\"module\":{\"type\":\"ref\",\"ref\":\"filter\",$child{\"\$\":\"y\"}}},$list}"
shown map "\"module\":{\"type\":\"ref\",\"ref\":\"map\",$child{\"e\":{\"\$\":\"argument/element\"}}}},$list}"
shown reduce "\"module\":{\"type\":\"ref\",\"ref\":\"reduce\",$child{\"\$\":\"argument/element\"}}},$list}"
shown initial "\"module\":{\"type\":\"ref\",\"ref\":\"reduce\",$child{\"\$\":\"y\"}}},\"inputs\":{\"list\":[],\"initial\":{\"\$\":\"argument/l\"}}"
shown passed "\"module\":{\"type\":\"ref\",\"ref\":\"map\",$child{\"\$\":\"argument/o\"}}},\"inputs\":{\"list\":[1],\"o\":{\"\$\":\"argument/l\"}}"
shown nested "\"module\":{\"type\":\"ref\",\"ref\":\"map\",\"pattern\":{\"pattern\":1,\"name\":\"o\",\"nodes\":[{\"id\":\"f\",\"module\":{\"type\":\"ref\",\"ref\":\"filter\",$child{\"\$\":\"y\"}}},\"inputs\":{\"list\":{\"\$\":\"argument/element\"}}}],\"result\":{\"\$\":\"f\"}}},\"inputs\":{\"list\":[{\"\$\":\"argument/l\"}]}"
made here
made there
t "a piece in this space"                   stet run here.json -q
t "and one in another"                      stet run there.json --space far -q
value=1
for where in here there; do
    [ $where = here ] && space= in= || space=far in="--space far"
    to=$(link "$space" piece:$where v)
    for how in filter map reduce initial passed nested; do
        t "$how, $where"                    stet run $how.json -q --set "l=[[$to]]"
        value=$((value + 1))
        stet set piece:$where:argument/k $value -q $in
        t "$how, $where: status knows"      expect_out "$where/v" stet status $how
        t "$how, $where: a run"             expect_out 'ran 1' stet run $how.json
        t "$how, $where: shows what is"     expect_out "$((2 * value))" stet get piece:$how/n
        t "$how, $where: no second run"     expect_out 'ran 0' stet run $how.json
        t "$how, $where: back"              stet run $how.json -q --set 'l=[[0]]'
        value=$((value + 1))
        stet set piece:$where:argument/k $value -q $in
        t "$how, $where: not shown, not run" expect_out 'ran 0' stet run $how.json
        t "$how, $where: run by itself"     stet run $where.json -q $in
    done
done
# A link that a function returns, and one into a space that is not there yet; a circle beside it hides nothing.
stet set -q circle "$(link '' circle a)"
echo '{"pattern":1,"name":"returned","nodes":[{"id":"n","inputs":{},"module":{"type":"javascript","implementation":"() => ({a: {\"/\": {\"link@1\": {id: \"circle\", path: []}}}, b: {\"/\": {\"link@1\": {id: \"piece:late\", path: [\"v\"], space: \"later\"}}}})"}}],"result":{"n":{"$":"n"}}}' >returned.json
t "into a space that is not there"          stet run returned.json -q
made late
t "which appears"                           stet run late.json --space later -q
stet set piece:late:argument/k 50 -q --space later
t "status knows"                            expect_out 'late/v in space later (dirty)' stet status returned
t "a run"                                   stet run returned.json -q
t "shows what is"                           same 100 "$(stet get piece:returned/n/b)"
# While a run settles, its demand grows: the list itself is made by an action.
shown grows "\"module\":{\"type\":\"ref\",\"ref\":\"filter\",$child{\"\$\":\"y\"}}},\"inputs\":{\"list\":{\"\$\":\"argument/l\"}}"
t "nothing is shown"                        stet run grows.json -q
stet set piece:late:argument/k 60 -q --space later
stet set piece:here:argument/k 70 -q
t "the same run shows both"                 stet run grows.json -q --set "l=[$(link later piece:late v),$(link '' piece:here v)]"
t "as they are"                             same '[120,140]' "$(stet get piece:grows/n --json | python3 -c 'import json,sys; v=json.load(sys.stdin); print(json.dumps(v.get("value", v) if isinstance(v, dict) else v, separators=(",",":")))')"
# A failure over there is one of whoever shows it.
stet set piece:late:argument/k '"x"' -q --space later
t "what is shown fails"                     expect_status 1 stet run grows.json -q
t "status tells"                            expect_out 'late/v in space later (failed)' stet status grows
stet set piece:late:argument/k 5 -q --space later
t "mended"                                  stet run grows.json -q
# A watch takes up what changes in a space that only its result leads to.
becomes() { # CELL VALUE
    for _ in $(seq 200); do
        [ "$(stet get "$1")" = "$2" ] && return
        sleep 0.1
    done
    stet get "$1"
    return 1
}
echo '{"pattern":1,"name":"direct","nodes":[],"result":{"n":'"$(link later piece:late v)"'}}' >direct.json
t "one more piece"                          stet run direct.json -q
"$STET" run direct.json --watch >watch.log 2>&1 &
watcher=$!
stet set piece:late:argument/k 81 -q --space later
t "a watch of a link"                       becomes piece:direct/n 162
stet set piece:late:argument/k 82 -q --space later
t "again"                                   becomes piece:direct/n 164
kill -TERM $watcher
wait $watcher
"$STET" run grows.json --watch >watch.log 2>&1 &
watcher=$!
stet set piece:late:argument/k 91 -q --space later
t "a watch of links in an output"           becomes piece:grows/n/0 182
kill -TERM $watcher
wait $watcher
t "check"                                   stet check
t "check --rerun"                           stet check --rerun all
finish
