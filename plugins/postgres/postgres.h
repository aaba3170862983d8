/* postgres.h - what the files of the PostgreSQL plug-in share.
 *
 * address.c takes addresses apart, connection.c asks questions and connects again, schema.c makes and describes the
 * tables, object.c has objects and refs, claim.c has claims and workers, blob.c has blobs, check.c looks at everything.
 */
#ifndef STET_PLUGIN_POSTGRES_H
#define STET_PLUGIN_POSTGRES_H

#include <libpq-fe.h>

#include "repo/hub_library_calls.h"

#define PG_SCHEMA_VERSION 1
#define PG_ANSWER_MS      60000    /* how long an answer may take */
#define PG_AGAIN_MS       10000    /* how long a lost connection is tried to be had again */
#define PG_TRIES          4        /* of one question */
#define PG_RENEW_MS       "600000" /* an object that is asked for is renewed this long after the last time */

typedef struct pg_address {
    char *conninfo; /* without what is stet's own */
    char *schema;
    char *shown; /* for messages: without options */
} pg_address;
stet_status pg_address_parse(const char *uri, pg_address *out, stet_error *err);
void pg_address_release(pg_address *a);

typedef struct pg {
    pg_address address;
    PGconn *c;       /* NULL: not connected */
    char **prepared; /* texts of statements that this connection knows, in order of their numbers */
    size_t prepared_count;
    int64_t news;
    bool lost;     /* the last failure was that of the connection: what was asked may have happened or not */
    char state[6]; /* SQLSTATE of the last failure, or "" */
} pg;

/* Connects. Nothing is asked yet of the hub itself. */
stet_status pg_connect(pg *p, stet_error *err);
void pg_disconnect(pg *p);
/* Drops a connection whose other end is gone, so that the next question does not have to find out. */
void pg_look(pg *p);

#define PG_ARGS 10
typedef struct pg_args {
    int count;
    const char *values[PG_ARGS];
    int lengths[PG_ARGS], formats[PG_ARGS];
    char numbers[PG_ARGS][24];
} pg_args;
void pg_arg_bytes(pg_args *a, const void *bytes, size_t len);
void pg_arg_id(pg_args *a, const stet_hash *id); /* NULL or zeros: null */
void pg_arg_int(pg_args *a, int64_t v);
void pg_arg_text(pg_args *a, const char *text);
void pg_arg_buf(pg_args *a, const stet_buf *b); /* an array, as made by the functions below */

/* Arrays in PostgreSQL's binary form. */
enum { PG_BOOL = 16, PG_BYTEA = 17, PG_INT8 = 20, PG_INT2 = 21 };
void pg_array_begin(stet_buf *b, int type, size_t count);
void pg_array_bytes(stet_buf *b, const void *bytes, size_t len);
void pg_array_int2(stet_buf *b, int v);
void pg_array_int8(stet_buf *b, int64_t v);
void pg_array_bool(stet_buf *b, bool v);
void pg_array_ids(stet_buf *b, const stet_hash *ids, size_t count);

/* Asks once. `*out` is NULL after a failure; otherwise PQclear. */
stet_status pg_ask(pg *p, const char *sql, const pg_args *a, PGresult **out, stet_error *err);
/* Asks something that may be asked twice: connects again and repeats, with a bound. */
stet_status pg_ask_again(pg *p, const char *sql, const pg_args *a, PGresult **out, stet_error *err);
/* The same where the answer is not looked at. */
stet_status pg_tell(pg *p, const char *sql, stet_error *err);
/* Passes each row as it arrives: no more than a few are in memory. After a failure of `row` the rest is dropped. */
typedef stet_status pg_row(void *ctx, const PGresult *r, int row, stet_error *err);
stet_status pg_each(pg *p, const char *sql, const pg_args *a, pg_row *row, void *ctx, stet_error *err);
/* Is it worth asking again? Then the connection is had again, if it was lost, and `err` is cleared. */
bool pg_try_again(pg *p, int *tries, stet_error *err);

int64_t pg_int(const PGresult *r, int row, int column); /* of an int8 */
bool pg_id(const PGresult *r, int row, int column, stet_hash *out);

/* A sound hub of this version? */
stet_status pg_schema_check(pg *p, stet_error *err);
stet_status pg_init(const char *uri, bool *changed, stet_error *err);

stet_status pg_refs(stet_hub *h, const char *prefix, stet_refs *out, stet_error *err);
stet_status pg_have(void *ctx, const stet_hash *ids, size_t count, bool *out, stet_error *err);
stet_status pg_get(void *ctx, const stet_hash *ids, size_t count, stet_take_fn *take, void *take_ctx, stet_error *err);
stet_status pg_put(void *ctx, const stet_pack *pack, const stet_ref_swap *swaps, size_t count, stet_error *err);
stet_status pg_gc(stet_hub *h, int64_t grace_s, stet_hub_gc_report *report, stet_error *err);

stet_status pg_get_claim(stet_hub *h, stet_hash key, bool *there, stet_hub_claim *out, stet_error *err);
stet_status pg_swap_claim(stet_hub *h, stet_hash key, const stet_hash *expect, const stet_hub_claim *next,
                          const char *text, size_t len, stet_error *err);
stet_status pg_find_claims(stet_hub *h, stet_hub_which which, int64_t before_ms, size_t limit, stet_hub_keys *out,
                           stet_error *err);
stet_status pg_now(stet_hub *h, int64_t *ms, stet_error *err);
int64_t pg_news(stet_hub *h);
void pg_wait(stet_hub *h, int64_t news, int timeout_ms);
stet_status pg_announce(stet_hub *h, const char *name, const char *body, size_t len, int64_t for_ms, stet_error *err);
stet_status pg_list_workers(stet_hub *h, stet_hub_workers *out, stet_error *err);

stet_status pg_has_blob(stet_hub *h, stet_hash hash, bool *there, int64_t *size, stet_error *err);
stet_status pg_put_blob(stet_hub *h, stet_hash hash, stet_hub_source *source, void *ctx, stet_error *err);
stet_status pg_get_blob(stet_hub *h, stet_hash hash, int64_t offset, stet_hub_sink *sink, void *ctx, stet_error *err);

stet_status pg_count(stet_hub *h, stet_hub_counts *out, stet_error *err);
stet_status pg_check(stet_hub *h, stet_buf *problems, size_t *found, stet_error *err);

#endif
