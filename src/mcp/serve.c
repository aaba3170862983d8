/* serve.c - the server over two descriptors: the only place that waits, reads and writes. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mcp/internal.h"
#include "os/clock.h"

#define DRAIN_MS  1500 /* for pending answers, after the client has closed its side */
#define FINISH_MS 200  /* to finish a message that is half written when a signal comes */
#define CLOSE_MS  5000 /* for operations to notice that they are cancelled */

typedef enum out_kind { OUT_PIPE, OUT_SOCKET, OUT_OTHER } out_kind;

static out_kind kind_of(int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return OUT_OTHER;
    return S_ISSOCK(st.st_mode) ? OUT_SOCKET : S_ISFIFO(st.st_mode) ? OUT_PIPE : OUT_OTHER;
}

/* Never blocks, and leaves the descriptor's flags alone, which it may share with others: a pipe that polls writable
 * takes PIPE_BUF bytes. */
static ssize_t write_some(int fd, out_kind kind, const char *bytes, size_t len) {
    if (kind == OUT_SOCKET)
        return send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (poll(&p, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, bytes, kind == OUT_PIPE && len > PIPE_BUF ? PIPE_BUF : len);
}

typedef enum output { OUT_DONE, OUT_WAITS, OUT_GONE } output;

/* Writes all that can be written now, or only the rest of a message that was begun. */
static output flush(stet_mcp_server *s, int fd, out_kind kind, bool only_begun, int *error_number) {
    const char *bytes;
    size_t len;
    while ((!only_begun || stet_mcp_midway(s)) && (len = stet_mcp_output(s, &bytes))) {
        ssize_t n = write_some(fd, kind, bytes, len);
        if (n >= 0) {
            stet_mcp_wrote(s, (size_t)n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return OUT_WAITS;
        } else if (errno != EINTR) {
            *error_number = errno;
            return OUT_GONE;
        }
    }
    return OUT_DONE;
}

/* Reads what is there. False at the end. */
static bool take_input(stet_mcp_server *s, int fd, int *error_number) {
    static const size_t size = 65536;
    char bytes[65536];
    ssize_t n = read(fd, bytes, size);
    if (n > 0) {
        stet_mcp_receive(s, bytes, (size_t)n);
        return true;
    }
    if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return true;
    *error_number = n < 0 ? errno : 0;
    return false;
}

typedef struct loop {
    stet_mcp_server *s;
    int in, out;
    out_kind kind;
    bool open;        /* the client may still send something */
    int64_t deadline; /* when it may not: monotonic */
    int in_error, out_error;
} loop;

/* One turn of the loop. False: the session is over. */
static bool turn(loop *l, const sigset_t *waiting) {
    stet_mcp_server *s = l->s;
    stet_mcp_tick(s);
    output state = flush(s, l->out, l->kind, false, &l->out_error);
    if (state == OUT_GONE)
        return false;
    int64_t now = stet_clock_monotonic_us();
    if (!l->open && (stet_mcp_idle(s) || now >= l->deadline))
        return false;
    int timeout = l->open ? stet_mcp_timeout(s) : (int)((l->deadline - now) / 1000 + 1);
    struct pollfd fds[3] = {
        {.fd = stet_mcp_wake_fd(s), .events = POLLIN},
        {.fd = l->out, .events = state == OUT_WAITS ? POLLOUT : 0},
        {.fd = l->open && !stet_mcp_full(s) ? l->in : -1, .events = POLLIN},
    };
    struct timespec wait = {timeout / 1000, (long)(timeout % 1000) * 1000000};
    int ready = ppoll(fds, 3, timeout < 0 ? NULL : &wait, waiting);
    if (ready <= 0)
        return ready == 0 || errno == EINTR || errno == EAGAIN;
    if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL)) {
        l->out_error = fds[1].revents & POLLNVAL ? EBADF : EPIPE;
        return false;
    }
    if (fds[2].revents && !take_input(s, l->in, &l->in_error)) {
        l->open = false;
        l->deadline = stet_clock_monotonic_us() + DRAIN_MS * 1000;
        stet_mcp_end(s);
    }
    return true;
}

static void finish_begun(loop *l) {
    int64_t until = stet_clock_monotonic_us() + FINISH_MS * 1000;
    while (flush(l->s, l->out, l->kind, true, &l->out_error) == OUT_WAITS && stet_clock_monotonic_us() < until)
        poll(&(struct pollfd){.fd = l->out, .events = POLLOUT}, 1, FINISH_MS);
}

stet_status stet_mcp_serve(stet_mcp_server *s, int in, int out, bool (*stop)(void *ctx), void *ctx, stet_error *err) {
    loop l = {.s = s, .in = in, .out = out, .kind = kind_of(out), .open = true};
    /* The signals are blocked except inside ppoll: none is lost between looking and waiting, and the worker threads,
     * which inherit the mask, get none. */
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stops, &before);
    bool stopped = false;
    while (!(stopped = stop(ctx)) && turn(&l, &before))
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL); /* a second one ends the process at once */
    stet_mcp_cancel(s);
    if (!l.out_error)
        finish_begun(&l);
    stet_mcp_log level = s->o.log;
    if (!stet_mcp_close(s, CLOSE_MS) && level >= STET_MCP_LOG_ERROR)
        mcp_log(s, STET_MCP_LOG_ERROR, "an operation did not end when it was cancelled");
    if (stopped)
        return STET_CANCELLED;
    if (l.out_error && l.out_error != EPIPE && l.out_error != ECONNRESET)
        return stet_fail_errno(err, l.out_error, "standard output");
    if (l.in_error)
        return stet_fail_errno(err, l.in_error, "standard input");
    return STET_OK;
}
