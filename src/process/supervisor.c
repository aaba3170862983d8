/* supervisor.c - the process that starts commands, waits for them and records how they ended.
 *
 * The supervisor knows nothing about projects. It trusts its client, which runs as the same user.
 *
 *   1. A command is started only in the turn in which it was requested: its client may be dead, and another one may
 *      have begun to run commands meanwhile (local.h). Checking the turn and recording the start are one step, under a
 *      lock.
 *   2. A command that is recorded as requested and not as ended may be running: whoever reads the journal at any time
 *      must wait for it or end it.
 *   3. Where the kernel tells, an output that is removed while its command runs is recorded before its end: what the
 *      command writes after that is not all that it has written.
 *      So is that something was moved or changed that is to stay what it is (`held`).
 *   4. The files of a command are collected, and its own directory is removed, before its end is recorded.
 *   5. A command that was stopped, or that failed, has ended when everything that it started has. One that exited 0 may
 *      leave processes behind.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/vec.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/watch.h"
#include "process/local.h"
#include "process/share.h"
#include "process/wire.h"

#define ALIVE_MS 60000 /* whoever asks whether a supervisor lives holds its lock for moments */

typedef STET_VEC(int) watches; /* their numbers */

typedef struct child {
    int64_t number;
    stet_proc proc;
    int64_t deadline_us, kill_us; /* monotonic; 0: none */
    bool timed_out, killed;
    bool over; /* the command itself: `exit` and `ended_ns` are set, and what it started is being ended */
    stet_proc_exit exit;
    int64_t ended_ns;
    stet_watch *watch;  /* directories of its outputs, and what is held; or NULL */
    stet_names outputs; /* absolute */
    watches dirs, held; /* directories of outputs, and what is to stay what it is */
    bool removed, moved;
    char *work;             /* its own directory, or NULL */
    stet_names collect;     /* absolute */
    stet_share_set *places; /* NULL: none */
} child;

/* What was asked for. Pointers point into the request. */
typedef struct request {
    int64_t number;
    const char *key, *node, *cwd, *turn, *top, *work; /* work: its own directory, or "" */
    int64_t has_input, timeout, memory, cpu, file;
    STET_VEC(const char *) words;
    /* Where in `words` are: the command, its environment, what it writes, notes, files to collect, what is held, shares. */
    size_t at[7];
} request;

/* A command that waits for its places. */
typedef struct waiter {
    int64_t number;
    char *bytes; /* of the request */
    size_t len;
    stet_share_set *places;
    int64_t next_us, pause_us; /* when they are tried again, and how long after that */
} waiter;

#define PLACES_FIRST_US 20000 /* how soon places that others hold are tried again */
#define PLACES_MOST_US  200000

typedef struct supervisor {
    int client; /* -1: gone */
    int journal;
    const char *dir;
    stet_lock *turns; /* NULL before the first request that names its turn */
    stet_buf in;
    STET_VEC(child) children;
    STET_VEC(waiter) waiting;
    STET_VEC(struct pollfd) polls;
} supervisor;

/* False if it could not be written, on a full disk. */
static bool record(supervisor *s, const char *lines) {
    return stet_file_write_all(s->journal, "journal", lines, strlen(lines), NULL) == STET_OK;
}

static void tell(supervisor *s, const char *line, size_t len) {
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

/* To the journal first, then to the client: what it hears is written down. Where that failed, the client hears of it
 * all the same. */
static bool say(supervisor *s, const char *line) {
    bool written = record(s, line);
    tell(s, line, strlen(line));
    return written;
}

static int stream(supervisor *s, int64_t number, const char *suffix, int flags) {
    char name[64];
    snprintf(name, sizeof name, "%lld.%s", (long long)number, suffix);
    char *path = stet_file_join(s->dir, name);
    int fd = stet_sys_open(path, flags, 0644);
    stet_free(path);
    return fd;
}

/* Is it this turn? Then nobody takes another one until end_turn. */
static bool begin_turn(supervisor *s, const char *turn) {
    if (!*turn)
        return true;
    char *up = stet_file_dirname(s->dir);
    bool same = (s->turns || stet_local_turns_open(up, &s->turns, NULL) == STET_OK) &&
                stet_lock_take(s->turns, STET_LOCK_EXCLUSIVE, -1, NULL) == STET_OK;
    if (same) {
        char now[STET_TURN_SIZE];
        stet_local_turn_read(up, now);
        same = strcmp(now, turn) == 0;
    }
    stet_free(up);
    return same;
}

static void end_turn(supervisor *s) {
    if (s->turns)
        stet_lock_drop(s->turns);
}

/* A path in a line. */
static void add_path(stet_buf *line, const char *path) {
    for (; *path; path++)
        if (*path == '\n' || *path == '%')
            stet_buf_printf(line, "%%%02X", (unsigned char)*path);
        else
            stet_buf_add(line, path, 1);
}

/* 3. As far as the kernel can tell. */
static void watch_outputs(child *c, const char *top, const char *const *outputs) {
    for (; *top && *outputs; outputs++) {
        char *full = (*outputs)[0] == '/' ? stet_strdup(*outputs) : stet_file_join(top, *outputs),
             *dir = stet_file_dirname(full);
        *stet_vec_add(&c->outputs) = full;
        int number;
        if (stet_watch_add_names(c->watch, dir, &number, NULL) == STET_OK)
            *stet_vec_add(&c->dirs) = number;
        stet_free(dir);
    }
}

/* What is not there any more was moved before it could be watched. */
static void hold(child *c, const char *const *paths) {
    int number;
    for (; *paths; paths++) {
        stet_status status = stet_watch_hold(c->watch, *paths, &number, NULL);
        if (status == STET_OK)
            *stet_vec_add(&c->held) = number;
        c->moved |= status == STET_NOT_FOUND;
    }
}

static void watch(child *c, const request *r) {
    const char *const *outputs = r->words.at + r->at[2], *const *held = r->words.at + r->at[5];
    if ((!*outputs && !*held) || stet_watch_open(&c->watch, NULL) != STET_OK)
        return;
    watch_outputs(c, r->top, outputs);
    hold(c, held);
}

static bool is_in(const watches *w, int number) {
    for (size_t i = 0; i < w->len; i++)
        if (w->at[i] == number)
            return true;
    return false;
}

/* Sets `removed` and `moved`. */
static void hear(child *c) {
    stet_watch_event e;
    stet_status status = STET_NOT_FOUND;
    while (c->watch && (status = stet_watch_next(c->watch, &e, NULL)) == STET_OK) {
        bool itself = e.kind != STET_WATCH_OVERFLOW && !*e.name;
        c->moved |= e.kind == STET_WATCH_OVERFLOW || (itself && is_in(&c->held, e.number));
        c->removed |= e.kind == STET_WATCH_OVERFLOW || (itself && is_in(&c->dirs, e.number));
        char *path = *e.name && e.kind == STET_WATCH_REMOVED ? stet_file_join(e.dir, e.name) : NULL;
        for (size_t i = 0; path && i < c->outputs.len && !c->removed; i++)
            c->removed = strcmp(c->outputs.at[i], path) == 0;
        stet_free(path);
    }
    if (status != STET_OK && status != STET_NOT_FOUND)
        c->removed = c->moved = true;
}

static void child_release(child *c) {
    stet_watch_close(c->watch);
    stet_names_release(&c->outputs);
    stet_vec_release(&c->dirs);
    stet_vec_release(&c->held);
    stet_names_release(&c->collect);
    stet_free(c->work);
    stet_share_close(c->places);
}

/* False: the request makes no sense. */
static bool take_request(stet_wire *w, request *r) {
    *r = (request){.number = stet_wire_take_int(w)};
    r->key = stet_wire_take_text(w);
    r->node = stet_wire_take_text(w);
    r->cwd = stet_wire_take_text(w);
    r->turn = stet_wire_take_text(w);
    r->top = stet_wire_take_text(w);
    r->work = stet_wire_take_text(w);
    r->has_input = stet_wire_take_int(w);
    r->timeout = stet_wire_take_int(w);
    r->memory = stet_wire_take_int(w);
    r->cpu = stet_wire_take_int(w);
    r->file = stet_wire_take_int(w);
    for (int k = 0; k < 7; k++) {
        r->at[k] = r->words.len;
        for (int64_t n = stet_wire_take_int(w); n > 0 && !w->bad; n--)
            *stet_vec_add(&r->words) = stet_wire_take_text(w);
        *stet_vec_add(&r->words) = NULL;
    }
    if (w->bad)
        stet_vec_release(&r->words);
    return !w->bad;
}

/* A message as the rest of a line. */
static void end_line(stet_buf *line, const char *message) {
    size_t from = line->len;
    stet_buf_str(line, message);
    for (size_t i = from; i < line->len; i++)
        line->data[i] = line->data[i] == '\n' ? ' ' : line->data[i];
    stet_buf_str(line, "\n");
}

/* It will not be started. `err` is taken over. */
static void refuse(supervisor *s, int64_t number, bool cancelled, stet_error *err) {
    stet_buf line = STET_BUF(0);
    if (cancelled)
        stet_buf_printf(&line, "K %lld\n", (long long)number);
    stet_buf_printf(&line, "F %lld %d %lld ", (long long)number, (int)err->status, (long long)stet_clock_ns());
    end_line(&line, err->message);
    say(s, line.data);
    stet_buf_release(&line);
    stet_error_clear(err);
}

/* Records the request, in its turn. False: it was refused. */
static bool begin(supervisor *s, const request *r) {
    stet_buf line = STET_BUF(0);
    stet_error err = STET_ERROR_INIT;
    bool ours = begin_turn(s, r->turn), known = false;
    if (ours) {
        stet_buf_printf(&line, "B %lld %s %lld %s\n", (long long)r->number, r->key, (long long)stet_clock_ns(),
                        r->node);
        size_t first = line.len;
        for (size_t i = r->at[2]; r->words.at[i]; i++) {
            stet_buf_printf(&line, "O %lld ", (long long)r->number);
            add_path(&line, r->words.at[i]);
            stet_buf_add(&line, "\n", 1);
        }
        for (size_t i = r->at[3]; r->words.at[i]; i++)
            stet_buf_printf(&line, "N %lld %s\n", (long long)r->number, r->words.at[i]);
        known = record(s, stet_buf_cstr(&line));
        if (!known)
            stet_fail_errno(&err, errno, "cannot write to the journal in %s", s->dir);
        tell(s, line.data, first); /* the client knows the rest, and may still be sending: it must not have to listen */
    } else
        stet_fail(&err, STET_CANCELLED, "somebody else runs commands now");
    end_turn(s);
    stet_buf_release(&line);
    if (!ours || !known)
        refuse(s, r->number, !ours, &err);
    return ours && known;
}

/* Starts what was begun. `places` is taken over. */
static void launch(supervisor *s, const request *r, stet_share_set *places) {
    stet_error err = STET_ERROR_INIT;
    child c = {.number = r->number, .work = *r->work ? stet_strdup(r->work) : NULL, .places = places};
    int in = r->has_input ? stream(s, r->number, "in", O_RDONLY) : -1;
    int out = stream(s, r->number, "out", O_WRONLY | O_CREAT | O_TRUNC),
        errors = stream(s, r->number, "err", O_WRONLY | O_CREAT | O_TRUNC);
    int progress = stream(s, r->number, "progress", O_WRONLY | O_APPEND); /* only if its client has made it */
    stet_status status = STET_OK;
    if (out < 0 || errors < 0 || (r->has_input && in < 0))
        status = stet_fail_errno(&err, errno, "cannot open its standard streams in %s", s->dir);
    char announce[64];
    snprintf(announce, sizeof announce, "S %lld %llu ", (long long)r->number,
             (unsigned long long)stet_proc_self().boot);
    stet_proc_opts o = {.argv = r->words.at,
                        .envp = r->words.at + r->at[1],
                        .cwd = r->cwd,
                        .stdin_fd = in,
                        .stdout_fd = out,
                        .stderr_fd = errors,
                        .extra_fd = progress > 0 ? progress : 0,
                        .new_session = true,
                        .max_memory = (uint64_t)r->memory,
                        .max_cpu_s = (uint64_t)r->cpu,
                        .max_file_size = (uint64_t)r->file,
                        .announce = announce,
                        .announce_fd = s->journal};
    if (status == STET_OK) {
        watch(&c, r);
        for (size_t i = r->at[4]; r->words.at[i]; i++)
            *stet_vec_add(&c.collect) = stet_file_join(r->cwd, r->words.at[i]);
        status = stet_proc_spawn(&o, &c.proc, &err);
    }
    if (status == STET_OK) {
        if (r->timeout > 0)
            c.deadline_us = stet_clock_monotonic_us() + r->timeout * 1000;
        *stet_vec_add(&s->children) = c;
    } else {
        child_release(&c);
        refuse(s, r->number, false, &err);
    }
    const int fds[] = {in, out, errors, progress};
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static void start(supervisor *s, stet_wire *w) {
    size_t from = w->at;
    request r;
    if (!take_request(w, &r))
        return;
    stet_error err = STET_ERROR_INIT;
    stet_share_set *places = NULL;
    const char *const *shares = r.words.at + r.at[6];
    if (begin(s, &r)) {
        if (!*shares)
            launch(s, &r, NULL);
        else if (stet_share_open(shares, &places, &err) != STET_OK)
            refuse(s, r.number, false, &err);
        else {
            waiter *next = stet_vec_add(&s->waiting);
            *next = (waiter){.number = r.number, .len = w->len - from, .places = places, .pause_us = PLACES_FIRST_US};
            next->bytes = stet_alloc(next->len);
            memcpy(next->bytes, w->bytes + from, next->len);
        }
    }
    stet_vec_release(&r.words);
}

static void drop_waiter(supervisor *s, size_t i) {
    stet_free(s->waiting.at[i].bytes);
    s->waiting.at[i] = s->waiting.at[--s->waiting.len];
}

/* Has another client written that it gave the command up? It can't signal what has not been started. */
static bool given_up(const supervisor *s, int64_t number) {
    char *journal = stet_file_join(s->dir, "journal"), line[32];
    stet_buf b = STET_BUF(0);
    snprintf(line, sizeof line, "\nK %lld\n", (long long)number);
    bool found = stet_file_read(journal, 0, &b, NULL) == STET_OK && strstr(stet_buf_cstr(&b), line) != NULL;
    stet_buf_release(&b);
    stet_free(journal);
    return found;
}

/* Starts every command that can have its places. */
static void try_places(supervisor *s) {
    int64_t now = stet_clock_monotonic_us();
    for (size_t i = s->waiting.len; i-- > 0;) {
        waiter *n = &s->waiting.at[i];
        stet_error err = STET_ERROR_INIT;
        if (now < n->next_us)
            continue;
        stet_status status = stet_share_take(n->places, &err);
        if (status == STET_BUSY) {
            stet_error_clear(&err);
            n->next_us = now + n->pause_us;
            n->pause_us = n->pause_us * 3 / 2 < PLACES_MOST_US ? n->pause_us * 3 / 2 : PLACES_MOST_US;
            continue;
        }
        stet_wire w = {n->bytes, n->len, 0, false};
        request r;
        bool whole = take_request(&w, &r), gone = given_up(s, n->number);
        if (status == STET_OK && (gone || !whole))
            status = stet_fail(&err, STET_CANCELLED, "it was cancelled before it was started");
        if (status == STET_OK)
            launch(s, &r, n->places);
        else {
            stet_share_close(n->places);
            refuse(s, n->number, gone, &err);
        }
        if (whole)
            stet_vec_release(&r.words);
        drop_waiter(s, i);
    }
}

/* Copies the i-th file to where its client finds it. */
static stet_status collect_one(const supervisor *s, const child *c, size_t i, int64_t *size, stet_error *err) {
    const char *from = c->collect.at[i];
    struct stat st;
    int fd = stet_sys_open(from, O_RDONLY | O_NONBLOCK, 0);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO))
        return stet_fail(err, STET_NOT_FOUND, "exited 0 without creating it");
    if (fd < 0 && errno == EACCES)
        return stet_fail(err, STET_INVALID, "it can't be read");
    if (fd < 0)
        return stet_fail_errno(err, errno, "cannot open it");
    stet_status status = stet_sys_fstat(fd, &st) != 0 ? stet_fail_errno(err, errno, "cannot look at it")
                         : !S_ISREG(st.st_mode)       ? stet_fail(err, STET_INVALID, "not a regular file")
                                                      : STET_OK;
    char *to = stet_local_file_path(s->dir, c->number, i);
    if (status == STET_OK)
        status = stet_file_copy_open(fd, from, to, 0600, err);
    if (status == STET_OK && stet_sys_stat(to, &st) == 0)
        *size = (int64_t)st.st_size;
    stet_free(to);
    stet_sys_close(fd);
    return status;
}

static int64_t stream_size(supervisor *s, int64_t number, const char *suffix) {
    struct stat st;
    int fd = stream(s, number, suffix, O_RDONLY);
    int64_t size = fd >= 0 && stet_sys_fstat(fd, &st) == 0 ? (int64_t)st.st_size : -1;
    if (fd >= 0)
        close(fd);
    return size;
}

/* 4. */
static void collect(supervisor *s, child *c) {
    stet_buf line = STET_BUF(0);
    bool fine = !c->exit.signalled && c->exit.code == 0 && !c->timed_out;
    for (size_t i = 0; i < c->collect.len && fine; i++) {
        stet_error err = STET_ERROR_INIT;
        int64_t size = 0;
        if (collect_one(s, c, i, &size, &err) == STET_OK)
            stet_buf_printf(&line, "P %lld %zu %lld\n", (long long)c->number, i, (long long)size);
        else {
            stet_buf_printf(&line, "M %lld %zu %d ", (long long)c->number, i, (int)err.status);
            end_line(&line, err.message);
        }
        stet_error_clear(&err);
    }
    stet_buf_printf(&line, "L %lld %lld %lld\n", (long long)c->number, (long long)stream_size(s, c->number, "out"),
                    (long long)stream_size(s, c->number, "err"));
    say(s, stet_buf_cstr(&line));
    stet_buf_release(&line);
    if (c->work)
        stet_local_remove_work(c->work);
}

static size_t signal_all(const supervisor *s, const child *c, int signal_number) {
    bool sure = true; /* nobody else has waited for it: its number is its own, or was a moment ago */
    return stet_local_signal(s->dir, c->number, c->proc.id, &sure, signal_number);
}

static void stop(const supervisor *s, child *c, int64_t grace_us) {
    if (c->kill_us)
        return;
    if (grace_us > 0)
        signal_all(s, c, SIGTERM);
    c->kill_us = stet_clock_monotonic_us() + grace_us;
}

static void cancel(supervisor *s, stet_wire *w) {
    int64_t number = stet_wire_take_int(w), grace = stet_wire_take_int(w);
    for (size_t i = 0; i < s->children.len && !w->bad; i++)
        if (number < 0 || s->children.at[i].number == number) {
            char line[32];
            snprintf(line, sizeof line, "K %lld\n", (long long)s->children.at[i].number);
            say(s, line); /* before its end: whoever finds that must know why */
            stop(s, &s->children.at[i], grace * 1000);
        }
    for (size_t i = s->waiting.len; i-- > 0 && !w->bad;)
        if (number < 0 || s->waiting.at[i].number == number) {
            stet_error err = STET_ERROR_INIT;
            stet_fail(&err, STET_CANCELLED, "it was cancelled before it was started");
            stet_share_close(s->waiting.at[i].places);
            refuse(s, s->waiting.at[i].number, true, &err);
            drop_waiter(s, i);
        }
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

/* Has it ended, and all that has to end with it? */
static bool is_over(const supervisor *s, child *c, int64_t now) {
    if (!c->over && stet_proc_wait(&c->proc, 0, &c->exit, NULL) == STET_OK) {
        c->over = true;
        c->ended_ns = stet_clock_ns();
        if (!c->kill_us && !c->exit.signalled && c->exit.code == 0)
            return true;
    }
    if (!c->over && c->deadline_us && now >= c->deadline_us) {
        c->deadline_us = 0;
        c->timed_out = true;
        stop(s, c, 2000000);
    }
    if (c->over)
        return signal_all(s, c, SIGKILL) == 0;
    if (c->kill_us && now >= c->kill_us && !c->killed) {
        signal_all(s, c, SIGKILL);
        c->killed = true;
    }
    return false;
}

static void reap(supervisor *s) {
    int64_t now = stet_clock_monotonic_us();
    for (size_t i = 0; i < s->children.len;) {
        child *c = &s->children.at[i];
        if (!is_over(s, c, now)) {
            i++;
            continue;
        }
        char line[128];
        hear(c);
        for (int k = 0; k < 2; k++) {
            if (!(k ? c->moved : c->removed))
                continue;
            snprintf(line, sizeof line, "%s %lld\n", k ? "V" : "D", (long long)c->number);
            say(s, line);
        }
        collect(s, c);
        child_release(c);
        snprintf(line, sizeof line, "E %lld %d %d %d %lld\n", (long long)c->number, c->exit.code, c->exit.signalled,
                 c->timed_out, (long long)c->ended_ns);
        say(s, line);
        s->children.at[i] = s->children.at[--s->children.len];
    }
}

/* Milliseconds until a deadline; -1: none. */
static int patience(const supervisor *s) {
    int64_t now = stet_clock_monotonic_us(), next = 0;
    for (size_t i = 0; i < s->waiting.len; i++)
        if (!next || s->waiting.at[i].next_us < next)
            next = s->waiting.at[i].next_us > 0 ? s->waiting.at[i].next_us : now;
    for (size_t i = 0; i < s->children.len; i++) {
        const child *c = &s->children.at[i];
        int64_t at = c->kill_us && !c->killed ? c->kill_us : c->deadline_us;
        if (c->proc.pidfd < 0) /* also one that is over, while others of its family end */
            at = now + (c->over ? 2000 : 10000);
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
                stet_lock_take(lock, STET_LOCK_EXCLUSIVE, ALIVE_MS, NULL) == STET_OK;
    if (fine)
        say(&s, "R\n"); /* ready */
    while (fine && (s.client >= 0 || s.children.len > 0 || s.waiting.len > 0)) {
        stet_vec_clear(&s.polls);
        *stet_vec_add(&s.polls) = (struct pollfd){s.client, POLLIN, 0};
        for (size_t i = 0; i < s.children.len; i++)
            if (s.children.at[i].proc.pidfd >= 0)
                *stet_vec_add(&s.polls) = (struct pollfd){s.children.at[i].proc.pidfd, POLLIN, 0};
        if (poll(s.polls.at, s.polls.len, patience(&s)) < 0 && errno != EINTR)
            break;
        if (s.client >= 0 && s.polls.at[0].revents)
            read_client(&s);
        try_places(&s);
        reap(&s);
    }
    stet_lock_close(lock);
    stet_lock_close(s.turns);
    stet_free(journal);
    stet_free(alive);
    stet_buf_release(&s.in);
    stet_vec_release(&s.children);
    stet_vec_release(&s.waiting);
    stet_vec_release(&s.polls);
    return fine ? 0 : 1;
}
