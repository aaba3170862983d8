/* javascript_run.h - runs `javascript` modules with a run of our own making. For the tests and the bench of javascript
 * modules. */
#ifndef TEST_JAVASCRIPT_RUN_H
#define TEST_JAVASCRIPT_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../engine.h"
#include "fake_run.h"
#include "module/javascript.h"
#include "module/kinds.h"

static inline void *js_open(const char *config) {
    void *state;
    stet_error err = STET_ERROR_INIT;
    char cwd[4096];
    stet_value settings = fake_parse(config);
    engine_find_plugins();
    if (!getcwd(cwd, sizeof cwd))
        abort();
    stet_module_host host = {.project_root = cwd, .config = settings};
    if (stet_module_javascript.open(&host, &state, &err) != STET_OK)
        abort();
    stet_value_release(settings);
    return state;
}

/* A descriptor from the text of a function. */
static inline stet_value js_module(const char *implementation) {
    stet_value module = stet_value_object();
    stet_value_put(&module, "type", stet_value_string("javascript"));
    stet_value_put(&module, "implementation", stet_value_string(implementation));
    return module;
}

/* Compiles and runs. `bindings` may be null: then the inputs are references. Consumes all but `event`. */
static inline void js_run_do(void *state, fake_run *r, stet_value module, stet_value inputs, stet_value bindings,
                             stet_value event) {
    stet_error err = STET_ERROR_INIT;
    stet_value node = stet_value_object();
    *r = fake_run_of(inputs);
    if (stet_value_type(bindings) == STET_TYPE_NULL)
        bindings = fake_references(inputs);
    stet_value_put(&node, "module", module);
    stet_value_put(&node, "inputs", stet_value_retain(bindings));
    r->base = (stet_run){
        .ops = &fake_run_ops, .node = node, .descriptor = module, .bindings = bindings, .event = event, .name = "test"};
    if (stet_module_javascript.start(state, &r->base, &err) != STET_OK) {
        fake_fail(&r->base, &err);
        stet_error_clear(&err);
    }
    stet_value_release(node);
    stet_value_release(bindings);
}

#endif
