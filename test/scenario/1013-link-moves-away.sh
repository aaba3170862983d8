#!/usr/bin/env bash
# A reader of a link waits for the node whose output the link leads to, and which failed. When the link leads elsewhere, the reader no longer waits.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
cat >stet.toml <<'X'
name = "p"
[nodes.d]
command  = "mkdir -p {out}; cat in > {out}/x"
files    = "in"
produces = "g/d"
[nodes.l]
command  = "mkdir -p {out}; cat in > {out}/x; test ! -e stop"
files    = "in"
produces = "g/l"
[nodes.r]
command  = "cat s/b/* > {out}"
produces = "out/r"
[nodes.a]
command  = "cat in > {out}"
after    = ["l"]
produces = "out/a"
X
mkdir s g
echo 1 >in
ln -s ../g/l s/b
t "all is well"                                    stet run
touch stop
echo 2 >in
t "the node fails"                                 expect_status 1 stet run -k
t "its readers wait"                               same "1 1" "$(cat out/r) $(cat out/a)"
t "also in the next run"                           expect_status 1 stet run -k
t "and keep what they had"                         same "1 1" "$(cat out/r) $(cat out/a)"
ln -sfn ../g/d s/b
t "the link leads elsewhere: the node fails still" expect_status 1 stet run -k
t "but who reads the link does not wait"           same "2" "$(cat out/r)"
t "who comes after the node does"                  same "1" "$(cat out/a)"
echo 3 >in
t "nor after another change"                       expect_status 1 stet run -k
t "of what it reads"                               same "3" "$(cat out/r)"
ln -sfn ../g/l s/b
stet run -k >/dev/null 2>&1
rm stop
t "back, and the node recovers"                    stet run
t "all is as from scratch"                         same "3 3" "$(cat out/r) $(cat out/a)"
t "nothing is left to do"                          expect_out "0 actions" stet run -n
finish
