/* share.h - places that commands share: a command begins when it has all of its places. Private to src/process.
 *
 *     const char *const words[] = {"/path/gpu", "2", "1", NULL}; // path, total and wanted places of each share
 *     stet_share_set *set = NULL;
 *     stet_status status = stet_share_open(words, &set, &err);
 *     if (status == STET_OK)
 *         status = stet_share_take(set, &err); // STET_BUSY: not yet; nothing is held
 *     stet_share_close(set);                   // gives the places back; NULL is fine
 *
 * A share is a number of places, each of them a lock on a file: PATH.0, PATH.1 ... So a place is free again when the supervisor that held it is gone, however it ended. All places of a command are taken
 * at once or none, so commands never wait for each other in a circle. Whoever wants many places at once may wait longer
 * than others that want few.
 */
#ifndef STET_EXEC_SHARE_H
#define STET_EXEC_SHARE_H

#include "base/error.h"

typedef struct stet_share_set stet_share_set;

/* `words` is NULL-terminated, three words for each share. STET_INVALID: they make no sense. */
STET_CHECKED stet_status stet_share_open(const char *const *words, stet_share_set **out, stet_error *err);
STET_CHECKED stet_status stet_share_take(stet_share_set *s, stet_error *err);
void stet_share_close(stet_share_set *s);

#endif
