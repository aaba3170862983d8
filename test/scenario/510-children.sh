#!/usr/bin/env bash
# One child for each element of a list, through the command line: what runs when the list changes, what is left of a row that is gone.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cp "$STET_SOURCE/examples/orders/orders.js" .
result() { stet piece show orders --json | json "result.$1"; }

t "a child for each of three orders, twice, and a chain" expect_out "ran 13" stet run orders.js
t "with the right result"                  same 225 "$(result total)"
t "and all of it stands"                   expect_out "ran 0, up to date 13" stet run orders.js
t "without an engine to be had"            env STET_PLUGINS=/nonexistent "$STET" run orders.js
stet set piece:orders:argument/orders/1/quantity 5 >/dev/null
t "an edited order: three coordinators less one, one row of each, one link of the chain on" expect_out "ran 6" stet run orders.js
t "the sum follows"                        same 765 "$(result total)"
stet set piece:orders:argument/orders/0/note '"gift"' >/dev/null
t "a field that nobody reads: the coordinators alone" expect_out "ran 2" stet run orders.js
stet set piece:orders:argument/orders '[{"id":"A-2","quantity":5,"each":150},{"id":"A-3","quantity":8,"each":5},{"id":"A-4","quantity":1,"each":10}]' >/dev/null
t "one gone, one new"                      stet run orders.js
t "the sum is right"                       same 720 "$(result total)"
stet action list orders >actions.out
t "the row that is gone has no actions"    expect_status 1 grep -q 'A-1' actions.out
t "the new one has"                        grep -q 'rows\[A-4\].price' actions.out
stet doc list --json >docs.out
t "nor documents"                          expect_status 1 grep -q 'A-1' docs.out
t "why knows a child"                      expect_out "stands" stet why orders 'rows[A-4].price'
t "a child that is not there is named"     expect_status 3 stet why orders 'rows[A-1].price'
t "its cells are read by name"             stet get 'piece:orders:node:rows[A-4].price'
t "the graph shows children"               expect_out 'rows[A-4].price' stet piece graph orders
t "as a picture, too"                      expect_out 'rows[A-4].price' stet piece graph orders --format mermaid
t "nothing is left to do"                  expect_out "ran 0" stet run orders.js
stet set 'piece:orders:node:rows[none].price' 5 >/dev/null
t "a child is not deleted by hand"        expect_status 2 stet doc delete 'piece:orders:child:rows[A-4]'
STET_UNGUARDED=1 "$STET_FAULTY" doc delete 'piece:orders:child:rows[A-4]' >/dev/null
t "check finds a document of no child, and a child without one" expect_status 1 stet check
stet check >check.out
t "and names them"                         grep -q 'rows\[none\].price' check.out
t "both"                                   grep -q 'missing of child rows\[A-4\]' check.out
t "it mends them"                          stet check --repair
t "and is content"                         stet check
stet run orders.js >/dev/null
t "the child is whole again"               same 720 "$(result total)"
t "a piece goes with all its children"     stet piece delete orders
stet doc list --json >docs.out
t "and leaves none"                        expect_status 1 grep -q 'rows\[' docs.out

cat >wrong.js <<'END'
export default pattern('wrong', { rows: [1] }, ({ rows }) => map(rows, (row) => { computed({ row }, ({ row }) => row); }));
END
t "a child without a result is refused"    expect_status 2 stet pattern check wrong.js
finish
