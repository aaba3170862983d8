#!/usr/bin/env bash
# A verifier runs whenever its piece does, whether or not the result leads to it, and a result without its verdict is not committed.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >sum.json <<'END'
{ "pattern": 1, "name": "sum", "argument": { "default": { "n": 1, "most": 9, "list": [1, 2] } },
  "nodes": [
    { "id": "total", "inputs": [ {"$": "argument/n"}, 1 ], "module": { "type": "ref", "ref": "add" } },
    { "id": "other", "inputs": [ {"$": "argument/n"}, 2 ], "module": { "type": "ref", "ref": "add" } },
    { "id": "check", "verifier": true, "inputs": { "total": {"$": "total"}, "most": {"$": "argument/most"} },
      "module": { "type": "javascript", "implementation": "({total, most}) => { if (total > most) throw new Error('too large'); return true }" } } ],
  "result": { "total": {"$": "total"}, "other": {"$": "other"} } }
END

stet run sum.json --json >out; st=$?
t "a verifier that the result does not lead to runs" same "0 3 true" "$st $(json runs <out) $(json committed <out)"
t "it is up to date"                             same stands "$(stet action show sum check --json | json state)"
t "nothing is left to run"                       same 0 "$(stet run sum.json --json | json runs)"
stet set piece:sum:argument/n 3 >/dev/null
t "a dry run names it"                           expect_out "check" stet run sum.json --dry-run
stet run sum.json --demand total --json >out; st=$?
t "a part of the result is made without it"      same "0 1" "$st $(json runs <out)"
t "and is not committed"                         same false "$(json committed <out)"
t "it is not called up to date"                  same dirty "$(stet action show sum check --json | json state)"
stet run sum.json --json >out
t "a whole run has its verdict"                  same true "$(json committed <out)"
t "which stands for the next part"               same true "$(stet set piece:sum:argument/other 1 >/dev/null; stet run sum.json --demand other --record --json | json committed)"
stet set piece:sum:argument/n 20 >/dev/null
stet run sum.json --json >out; st=$?
t "a verdict against it fails the run"           same "1 false" "$st $(json committed <out)"
t "a part without it is not committed"           same false "$(stet set piece:sum:argument/n 21 >/dev/null; stet run sum.json --demand total --json | json committed)"
stet set piece:sum:argument/n 1 >/dev/null
t "mended"                                       same true "$(stet run sum.json --json | json committed)"

# Of children, whose coordinator nothing else wants.
cat >rows.json <<'END'
{ "pattern": 1, "name": "rows", "argument": { "default": { "list": [1, 2], "n": 0 } },
  "nodes": [
    { "id": "each", "inputs": { "list": {"$": "argument/list"} }, "module": { "type": "ref", "ref": "map", "pattern": {
        "pattern": 1, "name": "row", "nodes": [
          { "id": "check", "verifier": true, "inputs": { "v": {"$": "argument/element"} },
            "module": { "type": "javascript", "implementation": "({v}) => { if (v > 5) throw new Error('too large'); return true }" } },
          { "id": "v", "inputs": { "value": {"$": "argument/element"} }, "module": { "type": "ref", "ref": "value" } } ],
        "result": {"$": "v"} } } },
    { "id": "n", "inputs": { "value": {"$": "argument/n"} }, "module": { "type": "ref", "ref": "value" } } ],
  "result": {"$": "n"} }
END
stet run rows.json --json >out; st=$?
t "verifiers of children run"                    same "0 true" "$st $(json committed <out)"
t "each is up to date"                           same "stands" "$(stet action show rows 'each[2].check' --json | json state)"
stet set piece:rows:argument/list '[1,2,7]' >/dev/null
t "one that refuses fails the run"               expect_status 1 stet run rows.json

echo '{"pattern":1,"name":"part","argument":{"default":{"a":1}},"result":{"n":{"$":"n"}},"nodes":[{"id":"n","inputs":{"0":{"$":"argument/a"},"1":1},"module":{"type":"ref","ref":"add"}},
  {"id":"v","verifier":true,"inputs":{"value":{"$":"n"}},"module":{"type":"ref","ref":"value"}}]}' >part.json
t "a part without its verdict says so"           expect_out "what was asked for stands; not verified: v did not run" stet run part.json --demand n
stet run part.json --demand n --record --json >out
t "and is not committed"                         same 'false ["v"]' "$(json committed <out) $(json unverified <out | tr -d ' ')"
t "nor does its file say otherwise"              same '["v"]' "$(json summary.unverified <".stet/runs/$(json runId <out)/state.json" | tr -d ' ')"
stet run part.json >/dev/null
t "with the verdict"                             same "true" "$(stet run part.json --demand n --record --json | json committed)"
t "there is nothing to say"                      not expect_out "not verified" stet run part.json --demand n --record
finish
