/* context.c - stet._stet.Context: runs operations by name, for the classes of repository.py. */
#include "module.h"

static PyObject *context_type;

typedef struct context_object {
    PyObject_HEAD stet_context *context;
    bool busy; /* a thread is inside */
} context_object;

static PyObject *context_new(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *held;
    stet_context_options options = STET_CONTEXT_OPTIONS_INIT;
    if (!PyArg_ParseTuple(args, "O:context", &given) || !stet_py_path(given, &held, &options.dir))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_context *c = NULL;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_context_new(&options, &c, &err));
    Py_XDECREF(held);
    if (status != STET_OK)
        return stet_py_raise(&err);
    context_object *self = PyObject_New(context_object, (PyTypeObject *)context_type);
    if (!self) {
        stet_context_free(c);
        return NULL;
    }
    self->context = c;
    self->busy = false;
    return (PyObject *)self;
}

/* invoke(operation, args): (is it a success, result). An answer that is not a success comes with its result. */
static PyObject *context_invoke(PyObject *o, PyObject *args) {
    context_object *self = (context_object *)o;
    const char *operation;
    PyObject *given;
    stet_value words, result = stet_value_null();
    if (!PyArg_ParseTuple(args, "sO:invoke", &operation, &given) || !stet_py_to_value(given, &words))
        return NULL;
    if (self->busy) {
        stet_value_release(words);
        PyErr_SetString(PyExc_ValueError, "another thread uses this context");
        return NULL;
    }
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    self->busy = true;
    STET_PY_OUTSIDE(status = stet_context_invoke(self->context, operation, words, &result, &err));
    self->busy = false;
    stet_value_release(words);
    PyObject *answer = NULL;
    if (status == STET_OK || (status == STET_FAILED && stet_value_type(result) != STET_TYPE_NULL)) {
        stet_error_clear(&err);
        PyObject *value = stet_py_from_value(result);
        answer = value ? Py_BuildValue("(NN)", PyBool_FromLong(status == STET_OK), value) : NULL;
    } else
        stet_py_raise(&err);
    stet_value_release(result);
    return answer;
}

/* From any thread: what is being waited for goes on, and the waiting ends. */
static PyObject *context_cancel(PyObject *o, PyObject *none) {
    (void)none;
    stet_context_cancel(((context_object *)o)->context);
    Py_RETURN_NONE;
}

static void context_dealloc(PyObject *o) {
    stet_context_free(((context_object *)o)->context);
    stet_py_free(o, NULL);
}

STET_PY_TYPE(context, "Context", {"invoke", context_invoke, METH_VARARGS, NULL},
             {"cancel", context_cancel, METH_NOARGS, NULL});

static PyMethodDef functions[] = {{"context", context_new, METH_VARARGS, "context(dir)"}, {0}};

bool stet_py_context_init(PyObject *module) {
    return stet_py_add_type(module, "Context", &context_spec, &context_type) &&
           PyModule_AddFunctions(module, functions) == 0;
}
