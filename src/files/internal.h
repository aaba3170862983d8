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
#define STET_ANSWER_MAX 4000 /* bytes: less than a pipe accepts at once */

struct stet_files {
    stet_space *space;
    char *dir, *root; /* directory of the index; root of the project */
    int root_fd;
    char *branch_name; /* a branch other than the default one, or NULL */
    int64_t branch;
    stet_files_index index;
    bool loaded, lost;
    bool wrote;        /* a command has changed a file: what links lead to may be another */
    bool no_variables; /* ignore the variables of this process: it only watches */
    /* Variables whose values this handle has written once: a process that writes another value comes later, and is
     * right. */
    stet_map told;
    unsigned reloads;  /* how often the index was reloaded: older keys are invalid */
    stet_error broken; /* the index can't be read at all: reported by the next call that needs it */
    stet_value fresh;  /* the answer of a live watch (watch.h), or null */
    char *unsettled;   /* the note of this process (files.h), or NULL */
    /* F4 */
    char *commands_path;
    stet_lock *commands; /* NULL until it is needed */
    bool (*pending)(void *ctx, const char *path);
    void *pending_ctx;
    bool busy;       /* another process runs commands, in the look that is under way */
    stet_names dead; /* notes of processes that died */
};

/* Reads the index, or rebuilds it from the documents, on first use. */
STET_CHECKED stet_status stet_files_ready(stet_files *f, stet_error *err);
/* The key in the index for a document's id. False: not a file, pattern or variable. */
bool stet_files_key(const char *id, stet_buf *key);
char *stet_files_id(const stet_files_entry *e); /* the inverse; caller frees */

/* Compares documents that others changed with what is known; entries that differ are in doubt. */
STET_CHECKED stet_status stet_files_reconcile(stet_files *f, stet_error *err);

/* Copies documents from the default branch to the handle's branch: those of these keys or, if NULL, of everything
 * followed. */
STET_CHECKED stet_status stet_files_mirror(stet_files *f, const char *const *keys, size_t count, stet_error *err);

/* Documents to write, in transactions of some thousand. Rows of the index are ahead of them until they are committed.
 * Rows whose documents are not committed are in doubt, otherwise the next look would find nothing to write. */
typedef struct stet_files_batch {
    stet_files *f;
    stet_tx *tx;
    STET_VEC(const char *) put; /* keys of the documents in `tx` */
    stet_files_report *report;  /* or NULL */
    /* F3: looks were taken when documents were those of this sequence, or later; STET_FILES_TRUST: not compared. */
    int64_t since;
    bool raced; /* F3 did not hold for some: they are in doubt */
} stet_files_batch;
#define STET_FILES_TRUST INT64_MAX
/* Ends all batches: commits, or rolls back if `status` is not STET_OK. */
STET_CHECKED stet_status stet_files_batch_end(stet_files_batch *b, stet_status status, stet_error *err);
/* Writes the document of an entry so that it agrees with `now`, if it does not already. */
STET_CHECKED stet_status stet_files_bring_up(stet_files_batch *b, stet_files_entry *e, const stet_look *now,
                                             stet_error *err);
/* Writes the document of an entry as that of an output, if it does not say so yet: then it is *news. */
STET_CHECKED stet_status stet_files_put_made(stet_files_batch *b, stet_files_entry *e, const stet_look *now, bool *news,
                                             stet_error *err);

void stet_files_doubt(stet_files *f, stet_files_entry *e);
/* It has become a command's output, or is no longer one: patterns that match it are in doubt. */
void stet_files_made_or_not(stet_files *f, const stet_files_entry *e);

/* F4: a look at files begins and ends. They may be nested: *begun says whether this one took the lock. */
void stet_files_look_begin(stet_files *f, bool *begun);
void stet_files_look_end(stet_files *f, bool begun);

/* Expands the pattern at this index, follows what it matches, and brings its document up to date. */
STET_CHECKED stet_status stet_files_scan_glob(stet_files_batch *b, size_t index, stet_files_visit visit, void *ctx,
                                              stet_error *err);
/* The same for all patterns in doubt. */
STET_CHECKED stet_status stet_files_scan_doubted(stet_files_batch *b, stet_error *err);
/* Is it a variable of a process? env:WAY=... is a fact about files, which a watch can tell. */
bool stet_files_is_variable(const stet_files_entry *e);
stet_look stet_files_variable(const stet_files *f, const char *name); /* an environment variable, as a look */
/* Does this handle decide what the variable is? Once; what PATH finds may change at any time. */
bool stet_files_tells(stet_files *f, const stet_files_entry *e);
/* Looks at entries without a look, and at entries in doubt. */
STET_CHECKED stet_status stet_files_look_at_rest(stet_files *f, stet_files_report *report, stet_error *err);

#endif
