/* page.h - keeps results that are too large for one answer, and hands them out in pages.
 *
 *     stet_mcp_pages *p = stet_mcp_pages_new(16, 256 << 20);
 *     char id[STET_MCP_PAGE_ID_MAX];
 *     stet_value page; // {"result","bytes","offset","next","text"}
 *     if (stet_mcp_pages_keep(p, text, len, id) && stet_mcp_pages_read(p, id, 0, 100000, &page))
 *         stet_value_release(page);
 *     stet_mcp_pages_free(p);
 *
 * The oldest results are dropped first when there are too many or they are too large together. Pages are cut between
 * characters. Any thread may call.
 */
#ifndef STET_MCP_PAGE_H
#define STET_MCP_PAGE_H

#include "base/error.h"

#define STET_MCP_PAGE_ID_MAX 32

typedef struct stet_mcp_pages stet_mcp_pages;

stet_mcp_pages *stet_mcp_pages_new(size_t max_results, size_t max_bytes);
void stet_mcp_pages_free(stet_mcp_pages *p);
/* Keeps a text and takes it over. False: it is larger than the maximum for all results together; then it is freed. */
bool stet_mcp_pages_keep(stet_mcp_pages *p, char *text, size_t len, char id[STET_MCP_PAGE_ID_MAX]);
/* False: the result was dropped, or has no such offset. */
bool stet_mcp_pages_read(stet_mcp_pages *p, const char *id, int64_t offset, size_t size, stet_value *out);

#endif
