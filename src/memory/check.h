/* check.h - what check.c finds and repair.c mends. */
#ifndef STET_MEMORY_CHECK_H
#define STET_MEMORY_CHECK_H

#include "memory/internal.h"
#include "memory/record.h"

#define STET_DOC_OF(key) ((key) & (((int64_t)1 << 40) - 1))

/* A revision that is known to have existed, without its content: the whole commit is gone or damaged (`part` false), or
 * only its part about this document. */
typedef struct stet_lost_revision {
    int64_t seq, branch, doc;
    bool part;
    bool deleted; /* but its head tells that it deleted the document: found by the repair */
} stet_lost_revision;

typedef struct stet_report {
    stet_space *s;
    stet_buf *problems;
    size_t found;       /* lines, without lost ones */
    size_t lost;        /* lines that begin with "lost: " */
    bool quiet;         /* checks again without reporting */
    stet_map newest;    /* from sound commits: key -> sequence times 2, plus 1 if it exists */
    stet_map heads;     /* keys of sound heads */
    stet_map quiet_to;  /* key -> sequence up to which a later fork proves that `newest` was the newest */
    stet_map bad;       /* sequences of the log that are damaged (1) or missing (0) */
    stet_map times;     /* of damaged commits: time_ms of the row */
    stet_numbers stray; /* rows of the log with a sequence that never existed */
    stet_numbers nameless;
    bool names_fit; /* each name is what it was given, though its row may be damaged otherwise */
    STET_VEC(stet_lost_revision) revisions;
    int64_t last; /* the newest sequence that existed */
    stet_arena arena;
} stet_report;

/* Adds one line. */
void stet_report_problem(stet_report *r, const char *format, ...) STET_PRINTF(2, 3);
void stet_report_lost(stet_report *r, const char *format, ...) STET_PRINTF(2, 3);
/* "document "x"", with its scope and branch if they are not the common ones; in the report's arena. */
const char *stet_report_name(stet_report *r, int64_t branch, int64_t doc);
bool stet_report_bad(const stet_report *r, int64_t seq);

/* In check.c: fills newest, heads, bad, revisions and the rest from the tables, in a transaction. */
void stet_report_scan(stet_report *r);
void stet_report_release(stet_report *r);
/* Numbers of branches that existed and have no row. */
void stet_report_branches(stet_report *r, stet_numbers *missing);
/* The value after a revision. False: the document does not exist then (*damaged false), or can't be rebuilt. Nothing
 * sticks. */
bool stet_report_value(stet_report *r, int64_t doc, int64_t seq, stet_value *out, bool *damaged);
/* The same without the snapshot at `seq` itself. */
bool stet_report_from_log(stet_report *r, int64_t doc, int64_t seq, stet_value *out);

/* In repair.c. Needs a write transaction. */
void stet_report_repair(stet_report *r);

#endif
