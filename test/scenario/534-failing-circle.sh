#!/usr/bin/env bash
# A circle of nodes that fails does so at the node with the smallest name, at each run, whichever failed before: also if circles share nodes, in
# children, and with a filter in it. The failed node is shown as failed, and each action is counted once.
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
    stet piece delete "ring-${names// /}" >/dev/null
done

# Circles that share nodes: "ab" says that a reads b. In children, each child has its own.
knot() { # knot CHILDREN EDGE...
    python3 - "$@" <<'END'
import json, sys
edges = sys.argv[2:]
names = list(dict.fromkeys("".join(edges)))
js = "(...a) => { let s = 0; for (const x of a) { if (typeof x !== 'number') throw new Error('not a number'); s += x } return s }"
n = "argument/element/n" if sys.argv[1] == "1" else "argument/n"
p = {"pattern": 1, "name": "knot", "argument": {"default": {"n": 1}}, "result": {a: {"$": a} for a in names},
     "nodes": [{"id": a, "inputs": {str(i): {"$": b} for i, b in enumerate([n] + [e[1] for e in edges if e[0] == a])}, "module": {"type": "javascript", "implementation": js}} for a in names]}
if sys.argv[1] == "1":
    del p["argument"]
    p = {"pattern": 1, "name": "knot", "argument": {"default": {"rows": [{"k": "r", "n": 1}, {"k": "s", "n": 2}]}}, "result": {"$": "m"},
         "nodes": [{"id": "m", "inputs": {"list": {"$": "argument/rows"}}, "module": {"type": "ref", "ref": "map", "key": "k", "pattern": p}}]}
json.dump(p, open("ring.json", "w"))
END
}
counts() { # counts PIECE: each action once, as status and as action list say
    stet status "$1" --json | python3 -c '
import json, subprocess, sys
row = json.load(sys.stdin)["pieces"][0]
all = json.loads(subprocess.run([*sys.argv[2:], "action", "list", sys.argv[1], "--json"], capture_output=True, text=True).stdout)["actions"]
for state in ("stands", "dirty", "stale", "unknown", "failed"):
    listed = json.loads(subprocess.run([*sys.argv[2:], "action", "list", sys.argv[1], "--json", "--state", state], capture_output=True, text=True).stdout)["actions"]
    assert row[state] == len(listed) == sum(a["state"] == state for a in all), (state, row, all)
assert len(all) == sum(row[s] for s in ("stands", "dirty", "stale", "unknown", "failed")), (row, all)
print("each once")' "$1" "$STET"
}
for edges in "dk kg gh hd dh" "bf fh hg gb gf bg" "fh he ea ab bg gf bh fb ef" "be ea ab ae" "dg ge ec ch hf fd ef"; do
    least=$(printf '%s\n' $edges | cut -c1 | sort | head -1)
    knot 0 $edges
    for run in first second third; do t "$edges: the $run run" same "$least" "$(failed)"; done
    t "each action is counted once"              same "each once" "$(counts knot)"
    stet set piece:knot:argument/n 2 >/dev/null
    t "after a change"                           same "$least" "$(failed)"
    stet piece delete knot >/dev/null
    knot 1 $edges
    for run in first second third; do t "$edges in children: the $run run" same "m[r].$least m[s].$least" "$(failed)"; done
    t "each action is counted once"              same "each once" "$(counts knot)"
    stet set piece:knot:argument/rows/1/n 5 >/dev/null
    t "after a change"                           same "m[r].$least m[s].$least" "$(failed)"
    stet piece delete knot >/dev/null
done

cat >ring.json <<'JSON'
{"pattern": 1, "name": "sieve", "argument": {"default": {"rows": [1, 2]}}, "result": {"$": "f"}, "nodes": [
  {"id": "all", "inputs": {"0": {"$": "argument/rows"}, "1": {"$": "f"}}, "module": {"type": "ref", "ref": "concat"}},
  {"id": "f", "inputs": {"list": {"$": "all"}}, "module": {"type": "ref", "ref": "filter", "pattern": {"pattern": 1, "name": "c",
     "nodes": [{"id": "k", "inputs": {"a": 1, "b": {"$": "argument/element"}}, "module": {"type": "ref", "ref": "divide"}}], "result": {"$": "k"}}}}]}
JSON
t "a filter in a circle"                         same "all" "$(failed)"
t "again"                                        same "all" "$(failed)"
t "what failed is not stale"                     same "failed" "$(stet action show sieve all --json | json state)"
t "each action is counted once"                  same "each once" "$(counts sieve)"
stet piece delete sieve >/dev/null
cat >ring.json <<'JSON'
{"pattern": 1, "name": "round", "argument": {"default": {"rows": [1, 2]}}, "result": {"$": "m"}, "nodes": [
  {"id": "n", "inputs": {"0": {"$": "m"}, "1": 0}, "module": {"type": "ref", "ref": "get"}},
  {"id": "m", "inputs": {"list": {"$": "argument/rows"}, "x": {"$": "n"}}, "module": {"type": "ref", "ref": "map", "pattern": {"pattern": 1, "name": "c",
     "nodes": [{"id": "k", "inputs": {"a": {"$": "argument/element"}, "b": {"$": "argument/x"}}, "module": {"type": "ref", "ref": "add"}}], "result": {"$": "k"}}}}]}
JSON
first=$(failed)
t "a circle through children"                    same "m[1].k m[2].k" "$first"
t "again"                                        same "$first" "$(failed)"
t "and again"                                    same "$first" "$(failed)"
t "each action is counted once"                  same "each once" "$(counts round)"
stet piece delete round >/dev/null

# One that failed, and whose input has changed since.
echo '{"pattern":1,"name":"one","argument":{"default":{"b":0}},"nodes":[{"id":"n","inputs":{"a":1,"b":{"$":"argument/b"}},"module":{"type":"ref","ref":"divide"}}],"result":{"$":"n"}}' >ring.json
stet run ring.json >/dev/null
stet set piece:one:argument/b 1 >/dev/null
t "is counted once"                              same "1 0" "$(stet status one --json | json pieces.0.dirty) $(stet status one --json | json pieces.0.failed)"
t "its failure is told all the same"             expect_out "division by zero" stet status one
t "and told with both"                           expect_out "dirty, failed" stet action list one
finish
