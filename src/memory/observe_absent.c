/* observe_absent.c - reads of spaces that did not exist.
 *
 * No file exists that could hold a mirror of such a read. So it is kept as a read of the document `space:NAME` of the
 * owner's own space, which nobody writes. Before the owner calls anything up to date, it checks whether a space of that
 * name exists by now. An action that then runs reads the space itself, and the read of `space:NAME` goes with the old
 * observation: no other state is kept.
 *
 * Rejected: a list of waiting readers beside the spaces, notified by whoever creates a space. A process that dies
 * between the two, or a file that is copied into its place, notifies nobody.
 */

#include "memory/observe_internal.h"

static bool file_exists(const stet_space *s, const char *name) {
    char *dir = stet_file_dirname(s->path), *file = stet_asprintf("%s.db", name), *path = stet_file_join(dir, file);
    bool exists = stet_file_exists(path);
    stet_free(path);
    stet_free(file);
    stet_free(dir);
    return exists;
}

stet_status stet_observe_absent(stet_space *s, stet_arena *arena, stet_absent_space **out, size_t *count,
                                stet_error *err) {
    bool begun;
    STET_VEC(stet_absent_space) list = {0};
    *count = 0;
    stet_status st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    /* ';' is the character after ':'. */
    stet_stmt *q = stet_db_stmt(s->db, "SELECT doc, id FROM document WHERE id > 'space:' AND id < 'space;'"
                                       " AND scope = ''");
    while (stet_step(q)) {
        const char *id = stet_observe_text(q, 1, arena);
        const char *name = id + strlen(STET_SPACE_PREFIX);
        if (strncmp(id, STET_SPACE_PREFIX, strlen(STET_SPACE_PREFIX)) == 0 &&
            stet_space_name_check(name, NULL) == STET_OK)
            *stet_vec_add(&list) = (stet_absent_space){name, stet_column_int(q, 0), file_exists(s, name)};
    }
    *out = stet_arena_dup(arena, list.at ? (void *)list.at : (void *)"", list.len * sizeof *list.at);
    *count = list.len;
    stet_vec_release(&list);
    return stet_space_leave(s, begun, STET_OK, err);
}

static bool is_unknown(stet_space *s, int64_t action) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT 1 FROM mark WHERE action = ? AND space = 0 AND state = ?");
    bool is = false;
    stet_bind_int(q, 1, action);
    stet_bind_int(q, 2, STET_STATE_UNKNOWN);
    while (stet_step(q))
        is = true;
    return is;
}

/* Does the current observation have the read? A damaged row may have left an index row behind; trusting it would make
 * the action unknown again after each run. */
static bool still_reads(stet_space *s, int64_t action, int64_t doc) {
    bool reads = false;
    stet_places places = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT observation FROM action WHERE action = ?");
    stet_bind_int(q, 1, action);
    while (stet_step(q)) {
        size_t len;
        const void *blob = stet_column_blob(q, 0, &len);
        stet_obs obs;
        stet_vec_clear(&places);
        if (len && stet_obs_decode(blob, len, &obs) && stet_places_unpack(obs.reads.at, obs.reads.len, &places))
            for (size_t i = 0; i < places.len; i++)
                reads = reads || places.at[i].doc == doc;
    }
    stet_vec_release(&places);
    return reads;
}

stet_status stet_observe_appeared(stet_space *s, stet_appeared *out, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_absent_space *at = NULL;
    size_t count;
    bool begun;
    stet_numbers branches = {0}, readers = {0};
    stet_status st = stet_observe_absent(s, &arena, &at, &count, err);
    size_t there = 0;
    for (size_t i = 0; i < count && st == STET_OK; i++)
        if (at[i].exists)
            at[there++] = at[i];
    if (st == STET_OK && there > 0)
        st = stet_observe_rows_ready(s, &begun, err);
    if (st != STET_OK || there == 0) {
        stet_arena_release(&arena);
        return st;
    }
    stet_stmt *q = stet_db_stmt(s->db, "SELECT branch FROM branch WHERE deleted_ms IS NULL");
    while (stet_step(q))
        stet_numbers_add(&branches, stet_column_int(q, 0));
    for (size_t i = 0; i < there; i++)
        for (size_t b = 0; b < branches.len; b++) {
            stet_vec_clear(&readers);
            stet_observe_readers_below(s, stet_space_key(branches.at[b], at[i].doc), STET_PATH_ROOT, &readers);
            for (size_t k = 0; k < readers.len; k++)
                if (!is_unknown(s, readers.at[k]) && still_reads(s, readers.at[k], at[i].doc))
                    *stet_vec_add(out) = (stet_appeared_read){readers.at[k], branches.at[b], at[i].doc};
        }
    stet_numbers_release(&branches);
    stet_numbers_release(&readers);
    stet_arena_release(&arena);
    return stet_space_leave(s, begun, STET_OK, err);
}

stet_status stet_observe_absent_catch_up(stet_space *s, stet_error *err) {
    stet_appeared list = {0};
    bool begun;
    stet_status st = stet_observe_appeared(s, &list, err);
    if (st == STET_OK && list.len > 0) {
        st = stet_observe_begin(s, &begun, err);
        for (size_t i = 0; i < list.len && st == STET_OK; i++)
            stet_observe_mark(s, list.at[i].action, list.at[i].branch, STET_STATE_UNKNOWN, STET_REASON_SPACE, 0, 0,
                              NULL);
        if (st == STET_OK)
            st = stet_observe_end(s, begun, err);
    }
    stet_vec_release(&list);
    return st;
}
