/* engine.h - what a test program that may load the JavaScript engine needs: the plug-in of the build, and a leak
 * checker that looks at our memory alone. Included once per program. */
#ifndef TEST_ENGINE_H
#define TEST_ENGINE_H

#include <stdlib.h>

#include "os/file.h"

/* The leak checker crashes on the thread-local storage of the engine's threads: it leaves that out. What the engine
 * and the libraries it brings keep until the process ends is theirs. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__lsan_default_options(void);
const char *__lsan_default_options(void) {
    return "use_tls=0:print_suppressions=0";
}
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libjavascriptcoregtk\nleak:libicu\nleak:libglib\nleak:libgobject\nleak:ld-linux\n";
}
#endif

static inline void engine_find_plugins(void) {
    const char *build = getenv("STET_BUILD");
    if (build && !getenv("STET_PLUGINS")) {
        char *dir = stet_file_join(build, "lib/stet");
        setenv("STET_PLUGINS", dir, 1);
        stet_free(dir);
    }
}

#endif
