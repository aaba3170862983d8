#!/usr/bin/env bash
# Rows of the scheduler vanish: no record means unknown, everywhere, and an edit is never missed.
. "$STET_SOURCE/test/scenario/lib.sh"
db=.stet/local/spaces/main.db
sql() { python3 -c 'import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()' "$db" "$1"; }
stands() { stet status | awk 'NR == 2 { print $2 }'; }
project() {
    rm -rf .stet
    stet init -q
    stet -q set src '{"v":1}'
    cat >p.json <<'JSON'
{"pattern":1,"name":"p","nodes":[
 {"id":"a","inputs":{"v":{"/":{"link@1":{"id":"src","path":["v"]}}}},"module":{"type":"javascript","implementation":"({v})=>v+1"}},
 {"id":"b","inputs":{"v":{"$":"a"}},"module":{"type":"javascript","implementation":"({v})=>v*2"}}],
 "result":{"a":{"$":"a"},"b":{"$":"b"}}}
JSON
    stet run p.json >/dev/null
}
vanish() { # before or after an edit, SQL
    project
    [ "$1" = before ] || stet -q set src/v 10
    sql "$2"
    [ "$1" = after ] || stet -q set src/v 10
}
for when in before after; do
    for gone in "DELETE FROM action WHERE name = 'a';" "DELETE FROM mark; DELETE FROM action WHERE name = 'a';" \
        "DELETE FROM action;" \
        "DELETE FROM action; DELETE FROM mark; DELETE FROM place_index; DELETE FROM complete_branch; DELETE FROM survey;"; do
        vanish $when "$gone"
        t "$when an edit, $gone: nothing stands"  same 0 "$(stands)"
        t "a dry run sees both"                   expect_out "2 actions do not stand" stet run -n p.json
        t "--fresh is right"                      same 22 "$(stet get piece:p/b --fresh)"
        vanish $when "$gone"
        stet run p.json >/dev/null
        t "and so is a run"                       same 22 "$(stet get piece:p:node:b)"
        stet -q set src/v 20
        stet run p.json >/dev/null
        t "and the next one"                      same 42 "$(stet get piece:p:node:b)"
    done
done
for gone in "DELETE FROM place_index;" "DELETE FROM place_index; DELETE FROM place_digest;" \
    "DELETE FROM place_index WHERE key = (SELECT doc FROM document WHERE id = 'src');" "DELETE FROM place_digest;"; do
    vanish before "$gone"
    t "$gone: status is an error"                 expect_status 6 stet status
    t "so is a run"                               expect_status 6 stet run p.json
    t "so is --fresh"                             expect_status 6 stet get piece:p/b --fresh
    stet check --only memory --repair >/dev/null || true
    t "after a repair all is well"                stet check --only memory
    stet run p.json >/dev/null
    t "and a run is right"                        same 22 "$(stet get piece:p:node:b)"
    stet -q set src/v 20
    stet run p.json >/dev/null
    t "and the next one"                          same 42 "$(stet get piece:p:node:b)"
done
finish
