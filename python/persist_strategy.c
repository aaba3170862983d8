/* persist_strategy.c - cleanup strategies: one in Python for the library, and the library's own for Python. */
#include "persist.h"

#include <stdlib.h>

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

static stet_status run_strategy(PyObject *callable, const stet_persist_entry *const *entries, size_t count,
                                bool *remove) {
    PyObject *list = PyList_New((Py_ssize_t)count), *answer = NULL, *each = NULL, *one;
    for (size_t i = 0; list && i < count; i++) {
        PyObject *tuple = stet_py_entry(entries[i]);
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
            remove[i] = true;
    }
    Py_XDECREF(each);
    Py_XDECREF(answer);
    Py_XDECREF(list);
    return PyErr_Occurred() ? STET_FAILED : STET_OK;
}

stet_status stet_py_strategy(void *ctx, const stet_persist_entry *const *entries, size_t count, bool *remove,
                             stet_error *err) {
    PyGILState_STATE gil = PyGILState_Ensure();
    in_strategy = true;
    stet_status status = run_strategy(ctx, entries, count, remove);
    in_strategy = false;
    if (status != STET_OK) {
        Py_XDECREF(raised_type);
        Py_XDECREF(raised_value);
        Py_XDECREF(raised_trace);
        PyErr_Fetch(&raised_type, &raised_value, &raised_trace);
        (void)stet_error_set(err, status, "the cleanup strategy failed");
    }
    PyGILState_Release(gil);
    return status;
}

/* The keys point into the strings of the list. False with an exception. */
static bool keys_of(PyObject *list, stet_persist_key *keys, uint64_t *sizes) {
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        PyObject *block, *module, *created;
        unsigned long long bytes;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OOOK", &block, &module, &created, &bytes) ||
            !stet_py_persist_key(block, module, created, &keys[i]))
            return false;
        sizes[i] = bytes;
    }
    return true;
}

static PyObject *places_of(const bool *chosen, size_t count) {
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *at = chosen[i] ? PyLong_FromSize_t(i) : NULL;
        if (chosen[i] && (!at || PyList_Append(list, at) != 0))
            Py_CLEAR(list);
        Py_XDECREF(at);
    }
    return list;
}

PyObject *stet_py_strategy_default(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *limits_given, *out = NULL;
    unsigned long long now;
    stet_value limits;
    if (!PyArg_ParseTuple(args, "O!OK:default_strategy", &PyList_Type, &given, &limits_given, &now) ||
        !stet_py_to_value(limits_given, &limits))
        return NULL;
    size_t count = (size_t)PyList_Size(given);
    stet_persist_key *keys = calloc(count + 1, sizeof *keys);
    uint64_t *sizes = calloc(count + 1, sizeof *sizes);
    bool *chosen = calloc(count + 1, 1);
    stet_error err = STET_ERROR_INIT;
    if (!keys || !sizes || !chosen)
        PyErr_NoMemory();
    else if (keys_of(given, keys, sizes))
        out = stet_persist_choose_default(limits, keys, sizes, count, now, chosen, &err) == STET_OK
                  ? places_of(chosen, count)
                  : stet_py_raise(&err);
    stet_value_release(limits);
    free(chosen);
    free(sizes);
    free(keys);
    return out;
}
