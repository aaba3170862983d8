/* orchestrate_local.h - the backend that runs jobs on this machine, under the supervisor of process/local.h.
 *
 *     stet_backend_local *b = stet_backend_local_open(dir, root); // .stet/local/calls, the project
 *     stet_orch o = {.remote = repo, .backend = &stet_backend_local_kind, .backend_ctx = b, .owner = me};
 *     stet_orch_answer a;
 *     stet_status status = stet_orch_poll(&o, &job, &a, &err);
 *     stet_backend_local_close(b); // running jobs continue
 *
 * A function is a URI, dml+exec://stet-exec-local/PROGRAM?OPTIONS:
 *
 *   PROGRAM         a bare name is looked up in $PATH; a name with a slash is relative to the project; //usr/bin/x is
 *                   /usr/bin/x
 *   arg=TEXT        an argument; any number, in order
 *   command=TEXT    instead of PROGRAM: a line for sh -c
 *   cwd=PATH        the working directory, relative to the project, which is the default
 *   scratch=true    run in a new empty directory, which is removed afterwards
 *   env=NAME        pass this variable on; env=NAME=VALUE sets it. PATH, HOME, USER, LOGNAME, SHELL and TMPDIR are
 *                   always passed on, others never
 *   timeout=10m, max-memory=2G, max-cpu=5m, max-file-size=1G
 *                   limits
 *   stdin=null      no standard input; otherwise it is the arguments of the call, as a JSON array
 *   stdout=text     the result is the text itself; otherwise the output is parsed as JSON (no output at all is null)
 *   file=PATH       a file that it makes, relative to its working directory; any number. The result is then
 *                   {"files":{PATH:{"/":{"bytes@1":...}}},"stdout":...}
 *   v=TEXT          ignored: stands for a version of the program, because a call is identified by its function and its
 *                   arguments and not by the content of the program
 *
 * Any other option is refused.
 *
 * A job that fails (by its exit status, by a signal, by a timeout or because it could not be started) has the result
 * {"error":{"message","exit"|"signal"?,"timedOut"?,"stderr"}} with the end of its standard error.
 */
#ifndef STET_EXEC_ORCHESTRATE_LOCAL_H
#define STET_EXEC_ORCHESTRATE_LOCAL_H

#include "call/orchestrate.h"

typedef struct stet_backend_local stet_backend_local;
extern const stet_backend stet_backend_local_kind;

stet_backend_local *stet_backend_local_open(const char *dir, const char *root);
void stet_backend_local_close(stet_backend_local *b); /* NULL is fine */
/* Waits until a job that was submitted through this handle has ended, at most timeout_ms. */
void stet_backend_local_wait(stet_backend_local *b, int timeout_ms);
/* Releases a job without ending it: another process of this directory has it now. */
void stet_backend_local_release(stet_backend_local *b, stet_hash key);
/* Checks a function of this backend. STET_INVALID: the message says what is wrong. */
STET_CHECKED stet_status stet_backend_local_check(const char *function, stet_error *err);

#endif
