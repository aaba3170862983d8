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
    stet_value name = stet_get(doc, "name");
    printf("%s %s\n", stet_as_string(&name, NULL), stet_version());
    stet_release(doc);
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
packages=$(echo "$root"/usr/local/lib/python3.*/dist-packages)
t "the Python package loads from there" same "$version" "$(cd / && PYTHONPATH=$packages /usr/bin/python3 -c 'import stet; print(stet.__version__)')"
t "and marimo would find its store"     same "stet.marimo:StetStore" "$(cd / && PYTHONPATH=$packages /usr/bin/python3 -c '
import importlib.metadata
print(*[e.value for e in importlib.metadata.entry_points(group="marimo.cache.store") if e.name == "stet"])')"
t "below /usr it lies with Debian's"    expect_out /usr/lib/python3/dist-packages/stet env -u MAKEFLAGS -u MAKELEVEL make -n -C "$STET_SOURCE" BUILD="$STET_BUILD" PREFIX=/usr install
t "the library offers stet_ names alone" same "" "$(nm -D --defined-only "$root/usr/local/lib/libstet.so" | awk '{print $3}' | grep -v '^stet_')"
finish
