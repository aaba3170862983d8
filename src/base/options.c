/* options.c - reads option structs of older and newer callers. */

#include "base/options.h"

#include <string.h>

#include "base/error.h"

/* No struct of the interface is near this size; a caller that did not set `size` usually passes garbage. */
enum { SIZE_MAX_SANE = 4096 };

stet_status stet_options_read(void *known, size_t size, const void *given, const char *name, stet_error *err) {
    if (!given)
        return stet_fail(err, STET_INVALID, "a %s must be given, and is NULL", name);
    size_t theirs;
    memcpy(&theirs, given, sizeof theirs);
    if (theirs < sizeof theirs || theirs > SIZE_MAX_SANE) {
        stet_fail(err, STET_INVALID, "the size in a %s is %zu: it was not set", name, theirs);
        stet_hint(err, "begin with the initializer of the type, whose name ends in _INIT");
        return STET_INVALID;
    }
    for (size_t i = size; i < theirs; i++)
        if (((const unsigned char *)given)[i]) {
            stet_fail(err, STET_UNSUPPORTED, "a %s sets an option that this library (%s) does not know", name,
                      stet_version());
            stet_hint(err, "the program was compiled with a newer header: install the library that belongs to it");
            return STET_UNSUPPORTED;
        }
    memset(known, 0, size);
    memcpy(known, given, theirs < size ? theirs : size);
    return STET_OK;
}
