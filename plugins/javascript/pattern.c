/* pattern.c - patterns written in JavaScript: the file runs once, with the functions of builder.js in its scope. */

#include "engine.h"

#include <string.h>

#include "base/json.h"

EMBED(javascript_builder, "plugins/javascript/builder.js");

static stet_status open_builder(stet_javascript_engine *e, stet_error *err) {
    JSContextRef c = e->context;
    JSValueRef made, exception = NULL, argument = e->serialize;
    if (e->build)
        return STET_OK;
    stet_status status = engine_evaluate(e, javascript_builder, strlen(javascript_builder), SCRIPT_REALM, &made, err);
    if (status != STET_OK)
        return status;
    JSValueRef parts = JSObjectCallAsFunction(c, (JSObjectRef)made, NULL, 1, &argument, &exception);
    if (!parts)
        return js_failure(e, SCRIPT_REALM, exception, STET_INTERNAL, err);
    e->build = (JSObjectRef)js_get(c, (JSObjectRef)parts, "evaluate");
    JSValueProtect(c, e->build);
    stet_buf names = STET_BUF(1024);
    js_describe(c, js_get(c, (JSObjectRef)parts, "names"), &names);
    e->build_names = stet_buf_take(&names, NULL);
    return STET_OK;
}

stet_status pattern_evaluate(stet_javascript_engine *e, const stet_javascript_source *source, stet_value *out,
                             stet_error *err) {
    stet_buf text = STET_BUF(2 * STET_JAVASCRIPT_MAX_TEXT);
    JSValueRef script, exception = NULL;
    engine_arm(e, &source->limits);
    stet_status status = open_builder(e, err);
    if (status == STET_OK && source->len > STET_JAVASCRIPT_MAX_TEXT)
        status = stet_fail(err, STET_LIMIT, "%s is larger than 16 MiB", source->file);
    if (status == STET_OK)
        status = source_of_file(source, e->build_names, &text, err);
    if (status == STET_OK)
        status = engine_compile(e, stet_buf_cstr(&text), text.len, source->file, &script, err);
    stet_buf_release(&text);
    if (status != STET_OK)
        return status;
    JSValueRef made = JSObjectCallAsFunction(e->context, e->build, NULL, 1, &script, &exception);
    status = engine_stopped(e, err);
    if (status != STET_OK) {
        stet_fail_in(err, "%s", source->file);
        return status;
    }
    if (!made)
        return js_failure(e, source->file, exception, STET_INVALID, err);
    return js_to_value(e, made, true, out, err);
}
