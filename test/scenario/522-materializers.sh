#!/usr/bin/env bash
# A materializer writes where its inputs say: it runs at idle, earlier if somebody wants what it may write, and touches only readers of what it changed.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >index.json <<'END'
{ "pattern": 1, "name": "index",
  "argument": { "default": { "people": [{"id": "ada", "age": 36}, {"id": "bob", "age": 40}], "other": 1 } },
  "cells": { "by_id": { "default": {} } },
  "nodes": [
    { "id": "fill", "materializerWriteInputPaths": ["by_id"],
      "inputs": { "people": {"$": "argument/people"}, "by_id": {"$": "by_id", "asCell": true} },
      "module": { "type": "javascript", "implementation": "({people, by_id}) => { for (const p of people) by_id.key(p.id).set({age: p.age}); return people.length }" } },
    { "id": "ada", "inputs": { "p": {"$": "by_id/ada"} }, "module": { "type": "javascript", "implementation": "({p}) => p ? p.age : null" } },
    { "id": "bob", "inputs": { "p": {"$": "by_id/bob"} }, "module": { "type": "javascript", "implementation": "({p}) => p ? p.age : null" } },
    { "id": "far", "inputs": [ {"$": "argument/other"}, 1 ], "module": { "type": "ref", "ref": "add" } },
    { "id": "count", "inputs": [ {"$": "fill"}, 0 ], "module": { "type": "ref", "ref": "add" } },
    { "id": "age", "stream": {"$": "age"}, "inputs": { "p": {"$": "by_id/bob"}, "seen": {"$": "argument/seen", "asCell": true} },
      "module": { "type": "javascript", "handler": true, "implementation": "(event, {p, seen}) => { seen.set(p.age) }" } } ],
  "result": { "ada": {"$": "ada"}, "bob": {"$": "bob"}, "far": {"$": "far"} } }
END
ran() { stet run index.json "$@" --json | json runs; }
bob() { stet set "piece:index:argument/people/1/age" "$1" >/dev/null; }

t "it and its readers run once each"                same 4 "$(ran)"
t "in the right order"                              same '{"ada":36,"bob":40,"far":2}' "$(stet piece show index --json | json result)"
t "after a restart nothing runs"                    same 0 "$(ran)"
bob 41
t "dirty: it alone, and not the readers of all that it may write" same 1 "$(stet status index --json | json pieces.0.dirty)"
t "it fans out only through what changed"           same 2 "$(ran)"
t "with the right result"                           same '{"ada":36,"bob":41,"far":2}' "$(stet piece show index --json | json result)"
bob 42
t "demand outside its envelope leaves it alone"     same 0 "$(ran --demand far)"
t "demand inside promotes it"                       same 42 "$(stet get piece:index/bob --fresh --json | json value)"
bob 43
t "so does a cell that it writes"                   same '{"age":43}' "$(stet get piece:index:cell:by_id/bob --fresh --json | json value)"
t "its reader has not run for that"                 same 42 "$(stet piece show index --json | json result.bob)"
bob 44
t "and the preflight of an event"                   same 1 "$(stet piece send index age --json | json madeFresh)"
t "which sees the fresh value"                      same 44 "$(stet get piece:index:argument/seen)"
t "its readers follow"                              same 44 "$(stet piece pull index --json | json result.bob)"
stet set piece:index:argument/people '[{"id":"ada","age":36},{"id":"bob","age":44},{"id":"cy","age":1}]' >/dev/null
t "its ordinary output is followed as any other"    same 3 "$(stet get piece:index:node:count --fresh --json | json value)"
t "a run with nothing wanted of it runs it at idle" sh -c 'bob=1; "$STET" set piece:index:argument/people/2/age 2 >/dev/null; "$STET" run index.json | grep -q "ran 1"'
t "and what it wrote is there"                      same 2 "$(stet get piece:index:cell:by_id/cy/age)"
stet set piece:index:cell:by_id/ada '{"age":0}' >/dev/null
t "what it wrote is its own"                        same '{"ada":36,"bob":44,"far":2}' "$(stet piece pull index --json | json result)"
stet set piece:index:cell:by_id/zoe '{"age":9}' >/dev/null
t "what it did not write is not"                    same 0 "$(ran)"
t "and stays"                                       same 9 "$(stet get piece:index:cell:by_id/zoe/age)"

# Opaque: it says nothing, nobody looks at its result, it has a cell.
cat >opaque.json <<'END'
{ "pattern": 1, "name": "opaque", "argument": { "default": { "n": 1 } }, "cells": { "copy": { "default": 0 } },
  "nodes": [ { "id": "copy-it", "inputs": { "n": {"$": "argument/n"}, "copy": {"$": "copy", "asCell": true} },
               "module": { "type": "javascript", "implementation": "({n, copy}) => { copy.set(n) }" } },
             { "id": "reads", "inputs": [ {"$": "copy"}, 1 ], "module": { "type": "ref", "ref": "add" } } ],
  "result": { "reads": {"$": "reads"} } }
END
t "an opaque one comes before who reads its cells"  same 2 "$(stet run opaque.json --json | json runs)"
t "with the right result"                           same 2 "$(stet piece show opaque --json | json result.reads)"
stet set piece:opaque:argument/n 5 >/dev/null
t "after a restart, too"                            same 6 "$(stet piece pull opaque --json | json result.reads)"

# Effects: once, unless they say otherwise; never from the store of results.
cat >effects.json <<'END'
{ "pattern": 1, "name": "effects", "argument": { "default": { "n": 1 } },
  "nodes": [ { "id": "once", "kind": "effect", "inputs": { "n": {"$": "argument/n"} }, "module": { "type": "command", "shell": "echo once {n} >>\"$LOG\"", "env": ["LOG"] } },
             { "id": "each", "kind": "effect", "onRestart": "run", "inputs": { "n": {"$": "argument/n"} }, "module": { "type": "command", "shell": "echo each {n} >>\"$LOG\"", "env": ["LOG"] } } ],
  "result": null }
END
export LOG=$PWD/log
said() { sort log | uniq -c | tr -s ' \n' ' '; }
t "effects have their effect"                       stet run effects.json
t "each once"                                       same " 1 each 1 1 once 1 " "$(said)"
t "started again"                                   stet run effects.json
t "and again"                                       stet run effects.json
t "one repeats, and one does not"                   same " 3 each 1 1 once 1 " "$(said)"
t "another argument"                                stet run effects.json --set n=2
t "both"                                            same " 3 each 1 1 each 2 1 once 1 1 once 2 " "$(said)"
t "back to the first"                               stet run effects.json --set n=1
t "is an effect again: it is not looked up"         same " 4 each 1 1 each 2 2 once 1 1 once 2 " "$(said)"
cat >slow.json <<'END'
{ "pattern": 1, "name": "slow", "argument": { "default": { "n": 0 } },
  "nodes": [ { "id": "slow", "kind": "effect", "inputs": { "n": {"$": "argument/n"} }, "module": { "type": "command", "shell": "sleep 0.2; echo slow {n} >>\"$LOG\"", "env": ["LOG"] } } ],
  "result": null }
END
rm log
stet run slow.json >/dev/null
for n in 1 2 3; do
    stet set piece:slow:argument/n $n >/dev/null
    stet run slow.json >one 2>&1 &
    stet run slow.json >two 2>&1
    wait
done
t "two drivers never do one effect twice"           same " 1 slow 0 1 slow 1 1 slow 2 1 slow 3 " "$(said)"
finish
