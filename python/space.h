/* space.h - what the files about projects, spaces and transactions share.
 *
 * A project and everything opened from it is used by one thread at a time; the classes in Python hold their own lock
 * around each call here. A space keeps its project alive; a follower and a transaction keep their space alive.
 */
#ifndef STET_PYTHON_SPACE_H
#define STET_PYTHON_SPACE_H

#include "module.h"

typedef struct project_object {
    PyObject_HEAD stet_project *p;
    int open; /* open spaces, and threads inside */
    bool closed;
    pid_t pid; /* of the process that opened it */
} project_object;

typedef struct space_object {
    PyObject_HEAD project_object *project;
    stet_space *s;
} space_object;

/* In project.c. */

/* A database must not be used, nor closed, by a child of the process that opened it. */
bool stet_py_foreign(const project_object *p);
/* False with an exception: it is closed, or foreign. */
bool stet_py_project_usable(const project_object *p);
/* Releases one use of the project; a closed one is freed with the last use. */
void stet_py_project_let_go(project_object *self);

/* In space.c. */

/* False with an exception: it is closed, or foreign. */
bool stet_py_space_usable(const space_object *s);
/* The method space(name, flags) of a project. */
PyObject *stet_py_project_space(PyObject *o, PyObject *args);

/* In tx.c. */

/* The methods begin(branch) and transact(branch, fn) of a space. */
PyObject *stet_py_space_begin(PyObject *o, PyObject *args);
PyObject *stet_py_space_transact(PyObject *o, PyObject *args);

#endif
