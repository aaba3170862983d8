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
#include "module/left.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"
#include "persist/project_dir.h"

#define MAX_AGAIN   20 /* how often a result is thrown away because an input changed meanwhile */
#define MAX_DIFFER  2  /* how often a file may differ that the command writes itself, as far as anybody can tell */
#define MAX_LOST    10 /* how often a command is started again because its supervisor was killed */
#define FREE_AGAIN  3  /* of these, so many without a pause; then it is doubled each time */
#define PAUSE_MS    20
#define PAUSE_MOST  250
#define MAX_LISTS   8  /* older lists of a dependency file that are tried */
#define POLL_MS     25 /* how often what has no descriptor is looked at */
#define TELL_MS     100
#define SHOWN_BYTES ((size_t)1 << 20) /* of a failed command's output */
#define MAX_WORKING 16                /* collecting waits for the disk: enough of them share its syncs */

static void pump(command_state *s);

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
    command_files_release(&c->suspects);
    command_files_release(&c->touched);
    command_files_release(&c->attributed);
    command_guard_end(c);
    command_patterns_end(c);
    stet_names_release(&c->heard);
    stet_map_release(&c->held);
    command_entry_release(&c->entry);
    stet_value_release(c->result);
    stet_error_clear(&c->error);
    stet_error_clear(&c->warning);
    stet_free(c->output_path);
    stet_free(c->error_path);
    stet_free(c->moved);
    stet_free(c);
}

static void collected(command_run *c) {
    if (c->task && stet_task_exit(c->task)->state != STET_TASK_RUNNING) {
        stet_local_collected(c->state->local, c->task);
        c->task = NULL;
    }
}

/* The result is about to be committed. Until then the journal has the command (command_stored): a process that finds it
 * takes the result over, and so does this one if the commit fails. */
static void keep_until_stored(command_run *c) {
    if (c->task)
        stet_task_set_data(c->task, NULL);
    c->task = NULL;
}

void command_fail_run(command_run *c, stet_error *err) {
    stet_run *run = c->run;
    collected(c);
    command_run_free(c);
    stet_run_fail(run, err);
    stet_error_clear(err);
}

void command_decline_run(command_run *c, stet_error *err) {
    stet_run *run = c->run;
    collected(c);
    command_run_free(c);
    stet_run_decline(run, err);
    stet_error_clear(err);
}

static bool is_cancelled(const command_run *c) {
    const command_state *s = c->state;
    return c->cancelled || (s->host.stopped && *s->host.stopped) ||
           (s->host.cancelled && s->host.cancelled(s->host.cancelled_ctx));
}

static void stop_before_it_begins(command_run *c) {
    stet_error err = STET_ERROR_INIT;
    stet_fail(&err, STET_CANCELLED, "%s: stopped before it began", c->run->name);
    command_decline_run(c, &err);
}

/* Reads the documents of what the dependency file named, and of files that it made, or wrote and left as they were:
 * from now on the action depends on them. */
static stet_status record_found(command_run *c, stet_error *err) {
    for (size_t i = 0; i < c->found.len + c->suspects.len; i++) {
        const command_file *f = i < c->found.len ? &c->found.at[i] : &c->suspects.at[i - c->found.len];
        stet_value v;
        if (i >= c->found.len && !*f->name)
            continue;
        char *id = stet_file_id(f->path);
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

/* The document of an output, under one of its names. */
static stet_status publish_output(command_run *c, const char *path, command_file *f, bool there, stet_error *err) {
    stet_status status;
    char *id = stet_file_id(path);
    /* Read too: whoever changes one of many outputs makes the action dirty, also after a run that had to mend only
     * another one. */
    stet_value before;
    stet_error none = STET_ERROR_INIT;
    status = stet_run_read_doc(c->run, id, &before, &none);
    if (status == STET_NOT_FOUND)
        stet_error_clear(&none);
    else
        stet_error_move(err, &none);
    stet_value now = stet_value_null();
    if (there) { /* `made`: it is a command's, and goes when that goes and is asked to (drive/leftover.h) */
        now = stet_look_value(&f->look);
        stet_value_put(&now, "made", stet_value_bool(true));
    }
    if (status == STET_OK || status == STET_NOT_FOUND)
        status = stet_run_write_doc(c->run, id, now, err);
    else
        stet_value_release(now);
    stet_free(id);
    f->look.flags |= there ? STET_LOOK_MADE : 0;
    if (status == STET_OK)
        stet_files_note(c->state->files, path, &f->look);
    return status;
}

char *command_real_output(const char *root, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash || path[0] == '/' || strncmp(path, "../", 3) == 0)
        return NULL;
    return stet_path_behind_links(root, path, (size_t)(slash - path) + 1);
}

static stet_status publish_outputs(command_run *c, bool there, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->spec.outputs.len && status == STET_OK; i++) {
        command_file *f = &c->spec.outputs.at[i];
        if (!there)
            f->look = (stet_look){0};
        status = publish_output(c, f->path, f, there, err);
        char *real = status == STET_OK ? command_real_output(c->state->root, f->path) : NULL;
        if (real) /* whoever reads it there reads this */
            status = publish_output(c, real, f, there, err);
        stet_free(real);
    }
    return status;
}

static bool is_script(const command_run *c, const char *path) {
    for (size_t i = 0; i < c->spec.scripts.len; i++)
        if (strcmp(c->spec.scripts.at[i].path, path) == 0)
            return true;
    return false;
}

/* Makes the documents of files true. `all`: also of those that are known here as they are, for others may have
 * overwritten their documents since. What the run knows of a file may be older than what has been seen of it meanwhile,
 * or come from a document alone: what differs is looked at now. */
static stet_status commit_looks(command_run *c, bool all, stet_error *err) {
    const command_files *lists[] = {&c->spec.inputs, &c->found, &c->spec.scripts, &c->suspects};
    stet_files *files = c->state->files;
    STET_VEC(const char *) paths = {0};
    STET_VEC(stet_look) looks = {0};
    stet_status status = STET_OK;
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < lists[k]->len; i++) {
            const command_file *f = &lists[k]->at[i];
            if (k == 3 && (!*f->name || is_script(c, f->path)))
                continue;
            stet_look known = f->look, now = f->look;
            bool seen = stet_files_known(files, f->path, &known);
            if (!all && seen && stet_look_same(&known, &f->look) && !stet_files_is_stale(files, f->path))
                continue;
            if ((seen || k == 0) && status == STET_OK)
                status = stet_look_at(stet_files_root(files), f->path, known.inode ? &known : NULL, &now, err);
            c->changed |= !all && k > 0 && !stet_look_same(&now, &f->look); /* inputs are evaluated again */
            *stet_vec_add(&paths) = f->path;
            *stet_vec_add(&looks) = now;
        }
    if (all && status == STET_OK)
        status = stet_files_save(files, err); /* compares what others have written */
    bool absent =
        false; /* there is no document of it: that it is followed must be known before somebody relies on it */
    for (size_t i = 0; i < paths.len; i++)
        absent |= !stet_look_there(&looks.at[i]);
    if (paths.len && status == STET_OK)
        status = stet_files_update(files, paths.at, looks.at, paths.len, err);
    if (status == STET_OK && absent)
        status = stet_files_keep(files, err);
    stet_vec_release(&paths);
    stet_vec_release(&looks);
    return status;
}

/* What was done for the spec counts for nothing, and so does what is on disk of it. */
static void forget_outcome(command_run *c) {
    if (c->wrote)
        command_remove_outputs(c);
    collected(c);
    command_files_release(&c->found);
    command_entry_release(&c->entry);
    stet_value_release(c->result);
    c->result = stet_value_null();
    stet_error_clear(&c->error);
    stet_error_clear(&c->warning);
    c->changed = c->hit = c->missed = c->taken = c->wrote = c->found_ended = false;
}

/* Something changed meanwhile: once more, with the inputs as they are now (consumed), sooner or later. If they change
 * faster than the command is done, that is no failure of the command. */
static void start_again(command_run *c, command_spec *now) {
    stet_error err = STET_ERROR_INIT;
    command_spec_release(&c->spec);
    c->spec = *now;
    stet_run_suspend(c->run);
    stet_run_works(c->run, false);
    if (++c->again > MAX_AGAIN || c->unsettled > MAX_DIFFER) {
        stet_fail(&err, STET_BUSY, "%s: %s changed %d times before the command was done", c->run->name,
                  c->moved ? c->moved : "what it reads", c->again);
        stet_hint(&err, "run it again when its inputs hold still; if the command itself writes to an input, let it "
                        "write to another file");
        command_decline_run(c, &err);
        return;
    }
    if (c->again <= FREE_AGAIN) {
        command_step(c);
        return;
    }
    int64_t pause = (int64_t)PAUSE_MS << (c->again - FREE_AGAIN - 1);
    c->not_before_us = stet_clock_monotonic_us() + (pause < PAUSE_MOST ? pause : PAUSE_MOST) * 1000;
    c->reconsider = true;
    *stet_vec_add(&c->state->queue) = c;
}

/* An output that is a link to a file of the project is what that file is: the action depends on it. */
static stet_status find_targets(command_run *c, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; c->taken && i < c->spec.outputs.len && status == STET_OK; i++) {
        const command_file *f = &c->spec.outputs.at[i];
        char *dir = f->target ? stet_file_dirname(f->path) : NULL, *path = NULL;
        if (!dir ||
            stet_path_normal(c->state->root, strcmp(dir, ".") == 0 ? "" : dir, f->target, &path, NULL) != STET_OK)
            path = NULL;
        bool known = !path || path[0] == '/' || strncmp(path, "../", 3) == 0;
        for (size_t k = 0; !known && k < c->spec.outputs.len; k++)
            known = strcmp(c->spec.outputs.at[k].path, path) == 0;
        for (size_t k = 0; !known && k < c->found.len; k++)
            known = strcmp(c->found.at[k].path, path) == 0;
        if (!known)
            status = stet_look_at(stet_files_root(c->state->files), path, NULL,
                                  &command_files_add(&c->found, "", path)->look, err);
        stet_free(path);
        stet_free(dir);
    }
    return status;
}

/* The record of a node that has failed since its entry was changed does not name what it writes. */
static bool is_output(void *ctx, const char *path) {
    const command_run *c = ctx;
    bool found = stet_map_get(&c->state->claimed, path, strlen(path)) != NULL;
    for (size_t i = 0; i < c->spec.outputs.len && !found; i++) {
        size_t len = strlen(c->spec.outputs.at[i].path);
        found = strncmp(c->spec.outputs.at[i].path, path, len) == 0 && (path[len] == '/' || !path[len]);
    }
    return found;
}

/* A command that goes through a directory, or names a file, finds what a command that is gone has left there: what it
 * would make of that is not what a build from scratch has. What its dependency file names it has read already. */
static stet_status check_leftovers(command_run *c, const command_spec *spec, stet_error *err) {
    const command_files *lists[] = {&spec->inputs, &spec->scripts, &spec->patterns, &c->found};
    const stet_module_host *host = &c->state->host;
    stet_left l = {c->run, c->state->files, c->state->root, is_output, c, host->may_make, host->may_make_ctx};
    char *left = NULL;
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < lists[k]->len && !left; i++) {
            const command_file *f = &lists[k]->at[i];
            if (k == 3)
                left = stet_left_find(&l, f->path);
            else if ((k == 1 || (k == 0 && f->named)) && stet_look_there(&f->look))
                left = stet_left_at(&l, f->path);
            if (!left && k < 3 && (k < 2 ? f->look.mode == STET_LOOK_DIRECTORY : !f->matched && !f->declared))
                left = stet_left_among(&l, f->path, k == 2);
        }
    stet_status status = left ? stet_left_fail(&l, left, err) : STET_OK;
    stet_free(left);
    return status;
}

/* The end: on the newest state, with the same call or not at all. */
/* What a command printed that ended well is kept with the run, unless it is the result. */
static void keep_output(command_run *c) {
    bool is_result = c->spec.json_output || c->spec.text_output;
    for (int k = 0; k < 2 && c->task; k++) {
        stet_buf b = STET_BUF(SHOWN_BYTES + 100);
        if (k == 1 || !is_result)
            stet_task_output(c->task, k == 1, SHOWN_BYTES, &b);
        if (b.len)
            stet_run_log(c->run, k ? "stderr" : "stdout", b.data, b.len);
        stet_buf_release(&b);
    }
}

static void conclude(command_run *c) {
    stet_error err = STET_ERROR_INIT;
    command_state *s = c->state;
    command_spec now;
    bool failed = !c->taken;
    if (failed && stet_run_is_ours(c->error.status)) { /* it was stopped, or stet could not look at what it did */
        stet_error_move(&err, &c->error);
        command_decline_run(c, &err);
        return;
    }
    stet_status status = command_check_place(c, &err);
    if (status == STET_OK)
        status = find_targets(c, &err);
    if (status == STET_OK && c->rematch)
        status = command_patterns_match_again(c, &err);
    c->rematch = false;
    if (status == STET_OK)
        status = commit_looks(c, false, &err);
    bool bound = c->taken && stet_value_find(c->result, "bound", 5, NULL);
    if (status == STET_OK && bound && !stet_files_follows(s->files, STET_ENV_PREFIX STET_PLACE_VARIABLE)) {
        status = stet_files_follow(s->files, STET_ENV_PREFIX STET_PLACE_VARIABLE, &err);
        if (status == STET_OK)
            status = stet_files_rematch(s->files, &err);
    }
    if (status == STET_OK)
        status = stet_run_refresh(c->run, &err);
    if (status != STET_OK) {
        command_decline_run(c, &err);
        return;
    }
    status = command_evaluate(c->run, s->root, s->lists, s->files, &c->suspects, &now, &err);
    if (status == STET_OK) { /* the record may have been behind when it began */
        status = check_leftovers(c, &now, &err);
        if (status != STET_OK)
            command_spec_release(&now);
    }
    if (status != STET_OK) { /* an input is gone, for example: what the command made of it counts for nothing */
        bool wrote = c->wrote;
        stet_error ignored = STET_ERROR_INIT;
        forget_outcome(c);
        if (wrote && publish_outputs(c, false, &ignored) != STET_OK)
            stet_error_clear(&ignored); /* a scan finds them gone */
        command_fail_run(c, &err);
        return;
    }
    bool same = stet_hash_equal(now.call, c->spec.call) && !c->changed;
    if (!same) {
        forget_outcome(c);
        start_again(c, &now);
        return;
    }
    command_spec_release(&now);
    status = record_found(c, &err);
    if (status == STET_OK && bound) { /* where the project lies is in what it wrote */
        stet_value place;
        stet_error none = STET_ERROR_INIT;
        if (stet_run_read_doc(c->run, STET_ENV_PREFIX STET_PLACE_VARIABLE, &place, &none) != STET_OK)
            stet_error_clear(&none);
    }
    if (status == STET_OK)
        status = publish_outputs(c, c->taken, &err);
    if (status != STET_OK) {
        command_decline_run(c, &err);
        return;
    }
    if (failed) {
        stet_error_move(&err, &c->error);
        command_fail_run(c, &err);
        return;
    }
    if (c->warning.status != STET_OK)
        stet_run_log(c->run, "stet", c->warning.message, strlen(c->warning.message));
    if (!c->hit)
        keep_output(c);
    keep_until_stored(c);
    stet_run *run = c->run;
    stet_value result = c->result;
    if (c->hit)
        stet_run_restored(run);
    c->result = stet_value_null();
    command_run_free(c);
    stet_run_succeed(run, result);
}

/* What a file is, as far as the scan knows; one that nobody follows is looked at. */
static stet_status current_look(command_state *s, command_file *f, stet_error *err) {
    if (stet_files_known(s->files, f->path, &f->look))
        return STET_OK;
    return stet_look_at(stet_files_root(s->files), f->path, NULL, &f->look, err);
}

/* The outcome under an id, or one that holds for this place alone. */
static stet_status get_entry(command_run *c, stet_hash id, stet_error *err) {
    command_state *s = c->state;
    stet_error inner = STET_ERROR_INIT;
    stet_status status =
        c->spec.place ? STET_NOT_FOUND : command_entry_get(s->persist, &c->spec, id, &c->entry, &inner);
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&inner);
        return command_entry_get(s->persist, &c->spec, command_placed_id(id, s->root), &c->entry, err);
    }
    stet_error_move(err, &inner);
    return status;
}

/* Is there an outcome of this call? Sets entry, second id and found files. */
static stet_status look_up(command_run *c, stet_error *err) {
    command_state *s = c->state;
    if (!c->spec.depfile) {
        c->second = c->spec.call;
        return get_entry(c, c->spec.call, err);
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
        status = get_entry(c, c->second, &inner);
        if (status != STET_NOT_FOUND) {
            stet_error_move(err, &inner);
            return status;
        }
        stet_error_clear(&inner);
    }
    return stet_fail(err, STET_NOT_FOUND, "no outcome for the files as they are");
}

/* Are the outputs there as the entry has them? What the scan knows may have been overwritten by another process since.
 */
static bool in_place(command_run *c) {
    bool all = true;
    for (size_t i = 0; i < c->spec.outputs.len; i++) {
        command_file *f = &c->spec.outputs.at[i];
        stet_look now;
        bool here = stet_files_known(c->state->files, f->path, &f->known) && stet_look_same(&f->known, &f->look) &&
                    stet_look_at(stet_files_root(c->state->files), f->path, &f->known, &now, NULL) == STET_OK &&
                    stet_look_same(&now, &f->look);
        if (here)
            f->look = now;
        all &= here;
    }
    return all;
}

/* What a failed command said, whole, for people; and for programs in the details. */
static void show_output(command_run *c) {
    for (int k = 0; k < 2 && c->task; k++) {
        stet_buf b = STET_BUF(SHOWN_BYTES + 100);
        stet_value v;
        stet_task_output(c->task, k == 1, SHOWN_BYTES, &b);
        if (b.len) {
            stet_run_log(c->run, k ? "stderr" : "stdout", b.data, b.len);
            size_t keep = b.len < 65536 ? b.len : 65536;
            if (stet_value_string_checked(b.data, keep, &v, NULL) == STET_OK)
                stet_detail(&c->error, k ? "stderr" : "stdout", v);
        }
        stet_buf_release(&b);
    }
    if (c->end.state == STET_TASK_ENDED)
        stet_detail(&c->error, c->end.exit.signalled ? "signal" : "exit", stet_value_int(c->end.exit.code));
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
        stet_value_release(c->result);
        c->result = stet_value_null();
        c->hit = false;
        c->missed = true;
        *stet_vec_add(&s->queue) = c;
    } else {
        if (!c->taken && !c->hit)
            show_output(c);
        conclude(c);
    }
    pump(s);
}

static void begin_work(command_run *c, uv_work_cb work) {
    c->acted = true;
    c->work.data = c;
    c->working = true;
    c->state->working++;
    if (uv_queue_work(c->state->host.loop, &c->work, work, work_done) != 0) {
        work(&c->work);
        work_done(&c->work, 0);
    }
}

/* Its supervisor was killed, and the command with it: that says nothing about the command, which starts again. So does an
 * effect: it was not done to its end, and the next run would start it. */
static bool is_lost(command_run *c) {
    return c->end.state == STET_TASK_LOST && !c->was_cancelled && ++c->lost < MAX_LOST;
}

static void task_ended(command_run *c) {
    c->state->running--;
    c->was_cancelled = c->cancelled;
    c->end = *stet_task_exit(c->task);
    for (int k = 0; k < 2; k++) /* also of a command that is going to be started again */
        command_tell(c, k == 1, true);
    stet_free(c->output_path); /* of an earlier time, when an input changed meanwhile */
    stet_free(c->error_path);
    c->output_path = stet_task_output_path(c->task, false);
    c->error_path = stet_task_output_path(c->task, true);
    for (size_t i = 0; i < c->spec.lists.len; i++)
        unlink(c->spec.lists.at[i].path);
    c->wrote = true;
    if (is_lost(c)) {
        c->changed = true; /* so it runs again, on the inputs as they are */
        c->taken = false;
        conclude(c);
        return;
    }
    c->failing = c->end.state != STET_TASK_ENDED || c->end.exit.signalled || c->end.exit.code != 0;
    c->state->failing += c->failing;
    begin_work(c, command_collect_work);
}

static void free_handle(uv_handle_t *h) {
    stet_free(h);
}

void command_stop_polling(command_state *s) {
    if (!s->poll)
        return;
    uv_poll_stop(s->poll);
    uv_close((uv_handle_t *)s->poll, free_handle);
    s->poll = NULL;
}

static void hear(command_state *s) {
    stet_task *t;
    while (s->local && (t = stet_local_next(s->local)) != NULL) {
        command_run *c = stet_task_data(t);
        if (c->waits_for_node) { /* it was in the way, and is gone: nobody wants how it ended */
            c->waits_for_node = false;
            c->reconsider = true;
            stet_task_set_data(t, NULL);
            stet_local_collected(s->local, t);
            *stet_vec_add(&s->queue) = c;
        } else {
            task_ended(c);
        }
    }
    if (s->local && stet_local_fd(s->local) < 0) /* before another supervisor is started, maybe at the same number */
        command_stop_polling(s);
    pump(s);
}

static void on_poll(uv_poll_t *p, int status, int events) {
    (void)status;
    (void)events;
    hear(p->data);
}

static void on_timer(uv_timer_t *t) {
    command_state *s = t->data;
    command_tell_all(s);
    hear(s);
}

/* None begins while it is being found out how a failed one ended: that may be the end of all of them. */
static bool may_begin(const command_state *s) {
    return s->failing == 0 && s->running < s->jobs && s->working < MAX_WORKING;
}

/* How long nothing needs to be looked at that has no descriptor; -1: for ever. */
static int64_t patience_ms(const command_state *s, bool running) {
    int64_t now = stet_clock_monotonic_us(), next = -1;
    for (size_t i = 0; i < s->queue.len && may_begin(s); i++) { /* the end of what is in the way is heard of */
        int64_t rest = (s->queue.at[i]->not_before_us - now + 999) / 1000;
        if (rest <= 0)
            rest = s->locked ? 0 : POLL_MS;
        if (next < 0 || rest < next)
            next = rest;
    }
    bool lost = false;
    for (size_t i = 0; i < s->active.len; i++)
        lost |= (s->active.at[i]->task && !s->active.at[i]->working) || s->active.at[i]->waits_for_node;
    if (lost && (!running || !s->poll || stet_local_adopted(s->local)) && (next < 0 || next > POLL_MS))
        return POLL_MS;
    return running && (next < 0 || next > TELL_MS) ? TELL_MS : next; /* what commands print is told while they run */
}

/* Descriptor and timer are on exactly while something is awaited: an idle loop ends. */
static void set_watching(command_state *s) {
    bool running = s->local && (stet_local_running(s->local) > 0);
    int fd = s->local ? stet_local_fd(s->local) : -1;
    if (running && !s->poll && fd >= 0) {
        uv_poll_t *p = stet_alloc_zero(sizeof *p);
        if (uv_poll_init(s->host.loop, p, fd) == 0) {
            p->data = s;
            uv_poll_start(p, UV_READABLE, on_poll);
            s->poll = p;
        } else {
            stet_free(p); /* the timer sees to it */
        }
    }
    int64_t wait = s->nudged ? 0 : patience_ms(s, running);
    if (wait < 0)
        uv_timer_stop(&s->timer);
    else if (!uv_is_active((uv_handle_t *)&s->timer) || wait != s->timing_ms)
        uv_timer_start(&s->timer, on_timer, (uint64_t)wait, wait < TELL_MS ? POLL_MS : TELL_MS);
    s->timing_ms = wait;
}

/* One drive of a project runs commands at a time: two would write the same files. Whoever takes the lock looks at what
 * those before have left: a command that goes on without its drive, one that nobody has collected. */
static bool take_lock(command_state *s) {
    if (s->locked)
        return true;
    s->locked = stet_lock_take(s->lock, STET_LOCK_EXCLUSIVE, 0, NULL) == STET_OK;
    if (!s->locked)
        return false;
    stet_error err = STET_ERROR_INIT;
    stet_error_clear(&s->unseen);
    if (stet_local_turn(s->local, &err) != STET_OK || stet_local_look(s->local, &err) != STET_OK)
        stet_error_move(&s->unseen, &err);
    /* Lists of names of commands that nobody went on with: no command runs now. */
    if (s->unseen.status == STET_OK && stet_local_alone(s->local) && stet_file_exists(s->lists) &&
        stet_file_remove_tree(s->lists, NULL) != STET_OK) {
        /* the next time */
    }
    return true;
}

/* What its command, or the restoring of an outcome, writes and removes. */
typedef STET_VEC(const char *) command_paths;
static void list_written(const command_run *c, command_paths *out) {
    for (size_t i = 0; i < c->spec.outputs.len; i++)
        *stet_vec_add(out) = c->spec.outputs.at[i].path;
    if (c->spec.depfile)
        *stet_vec_add(out) = c->spec.depfile;
    *stet_vec_add(out) = NULL;
}

/* A command of an earlier drive that still runs and writes the same files, other than `not`; NULL: none. */
static stet_task *in_the_way(const command_run *c, const stet_task * not ) {
    command_paths paths = {0};
    list_written(c, &paths);
    stet_task *t = stet_local_in_the_way(c->state->local, c->run->name, paths.at, not );
    stet_vec_release(&paths);
    return t;
}

/* Ends what is in the way, and waits for its end. With the lock. */
static void clear_the_way(command_run *c, stet_task *other) {
    if (stet_task_data(other)) { /* somebody else of this process waits for it already, or goes on with it */
        c->reconsider = true;
        c->not_before_us = stet_clock_monotonic_us() + POLL_MS * 1000;
        *stet_vec_add(&c->state->queue) = c;
        return;
    }
    c->waits_for_node = true;
    stet_task_set_data(other, c);
    stet_local_cancel(c->state->local, other, 0);
}

/* Are the inputs on disk what the spec says? Another process may have changed them, or documents of them, since they
 * were last looked at here. False: some are not. Their looks are what is there then. */
static stet_status check_inputs(command_run *c, bool *good, stet_error *err) {
    command_state *s = c->state;
    *good = true;
    for (size_t i = 0; i < c->spec.inputs.len; i++) { /* looks with times: unchanged files are not read again */
        command_file *f = &c->spec.inputs.at[i];
        stet_look known, now;
        bool there = stet_files_known(s->files, f->path, &known);
        if (there && stet_look_same(&known, &f->look) && !stet_files_is_stale(s->files, f->path) && !c->again) {
            f->look = known;
            continue;
        }
        stet_status status = stet_look_at(stet_files_root(s->files), f->path, there ? &known : NULL, &now, err);
        if (status != STET_OK)
            return status;
        if (!stet_look_same(&now, &f->look)) {
            *good = false;
            if (!c->moved)
                c->moved = stet_strdup(f->path);
        }
        f->look = now;
    }
    return STET_OK;
}

/* What its output is to lie in may itself have been an output, of this node before it was edited or of one that is
 * gone: a file, or a directory that was that node's as a whole. It goes, unless it was changed since. */
static stet_status clear_above(command_run *c, const char *path, stet_error *err) {
    stet_files *files = c->state->files;
    stet_status status = STET_OK;
    const char *slash = path[0] == '/' || strncmp(path, "../", 3) == 0 ? NULL : strchr(path, '/');
    for (; slash && status == STET_OK; slash = strchr(slash + 1, '/')) {
        char *above = stet_strndup(path, (size_t)(slash - path)), *full = command_full_path(c->state, above);
        stet_look known, now;
        if (stet_files_known(files, above, &known) && (known.flags & STET_LOOK_MADE) && stet_look_there(&known) &&
            !known.link && !stet_files_is_written_by_other(files, above, c->run->name) &&
            stet_look_at(stet_files_root(files), above, NULL, &now, NULL) == STET_OK && stet_look_same(&now, &known))
            status = stet_file_remove_tree(full, err);
        stet_free(full);
        stet_free(above);
    }
    return status;
}

/* What a command is found by if its drive ends before it does. Not if the project lies elsewhere by then: the command may
 * have asked where it is. */
static stet_hash task_key(const command_run *c) {
    return command_placed_id(c->spec.call, c->state->root);
}

/* Names that are given in a file (command_fill.h). */
static stet_status write_lists(command_run *c, stet_error *err) {
    stet_status status = c->spec.lists.len > 0 ? stet_file_mkdirs(c->state->lists, 0755, err) : STET_OK;
    for (size_t i = 0; i < c->spec.lists.len && status == STET_OK; i++) {
        const command_list *l = &c->spec.lists.at[i];
        int fd = stet_sys_open(l->path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0644);
        status = fd < 0 ? stet_fail_errno(err, errno, "cannot write %s", l->path)
                        : stet_file_write_all(fd, l->path, stet_buf_cstr(&l->names), l->names.len, err);
        if (fd >= 0)
            stet_sys_close(fd);
    }
    return status;
}

/* Also behind a link that leads to nothing so far. */
static stet_status make_dir(const command_state *s, const char *dir, stet_error *err) {
    char *real = stet_path_real_dir(s->root, dir), *full = real && *real ? stet_file_join(s->root, real) : NULL;
    stet_status status = stet_file_mkdirs(full ? full : dir, 0755, err);
    stet_free(full);
    stet_free(real);
    return status;
}

/* A supervisor that is killed just now takes no request: another one does. */
static stet_status start_task(command_run *c, const stet_local_request *r, stet_error *err) {
    command_state *s = c->state;
    for (int i = 1;; i++) {
        stet_error mine = STET_ERROR_INIT;
        stet_status status = stet_local_start(s->local, r, &c->task, &mine);
        s->nudged |= stet_local_heard(s->local);
        bool gone = status == STET_IO && stet_local_fd(s->local) < 0;
        if (gone) /* the next one may have a descriptor of the same number */
            command_stop_polling(s);
        if (!gone || i == MAX_LOST) {
            stet_error_move(err, &mine);
            return status;
        }
        stet_error_clear(&mine);
    }
}

static stet_status launch(command_run *c, stet_error *err) {
    command_state *s = c->state;
    stet_status status = command_check_place(c, err);
    if (status != STET_OK)
        return status;
    c->acted = true;
    for (size_t i = 0; i < c->spec.outputs.len + 1 && status == STET_OK; i++) {
        const char *path = i < c->spec.outputs.len ? c->spec.outputs.at[i].path : c->spec.depfile;
        if (!path)
            continue;
        char *full = command_full_path(s, path), *dir = stet_file_dirname(full);
        struct stat st;
        status = clear_above(c, path, err);
        if (status == STET_OK && stet_sys_lstat(full, &st) == 0)
            status = stet_file_remove_tree(full, err);
        if (status == STET_OK && (stet_sys_stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)))
            status = make_dir(s, dir, err);
        stet_free(full);
        stet_free(dir);
    }
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < c->spec.scripts.len; i++) {
        const char *path = c->spec.scripts.at[i].path;
        stet_look known, now, *look = &c->spec.scripts.at[i].look;
        if (!stet_files_known(s->files, path, &known) || !stet_look_same(&known, look))
            continue;
        *look = known;
        if (c->again && stet_look_at(stet_files_root(s->files), path, &known, &now, NULL) == STET_OK &&
            stet_look_same(&now, look))
            *look = now; /* it was touched since it was last looked at */
    }
    command_paths paths = {0};
    list_written(c, &paths);
    stet_local_request r = {.key = task_key(c),
                            .node = c->run->name,
                            .argv = (const char *const *)c->spec.argv.at,
                            .envp = (const char *const *)c->spec.env.at,
                            .cwd = c->spec.cwd,
                            .outputs = paths.at,
                            .top = s->root,
                            .in_turn = true,
                            .input = c->spec.standard_input,
                            .input_len = c->spec.standard_input_len,
                            .timeout_ms = c->spec.timeout_ms,
                            .max_memory = c->spec.max_memory,
                            .max_cpu_s = c->spec.max_cpu_s,
                            .max_file_size = c->spec.max_file_size};
    status = write_lists(c, err);
    if (status != STET_OK) {
        stet_vec_release(&paths);
        return status;
    }
    command_guard_begin(c);
    c->launched_ns = stet_look_clock();
    command_words notes = {0};
    command_notes_write(c, &notes);
    r.notes = (const char *const *)notes.at;
    command_words held = {0};
    command_above_list(c);
    command_above_paths(c, &held);
    r.held = (const char *const *)held.at;
    status = start_task(c, &r, err);
    command_words_release(&held);
    command_words_release(&notes);
    stet_vec_release(&paths);
    if (status == STET_OK)
        stet_task_set_data(c->task, c);
    return status;
}

/* What an earlier drive has left of this call, if it can be gone on with. */
static stet_task *left_behind(command_state *s, stet_hash key) {
    stet_task *t;
    while ((t = stet_local_find(s->local, key)) != NULL) {
        const stet_task_end *e = stet_task_exit(t);
        if (e->state == STET_TASK_RUNNING)
            return e->cancelled ? NULL : t;
        if (e->state == STET_TASK_ENDED && !e->cancelled && !e->exit.signalled && e->exit.code == 0)
            return t;
        stet_local_collected(s->local, t); /* what failed runs again, whoever was there to see it */
    }
    return NULL;
}

/* An input is not what its document says. A source has been changed: the document is brought up to date, and the
 * command is evaluated anew. A file that another node makes is missing or was overwritten: its document says so now,
 * and that node comes first. */
static void bring_inputs_up(command_run *c) {
    stet_error err = STET_ERROR_INIT;
    command_spec now;
    stet_status status = commit_looks(c, true, &err);
    if (status == STET_OK)
        status = stet_run_refresh(c->run, &err);
    if (status != STET_OK) {
        command_decline_run(c, &err);
        return;
    }
    status = command_evaluate(c->run, c->state->root, c->state->lists, c->state->files, &c->suspects, &now, &err);
    if (status != STET_OK) {
        command_fail_run(c, &err);
    } else if (stet_hash_equal(now.call, c->spec.call)) {
        command_spec_release(&now);
        stet_fail(&err, STET_CONFLICT, "%s: its input %s is not there as it was last made", c->run->name, c->moved);
        stet_hint(&err, "the node that makes it has to run first; stet run does that");
        command_decline_run(c, &err);
    } else {
        start_again(c, &now);
    }
}

/* Which of the files that its words name are written by other nodes: they change when these run. */
static void find_makers(command_run *c) {
    for (size_t i = 0; i < c->spec.scripts.len; i++) {
        command_file *f = &c->spec.scripts.at[i];
        bool outside = f->path[0] == '/' || strncmp(f->path, "../", 3) == 0;
        f->made = !outside && stet_files_is_written_by_other(c->state->files, f->path, c->run->name);
    }
}

/* Starts one from the queue, or goes on with what an earlier drive left. */
static void advance(command_run *c) {
    command_state *s = c->state;
    stet_error err = STET_ERROR_INIT;
    stet_task *left = left_behind(s, task_key(c)), *other = in_the_way(c, left);
    if (other) { /* it must be out of the way first: two would write to the same files */
        clear_the_way(c, other);
        return;
    }
    if (left) {
        find_makers(c);
        c->task = left;
        c->found_ended = stet_task_exit(left)->state != STET_TASK_RUNNING;
        s->nudged |= c->found_ended; /* nobody will report its end */
        command_notes_read(c, left);
        command_above_list(c);
        stet_task_set_data(left, c);
        s->running++;
        stet_run_works(c->run, true);
        return;
    }
    command_paths paths = {0};
    list_written(c, &paths);
    stet_local_discard(s->local, c->run->name, paths.at);
    stet_vec_release(&paths);
    bool good;
    find_makers(c);
    stet_status status = check_inputs(c, &good, &err);
    if (status == STET_OK && !good) {
        bring_inputs_up(c);
        return;
    }
    if (status == STET_OK)
        status = launch(c, &err);
    if (status != STET_OK) { /* it was not tried */
        command_decline_run(c, &err);
        return;
    }
    s->running++;
    stet_run_works(c->run, true);
}

/* It has waited, or others have written: another process may have run it before this one had the lock, and inputs may
 * be others by now. False: it is dealt with. */
static bool reconsider(command_run *c) {
    stet_error err = STET_ERROR_INIT;
    command_spec now;
    c->reconsider = false;
    if (!c->acted && !in_the_way(c, NULL) && stet_run_yield(c->run)) { /* whoever had the lock has done it */
        command_run_free(c);
        return false;
    }
    stet_status status = stet_run_refresh(c->run, &err);
    if (status != STET_OK) {
        command_decline_run(c, &err);
        return false;
    }
    status = command_evaluate(c->run, c->state->root, c->state->lists, c->state->files, &c->suspects, &now, &err);
    if (status != STET_OK) {
        command_fail_run(c, &err);
        return false;
    }
    stet_run_suspend(c->run);
    command_spec_release(&c->spec);
    c->spec = now;
    stet_error none = STET_ERROR_INIT;
    command_files_release(&c->found);
    if (!c->missed && !stet_run_is_effect(c->run) && c->spec.cache && look_up(c, &none) == STET_OK) {
        stet_task *other = in_the_way(c, NULL);
        if (other) {
            command_entry_release(&c->entry);
            clear_the_way(c, other);
            return false;
        }
        c->hit = true;
        c->result = stet_value_retain(c->entry.result);
        if (in_place(c)) {
            c->taken = true;
            conclude(c);
        } else {
            c->wrote = true;
            begin_work(c, command_restore_work);
        }
        return false;
    }
    stet_error_clear(&none);
    return true;
}

/* The next one whose time has come, or NULL. */
static command_run *take_from_queue(command_state *s) {
    int64_t now = 0;
    for (size_t i = 0; i < s->queue.len; i++) {
        command_run *c = s->queue.at[i];
        if (c->not_before_us && !now)
            now = stet_clock_monotonic_us();
        if (c->not_before_us > now && !is_cancelled(c))
            continue;
        memmove(s->queue.at + i, s->queue.at + i + 1, (--s->queue.len - i) * sizeof *s->queue.at);
        c->not_before_us = 0;
        return c;
    }
    return NULL;
}

static void pump(command_state *s) {
    command_run *c;
    s->nudged = false;
    while (s->queue.len > 0 && may_begin(s) && take_lock(s) && (c = take_from_queue(s)) != NULL) {
        if (is_cancelled(c)) {
            stop_before_it_begins(c);
        } else if (s->unseen.status != STET_OK) {
            stet_error err = STET_ERROR_INIT;
            stet_fail(&err, s->unseen.status, "%s: %s", c->run->name, s->unseen.message);
            command_decline_run(c, &err);
        } else {
            c->reconsider |= stet_run_has_company(c->run);
            if (!c->reconsider || reconsider(c))
                advance(c);
        }
    }
    set_watching(s);
}

/* Two nodes that write one file would undo each other's work for ever: the second is refused. */
static stet_status claim_outputs(command_run *c, stet_error *err) {
    command_state *s = c->state;
    for (size_t i = 0; i < c->spec.outputs.len; i++) {
        char *real = command_real_output(s->root, c->spec.outputs.at[i].path);
        const char *path = real ? real : c->spec.outputs.at[i].path;
        stet_slot *slot = stet_map_get(&s->claimed, path, strlen(path));
        if (!slot) {
            char *name = stet_strdup(c->run->name);
            stet_map_put(&s->claimed, path, strlen(path), (stet_slot){.p = name});
        } else if (strcmp(slot->p, c->run->name) != 0) {
            stet_fail(err, STET_FAILED, "%s: its output %s is written by %s as well", c->run->name, path,
                      (const char *)slot->p);
            stet_hint(err, "let one of them write another file");
        }
        bool free = !slot || strcmp(slot->p, c->run->name) == 0;
        stet_free(real);
        if (!free)
            return STET_FAILED;
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
    if (c->cancelled) {
        stop_before_it_begins(c);
        return;
    }
    if (claim_outputs(c, &err) != STET_OK || check_leftovers(c, &c->spec, &err) != STET_OK) {
        command_fail_run(c, &err);
        return;
    }
    if (c->spec.cache && !stet_run_is_effect(c->run) && look_up(c, &err) == STET_OK) {
        bool clear = !in_the_way(c, NULL);
        c->hit = true;
        c->result = stet_value_retain(c->entry.result);
        if (clear && in_place(c)) {
            c->taken = true;
            conclude(c);
            return;
        }
        if (take_lock(s) && s->unseen.status == STET_OK && !in_the_way(c, NULL)) { /* it writes, as a command does */
            c->wrote = true;
            begin_work(c, command_restore_work);
            return;
        }
        /* Whoever holds it may be at the same, and what is in the way has to go: it is looked up again then. */
        c->hit = false;
        c->reconsider = true;
        stet_value_release(c->result);
        c->result = stet_value_null();
        command_entry_release(&c->entry);
    }
    stet_error_clear(&err); /* a miss, or a directory that can't be read: it runs */
    *stet_vec_add(&s->queue) = c;
    s->nudged = true; /* not at once: nothing is evaluated anew while another one is being started (module.h) */
    set_watching(s);
}
