#!/usr/bin/env bash
# `stet run --observe-only` runs computations and drops what they write. It starts no command, no call and no effect: these stay outdated.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
L=dml+exec://stet-exec-local

stet init >/dev/null
echo 1 >in.txt
cat >stet.toml <<TOML
name = "p"
[argument]
n = 20
[nodes.copy]
command  = "cp {in} {out}"
files    = { in = "in.txt" }
produces = "out.txt"
[nodes.size]
command = "touch ran-size; wc -c < {in}"
stdout  = "json"
files   = { in = "in.txt" }
[nodes.tell]
command = "touch told"
files   = { in = "in.txt" }
kind    = "effect"
[nodes.each]
each     = { one = "*.txt" }
command  = "cp {one} {out}"
produces = "up/{one.stem}"
[nodes.ask]
call   = "$L/?command=touch+$PWD/called%3B+cat"
inputs = { n = "\$argument/n" }
[nodes.sum]
ref    = "add"
inputs = { 0 = "\$argument/n", 1 = 1 }
[nodes.twice]
javascript = "({n, size}) => n * 2"
inputs     = { n = "\$sum", size = "\$size/stdout" }
[result]
twice = "\$twice"
ask   = "\$ask"
copy  = "\$copy"
each  = "\$each"
TOML
nothing() { ! [ -e out.txt ] && ! [ -e ran-size ] && ! [ -e told ] && ! [ -e called ] && ! [ -e up ]; }
t "computations run, and with them what lists the files of each" expect_out "ran 4" stet run --observe-only
t "commands, calls and effects do not" nothing
t "no call is in the list" test "$(stet --json call list | json total)" = 0
t "what computations wrote is dropped" expect_status 3 stet get piece:p:node:sum
t "nothing is called failed" test "$(stet run --observe-only --json | json failed)" = 0
t "nor started with the nodes named" stet run --observe-only copy tell each
t "or by a second run" nothing
t "a run does all of it" stet run
t "once" test -e out.txt -a -e ran-size -a -e told -a -e called -a -e up/in
t "with its result" test "$(stet get piece:p:node:twice)" = 42
rm -f told called ran-size
echo 22 >in.txt
t "what was up to date and is outdated stays so" stet run --observe-only
t "without a run" test ! -e told -a ! -e ran-size -a "$(cat out.txt)" = 1
t "until the next run" stet run
t "which makes it" test "$(cat out.txt)" = 22
t "then nothing is left" expect_out "ran 0" stet run
finish
