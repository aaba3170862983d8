/* claim.c - claims and workers of a hub in PostgreSQL.
 *
 * A swap is one statement, which is its own transaction: it compares, checks that the objects are there (H1), writes,
 * and wakes those who wait (NOTIFY). If its answer is lost, the caller reads the claim back (H4).
 */

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "postgres.h"

stet_status pg_get_claim(stet_hub *h, stet_hash key, bool *there, stet_hub_claim *out, stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    pg_arg_id(&a, &key);
    *there = false;
    stet_status status =
        pg_ask_again(h->ctx,
                     "SELECT version, phase::bigint, lease_ms - now_ms(), changed_ms, n.id, r.id, body "
                     "FROM claim LEFT JOIN object n ON n.number = node LEFT JOIN object r ON r.number "
                     "= result WHERE key = $1::bytea",
                     &a, &r, err);
    if (status != STET_OK)
        return status;
    if (PQntuples(r) == 1) {
        const char *text = PQgetvalue(r, 0, 6);
        size_t len = (size_t)PQgetlength(r, 0, 6);
        *out = (stet_hub_claim){.key = key,
                                .phase = (stet_hub_phase)pg_int(r, 0, 1),
                                .body = stet_value_null(),
                                .changed_ms = pg_int(r, 0, 3),
                                .left_ms = pg_int(r, 0, 2)};
        pg_id(r, 0, 4, &out->node);
        pg_id(r, 0, 5, &out->result);
        *there = true;
        if (!pg_id(r, 0, 0, &out->version) || !stet_hash_equal(stet_hash_of(text, len), out->version) ||
            stet_json_parse(text, len, &out->body, NULL) != STET_OK)
            status =
                stet_fail(err, STET_CORRUPT, "the claim of key %s is damaged in the hub", stet_hash_print(key).text);
    }
    PQclear(r);
    return status;
}

#define OBJECTS                                                                                                        \
    "WITH named AS (SELECT (SELECT number FROM object WHERE id = $3::bytea) AS node, "                                 \
    "                      (SELECT number FROM object WHERE id = $4::bytea) AS result), "                              \
    "fine AS (SELECT node, result FROM named WHERE ($3::bytea IS NULL OR node IS NOT NULL) AND "                       \
    "                                              ($4::bytea IS NULL OR result IS NOT NULL)), "
/* Held claims are renewed all the time, and nobody waits for that. Columns: swapped; objects there; still as expected. */
#define OUTCOME                                                                                                        \
    "SELECT (SELECT count(*) FROM done), (SELECT count(*) FROM fine), "                                                \
    "(SELECT count(*) FROM claim WHERE key = $1::bytea AND ($2::bytea IS NULL OR version = $2::bytea)), "              \
    "(SELECT count(pg_notify('stet:' || current_schema(), '')) FROM done WHERE $6::bigint <> 1)"

static const char create_sql[] =
    OBJECTS "done AS (INSERT INTO claim(key, version, phase, lease_ms, changed_ms, node, result, body) "
            "SELECT $1::bytea, $5::bytea, $6::bigint, CASE WHEN $6::bigint = 1 THEN now_ms() + $7::bigint ELSE 0 END, "
            "now_ms(), node, result, $8::bytea FROM fine ON CONFLICT (key) DO NOTHING RETURNING 1) " OUTCOME;
static const char replace_sql[] =
    OBJECTS "done AS (UPDATE claim SET version = $5::bytea, phase = $6::bigint, lease_ms = CASE WHEN $6::bigint = 1 "
            "THEN now_ms() + $7::bigint ELSE 0 END, changed_ms = now_ms(), node = fine.node, result = fine.result, "
            "body = $8::bytea FROM fine WHERE key = $1::bytea AND version = $2::bytea RETURNING 1) " OUTCOME;
static const char remove_sql[] =
    "WITH done AS (DELETE FROM claim WHERE key = $1::bytea AND version = $2::bytea RETURNING 1) "
    "SELECT count(*), count(*), count(*), count(pg_notify('stet:' || current_schema(), '')) FROM done";

stet_status pg_swap_claim(stet_hub *h, stet_hash key, const stet_hash *expect, const stet_hub_claim *next,
                          const char *text, size_t len, stet_error *err) {
    pg *p = h->ctx;
    PGresult *r;
    pg_args a = {0};
    int tries = 0;
    pg_arg_id(&a, &key);
    pg_arg_id(&a, expect);
    if (next) {
        pg_arg_id(&a, &next->node);
        pg_arg_id(&a, &next->result);
        pg_arg_id(&a, &next->version);
        pg_arg_int(&a, next->phase);
        pg_arg_int(&a, next->lease_for_ms);
        pg_arg_bytes(&a, text, len);
    }
    pg_look(p);
    p->lost = true; /* nothing was asked yet */
    if (!p->c && !pg_try_again(p, &tries, err))
        return err ? err->status : STET_IO;
    stet_status status = pg_ask(p, !next ? remove_sql : expect ? replace_sql : create_sql, &a, &r, err);
    if (status != STET_OK)
        return status;
    bool swapped = pg_int(r, 0, 0) == 1, fine = pg_int(r, 0, 1) == 1, same = pg_int(r, 0, 2) == (expect ? 1 : 0);
    PQclear(r);
    if (swapped)
        return STET_OK;
    if (next && !fine && same)
        return stet_fail(err, STET_NOT_FOUND, "a claim cannot name %s: no such object in the hub",
                         stet_hash_print(next->phase == STET_HUB_ENDED ? next->result : next->node).text);
    return stet_fail(err, STET_CONFLICT, "the claim of key %s was swapped by somebody else", stet_hash_print(key).text);
}

/* Each half has its own index. Claims that somebody is swapping right now are passed over. The locks are shared ones: two
 * who look at the same time must not hide open work from each other (a worker with --idle 0 would end). */
static const char open_sql[] =
    "SELECT key FROM (SELECT * FROM (SELECT key, changed_ms FROM claim WHERE phase = 0 ORDER BY changed_ms "
    "LIMIT $2::bigint FOR SHARE SKIP LOCKED) a UNION ALL SELECT * FROM (SELECT key, changed_ms FROM claim WHERE "
    "phase = 1 AND lease_ms <= now_ms() + 0 * $1::bigint ORDER BY changed_ms LIMIT $2::bigint FOR SHARE SKIP LOCKED) "
    "b) c ORDER BY changed_ms LIMIT $2::bigint";
static const char live_sql[] =
    "SELECT key FROM claim WHERE phase = 1 AND lease_ms > now_ms() + 0 * $1::bigint LIMIT $2::bigint";
static const char over_sql[] =
    "SELECT key FROM claim WHERE phase = 2 AND changed_ms < $1::bigint ORDER BY changed_ms LIMIT $2::bigint";

stet_status pg_find_claims(stet_hub *h, stet_hub_which which, int64_t before_ms, size_t limit, stet_hub_keys *out,
                           stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    pg_arg_int(&a, before_ms);
    pg_arg_int(&a, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
    const char *sql = which == STET_HUB_OPEN ? open_sql : which == STET_HUB_LIVE ? live_sql : over_sql;
    stet_status status = pg_ask_again(h->ctx, sql, &a, &r, err);
    if (status != STET_OK)
        return status;
    for (int i = 0; i < PQntuples(r); i++) {
        stet_hash key;
        if (pg_id(r, i, 0, &key))
            *stet_vec_add(out) = key;
    }
    PQclear(r);
    return STET_OK;
}

stet_status pg_now(stet_hub *h, int64_t *ms, stet_error *err) {
    PGresult *r;
    stet_status status = pg_ask_again(h->ctx, "SELECT now_ms()", NULL, &r, err);
    if (status != STET_OK)
        return status;
    *ms = pg_int(r, 0, 0);
    PQclear(r);
    return STET_OK;
}

int64_t pg_news(stet_hub *h) {
    pg *p = h->ctx;
    pg_look(p);
    p->news += !p->c; /* nobody listens: whoever asks must look */
    return p->news;
}

void pg_wait(stet_hub *h, int64_t news, int timeout_ms) {
    pg *p = h->ctx;
    int64_t end = stet_clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    for (;;) {
        int left = (int)((end - stet_clock_monotonic_us()) / 1000);
        if (left <= 0 || (p->c && pg_news(h) != news))
            return;
        if (!p->c) {
            stet_clock_sleep_ms(left < 1000 ? left : 1000);
            p->news++;
            return;
        }
        struct pollfd fd = {PQsocket(p->c), POLLIN, 0};
        (void)!poll(&fd, 1, left);
    }
}

stet_status pg_announce(stet_hub *h, const char *name, const char *body, size_t len, int64_t for_ms, stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    pg_arg_text(&a, name);
    pg_arg_bytes(&a, body, len);
    pg_arg_int(&a, for_ms);
    const char *sql =
        for_ms > 0 ? "WITH gone AS (DELETE FROM worker WHERE until_ms <= now_ms() AND name <> $1::text) "
                     "INSERT INTO worker(name, body, until_ms) VALUES ($1::text, $2::bytea, now_ms() + $3::bigint) ON "
                     "CONFLICT (name) DO UPDATE SET body = excluded.body, until_ms = excluded.until_ms"
                   : "DELETE FROM worker WHERE name = $1::text AND $2::bytea IS NOT NULL AND $3::bigint <= 0";
    stet_status status = pg_ask_again(h->ctx, sql, &a, &r, err);
    PQclear(r);
    return status;
}

stet_status pg_list_workers(stet_hub *h, stet_hub_workers *out, stet_error *err) {
    PGresult *r;
    stet_status status = pg_ask_again(
        h->ctx, "SELECT name, body FROM worker WHERE until_ms > now_ms() ORDER BY name COLLATE \"C\"", NULL, &r, err);
    if (status != STET_OK)
        return status;
    for (int i = 0; i < PQntuples(r); i++) {
        stet_hub_worker w = {.body = stet_value_null()};
        if (stet_json_parse(PQgetvalue(r, i, 1), (size_t)PQgetlength(r, i, 1), &w.body, NULL) != STET_OK)
            continue;
        w.name = stet_strndup(PQgetvalue(r, i, 0), (size_t)PQgetlength(r, i, 0));
        *stet_vec_add(out) = w;
    }
    PQclear(r);
    return STET_OK;
}
