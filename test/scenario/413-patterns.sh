#!/usr/bin/env bash
# A pattern waits for every node whose outputs it can match, however these come to be, and matches what a build from nothing would
# have: no output of a node that is gone, and nothing that the node itself writes.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
mkdir src inc
echo a >src/a.in
echo b >src/b.in
echo one >inc/one.h
cat >stet.toml <<'TOML'
name = "patterns"
[nodes.all]
command = "echo all >> log; cat {in} /dev/null > {out}"
files = "o1/*.txt"
produces = "all.txt"
[nodes.rows]
each = "src/*.in"
command = "cp {in} {out}"
produces = "o1/{in.stem}.txt"
[nodes.pages]
command = "mkdir site site/deep; echo index > site/index.txt; echo deep > site/deep/page.txt"
produces = "site"
[nodes.count]
command = "echo count >> log; cat {in} /dev/null > {out}"
files = "site/**/*.txt"
produces = "count.txt"
[nodes.copies]
each = "site/**/*.txt"
command = "cp {in} {out}"
produces = "copies/{in.stem}.out"
[nodes.last]
command = "echo last >> log; cat {in} /dev/null > {out}"
files = "copies/*"
produces = "last.txt"
[nodes.deep]
command = "echo deep >> log; cat {in} > {out}"
files = "site/deep/page.txt"
produces = "deep.txt"
[nodes.compile]
command = "cat inc/one.h > {out}; echo '{out}: inc/one.h' > o2/x.d"
produces = "o2/x.o"
depfile = "o2/x.d"
[nodes.deps]
command = "echo deps >> log; cat {in} > {out}"
files = "o2/*.d"
produces = "deps.txt"
TOML
: >log
ran() { sort log | tr '\n' ' '; : >log; }
is() { test "$(cat "$1" | tr '\n' ' ')" = "$2 " || { cat "$1"; false; }; }

t "the first run" stet run
t "each node with a pattern ran once" test "$(ran)" = "all count deep deps last "
t "over the outputs of a node with each" is all.txt "a b"
t "over what lies in a produced directory" is count.txt "deep index"
t "over a chain of both" is last.txt "index deep"
t "a path in a produced directory" is deep.txt "deep"
t "a dependency file" is deps.txt "o2/x.o: inc/one.h"
t "nothing more to do" expect_out "ran 0," stet run

rm o2/x.d
t "a dependency file that a pattern matches is put back" stet run
t "as it was" is o2/x.d "o2/x.o: inc/one.h"
ran >/dev/null

echo c >src/c.in
t "a new file" stet run
t "its output is matched" is all.txt "a b c"
t "and the reader ran once" test "$(ran)" = "all "
rm src/a.in
t "a file that goes" stet run
t "leaves an output that matches no longer" is all.txt "b c"
t "though it is there" test -e o1/a.txt
t "and the reader ran once again" test "$(ran)" = "all "
t "which stands" expect_out "ran 0," stet run
sed -i 's#o1/{in.stem}.txt#o1/new-{in.stem}.txt#' stet.toml
t "outputs under other names" stet run
t "are matched, and the old ones are not" is all.txt "b c"
ran >/dev/null
echo mine >o1/a.txt
t "a leftover that was edited is a file like any other" stet run
t "and matches" is all.txt "mine b c"
ran >/dev/null

sed -i 's/cp {in} {out}"\r*$/&/; /^\[nodes.rows\]/,/^\[/ s/command = .*/command = "! grep -q bad {in} \&\& cp {in} {out}"/' stet.toml
echo bad >src/b.in
t "one of the nodes fails" expect_status 1 stet run -k
t "its reader waits" test "$(ran)" = ""
echo good >src/b.in
t "it recovers" stet run -k
t "and the reader runs" is all.txt "mine good c"

python3 - <<'PY'
import re
text = open("stet.toml").read()
open("stet.toml", "w").write(re.sub(r"\[nodes.pages\].*?(?=\[nodes.count\])", "", text, flags=re.S))
PY
sed -i '/^\[nodes.deep\]/,$d' stet.toml
t "the node of a directory is gone" stet run
t "nothing of it matches" test ! -s count.txt
t "nor further on" test ! -s last.txt
t "nothing more to do then" expect_out "ran 0," stet run
cat >stet.toml <<'TOML'
name = "own"
[nodes.sum]
command = "cat {in} /dev/null > {out}"
files = "w/*.txt"
produces = "w/sum.txt"
[nodes.twice]
each = "v/*.txt"
command = "cat {in} {in} > {out}"
produces = "v/{in.stem}-twice.txt"
TOML
mkdir w v
echo w >w/a.txt
echo v >v/a.txt
t "patterns that take in their own outputs" stet run
t "do not" is w/sum.txt "w"
t "and come to rest" expect_out "ran 0," stet run
t "nor does a list grow by what it makes" test "$(ls v | tr '\n' ' ')" = "a-twice.txt a.txt "
echo v >v/b.txt
rm v/a.txt
t "after a change" stet run
t "neither" test "$(ls v | tr '\n' ' ')" = "a-twice.txt b-twice.txt b.txt "
cat >stet.toml <<'TOML'
[nodes.one]
command = "cat {in} > {out}"
files = "x/*.txt"
produces = "y/one.txt"
[nodes.two]
each = "y/*.txt"
command = "cat {in} > {out}"
produces = "x/{in.stem}.txt"
TOML
t "a circle is refused" expect_err 'a circle: node "one" reads "x/*.txt", which takes in "x/{in.stem}.txt" of node "two", node "two" reads "y/*.txt"' stet run
t "with the way out" expect_err "narrow the pattern" stet run
printf '[nodes.one]\ncommand = "cat {in} > {out}"\nfiles = "$one.out"\nproduces = "y/one.txt"\n' >stet.toml
t "a node that reads its own output is refused" expect_err 'node "one" reads its own output "y/one.txt"' stet run
printf '[nodes.one]\ncommand = "cat {in} > {out}"\neach = ["x/*.in", "$one.out"]\nproduces = "y/{in.stem}.txt"\n' >stet.toml
t "one with each, too" expect_err 'node "one" reads its own output "y/{in.stem}.txt"' stet run
printf '[nodes.one]\ncommand = "cat {in} > {out}"\nfiles = "y/one.txt"\nproduces = "y/one.txt"\n' >stet.toml
t "by its path, too" expect_err 'node "one" reads its own output "y/one.txt"' stet run
printf '[nodes.one]\ncommand = "ls y > {out}"\nfiles = "y"\nproduces = "y/one.txt"\n' >stet.toml
t "and a directory with it" expect_err 'node "one" reads the directory "y", and its own output "y/one.txt" lies in it' stet run
printf '[nodes.one]\ncommand = "ls y > {out}"\neach = "x/*.in"\nfiles.dir = "y"\nproduces = "y/{in.stem}"\n' >stet.toml
t "and with one of each" expect_err 'node "one" reads the directory "y", and its own output "y/{in.stem}" lies in it' stet run
cat >stet.toml <<'TOML'
[nodes.one]
command = "mkdir d"
produces = "d"
[nodes.two]
command = "echo > {out}"
produces = "d/e/f.txt"
TOML
t "a file in another node's directory is refused" expect_err '"d/e/f.txt" lies in "d", which node "one" produces as a whole' stet run
rm -rf x d && mkdir x && echo one >x/a.in
maker() { printf '[nodes.%s]\ncommand = "mkdir {out}; cat {in} > {out}/z.txt"\nfiles = "x/a.in"\nproduces = "d/made"\n[nodes.all]\ncommand = "cat {in} /dev/null > {out}"\nfiles = "d/**/*.txt"\nproduces = "all"\n' "$1" >stet.toml; }
maker first
t "what is in a produced directory" stet run
maker second
t "after its node got another name" stet run
t "still matches" test "$(cat all)" = one
rm -rf x d all && mkdir -p x m && echo a >x/a.in && echo b >m/b.src
namer() { printf '[nodes.up]\ncommand = "cat {in} > {out}"\neach = ["m/*", "x/*.in"]\nproduces = "m/{in.stem}%s"\n' "$1" >stet.toml; }
namer .txt
t "a list that its own outputs match" stet run
namer .out
t "is not made from what its commands wrote under other names" expect_out "failed 0 in" stet run
t "which are leftovers then" test "$(cd m && echo *)" = "a.out a.txt b.out b.src b.txt"
t "and nothing is left to do" expect_out "ran 0," stet run
rm stet.toml
finish
