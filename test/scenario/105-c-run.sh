#!/usr/bin/env bash
# A pattern is run from C and C++, with the public header alone: what ran, what failed, now and before, a part of it, and stopping.
. "$STET_SOURCE/test/scenario/lib.sh"
libs="$STET_BUILD/libstet.a -l:libsqlite3.a -l:libuv_a.a -l:libzstd.a -l:libutf8proc.a -l:libyaml.a -l:libcrypto.a -lm -ldl -lpthread"
mkdir include && cp "$STET_SOURCE/include/stet.h" include/
flags="-Wall -Wextra -Werror -Iinclude"
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q __asan_init && flags="$flags -fsanitize=address,undefined"
t "the example of running compiles as C11" gcc -std=c11 $flags -o pull "$STET_SOURCE/examples/pull.c" $libs
cp "$STET_SOURCE/examples/pull.c" pull.cc
t "and as C++17"               g++ -std=c++17 -pedantic $flags -o pullcc pull.cc $libs
export STET_SUPERVISE="$STET_BUILD/stet-supervise"
mkdir run && cd run || exit 1
stet init >/dev/null
cat >stet.toml <<'TOML'
name = "sum"
[nodes.rows]
command = "cat {in}; test ! -e broken"
files = "rows.json"
stdout = "json"
[nodes.total]
ref = "sum"
inputs = { values = "$rows/stdout" }
[nodes.slow]
command = "sleep {for}; echo > {out}"
inputs = { for = "$argument/for" }
produces = "slow.txt"
[argument]
for = 0
[result]
total = "$total"
slow = "$slow/files/out/path"
TOML
echo '[1, 2, 3]' >rows.json
gives() { same "$1" "$("../$2" stet.toml "${@:3}" 2>err.txt)"; }
t "everything runs"            gives 'ran 3, failed 0: {"slow":"slow.txt","total":6}' pull
t "and stands, in C++ too"     gives 'ran 0, failed 0: {"slow":"slow.txt","total":6}' pullcc
t "as for the program"         expect_out "ran 0, up to date 3" stet run
echo '[5]' >rows.json
t "a change of a file is seen" gives 'ran 2, failed 0: {"slow":"slow.txt","total":5}' pull
touch broken; echo '[7]' >rows.json
t "a failure is a status"      expect_status 1 ../pull stet.toml
../pull stet.toml >out.txt 2>err.txt
t "at the next start too"      grep -q "^failed: sum/rows: exit status 1" err.txt
t "and what was made last is there" grep -qx 'ran 1, failed 1: {"slow":"slow.txt","total":5}' out.txt
t "a node alone is not concerned" expect_status 0 ../pull stet.toml slow
t "one that needs it is"       expect_status 1 ../pull stet.toml total
t "a node that is not there"   expect_err 'did you mean "total"?' ../pull stet.toml totl
t "a pattern that is not there" expect_status 3 ../pull none.toml
stet set piece:sum:argument/for 30 >/dev/null
python3 -c '
import signal, subprocess, sys, time
p = subprocess.Popen(["../pull", "stet.toml", "slow"], stderr=subprocess.PIPE, text=True)
time.sleep(1)
p.send_signal(signal.SIGINT)
said = p.communicate(timeout=20)[1]
sys.exit(not (p.returncode == 130 and "cancelled: stopped" in said))'
t "it can be cancelled"        test $? = 0
t "and nothing is left running" expect_out "1 action does not stand" stet run -n slow
finish
