#!/usr/bin/env bash
# What stet does, shown on a project in a temporary directory: examples/demo.sh BUILD. Every command is printed before it
# runs, and the output is what it says now. Nothing outside that directory is touched.
set -e
exec 2>&1
build=${1:?usage: examples/demo.sh BUILD}
work=$(mktemp -d "${TMPDIR:-/tmp}/stet-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME="$work" STET_HOME="$work/home" PATH="$build:$PATH"
cd "$work"

say() { printf '\n# %s\n' "$*"; }
show() { # show COMMAND...: printed as typed, then run
    printf '$ %s\n' "$*"
    eval "$*"
}
# shown to fail: prints the status, which is part of what is shown
show_failing() {
    printf '$ %s\n' "$*"
    local status=0
    eval "$*" || status=$?
    printf '(exit status %d)\n' "$status"
    [ "$status" != 0 ]
}

say "A project is a directory with .stet/ in it"
show "stet init analysis"
show "cd analysis"
show "cat .stet/config.toml"

say "Does this machine offer what stet needs?"
show "stet doctor"

say "Projects that commands across projects look at; one entry however it is reached"
show "ln -s . again"
show "stet project add"
show "stet project add again"
show "stet project list --json"

say "Is everything that is stored what it should be?"
show "stet check"
show "echo '# emptied by hand' > .stet/.gitignore"
show_failing "stet check"
show "stet check --repair"
show "stet gc --dry-run"

say "Mistakes are told apart, with the way out; programs get them as JSON"
show_failing "stet check --repiar"
show_failing "stet check --repiar --json"

say "Everything is rendered from one table of operations: help, the man page, completion"
show "stet help project"
show "stet help --completion bash | head -3"
