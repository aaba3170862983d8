/* module.c - the module itself: errors, values, gates. */

#include "module.h"

#include <stdio.h>
#include <string.h>

/* Names of files may be in a message, and need not be UTF-8. */
static PyObject *shown(const char *text) {
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *stet_py_raise(stet_error *err) {
    PyObject *errors = PyImport_ImportModule("stet.errors"), *made = NULL;
    PyObject *message = errors ? shown(err->message) : NULL, *hint = message ? shown(err->hint) : NULL;
    PyObject *details = hint ? stet_py_from_value(err->details) : NULL;
    if (details)
        made = PyObject_CallMethod(errors, "make", "sOOO", stet_status_name(err->status), message, hint, details);
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    Py_XDECREF(details);
    Py_XDECREF(hint);
    Py_XDECREF(message);
    Py_XDECREF(errors);
    stet_error_clear(err);
    return NULL;
}

bool stet_py_path(PyObject *o, PyObject **bytes, const char **path) {
    *path = NULL;
    *bytes = NULL;
    if (o == Py_None)
        return true;
    if (!PyUnicode_FSConverter(o, bytes))
        return false;
    *path = PyBytes_AsString(*bytes);
    return true;
}

const char *stet_py_text(PyObject *o, const char *what) {
    Py_ssize_t len;
    if (!PyUnicode_Check(o)) {
        PyErr_Format(PyExc_TypeError, "%s: expected a str", what);
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(o, &len);
    if (text && strlen(text) != (size_t)len) {
        PyErr_Format(PyExc_ValueError, "%s: there is a NUL character in it", what);
        return NULL;
    }
    return text;
}

PyObject *stet_py_from_value(stet_value v) {
    switch (stet_value_type(v)) {
    case STET_TYPE_BOOL:
        return PyBool_FromLong(stet_value_as_bool(v));
    case STET_TYPE_INT:
        return PyLong_FromLongLong(stet_value_as_int(v));
    case STET_TYPE_DOUBLE:
        return PyFloat_FromDouble(stet_value_as_double(v));
    case STET_TYPE_STRING: {
        size_t len;
        const char *s = stet_value_as_string(&v, &len);
        return PyUnicode_FromStringAndSize(s, (Py_ssize_t)len);
    }
    case STET_TYPE_ARRAY: {
        size_t n = stet_value_count(v);
        PyObject *list = PyList_New((Py_ssize_t)n);
        for (size_t i = 0; list && i < n; i++) { /* values are at most 512 levels deep */
            PyObject *item = stet_py_from_value(stet_value_at(v, i));
            if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) != 0)
                Py_CLEAR(list);
        }
        return list;
    }
    case STET_TYPE_OBJECT: {
        size_t n = stet_value_count(v);
        PyObject *dict = PyDict_New();
        for (size_t i = 0; dict && i < n; i++) {
            size_t len;
            const char *text = stet_value_key_at(v, i, &len);
            PyObject *key = PyUnicode_FromStringAndSize(text, (Py_ssize_t)len);
            PyObject *item = key ? stet_py_from_value(stet_value_at(v, i)) : NULL;
            if (!item || PyDict_SetItem(dict, key, item) != 0)
                Py_CLEAR(dict);
            Py_XDECREF(key);
            Py_XDECREF(item);
        }
        return dict;
    }
    case STET_TYPE_NULL:
        break;
    }
    Py_RETURN_NONE;
}

enum { DEPTH_MAX = 511 }; /* of a document; what holds the last one is counted by the library */

static bool to_value(PyObject *o, int depth, stet_value *out);

static bool array_of(PyObject *o, int depth, stet_value *out) {
    PyObject *items = PySequence_Tuple(o); /* a copy: nobody changes its length meanwhile */
    if (!items)
        return false;
    *out = stet_value_array();
    bool good = true;
    for (Py_ssize_t i = 0; good && i < PyTuple_Size(items); i++) {
        stet_value item;
        if ((good = to_value(PyTuple_GetItem(items, i), depth + 1, &item)))
            stet_value_push(out, item);
    }
    Py_DECREF(items);
    if (!good)
        stet_value_release(*out);
    return good;
}

static bool object_of(PyObject *o, int depth, stet_value *out) {
    PyObject *items = PyDict_Items(o);
    if (!items)
        return false;
    *out = stet_value_object();
    bool good = true;
    for (Py_ssize_t i = 0; good && i < PyList_Size(items); i++) {
        PyObject *pair = PyList_GetItem(items, i), *key = PyTuple_GetItem(pair, 0);
        stet_value item;
        Py_ssize_t len;
        const char *text = NULL;
        if (!PyUnicode_Check(key))
            PyErr_SetString(PyExc_TypeError, "keys of a document's objects are str");
        else
            text = PyUnicode_AsUTF8AndSize(key, &len);
        good = text && to_value(PyTuple_GetItem(pair, 1), depth + 1, &item);
        if (good)
            stet_value_put_n(out, text, (size_t)len, item);
    }
    Py_DECREF(items);
    if (!good)
        stet_value_release(*out);
    return good;
}

static bool to_value(PyObject *o, int depth, stet_value *out) {
    stet_error err = STET_ERROR_INIT;
    if (depth > DEPTH_MAX) {
        (void)stet_error_set(&err, STET_LIMIT, "deeper than the %d levels that a document may have", DEPTH_MAX);
        stet_py_raise(&err);
        return false;
    }
    if (o == Py_None)
        *out = stet_value_null();
    else if (PyBool_Check(o))
        *out = stet_value_bool(o == Py_True);
    else if (PyLong_Check(o)) {
        int overflow;
        long long n = PyLong_AsLongLongAndOverflow(o, &overflow);
        if (overflow) {
            PyErr_SetString(PyExc_OverflowError, "an integer of a document has 64 bits");
            return false;
        }
        *out = stet_value_int(n);
    } else if (PyFloat_Check(o)) {
        if (stet_value_double(PyFloat_AsDouble(o), out, &err) != STET_OK)
            return stet_py_raise(&err) != NULL;
    } else if (PyUnicode_Check(o)) {
        Py_ssize_t len;
        const char *text = PyUnicode_AsUTF8AndSize(o, &len);
        if (!text)
            return false;
        if (stet_value_string_checked(text, (size_t)len, out, &err) != STET_OK)
            return stet_py_raise(&err) != NULL;
    } else if (PyList_Check(o) || PyTuple_Check(o))
        return array_of(o, depth, out);
    else if (PyDict_Check(o))
        return object_of(o, depth, out);
    else {
        PyErr_Format(PyExc_TypeError, "a document holds None, bool, int, float, str, list and dict, not %R",
                     Py_TYPE(o));
        return false;
    }
    return true;
}

bool stet_py_to_value(PyObject *o, stet_value *out) {
    return to_value(o, 0, out);
}

PyObject *stet_py_none_or(stet_status status, stet_error *err) {
    return status == STET_OK ? Py_NewRef(Py_None) : stet_py_raise(err);
}

PyObject *stet_py_value_or(stet_status status, stet_value v, stet_error *err) {
    if (status != STET_OK)
        return stet_py_raise(err);
    PyObject *out = stet_py_from_value(v);
    stet_value_release(v);
    return out;
}

PyObject *stet_py_gone(const char *what) {
    PyErr_Format(PyExc_ValueError, "the %s is closed", what);
    return NULL;
}

bool stet_py_enter(stet_py_gate *gate, const char *what) {
    if (gate->closed)
        return stet_py_gone(what) != NULL;
    gate->inside++;
    return true;
}

bool stet_py_leave(stet_py_gate *gate) {
    return --gate->inside == 0 && gate->closed;
}

bool stet_py_close(stet_py_gate *gate) {
    if (gate->closed)
        return false;
    gate->closed = true;
    return gate->inside == 0;
}

bool stet_py_add_type(PyObject *module, const char *name, PyType_Spec *spec, PyObject **keep) {
    PyObject *type = PyType_FromSpec(spec);
    if (!type)
        return false;
    if (PyModule_AddObjectRef(module, name, type) != 0) {
        Py_DECREF(type);
        return false;
    }
    if (keep)
        *keep = type;
    else
        Py_DECREF(type);
    return true;
}

void stet_py_free(PyObject *o, PyObject *owner) {
    PyTypeObject *type = Py_TYPE(o);
    Py_XDECREF(owner);
    PyObject_Free(o);
    Py_DECREF(type);
}

enum { DICT_NUMBER_AT = sizeof(PyObject) + sizeof(Py_ssize_t) };

/* In CPython 3.11 to 3.13 a dict has, after its head and its length, a number that no dict had before: it gets another one with each
 * change. The limited interface does not show it, so library.py tries whether this is what is there before it relies on it. The dicts
 * come in a capsule, because they are many and asked for with each hit. */
typedef struct watched {
    PyObject *dicts; /* a tuple, which keeps them */
    Py_ssize_t count;
    const char *numbers[];
} watched;

static void unwatch(PyObject *capsule) {
    watched *w = PyCapsule_GetPointer(capsule, NULL);
    Py_XDECREF(w->dicts);
    PyMem_Free(w);
}

static PyObject *watch(PyObject *module, PyObject *dicts) {
    (void)module;
    Py_ssize_t count = PyTuple_Check(dicts) ? PyTuple_Size(dicts) : -1;
    watched *w = count < 0 ? NULL : PyMem_Malloc(sizeof *w + (size_t)count * sizeof *w->numbers);
    for (Py_ssize_t i = 0; w && i < count; i++) {
        PyObject *dict = PyTuple_GetItem(dicts, i);
        if (!PyDict_CheckExact(dict)) {
            PyMem_Free(w);
            w = NULL;
        } else
            w->numbers[i] = (const char *)dict + DICT_NUMBER_AT;
    }
    if (!w) {
        PyErr_SetString(PyExc_TypeError, "watch: expected a tuple of dicts");
        return NULL;
    }
    w->count = count;
    w->dicts = Py_NewRef(dicts);
    return PyCapsule_New(w, NULL, unwatch);
}

static PyObject *last_change(PyObject *module, PyObject *capsule) {
    (void)module;
    const watched *w = PyCapsule_GetPointer(capsule, NULL);
    if (!w)
        return NULL;
    uint64_t last = 0;
    for (Py_ssize_t i = 0; i < w->count; i++) {
        uint64_t number;
        memcpy(&number, w->numbers[i], sizeof number);
        if (number > last)
            last = number;
    }
    return PyLong_FromUnsignedLongLong(last);
}

static PyMethodDef functions[] = {
    {"watch", watch, METH_O, "A tuple of dicts, for last_change."},
    {"last_change", last_change, METH_O, "The number of the latest change of one of the dicts that are watched."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "stet._stet",
                                        .m_doc = "libstet, as the classes of the package stet use it.", .m_size = -1,
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit__stet(void);
PyMODINIT_FUNC PyInit__stet(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddStringConstant(module, "version", stet_version()) == 0 && stet_py_persist_init(module) &&
        stet_py_project_init(module) && stet_py_context_init(module) && stet_py_space_init(module) &&
        stet_py_tx_init(module))
        return module;
    Py_XDECREF(module);
    return NULL;
}
