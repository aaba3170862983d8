#!/usr/bin/env bash
# Completion: run in bash, loaded by zsh and fish, for commands, flags, choices and files.
. "$STET_SOURCE/test/scenario/lib.sh"
stet help --completion bash >stet.bash
stet help --completion zsh >_stet
stet help --completion fish >stet.fish
touch some-file && mkdir some-dir

# complete WORD...: what bash offers for the last word. Words are split as readline does it: "=" stands alone.
complete_bash() {
    bash --norc -c '
        . ./stet.bash
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _stet
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}
offers() { # WANT... -- WORD...: each of WANT is offered
    local want=()
    while [ "$1" != -- ]; do want+=("$1"); shift; done
    shift
    local got
    got=$(complete_bash "$@") || return 1
    for word in "${want[@]}"; do grep -qxF -- "$word" <<<"$got" || { echo "lacks $word: $got"; return 1; }; done
}
t "bash loads it without a word"        same "" "$(bash --norc -uc '. ./stet.bash' 2>&1)"
t "commands"                            offers init check project help -- stet ""
t "that begin so"                       same "doctor" "$(complete_bash stet doct)"
t "verbs of a noun"                     offers add list remove -- stet project ""
t "that begin so"                       same "remove" "$(complete_bash stet project re)"
t "after global flags"                  same "remove" "$(complete_bash stet --json -C some-dir project re)"
t "global flags first"                  offers --json --project --version -- stet --
t "flags of a command"                  offers --dry-run --only --json -- stet gc --
t "that begin so"                       same "--repair" "$(complete_bash stet check --rep)"
t "choices of a flag"                   same "bash zsh fish" "$(complete_bash stet help --completion "" | xargs)"
t "after an equals sign"                same "zsh" "$(complete_bash stet help --completion = z)"
t "right after it"                      same "bash zsh fish" "$(complete_bash stet help --completion = | xargs)"
t "a boolean after an equals sign"      same "true" "$(complete_bash stet gc --dry-run = t)"
t "choices of a global flag"            same "never" "$(complete_bash stet --color n)"
t "files for a file"                    offers some-file some-dir -- stet init some
t "directories for a project"           same "some-dir" "$(complete_bash stet -C some)"
t "nothing for a free text"             same "" "$(complete_bash stet gc --only "")"
t "commands for help"                   offers project gc -- stet help ""
# Every operation of the table is reached.
reach() {
    stet help --json | python3 -c '
import json, sys
for op in json.load(sys.stdin)["operations"]:
    print(op["name"])' | while read -r first second; do
        if [ -n "$second" ]; then offers "$second" -- stet "$first" ""; else offers "$first" -- stet ""; fi || exit 1
    done
}
t "every operation is offered"          reach
t "registered for stet"                 expect_out "_stet" bash --norc -c '. ./stet.bash; complete -p stet'

t "zsh reads it"                        zsh -n _stet
cat >zsh-test.zsh <<'Z'
# The functions of zsh's completion system, as far as ours calls them, print what they are given.
compset() { :; }
compadd() { shift; print -l -- "$@"; }
_files() { print files "$@"; }
_describe() { local item; for item in "${(@P)2}"; do print -- "${item%%:*}"; done; }
compdef() { :; }
source ./_stet
words=("$@") CURRENT=$#
_stet
Z
complete_zsh() { zsh -f zsh-test.zsh "$@"; }
t "zsh: commands"                       expect_out "project" complete_zsh stet ""
t "zsh: verbs"                          same "add list remove" "$(complete_zsh stet project "" | xargs)"
t "zsh: flags"                          expect_out "--dry-run" complete_zsh stet gc --
t "zsh: choices"                        same "bash zsh fish" "$(complete_zsh stet help --completion "" | xargs)"
t "zsh: after an equals sign"           same "bash zsh fish" "$(complete_zsh stet help --completion=z | xargs)"
t "zsh: files"                          same "files" "$(complete_zsh stet init "" | xargs)"

t "fish reads it"                       fish --no-execute stet.fish
complete_fish() { fish --no-config -c 'source stet.fish; complete -C "$argv"' "$*" 2>/dev/null | cut -f1; }
t "fish: commands"                      expect_out "project" complete_fish "stet "
t "fish: verbs"                         same "add list remove" "$(complete_fish "stet project " | sort | xargs)"
t "fish: after global flags"            same "remove" "$(complete_fish "stet --json -C some-dir project re" | xargs)"
t "fish: flags"                         expect_out "--dry-run" complete_fish "stet gc --d"
t "fish: choices"                       same "bash fish zsh" "$(complete_fish "stet help --completion " | sort | xargs)"
t "fish: files"                         expect_out "some-file" complete_fish "stet init some"
finish
