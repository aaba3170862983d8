/* persist.c - stet._stet.Persist: a directory of entries and objects. */
#include "persist.h"

#include <string.h>
#include <unistd.h>

static PyObject *persist_type;

bool stet_py_persist_enter(persist_object *self, bool writes) {
    if (writes && stet_py_in_strategy()) {
        PyErr_SetString(PyExc_RuntimeError, "a cleanup strategy may read from its persister, not write to it");
        return false;
    }
    return stet_py_enter(&self->gate, "persister");
}

static void destroy(persist_object *self) {
    stet_persist *p = self->p;
    self->p = NULL;
    if (getpid() != self->pid)
        return; /* a child of a fork: it is the parent's, with its locks and what it has yet to write */
    STET_PY_OUTSIDE(stet_persist_close(p));
}

void stet_py_persist_leave(persist_object *self) {
    if (stet_py_leave(&self->gate))
        destroy(self);
}

/* Opens what `options` says, with a configuration and a strategy of Python's. */
static PyObject *opened(stet_persist_options *options, PyObject *table, PyObject *strategy) {
    if (!stet_py_to_value(table, &options->config))
        return NULL;
    if (strategy != Py_None) {
        options->choose = stet_py_strategy;
        options->choose_ctx = strategy; /* the handle keeps it */
    }
    stet_persist *p = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_open(options, &p, &err));
    stet_value_release(options->config);
    if (status != STET_OK)
        return stet_py_raise(&err);
    persist_object *self = PyObject_New(persist_object, (PyTypeObject *)persist_type);
    if (!self) {
        stet_persist_close(p);
        return NULL;
    }
    self->gate = (stet_py_gate){0};
    self->p = p;
    self->pid = getpid();
    self->strategy = strategy == Py_None ? NULL : Py_NewRef(strategy);
    return (PyObject *)self;
}

static PyObject *open_dir(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given[3], *held[3] = {NULL}, *table, *strategy, *made = NULL;
    const char *paths[3] = {NULL};
    int read_only;
    if (!PyArg_ParseTuple(args, "OOOOpO:open_dir", &given[0], &given[1], &given[2], &table, &read_only, &strategy))
        return NULL;
    bool good = true;
    for (int i = 0; good && i < 3; i++)
        good = stet_py_path(given[i], &held[i], &paths[i]);
    if (good) {
        stet_persist_options options = STET_PERSIST_OPTIONS_INIT;
        options.dir = paths[0];
        options.local_dir = paths[1];
        options.temp_dir = paths[2];
        options.read_only = read_only != 0;
        made = opened(&options, table, strategy);
    }
    for (int i = 0; i < 3; i++)
        Py_XDECREF(held[i]);
    return made;
}

static PyObject *open_project(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *held, *table, *strategy, *made = NULL;
    const char *root;
    int read_only;
    if (!PyArg_ParseTuple(args, "OOpO:open_project", &given, &table, &read_only, &strategy) ||
        !stet_py_path(given, &held, &root))
        return NULL;
    stet_persist_options options = STET_PERSIST_OPTIONS_INIT;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    options.read_only = read_only != 0;
    STET_PY_OUTSIDE(status = stet_project_open(root, &options.project, &err));
    if (status == STET_OK) {
        made = opened(&options, table, strategy);
        stet_project_close(options.project);
    } else
        stet_py_raise(&err);
    Py_XDECREF(held);
    return made;
}

static PyObject *persist_close(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (stet_py_close(&self->gate))
        destroy(self);
    Py_RETURN_NONE;
}

static void persist_dealloc(PyObject *o) {
    persist_object *self = (persist_object *)o;
    if (self->p) /* nobody is inside: whoever is holds a reference */
        destroy(self);
    stet_py_free(o, self->strategy);
}

typedef struct room {
    char *at;
    size_t len, size;
} room;

static stet_status fill(void *ctx, const void *bytes, size_t len, stet_error *err) {
    room *r = ctx;
    if (len > r->size - r->len)
        return stet_error_set(err, STET_CORRUPT, "an object is larger than its entry says");
    memcpy(r->at + r->len, bytes, len);
    r->len += len;
    return STET_OK;
}

/* The bytes of an object that is too large to come along with its entry. */
static PyObject *object_bytes(persist_object *self, const char *id, uint64_t size) {
    if (size > PY_SSIZE_T_MAX)
        return PyErr_NoMemory();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!bytes)
        return NULL;
    room r = {.at = PyBytes_AsString(bytes), .size = (size_t)size};
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_read(self->p, id, size, fill, &r, &err));
    if (status == STET_OK)
        return bytes;
    Py_DECREF(bytes);
    return stet_py_persist_fail(&err);
}

static PyObject *persist_read(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    const char *id;
    unsigned long long size;
    if (!PyArg_ParseTuple(args, "sK:read", &id, &size) || !stet_py_persist_enter(self, false))
        return NULL;
    PyObject *bytes = object_bytes(self, id, size);
    stet_py_persist_leave(self);
    return bytes;
}

enum { KINDS_MAX = 64 };

/* get(block, module, created_at or 0, flags, kinds or None): an entry, or None. */
static PyObject *persist_get(PyObject *o, PyObject *const *args, Py_ssize_t count) {
    persist_object *self = (persist_object *)o;
    stet_persist_key key = {0};
    const char *kinds[KINDS_MAX + 1] = {NULL};
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "get(block, module, created_at, flags, kinds)");
        return NULL;
    }
    unsigned long flags = PyLong_AsUnsignedLong(args[3]);
    if (PyErr_Occurred() || !stet_py_persist_key(args[0], args[1], args[2], &key))
        return NULL;
    bool all = args[4] == Py_None;
    Py_ssize_t n = all ? 0 : PyTuple_Size(args[4]);
    if (n < 0 || n > KINDS_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many content kinds");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(kinds[i] = stet_py_text(PyTuple_GetItem(args[4], i), "a content kind")))
            return NULL;
    if (!stet_py_persist_enter(self, false))
        return NULL;
    stet_persist_entry *e = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(
        status = stet_persist_get(self->p, &key, (unsigned)flags | STET_PERSIST_LOAD, all ? NULL : kinds, &e, &err));
    stet_py_persist_leave(self);
    PyObject *tuple = NULL;
    if (status == STET_OK)
        tuple = stet_py_entry_with(e, args[0], args[1]);
    else if (status == STET_NOT_FOUND) {
        stet_error_clear(&err);
        tuple = Py_NewRef(Py_None);
    } else
        stet_py_persist_fail(&err);
    stet_persist_entry_free(e);
    return tuple;
}

typedef struct collecting {
    PyThreadState *state;
    PyObject *list;
} collecting;

static bool collect(void *ctx, const stet_persist_entry *e) {
    collecting *c = ctx;
    PyEval_RestoreThread(c->state);
    PyObject *tuple = stet_py_entry(e);
    bool good = tuple && PyList_Append(c->list, tuple) == 0;
    Py_XDECREF(tuple);
    c->state = PyEval_SaveThread();
    return good;
}

/* The list, or NULL with what went wrong in the library or in one of the calls above. */
static PyObject *collected(persist_object *self, collecting *c, stet_status status, stet_error *err) {
    stet_py_persist_leave(self);
    if (status != STET_OK)
        stet_py_persist_fail(err);
    if (PyErr_Occurred())
        Py_CLEAR(c->list);
    return c->list;
}

static PyObject *persist_entries(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    const char *block;
    if (!PyArg_ParseTuple(args, "z:entries", &block) || !stet_py_persist_enter(self, false))
        return NULL;
    collecting c = {.list = PyList_New(0)};
    stet_error err = STET_ERROR_INIT;
    stet_status status = STET_OK;
    if (c.list) {
        c.state = PyEval_SaveThread();
        status = stet_persist_each(self->p, block, collect, &c, &err);
        PyEval_RestoreThread(c.state);
    }
    return collected(self, &c, status, &err);
}

static bool choice_of(PyObject *o, stet_persist_choice *out) {
    int truth = o == Py_None ? 0 : PyObject_IsTrue(o);
    *out = o == Py_None ? STET_PERSIST_AS_CONFIGURED : truth ? STET_PERSIST_YES : STET_PERSIST_NO;
    return truth >= 0;
}

/* cleanup(strategy or None, include_content, delete_orphan_objects, max_local_bytes, dry_run, force, purge) */
static PyObject *persist_cleanup(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *strategy, *content, *orphans;
    long long cap;
    int dry_run, force, purge;
    stet_persist_clean_options how = STET_PERSIST_CLEAN_OPTIONS_INIT;
    if (!PyArg_ParseTuple(args, "OOOLppp:cleanup", &strategy, &content, &orphans, &cap, &dry_run, &force, &purge) ||
        !choice_of(content, &how.include_content) || !choice_of(orphans, &how.delete_orphan_objects) ||
        !stet_py_persist_enter(self, true))
        return NULL;
    how.choose = strategy == Py_None ? NULL : stet_py_strategy;
    how.choose_ctx = strategy;
    how.max_local_bytes = cap;
    how.dry_run = dry_run != 0;
    how.force = force != 0;
    how.purge = purge != 0;
    stet_value report;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_clean(self->p, &how, &report, &err));
    stet_py_persist_leave(self);
    return status == STET_OK ? stet_py_value_or(status, report, &err) : stet_py_persist_fail(&err);
}

static PyObject *persist_on_exit(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!stet_py_persist_enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_on_exit(self->p, &err));
    stet_py_persist_leave(self);
    return status == STET_OK ? Py_NewRef(Py_None) : stet_py_persist_fail(&err);
}

static PyObject *persist_tick(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!stet_py_persist_enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    int64_t next = -1;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_tick(self->p, &next, &err));
    stet_py_persist_leave(self);
    return status == STET_OK ? PyLong_FromLongLong(next) : stet_py_persist_fail(&err);
}

static PyObject *persist_mark(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *block, *module, *created;
    const char *tag;
    int on;
    stet_persist_key key = {0};
    if (!PyArg_ParseTuple(args, "OOOzp:mark", &block, &module, &created, &tag, &on) ||
        !stet_py_persist_key(block, module, created, &key) || !stet_py_persist_enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_mark(self->p, &key, tag, on != 0, &err));
    stet_py_persist_leave(self);
    return status == STET_OK ? Py_NewRef(Py_None) : stet_py_persist_fail(&err);
}

static PyObject *persist_marks(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *block, *module, *created;
    stet_persist_key key = {0};
    if (!PyArg_ParseTuple(args, "OOO:marks", &block, &module, &created) ||
        !stet_py_persist_key(block, module, created, &key) || !stet_py_persist_enter(self, false))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_value marks;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_marks(self->p, &key, &marks, &err));
    stet_py_persist_leave(self);
    if (status != STET_OK)
        return stet_py_persist_fail(&err);
    PyObject *list = stet_py_from_value(marks);
    stet_value_release(marks);
    return list;
}

static PyObject *persist_undelete(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    const char *batch, *block, *module;
    int dry_run;
    if (!PyArg_ParseTuple(args, "zzzp:undelete", &batch, &block, &module, &dry_run) ||
        !stet_py_persist_enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_persist_undeleted back = {0};
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_undelete(self->p, batch, block, module, dry_run != 0, &back, &err));
    stet_py_persist_leave(self);
    return status == STET_OK ? Py_BuildValue("KK", (unsigned long long)back.entries, (unsigned long long)back.objects)
                             : stet_py_persist_fail(&err);
}

static PyObject *persist_stats(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!stet_py_persist_enter(self, false))
        return NULL;
    stet_value counts;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    STET_PY_OUTSIDE(status = stet_persist_statistics(self->p, &counts, &err));
    stet_py_persist_leave(self);
    return status == STET_OK ? stet_py_value_or(status, counts, &err) : stet_py_persist_fail(&err);
}

static void found(void *ctx, const stet_persist_problem *problem) {
    collecting *c = ctx;
    PyEval_RestoreThread(c->state);
    PyObject *one = PyErr_Occurred() ? NULL
                                     : Py_BuildValue("(ssO)", problem->what, problem->where ? problem->where : "",
                                                     problem->repaired ? Py_True : Py_False);
    if (one)
        (void)PyList_Append(c->list, one); /* a failure stays set, and is found at the end */
    Py_XDECREF(one);
    c->state = PyEval_SaveThread();
}

static PyObject *persist_check(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    int repair;
    if (!PyArg_ParseTuple(args, "p:check", &repair) || !stet_py_persist_enter(self, repair != 0))
        return NULL;
    collecting c = {.list = PyList_New(0)};
    stet_error err = STET_ERROR_INIT;
    stet_status status = STET_OK;
    if (c.list) {
        c.state = PyEval_SaveThread();
        status = stet_persist_check(self->p, repair != 0, found, &c, &err);
        PyEval_RestoreThread(c.state);
    }
    return collected(self, &c, status, &err);
}

static PyObject *persist_info(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!stet_py_persist_enter(self, false))
        return NULL;
    stet_value settings = stet_persist_settings(self->p);
    const char *why = stet_persist_read_only(self->p);
    PyObject *dir = PyUnicode_DecodeFSDefault(stet_persist_dir(self->p)), *tuple = NULL;
    PyObject *reason = why ? PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace") : Py_NewRef(Py_None);
    PyObject *table = stet_py_from_value(settings);
    if (dir && reason && table)
        tuple = Py_BuildValue("OOO", dir, reason, table);
    Py_XDECREF(dir);
    Py_XDECREF(reason);
    Py_XDECREF(table);
    stet_value_release(settings);
    stet_py_persist_leave(self);
    return tuple;
}

static PyObject *persist_now(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyLong_FromUnsignedLongLong(stet_persist_now());
}

STET_PY_TYPE(persist, "Persist",
             {"get", (PyCFunction)(void (*)(void))persist_get, METH_FASTCALL,
              "get(block, module, created_at, flags, kinds)"},
             {"put", stet_py_persist_put, METH_VARARGS, "put(block, module, created_at): a Put"},
             {"read", persist_read, METH_VARARGS, "read(id, size): the bytes of an object, verified"},
             {"entries", persist_entries, METH_VARARGS, "entries(block or None)"},
             {"cleanup", persist_cleanup, METH_VARARGS, NULL}, {"on_exit", persist_on_exit, METH_NOARGS, NULL},
             {"tick", persist_tick, METH_NOARGS, NULL},
             {"mark", persist_mark, METH_VARARGS, "mark(block, module, created_at, tag or None, on)"},
             {"marks", persist_marks, METH_VARARGS, NULL}, {"undelete", persist_undelete, METH_VARARGS, NULL},
             {"stats", persist_stats, METH_NOARGS, NULL},
             {"check", persist_check, METH_VARARGS, "check(repair): [(what, where, repaired)]"},
             {"info", persist_info, METH_NOARGS, "(directory, why it is only read or None, settings)"},
             {"close", persist_close, METH_NOARGS, NULL});

static PyMethodDef functions[] = {
    {"open_dir", open_dir, METH_VARARGS,
     "open_dir(dir, local or None, temp or None, config or None, read_only, strategy or None)"},
    {"open_project", open_project, METH_VARARGS, "open_project(root, config or None, read_only, strategy or None)"},
    {"default_strategy", stet_py_strategy_default, METH_VARARGS,
     "default_strategy([(block, module, created_at, size)], limits, now): places of those that go"},
    {"now", persist_now, METH_NOARGS, "created_at of this moment"},
    {0}};

bool stet_py_persist_init(PyObject *module) {
    return stet_py_add_type(module, "Persist", &persist_spec, &persist_type) && stet_py_put_init(module) &&
           PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddIntConstant(module, "EXACT", STET_PERSIST_EXACT) == 0 &&
           PyModule_AddIntConstant(module, "NO_COUNT", STET_PERSIST_NO_COUNT) == 0;
}
