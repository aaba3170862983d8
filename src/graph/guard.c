/* guard.c - which documents of a piece people may write by hand.
 *
 * This is the guard of writes from outside. memory/space.h declares it (stet_outside_guard) and calls it; this file
 * defines it, so that every program that has spaces has the guard linked in.
 *
 *   G1. The result document of a piece, the parts of its graph, programs and schemas belong to stet: nothing would run
 *       to correct them. No write from outside may change them.
 *   G2. An argument or a cell of the pattern can't be deleted: it would be read as nothing.
 *   G3. A value written to an argument or a named cell is marked as set, and must match the schema there (argument.h).
 *
 * STET_INVALID says what to do instead. Outputs of nodes may be written: their node runs again. Documents that look
 * like those of a piece that does not exist are like any others.
 */

#include <string.h>

#include "graph/argument.h"
#include "graph/process.h"
#include "memory/space.h"

/* The process header of the piece that a document belongs to, borrowed; null if there is no such piece. `*part` is what
 * follows its name: "" for the result document. */
static stet_value piece_of(stet_tx *tx, const stet_docname *name, char **piece, const char **part) {
    stet_value envelope, header = stet_value_null();
    *piece = NULL;
    if (strncmp(name->id, "piece:", 6) != 0)
        return header;
    size_t len = 6 + strcspn(name->id + 6, ":");
    char *doc = stet_strndup(name->id, len);
    stet_docname result = {doc, name->scope};
    if (stet_piece_name_of(doc) && stet_tx_peek(tx, NULL, &result, STET_PATH_ROOT, &envelope, NULL) == STET_OK)
        header = stet_value_get(envelope, "process");
    if (stet_value_type(header) == STET_TYPE_OBJECT) {
        *piece = stet_piece_of(&result);
        *part = name->id + len + (name->id[len] == ':');
    }
    stet_free(doc);
    return header;
}

/* Parts of a piece that may be written from outside: what people set, and outputs, whose node runs again. */
static bool is_open(const char *part) {
    return strcmp(part, "argument") == 0 || strncmp(part, "cell:", 5) == 0 || strncmp(part, "node:", 5) == 0;
}

/* Programs, schemas and the like are stored by hash: documents that refer to them rely on their content. */
static bool is_by_hash(const stet_docname *name) {
    static const char *const kinds[] = {"program:", "schema:", "pattern-file:"};
    stet_hash hash;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !(name->scope && *name->scope); i++) {
        size_t skip = strlen(kinds[i]);
        if (strncmp(name->id, kinds[i], skip) == 0)
            return strlen(name->id) >= skip + 64 && stet_hash_of_hex(name->id + skip, 64, &hash) &&
                   (name->id[skip + 64] == 0 || name->id[skip + 64] == ':');
    }
    return false;
}

static stet_status refuse_by_hash(const stet_docname *name, stet_error *err) {
    stet_fail(err, STET_INVALID, "\"%s\" is kept by stet for its pieces", name->id);
    stet_hint(err, "change the pattern, and run it");
    return STET_INVALID;
}

/* Is `cell` a cell of an existing child? */
static bool childs_cell(stet_tx *tx, const char *piece, const char *cell) {
    const char *end = strrchr(cell, ']');
    if (!end || end[1] != '.')
        return false;
    char *instance = stet_strndup(cell, (size_t)(end - cell) + 1), *id = stet_piece_part(piece, "child", instance);
    stet_value envelope;
    stet_docname child = stet_piece_at(piece, id);
    bool there = stet_tx_peek(tx, NULL, &child, STET_PATH_ROOT, &envelope, NULL) == STET_OK;
    stet_free(instance);
    stet_free(id);
    return there;
}

static stet_status guard(stet_tx *tx, const stet_docname *name, stet_error *err) {
    const char *part;
    char *piece;
    stet_status status = STET_OK;
    if (is_by_hash(name))
        return refuse_by_hash(name, err);
    piece_of(tx, name, &piece, &part);
    if (piece && !*part) {
        status = stet_fail(err, STET_INVALID, "\"%s\" is the result of piece \"%s\", which its pattern alone writes",
                           name->id, piece);
        bool scoped = name->scope && *name->scope;
        stet_hint(err, "set its argument: stet set %s:argument/KEY JSON%s%s; or change the pattern, and run it",
                  name->id, scoped ? " --scope " : "", scoped ? name->scope : "");
    } else if (piece && !is_open(part)) {
        status =
            stet_fail(err, STET_INVALID, "\"%s\" is a part of piece \"%s\", which stet alone writes", name->id, piece);
        stet_hint(err, "change the pattern, and run it; or delete the piece: stet piece delete %s", piece);
    } else if (piece && strncmp(part, "cell:", 5) == 0 && strchr(part, '[') && !childs_cell(tx, piece, part + 5)) {
        status = stet_fail(err, STET_INVALID, "\"%s\" is a cell of a child that is not there", name->id);
        stet_hint(err, "stet piece graph %s shows the children that there are", piece);
    }
    stet_free(piece);
    return status;
}

/* A cell that the pattern of the piece no longer has belongs to nobody. */
static bool has_cell(stet_tx *tx, const char *piece, stet_value header, const char *cell) {
    if (strchr(cell, '['))
        return childs_cell(tx, piece, cell);
    stet_value program = stet_value_get(header, "program"), envelope;
    const char *cid = stet_value_type(program) == STET_TYPE_STRING ? stet_value_as_string(&program, NULL) : "";
    char *id = stet_asprintf("program:%s", strncmp(cid, "cid:", 4) == 0 ? cid + 4 : cid);
    bool known = stet_tx_peek(tx, NULL, &(stet_docname){id, NULL}, STET_PATH_ROOT, &envelope, NULL) == STET_OK;
    stet_free(id);
    return !known ||
           stet_value_find(stet_value_get(stet_value_get(envelope, "value"), "cells"), cell, strlen(cell), NULL);
}

static stet_status guard_gone(stet_tx *tx, const stet_docname *name, stet_error *err) {
    const char *part;
    char *piece;
    stet_status status = STET_OK;
    if (is_by_hash(name))
        return refuse_by_hash(name, err);
    stet_value header = piece_of(tx, name, &piece, &part);
    if (!piece)
        return STET_OK;
    bool cell = strncmp(part, "cell:", 5) == 0, argument = strcmp(part, "argument") == 0;
    if (!*part) {
        status = stet_fail(err, STET_INVALID, "\"%s\" is the result of a piece", name->id);
        stet_hint(err, "delete the piece: stet piece delete %s", piece);
    } else if (argument) {
        status =
            stet_fail(err, STET_INVALID, "\"%s\" is the argument of a piece, which can't be without one", name->id);
        stet_hint(err,
                  "back to the pattern's default: stet run PATTERN --piece %s --unset . ; or delete the piece: "
                  "stet piece delete %s",
                  piece, piece);
    } else if (cell && has_cell(tx, piece, header, part + 5)) {
        status = stet_fail(err, STET_INVALID, "\"%s\" is a cell of piece \"%s\"", name->id, piece);
        stet_hint(err,
                  "back to the pattern's default: stet run PATTERN --piece %s --unset %s ; or delete the piece: "
                  "stet piece delete %s",
                  piece, part, piece);
    } else if (!is_open(part)) {
        status = stet_fail(err, STET_INVALID, "\"%s\" is a part of piece \"%s\"", name->id, piece);
        stet_hint(err, "delete the piece: stet piece delete %s", piece);
    }
    stet_free(piece);
    return status;
}

/* Does the operation remove the whole value: by removing it, moving it, or replacing the envelope by one without it? */
static bool takes_all(const stet_patch *op) {
    stet_pathref gone = op->kind == STET_PATCH_MOVE ? op->from : op->path;
    size_t cursor = 0, len, keys = 0;
    const char *key;
    bool value = true;
    stet_buf scratch = STET_BUF(0);
    while (stet_path_next(gone, &cursor, &scratch, &key, &len))
        value = keys++ == 0 && len == 5 && memcmp(key, "value", 5) == 0;
    stet_buf_release(&scratch);
    if (op->kind == STET_PATCH_REPLACE)
        return keys == 0 && !stet_value_find(op->value, "value", 5, NULL);
    return value && (op->kind == STET_PATCH_MOVE || op->kind == STET_PATCH_REMOVE);
}

static stet_status before(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len, stet_error *err) {
    if (!at)
        return guard_gone(tx, name, err);
    stet_status status = guard(tx, name, err);
    for (size_t i = 0; i < len && status == STET_OK; i++)
        if (takes_all(&at[i]))
            status = guard_gone(tx, name, err);
    return status;
}

static stet_status after(stet_tx *tx, const stet_docname *name, const stet_patch *at, size_t len, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < len && status == STET_OK; i++) {
        status = stet_piece_mark_set(tx, name, at[i].path, err);
        if (status == STET_OK && at[i].kind == STET_PATCH_MOVE)
            status = stet_piece_mark_set(tx, name, at[i].from, err);
    }
    return status == STET_OK && at ? stet_piece_wrote(tx, name, err) : status;
}

stet_write_guard stet_outside_guard = {before, after};
