#!/usr/bin/env bash
# What an action may read comes first, and whoever waits for a failure does not depend on who ran first. An effect does not begin while
# children that its inputs lead to are outdated. What a waiting action has read is brought up to date, also if nothing else needs it: it
# may lead elsewhere then.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
state() { stet action show "$1" "$2" --json | json state; }

child='{"pattern":1,"name":"r","nodes":[{"id":"k","inputs":{"value":{"$":"argument/element"}},"module":{"type":"ref","ref":"sort"}}],"result":{"v":{"$":"k"}}}'
rows() { # NAME LIST: "first" is run, and the rows are not
    echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"l":'"$2"'}},"nodes":[{"id":"first","inputs":[1,1],"module":{"type":"ref","ref":"add"}},{"id":"m","inputs":{"list":{"$":"argument/l"}},"module":{"type":"ref","ref":"map","pattern":'"$child"'}}],"result":{"m":{"$":"m"}}}' >"$1.json"
    stet -q run "$1.json" first
}
effect() { # NAME LIST IMPLEMENTATION
    echo '{"pattern":1,"name":"'"$1"'","argument":{"default":{"x":[{"/":{"link@1":{"id":"piece:'"$2"':node:m","path":["0"]}}}]}},"nodes":[{"id":"e","kind":"effect","inputs":{"x":{"$":"argument/x"}},"module":{"type":"javascript","implementation":'"$3"'}}],"result":{"e":{"$":"e"}}}' >"$1.json"
}
rows good '[[2,1]]'
effect tell good '"({x}) => JSON.stringify(x)"'
stet run tell.json --json >out
t "an effect runs after the children that its inputs lead to"  same "1 3" "$(json effects <out) $(json runs <out)"
t "and has read what they made"                                same '"[{\"v\":[1,2]}]"' "$(stet get piece:tell/e)"
rows bad '[5]'
effect late bad '{"file":"late.js","export":"f"}'
stet run late.json >/dev/null 2>&1
t "an effect waits for a child that fails in the same run"     same unknown "$(state late e)"
t "as it does when that has failed before"                     same unknown "$(stet run late.json >/dev/null 2>&1; state late e)"
t "without that its own failure is told"                       same failed "$(stet -q set piece:late:argument/x '[]'; stet run late.json >/dev/null 2>&1; state late e)"

echo '{"pattern":1,"name":"p","argument":{"default":{"y":{"a":1}}},"nodes":[{"id":"fails","inputs":{"values":0},"module":{"type":"ref","ref":"join"}},{"id":"y","inputs":{"value":{"$":"argument/y/a"}},"module":{"type":"ref","ref":"value"}},{"id":"n","inputs":{"x":{"$":"fails"},"y":{"$":"y"}},"module":{"type":"javascript","implementation":{"file":"n.js","export":"f"}}}],"result":{"fails":{"$":"fails"},"n":{"$":"n"}}}' >p.json
stet -q run p.json >/dev/null 2>&1
stet -q set piece:p:argument/y '{"a":2}'
stet -q run p.json >/dev/null 2>&1
t "nobody needs an outdated action"                            same dirty "$(state p y)"
echo 'export const f = ({x, y}) => [x, y];' >n.js
stet -q run p.json >/dev/null 2>&1
t "one that waits reads it: it runs at once"                   same stands "$(state p y)"
t "and the next run has nothing to do"                         same 0 "$(stet run p.json --no-retry-failed --json 2>/dev/null | json ran)"

echo '{"pattern":1,"name":"q","argument":{"default":{"k":0}},"nodes":[{"id":"v","inputs":{"value":{"$":"argument/k"}},"module":{"type":"ref","ref":"value"}}],"result":{"v":{"$":"v"}}}' >q.json
stet -q run q.json --space other
stet -q set piece:q:argument/k 1 --space other
echo '{"pattern":1,"name":"w","argument":{"default":{"c":null}},"nodes":[{"id":"fails","inputs":{"values":0},"module":{"type":"ref","ref":"join"}},{"id":"n","inputs":{"condition":{"$":"argument/c"},"then":"yes","else":{"$":"fails"}},"module":{"type":"ref","ref":"ifElse"}}],"result":{"n":{"$":"n"}}}' >w.json
stet -q run w.json >/dev/null 2>&1
stet -q run w.json --no-retry-failed --set 'c={"/":{"link@1":{"space":"other","id":"piece:q","path":["v"]}}}' >/dev/null 2>&1
t "an outdated cell of another space leads elsewhere"          same '"yes"' "$(stet get piece:w/n 2>&1)"
stet -q set piece:q:argument/k 2 --space other
stet run tell.json --json --set 'x=[{"/":{"link@1":{"space":"other","id":"piece:q","path":["v"]}}}]' >out
t "an effect that is led to another space runs after it"       same '1 "[2]"' "$(json effects <out) $(stet get piece:tell/e)"

keys='{"pattern":1,"name":"c","nodes":[{"id":"k","inputs":{"value":{"$":"argument/element"}},"module":{"type":"ref","ref":"keys"}},{"id":"x","inputs":{"values":{"$":"k"}},"module":{"type":"ref","ref":"max"}}],"result":{"$":"x"}}'
deep='{"pattern":1,"name":"d","nodes":[{"id":"r","inputs":{"list":{"$":"argument/element"},"initial":[]},"module":{"type":"ref","ref":"reduce","pattern":'"$keys"'}},{"id":"x","inputs":{"values":{"$":"r"}},"module":{"type":"ref","ref":"max"}}],"result":{"$":"x"}}'
echo '{"pattern":1,"name":"deep","argument":{"default":{"l":[[1,2]],"o":null}},"nodes":[{"id":"m","inputs":{"list":{"$":"argument/l"}},"module":{"type":"ref","ref":"map","pattern":'"$deep"'}},{"id":"n","inputs":[{"$":"argument/o"},{"$":"m/0"}],"module":{"type":"ref","ref":"add"}}],"result":{"m":{"$":"m"},"n":{"$":"n"}}}' >deep.json
stet -q run deep.json >/dev/null 2>&1
t "one that fails on a child that will wait, waits at once"    same "0 unknown" "$(stet run deep.json --no-retry-failed --json 2>/dev/null | json ran) $(state deep n)"
finish
