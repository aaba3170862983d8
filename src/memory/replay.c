/* replay.c - commits that carry a session: the same number with the same content again gets the first answer, with
 * other content it is refused. */
#include "memory/commit.h"
#include "memory/record.h"

static stet_hash content_of(const stet_tx *tx) {
    stet_buf b = STET_BUF(0);
    stet_varint_put(&b, (uint64_t)tx->branch);
    for (size_t i = 0; i < tx->docs.len; i++) {
        const stet_tx_doc *d = tx->docs.at[i];
        if (d->write == STET_TX_NONE && !d->need_absent && !d->need_hash)
            continue;
        stet_buf_printf(&b, "%s%c%s%c%d%d%d", d->name.id, 0, d->name.scope, 0, (int)d->write, d->need_absent,
                        d->need_hash != NULL);
        if (d->need_hash)
            stet_buf_add(&b, d->need_hash->bytes, sizeof d->need_hash->bytes);
        size_t at = b.len;
        if (d->write == STET_TX_SET)
            stet_json_write(&b, d->after, STET_JSON_CANONICAL);
        else if (d->write == STET_TX_PATCH)
            stet_patches_encode(&b, d->ops.at, d->ops.len);
        stet_varint_put(&b, b.len - at);
    }
    stet_hash h = stet_hash_of(b.data, b.len);
    stet_buf_release(&b);
    return h;
}

static int64_t session_number(stet_space *s, const char *name, bool make) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT session FROM session WHERE name = ?");
    stet_bind_text(q, 1, name, strlen(name));
    int64_t n = stet_step(q) ? stet_column_int(q, 0) : 0;
    stet_reset(q);
    if (n || !make)
        return n;
    q = stet_db_stmt(s->db, "INSERT INTO session(name) VALUES(?)");
    stet_bind_text(q, 1, name, strlen(name));
    stet_run(q);
    return stet_db_last_id(s->db);
}

stet_status stet_replay_find(stet_space *s, stet_group_member *m, stet_error *err) {
    int64_t session = session_number(s, m->tx->session, false);
    if (!session)
        return STET_NOT_FOUND;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT seq, changed, content FROM replay WHERE session = ? AND local = ?");
    stet_bind_int(q, 1, session);
    stet_bind_int(q, 2, m->tx->local);
    if (!stet_step(q))
        return STET_NOT_FOUND;
    stet_hash mine = content_of(m->tx);
    size_t len;
    const void *content = stet_column_blob(q, 2, &len);
    bool same = len == sizeof mine.bytes && memcmp(content, mine.bytes, len) == 0;
    m->result = (stet_commit_result){stet_column_int(q, 0), stet_column_int(q, 1) != 0, true};
    stet_reset(q);
    if (same)
        return STET_OK;
    stet_fail(err, STET_CONFLICT, "session \"%s\" has committed its number %lld with other content, at sequence %lld",
              m->tx->session, (long long)m->tx->local, (long long)m->result.seq);
    m->result = (stet_commit_result){0};
    return STET_CONFLICT;
}

void stet_replay_keep(stet_space *s, const stet_group_member *m) {
    stet_hash content = content_of(m->tx);
    int64_t session = session_number(s, m->tx->session, true);
    stet_stmt *q =
        stet_db_stmt(s->db, "INSERT INTO replay(session, local, seq, changed, content) VALUES(?, ?, ?, ?, ?)");
    stet_bind_int(q, 1, session);
    stet_bind_int(q, 2, m->tx->local);
    stet_bind_int(q, 3, m->result.seq);
    stet_bind_int(q, 4, m->result.changed);
    stet_bind_blob(q, 5, content.bytes, sizeof content.bytes);
    stet_run(q);
}
