/* repo.h - the repository of calls: immutable objects named by their hash, and refs that name objects.
 *
 * Calling sequence
 *
 *     stet_repo *r;
 *     status = stet_repo_open(project, 0, &r, &err);                  // .stet/local/repo.db; nothing is created yet
 *
 *     status = stet_repo_begin(r, &err);                              // one transaction: all of it or nothing
 *     status = stet_repo_put_value(r, value, &datum, &err);           // objects, what they name first
 *     status = stet_node_literal(datum, stet_repo_sink(r), &node, &err);
 *     status = stet_node_call(uri, &node, 1, stet_repo_sink(r), &call, &err);
 *     status = stet_repo_swap(r, &(stet_ref_swap){"refs/exec/UUID", NULL, &dag, false}, 1, &err);
 *     status = stet_repo_commit(r, &err);                             // durable on return
 *
 *     status = stet_repo_pinned(r, call, &there, &exec, &err);        // what the index pins for a call
 *     status = stet_repo_get(r, exec, STET_RECORD_EXEC, &record, &err);
 *     stet_repo_close(r);
 *
 * Objects are the records of exec/record.h. Refs are names that begin with `refs/`:
 *
 *     refs/heads/NAME            a line of commits                              commit
 *     refs/index/NAME            active work; `main` is the one that is asked   commit
 *     refs/exec/UUID             what an attempt works on, and what came of it  any object
 *     refs/exec-claims/KEY       who runs a call                                datum
 *     refs/remotes/REMOTE/NAME   what a remote's head was when last looked at   commit
 *
 * What holds
 *
 *  R1. An object is stored only if everything that it names is stored, and nothing is deleted that something stored
 *      names. So whoever has an object has all of it: `stet_repo_copy` stops where the other side has something.
 *  R2. A ref names an object that is there, of a type that fits its name. It changes only by compare-and-swap.
 *  R3. What is handed out was verified: hash, type and fields. What does not verify is STET_CORRUPT and names the id.
 * An object that was excised is STET_CORRUPT too, with "excised" and the reason. R4. The table of pins is derived: it
 * equals the exec map of the commit that refs/index/main names, in the same transaction. `check` compares them, `check
 * --repair` makes it anew. R5. Attempts are no objects. Deleting all of them loses nothing that a claim does not find
 * again.
 *
 * Functions that write begin and commit by themselves if no transaction is open; within one they belong to it, and the
 * first failure sticks: stet_repo_commit reports it and undoes all. Reads outside a transaction see the newest state,
 * each by itself.
 *
 * Ownership: ids are values. A stet_value that a function gives out belongs to the caller. A handle is used by one
 * thread at a time; any number of handles in any number of processes work on one file, writers queue (db.h).
 *
 * Failure: STET_NOT_FOUND an object or ref that is not there (also: nobody has written the file yet). STET_CONFLICT a
 * swap that came too late, with the ref and what it names now. STET_CORRUPT as said. STET_INVALID a record or a name
 * that is none. STET_LIMIT too large. STET_IO, STET_BUSY as in db.h: nothing has happened.
 *
 * Caveats: what no ref reaches is swept by `stet gc` once it is an hour old (setting repo.gc_grace_s); keep what you
 * put by a ref in the same transaction. */
#ifndef STET_EXEC_REPO_H
#define STET_EXEC_REPO_H

#include "exec/record.h"
#include "project/project.h"

#define STET_REPO_INDEX     "refs/index/main"
#define STET_REF_MAX        512                /* bytes of a ref's name */
#define STET_REPO_TOKEN_MAX ((size_t)64 << 10) /* bytes of an execution token */
#define STET_VALUE_MAX      ((size_t)4 << 20)  /* data that one value is put together from */

typedef struct stet_repo stet_repo;

enum {
    STET_REPO_READ_ONLY = 1, /* never creates, migrates or writes */
    STET_REPO_MUST_EXIST = 2 /* STET_NOT_FOUND instead of an empty repository */
};

/* The repository of a project. The file, and its directory, are made by the first write. */
STET_CHECKED stet_status stet_repo_open(stet_project *p, unsigned flags, stet_repo **out, stet_error *err);
STET_CHECKED stet_status stet_repo_open_path(const char *path, unsigned flags, stet_repo **out, stet_error *err);
/* By a `file:` URI: of a file, of a project (then its repository) or of any other directory (then repo.db in it). What
 * is not there ends in `.db`, or is taken for such a directory. */
STET_CHECKED stet_status stet_repo_open_uri(const char *uri, unsigned flags, stet_repo **out, stet_error *err);
void stet_repo_close(stet_repo *r); /* NULL is fine; undoes an open transaction */
const char *stet_repo_path(const stet_repo *r);
/* Its own `file:` URI, which stet_repo_open_uri takes. Caller frees. */
char *stet_repo_uri(const stet_repo *r);

/* ---- Transactions ---- */

STET_CHECKED stet_status stet_repo_begin(stet_repo *r, stet_error *err);
STET_CHECKED stet_status stet_repo_begin_read(stet_repo *r, stet_error *err); /* one snapshot until commit */
STET_CHECKED stet_status stet_repo_commit(stet_repo *r, stet_error *err);
void stet_repo_rollback(stet_repo *r);
bool stet_repo_in_transaction(const stet_repo *r);
/* Changes whenever somebody else has committed: one cheap look to know whether there is news. */
int64_t stet_repo_news(stet_repo *r);

/* ---- Objects ---- */

/* Stores a record (exec/record.h: an object with its `type`) and gives its id. What is there already stays as it is.
 * STET_NOT_FOUND, with both ids: it names something that is not there. STET_DENIED: it was excised here. */
STET_CHECKED stet_status stet_repo_put(stet_repo *r, stet_value record, stet_record_type type, stet_hash *id,
                                       stet_error *err);
/* The same for bytes from elsewhere that are said to be `id`: verified like everything that is read. */
STET_CHECKED stet_status stet_repo_put_bytes(stet_repo *r, stet_hash id, const char *bytes, size_t len,
                                             stet_error *err);
/* For the functions of exec/record.h: keeps what they make here. Lives as long as the handle. */
const stet_record_sink *stet_repo_sink(stet_repo *r);

STET_CHECKED stet_status stet_repo_get(stet_repo *r, stet_hash id, stet_record_type type, stet_value *out,
                                       stet_error *err);
STET_CHECKED stet_status stet_repo_get_any(stet_repo *r, stet_hash id, stet_record_type *type, stet_value *out,
                                           stet_error *err);
/* Its bytes, appended: verified like everything that is read. */
STET_CHECKED stet_status stet_repo_get_bytes(stet_repo *r, stet_hash id, stet_buf *out, stet_error *err);
/* Is it there? Excised ones are. Nothing is verified. */
STET_CHECKED stet_status stet_repo_has(stet_repo *r, stet_hash id, bool *out, stet_error *err);
/* The one object whose id begins with these hexadecimal digits (6 to 64). STET_INVALID: fewer, or more than one object;
 * STET_NOT_FOUND: none. */
STET_CHECKED stet_status stet_repo_find(stet_repo *r, const char *prefix, stet_hash *out, stet_error *err);

/* ---- Values ----
 *
 * JSON values as data and back. What JSON has no word for is a sigil object: {"/":{"bytes@1":BASE64URL}},
 * {"/":{"uri@1":URI}}, {"/":{"set@1":[...]}}, and {"/":{"map@1":[[KEY,VALUE]...]}} for a map whose keys are not all
 * strings. Every other object is a map with string keys. */
STET_CHECKED stet_status stet_repo_put_value(stet_repo *r, stet_value v, stet_hash *datum, stet_error *err);
/* STET_LIMIT beyond STET_VALUE_MAX data or 500 levels: a few shared data can mean an endless value. Two keys of a map
 * that become one name can't happen. */
STET_CHECKED stet_status stet_repo_value(stet_repo *r, stet_hash datum, stet_value *out, stet_error *err);

/* What a node means, as a datum: the target of a literal; a builtin applied to its inputs (exec/builtin.h); the root of
 * the DAG that an import names, or that the pinned exec of a call has as its result. STET_NOT_FOUND: a call that is not
 * pinned; STET_FAILED: a call whose pinned exec failed, or a builtin that can't (its message says why). What
 * builtins make is stored, or kept by the handle while it only reads. */
STET_CHECKED stet_status stet_repo_eval(stet_repo *r, stet_hash node, stet_hash *datum, stet_error *err);
/* The value of a DAG's root: stet_repo_eval, then stet_repo_value. */
STET_CHECKED stet_status stet_repo_dag_value(stet_repo *r, stet_hash dag, stet_value *out, stet_error *err);
/* A DAG whose root is the literal `v`, without names: what a call's result is. */
STET_CHECKED stet_status stet_repo_put_result(stet_repo *r, stet_value v, stet_hash *dag, stet_error *err);

/* A loose object: a string datum that holds the canonical text of `v`, and that goes away when the ref that names it is
 * swapped with `drop`. For what is rewritten often, such as claims: no heartbeat leaves an object behind. */
STET_CHECKED stet_status stet_repo_put_loose(stet_repo *r, stet_value v, stet_hash *datum, stet_error *err);
STET_CHECKED stet_status stet_repo_get_loose(stet_repo *r, stet_hash datum, stet_value *out, stet_error *err);

/* ---- Refs ---- */

typedef struct stet_ref_swap {
    const char *name;
    const stet_hash *expect; /* what it names now; NULL: it is not there */
    const stet_hash *set;    /* what it shall name; NULL: delete it */
    bool drop;               /* delete what it named, if that was put loose */
} stet_ref_swap;

/* All or none. STET_CONFLICT: one of them does not name what was expected; details {"ref","expected","actual"}. */
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
/* Refs whose names begin with `prefix` ("refs/heads/"; "" is all), sorted by name. */
STET_CHECKED stet_status stet_repo_refs(stet_repo *r, const char *prefix, stet_refs *out, stet_error *err);
void stet_refs_release(stet_refs *refs);
/* NULL, or what is wrong with a name. */
const char *stet_ref_wrong(const char *name);

/* ---- Exec records and pins ---- */

typedef struct stet_exec {
    stet_hash node, result; /* `result` is a DAG, also of an error */
    bool ok;
    int64_t attempt;    /* from 1 */
    stet_value timings; /* an object of milliseconds by name, or null */
} stet_exec;

STET_CHECKED stet_status stet_repo_put_exec(stet_repo *r, const stet_exec *exec, stet_hash *id, stet_error *err);
/* `out->timings` belongs to the caller. */
STET_CHECKED stet_status stet_repo_get_exec(stet_repo *r, stet_hash id, stet_exec *out, stet_error *err);
/* Which exec does the index commit pin for this node? One look at an index; the exec itself is not read. */
STET_CHECKED stet_status stet_repo_pinned(stet_repo *r, stet_hash node, bool *there, stet_hash *exec, stet_error *err);
/* In one transaction: the exec record, a new index commit whose exec map has it, refs/index/main. An earlier pin of the
 * node is replaced; its exec record stays until gc. */
STET_CHECKED stet_status stet_repo_pin_exec(stet_repo *r, const stet_exec *exec, stet_hash *id, stet_error *err);

typedef struct stet_pin {
    stet_hash node, exec; /* an exec of all zeros: no longer pinned */
} stet_pin;
/* Many at once, by one new index commit; a later entry for a node beats an earlier one. `commit` may be NULL. */
STET_CHECKED stet_status stet_repo_pin(stet_repo *r, const stet_pin *pins, size_t count, stet_hash *commit,
                                       stet_error *err);
/* All exec records of a node that are stored, oldest first, into a vector from malloc (free). */
STET_CHECKED stet_status stet_repo_execs(stet_repo *r, stet_hash node, stet_hash **out, size_t *count, stet_error *err);

/* ---- Attempts: work in flight, apart from the records ---- */

typedef struct stet_attempt {
    char execution[37]; /* UUID */
    stet_hash node;
    stet_hash key; /* execution key */
    int state;     /* the executor's; not looked at here */
    int resume;    /* the same: where to go on after a wait */
    bool done;     /* ended: gc may drop the row, and its refs/exec/UUID */
    bool cache;    /* false: its own key, asked for with no cache */
    int64_t retries;
    int64_t next_ms; /* not before */
    int64_t created_ms, updated_ms;
    const char *token; /* newest execution token, any bytes; NULL: none */
    size_t token_len;
    stet_value detail; /* whatever else the executor keeps; an object or null */
} stet_attempt;

/* Adds a row; times are set here. STET_CONFLICT: the execution is there. */
STET_CHECKED stet_status stet_attempt_add(stet_repo *r, const stet_attempt *a, stet_error *err);
/* Replaces all but execution, node, key and created_ms, if the row is in state `from`; else STET_CONFLICT.
 * STET_NOT_FOUND: no such row. */
STET_CHECKED stet_status stet_attempt_move(stet_repo *r, const stet_attempt *a, int from, stet_error *err);
/* `*out` belongs to the caller: stet_attempt_release. */
STET_CHECKED stet_status stet_attempt_get(stet_repo *r, const char *execution, stet_attempt *out, stet_error *err);
STET_CHECKED stet_status stet_attempt_remove(stet_repo *r, const char *execution, stet_error *err);
void stet_attempt_release(stet_attempt *a);

typedef struct stet_attempts {
    stet_attempt *at;
    size_t len, cap;
} stet_attempts;
/* Those of a node (NULL: all), of those `live` only those that are not done; oldest first, at most `limit`. */
STET_CHECKED stet_status stet_attempt_list(stet_repo *r, const stet_hash *node, bool live, size_t limit,
                                           stet_attempts *out, stet_error *err);
void stet_attempts_release(stet_attempts *list);

/* ---- Between repositories ---- */

typedef struct stet_copy_report {
    int64_t objects, bytes; /* that were missing, and were copied */
} stet_copy_report;

/* Copies what `to` lacks of all that the roots reach, and then swaps refs there, in the transaction of the last
 * objects. Everything is verified as it arrives. Objects travel in portions, what they name first, each portion in a
 * transaction: whoever dies in between leaves a `to` in which R1 holds, and the next attempt goes on from there. `to`
 * is not in a transaction. `report` may be NULL. */
STET_CHECKED stet_status stet_repo_copy(stet_repo *from, stet_repo *to, const stet_hash *roots, size_t root_count,
                                        const stet_ref_swap *swaps, size_t swap_count, stet_copy_report *report,
                                        stet_error *err);

/* ---- Upkeep ---- */

#define STET_REPO_GRACE_S 3600

/* Takes the bytes of an object away for good and leaves a tombstone with the reason: it reads as STET_CORRUPT, and is
 * not stored again. Of data, nodes, DAGs and exec records; the history itself stays. Pins of calls whose result it was
 * are misses for whoever reads them. The file is rewritten, so that nothing is left in unused pages. Not in a
 * transaction. */
STET_CHECKED stet_status stet_repo_excise(stet_repo *r, stet_hash id, const char *reason, stet_error *err);

typedef struct stet_repo_gc_opts {
    bool dry_run;
    int64_t grace_s; /* what is younger stays; negative: STET_REPO_GRACE_S */
} stet_repo_gc_opts;
typedef struct stet_repo_gc_report {
    int64_t objects, bytes, refs, attempts, incoming;
} stet_repo_gc_report;
/* Deletes what no ref reaches: in one transaction, so that nobody sees a part of it. Attempts that are done go with
 * their refs/exec/UUID. STET_CORRUPT: something that is needed can't be read, and nothing was deleted. */
STET_CHECKED stet_status stet_repo_gc(stet_repo *r, const stet_repo_gc_opts *opts, stet_repo_gc_report *report,
                                      stet_error *err);

/* Verifies every object, that what they name is there, every ref, the exec maps, and what is derived from them. A line
 * in `problems` for each problem. `repair` makes derived tables anew, deletes objects that are damaged (a fetch or a
 * run brings them again), and unpins calls whose result is no longer whole. */
STET_CHECKED stet_status stet_repo_check(stet_repo *r, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                                         stet_error *err);

#endif
