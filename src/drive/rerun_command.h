/* rerun_command.h - runs an up-to-date command again in a copy of the project, and compares.
 *
 *     stet_rerun_copy copy = {.of = project};
 *     stet_rerun_place at = {"main", "", &spec};
 *     stet_status status = drive_rerun_command(&copy, &at, action, &one, &err); // any number of times
 *     drive_rerun_copy_close(&copy);
 *
 * The command runs in a copy of the whole project, on the files as they are now, as a run would start it, and with an
 * empty result store. If what it makes is not what is stored, it runs once more: if the two reruns differ from each
 * other, it is not reproducible, and says nothing.
 *
 * A command is left out if it can reach the project from the copy: if the project's path is in its node, in a variable
 * that it is given or in a file that it reads, if it names the home directory that the project lies in, or if it writes or
 * works outside the project. So is one that is outdated in the copy, because its result depends on its place.
 */
#ifndef STET_DRIVE_RERUN_COMMAND_H
#define STET_DRIVE_RERUN_COMMAND_H

#include "drive/rerun.h"
#include "drive/scratch.h"

typedef struct stet_rerun_copy {
    stet_project *of;
    stet_scratch scratch;
    bool open;
    const char *space, *branch; /* that it was brought up to date for */
} stet_rerun_copy;

typedef struct stet_rerun_place {
    const char *space, *branch;
    const stet_rerun_spec *spec;
} stet_rerun_place;

STET_CHECKED stet_status drive_rerun_command(stet_rerun_copy *copy, const stet_rerun_place *at, int64_t action,
                                             stet_rerun *out, stet_error *err);
void drive_rerun_copy_close(stet_rerun_copy *copy);

#endif
