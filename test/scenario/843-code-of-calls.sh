#!/usr/bin/env bash
# Calls in patterns: everything that a call reads counts. An edited script, a file that appears under a name that the function has, a file that a
# wildcard matches, a script that a command makes, and inputs that args leaves out make the action outdated and the call another one.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
L=dml+exec://stet-exec-local

stet init >/dev/null
result() { stet piece show "$1" --json | json "result$2"; }
mkdir lib data
echo 'ONE = 1' >lib/one.py
printf 'import json, sys\nsys.path.insert(0, ".")\nfrom lib.one import ONE\nprint(json.load(sys.stdin)[0] + ONE)\n' >add.py
echo 1 >data/a.csv
cat >stet.toml <<TOML
name = "work"
[argument]
n = 10
label = "x"

[nodes.add]
call   = "$L/python3?arg=add.py&files=lib"
inputs = { n = "\$argument/n", label = "\$argument/label" }
args   = ["n"]

[nodes.lines]
call   = "$L/?command=cat+data/*.csv+%7C+wc+-l"

[nodes.maybe]
call   = "$L/?command=if+test+-e+extra.txt%3B+then+cat+extra.txt%3B+else+echo+0%3B+fi"

[result]
sum = "\$add"
lines = "\$lines"
maybe = "\$maybe"
TOML
t "calls run" expect_out "ran 3" stet run
t "with the project's files" test "$(result work .sum)$(result work .lines)$(result work .maybe)" = 1110
t "what is up to date is not run" expect_out "ran 0" stet run

echo 'ONE = 2' >lib/one.py
t "an edited module makes its call outdated" expect_out add stet why work add
t "which alone is run" expect_out "ran 1" stet run
t "with the new code" test "$(result work .sum)" = 12
printf 'print(7)\n' >add.py
t "so does an edited script" expect_out "ran 1" stet run
t "which runs" test "$(result work .sum)" = 7
echo 2 >data/b.csv
t "so does a file that a wildcard matches" expect_out "ran 1" stet run
t "and counts" test "$(result work .lines)" = 2
rm data/b.csv
t "or no longer matches" expect_out "ran 1" stet run
t "and does not count" test "$(result work .lines)" = 1
echo 5 >extra.txt
t "so does a file that appears" expect_out "ran 1" stet run
t "and is read" test "$(result work .maybe)" = 5
rm extra.txt
t "or vanishes" expect_out "ran 1" stet run
t "again" test "$(result work .maybe)" = 0
t "nothing else is outdated" expect_out "ran 0" stet run

# An input that args leaves out is part of the call.
before=$(stet --json call list | json total)
t "an input that is not passed" stet set piece:work:argument/label '"y"'
t "makes the action run" expect_out "ran 1" stet run
t "a call of its own" test "$(stet --json call list | json total)" = $((before + 1))
t "but back again the earlier result is taken" stet set piece:work:argument/label '"x"'
t "without a new call" sh -c '"$STET" run >/dev/null && test "$("$STET" --json call list --limit 1000 | python3 -c "import json,sys; print(json.load(sys.stdin)[\"total\"])")" = "$0"' $((before + 1))

# A script that a command makes.
mkdir made
cd made
stet init >/dev/null
echo 3 >value
cat >stet.toml <<TOML
name = "made"
[nodes.write]
command  = "sed 's/.*/print(&)/' value > gen.py"
produces = { script = "gen.py" }

[nodes.use]
call = "$L/python3?arg=gen.py"

[result]
v = "\$use"
TOML
t "a script that a command makes" stet run
t "is run" test "$(result made .v)" = 3
echo 4 >value
t "and made again" stet run
t "is run again" test "$(result made .v)" = 4
t "and then nothing" expect_out "ran 0" stet run
t "stet check" stet check
cd ..
finish
