#!/usr/bin/env bash
# Disk full, read-only and failing disks: an io error that names the file and the way out, and nothing half done.
. "$STET_SOURCE/test/scenario/lib.sh"
mkdir p q && stet init --quiet p && stet init --quiet q
stet -C p project add --quiet
before=$(cat "$STET_HOME/registry/repos.json")

fault() { local f=$1; shift; STET_FAULT=$f "$STET_FAULTY" "$@"; }
t "disk full while the list is written: io"   expect_status 7 fault call=write,n=1,errno=ENOSPC,path=registry,sticky=1 project add q
t "with a message that says so"               expect_err "No space left" fault call=write,n=1,errno=ENOSPC,path=registry,sticky=1 project add q
t "and the list is as it was"                 same "$before" "$(cat "$STET_HOME/registry/repos.json")"
t "nor are files left behind"                 test -z "$(ls -A "$STET_HOME/registry" | grep -v '^repos\.')"
t "read-only: io"                             expect_status 7 fault call=open,n=1,errno=EROFS,path=registry,sticky=1 project add q
t "with a message that says so"               expect_err "Read-only" fault call=mkdir,n=1,errno=EROFS,sticky=1 init r
t "init leaves no project behind"             not stet -C r check
t "and can be done again"                     expect_out "created" stet init r
t "the list is still as it was"               same "$before" "$(cat "$STET_HOME/registry/repos.json")"
t "an i/o error while reading it: io"         expect_status 7 fault call=read,n=1,errno=EIO,path=repos.json project list

# Fail each durable call of an operation in turn, until it passes untouched: all or nothing each time.
n=0 bad=
while n=$((n + 1)); [ $n -lt 60 ]; do
    fault "call=durable,n=$n,errno=ENOSPC" project add q >out.txt 2>&1
    status=$?
    listed=$(stet project list --json | json total)
    case $status:$listed in
    0:2) break ;;
    7:1) ;;
    7:2) # the new list is in place, and syncing its directory failed: said, and done again
        stet project remove q --quiet ;;
    *) bad="$bad $n:$status:$listed" ;;
    esac
done
t "a failure at any step: all or nothing ($n steps)" test -z "$bad" -a $n -gt 3 -a $n -lt 60

if [ "$(id -u)" = 0 ] && mkdir -p small && mount -t tmpfs -o size=16k,nr_inodes=32 tmpfs small 2>/dev/null; then
    dd if=/dev/zero of=small/filler bs=4k count=4 2>/dev/null
    t "a full file system: io"                expect_status 7 stet init small/p
    t "with the way out"                      expect_err "hint:" stet init small/p
    rm small/filler
    t "with room again it works"              stet init small/p
    umount small
fi
if [ "$(id -u)" = 0 ] && mkdir -p ro && mount --bind ro ro 2>/dev/null; then
    stet init --quiet ro/p
    mount -o remount,bind,ro ro
    t "a read-only mount: check still works"  stet -C ro/p check
    t "init does not"                         expect_status 7 stet init ro/q
    t "doctor says so"                        expect_status 1 stet -C ro/p doctor
    t "and why"                               expect_out "Read-only" bash -c '"$STET" -C ro/p doctor || true'
    umount ro
fi
# A directory without write permission, as a user whom permissions bind.
unprivileged() { "$@"; }
[ "$(id -u)" != 0 ] || unprivileged() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
mkdir locked && cp -r p/.stet locked/ && chmod -R a+rX . && chmod 755 locked locked/.stet
chmod -R a-w locked
can_run=$(unprivileged env "$STET" --version 2>/dev/null) || can_run=
program=$STET
if [ -z "$can_run" ]; then # the build directory is closed to others: a copy
    program=$(mktemp -d /tmp/stet-test-bin.XXXXXX) && cp "$STET" "$program/stet" && chmod -R a+rx "$program" && program=$program/stet
fi
chmod a+x "$PWD" "$(dirname "$PWD")" 2>/dev/null
t "a directory without permission: io"        expect_status 7 unprivileged "$program" init "$PWD/locked/deeper"
t "with the way out"                          expect_err "hint:" unprivileged "$program" init "$PWD/locked/deeper"
t "reading it works"                          unprivileged env STET_HOME=/nonexistent "$program" -C "$PWD/locked" check
t "a home that can't be made: io"             expect_status 7 unprivileged env STET_HOME="$PWD/locked/home" "$program" -C "$PWD/p" project add
t "listing needs none"                        unprivileged env STET_HOME="$PWD/locked/home" "$program" project list
[ "$program" = "$STET" ] || rm -rf "$(dirname "$program")"
chmod -R u+w locked
cd p || exit 1
finish
