/* command_kind.c - the module kind `command`: what it keeps per process, and how runs begin and are stopped. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module/bound.h"
#include "module/command_run.h"
#include "os/file.h"
#include "persist/project_dir.h"

#define VERSION   "2"
#define CANCEL_MS 2000

static stet_status command_open(const stet_module_host *host, void **state, stet_error *err) {
    command_state *s = stet_alloc_zero(sizeof *s);
    s->host = *host;
    s->root = stet_strdup(host->project_root);
    s->temp_dir = stet_strdup(host->temp_dir);
    s->lists = stet_project_path(host->project, "local/exec/lists");
    s->files = host->files;
    stet_value v = stet_value_get(host->config, "hardlink");
    s->hardlink = stet_value_as_bool(v);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    stet_value jobs = stet_value_get(host->config, "jobs");
    s->jobs = host->jobs > 0                                                          ? (size_t)host->jobs
              : stet_value_type(jobs) == STET_TYPE_INT && stet_value_as_int(jobs) > 0 ? (size_t)stet_value_as_int(jobs)
              : cores <= 1                                                            ? 2
              : cores == 2                                                            ? 3
                                                                                      : (size_t)cores + 2;
    stet_status status = STET_OK;
    if (!s->files || !host->loop)
        status = stet_fail(err, STET_UNSUPPORTED, "commands need the files of a project and an event loop");
    if (status == STET_OK) {
        uv_timer_init(host->loop, &s->timer);
        s->timer.data = s;
        *state = s;
        return STET_OK;
    }
    stet_free(s->root);
    stet_free(s->temp_dir);
    stet_free(s->lists);
    stet_free(s);
    return status;
}

/* What running needs, with the first run: whoever only sets nodes up leaves no trace. */
static stet_status make_ready(command_state *s, stet_error *err) {
    if (s->local)
        return STET_OK;
    char *dir = stet_project_path(s->host.project, "local/exec");
    stet_status status = stet_file_mkdirs(dir, 0755, err);
    if (status == STET_OK)
        status = stet_file_mkdirs(s->temp_dir, 0755, err);
    if (status == STET_OK)
        status = stet_files_commands(s->files, &s->lock, err);
    if (status == STET_OK && !s->persist)
        status = stet_persist_open_project(s->host.project, false, NULL, NULL, &s->persist, err);
    if (status == STET_OK)
        status = stet_local_open(dir, &s->local, err);
    stet_free(dir);
    return status;
}

static void command_close(void *state) {
    command_state *s = state;
    assert(s->active.len == 0);
    command_stop_polling(s);
    uv_timer_stop(&s->timer);
    uv_close((uv_handle_t *)&s->timer, NULL);
    uv_run(s->host.loop, UV_RUN_NOWAIT); /* handles are closed by the loop */
    stet_local_close(s->local);
    if (s->locked)
        stet_lock_drop(s->lock);
    stet_persist_close(s->persist);
    stet_error_clear(&s->unseen);
    command_release_claims(s);
    stet_vec_release(&s->queue);
    stet_vec_release(&s->active);
    stet_free(s->root);
    stet_free(s->temp_dir);
    stet_free(s->lists);
    stet_free(s);
}

/* Others may run commands now, and whoever watches may look at what these have written. */
static void command_pause(void *state) {
    command_state *s = state;
    if (s->active.len == 0 && s->locked) {
        stet_lock_drop(s->lock);
        s->locked = false;
    }
}

static void command_stored(void *state, const char *name) {
    static const char *const none[] = {NULL};
    command_state *s = state;
    if (s->local)
        stet_local_discard(s->local, name, none);
}

static void command_idle(void *state) {
    command_state *s = state;
    if (s->active.len == 0) /* what follows may be another graph */
        command_release_claims(s);
    command_pause(s);
}

static stet_input_use command_use(stet_value descriptor, const char *input, size_t len) {
    (void)descriptor;
    (void)input;
    (void)len;
    return STET_INPUT_ALWAYS;
}

static stet_status command_fingerprint(void *state, stet_value descriptor, stet_hash *out, stet_error *err) {
    (void)state;
    (void)err;
    stet_value v = stet_value_array();
    stet_value_push(&v, stet_value_string("command " VERSION));
    stet_value_push(&v, stet_value_retain(descriptor));
    *out = stet_hash_value(v);
    stet_value_release(v);
    return STET_OK;
}

/* Scripts and programs that nobody has followed get their documents before the command runs: a document that comes to
 * be while it runs would be a change to what it reads. */
static stet_status follow_scripts(command_state *s, const command_spec *spec, bool *fresh, stet_error *err) {
    STET_VEC(const char *) paths = {0};
    STET_VEC(stet_look) looks = {0};
    bool absent = false;
    for (size_t i = 0; i < spec->scripts.len; i++) {
        stet_look known;
        if (stet_files_known(s->files, spec->scripts.at[i].path, &known))
            continue;
        *stet_vec_add(&paths) = spec->scripts.at[i].path;
        *stet_vec_add(&looks) = spec->scripts.at[i].look;
        absent |= !stet_look_there(&spec->scripts.at[i].look);
    }
    stet_status status = STET_OK;
    if (paths.len)
        status = stet_files_update(s->files, paths.at, looks.at, paths.len, err);
    if (status == STET_OK && spec->new_tools)
        status = stet_files_rematch(s->files, err);
    if (status == STET_OK && (absent || spec->new_tools)) /* known from the index alone */
        status = stet_files_keep(s->files, err);
    *fresh = paths.len > 0 || spec->new_tools;
    stet_vec_release(&paths);
    stet_vec_release(&looks);
    return status;
}

static stet_status command_start(void *state, stet_run *run, stet_error *err) {
    command_state *s = state;
    command_run *c = stet_alloc_zero(sizeof *c);
    c->run = run;
    c->state = s;
    c->result = stet_value_null();
    *stet_vec_add(&s->active) = c;
    stet_error own = STET_ERROR_INIT; /* of what running needs, whatever is run */
    stet_status status = make_ready(s, &own);
    if (status != STET_OK) {
        command_decline_run(c, &own);
        return STET_OK;
    }
    status = stet_bound_ready(run, s->files, err);
    if (status == STET_OK)
        status = command_evaluate(run, s->root, s->lists, s->files, &c->suspects, &c->spec, err);
    bool fresh = false;
    if (status == STET_OK)
        status = follow_scripts(s, &c->spec, &fresh, err);
    if (status == STET_OK && fresh) { /* what it reads from now on is in documents */
        command_spec_release(&c->spec);
        status = stet_run_refresh(run, err);
        if (status == STET_OK)
            status = command_evaluate(run, s->root, s->lists, s->files, &c->suspects, &c->spec, err);
    }
    if (stet_run_waits(run)) {
        stet_error why = STET_ERROR_INIT;
        if (status != STET_OK && err)
            stet_error_clear(err);
        stet_fail(&why, STET_CANCELLED, "%s: it waits", run->name);
        command_decline_run(c, &why);
        return STET_OK;
    }
    if (status != STET_OK) {
        command_run_free(c);
        return status;
    }
    command_step(c);
    return STET_OK;
}

/* A dependency file tells of more when the command has run. */
static bool command_reads_first(stet_value descriptor) {
    return !stet_value_find(descriptor, "depfile", 7, NULL);
}

static void command_cancel(void *state, stet_run *run) {
    command_state *s = state;
    for (size_t i = 0; i < s->active.len; i++) {
        command_run *c = s->active.at[i];
        if (c->run != run || c->cancelled)
            continue;
        c->cancelled = true;
        if (c->task)
            stet_local_cancel(s->local, c->task, CANCEL_MS);
        for (size_t k = 0; k < s->queue.len; k++)
            if (s->queue.at[k] == c) {
                memmove(s->queue.at + k, s->queue.at + k + 1, (--s->queue.len - k) * sizeof *s->queue.at);
                stet_error err = STET_ERROR_INIT;
                stet_fail(&err, STET_CANCELLED, "%s: stopped before it began", run->name);
                command_decline_run(c, &err);
                return;
            }
        return;
    }
}

const stet_module_kind stet_module_command = {.version = STET_MODULE_VERSION,
                                              .type = "command",
                                              .asynchronous = true,
                                              .sees_files = true,
                                              .open = command_open,
                                              .close = command_close,
                                              .check = command_check,
                                              .use = command_use,
                                              .fingerprint = command_fingerprint,
                                              .start = command_start,
                                              .cancel = command_cancel,
                                              .stored = command_stored,
                                              .idle = command_idle,
                                              .pause = command_pause,
                                              .names = command_names,
                                              .reads_first = command_reads_first};
