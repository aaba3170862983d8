/* owned.c - what computations write into the argument and the named cells of their piece. */

#include "graph/owned.h"

#include <string.h>

#define MARK    "set"
#define HAND    STET_CELL_HAND
#define WRITTEN STET_CELL_WRITTEN

/* What follows "piece:NAME:"; NULL: it is neither an argument nor a cell. */
static const char *part_of(const stet_docname *name) {
    const char *part = strncmp(name->id, "piece:", 6) == 0 ? strchr(name->id + 6, ':') : NULL;
    if (!part)
        return NULL;
    return strcmp(part, ":argument") == 0 || strncmp(part, ":cell:", 6) == 0 ? part + 1 : NULL;
}

bool stet_piece_owns(const stet_piece *p, const stet_docname *name) {
    const char *part = part_of(name);
    size_t len = strlen(p->doc);
    return part && (size_t)(part - name->id) == len + 1 && strncmp(name->id, p->doc, len) == 0 &&
           strcmp(name->scope ? name->scope : "", p->scope) == 0;
}

/* The first key of a place below "value", decoded into `scratch` if necessary. False: the place is the whole value. */
static bool first_key(stet_pathref path, stet_buf *scratch, const char **key, size_t *len) {
    size_t cursor = 0;
    bool below = stet_path_next(path, &cursor, scratch, key, len); /* "value" itself */
    return below && stet_path_next(path, &cursor, scratch, key, len);
}

static bool is_marked(stet_value envelope, stet_pathref path) {
    stet_value mark = stet_value_get(envelope, MARK);
    if (stet_value_type(mark) == STET_TYPE_BOOL)
        return stet_value_as_bool(mark);
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len;
    bool part = first_key(path, &scratch, &key, &len);
    bool marked = part ? stet_value_find(mark, key, len, NULL) : stet_value_count(mark) > 0;
    stet_buf_release(&scratch);
    return marked;
}

/* The member "process" of the piece to which a document belongs, borrowed; null if there is no such piece. */
static stet_value header_of(stet_tx *tx, const stet_docname *name) {
    stet_value envelope;
    char *doc = stet_strndup(name->id, 6 + strcspn(name->id + 6, ":"));
    bool there = stet_tx_peek(tx, NULL, &(stet_docname){doc, name->scope}, STET_PATH_ROOT, &envelope, NULL) == STET_OK;
    stet_free(doc);
    return there ? stet_value_get(envelope, "process") : stet_value_null();
}

/* {"value": DEFAULT}, or {} without a default. The caller releases it. False: the default is unknown. */
static bool default_of(stet_tx *tx, const stet_docname *name, stet_value envelope, stet_value *out) {
    const char *part = part_of(name);
    stet_value initial = stet_value_null(), program, from = envelope;
    bool argument = strcmp(part, "argument") == 0, known = true;
    if (argument || !strchr(part, '[')) {
        stet_value cid = stet_value_get(header_of(tx, name), "program");
        const char *hex = stet_value_type(cid) == STET_TYPE_STRING ? stet_value_as_string(&cid, NULL) : "";
        char *id = stet_asprintf("program:%s", strncmp(hex, "cid:", 4) == 0 ? hex + 4 : hex);
        known = stet_tx_peek(tx, NULL, &(stet_docname){id, NULL}, STET_PATH_ROOT, &program, NULL) == STET_OK;
        stet_free(id);
        stet_value root = known ? stet_value_get(program, "value") : stet_value_null();
        from = argument ? stet_value_get(root, "argument")
                        : stet_value_get(stet_value_get(root, "cells"), part + strlen("cell:"));
    }
    if (!known)
        return false;
    *out = stet_value_object();
    if (stet_value_find(from, "default", 7, &initial))
        stet_value_put(out, "value", stet_value_retain(initial));
    else if (argument)
        stet_value_put(out, "value", stet_value_object());
    return true;
}

/* A4 (argument.h): do computations use this cell, or a key of this argument, as a cell? `key` NULL: any key. */
static bool is_handed(stet_value header, const char *part, const char *key, size_t len) {
    stet_value inputs = stet_value_get(header, "cellInputs");
    if (strcmp(part, "argument") == 0) {
        stet_value keys = stet_value_get(inputs, "argument");
        return stet_value_type(keys) == STET_TYPE_BOOL ||
               (key ? stet_value_find(keys, key, len, NULL) : stet_value_count(keys) > 0);
    }
    const char *cell = part + strlen("cell:");
    return strchr(cell, '[') || stet_value_find(stet_value_get(inputs, "cells"), cell, strlen(cell), NULL) ||
           stet_value_find(stet_value_get(header, "cellOutputs"), cell, strlen(cell), NULL);
}

/* O2, if it is not stored: marked parts, and parts that no computation uses, are as they were set; everything else is
 * as the default. The caller releases it. False: the default is unknown. */
static bool hand_of(stet_tx *tx, const stet_docname *name, stet_value envelope, stet_value mark, stet_value *out) {
    const char *part = part_of(name), *key;
    stet_value header = header_of(tx, name), value, base, was;
    bool written = stet_value_as_bool(stet_value_get(envelope, WRITTEN)), argument = strcmp(part, "argument") == 0;
    bool parts = argument && stet_value_type(mark) != STET_TYPE_BOOL &&
                 stet_value_type(stet_value_get(envelope, "value")) == STET_TYPE_OBJECT;
    bool all = !parts && (stet_value_type(mark) == STET_TYPE_BOOL || stet_value_count(mark) > 0 ||
                          !(written || is_handed(header, part, NULL, 0)));
    size_t len;
    *out = stet_value_object();
    if (all) {
        if (stet_value_find(envelope, "value", 5, &value))
            stet_value_put(out, "value", stet_value_retain(value));
        return true;
    }
    if (!default_of(tx, name, envelope, &base))
        return false;
    was = stet_value_get(base, "value");
    if (!parts || stet_value_type(was) != STET_TYPE_OBJECT) {
        stet_value_release(*out);
        *out = base;
        return true;
    }
    stet_value now = stet_value_retain(was), v;
    value = stet_value_get(envelope, "value");
    for (size_t i = 0; i < stet_value_count(value) + stet_value_count(was); i++) {
        bool mine = i < stet_value_count(value);
        key = mine ? stet_value_key_at(value, i, &len) : stet_value_key_at(was, i - stet_value_count(value), &len);
        if (!stet_value_find(mark, key, len, NULL) && (written || is_handed(header, part, key, len)))
            continue;
        if (stet_value_find(value, key, len, &v))
            stet_value_put_n(&now, key, len, stet_value_retain(v));
        else
            stet_value_remove(&now, key, len);
    }
    stet_value_put(out, "value", now);
    stet_value_release(base);
    return true;
}

/* Copies one place from `envelope` to `hand`. O3: in an array, the whole array. */
static stet_status copy_place(stet_value *hand, stet_value envelope, stet_pathref path, stet_error *err) {
    stet_path place = STET_PATH_INIT;
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t cursor = 0, len;
    stet_value cur = envelope, there;
    bool found = true;
    while (found && stet_value_type(cur) == STET_TYPE_OBJECT && stet_path_next(path, &cursor, &scratch, &key, &len)) {
        if (stet_path_depth(stet_path_ref(&place)) > 0 &&
            (!stet_path_lookup(*hand, stet_path_ref(&place), &there) || stet_value_type(there) != STET_TYPE_OBJECT)) {
            stet_patch hold = {.kind = STET_PATCH_ADD, .path = stet_path_ref(&place), .value = stet_value_object()};
            stet_status status = stet_patches_apply(&hold, 1, hand, NULL);
            stet_value_release(hold.value);
            if (status != STET_OK)
                break;
        }
        stet_path_push_n(&place, key, len);
        found = stet_value_find(cur, key, len, &cur);
    }
    stet_patch op = {.kind = found ? STET_PATCH_ADD : STET_PATCH_REMOVE, .path = stet_path_ref(&place), .value = cur};
    stet_status status = STET_OK;
    if (found || stet_path_lookup(*hand, stet_path_ref(&place), &there))
        status = stet_patches_apply(&op, 1, hand, err);
    stet_buf_release(&scratch);
    stet_path_release(&place);
    return status;
}

/* The place that is reset as a whole (O3). If the default is not an object, nothing lies below it. */
static stet_pathref whole_place(stet_value envelope, stet_value base, stet_pathref path) {
    stet_value cur = envelope, was = base;
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t cursor = 0, len;
    bool defined = true, there = true;
    stet_pathref out = path;
    while (there && stet_path_next(path, &cursor, &scratch, &key, &len)) {
        there = stet_value_type(cur) == STET_TYPE_OBJECT && stet_value_find(cur, key, len, &cur);
        defined = defined && stet_value_find(was, key, len, &was);
        if ((there && stet_value_type(cur) == STET_TYPE_ARRAY) ||
            (defined && stet_value_type(was) != STET_TYPE_OBJECT)) {
            out.len = cursor;
            break;
        }
    }
    stet_buf_release(&scratch);
    return out;
}

/* A document that a transaction deletes belongs to it from then on, and reads of it are not recorded: therefore only at
 * the end. */
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
            stet_value_type(there) != STET_TYPE_OBJECT || stet_value_count(there) > 0)
            break;
    }
    return STET_OK;
}

stet_status stet_piece_take_back(stet_tx *tx, const stet_piece *p, const stet_docname *name, stet_pathref path,
                                 bool last, stet_error *err) {
    stet_value envelope, base, initial, there;
    if (!stet_piece_owns(p, name) || stet_path_depth(path) == 0 ||
        stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &envelope, NULL) != STET_OK)
        return STET_OK;
    if (stet_value_find(envelope, HAND, strlen(HAND), &base))
        stet_value_retain(base);
    else if (is_marked(envelope, path) || !default_of(tx, name, envelope, &base))
        return STET_OK;
    stet_path place = STET_PATH_INIT;
    stet_path_set(&place, whole_place(envelope, base, path));
    stet_status status = STET_OK;
    if (!stet_path_lookup(base, stet_path_ref(&place), &initial))
        status = remove_place(tx, name, base, &place, last, err);
    else if (!stet_path_lookup(envelope, stet_path_ref(&place), &there) || !stet_value_equal(there, initial))
        status = stet_tx_write(tx, name, stet_path_ref(&place), stet_value_retain(initial), err);
    stet_path_release(&place);
    stet_value_release(base);
    return status;
}

stet_status stet_piece_keep_hand(stet_tx *tx, const stet_docname *name, stet_error *err) {
    stet_value envelope = stet_value_null(), hand;
    const char *part = part_of(name);
    if (!part)
        return STET_OK;
    if (stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &envelope, NULL) != STET_OK)
        envelope = stet_value_null();
    stet_value mark = stet_value_get(envelope, MARK);
    if (stet_value_type(mark) != STET_TYPE_NULL)
        return !stet_value_find(envelope, HAND, strlen(HAND), NULL) && hand_of(tx, name, envelope, mark, &hand)
                   ? stet_tx_write_member(tx, name, HAND, hand, err)
                   : STET_OK;
    if (stet_value_find(envelope, WRITTEN, strlen(WRITTEN), NULL))
        return STET_OK;
    stet_value header = header_of(tx, name);
    if (stet_value_type(header) != STET_TYPE_OBJECT || is_handed(header, part, NULL, 0))
        return STET_OK;
    return stet_tx_write_member(tx, name, WRITTEN, stet_value_bool(true), err);
}

stet_status stet_piece_set_hand(stet_tx *tx, const stet_docname *name, stet_value before, stet_pathref path,
                                bool *nothing, stet_error *err) {
    stet_value envelope, hand;
    const char *part = part_of(name);
    *nothing = false;
    if (!part || stet_tx_peek(tx, NULL, name, STET_PATH_ROOT, &envelope, NULL) != STET_OK)
        return STET_OK;
    if (stet_value_find(envelope, HAND, strlen(HAND), &hand))
        stet_value_retain(hand);
    else if ((stet_value_type(before) == STET_TYPE_NULL || strcmp(part, "argument") == 0) &&
             (stet_value_as_bool(stet_value_get(envelope, WRITTEN)) || is_handed(header_of(tx, name), part, NULL, 0))) {
        if (!hand_of(tx, name, envelope, before, &hand))
            return STET_OK;
    } else {
        return STET_OK;
    }
    stet_value there;
    *nothing = !stet_path_lookup(envelope, path, &there) && !stet_path_lookup(hand, path, &there);
    stet_status status = *nothing ? STET_OK : copy_place(&hand, envelope, path, err);
    if (status == STET_OK && !*nothing)
        return stet_tx_write_member(tx, name, HAND, hand, err);
    stet_value_release(hand);
    return status;
}
