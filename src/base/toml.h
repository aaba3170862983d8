/* toml.h - a complete reader for TOML 1.0.
 *
 * The result is an object. Integers are int64, floats are doubles (nan and inf are refused: values have none). Dates
 * and times are strings as written, with `T` between date and time. Errors are STET_INVALID and name line and column
 * ("line 3, column 7: ...").
 */
#ifndef STET_BASE_TOML_H
#define STET_BASE_TOML_H

#include "base/buf.h"

STET_CHECKED stet_status stet_toml_parse(const char *text, size_t len, stet_value *out, stet_error *err);
/* Where the key at `pointer` is defined, in a text that parses; like stet_json_locate. */
bool stet_toml_locate(const char *text, size_t len, const char *pointer, size_t *line, size_t *column);
/* Writes a key: bare if possible, otherwise as a basic string. */
void stet_toml_write_key(stet_buf *b, const char *key, size_t len);
/* Writes a basic string. */
void stet_toml_write_string(stet_buf *b, const char *bytes, size_t len);

#endif
