/* observe_accept.c - accepted actions: their last result is let stand, although something that they read has changed.
 *
 * An acceptance is stored as the observation of the action's last run, renewed: it has the reads and writes of that run,
 * each read holds through the newest change that was accepted, and the blob says that it is accepted (observe_rows.h).
 *
 *   A1. Nothing about it is a proof. Every surface that tells states tells it apart (STET_STATE_ACCEPTED), and tells
 *       which up-to-date actions are downstream of it (stet_standing_through).
 *   A2. It lapses like a proof ends: the next change that overlaps a read, or that somebody else makes to what it wrote,
 *       marks the action. Nothing else has to remember it.
 *   A3. A run replaces it. A version of stet that does not know it can't decode the blob: there the action is unknown.
 *   A4. Only a direct change of what was read can be accepted. An action that is unknown, that failed, or that somebody
 *       else has overwritten has no result of its own that could stand.
 *   A5. It is stored in one SQLite transaction with the removal of the marks. No commit comes between the look at the
 *       marks and the acceptance, and a run that has ended meanwhile is not replaced.
 *   A6. Branches do not inherit it: a fork has no observations.
 */

#include "memory/observe_internal.h"
#include "os/clock.h"

static stet_status refuse(const stet_action_key *key, const char *why, const char *hint, stet_error *err) {
    stet_fail(err, STET_INVALID, "%s can't be accepted: %s", key->action, why);
    stet_hint(err, "%s", hint);
    return STET_INVALID;
}

/* A4. What is known against the action must be changes of what it read, and nothing else. */
static stet_status check_marks(stet_space *s, int64_t action, const stet_action_key *key, stet_error *err) {
    int64_t marks = 0, other = 0;
    bool overwritten = false;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT state, reason FROM mark WHERE action = ?");
    stet_bind_int(q, 1, action);
    while (stet_step(q)) {
        marks++;
        overwritten |= stet_column_int(q, 1) == STET_REASON_OVERWRITTEN;
        other += stet_column_int(q, 0) != STET_STATE_DIRTY || stet_column_int(q, 1) != STET_REASON_CHANGED;
    }
    if (stet_db_failed(s->db))
        return stet_db_status(s->db, err);
    if (overwritten)
        return refuse(key, "what it had written was changed by somebody else", "run it, or declare what that file is",
                      err);
    if (other > 0)
        return refuse(key, "more than its inputs has changed, or it has never run", "run it: stet run NODE", err);
    if (marks == 0)
        return refuse(key, "nothing that it read has changed",
                      "if it waits for another action, accept that one (stet why says which)", err);
    return STET_OK;
}

/* Reads in other spaces hold through the changes there that are known. */
static void renew_foreign(stet_space *s, int64_t action, const stet_obs *obs, stet_buf *out) {
    stet_foreign_places reads = {0};
    if (!stet_foreign_unpack(obs->foreign, &reads))
        stet_vec_clear(&reads);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT space, seq FROM mark WHERE action = ? AND space != 0");
    stet_bind_int(q, 1, action);
    while (stet_step(q))
        for (size_t i = 0; i < reads.len; i++)
            if (reads.at[i].space == stet_column_int(q, 0) && reads.at[i].seq < stet_column_int(q, 1))
                reads.at[i].seq = stet_column_int(q, 1);
    stet_foreign_pack(&reads, out);
    stet_vec_release(&reads);
}

static stet_status store(stet_space *s, stet_known_action *a, int64_t generation, stet_obs *obs, const char *note,
                         stet_error *err) {
    struct stet_observe *o = stet_observe_of(s);
    stet_buf foreign = STET_BUF(0), blob = STET_BUF(0);
    int64_t seq = stet_observe_through(s);
    renew_foreign(s, a->action, obs, &foreign);
    obs->accepted = true;
    obs->changed = false;
    obs->actual = (stet_bytes){"", 0};
    obs->observed_at = seq;
    obs->offsets = (stet_bytes){"", 0};
    obs->foreign = (stet_bytes){foreign.len ? foreign.data : "", foreign.len};
    obs->time_ms = stet_clock_ms();
    obs->note = (stet_bytes){note, strlen(note)};
    stet_obs_encode(obs, &blob);
    stet_pending *p = stet_observe_pending_of(s, a);
    p->store = true;
    p->clear = true;
    p->generation = generation;
    p->blob = stet_bytes_keep(&o->tx_arena, blob.data, blob.len);
    a->foreign_marked = stet_observe_clear_foreign(s, a->action, obs->foreign);
    o->now.stored++;
    stet_buf_release(&foreign);
    stet_buf_release(&blob);
    return stet_db_status(s->db, err);
}

static stet_status accept(stet_space *s, int64_t branch, const stet_action_key *key, const char *note,
                          stet_error *err) {
    int64_t piece = stet_space_find_doc(s, &(stet_docname){key->piece, key->scope ? key->scope : ""});
    stet_known_action *a = piece ? stet_observe_action(s, branch, piece, key->action, false) : NULL;
    stet_buf blob = STET_BUF(0);
    stet_obs obs;
    int64_t generation = 0;
    if (stet_db_failed(s->db))
        return stet_db_status(s->db, err);
    if (!a)
        return refuse(key, "it has never run", "run it: stet run NODE", err);
    if (stet_observe_through(s) < s->known || s->known < stet_observe_int(s, "SELECT max(seq) FROM commits", 0))
        return stet_fail(err, STET_BUSY, "others are changing space \"%s\": try again", s->name);
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_ACTION_COLUMNS " FROM action WHERE action = ?");
    stet_bind_int(q, 1, a->action);
    while (stet_step(q)) {
        size_t len;
        const void *bytes = stet_observe_blob(q, 0, &len);
        stet_buf_add(&blob, bytes, len);
        generation = stet_column_int(q, STET_ACTION_GENERATION);
    }
    stet_status st = stet_db_status(s->db, err);
    bool sound = st == STET_OK && blob.len > 0 && stet_obs_decode(blob.data, blob.len, &obs) && stet_obs_sound(&obs);
    if (st == STET_OK && !sound)
        st = refuse(key, "it has never run, or its record is damaged", "run it: stet run NODE", err);
    else if (st == STET_OK && obs.failed)
        st = refuse(key, "its last run failed: there is no result that could stand", "run it: stet run NODE", err);
    else if (st == STET_OK && (obs.run != STET_RUN_ACTION || obs.kind != STET_ACTION_COMPUTATION))
        st = refuse(key, "it is there for what it does, and has no result that could stand", "run it: stet run", err);
    if (st == STET_OK)
        st = check_marks(s, a->action, key, err);
    if (st == STET_OK)
        st = store(s, a, generation, &obs, note, err);
    stet_buf_release(&blob);
    return st;
}

static stet_status try_to_accept(stet_space *s, int64_t branch, const stet_action_key *key, const char *note,
                                 stet_error *err) {
    bool begun;
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = stet_observe_catch_up(s, err);
    if (st == STET_OK)
        st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    st = accept(s, branch, key, note, err);
    if (st != STET_OK) { /* nothing was changed */
        stet_status ended = stet_observe_end(s, begun, NULL);
        (void)ended;
        return st;
    }
    st = stet_observe_end(s, begun, err);
    stet_observe_empty(s);
    return st;
}

stet_status stet_observe_accept(stet_space *s, int64_t branch, const stet_action_key *key, const char *note,
                                stet_error *err) {
    enum { TRIES = 100 }; /* somebody may commit between the look at the changes and the lock */
    stet_error mine = STET_ERROR_INIT;
    stet_status st = STET_BUSY;
    if (stet_observe_of(s)->off)
        return stet_fail(err, STET_INVALID, "nothing is recorded: [scheduler] persist = false in config.toml");
    for (int i = 0; i < TRIES && st == STET_BUSY; i++) {
        stet_error_clear(&mine);
        st = try_to_accept(s, branch, key, note, &mine);
    }
    stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return st;
}
stet_status stet_observe_accepted(stet_space *s, int64_t branch, stet_numbers *out, stet_error *err) {
    bool begun;
    stet_status st = stet_observe_sync(s, err);
    if (st != STET_OK || stet_observe_of(s)->off)
        return st;
    st = stet_observe_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT action FROM action INDEXED BY action_accepted WHERE branch = ? AND"
                                       " " STET_ACTION_ACCEPTED " ORDER BY action");
    stet_bind_int(q, 1, branch);
    while (stet_step(q))
        stet_numbers_add(out, stet_column_int(q, 0));
    return stet_space_leave(s, begun, STET_OK, err);
}

stet_status stet_standing_any_accepted(stet_space *s, int64_t branch, bool *out, stet_error *err) {
    stet_numbers own = {0};
    bool far = false;
    stet_status st = stet_observe_accepted(s, branch, &own, err);
    if (st == STET_OK && own.len == 0) /* what others have accepted, over any number of spaces, only a walk tells */
        st = stet_observe_reads_others(s, &far, err);
    *out = own.len > 0 || far;
    stet_numbers_release(&own);
    return st;
}
