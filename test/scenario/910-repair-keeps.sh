#!/usr/bin/env bash
# check --repair never takes away what is good: a document whose head is sound stays what it is, whichever older commit
# is lost; a name that was damaged makes nothing stand that does not; what can't be mended is not called repaired.
. "$STET_SOURCE/test/scenario/lib.sh"
db=.stet/local/spaces/main.db
sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()' "$db" "$1"; }
repair() { stet check --only memory --repair >said 2>&1; }
fresh() { rm -rf .stet; stet init -q; }

# Twenty revisions, one of them damaged or gone.
lose() { # SQL
    fresh
    stet -q set small '{"n":0,"t":"abc"}'
    for i in $(seq 1 19); do stet -q set small/n "$i"; done
    sql "$1"
    before=$(stet get small/n)
    repair || true
}
for seq in 1 2 5 19; do
    lose "UPDATE commits SET body = x'00' WHERE seq = $seq"
    t "commit $seq damaged: what could be read"  same 19 "$before"
    t "can be read after the repair"             same 19 "$(stet get small/n)"
    t "what is lost is said"                     grep -q "lost: document \"small\": its revisions at $seq.*it is what it was" said
    t "then all is well"                         stet check --only memory
done
lose "DELETE FROM commits WHERE seq = 1"
t "the row of the first commit gone"             same 19 "$(stet get small/n)"
lose "UPDATE commits SET body = x'00' WHERE seq = 20"
t "only the newest damaged: nothing is lost"     same 0 "$(grep -c lost: said || true)"
t "and it is what it was"                        same 19 "$(stet get small/n)"
fresh
stet -q set gone 1
stet -q set other 1
stet -q doc delete gone
sql "DELETE FROM commits WHERE seq = 3"
repair || true
t "what was deleted stays so"                    expect_status 3 stet get gone

# Names.
pattern() {
    fresh
    stet -q set src '{"v":1}'
    cat >p.json <<'JSON'
{"pattern":1,"name":"p","nodes":[
 {"id":"a","inputs":{"v":{"/":{"link@1":{"id":"src","path":["v"]}}}},"module":{"type":"javascript","implementation":"({v})=>(v??-1)+1"}},
 {"id":"b","inputs":{"v":{"$":"a"}},"module":{"type":"javascript","implementation":"({v})=>v*2"}}],
 "result":{"a":{"$":"a"},"b":{"$":"b"}}}
JSON
    stet run p.json >/dev/null
}
pattern
sql "UPDATE document SET id = 'srb' WHERE id = 'src'"
t "a name with a flipped bit: corrupt"           expect_status 6 stet get src
t "it can't be given anew"                       expect_status 6 stet set src 1
t "status does not say that all stands"          expect_status 6 stet status
t "nor does a run"                               expect_status 6 stet run p.json
repair || true
t "the repair says that it is lost"              grep -q "lost: the name of document number" said
t "and the value is there"                       same 1 "$(stet get lost:1/v)"
stet -q set src '{"v":10}'
stet run p.json >/dev/null
t "what read it runs"                            same 22 "$(stet get piece:p/b --fresh)"
t "and is right"                                 expect_out "all the same" stet check --rerun all
for node in src piece:p:node:a; do
    pattern
    sql "UPDATE document SET sum = sum + 1 WHERE id = '$node'"
    repair || true
    t "only the checksum of $node: nothing is lost" same 0 "$(grep -c lost: said || true)"
    stet -q set src '{"v":10}'
    stet run p.json >/dev/null
    t "and an edit is seen"                      same 22 "$(stet get piece:p:node:b)"
done

# Another space that reads the document.
pattern
cat >q.json <<'JSON'
{"pattern":1,"name":"q","nodes":[
 {"id":"c","inputs":{"v":{"/":{"link@1":{"id":"src","path":["v"],"space":"main"}}}},"module":{"type":"javascript","implementation":"({v})=>(v??-1)*3"}}],
 "result":{"c":{"$":"c"}}}
JSON
stet run --space far q.json >/dev/null
t "a reader in another space"                    same 3 "$(stet get --space far piece:q:node:c)"
sql "UPDATE document SET id = 'srb' WHERE id = 'src'"
repair || true
stet -q set src '{"v":10}'
stet run --space far q.json >/dev/null
t "runs again, too"                              same 30 "$(stet get --space far piece:q:node:c)"

# A branch of which there is no second copy.
pattern
stet -q branch create dev
sql "UPDATE branch SET name = 'dew' WHERE name = 'dev'"
repair || true
t "a branch is not called repaired"              same 0 "$(grep -c '(repaired)' said || true)"
t "it is lost"                                   grep -q "lost: branch number 1 is damaged" said
t "what is on the default branch is compared"    grep -q "all the same" <(stet check --rerun all 2>&1)
fresh
finish
