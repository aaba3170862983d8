/* transfer.c - copies the objects that one side has and the other lacks. */

#include "repo/transfer.h"

#include <stdlib.h>
#include <string.h>

/* Something that the other side lacks. */
typedef struct item {
    stet_hash id;
    size_t child, children; /* in plan.children */
    bool sent, entered;
} item;

typedef struct plan {
    const stet_side *from, *to;
    const stet_transfer_opts *o;
    stet_map at; /* id to its number in `items` plus one; 0: the other side has it */
    STET_VEC(item) items;
    STET_VEC(stet_hash) children;
    STET_VEC(stet_hash) frontier; /* to be looked at */
    size_t got;                   /* objects of the present question that came */
    stet_pack came;               /* those of them to be put aside: nobody waits for a program with the lock held */
} plan;

static stet_status stopped(const stet_transfer_opts *o, stet_error *err) {
    return o->cancelled && o->cancelled(o->ctx) ? stet_fail(err, STET_CANCELLED, "interrupted") : STET_OK;
}

static stet_status put_one_aside(void *ctx, const stet_sent *sent, stet_error *err) {
    stet_repo *r = ctx;
    stet_stmt *s = stet_db_stmt(r->db, "INSERT OR REPLACE INTO incoming(id, type, lost, added_s, bytes) "
                                       "VALUES(?, ?, ?, ?, ?)");
    stet_bind_id(s, 1, &sent->id);
    stet_bind_int(s, 2, sent->lost ? sent->type : STET_RECORD_DATUM);
    stet_bind_int(s, 3, sent->lost);
    stet_bind_int(s, 4, r->now_s);
    stet_bind_blob(s, 5, sent->bytes, sent->len);
    stet_run(s);
    return stet_db_status(r->db, err);
}

static stet_status put_aside(stet_repo *r, stet_pack *pack, stet_error *err) {
    bool begun;
    if (pack->count == 0)
        return STET_OK;
    stet_pack_end(pack);
    if (pack->bytes.overflow) /* too much at once to be put aside: it is asked for again when it is needed */
        return STET_OK;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st == STET_OK)
        st = stet_repo_leave(r, begun, stet_pack_each(pack->bytes.data, pack->bytes.len, put_one_aside, r, err), err);
    return st;
}

/* Gives it to `take`, if it is there. */
static stet_status take_aside(stet_repo *r, stet_hash id, bool *there, stet_take_fn *take, void *ctx, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    *there = false;
    if (st != STET_OK || nothing)
        return st;
    stet_stmt *s = stet_db_stmt(r->db, "SELECT type, lost, bytes FROM incoming WHERE id = ?");
    stet_bind_id(s, 1, &id);
    stet_sent sent = {.id = id};
    stet_buf bytes = STET_BUF(0);
    if (stet_step(s)) {
        const char *text = stet_column_blob(s, 2, &sent.len);
        sent.type = (stet_record_type)stet_column_int(s, 0);
        sent.lost = stet_column_int(s, 1) != 0;
        *there = true;
        stet_buf_add(&bytes, text ? text : "", sent.len); /* `take` may use the database */
        sent.bytes = stet_buf_cstr(&bytes);
    }
    stet_reset(s);
    st = stet_db_status(r->db, err);
    if (st == STET_OK && *there)
        st = take(ctx, &sent, err);
    stet_buf_release(&bytes);
    return st;
}

static stet_status forget_aside(stet_repo *r, const plan *p, stet_error *err) {
    bool begun;
    stet_status st = stet_repo_enter(r, &begun, err);
    for (size_t i = 0; i < p->items.len && st == STET_OK; i++) {
        stet_stmt *s = stet_db_stmt(r->db, "DELETE FROM incoming WHERE id = ?");
        stet_bind_id(s, 1, &p->items.at[i].id);
        stet_run(s);
    }
    return st == STET_OK ? stet_repo_leave(r, begun, STET_OK, err) : st;
}

static void look_at(plan *p, stet_hash id) {
    bool added;
    stet_map_have(&p->at, id.bytes, sizeof id.bytes, (stet_slot){.n = 0}, &added);
    if (added)
        *stet_vec_add(&p->frontier) = id;
}

static stet_status verify(const stet_sent *sent, stet_record_list *names, stet_error *err) {
    stet_record_type type;
    stet_value record;
    if (sent->lost)
        return STET_OK; /* stet_pack_apply looks at tombstones */
    stet_status st = stet_record_read_any(sent->id, sent->bytes, sent->len, &type, &record, err);
    if (st != STET_OK)
        return st;
    stet_record_named(record, type, names);
    stet_value_release(record);
    return STET_OK;
}

/* An object that was asked for: it is missing on the other side (or, with `whole`, looked through all the same). */
static stet_status take_planned(void *ctx, const stet_sent *sent, stet_error *err) {
    plan *p = ctx;
    stet_record_list names = {0};
    stet_slot *slot = stet_map_get(&p->at, sent->id.bytes, sizeof sent->id.bytes);
    if (!slot || slot->n == 0)
        return stet_fail(err, STET_CORRUPT, "%s: sent object %s, which nobody asked for", p->from->name,
                         stet_hash_print(sent->id).text);
    item *it = &p->items.at[slot->n - 1];
    if (it->entered)
        return stet_fail(err, STET_CORRUPT, "%s: sent object %s twice", p->from->name, stet_hash_print(sent->id).text);
    stet_status st = verify(sent, &names, err);
    if (st != STET_OK) {
        stet_fail_in(err, "%s", p->from->name);
        stet_vec_release(&names);
        return st;
    }
    it->entered = true;
    it->child = p->children.len;
    it->children = names.len;
    for (size_t i = 0; i < names.len; i++) {
        *stet_vec_add(&p->children) = names.at[i].id;
        look_at(p, names.at[i].id);
    }
    stet_vec_release(&names);
    p->got++;
    return STET_OK;
}

static stet_status take_new(void *ctx, const stet_sent *sent, stet_error *err) {
    plan *p = ctx;
    stet_status st = take_planned(ctx, sent, err);
    if (st == STET_OK && p->from->costly && p->o->aside) {
        if (sent->lost)
            stet_pack_lost(&p->came, sent->id, sent->type, sent->bytes, sent->len);
        else
            stet_pack_object(&p->came, sent->id, sent->bytes, sent->len);
    }
    return st;
}

/* Gets the objects of one question, those that were put aside earlier from there. */
static stet_status get_portion(plan *p, const stet_hash *ids, size_t count, stet_error *err) {
    stet_hash ask[STET_TRANSFER_IDS];
    size_t n = 0;
    stet_status st = STET_OK;
    p->got = 0;
    for (size_t i = 0; i < count && st == STET_OK; i++) {
        bool there = false;
        if (p->from->costly && p->o->aside) {
            stet_error why = STET_ERROR_INIT;
            st = take_aside(p->o->aside, ids[i], &there, take_planned, p, &why);
            if (st == STET_CORRUPT) { /* damaged while it lay there */
                there = false;
                st = STET_OK;
            } else if (st != STET_OK) {
                stet_error_move(err, &why);
            }
            stet_error_clear(&why);
        }
        if (!there)
            ask[n++] = ids[i];
    }
    if (st != STET_OK || n == 0)
        return st;
    size_t before = p->got;
    stet_pack_clear(&p->came);
    st = p->from->get(p->from->ctx, ask, n, take_new, p, err);
    if (p->o->aside && p->came.count) { /* also of a question that failed half-way: what came, came */
        stet_status kept = put_aside(p->o->aside, &p->came, st == STET_OK ? err : NULL);
        st = st == STET_OK ? kept : st;
    }
    if (st != STET_OK || p->got - before == n)
        return st;
    for (size_t i = 0; i < n; i++) {
        stet_slot *slot = stet_map_get(&p->at, ask[i].bytes, sizeof ask[i].bytes);
        if (!p->items.at[slot->n - 1].entered)
            return stet_fail(err, STET_NOT_FOUND, "%s has no object %s", p->from->name, stet_hash_print(ask[i]).text);
    }
    return st;
}

/* Takes ids from the end of the frontier: those just found, so that it stays small. */
static stet_status plan_portion(plan *p, stet_error *err) {
    stet_hash ids[STET_TRANSFER_IDS], ask[STET_TRANSFER_IDS];
    bool have[STET_TRANSFER_IDS];
    size_t count = p->frontier.len < STET_TRANSFER_IDS ? p->frontier.len : STET_TRANSFER_IDS, n = 0;
    p->frontier.len -= count;
    memcpy(ids, p->frontier.at + p->frontier.len, count * sizeof *ids);
    stet_status st = p->to->have(p->to->ctx, ids, count, have, err);
    for (size_t i = 0; i < count && st == STET_OK; i++) {
        if (have[i] && !p->o->whole)
            continue;
        if (p->items.len >= STET_TRANSFER_MAX)
            return stet_fail(err, STET_LIMIT, "more than %zu objects to copy", STET_TRANSFER_MAX);
        stet_map_get(&p->at, ids[i].bytes, sizeof ids[i].bytes)->n = p->items.len + 1;
        *stet_vec_add(&p->items) = (item){.id = ids[i], .sent = have[i]};
        ask[n++] = ids[i];
    }
    return st == STET_OK && n ? get_portion(p, ask, n, err) : st;
}

static stet_status make_plan(plan *p, stet_error *err) {
    stet_status st = STET_OK;
    for (size_t i = 0; i < p->o->root_count; i++)
        look_at(p, p->o->roots[i]);
    while (p->frontier.len && st == STET_OK) {
        st = stopped(p->o, err);
        if (st == STET_OK)
            st = plan_portion(p, err);
        if (p->o->progress)
            p->o->progress(p->o->ctx, 0, (int64_t)p->items.len);
    }
    return st;
}

/* Numbers of items, each after what it names. */
typedef STET_VEC(size_t) numbers;

static void put_in_order(plan *p, numbers *order) {
    STET_VEC(size_t) stack = {0};
    STET_VEC(size_t) next = {0};
    for (size_t i = 0; i < p->items.len; i++) {
        if (!p->items.at[i].entered)
            continue;
        p->items.at[i].entered = false;
        *stet_vec_add(&stack) = i;
        *stet_vec_add(&next) = 0;
        while (stack.len) {
            item *it = &p->items.at[stack.at[stack.len - 1]];
            size_t *at = &next.at[next.len - 1];
            if (*at == it->children) {
                if (!it->sent)
                    *stet_vec_add(order) = stack.at[stack.len - 1];
                stack.len--;
                next.len--;
                continue;
            }
            stet_hash child = p->children.at[it->child + (*at)++];
            size_t number = stet_map_get(&p->at, child.bytes, sizeof child.bytes)->n;
            if (number && p->items.at[number - 1].entered) {
                p->items.at[number - 1].entered = false;
                *stet_vec_add(&stack) = number - 1;
                *stet_vec_add(&next) = 0;
            }
        }
    }
    stet_vec_release(&stack);
    stet_vec_release(&next);
}

static stet_status take_packed(void *ctx, const stet_sent *sent, stet_error *err) {
    stet_pack *pack = ctx;
    (void)err;
    if (sent->lost)
        stet_pack_lost(pack, sent->id, sent->type, sent->bytes, sent->len);
    else
        stet_pack_object(pack, sent->id, sent->bytes, sent->len);
    return STET_OK;
}

static stet_status pack_one(plan *p, stet_hash id, stet_pack *pack, stet_error *err) {
    uint64_t before = pack->count;
    bool there = false;
    stet_status st = STET_OK;
    if (p->from->costly && p->o->aside)
        st = take_aside(p->o->aside, id, &there, take_packed, pack, err);
    if (st == STET_OK && !there)
        st = p->from->get(p->from->ctx, &id, 1, take_packed, pack, err);
    if (st == STET_OK && pack->count != before + 1)
        st = stet_fail(err, STET_NOT_FOUND, "%s has no object %s any more", p->from->name, stet_hash_print(id).text);
    if (st == STET_OK && pack->bytes.overflow)
        st = stet_fail(err, STET_LIMIT, "object %s is too large to be sent", stet_hash_print(id).text);
    return st;
}

static stet_status send_all(plan *p, const numbers *order, stet_copy_report *report, stet_error *err) {
    stet_pack pack = STET_PACK_INIT;
    stet_status st = STET_OK;
    for (size_t i = 0; i <= order->len && st == STET_OK; i++) {
        bool last = i == order->len;
        if (!last)
            st = pack_one(p, p->items.at[order->at[i]].id, &pack, err);
        if (st != STET_OK || (!last && pack.bytes.len < STET_TRANSFER_BYTES && pack.count < 4 * STET_TRANSFER_IDS))
            continue;
        report->objects += (int64_t)pack.count;
        report->bytes += (int64_t)pack.bytes.len;
        if (pack.count)
            stet_pack_end(&pack);
        st = stopped(p->o, err);
        if (st == STET_OK && (pack.count || (last && p->o->swap_count)))
            st = p->to->put(p->to->ctx, &pack, last ? p->o->swaps : NULL, last ? p->o->swap_count : 0, err);
        stet_pack_clear(&pack);
        if (p->o->progress)
            p->o->progress(p->o->ctx, (int64_t)i, (int64_t)order->len);
    }
    stet_pack_release(&pack);
    return st;
}

stet_status stet_transfer(const stet_side *from, const stet_side *to, const stet_transfer_opts *opts,
                          stet_copy_report *report, stet_error *err) {
    plan p = {.from = from, .to = to, .o = opts, .came = STET_PACK_INIT};
    numbers order = {0};
    stet_copy_report done = {0};
    stet_status st = make_plan(&p, err);
    if (st == STET_OK) {
        put_in_order(&p, &order);
        st = send_all(&p, &order, &done, err);
    }
    if (st == STET_OK && from->costly && opts->aside && p.items.len)
        st = forget_aside(opts->aside, &p, err);
    if (st == STET_OK && report)
        *report = done;
    stet_map_release(&p.at);
    stet_vec_release(&p.items);
    stet_vec_release(&p.children);
    stet_vec_release(&p.frontier);
    stet_pack_release(&p.came);
    stet_vec_release(&order);
    return st;
}
