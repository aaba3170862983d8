#!/usr/bin/env bash
# Commands that read each other's files through a link, or by their dependency files, are reported with their circle after a few runs, not after a hundred.
. "$STET_SOURCE/test/scenario/lib.sh"
few() { # commands started so far: no more than this (a hundred of each before a circle was found; by chance a few more than four are started)
    [ "$(wc -l <log)" -le "$1" ] || { echo "$(wc -l <log) commands"; false; }
}
mkdir project logs && cd project || exit 1
stet init >/dev/null
mkdir lib o
echo 1 >lib/a
ln -s ../o/b lib/ln
cat >stet.toml <<'X'
name = "t"
[nodes.a]
command  = "echo a >> $LOG; cat lib/* > {out} 2>/dev/null || true"
produces = "o/a"
env      = ["LOG"]
[nodes.b]
command  = "echo b >> $LOG; cat o/a > {out} 2>/dev/null || true"
produces = "o/b"
env      = ["LOG"]
X
export LOG="$PWD/../logs/log"
ln -s ../logs/log log
: >log
t "a circle through a link ends"     expect_status 1 stet run
stet run >out.txt 2>&1
t "and is named"                     grep -q "t/a -> t/b -> t/a" out.txt
: >log
stet run >/dev/null 2>&1
t "after a few runs"                 few 40
ln -sfn a lib/ln
: >log
t "without the link all is well"     stet run
t "each command runs once"           few 2
t "and nothing is left to do"        expect_out "0 actions" stet run -n
cat >stet.toml <<'X'
name = "t"
[nodes.a]
command  = "echo a >> $LOG; cat lib/a o/b > {out} 2>/dev/null; echo x: o/b > a.d"
produces = "o/a"
depfile  = "a.d"
scripts  = false
env      = ["LOG"]
[nodes.b]
command  = "echo b >> $LOG; cat {in} > {out}"
files    = { in = "o/a" }
produces = "o/b"
env      = ["LOG"]
X
: >log
t "by a dependency file"             expect_status 1 stet run
t "after a few runs"                 few 40
cat >stet.toml <<'X'
name = "t"
[nodes.a]
command  = "echo a >> $LOG; echo o/b > {out}"
produces = "o/a"
env      = ["LOG"]
[nodes.b]
command  = "echo b >> $LOG; cat o/a > {out}"
produces = "o/b"
env      = ["LOG"]
X
: >log
t "a word that only might be a name" stet run
t "comes to rest"                    few 4
t "and nothing is left to do"        expect_out "0 actions" stet run -n
finish
