/* files.h - files as documents: which ones are followed, what they were, and bringing the documents up to date.
 *
 *     stet_files *f;
 *     status = stet_files_open(project, space, &f, &err);
 *     stet_files_follow(f, "file:data/raw.csv", &err);               // from now on; also "glob:src/x*.c", "env:CC"
 *     status = stet_files_scan(f, &report, &err);                    // looks at all of them, commits what changed
 *     stet_files_close(f);
 *
 * A file is the document `file:PATH` (path.h), its value {"hash","mode","size"}; no document: no file. A pattern is the
 * document `glob:PATTERN`, its value an object {PATH: link to file:PATH} of what it matches, PATH as in ids. So whoever
 * reads a pattern's document through its links depends on which files there are and on each of them.
 *
 * A variable of the environment that a command depends on is followed the same way: the document `env:NAME` has the
 * hash and the size of its value, never the value itself; no document: it is not set.
 *
 * What is followed, and what each file looked like, is kept in `.stet/local/files/SPACE/` (index.h), beside the
 * documents: it is read on first use, is derived, and is made again from them when it is lost or damaged (then
 * `stet_files_was_lost` says so, because files that are followed and not there have no document). Invariants: F1. an
 * entry of the index is a true look at that file at some time (look.h), whoever wrote it; F2. up to sequence `seq` of
 * the index each entry is what the document says; documents that changed after it are compared. Documents are committed
 * before the index is written: a crash between them costs a second look and loses nothing.
 *
 * Commands that write files write their documents themselves, with the result; they tell the looks they took with
 * stet_files_note, so that the next scan need not read these files again.
 *
 * A handle is used by one thread at a time; a scan itself uses more than one. */
#ifndef STET_FILES_FILES_H
#define STET_FILES_FILES_H

#include "files/look.h"
#include "memory/space.h"

/* Held by the drive that runs commands: files change then, and their documents are that drive's business. */
#define STET_FILES_COMMANDS_LOCK "local/exec/lock"

typedef struct stet_files stet_files;

STET_CHECKED stet_status stet_files_open(stet_project *p, stet_space *s, stet_files **out, stet_error *err);
void stet_files_close(stet_files *f); /* without saving; NULL is fine */
bool stet_files_was_lost(stet_files *f);
int stet_files_root(const stet_files *f); /* descriptor of the project's root, for stet_look_at */

/* Adds a document to those followed. Looked at by the next scan. STET_INVALID for any other id. */
STET_CHECKED stet_status stet_files_follow(stet_files *f, const char *id, stet_error *err);

typedef struct stet_files_report {
    size_t followed;                    /* files and patterns */
    size_t hashed;                      /* read again */
    size_t changed, appeared, vanished; /* documents committed */
    stet_value list;                    /* ids of those, at most 1,000; the caller releases it */
} stet_files_report;
/* `report` may be NULL. */
STET_CHECKED stet_status stet_files_scan(stet_files *f, stet_files_report *report, stet_error *err);

/* The latest look at a file that is followed (true), or nothing. */
bool stet_files_known(stet_files *f, const char *path, stet_look *out);
/* A look that was taken elsewhere: kept, and followed from now on. The document is somebody else's business. */
void stet_files_note(stet_files *f, const char *path, const stet_look *look);
/* Looks at these files now, commits what changed, and follows them. `looks` may be NULL. */
STET_CHECKED stet_status stet_files_update(stet_files *f, const char *const *paths, const stet_look *looks,
                                           size_t count, stet_error *err);
/* Does a pattern that is followed match this path? */
bool stet_files_matched(stet_files *f, const char *path);
/* Patterns are expanded again, and what they match anew is looked at: for a process that makes files. */
STET_CHECKED stet_status stet_files_rematch(stet_files *f, stet_error *err);
/* No longer follows these; their documents are deleted. */
STET_CHECKED stet_status stet_files_forget(stet_files *f, const char *const *ids, size_t count, stet_error *err);
/* Takes in what other processes have saved since the index was read. */
STET_CHECKED stet_status stet_files_catch_up(stet_files *f, stet_error *err);
/* Writes the index, if anything in it changed. */
STET_CHECKED stet_status stet_files_save(stet_files *f, stet_error *err);

/* The same, and synced: what is followed and not there is known from the index alone. */
STET_CHECKED stet_status stet_files_keep(stet_files *f, stet_error *err);
/* What is to be followed is about to change, with a graph. If this process dies before stet_files_settle, the next one
 * is told so, and follows everything that graphs name and actions read. */
STET_CHECKED stet_status stet_files_unsettle(stet_files *f, stet_error *err);
bool stet_files_unsettled(stet_files *f); /* has somebody died in between, or is he at it? */
/* Now the index has it. Also of those who have died, if stet_files_unsettled told of them before. */
STET_CHECKED stet_status stet_files_settle(stet_files *f, stet_error *err);

/* What is followed, sorted by id: false past the end. The id belongs to the caller; NULL: one that no longer is. */
bool stet_files_at(stet_files *f, size_t index, char **id, stet_look *look);

#endif
