#!/usr/bin/env bash
# A stop is heard while a JavaScript function runs: the run ends, and the function counts as not run, not as failed.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
echo '{"pattern":1,"name":"f","argument":{"default":{"on":true}},"nodes":[{"id":"n","inputs":{"on":{"$":"argument/on"}},"module":{"type":"javascript","limits":{"timeMs":600000},"implementation":"({on}) => { while (on); return 1 }"}}],"result":{"$":"n"}}' >f.json
"$STET" run f.json >out 2>&1 &
pid=$!
for _ in $(seq 600); do # until it has looped for a second of processor time
    [ "$(awk '{ print $14 }' /proc/$pid/stat)" -gt 100 ] && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
t "the run says that it was stopped"   same 130 $?
t "the function did not fail"          same "unknown" "$(stet action list f --json | json actions.0.state)"
t "and runs when it may"               same "1 1" "$(stet run f.json --set on=false --json | json ran) $(stet get piece:f)"
finish
