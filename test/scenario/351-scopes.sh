#!/usr/bin/env bash
# Documents of one id in two scopes are two documents for whatever runs, marks, draws, explains and deletes.
. "$STET_SOURCE/test/scenario/lib.sh"
val() { stet get "$@" --json | json value; }

stet init >/dev/null
# A node writes d, and through a cell the d of user:ann. Another piece reads the latter.
cat >w.json <<'JSON'
{"pattern": 1, "name": "w", "argument": {"default": {"n": 1}},
 "nodes": [{"id": "w", "output": {"/": {"link@1": {"id": "d"}}},
   "inputs": {"n": {"$": "argument/n"}, "c": {"/": {"link@1": {"id": "d", "scope": "user:ann", "asCell": true}}}},
   "module": {"type": "javascript", "implementation": "({n, c}) => { c.set(n * 10); return n }"}}],
 "result": {"w": {"$": "w"}}}
JSON
cat >r.json <<'JSON'
{"pattern": 1, "name": "r",
 "nodes": [{"id": "r", "inputs": {"x": {"/": {"link@1": {"id": "d", "scope": "user:ann"}}}},
   "module": {"type": "javascript", "implementation": "({x}) => x + 1"}}],
 "result": {"r": {"$": "r"}}}
JSON
t "the writer runs"                             stet run w.json
t "the reader runs"                             stet run r.json
t "each scope has its value"                    same "1 10" "$(val d) $(val d --scope user:ann)"
stet set piece:w:argument/n 2 >/dev/null
t "a later process runs the writer first"       expect_out "ran 2" stet run r.json
t "so that the reader is right"                 same 21 "$(val piece:r/r --fresh)"
stet set piece:w:argument/n 3 >/dev/null
t "and with --fresh"                            same 31 "$(val piece:r/r --fresh)"

# What is drawn and explained says which of them is meant.
cat >both.json <<'JSON'
{"pattern": 1, "name": "both",
 "nodes": [{"id": "sum", "module": {"type": "ref", "ref": "add"},
   "inputs": [{"/": {"link@1": {"id": "k"}}}, {"/": {"link@1": {"id": "k", "scope": "user:ann"}}}]}],
 "result": {"sum": {"$": "sum"}}}
JSON
stet set k 1 >/dev/null
stet set k 10 --scope user:ann >/dev/null
t "both are read"                               stet run both.json
t "each is a document of the picture"           same 2 "$(stet piece graph both --format dot | grep -c 'shape=note, label="k')"
t "named with its scope"                        expect_out 'label="k (scope user:ann)"' stet piece graph both --format dot
t "in Mermaid, too"                             expect_out '"k (scope user:ann)"' stet piece graph both --format mermaid
stet set k 20 --scope user:ann >/dev/null
t "the reason of a run names the scope"         expect_out "sum: dirty, changed: k (scope user:ann)" stet run both.json --dry-run
t "as JSON, too"                                same "user:ann" "$(stet run both.json --dry-run --json | json actions.0.scope)"
t "and why"                                     expect_out "k (scope user:ann) was written" stet why both
t "the sum is that of both"                     same 21 "$(val piece:both/sum --fresh)"

# A cell's default follows the pattern, whoever writes to a document of the same id elsewhere.
cell() {
    printf '{"pattern": 1, "name": "c", "argument": {"default": {"n": 1}}, "cells": {"c": {"default": %s}},
      "nodes": [{"id": "n", "output": {"/": {"link@1": {"id": "piece:c:cell:c", "scope": "user:ann"}}},
        "inputs": [{"$": "argument/n"}], "module": {"type": "ref", "ref": "value"}}],
      "result": {"c": {"$": "c"}, "n": {"$": "n"}}}' "$1" >c.json
}
cell 5
t "an output in another scope"                  stet run c.json
t "is no output of the cell"                    same "5 1" "$(val piece:c:cell:c) $(val piece:c:cell:c --scope user:ann)"
cell 6
t "another default"                             stet run c.json
t "is followed"                                 same 6 "$(val piece:c:cell:c)"

# What pieces own lies in the common scope.
stet set piece:c:cell:note '"mine"' --scope user:ann >/dev/null
stet set piece:c '"mine"' --scope user:ann >/dev/null
t "a piece goes"                                stet piece delete c
t "with what it owned"                          same "[]" "$(stet doc list --prefix piece:c --scope "" --json | json documents)"
t "and nothing of another scope"                same '"mine" "mine" 1' "$(stet get piece:c:cell:note --scope user:ann) $(stet get piece:c --scope user:ann) $(val piece:c:cell:c --scope user:ann)"

# An action that a program records for a document of the same id in another scope is none of the piece.
mkdir include && cp "$STET_SOURCE/include/stet.h" include/
flags="-Wall -Wextra -Werror -Iinclude"
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q __asan_init && flags="$flags -fsanitize=address,undefined"
cat >record.c <<'C'
/* record CELL PIECE SCOPE ACTION [distrust]: an action that has read a cell, or that is unknown. */
#include "stet.h"
int main(int argc, char **argv) {
    stet_error err = STET_ERROR_INIT;
    stet_project *p;
    stet_space *s;
    stet_tx *tx;
    stet_value v;
    stet_action_run run = STET_ACTION_RUN_INIT;
    run.key.piece = argv[2], run.key.scope = argv[3], run.key.action = argv[4];
    if (stet_project_open(".", &p, &err) != STET_OK || stet_space_open(p, "main", 0, &s, &err) != STET_OK)
        return 1;
    if (argc > 5 && stet_action_distrust(s, "", &run.key, 1, &err) != STET_OK)
        return 2;
    if (argc == 5 && (stet_tx_begin(s, "", &tx, &err) != STET_OK || stet_tx_get(tx, argv[1], "", &v, &err) != STET_OK ||
                      stet_tx_observe(tx, &run, &err) != STET_OK || stet_tx_commit(tx, NULL, &err) != STET_OK))
        return 3;
    stet_space_close(s);
    stet_project_close(p);
    return 0;
}
C
t "a program that records actions"              gcc -std=c11 $flags -o record record.c "$STET_BUILD/libstet.a" -l:libsqlite3.a -l:libuv_a.a -l:libzstd.a -l:libutf8proc.a -l:libyaml.a -l:libcrypto.a -lm -ldl -lpthread
stet set other 1 >/dev/null
t "one of another scope"                        ./record other piece:both user:ann sum
stet set other 2 >/dev/null
state() { stet status both --json | json pieces.0 | python3 -c 'import json,sys; r=json.load(sys.stdin); print(*(r[k] for k in ("stands","dirty","stale","unknown")))'; }
t "outdated, it does not concern the piece"     same "1 0 0 0" "$(state)"
t "which has nothing to run"                    expect_out "ran 0, up to date 1" stet run both.json
stet set k 2 >/dev/null
t "until its own inputs change"                 expect_out "ran 1, up to date 0" stet run both.json
t "the sum is right"                            same 22 "$(val piece:both/sum --fresh)"
t "unknown, it is another's still"              ./record other piece:both user:ann sum distrust
t "here"                                        same "1 0 0 0" "$(state)"
t "and when it runs"                            expect_out "ran 0, up to date 1" stet run both.json
t "who asks for readers sees which is which"    expect_out "both@user:ann  sum" stet space readers other
t "and which is the piece's"                    same both "$(stet space readers k --json | json readers.0.piece)"
finish
