#!/usr/bin/env bash
# A watch takes up what other processes write, and what they overwrite; Ctrl-C ends it, and nothing is left over.
. "$STET_SOURCE/test/scenario/lib.sh"

ran() { stet run "$@" --json | json runs; }
# becomes CELL VALUE: within some seconds.
becomes() { for i in $(seq 40); do [ "$(stet get "$1")" = "$2" ] && return; sleep 0.1; done; echo "$1 is $(stet get "$1"), not $2"; return 1; }
stet init >/dev/null
cat >chain.json <<'JSON'
{"pattern":1,"name":"chain","argument":{"default":{"a":1,"b":10,"c":5}},"nodes":[
 {"id":"x","module":{"type":"ref","ref":"add"},"inputs":[{"$":"argument/a"},1]},
 {"id":"z","module":{"type":"ref","ref":"add"},"inputs":[{"$":"x"},{"$":"argument/b"}]},
 {"id":"q","module":{"type":"ref","ref":"add"},"inputs":[{"$":"argument/c"},1]}],
 "result":{"z":{"$":"z"},"q":{"$":"q"}}}
JSON
t "first run" same 3 "$(ran chain.json)"
stet set piece:chain:node:x 1 >/dev/null
t "an output that somebody overwrote does not stand" expect_out "somebody else changed what it had written" stet why chain x
t "it is restored, and what read it meanwhile is not fooled" same 12 "$(stet piece pull chain --json | json result.z)"

# A shell lets what it starts in the background ignore Ctrl-C: take that back.
python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$STET" run chain.json --watch >watch.log 2>&1 &
watcher=$!
stet set piece:chain:argument/c 30 >/dev/null
t "a watch takes up what others write" becomes piece:chain:node:q 31
stet set piece:chain:node:z 99 >/dev/null
t "and what they overwrite" becomes piece:chain:node:z 12
t "each of that was one run" same "2" "$(grep -c "ran 1" watch.log)"
sed 's/argument\/c"},1/argument\/c"},1000/' chain.json >next.json && mv next.json chain.json
t "another process gives the piece another program" stet run chain.json
t "which has run" becomes piece:chain:node:q 1030
stet set piece:chain:argument/c 40 >/dev/null
t "and the watch goes on with that one" becomes piece:chain:node:q 1040
kill -INT $watcher
wait $watcher
t "Ctrl-C ends it with status 130" same 130 $?
t "and nothing is left over" same 0 "$(ran chain.json)"
finish
