/* Invariants
 *  R1  A run's directory appears under its id only with a whole state.json in it, and with its lock taken.
 *  R2  state.json is replaced only by whoever holds driver.lock.
 *  R3  events.jsonl gets the lines of a change before the state.json that shows it.
 *  R4  After the first failure nothing is written any more: the disk keeps the last whole state.
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
#include "base/map.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "os/proc.h"

#define CANCEL_LOOK_US  250000
#define EVENTS_MAX      ((size_t)8 << 20)
#define EVENTS_FLUSH    ((size_t)64 << 10)
#define OWNER_MAX       ((size_t)4096)
#define CREATE_ATTEMPTS 8
#define LOCK_WAIT_MS    200
#define ACTIVE_MEMBER   "activeMs"

struct stet_runfile {
    char id[STET_RUN_ID_MAX + 1];
    char *dir, *state_path, *events_path, *cancel_path;
    char *log_path; /* the last one handed out */
    stet_lock *lock;
    stet_value state; /* without the four below, which change often */
    stet_value tasks, feedback, commits, summary;
    stet_map task_index; /* id -> position in tasks */
    stet_buf events;     /* lines that are not in the file yet */
    bool dirty;
    int64_t written_us, opened_us, cancel_looked_us;
    bool cancelled;
    stet_error failure; /* sticks */
};

static stet_value now_value(void) {
    char text[STET_TIME_TEXT];
    stet_time_print(stet_clock_ms(), text);
    return stet_string(text);
}

/* A string from whoever calls, which may not be UTF-8 (a user's name, a path). */
static stet_value text_value(const char *s) {
    stet_value v;
    if (s == NULL)
        return stet_null();
    if (stet_string_checked(s, strlen(s), &v, NULL) == STET_OK)
        return v;
    stet_buf b = STET_BUF(0);
    for (; *s != 0; s++)
        stet_buf_char(&b, (unsigned char)*s < 0x80 ? *s : '?');
    v = stet_string_n(stet_buf_cstr(&b), b.len);
    stet_buf_release(&b);
    return v;
}

static const char *user_name(void) {
    const char *name = getenv("USER");
    if (name == NULL || *name == 0)
        name = getenv("LOGNAME");
    return name != NULL && *name != 0 ? name : "unknown";
}

static void host_name(char out[65]) {
    if (gethostname(out, 65) != 0)
        out[0] = 0;
    out[64] = 0;
}

static bool good(const stet_runfile *run) {
    return run->failure.status == STET_OK;
}

static stet_status sticky(const stet_runfile *run, stet_error *err) {
    if (good(run))
        return STET_OK;
    stet_status st = stet_fail(err, run->failure.status, "%s", run->failure.message);
    if (run->failure.hint[0] != 0)
        stet_hint(err, "%s", run->failure.hint);
    return st;
}

static void compose(stet_runfile *run) {
    stet_put(&run->state, "tasks", stet_retain(run->tasks));
    stet_put(&run->state, "feedback", stet_retain(run->feedback));
    stet_put(&run->state, "commits", stet_retain(run->commits));
    stet_put(&run->state, "summary", stet_retain(run->summary));
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

static stet_status write_state(stet_runfile *run, const char *path) {
    int64_t now = stet_clock_monotonic_us();
    stet_value active = stet_get(run->summary, ACTIVE_MEMBER);
    stet_put(&run->summary, ACTIVE_MEMBER, stet_int(stet_as_int(active) + (now - run->opened_us) / 1000));
    run->opened_us = now;
    stet_put(&run->state, "updatedAt", now_value());
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
    if (good(run) && write_events(run) == STET_OK && run->dirty && write_state(run, run->state_path) == STET_OK) {
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

static void changed(stet_runfile *run, bool matters) {
    run->dirty = true;
    if (matters && stet_runfile_flush(run, NULL) != STET_OK)
        return; /* sticks */
}

void stet_runfile_event(stet_runfile *run, const char *event, stet_value fields) {
    if (!good(run))
        return;
    stet_value line = stet_typeof(fields) == STET_OBJECT ? stet_retain(fields) : stet_object();
    stet_put(&line, "at", now_value());
    stet_put(&line, "event", stet_string(event));
    stet_json_write(&run->events, line, STET_JSON_CANONICAL);
    stet_buf_char(&run->events, '\n');
    stet_release(line);
    if (run->events.len >= EVENTS_FLUSH && write_events(run) != STET_OK)
        return; /* sticks */
}

static stet_status take_lock(stet_runfile *run, const char *dir, const char *actor, stet_error *err) {
    char *path = stet_file_join(dir, "driver.lock");
    stet_status st = stet_lock_open(path, STET_LOCK_PLAIN, &run->lock, err);
    if (st == STET_OK) {
        stet_error why = STET_ERROR_INIT;
        st = stet_lock_take(run->lock, STET_LOCK_EXCLUSIVE, LOCK_WAIT_MS, &why);
        if (st == STET_BUSY) {
            stet_value owner;
            stet_buf b = STET_BUF(1024);
            stet_runfile_driver(dir, &owner);
            stet_runfile_owner_text(owner, &b);
            st = stet_fail(err, STET_BUSY, "run %s is being driven by %s", run->id, stet_buf_cstr(&b));
            stet_hint(err, "wait for it, or ask it to stop: stet runs cancel %s", run->id);
            stet_detail(err, "owner", owner);
            stet_buf_release(&b);
            stet_error_clear(&why);
        } else
            stet_error_move(err, &why);
    }
    if (st == STET_OK) {
        char host[65];
        host_name(host);
        stet_value owner = stet_object();
        stet_put(&owner, "process", stet_proc_id_value(stet_proc_self()));
        stet_put(&owner, "host", text_value(host));
        stet_put(&owner, "actor", text_value(actor));
        stet_put(&owner, "since", now_value());
        stet_buf b = STET_BUF(0);
        stet_json_write(&b, owner, STET_JSON_CANONICAL);
        stet_buf_char(&b, '\n');
        stet_release(owner);
        int fd = stet_sys_open(path, O_WRONLY | O_NOFOLLOW | O_TRUNC, 0644);
        if (fd < 0)
            st = stet_fail_errno(err, errno, "%s", path);
        else {
            st = stet_file_write_all(fd, path, b.data, b.len, err);
            stet_sys_close(fd);
        }
        stet_buf_release(&b);
    }
    stet_free(path);
    return st;
}

stet_driver_state stet_runfile_driver(const char *run_dir, stet_value *owner) {
    char *path = stet_file_join(run_dir, "driver.lock");
    int fd = stet_sys_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    stet_free(path);
    if (owner != NULL)
        *owner = stet_null();
    if (fd < 0)
        return STET_DRIVER_NONE;
    stet_value said = stet_null();
    char text[OWNER_MAX];
    size_t len = 0;
    if (stet_file_read_all(fd, "driver.lock", text, sizeof text, &len, NULL) == STET_OK)
        if (stet_json_read(text, len, NULL, &said, NULL) != STET_OK)
            said = stet_null();
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    /* Asking is not taking: nobody who wants to drive is held up by a reader. */
    bool asked = stet_sys_fcntl_lock(fd, F_OFD_GETLK, &lock) == 0;
    stet_sys_close(fd);
    stet_driver_state state = STET_DRIVER_UNKNOWN;
    stet_proc_id id;
    if (asked && lock.l_type != F_UNLCK)
        state = STET_DRIVER_ALIVE;
    else if (asked && stet_proc_id_of_value(stet_get(said, "process"), &id)) {
        char host[65];
        host_name(host);
        stet_value named = stet_get(said, "host");
        const char *name = stet_as_string(&named, NULL);
        /* Another boot id under this host's name is this machine before its restart. */
        if (id.boot == stet_proc_self().boot || (name != NULL && strcmp(name, host) == 0))
            state = STET_DRIVER_GONE;
    }
    if (owner != NULL)
        *owner = said;
    else
        stet_release(said);
    return state;
}

void stet_runfile_owner_text(stet_value owner, stet_buf *out) {
    stet_proc_id id;
    stet_value host = stet_get(owner, "host"), since = stet_get(owner, "since");
    if (!stet_proc_id_of_value(stet_get(owner, "process"), &id)) {
        stet_buf_str(out, "somebody");
        return;
    }
    stet_buf_printf(out, "process %lld", (long long)id.pid);
    if (stet_typeof(host) == STET_STRING)
        stet_buf_printf(out, " on %.64s", stet_as_string(&host, NULL));
    if (stet_typeof(since) == STET_STRING)
        stet_buf_printf(out, " since %.32s", stet_as_string(&since, NULL));
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
    return stet_typeof(v) == STET_OBJECT ? stet_retain(v) : stet_object();
}

static stet_value first_state(const stet_project *p, const char *id, const stet_runfile_spec *spec) {
    const char *workflow = spec->workflow_id ? spec->workflow_id : spec->app_id;
    const char *title = spec->title ? spec->title : spec->app_title;
    stet_value s = stet_object(), app = stet_object(), now = now_value();
    stet_put(&s, "schemaVersion", stet_int(STET_STATE_VERSION));
    stet_put(&s, "id", stet_string(id));
    stet_put(&s, "createdAt", stet_retain(now));
    stet_put(&s, "updatedAt", now);
    stet_put(&s, "repo", text_value(stet_project_root(p)));
    stet_put(&app, "id", text_value(spec->app_id));
    stet_put(&app, "version", text_value(spec->app_version));
    stet_put(&app, "title", text_value(spec->app_title));
    stet_put(&s, "app", app);
    stet_put(&s, "piece", text_value(spec->piece));
    stet_put(&s, "workflowId", text_value(workflow));
    stet_put(&s, "title", text_value(title));
    stet_put(&s, "loopStage", stet_string(stet_stage_name(spec->stage)));
    stet_put(&s, "inputs", object_or_empty(spec->inputs));
    stet_put(&s, "options", object_or_empty(spec->options));
    stet_put(&s, "labels", stet_typeof(spec->labels) == STET_ARRAY ? stet_retain(spec->labels) : stet_array());
    stet_put(&s, "provenance",
             stet_typeof(spec->provenance) == STET_OBJECT ? stet_retain(spec->provenance) : stet_null());
    stet_put(&s, "actor", text_value(spec->actor ? spec->actor : user_name()));
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
        st = take_lock(run, temp, spec->actor ? spec->actor : user_name(), err);
    }
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
        run->tasks = stet_array();
        run->feedback = stet_array();
        run->commits = stet_array();
        run->summary = stet_object();
        st = place(run, runs, spec, &why);
        if (st == STET_OK)
            break;
        stet_runfile_close(run);
        run = NULL;
        /* The same second and the same random number: once more. */
        if (st == STET_CONFLICT && attempt + 1 < CREATE_ATTEMPTS) {
            stet_error_clear(&why);
            st = STET_OK;
        } else
            stet_error_move(err, &why);
    }
    stet_free(runs);
    if (st != STET_OK)
        return st;
    stet_runfile_event(run, "created", stet_null());
    *out = run;
    return STET_OK;
}

static void take_over(stet_runfile *run, stet_state *s) {
    stet_value v;
    run->state = stet_retain(s->root);
    run->tasks = stet_retain(stet_get(s->root, "tasks"));
    v = stet_get(s->root, "feedback");
    run->feedback = stet_typeof(v) == STET_ARRAY ? stet_retain(v) : stet_array();
    v = stet_get(s->root, "commits");
    run->commits = stet_typeof(v) == STET_ARRAY ? stet_retain(v) : stet_array();
    run->summary = object_or_empty(stet_get(s->root, "summary"));
    for (size_t i = 0; i < stet_count(run->tasks); i++) {
        stet_value id = stet_get(stet_at(run->tasks, i), "id");
        size_t len;
        const char *text = stet_as_string(&id, &len);
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
    /* Nothing is created beside a state that can't be trusted; and it is read again under the lock. */
    if (st == STET_OK)
        st = stet_state_read(run->state_path, id, NULL, &s, err);
    if (st == STET_OK) {
        stet_state_release(&s);
        st = take_lock(run, dir, user_name(), err);
    }
    if (st == STET_OK)
        st = stet_state_read(run->state_path, id, NULL, &s, err);
    if (st == STET_OK)
        st = stet_file_remove(run->cancel_path, err);
    stet_free(dir);
    stet_free(runs);
    if (st != STET_OK) {
        if (s.fingerprint.bytes[0] != 0 || stet_typeof(s.root) != STET_NULL)
            stet_state_release(&s);
        stet_runfile_close(run);
        return st;
    }
    take_over(run, &s);
    stet_runfile_event(run, "resumed", stet_null());
    for (size_t i = 0; i < stet_count(run->tasks); i++) {
        stet_value task = stet_at(run->tasks, i), task_id = stet_get(task, "id");
        stet_task_status status;
        if (stet_task_status_of(stet_get(task, "status"), &status) && status == STET_TASK_RUNNING) {
            char *copy = stet_strdup(stet_as_string(&task_id, NULL));
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
    stet_release(run->state);
    stet_release(run->tasks);
    stet_release(run->feedback);
    stet_release(run->commits);
    stet_release(run->summary);
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

static stet_value find_task(const stet_runfile *run, const char *id, size_t *index) {
    stet_slot *slot = stet_map_get(&run->task_index, id, strlen(id));
    if (slot == NULL)
        return stet_null();
    *index = (size_t)slot->n;
    return stet_at(run->tasks, *index);
}

bool stet_runfile_has_task(const stet_runfile *run, const char *id, stet_task_status *status) {
    size_t index;
    stet_value task = find_task(run, id, &index);
    if (stet_typeof(task) != STET_OBJECT)
        return false;
    return status == NULL || stet_task_status_of(stet_get(task, "status"), status);
}

void stet_runfile_task(stet_runfile *run, const char *id, const stet_task_spec *spec) {
    size_t index;
    if (stet_typeof(find_task(run, id, &index)) == STET_OBJECT)
        return;
    stet_task_spec none = {0};
    if (spec == NULL)
        spec = &none;
    stet_value task = stet_object();
    stet_put(&task, "id", text_value(id));
    stet_put(&task, "action", text_value(spec->action ? spec->action : id));
    if (spec->kind != NULL)
        stet_put(&task, "kind", text_value(spec->kind));
    if (spec->verifier)
        stet_put(&task, "verifier", stet_bool(true));
    stet_put(&task, "status", stet_string(stet_task_status_name(STET_TASK_PENDING)));
    stet_put(&task, "attempt", stet_int(0));
    stet_map_put(&run->task_index, id, strlen(id), (stet_slot){.n = stet_count(run->tasks)});
    stet_push(&run->tasks, task);
    changed(run, false);
}

/* Moves a task to a status; `task` is its object out of the array, so that changing it copies nothing. */
static stet_value take_task(stet_runfile *run, const char *id, size_t *index) {
    stet_runfile_task(run, id, NULL);
    stet_value task = stet_retain(find_task(run, id, index));
    stet_put_at(&run->tasks, *index, stet_null());
    return task;
}

static void move_task(stet_runfile *run, size_t index, stet_value task, stet_task_status to) {
    stet_value line = stet_object(), error = stet_get(task, "error");
    stet_put(&line, "task", stet_retain(stet_get(task, "id")));
    stet_put(&line, "from", stet_retain(stet_get(task, "status")));
    stet_put(&line, "to", stet_string(stet_task_status_name(to)));
    stet_put(&line, "attempt", stet_retain(stet_get(task, "attempt")));
    if (stet_typeof(error) != STET_NULL)
        stet_put(&line, "error", stet_retain(error));
    stet_put(&task, "status", stet_string(stet_task_status_name(to)));
    stet_put_at(&run->tasks, index, task);
    stet_runfile_event(run, "task", line);
    stet_release(line);
}

void stet_runfile_task_start(stet_runfile *run, const char *id) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_put(&task, "attempt", stet_int(stet_as_int(stet_get(task, "attempt")) + 1));
    stet_put(&task, "startedAt", now_value());
    stet_remove(&task, "endedAt", 7);
    stet_remove(&task, "error", 5);
    stet_remove(&task, "result", 6);
    move_task(run, index, task, STET_TASK_RUNNING);
    changed(run, false);
}

static void resolve_feedback(stet_runfile *run, const char *id) {
    for (size_t i = 0; i < stet_count(run->feedback); i++) {
        stet_value f = stet_at(run->feedback, i), task = stet_get(f, "task"), status = stet_get(f, "status");
        const char *of = stet_as_string(&task, NULL), *is = stet_as_string(&status, NULL);
        if (of == NULL || strcmp(of, id) != 0 || is == NULL || strcmp(is, "resolved") == 0)
            continue;
        stet_value copy = stet_retain(f);
        stet_put(&copy, "status", stet_string("resolved"));
        stet_put(&copy, "resolvedAt", now_value());
        stet_put_at(&run->feedback, i, copy);
    }
}

void stet_runfile_task_done(stet_runfile *run, const char *id, const stet_hash *result) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    char hex[STET_HASH_HEX];
    if (result != NULL) {
        stet_hash_hex(*result, hex);
        stet_put(&task, "result", stet_string(hex));
    }
    stet_put(&task, "endedAt", now_value());
    stet_remove(&task, "error", 5);
    move_task(run, index, task, STET_TASK_COMPLETED);
    resolve_feedback(run, id);
    changed(run, false);
}

/* One open message per task: a second failure says the news in place of the old. */
static void open_feedback(stet_runfile *run, const char *id, const char *message) {
    for (size_t i = 0; i < stet_count(run->feedback); i++) {
        stet_value f = stet_at(run->feedback, i), task = stet_get(f, "task"), status = stet_get(f, "status");
        const char *of = stet_as_string(&task, NULL), *is = stet_as_string(&status, NULL);
        if (of == NULL || strcmp(of, id) != 0 || is == NULL || strcmp(is, "resolved") == 0)
            continue;
        stet_value copy = stet_retain(f);
        stet_put(&copy, "message", text_value(message));
        stet_put_at(&run->feedback, i, copy);
        return;
    }
    stet_value f = stet_object();
    stet_put(&f, "id", stet_stringf("feedback-%zu", stet_count(run->feedback) + 1));
    stet_put(&f, "task", text_value(id));
    stet_put(&f, "status", stet_string("open"));
    stet_put(&f, "message", text_value(message));
    stet_put(&f, "createdAt", now_value());
    stet_push(&run->feedback, f);
}

static void fail_task(stet_runfile *run, const char *id, const stet_error *why) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_put(&task, "error", stet_error_value(why));
    stet_put(&task, "endedAt", now_value());
    move_task(run, index, task, STET_TASK_FAILED);
}

void stet_runfile_task_failed(stet_runfile *run, const char *id, const stet_error *why) {
    fail_task(run, id, why);
    open_feedback(run, id, why->message);
    changed(run, true);
}

void stet_runfile_task_skipped(stet_runfile *run, const char *id, const char *why) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_put(&task, "reason", text_value(why));
    stet_put(&task, "endedAt", now_value());
    move_task(run, index, task, STET_TASK_SKIPPED);
    resolve_feedback(run, id);
    changed(run, false);
}

void stet_runfile_task_reset(stet_runfile *run, const char *id) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_remove(&task, "endedAt", 7);
    stet_remove(&task, "error", 5);
    stet_remove(&task, "reason", 6);
    stet_remove(&task, "result", 6);
    move_task(run, index, task, STET_TASK_PENDING);
    changed(run, false);
}

const char *stet_runfile_task_log(stet_runfile *run, const char *id) {
    if (!good(run))
        return NULL;
    char *logs = stet_file_join(run->dir, "logs");
    stet_status st = stet_file_mkdirs(logs, 0755, &run->failure);
    if (st == STET_OK) {
        /* Any task id becomes a name: what a name may hold of it, and a piece of its hash. */
        char name[96], hex[STET_HASH_HEX];
        size_t n = 0;
        for (const char *s = id; *s != 0 && n < 48; s++)
            name[n++] = stet_run_id_valid(s, 1) && *s != ':' ? *s : '-';
        stet_hash_hex(stet_hash_of(id, strlen(id)), hex);
        snprintf(name + n, sizeof name - n, "%s%.8s.log", n > 0 ? "-" : "", hex);
        stet_free(run->log_path);
        run->log_path = stet_file_join(logs, name);
        size_t index;
        stet_value task = take_task(run, id, &index);
        stet_put(&task, "log", stet_stringf("logs/%s", name));
        stet_put_at(&run->tasks, index, task);
        changed(run, false);
    }
    stet_free(logs);
    return st == STET_OK ? run->log_path : NULL;
}

void stet_runfile_stage(stet_runfile *run, stet_stage stage) {
    stet_value now = stet_get(run->state, "loopStage");
    const char *text = stet_as_string(&now, NULL);
    if (text != NULL && strcmp(text, stet_stage_name(stage)) == 0)
        return;
    stet_put(&run->state, "loopStage", stet_string(stet_stage_name(stage)));
    stet_value fields = stet_object();
    stet_put(&fields, "stage", stet_string(stet_stage_name(stage)));
    stet_runfile_event(run, "stage", fields);
    stet_release(fields);
    changed(run, true);
}

void stet_runfile_count(stet_runfile *run, const char *name, int64_t add) {
    stet_value v = stet_get(run->summary, name);
    stet_put(&run->summary, name, stet_int(stet_as_int(v) + add));
    changed(run, false);
}

void stet_runfile_summary(stet_runfile *run, const char *name, stet_value item) {
    stet_put(&run->summary, name, item);
    changed(run, false);
}

bool stet_runfile_commit(stet_runfile *run, const stet_hash *result) {
    stet_value checks = stet_array();
    bool gated = false, passed = true;
    for (size_t i = 0; i < stet_count(run->tasks); i++) {
        stet_value task = stet_at(run->tasks, i), check;
        stet_task_status status;
        if (!stet_as_bool(stet_get(task, "verifier")))
            continue;
        gated = true;
        passed = passed && stet_task_status_of(stet_get(task, "status"), &status) && status == STET_TASK_COMPLETED;
        check = stet_object();
        stet_put(&check, "task", stet_retain(stet_get(task, "id")));
        stet_put(&check, "status", stet_retain(stet_get(task, "status")));
        stet_push(&checks, check);
    }
    char hex[STET_HASH_HEX];
    stet_hash_hex(*result, hex);
    stet_value fields = stet_object();
    stet_put(&fields, "result", stet_string(hex));
    stet_put(&fields, "checks", stet_retain(checks));
    if (passed) {
        stet_value commit = stet_object();
        stet_put(&commit, "id", stet_stringf("commit-%zu", stet_count(run->commits) + 1));
        stet_put(&commit, "at", now_value());
        stet_put(&commit, "result", stet_string(hex));
        stet_put(&commit, "verifierGated", stet_bool(gated));
        stet_put(&commit, "checks", stet_retain(checks));
        stet_push(&run->commits, commit);
    }
    stet_runfile_event(run, passed ? "commit" : "commit-refused", fields);
    stet_release(fields);
    stet_release(checks);
    changed(run, true);
    return passed;
}

bool stet_runfile_cancelled(stet_runfile *run) {
    int64_t now = stet_clock_monotonic_us();
    if (!run->cancelled && now - run->cancel_looked_us >= CANCEL_LOOK_US) {
        run->cancel_looked_us = now;
        run->cancelled = stet_file_exists(run->cancel_path);
    }
    return run->cancelled;
}

void stet_runfile_cancel_rest(stet_runfile *run, const char *reason) {
    stet_error why = STET_ERROR_INIT;
    stet_fail(&why, STET_CANCELLED, "%s", reason != NULL ? reason : "cancelled");
    for (size_t i = 0; i < stet_count(run->tasks); i++) {
        stet_value task = stet_at(run->tasks, i), id = stet_get(task, "id");
        stet_task_status status;
        if (!stet_task_status_of(stet_get(task, "status"), &status) ||
            (status != STET_TASK_PENDING && status != STET_TASK_RUNNING))
            continue;
        char *copy = stet_strdup(stet_as_string(&id, NULL));
        fail_task(run, copy, &why);
        stet_free(copy);
    }
    stet_error_clear(&why);
    stet_runfile_event(run, "cancelled", stet_null());
    changed(run, true);
}

stet_status stet_runfile_finish(stet_runfile *run, stet_error *err) {
    /* Declared, and never needed: it stands, or what it waits for failed. Left pending it would look like work to come.
     */
    for (size_t i = 0; i < stet_count(run->tasks); i++) {
        stet_value task = stet_at(run->tasks, i), id = stet_get(task, "id");
        stet_task_status status;
        if (!stet_task_status_of(stet_get(task, "status"), &status) || status != STET_TASK_PENDING)
            continue;
        char *copy = stet_strdup(stet_as_string(&id, NULL));
        stet_runfile_task_skipped(run, copy, "the drive ended without a need for it");
        stet_free(copy);
    }
    stet_runfile_stage(run, STET_STAGE_DONE);
    run->dirty = true;
    return stet_runfile_flush(run, err);
}

stet_status stet_runfile_ask_cancel(const char *run_dir, const char *reason, stet_error *err) {
    stet_value ask = stet_object();
    stet_put(&ask, "at", now_value());
    stet_put(&ask, "actor", text_value(user_name()));
    stet_put(&ask, "reason", text_value(reason));
    stet_buf b = STET_BUF(0);
    stet_json_write(&b, ask, STET_JSON_PRETTY);
    char *path = stet_file_join(run_dir, "cancel.json");
    stet_status st = stet_file_replace(path, b.data, b.len, 0644, err);
    stet_free(path);
    stet_buf_release(&b);
    stet_release(ask);
    return st;
}
