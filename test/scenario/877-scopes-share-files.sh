#!/usr/bin/env bash
# Files, and documents that a pattern names by a link, are shared by all scopes: two scopes that write one are told so as two
# pieces of one scope are.
. "$STET_SOURCE/test/scenario/lib.sh"
val() { stet get "$@" --json | json value; }

# What two pieces do, and two scopes: the same steps, told in the same words.
pipeline() { # pipeline DIRECTORY WORDS...: steps with another piece, named by the words
    local dir=$1
    shift
    mkdir "$dir" && cd "$dir" || exit 1
    stet init >/dev/null
    cat >stet.toml <<'TOML'
name = "b"
[argument]
word = "one"
[nodes.w]
command = "cat in.txt > out.txt; echo {word} >> out.txt"
inputs = { word = "$argument/word" }
files = { raw = "in.txt" }
produces = { out = "out.txt" }
[nodes.n]
command = "wc -c < in.txt"
files = { raw = "in.txt" }
stdout = "text"
TOML
    echo hi >in.txt
    stet run
    stet run "$@" --set 'word="two"'
    cat out.txt
    stet status
    stet run
    cat out.txt
    echo new >in.txt
    stet run "$@"
    cat out.txt
    stet why b
    stet status
    cd ..
}
same_words() { sed -E 's/in [0-9.]+ s//; s/sequence [0-9]+/sequence N/g; s/at 20[0-9TZ:.-]+//g; s/\bc\b/b@s1/g; s/ +/ /g'; }
pipeline pieces --piece c 2>&1 | same_words >pieces.txt
pipeline scopes --scope s1 2>&1 | same_words >scopes.txt
t "two scopes are refused as two pieces are"   diff pieces.txt scopes.txt
t "with both of their names"                   grep -q "failed b/w: its output out.txt is written by b@s1/w as well" scopes.txt

document() { # document DIRECTORY WORDS...: the same with a document that a node writes by a link
    local dir=$1
    shift
    mkdir "$dir" && cd "$dir" || exit 1
    stet init >/dev/null
    cat >d.json <<'JSON'
{"pattern": 1, "name": "b", "argument": {"default": {"n": 1}},
 "nodes": [{"id": "w", "output": {"/": {"link@1": {"id": "shared"}}}, "inputs": [{"$": "argument/n"}], "module": {"type": "ref", "ref": "value"}}],
 "result": {"w": {"$": "w"}}}
JSON
    stet run d.json
    stet run d.json "$@" --set n=2
    stet status
    stet why b
    stet get shared
    cd ..
}
document pieces-of-one --piece c 2>&1 | same_words >pieces.txt
document scopes-of-one --scope s1 2>&1 | same_words >scopes.txt
t "and so are two that write one document"     diff pieces.txt scopes.txt
t "which do not come to rest"                  grep -q "failed b@s1/w: it ran 100 times and did not come to rest" scopes.txt
finish
