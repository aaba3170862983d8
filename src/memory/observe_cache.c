/* observe_cache.c - what the handle keeps of the scheduler's tables, and the rows of actions and fingerprints. */
#include <stdlib.h>

#include "memory/observe_internal.h"

struct stet_observe *stet_observe_of(stet_space *s) {
    if (!s->observe) {
        s->observe = stet_alloc_zero(sizeof *s->observe);
        s->observe->has_mirrors = s->observe->has_foreign = -1;
        s->observe->tx = 1;        /* an action that was never pending has 0 */
        s->observe->ops_round = 1; /* so does a document that has no waiting row */
    }
    return s->observe;
}

void **stet_blocks_at(stet_blocks *b, int64_t number, stet_arena *make) {
    enum { LEN = 1 << STET_BLOCK_BITS };
    int64_t block = number >> STET_BLOCK_BITS;
    bool added = false;
    stet_slot *slot = make ? stet_map_have(&b->map, &block, sizeof block, (stet_slot){.p = NULL}, &added)
                           : stet_map_get(&b->map, &block, sizeof block);
    if (!slot)
        return NULL;
    if (added)
        slot->p = stet_arena_zero(make, LEN * sizeof(void *));
    return (void **)slot->p + (number & (LEN - 1));
}

void stet_observe_count(struct stet_observe *o, bool committed) {
    struct stet_observe_counts *to = &o->counts;
    const struct stet_observe_counts *now = &o->now;
    if (committed) {
        to->stored += now->stored;
        to->kept_noops += now->kept_noops;
        to->marks_set += now->marks_set;
        to->marks_cleared += now->marks_cleared;
        to->lost += now->lost;
        to->rows += now->rows;
        to->bytes += now->bytes;
        for (size_t i = 0; i < STET_REASONS; i++)
            to->runs[i] += now->runs[i];
    }
    o->now = (struct stet_observe_counts){0};
    memset(o->written, 0, sizeof o->written);
}

void stet_observe_drop_pending(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    stet_vec_clear(&o->pending);
    stet_vec_clear(&o->ops);
    o->op_order = 0;
    o->reads_more = o->removed = false;
    o->tx++;
    stet_map_clear(&o->pending_of);
    if (o->tx_arena.total <= STET_OBSERVE_MAX) /* the next transaction fills as much: new pages are not cheap */
        stet_arena_rewind(&o->tx_arena);
    else
        stet_arena_clear(&o->tx_arena);
}

void stet_observe_forget_piece(stet_space *s) {
    if (s->observe)
        s->observe->last_piece_doc = 0;
}

void stet_observe_empty(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    stet_map_clear(&o->docs.map); /* everything in them is in the arena */
    o->last_doc = NULL;
    stet_map_clear(&o->by_name);
    stet_map_clear(&o->by_number.map);
    stet_map_clear(&o->fingerprints);
    stet_map_clear(&o->counters);
    stet_map_clear(&o->buckets);
    o->has_places = o->has_actions = false;
    stet_arena_clear(&o->arena);
    o->has_mirrors = o->has_foreign = -1;
    o->fresh = false;
    o->last_piece_doc = 0;
}

void stet_observe_release(stet_space *s) {
    if (!s->observe)
        return;
    struct stet_observe *o = s->observe;
    stet_observe_close_owners(s);
    stet_observe_empty(s);
    stet_observe_drop_pending(s);
    stet_map_release(&o->by_name);
    stet_map_release(&o->by_number.map);
    stet_map_release(&o->docs.map);
    stet_map_release(&o->fingerprints);
    stet_map_release(&o->counters);
    stet_map_release(&o->buckets);
    stet_map_release(&o->pending_of);
    stet_arena_release(&o->arena);
    stet_arena_release(&o->tx_arena);
    stet_vec_release(&o->pending);
    stet_vec_release(&o->ops);
    stet_vec_release(&o->block_rows);
    stet_vec_release(&o->pushes);
    stet_vec_release(&o->leave);
    stet_vec_release(&o->bases);
    stet_arena_release(&o->push_arena);
    stet_vec_release(&o->places);
    stet_vec_release(&o->places2);
    stet_vec_release(&o->own);
    stet_vec_release(&o->out);
    stet_vec_release(&o->other);
    free(o->last_piece);
    stet_numbers_release(&o->scratch);
    stet_buf_release(&o->buf);
    stet_buf_release(&o->buf2);
    free(o);
    s->observe = NULL;
}

int64_t stet_observe_int(stet_space *s, const char *sql, int64_t otherwise) {
    stet_stmt *q = stet_db_stmt(s->db, sql);
    int64_t v = otherwise;
    while (stet_step(q))
        v = stet_column_int(q, 0);
    return v;
}

int64_t stet_observe_meta(stet_space *s, const char *name, int64_t otherwise) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT value FROM space_meta WHERE name = ?");
    stet_bind_text(q, 1, name, strlen(name));
    int64_t v = otherwise;
    while (stet_step(q))
        v = stet_column_int(q, 0);
    return v;
}

int64_t stet_observe_progress(stet_space *s, const char *name, int64_t otherwise) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT name, value, sum FROM space_meta WHERE name = ?");
    stet_bind_text(q, 1, name, strlen(name));
    int64_t v = otherwise;
    while (stet_step(q))
        if (stet_column_sound(q, 0, 2))
            v = stet_column_int(q, 1);
    return v;
}

void stet_observe_set_progress(stet_space *s, const char *name, int64_t value) {
    stet_stmt *q =
        stet_db_stmt(s->db, "INSERT OR REPLACE INTO space_meta(name, value, sum) VALUES(?1, ?2, row_sum(?1, ?2))");
    stet_bind_text(q, 1, name, strlen(name));
    stet_bind_int(q, 2, value);
    stet_run(q);
}

void stet_observe_damage(stet_space *s, const char *what) {
    stet_db_fail(s->db, STET_CORRUPT, "space \"%s\": %s is damaged", s->name, what);
    stet_db_hint(s->db, "run `stet check --repair`");
    stet_observe_of(s)->fresh = false; /* the rows read before the damaged one must not be taken for all */
}

int64_t stet_observe_through(stet_space *s) {
    int64_t through = stet_observe_progress(s, "marked_through", -1);
    if (through < 0)
        stet_observe_damage(s, "up to which commit marks have been set");
    return through < 0 ? 0 : through;
}

void stet_observe_fresh(stet_space *s) {
    struct stet_observe *o = stet_observe_of(s);
    int64_t now = stet_db_data_version(s->db);
    if (!o->fresh || now != o->data_version || o->arena.total > STET_OBSERVE_MAX) {
        stet_observe_empty(s);
        o->marked_through = stet_observe_progress(s, "marked_through", -1);
        o->data_version = now;
        o->fresh = true;
    }
    if (o->has_mirrors < 0)
        o->has_mirrors = stet_observe_int(s, "SELECT count(*) FROM (SELECT 1 FROM mirror LIMIT 1)", 0) != 0;
    if (o->has_foreign < 0)
        o->has_foreign = stet_observe_int(s, "SELECT count(*) FROM (SELECT 1 FROM foreign_space LIMIT 1)", 0) != 0;
}

void stet_observe_set_marked_through(stet_space *s, int64_t seq) {
    struct stet_observe *o = stet_observe_of(s);
    if (o->marked_through == seq)
        return;
    stet_observe_set_progress(s, "marked_through", seq);
    o->marked_through = seq;
}

/* The counter of a piece: twice the next number, plus 1 if the piece had no action when the counter was first read.
 * Then the cache holds all actions of the piece, and a name that is not in it is new. */
static stet_slot *counter_of(stet_space *s, int64_t piece) {
    struct stet_observe *o = stet_observe_of(s);
    stet_slot *slot = stet_map_get(&o->counters, &piece, sizeof piece);
    if (slot)
        return slot;
    int64_t first = piece << STET_ACTION_BITS;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT max(action) FROM action WHERE action >= ? AND action < ?");
    stet_bind_int(q, 1, first);
    stet_bind_int(q, 2, first + ((int64_t)1 << STET_ACTION_BITS));
    uint64_t next = ((uint64_t)first + 1) * 2 + (!stet_db_failed(s->db));
    while (stet_step(q))
        if (!stet_column_is_null(q, 0))
            next = ((uint64_t)stet_column_int(q, 0) + 1) * 2;
    return stet_map_put(&o->counters, &piece, sizeof piece, (stet_slot){.n = next});
}

int64_t stet_observe_next(stet_space *s, int64_t piece) {
    return (int64_t)(counter_of(s, piece)->n / 2);
}

void stet_observe_restart(stet_space *s, int64_t piece, int64_t next) {
    struct stet_observe *o = stet_observe_of(s);
    stet_observe_flush(s);
    stet_observe_empty(s);
    stet_observe_fresh(s);
    o->first_new_doc = 0;
    stet_map_put(&o->counters, &piece, sizeof piece, (stet_slot){.n = (uint64_t)next * 2});
}

const void *stet_observe_blob(stet_stmt *q, int first, size_t *len) {
    if (!stet_column_sound(q, first, STET_ACTION_BLOB + 1)) {
        *len = 1;
        return "\xFF"; /* no version of an observation begins with this byte */
    }
    return stet_column_blob(q, first + STET_ACTION_BLOB, len);
}

/* Fills in what the cache keeps of a stored observation. Damaged bytes count as none. `a->marked` is already set. */
static void learn(struct stet_observe *o, stet_known_action *a, const void *blob, size_t len) {
    stet_obs obs;
    a->observed = len && stet_obs_decode(blob, len, &obs) && stet_obs_sound(&obs);
    if (!a->observed) {
        a->reads = a->known = a->declared = a->envelopes = a->foreign_reads = (stet_bytes){"", 0};
        a->foreign = a->made = false;
        return;
    }
    a->reads = stet_bytes_keep(&o->arena, obs.reads.at, obs.reads.len);
    a->declared = stet_bytes_keep(&o->arena, obs.declared.at, obs.declared.len);
    a->known = obs.known_is_declared ? a->declared : stet_bytes_keep(&o->arena, obs.known.at, obs.known.len);
    a->envelopes = stet_bytes_keep(&o->arena, obs.envelopes.at, obs.envelopes.len);
    a->foreign_reads = stet_bytes_keep(&o->arena, obs.foreign.at, obs.foreign.len);
    a->foreign = obs.foreign.len != 0;
    /* Recording dependencies alone leaves no mark only on an action that was up to date. */
    a->made = !obs.failed && (obs.run != STET_RUN_DEPENDENCIES || !a->marked);
}

stet_known_action *stet_observe_action(stet_space *s, int64_t branch, int64_t piece, const char *name, bool make) {
    struct stet_observe *o = stet_observe_of(s);
    size_t name_len = strlen(name);
    int64_t place = stet_space_key(branch, piece); /* short keys are fast */
    stet_buf_clear(&o->buf);
    stet_buf_add(&o->buf, &place, sizeof place);
    stet_buf_add(&o->buf, name, name_len);
    bool added = false;
    stet_slot *slot = make ? stet_map_have(&o->by_name, o->buf.data, o->buf.len, (stet_slot){.p = NULL}, &added)
                           : stet_map_get(&o->by_name, o->buf.data, o->buf.len);
    if (slot && slot->p)
        return slot->p;
    stet_bytes none = {"", 0};
    stet_known_action found = {.branch = branch,
                               .piece = piece,
                               .reads = none,
                               .known = none,
                               .declared = none,
                               .envelopes = none,
                               .foreign_reads = none};
    stet_slot *counter = counter_of(s, piece);
    if (!(counter->n & 1)) {
        stet_stmt *q = stet_db_stmt(
            s->db, "SELECT a.action, a.branch, a.piece, a.generation, a.name, a.observation, a.sum,"
                   /* Unknown (3) before dirty, then the own space. Sorting would create a temporary table for each
                    * action. */
                   " coalesce((SELECT m.reason FROM mark m WHERE m.action = a.action AND m.state = 3 LIMIT 1),"
                   " (SELECT m.reason FROM mark m WHERE m.action = a.action LIMIT 1)),"
                   " EXISTS(SELECT 1 FROM mark m WHERE m.action = a.action AND m.space != 0)"
                   " FROM action a WHERE a.piece = ? AND a.branch = ? AND a.name = ?");
        stet_bind_int(q, 1, piece);
        stet_bind_int(q, 2, branch);
        stet_bind_text(q, 3, name, name_len);
        while (stet_step(q)) {
            size_t len;
            const void *blob = stet_observe_blob(q, 0, &len);
            found.action = stet_column_int(q, 0);
            found.marked = !stet_column_is_null(q, 7);
            int64_t reason = stet_column_int(q, 7); /* read from a file, so it may be anything */
            found.reason = reason > 0 && reason < STET_REASONS ? (stet_reason)reason : STET_REASON_CORRUPT;
            found.foreign_marked = stet_column_int(q, 8) != 0;
            learn(o, &found, blob, len);
        }
    }
    if (found.action == 0) {
        if (!make || stet_db_failed(s->db))
            return NULL;
        found.action = (int64_t)(counter->n / 2);
        counter->n += 2;
        if (found.action >> STET_ACTION_BITS != piece) {
            stet_db_fail(s->db, STET_LIMIT, "a piece has at most %d actions", 1 << STET_ACTION_BITS);
            return NULL;
        }
        found.unborn = stet_arena_strndup(&o->arena, name, name_len);
    }
    stet_known_action *a = stet_arena_dup(&o->arena, &found, sizeof found);
    if (slot)
        slot->p = a;
    else
        stet_map_put(&o->by_name, o->buf.data, o->buf.len, (stet_slot){.p = a});
    *stet_blocks_at(&o->by_number, a->action, &o->arena) = a;
    if (a->unborn)
        stet_observe_pending_of(s, a);
    return a;
}

void stet_observe_insert_action(stet_space *s, stet_known_action *a, int64_t generation, stet_bytes blob) {
    stet_observe_begin_places(s);
    stet_stmt *q = stet_db_stmt(s->db, "INSERT INTO action(" STET_ACTION_COLUMNS ")"
                                       " VALUES(?1, ?2, ?3, ?4, ?5, ?6, row_sum(?1, ?2, ?3, ?4, ?5, ?6))");
    stet_bind_int(q, 1, a->action);
    stet_bind_int(q, 2, a->branch);
    stet_bind_int(q, 3, a->piece);
    stet_bind_int(q, 4, generation);
    stet_bind_text(q, 5, a->unborn, strlen(a->unborn));
    if (blob.at)
        stet_bind_blob(q, 6, blob.at, blob.len);
    else
        stet_bind_null(q, 6);
    stet_run(q);
    stet_observe_digest(s, STET_DIGEST_ACTION, 1, 0);
    a->unborn = NULL;
}

void stet_observe_bear(stet_space *s, stet_known_action *a) {
    if (a->unborn)
        stet_observe_insert_action(s, a, 0, (stet_bytes){NULL, 0});
}

int64_t stet_observe_fingerprint(stet_space *s, stet_hash h) {
    struct stet_observe *o = stet_observe_of(s);
    stet_slot *slot = stet_map_get(&o->fingerprints, h.bytes, sizeof h.bytes);
    if (slot)
        return (int64_t)slot->n;
    int64_t number = 0;
    int64_t damaged = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT fingerprint, hash, sum FROM fingerprint WHERE hash = ?");
    stet_bind_blob(q, 1, h.bytes, sizeof h.bytes);
    while (stet_step(q))
        *(stet_column_sound(q, 0, 2) ? &number : &damaged) = stet_column_int(q, 0);
    if (damaged) { /* the action with this number is unknown from now on */
        q = stet_db_stmt(s->db, "DELETE FROM fingerprint WHERE fingerprint = ?");
        stet_bind_int(q, 1, damaged);
        stet_run(q);
    }
    if (number == 0) {
        q = stet_db_stmt(s->db, "INSERT INTO fingerprint(fingerprint, hash, sum) SELECT n, ?1, row_sum(n, ?1) FROM"
                                " (SELECT 1 + coalesce(max(fingerprint), 0) AS n FROM fingerprint)");
        stet_bind_blob(q, 1, h.bytes, sizeof h.bytes);
        stet_run(q);
        number = stet_db_last_id(s->db);
    }
    stet_map_put(&o->fingerprints, h.bytes, sizeof h.bytes, (stet_slot){.n = (uint64_t)number});
    return number;
}
