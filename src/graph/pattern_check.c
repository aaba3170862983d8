/* pattern_check.c - checks a parsed pattern; reports each mistake with its place and a fix, up to a limit. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/schema.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "graph/cells.h"
#include "graph/pattern_internal.h"

typedef pattern_checker checker;

static bool full(const checker *c) {
    return stet_value_count(c->problems) >= STET_PATTERN_MAX_PROBLEMS;
}

/* Reports a mistake at the current place. `fix` says how to correct it. */
static void problem(checker *c, const char *fix, const char *format, ...) STET_PRINTF(3, 4);
static void problem(checker *c, const char *fix, const char *format, ...) {
    if (full(c))
        return;
    stet_buf text = STET_BUF(2048);
    va_list args;
    va_start(args, format);
    char line[900];
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    stet_buf_str(&text, line);
    stet_value p = stet_value_object();
    size_t row = 0, column = 0;
    stet_value_put(&p, "file", stet_value_string(c->file));
    /* A missing member is reported at the object that lacks it, because only existing things have a place. */
    if (c->text && stet_json_locate(c->text, c->len, stet_buf_cstr(&c->at), &row, &column)) {
        stet_value_put(&p, "line", stet_value_int((int64_t)row));
        stet_value_put(&p, "column", stet_value_int((int64_t)column));
    }
    stet_value_put(&p, "pointer", stet_value_string(stet_buf_cstr(&c->at)));
    stet_value message;
    if (stet_value_string_checked(text.data, text.len, &message, NULL) != STET_OK)
        message = stet_value_string("(a message that is not UTF-8)");
    stet_value_put(&p, "message", message);
    stet_value_put(&p, "fix", stet_value_string(fix));
    stet_value_push(&c->problems, p);
    stet_buf_release(&text);
}

static size_t enter(checker *c, const char *key, size_t len) {
    size_t mark = c->at.len;
    stet_buf_char(&c->at, '/');
    for (size_t i = 0; i < len; i++) {
        if (key[i] == '~')
            stet_buf_str(&c->at, "~0");
        else if (key[i] == '/')
            stet_buf_str(&c->at, "~1");
        else
            stet_buf_char(&c->at, key[i]);
    }
    return mark;
}

static size_t enter_str(checker *c, const char *key) {
    return enter(c, key, strlen(key));
}

static size_t enter_index(checker *c, size_t index) {
    size_t mark = c->at.len;
    stet_buf_printf(&c->at, "/%zu", index);
    return mark;
}

static void leave(checker *c, size_t mark) {
    c->at.len = mark;
    if (c->at.data)
        c->at.data[mark] = 0;
}

void pattern_problem_of(checker *c, size_t node, const char *fix, const char *message) {
    size_t mark = enter_str(c, "nodes");
    enter_index(c, node);
    problem(c, fix, "%s", message);
    leave(c, mark);
}

static const char *type_name(stet_value v) {
    static const char *const names[] = {"null",     "a boolean", "a number", "a number",
                                        "a string", "an array",  "an object"};
    return names[stet_value_type(v)];
}

/* Refuses members that the format does not have. `known` is one string with spaces around each name. */
static void check_members(checker *c, stet_value object, const char *what, const char *known) {
    for (size_t i = 0; i < stet_value_count(object); i++) {
        size_t len;
        const char *key = stet_value_key_at(object, i, &len);
        char word[64];
        if (len < sizeof word - 3) {
            snprintf(word, sizeof word, " %.*s ", (int)len, key);
            if (strlen(word) == len + 2 && strstr(known, word))
                continue;
        }
        char fix[1024];
        size_t mark = enter(c, key, len);
        stet_suggest near = stet_suggest_begin_n(key, len);
        stet_suggest_offer_words(&near, known);
        if (near.best)
            snprintf(fix, sizeof fix, "did you mean \"%.*s\"?", (int)near.best_len, near.best);
        else
            snprintf(fix, sizeof fix, "remove it; %s has these members:%.*s", what, (int)strlen(known) - 1, known);
        problem(c, fix, "%s has no member \"%.*s\"", what, (int)(len < 100 ? len : 100), key);
        leave(c, mark);
    }
}

static bool check_type(checker *c, stet_value v, stet_type type, const char *what, const char *fix) {
    if (stet_value_type(v) == type)
        return true;
    problem(c, fix, "%s is %s", what, type_name(v));
    return false;
}

/* An optional string member; "" if absent or wrong. */
static const char *text_member(checker *c, stet_value object, const char *key) {
    stet_value v;
    if (!stet_value_find(object, key, strlen(key), &v))
        return "";
    size_t mark = enter_str(c, key);
    const char *s = "";
    if (check_type(c, v, STET_TYPE_STRING, key, "write a string"))
        s = stet_arena_strdup(&c->p->arena, stet_value_as_string(&v, NULL));
    leave(c, mark);
    return s;
}

static void check_schema_member(checker *c, stet_value object, const char *key, stet_value *out) {
    stet_value v;
    if (!stet_value_find(object, key, strlen(key), &v))
        return;
    size_t mark = enter_str(c, key);
    stet_error err = STET_ERROR_INIT;
    if (stet_schema_valid(v, &err) != STET_OK)
        problem(c, "write a JSON Schema (a subset of draft 2020-12)", "%s: %s", key, err.message);
    else if (out)
        *out = v;
    stet_error_clear(&err);
    leave(c, mark);
}

/* Does the schema describe a list of arguments? It does by its type or its items; a schema that says nothing, or that
 * refers to another, may. */
static bool describes_list(stet_value schema) {
    stet_value type;
    if (stet_value_type(schema) != STET_TYPE_OBJECT)
        return true;
    if (!stet_value_find(schema, "type", 4, &type))
        return stet_value_count(schema) == 0 || stet_value_find(schema, "prefixItems", 11, NULL) ||
               stet_value_find(schema, "items", 5, NULL) || stet_value_find(schema, "$ref", 4, NULL);
    bool list = stet_value_type(type) == STET_TYPE_STRING && strcmp(stet_value_as_string(&type, NULL), "array") == 0;
    for (size_t i = 0; stet_value_type(type) == STET_TYPE_ARRAY && i < stet_value_count(type); i++) {
        stet_value one = stet_value_at(type, i);
        list = list ||
               (stet_value_type(one) == STET_TYPE_STRING && strcmp(stet_value_as_string(&one, NULL), "array") == 0);
    }
    return list;
}

typedef struct binding_check {
    checker *c;
    const char *what; /* for messages: "node \"total\", input" */
} binding_check;

static bool check_binding_ref(void *ctx, stet_value binding, stet_pathref place) {
    binding_check *b = ctx;
    checker *c = b->c;
    stet_pattern_ref ref;
    stet_error err = STET_ERROR_INIT;
    size_t mark = c->at.len;
    stet_path_print(place, &c->at);
    if (!stet_link_is(binding, NULL))
        check_members(c, binding, "a reference", " $ asCell schema ");
    if (!pattern_resolve(c->p, binding, &ref, &err))
        problem(c, stet_has_hint(&err) ? err.hint : "write {\"$\": \"NAME\"} or {\"$\": \"NAME/KEY\"}", "%s: %s",
                b->what, err.message);
    else if (ref.kind == STET_REF_LINK && stet_value_find(ref.link, "space", 5, NULL)) {
        stet_value id = stet_value_get(ref.link, "id");
        if (stet_value_type(id) == STET_TYPE_STRING && stet_cells_outside(stet_value_as_string(&id, NULL)))
            problem(c, "leave \"space\" out: each space has its own documents of files",
                    "%s: a link to \"%.200s\" of a named space, where nobody may look at it", b->what,
                    stet_value_as_string(&id, NULL));
    }
    stet_error_clear(&err);
    leave(c, mark);
    return !full(c);
}

static void check_binding(checker *c, stet_value binding, const char *what) {
    binding_check b = {c, what};
    stet_binding_walk(binding, check_binding_ref, &b);
}

static void read_cells(checker *c, stet_value cells) {
    stet_pattern *p = c->p;
    if (!check_type(c, cells, STET_TYPE_OBJECT, "\"cells\"", "write an object: {\"NAME\": {\"default\": VALUE}}"))
        return;
    size_t n = stet_value_count(cells);
    p->cells = stet_arena_zero(&p->arena, (n ? n : 1) * sizeof *p->cells);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *key = stet_value_key_at(cells, i, &len);
        stet_value cell = stet_value_at(cells, i);
        size_t mark = enter(c, key, len);
        if (!stet_name_valid(key, len))
            problem(c, "use letters, digits, \"_\", \"-\" and \".\", beginning with a letter, digit or \"_\"",
                    "\"%.*s\" is no name for a cell", (int)(len < 100 ? len : 100), key);
        else if (strcmp(key, "argument") == 0 || strcmp(key, "result") == 0)
            problem(c, "choose another name", "the name \"%s\" is taken", key);
        else if (check_type(c, cell, STET_TYPE_OBJECT, "a cell",
                            "write {\"default\": VALUE}, or {} for an empty one")) {
            stet_pattern_cell *to = &p->cells[p->cell_count];
            to->name = stet_arena_strndup(&p->arena, key, len);
            to->has_default = stet_value_find(cell, "default", 7, &to->initial);
            check_members(c, cell, "a cell", " default schema description ");
            check_schema_member(c, cell, "schema", &to->schema);
            stet_map_put(&p->names, key, len, (stet_slot){.n = (uint64_t)p->cell_count * 2});
            p->cell_count++;
        }
        leave(c, mark);
        if (full(c))
            return;
    }
}

static void read_milliseconds(checker *c, stet_value node, const char *key, int64_t *out) {
    stet_value v;
    if (!stet_value_find(node, key, strlen(key), &v))
        return;
    size_t mark = enter_str(c, key);
    if (stet_value_type(v) != STET_TYPE_INT || stet_value_as_int(v) < 0 || stet_value_as_int(v) > STET_PATTERN_MAX_MS)
        problem(c, "write a whole number of milliseconds, 0 or more", "%s is no number of milliseconds", key);
    else
        *out = stet_value_as_int(v);
    leave(c, mark);
}

static bool read_flag(checker *c, stet_value node, const char *key) {
    stet_value v;
    if (!stet_value_find(node, key, strlen(key), &v))
        return false;
    size_t mark = enter_str(c, key);
    check_type(c, v, STET_TYPE_BOOL, key, "write true or false");
    leave(c, mark);
    return stet_value_as_bool(v);
}

static void read_kind(checker *c, stet_value node, stet_pattern_node *n) {
    stet_value v;
    bool stream = stet_value_find(node, "stream", 6, NULL);
    bool handler =
        stet_value_type(n->module) == STET_TYPE_OBJECT && stet_value_as_bool(stet_value_get(n->module, "handler"));
    n->kind = handler ? STET_NODE_HANDLER : STET_NODE_COMPUTATION;
    if (handler && !stream)
        problem(c, "add \"stream\": {\"$\": \"NAME\"}", "handler \"%s\" has no stream that its events come from",
                n->id);
    if (stream && !handler)
        problem(c, "add \"handler\": true to its module, or use \"output\"",
                "node \"%s\" has a stream, but its module is no handler", n->id);
    if (stet_value_find(node, "kind", 4, &v)) {
        size_t mark = enter_str(c, "kind");
        const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, NULL) : "";
        if (strcmp(s, "computation") == 0 && !handler)
            n->kind = STET_NODE_COMPUTATION;
        else if (strcmp(s, "effect") == 0 && !handler)
            n->kind = STET_NODE_EFFECT;
        else if (!(strcmp(s, "event-handler") == 0 && handler))
            problem(c, "write \"computation\" or \"effect\" (a handler is known by its module)",
                    "node \"%s\": no such kind", n->id);
        leave(c, mark);
    }
    if (stet_value_find(node, "onRestart", 9, &v)) {
        size_t mark = enter_str(c, "onRestart");
        const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, NULL) : "";
        n->run_on_restart = strcmp(s, "run") == 0;
        if (!n->run_on_restart && strcmp(s, "skip") != 0)
            problem(c, "write \"skip\" or \"run\"", "node \"%s\": onRestart is neither", n->id);
        else if (n->kind != STET_NODE_EFFECT)
            problem(c, "remove it, or add \"kind\": \"effect\"",
                    "node \"%s\" is no effect: onRestart has no meaning there", n->id);
        leave(c, mark);
    }
}

/* Ids first, so that references may point forward. */
static void read_node_ids(checker *c, stet_value nodes) {
    stet_pattern *p = c->p;
    size_t n = stet_value_count(nodes);
    p->nodes = stet_alloc_zero((n ? n : 1) * sizeof *p->nodes);
    for (size_t i = 0; i < n && !full(c); i++) {
        stet_value node = stet_value_at(nodes, i), id;
        size_t mark = enter_index(c, i);
        stet_pattern_node *to = &p->nodes[p->node_count];
        if (!check_type(c, node, STET_TYPE_OBJECT, "a node", "write {\"id\": ..., \"module\": ..., \"inputs\": ...}")) {
            leave(c, mark);
            continue;
        }
        if (!stet_value_find(node, "id", 2, &id) || stet_value_type(id) != STET_TYPE_STRING) {
            problem(c, "add \"id\": \"NAME\"", "node %zu has no id", i);
            leave(c, mark);
            continue;
        }
        size_t len;
        const char *s = stet_value_as_string(&id, &len);
        size_t inner = enter_str(c, "id");
        const stet_slot *slot;
        if (!stet_name_valid(s, len)) {
            problem(c, "use letters, digits, \"_\", \"-\" and \".\", beginning with a letter, digit or \"_\"",
                    "\"%.*s\" is no name for a node", (int)(len < 100 ? len : 100), s);
        } else if (strcmp(s, "argument") == 0 || strcmp(s, "result") == 0) {
            problem(c, "choose another name", "the name \"%s\" is taken", s);
        } else if ((slot = stet_map_get(&p->names, s, len)) != NULL) {
            problem(c, "give each node and each cell a name of its own", "duplicate id \"%s\": %s has it already", s,
                    slot->n & 1 ? "another node" : "a cell");
        } else {
            to->id = stet_arena_strndup(&p->arena, s, len);
            to->value = node;
            to->output =
                (stet_pattern_ref){.kind = STET_REF_NODE, .index = (uint32_t)p->node_count, .path = STET_PATH_ROOT};
            stet_map_put(&p->names, s, len, (stet_slot){.n = (uint64_t)p->node_count * 2 + 1});
            p->node_count++;
        }
        leave(c, inner);
        leave(c, mark);
    }
}

/* Explicit outputs before bindings, because a reference to a node is a reference to its output. */
static void read_output(checker *c, stet_pattern_node *n) {
    stet_value v;
    if (!stet_value_find(n->value, "output", 6, &v))
        return;
    size_t mark = enter_str(c, "output");
    stet_pattern_ref ref;
    stet_error err = STET_ERROR_INIT;
    if (!stet_binding_is_ref(v) && !stet_link_is(v, NULL))
        problem(c, "write {\"$\": \"CELL\"}, or leave it out for a cell of the node's own", "output is no reference");
    else if (!pattern_resolve(c->p, v, &ref, &err))
        problem(c, stet_has_hint(&err) ? err.hint : "write {\"$\": \"CELL\"}", "output: %s", err.message);
    else if (ref.kind == STET_REF_ARGUMENT)
        problem(c, "write to a named cell (\"cells\") instead", "node \"%s\" writes to the argument, which people edit",
                n->id);
    else if (ref.kind == STET_REF_NODE)
        problem(c, "write to a named cell (\"cells\"), or leave output out",
                "node \"%s\" writes to a cell of node \"%s\"", n->id, c->p->nodes[ref.index].id);
    else if (ref.kind == STET_REF_LINK && stet_value_find(ref.link, "space", 5, NULL))
        problem(c, "leave \"space\" out: an action writes to the space of its piece",
                "node \"%s\" writes to another space", n->id);
    else {
        n->output = ref;
        n->explicit_output = true;
    }
    stet_error_clear(&err);
    leave(c, mark);
}

static void check_inputs(checker *c, stet_pattern_node *n) {
    stet_value inputs;
    if (!stet_value_find(n->value, "inputs", 6, &inputs))
        return;
    size_t mark = enter_str(c, "inputs");
    bool whole = stet_binding_is_ref(inputs) || stet_link_is(inputs, NULL);
    if (whole || (stet_value_type(inputs) != STET_TYPE_OBJECT && stet_value_type(inputs) != STET_TYPE_ARRAY))
        problem(c, "write an object: {\"NAME\": BINDING}, or an array", "the inputs of node \"%s\" are %s", n->id,
                whole ? "one reference" : type_name(inputs));
    else {
        char what[STET_PATTERN_MAX_NAME + 16];
        snprintf(what, sizeof what, "node \"%s\"", n->id);
        check_binding(c, inputs, what);
        n->inputs = inputs;
    }
    leave(c, mark);
}

/* The kind also checks the inputs, so it is asked only if they are right. */
static void check_module(checker *c, stet_pattern_node *n, bool ask) {
    stet_value module;
    if (!stet_value_find(n->value, "module", 6, &module)) {
        problem(c, "add \"module\": {\"type\": \"ref\", \"ref\": \"sum\"}", "node \"%s\" has no module", n->id);
        return;
    }
    size_t mark = enter_str(c, "module");
    if (check_type(c, module, STET_TYPE_OBJECT, "module", "write {\"type\": \"ref\", \"ref\": \"sum\"}")) {
        stet_value type;
        n->module = module;
        if (!stet_value_find(module, "type", 4, &type) || stet_value_type(type) != STET_TYPE_STRING) {
            problem(c, "add \"type\"", "the module of node \"%s\" has no type", n->id);
        } else {
            stet_error err = STET_ERROR_INIT;
            if (ask && c->checks && c->checks->module &&
                c->checks->module(c->checks->ctx, module, n->value, &err) != STET_OK)
                problem(c, stet_has_hint(&err) ? err.hint : "see docs/pattern-format.md", "node \"%s\": %s", n->id,
                        err.message);
            stet_error_clear(&err);
        }
        check_schema_member(c, module, "argumentSchema", NULL);
        if (stet_value_find(module, "argumentSchema", 14, &type) && !describes_list(type))
            problem(
                c,
                "write {\"type\": \"array\", \"prefixItems\": [{\"properties\": {...}}]}, or put the schema of named "
                "inputs on the node",
                "the argumentSchema of the module of node \"%s\" does not describe a list of arguments", n->id);
        check_schema_member(c, module, "resultSchema", NULL);
    }
    leave(c, mark);
}

/* A stream is the handler's own name, a named cell, or the stream of another handler. */
static void read_stream(checker *c, stet_pattern_node *n) {
    stet_value v = stet_value_get(n->value, "stream");
    stet_pattern_ref ref;
    size_t mark = enter_str(c, "stream");
    if (!stet_binding_is_ref(v) || !pattern_resolve(c->p, v, &ref, NULL))
        problem(c, "write {\"$\": \"NAME\"}", "the stream of node \"%s\" is no reference", n->id);
    else if (ref.kind == STET_REF_ARGUMENT || ref.kind == STET_REF_LINK)
        problem(c, "write its own name, or that of a named cell (\"cells\")",
                "the stream of node \"%s\" is neither its own nor a named cell", n->id);
    else if (ref.kind == STET_REF_NODE &&
             !stet_value_as_bool(stet_value_get(stet_value_get(c->p->nodes[ref.index].value, "module"), "handler")))
        problem(c, "write its own name, or that of a named cell (\"cells\")",
                "the stream of node \"%s\" is the output of node \"%s\"", n->id, c->p->nodes[ref.index].id);
    else
        n->output = ref;
    leave(c, mark);
}

/* Checks that each of `materializerWriteInputPaths` leads to an input that is a cell. */
static void check_write_paths(checker *c, const stet_pattern_node *n) {
    stet_value paths;
    if (!stet_value_find(n->value, "materializerWriteInputPaths", 27, &paths))
        return;
    size_t mark = enter_str(c, "materializerWriteInputPaths");
    if (n->kind == STET_NODE_HANDLER)
        problem(c, "remove it", "node \"%s\" is a handler: it runs when an event comes, and needs no such paths",
                n->id);
    else if (check_type(c, paths, STET_TYPE_ARRAY, "materializerWriteInputPaths", "write [\"INPUT\", \"INPUT/KEY\"]"))
        for (size_t i = 0; i < stet_value_count(paths) && !full(c); i++) {
            size_t inner = enter_index(c, i), taken, cursor = 0, len;
            stet_path path = STET_PATH_INIT;
            stet_buf scratch = STET_BUF(0);
            stet_value at;
            const char *key = "";
            stet_pattern_ref ref;
            if (!stet_cells_input_path(stet_value_at(paths, i), &path))
                problem(c, "write \"INPUT\", \"INPUT/KEY\" or a list of keys", "no path into the inputs");
            else if (!stet_cells_reference(n->inputs, stet_path_ref(&path), &at, &taken) ||
                     !pattern_resolve(c->p, at, &ref, NULL))
                problem(c, "name an input that is a reference", "node \"%s\" has no reference there", n->id);
            else if (!ref.as_cell && !(stet_path_next(stet_path_ref(&path), &cursor, &scratch, &key, &len) &&
                                       stet_cells_by_schema(n->value, n->module, key, len)))
                problem(c, "add \"asCell\": true to that reference", "node \"%s\" is given a value there, and no cell",
                        n->id);
            else if (ref.kind == STET_REF_NODE)
                problem(c, "write to a named cell (\"cells\")", "node \"%s\" would write to the output of node \"%s\"",
                        n->id, c->p->nodes[ref.index].id);
            else if (ref.kind == STET_REF_LINK && stet_value_find(ref.link, "space", 5, NULL))
                problem(c, "leave \"space\" out: an action writes to the space of its piece",
                        "node \"%s\" writes to another space", n->id);
            stet_buf_release(&scratch);
            stet_path_release(&path);
            leave(c, inner);
        }
    leave(c, mark);
}

static void check_returns(checker *c, const stet_pattern_node *n) {
    stet_value v;
    if (!stet_value_find(n->value, "returns", 7, &v))
        return;
    size_t mark = enter_str(c, "returns");
    if (stet_value_type(v) != STET_TYPE_STRING || strcmp(stet_value_as_string(&v, NULL), "pattern") != 0)
        problem(c, "write \"pattern\", or remove it", "node \"%s\": the only thing to return but a value is a pattern",
                n->id);
    else if (n->kind != STET_NODE_COMPUTATION)
        problem(c, "remove it, or make the node a computation", "node \"%s\": only a computation returns a pattern",
                n->id);
    else if (stet_value_type(stet_value_get(n->module, "pattern")) == STET_TYPE_OBJECT)
        problem(c, "remove it", "node \"%s\" has children already: one for each element", n->id);
    leave(c, mark);
}

static void check_node(checker *c, stet_pattern_node *n) {
    check_members(c, n->value, "a node",
                  " id description title kind module inputs output stream verifier debounceMs noDebounce throttleMs "
                  "onRestart argumentSchema resultSchema materializerWriteInputPaths metadata returns ");
    size_t before = stet_value_count(c->problems);
    check_inputs(c, n);
    check_module(c, n, stet_value_count(c->problems) == before);
    read_kind(c, n->value, n);
    if (n->kind == STET_NODE_HANDLER)
        read_stream(c, n);
    check_write_paths(c, n);
    n->verifier = read_flag(c, n->value, "verifier");
    n->no_debounce = read_flag(c, n->value, "noDebounce");
    read_milliseconds(c, n->value, "debounceMs", &n->debounce_ms);
    read_milliseconds(c, n->value, "throttleMs", &n->throttle_ms);
    check_schema_member(c, n->value, "argumentSchema", NULL);
    check_schema_member(c, n->value, "resultSchema", NULL);
    check_returns(c, n);
}

typedef struct claim {
    char *doc; /* "c<index>" or the link's id and scope */
    stet_pathref path;
    uint32_t node;
} claim;

static int claim_compare(const void *a, const void *b) {
    const claim *x = a, *y = b;
    int d = strcmp(x->doc, y->doc);
    if (d == 0)
        d = stet_path_compare(x->path, y->path);
    if (d == 0)
        d = x->node < y->node ? -1 : x->node > y->node;
    return d;
}

static void check_claims(checker *c) {
    stet_pattern *p = c->p;
    STET_VEC(claim) claims = {0};
    for (size_t i = 0; i < p->node_count; i++) {
        stet_pattern_node *n = &p->nodes[i];
        if (!n->explicit_output)
            continue;
        stet_buf doc = STET_BUF(0);
        if (n->output.kind == STET_REF_CELL) {
            stet_buf_printf(&doc, "c%u", n->output.index);
        } else {
            stet_value id = stet_value_get(n->output.link, "id"), scope = stet_value_get(n->output.link, "scope");
            stet_buf_printf(&doc, "l%s\n%s", stet_value_as_string(&id, NULL),
                            stet_value_type(scope) == STET_TYPE_STRING ? stet_value_as_string(&scope, NULL) : "");
        }
        *stet_vec_add(&claims) =
            (claim){stet_arena_strdup(&p->arena, stet_buf_cstr(&doc)), n->output.path, (uint32_t)i};
        stet_buf_release(&doc);
    }
    if (claims.len > 1)
        qsort(claims.at, claims.len, sizeof *claims.at, claim_compare);
    /* In path order, a path comes before all paths that it covers. */
    size_t cover = 0;
    for (size_t i = 1; i < claims.len && !full(c); i++) {
        if (strcmp(claims.at[i].doc, claims.at[cover].doc) == 0 &&
            stet_path_is_prefix(claims.at[cover].path, claims.at[i].path)) {
            size_t mark = enter_str(c, "nodes");
            enter_index(c, claims.at[i].node);
            enter_str(c, "output");
            problem(c, "give each its own cell, or separate keys of one",
                    "nodes \"%s\" and \"%s\" write to the same cell", p->nodes[claims.at[cover].node].id,
                    p->nodes[claims.at[i].node].id);
            leave(c, mark);
        } else {
            cover = i;
        }
    }
    stet_vec_release(&claims);
}

static void check_argument(checker *c, stet_value root) {
    stet_value argument;
    if (!stet_value_find(root, "argument", 8, &argument))
        return;
    size_t mark = enter_str(c, "argument");
    if (check_type(c, argument, STET_TYPE_OBJECT, "\"argument\"", "write {\"default\": VALUE, \"schema\": SCHEMA}")) {
        stet_pattern *p = c->p;
        check_members(c, argument, "\"argument\"", " default schema description ");
        p->has_argument_default = stet_value_find(argument, "default", 7, &p->argument_default);
        check_schema_member(c, argument, "schema", &p->argument_schema);
    }
    leave(c, mark);
}

void pattern_check_root(checker *c, stet_value root) {
    stet_pattern *p = c->p;
    stet_value v;
    if (!check_type(c, root, STET_TYPE_OBJECT, "a pattern", "write {\"pattern\": 1, \"name\": ..., \"nodes\": [...]}"))
        return;
    check_members(c, root, "a pattern",
                  " $schema pattern name version title description argument cells nodes result wanted metadata ");
    if (!stet_value_find(root, "pattern", 7, &v) || stet_value_type(v) != STET_TYPE_INT) {
        problem(c, "add \"pattern\": 1", "it does not say which version of the pattern format it is in");
    } else if (stet_value_as_int(v) != STET_PATTERN_FORMAT) {
        size_t mark = enter_str(c, "pattern");
        problem(c, "use a newer stet", "version %lld of the pattern format is not known here: it knows %d",
                (long long)stet_value_as_int(v), STET_PATTERN_FORMAT);
        leave(c, mark);
    }
    p->name = text_member(c, root, "name");
    if (!stet_name_valid(p->name, strlen(p->name))) {
        size_t mark = c->at.len;
        if (stet_value_find(root, "name", 4, NULL))
            enter_str(c, "name");
        problem(c, "add \"name\": letters, digits, \"_\", \"-\" and \".\"",
                p->name[0] ? "\"%s\" is no name" : "it has no name%s", p->name);
        leave(c, mark);
    }
    p->version = text_member(c, root, "version");
    p->title = text_member(c, root, "title");
    check_argument(c, root);
    if (stet_value_find(root, "cells", 5, &v)) {
        size_t mark = enter_str(c, "cells");
        read_cells(c, v);
        leave(c, mark);
    }
    if (stet_value_find(root, "nodes", 5, &v)) {
        size_t mark = enter_str(c, "nodes");
        if (check_type(c, v, STET_TYPE_ARRAY, "\"nodes\"", "write an array of nodes")) {
            if (stet_value_count(v) > STET_PATTERN_MAX_NODES)
                problem(c, "split it into several patterns", "%zu nodes, more than the %d allowed", stet_value_count(v),
                        STET_PATTERN_MAX_NODES);
            else
                read_node_ids(c, v);
        }
        bool aligned = p->node_count == stet_value_count(v);
        for (int pass = 0; aligned && pass < 2; pass++) {
            for (size_t i = 0; i < p->node_count && !full(c); i++) {
                size_t inner = enter_index(c, i);
                if (pass == 0)
                    read_output(c, &p->nodes[i]);
                else
                    check_node(c, &p->nodes[i]);
                leave(c, inner);
            }
        }
        leave(c, mark);
        if (aligned)
            check_claims(c);
    }
    if (stet_value_find(root, "result", 6, &v)) {
        size_t mark = enter_str(c, "result");
        /* Names that were refused above would only appear as dangling references here. */
        if (stet_value_count(c->problems) == 0)
            check_binding(c, v, "result");
        p->result = v;
        leave(c, mark);
    }
    if (stet_value_find(root, "wanted", 6, &v)) {
        size_t mark = enter_str(c, "wanted");
        p->wants_all = stet_value_type(v) == STET_TYPE_STRING && strcmp(stet_value_as_string(&v, NULL), "all") == 0;
        if (!p->wants_all)
            problem(c, "write \"wanted\": \"all\", or leave it out", "what is wanted is the result, or \"all\"");
        leave(c, mark);
    }
}
