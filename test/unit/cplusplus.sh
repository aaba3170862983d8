#!/bin/sh
# include/stet.h compiles as C++ with every warning on, and the library works from there.
set -u
cat > program.cc <<'END'
#include <stet.h>

#include <cstdio>
#include <cstring>
#include <string>

int main() {
    stet_error err = STET_ERROR_INIT;
    stet_value doc;
    const std::string text = "{\"name\": \"stet\", \"list\": [1, 2.5]}";
    if (stet_json_parse(text.data(), text.size(), &doc, &err) != STET_OK)
        return 1;
    stet_value name = stet_value_get(doc, "name");
    if (std::strcmp(stet_value_as_string(&name, nullptr), "stet") != 0)
        return 2;
    stet_value_put(&doc, "more", stet_value_stringf("%d", 3));
    char *printed = stet_json_print(doc, STET_JSON_CANONICAL, nullptr);
    const bool same = std::string(printed) == "{\"list\":[1,2.5],\"more\":\"3\",\"name\":\"stet\"}";
    stet_free(printed);
    stet_value_release(doc);
    if (stet_json_parse("[", 1, &doc, &err) != STET_INVALID || err.status != STET_INVALID)
        return 3;
    stet_error_clear(&err);
    return same && stet_version_number() == STET_VERSION_NUMBER ? 0 : 4;
}
END
echo 1..4
number=0
report() {
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; sed 's/^/# /' log; fi
}
for standard in c++11 c++20; do
    g++ -std=$standard -Wall -Wextra -Wpedantic -Wshadow -Wold-style-cast -Werror -I"$STET_SOURCE/include" -c -o program.o program.cc >log 2>&1
    report $? "stet.h compiles as $standard"
done
# A library built with a sanitizer needs the sanitizer's own, too.
sanitizers=
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q '__asan_' && sanitizers=-fsanitize=address,undefined
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q '__tsan_' && sanitizers=-fsanitize=thread
coverage=
nm "$STET_BUILD/libstet.a" 2>/dev/null | grep -q '__gcov_' && coverage=--coverage
g++ $sanitizers $coverage -o program program.o "$STET_BUILD/libstet.a" -lsqlite3 -luv -lzstd -lutf8proc -lyaml -lcrypto -lm -ldl -lpthread >log 2>&1
report $? "it links"
./program >log 2>&1
report $? "it runs"
[ "$number" -eq 4 ]
