/* persist_entry.c - entries and their keys, as tuples of Python. */
#include "persist.h"

/* Puts a new reference, or NULL with an exception, into a tuple that is dropped in that case. */
static void set_item(PyObject **tuple, Py_ssize_t at, PyObject *item) {
    if (*tuple && (!item || PyTuple_SetItem(*tuple, at, item) != 0))
        Py_CLEAR(*tuple);
    else if (!*tuple)
        Py_XDECREF(item);
}

static PyObject *content_tuple(const stet_persist_content *c) {
    PyObject *tuple = PyTuple_New(4);
    set_item(&tuple, 0, PyUnicode_FromString(c->id));
    set_item(&tuple, 1, PyLong_FromUnsignedLongLong(c->size));
    set_item(&tuple, 2, PyUnicode_FromString(c->format));
    set_item(&tuple, 3, c->bytes ? PyBytes_FromStringAndSize(c->bytes, (Py_ssize_t)c->size) : Py_NewRef(Py_None));
    return tuple;
}

static PyObject *extra_of(const stet_persist_entry *e) {
    stet_value v = stet_persist_entry_extra(e, NULL, "extra");
    PyObject *extra = stet_value_type(v) == STET_TYPE_STRING ? stet_py_from_value(v) : Py_NewRef(Py_None);
    stet_value_release(v);
    return extra;
}

PyObject *stet_py_entry_with(const stet_persist_entry *e, PyObject *block, PyObject *module) {
    PyObject *contents = PyDict_New(), *tuple = contents ? PyTuple_New(8) : NULL;
    const stet_persist_key *key = stet_persist_entry_key(e);
    for (size_t i = 0; contents && i < stet_persist_entry_count(e); i++) {
        const stet_persist_content *c = stet_persist_entry_at(e, i);
        PyObject *of = content_tuple(c);
        if (!of || PyDict_SetItemString(contents, c->kind, of) != 0)
            Py_CLEAR(contents);
        Py_XDECREF(of);
    }
    set_item(&tuple, 0, block ? Py_NewRef(block) : PyUnicode_FromString(key->block_id));
    set_item(&tuple, 1, module ? Py_NewRef(module) : PyUnicode_FromString(key->module_hash));
    set_item(&tuple, 2, PyLong_FromUnsignedLongLong(key->created_at));
    set_item(&tuple, 3, contents);
    set_item(&tuple, 4, PyLong_FromLongLong(stet_persist_entry_elapsed(e)));
    set_item(&tuple, 5, extra_of(e));
    set_item(&tuple, 6, PyUnicode_FromString(stet_persist_entry_hash(e)));
    set_item(&tuple, 7, Py_NewRef(stet_persist_entry_in_log(e) ? Py_True : Py_False));
    return tuple;
}

PyObject *stet_py_entry(const stet_persist_entry *e) {
    return stet_py_entry_with(e, NULL, NULL);
}

bool stet_py_persist_key(PyObject *block, PyObject *module, PyObject *created, stet_persist_key *key) {
    Py_ssize_t block_len, module_len;
    if (!PyUnicode_Check(block) || !PyUnicode_Check(module)) {
        PyErr_SetString(PyExc_TypeError, "block_id and module_hash are str");
        return false;
    }
    key->block_id = PyUnicode_AsUTF8AndSize(block, &block_len);
    key->module_hash = key->block_id ? PyUnicode_AsUTF8AndSize(module, &module_len) : NULL;
    if (!key->module_hash)
        return false;
    key->block_len = (size_t)block_len;
    key->created_at = PyLong_AsUnsignedLongLong(created);
    return !PyErr_Occurred();
}
