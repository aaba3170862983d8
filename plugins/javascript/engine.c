/* engine.c - the JavaScript engine of one process, its limits, and running functions in it.
 *
 * At certain points the engine asks whether the script should be stopped. A script can't catch a stop, and the engine
 * is as good as new afterwards. The engine asks at the earliest POLL_S of processor time after it was entered, and must
 * be told to ask again. The engine has no memory limit of its own, so each time it asks, the size of the process is
 * checked.
 *
 * A single long operation of the engine may lie between two such points. The engine gives up a regular expression that
 * backtracks without end after a second or more, and answers that it does not match. That answer would be wrong, so an
 * operation of more than STUCK_US ends the run.
 *
 * Promise jobs would run after the script has returned, each entered anew with its own time limit, so an endless chain
 * of them could not be stopped. (With a time limit close to zero the engine asks at each job, but its timer then
 * sometimes ends the process.) An action has nothing to wait for, so there are no promises: realm.js removes everything
 * that makes or takes one, and async functions are refused. The engine's parser decides what is an async function: a
 * text in which another word replaces `async` still parses only if `async` was not a keyword there.
 */

#define STET_LIBRARY_CALLS
#include "engine.h"

#include <assert.h>
#include <ctype.h>
#include <fcntl.h>
#include <jsc/jsc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POLL_S      0.05
#define STUCK_US    1000000
#define OUT_NUMBERS 4

/* Exported by the library; their headers are not shipped. */
typedef bool (*should_stop)(JSContextRef context, void *data);
void JSContextGroupSetExecutionTimeLimit(JSContextGroupRef group, double seconds, should_stop callback, void *data);
void JSGlobalContextSetEvalEnabled(JSGlobalContextRef context, bool enabled, JSStringRef message);
void JSSynchronousGarbageCollectForDebugging(JSContextRef context);

_Thread_local stet_javascript_engine *engine_current;

EMBED(javascript_realm, "plugins/javascript/realm.js");
EMBED(javascript_expression, "plugins/javascript/expression.js");
EMBED(javascript_machine, "plugins/javascript/machine.js");
EMBED(javascript_regexp, "plugins/javascript/regexp.js");

static int64_t cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t resident_kb(const stet_javascript_engine *e) {
    char text[128];
    long long size, resident;
    ssize_t n = pread(e->statm, text, sizeof text - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    if (sscanf(text, "%lld %lld", &size, &resident) != 2)
        return 0;
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool should_stop_now(JSContextRef context, void *data) {
    (void)context;
    stet_javascript_engine *e = data;
    int64_t now = cpu_us();
    int64_t unseen = now - e->looked_us;
    e->looked_us = now;
    if (now - e->start_us > e->limits.time_ms * 1000)
        e->stopped = STOP_TIME;
    else if (e->cancelled && e->cancelled(e->cancelled_ctx))
        e->stopped = STOP_CANCELLED;
    else if (unseen > STUCK_US)
        e->stopped = STOP_STUCK;
    else if (resident_kb(e) - e->baseline_kb > e->limits.memory_mb * 1024)
        e->stopped = STOP_MEMORY;
    if (e->stopped != STOP_NONE)
        return true;
    JSContextGroupSetExecutionTimeLimit(e->group, POLL_S, should_stop_now, e);
    return false;
}

void engine_arm(stet_javascript_engine *e, const stet_javascript_limits *limits) {
    e->serial++;
    e->limits = *limits;
    e->stopped = STOP_NONE;
    e->start_us = e->looked_us = cpu_us();
    /* The process grows by itself, too: looked at now and then, as each look costs as much as a small function. */
    if ((e->serial & 255) == 1)
        e->baseline_kb = resident_kb(e);
    engine_current = e;
}

stet_status engine_stopped(stet_javascript_engine *e, stet_error *err) {
    if (e->stopped == STOP_NONE)
        return STET_OK;
    /* The stopping goes on until the machine was entered once more. */
    JSStringRef nothing = JSStringCreateWithUTF8CString("0");
    stop_reason reason = e->stopped;
    e->stopped = STOP_NONE;
    e->worn = true;
    e->start_us = e->looked_us = cpu_us();
    JSEvaluateScript(e->context, nothing, NULL, NULL, 1, NULL);
    JSStringRelease(nothing);
    JSValueRef matching = JSObjectCallAsFunction(e->context, e->forget, NULL, 0, NULL, NULL);
    stet_buf expression = STET_BUF(1024);
    if (matching)
        js_describe(e->context, matching, &expression);
    if (reason == STOP_TIME && expression.len > 0) {
        stet_fail(err, STET_LIMIT, "stopped: it ran longer than %lld ms, in the regular expression %s",
                  (long long)e->limits.time_ms, stet_buf_cstr(&expression));
        stet_hint(
            err,
            "parts of it that match the same, like (a+)+ or \\s*(.*)\\s*, make it try too much on a long text: make it "
            "simpler, or raise \"limits\": {\"timeMs\": N} of the module");
    } else if (reason == STOP_TIME) {
        stet_fail(err, STET_LIMIT, "stopped: it ran longer than %lld ms", (long long)e->limits.time_ms);
        stet_hint(err, "is there a loop without an end? Otherwise raise \"limits\": {\"timeMs\": N} of the module, or "
                       "time_limit_ms in [module.javascript]");
    } else if (reason == STOP_CANCELLED) {
        stet_fail(err, STET_CANCELLED, "stopped");
    } else if (reason == STOP_STUCK) {
        stet_fail(err, STET_LIMIT, "stopped: one operation took longer than %d ms", STUCK_US / 1000);
        stet_hint(err, "is there a regular expression that repeats what is repeated already, like (a+)+?");
    } else {
        JSSynchronousGarbageCollectForDebugging(e->context);
        e->baseline_kb = resident_kb(e);
        stet_fail(err, STET_LIMIT, "stopped: it took more than %lld MiB of memory", (long long)e->limits.memory_mb);
        stet_hint(err, "raise \"limits\": {\"memoryMb\": N} of the module, or memory_limit_mb in [module.javascript]");
    }
    stet_buf_release(&expression);
    return reason == STOP_CANCELLED ? STET_CANCELLED : STET_LIMIT;
}

stet_status engine_evaluate(stet_javascript_engine *e, const char *text, size_t len, const char *file, JSValueRef *out,
                            stet_error *err) {
    JSStringRef script = js_string(text, len), url = JSStringCreateWithUTF8CString(file ? file : SCRIPT_INLINE);
    JSValueRef exception = NULL;
    JSValueRef value = JSEvaluateScript(e->context, script, NULL, url, 1, &exception);
    JSStringRelease(script);
    JSStringRelease(url);
    stet_status status = engine_stopped(e, err);
    if (status != STET_OK)
        return status;
    if (!value)
        return js_failure(e, file, exception, STET_INVALID, err);
    *out = value;
    return STET_OK;
}

static void set_options(void) {
    /* Questions are answered by looking at a flag, not by signals that break into compiled code: no signal handler of
     * ours or of the host is disturbed, and loops are not thrown back to slow code each time. */
    jsc_options_set_boolean("usePollingTraps", TRUE);
    jsc_options_set_boolean("useWasm", FALSE);
    /* A call in tail position would take the place of its caller, whose line an error is to name. */
    jsc_options_set_boolean("useTailCalls", FALSE);
}

static JSObjectRef part(stet_javascript_engine *e, JSObjectRef realm, const char *name) {
    JSObjectRef function = (JSObjectRef)js_get(e->context, realm, name);
    JSValueProtect(e->context, function);
    return function;
}

static stet_status open_realm(stet_javascript_engine *e, stet_error *err) {
    JSContextRef c = e->context;
    JSObjectRef host = JSObjectMake(c, NULL, NULL);
    JSValueRef exception = NULL;
    JSObjectRef numbers = JSObjectMakeTypedArray(c, kJSTypedArrayTypeFloat64Array, OUT_NUMBERS, NULL);
    JSValueProtect(c, numbers);
    e->out = JSObjectGetTypedArrayBytesPtr(c, numbers, NULL);
    views_define(e, host);
    static const char *const scripts[] = {javascript_expression, javascript_machine, javascript_regexp,
                                          javascript_realm};
    JSValueRef arguments[] = {host, numbers, NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < 4; i++) {
        stet_status status = engine_evaluate(e, scripts[i], strlen(scripts[i]), SCRIPT_REALM, &arguments[2 + i], err);
        if (status != STET_OK)
            return status;
    }
    JSValueRef realm = JSObjectCallAsFunction(c, (JSObjectRef)arguments[5], NULL, 5, arguments, &exception);
    if (!realm)
        return js_failure(e, SCRIPT_REALM, exception, STET_INTERNAL, err);
    e->invoke = part(e, (JSObjectRef)realm, "invoke");
    e->forget = part(e, (JSObjectRef)realm, "forget");
    e->freeze = part(e, (JSObjectRef)realm, "freeze");
    e->serialize = part(e, (JSObjectRef)realm, "serialize");
    JSStringRef message = JSStringCreateWithUTF8CString("code can't be made from text here");
    JSGlobalContextSetEvalEnabled(e->context, false, message);
    JSStringRelease(message);
    return STET_OK;
}

static void close_engine(stet_javascript_engine *e) {
    JSContextGroupSetExecutionTimeLimit(e->group, POLL_S, NULL, NULL);
    JSGlobalContextRelease(e->context);
    JSContextGroupRelease(e->group);
    views_end(e);
    free(e->build_names);
    stet_error_clear(&e->error);
    close(e->statm);
    if (engine_current == e)
        engine_current = NULL;
    free(e);
}

static stet_status open_engine(stet_javascript_engine **out, stet_error *err) {
    static pthread_once_t options = PTHREAD_ONCE_INIT;
    static const stet_javascript_limits generous = {60000, 1024};
    stet_javascript_engine *e = stet_alloc_zero(sizeof *e);
    pthread_once(&options, set_options);
    e->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    e->group = JSContextGroupCreate();
    e->context = JSGlobalContextCreateInGroup(e->group, NULL);
    JSContextGroupSetExecutionTimeLimit(e->group, POLL_S, should_stop_now, e);
    engine_arm(e, &generous);
    stet_status status = open_realm(e, err);
    if (status != STET_OK) {
        close_engine(e);
        return status;
    }
    *out = e;
    return STET_OK;
}

static void forget(stet_javascript_engine *e, stet_javascript_program *p) {
    /* The collector does not know how much hangs on a small function, and would let it pile up. */
    if (++e->forgotten % 1024 == 0)
        JSSynchronousGarbageCollectForDebugging(e->context);
    if (p->function)
        JSValueUnprotect(e->context, p->function);
    if (p->export_value)
        JSValueUnprotect(e->context, p->export_value);
    free(p->file);
    free(p);
}

/* Has `text`, a script that is right, async functions in it? */
static stet_status refuse_async(stet_javascript_engine *e, const char *text, size_t len, const char *file,
                                stet_error *err) {
    stet_buf other = STET_BUF(2 * STET_JAVASCRIPT_MAX_TEXT);
    stet_status status = STET_OK;
    if (source_without_async(text, len, &other)) {
        JSStringRef script = js_string(stet_buf_cstr(&other), other.len);
        if (!JSCheckScriptSyntax(e->context, script, NULL, 1, NULL)) {
            status =
                stet_fail(err, STET_INVALID, "%s%san async function can't be an action: there is nothing to wait for",
                          file ? file : "", file ? ": " : "");
            stet_hint(err, "leave async and await out; what takes time is done by a command or a call");
        }
        JSStringRelease(script);
    }
    stet_buf_release(&other);
    return status;
}

stet_status engine_compile(stet_javascript_engine *e, const char *text, size_t len, const char *file, JSValueRef *out,
                           stet_error *err) {
    JSValueRef exception = NULL;
    JSStringRef script = js_string(text, len), url = JSStringCreateWithUTF8CString(file ? file : SCRIPT_INLINE);
    bool right = JSCheckScriptSyntax(e->context, script, url, 1, &exception);
    JSStringRelease(script);
    JSStringRelease(url);
    if (!right)
        return js_failure(e, file, exception, STET_INVALID, err);
    stet_status status = refuse_async(e, text, len, file, err);
    return status == STET_OK ? engine_evaluate(e, text, len, file, out, err) : status;
}

/* Text in a descriptor: a function, and nothing else around it that could keep something from one run to the next. */
static stet_status prepare_text(stet_javascript_engine *e, const stet_javascript_source *source, JSObjectRef *out,
                                stet_error *err) {
    stet_buf text = STET_BUF(STET_JAVASCRIPT_MAX_TEXT + 64), made_text = STET_BUF(0);
    JSValueRef made;
    stet_buf_str(&text, TEXT_LEAD);
    js_text_begins(e, strlen(TEXT_LEAD), source->text, source->len);
    size_t len = source->len; /* a semicolon at the end is allowed, and in the way */
    while (len > 0 && (isspace((unsigned char)source->text[len - 1]) || source->text[len - 1] == ';'))
        len--;
    stet_buf_add(&text, source->text, len);
    stet_buf_str(&text, "\n)})()");
    stet_status status = engine_compile(e, stet_buf_cstr(&text), text.len, NULL, &made, err);
    if (status == STET_INVALID)
        stet_hint(err, "the implementation is the text of one function: ({a, b}) => a + b");
    if (status == STET_OK) {
        JSObjectRef function = JSValueIsObject(e->context, made) ? (JSObjectRef)made : NULL;
        if (function && JSObjectIsFunction(e->context, function))
            js_describe(e->context, function, &made_text);
        else
            function = NULL;
        if (!function || !source_is_function(source->text, source->len, stet_buf_cstr(&made_text), made_text.len)) {
            stet_fail(err, STET_INVALID, "the implementation is %s",
                      function ? "more than one function: what is around it would be kept between runs"
                               : "no function");
            stet_hint(err, "write the text of one function, ({a, b}) => a + b, or put it into a file and name it with "
                           "{\"file\": FILE, \"export\": NAME}");
            status = STET_INVALID;
        } else {
            JSValueRef argument = function;
            JSObjectCallAsFunction(e->context, e->freeze, NULL, 1, &argument, NULL);
            *out = function;
        }
    }
    stet_buf_release(&text);
    stet_buf_release(&made_text);
    return status;
}

static stet_status prepare_file(stet_javascript_engine *e, const stet_javascript_source *source, JSObjectRef *out,
                                stet_error *err) {
    stet_buf text = STET_BUF(2 * STET_JAVASCRIPT_MAX_TEXT);
    JSValueRef made, exception = NULL;
    js_text_begins(e, strlen(FILE_LEAD), source->text, source->len);
    stet_status status = source_of_file(source, "", &text, NULL, err);
    if (status == STET_OK)
        status = engine_compile(e, stet_buf_cstr(&text), text.len, source->file, &made, err);
    stet_buf_release(&text);
    if (status != STET_OK)
        return status;
    /* Once for the sake of errors; then again for each run. */
    JSValueRef exports = JSObjectCallAsFunction(e->context, (JSObjectRef)made, NULL, 0, NULL, &exception);
    status = engine_stopped(e, err);
    if (status != STET_OK) {
        stet_fail_in(err, "%s", source->file);
        return status;
    }
    if (!exports)
        return js_failure(e, source->file, exception, STET_INVALID, err);
    JSValueRef function = js_get(e->context, (JSObjectRef)exports, source->export_name);
    if (!JSValueIsObject(e->context, function) || !JSObjectIsFunction(e->context, (JSObjectRef)function)) {
        stet_fail(err, STET_INVALID, "%s exports no function \"%s\"", source->file, source->export_name);
        stet_hint(err, "write: export function %s({a, b}) { return a + b }",
                  strcmp(source->export_name, "default") == 0 ? "NAME" : source->export_name);
        return STET_INVALID;
    }
    *out = (JSObjectRef)made;
    return STET_OK;
}

static stet_status prepare(stet_javascript_engine *e, const stet_javascript_source *source,
                           stet_javascript_program **out, stet_error *err) {
    JSObjectRef function = NULL;
    engine_arm(e, &source->limits);
    stet_status status =
        source->export_name ? prepare_file(e, source, &function, err) : prepare_text(e, source, &function, err);
    if (status != STET_OK)
        return status;
    stet_javascript_program *p = stet_alloc_zero(sizeof *p);
    p->function = function;
    p->limits = source->limits;
    p->file = source->file ? stet_strdup(source->file) : NULL;
    p->mode = (source->handler ? MODE_HANDLER : 0u) | (source->export_name ? MODE_FACTORY : 0u);
    JSValueProtect(e->context, function);
    if (source->export_name) {
        p->export_value = js_text(e->context, source->export_name, strlen(source->export_name));
        JSValueProtect(e->context, p->export_value);
    }
    *out = p;
    return STET_OK;
}

/* The event as the realm takes it: a scalar, or JSON text with *big 0 or 1. */
static JSValueRef event_of(stet_javascript_engine *e, stet_value event, double *big) {
    *big = -1;
    if (stet_value_type(event) != STET_TYPE_ARRAY && stet_value_type(event) != STET_TYPE_OBJECT)
        return js_of_scalar(e->context, event);
    stet_buf json = STET_BUF(0);
    *big = js_json(event, &json);
    JSValueRef text = js_text(e->context, stet_buf_cstr(&json), json.len);
    stet_buf_release(&json);
    return text;
}

/* Calls the function; what it gave, or an error. */
static stet_status call(stet_javascript_engine *e, const stet_javascript_program *p, JSValueRef *result,
                        stet_error *err) {
    JSContextRef c = e->context;
    size_t positions = 0;
    double big = -1;
    js_text_begins(e, strlen(p->file ? FILE_LEAD : TEXT_LEAD), NULL, 0);
    unsigned mode = p->mode | (views_positional(stet_run_bindings(e->run), &positions) ? MODE_POSITIONAL : 0u);
    JSValueRef exception = NULL, undefined = JSValueMakeUndefined(c);
    JSValueRef arguments[] = {p->function,
                              JSValueMakeNumber(c, mode),
                              JSValueMakeNumber(c, (double)views_root(e)),
                              JSValueMakeNumber(c, (double)positions),
                              p->export_value ? p->export_value : undefined,
                              mode & MODE_HANDLER ? event_of(e, stet_run_event(e->run), &big) : undefined,
                              undefined};
    arguments[6] = JSValueMakeNumber(c, big);
    *result = JSObjectCallAsFunction(c, e->invoke, NULL, 7, arguments, &exception);
    stet_status status = engine_stopped(e, err);
    if (status != STET_OK)
        return status;
    if (e->error.status != STET_OK) {
        status = e->error.status;
        stet_error_move(err, &e->error);
        return status;
    }
    if (!*result)
        return js_failure(e, p->file, exception, STET_FAILED, err);
    return STET_OK;
}

static void start(stet_javascript_engine *e, stet_javascript_program *p, stet_run *run) {
    JSValueRef result;
    stet_value value = stet_value_null();
    stet_error err = STET_ERROR_INIT;
    engine_arm(e, &p->limits);
    e->run = run;
    e->logged = 0;
    views_begin(e);
    stet_status status = call(e, p, &result, &err);
    if (status == STET_OK && e->out[0] == VIEW) {
        status = views_whole(e, e->out[1], &value, &err);
        if (status == STET_OK)
            stet_value_retain(value);
    } else if (status == STET_OK) {
        status = js_to_value(e, result, e->out[0] == TEXT, &value, &err);
    }
    /* A run that failed has read, too: it runs again when that changes. */
    stet_error late = STET_ERROR_INIT;
    if (views_flush(e, &late) != STET_OK && status == STET_OK) {
        status = late.status;
        stet_value_release(value);
        stet_error_move(&err, &late);
    }
    stet_error_clear(&late);
    e->run = NULL;
    if (status == STET_OK) {
        stet_run_succeed(run, value);
    } else {
        stet_run_fail(run, &err);
        stet_error_clear(&err);
    }
}

static void cancel(stet_javascript_engine *e, bool (*cancelled)(void *ctx), void *ctx) {
    e->cancelled = cancelled;
    e->cancelled_ctx = ctx;
}

static bool worn(const stet_javascript_engine *e) {
    return e->worn;
}

static void attach(const void *library) {
    if (!stet_library_given)
        stet_library_given = library;
}

extern const stet_javascript_plugin stet_plugin_javascript;
__attribute__((visibility("default"))) const stet_javascript_plugin stet_plugin_javascript = {
    .plugin = {STET_VERSION, sizeof(stet_library), attach},
    .open = open_engine,
    .close = close_engine,
    .cancel = cancel,
    .worn = worn,
    .prepare = prepare,
    .forget = forget,
    .start = start,
    .pattern = pattern_evaluate,
};
