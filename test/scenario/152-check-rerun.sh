#!/usr/bin/env bash
# `check --rerun` runs again what is up to date, in a scratch copy, and compares: a wrong result that nothing else knows of is found, and nothing changes.
. "$STET_SOURCE/test/scenario/lib.sh"

sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(".stet/local/spaces/main.db"); c.executescript(sys.argv[1])' "$1"; }
lk() { printf '{"/":{"link@1":{"id":"%s","path":[]%s}}}' "$1" "${2:+,\"space\":\"$2\"}"; }
rerun() { stet check --only memory --rerun "${2:-all}" --json | json "rerun.$1"; }

stet -q init
t "a project without pieces has nothing to compare"  same 0 "$(rerun compared)"
stet -q set rate 4 --space prices
cat >p.json <<E
{"pattern":1,"name":"p","argument":{"default":{"x":3,"rows":[{"id":"a","n":1},{"id":"b","n":2}]}},"nodes":[
 {"id":"twice","inputs":{"v":{"\$":"argument/x"}},"module":{"type":"javascript","implementation":"({v}) => v * 2"}},
 {"id":"minus","inputs":{"value":{"\$":"twice"}},"module":{"type":"ref","ref":"negate"}},
 {"id":"far","inputs":[{"\$":"argument/x"},$(lk rate prices)],"module":{"type":"ref","ref":"multiply"}},
 {"id":"code","inputs":{"v":{"\$":"argument/x"}},"module":{"type":"javascript","implementation":{"file":"lib.js","export":"f"}}},
 {"id":"items","inputs":{"list":{"\$":"argument/rows"}},"module":{"type":"ref","ref":"map","key":"id","pattern":{"pattern":1,"name":"c",
  "nodes":[{"id":"y","inputs":{"value":{"\$":"argument/element/n"}},"module":{"type":"ref","ref":"negate"}}],"result":{"\$":"y"}}}},
 {"id":"note","kind":"effect","inputs":{"v":{"\$":"minus"}},"module":{"type":"javascript","implementation":"({v}) => v"}},
 {"id":"copy","inputs":{"v":{"\$":"twice"}},"module":{"type":"command","argv":["sh","-c","echo 1 >out.txt"],"produces":{"out":"out.txt"}}}],
 "result":{"m":{"\$":"minus"},"f":{"\$":"far"},"k":{"\$":"code"},"i":{"\$":"items"},"c":{"\$":"copy"}}}
E
echo 'export const f = ({v}) => v + 1' >lib.js
t "a piece with one of everything"                   stet run p.json
stet -q branch create dev
stet -q set piece:p:argument/x 9 --branch dev
stet -q run p.json --branch dev
t "everything is what its action computes"           same 0 "$(rerun differ)"
t "on all branches, children included"               same 14 "$(rerun compared)"
t "but commands and effects"                         same 4 "$(rerun leftOut)"
t "and people are told so"                           expect_out "14 of 18 actions compared, 4 left out (commands, calls, effects): all the same" stet check --rerun all
t "a number of them"                                 same 5 "$(rerun compared 5)"
t "the same ones with the same seed"                 bash -c 'a=$("$STET" check --rerun 3 --seed 11 --json); b=$("$STET" check --rerun 3 --seed 11 --json); [ "$a" = "$b" ]'
t "without a number a hundred"                       expect_out "14 of 18 actions compared, 4 left out (commands, calls, effects), seed " stet check --rerun
t "a number of nothing is refused"                   expect_err "is not a number of actions" stet check --rerun 0
t "and a number without --rerun"                     expect_err "only for --rerun" stet check 5
t "nothing in the project changes"                   bash -c 'all() { find . -type f ! -name "*-shm" ! -name "*lock*" -exec sha256sum {} + | sort -k2; }; all >../before; "$STET" check --rerun all; all | diff ../before -'
t "nor is anything left in the temporary directory"  bash -c 'dir=$(mktemp -d) && TMPDIR=$dir "$STET" check --rerun all && rmdir "$dir"'

stet -q set piece:p:argument/x 5
t "what is outdated is not compared"                 same 3 "$(rerun outdated)"
t "and is not wrong"                                 same 0 "$(rerun differ)"
echo 'export const f = ({v}) => v + 2' >lib.js
t "nor what has code that nobody has looked at yet"  same 0 "$(rerun differ)"
stet -q run p.json && stet -q run p.json --branch dev
cp p.json whole.json
sed -i 's/v \* 2/v * 3/' p.json
t "an edited pattern counts as it is now"            same 0 "$(rerun differ)"
t "what was made of it before is outdated, on each branch" bash -c '[ "$("$STET" check --only memory --rerun all --json | python3 -c "import json,sys; print(json.load(sys.stdin)[\"rerun\"][\"outdated\"])")" -ge 2 ]'
echo '{' >p.json
t "one that can't be read is told"                   expect_out "; compared as it was set up" stet check --rerun all
t "and its piece is compared as it was"              same 14 "$(rerun compared)"
cp whole.json p.json && stet -q run p.json && stet -q run p.json --branch dev

stet -q set piece:p:node:minus '"wrong"' --branch dev
sql "DELETE FROM mark; UPDATE space_meta SET value = 0 WHERE name = 'digest:mark'"
t "a wrong result that is called up to date is found" same '"wrong"' "$(rerun wrong.0.differences.0.stored)"
t "with what it must be"                             same -18 "$(rerun wrong.0.differences.0.recomputed)"
t "and where"                                        same "dev p minus" "$(rerun wrong.0.branch) $(rerun wrong.0.piece) $(rerun wrong.0.node)"
t "the exit status says so"                          expect_status 1 stet check --rerun all
t "and people are told"                              bash -c '"$STET" check --rerun all | grep -q "p/minus (branch dev)"'
t "repair finds the mark that is missing"            bash -c '"$STET" check --repair; "$STET" run p.json --branch dev'
t "and then all is well"                             same 0 "$(rerun differ)"

mkdir state && cd state && stet -q init
echo '{"pattern":1,"name":"s","argument":{"default":{"x":1}},"cells":{"n":{"default":0}},"nodes":[{"id":"w","inputs":{"x":{"$":"argument/x"},"c":{"$":"n","asCell":true}},"materializerWriteInputPaths":["c"],"module":{"type":"javascript","implementation":"({x, c}) => { c.set(c.get() + x) }"}}],"result":{"$":"n"}}' >s.json
stet -q run s.json
t "what an action carries on itself is left out"     same "0 1" "$(rerun compared) $(rerun leftOut)"
cd ..

python3 - <<'E' >large.json
import json
nodes = [{"id": f"n{i}", "inputs": [{"$": f"n{i-1}" if i else "argument/x"}, 1], "module": {"type": "ref", "ref": "add"}} for i in range(20000)]
print(json.dumps({"pattern": 1, "name": "large", "argument": {"default": {"x": 1}}, "nodes": nodes, "result": {"$": "n19999"}}))
E
stet -q run large.json
t "a large project takes no more memory for it"      python3 -c '
import json, os, resource, subprocess
out = subprocess.run([os.environ["STET"], "check", "--only", "memory", "--rerun", "all", "--json"], capture_output=True, text=True)
rss = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
r = json.loads(out.stdout)["rerun"]
assert r["compared"] == 20014 and r["differ"] == 0, r
assert rss < 200, rss'
finish
