/* drive_log.c - what actions print: kept in the logs of the run, and shown.
 *
 * A stream of a command is told twice: in parts while it is printed (drive_on_say), and whole at its end (drive_on_log).
 *   1. The log of the run gets the parts, so that somebody can follow it. What has no parts it gets at its end.
 *   2. Whoever watches gets each stream once: in parts if the spec says `live`, otherwise whole at its end.
 */

#include <string.h>

#include "drive/drive_internal.h"
#include "os/file.h"

static void keep(driver *d, const char *node, const char *bytes, size_t len, bool whole) {
    stet_task_status was;
    drive_begin_run(d);
    if (!d->run || len == 0)
        return;
    if (!stet_runfile_has_task(d->run, node, &was))
        stet_runfile_task(d->run, node, &(stet_task_spec){.kind = "computation"});
    const char *path = stet_runfile_task_log(d->run, node);
    stet_status status = path ? stet_file_append(path, bytes, len, false, &d->run_error) : STET_OK;
    if (path && status == STET_OK && whole && bytes[len - 1] != '\n')
        status = stet_file_append(path, "\n", 1, false, &d->run_error);
    if (status != STET_OK)
        d->run_failed = true;
}

static void show(const driver *d, const char *node, const char *bytes, size_t len, bool live) {
    if (d->spec->output && len > 0)
        d->spec->output(d->spec->ctx, node, bytes, len, live);
}

static char *key_of(const char *node, const char *stream) {
    return stet_asprintf("%s\n%s", node, stream);
}

void drive_on_say(void *ctx, const char *node, const char *stream, const char *bytes, size_t len) {
    driver *d = ctx;
    char *key = key_of(node, stream);
    stet_map_put(&d->said, key, strlen(key), (stet_slot){.n = 1});
    stet_free(key);
    keep(d, node, bytes, len, false);
    if (d->spec->live)
        show(d, node, bytes, len, true);
}

void drive_on_log(void *ctx, const char *node, const char *stream, const char *bytes, size_t len) {
    driver *d = ctx;
    char *key = key_of(node, stream);
    bool said = stet_map_remove(&d->said, key, strlen(key));
    stet_free(key);
    if (!said)
        keep(d, node, bytes, len, true);
    else if (len > 0 && bytes[len - 1] != '\n')
        keep(d, node, "\n", 1, false);
    if (!said || !d->spec->live)
        show(d, node, bytes, len, d->spec->live);
}
