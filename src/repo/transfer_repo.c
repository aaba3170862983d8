/* transfer_repo.c - a repository as one side of a transfer. */
#include "repo/transfer.h"

static stet_status repo_have(void *ctx, const stet_hash *ids, size_t count, bool *out, stet_error *err) {
    stet_repo *r = ctx;
    stet_status st = STET_OK;
    for (size_t i = 0; i < count && st == STET_OK; i++)
        st = stet_repo_has(r, ids[i], &out[i], err);
    return st;
}

static stet_status get_one(stet_repo *r, stet_hash id, stet_take_fn *take, void *take_ctx, stet_error *err) {
    stet_stmt *s = stet_db_stmt(r->db, "SELECT type, state, bytes FROM object WHERE id = ?");
    stet_buf bytes = STET_BUF(0);
    stet_sent sent = {.id = id};
    stet_bind_id(s, 1, &id);
    bool there = stet_step(s);
    if (there) {
        int64_t state = stet_column_int(s, 1);
        const char *text = stet_column_blob(s, 2, &sent.len);
        sent.type = (stet_record_type)stet_column_int(s, 0);
        sent.lost = state == STET_OBJECT_EXCISED || state == STET_OBJECT_LOST;
        stet_buf_add(&bytes, text ? text : "", sent.len); /* `take` may use the database */
        sent.bytes = stet_buf_cstr(&bytes);
    }
    stet_reset(s);
    stet_status st = stet_db_status(r->db, err);
    if (st == STET_OK && there)
        st = take(take_ctx, &sent, err);
    stet_buf_release(&bytes);
    return st;
}

static stet_status repo_get(void *ctx, const stet_hash *ids, size_t count, stet_take_fn *take, void *take_ctx,
                            stet_error *err) {
    stet_repo *r = ctx;
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    for (size_t i = 0; i < count && st == STET_OK && !nothing; i++)
        st = get_one(r, ids[i], take, take_ctx, err);
    return st;
}

static stet_status repo_put(void *ctx, const stet_pack *pack, const stet_ref_swap *swaps, size_t count,
                            stet_error *err) {
    stet_repo *r = ctx;
    bool begun;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK && pack->count)
        st = stet_pack_apply(r, pack->bytes.data, pack->bytes.len, NULL, err);
    if (st == STET_OK && count)
        st = stet_repo_swap(r, swaps, count, err);
    return stet_repo_leave(r, begun, st, err);
}

stet_side stet_side_of_repo(stet_repo *r) {
    return (stet_side){.ctx = r, .name = stet_repo_path(r), .have = repo_have, .get = repo_get, .put = repo_put};
}

stet_status stet_repo_copy(stet_repo *from, stet_repo *to, const stet_hash *roots, size_t root_count,
                           const stet_ref_swap *swaps, size_t swap_count, stet_copy_report *report, stet_error *err) {
    stet_side a = stet_side_of_repo(from), b = stet_side_of_repo(to);
    stet_transfer_opts o = {.roots = roots, .root_count = root_count, .swaps = swaps, .swap_count = swap_count};
    /* One snapshot: nothing is swept from under it. */
    bool begun = !stet_repo_in_transaction(from);
    stet_status st = begun ? stet_repo_begin_read(from, err) : STET_OK;
    if (st != STET_OK)
        return st;
    st = stet_transfer(&a, &b, &o, report, err);
    if (begun)
        stet_repo_rollback(from);
    return st;
}
