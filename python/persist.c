/* persist.c - stet._stet.Persist: a directory of entries and objects, and puts that are under way. */
#include "module.h"

#include <string.h>
#include <unistd.h>

#include "persist/persist.h"
#include "persist/project_dir.h"

typedef struct persist_object {
    PyObject_HEAD stet_py_gate gate;
    stet_persist *p;
    PyObject *strategy; /* of the handle itself, or NULL */
    pid_t pid;          /* of whoever opened it */
} persist_object;

typedef struct put_object {
    PyObject_HEAD persist_object *owner;
    stet_persist_put *w; /* NULL once it has ended */
} put_object;

static PyObject *persist_type, *put_type;

/* What a strategy raised on its way through the library, and whether one is running: of this thread. */
static _Thread_local PyObject *raised_type, *raised_value, *raised_trace;
static _Thread_local bool in_strategy;

static PyObject *fail(stet_error *err) {
    if (!raised_type)
        return stet_py_raise(err);
    stet_error_clear(err);
    PyErr_Restore(raised_type, raised_value, raised_trace);
    raised_type = raised_value = raised_trace = NULL;
    return NULL;
}

static bool enter(persist_object *self, bool writes) {
    if (writes && in_strategy) {
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
    PyThreadState *outside = PyEval_SaveThread();
    stet_persist_close(p);
    PyEval_RestoreThread(outside);
}

static void leave(persist_object *self) {
    if (stet_py_leave(&self->gate))
        destroy(self);
}

/* ---- entries ---- */

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

/* (block, module, created_at, {kind: (id, size, format, bytes or None)}, elapsed_ms, extra or None, hash, in_log).
 * `block` and `module` are the strings of the entry if they are at hand, or NULL. */
static PyObject *entry_tuple_with(const stet_persist_entry *e, PyObject *block, PyObject *module) {
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

static PyObject *entry_tuple(const stet_persist_entry *e) {
    return entry_tuple_with(e, NULL, NULL);
}

static bool key_of(PyObject *block, PyObject *module, PyObject *created, stet_persist_key *key) {
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

/* ---- strategies ---- */

static stet_status run_strategy(PyObject *callable, stet_persist_item *items, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count), *answer = NULL, *each = NULL, *one;
    for (size_t i = 0; list && i < count; i++) {
        stet_persist_entry *e = stet_persist_item_entry(&items[i]);
        PyObject *tuple = entry_tuple(e);
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

/* The strategy of the library for one in Python: `ctx` is the callable. What it raises comes out of the call that led
 * here. */
static stet_status call_strategy(void *ctx, stet_persist_item *items, size_t count, uint64_t now, stet_error *err) {
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

static PyObject *default_strategy(PyObject *module, PyObject *args) {
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

/* ---- open and close ---- */

static bool config_of(PyObject *given, stet_value *table) {
    *table = stet_null();
    if (given == Py_None)
        return true;
    if (!stet_py_to_value(given, table))
        return false;
    stet_error err = STET_ERROR_INIT;
    stet_persist_config scratch = stet_persist_config_default();
    if (stet_persist_config_read(*table, &scratch, &err) == STET_OK)
        return true;
    stet_py_raise(&err);
    stet_release(*table);
    return false;
}

static void change_config(stet_persist_config *config, void *ctx) {
    stet_persist_config changed = *config;
    if (stet_persist_config_read(*(stet_value *)ctx, &changed, NULL) == STET_OK) /* config_of has tried it */
        *config = changed;
}

static PyObject *made(stet_status status, stet_persist *p, PyObject *strategy, stet_error *err) {
    if (status != STET_OK)
        return stet_py_raise(err);
    persist_object *self = PyObject_New(persist_object, (PyTypeObject *)persist_type);
    if (!self) {
        stet_persist_close(p);
        return NULL;
    }
    self->gate = (stet_py_gate){0};
    self->p = p;
    self->pid = getpid();
    self->strategy = strategy == Py_None ? NULL : Py_NewRef(strategy);
    if (self->strategy)
        stet_persist_set_strategy(p, call_strategy, self->strategy);
    return (PyObject *)self;
}

static PyObject *open_dir(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given[3], *held[3] = {NULL}, *table, *strategy, *opened = NULL;
    const char *paths[3] = {NULL};
    int read_only;
    if (!PyArg_ParseTuple(args, "OOOOpO:open_dir", &given[0], &given[1], &given[2], &table, &read_only, &strategy))
        return NULL;
    stet_value options;
    bool good = true;
    for (int i = 0; good && i < 3; i++)
        good = stet_py_path(given[i], &held[i], &paths[i]);
    if (good && config_of(table, &options)) {
        stet_persist_config config = stet_persist_config_default();
        change_config(&config, &options);
        stet_persist_options o = {.dir = paths[0],
                                  .local_dir = paths[1],
                                  .temp_dir = paths[2],
                                  .config = &config,
                                  .read_only = read_only != 0};
        stet_persist *p = NULL;
        stet_error err = STET_ERROR_INIT;
        PyThreadState *outside = PyEval_SaveThread();
        stet_status status = stet_persist_open(&o, &p, &err);
        PyEval_RestoreThread(outside);
        stet_release(options);
        opened = made(status, p, strategy, &err);
    }
    for (int i = 0; i < 3; i++)
        Py_XDECREF(held[i]);
    return opened;
}

static PyObject *open_project(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *given, *held, *table, *strategy, *opened = NULL;
    const char *root;
    int read_only;
    if (!PyArg_ParseTuple(args, "OOpO:open_project", &given, &table, &read_only, &strategy) ||
        !stet_py_path(given, &held, &root))
        return NULL;
    stet_value options;
    if (config_of(table, &options)) {
        stet_persist *p = NULL;
        stet_project *project;
        stet_error err = STET_ERROR_INIT;
        PyThreadState *outside = PyEval_SaveThread();
        stet_status status = stet_project_open(root, &project, &err);
        if (status == STET_OK) {
            status = stet_persist_open_project(project, read_only != 0, change_config, &options, &p, &err);
            stet_project_close(project);
        }
        PyEval_RestoreThread(outside);
        stet_release(options);
        opened = made(status, p, strategy, &err);
    }
    Py_XDECREF(held);
    return opened;
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
    PyTypeObject *type = Py_TYPE(o);
    if (self->p) /* nobody is inside: whoever is holds a reference */
        destroy(self);
    Py_XDECREF(self->strategy);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- get ---- */

typedef struct room {
    char *at;
    size_t len, size;
} room;

static stet_status fill(void *ctx, const void *bytes, size_t len, stet_error *err) {
    room *r = ctx;
    if (len > r->size - r->len)
        return stet_fail(err, STET_CORRUPT, "an object is larger than its entry says");
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
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_read(self->p, id, size, fill, &r, &err);
    PyEval_RestoreThread(outside);
    if (status == STET_OK)
        return bytes;
    Py_DECREF(bytes);
    return fail(&err);
}

static PyObject *persist_read(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    const char *id;
    unsigned long long size;
    if (!PyArg_ParseTuple(args, "sK:read", &id, &size) || !enter(self, false))
        return NULL;
    PyObject *bytes = object_bytes(self, id, size);
    leave(self);
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
    if (PyErr_Occurred() || !key_of(args[0], args[1], args[2], &key))
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
    if (!enter(self, false))
        return NULL;
    stet_persist_entry *e = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_get(self->p, &key, (unsigned)flags | STET_PERSIST_LOAD, all ? NULL : kinds, &e, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    PyObject *tuple = NULL;
    if (status == STET_OK)
        tuple = entry_tuple_with(e, args[0], args[1]);
    else if (status == STET_NOT_FOUND) {
        stet_error_clear(&err);
        tuple = Py_NewRef(Py_None);
    } else
        fail(&err);
    stet_persist_entry_free(e);
    return tuple;
}

/* ---- put ---- */

static PyObject *persist_put(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *block, *module, *created;
    stet_persist_key key = {0};
    if (!PyArg_ParseTuple(args, "OOO:put", &block, &module, &created) || !key_of(block, module, created, &key) ||
        !enter(self, true))
        return NULL;
    put_object *put = PyObject_New(put_object, (PyTypeObject *)put_type);
    if (!put) {
        leave(self);
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
    else {
        PyThreadState *outside = PyEval_SaveThread();
        stet_persist_put_bytes(self->w, view.buf, (size_t)len);
        PyEval_RestoreThread(outside);
    }
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
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_put_end(w, &e, &err);
    PyEval_RestoreThread(outside);
    leave(self->owner);
    PyObject *tuple = status == STET_OK ? entry_tuple(e) : fail(&err);
    stet_persist_entry_free(e);
    return tuple;
}

static void abandon(put_object *self) {
    stet_persist_put *w = self->w;
    self->w = NULL;
    if (!w)
        return;
    PyThreadState *outside = PyEval_SaveThread();
    stet_persist_put_abort(w);
    PyEval_RestoreThread(outside);
    leave(self->owner);
}

static PyObject *put_abort(PyObject *o, PyObject *none) {
    (void)none;
    abandon((put_object *)o);
    Py_RETURN_NONE;
}

static void put_dealloc(PyObject *o) {
    put_object *self = (put_object *)o;
    PyTypeObject *type = Py_TYPE(o);
    abandon(self);
    Py_DECREF((PyObject *)self->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ---- everything else ---- */

typedef struct collecting {
    PyThreadState *state;
    PyObject *list;
} collecting;

static bool collect(void *ctx, const stet_persist_entry *e) {
    collecting *c = ctx;
    PyEval_RestoreThread(c->state);
    PyObject *tuple = entry_tuple(e);
    bool good = tuple && PyList_Append(c->list, tuple) == 0;
    Py_XDECREF(tuple);
    c->state = PyEval_SaveThread();
    return good;
}

static PyObject *persist_entries(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    const char *block;
    if (!PyArg_ParseTuple(args, "z:entries", &block) || !enter(self, false))
        return NULL;
    collecting c = {.list = PyList_New(0)};
    stet_error err = STET_ERROR_INIT;
    stet_status status = STET_OK;
    if (c.list) {
        c.state = PyEval_SaveThread();
        status = stet_persist_each(self->p, block, collect, &c, &err);
        PyEval_RestoreThread(c.state);
    }
    leave(self);
    if (status != STET_OK)
        fail(&err);
    if (PyErr_Occurred())
        Py_CLEAR(c.list);
    return c.list;
}

static bool choice_of(PyObject *o, stet_persist_choice *out) {
    int truth = o == Py_None ? 0 : PyObject_IsTrue(o);
    *out = o == Py_None ? STET_PERSIST_AS_CONFIGURED : truth ? STET_PERSIST_YES : STET_PERSIST_NO;
    return truth >= 0;
}

static PyObject *cleaned_dict(const stet_persist_cleaned *c) {
    PyObject *entries = stet_py_from_value(c->entries), *objects = stet_py_from_value(c->objects), *dict = NULL;
    if (entries && objects)
        dict =
            Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K,s:O,s:O,s:s,s:O,s:O}", "entries_before",
                          (unsigned long long)c->entries_before, "entries_after", (unsigned long long)c->entries_after,
                          "entries_removed", (unsigned long long)c->entries_removed, "objects_removed",
                          (unsigned long long)c->objects_removed, "bytes_removed", (unsigned long long)c->bytes_removed,
                          "snapshots_merged", (unsigned long long)c->snapshots_merged, "wrote_snapshot",
                          c->wrote_snapshot ? Py_True : Py_False, "dry_run", c->dry_run ? Py_True : Py_False,
                          "snapshot", c->snapshot, "entries", entries, "objects", objects);
    Py_XDECREF(entries);
    Py_XDECREF(objects);
    return dict;
}

/* cleanup(strategy or None, include_content, delete_orphan_objects, max_local_bytes, dry_run, force, purge) */
static PyObject *persist_cleanup(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *strategy, *content, *orphans;
    long long cap;
    int dry_run, force, purge;
    stet_persist_cleanup how = {0};
    if (!PyArg_ParseTuple(args, "OOOLppp:cleanup", &strategy, &content, &orphans, &cap, &dry_run, &force, &purge) ||
        !choice_of(content, &how.include_content) || !choice_of(orphans, &how.delete_orphan_objects) ||
        !enter(self, true))
        return NULL;
    how.strategy = strategy == Py_None ? NULL : call_strategy;
    how.ctx = strategy;
    how.max_local_bytes = cap;
    how.dry_run = dry_run != 0;
    how.force = force != 0;
    how.purge = purge != 0;
    stet_persist_cleaned out = {0};
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_cleanup_run(self->p, &how, &out, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    PyObject *dict = status == STET_OK ? cleaned_dict(&out) : fail(&err);
    stet_persist_cleaned_release(&out);
    return dict;
}

static PyObject *persist_on_exit(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_on_exit(self->p, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    if (status != STET_OK)
        return fail(&err);
    Py_RETURN_NONE;
}

static PyObject *persist_tick(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    int64_t next = -1;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_tick(self->p, &next, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    return status == STET_OK ? PyLong_FromLongLong(next) : fail(&err);
}

static PyObject *persist_mark(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *block, *module, *created;
    const char *tag;
    int on;
    stet_persist_key key = {0};
    if (!PyArg_ParseTuple(args, "OOOzp:mark", &block, &module, &created, &tag, &on) ||
        !key_of(block, module, created, &key) || !enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_mark(self->p, &key, tag, on != 0, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    if (status != STET_OK)
        return fail(&err);
    Py_RETURN_NONE;
}

static PyObject *persist_marks(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    PyObject *block, *module, *created;
    stet_persist_key key = {0};
    if (!PyArg_ParseTuple(args, "OOO:marks", &block, &module, &created) || !key_of(block, module, created, &key) ||
        !enter(self, false))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_value marks;
    stet_status status;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_marks(self->p, &key, &marks, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    if (status != STET_OK)
        return fail(&err);
    PyObject *list = stet_py_from_value(marks);
    stet_release(marks);
    return list;
}

static PyObject *persist_undelete(PyObject *o, PyObject *args) {
    persist_object *self = (persist_object *)o;
    const char *batch, *block, *module;
    int dry_run;
    if (!PyArg_ParseTuple(args, "zzzp:undelete", &batch, &block, &module, &dry_run) || !enter(self, true))
        return NULL;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    uint64_t entries = 0, objects = 0;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_undelete(self->p, batch, block, module, dry_run != 0, &entries, &objects, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    return status == STET_OK ? Py_BuildValue("KK", (unsigned long long)entries, (unsigned long long)objects)
                             : fail(&err);
}

static PyObject *persist_stats(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!enter(self, false))
        return NULL;
    stet_persist_stats s;
    stet_error err = STET_ERROR_INIT;
    stet_status status;
    PyThreadState *outside = PyEval_SaveThread();
    status = stet_persist_stats_get(self->p, &s, &err);
    PyEval_RestoreThread(outside);
    leave(self);
    if (status != STET_OK)
        return fail(&err);
    const struct {
        const char *name;
        uint64_t n;
    } all[] = {{"entries", s.entries},
               {"log_entries", s.log_entries},
               {"call_entries", s.call_entries},
               {"blocks", s.blocks},
               {"modules", s.modules},
               {"snapshots", s.snapshots},
               {"pinned", s.pinned},
               {"content_bytes", s.content_bytes},
               {"objects", s.objects},
               {"object_bytes", s.object_bytes},
               {"missing_objects", s.missing_objects},
               {"fresh_markers", s.fresh_markers},
               {"trash_bytes", s.trash_bytes},
               {"hits", s.hits},
               {"misses", s.misses},
               {"saved_ms", s.saved_ms}};
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < sizeof all / sizeof *all; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(all[i].n);
        if (!n || PyDict_SetItemString(dict, all[i].name, n) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(n);
    }
    return dict;
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
    if (!PyArg_ParseTuple(args, "p:check", &repair) || !enter(self, repair != 0))
        return NULL;
    collecting c = {.list = PyList_New(0)};
    stet_error err = STET_ERROR_INIT;
    stet_status status = STET_OK;
    if (c.list) {
        c.state = PyEval_SaveThread();
        status = stet_persist_check(self->p, repair != 0, found, &c, &err);
        PyEval_RestoreThread(c.state);
    }
    leave(self);
    if (status != STET_OK)
        fail(&err);
    if (PyErr_Occurred())
        Py_CLEAR(c.list);
    return c.list;
}

static PyObject *persist_info(PyObject *o, PyObject *none) {
    (void)none;
    persist_object *self = (persist_object *)o;
    if (!enter(self, false))
        return NULL;
    const stet_persist_config *c = stet_persist_config_of(self->p);
    const char *why = stet_persist_read_only(self->p);
    PyObject *dir = PyUnicode_DecodeFSDefault(stet_persist_dir(self->p)), *tuple = NULL;
    PyObject *reason = why ? PyUnicode_DecodeUTF8(why, (Py_ssize_t)strlen(why), "replace") : Py_NewRef(Py_None);
    if (dir && reason)
        tuple =
            Py_BuildValue("OsO(LLLL)", dir, c->auto_variables_format, reason,
                          (long long)c->strategy.max_entries_per_block, (long long)c->strategy.max_entries_per_module,
                          (long long)c->strategy.max_entry_age_days, (long long)c->strategy.max_total_content_size);
    Py_XDECREF(dir);
    Py_XDECREF(reason);
    leave(self);
    return tuple;
}

static PyObject *persist_now(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    return PyLong_FromUnsignedLongLong(stet_persist_now());
}

/* ---- types ---- */

static PyMethodDef persist_methods[] = {
    {"get", (PyCFunction)(void (*)(void))persist_get, METH_FASTCALL, "get(block, module, created_at, flags, kinds)"},
    {"put", persist_put, METH_VARARGS, "put(block, module, created_at): a Put"},
    {"read", persist_read, METH_VARARGS, "read(id, size): the bytes of an object, verified"},
    {"entries", persist_entries, METH_VARARGS, "entries(block or None)"},
    {"cleanup", persist_cleanup, METH_VARARGS, NULL},
    {"on_exit", persist_on_exit, METH_NOARGS, NULL},
    {"tick", persist_tick, METH_NOARGS, NULL},
    {"mark", persist_mark, METH_VARARGS, "mark(block, module, created_at, tag or None, on)"},
    {"marks", persist_marks, METH_VARARGS, NULL},
    {"undelete", persist_undelete, METH_VARARGS, NULL},
    {"stats", persist_stats, METH_NOARGS, NULL},
    {"check", persist_check, METH_VARARGS, "check(repair): [(what, where, repaired)]"},
    {"info", persist_info, METH_NOARGS, "(directory, format of auto, why it is only read or None, limits)"},
    {"close", persist_close, METH_NOARGS, NULL},
    {0}};
static PyType_Slot persist_slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)persist_dealloc}, {Py_tp_methods, persist_methods}, {0, NULL}};
static PyType_Spec persist_spec = {.name = "stet._stet.Persist",
                                   .basicsize = sizeof(persist_object),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = persist_slots};

static PyMethodDef put_methods[] = {{"content", put_content, METH_VARARGS, "content(kind, format) begins one"},
                                    {"write", put_write, METH_O, "adds bytes to the content that was begun"},
                                    {"string", put_string, METH_VARARGS, NULL},
                                    {"elapsed", put_elapsed, METH_O, NULL},
                                    {"end", put_end, METH_NOARGS, "stores it: the entry"},
                                    {"abort", put_abort, METH_NOARGS, NULL},
                                    {0}};
static PyType_Slot put_slots[] = {
    {Py_tp_dealloc, (void *)(uintptr_t)put_dealloc}, {Py_tp_methods, put_methods}, {0, NULL}};
static PyType_Spec put_spec = {.name = "stet._stet.Put",
                               .basicsize = sizeof(put_object),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = put_slots};

static PyMethodDef functions[] = {
    {"open_dir", open_dir, METH_VARARGS,
     "open_dir(dir, local or None, temp or None, config or None, read_only, strategy or None)"},
    {"open_project", open_project, METH_VARARGS, "open_project(root, config or None, read_only, strategy or None)"},
    {"default_strategy", default_strategy, METH_VARARGS,
     "default_strategy([(block, module, created_at, size)], limits, now): places of those that go"},
    {"now", persist_now, METH_NOARGS, "created_at of this moment"},
    {0}};

bool stet_py_persist_init(PyObject *module) {
    return stet_py_add_type(module, "Persist", &persist_spec, &persist_type) &&
           stet_py_add_type(module, "Put", &put_spec, &put_type) && PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddIntConstant(module, "EXACT", STET_PERSIST_EXACT) == 0 &&
           PyModule_AddIntConstant(module, "NO_COUNT", STET_PERSIST_NO_COUNT) == 0;
}
