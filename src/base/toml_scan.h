/* toml_scan.h - the tokens of TOML: white space, comments, keys, strings, numbers, dates.
 *
 * Private to src/base/toml*.c. A function that can fail returns false with the error set ("line 3, column 7: ...") and
 * the scanner stopped at that place. Its results lie in the scanner's arena.
 */
#ifndef STET_BASE_TOML_SCAN_H
#define STET_BASE_TOML_SCAN_H

#include "base/arena.h"
#include "base/buf.h"

typedef struct stet_toml_scan {
    const char *text; /* valid UTF-8 */
    size_t len, at;
    stet_arena *arena;
    stet_buf scratch;
    stet_error *err;
    stet_status status;
} stet_toml_scan;

typedef struct stet_toml_scalar {
    stet_type type;
    bool boolean;
    int64_t integer;
    double number;
    const char *bytes;
    size_t len;
} stet_toml_scalar;

/* Fails at byte `at`. Always false. */
bool stet_toml_fail(stet_toml_scan *s, size_t at, stet_status status, const char *format, ...) STET_PRINTF(4, 5);
void stet_toml_place(const char *text, size_t at, size_t *line, size_t *column); /* column in characters, from 1 */

/* The next byte, or -1 at the end. */
int stet_toml_peek(const stet_toml_scan *s);
bool stet_toml_take(stet_toml_scan *s, char c); /* if it is next */
void stet_toml_skip_blank(stet_toml_scan *s);   /* spaces and tabs */
bool stet_toml_take_newline(stet_toml_scan *s); /* LF or CRLF, if it is next */
bool stet_toml_skip_comment(stet_toml_scan *s); /* if one is next */
/* Skips blanks, newlines and comments. */
bool stet_toml_skip_space(stet_toml_scan *s);
/* Takes the end of the line; only blanks and a comment may come before it. */
bool stet_toml_end_line(stet_toml_scan *s);

/* One part of a key: bare or quoted. */
bool stet_toml_key_part(stet_toml_scan *s, const char **key, size_t *len);
bool stet_toml_scalar_here(stet_toml_scan *s, stet_toml_scalar *out);

#endif
