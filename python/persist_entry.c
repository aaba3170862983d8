/* persist_entry.c - entries and their keys, as tuples of Python. */
#include "persist.h"

#include <string.h>

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
    stet_buf text = STET_BUF(STET_PERSIST_ENTRY_MAX);
    PyObject *extra = NULL;
    if (strstr(e->text, "extra") && stet_persist_extra_string(e, NULL, "extra", &text))
        extra = PyUnicode_FromStringAndSize(stet_buf_cstr(&text), (Py_ssize_t)text.len);
    else
        extra = Py_NewRef(Py_None);
    stet_buf_release(&text);
    return extra;
}

PyObject *stet_py_entry_with(const stet_persist_entry *e, PyObject *block, PyObject *module) {
    PyObject *contents = PyDict_New(), *tuple = contents ? PyTuple_New(8) : NULL;
    for (size_t i = 0; contents && i < e->content_count; i++) {
        PyObject *of = content_tuple(&e->contents[i]);
        if (!of || PyDict_SetItemString(contents, e->contents[i].kind, of) != 0)
            Py_CLEAR(contents);
        Py_XDECREF(of);
    }
    size_t block_len = e->key.block_len ? e->key.block_len : strlen(e->key.block_id);
    set_item(&tuple, 0, block ? Py_NewRef(block) : PyUnicode_FromStringAndSize(e->key.block_id, (Py_ssize_t)block_len));
    set_item(&tuple, 1,
             module ? Py_NewRef(module) : PyUnicode_FromStringAndSize(e->key.module_hash, STET_PERSIST_HASH));
    set_item(&tuple, 2, PyLong_FromUnsignedLongLong(e->key.created_at));
    set_item(&tuple, 3, contents);
    set_item(&tuple, 4, PyLong_FromLongLong(e->elapsed_ms));
    set_item(&tuple, 5, extra_of(e));
    set_item(&tuple, 6, PyUnicode_FromString(e->hash));
    set_item(&tuple, 7, Py_NewRef(e->in_log ? Py_True : Py_False));
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
