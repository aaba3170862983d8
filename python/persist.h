/* persist.h - what the files about the persister share: its handle, entries as tuples, and strategies.
 *
 * A method enters the handle, calls the library and leaves it again; an error of the library is raised by
 * stet_py_persist_fail, since it may be a strategy's own exception. All is called with the interpreter lock. */
#ifndef STET_PYTHON_PERSIST_H
#define STET_PYTHON_PERSIST_H

#include "module.h"

#include "persist/persist.h"

typedef struct persist_object {
    PyObject_HEAD stet_py_gate gate;
    stet_persist *p;
    PyObject *strategy; /* of the handle itself, or NULL */
    pid_t pid;          /* of whoever opened it */
} persist_object;

/* persist.c */

/* False with an exception: the persister is closed, or a strategy wants to write. */
bool stet_py_persist_enter(persist_object *self, bool writes);
void stet_py_persist_leave(persist_object *self);

/* persist_entry.c */

/* (block, module, created_at, {kind: (id, size, format, bytes or None)}, elapsed_ms, extra or None, hash, in_log): a
 * new reference, or NULL with an exception. */
PyObject *stet_py_entry(const stet_persist_entry *e);
/* With the strings of the entry that are at hand already, or NULL. */
PyObject *stet_py_entry_with(const stet_persist_entry *e, PyObject *block, PyObject *module);
/* The key holds pointers into the two strings. False with an exception. */
bool stet_py_persist_key(PyObject *block, PyObject *module, PyObject *created, stet_persist_key *key);

/* persist_strategy.c */

/* Raises what a strategy raised on its way through the library, else the error. Clears the error; returns NULL. */
PyObject *stet_py_persist_fail(stet_error *err);
/* Is this thread inside of one? */
bool stet_py_in_strategy(void);
/* The strategy of the library for one in Python: `ctx` is the callable. What it raises comes out of the call that led
 * here. */
stet_status stet_py_strategy(void *ctx, stet_persist_item *items, size_t count, uint64_t now, stet_error *err);
/* default_strategy([(block, module, created_at, size)], limits, now): places of those that go */
PyObject *stet_py_strategy_default(PyObject *module, PyObject *args);

/* persist_put.c */

/* The method put(block, module, created_at) of the persister. */
PyObject *stet_py_persist_put(PyObject *o, PyObject *args);
bool stet_py_put_init(PyObject *module);

#endif
