/* options.h - option structs of the public interface, which may grow.
 *
 * Such a struct begins with its size as the caller compiled it. A library that is newer than the caller takes the
 * members it lacks as zero; one that is older accepts members it does not know as long as they are zero.
 *
 *     stet_event known;
 *     stet_status status = stet_options_read(&known, sizeof known, given, "stet_event", err);
 */
#ifndef STET_BASE_OPTIONS_H
#define STET_BASE_OPTIONS_H

#include "stet.h"

/* Copies `given`, which begins with its size, to `known`. `name` is that of the type, for the error: STET_INVALID if the
 * size was not set, STET_UNSUPPORTED if a member that this library does not know is set. */
STET_CHECKED stet_status stet_options_read(void *known, size_t size, const void *given, const char *name,
                                           stet_error *err);

#endif
