#!/bin/sh
# The table of powers of ten that is in the repository is the one that exact integer arithmetic gives.
echo 1..1
if python3 "$STET_SOURCE/tools/powers" | diff "$STET_SOURCE/src/base/powers.h" - >log; then
    echo "ok 1 - src/base/powers.h is what tools/powers prints"
else
    echo "not ok 1 - src/base/powers.h is what tools/powers prints"
    sed 's/^/# /' log
fi
