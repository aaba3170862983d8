/* hub_file.c - a repository on this machine as a hub. */

#include <stdlib.h>

#include "os/clock.h"
#include "repo/hub_file.h"

#define TICK_MS 50 /* how often the file is looked at for news */

static stet_status file_refs(stet_hub *h, const char *prefix, stet_refs *out, stet_error *err) {
    return stet_repo_refs(h->repo, prefix, out, err);
}

static void file_close(stet_hub *h) {
    stet_repo_close(h->ctx); /* NULL: the caller's */
    free(h);
}

static stet_status file_get_claim(stet_hub *h, stet_hash key, bool *there, stet_hub_claim *out, stet_error *err) {
    bool nothing, fine = false;
    stet_status status = stet_repo_ready(h->repo, &nothing, err);
    if (status != STET_OK || nothing)
        return status;
    stet_stmt *s = stet_db_stmt(h->repo->db, "SELECT version, phase, lease_ms, changed_ms, node, result, body "
                                             "FROM claim WHERE key = ?");
    stet_bind_id(s, 1, &key);
    if (stet_step(s)) {
        size_t len;
        *out = (stet_hub_claim){.key = key, .body = stet_value_null()};
        const char *text = stet_column_text(s, 6, &len);
        fine = stet_column_id(s, 0, &out->version) && text && stet_hash_equal(stet_hash_of(text, len), out->version) &&
               stet_column_int(s, 1) >= STET_HUB_QUEUED && stet_column_int(s, 1) <= STET_HUB_ENDED &&
               stet_json_parse(text, len, &out->body, NULL) == STET_OK;
        out->phase = (stet_hub_phase)stet_column_int(s, 1);
        out->left_ms = stet_column_int(s, 2) - stet_clock_ms();
        out->changed_ms = stet_column_int(s, 3);
        if (!stet_column_id(s, 4, &out->node) || !stet_column_id(s, 5, &out->result))
            stet_column_id(s, 5, &out->result); /* none: zeros */
        *there = true;
    }
    stet_reset(s);
    status = stet_db_status(h->repo->db, err);
    if (status == STET_OK && *there && !fine) {
        stet_value_release(out->body);
        status = stet_fail(err, STET_CORRUPT, "the claim of key %s is damaged", stet_hash_print(key).text);
    }
    return status;
}

/* H1. */
static stet_status check_there(stet_repo *r, stet_hash id, stet_error *err) {
    bool there = true;
    stet_object_row row;
    stet_status status = stet_hash_is_zero(id) ? STET_OK : stet_object_row_of(r, id, &there, &row, err);
    return status == STET_OK && !there
               ? stet_fail(err, STET_NOT_FOUND, "a claim cannot name %s: no such object", stet_hash_print(id).text)
               : status;
}

static void write_claim(stet_repo *r, stet_hash key, const stet_hub_claim *next, const char *text, size_t len) {
    int64_t now = stet_clock_ms();
    stet_stmt *s = stet_db_stmt(r->db, next ? "INSERT OR REPLACE INTO claim(key, version, phase, lease_ms, changed_ms, "
                                              "node, result, body) VALUES(?, ?, ?, ?, ?, ?, ?, ?)"
                                            : "DELETE FROM claim WHERE key = ?");
    stet_bind_id(s, 1, &key);
    if (next) {
        stet_bind_id(s, 2, &next->version);
        stet_bind_int(s, 3, next->phase);
        stet_bind_int(s, 4, next->phase == STET_HUB_HELD ? now + next->lease_for_ms : 0);
        stet_bind_int(s, 5, now);
        if (!stet_hash_is_zero(next->node))
            stet_bind_id(s, 6, &next->node);
        if (!stet_hash_is_zero(next->result))
            stet_bind_id(s, 7, &next->result);
        stet_bind_text(s, 8, text, len);
    }
    stet_run(s);
}

static stet_status file_swap_claim(stet_hub *h, stet_hash key, const stet_hash *expect, const stet_hub_claim *next,
                                   const char *text, size_t len, stet_error *err) {
    stet_repo *r = h->repo;
    bool begun, there;
    stet_hash now;
    stet_status status = stet_repo_enter(r, &begun, err);
    if (status != STET_OK)
        return status;
    stet_stmt *s = stet_db_stmt(r->db, "SELECT version FROM claim WHERE key = ?");
    stet_bind_id(s, 1, &key);
    there = stet_step(s);
    if (there)
        stet_column_id(s, 0, &now); /* damaged: zeros, which nobody expects */
    stet_reset(s);
    if (there != (expect != NULL) || (there && !stet_hash_equal(now, *expect)))
        status = stet_fail(err, STET_CONFLICT, "the claim of key %s was swapped by somebody else",
                           stet_hash_print(key).text);
    if (status == STET_OK && next)
        status = check_there(r, next->node, err);
    if (status == STET_OK && next)
        status = check_there(r, next->result, err);
    if (status == STET_OK) {
        write_claim(r, key, next, text, len);
        status = stet_db_status(r->db, err);
    }
    return stet_repo_leave(r, begun, status, err);
}

static stet_status file_find_claims(stet_hub *h, stet_hub_which which, int64_t before_ms, size_t limit,
                                    stet_hub_keys *out, stet_error *err) {
    /* Each half has its own index, so that neither looks at claims of another phase. */
    static const char *const sql[] = {
        [STET_HUB_OPEN] = "SELECT key FROM (SELECT key, changed_ms FROM claim WHERE phase = 0 "
                          "UNION ALL SELECT key, changed_ms FROM claim WHERE phase = 1 AND lease_ms <= ?1) "
                          "ORDER BY changed_ms LIMIT ?2",
        [STET_HUB_LIVE] = "SELECT key FROM claim WHERE phase = 1 AND lease_ms > ?1 LIMIT ?2",
        [STET_HUB_OVER] = "SELECT key FROM claim WHERE phase = 2 AND changed_ms < ?1 AND NOT EXISTS "
                          "(SELECT 1 FROM attempt WHERE attempt.key = claim.key AND done = 0) "
                          "ORDER BY changed_ms LIMIT ?2",
    };
    bool nothing;
    stet_status status = stet_repo_ready(h->repo, &nothing, err);
    if (status != STET_OK || nothing)
        return status;
    stet_stmt *s = stet_db_stmt(h->repo->db, sql[which]);
    stet_bind_int(s, 1, which == STET_HUB_OVER ? before_ms : stet_clock_ms());
    stet_bind_int(s, 2, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
    while (stet_step(s)) {
        stet_hash key;
        if (stet_column_id(s, 0, &key)) /* a damaged one is for `check` */
            *stet_vec_add(out) = key;
    }
    return stet_db_status(h->repo->db, err);
}

static stet_status file_gc(stet_hub *h, int64_t grace_s, stet_hub_gc_report *report, stet_error *err) {
    stet_repo_gc_report r;
    stet_status status = stet_repo_gc(h->repo, &(stet_repo_gc_opts){.grace_s = grace_s}, &r, err);
    *report = (stet_hub_gc_report){
        .objects = r.objects, .bytes = r.bytes, .refs = r.refs, .blobs = r.blobs, .blob_bytes = r.blob_bytes};
    return status;
}

static stet_status file_now(stet_hub *h, int64_t *ms, stet_error *err) {
    (void)h;
    (void)err;
    *ms = stet_clock_ms();
    return STET_OK;
}

static int64_t file_news(stet_hub *h) {
    return stet_repo_news(h->repo);
}

static void file_wait(stet_hub *h, int64_t news, int timeout_ms) {
    for (int left = timeout_ms; left > 0 && stet_repo_news(h->repo) == news; left -= TICK_MS)
        stet_clock_sleep_ms(left < TICK_MS ? left : TICK_MS);
}

static const stet_hub_kind file_kind = {.refs = file_refs,
                                        .close = file_close,
                                        .get_claim = file_get_claim,
                                        .swap_claim = file_swap_claim,
                                        .find_claims = file_find_claims,
                                        .gc = file_gc,
                                        .now = file_now,
                                        .news = file_news,
                                        .wait = file_wait,
                                        .has_blob = stet_hub_file_has_blob,
                                        .put_blob = stet_hub_file_put_blob,
                                        .get_blob = stet_hub_file_get_blob,
                                        .announce = stet_hub_file_announce,
                                        .list_workers = stet_hub_file_list_workers,
                                        .count = stet_hub_file_count,
                                        .check = stet_hub_file_check};

stet_hub *stet_hub_of_repo(stet_repo *r) {
    stet_hub *h = stet_alloc_zero(sizeof *h);
    *h = (stet_hub){.kind = &file_kind, .side = stet_side_of_repo(r), .repo = r};
    return h;
}
