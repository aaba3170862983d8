/* dangling.cc - a mistake that clang must find: the bytes of a short string lie in `v`, which ends with the function. */
#include <stet.h>

const char *name(stet_value doc);
const char *name(stet_value doc) {
    stet_value v = stet_value_get(doc, "name");
    return stet_value_as_string(&v, nullptr);
}
