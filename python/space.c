/* space.c - stet._stet.Project, Space, Transaction, Follower: documents, over include/stet.h, and the run of a pattern.
 *
 * A project and what was opened from it is used by one thread at a time; the classes in Python hold a lock of their own
 * around each call here. A space keeps its project, a follower and a transaction their space. */
#include "module.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "drive/drive.h"

typedef struct project_object {
    PyObject_HEAD stet_project *p;
    int open; /* spaces, and whoever is inside */
    bool closed;
    pid_t pid; /* of whoever opened it */
} project_object;

typedef struct space_object {
    PyObject_HEAD project_object *project;
    stet_space *s;
} space_object;

typedef struct tx_object {
    PyObject_HEAD space_object *space;
    stet_tx *tx;   /* NULL once it has ended */
    bool borrowed; /* of transact: the library ends it */
} tx_object;

typedef struct follower_object {
    PyObject_HEAD space_object *space;
    stet_follower *f;
} follower_object;

static PyObject *project_type, *space_type, *tx_type, *follower_type;

static PyObject *gone(const char *what) {
    PyErr_Format(PyExc_ValueError, "the %s is closed", what);
    return NULL;
}

/* A database must not be used, nor closed, by a child of the process that opened it. */
static bool foreign(const project_object *p) {
    return p->pid != getpid();
}

static bool usable(const project_object *p) {
    if (p->closed || foreign(p))
        PyErr_SetString(PyExc_ValueError,
                        p->closed ? "the project is closed"
                                  : "the project was opened by the process that forked this one: open it again");
    return !p->closed && !foreign(p);
}

static bool space_usable(const space_object *s) {
    if (s->s && foreign(s->project))
        PyErr_SetString(PyExc_ValueError,
                        "the space was opened by the process that forked this one: open its project again");
    else if (!s->s)
        PyErr_SetString(PyExc_ValueError, "the space is closed");
    return s->s && !foreign(s->project);
}

/* ---- projects ---- */

static void project_let_go(project_object *self) {
    if (--self->open == 0 && self->closed && self->p) {
        if (!foreign(self))
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
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_project_init(dir, &created, &err);
    PyEval_RestoreThread(outside);
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
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = open(dir, &p, &err);
    PyEval_RestoreThread(outside);
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
    return self->p ? PyUnicode_DecodeFSDefault(stet_project_root(self->p)) : gone("project");
}

static PyObject *project_close(PyObject *o, PyObject *none) {
    (void)none;
    project_object *self = (project_object *)o;
    self->open++;
    self->closed = true;
    project_let_go(self);
    Py_RETURN_NONE;
}

static void project_dealloc(PyObject *o) {
    project_object *self = (project_object *)o;
    PyTypeObject *type = Py_TYPE(o);
    if (self->p && !foreign(self))
        stet_project_close(self->p);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *project_space(PyObject *o, PyObject *args) {
    project_object *self = (project_object *)o;
    const char *name;
    unsigned flags;
    if (!PyArg_ParseTuple(args, "sI:space", &name, &flags))
        return NULL;
    if (!usable(self))
        return NULL;
    space_object *space = PyObject_New(space_object, (PyTypeObject *)space_type);
    if (!space)
        return NULL;
    space->project = (project_object *)Py_NewRef(o);
    space->s = NULL;
    self->open++;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_space_open(self->p, name, flags, &space->s, &err);
    PyEval_RestoreThread(outside);
    if (status == STET_OK)
        return (PyObject *)space;
    project_let_go(self);
    Py_DECREF((PyObject *)space);
    return stet_py_raise(&err);
}

/* send(space, branch, piece, stream, value, id): (applied, seq, id) */
static PyObject *project_send(PyObject *o, PyObject *args) {
    project_object *self = (project_object *)o;
    stet_event event = {0};
    PyObject *value;
    if (!PyArg_ParseTuple(args, "zzssOz:send", &event.space, &event.branch, &event.piece, &event.stream, &value,
                          &event.id))
        return NULL;
    if (!usable(self))
        return NULL;
    if (!stet_py_to_value(value, &event.value))
        return NULL;
    stet_event_result result;
    stet_error err = STET_ERROR_INIT;
    self->open++;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_send(self->p, &event, &result, &err);
    PyEval_RestoreThread(outside);
    project_let_go(self);
    stet_release(event.value);
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

/* run(space, branch, pattern, piece, set, demand, jobs, stop_on_failure): what `stet run --json` says. */
static PyObject *project_run(PyObject *o, PyObject *args) {
    project_object *self = (project_object *)o;
    stet_drive_spec spec = {0};
    PyObject *set, *demand;
    int jobs, stop;
    if (!PyArg_ParseTuple(args, "zzzzOOip:run", &spec.space, &spec.branch, &spec.pattern, &spec.piece, &set, &demand,
                          &jobs, &stop))
        return NULL;
    if (!usable(self))
        return NULL;
    if (!stet_py_to_value(set, &spec.set))
        return NULL;
    if (!stet_py_to_value(demand, &spec.demand)) {
        stet_release(spec.set);
        return NULL;
    }
    running r = {0};
    spec.jobs = jobs;
    spec.stop_on_failure = stop != 0;
    spec.cancelled = interrupted;
    spec.ctx = &r;
    stet_drive_outcome out = {0};
    stet_error err = STET_ERROR_INIT;
    self->open++;
    r.outside = PyEval_SaveThread();
    stet_status status = stet_drive(self->p, &spec, &out, &err);
    PyEval_RestoreThread(r.outside);
    project_let_go(self);
    stet_release(spec.set);
    stet_release(spec.demand);
    PyObject *answer = NULL;
    if (r.stopped)
        stet_error_clear(&err); /* what the handler raised is set */
    else if (status != STET_OK)
        stet_py_raise(&err);
    else {
        stet_value v = stet_drive_outcome_value(&out);
        answer = stet_py_from_value(v);
        stet_release(v);
    }
    stet_drive_outcome_release(&out); /* set, however it ended */
    return answer;
}

/* ---- spaces ---- */

static void space_end(space_object *self) {
    if (!self->s)
        return;
    stet_space *s = self->s;
    self->s = NULL;
    if (!foreign(self->project)) {
        PyThreadState *outside = PyEval_SaveThread();
        stet_space_close(s);
        PyEval_RestoreThread(outside);
    }
    project_let_go(self->project);
}

static PyObject *space_close(PyObject *o, PyObject *none) {
    (void)none;
    space_end((space_object *)o);
    Py_RETURN_NONE;
}

static void space_dealloc(PyObject *o) {
    space_object *self = (space_object *)o;
    PyTypeObject *type = Py_TYPE(o);
    space_end(self);
    Py_DECREF((PyObject *)self->project);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *value_or(stet_status status, stet_value v, stet_error *err) {
    if (status != STET_OK)
        return stet_py_raise(err);
    PyObject *out = stet_py_from_value(v);
    stet_release(v);
    return out;
}

static PyObject *space_get(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch, *cell, *scope;
    long long at;
    if (!PyArg_ParseTuple(args, "zszL:get", &branch, &cell, &scope, &at))
        return NULL;
    if (!space_usable(self))
        return NULL;
    stet_value v = stet_null();
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_space_get(self->s, branch, cell, scope, at, &v, &err);
    PyEval_RestoreThread(outside);
    return value_or(status, v, &err);
}

static PyObject *space_seq(PyObject *o, PyObject *none) {
    (void)none;
    space_object *self = (space_object *)o;
    if (!space_usable(self))
        return NULL;
    int64_t seq = 0;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_space_seq(self->s, &seq, &err);
    PyEval_RestoreThread(outside);
    return status == STET_OK ? PyLong_FromLongLong(seq) : stet_py_raise(&err);
}

static PyObject *space_uuid(PyObject *o, PyObject *none) {
    (void)none;
    space_object *self = (space_object *)o;
    return space_usable(self) ? PyUnicode_FromString(stet_space_uuid(self->s)) : NULL;
}

static PyObject *space_changes(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch, *cell, *scope;
    long long after, before;
    Py_ssize_t limit;
    if (!PyArg_ParseTuple(args, "zszLLn:changes", &branch, &cell, &scope, &after, &before, &limit))
        return NULL;
    if (!space_usable(self))
        return NULL;
    stet_value v = stet_null();
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status =
        stet_changes_after(self->s, branch, cell, scope, false, after, before, limit < 0 ? 0 : (size_t)limit, &v, &err);
    PyEval_RestoreThread(outside);
    return value_or(status, v, &err);
}

static PyObject *space_branch(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *name, *parent;
    long long at;
    int on;
    if (!PyArg_ParseTuple(args, "szLp:branch", &name, &parent, &at, &on))
        return NULL;
    if (!space_usable(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status =
        on ? stet_branch_create(self->s, name, parent, at, &err) : stet_branch_delete(self->s, name, &err);
    PyEval_RestoreThread(outside);
    if (status != STET_OK)
        return stet_py_raise(&err);
    Py_RETURN_NONE;
}

/* ---- transactions ---- */

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
    PyTypeObject *type = Py_TYPE(o);
    if (self->tx && !self->borrowed && !foreign(self->space->project))
        stet_tx_abort(self->tx);
    Py_DECREF((PyObject *)self->space);
    PyObject_Free(self);
    Py_DECREF(type);
}

static bool running_tx(tx_object *self) {
    if (self->tx)
        return space_usable(self->space);
    PyErr_SetString(PyExc_ValueError, "the transaction has ended");
    return false;
}

static PyObject *none_or(stet_status status, stet_error *err) {
    if (status != STET_OK)
        return stet_py_raise(err);
    Py_RETURN_NONE;
}

static PyObject *tx_get(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *cell, *scope;
    int shallow;
    if (!PyArg_ParseTuple(args, "szp:get", &cell, &scope, &shallow) || !running_tx(self))
        return NULL;
    stet_value v = stet_null();
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = (shallow ? stet_tx_get_shallow : stet_tx_get)(self->tx, cell, scope, &v, &err);
    PyEval_RestoreThread(outside);
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
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_tx_set(self->tx, cell, scope, v, &err);
    PyEval_RestoreThread(outside);
    return none_or(status, &err);
}

static PyObject *tx_patch(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *id, *scope;
    PyObject *given;
    stet_value v;
    if (!PyArg_ParseTuple(args, "szO:patch", &id, &scope, &given) || !running_tx(self) || !stet_py_to_value(given, &v))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_tx_patch_value(self->tx, id, scope, v, &err);
    PyEval_RestoreThread(outside);
    stet_release(v);
    return none_or(status, &err);
}

static PyObject *tx_delete(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *id, *scope;
    if (!PyArg_ParseTuple(args, "sz:delete", &id, &scope) || !running_tx(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_tx_delete(self->tx, id, scope, &err);
    PyEval_RestoreThread(outside);
    return none_or(status, &err);
}

static PyObject *tx_require(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *id, *scope, *hex;
    if (!PyArg_ParseTuple(args, "szz:require", &id, &scope, &hex) || !running_tx(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status =
        hex ? stet_tx_require_hash(self->tx, id, scope, hex, &err) : stet_tx_require_absent(self->tx, id, scope, &err);
    PyEval_RestoreThread(outside);
    return none_or(status, &err);
}

static PyObject *tx_session(PyObject *o, PyObject *args) {
    tx_object *self = (tx_object *)o;
    const char *session;
    long long local;
    if (!PyArg_ParseTuple(args, "sL:session", &session, &local) || !running_tx(self))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    return none_or(stet_tx_session(self->tx, session, local, &err), &err);
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
    return stet_fail(err, again ? STET_CONFLICT : STET_FAILED, "the function of the transaction raised an exception");
}

/* transact(branch, fn): (answer of fn, seq, changed, replayed) */
static PyObject *space_transact(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch;
    transacting t = {.space = self};
    if (!PyArg_ParseTuple(args, "zO:transact", &branch, &t.fn))
        return NULL;
    if (!space_usable(self))
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

static PyObject *space_begin(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch;
    if (!PyArg_ParseTuple(args, "z:begin", &branch))
        return NULL;
    if (!space_usable(self))
        return NULL;
    stet_tx *tx = NULL;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_tx_begin(self->s, branch, &tx, &err);
    PyEval_RestoreThread(outside);
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
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_tx_commit(tx, &result, &err);
    PyEval_RestoreThread(outside);
    return status == STET_OK ? committed(&result) : stet_py_raise(&err);
}

static PyObject *tx_abort(PyObject *o, PyObject *none) {
    (void)none;
    tx_object *self = (tx_object *)o;
    if (self->tx && !self->borrowed) {
        if (!foreign(self->space->project))
            stet_tx_abort(self->tx);
        self->tx = NULL;
    }
    Py_RETURN_NONE;
}

/* ---- followers ---- */

static PyObject *space_follow(PyObject *o, PyObject *args) {
    space_object *self = (space_object *)o;
    const char *branch, *cell, *scope;
    long long after;
    if (!PyArg_ParseTuple(args, "zzzL:follow", &branch, &cell, &scope, &after))
        return NULL;
    if (!space_usable(self))
        return NULL;
    follower_object *follower = PyObject_New(follower_object, (PyTypeObject *)follower_type);
    if (!follower)
        return NULL;
    follower->space = (space_object *)Py_NewRef(o);
    follower->f = NULL;
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_follow(self->s, branch, cell, scope, after, &follower->f, &err);
    PyEval_RestoreThread(outside);
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
        return gone("follower");
    if (!space_usable(self->space))
        return NULL;
    stet_value v = stet_null();
    stet_error err = STET_ERROR_INIT;
    PyThreadState *outside = PyEval_SaveThread();
    stet_status status = stet_follow_next(self->f, timeout, &v, &err);
    PyEval_RestoreThread(outside);
    if (status != STET_BUSY)
        return value_or(status, v, &err);
    stet_error_clear(&err);
    Py_RETURN_NONE;
}

static void follower_end(follower_object *self) {
    if (self->f && !foreign(self->space->project))
        stet_follow_end(self->f);
    self->f = NULL;
}

static PyObject *follower_close(PyObject *o, PyObject *none) {
    (void)none;
    follower_end((follower_object *)o);
    Py_RETURN_NONE;
}

static void follower_dealloc(PyObject *o) {
    follower_object *self = (follower_object *)o;
    PyTypeObject *type = Py_TYPE(o);
    follower_end(self);
    Py_DECREF((PyObject *)self->space);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- types ---- */

#define TYPE(lower, text, ...)                                                                                         \
    static PyMethodDef lower##_methods[] = {__VA_ARGS__, {0}};                                                         \
    static PyType_Slot lower##_slots[] = {                                                                             \
        {Py_tp_dealloc, (void *)(uintptr_t)lower##_dealloc}, {Py_tp_methods, lower##_methods}, {0, NULL}};             \
    static PyType_Spec lower##_spec = {.name = "stet._stet." text,                                                     \
                                       .basicsize = sizeof(lower##_object),                                            \
                                       .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,                \
                                       .slots = lower##_slots}

TYPE(project, "Project", {"root", project_root, METH_NOARGS, NULL}, {"space", project_space, METH_VARARGS, NULL},
     {"send", project_send, METH_VARARGS, NULL}, {"run", project_run, METH_VARARGS, NULL},
     {"close", project_close, METH_NOARGS, NULL});
TYPE(space, "Space", {"get", space_get, METH_VARARGS, NULL}, {"seq", space_seq, METH_NOARGS, NULL},
     {"uuid", space_uuid, METH_NOARGS, NULL}, {"changes", space_changes, METH_VARARGS, NULL},
     {"branch", space_branch, METH_VARARGS, NULL}, {"begin", space_begin, METH_VARARGS, NULL},
     {"transact", space_transact, METH_VARARGS, NULL}, {"follow", space_follow, METH_VARARGS, NULL},
     {"close", space_close, METH_NOARGS, NULL});
TYPE(tx, "Transaction", {"get", tx_get, METH_VARARGS, NULL}, {"set", tx_set, METH_VARARGS, NULL},
     {"patch", tx_patch, METH_VARARGS, NULL}, {"delete", tx_delete, METH_VARARGS, NULL},
     {"require", tx_require, METH_VARARGS, NULL}, {"session", tx_session, METH_VARARGS, NULL},
     {"commit", tx_commit, METH_NOARGS, NULL}, {"abort", tx_abort, METH_NOARGS, NULL});
TYPE(follower, "Follower", {"next", follower_next, METH_VARARGS, NULL}, {"close", follower_close, METH_NOARGS, NULL});

static PyMethodDef functions[] = {{"project_init", project_init, METH_VARARGS, "project_init(dir): was it created?"},
                                  {"project_find", project_find, METH_VARARGS, "project_find(from)"},
                                  {"project_open", project_open, METH_VARARGS, "project_open(root)"},
                                  {0}};

bool stet_py_space_init(PyObject *module) {
    return stet_py_add_type(module, "Project", &project_spec, &project_type) &&
           stet_py_add_type(module, "Space", &space_spec, &space_type) &&
           stet_py_add_type(module, "Transaction", &tx_spec, &tx_type) &&
           stet_py_add_type(module, "Follower", &follower_spec, &follower_type) &&
           PyModule_AddFunctions(module, functions) == 0;
}
