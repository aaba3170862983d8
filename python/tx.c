/* tx.c - stet._stet.Transaction, and how a space begins one. */
#include "space.h"

typedef struct tx_object {
    PyObject_HEAD space_object *space;
    stet_tx *tx;   /* NULL once it has ended */
    bool borrowed; /* of transact: the library ends it */
} tx_object;

static PyObject *tx_type;

static tx_object *tx_made(space_object *space, stet_tx *tx, bool borrowed) {
    tx_object *self = PyObject_New(tx_object, (PyTypeObject *)tx_type);
    if (self) {
        self->space = (space_object *)Py_NewRef((PyObject *)space);
        self->tx = tx;
        self->borrowed = borrowed;
    }
    return self;
}

static void tx_dealloc(PyObject *o) {
    tx_object *self = (tx_object *)o;
    if (self->tx && !self->borrowed && !stet_py_foreign(self->space->project))
        stet_tx_abort(self->tx);
    stet_py_free(o, (PyObject *)self->space);
}

static bool running_tx(tx_object *self) {
    if (self->tx)
        return stet_py_space_usable(self->space);
    PyErr_SetString(PyExc_ValueError, "the transaction has ended");
    return false;
}

static PyObject *tx_get(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *cell, *scope;
    int shallow;
    if (!PyArg_ParseTuple(args, "szp:get", &cell, &scope, &shallow) || !running_tx(self))
        return NULL;
    stet_value v = stet_value_null();
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = (shallow ? stet_tx_get_shallow : stet_tx_get)(self->tx, cell, scope, &v, &err));
    return status == STET_OK ? stet_py_from_value(v) : stet_py_raise(&err); /* borrowed from the transaction */
}

static PyObject *tx_set(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *cell, *scope;
    PyObject *given;
    stet_value v;
    if (!PyArg_ParseTuple(args, "szO:set", &cell, &scope, &given) || !running_tx(self) || !stet_py_to_value(given, &v))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_tx_set(self->tx, cell, scope, v, &err));
    return stet_py_none_or(status, &err);
}

static PyObject *tx_patch(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *id, *scope;
    PyObject *given;
    stet_value v;
    if (!PyArg_ParseTuple(args, "szO:patch", &id, &scope, &given) || !running_tx(self) || !stet_py_to_value(given, &v))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_tx_patch_value(self->tx, id, scope, v, &err));
    stet_value_release(v);
    return stet_py_none_or(status, &err);
}

static PyObject *tx_delete(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *id, *scope;
    if (!PyArg_ParseTuple(args, "sz:delete", &id, &scope) || !running_tx(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_tx_delete(self->tx, id, scope, &err));
    return stet_py_none_or(status, &err);
}

static PyObject *tx_require(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *id, *scope, *hex;
    if (!PyArg_ParseTuple(args, "szz:require", &id, &scope, &hex) || !running_tx(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = hex ? stet_tx_require_hash(self->tx, id, scope, hex, &err)
                                 : stet_tx_require_absent(self->tx, id, scope, &err));
    return stet_py_none_or(status, &err);
}

static PyObject *tx_session(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *session;
    long long local;
    if (!PyArg_ParseTuple(args, "sL:session", &session, &local) || !running_tx(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    return stet_py_none_or(stet_tx_session(self->tx, session, local, &err), &err);
}

static PyObject *committed(const stet_commit_result *r) {
    return Py_BuildValue("LOO", (long long)r->seq, r->changed ? Py_True : Py_False, r->replayed ? Py_True : Py_False);
}

typedef struct transacting {
    space_object *space;
    PyObject *fn, *answer;
    PyThreadState *outside;
} transacting;

/* Once for each attempt. An exception stays set until stet_space_transact has returned. */
static stet_status attempt(stet_tx *tx, void *ctx, stet_error *err) {
    transacting *t = ctx;
    PyEval_RestoreThread(t->outside);
    PyErr_Clear(); /* of the attempt before */
    Py_CLEAR(t->answer);
    tx_object *o = tx_made(t->space, tx, true);
    if (o)
        t->answer = PyObject_CallFunctionObjArgs(t->fn, (PyObject *)o, NULL);
    if (o)
        o->tx = NULL; /* it may have been kept */
    Py_XDECREF((PyObject *)o);
    bool good = t->answer != NULL;
    /* A conflict that a precondition or a read met is one to try again with. */
    PyObject *errors = NULL, *conflict = NULL;
    bool again = false;
    if (!good) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        errors = PyImport_ImportModule("stet.errors");
        conflict = errors ? PyObject_GetAttrString(errors, "ConflictError") : NULL;
        again = conflict && PyErr_GivenExceptionMatches(type, conflict);
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
        Py_XDECREF(conflict);
        Py_XDECREF(errors);
    }
    t->outside = PyEval_SaveThread();
    if (good)
        return STET_OK;
    return stet_error_set(err, again ? STET_CONFLICT : STET_FAILED,
                          "the function of the transaction raised an exception");
}

/* transact(branch, fn): (answer of fn, seq, changed, replayed) */
PyObject *stet_py_space_transact(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch;
    transacting t = {.space = self};
    if (!PyArg_ParseTuple(args, "zO:transact", &branch, &t.fn) || !stet_py_space_usable(self))
        return NULL;
    stet_commit_result result = {0};
    stet_error err = STET_ERROR_INIT;
    t.outside = PyEval_SaveThread();
    stet_status status = stet_space_transact(self->s, branch, attempt, &t, &result, &err);
    PyEval_RestoreThread(t.outside);
    PyObject *out = NULL;
    if (status == STET_OK) {
        PyErr_Clear(); /* of an attempt that was made again */
        PyObject *how = committed(&result);
        out = how ? Py_BuildValue("OO", t.answer, how) : NULL;
        Py_XDECREF(how);
    } else if (PyErr_Occurred())
        stet_error_clear(&err);
    else
        stet_py_raise(&err);
    Py_XDECREF(t.answer);
    return out;
}

PyObject *stet_py_space_begin(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch;
    if (!PyArg_ParseTuple(args, "z:begin", &branch) || !stet_py_space_usable(self))
        return NULL;
    stet_tx *tx = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_tx_begin(self->s, branch, &tx, &err));
    if (status != STET_OK)
        return stet_py_raise(&err);
    tx_object *made = tx_made(self, tx, false);
    if (!made)
        stet_tx_abort(tx);
    return (PyObject *)made;
}

static PyObject *tx_commit(PyObject *o, PyObject *none) {
    (void)none;
    tx_object *self = (tx_object *)o;
    if (!running_tx(self))
        return NULL;
    if (self->borrowed) {
        PyErr_SetString(PyExc_ValueError, "this transaction is committed when its function returns");
        return NULL;
    }
    stet_tx *tx = self->tx;
    self->tx = NULL;
    stet_commit_result result = {0};
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_tx_commit(tx, &result, &err));
    return status == STET_OK ? committed(&result) : stet_py_raise(&err);
}

static PyObject *tx_abort(PyObject *o, PyObject *none) {
    (void)none;
    tx_object *self = (tx_object *)o;
    if (self->tx && !self->borrowed) {
        if (!stet_py_foreign(self->space->project))
            stet_tx_abort(self->tx);
        self->tx = NULL;
    }
    Py_RETURN_NONE;
}

STET_PY_TYPE(tx, "Transaction", {"get", tx_get, METH_VARARGS, NULL}, {"set", tx_set, METH_VARARGS, NULL},
             {"patch", tx_patch, METH_VARARGS, NULL}, {"delete", tx_delete, METH_VARARGS, NULL},
             {"require", tx_require, METH_VARARGS, NULL}, {"session", tx_session, METH_VARARGS, NULL},
             {"commit", tx_commit, METH_NOARGS, NULL}, {"abort", tx_abort, METH_NOARGS, NULL});

bool stet_py_tx_init(PyObject *module) {
    return stet_py_add_type(module, "Transaction", &tx_spec, &tx_type);
}
