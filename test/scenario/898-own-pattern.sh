#!/usr/bin/env bash
# A node whose pattern can match its own output, and another one with the same pattern: one run does both, from nothing and after each edit.
. "$STET_SOURCE/test/scenario/lib.sh"
mkdir p && cd p || exit 1
stet init >/dev/null
echo 1 >in
cat >stet.toml <<'TOML'
name = "p"
[nodes.a]
files = ["o/*.x", "in"]
command = "cat {in} > {out}"
produces = "o/a.x"
[nodes.b]
files = "o/*.x"
command = "cat {in} > {out}"
produces = "b"
TOML
t "the first run does both" expect_out "ran 2, up to date 0, failed 0" stet run
t "as they should be" test "$(cat o/a.x b)" = "$(printf '1\n1')"
t "nothing more to do" expect_out "ran 0," stet run
echo 2 >in
t "after an edit" stet run
t "too" test "$(cat o/a.x b)" = "$(printf '2\n2')"
echo 0 >o/0.x
t "with a source that both match" stet run
t "too" test "$(cat o/a.x b | tr '\n' ' ')" = "0 2 0 0 2 "
t "nothing more to do then" expect_out "ran 0," stet run
finish
