/* server.c - the MCP server without I/O: bytes of the client in, bytes for the client out. */

#include "mcp/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "mcp/internal.h"
#include "mcp/prompt.h"
#include "operation/text.h"
#include "os/clock.h"

#define MAX_DEPTH      256               /* of a message */
#define FULL           ((size_t)8 << 20) /* bytes of waiting requests, above which no more is read */
#define KEPT_RESULTS   16
#define KEPT_BYTES     ((size_t)256 << 20)
#define SCAN_PERIOD_MS 250

void mcp_log(const stet_mcp_server *s, stet_mcp_log level, const char *format, ...) {
    if (level > s->o.log)
        return;
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    stet_buf text = STET_BUF(0);
    stet_render r = {.out = &text};
    stet_buf_str(&text, "stet mcp: ");
    stet_text_plain(&r, message, strlen(message));
    stet_buf_char(&text, '\n');
    fwrite(text.data, 1, text.len, stderr);
    stet_buf_release(&text);
}

mcp_request *mcp_request_ref(mcp_request *r) {
    atomic_fetch_add(&r->refs, 1);
    return r;
}

void mcp_request_unref(mcp_request *r) {
    if (!r || atomic_fetch_sub(&r->refs, 1) != 1)
        return;
    stet_value_release(r->id);
    stet_value_release(r->token);
    stet_value_release(r->args);
    stet_value_release(r->events);
    free(r->text);
    free(r);
}

mcp_request *mcp_request_new(stet_mcp_server *s, stet_value id, mcp_batch *batch) {
    mcp_request *r = stet_alloc_zero(sizeof *r);
    r->s = s;
    r->refs = 1;
    r->id = stet_value_retain(id);
    r->batch = batch;
    r->detail = s->detail;
    r->progress = -1;
    if (batch)
        batch->open++;
    return r;
}

static void id_key(stet_value id, stet_buf *out) {
    stet_json_write(out, id, STET_JSON_CANONICAL);
}

static mcp_request *find_request(const stet_mcp_server *s, stet_value id) {
    stet_buf key = STET_BUF(0);
    id_key(id, &key);
    stet_slot *slot = stet_map_get(&s->requests, stet_buf_cstr(&key), key.len);
    stet_buf_release(&key);
    return slot ? slot->p : NULL;
}

static void unlist(mcp_request *r) {
    stet_buf key = STET_BUF(0);
    id_key(r->id, &key);
    stet_slot *slot = stet_map_get(&r->s->requests, stet_buf_cstr(&key), key.len);
    if (slot && slot->p == r) {
        stet_map_remove(&r->s->requests, stet_buf_cstr(&key), key.len);
        mcp_request_unref(r);
    }
    stet_buf_release(&key);
}

void mcp_submit(mcp_request *r, void (*run)(stet_mcp_job *job), bool slow) {
    r->job.run = run;
    r->job.slow = slow;
    r->submitted = true;
    stet_mcp_pool_submit(r->s->pool, &mcp_request_ref(r)->job);
}

/* Takes over the bytes of `text`. */
static void enqueue(stet_mcp_server *s, mcp_request *about, stet_buf *text) {
    mcp_frame *f = stet_alloc_zero(sizeof *f);
    stet_buf_char(text, '\n');
    f->bytes = stet_buf_take(text, &f->len);
    f->request = about ? mcp_request_ref(about) : NULL;
    *s->out_end = f;
    s->out_end = &f->next;
    s->out_bytes += f->len;
}

static void free_frame(stet_mcp_server *s, mcp_frame *f) {
    s->out_bytes -= f->len;
    mcp_request_unref(f->request);
    stet_free(f->bytes);
    free(f);
}

/* Takes away what waits about a request, or with NULL everything; a frame that has been begun is finished. */
static void drop_frames(stet_mcp_server *s, const mcp_request *about) {
    mcp_frame **at = s->out && s->out_done ? &s->out->next : &s->out;
    while (*at) {
        mcp_frame *f = *at;
        if (about && f->request != about) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        free_frame(s, f);
    }
    s->out_end = at;
}

size_t stet_mcp_output(stet_mcp_server *s, const char **bytes) {
    if (!s->out)
        return 0;
    *bytes = s->out->bytes + s->out_done;
    return s->out->len - s->out_done;
}

void stet_mcp_wrote(stet_mcp_server *s, size_t len) {
    s->out_done += len;
    while (s->out && s->out_done >= s->out->len) {
        mcp_frame *f = s->out;
        s->out_done -= f->len;
        s->out = f->next;
        if (!s->out)
            s->out_end = &s->out;
        free_frame(s, f);
    }
}

bool stet_mcp_midway(const stet_mcp_server *s) {
    return s->out_done > 0;
}

bool stet_mcp_full(const stet_mcp_server *s) {
    return s->out_bytes > FULL;
}

static void batch_add(mcp_batch *b, const stet_buf *text) {
    if (b->text.len)
        stet_buf_char(&b->text, ',');
    else
        stet_buf_char(&b->text, '[');
    stet_buf_add(&b->text, text->data, text->len);
}

static void batch_done(stet_mcp_server *s, mcp_batch *b) {
    if (!b || --b->open)
        return;
    if (b->text.len) {
        stet_buf_char(&b->text, ']');
        enqueue(s, NULL, &b->text);
    }
    stet_buf_release(&b->text);
    free(b);
}

void mcp_write_result(const mcp_request *r, stet_buf *out, stet_value result) {
    if (r->modern) {
        stet_value before = stet_value_get(result, "_meta");
        stet_value meta = stet_value_type(before) == STET_TYPE_OBJECT ? stet_value_retain(before) : stet_value_object();
        stet_value_put(&meta, META_PREFIX "serverInfo", stet_value_retain(r->s->server_info));
        stet_value_put(&result, "_meta", meta);
        stet_value_put(&result, "resultType", stet_value_string("complete"));
    }
    stet_rpc_write_result(out, r->id, result);
}

void mcp_finish(mcp_request *r, stet_buf *text) {
    stet_mcp_server *s = r->s;
    if (r->over) {
        stet_buf_release(text);
        return;
    }
    r->over = true;
    if (r->batch)
        batch_add(r->batch, text);
    else
        enqueue(s, NULL, text); /* no cancellation takes it back: the request is over */
    stet_buf_release(text);
    batch_done(s, r->batch);
    r->batch = NULL;
    unlist(r);
}

void mcp_answer(mcp_request *r, stet_value result) {
    stet_buf text = STET_BUF(0);
    mcp_write_result(r, &text, result);
    mcp_finish(r, &text);
}

void mcp_refuse(mcp_request *r, int code, stet_value data, const char *format, ...) {
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    stet_buf text = STET_BUF(0);
    stet_rpc_write_error(&text, r->id, code, stet_value_stringf("%s", message), data);
    mcp_finish(r, &text);
}

void mcp_drop(mcp_request *r) {
    stet_mcp_server *s = r->s;
    mcp_request_ref(r); /* the analyzer can't count: it takes the next unref for the last */
    atomic_store(&r->cancelled, true);
    r->over = true;
    drop_frames(s, r);
    mcp_listener_end(s, r);
    if (r->submitted && stet_mcp_pool_withdraw(s->pool, &r->job))
        mcp_request_unref(r);
    batch_done(s, r->batch); /* NOLINT(clang-analyzer-unix.Malloc): a reference is held */
    r->batch = NULL;
    unlist(r);            /* NOLINT(clang-analyzer-unix.Malloc): a reference is held */
    mcp_request_unref(r); /* NOLINT(clang-analyzer-unix.Malloc): this is the last */
}

void mcp_notify(stet_mcp_server *s, mcp_request *about, const char *method, stet_value params) {
    stet_buf text = STET_BUF(0);
    stet_rpc_write_notification(&text, method, params);
    enqueue(s, about, &text);
}

void mcp_tell(stet_mcp_server *s, mcp_request *about, bool final, stet_buf *text, mcp_scan *scan) {
    mcp_outcome *o = stet_alloc_zero(sizeof *o);
    o->request = about ? mcp_request_ref(about) : NULL;
    o->final = final;
    o->scan = scan;
    if (text) {
        o->text = *text;
        *text = (stet_buf)STET_BUF(0);
    }
    atomic_fetch_add(&s->outcome_bytes, o->text.len);
    pthread_mutex_lock(&s->lock);
    bool first = s->outcomes == NULL;
    *s->outcomes_end = o;
    s->outcomes_end = &o->next;
    if (first) {
        /* Inside the lock: once it is free the protocol thread may have taken the outcome and closed the server. */
        uint64_t one = 1;
        ssize_t n = write(s->wake, &one, sizeof one);
        (void)n; /* the counter of an eventfd takes 2^64 - 2 of them */
    }
    pthread_mutex_unlock(&s->lock);
}

static void finish_told(mcp_request *r, stet_buf *text) {
    if (r->list_digest && !r->modern)
        mcp_session_sees_list(r->s, r->list_digest);
    mcp_finish(r, text);
}

static void land(stet_mcp_server *s, mcp_outcome *o) {
    atomic_fetch_sub(&s->outcome_bytes, o->text.len);
    if (o->scan)
        mcp_scan_landed(s, o->request, o->scan);
    else if (o->request->over)
        stet_buf_release(&o->text);
    else if (o->final)
        finish_told(o->request, &o->text);
    else
        enqueue(s, o->request, &o->text);
    mcp_request_unref(o->request);
    free(o);
}

static mcp_outcome *take_outcomes(stet_mcp_server *s) {
    uint64_t count;
    pthread_mutex_lock(&s->lock);
    mcp_outcome *first = s->outcomes;
    s->outcomes = NULL;
    s->outcomes_end = &s->outcomes;
    ssize_t n = first ? read(s->wake, &count, sizeof count) : 0;
    (void)n; /* non-blocking: nothing there is fine */
    pthread_mutex_unlock(&s->lock);
    return first;
}

void stet_mcp_tick(stet_mcp_server *s) {
    mcp_outcome *o;
    while ((o = take_outcomes(s)))
        while (o) {
            mcp_outcome *next = o->next;
            land(s, o);
            o = next;
        }
    mcp_scan_when_due(s);
}

int stet_mcp_wake_fd(const stet_mcp_server *s) {
    return s->wake;
}

int stet_mcp_timeout(const stet_mcp_server *s) {
    if (s->listeners.len == 0 || s->scanning || s->ended)
        return -1;
    int64_t rest = (s->scan_next - stet_clock_monotonic_us() + 999) / 1000;
    return rest < 0 ? 0 : rest > SCAN_PERIOD_MS ? SCAN_PERIOD_MS : (int)rest;
}

bool stet_mcp_idle(const stet_mcp_server *s) {
    return stet_map_len(&s->requests) == 0 && !s->out && !s->scanning;
}

static void complain(stet_mcp_server *s, mcp_batch *batch, stet_value id, int code, const char *why) {
    stet_buf text = STET_BUF(0);
    mcp_log(s, STET_MCP_LOG_INFO, "refused a message: %s", why);
    stet_rpc_write_error(&text, id, code, stet_value_stringf("%s", why), stet_value_null());
    if (batch)
        batch_add(batch, &text);
    else
        enqueue(s, NULL, &text);
    stet_buf_release(&text);
}

static stet_value supported(const char *requested) {
    stet_value data = stet_value_object(), list = stet_value_array();
    stet_value_push(&list, stet_value_string(MODERN_VERSION));
    stet_value_put(&data, "supported", list);
    stet_value_put(&data, "requested", stet_value_string(requested));
    return data;
}

/* Which era a request belongs to, and what it says about itself. False: it was refused. */
static bool read_meta(mcp_request *r, const char *method, stet_value params) {
    stet_value meta, version, token;
    bool has_meta = stet_value_find(params, "_meta", 5, &meta);
    if (has_meta && stet_value_type(meta) != STET_TYPE_OBJECT) {
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "\"_meta\" must be an object");
        return false;
    }
    static const char key[] = META_PREFIX "protocolVersion";
    r->modern = has_meta && stet_value_find(meta, key, strlen(key), &version);
    if (r->modern) {
        if (stet_value_type(version) != STET_TYPE_STRING) {
            mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "%s must be a string", key);
            return false;
        }
        if (strcmp(stet_value_as_string(&version, NULL), MODERN_VERSION) != 0) {
            mcp_refuse(r, STET_RPC_UNSUPPORTED_VERSION, supported(stet_value_as_string(&version, NULL)),
                       "unsupported protocol version %.40s: a request may say " MODERN_VERSION
                       " in its _meta, and " NEWEST_LEGACY " and earlier begin with initialize",
                       stet_value_as_string(&version, NULL));
            return false;
        }
        if (stet_value_type(stet_value_get(meta, META_PREFIX "clientCapabilities")) != STET_TYPE_OBJECT) {
            mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "_meta lacks " META_PREFIX "clientCapabilities");
            return false;
        }
        r->detail = STET_MCP_STRUCTURED;
    } else if (!r->s->in_session && strcmp(method, "initialize") != 0 && strcmp(method, "ping") != 0) {
        mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(),
                   "no protocol version: neither %s in _meta (" MODERN_VERSION
                   ") nor an initialize before (" NEWEST_LEGACY " and earlier)",
                   key);
        return false;
    }
    if (has_meta && stet_value_find(meta, "progressToken", 13, &token)) {
        if (!stet_rpc_id_valid(token)) {
            mcp_refuse(r, STET_RPC_INVALID_PARAMS, stet_value_null(), "progressToken must be a string or an integer");
            return false;
        }
        r->token = stet_value_retain(token);
    }
    return true;
}

static void begin_request(stet_mcp_server *s, const stet_rpc_message *m, mcp_batch *batch) {
    mcp_request *r = mcp_request_new(s, m->id, batch);
    const char *method = stet_value_as_string(&m->method, NULL);
    if (find_request(s, m->id)) {
        mcp_refuse(r, STET_RPC_INVALID_REQUEST, stet_value_null(), "a request with this id is being worked on");
    } else if (stet_map_len(&s->requests) >= STET_MCP_MAX_REQUESTS) {
        mcp_refuse(r, STET_RPC_INTERNAL_ERROR, stet_value_null(), "more than %d requests at once",
                   STET_MCP_MAX_REQUESTS);
    } else if (read_meta(r, method, m->params)) {
        stet_buf key = STET_BUF(0);
        id_key(m->id, &key);
        stet_map_put(&s->requests, stet_buf_cstr(&key), key.len, (stet_slot){.p = mcp_request_ref(r)});
        stet_buf_release(&key);
        if (batch && strcmp(method, "initialize") == 0)
            mcp_refuse(r, STET_RPC_INVALID_REQUEST, stet_value_null(), "initialize can't be part of a batch");
        else
            mcp_dispatch(r, method, m->params);
    }
    mcp_request_unref(r);
}

static void on_message(stet_mcp_server *s, stet_value v, mcp_batch *batch) {
    stet_rpc_message m;
    switch (stet_rpc_classify(v, &m)) {
    case STET_RPC_BAD:
        complain(s, batch, m.id, m.code, m.why);
        break;
    case STET_RPC_RESPONSE:
        mcp_answered(s, &m);
        break;
    case STET_RPC_NOTIFICATION:
        mcp_notice(s, stet_value_as_string(&m.method, NULL), m.params);
        break;
    case STET_RPC_REQUEST:
        begin_request(s, &m, batch);
        break;
    }
}

static void on_batch(stet_mcp_server *s, stet_value list) {
    if (!s->batches) {
        complain(s, NULL, stet_value_null(), STET_RPC_INVALID_REQUEST, "this protocol version has no batches");
        return;
    }
    if (stet_value_count(list) == 0 || stet_value_count(list) > STET_MCP_MAX_BATCH) {
        complain(s, NULL, stet_value_null(), STET_RPC_INVALID_REQUEST, "a batch has 1 to 256 messages");
        return;
    }
    mcp_batch *batch = stet_alloc_zero(sizeof *batch);
    batch->open = 1;
    for (size_t i = 0; i < stet_value_count(list); i++)
        on_message(s, stet_value_at(list, i), batch);
    batch_done(s, batch);
}

static void on_line(void *ctx, const char *line, size_t len) {
    stet_mcp_server *s = ctx;
    if (!line) {
        char why[96];
        snprintf(why, sizeof why, "a message of more than %zu bytes", s->o.max_frame);
        complain(s, NULL, stet_value_null(), STET_RPC_INVALID_REQUEST, why);
        return;
    }
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    stet_json_limits limits = {.max_depth = MAX_DEPTH, .max_bytes = s->o.max_frame};
    if (stet_json_read(line, len, &limits, &v, &err) != STET_OK) {
        complain(s, NULL, stet_value_null(), STET_RPC_PARSE_ERROR, err.message);
        stet_error_clear(&err);
        return;
    }
    if (stet_value_type(v) == STET_TYPE_ARRAY)
        on_batch(s, v);
    else
        on_message(s, v, NULL);
    stet_value_release(v);
}

void stet_mcp_receive(stet_mcp_server *s, const char *bytes, size_t len) {
    stet_rpc_framer_feed(&s->framer, bytes, len, on_line, s);
    stet_mcp_tick(s);
}

void stet_mcp_end(stet_mcp_server *s) {
    stet_rpc_framer_end(&s->framer, on_line, s);
    s->ended = true;
    atomic_store(&s->deaf, true);
    mcp_listeners_close(s, true);
    stet_mcp_tick(s);
}

stet_status stet_mcp_open(const stet_mcp_options *options, stet_mcp_server **out, stet_error *err) {
    stet_mcp_tools *tools;
    stet_status status = stet_mcp_tools_new(&options->filter, &tools, err);
    if (status != STET_OK)
        return status;
    int wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake < 0) {
        status = stet_fail_errno(err, errno, "eventfd");
        stet_mcp_tools_free(tools);
        return status;
    }
    stet_mcp_server *s = stet_alloc_zero(sizeof *s);
    atomic_store(&s->told_from, MCP_LEVEL_NONE);
    s->o = *options;
    s->dir = stet_strdup(options->dir);
    s->o.dir = s->dir;
    s->o.filter = (stet_mcp_filter){.read_only = options->filter.read_only,
                                    .whole = options->filter.whole}; /* the arrays belong to the tools */
    s->tools = tools;
    s->wake = wake;
    s->pages = stet_mcp_pages_new(KEPT_RESULTS, KEPT_BYTES);
    s->pool = stet_mcp_pool_new(options->threads);
    s->watch = stet_mcp_watch_new(s->dir);
    s->framer.max = options->max_frame;
    s->detail = STET_MCP_STRUCTURED;
    s->out_end = &s->out;
    s->outcomes_end = &s->outcomes;
    pthread_mutex_init(&s->lock, NULL);
    s->server_info = stet_value_object();
    stet_value_put(&s->server_info, "name", stet_value_string("stet"));
    stet_value_put(&s->server_info, "version", stet_value_string(stet_version()));
    *out = s;
    return STET_OK;
}

void stet_mcp_cancel(stet_mcp_server *s) {
    atomic_store(&s->stopping, true);
    s->ended = true;
    mcp_listeners_close(s, false);
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t at = 0; stet_map_next(&s->requests, &at, &key, &len, &slot); at = 0)
        mcp_drop(slot->p);
    drop_frames(s, NULL);
}

bool stet_mcp_close(stet_mcp_server *s, int timeout_ms) {
    stet_mcp_cancel(s);
    if (!stet_mcp_pool_close(s->pool, timeout_ms))
        return false;
    stet_mcp_tick(s); /* the last words of the workers: nobody hears them, but they are freed */
    drop_frames(s, NULL);
    if (s->out) {
        free_frame(s, s->out);
        s->out = NULL;
    }
    stet_mcp_watch_free(s->watch);
    stet_mcp_pages_free(s->pages);
    stet_mcp_tools_free(s->tools);
    stet_rpc_framer_release(&s->framer);
    stet_map_release(&s->requests);
    stet_vec_release(&s->listeners);
    stet_value_release(s->server_info);
    pthread_mutex_destroy(&s->lock);
    close(s->wake);
    free(s->dir);
    free(s);
    return true;
}

stet_value stet_mcp_overview(stet_mcp_server *s) {
    mcp_request *r = mcp_request_new(s, stet_value_int(0), NULL);
    stet_mcp_caller caller = mcp_caller(r);
    stet_value v = stet_value_object();
    stet_value_put(&v, "tools", stet_mcp_tools_list(s->tools, STET_MCP_STRUCTURED));
    stet_value_put(&v, "prompts", stet_mcp_prompts_list(s->tools, true));
    stet_value_put(&v, "resourceTemplates", stet_mcp_resource_templates(&caller));
    mcp_request_unref(r);
    return v;
}
