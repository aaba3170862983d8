/* check.c - verifies what is stored: checksums, the log, and what is derived from it.
 *
 * The whole log is read once, oldest first, and the newest sequence of each (branch, document) is kept. It says what
 * head rows must say, what each revision must name as its predecessor (L1), and whether the revision may be a patch
 * (L2). Then every head and snapshot text is compared with the document rebuilt from the log.
 *
 * A commit that is gone or damaged does not hide which documents it changed: a later revision names it as its
 * predecessor, or it is the newest one and the head names it. repair.c mends what is found.
 */

#include "memory/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN_MAX = 1000 };

static void add_line(stet_report *r, size_t *count, const char *prefix, const char *format, va_list args) {
    if (r->quiet || (*count)++ >= SHOWN_MAX)
        return;
    char line[1024];
    vsnprintf(line, sizeof line, format, args);
    stet_buf_printf(r->problems, "%s%s\n", prefix, line);
}

void stet_report_problem(stet_report *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_line(r, &r->found, "", format, args);
    va_end(args);
}

void stet_report_lost(stet_report *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_line(r, &r->lost, "lost: ", format, args);
    va_end(args);
}

const char *stet_report_name(stet_report *r, int64_t branch, int64_t doc) {
    stet_docname name = {0};
    stet_buf b = STET_BUF(0);
    if (stet_space_docname(r->s, doc, &r->arena, &name, NULL) != STET_OK)
        stet_buf_printf(&b, "document number %lld", (long long)doc);
    else if (name.scope && *name.scope)
        stet_buf_printf(&b, "document \"%s\" of scope \"%s\"", name.id, name.scope);
    else
        stet_buf_printf(&b, "document \"%s\"", name.id);
    if (branch)
        stet_buf_printf(&b, " on branch number %lld", (long long)branch);
    const char *text = stet_arena_strndup(&r->arena, b.data, b.len);
    stet_buf_release(&b);
    return text;
}

bool stet_report_bad(const stet_report *r, int64_t seq) {
    return stet_map_get(&r->bad, &seq, sizeof seq) != NULL;
}

bool stet_report_value(stet_report *r, int64_t doc, int64_t seq, stet_value *out, bool *damaged) {
    stet_space *s = r->s;
    s->probing = true;
    s->damaged = false;
    bool there = stet_document_rebuild(s, doc, seq, false, out);
    *damaged = s->damaged;
    s->probing = s->damaged = false;
    return there;
}

/* The branch to which a sequence belongs, among a branch and its ancestors. ~branch: unknown, because the row of one of
 * them is damaged. */
static int64_t owner_of(stet_report *r, int64_t branch, int64_t seq) {
    for (;;) {
        r->s->probing = true;
        const stet_branch_entry *b = stet_space_branch_entry(r->s, branch);
        r->s->probing = r->s->damaged = false;
        if (!b)
            return ~branch;
        if (b->parent < 0 || seq > b->fork)
            return branch;
        branch = b->parent;
    }
}

static void note_lost(stet_report *r, int64_t seq, int64_t branch, int64_t doc, bool part) {
    bool there = false;
    /* A commit is on one branch: any of its revisions that can tell decides for all. */
    for (size_t i = 0; i < r->revisions.len; i++) {
        stet_lost_revision *l = &r->revisions.at[i];
        if (l->seq != seq)
            continue;
        if (l->branch < 0)
            l->branch = branch;
        else if (branch < 0)
            branch = l->branch;
        there = there || l->doc == doc;
    }
    if (!there)
        *stet_vec_add(&r->revisions) = (stet_lost_revision){seq, branch, doc, part, false};
}

/* The newest revision of a document that a branch sees, according to what was read so far. False: damage hides it. */
static bool newest_seen(stet_report *r, int64_t branch, int64_t doc, int64_t upto, uint64_t *out) {
    stet_space *s = r->s;
    for (;;) {
        int64_t key = stet_space_key(branch, doc);
        stet_slot *slot = stet_map_get(&r->newest, &key, sizeof key);
        if (slot && (int64_t)(slot->n >> 1) <= upto) {
            *out = slot->n;
            return true;
        }
        if (slot) { /* the parent has newer revisions than the fork: look in the log */
            s->probing = true;
            s->damaged = false;
            int64_t seq = stet_document_revision_at(s, branch, doc, upto);
            stet_value v = stet_value_null();
            bool live = seq && stet_document_rebuild(s, doc, seq, false, &v), damaged = s->damaged;
            s->probing = s->damaged = false;
            stet_value_release(v);
            *out = (uint64_t)seq << 1 | live;
            return !damaged;
        }
        s->probing = true;
        const stet_branch_entry *b = stet_space_branch_entry(s, branch);
        bool damaged = s->damaged;
        s->probing = s->damaged = false;
        *out = 0;
        if (!b || b->parent < 0)
            return b && !damaged; /* without its row, the ancestors of a branch are unknown */
        upto = upto < b->fork ? upto : b->fork;
        branch = b->parent;
    }
}

/* The first revision of a document on a branch names the newest one that the branch saw. So its ancestors have no
 * revision between that one and the fork. */
static void prove_quiet(stet_report *r, int64_t branch, int64_t doc, int64_t named) {
    int64_t upto = INT64_MAX;
    while (named <= upto) {
        r->s->probing = true;
        const stet_branch_entry *b = stet_space_branch_entry(r->s, branch);
        r->s->probing = r->s->damaged = false;
        if (!b || b->parent < 0 || named > b->fork)
            return;
        upto = upto < b->fork ? upto : b->fork;
        branch = b->parent;
        int64_t key = stet_space_key(branch, doc);
        stet_slot *slot = stet_map_get(&r->quiet_to, &key, sizeof key);
        if (!slot || (int64_t)slot->n < upto)
            stet_map_put(&r->quiet_to, &key, sizeof key, (stet_slot){.n = (uint64_t)upto});
    }
}

static void check_links(stet_report *r, int64_t seq, int64_t branch, const stet_record_rev *rev) {
    int64_t named = rev->back ? seq - rev->back : 0;
    uint64_t before;
    if (named && stet_report_bad(r, named)) {
        note_lost(r, named, owner_of(r, branch, named), rev->doc, false);
        return;
    }
    if (!newest_seen(r, branch, rev->doc, INT64_MAX >> 1, &before))
        return;
    prove_quiet(r, branch, rev->doc, named);
    if (named != (int64_t)(before >> 1))
        stet_report_problem(r, "commit %lld, %s: names %lld as the revision before, which is %lld", (long long)seq,
                            stet_report_name(r, branch, rev->doc), (long long)named, (long long)(before >> 1));
    if (rev->kind == STET_REVISION_PATCH && !(before & 1))
        stet_report_problem(r, "commit %lld, %s: a patch of nothing", (long long)seq,
                            stet_report_name(r, branch, rev->doc));
}

static bool decodes(const stet_record_rev *rev, const char *part) {
    stet_value v;
    stet_patches ops = {0};
    bool good = true;
    if (rev->kind == STET_REVISION_SET) {
        good = stet_json_read(part, rev->body_len, NULL, &v, NULL) == STET_OK;
        if (good) {
            good = stet_value_type(v) == STET_TYPE_OBJECT;
            stet_value_release(v);
        }
    } else if (rev->kind == STET_REVISION_PATCH) {
        good = stet_patches_decode(part, rev->body_len, &ops);
    }
    stet_patches_release(&ops);
    return good;
}

static void check_revision(stet_report *r, int64_t seq, int64_t branch, const stet_record_rev *rev, const char *body,
                           size_t body_len, stet_arena *arena) {
    check_links(r, seq, branch, rev);
    const char *part = stet_record_body(rev, body, body_len);
    if (!part || !decodes(rev, part)) {
        stet_report_problem(r, "%s: what commit %lld says of it is damaged", stet_report_name(r, branch, rev->doc),
                            (long long)seq);
        note_lost(r, seq, branch, rev->doc, true);
    }
    if (rev->leaf_count == 0 || !stet_record_leaves(rev, arena))
        stet_report_problem(r, "commit %lld, %s: its changed leaves are damaged", (long long)seq,
                            stet_report_name(r, branch, rev->doc));
    int64_t key = stet_space_key(branch, rev->doc);
    uint64_t now = (uint64_t)seq << 1 | (rev->kind != STET_REVISION_DELETE);
    stet_map_put(&r->newest, &key, sizeof key, (stet_slot){.n = now});
}

/* Notes that the commits between two sound ones are bad. */
static void note_bad(stet_report *r, int64_t from, int64_t to) {
    for (int64_t seq = from; seq <= to; seq++) {
        bool there = stet_map_get(&r->times, &seq, sizeof seq) != NULL;
        if (there) {
            stet_report_problem(r, "commit %lld is damaged", (long long)seq);
        } else {
            int64_t end = seq;
            while (end < to && (end++, stet_map_get(&r->times, &end, sizeof end) == NULL))
                ;
            if (stet_map_get(&r->times, &end, sizeof end))
                end--;
            if (seq == end)
                stet_report_problem(r, "commit %lld is missing", (long long)seq);
            else
                stet_report_problem(r, "commits %lld to %lld are missing", (long long)seq, (long long)end);
            for (; seq < end; seq++)
                stet_map_put(&r->bad, &seq, sizeof seq, (stet_slot){.n = 0});
        }
        stet_map_put(&r->bad, &seq, sizeof seq, (stet_slot){.n = there});
    }
}

static void check_log(stet_report *r) {
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT " STET_COMMIT_COLUMNS ", body FROM commits ORDER BY seq");
    stet_arena arena = STET_ARENA_INIT;
    while (stet_step(q)) {
        size_t len, body_len;
        const char *changes;
        bool sound = stet_commit_sound(q, &changes, &len);
        const char *body = stet_column_blob(q, STET_COMMIT_CHANGES + 1, &body_len);
        int64_t seq = stet_column_int(q, STET_COMMIT_SEQ), branch = stet_column_int(q, STET_COMMIT_BRANCH);
        if (!sound) { /* its number may be wrong too: the next sound one tells */
            stet_map_put(&r->times, &seq, sizeof seq, (stet_slot){.n = (uint64_t)stet_column_int(q, STET_COMMIT_TIME)});
            continue;
        }
        note_bad(r, r->last + 1, seq - 1);
        r->last = seq;
        stet_record rec;
        stet_record_rev rev;
        stet_record_begin(&rec, changes, len);
        while (stet_record_next(&rec, &rev))
            check_revision(r, seq, branch, &rev, body, body_len, &arena);
        if (rec.damaged)
            stet_report_problem(r, "commit %lld does not decode", (long long)seq);
        stet_arena_clear(&arena);
    }
    stet_arena_release(&arena);
}

/* Beyond the newest sound commit: sequences that heads and snapshots know of, then the damaged rows that follow. */
static void check_end(stet_report *r) {
    int64_t top = r->last;
    stet_stmt *q =
        stet_db_stmt(r->s->db, "SELECT max(seq) FROM (SELECT seq FROM head WHERE sum = row_sum(key, seq, live,"
                               " links, chain, bytes, value) UNION ALL SELECT seq FROM snapshot WHERE seq > ?"
                               " AND sum = row_sum(key, seq, value))");
    stet_bind_int(q, 1, r->last);
    while (stet_step(q))
        top = stet_column_int(q, 0) > top ? stet_column_int(q, 0) : top;
    while (top++, stet_map_get(&r->times, &top, sizeof top))
        ;
    top--;
    note_bad(r, r->last + 1, top);
    r->last = top;
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&r->times, &i, &key, &len, &slot);) {
        int64_t seq;
        memcpy(&seq, key, sizeof seq);
        if (stet_report_bad(r, seq))
            continue;
        stet_report_problem(r, "a commit has the number %lld, which there never was", (long long)seq);
        *stet_vec_add(&r->stray) = seq;
    }
}

static bool text_differs(stet_report *r, stet_value v, const char *text, size_t len) {
    stet_buf_clear(&r->s->text);
    stet_json_write(&r->s->text, v, STET_JSON_CANONICAL);
    return r->s->text.len != len || memcmp(r->s->text.data, text, len) != 0;
}

static void check_head(stet_report *r, stet_stmt *q) {
    int64_t key = stet_column_int(q, 0), seq = stet_column_int(q, 1), doc = STET_DOC_OF(key);
    bool live = stet_column_int(q, 2) != 0, damaged;
    if (stet_report_bad(r, seq)) {
        note_lost(r, seq, key >> 40, doc, false);
        stet_map_put(&r->heads, &key, sizeof key, (stet_slot){.n = 1});
        return;
    }
    stet_slot *slot = stet_map_get(&r->newest, &key, sizeof key);
    if (!slot || (int64_t)(slot->n >> 1) != seq || (bool)(slot->n & 1) != live) {
        stet_report_problem(r, "the head of %s is not its newest revision", stet_report_name(r, key >> 40, doc));
        return;
    }
    size_t len;
    const char *text = stet_column_blob(q, 6, &len);
    stet_value v = stet_value_null();
    if (live && stet_report_value(r, doc, seq, &v, &damaged) && text && text_differs(r, v, text, len))
        stet_report_problem(r, "the head of %s has another text than its history", stet_report_name(r, key >> 40, doc));
    else
        stet_map_put(&r->heads, &key, sizeof key, (stet_slot){.n = 1});
    stet_value_release(v);
}

static void check_heads(stet_report *r) {
    stet_stmt *q =
        stet_db_stmt(r->s->db, "SELECT key, seq, live, links, chain, bytes, value, sum FROM head ORDER BY key");
    stet_map met = {0};
    while (stet_step(q)) {
        int64_t key = stet_column_int(q, 0);
        stet_map_put(&met, &key, sizeof key, (stet_slot){.n = 1});
        if (stet_column_sound(q, 0, 7))
            check_head(r, q);
        else
            stet_report_problem(r, "the head of %s is damaged", stet_report_name(r, key >> 40, STET_DOC_OF(key)));
    }
    const void *bytes;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&r->newest, &i, &bytes, &len, &slot);) {
        int64_t key;
        memcpy(&key, bytes, sizeof key);
        if (!stet_map_get(&met, &key, sizeof key))
            stet_report_problem(r, "%s has no head", stet_report_name(r, key >> 40, STET_DOC_OF(key)));
    }
    stet_map_release(&met);
}

bool stet_report_from_log(stet_report *r, int64_t doc, int64_t seq, stet_value *out) {
    stet_space *s = r->s;
    stet_stmt *q = stet_db_stmt(s->db, "SELECT " STET_COMMIT_COLUMNS ", body FROM commits WHERE seq = ?");
    stet_bind_int(q, 1, seq);
    stet_buf part = STET_BUF(0);
    stet_record_rev rev = {0};
    bool good = false, damaged;
    if (stet_step(q)) {
        size_t len, body_len;
        const char *changes;
        bool sound = stet_commit_sound(q, &changes, &len);
        const char *body = stet_column_blob(q, STET_COMMIT_CHANGES + 1, &body_len);
        good = sound && stet_record_find(changes, len, doc, &rev, &damaged) &&
               (body = stet_record_body(&rev, body, body_len)) != NULL;
        if (good)
            stet_buf_add(&part, body, rev.body_len);
    }
    stet_reset(q);
    stet_patches ops = {0};
    *out = stet_value_null();
    if (good && rev.kind == STET_REVISION_SET)
        good = stet_json_read(part.data, part.len, NULL, out, NULL) == STET_OK;
    else if (good && rev.kind == STET_REVISION_PATCH && rev.back && rev.back < seq &&
             stet_patches_decode(part.data, part.len, &ops))
        good = stet_report_value(r, doc, seq - rev.back, out, &damaged) &&
               stet_patches_apply(ops.at, ops.len, out, NULL) == STET_OK;
    else
        good = false;
    stet_patches_release(&ops);
    stet_buf_release(&part);
    return good;
}

static void check_snapshots(stet_report *r) {
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT key, seq, value, sum FROM snapshot ORDER BY key, seq");
    while (stet_step(q)) {
        bool sound = stet_column_sound(q, 0, 3);
        int64_t key = stet_column_int(q, 0), seq = stet_column_int(q, 1), doc = STET_DOC_OF(key);
        if (!sound) {
            stet_report_problem(r, "the snapshot of %s at %lld is damaged", stet_report_name(r, key >> 40, doc),
                                (long long)seq);
            continue;
        }
        if (stet_report_bad(r, seq))
            note_lost(r, seq, key >> 40, doc, false);
        size_t len;
        const char *text = stet_column_blob(q, 2, &len);
        stet_value v;
        if (text && stet_report_from_log(r, doc, seq, &v) && text_differs(r, v, text, len))
            stet_report_problem(r, "the snapshot of %s at %lld has another text than its history",
                                stet_report_name(r, key >> 40, doc), (long long)seq);
        else if (!text)
            continue;
        stet_value_release(v);
    }
}

/* If a document has no head that can be trusted, any commit lost since its last known revision may have changed it, and
 * nothing could prove that. So its newest revision counts as lost too. */
static void suspect_heads(stet_report *r) {
    const void *bytes;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_len(&r->bad) && stet_map_next(&r->newest, &i, &bytes, &len, &slot);) {
        int64_t key, newest = (int64_t)(slot->n >> 1), seq;
        memcpy(&key, bytes, sizeof key);
        if (stet_map_get(&r->heads, &key, sizeof key))
            continue;
        const stet_slot *quiet = stet_map_get(&r->quiet_to, &key, sizeof key);
        if (quiet && (int64_t)quiet->n > newest)
            newest = (int64_t)quiet->n;
        const void *bad;
        for (size_t k = 0; stet_map_next(&r->bad, &k, &bad, &len, &slot);) {
            memcpy(&seq, bad, sizeof seq);
            bool elsewhere = seq <= newest;
            for (size_t n = 0; n < r->revisions.len && !elsewhere; n++)
                elsewhere = r->revisions.at[n].seq == seq && r->revisions.at[n].branch >= 0 &&
                            r->revisions.at[n].branch != key >> 40;
            if (!elsewhere)
                note_lost(r, seq, ~(key >> 40), STET_DOC_OF(key), false);
        }
    }
}

/* Finds documents without a name, and names whose document was written but of which nothing is left. */
static void check_names(stet_report *r) {
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT doc, id, scope, written, sum FROM document");
    while (stet_step(q)) {
        int64_t doc = stet_column_int(q, 0), written = stet_column_int(q, 3);
        if (!stet_column_sound(q, 0, 4)) {
            size_t len;
            const char *id = stet_column_text(q, 1, &len);
            stet_report_problem(r, "the name of document number %lld is damaged (it reads \"%.200s\")", (long long)doc,
                                stet_utf8_valid(id, len) ? id : "?");
            *stet_vec_add(&r->nameless) = doc;
            continue;
        }
        for (int64_t b = 0; b < STET_WRITTEN_BRANCHES && written >> b; b++) {
            int64_t key = stet_space_key(b, doc);
            const stet_branch_entry *entry = NULL;
            if (!(written >> b & 1) || stet_map_get(&r->newest, &key, sizeof key) ||
                stet_map_get(&r->heads, &key, sizeof key))
                continue;
            r->s->probing = true;
            entry = stet_space_branch_entry(r->s, b);
            r->s->probing = r->s->damaged = false;
            if (entry && !entry->deleted)
                stet_report_problem(r, "%s: nothing of it is left", stet_report_name(r, b, doc));
        }
    }
    const void *bytes;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&r->newest, &i, &bytes, &len, &slot);) {
        int64_t key, doc;
        memcpy(&key, bytes, sizeof key);
        doc = STET_DOC_OF(key);
        q = stet_db_stmt(r->s->db, "SELECT 1 FROM document WHERE doc = ?");
        stet_bind_int(q, 1, doc);
        bool named = stet_step(q);
        stet_reset(q);
        for (size_t k = 0; k < r->nameless.len && !named; k++)
            named = r->nameless.at[k] == doc;
        if (!named) {
            stet_report_problem(r, "document number %lld has no name", (long long)doc);
            *stet_vec_add(&r->nameless) = doc;
        }
    }
    r->names_fit = stet_space_names_all_fit(r->s);
    if (!r->names_fit && r->nameless.len == 0)
        stet_report_problem(r, "the name of a document is gone");
    if (r->names_fit && !stet_space_name_ranges_fit(r->s))
        stet_report_problem(r, "digests of the names of documents are damaged");
}

/* Branches are numbered consecutively, and a row is never removed. */
void stet_report_branches(stet_report *r, stet_numbers *missing) {
    int64_t next = 0, top = 0;
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT max(key) FROM head WHERE sum = row_sum(key, seq, live, links, chain,"
                                          " bytes, value)");
    while (stet_step(q))
        top = stet_column_int(q, 0) >> 40;
    q = stet_db_stmt(r->s->db, "SELECT branch FROM branch WHERE branch BETWEEN 0 AND ? AND (branch <= ? OR sum ="
                               " row_sum(branch, name, parent, fork, created_ms, deleted_ms)) ORDER BY branch");
    stet_bind_int(q, 1, STET_BRANCH_MAX);
    stet_bind_int(q, 2, top);
    while (stet_step(q))
        for (int64_t there = stet_column_int(q, 0); next <= there; next++)
            if (next != there)
                *stet_vec_add(missing) = next;
    for (; next <= top; next++)
        *stet_vec_add(missing) = next;
}

static void say_branch(stet_report *r, int64_t branch, const char *what) {
    if (branch == 0)
        stet_report_problem(r, "branch number 0 is %s", what);
    else
        stet_report_lost(r, "branch number %lld is %s: restore the space from a backup if you need the branch",
                         (long long)branch, what);
}

static void check_others(stet_report *r) {
    static const struct {
        const char *sql, *what;
    } tables[] = {
        {"SELECT session FROM session WHERE sum IS NOT row_sum(session, name)", "session number %lld is damaged"},
        {"SELECT local FROM replay WHERE sum IS NOT row_sum(session, local, seq, changed, content)",
         "the answer to number %lld of a session is damaged"}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        stet_stmt *q = stet_db_stmt(r->s->db, tables[i].sql);
        while (stet_step(q)) {
            char what[128];
            snprintf(what, sizeof what, tables[i].what, (long long)stet_column_int(q, 0));
            stet_report_problem(r, "%s", what);
        }
    }
    /* The default branch is the same in every space. Other branches have no second copy, so that no repair can restore
     * them. */
    stet_numbers missing = {0};
    stet_report_branches(r, &missing);
    for (size_t i = 0; i < missing.len; i++)
        say_branch(r, missing.at[i], "missing");
    stet_vec_release(&missing);
    stet_stmt *q = stet_db_stmt(r->s->db, "SELECT branch FROM branch WHERE sum IS NOT row_sum(branch, name, parent,"
                                          " fork, created_ms, deleted_ms)");
    while (stet_step(q))
        say_branch(r, stet_column_int(q, 0), "damaged");
}

static void name_lost(stet_report *r) {
    for (size_t i = 0; i < r->revisions.len; i++)
        if (r->revisions.at[i].branch < 0)
            r->revisions.at[i].branch = ~r->revisions.at[i].branch;
    for (size_t i = 0; i < r->revisions.len; i++)
        if (!r->revisions.at[i].part)
            stet_report_problem(r, "%s: its revision at %lld is damaged",
                                stet_report_name(r, r->revisions.at[i].branch, r->revisions.at[i].doc),
                                (long long)r->revisions.at[i].seq);
}

void stet_report_scan(stet_report *r) {
    check_log(r);
    check_end(r);
    check_heads(r);
    check_snapshots(r);
    suspect_heads(r);
    name_lost(r);
    check_names(r);
    check_others(r);
}

void stet_report_release(stet_report *r) {
    stet_map_release(&r->newest);
    stet_map_release(&r->heads);
    stet_map_release(&r->quiet_to);
    stet_map_release(&r->bad);
    stet_map_release(&r->times);
    stet_vec_release(&r->stray);
    stet_vec_release(&r->nameless);
    stet_vec_release(&r->revisions);
    stet_arena_release(&r->arena);
}

/* Indexes are copies, which SQLite can rebuild. Any other damage of the file itself can't be repaired. */
static stet_status mend_file(stet_space *s, bool *sound, stet_error *err) {
    stet_buf again = STET_BUF(1 << 20);
    stet_db_exec(s->db, "REINDEX");
    stet_error ours = STET_ERROR_INIT;
    stet_status st = stet_db_status(s->db, &ours);
    stet_error_clear(&ours);
    if (st == STET_OK || st == STET_CORRUPT)
        st = stet_db_check(s->db, &again, err);
    *sound = st == STET_OK && again.len == 0;
    stet_buf_release(&again);
    return st;
}

stet_status stet_space_check(stet_space *s, bool repair, stet_buf *problems, size_t *found, size_t *repaired,
                             stet_error *err) {
    stet_report r = {.s = s, .problems = problems, .arena = STET_ARENA_INIT};
    *found = *repaired = 0;
    size_t before = problems->len;
    stet_status st = stet_db_check(s->db, problems, err);
    if (st != STET_OK)
        return st;
    for (size_t i = before; i < problems->len; i++)
        r.found += problems->data[i] == '\n';
    bool sound = r.found == 0, begun = false; /* otherwise the tables themselves can't be trusted */
    if (!sound && repair)
        st = mend_file(s, &sound, err);
    if (st == STET_OK && sound && repair) {
        stet_cache_clear(s);
        stet_space_forget_names(s);
        stet_space_forget_branches(s);
        st = stet_db_begin_write(s->db, err);
        begun = st == STET_OK;
    } else if (st == STET_OK && sound) {
        st = stet_space_enter(s, &begun, err);
    }
    if (st == STET_OK && sound) {
        stet_report_scan(&r);
        if (repair && r.found)
            stet_report_repair(&r);
        st = stet_space_leave(s, begun, STET_OK, err);
        if (repair) {
            stet_cache_clear(s);
            stet_space_forget_names(s);
            stet_space_forget_branches(s);
            s->data_version = -1; /* forces a refresh, whoever wrote */
        }
    }
    *found = r.found + r.lost;
    *repaired = repair && sound && st == STET_OK ? r.found : 0;
    stet_report_release(&r);
    return st;
}
