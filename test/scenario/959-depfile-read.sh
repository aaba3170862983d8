#!/usr/bin/env bash
# A dependency file that another command reads by a word, or by a wildcard, is made before it is read, and comes back with a stored result.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
echo >h1 && echo >h2
edit() { # what a reads; each run is compared with what a build from scratch gives
    echo "$1" >a.in
    stet run >out 2>&1 && same "x: $1" "$(cat b)"
}
for word in a.d '*.d' './a.d'; do
    cat >stet.toml <<X
name = "t"
[nodes.a]
command  = "sleep 0.1; cat a.in > {out}; echo x: \$(cat a.in) > a.d"
produces = "o"
depfile  = "a.d"
[nodes.b]
command  = "cat $word > {out}"
produces = "b"
X
    for to in h1 h2 h1; do
        t "read as $word: $to" edit "$to"
    done
    t "nothing is left to do" expect_out "0 actions" stet run -n
done
finish
