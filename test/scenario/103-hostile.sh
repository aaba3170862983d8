#!/usr/bin/env bash
# Files that are no space, damaged, newer, read-only or on a network file system: a clear error, the right status, nothing changed.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init -q
db=.stet/local/spaces/main.db
for i in $(seq 60); do echo "{\"op\":\"add\",\"path\":\"/k$i\",\"value\":\"some text that fills a page or two of the file $i\"}"; done | paste -sd, | sed 's/^/[/; s/$/]/' >ops
stet -q doc patch a "$(cat ops)"
stet -q set b 1
t "check finds nothing"                 stet check
cp $db good.db

printf 'this is not a database at all, only text of some length' >$db
t "no database: corrupt"                expect_status 6 stet get b
t "the message names the file"          expect_err "main.db" stet get b
t "writing is refused too"              expect_status 6 stet set b 2
t "check tells it, and goes on"         expect_status 1 stet check
t "the space is listed with its error"  expect_out "main" stet space list
t "it was not touched"                  same "this is not" "$(head -c 11 $db)"

head -c 9000 good.db >$db
t "truncated: corrupt"                  expect_status 6 stet get a
t "check"                               expect_status 1 stet check

cp good.db $db; printf '\0\0\0\143' | dd of=$db bs=1 seek=60 conv=notrunc status=none
t "from a newer version: unsupported"   expect_status 8 stet get b
t "it says so"                          expect_err "newer stet" stet set b 2

python3 - <<'PY'
import sqlite3
sqlite3.connect("other.db").execute("create table t(a)")
PY
cp other.db $db
t "another program's database: invalid" expect_status 2 stet get b

cp good.db $db
if [ "$(id -u)" = 0 ]; then
    chmod 755 . && pass "a read-only file is tried as another user below"
    export program=$PWD/program # a copy: the build directory may be closed to others
    cp "$STET" "$program"
    ro() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent STET_HOME=/nonexistent "$program" "$@"; }
    here=$PWD; while [ "$here" != / ]; do chmod o+rx "$here" 2>/dev/null; here=$(dirname "$here"); done
    chmod -R o+rX .
else
    ro() { "$STET" "$@"; }
    chmod 444 $db
fi
t "read-only: reading works or says why" bash -c 'out=$("$@" 2>&1); s=$?; [ $s = 0 ] || { [ $s = 7 ] && [ -n "$out" ]; }' _ "$(command -v bash)" -c "$(declare -f ro); ro get b"
t "read-only: writing is an i/o error"  expect_status 7 ro set b 2
chmod 644 $db
t "nothing changed"                     same 1 "$(stet get b)"
t "and it can be written again"         stet set b 2
finish
