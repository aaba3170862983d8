/* plugin.c - plug-ins that are missing, not a library, or built for another stet are refused with a hint. */

#include "../expect.h"

#include <unistd.h>

#include "os/plugin.h"

static void compile(const char *name, const char *source) {
    char path[100], command[300];
    snprintf(path, sizeof path, "p/%s.c", name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(source, f);
    fclose(f);
    snprintf(command, sizeof command, "cc -shared -fPIC -o p/%s.so %s", name, path);
    assert_int_equal(system(command), 0);
}

static void setup(void) {
    assert_int_equal(system("mkdir p"), 0);
    assert_int_equal(setenv("STET_PLUGINS", "p", 1), 0);
}

static void refused_with_a_hint(const char *name, const char *message, const char *hint) {
    const void *out = NULL;
    assert_int_equal(stet_plugin_load(name, "the_plugin", "a-package", &out, &err), STET_UNSUPPORTED);
    assert_null(out);
    if (!strstr(err.message, message) || !strstr(err.hint, hint))
        print_message("# %s (%s)\n", err.message, err.hint);
    assert_non_null(strstr(err.message, message));
    assert_non_null(strstr(err.hint, hint));
    stet_error_clear(&err);
}

static void what_is_no_plugin_is_refused(void **state) {
    (void)state;
    refused_with_a_hint("absent", "the absent plug-in is not installed", "a-package");
    FILE *f = fopen("p/text.so", "w");
    assert_non_null(f);
    fputs("not a library", f);
    fclose(f);
    refused_with_a_hint("text", "the text plug-in can't be opened", "install the package a-package");
    compile("needy", "extern int nobody_has_this(void); const char *const the_plugin = 0; int f(void) { return "
                     "nobody_has_this(); }");
    refused_with_a_hint("needy", "nobody_has_this", "install the package a-package");
}

static void another_version_is_refused(void **state) {
    (void)state;
    compile("older", "const char *const the_plugin = \"0.0.9\";");
    refused_with_a_hint("older", "another version of stet: 0.0.9, expected " STET_VERSION, "built with this stet");
    compile("nameless", "int something_else;");
    refused_with_a_hint("nameless", "another version of stet: unknown", "built with this stet");
    compile("empty", "const char *const the_plugin = 0;");
    refused_with_a_hint("empty", "another version of stet: unknown", "built with this stet");
}

static void this_version_opens(void **state) {
    (void)state;
    compile("good", "const struct { const char *version; int answer; } the_plugin = {\"" STET_VERSION "\", 42};");
    const struct plugin {
        const char *version;
        int answer;
    } * first;
    const void *out, *again;
    OK(stet_plugin_load("good", "the_plugin", "a-package", &out, &err));
    first = out;
    assert_int_equal(first->answer, 42);
    OK(stet_plugin_load("good", "the_plugin", "a-package", &again, &err));
    assert_ptr_equal(out, again);
}

int main(void) {
    setup();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_plugin_is_refused),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(this_version_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
