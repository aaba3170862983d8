/* blob.c - blobs of a hub in PostgreSQL: bytes in parts, one of them in memory at a time. */

#include <stdlib.h>
#include <string.h>

#include "postgres.h"

#define PART ((size_t)1 << 20)

/* Renewed: whoever asks is about to use it. */
static stet_status find(pg *p, stet_hash hash, bool *there, int64_t *upload, int64_t *size, stet_error *err) {
    PGresult *r;
    pg_args a = {0};
    pg_arg_id(&a, &hash);
    *there = false;
    stet_status status = pg_ask_again(
        p, "UPDATE blob SET touched_ms = now_ms() WHERE hash = $1::bytea RETURNING upload, size", &a, &r, err);
    if (status != STET_OK)
        return status;
    *there = PQntuples(r) == 1;
    if (*there) {
        *upload = pg_int(r, 0, 0);
        *size = pg_int(r, 0, 1);
    }
    PQclear(r);
    return STET_OK;
}

stet_status pg_has_blob(stet_hub *h, stet_hash hash, bool *there, int64_t *size, stet_error *err) {
    int64_t upload;
    return find(h->ctx, hash, there, &upload, size, err);
}

static stet_status put_parts(pg *p, int64_t upload, stet_hub_source *source, void *ctx, int64_t *size,
                             stet_error *err) {
    char *part = stet_alloc(PART);
    stet_status status = STET_OK;
    *size = 0;
    for (size_t n = 0, got = PART; got == PART && status == STET_OK; n++) {
        PGresult *r = NULL;
        pg_args a = {0};
        status = source(ctx, part, PART, &got, err);
        if (status != STET_OK || got == 0)
            break;
        pg_arg_int(&a, upload);
        pg_arg_int(&a, (int64_t)n);
        pg_arg_bytes(&a, part, got);
        status = pg_ask(p, "INSERT INTO blob_part(upload, n, bytes) VALUES ($1::bigint, $2::bigint, $3::bytea)", &a, &r,
                        err);
        PQclear(r);
        *size += (int64_t)got;
    }
    stet_free(part);
    return status;
}

/* Nothing of it is to be seen before it is whole: one transaction. The parts of a blob that this one replaces are swept by
 * gc, since somebody may be reading them. */
stet_status pg_put_blob(stet_hub *h, stet_hash hash, stet_hub_source *source, void *ctx, stet_error *err) {
    pg *p = h->ctx;
    PGresult *r;
    int64_t upload = 0, size = 0;
    stet_status status = pg_ask_again(p, "SELECT nextval('upload')", NULL, &r, err);
    if (status == STET_OK)
        upload = pg_int(r, 0, 0);
    PQclear(r);
    if (status == STET_OK)
        status = pg_tell(p, "BEGIN", err);
    if (status != STET_OK)
        return status;
    status = put_parts(p, upload, source, ctx, &size, err);
    if (status == STET_OK) {
        pg_args a = {0};
        pg_arg_id(&a, &hash);
        pg_arg_int(&a, upload);
        pg_arg_int(&a, size);
        status = pg_ask(p,
                        "INSERT INTO blob(hash, upload, size, touched_ms) VALUES ($1::bytea, $2::bigint, $3::bigint, "
                        "now_ms()) ON CONFLICT (hash) DO UPDATE SET upload = excluded.upload, size = excluded.size, "
                        "touched_ms = excluded.touched_ms",
                        &a, &r, err);
        PQclear(r);
    }
    if (status == STET_OK)
        status = pg_tell(p, "COMMIT", err);
    if (status != STET_OK && p->c && pg_tell(p, "ROLLBACK", NULL) != STET_OK)
        pg_disconnect(p);
    return status;
}

stet_status pg_get_blob(stet_hub *h, stet_hash hash, int64_t offset, stet_hub_sink *sink, void *ctx, stet_error *err) {
    pg *p = h->ctx;
    int64_t upload = 0, size = 0;
    bool there;
    stet_status status = find(p, hash, &there, &upload, &size, err);
    if (status == STET_OK && !there)
        return stet_fail(err, STET_NOT_FOUND, "there is no blob %s in the hub", stet_hash_print(hash).text);
    while (status == STET_OK && offset < size) {
        PGresult *r;
        pg_args a = {0};
        size_t from = (size_t)offset % PART;
        pg_arg_int(&a, upload);
        pg_arg_int(&a, offset / (int64_t)PART);
        status =
            pg_ask_again(p, "SELECT bytes FROM blob_part WHERE upload = $1::bigint AND n = $2::bigint", &a, &r, err);
        if (status != STET_OK)
            return status;
        size_t len = PQntuples(r) == 1 ? (size_t)PQgetlength(r, 0, 0) : 0;
        if (len <= from)
            status = stet_fail(err, STET_BUSY, "the blob %s was replaced or swept while it was read",
                               stet_hash_print(hash).text);
        else
            status = sink(ctx, PQgetvalue(r, 0, 0) + from, len - from, err);
        offset += (int64_t)(len - from);
        PQclear(r);
    }
    return status;
}
