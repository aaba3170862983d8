/* query.c - selects, sorts and pages records. */

#include "fleet/query.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#define CURSOR_MAX 8192
#define WORD_MAX   256

static bool has_word(const stet_fleet_record *r, const char *word) {
    const char *const in[] = {r->id,
                              r->app_id,
                              r->app_title,
                              r->workflow_id,
                              r->title,
                              r->piece,
                              r->repo,
                              r->loop_stage,
                              r->labels,
                              stet_lifecycle_name(r->lifecycle),
                              stet_lifecycle_name(r->under),
                              stet_lifecycle_name(r->derived),
                              r->inputs};
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++)
        if (strcasestr(in[i], word) != NULL)
            return true;
    return false;
}

static bool has_text(const stet_fleet_record *r, const char *text) {
    while (*text != 0) {
        size_t n = strcspn(text, " \t\n");
        if (n > 0) {
            char word[WORD_MAX];
            snprintf(word, sizeof word, "%.*s", (int)(n < WORD_MAX ? n : WORD_MAX - 1), text);
            if (!has_word(r, word))
                return false;
        }
        text += n + strspn(text + n, " \t\n");
    }
    return true;
}

bool stet_fleet_query_match(const stet_fleet_query *q, const stet_fleet_record *r) {
    if (q->leave_archived && r->archived)
        return false;
    /* `blocked` is the word of the source for a failure that is open. */
    unsigned life = 1u << r->lifecycle | 1u << r->under | (r->derived == STET_LIFE_BLOCKED ? 1u << r->derived : 0);
    if (q->statuses != 0 && (q->statuses & life) == 0)
        return false;
    if (q->app != NULL && strcmp(r->app_id[0] != 0 ? r->app_id : r->workflow_id, q->app) != 0)
        return false;
    if (q->repo != NULL && strcmp(r->repo, q->repo) != 0)
        return false;
    if (q->label != NULL && !stet_fleet_record_has_label(r, q->label))
        return false;
    if ((q->since_ms != 0 && r->created_ms < q->since_ms) || (q->until_ms != 0 && r->created_ms > q->until_ms))
        return false;
    return q->text == NULL || has_text(r, q->text);
}

static char *make_cursor(const stet_fleet_record *r, bool newest_first) {
    char *plain = stet_asprintf("%d\n%lld\n%s\n%s", newest_first ? 1 : 0, (long long)r->created_ms, r->id, r->repo);
    size_t len = strlen(plain);
    char *out = stet_alloc((len * 4 + 2) / 3 + 1);
    stet_base64url_encode(plain, len, out);
    stet_free(plain);
    return out;
}

/* The key that a cursor holds, as a record with nothing else in it; `plain` keeps its strings. */
static stet_status read_cursor(const char *cursor, bool newest_first, char plain[CURSOR_MAX], stet_fleet_record *out,
                               stet_error *err) {
    size_t len = strlen(cursor), got = 0;
    char *id, *repo;
    long long ms;
    int order, used = 0;
    bool ok = len < CURSOR_MAX && stet_base64url_decode(cursor, len, plain, &got);
    plain[ok ? got : 0] = 0;
    ok = ok && strlen(plain) == got && sscanf(plain, "%d\n%lld%n", &order, &ms, &used) == 2 && plain[used] == '\n';
    id = ok ? plain + used + 1 : NULL;
    repo = ok ? strchr(id, '\n') : NULL;
    if (repo == NULL)
        return stet_fail(err, STET_INVALID, "\"%.60s\" is no cursor; use nextCursor of the page before", cursor);
    if (order != (newest_first ? 1 : 0))
        return stet_fail(err, STET_INVALID, "the cursor is from a list in the other order");
    *repo++ = 0;
    *out = (stet_fleet_record){.id = id, .repo = repo, .created_ms = ms};
    return STET_OK;
}

stet_status stet_fleet_query_run(const stet_registry *reg, const stet_fleet_query *q, stet_fleet_page *out,
                                 stet_error *err) {
    char plain[CURSOR_MAX];
    stet_fleet_record after;
    stet_fleet_page page = {.offset = q->offset};
    if (q->cursor != NULL) {
        stet_status st = read_cursor(q->cursor, q->newest_first, plain, &after, err);
        if (st != STET_OK)
            return st;
        if (q->offset != 0)
            return stet_fail(err, STET_INVALID, "a cursor and an offset exclude each other");
    }
    size_t n = reg->records.len;
    const stet_fleet_record *last = NULL;
    bool more = false;
    for (size_t i = 0; i < n; i++) {
        stet_fleet_record *r = reg->records.at[q->newest_first ? n - 1 - i : i];
        if (!stet_fleet_query_match(q, r))
            continue;
        size_t at = page.total++;
        if (q->cursor != NULL) {
            int order = stet_fleet_record_compare(r, &after);
            if (q->newest_first ? order >= 0 : order <= 0) {
                page.offset = at + 1;
                continue;
            }
        }
        if (at < page.offset)
            continue;
        if (page.rows.len < q->limit) {
            *stet_vec_add(&page.rows) = r;
            last = r;
        } else
            more = true;
    }
    if (more && last != NULL)
        page.next_cursor = make_cursor(last, q->newest_first);
    *out = page;
    return STET_OK;
}

void stet_fleet_page_release(stet_fleet_page *p) {
    stet_vec_release(&p->rows);
    stet_free(p->next_cursor);
    *p = (stet_fleet_page){0};
}
