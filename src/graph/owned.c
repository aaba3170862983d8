/* owned.c - what computations write into the argument and the named cells of their piece. */

#include "graph/owned.h"

#include <string.h>

#define MARK "set"

/* What follows "piece:NAME:", or NULL: it is neither an argument nor a cell. */
static const char *part_of(const stet_docname *name) {
    const char *part = strncmp(name->id, "piece:", 6) == 0 ? strchr(name->id + 6, ':') : NULL;
    if (!part || (name->scope && *name->scope))
        return NULL;
    return strcmp(part, ":argument") == 0 || strncmp(part, ":cell:", 6) == 0 ? part + 1 : NULL;
}

bool stet_piece_owns(const stet_piece *p, const stet_docname *name) {
    const char *part = part_of(name);
    size_t len = strlen(p->name);
    return part && (size_t)(part - name->id) == 6 + len + 1 && strncmp(name->id + 6, p->name, len) == 0;
}

/* The first key of a place below "value", in `scratch` if it has to be decoded. False: the place is all of the value.
 */
static bool first_key(stet_pathref path, stet_buf *scratch, const char **key, size_t *len) {
    size_t cursor = 0;
    return stet_path_next(path, &cursor, scratch, key, len) && stet_path_next(path, &cursor, scratch, key, len);
}

static bool is_marked(stet_value envelope, stet_pathref path) {
    stet_value mark = stet_get(envelope, MARK);
    if (stet_typeof(mark) == STET_BOOL)
        return stet_as_bool(mark);
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len;
    bool part = first_key(path, &scratch, &key, &len);
    bool marked = part ? stet_find(mark, key, len, NULL) : stet_count(mark) > 0;
    stet_buf_release(&scratch);
    return marked;
}

bool stet_piece_is_marked(stet_tx *tx, const stet_docname *name, stet_pathref path) {
    stet_value envelope;
    return part_of(name) && stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &envelope, NULL) == STET_OK &&
           is_marked(envelope, path);
}

/* {"value": DEFAULT}, or {} without a default. The caller releases it. False: nobody knows. */
static bool base_of(stet_tx *tx, const stet_piece *p, const char *part, stet_value envelope, stet_value *out) {
    stet_value initial = stet_null(), program, from = envelope;
    bool argument = strcmp(part, "argument") == 0, known = true;
    if (argument || !strchr(part, '[')) {
        char hex[STET_HASH_HEX];
        stet_hash_hex(p->program, hex);
        char *id = stet_asprintf("program:%s", hex);
        known = stet_tx_peek(tx, NULL, &(stet_docname){id, NULL}, STET_PATH_ROOT, &program, NULL) == STET_OK;
        stet_free(id);
        stet_value root = known ? stet_get(program, "value") : stet_null();
        from = argument ? stet_get(root, "argument") : stet_get(stet_get(root, "cells"), part + strlen("cell:"));
    }
    if (!known)
        return false;
    *out = stet_object();
    if (stet_find(from, "default", 7, &initial))
        stet_put(out, "value", stet_retain(initial));
    else if (argument)
        stet_put(out, "value", stet_object());
    return true;
}

/* O3, and a default that is no object has nothing below it: the place that is taken back as a whole. */
static stet_pathref whole_place(stet_value envelope, stet_value base, stet_pathref path) {
    stet_value cur = envelope, was = base;
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t cursor = 0, len;
    bool defined = true, there = true;
    stet_pathref out = path;
    while (there && stet_path_next(path, &cursor, &scratch, &key, &len)) {
        there = stet_typeof(cur) == STET_OBJECT && stet_find(cur, key, len, &cur);
        defined = defined && stet_find(was, key, len, &was);
        if ((there && stet_typeof(cur) == STET_ARRAY) || (defined && stet_typeof(was) != STET_OBJECT)) {
            out.len = cursor;
            break;
        }
    }
    stet_buf_release(&scratch);
    return out;
}

/* A document that a transaction drops is its own from then on, and reads of it are not recorded: not before the end. */
static stet_status remove_place(stet_tx *tx, const stet_docname *name, stet_value base, stet_path *path, bool last,
                                stet_error *err) {
    stet_value there;
    while (stet_tx_peek(tx, NULL, name, stet_path_ref(path), &there, NULL) == STET_OK) {
        if (last && stet_path_depth(stet_path_ref(path)) == 1)
            return stet_tx_drop(tx, name, err);
        stet_patch gone = {.kind = STET_PATCH_REMOVE, .path = stet_path_ref(path)};
        stet_status status = stet_tx_patch(tx, name, &gone, 1, err);
        if (status != STET_OK)
            return status;
        stet_path_pop(path);
        stet_value holder;
        if (stet_path_depth(stet_path_ref(path)) == 0 || stet_path_lookup(base, stet_path_ref(path), &holder) ||
            stet_tx_peek(tx, NULL, name, stet_path_ref(path), &there, NULL) != STET_OK ||
            stet_typeof(there) != STET_OBJECT || stet_count(there) > 0)
            break;
    }
    return STET_OK;
}

stet_status stet_piece_take_back(stet_tx *tx, const stet_piece *p, const stet_docname *name, stet_pathref path,
                                 bool last, stet_error *err) {
    stet_value envelope, base, initial, there;
    if (!stet_piece_owns(p, name) || stet_path_depth(path) == 0 ||
        stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &envelope, NULL) != STET_OK ||
        !base_of(tx, p, part_of(name), envelope, &base))
        return STET_OK;
    stet_path place = STET_PATH_INIT;
    stet_path_set(&place, whole_place(envelope, base, path));
    stet_status status = STET_OK;
    if (!stet_path_lookup(base, stet_path_ref(&place), &initial))
        status = remove_place(tx, name, base, &place, last, err);
    else if (!stet_path_lookup(envelope, stet_path_ref(&place), &there) || !stet_equal(there, initial))
        status = stet_tx_write(tx, name, stet_path_ref(&place), stet_retain(initial), err);
    stet_path_release(&place);
    stet_release(base);
    return status;
}

stet_status stet_piece_mark_own(stet_tx *tx, const stet_docname *name, stet_pathref path, stet_error *err) {
    stet_value envelope, mark;
    const char *part = part_of(name), *key;
    size_t len, depth = stet_path_depth(path);
    bool argument = part && strcmp(part, "argument") == 0;
    if (!part || depth == 0 || depth > (argument ? 2u : 1u) ||
        stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &envelope, NULL) != STET_OK ||
        !stet_find(envelope, MARK, strlen(MARK), &mark))
        return STET_OK;
    stet_path at = STET_PATH_INIT;
    stet_buf scratch = STET_BUF(0);
    stet_status status = STET_OK;
    bool gone = true;
    stet_path_push(&at, MARK);
    if (depth == 2 && first_key(path, &scratch, &key, &len)) {
        gone = stet_find(mark, key, len, NULL);
        if (stet_count(mark) > 1)
            stet_path_push_n(&at, key, len);
    }
    if (gone) {
        stet_patch op = {.kind = STET_PATCH_REMOVE, .path = stet_path_ref(&at)};
        status = stet_tx_patch(tx, name, &op, 1, err);
    }
    stet_buf_release(&scratch);
    stet_path_release(&at);
    return status;
}
