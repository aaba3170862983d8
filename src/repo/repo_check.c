/* repo_check.c - checks every object, ref and pin of a repository. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "repo/execmap.h"

enum { LINES_MAX = 1000 };

typedef struct check {
    stet_repo *r;
    bool repair;
    stet_buf *problems;
    size_t found, repaired;
    stet_map broken; /* ids of objects that are damaged or not there, or that name such */
    STET_VEC(int64_t) damaged;
    bool tables_wrong; /* derived ones */
    bool index_wrong;
    stet_error *err;
} check;

static void say(check *c, bool mended, const char *format, ...) STET_PRINTF(3, 4);
static void say(check *c, bool mended, const char *format, ...) {
    va_list args;
    char line[600];
    c->found++;
    c->repaired += mended;
    if (c->found > LINES_MAX)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    stet_buf_str(c->problems, line);
    stet_buf_char(c->problems, '\n');
}

static void set_broken(check *c, stet_hash id) {
    stet_map_put(&c->broken, id.bytes, sizeof id.bytes, (stet_slot){.n = 1});
}

static bool is_broken(const check *c, stet_hash id) {
    return stet_map_get(&c->broken, id.bytes, sizeof id.bytes) != NULL;
}

/* NULL, or what is wrong with a row; its names are added. */
static bool verify_row(stet_stmt *s, stet_hash *id, stet_record_type *type, stet_record_list *names, stet_error *why) {
    size_t len;
    int64_t t = stet_column_int(s, 2), state = stet_column_int(s, 3);
    const char *bytes = stet_column_blob(s, 4, &len);
    stet_value record;
    if (!stet_column_id(s, 1, id) || t < 0 || t >= STET_RECORD_TOMBSTONE || state < 0 || state > STET_OBJECT_LOST ||
        !bytes) {
        stet_fail(why, STET_CORRUPT, "a row of an object is damaged");
        return false;
    }
    *type = (stet_record_type)t;
    if (state == STET_OBJECT_EXCISED || state == STET_OBJECT_LOST) {
        stet_object_excised(*id, bytes, len, why);
        bool fine = stet_value_as_bool(stet_value_get(why->details, "excised"));
        if (fine)
            stet_error_clear(why);
        return fine;
    }
    if (stet_record_read(*id, bytes, len, *type, &record, why) != STET_OK)
        return false;
    stet_record_named(record, *type, names);
    stet_value_release(record);
    return true;
}

static stet_status check_names(check *c, stet_hash id, stet_record_type type, const stet_record_list *names) {
    for (size_t i = 0; i < names->len; i++) {
        bool there;
        stet_object_row row;
        stet_status st = stet_object_row_of(c->r, names->at[i].id, &there, &row, c->err);
        if (st != STET_OK)
            return st;
        if (there && row.type == names->at[i].type)
            continue;
        say(c, false, "%s %s names the %s %s, which is %s%s", stet_record_type_name(type), stet_short(id).text,
            stet_record_type_name(names->at[i].type), stet_hash_print(names->at[i].id).text, there ? "a " : "not there",
            there ? stet_record_type_name(row.type) : "");
        set_broken(c, names->at[i].id);
    }
    return STET_OK;
}

static stet_status check_exec_row(check *c, stet_hash node, int64_t number) {
    stet_stmt *s = stet_db_stmt(c->r->db, "SELECT 1 FROM exec_of WHERE node = ? AND object = ?");
    stet_bind_id(s, 1, &node);
    stet_bind_int(s, 2, number);
    c->tables_wrong = !stet_step(s) || c->tables_wrong;
    stet_reset(s);
    return stet_db_status(c->r->db, c->err);
}

static stet_status check_objects(check *c) {
    stet_record_list names = {0};
    stet_status st = STET_OK;
    stet_stmt *s = stet_db_stmt(c->r->db, "SELECT number, id, type, state, bytes FROM object ORDER BY number");
    while (st == STET_OK && stet_step(s)) {
        stet_error why = STET_ERROR_INIT;
        stet_hash id;
        stet_record_type type = STET_RECORD_DATUM;
        int64_t number = stet_column_int(s, 0);
        stet_vec_clear(&names);
        if (verify_row(s, &id, &type, &names, &why)) {
            st = check_names(c, id, type, &names);
            bool exec = type == STET_RECORD_EXEC && names.len;
            if (st == STET_OK && exec)
                st = check_exec_row(c, names.at[0].id, number);
        } else {
            say(c, c->repair, "%s", why.message);
            *stet_vec_add(&c->damaged) = number;
            set_broken(c, id);
        }
        stet_error_clear(&why);
    }
    stet_vec_release(&names);
    if (st == STET_OK)
        st = stet_db_status(c->r->db, c->err);
    /* Tombstones keep the rows of their execs. */
    if (st == STET_OK && stet_db_int(c->r->db,
                                     "SELECT count(*) FROM exec_of WHERE object NOT IN (SELECT number FROM "
                                     "object WHERE type = 3)",
                                     0) > 0)
        c->tables_wrong = true;
    return st;
}

/* Who names something broken is broken too, up to the commits. */
static stet_status spread(check *c) {
    stet_record_list names = {0};
    for (bool more = stet_map_len(&c->broken) > 0; more;) {
        more = false;
        stet_stmt *s = stet_db_stmt(c->r->db, "SELECT id, type, state, bytes FROM object");
        while (stet_step(s)) {
            stet_hash id;
            size_t len;
            const char *bytes = stet_column_blob(s, 3, &len);
            int64_t type = stet_column_int(s, 1);
            stet_vec_clear(&names);
            if (!stet_column_id(s, 0, &id) || is_broken(c, id) || !bytes || type < 0 || type >= STET_RECORD_TYPES ||
                !stet_object_names((stet_record_type)type, (stet_object_state)stet_column_int(s, 2), bytes, len,
                                   &names))
                continue;
            for (size_t i = 0; i < names.len; i++)
                if (is_broken(c, names.at[i].id)) {
                    set_broken(c, id);
                    more = true;
                    break;
                }
        }
    }
    stet_vec_release(&names);
    return stet_db_status(c->r->db, c->err);
}

static stet_status check_map(check *c, const char *ref, stet_hash commit, stet_pins *out) {
    stet_value v;
    stet_hash map = {{0}}, id = {{0}};
    stet_error why = STET_ERROR_INIT;
    stet_status st = stet_repo_get(c->r, commit, STET_RECORD_COMMIT, &v, &why);
    if (st == STET_OK) {
        stet_hash_of_text(stet_value_get(v, "execs"), &map);
        stet_value_release(v);
        st = stet_execmap_list(c->r, map, out, &why);
    }
    if (st == STET_OK)
        st = stet_execmap_id(out->at, out->len, &id, &why);
    bool bad = st == STET_CORRUPT || st == STET_NOT_FOUND || (st == STET_OK && !stet_hash_equal(id, map));
    bool index = strcmp(ref, STET_REPO_INDEX) == 0;
    if (bad) {
        say(c, index && c->repair, "%s: its exec map can't be trusted%s%s", ref, why.status != STET_OK ? ": " : "",
            why.status != STET_OK ? why.message : "");
        c->index_wrong = c->index_wrong || index;
        stet_vec_clear(out);
        st = STET_OK;
    }
    if (st != STET_OK)
        stet_error_move(c->err, &why);
    stet_error_clear(&why);
    return st;
}

/* Each entry is of an exec record of its node. */
static stet_status check_entries(check *c, const char *ref, const stet_pins *pins) {
    bool index = strcmp(ref, STET_REPO_INDEX) == 0;
    for (size_t i = 0; i < pins->len; i++) {
        stet_exec exec;
        stet_error why = STET_ERROR_INIT;
        stet_status st = stet_repo_get_exec(c->r, pins->at[i].exec, &exec, &why);
        if (st == STET_OK) {
            stet_value_release(exec.timings);
            if (!stet_hash_equal(exec.node, pins->at[i].node)) {
                say(c, index && c->repair, "%s pins for node %s an exec of another node", ref,
                    stet_short(pins->at[i].node).text);
                set_broken(c, pins->at[i].exec);
            }
        } else if (st != STET_CORRUPT && st != STET_NOT_FOUND) {
            stet_error_move(c->err, &why);
            return st;
        }
        stet_error_clear(&why);
    }
    return STET_OK;
}

static stet_status compare_pins(check *c, const stet_pins *want) {
    size_t i = 0;
    bool same = true;
    stet_stmt *s = stet_db_stmt(c->r->db, "SELECT node, exec FROM pin ORDER BY node");
    while (same && stet_step(s)) {
        stet_pin pin;
        same = stet_column_id(s, 0, &pin.node) && stet_column_id(s, 1, &pin.exec) && i < want->len &&
               memcmp(&pin, &want->at[i], sizeof pin) == 0;
        i++;
    }
    stet_reset(s);
    if (!same || i != want->len) {
        say(c, c->repair, "the table of pins is not what the index commit says");
        c->index_wrong = true;
    }
    return stet_db_status(c->r->db, c->err);
}

static stet_status check_refs(check *c) {
    stet_refs refs = {0};
    stet_pins index = {0};
    stet_status st = stet_repo_refs(c->r, "", &refs, c->err);
    for (size_t i = 0; i < refs.len && st == STET_OK; i++) {
        stet_pins pins = {0};
        bool there;
        stet_object_row row;
        const char *name = refs.at[i].name, *wrong = stet_ref_wrong(name);
        if (wrong)
            say(c, false, "ref %s: %s", name, wrong);
        st = stet_object_row_of(c->r, refs.at[i].target, &there, &row, c->err);
        if (st == STET_OK && !there)
            say(c, false, "ref %s names %s, which is not there", name, stet_hash_print(refs.at[i].target).text);
        if (st == STET_OK && there && row.type == STET_RECORD_COMMIT)
            st = check_map(c, name, refs.at[i].target, &pins);
        if (st == STET_OK)
            st = check_entries(c, name, &pins);
        if (strcmp(name, STET_REPO_INDEX) == 0) {
            index = pins;
            c->index_wrong = c->index_wrong || !there;
        } else {
            stet_vec_release(&pins);
        }
    }
    if (st == STET_OK && !c->index_wrong)
        st = compare_pins(c, &index);
    stet_vec_release(&index);
    stet_refs_release(&refs);
    return st;
}

static stet_status check_attempts(check *c) {
    stet_attempts all = {0};
    stet_error why = STET_ERROR_INIT;
    stet_status st = stet_attempt_list(c->r, NULL, &all, NULL, &why);
    stet_attempts_release(&all);
    if (st == STET_CORRUPT) {
        say(c, c->repair, "%s", why.message);
        if (c->repair) /* R5: claims find the work again */
            stet_run(stet_db_stmt(c->r->db, "DELETE FROM attempt"));
        st = stet_db_status(c->r->db, c->err);
    } else if (st != STET_OK) {
        stet_error_move(c->err, &why);
    }
    stet_error_clear(&why);
    return st;
}

/* A damaged claim is in nobody's way once it is gone: whoever wants the call claims it again. */
static stet_status check_claims(check *c) {
    stet_hashes wrong = {0};
    stet_stmt *s = stet_db_stmt(c->r->db, "SELECT key, version, phase, node, result, body FROM claim");
    while (stet_step(s)) {
        stet_hash key, version, id;
        size_t len;
        const char *text = stet_column_text(s, 5, &len);
        int64_t phase = stet_column_int(s, 2);
        bool fine = stet_column_id(s, 0, &key) && stet_column_id(s, 1, &version) && text && phase >= 0 && phase <= 2 &&
                    stet_hash_equal(stet_hash_of(text, len), version);
        for (int i = 3; i < 5 && fine; i++) { /* H1 of hub.h */
            bool there = true;
            stet_object_row row;
            if (stet_column_id(s, i, &id) && stet_object_row_of(c->r, id, &there, &row, NULL) == STET_OK)
                fine = there;
        }
        if (!fine)
            *stet_vec_add(&wrong) = key;
    }
    stet_status st = stet_db_status(c->r->db, c->err);
    for (size_t i = 0; i < wrong.len && st == STET_OK; i++) {
        say(c, c->repair, "the claim of key %s is damaged", stet_hash_print(wrong.at[i]).text);
        if (c->repair) {
            s = stet_db_stmt(c->r->db, "DELETE FROM claim WHERE key = ?");
            stet_bind_id(s, 1, &wrong.at[i]);
            stet_run(s);
        }
    }
    stet_vec_release(&wrong);
    return st == STET_OK ? stet_db_status(c->r->db, c->err) : st;
}

static void make_exec_rows(check *c) {
    stet_record_list names = {0};
    STET_VEC(int64_t) numbers = {0};
    stet_stmt *s = stet_db_stmt(c->r->db, "SELECT number, state, bytes FROM object WHERE type = 3");
    while (stet_step(s)) {
        size_t len, before = names.len;
        const char *bytes = stet_column_blob(s, 2, &len);
        if (bytes &&
            stet_object_names(STET_RECORD_EXEC, (stet_object_state)stet_column_int(s, 1), bytes, len, &names) &&
            names.len > before) {
            names.len = before + 1; /* the node comes first */
            *stet_vec_add(&numbers) = stet_column_int(s, 0);
        }
    }
    stet_run(stet_db_stmt(c->r->db, "DELETE FROM exec_of"));
    for (size_t i = 0; i < numbers.len; i++) {
        s = stet_db_stmt(c->r->db, "INSERT OR IGNORE INTO exec_of(node, object) VALUES(?, ?)");
        stet_bind_id(s, 1, &names.at[i].id);
        stet_bind_int(s, 2, numbers.at[i]);
        stet_run(s);
    }
    stet_vec_release(&names);
    stet_vec_release(&numbers);
}

/* What is pinned: by the map if it can be read, else by the table that was derived from it. */
static stet_status known_pins(check *c, stet_pins *out) {
    bool there;
    stet_hash commit, map, id;
    stet_value v;
    stet_status st = stet_repo_ref(c->r, STET_REPO_INDEX, &there, &commit, c->err);
    if (st != STET_OK)
        return st;
    if (there && stet_repo_get(c->r, commit, STET_RECORD_COMMIT, &v, NULL) == STET_OK) {
        stet_hash_of_text(stet_value_get(v, "execs"), &map);
        stet_value_release(v);
        if (stet_execmap_list(c->r, map, out, NULL) == STET_OK &&
            stet_execmap_id(out->at, out->len, &id, NULL) == STET_OK && stet_hash_equal(id, map))
            return STET_OK;
        stet_vec_clear(out);
    }
    stet_stmt *s = stet_db_stmt(c->r->db, "SELECT node, exec FROM pin ORDER BY node");
    while (stet_step(s)) {
        stet_pin pin;
        if (stet_column_id(s, 0, &pin.node) && stet_column_id(s, 1, &pin.exec))
            *stet_vec_add(out) = pin;
    }
    return stet_db_status(c->r->db, c->err);
}

/* A new index commit with those of the pins that are whole. */
static stet_status make_index(check *c) {
    stet_pins pins = {0};
    stet_status st = known_pins(c, &pins);
    size_t n = 0;
    for (size_t i = 0; i < pins.len; i++) {
        stet_exec exec;
        if (is_broken(c, pins.at[i].exec) || stet_repo_get_exec(c->r, pins.at[i].exec, &exec, NULL) != STET_OK)
            continue;
        stet_value_release(exec.timings);
        if (stet_hash_equal(exec.node, pins.at[i].node))
            pins.at[n++] = pins.at[i];
    }
    pins.len = n;
    if (st == STET_OK)
        st = stet_db_status(c->r->db, c->err);
    if (st == STET_OK) {
        stet_run(stet_db_stmt(c->r->db, "DELETE FROM pin"));
        stet_run(stet_db_stmt(c->r->db, "DELETE FROM ref WHERE name = '" STET_REPO_INDEX "'"));
        st = stet_repo_pin(c->r, pins.at, pins.len, NULL, c->err);
    }
    stet_vec_release(&pins);
    return st;
}

/* Pins of calls whose result is not whole any more: the call runs again. */
static stet_status count_broken_pins(check *c) {
    stet_pins pins = {0};
    if (stet_map_len(&c->broken) == 0 || c->index_wrong)
        return STET_OK;
    stet_status st = known_pins(c, &pins);
    for (size_t i = 0; i < pins.len && st == STET_OK; i++)
        if (is_broken(c, pins.at[i].exec)) {
            say(c, c->repair, "the pinned result of node %s is not whole", stet_hash_print(pins.at[i].node).text);
            c->index_wrong = true;
        }
    stet_vec_release(&pins);
    return st;
}

static stet_status mend(check *c) {
    for (size_t i = 0; i < c->damaged.len; i++) {
        stet_stmt *s = stet_db_stmt(c->r->db, "DELETE FROM object WHERE number = ?");
        stet_bind_int(s, 1, c->damaged.at[i]);
        stet_run(s);
    }
    if (c->tables_wrong || c->damaged.len)
        make_exec_rows(c);
    return c->index_wrong ? make_index(c) : stet_db_status(c->r->db, c->err);
}

static stet_status run(check *c) {
    stet_status st = check_objects(c);
    if (st == STET_OK)
        st = spread(c);
    if (st == STET_OK)
        st = check_refs(c);
    if (st == STET_OK && c->tables_wrong)
        say(c, c->repair, "the table of exec records is not what they say");
    if (st == STET_OK)
        st = count_broken_pins(c);
    if (st == STET_OK)
        st = check_attempts(c);
    if (st == STET_OK)
        st = check_claims(c);
    return st == STET_OK && c->repair ? mend(c) : st;
}

stet_status stet_repo_check(stet_repo *r, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                            stet_error *err) {
    check c = {.r = r, .repair = repair, .problems = problems, .err = err};
    stet_buf file = STET_BUF(1 << 20);
    bool nothing;
    *found = *repaired = 0;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st != STET_OK || nothing)
        return st;
    st = stet_db_check(r->db, &file, err);
    for (const char *at = stet_buf_cstr(&file); *at; at += strcspn(at, "\n"), at += *at == '\n')
        say(&c, false, "%.*s", (int)strcspn(at, "\n"), at);
    stet_buf_release(&file);
    if (st == STET_OK)
        st = repair ? stet_repo_begin(r, err) : stet_repo_begin_read(r, err);
    if (st != STET_OK)
        return st;
    st = run(&c);
    if (st == STET_OK)
        st = stet_repo_commit(r, err);
    else
        stet_repo_rollback(r);
    stet_map_release(&c.broken);
    stet_vec_release(&c.damaged);
    *found = c.found;
    *repaired = c.repaired;
    return st;
}
