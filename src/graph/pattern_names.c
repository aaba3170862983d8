/* pattern_names.c - finds nodes that read what another node writes without referring to it.
 *
 * They do so by a word of a command, or by a link to the document of a file. What a run reads is known after it has
 * run, and orders later runs. For the first run it is found here, from the files that modules name (use.h): the reader
 * comes after the writer.
 *
 *   N1. A file that a node writes, a directory of such files, and what lies in a directory that a node writes, are read
 *       by every node that names them. Cycles of these, and of references, are mistakes: no node could be the first.
 *   N2. What the children of a node write has {...} in it, and may or may not be what is named. The reader waits,
 *       unless that would be a cycle.
 *   N3. What the children of a node read is read by the node.
 *   N4. A writer that the reader refers to is not handled in this file.
 *   N5. A file has a second name through each link of the project that leads to it. Names are compared as they are
 *       written, and as they are with links followed. Two nodes that write one file are a mistake.
 */

#include <stdlib.h>
#include <string.h>

#include "files/glob.h"
#include "files/meet.h"
#include "files/path.h"
#include "graph/child.h"
#include "graph/circle.h"
#include "graph/pattern_internal.h"

#define MAX_EDGES 1000000 /* beyond this number a first run may begin too early, and is then repeated */
#define MAX_DROPS 100
#define NONE      UINT32_MAX

typedef struct output {
    char *path;
    char *name; /* NULL: of a child */
    uint32_t node;
} output;

typedef struct name_edge {
    uint32_t from, to, out; /* out NONE: the edge is a reference */
    bool possible;          /* N2 */
    char *wanted;           /* as written */
} name_edge;

typedef struct finder {
    pattern_checker *c;
    STET_VEC(output) outs;  /* those without {...}, sorted by path once all are known */
    STET_VEC(output) forms; /* those with {...} */
    STET_VEC(name_edge) edges;
    uint32_t *referred; /* by writer: 1 + the last reader that refers to it */
    uint32_t *met;      /* by index in outs, then in forms: 1 + the last edge to it */
    uint32_t first;     /* first edge of the current node */
    uint32_t node;      /* the current node */
    bool child;
} finder;

/* N5: the other name of a path or pattern, or NULL. `follow`: also if the path is itself a link; an output replaces
 * such a link. Caller frees. */
static char *real_path(const finder *f, const char *path, bool follow) {
    const char *root = f->c->checks->root;
    size_t plain = strcspn(path, "*?[\\{"); /* what follows can't be resolved */
    if (!root)
        return NULL;
    if (path[plain] || !follow)
        while (plain > 0 && path[plain - 1] != '/')
            plain--;
    if (plain == 0)
        return NULL;
    if (path[plain])
        return stet_path_behind_links(root, path, plain);
    char *real = stet_path_real(root, path);
    if (real && strcmp(real, path) == 0) {
        stet_free(real);
        real = NULL;
    }
    return real;
}

static void take_written(void *ctx, stet_named_kind kind, const char *path, const char *name) {
    finder *f = ctx;
    if (kind != STET_NAMED_WRITTEN)
        return;
    char *real = real_path(f, path, false);
    for (int i = 0; i < 1 + (real != NULL); i++) {
        output o = {stet_strdup(i ? real : path), f->child ? NULL : stet_strdup(name), f->node};
        if (f->child && strchr(path, '{'))
            *stet_vec_add(&f->forms) = o;
        else
            *stet_vec_add(&f->outs) = o;
    }
    stet_free(real);
}

static int by_path(const void *a, const void *b) {
    const output *x = a, *y = b;
    int d = strcmp(x->path, y->path);
    return d ? d : x->node < y->node ? -1 : x->node > y->node;
}

/* The first output that is not before `path`. */
static size_t first_at(const finder *f, const char *path, size_t len) {
    size_t low = 0, high = f->outs.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strncmp(f->outs.at[middle].path, path, len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_edge(finder *f, uint32_t to, size_t out, bool possible, const char *wanted) {
    name_edge *before = f->met[out] > f->first ? &f->edges.at[f->met[out] - 1] : NULL;
    if (before)
        before->possible &= possible;
    if (before || to == f->node || f->referred[to] == f->node + 1 || f->edges.len >= MAX_EDGES)
        return;
    *stet_vec_add(&f->edges) = (name_edge){f->node, to, (uint32_t)out, possible, stet_strdup(wanted)};
    f->met[out] = (uint32_t)f->edges.len;
}

/* Adds edges to outputs that are exactly the first `len` bytes of `path`. */
static void meet_exactly(finder *f, const char *path, size_t len, bool guess, const char *wanted) {
    for (size_t i = first_at(f, path, len);
         i < f->outs.len && strncmp(f->outs.at[i].path, path, len) == 0 && !f->outs.at[i].path[len]; i++)
        add_edge(f, f->outs.at[i].node, i, guess, wanted);
}

static void meet(finder *f, stet_named_kind kind, const char *path) {
    bool pattern = kind == STET_NAMED_PATTERN, guess = kind == STET_NAMED_GUESS;
    for (size_t i = 0; pattern && i < f->outs.len; i++)
        if (stet_glob_match(path, f->outs.at[i].path) || stet_glob_below(path, f->outs.at[i].path))
            add_edge(f, f->outs.at[i].node, i, false, path);
    if (!pattern) {
        size_t len = strlen(path);
        meet_exactly(f, path, len, guess, path);
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
            meet_exactly(f, path, (size_t)(slash - path), guess, path);
        char *inside = stet_asprintf("%s/", path);
        for (size_t i = first_at(f, inside, len + 1);
             i < f->outs.len && strncmp(f->outs.at[i].path, inside, len + 1) == 0; i++)
            add_edge(f, f->outs.at[i].node, i, guess, path);
        stet_free(inside);
    }
    for (size_t i = 0; i < f->forms.len; i++)
        if (stet_path_meets(f->forms.at[i].path, path, pattern))
            add_edge(f, f->forms.at[i].node, f->outs.len + i, true, path);
}

static void take_read(void *ctx, stet_named_kind kind, const char *path, const char *name) {
    finder *f = ctx;
    (void)name;
    if (kind == STET_NAMED_WRITTEN)
        return;
    meet(f, kind, path);
    char *real = real_path(f, path, true);
    if (real)
        meet(f, kind, real);
    stet_free(real);
}

/* Handles a binding: a reference to a node, or a link to a file or to a pattern of files. */
static bool take_reference(void *ctx, stet_value binding, stet_pathref place) {
    finder *f = ctx;
    stet_pattern_ref ref;
    (void)place;
    if (!f->child && pattern_resolve(f->c->p, binding, &ref, NULL) && ref.kind == STET_REF_NODE &&
        ref.index != f->node && f->referred[ref.index] != f->node + 1) {
        f->referred[ref.index] = f->node + 1;
        *stet_vec_add(&f->edges) = (name_edge){f->node, ref.index, NONE, false, NULL};
    }
    return true;
}

static bool take_link(void *ctx, stet_value binding, stet_pathref place) {
    stet_value inner, id = stet_value_null(), space;
    (void)place;
    if (stet_link_is(binding, &inner) && !stet_value_find(inner, "space", 5, &space))
        id = stet_value_get(inner, "id");
    size_t prefix = strlen(STET_FILE_PREFIX), len = 0;
    const char *text = stet_value_type(id) == STET_TYPE_STRING ? stet_value_as_string(&id, &len) : "";
    bool file = strncmp(text, STET_FILE_PREFIX, prefix) == 0, pattern = strncmp(text, STET_GLOB_PREFIX, prefix) == 0;
    stet_buf path = STET_BUF(0);
    if ((file || pattern) && stet_path_unescape(text + prefix, len - prefix, &path))
        take_read(ctx, file ? STET_NAMED_READ : STET_NAMED_PATTERN, stet_buf_cstr(&path), NULL);
    stet_buf_release(&path);
    return true;
}

static void take_node(finder *f, stet_value node, bool read) {
    const stet_pattern_checks *checks = f->c->checks;
    stet_value module = stet_value_get(node, "module"), inputs = stet_value_get(node, "inputs");
    if (read)
        stet_binding_walk(inputs, take_link, f);
    checks->names(checks->ctx, checks->root, module, node, read ? take_read : take_written, f);
}

/* Visits the node and the nodes in the patterns of its children, at any depth. */
static void take_all(finder *f, uint32_t number, bool read) {
    STET_VEC(stet_value) todo = {0};
    f->node = number;
    f->child = false;
    *stet_vec_add(&todo) = f->c->p->nodes[number].value;
    while (todo.len > 0) {
        stet_value node = todo.at[--todo.len], children = stet_value_null();
        take_node(f, node, read);
        if (stet_child_role_of(node) != STET_CHILD_NONE)
            children = stet_value_get(stet_value_get(stet_value_get(node, "module"), "pattern"), "nodes");
        for (size_t i = 0; stet_value_type(children) == STET_TYPE_ARRAY && i < stet_value_count(children); i++)
            if (stet_value_type(stet_value_at(children, i)) == STET_TYPE_OBJECT)
                *stet_vec_add(&todo) = stet_value_at(children, i);
        f->child = true;
    }
    stet_vec_release(&todo);
}

static const output *output_of(const finder *f, const name_edge *e) {
    return e->out < f->outs.len ? &f->outs.at[e->out] : &f->forms.at[e->out - f->outs.len];
}

static void say_circle(finder *f, const size_t *way, size_t len) {
    const stet_pattern *p = f->c->p;
    stet_buf said = STET_BUF(700);
    stet_buf_str(&said, "a circle: ");
    for (size_t i = 0; i < len; i++) {
        const name_edge *e = &f->edges.at[way[i]];
        stet_buf_printf(&said, "%snode \"%s\" ", i ? ", " : "", p->nodes[e->from].id);
        if (e->out == NONE)
            stet_buf_printf(&said, "needs node \"%s\"", p->nodes[e->to].id);
        else if (strcmp(e->wanted, output_of(f, e)->path) == 0)
            stet_buf_printf(&said, "names \"%.100s\" of node \"%s\"", e->wanted, p->nodes[e->to].id);
        else
            stet_buf_printf(&said, "names \"%.100s\", which takes in \"%.100s\" of node \"%s\"", e->wanted,
                            output_of(f, e)->path, p->nodes[e->to].id);
    }
    pattern_problem_of(
        f->c, f->edges.at[way[0]].from,
        "leave the name out of the command or write the file elsewhere; if the command does not read it, "
        "say scripts = false",
        stet_buf_cstr(&said));
    stet_buf_release(&said);
}

/* Finds a circle of edges, with or without those that are `possible`. Returns the length of `way`; 0: there is none. */
static size_t find_circle(const finder *f, bool possible, size_t *way) {
    STET_VEC(stet_circle_edge) edges = {0};
    STET_VEC(size_t) which = {0};
    for (size_t i = 0; i < f->edges.len; i++) {
        const name_edge *e = &f->edges.at[i];
        if (e->possible && (!possible || !e->wanted))
            continue;
        *stet_vec_add(&which) = i;
        *stet_vec_add(&edges) = (stet_circle_edge){e->from, e->to, possible ? e->possible : e->out != NONE};
    }
    size_t len = stet_circle_find(f->c->p->node_count, edges.at, edges.len, way);
    for (size_t i = 0; i < len; i++)
        way[i] = which.at[way[i]];
    stet_vec_release(&edges);
    stet_vec_release(&which);
    return len;
}

static void drop(name_edge *e) {
    stet_free(e->wanted);
    e->wanted = NULL;
}

/* N5. Two equal texts are found where patterns are read. */
static void check_writers(finder *f) {
    for (size_t i = 0; i + 1 < f->outs.len; i++) {
        const output *a = &f->outs.at[i], *b = &f->outs.at[i + 1];
        if (!a->name || !b->name || a->node == b->node || strcmp(a->path, b->path) != 0)
            continue;
        char *said = stet_asprintf("what it produces is the file \"%.200s\", which node \"%s\" produces as well",
                                   b->path, f->c->p->nodes[a->node].id);
        pattern_problem_of(f->c, b->node, "let one of them write another file", said);
        stet_free(said);
    }
}

/* N1, N2 */
static void check_circles(finder *f) {
    size_t *way = stet_alloc((f->c->p->node_count + 1) * sizeof *way), len = find_circle(f, false, way);
    if (len > 0)
        say_circle(f, way, len);
    for (int drops = 0; len == 0 && find_circle(f, true, way) > 0; drops++) {
        drop(&f->edges.at[way[0]]);
        for (size_t i = 0; drops == MAX_DROPS && i < f->edges.len; i++)
            if (f->edges.at[i].possible)
                drop(&f->edges.at[i]);
    }
    stet_free(way);
}

static void keep_edges(finder *f) {
    stet_pattern *p = f->c->p;
    for (size_t i = 0; i < f->edges.len; i++) {
        const name_edge *e = &f->edges.at[i];
        if (!e->wanted)
            continue;
        const char *id = p->nodes[e->from].id, *name = output_of(f, e)->name;
        char *text = name ? stet_asprintf("%s/files/%s", p->nodes[e->to].id, name) : stet_strdup(p->nodes[e->to].id);
        stet_value ref = stet_value_object(), list;
        stet_value_put(&ref, "$", stet_value_string(text));
        stet_free(text);
        if (stet_value_type(p->after) == STET_TYPE_NULL)
            p->after = stet_value_object();
        if (stet_value_find(p->after, id, strlen(id), &list)) {
            list = stet_value_retain(list);
            stet_value_remove(&p->after, id, strlen(id));
        } else {
            list = stet_value_array();
        }
        stet_value_push(&list, ref);
        stet_value_put(&p->after, id, list);
    }
}

static void release_outputs(output *at, size_t len) {
    for (size_t i = 0; i < len; i++) {
        stet_free(at[i].path);
        stet_free(at[i].name);
    }
    stet_free(at);
}

void pattern_check_names(pattern_checker *c) {
    finder f = {.c = c};
    stet_pattern *p = c->p;
    if (!c->checks || !c->checks->names)
        return;
    for (size_t i = 0; i < p->node_count; i++)
        take_all(&f, (uint32_t)i, false);
    if (f.outs.len + f.forms.len > 0) {
        if (f.outs.len)
            qsort(f.outs.at, f.outs.len, sizeof *f.outs.at, by_path);
        check_writers(&f);
        f.referred = stet_alloc_zero((p->node_count + 1) * sizeof *f.referred);
        f.met = stet_alloc_zero((f.outs.len + f.forms.len) * sizeof *f.met);
        for (size_t i = 0; i < p->node_count; i++) {
            f.node = (uint32_t)i;
            f.child = false;
            f.first = (uint32_t)f.edges.len;
            stet_binding_walk(p->nodes[i].inputs, take_reference, &f);
            take_all(&f, (uint32_t)i, true);
        }
        check_circles(&f);
        keep_edges(&f);
        stet_free(f.referred);
        stet_free(f.met);
    }
    for (size_t i = 0; i < f.edges.len; i++)
        drop(&f.edges.at[i]);
    stet_vec_release(&f.edges);
    release_outputs(f.outs.at, f.outs.len);
    release_outputs(f.forms.at, f.forms.len);
}
