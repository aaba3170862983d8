#!/usr/bin/env bash
# Links below .stet are not followed: not in a run, and not in the directories in which stet opens files by name.
. "$STET_SOURCE/test/scenario/lib.sh"
mkdir project elsewhere && cd project || exit 1
stet -q init
printf 'name = "p"\n[argument]\nn = 1\n[nodes.a]\ncommand = "echo secret; exit {n}"\ninputs = { n = "$argument/n" }\n' >stet.toml
stet -q run >/dev/null 2>&1
run=$(ls .stet/runs)
mv ".stet/runs/$run/logs" ../elsewhere/logs
log=$(ls ../elsewhere/logs)
echo hidden >"../elsewhere/logs/$log"
ln -s "$PWD/../elsewhere/logs" ".stet/runs/$run/logs"
t "logs behind a link are not shown"            expect_status 6 stet runs logs "$run"
t "nothing of them is printed"                  not expect_out hidden stet runs logs "$run"
t "nor exported"                                expect_status 6 stet runs export "$run" -o ../bundle
"$STET" runs resume "$run" --drive >/dev/null 2>&1
t "nor written"                                 same hidden "$(cat "../elsewhere/logs/$log")"
t "nothing else appears there"                  same "$log" "$(ls ../elsewhere/logs)"
rm ".stet/runs/$run/logs"
t "without the link it goes on"                 expect_status 1 stet runs resume "$run" --drive
mkdir ../elsewhere/exec ../elsewhere/files
for name in local/exec/turn local/files/main/index local/pieces/x.lock local/registry; do
    mkdir -p "$(dirname ".stet/$name")"
    mv ".stet/$name" ../kept 2>/dev/null
    touch ../elsewhere/target
    ln -s "$PWD/../elsewhere/target" ".stet/$name"
    t "$name as a link is asked for first"          expect_status 9 stet run
    t "nothing was written behind it"               same 0 "$(stat -c %s ../elsewhere/target)"
    rm ".stet/$name"
    if [ -e ../kept ]; then mv ../kept ".stet/$name"; fi
done
t "without them it works"                       expect_status 0 stet run --set n=0
finish
