#!/usr/bin/env bash
# persist from the command line: put, get, list, show, stats, pin, tag, cleanup, undelete, watch.
. "$STET_SOURCE/test/scenario/lib.sh"
M1=abcdefghijklmnopqrstuvwxyzABCDEFGH123456789
M2=-bcdefghijklmnopqrstuvwxyzABCDEFGH123456789
M3=cbcdefghijklmnopqrstuvwxyzABCDEFGH123456789
HEX=$(printf hello | sha256sum | cut -d' ' -f1)
stet init -q
t "reading makes nothing"                  test "$(stet persist list --json | json total)" = 0
t "no directory yet"                       not test -e .stet/persist
t "stats of nothing"                       expect_out "0 hits" stet persist stats
t "check and gc of nothing"                stet gc
printf one >one; printf two >two; printf err >err
t "put"                                    expect_out "put plot" stet persist put --block plot --module $M1 --variables one --format text
t "the directory has the known layout"     test -f .stet/persist/config.toml -a -d .stet/persist/entry_snapshots -a -d .stet/persist/objects
t "version"                                same 'version = "1"' "$(cat .stet/persist/config.toml)"
t "get to standard output"                 same one "$(stet persist get --block plot --module $M1)"
t "a prefix is enough"                     same one "$(stet persist get --module abcdef)"
t "too short a prefix"                     expect_status 2 stet persist get --module abc
t "another kind is not there"              expect_status 3 stet persist get --module abcdef --kind output
t "a module that begins with a hyphen"     stet persist put --block plot --module=$M2 --variables two --output one --stderr err --elapsed-ms 1500
t "its contents"                           same 'output,stderr,variables' "$(stet persist show --module=$M2 --json | python3 -c 'import json,sys; print(",".join(c["kind"] for c in json.load(sys.stdin)["contents"]))')"
t "its formats"                            same pickle "$(stet persist show --module=$M2 --json | json contents.2.format)"
t "in hexadecimal digits"                  stet persist put --block h --module "$HEX" --variables one --format text
t "found by them"                          same one "$(stet persist get --module "${HEX:0:12}")"
t "nothing to put"                         expect_status 2 stet persist put --block h --module $M1
t "a bad block"                            expect_status 2 stet persist put --block header --module $M1 --variables one
t "a bad module"                           expect_err "43 characters" stet persist put --block b --module short --variables one
t "a missing file"                         expect_status 3 stet persist put --block b --module $M1 --variables nowhere
t "at a time"                              stet persist put --block plot --module $M1 --created-at 2024-03-20T14:30:15.123Z --variables two --format text
t "the same again is fine"                 stet persist put --block plot --module $M1 --created-at 2024-03-20T14:30:15.123Z --variables two --format text
t "other bytes clash"                      expect_status 4 stet persist put --block plot --module $M1 --created-at 2024-03-20T14:30:15.123Z --variables one --format text
t "the latest wins"                        same one "$(stet persist get --block plot --module $M1)"
t "an older one"                           same two "$(stet persist get --block plot --module $M1 --created-at 2024-12-01)"
t "exactly"                                same two "$(stet persist get --block plot --module $M1 --created-at 63846541815123 --exact)"
t "exactly, but nothing is there"          expect_status 3 stet persist get --block plot --module $M1 --created-at 63846541815124 --exact
t "exact without a time"                   expect_status 2 stet persist get --block plot --module $M1 --exact
t "into a file"                            stet persist get --block plot --module $M1 -o restored
t "whole"                                  cmp one restored
t "as JSON"                                same one "$(stet persist get --block plot --module $M1 --json | json text)"
t "list"                                   expect_out "$(printf 'plot')" stet persist list
t "list as JSON"                           same 4 "$(stet persist list --json | json total)"
t "show"                                   expect_out 'hash = "' stet persist show --block plot
t "stats count hits and time"              same '[4,1500]' "$(stet persist get --module=$M2 >/dev/null; stet persist stats --json | python3 -c 'import json,sys; s=json.load(sys.stdin); print([s["entries"], s["saved_ms"]]).__str__()' | tr -d " ")"

t "pin the old one"                        expect_out pinned stet persist pin --block plot --module $M1 --created-at 2024-12-01
t "tag another"                            expect_out "tag paper" stet persist tag paper --module=$M2
for i in 1 2 3 4 5; do echo $i >v$i; stet persist put --block many --module $M3 --created-at "2024-01-0$i" --variables v$i --format text -q; done
t "a dry run names what would go"          expect_out "would go" stet persist cleanup --include-content --dry-run
before=$(find .stet/persist -type f | sort | sha256sum)
t "and changes nothing"                    same "$before" "$(find .stet/persist -type f | sort | sha256sum)"
t "cleanup"                                stet persist cleanup --include-content
t "two per module stay"                    same 2 "$(stet persist list --block many --json | json total)"
t "what is pinned stays"                   same two "$(stet persist get --block plot --module $M1 --created-at 2024-12-01)"
t "one snapshot, named by its hash"        test "$(ls .stet/persist/entry_snapshots | grep -cE '^[A-Za-z0-9_-]{43}\.toml$')" = 1
t "the trash shows what went"              expect_out "BATCH" stet persist undelete --dry-run
t "undelete"                               stet persist undelete
t "all five are back"                      same 5 "$(stet persist list --block many --json | json total)"
t "with their bytes"                       same 1 "$(stet persist get --block many --module $M3 --created-at 2024-01-01)"
t "the last day of the pin"                expect_out "not protected" stet persist pin --block plot --module $M1 --created-at 2024-12-01 --off
t "underscores are fine too"              stet persist cleanup --max_entries_per_block=1 --include_content=true
t "one of each block"                      same 1 "$(stet persist list --block many --json | json total)"
t "nothing kept is refused"                expect_status 9 bash -c '"$STET" persist tag paper --off --module='$M2' && "$STET" persist cleanup --max-entries-per-block=-1 --max-entries-per-module=-1 --max-total-content-size=1 --include-content'
t "all limits off is invalid"              expect_status 2 stet persist cleanup --max-entries-per-block=-1 --max-entries-per-module=-1

(sleep 0.7; "$STET" persist put --block seen --module $M1 --variables one --format text -q) &
t "watch sees what another process puts"   expect_out "seen" stet persist watch --count 1 --timeout 20
wait

(sleep 0.7; "$STET" persist put --block merged --module=$M2 --variables one --format text -q) &
t "watch --merge cleans up when it ends"   expect_out "merged" stet persist watch --merge --count 1 --timeout 20
wait
t "the log is empty then"                  same 0 "$(stet persist stats --json | json log_entries)"

printf '\n[persist.defaults]\nmax_entries_in_log = 0\n' >>.stet/config.toml
t "a bad option is named"                  expect_err "max_entries_in_log" stet persist list
sed -i 's/max_entries_in_log = 0/max_entries_in_log = 1\ncompression = "zstd"/' .stet/config.toml
head -c 100000 /dev/zero >zeros
t "options are read"                       stet persist put --block z --module $M1 --variables zeros --format bytes
t "compressed"                             test "$(find .stet/persist/objects -name '*.zst' -size -10k | wc -l)" = 1
t "and whole"                              cmp zeros <(stet persist get --block z --module $M1)

printf 'X' | dd of="$(find .stet/persist/objects -type f -name '*.zst')" bs=1 seek=20 conv=notrunc status=none
t "check finds a damaged object"           expect_status 1 stet check --only persist
t "get does not return it"                 expect_status 3 stet persist get --block z --module $M1
created=$(stet persist show --block z --json | json created_at)
t "repair moves it to the trash"           stet check --only persist --repair
t "with the entry that names it"           expect_status 3 stet persist get --block z --module $M1
t "nothing is left to repair"              stet check --only persist
t "the same put heals it"                  stet persist put --block z --module $M1 --variables zeros --format bytes --created-at "$created"
t "and it is whole again"                  cmp zeros <(stet persist get --block z --module $M1)
t "gc"                                     stet gc
finish
