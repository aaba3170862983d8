#!/usr/bin/env bash
# An effect waits for everything that runs. What reads its output waits for it meanwhile, in the first run, too.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init || exit 1
mkdir src && echo a >src/a.in
cat >stet.toml <<'X'
name = "p"
[nodes.slow]
command = "sleep 0.6; echo slow > {out}"
produces = "o2/slow.txt"
[nodes.first]
files = "src/a.in"
command = "cat {in} > {out}"
produces = "o1/first.txt"
[nodes.reader]
files = "o3/*.txt"
command = "cat {in} > {out}"
produces = "o4/reader.txt"
[nodes.named]
files = "$effect.out"
command = "cat {in} > {out}"
produces = "o4/named.txt"
[nodes.effect]
files = "$first.out"
command = "cat {in} > {out}"
produces = "o3/effect.txt"
kind = "effect"
X
t "a first run does all" expect_out "ran 5, up to date 0, failed 0 in" stet run
t "the pattern has the file of the effect" cmp src/a.in o4/reader.txt
t "and so has who names it" cmp src/a.in o4/named.txt
t "nothing is left to do" expect_out "ran 0" stet run
finish
