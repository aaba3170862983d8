/* plugin.c - where the parts of an installation are, and opening those that are heavy to load. */

#include "os/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"

/* The directory of this code: of the program, of libstet.so, or of the module of the Python package. */
static char *own_directory(void) {
    Dl_info info;
    char *real = NULL, *dir = NULL;
    if (dladdr((const void *)(uintptr_t)&stet_plugin_load, &info) == 0 || !info.dli_fname)
        return NULL;
    /* A program may have been started by a relative name and changed its directory since. */
    bool shared = strstr(stet_file_basename(info.dli_fname), ".so") != NULL;
    if (stet_file_realpath(shared ? info.dli_fname : "/proc/self/exe", &real, NULL) != STET_OK)
        return NULL;
    dir = stet_file_dirname(real);
    stet_free(real);
    return dir;
}

char *stet_installed(const char *const *places, const char *file) {
    char *own = own_directory(), *found = NULL;
    for (size_t i = 0; own && !found && places[i]; i++) {
        char *dir = stet_file_join(own, places[i]);
        found = stet_file_join(dir, file);
        stet_free(dir);
        if (!stet_file_exists(found)) {
            stet_free(found);
            found = NULL;
        }
    }
    stet_free(own);
    return found;
}

/* The path of a plug-in, which the caller frees; NULL: it is not installed. */
static char *find(const char *name) {
    /* Relative to the program and to libstet.so, as built and as installed; then relative to the Python module, as
     * built and as installed. */
    static const char *const places[] = {"lib/stet", "stet", "../lib/stet", "../../lib/stet", "../../../stet", NULL};
    char *file = stet_asprintf("%s.so", name), *found = NULL;
    const char *given = getenv("STET_PLUGINS");
    if (given && given[0])
        found = stet_file_join(given, file);
    else if (!(found = stet_installed(places, file)))
        found = stet_file_join(STET_PREFIX "/lib/stet", file);
    stet_free(file);
    if (stet_file_exists(found))
        return found;
    stet_free(found);
    return NULL;
}

static stet_status load(const stet_plugin_request *r, const stet_plugin **out, stet_error *err) {
    char *path = find(r->name);
    if (!path) {
        stet_fail(err, STET_UNSUPPORTED, "the %s plug-in is not installed (%s.so in lib/stet)", r->name, r->name);
        stet_hint(err,
                  "install it beside the program (make install; needs the package %s), or set STET_PLUGINS to its "
                  "directory",
                  r->package);
        return STET_UNSUPPORTED;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        stet_fail(err, STET_UNSUPPORTED, "the %s plug-in can't be opened: %s", r->name, dlerror());
        stet_hint(err, "install the package %s", r->package);
        stet_free(path);
        return STET_UNSUPPORTED;
    }
    const stet_plugin *plugin = dlsym(handle, r->symbol);
    bool versioned = plugin && plugin->version;
    if (!versioned || strcmp(plugin->version, STET_VERSION) != 0)
        stet_fail(err, STET_UNSUPPORTED, "%s is of another version of stet: %s, expected %s", path,
                  versioned ? plugin->version : "unknown", STET_VERSION);
    else if (plugin->library_size != r->library_size)
        stet_fail(err, STET_UNSUPPORTED, "%s is of another build of stet " STET_VERSION, path);
    else {
        plugin->attach(r->library);
        *out = plugin;
        stet_free(path);
        return STET_OK;
    }
    stet_hint(err, "install the plug-ins that were built with this stet");
    stet_free(path);
    return STET_UNSUPPORTED;
}

stet_status stet_plugin_load(const stet_plugin_request *request, const stet_plugin **out, stet_error *err) {
    /* dlopen of an open library only increases a counter. Loads are serialised: dlerror is safe between threads, but
     * the initialisation code of two libraries may not be. */
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&one);
    stet_status status = load(request, out, err);
    pthread_mutex_unlock(&one);
    return status;
}
