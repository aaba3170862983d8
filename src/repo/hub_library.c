/* hub_library.c - the table of functions that plug-ins for hubs are given. */

#include "repo/hub_library.h"

const stet_hub_library stet_hub_library_functions = {
#define STET_HUB_LIBRARY_ENTRY(name) .name = (name),
    STET_HUB_LIBRARY_FUNCTIONS(STET_HUB_LIBRARY_ENTRY)
#undef STET_HUB_LIBRARY_ENTRY
};
