/* persist_threads.c - threads that share one handle; also run with BUILD=build/tsan SANITIZE=thread. */

#include "../expect.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../faults.h"
#include "../persist_place.h"

enum { THREADS = 8, PUTS = 60 };
static stet_persist *p;
static atomic_int wrong;

static bool look(void *ctx, const stet_persist_entry *e) {
    (void)ctx;
    if (!e->content_count || !strstr(e->text, e->key.module_hash))
        atomic_fetch_add(&wrong, 1);
    return true;
}

static void *run(void *ctx) {
    int who = (int)(intptr_t)ctx; /* below 100 */
    char module[44], text[64];
    snprintf(module, sizeof module, "%02u%.41s", (unsigned)who % 100, &M1[2]);
    for (int n = 0; n < PUTS; n++) {
        int len = snprintf(text, sizeof text, "thread %d put %d", who, n);
        uint64_t at = T0 + (uint64_t)n;
        if (place_put(p, "b", module, at, text, (size_t)len, NULL) != STET_OK ||
            !place_has(p, "b", module, at, text, (size_t)len))
            atomic_fetch_add(&wrong, 1);
        if (n % 20 == who) {
            stet_persist_cleaned out;
            if (stet_persist_cleanup_run(p,
                                         &(stet_persist_cleanup){.strategy = stet_persist_strategy_none,
                                                                 .include_content = STET_PERSIST_YES},
                                         &out, NULL) != STET_OK)
                atomic_fetch_add(&wrong, 1);
            stet_persist_cleaned_release(&out);
        }
        if (n % 15 == who && stet_persist_each(p, NULL, look, NULL, NULL) != STET_OK)
            atomic_fetch_add(&wrong, 1);
        stet_persist_stats s;
        if (n % 30 == who && stet_persist_stats_get(p, &s, NULL) != STET_OK)
            atomic_fetch_add(&wrong, 1);
        int64_t next;
        if (n % 10 == who && stet_persist_tick(p, &next, NULL) != STET_OK)
            atomic_fetch_add(&wrong, 1);
    }
    return NULL;
}

static bool count_one(void *ctx, const stet_persist_entry *e) {
    (void)e;
    ++*(int *)ctx;
    return true;
}

static void shared_handle(void **state) {
    (void)state;
    stet_persist_config c = place_config();
    c.lock_timeout_ms = 60000;
    c.max_entries_in_log = 50;
    c.strategy = (stet_persist_limits){1000000, -1, -1, -1};
    mkdir("s", 0777);
    OK(place_open("s", "m1", &c, &p, &err));
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    int count = 0;
    OK(stet_persist_each(p, NULL, count_one, &count, &err));
    assert_int_equal(count, THREADS * PUTS);
    stet_persist_stats s;
    OK(stet_persist_stats_get(p, &s, &err));
    assert_int_equal(s.missing_objects, 0);
    stet_persist_close(p);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_handle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
