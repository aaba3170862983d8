#!/usr/bin/env bash
# No record means unknown, on every surface: on a fork, on a fork of a fork, on a branch that was made again under an old name, and after the scheduler's tables were emptied.
. "$STET_SOURCE/test/scenario/lib.sh"

lk() { printf '{"/":{"link@1":{"id":"%s","path":[]}}}' "$1"; }
state() { stet action show "$1" "$2" --json "${@:3}" | json state; }
# states WANT [--branch B]: both actions, by action show, by status and by action list, and why agrees.
states() {
    local want=$1 p
    shift
    for p in "g a" "h c"; do
        set -- "$@"
        [ "$(state $p "$@")" = "$want" ] || { echo "$p is $(state $p "$@")"; return 1; }
        [ "$(stet action list "${p% *}" "$@" --json | json actions.0.state)" = "$want" ] || { echo "action list: $p"; return 1; }
        [ "$(stet status "${p% *}" "$@" --json | json "pieces.0.$want")" = 1 ] || { stet status "$@"; return 1; }
        stet why $p "$@" | grep -q "is $want\|$want:" || { stet why $p "$@"; return 1; }
    done
}
result() { stet piece show "$1" --json "${@:2}" | json result; }

stet -q init
t "a new project has no pieces, which is no error"   expect_status 0 stet status
t "but no other branch either"                       expect_status 3 stet status --branch nonesuch
echo '{"pattern":1,"name":"g","argument":{"default":{"x":1}},"nodes":[{"id":"a","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"negate"}}],"result":{"a":{"$":"a"}}}' >g.json
echo '{"pattern":1,"name":"h","nodes":[{"id":"c","inputs":{"value":'"$(lk piece:g:node:a)"'},"module":{"type":"ref","ref":"value"}}],"result":{"c":{"$":"c"}}}' >h.json
stet -q run g.json && stet -q run h.json
stet -q branch create dev
t "a fork has no records"                            states unknown --branch dev
t "a dry run of the reader says so"                  same unknown "$(stet run h.json --branch dev --dry-run --json | json actions.0.state)"
stet -q set piece:g:argument/x 10 --branch dev
t "a pull runs what the other piece lacks"           same -10 "$(stet get piece:h/c --fresh --branch dev)"
t "and then both stand"                              states stands --branch dev
t "and a run finds nothing to do"                    same 0 "$(stet run h.json --branch dev --json | json ran)"
t "the default branch is as it was"                  same -1 "$(stet get piece:h/c --fresh)"
stet -q set piece:g:argument/x 5
t "a change on the parent is not one on the fork"    states stands --branch dev
t "on the parent it is: the writer is dirty"         same dirty "$(state g a)"
t "and the reader in the other piece is stale"       same stale "$(state h c)"
t "for which why names the write"                    bash -c '"$STET" why h | grep -q "h/c is stale: .*g/a is dirty: .*piece:g:argument/x was written"'

stet -q branch create deeper --from dev
t "a fork of a fork has no records either"           states unknown --branch deeper
stet -q run h.json --branch deeper
t "a run of the reader runs the writer first"        same '{"c":-10}' "$(result h --branch deeper)"
stet -q branch delete deeper
stet -q branch create deeper
t "another branch of an old name starts anew"        states unknown --branch deeper
stet -q run h.json --branch deeper
t "and follows its own parent"                       same '{"c":-5}' "$(result h --branch deeper)"

stet -q run g.json; stet -q run h.json
db=.stet/local/spaces/main.db
sqlite() { python3 -c 'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()' "$db" "$1"; }
sqlite 'DELETE FROM action; DELETE FROM mark; DELETE FROM place_index'
t "emptied tables: everything is unknown"            states unknown
t "and a pull of the reader runs both"               same -5 "$(stet get piece:h/c --fresh)"
t "and then both stand again"                        states stands
sqlite "UPDATE action SET observation = x'00ff' WHERE name = 'a'"
t "a row that can't be decoded is unknown"           same unknown "$(state g a)"
stet -q set piece:g:argument/x 6
t "and runs when what it read changes"               same -6 "$(stet get piece:h/c --fresh)"

t "a branch that is not there is not found"          expect_status 3 stet status --branch nonesuch
for op in "status g" "why g" "action list g" "action show g a" "piece list" "piece show g" "get piece:g" "doc list" "run g.json" "piece pull g" "get piece:g --fresh" "set d 1" "run g.json --dry-run" "piece graph g" "space readers d"; do
    t "and so say: $op"                              expect_status 3 stet $op --branch nonesuch
done
for op in "status" "status g" "why g" "action list g" "piece list" "piece show g" "get piece:g" "doc list" "get piece:g --fresh" "branch list"; do
    t "a space that is not there: $op"               expect_status 3 stet $op --space nonesuch
done

# There is one working tree: what a run of one branch writes, the others see.
mkdir -p files; cd files || exit 1
stet -q init
cat > stet.toml <<'X'
name = "p"
[argument]
y = 1
[nodes.a]
command = "echo {y} > {out}"
inputs = { y = "$argument/y" }
produces = "o"
X
stet -q run; stet -q branch create br; stet -q run --branch br --set y=2
t "what a command of a branch wrote stands there"    same stands "$(state p a --branch br)"
t "and was overwritten for the default branch"       same dirty "$(state p a)"
stet -q run
t "a run there overwrites it"                        same 1 "$(cat o)"
t "which the state of the branch tells"              same dirty "$(state p a --branch br)"
t "and status, too"                                  same 1 "$(stet status p --branch br --json | json pieces.0.dirty)"
t "and why"                                          expect_out "somebody else changed" stet why p --branch br
# A node that had children returns a pattern now, and fails: on a fork it is as unknown as everything else.
echo '{"pattern":1,"name":"turns","argument":{"default":{"l":[1,2],"p":0}},"nodes":[{"id":"n","inputs":{"list":{"$":"argument/l"}},"module":{"type":"ref","ref":"map","pattern":{"pattern":1,"name":"c","nodes":[{"id":"y","inputs":{"value":{"$":"argument/element"}},"module":{"type":"ref","ref":"value"}}],"result":{"$":"y"}}}}],"result":{"n":{"$":"n"}}}' >turns.json
t "a node with children"                 stet run turns.json -q
echo '{"pattern":1,"name":"turns","argument":{"default":{"l":[1,2],"p":0}},"nodes":[{"id":"n","returns":"pattern","inputs":{"value":{"$":"argument/p"}},"module":{"type":"ref","ref":"value"}}],"result":{"n":{"$":"n"}}}' >turns.json
t "which returns no pattern"             expect_status 1 stet run turns.json -q
stet branch create turned -q
t "is unknown on a fork"                 same 1 "$(stet status turns --branch turned --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["pieces"][0]["unknown"])')"
t "and fails there, too"                 expect_status 1 stet run turns.json --branch turned -q
t "and is mended there"                  expect_out 'ran 1' stet run turns.json --branch turned --set 'p={"pattern":1,"name":"m","nodes":[],"result":5}'
t "check finds nothing"                  stet check
finish
