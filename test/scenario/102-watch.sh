#!/usr/bin/env bash
# watch: changes by other processes, in order, each once, with their leaves; count, time-out, interruption.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
t "no space yet"                     expect_status 3 stet watch a --timeout 0.1
stet -q set a '{"n":0}'
stet watch a/n --count 20 --json >events 2>err &
watcher=$!
sleep 0.3
for i in 1 2 3 4 5 6 7 8 9 10; do stet -q set a/n $((2 * i - 1)); stet -q set a/other "$i"; stet -q set a/n $((2 * i)); done
t "it ends after its count"          wait $watcher
t "every event, in order, once"      same "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 " "$(grep changes events | python3 -c 'import json,sys
for line in sys.stdin: print(json.loads(line)["value"], end=" ")')"
t "with the leaf that changed"       same '[{"id":"a","kind":"value","path":"/value/n","scope":""}]' "$(head -1 events | json changes)"
t "the result comes last"            same 20 "$(tail -1 events | json events)"
t "from the start"                   same 22 "$(stet watch a --after 0 --count 22 --json | grep -c changes)"
t "a time-out ends it well"          same 0 "$(stet watch a --timeout 0.2 --json | json events)"
t "everything"                       same 31 "$(stet watch --after 0 --timeout 0.1 --json | tail -1 | json events)"
t "shallow: only when keys change"   same 2 "$(stet watch a --shallow --after 0 --timeout 0.1 --json | tail -1 | json events)"
stet -q branch create b
stet -q set a/n 99 --branch b
t "one branch at a time"             same 99 "$(stet watch a/n --branch b --after 0 --count 1 --json | head -1 | json value)"
t "interrupted: 130"                 expect_status 130 timeout --preserve-status -s INT 0.4 "$STET" watch a
finish
