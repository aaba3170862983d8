/* policy.c - reads $STET_HOME/policy.toml. */

#include "fleet/policy.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/toml.h"
#include "fleet/state.h"
#include "os/file.h"

#define POLICY_MAX ((size_t)1 << 20)

typedef enum kind { NUMBER, ORDER, STATES } kind;

typedef struct member {
    const char *table, *key;
    kind kind;
    int64_t min, max;
} member;

static const member members[] = {
    {"archive", "older-than-days", NUMBER, 0, 100000},
    {"archive", "states", STATES, 0, 0},
    {"delete", "older-than-days", NUMBER, 0, 100000},
    {"delete", "states", STATES, 0, 0},
    {"delete", "max-bytes", NUMBER, 0, INT64_MAX},
    {"queue", "order", ORDER, 0, 0},
    {"queue", "jobs", NUMBER, 1, 64},
    {"queue", "max-attempts", NUMBER, 1, 1000},
    {"queue", "back-off", NUMBER, 1, 86400},
};
#define MEMBERS (sizeof members / sizeof *members)

typedef struct reading {
    const char *path;
    const stet_buf *text;
    stet_policy *out;
} reading;

static stet_status wrong(const reading *r, const char *table, const char *key, const char *what, stet_error *err) {
    char *pointer = key ? stet_asprintf("/%s/%s", table, key) : stet_asprintf("/%s", table);
    size_t line = 0, column = 0;
    if (stet_toml_locate(r->text->data, r->text->len, pointer, &line, &column))
        stet_fail(err, STET_INVALID, "%s, line %zu: %s%s%s %s", r->path, line, table, key ? "." : "", key ? key : "",
                  what);
    else
        stet_fail(err, STET_INVALID, "%s: %s%s%s %s", r->path, table, key ? "." : "", key ? key : "", what);
    stet_free(pointer);
    return STET_INVALID;
}

static stet_status take_states(const reading *r, const member *m, stet_value v, unsigned *out, stet_error *err) {
    if (stet_value_type(v) != STET_TYPE_ARRAY)
        return wrong(r, m->table, m->key, "is not a list of states", err);
    for (size_t i = 0; i < stet_value_count(v); i++) {
        stet_value name = stet_value_at(v, i);
        stet_lifecycle l;
        if (!stet_lifecycle_of_name(stet_value_text(&name, ""), &l) || l == STET_LIFE_QUEUED ||
            l == STET_LIFE_RUNNING || l == STET_LIFE_INTERRUPTED)
            return wrong(r, m->table, m->key, "may have completed, failed, blocked, resolved and archived in it", err);
        *out |= 1u << l;
    }
    return STET_OK;
}

static stet_status take(const reading *r, const member *m, stet_value v, stet_error *err) {
    stet_policy *p = r->out;
    int64_t n = stet_value_as_int(v);
    bool archive = strcmp(m->table, "archive") == 0;
    if (m->kind == STATES)
        return take_states(r, m, v, archive ? &p->archive.statuses : &p->remove.statuses, err);
    if (m->kind == ORDER) {
        p->newest_first = stet_value_text_is(v, "newest");
        return p->newest_first || stet_value_text_is(v, "oldest")
                   ? STET_OK
                   : wrong(r, m->table, m->key, "is neither \"oldest\" nor \"newest\"", err);
    }
    if (stet_value_type(v) != STET_TYPE_INT || n < m->min || n > m->max) {
        char what[120];
        snprintf(what, sizeof what, "is not a whole number from %lld to %lld", (long long)m->min, (long long)m->max);
        return wrong(r, m->table, m->key, what, err);
    }
    if (strcmp(m->key, "older-than-days") == 0)
        *(archive ? &p->archive.older_than_days : &p->remove.older_than_days) = n;
    else if (strcmp(m->key, "max-bytes") == 0)
        p->remove.max_bytes = n;
    else if (strcmp(m->key, "jobs") == 0)
        p->jobs = n;
    else if (strcmp(m->key, "max-attempts") == 0)
        p->max_attempts = n;
    else
        p->back_off_ms = n * 1000;
    return STET_OK;
}

static stet_status take_all(const reading *r, stet_value all, stet_error *err) {
    stet_status st = STET_OK;
    for (size_t i = 0; i < stet_value_count(all) && st == STET_OK; i++) {
        const char *table = stet_value_key_at(all, i, NULL);
        stet_value v = stet_value_at(all, i);
        bool known = false;
        for (size_t k = 0; k < MEMBERS; k++)
            known = known || strcmp(members[k].table, table) == 0;
        if (!known || stet_value_type(v) != STET_TYPE_OBJECT) {
            st = wrong(r, table, NULL, "is not known here", err);
            stet_hint(err, "the tables are archive, delete and queue");
        }
        for (size_t j = 0; j < stet_value_count(v) && st == STET_OK; j++) {
            const char *key = stet_value_key_at(v, j, NULL);
            const member *m = NULL;
            for (size_t k = 0; k < MEMBERS; k++)
                if (strcmp(members[k].table, table) == 0 && strcmp(members[k].key, key) == 0)
                    m = &members[k];
            if (m) {
                st = take(r, m, stet_value_at(v, j), err);
                continue;
            }
            st = wrong(r, table, key, "is not known here", err);
            stet_buf b = STET_BUF(1024);
            for (size_t k = 0; k < MEMBERS; k++)
                if (strcmp(members[k].table, table) == 0)
                    stet_buf_printf(&b, "%s%s", b.len ? ", " : "", members[k].key);
            stet_hint(err, "%s may have: %s", table, stet_buf_cstr(&b));
            stet_buf_release(&b);
        }
    }
    return st;
}

stet_status stet_policy_load(const char *home, stet_policy *out, stet_error *err) {
    *out = (stet_policy){.newest_first = false};
    char *path = stet_file_join(home, "policy.toml");
    stet_buf text = STET_BUF(POLICY_MAX);
    stet_error why = STET_ERROR_INIT;
    stet_value all = stet_value_null();
    stet_status st = stet_file_read(path, POLICY_MAX, &text, &why);
    if (st == STET_OK) {
        st = stet_toml_parse(stet_buf_cstr(&text), text.len, &all, &why);
        if (st != STET_OK)
            stet_fail_in(&why, "%s", path);
    }
    if (st == STET_OK) {
        reading r = {path, &text, out};
        st = take_all(&r, all, &why);
    } else if (st == STET_NOT_FOUND) {
        stet_error_clear(&why);
        st = STET_OK;
    }
    if (st != STET_OK)
        stet_error_move(err, &why);
    stet_value_release(all);
    stet_buf_release(&text);
    stet_free(path);
    return st;
}
