#!/usr/bin/env bash
# A command that failed because of what a removed command has left behind runs again when that is gone or belongs to somebody: also where failed actions are not
# retried. What it found is among what it read. Named, in a directory, by a pattern of words, and through a link.
. "$STET_SOURCE/test/scenario/lib.sh"
top=$PWD
case_of() { # case_of NAME WORDS: the reader WORDS, and gen/b.txt of a command whose source is gone
    cd "$top" && mkdir -p "$1/src" && cd "$1" && stet init >/dev/null && echo 1 >src/a && echo 2 >src/b && ln -s gen way
    printf 'name = "p"\n[nodes.e]\neach = "src/*"\ncommand = "cat {in} > {out}"\nproduces = "gen/{in.name}.txt"\n[nodes.d]\n%s\nproduces = "out/d"\n' "$2" >stet.toml
    t "$1: a pipeline runs" stet run
    rm src/b
    t "$1: it fails" expect_status 1 stet run -k
    t "$1: and is not tried again while nothing has changed" expect_status 1 stet run --no-retry-failed
}
pattern='command = "cat gen/* > {out}"'
case_of pattern "$pattern"
t "gc removes it" expect_out "removed gen/b.txt" stet gc --outputs
t "why does not say that nothing has changed" eval '! stet why d 2>&1 | grep "nothing that it read has changed"'
t "get --fresh runs it" stet get --fresh piece:p/d/files/out/size
t "and it stands" expect_out "ran 0" stet run --no-retry-failed
case_of removed "$pattern"
rm gen/b.txt
t "removed by hand: it runs" stet run --no-retry-failed
t "with what is left" [ "$(cat out/d)" = 1 ]
case_of edited "$pattern"
echo mine >gen/b.txt
t "written anew: it runs" stet run --no-retry-failed
t "with what is there" [ "$(cat out/d)" = "1
mine" ]
case_of directory 'command = "cat {in}/* > {out}"
files = "gen"'
rm gen/b.txt
t "a directory: it runs" stet run --no-retry-failed
case_of link 'command = "cat way/* > {out}"'
rm gen/b.txt
t "through a link: it runs" stet run --no-retry-failed
cd "$top/pattern"
finish
