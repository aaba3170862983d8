/* page.h - results too large for one answer, kept for a while and given in pages.
 *
 *     stet_mcp_pages *p = stet_mcp_pages_new(16, 256 << 20);
 *     if (stet_mcp_pages_keep(p, text, len, id)) ...            // takes over the text
 *     if (stet_mcp_pages_read(p, id, 0, 100000, &page)) ...     // {"result","bytes","offset","next","text"}
 *
 * The oldest go first when there are too many or they are too large together. Pages are cut between characters. Any
 * thread. */
#ifndef STET_SURFACE_MCP_PAGE_H
#define STET_SURFACE_MCP_PAGE_H

#include "base/error.h"

#define STET_MCP_PAGE_ID_MAX 32

typedef struct stet_mcp_pages stet_mcp_pages;

stet_mcp_pages *stet_mcp_pages_new(size_t max_results, size_t max_bytes);
void stet_mcp_pages_free(stet_mcp_pages *p);
/* False if the text is larger than all of them may be together; it is freed then too. */
bool stet_mcp_pages_keep(stet_mcp_pages *p, char *text, size_t len, char id[STET_MCP_PAGE_ID_MAX]);
/* False: no such result any more, or no such place in it. */
bool stet_mcp_pages_read(stet_mcp_pages *p, const char *id, int64_t offset, size_t size, stet_value *out);

#endif
