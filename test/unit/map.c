/* map.c - the hash map, compared with a list. */

#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put_get_remove(void **state) {
    (void)state;
    stet_map m = {0};
    assert_null(stet_map_get(&m, "a", 1));
    assert_false(stet_map_remove(&m, "a", 1));
    stet_map_put(&m, "a", 1, (stet_slot){.n = 1});
    stet_map_put(&m, "", 0, (stet_slot){.n = 2});
    stet_map_put(&m, "a\0b", 3, (stet_slot){.n = 3});
    assert_int_equal(stet_map_len(&m), 3);
    assert_int_equal(stet_map_get(&m, "a", 1)->n, 1);
    assert_int_equal(stet_map_get(&m, NULL, 0)->n, 2);
    assert_int_equal(stet_map_get(&m, "a\0b", 3)->n, 3);
    assert_null(stet_map_get(&m, "a\0c", 3));
    assert_int_equal(stet_map_put(&m, "a", 1, (stet_slot){.n = 9})->n, 9);
    assert_int_equal(stet_map_len(&m), 3);
    assert_true(stet_map_remove(&m, "a", 1));
    assert_false(stet_map_remove(&m, "a", 1));
    assert_null(stet_map_get(&m, "a", 1));
    stet_map_clear(&m);
    assert_int_equal(stet_map_len(&m), 0);
    assert_null(stet_map_get(&m, "", 0));
    stet_map_put(&m, "again", 5, (stet_slot){.p = &m});
    assert_ptr_equal(stet_map_get(&m, "again", 5)->p, &m);
    stet_map_release(&m);
    assert_null(stet_map_get(&m, "again", 5));
}

static void had_or_added_in_one_look(void **state) {
    (void)state;
    stet_map m = {0};
    bool added;
    assert_int_equal(stet_map_have(&m, "a", 1, (stet_slot){.n = 1}, &added)->n, 1);
    assert_true(added);
    stet_slot *slot = stet_map_have(&m, "a", 1, (stet_slot){.n = 2}, &added);
    assert_false(added);
    assert_int_equal(slot->n, 1); /* what was there stays */
    slot->n = 3;
    assert_int_equal(stet_map_get(&m, "a", 1)->n, 3);
    assert_true(stet_map_remove(&m, "a", 1));
    assert_int_equal(stet_map_have(&m, "a", 1, (stet_slot){.n = 4}, &added)->n, 4);
    assert_true(added);
    assert_int_equal(stet_map_len(&m), 1);
    stet_map_release(&m);
}

/* Against an array of all keys: any mixture of puts and removes, then the walk in the order of insertion. */
static void behaves_like_a_list(void **state) {
    (void)state;
    enum { KEYS = 2000 };
    static uint64_t value[KEYS], order[KEYS]; /* order 0: not there */
    stet_map m = {0};
    uint64_t clock = 0, seed = 12345;
    size_t len = 0;
    char key[16];
    for (int step = 0; step < 200000; step++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t k = (size_t)(seed >> 33) % KEYS;
        int n = snprintf(key, sizeof key, "%zu", k * k);
        bool growing = step / 20000 % 2 == 0;
        if ((seed >> 20) % 4 < (growing ? 3u : 1u)) {
            stet_map_put(&m, key, (size_t)n, (stet_slot){.n = seed});
            value[k] = seed;
            if (!order[k]) {
                order[k] = ++clock;
                len++;
            }
        } else {
            assert_int_equal(stet_map_remove(&m, key, (size_t)n), order[k] != 0);
            len -= order[k] != 0;
            order[k] = 0;
        }
        assert_int_equal(stet_map_len(&m), len);
        if (step % 1000)
            continue;
        const void *found;
        size_t found_len, seen = 0;
        stet_slot *slot;
        uint64_t last = 0;
        for (size_t i = 0; stet_map_next(&m, &i, &found, &found_len, &slot); seen++) {
            size_t square = strtoul(found, NULL, 10), root = 0;
            while (root * root < square)
                root++;
            assert_true(order[root] > last);
            last = order[root];
            assert_int_equal(slot->n, value[root]);
            assert_ptr_equal(slot, stet_map_get(&m, found, found_len));
        }
        assert_int_equal(seen, len);
    }
    stet_map_release(&m);
}

static void a_walk_may_remove(void **state) {
    (void)state;
    stet_map m = {0};
    for (uint64_t i = 0; i < 1000; i++)
        stet_map_put(&m, &i, sizeof i, (stet_slot){.n = i});
    const void *key;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&m, &i, &key, &len, &slot);)
        if (slot->n % 3) {
            uint64_t copy = slot->n;
            assert_true(stet_map_remove(&m, &copy, sizeof copy));
        }
    assert_int_equal(stet_map_len(&m), 334);
    uint64_t expected = 0;
    for (size_t i = 0; stet_map_next(&m, &i, &key, NULL, &slot); expected += 3)
        assert_int_equal(slot->n, expected);
    stet_map_release(&m);
}

static void the_hash_depends_on_every_byte(void **state) {
    (void)state;
    char key[40] = {0};
    for (size_t len = 0; len <= sizeof key; len++) {
        uint64_t hash = stet_map_hash(key, len);
        assert_int_equal(hash, stet_map_hash(key, len));
        for (size_t i = 0; i < len; i++) {
            key[i] = 1;
            assert_int_not_equal(hash, stet_map_hash(key, len));
            key[i] = 0;
        }
        if (len)
            assert_int_not_equal(hash, stet_map_hash(key, len - 1));
    }
}

/* Short keys lie in the entry and long ones outside it: every length behaves alike, also when the array moves. */
static void keys_of_every_length(void **state) {
    (void)state;
    stet_map m = {0};
    char key[64];
    memset(key, 'k', sizeof key);
    for (size_t len = 0; len < sizeof key; len++)
        stet_map_put(&m, key, len, (stet_slot){.n = len});
    size_t cursor = 0, len, expected = 0;
    const void *at;
    stet_slot *slot;
    while (stet_map_next(&m, &cursor, &at, &len, &slot)) {
        assert_int_equal(len, expected++);
        assert_int_equal(slot->n, len);
        assert_int_equal(memcmp(at, key, len), 0);
        assert_int_equal(((const char *)at)[len], 0);
    }
    assert_int_equal(expected, sizeof key);
    for (len = 0; len < sizeof key; len += 2)
        assert_true(stet_map_remove(&m, key, len));
    for (len = 0; len < sizeof key; len++)
        assert_int_equal(stet_map_get(&m, key, len) != NULL, len % 2);
    stet_map_release(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_get_remove),       cmocka_unit_test(had_or_added_in_one_look),
        cmocka_unit_test(behaves_like_a_list),  cmocka_unit_test(a_walk_may_remove),
        cmocka_unit_test(keys_of_every_length), cmocka_unit_test(the_hash_depends_on_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
