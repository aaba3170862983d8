/* prompt.h - prompts for common jobs. One is offered only where the operations it speaks of are offered as tools. */
#ifndef STET_SURFACE_MCP_PROMPT_H
#define STET_SURFACE_MCP_PROMPT_H

#include "surface/mcp/tool.h"

/* Sorted by name. With `titles` as later protocol versions have them. Belongs to the caller. */
stet_value stet_mcp_prompts_list(const stet_mcp_tools *tools, bool titles);
/* The messages of a prompt. STET_NOT_FOUND: none of that name; STET_INVALID: unknown, missing or wrong arguments. */
STET_CHECKED stet_status stet_mcp_prompt_get(const stet_mcp_tools *tools, const char *name, stet_value arguments,
                                             stet_value *out, stet_error *err);

#endif
