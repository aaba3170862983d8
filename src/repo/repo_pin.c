/* repo_pin.c - exec records, and which of them the index pins. */
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "repo/execmap.h"

static stet_value exec_record(const stet_exec *exec) {
    stet_value v = stet_value_object();
    stet_value_put(&v, "type", stet_value_string("exec"));
    stet_value_put(&v, "node", stet_hash_text(exec->node));
    stet_value_put(&v, "result", stet_hash_text(exec->result));
    stet_value_put(&v, "status", stet_value_string(exec->ok ? "ok" : "error"));
    stet_value_put(&v, "attempt", stet_value_int(exec->attempt));
    stet_value_put(&v, "timings",
                   stet_value_type(exec->timings) == STET_TYPE_NULL ? stet_value_object()
                                                                    : stet_value_retain(exec->timings));
    return v;
}

stet_status stet_repo_put_exec(stet_repo *r, const stet_exec *exec, stet_hash *id, stet_error *err) {
    stet_value v = exec_record(exec);
    stet_status st = stet_repo_put(r, v, STET_RECORD_EXEC, id, err);
    stet_value_release(v);
    return st;
}

stet_status stet_repo_get_exec(stet_repo *r, stet_hash id, stet_exec *out, stet_error *err) {
    stet_value v;
    stet_status st = stet_repo_get(r, id, STET_RECORD_EXEC, &v, err);
    if (st != STET_OK)
        return st;
    stet_value status = stet_value_get(v, "status");
    stet_hash_of_text(stet_value_get(v, "node"), &out->node);
    stet_hash_of_text(stet_value_get(v, "result"), &out->result);
    out->ok = strcmp(stet_value_as_string(&status, NULL), "ok") == 0;
    out->attempt = stet_value_as_int(stet_value_get(v, "attempt"));
    out->timings = stet_value_retain(stet_value_get(v, "timings"));
    stet_value_release(v);
    return STET_OK;
}

stet_status stet_repo_execs(stet_repo *r, stet_hash node, stet_hash **out, size_t *count, stet_error *err) {
    stet_hashes ids = {0};
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st == STET_OK && !nothing) {
        stet_stmt *s = stet_db_stmt(r->db, "SELECT id FROM exec_of JOIN object ON number = object WHERE node = ? "
                                           "ORDER BY object");
        stet_bind_id(s, 1, &node);
        while (stet_step(s)) {
            stet_hash id;
            if (stet_column_id(s, 0, &id))
                *stet_vec_add(&ids) = id;
        }
        st = stet_db_status(r->db, err);
    }
    if (st != STET_OK) {
        stet_vec_release(&ids);
        return st;
    }
    *out = ids.at;
    *count = ids.len;
    return STET_OK;
}

stet_status stet_repo_pinned(stet_repo *r, stet_hash node, bool *there, stet_hash *exec, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    *there = false;
    if (st != STET_OK || nothing)
        return st;
    stet_stmt *s = stet_db_stmt(r->db, "SELECT exec FROM pin WHERE node = ?");
    stet_bind_id(s, 1, &node);
    if (stet_step(s)) {
        *there = stet_column_id(s, 0, exec);
        stet_reset(s);
        if (!*there)
            return stet_fail(err, STET_CORRUPT, "the pin of node %s is damaged", stet_hash_print(node).text);
    }
    return stet_db_status(r->db, err);
}

static void write_pin(stet_repo *r, const stet_pin *pin) {
    bool gone = stet_hash_is_zero(pin->exec);
    stet_stmt *s = stet_db_stmt(r->db, gone ? "DELETE FROM pin WHERE node = ?"
                                            : "INSERT OR REPLACE INTO pin(node, exec) VALUES(?, ?)");
    stet_bind_id(s, 1, &pin->node);
    if (!gone)
        stet_bind_id(s, 2, &pin->exec);
    stet_run(s);
}

stet_status stet_pins_follow(stet_repo *r, const stet_hash *from, const stet_hash *to, stet_error *err) {
    stet_pins changed = {0};
    if (!from)
        stet_run(stet_db_stmt(r->db, "DELETE FROM pin"));
    stet_status st = stet_execmap_diff(r, from, to, &changed, err);
    for (size_t i = 0; i < changed.len && st == STET_OK; i++)
        write_pin(r, &changed.at[i]);
    stet_vec_release(&changed);
    return st == STET_OK ? stet_db_status(r->db, err) : st;
}

/* The index as it is, or a first one: nothing in it. In a write transaction. */
static stet_status load_index(stet_repo *r, bool *there, stet_hash *commit, stet_value *record, stet_error *err) {
    stet_status st = stet_repo_ref(r, STET_REPO_INDEX, there, commit, err);
    if (st != STET_OK)
        return st;
    if (*there)
        return stet_repo_get(r, *commit, STET_RECORD_COMMIT, record, err);
    stet_value tree = stet_value_object();
    stet_hash id;
    stet_value_put(&tree, "dags", stet_value_object());
    stet_value_put(&tree, "type", stet_value_string("tree"));
    st = stet_object_make(r, tree, STET_RECORD_TREE, STET_OBJECT_KEPT, &id, err);
    stet_value_release(tree);
    if (st != STET_OK)
        return st;
    *record = stet_value_object();
    stet_value_put(record, "message", stet_value_string(""));
    stet_value_put(record, "parents", stet_value_array());
    stet_value_put(record, "tree", stet_hash_text(id));
    stet_value_put(record, "type", stet_value_string("commit"));
    return STET_OK;
}

/* A pin is of an exec record of that very node. */
static stet_status check_pin(stet_repo *r, const stet_pin *pin, stet_error *err) {
    stet_exec exec;
    if (stet_hash_is_zero(pin->exec))
        return STET_OK;
    stet_status st = stet_repo_get_exec(r, pin->exec, &exec, err);
    if (st != STET_OK)
        return st;
    stet_value_release(exec.timings);
    return stet_hash_equal(exec.node, pin->node)
               ? STET_OK
               : stet_fail(err, STET_INVALID, "exec %s is of node %s, and not of %s", stet_hash_print(pin->exec).text,
                           stet_short(exec.node).text, stet_short(pin->node).text);
}

/* The index commit is amended, and not the child of the one before: what it pins is the cache of active work, and its
 * history would keep every superseded record for ever. What only the old one named goes with it. */
static stet_status amend(stet_repo *r, const stet_pins *pins, stet_hash *out, stet_error *err) {
    bool there;
    stet_hash old, execs, map;
    stet_value record = stet_value_null();
    stet_hashes replaced = {0};
    stet_status st = load_index(r, &there, &old, &record, err);
    if (st != STET_OK)
        return st;
    if (there)
        stet_hash_of_text(stet_value_get(record, "execs"), &execs);
    st = stet_execmap_set(r, there ? &execs : NULL, pins->at, pins->len, STET_OBJECT_LOOSE, &map, &replaced, err);
    if (st == STET_OK && there && stet_hash_equal(map, execs)) {
        *out = old; /* nothing new */
    } else if (st == STET_OK) {
        stet_value_put(&record, "execs", stet_hash_text(map));
        stet_value_put(&record, "time", stet_value_int(stet_clock_ms()));
        st = stet_object_make(r, record, STET_RECORD_COMMIT, STET_OBJECT_LOOSE, out, err);
        if (st == STET_OK) {
            stet_stmt *s =
                stet_db_stmt(r->db, "INSERT OR REPLACE INTO ref(name, target) VALUES('" STET_REPO_INDEX "', ?)");
            stet_bind_id(s, 1, out);
            stet_run(s);
            for (size_t i = 0; i < pins->len; i++)
                write_pin(r, &pins->at[i]);
            if (there && !stet_hash_equal(old, *out))
                stet_object_drop_loose(r, old);
            for (size_t i = 0; i < replaced.len; i++)
                stet_object_drop_loose(r, replaced.at[i]);
            st = stet_db_status(r->db, err);
        }
    }
    stet_vec_release(&replaced);
    stet_value_release(record);
    return st;
}

stet_status stet_repo_pin(stet_repo *r, const stet_pin *pins, size_t count, stet_hash *commit, stet_error *err) {
    bool begun;
    stet_hash id = {{0}};
    stet_pins sorted = {0};
    stet_status st = stet_repo_enter(r, &begun, err);
    for (size_t i = 0; i < count && st == STET_OK; i++) {
        st = check_pin(r, &pins[i], err);
        *stet_vec_add(&sorted) = pins[i];
    }
    stet_pins_sort(&sorted);
    if (st == STET_OK)
        st = amend(r, &sorted, &id, err);
    st = stet_repo_leave(r, begun, st, err);
    stet_vec_release(&sorted);
    if (st == STET_OK && commit)
        *commit = id;
    return st;
}

stet_status stet_repo_pin_exec(stet_repo *r, const stet_exec *exec, stet_hash *id, stet_error *err) {
    bool begun;
    stet_hash got;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = stet_repo_put_exec(r, exec, &got, err);
    if (st == STET_OK)
        st = stet_repo_pin(r, &(stet_pin){exec->node, got}, 1, NULL, err);
    st = stet_repo_leave(r, begun, st, err);
    if (st == STET_OK)
        *id = got;
    return st;
}
