#include "graph/pattern_toml.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/toml.h"
#include "base/vec.h"
#include "files/glob.h"
#include "files/path.h"

/* One file that a node writes. */
typedef struct produced {
    stet_value node; /* its id, a string */
    stet_value name;
    char *path;
} produced;

typedef struct converter {
    const char *file, *text;
    size_t len;
    stet_value root, nodes; /* as read */
    stet_value problems;
    stet_map paths;  /* path -> index in outs */
    stet_map names;  /* "NODE/NAME" -> index in outs */
    stet_map firsts; /* node -> index of its first in outs; those of a node follow each other */
    STET_VEC(produced) outs;
    stet_buf at; /* JSON Pointer into the TOML */
} converter;

/* ---- Problems ------------------------------------------------------------------------------------------------- */

static void add_problem(converter *c, const char *pointer, const char *message, const char *fix) {
    if (stet_count(c->problems) >= STET_PATTERN_MAX_PROBLEMS)
        return;
    size_t line, column;
    stet_value p = stet_object(), v;
    stet_put(&p, "file", stet_string(c->file));
    /* What is said of something that is not there is said of the nearest thing that is. */
    char *place = stet_strdup(pointer);
    for (;;) {
        if (*place && stet_toml_locate(c->text, c->len, place, &line, &column)) {
            stet_put(&p, "line", stet_int((int64_t)line));
            stet_put(&p, "column", stet_int((int64_t)column));
            break;
        }
        char *slash = strrchr(place, '/');
        if (!slash)
            break;
        *slash = 0;
    }
    stet_free(place);
    stet_put(&p, "pointer", stet_string(pointer));
    stet_put(&p, "message",
             stet_string_checked(message, strlen(message), &v, NULL) == STET_OK
                 ? v
                 : stet_string("(a message that is not UTF-8)"));
    stet_put(&p, "fix", stet_string(fix));
    stet_push(&c->problems, p);
}

static void problem(converter *c, const char *fix, const char *format, ...) STET_PRINTF(3, 4);
static void problem(converter *c, const char *fix, const char *format, ...) {
    char message[900];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    add_problem(c, stet_buf_cstr(&c->at), message, fix);
}

static size_t enter(converter *c, const char *key, size_t len) {
    size_t mark = c->at.len;
    stet_buf_char(&c->at, '/');
    for (size_t i = 0; i < len; i++) {
        if (key[i] == '~' || key[i] == '/')
            stet_buf_str(&c->at, key[i] == '~' ? "~0" : "~1");
        else
            stet_buf_char(&c->at, key[i]);
    }
    return mark;
}

static void leave(converter *c, size_t mark) {
    c->at.len = mark;
    if (c->at.data)
        c->at.data[mark] = 0;
}

static stet_value string_of(const stet_value *v) {
    size_t len;
    const char *s = stet_as_string(v, &len);
    return stet_string_n(s, len);
}

/* ---- Values with references --------------------------------------------------------------------------------- */

static stet_value reference(const char *text, size_t len) {
    stet_value r = stet_object();
    stet_put(&r, "$", stet_string_n(text, len));
    return r;
}

/* A scalar of `inputs`, `result`: "$NAME/KEY" is a reference, "$$..." a text that begins with a dollar. */
static stet_value convert_text(stet_value v) {
    size_t len;
    const char *s = stet_as_string(&v, &len);
    if (len > 1 && s[0] == '$')
        return s[1] == '$' ? stet_string_n(s + 1, len - 1) : reference(s + 1, len - 1);
    return stet_retain(v);
}

typedef struct frame {
    stet_value v, made;
    size_t next;
} frame;

/* The same value with texts converted, at any depth. */
static stet_value convert_value(stet_value v) {
    if (stet_typeof(v) == STET_STRING)
        return convert_text(v);
    if (stet_typeof(v) != STET_ARRAY && stet_typeof(v) != STET_OBJECT)
        return stet_retain(v);
    STET_VEC(frame) stack = {0};
    stet_value done = stet_null();
    bool array = stet_typeof(v) == STET_ARRAY;
    *stet_vec_add(&stack) = (frame){v, array ? stet_array() : stet_object(), 0};
    while (stack.len > 0) {
        frame *f = &stack.at[stack.len - 1];
        if (f->next == stet_count(f->v)) {
            done = f->made;
            stack.len--;
            if (stack.len > 0) {
                frame *up = &stack.at[stack.len - 1];
                size_t len;
                const char *key = stet_key_at(up->v, up->next - 1, &len);
                if (key)
                    stet_put_n(&up->made, key, len, done);
                else
                    stet_push(&up->made, done);
            }
            continue;
        }
        size_t i = f->next++, len;
        stet_value item = stet_at(f->v, i);
        stet_type t = stet_typeof(item);
        if (t == STET_ARRAY || t == STET_OBJECT) {
            *stet_vec_add(&stack) = (frame){item, t == STET_ARRAY ? stet_array() : stet_object(), 0};
            continue;
        }
        stet_value made = t == STET_STRING ? convert_text(item) : stet_retain(item);
        const char *key = stet_key_at(f->v, i, &len);
        if (key)
            stet_put_n(&f->made, key, len, made);
        else
            stet_push(&f->made, made);
    }
    stet_vec_release(&stack);
    return done;
}

/* ---- Files ---------------------------------------------------------------------------------------------------- */

static stet_value link_to(const char *prefix, const char *path) {
    stet_buf id = STET_BUF(0);
    stet_buf_str(&id, prefix);
    stet_path_escape(path, &id);
    stet_value link = stet_object(), sigil = stet_object(), r = stet_object();
    stet_put(&link, "id", stet_string_n(id.data, id.len));
    stet_put(&sigil, "link@1", link);
    stet_put(&r, "/", sigil);
    stet_buf_release(&id);
    return r;
}

/* {"$": "NODE/files/NAME"} */
static stet_value file_of_node(const stet_value *node, const stet_value *name) {
    stet_buf b = STET_BUF(0);
    size_t len;
    stet_buf_str(&b, stet_as_string(node, NULL));
    stet_buf_str(&b, "/files/");
    const char *s = stet_as_string(name, &len);
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '~' || s[i] == '/')
            stet_buf_str(&b, s[i] == '~' ? "~0" : "~1");
        else
            stet_buf_char(&b, s[i]);
    }
    stet_value r = reference(b.data, b.len);
    stet_buf_release(&b);
    return r;
}

/* A path as it stands in the file, relative to the project. Caller frees; NULL after a problem. */
static char *normal(converter *c, const char *text) {
    char *path;
    stet_error err = STET_ERROR_INIT;
    if (stet_path_normal(NULL, "", text, &path, &err) == STET_OK)
        return path;
    problem(c, "write a path of a file, relative to the project", "%s", err.message);
    stet_error_clear(&err);
    return NULL;
}

static void name_key(stet_buf *key, const char *node, size_t node_len, const char *name, size_t len) {
    stet_buf_add(key, node, node_len);
    stet_buf_char(key, '/'); /* in no name of a node */
    stet_buf_add(key, name, len);
}

static stet_slot *find_name(converter *c, const char *node, size_t node_len, const char *name, size_t len) {
    stet_buf key = STET_BUF(0);
    name_key(&key, node, node_len, name, len);
    stet_slot *slot = stet_map_get(&c->names, key.data, key.len);
    stet_buf_release(&key);
    return slot;
}

/* "$NODE.NAME": the longest node name that fits. Null after a problem. */
static stet_value node_file(converter *c, const char *text, size_t len) {
    for (size_t dot = len; dot-- > 1;) {
        stet_value node;
        if (text[dot] != '.' || !stet_find(c->nodes, text, dot, &node))
            continue;
        const char *name = text + dot + 1;
        stet_slot *slot = find_name(c, text, dot, name, len - dot - 1);
        if (slot)
            return file_of_node(&c->outs.at[slot->n].node, &c->outs.at[slot->n].name);
        problem(c, "name one of its `produces`", "node \"%.*s\" produces no file \"%.*s\"", (int)dot, text,
                (int)(len - dot - 1), name);
        return stet_null();
    }
    problem(c, "write \"$NODE.FILE\", with a node of this file and a name of its `produces`", "\"$%.*s\" names no node",
            (int)(len < 200 ? len : 200), text);
    return stet_null();
}

/* One entry of `files`: its binding(s), pushed to `list`. */
static void file_binding(converter *c, stet_value v, const char *id, stet_value *list) {
    size_t len;
    if (stet_typeof(v) != STET_STRING) {
        problem(c, "write a path, a pattern of paths, or \"$NODE.FILE\"", "a file is given by a string");
        return;
    }
    const char *s = stet_as_string(&v, &len);
    if (len > 1 && s[0] == '$') {
        stet_value r = node_file(c, s + 1, len - 1);
        if (stet_typeof(r) != STET_NULL)
            stet_push(list, r);
        return;
    }
    if (strlen(s) != len) {
        problem(c, "remove it", "a NUL character in a path");
        return;
    }
    if (!stet_glob_is(s)) {
        char *path = normal(c, s);
        if (!path)
            return;
        stet_slot *slot = stet_map_get(&c->paths, path, strlen(path));
        if (slot)
            stet_push(list, file_of_node(&c->outs.at[slot->n].node, &c->outs.at[slot->n].name));
        else
            stet_push(list, link_to(STET_FILE_PREFIX, path));
        stet_free(path);
        return;
    }
    stet_error err = STET_ERROR_INIT;
    while (s[0] == '.' && s[1] == '/')
        s += 2;
    if (stet_glob_check(s, &err) != STET_OK) {
        problem(c, "write a pattern such as \"src/*.c\" or \"data/**/*.csv\"", "%s", err.message);
        stet_error_clear(&err);
        return;
    }
    stet_push(list, link_to(STET_GLOB_PREFIX, s));
    for (size_t i = 0; i < c->outs.len; i++)
        if (stet_glob_match(s, c->outs.at[i].path) && strcmp(stet_as_string(&c->outs.at[i].node, NULL), id) != 0)
            stet_push(list, file_of_node(&c->outs.at[i].node, &c->outs.at[i].name));
}

/* `files` as {NAME: ...}; a string or a list alone is named "in". */
static void convert_files(converter *c, stet_value files, const char *id, stet_value *inputs, stet_value *names) {
    bool table = stet_typeof(files) == STET_OBJECT;
    size_t mark = enter(c, "files", 5);
    for (size_t i = 0; i < (table ? stet_count(files) : 1); i++) {
        size_t len = 2;
        const char *key = table ? stet_key_at(files, i, &len) : "in";
        stet_value v = table ? stet_at(files, i) : files, list = stet_array();
        size_t inner = table ? enter(c, key, len) : c->at.len;
        if (!stet_name_valid(key, len))
            problem(c, "use letters, digits, \"_\", \"-\" and \".\"", "\"%.100s\" is no name for a file", key);
        if (stet_typeof(v) == STET_ARRAY)
            for (size_t k = 0; k < stet_count(v); k++)
                file_binding(c, stet_at(v, k), id, &list);
        else
            file_binding(c, v, id, &list);
        bool many = stet_typeof(v) == STET_ARRAY || stet_count(list) != 1;
        stet_put_n(inputs, key, len, many ? stet_retain(list) : stet_retain(stet_at(list, 0)));
        stet_push(names, stet_string_n(key, len));
        stet_release(list);
        leave(c, inner);
    }
    leave(c, mark);
}

/* First pass: who writes what. */
static void collect_produced(converter *c) {
    for (size_t i = 0; i < stet_count(c->nodes); i++) {
        size_t len;
        const char *id = stet_key_at(c->nodes, i, &len);
        stet_value produces, node = stet_at(c->nodes, i);
        if (stet_typeof(node) != STET_OBJECT || !stet_find(node, "produces", 8, &produces))
            continue;
        bool table = stet_typeof(produces) == STET_OBJECT, array = stet_typeof(produces) == STET_ARRAY;
        leave(c, 0);
        enter(c, "nodes", 5);
        enter(c, id, len);
        enter(c, "produces", 8);
        for (size_t k = 0; k < (table || array ? stet_count(produces) : 1); k++) {
            size_t name_len = 3;
            char number[24];
            snprintf(number, sizeof number, "%zu", k);
            const char *name = table ? stet_key_at(produces, k, &name_len) : array ? number : "out";
            if (array)
                name_len = strlen(number);
            stet_value v = table || array ? stet_at(produces, k) : produces;
            size_t mark = table ? enter(c, name, name_len) : c->at.len;
            size_t path_len;
            const char *text = stet_typeof(v) == STET_STRING ? stet_as_string(&v, &path_len) : NULL;
            if (!stet_name_valid(name, name_len))
                problem(c, "use letters, digits, \"_\", \"-\" and \".\"", "\"%.100s\" is no name for a file", name);
            else if (!text || strlen(text) != path_len)
                problem(c, "write a path", "a file that is produced is given by a string");
            else if (stet_glob_is(text))
                problem(c, "name each file, or produce a directory",
                        "\"%.200s\": what a node produces is named, not searched for", text);
            else {
                char *path = normal(c, text);
                stet_slot *other = path ? stet_map_get(&c->paths, path, strlen(path)) : NULL;
                if (other) {
                    problem(c, "let one of them write another file", "\"%.200s\" is produced by node \"%s\" as well",
                            text, stet_as_string(&c->outs.at[other->n].node, NULL));
                    stet_free(path);
                } else if (path) {
                    stet_buf key = STET_BUF(0);
                    name_key(&key, id, len, name, name_len);
                    stet_map_put(&c->names, key.data, key.len, (stet_slot){.n = c->outs.len});
                    stet_buf_release(&key);
                    if (!stet_map_get(&c->firsts, id, len))
                        stet_map_put(&c->firsts, id, len, (stet_slot){.n = c->outs.len});
                    stet_map_put(&c->paths, path, strlen(path), (stet_slot){.n = c->outs.len});
                    *stet_vec_add(&c->outs) = (produced){stet_string_n(id, len), stet_string_n(name, name_len), path};
                }
            }
            leave(c, mark);
        }
    }
    leave(c, 0);
}

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

/* Members of a TOML node that go to the module of a command as they are, and those that go to the node. */
static const char *const command_members[] = {"depfile", "env",           "cwd",          "stdout",
                                              "stdin",   "cache",         "timeout",      "max-memory",
                                              "max-cpu", "max-file-size", "allow-outside"};
static const char *const node_members[] = {"kind",           "onRestart",    "debounceMs", "throttleMs",
                                           "noDebounce",     "verifier",     "title",      "description",
                                           "argumentSchema", "resultSchema", "metadata"};
static const char *const other_members[] = {"command", "python",   "javascript", "ref",
                                            "files",   "produces", "inputs",     "after"};

static bool listed(const char *const *list, size_t n, const char *key) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], key) == 0)
            return true;
    return false;
}
#define LISTED(list, key) listed(list, sizeof list / sizeof *list, key)
#define NAMED_MAX         256 /* nodes that the result names where nothing is said: it is read whole at every start */

static void convert_produces(converter *c, stet_value id, stet_value *module) {
    stet_value made = stet_object();
    size_t id_len;
    const char *id_text = stet_as_string(&id, &id_len);
    stet_slot *first = stet_map_get(&c->firsts, id_text, id_len);
    for (size_t i = first ? first->n : c->outs.len; i < c->outs.len && stet_equal(c->outs.at[i].node, id); i++) {
        size_t len;
        const char *name = stet_as_string(&c->outs.at[i].name, &len);
        stet_put_n(&made, name, len, stet_string(c->outs.at[i].path));
    }
    stet_put(module, "produces", made);
}

static stet_value convert_module(converter *c, stet_value node, const char *id) {
    static const char *const kinds[] = {"command", "python", "javascript", "ref"};
    stet_value module = stet_object(), v = stet_null();
    const char *kind = NULL;
    for (size_t i = 0; i < 4; i++) {
        stet_value found;
        if (!stet_find(node, kinds[i], strlen(kinds[i]), &found))
            continue;
        if (kind)
            problem(c, "keep one of them", "node \"%s\" has both `%s` and `%s`", id, kind, kinds[i]);
        kind = kinds[i];
        v = found;
    }
    if (!kind) {
        problem(c, "add `command = [\"PROGRAM\", \"ARGUMENT\"]`, or `python`, `javascript`, `ref`",
                "node \"%s\" says not what it does", id);
        return module;
    }
    stet_put(&module, "type", stet_string(kind));
    size_t mark = enter(c, kind, strlen(kind));
    stet_type t = stet_typeof(v);
    if (strcmp(kind, "command") == 0) {
        if (t == STET_STRING)
            stet_put(&module, "shell", string_of(&v));
        else if (t == STET_ARRAY)
            stet_put(&module, "argv", stet_retain(v));
        else
            problem(c, "write a list of strings, or one string for the shell", "a command is a list or a string");
    } else if (t != STET_STRING) {
        problem(c, "write a string", "`%s` is a string", kind);
    } else if (strcmp(kind, "python") == 0) {
        size_t len;
        const char *s = stet_as_string(&v, &len), *colon = strrchr(s, ':');
        stet_value implementation = stet_object();
        if (!colon || colon == s || !colon[1])
            problem(c, "write \"FILE.py:FUNCTION\"", "\"%.200s\" names no function of a file", s);
        else {
            stet_put(&implementation, "file", stet_string_n(s, (size_t)(colon - s)));
            stet_put(&implementation, "export", stet_string(colon + 1));
        }
        stet_put(&module, "implementation", implementation);
    } else {
        stet_put(&module, strcmp(kind, "ref") == 0 ? "ref" : "implementation", string_of(&v));
    }
    leave(c, mark);
    return module;
}

static stet_value convert_node(converter *c, const char *id, size_t id_len, stet_value node) {
    stet_value made = stet_object(), inputs = stet_object(), names = stet_array(), v;
    stet_value id_value = stet_string_n(id, id_len);
    stet_put(&made, "id", stet_retain(id_value));
    stet_value module = convert_module(c, node, id);
    bool command = stet_find(node, "command", 7, NULL);
    for (size_t i = 0; i < stet_count(node); i++) {
        size_t len;
        const char *key = stet_key_at(node, i, &len);
        if (LISTED(node_members, key)) {
            stet_put_n(&made, key, len, stet_retain(stet_at(node, i)));
        } else if (LISTED(command_members, key)) {
            if (command)
                stet_put_n(&module, key, len, stet_retain(stet_at(node, i)));
            size_t mark = enter(c, key, len);
            if (!command)
                problem(c, "remove it", "`%s` is for commands", key);
            leave(c, mark);
        } else if (!LISTED(other_members, key)) {
            size_t mark = enter(c, key, len);
            problem(c, "remove it; docs/pipelines.md lists the members of a node", "a node has no member \"%.100s\"",
                    key);
            leave(c, mark);
        }
    }
    if (stet_find(node, "inputs", 6, &v)) {
        size_t mark = enter(c, "inputs", 6);
        stet_release(inputs);
        if (stet_typeof(v) == STET_OBJECT)
            inputs = convert_value(v);
        else {
            inputs = stet_object();
            problem(c, "write a table: { NAME = VALUE }", "`inputs` is a table");
        }
        leave(c, mark);
    }
    if (stet_find(node, "files", 5, &v))
        convert_files(c, v, id, &inputs, &names);
    if (stet_find(node, "after", 5, &v)) {
        size_t mark = enter(c, "after", 5);
        stet_value list = stet_array();
        for (size_t i = 0; i < (stet_typeof(v) == STET_ARRAY ? stet_count(v) : 0); i++) {
            stet_value item = stet_at(v, i);
            size_t len;
            const char *name = stet_as_string(&item, &len);
            if (!name || !stet_find(c->nodes, name, len, NULL))
                problem(c, "name nodes of this file", "`after` names what is no node");
            else
                stet_push(&list, reference(name, len));
        }
        if (stet_typeof(v) != STET_ARRAY)
            problem(c, "write a list of node names", "`after` is a list");
        stet_put(&inputs, "after", list);
        leave(c, mark);
    }
    if (command) {
        convert_produces(c, id_value, &module);
        stet_put(&module, "files", names);
    } else {
        stet_release(names);
    }
    stet_put(&made, "inputs", inputs);
    stet_put(&made, "module", module);
    stet_release(id_value);
    return made;
}

static stet_value convert_root(converter *c) {
    static const char *const known[] = {"name",  "version", "title",  "description", "argument",
                                        "cells", "nodes",   "result", "metadata"};
    stet_value made = stet_object(), v, list = stet_array();
    stet_put(&made, "pattern", stet_int(STET_PATTERN_FORMAT));
    stet_put(&made, "name", stet_string("pipeline"));
    for (size_t i = 0; i < stet_count(c->root); i++) {
        size_t len;
        const char *key = stet_key_at(c->root, i, &len);
        if (!LISTED(known, key)) {
            size_t mark = enter(c, key, len);
            problem(c, "remove it, or put it into [nodes.NAME], [argument] or [result]",
                    "there is no member \"%.100s\" here", key);
            leave(c, mark);
        } else if (strcmp(key, "nodes") != 0 && strcmp(key, "argument") != 0 && strcmp(key, "result") != 0) {
            stet_put_n(&made, key, len, stet_retain(stet_at(c->root, i)));
        }
    }
    if (stet_find(c->root, "argument", 8, &v)) {
        stet_value argument = stet_object();
        stet_put(&argument, "default", stet_retain(v));
        stet_put(&made, "argument", argument);
    }
    for (size_t i = 0; i < stet_count(c->nodes); i++) {
        size_t len;
        const char *id = stet_key_at(c->nodes, i, &len);
        stet_value node = stet_at(c->nodes, i);
        enter(c, "nodes", 5);
        enter(c, id, len);
        if (stet_typeof(node) == STET_OBJECT)
            stet_push(&list, convert_node(c, id, len, node));
        else
            problem(c, "write [nodes.NAME] and its members below", "a node is a table");
        leave(c, 0);
    }
    stet_put(&made, "nodes", list);
    if (stet_find(c->root, "result", 6, &v)) {
        stet_put(&made, "result", convert_value(v));
    } else if (stet_count(c->nodes) > NAMED_MAX) {
        stet_put(&made, "wanted", stet_string("all"));
    } else { /* everything is wanted */
        stet_value result = stet_object();
        for (size_t i = 0; i < stet_count(c->nodes); i++) {
            size_t len;
            const char *id = stet_key_at(c->nodes, i, &len);
            stet_put_n(&result, id, len, reference(id, len));
        }
        stet_put(&made, "result", result);
    }
    return made;
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

static void release(converter *c) {
    for (size_t i = 0; i < c->outs.len; i++) {
        stet_release(c->outs.at[i].node);
        stet_release(c->outs.at[i].name);
        stet_free(c->outs.at[i].path);
    }
    stet_vec_release(&c->outs);
    stet_map_release(&c->paths);
    stet_map_release(&c->names);
    stet_map_release(&c->firsts);
    stet_release(c->root);
    stet_buf_release(&c->at);
}

/* Hands the problems over and makes an error of the first. */
static stet_status say(converter *c, stet_value *problems, stet_error *err) {
    stet_value first = stet_at(c->problems, 0), message = stet_get(first, "message"), fix = stet_get(first, "fix");
    stet_value line = stet_get(first, "line");
    if (stet_typeof(line) == STET_INT)
        stet_fail(err, STET_INVALID, "%s, line %lld: %s", c->file, (long long)stet_as_int(line),
                  stet_as_string(&message, NULL));
    else
        stet_fail(err, STET_INVALID, "%s: %s", c->file, stet_as_string(&message, NULL));
    stet_hint(err, "%s", stet_as_string(&fix, NULL));
    if (problems)
        *problems = c->problems;
    else
        stet_release(c->problems);
    return STET_INVALID;
}

bool stet_pattern_is_toml(const char *file) {
    size_t len = strlen(file);
    return len > 5 && strcmp(file + len - 5, ".toml") == 0;
}

static stet_status convert(converter *c, stet_value *json, stet_value *problems, stet_error *err) {
    stet_error inner = STET_ERROR_INIT;
    c->problems = stet_array();
    c->at = (stet_buf)STET_BUF(STET_PATH_MAX_BYTES);
    if (stet_toml_parse(c->text, c->len, &c->root, &inner) != STET_OK) {
        c->root = stet_null();
        stet_value p = stet_object(), details = inner.details;
        stet_put(&p, "file", stet_string(c->file));
        unsigned line, column;
        if (sscanf(inner.message, "line %u, column %u", &line, &column) == 2) {
            stet_put(&p, "line", stet_int(line));
            stet_put(&p, "column", stet_int(column));
        }
        (void)details;
        stet_put(&p, "pointer", stet_string(""));
        stet_put(&p, "message", stet_string(inner.message));
        stet_put(&p, "fix", stet_string(inner.hint[0] ? inner.hint : "write TOML 1.0"));
        stet_push(&c->problems, p);
        stet_error_clear(&inner);
        return say(c, problems, err);
    }
    c->nodes = stet_get(c->root, "nodes");
    if (stet_typeof(c->nodes) != STET_OBJECT)
        problem(c, "add [nodes.NAME] with a `command`", "%s", "there are no nodes in it");
    collect_produced(c);
    stet_value made = convert_root(c);
    if (stet_count(c->problems) > 0) {
        stet_release(made);
        return say(c, problems, err);
    }
    *json = made;
    return STET_OK;
}

stet_status stet_pattern_toml_convert(const char *file, const char *text, size_t len, stet_value *json,
                                      stet_value *problems, stet_error *err) {
    converter c = {.file = file, .text = text, .len = len};
    stet_status status = convert(&c, json, problems, err);
    if (status == STET_OK) {
        if (problems)
            *problems = c.problems;
        else
            stet_release(c.problems);
    }
    release(&c);
    return status;
}

/* Where in the TOML that is which the JSON form has at `pointer`. */
static void toml_pointer(converter *c, stet_value json, const char *pointer, stet_buf *out) {
    unsigned index;
    int end = 0;
    if (sscanf(pointer, "/nodes/%u%n", &index, &end) != 1 || end == 0) {
        stet_buf_str(out, strncmp(pointer, "/argument/default", 17) == 0 ? "/argument" : pointer);
        return;
    }
    stet_value id = stet_get(stet_at(stet_get(json, "nodes"), index), "id");
    size_t mark = c->at.len;
    enter(c, "nodes", 5);
    enter(c, stet_as_string(&id, NULL) ? stet_as_string(&id, NULL) : "", strlen(stet_as_string(&id, NULL)));
    stet_buf_str(out, stet_buf_cstr(&c->at));
    leave(c, mark);
    const char *rest = pointer + end;
    if (strncmp(rest, "/module/argv", 12) == 0 || strncmp(rest, "/module/shell", 13) == 0)
        stet_buf_str(out, "/command");
    else if (strncmp(rest, "/module/", 8) == 0)
        stet_buf_str(out, rest + 7);
    else
        stet_buf_str(out, rest);
}

stet_status stet_pattern_toml_parse(const char *file, const char *text, size_t len, const stet_pattern_checks *checks,
                                    stet_pattern **out, stet_value *problems, stet_error *err) {
    converter c = {.file = file, .text = text, .len = len};
    stet_value json, found = stet_null();
    stet_error inner = STET_ERROR_INIT;
    stet_status status = convert(&c, &json, problems, err);
    if (status != STET_OK) {
        release(&c);
        return status;
    }
    status = stet_pattern_of_value(file, stet_retain(json), checks, out, &found, &inner);
    if (status == STET_INVALID && stet_count(found) > 0) {
        for (size_t i = 0; i < stet_count(found); i++) {
            stet_value p = stet_at(found, i), pointer = stet_get(p, "pointer"), m = stet_get(p, "message"),
                       fix = stet_get(p, "fix");
            stet_buf place = STET_BUF(0);
            toml_pointer(&c, json, stet_as_string(&pointer, NULL), &place);
            add_problem(&c, stet_buf_cstr(&place), stet_as_string(&m, NULL), stet_as_string(&fix, NULL));
            stet_buf_release(&place);
        }
        status = say(&c, problems, err);
        stet_error_clear(&inner);
    } else {
        if (problems)
            *problems = c.problems;
        else
            stet_release(c.problems);
        stet_error_move(err, &inner);
    }
    stet_release(found);
    stet_release(json);
    release(&c);
    return status;
}
