/* prompt.h - MCP prompts for common jobs.
 *
 * A prompt is offered only if the operations that it mentions are offered as tools.
 */
#ifndef STET_MCP_PROMPT_H
#define STET_MCP_PROMPT_H

#include "mcp/tool.h"

/* All prompts, sorted by name. `titles`: with the titles of later protocol versions. Belongs to the caller. */
stet_value stet_mcp_prompts_list(const stet_mcp_tools *tools, bool titles);
/* The messages of a prompt. STET_NOT_FOUND: no such prompt. STET_INVALID: unknown, missing or wrong arguments. */
STET_CHECKED stet_status stet_mcp_prompt_get(const stet_mcp_tools *tools, const char *name, stet_value arguments,
                                             stet_value *out, stet_error *err);

#endif
