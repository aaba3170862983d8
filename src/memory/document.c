/* document.c - a document as of a sequence: from the cache, from its head, or rebuilt from the log.
 *
 * Invariants of the log that this file relies on and check.c verifies
 *   L1. A revision names its predecessor, the previous revision of the same document (`back`). The first one on a
 *       branch names the parent's newest up to the fork. So the links always lead to lower sequences, and cross
 *       branches by themselves.
 *   L2. A revision of a document that did not exist sets the whole document; a patch always has something to be applied
 *       to.
 *   L3. A snapshot row (key, seq) with a value is the text of the document after revision `seq`.
 */

#include <stdio.h>

#include "memory/internal.h"
#include "memory/record.h"

void stet_head_release(stet_head *h) {
    stet_value_release(h->value);
    h->value = stet_value_null();
}

void stet_space_damaged(stet_space *s, int64_t doc, const char *format, ...) {
    if (s->probing)
        s->damaged = true;
    if (s->probing || stet_db_failed(s->db))
        return;
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    stet_arena arena = STET_ARENA_INIT;
    stet_docname name = {0};
    stet_status st = doc ? stet_space_docname(s, doc, &arena, &name, NULL) : STET_NOT_FOUND;
    if (st == STET_OK)
        stet_db_fail(s->db, STET_CORRUPT, "%s: document \"%s\": %s", s->path, name.id, what);
    else if (doc)
        stet_db_fail(s->db, STET_CORRUPT, "%s: document number %lld: %s", s->path, (long long)doc, what);
    else
        stet_db_fail(s->db, STET_CORRUPT, "%s: %s", s->path, what);
    stet_db_hint(s->db,
                 "`stet check` lists all that is damaged, `stet check --repair` restores what another copy vouches "
                 "for and names what is lost");
    stet_arena_release(&arena);
}

/* Decodes a text whose checksum was right. */
static bool read_text(stet_space *s, int64_t doc, const char *text, size_t len, int64_t seq, stet_value *out) {
    if (text && stet_json_read(text, len, NULL, out, NULL) == STET_OK) {
        if (stet_value_type(*out) == STET_TYPE_OBJECT)
            return true;
        stet_value_release(*out);
        *out = stet_value_null();
    }
    stet_space_damaged(s, doc, "its text at sequence %lld is damaged", (long long)seq);
    return false;
}

static int64_t whole_text_upto(stet_space *s, int64_t key, int64_t seq) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT seq FROM snapshot WHERE key = ? AND seq <= ? AND value IS NOT NULL"
                                       " ORDER BY seq DESC LIMIT 1");
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, seq);
    int64_t found = stet_step(q) ? stet_column_int(q, 0) : 0;
    stet_reset(q);
    return found;
}

/* False: there is no snapshot that can be trusted. This is not a failure, because the log has the same text. */
static bool snapshot_text(stet_space *s, int64_t key, int64_t seq, stet_value *out) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT key, seq, value, sum FROM snapshot WHERE key = ? AND seq = ?");
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, seq);
    bool ok = false;
    if (stet_step(q) && stet_column_sound(q, 0, 3)) {
        size_t len;
        const char *text = stet_column_blob(q, 2, &len);
        ok = text && stet_json_read(text, len, NULL, out, NULL) == STET_OK;
        if (ok && stet_value_type(*out) != STET_TYPE_OBJECT) {
            stet_value_release(*out);
            *out = stet_value_null();
            ok = false;
        }
    }
    stet_reset(q);
    return ok;
}

/* Patches found on the way back, newest first. */
typedef struct chain {
    stet_buf bytes;
    STET_VEC(size_t) lengths;
} chain;

static bool apply_chain(stet_space *s, int64_t number, chain *c, int64_t seq, stet_value *doc) {
    size_t end = c->bytes.len;
    for (size_t i = c->lengths.len; i-- > 0;) {
        size_t len = c->lengths.at[i];
        end -= len;
        stet_patches ops = {0};
        bool ok = stet_patches_decode(c->bytes.data + end, len, &ops) &&
                  stet_patches_apply(ops.at, ops.len, doc, NULL) == STET_OK;
        stet_patches_release(&ops);
        if (!ok) {
            stet_space_damaged(s, number, "a patch up to sequence %lld does not apply", (long long)seq);
            return false;
        }
    }
    return true;
}

/* The result of one step back from a revision. */
typedef enum step { STEP_FOUND, STEP_ABSENT, STEP_ON, STEP_FAILED } step;

static step step_back(stet_space *s, int64_t doc, int64_t *seq, bool use_cache, int64_t *branch, int64_t *whole,
                      chain *c, stet_value *out) {
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_COMMIT_COLUMNS ", body FROM commits WHERE seq = ?");
    stet_bind_int(q, 1, *seq);
    if (!stet_step(q)) {
        stet_space_damaged(s, doc, "commit %lld is missing", (long long)*seq);
        return STEP_FAILED;
    }
    step found = STEP_FAILED;
    size_t changes_len, body_len;
    const char *changes, *body;
    if (!stet_commit_sound(q, &changes, &changes_len)) {
        stet_space_damaged(s, doc, "commit %lld is damaged", (long long)*seq);
        stet_reset(q);
        return STEP_FAILED;
    }
    int64_t here = stet_column_int(q, STET_COMMIT_BRANCH), key = stet_space_key(here, doc);
    if (here != *branch) {
        *branch = here;
        *whole = whole_text_upto(s, key, *seq);
    }
    stet_cached *near = use_cache ? stet_cache_find(s, key) : NULL;
    stet_record_rev rev;
    bool damaged;
    if (near && near->head.own && near->head.exists && near->head.seq == *seq) {
        *out = stet_value_retain(near->head.value);
        found = STEP_FOUND;
    } else if (*whole == *seq && snapshot_text(s, key, *seq, out)) {
        found = STEP_FOUND;
    } else {
        body = stet_column_blob(q, STET_COMMIT_CHANGES + 1, &body_len);
        if (!stet_record_find(changes, changes_len, doc, &rev, &damaged) ||
            (rev.kind == STET_REVISION_PATCH && rev.back == 0) || rev.back >= *seq) {
            stet_space_damaged(s, doc, "commit %lld does not have it", (long long)*seq);
        } else if (rev.kind == STET_REVISION_LOST) {
            stet_space_damaged(s, doc, "what it was at sequence %lld is lost", (long long)*seq);
        } else if (!(body = stet_record_body(&rev, body, body_len))) {
            stet_space_damaged(s, doc, "what commit %lld says of it is damaged", (long long)*seq);
        } else if (rev.kind == STET_REVISION_SET) {
            found = read_text(s, doc, body, rev.body_len, *seq, out) ? STEP_FOUND : STEP_FAILED;
        } else if (rev.kind == STET_REVISION_DELETE) {
            found = STEP_ABSENT;
        } else {
            stet_buf_add(&c->bytes, body, rev.body_len);
            *stet_vec_add(&c->lengths) = rev.body_len;
            *seq -= rev.back;
            found = STEP_ON;
        }
    }
    stet_reset(q);
    return found;
}

bool stet_document_rebuild(stet_space *s, int64_t doc, int64_t seq, bool use_cache, stet_value *out) {
    chain c = {.bytes = STET_BUF(0)};
    int64_t at = seq, branch = -1, whole = 0;
    step found;
    *out = stet_value_null();
    while ((found = step_back(s, doc, &at, use_cache, &branch, &whole, &c, out)) == STEP_ON)
        ;
    bool exists = found == STEP_FOUND;
    if (found == STEP_ABSENT && c.lengths.len)
        stet_space_damaged(s, doc, "a patch follows the deletion at %lld", (long long)at);
    if (exists && (c.bytes.overflow || !apply_chain(s, doc, &c, seq, out))) {
        stet_value_release(*out);
        *out = stet_value_null();
        exists = false;
    }
    stet_buf_release(&c.bytes);
    stet_vec_release(&c.lengths);
    return exists;
}

/* Follows the links of one branch down from `from` to the first revision at or below `at`. Stops early, with *left set,
 * when the links leave the branch above `at`. */
static int64_t walk_down(stet_space *s, int64_t branch, int64_t doc, int64_t from, int64_t at, bool *left) {
    int64_t seq = from;
    *left = false;
    while (seq > at) {
        stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_COMMIT_COLUMNS " FROM commits WHERE seq = ?");
        stet_bind_int(q, 1, seq);
        if (!stet_step(q)) {
            stet_space_damaged(s, doc, "commit %lld is missing", (long long)seq);
            return 0;
        }
        size_t len;
        const char *changes;
        stet_record_rev rev;
        bool damaged, sound = stet_commit_sound(q, &changes, &len);
        bool here = stet_column_int(q, STET_COMMIT_BRANCH) == branch;
        bool found = sound && here && stet_record_find(changes, len, doc, &rev, &damaged);
        stet_reset(q);
        if (!sound) {
            stet_space_damaged(s, doc, "commit %lld is damaged", (long long)seq);
            return 0;
        }
        if (!here) {
            *left = true;
            return 0;
        }
        if (!found || rev.back >= seq) {
            stet_space_damaged(s, doc, "commit %lld does not have it", (long long)seq);
            return 0;
        }
        if (rev.back == 0)
            return 0;
        seq -= rev.back;
    }
    return seq;
}

/* Reads the row of the table head. False if there is none, and on failure. */
static bool read_head(stet_space *s, int64_t branch, int64_t doc, stet_head *out, bool *inlined, bool with_value) {
    stet_stmt *q =
        stet_db_stmt(s->db, "SELECT key, seq, live, links, chain, bytes, value, sum FROM head WHERE key = ?");
    stet_bind_int(q, 1, stet_space_key(branch, doc));
    bool there = stet_step(q);
    if (there && !stet_column_sound(q, 0, 7)) {
        stet_space_damaged(s, doc, "its newest revision is not known: the row that names it is damaged");
        there = false;
    } else if (there) {
        *out = (stet_head){.seq = stet_column_int(q, 1),
                           .own = true,
                           .exists = stet_column_int(q, 2) != 0,
                           .links = stet_column_int(q, 3),
                           .chain = stet_column_int(q, 4),
                           .bytes = stet_column_int(q, 5)};
        *inlined = out->exists && !stet_column_is_null(q, 6);
        if (*inlined && with_value) {
            size_t len;
            const char *text = stet_column_blob(q, 6, &len);
            out->exists = read_text(s, doc, text, len, out->seq, &out->value);
        }
    } else if (stet_space_written(s, doc, branch)) {
        stet_space_damaged(s, doc, "its newest revision is not known: the row that names it is gone");
    }
    stet_reset(q);
    return there;
}

/* A revision of the document above `at` from which the way down is shorter than from `head`. A snapshot row is only a
 * hint: the commit is read to verify it, because reading a large text for its checksum would cost more. */
static int64_t anchor_above(stet_space *s, int64_t branch, int64_t doc, int64_t at, int64_t head) {
    int64_t anchor = 0;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT seq FROM snapshot WHERE key = ? AND seq > ? ORDER BY seq LIMIT 1");
    stet_bind_int(q, 1, stet_space_key(branch, doc));
    stet_bind_int(q, 2, at);
    if (stet_step(q))
        anchor = stet_column_int(q, 0);
    stet_reset(q);
    if (anchor <= at || anchor >= head)
        return head;
    q = stet_db_stmt(s->db, "SELECT " STET_COMMIT_COLUMNS " FROM commits WHERE seq = ?");
    stet_bind_int(q, 1, anchor);
    bool good = false, damaged;
    if (stet_step(q)) {
        size_t len;
        const char *changes;
        stet_record_rev rev;
        good = stet_commit_sound(q, &changes, &len) && stet_column_int(q, STET_COMMIT_BRANCH) == branch &&
               stet_record_find(changes, len, doc, &rev, &damaged);
    }
    stet_reset(q);
    return good ? anchor : head;
}

int64_t stet_document_revision_at(stet_space *s, int64_t branch, int64_t doc, int64_t at) {
    for (;;) {
        stet_head h = {0};
        bool inlined;
        if (!read_head(s, branch, doc, &h, &inlined, false) && ((s->probing && s->damaged) || stet_db_failed(s->db)))
            return 0;
        int64_t head = h.seq;
        if (head && head <= at)
            return head;
        if (head) {
            bool left;
            int64_t found = walk_down(s, branch, doc, anchor_above(s, branch, doc, at, head), at, &left);
            if (!left)
                return found;
        }
        const stet_branch_entry *b = stet_space_branch_entry(s, branch);
        if (!b || b->parent < 0)
            return 0;
        at = at < b->fork ? at : b->fork;
        branch = b->parent;
    }
}

/* After a failure nothing that was read can be trusted, least of all that something is absent. */
static bool sound(stet_space *s) {
    assert(stet_db_in_transaction(s->db));
    return !stet_db_failed(s->db);
}

void stet_head_load(stet_space *s, int64_t branch, int64_t doc, int64_t at, stet_head *out) {
    *out = (stet_head){0};
    if (doc == 0)
        return;
    int64_t key = stet_space_key(branch, doc);
    stet_cached *c = stet_cache_find(s, key);
    if (c && !c->old && c->head.seq <= at) {
        s->hits++;
        *out = c->head;
        out->value = stet_value_retain(c->head.value);
        return;
    }
    s->misses++;
    bool inlined;
    if (read_head(s, branch, doc, out, &inlined, true) && out->seq <= at) {
        if (out->exists && !inlined)
            out->exists = stet_document_rebuild(s, doc, out->seq, true, &out->value);
        if (sound(s))
            stet_cache_put(s, key, out);
        return;
    }
    /* The document is not on this branch, or is newer than requested. The newest revision is worth caching, an older
     * one is not. */
    bool own = out->own;
    stet_head_release(out);
    if (!sound(s))
        return;
    *out = (stet_head){.seq = stet_document_revision_at(s, branch, doc, at), .own = false};
    if (out->seq)
        out->exists = stet_document_rebuild(s, doc, out->seq, false, &out->value);
    if (!own && at == s->known && sound(s)) {
        if (out->exists) {
            stet_buf_clear(&s->text);
            stet_json_write(&s->text, out->value, STET_JSON_CANONICAL);
            out->bytes = (int64_t)s->text.len;
        }
        stet_cache_put(s, key, out);
    }
}
