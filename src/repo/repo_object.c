/* repo_object.c - objects: putting, reading, finding. */
#include <string.h>

#include "base/json.h"
#include "repo/repo_internal.h"
#include "repo/text.h"

enum {
    SEEN_MAX = 100000,   /* ids remembered in one transaction */
    RENEW_AFTER_S = 600, /* an object put again counts as young again; not written down each time */
    FIND_MIN = 6
};

static stet_status not_there(stet_hash id, stet_error *err) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(id, hex);
    return stet_fail(err, STET_NOT_FOUND, "object %s is not there", hex);
}

stet_status stet_object_row_of(stet_repo *r, stet_hash id, bool *there, stet_object_row *out, stet_error *err) {
    *there = false;
    stet_stmt *s = stet_db_stmt(r->db, "SELECT number, type, state, added_s FROM object WHERE id = ?");
    stet_bind_id(s, 1, &id);
    if (stet_step(s)) {
        int64_t type = stet_column_int(s, 1), state = stet_column_int(s, 2);
        *there = true;
        *out = (stet_object_row){stet_column_int(s, 0), (stet_record_type)type, (stet_object_state)state,
                                 stet_column_int(s, 3)};
        stet_reset(s);
        if (type < 0 || type >= STET_RECORD_TYPES || state < 0 || state > STET_OBJECT_LOST)
            return stet_fail(err, STET_CORRUPT, "object %s: its row is damaged", stet_short(id).text);
    }
    return stet_db_status(r->db, err);
}

static void remember(stet_repo *r, stet_hash id, stet_record_type type) {
    if (stet_map_len(&r->seen) >= SEEN_MAX)
        stet_map_clear(&r->seen);
    stet_map_put(&r->seen, id.bytes, sizeof id.bytes, (stet_slot){.n = (uint64_t)type});
}

/* R1: everything it names is there, and of the right type. */
static stet_status check_names(stet_repo *r, stet_hash id, const stet_record_list *names, stet_error *err) {
    for (size_t i = 0; i < names->len; i++) {
        const stet_record_name *n = &names->at[i];
        stet_slot *slot = stet_map_get(&r->seen, n->id.bytes, sizeof n->id.bytes);
        stet_record_type type = slot ? (stet_record_type)slot->n : n->type;
        if (!slot) {
            bool there;
            stet_object_row row;
            stet_status st = stet_object_row_of(r, n->id, &there, &row, err);
            if (st != STET_OK)
                return st;
            if (!there)
                return stet_fail(err, STET_NOT_FOUND, "object %s names the %s %s, which is not there",
                                 stet_short(id).text, stet_record_type_name(n->type), stet_hash_print(n->id).text);
            type = row.type;
            remember(r, n->id, type);
        }
        if (type != n->type)
            return stet_fail(err, STET_INVALID, "object %s names %s as a %s, but it is a %s", stet_short(id).text,
                             stet_hash_print(n->id).text, stet_record_type_name(n->type), stet_record_type_name(type));
    }
    return STET_OK;
}

static void set_row(stet_repo *r, int64_t number, stet_object_state state, const char *bytes, size_t len) {
    stet_stmt *s = stet_db_stmt(r->db, "UPDATE object SET state = ?, added_s = ?, bytes = ? WHERE number = ?");
    stet_bind_int(s, 1, state);
    stet_bind_int(s, 2, r->now_s);
    stet_bind_blob(s, 3, bytes, len);
    stet_bind_int(s, 4, number);
    stet_run(s);
}

static void renew_row(stet_repo *r, int64_t number) {
    stet_stmt *s = stet_db_stmt(r->db, "UPDATE object SET state = 0, added_s = ? WHERE number = ?");
    stet_bind_int(s, 1, r->now_s);
    stet_bind_int(s, 2, number);
    stet_run(s);
}

static void add_row(stet_repo *r, stet_hash id, stet_record_type type, stet_object_state state, const char *bytes,
                    size_t len) {
    stet_stmt *s = stet_db_stmt(r->db, "INSERT INTO object(id, type, state, added_s, bytes) VALUES(?, ?, ?, ?, ?)");
    stet_bind_id(s, 1, &id);
    stet_bind_int(s, 2, type);
    stet_bind_int(s, 3, state);
    stet_bind_int(s, 4, r->now_s);
    stet_bind_blob(s, 5, bytes, len);
    stet_run(s);
}

static void add_exec(stet_repo *r, const stet_record_list *names, int64_t number) {
    stet_stmt *s = stet_db_stmt(r->db, "INSERT OR IGNORE INTO exec_of(node, object) VALUES(?, ?)");
    stet_bind_id(s, 1, &names->at[0].id); /* stet_record_named: the node comes first */
    stet_bind_int(s, 2, number);
    stet_run(s);
}

void stet_object_keep_all(stet_repo *r) {
    stet_stmt *s = stet_db_stmt(r->db, "UPDATE object SET state = 0 WHERE state = 1");
    stet_run(s);
}

void stet_object_drop_loose(stet_repo *r, stet_hash id) {
    stet_stmt *s = stet_db_stmt(r->db, "DELETE FROM object WHERE id = ? AND state = 1");
    stet_bind_id(s, 1, &id);
    stet_run(s);
    stet_map_remove(&r->seen, id.bytes, sizeof id.bytes);
}

/* Whoever makes an object again has its right bytes: that mends one that was damaged on disk. */
static void mend_row(stet_repo *r, int64_t number, stet_record_type type, const char *bytes, size_t len) {
    stet_stmt *s = stet_db_stmt(
        r->db, "UPDATE object SET bytes = ?1, type = ?2 WHERE number = ?3 AND (bytes IS NOT ?1 OR type IS NOT ?2)");
    stet_bind_blob(s, 1, bytes, len);
    stet_bind_int(s, 2, type);
    stet_bind_int(s, 3, number);
    stet_run(s);
}

stet_status stet_object_store(stet_repo *r, stet_hash id, stet_record_type type, stet_object_state state,
                              const char *bytes, size_t len, const stet_record_list *names, stet_error *err) {
    bool there;
    stet_object_row row;
    if (type == STET_RECORD_TOMBSTONE)
        return stet_fail(err, STET_INVALID, "a tombstone is no object by itself: it stands in the place of one");
    stet_status st = stet_object_row_of(r, id, &there, &row, err);
    if (st != STET_OK)
        return st;
    if (there && row.state == STET_OBJECT_EXCISED) {
        stet_fail(err, STET_DENIED, "object %s was excised here, and does not come back", stet_hash_print(id).text);
        return STET_DENIED;
    }
    if (there && row.state != STET_OBJECT_LOST) {
        /* Two want it: it is nobody's alone. Parts of exec maps are loose for the index alone, which may make the same
         * part again. */
        bool own = state == STET_OBJECT_LOOSE && (type == STET_RECORD_EXECMAP || type == STET_RECORD_COMMIT);
        if (row.state == STET_OBJECT_LOOSE ? !own : row.added_s < r->now_s - RENEW_AFTER_S)
            renew_row(r, row.number);
        mend_row(r, row.number, type, bytes, len);
    } else {
        st = check_names(r, id, names, err);
        if (st != STET_OK)
            return st;
        if (there)
            set_row(r, row.number, state, bytes, len);
        else
            add_row(r, id, type, state, bytes, len);
        if (type == STET_RECORD_EXEC && names->len)
            add_exec(r, names, there ? row.number : stet_db_last_id(r->db));
    }
    /* A commit or exec map made by others than the index may name parts of the index's map. */
    if (state == STET_OBJECT_KEPT && (type == STET_RECORD_COMMIT || type == STET_RECORD_EXECMAP))
        stet_object_keep_all(r);
    remember(r, id, type);
    return stet_db_status(r->db, err);
}

stet_status stet_object_store_lost(stet_repo *r, stet_hash id, stet_record_type type, const char *tombstone, size_t len,
                                   stet_error *err) {
    bool there;
    stet_object_row row;
    stet_status st = stet_object_row_of(r, id, &there, &row, err);
    if (st == STET_OK && !there) {
        add_row(r, id, type, STET_OBJECT_LOST, tombstone, len);
        remember(r, id, type);
        st = stet_db_status(r->db, err);
    }
    return st;
}

typedef struct made {
    stet_repo *r;
    stet_record_type type;
    stet_object_state state;
    const stet_record_list *names;
} made;

static stet_status store_made(void *ctx, stet_hash id, const char *bytes, size_t len, stet_error *err) {
    made *m = ctx;
    return stet_object_store(m->r, id, m->type, m->state, bytes, len, m->names, err);
}

stet_status stet_object_make(stet_repo *r, stet_value record, stet_record_type type, stet_object_state state,
                             stet_hash *id, stet_error *err) {
    /* Names of a record that turns out not to be one are not looked at. */
    stet_record_list names = {0};
    stet_record_named(record, type, &names);
    made m = {r, type, state, &names};
    stet_status st = stet_record_make(record, type, &(stet_record_sink){store_made, &m}, id, err);
    stet_vec_release(&names);
    return st;
}

stet_status stet_repo_put(stet_repo *r, stet_value record, stet_record_type type, stet_hash *id, stet_error *err) {
    bool begun;
    stet_hash got;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = stet_object_make(r, record, type, STET_OBJECT_KEPT, &got, err);
    st = stet_repo_leave(r, begun, st, err);
    if (st == STET_OK)
        *id = got;
    return st;
}

stet_status stet_repo_put_bytes(stet_repo *r, stet_hash id, const char *bytes, size_t len, stet_error *err) {
    stet_record_type type;
    stet_value record;
    bool begun;
    stet_status st = stet_record_read_any(id, bytes, len, &type, &record, err);
    if (st != STET_OK)
        return st;
    stet_vec_clear(&r->names);
    stet_record_named(record, type, &r->names);
    stet_value_release(record);
    st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = stet_object_store(r, id, type, STET_OBJECT_KEPT, bytes, len, &r->names, err);
    return stet_repo_leave(r, begun, st, err);
}

bool stet_object_is_plain(stet_record_type type, const char *bytes, size_t len) {
    static const char start[] = "{\"kind\":\"";
    if (type != STET_RECORD_DATUM || len < sizeof start || memcmp(bytes, start, sizeof start - 1) != 0)
        return false;
    return !strchr("lsm", bytes[sizeof start - 1]) || strncmp(bytes + sizeof start - 1, "string", 6) == 0;
}

bool stet_object_names(stet_record_type type, stet_object_state state, const char *bytes, size_t len,
                       stet_record_list *out) {
    stet_value record;
    if (state == STET_OBJECT_EXCISED || state == STET_OBJECT_LOST || stet_object_is_plain(type, bytes, len))
        return true;
    if (stet_json_parse(bytes, len, &record, NULL) != STET_OK)
        return false;
    stet_record_named(record, type, out);
    stet_value_release(record);
    return true;
}

static stet_status keep(void *ctx, stet_hash id, const char *bytes, size_t len, stet_error *err) {
    stet_repo *r = ctx;
    stet_record_type type;
    bool begun;
    stet_vec_clear(&r->names);
    if (!stet_record_says(bytes, len, &type) || !stet_object_names(type, STET_OBJECT_KEPT, bytes, len, &r->names))
        return stet_fail(err, STET_INVALID, "not a record");
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = stet_object_store(r, id, type, STET_OBJECT_KEPT, bytes, len, &r->names, err);
    return stet_repo_leave(r, begun, st, err);
}

const stet_record_sink *stet_repo_sink(stet_repo *r) {
    r->sink = (stet_record_sink){keep, r};
    return &r->sink;
}

static stet_status derive(void *ctx, stet_hash id, const char *bytes, size_t len, stet_error *err) {
    stet_repo *r = ctx;
    bool added;
    (void)err;
    stet_slot *slot = stet_map_have(&r->derived, id.bytes, sizeof id.bytes, (stet_slot){.p = NULL}, &added);
    if (added)
        slot->p = stet_strndup(bytes, len); /* a record has no zero bytes: JSON escapes them */
    return STET_OK;
}

stet_status stet_object_derive(stet_repo *r, stet_value record, stet_hash *id, stet_error *err) {
    bool reading = r->read_only || (stet_repo_in_transaction(r) && !r->writing);
    return reading ? stet_record_make(record, STET_RECORD_DATUM, &(stet_record_sink){derive, r}, id, err)
                   : stet_repo_put(r, record, STET_RECORD_DATUM, id, err);
}

stet_status stet_object_excised(stet_hash id, const char *bytes, size_t len, stet_error *err) {
    stet_value v, object;
    stet_hash of;
    stet_status st = stet_record_read(stet_hash_of(bytes, len), bytes, len, STET_RECORD_TOMBSTONE, &v, NULL);
    if (st != STET_OK)
        return stet_fail(err, STET_CORRUPT, "object %s: its tombstone is damaged", stet_hash_print(id).text);
    object = stet_value_get(v, "object");
    stet_value reason = stet_value_get(v, "reason");
    bool fits = stet_hash_of_text(object, &of) && stet_hash_equal(of, id);
    stet_fail(err, STET_CORRUPT, "object %s: %s%.300s", stet_hash_print(id).text,
              fits ? "excised: " : "has the tombstone of another", fits ? stet_value_as_string(&reason, NULL) : "");
    if (fits)
        stet_detail(err, "excised", stet_value_bool(true));
    stet_value_release(v);
    return STET_CORRUPT;
}

/* Calls `use` with the row's bytes while they are there. */
typedef stet_status use_fn(void *ctx, stet_hash id, stet_record_type type, const char *bytes, size_t len,
                           stet_error *err);

static stet_status with_bytes(stet_repo *r, stet_hash id, use_fn *use, void *ctx, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st != STET_OK)
        return st;
    if (stet_map_len(&r->derived)) {
        stet_slot *slot = stet_map_get(&r->derived, id.bytes, sizeof id.bytes);
        if (slot)
            return use(ctx, id, STET_RECORD_DATUM, slot->p, strlen(slot->p), err);
    }
    if (nothing)
        return not_there(id, err);
    stet_stmt *s = stet_db_stmt(r->db, "SELECT type, state, bytes FROM object WHERE id = ?");
    stet_bind_id(s, 1, &id);
    if (!stet_step(s)) {
        st = stet_db_status(r->db, err);
        return st == STET_OK ? not_there(id, err) : st;
    }
    size_t len;
    int64_t type = stet_column_int(s, 0), state = stet_column_int(s, 1);
    const char *bytes = stet_column_blob(s, 2, &len);
    if (type < 0 || type >= STET_RECORD_TYPES || !bytes)
        st = stet_fail(err, STET_CORRUPT, "object %s: its row is damaged", stet_hash_print(id).text);
    else if (state == STET_OBJECT_EXCISED || state == STET_OBJECT_LOST)
        st = stet_object_excised(id, bytes, len, err);
    else
        st = use(ctx, id, (stet_record_type)type, bytes, len, err);
    stet_reset(s);
    return st;
}

typedef struct wanted {
    bool any;
    stet_record_type type;
    stet_value record;
} wanted;

static stet_status as_record(void *ctx, stet_hash id, stet_record_type type, const char *bytes, size_t len,
                             stet_error *err) {
    wanted *w = ctx;
    if (!w->any && type != w->type) {
        stet_record_type said;
        if (stet_record_says(bytes, len, &said) && said == type)
            return stet_fail(err, STET_CORRUPT, "record %s: not a %s, but a %s", stet_hash_print(id).text,
                             stet_record_type_name(w->type), stet_record_type_name(type));
    }
    stet_status st = stet_record_read(id, bytes, len, type, &w->record, err);
    w->type = type;
    return st;
}

stet_status stet_repo_get(stet_repo *r, stet_hash id, stet_record_type type, stet_value *out, stet_error *err) {
    wanted w = {.type = type};
    stet_status st = with_bytes(r, id, as_record, &w, err);
    if (st == STET_OK)
        *out = w.record;
    return st;
}

stet_status stet_repo_get_any(stet_repo *r, stet_hash id, stet_record_type *type, stet_value *out, stet_error *err) {
    wanted w = {.any = true};
    stet_status st = with_bytes(r, id, as_record, &w, err);
    if (st == STET_OK) {
        *out = w.record;
        *type = w.type;
    }
    return st;
}

static stet_status as_bytes(void *ctx, stet_hash id, stet_record_type type, const char *bytes, size_t len,
                            stet_error *err) {
    stet_value record;
    stet_status st = stet_record_read(id, bytes, len, type, &record, err);
    if (st != STET_OK)
        return st;
    stet_value_release(record);
    stet_buf_add(ctx, bytes, len);
    return STET_OK;
}

stet_status stet_repo_get_bytes(stet_repo *r, stet_hash id, stet_buf *out, stet_error *err) {
    return with_bytes(r, id, as_bytes, out, err);
}

stet_status stet_repo_has(stet_repo *r, stet_hash id, bool *out, stet_error *err) {
    bool nothing;
    stet_object_row row;
    stet_status st = stet_repo_ready(r, &nothing, err);
    *out = false;
    return st == STET_OK && !nothing ? stet_object_row_of(r, id, out, &row, err) : st;
}

stet_status stet_repo_find(stet_repo *r, const char *prefix, stet_hash *out, stet_error *err) {
    size_t len = strlen(prefix);
    char low[65], high[65];
    if (len < FIND_MIN || len > 64 || strspn(prefix, "0123456789abcdef") != len)
        return stet_fail(err, STET_INVALID, "\"%.80s\" is no id: %d to 64 hexadecimal digits, lower case", prefix,
                         FIND_MIN);
    memset(low, '0', 64);
    memset(high, 'f', 64);
    memcpy(low, prefix, len);
    memcpy(high, prefix, len);
    stet_hash from, to, found = {{0}};
    if (!stet_hash_of_hex(low, 64, &from) || !stet_hash_of_hex(high, 64, &to))
        return stet_fail(err, STET_INVALID, "\"%.80s\" is no id", prefix);
    bool nothing;
    int count = 0;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st == STET_OK && !nothing) {
        stet_stmt *s = stet_db_stmt(r->db, "SELECT id FROM object WHERE id BETWEEN ? AND ? LIMIT 2");
        stet_bind_id(s, 1, &from);
        stet_bind_id(s, 2, &to);
        while (stet_step(s))
            if (count++ == 0 && !stet_column_id(s, 0, &found))
                count = 0;
        st = stet_db_status(r->db, err);
    }
    if (st != STET_OK)
        return st;
    if (count == 0)
        return stet_fail(err, STET_NOT_FOUND, "no object has an id that begins with %s", prefix);
    if (count > 1) {
        stet_fail(err, STET_INVALID, "more than one object has an id that begins with %s", prefix);
        stet_hint(err, "give more of its digits");
        return STET_INVALID;
    }
    *out = found;
    return STET_OK;
}
