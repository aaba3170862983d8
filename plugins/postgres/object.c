/* object.c - objects and refs of a hub in PostgreSQL, and the sweep of what nothing names.
 *
 *   O1. Objects form no circle, because each is named by its hash. So whatever no edge, ref or claim names can be
 *       deleted, and then what only that has named: no marking is needed, and no lock on all of the hub.
 *   O2. The sweep locks what it is about to delete and asks again before it does. Whoever names one of these objects
 *       meanwhile waits, and is told that it is not stored (STET_NOT_FOUND); whoever was faster keeps it.
 *   O3. What was put or asked for within the grace period stays, so that it is still there when it is named.
 */

#include <stdlib.h>
#include <string.h>

#include "postgres.h"

#define GC_NUMBERS 2000 /* in one transaction */

/* The latter half is for objects that are young already. One that is old and being deleted is not there. */
static const char have_sql[] =
    "WITH renewed AS (UPDATE object SET touched_ms = now_ms() WHERE id = ANY($1::bytea[]) AND touched_ms < now_ms() "
    "- " PG_RENEW_MS " RETURNING id) SELECT id FROM renewed UNION ALL SELECT id FROM object WHERE id = "
    "ANY($1::bytea[]) AND touched_ms >= now_ms() - " PG_RENEW_MS;

stet_status pg_have(void *ctx, const stet_hash *ids, size_t count, bool *out, stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    stet_buf list = STET_BUF(0);
    memset(out, 0, count * sizeof *out);
    pg_array_ids(&list, ids, count);
    pg_arg_buf(&a, &list);
    stet_status status = pg_ask_again(ctx, have_sql, &a, &r, err);
    stet_buf_release(&list);
    if (status != STET_OK)
        return status;
    for (int i = 0; i < PQntuples(r); i++)
        for (size_t j = 0; j < count; j++)
            out[j] |= memcmp(PQgetvalue(r, i, 0), ids[j].bytes, sizeof ids[j].bytes) == 0;
    PQclear(r);
    return STET_OK;
}

typedef struct getting {
    stet_hash *left;
    size_t count;
    stet_take_fn *take;
    void *ctx;
} getting;

static stet_status got(void *ctx, const PGresult *r, int row, stet_error *err) {
    getting *g = ctx;
    stet_sent sent = {.bytes = PQgetvalue(r, row, 3), .len = (size_t)PQgetlength(r, row, 3)};
    if (!pg_id(r, row, 0, &sent.id))
        return STET_OK;
    sent.type = (stet_record_type)pg_int(r, row, 1);
    sent.lost = *PQgetvalue(r, row, 2) != 0;
    for (size_t i = 0; i < g->count; i++)
        if (stet_hash_equal(g->left[i], sent.id)) { /* not asked for again if the connection is lost */
            g->left[i] = g->left[--g->count];
            break;
        }
    return g->take(g->ctx, &sent, err);
}

stet_status pg_get(void *ctx, const stet_hash *ids, size_t count, stet_take_fn *take, void *take_ctx, stet_error *err) {
    pg *p = ctx;
    getting g = {stet_alloc((count + 1) * sizeof *g.left), count, take, take_ctx};
    stet_status status;
    stet_error inner = STET_ERROR_INIT;
    int tries = 0;
    memcpy(g.left, ids, count * sizeof *ids);
    do {
        stet_buf list = STET_BUF(0);
        pg_args a = {0};
        pg_array_ids(&list, g.left, g.count);
        pg_arg_buf(&a, &list);
        status = pg_each(p, "SELECT id, type::bigint, lost, bytes FROM object WHERE id = ANY($1::bytea[])", &a, got, &g,
                         &inner);
        stet_buf_release(&list);
    } while (status == STET_IO && pg_try_again(p, &tries, &inner));
    status = status == STET_OK ? STET_OK : inner.status;
    stet_free(g.left);
    stet_error_move(err, &inner);
    return status;
}

/* The objects of a pack and what they name, as arrays. */
typedef struct packed {
    pg *p;
    STET_VEC(stet_sent) objects; /* their bytes are the pack's */
    STET_VEC(stet_record_name) children;
    STET_VEC(stet_hash) parents; /* of each child */
} packed;

static stet_status add(void *ctx, const stet_sent *sent, stet_error *err) {
    packed *k = ctx;
    stet_sent s = *sent;
    stet_record_list names = {0};
    stet_value record;
    if (!s.lost) {
        stet_status status = stet_record_read_any(s.id, s.bytes, s.len, &s.type, &record, err);
        if (status != STET_OK)
            return status;
        stet_record_named(record, s.type, &names);
        stet_value_release(record);
    }
    for (size_t i = 0; i < names.len; i++) {
        *stet_vec_add(&k->children) = names.at[i];
        *stet_vec_add(&k->parents) = s.id;
    }
    stet_vec_release(&names);
    *stet_vec_add(&k->objects) = s;
    return STET_OK;
}

/* What is stored stays, unless these are its right bytes and it has others, or a tombstone. */
static const char put_sql[] =
    "INSERT INTO object AS o (id, type, lost, touched_ms, bytes) SELECT DISTINCT ON (id) id, type, lost, now_ms(), "
    "bytes FROM unnest($1::bytea[], $2::int2[], $3::bool[], $4::bytea[]) AS g(id, type, lost, bytes) ORDER BY id "
    "ON CONFLICT (id) DO UPDATE SET type = excluded.type, lost = excluded.lost, bytes = excluded.bytes, touched_ms = "
    "excluded.touched_ms WHERE NOT excluded.lost AND (o.lost OR o.touched_ms < excluded.touched_ms - " PG_RENEW_MS
    " OR o.bytes <> excluded.bytes)";
static const char name_sql[] =
    "WITH want AS (SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int2[]) AS w(parent, child, type)), found AS "
    "(SELECT p.number AS parent, c.number AS child FROM want w JOIN object p ON p.id = w.parent JOIN object c ON c.id "
    "= w.child AND c.type = w.type), made AS (INSERT INTO edge(child, parent) SELECT DISTINCT child, parent FROM found "
    "ORDER BY 1, 2 ON CONFLICT DO NOTHING) SELECT count(*) FROM found";
static const char missing_sql[] =
    "SELECT w.parent, w.child, c.number IS NOT NULL FROM unnest($1::bytea[], $2::bytea[], $3::int2[]) AS w(parent, "
    "child, type) LEFT JOIN object c ON c.id = w.child WHERE c.number IS NULL OR c.type <> w.type LIMIT 1";

static stet_status put_objects(const packed *k, stet_error *err) {
    stet_buf b[4] = {STET_BUF(0), STET_BUF(0), STET_BUF(0), STET_BUF(0)};
    static const int types[] = {PG_BYTEA, PG_INT2, PG_BOOL, PG_BYTEA};
    pg_args a = {0};
    PGresult *r;
    for (size_t i = 0; i < 4; i++)
        pg_array_begin(&b[i], types[i], k->objects.len);
    for (size_t i = 0; i < k->objects.len; i++) {
        const stet_sent *s = &k->objects.at[i];
        pg_array_bytes(&b[0], s->id.bytes, sizeof s->id.bytes);
        pg_array_int2(&b[1], s->type);
        pg_array_bool(&b[2], s->lost);
        pg_array_bytes(&b[3], s->bytes, s->len);
    }
    for (size_t i = 0; i < 4; i++)
        pg_arg_buf(&a, &b[i]);
    stet_status status = pg_ask(k->p, put_sql, &a, &r, err);
    PQclear(r);
    for (size_t i = 0; i < 4; i++)
        stet_buf_release(&b[i]);
    return status;
}

/* H1: says which object is not there. */
static stet_status missing(const packed *k, const pg_args *a, stet_error *err) {
    PGresult *r;
    stet_hash parent, child;
    stet_status status = pg_ask(k->p, missing_sql, a, &r, err);
    if (status != STET_OK)
        return status;
    if (PQntuples(r) == 0 || !pg_id(r, 0, 0, &parent) || !pg_id(r, 0, 1, &child))
        status = stet_fail(err, STET_BUSY, "the hub was changed while objects were stored");
    else if (*PQgetvalue(r, 0, 2))
        status = stet_fail(err, STET_INVALID, "object %s names %s as an object of another type",
                           stet_hash_print(parent).text, stet_hash_print(child).text);
    else
        status = stet_fail(err, STET_NOT_FOUND, "object %s names %s, which is not in the hub",
                           stet_hash_print(parent).text, stet_hash_print(child).text);
    PQclear(r);
    return status;
}

static stet_status put_names(const packed *k, stet_error *err) {
    stet_buf b[3] = {STET_BUF(0), STET_BUF(0), STET_BUF(0)};
    pg_args a = {0};
    PGresult *r;
    if (k->children.len == 0)
        return STET_OK;
    pg_array_ids(&b[0], k->parents.at, k->parents.len);
    pg_array_begin(&b[1], PG_BYTEA, k->children.len);
    pg_array_begin(&b[2], PG_INT2, k->children.len);
    for (size_t i = 0; i < k->children.len; i++) {
        pg_array_bytes(&b[1], k->children.at[i].id.bytes, sizeof k->children.at[i].id.bytes);
        pg_array_int2(&b[2], k->children.at[i].type);
    }
    for (size_t i = 0; i < 3; i++)
        pg_arg_buf(&a, &b[i]);
    stet_status status = pg_ask(k->p, name_sql, &a, &r, err);
    bool all = status == STET_OK && pg_int(r, 0, 0) == (int64_t)k->children.len;
    PQclear(r);
    if (status == STET_OK && !all)
        status = missing(k, &a, err);
    for (size_t i = 0; i < 3; i++)
        stet_buf_release(&b[i]);
    return status;
}

/* R2 of repo.h: refs/exec/UUID names any object, others a commit. */
#define FITS " AND (n.type = 5 OR $1::text LIKE 'refs/exec/%')"

static stet_status swap_ref(pg *p, const stet_ref_swap *s, stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    const char *wrong = stet_ref_wrong(s->name);
    if (wrong)
        return stet_fail(err, STET_INVALID, "%.200s: not a valid name of a ref: %s", s->name, wrong);
    const char *sql =
        !s->set     ? "DELETE FROM ref USING object e WHERE e.id = $2::bytea AND name = $1::text AND target = e.number"
        : s->expect ? "UPDATE ref SET target = n.number, changed_ms = now_ms() FROM object n, object e WHERE n.id = "
                      "$3::bytea AND e.id = $2::bytea AND name = $1::text AND target = e.number" FITS
                    : "INSERT INTO ref(name, target, changed_ms) SELECT $1::text, n.number, now_ms() FROM object n "
                      "WHERE n.id = $2::bytea" FITS " ON CONFLICT DO NOTHING";
    pg_arg_text(&a, s->name);
    if (s->expect)
        pg_arg_id(&a, s->expect);
    if (s->set)
        pg_arg_id(&a, s->set);
    stet_status status = pg_ask(p, sql, &a, &r, err);
    if (status != STET_OK)
        return status;
    bool swapped = strcmp(PQcmdTuples(r), "1") == 0;
    PQclear(r);
    if (swapped)
        return STET_OK;
    bool there = true;
    if (s->set) {
        status = pg_have(p, s->set, 1, &there, err);
        if (status == STET_OK && !there)
            status = stet_fail(err, STET_NOT_FOUND, "%s cannot name %s: no such object in the hub", s->name,
                               stet_hash_print(*s->set).text);
    }
    return status == STET_OK ? stet_fail(err, STET_CONFLICT, "%s was changed by somebody else meanwhile", s->name)
                             : status;
}

static stet_status put_once(const packed *k, const stet_ref_swap *swaps, size_t count, stet_error *err) {
    pg *p = k->p;
    stet_error inner = STET_ERROR_INIT;
    stet_status status = pg_tell(p, "BEGIN", &inner);
    if (status == STET_OK && k->objects.len)
        status = put_objects(k, &inner);
    if (status == STET_OK)
        status = put_names(k, &inner);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        status = swap_ref(p, &swaps[i], &inner);
    if (status == STET_OK)
        status = pg_tell(p, "COMMIT", &inner);
    if (status != STET_OK && p->c) {
        bool was = p->lost;
        char state[6];
        memcpy(state, p->state, sizeof state);
        if (pg_tell(p, "ROLLBACK", NULL) != STET_OK)
            pg_disconnect(p); /* which rolls back, too */
        p->lost = was;
        memcpy(p->state, state, sizeof state);
    }
    stet_error_move(err, &inner);
    return status;
}

/* The answer to COMMIT may have been lost: are the refs where they should go? */
static bool all_swapped(pg *p, const stet_ref_swap *swaps, size_t count) {
    for (size_t i = 0; i < count; i++) {
        PGresult *r;
        pg_args a = {0};
        stet_hash at;
        pg_arg_text(&a, swaps[i].name);
        if (pg_ask_again(p, "SELECT id FROM ref JOIN object ON number = target WHERE name = $1::text", &a, &r, NULL) !=
            STET_OK)
            return false;
        bool there = PQntuples(r) == 1 && pg_id(r, 0, 0, &at);
        PQclear(r);
        if (swaps[i].set ? !there || !stet_hash_equal(at, *swaps[i].set) : there)
            return false;
    }
    return count > 0;
}

stet_status pg_put(void *ctx, const stet_pack *pack, const stet_ref_swap *swaps, size_t count, stet_error *err) {
    packed k = {.p = ctx};
    stet_error inner = STET_ERROR_INIT;
    int tries = 0;
    stet_status status = pack->count ? stet_pack_each(pack->bytes.data, pack->bytes.len, add, &k, &inner) : STET_OK;
    while (status == STET_OK) {
        status = put_once(&k, swaps, count, &inner);
        if (status == STET_OK || !pg_try_again(k.p, &tries, &inner))
            break;
        status = STET_OK;
        if (all_swapped(k.p, swaps, count))
            break;
    }
    if (inner.status != STET_OK)
        status = inner.status;
    stet_vec_release(&k.objects);
    stet_vec_release(&k.children);
    stet_vec_release(&k.parents);
    stet_error_move(err, &inner);
    return status;
}

stet_status pg_refs(stet_hub *h, const char *prefix, stet_refs *out, stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    pg_arg_text(&a, prefix);
    stet_status status = pg_ask_again(h->ctx,
                                      "SELECT name, id FROM ref JOIN object ON number = target WHERE name >= $1::text "
                                      "AND starts_with(name, $1::text) ORDER BY name",
                                      &a, &r, err);
    if (status != STET_OK)
        return status;
    for (int i = 0; i < PQntuples(r); i++) {
        stet_ref ref;
        if (!pg_id(r, i, 1, &ref.target))
            continue;
        ref.name = stet_strndup(PQgetvalue(r, i, 0), (size_t)PQgetlength(r, i, 0));
        *stet_vec_add(out) = ref;
    }
    PQclear(r);
    return STET_OK;
}

#define UNNAMED                                                                                                        \
    "touched_ms <= $1::bigint AND NOT EXISTS (SELECT FROM edge WHERE child = o.number) AND NOT EXISTS (SELECT FROM "   \
    "ref WHERE target = o.number) AND NOT EXISTS (SELECT FROM claim WHERE node = o.number) AND NOT EXISTS (SELECT "    \
    "FROM claim WHERE result = o.number)"
static const char find_sql[] =
    "SELECT number FROM object o WHERE number > $2::bigint AND number <= $3::bigint AND " UNNAMED
    " FOR UPDATE OF o SKIP LOCKED";
static const char delete_sql[] =
    "WITH gone AS (DELETE FROM object o WHERE number = ANY($2::int8[]) AND " UNNAMED " RETURNING length(bytes) AS "
    "len) SELECT count(*), coalesce(sum(len), 0)::bigint FROM gone";

/* O2. */
static stet_status sweep_once(pg *p, int64_t before, int64_t from, int64_t to, int64_t *gone,
                              stet_hub_gc_report *report, stet_error *err) {
    pg_args a = {0}, b = {0};
    PGresult *r;
    stet_buf list = STET_BUF(0);
    *gone = 0;
    pg_arg_int(&a, before);
    pg_arg_int(&a, from);
    pg_arg_int(&a, to);
    stet_status status = pg_ask(p, find_sql, &a, &r, err);
    if (status != STET_OK)
        return status;
    int count = PQntuples(r);
    pg_array_begin(&list, PG_INT8, (size_t)count);
    for (int i = 0; i < count; i++)
        pg_array_int8(&list, pg_int(r, i, 0));
    PQclear(r);
    pg_arg_int(&b, before);
    pg_arg_buf(&b, &list);
    if (count > 0 && (status = pg_ask(p, delete_sql, &b, &r, err)) == STET_OK) {
        *gone = pg_int(r, 0, 0);
        report->objects += *gone;
        report->bytes += pg_int(r, 0, 1);
        PQclear(r);
    }
    stet_buf_release(&list);
    return status;
}

static stet_status in_transaction(pg *p, int64_t before, int64_t from, int64_t to, int64_t *gone,
                                  stet_hub_gc_report *report, stet_error *err) {
    stet_hub_gc_report was = *report;
    stet_error inner = STET_ERROR_INIT;
    stet_status status;
    int tries = 0;
    do {
        *report = was;
        status = pg_tell(p, "BEGIN", &inner);
        if (status == STET_OK)
            status = sweep_once(p, before, from, to, gone, report, &inner);
        if (status == STET_OK)
            status = pg_tell(p, "COMMIT", &inner);
        if (status != STET_OK && p->c && pg_tell(p, "ROLLBACK", NULL) != STET_OK)
            pg_disconnect(p);
    } while (status != STET_OK && pg_try_again(p, &tries, &inner));
    status = status == STET_OK ? STET_OK : inner.status;
    stet_error_move(err, &inner);
    return status;
}

static stet_status sweep_objects(pg *p, int64_t before, stet_hub_gc_report *report, stet_error *err) {
    PGresult *r;
    stet_status status = pg_ask_again(p, "SELECT coalesce(max(number), 0) FROM object", NULL, &r, err);
    int64_t most = status == STET_OK ? pg_int(r, 0, 0) : 0, gone, pass = 1;
    PQclear(r);
    /* What an object names has most often a smaller number: one pass from above finds nearly all. */
    while (status == STET_OK && pass > 0) {
        pass = 0;
        for (int64_t to = most; to > 0 && status == STET_OK; to -= GC_NUMBERS)
            for (gone = 1; gone > 0 && status == STET_OK; pass += gone)
                status = in_transaction(p, before, to - GC_NUMBERS, to, &gone, report, err);
    }
    return status;
}

stet_status pg_gc(stet_hub *h, int64_t grace_s, stet_hub_gc_report *report, stet_error *err) {
    static const char *const sql[] = {
        "WITH gone AS (DELETE FROM ref WHERE name LIKE 'refs/exec/%' AND changed_ms < $1::bigint RETURNING 1) SELECT "
        "count(*), 0::bigint FROM gone",
        "WITH gone AS (DELETE FROM blob WHERE touched_ms <= $1::bigint RETURNING size) SELECT count(*), "
        "coalesce(sum(size), 0)::bigint FROM gone",
        "WITH gone AS (DELETE FROM blob_part p WHERE $1::bigint IS NOT NULL AND NOT EXISTS (SELECT FROM blob b WHERE "
        "b.upload = p.upload)) SELECT 0::bigint, 0::bigint"};
    int64_t now, counts[6] = {0};
    stet_status status = pg_now(h, &now, err);
    int64_t before[] = {now - STET_REPO_ABANDONED_S * 1000, now - grace_s * 1000, 0};
    for (int i = 0; i < 3 && status == STET_OK; i++) {
        PGresult *r;
        pg_args a = {0};
        pg_arg_int(&a, before[i]);
        status = pg_ask_again(h->ctx, sql[i], &a, &r, err);
        if (status == STET_OK) {
            counts[2 * i] = pg_int(r, 0, 0);
            counts[2 * i + 1] = pg_int(r, 0, 1);
        }
        PQclear(r);
    }
    *report = (stet_hub_gc_report){.refs = counts[0], .blobs = counts[2], .blob_bytes = counts[3]};
    return status == STET_OK ? sweep_objects(h->ctx, before[1], report, err) : status;
}
