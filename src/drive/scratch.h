/* scratch.h - a temporary copy of a project's spaces and file index, or of the whole project.
 *
 *     stet_scratch s;
 *     stet_status status = stet_scratch_open(project, &s, &err);
 *     if (status == STET_OK) {
 *         use(s.project);         // changes its spaces and documents in the copy only
 *         stet_scratch_close(&s); // removes the copy
 *     }
 *
 * A dry run sets up a changed program and looks at files as a run does, but must leave no trace: so it works here.
 * Nothing in the project is written, locked or created, and it may be read-only. The copy lies in $TMPDIR or /tmp.
 *
 * Spaces are copied as files while others may write to them. A copy is good if the database itself was the same file
 * before and after: then nobody moved the log into it meanwhile. The log is copied after it, and a torn end of the log
 * does not count. STET_BUSY: no good copy could be made.
 */
#ifndef STET_DRIVE_SCRATCH_H
#define STET_DRIVE_SCRATCH_H

#include "project/project.h"

typedef struct stet_scratch {
    stet_project *project;
    char *dir;
} stet_scratch;

STET_CHECKED stet_status stet_scratch_open(const stet_project *p, stet_scratch *out, stet_error *err);
/* A copy with the files of the project, in which commands can run: a project of its own, with default settings and
 * nothing in its result store. Its directory has the name of the project's. Symbolic links that lead into the project
 * lead into the copy. Sockets, pipes and devices are left out. */
STET_CHECKED stet_status stet_scratch_open_tree(const stet_project *p, stet_scratch *out, stet_error *err);
void stet_scratch_close(stet_scratch *s);

#endif
