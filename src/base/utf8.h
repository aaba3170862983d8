/* utf8.h - checking, encoding and measuring UTF-8. */
#ifndef STET_BASE_UTF8_H
#define STET_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the longest valid prefix; `len` if all bytes are valid (no surrogates, no over-long forms, up to U+10FFFF).
 */
size_t stet_utf8_valid_prefix(const char *bytes, size_t len);
bool stet_utf8_valid(const char *bytes, size_t len);
size_t stet_utf8_encode(uint32_t code_point, char out[4]);
/* Columns that a terminal needs for a string; wide characters count as two. */
size_t stet_utf8_width(const char *bytes, size_t len);

#endif
