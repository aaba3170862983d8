/* drive.h - one run of a piece: set it up if its program changed, settle it, keep the run's files.
 *
 *     stet_drive_spec spec = {.pattern = "totals.json", .cancelled = cancelled, .ctx = ctx};
 *     stet_drive_outcome out;
 *     stet_status status = stet_drive(project, &spec, &out, &err);
 *     stet_drive_outcome_release(&out);
 *
 * A pattern file that is unchanged (by size, times and inode) is not even read; one that was touched but holds the same
 * program changes nothing. A drive in which everything was up to date leaves no run file, unless `record` is set.
 *
 * Failed actions do not fail the drive: they are counted and listed. STET_CANCELLED: stopped on request; finished work
 * is stored, and the outcome is set.
 */
#ifndef STET_DRIVE_DRIVE_H
#define STET_DRIVE_DRIVE_H

#include "drive/scratch.h"
#include "fleet/drive.h"
#include "fleet/run.h"
#include "project/project.h"
#include "scheduler/sched.h"

/* An event for an existing piece. */
typedef struct stet_drive_event {
    const char *stream;
    stet_value event;
    const char *id;        /* NULL: one is generated */
    bool settle;           /* then settle the piece, as without an event */
    stet_sched_sent *sent; /* receives the outcome */
} stet_drive_event;

/* The result of the piece is not read; is read into the outcome, where an error says that it can't be shown; is what
 * the drive is for, which fails without it. */
typedef enum stet_drive_result_use {
    STET_DRIVE_NO_RESULT,
    STET_DRIVE_SHOW_RESULT,
    STET_DRIVE_NEED_RESULT
} stet_drive_result_use;

typedef struct stet_drive_spec {
    const char *space, *branch; /* NULL: "main" and the default branch */
    const char *pattern;        /* path of a pattern file; NULL: the piece already exists */
    const char *piece;          /* NAME or NAME@SCOPE (graph/process.h); NULL: the name of the pattern */
    const char *scope;          /* of the piece, if `piece` has none; NULL or "": the common one */
    stet_value set;             /* {KEY or /POINTER: value} to set in the argument, or null */
    stet_value lend;            /* the same for this run alone: the piece gets back what it had (lend.c); or null */
    bool own_argument;          /* this run has the argument `argument`, with `lend` in it, and gives it back, too */
    stet_value argument;
    stet_value unset;     /* array of names of overrides (graph/argument.h) to remove first, or null */
    stet_value demand;    /* array of paths into the result ("a", "/a/b"), or null: all of it, and effects */
    stet_value nodes;     /* array of nodes and of files that nodes make: bring only these up to date; or null */
    const char *cwd;      /* absolute: the directory that files in `nodes` are seen from; NULL: the project */
    int jobs;             /* commands at the same time; 0: the number of processors */
    bool stop_on_failure; /* start no further command after one has failed */
    bool no_scan;         /* do not scan: trust the documents of files */
    bool explain;         /* report what is outdated, and why */
    bool alone;           /* nobody else drives the piece meanwhile */
    bool no_wait;         /* do not wait for a piece that others drive: STET_BUSY, and `occupied` */
    bool dry_run;         /* and run and write nothing: works on a copy of the spaces (scratch.h) */
    bool retry_failed, observe_only;
    stet_drive_result_use result; /* of the piece; not with `watch` or `dry_run` */
    bool record;                  /* write a run file even if everything was up to date */
    const char *run_id;           /* continue this run, or NULL */
    const char *actor;            /* or NULL */
    stet_value provenance;        /* of the run file, or null */
    /* The run that is about to be created; another status than STET_OK ends the drive. May be NULL. */
    stet_status (*begun)(void *ctx, const char *run_id, stet_error *err);
    const stet_drive_event *send; /* sent first; or NULL */
    bool watch;                   /* continue until cancelled, processing what others commit */
    void *ctx;
    bool (*cancelled)(void *ctx);                                               /* may be NULL */
    void (*progress)(void *ctx, int64_t done, int64_t total, const char *note); /* may be NULL */
    /* What an action printed, when it has ended; with `live` also each part of it when it is printed, and parts that were
     * given are not given again. May be NULL. */
    void (*output)(void *ctx, const char *node, const char *bytes, size_t len, bool live);
    bool live;
    /* While watching: called after the first settling, and after each that ran something. May be NULL. */
    stet_status (*settled)(void *ctx, const stet_sched_report *report, int64_t duration_ms, stet_error *err);
    /* A note that is not a failure, such as: files can't be watched, and are polled instead. May be NULL. */
    void (*note)(void *ctx, const stet_error *what);
    /* A pattern of the space is invalid, and its piece stays as it was. May be NULL. */
    void (*wrong)(void *ctx, const char *piece, const stet_error *why);
} stet_drive_spec;

typedef struct stet_drive_outcome {
    char *piece;
    stet_sched_installed installed;
    bool installed_now; /* the program was set up or changed */
    stet_sched_report report;
    size_t stood;
    bool occupied; /* no_wait: others drive the piece */
    bool part;     /* only nodes or parts of the result were requested: `stood` is not known */
    /* [{"piece","node","error"}], at most 1,000, of actions that failed and did not run again; or null. */
    stet_value failed_before;
    bool dry;                    /* nothing was run, as requested */
    size_t files, files_changed; /* followed files, and files that the scan found changed */
    bool watched;                /* a live watch confirmed that documents are current: no file was looked at */
    /* explain: [{"piece"?,"node","state","reason","document"?,"scope"?,"waitsFor"?}], at most 1,000, or null. */
    stet_value actions;
    stet_value absent;  /* spaces that its actions read from and that do not exist (scheduler/standing.h), or null */
    stet_value metrics; /* what was stored, why actions ran: stet_observe_counts_value */
    int64_t duration_ms;
    char *run_id; /* "" if none was written */
    bool committed;
    stet_value unverified; /* verifiers that a run of a part left outdated: the result has no verdict; or null */
    /* The result of the piece with links followed, if the spec asked for it: up to date on one snapshot (if only parts
     * of the piece were requested, these parts of it), or the last good values if something failed. `result_error`:
     * it can't be shown, and is null. STET_CONFLICT: others keep changing what it is made of. */
    bool has_result;
    stet_value result;
    stet_error result_error;
} stet_drive_outcome;

STET_CHECKED stet_status stet_drive(stet_project *project, const stet_drive_spec *spec, stet_drive_outcome *out,
                                    stet_error *err);
void stet_drive_outcome_release(stet_drive_outcome *out);
/* The outcome as --json prints it: {"piece","ran","stood","failed",...}. Belongs to the caller. */
stet_value stet_drive_outcome_value(const stet_drive_outcome *out);

/* Brings one cell up to date, with patterns and files as they are now, and returns its value with links followed. Only
 * space, branch, retry_failed, ctx and cancelled of the spec are used. `*out` belongs to the caller. */
STET_CHECKED stet_status stet_drive_fresh(stet_project *project, const stet_drive_spec *spec, const stet_docname *name,
                                          stet_pathref path, stet_value *out, stet_error *err);
/* For read-only callers: have patterns or files changed since stet last looked at them? Then `out` is a copy of the
 * project in which they are current; the caller closes it. Nothing is written to the project itself. Only space,
 * branch, ctx, note and wrong of the spec are used; the last two are called for invalid patterns. */
STET_CHECKED stet_status stet_drive_preview(stet_project *project, const stet_drive_spec *spec, stet_scratch *out,
                                            bool *changed, stet_error *err);

/* The fleet's driver (fleet/drive.h): continues a run, or starts one. */
STET_CHECKED stet_status stet_drive_fleet(const stet_drive_request *request, stet_drive_result *result,
                                          stet_error *err);

/* Is observing switched on? Setting `persist` of [scheduler] in config.toml; on by default. */
bool stet_drive_persist(const stet_project *project);
/* Converts a demand ("a" or "/a/b") to a path in the envelope of the result document: "value", then the keys. */
STET_CHECKED stet_status stet_drive_demand_path(const char *text, stet_path *out, stet_error *err);

#endif
