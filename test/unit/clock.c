/* clock.c - times: printed, read, and as people type them; compared with Python's datetime. */

#include "../expect.h"

#include <unistd.h>

#include "os/clock.h"

static int64_t parsed(const char *text) {
    int64_t ms = -1;
    if (!stet_time_parse(text, strlen(text), &ms))
        fail_msg("%s is refused", text);
    return ms;
}

static void refused(const char *text) {
    int64_t ms = 77;
    if (stet_time_parse(text, strlen(text), &ms))
        fail_msg("%s is taken for %lld", text, (long long)ms);
    assert_int_equal(ms, 77);
}

static void printing(void **state) {
    (void)state;
    char out[STET_TIME_TEXT];
    static const struct {
        int64_t ms;
        const char *text;
    } known[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {951782400000, "2000-02-29T00:00:00.000Z"},
        {4107542399999, "2100-02-28T23:59:59.999Z"},
        {4107542400000, "2100-03-01T00:00:00.000Z"},
        {253402300799999, "9999-12-31T23:59:59.999Z"},
        {-62167219200000, "0000-01-01T00:00:00.000Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        stet_time_print(known[i].ms, out);
        assert_string_equal(out, known[i].text);
        if (known[i].ms != INT64_MAX && known[i].ms != INT64_MIN)
            assert_true(parsed(out) == known[i].ms);
    }
}

static void parsing(void **state) {
    (void)state;
    assert_true(parsed("1970-01-01") == 0);
    assert_true(parsed("1970-01-02") == 86400000);
    assert_true(parsed("1970-01-01T00:00:01Z") == 1000);
    assert_true(parsed("1970-01-01 00:00:01z") == 1000);
    assert_true(parsed("1970-01-01t02:00:00+02:00") == 0);
    assert_true(parsed("1969-12-31T18:30:00-05:30") == 0);
    assert_true(parsed("1970-01-01T00:00:00.5Z") == 500);
    assert_true(parsed("1970-01-01T00:00:00.1239999Z") == 123);
    assert_true(parsed("2016-12-31T23:59:60Z") == parsed("2017-01-01T00:00:00Z"));
    static const char *const bad[] = {"",
                                      "1970",
                                      "1970-1-1",
                                      "1970-00-01",
                                      "1970-13-01",
                                      "1970-01-00",
                                      "1970-01-32",
                                      "1900-02-29",
                                      "2026-04-31",
                                      "1970-01-01T",
                                      "1970-01-01T00:00Z",
                                      "1970-01-01T00:00:00",
                                      "1970-01-01T24:00:00Z",
                                      "1970-01-01T00:60:00Z",
                                      "1970-01-01T00:00:61Z",
                                      "1970-01-01T00:00:00.Z",
                                      "1970-01-01T00:00:00+0100",
                                      "1970-01-01T00:00:00+24:00",
                                      "1970-01-01T00:00:00Zx",
                                      " 1970-01-01",
                                      "+970-01-01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(bad[i]);
}

/* Random times of all years that datetime has, both ways. */
static void as_python_has_it(void **state) {
    (void)state;
    enum { N = 3000 };
    FILE *f = fopen("times.py", "w");
    assert_non_null(f);
    fputs("import datetime, sys\n"
          "epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)\n"
          "for line in open('times.txt'):\n"
          "    ms, text = line.split()\n"
          "    t = epoch + datetime.timedelta(milliseconds=int(ms))\n"
          "    expected = t.replace(tzinfo=None).isoformat(timespec='milliseconds') + 'Z'\n"
          "    if text != expected: sys.exit(f'{ms}: {text}, not {expected}')\n"
          "    zone = datetime.timezone(datetime.timedelta(minutes=int(ms) % 1439 - 719))\n"
          "    try: local = t.astimezone(zone)\n"
          "    except OverflowError: continue\n"
          "    print(ms, local.isoformat(timespec='microseconds'))\n",
          f);
    fclose(f);
    f = fopen("times.txt", "w");
    assert_non_null(f);
    uint64_t seed = 1;
    for (int i = 0; i < N; i++) {
        char out[STET_TIME_TEXT];
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t ms = (int64_t)((seed >> 11) % 315537897600000) - 62135596800000; /* years 1 to 9999 */
        stet_time_print(ms, out);
        fprintf(f, "%lld %s\n", (long long)ms, out);
    }
    fclose(f);
    FILE *python = popen("/usr/bin/python3 times.py", "r");
    assert_non_null(python);
    long long ms;
    char text[64];
    int read = 0;
    while (fscanf(python, "%lld %63s", &ms, text) == 2) {
        if (parsed(text) != ms)
            fail_msg("%s is taken for %lld, not %lld", text, (long long)parsed(text), ms);
        read++;
    }
    assert_int_equal(pclose(python), 0);
    assert_true(read > N - 10);
}

static int64_t human(const char *text, int64_t now) {
    int64_t ms = -1;
    OK(stet_time_parse_human(text, now, &ms, &err));
    return ms;
}

static void as_people_type(void **state) {
    (void)state;
    int64_t now = parsed("2026-11-15T17:45:00Z"), hour = 3600000, day = 24 * hour;
    assert_true(human("now", now) == now);
    assert_true(human(" NOW ", now) == now);
    assert_true(human("2h", now) == now - 2 * hour);
    assert_true(human("3d ago", now) == now - 3 * day);
    assert_true(human("3 days ago", now) == now - 3 * day);
    assert_true(human("1h 30m", now) == now - hour - hour / 2);
    assert_true(human("1h30m ago", now) == now - hour - hour / 2);
    assert_true(human("2 weeks ago", now) == now - 14 * day);
    assert_true(human("500 ms", now) == now - 500);
    assert_true(human("-5 min", now) == now - 300000);
    assert_true(human("in 5 minutes", now) == now + 300000);
    assert_true(human("+1d", now) == now + day);
    assert_true(human("today", now) == parsed("2026-11-15"));
    assert_true(human("Yesterday", now) == parsed("2026-11-14"));
    assert_true(human("tomorrow", now) == parsed("2026-11-16"));
    assert_true(human("2026-01-02", now) == parsed("2026-01-02"));
    assert_true(human("2026-01-02T03:04:05Z", now) == parsed("2026-01-02T03:04:05Z"));
    assert_true(human("yesterday", -5) == -2 * day);
    static const char *const bad[] = {"",         " ",        "2",         "h",       "2x",           "ago",
                                      "2h later", "in",       "in 2",      "-2h ago", "99999999999d", "now now",
                                      "1 2 3 h",  "2h ago x", "2026-13-01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ms;
        FAILS(stet_time_parse_human(bad[i], now, &ms, &err), STET_INVALID, bad[i]);
    }
    int64_t ms;
    stet_error e = STET_ERROR_INIT;
    assert_int_equal(stet_time_parse_human("soon", now, &ms, &e), STET_INVALID);
    assert_non_null(strstr(e.hint, "3d ago"));
    stet_error_clear(&e);
}

static void durations(void **state) {
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } known[] = {{0, "0 ms"},
                 {999, "999 ms"},
                 {3000, "3 s"},
                 {119999, "119 s"},
                 {120000, "2 min"},
                 {18000000, "5 h"},
                 {1036800000, "12 d"},
                 {-3000, "-3 s"},
                 {INT64_MAX, "106751991167 d"},
                 {INT64_MIN, "-106751991167 d"}};
    char out[STET_TIME_TEXT];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        stet_duration_print(known[i].ms, out);
        assert_string_equal(out, known[i].text);
    }
}

static int64_t at_42(void) {
    return INT64_C(42000001);
}

static void clocks(void **state) {
    (void)state;
    int64_t a = stet_clock_monotonic_us();
    stet_clock_sleep_ms(5);
    stet_clock_sleep_ms(-1);
    assert_true(stet_clock_monotonic_us() - a >= 5000);
    assert_true(stet_clock_ms() > parsed("2020-01-01"));
    stet_clock_hook = at_42;
    assert_true(stet_clock_ms() == 42);
    assert_true(stet_clock_ns() == 42000001);
    stet_clock_hook = NULL;
}

static void random_bytes(void **state) {
    (void)state;
    unsigned char a[64] = {0}, b[64] = {0};
    stet_random(a, sizeof a);
    stet_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    char u[37], v[37];
    stet_uuid(u);
    stet_uuid(v);
    assert_string_not_equal(u, v);
    assert_int_equal(strlen(u), 36);
    assert_int_equal(u[14], '4');
    assert_non_null(strchr("89ab", u[19]));
    assert_int_equal(strspn(u, "0123456789abcdef-"), 36);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printing),       cmocka_unit_test(parsing),   cmocka_unit_test(as_python_has_it),
        cmocka_unit_test(as_people_type), cmocka_unit_test(durations), cmocka_unit_test(clocks),
        cmocka_unit_test(random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
