/* library_calls.h - for plug-ins: calls of the library by name, through the table that the plug-in was given.
 *
 *     static void attach(const void *library) {
 *         if (!stet_library_given)
 *             stet_library_given = library;
 *     }
 *
 * A plug-in includes this header after all others of stet, and defines STET_LIBRARY_CALLS in one of its files before it
 * does so: that file gets the definitions.
 */
#ifndef STET_MODULE_LIBRARY_CALLS_H
#define STET_MODULE_LIBRARY_CALLS_H

#include "module/library.h"

extern const stet_library *stet_library_given;

#ifdef STET_LIBRARY_CALLS
const stet_library *stet_library_given;
/* Called by a function that is defined in a header, before the names below exist. */
void stet_buf_add_slow(stet_buf *b, const void *bytes, size_t len) {
    stet_library_given->stet_buf_add_slow(b, bytes, len);
}
#endif

#ifndef __clang_analyzer__ /* which has a macro of this name already (base/error.h) */
#define stet_fail stet_library_given->stet_fail
#endif
#define stet_alloc             stet_library_given->stet_alloc
#define stet_alloc_zero        stet_library_given->stet_alloc_zero
#define stet_strdup            stet_library_given->stet_strdup
#define stet_fail_in           stet_library_given->stet_fail_in
#define stet_hint              stet_library_given->stet_hint
#define stet_hint_instead      stet_library_given->stet_hint_instead
#define stet_detail            stet_library_given->stet_detail
#define stet_error_move        stet_library_given->stet_error_move
#define stet_error_clear       stet_library_given->stet_error_clear
#define stet_buf_str           stet_library_given->stet_buf_str
#define stet_buf_printf        stet_library_given->stet_buf_printf
#define stet_buf_reserve       stet_library_given->stet_buf_reserve
#define stet_buf_cstr          stet_library_given->stet_buf_cstr
#define stet_buf_take          stet_library_given->stet_buf_take
#define stet_buf_clear         stet_library_given->stet_buf_clear
#define stet_buf_release       stet_library_given->stet_buf_release
#define stet_vec_grow          stet_library_given->stet_vec_grow
#define stet_utf8_valid        stet_library_given->stet_utf8_valid
#define stet_utf8_valid_prefix stet_library_given->stet_utf8_valid_prefix
#define stet_value_type        stet_library_given->stet_value_type
#define stet_value_retain      stet_library_given->stet_value_retain
#define stet_value_release     stet_library_given->stet_value_release
#define stet_value_null        stet_library_given->stet_value_null
#define stet_value_bool        stet_library_given->stet_value_bool
#define stet_value_int         stet_library_given->stet_value_int
#define stet_value_double      stet_library_given->stet_value_double
#define stet_value_string      stet_library_given->stet_value_string
#define stet_value_as_bool     stet_library_given->stet_value_as_bool
#define stet_value_as_int      stet_library_given->stet_value_as_int
#define stet_value_as_double   stet_library_given->stet_value_as_double
#define stet_value_as_string   stet_library_given->stet_value_as_string
#define stet_value_count       stet_library_given->stet_value_count
#define stet_value_at          stet_library_given->stet_value_at
#define stet_value_key_at      stet_library_given->stet_value_key_at
#define stet_value_get         stet_library_given->stet_value_get
#define stet_value_find        stet_library_given->stet_value_find
#define stet_json_read         stet_library_given->stet_json_read
#define stet_json_write        stet_library_given->stet_json_write
#define stet_path_ref          stet_library_given->stet_path_ref
#define stet_path_push_n       stet_library_given->stet_path_push_n
#define stet_path_push_index   stet_library_given->stet_path_push_index
#define stet_path_pop          stet_library_given->stet_path_pop
#define stet_path_set          stet_library_given->stet_path_set
#define stet_path_print        stet_library_given->stet_path_print
#define stet_path_index        stet_library_given->stet_path_index
#define stet_path_release      stet_library_given->stet_path_release
#define stet_run_node          stet_library_given->stet_run_node
#define stet_run_descriptor    stet_library_given->stet_run_descriptor
#define stet_run_bindings      stet_library_given->stet_run_bindings
#define stet_run_event         stet_library_given->stet_run_event
#define stet_run_read          stet_library_given->stet_run_read
#define stet_run_peek          stet_library_given->stet_run_peek
#define stet_run_write         stet_library_given->stet_run_write
#define stet_run_send          stet_library_given->stet_run_send
#define stet_run_log           stet_library_given->stet_run_log
#define stet_run_succeed       stet_library_given->stet_run_succeed
#define stet_run_fail          stet_library_given->stet_run_fail

#endif
