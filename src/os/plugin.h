/* plugin.h - parts that are heavy to load, opened on first use: shared objects in lib/stet.
 *
 *     static const stet_plugin_request wanted = {.name = "javascript",
 *                                                .symbol = "stet_plugin_javascript",
 *                                                .package = "libjavascriptcoregtk-4.1-0",
 *                                                .library = &stet_library_functions,
 *                                                .library_size = sizeof stet_library_functions};
 *     const stet_plugin *plugin;
 *     stet_status status = stet_plugin_load(&wanted, &plugin, &err);
 *
 * A plug-in exports one symbol, a constant struct that begins with a stet_plugin. It contains no part of the library,
 * but is given a table of the library's functions. It is built together with the library; another version is refused.
 *
 * Plug-ins are searched for
 *   1. in $STET_PLUGINS (if it is set, only there);
 *   2. beside the program or library that contains this code, as built and as installed;
 *   3. below the configured prefix.
 *
 * An opened plug-in stays open until the process ends. Any thread may call.
 */
#ifndef STET_OS_PLUGIN_H
#define STET_OS_PLUGIN_H

#include "base/error.h"

/* A file of the installation that this code is part of: the first of `places` (directories as seen from that of the
 * program, of libstet.so or of the Python module; NULL-terminated) that has it, or NULL. Caller frees. */
char *stet_installed(const char *const *places, const char *file);

/* The beginning of the struct that a plug-in exports. */
typedef struct stet_plugin {
    const char *version; /* STET_VERSION */
    size_t library_size; /* of the table of functions, as the plug-in was compiled */
    /* Gives the plug-in the functions of the library. Called by every load, one at a time, before the plug-in is used;
     * the first table stays. */
    void (*attach)(const void *library);
} stet_plugin;

typedef struct stet_plugin_request {
    const char *name;    /* of the file, without .so */
    const char *symbol;  /* of the struct */
    const char *package; /* what to install if a library that the plug-in needs is missing */
    const void *library; /* the table of functions (module/library.h) */
    size_t library_size;
} stet_plugin_request;

/* STET_UNSUPPORTED: the plug-in, or a library that it needs, is missing or has another version. */
STET_CHECKED stet_status stet_plugin_load(const stet_plugin_request *request, const stet_plugin **out, stet_error *err);

#endif
