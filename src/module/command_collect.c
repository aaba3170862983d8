/* command_collect.c - what is done for a run on worker threads: outputs put back, the outcome of a command gathered. */
#include <string.h>

#include "exec/depfile.h"
#include "files/path.h"
#include "module/command_run.h"
#include "os/file.h"

#define RESULT_BYTES ((size_t)16 << 20) /* of standard output that is a result */

char *command_full_path(const command_state *s, const char *path) {
    return path[0] == '/' ? stet_strdup(path) : stet_file_join(s->root, path);
}

void command_restore_work(uv_work_t *w) {
    command_run *c = w->data;
    stet_status status = command_restore(c->state->persist, stet_files_root(c->state->files), c->state->root,
                                         c->state->temp_dir, &c->spec, &c->entry, c->state->hardlink, &c->error);
    c->taken = status == STET_OK;
}

/* Standard output as the result asks for it. */
static stet_status take_output(command_run *c, stet_value *result, stet_error *err) {
    if (!c->spec.json_output && !c->spec.text_output)
        return STET_OK;
    stet_buf b = STET_BUF(RESULT_BYTES);
    stet_value v = stet_null();
    stet_status status = stet_file_read(c->output_path, RESULT_BYTES, &b, err);
    if (status == STET_OK && c->spec.json_output)
        status = stet_json_parse(b.len ? b.data : "", b.len, &v, err);
    else if (status == STET_OK)
        status = stet_string_checked(b.len ? b.data : "", b.len, &v, err);
    if (status != STET_OK) {
        stet_fail_in(err, "%s: its standard output", c->run->name);
        status = err->status = STET_FAILED;
    } else {
        stet_put(result, "stdout", v);
    }
    stet_buf_release(&b);
    return status;
}

/* Everything that the dependency file names and that is neither an input nor an output. */
static stet_status read_depfile(command_run *c, stet_error *err) {
    command_state *s = c->state;
    if (!c->spec.depfile)
        return STET_OK;
    char *full = command_full_path(s, c->spec.depfile);
    stet_buf text = STET_BUF(STET_DEPFILE_MAX_BYTES);
    stet_depfile d = {0};
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_file_read(full, STET_DEPFILE_MAX_BYTES, &text, &inner);
    bool absent = status == STET_NOT_FOUND;
    if (status == STET_OK)
        status = stet_depfile_parse(text.data, text.len, &d, &inner);
    if (status == STET_OK || !absent)
        command_files_release(&c->found); /* of the last time */
    for (size_t i = 0; i < d.len && status == STET_OK; i++) {
        char *path;
        if (stet_path_normal(s->root, c->spec.cwd_rel, d.at[i], &path, NULL) != STET_OK)
            continue; /* a directory, or a file of .stet */
        bool known = false;
        for (size_t k = 0; k < c->spec.inputs.len && !known; k++)
            known = strcmp(c->spec.inputs.at[k].path, path) == 0;
        for (size_t k = 0; k < c->spec.outputs.len && !known; k++)
            known = strcmp(c->spec.outputs.at[k].path, path) == 0;
        if (!known)
            command_files_add(&c->found, "", path);
        stet_free(path);
    }
    if (status != STET_OK) {
        stet_error_clear(&inner);
        stet_fail(err, STET_FAILED, "%s: its dependency file %s %s", c->run->name, c->spec.depfile,
                  absent ? "is not there" : "can't be read");
        status = STET_FAILED;
    }
    stet_depfile_release(&d);
    stet_buf_release(&text);
    stet_free(full);
    return status;
}

/* Looks at inputs and found files as they are now. */
static stet_status look_again(command_run *c, stet_error *err) {
    int root = stet_files_root(c->state->files);
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->spec.inputs.len && status == STET_OK; i++) {
        stet_look now, *was = &c->spec.inputs.at[i].look;
        status = stet_look_at(root, c->spec.inputs.at[i].path, was->inode ? was : NULL, &now, err);
        if (status == STET_OK && !stet_look_same(&now, was))
            c->changed = true;
        *was = now;
    }
    for (size_t i = 0; i < c->found.len && status == STET_OK; i++) {
        stet_look now, *was = &c->found.at[i].look;
        status = stet_look_at(root, c->found.at[i].path, was->inode ? was : NULL, &now, err);
        *was = now;
        /* One that changed since the command began may have been read before or after. */
        if (status == STET_OK && now.mode && now.mode != STET_LOOK_DIRECTORY && now.mtime > c->end.started_ns)
            c->changed = true;
    }
    return status;
}

static void remove_outputs(command_run *c) {
    for (size_t i = 0; i < c->spec.outputs.len; i++) {
        char *full = command_full_path(c->state, c->spec.outputs.at[i].path);
        if (stet_file_remove_tree(full, NULL) != STET_OK) {
            /* a file that can't be removed: the scan sees what is there */
        }
        stet_free(full);
    }
}

/* What the command's end means. */
static stet_status judge(command_run *c, stet_error *err) {
    const stet_task_end *e = &c->end;
    const char *name = c->run->name;
    if (c->was_cancelled)
        return stet_fail(err, STET_CANCELLED, "%s: stopped", name);
    if (e->state == STET_TASK_REFUSED)
        return stet_fail(err, STET_FAILED, "%s: %s", name, e->message);
    if (e->state == STET_TASK_LOST)
        return stet_fail(err, STET_FAILED, "%s: its supervisor was killed", name);
    if (e->timed_out)
        return stet_fail(err, STET_FAILED, "%s: not done after %lld ms, the time it is given", name,
                         (long long)c->spec.timeout_ms);
    if (e->exit.signalled)
        return stet_fail(err, STET_FAILED, "%s: ended by signal %d (%s)", name, e->exit.code, strsignal(e->exit.code));
    if (e->exit.code != 0)
        return stet_fail(err, STET_FAILED, "%s: exit status %d", name, e->exit.code);
    return STET_OK;
}

void command_collect_work(uv_work_t *w) {
    command_run *c = w->data;
    command_state *s = c->state;
    stet_status status = judge(c, &c->error);
    stet_error aside = STET_ERROR_INIT;
    /* Of a failed one too: it runs again when what it read changes. */
    stet_status deps = read_depfile(c, &aside);
    if (status == STET_OK && deps != STET_OK)
        stet_error_move(&c->error, &aside);
    status = c->error.status;
    stet_error_clear(&aside);
    stet_error looking = STET_ERROR_INIT;
    if (look_again(c, &looking) != STET_OK && status == STET_OK)
        stet_error_move(&c->error, &looking);
    stet_error_clear(&looking);
    for (size_t i = 0; i < c->spec.outputs.len && c->error.status == STET_OK; i++) {
        command_file *f = &c->spec.outputs.at[i];
        status = stet_look_at(stet_files_root(s->files), f->path, NULL, &f->look, &c->error);
        if (status == STET_OK && !stet_look_there(&f->look)) {
            stet_buf shown = STET_BUF(600);
            stet_path_escape(f->path, &shown);
            stet_fail(&c->error, STET_FAILED, "%s: it ended well and did not write %s", c->run->name,
                      stet_buf_cstr(&shown));
            stet_buf_release(&shown);
        }
        /* Left behind by an earlier drive, and somebody wrote to it since. */
        if (status == STET_OK && f->look.mode != STET_LOOK_DIRECTORY && f->look.mtime > c->end.ended_ns + 50000000)
            c->changed = true;
    }
    stet_value result = stet_object();
    stet_put(&result, "files", command_result_files(&c->spec));
    if (c->error.status == STET_OK && take_output(c, &result, &c->error) != STET_OK) {
        /* the error is set */
    }
    c->taken = c->error.status == STET_OK;
    if (!c->taken || c->changed)
        remove_outputs(c);
    if (c->taken && !c->changed && c->spec.cache && !stet_run_is_effect(c->run)) {
        status = command_second_id(&c->spec, &c->found, &c->second, &c->warning);
        if (!c->spec.depfile)
            c->second = c->spec.call;
        if (status == STET_OK &&
            command_store(s->persist, s->root, &c->spec, c->second, &c->found, result, c->output_path, c->error_path,
                          (c->end.ended_ns - c->end.started_ns) / 1000000, &c->warning) != STET_OK) {
            /* the warning is set: what can't be kept is worth no more */
        }
    }
    c->result = result;
}
