#!/usr/bin/env bash
# A run beside a watch that has another value of a variable: the run that began last decides, and the watch does not write over what it made.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
cat >stet.toml <<'TOML'
name = "p"
[nodes.a]
command = "echo $FOO > {out}; cat in >> {out}"
env = ["FOO"]
produces = "o"
TOML
echo 1 >in
t "a first run" env FOO=a "$STET" run
FOO=a "$STET" run --watch >watch.log 2>&1 &
watch=$!
until grep -q ran watch.log; do sleep 0.05; done
for value in b c d; do
    t "a run with FOO=$value" env FOO=$value "$STET" run
    t "has made it" test "$(head -n 1 o)" = $value
    sleep 0.4
    t "and it stays" test "$(head -n 1 o)" = $value
done
t "a run that has what the watch has" env FOO=a "$STET" run
t "makes it anew" test "$(head -n 1 o)" = a
echo 2 >in
for _ in $(seq 100); do
    grep -q 2 o && break
    sleep 0.05
done
t "and the watch goes on" test "$(tr '\n' ' ' <o)" = "a 2 "
t "a run without it" "$STET" run
sleep 0.4
t "has none" test "$(tr '\n' ' ' <o)" = " 2 "
kill $watch
wait $watch 2>/dev/null
finish
