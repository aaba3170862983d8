/* compact.h - results and hints in the size and the words of a model.
 *
 * A model reads every byte of a result. So the tools that list and show runs leave out what a job rarely needs: paths,
 * fingerprints, nulls, and all but the newest ten runs. The parameter `fields` names members to keep, or "*" for all of
 * them, which is what `stet ... --json` prints. Commands in hints and next steps are said as tools with their arguments.
 */
#ifndef STET_MCP_COMPACT_H
#define STET_MCP_COMPACT_H

#include "operation/op.h"

/* Leaves out of an input schema what a model takes for granted. */
void stet_mcp_shorten(stet_value *schema);
/* Adds `fields` to the input schema of a tool whose result is compacted. */
void stet_mcp_add_fields(const stet_op *op, stet_value *schema);
/* Makes a single text an array where one is expected. Unless `whole`, takes `fields` out of the arguments and puts
 * defaults for models in. Both belong to the caller. */
void stet_mcp_prepare(const stet_op *op, stet_value given, bool whole, stet_value *args, stet_value *fields);
/* Consumes and returns the result. */
stet_value stet_mcp_compact(const stet_op *op, stet_value result, stet_value fields);

/* A text with its commands said as tools. Belongs to the caller. */
stet_value stet_mcp_speak(const char *text);
/* The same in `hint`, `nextAction`, `nextActions` and `problems` of a result or error. Consumes and returns it. */
stet_value stet_mcp_speak_in(stet_value result);

#endif
