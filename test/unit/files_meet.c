/* files_meet.c - can a path that is made from others match a pattern?
 *
 * Answers are compared with a table; and whatever is made and matches must have been announced.
 */

#include "../expect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/glob.h"
#include "files/meet.h"

static void table(void **state) {
    (void)state;
    static const struct {
        const char *text, *wanted;
        bool pattern, want;
    } rows[] = {
        {"o/a.txt", "o/*.txt", true, true},
        {"o/a.txt", "p/*.txt", true, false},
        {"o", "o/*.txt", true, true}, /* a directory */
        {"o", "o/d/a.txt", false, true},
        {"o/d/a.txt", "o", false, true}, /* in a directory that is read */
        {"o/a", "o/ab", false, false},
        {"o/{in.stem}.txt", "o/*.txt", true, true},
        {"o/{in.stem}.txt", "o/abc*.txt", true, true},
        {"o/{in.stem}.txt", "o/*/x.txt", true, true}, /* in a directory "a.txt" */
        {"o/{in.stem}.txt", "o/*.md", true, false},
        {"o/{in.stem}", "o/*/x.txt", true, true},
        {"o/{in.stem}", "o/a/x.txt", false, true},
        {"o/{in.dir}/{in.stem}.txt", "o/*.txt", true, true},
        {"o/{in.dir}/{in.stem}.txt", "o/a/b/c.txt", false, true},
        {"o/{in.dir}/{in.stem}.txt", "o/**/c.txt", true, true},
        {"o/{in.stem}-{in.ext}.t", "o/?.t", true, true}, /* a character may have many bytes */
        {"o/{in.stem}.txt", "o/[a-c].txt", true, true},
        {"o/{in.stem}.txt", "o", false, true},
        {"{in}.sum", "cc.sh", false, false},
        {"build/{in.stem}.c.o", "**/*.c", true, true}, /* below it: "x.c.o/y.c" */
        {"o/{in.stem}.txt", "**", true, true},
        {"o/{in.stem}.txt", "**/deep/*.txt", true, true},
        {"o/{in.stem}.txt", "q/**/*.txt", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (stet_path_meets(rows[i].text, rows[i].wanted, rows[i].pattern) != rows[i].want)
            fail_msg("%s, %s: expected %d", rows[i].text, rows[i].wanted, rows[i].want);
}

static unsigned pick(unsigned n) {
    return (unsigned)rand() % n;
}

/* No yes is missed: random texts are filled, and what a random pattern then matches must have been possible. */
static void nothing_is_missed(void **state) {
    (void)state;
    static const char *const pieces[] = {"a", "b", "/", ".t", "{in.stem}", "{in.dir}/", "{in}", "/x"};
    static const char *const globs[] = {"a", "b", "/", ".t", "*", "?", "[ab]", "**/", "/x", "x"};
    static const char *const parts[] = {"", "a", "b", "ab", "x"}, *const deep[] = {"a", "a/b", "b", "x/a/b"};
    size_t hits = 0;
    srand(1);
    for (int round = 0; round < 200000; round++) {
        char text[200] = "", path[300] = "", wanted[200] = "";
        for (unsigned i = 1 + pick(4); i > 0; i--) {
            unsigned k = pick(8);
            strcat(text, pieces[k]);
            strcat(path, k == 4 ? parts[pick(5)] : k == 5 || k == 6 ? deep[pick(4)] : pieces[k]);
            strcat(path, k == 5 ? "/" : "");
        }
        for (unsigned i = 1 + pick(4); i > 0; i--)
            strcat(wanted, globs[pick(10)]);
        if (pick(3) == 0)
            strcat(path, "/a.t");
        if (strstr(path, "//") || path[0] == '/' || !path[0] || !stet_glob_is(wanted) || !stet_glob_match(wanted, path))
            continue;
        hits++;
        if (!stet_path_meets(text, wanted, true))
            fail_msg("%s can be %s, which %s matches", text, path, wanted);
    }
    assert_true(hits > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(table), cmocka_unit_test(nothing_is_missed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
