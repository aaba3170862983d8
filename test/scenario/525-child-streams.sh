#!/usr/bin/env bash
# Each element of a list has streams of its own: events find it by its key or by its place in the result, in processes of their own, once each; one that is gone refuses them.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >todo.js <<'END'
pattern('todo', { rows: [{ id: 'a', n: 1 }, { id: 'b', n: 2 }], factor: 10 }, ({ rows, factor }) => {
    const remove = handler((id, { rows }) => { rows.set(rows.get().filter((row) => row.id !== id)); })({ rows });
    const items = map(rows, (row) => {
        const count = cell(0, { name: 'count' });
        const scaled = computed({ row, factor }, ({ row, factor }) => row.n * factor);
        const add = handler((by, { count, scaled }) => { count.set(count.get() + by * scaled); })({ count, scaled });
        const drop = handler((event, { remove, row }) => { remove.send(row.id); })({ remove, row });
        return { scaled, count, add, drop };
    }, { key: 'id', id: 'items' });
    const all = handler((by, { items, rows }) => { rows.get().forEach((row, i) => items.key(i).key('add').send(by)); })({ items: asCell(items), rows });
    return { items, remove, all };
});
END
send() { stet piece send todo "$@" --json; }
count() { stet get "piece:todo:cell:items[$1].count"; }

t "a piece whose elements have handlers"        expect_out "ran 3, up to date 0" stet run todo.js
t "what streams it has is shown"                same '["all","remove","items[KEY].add","items[KEY].drop"]' "$(stet piece show todo --json | json streams)"
t "an event goes to the element with a key"     same 'items[a].add' "$(send 'items[a].add' 1 --id one | json stream)"
t "and to no other"                             same '10 0' "$(count a) $(count b)"
t "sent again it is not applied"                same false "$(send 'items[a].add' 1 --id one | json applied)"
t "an event for what the result shows there"    same 'items[b].add' "$(send items/1/add 1 | json stream)"
t "is applied"                                  same '10 20' "$(count a) $(count b)"
stet set piece:todo:argument/factor 100 >/dev/null
t "what its handler reads runs before, no more" same 1 "$(send 'items[b].add' 1 | json madeFresh)"
t "and is seen by it"                           same 220 "$(count b)"
t "an event to all, by a handler of the piece"  expect_out "applied" stet piece send todo all 1 --settle
t "reaches each of them"                        same '110 420' "$(count a) $(count b)"
t "an element removes itself"                   same true "$(send 'items[a].drop' | json applied)"
t "and takes no more events"                    expect_err 'no child "items[a]"' stet piece send todo 'items[a].add' 1
t "an element that has just come"               stet set piece:todo:argument/rows '[{"id":"b","n":2},{"id":"a","n":3}]'
t "takes them"                                  same true "$(send 'items[a].add' 1 | json applied)"
t "and begins anew"                             same 300 "$(count a)"
t "an event for the one before was applied"     same false "$(send 'items[a].add' 1 --id one | json applied)"
t "another key"                                 expect_err "no child" stet piece send todo 'items[zz].add' 1
t "another stream names those there are"        expect_err "items[b].add, items[b].drop" stet piece send todo 'items[b].sub' 1
t "as the piece does"                           expect_err "items[KEY].add" stet piece send todo sub 1
t "the result"                                  same '[{"add":{"$stream":true},"count":420,"drop":{"$stream":true},"scaled":200},{"add":{"$stream":true},"count":300,"drop":{"$stream":true},"scaled":300}]' "$(stet piece pull todo --json | json result.items)"
t "nothing runs any more"                       expect_out "ran 0" stet run todo.js

cat >send.c <<'END'
#include <stdio.h>
#include <stet.h>
int main(void) {
    stet_project *p;
    stet_error err = STET_ERROR_INIT;
    stet_event_result got;
    stet_event event = {.size = sizeof event, .piece = "todo", .stream = "items[b].add", .value = stet_value_int(1), .id = "c"};
    stet_event gone = {.size = sizeof gone, .piece = "todo", .stream = "items[x].add", .value = stet_value_int(1)};
    if (stet_project_open(".", &p, &err) != STET_OK || stet_piece_send(p, &event, &got, &err) != STET_OK)
        return printf("%s\n", err.message), 1;
    printf("%d ", got.applied);
    if (stet_piece_send(p, &event, &got, &err) != STET_OK)
        return printf("%s\n", err.message), 1;
    printf("%d %s\n", got.applied, stet_status_name(stet_piece_send(p, &gone, &got, &err)));
    stet_project_close(p);
    return 0;
}
END
libs="$STET_BUILD/libstet.a -l:libsqlite3.a -l:libuv_a.a -l:libzstd.a -l:libutf8proc.a -l:libyaml.a -l:libcrypto.a -lm -ldl -lpthread"
flags=
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q __asan_init && flags="-fsanitize=address,undefined"
t "a C program that sends to an element"        gcc -std=c11 $flags -I"$STET_SOURCE/include" -o send send.c $libs
t "once, and not to one that is not there"      same "1 0 not_found" "$(STET_PLUGINS=$STET_BUILD/lib/stet ./send)"
t "the same operation as a tool for agents"     same '"items[b].add"' "$(printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' '{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"stet_piece_send","arguments":{"piece":"todo","stream":"items/0/add","event":1}}}' | "$STET" mcp | python3 -c 'import json,sys; print(json.dumps([m for m in map(json.loads, sys.stdin) if m.get("id") == 2][0]["result"]["structuredContent"]["stream"]))')"
finish
