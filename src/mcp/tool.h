/* tool.h - operations as MCP tools: which are offered, and how they are described.
 *
 *     stet_mcp_filter filter = {.read_only = true};
 *     stet_mcp_tools *t;
 *     stet_status status = stet_mcp_tools_new(&filter, &t, &err); // STET_INVALID: a pattern matches nothing
 *     if (status != STET_OK)
 *         return status;
 *     const stet_op *op = stet_mcp_tools_find(t, "stet_doc_get");
 *     stet_value list = stet_mcp_tools_list(t, STET_MCP_STRUCTURED); // an array, sorted by name
 *     stet_value_release(list);
 *     stet_mcp_tools_free(t);
 *
 * By default the operations that whole jobs need are offered; with `all`, all; with `allow`, those that match one of its patterns.
 * Then those that match a pattern of `deny` are removed, and with `read_only` those that may change something. A
 * pattern is the name of a tool or of an operation, with `*` for any characters: "stet_doc_*", "doc *". Operations that
 * only make sense on a command line are never offered.
 *
 * One more tool is not an operation: stet_result returns further pages of a result that was too large for one answer.
 * Every output schema allows such a page in place of the result, as {"page": ...}. Whole output schemas cost a model more
 * than they tell it, and are listed on request only.
 */
#ifndef STET_MCP_TOOL_H
#define STET_MCP_TOOL_H

#include "operation/op.h"

#define STET_MCP_TOOL_NAME_MAX 96
#define STET_MCP_RESULT_TOOL   "stet_result"

typedef struct stet_mcp_filter {
    bool all, read_only;
    bool whole;             /* nothing is left out for the sake of a model: schemas, examples, results */
    stet_value allow, deny; /* arrays of patterns, or null */
} stet_mcp_filter;

/* What a protocol version supports. */
typedef enum stet_mcp_detail {
    STET_MCP_PLAIN,     /* 2024-11-05: name, description, input schema */
    STET_MCP_ANNOTATED, /* 2025-03-26: annotations, the title among them */
    STET_MCP_STRUCTURED /* 2025-06-18 and later: titles, output schemas */
} stet_mcp_detail;

typedef struct stet_mcp_tools stet_mcp_tools;

STET_CHECKED stet_status stet_mcp_tools_new(const stet_mcp_filter *filter, stet_mcp_tools **out, stet_error *err);
void stet_mcp_tools_free(stet_mcp_tools *t);
/* NULL: not offered. */
const stet_op *stet_mcp_tools_find(const stet_mcp_tools *t, const char *name);
bool stet_mcp_tools_offer(const stet_mcp_tools *t, const stet_op *op);
/* May the operation be used to read a resource, whether or not it is offered as a tool? */
bool stet_mcp_tools_permit(const stet_mcp_tools *t, const stet_op *op);
bool stet_mcp_tools_offer_result(const stet_mcp_tools *t);
/* Appends why a name is not offered, and which one is near, for an error message. */
void stet_mcp_tools_explain(const stet_mcp_tools *t, const char *name, stet_buf *out);
/* The tools as an array. Made once; later calls share it. Belongs to the caller. One thread at a time. */
stet_value stet_mcp_tools_list(stet_mcp_tools *t, stet_mcp_detail detail);

void stet_mcp_tool_name(const stet_op *op, char out[STET_MCP_TOOL_NAME_MAX]);
/* The arguments of an example of the table, as a tool takes them. False if that is not possible: the example reads
 * standard input, or is more than one command. */
bool stet_mcp_tool_example(const stet_op *op, const stet_example *example, stet_value *out);
/* Checks the arguments of stet_result: which result, and from which byte on. `*id` lives as long as `args`. */
STET_CHECKED stet_status stet_mcp_result_args(const stet_value *args, stet_value *id, int64_t *offset, stet_error *err);

#endif
