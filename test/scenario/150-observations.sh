#!/usr/bin/env bash
# What is recorded of actions: who reads a cell, marks with their cause, metrics; check derives the marks again and repairs.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
cp "$STET_SOURCE/examples/totals.json" .
t "a pattern runs"                          stet -q run totals.json
stats() { stet space stats --json | json "$1"; }
sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(".stet/local/spaces/main.db"); c.executescript(sys.argv[1])' "$1"; }

t "eight actions are recorded"              same "8 8 0 0" "$(stats actions) $(stats observed) $(stats dirty) $(stats unknown)"
t "every commit has been looked at"         same "$(stats seq)" "$(stats marked_through)"
t "who reads a cell"                        expect_out "scaled" stet space readers piece:totals:argument/factor
t "exactly that one"                        same '["scaled"]' "$(stet space readers piece:totals:argument/factor --json | python3 -c 'import json,sys; print(json.dumps([r["action"] for r in json.load(sys.stdin)["readers"]]))')"
t "who writes it"                           expect_out "writes" stet space readers piece:totals:node:total
t "what nobody reads"                       expect_out "no action reads it" stet space readers nothing
t "a cell that is none"                     expect_status 2 stet space readers ""

t "they ran because they never had"         same 8 "$(stats runs.never)"
t "and status tells it"                     same 8 "$(stet status --json | json metrics.runsByCause.never)"

t "an edit by hand"                         stet -q set piece:totals:argument/factor 7
t "makes its reader dirty"                  same "1 0" "$(stats dirty) $(stats unknown)"
t "with its cause"                          same 1 "$(stats marks.changed)"
t "told to people"                          expect_out "1 changed" stet space stats
t "and why"                                 expect_out "piece:totals:argument/factor was written at sequence" stet why totals scaled
t "what is below is stale, derived"         expect_out "stale" stet action list totals --state stale
t "check agrees"                            stet check --only memory

sql "DELETE FROM mark"
t "a mark that is gone is missed"           same 8 "$(stet run totals.json --dry-run --json | grep -o '"corrupt"' | wc -l)"
t "and missed by check"                     expect_status 1 stet check --only memory
stet -q run totals.json
t "all run again, since nobody knows whose" stet check --only memory
stet -q set piece:totals:argument/factor 8
sql "DELETE FROM mark; UPDATE space_meta SET value = 0 WHERE name = 'digest:mark'"
t "a mark that was not set is found"        expect_status 1 stet check --only memory
says() { stet check --only memory 2>&1 | grep -q "$1"; }
t "and named"                               says "not marked"
t "repair makes it unknown, not standing"   stet check --only memory --repair
t "so"                                      same "0 1" "$(stats dirty) $(stats unknown)"
t "with its reason"                         same 1 "$(stats marks.repaired)"
t "status names what is unknown, and why"   same 1 "$(stet status --json | json metrics.unknownByReason.repaired)"
stet run totals.json --json > run.json
t "it runs again"                           same 0 "$(json failed < run.json)"
t "the run says for which cause"            same 1 "$(json metrics.runsByCause.repaired < run.json)"
t "how many it skipped"                     same "$(json stood < run.json)" "$(json metrics.skipped < run.json)"
t "and what it stored"                      test "$(json metrics.bytes < run.json)" -gt 0
t "the space keeps the count"               same "$(json stood < run.json)" "$(stats skipped)"
t "its run file has it"                     grep -q '"runsByCause"' ".stet/runs/$(json runId < run.json)/state.json"
t "and nothing is marked"                   same "0 0" "$(stats dirty) $(stats unknown)"

sql "UPDATE place_index SET reads = 0, shallow = 0"
t "index rows that are lost are found"      says "an index row is missing"
t "and built again"                         stet check --only memory --repair
t "all of it"                               same 12 "$(stats read_rows)"
stet -q run totals.json

sql "UPDATE action SET observation = x'ff00' WHERE name = 'total'"
t "a damaged observation is unknown"        expect_out "damaged" stet why totals total
t "found by check"                          expect_status 1 stet check --only memory
t "repaired"                                stet check --only memory --repair
t "and run again"                           expect_out "failed 0" stet run totals.json

show() { stet action show totals scaled --json; }
t "the latest observation alone is kept"    same 0 "$(stats past_rows)"
printf '[scheduler]\nkeep_observations = 3\n' >> .stet/config.toml
for n in 11 12 13 14; do stet -q set piece:totals:argument/factor $n && stet -q run totals.json; done
t "or as many as the setting says"          same 2 "$(show | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["past"]))')"
t "newest first"                            same True "$(show | python3 -c 'import json,sys; d=json.load(sys.stdin); p=[x["observedAt"] for x in [d]+d["past"]]; print(p == sorted(p, reverse=True))')"
sed -i 's/keep_observations = 3/keep_observations = 1/' .stet/config.toml
t "gc takes what is too much"               stet gc --only memory
t "all of it"                               same 0 "$(stats past_rows)"
sed -i 's/keep_observations = 1/keep_observations = 0/' .stet/config.toml
t "a setting that makes no sense is named"  expect_err "keep_observations" stet get x
sed -i 's/keep_observations = 0/keep_observations = 1/' .stet/config.toml
sql "INSERT INTO action(action, branch, piece, generation, name) SELECT max(action) + 1, 0, piece, 0, 'left-by-a-crash' FROM action GROUP BY piece"
sql "UPDATE space_meta SET value = (SELECT count(*) << 32 FROM action) WHERE name = 'digest:action'"
sql "INSERT INTO mark(action, space, branch, state, reason, seq) SELECT max(action), 0, 0, 3, 16, 0 FROM action"
# The digest of the one mark there is: 1 * 2^32, and the CRC-32C of its columns, each with its type and length.
python3 - <<'E'
import sqlite3, struct
c = sqlite3.connect(".stet/local/spaces/main.db")
data = b""
for v in c.execute("SELECT action, space, branch, state, reason, seq, doc, id, scope, path, kind, stamp FROM mark").fetchone():
    data += b"n" if v is None else b"i" + struct.pack("<q", v)
crc = 0xFFFFFFFF
for byte in data:
    crc ^= byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
c.execute("UPDATE space_meta SET value = ? WHERE name = 'digest:mark'", (1 << 32 | crc ^ 0xFFFFFFFF,))
c.commit()
E
t "an action whose node is gone"            same 9 "$(stats actions)"
t "harms nobody"                            stet check --only memory
t "goes by gc"                              stet gc --only memory
t "and no other"                            same "8 8" "$(stats actions) $(stats observed)"
t "check agrees again"                      stet check --only memory

sql "DELETE FROM action WHERE name = 'total'"
stet -q set piece:totals:argument/prices/apple 10
t "an action whose record is lost"          says "there is no record of action total"
t "is unknown after a repair"               stet check --only memory --repair
t "and why"                                 expect_out "total" stet action list totals --state unknown
stet -q run totals.json
t "it runs"                                 same 8 "$(stats observed)"
t "with what it reads now"                  same 50 "$(stet get piece:totals:node:total)"
sql "UPDATE action SET name = 'lost' WHERE name = 'total'"
t "one under another name is both"          says "there is no record of action total"
t "repaired"                                stet check --only memory --repair
t "no name is left"                         same 8 "$(stats actions)"
stet -q run totals.json
t "and nothing is marked"                   same "8 0 0" "$(stats observed) $(stats dirty) $(stats unknown)"

# A piece whose pattern is invalid: nothing in it is known to be up to date.
stet -q set d 1
link='{"/":{"link@1":{"id":"d","space":"main"}}}'
for p in here there; do echo "{\"pattern\":1,\"name\":\"$p\",\"nodes\":[{\"id\":\"n\",\"inputs\":{\"value\":$link},\"module\":{\"type\":\"ref\",\"ref\":\"value\"}}],\"result\":{\"$\":\"n\"}}" >$p.json; done
stet -q run here.json
stet -q run there.json --space other
states() { stet space readers d --json 2>/dev/null | python3 -c 'import json,sys; print(*sorted(r["piece"] + " " + r["state"] for r in json.load(sys.stdin)["readers"]))'; }
t "readers here and in another space"       same "here stands there stands" "$(states)"
echo '{"pattern":1,"name":' >here.json
t "a pattern that goes wrong"               same "here unknown there stands" "$(states)"
echo '{"pattern":1,"name":' >there.json
t "in another space, too"                   same "here unknown there unknown" "$(states)"
stet -q piece delete here
stet -q piece delete there --space other

t "a piece that is deleted"                 stet piece delete totals
t "leaves nothing after gc"                 stet gc --only memory
t "no action, no row"                       same "0 0 0" "$(stats actions) $(stats read_rows) $(stats write_rows)"
t "the store is sound"                      stet check
finish
