/* stream.c - finds the streams of a piece and its children, and their handlers. */

#include "graph/stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

bool stet_stream_is_handler(stet_value row) {
    return stet_value_find(row, "stream", 6, NULL);
}

bool stet_stream_name(const char *piece, const stet_docname *name, stet_pathref path, stet_buf *out) {
    char *own = stet_piece_doc(piece);
    const char *id = name->id;
    size_t n = strlen(own);
    bool found = strcmp(name->scope ? name->scope : "", stet_piece_scope(piece)) == 0 && strncmp(id, own, n) == 0 &&
                 (strncmp(id + n, ":node:", 6) == 0 || strncmp(id + n, ":cell:", 6) == 0);
    if (found) {
        stet_buf_str(out, id + n + 6);
        stet_path_print(path, out);
    }
    stet_free(own);
    return found && !out->overflow;
}

/* "NAME" or "NAME/KEY" for a link to a part of the piece. False: it leads elsewhere. */
static bool name_of(const char *piece, stet_value link, stet_buf *out) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    bool found = stet_link_read(link, &l, &path) && !l.space &&
                 stet_stream_name(piece, &(stet_docname){l.id, l.scope}, stet_path_ref(&path), out);
    stet_path_release(&path);
    return found;
}

/* Adds a handler to the list of its stream, sorted by name whatever their order in the pattern. */
static void add_handler(stet_value *streams, const char *piece, const char *id, stet_value link) {
    stet_buf name = STET_BUF(4096);
    stet_value list;
    if (name_of(piece, link, &name)) {
        list = stet_value_find(*streams, name.data, name.len, &list) ? stet_value_retain(list) : stet_value_array();
        size_t at = 0;
        for (; at < stet_value_count(list); at++) {
            stet_value other = stet_value_at(list, at);
            if (strcmp(stet_value_as_string(&other, NULL), id) > 0)
                break;
        }
        stet_value_insert_at(&list, at, stet_value_string(id));
        stet_value_put_n(streams, name.data, name.len, list);
    }
    stet_buf_release(&name);
}

stet_value stet_streams_of(const stet_process *g, size_t *handlers) {
    stet_value streams = stet_value_object(), link;
    *handlers = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        if (!stet_value_find(g->nodes[i].row, "stream", 6, &link))
            continue;
        ++*handlers;
        add_handler(&streams, g->piece, g->nodes[i].id, link);
    }
    return streams;
}

typedef struct level {
    char *prefix; /* "rows[KEY]." */
    stet_value pattern;
} level;

typedef STET_VEC(level) level_list;

static void each_pattern(stet_value node, const char *prefix, const char *id, level_list *stack) {
    stet_value pattern = stet_value_get(stet_value_get(node, "module"), "pattern");
    if (stet_child_role_of(node) == STET_CHILD_NONE || stet_value_type(pattern) != STET_TYPE_OBJECT)
        return;
    size_t len = strlen(id);
    if (len > 2 && strcmp(id + len - 2, "[]") == 0)
        len -= 2;
    *stet_vec_add(stack) = (level){stet_asprintf("%s%.*s[KEY].", prefix, (int)len, id), pattern};
}

stet_value stet_streams_of_children(const stet_process *g) {
    level_list stack = {0};
    stet_value out = stet_value_array();
    for (size_t i = 0; i < g->node_count; i++)
        each_pattern(g->nodes[i].row, "", g->nodes[i].id, &stack);
    while (stack.len > 0) {
        level l = stack.at[--stack.len];
        stet_value nodes = stet_value_get(l.pattern, "nodes");
        for (size_t i = 0; i < stet_value_count(nodes); i++) {
            stet_value node = stet_value_at(nodes, i), id = stet_value_get(node, "id"),
                       name = stet_value_get(stet_value_get(node, "stream"), "$");
            if (stet_value_type(id) != STET_TYPE_STRING)
                continue;
            if (stet_value_type(name) == STET_TYPE_STRING && stet_value_count(out) < 100)
                stet_value_push(&out, stet_value_stringf("%s%s", l.prefix, stet_value_as_string(&name, NULL)));
            each_pattern(node, l.prefix, stet_value_as_string(&id, NULL), &stack);
        }
        stet_free(l.prefix);
    }
    stet_vec_release(&stack);
    return out;
}

static stet_status write_own(stet_tx *tx, const char *piece, const char *node, stet_value row, stet_error *err) {
    stet_value link;
    stet_status status = STET_OK;
    if (!stet_value_find(row, "stream", 6, &link))
        return STET_OK;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    char *own = stet_piece_part(piece, "node", node);
    stet_docname name = stet_piece_at(piece, own);
    if (stet_link_read(link, &l, &path) && stet_link_leads_to(&l, &name)) {
        stet_value envelope = stet_value_object(), value = stet_value_object();
        stet_value_put(&value, "$stream", stet_value_bool(true));
        stet_value_put(&envelope, "value", value);
        status = stet_tx_put(tx, &name, envelope, err);
    }
    stet_free(own);
    stet_path_release(&path);
    return status;
}

stet_status stet_streams_write(stet_tx *tx, const stet_process *g, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++)
        status = write_own(tx, g->piece, g->nodes[i].id, g->nodes[i].row, err);
    return status;
}

void stet_stream_release(stet_stream *s) {
    stet_free(s->name);
    stet_free(s->child);
    stet_free(s->coordinator);
    stet_value_release(s->handlers);
    *s = (stet_stream){.handlers = stet_value_null()};
}

static bool lists(stet_value nodes, const char *name) {
    for (size_t i = 0; i < stet_value_count(nodes); i++) {
        stet_value id = stet_value_at(nodes, i);
        if (stet_value_type(id) == STET_TYPE_STRING && strcmp(stet_value_as_string(&id, NULL), name) == 0)
            return true;
    }
    return false;
}

static void hint_names(stet_value streams, stet_value of_children, stet_error *err) {
    stet_buf names = STET_BUF(500);
    for (size_t i = 0; i < stet_value_count(streams) && names.len < 300; i++)
        stet_buf_printf(&names, "%s%.100s", names.len ? ", " : "", stet_value_key_at(streams, i, NULL));
    for (size_t i = 0; i < stet_value_count(of_children) && names.len < 300; i++) {
        stet_value name = stet_value_at(of_children, i);
        stet_buf_printf(&names, "%s%.100s", names.len ? ", " : "", stet_value_as_string(&name, NULL));
    }
    if (names.len > 0)
        stet_hint(err, "its streams are: %s", stet_buf_cstr(&names));
    else
        stet_hint(err, "it has no streams at all: add a node with \"stream\" and a handler to its pattern");
    stet_buf_release(&names);
}

/* Chooses one of {STREAM: [HANDLER, ...]}: by its name, or by that of a handler. */
static bool choose(stet_value streams, const char *name, stet_value *nodes, stet_stream *out) {
    for (int how = 0; how < 2; how++)
        for (size_t i = 0; i < stet_value_count(streams); i++) {
            const char *at = stet_value_key_at(streams, i, NULL);
            if (how == 0 ? strcmp(at, name) == 0 : lists(stet_value_at(streams, i), name)) {
                out->name = stet_strdup(at);
                *nodes = stet_value_at(streams, i);
                return true;
            }
        }
    return false;
}

static stet_status find_own(const stet_child_docs *docs, const stet_piece *p, const char *name,
                            const stet_process_modules *modules, stet_templates *all, stet_stream *out,
                            stet_error *err) {
    stet_value process = stet_value_get(p->envelope, "process"), streams = stet_value_get(process, "streams"), nodes;
    if (!choose(streams, name, &nodes, out)) {
        stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no stream \"%.200s\"", p->name, name);
        hint_names(streams, stet_value_get(process, "childStreams"), err);
        return STET_NOT_FOUND;
    }
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(nodes) && status == STET_OK; i++) {
        stet_value node = stet_value_at(nodes, i), row;
        const char *id = stet_value_type(node) == STET_TYPE_STRING ? stet_value_as_string(&node, NULL) : "";
        status = stet_child_row(docs, p, id, modules, all, &row, err);
        if (status == STET_OK)
            stet_value_put(&out->handlers, id, row);
    }
    return status;
}

/* The row of the coordinator whose children are named NAME[KEY]. */
static stet_status coordinator_of(const stet_child_docs *docs, const stet_piece *p, const stet_process_modules *modules,
                                  stet_templates *all, stet_stream *out, stet_value *row, stet_error *err) {
    size_t len = strlen(out->child);
    out->coordinator = stet_child_coordinator(out->child, len, false);
    stet_status status = stet_child_row(docs, p, out->coordinator, modules, all, row, err);
    if (status == STET_OK && stet_child_role_of(*row) == STET_CHILD_NONE) { /* maybe a filter */
        stet_value first = *row;
        char *hidden = stet_child_coordinator(out->child, len, true);
        status = stet_child_row(docs, p, hidden, modules, all, row, err);
        stet_value_release(first);
        stet_free(out->coordinator);
        out->coordinator = hidden;
    }
    return status;
}

static stet_status find_of_child(const stet_child_docs *docs, const stet_piece *p, const char *name, size_t child,
                                 const stet_process_modules *modules, stet_templates *all, stet_stream *out,
                                 stet_error *err) {
    stet_value row = stet_value_null(), rows = stet_value_null(), link, nodes, streams = stet_value_object();
    stet_template *t;
    out->child = stet_strndup(name, child);
    stet_status status = coordinator_of(docs, p, modules, all, out, &row, err);
    if (status == STET_OK)
        status = stet_child_template(docs, p->name, out->coordinator, row, modules, all, &t, err);
    if (status == STET_OK)
        status = stet_child_rows(t, p->name, out->coordinator, row, out->child, NULL, modules, &rows, err);
    for (size_t i = 0; status == STET_OK && i < stet_value_count(rows); i++)
        if (stet_value_find(stet_value_at(rows, i), "stream", 6, &link))
            add_handler(&streams, p->name, stet_value_key_at(rows, i, NULL), link);
    if (status == STET_OK && !choose(streams, name, &nodes, out)) {
        stet_fail(err, STET_NOT_FOUND, "child \"%s\" of piece \"%s\" has no stream \"%.200s\"", out->child, p->name,
                  name + child + 1);
        hint_names(streams, stet_value_null(), err);
        status = STET_NOT_FOUND;
    } else if (status == STET_OK) {
        for (size_t i = 0; i < stet_value_count(nodes); i++) {
            stet_value id = stet_value_at(nodes, i);
            const char *text = stet_value_as_string(&id, NULL);
            stet_value_put(&out->handlers, text, stet_value_retain(stet_value_get(rows, text)));
        }
    } else if (status == STET_NOT_FOUND && err) {
        hint_names(stet_value_get(stet_value_get(p->envelope, "process"), "streams"),
                   stet_value_get(stet_value_get(p->envelope, "process"), "childStreams"), err);
    }
    stet_value_release(row);
    stet_value_release(rows);
    stet_value_release(streams);
    return status;
}

stet_status stet_stream_find(const stet_child_docs *docs, const stet_piece *p, const char *name,
                             const stet_process_modules *modules, stet_templates *all, stet_stream *out,
                             stet_error *err) {
    size_t own = strlen(p->doc), child;
    *out = (stet_stream){.handlers = stet_value_object()};
    if (strncmp(name, p->doc, own) == 0 &&
        (strncmp(name + own, ":node:", 6) == 0 || strncmp(name + own, ":cell:", 6) == 0))
        name += own + 6;
    size_t id = strcspn(name, "/");
    child = stet_child_id_valid(name, id) ? stet_child_instance(name) : 0;
    stet_status status = child > 0 && child < id ? find_of_child(docs, p, name, child, modules, all, out, err)
                                                 : find_own(docs, p, name, modules, all, out, err);
    if (status != STET_OK)
        stet_stream_release(out);
    return status;
}
