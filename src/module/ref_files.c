/* files: the files that bindings name, one element each, for `map` over commands. It looks at which files there are and
 * not into them: an edit of one runs its child and nothing here. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "files/glob.h"
#include "files/path.h"
#include "graph/pattern.h"
#include "module/ref.h"

typedef struct listing {
    ref_call *call;
    stet_path at;           /* into the inputs */
    STET_VEC(char *) paths; /* as in ids */
    stet_map seen;
} listing;

static void add(listing *l, const char *path, size_t len) {
    if (stet_map_get(&l->seen, path, len))
        return; /* a pattern and another node may both give it */
    stet_map_put(&l->seen, path, len, (stet_slot){.n = 1});
    *stet_vec_add(&l->paths) = stet_strndup(path, len);
}

/* A file that another node has made says where it is; nothing else of it is read. */
static stet_status add_made(listing *l, const char *matching, stet_error *err) {
    stet_value path;
    size_t len;
    stet_path_push(&l->at, "path");
    stet_status status = stet_run_read(l->call->run, stet_path_ref(&l->at), STET_RECURSIVE, &path, err);
    stet_path_pop(&l->at);
    if (status != STET_OK && status != STET_NOT_FOUND)
        return status;
    const char *text = status == STET_OK ? stet_as_string(&path, &len) : NULL;
    if (!text) {
        if (err)
            stet_error_clear(err);
        return stet_fail(err, STET_FAILED, "an input is no file: the node that makes it has not succeeded");
    }
    stet_buf plain = STET_BUF(0);
    if (!matching || (stet_path_unescape(text, len, &plain) && stet_glob_match(matching, stet_buf_cstr(&plain))))
        add(l, text, len);
    stet_buf_release(&plain);
    return STET_OK;
}

/* {"each": LIST, "name": NAME}: the files NAME of all commands of a list. */
static stet_status add_each(listing *l, stet_value binding, stet_error *err) {
    stet_value list, name = stet_get(binding, "name"), matching = stet_get(binding, "matching");
    size_t len;
    const char *text = stet_as_string(&name, &len);
    if (!text)
        return ref_expected(err, "name", "a string", name);
    stet_path_push(&l->at, "each");
    stet_status status = stet_run_raw(l->call->run, stet_path_ref(&l->at), &list, err);
    for (size_t i = 0; status == STET_OK && stet_typeof(list) == STET_ARRAY && i < stet_count(list); i++) {
        stet_path_push_index(&l->at, i);
        stet_path_push(&l->at, "files");
        stet_path_push_n(&l->at, text, len);
        status = add_made(l, stet_as_string(&matching, NULL), err);
        stet_path_pop(&l->at);
        stet_path_pop(&l->at);
        stet_path_pop(&l->at);
    }
    stet_path_pop(&l->at);
    return status;
}

static stet_status add_binding(listing *l, stet_value binding, stet_error *err) {
    stet_value link, id, value;
    const char *text = NULL;
    if (stet_link_is(binding, &link)) {
        id = stet_get(link, "id");
        text = stet_as_string(&id, NULL);
    }
    size_t prefix = strlen(STET_FILE_PREFIX);
    if (text && strncmp(text, STET_FILE_PREFIX, prefix) == 0) {
        add(l, text + prefix, strlen(text) - prefix);
        return STET_OK;
    }
    if (text && strncmp(text, STET_GLOB_PREFIX, prefix) == 0) {
        stet_status status = stet_run_raw(l->call->run, stet_path_ref(&l->at), &value, err);
        if (status == STET_NOT_FOUND) {
            if (err)
                stet_error_clear(err);
            return STET_OK; /* a pattern that matches nothing */
        }
        for (size_t i = 0; status == STET_OK && i < stet_count(value); i++) {
            size_t len;
            const char *key = stet_key_at(value, i, &len);
            if (key)
                add(l, key, len);
        }
        return status;
    }
    if (stet_typeof(binding) == STET_OBJECT && stet_find(binding, "each", 4, NULL))
        return add_each(l, binding, err);
    return add_made(l, NULL, err);
}

/* ---- Distinct ------------------------------------------------------------------------------------------------- */

/* The commands of a list write files whose paths are made from those in it: two must not write the same. Told here,
 * before any of them has run. */

typedef struct one_file {
    const char *name, *path;
} one_file;

static const char *path_of_element(void *ctx, const char *name, size_t len) {
    const one_file *e = ctx;
    return strlen(e->name) == len && memcmp(e->name, name, len) == 0 ? e->path : NULL;
}

static stet_status check_distinct(const listing *l, const char *name, const char *text, stet_error *err) {
    stet_map made = {0};
    stet_status status = STET_OK;
    for (size_t i = 0; i < l->paths.len && status == STET_OK; i++) {
        stet_buf path = STET_BUF(0), filled = STET_BUF(0);
        char *normal = NULL;
        if (stet_path_unescape(l->paths.at[i], strlen(l->paths.at[i]), &path)) {
            one_file e = {name, path.data};
            stet_path_fill(text, path_of_element, &e, &filled);
            if (stet_path_normal(NULL, "", stet_buf_cstr(&filled), &normal, NULL) != STET_OK)
                normal = NULL; /* the command says what is wrong with it */
        }
        stet_slot *other = normal ? stet_map_get(&made, normal, strlen(normal)) : NULL;
        if (other) {
            status = stet_fail(err, STET_INVALID, "%s and %s would both write %s", l->paths.at[other->n],
                               l->paths.at[i], normal);
            stet_hint(err, "make the path from more of the file's: {in.dir}, {in.name}");
        } else if (normal) {
            stet_map_put(&made, normal, strlen(normal), (stet_slot){.n = i});
        }
        stet_free(normal);
        stet_buf_release(&path);
        stet_buf_release(&filled);
    }
    stet_map_release(&made);
    return status;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static stet_status files(ref_call *call, stet_value *out, stet_error *err) {
    listing l = {.call = call, .at = STET_PATH_INIT};
    stet_value bound = stet_get(call->bindings, "files");
    stet_status status = STET_OK;
    stet_path_push(&l.at, "files");
    if (stet_typeof(bound) == STET_ARRAY) {
        for (size_t i = 0; i < stet_count(bound) && status == STET_OK; i++) {
            stet_path_push_index(&l.at, i);
            status = add_binding(&l, stet_at(bound, i), err);
            stet_path_pop(&l.at);
        }
    } else {
        status = add_binding(&l, bound, err);
    }
    if (l.paths.len)
        qsort(l.paths.at, l.paths.len, sizeof *l.paths.at, by_bytes);
    stet_value distinct = stet_get(stet_run_descriptor(call->run), "distinct"), name = stet_null();
    if (!stet_find(stet_run_descriptor(call->run), "name", 4, &name))
        name = stet_null();
    for (size_t i = 0; i < stet_count(distinct) && status == STET_OK; i++) {
        stet_value text = stet_at(distinct, i);
        const char *called = stet_as_string(&name, NULL);
        status = check_distinct(&l, called ? called : "in", stet_as_string(&text, NULL), err);
    }
    if (status == STET_OK)
        *out = stet_array();
    for (size_t i = 0; i < l.paths.len; i++) {
        if (status == STET_OK) {
            stet_value element = stet_object();
            char *id = stet_asprintf(STET_FILE_PREFIX "%s", l.paths.at[i]);
            stet_put(&element, "path", stet_string(l.paths.at[i]));
            stet_put(&element, "file", stet_file_link(id));
            stet_free(id);
            stet_push(out, element);
        }
        stet_free(l.paths.at[i]);
    }
    stet_vec_release(&l.paths);
    stet_map_release(&l.seen);
    stet_path_release(&l.at);
    return status;
}

stet_status ref_check_files(stet_value descriptor, stet_error *err) {
    stet_value distinct = stet_get(descriptor, "distinct"), name;
    bool fine = stet_typeof(distinct) == STET_NULL || stet_typeof(distinct) == STET_ARRAY;
    fine &= !stet_find(descriptor, "name", 4, &name) || stet_typeof(name) == STET_STRING;
    for (size_t i = 0; fine && i < stet_count(distinct); i++)
        fine = stet_typeof(stet_at(distinct, i)) == STET_STRING;
    if (fine)
        return STET_OK;
    stet_fail(err, STET_INVALID, "\"distinct\" of ref \"files\" is no list of paths, or its \"name\" no string");
    stet_hint(err, "write [\"build/{in.stem}.o\"]: what the commands over these files write");
    return STET_INVALID;
}

const ref_row ref_row_files = {"files", "files", files, NULL, NULL};
