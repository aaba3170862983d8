#!/usr/bin/env bash
# What stands, stands across processes; what a write reaches runs, whoever wrote it; and nothing else does.
. "$STET_SOURCE/test/scenario/lib.sh"

ran() { stet run "$@" --json | json runs; }
stet init >/dev/null
cat >chain.json <<'JSON'
{"pattern":1,"name":"chain","argument":{"default":{"a":1,"b":10,"c":5}},"nodes":[
 {"id":"x","module":{"type":"ref","ref":"add"},"inputs":[{"$":"argument/a"},1]},
 {"id":"y","module":{"type":"ref","ref":"min"},"inputs":[{"$":"x"},100]},
 {"id":"z","module":{"type":"ref","ref":"add"},"inputs":[{"$":"y"},{"$":"argument/b"}]},
 {"id":"q","module":{"type":"ref","ref":"add"},"inputs":[{"$":"argument/c"},1]}],
 "result":{"z":{"$":"z"},"q":{"$":"q"}}}
JSON
cat >reader.json <<'JSON'
{"pattern":1,"name":"reader","nodes":[
 {"id":"twice","module":{"type":"ref","ref":"multiply"},"inputs":[{"/":{"link@1":{"id":"piece:chain","path":["z"]}}},2]},
 {"id":"rate","module":{"type":"ref","ref":"multiply"},"inputs":[3,{"/":{"link@1":{"id":"rates","path":["now"],"space":"other"}}}]}],
 "result":{"twice":{"$":"twice"},"rate":{"$":"rate"}}}
JSON
stet set rates/now 7 --space other >/dev/null

t "first run" same 4 "$(ran chain.json)"
t "a clean piece restarts with zero runs" same 0 "$(ran chain.json)"
stet set unrelated 1 >/dev/null
stet set piece:chain:argument/unread 1 >/dev/null
t "an unrelated write dirties nothing" same 0 "$(ran chain.json)"
stet set piece:chain:argument/a 2 >/dev/null
t "an overlapping one dirties its reader" same x "$(stet action list chain --state dirty --json | json actions.0.action)"
t "what follows is stale" same 2 "$(stet status chain --json | json pieces.0.stale)"
t "why says which write" expect_out "x is dirty: something it read changed: piece:chain:argument/a was written at sequence" stet why chain x
t "exactly the affected chain runs" same 3 "$(ran chain.json)"
t "with the right result" same 13 "$(stet piece pull chain --json | json result.z)"

t "another piece reads the first, and another space" same 2 "$(ran reader.json)"
t "with the right results" same '{"rate":21,"twice":26}' "$(stet piece pull reader --json | json result)"
stet set piece:chain:argument/b 20 >/dev/null
stet run chain.json >/dev/null
t "an inactive piece was dirtied by another piece" same 1 "$(ran reader.json)"
stet set piece:chain:argument/b 30 >/dev/null
t "what it needs of another piece runs first" same 2 "$(ran reader.json)"
t "and gives the right result" same 66 "$(stet piece pull reader --json | json result.twice)"
stet set rates/then 1 --space other >/dev/null
t "an unrelated write in the other space" same 0 "$(ran reader.json)"
stet set rates/now 8 --space other >/dev/null
t "a write in the other space dirties" same 1 "$(ran reader.json)"
t "and only there" same 0 "$(ran chain.json)"

stet set piece:chain:argument/a 200 >/dev/null
stet run chain.json >/dev/null
stet set piece:chain:argument/a 300 >/dev/null
t "a rerun with the same value leaves what is downstream standing" same 2 "$(ran chain.json)"
stet set piece:chain:argument/a 400 >/dev/null
# Killed somewhere in the middle of storing: whatever was stored by then stands, the rest runs.
STET_FAULT="call=fsync,n=2,action=kill" faulty run chain.json >/dev/null 2>&1
t "also when the process died in between" stet run chain.json
t "nothing is left then" same 0 "$(ran chain.json)"
t "and the result is right" same 130 "$(stet piece pull chain --json | json result.z)"

stet set piece:chain:node:y 1 >/dev/null
t "an output that somebody overwrote is restored" same 130 "$(stet piece pull chain --json | json result.z)"

t "a fresh value on demand" same 130 "$(stet get piece:chain/z --fresh --json | json value)"
stet set piece:chain:argument/c 9 >/dev/null
t "makes only what it needs" same 10 "$(stet get piece:chain/q --fresh --json | json value)"
t "so nothing is left" same 0 "$(ran chain.json)"

sed 's/"add"},"inputs":\[{"\$":"argument\/c"},1/"add"},"inputs":[{"$":"argument\/c"},2/' chain.json >next.json && mv next.json chain.json
t "a changed implementation runs alone" same 1 "$(ran chain.json)"
sed 's/{"id":"q"/{"id":"q","resultSchema":{"type":"integer"}/' chain.json >next.json && mv next.json chain.json
t "a changed schema makes it unknown" same 1 "$(ran chain.json)"
sed 's/{"id":"q"/{"id":"q","debounceMs":1/' chain.json >next.json && mv next.json chain.json
t "changed timing does not" same 0 "$(ran chain.json)"
stet branch create try >/dev/null
t "on another branch nothing is known" same 4 "$(ran chain.json --branch try)"
t "but then it stands there" same 0 "$(ran chain.json --branch try)"
t "as it does on the first" same 0 "$(ran chain.json)"
echo '[scheduler]
persist = false' >>.stet/config.toml
t "switched off, every start runs everything" same 4 "$(ran chain.json)"
sed -i '/scheduler/,$d' .stet/config.toml
stet set piece:chain:argument/c 20 >/dev/null
t "switched on again, it goes on" same 22 "$(stet piece pull chain --json | json result.q)"

# A shell lets what it starts in the background ignore Ctrl-C: take that back.
python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$STET" run chain.json --watch >watch.log 2>&1 &
watcher=$!
sleep 0.7
stet set piece:chain:argument/c 30 >/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do [ "$(stet piece show chain --json | json result.q)" = 32 ] && break; sleep 0.3; done
t "a watch takes up what others write" same 32 "$(stet piece show chain --json | json result.q)"
kill -INT $watcher
wait $watcher
t "Ctrl-C ends it with status 130" same 130 $?
t "and nothing is left over" same 0 "$(ran chain.json)"
finish
