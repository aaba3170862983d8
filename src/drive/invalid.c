/* invalid.c - refuses requests that depend on a piece whose pattern file is invalid.
 *
 * Such a piece stays as it was, so that no mark reaches its readers. All other requests are answered. */

#include <string.h>

#include "drive/drive_internal.h"

static char *key_of(const char *space, const char *piece) {
    return stet_asprintf("%s\n%s", space, piece);
}

void drive_note_invalid(stet_value *invalid, const char *space, const char *piece, const char *message) {
    char *key = key_of(space, piece);
    stet_value_put(invalid, key, stet_value_string(message));
    stet_free(key);
}

static bool is_invalid(void *ctx, const char *space, const char *piece) {
    const driver *d = ctx;
    char *key = key_of(space, piece);
    bool is = stet_value_find(d->invalid, key, strlen(key), NULL);
    stet_free(key);
    return is;
}

stet_status drive_refuse_invalid(driver *d, const stet_docname *name, stet_pathref path, stet_error *err) {
    char *found = NULL;
    stet_status status = STET_OK;
    if (stet_value_count(d->invalid) == 0)
        return STET_OK;
    if (stet_drive_persist(d->project))
        status = stet_sched_rests_on(d->sched, name, path, is_invalid, d, &found, err);
    else
        found = stet_strdup(""); /* nothing is recorded, so that it may be any piece */
    if (status == STET_OK && found) {
        stet_value message = stet_value_at(d->invalid, 0);
        for (size_t i = 0; i < stet_value_count(d->invalid); i++) {
            const char *piece = strchr(stet_value_key_at(d->invalid, i, NULL), '\n') + 1;
            if (strcmp(piece, found) == 0)
                message = stet_value_at(d->invalid, i);
        }
        status = stet_fail(err, STET_INVALID, "not up to date: %s", stet_value_as_string(&message, NULL));
        stet_hint(err, "mend the pattern file; stet status lists what rests on it");
    }
    stet_free(found);
    return status;
}
