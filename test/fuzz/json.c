/* json.c - any bytes: the JSON reader accepts them, or refuses them with a position inside the text.
 *
 * What it accepts prints, pretty and canonical, to texts that read back as the same value; the canonical text is a
 * fixed point. The first byte chooses a depth limit, the rest is the text.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(stet_value v, stet_json_style style) {
    size_t len, again_len;
    char *text = stet_json_print(v, style, &len);
    stet_value back;
    stet_json_limits limits = {.max_depth = 1000};
    stet_status status = stet_json_read(text, len, &limits, &back, NULL);
    assert(status == STET_OK);
    assert(stet_value_equal(v, back) && stet_value_compare(v, back) == 0);
    char *again = stet_json_print(back, style, &again_len);
    assert(len == again_len && !memcmp(text, again, len));
    stet_free(text);
    stet_free(again);
    stet_value_release(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    stet_json_limits limits = {.max_depth = (size_t)data[0] + 1};
    const char *text = (const char *)data + 1;
    size_t len = size - 1, line, column;
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    stet_status status = stet_json_read(text, len, &limits, &v, &err);
    assert(status == err.status);
    if (status == STET_OK) {
        check_round_trip(v, STET_JSON_CANONICAL);
        check_round_trip(v, STET_JSON_PRETTY);
        bool found = stet_json_locate(text, len, "", &line, &column);
        assert(found);
        /* The first key of an object leads to its value. */
        size_t key_len;
        const char *key = stet_value_key_at(v, 0, &key_len);
        if (key && !memchr(key, 0, key_len)) {
            stet_buf pointer = STET_BUF(0);
            stet_buf_char(&pointer, '/');
            for (size_t i = 0; i < key_len; i++) {
                if (key[i] == '~' || key[i] == '/')
                    stet_buf_str(&pointer, key[i] == '~' ? "~0" : "~1");
                else
                    stet_buf_char(&pointer, key[i]);
            }
            found = stet_json_locate(text, len, stet_buf_cstr(&pointer), &line, &column);
            assert(found);
            stet_buf_release(&pointer);
        }
        stet_value_release(v);
    } else {
        assert(status == STET_INVALID || status == STET_LIMIT);
        int64_t offset = stet_value_as_int(stet_value_get(err.details, "offset"));
        assert(offset >= 0 && (size_t)offset <= len);
        assert(stet_value_as_int(stet_value_get(err.details, "line")) >= 1 &&
               stet_value_as_int(stet_value_get(err.details, "column")) >= 1);
        stet_json_locate(text, len, "/a/0/b", &line, &column);
        stet_error_clear(&err);
    }
    return 0;
}
