#!/usr/bin/env bash
# `stet run --record` of a pattern that can't be read fails like a run without --record, and leaves no run behind.
. "$STET_SOURCE/test/scenario/lib.sh"
export PATH=$STET_BUILD:$PATH
stet init >/dev/null
echo '{' >broken.json
echo '{"pattern":1,"name":"sum","nodes":[{"id":"n","inputs":[1,2],"module":{"type":"ref","ref":"add"}}],"result":{"n":{"$":"n"}}}' >sum.json
code() { "$@" >/dev/null 2>&1; echo $?; }
t "a pattern file that does not exist"   same "$(code stet run none.json)" "$(code stet run none.json --record)"
t "is named in the error"                expect_err "none.json" stet run none.json --record
t "a pattern file that is not JSON"      same "$(code stet run broken.json)" "$(code stet run broken.json --record)"
t "no run was recorded"                  same 0 "$(stet runs list --json | json total)"
t "a pattern that can be read is"        same "0 1" "$(code stet run sum.json --record) $(stet runs list --json | json total)"
t "check"                                stet check
finish
