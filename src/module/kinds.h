/* kinds.h - the module kinds that are built in, one extern each. */
#ifndef STET_MODULE_KINDS_H
#define STET_MODULE_KINDS_H

#include "scheduler/module.h"

extern const stet_module_kind stet_module_ref;
extern const stet_module_kind stet_module_command;
extern const stet_module_kind stet_module_call;
extern const stet_module_kind stet_module_javascript;

#endif
