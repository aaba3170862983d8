#!/usr/bin/env bash
# What stet does, shown on a project in a temporary directory: examples/demo.sh BUILD. Every command is printed before it
# runs, and the output is what it says now. Nothing outside that directory is touched.
set -e
exec 2>&1
build=${1:?usage: examples/demo.sh BUILD}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/stet-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME="$work" STET_HOME="$work/home" PATH="$build:$PATH"
cp -r "$here/books" "$work/books"
cd "$work/books"

say() { printf '\n# %s\n' "$*"; }
show() { # show COMMAND...: printed as typed, then run
    printf '$ %s\n' "$*"
    eval "$*"
}

say "A project: a few texts, a command that counts words, a shell line, a JavaScript function over what they found"
show "ls . texts"
show "cat stet.toml"
show "stet init"

say "The first run does everything (counting takes two seconds, as if it were much work)"
show "stet run"
show "stet piece show books"

say "The second run: everything stands"
show "stet run"

say "One text is edited. What would run, and why?"
show "cp texts/proof.txt before.txt"
show "echo 'The margin is wide.' >> texts/proof.txt"
show "stet run --dry-run"
show "stet run"

say "The edit is taken back. The same calls were made before: their results are put back, and no command runs"
show "mv before.txt texts/proof.txt"
show "time stet run"

say "One number of the argument changes: one function runs, no command does"
show "stet set piece:books:argument/top 2"
show "stet why"
show "stet run"
show "stet piece graph books --format mermaid"

say "Killed in the middle. The command it had started goes on under its supervisor"
show "echo 'A new line.' >> texts/work.txt"
printf '$ stet run & sleep 1.3; kill -9 $!\n'
stet run &
pid=$!
sleep 1.3
kill -9 $pid
wait $pid || true
show "stet runs list"

say "The next start takes up what is still running, and does the rest"
show "stet run"
show "stet run"

say "Every run can be found again: here, and across all projects"
show "stet runs list --order newest"
show "stet history --limit 3"

say "Documents: transactions, history, branches"
show "stet set config '{\"theme\": \"dark\", \"visits\": 1}'"
show "stet doc patch config '[{\"op\": \"increment\", \"path\": \"/visits\", \"by\": 1}]'"
show "stet doc log config"

say "Is everything that is stored what it should be?"
show "stet check"
