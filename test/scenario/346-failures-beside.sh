#!/usr/bin/env bash
# Who waits for what failed. What has read one part of a child does not wait because another part of the same child failed, in a later run no more
# than in the first; nor does what has read a place that a materializer which waits may write to, and has not. What fails without having read anything is judged by all of its inputs: it waits, and does not run again and again.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
node() { # ID CODE INPUTS
    echo '{"id":"'"$1"'","inputs":{'"$3"'},"module":{"type":"javascript","implementation":"'"$2"'"}}'
}
row="$(node good '({n}) => n * 10' '"n":{"$":"argument/element/n"}'),$(node bad "({n}) => { if (n < 5) throw new Error('small'); return n }" '"n":{"$":"argument/element/n"}')"
rows='{"id":"rows","inputs":{"list":{"$":"argument/rows"}},"module":{"type":"ref","ref":"map","pattern":{"pattern":1,"name":"row","nodes":['"$row"'],"result":{"good":{"$":"good"},"bad":{"$":"bad"}}}}}'
first=$(node first '({rows}) => rows[0].good' '"rows":{"$":"rows"}')
all=$(node all '({rows}) => JSON.stringify(rows)' '"rows":{"$":"rows"}')
next=$(node next '({first}) => first + 1' '"first":{"$":"first"}')
pattern() { # NODES RESULT
    echo '{"pattern":1,"name":"p","argument":{"default":{"rows":[{"n":1}]}},"nodes":['"$1"'],"result":{'"$2"'}}' >p.json
}
counts() { stet run p.json --json | python3 -c 'import json,sys; o=json.load(sys.stdin); print(o["ran"],o["stood"],o["failed"],o["waiting"])'; }
pattern "$rows,$first" '"rows":{"$":"rows"},"first":{"$":"first"}'
t "the first run"                              same "4 0 1 0" "$(counts)"
t "a second one only tries again what failed"  same "1 3 1 0" "$(counts)"
pattern "$rows,$first,$next" '"rows":{"$":"rows"},"first":{"$":"first"},"next":{"$":"next"}'
t "a node that is added runs"                  same "2 3 1 0" "$(counts)"
t "on what is there"                           same 11 "$(stet get piece:p/next)"
pattern "$rows,$first,$next,$all" '"rows":{"$":"rows"},"next":{"$":"next"},"all":{"$":"all"}'
t "who reads the whole child waits"            same "1 4 1 1" "$(counts)"
t "and has nothing"                            expect_status 3 stet get piece:p/all
stet -q set piece:p:argument/rows '[{"n":7}]'
t "until all of it is there"                   same 0 "$(stet run p.json --json | json failed)"
t "with everything"                            same '"[{\"bad\":7,\"good\":70}]" 71' "$(stet get piece:p/all) $(stet get piece:p/next)"

echo '{"pattern":1,"name":"m","argument":{"default":{"x":1,"y":1}},"cells":{"m":{"default":{"b":5}}},"nodes":['"$(node bad "({x}) => { if (x === 1) throw new Error('one'); return x }" '"x":{"$":"argument/x"}'),$(node read '({b}) => b' '"b":{"$":"m/b"}'),$(node next '({read, y}) => read + y' '"read":{"$":"read"},"y":{"$":"argument/y"}')"',{"id":"fill","materializerWriteInputPaths":["m"],"inputs":{"bad":{"$":"bad"},"m":{"$":"m","asCell":true}},"module":{"type":"javascript","implementation":"({bad, m}) => { m.key(\"b\").set(bad) }"}}],"result":{"next":{"$":"next"}}}' >m.json
stet run m.json >/dev/null
t "who reads where it may write waits"         expect_status 3 stet get piece:m/next
t "and a changed input does not alter that"    expect_status 1 stet run m.json --set y=2
t "there is still nothing"                     expect_status 3 stet get piece:m/next
t "until the materializer writes"              same "4 9" "$(stet run m.json --set x=7 --json | json ran) $(stet get piece:m/next)"
t "and what it has written is its own"         same "0 9" "$(stet run m.json --set x=1 --set y=3 --no-retry-failed --json | json stood) $(stet get piece:m/next)"

echo '{"pattern":1,"name":"far","argument":{"default":{"v":1}},"nodes":['"$(node f "({v}) => { if (v === 0) throw new Error('zero'); return v }" '"v":{"$":"argument/v"}')"'],"result":{"f":{"$":"f"}}}' >far.json
echo '{"pattern":1,"name":"q","nodes":['"$(node g "() => { throw new Error('at once') }" '"y":{"/":{"link@1":{"id":"piece:far:node:f","space":"other"}}}')"'],"result":{"g":{"$":"g"}}}' >q.json
aside() { stet run q.json --json | python3 -c 'import json,sys; o=json.load(sys.stdin); print(o["ran"],o["failed"],o["aside"],o["waiting"])'; }
stet -q run far.json --space other
t "it fails whatever it is given"              same "1 1 0 0" "$(aside)"
stet -q set piece:far:argument/v 0 --space other
t "and waits for what it is given"             same "1 1 0 1" "$(aside)"
t "each time"                                  same "1 1 0 1" "$(aside)"
stet -q set piece:far:argument/v 2 --space other
t "until that is there"                        same "2 1 0 0" "$(aside)"
t "the stores are whole"                       stet check
finish
