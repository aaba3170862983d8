/* replay.c - commits that carry a session: a repeated commit gets the first answer.
 *
 * The same number with other content is refused.
 */

#include "memory/commit.h"
#include "memory/record.h"

static void add_text(stet_buf *b, const char *text) {
    stet_buf_str(b, text ? text : "");
    stet_buf_char(b, 0);
}

static void add_value(stet_buf *b, stet_value v) {
    size_t at = b->len;
    stet_json_write(b, v, STET_JSON_CANONICAL);
    stet_varint_put(b, b->len - at);
}

static void add_place(stet_buf *b, const stet_docname *name, stet_pathref path) {
    add_text(b, name->id);
    add_text(b, name->scope);
    stet_varint_put(b, path.len);
    stet_buf_add(b, path.bytes, path.len);
}

static void add_places(stet_buf *b, const stet_address *at, size_t len) {
    stet_varint_put(b, len);
    for (size_t i = 0; i < len; i++) {
        add_text(b, at[i].space);
        add_place(b, &at[i].name, at[i].path);
    }
}

/* Adds the identity of the action, what it says about itself, and what it read. Not the sequences, nor the note, which
 * is for people: they differ in a second attempt of the same run. */
static void add_observation(stet_buf *b, const stet_tx *tx) {
    const stet_observation *o = tx->observation;
    stet_buf_char(b, 'o');
    add_text(b, o->key.piece);
    add_text(b, o->key.scope);
    add_text(b, o->key.action);
    add_text(b, o->parent);
    stet_buf_printf(b, "%d %d %d %lld ", (int)o->kind, (int)o->run, o->failed, (long long)o->generation);
    stet_buf_add(b, o->implementation.bytes, sizeof o->implementation.bytes);
    stet_buf_add(b, o->runtime.bytes, sizeof o->runtime.bytes);
    stet_buf_add(b, o->error.bytes, sizeof o->error.bytes);
    add_places(b, o->declared_writes, o->declared_count);
    add_places(b, o->envelopes, o->envelope_count);
    add_places(b, o->ignored_writes, o->ignored_count);
    add_places(b, o->written, o->written_count);
    add_value(b, o->options);
    stet_arena arena = STET_ARENA_INIT;
    const stet_tx_read_record *reads;
    size_t count;
    stet_tx_reads(tx, &arena, &reads, &count);
    stet_varint_put(b, count);
    for (size_t i = 0; i < count; i++) {
        add_text(b, reads[i].space->uuid);
        add_place(b, &reads[i].name, reads[i].path);
        stet_varint_put(b, (uint64_t)reads[i].kind);
    }
    stet_arena_release(&arena);
}

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
    if (tx->observation)
        add_observation(&b, tx);
    stet_hash h = stet_hash_of(b.data, b.len);
    stet_buf_release(&b);
    return h;
}

static int64_t session_number(stet_space *s, const char *name, bool make) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT session, name, sum FROM session WHERE name = ?");
    stet_bind_text(q, 1, name, strlen(name));
    bool there = stet_step(q), sound = !there || stet_column_sound(q, 0, 2);
    int64_t n = there ? stet_column_int(q, 0) : 0;
    stet_reset(q);
    if (!sound)
        stet_space_damaged(s, 0, "the row of session \"%s\" is damaged", name);
    if (n || !make)
        return n;
    q = stet_db_stmt(s->db, "INSERT INTO session(session, name, sum) SELECT n, ?1, row_sum(n, ?1) FROM"
                            " (SELECT 1 + coalesce(max(session), 0) AS n FROM session)");
    stet_bind_text(q, 1, name, strlen(name));
    stet_run(q);
    return stet_db_last_id(s->db);
}

stet_status stet_replay_find(stet_space *s, stet_group_member *m, stet_error *err) {
    int64_t session = session_number(s, m->tx->session, false);
    if (!session)
        return STET_NOT_FOUND;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT session, local, seq, changed, content, sum FROM replay WHERE"
                                       " session = ? AND local = ?");
    stet_bind_int(q, 1, session);
    stet_bind_int(q, 2, m->tx->local);
    if (!stet_step(q))
        return STET_NOT_FOUND;
    stet_hash mine = content_of(m->tx);
    size_t len;
    bool sound = stet_column_sound(q, 0, 5);
    const void *content = stet_column_blob(q, 4, &len);
    bool same = len == sizeof mine.bytes && memcmp(content, mine.bytes, len) == 0;
    m->result = (stet_commit_result){stet_column_int(q, 2), stet_column_int(q, 3) != 0, true};
    stet_reset(q);
    if (!sound) {
        m->result = (stet_commit_result){0};
        stet_space_damaged(s, 0, "the answer to number %lld of session \"%s\" is damaged", (long long)m->tx->local,
                           m->tx->session);
        return stet_db_status(s->db, err);
    }
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
    stet_stmt *q = stet_db_stmt(s->db, "INSERT INTO replay(session, local, seq, changed, content, sum)"
                                       " VALUES(?1, ?2, ?3, ?4, ?5, row_sum(?1, ?2, ?3, ?4, ?5))");
    stet_bind_int(q, 1, session);
    stet_bind_int(q, 2, m->tx->local);
    stet_bind_int(q, 3, m->result.seq);
    stet_bind_int(q, 4, m->result.changed);
    stet_bind_blob(q, 5, content.bytes, sizeof content.bytes);
    stet_run(q);
}
