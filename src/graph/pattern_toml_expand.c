/* pattern_toml_expand.c - expands templates, vars, matrix, foreach and when of a stet.toml: the nodes that are meant.
 *
 * What comes out is a pattern without any of these, and everything else reads that one alone. So a value that a node
 * takes from vars, a template, parameters or another file is part of its program as if it had been written there, and
 * is no part of any other node's.
 *
 * A node with `matrix` or `foreach` becomes a node for each combination of values, named after the values, and one of
 * its own name: the table of their results.
 */

#include "graph/pattern_toml_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

#define MAX_TEMPLATES 16 /* that use each other */

/* A node with the members of its templates. */
typedef struct merged {
    const char *name;
    size_t name_len, file;
    stet_value members;
    stet_value from; /* {MEMBER: TEMPLATE} of members that a template has */
    bool many;       /* `matrix` or `foreach` */
} merged;

/* In tables of these, a key of the node replaces the same key of its template; other members are replaced whole. */
static bool is_joined(const char *key) {
    return strcmp(key, "inputs") == 0 || strcmp(key, "env") == 0 || strcmp(key, "vars") == 0;
}

static void overlay(merged *m, stet_value over, const char *template) {
    for (size_t i = 0; i < stet_value_count(over); i++) {
        size_t len;
        const char *key = stet_value_key_at(over, i, &len);
        stet_value v = stet_value_at(over, i), below;
        if (strcmp(key, "use") == 0)
            continue;
        if (is_joined(key) && stet_value_find(m->members, key, len, &below) &&
            stet_value_type(below) == STET_TYPE_OBJECT && stet_value_type(v) == STET_TYPE_OBJECT) {
            stet_value joined = stet_value_retain(below);
            for (size_t k = 0; k < stet_value_count(v); k++) {
                size_t n;
                const char *name = stet_value_key_at(v, k, &n);
                stet_value_put_n(&joined, name, n, stet_value_retain(stet_value_at(v, k)));
            }
            stet_value_put_n(&m->members, key, len, joined);
        } else {
            stet_value_put_n(&m->members, key, len, stet_value_retain(v));
        }
        if (template)
            stet_value_put_n(&m->from, key, len, stet_value_string(template));
        else
            stet_value_remove(&m->from, key, len);
    }
}

/* Goes to where a member was written. */
static void go_to(toml_converter *c, const merged *m, const char *member) {
    stet_value from = stet_value_null();
    toml_leave(c, 0);
    if (member && stet_value_find(m->from, member, strlen(member), &from)) {
        size_t len;
        const char *template = stet_value_as_string(&from, &len);
        c->in = toml_file_of(c, "templates", template, len);
        toml_enter(c, "templates", 9);
        toml_enter(c, template, len);
    } else {
        c->in = m->file;
        toml_enter(c, "nodes", 5);
        toml_enter(c, m->name, m->name_len);
    }
    if (member)
        toml_enter(c, member, strlen(member));
}

static void no_template(toml_converter *c, const char *name) {
    stet_suggest near = stet_suggest_begin(name);
    for (size_t i = 0; i < stet_value_count(c->templates); i++)
        stet_suggest_offer(&near, stet_value_key_at(c->templates, i, NULL));
    char fix[300];
    if (near.best)
        snprintf(fix, sizeof fix, "did you mean \"%.200s\"?", near.best);
    else
        snprintf(fix, sizeof fix, "write [templates.%.200s] with the members that nodes share", name);
    toml_problem(c, fix, "there is no template \"%.200s\"", name);
}

/* The members of the node over those of its template, over those of the template that this one uses, and so on. */
static bool merge(toml_converter *c, merged *m, stet_value node) {
    stet_value chain[MAX_TEMPLATES], use = stet_value_null(), from = node;
    const char *names[MAX_TEMPLATES];
    size_t depth = 0;
    stet_value holds[MAX_TEMPLATES];
    while (stet_value_find(from, "use", 3, &use)) {
        size_t len = 0;
        holds[depth] = use;
        const char *name = stet_value_as_string(&holds[depth], &len);
        toml_leave(c, 0);
        c->in = depth ? toml_file_of(c, "templates", names[depth - 1], strlen(names[depth - 1])) : m->file;
        toml_enter(c, depth ? "templates" : "nodes", depth ? 9 : 5);
        toml_enter(c, depth ? names[depth - 1] : m->name, depth ? strlen(names[depth - 1]) : m->name_len);
        toml_enter(c, "use", 3);
        if (!name || strlen(name) != len) {
            toml_problem(c, "write use = \"NAME\"", "`use` names one template");
            return false;
        }
        if (!stet_value_find(c->templates, name, len, &from)) {
            no_template(c, name);
            return false;
        }
        for (size_t i = 0; i < depth; i++)
            if (strcmp(names[i], name) == 0) {
                toml_problem(c, "take one `use` out", "template \"%.200s\" uses itself, by way of others or directly",
                             name);
                return false;
            }
        if (depth + 1 == MAX_TEMPLATES || stet_value_type(from) != STET_TYPE_OBJECT) {
            if (depth + 1 == MAX_TEMPLATES)
                toml_problem(c, "put some of them into one", "more than %d templates that use each other",
                             MAX_TEMPLATES);
            else
                toml_problem(c, "write [templates.NAME] and members of a node below", "template \"%.200s\" is no table",
                             name);
            return false;
        }
        names[depth] = name;
        chain[depth++] = from;
    }
    while (depth-- > 0)
        overlay(m, chain[depth], names[depth]);
    overlay(m, node, NULL);
    return true;
}

static stet_value take(merged *m, const char *member) {
    stet_value v = stet_value_null();
    if (stet_value_find(m->members, member, strlen(member), &v))
        v = stet_value_retain(v);
    stet_value_remove(&m->members, member, strlen(member));
    return v;
}

static void add_names(stet_value *own, stet_value v, const char *alone) {
    stet_type t = stet_value_type(v);
    if (t == STET_TYPE_OBJECT)
        for (size_t i = 0; i < stet_value_count(v); i++) {
            size_t len;
            const char *key = stet_value_key_at(v, i, &len);
            stet_value_put_n(own, key, len, stet_value_bool(true));
        }
    else if (t != STET_TYPE_NULL)
        stet_value_put(own, alone, stet_value_bool(true));
}

static void add_inputs(stet_value *own, stet_value inputs) {
    for (size_t i = 0; stet_value_type(inputs) == STET_TYPE_OBJECT && i < stet_value_count(inputs); i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        if (!stet_value_find(*own, key, len, NULL))
            stet_value_put_n(own, key, len, stet_value_bool(false));
    }
}

/* A value of the matrix with the name of a file would be filled in by nobody: the file has the name. */
static void check_values(toml_converter *c, const merged *m, const toml_scope *s) {
    for (size_t i = 0; i < stet_value_count(s->values); i++) {
        size_t len;
        const char *key = stet_value_key_at(s->values, i, &len);
        if (!stet_value_find(s->own, key, len, NULL))
            continue;
        go_to(c, m, stet_value_find(m->members, "each", 4, NULL) ? "each" : "files");
        toml_problem(c, "give the file another name", "\"%.100s\" is the name of a file and of a value of the node",
                     key);
    }
}

static void fill_member(toml_converter *c, const merged *m, const toml_scope *s, stet_value *node, const char *key,
                        unsigned how) {
    stet_value v;
    if (!stet_value_find(*node, key, strlen(key), &v))
        return;
    go_to(c, m, key);
    stet_value_put(node, key, toml_fill(c, s, v, how));
}

/* Variables that the file of variables has are set; others are passed on. */
static void set_env(toml_converter *c, stet_value *node) {
    stet_value env, list = stet_value_array(), value;
    if (stet_value_count(c->env) == 0 || !stet_value_find(*node, "env", 3, &env) ||
        stet_value_type(env) != STET_TYPE_ARRAY) {
        stet_value_release(list);
        return;
    }
    for (size_t i = 0; i < stet_value_count(env); i++) {
        stet_value item = stet_value_at(env, i);
        size_t len;
        const char *name = stet_value_as_string(&item, &len);
        if (name && stet_value_find(c->env, name, len, &value)) {
            stet_buf text = STET_BUF(0);
            stet_buf_add(&text, name, len);
            stet_buf_char(&text, '=');
            toml_text_of(value, &text);
            stet_value_push(&list, stet_value_string_n(stet_buf_cstr(&text), text.len));
            stet_buf_release(&text);
        } else {
            stet_value_push(&list, stet_value_retain(item));
        }
    }
    stet_value_put(node, "env", list);
}

static bool is_left_alone(const char *key) {
    static const char *const names[] = {"command",  "javascript", "ref",    "metadata",       "files",        "each",
                                        "produces", "depfile",    "inputs", "argumentSchema", "resultSchema", "vars"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

/* The members of one instance, with everything filled in. */
static stet_value fill_node(toml_converter *c, const merged *m, toml_scope *s) {
    static const char *const texts[] = {"env",   "cwd",    "call",      "python",      "title", "description",
                                        "after", "stdout", "onRestart", "description", "kind",  "remote"};
    stet_value node = stet_value_retain(m->members), none = stet_value_object(), command;
    s->own = none;
    fill_member(c, m, s, &node, "files", TOML_FILL_TEXT | TOML_FILL_PATH);
    fill_member(c, m, s, &node, "each", TOML_FILL_TEXT | TOML_FILL_PATH);
    stet_value own = stet_value_object();
    add_names(&own, stet_value_get(node, "files"), "in");
    add_names(&own, stet_value_get(node, "each"), "in");
    s->own = own;
    check_values(c, m, s);
    fill_member(c, m, s, &node, "produces", TOML_FILL_TEXT | TOML_FILL_PATH | TOML_FILL_STRICT);
    fill_member(c, m, s, &node, "depfile", TOML_FILL_TEXT | TOML_FILL_PATH | TOML_FILL_STRICT);
    stet_value produces = stet_value_get(node, "produces");
    if (stet_value_type(produces) == STET_TYPE_ARRAY)
        for (size_t i = 0; i < stet_value_count(produces); i++) {
            char number[24];
            snprintf(number, sizeof number, "%zu", i);
            stet_value_put(&own, number, stet_value_bool(true));
        }
    else
        add_names(&own, produces, "out");
    add_inputs(&own, stet_value_get(node, "inputs"));
    s->own = own;
    fill_member(c, m, s, &node, "inputs", TOML_FILL_DOLLAR | TOML_FILL_OWN_LAST);
    if (stet_value_find(node, "command", 7, &command)) {
        command = stet_value_retain(command);
        go_to(c, m, "command");
        stet_value vars = toml_command_vars(c, s, &command);
        stet_value_put(&node, "command", command);
        if (stet_value_count(vars) > 0)
            stet_value_put(&node, "vars", vars);
        else
            stet_value_release(vars);
    }
    for (size_t i = 0; i < stet_value_count(m->members); i++) {
        const char *key = stet_value_key_at(m->members, i, NULL);
        unsigned how = 0;
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            how |= strcmp(texts[k], key) == 0 ? TOML_FILL_TEXT : 0;
        if (!is_left_alone(key))
            fill_member(c, m, s, &node, key, how);
    }
    set_env(c, &node);
    s->own = stet_value_null();
    stet_value_release(own);
    stet_value_release(none);
    return node;
}

static void note_origin(toml_converter *c, const char *key, size_t len, size_t file, char *pointer) {
    stet_map_put(&c->origins, key, len, (stet_slot){.n = c->origin.len});
    *stet_vec_add(&c->origin) = (toml_origin){file, pointer};
}

static char *pointer_to(toml_converter *c, const char *table, const char *name, size_t len, const char *member) {
    stet_buf at = c->at;
    c->at = (stet_buf)STET_BUF(STET_PATH_MAX_BYTES);
    toml_enter(c, table, strlen(table));
    toml_enter(c, name, len);
    if (member)
        toml_enter(c, member, strlen(member));
    char *made = stet_buf_take(&c->at, NULL);
    c->at = at;
    return made;
}

/* Remembers where the node `id` and its members were written. `whole`: the member that stands for all of it, or NULL. */
static void note_origins(toml_converter *c, const merged *m, const char *id, size_t id_len, const char *whole) {
    bool trivial = m->file == 0 && !whole && id_len == m->name_len && memcmp(id, m->name, id_len) == 0;
    char *escaped = pointer_to(c, "", id, id_len, NULL); /* "//ID" */
    size_t n = strlen(escaped) - 2;
    if (!trivial)
        note_origin(c, escaped + 2, n, m->file, pointer_to(c, "nodes", m->name, m->name_len, whole));
    for (size_t i = 0; i < stet_value_count(m->from); i++) {
        const char *member = stet_value_key_at(m->from, i, NULL);
        stet_value template = stet_value_at(m->from, i);
        size_t len;
        const char *name = stet_value_as_string(&template, &len);
        char *key = stet_asprintf("%s/%s", escaped + 2, member);
        note_origin(c, key, strlen(key), toml_file_of(c, "templates", name, len),
                    pointer_to(c, "templates", name, len, member));
        stet_free(key);
    }
    stet_free(escaped);
}

/* Adds a node. Consumes it. */
static bool add_node(toml_converter *c, const merged *m, const char *id, size_t len, stet_value node,
                     const char *whole) {
    bool own = len == m->name_len && memcmp(id, m->name, len) == 0,
         taken = stet_value_find(c->nodes, id, len, NULL) ||
                 ((!own || (m->many && !whole)) && stet_value_find(c->raw, id, len, NULL));
    if (!own && !stet_name_valid(id, len)) {
        go_to(c, m, m->many ? stet_value_find(m->members, "foreach", 7, NULL) ? "foreach" : "matrix" : "name");
        toml_problem(c, "say name = \"...\" with letters, digits, \"_\", \"-\" and \".\", at most 200 bytes",
                     "\"%.200s\" is no name for a node", id);
    } else if (taken) {
        go_to(c, m, NULL);
        toml_problem(c, "say name = \"...\" with what tells them apart, or take the value out that stands twice",
                     "two nodes are called \"%.200s\"; the values of `matrix` and `foreach` make the name", id);
    } else {
        stet_value_put_n(&c->nodes, id, len, node);
        note_origins(c, m, id, len, whole);
        return true;
    }
    stet_value_release(node);
    return false;
}

/* A text as a value in `inputs`: a dollar at its start is no reference. */
static stet_value as_input(stet_value v, int depth) {
    stet_type t = stet_value_type(v);
    size_t len;
    if (t == STET_TYPE_STRING) {
        const char *s = stet_value_as_string(&v, &len);
        return len > 1 && *s == '$' ? stet_value_stringf("$%s", s) : stet_value_retain(v);
    }
    if ((t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT) || depth > 60)
        return stet_value_retain(v);
    stet_value made = t == STET_TYPE_ARRAY ? stet_value_array() : stet_value_object();
    for (size_t i = 0; i < stet_value_count(v); i++) {
        const char *key = stet_value_key_at(v, i, &len);
        if (key)
            stet_value_put_n(&made, key, len, as_input(stet_value_at(v, i), depth + 1));
        else
            stet_value_push(&made, as_input(stet_value_at(v, i), depth + 1));
    }
    return made;
}

/* A row of the table: the values, and what the node gives. */
static stet_value row_of(const char *id, stet_value node, stet_value combination) {
    stet_value row = as_input(combination, 0), v;
    bool command = stet_value_find(node, "command", 7, NULL), each = stet_value_find(node, "each", 4, NULL);
    if (command && !each) {
        stet_value_put(&row, "files", stet_value_stringf("$%s/files", id));
        if (stet_value_find(node, "stdout", 6, &v) && stet_value_type(v) == STET_TYPE_STRING &&
            strcmp(stet_value_as_string(&v, NULL), "log") != 0)
            stet_value_put(&row, "stdout", stet_value_stringf("$%s/stdout", id));
    } else {
        stet_value_put(&row, "result", stet_value_stringf("$%s", id));
    }
    return row;
}

static const char *const row_members[] = {"files", "stdout", "result"};

static void check_axes(toml_converter *c, const merged *m, stet_value combination, const char *member) {
    for (size_t i = 0; i < 3; i++)
        if (stet_value_find(combination, row_members[i], strlen(row_members[i]), NULL)) {
            go_to(c, m, member);
            toml_problem(c, "give it another name", "\"%s\" is a column of the table of results", row_members[i]);
        }
}

/* The id of an instance: its `name`, or the node's name with the values. Caller frees. */
static char *id_of(toml_converter *c, const merged *m, const toml_scope *s, stet_value known_by, stet_value name,
                   bool foreach, size_t *len) {
    stet_buf id = STET_BUF(0);
    if (stet_value_type(name) != STET_TYPE_NULL) {
        go_to(c, m, "name");
        stet_value made = toml_fill(c, s, name, TOML_FILL_TEXT | TOML_FILL_STRICT);
        const char *text = stet_value_type(made) == STET_TYPE_STRING ? stet_value_as_string(&made, len) : NULL;
        if (text)
            stet_buf_add(&id, text, *len);
        else
            toml_problem(c, "write a text", "`name` is a text");
        stet_value_release(made);
    } else {
        stet_buf_add(&id, m->name, m->name_len);
        if (m->many)
            toml_combination_name(known_by, foreach, &id);
    }
    *len = id.len;
    return stet_buf_take(&id, NULL);
}

static void expand_node(toml_converter *c, const char *name, size_t len, stet_value written) {
    merged m = {.name = name,
                .name_len = len,
                .file = toml_file_of(c, "nodes", name, len),
                .members = stet_value_object(),
                .from = stet_value_object()};
    if (stet_value_type(written) != STET_TYPE_OBJECT || !merge(c, &m, written)) {
        if (stet_value_type(written) != STET_TYPE_OBJECT) {
            go_to(c, &m, NULL);
            toml_problem(c, "write [nodes.NAME] and its members below", "a node is a table");
        }
        stet_value_release(m.members);
        stet_value_release(m.from);
        return;
    }
    stet_value matrix = take(&m, "matrix"), foreach = take(&m, "foreach"), when = take(&m, "when"),
               title = take(&m, "name"), vars = take(&m, "vars"), combinations, ids = stet_value_array(),
               rows = stet_value_array();
    bool each = stet_value_type(foreach) != STET_TYPE_NULL, conditional = stet_value_type(when) != STET_TYPE_NULL;
    const char *member = each ? "foreach" : "matrix";
    m.many = each || stet_value_type(matrix) != STET_TYPE_NULL;
    if (m.many) {
        go_to(c, &m, member);
        if (each && stet_value_type(matrix) != STET_TYPE_NULL)
            toml_problem(c, "keep one of them", "a node has both `matrix` and `foreach`");
        combinations = toml_combinations(c, matrix, foreach);
    } else {
        stet_value one = stet_value_array();
        stet_value_push(&one, stet_value_object());
        stet_value_push(&one, stet_value_object());
        combinations = stet_value_array();
        stet_value_push(&combinations, one);
    }
    size_t problems = stet_value_count(c->problems);
    for (size_t i = 0; i < stet_value_count(combinations) && stet_value_count(c->problems) == problems; i++) {
        stet_value pair = stet_value_at(combinations, i), combination = stet_value_at(pair, 0);
        toml_scope s = {.values = combination};
        go_to(c, &m, "vars");
        if (stet_value_type(vars) == STET_TYPE_OBJECT)
            s.vars = toml_fill(c, &s, vars, TOML_FILL_STRICT);
        else if (stet_value_type(vars) != STET_TYPE_NULL)
            toml_problem(c, "write { NAME = VALUE }", "`vars` is a table");
        go_to(c, &m, "when");
        size_t id_len;
        char *id = id_of(c, &m, &s, stet_value_at(pair, 1), title, each, &id_len);
        if (conditional)
            go_to(c, &m, "when");
        if (conditional && !toml_when(c, &s, when)) {
            if (!m.many)
                stet_value_put_n(&c->absent, id, id_len, stet_value_bool(true));
        } else {
            stet_value node = fill_node(c, &m, &s);
            if (m.many) {
                check_axes(c, &m, combination, member);
                stet_value_push(&ids, stet_value_string_n(id, id_len));
                stet_value_push(&rows, row_of(id, node, combination));
            }
            add_node(c, &m, id, id_len, node, NULL);
        }
        stet_free(id);
        stet_value_release(s.vars);
    }
    if (m.many) {
        stet_value table = stet_value_object(), inputs = stet_value_object();
        stet_value_put(&inputs, "value", stet_value_retain(rows));
        stet_value_put(&table, "ref", stet_value_string("value"));
        stet_value_put(&table, "inputs", inputs);
        stet_value_put_n(&c->groups, name, len, stet_value_retain(ids));
        add_node(c, &m, name, len, table, member);
    }
    stet_value_release(matrix);
    stet_value_release(foreach);
    stet_value_release(when);
    stet_value_release(title);
    stet_value_release(vars);
    stet_value_release(combinations);
    stet_value_release(ids);
    stet_value_release(rows);
    stet_value_release(m.members);
    stet_value_release(m.from);
}

void toml_expand(toml_converter *c) {
    c->expanding = true;
    c->nodes = stet_value_object();
    c->filled = stet_value_object();
    c->groups = stet_value_object();
    c->absent = stet_value_object();
    for (size_t i = 0; i < stet_value_count(c->vars); i++) {
        size_t len;
        const char *key = stet_value_key_at(c->vars, i, &len);
        stet_value v;
        if (toml_lookup(c, &(toml_scope){0}, key, len, &v)) /* also those that no node uses: mistakes are found */
            stet_value_release(v);
    }
    for (size_t i = 0; i < stet_value_count(c->raw); i++) {
        size_t len;
        const char *name = stet_value_key_at(c->raw, i, &len);
        expand_node(c, name, len, stet_value_at(c->raw, i));
        toml_leave(c, 0);
    }
    c->expanding = false;
    c->in = 0;
    toml_leave(c, 0);
}
