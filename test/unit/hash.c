/* hash.c - SHA-256: published values, streaming, values, hex and base64url, threads. */

#include "base/hash.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_hash(const char *text, size_t len, const char *hex) {
    char out[STET_HASH_HEX];
    stet_hash_hex(stet_hash_of(text, len), out);
    assert_string_equal(out, hex);
}

static void published_values(void **state) {
    (void)state;
    check_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash(NULL, 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    check_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = malloc(1000000);
    memset(million, 'a', 1000000);
    check_hash(million, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static void streaming_equals_at_once(void **state) {
    (void)state;
    unsigned char bytes[1000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 7);
    for (size_t step = 1; step < 200; step += 13) {
        stet_hasher *h = stet_hasher_begin(), *other = stet_hasher_begin();
        for (size_t at = 0; at < sizeof bytes; at += step) {
            size_t len = at + step < sizeof bytes ? step : sizeof bytes - at;
            stet_hasher_add(h, bytes + at, len);
            stet_hasher_add(other, "x", 1);
            stet_hasher_add(h, NULL, 0);
            /* Hashing at once in between disturbs no stream. */
            (void)stet_hash_of("y", 1);
        }
        assert_true(stet_hash_equal(stet_hasher_end(h), stet_hash_of(bytes, sizeof bytes)));
        (void)stet_hasher_end(other);
    }
}

static void of_values(void **state) {
    (void)state;
    stet_value a, b;
    assert_int_equal(stet_json_parse("{\"b\": 1.0, \"a\": [ ]}", 20, &a, NULL), STET_OK);
    assert_int_equal(stet_json_parse("{\"a\":[],\"b\":1}", 14, &b, NULL), STET_OK);
    assert_true(stet_hash_equal(stet_hash_value(a), stet_hash_value(b)));
    assert_true(stet_hash_equal(stet_hash_value(a), stet_hash_of("{\"a\":[],\"b\":1}", 14)));
    stet_value_release(a);
    stet_value_release(b);
}

static void hex(void **state) {
    (void)state;
    stet_hash h = stet_hash_of("abc", 3), back, zero = {{0}};
    char text[STET_HASH_HEX];
    stet_hash_hex(h, text);
    assert_true(stet_hash_of_hex(text, 64, &back));
    assert_true(stet_hash_equal(h, back));
    assert_int_equal(stet_hash_compare(h, back), 0);
    assert_true(stet_hash_compare(zero, h) < 0 && stet_hash_compare(h, zero) > 0);
    assert_true(stet_hash_is_zero(zero));
    assert_false(stet_hash_is_zero(h));
    assert_false(stet_hash_of_hex(text, 63, &back));
    text[63] = 'A'; /* upper case would be a second name */
    assert_false(stet_hash_of_hex(text, 64, &back));
    text[63] = 'g';
    assert_false(stet_hash_of_hex(text, 64, &back));
    text[63] = '\0';
    assert_false(stet_hash_of_hex(text, 64, &back));
    char out[5];
    assert_int_equal(stet_hex_encode("\x00\xff", 2, out), 4);
    assert_string_equal(out, "00ff");
    assert_int_equal(stet_hex_encode("", 0, out), 0);
    assert_string_equal(out, "");
}

static void base64url(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"}};
    char text[64], bytes[64];
    size_t len;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        assert_int_equal(stet_base64url_encode(pairs[i][0], strlen(pairs[i][0]), text), strlen(pairs[i][1]));
        assert_string_equal(text, pairs[i][1]);
        assert_true(stet_base64url_decode(text, strlen(text), bytes, &len));
        assert_int_equal(len, strlen(pairs[i][0]));
        assert_memory_equal(bytes, pairs[i][0], len);
    }
    static const char *const bad[] = {"Z",    "Zg==",  "Zh",   "Zm9",    "Zm8=",      "Zm+v",
                                      "Zm/v", "Zm9vY", "Zm 9", "Zm9v\n", "\xc3\xa4xx"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(stet_base64url_decode(bad[i], strlen(bad[i]), bytes, &len));
    /* All lengths, and that the stated sizes of buffers are enough (the sanitizer watches). */
    for (size_t n = 0; n < 100; n++) {
        unsigned char *in = malloc(n + 1), *back;
        for (size_t i = 0; i < n; i++)
            in[i] = (unsigned char)(i * 37 + n);
        char *encoded = malloc((n * 4 + 2) / 3 + 1);
        size_t m = stet_base64url_encode(in, n, encoded);
        assert_int_equal(m, (n * 4 + 2) / 3);
        back = malloc(m * 3 / 4 + 1);
        assert_true(stet_base64url_decode(encoded, m, back, &len));
        assert_int_equal(len, n);
        assert_memory_equal(in, back, n);
        free(in);
        free(encoded);
        free(back);
    }
    /* One text per value: of all two-letter texts, exactly the 256 canonical ones are taken. */
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t taken = 0;
    for (size_t i = 0; i < 64; i++)
        for (size_t j = 0; j < 64; j++)
            taken += stet_base64url_decode((char[]){digits[i], digits[j]}, 2, bytes, &len);
    assert_int_equal(taken, 256);
}

static void *in_thread(void *arg) {
    for (int i = 0; i < 1000; i++)
        if (!stet_hash_equal(stet_hash_of("abc", 3), *(stet_hash *)arg))
            return arg;
    return NULL;
}

static void threads(void **state) {
    (void)state;
    stet_hash expected = stet_hash_of("abc", 3);
    pthread_t ids[8];
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, in_thread, &expected), 0);
    for (size_t i = 0; i < 8; i++) {
        void *wrong;
        assert_int_equal(pthread_join(ids[i], &wrong), 0);
        assert_null(wrong);
    }
}

static void version(void **state) {
    (void)state;
    assert_string_equal(stet_version(), STET_VERSION);
    assert_int_equal(stet_version_number(), STET_VERSION_NUMBER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values), cmocka_unit_test(streaming_equals_at_once),
        cmocka_unit_test(of_values),        cmocka_unit_test(hex),
        cmocka_unit_test(base64url),        cmocka_unit_test(threads),
        cmocka_unit_test(version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
