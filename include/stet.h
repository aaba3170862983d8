/* stet.h - the public interface of libstet, a durable incremental computation engine.
 *
 * Calling sequence
 *
 *     stet_error err = STET_ERROR_INIT;
 *     stet_value doc;
 *     if (stet_json_parse(text, strlen(text), &doc, &err) != STET_OK) {
 *         fprintf(stderr, "%s\n", err.message);
 *         stet_error_clear(&err);
 *         return 1;
 *     }
 *     stet_value name = stet_get(doc, "name");      // borrowed from doc
 *     ...
 *     stet_release(doc);
 *
 * Conventions, everywhere in this header
 *
 *  - A function that can fail returns a stet_status and takes a `stet_error *` last; NULL is allowed there. On
 *    failure the error carries the same status, a message that names the thing and what was expected, and often
 *    a hint that says what to do. Output parameters are untouched unless the function says otherwise.
 *  - Inputs are borrowed for the call. A stet_value that a function returns directly from another value is
 *    borrowed from it (stet_get, stet_at); one that is made (stet_string, stet_json_parse) belongs to the caller, who
 *    releases it with stet_release. Functions that take over a value say "consumes".
 *  - Values are immutable once shared and may be used from many threads at once; their reference counts are
 *    atomic. Any other handle is used by one thread at a time unless it says otherwise.
 *  - Out of memory ends the process. Nothing else that comes from outside does.
 *  - Strings are UTF-8. Lengths are in bytes.
 */
#ifndef STET_H
#define STET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STET_VERSION        "0.1.0"
#define STET_VERSION_NUMBER 1000 /* major * 1000000 + minor * 1000 + patch: 0.1.0 */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define STET_API          __attribute__((visibility("default")))
#define STET_CHECKED      __attribute__((warn_unused_result))
#define STET_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define STET_API
#define STET_CHECKED
#define STET_PRINTF(f, a)
#endif

/* The version of the library that runs, as against the header compiled with. */
STET_API const char *stet_version(void);
STET_API int stet_version_number(void);

/* ---- Status and errors ------------------------------------------------------------------------------------ */

/* The numbers are the exit statuses of the program, and stable. */
typedef enum stet_status {
    STET_OK = 0,
    STET_FAILED = 1,  /* an action, a call or a check failed */
    STET_INVALID = 2, /* usage or bad input */
    STET_NOT_FOUND = 3,
    STET_CONFLICT = 4,    /* somebody else changed what this relied on */
    STET_BUSY = 5,        /* a lock or a time-out; trying again later may work */
    STET_CORRUPT = 6,     /* stored bytes are not what was written */
    STET_IO = 7,          /* the file system said no: disk full, permission, device error */
    STET_UNSUPPORTED = 8, /* a missing part or a newer format */
    STET_DENIED = 9,      /* refused by policy */
    STET_LIMIT = 10,      /* larger, deeper or more than a stated maximum */
    STET_INTERNAL = 70,   /* a bug in stet */
    STET_CANCELLED = 130  /* stopped on request */
} stet_status;

/* The stable lower-case name of a status: "ok", "not_found", ... */
STET_API const char *stet_status_name(stet_status status);

/* A JSON value: null, boolean, 64-bit integer, double, string, array or object. 16 bytes, passed by value; the bits are
 * private. All bits zero is null. */
typedef struct stet_value {
    uint64_t bits[2];
} stet_value;

typedef struct stet_error {
    stet_status status;
    char message[1024];
    char hint[512];     /* what to do; may be empty */
    stet_value details; /* an object with machine-readable particulars, or null */
} stet_error;

#ifdef __cplusplus
#define STET_ERROR_INIT                                                                                                \
    {}
#else
#define STET_ERROR_INIT                                                                                                \
    { 0 }
#endif

/* Frees what the error holds and makes it STET_OK again. A stet_error is cleared before it is used for a new call only
 * if the old call failed. */
STET_API void stet_error_clear(stet_error *err);
/* {"code","message","hint","details"}: the object that --json and MCP carry. Belongs to the caller. */
STET_API stet_value stet_error_value(const stet_error *err);

/* ---- Values ------------------------------------------------------------------------------------------------- */

typedef enum stet_type { STET_NULL, STET_BOOL, STET_INT, STET_DOUBLE, STET_STRING, STET_ARRAY, STET_OBJECT } stet_type;

STET_API stet_type stet_typeof(stet_value v);
STET_API stet_value stet_retain(stet_value v); /* one more reference; returns v */
STET_API void stet_release(stet_value v);      /* one less */

/* Makers. The result belongs to the caller. */
STET_API stet_value stet_null(void);
STET_API stet_value stet_bool(bool b);
STET_API stet_value stet_int(int64_t i);
/* An integral double of magnitude up to 2^53 becomes that integer, -0.0 becomes 0. NaN and infinities are refused. */
STET_API STET_CHECKED stet_status stet_double(double d, stet_value *out, stet_error *err);
/* `utf8` must be valid UTF-8: asserted. For bytes from outside use stet_string_checked. */
STET_API stet_value stet_string(const char *utf8);
STET_API stet_value stet_string_n(const char *utf8, size_t len);
STET_API STET_CHECKED stet_status stet_string_checked(const char *bytes, size_t len, stet_value *out, stet_error *err);
/* What is not UTF-8 in the result becomes U+FFFD. */
STET_API stet_value stet_stringf(const char *format, ...) STET_PRINTF(1, 2);
STET_API stet_value stet_array(void);  /* empty */
STET_API stet_value stet_object(void); /* empty */

/* Readers. A reader of the wrong type returns false, 0, NULL, or null: check stet_typeof where that matters. */
STET_API bool stet_as_bool(stet_value v);
STET_API int64_t stet_as_int(stet_value v);   /* of STET_INT alone */
STET_API double stet_as_double(stet_value v); /* of STET_INT or STET_DOUBLE */
/* The bytes of a string, NUL-terminated, and their length (NULs inside are possible). They live as long as the storage
 * `*v` does, short strings being held inside it: hence the pointer. */
STET_API const char *stet_as_string(const stet_value *v, size_t *len);
STET_API size_t stet_count(stet_value v); /* elements of an array, members of an object, else 0 */
/* Element `index` of an array or null; value of member `index` of an object in key order. Borrowed. */
STET_API stet_value stet_at(stet_value v, size_t index);
/* Key of member `index` of an object, keys sorted by their bytes. NULL out of range. Lives as long as the object. */
STET_API const char *stet_key_at(stet_value object, size_t index, size_t *len);
/* Value of a member, or null if there is none (stet_find tells the two apart). Borrowed. */
STET_API stet_value stet_get(stet_value object, const char *key);
STET_API bool stet_find(stet_value object, const char *key, size_t key_len, stet_value *out);

/* Changers. They change `*v` in place if nobody shares it, and a copy otherwise, so that whoever else holds the old
 * value keeps seeing it unchanged. They consume `item`. `*v` must be of the right type: asserted. */
STET_API void stet_push(stet_value *array, stet_value item);
STET_API void stet_put_at(stet_value *array, size_t index, stet_value item);    /* index < count */
STET_API void stet_insert_at(stet_value *array, size_t index, stet_value item); /* index <= count */
STET_API void stet_remove_at(stet_value *array, size_t index);                  /* index < count */
STET_API void stet_put(stet_value *object, const char *key, stet_value item);   /* adds or replaces */
STET_API void stet_put_n(stet_value *object, const char *key, size_t key_len, stet_value item);
STET_API bool stet_remove(stet_value *object, const char *key, size_t key_len); /* was it there? */

/* Deep equality and a total order (null < bool < number < string < array < object). Costs the size of what differs in
 * identity: two values that share structure are compared only where they do not. */
STET_API bool stet_equal(stet_value a, stet_value b);
STET_API int stet_compare(stet_value a, stet_value b);

/* ---- JSON --------------------------------------------------------------------------------------------------- */

/* Strict RFC 8259. A literal without fraction or exponent is an integer and refused outside int64; duplicate keys,
 * lone surrogates, invalid UTF-8, trailing bytes, and nesting beyond 512 are refused, with line and column. */
STET_API STET_CHECKED stet_status stet_json_parse(const char *text, size_t len, stet_value *out, stet_error *err);

typedef enum stet_json_style {
    STET_JSON_CANONICAL, /* sorted keys, no white space, numbers as ECMAScript prints them: what every hash is over */
    STET_JSON_PRETTY     /* the same with two-space indentation and a newline at the end */
} stet_json_style;

/* A double beyond 2^53 is always printed with an exponent (1e+17, where ECMAScript prints 100000000000000000 up to
 * 1e21): without one it would be read as an integer, or refused. So every value reads back as itself, and different
 * values never print alike.
 *
 * Prints into memory from malloc, NUL-terminated; the caller frees it with stet_free. `len` may be NULL. */
STET_API char *stet_json_print(stet_value v, stet_json_style style, size_t *len);
STET_API void stet_free(void *p);

/* ---- Projects, spaces, documents ------------------------------------------------------------------------------
 *
 *     stet_project *p;
 *     stet_space *s;
 *     if (stet_project_find(".", &p, &err) != STET_OK || stet_space_open(p, "main", 0, &s, &err) != STET_OK) ...
 *
 *     static stet_status bump(stet_tx *tx, void *ctx, stet_error *err) {
 *         stet_value n;
 *         stet_status st = stet_tx_get(tx, "counter/n", NULL, &n, err);       // borrowed from tx
 *         if (st != STET_OK)
 *             return st;
 *         return stet_tx_set(tx, "counter/n", NULL, stet_int(stet_as_int(n) + 1), err);
 *     }
 *     status = stet_space_transact(s, NULL, bump, NULL, NULL, &err);          // again on conflict, until it holds
 *
 * A space is one file of JSON documents with one sequence; acknowledged commits survive a power cut. A cell is
 * addressed by text, "ID[/KEY...]", with ~1 for a slash and ~0 for a tilde in id and keys: "config/theme",
 * "list/0/name". Scope NULL is "", the common one. Branch NULL is "", the default branch.
 *
 * Limits: a document 64 MiB of text and 511 levels; an id or scope 512 bytes of UTF-8 without control characters. */

typedef struct stet_project stet_project;
typedef struct stet_space stet_space;
typedef struct stet_tx stet_tx;
typedef struct stet_follower stet_follower;

/* Creates .stet/ in `dir` (created if absent). An existing project is left as it is: *created says which. */
STET_API STET_CHECKED stet_status stet_project_init(const char *dir, bool *created, stet_error *err);
/* Walks up from `from`. */
STET_API STET_CHECKED stet_status stet_project_find(const char *from, stet_project **out, stet_error *err);
STET_API STET_CHECKED stet_status stet_project_open(const char *root, stet_project **out, stet_error *err);
STET_API void stet_project_close(stet_project *p); /* after everything opened from it */
STET_API const char *stet_project_root(const stet_project *p);

enum {
    STET_SPACE_READ_ONLY = 1, /* never creates, migrates or writes */
    STET_SPACE_MUST_EXIST = 2 /* STET_NOT_FOUND instead of creating the file */
};

/* Opens a space by name ([a-z0-9._-]+). Costs the same however many documents are in it. */
STET_API STET_CHECKED stet_status stet_space_open(stet_project *p, const char *name, unsigned flags, stet_space **out,
                                                  stet_error *err);
STET_API void stet_space_close(stet_space *s); /* NULL is fine; after everything begun on it has ended */
STET_API const char *stet_space_name(const stet_space *s);
STET_API const char *stet_space_uuid(const stet_space *s);
/* The sequence of the newest commit by anybody, 0 in a new space. */
STET_API STET_CHECKED stet_status stet_space_seq(stet_space *s, int64_t *seq, stet_error *err);
/* Bytes of decoded documents kept for the next read; 32 MiB unless set. */
STET_API void stet_space_set_cache(stet_space *s, size_t bytes);
/* Makes durable what was batched (observations of runs that changed nothing). Data is durable when its commit returns.
 */
STET_API STET_CHECKED stet_status stet_sync(stet_space *s, stet_error *err);

/* A read outside any transaction, at sequence `at` or (negative) now. `*out` belongs to the caller. */
STET_API STET_CHECKED stet_status stet_space_get(stet_space *s, const char *branch, const char *cell, const char *scope,
                                                 int64_t at, stet_value *out, stet_error *err);

/* An optimistic transaction: reads see one snapshot and the transaction's own writes. */
STET_API STET_CHECKED stet_status stet_tx_begin(stet_space *s, const char *branch, stet_tx **out, stet_error *err);
STET_API void stet_tx_abort(stet_tx *tx); /* NULL is fine */
/* The value at a cell, recorded as a read of everything below it. Borrowed until the transaction ends. */
STET_API STET_CHECKED stet_status stet_tx_get(stet_tx *tx, const char *cell, const char *scope, stet_value *out,
                                              stet_error *err);
/* The same, but the caller promises to look only at the type, the key set or length, or the scalar itself. */
STET_API STET_CHECKED stet_status stet_tx_get_shallow(stet_tx *tx, const char *cell, const char *scope, stet_value *out,
                                                      stet_error *err);
/* Reads from another space than the one written to. */
STET_API STET_CHECKED stet_status stet_tx_get_from(stet_tx *tx, stet_space *other, const char *cell, const char *scope,
                                                   stet_value *out, stet_error *err);
/* Sets the value at a cell; document and missing parents are created. Consumes `value`. */
STET_API STET_CHECKED stet_status stet_tx_set(stet_tx *tx, const char *cell, const char *scope, stet_value value,
                                              stet_error *err);
/* An array of patch operations on a document's value, all or none (docs/memory.md): replace, add, remove, move, splice,
 * append, add-unique, remove-by-value, increment. `operations` stays the caller's. */
STET_API STET_CHECKED stet_status stet_tx_patch_value(stet_tx *tx, const char *id, const char *scope,
                                                      stet_value operations, stet_error *err);
STET_API STET_CHECKED stet_status stet_tx_delete(stet_tx *tx, const char *id, const char *scope, stet_error *err);
/* Preconditions: the document is not there; the SHA-256 (hex) of its value's canonical text is this. */
STET_API STET_CHECKED stet_status stet_tx_require_absent(stet_tx *tx, const char *id, const char *scope,
                                                         stet_error *err);
STET_API STET_CHECKED stet_status stet_tx_require_hash(stet_tx *tx, const char *id, const char *scope, const char *hex,
                                                       stet_error *err);
/* Names the commit: the same (session, local) with the same content returns the first answer and does nothing more;
 * with other content it is STET_CONFLICT. */
STET_API STET_CHECKED stet_status stet_tx_session(stet_tx *tx, const char *session, int64_t local, stet_error *err);

typedef struct stet_commit_result {
    int64_t seq;   /* of this commit; of the space, if nothing changed */
    bool changed;  /* false: there was nothing to change */
    bool replayed; /* the answer to an earlier commit of this session */
} stet_commit_result;

/* All or nothing, durable on return. Ends the transaction, whatever it returns. STET_CONFLICT: somebody changed what
 * was read, or a precondition does not hold; the details name the read, the change and its sequence. `result` may be
 * NULL. */
STET_API STET_CHECKED stet_status stet_tx_commit(stet_tx *tx, stet_commit_result *result, stet_error *err);

/* Calls `fn` in a transaction and commits, again on a conflict. From the fourth attempt on it runs with the write lock
 * held, so that it cannot be overtaken. Any other failure of `fn` aborts and is returned. */
STET_API STET_CHECKED stet_status stet_space_transact(stet_space *s, const char *branch,
                                                      stet_status (*fn)(stet_tx *tx, void *ctx, stet_error *err),
                                                      void *ctx, stet_commit_result *result, stet_error *err);

/* ---- Running ----
 *
 *     stet_pull_request want = {.pattern = "/home/me/site/stet.toml"};
 *     stet_value report;
 *     status = stet_pull(project, &want, NULL, &report, &err);   // STET_FAILED: some action did, report says which
 *
 * Runs what no longer stands of what is wanted, and nothing else, as `stet run` does: in this process, with commands
 * under a supervisor of their own (the program `stet-supervise`, found beside the running program, where the library
 * was installed, or in PATH). */
typedef struct stet_pull_request {
    const char *space, *branch;   /* NULL: "main", the default branch */
    const char *pattern;          /* path of a pattern file, of which the piece is made; NULL: the piece is there */
    const char *piece;            /* its name; NULL: as the pattern is called */
    stet_value set;               /* {KEY or /POINTER: value} into the argument before; or null */
    stet_value nodes;             /* array of names of nodes that alone are wanted; or null */
    stet_value demand;            /* array of paths into the result that alone are wanted; or null */
    int jobs;                     /* commands at a time; 0: by the number of processors */
    bool keep_going;              /* after a command has failed, start those that do not need it */
    bool retry_failed;            /* run again what failed, though nothing changed since */
    bool dry_run;                 /* run nothing and change nothing: the report says what does not stand, and why */
    bool (*cancelled)(void *ctx); /* asked often: true ends it with STET_CANCELLED; what was done is stored. Or NULL */
    void *ctx;
} stet_pull_request;
/* `*result`: the result of the piece, links followed; `*report`: what `stet run --json` prints. Either may be NULL, and
 * what is given belongs to the caller. With STET_FAILED (an action failed, in this run or before) both are given all
 * the same, the result with what was made last; with any other failure neither is. */
STET_API STET_CHECKED stet_status stet_pull(stet_project *p, const stet_pull_request *request, stet_value *result,
                                            stet_value *report, stet_error *err);

/* ---- Events ----
 *
 * Sends an event to a stream of a piece (`stet run` made it from a pattern with handlers). The handlers of the stream
 * run in one transaction, on what they read, made fresh first. With an `id` an event is applied once, however often it
 * is sent, also if a sender died between sending and hearing the answer: the answer then has `applied` false, and the
 * sequence of the first time. The same id with another event is STET_CONFLICT. STET_NOT_FOUND: no such piece or stream.
 * `stream` is the name of a stream or of a handler ("add"), for that of a child with its key ("items[a].add"), or a
 * path in the result that leads to it ("items/0/add"). An event for a child that is not there is STET_NOT_FOUND. A
 * handler that fails leaves nothing behind; its error is the function's. What follows from the event runs when somebody
 * runs the piece. */
typedef struct stet_event {
    const char *space, *branch; /* NULL: "main", the default branch */
    const char *piece, *stream;
    stet_value value;
    const char *id; /* NULL: one is made up; up to 200 bytes */
} stet_event;
typedef struct stet_event_result {
    bool applied;
    int64_t seq;
    char id[201];
} stet_event_result;
/* `result` may be NULL. */
STET_API STET_CHECKED stet_status stet_send(stet_project *p, const stet_event *event, stet_event_result *result,
                                            stet_error *err);

/* A branch sees its parent as of sequence `at` (negative: now) and keeps its own changes. Costs the same whatever the
 * size of the space. Deletion is soft until `stet gc`; the name is free again at once. */
STET_API STET_CHECKED stet_status stet_branch_create(stet_space *s, const char *name, const char *parent, int64_t at,
                                                     stet_error *err);
STET_API STET_CHECKED stet_status stet_branch_delete(stet_space *s, const char *name, stet_error *err);

/* Follows the commits of a branch, by any process, in order, each once. `cell` NULL: every document. `after`: a
 * sequence; negative: from now on. */
STET_API STET_CHECKED stet_status stet_follow(stet_space *s, const char *branch, const char *cell, const char *scope,
                                              int64_t after, stet_follower **out, stet_error *err);
/* {"seq","time","branch","changes":[{"id","scope","path","kind"}]}: the changed leaves that touch the cell; `kind` is
 * "keys" if the path appeared or went, else "value"; paths are JSON Pointers into the whole document ("/value/n").
 * STET_BUSY when timeout_ms (negative: for ever) is over. `*event` belongs to the caller. */
STET_API STET_CHECKED stet_status stet_follow_next(stet_follower *f, int timeout_ms, stet_value *event,
                                                   stet_error *err);
STET_API void stet_follow_end(stet_follower *f);

/* ---- Actions: what ran, what it read, whether it still stands ---------------------------------------------------
 *
 * An action is a computation of the caller's that reads cells and writes others. Its run is a transaction, to which
 * the caller attaches who ran; what it read, at which sequence, and what it changed is taken from the transaction
 * itself and stored in the same commit. From then on every commit, by any process, that changes something the action
 * read marks it, and after any restart the question whether it stands costs a look at an index.
 *
 *     stet_cell out = {"report/total", NULL};
 *     stet_action_run run = STET_ACTION_RUN_INIT;
 *     run.key.piece = "report";
 *     run.key.action = "total";
 *     run.implementation = "sum, version 3";
 *     run.writes = &out;
 *     run.write_count = 1;
 *     stet_action_state state;
 *     status = stet_action_state_of(s, NULL, &run.key, &state, &err);      // STET_UNKNOWN: it never ran
 *     if (status == STET_OK && state != STET_STANDS) {
 *         status = stet_tx_begin(s, NULL, &tx, &err);
 *         ... stet_tx_get, stet_tx_set ...
 *         status = stet_tx_observe(tx, &run, &err);
 *         status = stet_tx_commit(tx, NULL, &err);
 *     }
 *
 * A run that changed nothing makes no revision: its observation waits in a batch, which the next commit of the handle,
 * stet_sync, any question below and closing make durable. Each of the batch is kept or dropped on its own; one whose
 * reads no longer hold is dropped without an error, and its action keeps the mark it had. An observation that can't be
 * stored never fails the commit: its action is unknown then. An aborted transaction leaves none.
 *
 * Who compares fingerprints is the caller: an action whose code has changed is made unknown with stet_action_distrust,
 * or run again. docs/observations.md says what is stored and how marks come and go. */

typedef enum stet_action_kind {
    STET_ACTION_COMPUTATION = 1,
    STET_ACTION_EFFECT = 2,
    STET_ACTION_HANDLER = 3
} stet_action_kind;
typedef enum stet_action_state {
    STET_STANDS,
    STET_DIRTY,  /* a later change overlaps what it read, or somebody else changed what it wrote */
    STET_STALE,  /* derived: something upstream of it is dirty or unknown */
    STET_UNKNOWN /* no observation that can be trusted */
} stet_action_state;
typedef enum stet_run_kind {
    STET_RUN_DEPENDENCIES = 1, /* reads recorded, writes not published */
    STET_RUN_ACTION = 2,
    STET_RUN_PREFLIGHT = 3
} stet_run_kind;

/* Who an action is. Owner space and branch are those of the transaction. */
typedef struct stet_action_key {
    const char *piece;  /* id of the document that the action belongs to */
    const char *scope;  /* of that document; NULL is "" */
    const char *action; /* stable per instance: two uses of one function have two names */
} stet_action_key;

typedef struct stet_cell {
    const char *cell;  /* "ID[/KEY...]" */
    const char *scope; /* NULL is "" */
} stet_cell;

typedef struct stet_action_run {
    stet_action_key key;
    stet_action_kind kind; /* 0: a computation */
    stet_run_kind run;     /* 0: a run */
    int64_t generation;    /* of the graph that the action is a node of, if there is one */
    /* Any text that changes when what computes, or what runs it, does; its hash is stored. NULL is "". */
    const char *implementation, *runtime;
    const char *parent;      /* action that made this one; NULL: none */
    const stet_cell *writes; /* where it is going to write: its outputs are its own, whole */
    size_t write_count;
    const stet_cell *envelopes; /* where it may write: they say who is asked first, and mark nobody */
    size_t envelope_count;
    const stet_cell *ignored; /* writes that are no output: never indexed */
    size_t ignored_count;
    stet_value options; /* {"debounceMs","noDebounce","throttleMs","onRestart"} or null; stays the caller's */
    const char *error;  /* what it failed with; NULL: it succeeded. Its hash is stored */
    stet_value note;    /* small, for people; null: none. Stays the caller's */
} stet_action_run;

#ifdef __cplusplus
#define STET_ACTION_RUN_INIT                                                                                           \
    {}
#else
#define STET_ACTION_RUN_INIT                                                                                           \
    { .kind = STET_ACTION_COMPUTATION }
#endif

/* Attaches an observation to a transaction; once. Everything is copied. */
STET_API STET_CHECKED stet_status stet_tx_observe(stet_tx *tx, const stet_action_run *run, stet_error *err);

/* "stands", "dirty", "stale", "unknown". */
STET_API const char *stet_state_name(stet_action_state state);

/* Questions. Each first stores what is batched and looks at what nobody has looked at yet: commits made while observing
 * was off, marks that other spaces could not deliver. Not inside a transaction of the handle that holds the write lock.
 * Values that they give belong to the caller. */

/* Whether an action stands; STET_UNKNOWN also for one that nobody has heard of. */
STET_API STET_CHECKED stet_status stet_action_state_of(stet_space *s, const char *branch, const stet_action_key *key,
                                                       stet_action_state *out, stet_error *err);
/* An action as stored, with its state and the cause of its mark: {"piece","scope","action","state","observed","kind",
 * "run","generation","observedAt","commitSeq","timeMs","implementation","runtime","parent"?,"failed","error"?,
 * "reads":[{"cell","scope"?,"space"?,"kind","seq"}],"changedWrites":[...],"knownWrites","declaredWrites","envelopes",
 * "ignoredWrites","options","note","cause"?,"via"?}. `cause`: {"reason","seq","cell","scope"?,"space"?,"kind"}, the
 * newest change against it; `via`: the marked action upstream that makes it stale. STET_NOT_FOUND: nobody has heard of
 * it. */
STET_API STET_CHECKED stet_status stet_action_get(stet_space *s, const char *branch, const stet_action_key *key,
                                                  stet_value *out, stet_error *err);
/* Actions of a piece (NULL: of the branch), as stet_action_get gives them but without `via`, at most `limit`, in an
 * order that never changes. `generation` negative: any. `after`: 0, then what `*next` was; `*next` is 0 at the end. */
STET_API STET_CHECKED stet_status stet_actions_list(stet_space *s, const char *branch, const char *piece,
                                                    const char *scope, int64_t generation, int64_t after, size_t limit,
                                                    stet_value *out, int64_t *next, stet_error *err);
/* The state of a piece (NULL: of the branch): {"actions","stands","dirty","stale","unknown","failed"}, how many. */
STET_API STET_CHECKED stet_status stet_actions_count(stet_space *s, const char *branch, const char *piece,
                                                     const char *scope, stet_value *out, stet_error *err);
/* Who would be marked if the cell were written, {"readers": [...], "writers": [...]}:
 * {"space","piece","scope","action"}, readers of other spaces included (one whose space can't be opened has "number"
 * instead of its name). */
STET_API STET_CHECKED stet_status stet_readers_of(stet_space *s, const char *branch, const char *cell,
                                                  const char *scope, stet_value *out, stet_error *err);
/* Changes that overlap a read of the cell, with a sequence above `after` and (0: any) below `before`, newest first, at
 * most `limit`: [{"seq","path","kind"}], as in stet_follow_next. */
STET_API STET_CHECKED stet_status stet_changes_after(stet_space *s, const char *branch, const char *cell,
                                                     const char *scope, bool shallow, int64_t after, int64_t before,
                                                     size_t limit, stet_value *out, stet_error *err);
/* Counts of the space and of this handle: {"actions","observed","dirty","unknown","readRows",...,"runsByCause",
 * "unknownByReason","skipped","handle":{...}}; docs/observations.md. */
STET_API STET_CHECKED stet_status stet_actions_stats(stet_space *s, stet_value *out, stet_error *err);

/* Makes actions unknown (reason "requested"): they have to run again. Those not heard of are made known as names. */
STET_API STET_CHECKED stet_status stet_action_distrust(stet_space *s, const char *branch, const stet_action_key *keys,
                                                       size_t count, stet_error *err);
/* Takes actions of a piece out of every table, in other spaces too; all of it if `keys` is NULL. */
STET_API STET_CHECKED stet_status stet_actions_forget(stet_space *s, const char *branch, const char *piece,
                                                      const char *scope, const stet_action_key *keys, size_t count,
                                                      stet_error *err);
/* Off: nothing is stored, marked or listed by this handle; what is stored is inert. On is the default; what was
 * committed meanwhile is looked at by the first question then. */
STET_API void stet_actions_switch(stet_space *s, bool on);

#ifdef __cplusplus
}
#endif
#endif
