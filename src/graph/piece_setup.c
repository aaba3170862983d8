/* piece_setup.c - writes a piece: program, schemas, result, argument, cells, rows of its graph; and tears it down. */

#include "graph/piece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "graph/argument.h"
#include "graph/child.h"
#include "graph/stream.h"

#define NODES_PER_PART 1000 /* nodes of a stored program in one document */

static stet_status put_new(stet_space *s, const char *branch, const char *id, stet_value value, stet_error *err) {
    int64_t number;
    stet_doc_state state;
    stet_status status = stet_space_branch(s, branch, &number, err);
    if (status == STET_OK)
        status = stet_space_load(s, number, &(stet_docname){id, NULL}, -1, &state, err);
    if (status != STET_OK) {
        stet_value_release(value);
        return status;
    }
    bool there = state.exists;
    stet_value_release(state.value);
    if (there) {
        stet_value_release(value);
        return STET_OK;
    }
    stet_tx *tx;
    status = stet_tx_begin(s, branch, &tx, err);
    if (status != STET_OK) {
        stet_value_release(value);
        return status;
    }
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", value);
    status = stet_tx_put(tx, &(stet_docname){id, NULL}, envelope, err);
    if (status != STET_OK) {
        stet_tx_abort(tx);
        return status;
    }
    return stet_tx_commit(tx, NULL, err);
}

stet_status stet_piece_keep_program(stet_space *s, const char *branch, const stet_pattern *p, stet_error *err) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(p->hash, hex);
    stet_value nodes = stet_value_get(p->root, "nodes");
    size_t n = stet_value_count(nodes), parts = (n + NODES_PER_PART - 1) / NODES_PER_PART;
    stet_status status = STET_OK;
    /* A program of many nodes is stored in parts, the head last: if the head exists, all of it does. */
    for (size_t part = 0; parts > 1 && part < parts && status == STET_OK; part++) {
        stet_value slice = stet_value_array();
        for (size_t i = part * NODES_PER_PART; i < n && i < (part + 1) * NODES_PER_PART; i++)
            stet_value_push(&slice, stet_value_retain(stet_value_at(nodes, i)));
        char *id = stet_asprintf("program:%s:%zu", hex, part);
        status = put_new(s, branch, id, slice, err);
        stet_free(id);
    }
    if (status == STET_OK) {
        stet_value root = stet_value_retain(p->root);
        if (parts > 1)
            stet_value_put(&root, "nodes", stet_value_stringf("%zu parts", parts));
        char *id = stet_asprintf("program:%s", hex);
        status = put_new(s, branch, id, root, err);
        stet_free(id);
    }
    return status;
}

stet_status stet_piece_keep_schemas(stet_space *s, const char *branch, const stet_process *g, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(g->schemas) && status == STET_OK; i++) {
        char *id = stet_asprintf("schema:%s", stet_value_key_at(g->schemas, i, NULL));
        status = put_new(s, branch, id, stet_value_retain(stet_value_at(g->schemas, i)), err);
        stet_free(id);
    }
    return status;
}

static stet_status put_value(stet_tx *tx, const stet_docname *name, stet_value value, stet_error *err) {
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", value);
    return stet_tx_put(tx, name, envelope, err);
}

/* The number of parts of the graph in one member of the group. If all were in one commit, all would have to be read for
 * any of them. */
#define PARTS_PER_MEMBER 8
/* The rows of a new piece mean nothing before its result document exists: they are stored as they come, and not held
 * back until all are there. */
#define MEMBERS_AT_ONCE 250

typedef struct row_writer {
    const stet_piece_setup *s;
    stet_tx *tx;
    size_t parts;
} row_writer;

static stet_status store_members(row_writer *w, stet_error *err) {
    stet_group *g = w->s->group;
    size_t n = stet_group_len(g);
    stet_status status = stet_group_flush(g, err);
    for (size_t i = 0; status == STET_OK && i < n; i++) {
        stet_member m;
        stet_group_at(g, i, &m);
        if (m.outcome == STET_MEMBER_DROPPED)
            status = stet_fail(err, STET_CONFLICT, "piece \"%s\": %s", w->s->process->piece, m.error->message);
    }
    return status;
}

static stet_status end_member(row_writer *w, stet_error *err) {
    if (!w->tx)
        return STET_OK;
    stet_status status = stet_group_add(w->s->group, w->tx, NULL, NULL, err);
    if (status != STET_OK)
        stet_tx_abort(w->tx);
    w->tx = NULL;
    w->parts = 0;
    if (status == STET_OK && !w->s->before && stet_group_len(w->s->group) >= MEMBERS_AT_ONCE)
        status = store_members(w, err);
    return status;
}

static stet_status write_part(row_writer *w, const char *id, stet_value rows, stet_error *err) {
    stet_status status = STET_OK;
    stet_docname part = stet_process_name(w->s->process, id);
    if (!w->tx) {
        stet_value seen;
        stet_docname result = stet_process_name(w->s->process, NULL);
        status = stet_tx_begin_in(w->s->group, &w->tx, err);
        if (status != STET_OK) {
            w->tx = NULL;
            stet_value_release(rows);
            return status;
        }
        if (stet_tx_read(w->tx, NULL, &result, STET_PATH_ROOT, STET_SHALLOW, &seen, NULL) != STET_OK)
            seen = stet_value_null(); /* its absence is a read too */
    }
    if (stet_value_type(rows) == STET_TYPE_OBJECT)
        status = put_value(w->tx, &part, rows, err);
    else
        status = stet_tx_drop(w->tx, &part, err);
    if (status == STET_OK && ++w->parts >= PARTS_PER_MEMBER)
        status = end_member(w, err);
    return status;
}

static uint32_t chunks_of(const stet_piece_setup *s) {
    uint32_t chunks = stet_process_chunks(s->process->node_count);
    if (s->before && s->before->chunks > chunks && s->before->chunks <= chunks * 4)
        chunks = s->before->chunks; /* no redistribution for a few nodes less */
    return chunks;
}

/* Rows are stored in the part that their id hashes to. Only parts with a change are written. */
stet_status stet_piece_write_rows(const stet_piece_setup *s, stet_error *err) {
    uint32_t chunks = chunks_of(s);
    const stet_process *g = s->process;
    bool all = !s->before || !s->before_process || s->before->chunks != chunks;
    bool *touched = stet_alloc_zero(chunks * sizeof *touched);
    stet_value *rows = stet_alloc_zero(chunks * sizeof *rows);
    stet_status status = STET_OK;
    for (size_t i = 0; !all && i < s->diff->len; i++)
        touched[stet_process_chunk(s->diff->at[i].id, chunks)] = true;
    for (size_t i = 0; i < g->node_count; i++) {
        uint32_t c = stet_process_chunk(g->nodes[i].id, chunks);
        if (!all && !touched[c])
            continue;
        if (stet_value_type(rows[c]) == STET_TYPE_NULL)
            rows[c] = stet_value_object();
        stet_value_put(&rows[c], g->nodes[i].id, stet_value_retain(g->nodes[i].row));
    }
    uint32_t old = s->before ? s->before->chunks : 0;
    row_writer w = {.s = s};
    for (uint32_t c = 0; c < chunks || c < old; c++) {
        if (c < chunks && !all && !touched[c])
            continue;
        char number[16];
        snprintf(number, sizeof number, "%u", c);
        char *id = stet_piece_part(g->piece, "process", number);
        if (status == STET_OK) {
            stet_value part = c < chunks ? rows[c] : stet_value_null();
            if (c < chunks)
                rows[c] = stet_value_null();
            status = write_part(&w, id, part, err);
        }
        stet_free(id);
    }
    if (status == STET_OK)
        status = end_member(&w, err);
    else
        stet_tx_abort(w.tx);
    for (uint32_t c = 0; c < chunks; c++)
        stet_value_release(rows[c]);
    free(rows);
    free(touched);
    return status;
}

/* A removed node takes its own document with it; a cell that it shared, or that people edit, stays. */
static stet_status tear_down(stet_tx *tx, const stet_piece_setup *s, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; s->before_process && i < s->diff->len && status == STET_OK; i++) {
        const stet_process_change *c = &s->diff->at[i];
        const stet_process_node *was = stet_process_find(s->before_process, c->id);
        const stet_process_node *now = stet_process_find(s->process, c->id);
        if (!was)
            continue;
        stet_value link = stet_value_get(was->row, stet_stream_is_handler(was->row) ? "stream" : "output");
        if (now &&
            stet_value_equal(link, stet_value_get(now->row, stet_stream_is_handler(now->row) ? "stream" : "output")))
            continue;
        stet_link l;
        stet_path path = STET_PATH_INIT;
        char *own = stet_piece_part(s->process->piece, "node", c->id);
        stet_docname name = stet_process_name(s->process, own);
        if (status == STET_OK && stet_link_read(link, &l, &path) && stet_link_leads_to(&l, &name))
            status = stet_tx_drop(tx, &name, err);
        stet_free(own);
        stet_path_release(&path);
    }
    return status;
}

static void count_effects(const stet_process *g, int64_t *effects, int64_t *restart, int64_t *verifiers) {
    *effects = *restart = *verifiers = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        stet_value kind = stet_value_get(g->nodes[i].row, "kind"), again = stet_value_get(g->nodes[i].row, "onRestart");
        if (stet_value_type(kind) == STET_TYPE_STRING && strcmp(stet_value_as_string(&kind, NULL), "effect") == 0)
            ++*effects;
        if (stet_value_type(again) == STET_TYPE_STRING && strcmp(stet_value_as_string(&again, NULL), "run") == 0)
            ++*restart;
        *effects += stet_value_as_int(stet_value_get(g->nodes[i].row, "effects"));
        *verifiers += stet_value_as_bool(stet_value_get(g->nodes[i].row, "verifier")) +
                      stet_value_as_int(stet_value_get(g->nodes[i].row, "verifiers"));
        *restart += stet_value_as_int(stet_value_get(g->nodes[i].row, "restarts"));
    }
}

typedef struct linked {
    const stet_process *g;
    stet_value names;
    stet_map seen;
    bool open; /* some lead elsewhere: to files, or to documents that people keep */
} linked;

static bool note_linked(void *ctx, stet_value binding, stet_pathref place) {
    linked *l = ctx;
    stet_link link;
    stet_path path = STET_PATH_INIT;
    (void)place;
    bool is_link = stet_link_read(binding, &link, &path);
    bool of_piece = is_link && !link.space && strncmp(link.id, "piece:", 6) == 0;
    l->open = l->open || (is_link && !of_piece);
    if (of_piece) {
        char *piece = stet_piece_around(&(stet_docname){link.id, link.scope});
        if (piece && strcmp(piece, l->g->piece) != 0 && !stet_map_get(&l->seen, piece, strlen(piece))) {
            stet_map_put(&l->seen, piece, strlen(piece), (stet_slot){.n = 1});
            stet_value_push(&l->names, stet_value_string(piece));
        }
        stet_free(piece);
    }
    stet_path_release(&path);
    return true;
}

/* Notes code in a file, environment variables, and links to nodes that do not exist yet. */
static void note_outside(void *ctx, const char *top, stet_value node) {
    linked *l = ctx;
    stet_value module = stet_value_get(node, "module");
    (void)top;
    l->open = l->open || stet_value_find(module, "env", 3, NULL) ||
              stet_value_type(stet_value_get(module, "implementation")) == STET_TYPE_OBJECT;
    stet_binding_walk(stet_value_get(node, "inputs"), note_linked, l);
}

stet_value stet_process_linked(const stet_process *g, bool *closed) {
    linked l = {.g = g, .names = stet_value_array()};
    stet_process_walk(g, note_outside, &l);
    stet_map_release(&l.seen);
    *closed = !l.open;
    return l.names;
}

/* Stores the hashes of the schemas that the argument and the named cells must match; the schemas are kept with those of
 * the rows. */
static void put_cell_schemas(const stet_pattern *p, stet_value *header) {
    char hex[STET_HASH_HEX];
    stet_value cells = stet_value_object();
    if (stet_value_type(p->argument_schema) != STET_TYPE_NULL) {
        stet_hash_hex(stet_hash_value(p->argument_schema), hex);
        stet_value_put(header, "argumentSchema", stet_value_string(hex));
    }
    for (size_t i = 0; i < p->cell_count; i++)
        if (stet_value_type(p->cells[i].schema) != STET_TYPE_NULL) {
            stet_hash_hex(stet_hash_value(p->cells[i].schema), hex);
            stet_value_put(&cells, p->cells[i].name, stet_value_string(hex));
        }
    if (stet_value_count(cells) > 0)
        stet_value_put(header, "cellSchemas", stet_value_retain(cells));
    stet_value_release(cells);
}

static void put_cell_uses(const stet_piece_setup *s, stet_value *header) {
    stet_value outputs = s->pattern->cell_count > 0 ? stet_piece_cell_outputs(s->process) : stet_value_null();
    if (stet_value_count(outputs) > 0)
        stet_value_put(header, "cellOutputs", stet_value_retain(outputs));
    stet_value_release(outputs);
    stet_value inputs = stet_piece_cell_inputs(s->process);
    if (stet_value_count(inputs) > 0)
        stet_value_put(header, "cellInputs", stet_value_retain(inputs));
    stet_value_release(inputs);
}

static stet_value process_header(const stet_piece_setup *s, uint32_t chunks) {
    char hex[STET_HASH_HEX];
    stet_value h = stet_value_object();
    int64_t effects, restart, verifiers;
    count_effects(s->process, &effects, &restart, &verifiers);
    stet_value_put(&h, "version", stet_value_int(1));
    stet_hash_hex(s->process->program, hex);
    stet_value_put(&h, "program", stet_value_stringf("cid:%s", hex));
    stet_value_put(&h, "generation", stet_value_int(s->process->generation));
    stet_value_put(&h, "nodes", stet_value_int((int64_t)s->process->node_count));
    stet_value_put(&h, "chunks", stet_value_int(chunks));
    stet_value_put(&h, "effects", stet_value_int(effects));
    stet_value_put(&h, "onRestart", stet_value_int(restart));
    if (verifiers > 0)
        stet_value_put(&h, "verifiers", stet_value_int(verifiers));
    int64_t coordinators = 0;
    for (size_t i = 0; i < s->process->node_count; i++)
        coordinators += stet_child_role_of(s->process->nodes[i].row) != STET_CHILD_NONE;
    if (coordinators > 0)
        stet_value_put(&h, "coordinators", stet_value_int(coordinators));
    size_t handlers;
    stet_value streams = stet_streams_of(s->process, &handlers);
    if (handlers > 0) {
        stet_value_put(&h, "handlers", stet_value_int((int64_t)handlers));
        stet_value_put(&h, "streams", stet_value_retain(streams));
    }
    stet_value_release(streams);
    streams = stet_streams_of_children(s->process);
    if (stet_value_count(streams) > 0)
        stet_value_put(&h, "childStreams", stet_value_retain(streams));
    stet_value_release(streams);
    put_cell_schemas(s->pattern, &h);
    put_cell_uses(s, &h);
    bool closed;
    stet_value_put(&h, "pieces", stet_process_linked(s->process, &closed));
    if (closed)
        stet_value_put(&h, "closed", stet_value_bool(true));
    stet_hash_hex(s->runtime, hex);
    stet_value_put(&h, "runtime", stet_value_string(hex));
    stet_value_put(&h, STET_PROCESS_MARKED, stet_value_bool(true));
    stet_value_put(&h, STET_PROCESS_ENVELOPES, stet_value_bool(true));
    /* All schemas that were ever used: stored values may have been made under an older one. */
    stet_value history =
        s->before ? stet_value_retain(stet_value_get(stet_value_get(s->before->envelope, "process"), "schemas"))
                  : stet_value_null();
    if (stet_value_type(history) != STET_TYPE_ARRAY) {
        stet_value_release(history);
        history = stet_value_array();
    }
    stet_map seen = {0};
    for (size_t i = 0; i < stet_value_count(history); i++) {
        stet_value v = stet_value_at(history, i);
        size_t len;
        const char *text = stet_value_as_string(&v, &len);
        if (text)
            stet_map_put(&seen, text, len, (stet_slot){.n = 1});
    }
    for (size_t i = 0; i < stet_value_count(s->process->schemas); i++) {
        size_t len;
        const char *key = stet_value_key_at(s->process->schemas, i, &len);
        if (!stet_map_get(&seen, key, len))
            stet_value_push(&history, stet_value_string_n(key, len));
    }
    stet_map_release(&seen);
    if (stet_value_count(history) > 0)
        stet_value_put(&h, "schemas", history);
    else
        stet_value_release(history);
    return h;
}

stet_status stet_piece_write(stet_tx *tx, const stet_piece_setup *s, stet_error *err) {
    uint32_t chunks = chunks_of(s);
    stet_status status = stet_piece_follow(tx, s, err);
    if (status == STET_OK)
        status = tear_down(tx, s, err);
    if (status == STET_OK)
        status = stet_streams_write(tx, s->process, err);
    if (status != STET_OK)
        return status;
    stet_value envelope = s->before ? stet_value_retain(s->before->envelope) : stet_value_object(),
               pattern = stet_value_object();
    char hex[STET_HASH_HEX];
    stet_hash_hex(s->pattern->hash, hex);
    stet_value_put(&pattern, "program", stet_value_stringf("cid:%s", hex));
    stet_value_put(&pattern, "name", stet_value_string(s->pattern->name));
    if (s->pattern->version[0])
        stet_value_put(&pattern, "version", stet_value_string(s->pattern->version));
    if (s->pattern->title[0])
        stet_value_put(&pattern, "title", stet_value_string(s->pattern->title));
    stet_value_put(&envelope, "value", stet_value_retain(s->process->binding));
    stet_value_put(&envelope, "pattern", pattern);
    stet_value_put(&envelope, "process", process_header(s, chunks));
    if (stet_value_type(s->source) != STET_TYPE_NULL)
        stet_value_put(&envelope, "source", stet_value_retain(s->source));
    stet_docname result = stet_process_name(s->process, NULL);
    return stet_tx_put(tx, &result, envelope, err);
}

static stet_status set_flag(stet_tx *tx, const stet_piece *p, const char *flag, bool value, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_docname result = stet_piece_name(p, NULL);
    stet_path_push(&path, "process");
    stet_path_push(&path, flag);
    stet_status status = stet_tx_write(tx, &result, stet_path_ref(&path), stet_value_bool(value), err);
    stet_path_release(&path);
    return status;
}

stet_status stet_piece_set_stopped(stet_tx *tx, const stet_piece *p, bool stopped, stet_error *err) {
    return set_flag(tx, p, "stopped", stopped, err);
}

stet_status stet_piece_set_rebuild(stet_tx *tx, const stet_piece *p, stet_error *err) {
    return set_flag(tx, p, "rebuild", true, err);
}

stet_status stet_piece_drop(stet_tx *tx, stet_space *s, int64_t branch, const char *name, size_t max, bool *more,
                            stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    char *doc = stet_piece_doc(name), *prefix = stet_asprintf("%s:", doc);
    stet_docname result = stet_piece_at(name, doc);
    stet_status status = stet_tx_drop(tx, &result, err);
    stet_doc_filter filter = {.prefix = prefix, .scope = result.scope, .limit = max};
    stet_doc_info *at;
    size_t count = 0;
    *more = false;
    if (status == STET_OK)
        status = stet_space_list(s, branch, &filter, &arena, &at, &count, more, err);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        status = stet_tx_drop(tx, &at[i].name, err);
    stet_free(doc);
    stet_free(prefix);
    stet_arena_release(&arena);
    return status;
}
