/* units.c - reads durations ("10m") and sizes ("512M"). */

#include "base/units.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const stet_value *v) {
    size_t len;
    const char *s = stet_value_type(*v) == STET_TYPE_STRING ? stet_value_as_string(v, &len) : NULL;
    return s && strlen(s) == len ? s : NULL;
}

int64_t stet_units_ms(stet_value v) {
    char unit = 's', second = 0, more;
    double n = stet_value_as_double(v);
    if (stet_value_type(v) != STET_TYPE_INT && stet_value_type(v) != STET_TYPE_DOUBLE) {
        const char *text = text_of(&v);
        int got = text ? sscanf(text, "%lf%c%c%c", &n, &unit, &second, &more) : 0;
        if (got < 1 || got > 3 || (got == 3 && !(unit == 'm' && second == 's')))
            return -1;
    }
    double ms = n * (second ? 1 : unit == 's' ? 1000 : unit == 'm' ? 60000 : unit == 'h' ? 3600000 : 0);
    return ms >= 1 && ms <= 1e12 ? (int64_t)ms : -1;
}

uint64_t stet_units_bytes(stet_value v) {
    if (stet_value_type(v) == STET_TYPE_INT)
        return stet_value_as_int(v) > 0 ? (uint64_t)stet_value_as_int(v) : 0;
    const char *text = text_of(&v);
    char unit = 0, more;
    unsigned long long n;
    int got = text && *text >= '0' && *text <= '9' ? sscanf(text, "%llu%c%c", &n, &unit, &more) : 0;
    if ((got != 1 && got != 2) || n == 0 || (got == 2 && n > 1000000) || n > (1ull << 60))
        return 0;
    return got == 1 ? n : unit == 'K' ? n << 10 : unit == 'M' ? n << 20 : unit == 'G' ? n << 30 : 0;
}
