/* worker_internal.h - what a worker says of itself, and which calls it may take. Private to src/call. */
#ifndef STET_EXEC_WORKER_INTERNAL_H
#define STET_EXEC_WORKER_INTERNAL_H

#include "call/calls.h"

#define STET_WORKER_ANNOUNCE_MS 10000 /* how often */

/* Tells the hub that the worker `name` is there, with `running` calls. */
STET_CHECKED stet_status stet_worker_announce(stet_hub *hub, const char *name, const stet_worker_opts *o,
                                              int64_t started_ms, size_t running, bool draining, stet_error *err);
/* Does the worker have all labels that the function asks for? */
bool stet_worker_fits(const stet_worker_opts *o, const char *function);

#endif
