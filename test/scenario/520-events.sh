#!/usr/bin/env bash
# Events go to the handlers of a stream, once each, on fresh inputs, in processes of their own; and a user's value in a named cell stays.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cp "$STET_SOURCE/examples/counter.json" .
send() { stet piece send "$@" --json; }
value() { stet piece show "$1" --json | json "result.$2"; }
ran() { stet run "$@" --json | json runs; }

t "a piece with handlers runs"                 expect_out "ran 1, up to date 0" stet run counter.json
t "its streams are shown in its result"        same true "$(stet piece show counter --json | json 'result.add.$stream')"
t "an event is applied"                        same true "$(send counter add 5 --id one | json applied)"
t "sent again it is not"                       same false "$(send counter add 5 --id one | json applied)"
t "at the sequence of the first time"          same "$(send counter add 5 --id one | json seq)" "$(send counter add 5 --id one | json seq)"
t "another event under the same id is refused" expect_err "with another content" stet piece send counter add 6 --id one
t "an event without an id is applied"          same true "$(send counter add | json applied)"
t "the cell has both"                          same 6 "$(stet get piece:counter:cell:count)"
t "what reads it is dirty, and has not run"    same 1 "$(stet status counter --json | json pieces.0.dirty)"
t "the next run takes it up"                   same 1 "$(ran counter.json)"
t "with the right result"                      same true "$(value counter even)"
t "an event that settles"                      expect_out "ran 1" stet piece send counter add 1 --settle
t "with the right result"                      same false "$(value counter even)"
t "from standard input"                        same true "$(echo 3 | "$STET" piece send counter add - --json | json applied)"
t "a stream that is not there names the others" expect_err "its streams are: add, reset" stet piece send counter sub 1
t "as does a piece without streams"            expect_err "no streams at all" sh -c 'cp "$STET_SOURCE/examples/totals.json" . && "$STET" run totals.json >/dev/null && "$STET" piece send totals add 1'
t "and a piece that is not there"              expect_err 'no piece "nobody"' stet piece send nobody add 1
t "an id with a space is none"                 expect_err "without spaces" stet piece send counter add 1 --id "a b"
before=$(stet get piece:counter:cell:count)
t "a handler that fails is reported"           expect_err "counter/add:" stet piece send counter add '"x"' --id bad
t "what breaks the schema of a cell, too"      expect_err "does not match the schema there" stet piece send counter add 0.5 --id bad
t "and nothing of it is left"                  same "$before" "$(stet get piece:counter:cell:count)"
t "so that the id can be used"                 same true "$(send counter add 1 --id bad | json applied)"

stet set piece:counter:cell:count 100 >/dev/null
sed 's/"default": 0/"default": 7/; s/% 2 === 0/% 2 === 1/' counter.json >next.json && mv next.json counter.json
t "another program"                            stet run counter.json
t "a user's value in a named cell survives"    same 100 "$(value counter count)"
t "a handler is shown as one"                  expect_out "an event handler" stet action show counter add
t "events go to the new handlers"              same true "$(send counter add 1 | json applied)"
t "on top of it"                               same 101 "$(stet get piece:counter:cell:count)"

# Preflight: what the handler reads is fresh, what it does not read does not run.
cat >flight.json <<'END'
{ "pattern": 1, "name": "flight", "argument": { "default": { "n": 1, "which": "a" } }, "cells": { "seen": { "default": [] } },
  "nodes": [
    { "id": "a", "inputs": [ {"$": "argument/n"}, 1 ], "module": { "type": "ref", "ref": "add" } },
    { "id": "b", "inputs": [ {"$": "argument/n"}, 2 ], "module": { "type": "ref", "ref": "add" } },
    { "id": "look", "stream": {"$": "look"}, "inputs": { "a": {"$": "a"}, "b": {"$": "b"}, "which": {"$": "argument/which"}, "seen": {"$": "seen", "asCell": true} },
      "module": { "type": "javascript", "handler": true, "implementation": "(event, i) => { i.seen.push(i.which === 'a' ? i.a : i.b) }" } } ],
  "result": { "a": {"$": "a"}, "b": {"$": "b"} } }
END
t "a piece"                                    stet run flight.json
stet set piece:flight:argument/n 10 >/dev/null
t "one action runs before the event"           same 1 "$(send flight look | json madeFresh)"
t "the handler saw the fresh value"            same '[11]' "$(stet get piece:flight:cell:seen --json | json value)"
t "the untaken branch did not run"             same b "$(stet action list flight --state dirty --json | json actions.0.action)"
stet set piece:flight:argument/which '"b"' >/dev/null
t "the other one runs when it is taken"        same 1 "$(send flight look | json madeFresh)"
t "and is seen"                                same '[11,12]' "$(stet get piece:flight:cell:seen --json | json value)"
t "with all fresh nothing runs"                same 0 "$(send flight look | json madeFresh)"

# Many senders, each event twice.
for i in 1 2 3 4; do
    (for k in 1 2 3 4 5; do stet piece send counter add 1 --id "many-$i-$k"; stet piece send counter add 1 --id "many-$((i % 4 + 1))-$k"; done >/dev/null 2>"err$i") &
done
wait
t "nobody was refused"                         same "" "$(cat err1 err2 err3 err4)"
t "20 events, sent 40 times by four: 20 applied" same 121 "$(stet get piece:counter:cell:count)"

# From C.
cat >send.c <<'END'
#include <stdio.h>
#include <stet.h>

int main(void) {
    stet_error err = STET_ERROR_INIT;
    stet_project *p;
    stet_event_result r = {0};
    stet_event e = {.size = sizeof e, .piece = "flight", .stream = "look", .value = stet_value_null(), .id = "from-c"};
    if (stet_project_open(".", &p, &err) != STET_OK)
        return 1;
    for (int i = 0; i < 2; i++) {
        if (stet_piece_send(p, &e, &r, &err) != STET_OK)
            return 2;
        printf("%s %s %d\n", r.id, r.applied ? "applied" : "known", r.seq > 0);
    }
    e.stream = "nowhere";
    if (stet_piece_send(p, &e, &r, &err) == STET_NOT_FOUND)
        printf("%s; %s\n", err.message, err.hint);
    stet_error_clear(&err);
    stet_project_close(p);
    return 0;
}
END
flags="-Wall -Wextra -Werror"
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q __asan_init && flags="$flags -fsanitize=address,undefined"
t "a program in C compiles"                    gcc -std=c11 $flags -I"$STET_SOURCE/include" -o send send.c "$STET_BUILD/libstet.a" -l:libsqlite3.a -l:libuv_a.a -l:libzstd.a -l:libutf8proc.a -l:libyaml.a -l:libcrypto.a -lm -ldl -lpthread
t "and sends the same event twice"             same 'from-c applied 1
from-c known 1
piece "flight" has no stream "nowhere"; its streams are: look' "$(STET_PLUGINS="$STET_BUILD/lib/stet" ASAN_OPTIONS=detect_leaks=0 ./send)"

# From a pattern in JavaScript.
cat >notes.js <<'END'
export default pattern('notes', {}, () => {
    const list = cell([], { name: 'list' });
    const size = computed({ list }, ({ list }) => list.length);
    return { size, add: handler((event, { list }) => { list.push(event) })({ list }) };
});
END
t "a pattern in JavaScript has streams"        stet run notes.js
t "an event for it"                            stet piece send notes add '{"text":"hello"}' --settle
t "has arrived"                                same 1 "$(value notes size)"

# A watch takes up events of others.
python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$STET" run counter.json --watch >watch.log 2>&1 &
watcher=$!
sleep 0.7
stet piece send counter add 1 >/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do [ "$(value counter even)" = false ] && break; sleep 0.3; done
t "a watch settles what an event changed"      same false "$(value counter even)"
kill -INT $watcher
wait $watcher
t "Ctrl-C ends it"                             same 130 $?

t "events are documents of the piece"          expect_out "piece:counter:event:one" stet doc list --prefix piece:counter:event:
stet set piece:counter:event:old '{"stream":"add","hash":"x","at":1}' >/dev/null
t "gc removes those of more than 30 days"      stet gc --only memory
t "the old one is gone"                        expect_err "" stet get piece:counter:event:old
t "the others are not"                         stet get piece:counter:event:one
t "a deleted piece takes them along"           stet piece delete counter
t "all of them"                                same '[]' "$(stet doc list --prefix piece:counter --json | json documents)"
finish
