/* view.c - inputs as the script sees them, and the record of what it looked at.
 *
 * A function that takes a container gets a proxy whose traps (realm.js) call functions of this file with the number of
 * the view. What the script looks at is noted, and recorded with the run at its end or before a write:
 *
 *   - a scalar that was taken, or a key that is absent: a shallow read of that path;
 *   - a key that is present and whose link leads to nothing: a read of that path too, whatever else was read of the
 *     container;
 *   - a look at the key set, the length or the presence of a key: a shallow read of the container;
 *   - a container that was taken but not looked into: a shallow read, because its type was seen;
 *   - more than MAX_READS reads below a container: one recursive read of the container.
 *
 * So a function that takes `rows[3].name` reads that path alone. A change of the type of `rows` or of `rows[3]` touches
 * the read too, as any change above a path does.
 */

#include "engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LOG      (1u << 20)
#define MAYBE_UNUSED __attribute__((unused))

static const char link_key[] = "link@1";

static bool is_link(stet_value v) {
    return stet_value_type(v) == STET_TYPE_OBJECT && stet_value_count(v) == 1 &&
           strcmp(stet_value_key_at(v, 0, NULL), "/") == 0 &&
           stet_value_type(stet_value_get(stet_value_at(v, 0), link_key)) == STET_TYPE_OBJECT;
}

static bool is_reference(stet_value v) {
    return is_link(v) ||
           (stet_value_type(v) == STET_TYPE_OBJECT && stet_value_type(stet_value_get(v, "$")) == STET_TYPE_STRING) ||
           (stet_value_type(v) == STET_TYPE_OBJECT && stet_value_count(v) == 1 &&
            strcmp(stet_value_key_at(v, 0, NULL), "$literal") == 0);
}

static bool marked_cell(stet_value v) {
    if (stet_value_type(v) != STET_TYPE_OBJECT)
        return false;
    if (stet_value_as_bool(stet_value_get(v, "asCell")) && stet_value_type(stet_value_get(v, "$")) == STET_TYPE_STRING)
        return true;
    return is_link(v) && stet_value_as_bool(stet_value_get(stet_value_get(stet_value_at(v, 0), link_key), "asCell"));
}

/* Does a schema say that this input is a cell? */
static bool schema_cell(stet_value owner, const char *key, size_t len) {
    stet_value v;
    stet_value properties = stet_value_get(stet_value_get(owner, "argumentSchema"), "properties");
    return stet_value_type(properties) == STET_TYPE_OBJECT && stet_value_find(properties, key, len, &v) &&
           stet_value_type(v) == STET_TYPE_OBJECT && stet_value_as_bool(stet_value_get(v, "asCell"));
}

static uint32_t add_path(view_set *s, uint32_t parent, const char *key, size_t len, uint32_t *path_len) {
    const view *p = &s->views.at[parent];
    stet_path_set(&s->scratch, (stet_pathref){s->paths.data ? s->paths.data + p->path : "", p->path_len});
    stet_path_push_n(&s->scratch, key, len);
    stet_pathref full = stet_path_ref(&s->scratch);
    uint32_t at = (uint32_t)s->paths.len;
    stet_buf_add(&s->paths, full.bytes, full.len);
    *path_len = (uint32_t)full.len;
    return at;
}

static stet_pathref path_at(const view_set *s, uint32_t path, uint32_t len) {
    return (stet_pathref){len ? s->paths.data + path : "", len};
}

static uint32_t add_view(view_set *s, uint32_t parent, uint32_t path, uint32_t path_len, stet_value v,
                         stet_value binding) {
    *stet_vec_add(&s->views) =
        (view){.value = v, .binding = binding, .parent = parent, .path = path, .path_len = path_len};
    return (uint32_t)(s->views.len - 1);
}

void views_begin(stet_javascript_engine *e) {
    view_set *s = &e->views;
    s->base += s->views.len;
    stet_vec_clear(&s->views);
    stet_vec_clear(&s->leaves);
    stet_buf_clear(&s->paths);
}

void views_end(stet_javascript_engine *e) {
    view_set *s = &e->views;
    stet_vec_release(&s->views);
    stet_vec_release(&s->leaves);
    stet_vec_release(&s->counts);
    stet_buf_release(&s->paths);
    stet_path_release(&s->scratch);
}

uint64_t views_root(stet_javascript_engine *e) {
    stet_value bindings = stet_run_bindings(e->run);
    uint32_t i = add_view(&e->views, (uint32_t)e->views.views.len, 0, 0, bindings, bindings);
    e->views.views.at[i].bound = true;
    return e->views.base + i;
}

bool views_positional(stet_value bindings, size_t *count) {
    *count = stet_value_count(bindings);
    if (stet_value_type(bindings) == STET_TYPE_ARRAY)
        return true;
    if (stet_value_type(bindings) != STET_TYPE_OBJECT || *count == 0)
        return false;
    for (size_t i = 0; i < *count; i++) {
        size_t len, index;
        const char *key = stet_value_key_at(bindings, i, &len);
        if (!stet_path_index(key, len, &index) || index >= *count)
            return false;
    }
    return true;
}

static view *view_of(stet_javascript_engine *e, double number, uint32_t *index) {
    view_set *s = &e->views;
    if (!e->run || number < (double)s->base || number >= (double)(s->base + s->views.len))
        return NULL;
    *index = (uint32_t)((uint64_t)number - s->base);
    return &s->views.at[*index];
}

static stet_status record(stet_javascript_engine *e, uint32_t path, uint32_t len, stet_read_kind kind,
                          stet_error *err) {
    stet_value ignored;
    stet_status status = stet_run_read(e->run, path_at(&e->views, path, len), kind, &ignored, err);
    if (status != STET_NOT_FOUND)
        return status;
    stet_error_clear(err);
    return STET_OK;
}

/* A read that fails (links in a circle) has recorded what it met. The others are recorded all the same; the first error
 * is the one that is told. */
static void record_shallow(stet_javascript_engine *e, uint32_t path, uint32_t len, stet_status *status,
                           stet_error *err) {
    stet_error mine = STET_ERROR_INIT;
    stet_status now = record(e, path, len, STET_SHALLOW, &mine);
    if (now != STET_OK && *status == STET_OK) {
        *status = now;
        stet_error_move(err, &mine);
    }
    stet_error_clear(&mine);
}

/* In place of the many reads below it. If that meets a circle where the function did not look, the many are recorded.
 */
static void record_whole(stet_javascript_engine *e, view *v) {
    stet_error mine = STET_ERROR_INIT;
    v->recursive = v->recursive_done = record(e, v->path, v->path_len, STET_RECURSIVE, &mine) == STET_OK;
    v->shallow |= !v->recursive;
    stet_error_clear(&mine);
}

stet_status views_flush(stet_javascript_engine *e, stet_error *err) {
    view_set *s = &e->views;
    size_t n = s->views.len;
    stet_status status = STET_OK;
    if (n == 0)
        return STET_OK;
    stet_vec_reserve(&s->counts, n);
    uint32_t *counts = s->counts.at;
    memset(counts, 0, n * sizeof *counts);
    for (size_t i = 0; i < s->leaves.len; i++) {
        const leaf *l = &s->leaves.at[i];
        if (!l->missing || !s->views.at[l->parent].shallow)
            counts[l->parent]++;
    }
    /* Children stand after their parents: counted from the end, a container knows all that is below it. */
    for (size_t i = n; i-- > 0;) {
        view *v = &s->views.at[i];
        bool root = v->parent == i;
        if (root)
            continue;
        if (v->recursive_done)
            counts[i] = 0;
        else if (v->shallow && !v->shallow_done)
            counts[i]++;
        if (!v->recursive && counts[i] > MAX_READS)
            v->recursive = true;
        if (v->recursive && !v->recursive_done)
            counts[i] = 1;
        if (counts[i] == 0 && !v->covered && !v->cell) {
            v->shallow = true;
            counts[i] = 1;
        }
        if (counts[i] > 0)
            v->covered = true;
        if (v->covered && s->views.at[v->parent].parent != v->parent)
            s->views.at[v->parent].covered = true;
        counts[v->parent] += counts[i];
    }
    for (size_t i = 0; i < n; i++) {
        view *v = &s->views.at[i];
        if (v->parent == i)
            continue;
        const view *above = &s->views.at[v->parent];
        bool hidden = above->recursive && v->parent != above->parent;
        if (hidden) { /* what is above it was read whole */
            v->recursive = v->recursive_done = true;
            continue;
        }
        if (v->recursive && !v->recursive_done)
            record_whole(e, v);
        if (v->shallow && !v->shallow_done && !v->recursive) {
            record_shallow(e, v->path, v->path_len, &status, err);
            v->shallow_done = true;
        }
    }
    for (size_t i = 0; i < s->leaves.len; i++) {
        const leaf *l = &s->leaves.at[i];
        const view *above = &s->views.at[l->parent];
        if (!above->recursive && !(l->missing && above->shallow))
            record_shallow(e, l->path, l->path_len, &status, err);
    }
    stet_vec_clear(&s->leaves);
    return status;
}

stet_status views_whole(stet_javascript_engine *e, double number, stet_value *out, stet_error *err) {
    uint32_t i;
    view *v = view_of(e, number, &i);
    if (!v)
        return stet_fail(err, STET_INVALID, "an input of a run that is over");
    stet_status status = stet_run_read(e->run, path_at(&e->views, v->path, v->path_len), STET_RECURSIVE, out, err);
    v = &e->views.views.at[i];
    if (status == STET_OK)
        v->recursive = v->recursive_done = v->covered = true;
    return status;
}

static JSValueRef throw_text(JSContextRef context, JSValueRef *exception, const char *text) {
    JSValueRef message = js_text(context, text, strlen(text));
    *exception = JSObjectMakeError(context, 1, &message, NULL);
    return JSValueMakeUndefined(context);
}

/* A failure of the run itself: it ends the run whatever the function makes of the exception. */
static JSValueRef throw_error(stet_javascript_engine *e, JSContextRef context, JSValueRef *exception, stet_error *err) {
    stet_error_move(&e->error, err);
    return throw_text(context, exception, e->error.message);
}

static JSValueRef over(JSContextRef context, JSValueRef *exception) {
    return throw_text(context, exception, "an input of a run that is over");
}

/* A function of the realm whose first argument is the number of a view (or cell): its body gets the engine as `e`, the
 * index of the view as `i`, and all arguments as `argv`. The view of a run that is over is refused here. */
#define BODY_OF(name)                                                                                                  \
    static JSValueRef name##_body(MAYBE_UNUSED stet_javascript_engine *e, MAYBE_UNUSED JSContextRef context,           \
                                  MAYBE_UNUSED uint32_t i, MAYBE_UNUSED const JSValueRef argv[],                       \
                                  MAYBE_UNUSED JSValueRef *exception)
#define OF_VIEW(name)                                                                                                  \
    BODY_OF(name);                                                                                                     \
    static JSValueRef name(JSContextRef context, MAYBE_UNUSED JSObjectRef function, MAYBE_UNUSED JSObjectRef self,     \
                           MAYBE_UNUSED size_t argc, const JSValueRef argv[], JSValueRef *exception) {                 \
        uint32_t i;                                                                                                    \
        if (!view_of(engine_current, JSValueToNumber(context, argv[0], NULL), &i))                                     \
            return over(context, exception);                                                                           \
        return name##_body(engine_current, context, i, argv, exception);                                               \
    }                                                                                                                  \
    BODY_OF(name)

typedef struct key_text {
    char small[256];
    stet_buf large;
    const char *text;
    size_t len;
    bool ok;
} key_text;

static void key_read(JSContextRef context, JSValueRef value, key_text *k) {
    JSStringRef s = JSValueToStringCopy(context, value, NULL);
    k->large = (stet_buf)STET_BUF(STET_PATH_MAX_BYTES);
    k->ok = false;
    k->text = k->small;
    k->len = 0;
    if (!s)
        return;
    if (JSStringGetMaximumUTF8CStringSize(s) <= sizeof k->small) {
        size_t n = JSStringGetUTF8CString(s, k->small, sizeof k->small);
        k->len = n ? n - 1 : 0;
        k->ok = n > 0;
    } else if (js_utf8(s, &k->large)) {
        k->text = stet_buf_cstr(&k->large);
        k->len = k->large.len;
        k->ok = true;
    }
    JSStringRelease(s);
}

static void key_release(key_text *k) {
    stet_buf_release(&k->large);
}

static bool child_of(stet_value container, const key_text *k, stet_value *out) {
    size_t index;
    if (!k->ok)
        return false;
    if (stet_value_type(container) == STET_TYPE_OBJECT)
        return stet_value_find(container, k->text, k->len, out);
    if (stet_value_type(container) != STET_TYPE_ARRAY || !stet_path_index(k->text, k->len, &index) ||
        index >= stet_value_count(container))
        return false;
    *out = stet_value_at(container, index);
    return true;
}

/* Tells the realm of a value: a scalar as it is, a container by a new view. */
static JSValueRef answer(stet_javascript_engine *e, JSContextRef context, uint32_t parent, uint32_t path,
                         uint32_t path_len, stet_value v, stet_value binding) {
    stet_type type = stet_value_type(v);
    if (type != STET_TYPE_ARRAY && type != STET_TYPE_OBJECT) {
        e->out[0] = SCALAR;
        return js_of_scalar(context, v);
    }
    uint32_t i = add_view(&e->views, parent, path, path_len, v, binding);
    e->views.views.at[i].bound =
        stet_value_type(binding) == STET_TYPE_ARRAY || stet_value_type(binding) == STET_TYPE_OBJECT;
    e->out[0] = type == STET_TYPE_ARRAY ? ARRAY : OBJECT;
    e->out[1] = (double)(e->views.base + i);
    e->out[2] = (double)stet_value_count(v);
    return JSValueMakeUndefined(context);
}

static JSValueRef absent(stet_javascript_engine *e, JSContextRef context) {
    e->out[0] = ABSENT;
    return JSValueMakeUndefined(context);
}

static void add_leaf(view_set *s, uint32_t parent, uint32_t path, uint32_t path_len, bool missing) {
    *stet_vec_add(&s->leaves) = (leaf){parent, path, path_len, missing};
}

/* fetch(view, key): what is there. */
OF_VIEW(fetch) {
    view_set *s = &e->views;
    view *v = &e->views.views.at[i];
    key_text key;
    stet_value child = stet_value_null(), binding = stet_value_null();
    key_read(context, argv[1], &key);
    if (!key.ok) {
        key_release(&key);
        return absent(e, context);
    }
    bool root = v->parent == i;
    bool there = child_of(v->value, &key, &child);
    if (root && !there) { /* the names of the inputs are part of the graph */
        key_release(&key);
        return absent(e, context);
    }
    if (!root && ++v->touched > MAX_READS && !v->bound) {
        e->out[0] = BULK; /* text() follows */
        key_release(&key);
        return JSValueMakeUndefined(context);
    }
    uint32_t path_len, path = add_path(s, i, key.text, key.len, &path_len);
    if (s->paths.overflow || s->scratch.buf.overflow) {
        key_release(&key);
        stet_error err = STET_ERROR_INIT;
        stet_fail(&err, STET_LIMIT, "paths of the inputs that were read take more than 2 GiB, or one of them 64 KiB");
        return throw_error(e, context, exception, &err);
    }
    bool bound = v->bound, missing = !there;
    if (bound)
        child_of(v->binding, &key, &binding);
    if (bound && (marked_cell(binding) || (root && (schema_cell(stet_run_descriptor(e->run), key.text, key.len) ||
                                                    schema_cell(stet_run_node(e->run), key.text, key.len))))) {
        uint32_t c = add_view(s, i, path, path_len, stet_value_null(), stet_value_null());
        s->views.at[c].cell = true;
        e->out[0] = CELL;
        e->out[1] = (double)(s->base + c);
        key_release(&key);
        return JSValueMakeUndefined(context);
    }
    if (is_reference(binding))
        binding = stet_value_null();
    else if (bound)
        there = true; /* as the run says */
    if (bound || is_link(child)) {
        stet_error err = STET_ERROR_INIT;
        stet_status status = stet_run_peek(e->run, path_at(s, path, path_len), &child, &err);
        there = status == STET_OK;
        if (status != STET_OK && status != STET_NOT_FOUND) {
            key_release(&key);
            add_leaf(s, i, path, path_len, false); /* what is in the way there is read */
            return throw_error(e, context, exception, &err);
        }
        stet_error_clear(&err);
    }
    size_t index;
    bool countable =
        stet_value_type(s->views.at[i].value) != STET_TYPE_ARRAY || stet_path_index(key.text, key.len, &index);
    key_release(&key);
    if (!there) {
        if (countable)
            add_leaf(s, i, path, path_len, missing);
        return absent(e, context);
    }
    JSValueRef result = answer(e, context, i, path, path_len, child, binding);
    if (e->out[0] == SCALAR)
        add_leaf(s, i, path, path_len, false);
    return result;
}

/* has(view, key): is it there? A key that is not there is noted; presence is the caller's to mark. */
OF_VIEW(has) {
    view *v = &e->views.views.at[i];
    key_text key;
    stet_value child;
    key_read(context, argv[1], &key);
    bool there = child_of(v->value, &key, &child);
    if (!there && key.ok && v->parent != i && !v->shallow && !v->recursive) {
        uint32_t path_len, path = add_path(&e->views, i, key.text, key.len, &path_len);
        add_leaf(&e->views, i, path, path_len, true);
    }
    key_release(&key);
    return JSValueMakeBoolean(context, there);
}

/* keys(view): of an object, or the positions of inputs. */
OF_VIEW(keys) {
    stet_value value = e->views.views.at[i].value;
    JSObjectRef array = JSObjectMakeArray(context, 0, NULL, exception);
    for (size_t k = 0; array && k < stet_value_count(value); k++) {
        char number[24];
        size_t len;
        const char *key = stet_value_key_at(value, k, &len);
        if (!key) {
            len = (size_t)snprintf(number, sizeof number, "%zu", k);
            key = number;
        }
        JSObjectSetPropertyAtIndex(context, array, (unsigned)k, js_text(context, key, len), exception);
    }
    return array ? array : JSValueMakeUndefined(context);
}

/* mark(view): its type, key set or length was looked at. */
OF_VIEW(mark) {
    view *v = &e->views.views.at[i];
    v->shallow = v->parent != i;
    return JSValueMakeUndefined(context);
}

/* text(view): all of it as JSON; out[1] says whether large integers may be in it. */
OF_VIEW(text) {
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    if (views_whole(e, JSValueToNumber(context, argv[0], NULL), &v, &err) != STET_OK)
        return throw_error(e, context, exception, &err);
    stet_buf json = STET_BUF(0);
    e->out[1] = js_json(v, &json);
    JSValueRef result = js_text(context, stet_buf_cstr(&json), json.len);
    stet_buf_release(&json);
    return result;
}

/* place(view, key): "rows/3/name", for messages. */
OF_VIEW(place) {
    view *v = &e->views.views.at[i];
    key_text key;
    stet_buf pointer = STET_BUF(1024);
    key_read(context, argv[1], &key);
    stet_path_set(&e->views.scratch, path_at(&e->views, v->path, v->path_len));
    if (key.len > 0)
        stet_path_push_n(&e->views.scratch, key.text, key.len);
    stet_path_print(stet_path_ref(&e->views.scratch), &pointer);
    const char *shown = stet_buf_cstr(&pointer);
    JSValueRef result = shown[0] ? js_text(context, shown + 1, strlen(shown + 1)) : js_text(context, "the inputs", 10);
    stet_buf_release(&pointer);
    key_release(&key);
    return result;
}

/* peek(cell): its value. */
OF_VIEW(peek) {
    view *v = &e->views.views.at[i];
    stet_error err = STET_ERROR_INIT;
    stet_value value = stet_value_null();
    uint32_t path = v->path, path_len = v->path_len;
    stet_status status = stet_run_peek(e->run, path_at(&e->views, path, path_len), &value, &err);
    if (status != STET_OK && status != STET_NOT_FOUND) {
        add_leaf(&e->views, i, path, path_len, false);
        return throw_error(e, context, exception, &err);
    }
    stet_error_clear(&err);
    if (status == STET_NOT_FOUND) {
        add_leaf(&e->views, i, path, path_len, false);
        return absent(e, context);
    }
    JSValueRef result = answer(e, context, i, path, path_len, value, stet_value_null());
    if (e->out[0] == SCALAR)
        add_leaf(&e->views, i, path, path_len, false);
    return result;
}

/* Writes at a path, after what was read so far is recorded: a read recorded after a write would be one of the run's own
 * doing. */
static bool write_value(stet_javascript_engine *e, stet_pathref path, stet_value value, stet_error *err) {
    stet_path copy = STET_PATH_INIT;
    stet_path_set(&copy, path);
    stet_status status = views_flush(e, err);
    if (status == STET_OK)
        status = stet_run_write(e->run, stet_path_ref(&copy), value, err);
    else
        stet_value_release(value);
    stet_path_release(&copy);
    return status == STET_OK;
}

static bool json_argument(JSContextRef context, JSValueRef argument, stet_value *out, stet_error *err) {
    JSStringRef s = JSValueToStringCopy(context, argument, NULL);
    stet_buf json = STET_BUF(0);
    bool ok = s && js_utf8(s, &json) && stet_json_read(stet_buf_cstr(&json), json.len, NULL, out, err) == STET_OK;
    if (!ok)
        stet_fail(err, STET_INVALID, "the value given to a cell can't be stored");
    if (s)
        JSStringRelease(s);
    stet_buf_release(&json);
    return ok;
}

/* write(cell, json) */
OF_VIEW(write_cell) {
    view *v = &e->views.views.at[i];
    stet_error err = STET_ERROR_INIT;
    stet_value value;
    if (!json_argument(context, argv[1], &value, &err) ||
        !write_value(e, path_at(&e->views, v->path, v->path_len), value, &err))
        return throw_error(e, context, exception, &err);
    return JSValueMakeUndefined(context);
}

/* send(cell, json): an event, after what was read so far is recorded. */
OF_VIEW(send_event) {
    view *v = &e->views.views.at[i];
    stet_error err = STET_ERROR_INIT;
    stet_value event;
    stet_path path = STET_PATH_INIT;
    stet_path_set(&path, path_at(&e->views, v->path, v->path_len));
    bool ok = json_argument(context, argv[1], &event, &err);
    stet_status status = ok ? views_flush(e, &err) : STET_INVALID;
    if (ok && status == STET_OK)
        status = stet_run_send(e->run, stet_path_ref(&path), event, &err);
    else if (ok)
        stet_value_release(event);
    stet_path_release(&path);
    return status == STET_OK ? JSValueMakeUndefined(context) : throw_error(e, context, exception, &err);
}

/* push(cell, json array): at the end of the array that is there; nothing, or null, is an empty one. */
OF_VIEW(push) {
    view *v = &e->views.views.at[i];
    stet_error err = STET_ERROR_INIT;
    stet_value items, there = stet_value_null();
    stet_path path = STET_PATH_INIT;
    stet_path_set(&path, path_at(&e->views, v->path, v->path_len));
    if (!json_argument(context, argv[1], &items, &err)) {
        stet_path_release(&path);
        return throw_error(e, context, exception, &err);
    }
    stet_status status = views_flush(e, &err);
    if (status == STET_OK)
        status = stet_run_read(e->run, stet_path_ref(&path), STET_SHALLOW, &there, &err);
    e->views.views.at[i].covered = true;
    if (status == STET_NOT_FOUND) {
        stet_error_clear(&err);
        there = stet_value_null();
        status = STET_OK;
    }
    if (status == STET_OK && stet_value_type(there) == STET_TYPE_NULL) {
        status = stet_run_write(e->run, stet_path_ref(&path), stet_value_retain(items), &err);
    } else if (status == STET_OK && stet_value_type(there) == STET_TYPE_ARRAY) {
        size_t n = stet_value_count(there);
        for (size_t k = 0; k < stet_value_count(items) && status == STET_OK; k++) {
            stet_path_push_index(&path, n + k);
            status = stet_run_write(e->run, stet_path_ref(&path), stet_value_retain(stet_value_at(items, k)), &err);
            stet_path_pop(&path);
        }
    } else if (status == STET_OK) {
        stet_value_release(items);
        stet_path_release(&path);
        return throw_text(context, exception, "push(): there is no array in the cell");
    }
    stet_value_release(items);
    stet_path_release(&path);
    return status == STET_OK ? JSValueMakeUndefined(context) : throw_error(e, context, exception, &err);
}

/* cellKey(cell, key): the cell below. */
OF_VIEW(cell_key) {
    key_text key;
    key_read(context, argv[1], &key);
    if (!key.ok) {
        key_release(&key);
        return throw_text(context, exception, "key(): no text that can be a key");
    }
    uint32_t path_len, path = add_path(&e->views, i, key.text, key.len, &path_len);
    key_release(&key);
    uint32_t c = add_view(&e->views, i, path, path_len, stet_value_null(), stet_value_null());
    e->views.views.at[c].cell = true;
    e->out[0] = CELL;
    e->out[1] = (double)(e->views.base + c);
    return JSValueMakeUndefined(context);
}

/* log(line): to the run's log, as much as a person would read. */
static JSValueRef log_line(JSContextRef context, MAYBE_UNUSED JSObjectRef function, MAYBE_UNUSED JSObjectRef self,
                           MAYBE_UNUSED size_t argc, const JSValueRef argv[], MAYBE_UNUSED JSValueRef *exception) {
    stet_javascript_engine *e = engine_current;
    if (!e->run || e->logged > MAX_LOG)
        return JSValueMakeUndefined(context);
    stet_buf line = STET_BUF(MAX_LOG);
    js_describe(context, argv[0], &line);
    if (line.overflow || e->logged + line.len > MAX_LOG) {
        stet_buf_clear(&line);
        stet_buf_str(&line, "(more than 1 MiB: the rest is left out)");
        e->logged = MAX_LOG;
    }
    stet_buf_char(&line, '\n');
    e->logged += line.len;
    stet_run_log(e->run, "console", stet_buf_cstr(&line), line.len);
    stet_buf_release(&line);
    return JSValueMakeUndefined(context);
}

void views_define(stet_javascript_engine *e, JSObjectRef host) {
    static const struct {
        const char *name;
        JSObjectCallAsFunctionCallback function;
    } functions[] = {{"fetch", fetch}, {"has", has},          {"keys", keys},    {"mark", mark},
                     {"text", text},   {"place", place},      {"peek", peek},    {"write", write_cell},
                     {"push", push},   {"cellKey", cell_key}, {"log", log_line}, {"send", send_event}};
    e->views.scratch = (stet_path)STET_PATH_INIT;
    e->views.paths = (stet_buf)STET_BUF(0);
    e->views.base = 1;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        JSStringRef name = JSStringCreateWithUTF8CString(functions[i].name);
        JSObjectRef function = JSObjectMakeFunctionWithCallback(e->context, name, functions[i].function);
        JSStringRelease(name);
        js_set(e->context, host, functions[i].name, function);
    }
}
