/* pool.c - values of a large document lie in chunks, and a chunk is freed with its last block.
 *
 * Such values live, change and are freed like all others, in any order and on any thread.
 */

#include "base/pool.h"

#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/value.h"

enum { RECORDS = 12000 };

static void add_record(stet_buf *b, int i) {
    stet_buf_printf(
        b,
        "{\"name\":\"a name that is long, number %d\",\"a member name that is long\":[%d,\"\\u00e9 and more "
        "than fourteen bytes\",[]],\"o\":{\"k\":%d.5}}",
        i, i, i);
}

static stet_buf large_text(void) {
    stet_buf b = STET_BUF(0);
    for (int i = 0; i < RECORDS; i++) {
        stet_buf_char(&b, i ? ',' : '[');
        add_record(&b, i);
    }
    stet_buf_char(&b, ']');
    assert_true(b.len > STET_POOL_WORTH);
    return b;
}

static stet_value parse(const stet_buf *text) {
    stet_value v;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(stet_json_parse(text->data, text->len, &v, &err), STET_OK);
    return v;
}

static stet_value record(int i) {
    stet_buf b = STET_BUF(0);
    add_record(&b, i);
    stet_value v = parse(&b);
    stet_buf_release(&b);
    return v;
}

static bool pooled(stet_value v) {
    return ((const stet_block *)stet_value_block(v))->home != 0;
}

static void a_large_document_equals_its_parts(void **state) {
    (void)state;
    stet_buf text = large_text();
    stet_value all = parse(&text);
    assert_int_equal(stet_value_count(all), RECORDS);
    assert_false(pooled(all)); /* too large for a chunk */
    for (int i = 0; i < RECORDS; i += 97) {
        stet_value one = record(i);
        assert_true(pooled(stet_value_at(all, (size_t)i)));
        assert_false(pooled(one));
        assert_true(stet_value_equal(one, stet_value_at(all, (size_t)i)));
        stet_value_release(one);
    }
    stet_value_release(all);
    stet_buf_release(&text);
}

static void parts_outlive_the_document(void **state) {
    (void)state;
    stet_buf text = large_text();
    size_t before = mallinfo2().uordblks;
    stet_value all = parse(&text), kept[RECORDS / 1000], name;
    for (size_t i = 0; i < RECORDS / 1000; i++) {
        assert_true(stet_value_find(stet_value_at(all, i * 1000), "name", 4, &name));
        kept[i] = stet_value_retain(name);
    }
    stet_value_release(all);
    /* What is left is a chunk for each, at most. */
    assert_true(mallinfo2().uordblks <= before + 4096 + (RECORDS / 1000) * (STET_POOL_CHUNK + 64));
    for (size_t i = 0; i < RECORDS / 1000; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "a name that is long, number %zu", i * 1000);
        assert_string_equal(stet_value_as_string(&kept[i], NULL), expected);
        stet_value_release(kept[i]);
    }
    assert_true(mallinfo2().uordblks <= before + 4096); /* what the C library keeps for the next small block */
    stet_buf_release(&text);
}

static void parts_change_like_other_values(void **state) {
    (void)state;
    stet_buf text = large_text();
    stet_value all = parse(&text);
    for (int i = 0; i < RECORDS; i += 3) {
        /* Taken out, so that nobody shares it and it may change in place. */
        stet_value mine = stet_value_retain(stet_value_at(all, (size_t)i)), same = record(i);
        stet_value_put_at(&all, (size_t)i, stet_value_null());
        stet_value *both[] = {&mine, &same};
        for (int j = 0; j < 2; j++) {
            stet_value list = stet_value_retain(stet_value_get(*both[j], "a member name that is long"));
            stet_value_remove(both[j], "a member name that is long", 26);
            if (i % 2)
                stet_value_push(&list, stet_value_string("pushed beyond its room, so that it moves"));
            else
                while (stet_value_count(list))
                    stet_value_remove_at(&list, stet_value_count(list) - 1);
            stet_value_put(both[j], "list", list);
            stet_value_put(both[j], "one more", stet_value_int(i));
            stet_value_put(both[j], "two more", stet_value_retain(*both[j]));
        }
        assert_true(stet_value_equal(mine, same));
        stet_value_release(mine);
        stet_value_release(same);
    }
    stet_value_release(all);
    stet_buf_release(&text);
}

/* The reader fails far into the text, in each of its ways: all that was read goes. */
static void a_failure_leaves_nothing(void **state) {
    (void)state;
    static const char *const ends[] = {"",           ",",    ",{\"a\":1,\"a\":2}]",
                                       ",\"\xff\"]", ",[[[", ",{\"k\":\"a string of some length"};
    stet_buf text = large_text();
    size_t len = text.len - 1, before = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        text.len = len;
        stet_buf_str(&text, ends[i]);
        stet_value v;
        stet_error err = STET_ERROR_INIT;
        size_t used = mallinfo2().uordblks;
        assert_int_equal(stet_json_parse(text.data, text.len, &v, &err), STET_INVALID);
        stet_error_clear(&err);
        assert_true(!before || mallinfo2().uordblks <= used + 4096);
        before = used;
    }
    stet_buf_release(&text);
}

struct share {
    stet_value all;
    size_t first;
    pthread_barrier_t *start;
};

static void *release_share(void *of) {
    struct share *s = of;
    pthread_barrier_wait(s->start);
    for (size_t i = s->first; i < RECORDS; i += 4) {
        stet_value name = stet_value_retain(stet_value_get(stet_value_at(s->all, i), "name"));
        stet_value_release(stet_value_at(s->all, i)); /* the reference that this thread was given */
        stet_value_release(name);
    }
    stet_value_release(s->all);
    return NULL;
}

static void threads_release_parts_of_one_chunk(void **state) {
    (void)state;
    stet_buf text = large_text();
    size_t before = mallinfo2().uordblks;
    stet_value all = parse(&text);
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 4);
    pthread_t threads[4];
    struct share shares[4];
    for (size_t i = 0; i < RECORDS; i++)
        stet_value_retain(stet_value_at(all, i));
    for (size_t i = 0; i < 4; i++) {
        shares[i] = (struct share){stet_value_retain(all), i, &start};
        assert_int_equal(pthread_create(&threads[i], NULL, release_share, &shares[i]), 0);
    }
    stet_value_release(all);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    assert_true(mallinfo2().uordblks <= before + 4096); /* what a thread leaves to the C library */
    stet_buf_release(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_document_equals_its_parts),  cmocka_unit_test(parts_outlive_the_document),
        cmocka_unit_test(parts_change_like_other_values),     cmocka_unit_test(a_failure_leaves_nothing),
        cmocka_unit_test(threads_release_parts_of_one_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
