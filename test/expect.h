/* expect.h - cmocka, and two ways to say what a call must return. Include it first in a test program.
 *
 *     OK(stet_json_parse(text, len, &v, &err));                       // STET_OK, or the message is shown
 *     FAILS(stet_json_parse("[", 1, &v, &err), STET_INVALID, "line"); // this status, and this text in the message
 *
 * Both use the program's `err`, which is clear before and after.
 */
#ifndef STET_TEST_EXPECT_H
#define STET_TEST_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stet.h"

static stet_error err __attribute__((unused));

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        stet_status status_ = (call);                                                                                  \
        if (status_ != STET_OK)                                                                                        \
            print_message("# %s: %s: %s\n", #call, stet_status_name(status_), err.message);                            \
        assert_int_equal(status_, STET_OK);                                                                            \
    } while (0)

#define FAILS(call, expected, text)                                                                                    \
    do {                                                                                                               \
        stet_error_clear(&err);                                                                                        \
        stet_status status_ = (call);                                                                                  \
        if (status_ != (expected) || !strstr(err.message, text))                                                       \
            print_message("# %s: %s: %s\n", #call, stet_status_name(status_), err.message);                            \
        assert_int_equal(status_, expected);                                                                           \
        assert_int_equal(err.status, expected);                                                                        \
        assert_non_null(strstr(err.message, text));                                                                    \
        stet_error_clear(&err);                                                                                        \
    } while (0)

#endif
