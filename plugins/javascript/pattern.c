/* pattern.c - patterns written in JavaScript: the file runs once, with the functions of builder.js in its scope. */

#include "engine.h"

#include <string.h>

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

/* With what asks for references; as it stands if that can't be read. */
static stet_status compile_asked(stet_javascript_engine *e, const stet_javascript_source *source, stet_buf *text,
                                 const source_tokens *tokens, JSValueRef *script, stet_error *err) {
    stet_buf asked = STET_BUF(4 * STET_JAVASCRIPT_MAX_TEXT);
    stet_status status = engine_compile(e, stet_buf_cstr(text), text->len, source->file, script, err);
    if (status != STET_OK)
        return status;
    truth_ask(stet_buf_cstr(text), text->len, tokens->at, tokens->len, &asked);
    JSStringRef all = js_string(stet_buf_cstr(&asked), asked.len);
    if (!asked.overflow && JSCheckScriptSyntax(e->context, all, NULL, 1, NULL)) {
        stet_buf was = *text;
        *text = asked;
        asked = was;
        e->asked = stet_buf_cstr(text);
        status = engine_evaluate(e, e->asked, text->len, source->file, script, err);
    }
    JSStringRelease(all);
    stet_buf_release(&asked);
    return status;
}

static stet_status evaluate(stet_javascript_engine *e, const stet_javascript_source *source, stet_buf *text,
                            source_tokens *tokens, stet_value *out, stet_error *err) {
    JSValueRef script, exception = NULL;
    engine_arm(e, &source->limits);
    stet_status status = open_builder(e, err);
    if (status == STET_OK)
        js_text_begins(e, strlen(FILE_LEAD) + strlen(e->build_names), source->text, source->len);
    if (status == STET_OK && source->len > STET_JAVASCRIPT_MAX_TEXT)
        status = stet_fail(err, STET_LIMIT, "%s is larger than 16 MiB", source->file);
    if (status == STET_OK)
        status = source_of_file(source, e->build_names, text, tokens, err);
    if (status == STET_OK)
        status = compile_asked(e, source, text, tokens, &script, err);
    if (status != STET_OK)
        return status;
    JSValueRef made = JSObjectCallAsFunction(e->context, e->build, NULL, 1, &script, &exception);
    status = engine_stopped(e, err);
    if (status == STET_LIMIT) { /* a script has no "limits" of its own */
        stet_fail_in(err, "%s: the script of the pattern", source->file);
        stet_hint_instead(err, "is there a loop without an end? Otherwise raise time_limit_ms or memory_limit_mb in "
                               "[module.javascript] of .stet/config.toml");
    }
    if (status != STET_OK)
        return status;
    if (!made)
        return js_failure(e, source->file, exception, STET_INVALID, err);
    return js_to_value(e, made, true, out, err);
}

stet_status pattern_evaluate(stet_javascript_engine *e, const stet_javascript_source *source, stet_value *out,
                             stet_error *err) {
    stet_buf text = STET_BUF(4 * STET_JAVASCRIPT_MAX_TEXT);
    source_tokens tokens = {0};
    stet_status status = evaluate(e, source, &text, &tokens, out, err);
    e->asked = NULL;
    stet_vec_release(&tokens);
    stet_buf_release(&text);
    return status;
}
