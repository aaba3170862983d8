/* internal.h - what the files of src/files share. */
#ifndef STET_FILES_INTERNAL_H
#define STET_FILES_INTERNAL_H

#include "base/buf.h"
#include "files/files.h"
#include "files/index.h"
#include "os/file.h"

#define STET_GLOB_LOOKED 2u /* mode in the row of a pattern */

#define STET_WATCH_LOCK "watch.lock"
#define STET_ASK_PREFIX "ask."
#define STET_ANSWER_MAX 4000 /* bytes: less than a pipe takes at once */

struct stet_files {
    stet_space *space;
    char *dir, *root; /* of the index; of the project */
    int root_fd;
    stet_files_index index;
    bool loaded, lost;
    bool no_variables; /* those of this process are nobody's business: it only watches */
    unsigned reloads;  /* how often the index was read anew: keys of before are void */
    stet_error broken; /* the index can't be read at all: told by whatever needs it next */
    stet_value fresh;  /* what a live watch said (watch.h), or null */
    char *unsettled;   /* the note of this process (files.h), or NULL */
    stet_names dead;   /* notes of processes that died */
};

/* Reads the index, or makes it again from the documents: on first use. */
STET_CHECKED stet_status stet_files_ready(stet_files *f, stet_error *err);
/* Key of the index for a document's id. False if it is none of a file, pattern or variable. */
bool stet_files_key(const char *id, stet_buf *key);
char *stet_files_id(const stet_files_entry *e); /* the other way; caller frees */

/* Compares documents that somebody changed since with what is known; entries that differ are in doubt. */
STET_CHECKED stet_status stet_files_reconcile(stet_files *f, stet_error *err);

/* Documents to be written, in transactions of some thousand. Rows of the index are ahead of them until they are
 * committed: those that are not are in doubt, or the next look would find nothing to write. */
typedef struct stet_files_batch {
    stet_files *f;
    stet_tx *tx;
    STET_VEC(const char *) put; /* keys of the documents in `tx` */
    stet_files_report *report;  /* or NULL */
} stet_files_batch;
/* The end of all batches: commits, or takes back if `status` is not STET_OK. */
STET_CHECKED stet_status stet_files_batch_end(stet_files_batch *b, stet_status status, stet_error *err);
/* Makes the document of an entry what `now` says, if it does not say so yet. */
STET_CHECKED stet_status stet_files_bring_up(stet_files_batch *b, stet_files_entry *e, const stet_look *now,
                                             stet_error *err);

/* Told of every directory that decides what a pattern matches, before it is listed, and of every link among what it
 * matches. */
typedef void (*stet_files_visit)(void *ctx, const char *path, bool link);
STET_CHECKED stet_status stet_files_walk(stet_files *f, const char *pattern, stet_files_visit visit, void *ctx,
                                         stet_names *out, stet_error *err);
/* Expands the pattern at this place of the index, follows what it matches, and brings its document up to date. */
STET_CHECKED stet_status stet_files_scan_glob(stet_files_batch *b, size_t index, stet_files_visit visit, void *ctx,
                                              stet_error *err);
stet_look stet_files_variable(const char *name); /* of the environment, as a look */
/* Looks at what nobody has looked at, and at what is in doubt. */
STET_CHECKED stet_status stet_files_look_at_rest(stet_files *f, stet_files_report *report, stet_error *err);

#endif
