/* command_spec.c - turns a node and its inputs into the command that would run, and computes its identity. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/units.h"
#include "base/vec.h"
#include "files/glob.h"
#include "files/path.h"
#include "graph/pattern.h"
#include "module/bound.h"
#include "module/command.h"
#include "module/command_fill.h"
#include "os/file.h"
#include "project/project.h"
#include "repo/record.h"

/* Passed on to every command, and no part of its identity: where things are on this machine. */
static const char *const passed[] = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"};

command_file *command_files_add(command_files *f, const char *name, const char *path) {
    command_file *x = stet_vec_add(f);
    *x = (command_file){.name = stet_strdup(name), .path = stet_strdup(path)};
    return x;
}

void command_files_release(command_files *f) {
    for (size_t i = 0; i < f->len; i++) {
        stet_free(f->at[i].name);
        stet_free(f->at[i].path);
        stet_free(f->at[i].target);
    }
    stet_vec_release(f);
}

void command_words_add(command_words *w, char *word) {
    stet_vec_reserve(w, w->len + 2);
    w->at[w->len++] = word;
    w->at[w->len] = NULL;
}

void command_words_release(command_words *w) {
    for (size_t i = 0; i < w->len; i++)
        stet_free(w->at[i]);
    stet_vec_release(w);
}

void command_spec_release(command_spec *s) {
    command_files_release(&s->inputs);
    command_files_release(&s->outputs);
    command_files_release(&s->patterns);
    command_files_release(&s->scripts);
    command_words_release(&s->argv);
    command_words_release(&s->env);
    command_words_release(&s->filled);
    command_words_release(&s->ways);
    command_words_release(&s->detours);
    for (size_t i = 0; i < s->lists.len; i++) {
        stet_free(s->lists.at[i].path);
        stet_buf_release(&s->lists.at[i].names);
    }
    stet_vec_release(&s->lists);
    stet_free(s->cwd);
    stet_free(s->cwd_rel);
    stet_free(s->depfile);
    stet_free(s->standard_input);
    *s = (command_spec){0};
}

typedef struct evaluation {
    stet_run *run;
    const char *root;
    stet_files *files; /* or NULL */
    bool stale;        /* one of its files has a document that may be out of date */
    bool overruled;    /* by a run that has another value of a variable */
    bool linked;       /* a pattern goes through a link */
    bool again;        /* documents were brought up to date just now */
    command_spec *s;
    stet_value values; /* inputs that are no files */
    const command_files *except;
    char *dir;     /* that the last file was in, or NULL */
    stet_map seen; /* name and path of each file: a pattern and another node may both give it */
    stet_error *err;
} evaluation;

static stet_status missing(evaluation *e, const char *path) {
    stet_buf shown = STET_BUF(600);
    char *full = path[0] == '/' ? stet_strdup(path) : stet_file_join(e->root, path);
    struct stat st;
    bool there = stet_sys_lstat(full, &st) == 0, own = e->files && stet_look_is_own(stet_files_root(e->files), path);
    stet_path_escape(path, &shown);
    if (own) {
        stet_fail(e->err, STET_FAILED, "%s: its input %s belongs to stet", e->run->name, stet_buf_cstr(&shown));
        stet_hint(e->err, "name another file, or change `local` in .stet/config.toml");
        stet_free(full);
        stet_buf_release(&shown);
        return STET_FAILED;
    }
    if (!there || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        stet_fail(e->err, STET_FAILED, "%s: there is no file %s", e->run->name, stet_buf_cstr(&shown));
    else
        stet_fail(e->err, STET_FAILED, "%s: its input %s is %s", e->run->name, stet_buf_cstr(&shown),
                  S_ISLNK(st.st_mode) ? "a symbolic link that leads to no file" : "neither a file nor a directory");
    stet_hint(e->err, "make it, or correct its path");
    stet_free(full);
    stet_buf_release(&shown);
    return STET_FAILED;
}

/* There is no document of it: but a command may have written it by another name, to which a link leads. */
static bool look_behind_link(evaluation *e, const char *path, stet_look *look) {
    char *real = stet_path_real(e->root, path);
    bool found = false;
    if (real && strcmp(real, path) != 0) {
        stet_value v;
        stet_error none = STET_ERROR_INIT;
        char *id = stet_file_id(real);
        if (stet_run_read_doc(e->run, id, &v, &none) != STET_OK)
            stet_error_clear(&none); /* who makes it has this run again */
        found = e->files && stet_look_at(stet_files_root(e->files), path, NULL, look, NULL) == STET_OK &&
                stet_look_there(look);
        stet_free(id);
    }
    stet_free(real);
    return found;
}

static stet_status add_input(evaluation *e, const char *name, const char *path, stet_value value) {
    stet_look look;
    e->stale |= e->files && stet_files_is_stale(e->files, path);
    const char *slash = strrchr(path, '/');
    size_t dir_len = slash ? (size_t)(slash - path) : 0;
    if (!e->dir || strlen(e->dir) != dir_len || strncmp(e->dir, path, dir_len) != 0) { /* many lie in one directory */
        stet_status status = stet_bound_read_above(e->run, e->files, e->root, path, false, e->err);
        stet_free(e->dir);
        e->dir = stet_strndup(path, dir_len);
        if (status != STET_OK)
            return status;
    }
    if (!stet_look_of_value(value, &look) && !look_behind_link(e, path, &look))
        return missing(e, path);
    stet_buf key = STET_BUF(0);
    stet_buf_printf(&key, "%s/%s", name, path); /* no slash in a name */
    bool again = stet_map_get(&e->seen, key.data, key.len) != NULL;
    if (!again)
        stet_map_put(&e->seen, key.data, key.len, (stet_slot){.n = 1});
    stet_buf_release(&key);
    if (again)
        return STET_OK;
    command_files_add(&e->s->inputs, name, path)->look = look;
    return STET_OK;
}

/* The path of a file that another node makes: it says itself where it is. False: it does not. */
static bool made_path(stet_value value, stet_buf *path) {
    stet_value text = stet_value_get(value, "path");
    size_t len;
    const char *escaped = stet_value_type(text) == STET_TYPE_STRING ? stet_value_as_string(&text, &len) : NULL;
    return escaped && stet_path_unescape(escaped, len, path);
}

static size_t each_count(stet_value value) {
    stet_value list = stet_value_get(value, "each");
    return stet_value_type(list) == STET_TYPE_ARRAY ? stet_value_count(list) : 0;
}

static stet_value each_at(stet_value value, size_t i) {
    stet_value name = stet_value_get(value, "name"), file = stet_value_null();
    size_t len = 0;
    const char *text = stet_value_as_string(&name, &len);
    return text && stet_value_find(stet_value_get(stet_value_at(stet_value_get(value, "each"), i), "files"), text, len,
                                   &file)
               ? file
               : stet_value_null();
}

/* One of the files that a pattern matches. */
typedef struct matched {
    char *path;
    stet_value value;
    bool made; /* told by the node that makes it */
} matched;
typedef STET_VEC(matched) matches;

/* What its node tells of a file comes before what was seen: the first counts. */
static int by_path(const void *a, const void *b) {
    const matched *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (int)y->made - (int)x->made;
}

static bool is_directory(stet_value file) {
    stet_look look;
    return stet_look_of_value(file, &look) && look.mode == STET_LOOK_DIRECTORY;
}

/* Is the directory that a pattern begins with reached through a link? */
static bool behind_link(const evaluation *e, const char *pattern) {
    size_t n = strcspn(pattern, "*?[\\");
    while (n > 0 && pattern[n - 1] != '/')
        n--;
    if (n < 2 || pattern[0] == '/')
        return false;
    char *dir = stet_strndup(pattern, n - 1), *real = stet_path_real_dir(e->root, dir);
    bool other = real && strcmp(real, dir) != 0;
    stet_free(real);
    stet_free(dir);
    return other;
}

/* All that a pattern matches, in the order of names: those that were there when files were looked at, and those that
 * other nodes of the list make, of which it may be that the look came before they were made. The command must be the
 * same both times. */
static stet_status take_pattern(evaluation *e, const char *name, const char *id, stet_value value, stet_value list,
                                stet_value values) {
    stet_status status = STET_OK;
    matches found = {0};
    stet_buf pattern = STET_BUF(0);
    bool valid = stet_path_unescape(id + strlen(STET_GLOB_PREFIX), strlen(id) - strlen(STET_GLOB_PREFIX), &pattern);
    if (valid)
        command_files_add(&e->s->patterns, name, stet_buf_cstr(&pattern))->matched = true;
    if (valid)
        status = stet_bound_read_way(e->run, e->files, e->root, stet_buf_cstr(&pattern), e->err);
    bool linked = valid && behind_link(e, stet_buf_cstr(&pattern));
    e->linked |= linked;
    if (linked && e->files && !e->again) {
        stet_files_distrust_pattern(e->files, stet_buf_cstr(&pattern)); /* a command may have written there */
        e->stale = true;
    }
    for (size_t i = 0; i < stet_value_count(value) && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_value_key_at(value, i, &len);
        stet_buf path = STET_BUF(0);
        if (!key || !stet_path_unescape(key, len, &path))
            status = stet_fail(e->err, STET_CORRUPT, "%s: the document %s holds no paths", e->run->name, id);
        else if (stet_value_type(stet_value_at(value, i)) == STET_TYPE_OBJECT) /* else its maker is at it just now */
            *stet_vec_add(&found) = (matched){stet_strdup(path.data), stet_value_at(value, i), false};
        stet_buf_release(&path);
    }
    for (size_t i = 0; valid && i < stet_value_count(list) && status == STET_OK; i++) {
        stet_value hold;
        stet_buf path = STET_BUF(0);
        const char *other = stet_bound_id(stet_value_at(list, i), &hold);
        bool file = other && (strncmp(other, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) == 0 ||
                              strncmp(other, STET_GLOB_PREFIX, strlen(STET_GLOB_PREFIX)) == 0);
        bool each = !other && stet_bound_is_each(stet_value_at(list, i));
        stet_value made = stet_value_at(values, i);
        if (!other && stet_bound_is_made(stet_value_at(list, i)))
            made = stet_value_get(made, "made");
        for (size_t k = 0; !file && k < (each ? each_count(made) : 1); k++) {
            stet_value one = each ? each_at(made, k) : made;
            stet_buf_clear(&path);
            if (made_path(one, &path) && !is_directory(one) && stet_glob_match(stet_buf_cstr(&pattern), path.data))
                *stet_vec_add(&found) = (matched){stet_strdup(path.data), one, true};
        }
        stet_buf_release(&path);
    }
    if (found.len)
        qsort(found.at, found.len, sizeof *found.at, by_path);
    for (size_t i = 0; i < found.len; i++) {
        size_t before = e->s->inputs.len;
        if (status == STET_OK)
            status = add_input(e, name, found.at[i].path, found.at[i].value);
        if (e->s->inputs.len > before)
            e->s->inputs.at[before].matched = true;
        stet_free(found.at[i].path);
    }
    stet_vec_release(&found);
    stet_buf_release(&pattern);
    return status;
}

/* A node that has not made its file is waited for before the command begins. So nothing there means that another process
 * has just run that node, and failed, or that what the node read changed before its result was stored, and it runs
 * again: that says nothing about this command, which is started again. */
static stet_status not_made(evaluation *e, const char *name, stet_value value) {
    if (stet_value_type(value) == STET_TYPE_NULL)
        return stet_fail(e->err, STET_CONFLICT,
                         "%s: its input \"%s\" is not there: the node that makes it has not succeeded", e->run->name,
                         name);
    return stet_fail(e->err, STET_FAILED, "%s: its input \"%s\" is not a file", e->run->name, name);
}

/* What says itself where it is: another node's output, or an element of the list that ref `files` gives. */
static stet_status take_made(evaluation *e, const char *name, stet_value value, const char *matching) {
    stet_buf path = STET_BUF(0);
    stet_value file;
    stet_status status = STET_OK;
    size_t before = e->s->inputs.len;
    if (!made_path(value, &path))
        status = not_made(e, name, value);
    else if (!matching || (stet_glob_match(matching, path.data) && !is_directory(value)))
        status = add_input(e, name, path.data, stet_value_find(value, "file", 4, &file) ? file : value);
    if (e->s->inputs.len > before) /* an element of a list may be a file that the author names */
        e->s->inputs.at[before].named = stet_value_find(value, "file", 4, NULL);
    stet_buf_release(&path);
    return status;
}

/* One file, or all that a pattern matches. `binding` says which, `value` what they are; `list` and `values` what else
 * is given under that name. */
static stet_status take_file(evaluation *e, const char *name, stet_value binding, stet_value value, stet_value list,
                             stet_value values) {
    stet_value hold;
    const char *id = stet_bound_id(binding, &hold);
    size_t prefix = strlen(STET_FILE_PREFIX);
    if (id && strncmp(id, STET_GLOB_PREFIX, prefix) == 0)
        return take_pattern(e, name, id, value, list, values);
    if (id && strncmp(id, STET_FILE_PREFIX, prefix) == 0) {
        char *path = stet_file_of_id(id, strlen(id));
        if (!path)
            return stet_fail(e->err, STET_INVALID, "%s: \"%.200s\" names no file", e->run->name, id);
        size_t before = e->s->inputs.len;
        stet_status status = add_input(e, name, path, value);
        if (e->s->inputs.len > before)
            e->s->inputs.at[before].named = true;
        stet_free(path);
        return status;
    }
    bool each = stet_bound_is_each(binding), made = stet_bound_is_made(binding);
    stet_value matching = each || made ? stet_value_get(value, "matching") : stet_value_null();
    if (made)
        return take_made(e, name, stet_value_get(value, "made"), stet_value_as_string(&matching, NULL));
    if (!each)
        return take_made(e, name, value, NULL);
    if (stet_value_type(stet_value_get(value, "each")) != STET_TYPE_ARRAY)
        return not_made(e, name, stet_value_get(value, "each"));
    stet_status status = STET_OK;
    for (size_t i = 0; i < each_count(value) && status == STET_OK; i++)
        status = take_made(e, name, each_at(value, i), stet_value_as_string(&matching, NULL));
    return status;
}

/* What comes before it and is not read: only that it is there. So the command is put behind it and waits if it fails,
 * and does not run again when it changes. */
static stet_status take_order(evaluation *e, stet_value list) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(list) && status == STET_OK; i++) {
        stet_path path = STET_PATH_INIT;
        stet_value none;
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        stet_path_push(&path, "after");
        stet_path_push(&path, key);
        status = stet_run_read(e->run, stet_path_ref(&path), STET_SHALLOW, &none, e->err);
        stet_path_release(&path);
    }
    return status;
}

/* All inputs; the caller releases them. */
static stet_status read_inputs(evaluation *e, stet_value bindings, stet_value *out) {
    stet_value order, all;
    if (!stet_value_find(bindings, "after", 5, &order) || stet_value_type(order) != STET_TYPE_ARRAY) {
        stet_status status = stet_run_inputs(e->run, &all, e->err);
        *out = status == STET_OK ? stet_value_retain(all) : stet_value_null();
        return status;
    }
    stet_status status = take_order(e, order);
    *out = stet_value_object();
    for (size_t i = 0; i < stet_value_count(bindings) && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_value_key_at(bindings, i, &len);
        stet_path path = STET_PATH_INIT;
        stet_value one;
        if (strcmp(key, "after") != 0) {
            stet_path_push(&path, key);
            status = stet_run_read(e->run, stet_path_ref(&path), STET_RECURSIVE, &one, e->err);
            if (status == STET_OK)
                stet_value_put_n(out, key, len, stet_value_retain(one));
        }
        stet_path_release(&path);
    }
    return status;
}

static stet_status take_inputs(evaluation *e, stet_value d) {
    stet_value inputs, bindings = stet_run_bindings(e->run), names = stet_value_get(d, "files");
    stet_status status = read_inputs(e, bindings, &inputs);
    e->values = stet_value_null();
    if (status != STET_OK) {
        stet_value_release(inputs);
        return status;
    }
    e->values = stet_value_object();
    for (size_t i = 0; i < stet_value_count(inputs) && status == STET_OK; i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        bool file = false;
        for (size_t k = 0; k < stet_value_count(names); k++) {
            stet_value n = stet_value_at(names, k);
            file |= strcmp(stet_value_as_string(&n, NULL), key) == 0;
        }
        stet_value value = stet_value_at(inputs, i), binding = stet_value_get(bindings, key);
        if (!file) {
            stet_value_put_n(&e->values, key, len, stet_value_retain(value));
        } else if (stet_value_type(binding) == STET_TYPE_ARRAY) {
            for (size_t k = 0; k < stet_value_count(binding) && status == STET_OK; k++)
                status = take_file(e, key, stet_value_at(binding, k), stet_value_at(value, k), binding, value);
        } else {
            status = take_file(e, key, binding, value, stet_value_null(), stet_value_null());
        }
    }
    stet_value_release(inputs);
    return status;
}

static bool is_named(const command_file *f, const char *name, size_t len) {
    return strlen(f->name) == len && memcmp(f->name, name, len) == 0;
}

typedef struct only_file {
    const command_files *files;
    size_t most; /* how many files the names stood for, at the most */
} only_file;

static const char *path_of_only(void *ctx, const char *name, size_t len) {
    only_file *o = ctx;
    const char *path = NULL;
    size_t count = 0;
    for (size_t i = 0; i < o->files->len; i++)
        if (is_named(&o->files->at[i], name, len)) {
            path = o->files->at[i].path;
            count++;
        }
    if (count > o->most)
        o->most = count;
    return path;
}

/* The normal path of an output, which may be made from that of an input ("{in.stem}"). Caller frees. */
static stet_status output_path(evaluation *e, const char *text, char **out) {
    stet_buf filled = STET_BUF(0);
    only_file only = {.files = &e->s->inputs};
    stet_path_fill(text, path_of_only, &only, &filled);
    stet_status status =
        only.most > 1 ? stet_fail(e->err, STET_INVALID, "%s: the path \"%.200s\" names an input that is %zu files",
                                  e->run->name, text, only.most)
                      : stet_path_meant(e->root, "", stet_buf_cstr(&filled), out, e->err);
    if (strstr(stet_buf_cstr(&filled), ".."))
        command_words_add(&e->s->ways, stet_strdup(stet_buf_cstr(&filled)));
    stet_buf_release(&filled);
    return status;
}

static stet_status take_outputs(evaluation *e, stet_value d) {
    stet_value produces = stet_value_get(d, "produces");
    bool outside = stet_value_as_bool(stet_value_get(d, "allow-outside"));
    for (size_t i = 0; i < stet_value_count(produces); i++) {
        stet_value v = stet_value_at(produces, i);
        char *path;
        stet_status status = output_path(e, stet_value_as_string(&v, NULL), &path);
        if (status != STET_OK)
            return status;
        char *full = path[0] == '/' ? stet_strdup(path) : stet_file_join(e->root, path), *dir = stet_file_dirname(full);
        bool inside = true;
        if (!outside) /* through links as well; of the directory, for the file itself is replaced */
            status = stet_file_inside(e->root, dir, &inside, e->err);
        if (!inside) { /* a link whose target another node is going to make */
            char *real = stet_path_real_dir(e->root, dir);
            inside = real != NULL;
            stet_free(real);
        }
        bool holds = stet_project_holds_own(full) || stet_project_leads_to_own(dir);
        stet_free(full);
        stet_free(dir);
        command_files_add(&e->s->outputs, stet_value_key_at(produces, i, NULL), path);
        if (status == STET_OK && holds) {
            status =
                stet_fail(e->err, STET_DENIED, "%s: its output %s takes in files of stet's own", e->run->name, path);
            stet_hint(e->err, "write to another place, or change `local` in .stet/config.toml");
        }
        if (status == STET_OK && !inside) {
            status = stet_fail(e->err, STET_DENIED, "%s: its output %s lies outside the project", e->run->name, path);
            stet_hint(e->err, "write to a file of the project, or say allow-outside = true");
        }
        stet_free(path);
        if (status != STET_OK)
            return status;
    }
    stet_value depfile;
    return stet_value_find(d, "depfile", 7, &depfile)
               ? output_path(e, stet_value_as_string(&depfile, NULL), &e->s->depfile)
               : STET_OK;
}

/* Is it the path, or below it? */
static bool is_at(const char *path, const char *top) {
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

/* What a command writes itself is nothing that its patterns match. */
static void drop_own(evaluation *e) {
    command_files *in = &e->s->inputs;
    size_t kept = 0;
    for (size_t i = 0; i < in->len; i++) {
        bool own = e->s->depfile && strcmp(in->at[i].path, e->s->depfile) == 0;
        char *real = e->linked && in->at[i].matched ? stet_path_real(e->root, in->at[i].path) : NULL;
        for (size_t k = 0; k < e->s->outputs.len && !own; k++)
            own = is_at(in->at[i].path, e->s->outputs.at[k].path) || (real && is_at(real, e->s->outputs.at[k].path));
        stet_free(real);
        if (own && in->at[i].matched) {
            stet_free(in->at[i].name);
            stet_free(in->at[i].path);
        } else {
            in->at[kept++] = in->at[i];
        }
    }
    in->len = kept;
}

/* The variables that count: {NAME: value, or null if it is not set}. They go to the command, with those that do not. */
static stet_value take_env(evaluation *e, stet_value d) {
    stet_value env = stet_value_get(d, "env"), counted = stet_value_object();
    bool table = stet_value_type(env) == STET_TYPE_OBJECT;
    for (size_t i = 0; i < stet_value_count(env); i++) {
        stet_value item = stet_value_at(env, i), v;
        const char *text = stet_value_as_string(&item, NULL), *sign = table ? NULL : strchr(text, '=');
        char *set = sign ? stet_strndup(text, (size_t)(sign - text)) : NULL; /* "NAME=VALUE" */
        const char *name = table ? stet_value_key_at(env, i, NULL) : set ? set : text;
        const char *value = table ? text : sign ? sign + 1 : getenv(name);
        if (!table && !sign) { /* what it depends on; a run without documents goes by the value alone */
            stet_error none = STET_ERROR_INIT;
            char *id = stet_asprintf(STET_ENV_PREFIX "%s", name);
            stet_value seen;
            stet_status status = stet_run_read_doc(e->run, id, &seen, &none);
            if (status != STET_OK)
                stet_error_clear(&none);
            if ((status == STET_OK || status == STET_NOT_FOUND) && e->files && !e->overruled &&
                stet_files_is_overruled(e->files, name, status == STET_OK ? seen : stet_value_null())) {
                e->overruled = true;
                stet_fail(e->err, STET_BUSY, "%s: another run has begun with another value of %s", e->run->name, name);
                stet_hint(e->err, "end one of them, or run them in two copies of the project");
            }
            stet_free(id);
        }
        if (!value) {
            stet_value_put(&counted, name, stet_value_null());
            stet_free(set);
            continue;
        }
        command_words_add(&e->s->env, stet_asprintf("%s=%s", name, value));
        if (stet_value_string_checked(value, strlen(value), &v, NULL) != STET_OK) {
            stet_hash h = stet_hash_of(value, strlen(value)); /* not text: its hash stands for it */
            v = stet_value_array();
            stet_value_push(&v, stet_hash_text(h));
        }
        stet_value_put(&counted, name, v);
        stet_free(set);
    }
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        const char *value = getenv(passed[i]);
        if (value && !stet_value_find(counted, passed[i], strlen(passed[i]), NULL))
            command_words_add(&e->s->env, stet_asprintf("%s=%s", passed[i], value));
    }
    if (e->s->env.len == 0) /* a list, though an empty one */
        command_words_add(&e->s->env, stet_strdup("STET=1"));
    return counted;
}

/* Names of files, words, values and environment reach the command byte for byte, so ids are exact: two names that are
 * one text in normal form C are two files, and two calls. */

static stet_value file_identity(const command_file *f) {
    stet_value v = stet_value_array();
    stet_buf path = STET_BUF(0);
    stet_path_escape(f->path, &path);
    stet_value_push(&v, stet_value_string_n(path.data, path.len));
    if (stet_look_there(&f->look)) {
        stet_value_push(&v, stet_hash_text(f->look.hash));
        stet_value_push(&v, stet_value_int(f->look.mode));
        if (f->look.link)
            stet_value_push(&v, stet_value_int((int64_t)(f->look.link >> 12))); /* as many bits as a number keeps */
    }
    stet_buf_release(&path);
    return v;
}

/* Of a program outside the project: its name and content. Where it lies differs from machine to machine. */
static stet_value script_identity(const command_file *f) {
    command_file named = *f;
    if (f->path[0] == '/' || strncmp(f->path, "../", 3) == 0)
        named.path = (char *)(uintptr_t)stet_file_basename(f->path);
    return file_identity(&named);
}

static stet_status call_id(evaluation *e, stet_value d, stet_value env, const command_filler *filler, stet_hash *out) {
    static const char *const counted[] = {"argv", "shell", "produces", "depfile", "cwd", "stdout", "stdin", "vars"};
    stet_value spec = stet_value_object(), files = stet_value_object();
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        stet_value v;
        if (stet_value_find(d, counted[i], strlen(counted[i]), &v))
            stet_value_put(&spec, counted[i], stet_value_retain(v));
    }
    for (size_t i = 0; i < e->s->inputs.len; i++) {
        const command_file *f = &e->s->inputs.at[i];
        stet_value list = stet_value_array(), old;
        if (stet_value_find(files, f->name, strlen(f->name), &old)) {
            stet_value_release(list);
            list = stet_value_retain(old);
            stet_value_remove(&files, f->name, strlen(f->name));
        }
        stet_value_push(&list, file_identity(f));
        stet_value_put(&files, f->name, list);
    }
    stet_value scripts = stet_value_array();
    for (size_t i = 0; i < e->s->scripts.len; i++)
        if (stet_look_there(&e->s->scripts.at[i].look))
            stet_value_push(&scripts, script_identity(&e->s->scripts.at[i]));
    /* One that is left out is not one that is not there: a command that began without it is another call. */
    for (size_t i = 0; e->except && i < e->except->len; i++)
        if (strcmp(e->except->at[i].name, COMMAND_MADE) != 0) {
            command_file left_out = {.path = e->except->at[i].path};
            stet_value_push(&scripts, file_identity(&left_out));
        }
    stet_value_put(&spec, "scripts", scripts);
    /* Earlier versions filled these in in other ways: what such commands made counts for nothing. */
    if (filler->dashed)
        stet_value_put(&spec, "dashed", stet_value_bool(true));
    if (filler->in_quotes)
        stet_value_put(&spec, "quotes", stet_value_bool(true));
    if (e->s->detours.len > 0) {
        stet_value detours = stet_value_array();
        for (size_t i = 0; i < e->s->detours.len; i++) {
            stet_buf text = STET_BUF(0);
            stet_path_escape(e->s->detours.at[i], &text);
            stet_value_push(&detours, stet_value_string_n(text.data, text.len));
            stet_buf_release(&text);
        }
        stet_value_put(&spec, "detours", detours);
    }
    stet_value values = stet_value_retain(e->values);
    stet_value_put(&spec, "files", files);
    stet_value_put(&spec, "inputs", values);
    stet_value_put(&spec, "env", stet_value_retain(env));
    stet_hash datum, node;
    stet_status status = stet_datum_exact_id(spec, NULL, &datum, e->err);
    if (status == STET_OK)
        status = stet_node_literal(datum, NULL, &node, e->err);
    if (status == STET_OK)
        status = stet_node_call(STET_COMMAND_FUNCTION, &node, 1, NULL, out, e->err);
    stet_value_release(spec);
    return status;
}

stet_status command_second_id(const command_spec *s, const command_files *found, stet_hash *out, stet_error *err) {
    stet_value list = stet_value_array();
    for (size_t i = 0; i < found->len; i++)
        stet_value_push(&list, file_identity(&found->at[i]));
    stet_hash datum, nodes[2];
    stet_status status = stet_datum_exact_id(list, NULL, &datum, err);
    stet_value_release(list);
    nodes[0] = s->call;
    if (status == STET_OK)
        status = stet_node_literal(datum, NULL, &nodes[1], err);
    return status == STET_OK ? stet_node_call(STET_COMMAND_FUNCTION, nodes, 2, NULL, out, err) : status;
}

stet_hash command_placed_id(stet_hash id, const char *root) {
    stet_hasher *h = stet_hasher_begin();
    stet_hasher_add(h, id.bytes, sizeof id.bytes);
    stet_hasher_add(h, root, strlen(root));
    return stet_hasher_end(h);
}

static stet_status take_places(evaluation *e, stet_value d) {
    command_spec *s = e->s;
    stet_value v;
    stet_status status = STET_OK;
    if (stet_value_find(d, "cwd", 3, &v) && strcmp(stet_value_as_string(&v, NULL), ".") != 0)
        status = stet_path_normal(e->root, "", stet_value_as_string(&v, NULL), &s->cwd_rel, e->err);
    else
        s->cwd_rel = stet_strdup("");
    if (status != STET_OK)
        return status;
    s->cwd = s->cwd_rel[0] == '/' ? stet_strdup(s->cwd_rel)
             : *s->cwd_rel        ? stet_file_join(e->root, s->cwd_rel)
                                  : stet_strdup(e->root);
    return STET_OK;
}

/* Is it one name, with parts that are filled in? Then no character of these is a wildcard, a quote or a blank of a shell
 * string. What is filled in from `vars` is as if it was written there. */
static bool is_name_form(const char *word, stet_value vars) {
    bool filled = false;
    for (const char *p = word; *p; p++) {
        const char *end = *p == '{' ? strchr(p, '}') : NULL;
        bool plain = (*p >= '0' && *p <= '9') || ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') || strchr("./_-", *p);
        if (!end && !plain)
            return false;
        if (end && stet_value_find(vars, p + 1, (size_t)(end - p) - 1, NULL))
            return false;
        filled |= end != NULL;
        p = end ? end : p;
    }
    return filled;
}

static stet_status evaluate(stet_run *run, const char *root, const char *lists, stet_files *files,
                            const command_files *except, bool again, command_spec *out, bool *stale, stet_error *err) {
    stet_value d = stet_run_descriptor(run), v;
    evaluation e = {.run = run, .root = root, .files = files, .again = again, .except = except, .s = out, .err = err};
    command_filler filler = {.run = run, .root = root, .lists = lists, .s = out, .err = err};
    *out = (command_spec){.cache = !stet_value_find(d, "cache", 5, &v) || stet_value_as_bool(v)};
    e.values = stet_value_null();
    stet_status status = take_places(&e, d);
    if (status == STET_OK)
        status = take_inputs(&e, d);
    if (status == STET_OK)
        status = take_outputs(&e, d);
    if (status == STET_OK)
        drop_own(&e);
    stet_value env = stet_value_null();
    if (status == STET_OK) {
        env = take_env(&e, d);
        filler.values = e.values;
        if (stet_value_find(d, "shell", 5, &v)) {
            command_words_add(&out->argv, stet_strdup("/bin/sh"));
            command_words_add(&out->argv, stet_strdup("-c"));
            command_fill_shell(&filler, stet_value_as_string(&v, NULL), &out->argv);
        } else {
            stet_value argv = stet_value_get(d, "argv"), vars = stet_value_get(d, "vars");
            for (size_t i = 0; i < stet_value_count(argv); i++) {
                stet_value word = stet_value_at(argv, i);
                const char *text = stet_value_as_string(&word, NULL);
                size_t before = out->argv.len;
                command_fill_word(&filler, text, &out->argv);
                for (size_t k = before; k < out->argv.len && is_name_form(text, vars); k++)
                    command_words_add(&out->filled, stet_strdup(out->argv.at[k]));
            }
        }
        status = e.overruled     ? STET_BUSY
                 : filler.failed ? STET_FAILED
                                 : command_scripts(run, root, files, except, out, err);
    }
    if (status == STET_OK)
        status = call_id(&e, d, env, &filler, &out->call);
    if (status == STET_OK) {
        stet_value mode = stet_value_get(d, "stdout");
        const char *m = stet_value_type(mode) == STET_TYPE_STRING ? stet_value_as_string(&mode, NULL) : "log";
        out->place = stet_value_as_bool(stet_value_get(d, "place"));
        out->json_output = strcmp(m, "json") == 0;
        out->text_output = strcmp(m, "text") == 0;
        if (stet_value_find(d, "timeout", 7, &v))
            out->timeout_ms = stet_units_ms(v);
        if (stet_value_find(d, "max-memory", 10, &v))
            out->max_memory = stet_units_bytes(v);
        if (stet_value_find(d, "max-file-size", 13, &v))
            out->max_file_size = stet_units_bytes(v);
        if (stet_value_find(d, "max-cpu", 7, &v))
            out->max_cpu_s = (uint64_t)(stet_units_ms(v) + 999) / 1000;
        if (stet_value_as_bool(stet_value_get(d, "stdin")))
            out->standard_input = stet_json_print(e.values, STET_JSON_CANONICAL, &out->standard_input_len);
        if (out->argv.len == 0)
            status = stet_fail(err, STET_FAILED, "%s: its command is empty: a pattern matches no file", run->name);
    }
    stet_value_release(env);
    stet_value_release(e.values);
    stet_map_release(&e.seen);
    stet_free(e.dir);
    if (status != STET_OK)
        command_spec_release(out);
    *stale = e.stale;
    return status;
}

stet_status command_evaluate(stet_run *run, const char *root, const char *lists, stet_files *files,
                             const command_files *except, command_spec *out, stet_error *err) {
    bool stale;
    stet_error first = STET_ERROR_INIT;
    stet_status status = evaluate(run, root, lists, files, except, false, out, &stale, &first);
    if (!stale) {
        stet_error_move(err, &first);
        return status;
    }
    stet_error_clear(&first); /* a command has written around it since: once more, with what is there now */
    command_spec_release(out);
    status = stet_files_rematch(files, err);
    if (status == STET_OK)
        status = stet_run_refresh(run, err);
    return status == STET_OK ? evaluate(run, root, lists, files, except, true, out, &stale, err) : status;
}
