/* error.h - making and passing on errors.
 *
 * Every function that can fail ends in `stet_error *err`, which may be NULL, and returns the status it set:
 *
 *     if (n > max)
 *         return stet_fail(err, STET_LIMIT, "%s: %zu bytes, more than the %zu allowed", name, n, max);
 *
 * A caller adds what it knows with stet_fail_in (a prefix) or stet_hint. The first failure wins: stet_fail on an error
 * that is already set replaces nothing, so clean-up code may fail without hiding the cause.
 */
#ifndef STET_BASE_ERROR_H
#define STET_BASE_ERROR_H

#include <stdarg.h>

#include "stet.h"

/* Sets status and message unless `err` already holds a failure; returns `status` either way. Messages that are too long
 * are cut at a character boundary, with "...". */
stet_status stet_fail(stet_error *err, stet_status status, const char *format, ...) STET_PRINTF(3, 4);
stet_status stet_vfail(stet_error *err, stet_status status, const char *format, va_list args);
/* Fails with "<what>: <strerror>" and the status for the errno: ENOENT not_found, EEXIST conflict, ETIMEDOUT busy,
 * otherwise io (with a hint for ENOSPC, EROFS, EACCES). */
stet_status stet_fail_errno(stet_error *err, int error_number, const char *format, ...) STET_PRINTF(3, 4);
#ifdef __clang_analyzer__
/* The analyzer looks at one file at a time. If it knows what these two return, it does not mistake a failure for a
 * success whose outputs were not set. */
#define stet_fail(err, status, ...)       ((void)(stet_fail)((err), (status), __VA_ARGS__), (status))
#define stet_fail_errno(err, number, ...) ((void)(stet_fail_errno)((err), (number), __VA_ARGS__), STET_IO)
#endif
/* For public functions: the caller passed NULL for a pointer that is not optional. STET_INVALID. */
#define stet_fail_null(err) stet_fail((err), STET_INVALID, "%s: an argument that must be given is NULL", __func__)
/* Puts "prefix: " before the message of a set error. The status stays as it is; return the one you got. */
void stet_fail_in(stet_error *err, const char *format, ...) STET_PRINTF(2, 3);
/* Sets the hint of a set error, if it has none. */
void stet_hint(stet_error *err, const char *format, ...) STET_PRINTF(2, 3);
/* Sets the hint of a set error, in place of the one it may have. */
void stet_hint_instead(stet_error *err, const char *format, ...) STET_PRINTF(2, 3);
bool stet_has_hint(const stet_error *err);
/* Adds a member to the details of a set error. Consumes `item`. */
void stet_detail(stet_error *err, const char *key, stet_value item);
/* Moves `from` into `to` unless `to` is set (then `from` is cleared); `from` is STET_OK afterwards. */
void stet_error_move(stet_error *to, stet_error *from);
/* Copies `from`, which stays as it is, unless `to` is set. */
void stet_error_copy(stet_error *to, const stet_error *from);
/* The inverse of stet_status_name; false for an unknown name. */
bool stet_status_of_name(const char *name, stet_status *out);

/* malloc and related functions. They end the process when there is no memory (see stet.h), with a line on standard
 * error. */
void *stet_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *stet_alloc_zero(size_t size) __attribute__((malloc, returns_nonnull));
void *stet_realloc(void *p, size_t size) __attribute__((returns_nonnull));
char *stet_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *stet_strndup(const char *s, size_t len) __attribute__((malloc, returns_nonnull));
char *stet_asprintf(const char *format, ...) STET_PRINTF(1, 2) __attribute__((malloc, returns_nonnull));

#endif
