/* branch.c - documents of files on a branch other than the default one.
 *
 * There is one working tree, whatever the branch. The index describes the default branch; a handle of another branch
 * copies to it what differs. A document that a command of the branch wrote with its result says more than a scan does
 * ("made"). So only what a scan would say is compared, and a document that agrees in that stays as it is.
 */

#include <string.h>

#include "files/internal.h"
#include "files/path.h"

stet_status stet_files_set_branch(stet_files *f, const char *branch, stet_error *err) {
    if (!branch || !*branch)
        return STET_OK;
    stet_status status = stet_space_branch(f->space, branch, &f->branch, err);
    if (status == STET_OK)
        f->branch_name = stet_strdup(branch);
    return status;
}

/* Null: there is none. The caller releases it. */
static stet_status load(stet_files *f, int64_t branch, const char *id, stet_value *envelope, stet_error *err) {
    stet_doc_state doc;
    stet_status status = stet_space_load(f->space, branch, &(stet_docname){id, NULL}, -1, &doc, err);
    *envelope = status == STET_OK && doc.exists ? doc.value : stet_value_null();
    return status;
}

static bool says_the_same(stet_value a, stet_value b) {
    stet_look x, y;
    if (stet_value_equal(a, b))
        return true;
    return stet_look_of_value(stet_value_get(a, "value"), &x) && stet_look_of_value(stet_value_get(b, "value"), &y) &&
           stet_look_same(&x, &y);
}

stet_status stet_files_said(stet_files *f, const char *path, stet_look *out, stet_error *err) {
    stet_value envelope;
    char *id = stet_file_id(path);
    stet_status status = load(f, f->branch, id, &envelope, err);
    *out = (stet_look){0};
    if (status == STET_OK && stet_value_type(envelope) != STET_TYPE_NULL &&
        !stet_look_of_value(stet_value_get(envelope, "value"), out))
        *out = (stet_look){.mode = 3}; /* damaged: no file is like that */
    stet_value_release(envelope);
    stet_free(id);
    return status;
}

/* Compares a document with that of the default branch, `*there`, which the caller releases. */
static stet_status compare(stet_files *f, const char *id, stet_value *there, bool *same, stet_error *err) {
    stet_value here;
    *same = true;
    stet_status status = load(f, 0, id, there, err);
    if (status == STET_OK)
        status = load(f, f->branch, id, &here, err);
    if (status == STET_OK) {
        *same = says_the_same(*there, here);
        stet_value_release(here);
    }
    return status;
}

/* Adds one document to the transaction, if it differs; begins that. */
static stet_status mirror_one(stet_files *f, const char *id, stet_tx **tx, stet_error *err) {
    stet_value there = stet_value_null();
    bool same;
    stet_status status = compare(f, id, &there, &same, err);
    if (status == STET_OK && !same && !*tx) {
        status = stet_tx_begin(f->space, f->branch_name, tx, err);
        if (status != STET_OK)
            *tx = NULL;
    }
    if (!same && status == STET_OK && stet_value_type(there) == STET_TYPE_NULL)
        status = stet_tx_drop(*tx, &(stet_docname){id, NULL}, err);
    else if (!same && status == STET_OK)
        status = stet_tx_put(*tx, &(stet_docname){id, NULL}, stet_value_retain(there), err);
    stet_value_release(there);
    return status;
}

bool stet_files_branch_differs(stet_files *f) {
    bool same = true;
    for (size_t i = 0; f->branch_name && i < f->index.at.len && same; i++) {
        if (f->index.at.at[i].gone)
            continue;
        stet_value there = stet_value_null();
        char *id = stet_files_id(&f->index.at.at[i]);
        if (compare(f, id, &there, &same, NULL) != STET_OK)
            same = false;
        stet_value_release(there);
        stet_free(id);
    }
    return !same;
}

stet_status stet_files_mirror(stet_files *f, const char *const *keys, size_t count, stet_error *err) {
    stet_tx *tx = NULL;
    stet_status status = STET_OK;
    if (!f->branch_name)
        return STET_OK;
    size_t n = keys ? count : f->index.at.len;
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        const stet_files_entry *e =
            keys ? stet_files_index_find(&f->index, keys[i], strlen(keys[i])) : &f->index.at.at[i];
        if (!e || e->gone)
            continue;
        char *id = stet_files_id(e);
        status = mirror_one(f, id, &tx, err);
        stet_free(id);
    }
    if (tx && status == STET_OK)
        status = stet_tx_commit(tx, NULL, err);
    else
        stet_tx_abort(tx);
    return status;
}
