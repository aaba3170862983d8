#!/usr/bin/env bash
# stet run --watch takes up changes of files, and hard links where they are allowed.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
printf 'name = "w"\n[nodes.up]\ncommand = "tr a-z A-Z < {in} > {out}"\nfiles = "in"\nproduces = "out"\n' >stet.toml
echo one >in
await() { # await TEXT FILE: at most 10 seconds
    for _ in $(seq 200); do [ "$(cat "$2" 2>/dev/null)" = "$1" ] && return 0; sleep 0.05; done
    echo "$2 is $(cat "$2")"
    return 1
}
"$STET" run --watch >watch.out 2>&1 &
watcher=$!
t "the first result"                    await ONE out
echo two >in
t "a change is taken up"                await TWO out
rm out
t "an output that is gone is put back"  await TWO out
kill -TERM $watcher
wait $watcher
t "SIGTERM ends it"                     same 130 $?

printf '\n[module.command]\nhardlink = true\n' >>.stet/config.toml
rm out
t "put back as a hard link"             sh -c '"$STET" run >/dev/null && test "$(stat -c %h out)" = 2 && grep -q TWO out'
echo three >in
t "which the next command does not write through" sh -c '"$STET" run >/dev/null && grep -q THREE out && test "$(stat -c %h out)" = 1'
echo two >in
t "so that the kept result is whole"    sh -c '"$STET" run >/dev/null && grep -q TWO out'
finish
