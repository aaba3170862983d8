/* toml.c - the TOML reader: limits, positions, writing.
 *
 * What texts mean is compared with another implementation in toml-oracle.py and property/toml.py, which run this
 * program with --oracle.
 */

#include "base/toml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static stet_value parse(const char *text) {
    stet_error err = STET_ERROR_INIT;
    stet_value v = stet_value_null();
    if (stet_toml_parse(text, strlen(text), &v, &err) != STET_OK)
        fail_msg("%s", err.message);
    return v;
}

static void check_json(const char *toml, const char *json) {
    stet_value v = parse(toml);
    char *text = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    assert_string_equal(text, json);
    stet_free(text);
    stet_value_release(v);
}

static void check_error(const char *toml, stet_status status, const char *message) {
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    assert_int_equal(stet_toml_parse(toml, strlen(toml), &v, &err), status);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" is not in \"%s\"", message, err.message);
    stet_error_clear(&err);
    assert_int_equal(stet_toml_parse(toml, strlen(toml), &v, NULL), status);
}

static void values(void **state) {
    (void)state;
    check_json("", "{}");
    check_json("\xef\xbb\xbf"
               "a=1",
               "{\"a\":1}"); /* a byte order mark is no part of the text */
    check_json("b=true\na.b.'c d'=0x7fff_ffff_ffff_ffff\n", "{\"a\":{\"b\":{\"c d\":9223372036854775807}},\"b\":true}");
    check_json("a=-9223372036854775808", "{\"a\":-9223372036854775808}");
    check_json("a=1.0\nb=5e-1\nc=-0.0", "{\"a\":1,\"b\":0.5,\"c\":0}");
    check_json("a=1979-05-27 07:32:00z", "{\"a\":\"1979-05-27T07:32:00Z\"}");
    check_json("a=1979-05-27t07:32:00.5-07:00 # x", "{\"a\":\"1979-05-27T07:32:00.5-07:00\"}");
    check_json("a=[1979-05-27 , 07:32:00]", "{\"a\":[\"1979-05-27\",\"07:32:00\"]}");
    check_json("[[a.b]]\nx=1\n[a.b.c]\n[[a.b]]\n", "{\"a\":{\"b\":[{\"c\":{},\"x\":1},{}]}}");
    check_json("a={b.c=1,b.d=[{},{e=''}]}", "{\"a\":{\"b\":{\"c\":1,\"d\":[{},{\"e\":\"\"}]}}}");
    check_json("a=\"\\u0000\"", "{\"a\":\"\\u0000\"}");
}

static void errors(void **state) {
    (void)state;
    check_error("a=1\nb = 07\n", STET_INVALID, "line 2, column 5: ");
    check_error("\"\xc3\xa4\" = \xff", STET_INVALID, "line 1, column 7: not valid UTF-8");
    check_error("a=inf", STET_INVALID, "line 1, column 3: inf and nan are not supported");
    check_error("a=-nan", STET_INVALID, "line 1, column 3: inf and nan are not supported");
    check_error("a=1e999", STET_INVALID, "too large for a double");
    check_error("a=9223372036854775808", STET_INVALID, "line 1, column 3: an integer outside the range");
    check_error("a=1\n a=2", STET_INVALID, "line 2, column 2: a is defined already");
    check_error("[a]\n[a]\n", STET_INVALID, "line 2, column 2: a is defined already");
    check_error("a = 1 b = 2", STET_INVALID, "line 1, column 7: expected the end of the line");
    check_error("a=\"x", STET_INVALID, "line 1, column 3: a string without its closing quotes");
    check_error("a=\"x\ny\"", STET_INVALID, "on the same line");
    check_error("a=1\rb=2", STET_INVALID, "carriage return");
    check_error("a='\x01'", STET_INVALID, "U+0001");
    check_error("a=2023-02-29", STET_INVALID, "no such day");
    check_error("a={b=1\n}", STET_INVALID, "one line");
}

static void limits(void **state) {
    (void)state;
    char text[2000];
    for (size_t depth = 126; depth <= 200; depth++) {
        memset(text, '[', depth);
        memcpy(text, "a=", 2);
        memset(text + depth, ']', depth - 2);
        text[2 * depth - 2] = '\0';
        stet_error err = STET_ERROR_INIT;
        stet_value v;
        stet_status status = stet_toml_parse(text, strlen(text), &v, &err);
        assert_int_equal(status, depth - 2 <= 128 ? STET_OK : STET_LIMIT);
        if (status == STET_OK)
            stet_value_release(v);
        stet_error_clear(&err);
    }
    stet_buf b = STET_BUF(0);
    for (int i = 0; i < 200; i++)
        stet_buf_str(&b, i ? ".a" : "a");
    stet_buf_str(&b, "=1");
    check_error(stet_buf_cstr(&b), STET_LIMIT, "parts");
    stet_buf_clear(&b);
    /* Neither alone is too deep: a header, a key below it, and a value below that. */
    stet_buf_char(&b, '[');
    for (int i = 0; i < 100; i++)
        stet_buf_str(&b, i ? ".a" : "a");
    stet_buf_str(&b, "]\n");
    for (int i = 0; i < 100; i++)
        stet_buf_str(&b, i ? ".a" : "a");
    stet_buf_str(&b, "=1");
    check_error(stet_buf_cstr(&b), STET_LIMIT, "inside each other");
    stet_buf_release(&b);

    size_t size = ((size_t)64 << 20) + 1;
    char *large = malloc(size);
    memset(large, '\n', size);
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_toml_parse(large, size, &v, &err), STET_LIMIT);
    stet_error_clear(&err);
    assert_int_equal(stet_toml_parse(large, size - 1, &v, &err), STET_OK);
    stet_value_release(v);
    free(large);
}

static void locate(void **state) {
    (void)state;
    const char *text = "a.b = 1\n[t]\n  \"x y\" = [1,\n 22]\n[[u]]\n[[u]]\n k = { z = 1 }\n[p.q]\n[p]\n";
    static const struct {
        const char *pointer;
        size_t line, column;
    } cases[] = {{"", 1, 1},       {"/a", 1, 1},       {"/a/b", 1, 3}, {"/t", 2, 2},
                 {"/t/x y", 3, 3}, {"/t/x y/1", 4, 2}, {"/u", 5, 3},   {"/u/1", 6, 3},
                 {"/u/1/k", 7, 2}, {"/u/1/k/z", 7, 8}, {"/p", 9, 2},   {"/p/q", 8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t line = 0, column = 0;
        assert_true(stet_toml_locate(text, strlen(text), cases[i].pointer, &line, &column));
        if (line != cases[i].line || column != cases[i].column)
            fail_msg("%s: %zu:%zu", cases[i].pointer, line, column);
    }
    size_t line, column;
    static const char *const absent[] = {"/b", "/a/b/c", "/t/x y/2", "/t/x y/01", "a", "/u/z"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_false(stet_toml_locate(text, strlen(text), absent[i], &line, &column));
    assert_false(stet_toml_locate("a=", 2, "", &line, &column));
}

static void writing(void **state) {
    (void)state;
    static const char *const keys[] = {"a", "a-b_1", "", "a b", "\xc3\xa4", "a\"\\\b\t\n\f\r", "\x01\x7f", "a.b", "'"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        stet_buf b = STET_BUF(0);
        stet_toml_write_key(&b, keys[i], strlen(keys[i]));
        stet_buf_str(&b, " = ");
        stet_toml_write_string(&b, keys[i], strlen(keys[i]));
        stet_value v = parse(stet_buf_cstr(&b)), text;
        assert_true(stet_value_find(v, keys[i], strlen(keys[i]), &text));
        size_t len;
        assert_string_equal(stet_value_as_string(&text, &len), keys[i]);
        stet_value_release(v);
        stet_buf_release(&b);
    }
    stet_buf b = STET_BUF(0);
    stet_toml_write_string(&b, "a\0b", 3);
    assert_string_equal(stet_buf_cstr(&b), "\"a\\u0000b\"");
    stet_buf_clear(&b);
    stet_toml_write_key(&b, "bare-Key_9", 10);
    assert_string_equal(stet_buf_cstr(&b), "bare-Key_9");
    stet_buf_release(&b);
}

/* Texts come as "<length>\n<bytes>"; for each goes one line: {"ok":VALUE} or {"error":MESSAGE}. */
static int oracle(void) {
    size_t len;
    while (scanf("%zu", &len) == 1) {
        getchar();
        char *text = malloc(len + 1);
        if (!text || fread(text, 1, len, stdin) != len)
            return 1;
        stet_error err = STET_ERROR_INIT;
        stet_value v;
        stet_buf b = STET_BUF(0);
        if (stet_toml_parse(text, len, &v, &err) == STET_OK) {
            stet_buf_str(&b, "{\"ok\":");
            stet_json_write(&b, v, STET_JSON_CANONICAL);
            stet_value_release(v);
        } else {
            stet_buf_str(&b, "{\"error\":");
            stet_json_write_string(&b, err.message, strlen(err.message));
        }
        stet_buf_str(&b, "}\n");
        fwrite(b.data, 1, b.len, stdout);
        stet_buf_release(&b);
        stet_error_clear(&err);
        free(text);
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--oracle") == 0)
        return oracle();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values), cmocka_unit_test(errors),  cmocka_unit_test(limits),
        cmocka_unit_test(locate), cmocka_unit_test(writing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
