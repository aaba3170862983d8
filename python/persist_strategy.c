/* persist_strategy.c - cleanup strategies: one in Python for the library, and the library's own for Python. */
#include "persist.h"

/* What a strategy raised on its way through the library, and whether one is running: of this thread. */
static _Thread_local PyObject *raised_type, *raised_value, *raised_trace;
static _Thread_local bool in_strategy;

PyObject *stet_py_persist_fail(stet_error *err) {
    if (!raised_type)
        return stet_py_raise(err);
    stet_error_clear(err);
    PyErr_Restore(raised_type, raised_value, raised_trace);
    raised_type = raised_value = raised_trace = NULL;
    return NULL;
}

bool stet_py_in_strategy(void) {
    return in_strategy;
}

static stet_status run_strategy(PyObject *callable, stet_persist_item *items, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count), *answer = NULL, *each = NULL, *one;
    for (size_t i = 0; list && i < count; i++) {
        stet_persist_entry *e = stet_persist_item_entry(&items[i]);
        PyObject *tuple = stet_py_entry(e);
        stet_persist_entry_free(e);
        if (!tuple || PyList_SetItem(list, (Py_ssize_t)i, tuple) != 0)
            Py_CLEAR(list);
    }
    if (list)
        answer = PyObject_CallFunctionObjArgs(callable, list, NULL);
    if (answer)
        each = PyObject_GetIter(answer);
    while (each && (one = PyIter_Next(each))) {
        size_t i = PyLong_AsSize_t(one);
        Py_DECREF(one);
        if (PyErr_Occurred())
            break;
        if (i < count)
            items[i].remove = true;
    }
    Py_XDECREF(each);
    Py_XDECREF(answer);
    Py_XDECREF(list);
    return PyErr_Occurred() ? STET_FAILED : STET_OK;
}

stet_status stet_py_strategy(void *ctx, stet_persist_item *items, size_t count, uint64_t now, stet_error *err) {
    (void)now;
    PyGILState_STATE gil = PyGILState_Ensure();
    in_strategy = true;
    stet_status status = run_strategy(ctx, items, count);
    in_strategy = false;
    if (status != STET_OK) {
        Py_XDECREF(raised_type);
        Py_XDECREF(raised_value);
        Py_XDECREF(raised_trace);
        PyErr_Fetch(&raised_type, &raised_value, &raised_trace);
        stet_fail(err, status, "the cleanup strategy failed");
    }
    PyGILState_Release(gil);
    return status;
}

PyObject *stet_py_strategy_default(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given;
    stet_persist_limits limits;
    unsigned long long now;
    long long block, in_module, age, size;
    if (!PyArg_ParseTuple(args, "O!(LLLL)K:default_strategy", &PyList_Type, &given, &block, &in_module, &age, &size,
                          &now))
        return NULL;
    limits = (stet_persist_limits){block, in_module, age, size};
    size_t count = (size_t)PyList_Size(given);
    stet_persist_item *items = stet_alloc_zero((count + 1) * sizeof *items);
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        PyObject *name, *hash;
        unsigned long long created, bytes;
        Py_ssize_t block_len, hash_len;
        good = PyArg_ParseTuple(PyList_GetItem(given, (Py_ssize_t)i), "UUKK", &name, &hash, &created, &bytes) &&
               (items[i].block_id = PyUnicode_AsUTF8AndSize(name, &block_len)) &&
               (items[i].module_hash = PyUnicode_AsUTF8AndSize(hash, &hash_len));
        if (good && hash_len != STET_PERSIST_HASH) {
            PyErr_SetString(PyExc_ValueError, "a module hash has 43 characters");
            good = false;
        }
        if (!good)
            break;
        items[i].block_len = (size_t)block_len;
        items[i].created_at = created;
        items[i].size = bytes;
        items[i].is_call = stet_persist_is_call(items[i].block_id, items[i].block_len);
    }
    stet_error err = STET_ERROR_INIT;
    PyObject *out = good ? PyList_New(0) : NULL;
    if (out && stet_persist_strategy_default(&limits, items, count, now, &err) != STET_OK) {
        stet_py_raise(&err);
        Py_CLEAR(out);
    }
    for (size_t i = 0; out && i < count; i++) {
        PyObject *at = items[i].remove ? PyLong_FromSize_t(i) : NULL;
        if (items[i].remove && (!at || PyList_Append(out, at) != 0))
            Py_CLEAR(out);
        Py_XDECREF(at);
    }
    stet_free(items);
    return out;
}
