/* plugin.h - parts that are heavy to load, opened on first use: shared objects in lib/stet.
 *
 *     const void *plugin;
 *     stet_status status =
 *         stet_plugin_load("javascript", "stet_plugin_javascript", "libjavascriptcoregtk-4.1-0", &plugin, &err);
 *
 * A plug-in exports one symbol, a constant struct that begins with the version of stet it was built with. It is built
 * together with the library; another version is refused.
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

/* `package` names what to install if a library that the plug-in needs is missing. STET_UNSUPPORTED: the plug-in or such
 * a library is missing or has another version. */
STET_CHECKED stet_status stet_plugin_load(const char *name, const char *symbol, const char *package, const void **out,
                                          stet_error *err);

#endif
