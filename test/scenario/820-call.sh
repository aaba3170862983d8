#!/usr/bin/env bash
# Calls from the command line: cached by function and arguments, failures as results, options of stet-exec-local, detached and waited
# for, cancelled, and adapters that are slow, garbled, silent, broken or not there.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$PWD/bin:$STET_BUILD:$PATH
STET_JOBS=$(mktemp -d)
export STET_JOBS
L=dml+exec://stet-exec-local
mkdir bin

stet init >/dev/null
cat >>.stet/config.toml <<'TOML'
[calls]
attempts = 3
first = "0.02s"
most = "0.05s"
poll_timeout = "1.5s"
TOML

value() { stet --json call run "$@" | json value; }

# The same call is run once.
echo_count="$L/?command=echo+run+%3E%3E+$PWD/count%3B+cat"
t "a call gives what its program prints" test "$(value "$echo_count" 1 '"two"' '{"three": [3.5, null]}')" = '[1,"two",{"three":[3.5,null]}]'
t "the same call again runs nothing" test "$(stet --json call run "$echo_count" 1 '"two"' '{ "three": [3.5, null] }' | json state)" = pinned_hit
t "another argument is another call" test "$(value "$echo_count" 2)" = '[2]'
t "no-cache runs it again" test "$(stet --json call run "$echo_count" 2 --no-cache | json cached)" = false
t "three runs in all" test "$(wc -l <count)" = 3
node=$(stet --json call run "$echo_count" 2 | json node)
t "both outcomes of the call are kept" test "$(stet --json call show "$node" | json execs | tr -cd , | wc -c)" = 1
t "the value of a node is an argument" test "$(value "$echo_count" "node:$node")" = '[[2]]'
t "an argument that is no JSON is refused, with the way out" expect_err "double quotes" stet call run "$echo_count" hello
t "as is a node that is not there" expect_status 3 stet call run "$echo_count" node:0123456789ab

# Failures are results.
fails="$L/?command=echo+why+%3E%262%3B+echo+run+%3E%3E+$PWD/failures%3B+exit+3"
t "a call that fails ends with status 1" expect_status 1 stet call run "$fails"
t "its failure says how and why" test "$(stet --json call run "$fails" | json failure)" = '{"exit":3,"message":"it ended with status 3","stderr":"why\n"}'
t "and is kept like a result" test "$(wc -l <failures)" = 1
t "a signal is told" test "$(stet --json call run "$L/?command=kill+-9+%24%24" | json failure.signal)" = 9
t "a program that is not there is a failure of the call" expect_out "could not be started" sh -c '"$STET" call run "$0/no-such-program" 2>&1 >out; test $? = 1 -a ! -s out' "$L"
t "output that is no JSON is one, too" expect_out "standard output" sh -c '"$STET" call run "$0/?command=echo+hello" 2>&1; test $? = 1' "$L"

# Options of the function.
t "arguments" test "$(value "$L/printf?arg=%25s&arg=%5B1,2%5D")" = '[1,2]'
t "text" test "$(value "$L/?command=printf+%27a%5Cnb%27&stdout=text")" = $'a\nb'
t "nothing printed is null" test "$(value "$L/true")" = null
t "no standard input" test "$(value "$L/wc?arg=-c&stdin=null" 1 2 3)" = 0
mkdir sub && echo '"here"' >sub/file
t "where it runs" test "$(value "$L/cat?arg=file&cwd=sub")" = here
t "not outside" expect_err "below the project" stet call run "$L/cat?cwd=../x"
printf '#!/bin/sh\necho \\"own\\"\n' >sub/own.sh && chmod +x sub/own.sh
t "a program of the project" test "$(value "$L/sub/own.sh")" = own
export SECRET=s3cret GIVEN=given
t "the environment is what was asked for" test "$(value "$L/?command=echo+%5C%22%24SECRET-%24GIVEN-%24SET%5C%22&env=GIVEN&env=SET%3D1")" = "-given-1"
t "files that it makes" test "$(value "$L/?command=printf+hello+%3E+out.txt&file=out.txt")" = '{"files":{"out.txt":{"/":{"bytes@1":"aGVsbG8"}}},"stdout":null}'
t "its own directory is gone afterwards" not compgen -G "$STET_JOBS/*/[0-9]*"
t "a file that it does not make" expect_status 1 stet call run "$L/true?file=nothing"
t "its time" test "$(stet --json call run "$L/sleep?arg=60&timeout=0.2s" | json failure.timedOut)" = true
t "its processor time" expect_status 1 stet call run "$L/?command=while+:%3B+do+:%3B+done&max-cpu=1s"
t "an option that there is not" expect_err "no such option" stet call run "$L/true?frob=1"
t "a version of a program is an option" test "$(value "$L/true?v=2")" = null
t "what is no function" expect_status 2 stet call run http://example.org/
t "an adapter that is not there" expect_err "no adapter nobody on" stet call run dml+exec://nobody/x

# Left alone and found again.
slow="$L/?command=touch+$PWD/began%3B+while+!+test+-e+$PWD/go%3B+do+sleep+0.05%3B+done%3B+echo+5"
t "a call is left under way" expect_out "stet call wait" stet call run "$slow" --detach
id=$(stet --json call list --state live | json calls.0.id)
t "it is in the list" expect_out poll_adapter stet call list --state live
t "waiting has its own time" expect_status 5 stet call wait "$id" --timeout 0.1s
touch go
t "it is waited for, by a part of its id" expect_out 5 stet call wait "${id:0:8}"
t "and again" expect_out 5 stet call wait "$id"
t "it ran" test -e began
t "nothing is under way" expect_out "no calls" stet call list --state live
t "an unknown one" expect_status 3 stet call wait ffffffff
t "one too short" expect_status 2 stet call show abc

stet --json call run "$L/?command=echo+%24%24+%3E+$PWD/pid%3B+exec+sleep+60" --detach >left
id=$(json id <left)
for _ in $(seq 100); do [ -s pid ] && break; sleep 0.05; done
(stet call wait "$id" >waiter 2>&1; echo $? >waiter.status) &
sleep 0.3
t "a call is cancelled" expect_out cancelled stet call cancel "$id"
t "what ran for it has ended" not kill -0 "$(cat pid)"
wait
t "whoever waited is told" grep -q cancelled waiter
t "with the status of that" test "$(cat waiter.status)" = 130
t "what has ended can't be cancelled" expect_status 4 stet call cancel "$id"
t "a call that takes too long is given up" expect_err "longer than the time" stet call run "$L/?command=echo+%24%24+%3E+$PWD/pid2%3B+exec+sleep+60" --timeout 0.5s
t "and what ran for it ended" not kill -0 "$(cat pid2)"

# An adapter of one's own: slow, garbled, silent, broken. What it ends with it has stet-exec-local do.
cat >bin/odd-adapter <<'PYTHON'
#!/usr/bin/env python3
import json, os, subprocess, sys, time
r = json.load(sys.stdin)
kind = r["function"].split("/")[3].split("?")[0]
count = "polls." + r["execution"]
n = len(open(count).read()) if os.path.exists(count) else 0
open(count, "a").write("x")
def done():
    r["function"] = "dml+exec://stet-exec-local/cat"
    sys.exit(subprocess.run(["stet-exec-local"], input=json.dumps(r), text=True).returncode)
def pending(token, **more):
    print(json.dumps({"v": 1, "status": "pending", "token": token, "poll_after_ms": 10, **more}))
    sys.exit(0)
print("poll", n, "of", kind, file=sys.stderr)
if r["op"] == "cancel":
    open("cancelled." + kind, "w").close()
elif kind == "pending":
    assert r["token"] == (f"token {n}" if n else None), r
    pending(f"token {n + 1}", progress={"done": n, "total": 3, "note": "working"}) if n < 3 else done()
elif kind == "transient":
    sys.exit(75) if n < 2 else done()
elif kind == "between":   # failures in a row are counted, not all that ever were
    sys.exit(75) if n % 3 else pending(str(n)) if n < 9 else done()
elif kind == "malformed":
    print("{") if n < 1 else done()
elif kind == "endless":
    print("x" * 3000000)
elif kind == "hangs":
    time.sleep(60) if n < 1 else done()
elif kind == "final":
    print("no such cluster", file=sys.stderr); sys.exit(2)
elif kind == "liar":
    print(json.dumps({"v": 1, "status": "done", "outcome": "ok", "result": "0" * 64}))
elif kind == "node":
    print(json.dumps({"v": 1, "status": "done", "outcome": "ok", "result": r["node"]}))
elif kind == "cancel":
    pending("t")
PYTHON
chmod +x bin/odd-adapter
O=dml+exec://odd-adapter
t "tokens come back, poll after poll" test "$(value $O/pending 1)" = '[1]'
t "what the adapter said is kept" expect_out "poll 3 of pending" stet call show "$(stet --json call list | json calls.0.id)"
t "transient failures are tried again" test "$(value $O/transient 2)" = '[2]'
t "a good answer between them begins the count anew" test "$(value $O/between 3)" = '[3]'
t "a garbled reply is one" test "$(value $O/malformed 4)" = '[4]'
t "as is silence" test "$(value $O/hangs 5)" = '[5]'
t "the budget ends it, and the adapter is named" expect_err "given up after 3 attempts: the adapter odd-adapter gave a reply" stet call run $O/endless
t "fewer retries if one says so" expect_err "given up after 1 attempt:" stet call run $O/endless --retries 0
t "a final failure is final" expect_err "odd-adapter ended with status 2: no such cluster" stet call run $O/final
t "with one poll" test "$(cat polls.$(stet --json call list | json calls.0.id))" = x
t "a result that is not there is no result" expect_err "given up" stet call run $O/liar
t "a result that is no DAG neither" not stet call run $O/node
t "failed calls leave nothing pinned" test "$(stet --json call run $O/final 2>/dev/null | json error.code)" = failed
t "an adapter is told of cancelling" expect_status 5 stet call run $O/cancel --timeout 0.3s --json
t "it is" test -e cancelled.cancel
t "failed ones are listed" expect_out failed_terminal stet call list --state failed
t "and good ones" expect_out completed_ok stet call list --state ok --limit 2

# A result whose bytes are gone is a miss, and said to be.
before=$(wc -l <count)
python3 - <<'PYTHON'
import sqlite3, json, subprocess, os
result = json.loads(subprocess.run([os.environ["STET"], "--json", "call", "run", f"dml+exec://stet-exec-local/?command=echo+run+%3E%3E+{os.getcwd()}/count%3B+cat", "2"], capture_output=True, text=True).stdout)["result"]
db = sqlite3.connect(".stet/local/repo.db")
db.execute("delete from object where id = ?", (bytes.fromhex(result),))
assert db.total_changes == 1
db.commit()
PYTHON
t "a result that was cleaned away is run again, with a line that says so" sh -c '"$STET" call run "$0" 2 2>&1 | grep "counts as none"' "$echo_count"
t "it was" test "$(wc -l <count)" = $((before + 1))
rm -rf "$STET_JOBS"
finish
