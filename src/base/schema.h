/* schema.h - checking a value against a JSON Schema.
 *
 *     if (stet_schema_valid(schema, &err) != STET_OK) ...           // once, where a schema comes in
 *     if (stet_schema_check(schema, instance, &err) != STET_OK) ... // "/rows/3/name: expected a string, found 7"
 *
 * The dialect is a subset of draft 2020-12: boolean schemas; type, enum, const; properties, required,
 * additionalProperties, minProperties, maxProperties; items, prefixItems, minItems, maxItems, uniqueItems; minimum,
 * maximum, exclusiveMinimum, exclusiveMaximum, multipleOf (decimal: 19.99 is a multiple of 0.01); minLength, maxLength
 * (in code points), pattern; allOf, anyOf, oneOf, not; $ref to "#" or "#/$defs/NAME", and $defs at the root.
 *
 * `pattern` is a POSIX extended regular expression, found anywhere in the string unless anchored. What POSIX reads
 * otherwise than ECMAScript does, \d for one, is refused rather than silently taken the other way: see base/regex.h.
 *
 * Keywords of the draft that would be ignored here (if, contains, patternProperties, ...) are refused too, and so are
 * names that look like a misspelt keyword. Anything else is an annotation and ignored: title, description, default,
 * examples, format, $schema, $id, $comment, asCell, ...
 *
 * Failure: STET_INVALID if the instance does not match (details: "pointer", "keyword") or the schema is malformed
 * (details: "schema_pointer"); STET_LIMIT beyond STET_SCHEMA_MAX_DEPTH schemas inside each other, $ref included, which
 * is also how a $ref that leads back to itself ends, or beyond STET_SCHEMA_MAX_STEPS schemas applied.
 *
 * stet_schema_check meets malformed keywords with an error as well, never with a crash, but finds only those that it
 * comes upon.
 */
#ifndef STET_BASE_SCHEMA_H
#define STET_BASE_SCHEMA_H

#include "base/error.h"

#define STET_SCHEMA_MAX_DEPTH 1024
#define STET_SCHEMA_MAX_STEPS 10000000

STET_CHECKED stet_status stet_schema_valid(stet_value schema, stet_error *err);
STET_CHECKED stet_status stet_schema_check(stet_value schema, stet_value instance, stet_error *err);

#endif
