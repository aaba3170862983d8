/* schema_keywords.c - the table of schema keywords, and what shape the argument of each must have. */

#include "base/schema_keywords.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/suggest.h"
#include "base/vec.h"

/* Sorted by name. */
static const stet_schema_keyword keywords[] = {
    {"$anchor", STET_SHAPE_ANCHOR, STET_KEYWORD_INERT},
    {"$defs", STET_SHAPE_SCHEMA_MAP, STET_KEYWORD_INERT},
    {"$dynamicAnchor", STET_SHAPE_ANCHOR, STET_KEYWORD_INERT},
    {"$dynamicRef", STET_SHAPE_REFERENCE, STET_KEYWORD_REF},
    {"$recursiveRef", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"$ref", STET_SHAPE_REFERENCE, STET_KEYWORD_REF},
    {"$vocabulary", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"additionalItems", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"additionalProperties", STET_SHAPE_SCHEMA, STET_KEYWORD_ADDITIONAL_PROPERTIES},
    {"allOf", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_ALL_OF},
    {"anyOf", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_ANY_OF},
    {"const", STET_SHAPE_ANYTHING, STET_KEYWORD_CONST},
    {"contains", STET_SHAPE_SCHEMA, STET_KEYWORD_CONTAINS},
    {"definitions", STET_SHAPE_SCHEMA_MAP, STET_KEYWORD_INERT},
    {"dependencies", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"dependentRequired", STET_SHAPE_STRINGS_MAP, STET_KEYWORD_DEPENDENT_REQUIRED},
    {"dependentSchemas", STET_SHAPE_SCHEMA_MAP, STET_KEYWORD_DEPENDENT_SCHEMAS},
    {"else", STET_SHAPE_SCHEMA, STET_KEYWORD_INERT},
    {"enum", STET_SHAPE_VALUES, STET_KEYWORD_ENUM},
    {"exclusiveMaximum", STET_SHAPE_NUMBER, STET_KEYWORD_EXCLUSIVE_MAXIMUM},
    {"exclusiveMinimum", STET_SHAPE_NUMBER, STET_KEYWORD_EXCLUSIVE_MINIMUM},
    {"if", STET_SHAPE_SCHEMA, STET_KEYWORD_IF},
    {"items", STET_SHAPE_SCHEMA, STET_KEYWORD_ITEMS},
    {"maxContains", STET_SHAPE_COUNT, STET_KEYWORD_INERT},
    {"maxItems", STET_SHAPE_COUNT, STET_KEYWORD_MAX_ITEMS},
    {"maxLength", STET_SHAPE_COUNT, STET_KEYWORD_MAX_LENGTH},
    {"maxProperties", STET_SHAPE_COUNT, STET_KEYWORD_MAX_PROPERTIES},
    {"maximum", STET_SHAPE_NUMBER, STET_KEYWORD_MAXIMUM},
    {"minContains", STET_SHAPE_COUNT, STET_KEYWORD_INERT},
    {"minItems", STET_SHAPE_COUNT, STET_KEYWORD_MIN_ITEMS},
    {"minLength", STET_SHAPE_COUNT, STET_KEYWORD_MIN_LENGTH},
    {"minProperties", STET_SHAPE_COUNT, STET_KEYWORD_MIN_PROPERTIES},
    {"minimum", STET_SHAPE_NUMBER, STET_KEYWORD_MINIMUM},
    {"multipleOf", STET_SHAPE_POSITIVE, STET_KEYWORD_MULTIPLE_OF},
    {"not", STET_SHAPE_SCHEMA, STET_KEYWORD_NOT},
    {"oneOf", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_ONE_OF},
    {"pattern", STET_SHAPE_PATTERN, STET_KEYWORD_PATTERN},
    {"patternProperties", STET_SHAPE_PATTERN_MAP, STET_KEYWORD_PATTERN_PROPERTIES},
    {"prefixItems", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_PREFIX_ITEMS},
    {"properties", STET_SHAPE_SCHEMA_MAP, STET_KEYWORD_PROPERTIES},
    {"propertyNames", STET_SHAPE_SCHEMA, STET_KEYWORD_PROPERTY_NAMES},
    {"required", STET_SHAPE_STRINGS, STET_KEYWORD_REQUIRED},
    {"then", STET_SHAPE_SCHEMA, STET_KEYWORD_INERT},
    {"type", STET_SHAPE_TYPES, STET_KEYWORD_TYPE},
    {"unevaluatedItems", STET_SHAPE_SCHEMA, STET_KEYWORD_UNEVALUATED_ITEMS},
    {"unevaluatedProperties", STET_SHAPE_SCHEMA, STET_KEYWORD_UNEVALUATED_PROPERTIES},
    {"uniqueItems", STET_SHAPE_BOOLEAN, STET_KEYWORD_UNIQUE_ITEMS},
};
enum { KEYWORDS = sizeof keywords / sizeof *keywords };

const stet_schema_keyword *stet_schema_keyword_find(const char *name, size_t len) {
    size_t low = 0, high = KEYWORDS;
    if (strlen(name) != len)
        return NULL; /* a NUL inside */
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(name, keywords[middle].name);
        if (order == 0)
            return &keywords[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *stet_schema_keyword_meant(const char *name, size_t len) {
    for (size_t i = 0; i < KEYWORDS; i++) {
        size_t known = strlen(keywords[i].name);
        if (known >= 5 && stet_suggest_distance(name, len, keywords[i].name, known) <= 1)
            return keywords[i].name;
    }
    return NULL;
}

static const char *const type_names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};

const char *stet_schema_type_name(stet_value v) {
    size_t len = 0;
    const char *s = stet_value_as_string(&v, &len);
    for (size_t i = 0; s && i < sizeof type_names / sizeof *type_names; i++)
        if (strlen(type_names[i]) == len && memcmp(s, type_names[i], len) == 0)
            return type_names[i];
    return NULL;
}

bool stet_schema_is_number(stet_value v) {
    stet_type type = stet_value_type(v);
    return type == STET_TYPE_INT || type == STET_TYPE_DOUBLE;
}

bool stet_schema_is(stet_value v) {
    return stet_value_type(v) == STET_TYPE_OBJECT || stet_value_type(v) == STET_TYPE_BOOL;
}

const char *stet_schema_wrong_shape(stet_schema_shape wanted, stet_value v) {
    stet_type type = stet_value_type(v);
    switch (wanted) {
    case STET_SHAPE_ANYTHING:
        return NULL;
    case STET_SHAPE_TYPES:
        return stet_schema_type_name(v) || (type == STET_TYPE_ARRAY && stet_value_count(v))
                   ? NULL
                   : "the name of a type, or an array of them";
    case STET_SHAPE_VALUES:
        return type == STET_TYPE_ARRAY && stet_value_count(v) ? NULL : "an array that is not empty";
    case STET_SHAPE_STRINGS:
        return type == STET_TYPE_ARRAY ? NULL : "an array of strings";
    case STET_SHAPE_SCHEMA:
        return stet_schema_is(v) ? NULL : "a schema: an object, true or false";
    case STET_SHAPE_STRINGS_MAP:
        return type == STET_TYPE_OBJECT ? NULL : "an object of arrays of strings";
    case STET_SHAPE_SCHEMA_MAP:
    case STET_SHAPE_PATTERN_MAP:
        return type == STET_TYPE_OBJECT ? NULL : "an object of schemas";
    case STET_SHAPE_SCHEMA_LIST:
        return type == STET_TYPE_ARRAY && stet_value_count(v) ? NULL : "an array of schemas that is not empty";
    case STET_SHAPE_COUNT:
        return (type == STET_TYPE_INT && stet_value_as_int(v) >= 0) ||
                       (type == STET_TYPE_DOUBLE && stet_value_as_double(v) >= 0 &&
                        rint(stet_value_as_double(v)) == stet_value_as_double(v))
                   ? NULL
                   : "an integer from 0";
    case STET_SHAPE_NUMBER:
        return stet_schema_is_number(v) ? NULL : "a number";
    case STET_SHAPE_POSITIVE:
        return stet_schema_is_number(v) && stet_value_as_double(v) > 0 ? NULL : "a number above 0";
    case STET_SHAPE_BOOLEAN:
        return type == STET_TYPE_BOOL ? NULL : "true or false";
    case STET_SHAPE_PATTERN:
        return type == STET_TYPE_STRING ? NULL : "a string with a regular expression";
    case STET_SHAPE_ANCHOR:
    case STET_SHAPE_REFERENCE:
        return type == STET_TYPE_STRING ? NULL : "a string";
    case STET_SHAPE_UNSUPPORTED:
        return "left out: stet does not support it, and will not ignore it";
    }
    return NULL;
}

uint64_t stet_schema_count(stet_value v) {
    if (stet_value_type(v) != STET_TYPE_DOUBLE)
        return (uint64_t)stet_value_as_int(v);
    double d = stet_value_as_double(v);
    return d >= 0x1p64 ? UINT64_MAX : (uint64_t)d;
}

bool stet_schema_contains_schemas(stet_schema_shape shape) {
    return shape == STET_SHAPE_SCHEMA_MAP || shape == STET_SHAPE_PATTERN_MAP || shape == STET_SHAPE_SCHEMA_LIST;
}

static int hex(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Percent-escapes of the fragment of a URI. */
static bool unescape(const char *text, size_t len, stet_buf *out) {
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            if (len - i < 3 || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0)
                return false;
            c = (char)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
            i += 2;
        }
        stet_buf_add(out, &c, 1);
    }
    return true;
}

/* The next token of a JSON Pointer, without its escapes. False at the end, or at a "~" that is not an escape. */
static bool next_token(const char **pointer, const char *end, stet_buf *token) {
    stet_buf_clear(token);
    if (*pointer == end || **pointer != '/')
        return false;
    for (++*pointer; *pointer < end && **pointer != '/'; ++*pointer) {
        char c = **pointer;
        if (c == '~') {
            if (++*pointer == end || (**pointer != '0' && **pointer != '1'))
                return false;
            c = **pointer == '0' ? '~' : '/';
        }
        stet_buf_add(token, &c, 1);
    }
    return true;
}

/* Follows a pointer from schema to schema. A place that is not a schema, such as a member of an enum, is no target. */
static bool follow_pointer(stet_value root, const char *pointer, size_t len, stet_value *out) {
    const char *end = pointer + len;
    stet_buf token = STET_BUF(0);
    stet_value at = root;
    bool found = true;
    while (found && pointer < end) {
        const stet_schema_keyword *k = NULL;
        found = next_token(&pointer, end, &token) && stet_value_type(at) == STET_TYPE_OBJECT &&
                (k = stet_schema_keyword_find(stet_buf_cstr(&token), token.len)) &&
                stet_value_find(at, token.data, token.len, &at);
        if (!found || k->shape == STET_SHAPE_SCHEMA)
            continue;
        found = stet_schema_contains_schemas(k->shape) && next_token(&pointer, end, &token);
        if (found && k->shape == STET_SHAPE_SCHEMA_LIST) {
            size_t index = 0, digits = 0;
            for (; digits < token.len && digits < 9 && token.data[digits] >= '0' && token.data[digits] <= '9'; digits++)
                index = index * 10 + (size_t)(token.data[digits] - '0');
            found = token.len && digits == token.len && stet_value_type(at) == STET_TYPE_ARRAY &&
                    index < stet_value_count(at);
            if (found)
                at = stet_value_at(at, index);
        } else if (found) {
            found = stet_value_type(at) == STET_TYPE_OBJECT && stet_value_find(at, token.data, token.len, &at);
        }
    }
    stet_buf_release(&token);
    *out = at;
    return found && stet_schema_is(at);
}

static bool is_text(stet_value v, const char *text, size_t len) {
    size_t have = 0;
    const char *s = stet_value_as_string(&v, &have);
    return s && have == len && memcmp(s, text, len) == 0;
}

/* The schema with this $anchor or $dynamicAnchor. */
static bool find_anchor(stet_value root, const char *name, size_t len, stet_value *out) {
    STET_VEC(stet_value) open = {0};
    bool found = false;
    *stet_vec_add(&open) = root;
    while (open.len && !found) {
        stet_value at = open.at[--open.len];
        if (stet_value_type(at) != STET_TYPE_OBJECT)
            continue;
        found = is_text(stet_value_get(at, "$anchor"), name, len) ||
                is_text(stet_value_get(at, "$dynamicAnchor"), name, len);
        if (found)
            *out = at;
        for (size_t i = 0; i < stet_value_count(at) && !found; i++) {
            size_t key_len = 0;
            const char *key = stet_value_key_at(at, i, &key_len);
            const stet_schema_keyword *k = stet_schema_keyword_find(key, key_len);
            stet_value argument = stet_value_at(at, i);
            if (k && k->shape == STET_SHAPE_SCHEMA)
                *stet_vec_add(&open) = argument;
            for (size_t j = 0; k && stet_schema_contains_schemas(k->shape) && j < stet_value_count(argument); j++)
                *stet_vec_add(&open) = stet_value_at(argument, j);
        }
    }
    stet_vec_release(&open);
    return found;
}

bool stet_schema_resolve(stet_value root, stet_value reference, stet_value *out) {
    size_t len = 0, own = 0;
    const char *text = stet_value_as_string(&reference, &len);
    stet_value id = stet_value_type(root) == STET_TYPE_OBJECT ? stet_value_get(root, "$id") : stet_value_null();
    const char *base = stet_value_as_string(&id, &own);
    if (own && base[own - 1] == '#')
        own--;
    if (own && len >= own && memcmp(text, base, own) == 0 && (len == own || text[own] == '#')) {
        text += own;
        len -= own;
    } else if (len == 0 || text[0] != '#') {
        return false; /* another document */
    }
    stet_buf fragment = STET_BUF(0);
    bool found = len <= 1 || unescape(text + 1, len - 1, &fragment);
    if (found && fragment.len == 0)
        *out = root;
    else if (found)
        found = fragment.data[0] == '/' ? follow_pointer(root, fragment.data, fragment.len, out)
                                        : find_anchor(root, fragment.data, fragment.len, out);
    stet_buf_release(&fragment);
    return found;
}
