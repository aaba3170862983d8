/* persist_log_index.c - the index of the log: missing, damaged or outdated, it never changes what is found. */

#include "../expect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../faults.h"
#include "base/buf.h"
#include "os/file.h"
#include "persist/persist.h"

#define LOG   "d/entry_log/machine_m1.toml"
#define INDEX "l/log-index"
#define T0    63875925237555u
enum { MANY = 700 };

static stet_persist_config config;

static stet_persist *open_it(bool read_only) {
    stet_persist *p;
    stet_persist_place o = {
        .dir = "d", .local_dir = "l", .machine_id = "m1", .config = &config, .read_only = read_only};
    OK(stet_persist_open_place(&o, &p, &err));
    return p;
}

static void put(stet_persist *p, int i) {
    char module[44], block[64], text[32];
    snprintf(module, sizeof module, "m%042d", i);
    /* Bare ones, quoted ones, and one that stands in the text otherwise than it reads. */
    snprintf(block, sizeof block, i == 5 ? "say \"x\" %d" : i % 2 ? "bare-%d" : "call?f://x y/%d", i % 10);
    snprintf(text, sizeof text, "{\"i\":%d}", i % 7);
    stet_persist_key k = {.block_id = block, .module_hash = module, .created_at = T0 + (uint64_t)i};
    stet_persist_put *w = stet_persist_put_begin(p, &k);
    stet_persist_put_content(w, "variables", "json");
    stet_persist_put_bytes(w, text, strlen(text));
    OK(stet_persist_put_end(w, NULL, &err));
}

static bool note(void *ctx, const stet_persist_entry *e) {
    stet_buf_printf(ctx, "%s %s %llu %zu %s\n", e->key.block_id, e->key.module_hash,
                    (unsigned long long)e->key.created_at, e->content_count, e->contents[0].id);
    return true;
}

/* All entries, as a process that begins now has them. */
static char *seen(bool read_only) {
    stet_buf b = STET_BUF(0);
    stet_persist *p = open_it(read_only);
    OK(stet_persist_each(p, NULL, note, &b, &err));
    stet_persist_close(p);
    return stet_buf_take(&b, NULL);
}

/* The same with whatever index there is, and then without one; which is written again. */
static size_t same_without(const char *what) {
    char *with = seen(false);
    unlink(INDEX);
    char *without = seen(false), *again = seen(false), *reading = seen(true);
    if (strcmp(with, without) != 0 || strcmp(again, without) != 0 || strcmp(reading, without) != 0)
        fail_msg("%s: other entries with the index than without", what);
    size_t lines = 0;
    for (const char *s = without; *s; s++)
        lines += *s == '\n';
    stet_free(with);
    stet_free(without);
    stet_free(again);
    stet_free(reading);
    return lines;
}

static void spoil(const char *path, long at) {
    struct stat st;
    char c;
    assert_int_equal(stat(path, &st), 0);
    int fd = open(path, O_RDWR);
    off_t place = at < 0 ? st.st_size + at : (off_t)at;
    assert_int_equal(pread(fd, &c, 1, place), 1);
    c ^= 1;
    assert_int_equal(pwrite(fd, &c, 1, place), 1);
    close(fd);
}

static void entries_are_those_of_the_log(void **state) {
    (void)state;
    struct stat st;
    config = stet_persist_config_default();
    config.entry_merge_timeout_seconds = -1;
    config.max_entries_in_log = 0;
    stet_persist *p = open_it(false);
    for (int i = 0; i < MANY; i++)
        if (i != 5)
            put(p, i);
    stet_persist_close(p);
    assert_int_equal(stat(LOG, &st), 0);
    long size = (long)st.st_size;
    assert_true(size > (128 << 10));
    assert_int_equal(same_without("as written"), MANY - 1);
    assert_int_equal(stat(INDEX, &st), 0);
    long index = (long)st.st_size;

    /* Others append behind it. */
    p = open_it(false);
    for (int i = MANY; i < MANY + 5; i++)
        put(p, i);
    stet_persist_close(p);
    char *with = seen(false);
    assert_non_null(strstr(with, "m000000000000000000000000000000000000000704"));
    stet_free(with);
    assert_int_equal(same_without("appended to"), MANY + 4);

    /* A damaged index. */
    for (long at = 0; at < index; at += at < 64 ? 1 : index / 23) {
        spoil(INDEX, at);
        assert_int_equal(same_without("a damaged index"), MANY + 4);
    }
    assert_int_equal(truncate(INDEX, index / 2), 0);
    assert_int_equal(same_without("half an index"), MANY + 4);
    assert_int_equal(truncate(INDEX, 0), 0);
    assert_int_equal(same_without("an empty index"), MANY + 4);

    /* A damaged log of the same length, with the index of the good one. */
    stet_free(seen(false));
    spoil(LOG, size / 2);
    size_t left = same_without("a damaged log");
    assert_true(left == MANY + 3 || left == MANY + 4);
    spoil(LOG, size / 2);
    assert_int_equal(same_without("mended"), MANY + 4);

    /* One that is written otherwise than it reads can't be kept so: the log is read then. */
    p = open_it(false);
    put(p, 5);
    stet_persist_close(p);
    assert_int_equal(same_without("a block with quotes"), MANY + 5);

    /* A log that was cut, and one that is gone. */
    stet_free(seen(false));
    assert_int_equal(truncate(LOG, size / 3), 0);
    left = same_without("a log that was cut");
    assert_true(left > 100 && left < MANY);
    unlink(LOG);
    assert_int_equal(same_without("no log"), 0);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries_are_those_of_the_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
