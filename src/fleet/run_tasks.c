/* run_tasks.c - records what happens in a run: tasks and their feedback, stages, counts, commits, its end. */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fleet/run_internal.h"
#include "os/clock.h"
#include "os/file.h"

static stet_value find_task(const stet_runfile *run, const char *id, size_t *index) {
    stet_slot *slot = stet_map_get(&run->task_index, id, strlen(id));
    if (slot == NULL)
        return stet_value_null();
    *index = (size_t)slot->n;
    return stet_value_at(run->tasks, *index);
}

bool stet_runfile_has_task(const stet_runfile *run, const char *id, stet_task_status *status) {
    size_t index;
    stet_value task = find_task(run, id, &index);
    if (stet_value_type(task) != STET_TYPE_OBJECT)
        return false;
    return status == NULL || stet_task_status_of(stet_value_get(task, "status"), status);
}

void stet_runfile_task(stet_runfile *run, const char *id, const stet_task_spec *spec) {
    size_t index;
    if (stet_value_type(find_task(run, id, &index)) == STET_TYPE_OBJECT)
        return;
    stet_task_spec none = {0};
    if (spec == NULL)
        spec = &none;
    stet_value task = stet_value_object();
    stet_value_put(&task, "id", stet_runfile_text(id));
    stet_value_put(&task, "action", stet_runfile_text(spec->action ? spec->action : id));
    if (spec->kind != NULL)
        stet_value_put(&task, "kind", stet_runfile_text(spec->kind));
    if (spec->verifier)
        stet_value_put(&task, "verifier", stet_value_bool(true));
    stet_value_put(&task, "status", stet_value_string(stet_task_status_name(STET_TASK_PENDING)));
    stet_value_put(&task, "attempt", stet_value_int(0));
    stet_map_put(&run->task_index, id, strlen(id), (stet_slot){.n = stet_value_count(run->tasks)});
    stet_value_push(&run->tasks, task);
    stet_runfile_changed(run, false);
}

/* Moves a task to a status; `task` is its object out of the array, so that changing it copies nothing. */
static stet_value take_task(stet_runfile *run, const char *id, size_t *index) {
    stet_runfile_task(run, id, NULL);
    stet_value task = stet_value_retain(find_task(run, id, index));
    stet_value_put_at(&run->tasks, *index, stet_value_null());
    return task;
}

static void move_task(stet_runfile *run, size_t index, stet_value task, stet_task_status to) {
    stet_value line = stet_value_object(), error = stet_value_get(task, "error");
    stet_value_put(&line, "task", stet_value_retain(stet_value_get(task, "id")));
    stet_value_put(&line, "from", stet_value_retain(stet_value_get(task, "status")));
    stet_value_put(&line, "to", stet_value_string(stet_task_status_name(to)));
    stet_value_put(&line, "attempt", stet_value_retain(stet_value_get(task, "attempt")));
    if (stet_value_type(error) != STET_TYPE_NULL)
        stet_value_put(&line, "error", stet_value_retain(error));
    if (to == STET_TASK_COMPLETED && stet_value_type(stet_value_get(task, "result")) != STET_TYPE_NULL)
        stet_value_put(&line, "result", stet_value_retain(stet_value_get(task, "result")));
    /* Enough to know the task, if the process is killed before it writes the state. */
    static const char *const known[] = {"kind", "verifier"};
    for (size_t i = 0; i < sizeof known / sizeof *known && to == STET_TASK_RUNNING; i++)
        if (stet_value_type(stet_value_get(task, known[i])) != STET_TYPE_NULL)
            stet_value_put(&line, known[i], stet_value_retain(stet_value_get(task, known[i])));
    stet_value_put(&task, "status", stet_value_string(stet_task_status_name(to)));
    stet_value_put_at(&run->tasks, index, task);
    stet_runfile_event(run, "task", line);
    stet_value_release(line);
}

void stet_runfile_task_start(stet_runfile *run, const char *id) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_value_put(&task, "attempt", stet_value_int(stet_value_as_int(stet_value_get(task, "attempt")) + 1));
    stet_value_put(&task, "startedAt", stet_runfile_now());
    stet_value_remove(&task, "endedAt", 7);
    stet_value_remove(&task, "error", 5);
    stet_value_remove(&task, "result", 6);
    move_task(run, index, task, STET_TASK_RUNNING);
    stet_runfile_changed(run, false);
    stet_runfile_write_events(run); /* what begins is known before it begins, also after a kill */
}

void stet_runfile_replay(stet_runfile *run, stet_value line) {
    stet_value id = stet_value_get(line, "task"), kind;
    stet_task_status to;
    size_t index;
    if (stet_value_type(id) != STET_TYPE_STRING || !stet_task_status_of(stet_value_get(line, "to"), &to) ||
        stet_value_type(stet_value_get(line, "attempt")) != STET_TYPE_INT)
        return;
    char *name = stet_strdup(stet_value_as_string(&id, NULL));
    stet_task_spec spec = {.kind = stet_value_text_at(line, "kind", &kind),
                           .verifier = stet_value_as_bool(stet_value_get(line, "verifier"))};
    stet_runfile_task(run, name, &spec);
    stet_value task = take_task(run, name, &index);
    stet_value_put(&task, "attempt", stet_value_retain(stet_value_get(line, "attempt")));
    stet_value_put(&task, "status", stet_value_string(stet_task_status_name(to)));
    if (to == STET_TASK_RUNNING)
        stet_value_put(&task, "startedAt", stet_value_retain(stet_value_get(line, "at")));
    else if (to != STET_TASK_PENDING)
        stet_value_put(&task, "endedAt", stet_value_retain(stet_value_get(line, "at")));
    if (to == STET_TASK_COMPLETED && stet_value_type(stet_value_get(line, "result")) != STET_TYPE_NULL)
        stet_value_put(&task, "result", stet_value_retain(stet_value_get(line, "result")));
    if (to == STET_TASK_FAILED)
        stet_value_put(&task, "error", stet_value_retain(stet_value_get(line, "error")));
    else
        stet_value_remove(&task, "error", 5);
    stet_value_put_at(&run->tasks, index, task);
    stet_free(name);
}

void stet_runfile_index_feedback(stet_runfile *run, size_t at) {
    stet_value task = stet_value_get(stet_value_at(run->feedback, at), "task");
    size_t len;
    const char *id = stet_value_as_string(&task, &len);
    if (id != NULL && stet_map_get(&run->told_index, id, len) == NULL)
        stet_map_put(&run->told_index, id, len, (stet_slot){.n = at});
}

/* The position of the next unresolved message about the task, from `at` on; the number of messages if there is none. */
static size_t unresolved(const stet_runfile *run, const char *id, size_t at) {
    const stet_slot *first = stet_map_get(&run->told_index, id, strlen(id));
    if (first == NULL)
        return stet_value_count(run->feedback);
    if (at < first->n)
        at = (size_t)first->n;
    for (; at < stet_value_count(run->feedback); at++) {
        stet_value f = stet_value_at(run->feedback, at), task = stet_value_get(f, "task"),
                   status = stet_value_get(f, "status");
        const char *of = stet_value_as_string(&task, NULL), *is = stet_value_as_string(&status, NULL);
        if (of != NULL && strcmp(of, id) == 0 && is != NULL && strcmp(is, "resolved") != 0)
            break;
    }
    return at;
}

static void resolve_feedback(stet_runfile *run, const char *id) {
    for (size_t i = unresolved(run, id, 0); i < stet_value_count(run->feedback); i = unresolved(run, id, i + 1)) {
        stet_value copy = stet_value_retain(stet_value_at(run->feedback, i));
        stet_value_put(&copy, "status", stet_value_string("resolved"));
        stet_value_put(&copy, "resolvedAt", stet_runfile_now());
        stet_value_put_at(&run->feedback, i, copy);
    }
}

void stet_runfile_task_done(stet_runfile *run, const char *id, const stet_hash *result) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    if (result != NULL)
        stet_value_put(&task, "result", stet_hash_text(*result));
    stet_value_put(&task, "endedAt", stet_runfile_now());
    stet_value_remove(&task, "error", 5);
    move_task(run, index, task, STET_TASK_COMPLETED);
    resolve_feedback(run, id);
    stet_runfile_changed(run, false);
}

/* One message per task: a second failure says the news in place of the old, resolved or not. What happened before is in
 * the events. A run that watches fails and recovers as often as somebody edits. */
static void open_feedback(stet_runfile *run, const char *id, const char *message) {
    size_t at = unresolved(run, id, 0);
    const stet_slot *first = stet_map_get(&run->told_index, id, strlen(id));
    bool again = at >= stet_value_count(run->feedback) && first != NULL;
    if (again)
        at = (size_t)first->n;
    if (at < stet_value_count(run->feedback)) {
        stet_value copy = stet_value_retain(stet_value_at(run->feedback, at));
        stet_value_put(&copy, "message", stet_runfile_text(message));
        if (again) {
            stet_value_put(&copy, "status", stet_value_string("open"));
            stet_value_put(&copy, "createdAt", stet_runfile_now());
            stet_value_remove(&copy, "resolvedAt", 10);
        }
        stet_value_put_at(&run->feedback, at, copy);
        return;
    }
    stet_value f = stet_value_object();
    stet_value_put(&f, "id", stet_value_stringf("feedback-%zu", stet_value_count(run->feedback) + 1));
    stet_value_put(&f, "task", stet_runfile_text(id));
    stet_value_put(&f, "status", stet_value_string("open"));
    stet_value_put(&f, "message", stet_runfile_text(message));
    stet_value_put(&f, "createdAt", stet_runfile_now());
    stet_value_push(&run->feedback, f);
    stet_runfile_index_feedback(run, stet_value_count(run->feedback) - 1);
}

static void fail_task(stet_runfile *run, const char *id, const stet_error *why) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_value_put(&task, "error", stet_error_value(why));
    stet_value_put(&task, "endedAt", stet_runfile_now());
    move_task(run, index, task, STET_TASK_FAILED);
}

void stet_runfile_task_failed(stet_runfile *run, const char *id, const stet_error *why) {
    fail_task(run, id, why);
    open_feedback(run, id, why->message);
    /* Failures in quick succession are written together, since each write costs a sync. */
    int64_t now = stet_clock_monotonic_us();
    bool at_once = run->failed_us == 0 || now - run->failed_us >= (int64_t)STET_RUNFILE_FAILED_MS * 1000;
    if (at_once)
        run->failed_us = now;
    stet_runfile_changed(run, at_once);
}

void stet_runfile_task_skipped(stet_runfile *run, const char *id, const char *why) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_value_put(&task, "reason", stet_runfile_text(why));
    stet_value_put(&task, "endedAt", stet_runfile_now());
    move_task(run, index, task, STET_TASK_SKIPPED);
    resolve_feedback(run, id);
    stet_runfile_changed(run, false);
}

/* The ids of the tasks with this status, as they are now. The caller releases them. */
static stet_value tasks_that_are(const stet_runfile *run, stet_task_status wanted) {
    stet_value ids = stet_value_array();
    for (size_t i = 0; i < stet_value_count(run->tasks); i++) {
        stet_value task = stet_value_at(run->tasks, i);
        stet_task_status status;
        if (stet_task_status_of(stet_value_get(task, "status"), &status) && status == wanted)
            stet_value_push(&ids, stet_value_retain(stet_value_get(task, "id")));
    }
    return ids;
}

void stet_runfile_skip_failed(stet_runfile *run, const char *why) {
    stet_value ids = tasks_that_are(run, STET_TASK_FAILED);
    for (size_t i = 0; i < stet_value_count(ids); i++) {
        stet_value id = stet_value_at(ids, i);
        stet_runfile_task_skipped(run, stet_value_as_string(&id, NULL), why);
    }
    stet_value_release(ids);
}

void stet_runfile_task_reset(stet_runfile *run, const char *id) {
    size_t index;
    stet_value task = take_task(run, id, &index);
    stet_value_remove(&task, "endedAt", 7);
    stet_value_remove(&task, "error", 5);
    stet_value_remove(&task, "reason", 6);
    stet_value_remove(&task, "result", 6);
    move_task(run, index, task, STET_TASK_PENDING);
    stet_runfile_changed(run, false);
}

const char *stet_runfile_task_log(stet_runfile *run, const char *id) {
    if (!stet_runfile_good(run))
        return NULL;
    char *logs = stet_file_join(run->dir, "logs");
    stet_status st = stet_runfile_check_logs(run->dir, &run->failure);
    if (st == STET_OK)
        st = stet_file_mkdirs(logs, 0755, &run->failure);
    if (st == STET_OK) {
        /* The name of the log: the valid characters of the task's id, and a part of its hash. */
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
        stet_value_put(&task, "log", stet_value_stringf("logs/%s", name));
        stet_value_put_at(&run->tasks, index, task);
        stet_runfile_changed(run, false);
    }
    stet_free(logs);
    return st == STET_OK ? run->log_path : NULL;
}

void stet_runfile_option(stet_runfile *run, const char *name, stet_value item) {
    stet_value options = stet_value_retain(stet_value_get(run->state, "options"));
    stet_value_put(&options, name, item);
    stet_value_put(&run->state, "options", options);
    stet_runfile_changed(run, false);
}

void stet_runfile_result(stet_runfile *run, stet_value result) {
    stet_value_put(&run->state, "result", stet_value_retain(result));
    stet_runfile_changed(run, false);
}

void stet_runfile_stage(stet_runfile *run, stet_stage stage) {
    stet_value now = stet_value_get(run->state, "loopStage");
    const char *text = stet_value_as_string(&now, NULL);
    if (text != NULL && strcmp(text, stet_stage_name(stage)) == 0)
        return;
    stet_value_put(&run->state, "loopStage", stet_value_string(stet_stage_name(stage)));
    stet_value fields = stet_value_object();
    stet_value_put(&fields, "stage", stet_value_string(stet_stage_name(stage)));
    stet_runfile_event(run, "stage", fields);
    stet_value_release(fields);
    stet_runfile_changed(run, true);
}

void stet_runfile_count(stet_runfile *run, const char *name, int64_t add) {
    stet_value v = stet_value_get(run->summary, name);
    stet_value_put(&run->summary, name, stet_value_int(stet_value_as_int(v) + add));
    stet_runfile_changed(run, false);
}

void stet_runfile_summary(stet_runfile *run, const char *name, stet_value item) {
    stet_value_put(&run->summary, name, item);
    stet_runfile_changed(run, false);
}

bool stet_runfile_commit(stet_runfile *run, const stet_hash *result) {
    stet_value checks = stet_value_array();
    bool gated = false, passed = true;
    for (size_t i = 0; i < stet_value_count(run->tasks); i++) {
        stet_value task = stet_value_at(run->tasks, i), check;
        stet_task_status status;
        if (!stet_value_as_bool(stet_value_get(task, "verifier")))
            continue;
        gated = true;
        passed =
            passed && stet_task_status_of(stet_value_get(task, "status"), &status) && status == STET_TASK_COMPLETED;
        check = stet_value_object();
        stet_value_put(&check, "task", stet_value_retain(stet_value_get(task, "id")));
        stet_value_put(&check, "status", stet_value_retain(stet_value_get(task, "status")));
        stet_value_push(&checks, check);
    }
    stet_value fields = stet_value_object();
    stet_value_put(&fields, "result", stet_hash_text(*result));
    stet_value_put(&fields, "checks", stet_value_retain(checks));
    if (passed) {
        stet_value commit = stet_value_object();
        stet_value_put(&commit, "id", stet_value_stringf("commit-%zu", stet_value_count(run->commits) + 1));
        stet_value_put(&commit, "at", stet_runfile_now());
        stet_value_put(&commit, "result", stet_hash_text(*result));
        stet_value_put(&commit, "verifierGated", stet_value_bool(gated));
        stet_value_put(&commit, "checks", stet_value_retain(checks));
        stet_value_push(&run->commits, commit);
    }
    stet_runfile_event(run, passed ? "commit" : "commit-refused", fields);
    stet_value_release(fields);
    stet_value_release(checks);
    stet_runfile_changed(run, true);
    return passed;
}

void stet_runfile_cancel_rest(stet_runfile *run, const char *reason) {
    stet_error why = STET_ERROR_INIT;
    stet_fail(&why, STET_CANCELLED, "%s", reason != NULL ? reason : "cancelled");
    for (size_t i = 0; i < stet_value_count(run->tasks); i++) {
        stet_value task = stet_value_at(run->tasks, i), id = stet_value_get(task, "id");
        stet_task_status status;
        if (!stet_task_status_of(stet_value_get(task, "status"), &status) ||
            (status != STET_TASK_PENDING && status != STET_TASK_RUNNING))
            continue;
        char *copy = stet_strdup(stet_value_as_string(&id, NULL));
        fail_task(run, copy, &why);
        stet_free(copy);
    }
    stet_error_clear(&why);
    stet_runfile_event(run, "cancelled", stet_value_null());
    stet_runfile_changed(run, true);
}

stet_status stet_runfile_finish(stet_runfile *run, stet_error *err) {
    /* Declared, and never needed: it stands, or what it waits for failed. Left pending it would look like work to come.
     */
    stet_value ids = tasks_that_are(run, STET_TASK_PENDING);
    for (size_t i = 0; i < stet_value_count(ids); i++) {
        stet_value id = stet_value_at(ids, i);
        stet_runfile_task_skipped(run, stet_value_as_string(&id, NULL), "the drive ended without a need for it");
    }
    stet_value_release(ids);
    stet_runfile_stage(run, STET_STAGE_DONE);
    run->dirty = true;
    return stet_runfile_flush(run, err);
}
