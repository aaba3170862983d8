/* persist_log.c - a torn log: cut at each byte, and each byte flipped.
 *
 * Only entries whose hash is right are accepted, nothing crashes, and what is appended afterwards is found.
 */

#include "../expect.h"

#include "../faults.h"
#include "../persist_place.h"

static const char *const texts[] = {"first", "second one", "the third"};
static char *log_text;
static size_t log_len;

static void make_log(void) {
    stet_persist_config c = place_config();
    stet_persist *p;
    mkdir("x", 0777);
    OK(place_open("x", "m1", &c, &p, &err));
    for (uint64_t i = 0; i < 3; i++)
        OK(place_put(p, i == 1 ? "free text: \xc3\xa9" : "b", M1, T0 + i, texts[i], strlen(texts[i]), &err));
    stet_persist_close(p);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("x/d/entry_log/machine_m1.toml", 0, &b, &err));
    log_text = stet_buf_take(&b, &log_len);
}

static bool known(void *ctx, const stet_persist_entry *e) {
    uint64_t i = e->key.created_at - T0;
    bool later = i == 77;
    assert_true(later || i < 3);
    assert_true(later || place_has(ctx, i == 1 ? "free text: \xc3\xa9" : "b", M1, e->key.created_at, texts[i],
                                   strlen(texts[i])));
    return true;
}

static size_t count;
static bool tally(void *ctx, const stet_persist_entry *e) {
    (void)ctx, (void)e;
    count++;
    return true;
}

/* `least`: entries that must have survived. */
static void with_log(const char *bytes, size_t len, size_t least, size_t at) {
    int fd = open("x/d/entry_log/machine_m1.toml", O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
    stet_persist_config c = place_config();
    stet_persist *p;
    OK(place_open("x", "m1", &c, &p, &err));
    OK(stet_persist_each(p, NULL, known, p, &err));
    count = 0;
    OK(stet_persist_each(p, NULL, tally, NULL, &err));
    if (count < least)
        fail_msg("byte %zu: %zu entries, at least %zu expected", at, count, least);
    OK(place_put(p, "later", M1, T0 + 77, "later", 5, &err));
    assert_true(place_has(p, "later", M1, T0 + 77, "later", 5));
    stet_persist_close(p);
    /* And for the next process. */
    OK(place_open("x", "m1", &c, &p, &err));
    assert_true(place_has(p, "later", M1, T0 + 77, "later", 5));
    size_t before = count;
    count = 0;
    OK(stet_persist_each(p, NULL, tally, NULL, &err));
    assert_int_equal(count, before + 1);
    stet_persist_close(p);
}

/* How many entries end before `at`. */
static size_t whole_before(size_t at) {
    size_t n = 0;
    for (size_t i = 0; i + 9 < at; i++)
        n += !strncmp(log_text + i, "\nhash = \"", 9) && i + 21 <= at;
    return n;
}

static void cut(void **state) {
    (void)state;
    for (size_t at = 0; at <= log_len; at++)
        with_log(log_text, at, whole_before(at), at);
}

static void flipped(void **state) {
    (void)state;
    int bits = getenv("STET_TEST_LONG") ? 8 : 1;
    char *copy = stet_alloc(log_len);
    for (size_t at = 0; at < log_len; at++)
        for (int bit = 0; bit < bits; bit++) {
            memcpy(copy, log_text, log_len);
            copy[at] ^= (char)(bits == 8 ? 1 << bit : 1 << (at % 8));
            /* A flip touches the entry it is in; one in a line break may take the next one too. */
            with_log(copy, log_len, 1, at);
        }
    stet_free(copy);
}

int main(void) {
    faults_fast_directory();
    make_log();
    const struct CMUnitTest tests[] = {cmocka_unit_test(cut), cmocka_unit_test(flipped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
