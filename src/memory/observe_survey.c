/* observe_survey.c - remembers which marked actions were found not to be needed, so that no start checks them again.
 *
 * Whether a marked action is needed depends on three things: what is wanted, who reads what, and which actions have no
 * reads that can be trusted (their bindings count then). A survey says: for this demand, everything that was marked
 * when the stamp stood at `through` is not needed. It holds until an action reads something it did not read before, or
 * becomes unknown; then all surveys are deleted, in the same transaction. Marks set later have a higher stamp, and only
 * they need a look. An action that ran and reads the same, one that becomes dirty, and one that reads less can't make
 * another action needed.
 *
 * Stamps are assigned only while a survey exists: where nothing is unneeded, marks cost what they always did.
 */

#include "memory/observe_internal.h"

#define SURVEYS 32 /* the number of demands that are remembered, for all branches together */

static bool any_survey(stet_space *s) {
    return stet_observe_int(s, "SELECT count(*) FROM (SELECT 1 FROM survey LIMIT 1)", 0) != 0;
}

int64_t stet_observe_stamp(stet_space *s) {
    if (!any_survey(s))
        return 0;
    int64_t stamp = stet_observe_progress(s, "mark_stamp", -1) + 1;
    if (stamp == 0) { /* a stamp that is too low would hide the mark behind a survey */
        stet_observe_drop_surveys(s);
        return 0;
    }
    stet_observe_set_progress(s, "mark_stamp", stamp);
    return stamp;
}

void stet_observe_drop_surveys(stet_space *s) {
    stet_run(stet_db_stmt(s->db, "DELETE FROM survey"));
}

stet_status stet_observe_survey(stet_space *s, int64_t branch, stet_hash demand, stet_survey *out, stet_error *err) {
    bool begun, found = false;
    *out = (stet_survey){0};
    stet_status st = stet_observe_sync(s, err);
    if (st == STET_OK)
        st = stet_space_enter(s, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT through, unneeded FROM survey WHERE branch = ? AND demand = ?"
                                       " AND sum = " STET_SURVEY_SUM);
    stet_bind_int(q, 1, branch);
    stet_bind_blob(q, 2, demand.bytes, sizeof demand.bytes);
    while (stet_step(q)) {
        out->through = stet_column_int(q, 0);
        out->left = stet_column_int(q, 1);
        found = true;
    }
    int64_t stamp = found ? stet_observe_progress(s, "mark_stamp", -1) : -1;
    found = stamp >= 0;
    if (found) {
        out->same = stamp == out->through;
        q = stet_db_stmt(s->db, "SELECT 1 FROM mark WHERE stamp > 0 AND stamp > ? AND branch = ? LIMIT 1");
        stet_bind_int(q, 1, out->through);
        stet_bind_int(q, 2, branch);
        while (!out->same && stet_step(q))
            out->newer = true;
    }
    st = stet_space_leave(s, begun, STET_OK, err);
    if (st == STET_OK && (!found || stet_observe_of(s)->off))
        return STET_NOT_FOUND;
    return st;
}

int64_t stet_observe_version(stet_space *s) {
    return stet_db_data_version(s->db) + stet_observe_of(s)->marked;
}

stet_status stet_observe_surveyed(stet_space *s, int64_t branch, stet_hash demand, int64_t version, int64_t left,
                                  stet_error *err) {
    bool begun;
    if (stet_observe_of(s)->off || stet_space_read_only(s))
        return STET_OK;
    stet_status st = stet_observe_begin(s, &begun, err);
    if (st != STET_OK)
        return st;
    int64_t stamp = stet_observe_progress(s, "mark_stamp", -1);
    if (stamp >= 0 && stet_observe_version(s) == version) {
        stet_stmt *q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO survey(branch, demand, through, unneeded, sum)"
                                           " VALUES(?1, ?2, ?3, ?4, row_sum(?1, ?2, ?3, ?4))");
        stet_bind_int(q, 1, branch);
        stet_bind_blob(q, 2, demand.bytes, sizeof demand.bytes);
        stet_bind_int(q, 3, stamp);
        stet_bind_int(q, 4, left);
        stet_run(q);
        q = stet_db_stmt(s->db, "DELETE FROM survey WHERE (branch, demand) IN (SELECT branch, demand FROM survey"
                                " ORDER BY through DESC, branch, demand LIMIT -1 OFFSET ?)");
        stet_bind_int(q, 1, SURVEYS);
        stet_run(q);
    }
    return stet_observe_end(s, begun, err);
}
