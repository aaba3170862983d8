#!/usr/bin/env bash
# `get` follows links, as `piece show` does; --raw shows what is stored.
. "$STET_SOURCE/test/scenario/lib.sh"

lk() { printf '{"/":{"link@1":{"id":"%s"%s}}}' "$1" "${2:+,\"space\":\"$2\"}"; }
value() { stet get --json "$@" | json value; }
says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -Eq -- "$want"; }

stet -q init
echo '{"pattern":1,"name":"p","argument":{"default":{"x":{"deep":1}}},"nodes":[{"id":"z","inputs":{"value":{"$":"argument/x"}},"module":{"type":"ref","ref":"value"}}],"result":{"z":{"$":"z"}}}' >p.json
stet -q run p.json
t "a part of a result is its value"              same '{"deep":1}' "$(value piece:p/z)"
t "and below it"                                 same 1 "$(stet get piece:p/z/deep)"
t "and the whole"                                same '{"z":{"deep":1}}' "$(value piece:p)"
t "--raw prints the link"                        same piece:p:node:z "$(stet get piece:p/z --raw --json | json value./.link@1.id)"
t "below a link nothing is stored"               expect_err "nothing at piece:p/z/deep" stet get piece:p/z/deep --raw
t "--meta prints what is stored"                 same piece:p:node:z "$(stet get piece:p/value/z --meta --json | json value./.link@1.id)"
t "doc get does the same"                        same 1 "$(stet doc get piece:p/z/deep)"
then=$(stet get piece:p:node:z --json | json seq)
stet -q run p.json --set 'x={"deep":2}'
t "the present"                                  same 2 "$(stet get piece:p/z/deep)"
t "the past, behind the link, too"               same 1 "$(stet get piece:p/z/deep --at "$then")"
stet -q set piece:p:argument/x '{"deep":3}'
t "it runs nothing"                              same 2 "$(stet get piece:p/z/deep)"
t "--fresh does"                                 same 3 "$(stet get piece:p/z/deep --fresh)"
t "--fresh --raw runs, and prints the link"      same piece:p:node:z "$(stet get piece:p/z --fresh --raw --json | json value./.link@1.id)"
t "the past is not made fresh"                   expect_err "can't be combined" stet get piece:p/z --fresh --at 1

stet -q set d "$(lk e)"
t "a link to nothing is nothing"                 expect_err "a link there leads to nothing" stet get d
t "and can be looked at"                         same e "$(stet get d --raw --json | json value./.link@1.id)"
stet -q set e "[1,$(lk f two)]"
t "in a value it is null"                        same '[1,null]' "$(value d)"
stet -q set f "$(lk g)" --space two
stet -q set g 5 --space two
t "until it leads somewhere"                     same '[1,5]' "$(value d)"
hash=$(stet get d --json | json hash)
t "the hash is the stored value's"               stet -q set d 7 --if-hash "$hash"
stet -q set a "$(lk b)"
stet -q set b "$(lk a)"
t "a circle is an error"                         says "links lead in a circle" stet get a
t "which --raw can look at"                      stet get a --raw
finish
