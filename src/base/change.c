/* change.c - compares two values and lists the leaves that changed; decides which reads a change touches. */

#include "base/change.h"

#include <assert.h>
#include <string.h>

bool stet_touches(stet_pathref change, stet_change_kind change_kind, stet_pathref read, stet_read_kind read_kind) {
    if (stet_path_is_prefix(change, read))
        return true;
    if (read_kind == STET_RECURSIVE)
        return stet_path_is_prefix(read, change);
    return change_kind == STET_KEYSET && stet_path_is_child(read, change);
}

/* Two containers of the same type that are not the same value, and how far they have been walked. */
typedef struct frame {
    stet_value before, after;
    size_t i, j;     /* next member of before, of after; for arrays i alone */
    size_t path_len; /* of this container */
    bool is_object;
} frame;

typedef struct walk {
    STET_VEC(frame) stack; /* in place of recursion: documents may be deep */
    stet_path path;        /* of the container at the top of the stack, or of a member of it */
    stet_arena *arena;
    stet_changes *out;
    size_t first;   /* leaves of this walk start here in `out` */
    size_t max;     /* 0: no bound */
    bool collapsed; /* more than `max` leaves: only their common prefix is kept, in out->at[first] */
    bool sorted;
} walk;

static void add_leaf(walk *w, stet_change_kind kind) {
    stet_pathref here = stet_path_ref(&w->path);
    stet_changes *out = w->out;
    if (w->collapsed) {
        out->at[w->first].path = stet_path_common(out->at[w->first].path, here);
        return;
    }
    if (w->max && out->len - w->first == w->max) {
        /* A value leaf at the common prefix touches all that the leaves below it touch, key sets of their parents
         * included: it is a prefix of those parents, or equal. */
        stet_pathref common = here;
        for (size_t i = w->first; i < out->len; i++)
            common = stet_path_common(common, out->at[i].path);
        const char *bytes = common.len ? stet_arena_dup(w->arena, common.bytes, common.len) : "";
        out->at[w->first] = (stet_change){{bytes, common.len}, STET_VALUE};
        out->len = w->first + 1;
        w->collapsed = w->sorted = true;
        return;
    }
    if (out->len > w->first && stet_path_compare(out->at[out->len - 1].path, here) >= 0)
        w->sorted = false;
    const char *bytes = here.len ? stet_arena_dup(w->arena, here.bytes, here.len) : "";
    *stet_vec_add(out) = (stet_change){{bytes, here.len}, kind};
}

static bool identical(stet_value a, stet_value b) {
    return a.bits[0] == b.bits[0] && a.bits[1] == b.bits[1];
}

/* {"/": ...}: a link, or another value that stands for something else. */
static bool is_sigil(stet_value v) {
    size_t len;
    return stet_value_type(v) == STET_TYPE_OBJECT && stet_value_count(v) == 1 &&
           stet_value_key_at(v, 0, &len)[0] == '/' && len == 1;
}

/* Two values at the current path that are not identical: a leaf, or one more container to walk. */
static void differ(walk *w, stet_value before, stet_value after) {
    stet_type type = stet_value_type(before);
    if (type == stet_value_type(after) && (type == STET_TYPE_ARRAY || type == STET_TYPE_OBJECT) && !is_sigil(before) &&
        !is_sigil(after))
        *stet_vec_add(&w->stack) = (frame){before, after, 0, 0, w->path.buf.len, type == STET_TYPE_OBJECT};
    else if (!stet_value_equal(before, after))
        add_leaf(w, STET_VALUE);
}

/* The next member that differs. */
typedef struct member {
    const char *key; /* NULL: an element, at `index` */
    size_t key_len, index;
    stet_value before, after;
    bool in_before, in_after;
} member;

static bool next_element(frame *f, member *m) {
    size_t n = stet_value_count(f->before), n_after = stet_value_count(f->after);
    size_t common = n < n_after ? n : n_after, longest = n > n_after ? n : n_after;
    for (; f->i < longest; f->i++) {
        m->in_before = f->i < n;
        m->in_after = f->i < n_after;
        if (f->i < common) {
            m->before = stet_value_at(f->before, f->i);
            m->after = stet_value_at(f->after, f->i);
            if (identical(m->before, m->after))
                continue;
        }
        m->key = NULL;
        m->index = f->i++;
        return true;
    }
    return false;
}

static bool next_member(frame *f, member *m) {
    for (;;) {
        size_t len_before = 0, len_after = 0;
        const char *before = stet_value_key_at(f->before, f->i, &len_before);
        const char *after = stet_value_key_at(f->after, f->j, &len_after);
        if (!before && !after)
            return false;
        int order;
        if (!before || !after) {
            order = before ? -1 : 1;
        } else {
            size_t shorter = len_before < len_after ? len_before : len_after;
            order = shorter ? memcmp(before, after, shorter) : 0;
            if (order == 0)
                order = len_before < len_after ? -1 : len_before > len_after;
        }
        m->in_before = order <= 0;
        m->in_after = order >= 0;
        m->key = order <= 0 ? before : after;
        m->key_len = order <= 0 ? len_before : len_after;
        if (m->in_before)
            m->before = stet_value_at(f->before, f->i++);
        if (m->in_after)
            m->after = stet_value_at(f->after, f->j++);
        if (order == 0 && identical(m->before, m->after))
            continue;
        return true;
    }
}

/* Goes from the container at the top of the stack to a member of it. False if that path is longer than paths may be. */
static bool descend(walk *w, const member *m) {
    if (w->stack.len > STET_PATH_MAX_KEYS)
        return false;
    if (m->key)
        stet_path_push_n(&w->path, m->key, m->key_len);
    else
        stet_path_push_index(&w->path, m->index);
    if (!w->path.buf.overflow)
        return true;
    w->path.buf.overflow = false;
    return false;
}

static void step(walk *w) {
    frame *f = &w->stack.at[w->stack.len - 1];
    w->path.buf.len = f->path_len;
    member m = {0};
    if (!(f->is_object ? next_member(f, &m) : next_element(f, &m))) {
        w->stack.len--;
    } else if (!descend(w, &m)) {
        /* No path can name that member, so no read can either: a change in it counts as a change of its container. */
        if (!m.in_before || !m.in_after || !stet_value_equal(m.before, m.after)) {
            w->stack.len--;
            add_leaf(w, STET_VALUE);
        }
    } else if (m.in_before && m.in_after) {
        differ(w, m.before, m.after);
    } else {
        add_leaf(w, STET_KEYSET);
    }
}

static int by_path(const void *a, const void *b) {
    const stet_change *x = a, *y = b;
    return stet_path_compare(x->path, y->path);
}

/* Elements were walked in numeric order; paths are sorted by the bytes of their digits ("10" before "9"). */
static void sort(stet_changes *c) {
    qsort(c->at, c->len, sizeof *c->at, by_path);
    size_t kept = 0;
    for (size_t i = 0; i < c->len; i++) {
        if (kept && stet_path_compare(c->at[kept - 1].path, c->at[i].path) == 0) {
            /* STET_KEYSET touches everything that STET_VALUE does, and more. */
            if (c->at[i].kind == STET_KEYSET)
                c->at[kept - 1].kind = STET_KEYSET;
        } else {
            c->at[kept++] = c->at[i];
        }
    }
    c->len = kept;
}

void stet_changes_between(const stet_value *before, const stet_value *after, size_t max, stet_arena *arena,
                          stet_changes *out) {
    walk w = {.path = STET_PATH_INIT, .arena = arena, .out = out, .first = out->len, .max = max, .sorted = true};
    if (before && after) {
        if (!identical(*before, *after))
            differ(&w, *before, *after);
    } else if (before || after) {
        add_leaf(&w, STET_KEYSET);
    }
    while (w.stack.len) {
        step(&w);
        if (w.collapsed && out->at[w.first].path.len == 0)
            break; /* the root: nothing is wider */
    }
    if (!w.sorted || (w.first && out->len > w.first))
        sort(out);
    stet_vec_release(&w.stack);
    stet_path_release(&w.path);
}

void stet_changes_release(stet_changes *c) {
    stet_vec_release(c);
}
