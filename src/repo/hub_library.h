/* hub_library.h - the functions of the library that plug-ins for hubs use, as one table.
 *
 * It is to hubs what module/library.h is to modules: a plug-in contains its own code alone, is given this table when it
 * is loaded (os/plugin.h), and calls the functions by their usual names through repo/hub_library_calls.h.
 */
#ifndef STET_EXEC_HUB_LIBRARY_H
#define STET_EXEC_HUB_LIBRARY_H

#include "base/json.h"
#include "os/clock.h"
#include "repo/hub_kind.h"

/* clang-format off */
#define STET_HUB_LIBRARY_FUNCTIONS(X)                                                                                  \
    X(stet_alloc) X(stet_alloc_zero) X(stet_free) X(stet_strdup) X(stet_strndup) X(stet_asprintf)                      \
    X(stet_fail) X(stet_hint) X(stet_error_move) X(stet_error_clear)                                                   \
    X(stet_buf_add_slow) X(stet_buf_str) X(stet_buf_printf) X(stet_buf_cstr) X(stet_buf_take) X(stet_buf_clear)        \
    X(stet_buf_release) X(stet_vec_grow)                                                                               \
    X(stet_hash_of) X(stet_hash_equal) X(stet_hash_print) X(stet_hasher_begin) X(stet_hasher_add) X(stet_hasher_end)   \
    X(stet_value_null) X(stet_value_release) X(stet_json_parse)                                                        \
    X(stet_record_read_any) X(stet_record_named) X(stet_record_type_name) X(stet_pack_each) X(stet_ref_wrong)          \
    X(stet_clock_monotonic_us) X(stet_clock_sleep_ms)
/* clang-format on */

typedef struct stet_hub_library {
#define STET_HUB_LIBRARY_MEMBER(name) __typeof__(&(name)) name;
    STET_HUB_LIBRARY_FUNCTIONS(STET_HUB_LIBRARY_MEMBER)
#undef STET_HUB_LIBRARY_MEMBER
} stet_hub_library;

/* The functions of the library that this code is part of. */
extern const stet_hub_library stet_hub_library_functions;

#endif
