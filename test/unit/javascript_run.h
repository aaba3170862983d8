/* javascript_run.h - runs `javascript` modules with a run of our own making: inputs come from a JSON text, and every
 * read, write and line of the console is written down. For the tests and the bench of javascript modules. */
#ifndef TEST_JAVASCRIPT_RUN_H
#define TEST_JAVASCRIPT_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "module/javascript.h"
#include "module/kinds.h"
#include "os/file.h"

/* The leak checker stops the threads of the engine and dies of it: everything else of AddressSanitizer is on. */
#if defined(__SANITIZE_ADDRESS__)
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
#endif

typedef struct js_run {
    stet_run base;
    stet_value inputs; /* values, where the scheduler would have links */
    stet_value result;
    stet_error error;
    bool failed, done;
    bool quiet;      /* reads are not written down */
    stet_buf reads;  /* "/value/a(r) /value(s)" */
    stet_buf writes; /* "/rows/0=1" */
    stet_buf log;
} js_run;

static inline stet_status js_run_peek(stet_run *run, stet_pathref path, stet_value *out, stet_error *err) {
    js_run *r = (js_run *)run;
    return stet_path_lookup(r->inputs, path, out) ? STET_OK : stet_fail(err, STET_NOT_FOUND, "nothing there");
}

static inline stet_status js_run_read(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out,
                                      stet_error *err) {
    js_run *r = (js_run *)run;
    if (!r->quiet) {
        if (r->reads.len)
            stet_buf_char(&r->reads, ' ');
        stet_path_print(path, &r->reads);
        stet_buf_str(&r->reads, kind == STET_SHALLOW ? "(s)" : "(r)");
    }
    return js_run_peek(run, path, out, err);
}

/* Puts a value at a path, parents included. */
static inline stet_value js_put(stet_value root, stet_pathref path, size_t cursor, stet_value value) {
    stet_buf scratch = STET_BUF(0);
    const char *key;
    size_t len, index;
    if (!stet_path_next(path, &cursor, &scratch, &key, &len)) {
        stet_release(root);
        stet_buf_release(&scratch);
        return value;
    }
    if (stet_typeof(root) == STET_ARRAY && stet_path_index(key, len, &index)) {
        stet_value child = index < stet_count(root) ? stet_retain(stet_at(root, index)) : stet_null();
        child = js_put(child, path, cursor, value);
        if (index < stet_count(root))
            stet_put_at(&root, index, child);
        else
            stet_push(&root, child);
    } else {
        stet_value child;
        if (stet_typeof(root) != STET_OBJECT) {
            stet_release(root);
            root = stet_object();
        }
        child = stet_find(root, key, len, &child) ? stet_retain(child) : stet_null();
        child = js_put(child, path, cursor, value);
        stet_put_n(&root, key, len, child);
    }
    stet_buf_release(&scratch);
    return root;
}

static inline stet_status js_run_write(stet_run *run, stet_pathref path, stet_value value, stet_error *err) {
    (void)err;
    js_run *r = (js_run *)run;
    if (r->writes.len)
        stet_buf_char(&r->writes, ' ');
    stet_path_print(path, &r->writes);
    stet_buf_char(&r->writes, '=');
    stet_json_write(&r->writes, value, STET_JSON_CANONICAL);
    r->inputs = js_put(r->inputs, path, 0, value);
    return STET_OK;
}

static inline void js_run_log(stet_run *run, const char *stream, const char *bytes, size_t len) {
    (void)stream;
    stet_buf_add(&((js_run *)run)->log, bytes, len);
}

static inline void js_run_succeed(stet_run *run, stet_value result) {
    js_run *r = (js_run *)run;
    r->done = true;
    r->result = result;
}

static inline void js_run_fail(stet_run *run, const stet_error *err) {
    js_run *r = (js_run *)run;
    r->done = r->failed = true;
    r->error = *err;
    r->error.details = stet_retain(err->details);
}

static const stet_run_ops js_run_ops = {.read = js_run_read,
                                        .write = js_run_write,
                                        .log = js_run_log,
                                        .succeed = js_run_succeed,
                                        .fail = js_run_fail,
                                        .peek = js_run_peek};

static inline stet_value js_parse(const char *text) {
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    if (stet_json_parse(text, strlen(text), &v, &err) != STET_OK) {
        fprintf(stderr, "%s: %s\n", text, err.message);
        abort();
    }
    return v;
}

static inline void js_find_plugins(void) {
    const char *build = getenv("STET_BUILD");
    if (build && !getenv("STET_PLUGINS")) {
        char *dir = stet_file_join(build, "lib/stet");
        setenv("STET_PLUGINS", dir, 1);
        stet_free(dir);
    }
}

static inline void *js_open(const char *config) {
    void *state;
    stet_error err = STET_ERROR_INIT;
    char cwd[4096];
    stet_value settings = js_parse(config);
    js_find_plugins();
    if (!getcwd(cwd, sizeof cwd))
        abort();
    stet_module_host host = {.project_root = cwd, .config = settings};
    if (stet_module_javascript.open(&host, &state, &err) != STET_OK)
        abort();
    stet_release(settings);
    return state;
}

/* A descriptor from the text of a function. */
static inline stet_value js_module(const char *implementation) {
    stet_value module = stet_object();
    stet_put(&module, "type", stet_string("javascript"));
    stet_put(&module, "implementation", stet_string(implementation));
    return module;
}

/* Each input as a reference to something of its name. */
static inline stet_value js_references(stet_value inputs) {
    stet_value bindings = stet_typeof(inputs) == STET_ARRAY ? stet_array() : stet_object();
    for (size_t i = 0; i < stet_count(inputs); i++) {
        size_t len;
        const char *key = stet_key_at(inputs, i, &len);
        stet_value ref = stet_object();
        stet_put(&ref, "$", stet_string("argument"));
        if (key)
            stet_put_n(&bindings, key, len, ref);
        else
            stet_push(&bindings, ref);
    }
    return bindings;
}

/* Prepares and runs. `bindings` may be null: then the inputs are references. Consumes all but `event`. */
static inline void js_run_do(void *state, js_run *r, stet_value module, stet_value inputs, stet_value bindings,
                             stet_value event) {
    void *program = NULL;
    stet_error err = STET_ERROR_INIT;
    stet_value node = stet_object();
    *r = (js_run){.inputs = inputs, .reads = STET_BUF(0), .writes = STET_BUF(0), .log = STET_BUF(0)};
    if (stet_typeof(bindings) == STET_NULL)
        bindings = js_references(inputs);
    stet_put(&node, "module", module);
    stet_put(&node, "inputs", stet_retain(bindings));
    r->base = (stet_run){
        .ops = &js_run_ops, .node = node, .descriptor = module, .bindings = bindings, .event = event, .name = "test"};
    if (stet_module_javascript.prepare(state, module, &program, &err) != STET_OK) {
        js_run_fail(&r->base, &err);
        stet_error_clear(&err);
    } else {
        if (stet_module_javascript.start(state, program, &r->base, &err) != STET_OK)
            abort();
        stet_module_javascript.forget(state, program);
    }
    stet_release(node);
    stet_release(bindings);
}

static inline void js_run_release(js_run *r) {
    if (!r->failed)
        stet_release(r->result);
    stet_error_clear(&r->error);
    stet_release(r->inputs);
    stet_buf_release(&r->reads);
    stet_buf_release(&r->writes);
    stet_buf_release(&r->log);
}

/* The result as JSON, or "error: ...". Caller frees. */
static inline char *js_run_text(const js_run *r) {
    return r->failed ? stet_asprintf("error: %s", r->error.message)
                     : stet_json_print(r->result, STET_JSON_CANONICAL, NULL);
}

#endif
