/* run.c - creates the files of a run and replaces its state.json.
 *
 * Invariants
 *   R1  A run's directory appears under its id only with a complete state.json in it, and with its lock taken.
 *   R2  state.json is replaced only by the holder of driver.lock.
 *   R3  events.jsonl gets the lines of a change before the state.json that shows the change.
 *   R4  After the first failure nothing more is written: the disk keeps the last complete state.
 */

#include "fleet/run.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "fleet/run_internal.h"
#include "os/clock.h"
#include "os/file.h"

#define CANCEL_LOOK_US  250000
#define EVENTS_MAX      ((size_t)8 << 20)
#define EVENTS_FLUSH    ((size_t)64 << 10)
#define CREATE_ATTEMPTS 8
#define ACTIVE_MEMBER   "activeMs"

stet_value stet_runfile_now(void) {
    return stet_time_value(stet_clock_ms());
}

stet_value stet_runfile_text(const char *s) {
    stet_value v;
    if (s == NULL)
        return stet_value_null();
    if (stet_value_string_checked(s, strlen(s), &v, NULL) == STET_OK)
        return v;
    stet_buf b = STET_BUF(0);
    for (; *s != 0; s++)
        stet_buf_char(&b, (unsigned char)*s < 0x80 ? *s : '?');
    v = stet_value_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

const char *stet_runfile_user(void) {
    const char *name = getenv("USER");
    if (name == NULL || *name == 0)
        name = getenv("LOGNAME");
    return name != NULL && *name != 0 ? name : "unknown";
}

bool stet_runfile_good(const stet_runfile *run) {
    return run->failure.status == STET_OK;
}

static stet_status sticky(const stet_runfile *run, stet_error *err) {
    if (stet_runfile_good(run))
        return STET_OK;
    stet_error_copy(err, &run->failure);
    return run->failure.status;
}

static void compose(stet_runfile *run) {
    stet_value_put(&run->state, "tasks", stet_value_retain(run->tasks));
    stet_value_put(&run->state, "feedback", stet_value_retain(run->feedback));
    stet_value_put(&run->state, "commits", stet_value_retain(run->commits));
    stet_value_put(&run->state, "summary", stet_value_retain(run->summary));
}

static stet_status write_events(stet_runfile *run) {
    if (run->events.len == 0)
        return STET_OK;
    if (run->events.overflow)
        return stet_fail(&run->failure, STET_LIMIT, "%s: more than %zu bytes of events at once", run->events_path,
                         EVENTS_MAX);
    stet_status st = stet_file_append(run->events_path, run->events.data, run->events.len, false, &run->failure);
    stet_buf_clear(&run->events);
    return st;
}

void stet_runfile_write_events(stet_runfile *run) {
    if (stet_runfile_good(run) && write_events(run) != STET_OK)
        return; /* sticks */
}

static stet_status write_state(stet_runfile *run, const char *path) {
    int64_t now = stet_clock_monotonic_us();
    stet_value active = stet_value_get(run->summary, ACTIVE_MEMBER);
    stet_value_put(&run->summary, ACTIVE_MEMBER,
                   stet_value_int(stet_value_as_int(active) + (now - run->opened_us) / 1000));
    run->opened_us = now;
    stet_value_put(&run->state, "updatedAt", stet_runfile_now());
    compose(run);
    stet_buf b = STET_BUF(0);
    stet_json_write(&b, run->state, STET_JSON_PRETTY);
    stet_status st = STET_OK;
    if (b.overflow || b.len > STET_STATE_MAX_BYTES)
        st = stet_fail(&run->failure, STET_LIMIT, "%s: %zu bytes, more than the %zu that a run's state may have", path,
                       b.len, STET_STATE_MAX_BYTES);
    else
        st = stet_file_replace(path, b.data, b.len, 0644, &run->failure);
    stet_buf_release(&b);
    return st;
}

stet_status stet_runfile_flush(stet_runfile *run, stet_error *err) {
    if (stet_runfile_good(run) && write_events(run) == STET_OK && run->dirty &&
        write_state(run, run->state_path) == STET_OK) {
        run->dirty = false;
        run->written_us = stet_clock_monotonic_us();
    }
    return sticky(run, err);
}

stet_status stet_runfile_tick(stet_runfile *run, stet_error *err) {
    int64_t since = stet_clock_monotonic_us() - run->written_us;
    if (run->dirty && since < (int64_t)STET_RUNFILE_THROTTLE_MS * 1000)
        return sticky(run, err);
    return stet_runfile_flush(run, err);
}

void stet_runfile_changed(stet_runfile *run, bool matters) {
    run->dirty = true;
    if (matters && stet_runfile_flush(run, NULL) != STET_OK)
        return; /* sticks */
}

void stet_runfile_event(stet_runfile *run, const char *event, stet_value fields) {
    if (!stet_runfile_good(run))
        return;
    stet_value line = stet_value_type(fields) == STET_TYPE_OBJECT ? stet_value_retain(fields) : stet_value_object();
    stet_value_put(&line, "at", stet_runfile_now());
    stet_value_put(&line, "event", stet_value_string(event));
    stet_json_write(&run->events, line, STET_JSON_CANONICAL);
    stet_buf_char(&run->events, '\n');
    stet_value_release(line);
    if (run->events.len >= EVENTS_FLUSH && write_events(run) != STET_OK)
        return; /* sticks */
}

static void make_id(const char *name, char out[STET_RUN_ID_MAX + 1]) {
    char clean[41];
    size_t n = 0;
    for (const char *s = name != NULL ? name : "run"; *s != 0 && n < 40; s++) {
        bool ok = stet_run_id_valid(s, 1) || *s == '.';
        /* A ":" is accepted from others and never made: some file systems refuse it. */
        clean[n++] = ok && *s != ':' ? *s : '-';
    }
    clean[n] = 0;
    time_t seconds = (time_t)(stet_clock_ms() / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    uint8_t random[4];
    char hex[9];
    stet_random(random, sizeof random);
    stet_hex_encode(random, sizeof random, hex);
    snprintf(out, STET_RUN_ID_MAX + 1, "%04d%02d%02dT%02d%02d%02dZ-%s-%s", (tm.tm_year + 1900) % 10000, tm.tm_mon + 1,
             tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, n > 0 ? clean : "run", hex);
}

static void set_paths(stet_runfile *run, const char *dir) {
    stet_free(run->dir);
    stet_free(run->state_path);
    stet_free(run->events_path);
    stet_free(run->cancel_path);
    run->dir = stet_strdup(dir);
    run->state_path = stet_file_join(dir, "state.json");
    run->events_path = stet_file_join(dir, "events.jsonl");
    run->cancel_path = stet_file_join(dir, "cancel.json");
}

static stet_runfile *new_handle(void) {
    stet_runfile *run = stet_alloc_zero(sizeof *run);
    run->events = (stet_buf)STET_BUF(EVENTS_MAX);
    run->opened_us = run->written_us = stet_clock_monotonic_us();
    run->cancel_looked_us = run->opened_us - CANCEL_LOOK_US;
    return run;
}

static stet_value object_or_empty(stet_value v) {
    return stet_value_type(v) == STET_TYPE_OBJECT ? stet_value_retain(v) : stet_value_object();
}

static stet_value first_state(const stet_project *p, const char *id, const stet_runfile_spec *spec) {
    const char *workflow = spec->workflow_id ? spec->workflow_id : spec->app_id;
    const char *title = spec->title ? spec->title : spec->app_title;
    stet_value s = stet_value_object(), app = stet_value_object(), now = stet_runfile_now();
    stet_value_put(&s, "schemaVersion", stet_value_int(STET_STATE_VERSION));
    stet_value_put(&s, "id", stet_value_string(id));
    stet_value_put(&s, "createdAt", stet_value_retain(now));
    stet_value_put(&s, "updatedAt", now);
    stet_value_put(&s, "repo", stet_runfile_text(stet_project_root(p)));
    stet_value_put(&app, "id", stet_runfile_text(spec->app_id));
    stet_value_put(&app, "version", stet_runfile_text(spec->app_version));
    stet_value_put(&app, "title", stet_runfile_text(spec->app_title));
    stet_value_put(&s, "app", app);
    stet_value_put(&s, "piece", stet_runfile_text(spec->piece));
    stet_value_put(&s, "workflowId", stet_runfile_text(workflow));
    stet_value_put(&s, "title", stet_runfile_text(title));
    stet_value_put(&s, "loopStage", stet_value_string(stet_stage_name(spec->stage)));
    stet_value_put(&s, "inputs", object_or_empty(spec->inputs));
    stet_value_put(&s, "options", object_or_empty(spec->options));
    stet_value_put(&s, "labels",
                   stet_value_type(spec->labels) == STET_TYPE_ARRAY ? stet_value_retain(spec->labels)
                                                                    : stet_value_array());
    stet_value_put(&s, "provenance",
                   stet_value_type(spec->provenance) == STET_TYPE_OBJECT ? stet_value_retain(spec->provenance)
                                                                         : stet_value_null());
    stet_value_put(&s, "actor", stet_runfile_text(spec->actor ? spec->actor : stet_runfile_user()));
    return s;
}

/* R1: everything is made under another name, which no reader takes for a run, and renamed. */
static stet_status place(stet_runfile *run, const char *runs, const stet_runfile_spec *spec, stet_error *err) {
    char *temp = stet_file_temp_name(runs, "~new");
    char *final = stet_file_join(runs, run->id);
    stet_status st = STET_OK;
    if (stet_sys_mkdir(temp, 0755) != 0)
        st = stet_fail_errno(err, errno, "%s", temp);
    if (st == STET_OK) {
        set_paths(run, temp);
        st = stet_runfile_lock(run, temp, spec->actor ? spec->actor : stet_runfile_user(), err);
    }
    bool other;
    if (st == STET_OK && spec->has_argument)
        st = stet_runfile_keep_argument(run, spec->argument, &other, err);
    if (st == STET_OK && write_state(run, run->state_path) != STET_OK)
        st = sticky(run, err);
    if (st == STET_OK && stet_sys_rename_new(temp, final) != 0)
        st = stet_fail_errno(err, errno, "%s", final);
    if (st == STET_OK) {
        set_paths(run, final);
        st = stet_file_sync_dir(runs, err);
    } else if (stet_file_remove_tree(temp, NULL) != STET_OK)
        stet_hint(err, "remove %s by hand", temp);
    stet_free(temp);
    stet_free(final);
    return st;
}

stet_status stet_runfile_create(stet_project *p, const stet_runfile_spec *spec, stet_runfile **out, stet_error *err) {
    char *runs = stet_project_path(p, "runs");
    stet_status st = stet_file_mkdirs(runs, 0755, err);
    stet_runfile *run = NULL;
    for (int attempt = 0; st == STET_OK && attempt < CREATE_ATTEMPTS; attempt++) {
        stet_error why = STET_ERROR_INIT;
        run = new_handle();
        make_id(spec->name ? spec->name : spec->app_id, run->id);
        run->state = first_state(p, run->id, spec);
        run->tasks = stet_value_array();
        run->feedback = stet_value_array();
        run->commits = stet_value_array();
        run->summary = stet_value_object();
        st = spec->named ? spec->named(spec->named_ctx, run->id, &why) : STET_OK;
        bool lost = st != STET_OK;
        if (!lost)
            st = place(run, runs, spec, &why);
        if (st == STET_OK)
            break;
        stet_runfile_close(run);
        run = NULL;
        /* Another run has the same second and random number in its id: try again. */
        if (st == STET_CONFLICT && attempt + 1 < CREATE_ATTEMPTS && !lost) {
            stet_error_clear(&why);
            st = STET_OK;
        } else
            stet_error_move(err, &why);
    }
    stet_free(runs);
    if (st != STET_OK)
        return st;
    stet_runfile_event(run, "created", stet_value_null());
    *out = run;
    return STET_OK;
}

static void take_over(stet_runfile *run, stet_state *s) {
    stet_value v;
    run->state = stet_value_retain(s->root);
    run->tasks = stet_value_retain(stet_value_get(s->root, "tasks"));
    v = stet_value_get(s->root, "feedback");
    run->feedback = stet_value_type(v) == STET_TYPE_ARRAY ? stet_value_retain(v) : stet_value_array();
    for (size_t i = 0; i < stet_value_count(run->feedback); i++)
        stet_runfile_index_feedback(run, i);
    v = stet_value_get(s->root, "commits");
    run->commits = stet_value_type(v) == STET_TYPE_ARRAY ? stet_value_retain(v) : stet_value_array();
    run->summary = object_or_empty(stet_value_get(s->root, "summary"));
    for (size_t i = 0; i < stet_value_count(run->tasks); i++) {
        stet_value id = stet_value_get(stet_value_at(run->tasks, i), "id");
        size_t len;
        const char *text = stet_value_as_string(&id, &len);
        stet_map_put(&run->task_index, text, len, (stet_slot){.n = i});
    }
    stet_state_release(s);
}

stet_status stet_runfile_open(stet_project *p, const char *id, stet_runfile **out, stet_error *err) {
    if (!stet_run_id_valid(id, strlen(id)))
        return stet_fail(err, STET_INVALID, "\"%.80s\" is no run id", id);
    char *runs = stet_project_path(p, "runs"), *dir = stet_file_join(runs, id);
    stet_runfile *run = new_handle();
    struct stat sb;
    stet_state s = {0};
    snprintf(run->id, sizeof run->id, "%s", id);
    set_paths(run, dir);
    stet_status st = STET_OK;
    if (stet_sys_lstat(dir, &sb) != 0)
        st = stet_fail_errno(err, errno, "run %s", id);
    else if (!S_ISDIR(sb.st_mode))
        st = stet_fail(err, STET_CORRUPT, "%s is no directory", dir);
    /* Read before and under the lock: nothing is created beside a state that can't be trusted. */
    if (st == STET_OK)
        st = stet_state_read(run->state_path, id, NULL, &s, err);
    if (st == STET_OK) {
        stet_state_release(&s);
        st = stet_runfile_lock(run, dir, stet_runfile_user(), err);
    }
    if (st == STET_OK)
        st = stet_state_read(run->state_path, id, NULL, &s, err);
    if (st == STET_OK)
        st = stet_state_refuse_completed(&s, id, err);
    if (st == STET_OK)
        st = stet_file_remove(run->cancel_path, err);
    stet_free(dir);
    stet_free(runs);
    if (st != STET_OK) {
        if (s.fingerprint.bytes[0] != 0 || stet_value_type(s.root) != STET_TYPE_NULL)
            stet_state_release(&s);
        stet_runfile_close(run);
        return st;
    }
    take_over(run, &s);
    stet_runfile_recall(run);
    stet_runfile_event(run, "resumed", stet_value_null());
    for (size_t i = 0; i < stet_value_count(run->tasks); i++) {
        stet_value task = stet_value_at(run->tasks, i), task_id = stet_value_get(task, "id");
        stet_task_status status;
        if (stet_task_status_of(stet_value_get(task, "status"), &status) && status == STET_TASK_RUNNING) {
            char *copy = stet_strdup(stet_value_as_string(&task_id, NULL));
            stet_runfile_task_reset(run, copy);
            stet_free(copy);
        }
    }
    *out = run;
    return STET_OK;
}

void stet_runfile_close(stet_runfile *run) {
    if (run == NULL)
        return;
    stet_lock_close(run->lock);
    stet_value_release(run->state);
    stet_value_release(run->tasks);
    stet_value_release(run->feedback);
    stet_value_release(run->commits);
    stet_value_release(run->summary);
    stet_value_release(run->effects);
    stet_map_release(&run->told_index);
    stet_map_release(&run->task_index);
    stet_buf_release(&run->events);
    stet_error_clear(&run->failure);
    stet_free(run->dir);
    stet_free(run->state_path);
    stet_free(run->events_path);
    stet_free(run->cancel_path);
    stet_free(run->log_path);
    stet_free(run);
}

const char *stet_runfile_id(const stet_runfile *run) {
    return run->id;
}

const char *stet_runfile_dir(const stet_runfile *run) {
    return run->dir;
}

stet_value stet_runfile_state(stet_runfile *run) {
    compose(run);
    return run->state;
}

bool stet_runfile_cancelled(stet_runfile *run) {
    int64_t now = stet_clock_monotonic_us();
    if (!run->cancelled && now - run->cancel_looked_us >= CANCEL_LOOK_US) {
        run->cancel_looked_us = now;
        run->cancelled = stet_file_exists(run->cancel_path);
    }
    return run->cancelled;
}
