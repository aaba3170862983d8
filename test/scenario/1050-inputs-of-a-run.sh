#!/usr/bin/env bash
# Inputs of a queue entry or a rerun hold for that run only, and each run's record says what really ran.
. "$STET_SOURCE/test/scenario/lib.sh"
mkdir out project && cd project || exit 1
stet -q init
out=$PWD/../out
field() { local path=$1; shift; stet "$@" --json | json "$path"; }
cat >stet.toml <<TOML
name = "q"
[argument]
n = 1
m = 1
[nodes.say]
kind = "effect"
command = "echo {n} {m} >> $out/log; sleep 0.1"
inputs = { n = "\$argument/n", m = "\$argument/m" }
[nodes.calc]
command = "expr {n} + {m}"
inputs = { n = "\$argument/n", m = "\$argument/m" }
stdout = "json"
[result]
sum = "\$calc/stdout"
TOML
cat >other.toml <<TOML
name = "other"
[argument]
n = 1
[nodes.say]
kind = "effect"
command = "echo other {n} >> $out/other"
inputs = { n = "\$argument/n" }
TOML
lines() { sort "$out/log" 2>/dev/null | tr '\n' ,; }
# What the records say that the effect was run with.
recorded() {
    python3 - <<'PY'
import glob, json
rows = []
for path in glob.glob(".stet/runs/*/state.json"):
    state = json.load(open(path))
    if state["piece"] != "q":
        continue
    task = [t for t in state["tasks"] if t["id"] == "say" and t["status"] == "completed"]
    rows += ["%d %d" % (state["argument"]["n"], state["argument"]["m"])] * sum(t["attempt"] for t in task)
print("".join(row + "," for row in sorted(rows)), end="")
PY
}

stet -q run
t "a run keeps its whole argument"              same '{"m":1,"n":1}' "$(json argument <"$(ls .stet/runs/*/state.json)")"
stet -q queue add --app q --input n=9
t "one entry with an input"                     stet queue work
t "ran with it"                                 same "1 1,9 1," "$(lines)"
t "the piece has no override of it"             same "[]" "$(field overridden piece show q)"
t "and its own argument"                        same 1 "$(stet get piece:q:argument/n)"
done_run=$(field entries.0.runId queue list --status done)
t "its result is kept with the run"             same 10 "$(field result.sum runs show "$done_run")"
t "the piece gives its own again"               same 2 "$(field result.sum piece pull q)"

rm -f "$out/log" && rm -rf .stet/runs/*
for i in $(seq 2 13); do stet -q queue add --app "$([ $((i % 3)) = 0 ] && echo stet.toml || echo q)" --input n="$i"; done
stet -q queue add --app other.toml --input n=5
stet -q queue add --app other.toml --input n=6
for _ in 1 2 3; do "$STET" -q queue work -j 8 & done
wait
t "24 workers on 12 entries: 12 executions"     same "10 1,11 1,12 1,13 1,2 1,3 1,4 1,5 1,6 1,7 1,8 1,9 1," "$(lines)"
t "as the records say"                          same "$(lines)" "$(recorded)"
t "and all are done"                            same 15 "$(field total queue list --status done)"
t "other pieces run beside them"                same "other 5,other 6," "$(sort "$out/other" | tr '\n' ,)"
t "the argument is as it was"                   same 1 "$(stet get piece:q:argument/n)"

# A worker that is killed leaves nothing of its inputs behind.
sed -i 's/sleep 0.1/sleep 5/' stet.toml
rm -f "$out/log"
stet -q queue add --app q --input n=50
"$STET" -q queue work &
worker=$!
for _ in $(seq 500); do grep -q 50 "$out/log" 2>/dev/null && break; sleep 0.02; done
t "while it runs, its argument is there"        same 50 "$(stet get piece:q:argument/n)"
"$STET" run --set m=3 >"$out/waited" 2>&1 &
waiting=$!
for _ in $(seq 500); do grep -q waiting "$out/waited" && break; sleep 0.02; done
t "another run of the piece waits"              grep -q 'waiting for piece "q"' "$out/waited"
kill -9 $worker
wait $worker 2>/dev/null
sed -i 's/sleep 5/true/' stet.toml
wait $waiting
t "and then runs with what was set"             same "1 3,50 1," "$(lines)"
t "the argument was given back"                 same 1 "$(stet get piece:q:argument/n)"
t "what was set stays set"                      same 3 "$(stet get piece:q:argument/m)"
stet -q queue work
t "the entry's run goes on with its argument"   same "1 3,50 1,50 1," "$(lines)"
t "and the argument given back again"           same 1 "$(stet get piece:q:argument/n)"

# What somebody sets meanwhile stays.
stet -q queue add --app q --input n=60
sed -i 's/true"/sleep 2"/' stet.toml
"$STET" -q queue work &
worker=$!
for _ in $(seq 500); do grep -q "^60" "$out/log" && break; sleep 0.02; done
stet -q set piece:q:argument/n 4
wait $worker
t "a key that was set meanwhile stays set"      same 4 "$(stet get piece:q:argument/n)"
sed -i 's/sleep 2"/true"/' stet.toml
stet -q run --unset n --unset m

# Reruns and resumed runs have the argument of the run, not the last one.
seven=$(field runId run --set n=7)
stet -q run --set n=8
rm -f "$out/log"
again=$(field newRunId runs rerun "$seven" --drive)
t "a rerun uses the argument of what it repeats" same "7 1," "$(lines)"
t "and says so"                                 same 7 "$(field argument.n runs show "$again")"
t "the piece keeps what was set last"           same 8 "$(stet get piece:q:argument/n)"
more=$(field newRunId runs rerun "$seven" --input m=2 --drive)
t "with another input over it"                  same "7 1,7 2," "$(lines)"
t "also in its record"                          same '{"m":2,"n":7}' "$(field argument runs show "$more")"

# A required argument may come with the entry alone.
cat >need.json <<'JSON'
{"pattern": 1, "name": "need", "argument": {"schema": {"type": "object", "required": ["n"]}},
 "nodes": [{"id": "twice", "inputs": {"n": {"$": "argument/n"}}, "module": {"type": "javascript", "implementation": "({n}) => n * 2"}}],
 "result": {"twice": {"$": "twice"}}}
JSON
stet -q queue add --app need.json --input n=21
t "a required input is given by the entry"      stet queue work
t "and used"                                    same 42 "$(field result.twice runs show "$(ls .stet/runs | grep need)")"
t "the piece still lacks it"                    expect_err 'expected a member "n"' stet run need.json
stet -q piece delete need
finish
