/* internal.h - what the files of src/project share. */
#ifndef STET_PROJECT_INTERNAL_H
#define STET_PROJECT_INTERNAL_H

#include "project/project.h"

/* own.c: counted, so that a project may be open more than once. */
void project_own_add(const char *path);
void project_own_drop(const char *path);

/* reach.c: places outside of itself that a project reaches, as an array of {"what", "where"}.
 *
 * Adds `path` if it is a symbolic link; `name` is how messages call it. */
STET_CHECKED stet_status project_reach_link(const char *path, const char *name, stet_value *reaches, stet_error *err);
/* Adds the symbolic links in `dir`, if that is a directory and not a link itself. */
STET_CHECKED stet_status project_reach_inside(const char *dir, const char *name, stet_value *reaches, stet_error *err);
/* The same for the directories below it, `depth` levels in all. Links are listed, and not followed. */
STET_CHECKED stet_status project_reach_below(const char *dir, const char *name, int depth, stet_value *reaches,
                                             stet_error *err);
/* Adds `path`, which a setting names, if it does not lie in the project. */
STET_CHECKED stet_status project_reach_path(const char *root, const char *path, const char *what, stet_value *reaches,
                                            stet_error *err);
/* Is each of these places trusted? */
STET_CHECKED stet_status project_is_trusted(const char *root, stet_value reaches, bool *out, stet_error *err);
/* Trusts these places, and no others; null: none. */
STET_CHECKED stet_status project_trust_write(const char *root, stet_value reaches, stet_error *err);

#endif
