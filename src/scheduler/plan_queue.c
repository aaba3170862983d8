/* plan_queue.c - the waiting actions: a heap by rank and arrival, and a heap by time. */

#include "scheduler/plan_internal.h"

void plan_queue_push(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    queued q = {((uint64_t)n->rank << 32) | p->arrivals++, n->rank, id};
    (void)stet_vec_add(&p->heap);
    size_t i = p->heap.len - 1;
    while (i > 0 && p->heap.at[(i - 1) / 2].key > q.key) {
        p->heap.at[i] = p->heap.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    p->heap.at[i] = q;
    n->flags |= N_QUEUED;
    n->flags &= ~(uint32_t)(N_PARKED | N_TIMED | N_WAITING | N_HELD | N_LEFT);
}

/* Drops entries that are no longer meant: the action left the queue, or stands in it again with another rank. */
bool plan_queue_pop(stet_plan *p, uint32_t *id) {
    while (p->heap.len > 0) {
        queued top = p->heap.at[0], last = p->heap.at[--p->heap.len];
        size_t i = 0, n = p->heap.len;
        while (2 * i + 1 < n) {
            size_t child = 2 * i + 1;
            if (child + 1 < n && p->heap.at[child + 1].key < p->heap.at[child].key)
                child++;
            if (p->heap.at[child].key >= last.key)
                break;
            p->heap.at[i] = p->heap.at[child];
            i = child;
        }
        if (n > 0)
            p->heap.at[i] = last;
        node *node_ = &p->nodes.at[top.node];
        if ((node_->flags & N_QUEUED) && node_->rank == top.rank) {
            node_->flags &= ~(uint32_t)N_QUEUED;
            *id = top.node;
            return true;
        }
    }
    return false;
}

void plan_raise_rank(stet_plan *p, uint32_t id, uint32_t rank) {
    node *n = &p->nodes.at[id];
    if (n->rank >= rank)
        return;
    n->rank = rank;
    if (n->flags & N_QUEUED)
        plan_queue_push(p, id);
}

uint32_t stet_plan_rank(const stet_plan *p, uint32_t id) {
    return p->nodes.at[id].rank;
}

void stet_plan_set_rank(stet_plan *p, uint32_t id, uint32_t rank) {
    node *n = &p->nodes.at[id];
    if (n->rank == rank)
        return;
    n->rank = rank;
    if (n->flags & N_QUEUED)
        plan_queue_push(p, id);
}

void plan_timer_push(stet_plan *p, int64_t at, uint32_t id) {
    (void)stet_vec_add(&p->timers);
    size_t i = p->timers.len - 1;
    while (i > 0 && p->timers.at[(i - 1) / 2].at > at) {
        p->timers.at[i] = p->timers.at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    p->timers.at[i] = (timer){at, id};
    p->nodes.at[id].flags |= N_TIMED;
}

void plan_timer_pop(stet_plan *p) {
    timer last = p->timers.at[--p->timers.len];
    size_t i = 0, n = p->timers.len;
    while (2 * i + 1 < n) {
        size_t child = 2 * i + 1;
        if (child + 1 < n && p->timers.at[child + 1].at < p->timers.at[child].at)
            child++;
        if (p->timers.at[child].at >= last.at)
            break;
        p->timers.at[i] = p->timers.at[child];
        i = child;
    }
    if (n > 0)
        p->timers.at[i] = last;
}

void stet_plan_mark(stet_plan *p, uint32_t id, stet_plan_mark_kind kind, int64_t now) {
    node *n = &p->nodes.at[id];
    if (n->flags & N_GONE)
        return;
    n->flags |= kind == STET_PLAN_UNKNOWN ? N_UNKNOWN : N_DIRTY;
    n->flags &= ~(uint32_t)N_FAILED;
    n->dirty_at = now;
    if (n->flags & N_RUNNING)
        n->flags |= kind == STET_PLAN_UNKNOWN ? N_DISTRUSTED : N_REDIRTY;
    if (!(n->flags & (N_PLACED | N_ASIDE)))
        plan_queue_push(p, id);
}

void stet_plan_reads_anew(stet_plan *p, uint32_t id) {
    p->nodes.at[id].flags &= ~(uint32_t)N_REDIRTY;
}

void stet_plan_unmark(stet_plan *p, uint32_t id) {
    node *n = &p->nodes.at[id];
    n->flags &= ~(uint32_t)(N_PENDING | N_QUEUED | N_PARKED | N_TIMED | N_WAITING | N_HELD | N_AGAIN | N_IDLE | N_LEFT);
}
