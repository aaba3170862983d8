/* observe_gc.c - removes actions, observations, fingerprints and mirrors that nothing needs any more.
 *
 * These are actions of deleted branches, of deleted pieces and of removed nodes; replaced observations; fingerprints
 * that nothing names; and mirrors of owners and readers that no longer exist.
 */

#include <stdlib.h>

#include "memory/observe_internal.h"

/* Actions of deleted branches, and of pieces whose result document is gone on their branch. */
static stet_status superfluous(stet_space *s, stet_numbers *out, stet_error *err) {
    STET_VEC(stet_marked) pieces = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT DISTINCT piece, branch FROM action");
    while (stet_step(q))
        *stet_vec_add(&pieces) = (stet_marked){.action = stet_column_int(q, 0), .seq = stet_column_int(q, 1)};
    stet_status st = stet_db_status(s->db, err);
    for (size_t i = 0; i < pieces.len && st == STET_OK; i++) {
        const stet_branch_entry *b = stet_space_branch_entry(s, pieces.at[i].seq);
        bool gone = !b || b->deleted;
        if (!gone) {
            stet_head head;
            stet_head_load(s, pieces.at[i].seq, pieces.at[i].action, s->known, &head);
            /* A document that was never written does not count: observations may be stored before the document is. */
            gone = head.seq != 0 && !head.exists;
            stet_head_release(&head);
        }
        st = stet_db_status(s->db, err);
        if (!gone || st != STET_OK)
            continue;
        q = stet_db_stmt(s->db, "SELECT action FROM action WHERE action >= ? AND action < ? AND branch = ?");
        stet_bind_int(q, 1, pieces.at[i].action << STET_ACTION_BITS);
        stet_bind_int(q, 2, (pieces.at[i].action + 1) << STET_ACTION_BITS);
        stet_bind_int(q, 3, pieces.at[i].seq);
        while (stet_step(q))
            stet_numbers_add(out, stet_column_int(q, 0));
    }
    stet_vec_release(&pieces);
    return st;
}

/* Actions whose nodes no longer exist. Earlier versions replaced the graph of a piece before they forgot its removed
 * nodes: a crash in between left them. They are collected before the transaction, because that reads documents; an
 * action that was observed again meanwhile is left alone. */
typedef struct node {
    int64_t action, branch, piece, generation;
    char *name;
} node;

static stet_status gone_nodes(stet_space *s, const stet_observe_gc_opts *opts, stet_numbers *out, stet_error *err) {
    STET_VEC(node) nodes = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT action, branch, piece, generation, name FROM action ORDER BY action");
    while (stet_step(q)) {
        size_t len;
        const char *name = stet_column_text(q, 4, &len);
        *stet_vec_add(&nodes) = (node){stet_column_int(q, 0), stet_column_int(q, 1), stet_column_int(q, 2),
                                       stet_column_int(q, 3), stet_strndup(name, len)};
    }
    stet_status st = stet_db_status(s->db, err);
    for (size_t i = 0; i < nodes.len; i++) {
        const node *n = &nodes.at[i];
        stet_arena arena = STET_ARENA_INIT;
        stet_docname piece = {0};
        if (st == STET_OK)
            st = stet_space_docname(s, n->piece, &arena, &piece, err);
        stet_action_key key = {piece.id, piece.scope, n->name};
        if (st == STET_OK && opts->gone(opts->ctx, s, n->branch, &key, n->generation)) {
            stet_numbers_add(out, n->action);
            stet_numbers_add(out, n->generation);
        }
        stet_arena_release(&arena);
        stet_free(n->name);
    }
    stet_vec_release(&nodes);
    return st;
}

static bool still_of(stet_space *s, int64_t action, int64_t generation) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT 1 FROM action WHERE action = ? AND generation = ?");
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, generation);
    bool same = false;
    while (stet_step(q))
        same = true;
    return same;
}

/* Replaced observations: those beyond the number to keep, of an older generation, or of actions that no longer
 * exist. */
static int64_t old_past(stet_space *s, bool dry_run) {
    int keep = stet_observe_of(s)->keep;
    static const char *const sql[] = {
        "SELECT count(*) FROM past_observation WHERE number <= (SELECT max(p.number) FROM past_observation p WHERE"
        " p.action = past_observation.action) - ?1 OR generation IS NOT (SELECT a.generation FROM action a WHERE"
        " a.action = past_observation.action)",
        "DELETE FROM past_observation WHERE number <= (SELECT max(p.number) FROM past_observation p WHERE"
        " p.action = past_observation.action) - ?1 OR generation IS NOT (SELECT a.generation FROM action a WHERE"
        " a.action = past_observation.action)"};
    stet_stmt *q = stet_db_stmt(s->db, sql[!dry_run]);
    stet_bind_int(q, 1, keep > 1 ? keep - 1 : 0);
    int64_t rows = 0;
    if (!dry_run) {
        stet_run(q);
        return stet_db_changes(s->db);
    }
    while (stet_step(q))
        rows = stet_column_int(q, 0);
    return rows;
}

/* Fingerprints that no observation refers to. */
static int64_t old_fingerprints(stet_space *s, bool dry_run) {
    stet_map used = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT observation FROM action WHERE observation IS NOT NULL"
                                       " UNION ALL SELECT observation FROM past_observation");
    while (stet_step(q)) {
        size_t len;
        const void *blob = stet_column_blob(q, 0, &len);
        stet_obs obs;
        if (!len || !stet_obs_decode(blob, len, &obs))
            continue;
        stet_map_put(&used, &obs.implementation, sizeof obs.implementation, (stet_slot){.n = 1});
        stet_map_put(&used, &obs.runtime, sizeof obs.runtime, (stet_slot){.n = 1});
    }
    stet_numbers old = {0};
    q = stet_db_stmt(s->db, "SELECT fingerprint FROM fingerprint");
    while (stet_step(q)) {
        int64_t n = stet_column_int(q, 0);
        if (!stet_map_get(&used, &n, sizeof n))
            stet_numbers_add(&old, n);
    }
    for (size_t i = 0; i < old.len && !dry_run; i++) {
        q = stet_db_stmt(s->db, "DELETE FROM fingerprint WHERE fingerprint = ?");
        stet_bind_int(q, 1, old.at[i]);
        stet_run(q);
    }
    int64_t n = (int64_t)old.len;
    stet_numbers_release(&old);
    stet_map_release(&used);
    return n;
}

/* Mirrors for owners whose file no longer exists. */
static int64_t lost_owners(stet_space *s, bool dry_run) {
    stet_numbers gone = {0};
    char *dir = stet_file_dirname(s->path);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT owner, name FROM mirror_owner");
    while (stet_step(q)) {
        size_t len;
        const char *name = stet_column_text(q, 1, &len);
        char *path = stet_asprintf("%s/%.*s.db", dir, (int)len, name);
        if (!stet_file_exists(path))
            stet_numbers_add(&gone, stet_column_int(q, 0));
        stet_free(path);
    }
    stet_free(dir);
    int64_t rows = 0;
    for (size_t i = 0; i < gone.len; i++) {
        q = stet_db_stmt(s->db, dry_run ? "SELECT count(*) FROM mirror WHERE owner = ?"
                                        : "DELETE FROM mirror WHERE owner = ?");
        stet_bind_int(q, 1, gone.at[i]);
        if (dry_run) {
            while (stet_step(q))
                rows += stet_column_int(q, 0);
            continue;
        }
        stet_run(q);
        rows += stet_db_changes(s->db);
        q = stet_db_stmt(s->db, "DELETE FROM mirror_owner WHERE owner = ?");
        stet_bind_int(q, 1, gone.at[i]);
        stet_run(q);
    }
    stet_numbers_release(&gone);
    return rows;
}

stet_status stet_observe_gc(stet_space *s, const stet_observe_gc_opts *opts, int64_t *rows, stet_error *err) {
    bool begun = false, dry_run = opts->dry_run;
    stet_numbers gone = {0}; /* pairs: action, generation */
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK && opts->gone)
        st = gone_nodes(s, opts, &gone, err);
    if (st == STET_OK && !dry_run)
        st = stet_observe_begin(s, &begun, err);
    else if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    if (st != STET_OK) {
        stet_numbers_release(&gone);
        return st;
    }
    stet_numbers actions = {0};
    st = superfluous(s, &actions, err);
    for (size_t i = 0; i + 1 < gone.len; i += 2)
        if (still_of(s, gone.at[i], gone.at[i + 1]))
            stet_numbers_add(&actions, gone.at[i]);
    stet_numbers_release(&gone);
    stet_numbers_settle(&actions);
    *rows = (int64_t)actions.len;
    for (size_t i = 0; i < actions.len && st == STET_OK && !dry_run; i++)
        stet_observe_remove(s, actions.at[i], true);
    stet_numbers_release(&actions);
    if (st == STET_OK && !dry_run) /* the number of a removed branch may be given again */
        stet_run(stet_db_stmt(s->db, "DELETE FROM complete_branch WHERE branch NOT IN"
                                     " (SELECT branch FROM branch WHERE deleted_ms IS NULL)"));
    if (st == STET_OK)
        *rows += old_past(s, dry_run);
    if (st == STET_OK) /* in this order: the remaining observations say which fingerprints are in use */
        *rows += old_fingerprints(s, dry_run) + lost_owners(s, dry_run);
    if (dry_run) {
        st = stet_space_leave(s, begun, st, err);
    } else if (st != STET_OK) {
        if (begun)
            stet_db_rollback(s->db);
        stet_observe_done(s, false);
    } else {
        st = stet_observe_end(s, begun, err);
        stet_observe_empty(s);
    }
    if (st == STET_OK && !stet_db_in_transaction(s->db)) {
        *rows += stet_observe_orphans(s, dry_run);
        st = stet_db_status(s->db, err);
    }
    return st;
}
