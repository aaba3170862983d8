/* command.c - the `command` module without a scheduler: descriptors, words, identity.
 *
 * Running commands is tested by test/scenario/40*.
 */

#include "../expect.h"

#include "base/json.h"
#include "module/command.h"
#include "os/file.h"

typedef struct fake_run {
    stet_run base;
    stet_value inputs;
} fake_run;

static stet_status fake_read(stet_run *run, stet_pathref path, stet_read_kind kind, stet_value *out, stet_error *e) {
    (void)kind;
    if (!stet_path_lookup(((fake_run *)run)->inputs, path, out))
        return stet_fail(e, STET_NOT_FOUND, "nothing there");
    return STET_OK;
}

static const stet_run_ops ops = {.read = fake_read};

static stet_value parse(const char *text) {
    stet_value v;
    OK(stet_json_parse(text, strlen(text), &v, &err));
    return v;
}

#define HASH       "\"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\""
#define FILE_VALUE "{\"hash\":" HASH ",\"mode\":420,\"size\":3}"

/* Evaluates; the words with a bar between, or "error: ...". `id` may be NULL. */
static char *words(const char *module, const char *bindings, const char *inputs, stet_hash *id) {
    stet_value node = stet_value_object(), m = parse(module), b = parse(bindings);
    fake_run f = {.inputs = parse(inputs)};
    stet_value_put(&node, "module", stet_value_retain(m));
    stet_value_put(&node, "inputs", stet_value_retain(b));
    f.base = (stet_run){.ops = &ops, .node = node, .descriptor = m, .bindings = b, .name = "t"};
    command_spec s;
    char *out;
    stet_status status = command_check(m, node, &err);
    if (status == STET_OK)
        status = command_evaluate(&f.base, "/", "/lists", NULL, &(command_files){0}, &s, &err);
    if (status == STET_OK) {
        stet_buf text = STET_BUF(0);
        for (size_t i = 0; i < s.argv.len; i++)
            stet_buf_printf(&text, "%s%s", i ? "|" : "", s.argv.at[i]);
        if (id)
            *id = s.call;
        out = stet_buf_take(&text, NULL);
        command_spec_release(&s);
    } else {
        out = stet_asprintf("error: %s", err.message);
        stet_error_clear(&err);
    }
    stet_value_release(m);
    stet_value_release(b);
    stet_value_release(node);
    stet_value_release(f.inputs);
    return out;
}

static void check(const char *module, const char *bindings, const char *inputs, const char *want) {
    char *got = words(module, bindings, inputs, NULL);
    assert_string_equal(got, want);
    stet_free(got);
}

#define LINK(id) "{\"/\":{\"link@1\":{\"id\":\"" id "\"}}}"

static void replacing_names(void **state) {
    (void)state;
    check("{\"type\":\"command\",\"argv\":[\"cp\",\"{a}\",\"{out}\"],\"files\":[\"a\"],\"produces\":{\"out\":\"o\"}}",
          "{\"a\":" LINK("file:x y") "}", "{\"a\":" FILE_VALUE "}", "cp|x y|o");
    check("{\"type\":\"command\",\"argv\":[\"cat\",\"{a}\",\"-o{a}\"],\"files\":[\"a\"]}", "{\"a\":" LINK("glob:*") "}",
          "{\"a\":{\"p\":" FILE_VALUE ",\"q%0A\":" FILE_VALUE "}}", "cat|p|q\n|-op q\n");
    check("{\"type\":\"command\",\"shell\":\"cat {a} {{a}} {b} ${X} '{print}'\",\"files\":[\"a\"]}",
          "{\"a\":" LINK("file:it's $(x)") ",\"b\":1}", "{\"a\":" FILE_VALUE ",\"b\":\"v w\"}",
          "/bin/sh|-c|cat 'it'\\''s $(x)' {a} 'v w' ${X} '{print}'");
    check("{\"type\":\"command\",\"argv\":[\"echo\",\"{n}\",\"{o}\"]}", "{\"n\":1,\"o\":1}",
          "{\"n\":5,\"o\":{\"k\":[1]}}", "echo|5|{\"k\":[1]}");
    check("{\"type\":\"command\",\"argv\":[\"cat\",\"{a}\"],\"files\":[\"a\"]}",
          "{\"a\":[" LINK("glob:*") "," LINK("piece:x") "]}",
          "{\"a\":[{\"p\":" FILE_VALUE "},{\"path\":\"p\",\"hash\":" HASH ",\"mode\":420,\"size\":3}]}", "cat|p");
    check("{\"type\":\"command\",\"argv\":[\"cat\",\"{a}\"],\"files\":[\"a\"]}", "{\"a\":" LINK("file:x") "}",
          "{\"a\":null}", "error: t: there is no file x");
}

static void identity(void **state) {
    (void)state;
    stet_hash a, b;
    const char *m = "{\"type\":\"command\",\"argv\":[\"cp\",\"{a}\"],\"files\":[\"a\"]}";
    stet_free(words(m, "{\"a\":" LINK("file:x") "}", "{\"a\":" FILE_VALUE "}", &a));
    stet_free(words(m, "{\"a\":" LINK("file:x") "}", "{\"a\":" FILE_VALUE "}", &b));
    assert_true(stet_hash_equal(a, b));
    stet_free(words(m, "{\"a\":" LINK("file:x") "}", "{\"a\":{\"hash\":" HASH ",\"mode\":493,\"size\":3}}", &b));
    assert_false(stet_hash_equal(a, b)); /* the mode counts */
    stet_free(words(m, "{\"a\":" LINK("file:y") "}", "{\"a\":" FILE_VALUE "}", &b));
    assert_false(stet_hash_equal(a, b)); /* and the name */
    const char *limited = "{\"type\":\"command\",\"argv\":[\"cp\",\"{a}\"],\"files\":[\"a\"],\"timeout\":5}";
    stet_free(words(limited, "{\"a\":" LINK("file:x") "}", "{\"a\":" FILE_VALUE "}", &b));
    assert_true(stet_hash_equal(a, b)); /* a limit does not */
    const char *set = "{\"type\":\"command\",\"argv\":[\"cp\",\"{a}\"],\"files\":[\"a\"],\"env\":{\"X\":\"1\"}}";
    stet_free(words(set, "{\"a\":" LINK("file:x") "}", "{\"a\":" FILE_VALUE "}", &b));
    assert_false(stet_hash_equal(a, b));
    setenv("STET_TEST_X", "1", 1);
    const char *passed = "{\"type\":\"command\",\"argv\":[\"cp\"],\"env\":[\"STET_TEST_X\"]}";
    stet_free(words(passed, "{}", "{}", &a));
    setenv("STET_TEST_X", "2", 1);
    stet_free(words(passed, "{}", "{}", &b));
    assert_false(stet_hash_equal(a, b));
}

/* Bytes reach the command as they are, so no two of them are one call: decomposed, composed, and not UTF-8 at all. */
static void identity_is_exact(void **state) {
    (void)state;
    static const char *const forms[] = {"e\u0301", "\u00e9", "e", "%65", "%FF", "%C3", "%C3%A9"};
    enum { N = sizeof forms / sizeof *forms };
    stet_hash ids[5 * N + 2];
    size_t n = 0;
    for (size_t i = 0; i < N; i++) {
        char module[256], bindings[256], inputs[512];
        const char *m = "{\"type\":\"command\",\"argv\":[\"cp\",\"{a}\"],\"files\":[\"a\"]}", *f = forms[i];
        bool file = strcmp(f, "%65") != 0 && strcmp(f, "%C3%A9") != 0; /* these are ids of no file */
        snprintf(bindings, sizeof bindings, "{\"a\":{\"/\":{\"link@1\":{\"id\":\"file:%s\"}}}}", f);
        if (file)
            stet_free(words(m, bindings, "{\"a\":" FILE_VALUE "}", &ids[n++]));
        snprintf(inputs, sizeof inputs, "{\"a\":{\"%s\":" FILE_VALUE "}}", f); /* found by a pattern */
        if (file && i == 0)
            stet_free(words("{\"type\":\"command\",\"argv\":[\"ls\",\"{a}\"],\"files\":[\"a\"]}",
                            "{\"a\":" LINK("glob:*") "}", inputs, &ids[n++]));
        snprintf(module, sizeof module, "{\"type\":\"command\",\"argv\":[\"echo\",\"%s\"]}", f);
        stet_free(words(module, "{}", "{}", &ids[n++]));
        snprintf(module, sizeof module, "{\"type\":\"command\",\"shell\":\"echo %s\"}", f);
        stet_free(words(module, "{}", "{}", &ids[n++]));
        snprintf(inputs, sizeof inputs, "{\"v\":\"%s\"}", f); /* a value */
        stet_free(words("{\"type\":\"command\",\"argv\":[\"echo\",\"{v}\"]}", "{\"v\":1}", inputs, &ids[n++]));
        setenv("STET_TEST_X", f, 1);
        stet_free(words("{\"type\":\"command\",\"argv\":[\"cp\"],\"env\":[\"STET_TEST_X\"]}", "{}", "{}", &ids[n++]));
    }
    setenv("STET_TEST_X", "\xFF", 1);
    stet_free(words("{\"type\":\"command\",\"argv\":[\"cp\"],\"env\":[\"STET_TEST_X\"]}", "{}", "{}", &ids[n++]));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_false(stet_hash_equal(ids[i], ids[k]));
    /* What a dependency file names. */
    command_spec s = {.call = ids[0]};
    static const char *const paths[] = {"e\u0301.h", "\u00e9.h", "\xFF.h", "%FF.h"};
    stet_hash second[4];
    for (size_t i = 0; i < 4; i++) {
        command_files found = {0};
        command_files_add(&found, "", paths[i]);
        OK(command_second_id(&s, &found, &second[i], &err));
        command_files_release(&found);
        for (size_t k = 0; k < i; k++)
            assert_false(stet_hash_equal(second[i], second[k]));
    }
}

static void mistakes(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"{\"type\":\"command\"}", "either"},
        {"{\"type\":\"command\",\"argv\":[],\"shell\":\"x\"}", "argv"},
        {"{\"type\":\"command\",\"argv\":[5]}", "argv"},
        {"{\"type\":\"command\",\"shell\":\" \"}", "empty"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"place\":1}", "place"},
        {"{\"type\":\"command\",\"argv\":[\"a\\u0000b\"]}", "argv"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"frob\":1}", "frob"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"files\":[\"a\"]}", "files"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"produces\":{\"o\":\"../x\"}}", "outside the project"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"produces\":{\"o\":\".stet/x\"}}", "belongs to stet"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"timeout\":\"5 minutes\"}", "timeout"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"timeout\":0}", "timeout"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"max-memory\":\"2X\"}", "max-memory"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"env\":[\"=B\"]}", "env"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"stdout\":\"xml\"}", "stdout"},
        {"{\"type\":\"command\",\"shell\":\"x\",\"cache\":1}", "cache"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stet_value m = parse(rows[i][0]), node = stet_value_object();
        FAILS(command_check(m, node, &err), STET_INVALID, rows[i][1]);
        stet_value_release(m);
        stet_value_release(node);
    }
}

/* Somebody writes to an output between the look at it and the copy for the store. */
static void stored_bytes_are_those_that_were_hashed(void **state) {
    (void)state;
    stet_persist_config config = stet_persist_config_default();
    stet_persist_place o = {.dir = "store/d", .local_dir = "store/l", .machine_id = "m1", .config = &config};
    stet_persist *p;
    OK(stet_file_mkdirs("store/root", 0755, &err));
    OK(stet_persist_open_place(&o, &p, &err));
    for (int i = 0; i < 2; i++) {
        command_spec s = {.cache = true};
        command_entry e;
        stet_hash id = stet_hash_of(&i, sizeof i);
        OK(stet_file_replace("store/root/out", "first", 5, 0644, &err));
        command_file *f = command_files_add(&s.outputs, "out", "out");
        OK(stet_look_at(AT_FDCWD, "store/root/out", NULL, &f->look, &err));
        stet_value result = stet_value_object();
        stet_value_put(&result, "files", command_result_files(&s));
        if (i == 1)
            OK(stet_file_replace("store/root/out", "other", 5, 0644, &err));
        command_files found = {0};
        OK(command_store(p, "store/root", &s, id, &found, result, NULL, NULL, 1, &err));
        if (i == 0) {
            OK(command_entry_get(p, &s, id, &e, &err));
            command_entry_release(&e);
        } else {
            FAILS(command_entry_get(p, &s, id, &e, &err), STET_NOT_FOUND, "not one of this command");
        }
        stet_value_release(result);
        command_spec_release(&s);
    }
    stet_persist_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(replacing_names), cmocka_unit_test(identity),
                                       cmocka_unit_test(identity_is_exact), cmocka_unit_test(mistakes),
                                       cmocka_unit_test(stored_bytes_are_those_that_were_hashed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
