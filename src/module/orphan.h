/* orphan.h - what commands of drives that died have written, where no node goes on with them.
 *
 *     stet_status status = stet_orphans_take(project, files, may_come, ctx, &left, &err); // the graph is set up: before the scan
 *     if (left)
 *         status = stet_orphans_take(project, files, may_come, ctx, &left, &err); // and when all has run
 *
 * A command outlives its drive (process/local.h). The next drive goes on with it, if the graph still has its node; if
 * not, what it writes is no source either. The journal says what it was to write:
 *
 *   R1. a command that still runs is ended if nothing of the graph is to write one of its outputs;
 *   R2. every output of a command that has ended and that nobody has collected is recorded as an output that nobody
 *       writes (stet_files_claim). If a node goes on with the command, or writes the file anew, it is that node's;
 *   R3. that is on disk before the journal forgets the command;
 *   R4. a file that was changed only after the command had ended is somebody else's, and left alone.
 *
 * Nothing is done while another process runs commands: it has done this when it began.
 */
#ifndef STET_MODULE_ORPHAN_H
#define STET_MODULE_ORPHAN_H

#include "files/files.h"

/* `may_come`: may a node of this graph write the file? True if unsure. *left: there are commands of which that is so.
 * While a list of commands is outdated it is so of all that the list may come to have: they are judged again when it has
 * run. */
STET_CHECKED stet_status stet_orphans_take(stet_project *p, stet_files *files,
                                           bool (*may_come)(void *ctx, const char *path), void *ctx, bool *left,
                                           stet_error *err);

#endif
