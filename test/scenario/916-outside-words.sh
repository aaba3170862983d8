#!/usr/bin/env bash
# Paths and variables that are not UTF-8 are refused with a message and leave nothing behind; files belong to the space of the piece; effects keep what they wrote; all that is wanted includes children.
. "$STET_SOURCE/test/scenario/lib.sh"

odd=$(printf 'd\xe9')
says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -Eq -- "$want"; }
in_dir() { (cd "$1" && shift && "$@"); }

mkdir "$odd" p
t "init refuses a path that is not UTF-8"          expect_status 2 in_dir "$odd" "$STET" init
t "and says what is not"                           says 'path of a project must be UTF-8' in_dir "$odd" "$STET" init
t "it has made nothing"                            test -z "$(ls -A "$odd")"
t "nor below one"                                  expect_status 2 in_dir "$odd" "$STET" init below
t "nothing is there"                               test -z "$(ls -A "$odd")"
(cd p && "$STET" -q init && mkdir "$odd" && echo '{"pattern":1,"name":"p","nodes":[],"result":1}' >"$odd/p.json")
for words in "run p.json" "status" "pattern check p.json" "doctor" "convert --to toml p.json" "file scan" "init" "project add" "history" "queue list" "call list"; do
    in_dir "p/$odd" "$STET" $words >out 2>&1 </dev/null
    t "stet $words does not die there"             test $? -lt 128
done
t "a run there is refused"                         says 'path of the current directory is not UTF-8' in_dir "p/$odd" "$STET" run p.json
mv p "$odd/p" && t "a project whose path is not UTF-8 is refused" says 'is not UTF-8' in_dir "$odd/p" "$STET" status
rm -rf "${odd:?}"
t "a state directory that is not UTF-8, too"       says 'STET_HOME is .*not UTF-8' env STET_HOME="/tmp/$odd" "$STET" project list

stet -q init
echo hi >x.txt
stet -q set --space aux z 1
echo '{"pattern":1,"name":"s","nodes":[{"id":"s","inputs":{"value":{"/":{"link@1":{"id":"file:x.txt","space":"aux","path":["size"]}}}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"s"}}' >s.json
t "a pattern can't link to a file of a space"      says 'leave "space" out' stet run s.json
t "it is refused"                                  expect_status 2 stet run s.json
echo '{"pattern":1,"name":"d","nodes":[{"id":"s","inputs":{"value":{"/":{"link@1":{"id":"doc","path":["size"]}}}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"s"}}' >d.json
stet -q set doc '{"/":{"link@1":{"id":"file:x.txt","space":"aux"}}}'
t "a link in a value that leads there fails"       says 'failed d/s: .*space "aux" knows nothing of "file:x.txt"' stet run d.json
t "with status 1"                                  expect_status 1 stet run d.json
echo '{"pattern":1,"name":"q","nodes":[{"id":"s","inputs":{"value":{"/":{"link@1":{"id":"file:x.txt","path":["size"]}}}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"s"}}' >q.json
stet -q run q.json --space aux
t "once that space follows the file"               stet run d.json
t "the value is there"                             same 3 "$(stet get piece:d)"
echo longer >x.txt
t "and follows the file"                           same 7 "$(stet -q run d.json; stet get piece:d)"

cat >e.json <<'J'
{"pattern":1,"name":"e","argument":{"default":{"k":0}},"cells":{"c":{"default":0}},"nodes":[
{"id":"other","inputs":{"k":{"$":"argument/k"}},"module":{"type":"javascript","implementation":"({k}) => 1"}},
{"id":"ef","kind":"effect","inputs":{"k":{"$":"argument/k"},"c":{"$":"c","asCell":true}},"module":{"type":"javascript","implementation":"({k,c}) => { c.set(c.get() + 1); return k }"}}],"result":{"o":{"$":"other"},"c":{"$":"c"}}}
J
stet -q run e.json
for k in 1 2 3; do stet -q run e.json --set k=$k; done
t "an effect counts"                               same 4 "$(stet get piece:e/c)"
sed -i 's/({k}) => 1/({k}) =>  1/' e.json
t "an edit of another node runs that node"         same 1 "$(stet run e.json --json | json ran)"
t "the count stays"                                same 4 "$(stet get piece:e/c)"
sed -i 's/"default":0}}/"default":100}}/' e.json
t "so it does with a new default"                  same 4 "$(stet -q run e.json; stet get piece:e/c)"
t "and goes on from there"                         same 5 "$(stet -q run e.json --set k=9; stet get piece:e/c)"

cat >w.json <<'J'
{"pattern":1,"name":"w","wanted":"all","argument":{"default":{"l":[1,2]}},
"nodes":[{"id":"m","inputs":{"list":{"$":"argument/l"}},"module":{"type":"ref","ref":"map","pattern":{"pattern":1,"name":"c","nodes":[{"id":"y","inputs":{"a":{"$":"argument/element"}},"module":{"type":"javascript","implementation":"({a}) => a*2"}}],"result":{"$":"y"}}}}],
"result":{"n":1}}
J
stet -q run w.json
t "children of what is wanted have run"            same '[2,4]' "$(stet get piece:w:node:m | tr -d ' \n')"
t "nothing is left"                                same 0 "$(stet run w.json --json | json ran)"
t "a new element is computed as well"              same '[2,4,6]' "$(stet -q run w.json --set l='[1,2,3]'; stet get piece:w:node:m | tr -d ' \n')"
finish
