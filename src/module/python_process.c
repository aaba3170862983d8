/* python_process.c - processes that have imported a file of Python, and the conversation with them. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "module/python.h"
#include "os/clock.h"
#include "os/sys.h"

#define LOOK_MS   50 /* how often somebody is asked whether to stop */
#define END_MS    5000
#define LOAD_MS   120000
#define SEND_S    60
#define MAX_LOG   (1u << 20)
#define MAX_PRINT (256u << 20)

/* The text of python_child.py, with a NUL at its end. */
__asm__(".section .rodata\n.global stet_python_child\n.hidden stet_python_child\nstet_python_child:\n"
        ".incbin \"src/module/python_child.py\"\n.byte 0\n.previous\n");
extern const char stet_python_child[];

static void close_files(python_process *p) {
    int *fds[] = {&p->fd, &p->out[0], &p->out[1]};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (*fds[i] >= 0)
            stet_sys_close(*fds[i]);
        *fds[i] = -1;
    }
}

/* Ends the process, and what its action has started: if the process died by itself, nobody else does. */
static void stop(python_process *p) {
    stet_error none = STET_ERROR_INIT;
    stet_proc_exit ended;
    if (p->action.pid > 0 && stet_proc_alive(p->action))
        kill(-(pid_t)p->action.pid, SIGKILL);
    p->action.pid = 0;
    if (p->proc.id.pid > 0) {
        stet_proc_kill(&p->proc, SIGKILL);
        if (stet_proc_wait(&p->proc, END_MS, &ended, &none) != STET_OK)
            stet_error_clear(&none); /* it can't be helped: it has no way to reach anybody */
    }
    p->proc.id.pid = 0;
    if (p->fd >= 0)
        stet_sys_close(p->fd);
    p->fd = -1;
}

void python_process_end(python_state *s, python_process *p) {
    stop(p);
    close_files(p);
    for (size_t i = 0; i < s->processes.len; i++)
        if (s->processes.at[i] == p) {
            s->processes.at[i] = s->processes.at[--s->processes.len];
            break;
        }
    python_looks_release(&p->looks);
    stet_free(p->key);
    stet_free(p->error);
    stet_free(p);
}

stet_status python_process_send(python_process *p, stet_value message, stet_error *err) {
    stet_buf b = STET_BUF(0);
    stet_buf_add(&b, "\0\0\0\0", 4);
    stet_json_write(&b, message, STET_JSON_CANONICAL);
    size_t len = b.len - 4;
    stet_status status = STET_OK;
    if (len > PYTHON_MAX_MESSAGE)
        status =
            stet_fail(err, STET_LIMIT, "the inputs of a Python function are above %u MiB", PYTHON_MAX_MESSAGE >> 20);
    for (int i = 0; i < 4; i++)
        b.data[i] = (char)(len >> (24 - 8 * i) & 0xff);
    for (size_t done = 0; status == STET_OK && done < b.len;) {
        ssize_t n = send(p->fd, b.data + done, b.len - done, MSG_NOSIGNAL);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR) /* it has ended: whoever waits for its answer finds out how */
            done = b.len;
    }
    stet_buf_release(&b);
    return status;
}

static void take_log(python_process *p, int stream, stet_run *run) {
    static const char *const names[] = {"stdout", "stderr"};
    char text[4096];
    ssize_t n;
    while ((n = pread(p->out[stream], text, sizeof text, p->taken[stream])) > 0) {
        off_t before = p->taken[stream];
        p->taken[stream] += n;
        if (before >= MAX_LOG)
            continue;
        stet_run_log(run, names[stream], text, (size_t)n);
        if (p->taken[stream] >= MAX_LOG) {
            static const char more[] = "\n(more than 1 MiB: the rest is left out)\n";
            stet_run_log(run, names[stream], more, sizeof more - 1);
        }
    }
}

void python_process_logs(python_process *p, stet_run *run) {
    for (int i = 0; i < 2; i++)
        take_log(p, i, run);
}

static void empty_logs(python_process *p) {
    for (int i = 0; i < 2; i++)
        p->taken[i] = ftruncate(p->out[i], 0) == 0 ? 0 : p->taken[i];
}

static bool prints_too_much(const python_process *p) {
    struct stat st;
    for (int i = 0; i < 2; i++)
        if (fstat(p->out[i], &st) == 0 && st.st_size > MAX_PRINT)
            return true;
    return false;
}

/* Waits until there is something to read. */
static stet_status await(python_state *s, python_process *p, python_run *r, int64_t deadline_us, stet_error *err) {
    for (;;) {
        struct pollfd at[] = {{.fd = p->fd, .events = POLLIN}, {.fd = p->proc.pidfd, .events = POLLIN}};
        int n = poll(at, 2, LOOK_MS);
        if (n > 0 && at[0].revents)
            return STET_OK;
        if (n > 0 && at[1].revents)
            return stet_fail(err, STET_FAILED, "the process of Python has been killed");
        if (r)
            python_process_logs(p, r->run);
        if (s->host.cancelled && s->host.cancelled(s->host.cancelled_ctx))
            return stet_fail(err, STET_CANCELLED, "stopped");
        if (stet_clock_monotonic_us() > deadline_us) {
            stet_fail(err, STET_FAILED, "stopped: it takes longer than its time limit");
            stet_hint(err, "set \"limits\": {\"timeMs\": MILLISECONDS} in the module of the node");
            return STET_FAILED;
        }
        if (prints_too_much(p))
            return stet_fail(err, STET_FAILED, "stopped: it has printed more than %u MiB", MAX_PRINT >> 20);
    }
}

static stet_status read_exactly(python_state *s, python_process *p, python_run *r, int64_t deadline_us, char *to,
                                size_t len, stet_error *err) {
    while (len > 0) {
        stet_status status = await(s, p, r, deadline_us, err);
        if (status != STET_OK)
            return status;
        ssize_t n = read(p->fd, to, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return stet_fail(err, STET_FAILED, "the process of Python has ended");
        to += n;
        len -= (size_t)n;
    }
    return STET_OK;
}

stet_status python_process_receive(python_state *s, python_process *p, python_run *r, int64_t deadline_us,
                                   stet_value *out, stet_error *err) {
    unsigned char head[4];
    *out = stet_value_null();
    stet_status status = read_exactly(s, p, r, deadline_us, (char *)head, sizeof head, err);
    if (status != STET_OK)
        return status;
    size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    if (len > PYTHON_MAX_MESSAGE)
        return stet_fail(err, STET_FAILED, "the process of Python sent %zu bytes", len);
    char *text = stet_alloc(len + 1);
    status = read_exactly(s, p, r, deadline_us, text, len, err);
    text[len] = '\0';
    if (status == STET_OK && stet_json_read(text, len, NULL, out, err) != STET_OK) {
        stet_fail_in(err, "an answer of the process of Python");
        status = STET_FAILED;
    }
    stet_free(text);
    return status;
}

static stet_status open_log(int *fd, stet_error *err) {
    *fd = memfd_create("stet-python", MFD_CLOEXEC);
    if (*fd < 0 || fcntl(*fd, F_SETFL, O_APPEND) != 0)
        return stet_fail_errno(err, errno, "a file for the output of Python");
    return STET_OK;
}

static stet_status start(python_state *s, python_process *p, const char *interpreter, const char *file,
                         stet_error *err) {
    /* What a function computes must not depend on who asked for it: docs/what-counts.md. */
    char *home = stet_asprintf("HOME=%s", getenv("HOME") ? getenv("HOME") : "/");
    const char *const envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                "LANG=C.UTF-8",
                                "PYTHONHASHSEED=0",
                                "PYTHONNOUSERSITE=1",
                                "PYTHONDONTWRITEBYTECODE=1",
                                "PYTHONUTF8=1",
                                home,
                                NULL};
    const char *const argv[] = {interpreter, "-c", stet_python_child, s->root, file, NULL};
    int pair[2] = {-1, -1};
    struct timeval patience = {.tv_sec = SEND_S};
    stet_status status = STET_OK;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        status = stet_fail_errno(err, errno, "a socket for Python");
    for (int i = 0; i < 2 && status == STET_OK; i++)
        status = open_log(&p->out[i], err);
    if (status == STET_OK) {
        stet_proc_opts o = {.argv = argv,
                            .envp = envp,
                            .cwd = s->root,
                            .stdin_fd = pair[1],
                            .stdout_fd = p->out[0],
                            .stderr_fd = p->out[1],
                            .new_group = true};
        status = stet_proc_spawn(&o, &p->proc, err);
        if (status != STET_OK) {
            p->proc.id.pid = 0;
            stet_hint_instead(err,
                              "install python3, or name another interpreter: interpreter = \"/usr/bin/python3\" below "
                              "[python] in stet.toml");
        }
    }
    if (pair[1] >= 0)
        stet_sys_close(pair[1]);
    p->fd = pair[0];
    if (p->fd >= 0 && setsockopt(p->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0 && status == STET_OK)
        status = stet_fail_errno(err, errno, "a socket for Python");
    stet_free(home);
    return status;
}

/* Waits until the file is imported. A failure to import it is not one of this function. */
static stet_status load(python_state *s, python_process *p, const char *file, stet_error *err) {
    stet_value message;
    stet_status status =
        python_process_receive(s, p, NULL, stet_clock_monotonic_us() + (int64_t)LOAD_MS * 1000, &message, err);
    if (status != STET_OK) {
        if (status == STET_FAILED)
            stet_fail_in(err, "%s: importing it", file);
        return status;
    }
    stet_value error;
    if (!python_looks_add(s, stet_value_get(message, "looks"), &p->looks))
        status = stet_fail(err, STET_FAILED, "%s: the process of Python says nothing about what it imported", file);
    else if (stet_value_find(message, "error", 5, &error)) {
        const char *text = stet_value_as_string(&error, NULL);
        p->error = stet_strdup(text ? text : "it can't be imported");
        stop(p);
    }
    stet_value_release(message);
    return status;
}

static void make_room(python_state *s) {
    while (s->processes.len >= PYTHON_MAX_PROCESSES) {
        python_process *oldest = s->processes.at[0];
        for (size_t i = 1; i < s->processes.len; i++)
            if (s->processes.at[i]->used < oldest->used)
                oldest = s->processes.at[i];
        python_process_end(s, oldest);
    }
}

/* Has it died since it was last used? One with an error needs no process. */
static bool is_gone(const python_process *p) {
    return !p->error && !stet_proc_alive(p->proc.id);
}

stet_status python_process_get(python_state *s, const char *interpreter, const char *file, python_process **out,
                               stet_run *run, stet_error *err) {
    char *key = stet_asprintf("%s\n%s", interpreter, file);
    for (size_t i = 0; i < s->processes.len; i++) {
        python_process *p = s->processes.at[i];
        if (strcmp(p->key, key) != 0)
            continue;
        if (is_gone(p)) {
            python_process_end(s, p);
            break;
        }
        p->used = ++s->clock;
        stet_free(key);
        *out = p;
        return STET_OK;
    }
    make_room(s);
    python_process *p = stet_alloc_zero(sizeof *p);
    p->key = key;
    p->fd = p->out[0] = p->out[1] = -1;
    p->used = ++s->clock;
    *stet_vec_add(&s->processes) = p;
    stet_status status = start(s, p, interpreter, file, err);
    if (status == STET_OK)
        status = load(s, p, file, err);
    if (p->out[0] >= 0 && p->out[1] >= 0 && run) {
        python_process_logs(p, run); /* what importing it has printed */
        empty_logs(p);
    }
    if (status == STET_OK)
        *out = p;
    else
        python_process_end(s, p);
    return status;
}

/* The end of an action: its output is taken, and the process waits for the next one. */
void python_process_rest(python_process *p, stet_run *run) {
    python_process_logs(p, run);
    empty_logs(p);
    p->action.pid = 0;
}
