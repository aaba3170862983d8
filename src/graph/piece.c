/* piece.c - reads stored pieces. */

#include "graph/piece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "db/db.h"
#include "graph/child.h"

static bool hex_member(stet_value object, const char *key, const char *prefix, stet_hash *out) {
    stet_value v = stet_value_get(object, key);
    size_t len, skip = strlen(prefix);
    if (stet_value_type(v) != STET_TYPE_STRING)
        return false;
    const char *s = stet_value_as_string(&v, &len);
    return len == skip + 64 && memcmp(s, prefix, skip) == 0 && stet_hash_of_hex(s + skip, 64, out);
}

static stet_status damaged(const char *name, const char *what, stet_error *err) {
    stet_fail(err, STET_CORRUPT, "piece \"%s\": %s", name, what);
    stet_hint(err, "stet check --repair has the next stet run of its pattern rebuild it; or stet piece delete %s",
              name);
    return STET_CORRUPT;
}

stet_hash stet_piece_unrecorded(void) {
    static const char text[] = "set up without a record";
    return stet_hash_of(text, sizeof text - 1);
}

stet_status stet_piece_load(stet_space *s, int64_t branch, const char *name, int64_t at, stet_piece **out,
                            stet_error *err) {
    if (!stet_piece_name_valid(name)) {
        stet_fail(err, STET_INVALID, "\"%s\" is no name for a piece", name);
        stet_hint(err, "use letters, digits, \"_\", \"-\" and \".\", and for another scope \"@SCOPE\" after that");
        return STET_INVALID;
    }
    char *doc = stet_piece_doc(name);
    stet_doc_state state;
    stet_status status = stet_space_load(s, branch, &(stet_docname){doc, stet_piece_scope(name)}, at, &state, err);
    if (status != STET_OK) {
        stet_free(doc);
        return status;
    }
    stet_value process = state.exists ? stet_value_get(state.value, "process") : stet_value_null();
    if (stet_value_type(process) != STET_TYPE_OBJECT) {
        stet_value_release(state.value);
        stet_free(doc);
        stet_fail(err, STET_NOT_FOUND, "there is no piece \"%s\"", name);
        stet_hint(err, "stet piece list shows those that are there; stet run PATTERN makes one");
        return STET_NOT_FOUND;
    }
    stet_piece *p = stet_alloc_zero(sizeof *p);
    p->name = stet_strdup(name);
    p->doc = doc;
    p->scope = stet_strdup(stet_piece_scope(name));
    p->key = stet_piece_key(name);
    p->envelope = state.value;
    p->seq = state.seq;
    p->generation = stet_value_as_int(stet_value_get(process, "generation"));
    int64_t chunks = stet_value_as_int(stet_value_get(process, "chunks")),
            nodes = stet_value_as_int(stet_value_get(process, "nodes"));
    p->stopped = stet_value_as_bool(stet_value_get(process, "stopped"));
    p->marked = stet_value_as_bool(stet_value_get(process, STET_PROCESS_MARKED));
    p->rebuild = stet_value_as_bool(stet_value_get(process, "rebuild")) ||
                 !stet_value_as_bool(stet_value_get(process, STET_PROCESS_ENVELOPES));
    p->closed = stet_value_as_bool(stet_value_get(process, "closed"));
    p->effect_count = (size_t)stet_value_as_int(stet_value_get(process, "effects"));
    p->restart_count = (size_t)stet_value_as_int(stet_value_get(process, "onRestart"));
    p->has_verifiers = stet_value_as_int(stet_value_get(process, "verifiers")) > 0;
    p->has_children = stet_value_as_int(stet_value_get(process, "coordinators")) > 0;
    int64_t handlers = stet_value_as_int(stet_value_get(process, "handlers"));
    p->handler_count = handlers > 0 && handlers <= nodes ? (size_t)handlers : 0;
    const char *wrong = NULL;
    if (stet_value_as_int(stet_value_get(process, "version")) != 1)
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
    stet_value_release(p->envelope);
    stet_free(p->name);
    stet_free(p->doc);
    stet_free(p->scope);
    stet_free(p->key);
    free(p);
}

stet_docname stet_piece_name(const stet_piece *p, const char *id) {
    return (stet_docname){id ? id : p->doc, p->scope};
}

stet_action_key stet_piece_action(const stet_piece *p, const char *node) {
    return (stet_action_key){.piece = p->doc, .scope = p->scope, .action = node};
}

bool stet_piece_has(const stet_piece *p, const stet_action_key *key) {
    return strcmp(key->piece, p->doc) == 0 && strcmp(key->scope ? key->scope : "", p->scope) == 0;
}

/* Any document may be named like the result of a piece. */
static stet_status has_graph(stet_space *s, int64_t branch, const stet_docname *name, bool *out, stet_error *err) {
    stet_doc_state state;
    stet_status status = stet_space_load(s, branch, name, -1, &state, err);
    if (status != STET_OK)
        return status;
    *out = state.exists && stet_value_type(stet_value_get(state.value, "process")) == STET_TYPE_OBJECT;
    stet_value_release(state.value);
    return STET_OK;
}

stet_status stet_piece_names(stet_space *s, int64_t branch, const char *after, size_t limit, stet_value *out,
                             bool *more, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_value names = stet_value_array();
    stet_status status = STET_OK;
    /* Documents of a piece are consecutive, after its result document: each group is skipped with one query of two
     * documents. ';' is the byte after ':'. */
    char *cursor = after ? stet_piece_doc(after) : stet_strdup("piece:");
    char *scope = stet_strdup(after ? stet_piece_scope(after) : "");
    *more = false;
    while (status == STET_OK) {
        stet_docname last = {cursor, scope};
        stet_doc_filter filter = {.prefix = "piece:", .after = &last, .limit = 2};
        stet_doc_info *at;
        size_t count;
        bool rest, skipped = false;
        stet_arena_clear(&arena);
        status = stet_space_list(s, branch, &filter, &arena, &at, &count, &rest, err);
        for (size_t i = 0; status == STET_OK && i < count && !skipped; i++) {
            char *name = stet_piece_of(&at[i].name);
            const char *colon = strlen(at[i].name.id) > 6 ? strchr(at[i].name.id + 6, ':') : NULL;
            stet_free(cursor);
            stet_free(scope);
            skipped = !name && colon;
            cursor = skipped ? stet_asprintf("%.*s;", (int)(colon - at[i].name.id), at[i].name.id)
                             : stet_strdup(at[i].name.id);
            scope = stet_strdup(skipped ? "" : at[i].name.scope);
            bool is_piece = false;
            if (name)
                status = has_graph(s, branch, &at[i].name, &is_piece, err);
            if (is_piece && stet_value_count(names) >= limit) {
                *more = true;
                status = STET_CANCELLED;
            } else if (is_piece) {
                stet_value_push(&names, stet_value_string(name));
            }
            stet_free(name);
        }
        if (status == STET_OK && !skipped && !rest)
            break;
    }
    stet_free(cursor);
    stet_free(scope);
    stet_arena_release(&arena);
    if (status == STET_CANCELLED)
        status = STET_OK;
    if (status == STET_OK)
        *out = names;
    else
        stet_value_release(names);
    return status;
}

stet_status stet_piece_each(stet_space *s, int64_t branch, void (*each)(void *ctx, const stet_piece *p), void *ctx,
                            stet_error *err) {
    bool more, begun = !stet_db_in_transaction(stet_space_db(s));
    stet_value names = stet_value_null();
    stet_status status = begun ? stet_db_begin_read(stet_space_db(s), err) : STET_OK;
    if (status != STET_OK)
        return status;
    status = stet_piece_names(s, branch, NULL, SIZE_MAX, &names, &more, err);
    for (size_t i = 0; i < stet_value_count(names) && status == STET_OK; i++) {
        stet_value name = stet_value_at(names, i);
        stet_piece *p;
        if (stet_piece_load(s, branch, stet_value_as_string(&name, NULL), -1, &p, NULL) != STET_OK)
            continue;
        each(ctx, p);
        stet_piece_free(p);
    }
    stet_value_release(names);
    if (begun)
        stet_db_rollback(stet_space_db(s));
    return status;
}

static stet_status load_chunk(stet_space *s, int64_t branch, const stet_piece *p, uint32_t chunk, int64_t at,
                              stet_value *rows, stet_error *err) {
    char number[16];
    snprintf(number, sizeof number, "%u", chunk);
    char *id = stet_piece_part(p->name, "process", number);
    stet_doc_state state;
    stet_docname part = stet_piece_name(p, id);
    stet_status status = stet_space_load(s, branch, &part, at, &state, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    /* An empty part has no document. */
    *rows = state.exists ? stet_value_retain(stet_value_get(state.value, "value")) : stet_value_object();
    stet_value_release(state.value);
    if (stet_value_type(*rows) != STET_TYPE_OBJECT) {
        stet_value_release(*rows);
        return damaged(p->name, "a part of its graph is damaged", err);
    }
    return STET_OK;
}

typedef struct at_seq {
    stet_space *s;
    int64_t branch, at;
    const char *scope;
} at_seq;

static stet_status load_value(void *ctx, const char *id, stet_value *value, stet_error *err) {
    const at_seq *x = ctx;
    stet_doc_state state;
    stet_docname name = stet_scoped(x->scope, id);
    stet_status status = stet_space_load(x->s, x->branch, &name, x->at, &state, err);
    if (status != STET_OK)
        return status;
    *value = state.exists ? stet_value_retain(stet_value_get(state.value, "value")) : stet_value_null();
    stet_value_release(state.value);
    return STET_OK;
}

/* A child exists as long as its document does. */
static stet_status need_child(stet_child_docs *docs, const stet_piece *p, const char *node, stet_error *err) {
    size_t len = stet_child_instance(node);
    if (len == 0)
        return STET_OK;
    char *instance = stet_strndup(node, len), *id = stet_piece_part(p->name, "child", instance);
    stet_value there;
    stet_status status = docs->load(docs->ctx, id, &there, err);
    if (status == STET_OK) {
        if (stet_value_type(there) == STET_TYPE_NULL)
            status = stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no child \"%s\"", p->name, instance);
        stet_value_release(there);
    }
    stet_free(instance);
    stet_free(id);
    return status;
}

stet_status stet_piece_row(stet_space *s, int64_t branch, const stet_piece *p, const char *node, stet_value *row,
                           stet_error *err) {
    at_seq now = {s, branch, -1, p->scope};
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
    at_seq then = {s, branch, at, g->scope};
    stet_child_docs docs = {&then, load_value};
    return stet_child_add_all(&docs, g, modules, err);
}

stet_status stet_piece_process(stet_space *s, int64_t branch, const stet_piece *p, int64_t at, stet_process **out,
                               stet_error *err) {
    stet_process *g = stet_process_new(p->name);
    stet_status status = STET_OK;
    g->generation = p->generation;
    g->program = p->program;
    g->binding = stet_value_retain(stet_value_get(p->envelope, "value"));
    for (uint32_t i = 0; i < p->chunks && status == STET_OK; i++) {
        stet_value rows;
        status = load_chunk(s, branch, p, i, at, &rows, err);
        if (status == STET_OK) {
            status = stet_process_add_rows(g, rows, err);
            stet_value_release(rows);
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
    stet_value hash = stet_value_get(from, key);
    size_t len;
    if (stet_value_type(hash) != STET_TYPE_STRING)
        return STET_OK;
    const char *hex = stet_value_as_string(&hash, &len);
    if (stet_value_find(*out, hex, len, NULL))
        return STET_OK;
    char *id = stet_asprintf("schema:%s", hex);
    stet_doc_state state;
    stet_status status = stet_space_load(s, branch, &(stet_docname){id, NULL}, -1, &state, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    if (state.exists)
        stet_value_put(out, hex, stet_value_retain(stet_value_get(state.value, "value")));
    stet_value_release(state.value);
    return STET_OK;
}

stet_status stet_piece_schemas(stet_space *s, int64_t branch, const stet_process *g, stet_value *out, stet_error *err) {
    stet_value schemas = stet_value_object();
    stet_status status = STET_OK;
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++) {
        stet_value row = g->nodes[i].row, module = stet_value_get(row, "module");
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
        stet_value_release(schemas);
    return status;
}

stet_status stet_piece_generation_seq(stet_space *s, int64_t branch, const stet_piece *p, int64_t generation,
                                      int64_t *seq, stet_error *err) {
    int64_t before = 0;
    stet_docname result = stet_piece_name(p, NULL);
    do {
        stet_arena arena = STET_ARENA_INIT;
        stet_revision *at;
        size_t count;
        stet_status status = stet_space_history(s, branch, &result, before, 100, &arena, &at, &count, &before, err);
        if (status != STET_OK) {
            stet_arena_release(&arena);
            return status;
        }
        int64_t found = 0;
        for (size_t i = 0; i < count; i++) {
            /* Newest first: the oldest revision with this generation is where it was set up. */
            stet_doc_state state;
            if (found == 0 && stet_space_load(s, branch, &result, at[i].seq, &state, NULL) == STET_OK) {
                if (stet_value_as_int(stet_value_get(stet_value_get(state.value, "process"), "generation")) ==
                    generation)
                    found = at[i].seq;
                stet_value_release(state.value);
            }
            stet_value_release(at[i].payload);
        }
        stet_arena_release(&arena);
        if (found) {
            *seq = found;
            return STET_OK;
        }
    } while (before > 0);
    return stet_fail(err, STET_NOT_FOUND, "piece \"%s\" has no generation %lld", p->name, (long long)generation);
}
