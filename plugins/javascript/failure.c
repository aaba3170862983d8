/* failure.c - turns a JavaScript exception into a stet_error with the place in the author's file. */

#include "engine.h"

#include <stdlib.h>
#include <string.h>

/* What a name that is not there, or no longer, is about. */
static const struct {
    const char *text, *hint;
} hints[] = {
    {"variable: Date", "actions have no clock: pass the time in as an input"},
    {"Math.random", "actions have no randomness: pass a seed in as an input"},
    {"variable: Promise", "there are no promises here: an action has nothing to wait for"},
    {"variable: Intl", "actions have no locale: format by hand, or in a command"},
    {"toLocale", "actions have no locale: format by hand, or in a command"},
    {"localeCompare", "actions have no locale: compare with < and >"},
    {"variable: setTimeout", "actions have no clock: what is to happen later is another action's matter"},
    {"variable: fetch", "actions see nothing but their inputs: use a command or a call to get data"},
    {"variable: require",
     "there are no packages here: pass values in, or put the function and what it needs into one file"},
    {"variable: process", "actions see nothing but their inputs: pass it in as one"},
    {"variable: WeakRef", "actions can't see what the garbage collector does"},
    {"variable: WebAssembly", "there is no WebAssembly here: use a command"},
    {"variable: performance", "actions have no clock: pass the time in as an input"},
    {"variable: eval", "code can't be made from text here"},
    {"code can't be made from text", "write the function out; eval and Function are not there"},
    {"Could not import", "there are no packages here: put the function and what it needs into one file"},
    {"Can't find variable",
     "a function travels as its text and sees nothing that stands around it: pass the value in as an "
     "input, or define it inside"},
    {"not extensible", "what the language gives can't be changed: nothing may be left behind for other runs"},
    {"readonly property",
     "inputs, and what the language gives, can't be changed: return a new value, or bind the input "
     "with asCell"},
    {"Maximum call stack", "the function calls itself too deeply: use a loop"},
};

/* The frame that lies in the user's text: "name@url:line:column". */
static bool frame_of(const char *stack, const char *url, long *line, long *column) {
    size_t n = strlen(url);
    for (const char *at = stack; (at = strstr(at, url)) != NULL; at += n) {
        char *end;
        bool begins = at == stack || at[-1] == '@' || at[-1] == '\n';
        if (!begins || at[n] != ':')
            continue;
        *line = strtol(at + n + 1, &end, 10);
        *column = *end == ':' ? strtol(end + 1, NULL, 10) : 0;
        return true;
    }
    return false;
}

void js_text_begins(stet_javascript_engine *e, size_t lead, const char *text, size_t len) {
    e->lead = lead;
    e->lines = len > 0;
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--;
    for (size_t i = 0; i < len; i++)
        e->lines += text[i] == '\n';
}

/* The place in the user's text of one in what was compiled: what stands around it is not theirs. */
static void place_in_text(const stet_javascript_engine *e, long *line, long *column) {
    if (e->asked && *column > 0)
        *column = truth_column(e->asked, *line, *column);
    if (*line == 1)
        *column = *column > (long)e->lead ? *column - (long)e->lead : 0;
    if (e->lines > 0 && *line > (long)e->lines) { /* something is missing at the end */
        *line = (long)e->lines;
        *column = 0;
    }
}

static long number_of(stet_javascript_engine *e, JSObjectRef error, const char *key) {
    JSValueRef v = js_get(e->context, error, key);
    return JSValueIsNumber(e->context, v) ? (long)JSValueToNumber(e->context, v, NULL) : 0;
}

static void text_of(stet_javascript_engine *e, JSObjectRef error, const char *key, stet_buf *out) {
    JSValueRef v = js_get(e->context, error, key);
    if (JSValueIsString(e->context, v))
        js_describe(e->context, v, out);
}

stet_status js_failure(stet_javascript_engine *e, const char *file, JSValueRef exception, stet_status status,
                       stet_error *err) {
    stet_buf message = STET_BUF(4096), stack = STET_BUF(16384), url = STET_BUF(4096);
    const char *own = file ? file : SCRIPT_INLINE;
    bool refused = e->out && e->out[0] == REFUSED;
    long line = 0, column = 0;
    if (exception && JSValueIsObject(e->context, exception)) {
        JSObjectRef error = (JSObjectRef)exception;
        text_of(e, error, "stack", &stack);
        text_of(e, error, "sourceURL", &url);
        if (refused)
            text_of(e, error, "message", &message);
        if (!frame_of(stet_buf_cstr(&stack), own, &line, &column) && strcmp(stet_buf_cstr(&url), own) == 0) {
            line = number_of(e, error, "line"); /* a syntax error has no frame */
            column = number_of(e, error, "column");
        }
        place_in_text(e, &line, &column);
        if (message.len == 0)
            js_describe(e->context, exception, &message);
    } else {
        stet_buf_str(&message, "threw ");
        js_describe(e->context, exception, &message);
    }
    if (e->out)
        e->out[0] = SCALAR;
    const char *text = stet_buf_cstr(&message);
    if (refused || line <= 0)
        stet_fail(err, status, "%s%s%s", file ? file : "", file ? ": " : "", text);
    else if (file)
        stet_fail(err, status, "%s:%ld: %s", file, line, text);
    else
        stet_fail(err, status, "line %ld: %s", line, text);
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (!refused && strstr(text, hints[i].text)) {
            stet_hint(err, "%s", hints[i].hint);
            break;
        }
    if (line > 0) {
        stet_detail(err, "line", stet_value_int(line));
        if (column > 0)
            stet_detail(err, "column", stet_value_int(column));
    }
    if (file)
        stet_detail(err, "file", stet_value_string(file));
    stet_buf_release(&message);
    stet_buf_release(&stack);
    stet_buf_release(&url);
    engine_stopped(e, NULL); /* text of an exception may be made by a script, and that may have been stopped */
    return status;
}
