#!/usr/bin/env bash
# project list, add and remove: one entry per project however it is reached, many processes at once, hostile lists.
. "$STET_SOURCE/test/scenario/lib.sh"
list() { stet project list --json | json "$1"; }

t "nothing is listed at first"            same '[]' "$(list projects)"
t "and listing makes nothing"             test ! -e "$STET_HOME"
mkdir -p a/sub/deep b && stet init -q a && stet init -q b && ln -s a link
t "add outside a project: not found"      expect_status 3 stet project add
t "add"                                   expect_out "added $PWD/a" stet project add a
t "add again"                             expect_out "already listed: $PWD/a" stet project add a
t "through a symlink"                     expect_out "already listed: $PWD/a" stet project add link
t "through a subdirectory"                expect_out "already listed: $PWD/a" stet project add a/sub/deep
t "through both and .."                   expect_out "already listed: $PWD/a" stet project add link/sub/../sub
t "from inside"                           same false "$(cd a/sub && stet project add --json | json added)"
t "with --project"                        same false "$(stet --project link project add --json | json added)"
t "listed once"                           same 1 "$(list total)"
t "by its real path"                      same "$PWD/a" "$(list projects.0.path)"
t "as text"                               expect_out "$PWD/a" stet project list
t "another"                               stet project add b
t "in order"                              same "$PWD/a $PWD/b" "$(list projects.0.path) $(list projects.1.path)"
t "the file is in its form"               same 1 "$(json schemaVersion <"$STET_HOME/registry/repos.json")"
t "with a time"                           test -n "$(json repos.0.addedAt <"$STET_HOME/registry/repos.json")"
t "remove through a symlink"              expect_out "removed $PWD/a" stet project remove link
t "what is not listed is not found"       expect_status 3 stet project remove a
t "the project is as it was"              stet -C a check
t "a project that is gone"                rm -r b/.stet
t "is shown as missing"                   same false "$(list projects.0.present)"
t "also as text"                          expect_out "missing" stet project list
t "and can be removed"                    stet project remove b
rmdir b
stet init -q c && stet project add -q c && rm -r c
t "also when its directory is gone"       stet project remove c
t "nothing is left"                       same 0 "$(list total)"

for i in $(seq 1 12); do stet init -q "many/$i"; done
for i in $(seq 1 12); do stet project add -q "many/$i" & done
wait
t "twelve processes at once: all listed"  same 12 "$(list total)"
t "no other file is left"                 same "repos.json repos.lock" "$(ls -A "$STET_HOME/registry" | tr '\n' ' ' | sed 's/ $//')"

file=$STET_HOME/registry/repos.json
good=$(cat "$file")
refused() { # STATUS TEXT
    printf '%s' "$2" >"$file"
    expect_status "$1" stet project list && expect_status "$1" stet project add a && same "$2" "$(cat "$file")"
}
t "no JSON: corrupt, and left alone"      refused 6 '{"schemaVersion":1,'
t "cut off in the middle: corrupt"        refused 6 "${good:0:100}"
t "another shape: corrupt"                refused 6 '[]'
t "a relative path: corrupt"              refused 6 '{"schemaVersion":1,"repos":[{"path":"a","addedAt":"2026-01-01T00:00:00.000Z"}]}'
t "a newer form: unsupported"             refused 8 '{"schemaVersion":2,"repos":[]}'
t "with the way out"                      expect_err "hint: " stet project list
printf '%s' '{"schemaVersion":1,"other":7,"repos":[{"path":"/b","addedAt":"x"},{"path":"/a","addedAt":"x"},{"path":"/b","addedAt":"x"}]}' >"$file"
t "duplicates of others are shown once"   same 2 "$(list total)"
t "and what others wrote is kept"         same 7 "$(stet project add -q a; json other <"$file")"
cd a || exit 1
finish
