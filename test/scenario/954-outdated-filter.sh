#!/usr/bin/env bash
# A filter that nothing wants any more gets another pattern for its children: what it made before is not a problem for `stet check`.
. "$STET_SOURCE/test/scenario/lib.sh"
stet init >/dev/null
pattern() { # nodes of the children, result
    cat >p.json <<X
{"pattern":1,"name":"p","argument":{"default":{"rows":[[1],[]]}},
 "nodes":[{"id":"kept","inputs":{"list":{"\$":"argument/rows"}},"module":{"type":"ref","ref":"filter","pattern":{"pattern":1,"name":"c","nodes":[$1],"result":{"\$":"c"}}}}],
 "result":$2}
X
}
pattern '{"id":"c","module":{"type":"ref","ref":"filter","pattern":{"pattern":1,"name":"d","nodes":[{"id":"d","module":{"type":"ref","ref":"or"},"inputs":[{"$":"argument/element"}]}],"result":{"$":"d"}}},"inputs":{"list":{"$":"argument/element"}}}' '{"kept":{"$":"kept"}}'
t "a filter in a filter runs"          expect_out ran stet run p.json
pattern '{"id":"c","module":{"type":"ref","ref":"or"},"inputs":[{"$":"argument/index"}]}' '{}'
t "it changes, and nobody wants it"    stet run p.json
t "what is left of it is no problem"   stet check
pattern '{"id":"c","module":{"type":"ref","ref":"or"},"inputs":[{"$":"argument/index"}]}' '{"kept":{"$":"kept"}}'
t "wanted again, it takes that away"   expect_out '[]' stet run p.json --json
t "and all is well"                    stet check
finish
