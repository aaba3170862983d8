/* path.c - paths from outside: as encoded bytes, and as JSON Pointers. */

#include <stdlib.h>
#include <string.h>

#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encoded(stet_pathref p) {
    stet_buf scratch = STET_BUF(0), text = STET_BUF(0);
    const char *key;
    size_t len, keys = 0;
    stet_path again = STET_PATH_INIT;
    for (size_t cursor = 0; stet_path_next(p, &cursor, &scratch, &key, &len);) {
        stet_path_push_n(&again, key, len);
        keys++;
    }
    stet_path_print(p, &text);
    stet_pathref parent = stet_path_parent(p);
    if (!stet_path_is_prefix(parent, p) || stet_path_compare(stet_path_common(parent, p), parent) != 0)
        abort();
    if (stet_path_valid(p)) {
        if (stet_path_compare(p, stet_path_ref(&again)) != 0 || stet_path_depth(p) != keys)
            abort();
        stet_path back = STET_PATH_INIT;
        if (stet_path_of_pointer(&back, stet_buf_cstr(&text), text.len, NULL) != STET_OK ||
            stet_path_compare(p, stet_path_ref(&back)) != 0)
            abort();
        stet_value list = stet_path_to_value(p);
        if (stet_path_of_value(&back, list, NULL) != STET_OK || stet_path_compare(p, stet_path_ref(&back)) != 0)
            abort();
        stet_value_release(list);
        stet_path_release(&back);
    }
    stet_path_release(&again);
    stet_buf_release(&scratch);
    stet_buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1);
    memcpy(text, data, size);
    encoded((stet_pathref){text, size});
    stet_path p = STET_PATH_INIT;
    stet_error err = STET_ERROR_INIT;
    if (stet_path_of_pointer(&p, text, size, &err) == STET_OK) {
        if (!stet_path_valid(stet_path_ref(&p)))
            abort();
        encoded(stet_path_ref(&p));
        stet_buf b = STET_BUF(0);
        stet_path_print(stet_path_ref(&p), &b);
        if (b.len != size || memcmp(stet_buf_cstr(&b), text, size) != 0)
            abort(); /* one text per path */
        stet_buf_release(&b);
    }
    stet_error_clear(&err);
    stet_path_release(&p);
    free(text);
    return 0;
}
