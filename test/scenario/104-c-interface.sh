#!/usr/bin/env bash
# The example of the C interface compiles as C and as C++, with the public header alone, runs, and leaves a whole project.
. "$STET_SOURCE/test/scenario/lib.sh"
libs="$STET_BUILD/libstet.a -l:libsqlite3.a -l:libuv_a.a -l:libzstd.a -l:libutf8proc.a -l:libyaml.a -l:libcrypto.a -lm -ldl -lpthread"
mkdir include && cp "$STET_SOURCE/include/stet.h" include/
flags="-Wall -Wextra -Werror -Iinclude"
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q __asan_init && flags="$flags -fsanitize=address,undefined"
t "it compiles as C11"        gcc -std=c11 $flags -o c "$STET_SOURCE/examples/memory.c" $libs
cp "$STET_SOURCE/examples/memory.c" memory.cc
t "and as C++17"              g++ -std=c++17 -pedantic $flags -o cc memory.cc $libs
want='now: {"last":"ada","tags":["new"],"visits":3}
then: {"last":"ada","visits":1}
on the branch: 100
beside it: 3
conflict with: {"kind":"value","path":"/value/visits"}
events: 4'
t "it does what it says"      same "$want" "$(./c here)"
t "in C++ the same"           same "$want" "$(./cc there)"
t "the program sees its work" same 4 "$(stet -C here get stats/visits)"
ln -s "$STET_BUILD/libstet.so" libstet.so.0 # as make install names it
t "and the shared library"    bash -c 'gcc -std=c11 -Iinclude -o shared "$STET_SOURCE/examples/memory.c" "$STET_BUILD/libstet.so" -Wl,-rpath,"$PWD" && ./shared third >/dev/null'

t "the example of actions compiles as C11" gcc -std=c11 $flags -o actions "$STET_SOURCE/examples/actions.c" $libs
cp "$STET_SOURCE/examples/actions.c" actions.cc
t "and as C++17"              g++ -std=c++17 -pedantic $flags -o actionscc actions.cc $libs
want='a was unknown, ran
b was unknown, ran
why: {"cell":"in/a","kind":"value","reason":"changed","seq":5}
state: {"accepted":0,"actions":2,"dirty":1,"failed":0,"stale":0,"stands":1,"unknown":0}
readers of in/a: [{"action":"a","piece":"report","scope":"","space":"main"}]
changes of in: 3
pages: 2
a was dirty, ran
b stands
a stands
b stands
a was dirty, ran
b was dirty, ran'
t "actions run when they must" same "$want" "$(./actions work)"
t "and stand after a restart"  same "$(printf 'a stands\nb stands')" "$(./actions work)"
t "in C++ the same"            same "$want" "$(./actionscc works)"
t "the program sees the result" same 100 "$(stet -C work get out/a)"
t "and what made it"           same 2 "$(stet -C work space stats --json | json actions)"
t "check agrees"               stet -C work check
cd here && finish
