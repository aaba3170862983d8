/* own.h - directories of commands that run apart from the project. Private to src/process.
 *
 * The path of the directory is chosen once for a drive and written to its file `jobs` before anything is made there, so
 * whoever removes the drive finds it. Directories whose drive is gone are found by stet_local_sweep.
 */
#ifndef STET_EXEC_OWN_H
#define STET_EXEC_OWN_H

#include "process/local.h"

typedef struct stet_own_words {
    char **at; /* NULL-terminated */
    size_t len, cap;
} stet_own_words;

/* A command as it is started in its own directory. */
typedef struct stet_own {
    char *work, *cwd;
    stet_own_words argv, envp;
} stet_own;

/* The directory that the commands of a drive have theirs in; NULL: there is none. `*kept` remembers it. */
const char *stet_jobs_of(const char *drive, char **kept);
char *stet_own_path(const char *jobs, int64_t number); /* caller frees */

/* Makes the directory of command `number`, with everything that is staged in it. `*jobs` as in stet_jobs_of. Released by
 * the caller, also on failure. */
STET_CHECKED stet_status stet_own_make(const char *drive, int64_t number, const stet_local_request *r, char **jobs,
                                       stet_own *out, stet_error *err);
void stet_own_release(stet_own *own);

#endif
