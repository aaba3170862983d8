/* kinds.h - the built-in module kinds, one extern each. */
#ifndef STET_MODULE_KINDS_H
#define STET_MODULE_KINDS_H

#include "scheduler/module.h"

extern const stet_module_kind stet_module_ref;
extern const stet_module_kind stet_module_command;
extern const stet_module_kind stet_module_call;
extern const stet_module_kind stet_module_javascript;
extern const stet_module_kind stet_module_python;

/* Refuses a member of a descriptor that is not in `names`. `what` names the kind, `docs` the page that lists them. */
STET_CHECKED stet_status stet_module_members(stet_value descriptor, const char *const *names, size_t count,
                                             const char *what, const char *docs, stet_error *err);

#endif
