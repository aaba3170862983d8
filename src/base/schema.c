/* schema.c - checks a value against a JSON Schema. */

#include "base/schema.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/path.h"
#include "base/regex.h"
#include "base/schema_keywords.h"
#include "base/vec.h"

typedef enum outcome { MATCH, MISMATCH, BROKEN /* the schema, or a limit: ctx->err is set */ } outcome;

/* The number of compiled patterns that one check keeps; a schema with more compiles some of them again. */
enum { PATTERNS = 16 };

typedef struct ctx {
    stet_value root;
    stet_path path;      /* of the instance at hand */
    size_t depth;        /* schemas inside each other */
    size_t steps;        /* schemas applied */
    unsigned quiet;      /* above 0: mismatches are not described */
    stet_buf where;      /* of the mismatch: JSON Pointer of the instance, */
    stet_buf what;       /* what was expected and found, */
    const char *keyword; /* and the keyword that failed */
    size_t where_depth;
    stet_error *err;
    stet_status status; /* when BROKEN */
    stet_value pattern_text[PATTERNS];
    stet_regex *pattern[PATTERNS];
    size_t patterns;
} ctx;

static outcome apply(ctx *c, stet_value schema, stet_value instance);

static outcome broken(ctx *c, stet_status status) {
    c->status = status;
    return BROKEN;
}

static outcome malformed(ctx *c, const char *name, const char *expected) {
    return broken(c, stet_fail(c->err, STET_INVALID, "schema: \"%s\" must be %s", name, expected));
}

/* Describes a value in a few words: "7", "the string \"abc\"", "an array of 3". */
static void describe(stet_buf *b, stet_value v) {
    size_t len = 0;
    switch (stet_value_type(v)) {
    case STET_TYPE_ARRAY:
        stet_buf_printf(b, "an array of %zu", stet_value_count(v));
        break;
    case STET_TYPE_OBJECT:
        stet_buf_printf(b, "an object with %zu member%s", stet_value_count(v), stet_value_count(v) == 1 ? "" : "s");
        break;
    case STET_TYPE_STRING: {
        const char *s = stet_value_as_string(&v, &len);
        size_t shown = len <= 60 ? len : 60;
        while (shown < len && shown && ((unsigned char)s[shown] & 0xc0) == 0x80)
            shown--;
        stet_buf_str(b, "the string ");
        stet_json_write_string(b, s, shown);
        if (shown < len)
            stet_buf_printf(b, "... (%zu bytes)", len);
        break;
    }
    default:
        stet_json_write(b, v, STET_JSON_CANONICAL);
    }
}

/* Prints a scalar as it is, and describes anything else. */
static void describe_wanted(stet_buf *b, stet_value v) {
    size_t len = 0;
    if (stet_value_type(v) == STET_TYPE_STRING && (stet_value_as_string(&v, &len), len <= 60))
        stet_json_write(b, v, STET_JSON_CANONICAL);
    else
        describe(b, v);
}

/* Records a mismatch at the current path: "expected <expected>, found <instance>". */
static outcome mismatch(ctx *c, const char *name, stet_value instance, const char *format, ...) STET_PRINTF(4, 5);
static outcome mismatch(ctx *c, const char *name, stet_value instance, const char *format, ...) {
    if (c->quiet)
        return MISMATCH;
    char expected[512];
    va_list args;
    va_start(args, format);
    vsnprintf(expected, sizeof expected, format, args);
    va_end(args);
    stet_buf_clear(&c->where);
    stet_path_print(stet_path_ref(&c->path), &c->where);
    c->where_depth = stet_path_depth(stet_path_ref(&c->path));
    c->keyword = name;
    stet_buf_clear(&c->what);
    stet_buf_printf(&c->what, "expected %s, found ", expected);
    describe(&c->what, instance);
    return MISMATCH;
}

static bool is_integer(stet_value v) {
    return stet_value_type(v) == STET_TYPE_INT ||
           (stet_value_type(v) == STET_TYPE_DOUBLE && rint(stet_value_as_double(v)) == stet_value_as_double(v));
}

static bool has_type(stet_value v, const char *name) {
    switch (stet_value_type(v)) {
    case STET_TYPE_NULL:
        return strcmp(name, "null") == 0;
    case STET_TYPE_BOOL:
        return strcmp(name, "boolean") == 0;
    case STET_TYPE_INT:
    case STET_TYPE_DOUBLE:
        return strcmp(name, "number") == 0 || (strcmp(name, "integer") == 0 && is_integer(v));
    case STET_TYPE_STRING:
        return strcmp(name, "string") == 0;
    case STET_TYPE_ARRAY:
        return strcmp(name, "array") == 0;
    case STET_TYPE_OBJECT:
        return strcmp(name, "object") == 0;
    }
    return false;
}

static size_t characters(stet_value string) {
    size_t len = 0, n = 0;
    const char *s = stet_value_as_string(&string, &len);
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

static outcome check_type(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    const char *name = stet_schema_type_name(argument);
    stet_buf wanted = STET_BUF(200);
    size_t count = stet_value_count(argument);
    bool found = name && has_type(instance, name);
    if (name)
        stet_buf_printf(&wanted, "%s %s", strchr("aio", name[0]) ? "an" : "a", name);
    for (size_t i = 0; i < count && !found; i++) {
        name = stet_schema_type_name(stet_value_at(argument, i));
        if (!name) {
            stet_buf_release(&wanted);
            return malformed(c, "type", "the name of a type, or an array of them");
        }
        found = has_type(instance, name);
        stet_buf_printf(&wanted, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", name);
    }
    outcome result = found ? MATCH : mismatch(c, "type", instance, "%s", stet_buf_cstr(&wanted));
    stet_buf_release(&wanted);
    return result;
}

static outcome check_enum(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    size_t count = stet_value_count(argument);
    for (size_t i = 0; i < count; i++)
        if (stet_value_equal(stet_value_at(argument, i), instance))
            return MATCH;
    if (c->quiet)
        return MISMATCH;
    stet_buf choices = STET_BUF(0);
    for (size_t i = 0; i < count && choices.len < 300; i++) {
        stet_buf_str(&choices, i ? ", " : "");
        describe_wanted(&choices, stet_value_at(argument, i));
        if (choices.len >= 300 && i + 1 < count)
            stet_buf_str(&choices, ", ...");
    }
    mismatch(c, "enum", instance, "%s%s", count == 1 ? "" : "one of ", stet_buf_cstr(&choices));
    stet_buf_release(&choices);
    return MISMATCH;
}

static outcome check_const(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_equal(argument, instance))
        return MATCH;
    stet_buf wanted = STET_BUF(0);
    describe_wanted(&wanted, argument);
    mismatch(c, "const", instance, "%s", stet_buf_cstr(&wanted));
    stet_buf_release(&wanted);
    return MISMATCH;
}

/* Applies `schema` to a member or an element, at its path. */
static outcome apply_below(ctx *c, stet_value schema, const char *key, size_t key_len, size_t index, stet_value item) {
    size_t len = c->path.buf.len;
    if (key)
        stet_path_push_n(&c->path, key, key_len);
    else
        stet_path_push_index(&c->path, index);
    if (c->path.buf.overflow)
        return broken(c, stet_fail(c->err, STET_LIMIT, "value: a path of more than %d bytes", STET_PATH_MAX_BYTES));
    outcome result = apply(c, schema, item);
    c->path.buf.len = len;
    return result;
}

static outcome check_properties(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return MATCH;
    size_t count = stet_value_count(argument);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(argument, i, &len);
        stet_value item;
        if (!stet_value_find(instance, key, len, &item))
            continue;
        outcome result = apply_below(c, stet_value_at(argument, i), key, len, 0, item);
        if (result != MATCH)
            return result;
    }
    return MATCH;
}

static outcome check_additional(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != STET_TYPE_OBJECT ||
        (stet_value_type(argument) == STET_TYPE_BOOL && stet_value_as_bool(argument)))
        return MATCH;
    stet_value known = stet_value_get(schema, "properties");
    size_t count = stet_value_count(instance);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(instance, i, &len);
        stet_value ignored;
        if (stet_value_type(known) == STET_TYPE_OBJECT && stet_value_find(known, key, len, &ignored))
            continue;
        outcome result = apply_below(c, argument, key, len, 0, stet_value_at(instance, i));
        if (result == MISMATCH && stet_value_type(argument) == STET_TYPE_BOOL && !c->quiet) {
            c->keyword = "additionalProperties";
            stet_buf_clear(&c->what);
            stet_buf_str(&c->what, "unknown member");
            for (size_t k = 0; k < stet_value_count(known) && c->what.len < 300; k++) {
                stet_buf_str(&c->what, k ? ", " : "; known are ");
                stet_buf_str(&c->what, stet_value_key_at(known, k, NULL));
            }
        }
        if (result != MATCH)
            return result;
    }
    return MATCH;
}

static outcome check_required(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return MATCH;
    size_t count = stet_value_count(argument);
    for (size_t i = 0; i < count; i++) {
        stet_value name = stet_value_at(argument, i), ignored;
        size_t len = 0;
        const char *key = stet_value_as_string(&name, &len);
        if (!key)
            return malformed(c, "required", "an array of strings");
        if (!stet_value_find(instance, key, len, &ignored))
            return mismatch(c, "required", instance, "a member \"%.100s\"", key);
    }
    return MATCH;
}

static outcome check_items(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != STET_TYPE_ARRAY)
        return MATCH;
    size_t count = stet_value_count(instance);
    for (size_t i = stet_value_count(stet_value_get(schema, "prefixItems")); i < count; i++) {
        outcome result = apply_below(c, argument, NULL, 0, i, stet_value_at(instance, i));
        if (result != MATCH)
            return result;
    }
    return MATCH;
}

static outcome check_prefix_items(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_ARRAY)
        return MATCH;
    size_t count = stet_value_count(instance), schemas = stet_value_count(argument);
    for (size_t i = 0; i < count && i < schemas; i++) {
        outcome result = apply_below(c, stet_value_at(argument, i), NULL, 0, i, stet_value_at(instance, i));
        if (result != MATCH)
            return result;
    }
    return MATCH;
}

static int by_value(const void *a, const void *b) {
    return stet_value_compare(*(const stet_value *)a, *(const stet_value *)b);
}

static outcome check_unique(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    size_t count = stet_value_count(instance);
    if (!stet_value_as_bool(argument) || stet_value_type(instance) != STET_TYPE_ARRAY || count < 2)
        return MATCH;
    stet_value *sorted = stet_alloc(count * sizeof *sorted); /* borrowed from the instance */
    for (size_t i = 0; i < count; i++)
        sorted[i] = stet_value_at(instance, i);
    qsort(sorted, count, sizeof *sorted, by_value);
    outcome result = MATCH;
    for (size_t i = 1; i < count && result == MATCH; i++) {
        if (!stet_value_equal(sorted[i - 1], sorted[i]))
            continue;
        stet_buf twice = STET_BUF(0);
        describe(&twice, sorted[i]);
        result = mismatch(c, "uniqueItems", instance, "elements that are all different (%s is there twice)",
                          stet_buf_cstr(&twice));
        stet_buf_release(&twice);
    }
    free(sorted);
    return result;
}

/* The six keywords that limit the size of a container or string. */
static outcome check_count(ctx *c, const char *name, stet_type type, const char *unit, bool at_least,
                           stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != type)
        return MATCH;
    uint64_t bound = (uint64_t)stet_value_as_int(argument);
    uint64_t count = type == STET_TYPE_STRING ? characters(instance) : stet_value_count(instance);
    if (at_least ? count >= bound : count <= bound)
        return MATCH;
    return mismatch(c, name, instance, "at %s %llu %s%s", at_least ? "least" : "most", (unsigned long long)bound, unit,
                    bound == 1 ? "" : "s");
}

#define COUNT_CHECK(function, name, type, unit, at_least)                                                              \
    static outcome function(ctx *c, stet_value schema, stet_value argument, stet_value instance) {                     \
        (void)schema;                                                                                                  \
        return check_count(c, name, type, unit, at_least, argument, instance);                                         \
    }
COUNT_CHECK(check_min_items, "minItems", STET_TYPE_ARRAY, "element", true)
COUNT_CHECK(check_max_items, "maxItems", STET_TYPE_ARRAY, "element", false)
COUNT_CHECK(check_min_properties, "minProperties", STET_TYPE_OBJECT, "member", true)
COUNT_CHECK(check_max_properties, "maxProperties", STET_TYPE_OBJECT, "member", false)
COUNT_CHECK(check_min_length, "minLength", STET_TYPE_STRING, "character", true)
COUNT_CHECK(check_max_length, "maxLength", STET_TYPE_STRING, "character", false)

static outcome check_bound(ctx *c, const char *name, const char *words, bool good, stet_value argument,
                           stet_value instance) {
    if (good)
        return MATCH;
    stet_buf number = STET_BUF(0);
    stet_json_write(&number, argument, STET_JSON_CANONICAL);
    mismatch(c, name, instance, "a number %s %s", words, stet_buf_cstr(&number));
    stet_buf_release(&number);
    return MISMATCH;
}

/* Compares by magnitude alone: beyond 2^53, an integer and a double may be equal here although stet_value_compare
 * orders them. */
static int compare_numbers(stet_value a, stet_value b) {
    bool a_double = stet_value_type(a) == STET_TYPE_DOUBLE, b_double = stet_value_type(b) == STET_TYPE_DOUBLE;
    if (a_double == b_double)
        return stet_value_compare(a, b);
    double d = stet_value_as_double(a_double ? a : b);
    int64_t i = stet_value_as_int(a_double ? b : a);
    if (fabs(d) < 0x1p63 && rint(d) == d && (int64_t)d == i)
        return 0;
    return stet_value_compare(a, b);
}

#define BOUND_CHECK(function, name, words, comparison)                                                                 \
    static outcome function(ctx *c, stet_value schema, stet_value argument, stet_value instance) {                     \
        (void)schema;                                                                                                  \
        int order = stet_schema_is_number(instance) ? compare_numbers(instance, argument) : 0;                         \
        return check_bound(c, name, words, !stet_schema_is_number(instance) || (comparison), argument, instance);      \
    }
BOUND_CHECK(check_minimum, "minimum", "of at least", order >= 0)
BOUND_CHECK(check_maximum, "maximum", "of at most", order <= 0)
BOUND_CHECK(check_exclusive_minimum, "exclusiveMinimum", "above", order > 0)
BOUND_CHECK(check_exclusive_maximum, "exclusiveMaximum", "below", order < 0)

__extension__ typedef unsigned __int128 wide;

/* |v| as digits * 10^exponent, with digits below 10^20, as its canonical text has it: 0.1 is exactly a tenth. */
static void decimal(stet_value v, uint64_t *digits, int *exponent) {
    char text[32];
    *digits = 0;
    *exponent = 0;
    if (stet_value_type(v) == STET_TYPE_INT) {
        int64_t i = stet_value_as_int(v);
        *digits = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
        return;
    }
    stet_number_print(fabs(stet_value_as_double(v)), text);
    bool fraction = false;
    const char *s = text;
    for (; *s && *s != 'e'; s++) {
        if (*s == '.') {
            fraction = true;
        } else if (*digits > (UINT64_MAX - 9) / 10) {
            *exponent += !fraction; /* only the zeros that pad an integer to 21 digits get here */
        } else {
            *digits = *digits * 10 + (uint64_t)(*s - '0');
            *exponent -= fraction;
        }
    }
    if (*s == 'e')
        *exponent += (int)strtol(s + 1, NULL, 10);
    while (*digits && *digits % 10 == 0) {
        *digits /= 10;
        ++*exponent;
    }
}

static bool is_multiple(stet_value v, stet_value of) {
    uint64_t digits, of_digits;
    int exponent, of_exponent;
    decimal(v, &digits, &exponent);
    decimal(of, &of_digits, &of_exponent);
    assert(of_digits > 0);
    if (digits == 0)
        return true;
    if (exponent >= of_exponent) {
        wide rest = digits % of_digits, ten = 10 % of_digits;
        /* rest * 10^(difference) modulo of_digits; both factors are below 2^64 */
        for (unsigned n = (unsigned)(exponent - of_exponent); n; n >>= 1) {
            if (n & 1)
                rest = rest * ten % of_digits;
            ten = ten * ten % of_digits;
        }
        return rest == 0;
    }
    wide divisor = of_digits;
    for (int n = exponent; n < of_exponent; n++) {
        divisor *= 10;
        if (divisor > digits)
            return false; /* larger than v, which is not 0 */
    }
    return digits % divisor == 0;
}

static outcome check_multiple(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    bool good = !stet_schema_is_number(instance) || is_multiple(instance, argument);
    return check_bound(c, "multipleOf", "that is a multiple of", good, argument, instance);
}

static outcome check_pattern(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_STRING)
        return MATCH;
    size_t pattern_len = 0, len = 0;
    const char *pattern = stet_value_as_string(&argument, &pattern_len);
    stet_regex *regex = NULL;
    for (size_t i = 0; i < c->patterns && !regex; i++)
        if (stet_value_equal(c->pattern_text[i], argument))
            regex = c->pattern[i];
    bool kept = regex;
    if (!regex) {
        stet_status status = stet_regex_compile(pattern, pattern_len, &regex, c->err);
        if (status != STET_OK)
            return broken(c, status);
        if (c->patterns < PATTERNS) {
            c->pattern_text[c->patterns] = argument;
            c->pattern[c->patterns++] = regex;
            kept = true;
        }
    }
    const char *text = stet_value_as_string(&instance, &len);
    bool found = stet_regex_matches(regex, text, len);
    if (!kept)
        stet_regex_free(regex);
    return found ? MATCH : mismatch(c, "pattern", instance, "a string that matches %.200s", pattern);
}

static outcome check_all(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    for (size_t i = 0; i < stet_value_count(argument); i++) {
        outcome result = apply(c, stet_value_at(argument, i), instance);
        if (result != MATCH)
            return result;
    }
    return MATCH;
}

/* If several alternatives failed, the one that went deepest into the instance is probably the one its author meant. If
 * none went below the top, all of their expectations are listed. */
typedef struct alternatives {
    stet_buf all, where, what;
    size_t depth;
    const char *keyword;
} alternatives;

static void add_alternative(ctx *c, alternatives *a, size_t here) {
    if (c->quiet)
        return;
    if (c->where_depth > here && c->where_depth > a->depth) {
        a->depth = c->where_depth;
        a->keyword = c->keyword;
        stet_buf_clear(&a->where);
        stet_buf_add(&a->where, c->where.data, c->where.len);
        stet_buf_clear(&a->what);
        stet_buf_add(&a->what, c->what.data, c->what.len);
    } else if (c->where_depth == here && a->all.len < 300) {
        const char *found = memmem(c->what.data, c->what.len, ", found ", 8);
        size_t len = found ? (size_t)(found - c->what.data) : c->what.len;
        stet_buf_str(&a->all, a->all.len ? "; or " : "");
        stet_buf_add(&a->all, c->what.data, len);
    }
}

static outcome none_matched(ctx *c, alternatives *a, const char *name, size_t count, stet_value instance) {
    if (c->quiet)
        return MISMATCH;
    if (a->depth) {
        stet_buf_clear(&c->where);
        stet_buf_add(&c->where, a->where.data, a->where.len);
        stet_buf_clear(&c->what);
        stet_buf_add(&c->what, a->what.data, a->what.len);
        c->where_depth = a->depth;
        c->keyword = a->keyword;
        return MISMATCH;
    }
    return mismatch(c, name, instance, "one of %zu alternatives (%s)", count, stet_buf_cstr(&a->all));
}

static outcome check_some(ctx *c, const char *name, bool only_one, stet_value argument, stet_value instance) {
    alternatives a = {.all = STET_BUF(0), .where = STET_BUF(0), .what = STET_BUF(0)};
    size_t count = stet_value_count(argument), matched = 0, first = 0, here = stet_path_depth(stet_path_ref(&c->path));
    outcome result = MISMATCH;
    for (size_t i = 0; i < count; i++) {
        outcome one = apply(c, stet_value_at(argument, i), instance);
        if (one == BROKEN) {
            result = BROKEN;
            break;
        }
        if (one == MISMATCH) {
            add_alternative(c, &a, here);
            continue;
        }
        if (++matched == 2) {
            result =
                mismatch(c, name, instance, "exactly one alternative to match, but numbers %zu and %zu do", first, i);
            break;
        }
        first = i;
        result = MATCH;
        if (!only_one)
            break;
    }
    if (result == MISMATCH && !matched)
        none_matched(c, &a, name, count, instance);
    stet_buf_release(&a.all);
    stet_buf_release(&a.where);
    stet_buf_release(&a.what);
    return result;
}

static outcome check_any(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    return check_some(c, "anyOf", false, argument, instance);
}

static outcome check_one(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    return check_some(c, "oneOf", true, argument, instance);
}

static outcome check_not(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    c->quiet++;
    outcome result = apply(c, argument, instance);
    c->quiet--;
    if (result == MATCH)
        return mismatch(c, "not", instance, "a value that does not match the schema of \"not\"");
    return result == MISMATCH ? MATCH : BROKEN;
}

static outcome check_reference(ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    stet_value target;
    if (!stet_schema_resolve(c->root, argument, &target))
        return malformed(c, "$ref", "\"#\" or \"#/$defs/NAME\" with a NAME that $defs has");
    return apply(c, target, instance);
}

typedef outcome check(ctx *c, stet_value schema, stet_value argument, stet_value instance);
static check *const checks[STET_KEYWORD_COUNT] = {
    [STET_KEYWORD_REF] = check_reference,
    [STET_KEYWORD_ADDITIONAL_PROPERTIES] = check_additional,
    [STET_KEYWORD_ALL_OF] = check_all,
    [STET_KEYWORD_ANY_OF] = check_any,
    [STET_KEYWORD_CONST] = check_const,
    [STET_KEYWORD_ENUM] = check_enum,
    [STET_KEYWORD_EXCLUSIVE_MAXIMUM] = check_exclusive_maximum,
    [STET_KEYWORD_EXCLUSIVE_MINIMUM] = check_exclusive_minimum,
    [STET_KEYWORD_ITEMS] = check_items,
    [STET_KEYWORD_MAX_ITEMS] = check_max_items,
    [STET_KEYWORD_MAX_LENGTH] = check_max_length,
    [STET_KEYWORD_MAX_PROPERTIES] = check_max_properties,
    [STET_KEYWORD_MAXIMUM] = check_maximum,
    [STET_KEYWORD_MIN_ITEMS] = check_min_items,
    [STET_KEYWORD_MIN_LENGTH] = check_min_length,
    [STET_KEYWORD_MIN_PROPERTIES] = check_min_properties,
    [STET_KEYWORD_MINIMUM] = check_minimum,
    [STET_KEYWORD_MULTIPLE_OF] = check_multiple,
    [STET_KEYWORD_NOT] = check_not,
    [STET_KEYWORD_ONE_OF] = check_one,
    [STET_KEYWORD_PATTERN] = check_pattern,
    [STET_KEYWORD_PREFIX_ITEMS] = check_prefix_items,
    [STET_KEYWORD_PROPERTIES] = check_properties,
    [STET_KEYWORD_REQUIRED] = check_required,
    [STET_KEYWORD_TYPE] = check_type,
    [STET_KEYWORD_UNIQUE_ITEMS] = check_unique,
};

static outcome apply_keyword(ctx *c, const stet_schema_keyword *k, stet_value schema, stet_value argument,
                             stet_value instance) {
    const char *expected = stet_schema_wrong_shape(k->shape, argument);
    if (expected)
        return malformed(c, k->name, expected);
    return checks[k->id] ? checks[k->id](c, schema, argument, instance) : MATCH;
}

static outcome apply_object(ctx *c, stet_value schema, stet_value instance) {
    /* `type` is checked before the other keywords, because its message is the clearest. */
    static const stet_schema_keyword type = {"type", STET_SHAPE_TYPES, STET_KEYWORD_TYPE};
    stet_value argument;
    if (stet_value_find(schema, "type", 4, &argument)) {
        outcome result = apply_keyword(c, &type, schema, argument, instance);
        if (result != MATCH)
            return result;
    }
    size_t count = stet_value_count(schema);
    for (size_t i = 0; i < count; i++) {
        size_t len = 0;
        const char *name = stet_value_key_at(schema, i, &len);
        const stet_schema_keyword *k = stet_schema_keyword_find(name, len);
        if (!k || k->id == STET_KEYWORD_TYPE)
            continue;
        outcome result = apply_keyword(c, k, schema, stet_value_at(schema, i), instance);
        if (result != MATCH)
            return result;
    }
    return MATCH;
}

/* The only recursive function of the checker, with its limits. */
static outcome apply(ctx *c, stet_value schema, stet_value instance) {
    if (c->depth == STET_SCHEMA_MAX_DEPTH)
        return broken(c, stet_fail(c->err, STET_LIMIT,
                                   "schema: more than %d schemas inside each other (a $ref that leads back to itself?)",
                                   STET_SCHEMA_MAX_DEPTH));
    if (++c->steps > STET_SCHEMA_MAX_STEPS)
        return broken(c, stet_fail(c->err, STET_LIMIT, "schema: more than %d steps", STET_SCHEMA_MAX_STEPS));
    switch (stet_value_type(schema)) {
    case STET_TYPE_BOOL:
        return stet_value_as_bool(schema) ? MATCH : mismatch(c, "false", instance, "nothing here");
    case STET_TYPE_OBJECT: {
        c->depth++;
        outcome result = apply_object(c, schema, instance);
        c->depth--;
        return result;
    }
    default:
        return broken(c, stet_fail(c->err, STET_INVALID, "schema: expected an object, true or false"));
    }
}

stet_status stet_schema_check(stet_value schema, stet_value instance, stet_error *err) {
    ctx c = {.root = schema,
             .path = STET_PATH_INIT,
             .where = STET_BUF(0),
             .what = STET_BUF(0),
             .err = err,
             .quiet = err ? 0 : 1};
    outcome result = apply(&c, schema, instance);
    stet_status status = result == MATCH ? STET_OK : result == BROKEN ? c.status : STET_INVALID;
    if (result == MISMATCH && err) {
        const char *where = c.where.len ? stet_buf_cstr(&c.where) : "value";
        stet_fail(err, status, "%.400s: %s", where, stet_buf_cstr(&c.what));
        stet_detail(err, "pointer", stet_value_string_n(stet_buf_cstr(&c.where), c.where.len));
        stet_detail(err, "keyword", stet_value_string(c.keyword));
    }
    for (size_t i = 0; i < c.patterns; i++)
        stet_regex_free(c.pattern[i]);
    stet_buf_release(&c.where);
    stet_buf_release(&c.what);
    stet_path_release(&c.path);
    return status;
}
