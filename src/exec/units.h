/* units.h - times and sizes as people write them in options of commands and calls. */
#ifndef STET_EXEC_UNITS_H
#define STET_EXEC_UNITS_H

#include "stet.h"

/* Seconds as a number, or "90s", "10m", "2h", or the digits of a number of seconds; -1 if it is none of them. */
int64_t stet_units_ms(stet_value v);
/* Bytes as an integer, or "512M", "2G", or the digits of one; 0 if it is none of them. */
uint64_t stet_units_bytes(stet_value v);

#endif
