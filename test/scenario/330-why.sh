#!/usr/bin/env bash
# stet why: one sentence per action that is not as it should be, from the action over what it reads to the write or the failure that is the cause.
. "$STET_SOURCE/test/scenario/lib.sh"

# says PATTERN COMMAND...: status 0, and a line of standard output fits the extended regular expression.
says() { local want=$1; shift; "$@" | tee /dev/stderr | grep -Eq -- "$want"; }
refuses() { local status=$1 want=$2; shift 2; expect_status "$status" "$@" && expect_err "$want" "$@"; }

cat >stet.toml <<'TOML'
name = "chain"
[argument]
n = 1
[nodes.first]
command = ["sh", "-c", "cat in.txt; test ! -e bad"]
files = { in = "in.txt" }
stdout = "text"
[nodes.second]
javascript = '({t}) => t.length'
inputs = { t = "$first/stdout" }
[nodes.third]
javascript = '({s}) => s + 1'
inputs = { s = "$second" }
[nodes.other]
javascript = '({n}) => n + 1'
inputs = { n = "$argument/n" }
[result]
third = "$third"
other = "$other"
TOML
echo one >in.txt
stet -q init
t "no piece yet: it is said, with what to do"        refuses 3 "make one with: stet run" stet why
t "a first run"                                      stet -q run
t "the only piece needs no name"  same "chain stands: nothing is known against any of its actions" "$(stet why | head -1)"
echo two >in.txt
t "files are looked at for that"                     expect_out "file:in.txt" stet why
echo one >in.txt
t "each time"                                        expect_out "chain stands" stet why
t "nor does its action"                              says "chain/third stands: nothing that it read has changed since sequence" stet why third
t "a name that is neither is refused"                refuses 3 'no piece or file "fourth"' stet why fourth

stet -q set piece:chain:argument/n 5
t "a write: which cell, which sequence, by whom"     says "chain/other is dirty: something it read changed: piece:chain:argument/n was written at sequence [0-9]+ by no action, from outside at 20" stet why other
echo two >>in.txt
stet -q file scan >/dev/null
t "a file, by a look at the files"                   says "chain/first is dirty: .*file:in.txt/hash was written at sequence [0-9]+ by a look at the files" stet why first
t "what is stale names the way to the cause"         says "chain/third is stale: it reads chain/second, which reads chain/first, and chain/first is dirty: .*file:in.txt" stet why third
t "an action that wrote is named"                    bash -c '"$STET" -q run && "$STET" set piece:chain:node:first "{\"stdout\": \"by hand\"}" -q; "$STET" why first | grep -q "somebody else changed what it had written"'
stet -q run

touch bad
echo three >>in.txt
t "a failing action refuses the run"                   expect_status 1 stet run
t "it failed, and why says so, with the error"       says "chain/first failed at sequence [0-9]+: exit status 1: three; nothing that it read has changed since" stet why first
t "it never says that it stands"                     bash -c '! "$STET" why first | grep -q "chain/first stands"'
t "what is downstream says so"                       says "chain/third is stale: it waits for chain/first, which failed: exit status 1; it reads chain/second, which reads chain/first" stet why third
t "what is not downstream does not"                  says "chain/other stands: nothing" stet why other
t "all of it at once, the failure first"             same "chain/first chain/second chain/third" "$(stet why | cut -d' ' -f1 | xargs)"
t "for programs: state, error, upstream"             same '["failed","chain/first: exit status 1",false,"stale",true]' \
    "$(stet why --json | python3 -c 'import json,sys; r={x["action"]:x for x in json.load(sys.stdin)["reasons"]}; print(json.dumps([r["first"]["state"],r["first"]["error"]["message"],r["first"]["upstreamFailed"],r["third"]["state"],r["third"]["upstreamFailed"]],separators=(",",":")))')"
t "status counts it as failed, not as standing"      same "1 1" "$(stet status --json | python3 -c 'import json,sys; p=json.load(sys.stdin)["pieces"][0]; print(p["stands"],p["failed"])')"
t "and says the name once"                           says "^failed chain/first: exit status 1" stet status
t "so does the list of actions"                      says "first +failed" stet action list
echo four >>in.txt
stet -q file scan >/dev/null
t "failed and dirty: both"                           says "chain/first failed .*; chain/first is dirty: .*file:in.txt" stet why first
t "stale below a failure: both"                      says "chain/third is stale: .*file:in.txt.*; its last run failed: exit status 1" stet why third

stet -q run stet.toml --piece march >/dev/null 2>&1
t "several pieces: say which, they are listed"       refuses 2 "say which: chain, march" stet why
t "by its name"                                      says "^march/first failed" stet why march
rm bad
stet -q run --retry-failed
finish
