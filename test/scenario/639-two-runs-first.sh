#!/usr/bin/env bash
# Two runs at once, in a project that was never run: no command runs beside itself, effects are done once, none waits
# for ever.
. "$STET_SOURCE/test/scenario/lib.sh"

# `both WHERE`: two runs of a new project in WHERE, whose commands are effects.
both() {
    mkdir -p "$1/src" && cd "$1" || return 1
    stet init || return 1
    cat >stet.toml <<X
name = "p"
[nodes.rows]
each = "src/*.txt"
command = "echo start {in} >> trace; cat {in} >> {out}; sleep 0.03"
kind = "effect"
produces = "build/{in.stem}.o"
[nodes.x]
command = "echo start x >> trace; cat src/a.txt >> {out}; sleep 0.03"
kind = "effect"
produces = "x"
[nodes.y]
command = "echo start y >> trace; cat src/a.txt >> {out}; sleep 0.03"
kind = "effect"
produces = "y"
X
    for f in a b c d; do echo "$f" >"src/$f.txt"; done
    timeout -k 5 60 "$STET" run & first=$!
    timeout -k 5 60 "$STET" run && wait "$first" || return 1
    for f in a b c d; do echo "$f" | cmp - "build/$f.o" || return 1; done
    echo a | cmp - x && echo a | cmp - y
}

# The same with children alone that are no effects: in some tries the other run stores them while commands begin here.
many() {
    for try in $(seq 25); do
        mkdir -p "$top/c$try/src" && cd "$top/c$try" || return 1
        stet init || return 1
        cat >stet.toml <<X
name = "p"
[nodes.rows]
each = "src/*.txt"
command = "cat {in} >> {out}; sleep 0.03"
produces = "build/{in.stem}.o"
X
        for f in a b c d e f g h; do echo "$f" >"src/$f.txt"; done
        timeout -k 5 60 "$STET" run -j 4 & first=$!
        timeout -k 5 60 "$STET" run -j 4 && wait "$first" || return 1
        for f in a b c d e f g h; do echo "$f" | cmp - "build/$f.o" || return 1; done
    done
}

once() { # everything that was started was started once
    test "$(sort "$1/trace" | uniq -d)" = ""
}

top=$PWD
t "commands, twenty-five projects: right, and no end is waited for in vain" many
cd "$top" || exit 1
for try in 1 2 3; do
    t "effects, try $try: the same" both "$top/e$try"
    cd "$top" || exit 1
    t "and each is done once" once "$top/e$try"
done
cd "$top/e1" || exit 1
echo more >>src/a.txt
: >trace
again() {
    timeout -k 5 60 "$STET" run & first=$!
    timeout -k 5 60 "$STET" run && wait "$first"
}
t "two runs after a change of what effects read" again
t "each of them is done once" once .
t "and is right" cmp src/a.txt x
finish
