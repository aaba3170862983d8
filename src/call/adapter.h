/* adapter.h - execution adapters: programs that are asked for the progress of a call.
 *
 *     stet_adapter_uri u;
 *     stet_status status = stet_adapter_uri_parse("dml+exec://stet-exec-local/sort?arg=-n", &u, &err);
 *     if (status == STET_OK)
 *         stet_adapter_uri_release(&u);
 *
 *     stet_adapter_poll *p;
 *     status = stet_adapter_start(loop, &request, answered, ctx, &p, &err); // the loop calls answered(ctx, &reply)
 *
 * The authority of the URI is the adapter: a bare name, looked up in $PATH (and beside this program, where
 * stet-exec-local lies before it is installed). It is started without a shell, in its own process group, with one JSON
 * request on its standard input, and writes one JSON reply to its standard output:
 *
 *   request {"v":2,"op":"poll"|"cancel","node":ID,"function":URI,"inputs":[ID...],"code":{PATH:ID...},
 *               "snapshot":{"remote":URI,"ref":"refs/exec/<uuid>"},"execution":UUID,"key":KEY,"token":TEXT|null,
 *               "tries":N}
 *   reply {"v":1,"status":"pending","token":TEXT,"poll_after_ms":N,
 *               "progress":{"done":n,"total":m,"note":TEXT}?}
 *              {"v":1,"status":"done","outcome":"ok"|"error","result":DAG_ID,"keep":BOOL?,"retry":BOOL?}
 *
 * `code` is the code of the call's node. `keep` false, with the outcome "error", says that the failure is not a result: it
 * is recorded and shown, and the same call runs again next time. `retry` true says in addition that it is worth another
 * try now: the adapter is asked again, without a token and with `tries` one higher, within the budget of the call.
 *
 * Exit status 0 comes with a reply; 75 means a transient failure, any other status a permanent one. A reply that is too
 * long, late, malformed or missing counts as a transient failure, with a message that names the adapter: a program may
 * give a better reply the next time, and the retry budget of the call ends it. Standard error is passed on, up to a
 * limit. An adapter that a signal has ended is a transient failure: its job may be running. Processes that an adapter
 * left running do not delay the answer.
 *
 * A poll ends in exactly one answer, from the loop, also after stet_adapter_stop.
 */
#ifndef STET_EXEC_ADAPTER_H
#define STET_EXEC_ADAPTER_H

#include "base/buf.h"
#include "base/hash.h"

#define STET_ADAPTER_SCHEME    "dml+exec://"
#define STET_ADAPTER_URI_MAX   ((size_t)64 << 10)
#define STET_ADAPTER_NAME_MAX  128
#define STET_ADAPTER_REPLY_MAX ((size_t)1 << 20)
#define STET_ADAPTER_TOKEN_MAX ((size_t)64 << 10)
#define STET_ADAPTER_LOG_MAX   ((size_t)1 << 20)
#define STET_ADAPTER_NOTE_MAX  1000
#define STET_ADAPTER_POLL_MS   60000 /* default time limit for one poll */
#define STET_ADAPTER_TRANSIENT 75    /* EX_TEMPFAIL */
#define STET_ADAPTER_AFTER_MAX ((int64_t)3600 * 1000)

/* The parts of a function's URI. Escapes are decoded; `path` is without its leading slash. */
typedef struct stet_adapter_uri {
    char adapter[STET_ADAPTER_NAME_MAX];
    char *path;
    stet_value query; /* array of [NAME, VALUE] in the order of the URI; a name without = has the value "" */
} stet_adapter_uri;

/* STET_INVALID: the message says what is wrong. */
STET_CHECKED stet_status stet_adapter_uri_parse(const char *uri, stet_adapter_uri *out, stet_error *err);
void stet_adapter_uri_release(stet_adapter_uri *u);

typedef enum stet_adapter_status {
    STET_ADAPTER_PENDING,
    STET_ADAPTER_DONE_OK,
    STET_ADAPTER_DONE_ERROR,
    STET_ADAPTER_FAILED_TRANSIENT, /* transient */
    STET_ADAPTER_FAILED_PERMANENT,
    STET_ADAPTER_STOPPED /* on request */
} stet_adapter_status;

typedef struct stet_adapter_reply {
    stet_adapter_status status;
    stet_value token;      /* if pending: a string */
    int64_t poll_after_ms; /* -1: not given */
    int64_t done, total;   /* progress; -1: none */
    stet_value note;       /* a string, or null */
    stet_hash result;      /* if done */
    bool passing, retry;   /* if done with an error: it is not kept; and is worth another try */
    stet_error error;      /* if failed */
    const char *log;       /* its standard error; valid during the answer */
    size_t log_len;
} stet_adapter_reply;
void stet_adapter_reply_release(stet_adapter_reply *r);

/* Parses the reply of an adapter; `adapter` is for messages. Bad bytes become a reply too: a transient failure. */
void stet_adapter_reply_parse(const char *adapter, const char *bytes, size_t len, stet_adapter_reply *out);

typedef struct stet_adapter_request {
    const char *function; /* URI */
    bool cancel;
    stet_hash node;
    const stet_hash *inputs;
    size_t input_count;
    const char *remote, *ref, *execution, *key;
    stet_value code;  /* of the node: an object, or null */
    int64_t tries;    /* failures for now that this execution was told about */
    stet_value token; /* a string, or null */
    const char *cwd;  /* working directory of the adapter; NULL: the current one */
    int64_t timeout_ms;
} stet_adapter_request;

/* The request as it is sent to an adapter. */
stet_value stet_adapter_request_value(const stet_adapter_request *r);

struct uv_loop_s;
typedef struct stet_adapter_poll stet_adapter_poll;
typedef void stet_adapter_answer(void *ctx, const stet_adapter_reply *reply);
/* Starts a poll. Everything is borrowed for the call. A failure here is permanent (the adapter does not exist, for
 * example), except STET_BUSY: this machine has no processes or descriptors left at the moment. */
STET_CHECKED stet_status stet_adapter_start(struct uv_loop_s *loop, const stet_adapter_request *r,
                                            stet_adapter_answer *answer, void *ctx, stet_adapter_poll **out,
                                            stet_error *err);
/* Stops the adapter; the answer is STET_ADAPTER_STOPPED. */
void stet_adapter_stop(stet_adapter_poll *p);

#endif
