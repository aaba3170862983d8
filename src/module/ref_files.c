/* ref_files.c - the builtin function `files`: one element for each file that its bindings name.
 *
 * It is made for `map` over commands. It looks at which files exist and not into them: an edit of a file runs its child
 * and nothing here.
 */

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"
#include "base/vec.h"
#include "files/glob.h"
#include "files/meet.h"
#include "files/path.h"
#include "graph/process.h"
#include "module/bound.h"
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

/* A file that another node has made says where it is; nothing else of it is read. `file` is the link to it: whoever
 * reads the element waits for that node. */
static stet_status add_made(listing *l, const char *matching, stet_error *err) {
    stet_value path;
    size_t len;
    stet_path_push(&l->at, "path");
    stet_status status = stet_run_read(l->call->run, stet_path_ref(&l->at), STET_RECURSIVE, &path, err);
    stet_path_pop(&l->at);
    if (status != STET_OK && status != STET_NOT_FOUND)
        return status;
    const char *text = status == STET_OK ? stet_value_as_string(&path, &len) : NULL;
    if (!text) {
        if (err)
            stet_error_clear(err);
        return stet_fail(err, STET_FAILED, "an input is no file: the node that makes it has not succeeded");
    }
    stet_buf plain = STET_BUF(0);
    bool matches =
        !matching || (stet_path_unescape(text, len, &plain) && stet_glob_match(matching, stet_buf_cstr(&plain)));
    stet_buf_release(&plain);
    if (matches && matching) { /* a pattern matches files; those in a directory are in the document of the pattern */
        stet_value mode;
        stet_path_push(&l->at, "mode");
        status = stet_run_read(l->call->run, stet_path_ref(&l->at), STET_RECURSIVE, &mode, err);
        stet_path_pop(&l->at);
        matches = status == STET_OK && stet_value_as_int(mode) != STET_LOOK_DIRECTORY;
        if (status == STET_NOT_FOUND && err)
            stet_error_clear(err);
        status = status == STET_NOT_FOUND ? STET_OK : status;
    }
    if (matches)
        add(l, text, len);
    return status == STET_NOT_FOUND ? STET_OK : status;
}

/* Does a command of this list write it, as it was when that ran last? Its outputs may have other paths by now: then the
 * file is about to be a leftover, and the list must not be made from it. */
static bool is_of_children(listing *l, const char *path) {
    static const char suffix[] = ".files";
    const char *name = stet_run_name(l->call->run), *node = strrchr(name, '/'); /* a scope may hold some */
    size_t len = node ? strlen(++node) : 0;
    if (len < sizeof suffix || strcmp(node + len - (sizeof suffix - 1), suffix) != 0)
        return false;
    char *piece = stet_asprintf("piece:%.*s", (int)(node - name - 1), name),
         *prefix = stet_asprintf("%.*s[", (int)(len - (sizeof suffix - 1)), node);
    stet_piece_id id;
    stet_piece_id_of(piece, &id);
    bool of = stet_files_is_written_by(l->call->files, path, &id.name, prefix);
    stet_free(piece);
    stet_free(prefix);
    return of;
}

/* Is what a pattern matches an output of a command of this very list? That is no read: these commands depend on the
 * list, and what becomes of their outputs otherwise shows in the document of the pattern. */
static bool is_own(listing *l, const char *key, size_t len) {
    stet_value templates = stet_value_get(stet_run_descriptor(l->call->run), "distinct");
    stet_buf path = STET_BUF(0);
    bool could = false;
    if (l->call->files && stet_path_unescape(key, len, &path))
        for (size_t i = 0; i < stet_value_count(templates) && !could; i++) {
            stet_value text = stet_value_at(templates, i);
            could = stet_path_meets(stet_value_as_string(&text, NULL), stet_buf_cstr(&path), false);
        }
    bool own = stet_value_count(templates) > 0 && path.len &&
               stet_files_is_made(l->call->files, stet_buf_cstr(&path)) &&
               (could || is_of_children(l, stet_buf_cstr(&path)));
    stet_buf_release(&path);
    return own;
}

/* {"each": LIST, "name": NAME}: the files NAME of all commands of a list. */
static stet_status add_each(listing *l, stet_value binding, stet_error *err) {
    stet_value list, name = stet_value_get(binding, "name"), matching = stet_value_get(binding, "matching");
    size_t len;
    const char *text = stet_value_as_string(&name, &len);
    if (!text)
        return ref_expected(err, "name", "a string", name);
    stet_path_push(&l->at, "each");
    stet_status status = stet_run_raw(l->call->run, stet_path_ref(&l->at), &list, err);
    for (size_t i = 0; status == STET_OK && stet_value_type(list) == STET_TYPE_ARRAY && i < stet_value_count(list);
         i++) {
        stet_path_push_index(&l->at, i);
        stet_path_push(&l->at, "files");
        stet_path_push_n(&l->at, text, len);
        status = add_made(l, stet_value_as_string(&matching, NULL), err);
        stet_path_pop(&l->at);
        stet_path_pop(&l->at);
        stet_path_pop(&l->at);
    }
    stet_path_pop(&l->at);
    return status;
}

static stet_status add_binding(listing *l, stet_value binding, stet_error *err) {
    stet_value hold, value;
    const char *text = stet_bound_id(binding, &hold);
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
        for (size_t i = 0; status == STET_OK && i < stet_value_count(value); i++) {
            size_t len;
            const char *key = stet_value_key_at(value, i, &len);
            if (key && !is_own(l, key, len))
                add(l, key, len);
        }
        return status;
    }
    if (stet_bound_is_each(binding))
        return add_each(l, binding, err);
    if (!stet_bound_is_made(binding))
        return add_made(l, NULL, err);
    stet_value matching = stet_value_get(binding, "matching");
    stet_path_push(&l->at, "made");
    stet_status status = add_made(l, stet_value_as_string(&matching, NULL), err);
    stet_path_pop(&l->at);
    return status;
}

/* The commands of a list write files whose paths are made from those in it: two must not write the same. Told here,
 * before any of them has run. */

typedef struct one_file {
    const char *name, *path;
} one_file;

static const char *path_of_element(void *ctx, const char *name, size_t len) {
    const one_file *e = ctx;
    return strlen(e->name) == len && memcmp(e->name, name, len) == 0 ? e->path : NULL;
}

static bool is_at(const char *path, const char *top) {
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

/* Where the command over this file writes what `text` says. Caller frees; NULL: the command says what is wrong with it.
 */
static char *output_of(const char *escaped, const char *name, const char *text) {
    stet_buf path = STET_BUF(0), filled = STET_BUF(0);
    char *normal = NULL;
    if (stet_path_unescape(escaped, strlen(escaped), &path)) {
        one_file e = {name, stet_buf_cstr(&path)};
        stet_path_fill(text, path_of_element, &e, &filled);
        if (stet_path_normal(NULL, "", stet_buf_cstr(&filled), &normal, NULL) != STET_OK)
            normal = NULL;
    }
    stet_buf_release(&path);
    stet_buf_release(&filled);
    return normal;
}

static stet_status check_distinct(listing *l, const char *name, const char *text, stet_error *err) {
    stet_map made = {0};
    stet_status status = STET_OK;
    for (size_t i = 0; i < l->paths.len && status == STET_OK; i++) {
        char *normal = output_of(l->paths.at[i], name, text);
        stet_slot *other = normal ? stet_map_get(&made, normal, strlen(normal)) : NULL;
        if (other) {
            status = stet_fail(err, STET_INVALID, "%s and %s would both write %s", l->paths.at[other->n],
                               l->paths.at[i], normal);
            stet_hint(err, "make the path from more of the file's: {in.dir}, {in.name}");
        } else if (normal) {
            stet_map_put(&made, normal, strlen(normal), (stet_slot){.n = i});
            stet_buf own = STET_BUF(0);
            if (stet_path_unescape(l->paths.at[i], strlen(l->paths.at[i]), &own) &&
                is_at(stet_buf_cstr(&own), normal)) {
                status = stet_fail(err, STET_INVALID, "the command over %s would write over it", l->paths.at[i]);
                stet_hint(err, "let it write to another path");
            }
            stet_buf_release(&own);
        }
        stet_free(normal);
    }
    stet_map_release(&made);
    return status;
}

/* What the commands of this list write: path -> 1 + index of the file. The caller releases the map. */
static void map_outputs(const listing *l, const char *name, stet_value templates, stet_map *made) {
    for (size_t k = 0; k < stet_value_count(templates); k++)
        for (size_t i = 0; i < l->paths.len; i++) {
            stet_value text = stet_value_at(templates, k);
            char *normal = output_of(l->paths.at[i], name, stet_value_as_string(&text, NULL));
            if (normal)
                stet_map_put(made, normal, strlen(normal), (stet_slot){.n = i});
            stet_free(normal);
        }
}

static stet_status say_shared(const listing *l, size_t own, const char *node, const char *with, const char *path,
                              stet_error *err) {
    stet_status status =
        with ? stet_fail(err, STET_INVALID, "the commands over %s and, of node \"%s\", over %s would both write %s",
                         l->paths.at[own], node, with, path)
             : stet_fail(err, STET_INVALID, "the command over %s would write %s, which node \"%s\" writes",
                         l->paths.at[own], path, node);
    stet_hint(err, "let one of them write another file");
    return status;
}

static stet_status check_taken(const listing *l, const stet_map *made, stet_value taken, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < stet_value_count(taken) && status == STET_OK; i++) {
        stet_value item = stet_value_at(taken, i), path = stet_value_get(item, "path"),
                   node = stet_value_get(item, "node");
        size_t len;
        const char *text = stet_value_as_string(&path, &len);
        const stet_slot *slot = stet_map_get(made, text, len);
        if (slot)
            status = say_shared(l, slot->n, stet_value_as_string(&node, NULL), NULL, text, err);
    }
    return status;
}

/* Would a command of another list write what one of this list writes? */
static stet_status check_beside(listing *l, const stet_map *made, stet_value item, size_t index, stet_error *err) {
    stet_value list = stet_value_null(), templates = stet_value_get(item, "distinct"), hold[2];
    const char *name = stet_value_text_at_or(item, "name", "in", &hold[0]),
               *node = stet_value_text_at_or(item, "node", "", &hold[1]);
    stet_path at = STET_PATH_INIT;
    stet_path_push(&at, "beside");
    stet_path_push_index(&at, index);
    stet_status status = stet_run_raw(l->call->run, stet_path_ref(&at), &list, err);
    stet_path_release(&at);
    if (status == STET_NOT_FOUND) { /* that list could not be made: it says why itself */
        if (err)
            stet_error_clear(err);
        return STET_OK;
    }
    for (size_t i = 0; status == STET_OK && i < stet_value_count(list); i++) {
        stet_value path = stet_value_get(stet_value_at(list, i), "path");
        const char *text = stet_value_text(&path, "");
        for (size_t k = 0; k < stet_value_count(templates) && status == STET_OK; k++) {
            stet_value template = stet_value_at(templates, k);
            char *normal = output_of(text, name, stet_value_as_string(&template, NULL));
            const stet_slot *slot = normal ? stet_map_get(made, normal, strlen(normal)) : NULL;
            if (slot)
                status = say_shared(l, slot->n, node, text, normal, err);
            stet_free(normal);
        }
    }
    return status;
}

/* What is written by commands that are not of this list. */
static stet_status check_others(listing *l, const char *name, stet_error *err) {
    stet_value descriptor = stet_run_descriptor(l->call->run), taken = stet_value_get(descriptor, "taken"),
               beside = stet_value_get(descriptor, "beside");
    stet_map made = {0};
    if (stet_value_count(taken) + stet_value_count(beside) == 0)
        return STET_OK;
    map_outputs(l, name, stet_value_get(descriptor, "distinct"), &made);
    stet_status status = check_taken(l, &made, taken, err);
    for (size_t i = 0; i < stet_value_count(beside) && status == STET_OK; i++)
        status = check_beside(l, &made, stet_value_at(beside, i), i, err);
    stet_map_release(&made);
    return status;
}

/* A file in the list that another one's command writes is an output, whoever wrote it last: also one that a command
 * which runs just now has left there. */
static void drop_written(listing *l, const char *name, const char *text) {
    stet_map made = {0}; /* path -> who writes it; SIZE_MAX: several */
    for (size_t i = 0; i < l->paths.len; i++) {
        char *normal = output_of(l->paths.at[i], name, text);
        if (normal) {
            bool more = stet_map_get(&made, normal, strlen(normal)) != NULL;
            stet_map_put(&made, normal, strlen(normal), (stet_slot){.n = more ? SIZE_MAX : i});
        }
        stet_free(normal);
    }
    size_t kept = 0;
    for (size_t i = 0; i < l->paths.len; i++) {
        stet_buf path = STET_BUF(0);
        bool own = false;
        if (stet_map_len(&made) > 0 && stet_path_unescape(l->paths.at[i], strlen(l->paths.at[i]), &path))
            for (size_t end = 1; end <= path.len && !own; end++) {
                stet_slot *by = end == path.len || path.data[end] == '/' ? stet_map_get(&made, path.data, end) : NULL;
                own = by && by->n != i;
            }
        stet_buf_release(&path);
        if (own)
            stet_free(l->paths.at[i]);
        else
            l->paths.at[kept++] = l->paths.at[i];
    }
    l->paths.len = kept;
    stet_map_release(&made);
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static stet_status files(ref_call *call, stet_value *out, stet_error *err) {
    listing l = {.call = call, .at = STET_PATH_INIT};
    stet_value bound = stet_value_get(call->bindings, "files");
    stet_status status = stet_bound_ready(call->run, call->files, err);
    stet_path_push(&l.at, "files");
    bool many = stet_value_type(bound) == STET_TYPE_ARRAY;
    size_t count = many ? stet_value_count(bound) : 1;
    for (size_t k = 0; k < count && status == STET_OK; k++) {
        if (many)
            stet_path_push_index(&l.at, k);
        status = add_binding(&l, many ? stet_value_at(bound, k) : bound, err);
        if (many)
            stet_path_pop(&l.at);
    }
    if (l.paths.len)
        qsort(l.paths.at, l.paths.len, sizeof *l.paths.at, by_bytes);
    stet_value distinct = stet_value_get(stet_run_descriptor(call->run), "distinct"), name = stet_value_null();
    if (!stet_value_find(stet_run_descriptor(call->run), "name", 4, &name))
        name = stet_value_null();
    const char *called = stet_value_type(name) == STET_TYPE_STRING ? stet_value_as_string(&name, NULL) : "in";
    for (size_t i = 0; i < stet_value_count(distinct) && status == STET_OK; i++) {
        stet_value text = stet_value_at(distinct, i);
        drop_written(&l, called, stet_value_as_string(&text, NULL));
    }
    for (size_t i = 0; i < stet_value_count(distinct) && status == STET_OK; i++) {
        stet_value text = stet_value_at(distinct, i);
        status = check_distinct(&l, called, stet_value_as_string(&text, NULL), err);
    }
    if (status == STET_OK)
        status = check_others(&l, called, err);
    if (status == STET_OK)
        *out = stet_value_array();
    for (size_t i = 0; i < l.paths.len; i++) {
        if (status == STET_OK) {
            stet_value e = stet_value_object();
            stet_value_put(&e, "path", stet_value_string(l.paths.at[i]));
            char *id = stet_asprintf(STET_FILE_PREFIX "%s", l.paths.at[i]);
            stet_value_put(&e, "file", stet_file_link(id));
            stet_free(id);
            stet_value_push(out, e);
        }
        stet_free(l.paths.at[i]);
    }
    stet_vec_release(&l.paths);
    stet_map_release(&l.seen);
    stet_path_release(&l.at);
    return status;
}

stet_status ref_check_files(stet_value descriptor, stet_error *err) {
    stet_value distinct = stet_value_get(descriptor, "distinct"), name;
    bool fine = stet_value_type(distinct) == STET_TYPE_NULL || stet_value_type(distinct) == STET_TYPE_ARRAY;
    fine &= !stet_value_find(descriptor, "name", 4, &name) || stet_value_type(name) == STET_TYPE_STRING;
    for (size_t i = 0; fine && i < stet_value_count(distinct); i++)
        fine = stet_value_type(stet_value_at(distinct, i)) == STET_TYPE_STRING;
    stet_value taken = stet_value_get(descriptor, "taken"), beside = stet_value_get(descriptor, "beside");
    for (size_t i = 0; fine && i < stet_value_count(taken); i++) {
        stet_value item = stet_value_at(taken, i);
        fine = stet_value_type(stet_value_get(item, "path")) == STET_TYPE_STRING &&
               stet_value_type(stet_value_get(item, "node")) == STET_TYPE_STRING;
    }
    for (size_t i = 0; fine && i < stet_value_count(beside); i++) {
        stet_value list = stet_value_get(stet_value_at(beside, i), "distinct");
        fine = stet_value_type(list) == STET_TYPE_ARRAY;
        for (size_t k = 0; fine && k < stet_value_count(list); k++)
            fine = stet_value_type(stet_value_at(list, k)) == STET_TYPE_STRING;
    }
    if (fine)
        return STET_OK;
    stet_fail(err, STET_INVALID, "\"distinct\" of ref \"files\" is no list of paths, or its \"name\" no string");
    stet_hint(err, "write [\"build/{in.stem}.o\"]: what the commands over these files write");
    return STET_INVALID;
}

const ref_row ref_row_files = {"files", "files beside?", files, NULL, NULL};
