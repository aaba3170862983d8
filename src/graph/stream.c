#include "graph/stream.h"

#include <stdlib.h>
#include <string.h>

bool stet_stream_is_handler(stet_value row) {
    return stet_find(row, "stream", 6, NULL);
}

/* "NAME" or "NAME/KEY" of a link to a part of the piece. False: it leads elsewhere. */
static bool name_of(const char *piece, stet_value link, stet_buf *out) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    char *own = stet_piece_doc(piece);
    size_t n = strlen(own);
    bool found = stet_link_read(link, &l, &path) && !l.space && strncmp(l.id, own, n) == 0 &&
                 (strncmp(l.id + n, ":node:", 6) == 0 || strncmp(l.id + n, ":cell:", 6) == 0);
    if (found) {
        stet_buf_str(out, l.id + n + 6);
        stet_path_print(stet_path_ref(&path), out);
    }
    stet_free(own);
    stet_path_release(&path);
    return found && !out->overflow;
}

stet_value stet_streams_of(const stet_process *g, size_t *handlers) {
    stet_value streams = stet_object();
    *handlers = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        stet_value link, list;
        if (!stet_find(g->nodes[i].row, "stream", 6, &link))
            continue;
        stet_buf name = STET_BUF(4096);
        ++*handlers;
        if (name_of(g->piece, link, &name)) {
            list = stet_find(streams, name.data, name.len, &list) ? stet_retain(list) : stet_array();
            size_t at = 0; /* in the order of their names, however the pattern has them */
            for (; at < stet_count(list); at++) {
                stet_value other = stet_at(list, at);
                if (strcmp(stet_as_string(&other, NULL), g->nodes[i].id) > 0)
                    break;
            }
            stet_insert_at(&list, at, stet_string(g->nodes[i].id));
            stet_put_n(&streams, name.data, name.len, list);
        }
        stet_buf_release(&name);
    }
    return streams;
}

stet_status stet_streams_write(stet_tx *tx, const stet_process *g, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++) {
        stet_value link;
        if (!stet_find(g->nodes[i].row, "stream", 6, &link))
            continue;
        stet_link l;
        stet_path path = STET_PATH_INIT;
        char *own = stet_piece_part(g->piece, "node", g->nodes[i].id);
        if (stet_link_read(link, &l, &path) && !l.space && strcmp(l.id, own) == 0) {
            stet_value envelope = stet_object(), value = stet_object();
            stet_put(&value, "$stream", stet_bool(true));
            stet_put(&envelope, "value", value);
            status = stet_tx_put(tx, &(stet_docname){own, NULL}, envelope, err);
        }
        stet_free(own);
        stet_path_release(&path);
    }
    return status;
}

static bool lists(stet_value nodes, const char *name) {
    for (size_t i = 0; i < stet_count(nodes); i++) {
        stet_value id = stet_at(nodes, i);
        if (stet_typeof(id) == STET_STRING && strcmp(stet_as_string(&id, NULL), name) == 0)
            return true;
    }
    return false;
}

stet_status stet_stream_find(const stet_piece *p, const char *name, const char **stream, stet_value *out,
                             stet_error *err) {
    stet_value streams = stet_get(stet_get(p->envelope, "process"), "streams");
    stet_value shown = stet_get(stet_get(p->envelope, "value"), name);
    stet_buf by_result = STET_BUF(4096);
    bool has_result = stet_link_is(shown, NULL) && name_of(p->name, shown, &by_result);
    size_t found = stet_count(streams);
    for (int how = 0; how < 3 && found == stet_count(streams); how++)
        for (size_t i = 0; i < stet_count(streams) && found == stet_count(streams); i++) {
            const char *at = stet_key_at(streams, i, NULL);
            if ((how == 0 && strcmp(at, name) == 0) || (how == 1 && lists(stet_at(streams, i), name)) ||
                (how == 2 && has_result && strcmp(at, stet_buf_cstr(&by_result)) == 0))
                found = i;
        }
    stet_buf_release(&by_result);
    if (found < stet_count(streams)) {
        *stream = stet_key_at(streams, found, NULL);
        *out = stet_at(streams, found);
        return STET_OK;
    }
    stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no stream \"%.200s\"", p->name, name);
    if (stet_count(streams) == 0) {
        stet_hint(err, "it has no streams at all: add a node with \"stream\" and a handler to its pattern");
        return STET_NOT_FOUND;
    }
    stet_buf names = STET_BUF(400);
    for (size_t i = 0; i < stet_count(streams) && names.len < 300; i++)
        stet_buf_printf(&names, "%s%.100s", i ? ", " : "", stet_key_at(streams, i, NULL));
    stet_hint(err, "its streams are: %s", stet_buf_cstr(&names));
    stet_buf_release(&names);
    return STET_NOT_FOUND;
}
