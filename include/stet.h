/* stet.h - the public interface of libstet, a durable incremental computation engine.
 *
 * Calling sequence
 *
 *     stet_error err = STET_ERROR_INIT;
 *     stet_value doc;
 *     if (stet_json_parse(text, strlen(text), &doc, &err) != STET_OK) {
 *         fprintf(stderr, "%s\n", err.message);
 *         stet_error_clear(&err);
 *         return 1;
 *     }
 *     stet_value name = stet_get(doc, "name");      // borrowed from doc
 *     ...
 *     stet_release(doc);
 *
 * Conventions, everywhere in this header
 *
 *  - A function that can fail returns a stet_status and takes a `stet_error *` last; NULL is allowed there. On
 *    failure the error carries the same status, a message that names the thing and what was expected, and often
 *    a hint that says what to do. Output parameters are untouched unless the function says otherwise.
 *  - Inputs are borrowed for the call. A stet_value that a function returns directly from another value is
 *    borrowed from it (stet_get, stet_at); one that is made (stet_string, stet_json_parse) belongs to the caller, who
 *    releases it with stet_release. Functions that take over a value say "consumes".
 *  - Values are immutable once shared and may be used from many threads at once; their reference counts are
 *    atomic. Any other handle is used by one thread at a time unless it says otherwise.
 *  - Out of memory ends the process. Nothing else that comes from outside does.
 *  - Strings are UTF-8. Lengths are in bytes.
 */
#ifndef STET_H
#define STET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STET_VERSION        "0.1.0"
#define STET_VERSION_NUMBER 1000 /* major * 1000000 + minor * 1000 + patch: 0.1.0 */

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define STET_API          __attribute__((visibility("default")))
#define STET_CHECKED      __attribute__((warn_unused_result))
#define STET_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define STET_API
#define STET_CHECKED
#define STET_PRINTF(f, a)
#endif

/* The version of the library that runs, as against the header compiled with. */
STET_API const char *stet_version(void);
STET_API int stet_version_number(void);

/* ---- Status and errors ------------------------------------------------------------------------------------ */

/* The numbers are the exit statuses of the program, and stable. */
typedef enum stet_status {
    STET_OK = 0,
    STET_FAILED = 1,  /* an action, a call or a check failed */
    STET_INVALID = 2, /* usage or bad input */
    STET_NOT_FOUND = 3,
    STET_CONFLICT = 4,    /* somebody else changed what this relied on */
    STET_BUSY = 5,        /* a lock or a time-out; trying again later may work */
    STET_CORRUPT = 6,     /* stored bytes are not what was written */
    STET_IO = 7,          /* the file system said no: disk full, permission, device error */
    STET_UNSUPPORTED = 8, /* a missing part or a newer format */
    STET_DENIED = 9,      /* refused by policy */
    STET_LIMIT = 10,      /* larger, deeper or more than a stated maximum */
    STET_INTERNAL = 70,   /* a bug in stet */
    STET_CANCELLED = 130  /* stopped on request */
} stet_status;

/* The stable lower-case name of a status: "ok", "not_found", ... */
STET_API const char *stet_status_name(stet_status status);

/* A JSON value: null, boolean, 64-bit integer, double, string, array or object. 16 bytes, passed by value; the bits are
 * private. All bits zero is null. */
typedef struct stet_value {
    uint64_t bits[2];
} stet_value;

typedef struct stet_error {
    stet_status status;
    char message[1024];
    char hint[512];     /* what to do; may be empty */
    stet_value details; /* an object with machine-readable particulars, or null */
} stet_error;

#ifdef __cplusplus
#define STET_ERROR_INIT                                                                                                \
    {}
#else
#define STET_ERROR_INIT                                                                                                \
    { 0 }
#endif

/* Frees what the error holds and makes it STET_OK again. A stet_error is cleared before it is used for a new call only
 * if the old call failed. */
STET_API void stet_error_clear(stet_error *err);
/* {"code","message","hint","details"}: the object that --json and MCP carry. Belongs to the caller. */
STET_API stet_value stet_error_value(const stet_error *err);

/* ---- Values ------------------------------------------------------------------------------------------------- */

typedef enum stet_type { STET_NULL, STET_BOOL, STET_INT, STET_DOUBLE, STET_STRING, STET_ARRAY, STET_OBJECT } stet_type;

STET_API stet_type stet_typeof(stet_value v);
STET_API stet_value stet_retain(stet_value v); /* one more reference; returns v */
STET_API void stet_release(stet_value v);      /* one less */

/* Makers. The result belongs to the caller. */
STET_API stet_value stet_null(void);
STET_API stet_value stet_bool(bool b);
STET_API stet_value stet_int(int64_t i);
/* An integral double of magnitude up to 2^53 becomes that integer, -0.0 becomes 0. NaN and infinities are refused. */
STET_API STET_CHECKED stet_status stet_double(double d, stet_value *out, stet_error *err);
/* `utf8` must be valid UTF-8: asserted. For bytes from outside use stet_string_checked. */
STET_API stet_value stet_string(const char *utf8);
STET_API stet_value stet_string_n(const char *utf8, size_t len);
STET_API STET_CHECKED stet_status stet_string_checked(const char *bytes, size_t len, stet_value *out, stet_error *err);
STET_API stet_value stet_stringf(const char *format, ...) STET_PRINTF(1, 2);
STET_API stet_value stet_array(void);  /* empty */
STET_API stet_value stet_object(void); /* empty */

/* Readers. A reader of the wrong type returns false, 0, NULL, or null: check stet_typeof where that matters. */
STET_API bool stet_as_bool(stet_value v);
STET_API int64_t stet_as_int(stet_value v);   /* of STET_INT alone */
STET_API double stet_as_double(stet_value v); /* of STET_INT or STET_DOUBLE */
/* The bytes of a string, NUL-terminated, and their length (NULs inside are possible). They live as long as the storage
 * `*v` does, short strings being held inside it: hence the pointer. */
STET_API const char *stet_as_string(const stet_value *v, size_t *len);
STET_API size_t stet_count(stet_value v); /* elements of an array, members of an object, else 0 */
/* Element `index` of an array or null; value of member `index` of an object in key order. Borrowed. */
STET_API stet_value stet_at(stet_value v, size_t index);
/* Key of member `index` of an object, keys sorted by their bytes. NULL out of range. Lives as long as the object. */
STET_API const char *stet_key_at(stet_value object, size_t index, size_t *len);
/* Value of a member, or null if there is none (stet_find tells the two apart). Borrowed. */
STET_API stet_value stet_get(stet_value object, const char *key);
STET_API bool stet_find(stet_value object, const char *key, size_t key_len, stet_value *out);

/* Changers. They change `*v` in place if nobody shares it, and a copy otherwise, so that whoever else holds the old
 * value keeps seeing it unchanged. They consume `item`. `*v` must be of the right type: asserted. */
STET_API void stet_push(stet_value *array, stet_value item);
STET_API void stet_put_at(stet_value *array, size_t index, stet_value item);    /* index < count */
STET_API void stet_insert_at(stet_value *array, size_t index, stet_value item); /* index <= count */
STET_API void stet_remove_at(stet_value *array, size_t index);                  /* index < count */
STET_API void stet_put(stet_value *object, const char *key, stet_value item);   /* adds or replaces */
STET_API void stet_put_n(stet_value *object, const char *key, size_t key_len, stet_value item);
STET_API bool stet_remove(stet_value *object, const char *key, size_t key_len); /* was it there? */

/* Deep equality and a total order (null < bool < number < string < array < object). Costs the size of what differs in
 * identity: two values that share structure are compared only where they do not. */
STET_API bool stet_equal(stet_value a, stet_value b);
STET_API int stet_compare(stet_value a, stet_value b);

/* ---- JSON --------------------------------------------------------------------------------------------------- */

/* Strict RFC 8259. A literal without fraction or exponent is an integer and refused outside int64; duplicate keys,
 * lone surrogates, invalid UTF-8, trailing bytes, and nesting beyond 512 are refused, with line and column. */
STET_API STET_CHECKED stet_status stet_json_parse(const char *text, size_t len, stet_value *out, stet_error *err);

typedef enum stet_json_style {
    STET_JSON_CANONICAL, /* sorted keys, no white space, numbers as ECMAScript prints them: what every hash is over */
    STET_JSON_PRETTY     /* the same with two-space indentation and a newline at the end */
} stet_json_style;

/* Prints into memory from malloc, NUL-terminated; the caller frees it with stet_free. `len` may be NULL. */
STET_API char *stet_json_print(stet_value v, stet_json_style style, size_t *len);
STET_API void stet_free(void *p);

#ifdef __cplusplus
}
#endif
#endif
