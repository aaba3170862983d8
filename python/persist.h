/* persist.h - what the files about the persister share: its handle, entries as tuples, and strategies.
 *
 * A method enters the handle, calls the library and leaves the handle again. stet_py_persist_fail raises an error of
 * the library, since it may be a strategy's own exception. Everything is called with the interpreter lock held.
 */
#ifndef STET_PYTHON_PERSIST_H
#define STET_PYTHON_PERSIST_H

#include "module.h"

typedef struct persist_object {
    PyObject_HEAD stet_py_gate gate;
    stet_persist *p;
    PyObject *strategy; /* of the handle itself, or NULL */
    pid_t pid;          /* of the process that opened it */
} persist_object;

/* In persist.c. */

/* False with an exception: the persister is closed, or a strategy wants to write. */
bool stet_py_persist_enter(persist_object *self, bool writes);
void stet_py_persist_leave(persist_object *self);

/* In persist_entry.c. */

/* An entry as a tuple; a new reference, or NULL with an exception:
 *
 *   (block, module, created_at, {kind: (id, size, format, bytes or None)}, elapsed_ms, extra or None, hash, in_log)
 */
PyObject *stet_py_entry(const stet_persist_entry *e);
/* The same with strings of the entry that already exist, or NULL. */
PyObject *stet_py_entry_with(const stet_persist_entry *e, PyObject *block, PyObject *module);
/* The key holds pointers into the two strings. False with an exception. */
bool stet_py_persist_key(PyObject *block, PyObject *module, PyObject *created, stet_persist_key *key);

/* In persist_strategy.c. */

/* Raises what a strategy raised on its way through the library, otherwise the error. Clears the error; returns NULL. */
PyObject *stet_py_persist_fail(stet_error *err);
/* Is this thread inside a strategy? */
bool stet_py_in_strategy(void);
/* The library's strategy function for a strategy in Python: `ctx` is the callable. What it raises comes out of the call
 * that led here. */
stet_status stet_py_strategy(void *ctx, const stet_persist_entry *const *entries, size_t count, bool *remove,
                             stet_error *err);
/* default_strategy([(block, module, created_at, size)], limits, now): indexes of the entries to remove. */
PyObject *stet_py_strategy_default(PyObject *module, PyObject *args);

/* In persist_put.c. */

/* The method put(block, module, created_at) of the persister. */
PyObject *stet_py_persist_put(PyObject *o, PyObject *args);
bool stet_py_put_init(PyObject *module);

#endif
