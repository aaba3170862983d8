/* scratch.h - a project to try things in: spaces and the index of files as they are now, copied aside.
 *
 *     stet_scratch s;
 *     status = stet_scratch_open(project, &s, &err);
 *     ... s.project: whatever is done to its spaces and files' documents is done to the copy ...
 *     stet_scratch_close(&s);                             // removes it
 *
 * A dry run sets up a changed program and looks at files as a run does, and must leave no trace: so it does that here.
 * Nothing in the project is written, locked or created, and it may be read-only. The copy lies in $TMPDIR or /tmp.
 *
 * Spaces are copied as files while others may write to them. A copy is good if the database itself was the same file
 * before and after: then nobody moved the log into it meanwhile, and of the log, which is copied after it, a torn end
 * does not count. STET_BUSY if that does not come about. */
#ifndef STET_DRIVE_SCRATCH_H
#define STET_DRIVE_SCRATCH_H

#include "project/project.h"

typedef struct stet_scratch {
    stet_project *project;
    char *dir;
} stet_scratch;

STET_CHECKED stet_status stet_scratch_open(const stet_project *p, stet_scratch *out, stet_error *err);
void stet_scratch_close(stet_scratch *s);

#endif
