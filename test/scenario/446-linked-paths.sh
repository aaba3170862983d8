#!/usr/bin/env bash
# Files of the project that have a second name through a link: inputs, words, patterns and outputs that reach what another node writes.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
mkdir -p d/q e
ln -s d l
ln -s d/x latest
ln -s d/q deep
echo 1 >s
echo 0 >f
echo 1 >d/f
cat >stet.toml <<'TOML'
name = "p"
[nodes.file]
command = "cat {in} > {out}"
files = "l/x"
produces = "o1"
[nodes.pattern]
command = "cat {in} > {out}"
files = "l/x*"
produces = "o2"
[nodes.link]
command = "cat {in} > {out}"
files = "latest"
produces = "o3"
[nodes.word]
command = "cat l/x > {out}"
produces = "o4"
[nodes.shell]
command = "cat l/x* > {out}"
produces = "o5"
[nodes.wordlink]
command = "cat latest > {out}"
produces = "o6"
[nodes.through]
command = "cat {in} > {out}"
files = "d/z"
produces = "o7"
[nodes.into]
command = "cat s > {out}"
produces = "l/z"
[nodes.z]
command = "cat s > {out}"
produces = "d/x"
TOML
outputs() { cat o1 o2 o3 o4 o5 o6 o7 | tr -d '\n'; }
t "the first run, one at a time" stet run -j1
t "has everything right" test "$(outputs)" = 1111111
t "nothing more to do" expect_out 'ran 0' stet run
echo 2 >s
t "one run after an edit" stet run
t "is enough" test "$(outputs)" = 2222222
t "and nothing more to do" expect_out 'ran 0' stet run
for n in 1:file 2:pattern 3:link 4:word 5:shell 6:wordlink 7:through; do
    echo "$n" >s
    t "stet run ${n#*:} runs what it needs" stet run "${n#*:}"
    t "and is right" test "$(cat "o${n%:*}")" = "$n"
done
t "all of it" stet run
echo other >e/x
ln -sfn e l
ln -sfn e/x latest
t "links that lead elsewhere" stet run
t "are inputs" test "$(cat o1 o2 o3 o4 o5 o6 | sort -u)" = other
t "and stand" expect_out 'ran 0' stet run

cat >stet.toml <<'TOML'
name = "p"
[nodes.word]
command = "cat deep/../f > {out}"
produces = "o1"
[nodes.file]
command = "cat {in} > {out}"
files = "deep/../f"
produces = "o2"
TOML
t ".. behind a link" stet run
t "is the directory above what it leads to" test "$(cat o1 o2 | tr -d '\n')" = 11
echo 2 >d/f
t "an edit there" stet run
t "is seen" test "$(cat o1 o2 | tr -d '\n')" = 22

ln -sfn d l
printf 'name = "p"\n[nodes.a]\ncommand = "echo A > {out}"\nproduces = "l/y"\n[nodes.b]\ncommand = "echo B > {out}"\nproduces = "d/y"\n' >stet.toml
t "two nodes that write one file are refused" expect_err "node \"a\" produces as well" stet run
printf 'name = "p"\n[nodes.z]\ncommand = "sleep 0.3; cat s > {out}"\nproduces = "d/w"\n[nodes.a]\ncommand = "cat {in} > {out}"\nfiles = "%s/d/w"\nproduces = "o1"\n[nodes.b]\ncommand = "cat {in} > {out}"\nfiles = "../%s/d/w"\nproduces = "o2"\n' "$PWD" "$(basename "$PWD")" >stet.toml
echo 7 >s
t "an absolute path, and one from above, of an output" stet run
t "wait for it" test "$(cat o1 o2 | tr -d '\n')" = 77
mkdir g own
ln -s g lg
ln -s own lo
cat >stet.toml <<'TOML'
name = "p"
[nodes.one]
command = "echo 1 > {out}"
produces = "g/one.txt"
[nodes.two]
command = "echo 2 > {out}"
produces = "g/two.txt"
[nodes.list]
command = "echo {in} > {out}"
files = "lg/*.txt"
produces = "o1"
[nodes.own]
command = "echo {in} > {out}"
files = "lo/*.txt"
produces = "own/own.txt"
TOML
echo 1 >own/a.txt
t "a pattern through a link" stet run
t "matches outputs, and not the node's own" test "$(cat o1 own/own.txt | tr '\n' ' ')" = "lg/one.txt lg/two.txt lo/a.txt "
t "and stands" expect_out 'ran 0' stet run
rm -rf g
t "outputs that were deleted" expect_out "ran 3" stet run
t "are matched when they are made again, in the same run" test "$(cat o1)" = "lg/one.txt lg/two.txt"
t "and that stands" expect_out 'ran 0' stet run
sed -i '/nodes.two/,/two.txt/d' stet.toml
t "a node that is gone" stet run
t "is not matched there either" test "$(cat o1)" = lg/one.txt
t "and that stands" expect_out 'ran 0' stet run
printf 'name = "p"\n[nodes.a]\ncommand = "echo > {out}"\nproduces = "stet.toml"\n' >stet.toml
t "stet.toml is nobody's output" expect_err "is the file that says so" stet run
printf 'name = "p"\n[nodes.a]\ncommand = "true"\nafter = ["a"]\n' >stet.toml
t "a node that waits for itself" expect_err "cannot run after itself" stet run
for c in '[]' '""' '" "'; do
    printf 'name = "p"\n[nodes.a]\ncommand = %s\n' "$c" >stet.toml
    t "command = $c is empty" expect_err "the command is empty" stet run
done

t "a directory that is not there" expect_err "no such directory" stet -C "$PWD/none" run
rm stet.toml
finish
