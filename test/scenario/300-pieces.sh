#!/usr/bin/env bash
# A pattern runs, stands across processes, runs only what a change reaches, and every question about it is answered.
. "$STET_SOURCE/test/scenario/lib.sh"

t "a project" stet init
cp "$STET_SOURCE/examples/totals.json" .

t "the pattern is right" expect_out "8 nodes, 0 cells, no problems" stet pattern check totals.json
t "it can be looked at" expect_out "scaled = multiply(total, argument/factor)" stet pattern show totals.json
t "and drawn" expect_out "digraph" stet pattern show totals.json --format dot
sed 's/"ref": "sum"/"ref": "summ"/; s/"\$": "apples"/"$": "aples"/' totals.json >wrong.json
t "mistakes are status 2" expect_status 2 stet pattern check wrong.json
check_wrong() { stet pattern check wrong.json | grep -q "$1"; }
t "with line and column" check_wrong 'wrong.json:[0-9]*:[0-9]*: node "total": there is no ref "summ"'
t "and the fix" check_wrong 'did you mean "apples"?'
t "running it says the same" expect_err 'wrong.json:' stet run wrong.json

t "the first run runs everything" expect_out "ran 8, up to date 0, failed 0 in" stet run totals.json
t "a second process runs nothing" expect_out "ran 0, up to date 8, failed 0 in" stet run totals.json
t "and loads nothing" same 0 "$(stet run totals.json --json | json loaded)"
t "the piece is listed" expect_out "totals" stet piece list
t "and shown" expect_out '"total": 26' stet piece show totals
t "everything stands" same 8 "$(stet status totals --json | json pieces.0.stands)"

t "another factor runs what it reaches" expect_out "ran 2, up to date 6, failed 0" stet run totals.json --set factor=3
t "with the right result" same 78 "$(stet piece pull totals --json | json result.total)"
t "an argument that breaks its schema is refused" expect_err 'does not match its schema: /factor' stet run totals.json --set 'factor="x"'
t "and changes nothing" expect_out "ran 0, up to date 8" stet run totals.json
t "a part of the argument by its path" expect_out "failed 0" stet run totals.json --set /orders/0/amount=10

t "a failure is status 1" expect_status 1 stet run totals.json --set '/orders/0/amount="many"'
t "status says which" expect_out "failed totals/appleCost: multiply: element 0: expected a number" stet status
t "the last good result stays" same 120 "$(stet piece show totals --json | json result.total)"
t "it is tried again" same 1 "$(stet run totals.json --json | json runs)"
t "also if that is said" same 1 "$(stet run totals.json --retry-failed --json | json runs)"
t "unless the run says not to" same 0 "$(stet run totals.json --no-retry-failed --json | json runs)"
t "actions that failed can be listed" same appleCost "$(stet action list totals --state failed --json | json actions.0.action)"
t "mended, it goes on" expect_out "failed 0" stet run totals.json --set /orders/0/amount=3

t "an action shows what it read" expect_out "reads   piece:totals:argument/factor" stet action show totals scaled
t "why: it stands" expect_out "totals/total stands" stet why totals total
t "nothing dirty" same '[]' "$(stet action list totals --state dirty --json | json actions)"
t "an unknown piece is status 3" expect_status 3 stet why nothing
t "an unknown action, too" expect_status 3 stet why totals nothing

sed 's/"b": 100/"b": 50/' totals.json >next.json && mv next.json totals.json
t "a changed node runs, and what depends on it" expect_out "generation 2: 0 nodes added, 1 changed, 0 gone, 7 kept" stet run totals.json
t "the difference can be shown" expect_out "changed  large" stet piece graph totals --diff 1..2
t "a generation that never was" expect_status 3 stet piece graph totals --diff 1..9
t "nonsense" expect_status 2 stet piece graph totals --diff x
t "the graph as a snapshot" same 1 "$(stet piece graph totals --json | json graph.version)"
t "with argument schemas filled in" same array "$(stet piece graph totals --json | json graph.nodes.0.module.argumentSchema.type)"
t "the graph as a picture" expect_out "flowchart LR" stet piece graph totals --format mermaid

touch totals.json
t "a touched file changes nothing" same null "$(stet run totals.json --json | json setup || echo null)"
t "another piece of the same pattern" expect_out "ran 8" stet run totals.json --piece second
t "one part of the result" same 6 "$(stet run totals.json --piece third --demand total --json | json ran)"
t "reads alone can be recorded" expect_out "ran" stet run totals.json --piece fourth --observe-only
t "nothing was published then" same null "$(stet piece show fourth --json | json result.total)"
t "a run left its files" expect_out "completed" stet runs list

t "a piece can be stopped" expect_out "stopped" stet piece stop second
t "and goes on when it is run" expect_out "ran 0" stet run totals.json --piece second
t "and deleted" expect_out "deleted" stet piece delete second
t "it is gone" expect_status 3 stet piece show second
t "the others are not" expect_out "totals" stet piece list
t "a bad name" expect_status 2 stet run totals.json --piece 'a b'
finish
