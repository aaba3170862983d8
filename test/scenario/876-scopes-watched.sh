#!/usr/bin/env bash
# A watch in one scope takes up what happens there, and not what happens in another; Python, MCP, runs and the queue know scopes.
. "$STET_SOURCE/test/scenario/lib.sh"
val() { stet get "$@" --json | json value; }
until_val() { # until_val VALUE CELL...
    local want=$1 i
    shift
    for i in $(seq 200); do
        [ "$(val "$@" 2>/dev/null)" = "$want" ] && return 0
        sleep 0.1
    done
    echo "still $(val "$@"), expected $want"
    return 1
}

stet init >/dev/null
cat >p.json <<'JSON'
{"pattern": 1, "name": "p", "argument": {"default": {"rows": [1], "f": 2}},
 "nodes": [
   {"id": "each", "inputs": {"list": {"$": "argument/rows"}, "f": {"$": "argument/f"}}, "module": {"type": "ref", "ref": "map", "pattern":
     {"pattern": 1, "name": "c", "nodes": [{"id": "d", "inputs": {"x": {"$": "argument/element"}, "f": {"$": "argument/f"}},
       "module": {"type": "javascript", "implementation": "({x, f}) => x * f"}}], "result": {"$": "d"}}}},
   {"id": "total", "inputs": {"values": {"$": "each"}}, "module": {"type": "ref", "ref": "sum"}}],
 "result": {"total": {"$": "total"}}}
JSON
t "in the common scope"                        expect_out "ran 3" stet run p.json
"$STET" run p.json --scope s1 --watch >watch.txt 2>&1 &
watch=$!
t "a watch makes its piece"                    until_val 2 piece:p/total --scope s1
stet set piece:p:argument/rows '[1, 2, 3]' --scope s1 >/dev/null
t "it takes up what is set in its scope"       until_val 12 piece:p/total --scope s1
stet set piece:p:argument/rows '[7]' >/dev/null
stet set piece:p:argument/f 5 --scope s1 >/dev/null
t "and more"                                   until_val 30 piece:p/total --scope s1
t "and nothing of another scope"               same 2 "$(val piece:p/total)"
t "another process runs that one"              expect_out "ran" stet run p.json
t "which is no news to the watch"              same "14 30" "$(val piece:p/total) $(val piece:p/total --scope s1)"
t "what it holds is what is stored"            expect_out "0 differ" stet status --drift
sed -i 's/=> x \* f/=> x * f * 10/' p.json
t "another pattern"                            until_val 300 piece:p/total --scope s1
kill -TERM $watch
wait $watch
t "the piece of the other scope follows"       same 140 "$(val piece:p/total --fresh)"

# A run that is recorded goes on where it was; the queue starts a piece by its name.
run=$(stet run p.json --scope s1 --record --json | json runId)
t "the run names the piece"                    same p@s1 "$(json piece <".stet/runs/$run/state.json")"
stet set piece:p:argument/f 4 --scope s1 >/dev/null
t "a rerun is of the same piece"               stet runs rerun "$run" --drive
t "with the argument that the run had"         same 300 "$(val piece:p/total --scope s1)"
t "the piece has its own, and is made fresh"   same 240 "$(val piece:p/total --scope s1 --fresh)"
stet set piece:p:argument/f 6 --scope s1 >/dev/null
t "an entry of the queue"                      stet queue add --workflow p@s1 --repo .
t "is driven"                                  expect_out "1 done" stet queue work --repo .
t "in its scope"                               same "360 140" "$(val piece:p/total --scope s1) $(val piece:p/total)"

# Python.
cat >p.py <<'PY'
import stet
with stet.Project(".") as p:
    print(p.run("p.json", scope="s2", set={"f": 3})["result"]["total"], p.run(piece="p@s2")["ran"], p.run(piece="p", scope="s1")["piece"])
    print(p.space().get("piece:p:argument/f", scope="s2"))
PY
t "Python runs it"                             same "30 0 p@s1 3" "$(PYTHONPATH=$STET_BUILD/python python3 p.py | tr '\n' ' ' | sed 's/ $//')"

# MCP: the tool has the parameter, and resources name the piece with its scope.
cat >mcp.py <<'PY'
import json, os, subprocess, sys
at = subprocess.Popen([os.environ["STET"], "mcp", "--all-tools"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def ask(i, method, **params):
    at.stdin.write(json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params}) + "\n"); at.stdin.flush()
    while True:
        answer = json.loads(at.stdout.readline())
        if answer.get("id") == i:
            return answer
ask(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
at.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n"); at.stdin.flush()
pulled = ask(2, "tools/call", name="stet_piece_pull", arguments={"piece": "p", "scope": "s2"})["result"]
print(pulled["structuredContent"]["piece"], pulled["structuredContent"]["result"]["total"])
uris = [r["uri"] for r in ask(3, "resources/list")["result"]["resources"] if r["uri"].startswith("stet://piece/")]
print(len(uris))
shown = ask(4, "resources/read", uri=[u for u in uris if "s2" in u][0])["result"]["contents"][0]["text"]
print(json.loads(shown)["piece"])
at.stdin.close()
at.wait()
PY
t "MCP"                                        same "p@s2 30 3 p@s2" "$(python3 mcp.py 2>&1 | tr '\n' ' ' | sed 's/ $//')"
finish
