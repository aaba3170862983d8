/* pattern_toml_source.c - reads the files that a stet.toml includes, and those with its parameters and variables.
 *
 *   S1. Each file is announced (checks->other) before it is read: whoever set the pattern up notices every later change.
 *   S2. Paths are seen from the directory of the file that names them.
 *   S3. A file that is included twice counts once. A file that includes itself, through others or not, is a mistake.
 *   S4. Of vars with one name, those of the including file win, then those of the file that is included later. Nodes and
 *       templates with one name are a mistake.
 */

#include "graph/pattern_toml_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/dotenv.h"
#include "base/json.h"
#include "base/suggest.h"
#include "base/toml.h"
#include "base/yaml.h"
#include "os/file.h"

#define MAX_FILES  1000
#define MAX_NESTED 32
#define MAX_BYTES  ((size_t)16 << 20)

/* Reads the file that the current place names. False after a problem. */
static bool read_named(toml_converter *c, const char *name, size_t len, toml_file *out, stet_buf *text) {
    const toml_file *from = &c->files.at[c->in];
    stet_error err = STET_ERROR_INIT;
    struct stat st;
    if (len == 0 || strlen(name) != len) {
        toml_problem(c, "write the path of a file, seen from this one", "an empty path, or one with a NUL character");
        return false;
    }
    if (!c->checks || !c->checks->other) {
        toml_problem(c, "save the text to a file first", "\"%.200s\" cannot be read here", name);
        return false;
    }
    char *dir = stet_file_dirname(from->path), *shown_dir = stet_file_dirname(from->shown);
    *out = (toml_file){.path = *name == '/' ? stet_strdup(name) : stet_file_join(dir, name)};
    out->shown = *name == '/' || strcmp(shown_dir, ".") == 0 ? stet_strdup(name) : stet_file_join(shown_dir, name);
    stet_free(dir);
    stet_free(shown_dir);
    c->checks->other(c->checks->other_ctx, out->path); /* S1 */
    stet_status status = stet_file_read(out->path, MAX_BYTES, text, &err);
    bool known = status == STET_OK && stet_sys_stat(out->path, &st) == 0;
    if (known) {
        out->device = st.st_dev;
        out->inode = st.st_ino;
        return true;
    }
    if (status == STET_NOT_FOUND || status == STET_OK)
        toml_problem(c, "create the file, or correct the path: it is seen from the file that names it",
                     "%.300s: no such file", out->shown);
    else
        toml_problem(c, stet_has_hint(&err) ? err.hint : "name a file that can be read", "%s", err.message);
    stet_error_clear(&err);
    stet_free(out->path);
    stet_free(out->shown);
    return false;
}

/* Calls `take` for each path of a member that is one path or a list of paths. */
static void each_path(toml_converter *c, const char *member,
                      void (*take)(toml_converter *c, const char *s, size_t len)) {
    stet_value v;
    if (!stet_value_find(c->files.at[c->in].root, member, strlen(member), &v))
        return;
    bool list = stet_value_type(v) == STET_TYPE_ARRAY;
    size_t mark = toml_enter(c, member, strlen(member)), file = c->in;
    for (size_t i = 0; i < (list ? stet_value_count(v) : 1); i++) {
        stet_value item = list ? stet_value_at(v, i) : v;
        char index[24];
        snprintf(index, sizeof index, "%zu", i);
        size_t inner = list ? toml_enter(c, index, strlen(index)) : c->at.len, len;
        const char *s = stet_value_as_string(&item, &len);
        if (s)
            take(c, s, len);
        else
            toml_problem(c, "write the path of a file, or a list of paths", "`%s` names files by strings", member);
        c->in = file;
        toml_leave(c, inner);
    }
    toml_leave(c, mark);
}

static void check_members(toml_converter *c, stet_value root) {
    static const char *const known[] = {"include", "vars", "templates", "nodes", "params", "env-file"};
    for (size_t i = 0; i < stet_value_count(root); i++) {
        size_t len, k = 0, count = sizeof known / sizeof *known;
        const char *key = stet_value_key_at(root, i, &len);
        stet_suggest near = stet_suggest_begin(key);
        for (; k < count && strcmp(known[k], key) != 0; k++)
            stet_suggest_offer(&near, known[k]);
        if (k < count)
            continue;
        char fix[200];
        if (near.best)
            snprintf(fix, sizeof fix, "did you mean `%s`?", near.best);
        else
            snprintf(fix, sizeof fix, "an included file has include, vars, templates, nodes, params and env-file");
        size_t mark = toml_enter(c, key, len);
        toml_problem(c, fix, "an included file has no member \"%.100s\"", key);
        toml_leave(c, mark);
    }
}

static void include(toml_converter *c, const char *name, size_t len);

/* Takes up a file after what it includes. */
static void take_file(toml_converter *c, size_t number) {
    c->in = number;
    *stet_vec_add(&c->including) = number;
    each_path(c, "include", include);
    c->including.len--;
    *stet_vec_add(&c->order) = number;
}

static bool same_file(const toml_file *a, const toml_file *b) {
    return a->device == b->device && a->inode == b->inode;
}

/* S3. */
static void say_circle(toml_converter *c, const toml_file *again, size_t from) {
    stet_buf said = STET_BUF(700);
    for (size_t i = from; i < c->including.len; i++)
        stet_buf_printf(&said, "%.100s includes ", c->files.at[c->including.at[i]].shown);
    toml_problem(c, "take one of these `include` out", "files include each other in a circle: %s%.100s",
                 stet_buf_cstr(&said), again->shown);
    stet_buf_release(&said);
}

static void include(toml_converter *c, const char *name, size_t len) {
    toml_file f;
    stet_buf text = STET_BUF(0);
    if (!read_named(c, name, len, &f, &text))
        return;
    size_t known = 0, open = 0;
    while (known < c->files.len && !same_file(&c->files.at[known], &f))
        known++;
    while (open < c->including.len && !same_file(&c->files.at[c->including.at[open]], &f))
        open++;
    bool fits = known == c->files.len && c->files.len < MAX_FILES && c->including.len < MAX_NESTED;
    if (open < c->including.len)
        say_circle(c, &f, open);
    else if (known == c->files.len && !fits)
        toml_problem(c, "put several of them into one", "more than %d files, or %d within each other", MAX_FILES,
                     MAX_NESTED);
    if (!fits) {
        stet_free(f.path);
        stet_free(f.shown);
        stet_buf_release(&text);
        return;
    }
    f.text = stet_buf_take(&text, &f.len);
    stet_error err = STET_ERROR_INIT;
    stet_status status = stet_toml_parse(f.text, f.len, &f.root, &err);
    if (status != STET_OK)
        f.root = stet_value_null();
    *stet_vec_add(&c->files) = f;
    c->in = c->files.len - 1;
    if (status != STET_OK) {
        toml_add_syntax(c, &err);
        return;
    }
    char *at = stet_strdup(stet_buf_cstr(&c->at));
    toml_leave(c, 0);
    check_members(c, f.root);
    take_file(c, c->in);
    stet_buf_str(&c->at, at);
    stet_free(at);
}

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static stet_status parse_params(const toml_file *f, const stet_buf *text, stet_value *out, stet_error *err) {
    const char *bytes = text->data ? text->data : "";
    if (ends_with(f->path, ".toml"))
        return stet_toml_parse(bytes, text->len, out, err);
    if (ends_with(f->path, ".json"))
        return stet_json_parse(bytes, text->len, out, err);
    if (ends_with(f->path, ".yaml") || ends_with(f->path, ".yml"))
        return stet_yaml_parse(bytes, text->len, out, err);
    stet_fail(err, STET_INVALID, "the ending tells how parameters are written");
    stet_hint(err, "name a file that ends in .yaml, .yml, .toml or .json");
    return STET_INVALID;
}

/* Adds the members of `v`, and says which file they are from. */
static void merge(toml_converter *c, stet_value *into, stet_value v, const toml_file *f, bool later_wins) {
    for (size_t i = 0; i < stet_value_count(v); i++) {
        size_t len;
        const char *key = stet_value_key_at(v, i, &len);
        if (!later_wins && stet_value_find(*into, key, len, NULL))
            toml_problem(c, "give one of them another name", "%.200s: there is a parameter \"%.100s\" already",
                         f->shown, key);
        else
            stet_value_put_n(into, key, len, stet_value_retain(stet_value_at(v, i)));
    }
}

static void take_data(toml_converter *c, const char *name, size_t len, bool env) {
    toml_file f;
    stet_buf text = STET_BUF(0);
    if (!read_named(c, name, len, &f, &text))
        return;
    stet_error err = STET_ERROR_INIT;
    stet_value v = stet_value_null();
    stet_status status =
        env ? stet_dotenv_parse(text.data ? text.data : "", text.len, &v, &err) : parse_params(&f, &text, &v, &err);
    bool empty = status == STET_OK && stet_value_type(v) == STET_TYPE_NULL;
    if (status != STET_OK)
        toml_problem(c, stet_has_hint(&err) ? err.hint : "correct the file", "%.200s: %s", f.shown, err.message);
    else if (!empty && stet_value_type(v) != STET_TYPE_OBJECT)
        toml_problem(c, "write names and values", "%.200s: parameters have names, and this is a list or a scalar",
                     f.shown);
    else
        merge(c, env ? &c->env : &c->params, v, &f, env);
    stet_value_release(v);
    stet_error_clear(&err);
    stet_buf_release(&text);
    *stet_vec_add(&c->data) = f;
}

static void take_params(toml_converter *c, const char *name, size_t len) {
    take_data(c, name, len, false);
}

static void take_env(toml_converter *c, const char *name, size_t len) {
    take_data(c, name, len, true);
}

/* S4. */
static void gather(toml_converter *c, const char *member, stet_value *into, bool later_wins) {
    stet_value v;
    if (!stet_value_find(c->files.at[c->in].root, member, strlen(member), &v))
        return;
    size_t mark = toml_enter(c, member, strlen(member));
    if (stet_value_type(v) != STET_TYPE_OBJECT)
        toml_problem(c, "write a table", "`%s` is a table", member);
    for (size_t i = 0; stet_value_type(v) == STET_TYPE_OBJECT && i < stet_value_count(v); i++) {
        size_t len;
        const char *key = stet_value_key_at(v, i, &len);
        size_t inner = toml_enter(c, key, len);
        if (!later_wins && stet_value_find(*into, key, len, NULL)) {
            toml_problem(c, "give one of them another name", "\"%.100s\" of `%s` stands in %.200s as well", key, member,
                         c->files.at[toml_file_of(c, member, key, len)].shown);
        } else {
            stet_value_put_n(into, key, len, stet_value_retain(stet_value_at(v, i)));
            if (c->in > 0 || c->files.len > 1) {
                char *name = stet_asprintf("%s/%s", member, key);
                stet_map_put(&c->where, name, strlen(name), (stet_slot){.n = c->in});
                stet_free(name);
            }
        }
        toml_leave(c, inner);
    }
    toml_leave(c, mark);
}

size_t toml_file_of(const toml_converter *c, const char *member, const char *key, size_t len) {
    char *name = stet_asprintf("%s/%.*s", member, (int)len, key);
    const stet_slot *slot = stet_map_get(&c->where, name, strlen(name));
    stet_free(name);
    return slot ? slot->n : 0;
}

bool toml_read_sources(toml_converter *c) {
    c->vars = stet_value_object();
    c->templates = stet_value_object();
    c->raw = stet_value_object();
    c->params = stet_value_object();
    c->env = stet_value_object();
    take_file(c, 0);
    if (stet_value_count(c->problems) > 0)
        return false;
    for (size_t i = 0; i < c->order.len; i++) {
        c->in = c->order.at[i];
        gather(c, "vars", &c->vars, true);
        gather(c, "templates", &c->templates, false);
        gather(c, "nodes", &c->raw, false);
        each_path(c, "params", take_params);
        each_path(c, "env-file", take_env);
    }
    c->in = 0;
    return stet_value_count(c->problems) == 0;
}

bool toml_is_source(const toml_converter *c, const char *path) {
    struct stat st;
    for (size_t i = 0; i < c->files.len + c->data.len; i++) {
        const toml_file *f = i < c->files.len ? &c->files.at[i] : &c->data.at[i - c->files.len];
        if (i > 0 && strcmp(stet_file_basename(f->path), stet_file_basename(path)) == 0 &&
            stet_sys_stat(path, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode)
            return true;
    }
    return false;
}

static void release_file(toml_file *f) {
    stet_free(f->shown);
    stet_free(f->path);
    stet_free(f->text);
    stet_value_release(f->root);
}

void toml_release_sources(toml_converter *c) {
    for (size_t i = 0; i < c->files.len; i++)
        release_file(&c->files.at[i]);
    for (size_t i = 0; i < c->data.len; i++)
        release_file(&c->data.at[i]);
    for (size_t i = 0; i < c->origin.len; i++)
        stet_free(c->origin.at[i].pointer);
    stet_vec_release(&c->files);
    stet_vec_release(&c->data);
    stet_vec_release(&c->order);
    stet_vec_release(&c->including);
    stet_vec_release(&c->origin);
    stet_vec_release(&c->filling);
    stet_map_release(&c->origins);
    stet_map_release(&c->where);
    stet_value_release(c->vars);
    stet_value_release(c->templates);
    stet_value_release(c->raw);
    stet_value_release(c->params);
    stet_value_release(c->env);
    stet_value_release(c->filled);
    stet_value_release(c->groups);
    stet_value_release(c->absent);
}
