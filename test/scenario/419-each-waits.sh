#!/usr/bin/env bash
# A command of `each` waits while the node fails that makes its file: it never counts as a failure itself, in whichever order the two would run.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
mkdir src
echo 1 >src/a
cat >stet.toml <<'TOML'
name = "p"
[nodes.gen]
command  = "mkdir -p {out}; cp {in} {out}/; ! grep -q FAIL {in}"
files    = "src/a"
produces = "d"
[nodes.up]
each     = "d/*"
command  = "tr a-z A-Z < {in} > {out}"
produces = "u/{in.stem}"
[nodes.copy]
each     = "src/*"
command  = "cp {in} {out}; ! grep -q FAIL {in}"
produces = "x/{in.stem}.txt"
[nodes.again]
each     = "$copy.out"
command  = "cp {in} {out}"
produces = "y/{in.stem}.y"
[nodes.matched]
each     = "x/*.txt"
command  = "cp {in} {out}"
produces = "z/{in.stem}.z"
[nodes.all]
command  = "cat {in} > {out}"
files    = ["$again.out", "$matched.out", "u/*"]
produces = "all"
TOML

# said FAILED WAITING COMMAND...: so many lines name a failure, and the summary, the JSON and the status say the same.
said() {
    local failed=$1 waiting=$2 status=0 out
    shift 2
    out=$("$@") || status=$?
    echo "$out"
    [ "$status" = "$((failed > 0))" ] && [ "$(grep -c '^failed ' <<<"$out")" = "$failed" ] &&
        grep -q "failed $failed, left $waiting ($waiting wait for what failed)" <<<"$out"
}

t "everything runs" stet run
echo FAIL >src/a
t "two fail, and the rest waits" said 2 10 stet run -k
t "again: what failed is tried first, and the rest still waits" said 2 10 stet run -k
t "without another try" said 2 10 stet run -k --no-retry-failed
t "status names the same failures" test "$(stet status | grep -c '^failed ')" = 2
echo FAIL >src/b
t "a new file that fails" said 3 10 stet run -k
t "and again" said 3 10 stet run -k
echo 2 >src/a
echo 3 >src/b
t "all recover in one run" expect_out "failed 0 in" stet run
t "which leaves nothing to do" expect_out "ran 0," stet run
t "and the result is right" test "$(cat all)" = "$(printf '2\n3\n2\n3\n2')"
finish
