#!/usr/bin/env bash
# Runs are deleted by a plan that was looked at: what may not go stays, with the reason, and a plan of before does nothing.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >stet.toml <<'TOML'
[nodes.one]
command = "cp in.txt {out}"
files = "in.txt"
produces = "out.txt"
[nodes.two]
command = "test -e ok && cp {in} {out}"
files = "$one.out"
produces = "two.txt"
TOML
run() { date +%N%s >in.txt; stet run -q 2>&1; stet runs search --scope repo --order newest --limit 1 --json | json records.0.runId; }
ids() { (cd .stet/runs && ls); }
plan() { stet runs delete "$@" --json | json plan; }

bad=$(run | tail -1)
touch ok
good=$(run | tail -1)
third=$(run | tail -1)
t "nothing is named"                         expect_status 2 stet runs delete
t "a plan lists what would go"               expect_out "would delete 1 run, " stet runs delete "$third"
t "and deletes nothing"                      same 3 "$(ids | wc -l)"
t "a run that mended another one stays"      expect_out "it has mended run $bad, which stays" stet runs delete "$good"
t "unless that goes, too"                    expect_out "would delete 2 runs" stet runs delete "$good" "$bad"
old=$(plan "$third")
echo more >>".stet/runs/$third/logs.txt"
t "a plan of before is refused"              expect_status 4 stet runs delete "$third" --apply "$old"
t "with the way out"                         expect_err "look at the new plan" stet runs delete "$third" --apply "$old"
t "and nothing went"                         same 3 "$(ids | wc -l)"
t "a plan is not guessed"                    expect_status 4 stet runs delete "$third" --apply ""
stet runs label "$third" --add keep >/dev/null
t "one with the label keep stays"            expect_out 'it has the label "keep"' stet runs delete "$third"
stet runs label "$third" --remove keep >/dev/null
entry=$(stet queue add --run-id "$third" --json | json id)
t "one that the queue is to run stays"       expect_out "entry $entry of the queue is to run it" stet runs delete "$third"
stet queue cancel "$entry" >/dev/null
again=$(stet runs rerun "$third" --json | json newRunId)
t "one that has not ended stays"             expect_out "it has not ended" stet runs delete "$again"
stet runs archive "$third" >/dev/null
mkdir -p .stet/local/registry
cp .stet/local/registry/archive.json keep.json
echo '{' >.stet/local/registry/archive.json
t "none goes while marks can't be read"      test "$(stet runs delete "$third" --json | json runs)" = "[]"
cp keep.json .stet/local/registry/archive.json

# Somebody drives it.
python3 - ".stet/runs/$third/driver.lock" <<'PY' &
import fcntl, struct, sys, time, pathlib
f = open(sys.argv[1], "r+b")
fcntl.fcntl(f, 37, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 1, 0))  # F_OFD_SETLK, as drivers do
pathlib.Path("locked").touch()
while not pathlib.Path("free").exists():
    time.sleep(0.02)
PY
holder=$!
until [ -e locked ]; do sleep 0.02; done
t "one that is driven stays"                 expect_out "it is being driven" stet runs delete "$third"
touch free
wait $holder

t "a plan that holds is carried out"         expect_out "deleted 1 run" stet runs delete "$third" --apply "$(plan "$third" | cut -c1-12)"
t "its directory is gone"                    not test -e ".stet/runs/$third"
t "and its mark"                             not grep -q "$third" .stet/local/registry/archive.json
stet registry refresh >/dev/null
t "by size: the oldest, until it fits"       expect_out "would delete 2 runs" stet runs delete --max-bytes 1 --state completed --state resolved
t "by age: these are young"                  expect_out "would delete 0 runs" stet runs delete --older-than-days 1
t "a window of nothing picks nothing"        expect_out "would delete 0 runs" stet runs delete --older-than-days 0
python3 - "$bad" "$good" <<'PY'
import json, sys
for run in sys.argv[1:]:
    path = f".stet/runs/{run}/state.json"
    s = json.load(open(path))
    s["createdAt"], s["updatedAt"] = ("2020" + s[k][4:] for k in ("createdAt", "updatedAt"))
    json.dump(s, open(path, "w"))
PY
t "and these are old"                        expect_out "would delete 2 runs" stet runs delete --older-than-days 365
mkdir -p "$STET_HOME"
printf '[delete]\nolder-than-days = 365\n' >"$STET_HOME/policy.toml"
t "as a policy says"                         expect_out "would delete 2 runs" stet runs delete --policy
printf '[delete]\nmax-byte = 1\n' >"$STET_HOME/policy.toml"
t "a misspelt policy is an error"            expect_err "line 2: delete.max-byte is not known here" stet runs delete --policy
rm "$STET_HOME/policy.toml"
t "a policy and a name are not both meant"   expect_status 2 stet runs delete "$good" --policy

# Killed at any moment: a run is there whole, or gone, and what is left of it is collected.
for n in $(seq 1 12); do
    id=$(stet runs rerun "$good" --json | json newRunId)
    stet runs cancel "$id" >/dev/null
    p=$(plan "$id")
    STET_FAULT="call=unlink,n=$n,action=kill" faulty runs delete "$id" --apply "$p" >/dev/null 2>&1
    [ $? -ge 128 ] || break
    [ ! -e ".stet/runs/$id" ] || [ -e ".stet/runs/$id/state.json" ] || fail "half of run $id is there"
done
t "several moments were tried"               test "$n" -gt 2
stet gc >/dev/null
t "gc collects what is left"                 same "" "$(ls -A .stet/runs | grep '^~' || true)"
touch ".stet/runs/$good/.stet-temp.999999.1.0123456789abcdef" .stet/local/registry/.stet-temp.999999.1.0123456789abcdef ".stet/runs/$good/.stet-temp.mine"
stet gc >/dev/null
t "and what killed writers left"             same ".stet-temp.mine" "$(ls -A ".stet/runs/$good" .stet/local/registry | grep '^.stet-temp')"
rm ".stet/runs/$good/.stet-temp.mine"
finish
