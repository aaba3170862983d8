#!/usr/bin/env bash
# The script of a pattern that runs without an end hears Ctrl-C on every surface that runs it, and has a time limit with a clear error.
. "$STET_SOURCE/test/scenario/lib.sh"
stet -q init
good='pattern("p", { x: 1 }, ({ x }) => ({ y: lift(({ x }) => x + 1)({ x }) }));'
echo "$good" >p.js
stet -q run p.js
printf '\n[module.javascript]\ntime_limit_ms = 600000\n' >>.stet/config.toml
echo "while (true);" >p.js
# stopped SIGNAL COMMAND...: exit status 130 after the signal
stopped() {
    local signal=$1 pid
    shift
    "$STET" "$@" >out 2>&1 &
    pid=$!
    for _ in $(seq 1200); do # until it has looped for half a second of processor time
        [ "$(awk '{ print $14 }' /proc/$pid/stat 2>/dev/null || echo 999)" -gt 50 ] && break
        sleep 0.05
    done
    kill -$signal $pid
    wait $pid
    local got=$?
    [ $got = 130 ] || { echo "status $got"; cat out; return 1; }
}
set -m # a job in the background of a script ignores SIGINT otherwise
t "stet run"                  stopped INT run p.js
t "with SIGTERM, too"         stopped TERM run p.js
t "stet status"               stopped INT status
t "stet why"                  stopped INT why p
t "stet piece show"           stopped INT piece show p
t "stet get --fresh"          stopped INT get piece:p/y --fresh
t "stet piece pull"           stopped INT piece pull p
t "stet run --dry-run"        stopped INT run p.js --dry-run
t "stet run --watch"          stopped INT run p.js --watch
t "stet pattern check"        stopped INT pattern check p.js
t "stet pattern convert"      stopped INT pattern convert p.js
sed -i 's/^time_limit_ms.*/time_limit_ms = 300/' .stet/config.toml
t "the limit of the project counts"        expect_err "p.js: the script of the pattern: stopped: it ran longer than 300 ms" stet run p.js
t "and the error says how to raise it"     expect_err "raise time_limit_ms or memory_limit_mb in [module.javascript]" stet run p.js
t "its exit status is that of a limit"     expect_status 10 stet run p.js
t "what rests on it is not up to date"     expect_out "the script of the pattern: stopped" stet status
echo "$good" >p.js
t "mended, the piece is up to date"        same 2 "$(stet get piece:p/y --fresh)"
finish
