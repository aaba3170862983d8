/* api.c - the public functions that take cells as text; each is a thin wrapper over space.h. */

#include "memory/internal.h"

typedef struct cell {
    char *id;
    stet_path path;
    stet_docname name;
} cell;

static stet_status open_cell(cell *c, const char *text, const char *scope, stet_error *err) {
    c->id = NULL;
    c->path = (stet_path)STET_PATH_INIT;
    stet_status st = stet_cell_parse(text, false, &c->id, &c->path, err);
    c->name = (stet_docname){c->id, scope};
    return st;
}

static void close_cell(cell *c) {
    stet_free(c->id);
    stet_path_release(&c->path);
}

stet_status stet_space_get(stet_space *s, const char *branch, const char *text, const char *scope, int64_t at,
                           stet_value *out, stet_error *err) {
    if (!s || !text || !out)
        return stet_fail_null(err);
    cell c;
    int64_t number;
    stet_doc_state d = {0};
    stet_status st = open_cell(&c, text, scope, err);
    if (st == STET_OK)
        st = stet_space_branch(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_space_load(s, number, &c.name, at, &d, err);
    stet_value v;
    if (st == STET_OK && !d.exists)
        st = stet_fail(err, STET_NOT_FOUND, "no document \"%s\"%s%s in space \"%s\"", c.id,
                       scope && *scope ? " of scope " : "", scope ? scope : "", s->name);
    else if (st == STET_OK && !stet_path_lookup(d.value, stet_path_ref(&c.path), &v))
        st = stet_fail(err, STET_NOT_FOUND, "nothing at %s in space \"%s\"", text, s->name);
    else if (st == STET_OK)
        *out = stet_value_retain(v);
    stet_value_release(d.value);
    close_cell(&c);
    return st;
}

static stet_status get(stet_tx *tx, stet_space *from, const char *text, const char *scope, stet_read_kind kind,
                       stet_value *out, stet_error *err) {
    cell c;
    stet_status st = open_cell(&c, text, scope, err);
    if (st == STET_OK)
        st = stet_tx_read(tx, from, &c.name, stet_path_ref(&c.path), kind, out, err);
    close_cell(&c);
    return st;
}

stet_status stet_tx_get(stet_tx *tx, const char *text, const char *scope, stet_value *out, stet_error *err) {
    if (!tx || !text || !out)
        return stet_fail_null(err);
    return get(tx, NULL, text, scope, STET_RECURSIVE, out, err);
}

stet_status stet_tx_get_shallow(stet_tx *tx, const char *text, const char *scope, stet_value *out, stet_error *err) {
    if (!tx || !text || !out)
        return stet_fail_null(err);
    return get(tx, NULL, text, scope, STET_SHALLOW, out, err);
}

stet_status stet_tx_get_from(stet_tx *tx, stet_space *other, const char *text, const char *scope, stet_value *out,
                             stet_error *err) {
    if (!tx || !other || !text || !out)
        return stet_fail_null(err);
    return get(tx, other, text, scope, STET_RECURSIVE, out, err);
}

static stet_status guarded(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len, bool done,
                           stet_error *err) {
    stet_status (*ask)(stet_tx *, const stet_docname *, const stet_patch *, size_t, stet_error *) =
        done ? stet_outside_guard.after : stet_outside_guard.before;
    return ask ? ask(tx, name, at, len, err) : STET_OK;
}

stet_status stet_tx_patch_outside(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len,
                                  stet_error *err) {
    static const stet_patch nothing;
    stet_status st = guarded(tx, name, at ? at : &nothing, len, false, err);
    if (st == STET_OK)
        st = stet_tx_patch(tx, name, at, len, err);
    return st == STET_OK ? guarded(tx, name, at ? at : &nothing, len, true, err) : st;
}

stet_status stet_tx_write_outside(stet_tx *tx, const stet_docname *name, stet_pathref path, stet_value value,
                                  stet_error *err) {
    stet_patch op = {.kind = STET_PATCH_REPLACE, .path = path, .value = value};
    stet_status st = guarded(tx, name, &op, 1, false, err);
    if (st != STET_OK) {
        stet_value_release(value);
        return st;
    }
    stet_value_retain(value);
    st = path.len == 0 ? stet_tx_put(tx, name, value, err) : stet_tx_write(tx, name, path, value, err);
    if (st == STET_OK)
        st = guarded(tx, name, &op, 1, true, err);
    stet_value_release(op.value);
    return st;
}

stet_status stet_tx_drop_outside(stet_tx *tx, const stet_docname *name, stet_error *err) {
    stet_status st = guarded(tx, name, NULL, 0, false, err);
    return st == STET_OK ? stet_tx_drop(tx, name, err) : st;
}

stet_status stet_tx_set(stet_tx *tx, const char *text, const char *scope, stet_value value, stet_error *err) {
    if (!tx || !text) {
        stet_value_release(value);
        return stet_fail_null(err);
    }
    cell c;
    stet_status st = open_cell(&c, text, scope, err);
    if (st == STET_OK)
        st = stet_tx_write_outside(tx, &c.name, stet_path_ref(&c.path), value, err);
    else
        stet_value_release(value);
    close_cell(&c);
    return st;
}

stet_status stet_tx_patch_value(stet_tx *tx, const char *id, const char *scope, stet_value operations,
                                stet_error *err) {
    if (!tx || !id)
        return stet_fail_null(err);
    stet_arena arena = STET_ARENA_INIT;
    stet_patches ops = {0};
    stet_docname name = {id, scope};
    stet_status st = stet_patches_of_value(operations, false, &arena, &ops, err);
    if (st == STET_OK)
        st = stet_tx_patch_outside(tx, &name, ops.at, ops.len, err);
    stet_patches_release(&ops);
    stet_arena_release(&arena);
    return st;
}

stet_status stet_tx_delete(stet_tx *tx, const char *id, const char *scope, stet_error *err) {
    if (!tx || !id)
        return stet_fail_null(err);
    stet_docname name = {id, scope};
    return stet_tx_drop_outside(tx, &name, err);
}

stet_status stet_tx_require_absent(stet_tx *tx, const char *id, const char *scope, stet_error *err) {
    if (!tx || !id)
        return stet_fail_null(err);
    stet_docname name = {id, scope};
    return stet_tx_need_absent(tx, &name, err);
}

stet_status stet_tx_require_hash(stet_tx *tx, const char *id, const char *scope, const char *hex, stet_error *err) {
    if (!tx || !id || !hex)
        return stet_fail_null(err);
    stet_docname name = {id, scope};
    stet_hash h;
    if (!stet_hash_of_hex(hex, strlen(hex), &h))
        return stet_fail(err, STET_INVALID, "hash \"%.80s\": expected 64 hexadecimal digits in lower case", hex);
    return stet_tx_need_hash(tx, &name, h, err);
}

struct stet_follower {
    stet_feed *feed;
    char *branch;
};

stet_status stet_space_follow(stet_space *s, const char *branch, const char *text, const char *scope, int64_t after,
                              stet_follower **out, stet_error *err) {
    if (!s || !out)
        return stet_fail_null(err);
    int64_t number;
    stet_feed *feed = NULL;
    stet_status st = stet_space_branch(s, branch, &number, err);
    if (st == STET_OK)
        st = stet_feed_open(s, number, after, &feed, err);
    if (st == STET_OK && text) {
        cell c;
        st = open_cell(&c, text, scope, err);
        if (st == STET_OK)
            st = stet_feed_add(feed, &c.name, stet_path_ref(&c.path), STET_RECURSIVE, err);
        close_cell(&c);
    }
    if (st != STET_OK) {
        stet_feed_close(feed);
        return st;
    }
    *out = stet_alloc_zero(sizeof **out);
    (*out)->feed = feed;
    (*out)->branch = stet_strdup(branch ? branch : "");
    return STET_OK;
}

stet_value stet_changes_value(const stet_doc_change *at, size_t len) {
    stet_value list = stet_value_array();
    stet_buf b = STET_BUF(0);
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < at[i].len; j++) {
            stet_value leaf = stet_value_object();
            stet_buf_clear(&b);
            stet_path_print(at[i].at[j].path, &b);
            stet_value_put(&leaf, "id", stet_value_string(at[i].name.id));
            stet_value_put(&leaf, "scope", stet_value_string(at[i].name.scope));
            stet_value_put(&leaf, "path", stet_value_string_n(stet_buf_cstr(&b), b.len));
            stet_value_put(&leaf, "kind", stet_value_string(at[i].at[j].kind == STET_KEYSET ? "keys" : "value"));
            stet_value_push(&list, leaf);
        }
    stet_buf_release(&b);
    return list;
}

stet_value stet_commit_value(const stet_commit_record *r, const char *branch) {
    char when[STET_TIME_TEXT];
    stet_time_print(r->time_ms, when);
    stet_value v = stet_value_object();
    stet_value_put(&v, "seq", stet_value_int(r->seq));
    stet_value_put(&v, "time", stet_value_string(when));
    stet_value_put(&v, "branch", stet_value_string(branch));
    stet_value_put(&v, "changes", stet_changes_value(r->at, r->len));
    return v;
}

stet_status stet_follower_next(stet_follower *f, int timeout_ms, stet_value *event, stet_error *err) {
    if (!f || !event)
        return stet_fail_null(err);
    const stet_commit_record *r;
    stet_status st = stet_feed_next(f->feed, timeout_ms, &r, err);
    if (st == STET_OK)
        *event = stet_commit_value(r, f->branch);
    return st;
}

void stet_follower_close(stet_follower *f) {
    if (!f)
        return;
    stet_feed_close(f->feed);
    free(f->branch);
    free(f);
}
