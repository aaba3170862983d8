/* name_digest.c - notices that names of documents are missing.
 *
 * A name that vanishes would look like one that never existed: a reader would find no document, and a writer would give
 * it a new number, which the readers of the old number never notice. So `name_digest` divides all names, in order, into
 * ranges of up to 32, and has the digest (db.h) of the names in each. A row is the first name of its range, which ends
 * before the name of the next row; the first range begins before all names.
 *
 *   N1. Before a name is reported absent, the names of its range are compared with their digest. A range that matched
 *       is not read again as long as its digest is the same.
 *   N2. Code that stores or removes names changes the digests by those names alone, so that a digest which did not match
 *       before does not match afterwards. A range is divided only if it matches.
 *
 * The digest of all names in space_meta serves a handle that loads all of them into memory (space.c), `check`, and a
 * start, which compares it if there are few names: then even a missing name that nobody asks for is noticed.
 *
 * Rejected: a digest of neighbouring numbers, as place_digest has, because an absent name has no number; and one digest
 * of all names, which would cost 50 ms per failed search among 100,000 names.
 */

#include "memory/internal.h"
#include "memory/observe_internal.h"

enum { RANGE_MOST = 32, RANGE_PART = 16 };

#define RANGE_ROWS                                                                                                     \
    " FROM document WHERE (id, scope) >= (r.id, r.scope) AND (id, scope) < (SELECT coalesce(max(n.id), x''),"          \
    " coalesce(max(n.scope), '') FROM (SELECT id, scope FROM name_digest WHERE (id, scope) > (r.id, r.scope) ORDER BY" \
    " id, scope LIMIT 1) n)" /* every blob sorts above every text */
#define RANGE_OF                                                                                                       \
    "SELECT id, scope, digest FROM name_digest WHERE (id, scope) <= (?1, ?2) ORDER BY id DESC, scope DESC LIMIT 1"
#define RANGE_NEXT "SELECT id, scope FROM name_digest WHERE (id, scope) > (?1, ?2) ORDER BY id, scope LIMIT 1"

int64_t stet_name_sum(int64_t doc, const char *id, size_t id_len, const char *scope, size_t scope_len) {
    return stet_fields_sum((stet_field[]){{STET_FIELD_INT, doc, NULL, 0},
                                          {STET_FIELD_TEXT, 0, id, id_len},
                                          {STET_FIELD_TEXT, 0, scope, scope_len}},
                           3);
}

typedef struct name_range {
    char *id, *scope;      /* its first name */
    char *end, *end_scope; /* the first name of the next range; NULL: this is the last one */
    int64_t digest;
} name_range;

static void range_release(name_range *r) {
    stet_free(r->id);
    stet_free(r->scope);
    stet_free(r->end);
    stet_free(r->end_scope);
    *r = (name_range){0};
}

static char *column_copy(stet_stmt *q, int column) {
    size_t len;
    const char *text = stet_column_text(q, column, &len);
    return stet_strndup(text, len);
}

/* False: the table has no range for the name, although it always should. */
static bool range_of(stet_db *db, const char *id, size_t id_len, const char *scope, size_t scope_len, name_range *out) {
    *out = (name_range){0};
    stet_stmt *q = stet_db_stmt(db, RANGE_OF);
    stet_bind_text(q, 1, id, id_len);
    stet_bind_text(q, 2, scope, scope_len);
    bool there = stet_step(q);
    if (there)
        *out = (name_range){.id = column_copy(q, 0), .scope = column_copy(q, 1), .digest = stet_column_int(q, 2)};
    stet_reset(q);
    if (!there)
        return false;
    q = stet_db_stmt(db, RANGE_NEXT);
    stet_bind_text(q, 1, out->id, strlen(out->id));
    stet_bind_text(q, 2, out->scope, strlen(out->scope));
    if (stet_step(q)) {
        out->end = column_copy(q, 0);
        out->end_scope = column_copy(q, 1);
    }
    stet_reset(q);
    return !stet_db_failed(db);
}

static bool before_end(const name_range *r, const stet_new_name *n) {
    int order = r->end ? strcmp(n->id, r->end) : -1;
    return order < 0 || (order == 0 && strcmp(n->scope, r->end_scope) < 0);
}

static void store_range(stet_db *db, const char *id, const char *scope, int64_t digest) {
    stet_stmt *q = stet_db_stmt(db, "INSERT OR REPLACE INTO name_digest(id, scope, digest) VALUES(?, ?, ?)");
    stet_bind_text(q, 1, id, strlen(id));
    stet_bind_text(q, 2, scope, strlen(scope));
    stet_bind_int(q, 3, digest);
    stet_run(q);
}

typedef struct part {
    char *id, *scope;
    int64_t digest;
} part;

/* Divides a range. False: its names do not match its digest (N2). */
static bool divide(stet_db *db, const name_range *r) {
    stet_arena arena = STET_ARENA_INIT;
    STET_VEC(part) parts = {0};
    int64_t all = 0;
    *stet_vec_add(&parts) = (part){r->id, r->scope, 0};
    stet_stmt *q = stet_db_stmt(db, "SELECT doc, id, scope FROM document WHERE (id, scope) >= (?1, ?2) AND"
                                    " (id, scope) < (coalesce(?3, x''), coalesce(?4, '')) ORDER BY id, scope");
    stet_bind_text(q, 1, r->id, strlen(r->id));
    stet_bind_text(q, 2, r->scope, strlen(r->scope));
    if (r->end) {
        stet_bind_text(q, 3, r->end, strlen(r->end));
        stet_bind_text(q, 4, r->end_scope, strlen(r->end_scope));
    }
    while (stet_step(q)) {
        size_t id_len, scope_len;
        const char *id = stet_column_text(q, 1, &id_len), *scope = stet_column_text(q, 2, &scope_len);
        int64_t sum = stet_name_sum(stet_column_int(q, 0), id, id_len, scope, scope_len);
        part *now = &parts.at[parts.len - 1];
        if (now->digest >> 32 >= RANGE_PART) {
            now = stet_vec_add(&parts);
            *now = (part){stet_arena_strndup(&arena, id, id_len), stet_arena_strndup(&arena, scope, scope_len), 0};
        }
        now->digest = stet_digest_add(now->digest, 1, sum);
        all = stet_digest_add(all, 1, sum);
    }
    bool fits = all == r->digest && !stet_db_failed(db);
    for (size_t i = 0; i < parts.len && fits; i++)
        store_range(db, parts.at[i].id, parts.at[i].scope, parts.at[i].digest);
    stet_vec_release(&parts);
    stet_arena_release(&arena);
    return fits;
}

void stet_space_names_changed(stet_space *s, const stet_new_name *names, size_t count, int64_t rows) {
    int64_t total = 0;
    for (size_t i = 0; i < count && !stet_db_failed(s->db);) {
        name_range r;
        bool fits = range_of(s->db, names[i].id, names[i].id_len, names[i].scope, names[i].scope_len, &r);
        for (; fits && i < count && before_end(&r, &names[i]); i++) {
            int64_t sum = stet_name_sum(names[i].doc, names[i].id, names[i].id_len, names[i].scope, names[i].scope_len);
            r.digest = stet_digest_add(r.digest, rows, sum);
            total = stet_digest_add(total, 1, sum);
        }
        if (fits && r.digest >> 32 > RANGE_MOST)
            fits = divide(s->db, &r);
        else if (fits)
            store_range(s->db, r.id, r.scope, r.digest);
        range_release(&r);
        if (!fits && !stet_db_failed(s->db))
            stet_space_damaged(s, 0, "the name of a document is damaged or gone; it is near \"%s\"",
                               names[i ? i - 1 : 0].id);
    }
    stet_observe_digest(s, STET_DIGEST_NAMES, rows * (total >> 32), total);
}

/* The digest of the names in a range. One transaction, because others may commit at any time. */
static int64_t digest_of_names(stet_db *db, const char *id, size_t id_len, const char *scope, size_t scope_len) {
    char end[STET_ID_MAX], end_scope[STET_ID_MAX];
    size_t end_len = 0, end_scope_len = 0;
    stet_stmt *q = stet_db_stmt(db, RANGE_NEXT);
    stet_bind_text(q, 1, id, id_len);
    stet_bind_text(q, 2, scope, scope_len);
    bool bounded = stet_step(q);
    if (bounded) {
        const char *next = stet_column_text(q, 0, &end_len), *next_scope = stet_column_text(q, 1, &end_scope_len);
        end_len = end_len < sizeof end ? end_len : sizeof end;
        end_scope_len = end_scope_len < sizeof end_scope ? end_scope_len : sizeof end_scope;
        memcpy(end, next, end_len);
        memcpy(end_scope, next_scope, end_scope_len);
    }
    stet_reset(q);
    q = bounded ? stet_db_stmt(db, "SELECT " STET_NAME_DIGEST " FROM document WHERE (id, scope) >= (?1, ?2) AND"
                                   " (id, scope) < (?3, ?4)")
                : stet_db_stmt(db, "SELECT " STET_NAME_DIGEST " FROM document WHERE (id, scope) >= (?1, ?2)");
    stet_bind_text(q, 1, id, id_len);
    stet_bind_text(q, 2, scope, scope_len);
    if (bounded) {
        stet_bind_text(q, 3, end, end_len);
        stet_bind_text(q, 4, end_scope, end_scope_len);
    }
    int64_t digest = stet_step(q) ? stet_column_int(q, 0) : -1;
    stet_reset(q);
    return digest;
}

bool stet_space_name_gone(stet_space *s, const char *id, size_t id_len, const char *scope, size_t scope_len) {
    bool begun = false, fits = false;
    stet_error err = STET_ERROR_INIT;
    if (stet_db_failed(s->db))
        return false;
    stet_status status = stet_space_enter(s, &begun, &err);
    stet_stmt *q = stet_db_stmt(s->db, RANGE_OF);
    stet_bind_text(q, 1, id, id_len);
    stet_bind_text(q, 2, scope, scope_len);
    if (stet_step(q)) {
        char key[2 * STET_ID_MAX + 2];
        size_t first_len, first_scope_len;
        const char *first = stet_column_text(q, 0, &first_len), *first_scope = stet_column_text(q, 1, &first_scope_len);
        int64_t digest = stet_column_int(q, 2);
        bool sane = first_len <= STET_ID_MAX && first_scope_len <= STET_ID_MAX;
        if (sane) {
            memcpy(key, first, first_len);
            key[first_len] = 0;
            memcpy(key + first_len + 1, first_scope, first_scope_len);
        }
        stet_reset(q);
        size_t len = first_len + 1 + first_scope_len;
        const stet_slot *known = sane ? stet_map_get(&s->names_fit, key, len) : NULL;
        fits = known && known->n == (uint64_t)digest;
        if (sane && !fits) {
            fits = digest == digest_of_names(s->db, key, first_len, key + first_len + 1, first_scope_len);
            if (fits)
                stet_map_put(&s->names_fit, key, len, (stet_slot){.n = (uint64_t)digest});
        }
    }
    stet_reset(q);
    status = stet_space_leave(s, begun, status, &err);
    if (status != STET_OK) /* it sticks, and the caller that searched for the name reports it */
        stet_db_fail(s->db, status, "%s", err.message);
    stet_error_clear(&err);
    return status == STET_OK && !fits;
}

bool stet_space_names_all_fit(stet_space *s) {
    return stet_observe_int(s,
                            "SELECT (SELECT " STET_NAME_DIGEST " FROM document) IS (SELECT value FROM space_meta"
                            " WHERE name = '" STET_DIGEST_NAMES "')",
                            0) != 0;
}

bool stet_space_few_names_fit(stet_space *s) {
    enum { FEW = 1024 };
    return stet_observe_meta(s, STET_DIGEST_NAMES, -1) >> 32 > FEW || stet_space_names_all_fit(s);
}

bool stet_space_name_ranges_fit(stet_space *s) {
    return stet_observe_int(s,
                            "SELECT EXISTS(SELECT 1 FROM name_digest WHERE id = '' AND scope = '') AND NOT EXISTS"
                            "(SELECT 1 FROM name_digest r WHERE digest IS NOT (SELECT " STET_NAME_DIGEST RANGE_ROWS
                            "))",
                            0) != 0;
}

void stet_names_divide_all(stet_db *db) {
    char first[] = "";
    name_range all = {.id = first, .scope = first};
    all.digest = stet_db_int(db, "SELECT value FROM space_meta WHERE name = '" STET_DIGEST_NAMES "'", -1);
    stet_run(stet_db_stmt(db, "DELETE FROM name_digest"));
    if (!divide(db, &all)) /* a name is missing already: keep one range, which does not match */
        store_range(db, all.id, all.scope, all.digest);
}

void stet_space_names_renew(stet_space *s) {
    stet_run(stet_db_stmt(s->db, "INSERT OR REPLACE INTO space_meta(name, value) SELECT '" STET_DIGEST_NAMES
                                 "', " STET_NAME_DIGEST " FROM document"));
    stet_names_divide_all(s->db);
    stet_map_clear(&s->names_fit);
}
