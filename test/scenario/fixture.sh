# fixture.sh - prepares the project in which the example of every operation is run (010-table.py). It runs in an empty
# directory with `stet init` done; one block per layer adds what that layer's examples name. Each example gets a fresh copy
# of the result as its current directory, and a STET_HOME of its own, so examples do not depend on each other.
set -eu

# project: this one is on the list, so that `project remove` has something to remove
"$STET" project add
