#!/usr/bin/env bash
# Calls as people write them: a line for the shell, a program with its arguments, scripts of the project by their relative path, arguments from
# files and from standard input, and options with --with.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
STET_JOBS=$(mktemp -d)
export STET_JOBS

stet init >/dev/null
fails() {
    local got=0
    "${@:2}" >/dev/null 2>&1 || got=$?
    test "$got" = "$1"
}
is() { test "$("${@:2}" 2>/dev/null)" = "$1"; }
t "a line for the shell" is 7 stet call run --sh 'wc -c' '[1,2]'
t "which is the same call as its URI" test "$(stet --json call run --sh 'wc -c' '[1,2]' | json function)" = 'dml+exec://stet-exec-local/?command=wc%20-c'
t "without arguments" is 2 stet call run --sh 'wc -c'
t "with options" is '"a&b +%\n"' stet call run --sh 'echo "$X"' --with env='X=a&b +%' --with stdout=text
t "a program with its arguments" is 7 stet call run -- expr 3 + 4
t "a program that is not there" fails 1 stet call run -- no-such-program --flag
mkdir -p sub "a dir"
printf 'import json, sys\nprint(json.dumps([sys.argv[1:], open("data.txt").read()]))\n' >sub/train.py
echo data >sub/data.txt
printf '#!/bin/sh\necho "\\"$1 $0\\""\n' >top
printf '#!/bin/sh\necho "$#"\n' >"a dir/own prog"
chmod +x top "a dir/own prog"
in_sub() { (cd sub && stet call run --with files=sub/data.txt -- train.py --depth 3 "it's"); }
t "a script by its relative path, in the directory where it is typed" test "$(in_sub | tr -d ' \n')" = "[[\"--depth\",\"3\",\"it's\"],\"data\\n\"]"
t "is found again" test "$(cd sub && stet --json call run --with files=sub/data.txt -- train.py --depth 3 "it's" | json cached)" = true
echo data2 >sub/data.txt
t "and counts" test "$(cd sub && stet --json call run --with files=sub/data.txt -- train.py --depth 3 "it's" | json cached)" = false
t "an executable at the top" expect_out '"x y' stet call run -- top 'x y'
t "also with ./" expect_out '"z' stet call run -- ./top z
t "one with blanks in its path" is 2 stet call run -- 'a dir/own prog' 1 2
echo '{"a": [1, 2]}' >arg.json
t "an argument from a file" is 2 stet call run --sh 'python3 -c "import json,sys; print(json.load(sys.stdin)[0][\"a\"][1])"' @arg.json
t "and from standard input" test "$(echo '[5]' | stet call run --sh cat - | tr -d ' \n')" = '[[5]]'
python3 -c 'import json; print(json.dumps("x" * 1000000))' >long.json
t "a long one" is 1000004 stet call run --sh 'wc -c' @long.json
t "behind -- it is a word" is '"@arg.json -\n"' stet call run --with stdout=text -- echo @arg.json -
t "a file that is not there" fails 3 stet call run --sh cat @missing.json
t "neither" fails 2 stet call run
t "options are not for URIs" fails 2 stet call run dml+exec://stet-exec-local/true --with v=2
t "nor anything" fails 2 stet call run --sh true --with v
t "milliseconds" fails 1 stet call run --sh 'sleep 60' --with timeout=200ms
rm -rf "$STET_JOBS"
finish
