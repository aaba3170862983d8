/* drift.c - compares what a running process holds in memory with the stored tables. */

#include "drive/drift.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"

#define ANSWER_MAX (1 << 20)
#define QUESTION   64

struct stet_live {
    char *ask, *answer, *path;
    stet_lock *lock;
};

stet_live *stet_live_open(stet_project *project) {
    stet_live *l = stet_alloc_zero(sizeof *l);
    char *dir = stet_project_path(project, "local/live");
    l->path = stet_asprintf("%s/%ld", dir, (long)getpid());
    l->ask = stet_asprintf("%s.ask", l->path);
    l->answer = stet_asprintf("%s.answer", l->path);
    bool open = stet_file_mkdirs(dir, 0755, NULL) == STET_OK &&
                stet_lock_open(l->path, STET_LOCK_PLAIN, &l->lock, NULL) == STET_OK &&
                /* Other processes test this lock. */
                stet_lock_take(l->lock, STET_LOCK_EXCLUSIVE, 2000, NULL) == STET_OK;
    stet_free(dir);
    if (!open) {
        stet_live_close(l);
        return NULL;
    }
    return l;
}

static stet_value answer_of(stet_sched *sched, const char *question, const char *space, const char *branch,
                            const char *piece) {
    stet_value v = stet_value_object();
    stet_sched_drift d;
    stet_error why = STET_ERROR_INIT;
    stet_value_put(&v, "question", stet_value_string(question));
    stet_value_put(&v, "pid", stet_value_int(getpid()));
    stet_value_put(&v, "answered", stet_value_bool(true));
    stet_value_put(&v, "space", stet_value_string(space));
    stet_value_put(&v, "branch", stet_value_string(branch));
    stet_value_put(&v, "piece", stet_value_string(piece));
    if (stet_sched_compare(sched, &d, &why) == STET_OK) {
        stet_value_put(&v, "actions", stet_value_int((int64_t)d.actions));
        stet_value_put(&v, "differ", stet_value_int((int64_t)d.differ));
        stet_value_put(&v, "drift", d.list);
    } else {
        stet_value_put(&v, "error", stet_error_value(&why));
    }
    stet_error_clear(&why);
    return v;
}

void stet_live_answer(stet_live *l, stet_sched *sched, const char *space, const char *branch, const char *piece) {
    stet_buf question = STET_BUF(0);
    if (!l || !stet_file_exists(l->ask))
        return;
    if (stet_file_read(l->ask, QUESTION, &question, NULL) == STET_OK) {
        stet_value v = answer_of(sched, stet_buf_cstr(&question), space, branch, piece);
        size_t len;
        char *text = stet_json_print(v, STET_JSON_CANONICAL, &len);
        unlink(l->ask);
        if (stet_file_replace(l->answer, text, len, 0600, NULL) != STET_OK)
            unlink(l->answer); /* then the asking process reports that there is no answer */
        stet_free(text);
        stet_value_release(v);
    }
    stet_buf_release(&question);
}

void stet_live_close(stet_live *l) {
    if (!l)
        return;
    if (l->lock) {
        unlink(l->ask);
        unlink(l->answer);
        unlink(l->path);
    }
    stet_lock_close(l->lock);
    stet_free(l->path);
    stet_free(l->ask);
    stet_free(l->answer);
    stet_free(l);
}

/* A process holds its lock as long as it lives. The files of one that has ended are removed; one that has just started
 * may not have its lock yet. */
static bool is_live(const char *path, long pid) {
    stet_lock *lock;
    bool live = false;
    if (stet_lock_open(path, STET_LOCK_PLAIN, &lock, NULL) != STET_OK)
        return false;
    live = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, 0, NULL) == STET_BUSY;
    if (!live && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        unlink(path);
    stet_lock_close(lock);
    return live;
}

/* Reads the answer to this question; false: there is none yet. */
static bool read_answer(const char *path, const char *question, stet_value *out) {
    stet_buf text = STET_BUF(0);
    stet_value v = stet_value_null(), id;
    bool found = false;
    if (stet_file_exists(path) && stet_file_read(path, ANSWER_MAX, &text, NULL) == STET_OK &&
        stet_json_parse(text.data, text.len, &v, NULL) == STET_OK) {
        id = stet_value_get(v, "question");
        found = stet_value_text_is(id, question);
    }
    if (found) {
        stet_value_remove(&v, "question", 8);
        *out = stet_value_retain(v);
    }
    stet_value_release(v);
    stet_buf_release(&text);
    return found;
}

static stet_status ask_one(const char *path, long pid, int timeout_ms, stet_value *out, stet_error *err) {
    char question[37], *ask = stet_asprintf("%s.ask", path), *answer = stet_asprintf("%s.answer", path);
    int64_t until = stet_clock_monotonic_us() / 1000 + timeout_ms;
    bool found = false;
    stet_uuid(question);
    stet_status status = stet_file_replace(ask, question, strlen(question), 0600, err);
    while (status == STET_OK && !(found = read_answer(answer, question, out)) &&
           stet_clock_monotonic_us() / 1000 < until)
        stet_clock_sleep_ms(10);
    if (status == STET_OK && !found) {
        *out = stet_value_object();
        stet_value_put(out, "pid", stet_value_int(pid));
        stet_value_put(out, "answered", stet_value_bool(false));
    }
    unlink(ask);
    unlink(answer);
    stet_free(ask);
    stet_free(answer);
    return status;
}

stet_status stet_drift_ask(stet_project *project, int timeout_ms, stet_value *report, stet_error *err) {
    char *dir = stet_project_path(project, "local/live");
    stet_names names = {0};
    stet_value list = stet_value_array();
    stet_status status = stet_file_exists(dir) ? stet_file_list(dir, &names, err) : STET_OK;
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        char *end, *path = stet_file_join(dir, names.at[i]);
        long pid = strtol(names.at[i], &end, 10);
        stet_value one;
        if (pid > 0 && !*end && pid != (long)getpid() && is_live(path, pid)) {
            status = ask_one(path, pid, timeout_ms, &one, err);
            if (status == STET_OK)
                stet_value_push(&list, one);
        }
        stet_free(path);
    }
    stet_names_release(&names);
    stet_free(dir);
    if (status == STET_OK) {
        *report = stet_value_object();
        stet_value_put(report, "processes", stet_value_retain(list));
    }
    stet_value_release(list);
    return status;
}
