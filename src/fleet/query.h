/* query.h - selects records, in a fixed order, a page at a time.
 *
 *     stet_fleet_page page;
 *     stet_fleet_query query = {.text = "report", .limit = 50};
 *     stet_status status = stet_fleet_query_run(reg, &query, &page, &err);
 *     if (status == STET_OK) {
 *         for (size_t i = 0; i < page.rows.len; i++)
 *             printf("%s\n", page.rows.at[i]->id);
 *         stet_fleet_page_release(&page);
 *     }
 *
 * The order is that of stet_fleet_record_compare, or its reverse. It is fixed, so pages neither overlap nor leave a
 * gap. A cursor names the last record of a page, so records that are added or archived meanwhile shift nothing.
 */
#ifndef STET_FLEET_QUERY_H
#define STET_FLEET_QUERY_H

#include "fleet/registry.h"

#define STET_FLEET_QUERY_LIMIT_MAX 10000

typedef struct stet_fleet_query {
    const char *app;  /* id of the app, or of the workflow if there is no app; NULL: any */
    const char *text; /* words; each must occur in id, app, workflow, title, repo, lifecycle, stage, labels or inputs */
    const char *repo; /* real path of a root */
    const char *label; /* has this label */
    /* Bits 1 << stet_lifecycle; 0: any. An archived run also matches by the lifecycle that it had before. */
    unsigned statuses;
    int64_t since_ms, until_ms; /* range of createdAt, inclusive; 0: open */
    bool leave_archived;        /* leave archived runs out */
    bool newest_first;
    size_t limit, offset;
    const char *cursor; /* from nextCursor, instead of an offset */
} stet_fleet_query;

typedef struct stet_fleet_page {
    stet_fleet_records rows; /* borrowed records */
    size_t total, offset;
    char *next_cursor; /* NULL: the last page */
} stet_fleet_page;

bool stet_fleet_query_match(const stet_fleet_query *q, const stet_fleet_record *r);
STET_CHECKED stet_status stet_fleet_query_run(const stet_registry *reg, const stet_fleet_query *q, stet_fleet_page *out,
                                              stet_error *err);
void stet_fleet_page_release(stet_fleet_page *p);

#endif
