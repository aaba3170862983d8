/* maker.c - which node makes a file, and which actions read it. */

#include "drive/maker.h"

#include <fnmatch.h>
#include <string.h>

#include "drive/lookout.h"
#include "files/glob.h"
#include "files/path.h"
#include "graph/makes.h"
#include "graph/piece.h"

/* Is it this file, or a directory around it? With {...} in `declared`: may it be? */
static bool covers(const char *root, const char *declared, const char *path) {
    stet_buf pattern = STET_BUF(0);
    char *normal = NULL;
    bool match = false;
    if (!strchr(declared, '{')) {
        if (stet_path_meant(root, "", declared, &normal, NULL) == STET_OK) {
            size_t n = strlen(normal);
            match = strncmp(normal, path, n) == 0 && (!path[n] || path[n] == '/');
        }
        stet_free(normal);
        return match;
    }
    for (const char *p = declared; *p;) {
        const char *close = *p == '{' ? strchr(p, '}') : NULL;
        if (close)
            stet_buf_char(&pattern, '*');
        else if (strchr("*?[\\", *p))
            stet_buf_printf(&pattern, "\\%c", *p);
        else
            stet_buf_char(&pattern, *p);
        p = close ? close + 1 : p + 1;
    }
    match = fnmatch(stet_buf_cstr(&pattern), path, 0) == 0; /* what is filled in may have slashes in it */
    stet_buf_release(&pattern);
    return match;
}

typedef struct search {
    const char *root, *only, *path;
    char *piece, *node;
    bool sure; /* found by a path without {...} */
} search;

static void take_output(void *ctx, const char *piece, const char *node, const char *path) {
    search *s = ctx;
    bool sure = !strchr(path, '{');
    if ((s->node && (s->sure || !sure)) || (s->only && strcmp(s->only, piece) != 0) || !covers(s->root, path, s->path))
        return;
    stet_free(s->piece);
    stet_free(s->node);
    s->piece = stet_strdup(piece);
    s->node = stet_strdup(node);
    s->sure = sure;
}

/* Does the action make the file as its row says now? Since it last ran its paths may have become others. */
static bool makes(const search *s, stet_space *space, int64_t branch, stet_value row) {
    stet_value paths = stet_makes_of(space, branch, row, false);
    bool found = false;
    for (size_t i = 0; i < stet_value_count(paths) && !found; i++) {
        stet_value path = stet_value_at(paths, i);
        found = covers(s->root, stet_value_as_string(&path, NULL), s->path);
    }
    stet_value_release(paths);
    return found;
}

/* The one that has written it. */
static stet_status find_recorded(stet_space *space, int64_t branch, search *s, stet_error *err) {
    stet_status status = STET_OK;
    stet_arena arena = STET_ARENA_INIT;
    for (size_t end = strlen(s->path); end > 0 && !s->node && status == STET_OK;) {
        stet_numbers writers = {0};
        char *part = stet_strndup(s->path, end), *id = stet_file_id(part);
        status = stet_observe_writers(space, branch, &(stet_docname){id, ""}, STET_PATH_ROOT,
                                      STET_WRITE_KNOWN | STET_WRITE_DECLARED, &writers, err);
        for (size_t i = 0; i < writers.len && !s->node && status == STET_OK; i++) {
            stet_action_record r;
            if (stet_observe_get(space, writers.at[i], &arena, &r, NULL) != STET_OK)
                continue;
            char *name = stet_piece_of_action(&r.key);
            stet_piece *p = NULL;
            stet_value row = stet_value_null();
            if (name && (!s->only || strcmp(s->only, name) == 0) &&
                stet_piece_load(space, branch, name, -1, &p, NULL) == STET_OK &&
                stet_piece_row(space, branch, p, r.key.action, &row, NULL) == STET_OK && makes(s, space, branch, row)) {
                s->piece = stet_strdup(name);
                s->node = stet_strdup(r.key.action);
            }
            stet_value_release(row);
            stet_piece_free(p);
            stet_free(name);
        }
        stet_numbers_release(&writers);
        stet_free(id);
        stet_free(part);
        while (end > 0 && s->path[end - 1] != '/')
            end--;
        end -= end > 0;
    }
    stet_arena_release(&arena);
    return status;
}

stet_status stet_maker_find(stet_space *space, int64_t branch, const char *root, const char *only, const char *path,
                            char **piece, char **node, stet_error *err) {
    stet_status status = stet_maker_recorded(space, branch, root, only, path, piece, node, err);
    search s = {.root = root, .only = only, .path = path};
    if (status != STET_OK || *node)
        return status;
    status = stet_lookout_outputs_all(space, branch, take_output, &s, err);
    *piece = s.piece;
    *node = s.node;
    return status;
}

stet_status stet_maker_recorded(stet_space *space, int64_t branch, const char *root, const char *only, const char *path,
                                char **piece, char **node, stet_error *err) {
    search s = {.root = root, .only = only, .path = path};
    stet_status status = find_recorded(space, branch, &s, err);
    *piece = s.piece;
    *node = s.node;
    return status;
}

typedef struct choice {
    const char *root, *piece, *path;
    stet_names *nodes;
} choice;

static void take_choice(void *ctx, const char *piece, const char *node, const char *path) {
    choice *c = ctx;
    if (strcmp(c->piece, piece) != 0 || !covers(c->root, path, c->path))
        return;
    for (size_t i = 0; i < c->nodes->len; i++)
        if (strcmp(c->nodes->at[i], node) == 0)
            return;
    *stet_vec_add(c->nodes) = stet_strdup(node);
}

stet_status stet_maker_choices(stet_space *space, int64_t branch, const char *root, const char *piece, const char *path,
                               stet_names *nodes, stet_error *err) {
    choice c = {root, piece, path, nodes};
    return stet_lookout_outputs_all(space, branch, take_choice, &c, err);
}

typedef struct declared {
    const char *root, *path;
    bool found;
} declared;

static void look_at_node(void *ctx, const char *top, stet_value node) {
    declared *d = ctx;
    stet_value module = stet_value_get(node, "module"), produces = stet_value_get(module, "produces"),
               depfile = stet_value_get(module, "depfile");
    (void)top;
    if (stet_value_type(depfile) == STET_TYPE_STRING)
        d->found |= covers(d->root, stet_value_as_string(&depfile, NULL), d->path);
    for (size_t i = 0; stet_value_type(produces) == STET_TYPE_OBJECT && i < stet_value_count(produces); i++) {
        stet_value path = stet_value_at(produces, i);
        d->found |=
            stet_value_type(path) == STET_TYPE_STRING && covers(d->root, stet_value_as_string(&path, NULL), d->path);
    }
}

bool stet_maker_in(const stet_process *g, const char *root, const char *path) {
    declared d = {.root = root, .path = path};
    for (size_t i = 0; i < g->node_count && !d.found; i++)
        stet_process_walk_row(g->nodes[i].id, g->nodes[i].row, look_at_node, &d);
    return d.found;
}

static stet_status add_readers(stet_space *space, int64_t branch, const char *id, stet_numbers *out, stet_error *err) {
    stet_numbers some = {0};
    stet_status status =
        stet_observe_readers(space, branch, &(stet_docname){id, ""}, STET_PATH_ROOT, STET_VALUE, &some, err);
    for (size_t i = 0; i < some.len; i++) {
        bool known = false;
        for (size_t k = 0; k < out->len && !known; k++)
            known = out->at[k] == some.at[i];
        if (!known)
            *stet_vec_add(out) = some.at[i];
    }
    stet_numbers_release(&some);
    return status;
}

stet_status stet_maker_readers(stet_space *space, int64_t branch, const char *path, stet_numbers *out,
                               stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    const char *const *ids = NULL;
    size_t count = 0;
    stet_status status = STET_OK;
    for (size_t end = strlen(path); end > 0 && status == STET_OK;) {
        char *part = stet_strndup(path, end), *id = stet_file_id(part);
        status = add_readers(space, branch, id, out, err);
        stet_free(id);
        stet_free(part);
        while (end > 0 && path[end - 1] != '/')
            end--;
        end -= end > 0;
    }
    if (status == STET_OK)
        status = stet_space_ids(space, STET_GLOB_PREFIX, &arena, &ids, &count, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_buf pattern = STET_BUF(0);
        const char *text = ids[i] + strlen(STET_GLOB_PREFIX);
        if (stet_path_unescape(text, strlen(text), &pattern) && stet_glob_match(stet_buf_cstr(&pattern), path))
            status = add_readers(space, branch, ids[i], out, err);
        stet_buf_release(&pattern);
    }
    stet_arena_release(&arena);
    return status;
}

char *stet_maker_path(const char *root, const char *cwd, const char *word) {
    size_t n = strlen(root);
    bool inside = strncmp(cwd, root, n) == 0 && (!cwd[n] || cwd[n] == '/');
    char *path = NULL;
    if (!*word || stet_path_normal(root, inside && cwd[n] ? cwd + n + 1 : "", word, &path, NULL) != STET_OK)
        return NULL;
    if (path[0] == '/' || strncmp(path, "../", 3) == 0) {
        stet_free(path);
        return NULL;
    }
    return path;
}
