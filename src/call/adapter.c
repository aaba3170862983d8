/* adapter.c - one poll of an adapter: a process with three descriptors, driven by the event loop.
 *
 * The request is a file in memory that the child reads, so nothing has to be fed to it. Its answer is complete when the
 * child has ended. Processes that the child left behind may hold its descriptors open for as long as they like.
 */

#include "call/adapter.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <uv.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

#define LOOK_MS 10 /* where the kernel has no descriptors for processes */

struct stet_adapter_poll {
    uv_poll_t out, log, process;
    uv_timer_t timer;
    int handles;                    /* not yet closed by the loop */
    int out_fd, log_fd, process_fd; /* the last is a copy: waiting for the process closes its own */
    stet_proc proc;
    char name[STET_ADAPTER_NAME_MAX];
    stet_buf reply, said;
    int64_t deadline_us;
    int64_t timeout_ms;
    bool too_long, late, stopped, ending;
    stet_proc_exit exit;
    stet_adapter_answer *answer;
    void *ctx;
};

/* Reads what is there; false when the pipe is at its end. */
static bool drain(int fd, stet_buf *b) {
    for (;;) {
        char block[16384];
        ssize_t n = read(fd, block, sizeof block);
        if (n > 0) {
            size_t room = b->max - b->len, take = (size_t)n < room ? (size_t)n : room;
            stet_buf_add(b, block, take);
            if (take < (size_t)n)
                b->overflow = true;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
}

static void give_answer(stet_adapter_poll *p) {
    stet_adapter_reply r = {.poll_after_ms = -1, .done = -1, .total = -1};
    if (p->stopped) {
        r.status = STET_ADAPTER_STOPPED;
        stet_fail(&r.error, STET_CANCELLED, "the adapter %s was stopped", p->name);
    } else if (p->late) {
        r.status = STET_ADAPTER_FAILED_TRANSIENT;
        stet_fail(&r.error, STET_BUSY, "the adapter %s has not answered within %lld ms", p->name,
                  (long long)p->timeout_ms);
    } else if (p->too_long) {
        r.status = STET_ADAPTER_FAILED_TRANSIENT;
        stet_fail(&r.error, STET_BUSY, "the adapter %s gave a reply that can't be used: it is longer than 1 MiB",
                  p->name);
    } else if (p->exit.signalled || p->exit.code != 0) {
        bool now = p->exit.signalled || p->exit.code == STET_ADAPTER_TRANSIENT;
        r.status = now ? STET_ADAPTER_FAILED_TRANSIENT : STET_ADAPTER_FAILED_PERMANENT;
        /* The last line that it said is most often the reason. */
        const char *text = stet_buf_cstr(&p->said), *end = text + p->said.len;
        while (end > text && (end[-1] == '\n' || end[-1] == ' '))
            end--;
        const char *line = end;
        while (line > text && line[-1] != '\n')
            line--;
        stet_fail(&r.error, now ? STET_BUSY : STET_FAILED, "the adapter %s %s %d%s%.*s", p->name,
                  p->exit.signalled ? "was ended by signal" : "ended with status", p->exit.code, end > line ? ": " : "",
                  (int)(end - line > 500 ? 500 : end - line), line);
    } else {
        stet_adapter_reply_parse(p->name, stet_buf_cstr(&p->reply), p->reply.len, &r);
    }
    r.log = stet_buf_cstr(&p->said);
    r.log_len = p->said.len;
    p->answer(p->ctx, &r);
    stet_adapter_reply_release(&r);
}

static void closed(uv_handle_t *h) {
    stet_adapter_poll *p = h->data;
    if (--p->handles > 0)
        return;
    close(p->out_fd);
    close(p->log_fd);
    if (p->process_fd >= 0)
        close(p->process_fd);
    give_answer(p);
    stet_buf_release(&p->reply);
    stet_buf_release(&p->said);
    stet_free(p);
}

static void finish(stet_adapter_poll *p) {
    if (p->ending)
        return;
    p->ending = true;
    drain(p->out_fd, &p->reply);
    drain(p->log_fd, &p->said);
    p->too_long |= p->reply.overflow;
    uv_close((uv_handle_t *)&p->out, closed);
    uv_close((uv_handle_t *)&p->log, closed);
    uv_close((uv_handle_t *)&p->timer, closed);
    if (p->process_fd >= 0)
        uv_close((uv_handle_t *)&p->process, closed);
}

/* Has it ended? Else it is killed, if its time is over. */
static void look(stet_adapter_poll *p) {
    if (p->ending)
        return;
    bool over = p->stopped || p->too_long;
    if (stet_clock_monotonic_us() >= p->deadline_us)
        over = p->late = true;
    if (over)
        stet_proc_kill(&p->proc, SIGKILL);
    /* Killed, it ends at once; only a process that hangs in the kernel does not, and the next look asks again. */
    if (stet_proc_wait(&p->proc, over ? 1000 : 0, &p->exit, NULL) == STET_OK)
        finish(p);
}

static void on_pipe(uv_poll_t *h, int status, int events) {
    (void)status;
    (void)events;
    stet_adapter_poll *p = h->data;
    bool out = h == &p->out;
    stet_buf *b = out ? &p->reply : &p->said;
    if (!drain(out ? p->out_fd : p->log_fd, b))
        uv_poll_stop(h);
    if (out && b->overflow) {
        p->too_long = true;
        look(p);
    }
}

static void on_process(uv_poll_t *h, int status, int events) {
    (void)status;
    (void)events;
    look(h->data);
}

static void on_timer(uv_timer_t *t) {
    look(t->data);
}

void stet_adapter_stop(stet_adapter_poll *p) {
    p->stopped = true;
    look(p);
}

/* The request, as a file in memory that is open for reading. */
static int request_fd(const stet_adapter_request *r, stet_error *err) {
    stet_value v = stet_adapter_request_value(r);
    size_t len;
    char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
    stet_value_release(v);
    int fd = memfd_create("request", MFD_CLOEXEC);
    if (fd < 0)
        stet_fail(err, STET_BUSY, "cannot make a request to an adapter: %s", strerror(errno));
    else if (stet_file_write_all(fd, "request", text, len, err) != STET_OK || lseek(fd, 0, SEEK_SET) != 0) {
        close(fd);
        fd = -1;
    }
    stet_free(text);
    return fd;
}

/* Beside this program: there the shipped adapters lie, installed or not. NULL: not there. */
static char *beside(const char *name) {
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0)
        return NULL;
    exe[n] = 0;
    char *dir = stet_file_dirname(exe), *path = stet_file_join(dir, name);
    stet_free(dir);
    if (access(path, X_OK) == 0)
        return path;
    stet_free(path);
    return NULL;
}

static stet_status spawn(stet_adapter_poll *p, const char *program, const char *cwd, int in, int out, int log,
                         stet_error *err) {
    const char *argv[] = {program, NULL};
    stet_proc_opts o = {
        .argv = argv, .cwd = cwd, .stdin_fd = in, .stdout_fd = out, .stderr_fd = log, .new_group = true};
    return stet_proc_spawn(&o, &p->proc, err);
}

static void watch(stet_adapter_poll *p, uv_loop_t *loop, uv_poll_t *h, int fd, uv_poll_cb cb) {
    int status = uv_poll_init(loop, h, fd);
    if (status != 0) /* out of memory, or no pollable descriptor: neither is from outside */
        abort();
    h->data = p;
    p->handles++;
    uv_poll_start(h, UV_READABLE, cb);
}

stet_status stet_adapter_start(struct uv_loop_s *loop, const stet_adapter_request *r, stet_adapter_answer *answer,
                               void *ctx, stet_adapter_poll **out, stet_error *err) {
    stet_adapter_uri uri;
    stet_status status = stet_adapter_uri_parse(r->function, &uri, err);
    if (status != STET_OK)
        return status;
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    stet_adapter_poll *p = stet_alloc_zero(sizeof *p);
    memcpy(p->name, uri.adapter, sizeof p->name);
    stet_adapter_uri_release(&uri);
    p->reply = (stet_buf)STET_BUF(STET_ADAPTER_REPLY_MAX);
    p->said = (stet_buf)STET_BUF(STET_ADAPTER_LOG_MAX);
    p->answer = answer;
    p->ctx = ctx;
    p->timeout_ms = r->timeout_ms > 0 ? r->timeout_ms : STET_ADAPTER_POLL_MS;
    int in = request_fd(r, err);
    status = in < 0 ? STET_BUSY : STET_OK;
    for (int i = 0; i < 2 && status == STET_OK; i++)
        if (pipe2(pipes[i], O_CLOEXEC) != 0)
            status = stet_fail(err, STET_BUSY, "cannot talk to the adapter %s: %s", p->name, strerror(errno));
        else
            fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
    if (status == STET_OK) {
        stet_error inner = STET_ERROR_INIT;
        status = spawn(p, p->name, r->cwd, in, pipes[0][1], pipes[1][1], &inner);
        char *near = status == STET_NOT_FOUND ? beside(p->name) : NULL;
        if (near) {
            stet_error_clear(&inner);
            status = spawn(p, near, r->cwd, in, pipes[0][1], pipes[1][1], &inner);
        }
        stet_free(near);
        if (status == STET_NOT_FOUND) {
            stet_fail(err, STET_NOT_FOUND, "there is no adapter %s on $PATH", p->name);
            stet_hint(err, "install it, or put the directory it is in on $PATH");
        } else if (status == STET_IO)
            status = stet_fail(err, STET_BUSY, "the adapter %s could not be started: %.400s", p->name, inner.message);
        stet_error_move(err, &inner);
    }
    if (in >= 0)
        close(in);
    for (int i = 0; i < 2; i++)
        if (pipes[i][1] >= 0)
            close(pipes[i][1]);
    if (status != STET_OK) {
        for (int i = 0; i < 2; i++)
            if (pipes[i][0] >= 0)
                close(pipes[i][0]);
        stet_free(p);
        return status;
    }
    p->out_fd = pipes[0][0];
    p->log_fd = pipes[1][0];
    p->deadline_us = stet_clock_monotonic_us() + p->timeout_ms * 1000;
    watch(p, loop, &p->out, p->out_fd, on_pipe);
    watch(p, loop, &p->log, p->log_fd, on_pipe);
    uv_timer_init(loop, &p->timer);
    p->timer.data = p;
    p->handles++;
    p->process_fd = p->proc.pidfd >= 0 ? fcntl(p->proc.pidfd, F_DUPFD_CLOEXEC, 0) : -1;
    if (p->process_fd >= 0) {
        watch(p, loop, &p->process, p->process_fd, on_process);
        uv_timer_start(&p->timer, on_timer, (uint64_t)p->timeout_ms + 1, 1000);
    } else
        uv_timer_start(&p->timer, on_timer, LOOK_MS, LOOK_MS);
    *out = p;
    return STET_OK;
}
