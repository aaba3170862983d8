#!/usr/bin/env bash
# Parts of the persist directory, or all of it, are removed: check says what is lost, one repair leads back to ok, files stay, and a run makes what it needs.
. "$STET_SOURCE/test/scenario/lib.sh"
cat >stet.toml <<'TOML'
[nodes.upper]
command  = "tr a-z A-Z < {in} > {out}"
files    = "in.txt"
produces = "out.txt"
TOML
stet init -q
for words in "one" "two"; do
    echo "$words" >in.txt
    stet run >/dev/null
    stet persist cleanup >/dev/null
done
cp -r .stet kept
for gone in .stet/persist .stet/persist/objects .stet/persist/entry_snapshots; do
    for early in yes no; do
        rm -rf .stet "$gone"
        cp -r kept .stet
        rm -rf "$gone"
        t "$gone ($early): what lies on disk is up to date" expect_out "ran 0, up to date 1" stet run
        t "check says what is lost"                expect_status 1 stet check --only persist
        if [ $early = yes ]; then
            echo three >in.txt
            t "a run makes what it needs"          expect_out "ran 1" stet run
            t "and it is right"                    same THREE "$(cat out.txt)"
        fi
        t "a repair succeeds"                      stet check --repair
        t "and is enough"                          stet check
        t "the output was not touched"             test -s out.txt
        rm out.txt
        t "a removed output is made again"         expect_out "ran 1" stet run
        t "from the input"                         same "$(tr a-z A-Z <in.txt)" "$(cat out.txt)"
        t "and check finds nothing"                stet check
        echo two >in.txt
        echo TWO >out.txt
    done
done
finish
