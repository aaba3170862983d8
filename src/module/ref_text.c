/* ref_text.c - builtin functions that make texts out of values, and values out of texts. */

#include <string.h>

#include "module/ref.h"

#define MAX_TEXT ((size_t)64 << 20)

static stet_status text_arg(ref_call *call, const char *name, const char *otherwise, stet_value *out, stet_error *err) {
    stet_status status = ref_arg(call, name, STET_RECURSIVE, out, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(*out) == STET_TYPE_NULL && otherwise)
        *out = stet_value_string(otherwise); /* short: held inside the value, nothing to release */
    else if (stet_value_type(*out) != STET_TYPE_STRING)
        return ref_expected(err, name, "a string", *out);
    return STET_OK;
}

static stet_status give(stet_buf *text, stet_value *out, stet_error *err) {
    if (text->overflow)
        return stet_fail(err, STET_LIMIT, "the text is longer than %zu bytes", MAX_TEXT);
    *out = stet_value_string_n(stet_buf_cstr(text), text->len);
    return STET_OK;
}

static stet_status join(ref_call *call, stet_value *out, stet_error *err) {
    stet_value list, separator;
    stet_status status = text_arg(call, "separator", "", &separator, err);
    if (status == STET_OK)
        status = ref_arg(call, "values", STET_RECURSIVE, &list, err);
    if (status != STET_OK)
        return status;
    if (stet_value_type(list) != STET_TYPE_ARRAY)
        return ref_expected(err, "values", "an array", list);
    stet_buf text = STET_BUF(MAX_TEXT);
    for (size_t i = 0; i < stet_value_count(list); i++) {
        if (i > 0)
            ref_text(&text, separator);
        ref_text(&text, stet_value_at(list, i));
    }
    status = give(&text, out, err);
    stet_buf_release(&text);
    return status;
}
const ref_row ref_row_join = {"join", "values separator?", join, NULL, NULL};

static stet_status split(ref_call *call, stet_value *out, stet_error *err) {
    stet_value text, separator;
    stet_status status = text_arg(call, "text", NULL, &text, err);
    if (status == STET_OK)
        status = text_arg(call, "separator", "", &separator, err);
    if (status != STET_OK)
        return status;
    size_t len, by;
    const char *s = stet_value_as_string(&text, &len), *mark = stet_value_as_string(&separator, &by);
    *out = stet_value_array();
    if (by == 0) { /* into characters */
        for (size_t i = 0; i < len;) {
            size_t n = 1;
            while (i + n < len && ((unsigned char)s[i + n] & 0xC0) == 0x80)
                n++;
            stet_value_push(out, stet_value_string_n(s + i, n));
            i += n;
        }
        return STET_OK;
    }
    const char *end = s + len, *hit;
    while ((hit = memmem(s, (size_t)(end - s), mark, by)) != NULL) {
        stet_value_push(out, stet_value_string_n(s, (size_t)(hit - s)));
        s = hit + by;
    }
    stet_value_push(out, stet_value_string_n(s, (size_t)(end - s)));
    return STET_OK;
}
const ref_row ref_row_split = {"split", "text separator?", split, NULL, NULL};

/* One "{name/key}" of a template: reads that input, or that part of it. */
static stet_status placeholder(ref_call *call, const char *name, size_t len, stet_buf *text, stet_error *err) {
    const char *slash = memchr(name, '/', len);
    size_t name_len = slash ? (size_t)(slash - name) : len;
    stet_path path = STET_PATH_INIT;
    stet_value v;
    if (name_len == 0 || !stet_value_find(call->bindings, name, name_len, NULL))
        return stet_fail(err, STET_INVALID, "template: {%.*s} names no input", (int)(len < 100 ? len : 100), name);
    stet_path_push_n(&path, name, name_len);
    stet_path below = STET_PATH_INIT;
    stet_status status = stet_path_of_pointer(&below, name + name_len, len - name_len, err);
    if (status == STET_OK) {
        stet_buf_add(&path.buf, stet_path_ref(&below).bytes, stet_path_ref(&below).len);
        status = stet_run_read(call->run, stet_path_ref(&path), STET_RECURSIVE, &v, err);
        if (status == STET_OK)
            ref_text(text, v);
        else if (status == STET_NOT_FOUND) {
            if (err)
                stet_error_clear(err);
            stet_buf_str(text, "null");
            status = STET_OK;
        }
    }
    stet_path_release(&below);
    stet_path_release(&path);
    return status;
}

static stet_status format(ref_call *call, stet_value *out, stet_error *err) {
    stet_value template;
    stet_status status = text_arg(call, "template", NULL, &template, err);
    if (status != STET_OK)
        return status;
    size_t len;
    const char *s = stet_value_as_string(&template, &len);
    stet_buf text = STET_BUF(MAX_TEXT);
    for (size_t i = 0; i < len && status == STET_OK; i++) {
        if ((s[i] == '{' || s[i] == '}') && i + 1 < len && s[i + 1] == s[i]) {
            stet_buf_char(&text, s[i++]);
        } else if (s[i] == '{') {
            const char *close = memchr(s + i, '}', len - i);
            if (!close)
                status = stet_fail(err, STET_INVALID, "template: a { without a } (write {{ for a brace)");
            else
                status = placeholder(call, s + i + 1, (size_t)(close - s) - i - 1, &text, err);
            if (close)
                i = (size_t)(close - s);
        } else if (s[i] == '}') {
            status = stet_fail(err, STET_INVALID, "template: a } without a { (write }} for a brace)");
        } else {
            stet_buf_char(&text, s[i]);
        }
    }
    if (status == STET_OK)
        status = give(&text, out, err);
    stet_buf_release(&text);
    return status;
}
const ref_row ref_row_format = {"format", "template *", format, "*", NULL};
