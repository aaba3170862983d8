/* files_path.c - paths as ids of documents: one id per file, whatever bytes its name has. */

#include "../expect.h"

#include "files/path.h"
#include "memory/space.h"

static void ids(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"a/b.c", "file:a/b.c"},       {"with space 'q\"", "file:with space 'q\""},
        {"100%", "file:100%25"},       {"new\nline", "file:new%0Aline"},
        {"\xC3\xA4", "file:\xC3\xA4"}, {"bad\xFFx", "file:bad%FFx"},
        {"\xC2\x85", "file:%C2%85"},   {"\x7F", "file:%7F"},
        {"\xC3", "file:%C3"},          {"/usr/include/x.h", "file:/usr/include/x.h"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *id = stet_file_id(rows[i][0]), *back = stet_file_of_id(id, strlen(id));
        assert_string_equal(id, rows[i][1]);
        assert_string_equal(back, rows[i][0]);
        OK(stet_docname_check(&(stet_docname){id, NULL}, &err));
        stet_free(id);
        stet_free(back);
    }
    static const char *const bad[] = {"file:",    "file:%",   "file:%4", "file:%41",
                                      "file:%0a", "file:%00", "glob:x",  "file"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_null(stet_file_of_id(bad[i], strlen(bad[i])));
}

static void normal(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        {"/p", "", "a/./b//c", "a/b/c"},  {"/p", "", "a/../b", "b"},       {"/p", "d", "../b", "b"},
        {"/p", "d", "x", "d/x"},          {"/p", "", "/p/x", "x"},         {"/p", "", "/q/x", "/q/x"},
        {"/p", "", "/px/y", "/px/y"},     {"/p", "", "../p/x", "x"},       {"/p/q", "", "../r/x", "../r/x"},
        {NULL, "", "../../x", "../../x"}, {NULL, "", "a/../../x", "../x"}, {"/p", "", "../../../x", "../../../x"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *out;
        OK(stet_path_normal(rows[i][0], rows[i][1], rows[i][2], &out, &err));
        assert_string_equal(out, rows[i][3]);
        stet_free(out);
    }
    char *out;
    FAILS(stet_path_normal("/p", "", "", &out, &err), STET_INVALID, "empty");
    FAILS(stet_path_normal("/p", "", ".", &out, &err), STET_INVALID, "project itself");
    FAILS(stet_path_normal("/p", "a", "..", &out, &err), STET_INVALID, "project itself");
    FAILS(stet_path_normal("/p", "", ".stet/x", &out, &err), STET_INVALID, "belongs to stet");
    FAILS(stet_path_normal("/p", "", "/p/.stet", &out, &err), STET_INVALID, "belongs to stet");
}

static const char *one_name(void *ctx, const char *name, size_t len) {
    return len == 2 && memcmp(name, "in", 2) == 0 ? ctx : NULL;
}

static void parts(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"{in.stem}", "src/a.tar.gz", "a.tar"},
        {"{in.ext}", "src/a.tar.gz", ".gz"},
        {"{in.name}", "src/a.tar.gz", "a.tar.gz"},
        {"{in.dir}", "src/x/a.c", "src/x"},
        {"{in.dir}/{in.stem}", "a.c", "./a"},
        {"{in.dir}", "/a.c", "/"},
        {"{in.stem}{in.ext}", ".profile", ".profile"},
        {"{in.stem}|{in.ext}", "d.d/noext", "noext|"},
        {"b/{in}.o", "src/a.c", "b/src/a.c.o"},
        {"{in.foo} {other} {other.stem} {} {in", "a", "{in.foo} {other} {other.stem} {} {in"},
        {"{{in.stem}}", "a.c", "{a}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stet_buf out = STET_BUF(0);
        stet_path_fill(rows[i][0], one_name, (void *)rows[i][1], &out);
        assert_string_equal(stet_buf_cstr(&out), rows[i][2]);
        stet_buf_release(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ids), cmocka_unit_test(normal), cmocka_unit_test(parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
