/* calls_kit.h - what tests share that make calls in a project of their own. After expect.h. */
#ifndef STET_TEST_CALLS_KIT_H
#define STET_TEST_CALLS_KIT_H

#include <unistd.h>
#include <uv.h>

#include "call/calls.h"
#include "os/file.h"
#include "project/project.h"

/* An empty project "p" in `top`, where the process is afterwards. */
static inline void kit_fresh_project(const char *top) {
    bool created;
    assert_int_equal(chdir(top), 0);
    OK(stet_file_remove_tree("p", &err));
    OK(stet_project_init("p", &created, &err));
    assert_int_equal(chdir("p"), 0);
}

/* For stet_executor_start: ends the loop that `ctx` is. */
static inline void kit_stop_loop(void *ctx, stet_call *c) {
    (void)c;
    uv_stop(ctx);
}

#endif
