/* schema_check.h - what the parts of the schema checker share: its state, outcomes and messages.
 *
 * Private to src/base/schema*.c.
 */
#ifndef STET_BASE_SCHEMA_CHECK_H
#define STET_BASE_SCHEMA_CHECK_H

#include "base/error.h"
#include "base/path.h"
#include "base/regex.h"
#include "base/schema_keywords.h"

typedef enum stet_schema_outcome {
    STET_SCHEMA_MATCH,
    STET_SCHEMA_MISMATCH,
    STET_SCHEMA_BROKEN /* the schema, or a limit: `err` and `status` of the state are set */
} stet_schema_outcome;

/* The number of compiled patterns that one check keeps; a schema with more compiles some of them again. */
enum { STET_SCHEMA_PATTERNS = 16 };

/* Which members or elements of one instance were evaluated, for unevaluatedProperties and unevaluatedItems. */
typedef struct stet_schema_marks {
    size_t count;
    bool *is;
} stet_schema_marks;

typedef struct stet_schema_ctx {
    stet_value root;
    stet_path path;           /* of the instance at hand */
    size_t depth;             /* schemas inside each other */
    size_t steps;             /* schemas applied */
    unsigned quiet;           /* above 0: mismatches are not described */
    stet_schema_marks *marks; /* of the instance at hand; NULL: nobody asks */
    stet_buf where;           /* of the mismatch: JSON Pointer of the instance, */
    stet_buf what;            /* what was expected and found, */
    const char *keyword;      /* and the keyword that failed */
    size_t where_depth;
    stet_error *err;
    stet_status status; /* when STET_SCHEMA_BROKEN */
    stet_buf pattern_text[STET_SCHEMA_PATTERNS];
    stet_regex *pattern[STET_SCHEMA_PATTERNS];
    size_t patterns;
} stet_schema_ctx;

/* Checks an instance against one keyword of `schema`. */
typedef stet_schema_outcome stet_schema_checker(stet_schema_ctx *c, stet_value schema, stet_value argument,
                                                stet_value instance);

/* The keywords that contain no schemas; NULL for all others. */
extern stet_schema_checker *const stet_schema_assertions[STET_KEYWORD_COUNT];

stet_schema_outcome stet_schema_broken(stet_schema_ctx *c, stet_status status);
stet_schema_outcome stet_schema_malformed(stet_schema_ctx *c, const char *name, const char *expected);
/* Records a mismatch at the current path: "expected <expected>, found <instance>". */
stet_schema_outcome stet_schema_mismatch(stet_schema_ctx *c, const char *name, stet_value instance, const char *format,
                                         ...) STET_PRINTF(4, 5);
/* Whether a regular expression of the schema matches a text. STET_SCHEMA_BROKEN if it is none. */
stet_schema_outcome stet_schema_matches(stet_schema_ctx *c, const char *pattern, size_t pattern_len, const char *text,
                                        size_t len);
void stet_schema_forget_patterns(stet_schema_ctx *c);

#endif
