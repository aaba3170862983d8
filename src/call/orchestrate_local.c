/* orchestrate_local.c - the backend that runs jobs on this machine, under the supervisor of process/local.h. */

#include "call/orchestrate_local.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "call/function.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "process/local.h"

#define ATTEMPT     "attempt "         /* a note of a job: for which attempt of its claim it was started */
#define STAMP       "stamp "           /* a note of a job in place: stamp_code before it */
#define STDOUT_MAX  ((size_t)64 << 20) /* as JSON, which is in memory */
#define TEXT_MAX    ((size_t)16 << 20) /* as text; what is longer is a blob */
#define STDERR_TAIL ((size_t)8 << 10)
#define SUBMIT_MS   30000
#define BEGUN_MS    10000
#define CANCEL_MS   2000

stet_status stet_backend_local_check(const char *function, stet_error *err) {
    stet_function f;
    stet_status status = stet_function_parse(function, &f, err);
    if (status == STET_OK)
        stet_function_release(&f);
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
    int64_t slots;
    stet_value pools;
    bool one_of_many; /* other machines take jobs too: what can't be started here may be started there */
    STET_VEC(job) jobs;
};

stet_backend_local *stet_backend_local_open(const char *dir, const char *root, bool one_of_many) {
    stet_backend_local *b = stet_alloc_zero(sizeof *b);
    b->one_of_many = one_of_many;
    b->dir = stet_strdup(dir);
    b->root = stet_strdup(root);
    return b;
}

void stet_backend_local_limit(stet_backend_local *b, int64_t slots, stet_value pools) {
    b->slots = slots;
    stet_value_release(b->pools);
    b->pools = stet_value_retain(pools);
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
    stet_value_release(b->pools);
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

/* How it ended says nothing about it: its supervisor was killed too, or somebody has cancelled it. */
static bool is_void(const stet_task *t) {
    const stet_task_end *e = stet_task_exit(t);
    return e->state == STET_TASK_LOST || (e->state != STET_TASK_RUNNING && e->cancelled);
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
    if (t && is_void(t)) { /* it has to run again */
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

/* What the node of a call holds for its job. */
typedef struct made_with {
    stet_value code; /* {PATH: datum...} or null */
    stet_value job;  /* as in call/calls.h, or null */
} made_with;

static void made_release(made_with *m) {
    stet_value_release(m->code);
    stet_value_release(m->job);
}

static stet_status made_of(stet_repo *remote, const stet_orch_job *j, made_with *out, stet_error *err) {
    stet_value record, id, beside = stet_value_null();
    stet_hash datum;
    *out = (made_with){stet_value_null(), stet_value_null()};
    stet_status status = stet_repo_get(remote, j->node, STET_RECORD_NODE, &record, err);
    if (status != STET_OK)
        return status;
    if (stet_value_find(record, "beside", 6, &id))
        status = stet_hash_of_text(id, &datum)
                     ? stet_repo_value(remote, datum, &beside, err)
                     : stet_fail(err, STET_CORRUPT, "what stands beside the inputs of a call is not an id");
    stet_value coded = stet_value_get(stet_value_get(stet_value_get(beside, "job"), "/"), "bytes@1");
    if (status == STET_OK && stet_value_type(coded) == STET_TYPE_STRING) {
        size_t n, len = 0;
        const char *text = stet_value_as_string(&coded, &n);
        char *bytes = stet_alloc(n + 1);
        status = stet_base64url_decode(text, n, bytes, &len)
                     ? stet_json_parse(bytes, len, &out->job, err)
                     : stet_fail(err, STET_CORRUPT, "what a job gets is not base64url");
        stet_free(bytes);
    }
    if (status == STET_OK)
        out->code = stet_value_retain(stet_value_get(record, "code"));
    stet_value_release(beside);
    stet_value_release(record);
    return status;
}

/* The environment that the call was made with. A call that was not made by stet has none: it gets that of this process. */
static void bind(stet_function *f, const made_with *m) {
    stet_value env, own = stet_value_null();
    if (!stet_value_find(m->job, "env", 3, &env))
        env = own = stet_function_environment(f);
    stet_function_bind(f, env);
    if (!f->in_place)
        stet_function_place(f, stet_value_get(m->job, "places"));
    stet_words_add(&f->env, stet_strdup("STET_PROGRESS_FD=3"));
    stet_value_release(own);
}

/* Are the files of the project those that the call was made with? A call that runs in place reads them there. */
static stet_status same_code(const stet_backend_local *b, stet_repo *remote, stet_value code, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(code) && status == STET_OK; i++) {
        const char *name = stet_value_key_at(code, i, NULL);
        char *path = stet_file_join(b->root, name), text[STET_HASH_BASE64];
        stet_hash now = {{0}}, datum;
        stet_value was = stet_value_null();
        stet_error inner = STET_ERROR_INIT;
        status = stet_hash_of_text(stet_value_at(code, i), &datum)
                     ? stet_repo_value(remote, datum, &was, err)
                     : stet_fail(err, STET_CORRUPT, "the code of a call is not an id");
        bool same = status == STET_OK && stet_file_hash(path, &now, NULL, &inner) == STET_OK;
        stet_base64url_encode(now.bytes, sizeof now.bytes, text);
        same = same && stet_value_text_is(stet_value_get(stet_value_get(was, "/"), "bytes@1"), text);
        if (status == STET_OK && !same) {
            status = stet_fail(err, STET_FAILED, "%.300s is not the file that the call was made with", name);
            stet_hint(err, "it was changed since: make the call again");
        }
        stet_error_clear(&inner);
        stet_value_release(was);
        stet_free(path);
    }
    return status;
}

#define TICK_NS 20000000 /* times of files are behind the clock by so much at most */

static void add_times(stet_buf *b, const struct stat *st) {
    stet_buf_printf(b, "%llu %llu %lld %lld.%09ld %lld.%09ld\n", (unsigned long long)st->st_dev,
                    (unsigned long long)st->st_ino, (long long)st->st_size, (long long)st->st_mtim.tv_sec,
                    st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

/* What the file system says of the files that a job in place was made with: another text if one of them was changed since,
 * also if it was changed back. A file that was changed just now could be changed again without another time: `settle`
 * waits until that can't be. */
static void stamp_code(const stet_backend_local *b, stet_value code, bool settle, char out[STET_HASH_HEX]) {
    stet_buf text = STET_BUF(0);
    for (size_t i = 0; i < stet_value_count(code); i++) {
        char *path = stet_file_join(b->root, stet_value_key_at(code, i, NULL));
        struct stat st, link;
        for (int tries = 0; stet_sys_stat(path, &st) == 0 && tries < 5; tries++) {
            int64_t changed = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec, now = stet_clock_ns();
            if (!settle || changed > now || now - changed > TICK_NS)
                break;
            stet_clock_sleep_ms(TICK_NS / 1000000);
        }
        if (stet_sys_stat(path, &st) == 0 && stet_sys_lstat(path, &link) == 0) {
            add_times(&text, &st);
            add_times(&text, &link);
        } else
            stet_buf_str(&text, "none\n");
        stet_free(path);
    }
    stet_hash_hex(stet_hash_of(stet_buf_cstr(&text), text.len), out);
    stet_buf_release(&text);
}

/* What is put into the directory of the job: the code, and contents that are arguments. */
typedef struct staged {
    stet_repo *remote;
    STET_VEC(stet_local_file) files; /* with paths that are ours */
    STET_VEC(stet_hash) data;        /* of the files */
    STET_VEC(char *) dirs;           /* NULL-terminated */
} staged;

static void staged_release(staged *s) {
    for (size_t i = 0; i < s->files.len; i++)
        stet_free((void *)(uintptr_t)s->files.at[i].path);
    for (size_t i = 0; i < s->dirs.len; i++)
        stet_free(s->dirs.at[i]);
    stet_vec_release(&s->files);
    stet_vec_release(&s->data);
    stet_vec_release(&s->dirs);
}

static void stage(staged *s, char *path, stet_hash datum) {
    *stet_vec_add(&s->files) = (stet_local_file){.path = path};
    *stet_vec_add(&s->data) = datum;
}

static stet_status write_staged(void *ctx, size_t i, int fd, const char *path, stet_error *err) {
    staged *s = ctx;
    return stet_repo_write_file(s->remote, s->data.at[i], fd, path, err);
}

static stet_status stage_code(const made_with *m, staged *out, stet_error *err) {
    stet_value dirs = stet_value_get(m->job, "dirs");
    for (size_t i = 0; i < stet_value_count(m->code); i++) {
        stet_hash datum;
        if (!stet_hash_of_text(stet_value_at(m->code, i), &datum))
            return stet_fail(err, STET_CORRUPT, "the code of a call is not an id");
        stage(out, stet_strdup(stet_value_key_at(m->code, i, NULL)), datum);
    }
    for (size_t i = 0; i < stet_value_count(dirs); i++) {
        stet_value dir = stet_value_at(dirs, i);
        char *path = stet_function_path("", stet_value_text(&dir, "")); /* never outside, whoever made the node */
        if (path)
            *stet_vec_add(&out->dirs) = path;
    }
    *stet_vec_add(&out->dirs) = NULL;
    return STET_OK;
}

#define INPUTS ".stet-inputs"

/* A copy of a value in which each blob says where its content is for the job. Consumes nothing. */
static stet_value with_paths(stet_value v, const stet_function *f, staged *files) {
    stet_hash datum;
    stet_type t = stet_value_type(v);
    if (stet_value_is_blob(v, &datum)) {
        char hex[STET_HASH_HEX];
        stet_hash_hex(datum, hex);
        stet_buf up = STET_BUF(0);
        for (const char *p = f->cwd; *p; p += strcspn(p, "/"), p += *p == '/')
            stet_buf_str(&up, "../");
        stet_value named = stet_value_retain(stet_value_get(stet_value_get(v, "/"), "blob@1")),
                   out = stet_value_object(), link = stet_value_object();
        stet_value_put(&named, "path", stet_value_stringf("%s" INPUTS "/%s", stet_buf_cstr(&up), hex));
        stet_value_put(&link, "blob@1", named);
        stet_value_put(&out, "/", link);
        char *path = stet_asprintf(INPUTS "/%s", hex);
        bool known = false;
        for (size_t i = 0; i < files->files.len && !known; i++)
            known = strcmp(files->files.at[i].path, path) == 0;
        if (known)
            stet_free(path);
        else
            stage(files, path, datum);
        stet_buf_release(&up);
        return out;
    }
    if (t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT)
        return stet_value_retain(v);
    stet_value out = t == STET_TYPE_ARRAY ? stet_value_array() : stet_value_object();
    for (size_t i = 0; i < stet_value_count(v); i++) {
        stet_value item = with_paths(stet_value_at(v, i), f, files);
        size_t len;
        if (t == STET_TYPE_ARRAY)
            stet_value_push(&out, item);
        else {
            const char *key = stet_value_key_at(v, i, &len);
            stet_value_put_n(&out, key, len, item);
        }
    }
    return out;
}

/* The arguments, as the program reads them. */
static stet_status input_text(const stet_orch_job *j, const stet_function *f, staged *files, char **text, size_t *len,
                              stet_error *err) {
    stet_value list = stet_value_array();
    stet_status status = STET_OK;
    for (size_t i = 0; i < j->input_count && status == STET_OK; i++) {
        stet_hash datum;
        stet_value v;
        status = stet_repo_eval(files->remote, j->inputs[i], &datum, err);
        if (status == STET_OK)
            status = stet_repo_value(files->remote, datum, &v, err);
        if (status == STET_OK) {
            stet_value_push(&list, with_paths(v, f, files));
            stet_value_release(v);
        }
    }
    if (status == STET_OK)
        *text = stet_json_print(list, STET_JSON_CANONICAL, len);
    stet_value_release(list);
    return status;
}

/* The working directory and the program of a job that runs in the project. */
static char *in_project(const stet_backend_local *b, const char *path) {
    return *path ? stet_file_join(b->root, path) : stet_strdup(b->root);
}

/* What a job in place has to find as it is, from its start to its end: the files that the call was made with, and the
 * directories above them. */
typedef STET_VEC(char *) held_paths; /* NULL-terminated */
static void hold_code(const stet_backend_local *b, stet_value code, held_paths *out) {
    stet_map seen = {0};
    for (size_t i = 0; i < stet_value_count(code); i++) {
        char *path = stet_file_join(b->root, stet_value_key_at(code, i, NULL)), *slash;
        *stet_vec_add(out) = stet_strdup(path);
        while ((slash = strrchr(path, '/')) != NULL && slash > path) {
            *slash = 0;
            if (stet_map_get(&seen, path, strlen(path)))
                break;
            stet_map_put(&seen, path, strlen(path), (stet_slot){.n = 1});
            *stet_vec_add(out) = stet_strdup(path);
        }
        stet_free(path);
    }
    *stet_vec_add(out) = NULL;
    stet_map_release(&seen);
}

/* The places that a job needs; their paths are ours. */
typedef STET_VEC(stet_local_share) share_list;
static void shares_release(share_list *s) {
    for (size_t i = 0; i < s->len; i++)
        stet_free((void *)(uintptr_t)s->at[i].path);
    stet_vec_release(s);
}

/* `path` is taken over. */
static void add_share(share_list *s, char *path, int64_t total, int64_t wanted) {
    for (size_t i = 0; i < s->len; i++)
        if (strcmp(s->at[i].path, path) == 0) {
            s->at[i].wanted += wanted;
            stet_free(path);
            return;
        }
    *stet_vec_add(s) = (stet_local_share){path, total, wanted};
}

static stet_status add_pool(const stet_backend_local *b, const char *dir, const char *text, share_list *out,
                            stet_error *err) {
    const char *colon = strchr(text, ':');
    char *name = stet_strndup(text, colon ? (size_t)(colon - text) : strlen(text));
    stet_value total;
    stet_status status = STET_OK;
    if (!stet_value_find(b->pools, name, strlen(name), &total)) {
        status = stet_fail(err, STET_NOT_FOUND, "pool=%s: this project has no such pool", name);
        stet_hint(err, "write it to .stet/config.toml: [calls.pools], and %s = 1", name);
    } else
        add_share(out, stet_file_join(dir, name), stet_value_as_int(total), colon ? strtoll(colon + 1, NULL, 10) : 1);
    stet_free(name);
    return status;
}

static stet_status find_shares(const stet_backend_local *b, const stet_function *f, share_list *out, stet_error *err) {
    stet_status status = STET_OK;
    char *home = NULL, *dir = NULL;
    if (f->in_place) /* no two calls run in the project at a time */
        add_share(out, stet_file_join(b->dir, "in-place.lock"), 1, 1);
    if (b->slots > 0) {
        char *slots = stet_file_join(b->dir, "slots");
        status = stet_file_mkdirs(slots, 0755, err);
        add_share(out, stet_file_join(slots, "slot"), b->slots, f->cpus < b->slots ? f->cpus : b->slots);
        stet_free(slots);
    }
    if (status == STET_OK && f->pools.len > 0) {
        status = stet_home_dir(&home, err);
        dir = status == STET_OK ? stet_file_join(home, "pools") : NULL;
        if (status == STET_OK)
            status = stet_file_mkdirs(dir, 0755, err);
    }
    for (size_t i = 0; i + 1 < f->pools.len && status == STET_OK; i++)
        status = add_pool(b, dir, f->pools.at[i], out, err);
    for (size_t i = 0; i < out->len && status == STET_OK; i++)
        if (out->at[i].wanted > out->at[i].total) {
            status = stet_fail(err, STET_LIMIT, "the job wants %lld places of %s, which has %lld",
                               (long long)out->at[i].wanted, stet_file_basename(out->at[i].path),
                               (long long)out->at[i].total);
            stet_hint(err, "see [calls.pools] in .stet/config.toml");
        }
    stet_free(home);
    stet_free(dir);
    return status;
}

static stet_status begin_task(stet_backend_local *b, const stet_orch_job *j, const stet_local_request *r,
                              stet_error *err) {
    stet_local *l = NULL;
    stet_task *t = NULL;
    stet_status status = stet_local_open(b->dir, &l, err);
    if (status == STET_OK)
        status = stet_local_start(l, r, &t, err);
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
    return status;
}

static stet_status start(stet_backend_local *b, const stet_orch_job *j, stet_repo *remote, stet_function *f,
                         stet_error *err) {
    char hex[STET_HASH_HEX], *input = NULL, *cwd = NULL, *program = NULL;
    share_list shares = {0};
    char stamp[sizeof STAMP + STET_HASH_HEX] = STAMP;
    size_t len = 0;
    staged files = {.remote = remote};
    made_with made = {stet_value_null(), stet_value_null()};
    held_paths held = {0};
    stet_hash_hex(j->key, hex);
    char *name = stet_asprintf("call:%s", hex);
    stet_status status = f->no_input ? STET_OK : input_text(j, f, &files, &input, &len, err);
    if (status == STET_OK && f->in_place && files.files.len > 0)
        status = stet_fail(err, STET_UNSUPPORTED, "a job in place can't get a blob as an argument");
    if (status == STET_OK)
        status = made_of(remote, j, &made, err);
    if (status == STET_OK)
        bind(f, &made);
    if (status == STET_OK && f->in_place) {
        stamp_code(b, made.code, true, stamp + strlen(STAMP));
        status = same_code(b, remote, made.code, err);
        hold_code(b, made.code, &held);
        cwd = in_project(b, f->cwd);
        if (strncmp(f->argv.at[0], "./", 2) == 0)
            program = in_project(b, f->argv.at[0] + 2);
    } else if (status == STET_OK)
        status = stage_code(&made, &files, err);
    if (status == STET_OK)
        status = find_shares(b, f, &shares, err);
    STET_VEC(const char *) argv = {0};
    *stet_vec_add(&argv) = program ? program : f->argv.at[0];
    for (size_t i = 1; i < f->argv.len; i++)
        *stet_vec_add(&argv) = f->argv.at[i];
    char *logs = stet_file_join(b->dir, "logs"), *keep = stet_file_join(logs, hex);
    if (status == STET_OK && stet_file_mkdirs(logs, 0755, NULL) != STET_OK) {
        stet_free(keep); /* then they are not kept */
        keep = NULL;
    }
    char attempt[40];
    snprintf(attempt, sizeof attempt, ATTEMPT "%lld", (long long)j->attempt);
    const char *const notes[] = {attempt, f->in_place ? stamp : NULL, NULL};
    stet_local_request r = {.key = j->key,
                            .notes = notes,
                            .node = name,
                            .argv = argv.at,
                            .envp = (const char *const *)f->env.at,
                            .cwd = f->in_place ? cwd : f->cwd,
                            .own_dir = !f->in_place,
                            .apart_from = b->root,
                            .stage_dirs = (const char *const *)files.dirs.at,
                            .stage = files.files.at,
                            .stage_count = files.files.len,
                            .write = write_staged,
                            .write_ctx = &files,
                            .collect = (const char *const *)f->outputs.at,
                            .shares = shares.at,
                            .share_count = shares.len,
                            .held = (const char *const *)held.at,
                            .input = input,
                            .keep = keep,
                            .input_len = len,
                            .timeout_ms = f->timeout_ms,
                            .max_memory = f->max_memory,
                            .max_cpu_s = f->max_cpu_s,
                            .max_file_size = f->max_file_size};
    if (status == STET_OK)
        status = begin_task(b, j, &r, err);
    for (size_t i = 0; i < held.len; i++)
        stet_free(held.at[i]);
    stet_vec_release(&held);
    stet_vec_release(&argv);
    staged_release(&files);
    made_release(&made);
    stet_free(name);
    stet_free(logs);
    stet_free(keep);
    stet_free(cwd);
    stet_free(program);
    shares_release(&shares);
    stet_free(input);
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
        int64_t ended = stet_task_exit(t)->err_size;
        off_t size = ended >= 0 && ended < (int64_t)st.st_size ? (off_t)ended : st.st_size;
        off_t from = size > (off_t)STDERR_TAIL ? size - (off_t)STDERR_TAIL : 0;
        ssize_t n = stet_sys_pread(fd, bytes, (size_t)(size - from), from);
        bytes[n > 0 ? n : 0] = 0;
        v = stet_value_stringf("%s", bytes);
        stet_free(bytes);
    }
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    return v;
}

/* A signal that ends a program from outside: somebody sent it, or the kernel was out of memory. */
static bool from_outside(int signal_number) {
    static const int sent[] = {SIGKILL, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPWR};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++)
        if (sent[i] == signal_number)
            return true;
    return false;
}

/* What became of a job that did not exit 0 (orchestrate_local.h has the table). */
static stet_job_status class_of(const stet_backend_local *b, const stet_function *f, const stet_task_end *e) {
    if (e->state == STET_TASK_REFUSED) {
        bool here = e->status == STET_NOT_FOUND || e->status == STET_DENIED || e->status == STET_INVALID;
        return here && !b->one_of_many ? STET_JOB_FAILED : STET_JOB_AGAIN;
    }
    if (e->timed_out)
        return STET_JOB_FAILED;
    int code = e->exit.code;
    if (!e->exit.signalled && code < 256 && (f->retry_on[code / 64] >> (code % 64) & 1))
        return STET_JOB_AGAIN;
    /* A shell exits like this when a signal ended its last command. */
    bool told = f->command && !e->exit.signalled && code > 128 && code <= 128 + SIGRTMAX;
    if (!e->exit.signalled && !told)
        return STET_JOB_ERROR;
    int number = told ? code - 128 : code;
    bool limit = number == SIGKILL && f->max_cpu_s > 0; /* the kernel ends with it what is over its limit */
    return from_outside(number) && !limit ? STET_JOB_AGAIN : STET_JOB_FAILED;
}

/* Something of the project that it may have looked for and that was not given to it. */
static void put_hint(const stet_backend_local *b, const stet_function *f, stet_repo *remote, const stet_orch_job *j,
                     const stet_task *t, stet_value said, stet_value *error) {
    made_with made;
    stet_names names = {0};
    if (f->in_place || made_of(remote, j, &made, NULL) != STET_OK)
        return;
    for (size_t i = 0; i < stet_value_count(made.code); i++)
        *stet_vec_add(&names) = stet_strdup(stet_value_key_at(made.code, i, NULL));
    char *work = stet_task_work_path(t);
    char *path = stet_function_unnamed(f, b->root, work, &names, stet_value_as_string(&said, NULL));
    stet_free(work);
    if (path)
        stet_value_put(
            error, "hint",
            stet_value_stringf("%s is in the project but not in the directory of the job; add files=%s", path, path));
    stet_free(path);
    stet_names_release(&names);
    made_release(&made);
}

static stet_value ended_badly(const stet_backend_local *b, const stet_function *f, stet_repo *remote,
                              const stet_orch_job *j, const stet_task *t) {
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
    if (e->state == STET_TASK_ENDED)
        put_hint(b, f, remote, j, t, said, &error);
    stet_value_put(&error, "stderr", said);
    stet_value_put(&v, "error", error);
    stet_free(message);
    return v;
}

/* A content that is stored, as a value. */
static stet_status put_content(stet_repo *remote, int fd, const char *path, int64_t most, stet_value *out,
                               stet_error *err) {
    stet_hash datum;
    stet_status status = stet_repo_put_file(remote, fd, path, most, &datum, err);
    return status == STET_OK ? stet_repo_value(remote, datum, out, err) : status;
}

static stet_status read_stdout(stet_repo *remote, const stet_task *t, const stet_function *f, stet_value *out,
                               stet_error *err) {
    char *path = stet_task_output_path(t, false);
    int64_t ended = stet_task_exit(t)->out_size; /* the rest was written by something that it left running */
    struct stat st = {0};
    stet_buf b = STET_BUF(STDOUT_MAX + 1);
    int fd = stet_sys_open(path, O_RDONLY, 0);
    stet_status status =
        fd < 0 || stet_sys_fstat(fd, &st) != 0 ? stet_fail_errno(err, errno, "cannot read %s", path) : STET_OK;
    status = status == STET_OK ? STET_OK : STET_IO; /* somebody removed it */
    size_t size = (size_t)(ended >= 0 && ended < (int64_t)st.st_size ? ended : st.st_size), got = 0;
    if (status == STET_OK && f->text && size > TEXT_MAX)
        status = put_content(remote, fd, path, (int64_t)size, out, err);
    else if (status == STET_OK && size > STDOUT_MAX) {
        status = stet_fail(err, STET_LIMIT, "%zu bytes of JSON, more than %zu MiB", size, STDOUT_MAX >> 20);
        stet_hint(err, "write it to a file, with file=, or say stdout=text");
    } else if (status == STET_OK) {
        char *room = stet_buf_reserve(&b, size + 1);
        status = stet_file_read_all(fd, path, room, size, &got, err);
        b.len += got;
        size_t blank = strspn(stet_buf_cstr(&b), " \t\r\n");
        if (status == STET_OK && f->text)
            status = stet_value_string_checked(stet_buf_cstr(&b), b.len, out, err);
        else if (status == STET_OK && blank == b.len)
            *out = stet_value_null();
        else if (status == STET_OK)
            status = stet_json_parse(b.data, b.len, out, err);
    }
    if (status != STET_OK)
        stet_fail_in(err, "its standard output");
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    stet_buf_release(&b);
    return status;
}

/* The i-th file, as it was collected when the job ended. */
static stet_status read_file(stet_repo *remote, const stet_task *t, size_t i, const char *name, stet_value *out,
                             stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    char *path = stet_task_file(t, i, &inner);
    int fd = path ? stet_sys_open(path, O_RDONLY, 0) : -1;
    stet_status status = inner.status;
    if (path && fd < 0) { /* somebody removed the copy */
        stet_fail_errno(&inner, errno, "cannot read %s", path);
        status = STET_IO;
    } else if (path)
        status = put_content(remote, fd, path, -1, out, &inner);
    else if (status != STET_INVALID && status != STET_LIMIT && status != STET_NOT_FOUND)
        status = STET_BUSY; /* it could not be copied: it is gone */
    stet_error_move(err, &inner);
    if (status != STET_OK)
        stet_fail_in(err, "its file %.200s", name);
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    return status;
}

/* What it gave. A failure here is the job's, unless it is of this machine. */
static stet_status gather(stet_repo *remote, const stet_function *f, const stet_task *t, stet_value *out,
                          stet_error *err) {
    stet_value printed;
    stet_status status = read_stdout(remote, t, f, &printed, err);
    if (status != STET_OK)
        return status;
    if (f->outputs.len == 0) {
        *out = printed;
        return STET_OK;
    }
    stet_value files = stet_value_object();
    for (size_t i = 0; i + 1 < f->outputs.len && status == STET_OK; i++) {
        stet_value bytes;
        status = read_file(remote, t, i, f->outputs.at[i], &bytes, err);
        if (status == STET_OK)
            stet_value_put(&files, f->outputs.at[i], bytes);
    }
    if (status == STET_OK) {
        *out = stet_value_object();
        stet_value_put(out, "files", files);
        stet_value_put(out, "stdout", printed);
    } else {
        stet_value_release(files);
        stet_value_release(printed);
    }
    return status;
}

/* The project's files that a job in place has read may have been changed while it ran. */
static stet_status still_same(const stet_backend_local *b, const stet_function *f, stet_repo *remote,
                              const stet_orch_job *j, const stet_task *t, stet_error *err) {
    char now[STET_HASH_HEX] = "";
    const char *stamp = stet_task_note(t, 1);
    made_with made = {stet_value_null(), stet_value_null()};
    stet_status status = f->in_place ? made_of(remote, j, &made, err) : STET_OK;
    if (status == STET_OK)
        status = same_code(b, remote, made.code, err);
    if (status == STET_OK && f->in_place)
        stamp_code(b, made.code, false, now);
    bool touched =
        f->in_place && stamp && strncmp(stamp, STAMP, strlen(STAMP)) == 0 && strcmp(stamp + strlen(STAMP), now) != 0;
    if (status == STET_OK && (touched || stet_task_exit(t)->moved)) { /* they are the same again */
        status = stet_fail(err, STET_BUSY, "a file that the call was made with was another one while it ran");
        stet_hint(err, "make the call again when its files hold still");
    }
    made_release(&made);
    return status;
}

/* A task that has ended. */
static stet_status conclude(const stet_backend_local *b, const stet_orch_job *j, stet_repo *remote, const stet_task *t,
                            stet_job_status *status, stet_value *value, stet_error *err) {
    const stet_task_end *e = stet_task_exit(t);
    stet_function f;
    stet_error inner = STET_ERROR_INIT;
    stet_status st = stet_function_parse(j->function, &f, err);
    if (st != STET_OK)
        return st;
    bool badly = e->state == STET_TASK_REFUSED || e->timed_out || e->exit.signalled || e->exit.code != 0;
    st = e->state == STET_TASK_REFUSED ? STET_OK : still_same(b, &f, remote, j, t, &inner);
    if (st == STET_FAILED || st == STET_BUSY) { /* whether it ended well or not: it was another call */
        *status = st == STET_FAILED ? STET_JOB_FAILED : STET_JOB_AGAIN;
        *value = failure(inner.message);
        st = STET_OK;
    } else if (st == STET_OK && badly) {
        *status = class_of(b, &f, e);
        *value = ended_badly(b, &f, remote, j, t);
    } else if (st == STET_OK && (st = gather(remote, &f, t, value, &inner)) == STET_OK) {
        *status = STET_JOB_OK;
    } else if (st == STET_NOT_FOUND || st == STET_INVALID || st == STET_LIMIT || st == STET_BUSY) {
        *status = st == STET_BUSY ? STET_JOB_AGAIN : STET_JOB_ERROR; /* busy: this machine, not the job */
        *value = failure(inner.message);
        st = STET_OK;
    }
    if (st == STET_OK)
        stet_error_clear(&inner);
    stet_error_move(err, &inner);
    stet_function_release(&f);
    return st;
}

/* Was it started for an earlier attempt, and did it end in a failure that is not kept? Whoever ended that attempt was
 * killed before the journal said so: nobody may be told of it again. */
static stet_status is_told(const stet_backend_local *b, const stet_orch_job *j, stet_repo *remote, const job *there,
                           bool *out, stet_error *err) {
    const char *note = there->task ? stet_task_note(there->task, 0) : NULL;
    stet_job_status how = STET_JOB_RUNNING;
    stet_value value = stet_value_null();
    *out = false;
    if (!note || strncmp(note, ATTEMPT, strlen(ATTEMPT)) != 0 ||
        strtoll(note + strlen(ATTEMPT), NULL, 10) == j->attempt ||
        stet_task_exit(there->task)->state == STET_TASK_RUNNING)
        return STET_OK;
    stet_status status = conclude(b, j, remote, there->task, &how, &value, err);
    stet_value_release(value);
    *out = status == STET_OK && (how == STET_JOB_FAILED || how == STET_JOB_AGAIN);
    return status;
}

static void let_go(stet_backend_local *b, job *there) {
    if (there->task)
        stet_local_collected(there->local, there->task);
    drop_job(b, there);
}

static stet_status local_submit(void *ctx, const stet_orch_job *j, stet_repo *remote,
                                stet_status (*still_mine)(void *ctx, stet_error *err), void *mine_ctx,
                                stet_value *identity, stet_error *err) {
    stet_backend_local *b = ctx;
    stet_lock *lock = NULL;
    job *there = NULL;
    stet_function f = {0};
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
    bool told = false;
    if (status == STET_OK && there)
        status = is_told(b, j, remote, there, &told, err);
    if (told) {
        let_go(b, there);
        there = NULL;
    }
    if (status == STET_OK && !there)
        status = still_mine(mine_ctx, err);
    if (status == STET_OK && !there) {
        status = stet_function_parse(j->function, &f, &inner);
        if (status == STET_OK)
            status = start(b, j, remote, &f, &inner);
        /* What can't run as it is is a job that failed: nobody waits for it. */
        bool later = status == STET_BUSY || status == STET_IO || status == STET_CONFLICT || status == STET_INTERNAL;
        if (status != STET_OK && !later) {
            *stet_vec_add(&b->jobs) = (job){.key = j->key, .refused = stet_strdup(inner.message)};
            stet_error_clear(&inner);
            status = STET_OK;
        }
        stet_error_move(err, &inner);
        stet_function_release(&f);
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

static stet_status local_poll(void *ctx, const stet_orch_job *j, stet_repo *remote, stet_job_status *status,
                              stet_value *value, stet_error *err) {
    stet_backend_local *b = ctx;
    job *there;
    stet_status st = find(b, j->key, &there, err);
    if (st != STET_OK)
        return st;
    *status = STET_JOB_GONE;
    if (!there)
        return STET_OK;
    if (there->refused) {
        *status = b->one_of_many ? STET_JOB_AGAIN : STET_JOB_FAILED;
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
    if (is_void(there->task)) {
        stet_local_collected(there->local, there->task);
        drop_job(b, there);
        return STET_OK;
    }
    return conclude(b, j, remote, there->task, status, value, err);
}

/* Only now: until it is forgotten, the result is read from the same file. */
static void shorten_log(const stet_backend_local *b, stet_hash key, const char *stream) {
    char *path = stet_backend_local_log(b->dir, key, stream);
    struct stat st;
    if (stet_sys_stat(path, &st) == 0 && (int64_t)st.st_size > STET_LOG_MAX) {
        char *note = stet_asprintf("\n(%lld more bytes)\n", (long long)((int64_t)st.st_size - STET_LOG_MAX));
        int fd = stet_sys_open(path, O_WRONLY, 0);
        if (fd >= 0 && stet_sys_ftruncate(fd, STET_LOG_MAX) == 0 &&
            stet_sys_pwrite(fd, note, strlen(note), STET_LOG_MAX) < 0) {
            /* it is shorter all the same */
        }
        if (fd >= 0)
            stet_sys_close(fd);
        stet_free(note);
    }
    stet_free(path);
}

static stet_value local_progress(void *ctx, const stet_orch_job *j) {
    const stet_backend_local *b = ctx;
    return stet_backend_local_progress(b->dir, j->key);
}

static void local_forget(void *ctx, const stet_orch_job *j) {
    stet_backend_local *b = ctx;
    job *there = known(b, j->key);
    if (there)
        let_go(b, there);
    shorten_log(b, j->key, "out");
    shorten_log(b, j->key, "err");
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

const stet_backend stet_backend_local_kind = {.submit = local_submit,
                                              .poll = local_poll,
                                              .cancel = local_cancel,
                                              .progress = local_progress,
                                              .forget = local_forget};
