/* internal.h - what the files of the MCP server share.
 *
 *   server.c    bytes, requests in flight
 *   method.c    what each method does
 *   call.c      the side of the worker threads
 *   ask.c       questions to the user
 *   listen.c    subscriptions
 */
#ifndef STET_MCP_INTERNAL_H
#define STET_MCP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/vec.h"
#include "mcp/page.h"
#include "mcp/pool.h"
#include "mcp/resource.h"
#include "mcp/rpc.h"
#include "mcp/server.h"

#define META_PREFIX     "io.modelcontextprotocol/"
#define MODERN_VERSION  "2026-07-28"
#define NEWEST_LEGACY   "2025-11-25"
#define BATCHED_VERSION "2025-03-26"

/* The answers of one batch (2025-03-26), sent when all of them are complete. */
typedef struct mcp_batch {
    size_t open; /* requests without an answer, plus one while the batch is being read */
    stet_buf text;
} mcp_batch;

/* A request in flight. Shared by the protocol thread and the worker that runs it; each holds a reference. */
typedef struct mcp_request {
    stet_mcp_job job; /* first: a job is its request */
    stet_mcp_server *s;
    _Atomic int refs;
    _Atomic bool cancelled;
    _Atomic int64_t question; /* the number of what the user is asked before it runs; 0: nothing */
    _Atomic int reply;

    /* Set before the job is submitted and not changed after. */
    stet_value id;
    bool modern;
    stet_mcp_detail detail;
    stet_value token; /* progressToken; null: none was given */
    const stet_op *op;
    stet_value args;
    char *text; /* an address or a cursor */

    /* Used by the worker. */
    stet_project *project;
    stet_value events; /* events of an operation that emits, if nobody requested progress */
    size_t events_bytes;
    uint64_t list_digest;  /* of the resources listed */
    int64_t progress;      /* the last one reported */
    int64_t progress_next; /* earliest time of the next, monotonic */

    /* The protocol thread's. */
    mcp_batch *batch;
    bool submitted;
    bool over; /* answered or cancelled: nothing more is sent about it */
} mcp_request;

/* A message from a worker to the protocol thread. */
typedef struct mcp_outcome {
    struct mcp_outcome *next;
    mcp_request *request; /* holds a reference; NULL: of a scan that nobody waits for */
    bool final;
    stet_buf text;
    struct mcp_scan *scan;
} mcp_outcome;

/* An outgoing message. */
typedef struct mcp_frame {
    struct mcp_frame *next;
    mcp_request *request; /* a reference, for dropping the frame; NULL: none */
    char *bytes;
    size_t len;
} mcp_frame;

/* A listener for changes: a subscriptions/listen request, or the session of an older client (id null). */
typedef struct mcp_listener {
    stet_value id;
    mcp_request *request;
    stet_map uris; /* maps to the digest of what was last seen there; 0: nothing */
    bool list;     /* also listens to list changes */
    uint64_t list_digest;
} mcp_listener;

/* A look at some resources on a worker. */
typedef struct mcp_scan {
    stet_mcp_job job;
    mcp_request *request; /* a reference to the request that waits for it, or to one made for it alone */
    bool waited;
    stet_value uris; /* array of strings */
    bool list;
    bool forced; /* look even if the watch reports no change */
    /* Results. */
    bool looked;
    STET_VEC(uint64_t) digests;
    uint64_t list_digest;
} mcp_scan;

struct stet_mcp_server {
    stet_mcp_options o;
    char *dir;
    stet_mcp_tools *tools;
    stet_mcp_pages *pages;
    stet_mcp_pool *pool;
    stet_value server_info;

    /* The protocol thread's. */
    stet_rpc_framer framer;
    bool in_session; /* initialize was answered */
    bool batches;    /* the session's version has batches */
    stet_mcp_detail detail;
    stet_map requests; /* canonical text of the id to mcp_request */
    mcp_frame *out, **out_end;
    size_t out_done;  /* bytes of the first frame already written */
    size_t out_bytes; /* waiting bytes */
    STET_VEC(mcp_listener *) listeners;
    int64_t scan_next; /* monotonic */
    bool scanning;
    bool ended;

    /* Shared. */
    pthread_mutex_t lock;
    mcp_outcome *outcomes, **outcomes_end;
    _Atomic size_t outcome_bytes;
    _Atomic bool stopping;
    _Atomic bool asks; /* the client of the session can ask its user (elicitation) */
    _Atomic bool deaf; /* nothing more comes from the client */
    _Atomic int64_t questions;
    _Atomic int told_from; /* messages of at least this level are sent to the client: an index of mcp_levels */
    int wake;

    /* For the one scan that runs at a time, handed from worker to worker through the pool. */
    stet_mcp_watch *watch;
    uint64_t mark;
};

/* The levels of logging/setLevel, from the least on; ends with NULL. Before it was called nothing is sent. */
extern const char *const mcp_levels[];
#define MCP_LEVEL_WARNING 3
#define MCP_LEVEL_NONE    8

/* In server.c. */
void mcp_log(const stet_mcp_server *s, stet_mcp_log level, const char *format, ...) STET_PRINTF(3, 4);
mcp_request *mcp_request_new(stet_mcp_server *s, stet_value id, mcp_batch *batch);
mcp_request *mcp_request_ref(mcp_request *r);
void mcp_request_unref(mcp_request *r);
void mcp_submit(mcp_request *r, void (*run)(stet_mcp_job *job), bool slow); /* the job holds a reference */
/* Ends a request, on the protocol thread. `result` is consumed. */
void mcp_answer(mcp_request *r, stet_value result);
void mcp_refuse(mcp_request *r, int code, stet_value data, const char *format, ...) STET_PRINTF(4, 5);
void mcp_finish(mcp_request *r, stet_buf *text);
void mcp_drop(mcp_request *r); /* for a cancelled request */
void mcp_notify(stet_mcp_server *s, mcp_request *about, const char *method, stet_value params);
/* On any thread: hands an outcome to the protocol thread. Consumes the text. */
void mcp_tell(stet_mcp_server *s, mcp_request *about, bool final, stet_buf *text, mcp_scan *scan);
/* Appends the text of a result, with the members that its protocol version adds. */
void mcp_write_result(const mcp_request *r, stet_buf *out, stet_value result);

/* In method.c. */
void mcp_dispatch(mcp_request *r, const char *method, stet_value params);
void mcp_notice(stet_mcp_server *s, const char *method, stet_value params);
/* One page of a list, ordered by the member `order`; false if `cursor` is not valid. Consumes `list`. */
bool mcp_list_page(const stet_mcp_server *s, stet_value list, const char *what, const char *order, const char *cursor,
                   stet_value *result);
void mcp_cacheable(const mcp_request *r, stet_value *result, int64_t ttl_ms, const char *scope);

/* In call.c: jobs. */
void mcp_run_tool(stet_mcp_job *job);
void mcp_run_read(stet_mcp_job *job);
void mcp_run_complete(stet_mcp_job *job); /* completion/complete */
void mcp_run_list(stet_mcp_job *job);
bool mcp_permitted(void *ctx, const stet_op *op); /* ctx: a request */
stet_mcp_caller mcp_caller(mcp_request *r);
void mcp_release_project(mcp_request *r);

/* In ask.c. On a worker: asks the user before a tool that may destroy something, if the client can. STET_DENIED: the user
 * did not agree. On the protocol thread: a response of the client. */
STET_CHECKED stet_status mcp_ask(mcp_request *r, const stet_op *op, stet_value args, stet_error *err);
void mcp_answered(stet_mcp_server *s, const stet_rpc_message *m);

/* In listen.c. */
void mcp_subscribe(mcp_request *r, stet_value uris, bool list); /* consumes uris */
void mcp_unsubscribe(stet_mcp_server *s, const char *uri);
void mcp_session_sees_list(stet_mcp_server *s, uint64_t digest);
uint64_t mcp_list_digest(stet_value list);
void mcp_scan_landed(stet_mcp_server *s, mcp_request *r, mcp_scan *scan);
void mcp_scan_free(mcp_scan *scan);
void mcp_scan_when_due(stet_mcp_server *s);
void mcp_listener_end(stet_mcp_server *s, const mcp_request *r); /* cancelled */
void mcp_listeners_close(stet_mcp_server *s, bool answer);

#endif
