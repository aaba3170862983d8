/* space.c - stet._stet.Space, Follower: documents, over include/stet.h. */
#include "space.h"

typedef struct follower_object {
    PyObject_HEAD space_object *space;
    stet_follower *f;
} follower_object;

static PyObject *space_type, *follower_type;

bool stet_py_space_usable(const space_object *s) {
    if (s->s && stet_py_foreign(s->project))
        PyErr_SetString(PyExc_ValueError,
                        "the space was opened by the process that forked this one: open its project again");
    else if (!s->s)
        stet_py_gone("space");
    return s->s && !stet_py_foreign(s->project);
}

PyObject *stet_py_project_space(PyObject *o, PyObject *args) {
    project_object *self = (project_object *)o;
    const char *name;
    unsigned flags;
    if (!PyArg_ParseTuple(args, "sI:space", &name, &flags) || !stet_py_project_usable(self))
        return NULL;
    space_object *space = PyObject_New(space_object, (PyTypeObject *)space_type);
    if (!space)
        return NULL;
    space->project = (project_object *)Py_NewRef(o);
    space->s = NULL;
    self->open++;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_space_open(self->p, name, flags, &space->s, &err));
    if (status == STET_OK)
        return (PyObject *)space;
    stet_py_project_let_go(self);
    Py_DECREF((PyObject *)space);
    return stet_py_raise(&err);
}

static void space_end(space_object *self) {
    if (!self->s)
        return;
    stet_space *s = self->s;
    self->s = NULL;
    if (!stet_py_foreign(self->project))
        STET_PY_OUTSIDE(stet_space_close(s));
    stet_py_project_let_go(self->project);
}

static PyObject *space_close(PyObject *o, PyObject *none) {
    (void)none;
    space_end((space_object *)o);
    Py_RETURN_NONE;
}

static void space_dealloc(PyObject *o) {
    space_object *self = (space_object *)o;
    space_end(self);
    stet_py_free(o, (PyObject *)self->project);
}

static PyObject *space_get(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch, *cell, *scope;
    long long at;
    if (!PyArg_ParseTuple(args, "zszL:get", &branch, &cell, &scope, &at) || !stet_py_space_usable(self))
        return NULL;
    stet_value v = stet_value_null();
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_space_get(self->s, branch, cell, scope, at, &v, &err));
    return stet_py_value_or(status, v, &err);
}

static PyObject *space_seq(PyObject *o, PyObject *none) {
    (void)none;
    space_object *self = (space_object *)o;
    if (!stet_py_space_usable(self))
        return NULL;
    int64_t seq = 0;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_space_seq(self->s, &seq, &err));
    return status == STET_OK ? PyLong_FromLongLong(seq) : stet_py_raise(&err);
}

static PyObject *space_uuid(PyObject *o, PyObject *none) {
    (void)none;
    space_object *self = (space_object *)o;
    return stet_py_space_usable(self) ? PyUnicode_FromString(stet_space_uuid(self->s)) : NULL;
}

static PyObject *space_changes(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch, *cell, *scope;
    long long after, before;
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "zszLLn:changes", &branch, &cell, &scope, &after, &before, &limit) ||
        !stet_py_space_usable(self))
        return NULL;
    stet_value v = stet_value_null();
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    stet_changes_query query = STET_CHANGES_QUERY_INIT;
    query.cell = cell;
    query.scope = scope;
    query.after = after;
    query.before = before;
    query.limit = limit > 0 ? (size_t)limit : 0;
    STET_PY_OUTSIDE(status = stet_space_changes_after(self->s, branch, &query, &v, &err));
    return stet_py_value_or(status, v, &err);
}

static PyObject *space_branch(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *name, *parent;
    long long at;
    int on;
    if (!PyArg_ParseTuple(args, "szLp:branch", &name, &parent, &at, &on) || !stet_py_space_usable(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = on ? stet_branch_create(self->s, name, parent, at, &err)
                                : stet_branch_delete(self->s, name, &err));
    return stet_py_none_or(status, &err);
}

static PyObject *space_follow(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch, *cell, *scope;
    long long after;
    if (!PyArg_ParseTuple(args, "zzzL:follow", &branch, &cell, &scope, &after) || !stet_py_space_usable(self))
        return NULL;
    follower_object *follower = PyObject_New(follower_object, (PyTypeObject *)follower_type);
    if (!follower)
        return NULL;
    follower->space = (space_object *)Py_NewRef(o);
    follower->f = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_space_follow(self->s, branch, cell, scope, after, &follower->f, &err));
    if (status == STET_OK)
        return (PyObject *)follower;
    Py_DECREF((PyObject *)follower);
    return stet_py_raise(&err);
}

/* The next change, or None when the time is over. */
static PyObject *follower_next(PyObject *o, PyObject *args) {
    follower_object *self = (follower_object *)o;
    int timeout;
    if (!PyArg_ParseTuple(args, "i:next", &timeout))
        return NULL;
    if (!self->f)
        return stet_py_gone("follower");
    if (!stet_py_space_usable(self->space))
        return NULL;
    stet_value v = stet_value_null();
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_follower_next(self->f, timeout, &v, &err));
    if (status != STET_BUSY)
        return stet_py_value_or(status, v, &err);
    stet_error_clear(&err);
    Py_RETURN_NONE;
}

static void follower_end(follower_object *self) {
    if (self->f && !stet_py_foreign(self->space->project))
        stet_follower_close(self->f);
    self->f = NULL;
}

static PyObject *follower_close(PyObject *o, PyObject *none) {
    (void)none;
    follower_end((follower_object *)o);
    Py_RETURN_NONE;
}

static void follower_dealloc(PyObject *o) {
    follower_object *self = (follower_object *)o;
    follower_end(self);
    stet_py_free(o, (PyObject *)self->space);
}

STET_PY_TYPE(space, "Space", {"get", space_get, METH_VARARGS, NULL}, {"seq", space_seq, METH_NOARGS, NULL},
             {"uuid", space_uuid, METH_NOARGS, NULL}, {"changes", space_changes, METH_VARARGS, NULL},
             {"branch", space_branch, METH_VARARGS, NULL}, {"begin", stet_py_space_begin, METH_VARARGS, NULL},
             {"transact", stet_py_space_transact, METH_VARARGS, NULL}, {"follow", space_follow, METH_VARARGS, NULL},
             {"close", space_close, METH_NOARGS, NULL});
STET_PY_TYPE(follower, "Follower", {"next", follower_next, METH_VARARGS, NULL},
             {"close", follower_close, METH_NOARGS, NULL});

bool stet_py_space_init(PyObject *module) {
    return stet_py_add_type(module, "Space", &space_spec, &space_type) &&
           stet_py_add_type(module, "Follower", &follower_spec, &follower_type);
}
