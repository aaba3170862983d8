/* stet.h - the public interface of libstet, a durable incremental computation engine.
 *
 * Calling sequence
 *
 *     stet_error err = STET_ERROR_INIT;
 *     stet_value doc;
 *     if (stet_json_parse(text, strlen(text), &doc, &err) != STET_OK) {
 *         fprintf(stderr, "%s\n", err.message);
 *         stet_error_clear(&err);
 *         return STET_INVALID;
 *     }
 *     const char *name = stet_value_get_string(doc, "name", NULL); // lives as long as doc; NULL: it is not a string
 *     printf("%s\n", name ? name : "nobody");
 *     stet_value_release(doc);
 *
 * Conventions, everywhere in this header
 *
 *   - A function that can fail returns a stet_status and takes a `stet_error *` as its last parameter; NULL is allowed
 *     there. On failure the error carries the same status, a message that names the thing and what was expected, and
 *     often a hint that says what to do. Output parameters are untouched unless the function says otherwise.
 *   - Inputs are borrowed for the call. A stet_value that a function returns directly from another value is borrowed
 *     from it (stet_value_get, stet_value_at). A value that is made (stet_value_string, stet_json_parse) belongs to the
 *     caller, who releases it with stet_value_release. Functions that take over a value say "consumes".
 *   - Values are immutable once shared and may be used from many threads at once; their reference counts are atomic.
 *     Any other handle is used by one thread at a time unless its description says otherwise.
 *   - A struct with options begins with its size, which its _INIT sets. A library that is newer than the program takes
 *     options that it lacks as zero. docs/c.md says which versions fit together.
 *   - Only running out of memory ends the process. NULL for a pointer that is not said to be optional is STET_INVALID;
 *     a function without a status does nothing then, and returns NULL, null, false or 0. So are text that is not UTF-8
 *     and a value of the wrong type. A handle that was closed, or that another thread is using, can't be recognized.
 *   - Strings are UTF-8. Lengths are in bytes.
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

/* What a function returns points into this parameter: clang warns in C++ if the result outlives the argument. */
#if defined(__cplusplus) && defined(__clang__)
#define STET_LIFETIME __attribute__((lifetimebound))
#else
#define STET_LIFETIME
#endif

#ifdef __cplusplus
/* A struct of options that is zero but for its size. */
#define STET_SIZED_INIT(type)                                                                                          \
    ([] {                                                                                                              \
        type zeroed = type();                                                                                          \
        zeroed.size = sizeof zeroed;                                                                                   \
        return zeroed;                                                                                                 \
    }())
#endif

/* The version of the library in use, which may differ from the header compiled with. */
STET_API const char *stet_version(void);
STET_API int stet_version_number(void);

/* The numbers are stable, and are the exit statuses of the program. */
typedef enum stet_status {
    STET_OK = 0,
    STET_FAILED = 1,  /* an action, a call or a check failed */
    STET_INVALID = 2, /* usage or bad input */
    STET_NOT_FOUND = 3,
    STET_CONFLICT = 4,    /* another process or thread changed what this relied on */
    STET_BUSY = 5,        /* a lock or a timeout; trying again later may work */
    STET_CORRUPT = 6,     /* stored bytes are not what was written */
    STET_IO = 7,          /* the file system refused: disk full, permission, device error */
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

/* Why a call failed. After a failure the texts are set and belong to the error; they live until stet_error_clear. Read
 * nothing but the status of an error that is STET_OK. */
typedef struct stet_error {
    stet_status status;
    const char *message; /* at most 1023 bytes */
    const char *hint;    /* what to do; may be empty; at most 511 bytes */
    stet_value details;  /* an object with machine-readable particulars, or null */
} stet_error;

#ifdef __cplusplus
#define STET_ERROR_INIT                                                                                                \
    {}
#else
#define STET_ERROR_INIT                                                                                                \
    { 0 }
#endif

/* Frees what the error holds and resets it to STET_OK. Clear an error after each failure, before it is used again or
 * goes out of scope; an error that is STET_OK holds nothing. */
STET_API void stet_error_clear(stet_error *err);
/* For callbacks that fail: sets status and message, unless the error already holds a failure, and returns the status.
 * `err` may be NULL. */
STET_API stet_status stet_error_set(stet_error *err, stet_status status, const char *format, ...) STET_PRINTF(3, 4);
/* The object that --json and MCP carry, {"code","message","hint","details"}. It belongs to the caller. */
STET_API stet_value stet_error_value(const stet_error *err);

typedef enum stet_type {
    STET_TYPE_NULL,
    STET_TYPE_BOOL,
    STET_TYPE_INT,
    STET_TYPE_DOUBLE,
    STET_TYPE_STRING,
    STET_TYPE_ARRAY,
    STET_TYPE_OBJECT
} stet_type;

STET_API stet_type stet_value_type(stet_value v);
STET_API stet_value stet_value_retain(stet_value v); /* one more reference; returns v */
STET_API void stet_value_release(stet_value v);      /* one less */

/* Makers. The result belongs to the caller. */
STET_API stet_value stet_value_null(void);
STET_API stet_value stet_value_bool(bool b);
STET_API stet_value stet_value_int(int64_t i);
/* An integral double of magnitude up to 2^53 becomes that integer; -0.0 becomes 0. NaN and infinities are refused. */
STET_API STET_CHECKED stet_status stet_value_double(double d, stet_value *out, stet_error *err);
/* Bytes that are not valid UTF-8 become U+FFFD; stet_value_string_checked refuses them instead. NULL becomes null. */
STET_API stet_value stet_value_string(const char *utf8);
STET_API stet_value stet_value_string_n(const char *utf8, size_t len);
STET_API STET_CHECKED stet_status stet_value_string_checked(const char *bytes, size_t len, stet_value *out,
                                                            stet_error *err);
/* Like printf; the result is a string as stet_value_string makes it. */
STET_API stet_value stet_value_stringf(const char *format, ...) STET_PRINTF(1, 2);
STET_API stet_value stet_value_array(void);  /* empty */
STET_API stet_value stet_value_object(void); /* empty */

/* Readers. A reader of the wrong type returns false, 0, NULL, or null: check stet_value_type where that matters. */
STET_API bool stet_value_as_bool(stet_value v);
STET_API int64_t stet_value_as_int(stet_value v);   /* STET_TYPE_INT only */
STET_API double stet_value_as_double(stet_value v); /* STET_TYPE_INT or STET_TYPE_DOUBLE */
/* The bytes of a string, NUL-terminated, and their length (NULs inside are possible; `len` may be NULL). A string of up
 * to 14 bytes lies inside the value itself: the bytes live only as long as the variable that `v` points to, and must
 * not be returned from the function that declares it. The three functions below have no such trap. */
STET_API const char *stet_value_as_string(const stet_value *v STET_LIFETIME, size_t *len);
/* The bytes of a string in a container, which live as long as the container: until it is released, or changed by its
 * only holder. NULL: there is no such member or element, or it is not a string. */
STET_API const char *stet_value_get_string(stet_value object, const char *key, size_t *len);
STET_API const char *stet_value_at_string(stet_value v, size_t index, size_t *len); /* index as in stet_value_at */
/* A copy of a string, NUL-terminated, which the caller frees with stet_free. NULL: it is not a string. */
STET_API char *stet_value_copy_string(stet_value v, size_t *len);
STET_API size_t stet_value_count(stet_value v); /* elements of an array, members of an object, otherwise 0 */
/* Element `index` of an array, or the value of member `index` of an object in key order; null out of range. Borrowed.
 */
STET_API stet_value stet_value_at(stet_value v, size_t index);
/* Key of member `index` of an object; keys are sorted by their bytes. NULL out of range. Lives as long as the object.
 */
STET_API const char *stet_value_key_at(stet_value object, size_t index, size_t *len);
/* Value of a member, or null if there is none (stet_value_find tells the two cases apart). Borrowed. */
STET_API stet_value stet_value_get(stet_value object, const char *key);
STET_API bool stet_value_find(stet_value object, const char *key, size_t key_len, stet_value *out);

/* Changers. They change `*v` in place if nobody else holds it, and otherwise a copy, so that other holders keep seeing
 * the old value. They consume `item`. false: nothing was changed, because `*v` is not of the right type, the index is
 * out of range, or the key is not UTF-8; `item` is released. */
STET_API bool stet_value_push(stet_value *array, stet_value item);
STET_API bool stet_value_put_at(stet_value *array, size_t index, stet_value item);    /* index < count */
STET_API bool stet_value_insert_at(stet_value *array, size_t index, stet_value item); /* index <= count */
STET_API bool stet_value_remove_at(stet_value *array, size_t index);                  /* index < count */
STET_API bool stet_value_put(stet_value *object, const char *key, stet_value item);   /* adds or replaces */
STET_API bool stet_value_put_n(stet_value *object, const char *key, size_t key_len, stet_value item);
STET_API bool stet_value_remove(stet_value *object, const char *key, size_t key_len); /* false also: it was absent */

/* Deep equality, and a total order (null < bool < number < string < array < object). Parts that both values share are
 * not compared. */
STET_API bool stet_value_equal(stet_value a, stet_value b);
STET_API int stet_value_compare(stet_value a, stet_value b);

/* Reads strict RFC 8259 JSON. A number without fraction or exponent is an integer, and is refused outside int64.
 * Duplicate keys, lone surrogates, invalid UTF-8, trailing bytes and nesting beyond 512 are refused, with line and
 * column. */
STET_API STET_CHECKED stet_status stet_json_parse(const char *text, size_t len, stet_value *out, stet_error *err);

typedef enum stet_json_style {
    STET_JSON_CANONICAL, /* sorted keys, no white space, numbers as in ECMAScript: what every hash is over */
    STET_JSON_PRETTY     /* the same with two-space indentation and a newline at the end */
} stet_json_style;

/* Prints into memory from malloc, NUL-terminated; the caller frees it with stet_free. `len` may be NULL.
 *
 * A double beyond 2^53 is always printed with an exponent (1e+17, where ECMAScript prints 100000000000000000 up to
 * 1e21): without one it would be read as an integer, or refused. So every value reads back as itself, and different
 * values never print alike.
 */
STET_API char *stet_json_print(stet_value v, stet_json_style style, size_t *len);
STET_API void stet_free(void *p);

/* Projects, spaces and documents
 *
 *     static stet_status bump(stet_tx *tx, void *ctx, stet_error *err) {
 *         stet_value n;
 *         stet_status status = stet_tx_get(tx, "counter/n", NULL, &n, err); // borrowed from tx
 *         if (status != STET_OK)
 *             return status;
 *         return stet_tx_set(tx, "counter/n", NULL, stet_value_int(stet_value_as_int(n) + 1), err);
 *     }
 *
 *     stet_error err = STET_ERROR_INIT;
 *     stet_project *p;
 *     stet_space *s;
 *     stet_status status = stet_project_find(".", &p, &err);
 *     if (status != STET_OK)
 *         return status;
 *     status = stet_space_open(p, "main", 0, &s, &err);
 *     if (status == STET_OK) {
 *         status = stet_space_transact(s, NULL, bump, NULL, NULL, &err); // retried on conflict
 *         stet_space_close(s);
 *     }
 *     stet_project_close(p);
 *
 * A space is one file of JSON documents with one sequence of commits; acknowledged commits survive a power cut. A cell
 * is addressed by text, "ID[/KEY...]", with ~1 for a slash and ~0 for a tilde in id and keys: "config/theme",
 * "list/0/name". Scope NULL is "", the common scope. Branch NULL is "", the default branch.
 *
 * Limits: a document has at most 64 MiB of text and 511 levels; an id or scope at most 512 bytes of UTF-8 without
 * control characters.
 */

typedef struct stet_project stet_project;
typedef struct stet_space stet_space;
typedef struct stet_tx stet_tx;
typedef struct stet_follower stet_follower;

/* Creates .stet/ in `dir` (which is created if absent). An existing project is left as it is; *created tells which
 * (`created` may be NULL). */
STET_API STET_CHECKED stet_status stet_project_init(const char *dir, bool *created, stet_error *err);
/* Finds the project that contains `from`: searches `from` and then its parents. */
STET_API STET_CHECKED stet_status stet_project_find(const char *from, stet_project **out, stet_error *err);
STET_API STET_CHECKED stet_status stet_project_open(const char *root, stet_project **out, stet_error *err);
STET_API void stet_project_close(stet_project *p); /* close everything opened from it first */
STET_API const char *stet_project_root(const stet_project *p);

enum {
    STET_SPACE_READ_ONLY = 1, /* never creates, migrates or writes */
    STET_SPACE_MUST_EXIST = 2 /* STET_NOT_FOUND instead of creating the file */
};

/* Opens a space by name ([a-z0-9._-]+). The cost does not depend on the number of documents in it. */
STET_API STET_CHECKED stet_status stet_space_open(stet_project *p, const char *name, unsigned flags, stet_space **out,
                                                  stet_error *err);
STET_API void stet_space_close(stet_space *s); /* NULL is fine; end everything begun on it first */
STET_API const char *stet_space_name(const stet_space *s);
STET_API const char *stet_space_uuid(const stet_space *s);
/* The sequence of the newest commit by any process; 0 in a new space. */
STET_API STET_CHECKED stet_status stet_space_seq(stet_space *s, int64_t *seq, stet_error *err);
/* Bytes of decoded documents kept for the next read; the default is 32 MiB. */
STET_API void stet_space_set_cache(stet_space *s, size_t bytes);
/* Makes batched observations durable (of runs that changed nothing). Data is already durable when its commit returns.
 */
STET_API STET_CHECKED stet_status stet_space_sync(stet_space *s, stet_error *err);

/* Reads a cell outside any transaction, at sequence `at` or, if `at` is negative, now. `*out` belongs to the caller. */
STET_API STET_CHECKED stet_status stet_space_get(stet_space *s, const char *branch, const char *cell, const char *scope,
                                                 int64_t at, stet_value *out, stet_error *err);

/* Begins an optimistic transaction: reads see one snapshot and the transaction's own writes. */
STET_API STET_CHECKED stet_status stet_tx_begin(stet_space *s, const char *branch, stet_tx **out, stet_error *err);
STET_API void stet_tx_abort(stet_tx *tx); /* NULL is fine */
/* The value at a cell, recorded as a read of everything below the cell. Borrowed until the transaction ends. */
STET_API STET_CHECKED stet_status stet_tx_get(stet_tx *tx, const char *cell, const char *scope, stet_value *out,
                                              stet_error *err);
/* The same, but the caller promises to look only at the type, the key set or length, or the scalar itself. */
STET_API STET_CHECKED stet_status stet_tx_get_shallow(stet_tx *tx, const char *cell, const char *scope, stet_value *out,
                                                      stet_error *err);
/* Reads from a space other than the one written to. */
STET_API STET_CHECKED stet_status stet_tx_get_from(stet_tx *tx, stet_space *other, const char *cell, const char *scope,
                                                   stet_value *out, stet_error *err);
/* Writes. Documents that belong to stet (the result of a piece, `piece:NAME`, its graph, programs, schemas) can't be
 * written or deleted, and an argument or cell of a piece can't be deleted: STET_INVALID. A value set in an argument or
 * a cell overrides the pattern's default, as `stet set` does, and must match the schema there. The output of a node may
 * be written: the node runs again and restores it. */
/* Sets the value at a cell; the document and missing parents are created. Consumes `value`. */
STET_API STET_CHECKED stet_status stet_tx_set(stet_tx *tx, const char *cell, const char *scope, stet_value value,
                                              stet_error *err);
/* Applies an array of patch operations to a document's value, all or none (docs/memory.md): replace, add, remove, move,
 * splice, append, add-unique, remove-by-value, increment. `operations` stays the caller's. */
STET_API STET_CHECKED stet_status stet_tx_patch_value(stet_tx *tx, const char *id, const char *scope,
                                                      stet_value operations, stet_error *err);
STET_API STET_CHECKED stet_status stet_tx_delete(stet_tx *tx, const char *id, const char *scope, stet_error *err);
/* Preconditions: the document does not exist; the SHA-256 (hex) of its value's canonical text is `hex`. */
STET_API STET_CHECKED stet_status stet_tx_require_absent(stet_tx *tx, const char *id, const char *scope,
                                                         stet_error *err);
STET_API STET_CHECKED stet_status stet_tx_require_hash(stet_tx *tx, const char *id, const char *scope, const char *hex,
                                                       stet_error *err);
/* Names the commit. A repeated (session, local) with the same content returns the first answer and does nothing more;
 * with other content it is STET_CONFLICT. */
STET_API STET_CHECKED stet_status stet_tx_session(stet_tx *tx, const char *session, int64_t local, stet_error *err);

typedef struct stet_commit_result {
    int64_t seq;   /* of this commit; of the space if nothing changed */
    bool changed;  /* false: there was nothing to change */
    bool replayed; /* the answer repeats that of an earlier commit of this session */
} stet_commit_result;

/* Commits: all or nothing, durable on return. Ends the transaction, whatever it returns. STET_CONFLICT: another commit
 * changed what was read, or a precondition does not hold; the details name the read, the change and its sequence.
 * `result` may be NULL. */
STET_API STET_CHECKED stet_status stet_tx_commit(stet_tx *tx, stet_commit_result *result, stet_error *err);

/* Calls `fn` in a transaction and commits; retries on a conflict. From the fourth attempt on it holds the write lock,
 * so that it can't be overtaken. Any other failure of `fn` aborts the transaction and is returned. */
STET_API STET_CHECKED stet_status stet_space_transact(stet_space *s, const char *branch,
                                                      stet_status (*fn)(stet_tx *tx, void *ctx, stet_error *err),
                                                      void *ctx, stet_commit_result *result, stet_error *err);

/* Runs a piece
 *
 *     stet_pull_request want = STET_PULL_REQUEST_INIT;
 *     want.pattern = "/home/me/site/stet.toml";
 *     stet_value report;
 *     stet_status status = stet_piece_pull(project, &want, NULL, &report, &err);
 *     if (status == STET_OK || status == STET_FAILED) // STET_FAILED: the report says which action failed
 *         stet_value_release(report);
 *
 * Runs the outdated actions that are needed for what is wanted, and nothing else, as `stet run` does. Actions run in
 * this process; commands run under a supervisor of their own (the program `stet-supervise`, found beside the running
 * program, where the library was installed, or in PATH).
 */
typedef struct stet_pull_request {
    size_t size;                /* STET_PULL_REQUEST_INIT sets it */
    const char *space, *branch; /* NULL: "main", the default branch */
    const char *pattern;        /* path of the pattern file; NULL: the piece already exists */
    const char *piece;          /* name of the piece, NAME or NAME@SCOPE; NULL: the name of the pattern */
    const char *scope;          /* of the piece, unless its name has one; NULL is "", the common scope */
    stet_value set;             /* {KEY or /POINTER: value} to set in the argument first; or null */
    stet_value nodes;           /* array of node names: bring only these up to date; or null */
    stet_value demand;          /* array of paths into the result: bring only these up to date; or null */
    int jobs;                   /* commands at the same time; 0: the number of processors */
    bool keep_going;            /* after a command has failed, keep starting commands that do not need it */
    bool dry_run;               /* run nothing and change nothing; the report says what is outdated, and why */
    bool no_retry_failed;       /* run a failed action again only if something that it read has changed */
    /* Polled often. If it returns true, the pull ends with STET_CANCELLED; finished work is stored. NULL: never
     * cancelled. */
    bool (*cancelled)(void *ctx);
    void *ctx;
} stet_pull_request;

#ifdef __cplusplus
#define STET_PULL_REQUEST_INIT STET_SIZED_INIT(stet_pull_request)
#else
#define STET_PULL_REQUEST_INIT                                                                                         \
    { .size = sizeof(stet_pull_request) }
#endif
/* `*result` is the result of the piece with links followed, up to date on one snapshot of each space; of a request with
 * `nodes` or `demand`, these parts of it are up to date. `*report` is what `stet run --json` prints. Either pointer may
 * be NULL; the values belong to the caller. With STET_FAILED (an action failed, in this run or an earlier one) both are
 * still set, and the result holds the last good values. With any other failure neither is set. STET_CONFLICT: other
 * writers kept changing what the result is made of. If only the report is asked for, it says so instead. */
STET_API STET_CHECKED stet_status stet_piece_pull(stet_project *p, const stet_pull_request *request, stet_value *result,
                                                  stet_value *report, stet_error *err);

/* Sends an event to a stream of a piece (`stet run` made the piece from a pattern with handlers). What the handlers
 * read is brought up to date first. Each handler runs in a transaction of its own, and so do handlers of events that a
 * handler sends on; all of them are done when this returns. What follows from the event in computations and effects runs
 * with the next run of the piece. If the first handler fails, nothing is written, and its error is returned. If a later
 * one fails, STET_FAILED is returned though the event was applied; sending it again with its id tries that one again.
 *
 * `stream` is the name of a stream or of a handler ("add"), the key and stream of a child ("items[a].add"), or a path
 * in the result that leads to the stream ("items/0/add"). STET_NOT_FOUND: there is no such piece, stream or child.
 *
 * With an `id` an event is applied once, however often it is sent, even if a sender died before it got the answer. The
 * answer to a repeated event has `applied` false, and the sequence of the first time. The same id with another event is
 * STET_CONFLICT.
 */
typedef struct stet_event {
    size_t size;                /* STET_EVENT_INIT sets it */
    const char *space, *branch; /* NULL: "main", the default branch */
    const char *piece, *stream;
    stet_value value;
    const char *id;    /* NULL: one is generated; up to 200 bytes */
    const char *scope; /* of the piece, unless its name has one; NULL is "", the common scope */
} stet_event;

#ifdef __cplusplus
#define STET_EVENT_INIT STET_SIZED_INIT(stet_event)
#else
#define STET_EVENT_INIT                                                                                                \
    { .size = sizeof(stet_event) }
#endif

typedef struct stet_event_result {
    bool applied;
    int64_t seq;
    char id[201];
} stet_event_result;
/* `result` may be NULL. */
STET_API STET_CHECKED stet_status stet_piece_send(stet_project *p, const stet_event *event, stet_event_result *result,
                                                  stet_error *err);

/* A branch sees its parent as of sequence `at` (negative: now) and keeps its own changes. The cost does not depend on
 * the size of the space. Deletion is soft until `stet gc`; the name can be used again at once. */
STET_API STET_CHECKED stet_status stet_branch_create(stet_space *s, const char *name, const char *parent, int64_t at,
                                                     stet_error *err);
STET_API STET_CHECKED stet_status stet_branch_delete(stet_space *s, const char *name, stet_error *err);

/* Follows the commits of a branch, by any process, in order, each once. `cell` NULL: every document. `after`: the
 * sequence to start after; negative: from now on. */
STET_API STET_CHECKED stet_status stet_space_follow(stet_space *s, const char *branch, const char *cell,
                                                    const char *scope, int64_t after, stet_follower **out,
                                                    stet_error *err);
/* Waits for the next commit that touches the cell. `*event` belongs to the caller:
 *
 *   {"seq", "time", "branch", "changes": [{"id", "scope", "path", "kind"}]}
 *
 * `changes` lists the changed leaves that touch the cell. `kind` is "keys" if the path was added or removed, otherwise
 * "value". Paths are JSON Pointers into the whole document ("/value/n"). STET_BUSY: timeout_ms is over (negative: wait
 * for ever).
 */
STET_API STET_CHECKED stet_status stet_follower_next(stet_follower *f, int timeout_ms, stet_value *event,
                                                     stet_error *err);
STET_API void stet_follower_close(stet_follower *f);

/* Actions
 *
 * An action is a computation of the caller's that reads cells and writes others. Its run is a transaction, to which the
 * caller attaches the identity of the action. What the action read, at which sequence, and what it changed is taken
 * from the transaction itself and stored in the same commit. From then on every commit, by any process, that changes
 * something the action read marks it. After any restart, asking whether the action is up to date costs one index
 * look-up.
 *
 *     stet_cell out = {"report/total", NULL};
 *     stet_action_run run = STET_ACTION_RUN_INIT;
 *     run.key.piece = "report";
 *     run.key.action = "total";
 *     run.implementation = "sum, version 3";
 *     run.writes = &out;
 *     run.write_count = 1;
 *     stet_action_state state;
 *     stet_status status = stet_action_state_of(s, NULL, &run.key, &state, &err); // STET_STATE_UNKNOWN: it never ran
 *     if (status != STET_OK || state == STET_STATE_STANDS)
 *         return status;
 *     stet_tx *tx;
 *     status = stet_tx_begin(s, NULL, &tx, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_value rows;
 *     status = stet_tx_get(tx, "rows", NULL, &rows, &err);
 *     if (status == STET_OK)
 *         status = stet_tx_set(tx, "report/total", NULL, stet_value_int((int64_t)stet_value_count(rows)), &err);
 *     if (status == STET_OK)
 *         status = stet_tx_observe(tx, &run, &err);
 *     if (status == STET_OK)
 *         return stet_tx_commit(tx, NULL, &err); // ends the transaction
 *     stet_tx_abort(tx);
 *
 * A run that changed nothing makes no revision. Its observation waits in a batch, which the handle's next commit,
 * stet_space_sync, any question below and closing the space make durable. Each observation of the batch is kept or dropped on
 * its own: one whose reads no longer hold is dropped without an error, and its action keeps the mark it had. An
 * observation that can't be stored never fails the commit: its action is unknown then. An aborted transaction leaves no
 * observation.
 *
 * Comparing implementations is up to the caller: an action whose code has changed is made unknown with
 * stet_action_distrust, or run again. docs/observations.md says what is stored and how marks come and go.
 */

typedef enum stet_action_kind {
    STET_ACTION_COMPUTATION = 1,
    STET_ACTION_EFFECT = 2,
    STET_ACTION_HANDLER = 3
} stet_action_kind;
typedef enum stet_action_state {
    STET_STATE_STANDS,
    STET_STATE_DIRTY,   /* a later change overlaps what it read, or another writer changed what it wrote */
    STET_STATE_STALE,   /* derived: an action upstream of it is dirty or unknown */
    STET_STATE_UNKNOWN, /* there is no observation that can be trusted */
    STET_STATE_ACCEPTED /* something it read has changed, and somebody has let its result stand: no proof */
} stet_action_state;
typedef enum stet_run_kind {
    /* Records reads only: everything that the transaction wrote is discarded at its commit. */
    STET_RUN_DEPENDENCIES = 1,
    STET_RUN_ACTION = 2,
    STET_RUN_PREFLIGHT = 3
} stet_run_kind;

/* The identity of an action. Its owner space and branch are those of the transaction. */
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
    size_t size; /* STET_ACTION_RUN_INIT sets it */
    stet_action_key key;
    stet_action_kind kind; /* 0: a computation */
    stet_run_kind run;     /* 0: STET_RUN_ACTION */
    int64_t generation;    /* of the graph that the action belongs to, if there is one */
    /* Any text that changes when the code of the action, or what runs it, changes; its hash is stored. NULL is "". */
    const char *implementation, *runtime;
    const char *parent;      /* the action that created this one; NULL: none */
    const stet_cell *writes; /* where it will write; its outputs belong to it entirely */
    size_t write_count;
    /* Cells the action may write. They order it before their readers; they never mark a reader dirty. */
    const stet_cell *envelopes;
    size_t envelope_count;
    const stet_cell *ignored; /* writes that are not outputs: never indexed */
    size_t ignored_count;
    stet_value options; /* {"debounceMs","noDebounce","throttleMs","onRestart"} or null; stays the caller's */
    const char *error;  /* the error message; NULL: it succeeded. Its hash is stored */
    stet_value note;    /* small, for people; null: none. Stays the caller's */
} stet_action_run;

#ifdef __cplusplus
#define STET_ACTION_RUN_INIT STET_SIZED_INIT(stet_action_run)
#else
#define STET_ACTION_RUN_INIT                                                                                           \
    { .size = sizeof(stet_action_run) }
#endif

/* Attaches an observation to a transaction; at most once. Everything is copied. */
STET_API STET_CHECKED stet_status stet_tx_observe(stet_tx *tx, const stet_action_run *run, stet_error *err);

/* "stands" (up to date), "dirty", "stale" or "unknown". */
STET_API const char *stet_action_state_name(stet_action_state state);

/* Questions. Each first stores what is batched and processes what was not processed yet: commits made while observing
 * was off, and marks that other spaces could not deliver. Do not call them inside a transaction of the handle that
 * holds the write lock. The values that they return belong to the caller. */

/* The state of an action; STET_STATE_UNKNOWN also for an action that was never recorded. A failed action stays up to date as
 * long as nothing that it read has changed, because running it again would fail again. Its readers are stale. */
STET_API STET_CHECKED stet_status stet_action_state_of(stet_space *s, const char *branch, const stet_action_key *key,
                                                       stet_action_state *out, stet_error *err);
/* An action as stored, with its state ("failed" for a failed action that is otherwise up to date) and the cause of its
 * mark. STET_NOT_FOUND: the action was never recorded.
 *
 *   {"piece", "scope", "action", "state", "observed", "kind", "run", "generation", "observedAt", "commitSeq",
 *    "timeMs", "implementation", "runtime", "parent"?, "failed", "error"?,
 *    "reads": [{"cell", "scope"?, "space"?, "kind", "seq"}], "changedWrites": [...], "knownWrites",
 *    "declaredWrites", "envelopes", "ignoredWrites", "options", "note", "cause"?, "via"?}
 *
 * `cause` is the newest change that made the action outdated: {"reason","seq","cell","scope"?,"space"?,"kind"}. `via`
 * is the marked or failed action upstream that makes it stale.
 */
STET_API STET_CHECKED stet_status stet_action_get(stet_space *s, const char *branch, const stet_action_key *key,
                                                  stet_value *out, stet_error *err);
typedef struct stet_actions_query {
    size_t size;               /* STET_ACTIONS_QUERY_INIT sets it */
    const char *piece;         /* NULL: all pieces of the branch */
    const char *scope;         /* of the piece; NULL is "" */
    const int64_t *generation; /* NULL: any */
    int64_t after;             /* 0 at first, then the last `*next` */
    size_t limit;              /* 0: 100 */
} stet_actions_query;

#ifdef __cplusplus
#define STET_ACTIONS_QUERY_INIT STET_SIZED_INIT(stet_actions_query)
#else
#define STET_ACTIONS_QUERY_INIT                                                                                        \
    { .size = sizeof(stet_actions_query) }
#endif

/* Actions as stet_action_get returns them but without `via`, in an order that never changes. `*next` is 0 at the end. */
STET_API STET_CHECKED stet_status stet_actions_list(stet_space *s, const char *branch, const stet_actions_query *query,
                                                    stet_value *out, int64_t *next, stet_error *err);
/* How many actions of a piece (NULL: of the branch) are in which state:
 * {"actions","stands","dirty","stale","unknown","failed"}. A failed action is not counted under "stands". */
STET_API STET_CHECKED stet_status stet_actions_count(stet_space *s, const char *branch, const char *piece,
                                                     const char *scope, stet_value *out, stet_error *err);
/* The actions that a write to the cell would mark: {"readers": [...], "writers": [...]}, each
 * {"space","piece","scope","action"}. Readers in other spaces are included; one whose space can't be opened has
 * "number" instead of its name. */
STET_API STET_CHECKED stet_status stet_space_readers(stet_space *s, const char *branch, const char *cell,
                                                     const char *scope, stet_value *out, stet_error *err);
typedef struct stet_changes_query {
    size_t size;           /* STET_CHANGES_QUERY_INIT sets it */
    const char *cell;      /* "ID[/KEY...]" */
    const char *scope;     /* NULL is "" */
    bool shallow;          /* what a shallow read of the cell would notice */
    int64_t after, before; /* sequences above and below; 0: any */
    size_t limit;          /* 0: 100 */
} stet_changes_query;

#ifdef __cplusplus
#define STET_CHANGES_QUERY_INIT STET_SIZED_INIT(stet_changes_query)
#else
#define STET_CHANGES_QUERY_INIT                                                                                        \
    { .size = sizeof(stet_changes_query) }
#endif

/* Changes that overlap a read of the cell, newest first: [{"seq","path","kind"}], as in stet_follower_next. */
STET_API STET_CHECKED stet_status stet_space_changes_after(stet_space *s, const char *branch,
                                                           const stet_changes_query *query, stet_value *out,
                                                           stet_error *err);
/* Counts of the space and of this handle (docs/observations.md):
 * {"actions","observed","dirty","unknown","readRows",...,"runsByCause","unknownByReason","skipped","handle":{...}}. */
STET_API STET_CHECKED stet_status stet_actions_stats(stet_space *s, stet_value *out, stet_error *err);

/* Makes actions unknown (reason "requested"), so that they run again. An action that was never recorded is recorded by
 * name. */
STET_API STET_CHECKED stet_status stet_action_distrust(stet_space *s, const char *branch, const stet_action_key *keys,
                                                       size_t count, stet_error *err);
/* Removes actions of a piece from every table, in other spaces too; all actions of the piece if `keys` is NULL. */
STET_API STET_CHECKED stet_status stet_actions_forget(stet_space *s, const char *branch, const char *piece,
                                                      const char *scope, const stet_action_key *keys, size_t count,
                                                      stet_error *err);
/* Switches observing off or on (the default). While it is off, this handle stores, marks and lists nothing, and stored
 * observations have no effect. After switching on, the first question processes what was committed meanwhile. */
STET_API void stet_actions_switch(stet_space *s, bool on);

/* Persisted results
 *
 * A persist directory keeps the results of code, in files that Git, Dropbox or rsync may carry between machines. An
 * entry says that a block of code (`block_id`, any name), in a certain state of the world (`module_hash`), ran at a
 * certain time and left these contents. The bytes of a content are an object, named by its SHA-256. docs/persist.md
 * describes the directory.
 *
 *     stet_persist_options options = STET_PERSIST_OPTIONS_INIT;
 *     options.dir = "results";
 *     stet_persist *p;
 *     stet_status status = stet_persist_open(&options, &p, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_persist_key key = {"fit", 0, "abcdefghijklmnopqrstuvwxyzABCDEFGH123456789", 0};
 *     stet_persist_entry *entry;
 *     status = stet_persist_get(p, &key, STET_PERSIST_LOAD, NULL, &entry, &err); // STET_NOT_FOUND: a cache miss
 *     if (status == STET_OK) {
 *         const stet_persist_content *content = stet_persist_entry_content(entry, "variables");
 *         if (content && content->bytes)
 *             fwrite(content->bytes, 1, content->size, stdout);
 *         stet_persist_entry_free(entry);
 *     } else if (status == STET_NOT_FOUND) {
 *         stet_error_clear(&err);
 *         key.created_at = stet_persist_now();
 *         stet_persist_put *put = stet_persist_put_begin(p, &key);
 *         stet_persist_put_content(put, "variables", "json");
 *         stet_persist_put_bytes(put, text, strlen(text));  // any number of times: objects may be larger than memory
 *         status = stet_persist_put_end(put, NULL, &err);   // frees put; reports an error of any earlier step
 *     }
 *     stet_persist_close(p);
 *
 * Threads may share a handle; it locks itself. A put in progress belongs to one thread. Any number of processes may
 * share the directory. A put syncs the object but not the log of entries: after a power cut the newest entries may be
 * missing, but never wrong. Nothing runs in the background: a long-lived process calls stet_persist_tick.
 *
 *   STET_BUSY       a lock could not be taken in time; nothing was written
 *   STET_CONFLICT   from a put: the same key already exists with other contents
 *   STET_NOT_FOUND  from a get: there is no entry whose objects are present and right
 *   STET_DENIED     the handle is read-only, or a deletion was refused as unsafe
 */

#define STET_PERSIST_HASH       43      /* characters of a SHA-256 in base64url without padding */
#define STET_PERSIST_INLINE_MAX 1048576 /* STET_PERSIST_LOAD loads objects up to this size */

typedef struct stet_persist stet_persist;
typedef struct stet_persist_entry stet_persist_entry; /* a copy that belongs to whoever asked for it */
typedef struct stet_persist_put stet_persist_put;

/* A cleanup strategy: sets remove[i] for each entry to delete; all are false at first. Entries that are pinned or
 * tagged stay whatever it says. It is called with the directory locked: it may read from the handle, but not write to
 * it. If machines that share the directory are to agree, it decides by keys and sizes alone. */
typedef stet_status (*stet_persist_choose)(void *ctx, const stet_persist_entry *const *entries, size_t count,
                                           bool *remove, stet_error *err);

typedef struct stet_persist_options {
    size_t size;           /* STET_PERSIST_OPTIONS_INIT sets it */
    stet_project *project; /* open this project's directory, where its config.toml says; NULL: open `dir` */
    const char *dir;       /* created by the first put, never by reading */
    const char *local_dir; /* for this machine alone, never synchronised; NULL: DIR/local */
    const char *temp_dir;  /* on the same file system as DIR, otherwise DIR/local/temp is used; NULL: LOCAL/temp */
    /* {"defaults": {...}, "default_cleanup_strategy": {...}} with the options of docs/persist.md, which win over those of
     * the project; or null. */
    stet_value config;
    bool read_only;
    stet_persist_choose choose; /* instead of the default strategy wherever no other is given; NULL: the default */
    void *choose_ctx;
} stet_persist_options;

#ifdef __cplusplus
#define STET_PERSIST_OPTIONS_INIT STET_SIZED_INIT(stet_persist_options)
#else
#define STET_PERSIST_OPTIONS_INIT                                                                                      \
    { .size = sizeof(stet_persist_options) }
#endif

/* The options are copied; a project may be closed while its directory is open. */
STET_API STET_CHECKED stet_status stet_persist_open(const stet_persist_options *options, stet_persist **out,
                                                    stet_error *err);
/* Writes use times and closes. Deletes nothing. NULL is fine. */
STET_API void stet_persist_close(stet_persist *p);
STET_API const char *stet_persist_dir(const stet_persist *p);
/* Why the handle is read-only, or NULL if it may write. */
STET_API const char *stet_persist_read_only(const stet_persist *p);
/* All options as they are in effect, in the form of stet_persist_options.config. Belongs to the caller. */
STET_API stet_value stet_persist_settings(const stet_persist *p);

typedef struct stet_persist_key {
    const char *block_id;
    size_t block_len;        /* 0: strlen */
    const char *module_hash; /* 43 characters */
    uint64_t created_at;     /* UTC milliseconds since the year 1; 0: none (get: the latest) */
} stet_persist_key;
STET_API uint64_t stet_persist_now(void); /* created_at of this moment */

/* Made by the library, which may add members at its end. */
typedef struct stet_persist_content {
    const char *kind;
    const char *id;
    const char *format;
    uint64_t size;
    const char *extra; /* further keys of the content, as TOML: `, mode = 420, path = "x"`; "" if none */
    const char *bytes; /* if loaded: `size` verified bytes and a NUL; otherwise NULL */
} stet_persist_content;

/* What an entry says. Everything returned lives as long as the entry, unless it says otherwise. */
STET_API const stet_persist_key *stet_persist_entry_key(const stet_persist_entry *e); /* its strings are terminated */
STET_API size_t stet_persist_entry_count(const stet_persist_entry *e);                /* of contents */
STET_API const stet_persist_content *stet_persist_entry_at(const stet_persist_entry *e, size_t index); /* by kind */
STET_API const stet_persist_content *stet_persist_entry_content(const stet_persist_entry *e, const char *kind);
STET_API uint64_t stet_persist_entry_size(const stet_persist_entry *e);   /* of all contents */
STET_API int64_t stet_persist_entry_elapsed(const stet_persist_entry *e); /* in ms; -1 if the entry does not say */
STET_API const char *stet_persist_entry_hash(const stet_persist_entry *e);
STET_API bool stet_persist_entry_in_log(const stet_persist_entry *e); /* not in a snapshot yet */
/* A further key of the content of this kind (NULL: of the entry itself): a string or an integer, or null if there is no
 * such key. Belongs to the caller. */
STET_API stet_value stet_persist_entry_extra(const stet_persist_entry *e, const char *kind, const char *key);
STET_API void stet_persist_entry_free(stet_persist_entry *e); /* NULL is fine */

enum {
    STET_PERSIST_EXACT = 1,   /* created_at must be given and match */
    STET_PERSIST_LOAD = 2,    /* load contents up to STET_PERSIST_INLINE_MAX into memory */
    STET_PERSIST_NO_COUNT = 4 /* do not count a hit, a miss or a use */
};
/* The latest entry of block and module whose objects are present and right. If key->created_at is given, the entry is
 * not younger than that. `kinds` is a NULL-terminated list of the kinds that are needed, or NULL for all. An entry that
 * lacks one of them is skipped. */
STET_API STET_CHECKED stet_status stet_persist_get(stet_persist *p, const stet_persist_key *key, unsigned flags,
                                                   const char *const *kinds, stet_persist_entry **entry,
                                                   stet_error *err);
/* Streams an object to a function. The hash is checked at the end: on STET_CORRUPT, discard what was received. The
 * function returns a status other than STET_OK to stop. `sink` NULL: only checks the object. */
typedef stet_status (*stet_persist_sink)(void *ctx, const void *bytes, size_t len, stet_error *err);
STET_API STET_CHECKED stet_status stet_persist_read(stet_persist *p, const char *id, uint64_t size,
                                                    stet_persist_sink sink, void *ctx, stet_error *err);
/* Visits all current entries, sorted by key; the function may use the handle. It returns false to stop. `block_id`
 * NULL: all blocks. */
typedef bool (*stet_persist_each_fn)(void *ctx, const stet_persist_entry *entry);
STET_API STET_CHECKED stet_status stet_persist_each(stet_persist *p, const char *block_id, stet_persist_each_fn fn,
                                                    void *ctx, stet_error *err);

/* Begins a put. Errors are reported by stet_persist_put_end. */
STET_API stet_persist_put *stet_persist_put_begin(stet_persist *p, const stet_persist_key *key);
/* Begins a content. `format` "auto" means the configured one. Each kind at most once. */
STET_API void stet_persist_put_content(stet_persist_put *put, const char *kind, const char *format);
STET_API void stet_persist_put_bytes(stet_persist_put *put, const void *bytes, size_t len);
/* Adds all bytes of a file. Long runs of zeros become holes of the object. */
STET_API void stet_persist_put_file(stet_persist_put *put, const char *path);
/* Stores this content compressed or not, overriding the configuration. */
STET_API void stet_persist_put_compress(stet_persist_put *put, bool compress);
/* Adds a further key to the current content, or to the entry before the first content. */
STET_API void stet_persist_put_string(stet_persist_put *put, const char *key, const char *value);
STET_API void stet_persist_put_int(stet_persist_put *put, const char *key, int64_t value);
STET_API void stet_persist_put_elapsed(stet_persist_put *put, int64_t ms);
/* Stores everything and frees `put`. The entry, if requested, belongs to the caller. Putting the same key with the same
 * contents again is not an error, and stores nothing twice. If a merge of the log is due, it happens here; it deletes
 * no object. */
STET_API STET_CHECKED stet_status stet_persist_put_end(stet_persist_put *put, stet_persist_entry **entry,
                                                       stet_error *err);
STET_API void stet_persist_put_abort(stet_persist_put *put);

typedef enum stet_persist_choice { STET_PERSIST_AS_CONFIGURED, STET_PERSIST_NO, STET_PERSIST_YES } stet_persist_choice;

typedef struct stet_persist_clean_options {
    size_t size;                /* STET_PERSIST_CLEAN_OPTIONS_INIT sets it */
    stet_persist_choose choose; /* NULL: the strategy of the handle */
    void *choose_ctx;
    stet_persist_choice include_content;       /* delete objects too, not only entries */
    stet_persist_choice delete_orphan_objects; /* YES implies content */
    int64_t max_local_bytes;                   /* 0: as configured; -1: none. Works only with content */
    bool dry_run;
    bool force; /* continue although nothing would be kept */
    bool purge; /* no trash: deleted items can't be restored */
} stet_persist_clean_options;

#ifdef __cplusplus
#define STET_PERSIST_CLEAN_OPTIONS_INIT STET_SIZED_INIT(stet_persist_clean_options)
#else
#define STET_PERSIST_CLEAN_OPTIONS_INIT                                                                                \
    { .size = sizeof(stet_persist_clean_options) }
#endif

/* Merges the log and all snapshots into a new one without the entries that the strategy chooses. `*report` is what
 * `stet persist cleanup --json` prints; it belongs to the caller. */
STET_API STET_CHECKED stet_status stet_persist_clean(stet_persist *p, const stet_persist_clean_options *options,
                                                     stet_value *report, stet_error *err);
/* The default strategy by itself, over `count` keys and the sizes of their contents: sets remove[i], true or false, for
 * each. `limits` is an object with members of `default_cleanup_strategy`; one that is absent or -1 is no limit. */
STET_API STET_CHECKED stet_status stet_persist_choose_default(stet_value limits, const stet_persist_key *keys,
                                                              const uint64_t *sizes, size_t count, uint64_t now,
                                                              bool *remove, stet_error *err);
/* For a long-lived process: merges what arrived or is due. *next_ms: call again within this time; -1 if nothing is
 * pending. `next_ms` may be NULL. */
STET_API STET_CHECKED stet_status stet_persist_tick(stet_persist *p, int64_t *next_ms, stet_error *err);
/* Before a long-lived process ends: cleanup with the defaults if cleanup_on_exit is set. A single command never calls
 * this. */
STET_API STET_CHECKED stet_status stet_persist_on_exit(stet_persist *p, stet_error *err);
/* Waits until something changed in the directory, at most timeout_ms (-1: no limit). STET_BUSY: the time is over. */
STET_API STET_CHECKED stet_status stet_persist_wait(stet_persist *p, int timeout_ms, stet_error *err);

typedef struct stet_persist_undeleted {
    uint64_t entries, objects;
} stet_persist_undeleted;
/* Restores deleted items: a whole batch (NULL: every batch), or what belongs to a block or module (either may be NULL).
 * The entries come back through the log. `out` says how many. */
STET_API STET_CHECKED stet_status stet_persist_undelete(stet_persist *p, const char *batch, const char *block_id,
                                                        const char *module_hash, bool dry_run,
                                                        stet_persist_undeleted *out, stet_error *err);
/* Sets or removes a pin or a tag, which protects an entry from every strategy. `tag` NULL is the pin. */
STET_API STET_CHECKED stet_status stet_persist_mark(stet_persist *p, const stet_persist_key *key, const char *tag,
                                                    bool on, stet_error *err);
/* Array of tag names; the pin is "". Belongs to the caller. */
STET_API STET_CHECKED stet_status stet_persist_marks(stet_persist *p, const stet_persist_key *key, stet_value *out,
                                                     stet_error *err);
/* Counts: {"entries","log_entries","call_entries","blocks","modules","pinned","snapshots","content_bytes","objects",
 * "object_bytes","missing_objects","fresh_markers","trash_bytes","hits","misses","saved_ms"}. The last three are of
 * this machine. Belongs to the caller. */
STET_API STET_CHECKED stet_status stet_persist_statistics(stet_persist *p, stet_value *out, stet_error *err);

/* Made by the library, which may add members at its end. */
typedef struct stet_persist_problem {
    const char *what;  /* a sentence */
    const char *where; /* path in the directory */
    bool repaired;
} stet_persist_problem;
typedef void (*stet_persist_found_fn)(void *ctx, const stet_persist_problem *problem);
/* Checks everything: each snapshot, log, entry and object (with its hash). Calls `found` for each problem. With
 * `repair`, repairs all of it: wrong names, corrupt files (moved to the trash), torn logs (rewritten), a snapshot that
 * went away (written again from this machine's copy), entries whose objects are not here (moved to the trash). What
 * stays are files of a version that this program does not know. */
STET_API STET_CHECKED stet_status stet_persist_check(stet_persist *p, bool repair, stet_persist_found_fn found,
                                                     void *ctx, stet_error *err);

/* Operations
 *
 * Each command of the program is an operation with a name, named arguments and a result (docs/reference.md). A context
 * says where an operation works and who receives its events:
 *
 *     stet_context_options options = STET_CONTEXT_OPTIONS_INIT;
 *     options.dir = "/home/me/site";
 *     stet_context *context;
 *     stet_status status = stet_context_new(&options, &context, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_value args = stet_value_object(), result;
 *     stet_value_put(&args, "text", stet_value_string("site"));
 *     status = stet_context_invoke(context, "runs search", args, &result, &err); // stet runs search --text site --json
 *     stet_value_release(args);
 *     stet_value_release(result);
 *     stet_context_free(context);
 *
 * A context is used by one thread at a time. Only stet_context_cancel may be called from any thread, and from a signal
 * handler. Callbacks are called by the thread that invokes, or by a thread that works for it while it waits.
 */
typedef struct stet_context stet_context;

typedef struct stet_context_options {
    size_t size;           /* of this struct, as compiled: STET_CONTEXT_OPTIONS_INIT sets it */
    stet_project *project; /* the project to work on; NULL: found from `dir` by the first operation that needs one */
    const char *dir;       /* the directory that relative paths start from; NULL: the current one */
    void *user;            /* passed to the callbacks, each of which may be NULL */
    /* An event of an operation that streams (`watch`, `run` with watch). A status other than STET_OK ends the
     * operation. */
    stet_status (*event)(void *user, stet_value event, stet_error *err);
    /* Progress of a long operation; `total` is 0 if unknown, `note` may be NULL. */
    void (*progress)(void *user, int64_t done, int64_t total, const char *note);
    void (*warning)(void *user, const char *text);
    /* Bytes of an operation that outputs bytes (`persist get`) instead of a result. NULL: the operation returns a
     * result. */
    stet_status (*output)(void *user, const void *bytes, size_t len, stet_error *err);
} stet_context_options;

#ifdef __cplusplus
#define STET_CONTEXT_OPTIONS_INIT STET_SIZED_INIT(stet_context_options)
#else
#define STET_CONTEXT_OPTIONS_INIT                                                                                      \
    { .size = sizeof(stet_context_options) }
#endif

/* The options (NULL: none) are copied, except for the project, which must outlive the context. */
STET_API STET_CHECKED stet_status stet_context_new(const stet_context_options *options, stet_context **out,
                                                   stet_error *err);
STET_API void stet_context_free(stet_context *context); /* NULL is fine */
/* The running operation ends with STET_CANCELLED the next time it checks, and so does every later one of the context.
 */
STET_API void stet_context_cancel(stet_context *context);

/* Runs the operation with this name: "get", "runs search". `args` is an object with the names of docs/reference.md,
 * with underscores for hyphens, or null. `*result` is what the program prints with --json. It belongs to the caller and
 * is always set, to null if there is none. STET_NOT_FOUND: no such operation. An answer that is not a success (`check`
 * found problems, an action failed in `run`) returns the status that the program exits with, and the result as well. */
STET_API STET_CHECKED stet_status stet_context_invoke(stet_context *context, const char *operation, stet_value args,
                                                      stet_value *result, stet_error *err);
/* Calls: functions that run elsewhere, known by their function and arguments, cached, and alive across restarts of the
 * program that asked (docs/calls.md).
 *
 *     stet_call_spec spec = STET_CALL_SPEC_INIT;
 *     spec.function = "dml+exec://stet-exec-local/cat";
 *     spec.args = stet_value_array();
 *     stet_value_push(&spec.args, stet_value_int(7));
 *     stet_value call;
 *     stet_status status = stet_call_submit(context, &spec, &call, &err);
 *     if (status == STET_OK) {
 *         char *id = stet_json_print(stet_value_get(call, "id"), STET_JSON_CANONICAL, NULL);
 *         printf("%s\n", id);
 *         stet_free(id);
 *     }
 *     stet_value_release(call);
 *     stet_value_release(spec.args);
 *
 * `*call` describes the call as `stet call show --json` does: {"id","state","function","value"?,"failure"?,...}. It
 * belongs to the caller and is always set, to null if there is none. `id` is the id of a call, or its beginning, or that
 * of its node. A call that ended in a failure is STET_FAILED, from all but stet_call_status and stet_call_cancel.
 */
typedef struct stet_call_spec {
    size_t size; /* STET_CALL_SPEC_INIT sets it */
    const char *function;
    stet_value args;    /* array of values, or null: none. Stays the caller's */
    const char *remote; /* the repository whose workers run it; NULL: as configured */
    bool no_cache;      /* run it again even if there is a result */
    int attempts;       /* how often it is tried at most; 0: as configured */
    int64_t timeout_ms; /* the call is given up after this; 0: never */
} stet_call_spec;

#ifdef __cplusplus
#define STET_CALL_SPEC_INIT STET_SIZED_INIT(stet_call_spec)
#else
#define STET_CALL_SPEC_INIT                                                                                            \
    { .size = sizeof(stet_call_spec) }
#endif

/* Starts a call, joins one that is under way, or finds its result. Returns as soon as the call is known to be under
 * way, or has ended. */
STET_API STET_CHECKED stet_status stet_call_submit(stet_context *context, const stet_call_spec *spec, stet_value *call,
                                                   stet_error *err);
/* Waits until a call has ended. STET_BUSY: timeout_ms is over (0: no limit), and the call goes on. A cancelled context
 * ends the waiting, not the call. */
STET_API STET_CHECKED stet_status stet_call_wait(stet_context *context, const char *id, int64_t timeout_ms,
                                                 stet_value *call, stet_error *err);
STET_API STET_CHECKED stet_status stet_call_status(stet_context *context, const char *id, stet_value *call,
                                                   stet_error *err);
/* What the job of a call has written: {"id","ended","stdout","stderr"}, while it runs and afterwards. STET_NOT_FOUND: there
 * is no such call, or nothing of it was kept here. */
STET_API STET_CHECKED stet_status stet_call_logs(stet_context *context, const char *id, stet_value *logs,
                                                 stet_error *err);
/* Gives the call up and ends the programs that run for it. */
STET_API STET_CHECKED stet_status stet_call_cancel(stet_context *context, const char *id, stet_value *call,
                                                   stet_error *err);

/* All operations, by name. Belongs to the caller:
 * [{"name","summary","description","readOnly","destructive","argumentsSchema","resultSchema"}]. */
STET_API stet_value stet_operations(void);

#ifdef __cplusplus
}
#endif
#endif
