/* check.c - counts what a hub in PostgreSQL has, and looks at all of it. */

#include <stdlib.h>

#include "postgres.h"

stet_status pg_count(stet_hub *h, stet_hub_counts *out, stet_error *err) {
    PGresult *r;
    /* Objects can be too many to count: above a million the server's estimate is taken. */
    stet_status status = pg_ask_again(
        h->ctx,
        "SELECT (SELECT version FROM hub), CASE WHEN e > 1000000 THEN e ELSE (SELECT count(*) FROM object) END, "
        "pg_total_relation_size('object'::regclass), (SELECT count(*) FROM ref), (SELECT count(*) FROM blob), (SELECT "
        "coalesce(sum(size), 0)::bigint FROM blob), (SELECT count(*) FROM claim WHERE phase = 0), (SELECT count(*) "
        "FROM claim WHERE phase = 1 AND lease_ms > now_ms()), (SELECT count(*) FROM claim WHERE phase = 1 AND lease_ms "
        "<= now_ms()), (SELECT count(*) FROM claim WHERE phase = 2) FROM (SELECT reltuples::bigint AS e FROM pg_class "
        "WHERE oid = 'object'::regclass) c",
        NULL, &r, err);
    if (status != STET_OK)
        return status;
    int64_t *to[] = {&out->schema,     &out->objects, &out->bytes, &out->refs,   &out->blobs,
                     &out->blob_bytes, &out->queued,  &out->held,  &out->lapsed, &out->ended};
    for (int i = 0; i < 10; i++)
        *to[i] = pg_int(r, 0, i);
    PQclear(r);
    return STET_OK;
}

typedef struct looking {
    stet_buf *problems;
    size_t found;
    STET_VEC(stet_hash) hashes; /* of blobs */
} looking;

static void say(looking *l, const char *what, stet_hash id, const char *why) {
    l->found++;
    stet_buf_printf(l->problems, "%s %s %s\n", what, stet_hash_print(id).text, why);
}

static int by_id(const void *a, const void *b) {
    const stet_record_name *x = a, *y = b;
    return memcmp(x->id.bytes, y->id.bytes, sizeof x->id.bytes);
}

/* How many different objects it names. */
static int64_t count_names(stet_record_list *names) {
    int64_t n = 0;
    if (names->len)
        qsort(names->at, names->len, sizeof *names->at, by_id);
    for (size_t i = 0; i < names->len; i++)
        n += i == 0 || by_id(&names->at[i - 1], &names->at[i]) != 0;
    return n;
}

static stet_status look_at_object(void *ctx, const PGresult *r, int row, stet_error *err) {
    looking *l = ctx;
    stet_hash id;
    stet_record_type type = STET_RECORD_DATUM;
    stet_value record;
    stet_record_list names = {0};
    (void)err;
    bool fine = pg_id(r, row, 0, &id), lost = *PQgetvalue(r, row, 2) != 0;
    if (fine && !lost) {
        fine = stet_record_read_any(id, PQgetvalue(r, row, 3), (size_t)PQgetlength(r, row, 3), &type, &record, NULL) ==
               STET_OK;
        if (fine) {
            stet_record_named(record, type, &names);
            stet_value_release(record);
        }
    }
    if (!fine || (!lost && (int64_t)type != pg_int(r, row, 1)))
        say(l, "object", id, "is damaged");
    else if (!lost && count_names(&names) != pg_int(r, row, 4))
        say(l, "object", id, "is not tied to what it names");
    stet_vec_release(&names);
    return STET_OK;
}

static stet_status look_at_claim(void *ctx, const PGresult *r, int row, stet_error *err) {
    stet_hash key;
    (void)err;
    pg_id(r, row, 0, &key);
    say(ctx, "the claim of key", key, "is damaged");
    return STET_OK;
}

static stet_status note_blob(void *ctx, const PGresult *r, int row, stet_error *err) {
    looking *l = ctx;
    stet_hash hash;
    (void)err;
    if (pg_id(r, row, 0, &hash))
        *stet_vec_add(&l->hashes) = hash;
    return STET_OK;
}

static stet_status add_bytes(void *ctx, const void *bytes, size_t len, stet_error *err) {
    (void)err;
    stet_hasher_add(ctx, bytes, len);
    return STET_OK;
}

stet_status pg_check(stet_hub *h, stet_buf *problems, size_t *found, stet_error *err) {
    looking l = {.problems = problems};
    stet_status status = pg_each(
        h->ctx, "SELECT id, type::bigint, lost, bytes, (SELECT count(*) FROM edge WHERE parent = number) FROM object",
        NULL, look_at_object, &l, err);
    if (status == STET_OK)
        status = pg_each(h->ctx, "SELECT key FROM claim WHERE sha256(body) <> version", NULL, look_at_claim, &l, err);
    if (status == STET_OK)
        status = pg_each(h->ctx, "SELECT hash FROM blob", NULL, note_blob, &l, err);
    for (size_t i = 0; i < l.hashes.len && status == STET_OK; i++) {
        stet_hasher *hasher = stet_hasher_begin();
        stet_error inner = STET_ERROR_INIT;
        status = pg_get_blob(h, l.hashes.at[i], 0, add_bytes, hasher, &inner);
        stet_hash is = stet_hasher_end(hasher);
        if (status == STET_BUSY || (status == STET_OK && !stet_hash_equal(is, l.hashes.at[i])))
            say(&l, "blob", l.hashes.at[i], "is damaged");
        if (status == STET_BUSY || status == STET_NOT_FOUND) { /* swept meanwhile */
            stet_error_clear(&inner);
            status = STET_OK;
        }
        stet_error_move(err, &inner);
    }
    stet_vec_release(&l.hashes);
    *found = l.found;
    return status;
}
