/* library.h - the functions of the library that plug-ins use, as one table.
 *
 * A plug-in contains its own code alone. It is given this table when it is loaded (os/plugin.h) and calls the library
 * through it, so that a process has one copy of the library however many plug-ins it opens. Plug-ins include
 * module/library_calls.h, which lets them call the functions by their usual names.
 *
 * The table may change with any version: a plug-in is refused unless it was built with this version and a table of this
 * size. Add a function here and in module/library_calls.h; a plug-in that calls a function which is not in both does
 * not link.
 */
#ifndef STET_MODULE_LIBRARY_H
#define STET_MODULE_LIBRARY_H

#include "base/buf.h"
#include "base/json.h"
#include "base/path.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "scheduler/module.h"

/* clang-format off */
#define STET_LIBRARY_FUNCTIONS(X)                                                                                      \
    X(stet_alloc) X(stet_alloc_zero) X(stet_strdup)                                                                    \
    X(stet_fail) X(stet_fail_in) X(stet_hint) X(stet_hint_instead) X(stet_detail) X(stet_error_move)                   \
    X(stet_error_clear)                                                                                                \
    X(stet_buf_add_slow) X(stet_buf_str) X(stet_buf_printf) X(stet_buf_reserve) X(stet_buf_cstr) X(stet_buf_take)      \
    X(stet_buf_clear) X(stet_buf_release)                                                                              \
    X(stet_vec_grow)                                                                                                   \
    X(stet_utf8_valid) X(stet_utf8_valid_prefix)                                                                       \
    X(stet_value_type) X(stet_value_retain) X(stet_value_release) X(stet_value_null) X(stet_value_bool)                \
    X(stet_value_int) X(stet_value_double) X(stet_value_string)                                                        \
    X(stet_value_as_bool) X(stet_value_as_int) X(stet_value_as_double) X(stet_value_as_string)                         \
    X(stet_value_count) X(stet_value_at) X(stet_value_key_at) X(stet_value_get) X(stet_value_find)                     \
    X(stet_json_read) X(stet_json_write)                                                                               \
    X(stet_path_ref) X(stet_path_push_n) X(stet_path_push_index) X(stet_path_pop) X(stet_path_set)                     \
    X(stet_path_print) X(stet_path_index) X(stet_path_release)                                                         \
    X(stet_run_node) X(stet_run_descriptor) X(stet_run_bindings) X(stet_run_event) X(stet_run_read) X(stet_run_peek)   \
    X(stet_run_write) X(stet_run_send) X(stet_run_log) X(stet_run_succeed) X(stet_run_fail)
/* clang-format on */

typedef struct stet_library {
#define STET_LIBRARY_MEMBER(name) __typeof__(&(name)) name;
    STET_LIBRARY_FUNCTIONS(STET_LIBRARY_MEMBER)
#undef STET_LIBRARY_MEMBER
} stet_library;

/* The functions of the library that this code is part of. */
extern const stet_library stet_library_functions;

#endif
