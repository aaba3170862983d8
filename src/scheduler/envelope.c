/* envelope.c - where a materializer may write: follows the links from its cells, in the documents as they are. */

#include "scheduler/envelope.h"

#include <string.h>

#include "base/vec.h"
#include "graph/cells.h"

typedef struct cell {
    stet_space *space; /* NULL: the own one */
    stet_docname name;
    stet_pathref path; /* in the envelope */
} cell;

typedef struct found {
    const stet_address *at;
    size_t count;
} found;

typedef struct search {
    stet_envelopes *e;
    stet_map met;
    STET_VEC(cell) cells; /* those at the front were looked at */
} search;

static void cell_key(stet_buf *key, const cell *c) {
    stet_buf_clear(key);
    stet_buf_str(key, c->space ? stet_space_uuid(c->space) : "");
    stet_buf_char(key, 0);
    stet_buf_str(key, c->name.scope);
    stet_buf_char(key, 0);
    stet_buf_str(key, c->name.id);
    stet_buf_char(key, 0);
    stet_buf_add(key, c->path.bytes, c->path.len);
}

/* Each cell once: links may form a circle. */
static void meet(search *f, const cell *c) {
    stet_buf key = STET_BUF(0);
    cell_key(&key, c);
    if (!stet_map_get(&f->met, key.data, key.len)) {
        stet_arena *arena = &f->e->arena;
        stet_map_put(&f->met, key.data, key.len, (stet_slot){.n = 1});
        *stet_vec_add(&f->cells) =
            (cell){c->space,
                   {stet_arena_strdup(arena, c->name.id), stet_arena_strdup(arena, c->name.scope)},
                   {stet_arena_strndup(arena, c->path.bytes ? c->path.bytes : "", c->path.len), c->path.len}};
    }
    stet_buf_release(&key);
}

/* What a link in a document of `space` leads to, plus `rest`. */
static void follow(search *f, stet_space *space, stet_value link, stet_pathref rest) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    bool there = stet_link_read(link, &l, &path);
    if (there && l.space) {
        space = NULL;
        if (strcmp(l.space, stet_space_name(f->e->space)) != 0)
            there = f->e->open(f->e->ctx, l.space, &space, NULL) == STET_OK;
    }
    if (there) {
        stet_buf_add(&path.buf, rest.bytes, rest.len);
        meet(f, &(cell){space == f->e->space ? NULL : space, {l.id, l.scope}, stet_path_ref(&path)});
    }
    stet_path_release(&path);
}

/* Every link inside a value: whoever has the cell may write below it. */
static void follow_inside(search *f, stet_space *space, stet_value v) {
    STET_VEC(stet_value) stack = {0};
    *stet_vec_add(&stack) = v;
    while (stack.len > 0) {
        stet_value at = stack.at[--stack.len];
        if (stet_link_is(at, NULL)) {
            follow(f, space, at, STET_PATH_ROOT);
            continue;
        }
        for (size_t i = 0; i < stet_value_count(at); i++) {
            stet_value child = stet_value_at(at, i);
            if (stet_value_type(child) == STET_TYPE_OBJECT || stet_value_type(child) == STET_TYPE_ARRAY)
                *stet_vec_add(&stack) = child;
        }
    }
    stet_vec_release(&stack);
}

static void look_at(search *f, const cell *c, stet_value envelope) {
    size_t cursor = 0, len, index;
    const char *key;
    stet_buf scratch = STET_BUF(0);
    stet_value cur = envelope;
    bool there = true, link = false;
    while (there && !link && stet_path_next(c->path, &cursor, &scratch, &key, &len)) {
        if (stet_value_type(cur) == STET_TYPE_OBJECT)
            there = stet_value_find(cur, key, len, &cur);
        else if (stet_value_type(cur) == STET_TYPE_ARRAY && stet_path_index(key, len, &index) &&
                 index < stet_value_count(cur))
            cur = stet_value_at(cur, index);
        else
            there = false;
        link = there && stet_link_is(cur, NULL);
    }
    stet_buf_release(&scratch);
    if (link)
        follow(f, c->space, cur, (stet_pathref){c->path.bytes + cursor, c->path.len - cursor});
    else if (there && (stet_value_type(cur) == STET_TYPE_OBJECT || stet_value_type(cur) == STET_TYPE_ARRAY))
        follow_inside(f, c->space, cur);
}

/* A document that can't be decoded leads nowhere: the write through it fails, too. */
static stet_status look(search *f, const cell *c, stet_error *err) {
    stet_doc_state state;
    stet_error mine = STET_ERROR_INIT;
    stet_status status =
        stet_space_load(c->space ? c->space : f->e->space, c->space ? 0 : f->e->branch, &c->name, -1, &state, &mine);
    if (status == STET_OK) {
        if (state.exists)
            look_at(f, c, state.value);
        stet_value_release(state.value);
    } else if (status == STET_CORRUPT || status == STET_NOT_FOUND || status == STET_INVALID) {
        status = STET_OK;
    } else if (err) {
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
    return status;
}

static stet_status follow_all(search *f, const cell *first, found *out, stet_error *err) {
    stet_status status = STET_OK;
    meet(f, first);
    for (size_t i = 0; i < f->cells.len && status == STET_OK; i++) {
        cell c = f->cells.at[i]; /* the list grows */
        status = look(f, &c, err);
    }
    stet_address *places = stet_arena_alloc(&f->e->arena, (f->cells.len ? f->cells.len : 1) * sizeof *places);
    for (size_t i = 0; i < f->cells.len; i++)
        if (!f->cells.at[i].space && !stet_cells_closed(f->cells.at[i].name.id))
            places[out->count++] = (stet_address){NULL, f->cells.at[i].name, f->cells.at[i].path};
    out->at = places;
    return status;
}

stet_status stet_envelopes_of(stet_envelopes *e, const stet_address *at, const stet_address **out, size_t *count,
                              stet_error *err) {
    search f = {.e = e};
    cell first = {NULL, {at->name.id, at->name.scope ? at->name.scope : ""}, at->path};
    stet_buf key = STET_BUF(0);
    stet_status status = STET_OK;
    cell_key(&key, &first);
    const stet_slot *slot = stet_map_get(&e->known, key.data, key.len);
    if (!slot) {
        found *r = stet_arena_zero(&e->arena, sizeof *r);
        if (strncmp(at->name.id, STET_MAKES_PREFIX, strlen(STET_MAKES_PREFIX)) == 0)
            status =
                stet_makes_places(&e->patterns, e->space, e->branch, at->name.id, &e->arena, &r->at, &r->count, err);
        else
            status = follow_all(&f, &first, r, err);
        if (status == STET_OK) {
            stet_map_put(&e->known, key.data, key.len, (stet_slot){.p = r});
            slot = stet_map_get(&e->known, key.data, key.len);
        }
    }
    if (slot) {
        *out = ((const found *)slot->p)->at;
        *count = ((const found *)slot->p)->count;
    }
    stet_buf_release(&key);
    stet_vec_release(&f.cells);
    stet_map_release(&f.met);
    return status;
}

void stet_envelopes_release(stet_envelopes *e) {
    stet_map_release(&e->known);
    e->patterns = (stet_makes_known){0};
    stet_arena_release(&e->arena);
}
