/* module.h - the interface between the scheduler and a kind of module (`ref`, `javascript`, `command`, ...).
 *
 * A new kind is one file in src/module (or a plug-in) that fills one stet_module_kind and is named in
 * src/module/kinds.c. The scheduler decides what runs and when; the kind knows how. It sees no database: it reads
 * inputs and publishes results through the run it is given, which records what was read and written.
 *
 * One run of a synchronous kind:
 *
 *     start(state, program, run, err)
 *         stet_run_read(run, path, STET_RECURSIVE, &value, &err)     // any number: inputs, by path into `inputs`
 *         stet_run_succeed(run, result)  or  stet_run_fail(run, &err)
 *         return STET_OK
 *
 * An asynchronous one (`asynchronous` set) returns from start with the work under way, keeps `run`, and calls
 * stet_run_succeed or stet_run_fail later, from the event loop. What it read in start is forgotten then: before it
 * reads, writes or succeeds it calls stet_run_refresh, and reads again what its result rests on. Work that outlives the
 * process is found again by the kind itself, by what identifies it, when the run is started again after a restart.
 *
 * Rules: exactly one of succeed and fail per run; nothing is touched after it. No reading outside the run, no clock, no
 * randomness that the inputs do not carry, unless the node is an effect.
 *
 * A run is an object with functions (stet_run_ops), so that a kind can be tested without a scheduler: the test gives it
 * a run of its own making (test/unit/ref.c does).
 */
#ifndef STET_SCHEDULER_MODULE_H
#define STET_SCHEDULER_MODULE_H

#include "base/change.h"
#include "base/hash.h"
#include "graph/use.h"

#define STET_MODULE_VERSION 1

typedef struct stet_run stet_run; /* one run of one action */

/* What a kind may ask of the scheduler's host, for as long as its state lives. */
typedef struct stet_module_host {
    const char *project_root;     /* absolute */
    const char *temp_dir;         /* for this kind, same file system as persist */
    stet_value config;            /* [module.<type>] of config.toml, or null; borrowed */
    struct uv_loop_s *loop;       /* the event loop of an asynchronous kind */
    void *project;                /* stet_project *, for kinds that open stores of their own (command, call) */
    void *files;                  /* stet_files *, of the space that is run; NULL: none, commands can't run */
    int jobs;                     /* how many may be under way at once; 0: the kind decides */
    bool (*cancelled)(void *ctx); /* has somebody asked to stop? May be NULL */
    void *cancelled_ctx;
    const bool
        *stopped; /* one has failed: what has not begun yet does not begin, and ends as STET_CANCELLED. May be NULL */
} stet_module_host;

typedef struct stet_module_kind {
    int version;       /* STET_MODULE_VERSION */
    const char *type;  /* as `module.type` names it */
    bool asynchronous; /* many may be under way at once */

    /* Once per process, on first use; may load a plug-in. NULL: nothing to open, the state is NULL. */
    stet_status (*open)(const stet_module_host *host, void **state, stet_error *err);
    void (*close)(void *state);

    /* Is this descriptor right, as far as can be told without running it? `node` is the whole node. Errors name the
     * member; the hint says what to write. Needs no open state. */
    stet_status (*check)(stet_value descriptor, stet_value node, stet_error *err);
    /* How an input (a key of `inputs`) is used. NULL: STET_INPUT_MAYBE for all. Needs no open state. */
    stet_input_use (*use)(stet_value descriptor, const char *input, size_t len);
    /* What the implementation is: text, content of its files, version of the kind where results may differ. Two equal
     * fingerprints compute the same from the same inputs. */
    stet_status (*fingerprint)(void *state, stet_value descriptor, stet_hash *out, stet_error *err);
    /* Compiled form, kept by the scheduler per fingerprint. May be NULL together with forget. */
    stet_status (*prepare)(void *state, stet_value descriptor, void **program, stet_error *err);
    void (*forget)(void *state, void *program);

    stet_status (*start)(void *state, void *program, stet_run *run, stet_error *err);
    /* Stop; the run must still end in stet_run_fail(STET_CANCELLED), now or soon. */
    void (*cancel)(void *state, stet_run *run);
    /* A settling is over, and what its runs gave is stored: the kind may let go of what it kept others from. May be
     * NULL. */
    void (*idle)(void *state);
} stet_module_kind;

/* The kinds there are; NULL for an unknown type. Defined in src/module/kinds.c, named here because the scheduler looks
 * kinds up by type and knows nothing else of them. */
const stet_module_kind *stet_module_find(const char *type);
/* For stet_pattern_checks: known type, and the kind's own check. `ctx` is not used. */
stet_status stet_module_check(void *ctx, stet_value descriptor, stet_value node, stet_error *err);

/* ---- What a kind does with a run ---------------------------------------------------------------------------- */

stet_value stet_run_descriptor(const stet_run *run); /* the node's module, borrowed */
stet_value stet_run_node(const stet_run *run);       /* the whole node as in the process graph, borrowed */
const char *stet_run_name(const stet_run *run);      /* "piece/node", for messages */
bool stet_run_is_effect(const stet_run *run);

/* Reads below the node's inputs, with links followed and the read recorded. `path` starts at the inputs object.
 * Borrowed until the run ends. STET_NOT_FOUND if nothing is there (that is recorded too). */
STET_CHECKED stet_status stet_run_read(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out,
                                       stet_error *err);
/* What is there, without recording a read: for a kind that records afterwards, and exactly, what it made of the value.
 * Whoever peeks and lets the value influence the run must stet_run_read that part before the run ends. Where the run's
 * maker has no `peek` it is a shallow read. Borrowed until the run ends. */
STET_CHECKED stet_status stet_run_peek(stet_run *run, stet_pathref path, stet_value *out, stet_error *err);
/* The same with links inside the value left as they are: what they lead to is not read. For who passes values on. */
STET_CHECKED stet_status stet_run_raw(stet_run *run, stet_pathref path, stet_value *out, stet_error *err);
/* All inputs, recursively: the common case. */
STET_CHECKED stet_status stet_run_inputs(stet_run *run, stet_value *out, stet_error *err);
/* The names of the inputs are part of the graph and not a read: `inputs` as bound, an object; values in it are
 * bindings. Borrowed. */
stet_value stet_run_bindings(const stet_run *run);
/* Writes through an input that was bound with asCell. `path` starts at the inputs object. Consumes `value`. Reading
 * such an input, at its path and below, reads the cell's value, with what this run wrote to it; that it is a cell is
 * told by its binding. */
STET_CHECKED stet_status stet_run_write(stet_run *run, stet_pathref path, stet_value value, stet_error *err);
/* Of an event handler: sends an event to the stream that an input bound with asCell stands for, or one below it. It is
 * delivered after this run, in its transaction; if that can't be, this run's event fails. Consumes `event`. */
STET_CHECKED stet_status stet_run_send(stet_run *run, stet_pathref path, stet_value event, stet_error *err);

/* The event of a handler run; null otherwise. Borrowed. */
stet_value stet_run_event(const stet_run *run);

/* ---- Documents beyond the inputs: what is known only while running ----
 *
 * The value of any document of the piece's space, recorded as a read like those of the inputs: a header that a compiler
 * found. STET_NOT_FOUND if there is none (recorded too). Borrowed until the run ends or is refreshed. */
STET_CHECKED stet_status stet_run_read_doc(stet_run *run, const char *id, stet_value *out, stet_error *err);
/* Sets the value of a document, or deletes it (null), with the result, in one commit. The action owns it from then on:
 * a change by anybody else makes it dirty. Also for a run that fails. Consumes `value`. */
STET_CHECKED stet_status stet_run_write_doc(stet_run *run, const char *id, stet_value value, stet_error *err);
/* For asynchronous kinds that look at their inputs again when the work is done: what was read and written so far is
 * forgotten, and what is read from now on is as it is now. Values borrowed before are void. */
STET_CHECKED stet_status stet_run_refresh(stet_run *run, stet_error *err);

/* ---- Children: one graph for each element of a list (graph/child.h) ----
 *
 * What the action's children are from now on, in the order of the list: those that are not there are made, those that
 * are not named are torn down, those whose argument changed get it, all with the result, in one commit. Keys are texts,
 * each once. The output is written, too: stet_run_succeed with null after this. Borrowed for the call. */
typedef struct stet_run_child {
    const char *key;
    stet_value element;
} stet_run_child;
STET_CHECKED stet_status stet_run_children(stet_run *run, const stet_run_child *at, size_t len, stet_error *err);

void stet_run_log(stet_run *run, const char *stream, const char *bytes, size_t len); /* "stdout", "stderr", "console" */
void stet_run_progress(stet_run *run, int64_t done, int64_t total, const char *note);

/* Consumes `result`; it becomes the output, unless the node has none. */
void stet_run_succeed(stet_run *run, stet_value result);
void stet_run_fail(stet_run *run, const stet_error *err);

/* ---- What a run is, for those who make one -------------------------------------------------------------------- */

typedef struct stet_run_ops {
    stet_status (*read)(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out, stet_error *err);
    stet_status (*write)(stet_run *run, stet_pathref path, stet_value value, stet_error *err); /* consumes */
    void (*log)(stet_run *run, const char *stream, const char *bytes, size_t len);             /* may be NULL */
    void (*progress)(stet_run *run, int64_t done, int64_t total, const char *note);            /* may be NULL */
    void (*succeed)(stet_run *run, stet_value result);                                         /* consumes */
    void (*fail)(stet_run *run, const stet_error *err);
    stet_status (*peek)(stet_run *run, stet_pathref path, stet_value *out, stet_error *err); /* may be NULL */
    /* May be NULL: STET_UNSUPPORTED then. */
    stet_status (*read_doc)(stet_run *run, const char *id, stet_value *out, stet_error *err);
    stet_status (*write_doc)(stet_run *run, const char *id, stet_value value, stet_error *err); /* consumes */
    stet_status (*refresh)(stet_run *run, stet_error *err);
    stet_status (*raw)(stet_run *run, stet_pathref path, stet_value *out, stet_error *err); /* NULL: read */
    stet_status (*children)(stet_run *run, const stet_run_child *at, size_t len, stet_error *err);
    stet_status (*send)(stet_run *run, stet_pathref path, stet_value event, stet_error *err); /* consumes */
} stet_run_ops;

/* The maker embeds this at the start of its own struct. */
struct stet_run {
    const stet_run_ops *ops;
    stet_value node;       /* {"id","module","inputs",...}; borrowed */
    stet_value descriptor; /* node.module; borrowed */
    stet_value bindings;   /* node.inputs; borrowed */
    stet_value event;
    const char *name;
    bool effect;
    bool ended; /* succeed or fail was called */
};

#endif
