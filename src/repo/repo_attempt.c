/* repo_attempt.c - rows of work in flight: derived from claims, never part of the records. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "os/clock.h"
#include "repo/repo_internal.h"

#define ATTEMPT_DETAIL_MAX ((size_t)1 << 20)

static stet_status check(const stet_attempt *a, stet_error *err) {
    if (strlen(a->execution) != 36)
        return stet_fail(err, STET_INVALID, "\"%s\" is no UUID of an execution", a->execution);
    if (a->token_len > STET_REPO_TOKEN_MAX)
        return stet_fail(err, STET_LIMIT, "execution %s: a token of %zu bytes, more than the %zu allowed", a->execution,
                         a->token_len, STET_REPO_TOKEN_MAX);
    return STET_OK;
}

static stet_status detail_text(const stet_attempt *a, stet_buf *out, stet_error *err) {
    if (stet_value_type(a->detail) == STET_TYPE_NULL)
        return STET_OK;
    stet_json_write(out, a->detail, STET_JSON_CANONICAL);
    return out->overflow ? stet_fail(err, STET_LIMIT, "execution %s: details larger than %zu bytes", a->execution,
                                     ATTEMPT_DETAIL_MAX)
                         : STET_OK;
}

/* What may change, from parameter `at` on. */
static void bind_rest(stet_stmt *s, int at, const stet_attempt *a, const stet_buf *detail) {
    stet_bind_int(s, at, a->state);
    stet_bind_int(s, at + 1, a->resume);
    stet_bind_int(s, at + 2, a->done);
    stet_bind_int(s, at + 3, a->cache);
    stet_bind_int(s, at + 4, a->retries);
    stet_bind_int(s, at + 5, a->next_ms);
    stet_bind_int(s, at + 6, stet_clock_ms());
    if (a->token)
        stet_bind_blob(s, at + 7, a->token, a->token_len);
    if (detail->len)
        stet_bind_text(s, at + 8, detail->data, detail->len);
}

/* Of a row that is to be written: in order, with its details as text, and the transaction begun. The caller ends that
 * and releases the text, unless this fails. */
static stet_status begin(stet_repo *r, const stet_attempt *a, stet_buf *detail, bool *begun, stet_error *err) {
    stet_status st = check(a, err);
    if (st == STET_OK)
        st = detail_text(a, detail, err);
    if (st == STET_OK)
        st = stet_repo_enter(r, begun, err);
    if (st != STET_OK)
        stet_buf_release(detail);
    return st;
}

stet_status stet_attempt_add(stet_repo *r, const stet_attempt *a, stet_error *err) {
    bool begun;
    stet_buf detail = STET_BUF(ATTEMPT_DETAIL_MAX);
    stet_status st = begin(r, a, &detail, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *s =
        stet_db_stmt(r->db, "INSERT OR IGNORE INTO attempt(execution, node, key, created_ms, state, resume, done, "
                            "cache, retries, next_ms, updated_ms, token, detail) "
                            "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    stet_bind_text(s, 1, a->execution, 36);
    stet_bind_id(s, 2, &a->node);
    stet_bind_id(s, 3, &a->key);
    stet_bind_int(s, 4, stet_clock_ms());
    bind_rest(s, 5, a, &detail);
    stet_run(s);
    st = stet_db_status(r->db, err);
    if (st == STET_OK && stet_db_changes(r->db) == 0)
        st = stet_fail(err, STET_CONFLICT, "execution %s is there already", a->execution);
    st = stet_repo_leave(r, begun, st, err);
    stet_buf_release(&detail);
    return st;
}

static stet_status state_of(stet_repo *r, const char *execution, int64_t *state, stet_error *err) {
    stet_stmt *s = stet_db_stmt(r->db, "SELECT state FROM attempt WHERE execution = ?");
    stet_bind_text(s, 1, execution, strlen(execution));
    bool there = stet_step(s);
    if (there)
        *state = stet_column_int(s, 0);
    stet_reset(s);
    stet_status st = stet_db_status(r->db, err);
    return st == STET_OK && !there ? stet_fail(err, STET_NOT_FOUND, "there is no execution %.60s", execution) : st;
}

stet_status stet_attempt_move(stet_repo *r, const stet_attempt *a, int from, stet_error *err) {
    bool begun;
    int64_t state = 0;
    stet_buf detail = STET_BUF(ATTEMPT_DETAIL_MAX);
    stet_status st = begin(r, a, &detail, &begun, err);
    if (st != STET_OK)
        return st;
    st = state_of(r, a->execution, &state, err);
    if (st == STET_OK && state != from) {
        st = stet_fail(err, STET_CONFLICT, "execution %s has been moved on by somebody else", a->execution);
    } else if (st == STET_OK) {
        stet_stmt *s = stet_db_stmt(r->db, "UPDATE attempt SET state = ?2, resume = ?3, done = ?4, cache = ?5, retries "
                                           "= ?6, next_ms = ?7, updated_ms = ?8, token = ?9, detail = ?10 "
                                           "WHERE execution = ?1");
        stet_bind_text(s, 1, a->execution, 36);
        bind_rest(s, 2, a, &detail);
        stet_run(s);
        st = stet_db_status(r->db, err);
    }
    st = stet_repo_leave(r, begun, st, err);
    stet_buf_release(&detail);
    return st;
}

stet_status stet_attempt_remove(stet_repo *r, const char *execution, stet_error *err) {
    bool begun;
    stet_status st = stet_repo_enter(r, &begun, err);
    if (st != STET_OK)
        return st;
    stet_stmt *s = stet_db_stmt(r->db, "DELETE FROM attempt WHERE execution = ?");
    stet_bind_text(s, 1, execution, strlen(execution));
    stet_run(s);
    return stet_repo_leave(r, begun, stet_db_status(r->db, err), err);
}

#define COLUMNS                                                                                                        \
    "SELECT execution, node, key, state, resume, done, cache, retries, next_ms, created_ms, updated_ms, token, "       \
    "detail "                                                                                                          \
    "FROM attempt "

static stet_status take_row(stet_stmt *s, stet_attempt *out, stet_error *err) {
    size_t len;
    stet_attempt a = {.detail = stet_value_null()};
    const char *text = stet_column_text(s, 0, &len);
    bool fine = len == 36 && stet_column_id(s, 1, &a.node) && stet_column_id(s, 2, &a.key);
    if (fine)
        memcpy(a.execution, text, 37);
    a.state = (int)stet_column_int(s, 3);
    a.resume = (int)stet_column_int(s, 4);
    a.done = stet_column_int(s, 5) != 0;
    a.cache = stet_column_int(s, 6) != 0;
    a.retries = stet_column_int(s, 7);
    a.next_ms = stet_column_int(s, 8);
    a.created_ms = stet_column_int(s, 9);
    a.updated_ms = stet_column_int(s, 10);
    if (fine && !stet_column_is_null(s, 12)) {
        text = stet_column_text(s, 12, &len);
        fine = stet_json_parse(text, len, &a.detail, NULL) == STET_OK;
    }
    if (!fine)
        return stet_fail(err, STET_CORRUPT, "the row of an attempt is damaged");
    if (!stet_column_is_null(s, 11)) {
        text = stet_column_blob(s, 11, &a.token_len);
        char *token = stet_alloc(a.token_len + 1); /* any bytes */
        if (a.token_len)
            memcpy(token, text, a.token_len);
        token[a.token_len] = 0;
        a.token = token;
    }
    *out = a;
    return STET_OK;
}

stet_status stet_attempt_get(stet_repo *r, const char *execution, stet_attempt *out, stet_error *err) {
    bool nothing;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st == STET_OK && nothing)
        st = stet_fail(err, STET_NOT_FOUND, "there is no execution %.60s", execution);
    if (st != STET_OK)
        return st;
    stet_stmt *s = stet_db_stmt(r->db, COLUMNS "WHERE execution = ?");
    stet_bind_text(s, 1, execution, strlen(execution));
    bool there = stet_step(s);
    if (there)
        st = take_row(s, out, err);
    stet_reset(s);
    if (st == STET_OK)
        st = stet_db_status(r->db, err);
    return st == STET_OK && !there ? stet_fail(err, STET_NOT_FOUND, "there is no execution %.60s", execution) : st;
}

static stet_status take_rows(stet_repo *r, stet_stmt *s, stet_attempts *out, stet_error *err) {
    stet_status st = STET_OK;
    while (st == STET_OK && stet_step(s)) {
        stet_attempt a;
        st = take_row(s, &a, err);
        if (st == STET_OK)
            *stet_vec_add(out) = a;
    }
    stet_reset(s);
    if (st == STET_OK)
        st = stet_db_status(r->db, err);
    if (st != STET_OK)
        stet_attempts_release(out);
    return st;
}

/* SQLite uses the partial index of live rows only where the text says so: a text for each kind of filter. */
#define STATES "AND (?2 = 0 OR (state BETWEEN 0 AND 31 AND (?2 >> state) & 1)) "
#define TEXTS(what, order)                                                                                             \
    {                                                                                                                  \
        what "WHERE true " STATES order, what "WHERE done = 0 " STATES order, what "WHERE node = ?1 " STATES order,    \
            what "WHERE node = ?1 AND done = 0 " STATES order                                                          \
    }

static stet_stmt *filtered(stet_repo *r, const char *const texts[4], const stet_attempt_filter *f) {
    stet_stmt *s = stet_db_stmt(r->db, texts[(f->node ? 2 : 0) + (f->live ? 1 : 0)]);
    if (f->node)
        stet_bind_id(s, 1, f->node);
    stet_bind_int(s, 2, f->states);
    return s;
}

static int64_t limit_of(size_t limit) {
    return limit == 0 || limit > INT32_MAX ? -1 : (int64_t)limit;
}

stet_status stet_attempt_list(stet_repo *r, const stet_attempt_filter *filter, stet_attempts *out, int64_t *total,
                              stet_error *err) {
    bool nothing;
    static const stet_attempt_filter all = {0};
    const stet_attempt_filter *f = filter ? filter : &all;
    if (total)
        *total = 0;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st != STET_OK || nothing)
        return st;
    if (total) {
        static const char *const count[] = TEXTS("SELECT count(*) FROM attempt ", "");
        stet_stmt *s = filtered(r, count, f);
        while (stet_step(s))
            *total = stet_column_int(s, 0);
        st = stet_db_status(r->db, err);
    }
    if (st != STET_OK)
        return st;
    static const char *const rows[] = TEXTS(COLUMNS, "ORDER BY created_ms DESC, execution DESC LIMIT ?3");
    stet_stmt *s = filtered(r, rows, f);
    stet_bind_int(s, 3, limit_of(f->limit));
    return take_rows(r, s, out, err);
}

/* The first and the last id whose hex digits start with `prefix`. False: no id does. */
static bool ids_with(const char *prefix, stet_hash *first, stet_hash *last) {
    char low[STET_HASH_HEX], high[STET_HASH_HEX];
    size_t len = strlen(prefix);
    if (len >= sizeof low)
        return false;
    memset(low, '0', sizeof low - 1);
    memset(high, 'f', sizeof high - 1);
    memcpy(low, prefix, len);
    memcpy(high, prefix, len);
    return stet_hash_of_hex(low, sizeof low - 1, first) && stet_hash_of_hex(high, sizeof high - 1, last);
}

stet_status stet_attempt_find(stet_repo *r, const char *prefix, size_t limit, stet_attempts *out, stet_error *err) {
    bool nothing;
    stet_hash first, last;
    stet_status st = stet_repo_ready(r, &nothing, err);
    if (st != STET_OK || nothing)
        return st;
    bool node = ids_with(prefix, &first, &last);
    stet_stmt *s =
        stet_db_stmt(r->db, COLUMNS "WHERE (execution >= ?1 AND execution < ?1 || '~') OR (node >= ?2 AND node <= ?3) "
                                    "ORDER BY created_ms DESC, execution DESC LIMIT ?4");
    stet_bind_text(s, 1, prefix, strlen(prefix));
    if (node) {
        stet_bind_id(s, 2, &first);
        stet_bind_id(s, 3, &last);
    }
    stet_bind_int(s, 4, limit_of(limit));
    return take_rows(r, s, out, err);
}

void stet_attempt_release(stet_attempt *a) {
    stet_free((char *)(uintptr_t)a->token);
    stet_value_release(a->detail);
    *a = (stet_attempt){.detail = stet_value_null()};
}

void stet_attempts_release(stet_attempts *list) {
    for (size_t i = 0; i < list->len; i++)
        stet_attempt_release(&list->at[i]);
    stet_vec_release(list);
}
