/* dotenv.c - the reader of `.env` files: any bytes end in an object of texts or an error with a line. Written again in
 * single quotes, the values are the same. */

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/dotenv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1);
    memcpy(text, data, size);
    stet_error err = STET_ERROR_INIT;
    stet_value v, back;
    stet_status status = stet_dotenv_parse(text, size, &v, &err);
    if (status != err.status || (status != STET_OK && status != STET_LIMIT && strncmp(err.message, "line ", 5) != 0))
        abort();
    if (status == STET_OK) {
        stet_buf again = STET_BUF(0);
        bool plain = true;
        for (size_t i = 0; i < stet_value_count(v); i++) {
            stet_value one = stet_value_at(v, i);
            plain = plain && !strchr(stet_value_as_string(&one, NULL), '\'');
            stet_buf_printf(&again, "%s='%s'\n", stet_value_key_at(v, i, NULL), stet_value_as_string(&one, NULL));
        }
        if (plain &&
            (stet_dotenv_parse(stet_buf_cstr(&again), again.len, &back, NULL) != STET_OK || !stet_value_equal(v, back)))
            abort();
        if (plain)
            stet_value_release(back);
        stet_buf_release(&again);
        stet_value_release(v);
    }
    stet_error_clear(&err);
    free(text);
    return 0;
}
