/* module.h - what the files of the extension module stet._stet share.
 *
 * The module is thin: it converts arguments and answers between Python and the library, and keeps the rules of CPython.
 * The classes that a user calls are in python/stet/. The module is compiled against the limited API (one file for every
 * Python from 3.11 on) and against stet.h alone: what it does, any program that embeds stet can do. It contains the
 * library.
 *
 * The interpreter lock is released around every call that may wait, read or write. Handles count the threads inside:
 * closing a handle takes effect when the last thread has left, so no thread finds its handle gone.
 */
#ifndef STET_PYTHON_MODULE_H
#define STET_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include "stet.h"

/* Raises the exception for the error's status and clears the error. Returns NULL. */
PyObject *stet_py_raise(stet_error *err);

/* Raises ValueError: the `what` is closed. Returns NULL. */
PyObject *stet_py_gone(const char *what);
/* The return value of a method: None, or the value, which is released; or NULL with the exception of the error. */
PyObject *stet_py_none_or(stet_status status, stet_error *err);
PyObject *stet_py_value_or(stet_status status, stet_value v, stet_error *err);

/* Runs the statements without the interpreter lock. */
#define STET_PY_OUTSIDE(...)                                                                                           \
    do {                                                                                                               \
        PyThreadState *outside_ = PyEval_SaveThread();                                                                 \
        __VA_ARGS__;                                                                                                   \
        PyEval_RestoreThread(outside_);                                                                                \
    } while (0)

/* A new reference, or NULL with an exception. */
PyObject *stet_py_from_value(stet_value v);
/* False with an exception: TypeError for types that JSON does not have, stet's own for values that a document can't
 * hold. */
bool stet_py_to_value(PyObject *o, stet_value *out);

/* The text of a str without NUL, valid while `o` lives; NULL with an exception. `what` names it in the message. */
const char *stet_py_text(PyObject *o, const char *what);
/* A path in the encoding of the file system (NULL for None). `bytes` holds it and is released by the caller. False with
 * an exception. */
bool stet_py_path(PyObject *o, PyObject **bytes, const char **path);

/* Guards a handle that threads share and that may be closed while some are inside. The interpreter lock protects the
 * two fields. */
typedef struct stet_py_gate {
    int inside;
    bool closed;
} stet_py_gate;
/* False with an exception if the handle is closed. */
bool stet_py_enter(stet_py_gate *gate, const char *what);
/* True: the caller was the last inside of a closed handle, and frees it. */
bool stet_py_leave(stet_py_gate *gate);
/* True: nobody is inside, and the caller frees the handle. */
bool stet_py_close(stet_py_gate *gate);

/* Adds the type made from `spec` as an attribute of the module. False with an exception. */
bool stet_py_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyObject **keep);

/* The end of a dealloc: releases `owner`, which may be NULL, and frees the object. */
void stet_py_free(PyObject *o, PyObject *owner);
/* Defines NAME_spec of a type that has NAME_object, NAME_dealloc and these methods. Only this module creates its
 * objects. */
#define STET_PY_TYPE(lower, text, ...)                                                                                 \
    static PyMethodDef lower##_methods[] = {__VA_ARGS__, {0}};                                                         \
    static PyType_Slot lower##_slots[] = {                                                                             \
        {Py_tp_dealloc, (void *)(uintptr_t)lower##_dealloc}, {Py_tp_methods, lower##_methods}, {0, NULL}};             \
    static PyType_Spec lower##_spec = {.name = "stet._stet." text,                                                     \
                                       .basicsize = sizeof(lower##_object),                                            \
                                       .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,                \
                                       .slots = lower##_slots}

bool stet_py_persist_init(PyObject *module);
bool stet_py_project_init(PyObject *module);
bool stet_py_context_init(PyObject *module);
bool stet_py_space_init(PyObject *module);
bool stet_py_tx_init(PyObject *module);

#endif
