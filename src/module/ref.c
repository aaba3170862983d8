/* ref.c - the module kind `ref`: finds the builtin function, checks its inputs and runs it. */

#include "module/ref.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/suggest.h"
#include "base/vec.h"
#include "module/kinds.h"

/* Counts up when a function's results change: it is part of every fingerprint. */
#define REF_VERSION 1

#define REF_ROW(name) &ref_row_##name,
static const ref_row *const rows[] = {STET_REFS(REF_ROW)};
#undef REF_ROW
#define ROW_COUNT (sizeof rows / sizeof *rows)

static const ref_row *find(const char *name) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}

typedef struct form_word {
    const char *name;
    size_t len;
    bool optional, rest, any;
} form_word;

static bool next_word(const char **form, form_word *out) {
    *form += strspn(*form, " ");
    size_t n = strcspn(*form, " ");
    if (n == 0)
        return false;
    *out = (form_word){.name = *form, .len = n};
    *form += n;
    if (out->name[n - 1] == '?') {
        out->optional = true;
        out->len--;
    } else if (n > 3 && memcmp(out->name + n - 3, "...", 3) == 0) {
        out->rest = true;
        out->len -= 3;
    } else if (n == 1 && out->name[0] == '*') {
        out->any = true;
    }
    return true;
}

/* The position of a name in the form, or -1. */
static int position(const ref_row *row, const char *name, size_t len, bool *rest, bool *any) {
    const char *form = row->inputs;
    form_word w;
    int at = 0, found = -1;
    *rest = *any = false;
    while (next_word(&form, &w)) {
        *rest |= w.rest;
        *any |= w.any;
        if (!w.any && w.len == len && memcmp(w.name, name, len) == 0)
            found = at;
        at++;
    }
    return found;
}

/* The key under which an input is bound: its name, or its position. Array inputs have positions alone. */
bool ref_key(const ref_call *call, const char *name, char out[24]) {
    bool rest, any;
    if (stet_value_type(call->bindings) == STET_TYPE_OBJECT &&
        stet_value_find(call->bindings, name, strlen(name), NULL)) {
        snprintf(out, 24, "%s", name);
        return true;
    }
    int at = position(call->row, name, strlen(name), &rest, &any);
    if (at < 0)
        return false;
    snprintf(out, 24, "%d", at);
    if (stet_value_type(call->bindings) == STET_TYPE_ARRAY)
        return (size_t)at < stet_value_count(call->bindings);
    return stet_value_type(call->bindings) == STET_TYPE_OBJECT &&
           stet_value_find(call->bindings, out, strlen(out), NULL);
}

bool ref_has(const ref_call *call, const char *name) {
    char key[24];
    return ref_key(call, name, key);
}

stet_status ref_arg_at(ref_call *call, const char *name, stet_pathref below, stet_read_kind kind, stet_value *out,
                       bool *found, stet_error *err) {
    char key[24];
    *out = stet_value_null();
    if (found)
        *found = false;
    if (!ref_key(call, name, key))
        return STET_OK;
    stet_path path = STET_PATH_INIT;
    stet_path_push(&path, key);
    stet_buf_add(&path.buf, below.bytes, below.len);
    stet_status status = stet_run_read(call->run, stet_path_ref(&path), kind, out, err);
    stet_path_release(&path);
    if (status == STET_NOT_FOUND) {
        if (err)
            stet_error_clear(err);
        *out = stet_value_null();
        return STET_OK;
    }
    if (found)
        *found = status == STET_OK;
    return status;
}

stet_status ref_arg(ref_call *call, const char *name, stet_read_kind kind, stet_value *out, stet_error *err) {
    return ref_arg_at(call, name, STET_PATH_ROOT, kind, out, NULL, err);
}

typedef struct numbered {
    uint64_t number; /* UINT64_MAX: a name */
    size_t index;
} numbered;

static int numbered_compare(const void *a, const void *b) {
    const numbered *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Reads every input in order and adds it to `out`. */
static stet_status read_all(ref_call *call, stet_value *out, stet_error *err) {
    STET_VEC(numbered) order = {0};
    stet_status status = STET_OK;
    bool object = stet_value_type(call->bindings) == STET_TYPE_OBJECT;
    for (size_t i = 0; i < stet_value_count(call->bindings); i++) {
        size_t len, index;
        const char *key = object ? stet_value_key_at(call->bindings, i, &len) : NULL;
        bool number = key && stet_path_index(key, len, &index);
        *stet_vec_add(&order) = (numbered){object ? (number ? index : UINT64_MAX) : i, i};
    }
    if (order.len > 1)
        qsort(order.at, order.len, sizeof *order.at, numbered_compare);
    stet_path path = STET_PATH_INIT;
    for (size_t i = 0; i < order.len && status == STET_OK; i++) {
        stet_value v = stet_value_null();
        if (object) {
            size_t len;
            const char *key = stet_value_key_at(call->bindings, order.at[i].index, &len);
            stet_path_push_n(&path, key, len);
        } else {
            stet_path_push_index(&path, order.at[i].index);
        }
        status = stet_run_read(call->run, stet_path_ref(&path), STET_RECURSIVE, &v, err);
        if (status == STET_NOT_FOUND) {
            if (err)
                stet_error_clear(err);
            v = stet_value_null();
            status = STET_OK;
        }
        if (status == STET_OK)
            stet_value_push(out, stet_value_retain(v));
        stet_path_pop(&path);
    }
    stet_path_release(&path);
    stet_vec_release(&order);
    return status;
}

stet_status ref_rest(ref_call *call, stet_value *out, stet_error *err) {
    bool named =
        stet_value_type(call->bindings) == STET_TYPE_OBJECT && stet_value_find(call->bindings, "values", 6, NULL);
    stet_value list = stet_value_array();
    if (!named) {
        stet_status status = read_all(call, &list, err);
        if (status != STET_OK) {
            stet_value_release(list);
            return status;
        }
        *out = list;
        return STET_OK;
    }
    stet_value_release(list);
    stet_value v;
    stet_status status = ref_arg(call, "values", STET_RECURSIVE, &v, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(v) == STET_TYPE_ARRAY) {
        *out = stet_value_retain(v);
        return STET_OK;
    }
    if (stet_value_type(v) == STET_TYPE_OBJECT) {
        list = stet_value_array();
        for (size_t i = 0; i < stet_value_count(v); i++)
            stet_value_push(&list, stet_value_retain(stet_value_at(v, i)));
        *out = list;
        return STET_OK;
    }
    return ref_expected(err, "values", "an array or an object", v);
}

stet_status ref_expected(stet_error *err, const char *name, const char *what, stet_value found) {
    static const char *const names[] = {"null",     "a boolean", "a number", "a number",
                                        "a string", "an array",  "an object"};
    return stet_fail(err, STET_INVALID, "%s: expected %s, found %s", name, what, names[stet_value_type(found)]);
}

bool ref_truth(stet_value v) {
    size_t len;
    switch (stet_value_type(v)) {
    case STET_TYPE_NULL:
        return false;
    case STET_TYPE_BOOL:
        return stet_value_as_bool(v);
    case STET_TYPE_INT:
        return stet_value_as_int(v) != 0;
    case STET_TYPE_DOUBLE:
        return stet_value_as_double(v) != 0;
    case STET_TYPE_STRING:
        stet_value_as_string(&v, &len);
        return len > 0;
    default:
        return true;
    }
}

void ref_text(stet_buf *b, stet_value v) {
    if (stet_value_type(v) == STET_TYPE_STRING) {
        size_t len;
        const char *s = stet_value_as_string(&v, &len);
        stet_buf_add(b, s, len);
    } else {
        stet_json_write(b, v, STET_JSON_CANONICAL);
    }
}

static const ref_row *row_of(stet_value descriptor) {
    stet_value name = stet_value_get(descriptor, "ref");
    return stet_value_type(name) == STET_TYPE_STRING ? find(stet_value_as_string(&name, NULL)) : NULL;
}

static stet_status check_ref_name(stet_value descriptor, stet_error *err) {
    stet_value name;
    if (!stet_value_find(descriptor, "ref", 3, &name) || stet_value_type(name) != STET_TYPE_STRING) {
        stet_fail(err, STET_INVALID, "a module of type \"ref\" needs a \"ref\": the name of a function");
        stet_hint(err, "for example \"ref\": \"sum\"");
        return STET_INVALID;
    }
    if (find(stet_value_as_string(&name, NULL)))
        return STET_OK;
    size_t len;
    const char *s = stet_value_as_string(&name, &len);
    stet_buf known = STET_BUF(2048);
    for (size_t i = 0; i < ROW_COUNT; i++)
        stet_buf_printf(&known, "%s%s", i ? " " : "", rows[i]->name);
    stet_suggest near = stet_suggest_begin_n(s, len);
    stet_suggest_offer_words(&near, stet_buf_cstr(&known));
    stet_fail(err, STET_INVALID, "there is no ref \"%.100s\"", s);
    if (near.best)
        stet_hint(err, "did you mean \"%.*s\"?", (int)near.best_len, near.best);
    else
        stet_hint(err, "known refs: %s", stet_buf_cstr(&known));
    stet_buf_release(&known);
    return STET_INVALID;
}

static stet_status check_inputs(const ref_row *row, stet_value inputs, stet_error *err) {
    bool rest = false, any = false;
    ref_call call = {.row = row, .bindings = inputs};
    const char *form = row->inputs;
    form_word w;
    int named = 0;
    while (next_word(&form, &w)) {
        char name[24];
        rest |= w.rest;
        any |= w.any;
        named += !w.any;
        snprintf(name, sizeof name, "%.*s", (int)w.len, w.name);
        if (!w.optional && !w.rest && !w.any && !ref_has(&call, name)) {
            stet_fail(err, STET_INVALID, "ref \"%s\" needs the input \"%s\"", row->name, name);
            stet_hint(err, "its inputs are: %s", row->inputs);
            return STET_INVALID;
        }
    }
    if (rest && stet_value_count(inputs) == 0) {
        stet_fail(err, STET_INVALID, "ref \"%s\" has no inputs", row->name);
        stet_hint(err, "add \"inputs\": {\"values\": BINDING}");
        return STET_INVALID;
    }
    for (size_t i = 0; !rest && !any && i < stet_value_count(inputs); i++) {
        size_t len, index;
        bool r, a;
        const char *key = stet_value_type(inputs) == STET_TYPE_OBJECT ? stet_value_key_at(inputs, i, &len) : NULL;
        if (key && position(row, key, len, &r, &a) >= 0)
            continue;
        if (key ? stet_path_index(key, len, &index) && index < (size_t)named : i < (size_t)named)
            continue;
        if (key)
            stet_fail(err, STET_INVALID, "ref \"%s\" has no input \"%.*s\"", row->name, (int)(len < 64 ? len : 64),
                      key);
        else
            stet_fail(err, STET_INVALID, "ref \"%s\" takes %d inputs, and has %zu", row->name, named,
                      stet_value_count(inputs));
        stet_hint(err, "its inputs are: %s", row->inputs);
        return STET_INVALID;
    }
    return STET_OK;
}

static stet_status check(stet_value descriptor, stet_value node, stet_error *err) {
    static const char known[] = " type ref argumentSchema resultSchema metadata ";
    stet_status status = check_ref_name(descriptor, err);
    if (status != STET_OK)
        return status;
    for (size_t i = 0; i < stet_value_count(descriptor); i++) {
        size_t len;
        char word[64];
        const char *key = stet_value_key_at(descriptor, i, &len);
        snprintf(word, sizeof word, " %.60s ", key);
        if (strcmp(key, "handler") == 0) {
            stet_fail(err, STET_UNSUPPORTED, "a ref can't be an event handler");
            stet_hint(err, "use a module of type \"javascript\"");
            return STET_UNSUPPORTED;
        }
        bool childs = ref_has_children(row_of(descriptor)) && (strcmp(key, "pattern") == 0 || strcmp(key, "key") == 0);
        bool of_files = row_of(descriptor) == &ref_row_files && strstr(" distinct name taken beside ", word);
        if (!strstr(known, word) && !childs && !of_files) {
            stet_fail(err, STET_INVALID, "a module of type \"ref\" has no member \"%.60s\"", key);
            stet_hint(err, "remove it, or put it into \"metadata\"");
            return STET_INVALID;
        }
    }
    status = check_inputs(row_of(descriptor), stet_value_get(node, "inputs"), err);
    if (status == STET_OK && row_of(descriptor) == &ref_row_files)
        status = ref_check_files(descriptor, err);
    return status == STET_OK && ref_has_children(row_of(descriptor))
               ? ref_check_children(row_of(descriptor), descriptor, node, err)
               : status;
}

static stet_input_use use(stet_value descriptor, const char *input, size_t len) {
    const ref_row *row = row_of(descriptor);
    char word[64];
    bool rest, any;
    size_t index;
    if (!row || len > sizeof word - 3)
        return STET_INPUT_MAYBE;
    if (row->maybe && row->maybe[0] == '*')
        return STET_INPUT_MAYBE;
    if (ref_has_children(row)) /* the others are for the children, who may do without them */
        return (len == 4 && (memcmp(input, "list", 4) == 0 || memcmp(input, "keys", 4) == 0)) ||
                       (len == 6 && memcmp(input, "tested", 6) == 0)
                   ? STET_INPUT_ALWAYS
                   : STET_INPUT_MAYBE;
    snprintf(word, sizeof word, " %.*s ", (int)len, input);
    /* A position stands for the name there. */
    if (position(row, input, len, &rest, &any) < 0 && stet_path_index(input, len, &index) && !rest) {
        const char *form = row->inputs;
        form_word w;
        for (size_t i = 0; next_word(&form, &w); i++)
            if (i == index)
                snprintf(word, sizeof word, " %.*s ", (int)w.len, w.name);
    }
    if (row->chosen && strstr(row->chosen, word))
        return STET_INPUT_CHOSEN;
    if (row->maybe && strstr(row->maybe, word))
        return STET_INPUT_MAYBE;
    return STET_INPUT_ALWAYS;
}

static stet_status fingerprint(void *state, stet_value descriptor, stet_hash *out, stet_error *err) {
    (void)state;
    const ref_row *row = row_of(descriptor);
    if (!row)
        return check_ref_name(descriptor, err);
    char text[96];
    int n = snprintf(text, sizeof text, "ref %s %d", row->name, REF_VERSION);
    *out = stet_hash_of(text, (size_t)n);
    stet_value pattern = stet_value_get(descriptor, "pattern");
    if (ref_has_children(row) && stet_value_type(pattern) == STET_TYPE_OBJECT) {
        stet_value all = stet_value_object();
        stet_value_put(&all, "ref", stet_value_string(text));
        stet_value_put(&all, "pattern", stet_value_retain(pattern));
        stet_value_put(&all, "key", stet_value_retain(stet_value_get(descriptor, "key")));
        *out = stet_hash_value(all);
        stet_value_release(all);
    } else if (row == &ref_row_files) {
        stet_value all = stet_value_array();
        stet_value_push(&all, stet_value_string(text));
        stet_value_push(&all, stet_value_retain(stet_value_get(descriptor, "distinct")));
        stet_value_push(&all, stet_value_retain(stet_value_get(descriptor, "name")));
        static const char *const others[] = {"taken", "beside"};
        for (size_t i = 0; i < 2; i++) { /* lists that have neither keep the fingerprint that they always had */
            stet_value v;
            if (!stet_value_find(descriptor, others[i], strlen(others[i]), &v))
                continue;
            stet_value_push(&all, stet_value_string(others[i]));
            stet_value_push(&all, stet_value_retain(v));
        }
        *out = stet_hash_value(all);
        stet_value_release(all);
    }
    return STET_OK;
}

/* Its state is the files of the project, if there are any. */
static stet_status open_kind(const stet_module_host *host, void **state, stet_error *err) {
    (void)err;
    *state = host->files;
    return STET_OK;
}

static stet_status start(void *state, stet_run *run, stet_error *err) {
    const ref_row *row = row_of(stet_run_descriptor(run));
    if (!row)
        return check_ref_name(stet_run_descriptor(run), err);
    ref_call call = {run, row, stet_run_bindings(run), state};
    stet_value result = stet_value_null();
    stet_error mine = STET_ERROR_INIT;
    if (row->run(&call, &result, &mine) == STET_OK) {
        stet_run_succeed(run, result);
    } else {
        stet_fail_in(&mine, "%s", row->name);
        stet_run_fail(run, &mine);
        stet_error_clear(&mine);
    }
    return STET_OK;
}

const stet_module_kind stet_module_ref = {
    .version = STET_MODULE_VERSION,
    .type = "ref",
    .open = open_kind,
    .check = check,
    .use = use,
    .fingerprint = fingerprint,
    .start = start,
};
