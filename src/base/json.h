/* json.h - reading and printing values, beyond what stet.h offers.
 *
 * The reader is strict and iterative (no recursion on the C stack). Its limits come from stet_json_limits. A text
 * beyond them is refused with STET_LIMIT, a malformed one with STET_INVALID. Both name line, column and byte offset in
 * message and details.
 */
#ifndef STET_BASE_JSON_H
#define STET_BASE_JSON_H

#include "base/buf.h"

typedef struct stet_json_limits {
    size_t max_depth; /* nested containers; 0: 512 */
    size_t max_bytes; /* of the text; 0: 1 GiB; at most 2 GiB */
} stet_json_limits;

STET_CHECKED stet_status stet_json_read(const char *text, size_t len, const stet_json_limits *limits, stet_value *out,
                                        stet_error *err);

#define STET_JSON_WANTED_MAX 8

/* Reads a text that mostly consists of one array of records, one record at a time. The elements of the array in the
 * root's member `member` are handed over as they are read; in the value that is returned, that array is empty. The
 * whole text must still be valid: elements that were handed over count only if the reading succeeded. */
typedef struct stet_json_stream {
    const char *member;
    /* The names of members that are needed, ending with NULL: at most STET_JSON_WANTED_MAX names of at most 14 bytes.
     * String values of other members may be handed over as "". */
    const char *const *wanted;
    void (*element)(void *ctx, stet_value element); /* borrowed */
    void *ctx;
} stet_json_stream;

STET_CHECKED stet_status stet_json_read_stream(const char *text, size_t len, const stet_json_limits *limits,
                                               const stet_json_stream *stream, stet_value *out, stet_error *err);
/* Canonical or pretty text at the end of `b`. */
void stet_json_write(stet_buf *b, stet_value v, stet_json_style style);
/* A JSON string literal with quotes. */
void stet_json_write_string(stet_buf *b, const char *bytes, size_t len);

/* Where the value at `path` (JSON Pointer) begins in a text that parses: line and column from 1. False if it is not
 * there. For error messages: the text is scanned again, values carry no positions. */
bool stet_json_locate(const char *text, size_t len, const char *pointer, size_t *line, size_t *column);

/* The shortest decimal that reads back as `d`, as ECMAScript's Number::toString prints it. At most 25 bytes with the
 * NUL. `d` is finite. */
size_t stet_number_print(double d, char out[32]);
/* Correctly rounded double of a JSON number literal. */
double stet_number_read(const char *text, size_t len);

#endif
