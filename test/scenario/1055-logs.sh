#!/usr/bin/env bash
# What commands print is kept with the run, whether they succeed or fail.
. "$STET_SOURCE/test/scenario/lib.sh"
stet -q init
cat >stet.toml <<'TOML'
name = "talk"
[argument]
n = 1
[nodes.good]
command = "echo said {n}; echo warned {n} >&2; echo {n} > good.txt"
inputs = { n = "$argument/n" }
produces = "good.txt"
[nodes.value]
command = "echo 42; echo counting >&2"
stdout = "json"
[nodes.silent]
command = "cat {in} > silent.txt"
files = "$good.out"
produces = "silent.txt"
[result]
value = "$value/stdout"
silent = "$silent/files"
TOML
run=$(stet run --json | json runId)
stet runs logs "$run" >logs
t "what a command printed that succeeded is kept"  grep -q "said 1" logs
t "and what it printed to standard error"          grep -q "warned 1" logs
t "a result is no log"                             not grep -q 42 logs
t "but what was printed beside it is"              grep -q counting logs
t "a command that prints nothing has no log"       not ls .stet/runs/"$run"/logs/silent-*
next=$(stet run --set n=2 --json | json runId)
t "each run has its own"                           expect_out "said 2" stet runs logs "$next"
t "and only that"                                  not sh -c "\"\$STET\" runs logs $next | grep -q 'said 1'"
finish
