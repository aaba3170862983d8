#!/usr/bin/env bash
# A run whose piece is deleted while it runs says so, and does not end with status 0.
. "$STET_SOURCE/test/scenario/lib.sh"

mkdir p signs
cd p || exit 1
stet -q init
signs=$(cd ../signs && pwd)
cat >stet.toml <<J
name = "p"
[nodes.a]
command = "touch $signs/begun; for i in \$(seq 600); do [ -e $signs/go ] && break; sleep 0.1; done; echo a > {out}"
produces = "out"
[nodes.b]
command = "cat {i} > {out}"
files = {i = "\$a.out"}
produces = "outb"
J
stet run >../out 2>&1 &
run=$!
for i in $(seq 600); do [ -e "$signs/begun" ] && break; sleep 0.1; done
t "a piece can be deleted while it runs"           stet piece delete p
touch "$signs/go"
wait $run
status=$?
t "the run does not end as if all were well"       test $status != 0
t "it ends by itself"                              test $status -lt 128
t "and says why"                                   grep -q 'piece "p" was deleted while it ran' ../out
t "the next run makes the piece"                   stet run
t "with all that it has"                           same a "$(cat outb)"
finish
