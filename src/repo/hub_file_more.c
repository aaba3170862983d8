/* hub_file_more.c - a repository on this machine as a hub: blobs, workers, counts. */

#include <string.h>

#include "base/json.h"
#include "os/clock.h"
#include "repo/hub_file.h"

/* Where the content lies. It is renewed: whoever asks is about to use it. */
static stet_status find(stet_repo *r, stet_hash hash, bool *there, stet_hash *datum, int64_t *size, stet_error *err) {
    bool nothing, begun;
    *there = false;
    stet_status status = stet_repo_ready(r, &nothing, err);
    if (status != STET_OK || nothing)
        return status;
    status = stet_repo_enter(r, &begun, err);
    if (status != STET_OK)
        return status;
    stet_stmt *s = stet_db_stmt(r->db, "UPDATE blob SET used_s = ? WHERE hash = ? AND EXISTS (SELECT 1 FROM object "
                                       "WHERE object.id = datum AND state = 0) RETURNING datum, size");
    stet_bind_int(s, 1, r->now_s);
    stet_bind_id(s, 2, &hash);
    while (stet_step(s)) { /* to its end: the row is changed when the statement has ended */
        *there = stet_column_id(s, 0, datum);
        *size = stet_column_int(s, 1);
    }
    return stet_repo_leave(r, begun, stet_db_status(r->db, err), err);
}

stet_status stet_hub_file_has_blob(stet_hub *h, stet_hash hash, bool *there, int64_t *size, stet_error *err) {
    stet_hash datum;
    return find(h->repo, hash, there, &datum, size, err);
}

stet_status stet_hub_file_put_blob(stet_hub *h, stet_hash hash, stet_hub_source *source, void *ctx, stet_error *err) {
    stet_repo *r = h->repo;
    stet_hash datum;
    int64_t size;
    bool begun;
    stet_status status = stet_repo_put_content(r, source, ctx, &datum, &size, err);
    if (status == STET_OK)
        status = stet_repo_enter(r, &begun, err);
    if (status != STET_OK)
        return status;
    stet_stmt *s = stet_db_stmt(r->db, "INSERT OR REPLACE INTO blob(hash, datum, size, used_s) VALUES(?, ?, ?, ?)");
    stet_bind_id(s, 1, &hash);
    stet_bind_id(s, 2, &datum);
    stet_bind_int(s, 3, size);
    stet_bind_int(s, 4, r->now_s);
    stet_run(s);
    return stet_repo_leave(r, begun, stet_db_status(r->db, err), err);
}

stet_status stet_hub_file_get_blob(stet_hub *h, stet_hash hash, int64_t offset, stet_hub_sink *sink, void *ctx,
                                   stet_error *err) {
    stet_hash datum;
    int64_t size;
    bool there;
    stet_status status = find(h->repo, hash, &there, &datum, &size, err);
    if (status == STET_OK && !there)
        status = stet_fail(err, STET_NOT_FOUND, "there is no blob %s", stet_hash_print(hash).text);
    return status == STET_OK ? stet_repo_get_content(h->repo, datum, offset, sink, ctx, err) : status;
}

stet_status stet_hub_file_announce(stet_hub *h, const char *name, const char *body, size_t len, int64_t for_ms,
                                   stet_error *err) {
    stet_repo *r = h->repo;
    bool begun;
    stet_status status = stet_repo_enter(r, &begun, err);
    if (status != STET_OK)
        return status;
    int64_t now = stet_clock_ms();
    stet_stmt *s = stet_db_stmt(r->db, "DELETE FROM worker WHERE until_ms <= ?1 OR name = ?2");
    stet_bind_int(s, 1, now);
    stet_bind_text(s, 2, name, strlen(name));
    stet_run(s);
    if (for_ms > 0) {
        s = stet_db_stmt(r->db, "INSERT INTO worker(name, until_ms, body) VALUES(?, ?, ?)");
        stet_bind_text(s, 1, name, strlen(name));
        stet_bind_int(s, 2, now + for_ms);
        stet_bind_text(s, 3, body, len);
        stet_run(s);
    }
    return stet_repo_leave(r, begun, stet_db_status(r->db, err), err);
}

stet_status stet_hub_file_list_workers(stet_hub *h, stet_hub_workers *out, stet_error *err) {
    bool nothing;
    stet_status status = stet_repo_ready(h->repo, &nothing, err);
    if (status != STET_OK || nothing)
        return status;
    stet_stmt *s = stet_db_stmt(h->repo->db, "SELECT name, body FROM worker WHERE until_ms > ? ORDER BY name");
    stet_bind_int(s, 1, stet_clock_ms());
    while (stet_step(s)) {
        size_t len, body_len;
        const char *name = stet_column_text(s, 0, &len), *body = stet_column_text(s, 1, &body_len);
        stet_hub_worker w = {.body = stet_value_null()};
        if (!name || !body || stet_json_parse(body, body_len, &w.body, NULL) != STET_OK)
            continue; /* the worker replaces a damaged row by itself */
        w.name = stet_strndup(name, len);
        *stet_vec_add(out) = w;
    }
    return stet_db_status(h->repo->db, err);
}

stet_status stet_hub_file_count(stet_hub *h, stet_hub_counts *out, stet_error *err) {
    bool nothing;
    stet_status status = stet_repo_ready(h->repo, &nothing, err);
    out->schema = stet_repo_migration_count;
    if (status != STET_OK || nothing)
        return status;
    stet_stmt *s = stet_db_stmt(h->repo->db, "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM object");
    if (stet_step(s)) {
        out->objects = stet_column_int(s, 0);
        out->bytes = stet_column_int(s, 1);
    }
    stet_reset(s);
    s = stet_db_stmt(h->repo->db, "SELECT count(*), coalesce(sum(size), 0) FROM blob");
    if (stet_step(s)) {
        out->blobs = stet_column_int(s, 0);
        out->blob_bytes = stet_column_int(s, 1);
    }
    stet_reset(s);
    s = stet_db_stmt(h->repo->db, "SELECT phase + (phase = 1 AND lease_ms <= ?) * 2, count(*) FROM claim GROUP BY 1");
    stet_bind_int(s, 1, stet_clock_ms());
    while (stet_step(s)) {
        int64_t *counts[] = {&out->queued, &out->held, &out->ended, &out->lapsed}, phase = stet_column_int(s, 0);
        if (phase >= 0 && phase < 4)
            *counts[phase] = stet_column_int(s, 1);
    }
    out->refs = stet_db_int(h->repo->db, "SELECT count(*) FROM ref", 0);
    return stet_db_status(h->repo->db, err);
}

stet_status stet_hub_file_check(stet_hub *h, stet_buf *problems, size_t *found, stet_error *err) {
    size_t repaired;
    return stet_repo_check(h->repo, false, problems, found, &repaired, err);
}
