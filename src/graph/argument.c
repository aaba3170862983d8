/* argument.c - keeps what users set in a piece's argument and cells apart from the pattern's defaults. */

#include "graph/argument.h"

#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "graph/owned.h"
#include "graph/stream.h"

#define MARK      "set"
#define OF_CELL   "cell:"
#define ALL_OF_IT "."

/* Loads the envelope of a document, or null. The caller releases it. */
typedef stet_status load_fn(void *ctx, const stet_docname *name, stet_value *envelope, stet_error *err);

static stet_status load_read(void *ctx, const stet_docname *name, stet_value *envelope, stet_error *err) {
    stet_value v;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_tx_read(ctx, NULL, name, STET_PATH_ROOT, STET_RECURSIVE, &v, &mine);
    *envelope = status == STET_OK ? stet_value_retain(v) : stet_value_null();
    if (status != STET_OK && status != STET_NOT_FOUND)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status == STET_NOT_FOUND ? STET_OK : status;
}

/* Not recorded as a read: used only to decide whether a write is allowed. */
static stet_status load_peek(void *ctx, const stet_docname *name, stet_value *envelope, stet_error *err) {
    stet_value v;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_tx_peek(ctx, NULL, name, STET_PATH_ROOT, &v, &mine);
    *envelope = status == STET_OK ? stet_value_retain(v) : stet_value_null();
    if (status != STET_OK && status != STET_NOT_FOUND)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status == STET_NOT_FOUND ? STET_OK : status;
}

typedef struct at_head {
    stet_space *s;
    int64_t branch;
} at_head;

static stet_status load_head(void *ctx, const stet_docname *name, stet_value *envelope, stet_error *err) {
    at_head *h = ctx;
    stet_doc_state state;
    stet_status status = stet_space_load(h->s, h->branch, name, -1, &state, err);
    *envelope = status == STET_OK && state.exists ? state.value : stet_value_null();
    return status;
}

static stet_status remove_member(stet_tx *tx, const stet_docname *name, stet_value envelope, const char *member,
                                 stet_error *err) {
    if (!stet_value_find(envelope, member, strlen(member), NULL))
        return STET_OK;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, member);
    stet_patch gone = {.kind = STET_PATCH_REMOVE, .path = stet_path_ref(&path)};
    stet_status status = stet_tx_patch(tx, name, &gone, 1, err);
    stet_path_release(&path);
    return status;
}

/* Null removes the mark. Consumes `mark`. */
static stet_status write_mark(stet_tx *tx, const stet_docname *name, stet_value envelope, stet_value mark,
                              stet_error *err) {
    return stet_value_type(mark) != STET_TYPE_NULL ? stet_tx_write_member(tx, name, MARK, mark, err)
                                                   : remove_member(tx, name, envelope, MARK, err);
}

/* O2: notes that the current value was set by hand and that computations write over it. `over` false: none do, so that
 * the value itself says it. Earlier writes of computations are lost either way. */
static stet_status write_hand(stet_tx *tx, const stet_docname *name, stet_value envelope, bool over, stet_error *err) {
    stet_value now, v, hand;
    stet_status status = remove_member(tx, name, envelope, STET_CELL_WRITTEN, err);
    if (status != STET_OK || !over)
        return status == STET_OK ? remove_member(tx, name, envelope, STET_CELL_HAND, err) : status;
    if (stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &now, NULL) != STET_OK)
        return STET_OK;
    hand = stet_value_object();
    if (stet_value_find(now, "value", 5, &v))
        stet_value_put(&hand, "value", stet_value_retain(v));
    return stet_tx_write_member(tx, name, STET_CELL_HAND, hand, err);
}

typedef struct defaults {
    stet_value root;     /* of the program; owned. Null: no longer stored */
    stet_value argument; /* an empty object if none is given; borrowed */
    stet_value cells;    /* {NAME: {"default"?, ...}}; borrowed */
    stet_value outputs;  /* in the form of outputs_of; owned */
    stet_value handed;   /* in the form of stet_piece_cell_inputs; owned */
    stet_value earlier;  /* A5: the earlier programs of the piece, an array; owned */
    stet_value owned;    /* {NAME: true}: cells that belonged to nodes, if nothing else is known; owned */
    stet_value empty;    /* owned */
    bool lost;           /* the earlier defaults are unknown */
} defaults;

static void defaults_of(stet_value root, defaults *d) {
    stet_value argument = stet_value_get(root, "argument"), v;
    d->empty = stet_value_object();
    d->argument = stet_value_find(argument, "default", 7, &v) ? v : d->empty;
    d->cells = stet_value_get(root, "cells");
}

static stet_status load_defaults(load_fn *load, void *ctx, stet_hash program, defaults *d, stet_error *err) {
    char hex[STET_HASH_HEX];
    stet_value envelope;
    stet_hash_hex(program, hex);
    char *id = stet_asprintf("program:%s", hex);
    stet_status status = load(ctx, &(stet_docname){id, NULL}, &envelope, err);
    stet_free(id);
    *d = (defaults){0};
    if (status == STET_OK) {
        d->root = stet_value_retain(stet_value_get(envelope, "value"));
        d->lost = stet_value_type(d->root) != STET_TYPE_OBJECT;
        stet_value_release(envelope);
        defaults_of(d->root, d);
    }
    return status;
}

static void defaults_release(defaults *d) {
    stet_value_release(d->root);
    stet_value_release(d->outputs);
    stet_value_release(d->handed);
    stet_value_release(d->earlier);
    stet_value_release(d->owned);
    stet_value_release(d->empty);
}

static bool has_default(stet_value cell, stet_value *out) {
    return stet_value_find(cell, "default", 7, out);
}

/* A5: loads the programs of older revisions if the marks of a piece can't be relied on; otherwise none. */
static stet_status load_earlier(stet_space *s, int64_t branch, const stet_piece *p, defaults *d, stet_error *err) {
    enum { PAGE = 100 };
    stet_docname name = stet_piece_name(p, NULL);
    stet_map seen = {0};
    at_head head = {s, branch};
    stet_status status = STET_OK;
    int64_t before = 0;
    d->earlier = stet_value_array();
    if (p->marked)
        return STET_OK;
    do {
        stet_arena arena = STET_ARENA_INIT;
        stet_revision *at;
        size_t count = 0;
        status = stet_space_history(s, branch, &name, before, PAGE, &arena, &at, &count, &before, err);
        for (size_t i = 0; i < count; i++) {
            stet_doc_state state = {0};
            stet_value_release(at[i].payload);
            if (status != STET_OK || stet_space_load(s, branch, &name, at[i].seq, &state, NULL) != STET_OK)
                continue; /* a lost revision proves nothing */
            stet_value cid = stet_value_get(stet_value_get(state.value, "pattern"), "program"), envelope;
            const char *hex = stet_value_type(cid) == STET_TYPE_STRING ? stet_value_as_string(&cid, NULL) : "";
            if (strncmp(hex, "cid:", 4) == 0 && !stet_map_get(&seen, hex, strlen(hex))) {
                stet_map_put(&seen, hex, strlen(hex), (stet_slot){.n = 1});
                char *id = stet_asprintf("program:%s", hex + 4);
                status = load_head(&head, &(stet_docname){id, NULL}, &envelope, err);
                stet_free(id);
                if (status == STET_OK) {
                    stet_value_push(&d->earlier, stet_value_retain(stet_value_get(envelope, "value")));
                    stet_value_release(envelope);
                }
            }
            stet_value_release(state.value);
        }
        stet_arena_release(&arena);
    } while (status == STET_OK && before > 0);
    stet_map_release(&seen);
    return status;
}

/* A5: was a part of the argument (`key` NULL: all of it), or its absence, the default of an earlier program? */
static bool was_default(const defaults *d, stet_value value, const char *key, size_t len) {
    stet_value part = value, old;
    bool there = !key || stet_value_find(value, key, len, &part);
    for (size_t i = 0; i < stet_value_count(d->earlier); i++) {
        stet_value all = stet_value_get(stet_value_get(stet_value_at(d->earlier, i), "argument"), "default");
        if (stet_value_type(all) == STET_TYPE_NULL)
            all = d->empty;
        old = all;
        bool had = !key || (stet_value_type(all) == STET_TYPE_OBJECT && stet_value_find(all, key, len, &old));
        if (had == there && (!there || stet_value_equal(old, part)))
            return true;
    }
    return false;
}

static bool was_cell_default(const defaults *d, const char *cell, stet_value value) {
    stet_value old;
    for (size_t i = 0; i < stet_value_count(d->earlier); i++)
        if (has_default(stet_value_get(stet_value_get(stet_value_at(d->earlier, i), "cells"), cell), &old) &&
            stet_value_equal(old, value))
            return true;
    return false;
}

/* A4: null, true or {KEY: true}. */
static bool is_handed(stet_value handed, const char *key, size_t len) {
    return stet_value_type(handed) == STET_TYPE_BOOL || stet_value_find(handed, key, len, NULL);
}

/* A2: null if nothing was set, true if all of it was, or {KEY: true}. The caller releases it. */
static stet_value overrides_of(stet_value envelope, const defaults *d) {
    stet_value mark = stet_value_get(envelope, MARK), was = d->argument, handed = stet_value_get(d->handed, "argument"),
               value;
    if (!stet_value_find(envelope, "value", 5, &value))
        return stet_value_null();
    if (stet_value_as_bool(stet_value_get(envelope, STET_CELL_WRITTEN)))
        handed = stet_value_bool(true);
    bool parts = stet_value_type(value) == STET_TYPE_OBJECT && stet_value_type(was) == STET_TYPE_OBJECT;
    if (stet_value_type(mark) == STET_TYPE_BOOL && stet_value_as_bool(mark))
        return stet_value_bool(true);
    if (d->lost) /* then only marks tell */
        return stet_value_count(mark) > 0 ? stet_value_retain(mark) : stet_value_null();
    if (!parts)
        return stet_value_count(mark) > 0 || (stet_value_type(handed) == STET_TYPE_NULL &&
                                              !stet_value_equal(value, was) && !was_default(d, value, NULL, 0))
                   ? stet_value_bool(true)
                   : stet_value_null();
    stet_value out = stet_value_type(mark) == STET_TYPE_OBJECT ? stet_value_retain(mark) : stet_value_object(), other;
    size_t len;
    for (size_t i = 0; i < stet_value_count(value); i++) {
        const char *key = stet_value_key_at(value, i, &len);
        if (!is_handed(handed, key, len) &&
            (!stet_value_find(was, key, len, &other) || !stet_value_equal(other, stet_value_at(value, i))) &&
            !was_default(d, value, key, len))
            stet_value_put_n(&out, key, len, stet_value_bool(true));
    }
    for (size_t i = 0; i < stet_value_count(was); i++) {
        const char *key = stet_value_key_at(was, i, &len);
        if (!is_handed(handed, key, len) && !stet_value_find(value, key, len, NULL) && !was_default(d, value, key, len))
            stet_value_put_n(&out, key, len, stet_value_bool(true));
    }
    if (stet_value_count(out) > 0)
        return out;
    stet_value_release(out);
    return stet_value_null();
}

/* A1: the argument with new defaults, without what computations wrote. `*set` may grow by parts that can't be told
 * apart. Consumes nothing. */
static stet_value argument_with(stet_value envelope, stet_value now, stet_value *set) {
    stet_value value = stet_value_get(envelope, "value"), mark = stet_value_get(envelope, MARK), hand = value, by;
    if (stet_value_find(envelope, STET_CELL_HAND, strlen(STET_CELL_HAND), &by))
        hand = stet_value_get(by, "value");
    if (stet_value_type(*set) == STET_TYPE_NULL)
        return stet_value_retain(now);
    if (stet_value_type(*set) == STET_TYPE_BOOL || stet_value_type(now) != STET_TYPE_OBJECT) {
        stet_value_release(*set);
        *set = stet_value_bool(true);
        return stet_value_retain(hand);
    }
    stet_value out = stet_value_retain(now), v;
    for (size_t i = 0; i < stet_value_count(*set); i++) {
        size_t len;
        const char *key = stet_value_key_at(*set, i, &len);
        if (stet_value_find(stet_value_find(mark, key, len, NULL) ? hand : value, key, len, &v))
            stet_value_put_n(&out, key, len, stet_value_retain(v));
        else
            stet_value_remove(&out, key, len);
    }
    return out;
}

/* Checks the argument (`cell` NULL) or a named cell. */
static stet_status check_value(const char *piece, const char *cell, stet_value schema, stet_value envelope,
                               stet_error *err) {
    stet_value v;
    if (stet_value_type(schema) == STET_TYPE_NULL || !stet_value_find(envelope, "value", 5, &v))
        return STET_OK;
    stet_status status = stet_schema_check(schema, v, err);
    if (status == STET_OK)
        return STET_OK;
    if (cell)
        stet_fail_in(err, "cell \"%s\" of piece \"%s\" does not match its schema", cell, piece);
    else
        stet_fail_in(err, "the argument of piece \"%s\" does not match its schema", piece);
    if (err && !stet_has_hint(err) && stet_value_find(envelope, MARK, strlen(MARK), NULL))
        stet_hint(err, "stet piece show %s says which keys are overridden; stet run --unset %s%s takes one back", piece,
                  cell ? OF_CELL : "KEY", cell ? cell : "");
    else if (err && !stet_has_hint(err))
        stet_hint(err, "set a value that matches, or change %s in the pattern and run it",
                  cell ? "the cell's default or schema" : "argument.default or argument.schema");
    return status;
}

/* Loads a schema by its hash; a null hash gives null. The caller releases the schema. */
static stet_status load_schema(load_fn *load, void *ctx, stet_value hash, stet_value *schema, stet_error *err) {
    *schema = stet_value_null();
    if (stet_value_type(hash) != STET_TYPE_STRING)
        return STET_OK;
    stet_value envelope;
    char *id = stet_asprintf("schema:%s", stet_value_as_string(&hash, NULL));
    stet_status status = load(ctx, &(stet_docname){id, NULL}, &envelope, err);
    if (status == STET_OK && !stet_value_find(envelope, "value", 5, schema)) {
        status = stet_fail(err, STET_CORRUPT, "\"%s\" is not stored any more", id);
        stet_hint(err, "stet check --repair has its piece set up again by the next stet run");
    }
    if (status == STET_OK)
        stet_value_retain(*schema);
    stet_value_release(envelope);
    stet_free(id);
    return status;
}

/* Checks one part of a piece that is set up; `header` is the member "process" of its result document. A cell that is
 * the output of a node is checked with what the node returns. */
static stet_status check_part(load_fn *load, void *ctx, const char *piece, stet_value header, const char *cell,
                              stet_error *err) {
    stet_value envelope, schema, hash = stet_value_get(header, "argumentSchema");
    if (cell)
        hash = stet_value_as_bool(stet_value_get(stet_value_get(header, "cellOutputs"), cell))
                   ? stet_value_null()
                   : stet_value_get(stet_value_get(header, "cellSchemas"), cell);
    if (stet_value_type(hash) == STET_TYPE_NULL)
        return STET_OK;
    char *id = stet_piece_part(piece, cell ? "cell" : "argument", cell);
    stet_docname part = stet_piece_at(piece, id);
    stet_status status = load(ctx, &part, &envelope, err);
    if (status == STET_OK) {
        status = load_schema(load, ctx, hash, &schema, err);
        if (status == STET_OK) {
            status = check_value(piece, cell, schema, envelope, err);
            stet_value_release(schema);
        }
        stet_value_release(envelope);
    }
    stet_free(id);
    return status;
}

static stet_status check_parts(load_fn *load, void *ctx, const char *piece, stet_value header, stet_error *err) {
    stet_value cells = stet_value_get(header, "cellSchemas");
    stet_status status = check_part(load, ctx, piece, header, NULL, err);
    for (size_t i = 0; i < stet_value_count(cells) && status == STET_OK; i++)
        status = check_part(load, ctx, piece, header, stet_value_key_at(cells, i, NULL), err);
    return status;
}

stet_status stet_piece_check_parts(stet_space *s, int64_t branch, const stet_piece *p, stet_error *err) {
    return check_parts(load_head, &(at_head){s, branch}, p->name, stet_value_get(p->envelope, "process"), err);
}

/* Sets {KEY or /POINTER: value} in the argument, and marks the parts as set. */
static stet_status set_argument(stet_tx *tx, const char *piece, stet_value set, stet_error *err) {
    char *id = stet_piece_part(piece, "argument", NULL);
    stet_docname name = stet_piece_at(piece, id);
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(set) && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_value_key_at(set, i, &len);
        stet_path path = STET_PATH_INIT;
        stet_path_push(&path, "value");
        if (len > 0 && key[0] == '/') {
            stet_path below = STET_PATH_INIT;
            status = stet_path_of_pointer(&below, key, len, err);
            stet_buf_add(&path.buf, stet_path_ref(&below).bytes, stet_path_ref(&below).len);
            stet_path_release(&below);
        } else if (len > 0) {
            stet_path_push_n(&path, key, len);
        }
        if (status == STET_OK)
            status = stet_tx_write(tx, &name, stet_path_ref(&path), stet_value_retain(stet_value_at(set, i)), err);
        if (status == STET_OK)
            status = stet_piece_mark_set(tx, &name, stet_path_ref(&path), err);
        stet_path_release(&path);
    }
    stet_free(id);
    return status;
}

static stet_status follow_argument(stet_tx *tx, const stet_piece_setup *s, const defaults *was, const defaults *now,
                                   stet_error *err) {
    char *id = stet_piece_part(s->process->piece, "argument", NULL);
    stet_docname part = stet_process_name(s->process, id);
    stet_value envelope;
    stet_status status = load_read(tx, &part, &envelope, err);
    if (status == STET_OK) {
        stet_value set = overrides_of(envelope, was);
        stet_value value = argument_with(envelope, now->argument, &set);
        status = stet_tx_write_member(tx, &part, "value", value, err);
        if (status == STET_OK)
            status = write_mark(tx, &part, envelope, set, err);
        else
            stet_value_release(set);
        if (status == STET_OK)
            status = write_hand(tx, &part, envelope, false, err);
        stet_value_release(envelope);
    }
    if (status == STET_OK)
        status = set_argument(tx, s->process->piece, s->set, err);
    if (status == STET_OK)
        status = load_peek(tx, &part, &envelope, err);
    if (status == STET_OK) {
        status = check_value(s->process->piece, NULL, s->pattern->argument_schema, envelope, err);
        stet_value_release(envelope);
    }
    stet_free(id);
    return status;
}

/* {NAME: [{"node","link"}]}: outputs of nodes that are a cell or a part of one. The caller releases it. */
static stet_value outputs_of(const stet_process *g) {
    stet_value out = stet_value_object(), list;
    char *prefix = stet_piece_part(g->piece, "cell", "");
    size_t skip = strlen(prefix);
    for (size_t i = 0; i < g->node_count; i++) {
        stet_link l;
        stet_path path = STET_PATH_INIT;
        stet_value link = stet_value_get(g->nodes[i].row, "output");
        if (stet_link_read(link, &l, &path) && !l.space && strcmp(l.scope, g->scope) == 0 &&
            strncmp(l.id, prefix, skip) == 0) {
            stet_value one = stet_value_object();
            stet_value_put(&one, "node", stet_value_string(g->nodes[i].id));
            stet_value_put(&one, "link", stet_value_retain(link));
            list = stet_value_find(out, l.id + skip, strlen(l.id + skip), &list) ? stet_value_retain(list)
                                                                                 : stet_value_array();
            stet_value_push(&list, one);
            stet_value_put(&out, l.id + skip, list);
        }
        stet_path_release(&path);
    }
    stet_free(prefix);
    return out;
}

typedef struct handing {
    char *argument, *cell;
    const char *scope;
    stet_value keys, cells; /* of the argument: {KEY: true}, or true */
    bool all;               /* links that are not cells, too */
} handing;

static bool note_handed(void *ctx, stet_value binding, stet_pathref place) {
    handing *h = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t cursor = 0, len, skip = strlen(h->cell);
    (void)place;
    bool cell =
        stet_link_read(binding, &l, &path) && (l.as_cell || h->all) && !l.space && strcmp(l.scope, h->scope) == 0;
    if (cell && strncmp(l.id, h->cell, skip) == 0) {
        stet_value_put(&h->cells, l.id + skip, stet_value_bool(true));
    } else if (cell && strcmp(l.id, h->argument) == 0) {
        if (!stet_path_next(stet_path_ref(&path), &cursor, &scratch, &key, &len)) {
            stet_value_release(h->keys);
            h->keys = stet_value_bool(true);
        } else if (stet_value_type(h->keys) == STET_TYPE_OBJECT) {
            stet_value_put_n(&h->keys, key, len, stet_value_bool(true));
        }
    }
    stet_buf_release(&scratch);
    stet_path_release(&path);
    return true;
}

stet_value stet_piece_cell_inputs(const stet_process *g) {
    handing h = {stet_piece_part(g->piece, "argument", NULL),
                 stet_piece_part(g->piece, "cell", ""),
                 g->scope,
                 stet_value_object(),
                 stet_value_object(),
                 false};
    stet_value out = stet_value_object();
    for (size_t i = 0; i < g->node_count; i++)
        if (!stet_stream_is_handler(g->nodes[i].row)) {
            h.all = false;
            stet_binding_walk(stet_value_get(g->nodes[i].row, "inputs"), note_handed, &h);
            h.all = true; /* includes what its children take as cells */
            stet_binding_walk(stet_value_get(g->nodes[i].row, "materializer"), note_handed, &h);
        }
    if (stet_value_type(h.keys) == STET_TYPE_BOOL || stet_value_count(h.keys) > 0)
        stet_value_put(&out, "argument", stet_value_retain(h.keys));
    if (stet_value_count(h.cells) > 0)
        stet_value_put(&out, "cells", stet_value_retain(h.cells));
    stet_value_release(h.keys);
    stet_value_release(h.cells);
    stet_free(h.argument);
    stet_free(h.cell);
    return out;
}

stet_value stet_piece_cell_outputs(const stet_process *g) {
    stet_value lists = outputs_of(g), out = stet_value_object();
    for (size_t i = 0; i < stet_value_count(lists); i++)
        stet_value_put(&out, stet_value_key_at(lists, i, NULL), stet_value_bool(true));
    stet_value_release(lists);
    return out;
}

static bool lists_output(stet_value outputs, stet_value one) {
    for (size_t i = 0; i < stet_value_count(outputs); i++)
        if (stet_value_equal(stet_value_at(outputs, i), one))
            return true;
    return false;
}

/* The place of an output in the envelope of its cell. False: it is the whole cell. */
static bool place_of(stet_value output, stet_path *out) {
    stet_link l;
    stet_path_set(out, STET_PATH_ROOT);
    stet_path_push(out, "value");
    size_t whole = stet_path_ref(out).len;
    return stet_link_read(stet_value_get(output, "link"), &l, out) && stet_path_ref(out).len > whole;
}

/* A3, for outputs that are a part of a cell: [[OUTPUT, value]] for those that the new graph still has. The caller
 * releases it. */
static stet_value kept_outputs(stet_value envelope, stet_value was, stet_value now) {
    stet_path path = STET_PATH_INIT;
    stet_value kept = stet_value_array(), v;
    for (size_t i = 0; i < stet_value_count(was); i++) {
        stet_value one = stet_value_at(was, i);
        if (!place_of(one, &path) || !stet_path_lookup(envelope, stet_path_ref(&path), &v) || !lists_output(now, one))
            continue;
        stet_value pair = stet_value_array();
        stet_value_push(&pair, stet_value_retain(one));
        stet_value_push(&pair, stet_value_retain(v));
        stet_value_push(&kept, pair);
    }
    stet_path_release(&path);
    return kept;
}

/* {"value": VALUE} with null at the place of each output, so that only what does not belong to nodes is compared. A
 * place that can't be reached is not masked. The caller releases it. */
static stet_value masked(stet_value value, stet_value outputs) {
    stet_path path = STET_PATH_INIT;
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", stet_value_retain(value));
    for (size_t i = 0; i < stet_value_count(outputs); i++) {
        if (!place_of(stet_value_at(outputs, i), &path))
            continue;
        stet_patch hide = {.kind = STET_PATCH_REPLACE, .path = stet_path_ref(&path)};
        if (stet_patches_apply(&hide, 1, &envelope, NULL) != STET_OK)
            break;
    }
    stet_path_release(&path);
    return envelope;
}

/* Removes the outputs of nodes from a cell that was set: each place gets what the default has there, or nothing.
 * Objects that were made only to hold an output are removed too. */
static stet_status clear_outputs(stet_tx *tx, const stet_docname *name, stet_value outputs, const stet_value *initial,
                                 stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_status status = STET_OK;
    stet_value base = stet_value_object(), v, there;
    if (initial)
        stet_value_put(&base, "value", stet_value_retain(*initial));
    for (size_t i = 0; i < stet_value_count(outputs) && status == STET_OK; i++) {
        if (!place_of(stet_value_at(outputs, i), &path))
            continue;
        if (stet_path_lookup(base, stet_path_ref(&path), &v)) {
            status = stet_tx_write(tx, name, stet_path_ref(&path), stet_value_retain(v), err);
            continue;
        }
        for (bool empty = true; empty && status == STET_OK && stet_path_depth(stet_path_ref(&path)) > 1;) {
            if (stet_tx_peek(tx, NULL, name, stet_path_ref(&path), &there, NULL) != STET_OK)
                break;
            stet_patch gone = {.kind = STET_PATCH_REMOVE, .path = stet_path_ref(&path)};
            status = stet_tx_patch(tx, name, &gone, 1, err);
            stet_path_pop(&path);
            empty = status == STET_OK && stet_tx_peek(tx, NULL, name, stet_path_ref(&path), &there, NULL) == STET_OK &&
                    stet_value_type(there) == STET_TYPE_OBJECT && stet_value_count(there) == 0;
        }
    }
    stet_value_release(base);
    stet_path_release(&path);
    return status;
}

static stet_status put_outputs(stet_tx *tx, const stet_docname *name, stet_value kept, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(kept) && status == STET_OK; i++) {
        stet_value pair = stet_value_at(kept, i);
        place_of(stet_value_at(pair, 0), &path);
        status = stet_tx_write(tx, name, stet_path_ref(&path), stet_value_retain(stet_value_at(pair, 1)), err);
    }
    stet_path_release(&path);
    return status;
}

static bool is_whole(stet_value outputs) {
    stet_path path = STET_PATH_INIT;
    bool whole = false;
    for (size_t i = 0; i < stet_value_count(outputs) && !whole; i++)
        whole = !place_of(stet_value_at(outputs, i), &path);
    stet_path_release(&path);
    return whole;
}

/* Was the cell set? `outputs` are the parts of it that belong to nodes (A3). `own`: all of it does. */
static bool cell_is_set(stet_value envelope, const defaults *d, const char *name, stet_value outputs, bool own) {
    stet_value was = stet_value_null(), mark = stet_value_get(envelope, MARK),
               value = stet_value_get(envelope, "value");
    if (stet_value_type(envelope) == STET_TYPE_NULL)
        return false;
    if (stet_value_type(mark) == STET_TYPE_BOOL && stet_value_as_bool(mark))
        return true;
    bool known = has_default(stet_value_get(d->cells, name), &was);
    if (own || stet_value_as_bool(stet_value_get(envelope, STET_CELL_WRITTEN)) || was_cell_default(d, name, value))
        return false;
    if (!known && stet_value_count(outputs) == 0)
        return true;
    /* Without a default, the cell held only its outputs. */
    stet_value none = stet_value_object(), here = masked(value, outputs), there = masked(known ? was : none, outputs);
    bool same = stet_value_equal(here, there);
    stet_value_release(none);
    stet_value_release(here);
    stet_value_release(there);
    return !same;
}

/* Checks the default, which a new piece begins with, and a value that was set. */
static stet_status check_cell(stet_tx *tx, const char *piece, const char *name, stet_value cell, bool output,
                              stet_error *err) {
    stet_value initial, envelope, schema = stet_value_get(cell, "schema");
    stet_status status = STET_OK;
    if (stet_value_type(schema) == STET_TYPE_NULL)
        return STET_OK;
    if (has_default(cell, &initial)) {
        envelope = stet_value_object();
        stet_value_put(&envelope, "value", stet_value_retain(initial));
        status = check_value(piece, name, schema, envelope, err);
        stet_value_release(envelope);
    }
    if (status != STET_OK || output)
        return status;
    char *id = stet_piece_part(piece, "cell", name);
    stet_docname part = stet_piece_at(piece, id);
    status = load_peek(tx, &part, &envelope, err);
    if (status == STET_OK) {
        status = check_value(piece, name, schema, envelope, err);
        stet_value_release(envelope);
    }
    stet_free(id);
    return status;
}

static stet_status follow_cell(stet_tx *tx, const char *piece, const char *name, const defaults *was,
                               const defaults *now, stet_error *err) {
    char *id = stet_piece_part(piece, "cell", name);
    stet_docname part = stet_piece_at(piece, id);
    stet_value envelope, initial, outputs = stet_value_get(was->outputs, name),
                                  outputs_now = stet_value_get(now->outputs, name);
    stet_status status = load_read(tx, &part, &envelope, err);
    if (status == STET_OK) {
        bool there = stet_value_type(envelope) != STET_TYPE_NULL,
             known = has_default(stet_value_get(now->cells, name), &initial);
        stet_value kept = kept_outputs(envelope, outputs, outputs_now);
        bool own = is_whole(outputs) || is_handed(stet_value_get(was->handed, "cells"), name, strlen(name)) ||
                   is_handed(was->owned, name, strlen(name)) || was->lost;
        stet_value hand, value;
        bool set = cell_is_set(envelope, was, name, outputs, own), stays = there && is_whole(outputs_now);
        bool apart = stet_value_find(envelope, STET_CELL_HAND, strlen(STET_CELL_HAND), &hand);
        if (set && apart && !stet_value_find(hand, "value", 5, &value))
            set = false; /* all of it was removed by hand */
        if (set) {
            status = write_mark(tx, &part, envelope, stet_value_bool(true), err);
            if (status == STET_OK && apart && !stays)
                status = stet_tx_write_member(tx, &part, "value", stet_value_retain(value), err);
            else if (status == STET_OK && !apart)
                status = clear_outputs(tx, &part, outputs, known ? &initial : NULL, err);
            if (status == STET_OK && !(apart && stays))
                status = write_hand(tx, &part, envelope, stet_value_count(outputs_now) > 0, err);
        } else if (stays) { /* A3: the node writes there */
            status = write_mark(tx, &part, envelope, stet_value_null(), err);
            if (status == STET_OK)
                status = write_hand(tx, &part, envelope, false, err);
        } else if (known) {
            status = stet_tx_write_member(tx, &part, "value", stet_value_retain(initial), err);
            if (status == STET_OK)
                status = write_mark(tx, &part, envelope, stet_value_null(), err);
            if (status == STET_OK)
                status = write_hand(tx, &part, envelope, false, err);
        } else if (there && stet_value_count(kept) == 0) {
            status = stet_tx_drop(tx, &part, err);
        } else if (there) {
            status = stet_tx_write_member(tx, &part, "value", stet_value_object(), err);
        }
        if (status == STET_OK)
            status = put_outputs(tx, &part, kept, err);
        stet_value_release(kept);
        stet_value_release(envelope);
    }
    if (status == STET_OK)
        status = check_cell(tx, piece, name, stet_value_get(now->cells, name), stet_value_count(outputs_now) > 0, err);
    stet_free(id);
    return status;
}

stet_status stet_piece_follow(stet_tx *tx, const stet_piece_setup *s, stet_error *err) {
    defaults was = {0}, now = {0};
    stet_status status = STET_OK;
    if (s->before && stet_value_count(s->unset) > 0)
        status = stet_piece_unset(tx, s->branch, s->before, s->unset, err);
    if (status != STET_OK)
        return status;
    if (s->before)
        status = load_defaults(load_read, tx, s->before->program, &was, err);
    else
        defaults_of(stet_value_null(), &was);
    if (s->before && status == STET_OK)
        status = load_earlier(stet_tx_space(tx), s->branch, s->before, &was, err);
    defaults_of(s->pattern->root, &now);
    if (stet_value_count(was.cells) > 0 && s->before_process)
        was.outputs = outputs_of(s->before_process);
    stet_value header = s->before ? stet_value_get(s->before->envelope, "process") : stet_value_null();
    if (s->before_process) {
        was.handed = stet_piece_cell_inputs(s->before_process);
    } else { /* its graph is damaged */
        was.handed = stet_value_retain(stet_value_get(header, "cellInputs"));
        was.owned = stet_value_retain(stet_value_get(header, "cellOutputs"));
    }
    if (stet_value_count(now.cells) > 0)
        now.outputs = outputs_of(s->process);
    if (status == STET_OK)
        status = follow_argument(tx, s, &was, &now, err);
    for (size_t i = 0; i < stet_value_count(now.cells) && status == STET_OK; i++)
        status = follow_cell(tx, s->process->piece, stet_value_key_at(now.cells, i, NULL), &was, &now, err);
    for (size_t i = 0; i < stet_value_count(was.cells) && status == STET_OK; i++) { /* cells that were removed */
        size_t len;
        const char *name = stet_value_key_at(was.cells, i, &len);
        if (!stet_value_find(now.cells, name, len, NULL))
            status = follow_cell(tx, s->process->piece, name, &was, &now, err);
    }
    defaults_release(&was);
    defaults_release(&now);
    return status;
}

/* Does the id belong to the argument (*cell NULL) or a named cell of a piece? */
static bool is_part(const char *id, const char **cell) {
    const char *part = strncmp(id, "piece:", 6) == 0 ? strchr(id + 6, ':') : NULL;
    *cell = part && strncmp(part, ":cell:", 6) == 0 ? part + 6 : NULL;
    return part && (*cell || strcmp(part, ":argument") == 0);
}

stet_status stet_piece_mark_set(stet_tx *tx, const stet_docname *name, stet_pathref path, stet_error *err) {
    const char *cell, *key;
    size_t cursor = 0, len;
    stet_buf scratch = STET_BUF(0);
    stet_value envelope, mark = stet_value_null();
    stet_status status = STET_OK;
    bool value = is_part(name->id, &cell) && stet_path_next(path, &cursor, &scratch, &key, &len) && len == 5 &&
                 memcmp(key, "value", 5) == 0;
    if (value && stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &envelope, NULL) == STET_OK) {
        stet_value was = stet_value_get(envelope, MARK), now = stet_value_get(envelope, "value");
        bool part = stet_path_next(path, &cursor, &scratch, &key, &len);
        mark = stet_value_retain(was);
        if (stet_value_type(was) == STET_TYPE_BOOL && stet_value_as_bool(was)) {
            /* all of it is set already */
        } else if (cell || stet_value_type(now) != STET_TYPE_OBJECT) {
            stet_value_release(mark);
            mark = stet_value_bool(true);
        } else {
            if (stet_value_type(mark) != STET_TYPE_OBJECT) {
                stet_value_release(mark);
                mark = stet_value_object();
            }
            if (part)
                stet_value_put_n(&mark, key, len, stet_value_bool(true));
            for (size_t i = 0; !part && i < stet_value_count(now); i++) {
                key = stet_value_key_at(now, i, &len);
                stet_value_put_n(&mark, key, len, stet_value_bool(true));
            }
        }
        stet_value_retain(was); /* the writes below may release the envelope */
        bool nothing;
        status = stet_piece_set_hand(tx, name, was, path, &nothing, err);
        if (status != STET_OK || nothing || stet_value_equal(mark, was) ||
            (stet_value_type(mark) == STET_TYPE_OBJECT && stet_value_count(mark) == 0))
            stet_value_release(mark);
        else
            status = stet_tx_write_member(tx, name, MARK, mark, err);
        stet_value_release(was);
    }
    stet_buf_release(&scratch);
    return status;
}

stet_status stet_piece_wrote(stet_tx *tx, const stet_docname *name, stet_error *err) {
    const char *cell;
    if (!is_part(name->id, &cell))
        return STET_OK;
    stet_value envelope;
    char *piece = stet_piece_around(name), *doc = piece ? stet_piece_doc(piece) : NULL;
    stet_docname result = {doc, name->scope};
    stet_status status = piece ? load_peek(tx, &result, &envelope, err) : STET_OK;
    if (status == STET_OK && piece) {
        status = check_part(load_peek, tx, piece, stet_value_get(envelope, "process"), cell, err);
        stet_value_release(envelope);
    }
    stet_free(piece);
    stet_free(doc);
    return status;
}

static stet_value name_of_key(const char *key, size_t len) {
    bool plain = len > 0 && key[0] != '/' && strcmp(key, ALL_OF_IT) != 0 && strncmp(key, OF_CELL, strlen(OF_CELL)) != 0;
    if (plain)
        return stet_value_string_n(key, len);
    stet_buf b = STET_BUF(0);
    stet_path path = STET_PATH_INIT;
    stet_path_push_n(&path, key, len);
    stet_path_print(stet_path_ref(&path), &b);
    stet_value v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_path_release(&path);
    stet_buf_release(&b);
    return v;
}

static stet_status name_overrides(load_fn *load, void *ctx, const stet_piece *p, const defaults *d, stet_value *names,
                                  stet_error *err) {
    char *id = stet_piece_part(p->name, "argument", NULL);
    stet_docname part = stet_piece_name(p, id);
    stet_value envelope;
    stet_status status = load(ctx, &part, &envelope, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    stet_value set = overrides_of(envelope, d);
    bool gone = !stet_value_find(envelope, "value", 5, NULL);
    if (gone || stet_value_type(set) == STET_TYPE_BOOL)
        stet_value_push(names, stet_value_string(ALL_OF_IT));
    for (size_t i = 0; stet_value_type(set) == STET_TYPE_OBJECT && i < stet_value_count(set); i++) {
        size_t len;
        const char *key = stet_value_key_at(set, i, &len);
        stet_value_push(names, name_of_key(key, len));
    }
    stet_value_release(set);
    stet_value_release(envelope);
    for (size_t i = 0; i < stet_value_count(d->cells) && status == STET_OK; i++) {
        const char *cell = stet_value_key_at(d->cells, i, NULL);
        stet_value output = stet_value_get(stet_value_get(p->envelope, "process"), "cellOutputs");
        bool computed = stet_value_as_bool(stet_value_get(output, cell)) ||
                        is_handed(stet_value_get(d->handed, "cells"), cell, strlen(cell));
        id = stet_piece_part(p->name, "cell", cell);
        part = stet_piece_name(p, id);
        status = load(ctx, &part, &envelope, err);
        stet_free(id);
        gone = status == STET_OK && stet_value_type(envelope) == STET_TYPE_NULL && !computed &&
               has_default(stet_value_at(d->cells, i), NULL);
        if (status == STET_OK && (gone || cell_is_set(envelope, d, cell, stet_value_null(), computed)))
            stet_value_push(names, stet_value_stringf(OF_CELL "%s", cell));
        if (status == STET_OK)
            stet_value_release(envelope);
    }
    return status;
}

static bool is_childs(const char *cell) {
    return strchr(cell, '[') != NULL;
}

/* Names overrides in cells of children: only those that are marked, because any other difference from the default was
 * computed. */
static stet_status name_child_overrides(stet_space *s, int64_t branch, const stet_piece *p, stet_value *names,
                                        stet_error *err) {
    enum { PAGE = 1000 };
    stet_arena arena = STET_ARENA_INIT;
    stet_docname after;
    char *prefix = stet_piece_part(p->name, "cell", "");
    stet_doc_filter filter = {.prefix = prefix, .scope = p->scope, .limit = PAGE};
    stet_status status = STET_OK;
    for (bool more = true; more && status == STET_OK;) {
        stet_doc_info *at;
        size_t count;
        status = stet_space_list(s, branch, &filter, &arena, &at, &count, &more, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            const char *cell = at[i].name.id + strlen(prefix);
            stet_value envelope;
            if (!is_childs(cell))
                continue;
            status = load_head(&(at_head){s, branch}, &at[i].name, &envelope, err);
            if (status == STET_OK && stet_value_as_bool(stet_value_get(envelope, MARK)))
                stet_value_push(names, stet_value_stringf(OF_CELL "%s", cell));
            if (status == STET_OK)
                stet_value_release(envelope);
        }
        if (status == STET_OK && count > 0) {
            after = at[count - 1].name;
            filter.after = &after;
        } else {
            more = false;
        }
    }
    stet_free(prefix);
    stet_arena_release(&arena);
    return status;
}

stet_status stet_piece_overrides(stet_space *s, int64_t branch, const stet_piece *p, stet_value *names,
                                 stet_error *err) {
    at_head head = {s, branch};
    defaults d;
    *names = stet_value_array();
    stet_status status = load_defaults(load_head, &head, p->program, &d, err);
    d.handed = stet_value_retain(stet_value_get(stet_value_get(p->envelope, "process"), "cellInputs"));
    if (status == STET_OK)
        status = load_earlier(s, branch, p, &d, err);
    if (status == STET_OK)
        status = name_overrides(load_head, &head, p, &d, names, err);
    if (status == STET_OK)
        status = name_child_overrides(s, branch, p, names, err);
    defaults_release(&d);
    if (status != STET_OK) {
        stet_value_release(*names);
        *names = stet_value_null();
    }
    return status;
}

static stet_status not_set(const stet_piece *p, const char *name, stet_value names, stet_error *err) {
    stet_buf b = STET_BUF(4096);
    for (size_t i = 0; i < stet_value_count(names) && i < 20; i++) {
        stet_value one = stet_value_at(names, i);
        stet_buf_printf(&b, "%s%s", i ? ", " : "", stet_value_as_string(&one, NULL));
    }
    stet_fail(err, STET_INVALID, "\"%.200s\" is not overridden in piece \"%s\"", name, p->name);
    if (b.len > 0)
        stet_hint(err, "overridden: %s", stet_buf_cstr(&b));
    else
        stet_hint(err, "nothing is overridden: the whole argument follows the pattern");
    stet_buf_release(&b);
    return STET_INVALID;
}

/* The key of a name as name_of_key makes it, or of any pointer to one key. */
static stet_status key_of_name(const char *name, stet_path *out, stet_error *err) {
    if (name[0] == '/')
        return stet_path_of_pointer(out, name, strlen(name), err);
    stet_path_push(out, name);
    return STET_OK;
}

static stet_status unset_part(stet_tx *tx, const stet_piece *p, const char *name, const defaults *d, stet_error *err) {
    char *id = stet_piece_part(p->name, "argument", NULL);
    stet_docname part = stet_piece_name(p, id);
    stet_value envelope;
    stet_status status = load_read(tx, &part, &envelope, err);
    if (status == STET_OK) {
        stet_value set = overrides_of(envelope, d);
        if (strcmp(name, ALL_OF_IT) == 0) {
            stet_value_release(set);
            set = stet_value_null();
        } else {
            stet_path path = STET_PATH_INIT;
            stet_buf scratch = STET_BUF(0);
            const char *key;
            size_t cursor = 0, len;
            status = key_of_name(name, &path, err);
            if (status == STET_OK && stet_value_type(set) == STET_TYPE_OBJECT &&
                stet_path_next(stet_path_ref(&path), &cursor, &scratch, &key, &len))
                stet_value_remove(&set, key, len);
            if (stet_value_count(set) == 0 && stet_value_type(set) == STET_TYPE_OBJECT) {
                stet_value_release(set);
                set = stet_value_null();
            }
            stet_buf_release(&scratch);
            stet_path_release(&path);
        }
        stet_value value = argument_with(envelope, d->argument, &set);
        if (status == STET_OK)
            status = stet_tx_write_member(tx, &part, "value", stet_value_retain(value), err);
        if (status == STET_OK)
            status = write_mark(tx, &part, envelope, stet_value_retain(set), err);
        if (status == STET_OK)
            status = write_hand(tx, &part, envelope, false, err);
        stet_value_release(value);
        stet_value_release(set);
        stet_value_release(envelope);
    }
    stet_free(id);
    return status;
}

static stet_status unset_cell(stet_tx *tx, const stet_piece *p, const char *cell, const defaults *d, stet_error *err) {
    char *id = stet_piece_part(p->name, "cell", cell);
    stet_docname part = stet_piece_name(p, id);
    stet_value envelope, initial;
    stet_status status = load_read(tx, &part, &envelope, err);
    if (status == STET_OK) {
        /* The default of a child's cell is stored beside its value. */
        if (has_default(is_childs(cell) ? envelope : stet_value_get(d->cells, cell), &initial)) {
            status = stet_tx_write_member(tx, &part, "value", stet_value_retain(initial), err);
            if (status == STET_OK)
                status = write_mark(tx, &part, envelope, stet_value_null(), err);
            if (status == STET_OK)
                status = write_hand(tx, &part, envelope, false, err);
        } else {
            status = stet_tx_drop(tx, &part, err);
        }
        stet_value_release(envelope);
    }
    stet_free(id);
    return status;
}

stet_status stet_piece_unset(stet_tx *tx, int64_t branch, const stet_piece *p, stet_value names, stet_error *err) {
    defaults d;
    stet_status status = load_defaults(load_read, tx, p->program, &d, err);
    d.handed = stet_value_retain(stet_value_get(stet_value_get(p->envelope, "process"), "cellInputs"));
    if (status == STET_OK)
        status = load_earlier(stet_tx_space(tx), branch, p, &d, err);
    for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
        stet_value v = stet_value_at(names, i), all = stet_value_array();
        const char *name = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, NULL) : "";
        bool found = false, whole = strcmp(name, ALL_OF_IT) == 0;
        status = name_overrides(load_read, tx, p, &d, &all, err);
        if (status == STET_OK && strncmp(name, OF_CELL, strlen(OF_CELL)) == 0 && is_childs(name))
            status = name_child_overrides(stet_tx_space(tx), branch, p, &all, err);
        for (size_t k = 0; k < stet_value_count(all) && !found; k++) {
            stet_value one = stet_value_at(all, k);
            const char *text = stet_value_as_string(&one, NULL);
            found = strcmp(text, name) == 0 || (name[0] == '/' && strcmp(text, name + 1) == 0) ||
                    (whole && strncmp(text, OF_CELL, strlen(OF_CELL)) != 0);
        }
        if (status == STET_OK && !found)
            status = not_set(p, name, all, err);
        else if (status == STET_OK && strncmp(name, OF_CELL, strlen(OF_CELL)) == 0)
            status = unset_cell(tx, p, name + strlen(OF_CELL), &d, err);
        else if (status == STET_OK)
            status = unset_part(tx, p, name, &d, err);
        stet_value_release(all);
    }
    defaults_release(&d);
    return status;
}

stet_status stet_piece_adjust(stet_tx *tx, int64_t branch, const stet_piece *p, stet_value unset, stet_value set,
                              stet_error *err) {
    stet_status status = stet_value_count(unset) > 0 ? stet_piece_unset(tx, branch, p, unset, err) : STET_OK;
    if (status == STET_OK)
        status = set_argument(tx, p->name, set, err);
    if (status == STET_OK && stet_value_count(unset) + stet_value_count(set) > 0)
        status = check_parts(load_peek, tx, p->name, stet_value_get(p->envelope, "process"), err);
    return status;
}
