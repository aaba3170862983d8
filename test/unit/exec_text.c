/* exec_text.c - the one form of a text: normalization form C and canonical URIs. */

#include "../expect.h"

#include <time.h>
#include <utf8proc.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "repo/text.h"

static void nfc(const char *from, size_t from_len, const char *to, size_t to_len) {
    stet_buf b = STET_BUF(0);
    stet_text_nfc(from, from_len, &b);
    assert_int_equal(b.len, to_len);
    if (to_len)
        assert_memory_equal(b.data, to, to_len);
    assert_int_equal(stet_text_is_nfc(from, from_len), from_len == to_len && memcmp(from, to, to_len) == 0);
    assert_true(stet_text_is_nfc(to, to_len));
    stet_buf_release(&b);
}
#define NFC(from, to) nfc(from, sizeof from - 1, to, sizeof to - 1)

static void known_texts(void **state) {
    (void)state;
    NFC("", "");
    NFC("plain", "plain");
    NFC("a\0b", "a\0b");
    NFC("caf\u00E9", "caf\u00E9");
    NFC("cafe\u0301", "caf\u00E9");
    NFC("e\u0301\0e\u0301x", "\u00E9\0\u00E9x");
    NFC("\u00E9\u0323", "\u1EB9\u0301");       /* marks change places, then join */
    NFC("\u1100\u1161\u11A8", "\uAC01");       /* Hangul */
    NFC("\u212B\u2126", "\u00C5\u03A9");       /* singletons: Angstrom, Ohm */
    NFC("\u0958", "\u0915\u093C");             /* never composed */
    NFC("\uFB01\u00B2", "\uFB01\u00B2");       /* compatibility forms are other texts */
    NFC("\u0301", "\u0301");                   /* a mark alone */
    NFC("\u00FC\u0301\u0308", "\u01D8\u0308"); /* a letter above ASCII before the cut */
    NFC("\U0001D15E", "\U0001D157\U0001D165"); /* beyond 16 bits */
    NFC("\u4E2D\u6587 \U0001F600", "\u4E2D\u6587 \U0001F600");
    NFC("\U00030000\u0378", "\U00030000\u0378"); /* unassigned code points stay */
}

static uint64_t seed = 7;
static uint32_t draw(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Against the library's own way, which differs in how it cuts and sorts. */
static void random_texts_like_the_library(void **state) {
    (void)state;
    static const uint32_t starts[] = {0x20,   0x80,   0xC0,   0x300,  0x300,   0x300,   0x340,
                                      0x3A0,  0x900,  0x1100, 0x1160, 0x11A8,  0x1E00,  0x1F00,
                                      0x3040, 0xAC00, 0xF900, 0xFB1D, 0x110B0, 0x1D150, 0x2F800};
    for (int round = 0; round < 20000; round++) {
        stet_buf b = STET_BUF(0);
        for (uint32_t n = draw(12); n > 0; n--) {
            char bytes[4];
            stet_buf_add(&b, bytes, stet_utf8_encode(starts[draw(sizeof starts / sizeof *starts)] + draw(0x60), bytes));
        }
        utf8proc_uint8_t *want;
        utf8proc_ssize_t len = utf8proc_map((const utf8proc_uint8_t *)stet_buf_cstr(&b), (utf8proc_ssize_t)b.len, &want,
                                            UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        assert_true(len >= 0);
        nfc(stet_buf_cstr(&b), b.len, (const char *)want, (size_t)len);
        free(want);
        stet_buf_release(&b);
    }
}

static double cpu(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Two classes in turn, half a million marks: the square of that would be minutes. */
static void a_megabyte_of_accents_is_sorted_in_time(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0), got = STET_BUF(0);
    stet_buf_str(&b, "x");
    for (int i = 0; i < 250000; i++)
        stet_buf_str(&b, "\u0301\u0316");
    double began = cpu();
    stet_text_nfc(b.data, b.len, &got);
    assert_true(cpu() - began < 5);
    assert_int_equal(got.len, b.len);
    assert_memory_equal(got.data, "x\u0316\u0316", 5);
    assert_memory_equal(got.data + got.len - 4, "\u0301\u0301", 4);
    stet_buf_release(&b);
    stet_buf_release(&got);
}

static void uris(void **state) {
    (void)state;
    static const struct {
        const char *from, *to; /* NULL: refused */
    } all[] = {
        {"dml+exec://stet-exec-local/command", "dml+exec://stet-exec-local/command"},
        {"DML+Exec://Adapter/Path?Q#F", "dml+exec://Adapter/Path?Q#F"},
        {"x:%7euser/%41%2f%c3%a9", "x:~user/A%2F%C3%A9"},
        {"x:cafe\u0301", "x:caf\u00E9"},
        {"x:caf%65\u0301", "x:caf\u00E9"},
        {"urn:a:b", "urn:a:b"},
        {"x:", "x:"},
        {"x://h/a..b/...?../.", "x://h/a..b/...?../."},
        {"x://../a", "x://../a"}, /* an authority */
        {"x://h/a/../b", NULL},
        {"x://h/%2E%2e/b", NULL},
        {"x:./b", NULL},
        {"x://h/.", NULL},
        {"x:a b", NULL},
        {"x:a\nb", NULL},
        {"x:\x7F", NULL},
        {"x:{a}", NULL},
        {"x:%4", NULL},
        {"x:%4g", NULL},
        {"x:%", NULL},
        {"x:%DE\u0301", NULL}, /* the mark would join the digit */
        {"x:%DEe\u0301", "x:%DE\u00E9"},
        {"x:\u1FEF", NULL}, /* a ` in normal form */
        {"x:\xFF", NULL},
        {"x:e\xCC", NULL},
        {"no uri", NULL},
        {":x", NULL},
        {"1x:y", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        stet_buf b = STET_BUF(0), again = STET_BUF(0);
        const char *wrong = stet_text_uri(all[i].from, strlen(all[i].from), &b);
        if (!wrong != !!all[i].to)
            print_message("# %s: %s\n", all[i].from, wrong ? wrong : "taken");
        assert_int_equal(!wrong, all[i].to != NULL);
        if (all[i].to) {
            assert_string_equal(b.data, all[i].to);
            assert_null(stet_text_uri(b.data, b.len, &again)); /* canonical is canonical */
            assert_string_equal(again.data, b.data);
        } else {
            assert_int_equal(b.len, 0);
        }
        stet_buf_release(&b);
        stet_buf_release(&again);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts),
        cmocka_unit_test(random_texts_like_the_library),
        cmocka_unit_test(a_megabyte_of_accents_is_sorted_in_time),
        cmocka_unit_test(uris),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
