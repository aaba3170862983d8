/* drive.h - one run of a piece to its demand: setting it up if its program changed, settling, keeping the run's files.
 *
 *     stet_drive_spec spec = {.pattern = "totals.json", .cancelled = f, .ctx = c};
 *     stet_drive_outcome out;
 *     status = stet_drive(project, &spec, &out, &err);
 *     ...
 *     stet_drive_outcome_release(&out);
 *
 * A pattern file that is as it was (by size, times and inode) is not even read; one that was touched but holds the same
 * program changes nothing. A drive in which everything stood leaves no run file, unless `record` is set.
 *
 * Failed actions are no failure of the drive: they are counted and listed. STET_CANCELLED when asked to stop: what was
 * done by then is stored, and the outcome is set.
 */
#ifndef STET_DRIVE_DRIVE_H
#define STET_DRIVE_DRIVE_H

#include "fleet/run.h"
#include "project/project.h"
#include "scheduler/sched.h"

/* An event for a piece that is there. */
typedef struct stet_drive_event {
    const char *stream;
    stet_value event;
    const char *id;        /* or NULL: one is made up */
    bool settle;           /* and then settle the piece, as without an event */
    stet_sched_sent *sent; /* what became of it */
} stet_drive_event;

typedef struct stet_drive_spec {
    const char *space, *branch; /* NULL: "main" and the default branch */
    const char *pattern;        /* path of a pattern file, or NULL: the piece is there */
    const char *piece;          /* its name; NULL: as the pattern is called */
    stet_value set;             /* {KEY or /POINTER: value} into the argument, or null */
    stet_value demand;          /* array of paths into the result ("a", "/a/b"), or null: all of it, and effects */
    stet_value nodes;           /* array of nodes whose outputs alone are wanted, or null */
    int jobs;                   /* commands at a time; 0: by the number of processors */
    bool stop_on_failure;       /* after a command has failed no other is started */
    bool no_scan;               /* files are as their documents say */
    bool explain;               /* say what does not stand, and why */
    bool dry_run;               /* and run nothing, and write nothing: on a copy of the spaces (scratch.h) */
    bool retry_failed, observe_only;
    bool record;                  /* a run file even if everything stood */
    const char *run_id;           /* go on with this run, or NULL */
    const char *actor;            /* or NULL */
    stet_value provenance;        /* of the run file, or null */
    const stet_drive_event *send; /* sent first; or NULL */
    bool watch;                   /* go on until cancelled, taking up what others commit */
    void *ctx;
    bool (*cancelled)(void *ctx);                                               /* may be NULL */
    void (*progress)(void *ctx, int64_t done, int64_t total, const char *note); /* may be NULL */
    /* While watching: after the first settling, and after each that ran something. May be NULL. */
    stet_status (*settled)(void *ctx, const stet_sched_report *report, int64_t duration_ms, stet_error *err);
    /* Something to know that is no failure: files can't be watched, and are looked at now and then. May be NULL. */
    void (*note)(void *ctx, const stet_error *what);
} stet_drive_spec;

typedef struct stet_drive_outcome {
    char *piece;
    stet_sched_installed installed;
    bool installed_now; /* the program was set up or changed */
    stet_sched_report report;
    size_t stood;
    bool part;                   /* nodes or parts of the result were asked for: `stood` is not known */
    stet_value failed_before;    /* [{"piece","node","error"}], at most 1,000: they did not run again; or null */
    bool dry;                    /* nothing was run, because nothing was to be */
    size_t files, files_changed; /* that are followed; that the scan found changed */
    bool watched;                /* a live watch said that documents are current: no file was looked at */
    stet_value actions; /* explain: [{"node","state","reason","document"?,"waitsFor"?}], at most 1,000, or null */
    stet_value metrics; /* what was stored, why actions ran: stet_observe_counts_value */
    int64_t duration_ms;
    char *run_id; /* "" if none was written */
    bool committed;
} stet_drive_outcome;

/* How many neither ran nor are in the way of being called standing. */
size_t stet_drive_stood(const stet_sched_report *r);

STET_CHECKED stet_status stet_drive(stet_project *project, const stet_drive_spec *spec, stet_drive_outcome *out,
                                    stet_error *err);
void stet_drive_outcome_release(stet_drive_outcome *out);
/* {"piece","ran","stood","failed",...}: what --json prints. Belongs to the caller. */
stet_value stet_drive_outcome_value(const stet_drive_outcome *out);

/* Is observing switched on? [scheduler] persist of config.toml; on unless set to false. */
bool stet_drive_persist(const stet_project *project);
/* A demand as a path in the envelope of the result document: "value", then the keys of "a" or "/a/b". */
STET_CHECKED stet_status stet_drive_demand_path(const char *text, stet_path *out, stet_error *err);

#endif
