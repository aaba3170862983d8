#!/usr/bin/env bash
# What commands that are gone have left behind: commands that would read it, in a directory or by a pattern of the shell, fail until it is removed,
# and then make what a build from scratch makes. An output that is to lie in what was an output itself.
. "$STET_SOURCE/test/scenario/lib.sh"
mkdir p && cd p || exit 1
stet init >/dev/null
mkdir src
echo 1 >src/a
echo 1 >src/b
cat >stet.toml <<'TOML'
name = "p"
[nodes.e]
each = "src/*"
command = "cat {in} > {out}"
produces = "out/{in.name}"
[nodes.word]
command = "cat out/* > {out}"
after = ["e"]
produces = "o1"
[nodes.worddir]
command = "ls out > {out}"
after = ["e"]
produces = "o2"
[nodes.dir]
command = ["sh", "-c", "ls $1 > o3", "x", "{in}"]
files = "out"
produces = "o3"
[nodes.pattern]
command = "echo {in} > {out}"
files = "out/*"
produces = "o4"
[nodes.maybe]
command = "for i in a; do cat out/$i; done > {out}"
after = ["e"]
produces = "o5"
TOML
outputs() { cat o1 o2 o3 o4 o5 | tr '\n' ' '; }
t "the first run" stet run
t "nothing more to do" expect_out "ran 0," stet run
rm src/b
fails() { # fails TEXT WORDS: stet run WORDS fails and says TEXT
    local said
    said=$(stet run "${@:2}" 2>&1) && return 1
    case $said in *"$1"*) ;; *) echo "$said"; return 1 ;; esac
}
t "a command is gone, and its output is in the way" fails "out/b, which a command that is gone has left behind"
t "of all that would read it" fails "p/dir: it would read out/b" -k
t "status says so" expect_out "3" stet status
t "not of what may read it, or does not match it" test "$(cat o4)" = out/a
t "gc finds it" expect_out "removed out/b" stet gc --outputs
t "then everything runs" stet run
mine=$(outputs)
mkdir ../q && cp -r src stet.toml ../q && cd ../q && stet init >/dev/null
t "as from scratch" stet run
t "and comes out the same" test "$mine" = "$(outputs)"
cd ../p || exit 1
t "and stands" expect_out "ran 0," stet run
rm src/a
echo 1 >src/c
stet run -k >/dev/null 2>&1
echo mine >out/a
t "what was edited since is a file like others" stet run
t "and is read" test "$(cat o2 | tr '\n' ' ')" = "a c "

# From a directory to a file in it, from a file to one below it, and back.
nodes() { printf 'name = "p"\n[nodes.d]\ncommand = "%s"\nproduces = "%s"\n[nodes.b]\ncommand = "echo {in} > {out}"\nfiles = "made/**"\nproduces = "o6"\n' "$1" "$2" >stet.toml; }
nodes "mkdir {out}; echo 1 > {out}/x" made/g
t "a directory" stet run
nodes "echo 2 > {out}" made/g/y
t "a file in it" stet run
t "alone" test "$(cat o6) $(find made -type f)" = "made/g/y made/g/y"
nodes "echo 3 > {out}" made/g
t "a file in its place" stet run
t "alone, too" test "$(cat o6) $(find made -type f)" = "made/g made/g"
nodes "echo 4 > {out}" made/g/z
t "a file below that" stet run
t "and alone" test "$(cat o6) $(find made -type f)" = "made/g/z made/g/z"
t "and it stands" expect_out "ran 0," stet run
nodes "mkdir {out}; echo 1 > {out}/x" made/h
stet run >/dev/null
echo mine >made/h/mine
nodes "echo 2 > {out}" made/h/y
t "a directory that somebody has changed" stet run
t "is left as it is" test "$(cat made/h/mine)" = mine
both() { printf 'name = "q"\n%s[nodes.n]\ncommand = "cat a o7/*.txt > {out} || true"\nproduces = "o7/n.txt"\n' "$1" >q.toml; }
echo 1 >a
both '[nodes.g]
command = "cat a > {out}"
produces = "o7/g.txt"
'
stet run q.toml >/dev/null
both ''
t "a node that reads where it writes names what is left there" not stet run q.toml
t "and succeeds once that is removed" sh -c '"$STET" run q.toml -k >/dev/null; "$STET" gc --outputs >/dev/null; "$STET" run q.toml'
finish
