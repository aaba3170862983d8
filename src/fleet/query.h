/* query.h - which records, in which order, which page of them.
 *
 *     stet_fleet_page page;
 *     status = stet_fleet_query_run(reg, &(stet_fleet_query){.text = "report", .limit = 50}, &page, &err);
 *     for (size_t i = 0; i < page.rows.len; i++) ...
 *     stet_fleet_page_release(&page);
 *
 * The order is stet_fleet_record_compare's, or its reverse: fixed, so that pages neither overlap nor leave a gap. A
 * cursor names the last record of a page: what is added or archived meanwhile shifts nothing.
 */
#ifndef STET_FLEET_QUERY_H
#define STET_FLEET_QUERY_H

#include "fleet/registry.h"

#define STET_FLEET_QUERY_LIMIT_MAX 10000

typedef struct stet_fleet_query {
    const char *app;   /* id of the app, or of the workflow where there is no app; NULL: any */
    const char *text;  /* words, each found in id, app, workflow, title, repo, lifecycle, stage, labels or inputs */
    const char *repo;  /* real path of a root */
    const char *label; /* has this label */
    unsigned statuses; /* bits 1 << stet_lifecycle; 0: any. An archived run matches by what it is below, too. */
    int64_t since_ms, until_ms; /* of createdAt, both included; 0: open */
    bool leave_archived;        /* out */
    bool newest_first;
    size_t limit, offset;
    const char *cursor; /* from nextCursor, in place of an offset */
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
