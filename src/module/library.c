/* library.c - the table of functions that plug-ins are given. */

#include "module/library.h"

const stet_library stet_library_functions = {
#define STET_LIBRARY_ENTRY(name) .name = (name),
    STET_LIBRARY_FUNCTIONS(STET_LIBRARY_ENTRY)
#undef STET_LIBRARY_ENTRY
};
