/* version.c - the version of the library. */

#include "stet.h"

const char *stet_version(void) {
    return STET_VERSION;
}

int stet_version_number(void) {
    return STET_VERSION_NUMBER;
}
