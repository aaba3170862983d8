/* module.h - the interface between the scheduler and a kind of module (`ref`, `javascript`, `command`, ...).
 *
 * A new kind is one file in src/module (or a plug-in) that fills one stet_module_kind and is listed in
 * src/module/kinds.c. The scheduler decides what runs and when; the kind knows how. A kind does not see the database:
 * it reads inputs and publishes results through the run it is given, which records what was read and written.
 *
 * A run of a synchronous kind:
 *
 *     static stet_status start(void *state, stet_run *run, stet_error *err) {
 *         stet_value value;
 *         stet_status status = stet_run_read(run, STET_PATH_ROOT, STET_RECURSIVE, &value, err); // any number of reads
 *         if (status == STET_OK)
 *             stet_run_succeed(run, stet_value_retain(value));
 *         else
 *             stet_run_fail(run, err);
 *         return STET_OK;
 *     }
 *
 * An asynchronous kind (`asynchronous` is set) returns from start with the work under way, keeps `run`, and ends it
 * later, from the event loop. What it read in start is forgotten then: before it reads, writes or succeeds it calls
 * stet_run_refresh, and reads again what its result depends on. That opens a section. The section ends when the run
 * ends, when stet_run_suspend is called, when another run is refreshed, or when the callback returns to the loop.
 * Reading and writing is allowed only inside a section. If work outlives the process, the kind itself finds it again,
 * by its identity, when the run is started again after a restart.
 *
 * Rules
 *
 *   1. Exactly one of succeed, fail and decline is called per run; nothing is touched after it.
 *   2. A kind reads only through the run, and uses no clock and no randomness that the inputs do not provide, unless
 *      the node is an effect.
 *
 * A run is an object with functions (stet_run_ops), so that a kind can be tested without a scheduler: the test gives it
 * a run of its own (test/unit/ref.c does).
 */
#ifndef STET_SCHEDULER_MODULE_H
#define STET_SCHEDULER_MODULE_H

#include "base/change.h"
#include "base/hash.h"
#include "graph/use.h"

#define STET_MODULE_VERSION 1

typedef struct stet_run stet_run; /* one run of one action */

/* What the scheduler's host offers to a kind, for as long as its state lives. */
typedef struct stet_module_host {
    const char *project_root;     /* absolute */
    const char *temp_dir;         /* for this kind, on the same file system as persist */
    stet_value config;            /* [module.<type>] of config.toml, or null; borrowed */
    struct uv_loop_s *loop;       /* the event loop of an asynchronous kind */
    void *project;                /* stet_project *, for kinds that open their own stores (command, call) */
    void *files;                  /* stet_files * of the space that is run; NULL: none, commands can't run */
    int jobs;                     /* maximum number under way; 0: the kind decides */
    bool (*cancelled)(void *ctx); /* was a stop requested? May be NULL */
    void *cancelled_ctx;
    /* May a node that has not run yet write this file? True if unsure. NULL: none does. */
    bool (*may_make)(void *ctx, const char *path);
    void *may_make_ctx;
    const bool
        /* Set when one has failed: what has not begun yet does not begin, and ends as STET_CANCELLED. May be NULL. */
        *stopped;
} stet_module_host;

typedef struct stet_module_kind {
    int version;       /* STET_MODULE_VERSION */
    const char *type;  /* as in `module.type` */
    bool asynchronous; /* several runs may be under way at the same time */
    bool sees_files;   /* it reads files, not only their documents, and judges by itself whether they may be read */

    /* Called once per process, on first use; may load a plug-in. NULL: nothing to open, and the state is NULL. */
    stet_status (*open)(const stet_module_host *host, void **state, stet_error *err);
    void (*close)(void *state);

    /* Checks a descriptor, as far as that is possible without running it. `node` is the whole node. Errors name the
     * member; the hint says what to write. Needs no open state. */
    stet_status (*check)(stet_value descriptor, stet_value node, stet_error *err);
    /* How an input (a key of `inputs`) is used. NULL: STET_INPUT_MAYBE for all. Needs no open state. */
    stet_input_use (*use)(stet_value descriptor, const char *input, size_t len);
    /* The identity of the implementation: text, content of its files, version of the kind where results may differ.
     * Equal fingerprints compute the same from the same inputs. */
    stet_status (*fingerprint)(void *state, stet_value descriptor, stet_hash *out, stet_error *err);
    stet_status (*start)(void *state, stet_run *run, stet_error *err);
    /* Stops a run, which must still end in stet_run_fail(STET_CANCELLED), now or soon. */
    void (*cancel)(void *state, stet_run *run);
    /* The results of this action's runs that have ended so far are committed: what a kind keeps for the case that this
     * process dies before that may go. A result that could not be committed is not reported: the action runs again.
     * `name` is that of the run. May be NULL. */
    void (*stored)(void *state, const char *name);
    /* A settling is over, and the results of its runs are stored: the kind may release what it kept from others. May be
     * NULL. */
    void (*idle)(void *state);
    /* No run is under way, and other processes are waited for: the kind releases locks that they may need, and takes
     * them again with the next run. May be NULL. */
    void (*pause)(void *state);
    /* Tells which files the node names by its descriptor and its inputs as they are written. `root` is that of the
     * project; NULL: not known. May be NULL: none. Needs no open state. */
    void (*names)(const char *root, stet_value descriptor, stet_value node, stet_named_fn each, void *ctx);
    /* Does a run read all that it ever reads when it starts, before it does anything that shows outside, and then ask
     * stet_run_waits? NULL: no. Needs no open state. */
    bool (*reads_first)(stet_value descriptor);
} stet_module_kind;

/* Finds a kind by its type; NULL: unknown. Defined in src/module/kinds.c, and declared here because the scheduler looks
 * kinds up by type and knows nothing else about them. */
const stet_module_kind *stet_module_find(const char *type);
/* For stet_pattern_checks: known type, and the kind's own check. `ctx` is not used. */
stet_status stet_module_check(void *ctx, stet_value descriptor, stet_value node, stet_error *err);
/* The same for `names`. */
void stet_module_names(void *ctx, const char *root, stet_value descriptor, stet_value node, stet_named_fn each,
                       void *each_ctx);

stet_value stet_run_descriptor(const stet_run *run); /* the node's module, borrowed */
stet_value stet_run_node(const stet_run *run);       /* the whole node as in the process graph, borrowed */
const char *stet_run_name(const stet_run *run);      /* "piece/node", for messages */
bool stet_run_is_effect(const stet_run *run);

/* Reads below the node's inputs, with links followed and the read recorded. `path` starts at the inputs object.
 * Borrowed until the run ends. STET_NOT_FOUND if nothing is there (that is recorded too). */
STET_CHECKED stet_status stet_run_read(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out,
                                       stet_error *err);
/* Reads without recording: for a kind that records afterwards, and exactly, what it used of the value. If a peeked
 * value influences the run, stet_run_read must be called for that part before the run ends. If the run's maker has no
 * `peek`, it is a shallow read. Borrowed until the run ends. */
STET_CHECKED stet_status stet_run_peek(stet_run *run, stet_pathref path, stet_value *out, stet_error *err);
/* The same with links inside the value left as they are: what they lead to is not read. For kinds that pass values on.
 */
STET_CHECKED stet_status stet_run_raw(stet_run *run, stet_pathref path, stet_value *out, stet_error *err);
/* All inputs, recursively: the common case. */
STET_CHECKED stet_status stet_run_inputs(stet_run *run, stet_value *out, stet_error *err);
/* The inputs as bound, an object whose values are bindings. Their names are part of the graph and not a read. Borrowed.
 */
stet_value stet_run_bindings(const stet_run *run);
/* Writes through an input that was bound with asCell. `path` starts at the inputs object. Consumes `value`. Reading
 * such an input, at its path and below, reads the cell's value, including what this run wrote to it; the binding tells
 * that it is a cell. */
STET_CHECKED stet_status stet_run_write(stet_run *run, stet_pathref path, stet_value value, stet_error *err);
/* For an event handler: sends an event to the stream that an input bound with asCell represents, or to one below it. It
 * is delivered after this run, in its transaction; if that is not possible, this run's event fails. Consumes `event`.
 */
STET_CHECKED stet_status stet_run_send(stet_run *run, stet_pathref path, stet_value event, stet_error *err);

/* The event of a handler run; null otherwise. Borrowed. */
stet_value stet_run_event(const stet_run *run);

/* Documents beyond the inputs, which are known only while running, such as a header that a compiler found. Reads the
 * value of any document of the piece's space, recorded like a read of an input. STET_NOT_FOUND: there is none (recorded
 * too). Borrowed until the run ends or is refreshed. */
STET_CHECKED stet_status stet_run_read_doc(stet_run *run, const char *id, stet_value *out, stet_error *err);
/* Sets the value of a document, or deletes it (null), with the result, in one commit. The action owns it from then on:
 * a change by another writer makes the action dirty. Also for a run that fails. Consumes `value`. */
STET_CHECKED stet_status stet_run_write_doc(stet_run *run, const char *id, stet_value value, stet_error *err);
/* For asynchronous kinds that read their inputs again when the work is done: forgets what was read and written so far;
 * later reads see the current state. Values borrowed before are invalid. */
STET_CHECKED stet_status stet_run_refresh(stet_run *run, stet_error *err);
/* Ends the section that a refresh began, without a result; the work continues. */
void stet_run_suspend(stet_run *run);

/* For asynchronous kinds whose work had to wait for other processes, and that have done nothing yet that shows outside:
 * has another process run the action since, and does its result stand? Then the run has ended, and nothing is recorded
 * of it. Outside of sections. */
bool stet_run_yield(stet_run *run);
/* For a kind with `reads_first`, with everything read, or with the failure to read it, and before a result is given: is
 * something among it that a failed action makes, or that is outdated? Then the run is declined (STET_CANCELLED): what
 * the action read in its last run did not tell, because it reads something else by now. */
bool stet_run_waits(stet_run *run);
/* Have other processes written since this settling began? Then what made the run begin may not hold any more: a kind
 * whose work is seen outside asks this under the lock that keeps others from doing the same, and yields or reads again.
 */
bool stet_run_has_company(const stet_run *run);

/* Children: one graph for each element of a list (graph/child.h). Sets the action's children, in the order of the list.
 * Missing ones are created, ones that are not named are torn down, and those whose argument changed get it; all with
 * the result, in one commit. Keys are texts, each once. The output is written too: call stet_run_succeed with null
 * after this. Borrowed for the call. */
typedef struct stet_run_child {
    const char *key;
    stet_value element;
} stet_run_child;
STET_CHECKED stet_status stet_run_children(stet_run *run, const stet_run_child *at, size_t len, stet_error *err);

/* What it has printed, at its end, whole: "stdout", "stderr", "console". */
void stet_run_log(stet_run *run, const char *stream, const char *bytes, size_t len);
/* A part of that while it goes on. Whoever says one part of a stream says all of it, in order; stet_run_log repeats it. */
void stet_run_say(stet_run *run, const char *stream, const char *bytes, size_t len);
void stet_run_progress(stet_run *run, int64_t done, int64_t total, const char *note);

/* For asynchronous kinds: it works now, or waits for its turn. Before the first call it waits. */
void stet_run_works(stet_run *run, bool works);
/* Its result is that of an earlier run: nothing was computed. */
void stet_run_restored(stet_run *run);

/* Consumes `result`; it becomes the output, unless the node has none. */
void stet_run_succeed(stet_run *run, stet_value result);
void stet_run_fail(stet_run *run, const stet_error *err);
/* Ends a run that says nothing about the action, because it was stopped or could not be tried. Nothing is recorded, and
 * the action stays outdated:
 *
 *   STET_CANCELLED    it was stopped
 *   STET_CONFLICT     what it reads was being changed; it is started again in this settling, a limited number of times
 *   any other         it does not run again in this settling, which reports `err`
 *
 * A failure with a status for which stet_run_is_ours is true is treated like this too: a problem of stet itself is
 * never recorded as the failure of an action.
 */
void stet_run_decline(stet_run *run, const stet_error *err);
bool stet_run_is_ours(stet_status status); /* STET_CANCELLED, STET_CONFLICT, STET_BUSY, STET_IO, STET_INTERNAL */

typedef struct stet_run_ops {
    stet_status (*read)(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out, stet_error *err);
    stet_status (*write)(stet_run *run, stet_pathref path, stet_value value, stet_error *err); /* consumes */
    void (*log)(stet_run *run, const char *stream, const char *bytes, size_t len);             /* may be NULL */
    void (*say)(stet_run *run, const char *stream, const char *bytes, size_t len);             /* may be NULL */
    void (*progress)(stet_run *run, int64_t done, int64_t total, const char *note);            /* may be NULL */
    void (*succeed)(stet_run *run, stet_value result);                                         /* consumes */
    void (*fail)(stet_run *run, const stet_error *err);
    void (*decline)(stet_run *run, const stet_error *err);                                   /* NULL: fail */
    void (*suspend)(stet_run *run);                                                          /* may be NULL */
    stet_status (*peek)(stet_run *run, stet_pathref path, stet_value *out, stet_error *err); /* may be NULL */
    /* May be NULL: STET_UNSUPPORTED then. */
    stet_status (*read_doc)(stet_run *run, const char *id, stet_value *out, stet_error *err);
    stet_status (*write_doc)(stet_run *run, const char *id, stet_value value, stet_error *err); /* consumes */
    stet_status (*refresh)(stet_run *run, stet_error *err);
    bool (*yield)(stet_run *run);                                                           /* NULL: false */
    bool (*has_company)(const stet_run *run);                                               /* NULL: false */
    bool (*waits)(stet_run *run);                                                           /* NULL: false */
    stet_status (*raw)(stet_run *run, stet_pathref path, stet_value *out, stet_error *err); /* NULL: read */
    stet_status (*children)(stet_run *run, const stet_run_child *at, size_t len, stet_error *err);
    stet_status (*send)(stet_run *run, stet_pathref path, stet_value event, stet_error *err); /* consumes */
    void (*works)(stet_run *run, bool works);                                                 /* may be NULL */
} stet_run_ops;

/* Embedded at the start of the maker's own struct. */
struct stet_run {
    const stet_run_ops *ops;
    stet_value node;       /* {"id","module","inputs",...}; borrowed */
    stet_value descriptor; /* node.module; borrowed */
    stet_value bindings;   /* node.inputs; borrowed */
    stet_value event;
    const char *name;
    bool effect;
    bool restored; /* stet_run_restored was called */
    bool ended;    /* succeed or fail was called */
};

#endif
