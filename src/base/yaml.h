/* yaml.h - reads a strict subset of YAML 1.2: what is data, and means the same to every reader.
 *
 *     stet_value params;
 *     const char *text = "lr: 0.5";
 *     stet_status status = stet_yaml_parse(text, strlen(text), &params, &err); // "line 3, column 7: ..."
 *
 * The result has the types of JSON. One document; mappings, sequences and scalars in any style. Plain scalars are read
 * by the core schema of YAML 1.2: null, true, false, integers, floats; everything else is a string. Keys are strings.
 *
 * Refused, with STET_INVALID and a hint:
 *   - tags, anchors, aliases and the merge key `<<`: a short text must not become a large value
 *   - plain scalars that YAML 1.1 and 1.2 read differently: yes, no, on, off, y, n, 010, 1_000, 12:30
 *   - a key that stands twice, a key that is not a scalar, a second document, .inf and .nan
 * STET_LIMIT: more than 16 MiB of text, 100 levels or 1,000,000 values.
 */
#ifndef STET_BASE_YAML_H
#define STET_BASE_YAML_H

#include "base/error.h"

STET_CHECKED stet_status stet_yaml_parse(const char *text, size_t len, stet_value *out, stet_error *err);

#endif
