/* repo_ref.c - refs: names of objects, changed by compare-and-swap. */
#include <stdlib.h>
#include <string.h>

#include "repo/repo_internal.h"

typedef struct space {
    const char *prefix;
    int type;  /* of what its refs name; -1: any */
    bool deep; /* names may have slashes */
} space;

static const space spaces[] = {
    {"refs/heads/", STET_RECORD_COMMIT, true},
    {"refs/index/", STET_RECORD_COMMIT, false},
    {"refs/exec/", -1, false},
    {"refs/remotes/", STET_RECORD_COMMIT, true},
};

static const space *space_of(const char *name) {
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (strncmp(name, spaces[i].prefix, strlen(spaces[i].prefix)) == 0)
            return &spaces[i];
    return NULL;
}

const char *stet_ref_wrong(const char *name) {
    const space *in = space_of(name);
    if (!in)
        return "a ref begins with refs/heads/, refs/index/, refs/exec/ or refs/remotes/";
    if (strlen(name) > STET_REF_MAX)
        return "it is longer than 512 bytes";
    size_t depth = 0;
    for (const char *at = name + strlen(in->prefix);;) {
        size_t len = strcspn(at, "/");
        if (len == 0)
            return "it has an empty part";
        if (at[0] == '.' || at[0] == '-')
            return "a part of it begins with a dot or a hyphen";
        if (strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@+=-") < len)
            return "it has something other than letters, digits and ._@+=-";
        depth++;
        if (!at[len])
            break;
        at += len + 1;
    }
    if (!in->deep && depth > 1)
        return "it has a slash too many";
    if (strcmp(in->prefix, "refs/remotes/") == 0 && depth < 2)
        return "a ref of a remote is refs/remotes/REMOTE/NAME";
    return NULL;
}

static stet_status check_name(const char *name, stet_error *err) {
    const char *wrong = stet_ref_wrong(name);
    return wrong ? stet_fail(err, STET_INVALID, "\"%.200s\" is no name of a ref: %s", name, wrong) : STET_OK;
}

/* In a transaction, or one look. */
static stet_status look(stet_repo *r, const char *name, bool *there, stet_hash *out, stet_error *err) {
    stet_stmt *s = stet_db_stmt(r->db, "SELECT target FROM ref WHERE name = ?");
    stet_bind_text(s, 1, name, strlen(name));
    *there = stet_step(s);
    if (*there) {
        bool fine = stet_column_id(s, 0, out);
        stet_reset(s);
        if (!fine)
            return stet_fail(err, STET_CORRUPT, "ref %s: what it names is damaged", name);
    }
    return stet_db_status(r->db, err);
}

stet_status stet_repo_ref(stet_repo *r, const char *name, bool *there, stet_hash *out, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    *there = false;
    return st == STET_OK && !nothing ? look(r, name, there, out, err) : st;
}

stet_status stet_repo_refs(stet_repo *r, const char *prefix, stet_refs *out, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st != STET_OK || nothing)
        return st;
    char *end = stet_asprintf("%s\xFF", prefix);
    stet_stmt *s = stet_db_stmt(r->db, "SELECT name, target FROM ref WHERE name >= ? AND name < ? ORDER BY name");
    stet_bind_text(s, 1, prefix, strlen(prefix));
    stet_bind_text(s, 2, end, strlen(end));
    while (st == STET_OK && stet_step(s)) {
        stet_ref ref;
        size_t len;
        const char *name = stet_column_text(s, 0, &len);
        if (stet_column_id(s, 1, &ref.target)) {
            ref.name = stet_strndup(name, len);
            *stet_vec_add(out) = ref;
        } else {
            st = stet_fail(err, STET_CORRUPT, "ref %.200s: what it names is damaged", name);
        }
    }
    stet_reset(s);
    stet_free(end);
    return st == STET_OK ? stet_db_status(r->db, err) : st;
}

void stet_refs_release(stet_refs *refs) {
    for (size_t i = 0; i < refs->len; i++)
        stet_free(refs->at[i].name);
    stet_vec_release(refs);
}

static stet_value id_or_null(const stet_hash *id) {
    return id ? stet_hash_text(*id) : stet_value_null();
}

static stet_status too_late(const char *name, const stet_hash *expect, const stet_hash *actual, stet_error *err) {
    if (!actual)
        stet_fail(err, STET_CONFLICT, "%s is not there any more", name);
    else if (!expect)
        stet_fail(err, STET_CONFLICT, "%s is there already: it names %s", name, stet_short(*actual).text);
    else
        stet_fail(err, STET_CONFLICT, "%s names %s, and not %s any more", name, stet_short(*actual).text,
                  stet_short(*expect).text);
    stet_detail(err, "ref", stet_value_string(name));
    stet_detail(err, "expected", id_or_null(expect));
    stet_detail(err, "actual", id_or_null(actual));
    return STET_CONFLICT;
}

/* R2: it names something that is there and fits. */
static stet_status check_target(stet_repo *r, const char *name, stet_hash target, stet_error *err) {
    bool there;
    stet_object_row row;
    stet_status st = stet_object_row_of(r, target, &there, &row, err);
    if (st != STET_OK)
        return st;
    if (!there)
        return stet_fail(err, STET_NOT_FOUND, "%s cannot name %s: no such object", name, stet_hash_print(target).text);
    int type = space_of(name)->type;
    if (type >= 0 && (int)row.type != type)
        return stet_fail(err, STET_INVALID, "%s names a %s, and %s is a %s", name,
                         stet_record_type_name((stet_record_type)type), stet_short(target).text,
                         stet_record_type_name(row.type));
    /* What only the index needed until now, somebody else needs too. */
    if (row.state == STET_OBJECT_LOOSE && row.type == STET_RECORD_COMMIT)
        stet_object_keep_all(r);
    return STET_OK;
}

static void write_ref(stet_repo *r, const char *name, const stet_hash *set) {
    stet_stmt *s = stet_db_stmt(r->db, set ? "INSERT OR REPLACE INTO ref(name, target) VALUES(?, ?)"
                                           : "DELETE FROM ref WHERE name = ?");
    stet_bind_text(s, 1, name, strlen(name));
    if (set)
        stet_bind_id(s, 2, set);
    stet_run(s);
}

static stet_status execs_of(stet_repo *r, const stet_hash *commit, stet_hash *out, stet_error *err) {
    stet_value v;
    stet_status st = stet_repo_get(r, *commit, STET_RECORD_COMMIT, &v, err);
    if (st == STET_OK) {
        stet_hash_of_text(stet_value_get(v, "execs"), out);
        stet_value_release(v);
    }
    return st;
}

/* R4: the table of pins follows the index. An old one that can't be read any more does not hold up a new one. */
static stet_status follow_index(stet_repo *r, const stet_hash *old, const stet_hash *set, stet_error *err) {
    stet_hash from, to;
    bool known = old && execs_of(r, old, &from, NULL) == STET_OK;
    stet_status st = stet_db_status(r->db, err);
    if (st == STET_OK && set)
        st = execs_of(r, set, &to, err);
    return st == STET_OK ? stet_pins_follow(r, known ? &from : NULL, set ? &to : NULL, err) : st;
}

static stet_status swap_one(stet_repo *r, const stet_ref_swap *w, stet_error *err) {
    bool there;
    stet_hash actual;
    stet_status st = check_name(w->name, err);
    if (st == STET_OK)
        st = look(r, w->name, &there, &actual, err);
    if (st != STET_OK)
        return st;
    if (there != (w->expect != NULL) || (there && !stet_hash_equal(actual, *w->expect)))
        return too_late(w->name, w->expect, there ? &actual : NULL, err);
    if (w->set)
        st = check_target(r, w->name, *w->set, err);
    if (st == STET_OK && strcmp(w->name, STET_REPO_INDEX) == 0)
        st = follow_index(r, there ? &actual : NULL, w->set, err);
    if (st != STET_OK)
        return st;
    write_ref(r, w->name, w->set);
    return stet_db_status(r->db, err);
}

stet_status stet_repo_swap(stet_repo *r, const stet_ref_swap *swaps, size_t count, stet_error *err) {
    bool begun;
    stet_status st = stet_repo_enter(r, &begun, err);
    for (size_t i = 0; i < count && st == STET_OK; i++)
        st = swap_one(r, &swaps[i], err);
    return stet_repo_leave(r, begun, st, err);
}
