/* text.c - reads texts and numbers out of values. */

#include "base/text.h"

#include <string.h>

const char *stet_value_text(const stet_value *v, const char *otherwise) {
    const char *text = stet_value_as_string(v, NULL);
    return text ? text : otherwise;
}

bool stet_value_text_is(stet_value v, const char *text) {
    size_t len;
    const char *held = stet_value_as_string(&v, &len);
    return held && len == strlen(text) && memcmp(held, text, len) == 0;
}

const char *stet_value_text_at(stet_value object, const char *key, stet_value *hold) {
    return stet_value_text_at_or(object, key, NULL, hold);
}

const char *stet_value_text_at_or(stet_value object, const char *key, const char *otherwise, stet_value *hold) {
    *hold = stet_value_get(object, key);
    return stet_value_text(hold, otherwise);
}

char *stet_value_text_copy(stet_value object, const char *key) {
    stet_value v = stet_value_get(object, key);
    size_t len;
    const char *text = stet_value_as_string(&v, &len);
    return text && strlen(text) == len ? stet_strdup(text) : NULL;
}

int64_t stet_value_int_at(stet_value object, const char *key, int64_t otherwise) {
    stet_value v = stet_value_get(object, key);
    return stet_value_type(v) == STET_TYPE_INT ? stet_value_as_int(v) : otherwise;
}
