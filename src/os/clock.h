/* clock.h - time and randomness. Tests replace the clock through stet_clock_hook. */
#ifndef STET_OS_CLOCK_H
#define STET_OS_CLOCK_H

#include "base/error.h"

int64_t stet_clock_ms(void); /* UTC, milliseconds since 1970 */
int64_t stet_clock_ns(void); /* UTC, nanoseconds since 1970 */
int64_t stet_clock_monotonic_us(void);
void stet_clock_sleep_ms(int64_t ms);
extern int64_t (*stet_clock_hook)(void); /* if set: returns nanoseconds since 1970, for stet_clock_ms and _ns */

#define STET_TIME_TEXT 32
/* Prints RFC 3339 in UTC with milliseconds: 2026-11-15T17:45:00.123Z */
void stet_time_print(int64_t ms, char out[STET_TIME_TEXT]);
stet_value stet_time_value(int64_t ms); /* the same, as a string value */
/* Reads RFC 3339 with any offset and fraction, or a date (midnight UTC). */
bool stet_time_parse(const char *text, size_t len, int64_t *ms);
/* Reads the above and what people type: "2h", "3d ago", "yesterday", "now"; relative to `now_ms`. Everything else is
 * STET_INVALID, with a hint. */
STET_CHECKED stet_status stet_time_parse_human(const char *text, int64_t now_ms, int64_t *ms, stet_error *err);
/* Prints "3 s", "2 min", "5 h", "12 d". */
void stet_duration_print(int64_t ms, char out[STET_TIME_TEXT]);

void stet_random(void *bytes, size_t len);
/* A version-4 UUID in text. */
void stet_uuid(char out[37]);

#endif
