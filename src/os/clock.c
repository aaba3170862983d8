/* clock.c - clocks, time stamps as text, and randomness. */

#include "os/clock.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

int64_t (*stet_clock_hook)(void);

enum { MS_PER_S = 1000, MS_PER_MIN = 60000, MS_PER_HOUR = 3600000, MS_PER_DAY = 86400000 };

static int64_t nanoseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t stet_clock_ns(void) {
    return stet_clock_hook ? stet_clock_hook() : nanoseconds(CLOCK_REALTIME);
}

int64_t stet_clock_ms(void) {
    return stet_clock_ns() / 1000000;
}

int64_t stet_clock_monotonic_us(void) {
    return nanoseconds(CLOCK_MONOTONIC) / 1000;
}

void stet_clock_sleep_ms(int64_t ms) {
    if (ms <= 0)
        return;
    struct timespec t = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* Days since 1970-01-01 of a date in the proleptic Gregorian calendar, and back. The year begins in March here, so that
 * the leap day is the last one; an era is 400 years, 146097 days. */
static int64_t days_of_date(int64_t y, unsigned m, unsigned d) {
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    unsigned yoe = (unsigned)(y - era * 400);
    unsigned doy = (153 * (m + (m > 2 ? -3u : 9u)) + 2) / 5 + d - 1;
    unsigned doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + (int64_t)doe - 719468;
}

static void date_of_days(int64_t days, int64_t *y, unsigned *m, unsigned *d) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned doe = (unsigned)(days - era * 146097);
    unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    unsigned mp = (5 * doy + 2) / 153;
    *d = doy - (153 * mp + 2) / 5 + 1;
    *m = mp < 10 ? mp + 3 : mp - 9;
    *y = (int64_t)yoe + era * 400 + (*m <= 2);
}

static unsigned days_in_month(int64_t y, unsigned m) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    return m == 2 && leap ? 29 : days[m - 1];
}

/* RFC 3339 can print the years 0000 to 9999. Times outside are clamped, because printing can't fail. */
#define FIRST_MS INT64_C(-62167219200000)
#define LAST_MS  INT64_C(253402300799999)

void stet_time_print(int64_t ms, char out[STET_TIME_TEXT]) {
    if (ms < FIRST_MS)
        ms = FIRST_MS;
    if (ms > LAST_MS)
        ms = LAST_MS;
    int64_t days = ms / MS_PER_DAY, rest = ms % MS_PER_DAY;
    if (rest < 0) {
        rest += MS_PER_DAY;
        days--;
    }
    int64_t y;
    unsigned m, d;
    date_of_days(days, &y, &m, &d);
    snprintf(out, STET_TIME_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)y % 10000, m % 100, d % 100,
             (unsigned)(rest / MS_PER_HOUR) % 100, (unsigned)(rest / MS_PER_MIN % 60), (unsigned)(rest / MS_PER_S % 60),
             (unsigned)(rest % MS_PER_S));
}

stet_value stet_time_value(int64_t ms) {
    char text[STET_TIME_TEXT];
    stet_time_print(ms, text);
    return stet_value_string(text);
}

/* Exactly `digits` digits at *p; moves past them. */
static bool number(const char **p, const char *end, int digits, unsigned *out) {
    unsigned v = 0;
    if (end - *p < digits)
        return false;
    for (int i = 0; i < digits; i++) {
        char c = (*p)[i];
        if (c < '0' || c > '9')
            return false;
        v = v * 10 + (unsigned)(c - '0');
    }
    *p += digits;
    *out = v;
    return true;
}

static bool literal(const char **p, const char *end, char c) {
    if (*p == end || **p != c)
        return false;
    ++*p;
    return true;
}

static bool parse_offset(const char **p, const char *end, int64_t *ms) {
    if (*p == end)
        return false;
    char sign = *(*p)++;
    if (sign == 'Z' || sign == 'z') {
        *ms = 0;
        return true;
    }
    unsigned h, m;
    if ((sign != '+' && sign != '-') || !number(p, end, 2, &h) || !literal(p, end, ':') || !number(p, end, 2, &m) ||
        h > 23 || m > 59)
        return false;
    *ms = (int64_t)(h * 60 + m) * MS_PER_MIN * (sign == '-' ? -1 : 1);
    return true;
}

bool stet_time_parse(const char *text, size_t len, int64_t *ms) {
    const char *p = text, *end = text + len;
    unsigned y, mo, d, h, mi, s;
    if (!number(&p, end, 4, &y) || !literal(&p, end, '-') || !number(&p, end, 2, &mo) || !literal(&p, end, '-') ||
        !number(&p, end, 2, &d) || mo < 1 || mo > 12 || d < 1 || d > days_in_month(y, mo))
        return false;
    int64_t day = days_of_date(y, mo, d) * MS_PER_DAY;
    if (p == end) {
        *ms = day;
        return true;
    }
    if (!literal(&p, end, 'T') && !literal(&p, end, 't') && !literal(&p, end, ' '))
        return false;
    /* A leap second (60) counts as the first moment of the next minute, as in POSIX time. */
    if (!number(&p, end, 2, &h) || !literal(&p, end, ':') || !number(&p, end, 2, &mi) || !literal(&p, end, ':') ||
        !number(&p, end, 2, &s) || h > 23 || mi > 59 || s > 60)
        return false;
    int64_t fraction = 0;
    if (literal(&p, end, '.')) {
        int digits = 0;
        for (; p < end && *p >= '0' && *p <= '9'; p++, digits++)
            if (digits < 3)
                fraction = fraction * 10 + (*p - '0');
        if (digits == 0)
            return false;
        for (; digits < 3; digits++)
            fraction *= 10;
    }
    int64_t offset;
    if (!parse_offset(&p, end, &offset) || p != end)
        return false;
    *ms = day + (int64_t)h * MS_PER_HOUR + (int64_t)mi * MS_PER_MIN + (int64_t)s * MS_PER_S + fraction - offset;
    return true;
}

/* The length of a unit that people type; 0 if the word is not a unit. */
static int64_t unit_ms(const char *unit, size_t len) {
    static const struct {
        const char *names; /* separated and ended by spaces */
        int64_t ms;
    } units[] = {
        {" ms msec msecs millisecond milliseconds ", 1},
        {" s sec secs second seconds ", MS_PER_S},
        {" m min mins minute minutes ", MS_PER_MIN},
        {" h hr hrs hour hours ", MS_PER_HOUR},
        {" d day days ", MS_PER_DAY},
        {" w week weeks ", (int64_t)7 * MS_PER_DAY},
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        for (const char *p = units[i].names + 1; *p; p += strcspn(p, " ") + 1)
            if (strcspn(p, " ") == len && strncasecmp(p, unit, len) == 0)
                return units[i].ms;
    return 0;
}

static const char *skip_spaces(const char *p) {
    while (isspace((unsigned char)*p))
        p++;
    return p;
}

static size_t trimmed_length(const char *text) {
    size_t len = strlen(text);
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        len--;
    return len;
}

static bool is_word(const char *text, size_t len, const char *word) {
    return strlen(word) == len && strncasecmp(text, word, len) == 0;
}

/* "2h", "1h 30m", "3 days ago", "in 5 min": a signed distance from now. Without "in" or "ago" it lies in the past, as
 * in a search. */
static bool parse_relative(const char *p, int64_t *distance) {
    int64_t total = 0, sign = -1;
    int parts = 0;
    bool signed_already = true;
    if (strncasecmp(p, "in ", 3) == 0) {
        sign = 1;
        p = skip_spaces(p + 3);
    } else if (*p == '+' || *p == '-') {
        sign = *p++ == '+' ? 1 : -1;
    } else {
        signed_already = false;
    }
    while (isdigit((unsigned char)*p)) {
        int64_t n = 0;
        for (; isdigit((unsigned char)*p); p++)
            if ((n = n * 10 + (*p - '0')) > 1000000000)
                return false;
        p = skip_spaces(p);
        size_t len = 0;
        while (isalpha((unsigned char)p[len]))
            len++;
        int64_t ms = unit_ms(p, len);
        if (ms == 0)
            return false;
        total += n * ms; /* at most 1e9 weeks a part, and few parts: below 2^63 */
        if (++parts > 6)
            return false;
        p = skip_spaces(p + len);
    }
    if (parts == 0)
        return false;
    if (is_word(p, trimmed_length(p), "ago")) {
        if (signed_already)
            return false;
        p += 3;
    }
    if (*skip_spaces(p))
        return false;
    *distance = sign * total;
    return true;
}

stet_status stet_time_parse_human(const char *text, int64_t now_ms, int64_t *ms, stet_error *err) {
    const char *p = skip_spaces(text);
    size_t len = trimmed_length(p);
    int64_t distance;
    /* Days begin at midnight UTC, because stet prints every time in UTC. */
    int64_t since_midnight = now_ms % MS_PER_DAY;
    if (since_midnight < 0)
        since_midnight += MS_PER_DAY;
    if (is_word(p, len, "now"))
        *ms = now_ms;
    else if (is_word(p, len, "today"))
        *ms = now_ms - since_midnight;
    else if (is_word(p, len, "yesterday"))
        *ms = now_ms - since_midnight - MS_PER_DAY;
    else if (is_word(p, len, "tomorrow"))
        *ms = now_ms - since_midnight + MS_PER_DAY;
    else if (len > 0 && stet_time_parse(p, len, ms))
        return STET_OK;
    else if (len > 0 && len < 200 && parse_relative(p, &distance))
        *ms = now_ms + distance;
    else {
        stet_fail(err, STET_INVALID, "\"%.100s\" is not a time", text);
        stet_hint(err, "write 2026-11-15, 2026-11-15T17:45:00Z, \"2h\", \"3d ago\", \"in 5 min\", today, yesterday or "
                       "now");
        return STET_INVALID;
    }
    return STET_OK;
}

void stet_duration_print(int64_t ms, char out[STET_TIME_TEXT]) {
    const char *sign = ms < 0 ? "-" : "";
    uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    if (v < 1000)
        snprintf(out, STET_TIME_TEXT, "%s%u ms", sign, (unsigned)v);
    else if (v < 2 * MS_PER_MIN)
        snprintf(out, STET_TIME_TEXT, "%s%u s", sign, (unsigned)(v / MS_PER_S));
    else if (v < 2 * (uint64_t)MS_PER_HOUR)
        snprintf(out, STET_TIME_TEXT, "%s%u min", sign, (unsigned)(v / MS_PER_MIN));
    else if (v < 2 * (uint64_t)MS_PER_DAY)
        snprintf(out, STET_TIME_TEXT, "%s%u h", sign, (unsigned)(v / MS_PER_HOUR));
    else
        snprintf(out, STET_TIME_TEXT, "%s%llu d", sign, (unsigned long long)(v / MS_PER_DAY));
}

void stet_random(void *bytes, size_t len) {
    char *p = bytes;
    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0) {
            /* It is missing only on kernels older than this program needs. */
            assert(errno == EINTR);
            continue;
        }
        p += n;
        len -= (size_t)n;
    }
}

void stet_uuid(char out[37]) {
    unsigned char b[16];
    stet_random(b, sizeof b);
    b[6] = (b[6] & 0x0f) | 0x40;
    b[8] = (b[8] & 0x3f) | 0x80;
    for (int i = 0, o = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            out[o++] = '-';
        o += snprintf(out + o, 3, "%02x", b[i]);
    }
    out[36] = 0;
}
