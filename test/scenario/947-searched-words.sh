#!/usr/bin/env bash
# What grep, sed, awk, jq and tr search for is likely no file: it makes no circle with a node that writes something of that name. What they read still comes first, and
# a circle of files that are read is still refused.
. "$STET_SOURCE/test/scenario/lib.sh"
top=$PWD
number=0
chain() { # chain WORDS: a node that lists with them, and one behind it that writes gen/x
    number=$((number + 1))
    cd "$top" && mkdir -p "$number/src" && cd "$number" && stet init >/dev/null && echo 1 >src/a
    printf 'name = "p"\n[nodes.list]\ncommand = "%s > {out} || :"\nproduces = "out/list"\n[nodes.x]\ncommand = "cat {in} > {out}"\nfiles = "$list.out"\nproduces = "gen/x"\n' "$1" >stet.toml
}
for words in 'ls src/* | grep -v gen' 'ls src/* | grep -c -v -e gen' 'ls src/* | sed -n gen' 'ls src/* | tr -d gen' 'ls src/* | tr gen out' 'ls src/* | awk gen'; do
    chain "$words"
    t "$words: no circle" stet run
    t "$words: nothing more to do" expect_out "ran 0," stet run
done
# A bare word, and what an option takes, may be a text for any program.
for words in 'find src -name gen' 'find src -path gen/x' 'ls src/* | myfilter gen' 'ls -I gen src' 'sort -t gen src/a' 'find src -newer src/a -name gen' 'grep gen/x src/a'; do
    chain "$words"
    t "$words: no circle" stet run
    t "$words: nothing more to do" expect_out "ran 0," stet run
done
for words in 'cat gen/x' 'grep 1 gen/x' 'sed s/a/b/ gen/x' 'tr a b < gen/x' 'wc -l < gen/x'; do
    chain "$words"
    t "$words: a circle" expect_status 2 stet run
done
chain 'echo 1'
printf '[nodes.a]\ncommand = "grep -v gen gen/x > {out}; grep 1 gen/x >> {out}"\nproduces = "out/a"\n' >>stet.toml
t "what is read comes first" stet run
t "and is read once" expect_out "ran 0," stet run
t "as it is" test "$(cat out/a)" = "1
1"
finish
