/* accept.c - checks whether a drive can do what was asked, before anything is written.
 *
 * A command that is refused changes nothing.
 */

#include <string.h>

#include "base/text.h"
#include "drive/drive_internal.h"
#include "graph/child.h"
#include "graph/near.h"

/* Refuses a part of the result that the pattern does not define, which is misspelt. Behind a link, any member may
 * exist. */
static stet_status check_part(const char *piece, stet_value result, const char *text, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_buf scratch = STET_BUF(0), keys = STET_BUF(0);
    stet_value envelope = stet_value_object(), at, next, inner;
    size_t cursor = 0, len;
    const char *key;
    stet_value_put(&envelope, "value", stet_value_retain(result));
    at = envelope;
    stet_status status = stet_drive_demand_path(text, &path, err);
    while (status == STET_OK && stet_value_type(at) == STET_TYPE_OBJECT && !stet_link_is(at, &inner) &&
           stet_path_next(stet_path_ref(&path), &cursor, &scratch, &key, &len)) {
        if (stet_value_find(at, key, len, &next)) {
            at = next;
            continue;
        }
        status = stet_fail(err, STET_INVALID, "the result of piece \"%s\" has no \"%s\"", piece, text);
        for (size_t i = 0; i < stet_value_count(at) && keys.len < 200; i++)
            stet_buf_printf(&keys, "%s%s", i ? ", " : "", stet_value_key_at(at, i, NULL));
        stet_hint(err, stet_value_count(at) > 0 ? "there are: %s" : "there is nothing%s", stet_buf_cstr(&keys));
    }
    stet_value_release(envelope);
    stet_buf_release(&scratch);
    stet_buf_release(&keys);
    stet_path_release(&path);
    return status;
}

static stet_status check_demand(const driver *d, const char *piece, stet_value result, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(d->spec->demand) && status == STET_OK; i++) {
        stet_value v = stet_value_at(d->spec->demand, i);
        status = check_part(piece, result, stet_value_text(&v, ""), err);
    }
    return status;
}

static stet_status check_output(stet_value row, const char *node, stet_error *err) {
    stet_link link;
    stet_path path = STET_PATH_INIT;
    bool there = stet_link_read(stet_value_get(row, "output"), &link, &path);
    stet_path_release(&path);
    return there ? STET_OK : stet_fail(err, STET_INVALID, "node \"%s\" has no output that could be wanted", node);
}

/* A word that is no node: is it a file that some node makes? */
static stet_status check_file(const driver *d, const char *piece, const stet_process *g, const stet_piece *p,
                              const char *word, stet_error *err) {
    char *path = drive_file_of(d, word);
    bool made = false;
    stet_status status = path ? drive_accept_file(d, g, p, path, &made, err) : STET_OK;
    if (status == STET_OK && !made) {
        status = drive_no_target(d, piece, word, path, err);
        if (g && err && !stet_has_hint(err))
            stet_process_hint_node(g, drive_node_of(piece, word), err);
        else if (p && err && !stet_has_hint(err))
            stet_piece_hint_node(d->space, d->branch, p, drive_node_of(piece, word), err);
    }
    stet_free(path);
    return status;
}

/* Checks a node or a file of the stored piece. */
static stet_status check_stored(const driver *d, const stet_piece *p, const char *word, stet_error *err) {
    stet_value row;
    stet_error mine = STET_ERROR_INIT;
    const char *node = drive_node_of(p->name, word);
    stet_status status = stet_piece_row(d->space, d->branch, p, node, &row, &mine);
    if (status == STET_OK) {
        status = check_output(row, node, err);
        stet_value_release(row);
    } else if (status == STET_NOT_FOUND) {
        status = check_file(d, p->name, NULL, p, word, err);
    } else if (err) {
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
    return status;
}

/* `g`: the graph that will be set up; NULL: the stored one stays. That has no children: they are those of the
 * stored piece. */
static stet_status check_nodes(const driver *d, const char *piece, const stet_process *g, const stet_piece *p,
                               stet_error *err) {
    stet_status status = STET_OK;
    stet_piece *loaded = NULL;
    for (size_t i = 0; i < stet_value_count(d->spec->nodes) && status == STET_OK; i++) {
        stet_value v = stet_value_at(d->spec->nodes, i);
        const char *word = stet_value_text(&v, ""), *node = drive_node_of(piece, word);
        const stet_process_node *found = g ? stet_process_find(g, node) : NULL;
        if (found)
            status = check_output(found->row, node, err);
        else if (!g)
            status = check_stored(d, p, word, err);
        else if (stet_child_instance(node) > 0 &&
                 (loaded || stet_piece_load(d->space, d->branch, piece, -1, &loaded, NULL) == STET_OK))
            status = check_stored(d, loaded, word, err);
        else
            status = check_file(d, piece, g, NULL, word, err);
    }
    stet_piece_free(loaded);
    return status;
}

stet_status drive_accept_new(void *ctx, const stet_process *g, stet_error *err) {
    driver *d = ctx;
    bool closed;
    stet_value linked = stet_process_linked(g, &closed);
    d->named = true; /* a piece that reads this one must not set it up meanwhile */
    stet_status status = check_demand(d, g->piece, g->binding, err);
    if (status == STET_OK)
        status = check_nodes(d, g->piece, g, NULL, err);
    if (status == STET_OK)
        status = drive_renew_patterns(d, linked, drive_wants_part(d) ? g->piece : NULL, err);
    stet_value_release(linked);
    return status;
}

stet_status drive_accept_stored(driver *d, const stet_piece *p, stet_error *err) {
    d->named = true;
    stet_status status = check_demand(d, p->name, stet_value_get(p->envelope, "value"), err);
    if (status == STET_OK)
        status = check_nodes(d, p->name, NULL, p, err);
    return status == STET_OK ? drive_renew_patterns(d, stet_value_get(stet_value_get(p->envelope, "process"), "pieces"),
                                                    drive_wants_part(d) ? p->name : NULL, err)
                             : status;
}
