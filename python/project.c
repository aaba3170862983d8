/* project.c - stet._stet.Project: a project, its events, and the run of a pattern. */
#include "space.h"

#include <unistd.h>

static PyObject *project_type;

bool stet_py_foreign(const project_object *p) {
    return p->pid != getpid();
}

bool stet_py_project_usable(const project_object *p) {
    if (p->closed || stet_py_foreign(p))
        PyErr_SetString(PyExc_ValueError,
                        p->closed ? "the project is closed"
                                  : "the project was opened by the process that forked this one: open it again");
    return !p->closed && !stet_py_foreign(p);
}

void stet_py_project_let_go(project_object *self) {
    if (--self->open == 0 && self->closed && self->p) {
        if (!stet_py_foreign(self))
            stet_project_close(self->p);
        self->p = NULL;
    }
}

static PyObject *project_made(stet_project *p) {
    project_object *self = PyObject_New(project_object, (PyTypeObject *)project_type);
    if (!self) {
        stet_project_close(p);
        return NULL;
    }
    self->p = p;
    self->open = 0;
    self->closed = false;
    self->pid = getpid();
    return (PyObject *)self;
}

static PyObject *project_init(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *held;
    const char *dir;
    if (!PyArg_ParseTuple(args, "O:project_init", &given) || !stet_py_path(given, &held, &dir))
        return NULL;
    bool created = false;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_project_init(dir, &created, &err));
    Py_XDECREF(held);
    return status == STET_OK ? PyBool_FromLong(created) : stet_py_raise(&err);
}

static PyObject *opened(PyObject *args, stet_status (*open)(const char *, stet_project **, stet_error *)) {
    PyObject *given, *held;
    const char *dir;
    if (!PyArg_ParseTuple(args, "O:project", &given) || !stet_py_path(given, &held, &dir))
        return NULL;
    stet_project *p = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = open(dir, &p, &err));
    Py_XDECREF(held);
    return status == STET_OK ? project_made(p) : stet_py_raise(&err);
}

static PyObject *project_find(PyObject *module, PyObject *args) {
    (void)module;
    return opened(args, stet_project_find);
}

static PyObject *project_open(PyObject *module, PyObject *args) {
    (void)module;
    return opened(args, stet_project_open);
}

static PyObject *project_root(PyObject *o, PyObject *none) {
    (void)none;
    project_object *self = (project_object *)o;
    return self->p ? PyUnicode_DecodeFSDefault(stet_project_root(self->p)) : stet_py_gone("project");
}

static PyObject *project_close(PyObject *o, PyObject *none) {
    (void)none;
    project_object *self = (project_object *)o;
    self->open++;
    self->closed = true;
    stet_py_project_let_go(self);
    Py_RETURN_NONE;
}

static void project_dealloc(PyObject *o) {
    project_object *self = (project_object *)o;
    if (self->p && !stet_py_foreign(self))
        stet_project_close(self->p);
    stet_py_free(o, NULL);
}

/* send(space, branch, piece, stream, value, id, scope): (applied, seq, id) */
static PyObject *project_send(PyObject *o, PyObject *args) {
    project_object *self = (project_object *)o;
    stet_event event = STET_EVENT_INIT;
    PyObject *value;
    if (!PyArg_ParseTuple(args, "zzssOzz:send", &event.space, &event.branch, &event.piece, &event.stream, &value,
                          &event.id, &event.scope) ||
        !stet_py_project_usable(self) || !stet_py_to_value(value, &event.value))
        return NULL;
    stet_event_result result;
    stet_error err = STET_ERROR_INIT;
    self->open++;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_piece_send(self->p, &event, &result, &err));
    stet_py_project_let_go(self);
    stet_value_release(event.value);
    return status == STET_OK
               ? Py_BuildValue("OLs", result.applied ? Py_True : Py_False, (long long)result.seq, result.id)
               : stet_py_raise(&err);
}

typedef struct running {
    PyThreadState *outside;
    bool stopped; /* by a signal whose handler raised */
} running;

/* Asked by the run now and then: Ctrl-C ends it as a run is ended, not with a torn process. */
static bool interrupted(void *ctx) {
    running *r = ctx;
    PyEval_RestoreThread(r->outside);
    if (!r->stopped && PyErr_CheckSignals() != 0)
        r->stopped = true;
    r->outside = PyEval_SaveThread();
    return r->stopped;
}

/* run(space, branch, pattern, piece, set, demand, jobs, stop_on_failure, retry_failed, scope): what `stet run --json`
 * says. */
static PyObject *project_run(PyObject *o, PyObject *args) {
    project_object *self = (project_object *)o;
    stet_pull_request request = STET_PULL_REQUEST_INIT;
    PyObject *set, *demand;
    int jobs, stop, retry;
    if (!PyArg_ParseTuple(args, "zzzzOOippz:run", &request.space, &request.branch, &request.pattern, &request.piece,
                          &set, &demand, &jobs, &stop, &retry, &request.scope) ||
        !stet_py_project_usable(self) || !stet_py_to_value(set, &request.set))
        return NULL;
    if (!stet_py_to_value(demand, &request.demand)) {
        stet_value_release(request.set);
        return NULL;
    }
    running r = {0};
    request.jobs = jobs;
    request.keep_going = stop == 0;
    request.no_retry_failed = retry == 0;
    request.cancelled = interrupted;
    request.ctx = &r;
    stet_value report = stet_value_null();
    stet_error err = STET_ERROR_INIT;
    self->open++;
    r.outside = PyEval_SaveThread();
    stet_status status = stet_piece_pull(self->p, &request, NULL, &report, &err);
    PyEval_RestoreThread(r.outside);
    stet_py_project_let_go(self);
    stet_value_release(request.set);
    stet_value_release(request.demand);
    PyObject *answer = NULL;
    if (r.stopped)
        stet_error_clear(&err); /* what the handler raised is set */
    else if (status == STET_OK || (status == STET_FAILED && stet_value_type(report) != STET_TYPE_NULL)) {
        stet_error_clear(&err); /* the report says which actions failed */
        answer = stet_py_from_value(report);
    } else
        stet_py_raise(&err);
    stet_value_release(report);
    return answer;
}

STET_PY_TYPE(project, "Project", {"root", project_root, METH_NOARGS, NULL},
             {"space", stet_py_project_space, METH_VARARGS, NULL}, {"send", project_send, METH_VARARGS, NULL},
             {"run", project_run, METH_VARARGS, NULL}, {"close", project_close, METH_NOARGS, NULL});

static PyMethodDef functions[] = {{"project_init", project_init, METH_VARARGS, "project_init(dir): was it created?"},
                                  {"project_find", project_find, METH_VARARGS, "project_find(from)"},
                                  {"project_open", project_open, METH_VARARGS, "project_open(root)"},
                                  {0}};

bool stet_py_project_init(PyObject *module) {
    return stet_py_add_type(module, "Project", &project_spec, &project_type) &&
           PyModule_AddFunctions(module, functions) == 0;
}
