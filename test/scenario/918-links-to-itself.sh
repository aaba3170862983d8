#!/usr/bin/env bash
# A node that returns a link which can never be read fails; one whose link leads nowhere yet does not.
. "$STET_SOURCE/test/scenario/lib.sh"

says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -Eq -- "$want"; }
# The pattern with a node that returns this value.
made() { printf '{"pattern":1,"name":"p","nodes":[{"id":"v","inputs":{},"module":{"type":"javascript","implementation":"() => (%s)"}}],"result":{"$":"v"}}' "${1//\"/\\\"}" >p.json; }
link() { printf '{"/":{"link@1":%s}}' "$1"; }

stet -q init
for way in "$(link '{"id":"piece:p:node:v"}')" "{\"a\":$(link '{"id":"piece:p:node:v","path":["a"]}')}" "{\"a\":[$(link '{"id":"piece:p:node:v","path":["a"]}')]}" \
    "{\"a\":$(link '{"id":"piece:p:node:v","path":["a","b"]}')}" "{\"a\":$(link '{"id":"piece:p:node:v","space":"main"}')}"; do
    made "$way"
    t "a link to itself fails the node: $way"      says 'failed p/v: it returns a link to itself' stet run p.json
    t "with status 1"                              expect_status 1 stet run p.json
done
made "{\"a\":$(link '{"idd":"x"}')}"
t "so does a link that makes no sense"             says 'failed p/v: it returns a link that makes no sense' stet run p.json
made "{\"a\":$(link '{"id":"piece:p:node:v","path":["b"]}'),\"b\":5}"
t "a link to another part of it is fine"           stet run p.json
t "and is read"                                    same '{"a":5,"b":5}' "$(stet get piece:p --json | json value)"
made "{\"a\":$(link '{"id":"later"}')}"
t "a link that leads nowhere is fine"              stet run p.json
stet -q set later 7
t "once something is there it is read"             same '{"a":7}' "$(stet get piece:p --json | json value)"
finish
