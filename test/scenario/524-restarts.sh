#!/usr/bin/env bash
# Functions, handlers and streams across real restarts: what was observed holds, and what was not is found out.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
ran() { stet run "$@" --json | json runs; }
state() { stet action show "$1" "$2" --json | json "$3"; }
cat >p.json <<'END'
{ "pattern": 1, "name": "p", "argument": { "default": { "flag": true, "a": 1, "b": 2, "n": 5 } }, "cells": { "c": { "default": 0 }, "d": { "default": 0 } },
  "nodes": [
    { "id": "choose", "inputs": { "flag": {"$": "argument/flag"}, "a": {"$": "argument/a"}, "b": {"$": "argument/b"} },
      "module": { "type": "javascript", "implementation": "(i) => i.flag ? i.a : i.b" } },
    { "id": "sign", "inputs": { "n": {"$": "argument/n"}, "m": {"$": "argument/m"} },
      "module": { "type": "javascript", "implementation": "(i) => i.n > 3 ? 'large' : i.m ? 'large' : 'small'" } },
    { "id": "after", "inputs": { "s": {"$": "sign"} }, "module": { "type": "javascript", "implementation": "({s}) => s + '!'" } },
    { "id": "copy", "materializerWriteInputPaths": ["d"], "inputs": { "n": {"$": "argument/n"}, "d": {"$": "d", "asCell": true} },
      "module": { "type": "javascript", "implementation": "({n, d}) => { d.set(n > 3 ? 1 : 0); return n }" } },
    { "id": "set", "stream": {"$": "set"}, "inputs": { "a": {"$": "argument/a", "asCell": true}, "c": {"$": "c", "asCell": true} },
      "module": { "type": "javascript", "handler": true, "implementation": "(event, {a, c}) => { a.set(event); c.set(event) }" } } ],
  "result": { "choose": {"$": "choose"}, "after": {"$": "after"}, "copy": {"$": "copy"}, "set": {"$": "set"} } }
END
cat >q.json <<'END'
{ "pattern": 1, "name": "q", "nodes": [
    { "id": "reads", "inputs": { "c": {"/": {"link@1": {"id": "piece:p:cell:c"}}} }, "module": { "type": "javascript", "implementation": "({c}) => c * 2" } },
    { "id": "not", "inputs": { "n": {"/": {"link@1": {"id": "piece:p:argument", "path": ["n"]}}} }, "module": { "type": "javascript", "implementation": "({n}) => n" } } ],
  "result": { "reads": {"$": "reads"}, "not": {"$": "not"} } }
END
t "a piece"                                                    same 4 "$(ran p.json)"
t "another that reads it"                                      same 2 "$(ran q.json)"
t "a clean piece restarts with zero runs"                      same 0 "$(ran p.json)"
t "the engine is not even loaded"                              env STET_PLUGINS=/nonexistent "$STET" run p.json
stet set piece:p:argument/b 20 >/dev/null
t "an untaken branch is never read"                            same 0 "$(ran p.json)"
stet set piece:p:argument/flag false >/dev/null
t "a condition changes branches"                               same 1 "$(ran p.json)"
stet set piece:p:argument/a 10 >/dev/null
t "and the reads with it"                                      same 0 "$(ran p.json)"
stet set piece:p:argument/b 21 >/dev/null
t "to those that count now"                                    same 1 "$(ran p.json)"
stet set piece:p:argument/n 4 >/dev/null
t "outputs that stay equal stop there"                         same 2 "$(ran p.json)"
stet set piece:p:argument '{"flag":false,"a":10,"b":21,"n":1,"m":true}' >/dev/null
t "a run that changes nothing but what it read is recorded"    same 2 "$(ran p.json)"
t "its result is what it was"                                  same '"large!"' "$(stet piece show p --json | json result | python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin)["after"]))')"
stet set piece:p:argument/m false >/dev/null
t "it runs when that changes"                                  same 2 "$(ran p.json)"
stet set piece:p:argument/n 2 >/dev/null
stet run p.json >/dev/null
t "a write of the value that is there is no change"            same '[]' "$(stet action show p copy --json | python3 -c 'import json,sys; a=json.load(sys.stdin); print(json.dumps([w for w in a["changed"] if "cell:d" in json.dumps(w)]))')"
t "and the cell stays its own"                                 same 1 "$(stet action show p copy --json | python3 -c 'import json,sys; a=json.load(sys.stdin); print(len([w for w in a["writes"] if "cell:d" in json.dumps(w)]))')"
t "nothing else of what it tried is kept"                      not grep -qi attempted <(stet action show p copy --json)

stet run q.json >/dev/null
t "a handler's write"                                          stet piece send p set 30
t "dirties a reader in a piece that is not running"            same 1 "$(stet status q --json | json pieces.0.dirty)"
t "which alone runs"                                           same 1 "$(ran q.json)"
t "with the right result"                                      same 60 "$(stet piece show q --json | json result.reads)"
t "in its own piece nobody reads it any more"                  same 0 "$(ran p.json)"

# Another space: the piece lives there and reads here, or the other way round.
sed 's/"id": "piece:p:cell:c"/"id": "piece:p:cell:c", "space": "main"/; s/"id": "piece:p:argument"/"id": "piece:p:argument", "space": "main"/' q.json >far.json
t "a piece of another space reads the first"                   stet run far.json --space other
t "a handler's write here"                                     stet piece send p set 31
t "dirties it over there"                                      same 1 "$(stet status q --space other --json | json pieces.0.dirty)"
t "and it runs"                                                same 62 "$(stet piece pull q --space other --json | json result.reads)"

# Streams are in the stored graph, and go with their handlers.
graph() { stet piece graph p --json | python3 -c 'import json,sys; g=json.load(sys.stdin)["graph"]; n=[x for x in g["nodes"] if x["module"].get("handler")]; print(eval(sys.argv[1]))' "$1"; }
t "the graph has the handler"                                  same 1 "$(graph 'len(n)')"
t "with its stream, and no output"                             same "True False" "$(graph '"%s %s" % ("stream" in n[0], "output" in n[0])')"
t "and an argument schema that is a tuple"                     same True "$(graph '"prefixItems" in json.dumps(n[0])')"
mv p.json away.json
t "a stream is known without the pattern"                      stet piece send p set 32
mv away.json p.json
stet piece show p --json | json generation >before
python3 -c 'import json; p = json.load(open("p.json")); p["nodes"].pop(); del p["result"]["set"]; json.dump(p, open("less.json", "w"))'
t "a program without the handler"                              stet run less.json --piece p
t "counts the generation up"                                   same $(($(cat before) + 1)) "$(stet piece show p --json | json generation)"
t "its stream is gone"                                         expect_err "no streams at all" stet piece send p set 1
t "with its document"                                          expect_err "" stet get piece:p:node:set
t "and what it wrote is not"                                   same 32 "$(stet get piece:p:cell:c)"
t "with the handler again"                                     stet run p.json
t "the stream is back"                                         stet piece send p set 33

# Failures go when their cause does.
echo '{"pattern":1,"name":"f","nodes":[{"id":"x","inputs":[1,0],"module":{"type":"ref","ref":"divide"}},{"id":"y","inputs":[1,0],"module":{"type":"ref","ref":"divide"}}],"result":{"x":{"$":"x"},"y":{"$":"y"}}}' >f.json
t "two fail"                                                   expect_status 1 stet run f.json
echo '{"pattern":1,"name":"f","nodes":[{"id":"x","inputs":[1,1],"module":{"type":"ref","ref":"divide"}}],"result":{"x":{"$":"x"}}}' >f.json
t "one is mended and one is gone: none fails"                  expect_out "failed 0" stet run f.json
t "and the status says so"                                     same 0 "$(stet status f --json | json pieces.0.failed)"

# What is recorded holds for this code, these schemas, this branch.
sed "s/i.flag ? i.a : i.b/i.flag ? i.b : i.a/" p.json >next.json && mv next.json p.json
t "another implementation runs alone"                          same 1 "$(ran p.json)"
sed 's/{ "id": "sign"/{ "id": "sign", "resultSchema": {"type":"string"}/' p.json >next.json && mv next.json p.json
t "another schema, too"                                        same 1 "$(ran p.json)"
stet branch create try >/dev/null
t "on another branch an event is applied there"                stet piece send p set 50 --branch try
t "and not here"                                               same 33 "$(stet get piece:p:cell:c)"
t "there nothing is known of the actions"                      same 4 "$(ran p.json --branch try)"
finish
