#!/usr/bin/env bash
# Two runs at once end, also if what was stored of a command can't be put back: the output was a link, and leads nowhere now.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
mkdir src && echo 1 >src/x
cat >stet.toml <<'X'
name = "t"
[nodes.a]
command  = "ln -s ../src/x {out}"
produces = "o/a"
X
t "the link is made" stet run
rm src/x
both() { # both end, and each says what is wrong
    timeout 120 "$STET" run -k >one 2>&1 &
    timeout 120 "$STET" run -k >two 2>&1
    local second=$?
    wait $!
    same "1 1" "$? $second" && grep -q "leads to no file" one && grep -q "leads to no file" two
}
for i in 1 2 3; do
    t "both runs end, time $i" both
done
echo 2 >src/x
t "and it is made again" stet run
finish
