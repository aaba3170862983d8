/* snapshot.h - snapshot texts, the log's text, and ancestry. No file is touched here. */
#ifndef STET_PERSIST_SNAPSHOT_H
#define STET_PERSIST_SNAPSHOT_H

#include "persist/set.h"

#define STET_PERSIST_ROWS     50    /* rows of [parents] that are written */
#define STET_PERSIST_ROWS_MAX 4096  /* maximum number of rows that are read */
#define STET_PERSIST_REFS_MAX 65536 /* maximum number of ids in the lists of [parents] that are read */

typedef struct stet_pid {
    char text[STET_PERSIST_HASH + 1];
} stet_pid;

typedef struct stet_prow {
    stet_pid id;
    uint32_t first, count; /* into refs */
} stet_prow;

typedef struct stet_prows {
    struct {
        stet_prow *at;
        size_t len, cap;
    } rows;
    struct {
        stet_pid *at;
        size_t len, cap;
    } refs;
} stet_prows;
void stet_prows_release(stet_prows *r);

typedef enum stet_psnapshot_state {
    STET_PSNAPSHOT_OK,
    STET_PSNAPSHOT_CORRUPT, /* malformed, or its hash does not match; perhaps not fully synchronised yet */
    STET_PSNAPSHOT_UNKNOWN  /* a version that this program does not know */
} stet_psnapshot_state;

typedef struct stet_psnapshot {
    int refs;
    stet_pid hash;
    stet_ptexts *texts; /* its first block is the whole text */
    size_t text_len;
    stet_pentries entries; /* sorted, each with the right hash */
    stet_prows parents;
    size_t dropped; /* entries whose own hash was wrong */
} stet_psnapshot;

/* Parses a snapshot. Takes over `text` (from malloc). *out is NULL unless the state is OK; *why says what is wrong. */
stet_psnapshot_state stet_psnapshot_parse(char *text, size_t len, stet_psnapshot **out, const char **why);
stet_psnapshot *stet_psnapshot_hold(stet_psnapshot *s);
void stet_psnapshot_drop(stet_psnapshot *s);
bool stet_psnapshot_has_ancestor(const stet_psnapshot *s, const char *id);

/* Prints a snapshot of these entries (sorted, unique) with these parents. Sets its hash. */
void stet_psnapshot_print(const stet_pentry *entries, size_t count, stet_psnapshot *const *tips, size_t tip_count,
                          stet_buf *out, stet_pid *hash);

extern const char stet_plog_header[]; /* the first line of a log */

typedef struct stet_plog_parsed {
    bool header_seen, unknown_version;
    size_t bad;               /* tables that were not accepted */
    size_t last_at, last_len; /* the last table */
    bool last_good;
} stet_plog_parsed;
/* Parses a part of a log that begins at a line; appends the good entries to `out`, with in_log set. `text` must live as
 * long as `texts`. */
void stet_plog_parse(const char *text, size_t len, stet_ptexts *texts, stet_pentries *out, stet_plog_parsed *parsed);

#endif
