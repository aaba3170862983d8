/* internal.h - what the files of src/project share. */
#ifndef STET_PROJECT_INTERNAL_H
#define STET_PROJECT_INTERNAL_H

#include "project/project.h"

/* own.c: counted, so that a project may be open more than once. */
void project_own_add(const char *path);
void project_own_drop(const char *path);

#endif
