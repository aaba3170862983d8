#!/usr/bin/env bash
# Functions in JavaScript run as actions: they run again when what they looked at has changed, and an engine is loaded only for that.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
cat >sums.json <<'END'
{ "pattern": 1, "name": "sums",
  "argument": { "default": { "rows": [{"name": "a", "price": 1}, {"name": "b", "price": 2}], "factor": 2 } },
  "nodes": [
    { "id": "prices", "inputs": { "rows": {"$": "argument/rows"}, "factor": {"$": "argument/factor"} },
      "module": { "type": "javascript", "implementation": "({rows, factor}) => rows.map(r => r.price * factor)" } },
    { "id": "first", "inputs": { "rows": {"$": "argument/rows"} },
      "module": { "type": "javascript", "implementation": "({rows}) => rows[0].name" } },
    { "id": "total", "inputs": [ {"$": "prices"} ],
      "module": { "type": "javascript", "implementation": { "file": "steps.js", "export": "total" } } } ],
  "result": { "total": {"$": "total"}, "first": {"$": "first"} } }
END
cat >steps.js <<'END'
const add = (a, b) => a + b;
export function total(values) {
    return values.reduce(add, 0);
}
END
result() { stet piece show "$1" --json | json "result.$2"; }

t "it runs"                                expect_out "ran 3" stet run sums.json
t "with the right result"                  same 6 "$(result sums total)"
t "and stands"                             expect_out "ran 0" stet run sums.json
t "without an engine to be had"            env STET_PLUGINS=/nonexistent "$STET" run sums.json
strace -f -e trace=openat -o trace.out "$STET" run sums.json >/dev/null 2>&1
t "nor is one looked for"                  sh -c 'test -s trace.out && ! grep -q "javascript" trace.out'
t "a name changes: one function saw it"    expect_out "ran 1" stet run sums.json --set 'rows=[{"name":"z","price":1},{"name":"b","price":2}]'
t "a price changes: the other one, and what follows" expect_out "ran 2" stet run sums.json --set 'rows=[{"name":"z","price":1},{"name":"b","price":5}]'
t "with the right result again"            same 12 "$(result sums total)"
env STET_PLUGINS=/nonexistent "$STET" run sums.json --set factor=3 >missing.out 2>&1
t "an engine that is missing is named"     grep -q "the javascript plug-in is not installed" missing.out

cat >errors.json <<'END'
{ "pattern": 1, "name": "errors", "argument": { "default": { "n": 1 } },
  "nodes": [
    { "id": "endless", "module": { "type": "javascript", "implementation": "() => { for (;;); }", "limits": {"timeMs": 100} } },
    { "id": "wrong", "inputs": { "n": {"$": "argument/n"} }, "module": { "type": "javascript", "implementation": "({n}) => {\n  return n.x.y }" } },
    { "id": "fine", "inputs": { "n": {"$": "argument/n"} }, "module": { "type": "javascript", "implementation": "({n}) => n + 1" } } ],
  "result": { "endless": {"$": "endless"}, "wrong": {"$": "wrong"}, "fine": {"$": "fine"} } }
END
t "one that does not end is stopped, one that throws fails, the others go on" expect_status 1 stet run errors.json
t "the sound one has its result"           same 2 "$(result errors fine)"
stet run errors.json --retry-failed >errors.out 2>&1
t "the error has its line"                 grep -q "line 2: TypeError" errors.out
t "and the limit its number"               grep -q "longer than 100 ms" errors.out

cat >hostile.json <<'END'
{ "pattern": 1, "name": "hostile", "argument": { "default": { "text": "", "n": 1 } },
  "nodes": [
    { "id": "hard", "inputs": { "text": {"$": "argument/text"} },
      "module": { "type": "javascript", "implementation": "({text}) => /a*a*a*a*a*a*b/.test(text)" } },
    { "id": "too-hard", "inputs": { "text": {"$": "argument/text"} },
      "module": { "type": "javascript", "implementation": "({text}) => /a*a*a*a*a*a*(b)\\1/.test(text)", "limits": {"timeMs": 200} } },
    { "id": "talks", "inputs": { "n": {"$": "argument/n"} },
      "module": { "type": "javascript", "implementation": "({n}) => { console.log('n is', n); console.warn({n}); return n }" } },
    { "id": "deep", "inputs": { "n": {"$": "argument/n"} },
      "module": { "type": "javascript", "implementation": { "file": "deep.js", "export": "deep" } } } ],
  "result": { "hard": {"$": "hard"}, "tooHard": {"$": "too-hard"}, "talks": {"$": "talks"}, "deep": {"$": "deep"} } }
END
cat >deep.js <<'END'
// The error is in a function that the exported one calls.
function inner(value) {
    return value.a.b;
}
export const deep = ({n}) => inner(n);
END
stet run hostile.json --set "text=\"$(head -c 30000 /dev/zero | tr '\0' a)\"" >hostile.out 2>&1
t "a hard regular expression is answered"  same false "$(result hostile hard)"
t "one that is too hard is stopped, and named" grep -q 'too-hard: stopped: it ran longer than 200 ms, in the regular expression /a\*a\*' hostile.out
t "the others go on"                       same 1 "$(result hostile talks)"
t "an error in a file has its file and line" grep -q "deep: deep.js:3: TypeError" hostile.out
run=$(ls -t .stet/runs | head -1)
stet runs logs "$run" --task talks >talks.log 2>&1
t "what a function says is in the log of the run" sh -c 'grep -q "^n is 1" talks.log && grep -q "^warning: {\"n\":1}" talks.log'

cat >totals.js <<'END'
// The same in JavaScript.
const scale = lift(({rows, factor}) => rows.map(r => r * factor), { id: 'scaled' });
export default pattern('totals', { rows: [1, 2, 3], factor: 2 }, ({ rows, factor }) => {
    const total = computed({ values: scale({ rows, factor }) }, ({ values }) => values.reduce((a, b) => a + b, 0));
    return { total, size: ifElse(ref('greater')({ a: total, b: 10 }), 'large', 'small'), next: lift((a, b) => a + b)(total, 1) };
});
END
t "a pattern in JavaScript is right"       expect_out "no problems" stet pattern check totals.js
t "it becomes JSON"                        same scaled "$(stet pattern convert totals.js --json | json pattern.nodes.0.id)"
t "which is right, too"                    sh -c '"$STET" pattern convert totals.js >totals2.json && "$STET" pattern check totals2.json'
t "it runs"                                expect_out "ran 5" stet run totals.js
t "with the right result"                  same 12 "$(result totals total)"
t "it starts again without an engine"      env STET_PLUGINS=/nonexistent "$STET" run totals.js
t "and runs what changed"                  expect_out "failed 0" stet run totals.js --set factor=1
t "with the right result again"            same small "$(result totals size)"

bad() { # bad NAME MESSAGE TEXT: a pattern that is refused
    printf '%s\n' "$3" >bad.js
    t "$1" expect_err "$2" stet run bad.js
}
bad "a captured variable is named" "uses factor, which stands outside of it" "pattern('p', {rows: [], factor: 1}, ({rows, factor}) => computed({rows}, ({rows}) => rows.map(r => r * factor)))"
bad "a value that is not known yet" "not known while the graph is built" "pattern('p', {n: 1}, ({n}) => ({m: n + 1}))"
bad "a list that is not known yet" "it has no .map" "pattern('p', {l: []}, ({l}) => l.map(x => x))"
bad "a function that was not called" "is a function" "pattern('p', {n: 1}, ({n}) => ({m: lift(x => x)}))"
bad "no pattern at all" "it makes no pattern" "const x = 1"
bad "two patterns" "2 patterns" "pattern('a', () => 1); pattern('b', () => 2)"
bad "text that is no JavaScript" "bad.js:2: SyntaxError" "
pattern('a', () => ))"
bad "a clock" "Can't find variable: Date" "pattern('a', () => ({now: Date.now()}))"
finish
