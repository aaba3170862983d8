/* units.h - durations and sizes as people write them in options of commands and calls. */
#ifndef STET_BASE_UNITS_H
#define STET_BASE_UNITS_H

#include "stet.h"

/* Milliseconds of a duration: a number of seconds, its digits as text, or "90s", "10m", "2h"; otherwise -1. */
int64_t stet_units_ms(stet_value v);
/* Bytes of a size: an integer, its digits as text, or "512M", "2G"; otherwise 0. */
uint64_t stet_units_bytes(stet_value v);

#endif
