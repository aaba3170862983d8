#!/usr/bin/env bash
# Pull crosses spaces: an outdated action of any space that writes what is wanted runs first, and until then its readers elsewhere are stale.
. "$STET_SOURCE/test/scenario/lib.sh"

lk() { printf '{"/":{"link@1":{"id":"%s","path":[],"space":"%s"}}}' "$1" "$2"; }
state() { stet action show "$1" "$2" --json "${@:3}" | json state; }
result() { stet piece show "$1" --json "${@:2}" | json result; }
says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -Eq -- "$want"; }
# piece FILE NAME INPUT: one node that adds 1.
piece() { echo '{"pattern":1,"name":"'"$2"'","argument":{"default":{"x":1}},"nodes":[{"id":"n","inputs":['"$3"',1],"module":{"type":"ref","ref":"add"}}],"result":{"n":{"$":"n"}}}' >"$1"; }

stet -q init
piece a.json a '{"$":"argument/x"}'
piece b.json b "$(lk piece:a:node:n one)"
piece c.json c "$(lk piece:b:node:n two)"
stet -q run a.json --space one; stet -q run b.json --space two; stet -q run c.json --space three
t "a chain over three spaces"                        same '{"n":4}' "$(result c --space three)"
stet -q set piece:a:argument/x 10 --space one
t "the first is dirty"                               same dirty "$(state a n --space one)"
t "the second and the third are stale"               same "stale stale" "$(state b n --space two) $(state c n --space three)"
t "status counts it so"                              same 1 "$(stet status --space three --json | json pieces.0.stale)"
t "why names the action and its space"               says "c/n is stale: .*a/n is dirty: .*piece:a:argument/x was written .*in space one" stet why c n --space three
t "a dry run says so"                                same stale "$(stet run c.json --space three --dry-run --json | json actions.0.state)"
t "nothing was run by looking"                       same dirty "$(state a n --space one)"
t "a pull of the third runs all of them"             same 13 "$(stet get piece:c/n --fresh --space three)"
t "and then each stands"                             same "stands stands stands" "$(state a n --space one) $(state b n --space two) $(state c n --space three)"
stet -q set piece:a:argument/x 20 --space one
t "a run counts what ran elsewhere"                  same 3 "$(stet run c.json --space three --json | json ran)"
t "and is right"                                     same '{"n":23}' "$(result c --space three)"
t "and has nothing left to do"                       same 0 "$(stet run c.json --space three --json | json ran)"
stet -q set piece:a:argument/x 25 --space one; stet -q run a.json --space one
t "why names who wrote in another space, and when"   says "b/n is dirty: .*piece:a:node:n in space one was written at sequence [0-9]+ by a/n at 20" stet why b n --space two
stet -q set piece:a:argument/x 20 --space one; stet -q run c.json --space three
stet -q set unrelated 1 --space one
t "what nobody reads changes nothing"                same stands "$(state c n --space three)"

# What is not wanted does not run: a second piece of the first space.
piece z.json z '{"$":"argument/x"}'
stet -q run z.json --space one; stet -q set piece:z:argument/x 5 --space one; stet -q set piece:a:argument/x 30 --space one
stet -q run c.json --space three
t "only what is wanted runs elsewhere"               same "stands dirty 33" "$(state a n --space one) $(state z n --space one) $(stet get piece:c/n --fresh --space three)"

# First runs: the reader comes first, its spaces have never run.
mkdir two && (cd two && stet -q init && cp ../[abc].json . && stet -q set piece:a:argument '{"x":1}' --space one)
cd two; sed -i 's|"result":{|"result":{"none":0,|' a.json
t "a space with a piece that never ran"              stet -q run a.json --space one --demand none
stet -q run b.json --space two; stet -q run c.json --space three
sql() { python3 -c 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()' ".stet/local/spaces/$1.db" "$2"; }
sql one 'DELETE FROM action; DELETE FROM mark; DELETE FROM place_index'
t "tables of another space emptied: readers stale"   same stale "$(state c n --space three)"
stet -q set piece:a:argument/x 40 --space one
t "and a pull runs what has no record there"         same 43 "$(stet get piece:c/n --fresh --space three)"
cd ..

# A failure elsewhere.
echo '{"pattern":1,"name":"a","argument":{"default":{"x":1}},"nodes":[{"id":"n","inputs":{"x":{"$":"argument/x"}},"module":{"type":"javascript","implementation":"({x}) => { if (x < 0) throw new Error(\"negative\"); return x + 1 }"}}],"result":{"n":{"$":"n"}}}' >a.json
stet -q run a.json --space one; stet -q run c.json --space three
stet -q set piece:a:argument/x -1 --space one
t "a failure in another space fails the run"         expect_status 1 stet run c.json --space three
t "a run tries it again, and names what it said"     says "failed a/n: .*negative" stet run c.json --space three
t "once, and not as one that failed before"          same "1 0" "$(stet run c.json --space three --json | python3 -c 'import json, sys; r = json.load(sys.stdin); print(len(r["problems"]), len(r.get("failedBefore", [])))')"
t "also by a run that does not try again"            says "failed before a/n: .*negative" stet run c.json --space three --no-retry-failed
t "which fails as well"                              expect_status 1 stet run c.json --space three --no-retry-failed
t "as the one that tries again does"                 expect_status 1 stet run c.json --space three
stet -q set piece:a:argument/x 50 --space one
t "mended, all goes on"                              same 53 "$(stet get piece:c/n --fresh --space three)"

# The same where nothing ever succeeded: only the graph tells what the first one writes.
mkdir never && cp [abc].json never && cd never && stet -q init
sed -i 's/"x":1}/"x":-1}/' a.json
for p in a:one b:two c:three; do stet -q run ${p%:*}.json --space ${p#*:} >/dev/null; done
t "a failure that was never a success counts"        says "failed before a/n: .*negative" stet run c.json --space three --no-retry-failed
t "and fails the run"                                expect_status 1 stet run c.json --space three --no-retry-failed
cd ..

# One that writes to a cell it is given: the record tells where.
echo '{"pattern":1,"name":"w","argument":{"default":{"x":1}},"cells":{"out":{"default":{}}},"nodes":[{"id":"n","inputs":{"x":{"$":"argument/x"},"c":{"$":"out","asCell":true}},"materializerWriteInputPaths":["c"],"module":{"type":"javascript","implementation":"({x, c}) => { if (x < 0) throw new Error(\"negative\"); c.key(\"a\").set(x) }"}}],"result":{"n":{"$":"n"}}}' >w.json
echo '{"pattern":1,"name":"v","nodes":[{"id":"n","inputs":{"value":{"/":{"link@1":{"id":"piece:w:cell:out","path":["a"],"space":"cells"}}}},"module":{"type":"ref","ref":"value"}}],"result":{"n":{"$":"n"}}}' >v.json
stet -q run w.json --space cells; stet -q run v.json --space views
t "a cell that another space's action writes"        same '{"n":1}' "$(result v --space views)"
stet -q set piece:w:argument/x -1 --space cells; stet -q run v.json --space views 2>/dev/null
t "a failure of the one that writes it counts"       says "failed before w/n: .*negative" stet run v.json --space views --no-retry-failed

# A circle of spaces that comes to rest: min(other, own).
echo '{"pattern":1,"name":"l","argument":{"default":{"x":9}},"nodes":[{"id":"n","inputs":{"a":{"$":"argument/x"},"b":'"$(lk piece:r:node:n right)"'},"module":{"type":"javascript","implementation":"({a,b}) => b == null ? a : Math.min(a, b)"}}],"result":{"n":{"$":"n"}}}' >l.json
sed 's/piece:r:/piece:l:/; s/"right"/"left"/; s/"name":"l"/"name":"r"/' l.json >r.json
stet -q run l.json --space left 2>/dev/null; stet -q run r.json --space right; stet -q run l.json --space left
stet -q set piece:r:argument/x 3 --space right
t "a circle over spaces comes to rest"               same '{"n":3}' "$(stet -q run l.json --space left; result l --space left)"
t "and both stand"                                   same "stands stands" "$(state l n --space left) $(state r n --space right)"

# A watch of the reader sees an edit two spaces away.
stet -q run --watch c.json --space three >watch.out 2>&1 & watch=$!
settle() { for _ in $(seq 300); do [ "$(result c --space three)" = "$1" ] && return 0; sleep 0.05; done; result c --space three; return 1; }
t "a watch begins"                                   settle '{"n":53}'
stet -q set piece:a:argument/x 60 --space one
t "and follows an edit two spaces away"              settle '{"n":63}'
kill $watch; wait $watch 2>/dev/null

# A reader on a branch reads the default branch of other spaces.
stet -q branch create dev --space three
stet -q set piece:a:argument/x 70 --space one
t "on a branch, too, the other spaces run first"     same 73 "$(stet get piece:c/n --fresh --space three --branch dev)"

# Files of another space.
cat >stet.toml <<'TOML'
name = "f"
[nodes.text]
command = ["cat", "in.txt"]
files = { in = "in.txt" }
stdout = "text"
TOML
echo one >in.txt
echo '{"pattern":1,"name":"g","nodes":[{"id":"n","inputs":{"value":'"$(lk piece:f:node:text files)"'},"module":{"type":"ref","ref":"value"}}],"result":{"n":{"$":"n"}}}' >g.json
stet -q run stet.toml --space files; stet -q run g.json --space reader
sleep 0.02; echo two >in.txt
t "a file that another space's command reads"        bash -c '"$STET" -q run g.json --space reader && "$STET" piece show g --space reader --json | grep -q two'

# A materializer runs without being asked for: what it reads in another space, itself or over another action, is made fresh first.
mkdir idle && cd idle && stet -q init
echo '{"pattern":1,"name":"q","argument":{"default":{"k":1}},"nodes":[{"id":"v","inputs":{"value":{"$":"argument/k"}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"v"}}' > q.json
for way in direct between; do
    [ $way = direct ] && x='{"/":{"link@1":{"id":"piece:q:node:v","space":"far"}}}' || x='{"$":"n"}'
    echo '{"pattern":1,"name":"'$way'","cells":{"m":{"default":{}}},"nodes":[{"id":"n","inputs":{"value":{"/":{"link@1":{"id":"piece:q:node:v","space":"far"}}}},"module":{"type":"ref","ref":"value"}},{"id":"w","inputs":{"x":'"$x"',"m":{"$":"m","asCell":true}},"materializerWriteInputPaths":["m"],"module":{"type":"javascript","implementation":"({x, m}) => { m.set(x) }"}}],"result":{}}' > $way.json
done
stet -q run q.json --space far; stet -q run direct.json; stet -q run between.json
stet -q set piece:q:argument/k 2 --space far
for way in direct between; do
    t "$way: it is stale"                         same 1 "$(stet status $way --json | json pieces.0.stale)"
    stet -q run $way.json
    t "$way: a run writes the new value"          same 2 "$(stet get piece:$way:cell:m)"
    t "$way: and nothing is left to do"           same 0 "$(stet run $way.json --json | json ran)"
done
finish
