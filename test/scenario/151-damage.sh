#!/usr/bin/env bash
# A stored row is damaged: reading it is an error that names the document, check --repair keeps every good copy and says
# what is lost; and what a piece computed is right again after the next run, as in a project made from scratch.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
db=.stet/local/spaces/main.db
sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()' "$db" "$1"; }
large() { python3 -c 'import json,sys; print(json.dumps({"n": int(sys.argv[1]), "text": "x" * 5000}))' "$1"; }
says() { stet check --only memory "${@:2}" 2>&1 | grep -qF "$1"; }
flip() { # one bit in the middle of a blob
    python3 - "$db" "$@" <<'PY'
import sqlite3, sys
db, table, column, where = sys.argv[1:]
c = sqlite3.connect(db)
for key, value in c.execute(f"SELECT rowid, {column} FROM {table} WHERE {where}").fetchall():
    b = bytearray(value)
    b[len(b) // 2] ^= 1
    c.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(b), key))
c.commit()
PY
}

stet -q set small '{"n":1}'
large 1 | stet -q set large -
stet -q set small/n 2
stet -q set large/n 2
t "all is well"                                stet check --only memory

# A flipped bit in a text above 2 KiB: sequence 2 is the one that has it.
cp "$db" good.db
flip commits body "seq = 2"
t "a flipped bit is not served"                expect_status 6 stet get large/n
t "the error names the document"               expect_err 'document "large"' stet get large/n
t "and the way out"                            expect_err "stet check --repair" stet get large/n
t "nor is the past"                            expect_status 6 stet get large --at 2
t "another document is not affected"           same 2 "$(stet get small/n)"
t "check finds it"                             expect_status 1 stet check --only memory
t "and says which"                             says 'document "large": what commit 2 says of it is damaged'
t "repair says what is lost, and that it is"   expect_status 1 stet check --only memory --repair
t "it deleted what nothing is left of"         expect_status 3 stet get large
t "the rest is as it was"                      same 2 "$(stet get small/n)"
t "the log shows the loss"                     expect_out "lost" stet doc log large --limit 10
t "after that check has nothing to say"        stet check --only memory
t "and it can be written again"                stet -q set large '{"n":3}'

# A commit is damaged, and the head has the text: nothing that was good is overwritten.
cp good.db "$db"; rm -f "$db-wal" "$db-shm"
flip commits body "seq = 3"
t "the head serves it"                         same 2 "$(stet get small/n)"
t "check finds the commit"                     expect_status 1 stet check --only memory
t "repair loses nothing"                       stet check --only memory --repair
t "the head is as it was"                      same 2 "$(stet get small/n)"
t "so is the commit's value"                   same 2 "$(stet get small/n --at 3)"
t "and what was before"                        same 1 "$(stet get small/n --at 1)"
t "check agrees"                               stet check --only memory

# Heads: damaged, gone, exchanged.
cp good.db "$db"; rm -f "$db-wal" "$db-shm"
sql "UPDATE head SET seq = 1 WHERE key = (SELECT doc FROM document WHERE id = 'small')"
t "an older revision is not taken for the newest" expect_status 6 stet get small/n
t "repaired from the log"                      stet check --only memory --repair
t "so it is the newest"                        same 2 "$(stet get small/n)"
sql "DELETE FROM head"
t "a head that is gone is no absent document"  expect_status 6 stet get small
t "nor does a list leave it out"               expect_status 6 stet doc list
t "repaired, too"                              stet check --only memory --repair
t "both are there"                             same "2 2" "$(stet get small/n) $(stet get large/n)"
sql "UPDATE document SET id = 'tiny' WHERE id = 'small'"
t "a name that nobody vouches for"             expect_status 6 stet get tiny
t "is lost"                                    says 'lost: the name of document number' --repair
t "and its value is kept"                      same 2 "$(stet get "lost:$(sqlite_doc() { python3 -c 'import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute("SELECT doc FROM document WHERE id LIKE \"lost:%\"").fetchone()[0])' "$db"; }; sqlite_doc)/n")"

# The newest commit is lost with its row.
cp good.db "$db"; rm -f "$db-wal" "$db-shm"
sql "DELETE FROM commits WHERE seq = 4"
t "a commit that is gone"                      expect_status 6 stet get large
t "is named"                                   says "commit 4 is missing"
t "JSON says that it is not repaired"          same false "$(stet check --only memory --repair --json 2>/dev/null | python3 -c 'import json,sys; print(json.dumps([p["repaired"] for s in json.load(sys.stdin)["stores"] for p in s["problems"] if p["what"].startswith("lost: ")][0]))')"
t "the document is what it was before"         same 1 "$(stet get large/n)"
t "sequences go on"                            test "$(stet space stats --json | json seq)" = 5
t "check agrees again"                         stet check --only memory

# What a piece computed, against a project made from scratch.
cp "$STET_SOURCE/examples/totals.json" .
t "a piece runs"                               stet -q run totals.json
t "an edit is waiting"                         stet -q set piece:totals:argument/factor 7
flip action observation "name = 'scaled'"
flip action observation "name = 'total'"
t "damaged observations are no error"          stet -q status
t "and prove nothing"                          expect_out "unknown" stet action list totals --state unknown
t "check finds them"                           says "its row is damaged"
t "repair makes them unknown"                  stet check --only memory --repair
t "so they run"                                expect_out "failed 0" stet run totals.json
t "and all stand"                              same 0 "$(stet run totals.json --json | json ran)"
result=$(stet get piece:totals --fresh)
mkdir fresh; cd fresh; stet init -q; cp ../totals.json .
stet -q run totals.json; stet -q set piece:totals:argument/factor 7; stet -q run totals.json
t "as from scratch"                            same "$(stet get piece:totals --fresh)" "$result"
cd ..

# Damage below the rows. A number of an action that is out of order in its table must not lead check back for ever.
stet -q run totals.json
cp "$db" good.db
cat >order.py <<'PY'
import os, shutil, sqlite3, subprocess, sys
db, stet = sys.argv[1], os.environ["STET"]
numbers = [n for n, in sqlite3.connect(db).execute("SELECT action FROM action ORDER BY action")]
data, tried = open(db, "rb").read(), 0
def varint(n):
    b = [n & 127]
    while n := n >> 7:
        b.append(n & 127 | 128)
    return bytes(reversed(b))
for n in numbers[1:]:
    at = -1
    while (at := data.find(varint(n), at + 1)) >= 0:
        for bit in range(7):
            bad = bytearray(data)
            bad[at + len(varint(n)) - 1] ^= 1 << bit
            open(db, "wb").write(bad)
            status = subprocess.run([stet, "check", "--only", "memory"], timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
            if status not in (0, 1):
                sys.exit(f"number {n} at {at}, bit {bit}: {status}")
            tried += 1
        if tried > 100:
            break
shutil.copy("good.db", db)
sys.exit(tried < 6)
PY
rm -f "$db-wal" "$db-shm"
t "numbers of actions out of order end the check" python3 order.py "$db"
python3 - "$db" <<'PY'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.execute("PRAGMA writable_schema = ON")
c.execute("UPDATE sqlite_master SET sql = replace(sql, 'doc ', 'dob ') WHERE name = 'document'")
c.commit()
PY
t "tables that are not stet's are damage"      expect_status 6 stet get piece:totals:argument
cp good.db "$db"; rm -f "$db-wal" "$db-shm"
chunk=$(stet doc list --json | python3 -c 'import json,sys; print(max(d["seq"] for d in json.load(sys.stdin)["documents"] if d["id"].startswith("piece:totals:process:")))')
flip commits body "seq = $chunk"
sql "UPDATE head SET value = NULL WHERE seq = $chunk"
t "half a graph is not shown for the whole"    expect_status 6 stet get piece:totals --meta
cp good.db "$db"; rm -f "$db-wal" "$db-shm"
t "check"                                      stet check
finish
