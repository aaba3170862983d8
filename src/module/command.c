/* command.c - the steps of a command's run, driven by the event loop (command.h names them). */
#include "module/command_run.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "files/path.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "persist/project_dir.h"

#define MAX_AGAIN   20                /* how often a result is thrown away because an input changed meanwhile */
#define MAX_LISTS   8                 /* older lists of a dependency file that are tried */
#define POLL_MS     25                /* how often what has no descriptor is looked at */
#define SHOWN_BYTES ((size_t)1 << 20) /* of a failed command's output */
#define MAX_WORKING 16                /* collecting waits for the disk: enough of them share its syncs */

static void pump(command_state *s);

/* ---- Small things ----------------------------------------------------------------------------------------------- */

void command_run_free(command_run *c) {
    command_state *s = c->state;
    for (size_t i = 0; i < s->active.len; i++)
        if (s->active.at[i] == c) {
            s->active.at[i] = s->active.at[--s->active.len];
            break;
        }
    if (c->task)
        stet_task_set_data(c->task, NULL);
    command_spec_release(&c->spec);
    command_files_release(&c->found);
    command_entry_release(&c->entry);
    stet_release(c->result);
    stet_error_clear(&c->error);
    stet_error_clear(&c->warning);
    stet_free(c->output_path);
    stet_free(c->error_path);
    stet_free(c);
}

void command_fail_run(command_run *c, stet_error *err) {
    stet_run *run = c->run;
    if (c->task && stet_task_exit(c->task)->state != STET_TASK_RUNNING) {
        stet_local_collected(c->state->local, c->task);
        c->task = NULL;
    }
    command_run_free(c);
    stet_run_fail(run, err);
    stet_error_clear(err);
}

/* ---- Publishing ------------------------------------------------------------------------------------------------- */

/* Reads the documents of what the dependency file named: from now on the action depends on them. */
static stet_status record_found(command_run *c, stet_error *err) {
    for (size_t i = 0; i < c->found.len; i++) {
        stet_value v;
        char *id = stet_file_id(c->found.at[i].path);
        stet_error inner = STET_ERROR_INIT;
        stet_status status = stet_run_read_doc(c->run, id, &v, &inner);
        stet_free(id);
        if (status == STET_NOT_FOUND)
            stet_error_clear(&inner);
        else if (status != STET_OK) {
            stet_error_move(err, &inner);
            return status;
        }
    }
    return STET_OK;
}

static stet_status publish_outputs(command_run *c, bool there, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->spec.outputs.len && status == STET_OK; i++) {
        command_file *f = &c->spec.outputs.at[i];
        if (!there)
            f->look = (stet_look){0};
        char *id = stet_file_id(f->path);
        /* Read too: whoever changes one of many outputs makes the action dirty, also after a run that had to mend only
         * another one. */
        stet_value before;
        stet_error none = STET_ERROR_INIT;
        status = stet_run_read_doc(c->run, id, &before, &none);
        if (status == STET_NOT_FOUND)
            stet_error_clear(&none);
        else
            stet_error_move(err, &none);
        stet_value now = stet_null();
        if (there) { /* `made`: it is a command's, and goes when that goes and is asked to (drive/leftover.h) */
            now = stet_look_value(&f->look);
            stet_put(&now, "made", stet_bool(true));
        }
        if (status == STET_OK || status == STET_NOT_FOUND)
            status = stet_run_write_doc(c->run, id, now, err);
        else
            stet_release(now);
        stet_free(id);
        stet_look known;
        if (status == STET_OK && !c->state->rematch &&
            (!stet_files_known(c->state->files, f->path, &known) ||
             stet_look_there(&known) != stet_look_there(&f->look)))
            c->state->rematch = stet_files_matched(c->state->files, f->path);
        if (status == STET_OK)
            stet_files_note(c->state->files, f->path, &f->look);
    }
    return status;
}

/* Makes the documents of files that were looked at true. *moved: some were not. */
static stet_status commit_looks(command_run *c, bool *moved, stet_error *err) {
    const command_files *lists[] = {&c->spec.inputs, &c->found};
    STET_VEC(const char *) paths = {0};
    STET_VEC(stet_look) looks = {0};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->len; i++) {
            const command_file *f = &lists[k]->at[i];
            stet_look known;
            if (stet_files_known(c->state->files, f->path, &known) && stet_look_same(&known, &f->look))
                continue;
            *stet_vec_add(&paths) = f->path;
            *stet_vec_add(&looks) = f->look;
        }
    stet_status status = STET_OK;
    bool absent =
        false; /* there is no document of it: that it is followed must be known before somebody relies on it */
    for (size_t i = 0; i < paths.len; i++)
        absent |= !stet_look_there(&looks.at[i]);
    *moved = paths.len > 0;
    if (paths.len)
        status = stet_files_update(c->state->files, paths.at, looks.at, paths.len, err);
    if (status == STET_OK && absent)
        status = stet_files_keep(c->state->files, err);
    stet_vec_release(&paths);
    stet_vec_release(&looks);
    return status;
}

/* The end: on the newest state, with the same call or not at all. */
static void conclude(command_run *c) {
    stet_error err = STET_ERROR_INIT;
    command_state *s = c->state;
    command_spec now;
    bool moved;
    stet_status status = commit_looks(c, &moved, &err);
    if (status == STET_OK)
        status = stet_run_refresh(c->run, &err);
    if (status == STET_OK)
        status = command_evaluate(c->run, s->root, &now, &err);
    if (status != STET_OK) {
        command_fail_run(c, &err);
        return;
    }
    bool same = stet_hash_equal(now.call, c->spec.call) && !c->changed;
    if (!same) { /* something changed while it ran: the result counts for nothing */
        if (c->task)
            stet_local_collected(s->local, c->task);
        c->task = NULL;
        command_spec_release(&c->spec);
        c->spec = now;
        command_files_release(&c->found);
        command_entry_release(&c->entry);
        stet_release(c->result);
        c->result = stet_null();
        stet_error_clear(&c->error);
        c->changed = c->hit = c->taken = false;
        if (++c->again > MAX_AGAIN) {
            stet_fail(&err, STET_CONFLICT, "%s: its inputs change each time it runs", c->run->name);
            stet_hint(&err, "does it write to a file that it reads?");
            command_fail_run(c, &err);
            return;
        }
        command_step(c);
        return;
    }
    command_spec_release(&now);
    status = record_found(c, &err);
    if (status == STET_OK)
        status = publish_outputs(c, c->taken, &err);
    if (status != STET_OK || !c->taken) {
        if (status != STET_OK) {
            command_fail_run(c, &err);
        } else {
            stet_error own = c->error;
            c->error = (stet_error)STET_ERROR_INIT;
            command_fail_run(c, &own);
        }
        return;
    }
    if (c->warning.status != STET_OK)
        stet_run_log(c->run, "stet", c->warning.message, strlen(c->warning.message));
    if (c->task)
        stet_local_collected(s->local, c->task);
    c->task = NULL;
    stet_run *run = c->run;
    stet_value result = c->result;
    c->result = stet_null();
    command_run_free(c);
    stet_run_succeed(run, result);
}

/* ---- Looking up ------------------------------------------------------------------------------------------------- */

/* What a file is, as far as the scan knows; one that nobody follows is looked at. */
static stet_status current_look(command_state *s, command_file *f, stet_error *err) {
    if (stet_files_known(s->files, f->path, &f->look))
        return STET_OK;
    return stet_look_at(stet_files_root(s->files), f->path, NULL, &f->look, err);
}

/* Is there an outcome of this call? Sets entry, second id and found files. */
static stet_status look_up(command_run *c, stet_error *err) {
    command_state *s = c->state;
    if (!c->spec.depfile) {
        c->second = c->spec.call;
        return command_entry_get(s->persist, &c->spec, c->spec.call, &c->entry, err);
    }
    for (size_t age = 0; age < MAX_LISTS; age++) {
        command_files_release(&c->found);
        stet_status status = command_deps_get(s->persist, c->spec.call, age, &c->found, err);
        for (size_t i = 0; i < c->found.len && status == STET_OK; i++)
            status = current_look(s, &c->found.at[i], err);
        if (status == STET_OK)
            status = command_second_id(&c->spec, &c->found, &c->second, err);
        if (status != STET_OK)
            return status;
        stet_error inner = STET_ERROR_INIT;
        status = command_entry_get(s->persist, &c->spec, c->second, &c->entry, &inner);
        if (status != STET_NOT_FOUND) {
            stet_error_move(err, &inner);
            return status;
        }
        stet_error_clear(&inner);
    }
    return stet_fail(err, STET_NOT_FOUND, "no outcome for the files as they are");
}

/* Are the outputs there as the entry has them, so far as the scan knows? */
static bool in_place(command_run *c) {
    bool all = true;
    for (size_t i = 0; i < c->spec.outputs.len; i++) {
        command_file *f = &c->spec.outputs.at[i];
        bool here = stet_files_known(c->state->files, f->path, &f->known) && stet_look_same(&f->known, &f->look);
        if (here)
            f->look = f->known;
        all &= here;
    }
    return all;
}

/* ---- The loop --------------------------------------------------------------------------------------------------- */

/* What a failed command said, whole, for people; and for programs in the details. */
static void show_output(command_run *c) {
    for (int k = 0; k < 2 && c->task; k++) {
        stet_buf b = STET_BUF(SHOWN_BYTES + 100);
        stet_value v;
        stet_task_output(c->task, k == 1, SHOWN_BYTES, &b);
        if (b.len) {
            stet_run_log(c->run, k ? "stderr" : "stdout", b.data, b.len);
            size_t keep = b.len < 65536 ? b.len : 65536;
            if (stet_string_checked(b.data, keep, &v, NULL) == STET_OK)
                stet_detail(&c->error, k ? "stderr" : "stdout", v);
        }
        stet_buf_release(&b);
    }
    if (c->end.state == STET_TASK_ENDED)
        stet_detail(&c->error, c->end.exit.signalled ? "signal" : "exit", stet_int(c->end.exit.code));
}

static void work_done(uv_work_t *w, int status) {
    command_run *c = w->data;
    command_state *s = c->state;
    (void)status;
    c->working = false;
    s->working--;
    s->failing -= c->failing;
    c->failing = false;
    if (c->hit && !c->taken) {
        /* An entry whose bytes are not here after all: a miss. */
        stet_error_clear(&c->error);
        command_entry_release(&c->entry);
        stet_release(c->result);
        c->result = stet_null();
        c->hit = false;
        *stet_vec_add(&s->queue) = c;
    } else {
        if (!c->taken && !c->hit)
            show_output(c);
        conclude(c);
    }
    pump(s);
}

static void begin_work(command_run *c, uv_work_cb work) {
    c->work.data = c;
    c->working = true;
    c->state->working++;
    if (uv_queue_work(c->state->host.loop, &c->work, work, work_done) != 0) {
        work(&c->work);
        work_done(&c->work, 0);
    }
}

static void task_ended(command_run *c) {
    c->state->running--;
    c->was_cancelled = c->cancelled;
    c->end = *stet_task_exit(c->task);
    stet_free(c->output_path); /* of an earlier time, when an input changed meanwhile */
    stet_free(c->error_path);
    c->output_path = stet_task_output_path(c->task, false);
    c->error_path = stet_task_output_path(c->task, true);
    c->failing = c->end.state != STET_TASK_ENDED || c->end.exit.signalled || c->end.exit.code != 0;
    c->state->failing += c->failing;
    begin_work(c, command_collect_work);
}

static void hear(command_state *s) {
    stet_task *t;
    while (s->local && (t = stet_local_next(s->local)) != NULL) {
        command_run *c = stet_task_data(t);
        if (c->waits_for_node) { /* it was in the way, and is gone: nobody wants how it ended */
            c->waits_for_node = false;
            stet_task_set_data(t, NULL);
            stet_local_collected(s->local, t);
            *stet_vec_add(&s->queue) = c;
        } else {
            task_ended(c);
        }
    }
    pump(s);
}

static void on_poll(uv_poll_t *p, int status, int events) {
    (void)status;
    (void)events;
    command_state *s = p->data;
    if (stet_local_fd(s->local) < 0) {
        uv_poll_stop(p);
        s->polling = false;
    }
    hear(s);
}

static void on_timer(uv_timer_t *t) {
    command_state *s = t->data;
    hear(s);
}

/* Descriptor and timer are on exactly while something is awaited: an idle loop ends. */
static void set_watching(command_state *s) {
    bool running = s->local && (stet_local_running(s->local) > 0);
    int fd = s->local ? stet_local_fd(s->local) : -1;
    if (running && !s->polling && fd >= 0) {
        if (uv_poll_init(s->host.loop, &s->poll, fd) == 0) {
            s->poll.data = s;
            uv_poll_start(&s->poll, UV_READABLE, on_poll);
            s->polling = true;
        }
    }
    bool lost = false;
    for (size_t i = 0; i < s->active.len; i++)
        lost |= (s->active.at[i]->task && !s->active.at[i]->working) || s->active.at[i]->waits_for_node;
    bool wait = (s->queue.len > 0 && !s->locked) || (lost && (!running || stet_local_adopted(s->local)));
    if (wait && !s->timing)
        uv_timer_start(&s->timer, on_timer, POLL_MS, POLL_MS);
    else if (!wait && s->timing)
        uv_timer_stop(&s->timer);
    s->timing = wait;
}

/* One drive of a project runs commands at a time: two would write the same files. */
static bool take_lock(command_state *s) {
    if (s->locked)
        return true;
    s->locked = stet_lock_take(s->lock, STET_LOCK_EXCLUSIVE, 0, NULL) == STET_OK;
    s->waited |= !s->locked;
    return s->locked;
}

static stet_status launch(command_run *c, stet_error *err) {
    command_state *s = c->state;
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->spec.outputs.len + 1 && status == STET_OK; i++) {
        const char *path = i < c->spec.outputs.len ? c->spec.outputs.at[i].path : c->spec.depfile;
        if (!path)
            continue;
        char *full = command_full_path(s, path), *dir = stet_file_dirname(full);
        struct stat st;
        if (stet_sys_lstat(full, &st) == 0)
            status = stet_file_remove_tree(full, err);
        if (status == STET_OK && stet_sys_stat(dir, &st) != 0)
            status = stet_file_mkdirs(dir, 0755, err);
        stet_free(full);
        stet_free(dir);
    }
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < c->spec.inputs.len;
         i++) { /* looks with times: unchanged files are not read again afterwards */
        stet_look known;
        if (!stet_files_known(s->files, c->spec.inputs.at[i].path, &known))
            continue;
        if (!stet_look_same(&known, &c->spec.inputs.at[i].look)) { /* removed when its maker failed */
            stet_fail(err, STET_FAILED, "%s: its input %s is not there as it was last made", c->run->name,
                      c->spec.inputs.at[i].path);
            stet_hint(err, "the node that makes it has failed");
            return STET_FAILED;
        }
        c->spec.inputs.at[i].look = known;
    }
    stet_local_request r = {.key = c->spec.call,
                            .node = c->run->name,
                            .argv = (const char *const *)c->spec.argv.at,
                            .envp = (const char *const *)c->spec.env.at,
                            .cwd = c->spec.cwd,
                            .input = c->spec.standard_input,
                            .input_len = c->spec.standard_input_len,
                            .timeout_ms = c->spec.timeout_ms,
                            .max_memory = c->spec.max_memory,
                            .max_cpu_s = c->spec.max_cpu_s,
                            .max_file_size = c->spec.max_file_size};
    status = stet_local_start(s->local, &r, &c->task, err);
    if (status == STET_OK)
        stet_task_set_data(c->task, c);
    return status;
}

/* Starts one from the queue, or goes on with what an earlier drive left. */
static void advance(command_run *c) {
    command_state *s = c->state;
    stet_error err = STET_ERROR_INIT;
    if (c->cancelled || (s->host.stopped && *s->host.stopped) ||
        (s->host.cancelled && s->host.cancelled(s->host.cancelled_ctx))) {
        stet_fail(&err, STET_CANCELLED, "%s: stopped before it began", c->run->name);
        command_fail_run(c, &err);
        return;
    }
    stet_task *left = stet_local_find(s->local, c->spec.call);
    if (left && stet_task_exit(left)->state == STET_TASK_LOST) {
        stet_local_collected(s->local, left);
        left = NULL;
    }
    stet_task *other = stet_local_find_node(s->local, c->run->name, left);
    if (left) {
        c->task = left;
        stet_task_set_data(left, c);
        s->running++;
        return;
    }
    if (other) { /* the same files, other inputs: it must be out of the way first */
        c->waits_for_node = true;
        stet_task_set_data(other, c);
        stet_local_cancel(s->local, other, 0);
        return;
    }
    if (launch(c, &err) != STET_OK) {
        command_fail_run(c, &err);
        return;
    }
    s->running++;
}

/* None begins while it is being found out how a failed one ended: that may be the end of all of them. */
static void pump(command_state *s) {
    while (s->queue.len > 0 && s->failing == 0 && s->running < s->jobs && s->working < MAX_WORKING && take_lock(s)) {
        command_run *c = s->queue.at[0];
        memmove(s->queue.at, s->queue.at + 1, --s->queue.len * sizeof *s->queue.at);
        if (s->waited && !stet_run_is_effect(c->run) && c->spec.cache && c->again <= MAX_AGAIN) {
            /* Another process held the lock, and may have done it. */
            stet_error none = STET_ERROR_INIT;
            command_files_release(&c->found);
            if (look_up(c, &none) == STET_OK) {
                c->hit = true;
                c->result = stet_retain(c->entry.result);
                begin_work(c, command_restore_work);
                continue;
            }
            stet_error_clear(&none);
        }
        advance(c);
    }
    if (s->queue.len == 0)
        s->waited = false;
    set_watching(s);
}

/* Two nodes that write one file would undo each other's work for ever: the second is refused. */
static stet_status claim_outputs(command_run *c, stet_error *err) {
    command_state *s = c->state;
    for (size_t i = 0; i < c->spec.outputs.len; i++) {
        const char *path = c->spec.outputs.at[i].path;
        stet_slot *slot = stet_map_get(&s->claimed, path, strlen(path));
        if (!slot) {
            char *name = stet_strdup(c->run->name);
            stet_map_put(&s->claimed, path, strlen(path), (stet_slot){.p = name});
        } else if (strcmp(slot->p, c->run->name) != 0) {
            stet_fail(err, STET_FAILED, "%s: its output %s is written by %s as well", c->run->name, path,
                      (const char *)slot->p);
            stet_hint(err, "let one of them write another file");
            return STET_FAILED;
        }
    }
    return STET_OK;
}

void command_release_claims(command_state *s) {
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&s->claimed, &i, &key, &len, &slot);)
        stet_free(slot->p);
    stet_map_release(&s->claimed);
    s->claimed = (stet_map){0};
}

/* From an evaluated spec: an earlier outcome, or the queue. */
void command_step(command_run *c) {
    command_state *s = c->state;
    stet_error err = STET_ERROR_INIT;
    if (claim_outputs(c, &err) != STET_OK) {
        command_fail_run(c, &err);
        return;
    }
    if (c->spec.cache && !stet_run_is_effect(c->run) && look_up(c, &err) == STET_OK) {
        c->hit = true;
        c->result = stet_retain(c->entry.result);
        if (in_place(c)) {
            c->taken = true;
            conclude(c);
            return;
        }
        if (take_lock(s)) { /* it writes files, as a command does */
            begin_work(c, command_restore_work);
            return;
        }
        /* Whoever holds it may be at the same: it is looked up again then. */
        c->hit = false;
        stet_release(c->result);
        c->result = stet_null();
        command_entry_release(&c->entry);
    }
    stet_error_clear(&err); /* a miss, or a directory that can't be read: it runs */
    *stet_vec_add(&s->queue) = c;
    pump(s);
}
