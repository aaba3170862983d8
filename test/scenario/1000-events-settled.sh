#!/usr/bin/env bash
# Every handler of an event sees a settled state: the second of a stream, one that an event was sent on to, and elements that the same event has added or removed.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >on.js <<'END2'
export default pattern('on', {}, ({}) => {
    const c = cell(0, { name: 'c' }), log = cell([], { name: 'log' });
    const dbl = computed({ c }, ({ c }) => c * 2, { id: 'dbl' });
    const hit = handler((e, { c, dbl, log }) => { log.push([c.get(), dbl]); c.set(c.get() + 1); }, { id: 'hit' })({ c, dbl, log });
    const two = handler((e, { hit }) => { hit.send(1); hit.send(1); }, { id: 'two' })({ hit });
    return { dbl, log, hit, two };
});
END2
cat >two.json <<'END2'
{"pattern":1,"name":"two","cells":{"s":{},"c":{"default":0},"log":{"default":[]}},"nodes":[
 {"id":"dbl","inputs":{"c":{"$":"c"}},"module":{"type":"javascript","implementation":"({c})=>c*2"}},
 {"id":"h1","stream":{"$":"s"},"inputs":{"c":{"$":"c","asCell":true}},"module":{"type":"javascript","handler":true,"implementation":"(e,{c})=>{c.set(e)}"}},
 {"id":"h2","stream":{"$":"s"},"inputs":{"c":{"$":"c"},"dbl":{"$":"dbl"},"log":{"$":"log","asCell":true}},"module":{"type":"javascript","handler":true,"implementation":"(e,{c,dbl,log})=>{if(dbl>90)throw new Error('much');log.push([c,dbl])}"}}],
 "result":{"dbl":{"$":"dbl"},"log":{"$":"log"}}}
END2
cat >rows.js <<'END2'
export default pattern('rows', { rows: [{ id: 'a' }] }, ({ rows }) => {
    const log = cell([], { name: 'log' });
    const items = map(rows, r => ({ hit: handler((e, { r, log }) => { log.push(r.id + e); }, { id: 'hit' })({ r, log }) }), { key: 'id', id: 'items' });
    const rm = handler((e, { rows, items }) => { rows.set(rows.get().slice(1)); items.key(0).key('hit').send(e); }, { id: 'rm' })({ rows, items: asCell(items) });
    const add = handler((e, { rows, items }) => { rows.push({ id: e }); items.key(rows.get().length - 1).key('hit').send(1); }, { id: 'add' })({ rows, items: asCell(items) });
    const far = handler((e, { items }) => { items.key(9).key('hit').send(e); }, { id: 'far' })({ items: asCell(items) });
    return { items, rm, add, far, log };
});
END2
log() { stet get "piece:$1:cell:log" | tr -d ' \n'; }
for p in on.js two.json rows.js; do stet run $p >/dev/null; done

t "an event that sends on twice"                   expect_out applied stet piece send on two
t "the second one sees what follows from the first" same '[[0,0],[1,2]]' "$(log on)"
t "an event for two handlers"                      expect_out applied stet piece send two s 7 --id seven
t "the second sees what follows from the first"    same '[[7,14]]' "$(log two)"
t "a second handler that fails is told"            expect_err 'event "big" was applied, but "h2", which follows from it, failed' stet piece send two s 50 --id big
t "with exit status 1"                             expect_status 1 stet piece send two s 50 --id big
t "what the first wrote stays"                     same 50 "$(stet get piece:two:cell:c)"
t "what failed is kept"                            same h2 "$(stet get piece:two:undelivered:big | json 0.only)"
stet set piece:two:cell:c 3 >/dev/null
t "sent again, the one that failed has it"         same false "$(stet piece send two s 50 --id big --json | json applied)"
t "and no other"                                   same '3 [[7,14],[3,6]]' "$(stet get piece:two:cell:c) $(log two)"
t "nothing is left"                                expect_err "no document" stet get piece:two:undelivered:big
t "a handler sends to the element it has added"    expect_out applied stet piece send rows add '"b"'
t "which has it"                                   same '["b1"]' "$(log rows)"
t "an element that the handler has removed"        expect_err 'no child "items[a]"' stet piece send rows rm 2
t "has nothing, nor has the next one"              same '["b1"]' "$(log rows)"
t "an element that does not come"                  expect_err 'has no stream "items/9/hit"' stet piece send rows far 2
t "nothing waits"                                  expect_err "no document" stet get piece:rows:queue
t "all is settled"                                 expect_out "failed 0" stet run rows.js
t "check"                                          stet check --rerun all
finish
