/* call_logs.c - the operation call logs: what the job of a call has written, while it runs and afterwards. */

#include <string.h>

#include "base/text.h"
#include "call/claim.h"
#include "call/orchestrate_local.h"
#include "operation/call_common.h"
#include "operation/text.h"
#include "os/clock.h"
#include "os/file.h"

#define LOOK_MS   100
#define BLOCK_MAX ((size_t)256 << 10)

typedef struct log_reader {
    const char *name; /* "stdout" or "stderr" */
    char *path;
    int64_t at;  /* bytes that were read */
    bool wanted; /* --stream */
    bool there;
} log_reader;

/* Reads on, whole lines up to BLOCK_MAX, and longer ones in parts. `open_end`: a line without an end is left for later, not
 * taken as the last one. Empty: there is nothing new. */
static void read_on(log_reader *r, bool open_end, stet_buf *out) {
    struct stat st;
    int fd = r->wanted ? stet_sys_open(r->path, O_RDONLY, 0) : -1;
    if (fd < 0)
        return;
    r->there = true;
    if (stet_sys_fstat(fd, &st) == 0 && (int64_t)st.st_size < r->at)
        r->at = 0; /* the job was started again */
    char *room = stet_buf_reserve(out, BLOCK_MAX);
    ssize_t n = room ? stet_sys_pread(fd, room, BLOCK_MAX, (off_t)r->at) : 0;
    stet_sys_close(fd);
    if (n <= 0)
        return;
    size_t len = (size_t)n;
    if (open_end || len == BLOCK_MAX)
        while (len > 0 && room[len - 1] != '\n')
            len--;
    if (len == 0 && n == (ssize_t)BLOCK_MAX)
        len = BLOCK_MAX;
    for (size_t i = 0; i < len; i++)
        room[i] = room[i] ? room[i] : ' '; /* text goes on behind it */
    out->len += len;
    r->at += (int64_t)len;
}

static void start_at(log_reader *r, int64_t bytes) {
    struct stat st;
    if (stet_sys_stat(r->path, &st) == 0 && (int64_t)st.st_size > bytes)
        r->at = (int64_t)st.st_size - bytes;
}

/* Is there nothing more to come? The attempt may be open although its job has ended: nobody has asked since. */
static bool has_ended(call_session *s, const stet_attempt *a) {
    stet_attempt now;
    stet_claim c;
    bool there = false, ended = true;
    if (stet_attempt_get(s->repo, a->execution, &now, NULL) == STET_OK) {
        ended = now.done;
        stet_attempt_release(&now);
    }
    if (ended || stet_value_type(stet_value_get(a->detail, "remote")) == STET_TYPE_STRING)
        return ended;
    stet_hub *hub = stet_hub_of_repo(s->repo);
    if (stet_claim_get(hub, a->key, &there, &c, NULL) == STET_OK && there) {
        ended = c.state >= STET_CLAIM_OK && !c.retry;
        stet_claim_release(&c);
    }
    stet_hub_close(hub);
    return ended;
}

static stet_status follow(call_session *s, const stet_attempt *a, log_reader logs[2], stet_error *err) {
    for (;;) {
        bool ended = has_ended(s, a), more = false; /* asked first: what was written before it is read below */
        for (int i = 0; i < 2; i++) {
            stet_buf b = STET_BUF(BLOCK_MAX + 1);
            read_on(&logs[i], !ended, &b);
            if (b.len > 0) {
                more = true;
                stet_value event = stet_value_object();
                stet_value_put(&event, "stream", stet_value_string(logs[i].name));
                stet_value_put(&event, "text", stet_value_stringf("%s", stet_buf_cstr(&b)));
                stet_status status = s->ctx->emit(s->ctx, event, err);
                stet_value_release(event);
                if (status != STET_OK) {
                    stet_buf_release(&b);
                    return status;
                }
            }
            stet_buf_release(&b);
        }
        if (s->ctx->cancelled(s->ctx))
            return stet_fail(err, STET_CANCELLED, "stopped following the call, which goes on");
        stet_value said = stet_value_null();
        if (!more && ended)
            return STET_OK;
        char *dir = stet_calls_dir(s->project);
        said = stet_backend_local_progress(dir, a->key);
        stet_value note = stet_value_get(said, "note");
        if (stet_value_type(said) != STET_TYPE_NULL)
            s->ctx->progress(s->ctx, stet_value_as_int(stet_value_get(said, "done")),
                             stet_value_as_int(stet_value_get(said, "total")),
                             stet_value_type(note) == STET_TYPE_STRING ? stet_value_as_string(&note, NULL) : NULL);
        stet_value_release(said);
        stet_free(dir);
        if (!more)
            stet_clock_sleep_ms(LOOK_MS);
    }
}

static stet_status read_all(log_reader *r, stet_value *out) {
    stet_buf b = STET_BUF((size_t)64 << 20);
    size_t before;
    do {
        before = b.len;
        read_on(r, false, &b);
    } while (b.len > before);
    stet_value_put(out, r->name, stet_value_stringf("%s", stet_buf_cstr(&b)));
    stet_buf_release(&b);
    return STET_OK;
}

stet_status call_logs_run(stet_op_ctx *ctx, stet_value args, stet_value *result, stet_error *err) {
    call_session s;
    stet_value hold, stream_hold;
    stet_attempt a;
    const char *stream = stet_value_text_at(args, "stream", &stream_hold);
    bool follows = stet_value_as_bool(stet_value_get(args, "follow"));
    stet_status status = call_begin(ctx, false, NULL, &s, err);
    if (status != STET_OK)
        return status;
    status = call_find(&s, stet_value_text_at(args, "id", &hold), &a, err);
    if (status != STET_OK) {
        call_end(&s);
        return status;
    }
    char *dir = stet_calls_dir(s.project);
    log_reader logs[2] = {{.name = "stdout", .path = stet_backend_local_log(dir, a.key, "out")},
                          {.name = "stderr", .path = stet_backend_local_log(dir, a.key, "err")}};
    for (int i = 0; i < 2; i++) {
        logs[i].wanted = strcmp(stream, "all") == 0 || strcmp(stream, logs[i].name) == 0;
        start_at(&logs[i], stet_value_as_int(stet_value_get(args, "bytes")));
    }
    if (follows)
        status = follow(&s, &a, logs, err);
    *result = stet_value_object();
    stet_value_put(result, "id", stet_value_string(a.execution));
    stet_value_put(result, "ended", stet_value_bool(has_ended(&s, &a)));
    for (int i = 0; i < 2 && !follows && status == STET_OK; i++)
        if (logs[i].wanted)
            status = read_all(&logs[i], result);
    stet_value remote = stet_value_get(a.detail, "remote");
    if (status == STET_OK && !logs[0].there && !logs[1].there && stet_value_as_bool(stet_value_get(*result, "ended"))) {
        status = stet_fail(err, STET_NOT_FOUND, "nothing is kept of what the call %s wrote", a.execution);
        stet_hint(err,
                  stet_value_type(remote) == STET_TYPE_STRING
                      ? "its job ran with a worker, which keeps its output; a failure has the end of it: stet call show"
                      : "its adapter keeps no output, or stet gc removed it; stet call show has the rest");
    }
    if (status != STET_OK)
        stet_value_release(*result);
    for (int i = 0; i < 2; i++)
        stet_free(logs[i].path);
    stet_attempt_release(&a);
    stet_free(dir);
    call_end(&s);
    return status;
}

static void print_lines(stet_render *r, stet_value text) {
    size_t len = 0;
    const char *p = stet_value_type(text) == STET_TYPE_STRING ? stet_value_as_string(&text, &len) : NULL, *end;
    for (const char *stop = p + len; p && p < stop; p = end + 1) { /* line by line: they are kept */
        end = memchr(p, '\n', (size_t)(stop - p));
        end = end ? end : stop;
        stet_text_plain(r, p, (size_t)(end - p));
        stet_buf_char(r->out, '\n');
    }
}

void call_logs_render(stet_render *r, stet_value v) {
    print_lines(r, stet_value_get(v, "text")); /* of an event */
    print_lines(r, stet_value_get(v, "stdout"));
    print_lines(r, stet_value_get(v, "stderr"));
}
