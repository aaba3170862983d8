/* pattern_toml_files.c - turns file names of a stet.toml node into bindings, one producer per file. */

#include "graph/pattern_toml_internal.h"
#include "os/file.h"

#include <stdio.h>
#include <string.h>

#include "files/glob.h"
#include "files/meet.h"
#include "files/path.h"
#include "graph/pattern_each.h"

static stet_value link_to(const char *prefix, const char *path) {
    stet_buf id = STET_BUF(0);
    stet_buf_str(&id, prefix);
    stet_path_escape(path, &id);
    stet_value r = stet_file_link(stet_buf_cstr(&id));
    stet_buf_release(&id);
    return r;
}

/* {"$": "NODE/files/NAME"} */
static stet_value file_of_node(const stet_value *node, const stet_value *name) {
    stet_buf b = STET_BUF(0);
    size_t len;
    stet_buf_str(&b, stet_value_as_string(node, NULL));
    stet_buf_str(&b, "/files/");
    const char *s = stet_value_as_string(name, &len);
    for (size_t i = 0; i < len; i++) {
        if (s[i] == '~' || s[i] == '/')
            stet_buf_str(&b, s[i] == '~' ? "~0" : "~1");
        else
            stet_buf_char(&b, s[i]);
    }
    stet_value r = toml_reference(b.data, b.len);
    stet_buf_release(&b);
    return r;
}

/* The binding of a file that another node produces: the file, or the files of all its commands. */
static stet_value made_by(const toml_produced *p, const char *matching) {
    return p->each ? stet_pattern_each_files(stet_value_as_string(&p->node, NULL), stet_value_as_string(&p->name, NULL),
                                             matching)
                   : file_of_node(&p->node, &p->name);
}

/* A path of the pattern file, relative to the project. Caller frees; NULL after a problem. */
static char *normal(toml_converter *c, const char *text) {
    char *path;
    stet_error err = STET_ERROR_INIT;
    if (stet_path_meant(c->project, "", text, &path, &err) == STET_OK)
        return path;
    toml_problem(c, "write a path of a file, relative to the project", "%s", err.message);
    stet_error_clear(&err);
    return NULL;
}

/* Do links decide what the path means, because ".." follows one? */
static bool is_linked(const toml_converter *c, const char *text) {
    size_t n = stet_path_before_up(text);
    char *dir = n ? stet_strndup(text, n) : NULL, *way = dir && c->project ? stet_path_detour(c->project, dir) : NULL;
    bool linked = way != NULL;
    stet_free(way);
    stet_free(dir);
    return linked;
}

static bool is_this_file(const toml_converter *c, const char *path) {
    char *full = c->project ? stet_file_join(c->project, path) : stet_strdup(path);
    bool same = strcmp(full, c->file) == 0 || toml_is_source(c, full);
    stet_free(full);
    return same;
}

static void name_key(stet_buf *key, const char *node, size_t node_len, const char *name, size_t len) {
    stet_buf_add(key, node, node_len);
    stet_buf_char(key, '/'); /* no name of a node contains it */
    stet_buf_add(key, name, len);
}

static stet_slot *find_name(toml_converter *c, const char *node, size_t node_len, const char *name, size_t len) {
    stet_buf key = STET_BUF(0);
    name_key(&key, node, node_len, name, len);
    stet_slot *slot = stet_map_get(&c->names, key.data, key.len);
    stet_buf_release(&key);
    return slot;
}

/* Adds an output that is named by its node, unless the list makes an exception of it. */
static void add_made(toml_converter *c, size_t out, const char *node, size_t node_len, const char *wanted,
                     const char *id, stet_value *list) {
    const toml_produced *p = &c->outs.at[out];
    if (c->except && !p->each && !stet_glob_match(c->except, p->path))
        return;
    toml_waits(c, id, node, node_len, wanted, p->path);
    stet_value_push(list, made_by(p, p->each ? c->except : NULL));
}

/* Adds the file NAME of a node to `list`, or those of all its instances. */
static void add_node_file(toml_converter *c, const char *text, size_t dot, size_t len, const char *id,
                          stet_value *list) {
    const char *name = text + dot + 1;
    stet_slot *slot = find_name(c, text, dot, name, len - dot - 1);
    stet_value group = stet_value_null();
    if (slot) {
        add_made(c, slot->n, text, dot, text - 1, id, list);
        return;
    }
    bool many = stet_value_find(c->groups, text, dot, &group), found = true;
    for (size_t i = 0; i < stet_value_count(group) && found; i++) {
        stet_value one = stet_value_at(group, i);
        size_t n;
        const char *instance = stet_value_as_string(&one, &n);
        slot = find_name(c, instance, n, name, len - dot - 1);
        found = slot != NULL;
        if (found)
            add_made(c, slot->n, instance, n, text - 1, id, list);
    }
    if (!many || !found)
        toml_problem(c, "name one of its `produces`", "node \"%.*s\" produces no file \"%.*s\"", (int)dot, text,
                     (int)(len - dot - 1), name);
}

/* "$NODE.NAME": takes the longest node name that matches. `sole`: nothing else is in the list. */
static void node_file(toml_converter *c, const char *text, size_t len, const char *id, bool sole, stet_value *list) {
    for (size_t dot = len; dot-- > 1;)
        if (text[dot] == '.' && stet_value_find(c->nodes, text, dot, NULL)) {
            add_node_file(c, text, dot, len, id, list);
            return;
        }
    for (size_t dot = len; dot-- > 1;)
        if (text[dot] == '.' && stet_value_find(c->absent, text, dot, NULL)) {
            if (sole)
                toml_problem(c, "give this node the same `when`, or write a list: what is left out is left out of it",
                             "node \"%.*s\" is left out: its `when` is false", (int)dot, text);
            return;
        }
    toml_problem(c, "write \"$NODE.FILE\", with a node of this file and a name of its `produces`",
                 "\"$%.*s\" names no node", (int)(len < 200 ? len : 200), text);
}

static bool is_of(const toml_produced *p, const char *id) {
    return strcmp(stet_value_as_string(&p->node, NULL), id) == 0;
}

/* Binds an output that `wanted` may include. `matching` NULL: the output itself is wanted. */
static void bind_output(toml_converter *c, const toml_produced *p, const char *wanted, const char *matching,
                        const char *id, stet_value *list) {
    size_t len;
    const char *writer = stet_value_as_string(&p->node, &len);
    stet_value binding = made_by(p, matching);
    if (matching && !p->each) {
        stet_value v = stet_value_object();
        stet_value_put(&v, "made", binding);
        stet_value_put(&v, "matching", stet_value_string(matching));
        binding = v;
    }
    stet_value_push(list, binding);
    if (!p->each || !matching || stet_glob_is(wanted)) /* otherwise it is only possible */
        toml_waits(c, id, writer, len, wanted, p->path);
}

/* Which nodes with `each` produce what `wanted` names is known only after they have run: the reader waits for them. */
static void each_file(toml_converter *c, const char *wanted, bool pattern, const char *matching, const char *id,
                      stet_value *list) {
    for (size_t i = 0; i < c->eaches.len; i++) {
        const toml_produced *p = &c->outs.at[c->eaches.at[i]];
        if (!is_of(p, id) && stet_path_meets(p->shape ? p->shape : p->path, wanted, pattern))
            bind_output(c, p, wanted, matching, id, list);
    }
}

/* Reports a node that reads a directory in which it writes: the directory would change with each run, without end. */
static void own_inside(toml_converter *c, const toml_produced *p, const char *dir, const char *id) {
    toml_problem(c, "let it write elsewhere, or name the files that it reads, by a pattern for example",
                 "node \"%s\" reads the directory \"%.100s\", and its own output \"%.100s\" lies in it", id, dir,
                 p->path);
}

/* A path that is not the output of a node may be part of an output that is a directory, or a directory that contains
 * outputs. */
static void bind_around(toml_converter *c, const char *path, const char *id, stet_value *list) {
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        stet_slot *slot = stet_map_get(&c->paths, path, (size_t)(slash - path));
        if (slot && !c->outs.at[slot->n].each && !is_of(&c->outs.at[slot->n], id))
            bind_output(c, &c->outs.at[slot->n], path, "", id, list);
    }
    size_t len = strlen(path);
    for (size_t i = 0; stet_map_get(&c->above, path, len) && i < c->outs.len; i++) {
        const toml_produced *p = &c->outs.at[i];
        if (p->each || strncmp(p->path, path, len) != 0 || p->path[len] != '/')
            continue;
        if (is_of(p, id))
            own_inside(c, p, path, id);
        else
            bind_output(c, p, path, "", id, list);
    }
    for (size_t i = 0; i < c->eaches.len; i++) {
        const toml_produced *p = &c->outs.at[c->eaches.at[i]];
        if (is_of(p, id) && strncmp(p->path, path, len) == 0 && p->path[len] == '/')
            own_inside(c, p, path, id);
    }
}

/* Converts one entry of `files` and adds its bindings to `list`. */
static void file_binding(toml_converter *c, stet_value v, const char *id, bool sole, stet_value *list) {
    size_t len;
    if (stet_value_type(v) != STET_TYPE_STRING) {
        toml_problem(c, "write a path, a pattern of paths, or \"$NODE.FILE\"", "a file is given by a string");
        return;
    }
    const char *s = stet_value_as_string(&v, &len);
    if (len > 1 && s[0] == '$') {
        node_file(c, s + 1, len - 1, id, sole, list);
        return;
    }
    if (strlen(s) != len) {
        toml_problem(c, "remove it", "a NUL character in a path");
        return;
    }
    if (!stet_glob_is(s)) {
        char *path = normal(c, s);
        if (path && c->except && !stet_glob_match(c->except, path)) {
            stet_free(path);
            return;
        }
        if (!path)
            return;
        stet_slot *slot = stet_map_get(&c->paths, path, strlen(path));
        bool linked = is_linked(c, s);
        if (linked) /* as written: its links are resolved at every scan */
            stet_value_push(list, link_to(STET_FILE_PREFIX, s));
        if (slot && !c->outs.at[slot->n].each) {
            bind_output(c, &c->outs.at[slot->n], path, linked ? "" : NULL, id, list);
        } else {
            if (!linked)
                stet_value_push(list, link_to(STET_FILE_PREFIX, path));
            bind_around(c, path, id, list);
        }
        if (!slot)
            each_file(c, path, false, linked ? "" : path, id, list);
        stet_free(path);
        return;
    }
    stet_error err = STET_ERROR_INIT;
    while (s[0] == '.' && s[1] == '/')
        s += 2;
    stet_buf whole = STET_BUF(0);
    stet_buf_str(&whole, s);
    stet_buf_str(&whole, c->except ? c->except : "");
    s = stet_buf_cstr(&whole);
    if (stet_glob_check(s, &err) != STET_OK) {
        toml_problem(c, "write a pattern such as \"src/*.c\" or \"data/**/*.csv\"", "%s", err.message);
        stet_error_clear(&err);
        stet_buf_release(&whole);
        return;
    }
    stet_value_push(list, link_to(STET_GLOB_PREFIX, s));
    for (size_t i = 0; i < c->outs.len; i++) {
        const toml_produced *p = &c->outs.at[i];
        if (!p->each && !is_of(p, id) && (stet_glob_match(s, p->path) || stet_glob_below(s, p->path)))
            bind_output(c, p, s, s, id, list);
    }
    each_file(c, s, true, s, id, list);
    stet_buf_release(&whole);
}

static bool is_except(stet_value v) {
    return stet_value_type(v) == STET_TYPE_STRING && *stet_value_as_string(&v, NULL) == '!';
}

/* What the list leaves out: "!PATTERN", for all that is in it. As exceptions of a pattern; caller frees. NULL: nothing. */
static char *except_of(toml_converter *c, stet_value list) {
    stet_buf out = STET_BUF(0);
    bool rest = false;
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value v = stet_value_at(list, i);
        stet_error err = STET_ERROR_INIT;
        rest |= !is_except(v);
        if (!is_except(v))
            continue;
        size_t len;
        const char *s = stet_value_as_string(&v, &len) + 1, *wrong = strlen(s) + 1 != len ? "a NUL character" : NULL;
        while (s[0] == '.' && s[1] == '/')
            s += 2;
        if (!wrong && (strchr(s, STET_GLOB_EXCEPT) || stet_glob_check(s, &err) != STET_OK))
            wrong = err.status != STET_OK ? err.message : "a control character in a pattern";
        if (wrong)
            toml_problem(c, "write what is left out as a pattern, such as \"!src/gen.c\" or \"!src/gen/**\"", "%s",
                         wrong);
        else
            stet_buf_printf(&out, STET_GLOB_EXCEPTS "%s", s);
        stet_error_clear(&err);
    }
    if (out.len && !rest)
        toml_problem(c, "begin with what is taken in: [\"src/*.c\", \"!src/gen.c\"]",
                     "the list only says what is left out");
    char *made = out.len ? stet_buf_take(&out, NULL) : NULL;
    stet_buf_release(&out);
    return made;
}

/* Converts to {NAME: ...}; a single string or list is named "in". */
void toml_convert_files(toml_converter *c, const char *member, stet_value files, const char *id, stet_value *inputs,
                        stet_value *names) {
    bool table = stet_value_type(files) == STET_TYPE_OBJECT;
    size_t mark = toml_enter(c, member, strlen(member));
    for (size_t i = 0; i < (table ? stet_value_count(files) : 1); i++) {
        size_t len = 2;
        const char *key = table ? stet_value_key_at(files, i, &len) : "in";
        stet_value v = table ? stet_value_at(files, i) : files, list = stet_value_array();
        size_t inner = table ? toml_enter(c, key, len) : c->at.len;
        if (!stet_name_valid(key, len))
            toml_problem(c, "use letters, digits, \"_\", \"-\" and \".\"", "\"%.100s\" is no name for a file", key);
        if (stet_value_find(*inputs, key, len, NULL)) {
            toml_problem(c, "give one of them another name", "there is an input \"%.100s\" already", key);
            stet_value_remove(inputs, key, len);
        }
        if (is_except(v))
            toml_problem(c,
                         "write a list: [\"src/*.c\", \"!src/gen.c\"]; a file whose name begins with ! is \"./!NAME\"",
                         "\"!\" begins what is left out of a list");
        char *except = stet_value_type(v) == STET_TYPE_ARRAY ? except_of(c, v) : NULL;
        c->except = except;
        for (size_t k = 0; stet_value_type(v) == STET_TYPE_ARRAY && k < stet_value_count(v); k++)
            if (!is_except(stet_value_at(v, k)))
                file_binding(c, stet_value_at(v, k), id, false, &list);
        if (stet_value_type(v) != STET_TYPE_ARRAY && !is_except(v))
            file_binding(c, v, id, true, &list);
        c->except = NULL;
        stet_free(except);
        bool many = stet_value_type(v) == STET_TYPE_ARRAY || stet_value_count(list) != 1;
        stet_value_put_n(inputs, key, len, many ? stet_value_retain(list) : stet_value_retain(stet_value_at(list, 0)));
        stet_value_push(names, stet_value_string_n(key, len));
        stet_value_release(list);
        toml_leave(c, inner);
    }
    toml_leave(c, mark);
}

/* Is the text from `place` to `close` "{NAME}" or "{NAME.PART}" of a file that `files` (or `each`) names? */
static bool names_file(stet_value files, const char *place, const char *close, bool *whole_or_part) {
    bool table = stet_value_type(files) == STET_TYPE_OBJECT;
    for (size_t i = 0; i < (table ? stet_value_count(files) : 1); i++) {
        size_t len = 2;
        const char *name = table ? stet_value_key_at(files, i, &len) : "in", *after = place + 1 + len;
        if (after > close || memcmp(place + 1, name, len) != 0 || (*after != '.' && after != close))
            continue;
        stet_buf part = STET_BUF(0);
        *whole_or_part = after == close || stet_path_part("x", after + 1, (size_t)(close - after) - 1, &part);
        stet_buf_release(&part);
        return true;
    }
    return false;
}

/* Checks that a path of `produces` is made only from the file that `each` names. */
static bool check_places(toml_converter *c, stet_value node, const char *text) {
    stet_value files = stet_value_null();
    bool many = stet_value_find(node, "each", 4, &files), any = false, known;
    if (!many && !stet_value_find(node, "files", 5, &files))
        return true;
    for (const char *p = text, *close; (p = strchr(p, '{')) != NULL && (close = strchr(p, '}')) != NULL; p++) {
        if (!names_file(files, p, close, &known))
            continue;
        any |= known;
        if (many == known)
            continue;
        if (many)
            toml_problem(c, "write {NAME.stem}, {NAME.name}, {NAME.ext} or {NAME.dir}", "\"%.*s\" is no part of a path",
                         (int)(close - p) + 1, p);
        else
            toml_problem(c, "write the path, or `each` in place of `files`",
                         "\"%.*s\" in a path that is produced is for nodes with `each`", (int)(close - p) + 1, p);
        return false;
    }
    if (many && !any)
        toml_problem(c, "make it from the file, as in \"build/{in.stem}.o\"",
                     "every command of the node would write \"%.200s\"", text);
    return many == any;
}

/* Adds an output. Takes over `path`. */
static void add_output(toml_converter *c, const char *id, size_t len, const char *name, size_t name_len, char *path,
                       bool each) {
    stet_buf key = STET_BUF(0);
    name_key(&key, id, len, name, name_len);
    stet_map_put(&c->names, key.data, key.len, (stet_slot){.n = c->outs.len});
    stet_buf_release(&key);
    if (!stet_map_get(&c->firsts, id, len))
        stet_map_put(&c->firsts, id, len, (stet_slot){.n = c->outs.len});
    stet_map_put(&c->paths, path, strlen(path), (stet_slot){.n = c->outs.len});
    if (each)
        *stet_vec_add(&c->eaches) = c->outs.len;
    for (const char *slash = strchr(path, '/'); slash && !each; slash = strchr(slash + 1, '/'))
        stet_map_put(&c->above, path, (size_t)(slash - path), (stet_slot){.n = 1});
    *stet_vec_add(&c->outs) =
        (toml_produced){stet_value_string_n(id, len), stet_value_string_n(name, name_len), path, each, NULL, NULL};
}

/* Does a path or pattern that a node reads include what is made from `text`? */
static bool is_wanted(toml_converter *c, const char *text) {
    static const char *const members[] = {"files", "each"};
    for (size_t i = 0; i < stet_value_count(c->nodes); i++)
        for (int m = 0; m < 2; m++) {
            stet_value v = stet_value_get(stet_value_at(c->nodes, i), members[m]);
            bool table = stet_value_type(v) == STET_TYPE_OBJECT;
            for (size_t k = 0; k < (table ? stet_value_count(v) : 1); k++) {
                stet_value one = table ? stet_value_at(v, k) : v;
                bool list = stet_value_type(one) == STET_TYPE_ARRAY;
                for (size_t j = 0; j < (list ? stet_value_count(one) : 1); j++) {
                    stet_value item = list ? stet_value_at(one, j) : one;
                    const char *s = stet_value_type(item) == STET_TYPE_STRING ? stet_value_as_string(&item, NULL) : "";
                    while (s[0] == '.' && s[1] == '/')
                        s += 2;
                    if (*s && *s != '$' && *s != '!' && stet_path_meets(text, s, stet_glob_is(s)))
                        return true;
                }
            }
        }
    return false;
}

static void take_word(toml_converter *c, size_t node, const char *at, size_t len) {
    stet_buf word = STET_BUF(0);
    bool wide = false, literal = false;
    while (len > 2 && at[0] == '.' && at[1] == '/')
        at += 2, len -= 2;
    for (size_t i = 0; i < len; i++) {
        const char *end = at[i] == '{' ? memchr(at + i, '}', len - i) : NULL;
        wide = wide || end || strchr("*?[", at[i]);
        literal = literal || (!end && !strchr("*/", at[i]));
        stet_buf_char(&word, end ? '*' : at[i]);
        i = end ? (size_t)(end - at) : i;
    }
    if (literal && wide) {
        *stet_vec_add(&c->wide_words) = (toml_word){stet_strdup(stet_buf_cstr(&word)), node};
    } else if (literal) {
        bool added;
        stet_slot *slot = stet_map_have(&c->words, word.data, word.len, (stet_slot){.n = node + 1}, &added);
        if (!added && slot->n != node + 1)
            slot->n = 0;
    }
    stet_buf_release(&word);
}

static void take_words(toml_converter *c) {
    static const char between[] = " \t\n\"'`|&;<>()=,:$";
    c->has_words = true;
    for (size_t i = 0; i < stet_value_count(c->nodes); i++) {
        stet_value command = stet_value_get(stet_value_at(c->nodes, i), "command");
        bool list = stet_value_type(command) == STET_TYPE_ARRAY;
        for (size_t k = 0; k < (list ? stet_value_count(command) : 1); k++) {
            stet_value one = list ? stet_value_at(command, k) : command;
            const char *s = stet_value_type(one) == STET_TYPE_STRING ? stet_value_as_string(&one, NULL) : "";
            for (size_t n; *s; s += n) {
                s += strspn(s, between);
                n = strcspn(s, between);
                if (n)
                    take_word(c, i, s, n);
            }
        }
    }
}

/* Does the command of a node other than `own` name what is made from `text`, or a directory around it? */
static bool is_named(toml_converter *c, size_t own, const char *text) {
    if (!c->has_words)
        take_words(c);
    for (const char *end = text + strcspn(text, "/");; end += 1 + strcspn(end + 1, "/")) {
        const stet_slot *slot = stet_map_get(&c->words, text, (size_t)(end - text));
        if (slot && slot->n != own + 1)
            return true;
        if (!*end)
            break;
    }
    for (size_t i = 0; i < c->wide_words.len; i++)
        if (c->wide_words.at[i].node != own && stet_path_meets(text, c->wide_words.at[i].text, true))
            return true;
    if (!strchr(text, '{'))
        return false;
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&c->words, &i, &key, &len, &slot);) {
        char *word = stet_strndup(key, len);
        bool meets = slot->n != own + 1 && stet_path_meets(text, word, false);
        stet_free(word);
        if (meets)
            return true;
    }
    return false;
}

/* A dependency file that another node reads is an output like others, and is restored with them. */
static void collect_depfile(toml_converter *c, size_t number) {
    size_t len;
    const char *id = stet_value_key_at(c->nodes, number, &len);
    stet_value node = stet_value_at(c->nodes, number);
    stet_value depfile = stet_value_get(node, "depfile");
    const char *text = stet_value_type(depfile) == STET_TYPE_STRING ? stet_value_as_string(&depfile, NULL) : NULL;
    stet_error none = STET_ERROR_INIT;
    char *path;
    if (!text || stet_path_normal(NULL, "", text, &path, &none) != STET_OK) {
        stet_error_clear(&none);
        return; /* the module of the command reports what is wrong */
    }
    if (!stet_map_get(&c->paths, path, strlen(path)) && !find_name(c, id, len, "depfile", 7) &&
        (is_wanted(c, path) || is_named(c, number, path)))
        add_output(c, id, len, "depfile", 7, path, stet_value_find(node, "each", 4, NULL));
    else
        stet_free(path);
}

/* A directory belongs to its node as a whole: it is removed and made as one. */
static void check_inside(toml_converter *c, const toml_produced *p) {
    for (const char *slash = strchr(p->path, '/'); slash && !p->each; slash = strchr(slash + 1, '/')) {
        stet_slot *slot = stet_map_get(&c->paths, p->path, (size_t)(slash - p->path));
        const toml_produced *other = slot ? &c->outs.at[slot->n] : NULL;
        if (!other || other->each || stet_value_equal(other->node, p->node))
            continue;
        toml_problem(c, "let one of them write elsewhere",
                     "\"%.200s\" lies in \"%.200s\", which node \"%s\" produces as a whole", p->path, other->path,
                     stet_value_as_string(&other->node, NULL));
        return;
    }
}

static bool is_text(stet_value v, const char *text) {
    return strcmp(stet_value_as_string(&v, NULL), text) == 0;
}

void toml_collect_produced(toml_converter *c) {
    for (size_t i = 0; i < stet_value_count(c->nodes); i++) {
        size_t len;
        const char *id = stet_value_key_at(c->nodes, i, &len);
        stet_value produces, node = stet_value_at(c->nodes, i);
        if (stet_value_type(node) != STET_TYPE_OBJECT)
            continue;
        if (!stet_value_find(node, "produces", 8, &produces)) {
            collect_depfile(c, i);
            continue;
        }
        bool table = stet_value_type(produces) == STET_TYPE_OBJECT,
             array = stet_value_type(produces) == STET_TYPE_ARRAY;
        toml_leave(c, 0);
        toml_enter(c, "nodes", 5);
        toml_enter(c, id, len);
        toml_enter(c, "produces", 8);
        for (size_t k = 0; k < (table || array ? stet_value_count(produces) : 1); k++) {
            size_t name_len = 3;
            char number[24];
            snprintf(number, sizeof number, "%zu", k);
            const char *name = table ? stet_value_key_at(produces, k, &name_len) : array ? number : "out";
            if (array)
                name_len = strlen(number);
            stet_value v = table || array ? stet_value_at(produces, k) : produces;
            size_t mark = table ? toml_enter(c, name, name_len) : c->at.len;
            size_t path_len;
            const char *text = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &path_len) : NULL;
            if (!stet_name_valid(name, name_len))
                toml_problem(c, "use letters, digits, \"_\", \"-\" and \".\"", "\"%.100s\" is no name for a file",
                             name);
            else if (!text || strlen(text) != path_len)
                toml_problem(c, "write a path", "a file that is produced is given by a string");
            else if (stet_glob_is(text))
                toml_problem(c, "name each file, or produce a directory",
                             "\"%.200s\": what a node produces is named, not searched for", text);
            else if (check_places(c, node, text)) {
                char *path = normal(c, text);
                stet_slot *other = path ? stet_map_get(&c->paths, path, strlen(path)) : NULL;
                bool each = stet_value_find(node, "each", 4, NULL);
                /* Two nodes with `each` may have one text: their files differ (pattern_toml_beside.c). */
                if (other && !(each && c->outs.at[other->n].each && !is_text(c->outs.at[other->n].node, id))) {
                    toml_problem(c, "let one of them write another file",
                                 "\"%.200s\" is produced by node \"%s\" as well", text,
                                 stet_value_as_string(&c->outs.at[other->n].node, NULL));
                    stet_free(path);
                } else if (path && is_this_file(c, path)) {
                    toml_problem(c, "let it write another file", "\"%.200s\" is the file that says so", text);
                    stet_free(path);
                } else if (path) {
                    add_output(c, id, len, name, name_len, path, stet_value_find(node, "each", 4, NULL));
                    c->outs.at[c->outs.len - 1].written = is_linked(c, text) ? stet_strdup(text) : NULL;
                }
            }
            toml_leave(c, mark);
        }
        collect_depfile(c, i);
    }
    for (size_t i = 0; i < c->outs.len; i++) {
        size_t len;
        const char *id = stet_value_as_string(&c->outs.at[i].node, &len);
        toml_leave(c, 0);
        toml_enter(c, "nodes", 5);
        toml_enter(c, id, len);
        toml_enter(c, "produces", 8);
        check_inside(c, &c->outs.at[i]);
    }
    toml_leave(c, 0);
    toml_shape_outputs(c);
}

void toml_convert_produces(toml_converter *c, stet_value id, stet_value *module) {
    stet_value made = stet_value_object();
    size_t id_len;
    const char *id_text = stet_value_as_string(&id, &id_len);
    stet_slot *first = stet_map_get(&c->firsts, id_text, id_len);
    for (size_t i = first ? first->n : c->outs.len; i < c->outs.len && stet_value_equal(c->outs.at[i].node, id); i++) {
        size_t len;
        const char *name = stet_value_as_string(&c->outs.at[i].name, &len);
        const char *written = c->outs.at[i].written;
        stet_value_put_n(&made, name, len, stet_value_string(written ? written : c->outs.at[i].path));
    }
    stet_value_put(module, "produces", made);
}

void toml_release_files(toml_converter *c) {
    for (size_t i = 0; i < c->outs.len; i++) {
        stet_value_release(c->outs.at[i].node);
        stet_value_release(c->outs.at[i].name);
        stet_free(c->outs.at[i].path);
        stet_free(c->outs.at[i].shape);
        stet_free(c->outs.at[i].written);
    }
    stet_vec_release(&c->outs);
    stet_vec_release(&c->eaches);
    for (size_t i = 0; i < c->wide_words.len; i++)
        stet_free(c->wide_words.at[i].text);
    stet_vec_release(&c->wide_words);
    stet_map_release(&c->words);
    stet_map_release(&c->above);
    stet_map_release(&c->paths);
    stet_map_release(&c->names);
    stet_map_release(&c->firsts);
}
