/* standing.c - actions that the record does not know, and the state of all actions including them. */

#include "scheduler/standing.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "graph/stream.h"
#include "scheduler/envelope.h"
#include "scheduler/sched.h"

typedef STET_VEC(stet_unrecorded) unrecorded_list;

/* Who asks how actions stand, and the places in envelopes that were found for that. */
typedef struct asking {
    stet_space *s;                      /* the space that is asked about */
    bool far;                           /* what is unrecorded there is the asker's own matter */
    STET_VEC(stet_envelopes) envelopes; /* by space and branch */
} asking;

static stet_status open_beside(void *ctx, const char *name, stet_space **out, stet_error *err) {
    asking *q = ctx;
    *out = q->s;
    return strcmp(name, stet_space_name(q->s)) == 0 ? STET_OK : stet_observe_sibling(q->s, name, NULL, out, err);
}

static stet_status leads(void *ctx, stet_space *s, int64_t branch, const stet_address *cell, const stet_address **out,
                         size_t *count, stet_error *err) {
    asking *q = ctx;
    size_t i = 0;
    while (i < q->envelopes.len && (q->envelopes.at[i].space != s || q->envelopes.at[i].branch != branch))
        i++;
    if (i == q->envelopes.len)
        *stet_vec_add(&q->envelopes) =
            (stet_envelopes){.space = s, .branch = branch, .open = open_beside, .ctx = q, .arena = STET_ARENA_INIT};
    return stet_envelopes_of(&q->envelopes.at[i], cell, out, count, err);
}

static void stop_asking(asking *q) {
    for (size_t i = 0; i < q->envelopes.len; i++)
        stet_envelopes_release(&q->envelopes.at[i]);
    stet_vec_release(&q->envelopes);
}

typedef STET_VEC(stet_address) address_list;

static void add_address(address_list *l, const stet_docname *name, stet_pathref p, stet_arena *arena) {
    *stet_vec_add(l) =
        (stet_address){NULL,
                       {stet_arena_strdup(arena, name->id), stet_arena_strdup(arena, name->scope ? name->scope : "")},
                       {stet_arena_strndup(arena, p.bytes, p.len), p.len}};
}

/* Where it may write through a cell. */
static stet_status add_led(asking *q, stet_space *s, int64_t branch, const stet_address *cell, stet_arena *arena,
                           address_list *out, stet_error *err) {
    const stet_address *at;
    size_t count = 0;
    stet_status status = leads(q, s, branch, cell, &at, &count, err);
    for (size_t k = 0; k < count && status == STET_OK; k++)
        add_address(out, &at[k].name, at[k].path, arena);
    return status;
}

/* Where a node writes, by its row, and where it may write. In the arena. */
static stet_status add_writes(asking *q, stet_space *s, int64_t branch, stet_unrecorded *u, stet_value row,
                              stet_arena *arena, stet_error *err) {
    stet_link l;
    stet_path path = STET_PATH_INIT;
    address_list writes = {0};
    stet_value cells = stet_value_get(row, "materializer"), circle = stet_value_get(row, "circle");
    stet_status status = STET_OK;
    if (stet_value_type(circle) == STET_TYPE_STRING) {
        stet_buf name = STET_BUF(0);
        stet_buf_printf(&name, "%s@%s %s", u->piece, u->scope ? u->scope : "", stet_value_as_string(&circle, NULL));
        u->circle = stet_arena_strndup(arena, name.data, name.len);
        stet_buf_release(&name);
    }
    stet_path_push(&path, "value");
    if (stet_link_read(stet_value_get(row, "output"), &l, &path) && !l.space)
        add_address(&writes, &(stet_docname){l.id, l.scope}, stet_path_ref(&path), arena);
    u->sure = writes.len;
    for (size_t i = 0; i < stet_value_count(cells) && status == STET_OK; i++) {
        path.buf.len = 0;
        stet_path_push(&path, "value");
        if (stet_link_read(stet_value_at(cells, i), &l, &path) && !l.space)
            status = add_led(q, s, branch, &(stet_address){NULL, {l.id, l.scope}, stet_path_ref(&path)}, arena, &writes,
                             err);
    }
    stet_value makes = stet_makes_of(s, branch, row, false);
    for (size_t i = 0; i < stet_value_count(makes) && status == STET_OK; i++) {
        stet_value made = stet_value_at(makes, i);
        stet_address cell = stet_makes_cell(stet_value_as_string(&made, NULL), arena);
        status = add_led(q, s, branch, &cell, arena, &writes, err);
    }
    stet_value_release(makes);
    u->writes = writes.len > 0 ? stet_arena_dup(arena, writes.at, writes.len * sizeof *writes.at) : NULL;
    u->count = writes.len;
    stet_vec_release(&writes);
    stet_path_release(&path);
    return status;
}

/* `most`: children that can't be read are left out. */
static stet_status graph_of(stet_space *s, int64_t branch, const char *name, bool most, stet_piece **p,
                            stet_process **g, stet_error *err) {
    *g = NULL;
    stet_status status = stet_piece_load(s, branch, name, -1, p, err);
    if (status != STET_OK)
        return status;
    status = stet_piece_process(s, branch, *p, -1, g, err);
    if (status == STET_OK)
        status = stet_piece_children(s, branch, -1, *g, NULL, err);
    if (most && *g && (status == STET_CORRUPT || status == STET_NOT_FOUND)) {
        stet_error_clear(err);
        status = STET_OK;
    }
    if (status != STET_OK) {
        stet_process_free(*g);
        stet_piece_free(*p);
        *g = NULL;
        *p = NULL;
    }
    return status;
}

static stet_status whole_graph(stet_space *s, int64_t branch, const char *name, stet_piece **p, stet_process **g,
                               stet_error *err) {
    return graph_of(s, branch, name, false, p, g, err);
}

static bool note_name(void *ctx, int64_t action, const char *name, size_t name_len, const void *bytes, size_t len) {
    (void)action, (void)bytes, (void)len;
    stet_map_put(ctx, name, name_len, (stet_slot){.n = 1});
    return true;
}

/* Those of one piece. A graph that can't be read has no actions that could run: `stet check` tells of it. Children that
 * can't be read do not hide the others. */
static stet_status missing_of(asking *q, stet_space *s, int64_t branch, const char *name, stet_arena *arena,
                              unrecorded_list *out, stet_error *err) {
    stet_piece *p;
    stet_process *g;
    stet_error mine = STET_ERROR_INIT;
    stet_map known = {0};
    stet_status status = graph_of(s, branch, name, true, &p, &g, &mine);
    if (status == STET_CORRUPT || status == STET_NOT_FOUND) {
        stet_error_clear(&mine);
        return STET_OK;
    }
    if (status != STET_OK) {
        stet_error_move(err, &mine);
        return status;
    }
    stet_action_filter filter = {.piece = p->doc, .scope = p->scope, .generation = -1};
    /* What another version recorded does not count. */
    if (stet_hash_equal(p->runtime, stet_sched_runtime(NULL)))
        status = stet_observe_scan(s, branch, &filter, note_name, &known, err);
    const char *doc = stet_arena_strdup(arena, p->doc), *scope = stet_arena_strdup(arena, p->scope);
    for (size_t i = 0; i < g->node_count && status == STET_OK; i++) {
        const stet_process_node *n = &g->nodes[i];
        if (stet_stream_is_handler(n->row) || stet_map_get(&known, n->id, strlen(n->id)))
            continue;
        stet_unrecorded u = {.piece = doc, .scope = scope, .action = stet_arena_strdup(arena, n->id), .missing = true};
        status = add_writes(q, s, branch, &u, n->row, arena, err);
        *stet_vec_add(out) = u;
    }
    stet_map_release(&known);
    stet_process_free(g);
    stet_piece_free(p);
    return status;
}

/* Calls `visit` for each piece of the branch. */
typedef stet_status (*piece_visit)(void *ctx, const char *name, stet_error *err);
static stet_status each_piece(stet_space *s, int64_t branch, piece_visit visit, void *ctx, stet_error *err) {
    enum { PAGE = 1000 };
    char *after = NULL;
    stet_status status = STET_OK;
    for (bool more = true; more && status == STET_OK;) {
        stet_value names = stet_value_null();
        status = stet_piece_names(s, branch, after, PAGE, &names, &more, err);
        size_t n = stet_value_count(names);
        for (size_t i = 0; i < n && status == STET_OK; i++) {
            stet_value name = stet_value_at(names, i);
            status = visit(ctx, stet_value_as_string(&name, NULL), err);
        }
        more = more && n > 0;
        stet_free(after);
        stet_value last = n > 0 ? stet_value_at(names, n - 1) : stet_value_null();
        after = n > 0 ? stet_strdup(stet_value_as_string(&last, NULL)) : NULL;
        stet_value_release(names);
    }
    stet_free(after);
    return status;
}

typedef struct gathering {
    asking *q;
    stet_space *s;
    int64_t branch;
    stet_arena *arena;
    unrecorded_list *out;
} gathering;

static stet_status gather(void *ctx, const char *name, stet_error *err) {
    gathering *g = ctx;
    return missing_of(g->q, g->s, g->branch, name, g->arena, g->out, err);
}

/* Marked unknown: what they write is what their graph says now, and not what was seen once. */
static stet_status unknown_of(asking *q, stet_space *s, int64_t branch, const stet_marked *marked, size_t count,
                              stet_arena *arena, unrecorded_list *out, stet_error *err) {
    enum { FEW = 8 }; /* so many rows cost less than the whole graph */
    stet_status status = STET_OK;
    for (size_t i = 0; i < count && status == STET_OK;) {
        stet_action_record r = {0};
        stet_piece *p = NULL;
        stet_process *g = NULL;
        size_t from = out->len;
        stet_docname of = {NULL, NULL};
        for (; i < count && status == STET_OK; i++) {
            if (marked[i].state != STET_STATE_UNKNOWN)
                continue;
            status = stet_observe_brief(s, marked[i].action, arena, &r, err);
            if (status == STET_NOT_FOUND) { /* a mark that is left of an action that is not there any more */
                stet_error_clear(err);
                status = STET_OK;
                continue;
            }
            if (status != STET_OK || (of.id && (strcmp(of.id, r.key.piece) != 0 || strcmp(of.scope, r.key.scope) != 0)))
                break;
            of = (stet_docname){r.key.piece, r.key.scope};
            *stet_vec_add(out) =
                (stet_unrecorded){.piece = of.id, .scope = of.scope, .action = r.key.action, .number = r.action};
        }
        if (status != STET_OK || !of.id)
            break;
        char *name = stet_piece_of(&of);
        size_t n = out->len - from;
        if (name && n > FEW && whole_graph(s, branch, name, &p, &g, NULL) != STET_OK)
            p = NULL;
        else if (name && n <= FEW && stet_piece_load(s, branch, name, -1, &p, NULL) != STET_OK)
            p = NULL;
        stet_free(name);
        for (size_t k = from; k < out->len && p && status == STET_OK; k++) {
            const stet_process_node *node = g ? stet_process_find(g, out->at[k].action) : NULL;
            stet_value row = stet_value_null();
            if (node)
                row = stet_value_retain(node->row);
            else if (g || stet_piece_row(s, branch, p, out->at[k].action, &row, NULL) != STET_OK)
                continue;
            status = add_writes(q, s, branch, &out->at[k], row, arena, err);
            stet_value_release(row);
        }
        stet_process_free(g);
        stet_piece_free(p);
    }
    return status;
}

/* What they wrote last is not what they should have written. Where they were seen to write the tables know; this is
 * where they write by their graph. */
static stet_status failed_of(asking *q, stet_space *s, int64_t branch, stet_arena *arena, unrecorded_list *out,
                             stet_error *err) {
    stet_numbers failed = {0};
    size_t from = out->len;
    stet_status status = stet_observe_failed(s, branch, NULL, NULL, &failed, err);
    stet_marked *marks = stet_alloc_zero((failed.len + 1) * sizeof *marks);
    for (size_t i = 0; i < failed.len; i++)
        marks[i] = (stet_marked){.action = failed.at[i], .state = STET_STATE_UNKNOWN};
    if (status == STET_OK)
        status = unknown_of(q, s, branch, marks, failed.len, arena, out, err);
    for (size_t i = from; i < out->len; i++)
        out->at[i].failed = true;
    stet_free(marks);
    stet_numbers_release(&failed);
    return status;
}

static stet_status unrecorded(void *ctx, stet_space *s, int64_t branch, const stet_marked *marked, size_t count,
                              stet_arena *arena, stet_unrecorded **out, size_t *out_count, stet_error *err) {
    unrecorded_list list = {0};
    asking *q = ctx;
    bool own = q->far && q->s == s; /* of the space that is asked about, they are the asker's own matter */
    if (own)
        count = 0;
    bool complete;
    stet_hash runtime = stet_sched_runtime(NULL);
    stet_status status = stet_observe_complete(s, branch, &runtime, &complete, err);
    if (status == STET_OK && !complete && !own)
        status = each_piece(s, branch, gather, &(gathering){q, s, branch, arena, &list}, err);
    if (status == STET_OK)
        status = unknown_of(q, s, branch, marked, count, arena, &list, err);
    if (status == STET_OK)
        status = failed_of(q, s, branch, arena, &list, err);
    *out = stet_arena_dup(arena, list.at ? (void *)list.at : (void *)"", list.len * sizeof *list.at);
    *out_count = list.len;
    stet_vec_release(&list);
    return status;
}

static stet_status ask(asking *q, int64_t branch, stet_standing *out, stet_error *err) {
    stet_status status = stet_observe_standing(q->s, branch, &(stet_standing_source){q, unrecorded, leads}, out, err);
    stop_asking(q);
    return status;
}

stet_status stet_standing_load(stet_space *s, int64_t branch, stet_standing *out, stet_error *err) {
    return ask(&(asking){.s = s}, branch, out, err);
}

stet_status stet_standing_load_far(stet_space *s, int64_t branch, stet_standing *out, stet_error *err) {
    return ask(&(asking){.s = s, .far = true}, branch, out, err);
}

typedef struct left_over {
    const stet_process *now;
    STET_VEC(const char *) ids;
    stet_arena arena;
} left_over;

static bool note_left_over(void *ctx, int64_t action, const char *name, size_t len, const void *bytes, size_t size) {
    left_over *l = ctx;
    (void)action, (void)bytes, (void)size;
    char *id = stet_arena_strndup(&l->arena, name, len);
    if (!stet_process_find(l->now, id))
        *stet_vec_add(&l->ids) = id;
    return true;
}

static stet_action_key *keys_of(const stet_piece *p, const char *const *ids, size_t count) {
    stet_action_key *keys = stet_alloc((count ? count : 1) * sizeof *keys);
    for (size_t i = 0; i < count; i++)
        keys[i] = stet_piece_action(p, ids[i]);
    return keys;
}

/* Records of nodes that went while nothing was recorded. */
static stet_status forget_left_over(stet_space *s, int64_t branch, const stet_piece *p, stet_error *err) {
    stet_process *g = NULL;
    stet_piece *again = NULL;
    stet_status status = whole_graph(s, branch, p->name, &again, &g, err);
    if (status != STET_OK)
        return status;
    left_over l = {.now = g};
    stet_action_filter filter = {.piece = p->doc, .scope = p->scope, .generation = -1};
    status = stet_observe_scan(s, branch, &filter, note_left_over, &l, err);
    if (status == STET_OK && l.ids.len > 0) {
        stet_action_key *keys = keys_of(p, l.ids.at, l.ids.len);
        status = stet_observe_forget(s, branch, p->doc, p->scope, keys, l.ids.len, err);
        free(keys);
    }
    stet_vec_release(&l.ids);
    stet_arena_release(&l.arena);
    stet_process_free(g);
    stet_piece_free(again);
    return status;
}

static stet_status write_runtime(stet_tx *tx, void *ctx, stet_error *err) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(stet_sched_runtime(NULL), hex);
    stet_path path = STET_PATH_INIT;
    stet_docname result = stet_piece_name(ctx, NULL);
    stet_path_push(&path, "process");
    stet_path_push(&path, "runtime");
    stet_status status = stet_tx_write(tx, &result, stet_path_ref(&path), stet_value_string(hex), err);
    stet_path_release(&path);
    return status;
}

static stet_status branch_name(stet_space *s, int64_t branch, stet_arena *arena, const char **out, stet_error *err) {
    stet_branch_info *at;
    size_t count = 0;
    *out = "";
    if (branch == 0)
        return STET_OK;
    stet_status status = stet_space_branches(s, NULL, false, STET_BRANCH_MAX, arena, &at, &count, err);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        if (at[i].branch == branch)
            *out = at[i].name;
    return status;
}

/* Unknown first, then the piece is one of this version: a crash in between does no harm. */
static stet_status take_over(stet_space *s, int64_t branch, stet_piece *p, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    const char *name;
    stet_status status = forget_left_over(s, branch, p, err);
    if (status == STET_OK)
        status = branch_name(s, branch, &arena, &name, err);
    if (status == STET_OK)
        status = stet_space_transact(s, name, write_runtime, p, NULL, err);
    stet_arena_release(&arena);
    return status;
}

stet_status stet_standing_adopt_piece(stet_space *s, int64_t branch, const char *name, stet_error *err) {
    enum { AT_ONCE = 100000 }; /* each is harmless by itself, and a million would take half a gigabyte */
    stet_arena arena = STET_ARENA_INIT;
    unrecorded_list list = {0};
    stet_piece *p = NULL;
    asking q = {.s = s};
    stet_status status = missing_of(&q, s, branch, name, &arena, &list, err);
    bool other = false;
    stop_asking(&q);
    if (status == STET_OK && stet_piece_load(s, branch, name, -1, &p, NULL) == STET_OK)
        other = !stet_hash_equal(p->runtime, stet_sched_runtime(NULL));
    stet_reason reason = other ? STET_REASON_RUNTIME : branch == 0 ? STET_REASON_LOST : STET_REASON_BRANCH;
    stet_action_key *keys = stet_alloc((list.len ? list.len : 1) * sizeof *keys);
    for (size_t i = 0; i < list.len; i++)
        keys[i] = (stet_action_key){list.at[i].piece, list.at[i].scope, list.at[i].action};
    for (size_t i = 0; i < list.len && status == STET_OK; i += AT_ONCE)
        status =
            stet_observe_distrust(s, branch, keys + i, list.len - i < AT_ONCE ? list.len - i : AT_ONCE, reason, err);
    if (status == STET_OK && other && list.len > 0) {
        status = take_over(s, branch, p, err);
    } else if (status == STET_OK && p && !other) {
        stet_error mine = STET_ERROR_INIT;
        status = forget_left_over(s, branch, p, &mine);
        if (status == STET_CORRUPT || status == STET_NOT_FOUND) /* of a graph that can't be read nothing is known */
            status = STET_OK;
        else
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
    }
    free(keys);
    stet_piece_free(p);
    stet_vec_release(&list);
    stet_arena_release(&arena);
    return status;
}

static stet_status adopt(void *ctx, const char *name, stet_error *err) {
    gathering *g = ctx;
    return stet_standing_adopt_piece(g->s, g->branch, name, err);
}

stet_status stet_standing_adopt(stet_space *s, int64_t branch, stet_error *err) {
    bool complete;
    stet_hash runtime = stet_sched_runtime(NULL);
    stet_status status = stet_observe_complete(s, branch, &runtime, &complete, err);
    if (status != STET_OK || complete)
        return status;
    status = stet_observe_set_complete(s, branch, NULL, err);
    if (status == STET_OK)
        status = each_piece(s, branch, adopt, &(gathering){.s = s, .branch = branch}, err);
    return status == STET_OK ? stet_observe_set_complete(s, branch, &runtime, err) : status;
}

typedef struct input_search {
    const char *space;
    stet_buf found;
} input_search;

static bool meet_input(void *ctx, stet_value binding, stet_pathref place) {
    input_search *i = ctx;
    stet_link l;
    stet_path path = STET_PATH_INIT;
    bool is = stet_link_read(binding, &l, &path) && l.space && strcmp(l.space, i->space) == 0;
    stet_path_release(&path);
    if (is)
        stet_path_print(place, &i->found);
    return !is;
}

static stet_status add_absent(stet_space *s, int64_t branch, const char *piece, const char *space, int64_t action,
                              stet_value *out, stet_error *err) {
    stet_arena arena = STET_ARENA_INIT;
    stet_action_record r;
    stet_piece *p = NULL;
    stet_value row = stet_value_null();
    stet_status status = stet_observe_brief(s, action, &arena, &r, err);
    char *name = status == STET_OK ? stet_piece_of_action(&r.key) : NULL;
    bool reads = false; /* an index row may be left of a record that was damaged */
    for (size_t i = 0; name && i < r.read_count && !reads; i++)
        reads = !r.reads[i].space && strncmp(r.reads[i].name.id, STET_SPACE_PREFIX, strlen(STET_SPACE_PREFIX)) == 0 &&
                strcmp(r.reads[i].name.id + strlen(STET_SPACE_PREFIX), space) == 0;
    if (reads && (!piece || strcmp(piece, name) == 0)) {
        input_search i = {.space = space, .found = STET_BUF(0)};
        if (stet_piece_load(s, branch, name, -1, &p, NULL) == STET_OK &&
            stet_piece_row(s, branch, p, r.key.action, &row, NULL) == STET_OK)
            stet_binding_walk(stet_value_get(row, "inputs"), meet_input, &i);
        stet_value v = stet_value_object();
        stet_value_put(&v, "space", stet_value_string(space));
        stet_value_put(&v, "piece", stet_value_string(name));
        stet_value_put(&v, "action", stet_value_string(r.key.action));
        if (i.found.len > 1)
            stet_value_put(&v, "input", stet_value_string_n(i.found.data + 1, i.found.len - 1));
        stet_value_push(out, v);
        stet_buf_release(&i.found);
    }
    stet_free(name);
    stet_value_release(row);
    stet_piece_free(p);
    stet_arena_release(&arena);
    return status;
}

stet_status stet_standing_absent(stet_space *s, int64_t branch, const char *piece, stet_value *out, stet_error *err) {
    enum { TOLD = 20 };
    stet_arena arena = STET_ARENA_INIT;
    stet_absent_space *at = NULL;
    size_t count;
    *out = stet_value_array();
    stet_status status = stet_observe_absent(s, &arena, &at, &count, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_numbers readers = {0};
        char *id = stet_asprintf(STET_SPACE_PREFIX "%s", at[i].name);
        if (!at[i].exists)
            status =
                stet_observe_readers(s, branch, &(stet_docname){id, NULL}, STET_PATH_ROOT, STET_VALUE, &readers, err);
        for (size_t k = 0; k < readers.len && stet_value_count(*out) < TOLD && status == STET_OK; k++)
            status = add_absent(s, branch, piece, at[i].name, readers.at[k], out, err);
        stet_numbers_release(&readers);
        stet_free(id);
    }
    stet_arena_release(&arena);
    if (status != STET_OK) {
        stet_value_release(*out);
        *out = stet_value_null();
    }
    return status;
}

void stet_standing_print_absent(stet_value absent, stet_buf *out) {
    stet_value space = stet_value_get(absent, "space"), piece = stet_value_get(absent, "piece"),
               node = stet_value_get(absent, "action"), input = stet_value_get(absent, "input");
    stet_buf_printf(out, "space \"%s\" does not exist (", stet_value_as_string(&space, NULL));
    if (stet_value_type(input) == STET_TYPE_STRING)
        stet_buf_printf(out, "input \"%s\" of node %s/%s)", stet_value_as_string(&input, NULL),
                        stet_value_as_string(&piece, NULL), stet_value_as_string(&node, NULL));
    else
        stet_buf_printf(out, "node %s/%s follows a link there)", stet_value_as_string(&piece, NULL),
                        stet_value_as_string(&node, NULL));
}
