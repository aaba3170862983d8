#!/usr/bin/env bash
# Calls as nodes of patterns, in TOML, JSON and JavaScript: they run when what they read has changed and not otherwise, survive stet, share
# their results with `stet call`, and fail like other actions.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
L=dml+exec://stet-exec-local

stet init >/dev/null
result() { stet piece show "$1" --json | json "result$2"; }
cat >stet.toml <<TOML
name = "work"
[argument]
rows = [3, 1, 2]
factor = 10

[nodes.sum]
call   = "$L/?command=echo+sum+%3E%3E+$PWD/log%3B+python3+-c+%27import+json,sys%3B+r,f%3Djson.load(sys.stdin)%3B+print(sum(r)*f)%27"
inputs = { rows = "\$argument/rows", factor = "\$argument/factor" }
args   = ["rows", "factor"]

[nodes.twice]
call   = "$L/?command=echo+twice+%3E%3E+$PWD/log%3B+python3+-c+%27import+json,sys%3B+print(json.load(sys.stdin)%5B0%5D*2)%27"
inputs = { n = "\$sum" }

[result]
total = "\$twice"
TOML
t "calls run" expect_out "ran 2" stet run
t "one gives its result to the other" test "$(result work .total)" = 120
t "what stands calls nothing" expect_out "ran 0, up to date 2" stet run
t "a change runs what reads it" stet set piece:work:argument/rows '[1, 2, 3]'
t "and no more: the sum is the same" expect_out "ran 1" stet run
t "the second call stood" test "$(grep -c twice log)" = 1
t "its result is the one" test "$(result work .total)" = 120
stet set piece:work:argument/rows '[3, 1, 2]' >/dev/null
before=$(wc -l <log)
t "back again" stet run
t "the earlier result is taken" test "$(wc -l <log)" = "$before"
t "the calls are in the list" test "$(stet --json call list | json total)" = 3
t "explained like others" expect_out "stands" stet why work twice

# Failures.
cat >fails.json <<JSON
{"pattern": 1, "name": "fails", "nodes": [
  {"id": "bad", "module": {"type": "call", "function": "$L/?command=echo+bad+%3E%3E+$PWD/log%3B+echo+reason+%3E%262%3B+test+-e+$PWD/good", "retries": 0}, "inputs": {"x": 1}},
  {"id": "next", "module": {"type": "ref", "ref": "value"}, "inputs": [{"\$": "bad"}]}],
 "result": {"\$": "next"}}
JSON
t "a call that fails is a failed action" expect_out "it ended with status 1" sh -c '"$STET" run fails.json; test $? = 1'
t "with what it said" expect_out reason sh -c '"$STET" run fails.json; test $? = 1'
t "it ran again when that was asked for" test "$(grep -c bad log)" = 2
t "and not when it was not" expect_status 1 stet run fails.json --no-retry-failed
t "not at all" test "$(grep -c bad log)" = 2
touch good
t "mended, it succeeds" stet run fails.json

# What can't be right is told before anything runs.
pattern() { printf '{"pattern":1,"name":"x","nodes":[{"id":"n","module":%s,"inputs":{"a":1}}],"result":{"$":"n"}}' "$1" >x.json; }
pattern '{"type":"call"}'
t "a call without a function" expect_out function sh -c '"$STET" pattern check x.json; test $? != 0'
pattern '{"type":"call","function":"http://x/"}'
t "one that is none" expect_out "not the URI" sh -c '"$STET" pattern check x.json; test $? != 0'
pattern '{"type":"call","function":"dml+exec://stet-exec-local/true?oops=1"}'
t "with an option that there is not" expect_out "no such option" sh -c '"$STET" pattern check x.json; test $? != 0'
pattern '{"type":"call","function":"dml+exec://stet-exec-local/true","args":["b"]}'
t "with arguments that are no inputs" expect_out "names no input" sh -c '"$STET" pattern check x.json; test $? != 0'
pattern '{"type":"call","function":"dml+exec://stet-exec-local/true","cash":1}'
t "with members that there are not" expect_out cash sh -c '"$STET" pattern check x.json; test $? != 0'
pattern '{"type":"call","function":"dml+exec://nobody/true"}'
t "an adapter that is not there is a failure" expect_out "no adapter nobody" sh -c '"$STET" run x.json; test $? = 1'

# stet is killed while a call runs, and comes back.
cat >slow.json <<JSON
{"pattern": 1, "name": "slow", "nodes": [
  {"id": "n", "module": {"type": "call", "function": "$L/?command=echo+slow+%3E%3E+$PWD/log%3B+sleep+1%3B+echo+5"}, "inputs": {}}], "result": {"\$": "n"}}
JSON
"$STET" run slow.json >/dev/null 2>&1 &
pid=$!
for _ in $(seq 200); do grep -q slow log && break; sleep 0.02; done
kill -9 $pid
wait $pid 2>/dev/null
t "the next start goes on with it" expect_out "ran 1" stet run slow.json
t "it ran once" test "$(grep -c slow log)" = 1
t "and its value is there" test "$(result slow "")" = 5

# In JavaScript.
cat >js.js <<JS
export default pattern('js', { n: 4 }, ({ n }) => call({ function: '$L/cat' }, { n }));
JS
if stet run js.js >js.out 2>&1; then
    t "a pattern in JavaScript calls" test "$(result js "")" = '[4]'
else
    fail "a pattern in JavaScript calls" js.out
fi
finish
