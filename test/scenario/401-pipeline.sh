#!/usr/bin/env bash
# Pipelines of Python and shell steps: names of any bytes, targets, dry runs, failures, limits, and what is refused.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
mkdir corpus
for i in 1 2 3; do yes "word$i the quick" | head -$((i * 10)) >corpus/$i.txt; done
cat >count.py <<'PYTHON'
import collections, json, sys
words = collections.Counter(w for f in sys.argv[2:] for w in open(f, errors="surrogateescape").read().split())
json.dump(words, open(sys.argv[1], "w"), sort_keys=True)
PYTHON
cat >stet.toml <<'TOML'
name = "corpus"
[argument]
top = 2
[nodes.count]
command = ["python3", "count.py", "{out}", "{texts}"]
files = { texts = "corpus/*.txt", script = "count.py" }
produces = { out = "build/counts.json" }
[nodes.top]
command = "python3 -c 'import json,sys; c=json.load(open(sys.argv[1])); print(json.dumps(sorted(c, key=lambda w: (-c[w], w))[:int(sys.argv[2])]))' {in} {top}"
files = "$count.out"
inputs = { top = "$argument/top" }
stdout = "json"
[nodes.report]
command = "sort corpus/1.txt | uniq -c > {out}; ls -l build > /dev/null"
files = { in = "corpus/1.txt" }
produces = { out = "build/report.txt" }
[result]
top = "$top/stdout"
report = "$report"
TOML
t "the first run"                               expect_out "ran 3" stet run
t "its result is what a step printed"           same '["quick","the"]' "$(stet piece pull corpus --json | json result.top)"
t "a dry run says what would run, and runs nothing" sh -c 'touch ran; echo more >> corpus/1.txt; "$STET" run -n | grep -q "report: dirty, changed: file:corpus/1.txt"'
t "one node alone"                              expect_out "ran 1" stet run report
t "the rest"                                    expect_out "ran 2" stet run
t "an argument"                                 expect_out "ran 1" stet run --set top=1
t "from a directory below"                      sh -c 'cd corpus && "$STET" run | grep -q "ran 0"'
t "an unknown node"                             expect_err "nope" stet run nope
printf 'x\n' >"corpus/sp ace 'q\"uote"$'\n'"line \$(touch owned) ä.txt"
printf 'y\n' >"$(printf 'corpus/bad\377.txt')"
t "names with every kind of byte"               expect_out "failed 0" stet run
t "are counted"                                 grep -q '"x": 1' build/counts.json
t "and never reach a shell"                     test ! -e owned
t "file list shows them escaped"                expect_out 'file:corpus/bad%FF.txt' stet file list
t "file scan finds nothing new after a run"      expect_out "0 changed" stet file scan
t "the pattern as JSON"                         expect_out '"glob:corpus/*.txt"' stet pattern convert stet.toml
t "which can be run as well"                    sh -c '"$STET" pattern convert stet.toml > p.json && "$STET" run p.json | grep -q "failed 0"'
t "a mistake is named by line"                  sh -c 'printf "[nodes.a]\ncommand = 5\n" > bad.toml; "$STET" pattern check bad.toml | grep -q "bad.toml:2"'

cat >quoting.toml <<'TOML'
name = "quoting"
[nodes.q]
command = "cat {in} > {out}"
files = { in = "we;ird $(touch owned2) 'n.txt" }
produces = { out = "build/q's \"out\".txt" }
TOML
echo deep >"we;ird \$(touch owned2) 'n.txt"
t "names are quoted for the shell"              expect_out "ran 1, up to date 0, failed 0" stet run quoting.toml
t "to the letter"                               same deep "$(cat "build/q's \"out\".txt")"
t "nothing was run by them"                     test ! -e owned2

# One text, two ways to write it, two files: they look the same on a screen, and have the same content.
composed=$(printf 'caf\303\251.txt') decomposed=$(printf 'cafe\314\201.txt')
echo same | tee "$composed" >"$decomposed"
name_of() { printf 'name = "names"\n[nodes.n]\ncommand = "echo ran >> names.log; printf %%s {in} > {out}"\nfiles = "%s"\nproduces = "build/name"\n' "$1" >names.toml; }
name_of "$composed"
t "a composed name"                             expect_out "ran 1" stet run names.toml
name_of "$decomposed"
t "the same name decomposed is another file"    expect_out "ran 1" stet run names.toml
t "which the command gets byte for byte"        same "$decomposed" "$(cat build/name)"
name_of "$composed"
t "back to the first"                           expect_out "failed 0" stet run names.toml
t "gives what it gave"                          same "$composed" "$(cat build/name)"
t "from what is kept"                           same 2 "$(wc -l <names.log)"
t "both are listed"                             same 2 "$(stet file list | grep -c 'file:caf.*txt')"

printf '[nodes.a]\ncommand = "echo x > {out}"\nproduces = "../outside.txt"\n' >out.toml
t "an output outside the project is refused"    expect_err "outside the project" stet run out.toml
mkdir -p sub
ln -s "$(mktemp -d)" sub/link
printf 'name = "l"\n[nodes.a]\ncommand = "echo x > {out}"\nproduces = "sub/link/x"\n' >link.toml
t "through a link, too"                         sh -c '"$STET" run link.toml | grep -q "outside the project"'
printf 'name = "o"\n[nodes.a]\ncommand = "echo x > {out}"\nproduces = "../outside.txt"\nallow-outside = true\n' >allow.toml
t "unless it is allowed"                        sh -c '"$STET" run allow.toml && test -s ../outside.txt'

cat >fail.toml <<'TOML'
name = "fail"
[nodes.bad]
command = "echo said on output; echo said on error >&2; echo partial > {out}; exit 3"
produces = "build/bad"
[nodes.good]
command = "echo fine > {out}"
produces = "build/good"
[nodes.silent]
command = "true"
produces = "build/silent"
[nodes.slow]
command = "sleep 30"
timeout = 0.3
[nodes.missing]
command = ["no-such-program-here"]
TOML
stet run fail.toml -k >fail.out
t "a failure has its status"                    grep -q 'bad: exit status 3' fail.out
t "its output whole"                            sh -c 'grep -q "said on output" fail.out && grep -q "said on error" fail.out'
t "half of an output is not left behind"        test ! -e build/bad
t "an output that was not written"              grep -q 'did not write build/silent' fail.out
t "a time limit"                                grep -q 'slow: not done after 300 ms' fail.out
t "a program that is not there"                 grep -q 'no-such-program-here' fail.out
t "the others are done"                         same fine "$(cat build/good)"
t "and nothing is tried again for nothing"      sh -c '"$STET" run fail.toml -k --no-retry-failed --json | grep -q "\"ran\":0"'
t "without -k the first failure ends it"        sh -c '! "$STET" run fail.toml --retry-failed'

cat >env.toml <<'TOML'
name = "env"
[nodes.e]
command = "echo ${NAMED-unset} ${OTHER-unset} > {out}"
produces = "build/env"
env = ["NAMED"]
TOML
export OTHER=1
NAMED=one stet run env.toml >/dev/null
t "a named variable is passed, others are not"  same "one unset" "$(cat build/env)"
t "the same value: nothing runs"                sh -c 'NAMED=one "$STET" run env.toml --json | grep -q "\"ran\":0"'
t "another value: it runs"                      sh -c 'NAMED=two "$STET" run env.toml | grep -q "ran 1" && grep -q "two unset" build/env'
t "and back: restored"                          sh -c 'NAMED=one "$STET" run env.toml | grep -q "failed 0" && grep -q "one unset" build/env'
t "not set at all"                              sh -c '"$STET" run env.toml | grep -q "ran 1" && grep -q "unset unset" build/env'
cat >ten.toml <<'TOML'
name = "dir"
[nodes.tree]
command = "mkdir -p {out}/a; cp {in} {out}/a/x; cp {in} {out}/y"
files = "corpus/1.txt"
produces = "build/tree"
[nodes.size]
command = "find {in} -type f | wc -l > {out}"
files = "$tree.out"
produces = "build/size"
TOML
t "directories as outputs and inputs"           expect_out "ran 2" stet run ten.toml
t "are looked into"                             sh -c 'echo spoilt > build/tree/y; "$STET" run ten.toml | grep -q "ran [12]" && cmp build/tree/y corpus/1.txt'
cat >stop.toml <<'TOML'
name = "stop"
[nodes.breaks]
command = "exit 3"
produces = "build/breaks"
[nodes.after]
command = "cat {in} > {out}"
files = "$breaks.out"
produces = "build/after"
TOML
t "what was not begun after a failure is left, and does not stand" sh -c '"$STET" run stop.toml | grep -q "ran 1, up to date 0, failed 1, left 1"'
t "a dry run counts what does not stand"        expect_out "2 actions do not stand; nothing was run" stet run -n stop.toml
t "or what is not tried again is left out"      expect_out "1 action does not stand; nothing was run" stet run -n --no-retry-failed stop.toml
cat >two.toml <<'TOML'
name = "two"
[nodes.slow]
command = "sleep 0.4; cat {in} > {out}"
files = "two.1"
produces = "build/two.1"
[nodes.fast]
command = "cat {in} > {out}"
files = "two.2"
produces = "build/two.2"
[nodes.slower]
command = "cat {in} > {out}"
files = "$slow.out"
produces = "build/two.3"
[nodes.faster]
command = "cat {in} > {out}"
files = "$fast.out"
produces = "build/two.4"
[nodes.both]
command = "cat {in}; echo both >> two.log"
files = ["$slower.out", "$faster.out"]
TOML
echo 1 >two.1; echo 1 >two.2; stet run two.toml >/dev/null; rm -f two.log; echo 2 >two.1; echo 2 >two.2
t "one behind two that change runs once, after both" sh -c '"$STET" run two.toml | grep -q "ran 5" && [ "$(cat two.log)" = both ]'
finish
