/* schema.h - checking a value against a JSON Schema.
 *
 *     if (stet_schema_valid(schema, &err) != STET_OK) // once, where a schema comes in
 *         return err.status;
 *     if (stet_schema_check(schema, instance, &err) != STET_OK) // "/rows/3/name: expected a string, found 7"
 *         return err.status;
 *
 * The dialect is draft 2020-12:
 *
 *   any value       boolean schemas, type, enum, const
 *   objects         properties, patternProperties, additionalProperties, propertyNames, required, minProperties,
 *                   maxProperties, dependentRequired, dependentSchemas, unevaluatedProperties
 *   arrays          items, prefixItems, contains, minContains, maxContains, minItems, maxItems, uniqueItems,
 *                   unevaluatedItems
 *   numbers         minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf (decimal: 19.99 is a multiple of
 *                   0.01)
 *   strings         minLength, maxLength (in code points), pattern
 *   combinations    allOf, anyOf, oneOf, not, if, then, else
 *   references      $ref and $dynamicRef to a schema of the same document, $defs (or definitions), $anchor,
 *                   $dynamicAnchor, $id at the root
 *
 * Refused, because ignoring it would accept wrong values:
 *
 *   other documents         a $ref to another document; $id inside the document
 *   metaschemas             $vocabulary. A $schema that leaves out vocabularies has no effect.
 *   older drafts            additionalItems, dependencies, $recursiveRef
 *   regular expressions     `pattern` and the keys of patternProperties are POSIX extended regular expressions, found
 *                           anywhere in the string unless anchored. What POSIX reads differently from ECMAScript, such
 *                           as \d, is refused: see base/regex.h.
 *   misspelt keywords       names that differ from a keyword in one letter
 *
 * Anything else is an annotation and ignored: title, description, default, examples, format, $schema, $comment, asCell,
 * ...
 *
 * Failures:
 *
 *   STET_INVALID    the instance does not match (details: "pointer", "keyword"), or the schema is malformed (details:
 *                   "schema_pointer")
 *   STET_LIMIT      more than STET_SCHEMA_MAX_DEPTH nested schemas, $ref included (so a $ref that leads back to itself
 *                   ends here), or more than STET_SCHEMA_MAX_STEPS schemas applied
 *
 * stet_schema_check reports malformed keywords as errors too and never crashes, but it finds only those that it
 * reaches.
 */
#ifndef STET_BASE_SCHEMA_H
#define STET_BASE_SCHEMA_H

#include "base/error.h"

#define STET_SCHEMA_MAX_DEPTH 1024
#define STET_SCHEMA_MAX_STEPS 10000000

STET_CHECKED stet_status stet_schema_valid(stet_value schema, stet_error *err);
STET_CHECKED stet_status stet_schema_check(stet_value schema, stet_value instance, stet_error *err);

#endif
