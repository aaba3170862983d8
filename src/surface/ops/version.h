/* version.h - what `version` tells and `doctor` looks at. */
#ifndef STET_SURFACE_OPS_VERSION_H
#define STET_SURFACE_OPS_VERSION_H

#include "base/error.h"

/* {"sqlite": "3.40.1", ...}; belongs to the caller. */
stet_value stet_ops_libraries(void);

#endif
