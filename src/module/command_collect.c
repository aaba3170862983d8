/* command_collect.c - work of a run on worker threads: restores outputs, and gathers the outcome of a command. */

#include <string.h>

#include "files/path.h"
#include "module/bound.h"
#include "module/command_run.h"
#include "module/depfile.h"
#include "os/file.h"

#define TICK_NS      10000000           /* times of files are behind the clock by so much at most */
#define MAX_WAYS     2                  /* how often a link on the way to what was read may have been made meanwhile */
#define RESULT_BYTES ((size_t)16 << 20) /* of standard output that is a result */

char *command_full_path(const command_state *s, const char *path) {
    return path[0] == '/' ? stet_strdup(path) : stet_file_join(s->root, path);
}

stet_status command_check_place(const command_run *c, stet_error *err) {
    struct stat here, there;
    const command_state *s = c->state;
    if (stet_sys_stat(s->root, &there) == 0 && fstat(stet_files_root(s->files), &here) == 0 &&
        here.st_dev == there.st_dev && here.st_ino == there.st_ino)
        return STET_OK;
    stet_fail(err, STET_IO, "%s: the project was moved while it ran", c->run->name);
    stet_hint(err, "run stet again at its new place");
    return STET_IO;
}

void command_restore_work(uv_work_t *w) {
    command_run *c = w->data;
    stet_status status = command_check_place(c, &c->error);
    if (status == STET_OK)
        status = command_restore(c->state->persist, stet_files_root(c->state->files), c->state->root,
                                 c->state->temp_dir, &c->spec, &c->entry, c->state->hardlink, &c->error);
    c->taken = status == STET_OK;
}

/* Standard output as the result asks for it. */
static stet_status take_output(command_run *c, stet_value *result, stet_value *places, stet_error *err) {
    if (!c->spec.json_output && !c->spec.text_output)
        return STET_OK;
    stet_buf b = STET_BUF(RESULT_BYTES);
    stet_value v = stet_value_null();
    stet_status status = stet_file_read(c->output_path, RESULT_BYTES, &b, err);
    if (status == STET_OK && c->spec.json_output)
        status = stet_json_parse(b.len ? b.data : "", b.len, &v, err);
    else if (status == STET_OK)
        status = stet_value_string_checked(b.len ? b.data : "", b.len, &v, err);
    if (status != STET_OK) {
        stet_fail_in(err, "%s: its standard output", c->run->name);
        status = err->status = STET_FAILED;
    } else {
        if (b.len && memmem(b.data, b.len, c->state->root, strlen(c->state->root)))
            stet_value_push(places, stet_value_string("stdout"));
        stet_value_put(result, "stdout", v);
    }
    stet_buf_release(&b);
    return status;
}

/* A path of the project as it was written, if ".." comes after a link in it; or NULL. Caller frees. */
static char *linked_way(const command_run *c, const char *path) {
    char *whole = path[0] == '/' || !*c->spec.cwd_rel ? stet_strdup(path) : stet_file_join(c->spec.cwd_rel, path);
    size_t n = stet_path_before_up(whole);
    char *dir = n ? stet_strndup(whole, n) : NULL, *way = dir ? stet_path_detour(c->state->root, dir) : NULL;
    bool linked = way && whole[0] != '/' && strncmp(whole, "../", 3) != 0;
    stet_free(way);
    stet_free(dir);
    if (linked)
        return whole;
    stet_free(whole);
    return NULL;
}

/* Has somebody written to it since the command ended, or taken it away? One that was found ended may have waited for long,
 * and times can be set back: what counts then is the last change of any kind. */
static bool is_of_later(const command_run *c, const stet_look *look) {
    return look->mtime > c->end.ended_ns + 50000000 ||
           (c->found_ended &&
            (!stet_look_there(look) || look->mode == STET_LOOK_DIRECTORY || look->ctime > c->end.ended_ns));
}

static void add_found(command_run *c, const char *path) {
    bool known = false;
    for (size_t k = 0; k < c->spec.inputs.len && !known; k++)
        known = strcmp(c->spec.inputs.at[k].path, path) == 0;
    for (size_t k = 0; k < c->spec.outputs.len && !known; k++)
        known = strcmp(c->spec.outputs.at[k].path, path) == 0;
    if (!known)
        command_files_add(&c->found, "", path);
}

/* Everything that the dependency file names and that is neither an input nor an output, and what that is by the name that
 * it has without links: whoever makes it writes the document of that. */
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
    stet_look look;
    if (c->end.state == STET_TASK_ENDED &&
        (stet_look_at(stet_files_root(s->files), c->spec.depfile, NULL, &look, NULL) != STET_OK ||
         is_of_later(c, &look)))
        c->changed = true; /* what it lists may not be what the command read */
    for (size_t i = 0; i < d.len && status == STET_OK; i++) {
        char *path;
        if (stet_path_meant(s->root, c->spec.cwd_rel, d.at[i], &path, NULL) != STET_OK)
            continue; /* a directory, or a file of .stet */
        char *real = path[0] == '/' || strncmp(path, "../", 3) == 0 ? NULL : stet_path_real(s->root, path);
        add_found(c, path);
        if (real && strcmp(real, path) != 0)
            add_found(c, real);
        stet_free(real);
        char *way = linked_way(c, d.at[i]);
        if (way) /* its links may lead elsewhere later */
            command_files_add(&c->found, "", way);
        stet_free(way);
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

static void note_moved(command_run *c, const char *path) {
    c->changed = true;
    if (!c->moved)
        c->moved = stet_strdup(path);
}

/* Was it another file for a while, though it is the same now (command_guard.c)? `attributed`: files of which only
 * attributes changed are added. */
static bool was_touched(const command_run *c, const char *path, const stet_look *was, const stet_look *now,
                        command_files *attributed) {
    stet_look_rest rest = STET_LOOK_UNTOUCHED;
    int64_t since = c->launched_ns ? c->launched_ns : c->end.started_ns - TICK_NS;
    if (!stet_look_there(now))
        return false;
    if (was->inode) /* else it ran before this process looked at its inputs */
        rest = stet_look_between(was, now);
    else if (stet_look_changed_since(stet_files_root(c->state->files), path, since))
        rest = STET_LOOK_ATTRIBUTES;
    if (rest == STET_LOOK_ATTRIBUTES)
        command_files_add(attributed, "", path);
    return rest == STET_LOOK_REWRITTEN;
}

static bool is_among(const command_files *files, const char *path) {
    for (size_t i = 0; i < files->len; i++)
        if (strcmp(files->at[i].path, path) == 0)
            return true;
    return false;
}

/* What its words name may be what it writes, undeclared: it runs again without, and that shows. */
static stet_status look_at_scripts(command_run *c, int root, command_files *attributed, stet_error *err) {
    stet_status status = STET_OK;
    bool edited = false, differs = false;
    for (size_t i = 0; i < c->suspects.len && status == STET_OK; i++) {
        command_file *f = &c->suspects.at[i];
        stet_look now, *was = &f->look;
        status = stet_look_at(root, f->path, NULL, &now, err);
        bool same = stet_look_same(&now, was);
        edited |= same && stet_look_between(was, &now) == STET_LOOK_UNTOUCHED;
        if (strcmp(f->name, COMMAND_MADE) != 0) {
            if (!same && !f->may_write) { /* it was edited once more, or the command writes something else each time */
                differs = true;
                note_moved(c, f->path);
            }
            stet_free(f->name);
            f->name = stet_strdup(same && stet_look_there(&now) ? COMMAND_TOUCHED : "");
        }
        *was = now;
    }
    if ((edited || differs) && status == STET_OK) {
        command_files_release(&c->suspects);
        c->changed = true;
        c->unsettled += differs;
    }
    for (size_t i = 0; i < c->suspects.len && status == STET_OK; i++)
        stet_fail(&c->warning, STET_INVALID,
                  "it writes %s, which its command names: list that in `produces`, or set "
                  "`scripts = false`",
                  c->suspects.at[i].path);
    for (size_t i = 0; i < c->spec.scripts.len && status == STET_OK; i++) {
        stet_look now, *was = &c->spec.scripts.at[i].look;
        const char *path = c->spec.scripts.at[i].path;
        status = stet_look_at(root, path, was->inode ? was : NULL, &now, err);
        if (status != STET_OK)
            break;
        bool same = stet_look_same(&now, was), touched = same && was_touched(c, path, was, &now, attributed);
        bool others = c->spec.scripts.at[i].made; /* then who writes it is known, and it is not this command */
        if (others && (touched || !same)) {
            note_moved(c, path);
        } else if (touched && !is_among(&c->touched, path)) {
            note_moved(c, path);
            command_files_add(&c->touched, "", path);
        } else if (!same) {
            /* What was not there before it made, if its words say so; else somebody may have, and nobody knows whether
             * it read that: it runs again with it. An effect is not done twice for that. */
            bool made = !stet_look_there(was) && (c->spec.scripts.at[i].may_write || stet_run_is_effect(c->run));
            if (!made || edited || differs)
                note_moved(c, path);
            if (!edited && !differs) {
                command_file *f = command_files_add(&c->suspects, made ? COMMAND_MADE : "", path);
                f->look = now;
                f->may_write = c->spec.scripts.at[i].may_write;
            }
        }
        *was = now;
    }
    return status;
}

/* Was one of the links on the way to it made while the command ran, by somebody else? Then the command may have found
 * nothing there. A command that makes such a link each time, and does not declare it, is believed after some rounds. */
static bool way_changed(const command_run *c, const char *path) {
    int64_t since = c->launched_ns ? c->launched_ns : c->end.started_ns - TICK_NS;
    stet_names links = {0};
    bool changed = false;
    if (c->again < MAX_WAYS)
        stet_bound_links(c->state->root, path, &links);
    for (size_t i = 0; i < links.len && !changed; i++) {
        char *full = command_full_path(c->state, links.at[i]);
        struct stat st;
        changed =
            stet_sys_lstat(full, &st) == 0 && (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec >= since;
        for (size_t k = 0; k < c->spec.outputs.len && changed; k++) {
            size_t n = strlen(c->spec.outputs.at[k].path);
            changed =
                strncmp(links.at[i], c->spec.outputs.at[k].path, n) != 0 || (links.at[i][n] && links.at[i][n] != '/');
        }
        stet_free(full);
    }
    stet_names_release(&links);
    return changed;
}

/* Looks at inputs and found files as they are now: c->changed if one of them was not the same all the time. */
static stet_status look_again(command_run *c, stet_error *err) {
    int root = stet_files_root(c->state->files);
    stet_status status = STET_OK;
    command_files attributed = {0};
    for (size_t i = 0; i < c->spec.inputs.len && status == STET_OK; i++) {
        const char *path = c->spec.inputs.at[i].path;
        stet_look now, *was = &c->spec.inputs.at[i].look;
        status = stet_look_at(root, path, was->inode ? was : NULL, &now, err);
        if (status == STET_OK && (!stet_look_same(&now, was) || was_touched(c, path, was, &now, &attributed)))
            note_moved(c, path);
        if (status == STET_OK)
            *was = now;
    }
    if (status == STET_OK)
        status = look_at_scripts(c, root, &attributed, err);
    for (size_t i = 0; i < c->found.len && status == STET_OK; i++) {
        const char *path = c->found.at[i].path;
        stet_look now, *was = &c->found.at[i].look;
        status = stet_look_at(root, path, was->inode ? was : NULL, &now, err);
        /* What was not looked at before may have been read before or after it changed. */
        if (status == STET_OK && (was_touched(c, path, was, &now, &attributed) || way_changed(c, path)))
            note_moved(c, path);
        if (status == STET_OK)
            *was = now;
    }
    char *above = command_above_moved(c);
    if (above)
        note_moved(c, above);
    stet_free(above);
    char *matched = command_patterns_heard(c);
    if (matched)
        note_moved(c, matched);
    c->rematch = matched != NULL;
    stet_free(matched);
    bool guarded = !command_guard_heard(c);
    for (size_t i = 0; i < attributed.len && status == STET_OK; i++)
        if (!guarded || !is_among(&c->attributed, attributed.at[i].path))
            note_moved(c, attributed.at[i].path);
    if (attributed.len > 0) {
        command_files_release(&c->attributed);
        c->attributed = attributed;
    }
    return status;
}

void command_remove_outputs(command_run *c) {
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
    if (c->was_cancelled || e->cancelled)
        return stet_fail(err, STET_CANCELLED, "%s: stopped", name);
    if (e->state == STET_TASK_REFUSED && e->status == STET_LIMIT) {
        size_t all = 0, longest = 0;
        for (size_t i = 0; i < c->spec.argv.len + c->spec.env.len; i++) {
            bool word = i < c->spec.argv.len;
            size_t n = strlen(word ? c->spec.argv.at[i] : c->spec.env.at[i - c->spec.argv.len]) + 1;
            all += n;
            longest = word && n > longest ? n : longest;
        }
        stet_fail(err, STET_FAILED,
                  "%s: its command line is longer than the kernel takes: %zu bytes, the longest word has %zu", name,
                  all, longest);
        stet_hint(err, "give the names in a file: {NAME@list} is the path of a file with one name of `files` per line, "
                       "{NAME@response} of one that compilers and linkers read as @FILE");
        return STET_FAILED;
    }
    if (e->state == STET_TASK_REFUSED)
        return stet_fail(err, STET_FAILED, "%s: %s", name, e->message);
    if (e->state == STET_TASK_LOST) {
        stet_fail(err, STET_IO, "%s: its supervisor was killed, and the command with it", name);
        stet_hint(err, "stet run starts it again; find out what kills stet-supervise");
        return STET_IO;
    }
    if (e->timed_out)
        return stet_fail(err, STET_FAILED, "%s: not done after %lld ms, the time it is given", name,
                         (long long)c->spec.timeout_ms);
    if (e->exit.signalled)
        return stet_fail(err, STET_FAILED, "%s: ended by signal %d (%s)", name, e->exit.code, strsignal(e->exit.code));
    if (e->exit.code != 0)
        return stet_fail(err, STET_FAILED, "%s: exit status %d", name, e->exit.code);
    return STET_OK;
}

/* It ended well, and there is no file or directory in that place. */
static void not_written(command_run *c, const char *path) {
    stet_buf shown = STET_BUF(600);
    char *full = command_full_path(c->state, path);
    struct stat st;
    bool there = stet_sys_lstat(full, &st) == 0;
    stet_path_escape(path, &shown);
    if (!there)
        stet_fail(&c->error, STET_FAILED, "%s: it ended well and did not write %s", c->run->name,
                  stet_buf_cstr(&shown));
    else
        stet_fail(&c->error, STET_FAILED, "%s: its output %s is %s", c->run->name, stet_buf_cstr(&shown),
                  S_ISLNK(st.st_mode) ? "a symbolic link that leads to no file" : "neither a file nor a directory");
    stet_buf_release(&shown);
    stet_free(full);
}

/* What it made of a file that it wrote as well says nothing of that file as it is, nor of its absence. */
static bool read_what_it_writes(const command_run *c) {
    for (size_t i = 0; i < c->suspects.len; i++)
        if (strcmp(c->suspects.at[i].name, COMMAND_MADE) != 0)
            return true;
    return false;
}

void command_collect_work(uv_work_t *w) {
    command_run *c = w->data;
    command_state *s = c->state;
    if (command_check_place(c, &c->error) != STET_OK) {
        c->taken = false;
        return;
    }
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
    /* Somebody has taken an output away, and the rest of it is there at the most; or the command does that itself: then it
     * happens a second time. */
    if (c->end.removed && status == STET_OK && c->spec.outputs.len > 0 && !stet_run_is_effect(c->run)) {
        if (!c->removed)
            note_moved(c, c->spec.outputs.at[0].path);
        c->removed = true;
    }
    stet_value places = stet_value_array(); /* outputs that hold the path of the project */
    for (size_t i = 0; i < c->spec.outputs.len && c->error.status == STET_OK; i++) {
        command_file *f = &c->spec.outputs.at[i];
        bool bound = false;
        status = stet_look_search(stet_files_root(s->files), f->path, s->root, &bound, &f->look, &c->error);
        if (bound)
            stet_value_push(&places, stet_value_string(f->name));
        stet_free(f->target);
        f->target = status == STET_OK && f->look.link ? stet_look_target(stet_files_root(s->files), f->path) : NULL;
        if (status == STET_OK && !stet_look_there(&f->look) && !c->found_ended)
            not_written(c, f->path);
        /* The times of a directory are prints: of one that was found ended nobody can tell. */
        if (status == STET_OK && (f->look.mode != STET_LOOK_DIRECTORY || c->found_ended) && is_of_later(c, &f->look))
            c->changed = true;
    }
    stet_value result = stet_value_object();
    stet_value_put(&result, "files", command_result_files(&c->spec));
    if (c->error.status == STET_OK && take_output(c, &result, &places, &c->error) != STET_OK) {
        /* the error is set */
    }
    bool bound = stet_value_count(places) > 0 || c->spec.place;
    if (bound)
        stet_value_put(&result, "bound", places);
    else
        stet_value_release(places);
    c->taken = c->error.status == STET_OK;
    if (!c->taken || c->changed)
        command_remove_outputs(c);
    if (c->taken && !c->changed && c->spec.cache && !c->unsure && !read_what_it_writes(c) &&
        !stet_run_is_effect(c->run)) {
        status = command_second_id(&c->spec, &c->found, &c->second, &c->warning);
        if (!c->spec.depfile)
            c->second = c->spec.call;
        if (bound)
            c->second = command_placed_id(c->second, s->root);
        if (status == STET_OK &&
            command_store(s->persist, s->root, &c->spec, c->second, &c->found, result, c->output_path, c->error_path,
                          (c->end.ended_ns - c->end.started_ns) / 1000000, &c->warning) != STET_OK) {
            /* the warning is set: what can't be kept is worth no more */
        }
    }
    c->result = result;
}
