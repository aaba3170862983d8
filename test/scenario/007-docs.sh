#!/usr/bin/env bash
# docs/reference.md and man/stet.1 are what the operation table renders; the man page is clean.
. "$STET_SOURCE/test/scenario/lib.sh"
rendered() {
    cmp "$1" "$2" && return
    echo "$1 is not what the operation table gives: run 'make docs' and commit the result"
    diff "$1" "$2" | head -20
    return 1
}
stet help --reference >reference.md
stet help --man >stet.1
t "docs/reference.md is up to date"     rendered "$STET_SOURCE/docs/reference.md" reference.md
t "man/stet.1 is up to date"            rendered "$STET_SOURCE/man/stet.1" stet.1
t "groff has nothing to say about it"   same "" "$(groff -man -Tutf8 -ww -z stet.1 2>&1)"
t "the page names the program"          expect_out "durable incremental computation" groff -man -Tascii stet.1
t "and shows flags that can be copied"  expect_out "--dry-run" bash -c 'groff -man -Tascii -P-cbou stet.1'
t "the same each time"                  same "$(stet help --reference | sha256sum)" "$(cd / && env -i "$STET" help --reference | sha256sum)"
finish
