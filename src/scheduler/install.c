/* install.c - sets up a piece as its pattern says, and removes it. */

#include "graph/argument.h"
#include "graph/stream.h"
#include "scheduler/sched_internal.h"
#include "scheduler/standing.h"

static stet_status fingerprint(void *ctx, stet_value descriptor, stet_hash *out, stet_error *err) {
    stet_sched *s = ctx;
    stet_value type = stet_value_get(descriptor, "type");
    const stet_module_kind *kind =
        stet_value_type(type) == STET_TYPE_STRING ? stet_module_find(stet_value_as_string(&type, NULL)) : NULL;
    void *state;
    if (!kind)
        return stet_module_check(NULL, descriptor, stet_value_null(), err);
    stet_status status = sched_kind_state(s, kind, &state, err);
    return status == STET_OK ? kind->fingerprint(state, descriptor, out, err) : status;
}

static stet_input_use use(void *ctx, stet_value descriptor, const char *input, size_t len) {
    (void)ctx;
    stet_value type = stet_value_get(descriptor, "type");
    const stet_module_kind *kind =
        stet_value_type(type) == STET_TYPE_STRING ? stet_module_find(stet_value_as_string(&type, NULL)) : NULL;
    return kind && kind->use ? kind->use(descriptor, input, len) : STET_INPUT_MAYBE;
}

stet_process_modules sched_modules(stet_sched *s) {
    return (stet_process_modules){s, &s->templates, fingerprint, use};
}

typedef STET_VEC(const char *) id_list;

typedef struct installing {
    stet_sched *s;
    stet_pattern *pattern;
    char *key; /* of the piece */
    stet_process *process, *old;
    stet_piece *before;
    stet_process_diff diff;
    stet_value source, set, unset;
    STET_VEC(char *) children; /* actions of children that are gone */
    bool new_runtime;          /* it was set up by another version: nothing that is recorded counts */
} installing;

static void look_release(installing *in) {
    for (size_t i = 0; i < in->children.len; i++)
        stet_free(in->children.at[i]);
    stet_vec_clear(&in->children);
    stet_process_diff_release(&in->diff);
    stet_process_free(in->old);
    stet_piece_free(in->before);
    in->diff = (stet_process_diff){0};
    in->old = NULL;
    in->before = NULL;
}

/* What is there now, and what differs. A damaged piece counts as none, and is made anew; of one whose graph alone is
 * damaged, what was set is still known. */
static stet_status look(installing *in, stet_error *err) {
    stet_sched *s = in->s;
    stet_error mine = STET_ERROR_INIT;
    look_release(in);
    stet_status status = stet_piece_load(s->space, s->branch, in->process->piece, -1, &in->before, &mine);
    if (status == STET_OK)
        status = stet_piece_process(s->space, s->branch, in->before, -1, &in->old, &mine);
    if (status != STET_OK && status != STET_NOT_FOUND && status != STET_CORRUPT) {
        if (err)
            stet_error_move(err, &mine);
        else
            stet_error_clear(&mine);
        return status;
    }
    stet_error_clear(&mine);
    if (in->before && in->before->rebuild) {
        stet_process_free(in->old);
        in->old = NULL;
    }
    in->process->generation = in->before ? in->before->generation + 1 : 1;
    in->new_runtime = in->before && s->memo->durable && !stet_hash_equal(in->before->runtime, s->runtime);
    stet_process_compare(in->old, in->process, &in->diff);
    return STET_OK;
}

typedef struct leaving {
    installing *in;
    stet_tx *tx;
} leaving;

static stet_status peek_value(void *ctx, const char *id, stet_value *value, stet_error *err) {
    const leaving *l = ctx;
    stet_value envelope;
    (void)err;
    stet_docname name = stet_process_name(l->in->process, id);
    *value = stet_value_null();
    if (stet_tx_peek(l->tx, NULL, &name, STET_PATH_ROOT, &envelope, NULL) == STET_OK)
        *value = stet_value_retain(stet_value_get(envelope, "value"));
    return STET_OK;
}

static stet_status drop_doc(void *ctx, const char *id, stet_error *err) {
    const leaving *l = ctx;
    stet_docname name = stet_process_name(l->in->process, id);
    return stet_tx_drop(l->tx, &name, err);
}

static stet_status drop_node(void *ctx, const char *id, stet_error *err) {
    const leaving *l = ctx;
    *stet_vec_add(&l->in->children) = stet_strdup(id);
    (void)err;
    return STET_OK;
}

/* A coordinator that stays one sorts its children out when it runs; one that is gone, or is something else now, takes
 * them with it. */
static stet_status drop_children(installing *in, stet_tx *tx, stet_error *err) {
    leaving l = {in, tx};
    stet_child_docs docs = {&l, peek_value};
    stet_child_visitor visit = {&l, drop_node, drop_doc};
    stet_status status = STET_OK;
    for (size_t i = 0; in->old && i < in->diff.len && status == STET_OK; i++) {
        const char *id = in->diff.at[i].id;
        const stet_process_node *was = stet_process_find(in->old, id), *now = stet_process_find(in->process, id);
        if (was && stet_child_role_of(was->row) != STET_CHILD_NONE &&
            (!now || stet_child_role_of(now->row) == STET_CHILD_NONE))
            status = stet_child_walk_all(&docs, in->process->piece, id, &visit, err);
    }
    return status;
}

static stet_piece_setup setup_of(const installing *in, stet_group *g) {
    return (stet_piece_setup){.process = in->process,
                              .pattern = in->pattern,
                              .before = in->before,
                              .before_process = in->old,
                              .diff = &in->diff,
                              .runtime = in->s->memo->durable ? in->s->runtime : stet_piece_unrecorded(),
                              .branch = in->s->branch,
                              .group = g,
                              .source = in->source,
                              .set = in->set,
                              .unset = in->unset};
}

/* Will argument and cells be what the pattern wants? Asked before anything is written. */
static stet_status rehearse(const installing *in, stet_error *err) {
    stet_tx *tx;
    stet_piece_setup setup = setup_of(in, NULL);
    stet_status status = STET_OK;
    if (!in->before && stet_value_count(in->unset) > 0) {
        stet_piece *p = NULL;
        status = stet_piece_load(in->s->space, in->s->branch, in->process->piece, -1, &p, err);
        stet_piece_free(p);
    }
    if (status == STET_OK)
        status = stet_tx_begin(in->s->space, in->s->branch_name, &tx, err);
    if (status != STET_OK)
        return status;
    status = stet_piece_follow(tx, &setup, err);
    stet_tx_abort(tx);
    return status;
}

typedef struct ranked {
    int64_t rank;
    size_t place;
    const char *id;
} ranked;

static int by_rank(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Which actions can't be trusted after this, and which are gone. A handler has no record: one that was a computation
 * under the same name leaves that behind. */
static void sort_out(const installing *in, id_list *fresh, id_list *gone) {
    bool all = in->new_runtime;
    for (size_t i = 0; i < in->diff.len; i++) {
        const stet_process_change *c = &in->diff.at[i];
        bool handler =
            c->kind != STET_CHANGE_GONE && stet_stream_is_handler(stet_process_find(in->process, c->id)->row);
        if (c->kind == STET_CHANGE_GONE || (c->kind == STET_CHANGE_CHANGED && handler))
            *stet_vec_add(gone) = c->id;
        else if (c->kind != STET_CHANGE_MOVED && !all && !handler)
            *stet_vec_add(fresh) = c->id;
    }
    for (size_t i = 0; all && i < in->process->node_count; i++)
        if (!stet_stream_is_handler(in->process->nodes[i].row)) /* no action: nothing is recorded of it */
            *stet_vec_add(fresh) = in->process->nodes[i].id;
    /* Numbers are given in this order, and what waits is taken up in the order of numbers: writers first. */
    ranked *order = stet_alloc((fresh->len + 1) * sizeof *order);
    for (size_t i = 0; i < fresh->len; i++)
        order[i] =
            (ranked){stet_value_as_int(stet_value_get(stet_process_find(in->process, fresh->at[i])->row, "rank")), i,
                     fresh->at[i]};
    qsort(order, fresh->len, sizeof *order, by_rank);
    for (size_t i = 0; i < fresh->len; i++)
        fresh->at[i] = order[i].id;
    free(order);
}

/* Records go and are distrusted with the graph that they were of: whoever dies before leaves the old graph with its
 * records, whoever dies after leaves the new one. */
static stet_status turn_over(const installing *in, stet_tx *tx, stet_error *err) {
    id_list fresh = {0}, gone = {0};
    sort_out(in, &fresh, &gone);
    for (size_t i = 0; i < in->children.len; i++)
        *stet_vec_add(&gone) = in->children.at[i];
    stet_turnover t = {.gone = gone.at,
                       .gone_count = gone.len,
                       .all_gone = in->before && !in->old, /* which nodes there were is not known */
                       .unknown = fresh.at,
                       .unknown_count = fresh.len,
                       .reason = in->new_runtime ? STET_REASON_RUNTIME
                                 : in->before    ? STET_REASON_GENERATION
                                                 : STET_REASON_NEVER};
    stet_status status = stet_memo_turn_over(in->s->memo, tx, in->key, t, err);
    stet_vec_release(&fresh);
    stet_vec_release(&gone);
    return status;
}

/* The transaction that finishes setup: a group, stored as one. */
static stet_status install(installing *in, stet_group *g, stet_error *err) {
    stet_piece_setup setup = setup_of(in, g);
    stet_tx *tx;
    stet_value seen;
    stet_status status = stet_piece_write_rows(&setup, err);
    if (status == STET_OK)
        status = stet_tx_begin_in(g, &tx, err);
    if (status != STET_OK)
        return status;
    /* What was looked at must still be so. */
    stet_docname result = stet_process_name(in->process, NULL);
    if (stet_tx_read(tx, NULL, &result, STET_PATH_ROOT, STET_RECURSIVE, &seen, NULL) != STET_OK)
        seen = stet_value_null();
    int64_t now = stet_value_as_int(stet_value_get(stet_value_get(seen, "process"), "generation"));
    if (now != (in->before ? in->before->generation : 0) && in->before)
        status =
            stet_fail(err, STET_CONFLICT, "piece \"%s\" was set up by somebody else meanwhile", in->process->piece);
    if (status == STET_OK)
        status = stet_piece_write(tx, &setup, err);
    if (status == STET_OK)
        status = drop_children(in, tx, err);
    if (status == STET_OK)
        status = turn_over(in, tx, err);
    if (status == STET_OK)
        status = stet_group_add(g, tx, NULL, NULL, err);
    if (status != STET_OK) {
        stet_tx_abort(tx);
        return status;
    }
    size_t n = stet_group_len(g);
    status = stet_group_flush(g, err);
    stet_member m;
    for (size_t i = 0; status == STET_OK && i < n; i++) {
        stet_group_at(g, i, &m);
        if (m.outcome == STET_MEMBER_DROPPED)
            status = stet_fail(err, STET_CONFLICT, "piece \"%s\": %s", in->process->piece, m.error->message);
    }
    return status;
}

/* Again on a conflict, with a new look. */
static stet_status install_until_it_holds(installing *in, stet_error *err) {
    for (int attempt = 0;; attempt++) {
        stet_group *g;
        stet_error mine = STET_ERROR_INIT;
        stet_status status = stet_group_begin(in->s->space, in->s->branch_name, &g, &mine);
        if (status == STET_OK) {
            status = install(in, g, &mine);
            stet_group_end(g);
        }
        if (status == STET_CONFLICT && attempt < 10) {
            stet_error_clear(&mine);
            status = look(in, err);
            if (status != STET_OK)
                return status;
            continue;
        }
        if (err)
            stet_error_move(err, &mine);
        else
            stet_error_clear(&mine);
        return status;
    }
}

/* The same program, set up by somebody else while we waited: nothing but where it came from and the argument. */
static stet_status write_rest(stet_tx *tx, void *ctx, stet_error *err) {
    installing *in = ctx;
    stet_status status = STET_OK;
    stet_docname result = stet_process_name(in->process, NULL);
    if (stet_value_type(in->source) != STET_TYPE_NULL)
        status = stet_tx_write_member(tx, &result, "source", stet_value_retain(in->source), err);
    if (status == STET_OK)
        status = stet_piece_adjust(tx, in->s->branch, in->before, in->unset, in->set, err);
    return status;
}

static stet_status replace(installing *in, stet_sched_installed *out, stet_error *err) {
    stet_sched *s = in->s;
    /* What the branch inherited is told apart from what is new before the graph is another one. */
    stet_status status = s->memo->durable ? stet_standing_adopt(s->space, s->branch, err)
                                          : stet_observe_set_complete(s->space, s->branch, NULL, err);
    if (status == STET_OK)
        status = look(in, err);
    if (status != STET_OK)
        return status;
    if (in->before && in->old && !in->new_runtime && in->before->marked && in->diff.len == 0 &&
        stet_hash_equal(in->before->program, in->process->program)) {
        *out = (stet_sched_installed){.generation = in->before->generation, .kept = in->diff.kept};
        return stet_space_transact(s->space, s->branch_name, write_rest, in, NULL, err);
    }
    status = rehearse(in, err);
    if (status == STET_OK && !in->pattern->use_up)
        status = stet_piece_keep_program(s->space, s->branch_name, in->pattern, err);
    if (status == STET_OK)
        status = stet_piece_keep_schemas(s->space, s->branch_name, in->process, err);
    if (status == STET_OK)
        status = install_until_it_holds(in, err);
    *out = (stet_sched_installed){.created = !in->before,
                                  .changed = in->before != NULL,
                                  .generation = in->process->generation,
                                  .kept = in->diff.kept};
    for (size_t i = 0; i < in->diff.len; i++) {
        out->added += in->diff.at[i].kind == STET_CHANGE_ADDED;
        out->altered += in->diff.at[i].kind == STET_CHANGE_CHANGED;
        out->gone += in->diff.at[i].kind == STET_CHANGE_GONE;
    }
    return status;
}

/* Forgets what is in memory of a piece whose graph was replaced. */
static void unload(stet_sched *s, const char *key) {
    sched_forget_asked(s);
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (a && strcmp(a->piece->piece->key, key) == 0 &&
            stet_plan_find(s->plan, stet_plan_name(s->plan, (uint32_t)i),
                           strlen(stet_plan_name(s->plan, (uint32_t)i))) == i)
            stet_plan_remove(s->plan, (uint32_t)i);
    }
    stet_slot *slot = stet_map_get(&s->pieces, key, strlen(key));
    if (slot) {
        sched_piece *p = slot->p;
        stet_piece *fresh = NULL;
        if (stet_piece_load(s->space, s->branch, p->piece->name, -1, &fresh, NULL) == STET_OK) {
            stet_piece_free(p->piece);
            p->piece = fresh;
            p->entered = p->loaded = false;
            p->level = -1;
        }
    }
}

void sched_install_news(stet_sched *s, const stet_doc_change *change, int64_t seq) {
    char *piece = *change->name.scope ? stet_piece_key_of(&change->name) : NULL;
    const char *id = *change->name.scope ? piece : change->name.id;
    stet_slot *slot = id ? stet_map_get(&s->pieces, id, strlen(id)) : NULL;
    sched_piece *p = slot ? slot->p : NULL;
    stet_free(piece);
    for (size_t i = 0; p && i < change->len && p->piece->seq < seq && !p->outdated; i++)
        p->outdated = stet_touches(change->at[i].path, change->at[i].kind, stet_path_ref(&s->ground), STET_RECURSIVE);
    s->outdated = s->outdated || (p && p->outdated);
}

void sched_renew(stet_sched *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->pieces, &i, &key, &len, &slot);) {
        sched_piece *p = slot->p;
        if (p->outdated)
            unload(s, p->piece->key);
        p->outdated = false;
    }
    s->outdated = false;
}

stet_status stet_sched_install(stet_sched *s, stet_pattern *pattern, const char *piece, stet_value source,
                               stet_value set, stet_sched_installed *out, stet_error *err) {
    stet_sched_setup setup = {.pattern = pattern, .piece = piece, .source = source, .set = set};
    return stet_sched_set_up(s, &setup, out, err);
}

stet_status stet_sched_set_up(stet_sched *s, const stet_sched_setup *setup, stet_sched_installed *out,
                              stet_error *err) {
    stet_pattern *pattern = setup->pattern;
    if (!stet_piece_name_valid(setup->piece)) {
        stet_fail(err, STET_INVALID, "\"%s\" is no name for a piece", setup->piece);
        stet_hint(err, "use letters, digits, \"_\", \"-\" and \".\", and for another scope \"@SCOPE\" after that");
        return STET_INVALID;
    }
    stet_process_modules modules = sched_modules(s);
    installing in = {.s = s,
                     .pattern = pattern,
                     .key = stet_piece_key(setup->piece),
                     .source = setup->source,
                     .set = setup->set,
                     .unset = setup->unset};
    /* A program whose graph can't be built is not kept, unless it is used up by building it. */
    stet_status status = pattern->use_up ? stet_piece_keep_program(s->space, s->branch_name, pattern, err) : STET_OK;
    if (status == STET_OK)
        status = stet_process_build(pattern, setup->piece, &modules, &in.process, err);
    if (status == STET_OK && setup->accept)
        status = setup->accept(setup->ctx, in.process, err);
    /* One at a time between processes: who distrusts actions must not do it to those that another has just run. */
    stet_lock *lock = NULL;
    char *path = stet_asprintf("%s.setup", stet_space_path(s->space));
    if (status == STET_OK)
        status = stet_lock_open(path, STET_LOCK_PLAIN, &lock, err);
    if (status == STET_OK)
        status = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, -1, err);
    if (status == STET_OK)
        status = replace(&in, out, err);
    stet_lock_close(lock);
    stet_free(path);
    if (status == STET_OK)
        unload(s, in.key);
    stet_free(in.key);
    look_release(&in);
    stet_vec_release(&in.children);
    stet_process_free(in.process);
    return status;
}

typedef struct deleting {
    stet_sched *s;
    const char *piece, *key;
    bool more;
} deleting;

static stet_status delete_some(stet_tx *tx, void *ctx, stet_error *err) {
    deleting *d = ctx;
    stet_status status = stet_piece_drop(tx, d->s->space, d->s->branch, d->piece, 50000, &d->more, err);
    return status == STET_OK ? stet_memo_turn_over(d->s->memo, tx, d->key, (stet_turnover){.all_gone = true}, err)
                             : status;
}

stet_status stet_sched_delete(stet_sched *s, const char *piece, stet_error *err) {
    stet_piece *p;
    stet_status status = stet_piece_load(s->space, s->branch, piece, -1, &p, err);
    if (status != STET_OK && status != STET_CORRUPT)
        return status;
    if (status == STET_OK)
        stet_piece_free(p);
    else if (err)
        stet_error_clear(err);
    char *key = stet_piece_key(piece);
    deleting d = {s, piece, key, true};
    status = STET_OK;
    while (status == STET_OK && d.more)
        status = stet_space_transact(s->space, s->branch_name, delete_some, &d, NULL, err);
    stet_free(key);
    return status;
}
