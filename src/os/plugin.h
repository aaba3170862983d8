/* plugin.h - parts that are heavy to load, opened on first use: shared objects in lib/stet.
 *
 *     const my_plugin *p;
 *     status = stet_plugin_load("javascript", "stet_plugin_javascript", "libjavascriptcoregtk-4.1-0", &p, &err);
 *
 * A plug-in exports one symbol, a constant struct that begins with the version of stet it was built with: it is built
 * together with the library, and another version is refused. It is looked for in $STET_PLUGINS (if set, there alone),
 * then beside the program or library that this code is part of, as built and as installed, then below the prefix it was
 * configured with. Once open it stays open until the process ends. Any thread may call. */
#ifndef STET_OS_PLUGIN_H
#define STET_OS_PLUGIN_H

#include "base/error.h"

/* `package` names what to install where a library that the plug-in needs is missing. STET_UNSUPPORTED if the plug-in
 * or such a library is not there, or is of another version. */
STET_CHECKED stet_status stet_plugin_load(const char *name, const char *symbol, const char *package, const void **out,
                                          stet_error *err);

#endif
