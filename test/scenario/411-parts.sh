#!/usr/bin/env bash
# Asking for a part of a pipeline: what failed in it is told, again at the next start, and never taken for done; after a failure
# no further command begins.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
cat >stet.toml <<'TOML'
name = "parts"
[nodes.bad]
command = "echo bad >> log; test -e allowed && echo 1 > {out}"
produces = "b/bad"
[nodes.beside]
command = "echo beside >> log; echo 1 > {out}"
produces = "b/beside"
[nodes.next]
command = "echo next >> log; cat {in} > {out}"
files = "$bad.out"
produces = "b/next"
[nodes.rows]
each = "rows/*"
command = "echo row >> log; grep -q good {in} && cp {in} {out}"
produces = "b/{in.name}"
[nodes.last]
command = "echo last >> log; cat {in} > {out}"
files = "$rows.out"
produces = "b/last"
TOML
mkdir rows
for i in 1 2 3 4 5; do echo good >"rows/$i"; done
: >log
ran() { sort log | tr '\n' ' '; : >log; }
parts() { # OUTPUT of a run whose status is 1
    local got=0
    "$STET" run "$@" >out.txt 2>&1 || got=$?
    cat out.txt
    [ "$got" = 1 ]
}

t "one at a time, the first fails"                   parts -j 1
t "and none begins after it"                         same "bad " "$(ran)"
t "the others are left"                              grep -q "failed 1, left" out.txt
t "with -k they run"                                 parts -k --no-retry-failed
t "all that can"                                     same "beside last row row row row row " "$(ran)"
t "what failed before is named"                      grep -qx "failed before parts/bad: exit status 1" out.txt
t "with the way out"                                 grep -q "without --no-retry-failed it runs again" out.txt
t "the same when nothing runs at all"                parts --no-retry-failed
t "by name"                                          grep -qx "failed before parts/bad: exit status 1" out.txt
t "to programs too"                                  same bad "$(stet run --no-retry-failed --json | json failedBefore.0.node)"
t "and by a dry run"                                 expect_out "failed before parts/bad: exit status 1" stet run -n --no-retry-failed

t "a node that failed, asked for alone, is no success" parts bad --no-retry-failed
t "which says so"                                    grep -q "^ran 0, failed 1 in" out.txt
t "one that needs it neither"                        parts next --no-retry-failed
t "which is left"                                    grep -q "^ran 0, failed 1, left 1 (1 wait for what failed) in" out.txt
t "nor a part of the result"                         parts --demand next --no-retry-failed
t "one that does not need it is"                     expect_out "what was asked for stands" stet run beside
t "also one made of many"                            expect_out "what was asked for stands" stet run last
t "nothing ran for all that"                         same "" "$(ran)"
t "a dry run of one names what it needs alone"       expect_out "0 actions do not stand" stet run -n beside
t "and of what waits, what it waits for"             expect_out "next: unknown, never; waits for bad, which failed" stet run -n next
t "tried again alone, it runs"                       parts bad
t "alone"                                            same "bad " "$(ran)"
touch allowed
t "tried again for one that needs it, both do"       expect_out "ran 2, failed 0 in" stet run next --retry-failed
t "each once"                                        same "bad next " "$(ran)"
t "and stand"                                        expect_out "what was asked for stands" stet run next

echo bad >rows/3
t "one of many fails"                                parts last
t "which is found again when what it goes into is asked for" parts last --no-retry-failed
t "by its name"                                      grep -q "failed before parts/rows\[rows%2F3\].run: exit status 1" out.txt
t "others are not concerned"                         expect_out "what was asked for stands" stet run next beside

t "a node that is not there: the near one"           expect_err 'did you mean "beside"?' stet run besid
t "or all of them"                                   expect_err 'its nodes are ' stet run zzzzzzzz
t "so does why"                                      expect_err 'did you mean "beside"?' stet why besid
t "status 3"                                         expect_status 3 stet why besid
t "a pattern in JavaScript that is not there"        expect_err "nothere.js" stet run nothere.js
finish
