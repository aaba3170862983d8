/* resource.h - what a client can read and watch by address: documents, runs, pieces, graphs.
 *
 * A kind of resource is served by two operations of the table: one that lists and one that reads. A kind whose
 * operations do not exist, or are not permitted, is not served. The text of a resource is the JSON of its operation, as
 * `stet ... --json` prints it.
 *
 *   stet://doc/SPACE/ID     a document: doc list, doc get
 *   stet://run/ID           a run: runs list, runs show
 *   stet://piece/SPACE/ID   a piece: piece list, piece show
 *   stet://graph/SPACE/ID   a piece's graph: piece list, piece graph
 *
 * Parts are percent-encoded. Any thread may call these functions, with a caller of that thread.
 */
#ifndef STET_MCP_RESOURCE_H
#define STET_MCP_RESOURCE_H

#include "operation/op.h"

#define STET_MCP_URI_MAX  4096
#define STET_MCP_LIST_MAX 10000 /* maximum number of resources listed per kind */

/* How to run an operation. */
typedef struct stet_mcp_caller {
    void *ctx;
    bool (*permitted)(void *ctx, const stet_op *op);
    /* Consumes `args`. */
    stet_status (*call)(void *ctx, const stet_op *op, stet_value args, stet_value *result, stet_error *err);
} stet_mcp_caller;

/* The results belong to the caller: an array of templates; an array of resources, sorted by address. */
stet_value stet_mcp_resource_templates(const stet_mcp_caller *c);
STET_CHECKED stet_status stet_mcp_resource_list(const stet_mcp_caller *c, stet_value *out, stet_error *err);
/* STET_NOT_FOUND: no such resource, or not an address of a resource. */
STET_CHECKED stet_status stet_mcp_resource_read(const stet_mcp_caller *c, const char *uri, stet_value *out,
                                                stet_error *err);
/* Is this an address of a kind that is served, whether or not the resource exists now? */
bool stet_mcp_resource_served(const stet_mcp_caller *c, const char *uri);

/* Tells whether anything may have changed: a number that stays the same as long as no space has a new commit and no
 * run's state was written. It is cheap, because it is called several times a second while a client watches. A handle is
 * used by one thread at a time. */
typedef struct stet_mcp_watch stet_mcp_watch;
stet_mcp_watch *stet_mcp_watch_new(const char *from); /* for the project that contains this directory */
void stet_mcp_watch_free(stet_mcp_watch *w);
uint64_t stet_mcp_watch_mark(stet_mcp_watch *w);

#endif
