#!/usr/bin/env bash
# Names and actions vanish from a space that has more of them than a start compares: no run ends well with an old result.
. "$STET_SOURCE/test/scenario/lib.sh"
db=.stet/local/spaces/main.db
sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); n=c.execute(sys.argv[2]).rowcount; c.commit(); sys.exit(n < 1)' "$db" "$1"; }
python3 - <<'PY'
import json
nodes = [{"id": f"n{i:04}", "module": {"type": "ref", "ref": "add"}, "inputs": {"values": [{"$": "argument/n"}, i]}} for i in range(1300)]
nodes.append({"id": "all", "module": {"type": "ref", "ref": "sum"}, "inputs": {"values": [{"$": n["id"]} for n in nodes]}})
json.dump({"pattern": 1, "name": "wide", "argument": {"default": {"n": 1}}, "nodes": nodes, "result": {"r": {"$": "all"}}}, open("p.json", "w"))
PY
stet init -q
stet run p.json >/dev/null
t "before"                                        same 845650 "$(stet get piece:wide/r)"
cp -r .stet kept
for gone in "DELETE FROM action WHERE name = 'n0700'" "DELETE FROM action WHERE name = 'n1299'" "DELETE FROM action WHERE name = 'all'" \
    "DELETE FROM document WHERE id = 'piece:wide:node:n0700'" "UPDATE document SET id = 'x' WHERE id = 'piece:wide:node:n0700'" \
    "DELETE FROM document WHERE id = 'piece:wide:argument'" "DELETE FROM name_digest" "DELETE FROM name_digest WHERE id > 'piece:wide:node'"; do
    rm -rf .stet
    cp -r kept .stet
    sql "$gone"
    t "$gone: a run that needs it is refused"     expect_status 6 stet run p.json --set n=7
    t "check finds it"                            expect_status 1 stet check --only memory
    stet check --only memory --repair >/dev/null || true
    t "one repair is enough"                      stet check --only memory
    stet run p.json --set n=7 >/dev/null
    t "and a run is right"                        same 853450 "$(stet get piece:wide/r)"
    stet run p.json --set n=8 >/dev/null
    t "and the next one"                          same 854750 "$(stet get piece:wide/r)"
done
rm -rf .stet
cp -r kept .stet
t "names that are not there are not damage"       expect_status 3 stet get nowhere
stet -q set nowhere 1
t "and can be given"                              same 1 "$(stet get nowhere)"
stet -q delete nowhere
stet gc >/dev/null
t "and taken away"                                stet check --only memory
finish
