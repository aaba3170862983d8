/* files_glob.c - patterns of file names, compared with a table and with a naive matcher. */

#include "../expect.h"

#include "files/glob.h"

static void table(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool want;
    } rows[] = {
        {"a.c", "a.c", true},
        {"*.c", "a.c", true},
        {"*.c", "d/a.c", false},
        {"*.c", ".a.c", false},
        {".*.c", ".a.c", true},
        {"d/*.c", "d/a.c", true},
        {"d/*.c", "d/e/a.c", false},
        {"**/*.c", "a.c", true},
        {"**/*.c", "d/e/a.c", true},
        {"**/*.c", "d/.e/a.c", false},
        {"d/**/*.c", "d/a.c", true},
        {"d/**/*.c", "d/e/f/a.c", true},
        {"d/**/f/*.c", "d/e/f/a.c", true},
        {"d/**/f/*.c", "d/f/f/a.c", true},
        {"d/**/f/**/x", "d/a/f/b/f/x", true},
        {"d/**", "d/e/f", true},
        {"**", "x/y", true},
        {"**/.git/*", ".git/x", false},
        {"**", ".stet/x", false},
        {"?.c", "a.c", true},
        {"?.c", "ab.c", false},
        {"?.c", "\xC3\xA4.c", true},
        {"?.c", "\xFF.c", true},
        {"[a-c].c", "b.c", true},
        {"[!a-c].c", "b.c", false},
        {"[!a-c].c", "d.c", true},
        {"[]x].c", "].c", true},
        {"[\xC3\xA4-\xC3\xBC].c", "\xC3\xB6.c", true},
        {"\\*.c", "*.c", true},
        {"\\*.c", "a.c", false},
        {"a*b*c", "aXbXbXc", true},
        {"a*b*c", "aXbXbX", false},
        {"*", "a\nb", true},
        {"a", "a/b", false},
        {"a/b", "a", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (stet_glob_match(rows[i].pattern, rows[i].path) != rows[i].want)
            fail_msg("%s against %s: expected %d", rows[i].pattern, rows[i].path, rows[i].want);
}

static void pruning(void **state) {
    (void)state;
    assert_true(stet_glob_below("src/*.c", ""));
    assert_true(stet_glob_below("src/*.c", "src"));
    assert_false(stet_glob_below("src/*.c", "doc"));
    assert_false(stet_glob_below("src/*.c", "src/a"));
    assert_true(stet_glob_below("src/**/*.c", "src/a/b"));
    assert_false(stet_glob_below("**/*.c", ".git"));
    assert_int_equal(stet_glob_prefix("src/a/*.c"), 5);
    assert_int_equal(stet_glob_prefix("*.c"), 0);
    assert_int_equal(stet_glob_prefix("a/b.c"), 1);
    assert_true(stet_glob_is("a*"));
    assert_false(stet_glob_is("a\\*"));
}

static void checks(void **state) {
    (void)state;
    OK(stet_glob_check("src/**/[a-z]*.c", &err));
    FAILS(stet_glob_check("/x/*", &err), STET_INVALID, "no pattern");
    FAILS(stet_glob_check("a/../*", &err), STET_INVALID, "..");
    FAILS(stet_glob_check("a//b", &err), STET_INVALID, "empty");
    FAILS(stet_glob_check("a[b", &err), STET_INVALID, "never closed");
}

/* Recursive and slow: what the words mean. `d`: at the start of a part. */
static bool naive(const char *p, const char *s, bool start) {
    if (start && strncmp(p, "**", 2) == 0 && (p[2] == '/' || !p[2])) {
        const char *rest = p[2] ? p + 3 : p + 2;
        if (naive(rest, s, true))
            return true;
        if (!*s || *s == '.')
            return false;
        const char *slash = strchr(s, '/');
        return naive(p, slash ? slash + 1 : s + strlen(s), true);
    }
    if (!*p)
        return !*s;
    if (start && *s == '.' && *p != '.')
        return false;
    if (*p == '*')
        return naive(p + 1, s, false) || (*s && *s != '/' && naive(p, s + 1, false));
    if (*p == '?')
        return *s && *s != '/' && naive(p + 1, s + 1, false);
    if (*p == '/' && !*s) /* "d" and "d/" followed by nothing but any number of directories */
        return strcmp(p, "/**") == 0 || (strncmp(p, "/**", 3) == 0 && naive(p + 3, s, false));
    return *p == *s && naive(p + 1, s + 1, *p == '/');
}

static void equals_a_naive_one(void **state) {
    (void)state;
    static const char *const words[] = {"*", "?", "a", "b", "/", "**", "/", "."};
    unsigned seed = 7;
    for (int round = 0; round < 200000; round++) {
        char p[64] = "", s[32] = "";
        bool fine = true;
        for (int i = 0, n = 1 + (int)((seed = seed * 1103515245u + 12345u) >> 16) % 7; i < n; i++)
            strcat(p, words[((seed = seed * 1103515245u + 12345u) >> 16) % 8]);
        for (int i = 0, n = 1 + (int)((seed = seed * 1103515245u + 12345u) >> 16) % 8; i < n; i++)
            strcat(s, (const char *const[]){"a", "b", "/", "."}[((seed = seed * 1103515245u + 12345u) >> 16) % 4]);
        fine = stet_glob_check(p, NULL) == STET_OK && stet_glob_check(s, NULL) == STET_OK && !strstr(p, "***");
        /* `**` that is only a part of a part is two stars: the same as one. */
        if (fine && stet_glob_match(p, s) != naive(p, s, true))
            fail_msg("%s against %s: %d", p, s, stet_glob_match(p, s));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(table), cmocka_unit_test(pruning), cmocka_unit_test(checks),
                                       cmocka_unit_test(equals_a_naive_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
