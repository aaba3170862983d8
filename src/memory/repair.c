/* repair.c - mends what check.c found, in one transaction.
 *
 *   R1. A copy that can be verified is never replaced by one that can't: texts come from commits, snapshots and heads
 *       whose checksums are right, whichever of them is left.
 *   R2. A commit that is gone or damaged is replaced by one that says what is known of it: which documents it changed,
 *       and that the rest is lost (STET_REVISION_LOST). A reader of such a revision gets an error, not a guess, unless
 *       a head or a snapshot has the text. So the log has no holes, and the next check finds nothing.
 *   R3. A document whose newest revision is lost gets a new one, by a commit of its own that everybody notices: the
 *       newest revision that can be read, or its deletion. What depends on the document is computed again.
 *   R4. Whatever is lost is reported, with the document and the sequences.
 *   R5. If the name of a document is lost, no record proves anything any more: whoever read or wrote it knows it by its
 *       number, and the next document of that name has another one. Every action is unknown, also those of other
 *       spaces that read this one.
 */

#include "memory/check.h"
#include "memory/observe_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "os/clock.h"

static int by_seq(const void *a, const void *b) {
    const stet_lost_revision *x = a, *y = b;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    return x->doc < y->doc ? -1 : x->doc > y->doc;
}

static int by_place(const void *a, const void *b) {
    const stet_lost_revision *x = a, *y = b;
    if (x->doc != y->doc)
        return x->doc < y->doc ? -1 : 1;
    if (x->branch != y->branch)
        return x->branch < y->branch ? -1 : 1;
    return x->seq < y->seq ? -1 : x->seq > y->seq;
}

static void put_snapshot(stet_space *s, int64_t key, int64_t seq, const char *text, size_t len) {
    stet_stmt *q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO snapshot(key, seq, value, sum)"
                                       " VALUES(?1, ?2, ?3, row_sum(?1, ?2, ?3))");
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, seq);
    if (text)
        stet_bind_blob(q, 3, text, len);
    else
        stet_bind_null(q, 3);
    stet_run(q);
}

static void mend_name(stet_report *r, int64_t doc) {
    /* The branches on which the document is, according to the log; if they make the checksum right, the name is
     * good. */
    int64_t written = 0;
    bool number = doc > 0 && doc == STET_DOC_OF(doc); /* otherwise no document can have this number */
    for (int64_t b = 0; b < STET_WRITTEN_BRANCHES && number; b++) {
        int64_t key = stet_space_key(b, doc);
        if (stet_map_get(&r->newest, &key, sizeof key) || stet_map_get(&r->heads, &key, sizeof key))
            written |= (int64_t)1 << b;
    }
    stet_stmt *q = stet_db_stmt(r->s->db, "UPDATE document SET written = ?2 WHERE doc = ?1 AND"
                                          " sum = row_sum(doc, id, scope, ?2)");
    stet_bind_int(q, 1, doc);
    stet_bind_int(q, 2, written);
    stet_run(q);
    if (stet_db_changes(r->s->db))
        return;
    if (r->names_fit) { /* only the rest of the row is damaged */
        q = stet_db_stmt(r->s->db,
                         "UPDATE document SET written = ?2, sum = row_sum(doc, id, scope, ?2) WHERE doc = ?1");
        stet_bind_int(q, 1, doc);
        stet_bind_int(q, 2, written);
        stet_run(q);
        return;
    }
    if (!written) { /* its number may be the damaged part: later numbers must not be counted from it */
        q = stet_db_stmt(r->s->db,
                         "DELETE FROM document WHERE doc = ?1 AND (doc <= 0 OR doc > (SELECT"
                         " coalesce(max(d.doc), 0) FROM document d WHERE d.sum = row_sum(d.doc, d.id, d.scope,"
                         " d.written)))");
        stet_bind_int(q, 1, doc);
        stet_run(q);
        if (stet_db_changes(r->s->db)) {
            stet_report_lost(r, "the name of document number %lld, of which nothing else is known", (long long)doc);
            return;
        }
    }
    char id[64];
    snprintf(id, sizeof id, "lost:%lld", (long long)doc);
    q = stet_db_stmt(r->s->db, "INSERT OR REPLACE INTO document(doc, id, scope, written, sum)"
                               " VALUES(?1, ?2, '', ?3, row_sum(?1, ?2, '', ?3))");
    stet_bind_int(q, 1, doc);
    stet_bind_text(q, 2, id, strlen(id));
    stet_bind_int(q, 3, written);
    stet_run(q);
    stet_report_lost(r, "the name of document number %lld: it is called \"%s\" now", (long long)doc, id);
}

static void mend_names(stet_report *r) {
    for (size_t i = 0; i < r->nameless.len; i++)
        mend_name(r, r->nameless.at[i]);
    if (stet_space_names_all_fit(r->s)) {
        stet_names_divide_all(r->s->db);
        return;
    }
    /* R5. It is not determined which records refer to a document that now has another name, or none: all do. */
    if (r->nameless.len == 0)
        stet_report_lost(r, "the name of a document that was read and never written");
    stet_space_names_renew(r->s);
    stet_observe_prove_nothing(r->s);
}

/* A revision of a document that lost one. */
typedef struct known_revision {
    int64_t seq, branch, doc;
} known_revision;
typedef STET_VEC(known_revision) known_revisions;

/* The revisions of all documents that lost one, in the order of the log. */
static void known_of(stet_report *r, known_revisions *out) {
    stet_map docs = {0};
    for (size_t i = 0; i < r->revisions.len; i++)
        stet_map_put(&docs, &r->revisions.at[i].doc, sizeof(int64_t), (stet_slot){.n = 1});
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT " STET_COMMIT_COLUMNS " FROM commits ORDER BY seq");
    while (stet_step(q)) {
        size_t len;
        const char *changes;
        stet_record rec;
        stet_record_rev rev;
        if (!stet_commit_sound(q, &changes, &len))
            continue;
        stet_record_begin(&rec, changes, len);
        while (stet_record_next(&rec, &rev))
            if (stet_map_get(&docs, &rev.doc, sizeof rev.doc))
                *stet_vec_add(out) = (known_revision){stet_column_int(q, STET_COMMIT_SEQ),
                                                      stet_column_int(q, STET_COMMIT_BRANCH), rev.doc};
    }
    stet_map_release(&docs);
}

/* Does branch `b` see what was committed on branch `of` at `seq`? */
static bool sees(stet_space *s, int64_t b, int64_t of, int64_t seq) {
    while (b != of) {
        s->probing = true;
        const stet_branch_entry *e = stet_space_branch_entry(s, b);
        s->probing = s->damaged = false;
        if (!e || e->parent < 0 || seq > e->fork)
            return false;
        b = e->parent;
    }
    return true;
}

/* The newest revision before a lost one, among the known and the lost ones. */
static int64_t before(stet_report *r, const known_revisions *known, const stet_lost_revision *l) {
    int64_t found = 0;
    for (size_t i = 0; i < known->len && known->at[i].seq < l->seq; i++)
        if (known->at[i].doc == l->doc && sees(r->s, l->branch, known->at[i].branch, known->at[i].seq))
            found = known->at[i].seq;
    for (size_t i = 0; i < r->revisions.len && r->revisions.at[i].seq < l->seq; i++)
        if (r->revisions.at[i].doc == l->doc && r->revisions.at[i].seq > found &&
            sees(r->s, l->branch, r->revisions.at[i].branch, r->revisions.at[i].seq))
            found = r->revisions.at[i].seq;
    return found;
}

static void put_commit(stet_space *s, int64_t seq, int64_t branch, int64_t time_ms, const stet_buf *changes,
                       const stet_buf *body) {
    stet_row row = {0};
    stet_commit_fields(&row, seq, branch, time_ms, changes->data, changes->len);
    stet_stmt *q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO commits(" STET_COMMIT_COLUMNS ", body)"
                                       " VALUES(?, ?, ?, ?, ?, ?, ?)");
    for (int i = 0; i < STET_COMMIT_CHANGES; i++)
        stet_bind_int(q, 1 + i, row.at[i].number);
    stet_bind_blob(q, 6, changes->data, changes->len);
    stet_bind_blob(q, 7, body && body->len ? body->data : "", body ? body->len : 0);
    stet_run(q);
}

static const stet_change everything = {{"", 0}, STET_KEYSET};

/* Replaces a commit of which nothing is left; `at` are the documents that it changed. */
static void put_lost(stet_report *r, int64_t seq, const known_revisions *known, const stet_lost_revision *at,
                     size_t len) {
    stet_slot *time = stet_map_get(&r->times, &seq, sizeof seq);
    stet_buf changes = STET_BUF(0);
    int64_t last = 0;
    stet_record_start(&changes);
    for (size_t i = 0; i < len; i++) {
        int64_t named = before(r, known, &at[i]);
        stet_record_add(&changes, &last, at[i].doc, at[i].deleted ? STET_REVISION_DELETE : STET_REVISION_LOST,
                        named ? seq - named : 0, "", 0, &everything, 1);
    }
    put_commit(r->s, seq, len ? at[0].branch : 0, time ? (int64_t)time->n : 0, &changes, NULL);
    stet_buf_release(&changes);
}

/* Replaces a commit that is sound except for some documents: those are lost in it, the others stay. */
static void put_parts(stet_report *r, int64_t seq) {
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT " STET_COMMIT_COLUMNS ", body FROM commits WHERE +seq = ?");
    stet_bind_int(q, 1, seq);
    stet_buf changes = STET_BUF(0), kept = STET_BUF(0);
    stet_arena arena = STET_ARENA_INIT;
    int64_t last = 0, branch = 0, time_ms = 0;
    bool good = false;
    if (stet_step(q)) {
        size_t len, body_len;
        const char *bytes;
        stet_record rec;
        stet_record_rev rev;
        good = stet_commit_sound(q, &bytes, &len);
        const char *body = stet_column_blob(q, STET_COMMIT_CHANGES + 1, &body_len);
        branch = stet_column_int(q, STET_COMMIT_BRANCH);
        time_ms = stet_column_int(q, STET_COMMIT_TIME);
        stet_record_start(&changes);
        stet_record_begin(&rec, bytes, len);
        while (good && stet_record_next(&rec, &rev)) {
            bool lost = false, deleted = false;
            for (size_t i = 0; i < r->revisions.len && !lost; i++) {
                lost = r->revisions.at[i].part && r->revisions.at[i].seq == seq && r->revisions.at[i].doc == rev.doc;
                deleted = lost && r->revisions.at[i].deleted;
            }
            const stet_change *leaves = stet_record_leaves(&rev, &arena);
            const char *part = lost ? "" : stet_record_body(&rev, body, body_len);
            size_t part_len = lost ? 0 : rev.body_len;
            stet_buf_add(&kept, part, part_len);
            stet_record_add(&changes, &last, rev.doc,
                            deleted ? STET_REVISION_DELETE
                            : lost  ? STET_REVISION_LOST
                                    : rev.kind,
                            rev.back, part, part_len, leaves ? leaves : &everything, leaves ? rev.leaf_count : 1);
        }
    }
    stet_reset(q);
    if (good)
        put_commit(r->s, seq, branch, time_ms, &changes, &kept);
    stet_arena_release(&arena);
    stet_buf_release(&changes);
    stet_buf_release(&kept);
}

/* R1: saves the heads of documents that lost revisions, before the log is rewritten. A text that the log can no longer
 * prove becomes a snapshot, whichever revision is lost: all that follow may be patches of it. If the head says that the
 * document is deleted, nothing is lost. */
static void save_heads(stet_report *r) {
    stet_map docs = {0};
    stet_numbers keys = {0};
    for (size_t i = 0; i < r->revisions.len; i++)
        stet_map_put(&docs, &r->revisions.at[i].doc, sizeof(int64_t), (stet_slot){.n = 1});
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT key, seq, live, value IS NULL FROM head WHERE sum = row_sum(key, seq,"
                                          " live, links, chain, bytes, value)");
    while (stet_map_len(&docs) && stet_step(q)) {
        int64_t key = stet_column_int(q, 0), seq = stet_column_int(q, 1), doc = STET_DOC_OF(key);
        if (!stet_map_get(&docs, &doc, sizeof doc))
            continue;
        if (stet_column_int(q, 2) && !stet_column_int(q, 3))
            *stet_vec_add(&keys) = key;
        for (size_t i = 0; i < r->revisions.len && !stet_column_int(q, 2); i++)
            if (r->revisions.at[i].seq == seq && r->revisions.at[i].doc == doc)
                r->revisions.at[i].deleted = true;
    }
    for (size_t i = 0; i < keys.len; i++) {
        q = stet_db_stmt(r->s->db, "SELECT seq, value FROM head WHERE key = ?");
        stet_bind_int(q, 1, keys.at[i]);
        int64_t seq = stet_step(q) ? stet_column_int(q, 0) : 0;
        size_t len;
        const char *value = stet_column_blob(q, 1, &len);
        stet_buf text = STET_BUF(0);
        stet_buf_add(&text, value, len);
        stet_reset(q);
        stet_value v;
        bool damaged;
        stet_report_value(r, STET_DOC_OF(keys.at[i]), seq, &v, &damaged);
        stet_value_release(v);
        if (damaged)
            put_snapshot(r->s, keys.at[i], seq, text.data, text.len);
        stet_buf_release(&text);
    }
    stet_vec_release(&keys);
    stet_map_release(&docs);
}

static void mend_log(stet_report *r) {
    known_revisions known = {0};
    if (r->revisions.len)
        qsort(r->revisions.at, r->revisions.len, sizeof *r->revisions.at, by_seq);
    known_of(r, &known);
    for (size_t i = 0; i < r->stray.len; i++) {
        stet_stmt *q = stet_db_stmt(r->s->db, "DELETE FROM commits WHERE seq = ?");
        stet_bind_int(q, 1, r->stray.at[i]);
        stet_run(q);
    }
    const void *key;
    size_t key_len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&r->bad, &i, &key, &key_len, &slot);) {
        int64_t seq;
        memcpy(&seq, key, sizeof seq);
        size_t first = 0, end;
        while (first < r->revisions.len && r->revisions.at[first].seq < seq)
            first++;
        for (end = first; end < r->revisions.len && r->revisions.at[end].seq == seq;)
            end++;
        put_lost(r, seq, &known, r->revisions.at + first, end - first);
        if (first == end)
            stet_report_lost(r, "commit %lld; no document is known to have been changed by it", (long long)seq);
    }
    for (size_t i = 0; i < r->revisions.len; i++)
        if (r->revisions.at[i].part && (i == 0 || r->revisions.at[i - 1].seq != r->revisions.at[i].seq))
            put_parts(r, r->revisions.at[i].seq);
    stet_vec_release(&known);
}

static void mend_snapshots(stet_report *r) {
    stet_space *s = r->s;
    stet_db_exec(s->db, "DELETE FROM snapshot WHERE sum IS NOT row_sum(key, seq, value)");
    STET_VEC(known_revision) wrong = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT key, seq, value FROM snapshot WHERE value IS NOT NULL");
    while (stet_step(q)) {
        int64_t key = stet_column_int(q, 0), seq = stet_column_int(q, 1);
        size_t len;
        const char *text = stet_column_blob(q, 2, &len);
        stet_value v;
        if (stet_report_from_log(r, STET_DOC_OF(key), seq, &v)) {
            stet_buf_clear(&s->text);
            stet_json_write(&s->text, v, STET_JSON_CANONICAL);
            if (s->text.len != len || memcmp(s->text.data, text, len) != 0)
                *stet_vec_add(&wrong) = (known_revision){seq, 0, key};
        }
        stet_value_release(v);
    }
    for (size_t i = 0; i < wrong.len; i++) {
        q = stet_db_stmt(s->db, "DELETE FROM snapshot WHERE key = ? AND seq = ?");
        stet_bind_int(q, 1, wrong.at[i].doc);
        stet_bind_int(q, 2, wrong.at[i].seq);
        stet_run(q);
    }
    stet_vec_release(&wrong);
}

static void put_head(stet_space *s, int64_t key, int64_t seq, bool live, const char *text, size_t len, bool anchor) {
    stet_stmt *q = stet_db_stmt(s->db, "INSERT OR REPLACE INTO head(key, seq, live, links, chain, bytes, value, sum)"
                                       " VALUES(?1, ?2, ?3, 0, 0, ?4, ?5, row_sum(?1, ?2, ?3, 0, 0, ?4, ?5))");
    bool small = live && len <= STET_INLINE_BYTES;
    stet_bind_int(q, 1, key);
    stet_bind_int(q, 2, seq);
    stet_bind_int(q, 3, live);
    stet_bind_int(q, 4, (int64_t)len);
    if (small)
        stet_bind_blob(q, 5, text, len);
    else
        stet_bind_null(q, 5);
    stet_run(q);
    if (anchor)
        put_snapshot(s, key, seq, live ? text : NULL, len);
}

/* Rebuilds heads that are missing, damaged or wrong from the log as it is now. Documents that can't be read are added
 * to `gone`. */
static void mend_heads(stet_report *r, stet_report *now, stet_numbers *gone) {
    stet_space *s = r->s;
    stet_db_exec(s->db, "DELETE FROM head WHERE sum IS NOT row_sum(key, seq, live, links, chain, bytes, value)");
    stet_numbers strays = {0};
    stet_stmt *q = stet_db_stmt(s->db, "SELECT key FROM head");
    while (stet_step(q)) {
        int64_t key = stet_column_int(q, 0);
        if (!stet_map_get(&now->newest, &key, sizeof key))
            *stet_vec_add(&strays) = key;
    }
    for (size_t i = 0; i < strays.len; i++) {
        q = stet_db_stmt(s->db, "DELETE FROM head WHERE key = ?");
        stet_bind_int(q, 1, strays.at[i]);
        stet_run(q);
    }
    stet_vec_release(&strays);
    const void *bytes;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&now->newest, &i, &bytes, &len, &slot);) {
        int64_t key, seq = (int64_t)(slot->n >> 1);
        memcpy(&key, bytes, sizeof key);
        bool live = slot->n & 1, damaged = false;
        stet_value v = stet_value_null();
        if (live && !stet_report_value(r, STET_DOC_OF(key), seq, &v, &damaged)) {
            *stet_vec_add(gone) = key;
            continue;
        }
        if (!stet_map_get(&now->heads, &key, sizeof key)) {
            stet_buf_clear(&s->text);
            if (live)
                stet_json_write(&s->text, v, STET_JSON_CANONICAL);
            put_head(s, key, seq, live, s->text.data, s->text.len, true);
        }
        stet_value_release(v);
    }
}

/* The revisions of a document from the newest down, newest first. */
static void revisions_of(stet_report *r, int64_t doc, int64_t from, stet_numbers *out) {
    for (int64_t seq = from; seq > 0;) {
        stet_stmt *q = stet_db_stmt(r->s->db, "SELECT " STET_COMMIT_COLUMNS " FROM commits WHERE seq = ?");
        stet_bind_int(q, 1, seq);
        stet_record_rev rev = {0};
        bool damaged, found = false;
        if (stet_step(q)) {
            size_t len;
            const char *changes;
            found = stet_commit_sound(q, &changes, &len) && stet_record_find(changes, len, doc, &rev, &damaged);
        }
        stet_reset(q);
        if (!found)
            return;
        *stet_vec_add(out) = seq;
        seq = rev.back && rev.back < seq ? seq - rev.back : 0;
    }
}

/* Prints "at 3, 7 to 9" for those revisions that can't be read. `*good`: the newest that can be, 0 for none. */
static bool unreadable(stet_report *r, int64_t doc, const stet_numbers *seqs, stet_buf *out, int64_t *good) {
    int64_t first = 0, last = 0;
    size_t ranges = 0;
    *good = 0;
    for (size_t i = seqs->len; i-- > 0;) {
        bool damaged;
        stet_value v = stet_value_null();
        stet_report_value(r, doc, seqs->at[i], &v, &damaged);
        stet_value_release(v);
        if (damaged) {
            first = first ? first : seqs->at[i];
            last = seqs->at[i];
        } else {
            *good = seqs->at[i];
        }
        if (first && (!damaged || i == 0)) {
            stet_buf_printf(out, "%s%lld", ranges++ ? ", " : "at ", (long long)first);
            if (last != first)
                stet_buf_printf(out, " to %lld", (long long)last);
            first = 0;
        }
    }
    return ranges > 0;
}

/* R3: writes documents of one branch again, in one commit. */
static void put_back(stet_report *r, const int64_t *keys, size_t count, stet_report *now) {
    stet_space *s = r->s;
    int64_t seq = ++r->last, last = 0, branch = keys[0] >> 40;
    stet_buf changes = STET_BUF(0), body = STET_BUF(0);
    stet_record_start(&changes);
    for (size_t i = 0; i < count; i++) {
        int64_t doc = STET_DOC_OF(keys[i]), good = 0;
        int64_t newest = (int64_t)(stet_map_get(&now->newest, &keys[i], sizeof keys[i])->n >> 1);
        stet_numbers seqs = {0};
        stet_buf lost = STET_BUF(0);
        revisions_of(r, doc, newest, &seqs);
        unreadable(r, doc, &seqs, &lost, &good);
        stet_value v = stet_value_null();
        bool damaged, live = good && stet_report_value(r, doc, good, &v, &damaged);
        size_t at = body.len;
        if (live)
            stet_json_write(&body, v, STET_JSON_CANONICAL);
        stet_record_add(&changes, &last, doc, live ? STET_REVISION_SET : STET_REVISION_DELETE, seq - newest,
                        body.data + at, body.len - at, &everything, 1);
        put_head(s, keys[i], seq, live, body.data + at, body.len - at, false);
        const char *name = stet_report_name(r, branch, doc);
        if (live)
            stet_report_lost(r,
                             "%s: its revisions %s, the newest among them; commit %lld made it again what it was at"
                             " %lld",
                             name, stet_buf_cstr(&lost), (long long)seq, (long long)good);
        else
            stet_report_lost(r, "%s: its revisions %s, and no older one is there; commit %lld deleted it", name,
                             stet_buf_cstr(&lost), (long long)seq);
        stet_value_release(v);
        stet_buf_release(&lost);
        stet_vec_release(&seqs);
    }
    put_commit(s, seq, branch, stet_clock_ms(), &changes, &body);
    stet_buf_release(&changes);
    stet_buf_release(&body);
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Reports documents that have lost revisions but still have their newest one. */
static void report_lost(stet_report *r, stet_report *now, const stet_numbers *gone) {
    if (r->revisions.len)
        qsort(r->revisions.at, r->revisions.len, sizeof *r->revisions.at, by_place);
    for (size_t i = 0; i < r->revisions.len; i++) {
        const stet_lost_revision *l = &r->revisions.at[i];
        if (i && l[-1].doc == l->doc && l[-1].branch == l->branch)
            continue;
        int64_t key = stet_space_key(l->branch, l->doc), good;
        stet_slot *newest = stet_map_get(&now->newest, &key, sizeof key);
        bool reported = !newest;
        for (size_t k = 0; k < gone->len && !reported; k++)
            reported = gone->at[k] == key;
        if (reported)
            continue;
        stet_numbers seqs = {0};
        stet_buf lost = STET_BUF(0);
        revisions_of(r, l->doc, (int64_t)(newest->n >> 1), &seqs);
        if (unreadable(r, l->doc, &seqs, &lost, &good))
            stet_report_lost(r, "%s: its revisions %s; it is what it was", stet_report_name(r, l->branch, l->doc),
                             stet_buf_cstr(&lost));
        stet_buf_release(&lost);
        stet_vec_release(&seqs);
    }
}

/* The default branch is the same in every space. Other branches have no second copy: check has reported them as
 * lost. */
static void mend_others(stet_report *r) {
    stet_db *db = r->s->db;
    stet_db_exec(db, "INSERT OR REPLACE INTO branch(branch, name, parent, fork, created_ms, deleted_ms, sum)"
                     " VALUES(0, '', NULL, 0, 0, NULL, row_sum(0, '', NULL, 0, 0, NULL))");
    /* Content that no commit has: a session that sends the commit again is refused, and nothing is done twice. */
    stet_db_exec(db, "UPDATE replay SET content = zeroblob(32), sum = row_sum(session, local, seq, changed,"
                     " zeroblob(32)) WHERE sum IS NOT row_sum(session, local, seq, changed, content)");
    stet_stmt *q = stet_db_stmt(db, "SELECT session FROM session WHERE sum IS NOT row_sum(session, name)");
    while (stet_step(q))
        stet_report_lost(r, "the name of session number %lld: a commit that it sends again is taken for a new one",
                         (long long)stet_column_int(q, 0));
    stet_db_exec(db, "UPDATE session SET name = 'lost:' || session, sum = row_sum(session, 'lost:' || session)"
                     " WHERE sum IS NOT row_sum(session, name)");
}

/* Forgets a document that was written but that neither a commit nor a head knows. */
static void forget_vanished(stet_report *r, stet_report *now) {
    stet_numbers docs = {0};
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT doc, written FROM document WHERE written");
    while (stet_step(q))
        for (int64_t b = 0; b < STET_WRITTEN_BRANCHES && stet_column_int(q, 1) >> b; b++) {
            int64_t key = stet_space_key(b, stet_column_int(q, 0));
            if ((stet_column_int(q, 1) >> b & 1) && !stet_map_get(&now->newest, &key, sizeof key)) {
                *stet_vec_add(&docs) = key;
            }
        }
    for (size_t i = 0; i < docs.len; i++) {
        int64_t branch = docs.at[i] >> 40, doc = STET_DOC_OF(docs.at[i]);
        r->s->probing = true;
        const stet_branch_entry *b = stet_space_branch_entry(r->s, branch);
        r->s->probing = r->s->damaged = false;
        if (!b || b->deleted)
            continue;
        stet_report_lost(r, "%s: nothing of it is left", stet_report_name(r, branch, doc));
        q = stet_db_stmt(r->s->db, "UPDATE document SET written = written & ~?2, sum = row_sum(doc, id, scope, written"
                                   " & ~?2) WHERE doc = ?1");
        stet_bind_int(q, 1, doc);
        stet_bind_int(q, 2, (int64_t)1 << branch);
        stet_run(q);
    }
    stet_vec_release(&docs);
}

void stet_report_repair(stet_report *r) {
    stet_numbers gone = {0};
    mend_others(r);
    stet_space_forget_branches(r->s);
    mend_names(r);
    stet_space_forget_names(r->s);
    save_heads(r);
    mend_log(r);
    mend_snapshots(r);
    stet_report now = {.s = r->s, .quiet = true, .arena = STET_ARENA_INIT};
    stet_report_scan(&now);
    r->last = now.last;
    mend_heads(r, &now, &gone);
    forget_vanished(r, &now);
    report_lost(r, &now, &gone);
    if (gone.len)
        qsort(gone.at, gone.len, sizeof *gone.at, by_number);
    for (size_t i = 0, end; i < gone.len; i = end) {
        for (end = i; end < gone.len && gone.at[end] >> 40 == gone.at[i] >> 40;)
            end++;
        put_back(r, gone.at + i, end - i, &now);
    }
    stet_report_release(&now);
    stet_vec_release(&gone);
}
