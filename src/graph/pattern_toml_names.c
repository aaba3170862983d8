/* pattern_toml_names.c - fills {name} in: what vars, matrix, foreach, parameters and variables stand for.
 *
 *   N1. A name is looked for among the values of `matrix` and `foreach`, then the vars of the node and its template, then
 *       [vars], then parameters ({params.KEY}) and the file of variables ({env.NAME}). {a.b} is the member b of a.
 *   N2. What is filled in is data: names in it are not filled in again. Vars are filled in before they are used.
 *   N3. A node gets the values of the names that it uses, and no others: so only what it uses counts for it.
 *   N4. In a command the names that it uses are handed on with it, and are filled in when it runs, quoted for the shell.
 */

#include "graph/pattern_toml_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/suggest.h"
#include "files/path.h"

#define MAX_NESTED 50 /* vars that use vars; tables and lists within each other */

static bool is_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

/* Could it be meant as a name? Braces around anything else are left alone. */
static bool is_name(const char *s, size_t len) {
    if (len == 0 || len > STET_PATTERN_MAX_NAME || !is_letter(*s) || s[len - 1] == '.')
        return false;
    for (size_t i = 1; i < len; i++)
        if (!is_letter(s[i]) && !(s[i] >= '0' && s[i] <= '9') && s[i] != '-' && s[i] != '.')
            return false;
    return true;
}

/* The part of a value at "KEY.KEY.0"; at each step the longest key that is there. */
static bool dig(stet_value v, const char *name, size_t len, stet_value *out) {
    while (len > 0) {
        size_t end = len;
        stet_value next = stet_value_null();
        bool found = false;
        if (stet_value_type(v) == STET_TYPE_ARRAY) {
            size_t index = 0;
            end = 0;
            while (end < len && end < 9 && name[end] >= '0' && name[end] <= '9')
                index = index * 10 + (size_t)(name[end++] - '0');
            found = end > 0 && (end == len || name[end] == '.') && index < stet_value_count(v);
            next = stet_value_at(v, index);
        }
        for (; stet_value_type(v) == STET_TYPE_OBJECT && end > 0 && !found; end--) {
            found = (end == len || name[end] == '.') && stet_value_find(v, name, end, &next);
            if (found)
                break;
        }
        if (!found)
            return false;
        v = next;
        name += end;
        len -= end;
        if (len > 0) {
            name++;
            len--;
        }
    }
    *out = v;
    return true;
}

/* The longest name among [vars] that `name` begins with. */
static const char *var_of(const toml_converter *c, const char *name, size_t len) {
    for (size_t end = len; end > 0; end--) {
        stet_value v;
        if ((end != len && name[end] != '.') || !stet_value_find(c->vars, name, end, &v))
            continue;
        for (size_t low = 0, high = stet_value_count(c->vars); low < high;) {
            size_t middle = low + (high - low) / 2, key_len;
            const char *key = stet_value_key_at(c->vars, middle, &key_len);
            int d = strncmp(key, name, end);
            if (d == 0 && key_len == end)
                return key;
            if (d < 0)
                low = middle + 1;
            else
                high = middle;
        }
    }
    return NULL;
}

/* Fills the names in one of [vars] in, if that was not done yet. */
static void fill_var(toml_converter *c, const char *key) {
    size_t len = strlen(key), open = 0;
    if (stet_value_find(c->filled, key, len, NULL))
        return;
    while (open < c->filling.len && strcmp(c->filling.at[open], key) != 0)
        open++;
    /* The problem is about this one, wherever it is used. */
    stet_buf at = c->at;
    size_t in = c->in;
    bool expanding = c->expanding;
    c->at = (stet_buf)STET_BUF(STET_PATH_MAX_BYTES);
    c->in = toml_file_of(c, "vars", key, len);
    c->expanding = true;
    toml_enter(c, "vars", 4);
    toml_enter(c, key, len);
    stet_value v = stet_value_null();
    if (open < c->filling.len) {
        stet_buf said = STET_BUF(700);
        for (size_t i = open; i < c->filling.len; i++)
            stet_buf_printf(&said, "\"%.100s\" uses ", c->filling.at[i]);
        toml_problem(c, "let one of them be a value", "vars use each other in a circle: %s\"%.100s\"",
                     stet_buf_cstr(&said), key);
        stet_buf_release(&said);
    } else if (c->filling.len >= MAX_NESTED) {
        toml_problem(c, "use fewer", "more than %d vars that use each other", MAX_NESTED);
    } else {
        *stet_vec_add(&c->filling) = key;
        v = toml_fill(c, &(toml_scope){0}, stet_value_get(c->vars, key), TOML_FILL_STRICT);
        c->filling.len--;
    }
    if (!stet_value_find(c->filled, key, len, NULL))
        stet_value_put_n(&c->filled, key, len, v);
    else
        stet_value_release(v);
    stet_buf_release(&c->at);
    c->at = at;
    c->in = in;
    c->expanding = expanding;
}

bool toml_lookup(toml_converter *c, const toml_scope *s, const char *name, size_t len, stet_value *out) {
    stet_value found;
    const char *var;
    bool is = dig(s->values, name, len, &found) || dig(s->vars, name, len, &found);
    if (!is && (var = var_of(c, name, len)) != NULL) {
        fill_var(c, var);
        is = dig(c->filled, name, len, &found);
    }
    if (!is && len > 7 && strncmp(name, "params.", 7) == 0)
        is = dig(c->params, name + 7, len - 7, &found);
    if (!is && len > 4 && strncmp(name, "env.", 4) == 0)
        is = dig(c->env, name + 4, len - 4, &found);
    if (is)
        *out = stet_value_retain(found);
    return is;
}

static bool has_file(void *ctx, const char *name, size_t len) {
    const toml_scope *s = ctx;
    stet_value file;
    return stet_value_find(s->own, name, len, &file) && stet_value_as_bool(file);
}

/* Is it a name of the node's own, or part of one of its files? */
static bool is_own(const toml_scope *s, const char *name, size_t len) {
    const char *part, *at = memchr(name, '@', len);
    size_t n = at ? (size_t)(at - name) : 0;
    return stet_value_find(s->own, name, len, NULL) || stet_path_place(name, len, has_file, (void *)s, &part) > 0 ||
           (at && has_file((void *)s, name, n) &&
            ((len - n == 5 && memcmp(at, "@list", 5) == 0) || (len - n == 9 && memcmp(at, "@response", 9) == 0)));
}

static void offer(stet_suggest *near, stet_value names) {
    for (size_t i = 0; i < stet_value_count(names); i++) {
        size_t len;
        const char *key = stet_value_key_at(names, i, &len);
        stet_suggest_offer_n(near, key, len);
    }
}

/* Does a short name look like a mistyped one? With three letters or fewer, only a letter too many or two that are
 * swapped: any other short name is near too many. */
static bool is_near(const char *typed, size_t len, const char *meant, size_t meant_len) {
    if (len < 2)
        return false;
    if (len > 3 && meant_len > 2)
        return true;
    if (len == meant_len) /* swapped */
        return len == 2 && typed[0] == meant[1] && typed[1] == meant[0];
    if (len != meant_len + 1)
        return false;
    size_t i = 0;
    while (i < meant_len && typed[i] == meant[i])
        i++;
    return memcmp(typed + i + 1, meant + i, meant_len - i) == 0;
}

/* What a name that stands for nothing may have been meant to be. False: nothing is near. */
static bool find_near(const toml_converter *c, const toml_scope *s, const char *name, size_t len, char out[300]) {
    const char *dot = memchr(name, '.', len);
    size_t first = dot ? (size_t)(dot - name) : len;
    stet_suggest near = stet_suggest_begin_n(name, first);
    offer(&near, s->own);
    offer(&near, s->values);
    offer(&near, s->vars);
    offer(&near, c->vars);
    if (near.best && is_near(name, first, near.best, near.best_len)) {
        snprintf(out, 300, "did you mean {%.*s%.*s}?", (int)near.best_len, near.best,
                 (int)(len - first < 100 ? len - first : 100), name + first);
        return true;
    }
    return false;
}

static bool is_part_of_own(const toml_scope *s, const char *name, size_t len) {
    const char *dot = memchr(name, '.', len);
    return dot && has_file((void *)s, name, (size_t)(dot - name));
}

/* "params.", "env." and the name of a var with a dot behind it: what comes behind is not there. */
static bool is_within(const toml_converter *c, const toml_scope *s, const char *name, size_t len) {
    const char *dot = memchr(name, '.', len);
    size_t n = dot ? (size_t)(dot - name) : 0;
    return dot && ((n == 6 && memcmp(name, "params", 6) == 0 && stet_value_count(c->params) > 0) ||
                   (n == 3 && memcmp(name, "env", 3) == 0 && stet_value_count(c->env) > 0) ||
                   stet_value_find(s->values, name, n, NULL) || stet_value_find(s->vars, name, n, NULL) ||
                   stet_value_find(c->vars, name, n, NULL));
}

#define LITERAL "%s braces that are meant for the program are written twice, {{%.*s}}"

/* A name that stands for nothing: is that a mistake? Says so. */
static bool is_mistake(toml_converter *c, const toml_scope *s, const char *name, size_t len, bool strict, bool command,
                       bool say) {
    char near[300] = "", fix[700];
    bool part = is_part_of_own(s, name, len), within = is_within(c, s, name, len),
         found = find_near(c, s, name, len, near);
    int shown = (int)(len < 100 ? len : 100);
    if (!strict && !part && !within && !found)
        return false;
    if (!say)
        return true;
    if (part)
        snprintf(fix, sizeof fix, "write {NAME.stem}, {NAME.name}, {NAME.ext} or {NAME.dir}");
    else if (found)
        snprintf(fix, sizeof fix, "%s", near);
    else
        snprintf(fix, sizeof fix, "define it in [vars], or by `matrix`, `foreach` or `params`");
    if (command)
        snprintf(fix + strlen(fix), sizeof fix - strlen(fix), LITERAL, found ? " If not:" : ";", shown, name);
    toml_problem(c, fix, part ? "\"{%.*s}\" is no part of a path" : "{%.*s} stands for nothing", shown, name);
    return true;
}

bool toml_text_of(stet_value v, stet_buf *out) {
    size_t len;
    const char *s;
    switch (stet_value_type(v)) {
    case STET_TYPE_STRING:
        s = stet_value_as_string(&v, &len);
        stet_buf_add(out, s, len);
        return true;
    case STET_TYPE_BOOL:
    case STET_TYPE_INT:
    case STET_TYPE_DOUBLE:
        stet_json_write(out, v, STET_JSON_CANONICAL);
        return true;
    default:
        return false;
    }
}

static void check_braces(toml_converter *c, stet_value v, const char *name, size_t len, unsigned how) {
    size_t n;
    const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &n) : NULL;
    if ((how & TOML_FILL_PATH) && s && (memchr(s, '{', n) || memchr(s, '}', n)))
        toml_problem(c, "use a value without braces",
                     "the value of {%.*s}, \"%.200s\", has braces, and is part of a path", (int)(len < 100 ? len : 100),
                     name, s);
}

/* As a value of a member of its own. */
static stet_value whole(toml_converter *c, stet_value v, const char *name, size_t len, unsigned how) {
    stet_buf text = STET_BUF(0);
    stet_type t = stet_value_type(v);
    if (t == STET_TYPE_ARRAY && (how & (TOML_FILL_TEXT | TOML_FILL_PATH | TOML_FILL_DOLLAR))) {
        stet_value list = stet_value_array();
        for (size_t i = 0; i < stet_value_count(v); i++)
            stet_value_push(&list, whole(c, stet_value_at(v, i), name, len, how));
        return list;
    }
    check_braces(c, v, name, len, how);
    size_t n = 0;
    const char *s = t == STET_TYPE_STRING ? stet_value_as_string(&v, &n) : NULL;
    bool dollar = (how & TOML_FILL_DOLLAR) && n > 1 && s[0] == '$';
    if (dollar)
        stet_buf_char(&text, '$');
    stet_value made = (dollar || (how & TOML_FILL_TEXT)) && toml_text_of(v, &text)
                          ? stet_value_string_n(stet_buf_cstr(&text), text.len)
                          : stet_value_retain(v);
    stet_buf_release(&text);
    return made;
}

/* One place that begins at `p`, with '{': what follows it. NULL: none. `*v` is what it stands for, or the text of an
 * escape (`*literal`). */
static const char *take_place(toml_converter *c, const toml_scope *s, const char *p, const char *end, unsigned how,
                              stet_value *v, bool *literal) {
    const char *name = p + 1, *close = memchr(name, '}', (size_t)(end - name));
    *literal = false;
    if (close && *name == '{' && close + 1 < end && close[1] == '}' && !(how & TOML_FILL_PATH) &&
        is_name(name + 1, (size_t)(close - name) - 1)) { /* {{name}} */
        if (!(how & TOML_FILL_STRICT) && !toml_lookup(c, s, name + 1, (size_t)(close - name) - 1, v))
            return NULL;
        if (!(how & TOML_FILL_STRICT))
            stet_value_release(*v);
        *v = stet_value_string_n(name, (size_t)(close - name) + 1);
        *literal = true;
        return close + 2;
    }
    if (!close || !is_name(name, (size_t)(close - name)))
        return NULL;
    size_t len = (size_t)(close - name);
    bool own = is_own(s, name, len);
    if (own && !(how & TOML_FILL_OWN_LAST))
        return NULL;
    if (toml_lookup(c, s, name, len, v))
        return close + 1;
    if (!own)
        is_mistake(c, s, name, len, how & TOML_FILL_STRICT, false, true);
    return NULL;
}

static stet_value fill_text(toml_converter *c, const toml_scope *s, stet_value text, unsigned how) {
    size_t len;
    const char *p = stet_value_as_string(&text, &len), *begin = p, *end = p + len;
    if (!memchr(p, '{', len))
        return stet_value_retain(text);
    stet_buf out = STET_BUF(0);
    stet_value v = stet_value_null(), made = stet_value_null();
    bool literal, done = false, wrong = false;
    while (p < end && !done) {
        const char *next = *p == '{' ? take_place(c, s, p, end, how, &v, &literal) : NULL;
        if (!next) {
            stet_buf_char(&out, *p++);
            continue;
        }
        size_t name_len = (size_t)(next - p) - 2;
        if (p == begin && next == end && !literal) {
            made = whole(c, v, p + 1, name_len, how);
            done = true;
        } else {
            if (!literal)
                check_braces(c, v, p + 1, name_len, how);
            if (!toml_text_of(v, &out) && !wrong) {
                wrong = true;
                bool list = stet_value_type(v) == STET_TYPE_ARRAY;
                toml_problem(c,
                             list ? "write it as a text of its own, or name one element: {NAME.0}"
                                  : "name one of its members: {NAME.KEY}",
                             "{%.*s} is %s, and stands within a text", (int)(name_len < 100 ? name_len : 100), p + 1,
                             list                                     ? "a list"
                             : stet_value_type(v) == STET_TYPE_OBJECT ? "a table"
                                                                      : "null");
            }
        }
        stet_value_release(v);
        v = stet_value_null();
        p = next;
    }
    if (!done) {
        const char *made_text = stet_buf_cstr(&out);
        if ((how & TOML_FILL_DOLLAR) && out.len > 1 && made_text[0] == '$' && *begin != '$') {
            stet_buf with = STET_BUF(0);
            stet_buf_char(&with, '$');
            stet_buf_add(&with, made_text, out.len);
            made = stet_value_string_n(stet_buf_cstr(&with), with.len);
            stet_buf_release(&with);
        } else {
            made = stet_value_string_n(made_text, out.len);
        }
    }
    stet_buf_release(&out);
    return made;
}

static bool has_brace(stet_value v, int depth) {
    size_t len;
    if (stet_value_type(v) == STET_TYPE_STRING) {
        const char *s = stet_value_as_string(&v, &len);
        return memchr(s, '{', len) != NULL;
    }
    for (size_t i = 0; i < stet_value_count(v); i++)
        if (depth >= MAX_NESTED || has_brace(stet_value_at(v, i), depth + 1))
            return true;
    return false;
}

static stet_value fill(toml_converter *c, const toml_scope *s, stet_value v, unsigned how, int depth) {
    stet_type t = stet_value_type(v);
    if (t == STET_TYPE_STRING)
        return fill_text(c, s, v, how);
    if (t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT)
        return stet_value_retain(v);
    if (depth >= MAX_NESTED) {
        toml_problem(c, "write it flatter", "more than %d tables or lists within each other", MAX_NESTED);
        return stet_value_null();
    }
    stet_value made = t == STET_TYPE_ARRAY ? stet_value_array() : stet_value_object();
    for (size_t i = 0; i < stet_value_count(v); i++) {
        stet_value item = stet_value_at(v, i), one = fill(c, s, item, how, depth + 1);
        size_t len;
        const char *key = stet_value_key_at(v, i, &len);
        if (key) {
            stet_value_put_n(&made, key, len, one);
        } else if (stet_value_type(item) == STET_TYPE_STRING && stet_value_type(one) == STET_TYPE_ARRAY) {
            for (size_t k = 0; k < stet_value_count(one); k++)
                stet_value_push(&made, stet_value_retain(stet_value_at(one, k)));
            stet_value_release(one);
        } else {
            stet_value_push(&made, one);
        }
    }
    return made;
}

stet_value toml_fill(toml_converter *c, const toml_scope *s, stet_value v, unsigned how) {
    return has_brace(v, 0) ? fill(c, s, v, how, 0) : stet_value_retain(v);
}

/* A list in a command may have lists in it; it becomes words. False: something in it is no word. */
static bool flatten(stet_value v, stet_value *words, int depth) {
    if (stet_value_type(v) != STET_TYPE_ARRAY) {
        stet_buf text = STET_BUF(0);
        size_t len = 0;
        const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &len) : "";
        bool fine = toml_text_of(v, &text) && strlen(s) == len;
        stet_buf_release(&text);
        if (fine)
            stet_value_push(words, stet_value_retain(v));
        return fine;
    }
    bool fine = depth < MAX_NESTED;
    for (size_t i = 0; i < stet_value_count(v) && fine; i++)
        fine = flatten(stet_value_at(v, i), words, depth + 1);
    return fine;
}

/* Takes the names of one text of a command. Returns the text with escapes of mistakes resolved. */
static stet_value take_names(toml_converter *c, const toml_scope *s, stet_value text, stet_value *vars) {
    size_t len;
    const char *begin = stet_value_as_string(&text, &len), *end = begin + len;
    stet_buf out = STET_BUF(0);
    for (const char *p = begin; p < end;) {
        const char *name = p + 1, *close = *p == '{' ? memchr(name, '}', (size_t)(end - name)) : NULL;
        bool twice = close && *name == '{' && close + 1 < end && close[1] == '}';
        name += twice;
        size_t n = close ? (size_t)(close - name) : 0;
        stet_value v;
        if (!close || (p > begin && p[-1] == '$') || !is_name(name, n) || is_own(s, name, n)) {
            stet_buf_char(&out, *p++);
            continue;
        }
        if (toml_lookup(c, s, name, n, &v)) {
            stet_value words = stet_value_array();
            bool list = stet_value_type(v) == STET_TYPE_ARRAY;
            if (flatten(v, &words, 0))
                stet_value_put_n(vars, name, n, stet_value_retain(list ? words : stet_value_at(words, 0)));
            else
                toml_problem(c, "name one of its members: {NAME.KEY}", "{%.*s} is no text, number or list of these",
                             (int)(n < 100 ? n : 100), name);
            stet_value_release(words);
            stet_value_release(v);
            const char *next = close + 1 + twice;
            stet_buf_add(&out, p, (size_t)(next - p));
            p = next;
        } else if (is_mistake(c, s, name, n, false, true, !twice) && twice) {
            stet_buf_add(&out, p + 1, (size_t)(close - p)); /* {{inn}} is {inn} */
            p = close + 2;
        } else {
            stet_buf_char(&out, *p++);
        }
    }
    stet_value made = stet_value_string_n(stet_buf_cstr(&out), out.len);
    stet_buf_release(&out);
    return made;
}

stet_value toml_command_vars(toml_converter *c, const toml_scope *s, stet_value *command) {
    stet_value vars = stet_value_object(), made;
    if (stet_value_type(*command) == STET_TYPE_STRING) {
        made = take_names(c, s, *command, &vars);
    } else if (stet_value_type(*command) == STET_TYPE_ARRAY) {
        made = stet_value_array();
        for (size_t i = 0; i < stet_value_count(*command); i++) {
            stet_value word = stet_value_at(*command, i);
            stet_value_push(&made, stet_value_type(word) == STET_TYPE_STRING ? take_names(c, s, word, &vars)
                                                                             : stet_value_retain(word));
        }
    } else {
        return vars;
    }
    stet_value_release(*command);
    *command = made;
    return vars;
}
