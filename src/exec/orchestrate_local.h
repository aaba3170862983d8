/* orchestrate_local.h - the backend that runs jobs on this machine, under the supervisor of exec/local.h.
 *
 *     stet_backend_local *b = stet_backend_local_open(dir, root);      // .stet/local/calls, the project
 *     stet_orch o = {.backend = &stet_backend_local_kind, .backend_ctx = b, ...};
 *     ...
 *     stet_backend_local_close(b);                                     // what runs goes on
 *
 * What a function says: dml+exec://stet-exec-local/PROGRAM?OPTIONS
 *
 *     PROGRAM         a bare name is looked up on $PATH; one with a slash is relative to the project; //usr/bin/x is
 *                     /usr/bin/x
 *     arg=TEXT        an argument; any number, in order
 *     command=TEXT    instead of PROGRAM: a line for sh -c
 *     cwd=PATH        where it runs, relative to the project, which is the default
 *     scratch=true    it runs in an empty directory of its own, which is removed afterwards
 *     env=NAME        this variable is passed on; env=NAME=VALUE sets it. PATH, HOME, USER, LOGNAME, SHELL and TMPDIR
 * are passed on always, others never timeout=10m, max-memory=2G, max-cpu=5m, max-file-size=1G stdin=null      nothing
 * on standard input; else the arguments of the call, as a JSON array stdout=text     the result is the text itself;
 * else it is read as JSON (nothing at all is null) file=PATH       a file that it makes, relative to where it runs; any
 * number. The result is
 *                     {"files":{PATH:{"/":{"bytes@1":...}}},"stdout":...} then
 *     Anything else is passed over by nobody: it is refused, except v=, which stands for a version of the program,
 * since a call is known by its function and its arguments and not by what the program is.
 *
 * A job that fails, by its exit status, by a signal, by its time or because it could not be started, has as its result
 * {"error":{"message","exit"|"signal"?,"timedOut"?,"stderr"}} with the end of what it said. */
#ifndef STET_EXEC_ORCHESTRATE_LOCAL_H
#define STET_EXEC_ORCHESTRATE_LOCAL_H

#include "exec/orchestrate.h"

typedef struct stet_backend_local stet_backend_local;
extern const stet_backend stet_backend_local_kind;

stet_backend_local *stet_backend_local_open(const char *dir, const char *root);
void stet_backend_local_close(stet_backend_local *b); /* NULL is fine */
/* Waits until a job that was submitted through this handle has ended, at most that long. */
void stet_backend_local_wait(stet_backend_local *b, int timeout_ms);
/* Lets go of a job without ending it: somebody else of this directory has it now. */
void stet_backend_local_release(stet_backend_local *b, stet_hash key);
/* STET_INVALID: what is wrong with a function of this backend. */
STET_CHECKED stet_status stet_backend_local_check(const char *function, stet_error *err);

#endif
