/* files.h - files as documents: which ones are followed, and bringing the documents up to date.
 *
 *     stet_files *f;
 *     stet_status status = stet_files_open(project, space, &f, &err);
 *     if (status != STET_OK)
 *         return status;
 *     status = stet_files_follow(f, "file:data/raw.csv", &err); // from now on; also "glob:src/x?.c", "env:CC"
 *     if (status == STET_OK)
 *         status = stet_files_scan(f, &report, &err); // looks at all of them, commits what changed
 *     stet_files_close(f);
 *
 * A file is the document `file:PATH` (path.h) with the value {"hash","mode","size"}; no document means no file. A
 * pattern is the document `glob:PATTERN`; its value is an object {PATH: link to file:PATH} of what it matches, with
 * PATH as in ids. So a reader of a pattern's document that follows its links depends on which files there are and on
 * each of them. A pattern does not match leftovers: unchanged outputs of commands that no action writes any more. A
 * build from scratch would not have them.
 *
 * An environment variable that a command depends on is followed in the same way. The document `env:NAME` has the hash
 * and the size of its value, never the value itself; no document means that the variable is not set. `env:PATH=NAME`
 * says in the same way which file PATH finds for a program, `env:PROJECT=path` where the project lies, and `env:WAY=DIRECTORY` where a
 * directory leads through links.
 *
 * What is followed, and what each file looked like, is kept in `.stet/local/files/SPACE/` (index.h), beside the
 * documents. This index is read on first use, is derived, and is rebuilt from the documents if it is lost or damaged.
 * (Then `stet_files_was_lost` returns true, because followed files that do not exist have no document.)
 *
 * Invariants
 *   F1. an entry of the index is a true look at that file at some time (look.h), whoever wrote it;
 *   F2. up to sequence `seq` of the index each entry agrees with its document; documents that changed after it are
 *       compared.
 *
 *   F3. a scan writes a document only if nobody has changed it since before the file was looked at. A command that
 *       ends meanwhile has written both: what the scan saw is older than what the document says now, and the file is
 *       looked at again.
 *   F4. no command runs while a scan looks at files; or another process runs some, and the scan leaves alone what an
 *       outdated action writes or may write: files that are missing or half written now, and have documents when that
 *       action has run.
 *
 * Documents are committed before the index is written: a crash between them costs a second look and loses nothing.
 *
 * Commands that write files write their documents themselves, with the result. They report the looks they took with
 * stet_files_note, so that the next scan need not read these files again.
 *
 * A handle is used by one thread at a time; a scan itself uses several threads.
 */
#ifndef STET_FILES_FILES_H
#define STET_FILES_FILES_H

#include "files/look.h"
#include "memory/observe.h"
#include "os/file.h"
#include "os/lock.h"

/* Held by the drive that runs commands: files change then, and that drive writes their documents. Shared: by whoever
 * looks at files and wants them to hold still (F4). */
#define STET_FILES_COMMANDS_LOCK "local/exec/lock"

typedef struct stet_files stet_files;

STET_CHECKED stet_status stet_files_open(stet_project *p, stet_space *s, stet_files **out, stet_error *err);
void stet_files_close(stet_files *f); /* without saving; NULL is fine */
bool stet_files_was_lost(stet_files *f);
const char *stet_files_space(const stet_files *f);  /* its name */
const char *stet_files_branch(const stet_files *f); /* "": the default branch */
int stet_files_root(const stet_files *f);           /* descriptor of the project's root, for stet_look_at */

/* Sets the branch. Files are the same on every branch: their documents are made on the default branch, and this handle
 * copies them to another one, from now on and, for everything followed, with each scan. Call it before anything else.
 */
STET_CHECKED stet_status stet_files_set_branch(stet_files *f, const char *branch, stet_error *err);

/* For F4: is an action that writes this file, or may write it, outdated? Not set: none is. */
void stet_files_set_pending(stet_files *f, bool (*pending)(void *ctx, const char *path), void *ctx);
/* The lock under which this process runs commands; it belongs to the handle. */
STET_CHECKED stet_status stet_files_commands(stet_files *f, stet_lock **out, stet_error *err);
/* Takes such a lock (STET_FILES_COMMANDS_LOCK) exclusively, after scans that are under way. STET_BUSY: commands run. */
STET_CHECKED stet_status stet_files_take_commands(stet_lock *lock, stet_error *err);

/* Follows a document. The next scan looks at it. STET_INVALID: not the id of a file, pattern or variable. */
STET_CHECKED stet_status stet_files_follow(stet_files *f, const char *id, stet_error *err);

typedef struct stet_files_report {
    size_t followed;                    /* files and patterns */
    size_t hashed;                      /* read again */
    size_t changed, appeared, vanished; /* documents committed */
    stet_value list;                    /* ids of those, at most 1,000; the caller releases it */
} stet_files_report;
/* `report` may be NULL. */
STET_CHECKED stet_status stet_files_scan(stet_files *f, stet_files_report *report, stet_error *err);

/* The latest look at a followed file. False: it is not followed, or was never looked at. */
bool stet_files_known(stet_files *f, const char *path, stet_look *out);
/* Would a scan find a change? Looks at everything that is followed, and writes nothing. True if unsure. An index that
 * was never written counts as lost: then nothing is followed, unless documents say so. */
bool stet_files_changed(stet_files *f);
/* Do documents of files on the branch of this handle say something else than those of the default branch, which follow
 * the working tree? True when unsure. */
bool stet_files_branch_differs(stet_files *f);
/* What the document of a file says now, on the branch of the handle. */
STET_CHECKED stet_status stet_files_said(stet_files *f, const char *path, stet_look *out, stet_error *err);
/* Records the look of a file that a command wrote or removed (STET_LOOK_MADE), and follows the file from now on. The
 * command writes its document. Patterns that can match the file, directories above it and files below it are in doubt
 * until stet_files_rematch. */
void stet_files_note(stet_files *f, const char *path, const stet_look *look);
/* The same for what a command has left behind whose node did not come to its end: writes the document, too. From now on
 * it is an output that nobody writes, until a node does. */
STET_CHECKED stet_status stet_files_claim(stet_files *f, const char *path, stet_error *err);
/* Looks at these files now, commits what changed, and follows them. `looks` may be NULL. */
STET_CHECKED stet_status stet_files_update(stet_files *f, const char *const *paths, const stet_look *looks,
                                           size_t count, stet_error *err);
/* Is this document in doubt: has a command written something that it may depend on since it was last brought up to
 * date? */
bool stet_files_in_doubt(stet_files *f, const char *id);
/* The same for a file, except one that a command of this process has written: its document is about to be written. */
bool stet_files_is_stale(stet_files *f, const char *path);
bool stet_files_follows(stet_files *f, const char *id);
/* Are links part of what a directory or a pattern is, that lead elsewhere in the project? True if unsure. */
bool stet_files_is_linked(stet_files *f, const char *id);
/* Does the document of a variable have another value than this process has? Then another process, which came later,
 * wrote it. `said`: the document, null if there is none. */
bool stet_files_is_overruled(stet_files *f, const char *name, stet_value said);
/* Is the file, or a directory that contains it, written by an action of this piece (its document) whose name has this
 * prefix, according to the record? */
bool stet_files_is_written_by(stet_files *f, const char *path, const stet_docname *piece, const char *prefix);
/* The numbers of all actions that write it, or may write it, according to the record. */
STET_CHECKED stet_status stet_files_writers(stet_files *f, const char *path, stet_numbers *out, stet_error *err);
/* Does an action other than this one ("PIECE/NODE") write it? True when unsure. */
bool stet_files_is_written_by_other(stet_files *f, const char *path, const char *name);
/* Is the file, or a directory that contains it, still as a command wrote it, as far as is known? */
bool stet_files_is_made(stet_files *f, const char *path);
/* Finds an existing file or directory that is still as a command wrote it: below the directory `top`, or one that the
 * pattern `top` matches. `left`: among those that no action writes any more. `skip` (NULL: none) says which paths
 * do not count. NULL: none, as far as is known. Caller frees. */
char *stet_files_find_made(stet_files *f, const char *top, bool pattern, bool left,
                           bool (*skip)(void *ctx, const char *path), void *ctx);
/* Is it still as a command wrote it, itself or as part of a directory, and does no action write it any more, as far as
 * is known? */
bool stet_files_is_left(stet_files *f, const char *path);
/* Nodes were added or removed: it is in doubt which outputs still count, for every pattern that matches some. If commands
 * have written since, whatever links of the project are part of is in doubt, too. */
void stet_files_nodes_changed(stet_files *f);
/* Which files a pattern matches may have changed: its document is in doubt. */
void stet_files_distrust_pattern(stet_files *f, const char *pattern);
/* Brings everything that is in doubt up to date. */
STET_CHECKED stet_status stet_files_rematch(stet_files *f, stet_error *err);
/* Adds all files that a pattern matches on disk now to `out`, sorted, including leftovers. `visit` (NULL: none) is
 * called for every directory that decides what the pattern matches, before it is listed, and for every link among the
 * matches. Any thread. */
typedef void (*stet_files_visit)(void *ctx, const char *path, bool link);
STET_CHECKED stet_status stet_files_walk(stet_files *f, const char *pattern, stet_files_visit visit, void *ctx,
                                         stet_names *out, stet_error *err);
/* A directory that the pattern matches, if it matches no file: patterns match files alone. NULL: there is none. Caller
 * frees. */
char *stet_files_only_directory(stet_files *f, const char *pattern);
/* The patterns that are followed and match nothing, as far as is known. */
void stet_files_unmatched(stet_files *f, stet_names *out);
/* Stops following these; their documents are deleted. */
STET_CHECKED stet_status stet_files_forget(stet_files *f, const char *const *ids, size_t count, stet_error *err);
/* Reads what other processes have saved since the index was read. */
STET_CHECKED stet_status stet_files_catch_up(stet_files *f, stet_error *err);
/* Writes the index, if anything in it changed. */
STET_CHECKED stet_status stet_files_save(stet_files *f, stet_error *err);

/* The same, and synced: only the index knows about followed files that do not exist. */
STET_CHECKED stet_status stet_files_keep(stet_files *f, stet_error *err);
/* The set of followed files is about to change, with a graph. If this process dies before stet_files_settle, the next
 * one is told so, and follows everything that graphs name and actions read. */
STET_CHECKED stet_status stet_files_unsettle(stet_files *f, stet_error *err);
bool stet_files_unsettled(stet_files *f); /* has a process died in between, or is it still at it? */
/* The index is complete now; also for processes that died, if stet_files_unsettled reported them before. */
STET_CHECKED stet_status stet_files_settle(stet_files *f, stet_error *err);

/* What is followed, sorted by id; false past the end. The id belongs to the caller; NULL: no longer followed. */
bool stet_files_at(stet_files *f, size_t index, char **id, stet_look *look);

#endif
