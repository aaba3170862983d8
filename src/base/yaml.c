/* yaml.c - builds a value from the events of libyaml. */

#include "base/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/json.h"
#include "base/vec.h"

#define MAX_BYTES  ((size_t)16 << 20)
#define MAX_DEPTH  100
#define MAX_VALUES 1000000

typedef struct level {
    stet_value made; /* an array or an object */
    stet_value key;  /* of the member that comes next, if `keyed` */
    bool keyed;
} level;

typedef struct reader {
    STET_VEC(level) levels;
    stet_value root;
    size_t values;
    bool documents, done;
    stet_error *err;
} reader;

static stet_status refuse(reader *r, const yaml_mark_t *at, const char *what, const char *hint) {
    stet_fail(r->err, STET_INVALID, "line %zu, column %zu: %s", at->line + 1, at->column + 1, what);
    stet_hint(r->err, "%s", hint);
    return STET_INVALID;
}

static bool one_of(const char *text, const char *const *words) {
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

static bool all_digits(const char *s, const char *digits) {
    return *s && s[strspn(s, digits)] == 0;
}

/* The core schema: [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_number(const char *s, bool *integer) {
    const char *p = s + (*s == '-' || *s == '+'), digits[] = "0123456789";
    size_t before = strspn(p, digits), after = 0;
    p += before;
    *integer = true;
    if (*p == '.') {
        after = strspn(p + 1, digits);
        p += 1 + after;
        *integer = false;
    }
    if (before + after == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        size_t exponent = strspn(p, digits);
        if (exponent == 0)
            return false;
        p += exponent;
        *integer = false;
    }
    return *p == 0;
}

/* Does YAML 1.1 read it as another number than 1.2, or as a number at all? */
static bool is_ambiguous(const char *s) {
    static const char *const words[] = {"y",  "Y",  "yes", "Yes", "YES", "n",   "N",  "no", "No", "NO",
                                        "on", "On", "ON",  "off", "Off", "OFF", "<<", "=",  NULL};
    const char *p = s + (*s == '-' || *s == '+'), digits[] = "0123456789";
    size_t n = strspn(p, digits);
    if (one_of(s, words))
        return true;
    if (p[0] == '0' && (p[1] == 'b' || p[1] == 'B') && all_digits(p + 2, "01_"))
        return true;
    if (p[0] == '0' && p[1] && n == strlen(p)) /* octal, or decimal */
        return true;
    if (n > 0 && strchr(p, '_') && all_digits(p, "0123456789_.eE+-"))
        return true;
    if (p[0] == '0' && p[1] == 'x' && (p != s || strchr(p, '_')) && all_digits(p + 2, "0123456789abcdefABCDEF_"))
        return true;
    /* sexagesimal */
    return n > 0 && p[n] == ':' && all_digits(p, "0123456789:.");
}

static stet_status plain(reader *r, const yaml_mark_t *at, const char *s, stet_value *out) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    static const char *const odd[] = {".inf",  ".Inf",  ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
                                      "-.Inf", "-.INF", ".nan", ".NaN",  ".NAN",  NULL};
    bool integer, octal = s[0] == '0' && s[1] == 'o' && all_digits(s + 2, "01234567"),
                  hex = s[0] == '0' && s[1] == 'x' && all_digits(s + 2, "0123456789abcdefABCDEF");
    if (is_ambiguous(s))
        return refuse(r, at, "this plain value means different things in YAML 1.1 and 1.2",
                      "put it in quotes, or write true, false or a decimal number");
    if (one_of(s, odd))
        return refuse(r, at, "a number must be finite", "write a number, or a string in quotes");
    if (one_of(s, nulls)) {
        *out = stet_value_null();
    } else if (one_of(s, trues) || one_of(s, falses)) {
        *out = stet_value_bool(one_of(s, trues));
    } else if (octal || hex || (is_number(s, &integer) && integer)) {
        char *end;
        errno = 0;
        long long n = strtoll(s + 2 * (octal || hex), &end, octal ? 8 : hex ? 16 : 10);
        if (errno || *end)
            return refuse(r, at, "an integer beyond 64 bits", "put it in quotes");
        *out = stet_value_int(n);
    } else if (is_number(s, &integer)) {
        double d = strtod(s, NULL); /* the locale of the program is "C" */
        if (!isfinite(d))
            return refuse(r, at, "a number beyond the range of a double", "put it in quotes");
        return stet_value_double(d, out, r->err);
    } else {
        *out = stet_value_string(s);
    }
    return STET_OK;
}

static stet_status scalar(reader *r, const yaml_event_t *e, stet_value *out) {
    const char *s = (const char *)e->data.scalar.value;
    size_t len = e->data.scalar.length;
    if (e->data.scalar.anchor || e->data.scalar.tag)
        return refuse(r, &e->start_mark, "tags and anchors are not read", "write the value itself");
    if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strlen(s) == len)
        return plain(r, &e->start_mark, s, out);
    if (stet_value_string_checked(s, len, out, NULL) != STET_OK)
        return refuse(r, &e->start_mark, "text that is not UTF-8", "write it in UTF-8");
    return STET_OK;
}

/* Adds a value to where the reader is. Consumes it. */
static stet_status add(reader *r, const yaml_mark_t *at, stet_value v) {
    if (r->levels.len == 0) {
        r->root = v;
        return STET_OK;
    }
    level *top = &r->levels.at[r->levels.len - 1];
    if (stet_value_type(top->made) == STET_TYPE_ARRAY) {
        stet_value_push(&top->made, v);
        return STET_OK;
    }
    size_t len;
    const char *key = stet_value_as_string(&top->key, &len);
    stet_status status = STET_OK;
    if (stet_value_find(top->made, key, len, NULL)) {
        status = refuse(r, at, "a key that stands twice in one mapping", "remove one of them");
        stet_value_release(v);
    } else {
        stet_value_put_n(&top->made, key, len, v);
    }
    stet_value_release(top->key);
    top->key = stet_value_null();
    top->keyed = false;
    return status;
}

static bool wants_key(const reader *r) {
    return r->levels.len > 0 && stet_value_type(r->levels.at[r->levels.len - 1].made) == STET_TYPE_OBJECT &&
           !r->levels.at[r->levels.len - 1].keyed;
}

static stet_status take_scalar(reader *r, const yaml_event_t *e) {
    stet_value v = stet_value_null();
    if (wants_key(r)) { /* a key is its text, whatever it would be as a value */
        const char *s = (const char *)e->data.scalar.value;
        bool is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        if (e->data.scalar.anchor || e->data.scalar.tag)
            return refuse(r, &e->start_mark, "tags and anchors are not read", "write the key itself");
        if (is_plain && strcmp(s, "<<") == 0)
            return refuse(r, &e->start_mark, "the merge key `<<` is not read", "write the members themselves");
        if (stet_value_string_checked(s, e->data.scalar.length, &v, NULL) != STET_OK)
            return refuse(r, &e->start_mark, "text that is not UTF-8", "write it in UTF-8");
        r->levels.at[r->levels.len - 1].key = v;
        r->levels.at[r->levels.len - 1].keyed = true;
        return STET_OK;
    }
    stet_status status = scalar(r, e, &v);
    return status == STET_OK ? add(r, &e->start_mark, v) : status;
}

static stet_status begin(reader *r, const yaml_event_t *e, bool mapping) {
    bool marked = mapping ? e->data.mapping_start.anchor || e->data.mapping_start.tag
                          : e->data.sequence_start.anchor || e->data.sequence_start.tag;
    if (marked)
        return refuse(r, &e->start_mark, "tags and anchors are not read", "write the value itself");
    if (wants_key(r))
        return refuse(r, &e->start_mark, "a key that is not a scalar", "write a string as the key");
    if (r->levels.len >= MAX_DEPTH)
        return stet_fail(r->err, STET_LIMIT, "line %zu, column %zu: more than %d levels", e->start_mark.line + 1,
                         e->start_mark.column + 1, MAX_DEPTH);
    *stet_vec_add(&r->levels) = (level){mapping ? stet_value_object() : stet_value_array(), stet_value_null(), false};
    return STET_OK;
}

static stet_status take(reader *r, const yaml_event_t *e) {
    if (++r->values > MAX_VALUES)
        return stet_fail(r->err, STET_LIMIT, "line %zu, column %zu: more than %d values", e->start_mark.line + 1,
                         e->start_mark.column + 1, MAX_VALUES);
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (r->documents || e->data.document_start.version_directive ||
            e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
            return refuse(r, &e->start_mark, r->documents ? "a second document" : "a directive",
                          "write one document without directives");
        r->documents = true;
        return STET_OK;
    case YAML_ALIAS_EVENT:
        return refuse(r, &e->start_mark, "aliases are not read", "write the value itself");
    case YAML_SCALAR_EVENT:
        return take_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return begin(r, e, e->type == YAML_MAPPING_START_EVENT);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: {
        stet_value made = r->levels.at[--r->levels.len].made;
        return add(r, &e->start_mark, made);
    }
    case YAML_STREAM_END_EVENT:
        r->done = true;
        return STET_OK;
    default:
        return STET_OK;
    }
}

static stet_status say_syntax(const yaml_parser_t *p, stet_error *err) {
    const char *what = p->problem ? p->problem : "not YAML";
    if (p->error == YAML_READER_ERROR) {
        stet_fail(err, STET_INVALID, "byte %zu: %s", p->problem_offset, what);
        stet_hint(err, "write UTF-8 without control characters");
    } else {
        stet_fail(err, STET_INVALID, "line %zu, column %zu: %s", p->problem_mark.line + 1, p->problem_mark.column + 1,
                  what);
        stet_hint(err, "write YAML 1.2");
    }
    return STET_INVALID;
}

stet_status stet_yaml_parse(const char *text, size_t len, stet_value *out, stet_error *err) {
    reader r = {.root = stet_value_null(), .err = err};
    yaml_parser_t p;
    if (len > MAX_BYTES)
        return stet_fail(err, STET_LIMIT, "%zu bytes of YAML; the maximum is %zu", len, MAX_BYTES);
    if (!yaml_parser_initialize(&p))
        return stet_fail(err, STET_LIMIT, "cannot create a YAML parser");
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)text, len);
    stet_status status = STET_OK;
    while (status == STET_OK && !r.done) {
        yaml_event_t e;
        if (!yaml_parser_parse(&p, &e)) {
            status = say_syntax(&p, err);
            break;
        }
        status = take(&r, &e);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&p);
    for (size_t i = 0; i < r.levels.len; i++) {
        stet_value_release(r.levels.at[i].made);
        stet_value_release(r.levels.at[i].key);
    }
    stet_vec_release(&r.levels);
    if (status == STET_OK)
        *out = r.root;
    else
        stet_value_release(r.root);
    return status;
}
