#include "graph/piece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "base/vec.h"
#include "graph/child.h"
#include "graph/stream.h"

#define NODES_PER_PART 1000 /* nodes of a stored program in one document */

static bool hex_member(stet_value object, const char *key, const char *prefix, stet_hash *out) {
    stet_value v = stet_get(object, key);
    size_t len, skip = strlen(prefix);
    if (stet_typeof(v) != STET_STRING)
        return false;
    const char *s = stet_as_string(&v, &len);
    return len == skip + 64 && memcmp(s, prefix, skip) == 0 && stet_hash_of_hex(s + skip, 64, out);
}

/* ---- Reading -------------------------------------------------------------------------------------------------------
 */

static stet_status damaged(const char *name, const char *what, stet_error *err) {
    stet_fail(err, STET_CORRUPT, "piece \"%s\": %s", name, what);
    stet_hint(err, "stet run its pattern again to rebuild it, or stet piece delete %s", name);
    return STET_CORRUPT;
}

stet_status stet_piece_load(stet_space *s, int64_t branch, const char *name, int64_t at, stet_piece **out,
                            stet_error *err) {
    if (!stet_piece_name_valid(name)) {
        stet_fail(err, STET_INVALID, "\"%s\" is no name for a piece", name);
        stet_hint(err, "use letters, digits, \"_\", \"-\" and \".\"");
        return STET_INVALID;
    }
    char *doc = stet_piece_doc(name);
    stet_doc_state state;
    stet_status status = stet_space_load(s, branch, &(stet_docname){doc, NULL}, at, &state, err);
    if (status != STET_OK) {
        stet_free(doc);
        return status;
    }
    stet_value process = state.exists ? stet_get(state.value, "process") : stet_null();
    if (stet_typeof(process) != STET_OBJECT) {
        stet_release(state.value);
        stet_free(doc);
        stet_fail(err, STET_NOT_FOUND, "there is no piece \"%s\"", name);
        stet_hint(err, "stet piece list shows those that are there; stet run PATTERN makes one");
        return STET_NOT_FOUND;
    }
    stet_piece *p = stet_alloc_zero(sizeof *p);
    p->name = stet_strdup(name);
    p->doc = doc;
    p->envelope = state.value;
    p->seq = state.seq;
    p->generation = stet_as_int(stet_get(process, "generation"));
    int64_t chunks = stet_as_int(stet_get(process, "chunks")), nodes = stet_as_int(stet_get(process, "nodes"));
    p->stopped = stet_as_bool(stet_get(process, "stopped"));
    p->effect_count = (size_t)stet_as_int(stet_get(process, "effects"));
    p->restart_count = (size_t)stet_as_int(stet_get(process, "onRestart"));
    p->has_children = stet_as_int(stet_get(process, "coordinators")) > 0;
    int64_t handlers = stet_as_int(stet_get(process, "handlers"));
    p->handler_count = handlers > 0 && handlers <= nodes ? (size_t)handlers : 0;
    const char *wrong = NULL;
    if (stet_as_int(stet_get(process, "version")) != 1)
        wrong = "its graph is of a version that is not known here";
    else if (chunks < 1 || chunks > STET_PATTERN_MAX_NODES || (chunks & (chunks - 1)) || nodes < 0 ||
             nodes > STET_PATTERN_MAX_NODES)
        wrong = "its graph is damaged";
    else if (!hex_member(process, "program", "cid:", &p->program) || !hex_member(process, "runtime", "", &p->runtime))
        wrong = "its graph does not say which program it is of";
    p->chunks = (uint32_t)chunks;
    p->node_count = (size_t)nodes;
    if (wrong) {
        status = damaged(name, wrong, err);
        stet_piece_free(p);
        return status;
    }
    *out = p;
    return STET_OK;
}

void stet_piece_free(stet_piece *p) {
    if (!p)
        return;
    stet_release(p->envelope);
    stet_free(p->name);
    stet_free(p->doc);
    free(p);
}

stet_status stet_piece_names(stet_space *s, int64_t branch, const char *after, size_t limit, stet_value *out,
                             bool *more, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_value names = stet_array();
    stet_status status = STET_OK;
    /* Documents of one piece stand together, after its result document: each group is skipped with one look. ';' is the
     * byte after ':'. */
    char *cursor = after ? stet_asprintf("piece:%s", after) : stet_strdup("piece:");
    *more = false;
    while (status == STET_OK) {
        stet_docname last = {cursor, ""};
        stet_doc_filter filter = {.prefix = "piece:", .scope = "", .after = &last, .limit = 64};
        stet_doc_info *at;
        size_t count;
        bool rest, skipped = false;
        stet_arena_clear(&arena);
        status = stet_space_list(s, branch, &filter, &arena, &at, &count, &rest, err);
        for (size_t i = 0; status == STET_OK && i < count && !skipped; i++) {
            const char *name = stet_piece_name_of(at[i].name.id);
            const char *colon = strlen(at[i].name.id) > 6 ? strchr(at[i].name.id + 6, ':') : NULL;
            stet_free(cursor);
            if (!name && colon) {
                cursor = stet_asprintf("%.*s;", (int)(colon - at[i].name.id), at[i].name.id);
                skipped = true;
                continue;
            }
            cursor = stet_strdup(at[i].name.id);
            if (!name)
                continue;
            if (stet_count(names) >= limit) {
                *more = true;
                status = STET_CANCELLED;
            } else {
                stet_push(&names, stet_string(name));
            }
        }
        if (status == STET_OK && !skipped && !rest)
            break;
    }
    stet_free(cursor);
    stet_arena_release(&arena);
    if (status == STET_CANCELLED)
        status = STET_OK;
    if (status == STET_OK)
        *out = names;
    else
        stet_release(names);
    return status;
}

static stet_status load_chunk(stet_space *s, int64_t branch, const stet_piece *p, uint32_t chunk, int64_t at,
                              stet_value *rows, stet_error *err) {
    char number[16];
    snprintf(number, sizeof number, "%u", chunk);
    char *id = stet_piece_part(p->name, "process", number);
    stet_doc_state state;
    stet_status status = stet_space_load(s, branch, &(stet_docname){id, NULL}, at, &state, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    /* An empty part has no document. */
    *rows = state.exists ? stet_retain(stet_get(state.value, "value")) : stet_object();
    stet_release(state.value);
    if (stet_typeof(*rows) != STET_OBJECT) {
        stet_release(*rows);
        return damaged(p->name, "a part of its graph is damaged", err);
    }
    return STET_OK;
}

typedef struct at_seq {
    stet_space *s;
    int64_t branch, at;
} at_seq;

static stet_status load_value(void *ctx, const char *id, stet_value *value, stet_error *err) {
    const at_seq *x = ctx;
    stet_doc_state state;
    stet_status status = stet_space_load(x->s, x->branch, &(stet_docname){id, NULL}, x->at, &state, err);
    if (status != STET_OK)
        return status;
    *value = state.exists ? stet_retain(stet_get(state.value, "value")) : stet_null();
    stet_release(state.value);
    return STET_OK;
}

/* A child is there as long as its document is. */
static stet_status need_child(stet_child_docs *docs, const stet_piece *p, const char *node, stet_error *err) {
    size_t len = stet_child_instance(node);
    if (len == 0)
        return STET_OK;
    char *instance = stet_strndup(node, len), *id = stet_piece_part(p->name, "child", instance);
    stet_value there;
    stet_status status = docs->load(docs->ctx, id, &there, err);
    if (status == STET_OK) {
        if (stet_typeof(there) == STET_NULL)
            status = stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no child \"%s\"", p->name, instance);
        stet_release(there);
    }
    stet_free(instance);
    stet_free(id);
    return status;
}

stet_status stet_piece_row(stet_space *s, int64_t branch, const stet_piece *p, const char *node, stet_value *row,
                           stet_error *err) {
    at_seq now = {s, branch, -1};
    stet_child_docs docs = {&now, load_value};
    stet_templates templates = {0};
    stet_status status = need_child(&docs, p, node, err);
    if (status == STET_OK)
        status = stet_child_row(&docs, p, node, NULL, &templates, row, err);
    stet_templates_release(&templates);
    return status;
}

stet_status stet_piece_children(stet_space *s, int64_t branch, int64_t at, stet_process *g,
                                const stet_process_modules *modules, stet_error *err) {
    at_seq then = {s, branch, at};
    stet_child_docs docs = {&then, load_value};
    return stet_child_add_all(&docs, g, modules, err);
}

stet_status stet_piece_process(stet_space *s, int64_t branch, const stet_piece *p, int64_t at, stet_process **out,
                               stet_error *err) {
    stet_process *g = stet_process_new(p->name);
    stet_status status = STET_OK;
    g->generation = p->generation;
    g->program = p->program;
    g->binding = stet_retain(stet_get(p->envelope, "value"));
    for (uint32_t i = 0; i < p->chunks && status == STET_OK; i++) {
        stet_value rows;
        status = load_chunk(s, branch, p, i, at, &rows, err);
        if (status == STET_OK) {
            status = stet_process_add_rows(g, rows, err);
            stet_release(rows);
        }
    }
    if (status == STET_OK && g->node_count != p->node_count)
        status = damaged(p->name, "some of its nodes are missing", err);
    if (status == STET_OK)
        *out = g;
    else
        stet_process_free(g);
    return status;
}

static stet_status need_schema(stet_space *s, int64_t branch, stet_value from, const char *key, stet_value *out,
                               stet_error *err) {
    stet_value hash = stet_get(from, key);
    size_t len;
    if (stet_typeof(hash) != STET_STRING)
        return STET_OK;
    const char *hex = stet_as_string(&hash, &len);
    if (stet_find(*out, hex, len, NULL))
        return STET_OK;
    char *id = stet_asprintf("schema:%s", hex);
    stet_doc_state state;
    stet_status status = stet_space_load(s, branch, &(stet_docname){id, NULL}, -1, &state, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    if (state.exists)
        stet_put(out, hex, stet_retain(stet_get(state.value, "value")));
    stet_release(state.value);
    return STET_OK;
}

stet_status stet_piece_schemas(stet_space *s, int64_t branch, const stet_process *g, stet_value *out, stet_error *err) {
    stet_value schemas = stet_object();
    stet_status status = STET_OK;
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++) {
        stet_value row = g->nodes[i].row, module = stet_get(row, "module");
        status = need_schema(s, branch, row, "argumentSchema", &schemas, err);
        if (status == STET_OK)
            status = need_schema(s, branch, row, "resultSchema", &schemas, err);
        if (status == STET_OK)
            status = need_schema(s, branch, module, "argumentSchema", &schemas, err);
        if (status == STET_OK)
            status = need_schema(s, branch, module, "resultSchema", &schemas, err);
    }
    if (status == STET_OK)
        *out = schemas;
    else
        stet_release(schemas);
    return status;
}

stet_status stet_piece_generation_seq(stet_space *s, int64_t branch, const stet_piece *p, int64_t generation,
                                      int64_t *seq, stet_error *err) {
    int64_t before = 0;
    do {
        stet_arena arena = STET_ARENA_INIT;
        stet_revision *at;
        size_t count;
        stet_status status = stet_space_history(s, branch, &(stet_docname){p->doc, NULL}, before, 100, &arena, &at,
                                                &count, &before, err);
        if (status != STET_OK) {
            stet_arena_release(&arena);
            return status;
        }
        int64_t found = 0;
        for (size_t i = 0; i < count; i++) {
            /* Newest first: the last revision that has the generation is where it was set up. */
            stet_doc_state state;
            if (found == 0 &&
                stet_space_load(s, branch, &(stet_docname){p->doc, NULL}, at[i].seq, &state, NULL) == STET_OK) {
                if (stet_as_int(stet_get(stet_get(state.value, "process"), "generation")) == generation)
                    found = at[i].seq;
                stet_release(state.value);
            }
            stet_release(at[i].payload);
        }
        stet_arena_release(&arena);
        if (found) {
            *seq = found;
            return STET_OK;
        }
    } while (before > 0);
    return stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no generation %lld", p->name, (long long)generation);
}

/* ---- Programs and schemas, by hash
 * ------------------------------------------------------------------------------------ */

static stet_status put_new(stet_space *s, const char *branch, const char *id, stet_value value, stet_error *err) {
    int64_t number;
    stet_doc_state state;
    stet_status status = stet_space_branch(s, branch, &number, err);
    if (status == STET_OK)
        status = stet_space_load(s, number, &(stet_docname){id, NULL}, -1, &state, err);
    if (status != STET_OK) {
        stet_release(value);
        return status;
    }
    bool there = state.exists;
    stet_release(state.value);
    if (there) {
        stet_release(value);
        return STET_OK;
    }
    stet_tx *tx;
    status = stet_tx_begin(s, branch, &tx, err);
    if (status != STET_OK) {
        stet_release(value);
        return status;
    }
    stet_value envelope = stet_object();
    stet_put(&envelope, "value", value);
    status = stet_tx_put(tx, &(stet_docname){id, NULL}, envelope, err);
    if (status != STET_OK) {
        stet_tx_abort(tx);
        return status;
    }
    return stet_tx_commit(tx, NULL, err);
}

stet_status stet_piece_keep(stet_space *s, const char *branch, const stet_pattern *p, const stet_process *g,
                            stet_error *err) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(p->hash, hex);
    stet_value nodes = stet_get(p->root, "nodes");
    size_t n = stet_count(nodes), parts = (n + NODES_PER_PART - 1) / NODES_PER_PART;
    stet_status status = STET_OK;
    /* A program of many nodes is kept in parts, the head last: where the head is, all is there. */
    for (size_t part = 0; parts > 1 && part < parts && status == STET_OK; part++) {
        stet_value slice = stet_array();
        for (size_t i = part * NODES_PER_PART; i < n && i < (part + 1) * NODES_PER_PART; i++)
            stet_push(&slice, stet_retain(stet_at(nodes, i)));
        char *id = stet_asprintf("program:%s:%zu", hex, part);
        status = put_new(s, branch, id, slice, err);
        stet_free(id);
    }
    if (status == STET_OK) {
        stet_value root = stet_retain(p->root);
        if (parts > 1)
            stet_put(&root, "nodes", stet_stringf("%zu parts", parts));
        char *id = stet_asprintf("program:%s", hex);
        status = put_new(s, branch, id, root, err);
        stet_free(id);
    }
    for (size_t i = 0; i < stet_count(g->schemas) && status == STET_OK; i++) {
        char *id = stet_asprintf("schema:%s", stet_key_at(g->schemas, i, NULL));
        status = put_new(s, branch, id, stet_retain(stet_at(g->schemas, i)), err);
        stet_free(id);
    }
    return status;
}

/* ---- Setting up
 * --------------------------------------------------------------------------------------------------------- */

static bool exists(stet_tx *tx, const char *id) {
    stet_value v;
    return stet_tx_peek(tx, NULL, &(stet_docname){id, NULL}, STET_PATH_ROOT, &v, NULL) == STET_OK;
}

static stet_status put_value(stet_tx *tx, const char *id, stet_value value, stet_error *err) {
    stet_value envelope = stet_object();
    stet_put(&envelope, "value", value);
    return stet_tx_put(tx, &(stet_docname){id, NULL}, envelope, err);
}

static stet_status check_argument(stet_tx *tx, const char *piece, const char *id, stet_value schema, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_value v;
    stet_status status = STET_OK;
    stet_path_push(&path, "value");
    if (stet_typeof(schema) != STET_NULL &&
        stet_tx_peek(tx, NULL, &(stet_docname){id, NULL}, stet_path_ref(&path), &v, NULL) == STET_OK) {
        status = stet_schema_check(schema, v, err);
        if (status != STET_OK)
            stet_fail_in(err, "the argument of piece \"%s\" does not match its schema", piece);
    }
    stet_path_release(&path);
    return status;
}

stet_status stet_piece_set_argument(stet_tx *tx, const char *piece, stet_value set, stet_value schema,
                                    stet_error *err) {
    char *id = stet_piece_part(piece, "argument", NULL);
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_count(set) && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_key_at(set, i, &len);
        stet_path path = STET_PATH_INIT;
        stet_path_push(&path, "value");
        if (len > 0 && key[0] == '/') {
            stet_path below = STET_PATH_INIT;
            status = stet_path_of_pointer(&below, key, len, err);
            stet_buf_add(&path.buf, stet_path_ref(&below).bytes, stet_path_ref(&below).len);
            stet_path_release(&below);
        } else if (len > 0) {
            stet_path_push_n(&path, key, len);
        }
        if (status == STET_OK)
            status =
                stet_tx_write(tx, &(stet_docname){id, NULL}, stet_path_ref(&path), stet_retain(stet_at(set, i)), err);
        stet_path_release(&path);
    }
    if (status == STET_OK)
        status = check_argument(tx, piece, id, schema, err);
    stet_free(id);
    return status;
}

static stet_status write_argument(stet_tx *tx, const stet_piece_setup *s, stet_error *err) {
    const stet_pattern *p = s->pattern;
    char *id = stet_piece_part(s->process->piece, "argument", NULL);
    stet_status status = STET_OK;
    if (!exists(tx, id))
        status = put_value(tx, id, p->has_argument_default ? stet_retain(p->argument_default) : stet_object(), err);
    if (status == STET_OK && stet_count(s->set) > 0)
        status = stet_piece_set_argument(tx, s->process->piece, s->set, p->argument_schema, err);
    else if (status == STET_OK)
        status = check_argument(tx, s->process->piece, id, p->argument_schema, err);
    stet_free(id);
    return status;
}

static stet_status write_cells(stet_tx *tx, const stet_piece_setup *s, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < s->pattern->cell_count && status == STET_OK; i++) {
        const stet_pattern_cell *c = &s->pattern->cells[i];
        char *id = stet_piece_part(s->process->piece, "cell", c->name);
        if (c->has_default && !exists(tx, id))
            status = put_value(tx, id, stet_retain(c->initial), err);
        stet_free(id);
    }
    return status;
}

/* Some parts of the graph as one member of the group. All of them in one commit would have to be read for any of them.
 */
#define PARTS_PER_MEMBER 8

typedef struct row_writer {
    const stet_piece_setup *s;
    stet_tx *tx;
    size_t parts;
} row_writer;

static stet_status end_member(row_writer *w, stet_error *err) {
    if (!w->tx)
        return STET_OK;
    stet_status status = stet_group_add(w->s->group, w->tx, NULL, NULL, err);
    if (status != STET_OK)
        stet_tx_abort(w->tx);
    w->tx = NULL;
    w->parts = 0;
    return status;
}

static stet_status write_part(row_writer *w, const char *id, stet_value rows, stet_error *err) {
    stet_status status = STET_OK;
    if (!w->tx) {
        stet_value seen;
        status = stet_tx_begin_in(w->s->group, &w->tx, err);
        if (status != STET_OK) {
            w->tx = NULL;
            stet_release(rows);
            return status;
        }
        if (stet_tx_read(w->tx, NULL, &(stet_docname){w->s->process->result, NULL}, STET_PATH_ROOT, STET_SHALLOW, &seen,
                         NULL) != STET_OK)
            seen = stet_null(); /* that there is none is a read, too */
    }
    if (stet_typeof(rows) == STET_OBJECT)
        status = put_value(w->tx, id, rows, err);
    else
        status = stet_tx_drop(w->tx, &(stet_docname){id, NULL}, err);
    if (status == STET_OK && ++w->parts >= PARTS_PER_MEMBER)
        status = end_member(w, err);
    return status;
}

static uint32_t chunks_of(const stet_piece_setup *s) {
    uint32_t chunks = stet_process_chunks(s->process->node_count);
    if (s->before && s->before->chunks > chunks && s->before->chunks <= chunks * 4)
        chunks = s->before->chunks; /* no new distribution for a few nodes less */
    return chunks;
}

/* Rows go into the part that their id hashes to. Only parts with a change are written. */
stet_status stet_piece_write_rows(const stet_piece_setup *s, stet_error *err) {
    uint32_t chunks = chunks_of(s);
    const stet_process *g = s->process;
    bool all = !s->before || s->before->chunks != chunks;
    bool *touched = stet_alloc_zero(chunks * sizeof *touched);
    stet_value *rows = stet_alloc_zero(chunks * sizeof *rows);
    stet_status status = STET_OK;
    for (size_t i = 0; !all && i < s->diff->len; i++)
        touched[stet_process_chunk(s->diff->at[i].id, chunks)] = true;
    for (size_t i = 0; i < g->node_count; i++) {
        uint32_t c = stet_process_chunk(g->nodes[i].id, chunks);
        if (!all && !touched[c])
            continue;
        if (stet_typeof(rows[c]) == STET_NULL)
            rows[c] = stet_object();
        stet_put(&rows[c], g->nodes[i].id, stet_retain(g->nodes[i].row));
    }
    uint32_t old = s->before ? s->before->chunks : 0;
    row_writer w = {.s = s};
    for (uint32_t c = 0; c < chunks || c < old; c++) {
        if (c < chunks && !all && !touched[c])
            continue;
        char number[16];
        snprintf(number, sizeof number, "%u", c);
        char *id = stet_piece_part(g->piece, "process", number);
        if (status == STET_OK)
            status = write_part(&w, id, c < chunks ? stet_retain(rows[c]) : stet_null(), err);
        stet_free(id);
    }
    if (status == STET_OK)
        status = end_member(&w, err);
    else
        stet_tx_abort(w.tx);
    for (uint32_t c = 0; c < chunks; c++)
        stet_release(rows[c]);
    free(rows);
    free(touched);
    return status;
}

/* What is gone does not fail any more. */
static stet_status drop_failure(stet_tx *tx, const char *piece, const char *node, stet_error *err) {
    char *id = stet_piece_part(piece, "failures", NULL);
    stet_docname name = {id, NULL};
    stet_path path = STET_PATH_INIT;
    stet_value there;
    stet_status status = STET_OK;
    stet_path_push(&path, "value");
    stet_path_push(&path, node);
    if (stet_tx_peek(tx, NULL, &name, stet_path_ref(&path), &there, NULL) == STET_OK) {
        stet_patch gone = {.kind = STET_PATCH_REMOVE, .path = stet_path_ref(&path)};
        status = stet_tx_patch(tx, &name, &gone, 1, err);
    }
    stet_path_release(&path);
    stet_free(id);
    return status;
}

/* A node that is gone takes the document with it that was its own; a cell that it shared or that people edit stays. */
static stet_status tear_down(stet_tx *tx, const stet_piece_setup *s, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; s->before_process && i < s->diff->len && status == STET_OK; i++) {
        const stet_process_change *c = &s->diff->at[i];
        const stet_process_node *was = stet_process_find(s->before_process, c->id);
        const stet_process_node *now = stet_process_find(s->process, c->id);
        if (!was)
            continue;
        if (!now)
            status = drop_failure(tx, s->process->piece, c->id, err);
        stet_value link = stet_get(was->row, stet_stream_is_handler(was->row) ? "stream" : "output");
        if (now && stet_equal(link, stet_get(now->row, stet_stream_is_handler(now->row) ? "stream" : "output")))
            continue;
        stet_link l;
        stet_path path = STET_PATH_INIT;
        char *own = stet_piece_part(s->process->piece, "node", c->id);
        if (status == STET_OK && stet_link_read(link, &l, &path) && !l.space && strcmp(l.id, own) == 0)
            status = stet_tx_drop(tx, &(stet_docname){own, NULL}, err);
        stet_free(own);
        stet_path_release(&path);
    }
    return status;
}

static void count_effects(const stet_process *g, int64_t *effects, int64_t *restart) {
    *effects = *restart = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        stet_value kind = stet_get(g->nodes[i].row, "kind"), again = stet_get(g->nodes[i].row, "onRestart");
        if (stet_typeof(kind) == STET_STRING && strcmp(stet_as_string(&kind, NULL), "effect") == 0)
            ++*effects;
        if (stet_typeof(again) == STET_STRING && strcmp(stet_as_string(&again, NULL), "run") == 0)
            ++*restart;
        *effects += stet_as_int(stet_get(g->nodes[i].row, "effects"));
        *restart += stet_as_int(stet_get(g->nodes[i].row, "restarts"));
    }
}

typedef struct linked {
    const stet_process *g;
    stet_value names;
    stet_map seen;
} linked;

static bool note_linked(void *ctx, stet_value binding, stet_pathref place) {
    linked *l = ctx;
    stet_link link;
    stet_path path = STET_PATH_INIT;
    (void)place;
    if (stet_link_read(binding, &link, &path) && !link.space && strncmp(link.id, "piece:", 6) == 0) {
        size_t len = strcspn(link.id + 6, ":");
        if (stet_name_valid(link.id + 6, len) &&
            (len != strlen(l->g->piece) || memcmp(link.id + 6, l->g->piece, len) != 0) &&
            !stet_map_get(&l->seen, link.id + 6, len)) {
            stet_map_put(&l->seen, link.id + 6, len, (stet_slot){.n = 1});
            stet_push(&l->names, stet_string_n(link.id + 6, len));
        }
    }
    stet_path_release(&path);
    return true;
}

/* Names of the other pieces that the bindings lead to: those come first in the order of running. */
static stet_value linked_pieces(const stet_process *g) {
    linked l = {.g = g, .names = stet_array()};
    for (size_t i = 0; i < g->node_count; i++)
        stet_binding_walk(stet_get(g->nodes[i].row, "inputs"), note_linked, &l);
    stet_map_release(&l.seen);
    return l.names;
}

/* What the argument and the named cells must match: hashes of schemas that are kept with those of the rows. */
static void put_cell_schemas(const stet_pattern *p, stet_value *header) {
    char hex[STET_HASH_HEX];
    stet_value cells = stet_object();
    if (stet_typeof(p->argument_schema) != STET_NULL) {
        stet_hash_hex(stet_hash_value(p->argument_schema), hex);
        stet_put(header, "argumentSchema", stet_string(hex));
    }
    for (size_t i = 0; i < p->cell_count; i++)
        if (stet_typeof(p->cells[i].schema) != STET_NULL) {
            stet_hash_hex(stet_hash_value(p->cells[i].schema), hex);
            stet_put(&cells, p->cells[i].name, stet_string(hex));
        }
    if (stet_count(cells) > 0)
        stet_put(header, "cellSchemas", stet_retain(cells));
    stet_release(cells);
}

static stet_value process_header(const stet_piece_setup *s, uint32_t chunks) {
    char hex[STET_HASH_HEX];
    stet_value h = stet_object();
    int64_t effects, restart;
    count_effects(s->process, &effects, &restart);
    stet_put(&h, "version", stet_int(1));
    stet_hash_hex(s->process->program, hex);
    stet_put(&h, "program", stet_stringf("cid:%s", hex));
    stet_put(&h, "generation", stet_int(s->process->generation));
    stet_put(&h, "nodes", stet_int((int64_t)s->process->node_count));
    stet_put(&h, "chunks", stet_int(chunks));
    stet_put(&h, "effects", stet_int(effects));
    stet_put(&h, "onRestart", stet_int(restart));
    int64_t coordinators = 0;
    for (size_t i = 0; i < s->process->node_count; i++)
        coordinators += stet_child_role_of(s->process->nodes[i].row) != STET_CHILD_NONE;
    if (coordinators > 0)
        stet_put(&h, "coordinators", stet_int(coordinators));
    size_t handlers;
    stet_value streams = stet_streams_of(s->process, &handlers);
    if (handlers > 0) {
        stet_put(&h, "handlers", stet_int((int64_t)handlers));
        stet_put(&h, "streams", stet_retain(streams));
    }
    stet_release(streams);
    put_cell_schemas(s->pattern, &h);
    stet_put(&h, "pieces", linked_pieces(s->process));
    stet_hash_hex(s->runtime, hex);
    stet_put(&h, "runtime", stet_string(hex));
    stet_put(&h, "branch", stet_string(s->branch ? s->branch : ""));
    /* Schemas that were ever used: what is stored may still have been made under an older one. */
    stet_value history =
        s->before ? stet_retain(stet_get(stet_get(s->before->envelope, "process"), "schemas")) : stet_null();
    if (stet_typeof(history) != STET_ARRAY) {
        stet_release(history);
        history = stet_array();
    }
    stet_map seen = {0};
    for (size_t i = 0; i < stet_count(history); i++) {
        stet_value v = stet_at(history, i);
        size_t len;
        const char *text = stet_as_string(&v, &len);
        if (text)
            stet_map_put(&seen, text, len, (stet_slot){.n = 1});
    }
    for (size_t i = 0; i < stet_count(s->process->schemas); i++) {
        size_t len;
        const char *key = stet_key_at(s->process->schemas, i, &len);
        if (!stet_map_get(&seen, key, len))
            stet_push(&history, stet_string_n(key, len));
    }
    stet_map_release(&seen);
    if (stet_count(history) > 0)
        stet_put(&h, "schemas", history);
    else
        stet_release(history);
    return h;
}

stet_status stet_piece_write(stet_tx *tx, const stet_piece_setup *s, stet_error *err) {
    uint32_t chunks = chunks_of(s);
    stet_status status = write_argument(tx, s, err);
    if (status == STET_OK)
        status = write_cells(tx, s, err);
    if (status == STET_OK)
        status = tear_down(tx, s, err);
    if (status == STET_OK)
        status = stet_streams_write(tx, s->process, err);
    if (status != STET_OK)
        return status;
    stet_value envelope = s->before ? stet_retain(s->before->envelope) : stet_object(), pattern = stet_object();
    char hex[STET_HASH_HEX];
    stet_hash_hex(s->pattern->hash, hex);
    stet_put(&pattern, "program", stet_stringf("cid:%s", hex));
    stet_put(&pattern, "name", stet_string(s->pattern->name));
    if (s->pattern->version[0])
        stet_put(&pattern, "version", stet_string(s->pattern->version));
    if (s->pattern->title[0])
        stet_put(&pattern, "title", stet_string(s->pattern->title));
    stet_put(&envelope, "value", stet_retain(s->process->binding));
    stet_put(&envelope, "pattern", pattern);
    stet_put(&envelope, "process", process_header(s, chunks));
    if (stet_typeof(s->source) != STET_NULL)
        stet_put(&envelope, "source", stet_retain(s->source));
    return stet_tx_put(tx, &(stet_docname){s->process->result, NULL}, envelope, err);
}

stet_status stet_piece_set_stopped(stet_tx *tx, const stet_piece *p, bool stopped, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "process");
    stet_path_push(&path, "stopped");
    stet_status status =
        stet_tx_write(tx, &(stet_docname){p->doc, NULL}, stet_path_ref(&path), stet_bool(stopped), err);
    stet_path_release(&path);
    return status;
}

stet_status stet_piece_drop(stet_tx *tx, stet_space *s, int64_t branch, const char *name, size_t max, bool *more,
                            stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    char *doc = stet_piece_doc(name), *prefix = stet_asprintf("piece:%s:", name);
    stet_status status = stet_tx_drop(tx, &(stet_docname){doc, NULL}, err);
    stet_doc_filter filter = {.prefix = prefix, .limit = max};
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
