/* schema_keywords.c - the table of schema keywords, and what shape the argument of each must have. */

#include "base/schema_keywords.h"

#include <string.h>

#include "base/path.h"
#include "base/suggest.h"

/* Sorted by name. */
static const stet_schema_keyword keywords[] = {
    {"$anchor", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"$defs", STET_SHAPE_SCHEMA_MAP, STET_KEYWORD_INERT},
    {"$dynamicAnchor", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"$dynamicRef", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"$recursiveRef", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"$ref", STET_SHAPE_REFERENCE, STET_KEYWORD_REF},
    {"$vocabulary", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"additionalItems", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"additionalProperties", STET_SHAPE_SCHEMA, STET_KEYWORD_ADDITIONAL_PROPERTIES},
    {"allOf", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_ALL_OF},
    {"anyOf", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_ANY_OF},
    {"const", STET_SHAPE_ANYTHING, STET_KEYWORD_CONST},
    {"contains", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"definitions", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"dependencies", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"dependentRequired", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"dependentSchemas", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"else", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"enum", STET_SHAPE_VALUES, STET_KEYWORD_ENUM},
    {"exclusiveMaximum", STET_SHAPE_NUMBER, STET_KEYWORD_EXCLUSIVE_MAXIMUM},
    {"exclusiveMinimum", STET_SHAPE_NUMBER, STET_KEYWORD_EXCLUSIVE_MINIMUM},
    {"if", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"items", STET_SHAPE_SCHEMA, STET_KEYWORD_ITEMS},
    {"maxContains", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"maxItems", STET_SHAPE_COUNT, STET_KEYWORD_MAX_ITEMS},
    {"maxLength", STET_SHAPE_COUNT, STET_KEYWORD_MAX_LENGTH},
    {"maxProperties", STET_SHAPE_COUNT, STET_KEYWORD_MAX_PROPERTIES},
    {"maximum", STET_SHAPE_NUMBER, STET_KEYWORD_MAXIMUM},
    {"minContains", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"minItems", STET_SHAPE_COUNT, STET_KEYWORD_MIN_ITEMS},
    {"minLength", STET_SHAPE_COUNT, STET_KEYWORD_MIN_LENGTH},
    {"minProperties", STET_SHAPE_COUNT, STET_KEYWORD_MIN_PROPERTIES},
    {"minimum", STET_SHAPE_NUMBER, STET_KEYWORD_MINIMUM},
    {"multipleOf", STET_SHAPE_POSITIVE, STET_KEYWORD_MULTIPLE_OF},
    {"not", STET_SHAPE_SCHEMA, STET_KEYWORD_NOT},
    {"oneOf", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_ONE_OF},
    {"pattern", STET_SHAPE_PATTERN, STET_KEYWORD_PATTERN},
    {"patternProperties", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"prefixItems", STET_SHAPE_SCHEMA_LIST, STET_KEYWORD_PREFIX_ITEMS},
    {"properties", STET_SHAPE_SCHEMA_MAP, STET_KEYWORD_PROPERTIES},
    {"propertyNames", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"required", STET_SHAPE_STRINGS, STET_KEYWORD_REQUIRED},
    {"then", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"type", STET_SHAPE_TYPES, STET_KEYWORD_TYPE},
    {"unevaluatedItems", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
    {"unevaluatedProperties", STET_SHAPE_UNSUPPORTED, STET_KEYWORD_INERT},
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
    case STET_SHAPE_SCHEMA_MAP:
        return type == STET_TYPE_OBJECT ? NULL : "an object of schemas";
    case STET_SHAPE_SCHEMA_LIST:
        return type == STET_TYPE_ARRAY && stet_value_count(v) ? NULL : "an array of schemas that is not empty";
    case STET_SHAPE_COUNT:
        return type == STET_TYPE_INT && stet_value_as_int(v) >= 0 ? NULL : "an integer from 0";
    case STET_SHAPE_NUMBER:
        return stet_schema_is_number(v) ? NULL : "a number";
    case STET_SHAPE_POSITIVE:
        return stet_schema_is_number(v) && stet_value_as_double(v) > 0 ? NULL : "a number above 0";
    case STET_SHAPE_BOOLEAN:
        return type == STET_TYPE_BOOL ? NULL : "true or false";
    case STET_SHAPE_PATTERN:
        return type == STET_TYPE_STRING ? NULL : "a string with a regular expression";
    case STET_SHAPE_REFERENCE:
        return type == STET_TYPE_STRING ? NULL : "a string";
    case STET_SHAPE_UNSUPPORTED:
        return "left out: stet does not support it, and will not ignore it";
    }
    return NULL;
}

bool stet_schema_resolve(stet_value root, stet_value reference, stet_value *out) {
    static const char prefix[] = "#/$defs/";
    size_t len = 0, skip = sizeof prefix - 1;
    const char *text = stet_value_as_string(&reference, &len);
    if (len == 1 && text[0] == '#') {
        *out = root;
        return true;
    }
    if (len <= skip || memcmp(text, prefix, skip) != 0 || memchr(text + skip, '/', len - skip) ||
        memchr(text, '%', len))
        return false;
    stet_value definitions = stet_value_get(root, "$defs");
    if (stet_value_type(definitions) != STET_TYPE_OBJECT)
        return false;
    if (!memchr(text, '~', len))
        return stet_value_find(definitions, text + skip, len - skip, out);
    stet_path p = STET_PATH_INIT;
    bool found = stet_path_of_pointer(&p, text + skip - 1, len - skip + 1, NULL) == STET_OK &&
                 stet_path_lookup(definitions, stet_path_ref(&p), out);
    stet_path_release(&p);
    return found;
}
