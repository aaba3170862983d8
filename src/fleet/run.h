/* run.h - writes a run's own files, which are the truth about the run.
 *
 *   .stet/runs/<id>/state.json      what the run is and how far it came; replaced atomically
 *   .stet/runs/<id>/events.jsonl    one line per change of a task; only appended to
 *   .stet/runs/<id>/logs/           what tasks printed
 *   .stet/runs/<id>/argument.json   the argument, if it is too large for state.json
 *   .stet/runs/<id>/driver.lock     locked while somebody drives the run; names the driver. It stays when the driver
 *                                   ends: a free lock beside an unfinished run shows that the driver died
 *   .stet/runs/<id>/cancel.json     a request to the driver to stop
 *
 * Calling sequence of a driver
 *
 *     stet_runfile *run;
 *     stet_runfile_spec spec = {.name = "report", .app_id = "report"};
 *     stet_status status = stet_runfile_create(project, &spec, &run, &err); // or stet_runfile_open, to continue one
 *     if (status != STET_OK)
 *         return status;
 *     stet_runfile_stage(run, STET_STAGE_RUNNING);
 *     stet_runfile_task(run, "fetch", &(stet_task_spec){.action = "fetch", .kind = "command"});
 *     stet_runfile_task_start(run, "fetch");
 *     status = stet_runfile_tick(run, &err);         // in the event loop, as often as you like
 *     stet_runfile_task_done(run, "fetch", &digest); // or _failed, _skipped
 *     if (!stet_runfile_commit(run, &result_digest)) // false: a verifier did not pass
 *         stet_runfile_cancel_rest(run, "not verified");
 *     status = stet_runfile_finish(run, &err); // stage `done`, written and synced
 *     stet_runfile_close(run);                 // without finish: the run can be resumed
 *
 * Writing. The file is rewritten at most once a second (STET_RUNFILE_THROTTLE_MS), and at once when it matters:
 * creation, a failed task (at most one in STET_RUNFILE_FAILED_MS), a stage, a commit, the end. Otherwise changes wait
 * for stet_runfile_tick. A crash loses at most what happened since: tasks that were running then run again or are found
 * up to date.
 *
 * Failure. Changes return nothing. The first failure sticks to the handle, later changes are not written, and tick and
 * finish return it. Changing a task that was not declared declares it.
 *
 * Ownership. Strings and values passed in are borrowed for the call. A handle is used by one thread at a time.
 */
#ifndef STET_FLEET_RUN_H
#define STET_FLEET_RUN_H

#include "base/hash.h"
#include "fleet/state.h"
#include "project/project.h"

#define STET_RUNFILE_THROTTLE_MS 1000
#define STET_RUNFILE_FAILED_MS   100

/* Bytes up to which an argument lies in state.json; above that it lies in argument.json beside it, and state.json has its
 * SHA-256 as `argumentFile`. */
#define STET_RUNFILE_INLINE       ((size_t)4 << 20)
#define STET_RUNFILE_ARGUMENT_MAX ((size_t)1 << 30)

typedef struct stet_runfile stet_runfile;

typedef struct stet_runfile_spec {
    const char *name;                             /* becomes part of the id, cleaned and cut to 40 bytes; NULL: "run" */
    const char *app_id, *app_version, *app_title; /* the pattern */
    const char *piece;                            /* or NULL */
    const char *workflow_id;                      /* NULL: the app's id */
    const char *title;                            /* NULL: the app's title */
    const char *actor;                            /* who requested it; NULL: the user's name */
    stet_value inputs, options;                   /* objects, or null */
    bool has_argument;                            /* `argument` is what the whole argument will be, under `inputs` */
    stet_value argument;
    stet_value labels;     /* array of strings, or null */
    stet_value provenance; /* {rerunOf, ...} or null */
    /* The first stage. STET_STAGE_SETUP: it will be driven later. Any other: the creator drives it, so that the run is
     * interrupted and not queued if that process dies at once. */
    stet_stage stage;
    /* Called with the id before anything is made, so that whoever needs the run can write down which one it is. Another
     * status than STET_OK: no run is made. May be NULL. */
    stet_status (*named)(void *ctx, const char *id, stet_error *err);
    void *named_ctx;
} stet_runfile_spec;

typedef struct stet_task_spec {
    const char *action; /* what the task executes; NULL: its id */
    const char *kind;   /* "command", "call", "python", "effect", ...; may be NULL */
    bool verifier;      /* a verifier-gated commit requires its success */
} stet_task_spec;

/* Creates the run's directory with a state.json in it, visible only when complete, and takes its lock. */
STET_CHECKED stet_status stet_runfile_create(stet_project *p, const stet_runfile_spec *spec, stet_runfile **out,
                                             stet_error *err);
/* Continues a run. STET_BUSY: it is being driven. STET_CONFLICT: it is completed. STET_NOT_FOUND: no such run. STET_CORRUPT, STET_UNSUPPORTED: its
 * state can't be trusted. Tasks that were running are pending again; an old request to cancel is forgotten. */
STET_CHECKED stet_status stet_runfile_open(stet_project *p, const char *id, stet_runfile **out, stet_error *err);

const char *stet_runfile_id(const stet_runfile *run);
const char *stet_runfile_dir(const stet_runfile *run); /* absolute */
stet_value stet_runfile_state(stet_runfile *run);      /* as it would be written; borrowed until the next change */
bool stet_runfile_has_task(const stet_runfile *run, const char *id, stet_task_status *status);

/* The argument that the run has, as a whole. A large one lies in a file of its own (STET_RUNFILE_INLINE). True: it had
 * another one before. */
bool stet_runfile_argument(stet_runfile *run, stet_value argument);
/* An effect begins, or is stored, at this sequence of its space. Written at once, so that a run that is continued after
 * a kill knows what it has done. */
void stet_runfile_effect(stet_runfile *run, const char *id, bool stored, int64_t seq);
/* What the run knows of an effect: the sequence at which it was last stored (0: not), and otherwise at which it last
 * began, and when. False: it never began in this run. */
typedef struct stet_runfile_effect_state {
    int64_t begun, begun_ms, stored;
} stet_runfile_effect_state;
bool stet_runfile_effect_of(const stet_runfile *run, const char *id, stet_runfile_effect_state *out);
void stet_runfile_option(stet_runfile *run, const char *name, stet_value item); /* consumes item */
/* The result of the run, for runs whose result the piece does not keep. */
void stet_runfile_result(stet_runfile *run, stet_value result);
void stet_runfile_stage(stet_runfile *run, stet_stage stage);
void stet_runfile_task(stet_runfile *run, const char *id, const stet_task_spec *spec); /* declares the task, pending */
void stet_runfile_task_start(stet_runfile *run, const char *id);                       /* one more attempt */
void stet_runfile_task_done(stet_runfile *run, const char *id, const stet_hash *result); /* resolves its feedback */
void stet_runfile_task_failed(stet_runfile *run, const char *id, const stet_error *why); /* opens feedback */
void stet_runfile_task_skipped(stet_runfile *run, const char *id, const char *why);
void stet_runfile_skip_failed(stet_runfile *run, const char *why); /* all that are failed */
void stet_runfile_task_reset(stet_runfile *run, const char *id);   /* pending again, from any status */
/* A path for the output of the task, recorded in the task; its directory exists. Absolute; belongs to the handle, and
 * is valid until the next call. NULL after a failure. */
const char *stet_runfile_task_log(stet_runfile *run, const char *id);

/* Counts actions that are too cheap to list, and sets other members of the summary ("stood", "ran", "savedMs"). */
void stet_runfile_count(stet_runfile *run, const char *name, int64_t add);
void stet_runfile_summary(stet_runfile *run, const char *name, stet_value item); /* consumes item */

/* Adds the result to `commits`. If there are verifier tasks the commit is gated: it is made only if each of them
 * completed, and lists them as checks. False: a verifier did not pass, and nothing was committed. */
bool stet_runfile_commit(stet_runfile *run, const stet_hash *result);

/* Adds a line of any kind to events.jsonl: {"at", "event", ...fields}. `fields` is an object or null. */
void stet_runfile_event(stet_runfile *run, const char *event, stet_value fields);

/* Was this run asked to stop? Looks at the disk at most four times a second. */
bool stet_runfile_cancelled(stet_runfile *run);
/* For a driver that stops on request: running and pending tasks become failed with status cancelled. */
void stet_runfile_cancel_rest(stet_runfile *run, const char *reason);

/* Call often; writes the run file at most once a second. */
STET_CHECKED stet_status stet_runfile_tick(stet_runfile *run, stet_error *err);
/* Writes now. */
STET_CHECKED stet_status stet_runfile_flush(stet_runfile *run, stet_error *err);
/* Ends the drive: stage `done`, tasks that are still pending become skipped, and everything is on disk. */
STET_CHECKED stet_status stet_runfile_finish(stet_runfile *run, stet_error *err);
void stet_runfile_close(stet_runfile *run); /* NULL is fine. Releases the lock; writes nothing. */

/* For processes that do not drive the run. */

/* The whole argument of a run, from its state or from argument.json in its directory. `*exists`: it has one; the caller
 * releases it. STET_CORRUPT: argument.json is missing, or not what the run had. */
STET_CHECKED stet_status stet_runfile_read_argument(const char *run_dir, const stet_state *state, bool *exists,
                                                    stet_value *out, stet_error *err);

typedef enum stet_driver_state {
    STET_DRIVER_NONE,   /* never locked: made by another program, or not driven yet */
    STET_DRIVER_ALIVE,  /* the lock is held */
    STET_DRIVER_GONE,   /* the lock is free, and its last holder was a process of this machine */
    STET_DRIVER_UNKNOWN /* the lock is free here, but its last holder was on another machine */
} stet_driver_state;

/* STET_CORRUPT: `logs` of the run is a symbolic link, which is never followed: a run may come from somebody else. */
STET_CHECKED stet_status stet_runfile_check_logs(const char *run_dir, stet_error *err);
/* Who drives the run in `run_dir`? Writes and creates nothing. `owner` (may be NULL) is what the lock file says, or
 * null; belongs to the caller. */
stet_driver_state stet_runfile_driver(const char *run_dir, stet_value *owner);
/* Appends a description of an owner: "process 4711 on host since 2026-...". */
void stet_runfile_owner_text(stet_value owner, stet_buf *out);
/* Asks the driver to stop. */
STET_CHECKED stet_status stet_runfile_ask_cancel(const char *run_dir, const char *reason, stet_error *err);

#endif
