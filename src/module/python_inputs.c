/* python_inputs.c - inputs of a node as arguments of a Python function: values, paths of files, cells. */

#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/utf8.h"
#include "files/glob.h"
#include "files/path.h"
#include "graph/pattern.h"
#include "module/bound.h"
#include "module/python.h"

/* Is this input a cell, by its binding or by a schema? */
static bool marked_cell(stet_value v) {
    stet_value link;
    if (stet_value_type(v) != STET_TYPE_OBJECT)
        return false;
    if (stet_value_type(stet_value_get(v, "$")) == STET_TYPE_STRING)
        return stet_value_as_bool(stet_value_get(v, "asCell"));
    return stet_link_is(v, &link) && stet_value_as_bool(stet_value_get(link, "asCell"));
}

static bool schema_cell(stet_value owner, const char *key, size_t len) {
    stet_value v;
    stet_value properties = stet_value_get(stet_value_get(owner, "argumentSchema"), "properties");
    return stet_value_type(properties) == STET_TYPE_OBJECT && stet_value_find(properties, key, len, &v) &&
           stet_value_type(v) == STET_TYPE_OBJECT && stet_value_as_bool(stet_value_get(v, "asCell"));
}

/* Are inputs positional, "0" to "count - 1"? */
static bool are_positional(stet_value bindings) {
    size_t count = stet_value_count(bindings);
    for (size_t i = 0; i < count; i++) {
        size_t len, index;
        const char *key = stet_value_key_at(bindings, i, &len);
        if (key && (!stet_path_index(key, len, &index) || index >= count))
            return false;
    }
    return count > 0;
}

static bool is_file_input(stet_value descriptor, const char *key, size_t len) {
    stet_value files = stet_value_get(descriptor, "files");
    for (size_t i = 0; i < (stet_value_type(files) == STET_TYPE_ARRAY ? stet_value_count(files) : 0); i++) {
        stet_value name = stet_value_at(files, i);
        size_t n;
        const char *s = stet_value_as_string(&name, &n);
        if (s && n == len && memcmp(s, key, n) == 0)
            return true;
    }
    return false;
}

typedef struct gathering {
    python_run *r;
    stet_path at;
    stet_value paths; /* an array */
    bool several;     /* a list, even if one file is in it */
} gathering;

/* `text` is as in ids. */
static stet_status add_path(gathering *g, const char *text, size_t len, stet_error *err) {
    stet_buf path = STET_BUF(0);
    stet_status status = STET_OK;
    if (!stet_path_unescape(text, len, &path))
        status = stet_fail(err, STET_FAILED, "an input that is to be a file has the path \"%.*s\", which is none",
                           (int)(len < 200 ? len : 200), text);
    else if (!stet_utf8_valid(path.data, path.len))
        status = stet_fail(err, STET_FAILED, "%.*s: a Python function is given names in UTF-8 only",
                           (int)(len < 200 ? len : 200), text);
    else {
        stet_value_push(&g->paths, stet_value_string(stet_buf_cstr(&path)));
        *stet_vec_add(&g->r->files) = stet_strdup(stet_buf_cstr(&path));
    }
    stet_buf_release(&path);
    return status;
}

/* A file that another node has made: where it is, and what is in it. `matching`: unless it does not match. */
static stet_status add_made(gathering *g, const char *matching, stet_error *err) {
    stet_value made, path;
    size_t len;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_run_read(g->r->run, stet_path_ref(&g->at), STET_RECURSIVE, &made, &mine);
    if (status != STET_OK && status != STET_NOT_FOUND) {
        stet_error_move(err, &mine);
        return status;
    }
    stet_error_clear(&mine);
    if (status == STET_OK)
        path = stet_value_get(made, "path");
    const char *text =
        status == STET_OK && stet_value_type(made) == STET_TYPE_OBJECT ? stet_value_as_string(&path, &len) : NULL;
    if (!text) {
        stet_fail(err, STET_FAILED, "an input is no file: the node that makes it has not succeeded");
        stet_hint(err, "name a file of a node's `produces`, or take the input out of \"files\"");
        return STET_FAILED;
    }
    if (matching) {
        stet_buf plain = STET_BUF(0);
        bool fits = stet_path_unescape(text, len, &plain) && stet_glob_match(matching, stet_buf_cstr(&plain)) &&
                    stet_value_as_int(stet_value_get(made, "mode")) != STET_LOOK_DIRECTORY;
        stet_buf_release(&plain);
        if (!fits)
            return STET_OK;
    }
    return add_path(g, text, len, err);
}

/* {"each": LIST, "name": NAME}: the files NAME of all commands of a list. */
static stet_status add_each(gathering *g, stet_value binding, stet_error *err) {
    stet_value list, name = stet_value_get(binding, "name"), matching = stet_value_get(binding, "matching");
    size_t len;
    const char *text = stet_value_as_string(&name, &len);
    if (!text)
        return stet_fail(err, STET_INVALID, "an input with \"each\" has no \"name\"");
    g->several = true;
    stet_path_push(&g->at, "each");
    stet_status status = stet_run_raw(g->r->run, stet_path_ref(&g->at), &list, err);
    size_t count = status == STET_OK && stet_value_type(list) == STET_TYPE_ARRAY ? stet_value_count(list) : 0;
    for (size_t i = 0; status == STET_OK && i < count; i++) {
        stet_path_push_index(&g->at, i);
        stet_path_push(&g->at, "files");
        stet_path_push_n(&g->at, text, len);
        status = add_made(g, stet_value_as_string(&matching, NULL), err);
        stet_path_pop(&g->at);
        stet_path_pop(&g->at);
        stet_path_pop(&g->at);
    }
    stet_path_pop(&g->at);
    return status;
}

/* A link to file:PATH or glob:PATTERN. The whole value is read: the content counts. */
static stet_status add_link(gathering *g, const char *id, stet_error *err) {
    stet_value value, names;
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_run_read(g->r->run, stet_path_ref(&g->at), STET_RECURSIVE, &value, &mine);
    if (status != STET_OK && status != STET_NOT_FOUND) {
        stet_error_move(err, &mine);
        return status;
    }
    stet_error_clear(&mine);
    if (strncmp(id, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) == 0) {
        char *path = stet_file_of_id(id, strlen(id));
        const char *escaped = id + strlen(STET_FILE_PREFIX);
        if (status == STET_NOT_FOUND) {
            status = stet_fail(err, STET_NOT_FOUND, "%s: no such file (an input of %s)", path ? path : escaped,
                               stet_run_name(g->r->run));
        } else {
            status = stet_bound_read_above(g->r->run, g->r->s->files, g->r->s->root, path ? path : escaped, false, err);
            if (status == STET_OK)
                stet_bound_read_names(g->r->run, g->r->s->files, g->r->s->root, path ? path : escaped);
            if (status == STET_OK)
                status = add_path(g, escaped, strlen(escaped), err);
        }
        stet_free(path);
        return status;
    }
    g->several = true;
    if (status == STET_NOT_FOUND) /* a pattern that matches nothing */
        return STET_OK;
    status = stet_run_raw(g->r->run, stet_path_ref(&g->at), &names, err);
    for (size_t i = 0; status == STET_OK && i < stet_value_count(names); i++) {
        size_t len;
        const char *key = stet_value_key_at(names, i, &len);
        if (key)
            status = add_path(g, key, len, err);
    }
    return status;
}

static stet_status add_file(gathering *g, stet_value binding, stet_error *err) {
    stet_value hold;
    const char *id = stet_bound_id(binding, &hold);
    if (id && (strncmp(id, STET_FILE_PREFIX, strlen(STET_FILE_PREFIX)) == 0 ||
               strncmp(id, STET_GLOB_PREFIX, strlen(STET_GLOB_PREFIX)) == 0))
        return add_link(g, id, err);
    if (stet_bound_is_each(binding))
        return add_each(g, binding, err);
    if (!stet_bound_is_made(binding))
        return add_made(g, NULL, err);
    stet_value matching = stet_value_get(binding, "matching");
    g->several = true;
    stet_path_push(&g->at, "made");
    stet_status status = add_made(g, stet_value_as_string(&matching, NULL), err);
    stet_path_pop(&g->at);
    return status;
}

/* A pattern and another node may both give a file. */
static stet_value without_repeats(stet_value paths) {
    stet_value made = stet_value_array();
    for (size_t i = 0; i < stet_value_count(paths); i++) {
        bool again = false;
        for (size_t k = 0; k < stet_value_count(made) && !again; k++)
            again = stet_value_equal(stet_value_at(made, k), stet_value_at(paths, i));
        if (!again)
            stet_value_push(&made, stet_value_retain(stet_value_at(paths, i)));
    }
    return made;
}

static stet_status read_files(python_run *r, stet_value binding, const char *key, size_t len, stet_value *out,
                              stet_error *err) {
    gathering g = {.r = r, .at = STET_PATH_INIT, .paths = stet_value_array()};
    stet_status status = STET_OK;
    stet_path_push_n(&g.at, key, len);
    if (stet_value_type(binding) == STET_TYPE_ARRAY) {
        g.several = true;
        for (size_t i = 0; i < stet_value_count(binding) && status == STET_OK; i++) {
            stet_path_push_index(&g.at, i);
            status = add_file(&g, stet_value_at(binding, i), err);
            stet_path_pop(&g.at);
        }
    } else {
        status = add_file(&g, binding, err);
    }
    stet_path_release(&g.at);
    if (status == STET_OK)
        *out = !g.several && stet_value_count(g.paths) == 1 ? stet_value_retain(stet_value_at(g.paths, 0))
                                                            : without_repeats(g.paths);
    stet_value_release(g.paths);
    return status;
}

static stet_status read_input(python_run *r, const char *key, size_t len, stet_value binding, stet_value *form,
                              stet_error *err) {
    stet_value descriptor = stet_run_descriptor(r->run), value;
    stet_error mine = STET_ERROR_INIT;
    *form = stet_value_object();
    if (marked_cell(binding) || schema_cell(descriptor, key, len) || schema_cell(stet_run_node(r->run), key, len)) {
        stet_value_put(form, "cell", stet_value_bool(true));
        return STET_OK;
    }
    if (is_file_input(descriptor, key, len)) {
        stet_status status = read_files(r, binding, key, len, &value, err);
        if (status == STET_OK)
            stet_value_put(form, "value", value);
        return status;
    }
    stet_path at = STET_PATH_INIT;
    stet_path_push_n(&at, key, len);
    stet_status status = stet_run_read(r->run, stet_path_ref(&at), STET_RECURSIVE, &value, &mine);
    stet_path_release(&at);
    if (status == STET_OK)
        stet_value_put(form, "value", stet_value_retain(value));
    else if (status != STET_NOT_FOUND)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    return status == STET_NOT_FOUND ? STET_OK : status;
}

stet_status python_inputs(python_run *r, stet_value *out, bool *positional, stet_error *err) {
    stet_value bindings = stet_run_bindings(r->run), made = stet_value_array();
    stet_status status = STET_OK;
    size_t count = stet_value_count(bindings);
    *positional = stet_value_type(bindings) == STET_TYPE_ARRAY || are_positional(bindings);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        char number[24];
        size_t len;
        const char *key = stet_value_key_at(bindings, i, &len);
        stet_value binding = stet_value_at(bindings, i), form, pair = stet_value_array();
        if (*positional) { /* "10" is not before "2" */
            len = (size_t)snprintf(number, sizeof number, "%zu", i);
            key = number;
            if (stet_value_type(bindings) == STET_TYPE_OBJECT)
                binding = stet_value_get(bindings, number);
        }
        if (!*positional && len == 5 && memcmp(key, "after", 5) == 0 && stet_value_type(binding) == STET_TYPE_ARRAY) {
            stet_value_release(pair); /* what the node only waits for (stet.toml) */
            continue;
        }
        status = read_input(r, key, len, binding, &form, err);
        stet_value_push(&pair, stet_value_string_n(key, len));
        stet_value_push(&pair, form);
        stet_value_push(&made, pair);
    }
    *out = made;
    return status;
}

static stet_status path_of(stet_value message, stet_path *out, stet_error *err) {
    stet_value keys = stet_value_get(message, "path");
    return stet_path_of_value(out, keys, err);
}

/* At the end of the array that is there; nothing, or null, is an empty one. */
static stet_status push(python_run *r, stet_path *path, stet_value items, stet_error *err) {
    stet_value there = stet_value_null();
    stet_error mine = STET_ERROR_INIT;
    stet_status status = stet_run_read(r->run, stet_path_ref(path), STET_SHALLOW, &there, &mine);
    if (status != STET_OK && status != STET_NOT_FOUND) {
        stet_error_move(err, &mine);
        return status;
    }
    stet_error_clear(&mine);
    if (status == STET_NOT_FOUND || stet_value_type(there) == STET_TYPE_NULL)
        return stet_run_write(r->run, stet_path_ref(path), stet_value_retain(items), err);
    if (stet_value_type(there) != STET_TYPE_ARRAY)
        return stet_fail(err, STET_FAILED, "push(): there is no array in the cell");
    size_t n = stet_value_count(there);
    status = STET_OK;
    for (size_t i = 0; i < stet_value_count(items) && status == STET_OK; i++) {
        stet_path_push_index(path, n + i);
        status = stet_run_write(r->run, stet_path_ref(path), stet_value_retain(stet_value_at(items, i)), err);
        stet_path_pop(path);
    }
    return status;
}

stet_status python_serve(python_run *r, const char *op, stet_value message, stet_value *answer, stet_error *err) {
    stet_path path = STET_PATH_INIT;
    stet_value value = stet_value_get(message, "value"), found;
    *answer = stet_value_object();
    stet_status status = path_of(message, &path, err);
    if (status != STET_OK) {
        stet_path_release(&path);
        return status;
    }
    if (strcmp(op, "read") == 0) {
        stet_error mine = STET_ERROR_INIT;
        status = stet_run_read(r->run, stet_path_ref(&path), STET_RECURSIVE, &found, &mine);
        if (status == STET_OK)
            stet_value_put(answer, "value", stet_value_retain(found));
        else if (status != STET_NOT_FOUND)
            stet_error_move(err, &mine);
        stet_error_clear(&mine);
        status = status == STET_NOT_FOUND ? STET_OK : status;
    } else if (strcmp(op, "write") == 0) {
        status = stet_run_write(r->run, stet_path_ref(&path), stet_value_retain(value), err);
    } else if (strcmp(op, "send") == 0) {
        status = stet_run_send(r->run, stet_path_ref(&path), stet_value_retain(value), err);
    } else if (strcmp(op, "push") == 0 && stet_value_type(value) == STET_TYPE_ARRAY) {
        status = push(r, &path, value, err);
    } else {
        status = stet_fail(err, STET_FAILED, "the process of Python asked for \"%.50s\"", op);
    }
    stet_path_release(&path);
    return status;
}
