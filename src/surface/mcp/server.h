/* server.h - an MCP server as a machine without I/O: bytes of the client go in, bytes for the client come out.
 *
 *     stet_mcp_server *s;
 *     status = stet_mcp_open(&options, &s, &err);
 *     stet_mcp_receive(s, bytes, len);                   // any cut of the stream
 *     while ((n = stet_mcp_output(s, &bytes)))           // what is to be written next
 *         stet_mcp_wrote(s, write(fd, bytes, n));
 *     poll(..., stet_mcp_wake_fd(s), stet_mcp_timeout(s)); stet_mcp_tick(s);
 *     stet_mcp_end(s);                                   // the client closed its side
 *     stet_mcp_cancel(s);                                // gives up what still runs
 *     stet_mcp_close(s, 5000);
 *
 * stet_mcp_serve does this over two descriptors.
 *
 * Threads. One thread calls these functions, the protocol thread; it answers by itself what takes no time. Operations
 * run on the threads of a pool, each with a project handle of its own; what they have to say comes back through a queue
 * that stet_mcp_tick empties. So
 *   M1. every message is written whole, by one thread, in the order in which it was made;
 *   M2. nothing is written about a request after its answer, or after its cancellation was received;
 *   M3. a request is answered once, unless it was cancelled; a notification never.
 *
 * Eras. A request that names a protocol version in its `_meta` is served statelessly by that version (2026-07-28). An
 * `initialize` begins a session of one of the versions before; requests without `_meta` version belong to it. Both may
 * stand side by side on one connection. */
#ifndef STET_SURFACE_MCP_SERVER_H
#define STET_SURFACE_MCP_SERVER_H

#include "surface/mcp/tool.h"

typedef enum stet_mcp_log { STET_MCP_LOG_OFF, STET_MCP_LOG_ERROR, STET_MCP_LOG_INFO } stet_mcp_log;

#define STET_MCP_MAX_REQUESTS  1024 /* in flight */
#define STET_MCP_MAX_BATCH     256
#define STET_MCP_MAX_WATCHED   1024 /* addresses of one subscription */
#define STET_MCP_MAX_LISTENERS 64

typedef struct stet_mcp_options {
    const char *dir; /* absolute: the project lies there or above, and relative paths begin there */
    stet_mcp_filter filter;
    bool outside;      /* path arguments may leave the project */
    size_t threads;    /* 0: operations run on the protocol thread, for tests */
    size_t max_frame;  /* bytes of a message that comes in */
    size_t max_result; /* bytes of a result's JSON; a larger one goes out in pages */
    size_t page_size;  /* members of one page of a list */
    stet_mcp_log log;  /* to standard error */
} stet_mcp_options;

#define STET_MCP_THREADS    16
#define STET_MCP_MAX_FRAME  ((size_t)16 << 20)
#define STET_MCP_MAX_RESULT ((size_t)1 << 20)
#define STET_MCP_PAGE_SIZE  200

typedef struct stet_mcp_server stet_mcp_server;

STET_CHECKED stet_status stet_mcp_open(const stet_mcp_options *options, stet_mcp_server **out, stet_error *err);
void stet_mcp_receive(stet_mcp_server *s, const char *bytes, size_t len);
void stet_mcp_end(stet_mcp_server *s);
size_t stet_mcp_output(stet_mcp_server *s, const char **bytes);
void stet_mcp_wrote(stet_mcp_server *s, size_t len);
int stet_mcp_wake_fd(const stet_mcp_server *s);
int stet_mcp_timeout(const stet_mcp_server *s); /* milliseconds until tick has something to do by itself; -1: none */
void stet_mcp_tick(stet_mcp_server *s);
/* Nothing runs and nothing waits to be written. */
bool stet_mcp_idle(const stet_mcp_server *s);
/* Is a message half written? */
bool stet_mcp_midway(const stet_mcp_server *s);
/* So much waits to be written that reading more makes no sense now. */
bool stet_mcp_full(const stet_mcp_server *s);
void stet_mcp_cancel(stet_mcp_server *s);
/* Waits for what still runs. False: something does not end, and the server was left in memory for it. */
bool stet_mcp_close(stet_mcp_server *s, int timeout_ms);

/* What tools/list, prompts/list and resources/templates/list give, in one object. Belongs to the caller. */
stet_value stet_mcp_overview(stet_mcp_server *s);

/* Serves until the client closes `in`, nobody reads `out` any more, or `stop` says so after a signal (then
 * STET_CANCELLED, without a message). SIGINT and SIGTERM are let in only while it waits. Closes the server. */
STET_CHECKED stet_status stet_mcp_serve(stet_mcp_server *s, int in, int out, bool (*stop)(void *ctx), void *ctx,
                                        stet_error *err);

#endif
