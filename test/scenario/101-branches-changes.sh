#!/usr/bin/env bash
# Branches see their parent up to the fork; changed leaves come from values; space list, changes, stats.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
val() { stet get "$@" --json | json value; }
leaves() { stet space changes --after "$1" --json "${@:2}" | python3 -c 'import json,sys; print(" ".join(sorted(c["kind"]+":"+c["path"] for c in json.load(sys.stdin)["changes"])))'; }
seq() { stet space stats --json | json seq; }

t "no spaces yet"                          expect_out "no spaces" stet space list
stet -q set a '{"list":[1,2],"o":{"k":1}}'
stet -q set b 1
t "fork"                                   expect_out "at sequence 2" stet branch create try
stet -q set a/o/k 5
stet -q set b 7 --branch try
t "the branch sees its parent at the fork" same 1 "$(val a/o/k --branch try)"
t "and its own writes"                     same 7 "$(val b --branch try)"
t "the parent does not"                    same 1 "$(val b)"
t "a branch of a branch"                   stet branch create deeper --from try
t "sees both"                              same "1 7" "$(val a/o/k --branch deeper) $(val b --branch deeper)"
t "a branch at a past sequence"            stet branch create past --at 1
t "sees what was then"                     expect_status 3 stet get b --branch past
t "twice the same name"                    expect_status 4 stet branch create try
t "from one that is not there"             expect_status 3 stet branch create x --from none
t "listed"                                 same '["","deeper","past","try"]' "$(stet branch list --json | python3 -c 'import json,sys; print(json.dumps([b["name"] for b in json.load(sys.stdin)["branches"]],separators=(",",":")))')"
t "the log crosses the fork"               same 2 "$(stet doc log b --branch deeper --json | json revisions | python3 -c 'import json,sys; print(len(json.load(sys.stdin)))')"
t "delete"                                 stet branch delete try
t "gone"                                   expect_status 3 stet get b --branch try
t "its child goes on"                      same 7 "$(val b --branch deeper)"
t "shown when asked"                       expect_out deleted stet branch list --deleted
t "gc keeps what the child needs"          stet gc
t "it is still there"                      same 7 "$(val b --branch deeper)"
t "delete the child"                       stet branch delete deeper
t "gc frees both"                          test "$(stet gc --only memory --json | json stores.0.items)" -ge 2
t "the rest is as it was"                  same 5 "$(val a/o/k)"
t "the default branch stays"               expect_status 2 stet branch delete ""

s=$(seq)
stet -q doc patch a '[{"op":"add","path":"/list/0","value":0}]'
t "an insert at the front shifts"          same "keys:/value/list/2 value:/value/list/0 value:/value/list/1" "$(leaves "$s")"
s=$(seq); stet -q set a/x/y/z 1
t "missing parents appear"                 same "keys:/value/x" "$(leaves "$s")"
s=$(seq); stet -q doc patch a '[{"op":"move","from":"/x/y","path":"/y"}]'
t "a move leaves and arrives"              same "keys:/value/x/y keys:/value/y" "$(leaves "$s")"
s=$(seq); stet -q set a/o 3
t "a container replaced by a scalar"       same "value:/value/o" "$(leaves "$s")"
t "touches what was below"                 same "value:/value/o" "$(leaves "$s" a/o/k)"
t "not what is beside"                     same "" "$(leaves "$s" a/list)"
s=$(seq); stet -q set a/y/z 2
t "shallow: not what is below"             same "" "$(leaves "$s" a/y --shallow)"
t "recursive: that too"                    same "value:/value/y/z" "$(leaves "$s" a/y)"
s=$(seq); stet -q set a/y/w 2
t "shallow: a key that appeared"           same "keys:/value/y/w" "$(leaves "$s" a/y --shallow)"
t "in pages"                               test "$(stet space changes --limit 2 --json | json next)" -gt 0
t "space list"                             same main "$(stet space list --json | json spaces.0.name)"
t "another space"                          stet set a 1 --space second
t "has its own sequence"                   same 1 "$(stet space stats --space second --json | json seq)"
t "and is listed"                          same second "$(stet space list --json | json spaces.1.name)"
finish
