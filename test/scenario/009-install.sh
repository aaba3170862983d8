#!/usr/bin/env bash
# make install: the program runs from where it was put, and programs in C and C++ build against the library with pkg-config.
. "$STET_SOURCE/test/scenario/lib.sh"
root=$PWD/root
t "make install"                        env -u MAKEFLAGS -u MAKELEVEL make -s -C "$STET_SOURCE" BUILD="$STET_BUILD" PREFIX=/usr/local DESTDIR="$root" install
t "the program runs"                    same "$(stet --version)" "$("$root/usr/local/bin/stet" --version)"
for file in include/stet.h lib/libstet.a lib/libstet.so lib/pkgconfig/stet.pc share/man/man1/stet.1 \
    share/bash-completion/completions/stet share/zsh/site-functions/_stet share/fish/vendor_completions.d/stet.fish; do
    t "$file is there"                  test -s "$root/usr/local/$file"
done
version=$(stet version --json | json version)
t "the library's file has the version"  test -s "$root/usr/local/lib/libstet.so.$version"
cat >program.c <<'C'
#include <stdio.h>
#include <string.h>
#include <stet.h>
int main(void) {
    stet_error err = STET_ERROR_INIT;
    stet_value doc;
    const char *text = "{\"name\": \"stet\", \"list\": [1, 2.5]}";
    if (stet_json_parse(text, strlen(text), &doc, &err) != STET_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    stet_value name = stet_value_get(doc, "name");
    printf("%s %s\n", stet_value_as_string(&name, NULL), stet_version());
    stet_value_release(doc);
    return stet_version_number() != STET_VERSION_NUMBER;
}
C
cp program.c program.cc
export PKG_CONFIG_PATH=$root/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=$root/usr/local/lib
build() { "$@" -Wall -Wextra -Werror $(pkg-config --cflags stet) -o program $source $(pkg-config --libs stet); }
t "pkg-config knows the version"        same "$version" "$(pkg-config --modversion stet)"
want="stet $version"
source=program.c
t "a C program builds"                  build gcc -std=c11
t "and runs"                            same "$want" "$(./program)"
source=program.cc
t "a C++ program builds"                build g++ -std=c++11
t "and runs"                            same "$want" "$(./program)"
source=program.c
build_static() { gcc -static -Wall -Werror $(pkg-config --cflags stet) -o program "$source" $(pkg-config --static --libs stet) 2>link.log; }
t "a C program links statically"        build_static
t "and runs without libstet.so"         same "$want" "$(env -u LD_LIBRARY_PATH ./program)"
packages=$(echo "$root"/usr/local/lib/python3.*/dist-packages)
t "the Python package loads from there" same "$version" "$(cd / && PYTHONPATH=$packages /usr/bin/python3 -c 'import stet; print(stet.__version__)')"
mkdir "$PWD/py"; echo '{"pattern":1,"name":"j","nodes":[{"id":"n","inputs":{},"module":{"type":"javascript","implementation":"() => 7"}}],"result":{"$":"n"}}' > "$PWD/py/j.json"
printf 'name = "c"\n[nodes.a]\ncommand = "echo 8 > {out}"\nproduces = "o"\n' > "$PWD/py/stet.toml"
t "and finds plug-ins and supervisor"    same "7 8" "$(cd "$PWD/py" && env -u STET_PLUGINS -u STET_SUPERVISE PYTHONPATH=$packages PATH=/usr/bin:/bin /usr/bin/python3 -c '
import stet
stet.Project.init(".")
with stet.Project(".") as p:
    p.run("j.json"); p.run("stet.toml")
    print(p.space().get("piece:j:node:n"), open("o").read().strip())')"
t "and marimo would find its store"     same "stet.marimo:StetStore" "$(cd / && PYTHONPATH=$packages /usr/bin/python3 -c '
import importlib.metadata
print(*[e.value for e in importlib.metadata.entry_points(group="marimo.cache.store") if e.name == "stet"])')"
t "below /usr it lies with Debian's"    expect_out /usr/lib/python3/dist-packages/stet env -u MAKEFLAGS -u MAKELEVEL make -n -C "$STET_SOURCE" BUILD="$STET_BUILD" PREFIX=/usr install
t "the library offers stet_ names alone" same "" "$(nm -D --defined-only "$root/usr/local/lib/libstet.so" | awk '$2 != "A" {print $3}' | grep -v '^stet_')"
make_in() { env -u MAKEFLAGS -u MAKELEVEL make -s -C "$STET_SOURCE" BUILD="$STET_BUILD" "$@"; }
t "make install into a home directory"  make_in PREFIX="$HOME/.local" install
t "whose Python package is found"       same "$version" "$(cd / && PYTHONPATH= /usr/bin/python3 -c 'import stet; print(stet.__version__)')"
mkdir there && cd there
"$HOME/.local/bin/stet" init >/dev/null
echo '{"pattern":1,"name":"p","nodes":[{"id":"n","inputs":{},"module":{"type":"javascript","implementation":"() => 1 + 2"}}],"result":{"n":{"$":"n"}}}' >p.json
t "it runs JavaScript"                  "$HOME/.local/bin/stet" run p.json
t "with the right result"               same 3 "$("$HOME/.local/bin/stet" get piece:p/n)"
t "check"                               "$HOME/.local/bin/stet" check
cd ..
t "make uninstall"                      make_in PREFIX="$HOME/.local" uninstall
t "leaves nothing in the home directory" same "" "$(find "$HOME/.local" -type f -o -type l)"
t "make uninstall with DESTDIR"         make_in PREFIX=/usr/local DESTDIR="$root" uninstall
t "leaves nothing there, either"        same "" "$(find "$root" -type f -o -type l)"
compile() { env -u MAKEFLAGS -u MAKELEVEL make -n V=1 -C "$STET_SOURCE" BUILD="$PWD/other" CFLAGS=-O0 "$PWD/other/obj/src/main.o"; }
t "CFLAGS of the user come last"        expect_out '-O0 -MMD' compile
t "and keep what is needed"             expect_out '-std=c11 -O2' compile
finish
