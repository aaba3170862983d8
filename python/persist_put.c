/* persist_put.c - stet._stet.Put: an entry that is being stored. */
#include "persist.h"

typedef struct put_object {
    PyObject_HEAD persist_object *owner;
    stet_persist_put *w; /* NULL once it has ended */
} put_object;

static PyObject *put_type;

PyObject *stet_py_persist_put(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *block, *module, *created;
    stet_persist_key key = {0};
    if (!PyArg_ParseTuple(args, "OOO:put", &block, &module, &created) ||
        !stet_py_persist_key(block, module, created, &key) || !stet_py_persist_enter(self, true))
        return NULL;
    put_object *put = PyObject_New(put_object, (PyTypeObject *)put_type);
    if (!put) {
        stet_py_persist_leave(self);
        return NULL;
    }
    put->owner = (persist_object *)Py_NewRef(o); /* and it stays inside until it ends */
    put->w = stet_persist_put_begin(self->p, &key);
    return (PyObject *)put;
}

static bool under_way(put_object *self) {
    if (!self->w)
        PyErr_SetString(PyExc_ValueError, "this put has ended");
    return self->w != NULL;
}

static PyObject *put_content(PyObject *o, PyObject *args) {
    put_object *self = (put_object *)o;
    const char *kind, *format;
    if (!PyArg_ParseTuple(args, "ss:content", &kind, &format) || !under_way(self))
        return NULL;
    stet_persist_put_content(self->w, kind, format);
    Py_RETURN_NONE;
}

static PyObject *put_write(PyObject *o, PyObject *bytes) {
    put_object *self = (put_object *)o;
    Py_buffer view;
    if (!under_way(self) || PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) != 0)
        return NULL;
    Py_ssize_t len = view.len;
    if (len < 4096)
        stet_persist_put_bytes(self->w, view.buf, (size_t)len);
    else
        STET_PY_OUTSIDE(stet_persist_put_bytes(self->w, view.buf, (size_t)len));
    PyBuffer_Release(&view);
    return PyLong_FromSsize_t(len);
}

static PyObject *put_string(PyObject *o, PyObject *args) {
    put_object *self = (put_object *)o;
    const char *key, *value;
    if (!PyArg_ParseTuple(args, "ss:string", &key, &value) || !under_way(self))
        return NULL;
    stet_persist_put_string(self->w, key, value);
    Py_RETURN_NONE;
}

static PyObject *put_elapsed(PyObject *o, PyObject *ms) {
    put_object *self = (put_object *)o;
    long long n = PyLong_AsLongLong(ms);
    if (PyErr_Occurred() || !under_way(self))
        return NULL;
    stet_persist_put_elapsed(self->w, n);
    Py_RETURN_NONE;
}

static PyObject *put_end(PyObject *o, PyObject *none) {
    (void)none;
    put_object *self = (put_object *)o;
    if (!under_way(self))
        return NULL;
    stet_persist_put *w = self->w;
    self->w = NULL;
    stet_persist_entry *e = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_put_end(w, &e, &err));
    stet_py_persist_leave(self->owner);
    PyObject *tuple = status == STET_OK ? stet_py_entry(e) : stet_py_persist_fail(&err);
    stet_persist_entry_free(e);
    return tuple;
}

static void abandon(put_object *self) {
    stet_persist_put *w = self->w;
    self->w = NULL;
    if (!w)
        return;
    STET_PY_OUTSIDE(stet_persist_put_abort(w));
    stet_py_persist_leave(self->owner);
}

static PyObject *put_abort(PyObject *o, PyObject *none) {
    (void)none;
    abandon((put_object *)o);
    Py_RETURN_NONE;
}

static void put_dealloc(PyObject *o) {
    put_object *self = (put_object *)o;
    abandon(self);
    stet_py_free(o, (PyObject *)self->owner);
}

STET_PY_TYPE(put, "Put", {"content", put_content, METH_VARARGS, "content(kind, format) begins one"},
             {"write", put_write, METH_O, "adds bytes to the content that was begun"},
             {"string", put_string, METH_VARARGS, NULL}, {"elapsed", put_elapsed, METH_O, NULL},
             {"end", put_end, METH_NOARGS, "stores it: the entry"}, {"abort", put_abort, METH_NOARGS, NULL});

bool stet_py_put_init(PyObject *module) {
    return stet_py_add_type(module, "Put", &put_spec, &put_type);
}
