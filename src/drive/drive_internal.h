/* drive_internal.h - what the files of a drive share. Not included anywhere else. */
#ifndef STET_DRIVE_DRIVE_INTERNAL_H
#define STET_DRIVE_DRIVE_INTERNAL_H

#include "base/map.h"
#include "drive/drift.h"
#include "drive/drive.h"
#include "drive/estimate.h"
#include "drive/lookout.h"
#include "os/lock.h"
#include "scheduler/standing.h"

typedef struct driver {
    stet_project *project;
    const stet_drive_spec *spec;
    stet_drive_outcome *out;
    stet_space *space;
    stet_sched *sched;
    stet_files *files;
    STET_VEC(stet_files *) far_files; /* files of other spaces whose actions may run */
    stet_lookout *follow;             /* the watch of a drive with `watch` */
    stet_live *live;                  /* answers questions about what it holds in memory */
    int64_t branch;                   /* of the spec; found when the space is opened, and again by drive_look */
    char *piece;                      /* its name, once that is known */
    stet_piece *stored;               /* the piece as drive_look last found it; NULL before */
    bool named;                       /* its pattern was given and is set up */
    bool set_up;                      /* some piece was set up */
    stet_names tolerated; /* leftovers that were read because a node may still write them; until all rests */
    bool orphans;         /* a drive that died has left commands that nodes may go on with */
    bool distrust;        /* in a copy of a project: a piece with an invalid pattern is made unknown */
    stet_map reported;    /* problems of patterns that were reported, by message */
    stet_value invalid;   /* {"SPACE\nPIECE": message}: the pieces that they are of */
    stet_lock *hold;      /* the lock of the piece (lend.c) */
    char *held;           /* the name of the piece that it is of */
    bool lent;            /* the argument is to be given back */
    bool own_argument;    /* and is not what the piece has without the run */
    bool lent_at_setup;
    int64_t argument_seq;    /* of the argument's revision when the run began */
    stet_names effects_done; /* effects of the run that are not stored yet */
    stet_map said;           /* "NODE\0STREAM" of streams whose parts were told, until their end */
    stet_runfile *run;
    bool worked;     /* some task of it was started */
    bool run_failed; /* the run's files can't be written: reported once, at the end */
    stet_error run_error;
    stet_estimate *estimate; /* created with the first action that is worth it; NULL before */
    size_t done, running, queued, total;
    int64_t shown_us;                /* when progress was last reported */
    STET_VEC(stet_sched_cell) parts; /* the demanded cells, if not the whole piece is wanted; in `arena` */
    stet_arena arena;
    stet_map failed;        /* "PIECE/NODE" of actions that failed at some time */
    stet_standing standing; /* for drive_is_pending, in one look at files */
    bool standing_known;
    bool looked_again; /* for a file whose action was gone (target.c) */
    size_t asked;      /* how often graphs were searched for it, in one look at files */
} driver;

/* In drive_run.c: the files of the run, created with the first action that is worth a line in them or at the end, and
 * progress. The first three are the scheduler's callbacks; `ctx` is the driver. */
void drive_on_event(void *ctx, const stet_sched_event *e);
/* In drive_log.c: what actions print goes to the logs of the run, and to whoever watches. */
void drive_on_log(void *ctx, const char *node, const char *stream, const char *bytes, size_t len);
void drive_on_say(void *ctx, const char *node, const char *stream, const char *bytes, size_t len);
bool drive_is_cancelled(void *ctx);
int64_t drive_done_at(void *ctx, const char *piece, const char *node);
void drive_begin_run(driver *d); /* creates the files of the run, unless they are there */
/* Opens the run that is continued, before anything of it runs. STET_CONFLICT: it is completed. */
STET_CHECKED stet_status drive_continue_run(driver *d, stet_error *err);
/* Records the argument. `ended`: if it is another than before, others have changed it, and the run says so. */
void drive_keep_argument(driver *d, bool ended);
/* In drive.c: callbacks of the scheduler, too. */
STET_CHECKED stet_status drive_files_of(void *ctx, stet_space *space, void **files, stet_error *err);
STET_CHECKED stet_status drive_on_rested(void *ctx, stet_error *err);
/* For the files of the drive (stet_files_set_pending). */
bool drive_is_pending(void *ctx, const char *path);
bool drive_may_make(void *ctx, stet_space *space, int64_t branch, const char *path);
STET_CHECKED stet_status drive_accept_read(void *ctx, const stet_sched_place *at, stet_run *run, const char *id,
                                           stet_error *err);
/* In inputs.c. STET_INVALID: the run was given an input that its pattern does not have. */
STET_CHECKED stet_status drive_check_inputs(driver *d, stet_error *err);
/* In lend.c: arguments that hold for one run. */
bool drive_lends(const stet_drive_spec *spec);
/* Takes the lock of the piece, unless it is held: exclusively if the run lends. Waits, and can be cancelled. */
STET_CHECKED stet_status drive_hold(driver *d, const char *piece, stet_error *err);
void drive_let_go(driver *d);
/* Gives back what runs that have died had lent in this space. `copy`: the space is a copy, where nobody else runs. */
STET_CHECKED stet_status drive_settle_lent(driver *d, bool copy, stet_error *err);
STET_CHECKED stet_status drive_lend(driver *d, stet_error *err);
STET_CHECKED stet_status drive_give_back(driver *d, stet_error *err);
/* {PIECE: ...} that is lent now, or null. The caller releases it. */
STET_CHECKED stet_status drive_any_lent(stet_space *space, int64_t branch, stet_value *out, stet_error *err);
/* The argument of the driven piece as it is now. The caller releases it. */
STET_CHECKED stet_status drive_argument(driver *d, bool *exists, int64_t *seq, stet_value *out, stet_error *err);
/* In setup.c: finds the piece that the spec names and sets it up, and every piece whose pattern file has changed. */
STET_CHECKED stet_status drive_prepare(driver *d, stet_error *err);
/* Looks at the driven piece as it is stored now: `stored` and `branch` of the driver. STET_NOT_FOUND: it was deleted,
 * and `stored` stays as it was. All else that asks about the driven piece reads `stored`. */
STET_CHECKED stet_status drive_look(driver *d, stet_error *err);
/* Sets up a stored piece as its file says now. `own`: it is the piece that is driven, and gets the values to set.
 * STET_INVALID also if the file no longer defines this piece (docs/pattern-format.md, "Pieces and pattern files"). */
STET_CHECKED stet_status drive_set_up_again(driver *d, const stet_piece *p, bool own, stet_error *err);
/* May the file differ from the one that the piece was set up from, or must its graph be rebuilt? */
bool drive_source_changed(const stet_project *project, const stet_piece *p);
/* The path of the pattern file of a piece with this source; NULL: it came from none. The caller frees it. */
char *drive_source_path(const stet_project *p, stet_value source);
/* In accept.c: do the requested nodes and parts of the result exist, in the graph that is going to be set up (`ctx` is
 * the driver) or in the stored one? They also bring the patterns that the piece reads from up to date. */
STET_CHECKED stet_status drive_accept_new(void *ctx, const stet_process *g, stet_error *err);
STET_CHECKED stet_status drive_accept_stored(driver *d, const stet_piece *p, stet_error *err);
/* In renew.c: sets up again those of the named pieces, and of the pieces that they link to, whose pattern files have
 * changed. An invalid pattern is an error, unless `only` is given and names another piece: if a part is wanted, it need
 * not rest on all that its piece links to, and drive_refuse_invalid tells. */
STET_CHECKED stet_status drive_renew_patterns(driver *d, stet_value names, const char *only, stet_error *err);
/* The same for all pieces of the branch and of all other spaces. An invalid pattern is reported, and its piece stays as
 * it was. */
STET_CHECKED stet_status drive_renew_all(driver *d, stet_error *err);
/* May a pattern file differ from the one that its piece was set up from? */
STET_CHECKED stet_status drive_patterns_changed(stet_project *project, stet_space *space, const char *branch,
                                                bool *changed, stet_error *err);
/* In fresh.c: is the name among the first `len`? */
bool drive_names_hold(const stet_names *names, size_t len, const char *name);
/* In invalid.c: after drive_renew_all and a settling. STET_INVALID: the cell rests on a piece whose pattern file is
 * invalid. */
void drive_note_invalid(stet_value *invalid, const char *space, const char *piece, const char *message);
STET_CHECKED stet_status drive_refuse_invalid(driver *d, const stet_docname *name, stet_pathref path, stet_error *err);
/* In distrust.c: in a copy of a project. */
STET_CHECKED stet_status drive_distrust(stet_project *project, stet_space *space, int64_t branch, const stet_piece *p,
                                        stet_error *err);
/* In fresh.c: opens the space, files and scheduler of a spec; `flags` are of stet_space_open. */
STET_CHECKED stet_status drive_open(driver *d, unsigned flags, stet_sched_opts *opts, stet_error *err);
/* Brings a branch of a copy up to date with patterns and files. An invalid pattern is reported (`note` of the spec),
 * and its piece stays as it was or, with `distrust`, is unknown as a whole. */
STET_CHECKED stet_status drive_bring_up(stet_project *project, const stet_drive_spec *spec, bool distrust,
                                        stet_error *err);
void drive_close(driver *d);
/* In drive.c: what the last settling came to. Takes over its problems. */
void drive_take_report(driver *d, const stet_sched_report *r);
/* In result.c: after a settling that came to its end, reads the result into the outcome. */
STET_CHECKED stet_status drive_read_result(driver *d, stet_error *err);
/* The first of these problems, or else the first action that failed before. Its texts lie in `*out` or in the lists. */
typedef struct drive_failure {
    stet_value hold[3];
    const char *piece, *node, *message; /* "", "an action" and "failed" if they are not known */
} drive_failure;
void drive_first_failure(stet_value problems, stet_value failed_before, drive_failure *out);
/* In target.c: words that name nodes and files. The id of a node without the name of its piece; points into `word`. */
const char *drive_node_of(const char *piece, const char *word);
/* The path that a word names; NULL: it can't be one. Caller frees. */
char *drive_file_of(const driver *d, const char *word);
/* The words in a form that means the same from any directory. The caller releases it. */
stet_value drive_words_value(const driver *d);
/* May a node make the file, in the graph `g` that is going to be set up, or in the stored piece `p`? */
STET_CHECKED stet_status drive_accept_file(const driver *d, const stet_process *g, const stet_piece *p,
                                           const char *path, bool *made, stet_error *err);
/* STET_NOT_FOUND for a word that names neither a node nor a file that is made. `path` NULL: it can't be a file. */
STET_CHECKED stet_status drive_no_target(const driver *d, const char *piece, const char *word, const char *path,
                                         stet_error *err);
STET_CHECKED stet_status drive_demand_word(driver *d, const char *word, stet_error *err);
/* After all has settled: is there an action that makes each demanded file? */
STET_CHECKED stet_status drive_check_files(driver *d, stet_error *err);
/* In result.c: settles once more, and adds what ran to the report, `ran` actions before it included. */
STET_CHECKED stet_status drive_settle_again(driver *d, size_t ran, stet_error *err);
/* In accepted.c: counts accepted actions of the piece, and what depends on them; they do not count as up to date. */
STET_CHECKED stet_status drive_count_accepted(driver *d, stet_error *err);
/* Notes (the callback of the spec) that a document comes from an accepted action. */
STET_CHECKED stet_status drive_note_accepted(driver *d, const stet_docname *name, stet_error *err);
/* In drive.c: demands the output of one node, which must exist. */
STET_CHECKED stet_status drive_demand_node(driver *d, const char *node, stet_error *err);
/* In drive.c: are only nodes or parts of the result wanted? */
bool drive_wants_part(const driver *d);
/* In drive.c: brings the documents of files up to date. */
STET_CHECKED stet_status drive_bring_files_up(driver *d, stet_error *err);
/* In drive_explain.c: adds to the outcome what is outdated, what may follow from it, and what waits. */
STET_CHECKED stet_status drive_explain(driver *d, stet_error *err);
/* [{"node","waitsFor"}]: at most so many actions of the piece that wait for one that failed, as far as can be told. */
stet_value drive_waiting(driver *d, size_t most);
/* Completes and closes the run's files, if there are any or should be. `status` is how the drive went; returns the
 * final status. */
STET_CHECKED stet_status drive_end_run(driver *d, stet_status status, stet_error *err);

#endif
