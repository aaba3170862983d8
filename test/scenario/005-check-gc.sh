#!/usr/bin/env bash
# check and gc: frames over every store, one problem found, said and mended; temporary files of the dead swept.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
t "a new project is whole"                same true "$(stet check --json | json ok)"
t "every store has a row"                 stet check --json --only project
t "--only one store"                      same 1 "$(stet check --json --only project | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["stores"]))')"
t "an unknown store is invalid"           expect_status 2 stet check --only projct
t "with did-you-mean"                     expect_err "did you mean project?" stet check --only projct
t "the same for gc"                       expect_status 2 stet gc --only projct

cp .stet/.gitignore saved
printf 'persist/temp/' >.stet/.gitignore
t "a problem: failed"                     expect_status 1 stet check
t "is said"                               expect_out "does not keep local/ out" bash -c '"$STET" check || true'
t "with the way to mend it"               expect_out "check --repair" bash -c '"$STET" check || true'
t "as JSON it is a result, not an error"  same project "$(stet check --json | json stores.0.problems.0.store)"
t "of a status"                           same problems "$(stet check --json | json stores.0.status)"
t "nothing was changed by looking"        same persist/temp/ "$(cat .stet/.gitignore)"
t "--repair mends it"                     same repaired "$(stet check --repair --json | json stores.0.status)"
t "and keeps what was there"              same "persist/temp/ local/" "$(tr '\n' ' ' <.stet/.gitignore | sed 's/ $//')"
t "then all is well"                      stet check
rm .stet/.gitignore
t "a missing file too"                    stet check --repair
cp saved .stet/.gitignore

printf 'version = 999\n' >.stet/config.toml
t "a newer project: unsupported"          expect_status 8 stet check
printf 'version = = 1\n' >.stet/config.toml
t "broken settings: invalid"              expect_status 2 stet check
t "with line and column"                  expect_err "line 1" stet check
t "doctor says so and goes on"            expect_out "clock" bash -c '"$STET" doctor || true'
printf 'version = 1\n' >.stet/config.toml

mkdir -p .stet/local/temp
echo junk >".stet/local/temp/x.$$.1.0123456789abcdef"           # this shell lives, but was not started at time 1
touch -d '3 days ago' .stet/local/temp/old.999999999.5.0123456789abcdef
t "gc --dry-run frees nothing"            stet gc --dry-run
t "and counts"                            test "$(stet gc --dry-run --json | json stores.0.items)" -ge 1
t "both are still there"                  test -e .stet/local/temp/old.999999999.5.0123456789abcdef
t "gc frees"                              stet gc
t "what the dead left"                    test ! -e .stet/local/temp/old.999999999.5.0123456789abcdef
t "again there is nothing to free"        same 0 "$(stet gc --json --only project | json stores.0.items)"
finish
