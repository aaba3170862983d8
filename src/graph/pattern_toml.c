/* pattern_toml.c - converts a pattern written in TOML (stet.toml) to the JSON form. */

#include "graph/pattern_toml.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "base/toml.h"
#include "graph/pattern_each.h"
#include "graph/pattern_toml_internal.h"
#include "os/sys.h"

static stet_value string_of(const stet_value *v) {
    size_t len;
    const char *s = stet_value_as_string(v, &len);
    return stet_value_string_n(s, len);
}

stet_value toml_reference(const char *text, size_t len) {
    stet_value r = stet_value_object();
    stet_value_put(&r, "$", stet_value_string_n(text, len));
    return r;
}

/* A scalar of `inputs` or `result`: "$NAME/KEY" is a reference, "$$..." a text that begins with a dollar. */
static stet_value convert_text(stet_value v) {
    size_t len;
    const char *s = stet_value_as_string(&v, &len);
    if (len > 1 && s[0] == '$')
        return s[1] == '$' ? stet_value_string_n(s + 1, len - 1) : toml_reference(s + 1, len - 1);
    return stet_value_retain(v);
}

typedef struct frame {
    stet_value v, made;
    size_t next;
} frame;

/* The same value with texts converted, at any depth. */
static stet_value convert_value(stet_value v) {
    if (stet_value_type(v) == STET_TYPE_STRING)
        return convert_text(v);
    if (stet_value_type(v) != STET_TYPE_ARRAY && stet_value_type(v) != STET_TYPE_OBJECT)
        return stet_value_retain(v);
    STET_VEC(frame) stack = {0};
    stet_value done = stet_value_null();
    bool array = stet_value_type(v) == STET_TYPE_ARRAY;
    *stet_vec_add(&stack) = (frame){v, array ? stet_value_array() : stet_value_object(), 0};
    while (stack.len > 0) {
        frame *f = &stack.at[stack.len - 1];
        if (f->next == stet_value_count(f->v)) {
            done = f->made;
            stack.len--;
            if (stack.len > 0) {
                frame *up = &stack.at[stack.len - 1];
                size_t len;
                const char *key = stet_value_key_at(up->v, up->next - 1, &len);
                if (key)
                    stet_value_put_n(&up->made, key, len, done);
                else
                    stet_value_push(&up->made, done);
            }
            continue;
        }
        size_t i = f->next++, len;
        stet_value item = stet_value_at(f->v, i);
        stet_type t = stet_value_type(item);
        if (t == STET_TYPE_ARRAY || t == STET_TYPE_OBJECT) {
            *stet_vec_add(&stack) = (frame){item, t == STET_TYPE_ARRAY ? stet_value_array() : stet_value_object(), 0};
            continue;
        }
        stet_value made = t == STET_TYPE_STRING ? convert_text(item) : stet_value_retain(item);
        const char *key = stet_value_key_at(f->v, i, &len);
        if (key)
            stet_value_put_n(&f->made, key, len, made);
        else
            stet_value_push(&f->made, made);
    }
    stet_vec_release(&stack);
    return done;
}

/* Members of a TOML node that are copied to the module of a command, and those that are copied to the node. */
static const char *const command_members[] = {"depfile",       "env",     "cwd",        "stdout",  "stdin",
                                              "cache",         "timeout", "max-memory", "max-cpu", "max-file-size",
                                              "allow-outside", "scripts", "place",      "vars"};
static const char *const node_members[] = {"kind",           "onRestart",    "debounceMs", "throttleMs",
                                           "noDebounce",     "verifier",     "title",      "description",
                                           "argumentSchema", "resultSchema", "metadata"};
static const char *const other_members[] = {"command", "call",     "python", "javascript", "ref",
                                            "files",   "produces", "inputs", "after",      "each"};
/* Members that are gone when the nodes are converted: pattern_toml_expand.c. */
static const char *const expanded_members[] = {"use", "vars", "matrix", "foreach", "when", "name"};
/* Members that are copied to the module of a call. */
static const char *const call_members[] = {"args", "retries", "remote", "timeout"};
/* The same for a function of Python. */
static const char *const python_members[] = {"interpreter", "limits"};

/* Members of the file that are copied, and those that are converted. */
static const char *const root_members[] = {"name", "version", "title", "description", "cells", "metadata"};
static const char *const root_tables[] = {"nodes",     "argument", "result", "include", "python",
                                          "templates", "vars",     "params", "env-file"};

static bool listed(const char *const *list, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], key) == 0)
            return true;
    return false;
}
static void offer(stet_suggest *near, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        stet_suggest_offer(near, list[i]);
}
#define LISTED(list, key) listed(list, sizeof list / sizeof *list, key)
#define OFFER(near, list) offer(near, list, sizeof list / sizeof *list)
#define NAMED_MAX         256 /* maximum number of nodes in a default result, which is read whole at every start */

/* Checked before anything else about the node: a missing member may be present in another spelling. */
static void check_members(toml_converter *c, stet_value node) {
    for (size_t i = 0; i < stet_value_count(node); i++) {
        size_t len;
        const char *key = stet_value_key_at(node, i, &len);
        if (LISTED(node_members, key) || LISTED(command_members, key) || LISTED(other_members, key) ||
            LISTED(call_members, key) || LISTED(python_members, key))
            continue;
        stet_suggest near = stet_suggest_begin(key);
        OFFER(&near, other_members);
        OFFER(&near, command_members);
        OFFER(&near, node_members);
        OFFER(&near, expanded_members);
        char fix[160];
        if (near.best)
            snprintf(fix, sizeof fix, "did you mean `%s`?", near.best);
        else
            snprintf(fix, sizeof fix, "remove it; docs/pipelines.md lists the members of a node");
        size_t mark = toml_enter(c, key, len);
        toml_problem(c, fix, "a node has no member \"%.100s\"", key);
        toml_leave(c, mark);
    }
}

static stet_value convert_module(toml_converter *c, stet_value node, const char *id) {
    static const char *const kinds[] = {"command", "call", "python", "javascript", "ref"};
    stet_value module = stet_value_object(), v = stet_value_null();
    const char *kind = NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        stet_value found;
        if (!stet_value_find(node, kinds[i], strlen(kinds[i]), &found))
            continue;
        if (kind)
            toml_problem(c, "keep one of them", "node \"%s\" has both `%s` and `%s`", id, kind, kinds[i]);
        kind = kinds[i];
        v = found;
    }
    if (!kind) {
        toml_problem(c, "add `command = [\"PROGRAM\", \"ARGUMENT\"]`, or `call`, `python`, `javascript`, `ref`",
                     "node \"%s\" says not what it does", id);
        return module;
    }
    stet_value_put(&module, "type", stet_value_string(kind));
    size_t mark = toml_enter(c, kind, strlen(kind));
    stet_type t = stet_value_type(v);
    if (strcmp(kind, "command") == 0) {
        if (t == STET_TYPE_STRING)
            stet_value_put(&module, "shell", string_of(&v));
        else if (t == STET_TYPE_ARRAY)
            stet_value_put(&module, "argv", stet_value_retain(v));
        else
            toml_problem(c, "write a list of strings, or one string for the shell", "a command is a list or a string");
    } else if (t != STET_TYPE_STRING) {
        toml_problem(c, "write a string", "`%s` is a string", kind);
    } else if (strcmp(kind, "python") == 0) {
        size_t len;
        const char *s = stet_value_as_string(&v, &len), *colon = strrchr(s, ':');
        stet_value implementation = stet_value_object();
        if (!colon || colon == s || !colon[1])
            toml_problem(c, "write \"FILE.py:FUNCTION\"", "\"%.200s\" names no function of a file", s);
        else {
            stet_value_put(&implementation, "file", stet_value_string_n(s, (size_t)(colon - s)));
            stet_value_put(&implementation, "export", stet_value_string(colon + 1));
        }
        stet_value_put(&module, "implementation", implementation);
    } else {
        bool ref = strcmp(kind, "ref") == 0, call = strcmp(kind, "call") == 0;
        stet_value_put(&module, ref ? "ref" : call ? "function" : "implementation", string_of(&v));
    }
    toml_leave(c, mark);
    return module;
}

/* `each`: the name by which a command refers to its file, or NULL. */
static const char *convert_each(toml_converter *c, stet_value node, const char *id, stet_value *inputs,
                                stet_value *names) {
    stet_value v;
    if (!stet_value_find(node, "each", 4, &v))
        return NULL;
    bool command = stet_value_find(node, "command", 7, NULL), table = stet_value_type(v) == STET_TYPE_OBJECT;
    if (command && (!table || stet_value_count(v) == 1)) {
        toml_convert_files(c, "each", v, id, inputs, names);
        return table ? stet_value_key_at(v, 0, NULL) : "in";
    }
    size_t mark = toml_enter(c, "each", 4);
    if (command)
        toml_problem(c, "name one: { in = \"src/*.c\" }", "`each` has one name");
    else
        toml_problem(c, "remove it, or add a `command`", "`each` is for commands");
    toml_leave(c, mark);
    return NULL;
}

typedef struct waiting {
    toml_converter *c;
    const char *id;
} waiting;

/* "NODE/stdout" of a command that does not keep its standard output. */
static void check_value(toml_converter *c, const char *s, size_t len, size_t n) {
    stet_value node, v;
    if (len - n < 7 || strncmp(s + n, "/stdout", 7) != 0 || (len - n > 7 && s[n + 7] != '/') ||
        !stet_value_find(c->nodes, s, n, &node) || !stet_value_find(node, "command", 7, NULL) ||
        stet_value_find(node, "each", 4, NULL))
        return;
    if (!stet_value_find(node, "stdout", 6, &v) || stet_value_type(v) != STET_TYPE_STRING ||
        strcmp(stet_value_as_string(&v, NULL), "log") == 0)
        toml_problem(c, "say stdout = \"text\" or stdout = \"json\" there",
                     "the standard output of node \"%.*s\" is no value: it goes to the log", (int)n, s);
}

static bool waits_for_value(void *ctx, stet_value binding, stet_pathref place) {
    const waiting *w = ctx;
    stet_value text;
    size_t len;
    (void)place;
    if (stet_binding_is_ref(binding) && stet_value_find(binding, "$", 1, &text)) {
        const char *s = stet_value_as_string(&text, &len), *slash = s ? memchr(s, '/', len) : NULL;
        size_t n = slash ? (size_t)(slash - s) : len;
        if (s && stet_value_find(w->c->absent, s, n, NULL))
            toml_problem(w->c, "give this node the same `when`", "node \"%.*s\" is left out: its `when` is false",
                         (int)n, s);
        else if (s)
            check_value(w->c, s, len, n);
        if (s && w->id)
            toml_waits(w->c, w->id, s, n, NULL, NULL);
    }
    return true;
}

/* Adds the node to `list`, or the two nodes that one with `each` becomes. */
static void convert_node(toml_converter *c, const char *id, size_t id_len, stet_value node, stet_value *list) {
    stet_value made = stet_value_object(), inputs = stet_value_object(), names = stet_value_array(), v;
    stet_value id_value = stet_value_string_n(id, id_len);
    stet_value_put(&made, "id", stet_value_retain(id_value));
    check_members(c, node);
    stet_value module = convert_module(c, node, id);
    bool command = stet_value_find(node, "command", 7, NULL), call = stet_value_find(node, "call", 4, NULL),
         python = stet_value_find(node, "python", 6, NULL);
    for (size_t i = 0; i < stet_value_count(node); i++) {
        size_t len;
        const char *key = stet_value_key_at(node, i, &len);
        if (LISTED(node_members, key)) {
            stet_value_put_n(&made, key, len, stet_value_retain(stet_value_at(node, i)));
        } else if (call && LISTED(call_members, key)) {
            stet_value_put_n(&module, key, len, stet_value_retain(stet_value_at(node, i)));
        } else if (python && LISTED(python_members, key)) {
            stet_value_put_n(&module, key, len, stet_value_retain(stet_value_at(node, i)));
        } else if (LISTED(command_members, key) || LISTED(call_members, key) || LISTED(python_members, key)) {
            bool fits = command && LISTED(command_members, key);
            if (fits)
                stet_value_put_n(&module, key, len, stet_value_retain(stet_value_at(node, i)));
            size_t mark = toml_enter(c, key, len);
            if (!fits)
                toml_problem(c, "remove it", "`%s` is for %s", key,
                             LISTED(command_members, key) ? "commands"
                             : LISTED(call_members, key)  ? "calls"
                                                          : "functions of Python");
            toml_leave(c, mark);
        }
    }
    if (stet_value_find(node, "inputs", 6, &v)) {
        size_t mark = toml_enter(c, "inputs", 6);
        stet_value_release(inputs);
        if (stet_value_type(v) == STET_TYPE_OBJECT) {
            inputs = convert_value(v);
            stet_binding_walk(inputs, waits_for_value, &(waiting){c, id});
        } else {
            inputs = stet_value_object();
            toml_problem(c, "write a table: { NAME = VALUE }", "`inputs` is a table");
        }
        toml_leave(c, mark);
    }
    if (stet_value_find(node, "files", 5, &v))
        toml_convert_files(c, "files", v, id, &inputs, &names);
    const char *each = convert_each(c, node, id, &inputs, &names);
    if (stet_value_find(node, "after", 5, &v)) {
        size_t mark = toml_enter(c, "after", 5);
        stet_value before = stet_value_array();
        for (size_t i = 0; i < (stet_value_type(v) == STET_TYPE_ARRAY ? stet_value_count(v) : 0); i++) {
            stet_value item = stet_value_at(v, i);
            size_t len;
            const char *name = stet_value_as_string(&item, &len);
            if (name && stet_value_find(c->absent, name, len, NULL))
                continue;
            if (!name || !stet_value_find(c->nodes, name, len, NULL))
                toml_problem(c, "name nodes of this file", "`after` names \"%.100s\", which is not a node",
                             name ? name : "");
            else if (strcmp(name, id) == 0)
                toml_problem(c, "remove the name", "node \"%s\" cannot run after itself", id);
            else {
                stet_value_push(&before, toml_reference(name, len));
                toml_waits_after(c, id, name, len);
            }
        }
        if (stet_value_type(v) != STET_TYPE_ARRAY)
            toml_problem(c, "write a list of node names", "`after` is a list");
        stet_value_put(&inputs, "after", before);
        toml_leave(c, mark);
    }
    if (python && !stet_value_find(module, "interpreter", 11, NULL) &&
        stet_value_find(stet_value_get(c->root, "python"), "interpreter", 11, &v))
        stet_value_put(&module, "interpreter", stet_value_retain(v));
    if (command) {
        toml_convert_produces(c, id_value, &module);
        stet_value_put(&module, "files", names);
    } else if (python && stet_value_count(names) > 0) {
        stet_value_put(&module, "files", names);
    } else {
        stet_value_release(names);
    }
    stet_value_put(&made, "inputs", inputs);
    stet_value_put(&made, "module", module);
    stet_value_release(id_value);
    if (each)
        stet_pattern_each(made, each, list);
    else
        stet_value_push(list, made);
}

static void check_root(toml_converter *c) {
    for (size_t i = 0; i < stet_value_count(c->root); i++) {
        size_t len;
        const char *key = stet_value_key_at(c->root, i, &len);
        if (LISTED(root_members, key) || LISTED(root_tables, key))
            continue;
        stet_suggest near = stet_suggest_begin(key);
        OFFER(&near, root_tables);
        OFFER(&near, root_members);
        char fix[160];
        if (near.best)
            snprintf(fix, sizeof fix, "did you mean `%s`?", near.best);
        else
            snprintf(fix, sizeof fix, "remove it, or put it into [nodes.NAME], [argument] or [result]");
        size_t mark = toml_enter(c, key, len);
        toml_problem(c, fix, "there is no member \"%.100s\" here", key);
        toml_leave(c, mark);
    }
}

/* [python]: what holds for all functions of Python. */
static void check_python(toml_converter *c) {
    stet_value table;
    if (!stet_value_find(c->root, "python", 6, &table))
        return;
    size_t mark = toml_enter(c, "python", 6);
    if (stet_value_type(table) != STET_TYPE_OBJECT)
        toml_problem(c, "write [python] and interpreter = \"/usr/bin/python3\" below", "`python` is a table here");
    for (size_t i = 0; i < (stet_value_type(table) == STET_TYPE_OBJECT ? stet_value_count(table) : 0); i++)
        if (strcmp(stet_value_key_at(table, i, NULL), "interpreter") != 0)
            toml_problem(c, "remove it: its only member is `interpreter`", "[python] has no member \"%.100s\"",
                         stet_value_key_at(table, i, NULL));
    toml_leave(c, mark);
}

static stet_value convert_root(toml_converter *c) {
    stet_value made = stet_value_object(), v, list = stet_value_array();
    stet_value_put(&made, "pattern", stet_value_int(STET_PATTERN_FORMAT));
    stet_value_put(&made, "name", stet_value_string("pipeline"));
    for (size_t i = 0; i < stet_value_count(c->root); i++) {
        size_t len;
        const char *key = stet_value_key_at(c->root, i, &len);
        if (LISTED(root_members, key))
            stet_value_put_n(&made, key, len, stet_value_retain(stet_value_at(c->root, i)));
    }
    if (stet_value_find(c->root, "argument", 8, &v)) {
        stet_value argument = stet_value_object();
        stet_value_put(&argument, "default", stet_value_retain(v));
        stet_value_put(&made, "argument", argument);
    }
    for (size_t i = 0; i < stet_value_count(c->nodes); i++) {
        size_t len;
        const char *id = stet_value_key_at(c->nodes, i, &len);
        stet_value node = stet_value_at(c->nodes, i);
        toml_enter(c, "nodes", 5);
        toml_enter(c, id, len);
        if (stet_value_type(node) == STET_TYPE_OBJECT)
            convert_node(c, id, len, node, &list);
        else
            toml_problem(c, "write [nodes.NAME] and its members below", "a node is a table");
        toml_leave(c, 0);
    }
    toml_look_beside(c, &list);
    stet_value_put(&made, "nodes", list);
    if (stet_value_find(c->root, "result", 6, &v)) {
        stet_value result = convert_value(v);
        toml_enter(c, "result", 6);
        stet_binding_walk(result, waits_for_value, &(waiting){c, NULL});
        toml_leave(c, 0);
        stet_value_put(&made, "result", result);
    } else if (stet_value_count(c->nodes) > NAMED_MAX) {
        stet_value_put(&made, "wanted", stet_value_string("all"));
    } else { /* everything is wanted */
        stet_value result = stet_value_object();
        for (size_t i = 0; i < stet_value_count(c->nodes); i++) {
            size_t len;
            const char *id = stet_value_key_at(c->nodes, i, &len);
            stet_value_put_n(&result, id, len, toml_reference(id, len));
        }
        stet_value_put(&made, "result", result);
    }
    return made;
}

static void release(toml_converter *c) {
    toml_release_files(c);
    toml_release_circles(c);
    toml_release_sources(c);
    stet_value_release(c->root);
    stet_value_release(c->nodes);
    stet_buf_release(&c->at);
}

bool stet_pattern_is_toml(const char *file) {
    size_t len = strlen(file);
    return len > 5 && strcmp(file + len - 5, ".toml") == 0;
}

/* The pattern file becomes the first of the files. */
static stet_status read_first(toml_converter *c, stet_error *err) {
    struct stat st;
    const char *path = c->checks && c->checks->path ? c->checks->path : c->file;
    toml_file first = {.shown = stet_strdup(c->file), .path = stet_strdup(path), .len = c->len};
    first.text = stet_alloc(c->len + 1);
    memcpy(first.text, c->text, c->len);
    first.text[c->len] = 0;
    if (c->checks && c->checks->other && stet_sys_stat(path, &st) == 0) {
        first.device = st.st_dev;
        first.inode = st.st_ino;
    }
    stet_status status = stet_toml_parse(first.text, first.len, &first.root, err);
    if (status != STET_OK)
        first.root = stet_value_null();
    *stet_vec_add(&c->files) = first;
    c->root = stet_value_retain(first.root);
    return status;
}

static stet_status convert(toml_converter *c, stet_value *json, stet_value *problems, stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    c->problems = stet_value_array();
    c->at = (stet_buf)STET_BUF(STET_PATH_MAX_BYTES);
    c->expanding = true;
    if (read_first(c, &inner) != STET_OK) {
        toml_add_syntax(c, &inner);
        return toml_say(c, problems, err);
    }
    check_root(c);
    check_python(c);
    if (!toml_read_sources(c))
        return toml_say(c, problems, err);
    bool some = false;
    for (size_t i = 0; i < c->files.len; i++)
        some |= stet_value_find(c->files.at[i].root, "nodes", 5, NULL);
    if (!some)
        toml_problem(c, "add [nodes.NAME] with a `command`", "%s", "there are no nodes in it");
    toml_expand(c);
    if (stet_value_count(c->problems) > 0)
        return toml_say(c, problems, err);
    for (size_t i = 0; i < stet_value_count(c->nodes); i++) {
        size_t len;
        const char *id = stet_value_key_at(c->nodes, i, &len);
        stet_map_put(&c->numbers, id, len, (stet_slot){.n = i});
    }
    toml_collect_produced(c);
    stet_value made = convert_root(c);
    toml_check_circles(c);
    if (stet_value_count(c->problems) > 0) {
        stet_value_release(made);
        return toml_say(c, problems, err);
    }
    *json = made;
    return STET_OK;
}

stet_status stet_pattern_toml_convert(const char *file, const char *text, size_t len, const stet_pattern_checks *checks,
                                      stet_value *json, stet_value *problems, stet_error *err) {
    toml_converter c = {.file = file, .text = text, .len = len, .checks = checks};
    stet_status status = convert(&c, json, problems, err);
    if (status == STET_OK) {
        if (problems)
            *problems = c.problems;
        else
            stet_value_release(c.problems);
    }
    release(&c);
    return status;
}

stet_status stet_pattern_toml_parse(const char *file, const char *text, size_t len, const stet_pattern_checks *checks,
                                    stet_pattern **out, stet_value *problems, stet_error *err) {
    toml_converter c = {
        .file = file, .text = text, .len = len, .checks = checks, .project = checks ? checks->root : NULL};
    stet_value json, found = stet_value_null();
    stet_error inner = STET_ERROR_INIT;
    stet_status status = convert(&c, &json, problems, err);
    if (status != STET_OK) {
        release(&c);
        return status;
    }
    status = stet_pattern_of_value(file, stet_value_retain(json), checks, out, &found, &inner);
    if (status == STET_INVALID && stet_value_count(found) > 0) {
        for (size_t i = 0; i < stet_value_count(found); i++) {
            stet_value p = stet_value_at(found, i), pointer = stet_value_get(p, "pointer"),
                       m = stet_value_get(p, "message"), fix = stet_value_get(p, "fix");
            stet_buf place = STET_BUF(0);
            toml_place(&c, json, stet_value_as_string(&pointer, NULL), &place);
            toml_add_problem(&c, stet_buf_cstr(&place), stet_value_as_string(&m, NULL),
                             stet_value_as_string(&fix, NULL));
            stet_buf_release(&place);
        }
        status = toml_say(&c, problems, err);
        stet_error_clear(&inner);
    } else {
        if (problems)
            *problems = c.problems;
        else
            stet_value_release(c.problems);
        stet_error_move(err, &inner);
    }
    stet_value_release(found);
    stet_value_release(json);
    release(&c);
    return status;
}
