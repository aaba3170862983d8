# lib.sh - helpers of scenario scripts. Source it first:
#
#     #!/usr/bin/env bash
#     # One sentence: what this scenario shows.
#     . "$STET_SOURCE/test/scenario/lib.sh"
#
#     t "init makes a project"          stet init
#     t "and says so once"              expect_out "already a project: $PWD" stet init
#     t "an unknown flag is refused"    expect_status 2 stet init --frob
#     t "with the near one named"       expect_err "did you mean" stet init --jsno
#     t "the result is JSON"            test "$(stet init --json | json created)" = false
#     finish
#
# `t NAME COMMAND...` is one test: passed if the command's status is 0. Its output is shown when it failed. `finish` runs
# `stet check --rerun` if the current directory lies in a project, prints the plan, and exits 1 if a test failed.
# The script runs in an empty directory of its own, with STET, STET_FAULTY, STET_BUILD, STET_SOURCE, HOME and STET_HOME set.
set -u
export STET_CHECK_RESULTS=1
tap_count=0
tap_failed=0
tap_out=$(mktemp -d "${TMPDIR:-/tmp}/stet-tap.XXXXXX")
trap 'rm -rf "$tap_out"' EXIT

stet() { "$STET" "$@"; }
faulty() { "$STET_FAULTY" "$@"; }

pass() { tap_count=$((tap_count + 1)); echo "ok $tap_count - $1"; }
fail() { # fail NAME [FILE with what to show]
    tap_count=$((tap_count + 1))
    tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
    [ -z "${2-}" ] || sed 's/^/# /' "$2" | tail -40
}

t() {
    local name=$1
    shift
    if "$@" >"$tap_out/t" 2>&1 </dev/null; then pass "$name"; else
        echo "status $?: $*" >>"$tap_out/t"
        fail "$name" "$tap_out/t"
    fi
}

# expect_status N COMMAND...: the command ends with that status.
expect_status() {
    local want=$1 got=0
    shift
    "$@" || got=$?
    [ "$got" = "$want" ] || { echo "status $got, expected $want"; return 1; }
}

# expect_out TEXT COMMAND...: status 0, and TEXT is in standard output.
expect_out() {
    local want=$1 out got=0
    shift
    out=$("$@") || got=$?
    [ "$got" = 0 ] || { echo "status $got"; return 1; }
    case $out in *"$want"*) ;; *) printf 'expected in the output: %s\ngot: %s\n' "$want" "$out"; return 1 ;; esac
}

# expect_err TEXT COMMAND...: a status other than 0, and TEXT is in standard error.
expect_err() {
    local want=$1 err got=0
    shift
    err=$("$@" 2>&1 >/dev/null) || got=$?
    [ "$got" != 0 ] || { echo "succeeded"; return 1; }
    case $err in *"$want"*) ;; *) printf 'expected in the error: %s\ngot: %s\n' "$want" "$err"; return 1 ;; esac
}

# not COMMAND...: the command fails.
not() { ! "$@"; }

# json FIELD: reads JSON from standard input and prints one part of it: "stores.0.name". Strings as they are, everything else
# as JSON, nothing and status 1 if it is not there.
json() {
    python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split(".") if sys.argv[1] else []:
    try:
        value = value[int(key)] if isinstance(value, list) else value[key]
    except (KeyError, IndexError, ValueError, TypeError):
        sys.exit(1)
print(value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True))' "$1"
}

# same WANT GOT: equal texts.
same() { [ "$1" = "$2" ] || { printf 'expected: %s\ngot:      %s\n' "$1" "$2"; return 1; }; }

finish() {
    local dir=$PWD
    while [ "$dir" != / ] && [ ! -d "$dir/.stet" ]; do dir=$(dirname "$dir"); done
    [ ! -d "$dir/.stet" ] || t "stet check finds nothing, and a sample computed again is the same" stet check --rerun 40
    echo "1..$tap_count"
    [ "$tap_failed" = 0 ]
    exit
}
