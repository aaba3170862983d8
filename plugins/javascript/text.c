/* text.c - values and strings between the engine (UTF-16) and stet (UTF-8). */

#include "engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* UTF-8 that is valid, to UTF-16. */
static size_t widen(const char *utf8, size_t len, JSChar *out) {
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)utf8[i];
        if (c < 0x80) {
            out[n++] = c;
            i++;
            continue;
        }
        uint32_t point = c >= 0xF0 ? c & 0x07 : c >= 0xE0 ? c & 0x0F : c & 0x1F;
        size_t more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
        for (size_t k = 1; k <= more && i + k < len; k++)
            point = point << 6 | ((unsigned char)utf8[i + k] & 0x3F);
        i += more + 1;
        if (point >= 0x10000) {
            out[n++] = (JSChar)(0xD800 + ((point - 0x10000) >> 10));
            out[n++] = (JSChar)(0xDC00 + ((point - 0x10000) & 0x3FF));
        } else {
            out[n++] = (JSChar)point;
        }
    }
    return n;
}

JSStringRef js_string(const char *utf8, size_t len) {
    /* The engine's own conversion ends at a NUL; it is the faster one, as it keeps Latin text in bytes. */
    if (utf8[len] == '\0' && memchr(utf8, 0, len) == NULL)
        return JSStringCreateWithUTF8CString(utf8);
    JSChar *wide = stet_alloc((len + 1) * sizeof *wide);
    JSStringRef s = JSStringCreateWithCharacters(wide, widen(utf8, len, wide));
    free(wide);
    return s;
}

JSValueRef js_text(JSContextRef context, const char *utf8, size_t len) {
    JSStringRef s = js_string(utf8, len);
    JSValueRef v = JSValueMakeString(context, s);
    JSStringRelease(s);
    return v;
}

bool js_utf8(JSStringRef string, stet_buf *out) {
    size_t room = JSStringGetMaximumUTF8CStringSize(string);
    char *at = stet_buf_reserve(out, room + 1);
    if (!at)
        return false;
    size_t n = JSStringGetUTF8CString(string, at, room); /* with the NUL */
    if (n == 0 || !stet_utf8_valid(at, n - 1)) {
        at[0] = '\0';
        return false;
    }
    out->len += n - 1;
    return true;
}

/* Of a string that is too long for `out`, the beginning. */
static JSStringRef cut(JSStringRef s, const stet_buf *out) {
    size_t most = out->max > out->len ? (out->max - out->len) / 4 : 0;
    if (out->max == 0 || most == 0 || JSStringGetLength(s) <= most)
        return s;
    const JSChar *wide = JSStringGetCharactersPtr(s);
    bool half = wide[most - 1] >= 0xD800 && wide[most - 1] < 0xDC00; /* of a pair */
    JSStringRef begins = JSStringCreateWithCharacters(wide, most - half);
    JSStringRelease(s);
    return begins;
}

void js_describe(JSContextRef context, JSValueRef value, stet_buf *out) {
    JSStringRef s = value ? JSValueToStringCopy(context, value, NULL) : NULL;
    if (s)
        s = cut(s, out);
    if (!s || !js_utf8(s, out))
        stet_buf_str(out, "(something that has no text)");
    if (s)
        JSStringRelease(s);
}

JSValueRef js_get(JSContextRef context, JSObjectRef object, const char *key) {
    JSStringRef s = JSStringCreateWithUTF8CString(key);
    JSValueRef v = JSObjectGetProperty(context, object, s, NULL);
    JSStringRelease(s);
    return v ? v : JSValueMakeUndefined(context);
}

void js_set(JSContextRef context, JSObjectRef object, const char *key, JSValueRef value) {
    JSStringRef s = JSStringCreateWithUTF8CString(key);
    JSObjectSetProperty(context, object, s, value, kJSPropertyAttributeNone, NULL);
    JSStringRelease(s);
}

JSValueRef js_of_scalar(JSContextRef context, stet_value v) {
    size_t len;
    const char *text;
    switch (stet_value_type(v)) {
    case STET_TYPE_BOOL:
        return JSValueMakeBoolean(context, stet_value_as_bool(v));
    case STET_TYPE_INT:
        if (stet_value_as_int(v) > (int64_t)1 << 53 || stet_value_as_int(v) < -((int64_t)1 << 53))
            return JSBigIntCreateWithInt64(context, stet_value_as_int(v), NULL);
        return JSValueMakeNumber(context, (double)stet_value_as_int(v));
    case STET_TYPE_DOUBLE:
        return JSValueMakeNumber(context, stet_value_as_double(v));
    case STET_TYPE_STRING:
        text = stet_value_as_string(&v, &len);
        return js_text(context, text, len);
    default:
        return JSValueMakeNull(context);
    }
}

bool js_json(stet_value v, stet_buf *out) {
    size_t from = out->len, run = 0;
    stet_json_write(out, v, STET_JSON_CANONICAL);
    /* Sixteen digits in a row may be such an integer, or part of a text: then the reader only takes a little longer. */
    for (size_t i = from; i < out->len; i++) {
        run = out->data[i] >= '0' && out->data[i] <= '9' ? run + 1 : 0;
        if (run >= 16)
            return true;
    }
    return false;
}

stet_status js_to_value(stet_javascript_engine *e, JSValueRef value, bool text, stet_value *out, stet_error *err) {
    if (text) {
        JSStringRef s = JSValueToStringCopy(e->context, value, NULL);
        stet_buf json = STET_BUF(0);
        stet_status status;
        if (!s || !js_utf8(s, &json))
            status = stet_fail(err, STET_INVALID, "the result is no text that can be stored");
        else
            status = stet_json_read(stet_buf_cstr(&json), json.len, NULL, out, err);
        stet_buf_release(&json);
        if (s)
            JSStringRelease(s);
        return status;
    }
    if (JSValueIsNumber(e->context, value))
        return stet_value_double(JSValueToNumber(e->context, value, NULL), out, err);
    *out =
        JSValueIsBoolean(e->context, value) ? stet_value_bool(JSValueToBoolean(e->context, value)) : stet_value_null();
    return STET_OK;
}
