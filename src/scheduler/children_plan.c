/* children_plan.c - tells the plan what a run, or somebody else, did to children. */

#include "scheduler/children_internal.h"

void sched_children_forget(sched_action *a) {
    if (!a->children)
        return;
    stet_value_release(a->children->keys);
    stet_value_release(a->children->elements);
    stet_map_release(&a->children->places);
    *a->children = (sched_children){.serial = -1};
}

static void names_free(name_list *l) {
    for (size_t i = 0; i < l->len; i++)
        stet_free(l->at[i]);
    stet_vec_release(l);
}

static void lists_free(struct sched_lists *l) {
    names_free(&l->made);
    names_free(&l->gone);
    names_free(&l->known);
    names_free(&l->moved);
    stet_free(l);
}

void sched_children_release(action_run *r) {
    if (r->children)
        lists_free(r->children);
    r->children = NULL;
}

void sched_children_give_up(action_run *r) {
    if (r->children)
        sched_children_forget(r->a);
    sched_children_release(r);
}

void sched_children_lists(const action_run *r, stet_observation *o) {
    if (!r->children)
        return;
    o->declared_alone = true;
    o->made = (const char *const *)r->children->made.at;
    o->made_count = r->children->made.len;
    o->gone = (const char *const *)r->children->gone.at;
    o->gone_count = r->children->gone.len;
}

static uint32_t find_action(stet_sched *s, const sched_piece *p, const char *node) {
    stet_buf name = STET_BUF(0);
    stet_buf_printf(&name, "%s/%s", p->piece->name, node);
    uint32_t id = stet_plan_find(s->plan, name.data, name.len);
    stet_buf_release(&name);
    return id;
}

/* Out of the plan, unless it is under way: then its end is thrown away (sched_child_there). */
static bool unload(stet_sched *s, const sched_piece *p, const char *node) {
    uint32_t id = find_action(s, p, node);
    if (id == STET_PLAN_NONE)
        return false;
    sched_action *a = stet_plan_data(s->plan, id);
    action_run *run = sched_async_running(s, a);
    if (run) {
        sched_async_stop(run);
        return false;
    }
    stet_plan_remove(s->plan, id);
    return true;
}

uint32_t sched_child_place(stet_sched *s, const sched_action *a) {
    stet_value parent = stet_value_get(a->row, "parent");
    size_t end = stet_child_instance(a->node), from = end;
    if (end == 0 || stet_value_type(parent) != STET_TYPE_STRING)
        return 0;
    uint32_t id = find_action(s, a->piece, stet_value_as_string(&parent, NULL));
    const sched_action *c = id == STET_PLAN_NONE ? NULL : stet_plan_data(s->plan, id);
    if (!c || c->role != STET_CHILD_REDUCE || !c->children)
        return 0;
    while (from > 0 && a->node[from - 1] != '[')
        from--;
    const stet_slot *slot = stet_map_get(&c->children->places, a->node + from, end - 1 - from);
    return slot ? (uint32_t)slot->n : 0;
}

/* Links of a chain rank by their place: by what they read alone, a later one that is dirty, too, would not know of
 * those between that still stand. */
static void rank_chain(stet_sched *s, const sched_action *coordinator) {
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        const sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (!a)
            continue;
        stet_value parent = stet_value_get(a->row, "parent");
        int64_t rank = stet_value_as_int(stet_value_get(a->row, "rank"));
        if (stet_value_type(parent) == STET_TYPE_STRING && a->piece == coordinator->piece && rank > 0 &&
            rank < INT32_MAX && strcmp(stet_value_as_string(&parent, NULL), coordinator->node) == 0)
            stet_plan_set_rank(s->plan, (uint32_t)i, (uint32_t)rank + sched_child_place(s, a));
    }
}

/* Does a document of this name belong to another link of the chain `base` ("piece:p:node:all[", without its kind)? */
static bool of_other_link(const char *id, const sched_action *a, size_t base, size_t instance) {
    size_t own = strlen(a->piece->piece->doc);
    const char *name = strncmp(id, a->piece->piece->doc, own) == 0 && id[own] == ':' ? strchr(id + own + 1, ':') : NULL;
    return name && strncmp(name + 1, a->node, base) == 0 && strncmp(name + 1, a->node, instance) != 0;
}

/* What a link read of the one before it is not what it will read: forgotten, so that it waits for nobody who comes
 * after it now. Its rank puts it behind its new predecessor. */
static void forget_predecessor(stet_sched *s, const sched_piece *p, const char *node) {
    uint32_t id = find_action(s, p, node);
    if (id == STET_PLAN_NONE)
        return;
    const sched_action *a = stet_plan_data(s->plan, id);
    size_t count = stet_plan_reads(s->plan, id, NULL, 0), kept = 0, instance = stet_child_instance(node),
           base = instance;
    stet_plan_read *reads = stet_alloc((count ? count : 1) * sizeof *reads);
    stet_plan_reads(s->plan, id, reads, count);
    while (base > 0 && node[base - 1] != '[')
        base--;
    for (size_t i = 0; i < count; i++) {
        size_t len;
        const char *name = stet_plan_doc_name(s->plan, reads[i].doc, &len); /* space, scope and id */
        const char *scope = name + strlen(name) + 1, *doc = scope + strlen(scope) + 1;
        if (name[0] || strcmp(scope, a->piece->piece->scope) != 0 || !of_other_link(doc, a, base, instance))
            reads[kept++] = reads[i];
    }
    if (kept < count)
        stet_plan_set_reads(s->plan, id, reads, kept);
    free(reads);
}

/* Those that are in memory, of children of these and so on: what is shown of a child, say, decides whether its nodes are
 * wanted. Of those that are not, some may have been left because nobody needed them. */
static stet_status renew(stet_sched *s, const sched_action *coordinator, stet_error *err) {
    char *children = stet_child_instance_id(coordinator->node, "");
    size_t len = strlen(children) - 1; /* "rows[" */
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_plan_count(s->plan) && status == STET_OK; i++) {
        sched_action *a = stet_plan_data_there(s->plan, (uint32_t)i);
        if (a && a->child_doc && a->piece == coordinator->piece && strncmp(a->node, children, len) == 0)
            status = sched_child_renew(s, a, err);
    }
    stet_free(children);
    stet_plan_doubt_unwanted(s->plan);
    sched_wake(s);
    return status;
}

stet_status sched_children_apply(stet_sched *s, sched_action *a, struct sched_lists *lists, stet_error *err) {
    stet_status status = STET_OK;
    bool some = false;
    s->batch.removes_children |= lists->gone.len > 0;
    if (a->role == STET_CHILD_REDUCE)
        rank_chain(s, a);
    for (size_t i = 0; i < lists->moved.len; i++)
        forget_predecessor(s, a->piece, lists->moved.at[i]);
    for (size_t i = 0; i < lists->gone.len; i++)
        some |= unload(s, a->piece, lists->gone.at[i]);
    for (size_t i = 0; i < lists->made.len; i++)
        some |= unload(s, a->piece, lists->made.at[i]);
    if (some)
        sched_forget_asked(s);
    if (lists->renewed)
        status = renew(s, a, err);
    uint32_t id;
    for (size_t i = 0; i < lists->made.len && status == STET_OK; i++)
        status = sched_load_new(s, a->piece->piece->key, lists->made.at[i], &id, err);
    for (size_t i = 0; i < lists->known.len && status == STET_OK; i++)
        status = sched_load_new(s, a->piece->piece->key, lists->known.at[i], &id, err);
    return status;
}

bool sched_child_there(action_run *r) {
    stet_docname child = stet_piece_name(r->a->piece->piece, r->a->child_doc);
    return !r->a->child_doc || children_doc_there(r->tx, &child);
}

static bool stored(stet_sched *s, const stet_docname *name) {
    stet_doc_state state;
    if (stet_space_load(s->space, s->branch, name, -1, &state, NULL) != STET_OK)
        return false;
    stet_value_release(state.value);
    return state.exists;
}

static bool child_stored(stet_sched *s, const sched_action *a) {
    stet_docname child = stet_piece_name(a->piece->piece, a->child_doc);
    return stored(s, &child);
}

/* A coordinator changes the document of a child in one commit with its index. If it was written later, that was
 * somebody else, and the coordinator puts right what it gave. */
stet_status sched_child_mend(stet_sched *s, sched_action *a, stet_error *err) {
    stet_value parent = stet_value_get(a->row, "parent");
    if (!a->child_doc || stet_value_type(parent) != STET_TYPE_STRING || s->opts.observe_only)
        return STET_OK;
    char *index_id = stet_child_index_doc(a->piece->piece->name, stet_value_as_string(&parent, NULL));
    stet_docname child = stet_piece_name(a->piece->piece, a->child_doc), index = {index_id, child.scope};
    bool other = children_written_after(s, &child, &index);
    stet_free(index_id);
    if (!other)
        return STET_OK;
    uint32_t id;
    stet_status status = sched_load(s, a->piece->piece->key, stet_value_as_string(&parent, NULL), &id, err);
    if (status != STET_OK)
        return status;
    ((sched_action *)stet_plan_data(s->plan, id))->verify = true;
    if (!stet_plan_is_unknown(s->plan, id))
        stet_plan_mark(s->plan, id, STET_PLAN_UNKNOWN, INT64_MIN / 2);
    return STET_OK;
}

stet_status sched_children_overwritten(stet_sched *s, const stet_doc_change *at, size_t len, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < len; i++)
        if (strncmp(at[i].name.id, "piece:", 6) == 0 && strstr(at[i].name.id, ":children:"))
            return STET_OK; /* a coordinator's */
    for (size_t i = 0; i < len && status == STET_OK; i++) {
        if (strncmp(at[i].name.id, "piece:", 6) != 0 || !strstr(at[i].name.id, ":child:"))
            continue;
        for (size_t k = 0; k < stet_plan_count(s->plan) && status == STET_OK; k++) {
            sched_action *a = stet_plan_data(s->plan, (uint32_t)k);
            if (a && a->child_doc && strcmp(a->child_doc, at[i].name.id) == 0 &&
                strcmp(a->piece->piece->scope, at[i].name.scope) == 0 && find_action(s, a->piece, a->node) == k) {
                status = sched_child_mend(s, a, err);
                break;
            }
        }
    }
    return status;
}

void sched_children_news(stet_sched *s, const stet_docname *doc) {
    const char *name = strncmp(doc->id, "piece:", 6) == 0 ? strstr(doc->id, ":children:") : NULL;
    char *piece = name ? stet_piece_around(doc) : NULL;
    if (!piece)
        return;
    s->marks.children_remade = true;
    char *children = stet_child_instance_id(name + strlen(":children:"), "");
    size_t len = strlen(children) - 1; /* "rows[": theirs, and those of their own children */
    bool some = false;
    for (size_t i = 0; i < stet_plan_count(s->plan); i++) {
        sched_action *a = stet_plan_data(s->plan, (uint32_t)i);
        if (!a)
            continue;
        if (a->child_doc && strncmp(a->node, children, len) == 0 && strcmp(a->piece->piece->name, piece) == 0 &&
            find_action(s, a->piece, a->node) == i &&
            !(sched_async_running(s, a) && child_stored(s, a))) /* its end will be looked at */
            some |= unload(s, a->piece, a->node);
    }
    if (some)
        sched_forget_asked(s);
    stet_free(children);
    stet_free(piece);
}
