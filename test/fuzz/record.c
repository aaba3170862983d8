/* record.c - records of calls and the texts in them: bytes that are read as a record make the same record again.
 *
 * A normal form and a canonical URI are their own normal form. Exact ids tell apart texts that are the same in normal
 * form.
 */

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "repo/record.h"
#include "repo/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static bool same(const stet_buf *b, const char *text, size_t len) {
    return b->len == len && (len == 0 || memcmp(b->data, text, len) == 0);
}

static void as_record(const char *bytes, size_t len) {
    stet_hash id = stet_hash_of(bytes, len), again;
    for (int type = STET_RECORD_DATUM; type < STET_RECORD_TYPES; type++) {
        stet_value r;
        if (stet_record_read(id, bytes, len, (stet_record_type)type, &r, NULL) != STET_OK)
            continue;
        must(stet_record_make(r, (stet_record_type)type, NULL, &again, NULL) == STET_OK && stet_hash_equal(id, again));
        stet_record_type said;
        must(stet_record_says(bytes, len, &said) && said == (stet_record_type)type);
        stet_record_list names = {0};
        stet_record_named(r, said, &names);
        stet_vec_release(&names);
        stet_value_release(r);
    }
}

static void as_text(const char *text, size_t len) {
    stet_buf form = STET_BUF(0), again = STET_BUF(0);
    stet_text_nfc(text, len, &form);
    stet_text_nfc(stet_buf_cstr(&form), form.len, &again);
    must(same(&again, form.data, form.len));
    must(stet_text_is_nfc(stet_buf_cstr(&form), form.len) && stet_utf8_valid(stet_buf_cstr(&form), form.len));
    stet_value one = stet_value_string_n(text, len), two = stet_value_string_n(stet_buf_cstr(&form), form.len);
    stet_hash a = {0}, b = {0};
    must(stet_datum_id(one, NULL, &a, NULL) == STET_OK && stet_datum_id(two, NULL, &b, NULL) == STET_OK);
    must(stet_hash_equal(a, b));
    must(stet_datum_exact_id(one, NULL, &a, NULL) == STET_OK && stet_datum_exact_id(two, NULL, &b, NULL) == STET_OK);
    must(stet_hash_equal(a, b) == same(&form, text, len));
    stet_value_release(one);
    stet_value_release(two);
    stet_buf_release(&form);
    stet_buf_release(&again);
}

static void as_uri(const char *text, size_t len) {
    stet_buf form = STET_BUF(0), again = STET_BUF(0);
    if (!stet_text_uri(text, len, &form)) {
        must(!stet_text_uri(form.data, form.len, &again) && same(&again, form.data, form.len));
        stet_hash id;
        stet_status status = stet_datum_uri_id(text, len, NULL, &id, NULL);
        must((status == STET_OK) == (strncmp(form.data, "dml:", 4) != 0));
    }
    stet_buf_release(&form);
    stet_buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size ? size : 1);
    memcpy(text, data, size);
    as_record(text, size);
    if (stet_utf8_valid(text, size))
        as_text(text, size);
    as_uri(text, size);
    free(text);
    return 0;
}
