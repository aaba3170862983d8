/* toml.c - the TOML reader: any bytes end in a value or an error; a value can be located, printed and read back. */

#include <stdlib.h>
#include <string.h>

#include "base/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1); /* exactly as large, so that reading beyond is found */
    memcpy(text, data, size);
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    size_t line, column;
    stet_status status = stet_toml_parse(text, size, &v, &err);
    if (status != err.status)
        abort();
    if (status == STET_OK) {
        size_t len;
        char *json = stet_json_print(v, STET_JSON_CANONICAL, &len);
        stet_value back;
        if (stet_json_parse(json, len, &back, NULL) != STET_OK || !stet_value_equal(v, back))
            abort();
        stet_free(json);
        stet_value_release(back);
        if (stet_value_count(v) && !stet_toml_locate(text, size, "", &line, &column))
            abort();
        /* Each key at the root, written out again, is read as that key. */
        for (size_t i = 0; i < stet_value_count(v); i++) {
            size_t key_len;
            const char *key = stet_value_key_at(v, i, &key_len);
            stet_buf b = STET_BUF(0);
            stet_toml_write_key(&b, key, key_len);
            stet_buf_str(&b, "=");
            stet_toml_write_string(&b, key, key_len);
            stet_value written, item;
            if (stet_toml_parse(b.data, b.len, &written, NULL) != STET_OK ||
                !stet_value_find(written, key, key_len, &item))
                abort();
            stet_value_release(written);
            stet_buf_release(&b);
        }
        stet_value_release(v);
    } else if (strncmp(err.message, "line ", 5) != 0 && status != STET_LIMIT) {
        abort();
    }
    stet_error_clear(&err);
    free(text);
    return 0;
}
