/* supervisor.c - the process that starts commands, waits for them and writes down how they ended. It holds no lock but
 * its own, knows nothing of projects, and trusts its client, whose user it runs as. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/vec.h"
#include "exec/local.h"
#include "exec/wire.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"

typedef struct child {
    int64_t number;
    stet_proc proc;
    int64_t deadline_us, kill_us; /* monotonic; 0: none */
    bool timed_out, group_killed;
} child;

typedef struct supervisor {
    int client; /* -1: gone */
    int journal;
    const char *dir;
    stet_buf in;
    STET_VEC(child) children;
    STET_VEC(struct pollfd) polls;
} supervisor;

/* To the journal first, then to the client: what it hears is written down. */
static void say(supervisor *s, const char *line) {
    size_t len = strlen(line);
    if (stet_file_write_all(s->journal, "journal", line, len, NULL) != STET_OK)
        return; /* a full disk: the client learns of the end all the same */
    for (size_t sent = 0; s->client >= 0 && sent < len;) {
        ssize_t n = send(s->client, line + sent, len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            close(s->client);
            s->client = -1;
            break;
        }
        sent += (size_t)n;
    }
}

static int stream(supervisor *s, int64_t number, const char *suffix, int flags) {
    char name[64];
    snprintf(name, sizeof name, "%lld.%s", (long long)number, suffix);
    char *path = stet_file_join(s->dir, name);
    int fd = stet_sys_open(path, flags, 0644);
    stet_free(path);
    return fd;
}

static void start(supervisor *s, stet_wire *w) {
    int64_t number = stet_wire_take_int(w);
    const char *key = stet_wire_take_text(w), *node = stet_wire_take_text(w), *cwd = stet_wire_take_text(w);
    int64_t has_input = stet_wire_take_int(w), timeout = stet_wire_take_int(w), memory = stet_wire_take_int(w),
            cpu = stet_wire_take_int(w), file = stet_wire_take_int(w);
    STET_VEC(const char *) words = {0};
    size_t second = 0;
    for (int k = 0; k < 2; k++) {
        for (int64_t n = stet_wire_take_int(w); n > 0 && !w->bad; n--)
            *stet_vec_add(&words) = stet_wire_take_text(w);
        *stet_vec_add(&words) = NULL;
        if (k == 0)
            second = words.len;
    }
    if (w->bad) {
        stet_vec_release(&words);
        return;
    }
    stet_buf line = STET_BUF(0);
    stet_buf_printf(&line, "B %lld %s %lld %s\n", (long long)number, key, (long long)stet_clock_ns(), node);
    say(s, line.data);
    stet_error err = STET_ERROR_INIT;
    child c = {.number = number};
    int in = has_input ? stream(s, number, "in", O_RDONLY) : -1;
    int out = stream(s, number, "out", O_WRONLY | O_CREAT | O_TRUNC),
        errors = stream(s, number, "err", O_WRONLY | O_CREAT | O_TRUNC);
    stet_status status = STET_OK;
    if (out < 0 || errors < 0 || (has_input && in < 0))
        status = stet_fail_errno(&err, errno, "cannot open its standard streams in %s", s->dir);
    stet_proc_opts o = {.argv = words.at,
                        .envp = words.at + second,
                        .cwd = cwd,
                        .stdin_fd = in,
                        .stdout_fd = out,
                        .stderr_fd = errors,
                        .new_group = true,
                        .max_memory = (uint64_t)memory,
                        .max_cpu_s = (uint64_t)cpu,
                        .max_file_size = (uint64_t)file};
    if (status == STET_OK)
        status = stet_proc_spawn(&o, &c.proc, &err);
    stet_buf_clear(&line);
    if (status == STET_OK) {
        if (timeout > 0)
            c.deadline_us = stet_clock_monotonic_us() + timeout * 1000;
        *stet_vec_add(&s->children) = c;
        stet_buf_printf(&line, "S %lld %lld %llu %llu\n", (long long)number, (long long)c.proc.id.pid,
                        (unsigned long long)c.proc.id.start, (unsigned long long)c.proc.id.boot);
    } else {
        for (char *p = err.message; *p; p++)
            *p = *p == '\n' ? ' ' : *p;
        stet_buf_printf(&line, "F %lld %d %lld %s\n", (long long)number, (int)status, (long long)stet_clock_ns(),
                        err.message);
    }
    say(s, line.data);
    stet_error_clear(&err);
    stet_buf_release(&line);
    stet_vec_release(&words);
    const int fds[] = {in, out, errors};
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void stop(child *c, int64_t grace_us) {
    if (c->kill_us)
        return;
    stet_proc_kill(&c->proc, SIGTERM);
    c->kill_us = stet_clock_monotonic_us() + grace_us;
}

static void cancel(supervisor *s, stet_wire *w) {
    int64_t number = stet_wire_take_int(w), grace = stet_wire_take_int(w);
    for (size_t i = 0; i < s->children.len && !w->bad; i++)
        if (number < 0 || s->children.at[i].number == number)
            stop(&s->children.at[i], grace * 1000);
}

/* Every whole request that has come. */
static void serve(supervisor *s) {
    size_t at = 0;
    uint32_t len;
    while (s->in.len - at >= 4) {
        memcpy(&len, s->in.data + at, 4);
        if (len > STET_WIRE_MAX || s->in.len - at - 4 < len)
            break;
        stet_wire w = {s->in.data + at + 4, len, 0, false};
        size_t op_len;
        const char *op = stet_wire_take(&w, &op_len);
        if (op_len == 1 && *op == 'r')
            start(s, &w);
        else if (op_len == 1 && *op == 'c')
            cancel(s, &w);
        at += 4 + len;
    }
    if (at > 0) {
        memmove(s->in.data, s->in.data + at, s->in.len - at);
        s->in.len -= at;
    }
}

static void reap(supervisor *s) {
    int64_t now = stet_clock_monotonic_us();
    for (size_t i = 0; i < s->children.len;) {
        child *c = &s->children.at[i];
        stet_proc_exit e;
        if (stet_proc_wait(&c->proc, 0, &e, NULL) != STET_OK) {
            if (c->deadline_us && now >= c->deadline_us) {
                c->deadline_us = 0;
                c->timed_out = true;
                stop(c, 2000000);
            }
            if (c->kill_us && now >= c->kill_us && !c->group_killed) {
                stet_proc_kill(&c->proc, SIGKILL);
                c->group_killed = true;
            }
            i++;
            continue;
        }
        if (c->kill_us) /* what it started and left behind goes with it */
            kill(-(pid_t)c->proc.id.pid, SIGKILL);
        char line[128];
        snprintf(line, sizeof line, "E %lld %d %d %d %lld\n", (long long)c->number, e.code, e.signalled, c->timed_out,
                 (long long)stet_clock_ns());
        say(s, line);
        s->children.at[i] = s->children.at[--s->children.len];
    }
}

/* Milliseconds until a deadline; -1: none. */
static int patience(const supervisor *s) {
    int64_t next = 0, now = stet_clock_monotonic_us();
    for (size_t i = 0; i < s->children.len; i++) {
        const child *c = &s->children.at[i];
        int64_t at = c->kill_us && !c->group_killed ? c->kill_us : c->deadline_us;
        if (c->proc.pidfd < 0)
            at = now + 10000;
        if (at && (!next || at < next))
            next = at;
    }
    if (!next)
        return -1;
    return next <= now ? 0 : (int)((next - now) / 1000 + 1);
}

static void read_client(supervisor *s) {
    char *room = stet_buf_reserve(&s->in, 65536);
    ssize_t n = room ? recv(s->client, room, 65536, 0) : 0;
    if (n > 0) {
        s->in.len += (size_t)n;
        serve(s);
    } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        close(s->client);
        s->client = -1;
    }
}

int stet_supervisor_run(int fd, const char *dir) {
    supervisor s = {.client = fd, .dir = dir, .in = STET_BUF(STET_WIRE_MAX + 70000)};
    const int ignored[] = {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTERM};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
    char *journal = stet_file_join(dir, "journal"), *alive = stet_file_join(dir, "alive");
    stet_lock *lock = NULL;
    s.journal = stet_sys_open(journal, O_WRONLY | O_APPEND | O_CREAT, 0644);
    bool fine = s.journal >= 0 && stet_lock_open(alive, STET_LOCK_PLAIN, &lock, NULL) == STET_OK &&
                stet_lock_take(lock, STET_LOCK_EXCLUSIVE, 0, NULL) == STET_OK;
    if (fine)
        say(&s, "R\n"); /* ready */
    while (fine && (s.client >= 0 || s.children.len > 0)) {
        stet_vec_clear(&s.polls);
        *stet_vec_add(&s.polls) = (struct pollfd){s.client, POLLIN, 0};
        for (size_t i = 0; i < s.children.len; i++)
            if (s.children.at[i].proc.pidfd >= 0)
                *stet_vec_add(&s.polls) = (struct pollfd){s.children.at[i].proc.pidfd, POLLIN, 0};
        if (poll(s.polls.at, s.polls.len, patience(&s)) < 0 && errno != EINTR)
            break;
        if (s.client >= 0 && s.polls.at[0].revents)
            read_client(&s);
        reap(&s);
    }
    stet_lock_close(lock);
    stet_free(journal);
    stet_free(alive);
    stet_buf_release(&s.in);
    stet_vec_release(&s.children);
    stet_vec_release(&s.polls);
    return fine ? 0 : 1;
}
