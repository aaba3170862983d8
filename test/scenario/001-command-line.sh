#!/usr/bin/env bash
# What a user types and what comes back: help at every level, strict words, JSON, exit statuses.
. "$STET_SOURCE/test/scenario/lib.sh"

t "stet alone gives an overview"          expect_out "Common commands" stet
t "by topic"                              expect_out "Run it, and see what is out of date" stet
t "which is short"                        test "$(stet | wc -l)" -lt 50
t "--version is one line"                 same "stet $(stet version --json | json version)" "$(stet --version)"
t "--version with --json is JSON"         same "$(stet version --json)" "$(stet --version --json)"
t "help lists every command"              expect_out "project remove" stet help
t "and the exit statuses"                 expect_out "130" stet help
t "--help alone is help"                  same "$(stet help)" "$(stet --help)"
t "help about a noun"                     expect_out "project list" stet help project
t "the same with --help"                  same "$(stet help project)" "$(stet project --help)"
t "help about a command"                  expect_out "usage: stet project add [--runs RUNS] [DIR]" stet help project add
t "the same with --help and -h"           same "$(stet project add --help)" "$(stet project add -h)"
t "help wins over what is too much"       expect_out "usage:" stet init a b --help
t "help about nothing is not found"       expect_status 3 stet help projct
t "and names what is near"                expect_err "did you mean: stet help project" stet help projct lst
t "a noun alone too"                      expect_err "did you mean: stet help piece?" stet help peice
t "one topic as JSON"                     same '"project add"' "$(stet help project add --json | json operations.0.name | sed 's/.*/"&"/')"

t "an unknown command is invalid"         expect_status 2 stet frobnicate
t "with the valid ones"                   expect_err ", doctor, " stet frobnicate
t "and did-you-mean"                      expect_err "did you mean: stet doctor?" stet doctr
t "an unknown verb too"                   expect_err "did you mean: stet project list?" stet project lits
t "an unknown flag is invalid"            expect_status 2 stet check --repiar
t "with did-you-mean"                     expect_err "did you mean --repair?" stet check --repiar
t "a flag is not abbreviated"             expect_status 2 stet check --rep
t "a value that is none"                  expect_err "none of: bash, zsh, fish" stet help --completion tcsh
t "a missing value"                       expect_err "needs a value" stet help --completion
t "a flag given twice"                    expect_err "given twice" stet gc --dry-run --dry-run
t "one argument too many"                 expect_status 2 stet init a b
t "an argument where none is taken"       expect_err "takes no argument" stet doctor now
t "flags before a command are global"     expect_err "come after its name" stet --dry-run gc
t "words that exclude each other"         expect_status 2 stet help --man --reference
t "not UTF-8"                             expect_status 2 stet init $'\xff'

error=$(stet check --repiar --json 2>err.txt)
t "an error with --json is on standard output" same invalid "$(json error.code <<<"$error")"
t "with hint and details"                 same "did you mean --repair?" "$(json error.hint <<<"$error")"
t "the valid ones among them"             same '--only' "$(json error.details.valid.0 <<<"$error")"
t "and standard error is empty"           test ! -s err.txt
t "--json may come first"                 same invalid "$(stet --json check --repiar | json error.code)"
t "every line of --json is one value"     test "$(stet help --json | wc -l)" = 1

t "no project: not found"                 expect_status 3 stet check
t "with the way out"                      expect_err "stet init" stet check
t "no project as JSON"                    same not_found "$(stet check --json | json error.code)"
t "a project that is not there"           expect_status 3 stet --project nowhere check

mkdir a && cd a || exit 1
t "init"                                  expect_out "created the project $PWD" stet init
t "hyphens and underscores are alike"     stet gc --dry_run
t "a letter"                              stet gc -n
t "a boolean's value"                     stet gc --dry-run=true
t "a boolean's word"                      stet gc --dry-run true
t "a boolean turned off"                  stet check --no-repair
t "-C names a project"                    same true "$(cd / && stet -C "$OLDPWD" check --json | json ok)"
t "--project too, anywhere"               same true "$(cd / && stet check --json --project="$OLDPWD" | json ok)"
mkdir -p -- -dash/sub
t "a name that begins with a dash is a flag"  expect_status 2 stet init -dash
t "unless it comes after --"              expect_out "-dash" stet init -- -dash
t "a subdirectory belongs to its project" expect_out "project" stet -C ./-dash/sub check
t "--quiet after a change says nothing"   same "" "$(stet init --quiet)"
t "--quiet leaves an answer"              expect_out "0.1" stet version --quiet
t "--quiet with --json too"               same false "$(stet init --quiet --json | json created)"

env -u HOME -u STET_HOME -u XDG_STATE_HOME "$STET" project list >out.txt 2>err.txt </dev/null
t "no HOME: where a home is needed, invalid" test $? = 2
t "with the way out"                      grep -q STET_HOME err.txt
t "no HOME: doctor says so"               expect_status 1 env -u HOME -u STET_HOME -u XDG_STATE_HOME "$STET" doctor
t "no HOME: what needs none works"        env -u HOME -u STET_HOME -u XDG_STATE_HOME "$STET" check
t "no environment at all"                 env -i "$STET" --version
mkdir gone && cd gone && rmdir ../gone
t "a current directory that is gone"      expect_status 3 stet check
t "does not matter to --version"          stet --version
cd .. || exit 1
finish
