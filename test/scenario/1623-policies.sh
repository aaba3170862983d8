#!/usr/bin/env bash
# policy.toml says which runs are archived, which entry of the queue comes first, how many at a time, how often and how soon again.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
mkdir -p "$STET_HOME"
policy() { printf "$1" >"$STET_HOME/policy.toml"; }
cat >stet.toml <<'TOML'
[argument]
n = 0
[nodes.say]
command = "echo {n} >> $STET_WITNESS; cp in.txt {out}"
inputs = { n = "$argument/n" }
env = ["STET_WITNESS"]
files = "in.txt"
produces = "out.txt"
TOML
echo x >in.txt
export STET_WITNESS="$PWD.witness"
stet run -q
: >"$STET_WITNESS"

for n in 1 2 3; do stet -q queue add --app stet.toml --input "n=$n"; sleep 0.01; done
stet -q queue add --app stet.toml --input n=4 --priority 1
policy '[queue]\norder = "newest"\n'
t "the newest first, within a priority"      same "3 2 1 4" "$(stet queue list --json | python3 -c 'import json, sys; print(*(e["inputs"]["n"] for e in json.load(sys.stdin)["entries"]))')"
stet -q queue work >/dev/null
t "so they run"                              same "3 2 1 4" "$(tr '\n' ' ' <"$STET_WITNESS" | sed 's/ $//')"
rm "$STET_HOME/policy.toml"
for n in 5 6; do stet -q queue add --app stet.toml --input "n=$n"; sleep 0.01; done
stet -q queue work >/dev/null
t "without a policy the oldest comes first"  same "5 6" "$(tail -2 "$STET_WITNESS" | tr '\n' ' ' | sed 's/ $//')"

policy '[queue]\nmax-attempts = 7\n'
t "so often"                                 same 7 "$(stet queue add --app stet.toml --json | json maxAttempts)"
t "unless the entry says otherwise"          same 2 "$(stet queue add --app stet.toml --max-attempts 2 --json | json maxAttempts)"
policy '[queue]\njobs = 0\n'
t "a wrong number is an error"               expect_err "line 2: queue.jobs is not a whole number from 1 to 64" stet queue work
policy '[queue]\nworkers = 2\n'
t "so is a member that is not known"         expect_err "queue may have: order, jobs, max-attempts, back-off" stet queue list
policy '[quue]\n'
t "and a table"                              expect_err "the tables are archive, delete and queue" stet queue list
policy 'no toml'
t "and what is not TOML"                     expect_err policy.toml stet runs archive --policy
rm "$STET_HOME/policy.toml"
stet -q queue work >/dev/null

t "without a policy nothing is archived"     expect_out "archived 0 runs" stet runs archive --policy
t "nor with a window of 0 days"              expect_out "archived 0 runs" stet runs archive --older-than-days 0
for f in .stet/runs/*/state.json; do sed -i 's/"\(createdAt\|updatedAt\)": "20[0-9][0-9]/"\1": "2020/' "$f"; done
policy '[archive]\nolder-than-days = 100\nstates = ["completed"]\n'
n=$(ls .stet/runs | wc -l)
t "a policy archives what is old"            expect_out "archived $n runs" stet runs archive --policy
policy '[archive]\nolder-than-days = 100\nstates = ["running"]\n'
t "what runs is never archived by it"        expect_status 2 stet runs archive --policy
rm "$STET_HOME/policy.toml"
finish
