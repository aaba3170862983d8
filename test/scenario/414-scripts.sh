#!/usr/bin/env bash
# Scripts and programs that a command names are inputs without being declared: in lists, in shell strings, there or not yet there, inside the
# project and outside.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
mkdir tools place "$PWD/bin1" "$PWD/bin2" pkg
export PATH="$PWD/bin1:$PWD/bin2:$PATH"
script() { printf '#!/bin/sh\necho %s; cat "$@" /dev/null\n' "$2" >"$1"; chmod +x "$1"; }
for s in list dot shell quoted assigned inner nested option off; do script "tools/$s" 1; done
script place/cd 1
echo 1 >tools/in.txt
script "tools/with space" 1
script bin2/mytool 1
echo 'print(1)' >pkg/mod.py
: >pkg/__init__.py
cat >stet.toml <<'TOML'
name = "scripts"
[nodes.list]
command = ["sh", "tools/list"]
stdout = "text"
[nodes.dot]
command = ["./tools/dot"]
stdout = "text"
[nodes.shell]
command = "tools/shell"
stdout = "text"
[nodes.quoted]
command = "sh 'tools/quoted'; \"tools/with space\""
stdout = "text"
[nodes.assigned]
command = "T=tools/assigned; sh \"$T\""
stdout = "text"
[nodes.inner]
command = "echo \"$(sh tools/inner)\""
stdout = "text"
[nodes.cd]
command = "cd place && ./cd"
stdout = "text"
[nodes.nested]
command = ["bash", "-c", "sh tools/nested"]
stdout = "text"
[nodes.option]
command = ["echo", "--script=tools/option"]
stdout = "text"
[nodes.stdin]
command = "cat <tools/in.txt"
stdout = "text"
[nodes.module]
command = ["python3", "-m", "pkg.mod"]
stdout = "text"
[nodes.absent]
command = "if [ -f tools/later ]; then sh tools/later; fi"
stdout = "text"
[nodes.tool]
command = ["mytool"]
stdout = "text"
[nodes.tool2]
command = "true && mytool"
stdout = "text"
[nodes.off]
command = ["sh", "tools/off"]
stdout = "text"
scripts = false
[nodes.wrote]
command = "echo hello > note.txt; touch stamp; cp note.txt copy.txt; echo done"
stdout = "text"
TOML
runs() { # runs NODES: the next run runs these and no others
    stet run --explain >"$PWD/.out" 2>&1 || { cat "$PWD/.out"; return 1; }
    test "$(sed -n 's/^\([a-z0-9]*\): .*/\1/p' "$PWD/.out" | sort | tr '\n' ' ')" = "$1" || { cat "$PWD/.out"; return 1; }
}
t "the first run" stet run
t "nothing more to do" runs ""
for s in list dot shell quoted assigned inner nested option; do
    script "tools/$s" 2
    t "an edit of tools/$s runs its command" runs "$s "
done
script place/cd 2
t "an edit in the directory that a command changes to" runs "cd "
: >place/more
t "and a file that is new there" runs "cd "
script "tools/with space" 2
t "a name with a space in it" runs "quoted "
echo 2 >tools/in.txt
t "what standard input is taken from" runs "stdin "
echo 'print(2)' >pkg/mod.py
t "a module of Python" runs "module "
script tools/later 1
t "a script that was not there" runs "absent "
t "its output" expect_out '"1\n"' stet get 'piece:scripts:node:absent/stdout' --json
rm tools/later
t "and goes again" runs "absent "
script tools/off 2
t "scripts = false" runs ""
script bin2/mytool 2
t "a program outside the project, by content" runs "tool tool2 "
touch bin2/mytool
t "and not by its times" runs ""
script bin1/mytool 3
t "another one that PATH finds first" runs "tool tool2 "
rm bin1/mytool
t "and that goes again" runs "tool tool2 "
mkdir bin3
script bin3/mytool 4
export PATH="$PWD/bin3:$PATH"
t "another PATH" runs "tool tool2 "
chmod -x tools/list
t "a mode" runs "list "
t "what a command writes is none of its inputs" test "$(cat copy.txt)" = hello
echo other >stamp
t "nor when it is edited, though it is named" runs ""

cat >stet.toml <<'TOML'
name = "slow"
[nodes.slow]
command = "sh tools/slow > {out}; sh tools/slow >> {out}"
produces = "slow.txt"
TOML
printf 'sleep 0.3; echo 1\n' >tools/slow
stet run >/dev/null 2>&1 &
sleep 0.2
printf 'sleep 0.1; echo 2\n' >tools/slow
wait $!
t "edited while the command runs" test "$(tr '\n' ' ' <slow.txt)" = "2 2 "
t "it stands then" expect_out "ran 0," stet run
t "scripts is true or false" bash -c 'sed -i "s/^produces.*/&\nscripts = 1/" stet.toml; ! "$STET" run 2>err; grep -q "true or false" err'
sed -i /^scripts/d stet.toml
finish
