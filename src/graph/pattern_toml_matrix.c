/* pattern_toml_matrix.c - `matrix`, `foreach` and `when` in stet.toml: which instances of a node there are. */

#include "graph/pattern_toml_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

#define MAX_INSTANCES 50000

/* Does it have these values? `axes` not null: of these keys alone. */
static bool holds(stet_value combination, stet_value wanted, stet_value axes) {
    for (size_t i = 0; i < stet_value_count(wanted); i++) {
        size_t len;
        const char *key = stet_value_key_at(wanted, i, &len);
        stet_value v;
        if (stet_value_type(axes) != STET_TYPE_NULL && !stet_value_find(axes, key, len, NULL))
            continue;
        if (!stet_value_find(combination, key, len, &v) || !stet_value_equal(v, stet_value_at(wanted, i)))
            return false;
    }
    return true;
}

/* A list of tables, `include` or `exclude`; null if there is none. */
static stet_value entries(toml_converter *c, stet_value matrix, const char *member) {
    stet_value list = stet_value_null();
    if (!stet_value_find(matrix, member, strlen(member), &list))
        return list;
    size_t mark = toml_enter(c, member, strlen(member));
    bool fine = stet_value_type(list) == STET_TYPE_ARRAY;
    for (size_t i = 0; i < stet_value_count(list) && fine; i++)
        fine = stet_value_type(stet_value_at(list, i)) == STET_TYPE_OBJECT;
    if (!fine)
        toml_problem(c, "write [{ NAME = VALUE }]", "`%s` is a list of tables", member);
    toml_leave(c, mark);
    return fine ? list : stet_value_null();
}

static void check_exclude(toml_converter *c, stet_value exclude, stet_value axes) {
    size_t mark = toml_enter(c, "exclude", 7);
    for (size_t i = 0; i < stet_value_count(exclude); i++) {
        stet_value e = stet_value_at(exclude, i);
        for (size_t k = 0; k < stet_value_count(e); k++) {
            size_t len;
            const char *key = stet_value_key_at(e, k, &len);
            if (stet_value_find(axes, key, len, NULL))
                continue;
            stet_suggest near = stet_suggest_begin(key);
            for (size_t n = 0; n < stet_value_count(axes); n++)
                stet_suggest_offer(&near, stet_value_key_at(axes, n, NULL));
            char fix[160] = "name values of the matrix";
            if (near.best)
                snprintf(fix, sizeof fix, "did you mean `%.100s`?", near.best);
            toml_problem(c, fix, "`exclude` names \"%.100s\", which the matrix does not have", key);
        }
    }
    toml_leave(c, mark);
}

static stet_value pair_of(stet_value combination, stet_value named) {
    stet_value pair = stet_value_array();
    stet_value_push(&pair, stet_value_retain(combination));
    stet_value_push(&pair, stet_value_retain(named));
    return pair;
}

/* As GitHub's `include`: an entry that contradicts no value of a combination of the axes is added to it, which keeps its
 * name; one that fits none is a combination of its own. */
static void add_included(stet_value *list, stet_value include, stet_value axes) {
    size_t own = stet_value_count(*list); /* those of the axes */
    stet_value plain = stet_value_retain(*list), pairs = stet_value_array();
    for (size_t i = 0; i < stet_value_count(include); i++) {
        stet_value e = stet_value_at(include, i);
        bool added = false;
        for (size_t k = 0; k < own; k++) {
            stet_value one = stet_value_retain(stet_value_at(*list, k));
            bool fits = holds(one, e, axes);
            for (size_t m = 0; m < stet_value_count(e) && fits; m++) {
                size_t len;
                const char *key = stet_value_key_at(e, m, &len);
                stet_value_put_n(&one, key, len, stet_value_retain(stet_value_at(e, m)));
            }
            added |= fits;
            if (fits)
                stet_value_put_at(list, k, one);
            else
                stet_value_release(one);
        }
        if (!added)
            stet_value_push(list, stet_value_retain(e));
    }
    for (size_t i = 0; i < stet_value_count(*list); i++)
        stet_value_push(&pairs, pair_of(stet_value_at(*list, i), stet_value_at(i < own ? plain : *list, i)));
    stet_value_release(plain);
    stet_value_release(*list);
    *list = pairs;
}

static bool add_axis(toml_converter *c, stet_value *list, const char *key, size_t len, stet_value values) {
    stet_value made = stet_value_array();
    size_t mark = toml_enter(c, key, len);
    bool fine = stet_value_type(values) == STET_TYPE_ARRAY;
    if (!fine)
        toml_problem(c, "write a list of values, or \"{NAME}\" of a list in [vars]",
                     "\"%.100s\" of `matrix` is no list", key);
    for (size_t i = 0; fine && i < stet_value_count(*list); i++)
        for (size_t k = 0; k < stet_value_count(values); k++) {
            stet_value one = stet_value_retain(stet_value_at(*list, i));
            stet_value_put_n(&one, key, len, stet_value_retain(stet_value_at(values, k)));
            stet_value_push(&made, one);
        }
    if (stet_value_count(made) > MAX_INSTANCES) {
        toml_problem(c, "split it into several nodes", "more than %d instances of one node", MAX_INSTANCES);
        fine = false;
    }
    toml_leave(c, mark);
    stet_value_release(*list);
    *list = made;
    return fine;
}

static stet_value of_matrix(toml_converter *c, stet_value written) {
    stet_value matrix = toml_fill(c, &(toml_scope){0}, written, TOML_FILL_STRICT), axes = stet_value_object(),
               list = stet_value_array();
    bool fine = stet_value_type(matrix) == STET_TYPE_OBJECT;
    if (!fine)
        toml_problem(c, "write { NAME = [VALUE, VALUE] }", "`matrix` is a table of lists");
    stet_value_push(&list, stet_value_object());
    for (size_t i = 0; fine && i < stet_value_count(matrix); i++) {
        size_t len;
        const char *key = stet_value_key_at(matrix, i, &len);
        if (strcmp(key, "include") == 0 || strcmp(key, "exclude") == 0)
            continue;
        stet_value_put_n(&axes, key, len, stet_value_bool(true));
        fine = add_axis(c, &list, key, len, stet_value_at(matrix, i));
    }
    if (fine && stet_value_count(axes) == 0)
        stet_value_remove_at(&list, 0); /* what `include` names, alone */
    stet_value exclude = fine ? entries(c, matrix, "exclude") : stet_value_null();
    check_exclude(c, exclude, axes);
    for (size_t i = stet_value_count(list); i-- > 0;)
        for (size_t k = 0; k < stet_value_count(exclude); k++)
            if (holds(stet_value_at(list, i), stet_value_at(exclude, k), stet_value_null())) {
                stet_value_remove_at(&list, i);
                break;
            }
    add_included(&list, fine ? entries(c, matrix, "include") : stet_value_null(), axes);
    stet_value_release(axes);
    stet_value_release(matrix);
    return list;
}

static stet_value of_foreach(toml_converter *c, stet_value written) {
    stet_value items = toml_fill(c, &(toml_scope){0}, written, TOML_FILL_STRICT), list = stet_value_array();
    stet_type t = stet_value_type(items);
    if (t != STET_TYPE_ARRAY && t != STET_TYPE_OBJECT)
        toml_problem(c, "write a list of values, or a table of them", "`foreach` is a list or a table");
    if (stet_value_count(items) > MAX_INSTANCES)
        toml_problem(c, "split it into several nodes", "more than %d instances of one node", MAX_INSTANCES);
    for (size_t i = 0; i < stet_value_count(items) && stet_value_count(items) <= MAX_INSTANCES; i++) {
        stet_value one = stet_value_object();
        size_t len;
        const char *key = stet_value_key_at(items, i, &len);
        stet_value_put(&one, "item", stet_value_retain(stet_value_at(items, i)));
        if (key)
            stet_value_put(&one, "key", stet_value_string_n(key, len));
        stet_value_push(&list, pair_of(one, one));
        stet_value_release(one);
    }
    stet_value_release(items);
    return list;
}

stet_value toml_combinations(toml_converter *c, stet_value matrix, stet_value foreach) {
    return stet_value_type(matrix) != STET_TYPE_NULL ? of_matrix(c, matrix) : of_foreach(c, foreach);
}

static void add_name(stet_value v, stet_buf *out, int depth) {
    stet_buf text = STET_BUF(0);
    bool scalar = stet_value_type(v) != STET_TYPE_ARRAY && stet_value_type(v) != STET_TYPE_OBJECT;
    for (size_t i = 0; !scalar && depth < 50 && i < stet_value_count(v); i++)
        add_name(stet_value_at(v, i), out, depth + 1);
    if (scalar) {
        stet_buf_char(out, '-');
        if (!toml_text_of(v, &text))
            stet_buf_str(&text, "null");
        for (size_t i = 0; i < text.len; i++) {
            char ch = text.data[i];
            bool plain = (ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z') ||
                         ch == '.' || ch == '_' || ch == '-';
            stet_buf_char(out, plain ? ch : '_');
        }
    }
    stet_buf_release(&text);
}

void toml_combination_name(stet_value known_by, bool foreach, stet_buf *out) {
    stet_value key;
    if (foreach && stet_value_find(known_by, "key", 3, &key))
        add_name(key, out, 0);
    else
        add_name(known_by, out, 0);
}

/* One side of a comparison. */
static stet_value operand(toml_converter *c, const toml_scope *s, const char *text, size_t len) {
    while (len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        len--;
    }
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    bool quoted = len > 1 && (*text == '\'' || *text == '"') && text[len - 1] == *text;
    stet_value v = quoted ? stet_value_string_n(text + 1, len - 2) : stet_value_string_n(text, len);
    if (quoted)
        return v;
    if (len > 0 && *text == '$')
        toml_problem(c, "compare a name of [vars], `matrix`, `params` or `env-file`",
                     "\"%.*s\" is known only when the pipeline runs, and `when` decides before", (int)len, text);
    stet_value made = toml_fill(c, s, v, TOML_FILL_STRICT);
    stet_value_release(v);
    return made;
}

static bool same_text(stet_value a, stet_value b) {
    stet_buf x = STET_BUF(0), y = STET_BUF(0);
    bool same = toml_text_of(a, &x) && toml_text_of(b, &y) && x.len == y.len &&
                memcmp(stet_buf_cstr(&x), stet_buf_cstr(&y), x.len) == 0;
    stet_buf_release(&x);
    stet_buf_release(&y);
    return same || (stet_value_type(a) == STET_TYPE_NULL && stet_value_type(b) == STET_TYPE_NULL);
}

static bool truth(toml_converter *c, stet_value v) {
    size_t len;
    const char *s = stet_value_type(v) == STET_TYPE_STRING ? stet_value_as_string(&v, &len) : NULL;
    if (stet_value_type(v) == STET_TYPE_BOOL)
        return stet_value_as_bool(v);
    if (!s || (strcmp(s, "true") != 0 && strcmp(s, "false") != 0))
        toml_problem(c, "write \"{NAME} == VALUE\", \"{NAME} != VALUE\" or \"{NAME} in {LIST}\"",
                     "a condition must be true or false");
    return s && strcmp(s, "true") == 0;
}

static bool compare(toml_converter *c, const toml_scope *s, const char *text, const char *at, const char *sign) {
    const char *right = at + strlen(sign);
    stet_value a = operand(c, s, text, (size_t)(at - text)), b = operand(c, s, right, strlen(right));
    bool negated = strcmp(sign, " != ") == 0 || strcmp(sign, " not in ") == 0, in = strstr(sign, "in ") != NULL,
         is = false;
    if (in && stet_value_type(b) != STET_TYPE_ARRAY)
        toml_problem(c, "name a list of [vars], as in \"{mode} in {modes}\"", "what follows `in` is no list");
    for (size_t i = 0; in && i < stet_value_count(b) && !is; i++)
        is = same_text(a, stet_value_at(b, i));
    if (!in)
        is = same_text(a, b);
    stet_value_release(a);
    stet_value_release(b);
    return is != negated;
}

static bool condition(toml_converter *c, const toml_scope *s, stet_value v) {
    static const char *const signs[] = {" == ", " != ", " not in ", " in "};
    if (stet_value_type(v) != STET_TYPE_STRING)
        return truth(c, v);
    size_t len;
    const char *text = stet_value_as_string(&v, &len);
    if (strlen(text) != len)
        return truth(c, stet_value_null());
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *at = strstr(text, signs[i]);
        if (at)
            return compare(c, s, text, at, signs[i]);
    }
    bool negated = strncmp(text, "not ", 4) == 0;
    stet_value one = operand(c, s, text + (negated ? 4 : 0), len - (negated ? 4 : 0));
    bool is = truth(c, one) != negated;
    stet_value_release(one);
    return is;
}

bool toml_when(toml_converter *c, const toml_scope *s, stet_value when) {
    bool list = stet_value_type(when) == STET_TYPE_ARRAY, all = true;
    for (size_t i = 0; i < (list ? stet_value_count(when) : 1); i++)
        if (!condition(c, s, list ? stet_value_at(when, i) : when))
            all = false;
    return all;
}
