#include "scheduler/reader.h"

#include <string.h>

/* Where a read goes: a document and a path in its envelope. */
typedef struct target {
    stet_space *space; /* NULL: the transaction's */
    stet_docname name;
    stet_path path;
    stet_value hold;      /* keeps the strings of `name` alive */
    stet_value id, scope; /* borrowed from it; short strings lie in these */
} target;

static stet_status too_many(stet_error *err) {
    stet_fail(err, STET_LIMIT, "links lead on and on: more than %d one behind the other", STET_READER_MAX_HOPS);
    stet_hint(err, "one of them leads back to itself");
    return STET_LIMIT;
}

static stet_status read_recorded(stet_reader *r, const target *t, stet_pathref path, stet_read_kind kind,
                                 stet_value *out, stet_error *err) {
    if (r->record)
        return stet_tx_read(r->tx, t->space, &t->name, path, kind, out, err);
    return stet_tx_peek(r->tx, t->space, &t->name, path, out, err);
}

/* Points `t` at what a link leads to, plus `rest`. The link's value must stay alive while `t` is used. */
static stet_status follow(stet_reader *r, stet_value link, stet_pathref rest, target *t, stet_error *err) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    if (!stet_link_read(link, &l, &path)) {
        stet_path_release(&path);
        return stet_fail(err, STET_INVALID, "a link that makes no sense: it needs an id, and a path of keys");
    }
    stet_buf_add(&path.buf, rest.bytes, rest.len);
    if (++r->links > STET_READER_MAX_LINKS) {
        stet_path_release(&path);
        return stet_fail(err, STET_LIMIT, "more than %d links in one read", STET_READER_MAX_LINKS);
    }
    stet_space *space = NULL;
    if (l.space) {
        stet_status status = r->space(r->ctx, l.space, &space, err);
        if (status != STET_OK) {
            stet_path_release(&path);
            return status;
        }
    }
    stet_release(t->hold);
    stet_path_release(&t->path);
    t->hold = stet_array();
    stet_push(&t->hold, stet_retain(l.id_value));
    stet_push(&t->hold, stet_retain(l.scope_value));
    /* Short strings live in the value that holds them: point into the copy that is kept. */
    t->space = space;
    t->path = path;
    t->name = (stet_docname){NULL, NULL};
    return STET_OK;
}

/* Moves `t` on until no link is on its way any more; each link met is read. */
static stet_status settle_target(stet_reader *r, target *t, stet_error *err) {
    for (int hops = 0;; hops++) {
        if (hops > STET_READER_MAX_HOPS)
            return too_many(err);
        stet_value root;
        if (stet_typeof(t->hold) == STET_ARRAY) {
            t->id = stet_at(t->hold, 0);
            t->scope = stet_at(t->hold, 1);
            t->name.id = stet_as_string(&t->id, NULL);
            t->name.scope = stet_typeof(t->scope) == STET_STRING ? stet_as_string(&t->scope, NULL) : NULL;
        }
        stet_pathref path = stet_path_ref(&t->path);
        stet_status status = stet_tx_peek(r->tx, t->space, &t->name, STET_PATH_ROOT, &root, NULL);
        if (status != STET_OK)
            return STET_OK; /* nothing there, or nothing to be had: whoever reads or writes will be told */
        size_t cursor = 0, key_len;
        const char *key;
        stet_buf scratch = STET_BUF(0);
        stet_value cur = root, link = stet_null();
        size_t at = 0;
        bool linked = false, there = true;
        while (there && !linked) {
            if (at > 0 && stet_link_is(cur, NULL)) {
                linked = true;
                link = cur;
                break;
            }
            at = cursor;
            if (!stet_path_next(path, &cursor, &scratch, &key, &key_len))
                break;
            size_t index;
            if (stet_typeof(cur) == STET_OBJECT)
                there = stet_find(cur, key, key_len, &cur);
            else if (stet_typeof(cur) == STET_ARRAY && stet_path_index(key, key_len, &index) && index < stet_count(cur))
                cur = stet_at(cur, index);
            else
                there = false;
            at = cursor;
        }
        stet_buf_release(&scratch);
        if (!linked)
            return STET_OK;
        /* The link was looked at: that is a read, too. */
        stet_pathref upto = {path.bytes, at};
        stet_value seen;
        status = read_recorded(r, t, upto, STET_RECURSIVE, &seen, err);
        if (status != STET_OK)
            return status;
        stet_value keep = stet_retain(link);
        stet_path rest = STET_PATH_INIT;
        stet_buf_add(&rest.buf, path.bytes + at, path.len - at);
        status = follow(r, keep, stet_path_ref(&rest), t, err);
        stet_path_release(&rest);
        stet_release(keep);
        if (status != STET_OK)
            return status;
    }
}

/* Reads what `t` points at, following links on the way. */
static stet_status read_target(stet_reader *r, target *t, stet_read_kind kind, stet_value *out, stet_error *err) {
    stet_status status = settle_target(r, t, err);
    return status == STET_OK ? read_recorded(r, t, stet_path_ref(&t->path), kind, out, err) : status;
}

static void target_release(target *t) {
    stet_release(t->hold);
    stet_path_release(&t->path);
}

/* ---- Values with links in them
 * ---------------------------------------------------------------------------------------- */

static bool plain(stet_value v) {
    return stet_typeof(v) != STET_ARRAY && stet_typeof(v) != STET_OBJECT;
}

typedef struct frame {
    stet_value from, to;
    size_t next;
    int hops;
} frame;

/* Is there a link or, in a binding, a literal anywhere in it? */
static bool has_links(stet_value v, bool binding) {
    if (plain(v))
        return false;
    STET_VEC(frame) stack = {0};
    bool found = false;
    *stet_vec_add(&stack) = (frame){v, stet_null(), 0, 0};
    while (stack.len > 0 && !found) {
        frame *f = &stack.at[stack.len - 1];
        if (f->next == 0 && (stet_link_is(f->from, NULL) || (binding && stet_binding_is_literal(f->from, NULL))))
            found = true;
        size_t n = stet_count(f->from);
        while (f->next < n && plain(stet_at(f->from, f->next)))
            f->next++;
        if (f->next >= n) {
            stack.len--;
            continue;
        }
        stet_value child = stet_at(f->from, f->next++);
        *stet_vec_add(&stack) = (frame){child, stet_null(), 0, 0};
    }
    stet_vec_release(&stack);
    return found;
}

bool stet_reader_has_links(stet_value v) {
    return has_links(v, false);
}

/* Copies `v` with its links replaced; the copy belongs to the reader. */
static stet_status materialize(stet_reader *r, stet_value v, bool binding, stet_value *out, stet_error *err) {
    if (!has_links(v, binding)) {
        *out = v;
        return STET_OK;
    }
    STET_VEC(frame) stack = {0};
    stet_status status = STET_OK;
    stet_value done = stet_null();
    bool have = false;
    *stet_vec_add(&stack) = (frame){v, stet_retain(v), 0, 0};
    while (stack.len > 0 && status == STET_OK) {
        frame *f = &stack.at[stack.len - 1];
        if (have) {
            size_t i = f->next++, len;
            if (stet_typeof(f->to) == STET_ARRAY) {
                stet_put_at(&f->to, i, done);
            } else {
                const char *key = stet_key_at(f->from, i, &len);
                stet_put_n(&f->to, key, len, done);
            }
            have = false;
        }
        stet_value inner;
        stet_link l;
        if (f->next == 0 && binding && stet_binding_is_literal(f->from, &inner)) {
            stet_retain(inner);
            stet_release(f->to);
            done = inner;
            have = true;
            stack.len--;
            continue;
        }
        if (f->next == 0 && stet_link_is(f->from, NULL)) {
            stet_path ignored = STET_PATH_INIT;
            bool cell = stet_link_read(f->from, &l, &ignored) && l.as_cell;
            stet_path_release(&ignored);
            if (cell) {
                done = f->to;
                have = true;
                stack.len--;
                continue;
            }
            if (f->hops >= STET_READER_MAX_HOPS) {
                status = too_many(err);
                break;
            }
            target t = {.path = STET_PATH_INIT, .hold = stet_null()};
            stet_value got = stet_null();
            status = follow(r, f->from, STET_PATH_ROOT, &t, err);
            if (status == STET_OK)
                status = read_target(r, &t, STET_RECURSIVE, &got, err);
            target_release(&t);
            if (status == STET_NOT_FOUND) {
                if (err)
                    stet_error_clear(err);
                got = stet_null();
                status = STET_OK;
            }
            if (status != STET_OK)
                break;
            stet_release(f->to);
            int hops = f->hops + 1;
            stack.len--;
            /* What a link leads to is a value: nothing in it is a binding, but it may hold links. */
            *stet_vec_add(&stack) = (frame){got, stet_retain(got), 0, hops};
            if (!has_links(got, false)) {
                done = stack.at[--stack.len].to;
                have = true;
            }
            continue;
        }
        size_t n = stet_count(f->from);
        while (f->next < n && plain(stet_at(f->from, f->next)))
            f->next++;
        if (f->next >= n) {
            done = f->to;
            have = true;
            stack.len--;
            continue;
        }
        stet_value child = stet_at(f->from, f->next);
        int hops = f->hops;
        *stet_vec_add(&stack) = (frame){child, stet_retain(child), 0, hops};
    }
    for (size_t i = 0; i < stack.len; i++)
        stet_release(stack.at[i].to);
    stet_vec_release(&stack);
    if (status != STET_OK) {
        if (have)
            stet_release(done);
        return status;
    }
    *stet_vec_add(&r->owned) = done;
    *out = done;
    return STET_OK;
}

stet_status stet_reader_cell(stet_reader *r, stet_space *space, const stet_docname *name, stet_pathref path,
                             stet_read_kind kind, stet_value *out, stet_error *err) {
    target t = {.space = space, .name = *name, .path = STET_PATH_INIT, .hold = stet_null()};
    stet_value got;
    stet_path_set(&t.path, path);
    stet_status status = read_target(r, &t, kind, &got, err);
    target_release(&t);
    if (status != STET_OK)
        return status;
    if (kind == STET_SHALLOW) {
        *out = got;
        return STET_OK;
    }
    return materialize(r, got, false, out, err);
}

stet_status stet_reader_value(stet_reader *r, stet_value v, stet_value *out, stet_error *err) {
    return materialize(r, v, false, out, err);
}

static stet_status read_binding(stet_reader *r, stet_value binding, stet_pathref path, stet_read_kind kind, bool raw,
                                stet_value *out, stet_error *err) {
    stet_value cur = binding, inner;
    size_t cursor = 0, key_len;
    const char *key;
    stet_buf scratch = STET_BUF(0);
    bool literal = false;
    for (;;) {
        size_t at = cursor;
        if (!literal && stet_link_is(cur, NULL)) {
            target t = {.path = STET_PATH_INIT, .hold = stet_null()};
            stet_value got;
            stet_buf_release(&scratch);
            stet_pathref rest = {path.bytes + at, path.len - at};
            stet_status status = follow(r, cur, rest, &t, err);
            if (status == STET_OK)
                status = read_target(r, &t, kind, &got, err);
            target_release(&t);
            if (status != STET_OK)
                return status;
            if (kind == STET_SHALLOW || raw) {
                *out = got;
                return STET_OK;
            }
            return materialize(r, got, false, out, err);
        }
        if (!literal && stet_binding_is_literal(cur, &inner)) {
            cur = inner;
            literal = true;
            continue;
        }
        if (!stet_path_next(path, &cursor, &scratch, &key, &key_len))
            break;
        size_t index;
        bool there = false;
        if (stet_typeof(cur) == STET_OBJECT)
            there = stet_find(cur, key, key_len, &cur);
        else if (stet_typeof(cur) == STET_ARRAY && stet_path_index(key, key_len, &index) && index < stet_count(cur)) {
            cur = stet_at(cur, index);
            there = true;
        }
        if (!there) {
            stet_buf_release(&scratch);
            return stet_fail(err, STET_NOT_FOUND, "no such input");
        }
    }
    stet_buf_release(&scratch);
    if (literal || raw || kind == STET_SHALLOW) {
        *out = cur;
        return STET_OK;
    }
    return materialize(r, cur, true, out, err);
}

stet_status stet_reader_place_read(stet_reader *r, const stet_reader_place *at, stet_error *err) {
    stet_value ignored;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_tx_read(r->tx, at->space, &(stet_docname){at->id, at->scope}, stet_path_ref(&at->path),
                                      STET_SHALLOW, &ignored, &mine);
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    if (status != STET_OK && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status;
}

void stet_reader_place_release(stet_reader_place *p) {
    stet_free(p->id);
    stet_free(p->scope);
    stet_path_release(&p->path);
    *p = (stet_reader_place){.path = STET_PATH_INIT};
}

stet_status stet_reader_locate(stet_reader *r, stet_value binding, stet_pathref path, stet_reader_place *out,
                               stet_error *err) {
    stet_value cur = binding;
    size_t cursor = 0, key_len, index;
    const char *key;
    stet_buf scratch = STET_BUF(0);
    bool there = true;
    while (there && !stet_link_is(cur, NULL)) {
        if (!stet_path_next(path, &cursor, &scratch, &key, &key_len) || stet_binding_is_literal(cur, NULL))
            there = false;
        else if (stet_typeof(cur) == STET_OBJECT)
            there = stet_find(cur, key, key_len, &cur);
        else if (stet_typeof(cur) == STET_ARRAY && stet_path_index(key, key_len, &index) && index < stet_count(cur))
            cur = stet_at(cur, index);
        else
            there = false;
    }
    stet_buf_release(&scratch);
    stet_link l;
    stet_path ignored = STET_PATH_INIT;
    bool cell = there && stet_link_read(cur, &l, &ignored) && l.as_cell;
    stet_path_release(&ignored);
    if (!cell)
        return stet_fail(err, STET_INVALID,
                         "no cell is bound there: only an input with \"asCell\": true is written to");
    target t = {.path = STET_PATH_INIT, .hold = stet_null()};
    stet_status status = follow(r, cur, (stet_pathref){path.bytes + cursor, path.len - cursor}, &t, err);
    if (status == STET_OK)
        status = settle_target(r, &t, err);
    if (status == STET_OK) {
        *out =
            (stet_reader_place){t.space, stet_strdup(t.name.id), stet_strdup(t.name.scope ? t.name.scope : ""), t.path};
        t.path = (stet_path)STET_PATH_INIT;
    }
    target_release(&t);
    return status;
}

stet_status stet_reader_binding(stet_reader *r, stet_value binding, stet_pathref path, stet_read_kind kind,
                                stet_value *out, stet_error *err) {
    return read_binding(r, binding, path, kind, false, out, err);
}

stet_status stet_reader_raw(stet_reader *r, stet_value binding, stet_pathref path, stet_value *out, stet_error *err) {
    return read_binding(r, binding, path, STET_RECURSIVE, true, out, err);
}

void stet_reader_release(stet_reader *r) {
    for (size_t i = 0; i < r->owned.len; i++)
        stet_release(r->owned.at[i]);
    stet_vec_release(&r->owned);
    r->links = 0;
}
