/* version.h - what `version` prints and `doctor` checks. */
#ifndef STET_OPERATION_VERSION_H
#define STET_OPERATION_VERSION_H

#include "base/error.h"

/* {"sqlite": "3.40.1", ...}; belongs to the caller. */
stet_value stet_ops_libraries(void);

#endif
