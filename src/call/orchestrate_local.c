/* orchestrate_local.c - the backend that runs jobs on this machine, under the supervisor of process/local.h. */

#include "call/orchestrate_local.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "base/vec.h"
#include "call/adapter.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "process/local.h"

#define STDOUT_MAX  ((size_t)16 << 20)
#define STDERR_TAIL ((size_t)8 << 10)
#define FILE_BYTES  ((size_t)32 << 20)
#define SUBMIT_MS   30000
#define BEGUN_MS    10000
#define CANCEL_MS   2000

static const char *const passed[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"};

typedef struct words {
    char **at; /* NULL-terminated */
    size_t len, cap;
} words;

typedef struct spec {
    words argv, env, files;
    char *cwd; /* NULL: the project */
    bool scratch, text, no_input;
    int64_t timeout_ms;
    uint64_t max_memory, max_cpu_s, max_file_size;
} spec;

static void add_word(words *w, char *word) {
    if (w->len > 0)
        w->len--; /* the NULL */
    *stet_vec_add(w) = word;
    *stet_vec_add(w) = NULL;
}

static void release_words(words *w) {
    for (size_t i = 0; i < w->len; i++)
        stet_free(w->at[i]);
    stet_vec_release(w);
}

static void spec_release(spec *s) {
    release_words(&s->argv);
    release_words(&s->env);
    release_words(&s->files);
    stet_free(s->cwd);
    *s = (spec){0};
}

/* Relative and inside: no leading slash, no part `..`. */
static bool inside(const char *path) {
    if (!*path || *path == '/')
        return false;
    for (const char *p = path; p;) {
        if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == 0))
            return false;
        p = strchr(p, '/');
        p = p ? p + 1 : NULL;
    }
    return true;
}

static stet_status wrong(stet_error *err, const char *name, const char *value, const char *what) {
    stet_fail(err, STET_INVALID, "%s=%.200s: %s", name, value, what);
    stet_hint(err, "docs/calls.md lists the options of stet-exec-local");
    return STET_INVALID;
}

static stet_status take_option(spec *s, const char *name, const char *value, stet_value v, const char **command,
                               stet_error *err) {
    if (strcmp(name, "arg") == 0)
        add_word(&s->argv, stet_strdup(value));
    else if (strcmp(name, "command") == 0)
        *command = value;
    else if (strcmp(name, "cwd") == 0) {
        if (!inside(value))
            return wrong(err, name, value, "a directory below the project");
        stet_free(s->cwd);
        s->cwd = stet_strdup(value);
    } else if (strcmp(name, "file") == 0) {
        if (!inside(value))
            return wrong(err, name, value, "a path below the directory that it runs in");
        add_word(&s->files, stet_strdup(value));
    } else if (strcmp(name, "env") == 0) {
        const char *set = strchr(value, '='), *now = set ? NULL : getenv(value);
        if (!*value || set == value)
            return wrong(err, name, value, "NAME or NAME=VALUE");
        if (set)
            add_word(&s->env, stet_strdup(value));
        else if (now)
            add_word(&s->env, stet_asprintf("%s=%s", value, now));
    } else if (strcmp(name, "timeout") == 0 || strcmp(name, "max-cpu") == 0) {
        int64_t ms = stet_units_ms(v);
        if (ms < 0)
            return wrong(err, name, value, "seconds, or 90s, 10m, 2h");
        if (*name == 't')
            s->timeout_ms = ms;
        else
            s->max_cpu_s = (uint64_t)(ms + 999) / 1000;
    } else if (strcmp(name, "max-memory") == 0 || strcmp(name, "max-file-size") == 0) {
        uint64_t bytes = stet_units_bytes(v);
        if (bytes == 0)
            return wrong(err, name, value, "bytes, or 512M, 2G");
        *(strcmp(name, "max-memory") == 0 ? &s->max_memory : &s->max_file_size) = bytes;
    } else if (strcmp(name, "scratch") == 0 && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
        s->scratch = *value == 't';
    else if (strcmp(name, "stdout") == 0 && (strcmp(value, "json") == 0 || strcmp(value, "text") == 0))
        s->text = *value == 't';
    else if (strcmp(name, "stdin") == 0 && (strcmp(value, "json") == 0 || strcmp(value, "null") == 0))
        s->no_input = *value == 'n';
    else if (strcmp(name, "v") != 0)
        return wrong(err, name, value, "there is no such option");
    return STET_OK;
}

static stet_status parse(const char *function, const char *root, spec *s, stet_error *err) {
    stet_adapter_uri u;
    const char *command = NULL;
    *s = (spec){0};
    stet_status status = stet_adapter_uri_parse(function, &u, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        if (getenv(passed[i]))
            add_word(&s->env, stet_asprintf("%s=%s", passed[i], getenv(passed[i])));
    add_word(&s->argv, NULL); /* the place of the program, which is set below */
    for (size_t i = 0; i < stet_value_count(u.query) && status == STET_OK; i++) {
        stet_value pair = stet_value_at(u.query, i), name = stet_value_at(pair, 0), value = stet_value_at(pair, 1);
        const char *is_command = NULL;
        status = take_option(s, stet_value_as_string(&name, NULL), stet_value_as_string(&value, NULL), value,
                             &is_command, err);
        if (is_command && command)
            status = wrong(err, "command", is_command, "it stands twice");
        else if (is_command)
            command = stet_strdup(is_command);
    }
    bool has_args = s->argv.len > 2;
    if (status == STET_OK && (command != NULL) == (*u.path != 0))
        status = stet_fail(err, STET_INVALID, "%.200s: a function has either a program or command=", function);
    if (status == STET_OK && command && has_args)
        status = stet_fail(err, STET_INVALID, "%.200s: command= takes no arg=", function);
    if (status == STET_OK && s->scratch && s->cwd)
        status = stet_fail(err, STET_INVALID, "%.200s: it has either cwd= or scratch=true", function);
    if (status == STET_OK && command) {
        s->argv.at[0] = stet_strdup("sh");
        add_word(&s->argv, stet_strdup("-c"));
        add_word(&s->argv, stet_strdup(command));
    } else if (status == STET_OK)
        s->argv.at[0] = *u.path == '/' || !strchr(u.path, '/') ? stet_strdup(u.path) : stet_file_join(root, u.path);
    stet_free((char *)(uintptr_t)command);
    stet_adapter_uri_release(&u);
    if (status != STET_OK)
        spec_release(s);
    return status;
}

stet_status stet_backend_local_check(const char *function, stet_error *err) {
    spec s;
    stet_status status = parse(function, "/", &s, err);
    if (status == STET_OK)
        spec_release(&s);
    return status;
}

typedef struct job {
    stet_hash key;
    stet_local *local;
    stet_task *task;
    char *refused; /* it could not even be tried */
} job;

struct stet_backend_local {
    char *dir, *root;
    STET_VEC(job) jobs;
};

stet_backend_local *stet_backend_local_open(const char *dir, const char *root) {
    stet_backend_local *b = stet_alloc_zero(sizeof *b);
    b->dir = stet_strdup(dir);
    b->root = stet_strdup(root);
    return b;
}

static void drop_job(stet_backend_local *b, job *j) {
    stet_local_close(j->local);
    stet_free(j->refused);
    *j = b->jobs.at[--b->jobs.len];
}

void stet_backend_local_close(stet_backend_local *b) {
    if (!b)
        return;
    while (b->jobs.len > 0)
        drop_job(b, &b->jobs.at[b->jobs.len - 1]);
    stet_vec_release(&b->jobs);
    stet_free(b->dir);
    stet_free(b->root);
    stet_free(b);
}

static job *known(stet_backend_local *b, stet_hash key) {
    for (size_t i = 0; i < b->jobs.len; i++)
        if (stet_hash_equal(b->jobs.at[i].key, key))
            return &b->jobs.at[i];
    return NULL;
}

/* The job of this key, from the journals if this handle has not seen it yet. NULL: there is none. */
static stet_status find(stet_backend_local *b, stet_hash key, job **out, stet_error *err) {
    *out = known(b, key);
    if (*out)
        return STET_OK;
    stet_local *l;
    stet_status status = stet_local_open(b->dir, &l, err);
    if (status != STET_OK)
        return status;
    stet_task *t = stet_local_find(l, key);
    if (t && stet_task_exit(t)->state == STET_TASK_LOST) { /* its supervisor was killed, too: it has to run again */
        stet_local_collected(l, t);
        t = NULL;
    }
    if (!t) {
        stet_local_close(l);
        return STET_OK;
    }
    *stet_vec_add(&b->jobs) = (job){.key = key, .local = l, .task = t};
    *out = &b->jobs.at[b->jobs.len - 1];
    stet_task_set_data(t, b);
    return STET_OK;
}

void stet_backend_local_release(stet_backend_local *b, stet_hash key) {
    job *j = known(b, key);
    if (j)
        drop_job(b, j);
}

static char *scratch_dir(const stet_backend_local *b, stet_hash key) {
    char hex[STET_HASH_HEX];
    stet_hash_hex(key, hex);
    char *work = stet_file_join(b->dir, "work"), *dir = stet_file_join(work, hex);
    stet_free(work);
    return dir;
}

static char *run_dir(const stet_backend_local *b, const spec *s, stet_hash key) {
    return s->scratch ? scratch_dir(b, key) : s->cwd ? stet_file_join(b->root, s->cwd) : stet_strdup(b->root);
}

/* The arguments, as the program reads them. */
static stet_status input_text(stet_repo *remote, const stet_orch_job *j, char **text, size_t *len, stet_error *err) {
    stet_value list = stet_value_array();
    stet_status status = STET_OK;
    for (size_t i = 0; i < j->input_count && status == STET_OK; i++) {
        stet_hash datum;
        stet_value v;
        status = stet_repo_eval(remote, j->inputs[i], &datum, err);
        if (status == STET_OK)
            status = stet_repo_value(remote, datum, &v, err);
        if (status == STET_OK)
            stet_value_push(&list, v);
    }
    if (status == STET_OK)
        *text = stet_json_print(list, STET_JSON_CANONICAL, len);
    stet_value_release(list);
    return status;
}

static stet_status start(stet_backend_local *b, const stet_orch_job *j, stet_repo *remote, const spec *s,
                         stet_error *err) {
    char *input = NULL, *cwd = run_dir(b, s, j->key), hex[STET_HASH_HEX];
    size_t len = 0;
    stet_local *l = NULL;
    stet_task *t = NULL;
    stet_hash_hex(j->key, hex);
    char *name = stet_asprintf("call:%s", hex);
    stet_status status = s->no_input ? STET_OK : input_text(remote, j, &input, &len, err);
    if (status == STET_OK && s->scratch) {
        status = stet_file_remove_tree(cwd, err);
        if (status == STET_OK)
            status = stet_file_mkdirs(cwd, 0700, err);
    }
    static const char *const none[] = {"STET=1", NULL};
    stet_local_request r = {.key = j->key,
                            .node = name,
                            .argv = (const char *const *)s->argv.at,
                            .envp = s->env.at ? (const char *const *)s->env.at : none,
                            .cwd = cwd,
                            .input = input,
                            .input_len = len,
                            .timeout_ms = s->timeout_ms,
                            .max_memory = s->max_memory,
                            .max_cpu_s = s->max_cpu_s,
                            .max_file_size = s->max_file_size};
    if (status == STET_OK)
        status = stet_local_open(b->dir, &l, err);
    if (status == STET_OK)
        status = stet_local_start(l, &r, &t, err);
    /* Only what is in the journal is found by others: until then nobody else may look. */
    int64_t until = stet_clock_monotonic_us() + BEGUN_MS * 1000;
    while (status == STET_OK && !stet_local_begun(l, t)) {
        struct pollfd f = {.fd = stet_local_fd(l), .events = POLLIN};
        if (f.fd < 0 || stet_clock_monotonic_us() > until)
            status = stet_fail(err, STET_IO, "the supervisor of commands has gone away");
        else
            poll(&f, 1, 100);
    }
    if (status == STET_OK) {
        stet_task_set_data(t, b);
        *stet_vec_add(&b->jobs) = (job){.key = j->key, .local = l, .task = t};
    } else
        stet_local_close(l);
    stet_free(name);
    stet_free(cwd);
    stet_free(input);
    return status;
}

static stet_status local_submit(void *ctx, const stet_orch_job *j, stet_repo *remote,
                                stet_status (*still_mine)(void *ctx, stet_error *err), void *mine_ctx,
                                stet_value *identity, stet_error *err) {
    stet_backend_local *b = ctx;
    stet_lock *lock = NULL;
    job *there = NULL;
    spec s = {0};
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_file_mkdirs(b->dir, 0755, err);
    /* Looking for the job and starting it are one step to everybody on this machine. */
    char *path = stet_file_join(b->dir, "submit.lock");
    if (status == STET_OK)
        status = stet_lock_open(path, STET_LOCK_PLAIN, &lock, err);
    if (status == STET_OK)
        status = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, SUBMIT_MS, err);
    if (status == STET_OK)
        status = find(b, j->key, &there, err);
    if (status == STET_OK && !there)
        status = still_mine(mine_ctx, err);
    if (status == STET_OK && !there) {
        status = parse(j->function, b->root, &s, &inner);
        if (status == STET_OK)
            status = start(b, j, remote, &s, &inner);
        /* What can never run is a job that failed. */
        if (status == STET_INVALID || status == STET_LIMIT || status == STET_FAILED) {
            *stet_vec_add(&b->jobs) = (job){.key = j->key, .refused = stet_strdup(inner.message)};
            stet_error_clear(&inner);
            status = STET_OK;
        }
        stet_error_move(err, &inner);
        spec_release(&s);
    }
    stet_lock_close(lock);
    stet_free(path);
    if (status == STET_OK) {
        *identity = stet_value_object();
        stet_value_put(identity, "backend", stet_value_string("local"));
        stet_value_put(identity, "name", stet_value_stringf("call:%s", j->execution));
    }
    return status;
}

static stet_value failure(const char *message) {
    stet_value v = stet_value_object(), e = stet_value_object();
    stet_value_put(&e, "message", stet_value_stringf("%s", message));
    stet_value_put(&v, "error", e);
    return v;
}

/* The end of what it said, as text. */
static stet_value tail(const stet_task *t) {
    char *path = stet_task_output_path(t, true);
    stet_value v = stet_value_string("");
    int fd = stet_sys_open(path, O_RDONLY, 0);
    struct stat st;
    if (fd >= 0 && stet_sys_fstat(fd, &st) == 0) {
        char *bytes = stet_alloc(STDERR_TAIL + 1);
        off_t from = st.st_size > (off_t)STDERR_TAIL ? st.st_size - (off_t)STDERR_TAIL : 0;
        ssize_t n = stet_sys_pread(fd, bytes, STDERR_TAIL, from);
        bytes[n > 0 ? n : 0] = 0;
        v = stet_value_stringf("%s", bytes);
        stet_free(bytes);
    }
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    return v;
}

static stet_value ended_badly(const stet_task *t) {
    const stet_task_end *e = stet_task_exit(t);
    stet_value said = tail(t), v, error;
    char *message = e->state == STET_TASK_REFUSED
                        ? stet_asprintf("the program could not be started: %s", e->message ? e->message : "")
                    : e->timed_out      ? stet_strdup("it took longer than its timeout and was ended")
                    : e->exit.signalled ? stet_asprintf("it was ended by signal %d", e->exit.code)
                                        : stet_asprintf("it ended with status %d", e->exit.code);
    v = failure(message);
    error = stet_value_retain(stet_value_get(v, "error"));
    if (e->state == STET_TASK_ENDED)
        stet_value_put(&error, e->exit.signalled ? "signal" : "exit", stet_value_int(e->exit.code));
    if (e->timed_out)
        stet_value_put(&error, "timedOut", stet_value_bool(true));
    stet_value_put(&error, "stderr", said);
    stet_value_put(&v, "error", error);
    stet_free(message);
    return v;
}

static stet_status read_stdout(const stet_task *t, const spec *s, stet_value *out, stet_error *err) {
    stet_buf b = STET_BUF(STDOUT_MAX + 1);
    char *path = stet_task_output_path(t, false);
    stet_status status = stet_file_read(path, STDOUT_MAX, &b, err);
    stet_free(path);
    size_t blank = strspn(stet_buf_cstr(&b), " \t\r\n");
    if (status == STET_OK && s->text)
        status = stet_value_string_checked(stet_buf_cstr(&b), b.len, out, err);
    else if (status == STET_OK && blank == b.len)
        *out = stet_value_null();
    else if (status == STET_OK)
        status = stet_json_parse(b.data, b.len, out, err);
    if (status != STET_OK)
        stet_fail_in(err, "its standard output");
    stet_buf_release(&b);
    return status;
}

static stet_status read_file(const char *dir, const char *name, stet_value *out, stet_error *err) {
    stet_buf b = STET_BUF(FILE_BYTES + 1);
    char *path = stet_file_join(dir, name);
    stet_status status = stet_file_read(path, FILE_BYTES, &b, err);
    stet_free(path);
    if (status == STET_OK) {
        char *text = stet_alloc(b.len * 4 / 3 + 8);
        size_t len = stet_base64url_encode(stet_buf_cstr(&b), b.len, text);
        stet_value bytes = stet_value_object();
        stet_value_put(&bytes, "bytes@1", stet_value_string_n(text, len));
        *out = stet_value_object();
        stet_value_put(out, "/", bytes);
        stet_free(text);
    }
    stet_buf_release(&b);
    return status;
}

/* What it gave. A failure here is the job's. */
static stet_status gather(stet_backend_local *b, const stet_orch_job *j, const stet_task *t, stet_value *out,
                          stet_error *err) {
    spec s;
    stet_value printed;
    stet_status status = parse(j->function, b->root, &s, err);
    if (status != STET_OK)
        return status;
    status = read_stdout(t, &s, &printed, err);
    if (status == STET_OK && s.files.len == 0)
        *out = printed;
    else if (status == STET_OK) {
        stet_value files = stet_value_object();
        char *dir = run_dir(b, &s, j->key);
        for (size_t i = 0; s.files.at[i] && status == STET_OK; i++) {
            stet_value bytes;
            status = read_file(dir, s.files.at[i], &bytes, err);
            if (status == STET_OK)
                stet_value_put(&files, s.files.at[i], bytes);
        }
        stet_free(dir);
        if (status == STET_OK) {
            *out = stet_value_object();
            stet_value_put(out, "files", files);
            stet_value_put(out, "stdout", printed);
        } else {
            stet_value_release(files);
            stet_value_release(printed);
        }
    }
    spec_release(&s);
    return status;
}

static stet_status local_poll(void *ctx, const stet_orch_job *j, stet_job_status *status, stet_value *value,
                              stet_error *err) {
    stet_backend_local *b = ctx;
    job *there;
    stet_status st = find(b, j->key, &there, err);
    if (st != STET_OK)
        return st;
    *status = STET_JOB_GONE;
    if (!there)
        return STET_OK;
    if (there->refused) {
        *status = STET_JOB_ERROR;
        *value = failure(there->refused);
        return STET_OK;
    }
    while (stet_local_next(there->local)) {
        /* hears what there is to hear */
    }
    const stet_task_end *e = stet_task_exit(there->task);
    if (e->state == STET_TASK_RUNNING) {
        *status = STET_JOB_RUNNING;
        return STET_OK;
    }
    if (e->state == STET_TASK_LOST) {
        stet_local_collected(there->local, there->task);
        drop_job(b, there);
        return STET_OK;
    }
    *status = STET_JOB_ERROR;
    if (e->state == STET_TASK_REFUSED || e->exit.signalled || e->exit.code != 0) {
        *value = ended_badly(there->task);
        return STET_OK;
    }
    stet_error inner = STET_ERROR_INIT;
    if (gather(b, j, there->task, value, &inner) == STET_OK)
        *status = STET_JOB_OK;
    else if (inner.status == STET_IO) { /* this disk, not the job */
        stet_error_move(err, &inner);
        return STET_IO;
    } else
        *value = failure(inner.message);
    stet_error_clear(&inner);
    return STET_OK;
}

static void local_forget(void *ctx, const stet_orch_job *j) {
    stet_backend_local *b = ctx;
    job *there = known(b, j->key);
    if (!there)
        return;
    if (there->task) {
        stet_local_collected(there->local, there->task);
        char *dir = scratch_dir(b, j->key);
        if (stet_file_exists(dir) && stet_file_remove_tree(dir, NULL) != STET_OK) {
            /* the next job of this key empties it */
        }
        stet_free(dir);
    }
    drop_job(b, there);
}

static void local_cancel(void *ctx, const stet_orch_job *j) {
    stet_backend_local *b = ctx;
    job *there;
    if (find(b, j->key, &there, NULL) != STET_OK || !there)
        return;
    if (there->task) {
        stet_local_cancel(there->local, there->task, CANCEL_MS);
        for (int i = 0; i < 2 * CANCEL_MS / 20 && stet_task_exit(there->task)->state == STET_TASK_RUNNING; i++) {
            stet_clock_sleep_ms(20);
            stet_local_next(there->local);
            if (i == CANCEL_MS / 20)
                stet_local_cancel(there->local, there->task, 0);
        }
    }
    local_forget(ctx, j);
}

void stet_backend_local_wait(stet_backend_local *b, int timeout_ms) {
    int64_t until = stet_clock_monotonic_us() + (int64_t)timeout_ms * 1000;
    for (;;) {
        struct pollfd fds[64];
        nfds_t n = 0;
        bool adopted = false;
        for (size_t i = 0; i < b->jobs.len; i++) {
            job *j = &b->jobs.at[i];
            if (j->refused)
                return;
            stet_local_next(j->local);
            if (stet_task_exit(j->task)->state != STET_TASK_RUNNING)
                return;
            int fd = stet_local_fd(j->local);
            adopted |= fd < 0;
            if (fd >= 0 && n < 64)
                fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
        int64_t left = (until - stet_clock_monotonic_us()) / 1000;
        if (left <= 0)
            return;
        poll(fds, n, (int)(adopted && left > 25 ? 25 : left));
        if (b->jobs.len == 0)
            return;
    }
}

const stet_backend stet_backend_local_kind = {
    .submit = local_submit, .poll = local_poll, .cancel = local_cancel, .forget = local_forget};
