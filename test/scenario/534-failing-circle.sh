#!/usr/bin/env bash
# A circle of nodes that fails does so at the node with the smallest name, at each run, whichever failed before.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
ring() { # ring NODE...: each reads the next one, the last one the first
    python3 - "$@" <<'END'
import json, sys
n = sys.argv[1:]
nodes = [{"id": a, "inputs": [{"$": "argument/n"}, {"$": b}], "module": {"type": "ref", "ref": "add"}} for a, b in zip(n, n[1:] + n[:1])]
json.dump({"pattern": 1, "name": "ring-" + "".join(n), "argument": {"default": {"n": 1}}, "nodes": nodes, "result": {a: {"$": a} for a in n}}, open("ring.json", "w"))
END
}
failed() { stet run ring.json --keep-going --json | json problems | python3 -c 'import json,sys; print(*(p["node"] for p in json.load(sys.stdin)))'; }
for names in "m k z" "b a d k m" "x q c m a" "d e b c" "k a"; do
    ring $names
    least=$(printf '%s\n' $names | sort | head -1)
    t "$names: the first run"                    same "$least" "$(failed)"
    t "the second"                               same "$least" "$(failed)"
    t "the third"                                same "$least" "$(failed)"
    stet set "piece:ring-${names// /}:argument/n" 2 >/dev/null
    t "after a change"                           same "$least" "$(failed)"
done
finish
