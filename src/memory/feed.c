/* feed.c - delivers commits as they come: in order, each once.
 *
 * The log is the queue, and a feed is a position in it. A commit by another process shows in the file's data version,
 * which is checked every few milliseconds while waiting. No process has to notify another.
 */

#include "memory/internal.h"

#define FEED_BATCH 256

typedef struct feed_read {
    stet_docname name;
    stet_pathref path;
    stet_read_kind kind;
} feed_read;

struct stet_feed {
    stet_space *s;
    int64_t branch, position;
    STET_VEC(feed_read) reads;
    stet_arena names; /* of the reads */
    stet_arena arena; /* of the batch */
    stet_commit_record *batch;
    size_t at, len;
    stet_commit_record current;
};

stet_status stet_feed_open(stet_space *s, int64_t branch, int64_t after, stet_feed **out, stet_error *err) {
    stet_status st = stet_space_refresh(s, err);
    if (st != STET_OK)
        return st;
    if (after > s->known)
        return stet_fail(err, STET_NOT_FOUND, "sequence %lld: space \"%s\" is at %lld", (long long)after, s->name,
                         (long long)s->known);
    stet_feed *f = stet_alloc_zero(sizeof *f);
    f->s = s;
    f->branch = branch;
    f->position = after < 0 ? s->known : after;
    *out = f;
    return STET_OK;
}

stet_status stet_feed_add(stet_feed *f, const stet_docname *name, stet_pathref path, stet_read_kind kind,
                          stet_error *err) {
    stet_status st = stet_docname_check(name, err);
    if (st != STET_OK)
        return st;
    *stet_vec_add(&f->reads) = (feed_read){
        .name = {stet_arena_strdup(&f->names, name->id), stet_arena_strdup(&f->names, name->scope ? name->scope : "")},
        .path = {stet_arena_strndup(&f->names, path.bytes, path.len), path.len},
        .kind = kind};
    return STET_OK;
}

static bool wanted(const stet_feed *f, const stet_doc_change *c, const stet_change *leaf) {
    for (size_t i = 0; i < f->reads.len; i++)
        if (strcmp(f->reads.at[i].name.id, c->name.id) == 0 && strcmp(f->reads.at[i].name.scope, c->name.scope) == 0 &&
            stet_touches(leaf->path, leaf->kind, f->reads.at[i].path, f->reads.at[i].kind))
            return true;
    return f->reads.len == 0;
}

/* Reduces a commit to the part that touches what the feed follows. False: nothing of it does. */
static bool narrow(stet_feed *f, const stet_commit_record *r) {
    if (r->branch != f->branch)
        return false;
    f->current = *r;
    stet_doc_change *docs = stet_arena_alloc(&f->arena, (r->len + 1) * sizeof *docs);
    f->current.len = 0;
    f->current.at = docs;
    for (size_t i = 0; i < r->len; i++) {
        stet_change *leaves = stet_arena_alloc(&f->arena, (r->at[i].len + 1) * sizeof *leaves);
        size_t n = 0;
        for (size_t j = 0; j < r->at[i].len; j++)
            if (wanted(f, &r->at[i], &r->at[i].at[j]))
                leaves[n++] = r->at[i].at[j];
        if (n == 0)
            continue;
        docs[f->current.len] = r->at[i];
        docs[f->current.len].at = leaves;
        docs[f->current.len++].len = n;
    }
    return f->current.len > 0;
}

stet_status stet_feed_next(stet_feed *f, int timeout_ms, const stet_commit_record **out, stet_error *err) {
    int64_t deadline = stet_clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    int64_t pause_ms = 1;
    for (;;) {
        while (f->at < f->len) {
            const stet_commit_record *r = &f->batch[f->at++];
            f->position = r->seq;
            if (narrow(f, r)) {
                *out = &f->current;
                return STET_OK;
            }
        }
        stet_status st = stet_space_refresh(f->s, err);
        if (st != STET_OK)
            return st;
        if (f->s->known > f->position) {
            stet_arena_clear(&f->arena);
            f->at = f->len = 0;
            st = stet_space_commits(f->s, f->position, 0, FEED_BATCH, &f->arena, &f->batch, &f->len, err);
            if (st != STET_OK)
                return st;
            if (f->len)
                continue;
        }
        int64_t left = (deadline - stet_clock_monotonic_us()) / 1000;
        if (timeout_ms >= 0 && left <= 0)
            return stet_fail(err, STET_BUSY, "no change within %d ms", timeout_ms);
        if (timeout_ms >= 0 && pause_ms > left)
            pause_ms = left > 0 ? left : 1;
        stet_clock_sleep_ms(pause_ms);
        pause_ms = pause_ms < 10 ? pause_ms + 1 : 10;
    }
}

int64_t stet_feed_position(const stet_feed *f) {
    return f->position;
}

void stet_feed_close(stet_feed *f) {
    if (!f)
        return;
    stet_vec_release(&f->reads);
    stet_arena_release(&f->names);
    stet_arena_release(&f->arena);
    free(f);
}
