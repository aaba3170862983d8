/* fake_run.h - a run of a module without a scheduler.
 *
 * Inputs come from a JSON text, and every read, write and line of the log is recorded, so that a test sees not only
 * what a function answers but also what it looked at.
 *
 *     fake_run r = fake_run_of(fake_parse("{\"a\": 1}"));
 *     r.base = (stet_run){.ops = &fake_run_ops, .descriptor = descriptor, .bindings = bindings, .name = "test"};
 *     if (kind->start(state, &r.base, &err) == STET_OK)
 *         free(fake_run_text(&r)); // and r.reads
 *     fake_run_release(&r);
 */
#ifndef TEST_FAKE_RUN_H
#define TEST_FAKE_RUN_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "scheduler/module.h"

typedef struct fake_run {
    stet_run base;
    stet_value inputs; /* values, where the scheduler would have links */
    stet_value result;
    stet_error error;
    bool failed, done;
    bool quiet;      /* reads are not written down */
    stet_buf reads;  /* "/value/a(r) /value(s)" */
    stet_buf writes; /* "/rows/0=1" */
    stet_buf log;
} fake_run;

static inline stet_status fake_peek(stet_run *run, stet_pathref path, stet_value *out, stet_error *err) {
    fake_run *r = (fake_run *)run;
    return stet_path_lookup(r->inputs, path, out) ? STET_OK : stet_fail(err, STET_NOT_FOUND, "nothing there");
}

static inline stet_status fake_read(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out,
                                    stet_error *err) {
    fake_run *r = (fake_run *)run;
    if (!r->quiet) {
        if (r->reads.len)
            stet_buf_char(&r->reads, ' ');
        stet_path_print(path, &r->reads);
        stet_buf_str(&r->reads, kind == STET_SHALLOW ? "(s)" : "(r)");
    }
    return fake_peek(run, path, out, err);
}

/* Puts a value at a path, parents included. */
static inline stet_value fake_put(stet_value root, stet_pathref path, size_t cursor, stet_value value) {
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len, index;
    if (!stet_path_next(path, &cursor, &scratch, &key, &len)) {
        stet_value_release(root);
        stet_buf_release(&scratch);
        return value;
    }
    if (stet_value_type(root) == STET_TYPE_ARRAY && stet_path_index(key, len, &index)) {
        stet_value child =
            index < stet_value_count(root) ? stet_value_retain(stet_value_at(root, index)) : stet_value_null();
        child = fake_put(child, path, cursor, value);
        if (index < stet_value_count(root))
            stet_value_put_at(&root, index, child);
        else
            stet_value_push(&root, child);
    } else {
        stet_value child;
        if (stet_value_type(root) != STET_TYPE_OBJECT) {
            stet_value_release(root);
            root = stet_value_object();
        }
        child = stet_value_find(root, key, len, &child) ? stet_value_retain(child) : stet_value_null();
        child = fake_put(child, path, cursor, value);
        stet_value_put_n(&root, key, len, child);
    }
    stet_buf_release(&scratch);
    return root;
}

static inline stet_status fake_write(stet_run *run, stet_pathref path, stet_value value, stet_error *err) {
    (void)err;
    fake_run *r = (fake_run *)run;
    if (r->writes.len)
        stet_buf_char(&r->writes, ' ');
    stet_path_print(path, &r->writes);
    stet_buf_char(&r->writes, '=');
    stet_json_write(&r->writes, value, STET_JSON_CANONICAL);
    r->inputs = fake_put(r->inputs, path, 0, value);
    return STET_OK;
}

static inline void fake_log(stet_run *run, const char *stream, const char *bytes, size_t len) {
    (void)stream;
    stet_buf_add(&((fake_run *)run)->log, bytes, len);
}

static inline void fake_succeed(stet_run *run, stet_value result) {
    fake_run *r = (fake_run *)run;
    assert(!r->done);
    r->done = true;
    r->result = result;
}

static inline void fake_fail(stet_run *run, const stet_error *err) {
    fake_run *r = (fake_run *)run;
    assert(!r->done);
    r->done = r->failed = true;
    stet_error_copy(&r->error, err);
}

static const stet_run_ops fake_run_ops = {.read = fake_read,
                                          .write = fake_write,
                                          .log = fake_log,
                                          .succeed = fake_succeed,
                                          .fail = fake_fail,
                                          .peek = fake_peek};

static inline stet_value fake_parse(const char *text) {
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    if (stet_json_parse(text, strlen(text), &v, &err) != STET_OK) {
        fprintf(stderr, "%s: %s\n", text, err.message);
        abort();
    }
    return v;
}

/* Each input as a reference to something of its name. */
static inline stet_value fake_references(stet_value inputs) {
    stet_value bindings = stet_value_type(inputs) == STET_TYPE_ARRAY ? stet_value_array() : stet_value_object();
    for (size_t i = 0; i < stet_value_count(inputs); i++) {
        size_t len;
        const char *key = stet_value_key_at(inputs, i, &len);
        stet_value ref = stet_value_object();
        stet_value_put(&ref, "$", stet_value_string("argument"));
        if (key)
            stet_value_put_n(&bindings, key, len, ref);
        else
            stet_value_push(&bindings, ref);
    }
    return bindings;
}

/* One that has not begun. Consumes the inputs. */
static inline fake_run fake_run_of(stet_value inputs) {
    return (fake_run){.inputs = inputs, .reads = STET_BUF(0), .writes = STET_BUF(0), .log = STET_BUF(0)};
}

static inline void fake_run_release(fake_run *r) {
    if (!r->failed)
        stet_value_release(r->result);
    stet_error_clear(&r->error);
    stet_value_release(r->inputs);
    stet_buf_release(&r->reads);
    stet_buf_release(&r->writes);
    stet_buf_release(&r->log);
}

/* The result as JSON, or "error: ...". Caller frees. */
static inline char *fake_run_text(const fake_run *r) {
    return r->failed ? stet_asprintf("error: %s", r->error.message)
                     : stet_json_print(r->result, STET_JSON_CANONICAL, NULL);
}

#endif
