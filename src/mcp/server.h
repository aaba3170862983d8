/* server.h - an MCP server without I/O: bytes of the client go in, bytes for the client come out.
 *
 *     stet_mcp_server *s;
 *     stet_status status = stet_mcp_open(&options, &s, &err);
 *     if (status != STET_OK)
 *         return status;
 *     stet_mcp_receive(s, input, len); // any part of the stream
 *     const char *bytes;
 *     size_t n;
 *     while ((n = stet_mcp_output(s, &bytes)) > 0) // what to write next
 *         stet_mcp_wrote(s, fwrite(bytes, 1, n, file));
 *     struct pollfd wake = {.fd = stet_mcp_wake_fd(s), .events = POLLIN};
 *     if (poll(&wake, 1, stet_mcp_timeout(s)) >= 0)
 *         stet_mcp_tick(s);
 *     stet_mcp_end(s);    // the client closed its side
 *     stet_mcp_cancel(s); // cancels what still runs
 *     bool ended = stet_mcp_close(s, 5000);
 *
 * stet_mcp_serve does this over two descriptors.
 *
 * Threads. One thread calls these functions, the protocol thread; it answers quick requests itself. Operations run on
 * the threads of a pool, each with a project handle of its own. Their messages come back through a queue that
 * stet_mcp_tick empties. So
 *   M1. every message is written completely, by one thread, in the order in which it was made;
 *   M2. nothing is written about a request after its answer, or after its cancellation was received;
 *   M3. a request is answered once, unless it was cancelled; a notification is never answered.
 *
 * Protocol versions. A request that names a protocol version in its `_meta` is served statelessly by that version
 * (2026-07-28). An `initialize` begins a session of one of the earlier versions; requests without a version in `_meta`
 * belong to it. Both may be used on one connection.
 */
#ifndef STET_MCP_SERVER_H
#define STET_MCP_SERVER_H

#include "mcp/tool.h"

typedef enum stet_mcp_log { STET_MCP_LOG_OFF, STET_MCP_LOG_ERROR, STET_MCP_LOG_INFO } stet_mcp_log;

#define STET_MCP_MAX_REQUESTS  1024 /* in flight */
#define STET_MCP_MAX_BATCH     256
#define STET_MCP_MAX_WATCHED   1024 /* addresses of one subscription */
#define STET_MCP_MAX_LISTENERS 64

typedef struct stet_mcp_options {
    const char *dir; /* absolute: the project is this directory or contains it; relative paths start here */
    stet_mcp_filter filter;
    bool outside;      /* path arguments may lead out of the project */
    size_t threads;    /* 0: operations run on the protocol thread, for tests */
    size_t max_frame;  /* maximum bytes of an incoming message */
    size_t max_result; /* maximum bytes of a result's JSON; a larger one is sent in pages */
    size_t page_size;  /* entries of one page of a list */
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
int stet_mcp_timeout(const stet_mcp_server *s); /* milliseconds until tick must be called; -1: no limit */
void stet_mcp_tick(stet_mcp_server *s);
/* Is nothing running, and nothing waiting to be written? */
bool stet_mcp_idle(const stet_mcp_server *s);
/* Is a message partly written? */
bool stet_mcp_midway(const stet_mcp_server *s);
/* Is so much waiting to be written that the caller should stop reading for now? */
bool stet_mcp_full(const stet_mcp_server *s);
void stet_mcp_cancel(stet_mcp_server *s);
/* Waits for what still runs. False: something does not end, and the server was left in memory for it. */
bool stet_mcp_close(stet_mcp_server *s, int timeout_ms);

/* The results of tools/list, prompts/list and resources/templates/list, in one object. Belongs to the caller. */
stet_value stet_mcp_overview(stet_mcp_server *s);

/* Serves until the client closes `in`, nobody reads `out` any more, or `stop` returns true after a signal (then
 * STET_CANCELLED, without a message). SIGINT and SIGTERM are unblocked only while it waits. Closes the server. */
STET_CHECKED stet_status stet_mcp_serve(stet_mcp_server *s, int in, int out, bool (*stop)(void *ctx), void *ctx,
                                        stet_error *err);

/* The operation `mcp`, for stet_op_add. */
extern const stet_op stet_ops_mcp[];

#endif
