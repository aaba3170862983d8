/* persist_place.h - a persistence directory for tests: short ways to put, get and clean up in it. */
#ifndef STET_TEST_PERSIST_PLACE_H
#define STET_TEST_PERSIST_PLACE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/file.h"
#include "persist/persist.h"

#define M1 "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789"
#define T0 63875925237555u

static inline stet_persist_config place_config(void) {
    stet_persist_config c = stet_persist_config_default();
    c.vanished_wait_ms = 0;
    c.entry_merge_timeout_seconds = -1; /* the entries of tests bear old times */
    return c;
}

/* DIR/d, and DIR/l as this machine's own. */
static inline stet_status place_open(const char *dir, const char *machine, const stet_persist_config *config,
                                     stet_persist **out, stet_error *e) {
    char d[256], l[256];
    snprintf(d, sizeof d, "%s/d", dir);
    snprintf(l, sizeof l, "%s/l", dir);
    stet_persist_place o = {.dir = d, .local_dir = l, .machine_id = machine, .config = config};
    return stet_persist_open_place(&o, out, e);
}

static inline stet_status place_put(stet_persist *p, const char *block, const char *module, uint64_t created,
                                    const void *bytes, size_t len, stet_error *e) {
    stet_persist_key k = {.block_id = block, .module_hash = module, .created_at = created};
    stet_persist_put *w = stet_persist_put_begin(p, &k);
    stet_persist_put_content(w, "variables", "json");
    stet_persist_put_bytes(w, bytes, len);
    return stet_persist_put_end(w, NULL, e);
}

/* Is exactly this entry there, with exactly these bytes? */
static inline bool place_has(stet_persist *p, const char *block, const char *module, uint64_t created,
                             const void *bytes, size_t len) {
    stet_persist_key k = {.block_id = block, .module_hash = module, .created_at = created};
    stet_persist_entry *entry;
    if (stet_persist_get(p, &k, STET_PERSIST_EXACT | STET_PERSIST_LOAD | STET_PERSIST_NO_COUNT, NULL, &entry, NULL) !=
        STET_OK)
        return false;
    bool same = entry->total_size == len && (!len || !memcmp(entry->contents[0].bytes, bytes, len));
    stet_persist_entry_free(entry);
    return same;
}

#endif
