/* schema_assert.c - the keywords of a JSON Schema that contain no schemas, and how a mismatch is described. */

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/schema_check.h"

stet_schema_outcome stet_schema_broken(stet_schema_ctx *c, stet_status status) {
    c->status = status;
    return STET_SCHEMA_BROKEN;
}

stet_schema_outcome stet_schema_malformed(stet_schema_ctx *c, const char *name, const char *expected) {
    return stet_schema_broken(c, stet_fail(c->err, STET_INVALID, "schema: \"%s\" must be %s", name, expected));
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

stet_schema_outcome stet_schema_mismatch(stet_schema_ctx *c, const char *name, stet_value instance, const char *format,
                                         ...) {
    if (c->quiet)
        return STET_SCHEMA_MISMATCH;
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
    return STET_SCHEMA_MISMATCH;
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

static stet_schema_outcome check_type(stet_schema_ctx *c, stet_value schema, stet_value argument, stet_value instance) {
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
            return stet_schema_malformed(c, "type", "the name of a type, or an array of them");
        }
        found = has_type(instance, name);
        stet_buf_printf(&wanted, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", name);
    }
    stet_schema_outcome result =
        found ? STET_SCHEMA_MATCH : stet_schema_mismatch(c, "type", instance, "%s", stet_buf_cstr(&wanted));
    stet_buf_release(&wanted);
    return result;
}

static stet_schema_outcome check_enum(stet_schema_ctx *c, stet_value schema, stet_value argument, stet_value instance) {
    (void)schema;
    size_t count = stet_value_count(argument);
    for (size_t i = 0; i < count; i++)
        if (stet_value_equal(stet_value_at(argument, i), instance))
            return STET_SCHEMA_MATCH;
    if (c->quiet)
        return STET_SCHEMA_MISMATCH;
    stet_buf choices = STET_BUF(0);
    for (size_t i = 0; i < count && choices.len < 300; i++) {
        stet_buf_str(&choices, i ? ", " : "");
        describe_wanted(&choices, stet_value_at(argument, i));
        if (choices.len >= 300 && i + 1 < count)
            stet_buf_str(&choices, ", ...");
    }
    stet_schema_mismatch(c, "enum", instance, "%s%s", count == 1 ? "" : "one of ", stet_buf_cstr(&choices));
    stet_buf_release(&choices);
    return STET_SCHEMA_MISMATCH;
}

static stet_schema_outcome check_const(stet_schema_ctx *c, stet_value schema, stet_value argument,
                                       stet_value instance) {
    (void)schema;
    if (stet_value_equal(argument, instance))
        return STET_SCHEMA_MATCH;
    stet_buf wanted = STET_BUF(0);
    describe_wanted(&wanted, argument);
    stet_schema_mismatch(c, "const", instance, "%s", stet_buf_cstr(&wanted));
    stet_buf_release(&wanted);
    return STET_SCHEMA_MISMATCH;
}

static stet_schema_outcome check_required(stet_schema_ctx *c, stet_value schema, stet_value argument,
                                          stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    size_t count = stet_value_count(argument);
    for (size_t i = 0; i < count; i++) {
        stet_value name = stet_value_at(argument, i), ignored;
        size_t len = 0;
        const char *key = stet_value_as_string(&name, &len);
        if (!key)
            return stet_schema_malformed(c, "required", "an array of strings");
        if (!stet_value_find(instance, key, len, &ignored))
            return stet_schema_mismatch(c, "required", instance, "a member \"%.100s\"", key);
    }
    return STET_SCHEMA_MATCH;
}

static int by_value(const void *a, const void *b) {
    return stet_value_compare(*(const stet_value *)a, *(const stet_value *)b);
}

static stet_schema_outcome check_unique(stet_schema_ctx *c, stet_value schema, stet_value argument,
                                        stet_value instance) {
    (void)schema;
    size_t count = stet_value_count(instance);
    if (!stet_value_as_bool(argument) || stet_value_type(instance) != STET_TYPE_ARRAY || count < 2)
        return STET_SCHEMA_MATCH;
    stet_value *sorted = stet_alloc(count * sizeof *sorted); /* borrowed from the instance */
    for (size_t i = 0; i < count; i++)
        sorted[i] = stet_value_at(instance, i);
    qsort(sorted, count, sizeof *sorted, by_value);
    stet_schema_outcome result = STET_SCHEMA_MATCH;
    for (size_t i = 1; i < count && result == STET_SCHEMA_MATCH; i++) {
        if (!stet_value_equal(sorted[i - 1], sorted[i]))
            continue;
        stet_buf twice = STET_BUF(0);
        describe(&twice, sorted[i]);
        result = stet_schema_mismatch(c, "uniqueItems", instance, "elements that are all different (%s is there twice)",
                                      stet_buf_cstr(&twice));
        stet_buf_release(&twice);
    }
    free(sorted);
    return result;
}

/* The six keywords that limit the size of a container or string. */
static stet_schema_outcome check_count(stet_schema_ctx *c, const char *name, stet_type type, const char *unit,
                                       bool at_least, stet_value argument, stet_value instance) {
    if (stet_value_type(instance) != type)
        return STET_SCHEMA_MATCH;
    uint64_t bound = stet_schema_count(argument);
    uint64_t count = type == STET_TYPE_STRING ? characters(instance) : stet_value_count(instance);
    if (at_least ? count >= bound : count <= bound)
        return STET_SCHEMA_MATCH;
    return stet_schema_mismatch(c, name, instance, "at %s %llu %s%s", at_least ? "least" : "most",
                                (unsigned long long)bound, unit, bound == 1 ? "" : "s");
}

#define COUNT_CHECK(function, name, type, unit, at_least)                                                              \
    static stet_schema_outcome function(stet_schema_ctx *c, stet_value schema, stet_value argument,                    \
                                        stet_value instance) {                                                         \
        (void)schema;                                                                                                  \
        return check_count(c, name, type, unit, at_least, argument, instance);                                         \
    }
COUNT_CHECK(check_min_items, "minItems", STET_TYPE_ARRAY, "element", true)
COUNT_CHECK(check_max_items, "maxItems", STET_TYPE_ARRAY, "element", false)
COUNT_CHECK(check_min_properties, "minProperties", STET_TYPE_OBJECT, "member", true)
COUNT_CHECK(check_max_properties, "maxProperties", STET_TYPE_OBJECT, "member", false)
COUNT_CHECK(check_min_length, "minLength", STET_TYPE_STRING, "character", true)
COUNT_CHECK(check_max_length, "maxLength", STET_TYPE_STRING, "character", false)

static stet_schema_outcome check_bound(stet_schema_ctx *c, const char *name, const char *words, bool good,
                                       stet_value argument, stet_value instance) {
    if (good)
        return STET_SCHEMA_MATCH;
    stet_buf number = STET_BUF(0);
    stet_json_write(&number, argument, STET_JSON_CANONICAL);
    stet_schema_mismatch(c, name, instance, "a number %s %s", words, stet_buf_cstr(&number));
    stet_buf_release(&number);
    return STET_SCHEMA_MISMATCH;
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
    static stet_schema_outcome function(stet_schema_ctx *c, stet_value schema, stet_value argument,                    \
                                        stet_value instance) {                                                         \
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

static stet_schema_outcome check_multiple(stet_schema_ctx *c, stet_value schema, stet_value argument,
                                          stet_value instance) {
    (void)schema;
    bool good = !stet_schema_is_number(instance) || is_multiple(instance, argument);
    return check_bound(c, "multipleOf", "that is a multiple of", good, argument, instance);
}

stet_schema_outcome stet_schema_matches(stet_schema_ctx *c, const char *pattern, size_t pattern_len, const char *text,
                                        size_t len) {
    stet_regex *regex = NULL;
    for (size_t i = 0; i < c->patterns && !regex; i++)
        if (c->pattern_text[i].len == pattern_len && memcmp(c->pattern_text[i].data, pattern, pattern_len) == 0)
            regex = c->pattern[i];
    bool kept = regex;
    if (!regex) {
        stet_status status = stet_regex_compile(pattern, pattern_len, &regex, c->err);
        if (status != STET_OK)
            return stet_schema_broken(c, status);
        if (c->patterns < STET_SCHEMA_PATTERNS) {
            c->pattern_text[c->patterns] = (stet_buf)STET_BUF(0);
            stet_buf_add(&c->pattern_text[c->patterns], pattern, pattern_len);
            c->pattern[c->patterns++] = regex;
            kept = true;
        }
    }
    bool found = stet_regex_matches(regex, text, len);
    if (!kept)
        stet_regex_free(regex);
    return found ? STET_SCHEMA_MATCH : STET_SCHEMA_MISMATCH;
}

void stet_schema_forget_patterns(stet_schema_ctx *c) {
    for (size_t i = 0; i < c->patterns; i++) {
        stet_regex_free(c->pattern[i]);
        stet_buf_release(&c->pattern_text[i]);
    }
    c->patterns = 0;
}

static stet_schema_outcome check_pattern(stet_schema_ctx *c, stet_value schema, stet_value argument,
                                         stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_STRING)
        return STET_SCHEMA_MATCH;
    size_t pattern_len = 0, len = 0;
    const char *pattern = stet_value_as_string(&argument, &pattern_len), *text = stet_value_as_string(&instance, &len);
    stet_schema_outcome result = stet_schema_matches(c, pattern, pattern_len, text, len);
    return result == STET_SCHEMA_MISMATCH
               ? stet_schema_mismatch(c, "pattern", instance, "a string that matches %.200s", pattern)
               : result;
}

/* {"a": ["b"]}: with a member a, the object must have a member b. */
static stet_schema_outcome check_dependent_required(stet_schema_ctx *c, stet_value schema, stet_value argument,
                                                    stet_value instance) {
    (void)schema;
    if (stet_value_type(instance) != STET_TYPE_OBJECT)
        return STET_SCHEMA_MATCH;
    for (size_t i = 0; i < stet_value_count(argument); i++) {
        size_t len = 0;
        const char *key = stet_value_key_at(argument, i, &len);
        stet_value names = stet_value_at(argument, i), ignored;
        if (stet_value_type(names) != STET_TYPE_ARRAY)
            return stet_schema_malformed(c, "dependentRequired", "an object of arrays of strings");
        if (!stet_value_find(instance, key, len, &ignored))
            continue;
        for (size_t k = 0; k < stet_value_count(names); k++) {
            stet_value name = stet_value_at(names, k);
            size_t name_len = 0;
            const char *text = stet_value_as_string(&name, &name_len);
            if (!text)
                return stet_schema_malformed(c, "dependentRequired", "an object of arrays of strings");
            if (!stet_value_find(instance, text, name_len, &ignored))
                return stet_schema_mismatch(c, "dependentRequired", instance, "a member \"%.100s\" beside \"%.100s\"",
                                            text, key);
        }
    }
    return STET_SCHEMA_MATCH;
}

stet_schema_checker *const stet_schema_assertions[STET_KEYWORD_COUNT] = {
    [STET_KEYWORD_CONST] = check_const,
    [STET_KEYWORD_DEPENDENT_REQUIRED] = check_dependent_required,
    [STET_KEYWORD_ENUM] = check_enum,
    [STET_KEYWORD_EXCLUSIVE_MAXIMUM] = check_exclusive_maximum,
    [STET_KEYWORD_EXCLUSIVE_MINIMUM] = check_exclusive_minimum,
    [STET_KEYWORD_MAX_ITEMS] = check_max_items,
    [STET_KEYWORD_MAX_LENGTH] = check_max_length,
    [STET_KEYWORD_MAX_PROPERTIES] = check_max_properties,
    [STET_KEYWORD_MAXIMUM] = check_maximum,
    [STET_KEYWORD_MIN_ITEMS] = check_min_items,
    [STET_KEYWORD_MIN_LENGTH] = check_min_length,
    [STET_KEYWORD_MIN_PROPERTIES] = check_min_properties,
    [STET_KEYWORD_MINIMUM] = check_minimum,
    [STET_KEYWORD_MULTIPLE_OF] = check_multiple,
    [STET_KEYWORD_PATTERN] = check_pattern,
    [STET_KEYWORD_REQUIRED] = check_required,
    [STET_KEYWORD_TYPE] = check_type,
    [STET_KEYWORD_UNIQUE_ITEMS] = check_unique,
};
