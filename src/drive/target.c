/* target.c - words of a run that name a node, or a file that some node makes.
 *
 * A word is the id of a node, alone or as PIECE/NODE, or a path: of the project, as seen from the directory where the
 * word was written, or the id "file:PATH" of a document.
 *
 *   T1. A node comes before a file of that name.
 *   T2. The action that is recorded to have written the file, and still declares it, is demanded. Without one, every
 *       node that may make the file is.
 *   T3. A run that ends well has found the action that makes the file. If the action is gone by then, because its own
 *       file was moved or deleted, the run goes on with every node that may make the file, and fails if none does.
 */

#include <string.h>

#include "drive/drive_internal.h"
#include "drive/maker.h"
#include "files/path.h"
#include "graph/near.h"

const char *drive_node_of(const char *piece, const char *word) {
    size_t len = strlen(piece);
    return strncmp(word, piece, len) == 0 && word[len] == '/' && word[len + 1] ? word + len + 1 : word;
}

char *drive_file_of(const driver *d, const char *word) {
    const char *root = stet_project_root(d->project);
    if (strncmp(word, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) == 0)
        return stet_file_of_id(word, strlen(word));
    return stet_maker_path(root, d->spec->cwd ? d->spec->cwd : root, word);
}

static bool has_node(const driver *d, const char *word) {
    stet_value row;
    if (!d->stored ||
        stet_piece_row(d->space, d->branch, d->stored, drive_node_of(d->piece, word), &row, NULL) != STET_OK)
        return false;
    stet_value_release(row);
    return true;
}

stet_value drive_words_value(const driver *d) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < stet_value_count(d->spec->nodes); i++) {
        stet_value v = stet_value_at(d->spec->nodes, i);
        const char *word = stet_value_as_string(&v, NULL);
        char *path = has_node(d, word) ? NULL : drive_file_of(d, word), *id = path ? stet_file_id(path) : NULL;
        stet_value_push(&list, id ? stet_value_string(id) : stet_value_retain(v));
        stet_free(path);
        stet_free(id);
    }
    return list;
}

stet_status drive_no_target(const driver *d, const char *piece, const char *word, const char *path, stet_error *err) {
    if (!path)
        return stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no node \"%s\"", piece, word);
    bool file = strchr(path, '/') || strchr(path, '.');
    char *full = stet_file_join(stet_project_root(d->project), path);
    file = file || stet_file_exists(full);
    stet_free(full);
    if (file)
        stet_fail(err, STET_NOT_FOUND, "%s: no node of piece \"%s\" has this name or makes this file", path, piece);
    else
        stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no node \"%s\"", piece, word);
    if (file)
        stet_hint(err, "`stet action list %s` lists the nodes, and `stet why %s` the nodes that read a file", piece,
                  word);
    return STET_NOT_FOUND;
}

stet_status drive_accept_file(const driver *d, const stet_process *g, const stet_piece *p, const char *path, bool *made,
                              stet_error *err) {
    const char *root = stet_project_root(d->project);
    stet_names nodes = {0};
    *made = g && stet_maker_in(g, root, path);
    if (g)
        return STET_OK;
    stet_status status = stet_maker_choices(d->space, d->branch, root, p->name, path, &nodes, err);
    *made = nodes.len > 0;
    stet_names_release(&nodes);
    return status;
}

static stet_status demand_choices(driver *d, const char *path, stet_error *err) {
    stet_names nodes = {0};
    stet_status status =
        stet_maker_choices(d->space, d->branch, stet_project_root(d->project), d->piece, path, &nodes, err);
    if (status == STET_OK && nodes.len == 0)
        status = drive_no_target(d, d->piece, path, path, err);
    for (size_t i = 0; i < nodes.len && status == STET_OK; i++)
        status = drive_demand_node(d, nodes.at[i], err);
    stet_names_release(&nodes);
    return status;
}

/* The action that has made the file, and still does. NULL: there is none. The caller frees it. */
static stet_status made_by(driver *d, const char *path, char **node, stet_error *err) {
    char *piece = NULL;
    stet_status status =
        stet_maker_recorded(d->space, d->branch, stet_project_root(d->project), d->piece, path, &piece, node, err);
    stet_free(piece);
    return status;
}

stet_status drive_demand_word(driver *d, const char *word, stet_error *err) {
    char *node = NULL, *path = has_node(d, word) ? NULL : drive_file_of(d, word); /* T1 */
    if (!path)
        return drive_demand_node(d, drive_node_of(d->piece, word), err);
    stet_status status = made_by(d, path, &node, err);
    if (status == STET_OK)
        status = node ? drive_demand_node(d, node, err) : demand_choices(d, path, err); /* T2 */
    stet_free(node);
    stet_free(path);
    return status;
}

/* Demands every node that may make a file that no action is known to make. */
static stet_status look_again(driver *d, bool *more, char **missing, stet_error *err) {
    stet_status status = STET_OK;
    *more = false;
    for (size_t i = 0; i < stet_value_count(d->spec->nodes) && status == STET_OK && !*missing; i++) {
        stet_value v = stet_value_at(d->spec->nodes, i);
        const char *word = stet_value_as_string(&v, NULL);
        char *node = NULL, *path = has_node(d, word) ? NULL : drive_file_of(d, word);
        if (path)
            status = made_by(d, path, &node, err);
        if (status == STET_OK && path && !node) {
            if (d->looked_again)
                *missing = stet_strdup(path);
            else
                status = demand_choices(d, path, err);
            *more = true;
        }
        stet_free(node);
        stet_free(path);
    }
    return status;
}

stet_status drive_check_files(driver *d, stet_error *err) {
    const stet_sched_report *r = &d->out->report;
    char *missing = NULL;
    bool more = true;
    stet_status status = STET_OK;
    while (status == STET_OK && more && !missing && r->failed + r->aside + r->left == 0 && !d->spec->observe_only) {
        status = look_again(d, &more, &missing, err);
        if (status == STET_OK && more && !missing)
            status = drive_settle_again(d, 0, err);
        d->looked_again = true;
    }
    if (missing) {
        status = stet_fail(err, STET_NOT_FOUND, "%s: no node of piece \"%s\" makes this file", missing, d->piece);
        stet_hint(err, "its commands are up to date and make other files; `stet action list %s` lists them", d->piece);
    }
    stet_free(missing);
    return status;
}
