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

/* Reads the documents of those directories above a path that may be a command's: links, and directories that a command
 * makes as a whole. Who makes one goes first. Other directories are not read as a whole: whoever writes to one writes
 * documents of what is in it. `absent`: also of those that are not there yet; then whoever is to write anything into one
 * is waited for. `files` may be NULL. */
STET_CHECKED stet_status stet_bound_read_above(stet_run *run, stet_files *files, const char *root, const char *path,
                                               bool absent, stet_error *err);
/* The same for the directory that a pattern begins with, itself included. */
STET_CHECKED stet_status stet_bound_read_way(stet_run *run, stet_files *files, const char *root, const char *pattern,
                                             stet_error *err);

/* Adds the names under which a file of the project is reached: the path itself and, for each link on the way, the path
 * that it leads to. */
void stet_bound_names(const char *root, const char *path, stet_names *out);
/* Adds these links. */
void stet_bound_links(const char *root, const char *path, stet_names *out);
/* Reads the documents of all of them but the path itself, and of what is above them: who makes one of the links goes
 * first, and when one is gone, what was read behind it is judged again. */
void stet_bound_read_names(stet_run *run, stet_files *files, const char *root, const char *path);

#endif
