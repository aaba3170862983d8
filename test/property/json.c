/* json.c - accepting and refusing JSON, compared with jansson and Python's json.
 *
 * Valid texts are made at random, then mutated (bytes changed, dropped, doubled, swapped, cut); jansson and Python's
 * json judge each. Only these differences are allowed:
 *
 *   jansson  refuses \u0000 in keys and, without JSON_ALLOW_NUL, in values (allowed here); refuses numbers too large
 *            for a double and integers outside 64 bits, as we do; reads no deeper than 2048; refuses a number too small
 *            for a double in some versions.
 *   Python   accepts NaN and Infinity (refused by a hook here), integers of any size, 1e999 as infinity (both refused
 *            by hooks), duplicate keys (refused by a hook), and lone surrogates in escapes (looked for in what it
 *            read).
 */

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"

static uint64_t state = 0x853C49E6748FEA9Bu;

static uint64_t random_number(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state * 0x9E3779B97F4A7C15u >> 11) % below;
}

static void add_space(stet_buf *b) {
    static const char *const spaces[] = {"", "", "", "", " ", "\n", "\t", "\r\n", "  \n      "};
    stet_buf_str(b, spaces[random_number(9)]);
}

static void add_string(stet_buf *b) {
    static const char *const pieces[] = {"a",
                                         "key",
                                         "\\n",
                                         "\\u00e9",
                                         "\\ud83d\\ude00",
                                         "\xC3\xA9",
                                         "\xE6\x97\xA5",
                                         "\xF0\x9F\x98\x80",
                                         "/",
                                         "\\/",
                                         "\\\"",
                                         "\\\\",
                                         "a longer run of plain letters",
                                         " ",
                                         "\\u0000",
                                         "\x7F",
                                         "0"};
    stet_buf_char(b, '"');
    for (uint64_t n = random_number(4); n; n--)
        stet_buf_str(b, pieces[random_number(17)]);
    stet_buf_char(b, '"');
}

static void add_number(stet_buf *b) {
    static const char *const special[] = {"0",
                                          "-0",
                                          "-0.0",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "9223372036854775808",
                                          "1e308",
                                          "1e309",
                                          "1.5E+10",
                                          "123456789012345678901234567890",
                                          "0.1",
                                          "1e-5",
                                          "4.9e-324",
                                          "18446744073709551616",
                                          "1E400"};
    switch (random_number(4)) {
    case 0:
        stet_buf_str(b, special[random_number(15)]);
        break;
    case 1:
        stet_buf_printf(b, "%d", (int)random_number(2000) - 1000);
        break;
    case 2:
        stet_buf_printf(b, "%.*f", (int)random_number(6) + 1, (double)random_number(1000000) / 7);
        break;
    default:
        stet_buf_printf(b, "%.*e", (int)random_number(18), (double)random_number(1000000) / 3);
        break;
    }
}

static void add_value(stet_buf *b, int depth) {
    uint64_t kind = random_number(depth > 0 ? 9 : 6);
    add_space(b);
    if (kind < 2) {
        add_number(b);
    } else if (kind < 4) {
        add_string(b);
    } else if (kind < 6) {
        static const char *const words[] = {"true", "false", "null"};
        stet_buf_str(b, words[random_number(3)]);
    } else {
        bool object = kind == 8;
        stet_buf_char(b, object ? '{' : '[');
        for (uint64_t i = 0, n = random_number(5); i < n; i++) {
            if (i)
                stet_buf_char(b, ',');
            if (object) {
                add_space(b);
                add_string(b);
                add_space(b);
                stet_buf_char(b, ':');
            }
            add_value(b, depth - 1);
        }
        add_space(b);
        stet_buf_char(b, object ? '}' : ']');
    }
    add_space(b);
}

static void mutate(stet_buf *b) {
    static const char bytes[] = "\"\\{}[]:,0129.eE+-tfnu \n\x01\x1F\x7F\x80\xBF\xC0\xC3\xE2\xED\xF0\xF4\xFFxdD8";
    for (uint64_t n = 1 + random_number(3); n && b->len; n--) {
        size_t at = random_number(b->len), other = random_number(b->len);
        switch (random_number(6)) {
        case 0:
        case 1:
            b->data[at] = bytes[random_number(sizeof bytes - 1)];
            break;
        case 2:
            memmove(b->data + at, b->data + at + 1, b->len - at - 1);
            b->len--;
            break;
        case 3: {
            char c = bytes[random_number(sizeof bytes - 1)];
            stet_buf_char(b, 0);
            memmove(b->data + at + 1, b->data + at, b->len - at - 1);
            b->data[at] = c;
            break;
        }
        case 4: {
            char c = b->data[at];
            b->data[at] = b->data[other];
            b->data[other] = c;
            break;
        }
        default:
            if (random_number(4) == 0)
                b->len = at;
            break;
        }
    }
}

/* The value that jansson read, for a comparison of what was read. */
static bool same(stet_value v, const json_t *j) {
    switch (json_typeof(j)) {
    case JSON_NULL:
        return stet_value_type(v) == STET_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return stet_value_type(v) == STET_TYPE_BOOL && stet_value_as_bool(v) == json_is_true(j);
    case JSON_INTEGER:
        return stet_value_type(v) == STET_TYPE_INT && stet_value_as_int(v) == json_integer_value(j);
    case JSON_REAL:
        return (stet_value_type(v) == STET_TYPE_INT || stet_value_type(v) == STET_TYPE_DOUBLE) &&
               stet_value_as_double(v) == json_real_value(j);
    case JSON_STRING: {
        size_t len;
        const char *bytes = stet_value_as_string(&v, &len);
        return bytes && len == json_string_length(j) && !memcmp(bytes, json_string_value(j), len);
    }
    case JSON_ARRAY:
        if (stet_value_type(v) != STET_TYPE_ARRAY || stet_value_count(v) != json_array_size(j))
            return false;
        for (size_t i = 0; i < stet_value_count(v); i++)
            if (!same(stet_value_at(v, i), json_array_get(j, i)))
                return false;
        return true;
    default:
        if (stet_value_type(v) != STET_TYPE_OBJECT || stet_value_count(v) != json_object_size(j))
            return false;
        for (size_t i = 0; i < stet_value_count(v); i++) {
            json_t *member = json_object_get(j, stet_value_key_at(v, i, NULL));
            if (!member || !same(stet_value_at(v, i), member))
                return false;
        }
        return true;
    }
}

static bool has_nul_in_key(stet_value v) {
    for (size_t i = 0; i < stet_value_count(v); i++) {
        size_t len;
        const char *key = stet_value_key_at(v, i, &len);
        if ((key && memchr(key, 0, len)) || has_nul_in_key(stet_value_at(v, i)))
            return true;
    }
    return false;
}

static size_t count(void) {
    if (getenv("STET_TEST_LONG"))
        return 5000000;
    return getenv("STET_TEST_SHORT") ? 20000 : 200000;
}

static const char oracle[] =
    "import json, sys, struct, math\n"
    "def pairs(p):\n"
    "    d = dict(p)\n"
    "    if len(d) != len(p): raise ValueError('duplicate')\n"
    "    for k in d: k.encode()\n"
    "    return d\n"
    "def integer(s):\n"
    "    n = int(s)\n"
    "    if not -2**63 <= n < 2**63: raise ValueError('range')\n"
    "    return n\n"
    "def real(s):\n"
    "    f = float(s)\n"
    "    if math.isinf(f): raise ValueError('range')\n"
    "    return int(f) if f == int(f) and abs(f) <= 2**53 else f\n"
    "def constant(s): raise ValueError('constant')\n"
    "decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_int=integer, parse_float=real, "
    "parse_constant=constant)\n"
    "data, at, bad, seen, taken = sys.stdin.buffer.read(), 0, 0, 0, 0\n"
    "while at < len(data):\n"
    "    ours, size, printed = struct.unpack_from('=BII', data, at); at += 9\n"
    "    text = data[at:at + size]; at += size\n"
    "    canonical = data[at:at + printed]; at += printed\n"
    "    try:\n"
    "        value = decoder.decode(text.decode('utf-8'))\n"
    "        json.dumps(value, ensure_ascii=False).encode('utf-8')\n"
    "        theirs = 1\n"
    "    except (ValueError, UnicodeError): theirs = 0\n"
    "    seen += 1; taken += theirs\n"
    "    if ours != theirs: print('#', 'differ: ours', ours, 'python', theirs, text); bad += 1\n"
    "    elif ours and decoder.decode(canonical.decode('utf-8')) != value: print('#', 'another value:', text, "
    "canonical); bad += 1\n"
    "    if bad > 10: break\n"
    "print('#', seen, 'texts,', taken, 'accepted by both,', bad, 'differ')\n"
    "sys.exit(1 if bad or not taken or taken == seen else 0)\n";

static void as_jansson_and_python(void **unused) {
    (void)unused;
    FILE *script = fopen("oracle.py", "w");
    fputs(oracle, script);
    fclose(script);
    FILE *python = popen("python3 oracle.py", "w");
    assert_non_null(python);
    size_t n = count(), accepted = 0;
    stet_buf text = STET_BUF(0);
    for (size_t i = 0; i < n; i++) {
        stet_buf_clear(&text);
        add_value(&text, 5);
        if (i % 4)
            mutate(&text);
        stet_error err = STET_ERROR_INIT;
        stet_value v = stet_value_null();
        stet_status status = stet_json_parse(text.data, text.len, &v, &err);
        assert_true(status == STET_OK || status == STET_INVALID);
        json_error_t error;
        json_t *j = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
        bool excused = !j && status == STET_OK && (has_nul_in_key(v) || strstr(error.text, "real number overflow"));
        if ((status == STET_OK) != (j != NULL) && !excused)
            fail_msg("%.*s\nours: %s\njansson: %s", (int)text.len, text.data, status ? err.message : "accepted",
                     j ? "accepted" : error.text);
        size_t printed = 0;
        char *canonical = NULL;
        if (status == STET_OK) {
            accepted++;
            if (j && !same(v, j))
                fail_msg("%.*s: jansson reads another value", (int)text.len, text.data);
            canonical = stet_json_print(v, STET_JSON_CANONICAL, &printed);
            stet_value again;
            assert_int_equal(stet_json_parse(canonical, printed, &again, &err), STET_OK);
            assert_true(stet_value_equal(v, again));
            stet_value_release(again);
        }
        if (i % 4 < 2) { /* Python is slower */
            struct {
                uint8_t ours;
                uint32_t size, printed;
            } __attribute__((packed)) head = {status == STET_OK, (uint32_t)text.len, (uint32_t)printed};
            fwrite(&head, sizeof head, 1, python);
            fwrite(text.data, 1, text.len, python);
            fwrite(canonical ? canonical : "", 1, printed, python);
        }
        stet_free(canonical);
        json_decref(j);
        stet_value_release(v);
        stet_error_clear(&err);
    }
    stet_buf_release(&text);
    assert_in_range(accepted, n / 10, n - n / 10);
    fflush(stdout);
    int status = pclose(python);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_jansson_and_python)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
