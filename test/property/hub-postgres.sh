#!/bin/bash
# The tests of hubs (hub.c), over PostgreSQL.
set -euo pipefail
STET_TEST_HUB=$("$STET_SOURCE/test/postgres" pg start)
trap '"$STET_SOURCE/test/postgres" pg stop' EXIT
export STET_TEST_HUB STET_TEST_SQL="psql -qAtX -v ON_ERROR_STOP=1 '$STET_TEST_HUB' 2>&1"
"$STET_BUILD/test/property/hub"
