/* schema_keywords.h - the keywords of the dialect in base/schema.h, one table for checking and applying schemas.
 *
 * Private to src/base/schema*.c.
 */
#ifndef STET_BASE_SCHEMA_KEYWORDS_H
#define STET_BASE_SCHEMA_KEYWORDS_H

#include "base/error.h"

/* What the argument of a keyword must be. */
typedef enum stet_schema_shape {
    STET_SHAPE_ANYTHING,
    STET_SHAPE_TYPES,       /* the name of a type, or a list of them */
    STET_SHAPE_VALUES,      /* an array */
    STET_SHAPE_STRINGS,     /* an array of strings */
    STET_SHAPE_SCHEMA,      /* an object or a boolean */
    STET_SHAPE_STRINGS_MAP, /* an object of arrays of strings */
    STET_SHAPE_SCHEMA_MAP,  /* an object of schemas */
    STET_SHAPE_PATTERN_MAP, /* an object of schemas whose keys are regular expressions */
    STET_SHAPE_SCHEMA_LIST, /* an array of schemas, not empty */
    STET_SHAPE_COUNT,       /* an integer from 0 */
    STET_SHAPE_NUMBER,
    STET_SHAPE_POSITIVE, /* a number above 0 */
    STET_SHAPE_BOOLEAN,
    STET_SHAPE_PATTERN,
    STET_SHAPE_ANCHOR,
    STET_SHAPE_REFERENCE,
    STET_SHAPE_UNSUPPORTED /* part of the draft, but not supported here */
} stet_schema_shape;

typedef enum stet_schema_keyword_id {
    STET_KEYWORD_INERT, /* asserts nothing by itself, or is refused because of its shape */
    STET_KEYWORD_REF,
    STET_KEYWORD_ADDITIONAL_PROPERTIES,
    STET_KEYWORD_ALL_OF,
    STET_KEYWORD_ANY_OF,
    STET_KEYWORD_CONST,
    STET_KEYWORD_CONTAINS,
    STET_KEYWORD_DEPENDENT_REQUIRED,
    STET_KEYWORD_DEPENDENT_SCHEMAS,
    STET_KEYWORD_ENUM,
    STET_KEYWORD_EXCLUSIVE_MAXIMUM,
    STET_KEYWORD_EXCLUSIVE_MINIMUM,
    STET_KEYWORD_IF,
    STET_KEYWORD_ITEMS,
    STET_KEYWORD_MAX_ITEMS,
    STET_KEYWORD_MAX_LENGTH,
    STET_KEYWORD_MAX_PROPERTIES,
    STET_KEYWORD_MAXIMUM,
    STET_KEYWORD_MIN_ITEMS,
    STET_KEYWORD_MIN_LENGTH,
    STET_KEYWORD_MIN_PROPERTIES,
    STET_KEYWORD_MINIMUM,
    STET_KEYWORD_MULTIPLE_OF,
    STET_KEYWORD_NOT,
    STET_KEYWORD_ONE_OF,
    STET_KEYWORD_PATTERN,
    STET_KEYWORD_PATTERN_PROPERTIES,
    STET_KEYWORD_PREFIX_ITEMS,
    STET_KEYWORD_PROPERTIES,
    STET_KEYWORD_PROPERTY_NAMES,
    STET_KEYWORD_REQUIRED,
    STET_KEYWORD_TYPE,
    STET_KEYWORD_UNEVALUATED_ITEMS,
    STET_KEYWORD_UNEVALUATED_PROPERTIES,
    STET_KEYWORD_UNIQUE_ITEMS,
    STET_KEYWORD_COUNT
} stet_schema_keyword_id;

typedef struct stet_schema_keyword {
    const char *name;
    stet_schema_shape shape;
    stet_schema_keyword_id id;
} stet_schema_keyword;

/* NULL: the name is an annotation or misspelt. */
const stet_schema_keyword *stet_schema_keyword_find(const char *name, size_t len);
/* The keyword that this unknown name is probably a misspelling of, or NULL. */
const char *stet_schema_keyword_meant(const char *name, size_t len);
/* What the argument should have been, or NULL if it is right. Checks the argument itself, not what it contains. */
const char *stet_schema_wrong_shape(stet_schema_shape wanted, stet_value argument);

bool stet_schema_is(stet_value v); /* an object or a boolean */
bool stet_schema_is_number(stet_value v);
/* The name as a constant if `v` names a type, otherwise NULL. */
const char *stet_schema_type_name(stet_value v);
/* The value of a keyword that counts: an integer from 0, perhaps written as 2.0. */
uint64_t stet_schema_count(stet_value v);
/* Schemas in the argument of a keyword of this shape are its members or elements. */
bool stet_schema_contains_schemas(stet_schema_shape shape);

/* The target of a $ref or $dynamicRef: a schema of the same document. The reference is "#", "#" and a JSON Pointer, or
 * "#NAME" with a NAME that an $anchor or $dynamicAnchor has; the $id of the document may stand before it. Schemas inside
 * the document have no $id of their own (stet_schema_valid), so a $dynamicRef leads where a $ref leads. */
bool stet_schema_resolve(stet_value root, stet_value reference, stet_value *out);
#define STET_SCHEMA_REFERENCE_RULE                                                                                     \
    "a reference to a schema of this document: \"#\", \"#/$defs/NAME\" or another JSON Pointer, or \"#ANCHOR\""

#endif
