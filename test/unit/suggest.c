/* suggest.c - "did you mean": the distance of two names, which one is suggested, and when none is. */

#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static size_t distance(const char *a, const char *b) {
    return stet_suggest_distance(a, strlen(a), b, strlen(b));
}

static void distance_counts_edits_and_swaps(void **state) {
    (void)state;
    assert_int_equal(distance("", ""), 0);
    assert_int_equal(distance("abc", ""), 3);
    assert_int_equal(distance("jsno", "json"), 1);
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_int_equal(distance("dry_run", "dry-run"), 0);
    assert_int_equal(distance("Json", "json"), 0);
    char longest[66];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(distance(longest + 1, "a"), 63);
    assert_true(distance(longest, "a") == SIZE_MAX);
}

static void the_nearest_is_suggested_if_it_is_near(void **state) {
    (void)state;
    static const struct {
        const char *typed, *best;
    } cases[] = {{"reusme", "resume"}, {"arch", "archive"}, {"rn", "run"}, {"x", NULL}, {"", NULL}, {"qqqqqq", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_suggest s = stet_suggest_begin(cases[i].typed);
        stet_suggest_offer(&s, "resume");
        stet_suggest_offer(&s, "archive");
        stet_suggest_offer(&s, "run");
        if (cases[i].best)
            assert_string_equal(s.best, cases[i].best);
        else
            assert_null(s.best);
    }
}

static void words_of_one_string_are_offered(void **state) {
    (void)state;
    stet_suggest s = stet_suggest_begin_n("bteaX", 4);
    stet_suggest_offer_words(&s, " alpha  beta gamma ");
    assert_non_null(s.best);
    assert_int_equal(s.best_len, 4);
    assert_memory_equal(s.best, "beta", 4);
    s = stet_suggest_begin_n("zzzzzz", 6);
    stet_suggest_offer_words(&s, "alpha beta gamma");
    assert_null(s.best);
    s = stet_suggest_begin_n("", 0);
    stet_suggest_offer_words(&s, "a b");
    assert_null(s.best);
}

static void many_offers_end_the_search(void **state) {
    (void)state;
    stet_suggest s = stet_suggest_begin("needle");
    for (int i = 0; i < 20000; i++)
        stet_suggest_offer(&s, "some other name");
    stet_suggest_offer(&s, "needle");
    assert_null(s.best);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_counts_edits_and_swaps),
        cmocka_unit_test(the_nearest_is_suggested_if_it_is_near),
        cmocka_unit_test(words_of_one_string_are_offered),
        cmocka_unit_test(many_offers_end_the_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
