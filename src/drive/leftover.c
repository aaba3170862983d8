/* leftover.c - finds followed files that nothing needs any more, among them outputs of removed commands. */

#include "drive/leftover.h"

#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "drive/lookout.h"
#include "files/glob.h"
#include "files/meet.h"
#include "files/path.h"
#include "graph/makes.h"
#include "graph/piece.h"
#include "graph/process.h"
#include "memory/observe.h"
#include "os/file.h"
#include "os/sys.h"

#define BRANCHES 1000 /* of a space; with more of them, no file is considered unused */

/* Why a followed file is needed. AWAITED: it is named or read, but only where its document says that a command wrote
 * it; if that command was removed, such a reader fails. */
enum { NAMED = 1, READ = 2, WRITTEN = 4, MATCHED = 8, AWAITED = 16 };
#define IN_VAIN ((unsigned)(MATCHED | AWAITED)) /* these are not reasons to keep an output of a removed command */
#define SEVERAL SIZE_MAX

typedef struct need_space {
    char *name;
    stet_space *space;
    stet_arena arena;
    stet_branch_info *branches;
    size_t count;
    int64_t seq; /* when it was looked at */
} need_space;

/* Nodes that make the names of their outputs from others, and which of them, or of their children, are to run: what they
 * are going to write can't be told by name. */
typedef struct due_maker {
    char *path;  /* with {...} in it */
    size_t next; /* of the same node, plus 1; 0: none */
} due_maker;
typedef struct due_action {
    stet_space *space;
    int64_t branch;
    char *piece, *node;
    size_t maker; /* plus 1 */
} due_action;
typedef struct outputs_due {
    const char *only; /* the one path that is asked for; NULL: any */
    STET_VEC(due_maker) makers;
    stet_map by_node; /* "PIECE_KEY/NODE": the first of its makers, plus 1 */
    STET_VEC(due_action) actions;
    stet_space *space; /* whose marks are visited */
    int64_t branch;
} outputs_due;

struct stet_needs {
    stet_project *project;
    STET_VEC(need_space) spaces;
    stet_map named;    /* ids that graphs name: the number of the branch among all branches of all spaces, or SEVERAL */
    size_t naming;     /* that number, while graphs are looked at */
    stet_map produced; /* paths that nodes write, by their own word */
    bool outputs_known;
    outputs_due due;
};

static bool has_text(const stet_map *m, const char *text) {
    return stet_map_get(m, text, strlen(text)) != NULL;
}

static void take_name(void *ctx, const char *id) {
    stet_needs *n = ctx;
    const stet_slot *slot = stet_map_get(&n->named, id, strlen(id));
    size_t by = slot && slot->n != n->naming ? SEVERAL : n->naming;
    stet_map_put(&n->named, id, strlen(id), (stet_slot){.n = by});
}

static char *maker_key(const char *piece_key, const char *node) {
    return stet_asprintf("%s/%s", piece_key, node);
}

static void add_maker(outputs_due *d, const char *piece, const char *node, const char *path) {
    if (d->only && !stet_path_meets(path, d->only, false))
        return;
    char *of = stet_piece_key(piece), *key = maker_key(of, node);
    const stet_slot *first = stet_map_get(&d->by_node, key, strlen(key));
    *(due_maker *)stet_vec_add(&d->makers) = (due_maker){stet_strdup(path), first ? first->n : 0};
    stet_map_put(&d->by_node, key, strlen(key), (stet_slot){.n = d->makers.len});
    stet_free(key);
    stet_free(of);
}

static size_t makers_of(const outputs_due *d, const char *piece_key, const char *node) {
    char *key = maker_key(piece_key, node);
    const stet_slot *slot = stet_map_get(&d->by_node, key, strlen(key));
    stet_free(key);
    return slot ? slot->n : 0;
}

/* A mark: is it of one of them? Commands of `each` are their children. */
static stet_status take_mark(void *ctx, int64_t action, const stet_docname *of, const char *name,
                             stet_action_state state, stet_error *err) {
    outputs_due *d = ctx;
    (void)action;
    (void)state;
    (void)err;
    char *piece = stet_piece_key_of(of);
    if (!piece)
        return STET_OK;
    const char *child = strchr(name, '[');
    char *top = child ? stet_strndup(name, (size_t)(child - name)) : stet_strdup(name);
    size_t maker = makers_of(d, piece, name);
    if (!maker)
        maker = makers_of(d, piece, top);
    if (maker)
        *(due_action *)stet_vec_add(&d->actions) =
            (due_action){d->space, d->branch, stet_strdup(piece), stet_strdup(name), maker};
    stet_free(top);
    stet_free(piece);
    return STET_OK;
}

static stet_status take_marks(outputs_due *d, stet_space *space, int64_t branch, stet_error *err) {
    d->space = space;
    d->branch = branch;
    return d->makers.len > 0 ? stet_observe_each_mark(space, branch, 0, 0, SIZE_MAX / 2, take_mark, d, err) : STET_OK;
}

static void release_due(outputs_due *d) {
    for (size_t i = 0; i < d->makers.len; i++)
        stet_free(d->makers.at[i].path);
    for (size_t i = 0; i < d->actions.len; i++) {
        stet_free(d->actions.at[i].piece);
        stet_free(d->actions.at[i].node);
    }
    stet_vec_release(&d->makers);
    stet_vec_release(&d->actions);
    stet_map_release(&d->by_node);
}

/* May the child write it? Its element says which files it writes. */
static bool child_may_write(const due_action *a, const char *path) {
    stet_piece *p = NULL;
    stet_value row = stet_value_null(), makes = stet_value_null();
    bool known = stet_piece_load(a->space, a->branch, stet_piece_name_of(a->piece), -1, &p, NULL) == STET_OK &&
                 stet_piece_row(a->space, a->branch, p, a->node, &row, NULL) == STET_OK,
         may = !known;
    if (known)
        makes = stet_makes_of(a->space, a->branch, row, false);
    for (size_t i = 0; i < stet_value_count(makes) && !may; i++) {
        stet_value made = stet_value_at(makes, i);
        may = stet_path_meets(stet_value_as_string(&made, NULL), path, false);
    }
    stet_value_release(makes);
    stet_value_release(row);
    stet_piece_free(p);
    return may;
}

/* One that is to run and may write it; NULL: there is none. */
static const char *may_write(const outputs_due *d, const char *path) {
    for (size_t i = 0; i < d->actions.len; i++) {
        const due_action *a = &d->actions.at[i];
        bool meets = false;
        for (size_t m = a->maker; m && !meets; m = d->makers.at[m - 1].next)
            meets = stet_path_meets(d->makers.at[m - 1].path, path, false);
        if (meets && (!strchr(a->node, '[') || child_may_write(a, path)))
            return a->node;
    }
    return NULL;
}

static void take_output(void *ctx, const char *piece, const char *node, const char *path) {
    stet_needs *n = ctx;
    char *normal;
    if (strchr(path, '{')) {
        add_maker(&n->due, piece, node, path);
    } else if (stet_path_normal(stet_project_root(n->project), "", path, &normal, NULL) == STET_OK) {
        stet_map_put(&n->produced, normal, strlen(normal), (stet_slot){.n = WRITTEN});
        stet_free(normal);
    }
}

static stet_status take_space(stet_needs *n, need_space *s, stet_error *err) {
    stet_status status = stet_space_open(n->project, s->name, STET_SPACE_READ_ONLY, &s->space, err);
    if (status == STET_OK)
        status = stet_space_seq(s->space, &s->seq, err);
    if (status == STET_OK)
        status = stet_space_branches(s->space, NULL, false, BRANCHES, &s->arena, &s->branches, &s->count, err);
    if (status == STET_OK && s->count == BRANCHES)
        status = stet_fail(err, STET_LIMIT, "space \"%s\" has more than %d branches: what is needed can't be told",
                           s->name, BRANCHES);
    for (size_t i = 0; i < s->count && status == STET_OK; i++, n->naming++)
        status = stet_lookout_names_all(s->space, s->branches[i].branch, take_name, n, err);
    return status;
}

/* Collects the declared outputs of nodes, which is needed only if there is an output that no action is recorded to have
 * written. */
static stet_status take_outputs(stet_needs *n, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < n->spaces.len && !n->outputs_known; i++)
        for (size_t k = 0; k < n->spaces.at[i].count && status == STET_OK; k++) {
            const need_space *s = &n->spaces.at[i];
            int64_t branch = s->branches[k].branch;
            status = stet_lookout_outputs_all(s->space, branch, take_output, n, err);
            if (status == STET_OK)
                status = take_marks(&n->due, s->space, branch, err);
        }
    n->outputs_known |= status == STET_OK;
    return status;
}

stet_status stet_needs_open(stet_project *p, stet_needs **out, stet_error *err) {
    stet_names names = {0};
    stet_needs *n = stet_alloc_zero(sizeof *n);
    n->project = p;
    stet_status status = stet_space_names(p, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        need_space *s = stet_vec_add(&n->spaces);
        *s = (need_space){.name = stet_strdup(names.at[i]), .arena = STET_ARENA_INIT};
        status = take_space(n, s, err);
    }
    stet_names_release(&names);
    if (status != STET_OK) {
        stet_needs_close(n);
        n = NULL;
    }
    *out = n;
    return status;
}

void stet_needs_close(stet_needs *n) {
    if (!n)
        return;
    for (size_t i = 0; i < n->spaces.len; i++) {
        stet_arena_release(&n->spaces.at[i].arena);
        stet_space_close(n->spaces.at[i].space);
        stet_free(n->spaces.at[i].name);
    }
    stet_vec_release(&n->spaces);
    stet_map_release(&n->named);
    stet_map_release(&n->produced);
    release_due(&n->due);
    stet_free(n);
}

/* Does any action read or write the file? */
static stet_status is_used(stet_space *s, int64_t branch, const char *id, unsigned *needed, stet_error *err) {
    const unsigned surfaces = STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE;
    stet_numbers found = {0};
    stet_docname doc = {id, ""};
    stet_status status = stet_observe_readers(s, branch, &doc, STET_PATH_ROOT, STET_VALUE, &found, err);
    *needed |= found.len > 0 ? READ : 0;
    stet_vec_clear(&found);
    if (status == STET_OK)
        status = stet_observe_writers(s, branch, &doc, STET_PATH_ROOT, surfaces, &found, err);
    *needed |= found.len > 0 ? WRITTEN : 0;
    stet_numbers_release(&found);
    return status;
}

/* Does a pattern in use match the file? Then the next scan follows it again. */
static bool is_matched(const stet_map *named, const char *path) {
    const void *id;
    size_t len, skip = strlen(STET_GLOB_PREFIX);
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(named, &i, &id, &len, &slot);) {
        stet_buf pattern = STET_BUF(0);
        bool match = len > skip && memcmp(id, STET_GLOB_PREFIX, skip) == 0 &&
                     stet_path_unescape((const char *)id + skip, len - skip, &pattern) &&
                     stet_glob_match(stet_buf_cstr(&pattern), path);
        stet_buf_release(&pattern);
        if (match)
            return true;
    }
    return false;
}

/* What a command has written there, according to the document on this branch. */
static stet_status written_on(const need_space *s, size_t branch, const char *id, bool *made, stet_look *look,
                              stet_error *err) {
    stet_doc_state state;
    stet_status status =
        stet_space_load(s->space, s->branches[branch].branch, &(stet_docname){id, NULL}, -1, &state, err);
    if (status != STET_OK)
        return status;
    stet_value v = state.exists ? stet_value_get(state.value, "value") : stet_value_null();
    *made = stet_value_as_bool(stet_value_get(v, "made")) && stet_look_of_value(v, look);
    stet_value_release(state.value);
    return STET_OK;
}

/* A link that leads nowhere has no document: the index tells that a command has made it. */
static bool is_made_link(const stet_look *l) {
    return (l->flags & STET_LOOK_MADE) && l->link && !stet_look_there(l);
}

static stet_status why_needed(stet_needs *n, const char *id, const stet_look *known, unsigned *needed,
                              stet_error *err) {
    stet_status status = STET_OK;
    const stet_slot *named = stet_map_get(&n->named, id, strlen(id));
    size_t number = 0;
    *needed = named && named->n == SEVERAL ? NAMED : 0;
    for (size_t i = 0; i < n->spaces.len; i++)
        for (size_t k = 0; k < n->spaces.at[i].count && status == STET_OK && !(*needed & WRITTEN); k++, number++) {
            unsigned here = named && named->n == number ? NAMED : 0;
            stet_look look;
            bool made = false;
            status = is_used(n->spaces.at[i].space, n->spaces.at[i].branches[k].branch, id, &here, err);
            if (status == STET_OK && here && !(here & WRITTEN))
                status = written_on(&n->spaces.at[i], k, id, &made, &look, err);
            made |= here && !(here & WRITTEN) && is_made_link(known);
            *needed |= made ? AWAITED : here;
        }
    char *path = *needed ? NULL : stet_file_of_id(id, strlen(id));
    *needed |= path && is_matched(&n->named, path) ? MATCHED : 0;
    stet_free(path);
    return status;
}

/* What a command has written there, according to the document on any branch. */
static stet_status written(const need_space *s, const char *id, bool *made, stet_look *look, stet_error *err) {
    stet_status status = STET_OK;
    *made = false;
    for (size_t i = 0; i < s->count && status == STET_OK && !*made; i++)
        status = written_on(s, i, id, made, look, err);
    return status;
}

/* Does the tree contain something that a scan leaves out: a repository, or a project? */
static bool holds_uncounted(const char *top) {
    STET_VEC(char *) todo = {0};
    bool found = false;
    *stet_vec_add(&todo) = stet_strdup(top);
    while (todo.len > 0) {
        char *dir = todo.at[--todo.len];
        stet_names names = {0};
        if (!found && stet_file_list(dir, &names, NULL) != STET_OK)
            found = true; /* a tree that can't be read is left alone */
        for (size_t i = 0; i < names.len && !found; i++) {
            struct stat st;
            char *path = stet_file_join(dir, names.at[i]);
            found = stet_path_is_uncounted(path);
            if (!found && stet_sys_lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
                *stet_vec_add(&todo) = path;
            else
                stet_free(path);
        }
        stet_names_release(&names);
        stet_free(dir);
    }
    stet_vec_release(&todo);
    return found;
}

/* One of the written paths that is a directory above this path or, if this path is a directory, lies inside it:
 * everything in it is as the removed command wrote it, so that nothing else there is of use to a reader. Slots say why
 * a path is needed. Caller frees. */
static char *overlapping(const stet_map *paths, const char *path, bool directory) {
    const void *other;
    size_t len, own = strlen(path);
    stet_slot *slot;
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
        if ((slot = stet_map_get(paths, path, (size_t)(slash - path))) != NULL && (slot->n & WRITTEN))
            return stet_strndup(path, (size_t)(slash - path));
    for (size_t k = 0; directory && stet_map_next(paths, &k, &other, &len, &slot);)
        if (len > own && memcmp(other, path, own) == 0 && ((const char *)other)[own] == '/' && (slot->n & WRITTEN))
            return stet_strndup(other, len);
    return NULL;
}

/* Why the file is kept, or NULL. `needed`: paths that are followed and needed. */
static stet_status reason_to_keep(stet_needs *n, const stet_map *needed, stet_idle *i, stet_error *err) {
    const char *root = stet_project_root(n->project), *path = i->path, *due;
    bool inside = path[0] != '/' && strncmp(path, "../", 3) != 0;
    char *full = inside ? stet_file_join(root, path) : stet_strdup(path), *dir = stet_file_dirname(full);
    stet_status status = inside ? stet_file_inside(root, dir, &inside, err) : STET_OK;
    if (status != STET_OK) {
        /* the error is set */
    } else if (!inside) {
        i->kept = stet_strdup("it lies outside the project");
    } else if (has_text(&n->produced, path)) {
        i->kept = stet_strdup("a node says that it writes it");
        i->declared = true;
    } else if ((due = may_write(&n->due, path)) != NULL) {
        i->kept = stet_asprintf("%s is to run, and may write it", due);
    } else if (i->look.mode == STET_LOOK_DIRECTORY && !i->look.link && holds_uncounted(full)) {
        i->kept = stet_strdup("a repository or a project lies in it");
    }
    const stet_map *maps[] = {needed, &n->produced};
    for (int k = 0; k < 2 && status == STET_OK && !i->kept; k++) {
        char *other = overlapping(maps[k], path, i->look.mode == STET_LOOK_DIRECTORY);
        if (other)
            i->kept = stet_asprintf(k ? "%s is written by a node" : "%s is needed", other);
        stet_free(other);
    }
    stet_free(full);
    stet_free(dir);
    return status;
}

static need_space *space_of(stet_needs *n, const char *name) {
    for (size_t i = 0; i < n->spaces.len; i++)
        if (strcmp(n->spaces.at[i].name, name) == 0)
            return &n->spaces.at[i];
    return NULL;
}

/* Is the file an output that still exists? */
static stet_status judge(stet_needs *n, const need_space *s, stet_files *f, const stet_map *needed, stet_idle *i,
                         stet_error *err) {
    stet_look was, now;
    bool made;
    stet_status status = written(s, i->id, &made, &was, err);
    if (status == STET_OK && !made && (i->look.flags & STET_LOOK_MADE) && i->look.link) {
        was = i->look;
        made = true;
    }
    char *path = made ? stet_file_of_id(i->id, strlen(i->id)) : NULL;
    if (status != STET_OK || !path)
        return status;
    stet_error none = STET_ERROR_INIT;
    if (stet_look_at(stet_files_root(f), path, NULL, &now, &none) != STET_OK) {
        stet_error_clear(&none); /* it is a device by now, or can't be read, so it is not what was written */
        i->changed = true;
    } else if (!stet_look_there(&now) && !now.link) {
        stet_free(path);
        return STET_OK;
    } else {
        i->changed = !stet_look_unaltered(&was, &now);
    }
    i->path = path;
    i->look = was;
    if (i->changed) {
        i->kept = stet_strdup("it was changed since");
        return STET_OK;
    }
    status = take_outputs(n, err);
    return status == STET_OK ? reason_to_keep(n, needed, i, err) : status;
}

stet_status stet_idle_find(stet_needs *n, stet_files *f, const char *space, bool (*cancelled)(void *ctx), void *ctx,
                           stet_idles *out, stet_error *err) {
    const need_space *s = space_of(n, space);
    stet_map used = {0}; /* paths */
    stet_status status = STET_OK;
    char *id;
    stet_look look;
    *out = (stet_idles){0};
    if (!s)
        return STET_OK;
    for (size_t i = 0; status == STET_OK && !stet_files_was_lost(f) && stet_files_at(f, i, &id, &look); i++) {
        unsigned needed = NAMED;
        if (id && cancelled && cancelled(ctx))
            status = stet_fail(err, STET_CANCELLED, "interrupted");
        if (id && status == STET_OK)
            status = why_needed(n, id, &look, &needed, err);
        char *path = id && (needed & ~IN_VAIN) ? stet_file_of_id(id, strlen(id)) : NULL;
        if (path)
            stet_map_put(&used, path, strlen(path), (stet_slot){.n = needed});
        stet_free(path);
        if (needed & ~IN_VAIN)
            stet_free(id);
        else
            *(stet_idle *)stet_vec_add(out) =
                (stet_idle){.id = id, .look = look, .matched = needed != 0, .awaited = (needed & AWAITED) != 0};
    }
    size_t kept = 0;
    for (size_t i = 0; i < out->len; i++) {
        if (status == STET_OK)
            status = judge(n, s, f, &used, &out->at[i], err);
        if (status == STET_OK && out->at[i].matched &&
            (!out->at[i].path || out->at[i].changed || (out->at[i].awaited && out->at[i].declared))) {
            stet_free(out->at[i].id); /* a file like others: the pattern matches it, or the reader reads it */
            stet_free(out->at[i].path);
            stet_free(out->at[i].kept);
            continue;
        }
        out->at[kept++] = out->at[i];
    }
    out->len = kept;
    stet_map_release(&used);
    if (status != STET_OK)
        stet_idle_release(out);
    return status;
}

void stet_idle_release(stet_idles *idle) {
    for (size_t i = 0; i < idle->len; i++) {
        stet_free(idle->at[i].id);
        stet_free(idle->at[i].path);
        stet_free(idle->at[i].kept);
    }
    stet_vec_release(idle);
    *idle = (stet_idles){0};
}

stet_status stet_idle_remove(stet_needs *n, stet_files *f, stet_idle *i, stet_error *err) {
    stet_look now;
    stet_status status = STET_OK;
    for (size_t k = 0; k < n->spaces.len && status == STET_OK; k++) {
        int64_t seq;
        status = stet_space_seq(n->spaces.at[k].space, &seq, err);
        if (status == STET_OK && seq != n->spaces.at[k].seq)
            status = stet_fail(err, STET_CONFLICT, "something was committed while outputs were removed");
    }
    if (status == STET_OK)
        status = stet_look_at(stet_files_root(f), i->path, NULL, &now, err);
    if (status != STET_OK)
        return status;
    if (!stet_look_unaltered(&i->look, &now)) {
        i->changed = true;
        i->kept = stet_strdup("it was changed since");
        return STET_OK;
    }
    char *full = stet_file_join(stet_project_root(n->project), i->path);
    bool tree = i->look.mode == STET_LOOK_DIRECTORY && !i->look.link;
    status = tree ? stet_file_remove_tree(full, err) : stet_file_remove(full, err);
    stet_free(full);
    return status;
}

typedef struct coming {
    const char *root;
    outputs_due due;
    bool declared;
} coming;

static void take_coming(void *ctx, const char *piece, const char *node, const char *path) {
    coming *c = ctx;
    char *normal;
    if (strchr(path, '{')) {
        add_maker(&c->due, piece, node, path);
    } else if (stet_path_meant(c->root, "", path, &normal, NULL) == STET_OK) {
        size_t n = strlen(normal);
        c->declared |= strncmp(c->due.only, normal, n) == 0 && (!c->due.only[n] || c->due.only[n] == '/');
        stet_free(normal);
    }
}

bool stet_output_may_come(stet_space *space, int64_t branch, const char *root, const char *path) {
    coming c = {.root = root, .due = {.only = path}};
    stet_status status = stet_lookout_outputs_all(space, branch, take_coming, &c, NULL);
    if (status == STET_OK && !c.declared)
        status = take_marks(&c.due, space, branch, NULL);
    bool may = status != STET_OK || c.declared || may_write(&c.due, path);
    release_due(&c.due);
    return may;
}
