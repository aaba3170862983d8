/* repo.h - the repository of calls: immutable objects named by their hash, and refs that name objects.
 *
 * Calling sequence
 *
 *     stet_repo *r;
 *     stet_status status = stet_repo_open(project, 0, &r, &err); // .stet/local/repo.db; nothing is created yet
 *     if (status != STET_OK)
 *         return status;
 *
 *     stet_hash datum, node, call, dag;
 *     status = stet_repo_begin(r, &err); // one transaction: all of it or nothing
 *     if (status == STET_OK)             // objects, after what they name
 *         status = stet_repo_put_value(r, value, &datum, &err);
 *     if (status == STET_OK)
 *         status = stet_node_literal(datum, stet_repo_sink(r), &node, &err);
 *     if (status == STET_OK)
 *         status = stet_node_call(uri, &node, 1, stet_repo_sink(r), &call, &err);
 *     if (status == STET_OK)
 *         status = stet_dag_id(call, stet_value_null(), stet_repo_sink(r), &dag, &err);
 *     if (status == STET_OK)
 *         status = stet_repo_swap(r, &(stet_ref_swap){"refs/exec/UUID", NULL, &dag}, 1, &err);
 *     status = stet_repo_commit(r, &err); // durable on return; reports the first failure and undoes everything
 *
 *     bool there;
 *     stet_hash exec;
 *     if (status == STET_OK) // what the index pins for a call
 *         status = stet_repo_pinned(r, call, &there, &exec, &err);
 *     stet_value record;
 *     if (status == STET_OK && there)
 *         status = stet_repo_get(r, exec, STET_RECORD_EXEC, &record, &err);
 *     stet_repo_close(r);
 *
 * Objects are the records of repo/record.h. Refs are names that begin with `refs/`:
 *
 *   refs/heads/NAME            a commit: a line of commits
 *   refs/index/NAME            a commit: active work; `main` is the one that is looked up
 *   refs/exec/UUID             any object: the input and the outcome of an attempt
 *   refs/remotes/REMOTE/NAME   a commit: a remote's head when it was last fetched
 *
 * Invariants
 *
 *   R1. An object is stored only if everything that it names is stored, and nothing is deleted that a stored object
 *       names. So whoever has an object has all of it: `stet_repo_copy` stops where the other side has an object.
 *   R2. A ref names a stored object, of a type that fits its name. It changes only by compare-and-swap.
 *   R3. What is handed out was verified: hash, type and fields. An object that can't be verified is STET_CORRUPT, and
 *       the message names its id. An excised object is STET_CORRUPT too, with "excised" and the reason.
 *   R4. The table of pins is derived: it equals the exec map of the commit that refs/index/main names, in the same
 *       transaction. `check` compares them, `check --repair` rebuilds the table.
 *   R5. Attempts are not objects. Deleting all of them loses only what the claims can restore.
 *
 * Functions that write begin and commit by themselves if no transaction is open. Within a transaction they are part of
 * it, and the first failure sticks: stet_repo_commit reports it and undoes everything. Each read outside a transaction
 * sees the newest state.
 *
 * Ownership: ids are values. A stet_value that a function returns belongs to the caller. A handle is used by one thread
 * at a time; any number of handles in any number of processes work on one file, and writers queue (db.h).
 *
 * Failures:
 *
 *   STET_NOT_FOUND      an object or ref does not exist (also: the file was never written)
 *   STET_CONFLICT       a swap came too late; the details have the ref and what it names now
 *   STET_CORRUPT        see R3
 *   STET_INVALID        not a valid record or name
 *   STET_LIMIT          too large
 *   STET_IO, STET_BUSY  as in db.h: nothing has happened
 *
 * Caveat: `stet gc` deletes objects that no ref, claim or attempt reaches once they are an hour old (setting
 * repo.gc_grace_s); a call that is reached keeps all of its exec records. Make a ref to what you put in the same
 * transaction.
 */
#ifndef STET_EXEC_REPO_H
#define STET_EXEC_REPO_H

#include "project/project.h"
#include "repo/record.h"

#define STET_REPO_INDEX     "refs/index/main"
#define STET_REF_MAX        512                /* bytes of a ref's name */
#define STET_REPO_TOKEN_MAX ((size_t)64 << 10) /* bytes of an execution token */
#define STET_VALUE_MAX      ((size_t)4 << 20)  /* maximum number of data in one value */

typedef struct stet_repo stet_repo;

enum {
    STET_REPO_READ_ONLY = 1, /* never creates, migrates or writes */
    STET_REPO_MUST_EXIST = 2 /* STET_NOT_FOUND instead of an empty repository */
};

/* Opens the repository of a project. The first write creates the file and its directory. */
STET_CHECKED stet_status stet_repo_open(stet_project *p, unsigned flags, stet_repo **out, stet_error *err);
STET_CHECKED stet_status stet_repo_open_path(const char *path, unsigned flags, stet_repo **out, stet_error *err);
/* Opens a repository by a `file:` URI: of a file, of a project (then its repository) or of any other directory (then
 * repo.db in it). A path that does not exist is a file if it ends in `.db`, otherwise such a directory. */
STET_CHECKED stet_status stet_repo_open_uri(const char *uri, unsigned flags, stet_repo **out, stet_error *err);
void stet_repo_close(stet_repo *r); /* NULL is fine; rolls back an open transaction */
const char *stet_repo_path(const stet_repo *r);
/* The `file:` URI of the repository, for stet_repo_open_uri. Caller frees. */
char *stet_repo_uri(const stet_repo *r);

STET_CHECKED stet_status stet_repo_begin(stet_repo *r, stet_error *err);
STET_CHECKED stet_status stet_repo_begin_read(stet_repo *r, stet_error *err); /* one snapshot until commit */
STET_CHECKED stet_status stet_repo_commit(stet_repo *r, stet_error *err);
void stet_repo_rollback(stet_repo *r);
bool stet_repo_in_transaction(const stet_repo *r);
/* Changes whenever another handle has committed: a cheap way to notice changes. */
int64_t stet_repo_news(stet_repo *r);

/* Stores a record (repo/record.h: an object with its `type`) and returns its id. An existing object stays as it is; one
 * whose bytes were damaged is mended.
 * STET_NOT_FOUND, with both ids: it names an object that is not stored. STET_DENIED: it was excised here. */
STET_CHECKED stet_status stet_repo_put(stet_repo *r, stet_value record, stet_record_type type, stet_hash *id,
                                       stet_error *err);
/* The same for bytes from elsewhere that should be `id`; they are verified. */
STET_CHECKED stet_status stet_repo_put_bytes(stet_repo *r, stet_hash id, const char *bytes, size_t len,
                                             stet_error *err);
/* For the functions of repo/record.h: stores what they make here. Lives as long as the handle. */
const stet_record_sink *stet_repo_sink(stet_repo *r);

STET_CHECKED stet_status stet_repo_get(stet_repo *r, stet_hash id, stet_record_type type, stet_value *out,
                                       stet_error *err);
STET_CHECKED stet_status stet_repo_get_any(stet_repo *r, stet_hash id, stet_record_type *type, stet_value *out,
                                           stet_error *err);
/* Appends the bytes of an object, verified. */
STET_CHECKED stet_status stet_repo_get_bytes(stet_repo *r, stet_hash id, stet_buf *out, stet_error *err);
/* Is the object stored? True for excised ones. Nothing is verified. */
STET_CHECKED stet_status stet_repo_has(stet_repo *r, stet_hash id, bool *out, stet_error *err);
/* The only object whose id begins with these hexadecimal digits (6 to 64). STET_INVALID: too few digits, or several
 * objects. STET_NOT_FOUND: none. */
STET_CHECKED stet_status stet_repo_find(stet_repo *r, const char *prefix, stet_hash *out, stet_error *err);

/* JSON values as data and back. What JSON can't express is a sigil object:
 *
 *   {"/":{"bytes@1":BASE64URL}}           bytes
 *   {"/":{"blob@1":{"id":DATUM,"sha256":HEX,"size":N}}}
 *                                         bytes that are too many for a value; the repository must have them
 *   {"/":{"uri@1":URI}}                   a URI
 *   {"/":{"set@1":[...]}}                 a set
 *   {"/":{"map@1":[[KEY,VALUE]...]}}      a map whose keys are not all strings
 *
 * Every other object is a map with string keys.
 */
STET_CHECKED stet_status stet_repo_put_value(stet_repo *r, stet_value v, stet_hash *datum, stet_error *err);
/* STET_LIMIT: more than STET_VALUE_MAX data or 500 levels, because a few shared data can represent an endless value.
 * Two keys of a map never become the same name. */
STET_CHECKED stet_status stet_repo_value(stet_repo *r, stet_hash datum, stet_value *out, stet_error *err);

/* The content of a file, from here to its end or for `most` bytes (negative: all of them): a datum of bytes if it fits
 * into STET_BLOB_PART, otherwise of a blob. It is never in memory as a whole. Outside of a transaction it is stored in
 * portions: what a failure leaves is swept by gc. `name` is for messages. */
#define STET_BLOB_PART ((size_t)256 << 10)
STET_CHECKED stet_status stet_repo_put_file(stet_repo *r, int fd, const char *name, int64_t most, stet_hash *datum,
                                            stet_error *err);
/* Writes such a content to a file. STET_CORRUPT, STET_NOT_FOUND: it is damaged, or a part is missing; what was written is
 * not to be used. STET_INVALID: the datum is no content. */
STET_CHECKED stet_status stet_repo_write_file(stet_repo *r, stet_hash datum, int fd, const char *path, stet_error *err);
/* The same from and to whatever calls. A source fills the buffer, less only at the end. What lies before `offset` is not
 * passed; a content that is read from the beginning is verified. */
typedef stet_status stet_repo_source(void *ctx, void *bytes, size_t room, size_t *got, stet_error *err);
typedef stet_status stet_repo_sink_fn(void *ctx, const void *bytes, size_t len, stet_error *err);
STET_CHECKED stet_status stet_repo_put_content(stet_repo *r, stet_repo_source *source, void *ctx, stet_hash *datum,
                                               int64_t *size, stet_error *err);
STET_CHECKED stet_status stet_repo_get_content(stet_repo *r, stet_hash datum, int64_t offset, stet_repo_sink_fn *sink,
                                               void *ctx, stet_error *err);
/* Is the value a blob? Then `*datum` is its id. */
bool stet_value_is_blob(stet_value v, stet_hash *datum);

/* Evaluates a node to a datum: the target of a literal; a builtin applied to its inputs (repo/builtin.h); the root of
 * the DAG that an import names, or that is the result of a call's pinned exec. STET_NOT_FOUND: the call is not pinned.
 * STET_FAILED: the call's pinned exec failed, or the builtin failed (the message says why). Results of builtins are
 * stored; a read-only handle keeps them in memory. */
STET_CHECKED stet_status stet_repo_eval(stet_repo *r, stet_hash node, stet_hash *datum, stet_error *err);
/* The value of a DAG's root: stet_repo_eval, then stet_repo_value. */
STET_CHECKED stet_status stet_repo_dag_value(stet_repo *r, stet_hash dag, stet_value *out, stet_error *err);
/* Makes a DAG whose root is the literal `v`, without names: the form of a call's result. */
STET_CHECKED stet_status stet_repo_put_result(stet_repo *r, stet_value v, stet_hash *dag, stet_error *err);

typedef struct stet_ref_swap {
    const char *name;
    const stet_hash *expect; /* what it names now; NULL: it does not exist */
    const stet_hash *set;    /* what it will name; NULL: delete it */
} stet_ref_swap;

/* Swaps all refs or none. STET_CONFLICT: a ref does not name what was expected; details {"ref","expected","actual"}. */
STET_CHECKED stet_status stet_repo_swap(stet_repo *r, const stet_ref_swap *swaps, size_t count, stet_error *err);
/* `*there` false: no such ref. */
STET_CHECKED stet_status stet_repo_ref(stet_repo *r, const char *name, bool *there, stet_hash *out, stet_error *err);

typedef struct stet_ref {
    char *name;
    stet_hash target;
} stet_ref;
typedef struct stet_refs {
    stet_ref *at;
    size_t len, cap;
} stet_refs;
/* Refs with this prefix ("refs/heads/"; "" is all), sorted by name. */
STET_CHECKED stet_status stet_repo_refs(stet_repo *r, const char *prefix, stet_refs *out, stet_error *err);
void stet_refs_release(stet_refs *refs);
/* What is wrong with a ref name; NULL if it is valid. */
const char *stet_ref_wrong(const char *name);

typedef struct stet_exec {
    stet_hash node, result; /* `result` is a DAG, also for an error */
    bool ok;
    int64_t attempt;    /* from 1 */
    stet_value timings; /* an object of milliseconds by name, or null */
} stet_exec;

STET_CHECKED stet_status stet_repo_put_exec(stet_repo *r, const stet_exec *exec, stet_hash *id, stet_error *err);
/* `out->timings` belongs to the caller. */
STET_CHECKED stet_status stet_repo_get_exec(stet_repo *r, stet_hash id, stet_exec *out, stet_error *err);
/* The exec that the index commit pins for this node. One look-up in an index; the exec itself is not read. */
STET_CHECKED stet_status stet_repo_pinned(stet_repo *r, stet_hash node, bool *there, stet_hash *exec, stet_error *err);
/* In one transaction: stores the exec record, makes a new index commit whose exec map has it, and moves
 * refs/index/main. An earlier pin of the node is replaced; its exec record stays. */
STET_CHECKED stet_status stet_repo_pin_exec(stet_repo *r, const stet_exec *exec, stet_hash *id, stet_error *err);

typedef struct stet_pin {
    stet_hash node, exec; /* an exec of all zeros: remove the pin */
} stet_pin;
/* Sets many pins with one new index commit; a later entry for a node wins. `commit` may be NULL. */
STET_CHECKED stet_status stet_repo_pin(stet_repo *r, const stet_pin *pins, size_t count, stet_hash *commit,
                                       stet_error *err);
/* All stored exec records of a node, oldest first, in an array from malloc (free). */
STET_CHECKED stet_status stet_repo_execs(stet_repo *r, stet_hash node, stet_hash **out, size_t *count, stet_error *err);

typedef struct stet_attempt {
    char execution[37]; /* UUID */
    stet_hash node;
    stet_hash key; /* execution key */
    int state;     /* the executor's; not used here */
    int resume;    /* the executor's: the state to continue with after a wait */
    bool done;     /* ended: gc may delete the row and its refs/exec/UUID */
    bool cache;    /* false: has its own key, because caching was off */
    int64_t retries;
    int64_t next_ms; /* do not continue before this time */
    int64_t created_ms, updated_ms;
    const char *token; /* newest execution token, any bytes; NULL: none */
    size_t token_len;
    stet_value detail; /* other data of the executor; an object or null */
} stet_attempt;

/* Adds a row and sets its times. STET_CONFLICT: the execution already exists. */
STET_CHECKED stet_status stet_attempt_add(stet_repo *r, const stet_attempt *a, stet_error *err);
/* Replaces everything except execution, node, key and created_ms, if the row is in state `from`; otherwise
 * STET_CONFLICT. STET_NOT_FOUND: no such row. */
STET_CHECKED stet_status stet_attempt_move(stet_repo *r, const stet_attempt *a, int from, stet_error *err);
/* `*out` belongs to the caller: stet_attempt_release. */
STET_CHECKED stet_status stet_attempt_get(stet_repo *r, const char *execution, stet_attempt *out, stet_error *err);
STET_CHECKED stet_status stet_attempt_remove(stet_repo *r, const char *execution, stet_error *err);
void stet_attempt_release(stet_attempt *a);

typedef struct stet_attempts {
    stet_attempt *at;
    size_t len, cap;
} stet_attempts;
typedef struct stet_attempt_filter {
    const stet_hash *node; /* NULL: of any node */
    bool live;             /* only attempts that are not done */
    uint32_t states;       /* one bit for each state wanted (1 << state); 0: any state */
    size_t limit;          /* maximum number; 0: no limit */
} stet_attempt_filter;
/* Newest first, by an index: the cost is that of the rows returned, unless `states` leaves out many. `filter` NULL: all
 * of them. `total` (may be NULL) counts what matches, without regard to the limit. */
STET_CHECKED stet_status stet_attempt_list(stet_repo *r, const stet_attempt_filter *filter, stet_attempts *out,
                                           int64_t *total, stet_error *err);
/* The attempts whose execution, or the hex digits of whose node, start with `prefix`. Newest first, at most `limit`. */
STET_CHECKED stet_status stet_attempt_find(stet_repo *r, const char *prefix, size_t limit, stet_attempts *out,
                                           stet_error *err);
void stet_attempts_release(stet_attempts *list);

typedef struct stet_copy_report {
    int64_t objects, bytes; /* missing objects that were copied */
} stet_copy_report;

/* Copies everything that the roots reach and `to` lacks, and then swaps refs there, in the transaction of the last
 * objects. Everything is verified as it arrives. Objects travel in portions, after what they name, each portion in one
 * transaction. If the process dies in between, R1 holds in `to`, and the next attempt continues from there. `to` must
 * not be in a transaction. `report` may be NULL. */
STET_CHECKED stet_status stet_repo_copy(stet_repo *from, stet_repo *to, const stet_hash *roots, size_t root_count,
                                        const stet_ref_swap *swaps, size_t swap_count, stet_copy_report *report,
                                        stet_error *err);

#define STET_REPO_GRACE_S 3600

/* Permanently removes the bytes of an object and leaves a tombstone with the reason: the object reads as STET_CORRUPT
 * and can't be stored again. It works for data, nodes, DAGs and exec records; the history itself stays. Pins of calls
 * with that result become cache misses. The file is rewritten, so that nothing is left in unused pages. Not allowed in
 * a transaction. */
STET_CHECKED stet_status stet_repo_excise(stet_repo *r, stet_hash id, const char *reason, stet_error *err);

typedef struct stet_repo_gc_opts {
    bool dry_run;
    int64_t grace_s; /* younger objects stay; negative: STET_REPO_GRACE_S */
} stet_repo_gc_opts;
#define STET_REPO_ABANDONED_S ((int64_t)7 * 24 * 3600)
typedef struct stet_repo_gc_report {
    int64_t objects, bytes, refs, attempts, incoming;
    int64_t blobs, blob_bytes; /* of a hub (hub.h); their bytes lie in objects */
} stet_repo_gc_report;
/* Deletes what no ref and no claim reaches, in one transaction, so that nobody sees a part of it. Finished attempts are
 * deleted with their refs/exec/UUID; so are refs/exec/UUID of executors elsewhere after STET_REPO_ABANDONED_S.
 * STET_CORRUPT: something that is needed can't be read, and nothing was deleted. */
STET_CHECKED stet_status stet_repo_gc(stet_repo *r, const stet_repo_gc_opts *opts, stet_repo_gc_report *report,
                                      stet_error *err);

/* Verifies every object, that the objects they name exist, every ref, the exec maps, and what is derived from them.
 * Adds a line to `problems` for each problem. `repair` rebuilds derived tables, deletes damaged objects (a fetch or a
 * run brings them back), and unpins calls whose result is incomplete. */
STET_CHECKED stet_status stet_repo_check(stet_repo *r, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                                         stet_error *err);

#endif
