/* exec_depfile.c - dependency files as gcc, clang and others write them. */

#include "../expect.h"

#include "base/buf.h"
#include "module/depfile.h"

static void check(const char *text, const char *want) {
    stet_depfile d;
    OK(stet_depfile_parse(text, strlen(text), &d, &err));
    stet_buf got = STET_BUF(0);
    for (size_t i = 0; i < d.len; i++)
        stet_buf_printf(&got, "%s<%s>", i ? " " : "", d.at[i]);
    assert_string_equal(stet_buf_cstr(&got), want);
    stet_buf_release(&got);
    stet_depfile_release(&d);
}

static void what_compilers_write(void **state) {
    (void)state;
    check("a.o: a.c a.h\n", "<a.c> <a.h>");
    check("a.o: a.c \\\n inc/a.h \\\n  inc/b.h\n", "<a.c> <inc/a.h> <inc/b.h>");
    check("a.o: a.c \\\r\n inc/a.h\r\n", "<a.c> <inc/a.h>");
    check("a.o: a.c a.h\n\na.h:\n", "<a.c> <a.h>");
    check("a.o: a.c a.h\nb.o: a.c b.h\n", "<a.c> <a.h> <b.h>");
    check("a.o b.o: a.c", "<a.c>");
    check("", "");
    check("\n\n", "");
    check("a.o:\n", "");
    check("# made by hand\na.o: x\n", "<x>");
}

static void escapes(void **state) {
    (void)state;
    check("a.o: with\\ space.h\n", "<with space.h>");
    check("a.o: hash\\#tag.h dollar$$.h\n", "<hash#tag.h> <dollar$.h>");
    check("a.o: back\\slash.h\n", "<back\\slash.h>");
    /* What Make, gcc and ninja read differently is given in both readings. */
    check("a.o: two\\\\ end\n", "<two\\> <end> <two\\\\>");
    check("a.o: a\\:b c\n", "<a\\:b> <c> <a:b>");
    check("a.o: a\\\\\\#b\n", "<a\\#b> <a\\\\#b>");
    check("a.o: end: x\n", "<end> <x> <end:>");
    check("C:\\a.o: C:\\b.h\n", "<C:\\b.h>");
    check("a.o: three\\\\\\ x\n", "<three\\ x>");
    check("c:\\x.o: c:\\y.c\n", "<c:\\y.c>");
    check("a.o: a:b.h\n", "<a:b.h>");
    check("a.o: \xC3\xA4.h \xFF.h 'quote\".h\n", "<\xC3\xA4.h> <\xFF.h> <'quote\".h>");
    check("a.o: x\\", "<x>");
    check("a.o: x \\\n", "<x>");
}

static void mistakes(void **state) {
    (void)state;
    stet_depfile d;
    FAILS(stet_depfile_parse("a.o: x\nno rule\n", 15, &d, &err), STET_INVALID, "line 2");
    FAILS(stet_depfile_parse("a.o: \0x\n", 8, &d, &err), STET_INVALID, "NUL");
    char *text = malloc(6000);
    memcpy(text, "a.o: ", 5);
    memset(text + 5, 'x', 5995);
    FAILS(stet_depfile_parse(text, 6000, &d, &err), STET_LIMIT, "4096");
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_compilers_write), cmocka_unit_test(escapes),
                                       cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
