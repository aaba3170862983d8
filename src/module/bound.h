/* bound.h - files among the inputs of a node, for the kinds that read them (`command`, and `ref` "files").
 *
 * A file binding is one of these, or a list of them:
 *
 *   link to file:PATH                that file
 *   link to glob:PATTERN             what the pattern matches, in the document of the pattern
 *   link to an output                {"path","hash","mode","size"}: a file that another node has made
 *   {"each": LIST, "name": NAME}     the files NAME of all commands of a list
 *   {"made": OUTPUT}                 the same as the output alone
 *
 * The last two may have "matching": a pattern, or "" for nothing. Files that do not match are not inputs, but the node
 * is still waited for: which files it makes is known only after it has run.
 */
#ifndef STET_MODULE_BOUND_H
#define STET_MODULE_BOUND_H

#include "files/files.h"
#include "scheduler/module.h"

/* The id of the document that a link names, or NULL; `hold` keeps it. */
const char *stet_bound_id(stet_value binding, stet_value *hold);
bool stet_bound_is_each(stet_value binding);
bool stet_bound_is_made(stet_value binding);

/* Call before a node reads its files: brings their documents up to date with what commands have done to them, so that
 * the run sees it. */
STET_CHECKED stet_status stet_bound_ready(stet_run *run, stet_files *files, stet_error *err);

#endif
