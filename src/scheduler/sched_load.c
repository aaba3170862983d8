/* sched_load.c - loads actions into memory: pieces, rows, and what the record knows about them. */

#include "base/text.h"
#include "graph/stream.h"
#include "scheduler/sched_internal.h"

stet_status sched_space(void *ctx, const char *name, stet_space **out, stet_error *err) {
    stet_sched *s = ctx;
    if (strcmp(name, stet_space_name(s->space)) == 0) {
        *out = NULL;
        return STET_OK;
    }
    const stet_slot *slot = stet_map_get(&s->spaces, name, strlen(name));
    if (slot) {
        *out = slot->p;
        return STET_OK;
    }
    stet_status status = stet_space_open(s->project, name, STET_SPACE_MUST_EXIST, out, err);
    if (status == STET_OK)
        stet_map_put(&s->spaces, name, strlen(name), (stet_slot){.p = *out});
    return status;
}

void sched_spaces_look(stet_sched *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->spaces, &i, &key, &len, &slot);)
        if (stet_space_replaced(slot->p)) {
            char *name = stet_strndup(key, len);
            stet_space_close(slot->p);
            stet_map_remove(&s->spaces, name, len);
            stet_free(name);
            i = 0;
        }
}

uint32_t sched_doc(stet_sched *s, const char *space_uuid, const stet_docname *name) {
    char small[512];
    stet_buf b = STET_BUF(0);
    const char *uuid = space_uuid && strcmp(space_uuid, stet_space_uuid(s->space)) != 0 ? space_uuid : "";
    const char *scope = name->scope ? name->scope : "";
    s->far_state.has_cells = s->far_state.has_cells || *uuid;
    size_t u = strlen(uuid), c = strlen(scope), i = strlen(name->id), n = u + c + i + 2;
    char *key = small;
    if (n > sizeof small) {
        key = stet_buf_reserve(&b, n);
        assert(key);
    }
    memcpy(key, uuid, u);
    key[u] = 0;
    memcpy(key + u + 1, scope, c);
    key[u + 1 + c] = 0;
    memcpy(key + u + c + 2, name->id, i);
    uint32_t doc = stet_plan_doc(s->plan, key, n);
    stet_buf_release(&b);
    return doc;
}

stet_status sched_piece_of(stet_sched *s, const char *key, sched_piece **out, stet_error *err) {
    const stet_slot *slot = stet_map_get(&s->pieces, key, strlen(key));
    if (slot) {
        *out = slot->p;
        return STET_OK;
    }
    const char *name = strncmp(key, "piece:", 6) == 0 ? key + 6 : NULL;
    if (!name || !stet_piece_name_valid(name))
        return stet_fail(err, STET_NOT_FOUND, "\"%s\" is no piece", key);
    stet_piece *piece;
    stet_status status = stet_piece_load(s->space, s->branch, name, -1, &piece, err);
    if (status != STET_OK)
        return status;
    sched_piece *p = stet_alloc_zero(sizeof *p);
    p->piece = piece;
    p->level = -1;
    stet_map_put(&s->pieces, key, strlen(key), (stet_slot){.p = p});
    *out = p;
    return STET_OK;
}

void sched_piece_free(sched_piece *p) {
    stet_piece_free(p->piece);
    free(p);
}

static bool may_make(void *ctx, const char *path) {
    const stet_sched *s = ctx;
    return s->opts.may_make(s->opts.ctx, s->space, s->branch, path);
}

stet_status sched_kind_state(stet_sched *s, const stet_module_kind *kind, void **state, stet_error *err) {
    *state = NULL;
    if (!kind->open)
        return STET_OK;
    const stet_slot *slot = stet_map_get(&s->states, kind->type, strlen(kind->type));
    if (slot) {
        *state = slot->p;
        return STET_OK;
    }
    char *temp = stet_project_path(s->project, "local/temp");
    char *setting = stet_asprintf("module.%s", kind->type);
    stet_module_host host = {.project_root = stet_project_root(s->project),
                             .temp_dir = temp,
                             .config = stet_project_setting(s->project, setting),
                             .project = s->project,
                             .files = s->opts.files,
                             .jobs = s->opts.jobs,
                             .cancelled = s->opts.cancelled,
                             .cancelled_ctx = s->opts.ctx,
                             .may_make = s->opts.may_make ? may_make : NULL,
                             .may_make_ctx = s,
                             .stopped = &s->stopped};
    stet_status status = kind->asynchronous ? sched_async_loop(s, &host.loop, err) : STET_OK;
    if (status == STET_OK)
        status = kind->open(&host, state, err);
    if (status == STET_OK)
        stet_map_put(&s->states, kind->type, strlen(kind->type), (stet_slot){.p = *state});
    stet_free(temp);
    stet_free(setting);
    return status;
}

stet_status sched_schema(stet_sched *s, stet_value hash, stet_value *out, stet_error *err) {
    size_t len;
    *out = stet_value_null();
    if (stet_value_type(hash) != STET_TYPE_STRING)
        return STET_OK;
    const char *hex = stet_value_as_string(&hash, &len);
    const stet_slot *slot = stet_map_get(&s->schemas, hex, len);
    if (slot) {
        *out = s->schema_values.at[slot->n];
        return STET_OK;
    }
    char *id = stet_asprintf("schema:%s", hex);
    stet_doc_state state;
    stet_status status = stet_space_load(s->space, s->branch, &(stet_docname){id, NULL}, -1, &state, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    if (!state.exists)
        return stet_fail(err, STET_CORRUPT, "schema %s is not stored any more", hex);
    stet_value schema = stet_value_retain(stet_value_get(state.value, "value"));
    stet_value_release(state.value);
    stet_map_put(&s->schemas, hex, len, (stet_slot){.n = s->schema_values.len});
    *stet_vec_add(&s->schema_values) = schema;
    *out = schema;
    return STET_OK;
}

void sched_action_free(sched_action *a) {
    stet_value_release(a->row);
    stet_value_release(a->view);
    stet_value_release(a->makes);
    sched_children_forget(a);
    stet_free(a->children);
    stet_free(a->child_doc);
    stet_free(a->out_id);
    stet_free(a->out_scope);
    stet_path_release(&a->out_path);
    stet_free((char *)(uintptr_t)a->node);
    free(a);
}

/* What the row says of its place in the graph, which may change without its code. */
static void decode_place(sched_action *a) {
    stet_value circle = stet_value_get(a->row, "circle");
    a->circle = a->turn = 0;
    if (stet_value_type(circle) == STET_TYPE_STRING) {
        stet_buf name = STET_BUF(0);
        stet_buf_printf(&name, "%s/%s", a->piece->piece->name, stet_value_as_string(&circle, NULL));
        stet_hash h = stet_hash_of(name.data, name.len);
        memcpy(&a->circle, h.bytes, sizeof a->circle);
        a->circle |= 1; /* not 0 */
        a->turn = (uint32_t)stet_value_as_int(stet_value_get(a->row, "turn"));
        stet_buf_release(&name);
    }
    a->certain = a->verifier || stet_value_as_bool(stet_value_get(a->row, "certain"));
    a->materializer = stet_value_find(a->row, "materializer", 12, NULL);
    a->unasked = a->materializer && !stet_value_as_bool(stet_value_get(a->row, "onDemand"));
}

stet_status sched_decode_row(sched_action *a, stet_error *err) {
    stet_value module = stet_value_get(a->row, "module"), type = stet_value_get(module, "type"),
               print = stet_value_get(a->row, "fingerprint");
    const char *where = a->node;
    a->kind = stet_value_type(type) == STET_TYPE_STRING ? stet_module_find(stet_value_as_string(&type, NULL)) : NULL;
    size_t len;
    const char *hex = stet_value_as_string(&print, &len);
    if (!hex || !stet_hash_of_hex(hex, len, &a->fingerprint))
        return stet_fail(err, STET_CORRUPT, "the row of node \"%s\" is damaged: no fingerprint", where);
    a->effect = stet_value_text_is(stet_value_get(a->row, "kind"), "effect");
    a->verifier = stet_value_as_bool(stet_value_get(a->row, "verifier"));
    a->role = stet_child_role_of(a->row);
    /* map, filter and reduce only pass cells on to their children. */
    a->has_cells = (a->role == STET_CHILD_NONE || a->role == STET_CHILD_RETURNS) &&
                   sched_has_cells(stet_value_get(a->row, "inputs"));
    stet_link l;
    a->out_path = (stet_path)STET_PATH_INIT;
    stet_path_push(&a->out_path, "value");
    if (stet_link_read(stet_value_get(a->row, "output"), &l, &a->out_path)) {
        a->out_id = stet_strdup(l.id);
        a->out_scope = stet_strdup(l.scope);
    }
    size_t instance = stet_child_instance(a->node);
    if (instance > 0) {
        char *id = stet_strndup(a->node, instance);
        a->child_doc = stet_piece_part(a->piece->piece->name, "child", id);
        stet_free(id);
    }
    decode_place(a);
    return STET_OK;
}

typedef struct declared {
    stet_sched *s;
    sched_action *a;
    stet_value module;
    bool before; /* what must be there before, and is no input */
    bool now;    /* as it is at this moment of a settling: results that are not stored yet count */
    STET_VEC(stet_plan_read) reads;
    stet_arena arena;
} declared;

/* Does the document hold no links? Outputs of the own piece are taken so: they hold values. */
static bool is_plain(declared *d, stet_space *space, const stet_link *l) {
    stet_sched *s = d->s;
    const char *own = d->a->piece->piece->doc;
    size_t n = strlen(own);
    if (!space && strcmp(l->scope, d->a->piece->piece->scope) == 0 && strncmp(l->id, own, n) == 0 &&
        strncmp(l->id + n, ":node:", 6) == 0)
        return true;
    stet_buf key = STET_BUF(0);
    stet_buf_printf(&key, "%s\n%s\n%s", space ? stet_space_uuid(space) : "", l->scope, l->id);
    const stet_slot *slot = stet_map_get(&s->plain, key.data, key.len);
    bool plain = slot && slot->n;
    if (!slot) {
        stet_doc_state state;
        int64_t branch = space ? 0 : s->branch;
        plain = stet_space_load(space ? space : s->space, branch, &(stet_docname){l->id, l->scope}, -1, &state, NULL) ==
                STET_OK;
        if (plain) {
            plain = !stet_reader_has_links(stet_value_get(state.value, "value"));
            stet_value_release(state.value);
        }
        stet_map_put(&s->plain, key.data, key.len, (stet_slot){.n = plain});
    }
    stet_buf_release(&key);
    return plain;
}

/* A binding that leads through links: where they lead right now is read as well. */
static void declare_through(declared *d, stet_value binding) {
    stet_sched *s = d->s;
    stet_reader r = {
        .record = true, .space = sched_space, .ctx = s, .piece = d->a->piece->piece->name, .node = d->a->node};
    stet_value got;
    stet_error ignored = STET_ERROR_INIT;
    stet_status begun = d->now && s->batch.group ? stet_tx_begin_in(s->batch.group, &r.tx, NULL)
                                                 : stet_tx_begin(s->space, s->branch_name, &r.tx, NULL);
    if (begun != STET_OK)
        return;
    if (stet_reader_binding(&r, binding, STET_PATH_ROOT, STET_RECURSIVE, &got, &ignored) != STET_OK)
        stet_error_clear(&ignored);
    const stet_tx_read_record *at;
    size_t count;
    stet_tx_reads(r.tx, &d->arena, &at, &count);
    for (size_t i = 0; i < count; i++) {
        const char *uuid = at[i].space == s->space ? NULL : stet_space_uuid(at[i].space);
        *stet_vec_add(&d->reads) =
            (stet_plan_read){sched_doc(s, uuid, &at[i].name),
                             {stet_arena_strndup(&d->arena, at[i].path.bytes, at[i].path.len), at[i].path.len},
                             at[i].kind};
    }
    stet_reader_release(&r);
    stet_tx_abort(r.tx);
}

/* Who reads a document of a child runs after its coordinators (reader.h). */
static void declare_coordinators(declared *d, const char *uuid, const stet_link *l) {
    const char *at = NULL;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    stet_pathref p = stet_path_ref(&path);
    for (char *id;
         (id = stet_reader_coordinator(&(stet_docname){l->id, l->scope}, d->a->piece->piece->name, d->a->node, &at));) {
        *stet_vec_add(&d->reads) = (stet_plan_read){sched_doc(d->s, uuid, &(stet_docname){id, l->scope}),
                                                    {stet_arena_strndup(&d->arena, p.bytes, p.len), p.len},
                                                    STET_SHALLOW};
        stet_free(id);
    }
    stet_path_release(&path);
}

static bool declare_read(void *ctx, stet_value binding, stet_pathref place) {
    declared *d = ctx;
    size_t cursor = 0, len;
    const char *input;
    stet_buf scratch = STET_BUF(0);
    bool chosen = !d->before && d->a->kind && d->a->kind->use &&
                  stet_path_next(place, &cursor, &scratch, &input, &len) &&
                  d->a->kind->use(d->module, input, len) == STET_INPUT_CHOSEN;
    stet_buf_release(&scratch);
    if (chosen)
        return true;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, "value");
    /* Brothers write to one cell, each what is its own, and their coordinator only gives it to them: who was not seen
     * to read it is not put behind the others. */
    bool shared = stet_link_read(binding, &l, &path) && l.as_cell && d->a->materializer && !d->a->effect &&
                  (d->a->child_doc || d->a->role != STET_CHILD_NONE);
    if (!shared && stet_link_is(binding, NULL)) {
        const char *uuid = NULL;
        stet_space *space = NULL;
        bool there = !l.space || sched_space(d->s, l.space, &space, NULL) == STET_OK;
        if (space)
            uuid = stet_space_uuid(space);
        if (!there) { /* that the space is absent is what it will read */
            char *id = stet_asprintf(STET_SPACE_PREFIX "%s", l.space);
            *stet_vec_add(&d->reads) =
                (stet_plan_read){sched_doc(d->s, NULL, &(stet_docname){id, NULL}), STET_PATH_ROOT, STET_RECURSIVE};
            stet_free(id);
        } else {
            stet_pathref p = stet_path_ref(&path);
            *stet_vec_add(&d->reads) = (stet_plan_read){sched_doc(d->s, uuid, &(stet_docname){l.id, l.scope}),
                                                        {stet_arena_strndup(&d->arena, p.bytes, p.len), p.len},
                                                        STET_RECURSIVE};
            declare_coordinators(d, uuid, &l);
        }
        if (there && !l.as_cell && (d->now || !is_plain(d, space, &l)))
            declare_through(d, binding);
    }
    stet_path_release(&path);
    return true;
}

/* What its row, and those of the coordinators above it, say must be there before it runs for the first time. */
static stet_status declare_before(declared *d, stet_error *err) {
    stet_status status = STET_OK;
    const sched_action *at = d->a;
    d->before = true;
    while (at && status == STET_OK) {
        uint32_t above;
        stet_value parent = stet_value_get(at->row, "parent");
        stet_binding_walk(stet_value_get(at->row, "after"), declare_read, d);
        if (stet_value_type(parent) != STET_TYPE_STRING)
            break;
        status = sched_load(d->s, d->a->piece->piece->key, stet_value_as_string(&parent, NULL), &above, err);
        at = status == STET_OK ? stet_plan_data(d->s->plan, above) : NULL;
    }
    return status;
}

/* What its bindings say it will read. */
static stet_status find_declared(declared *d, stet_error *err) {
    d->module = stet_value_get(d->a->row, "module");
    stet_binding_walk(stet_value_get(d->a->row, "inputs"), declare_read, d);
    return declare_before(d, err);
}

/* Edges of an action that has no record. */
static stet_status declare(stet_sched *s, sched_action *a, stet_error *err) {
    declared d = {.s = s, .a = a};
    stet_status status = find_declared(&d, err);
    a->own_reads = 0;
    stet_plan_set_reads(s->plan, a->id, d.reads.at, d.reads.len);
    stet_vec_release(&d.reads);
    stet_arena_release(&d.arena);
    return status;
}

stet_status sched_also_declared(stet_sched *s, sched_action *a, stet_error *err) {
    declared d = {.s = s, .a = a, .now = true};
    stet_status status = find_declared(&d, err);
    if (status == STET_OK)
        sched_also_reads(s, a, d.reads.at, d.reads.len);
    stet_vec_release(&d.reads);
    stet_arena_release(&d.arena);
    return status;
}

static void own_output(stet_sched *s, sched_action *a) {
    if (!a->out_id)
        return;
    stet_plan_write w = {sched_doc(s, NULL, &(stet_docname){a->out_id, a->out_scope}), stet_path_ref(&a->out_path)};
    stet_plan_set_writes(s->plan, a->id, &w, 1);
}

/* Edges from the record. What an action may write is its output; the record may know of more (cells given to it). */
void sched_restore(stet_sched *s, sched_action *a, const stet_memo_action *x) {
    STET_VEC(stet_plan_read) reads = {0};
    STET_VEC(stet_plan_write) writes = {0};
    for (size_t i = 0; i < x->read_count; i++)
        *stet_vec_add(&reads) =
            (stet_plan_read){sched_doc(s, x->reads[i].space, &x->reads[i].name), x->reads[i].path, x->reads[i].kind};
    a->own_reads = 0;
    stet_plan_set_reads(s->plan, a->id, reads.at, reads.len);
    if (a->out_id)
        *stet_vec_add(&writes) = (stet_plan_write){sched_doc(s, NULL, &(stet_docname){a->out_id, a->out_scope}),
                                                   stet_path_ref(&a->out_path)};
    for (size_t i = 0; i < x->write_count; i++) {
        if (a->out_id && strcmp(x->writes[i].name.id, a->out_id) == 0 &&
            strcmp(x->writes[i].name.scope, a->out_scope) == 0 &&
            stet_path_is_prefix(stet_path_ref(&a->out_path), x->writes[i].path))
            continue;
        *stet_vec_add(&writes) =
            (stet_plan_write){sched_doc(s, x->writes[i].space, &x->writes[i].name), x->writes[i].path};
    }
    stet_plan_set_writes(s->plan, a->id, writes.at, writes.len);
    stet_vec_release(&reads);
    stet_vec_release(&writes);
}

void sched_forget_asked(stet_sched *s) {
    stet_map_clear(&s->numbers);
    stet_plan_forget_asked(s->plan);
}

void sched_note(stet_sched *s, const sched_action *a) {
    size_t count = stet_plan_count(s->plan);
    if (a->id >= count) /* a handler */
        return;
    if (s->noted.len < count) {
        stet_vec_reserve(&s->noted, count);
        memset(s->noted.at + s->noted.len, 0, count - s->noted.len);
        s->noted.len = count;
    }
    s->noted.at[a->id] = 1;
}

sched_action *sched_noted(const stet_sched *s, size_t *i) {
    while (*i < s->noted.len) {
        const uint8_t *at = memchr(s->noted.at + *i, 1, s->noted.len - *i);
        if (!at)
            break;
        *i = (size_t)(at - s->noted.at) + 1;
        sched_action *a = stet_plan_data_there(s->plan, (uint32_t)(*i - 1));
        if (a)
            return a;
    }
    *i = s->noted.len;
    return NULL;
}

static void know_number(stet_sched *s, sched_action *a, int64_t number) {
    if (!number)
        return;
    a->number = number;
    if (stet_map_get(&s->marks.unloaded, &number, sizeof number)) {
        a->came_back = a->ran = true;
        sched_note(s, a);
    }
    stet_map_put(&s->numbers, &number, sizeof number, (stet_slot){.n = a->id});
}

static uint32_t find_loaded(stet_sched *s, const sched_piece *piece, const char *node, stet_buf *name) {
    stet_buf_str(name, piece->piece->name);
    stet_buf_char(name, '/');
    stet_buf_str(name, node);
    return stet_plan_find(s->plan, name->data, name->len);
}

uint32_t sched_find_loaded(stet_sched *s, const sched_piece *piece, const char *node) {
    stet_buf name = STET_BUF(0);
    uint32_t id = find_loaded(s, piece, node, &name);
    stet_buf_release(&name);
    return id;
}

bool sched_may_make(const sched_action *a) {
    return a->role != STET_CHILD_NONE || (a->kind && a->kind->asynchronous);
}

/* Where it may write as the documents are now. */
static stet_status set_envelopes(stet_sched *s, sched_action *a, stet_error *err) {
    if (!a->materializer && stet_value_count(a->makes) == 0)
        return STET_OK;
    stet_arena arena = STET_ARENA_INIT;
    STET_VEC(stet_plan_write) writes = {0};
    stet_address *cells;
    size_t n = sched_envelopes_with(a, a->makes, &arena, &cells);
    stet_status status = STET_OK;
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        const stet_address *at;
        size_t count = 0;
        status = stet_envelopes_of(&s->envelopes, &cells[i], &at, &count, err);
        for (size_t k = 0; k < count && status == STET_OK; k++)
            *stet_vec_add(&writes) = (stet_plan_write){sched_doc(s, NULL, &at[k].name), at[k].path};
    }
    if (status == STET_OK && n > 0)
        stet_plan_set_envelopes(s->plan, a->id, writes.at, writes.len);
    stet_vec_release(&writes);
    stet_arena_release(&arena);
    return status;
}

stet_status sched_envelopes_again(stet_sched *s, stet_error *err) {
    stet_status status = STET_OK;
    stet_envelopes_release(&s->envelopes);
    sched_action *a;
    for (size_t i = 0; status == STET_OK && (a = sched_noted(s, &i));)
        if (a->materializer || stet_value_count(a->makes) > 0)
            status = set_envelopes(s, a, err);
    return status;
}

typedef struct row_source {
    stet_sched *s;
    const stet_piece *piece;
} row_source;

/* The value of a document, with what the group has written: a coordinator may have run in it. */
static stet_status load_value(void *ctx, const char *id, stet_value *value, stet_error *err) {
    const row_source *from = ctx;
    stet_sched *s = from->s;
    stet_docname name = stet_scoped(from->piece->scope, id);
    if (s->batch.members.len > 0 && strstr(id, ":children:")) {
        stet_tx *tx;
        stet_value envelope;
        stet_status status = stet_tx_begin_in(s->batch.group, &tx, err);
        if (status != STET_OK)
            return status;
        *value = stet_value_null();
        if (stet_tx_peek(tx, NULL, &name, STET_PATH_ROOT, &envelope, NULL) == STET_OK)
            *value = stet_value_retain(stet_value_get(envelope, "value"));
        stet_tx_abort(tx);
        return STET_OK;
    }
    stet_doc_state state;
    stet_status status = stet_space_load(s->space, s->branch, &name, -1, &state, err);
    if (status != STET_OK)
        return status;
    *value = state.exists ? stet_value_retain(stet_value_get(state.value, "value")) : stet_value_null();
    stet_value_release(state.value);
    return STET_OK;
}

/* What a child's node writes is wanted by who wants the output of its coordinator, which leads there; and whoever reads
 * that waits while the child runs. */
static stet_status join_coordinator(stet_sched *s, sched_action *a, stet_error *err) {
    stet_value parent = stet_value_get(a->row, "parent");
    uint32_t coordinator;
    if (stet_value_type(parent) != STET_TYPE_STRING || !stet_value_as_bool(stet_value_get(a->row, "shown"))) {
        stet_plan_set_into(s->plan, a->id, STET_PLAN_NONE);
        return STET_OK;
    }
    stet_status status = sched_load(s, a->piece->piece->key, stet_value_as_string(&parent, NULL), &coordinator, err);
    if (status == STET_OK)
        stet_plan_set_into(s->plan, a->id, coordinator);
    return status;
}

/* A node that is recorded and is not there is gone, unless a part of the graph is: then others are missing, too. */
static stet_status count_nodes(stet_sched *s, sched_piece *p, stet_status status, stet_error *err) {
    stet_process *g = NULL;
    stet_error mine = STET_ERROR_INIT;
    if (p->counted)
        return status;
    p->counted = true;
    /* As it is now: somebody else may have set it up meanwhile. */
    stet_piece *now = NULL;
    if (stet_piece_load(s->space, s->branch, p->piece->name, -1, &now, NULL) == STET_OK &&
        now->generation == p->piece->generation &&
        stet_piece_process(s->space, s->branch, now, -1, &g, &mine) == STET_CORRUPT) {
        status = STET_CORRUPT;
        if (err) {
            stet_error_clear(err);
            stet_error_move(err, &mine);
        }
    }
    stet_error_clear(&mine);
    stet_process_free(g);
    stet_piece_free(now);
    return status;
}

static stet_plan_opts plan_opts(stet_sched *s, sched_action *a) {
    int64_t rank = stet_value_as_int(stet_value_get(a->row, "rank"));
    return (stet_plan_opts){.rank = rank > 0 && rank < INT32_MAX ? (uint32_t)rank + sched_child_place(s, a) : 0,
                            .effect = a->effect,
                            .materializer = a->unasked,
                            .makes_files =
                                stet_value_count(stet_value_get(stet_value_get(a->row, "module"), "produces")) > 0,
                            .circle = a->circle,
                            .turn = a->turn,
                            .late = a->kind && a->kind->asynchronous,
                            .certain = a->piece->whole && a->certain,
                            .debounce_ms = stet_value_as_bool(stet_value_get(a->row, "noDebounce"))
                                               ? 0
                                               : stet_value_as_int(stet_value_get(a->row, "debounceMs")),
                            .throttle_ms = stet_value_as_int(stet_value_get(a->row, "throttleMs")),
                            .data = a};
}

stet_status sched_load_action(stet_sched *s, const char *piece_key, const char *node, int64_t number,
                              const stet_memo_action *x, uint32_t *id, stet_error *err) {
    stet_buf name = STET_BUF(0);
    sched_piece *piece;
    stet_status status = sched_piece_of(s, piece_key, &piece, err);
    if (status != STET_OK)
        return status;
    *id = find_loaded(s, piece, node, &name);
    if (*id != STET_PLAN_NONE) {
        know_number(s, stet_plan_data(s->plan, *id), number);
        stet_buf_release(&name);
        return STET_OK;
    }
    sched_action *a = stet_alloc_zero(sizeof *a);
    a->piece = piece;
    a->node = stet_strdup(node);
    stet_child_docs docs = {&(row_source){s, piece->piece}, load_value};
    stet_process_modules modules = sched_modules(s);
    status = stet_child_row(&docs, piece->piece, node, &modules, &s->templates, &a->row, err);
    if (status == STET_NOT_FOUND && stet_child_instance(node) == 0 && number != 0)
        status = count_nodes(s, piece, status, err);
    if (status == STET_OK && stet_stream_is_handler(a->row)) /* no action: events run it */
        status = stet_fail(err, STET_NOT_FOUND, "%s/%s is an event handler", piece->piece->name, node);
    if (status == STET_OK)
        status = sched_decode_row(a, err);
    if (status != STET_OK) {
        sched_action_free(a);
        stet_buf_release(&name);
        return status;
    }
    stet_plan_opts o = plan_opts(s, a);
    a->id = *id = stet_plan_add(s->plan, name.data, name.len, &o);
    stet_buf_release(&name);
    know_number(s, a, number);
    bool trusted = x && x->observed && stet_hash_equal(x->implementation, a->fingerprint) &&
                   stet_hash_equal(x->runtime, s->runtime);
    if (sched_may_make(a) && !(piece->whole && a->certain)) /* whether a certain one is wanted need not be found out */
        a->makes = stet_makes_of(s->space, s->branch, a->row, trusted);
    if (a->materializer || stet_value_count(a->makes) > 0)
        sched_note(s, a);
    status = set_envelopes(s, a, err);
    if (status == STET_OK)
        status = join_coordinator(s, a, err);
    if (status != STET_OK) {
        stet_plan_remove(s->plan, a->id);
        sched_forget_asked(s);
        return status;
    }
    if (trusted) {
        a->observed = a->same_code = true;
        a->failed = x->failed;
        if (a->failed)
            sched_note(s, a);
        sched_restore(s, a, x);
    } else {
        own_output(s, a);
        if (a->has_cells)
            sched_cells_recall(s, a);
        status = declare(s, a, err);
        if (status != STET_OK) {
            stet_plan_remove(s->plan, a->id);
            sched_forget_asked(s);
            return status;
        }
    }
    if (!trusted) /* what it is bound to may be the output of one that nothing needed so far */
        sched_wake(s);
    /* Whatever the record calls it: without a record that can be trusted it is unknown. */
    a->verify = !trusted || x->state == STET_STATE_UNKNOWN;
    if (!trusted || x->state == STET_STATE_UNKNOWN)
        stet_plan_mark(s->plan, a->id, STET_PLAN_UNKNOWN, INT64_MIN / 2);
    else if (x->state == STET_STATE_DIRTY)
        stet_plan_mark(s->plan, a->id, STET_PLAN_DIRTY, INT64_MIN / 2);
    if (trusted && x->state == STET_STATE_DIRTY)
        status = sched_child_mend(s, a, err);
    sched_row_drop(a);
    return status;
}

/* Of all others more than their run needs the row: children, whoever writes through inputs. */
static bool row_may_go(const sched_action *a) {
    return a->kind && a->kind->asynchronous && a->role == STET_CHILD_NONE && !a->child_doc && !a->has_cells &&
           !a->materializer && !a->effect;
}

void sched_row_drop(sched_action *a) {
    if (!row_may_go(a))
        return;
    stet_value_release(a->row);
    stet_value_release(a->view);
    a->row = a->view = stet_value_null();
}

stet_status sched_child_renew(stet_sched *s, sched_action *a, stet_error *err) {
    stet_child_docs docs = {&(row_source){s, a->piece->piece}, load_value};
    stet_process_modules modules = sched_modules(s);
    stet_value row;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_child_row(&docs, a->piece->piece, a->node, &modules, &s->templates, &row, &mine);
    if (status == STET_NOT_FOUND) { /* it goes, with the child that it is of */
        stet_error_clear(&mine);
        return STET_OK;
    }
    if (status != STET_OK) {
        stet_error_move(err, &mine);
        return status;
    }
    bool same = stet_value_equal(stet_value_get(row, "fingerprint"), stet_value_get(a->row, "fingerprint"));
    if (!same || stet_value_equal(row, a->row) || sched_async_running(s, a)) {
        stet_value_release(row); /* one that runs has the row that it began with until it ends */
        return STET_OK;
    }
    stet_value_release(a->row);
    stet_value_release(a->view);
    a->row = row;
    a->view = stet_value_null();
    decode_place(a);
    stet_plan_opts o = plan_opts(s, a);
    stet_plan_replace(s->plan, a->id, &o);
    if (a->materializer)
        sched_note(s, a);
    status = set_envelopes(s, a, err);
    return status == STET_OK ? join_coordinator(s, a, err) : status;
}

stet_status sched_row_take(stet_sched *s, sched_action *a, stet_error *err) {
    if (stet_value_type(a->row) == STET_TYPE_NULL) {
        stet_child_docs docs = {&(row_source){s, a->piece->piece}, load_value};
        stet_process_modules modules = sched_modules(s);
        stet_hash print;
        size_t len = 0;
        stet_status status = stet_child_row(&docs, a->piece->piece, a->node, &modules, &s->templates, &a->row, err);
        if (status != STET_OK)
            return status;
        stet_value text = stet_value_get(a->row, "fingerprint");
        const char *hex = stet_value_as_string(&text, &len);
        if (!hex || !stet_hash_of_hex(hex, len, &print) || !stet_hash_equal(print, a->fingerprint)) {
            sched_row_drop(a);
            return stet_fail(err, STET_NOT_FOUND, "%s/%s is another by now", a->piece->piece->name, a->node);
        }
    }
    if (stet_value_type(a->view) == STET_TYPE_NULL) {
        a->view = stet_value_retain(a->row);
        stet_value_put(&a->view, "id", stet_value_string(a->node));
    }
    return STET_OK;
}

stet_status sched_load(stet_sched *s, const char *piece_key, const char *node, uint32_t *id, stet_error *err) {
    stet_buf name = STET_BUF(0);
    sched_piece *piece;
    stet_status status = sched_piece_of(s, piece_key, &piece, err);
    if (status != STET_OK)
        return status;
    *id = find_loaded(s, piece, node, &name);
    stet_buf_release(&name);
    if (*id != STET_PLAN_NONE)
        return STET_OK;
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x;
    bool known = stet_memo_load(s->memo, piece_key, node, &arena, &x, NULL) == STET_OK;
    status = sched_load_action(s, piece_key, node, known ? x.number : 0, known ? &x : NULL, id, err);
    stet_arena_release(&arena);
    return status;
}

stet_status sched_load_new(stet_sched *s, const char *piece_key, const char *node, uint32_t *id, stet_error *err) {
    return sched_load_action(s, piece_key, node, 0, NULL, id, err);
}

bool sched_restorable(const sched_action *a) {
    return a->role == STET_CHILD_NONE && !a->child_doc && !a->has_cells && !a->materializer;
}

stet_status sched_look_again(stet_sched *s, uint32_t id, stet_error *err) {
    sched_action *a = stet_plan_data(s->plan, id);
    stet_arena arena = STET_ARENA_INIT;
    stet_memo_action x = {0};
    bool unknown = stet_plan_is_unknown(s->plan, id);
    if (!s->memo->durable || !a || a->asked || !(unknown || stet_plan_is_dirty(s->plan, id)))
        return STET_OK;
    if (!sched_restorable(a))
        return STET_OK;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_memo_load(s->memo, a->piece->piece->key, a->node, &arena, &x, &mine);
    bool trusted = status == STET_OK && x.observed && x.state != STET_STATE_UNKNOWN &&
                   stet_hash_equal(x.implementation, a->fingerprint) && stet_hash_equal(x.runtime, s->runtime);
    bool stands = trusted && x.state == STET_STATE_STANDS;
    if (stands || (trusted && !unknown)) {
        sched_restore(s, a, &x);
        a->observed = a->same_code = true;
        a->failed = x.failed;
        if (a->failed)
            sched_note(s, a);
    }
    if (stands)
        stet_plan_unmark(s->plan, id);
    else if (!trusted && !unknown)
        stet_plan_mark(s->plan, id, STET_PLAN_UNKNOWN, sched_now(s));
    stet_arena_release(&arena);
    if (status != STET_OK && status != STET_NOT_FOUND && err)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status == STET_NOT_FOUND ? STET_OK : status;
}
