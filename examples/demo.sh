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
cp -rL "$here/site" "$work/site" # its pages are links to the documentation
cd "$work/site"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi
say() { # say LINE...
    echo
    printf "$bold# %s$plain\\n" "$@"
}
show() { # show COMMAND...: printed as typed, then run
    printf '$ %s\n' "$*"
    eval "$*"
}

say "A job: six pages of documentation become a web site. A command renders each page, another finds out which pages" \
    "are related, a JavaScript function makes the contents of what they found, and a last command writes the front page"
show "ls -m . pages"

say "The pipeline"
show "cat stet.toml"
show "stet init"

say "The first run does everything. Finding related pages holds every sentence against every other, and takes its time"
show "stet run"
show "ls -m site"
show "sed 's/<[^>]*>//g' site/index.html | sed -n 5,10p | cut -c1-100"

say "The second run: everything stands"
show "stet run"

say "A sentence is added to one page. What does not stand, and why?"
show "cp pages/runs.md before.md"
show "printf '\\nIt stands.\\n' >> pages/runs.md"
show "stet run --dry-run"

say "Two commands run. The other pages stand; and since no heading changed, nor what is related," \
    "the contents and the front page stand too"
show "stet run"

say "The edit is taken back. The same two commands ran on the same bytes before: their results are put back," \
    "and nothing is started"
show "mv before.md pages/runs.md"
show "stet run"

say "One number of the argument changes: the function runs, and the front page is written. No page is rendered"
show "stet set piece:site:argument/top 1"
show "stet why"
show "stet run"

say "An edit, and a kill in the middle of the long command"
show "echo 'A line more.' >> pages/memory.md"
printf '$ stet run & sleep 0.5; kill -9 $!\n'
before=$(ls .stet/runs)
stet run &
pid=$!
for _ in $(seq 200); do [ "$(ls .stet/runs)" != "$before" ] && break; sleep 0.02; done # it has begun, however slow the machine is
sleep 0.5
kill -9 $pid
wait $pid 2>/dev/null || true

say "The run says what became of it, and so does the list of all runs of all projects"
show "stet runs list --order newest"
run=$(stet runs search --status interrupted --json | sed 's/.*"runId":"\([^"]*\)".*/\1/')
show "stet runs resume $run"

say "It goes on: the command went on under its supervisor meanwhile, and its result is taken up"
show "stet runs resume $run --drive"
show "stet run"

say "Runs are plain files. The registry over them is derived, and finds each of them again, in every project"
show "stet registry refresh"
show "stet runs search --text documentation --since 1h --status completed --order newest"
show "stet runs stats"

say "Underneath are documents: transactions, history, branches"
show "stet set config '{\"theme\": \"dark\", \"visits\": 1}'"
show "stet doc patch config '[{\"op\": \"increment\", \"path\": \"/visits\", \"by\": 1}]'"
show "stet doc log config"

say "Is everything that is stored what it should be?"
show "stet check"
