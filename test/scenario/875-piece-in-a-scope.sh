#!/usr/bin/env bash
# A piece lives in a scope, with all that it owns: run, shown, explained, sent to and deleted there, and nowhere else.
. "$STET_SOURCE/test/scenario/lib.sh"
val() { stet get "$@" --json | json value; }
states() { stet status "$@" --json | python3 -c '
import json, sys
print(" ".join("%s:%d/%d" % (r["piece"], r["stands"], r["dirty"] + r["stale"] + r["unknown"] + r["failed"]) for r in json.load(sys.stdin)["pieces"]))'; }

refused() { # refused STATUS TEXT COMMAND...
    local want=$1 text=$2 out got=0
    shift 2
    out=$("$@" 2>&1) || got=$?
    [ "$got" = "$want" ] && case $out in *"$text"*) true ;; *) false ;; esac || { echo "status $got: $out"; return 1; }
}

stet init >/dev/null
cat >p.json <<'JSON'
{"pattern": 1, "name": "p", "argument": {"default": {"rows": [1, 2], "f": 2}}, "cells": {"note": {"default": 0}},
 "nodes": [
   {"id": "each", "inputs": {"list": {"$": "argument/rows"}, "f": {"$": "argument/f"}}, "module": {"type": "ref", "ref": "map", "pattern":
     {"pattern": 1, "name": "c", "nodes": [{"id": "d", "inputs": {"x": {"$": "argument/element"}, "f": {"$": "argument/f"}},
       "module": {"type": "javascript", "implementation": "({x, f}) => x * f"}}], "result": {"$": "d"}}}},
   {"id": "total", "inputs": {"values": {"$": "each"}}, "module": {"type": "ref", "ref": "sum"}},
   {"id": "noter", "inputs": {"f": {"$": "argument/f"}, "c": {"$": "note", "asCell": true}},
     "module": {"type": "javascript", "implementation": "({f, c}) => { c.set(f); return f }"}},
   {"id": "add", "stream": {"$": "add"}, "inputs": {"rows": {"$": "argument/rows", "asCell": true}},
     "module": {"type": "javascript", "handler": true, "implementation": "(event, {rows}) => { rows.push(event) }"}}],
 "result": {"total": {"$": "total"}, "each": {"$": "each"}, "note": {"$": "note"}}}
JSON
t "in the common scope"                        expect_out "ran 5" stet run p.json
t "and in another, with another argument"      expect_out "ran 5" stet run p.json --scope user:ann --set f=5
t "each has its result"                        same "6 15" "$(val piece:p/total) $(val piece:p/total --scope user:ann)"
t "its children"                               same "[2,4] [5,10]" "$(val piece:p/each) $(val piece:p/each --scope user:ann)"
t "and its cells"                              same "2 5" "$(val piece:p:cell:note) $(val piece:p:cell:note --scope user:ann)"
t "one does not touch the other"               same "p:5/0 p@user:ann:5/0" "$(states)"
t "both are listed"                            same "p p@user:ann" "$(stet piece list --json | python3 -c 'import json, sys; print(*[r["piece"] for r in json.load(sys.stdin)["pieces"]])')"
t "those of one scope, too"                    same "p@user:ann" "$(stet piece list --scope user:ann --json | json pieces.0.piece)"
t "a page at a time"                           same "p@user:ann" "$(stet piece list --after p --limit 1 --json | json pieces.0.piece)"
t "a second run has nothing to do"             expect_out "ran 0, up to date 5" stet run p.json --scope user:ann
t "by the name with the scope"                 expect_out "ran 0, up to date 5" stet run p.json --piece p@user:ann
t "all that it owns lies in its scope"         same "" "$(stet doc list --json | python3 -c '
import json, sys
docs = [(d["id"], d["scope"]) for d in json.load(sys.stdin)["documents"] if d["id"].startswith("piece:")]
one, other = {i for i, s in docs if not s}, {i for i, s in docs if s == "user:ann"}
print(*(one ^ other))')"

# What is set in a scope marks its actions alone, and whatever names the piece says which it is.
stet set piece:p:argument/f 7 --scope user:ann >/dev/null
t "only its own actions are marked"            same "p:5/0 p@user:ann:1/4" "$(states)"
t "why names the scope"                        expect_out "p@user:ann/noter is dirty: something it read changed: piece:p:argument/f (scope user:ann) was written" stet why p noter --scope user:ann
t "of the other there is nothing to tell"      expect_out "p stands" stet why p
t "action list"                                expect_out "dirty" stet action list p@user:ann
t "action show"                                expect_out "piece:p:argument/f (scope user:ann)" stet action show p noter --scope user:ann
t "a dry run"                                  expect_out "noter: dirty" stet run p.json --scope user:ann --dry-run
t "made fresh by a read"                       same 21 "$(val piece:p/total --scope user:ann --fresh)"
t "pulled by name"                             expect_out '"note": 7' stet piece pull p@user:ann
t "the graph leads nowhere else"               same 0 "$(stet piece graph p --scope user:ann --json | grep -o '"id":"piece:p[^}]*}' | grep -vc 'user:ann')"
t "and the picture has no other names for it"  same "$(stet piece graph p --format dot)" "$(stet piece graph p --scope user:ann --format dot | sed s/@user:ann//)"
t "an event"                                   expect_out "p@user:ann/add: event e1 applied" stet piece send p add 10 --id e1 --scope user:ann
t "once"                                       expect_out "had been applied" stet piece send p@user:ann add 10 --id e1
t "with the same id for another scope"         expect_out "p/add: event e1 applied" stet piece send p add 1 --id e1 --settle
t "each got its own"                           same "[1,2,1] [1,2,10]" "$(val piece:p:argument/rows) $(val piece:p:argument/rows --scope user:ann)"
t "--unset returns to the default"             expect_out "ran" stet run p.json --scope user:ann --unset f
t "there"                                      same "26 8" "$(val piece:p/total --scope user:ann) $(val piece:p/total)"
t "its documents are guarded"                  refused 2 "is the result of piece \"p@user:ann\"" stet set piece:p 1 --scope user:ann
t "its argument can't be deleted"              refused 2 "is the argument of a piece" stet doc delete piece:p:argument --scope user:ann
t "its schema metadata is its graph"           expect_out '"nodes"' stet doc get piece:p --scope user:ann --meta
t "two scopes at once are refused"             refused 2 "is not of scope" stet piece show p@user:ann --scope user:bob
t "a name without a scope after the sign"      refused 2 "is no name for a piece" stet run p.json --piece p@
t "a scope without a piece"                    refused 3 'no piece "p@user:bob"' stet piece show p --scope user:bob

# Links lead into a scope, from any piece, and what is there runs first.
cat >r.json <<'JSON'
{"pattern": 1, "name": "r", "nodes": [{"id": "both", "module": {"type": "ref", "ref": "add"},
   "inputs": [{"/": {"link@1": {"id": "piece:p", "path": ["total"]}}}, {"/": {"link@1": {"id": "piece:p", "path": ["total"], "scope": "user:ann"}}}]}],
 "result": {"both": {"$": "both"}}}
JSON
t "a reader of both"                           stet run r.json
t "adds them"                                  same 34 "$(val piece:r/both)"
stet set piece:p:argument/f 1 --scope user:ann >/dev/null
t "it is stale"                                expect_out "r/both is stale" stet why r
t "because of the piece of that scope"         expect_out "p@user:ann/" stet why r
t "a run of it runs that piece"                same 21 "$(val piece:r/both --fresh)"
t "and what nobody asked for waits"             same "p:6/0 p@user:ann:5/1 r:1/0" "$(states)"

# A pattern that changes is set up in every scope.
sed -i 's/=> x \* f/=> x * f + 1/' p.json
t "another pattern"                            stet run p.json
t "makes all of its pieces outdated"           expect_out "do not stand" stet run p.json --scope user:ann --dry-run
t "and each runs"                              expect_out "failed 0" stet run p.json --scope user:ann
t "what it is"                                 same "11 16" "$(val piece:p/total) $(val piece:p/total --scope user:ann)"

# On a branch, and as a recorded run.
stet branch create b >/dev/null
stet set piece:p:argument/f 3 --scope user:ann --branch b >/dev/null
t "a branch has its own state of each scope"   same "42 16" "$(val piece:p/total --scope user:ann --branch b --fresh) $(val piece:p/total --scope user:ann)"
run=$(stet run p.json --scope user:ann --set f=2 --record --json | json runId)
t "a run file says which piece it was"         same "p@user:ann" "$(json piece <.stet/runs/$run/state.json)"
t "stop"                                       expect_out "p@user:ann: stopped" stet piece stop p --scope user:ann
t "stops no other"                             same "false true" "$(stet piece list --json | python3 -c 'import json, sys; print(*[str(r["stopped"]).lower() for r in json.load(sys.stdin)["pieces"] if r["piece"] != "r"])')"

# Who is deleted takes what it owns, and nothing of another scope.
stet set other 1 --scope user:ann >/dev/null
t "a piece goes"                               expect_out "p@user:ann: deleted" stet piece delete p --scope user:ann
t "with all of its documents"                  same "other" "$(stet doc list --scope user:ann --json | json documents.0.id)"
t "those alone"                                same "11 p:6/0" "$(val piece:p/total) $(states p)"
t "its reader is not up to date"               expect_out "r/both is" stet why r
t "a document that only looks like its part"   same 5 "$(stet set piece:p:node:total 5 --scope user:ann >/dev/null; val piece:p:node:total --scope user:ann)"
finish
