/* adapter_reply.c - what goes to an adapter and what comes back, as text. */
#include <string.h>

#include "base/text.h"
#include "call/adapter.h"
#include "repo/record.h"

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Escapes resolved; false for a broken one and for what is no text or has a NUL in it. `plus`: a + is a space. */
static bool unescape(const char *s, size_t len, bool plus, stet_value *out) {
    stet_buf b = STET_BUF(0);
    bool fine = true;
    for (size_t i = 0; i < len && fine; i++) {
        if (s[i] != '%') {
            stet_buf_char(&b, plus && s[i] == '+' ? ' ' : s[i]);
            continue;
        }
        int high = i + 2 < len ? hex_digit(s[i + 1]) : -1, low = i + 2 < len ? hex_digit(s[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0))
            fine = false;
        else
            stet_buf_char(&b, (char)(high << 4 | low));
        i += 2;
    }
    fine = fine && stet_value_string_checked(stet_buf_cstr(&b), b.len, out, NULL) == STET_OK;
    stet_buf_release(&b);
    return fine;
}

static bool name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

stet_status stet_adapter_uri_parse(const char *uri, stet_adapter_uri *out, stet_error *err) {
    static const char form[] = "write dml+exec://ADAPTER/PATH?QUERY, as in dml+exec://stet-exec-local/sort?arg=-n";
    const size_t scheme = sizeof STET_ADAPTER_SCHEME - 1;
    size_t len = strlen(uri);
    if (len > STET_ADAPTER_URI_MAX)
        return stet_fail(err, STET_LIMIT, "the URI of a function has %zu bytes, more than the %zu allowed", len,
                         STET_ADAPTER_URI_MAX);
    if (strncmp(uri, STET_ADAPTER_SCHEME, scheme) != 0) {
        stet_fail(err, STET_INVALID, "%.200s is not the URI of a function", uri);
        stet_hint(err, "%s", form);
        return STET_INVALID;
    }
    const char *name = uri + scheme, *slash = name + strcspn(name, "/?#");
    size_t name_len = (size_t)(slash - name);
    bool good = name_len > 0 && name_len < sizeof out->adapter && name[0] != '.' && name[0] != '-';
    for (size_t i = 0; i < name_len; i++)
        good = good && name_char(name[i]);
    if (!good) {
        stet_fail(err, STET_INVALID, "%.200s: the adapter is not the bare name of a program", uri);
        stet_hint(err, "%s", form);
        return STET_INVALID;
    }
    if (strchr(uri, '#')) {
        stet_fail(err, STET_INVALID, "%.200s: a function has no fragment", uri);
        stet_hint(err, "write %%23 for a # that is meant");
        return STET_INVALID;
    }
    const char *path = *slash == '/' ? slash + 1 : slash, *end = path + strcspn(path, "?");
    stet_value text, query = stet_value_array();
    if (!unescape(path, (size_t)(end - path), false, &text)) {
        stet_value_release(query);
        return stet_fail(err, STET_INVALID, "%.200s: its path has an escape that is none, or is no UTF-8", uri);
    }
    for (const char *p = *end ? end + 1 : end; *p;) {
        const char *stop = p + strcspn(p, "&"), *equal = memchr(p, '=', (size_t)(stop - p));
        stet_value pair = stet_value_array(), key, value;
        bool fine = unescape(p, (size_t)((equal ? equal : stop) - p), true, &key);
        if (fine) {
            stet_value_push(&pair, key);
            const char *from = equal ? equal + 1 : stop;
            fine = unescape(from, (size_t)(stop - from), true, &value);
            if (fine)
                stet_value_push(&pair, value);
        }
        if (!fine) {
            stet_value_release(pair);
            stet_value_release(query);
            stet_value_release(text);
            return stet_fail(err, STET_INVALID, "%.200s: its query has an escape that is none, or is no UTF-8", uri);
        }
        stet_value_push(&query, pair);
        p = *stop ? stop + 1 : stop;
    }
    memcpy(out->adapter, name, name_len);
    out->adapter[name_len] = 0;
    out->path = stet_strdup(stet_value_as_string(&text, NULL));
    out->query = query;
    stet_value_release(text);
    return STET_OK;
}

void stet_adapter_uri_release(stet_adapter_uri *u) {
    stet_free(u->path);
    stet_value_release(u->query);
    *u = (stet_adapter_uri){0};
}

stet_value stet_adapter_request_value(const stet_adapter_request *r) {
    stet_value v = stet_value_object(), inputs = stet_value_array(), snapshot = stet_value_object();
    for (size_t i = 0; i < r->input_count; i++)
        stet_value_push(&inputs, stet_hash_text(r->inputs[i]));
    stet_value_put(&snapshot, "remote", stet_value_string(r->remote));
    stet_value_put(&snapshot, "ref", stet_value_string(r->ref));
    stet_value_put(&v, "v", stet_value_int(2));
    stet_value_put(&v, "op", stet_value_string(r->cancel ? "cancel" : "poll"));
    stet_value_put(&v, "node", stet_hash_text(r->node));
    stet_value_put(&v, "function", stet_value_string(r->function));
    stet_value_put(&v, "inputs", inputs);
    stet_value_put(&v, "snapshot", snapshot);
    stet_value_put(&v, "execution", stet_value_string(r->execution));
    stet_value_put(&v, "key", stet_value_string(r->key));
    stet_value_put(&v, "token", stet_value_retain(r->token));
    stet_value_put(&v, "code",
                   stet_value_type(r->code) == STET_TYPE_OBJECT ? stet_value_retain(r->code) : stet_value_object());
    stet_value_put(&v, "tries", stet_value_int(r->tries));
    return v;
}

void stet_adapter_reply_release(stet_adapter_reply *r) {
    stet_value_release(r->token);
    stet_value_release(r->note);
    stet_error_clear(&r->error);
    *r = (stet_adapter_reply){0};
}

/* NULL, or what is wrong with it. */
static const char *take_pending(stet_value v, stet_adapter_reply *out) {
    stet_value token, after, progress;
    size_t len = 0;
    if (!stet_value_find(v, "token", 5, &token) || stet_value_type(token) != STET_TYPE_STRING)
        return "it says pending and has no token, which is a text";
    stet_value_as_string(&token, &len);
    if (len > STET_ADAPTER_TOKEN_MAX)
        return "its token is longer than 64 KiB";
    if (stet_value_find(v, "poll_after_ms", 13, &after)) {
        if (stet_value_type(after) != STET_TYPE_INT || stet_value_as_int(after) < 0)
            return "its poll_after_ms is no number of milliseconds";
        out->poll_after_ms =
            stet_value_as_int(after) < STET_ADAPTER_AFTER_MAX ? stet_value_as_int(after) : STET_ADAPTER_AFTER_MAX;
    }
    if (stet_value_find(v, "progress", 8, &progress) && stet_value_type(progress) != STET_TYPE_NULL) {
        stet_value done = stet_value_get(progress, "done"), total = stet_value_get(progress, "total"),
                   note = stet_value_get(progress, "note");
        if (stet_value_type(progress) != STET_TYPE_OBJECT ||
            (stet_value_type(done) != STET_TYPE_INT && stet_value_type(done) != STET_TYPE_NULL) ||
            (stet_value_type(total) != STET_TYPE_INT && stet_value_type(total) != STET_TYPE_NULL) ||
            (stet_value_type(note) != STET_TYPE_STRING && stet_value_type(note) != STET_TYPE_NULL))
            return "its progress is no object of done, total and note";
        out->done = stet_value_type(done) == STET_TYPE_INT ? stet_value_as_int(done) : -1;
        out->total = stet_value_type(total) == STET_TYPE_INT ? stet_value_as_int(total) : -1;
        if (stet_value_type(note) == STET_TYPE_STRING && stet_value_as_string(&note, &len) &&
            len <= STET_ADAPTER_NOTE_MAX)
            out->note = stet_value_retain(note);
    }
    out->status = STET_ADAPTER_PENDING;
    out->token = stet_value_retain(token);
    return NULL;
}

static const char *take_done(stet_value v, stet_adapter_reply *out) {
    stet_value outcome = stet_value_get(v, "outcome"), result = stet_value_get(v, "result");
    size_t len = 0;
    const char *hex = stet_value_type(result) == STET_TYPE_STRING ? stet_value_as_string(&result, &len) : NULL;
    if (!stet_value_text_is(outcome, "ok") && !stet_value_text_is(outcome, "error"))
        return "it says done, and its outcome is neither \"ok\" nor \"error\"";
    if (!hex || !stet_hash_of_hex(hex, len, &out->result))
        return "it says done, and its result is not the id of a DAG";
    bool ok = stet_value_text_is(outcome, "ok");
    stet_value keep, retry;
    bool says_keep = stet_value_find(v, "keep", 4, &keep), says_retry = stet_value_find(v, "retry", 5, &retry);
    if ((says_keep && stet_value_type(keep) != STET_TYPE_BOOL) ||
        (says_retry && stet_value_type(retry) != STET_TYPE_BOOL))
        return "its keep and retry are not true or false";
    out->passing = says_keep && !stet_value_as_bool(keep);
    out->retry = says_retry && stet_value_as_bool(retry);
    if ((out->passing && ok) || (out->retry && !out->passing))
        return "only an error is not kept, and only what is not kept is tried again";
    out->status = ok ? STET_ADAPTER_DONE_OK : STET_ADAPTER_DONE_ERROR;
    return NULL;
}

void stet_adapter_reply_parse(const char *adapter, const char *bytes, size_t len, stet_adapter_reply *out) {
    *out = (stet_adapter_reply){.status = STET_ADAPTER_FAILED_TRANSIENT, .poll_after_ms = -1, .done = -1, .total = -1};
    stet_error inner = STET_ERROR_INIT;
    stet_value v = stet_value_null();
    const char *wrong = NULL;
    if (len > STET_ADAPTER_REPLY_MAX)
        wrong = "it is longer than 1 MiB";
    else if (len == 0)
        wrong = "there is none";
    else if (stet_json_parse(bytes, len, &v, &inner) != STET_OK)
        wrong = inner.message;
    else if (stet_value_type(v) != STET_TYPE_OBJECT || stet_value_type(stet_value_get(v, "v")) != STET_TYPE_INT ||
             stet_value_as_int(stet_value_get(v, "v")) != 1)
        wrong = "it is no object with \"v\": 1";
    else if (stet_value_text_is(stet_value_get(v, "status"), "pending"))
        wrong = take_pending(v, out);
    else if (stet_value_text_is(stet_value_get(v, "status"), "done"))
        wrong = take_done(v, out);
    else
        wrong = "its status is neither \"pending\" nor \"done\"";
    if (wrong) {
        stet_value_release(out->note);
        *out =
            (stet_adapter_reply){.status = STET_ADAPTER_FAILED_TRANSIENT, .poll_after_ms = -1, .done = -1, .total = -1};
        stet_fail(&out->error, STET_BUSY, "the adapter %s gave a reply that can't be used: %s", adapter, wrong);
    }
    stet_value_release(v);
    stet_error_clear(&inner);
}
