#!/usr/bin/env bash
# Standard streams that fail or are not there, no terminal, a terminal, and Ctrl-C.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init --quiet

full() { "$STET" "$@" >/dev/full; }
t "standard output on a full disk is io"      expect_status 7 full help
t "with a message"                            expect_err "standard output" bash -c '"$STET" help >/dev/full'
t "also for --version"                        expect_status 7 full --version
t "also for an error as JSON"                 expect_status 7 full --json frob
t "also for much output"                      expect_status 7 full help --reference

closed() { "$STET" "$@" >&-; }
t "closed standard output is io"              expect_status 7 closed help
t "and says so"                               expect_err "standard output is closed" bash -c '"$STET" help >&-'
t "no file of ours becomes standard output"   expect_status 7 closed project add
t "so that the list is whole"                 same 1 "$(stet project list --json | json total)"
all_closed() { "$STET" check <&- 2>&-; }
t "closed standard input and error"           all_closed

set -o pipefail
head_of() { "$STET" help --reference | head -1; }
t "a reader that goes away is no failure"     expect_out "# Reference" head_of
gone() { { sleep 0.1; "$STET" help --reference; } | true; }
t "nor one that never read"                   gone
t "and nothing is said about it"              test -z "$( { { sleep 0.1; "$STET" help --reference; } | true; } 2>&1 )"
status_of_pipe() { { sleep 0.1; "$STET" help nothing --json; } | true; }
t "the status is that of what was done"       expect_status 3 status_of_pipe
set +o pipefail

t "no terminal"                               setsid --wait "$STET" doctor
t "no terminal, nothing to read"              setsid --wait "$STET" check

# On a terminal, through a pseudo-terminal.
on_terminal() { env -u NO_COLOR TERM="$1" python3 -c '
import os, pty, sys
out = b""
def read(fd):
    global out
    data = os.read(fd, 65536)
    out += data
    return data
saved = os.dup(1)
os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
pty.spawn(sys.argv[1:], read, lambda fd: b"")
os.dup2(saved, 1)
sys.stdout.buffer.write(out)' "$STET" "${@:2}" </dev/null; }
escape=$(printf '\033')
t "colour on a terminal"                      expect_out "$escape[32mok" on_terminal xterm doctor
t "none on a dumb one"                        not expect_out "$escape" on_terminal dumb doctor
t "none with --color=never"                   not expect_out "$escape" on_terminal xterm doctor --color=never
t "none with NO_COLOR"                        not expect_out "$escape" env NO_COLOR=1 TERM=xterm script -qec "$STET doctor" /dev/null
t "none into a pipe"                          not expect_out "$escape" env -u NO_COLOR TERM=xterm "$STET" doctor
t "unless asked for"                          expect_out "$escape[32mok" stet doctor --color always

# Ctrl-C while waiting for a lock that somebody else holds.
cat >hold.py <<'PY'
import fcntl, os, struct, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.fcntl(fd, 37, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0) + b"\0" * 4)  # F_OFD_SETLK
print("held", flush=True)
time.sleep(60)
PY
coproc HOLD { exec python3 hold.py "$STET_HOME/registry/repos.lock"; }
holder=$HOLD_PID
read -r line <&"${HOLD[0]}"
# start SIGNAL: runs an operation that waits, signals it, prints its status and how long it took in ms.
interrupted() {
    python3 - "$STET" "$@" <<'PY'
import signal, subprocess, sys, time
program, name, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
process = subprocess.Popen([program, "project", "add", *sys.argv[4:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
time.sleep(0.4)
began = time.monotonic()
for _ in range(times):
    process.send_signal(getattr(signal, name))
out, err = process.communicate(timeout=20)
print(process.returncode, "fast" if time.monotonic() - began < 1 else "slow", (out + err).strip())
PY
}
t "it waits"                                  same held "$line"
t "Ctrl-C stops it: 130"                      expect_out "130 fast stet: interrupted" interrupted SIGINT 1
t "as JSON"                                   expect_out '130 fast {"error":{"code":"cancelled"' interrupted SIGINT 1 --json
t "SIGTERM too"                               expect_out "130 fast" interrupted SIGTERM 1
t "twice ends it at once"                     expect_out "130 fast" interrupted SIGINT 2
kill "$holder" 2>/dev/null
wait "$holder" 2>/dev/null
t "and nothing was lost"                      same 1 "$(stet project list --json | json total)"
finish
