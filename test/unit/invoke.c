/* invoke.c - everything that the shell can do, from C: stet_context_invoke through the public header alone. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <stet.h>

static stet_error err = STET_ERROR_INIT;

static void expect(stet_status got, stet_status wanted) {
    if (got != wanted)
        fail_msg("%s, expected %s: %s", stet_status_name(got), stet_status_name(wanted), err.message);
}

static stet_context *context_in(const char *dir) {
    stet_context_options o = STET_CONTEXT_OPTIONS_INIT;
    stet_context *c;
    o.dir = dir;
    expect(stet_context_new(&o, &c, &err), STET_OK);
    return c;
}

static stet_status invoke(stet_context *c, const char *name, const char *json, stet_value *result) {
    stet_value args;
    stet_error_clear(&err);
    assert_int_equal(stet_json_parse(json, strlen(json), &args, &err), STET_OK);
    stet_status status = stet_context_invoke(c, name, args, result, &err);
    stet_value_release(args);
    return status;
}

static void expect_json(stet_value v, const char *json) {
    char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    assert_string_equal(text, json);
    stet_free(text);
}

static void project(const char *dir) {
    stet_value result;
    mkdir(dir, 0777);
    stet_context *c = context_in(dir);
    expect(invoke(c, "init", "{}", &result), STET_OK);
    stet_value_release(result);
    stet_context_free(c);
}

static void write_file(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void operations_without_a_project_need_none(void **state) {
    (void)state;
    stet_value result;
    mkdir("nothing", 0777);
    stet_context *c = context_in("nothing");
    expect(invoke(c, "version", "{}", &result), STET_OK);
    stet_value version = stet_value_get(result, "version");
    assert_string_equal(stet_value_as_string(&version, NULL), stet_version());
    stet_value_release(result);
    expect(invoke(c, "registry list", "{}", &result), STET_NOT_FOUND); /* no such operation */
    expect(invoke(c, "get", "{\"cell\":\"a\"}", &result), STET_NOT_FOUND);
    assert_int_equal(stet_value_type(result), STET_TYPE_NULL);
    expect(invoke(c, "init", "{}", &result), STET_OK);
    stet_value_release(result);
    expect(invoke(c, "set", "{\"cell\":\"a\",\"value\":[1,2]}", &result), STET_OK); /* found now */
    stet_value_release(result);
    stet_context_free(c);
}

static void what_does_not_exist_is_named_with_what_does(void **state) {
    (void)state;
    stet_value result;
    stet_context *c = context_in(".");
    expect(invoke(c, "runs serch", "{}", &result), STET_NOT_FOUND);
    assert_non_null(strstr(err.hint, "runs search"));
    expect(invoke(c, "version", "{\"x\":1}", &result), STET_INVALID);
    expect(invoke(c, "get", "{}", &result), STET_INVALID);
    assert_non_null(strstr(err.message, "cell"));
    expect(invoke(c, "get", "[]", &result), STET_INVALID);
    stet_context_free(c);
    stet_context_options o = STET_CONTEXT_OPTIONS_INIT;
    o.dir = "not there";
    expect(stet_context_new(&o, &c, &err), STET_NOT_FOUND);
    stet_error_clear(&err);
    o.size = 0;
    expect(stet_context_new(&o, &c, &err), STET_INVALID);
    stet_error_clear(&err);
    expect(stet_context_new(NULL, &c, &err), STET_OK);
    stet_context_free(c);
    stet_context_free(NULL);
}

static void documents_and_runs_work_as_in_the_shell(void **state) {
    (void)state;
    stet_value result;
    project("p");
    write_file(
        "p/f.json",
        "{\"pattern\":1,\"name\":\"f\",\"argument\":{\"default\":{\"x\":16}},\"nodes\":[{\"id\":\"a\",\"inputs\":{"
        "\"value\":{\"$\":\"argument/x\"}},\"module\":{\"type\":\"ref\",\"ref\":\"sqrt\"}}],\"result\":{\"a\":{\"$\":"
        "\"a\"}}}");
    stet_context *c = context_in("p");
    expect(invoke(c, "run", "{\"pattern\":\"f.json\"}", &result), STET_OK);
    assert_int_equal(stet_value_as_int(stet_value_get(result, "ran")), 1);
    expect_json(stet_value_get(result, "result"), "{\"a\":4}");
    stet_value_release(result);
    expect(invoke(c, "set", "{\"cell\":\"piece:f:argument/x\",\"value\":25}", &result), STET_OK);
    stet_value_release(result);
    /* What the command line alone offers is there, too. */
    expect(invoke(c, "get", "{\"cell\":\"piece:f/a\",\"fresh\":true}", &result), STET_OK);
    expect_json(stet_value_get(result, "value"), "5");
    stet_value_release(result);
    /* An answer that is not a success: the status and the result. */
    expect(invoke(c, "run", "{\"pattern\":\"f.json\",\"set\":{\"x\":-1}}", &result), STET_FAILED);
    assert_int_equal(stet_value_as_int(stet_value_get(result, "failed")), 1);
    stet_value_release(result);
    stet_context_free(c);
}

static void a_project_that_is_given_is_used_wherever_the_directory_is(void **state) {
    (void)state;
    stet_value result;
    stet_project *p;
    project("given");
    mkdir("elsewhere", 0777);
    expect(stet_project_open("given", &p, &err), STET_OK);
    stet_context_options o = STET_CONTEXT_OPTIONS_INIT;
    stet_context *c;
    o.dir = "elsewhere";
    o.project = p;
    expect(stet_context_new(&o, &c, &err), STET_OK);
    expect(invoke(c, "set", "{\"cell\":\"d\",\"value\":\"here\"}", &result), STET_OK);
    stet_value_release(result);
    stet_context_free(c);
    stet_project_close(p);
    c = context_in("given");
    expect(invoke(c, "get", "{\"cell\":\"d\"}", &result), STET_OK);
    expect_json(stet_value_get(result, "value"), "\"here\"");
    stet_value_release(result);
    stet_context_free(c);
}

typedef struct heard {
    stet_context *context;
    int events;
    size_t bytes;
    pthread_t canceller;
    bool cancelling;
} heard;

static void *cancel(void *ctx) {
    stet_context_cancel(ctx);
    return NULL;
}

static stet_status hear(void *user, stet_value event, stet_error *e) {
    heard *h = user;
    (void)event;
    (void)e;
    h->events++;
    if (!h->cancelling && h->events == 2)
        h->cancelling = pthread_create(&h->canceller, NULL, cancel, h->context) == 0;
    return STET_OK;
}

static void a_stream_is_cancelled_from_another_thread(void **state) {
    (void)state;
    stet_value result;
    project("w");
    heard h = {0};
    stet_context_options o = STET_CONTEXT_OPTIONS_INIT;
    o.dir = "w";
    o.user = &h;
    o.event = hear;
    expect(stet_context_new(&o, &h.context, &err), STET_OK);
    expect(invoke(h.context, "set", "{\"cell\":\"n\",\"value\":1}", &result), STET_OK);
    stet_value_release(result);
    expect(invoke(h.context, "set", "{\"cell\":\"n\",\"value\":2}", &result), STET_OK);
    stet_value_release(result);
    expect(invoke(h.context, "watch", "{\"cell\":\"n\",\"after\":0}", &result), STET_CANCELLED);
    stet_value_release(result);
    assert_true(h.cancelling);
    pthread_join(h.canceller, NULL);
    assert_int_equal(h.events, 2);
    expect(invoke(h.context, "get", "{\"cell\":\"n\"}", &result), STET_CANCELLED); /* it stays so */
    stet_context_free(h.context);
}

static stet_status take(void *user, const void *bytes, size_t len, stet_error *e) {
    heard *h = user;
    (void)bytes;
    (void)e;
    h->bytes += len;
    return STET_OK;
}

static void bytes_go_to_whom_they_are_for(void **state) {
    (void)state;
    stet_value result;
    project("b");
    write_file("b/big.bin", "twelve bytes");
    heard h = {0};
    stet_context_options o = STET_CONTEXT_OPTIONS_INIT;
    o.dir = "b";
    o.user = &h;
    o.output = take;
    stet_context *c;
    expect(stet_context_new(&o, &c, &err), STET_OK);
#define MODULE "\"module\":\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\""
    expect(invoke(c, "persist put", "{\"block\":\"fit\"," MODULE ",\"variables\":\"big.bin\",\"format\":\"bytes\"}",
                  &result),
           STET_OK);
    stet_value_release(result);
    expect(invoke(c, "persist get", "{\"block\":\"fit\"," MODULE "}", &result), STET_OK);
    assert_int_equal(h.bytes, 12);
    stet_value_release(result);
    stet_context_free(c);
}

static void every_operation_is_described(void **state) {
    (void)state;
    stet_value list = stet_operations();
    bool fresh = false;
    assert_true(stet_value_count(list) > 80);
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value op = stet_value_at(list, i), name = stet_value_get(op, "name");
        assert_int_equal(stet_value_type(stet_value_get(op, "argumentsSchema")), STET_TYPE_OBJECT);
        assert_int_equal(stet_value_type(stet_value_get(op, "resultSchema")), STET_TYPE_OBJECT);
        if (strcmp(stet_value_as_string(&name, NULL), "get") == 0)
            fresh = stet_value_type(stet_value_get(stet_value_get(stet_value_get(op, "argumentsSchema"), "properties"),
                                                   "fresh")) == STET_TYPE_OBJECT;
    }
    assert_true(fresh);
    stet_value_release(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_without_a_project_need_none),
        cmocka_unit_test(what_does_not_exist_is_named_with_what_does),
        cmocka_unit_test(documents_and_runs_work_as_in_the_shell),
        cmocka_unit_test(a_project_that_is_given_is_used_wherever_the_directory_is),
        cmocka_unit_test(a_stream_is_cancelled_from_another_thread),
        cmocka_unit_test(bytes_go_to_whom_they_are_for),
        cmocka_unit_test(every_operation_is_described),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    stet_error_clear(&err);
    return failed;
}
