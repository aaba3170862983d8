/* json.c - the JSON reader and printer: values, refusals with positions, limits, locating, streams. */

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Read from memory that ends where the text does, so that a sanitizer sees a byte read beyond it. */
static stet_status read_exactly(const char *text, size_t len, const stet_json_limits *limits, stet_value *v,
                                stet_error *err) {
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    stet_status status = stet_json_read(copy, len, limits, v, err);
    free(copy);
    return status;
}

static void assert_reads(const char *text, const char *canonical) {
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    if (read_exactly(text, strlen(text), NULL, &v, &err))
        fail_msg("%s: %s", text, err.message);
    char *printed = stet_json_print(v, STET_JSON_CANONICAL, NULL);
    assert_string_equal(printed, canonical);
    stet_value again;
    assert_int_equal(read_exactly(printed, strlen(printed), NULL, &again, &err), STET_OK);
    assert_true(stet_value_equal(v, again));
    stet_value_release(again);
    stet_free(printed);
    stet_value_release(v);
}

static void values_come_out_canonical(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {" null\n", "null"},
        {"true", "true"},
        {"\tfalse\r\n", "false"},
        {"[]", "[]"},
        {"{ }", "{}"},
        {"[ [ ] , { } ]", "[[],{}]"},
        {"{\"b\":1,\"a\":2,\"\":3,\"ab\":4}", "{\"\":3,\"a\":2,\"ab\":4,\"b\":1}"},
        {"{\"\xEF\xBF\xBD\":1,\"\xF0\x90\x80\x80\":2}", "{\"\xEF\xBF\xBD\":1,\"\xF0\x90\x80\x80\":2}"},
        {"{\"a key of more than fourteen\":1,\"a key of more\":2}",
         "{\"a key of more\":2,\"a key of more than fourteen\":1}"},
        {"\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"", "\"A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\""},
        {"\"\\u0000\\u001F\\u007f\\u2028\"", "\"\\u0000\\u001f\x7F\xE2\x80\xA8\""},
        {"0", "0"},
        {"-0", "0"},
        {"-0.0e5", "0"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"1.0", "1"},
        {"1E2", "100"},
        {"1e-2", "0.01"},
        {"0.1e1", "1"},
        {"9007199254740993", "9007199254740993"},
        {"9007199254740993.0", "9007199254740992"},
        {"1e17", "1e+17"}, /* not 100000000000000000, which is an integer */
        {"123456789012345678e1", "1.2345678901234568e+18"},
        {"-1e20", "-1e+20"},
        {"1e21", "1e+21"},
        {"1e-7", "1e-7"},
        {"0.000001", "0.000001"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"5e-324", "5e-324"},
        {"1e-400", "0"},
        {"0.00000000000000000000000000000000000000000000000000000000000000000000001e71", "1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_reads(cases[i][0], cases[i][1]);
}

/* Strings of every length, with and without an escape or a letter beyond ASCII at every place: all paths of the
 * scanner. */
static void strings_of_every_shape(void **state) {
    (void)state;
    static const char *const middles[][2] = {
        {"", ""}, {"\\n", "\\n"}, {"\\u00e9", "\xC3\xA9"}, {"\xE2\x82\xAC", "\xE2\x82\xAC"}};
    for (size_t m = 0; m < 4; m++)
        for (size_t before = 0; before < 36; before++)
            for (size_t after = 0; after < 36; after++) {
                char text[128], expected[128], x[40], y[40];
                memset(x, 'x', before);
                memset(y, 'y', after);
                x[before] = y[after] = 0;
                snprintf(text, sizeof text, "\"%s%s%s\"", x, middles[m][0], y);
                snprintf(expected, sizeof expected, "\"%s%s%s\"", x, middles[m][1], y);
                assert_reads(text, expected);
            }
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int line, column, offset;
        const char *says;
    } cases[] = {
        {"", 1, 1, 0, "expected a value, found the end of the text"},
        {"  \n ", 2, 2, 4, "expected a value, found the end of the text"},
        {"nul", 1, 1, 0, "expected a value, found 'n'"},
        {"nulL", 1, 1, 0, "expected a value"},
        {"True", 1, 1, 0, "expected a value, found 'T'"},
        {"NaN", 1, 1, 0, "expected a value"},
        {"-Infinity", 1, 2, 1, "expected a digit, found 'I'"},
        {"1 2", 1, 3, 2, "expected the end of the text, found '2'"},
        {"truex", 1, 5, 4, "expected the end of the text"},
        {"[1,]", 1, 4, 3, "expected a value, found ']'"},
        {"[,1]", 1, 2, 1, "expected a value, found ','"},
        {"[1 2]", 1, 4, 3, "expected ',' or ']', found '2'"},
        {"[1}", 1, 3, 2, "expected ',' or ']', found '}'"},
        {"[1", 1, 3, 2, "expected ',' or ']', found the end of the text"},
        {"[", 1, 2, 1, "expected a value"},
        {"{", 1, 2, 1, "expected a key in quotes, found the end of the text"},
        {"{\"a\":1,}", 1, 8, 7, "expected a key in quotes, found '}'"},
        {"{a:1}", 1, 2, 1, "expected a key in quotes, found 'a'"},
        {"{\"a\" 1}", 1, 6, 5, "expected ':', found '1'"},
        {"{\"a\":}", 1, 6, 5, "expected a value, found '}'"},
        {"{\"a\":1]", 1, 7, 6, "expected ',' or '}', found ']'"},
        {"{1:2}", 1, 2, 1, "expected a key in quotes"},
        {"\"abc", 1, 5, 4, "the text ends inside a string"},
        {"\"abc\\", 1, 6, 5, "the text ends inside a string"},
        {"\"a\nb\"", 1, 3, 2, "control character 0x0a inside a string"},
        {"\"a\tb\"", 1, 3, 2, "control character 0x09"},
        {"\"a\\x\"", 1, 3, 2, "unknown escape: a backslash before 'x'"},
        {"\"\\u12g4\"", 1, 2, 1, "\\u needs four hexadecimal digits"},
        {"\"\\u12", 1, 2, 1, "\\u needs four hexadecimal digits"},
        {"\"\\ud800\"", 1, 2, 1, "lone high surrogate \\ud800"},
        {"\"\\ud800\\u0041\"", 1, 2, 1, "lone high surrogate"},
        {"\"\\ud800\\ud800\"", 1, 2, 1, "lone high surrogate"},
        {"\"\\ud83d", 1, 2, 1, "lone high surrogate"},
        {"\"x\\uDC00\"", 1, 3, 2, "lone low surrogate \\uDC00"},
        {"\"\xC3\xA9\xFF\"", 1, 3, 3, "invalid UTF-8: byte 0xff"},
        {"\"0123456789abcdef\xC0\x80\"", 1, 18, 17, "invalid UTF-8: byte 0xc0"},
        {"\"\xED\xA0\x80\"", 1, 2, 1, "invalid UTF-8: byte 0xed"},
        {"\"\\n\xE2\x82\"", 1, 4, 3, "invalid UTF-8"},
        {"\xFF", 1, 1, 0, "expected a value, found byte 0xff"},
        {"[\xC3\xA9]", 1, 2, 1, "expected a value, found '\xC3\xA9'"},
        {"\xEF\xBB\xBF{}", 1, 1, 0, "byte order mark"},
        {"01", 1, 1, 0, "may not begin with a zero"},
        {"-01", 1, 2, 1, "may not begin with a zero"},
        {"-", 1, 2, 1, "expected a digit, found the end of the text"},
        {"+1", 1, 1, 0, "expected a value"},
        {".5", 1, 1, 0, "expected a value"},
        {"1.", 1, 3, 2, "expected a digit after the decimal point"},
        {"1.e5", 1, 3, 2, "expected a digit after the decimal point"},
        {"1e", 1, 3, 2, "expected a digit of the exponent"},
        {"1e+", 1, 4, 3, "expected a digit of the exponent"},
        {"1e5.5", 1, 4, 3, "expected the end of the text"},
        {"0x10", 1, 2, 1, "expected the end of the text, found 'x'"},
        {"9223372036854775808", 1, 1, 0, "integer 9223372036854775808 is outside the range of 64 bits"},
        {"-9223372036854775809", 1, 1, 0, "outside the range of 64 bits"},
        {"18446744073709551616", 1, 1, 0, "outside the range of 64 bits"},
        {"[100000000000000000000000000000000000000000000]", 1, 2, 1,
         "integer 1000000000000000000000000000000000000000... is"},
        {"1e309", 1, 1, 0, "number 1e309 is too large"},
        {"-1.7976931348623159e308", 1, 1, 0, "too large"},
        {"1e99999999999999999999999", 1, 1, 0, "too large"},
        {"{\"a\":1,\n \"b\":{\"a\":2},\n \"\\u0061\":3}", 3, 2, 23, "duplicate key \"a\""},
        {"[{\"x\":[{\"x\":\"}\\\"{\"}],\"y\":0,\"x\":1,\"x\":2}]", 1, 28, 27, "duplicate key \"x\""},
        {"{\"\":1,\"\":2}", 1, 7, 6, "duplicate key \"\""},
        {"/* c */ 1", 1, 1, 0, "expected a value, found '/'"},
        {"['a']", 1, 2, 1, "expected a value"},
        {"[\"\xE6\x97\xA5\xE6\x9C\xAC\", x]", 1, 8, 11, "expected a value, found 'x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_error err = STET_ERROR_INIT;
        stet_value v = stet_value_int(42);
        stet_status status = read_exactly(cases[i].text, strlen(cases[i].text), NULL, &v, &err);
        if (status != STET_INVALID || err.status != status)
            fail_msg("%s: status %d, %d in the error", cases[i].text, status, err.status);
        assert_int_equal(stet_value_as_int(v), 42);
        char where[64];
        snprintf(where, sizeof where, "line %d, column %d (byte %d): ", cases[i].line, cases[i].column,
                 cases[i].offset);
        if (strncmp(err.message, where, strlen(where)) || !strstr(err.message, cases[i].says))
            fail_msg("%s: \"%s\", expected \"%s%s\"", cases[i].text, err.message, where, cases[i].says);
        assert_int_equal(stet_value_as_int(stet_value_get(err.details, "line")), cases[i].line);
        assert_int_equal(stet_value_as_int(stet_value_get(err.details, "column")), cases[i].column);
        assert_int_equal(stet_value_as_int(stet_value_get(err.details, "offset")), cases[i].offset);
        stet_error_clear(&err);
        assert_int_equal(read_exactly(cases[i].text, strlen(cases[i].text), NULL, &v, NULL), STET_INVALID);
    }
}

static void a_nul_is_no_end(void **state) {
    (void)state;
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    assert_int_equal(read_exactly("1\0", 2, NULL, &v, &err), STET_INVALID);
    assert_non_null(strstr(err.message, "found byte 0x00"));
    stet_error_clear(&err);
    assert_int_equal(read_exactly("\"a\0b\"", 5, NULL, &v, &err), STET_INVALID);
    assert_non_null(strstr(err.message, "control character 0x00"));
    stet_error_clear(&err);
    assert_int_equal(stet_json_read(NULL, 0, NULL, &v, &err), STET_INVALID);
    stet_error_clear(&err);
}

static void limits_hold(void **state) {
    (void)state;
    char text[2048];
    for (size_t max = 0; max <= 600; max += 100) {
        size_t allowed = max ? max : 512;
        for (size_t depth = allowed; depth <= allowed + 1; depth++) {
            memset(text, '[', depth);
            memset(text + depth, ']', depth);
            stet_error err = STET_ERROR_INIT;
            stet_value v;
            stet_status status = read_exactly(text, 2 * depth, &(stet_json_limits){.max_depth = max}, &v, &err);
            if (depth == allowed) {
                assert_int_equal(status, STET_OK);
                stet_value_release(v);
            } else {
                assert_int_equal(status, STET_LIMIT);
                assert_int_equal(stet_value_as_int(stet_value_get(err.details, "offset")), allowed);
                stet_error_clear(&err);
            }
        }
    }
    stet_error err = STET_ERROR_INIT;
    stet_value v;
    assert_int_equal(read_exactly("[1,\n2,3]", 8, &(stet_json_limits){.max_bytes = 5}, &v, &err), STET_LIMIT);
    assert_string_equal(err.message, "line 2, column 2 (byte 5): the text has 8 bytes, more than the 5 allowed");
    stet_error_clear(&err);
    assert_int_equal(read_exactly("[1,\n2,3]", 8, &(stet_json_limits){.max_bytes = 8}, &v, &err), STET_OK);
    stet_value_release(v);
}

static void depth_costs_no_stack(void **state) {
    (void)state;
    size_t depth = 1000000;
    char *text = malloc(5 * depth);
    for (size_t i = 0; i < depth; i++)
        memcpy(text + 5 * i, "{\"\":[", 5); /* never closed: the way out of an error */
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    stet_json_limits limits = {.max_depth = 10 * depth};
    assert_int_equal(stet_json_read(text, 5 * depth, &limits, &v, &err), STET_INVALID);
    stet_error_clear(&err);
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    assert_int_equal(stet_json_read(text, 2 * depth, &limits, &v, &err), STET_OK);
    size_t len;
    char *printed = stet_json_print(v, STET_JSON_CANONICAL, &len);
    assert_int_equal(len, 2 * depth);
    assert_memory_equal(printed, text, len);
    stet_free(printed);
    stet_value_release(v);
    free(text);
}

static void big_objects_in_any_order(void **state) {
    (void)state;
    enum { N = 100000 };
    stet_buf text = STET_BUF(0);
    for (int i = 0; i < N; i++)
        stet_buf_printf(&text, "%s\"%d%s\":%d", i ? "," : "{", (int)((long)i * 99991 % N),
                        i % 2 ? " with a rather long tail" : "", i);
    stet_buf duplicate = STET_BUF(0);
    stet_buf_add(&duplicate, text.data, text.len);
    stet_buf_char(&text, '}');
    stet_value v;
    assert_int_equal(stet_json_parse(text.data, text.len, &v, NULL), STET_OK);
    assert_int_equal(stet_value_count(v), N);
    for (size_t i = 1; i < N; i++)
        assert_true(strcmp(stet_value_key_at(v, i - 1, NULL), stet_value_key_at(v, i, NULL)) < 0);
    stet_value_release(v);
    size_t at = duplicate.len + 1;
    stet_buf_str(&duplicate, ",\"0\":1}");
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_json_parse(duplicate.data, duplicate.len, &v, &err), STET_INVALID);
    assert_int_equal(stet_value_as_int(stet_value_get(err.details, "offset")), at);
    stet_error_clear(&err);
    stet_buf_release(&text);
    stet_buf_release(&duplicate);
}

static void pretty(void **state) {
    (void)state;
    stet_value v;
    const char *text = "{\"a\":[1,{\"b\":[],\"c\":{}},\"x\"],\"d\":null}";
    assert_int_equal(stet_json_parse(text, strlen(text), &v, NULL), STET_OK);
    size_t len;
    char *printed = stet_json_print(v, STET_JSON_PRETTY, &len);
    assert_string_equal(printed,
                        "{\n  \"a\": [\n    1,\n    {\n      \"b\": [],\n      \"c\": {}\n    },\n    \"x\"\n  ],\n"
                        "  \"d\": null\n}\n");
    assert_int_equal(len, strlen(printed));
    stet_free(printed);
    stet_value_release(v);
    printed = stet_json_print(stet_value_int(3), STET_JSON_PRETTY, NULL);
    assert_string_equal(printed, "3\n");
    stet_free(printed);
}

static void a_full_buffer_stops_the_printer(void **state) {
    (void)state;
    stet_value v;
    const char *text = "{\"a\":[1,2,3,\"some longer text\"],\"b\":1.5}";
    size_t whole = strlen(text);
    assert_int_equal(stet_json_parse(text, whole, &v, NULL), STET_OK);
    for (size_t max = 1; max <= whole; max++) {
        stet_buf b = STET_BUF(max);
        stet_json_write(&b, v, STET_JSON_CANONICAL);
        assert_int_equal(b.overflow, max < whole);
        assert_true(b.len <= max);
        assert_memory_equal(stet_buf_cstr(&b), text, b.len);
        stet_buf_release(&b);
    }
    stet_value_release(v);
}

static void locating(void **state) {
    (void)state;
    const char *text = " {\"a\": [10, {\"b\": \"x}\\\"]\"}],\n  \"a/b~\": {\"\": [[], 7]},\n  \"\\u00e9\": true, "
                       "\"long key, escaped \\n\": 1}\n";
    static const struct {
        const char *pointer;
        size_t line, column; /* 0: not there */
    } cases[] = {{"", 1, 2},
                 {"/a", 1, 8},
                 {"/a/0", 1, 9},
                 {"/a/1", 1, 13},
                 {"/a/1/b", 1, 19},
                 {"/a/2", 0, 0},
                 {"/a/01", 0, 0},
                 {"/a/-", 0, 0},
                 {"/a~1b~0", 2, 11},
                 {"/a~1b~0/", 2, 16},
                 {"/a~1b~0//1", 2, 21},
                 {"/a~1b~0//0", 2, 17},
                 {"/a~1b~0//0/0", 0, 0},
                 {"/\xC3\xA9", 3, 13},
                 {"/nope", 0, 0},
                 {"/\xC3\xA9/x", 0, 0},
                 {"/long key, escaped \n", 3, 43},
                 {"a", 0, 0},
                 {"/\xFF", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t line = 0, column = 0;
        bool found = stet_json_locate(text, strlen(text), cases[i].pointer, &line, &column);
        if (found != (cases[i].line != 0) || line != cases[i].line || column != cases[i].column)
            fail_msg("%s: %d at %zu:%zu", cases[i].pointer, found, line, column);
    }
    /* A text that does not parse leads nowhere, and never beyond its end. */
    for (size_t len = 0; len < strlen(text); len++) {
        char *copy = malloc(len ? len : 1);
        memcpy(copy, text, len);
        size_t line, column;
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            stet_json_locate(copy, len, cases[i].pointer, &line, &column);
        free(copy);
    }
}

static void every_prefix_is_refused(void **state) {
    (void)state;
    const char *text =
        "{\"a\":[1.5e3,true,\"\\ud83d\\ude00 and some more text\",{\"a rather long key here\":-12}],\"b\":null}";
    for (size_t len = 0; len < strlen(text); len++) {
        stet_value v;
        stet_error err = STET_ERROR_INIT;
        assert_int_equal(read_exactly(text, len, NULL, &v, &err), STET_INVALID);
        stet_error_clear(&err);
    }
}

static void long_keys_are_shared(void **state) {
    (void)state;
    stet_value v;
    const char *text = "[{\"a rather long key\":1},{\"a rather long key\":2},{\"a rather long kez\":3}]";
    assert_int_equal(stet_json_parse(text, strlen(text), &v, NULL), STET_OK);
    assert_ptr_equal(stet_value_key_at(stet_value_at(v, 0), 0, NULL), stet_value_key_at(stet_value_at(v, 1), 0, NULL));
    assert_string_equal(stet_value_key_at(stet_value_at(v, 2), 0, NULL), "a rather long kez");
    /* And one outlives the other. */
    stet_value second = stet_value_retain(stet_value_at(v, 1));
    stet_value_release(v);
    assert_string_equal(stet_value_key_at(second, 0, NULL), "a rather long key");
    stet_value_release(second);
}

typedef struct handed {
    stet_buf text;
    size_t count;
} handed;

static void hand(void *ctx, stet_value element) {
    handed *h = ctx;
    h->count++;
    stet_json_write(&h->text, element, STET_JSON_CANONICAL);
    stet_buf_char(&h->text, '\n');
}

static void streams(const char *text, const char *handed_over, const char *rest) {
    static const char *const wanted[] = {"id", NULL};
    handed h = {.text = STET_BUF(0)};
    stet_json_stream stream = {"rows", wanted, hand, &h};
    stet_value v = stet_value_null();
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_json_read_stream(text, strlen(text), NULL, &stream, &v, &err), STET_OK);
    assert_string_equal(stet_buf_cstr(&h.text), handed_over);
    stet_buf b = STET_BUF(0);
    stet_json_write(&b, v, STET_JSON_CANONICAL);
    assert_string_equal(stet_buf_cstr(&b), rest);
    stet_buf_release(&b);
    stet_buf_release(&h.text);
    stet_value_release(v);
}

static void elements_of_a_stream_are_handed_over_and_the_rest_is_read(void **state) {
    (void)state;
    streams("{\"a\": [1], \"rows\": [{\"id\": \"a name of some length\", \"x\": \"another of some length\", "
            "\"in\": {\"x\": \"kept, as it lies deeper\"}}, 7, [\"no member: it is kept\"], \"this one, too: kept\"],"
            "\"rows2\": [{\"x\": \"not of the stream: kept\"}], \"z\": {\"rows\": [1, 2]}}",
            "{\"id\":\"a name of some length\",\"in\":{\"x\":\"kept, as it lies deeper\"},\"x\":\"\"}\n7\n"
            "[\"no member: it is kept\"]\n\"this one, too: kept\"\n",
            "{\"a\":[1],\"rows\":[],\"rows2\":[{\"x\":\"not of the stream: kept\"}],\"z\":{\"rows\":[1,2]}}");
    streams("{\"rows\": {\"x\": [1, 2]}}", "", "{\"rows\":{\"x\":[1,2]}}");
    streams("[[1, 2], {\"rows\": [3]}]", "", "[[1,2],{\"rows\":[3]}]");
    streams("{\"rows\": []}", "", "{\"rows\":[]}");
    /* Keys beyond the inline size go with their element, and come again in the next. */
    streams("{\"rows\": [{\"a rather long key\": 1}, {\"a rather long key\": 2}], \"a rather long key\": 3}",
            "{\"a rather long key\":1}\n{\"a rather long key\":2}\n", "{\"a rather long key\":3,\"rows\":[]}");
}

static void a_stream_is_held_to_the_same_rules(void **state) {
    (void)state;
    static const char *const texts[] = {"{\"rows\": [{\"a\": 1, \"a\": 2}]}",
                                        "{\"rows\": [1], \"rows\": [2]}",
                                        "{\"rows\": [{\"x\": \"a long string with \x01 in it\"}]}",
                                        "{\"rows\": [{\"x\": \"long and bad \xff bytes\"}]}",
                                        "{\"rows\": [1,]}",
                                        "{\"rows\": [1}",
                                        "{\"rows\": [{\"x\": \"a long one with \\q an escape\"}]}",
                                        "{\"rows\": [{\"x\": \"a text that does not end"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        static const char *const wanted[] = {NULL};
        handed h = {.text = STET_BUF(0)};
        stet_json_stream stream = {"rows", wanted, hand, &h};
        stet_error plain = STET_ERROR_INIT, streamed = STET_ERROR_INIT;
        stet_value v;
        stet_status status = stet_json_read(texts[i], strlen(texts[i]), NULL, &v, &plain);
        assert_int_not_equal(status, STET_OK);
        assert_int_equal(stet_json_read_stream(texts[i], strlen(texts[i]), NULL, &stream, &v, &streamed), status);
        assert_string_equal(plain.message, streamed.message);
        stet_buf_release(&h.text);
        stet_error_clear(&plain);
        stet_error_clear(&streamed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_out_canonical),
        cmocka_unit_test(strings_of_every_shape),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_nul_is_no_end),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(depth_costs_no_stack),
        cmocka_unit_test(big_objects_in_any_order),
        cmocka_unit_test(pretty),
        cmocka_unit_test(a_full_buffer_stops_the_printer),
        cmocka_unit_test(locating),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(long_keys_are_shared),
        cmocka_unit_test(elements_of_a_stream_are_handed_over_and_the_rest_is_read),
        cmocka_unit_test(a_stream_is_held_to_the_same_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
