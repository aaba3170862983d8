#!/usr/bin/env bash
# What reads the files of a failed command waits for it, in the same run and at the next start, and says so; what a pattern
# matches is the same whether it was there before or was made by the run.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
cat >stet.toml <<'TOML'
name = "w"
[nodes.bad]
command = "echo bad >> log; test -e allowed && cat {in} > {out}"
files = "in"
produces = "b/bad"
[nodes.next]
command = "echo next >> log; cat {in} > {out}"
files = { in = "$bad.out", other = "other" }
produces = "b/next"
[nodes.third]
command = "echo third >> log; cat {in} > {out}"
files = "$next.out"
produces = "b/third"
[nodes.ordered]
command = "echo ordered >> log; echo x > {out}"
after = ["bad"]
produces = "b/ordered"
[nodes.apart]
command = "echo apart >> log; cat {in} > {out}"
files = "other"
produces = "b/apart"
[nodes.done]
kind = "effect"
command = "echo done >> log"
files = { in = "$third.out" }
TOML
echo 1 >in
echo 1 >other
ran() { sort log | tr '\n' ' '; : >log; }
stet run -k >out.txt
t "the others run, those after the failure wait"   same "apart bad " "$(ran)"
t "which is counted"                               grep -q "ran 2, up to date 0, failed 1, left 4 (4 wait for what failed)" out.txt
t "and only the command that failed is named"      same 1 "$(grep -c '^failed' out.txt)"
t "the next start runs nothing, if it must not"     sh -c '"$STET" run -k --no-retry-failed | grep -q "ran 0, up to date 1, failed 1, left 4"'
t "nor without -k"                                 sh -c '"$STET" run --no-retry-failed | grep -q "ran 0, up to date 1, failed 1, left 4"'
t "not a command"                                  same "" "$(ran)"
t "else it tries the failed one again, and no other" sh -c '"$STET" run | grep -q "ran 1, up to date 1, failed 1, left 4 (4 wait for what failed)"'
t "that one alone"                                 same "bad " "$(ran)"
t "why names what it waits for"                    expect_out "w/next is unknown: it has never run; it waits: it reads w/bad, which failed: exit status 1" stet why w next
t "over any number of steps"                       expect_out "it waits: it reads w/next, which reads w/bad, which failed" stet why w third
t "a dry run too"                                  expect_out "third: unknown, never; waits for bad, which failed" stet run -n
t "and a program can read it"                      same bad "$(stet run -n --no-retry-failed --json | python3 -c 'import json, sys; print(*{a.get("waitsFor") for a in json.load(sys.stdin)["actions"]})')"
touch allowed
t "tried again: the failure alone, then all that waited" sh -c '"$STET" run --retry-failed | grep -q "ran 5, up to date 1, failed 0"'
t "the effect last"                                same "bad done" "$(head -1 log) $(tail -1 log)"
t "each once"                                      same "bad done next ordered third " "$(ran)"
: >log
t "then nothing is to be done"                     expect_out "ran 0, up to date 6, failed 0" stet run

# After a success, a failure: what was made of the last good output stands, and is not made again of nothing.
rm allowed
echo 2 >in
t "it fails again"                                 sh -c '"$STET" run -k | grep -q "ran 1, up to date 1, failed 1, left 4 (4 wait for what failed) in"'
t "alone"                                          same "bad " "$(ran)"
t "what others made of it stays"                   same 1 "$(cat b/third)"
echo 2 >other
t "another input changes: it waits all the same"   sh -c '"$STET" run -k --no-retry-failed | grep -q "ran 1, up to date 0, failed 1, left 4"'
t "and what does not depend on it runs"            same "apart " "$(ran)"
t "why says both"                                  expect_out "file:other" stet why w next
touch allowed
t "mended by an edit: everything in one run, but what is only ordered" sh -c 'echo 3 > in; "$STET" run | grep -q "ran 4, up to date 2, failed 0"'
t "each once"                                      same "bad done next third " "$(ran)"
t "with the new content"                           same 3 "$(cat b/third)"

# The same while it goes on: --watch takes up the mended command and then what waited for it.
rm allowed
echo 4 >in
"$STET" run --watch -k >watch.txt 2>&1 &
watch=$!
until_it() { for _ in $(seq 300); do "$@" && return; sleep 0.05; done; return 1; }
t "a watch sees it fail"                           until_it grep -q bad log
touch allowed
sleep 0.3
echo 5 >in
t "and goes on to the end once it is mended"       until_it sh -c 'test "$(cat b/third 2>/dev/null)" = 5 && grep -q done log'
kill $watch
wait $watch
: >log

# Files that a pattern matches and the run makes.
cat >mix.toml <<'TOML'
name = "mix"
[nodes.made]
command = "echo m > {out}"
produces = "d/m.txt"
[nodes.all]
command = "echo all >> log; cat {in} > {out}"
files = "d/*.txt"
produces = "b/all"
TOML
mkdir d
echo a >d/a.txt
echo z >d/z.txt
t "a pattern takes in what the run makes"          expect_out "ran 2" stet run mix.toml
t "in the order of names"                          same "a m z " "$(tr '\n' ' ' <b/all)"
t "and there is nothing to do afterwards"          expect_out "ran 0, up to date 2" stet run mix.toml
rm d/m.txt b/all
t "both gone: put back"                            stet run mix.toml
t "the same"                                       same "a m z " "$(tr '\n' ' ' <b/all)"
t "without a command"                              same "all " "$(ran)"
finish
