/* hub_library_calls.h - for plug-ins of hubs: calls of the library by name, through the table that the plug-in was given.
 *
 *     static void attach(const void *library) {
 *         if (!stet_hub_library_given)
 *             stet_hub_library_given = library;
 *     }
 *
 * A plug-in includes this header after all others of stet, and defines STET_HUB_LIBRARY_CALLS in one of its files before
 * it does so: that file gets the definitions.
 */
#ifndef STET_EXEC_HUB_LIBRARY_CALLS_H
#define STET_EXEC_HUB_LIBRARY_CALLS_H

#include "repo/hub_library.h"

extern const stet_hub_library *stet_hub_library_given;

#ifdef STET_HUB_LIBRARY_CALLS
const stet_hub_library *stet_hub_library_given;
/* Called by a function that is defined in a header, before the names below exist. */
void stet_buf_add_slow(stet_buf *b, const void *bytes, size_t len) {
    stet_hub_library_given->stet_buf_add_slow(b, bytes, len);
}
#endif

#ifndef __clang_analyzer__ /* which has a macro of this name already (base/error.h) */
#define stet_fail stet_hub_library_given->stet_fail
#endif
#define stet_alloc              stet_hub_library_given->stet_alloc
#define stet_alloc_zero         stet_hub_library_given->stet_alloc_zero
#define stet_free               stet_hub_library_given->stet_free
#define stet_strdup             stet_hub_library_given->stet_strdup
#define stet_strndup            stet_hub_library_given->stet_strndup
#define stet_asprintf           stet_hub_library_given->stet_asprintf
#define stet_hint               stet_hub_library_given->stet_hint
#define stet_error_move         stet_hub_library_given->stet_error_move
#define stet_error_clear        stet_hub_library_given->stet_error_clear
#define stet_buf_str            stet_hub_library_given->stet_buf_str
#define stet_buf_printf         stet_hub_library_given->stet_buf_printf
#define stet_buf_cstr           stet_hub_library_given->stet_buf_cstr
#define stet_buf_take           stet_hub_library_given->stet_buf_take
#define stet_buf_clear          stet_hub_library_given->stet_buf_clear
#define stet_buf_release        stet_hub_library_given->stet_buf_release
#define stet_vec_grow           stet_hub_library_given->stet_vec_grow
#define stet_hash_of            stet_hub_library_given->stet_hash_of
#define stet_hash_equal         stet_hub_library_given->stet_hash_equal
#define stet_hash_print         stet_hub_library_given->stet_hash_print
#define stet_hasher_begin       stet_hub_library_given->stet_hasher_begin
#define stet_hasher_add         stet_hub_library_given->stet_hasher_add
#define stet_hasher_end         stet_hub_library_given->stet_hasher_end
#define stet_value_null         stet_hub_library_given->stet_value_null
#define stet_value_release      stet_hub_library_given->stet_value_release
#define stet_json_parse         stet_hub_library_given->stet_json_parse
#define stet_record_read_any    stet_hub_library_given->stet_record_read_any
#define stet_record_named       stet_hub_library_given->stet_record_named
#define stet_record_type_name   stet_hub_library_given->stet_record_type_name
#define stet_pack_each          stet_hub_library_given->stet_pack_each
#define stet_ref_wrong          stet_hub_library_given->stet_ref_wrong
#define stet_clock_monotonic_us stet_hub_library_given->stet_clock_monotonic_us
#define stet_clock_sleep_ms     stet_hub_library_given->stet_clock_sleep_ms

#endif
