/* text.h - texts inside values: reads them, compares them, and finds those that are members of an object.
 *
 *     stet_value hold;
 *     const char *name = stet_value_text_at(object, "name", &hold); // NULL: there is none, or it is not a text
 *     if (name && stet_value_text_is(stet_value_get(object, "kind"), "effect"))
 *         puts(name);
 *
 * A short text lies inside its value, so what these functions return lives no longer than the value that they were
 * given, or than `*hold` and the object.
 */
#ifndef STET_BASE_TEXT_H
#define STET_BASE_TEXT_H

#include "base/error.h"

/* `otherwise` if the value is not a text. */
const char *stet_value_text(const stet_value *v, const char *otherwise);
bool stet_value_text_is(stet_value v, const char *text);
/* NULL if the member is absent or not a text. */
const char *stet_value_text_at(stet_value object, const char *key, stet_value *hold);
const char *stet_value_text_at_or(stet_value object, const char *key, const char *otherwise, stet_value *hold);
/* A copy, which the caller frees. NULL also if the text has a NUL inside, which a C string would be cut at. */
char *stet_value_text_copy(stet_value object, const char *key);
/* An integer member; `otherwise` if it is absent or not an integer. */
int64_t stet_value_int_at(stet_value object, const char *key, int64_t otherwise);

#endif
