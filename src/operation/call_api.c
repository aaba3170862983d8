/* call_api.c - the public functions for calls, each one an operation. */

#include "base/options.h"
#include "operation/op.h"

/* Consumes `args`. */
static stet_status invoke(stet_context *context, const char *operation, stet_value args, stet_value *call,
                          stet_error *err) {
    stet_status status = stet_context_invoke(context, operation, args, call, err);
    stet_value_release(args);
    return status;
}

/* An operation takes each argument as JSON text. */
static stet_value texts_of(stet_value args) {
    stet_value texts = stet_value_array();
    for (size_t i = 0; i < stet_value_count(args); i++) {
        size_t len;
        char *text = stet_json_print(stet_value_at(args, i), STET_JSON_CANONICAL, &len);
        stet_value_push(&texts, stet_value_string_n(text, len));
        stet_free(text);
    }
    return texts;
}

static void put_time(stet_value *args, int64_t ms) {
    if (ms > 0)
        stet_value_put(args, "timeout",
                       stet_value_stringf("%lld.%03llds", (long long)(ms / 1000), (long long)(ms % 1000)));
}

stet_status stet_call_submit(stet_context *context, const stet_call_spec *spec, stet_value *call, stet_error *err) {
    if (!context || !call)
        return stet_fail_null(err);
    stet_call_spec s;
    *call = stet_value_null();
    stet_status status = stet_options_read(&s, sizeof s, spec, "stet_call_spec", err);
    if (status != STET_OK)
        return status;
    if (!s.function)
        return stet_fail(err, STET_INVALID, "a call needs a function");
    if (stet_value_type(s.args) != STET_TYPE_ARRAY && stet_value_type(s.args) != STET_TYPE_NULL)
        return stet_fail(err, STET_INVALID, "the arguments of a call are an array");
    if (s.attempts < 0 || s.timeout_ms < 0)
        return stet_fail(err, STET_INVALID, "the number of attempts and the time of a call are not negative");
    stet_value args = stet_value_object();
    stet_value_put(&args, "function", stet_value_stringf("%s", s.function));
    stet_value_put(&args, "arg", texts_of(s.args));
    stet_value_put(&args, "cache", stet_value_bool(!s.no_cache));
    stet_value_put(&args, "detach", stet_value_bool(true));
    if (s.attempts > 0)
        stet_value_put(&args, "retries", stet_value_int(s.attempts - 1));
    if (s.remote)
        stet_value_put(&args, "remote", stet_value_stringf("%s", s.remote));
    put_time(&args, s.timeout_ms);
    return invoke(context, "call run", args, call, err);
}

static stet_value id_args(const char *id) {
    stet_value args = stet_value_object();
    stet_value_put(&args, "id", stet_value_stringf("%s", id));
    return args;
}

stet_status stet_call_wait(stet_context *context, const char *id, int64_t timeout_ms, stet_value *call,
                           stet_error *err) {
    if (!context || !id || !call)
        return stet_fail_null(err);
    stet_value args = id_args(id);
    put_time(&args, timeout_ms);
    return invoke(context, "call wait", args, call, err);
}

stet_status stet_call_status(stet_context *context, const char *id, stet_value *call, stet_error *err) {
    if (!context || !id || !call)
        return stet_fail_null(err);
    return invoke(context, "call show", id_args(id), call, err);
}

stet_status stet_call_logs(stet_context *context, const char *id, stet_value *logs, stet_error *err) {
    if (!context || !id || !logs)
        return stet_fail_null(err);
    return invoke(context, "call logs", id_args(id), logs, err);
}

stet_status stet_call_cancel(stet_context *context, const char *id, stet_value *call, stet_error *err) {
    if (!context || !id || !call)
        return stet_fail_null(err);
    return invoke(context, "call cancel", id_args(id), call, err);
}
