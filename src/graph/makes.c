/* makes.c - which files an action may make, and which documents are about them. */

#include "graph/makes.h"

#include <string.h>

#include "base/vec.h"
#include "files/look.h"
#include "files/meet.h"
#include "files/path.h"
#include "graph/child.h"

/* Of the part of a path that is kept: escaped it is at most three times as long, and fits into an id. */
#define MAX_PATH_LEN 120

typedef struct taking {
    stet_space *space;
    int64_t branch;
    stet_value inputs; /* null: nothing is substituted */
    bool plain;        /* also paths without {...} */
    stet_buf path;     /* of the input that was requested last */
    stet_value out;
} taking;

/* The path of the file that an input refers to: the link leads to its document, or to a value that names it. */
static bool path_of_link(taking *t, stet_value binding) {
    stet_link l;
    stet_path at = STET_PATH_INIT;
    stet_doc_state state = {0};
    stet_value v = stet_value_null();
    bool found = false;
    size_t len, prefix = strlen(STET_FILE_PREFIX);
    stet_path_push(&at, "value");
    stet_buf_clear(&t->path);
    if (stet_link_read(binding, &l, &at) && !l.space) {
        if (strncmp(l.id, STET_FILE_PREFIX, prefix) == 0)
            found = stet_path_unescape(l.id + prefix, strlen(l.id) - prefix, &t->path);
        else if (stet_space_load(t->space, t->branch, &(stet_docname){l.id, l.scope}, -1, &state, NULL) == STET_OK &&
                 state.exists && stet_path_lookup(state.value, stet_path_ref(&at), &v)) {
            stet_value path = stet_value_get(v, "path");
            const char *text = stet_value_type(path) == STET_TYPE_STRING ? stet_value_as_string(&path, &len) : NULL;
            found = text && stet_path_unescape(text, len, &t->path);
        }
    }
    stet_value_release(state.value);
    stet_path_release(&at);
    return found;
}

static const char *path_of_input(void *ctx, const char *name, size_t len) {
    taking *t = ctx;
    stet_value binding;
    return stet_value_find(t->inputs, name, len, &binding) && path_of_link(t, binding) ? stet_buf_cstr(&t->path) : NULL;
}

static void take_path(taking *t, stet_value v) {
    const char *text = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, NULL) : NULL;
    stet_buf filled = STET_BUF(0);
    char *normal;
    if (!text || (!t->plain && !strchr(text, '{')))
        return;
    if (stet_value_type(t->inputs) == STET_TYPE_OBJECT)
        stet_path_fill(text, path_of_input, t, &filled);
    else
        stet_buf_str(&filled, text);
    if (stet_path_normal(NULL, "", stet_buf_cstr(&filled), &normal, NULL) == STET_OK) {
        stet_value_push(&t->out, stet_value_string(normal));
        stet_free(normal);
    }
    stet_buf_release(&filled);
}

static void take_node(void *ctx, const char *top, stet_value node) {
    taking *t = ctx;
    stet_value module = stet_value_get(node, "module"), produces = stet_value_get(module, "produces");
    (void)top;
    for (size_t i = 0; stet_value_type(produces) == STET_TYPE_OBJECT && i < stet_value_count(produces); i++)
        take_path(t, stet_value_at(produces, i));
    take_path(t, stet_value_get(module, "depfile"));
}

stet_value stet_makes_of(stet_space *s, int64_t branch, stet_value row, bool recorded) {
    bool coordinator = stet_child_role_of(row) != STET_CHILD_NONE, child = stet_value_find(row, "parent", 6, NULL);
    taking t = {.space = s, .branch = branch, .plain = coordinator || !recorded, .out = stet_value_array()};
    if (!recorded && !coordinator)
        t.inputs = stet_value_get(row, "inputs");
    if (!recorded || coordinator || !child)
        stet_process_walk_row("", row, take_node, &t);
    stet_buf_release(&t.path);
    return t.out;
}

stet_address stet_makes_cell(const char *path, stet_arena *arena) {
    stet_buf id = STET_BUF(0);
    size_t plain = strcspn(path, "{");
    char *most = NULL;
    if (strlen(path) > MAX_PATH_LEN) /* M3 */
        most = stet_asprintf("%.*s{x}", (int)(plain < MAX_PATH_LEN ? plain : MAX_PATH_LEN), path);
    stet_buf_str(&id, STET_MAKES_PREFIX);
    stet_path_escape(most ? most : path, &id);
    stet_address cell = {NULL, {stet_arena_strdup(arena, stet_buf_cstr(&id)), ""}, STET_PATH_ROOT};
    stet_free(most);
    stet_buf_release(&id);
    return cell;
}

/* The same path or pattern with the links among its directories resolved, up to the first wildcard or the last name: an
 * output that is a link is itself replaced. Caller frees; NULL: there is no other name. */
static char *behind_links(const char *root, const char *path) {
    size_t n = strcspn(path, "*?[\\{");
    while (n > 0 && path[n - 1] != '/')
        n--;
    return root ? stet_path_behind_links(root, path, n) : NULL;
}

static char *keep(stet_arena *arena, char *text) {
    char *kept = text ? stet_arena_strdup(arena, text) : NULL;
    stet_free(text);
    return kept;
}

static stet_status load_patterns(stet_makes_known *k, stet_space *s, const char *root, stet_arena *arena,
                                 stet_error *err) {
    stet_status status = stet_space_ids(s, STET_GLOB_PREFIX, arena, &k->ids, &k->count, err);
    if (status != STET_OK)
        return status;
    k->loaded = true;
    k->patterns = stet_arena_zero(arena, (k->count + 1) * sizeof *k->patterns);
    k->real = stet_arena_zero(arena, (k->count + 1) * sizeof *k->real);
    for (size_t i = 0; i < k->count; i++) {
        stet_buf path = STET_BUF(0);
        const char *text = k->ids[i] + strlen(STET_GLOB_PREFIX);
        if (stet_path_unescape(text, strlen(text), &path)) {
            k->patterns[i] = stet_arena_strdup(arena, stet_buf_cstr(&path));
            k->real[i] = keep(arena, behind_links(root, k->patterns[i]));
        }
        stet_buf_release(&path);
    }
    return STET_OK;
}

typedef struct placing {
    stet_space *space;
    int64_t branch;
    stet_arena *arena;
    stet_map met;
    STET_VEC(stet_address) out;
} placing;

static void place(placing *p, const char *id) {
    size_t len = strlen(id);
    if (stet_map_get(&p->met, id, len))
        return;
    stet_map_put(&p->met, id, len, (stet_slot){.n = 1});
    *stet_vec_add(&p->out) = (stet_address){NULL, {stet_arena_strdup(p->arena, id), ""}, STET_PATH_ROOT};
}

/* Might it be a directory? Without a document nobody knows. */
static bool may_be_directory(const placing *p, const char *id) {
    stet_doc_state state;
    if (stet_space_load(p->space, p->branch, &(stet_docname){id, NULL}, -1, &state, NULL) != STET_OK)
        return true;
    stet_value mode = stet_value_get(stet_value_get(state.value, "value"), "mode");
    bool may = !state.exists || stet_value_as_int(mode) == STET_LOOK_DIRECTORY;
    stet_value_release(state.value);
    return may;
}

/* Adds the files and directories that were read and that a path may be, lie in or contain. */
static stet_status place_files(placing *p, const char *path, stet_error *err) {
    size_t plain = strcspn(path, "{");
    const char *slash = path[plain] ? strrchr(path, '/') : NULL;
    bool deep = slash && slash > path + plain; /* the directories are unknown too */
    const char *const *ids;
    size_t count;
    stet_buf id = STET_BUF(0), name = STET_BUF(0);
    char *start = stet_strndup(path, plain);
    for (const char *at = strchr(start, '/'); at; at = strchr(at + 1, '/')) { /* M3: they may contain it */
        char *dir = stet_strndup(start, (size_t)(at - start)), *above = stet_file_id(dir);
        place(p, above);
        stet_free(above);
        stet_free(dir);
    }
    stet_buf_str(&id, STET_FILE_PREFIX);
    stet_path_escape(start, &id);
    if (!path[plain]) {
        place(p, stet_buf_cstr(&id));
        stet_buf_char(&id, '/');
    }
    stet_status status = stet_space_ids(p->space, stet_buf_cstr(&id), p->arena, &ids, &count, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        const char *text = ids[i] + strlen(STET_FILE_PREFIX);
        stet_buf_clear(&name);
        if (!stet_path_unescape(text, strlen(text), &name))
            continue;
        bool meets = stet_path_meets(path, stet_buf_cstr(&name), false);
        if (!meets && deep) {
            stet_buf below = STET_BUF(0);
            for (const char *c = stet_buf_cstr(&name); *c; c++)
                stet_buf_printf(&below, strchr("*?[]\\", *c) ? "\\%c" : "%c", *c);
            stet_buf_str(&below, "/**");
            meets = stet_path_meets(path, stet_buf_cstr(&below), true) && may_be_directory(p, ids[i]);
            stet_buf_release(&below);
        }
        if (meets)
            place(p, ids[i]);
    }
    stet_free(start);
    stet_buf_release(&id);
    stet_buf_release(&name);
    return status;
}

static stet_status place_all(placing *p, const stet_makes_known *k, const char *path, stet_error *err) {
    for (size_t i = 0; i < k->count; i++)
        if (k->patterns[i] &&
            (stet_path_meets(path, k->patterns[i], true) || (k->real[i] && stet_path_meets(path, k->real[i], true))))
            place(p, k->ids[i]);
    return place_files(p, path, err);
}

stet_status stet_makes_places(stet_makes_known *k, stet_space *s, int64_t branch, const char *cell, stet_arena *arena,
                              const stet_address **out, size_t *count, stet_error *err) {
    placing p = {.space = s, .branch = branch, .arena = arena};
    stet_buf path = STET_BUF(0);
    const char *text = cell + strlen(STET_MAKES_PREFIX);
    const char *root = stet_space_root(s);
    char *real = NULL;
    bool fine = stet_path_unescape(text, strlen(text), &path);
    stet_status status = !fine || k->loaded ? STET_OK : load_patterns(k, s, root, arena, err);
    if (fine && status == STET_OK)
        status = place_all(&p, k, stet_buf_cstr(&path), err);
    if (fine && status == STET_OK && (real = behind_links(root, stet_buf_cstr(&path))))
        status = place_all(&p, k, real, err);
    *out = stet_arena_dup(arena, p.out.at ? (void *)p.out.at : (void *)"", p.out.len * sizeof *p.out.at);
    *count = p.out.len;
    stet_vec_release(&p.out);
    stet_map_release(&p.met);
    stet_buf_release(&path);
    stet_free(real);
    return status;
}
