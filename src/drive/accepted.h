/* accepted.h - lets the result of an outdated action stand (`stet accept`), and takes that back.
 *
 *     stet_drive_spec spec = {.space = "main", .branch = ""};
 *     stet_status status = stet_drive_look(project, &spec, &err); // what is accepted is how things are now
 *     if (status == STET_OK)
 *         status = stet_drive_accept(project, &spec, "demo", "clean", "only a comment", &err);
 *
 * What an acceptance is, and when it lapses, is said in memory/observe_accept.c.
 */
#ifndef STET_DRIVE_ACCEPTED_H
#define STET_DRIVE_ACCEPTED_H

#include "drive/drive.h"

/* Brings patterns and files up to date, as a run does first. Of the spec, space, branch, ctx and the callbacks are used. */
STET_CHECKED stet_status stet_drive_look(stet_project *project, const stet_drive_spec *spec, stet_error *err);
/* `reason` NULL: takes the acceptance back, so that the action runs again. STET_INVALID: the action can't be accepted, or is
 * not. Of the spec, space and branch are used. */
STET_CHECKED stet_status stet_drive_accept(stet_project *project, const stet_drive_spec *spec, const char *piece,
                                           const char *node, const char *reason, stet_error *err);

#endif
