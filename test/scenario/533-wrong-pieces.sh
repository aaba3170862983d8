#!/usr/bin/env bash
# A piece that is wrong as a whole has no action that anybody calls up to date.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
good() {
    cat >t.json <<'END'
{ "pattern": 1, "name": "t", "argument": { "default": { "n": 1, "bad": 0 }, "schema": { "properties": { "n": { "type": "integer" } } } },
  "nodes": [ { "id": "x", "inputs": { "value": {"$": "argument/n"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "y", "inputs": { "value": {"$": "x"} }, "module": { "type": "ref", "ref": "value" } },
             { "id": "f", "inputs": [ 1, {"$": "argument/bad"} ], "module": { "type": "ref", "ref": "divide" } } ],
  "result": { "y": {"$": "y"}, "f": {"$": "f"} } }
END
}
counts() { python3 -c 'import json,sys; p=json.load(sys.stdin)["pieces"][0]; print(*(k + ":" + str(p[k]) for k in ("stands", "dirty", "stale", "unknown", "failed")))'; }
listed() { python3 -c 'import json,sys; a=json.load(sys.stdin)["actions"]; print(*(k + ":" + str(sum(x["state"] == k for x in a)) for k in ("stands", "dirty", "stale", "unknown", "failed")))'; }
agree() { # agree NAME COUNTS: status and the list say the same
    t "$1: status"                               same "$2" "$(stet status t --json 2>/dev/null | counts)"
    t "$1: action list"                          same "$2" "$(stet action list t --json 2>/dev/null | listed)"
}
good
stet run t.json >/dev/null
agree "a fine pattern" "stands:2 dirty:0 stale:0 unknown:0 failed:1"

echo '{ "pattern": 1, "nodes": ' >t.json
agree "a pattern that can't be read" "stands:0 dirty:0 stale:0 unknown:2 failed:1"
t "the list says what is wrong"                  expect_out "t is not up to date: the pattern of piece" stet action list t
t "so does one action"                           expect_out "x: unknown: wrong" stet action show t x
t "and why"                                      expect_out "t/x is unknown: t is not up to date: the pattern of piece" stet why t x
t "none is listed as up to date"                 expect_out "no such actions" stet action list t --state stands
t "a demand is refused"                          expect_status 2 stet get piece:t --fresh

good
agree "mended" "stands:2 dirty:0 stale:0 unknown:0 failed:1"
t "mended it runs"                               expect_status 1 stet run t.json --set n=2
t "with the value"                               same 2 "$(stet get piece:t/y)"
finish
