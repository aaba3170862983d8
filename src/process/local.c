/* local.c - the client of a supervisor: starts it, sends it commands and reads its journal. */

#include "process/local.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/vec.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/plugin.h"
#include "process/own.h"
#include "process/wire.h"

#define KEEP_MS     ((int64_t)7 * 24 * 3600 * 1000)
#define JOURNAL_MAX ((size_t)1 << 30)
#define TURN_MS     10000 /* that lock is held for moments */

typedef struct drive {
    char *dir;
    char *jobs; /* where its commands have directories of their own; NULL: not looked up, or nowhere */
    bool own;
    bool dead;      /* its supervisor is gone */
    size_t read;    /* bytes of the journal that were taken in */
    size_t pending; /* tasks not collected */
} drive;

typedef struct collected {
    bool there;
    stet_status status;
    char *message;
} collected;

struct stet_task {
    drive *d;
    int64_t number;
    stet_hash key;
    char *node;
    STET_VEC(char *) outputs; /* as they stand in the journal: "%0A" for a newline */
    STET_VEC(char *) notes;
    STET_VEC(collected) files;
    stet_proc_id proc;
    bool begun, started, collected, told;
    bool sure;       /* the session of `proc` is its own (os/proc.h) */
    int kill_with;   /* it is to be ended with this signal as soon as it is known who it is; 0: not */
    int64_t kill_us; /* and with SIGKILL then; monotonic; 0: not */
    stet_task_end end;
    char *message;
    void *data;
};

struct stet_local {
    char *dir;
    int fd;
    stet_buf in;
    STET_VEC(drive *) drives; /* our own, if any, is the last */
    STET_VEC(stet_task *) tasks;
    drive *own;
    int64_t next_number;
    size_t running;
    bool heard; /* ends of commands came while a request was sent */
    int64_t looked_us;
    char turn[STET_TURN_SIZE]; /* "" before the first */
};

static stet_task *task_of(stet_local *l, drive *d, int64_t number) {
    for (size_t i = l->tasks.len; i-- > 0;)
        if (l->tasks.at[i]->d == d && l->tasks.at[i]->number == number)
            return l->tasks.at[i];
    return NULL;
}

static void notes_clear(stet_task *t) {
    for (size_t i = 0; i < t->notes.len; i++)
        stet_free(t->notes.at[i]);
    stet_vec_clear(&t->notes);
}

static void task_free(stet_task *t) {
    for (size_t i = 0; i < t->outputs.len; i++)
        stet_free(t->outputs.at[i]);
    stet_vec_release(&t->outputs);
    notes_clear(t);
    stet_vec_release(&t->notes);
    for (size_t i = 0; i < t->files.len; i++)
        stet_free(t->files.at[i].message);
    stet_vec_release(&t->files);
    stet_free(t->node);
    stet_free(t->message);
    stet_free(t);
}

static void take_end(stet_local *l, stet_task *t, stet_task_state state) {
    if (t->end.state != STET_TASK_RUNNING)
        return;
    t->end.state = state;
    if (t->d->own)
        l->running--;
}

static void forget(stet_local *l, stet_task *t) {
    t->d->pending--;
    for (size_t i = 0; i < l->tasks.len; i++)
        if (l->tasks.at[i] == t) {
            l->tasks.at[i] = l->tasks.at[--l->tasks.len];
            break;
        }
    task_free(t);
}

/* One line without its newline. Lines that make no sense are passed over: a torn one is the last. */
static void take_line(stet_local *l, drive *d, const char *line, size_t len) {
    char text[8192], key[80] = "";
    long long number, time, size, error_size;
    unsigned long long boot;
    size_t index;
    int code, signalled, timed_out, at = 0;
    if (len >= sizeof text)
        len = sizeof text - 1;
    memcpy(text, line, len);
    text[len] = 0;
    stet_hash hash;
    if (sscanf(text, "B %lld %64s %lld %n", &number, key, &time, &at) == 3 && at > 0 &&
        stet_hash_of_hex(key, strlen(key), &hash)) {
        stet_task *known = task_of(l, d, number);
        if (known) { /* our own, made when it was asked for */
            known->end.started_ns = time;
            known->begun = true;
            return;
        }
        stet_task *t = stet_alloc_zero(sizeof *t);
        *t = (stet_task){.d = d, .number = number, .key = hash, .node = stet_strdup(text + at)};
        t->end.started_ns = time;
        t->end.out_size = t->end.err_size = -1;
        *stet_vec_add(&l->tasks) = t;
        d->pending++;
    } else if (sscanf(text, "O %lld %n", &number, &at) == 1 && at > 0) {
        stet_task *t = task_of(l, d, number);
        if (t && !d->own) /* who asked for it knows what it writes */
            *stet_vec_add(&t->outputs) = stet_strdup(text + at);
    } else if (sscanf(text, "N %lld %n", &number, &at) == 1 && at > 0) {
        stet_task *t = task_of(l, d, number);
        if (t && !d->own) /* who asked for it knows what it said */
            *stet_vec_add(&t->notes) = stet_strdup(text + at);
    } else if (sscanf(text, "S %lld %llu %n", &number, &boot, &at) == 2 && at > 0) {
        stet_task *t = task_of(l, d, number);
        if (t)
            t->started = stet_proc_announced(text + at, boot, &t->proc);
    } else if (sscanf(text, "E %lld %d %d %d %lld", &number, &code, &signalled, &timed_out, &time) == 5) {
        stet_task *t = task_of(l, d, number);
        if (t && t->end.state == STET_TASK_RUNNING) {
            t->end.exit = (stet_proc_exit){signalled != 0, code};
            t->end.timed_out = timed_out != 0;
            t->end.ended_ns = time;
            take_end(l, t, STET_TASK_ENDED);
        }
    } else if (sscanf(text, "F %lld %d %lld %n", &number, &code, &time, &at) == 3 && at > 0) {
        stet_task *t = task_of(l, d, number);
        if (t && t->end.state == STET_TASK_RUNNING) {
            t->end.status = (stet_status)code;
            t->end.ended_ns = time;
            t->message = stet_strdup(text + at);
            t->end.message = t->message;
            take_end(l, t, STET_TASK_REFUSED);
        }
    } else if (sscanf(text, "P %lld %zu %lld", &number, &index, &size) == 3) {
        stet_task *t = task_of(l, d, number);
        if (t && index == t->files.len)
            *stet_vec_add(&t->files) = (collected){.there = true};
    } else if (sscanf(text, "M %lld %zu %d %n", &number, &index, &code, &at) == 3 && at > 0) {
        stet_task *t = task_of(l, d, number);
        if (t && index == t->files.len)
            *stet_vec_add(&t->files) = (collected){.status = (stet_status)code, .message = stet_strdup(text + at)};
    } else if (sscanf(text, "L %lld %lld %lld", &number, &size, &error_size) == 3) {
        stet_task *t = task_of(l, d, number);
        if (t) {
            t->end.out_size = size;
            t->end.err_size = error_size;
        }
    } else if (sscanf(text, "D %lld", &number) == 1) {
        stet_task *t = task_of(l, d, number);
        if (t)
            t->end.removed = true;
    } else if (sscanf(text, "V %lld", &number) == 1) {
        stet_task *t = task_of(l, d, number);
        if (t)
            t->end.moved = true;
    } else if (sscanf(text, "K %lld", &number) == 1) {
        stet_task *t = task_of(l, d, number);
        if (t)
            t->end.cancelled = true;
    } else if (sscanf(text, "C %lld", &number) == 1) {
        stet_task *t = task_of(l, d, number);
        if (t && t->end.state != STET_TASK_RUNNING) {
            t->collected = true;
            if (!t->data)
                forget(l, t);
        }
    }
}

/* Takes in whole lines from `at` on; the place after the last one. */
static size_t take_lines(stet_local *l, drive *d, const char *bytes, size_t len) {
    size_t at = 0;
    const char *end;
    while (at < len && (end = memchr(bytes + at, '\n', len - at)) != NULL) {
        take_line(l, d, bytes + at, (size_t)(end - bytes) - at);
        at = (size_t)(end - bytes) + 1;
    }
    return at;
}

static bool supervisor_lives(const drive *d) {
    char *alive = stet_file_join(d->dir, "alive");
    stet_lock *lock = NULL;
    bool lives = false;
    if (stet_file_exists(alive) && stet_lock_open(alive, STET_LOCK_PLAIN, &lock, NULL) == STET_OK)
        lives = stet_lock_take(lock, STET_LOCK_SHARED, 0, NULL) == STET_BUSY;
    stet_lock_close(lock);
    stet_free(alive);
    return lives;
}

size_t stet_local_signal(const char *dir, int64_t number, stet_proc_id command, bool *sure, int signal_number) {
    char name[32], *real = NULL;
    snprintf(name, sizeof name, "%lld.", (long long)number);
    if (stet_file_realpath(dir, &real, NULL) != STET_OK) /* that is how the kernel names its streams */
        real = stet_strdup(dir);
    char *held = stet_file_join(real, name);
    size_t n = stet_proc_end_family(command, held, sure, signal_number);
    stet_free(held);
    stet_free(real);
    return n;
}

static size_t signal_all(stet_task *t, int signal_number) {
    stet_proc_id unknown = {0};
    return stet_local_signal(t->d->dir, t->number, t->started ? t->proc : unknown, &t->sure, signal_number);
}

/* Ends what a supervisor that was killed left running: nobody would hear of its end. False: some of it is still there.
 */
static bool end_orphans(stet_local *l, drive *d) {
    bool all = true;
    for (size_t i = 0; i < l->tasks.len; i++) {
        stet_task *t = l->tasks.at[i];
        if (t->d != d || t->end.state != STET_TASK_RUNNING)
            continue;
        if (signal_all(t, SIGKILL) == 0) {
            take_end(l, t, STET_TASK_LOST);
        } else {
            t->end.cancelled = true; /* nobody goes on with it */
            all = false;
        }
    }
    return all;
}

/* Takes in what is new in the journal of an earlier drive. */
static void follow(stet_local *l, drive *d) {
    if (d->dead)
        return;
    bool lives;
    size_t before;
    char *journal = stet_file_join(d->dir, "journal");
    do { /* asked first: what it wrote before it went is read after; one that writes since was only about to begin */
        before = d->read;
        lives = supervisor_lives(d);
        stet_buf b = STET_BUF(JOURNAL_MAX);
        if (stet_file_read(journal, JOURNAL_MAX, &b, NULL) == STET_OK && b.len > d->read)
            d->read += take_lines(l, d, b.data + d->read, b.len - d->read);
        stet_buf_release(&b);
    } while (!lives && d->read > before);
    stet_free(journal);
    for (size_t i = 0; i < l->tasks.len && lives; i++) {
        stet_task *t = l->tasks.at[i];
        if (t->d != d || !t->started || t->end.state != STET_TASK_RUNNING)
            continue;
        if (t->kill_us && stet_clock_monotonic_us() >= t->kill_us) {
            t->kill_with = SIGKILL;
            t->kill_us = 0;
        }
        if (t->kill_with)
            signal_all(t, t->kill_with); /* its own supervisor sees to the rest */
        t->kill_with = 0;
    }
    if (lives)
        return;
    bool all = end_orphans(l, d); /* mostly at once; what takes longer is looked at again */
    for (int ms = 1; !all && ms < 200; ms *= 2) {
        stet_clock_sleep_ms(ms);
        all = end_orphans(l, d);
    }
    d->dead = all;
}

static void drive_free(drive *d) {
    stet_free(d->dir);
    stet_free(d->jobs);
    stet_free(d);
}

/* Its directories of commands go first: its own says where they are. */
static stet_status drive_remove(drive *d, stet_error *err) {
    const char *jobs = stet_jobs_of(d->dir, &d->jobs);
    stet_status status = jobs ? stet_file_remove_tree(jobs, err) : STET_OK;
    return status == STET_OK ? stet_file_remove_tree(d->dir, err) : status;
}

static bool is_known(const stet_local *l, const char *name) {
    for (size_t i = 0; i < l->drives.len; i++)
        if (strcmp(stet_file_basename(l->drives.at[i]->dir), name) == 0)
            return true;
    return false;
}

/* Takes in a drive that was not known, or sweeps it if nothing of it is wanted any more. */
static stet_status take_drive(stet_local *l, const char *name, stet_error *err) {
    drive *d = stet_alloc_zero(sizeof *d);
    struct stat st;
    d->dir = stet_file_join(l->dir, name);
    follow(l, d);
    bool old = stet_sys_stat(d->dir, &st) == 0 && stet_clock_ms() - (int64_t)st.st_mtime * 1000 > KEEP_MS;
    for (size_t i = 0; i < l->tasks.len && old; i++)
        old = l->tasks.at[i]->d != d || l->tasks.at[i]->outputs.len == 0;
    if (!d->dead || (d->pending > 0 && !old)) {
        *stet_vec_add(&l->drives) = d;
        return STET_OK;
    }
    for (size_t k = l->tasks.len; k-- > 0;)
        if (l->tasks.at[k]->d == d) {
            task_free(l->tasks.at[k]);
            l->tasks.at[k] = l->tasks.at[--l->tasks.len];
        }
    /* A drive that is just being made has no journal yet: only old ones are swept without one. */
    stet_status status = old || d->read > 0 ? drive_remove(d, err) : STET_OK;
    drive_free(d);
    return status;
}

stet_status stet_local_turns_open(const char *dir, stet_lock **out, stet_error *err) {
    char *path = stet_file_join(dir, "turns");
    stet_status status = stet_lock_open(path, STET_LOCK_PLAIN, out, err);
    stet_free(path);
    return status;
}

void stet_local_turn_read(const char *dir, char out[STET_TURN_SIZE]) {
    char *path = stet_file_join(dir, "turn");
    stet_buf b = STET_BUF(STET_TURN_SIZE);
    out[0] = 0;
    if (stet_file_read(path, STET_TURN_SIZE, &b, NULL) == STET_OK && b.len == STET_TURN_SIZE - 1) {
        memcpy(out, b.data, b.len);
        out[b.len] = 0;
    }
    stet_buf_release(&b);
    stet_free(path);
}

/* A random number and not the next one: whatever is left of a turn that was half written is nobody's. */
stet_status stet_local_turn(stet_local *l, stet_error *err) {
    unsigned char random[(STET_TURN_SIZE - 1) / 2];
    stet_lock *lock = NULL;
    stet_random(random, sizeof random);
    stet_hex_encode(random, sizeof random, l->turn);
    l->turn[STET_TURN_SIZE - 1] = 0;
    char *path = stet_file_join(l->dir, "turn");
    stet_status status = stet_local_turns_open(l->dir, &lock, err);
    if (status == STET_OK)
        status = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, TURN_MS, err);
    int fd = -1;
    if (status == STET_OK && (fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644)) < 0)
        status = stet_fail_errno(err, errno, "cannot write %s", path);
    if (status == STET_OK)
        status = stet_file_write_all(fd, path, l->turn, STET_TURN_SIZE - 1, err);
    if (fd >= 0)
        stet_sys_close(fd);
    stet_lock_close(lock);
    stet_free(path);
    return status;
}

stet_status stet_local_look(stet_local *l, stet_error *err) {
    stet_names names = {0};
    stet_error inner = STET_ERROR_INIT;
    for (size_t i = 0; i < l->drives.len; i++)
        if (!l->drives.at[i]->own)
            follow(l, l->drives.at[i]);
    stet_status status = stet_file_list(l->dir, &names, &inner);
    if (status == STET_NOT_FOUND) {
        status = STET_OK;
        stet_error_clear(&inner);
    }
    for (size_t i = 0; i < names.len && status == STET_OK; i++)
        if (strncmp(names.at[i], "drive.", 6) == 0 && !is_known(l, names.at[i]))
            status = take_drive(l, names.at[i], &inner);
    stet_names_release(&names);
    stet_error_move(err, &inner);
    return status;
}

stet_status stet_local_open(const char *dir, stet_local **out, stet_error *err) {
    stet_local *l = stet_alloc_zero(sizeof *l);
    l->dir = stet_strdup(dir);
    l->fd = -1;
    l->in = (stet_buf)STET_BUF(0);
    stet_status status = stet_local_look(l, err);
    if (status != STET_OK) {
        stet_local_close(l);
        return status;
    }
    *out = l;
    return STET_OK;
}

void stet_local_close(stet_local *l) {
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    for (size_t i = 0; i < l->tasks.len; i++)
        task_free(l->tasks.at[i]);
    for (size_t i = 0; i < l->drives.len; i++) {
        /* Nothing of it is wanted any more: a drive that ended well leaves nothing behind. */
        if (l->drives.at[i]->pending == 0 && (l->drives.at[i]->own || l->drives.at[i]->dead) &&
            drive_remove(l->drives.at[i], NULL) != STET_OK) {
            /* the next open sweeps it */
        }
        drive_free(l->drives.at[i]);
    }
    stet_vec_release(&l->tasks);
    stet_vec_release(&l->drives);
    stet_buf_release(&l->in);
    stet_free(l->dir);
    stet_free(l);
}

char *stet_supervisor_path(void) {
    const char *given = getenv("STET_SUPERVISE");
    if (given && *given)
        return stet_strdup(given);
    /* Beside the program; from libstet.so; from the Python module, as built and as installed. */
    static const char *const places[] = {".", "../bin", "../..", "../../../../bin", NULL};
    char *beside = stet_installed(places, "stet-supervise");
    if (beside)
        return beside;
    if (access(STET_PREFIX "/bin/stet-supervise", X_OK) == 0)
        return stet_strdup(STET_PREFIX "/bin/stet-supervise");
    return stet_strdup("stet-supervise"); /* PATH, or the message of spawn */
}

static stet_status start_supervisor(stet_local *l, stet_error *err) {
    drive *d = stet_alloc_zero(sizeof *d);
    int pair[2] = {-1, -1};
    d->own = true;
    d->dir = stet_file_temp_name(l->dir, "drive");
    stet_status status = stet_file_mkdirs(d->dir, 0700, err);
    if (status == STET_OK && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        status = stet_fail_errno(err, errno, "cannot talk to a supervisor");
    char *program = stet_supervisor_path();
    const char *argv[] = {program, d->dir, NULL};
    stet_proc_opts o = {.argv = argv, .stdin_fd = pair[1], .stdout_fd = -1, .stderr_fd = -1, .new_session = true};
    stet_proc p;
    if (status == STET_OK) {
        status = stet_proc_spawn(&o, &p, err);
        if (status != STET_OK)
            stet_hint(err, "set STET_SUPERVISE to the program stet-supervise");
        else if (p.pidfd >= 0)
            close(p.pidfd);
    }
    stet_free(program);
    if (pair[1] >= 0)
        close(pair[1]);
    /* It says "R" when it holds its lock and its journal: then whoever looks finds it alive. */
    for (char c = 0; status == STET_OK && c != '\n';) {
        ssize_t n = recv(pair[0], &c, 1, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            status = stet_fail(err, STET_IO, "the supervisor of commands did not start in %s", d->dir);
    }
    if (status != STET_OK) {
        if (pair[0] >= 0)
            close(pair[0]);
        drive_free(d);
        return status;
    }
    l->fd = pair[0];
    l->own = d;
    *stet_vec_add(&l->drives) = d;
    return STET_OK;
}

/* Takes in what the supervisor has said, as much as has come. False: it is gone. */
static bool receive(stet_local *l) {
    for (;;) {
        char *room = stet_buf_reserve(&l->in, 65536);
        ssize_t n = recv(l->fd, room, 65536, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        l->in.len += (size_t)n;
        size_t used = take_lines(l, l->own, l->in.data, l->in.len);
        memmove(l->in.data, l->in.data + used, l->in.len - used);
        l->in.len -= used;
    }
}

/* Sends a request of any size. The supervisor may be talking meanwhile, and reads on only when it was heard. */
static stet_status send_all(stet_local *l, const stet_buf *b, stet_error *err) {
    if (b->overflow)
        return stet_fail(err, STET_LIMIT, "a command with more than %zu bytes of arguments and environment",
                         STET_WIRE_MAX);
    uint32_t len = (uint32_t)(b->len - 4);
    memcpy(b->data, &len, 4);
    for (size_t sent = 0; sent < b->len;) {
        ssize_t n = send(l->fd, b->data + sent, b->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += n > 0 ? (size_t)n : 0;
        if (n >= 0 || errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            return stet_fail_errno(err, errno, "cannot talk to the supervisor of commands");
        struct pollfd ready = {.fd = l->fd, .events = POLLIN | POLLOUT};
        if (poll(&ready, 1, -1) < 0 && errno != EINTR)
            return stet_fail_errno(err, errno, "cannot wait for the supervisor of commands");
        if (ready.revents & POLLIN) {
            l->heard = true;
            if (!receive(l))
                return stet_fail(err, STET_IO, "the supervisor of commands has gone away");
        }
    }
    return STET_OK;
}

char *stet_local_file_path(const char *drive_dir, int64_t number, size_t i) {
    return stet_asprintf("%s/%lld.f%zu", drive_dir, (long long)number, i);
}

/* Its commands are lost, or go on without it: what its journal says is read as that of an earlier drive. */
static void drop_supervisor(stet_local *l) {
    close(l->fd);
    l->fd = -1;
    for (size_t i = 0; i < l->tasks.len; i++)
        if (l->tasks.at[i]->d == l->own)
            notes_clear(l->tasks.at[i]);
    l->own->own = false;
    l->own->read = 0;
    l->running = 0;
    l->own = NULL;
    stet_buf_clear(&l->in); /* half a line */
    l->heard = true;        /* its journal may tell of ends */
}

/* The streams of a command under other names, too. What can't be kept is not: the command runs all the same. */
static void keep_streams(const stet_local *l, int64_t number, const char *keep) {
    static const char *const suffixes[] = {"out", "err", "progress"};
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "%lld.%s", (long long)number, suffixes[i]);
        char *path = stet_file_join(l->own->dir, name), *other = stet_asprintf("%s.%s", keep, suffixes[i]);
        int fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        if (fd >= 0)
            stet_sys_close(fd);
        bool there = stet_sys_unlink(other) != 0 && errno != ENOENT;
        if (fd >= 0 && !there && stet_sys_link(path, other) != 0) {
            /* another file system, or one without links */
        }
        stet_free(path);
        stet_free(other);
    }
}

static void add_shares(stet_buf *b, const stet_local_request *r) {
    stet_wire_int(b, (int64_t)(3 * r->share_count));
    for (size_t i = 0; i < r->share_count; i++) {
        const stet_local_share *s = &r->shares[i];
        char total[24], wanted[24];
        snprintf(total, sizeof total, "%lld", (long long)s->total);
        snprintf(wanted, sizeof wanted, "%lld", (long long)s->wanted);
        stet_wire_bytes(b, s->path, strlen(s->path) + 1);
        stet_wire_bytes(b, total, strlen(total) + 1);
        stet_wire_bytes(b, wanted, strlen(wanted) + 1);
    }
}

/* `*gone`: the supervisor died before it had all of the request, and nothing was started. */
static stet_status start_once(stet_local *l, const stet_local_request *r, stet_task **out, bool *gone,
                              stet_error *err) {
    stet_status status = l->fd < 0 ? start_supervisor(l, err) : STET_OK;
    *gone = false;
    if (status != STET_OK)
        return status;
    int64_t number = ++l->next_number;
    if (r->input) {
        char name[32];
        snprintf(name, sizeof name, "%lld.in", (long long)number);
        char *path = stet_file_join(l->own->dir, name);
        int fd = stet_sys_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0)
            status = stet_fail_errno(err, errno, "cannot write %s", path);
        else
            status = stet_file_write_all(fd, path, r->input, r->input_len, err);
        if (fd >= 0)
            stet_sys_close(fd);
        stet_free(path);
        if (status != STET_OK)
            return status;
    }
    if (r->keep)
        keep_streams(l, number, r->keep);
    stet_own own = {0};
    if (r->own_dir)
        status = stet_own_make(l->own->dir, number, r, &l->own->jobs, &own, err);
    if (status != STET_OK) {
        stet_own_release(&own);
        return status;
    }
    char hex[STET_HASH_HEX];
    stet_hash_hex(r->key, hex);
    /* Names go into lines. */
    char *node = stet_strdup(r->node);
    for (char *p = node; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    stet_buf b = STET_BUF(STET_WIRE_MAX);
    stet_buf_add(&b, "\0\0\0\0", 4);
    stet_wire_bytes(&b, "r", 1);
    stet_wire_int(&b, number);
    stet_wire_bytes(&b, hex, sizeof hex);
    stet_wire_bytes(&b, node, strlen(node) + 1);
    const char *cwd = own.cwd ? own.cwd : r->cwd;
    stet_wire_bytes(&b, cwd, strlen(cwd) + 1);
    const char *turn = r->in_turn ? l->turn : "";
    stet_wire_bytes(&b, turn, strlen(turn) + 1);
    stet_wire_bytes(&b, r->top ? r->top : "", r->top ? strlen(r->top) + 1 : 1);
    stet_wire_bytes(&b, own.work ? own.work : "", own.work ? strlen(own.work) + 1 : 1);
    stet_wire_int(&b, r->input != NULL);
    stet_wire_int(&b, r->timeout_ms);
    stet_wire_int(&b, (int64_t)r->max_memory);
    stet_wire_int(&b, (int64_t)r->max_cpu_s);
    stet_wire_int(&b, (int64_t)r->max_file_size);
    stet_wire_list(&b, r->own_dir ? (const char *const *)own.argv.at : r->argv);
    stet_wire_list(&b, r->own_dir ? (const char *const *)own.envp.at : r->envp);
    static const char *const none[] = {NULL};
    stet_wire_list(&b, r->outputs ? r->outputs : none);
    stet_wire_list(&b, r->notes ? r->notes : none);
    stet_wire_list(&b, r->collect ? r->collect : none);
    stet_wire_list(&b, r->held ? r->held : none);
    add_shares(&b, r);
    stet_own_release(&own);
    status = send_all(l, &b, err);
    stet_buf_release(&b);
    if (status != STET_OK) {
        *gone = status == STET_IO;
        stet_free(node);
        return status;
    }
    stet_task *t = stet_alloc_zero(sizeof *t);
    *t = (stet_task){.d = l->own, .number = number, .key = r->key, .node = node};
    t->end.started_ns = stet_clock_ns();
    t->end.out_size = t->end.err_size = -1;
    for (size_t i = 0; r->notes && r->notes[i]; i++)
        *stet_vec_add(&t->notes) = stet_strdup(r->notes[i]);
    *stet_vec_add(&l->tasks) = t;
    l->own->pending++;
    l->running++;
    *out = t;
    return STET_OK;
}

stet_status stet_local_start(stet_local *l, const stet_local_request *r, stet_task **out, stet_error *err) {
    bool gone;
    stet_status status = start_once(l, r, out, &gone, err);
    if (gone)
        drop_supervisor(l);
    return status;
}

stet_task *stet_local_find(stet_local *l, stet_hash key) {
    for (size_t i = 0; i < l->tasks.len; i++) {
        stet_task *t = l->tasks.at[i];
        bool ours = t->d->own && (t->data || t->end.state == STET_TASK_RUNNING);
        if (!ours && !t->collected && stet_hash_equal(t->key, key))
            return t;
    }
    return NULL;
}

/* Is one the other, or a directory around it? `escaped` is as in the journal. */
static bool overlap(const char *escaped, const char *path) {
    char again[4];
    for (; *path && *escaped; path++) {
        snprintf(again, sizeof again, "%%%02X", (unsigned char)*path);
        size_t n = *path == '\n' || *path == '%' ? 3 : 1;
        if (n == 1 ? *escaped != *path : strncmp(escaped, again, 3) != 0)
            return false;
        escaped += n;
    }
    return (!*path || *path == '/') && (!*escaped || *escaped == '/');
}

/* Is it of this node, or of one that writes the same, as far as the journal of an earlier drive tells? */
static bool concerns(const stet_task *t, const char *node, const char *const *outputs) {
    bool same = strcmp(t->node, node) == 0;
    for (size_t i = 0; i < t->outputs.len && !same; i++)
        for (size_t k = 0; outputs[k] && !same; k++)
            same = overlap(t->outputs.at[i], outputs[k]);
    return same;
}

stet_task *stet_local_in_the_way(stet_local *l, const char *node, const char *const *outputs, const stet_task * not ) {
    for (size_t i = 0; i < l->tasks.len; i++) {
        stet_task *t = l->tasks.at[i];
        if (t != not &&!t->d->own && t->end.state == STET_TASK_RUNNING && concerns(t, node, outputs))
            return t;
    }
    return NULL;
}

void stet_local_discard(stet_local *l, const char *node, const char *const *outputs) {
    for (size_t i = l->tasks.len; i-- > 0;) {
        stet_task *t = l->tasks.at[i];
        if (!t->data && t->end.state != STET_TASK_RUNNING && concerns(t, node, outputs))
            stet_local_collected(l, t);
    }
}

size_t stet_local_count(const stet_local *l) {
    return l->tasks.len;
}

stet_task *stet_local_at(stet_local *l, size_t i) {
    return i < l->tasks.len && !l->tasks.at[i]->d->own && !l->tasks.at[i]->collected ? l->tasks.at[i] : NULL;
}

bool stet_local_alone(const stet_local *l) {
    return l->drives.len == (l->own != NULL);
}

int stet_local_fd(stet_local *l) {
    return l->fd;
}

size_t stet_local_running(const stet_local *l) {
    return l->running;
}

bool stet_local_adopted(stet_local *l) {
    for (size_t i = 0; i < l->tasks.len; i++)
        if (!l->tasks.at[i]->d->own && l->tasks.at[i]->end.state == STET_TASK_RUNNING)
            return true;
    return false;
}

/* What the supervisor has said. If it is gone, its commands are lost. */
static void hear(stet_local *l) {
    if (l->fd >= 0 && !receive(l))
        drop_supervisor(l);
    l->heard = false;
}

bool stet_local_heard(const stet_local *l) {
    return l->heard;
}

stet_task *stet_local_next(stet_local *l) {
    hear(l);
    int64_t now = stet_clock_monotonic_us();
    if (now - l->looked_us > 20000 && stet_local_adopted(l)) {
        l->looked_us = now;
        for (size_t i = 0; i < l->drives.len; i++)
            if (!l->drives.at[i]->own)
                follow(l, l->drives.at[i]);
    }
    for (size_t i = 0; i < l->tasks.len; i++) {
        stet_task *t = l->tasks.at[i];
        if (t->end.state != STET_TASK_RUNNING && !t->told && t->data) {
            t->told = true;
            return t;
        }
    }
    return NULL;
}

bool stet_local_begun(stet_local *l, stet_task *t) {
    hear(l);
    return t->begun || !t->d->own;
}

const stet_task_end *stet_task_exit(const stet_task *t) {
    return &t->end;
}

const char *stet_task_note(const stet_task *t, size_t i) {
    return i < t->notes.len ? t->notes.at[i] : NULL;
}

void *stet_task_data(const stet_task *t) {
    return t->data;
}

void stet_task_set_data(stet_task *t, void *data) {
    t->data = data;
    t->told = t->told && !data;
}

char *stet_task_output_path(const stet_task *t, bool error) {
    char name[32];
    snprintf(name, sizeof name, "%lld.%s", (long long)t->number, error ? "err" : "out");
    return stet_file_join(t->d->dir, name);
}

/* The open file of a stream, and the bytes in it that count; -1: there is none. */
static int open_stream(const stet_task *t, bool error, int64_t *size) {
    char *path = stet_task_output_path(t, error);
    int fd = stet_sys_open(path, O_RDONLY, 0);
    struct stat st;
    int64_t ended = error ? t->end.err_size : t->end.out_size;
    stet_free(path);
    *size = fd >= 0 && stet_sys_fstat(fd, &st) == 0 ? (int64_t)st.st_size : 0;
    if (ended >= 0 && ended < *size)
        *size = ended;
    return fd;
}

void stet_task_output(const stet_task *t, bool error, size_t max, stet_buf *out) {
    int64_t there;
    int fd = open_stream(t, error, &there);
    if (fd < 0)
        return;
    size_t size = (size_t)there, got = 0, want = size < max ? size : max;
    char *room = stet_buf_reserve(out, want);
    if (room && stet_file_read_all(fd, "output", room, want, &got, NULL) == STET_OK)
        out->len += got;
    if (size > max)
        stet_buf_printf(out, "\n(%zu more bytes)\n", size - max);
    stet_sys_close(fd);
}

void stet_task_output_from(const stet_task *t, bool error, int64_t from, size_t max, stet_buf *out) {
    int64_t there;
    int fd = open_stream(t, error, &there);
    size_t want = from < there ? (size_t)(there - from) : 0;
    if (want > max)
        want = max;
    char *room = fd >= 0 && want > 0 ? stet_buf_reserve(out, want) : NULL;
    ssize_t n = room ? stet_sys_pread(fd, room, want, (off_t)from) : 0;
    if (n > 0)
        out->len += (size_t)n;
    if (fd >= 0)
        stet_sys_close(fd);
}

char *stet_task_work_path(const stet_task *t) {
    const char *jobs = stet_jobs_of(t->d->dir, &t->d->jobs);
    return jobs ? stet_own_path(jobs, t->number) : stet_strdup("");
}

char *stet_task_file(const stet_task *t, size_t i, stet_error *err) {
    if (i >= t->files.len)
        stet_fail(err, STET_IO, "nobody knows what became of its file %zu", i + 1);
    else if (!t->files.at[i].there)
        stet_fail(err, t->files.at[i].status, "%s", t->files.at[i].message);
    else
        return stet_local_file_path(t->d->dir, t->number, i);
    return NULL;
}

/* A line of the client's in the journal. */
static void write_down(const stet_task *t, char what) {
    char *journal = stet_file_join(t->d->dir, "journal"), line[32];
    int fd = stet_sys_open(journal, O_WRONLY | O_APPEND, 0);
    size_t len = (size_t)snprintf(line, sizeof line, "%c %lld\n", what, (long long)t->number);
    if (fd >= 0 && stet_file_write_all(fd, journal, line, len, NULL) != STET_OK) {
        /* then it is told again */
    }
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(journal);
}

static void send_cancel(stet_local *l, int64_t number, int grace_ms) {
    stet_buf b = STET_BUF(0);
    stet_buf_add(&b, "\0\0\0\0", 4);
    stet_wire_bytes(&b, "c", 1);
    stet_wire_int(&b, number);
    stet_wire_int(&b, grace_ms);
    if (send_all(l, &b, NULL) != STET_OK) {
        /* the supervisor is gone: hear() finds out */
    }
    stet_buf_release(&b);
}

void stet_local_cancel(stet_local *l, stet_task *t, int grace_ms) {
    if (t->end.state != STET_TASK_RUNNING)
        return;
    if (t->d->own) {
        send_cancel(l, t->number, grace_ms);
    } else { /* its own supervisor hears of the end */
        write_down(t, 'K');
        t->end.cancelled = true;
        t->kill_with = grace_ms > 0 ? SIGTERM : SIGKILL;
        t->kill_us = grace_ms > 0 ? stet_clock_monotonic_us() + (int64_t)grace_ms * 1000 : 0;
        follow(l, t->d);
    }
}

void stet_local_cancel_all(stet_local *l, int grace_ms) {
    if (l->fd >= 0)
        send_cancel(l, -1, grace_ms);
    for (size_t i = 0; i < l->tasks.len; i++)
        if (!l->tasks.at[i]->d->own && l->tasks.at[i]->data)
            stet_local_cancel(l, l->tasks.at[i], grace_ms);
}

void stet_local_collected(stet_local *l, stet_task *t) {
    if (t->end.state == STET_TASK_RUNNING)
        return;
    if (t->collected) { /* by its own client, which has written that down */
        forget(l, t);
        return;
    }
    static const char *const suffixes[] = {"out", "err", "in", "progress"};
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "%lld.%s", (long long)t->number, suffixes[i]);
        char *path = stet_file_join(t->d->dir, name);
        unlink(path);
        stet_free(path);
    }
    for (size_t i = 0; i < t->files.len; i++) {
        char *path = stet_local_file_path(t->d->dir, t->number, i);
        unlink(path);
        stet_free(path);
    }
    char *work = stet_task_work_path(t);
    if (*work)
        stet_local_remove_work(work);
    stet_free(work);
    /* Written down too: the next client must not take it for something that nobody has heard of. */
    write_down(t, 'C');
    forget(l, t);
}
