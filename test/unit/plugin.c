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

/* Stands for the table of functions. */
static const int library[2] = {41, 1};

static stet_plugin_request request(const char *name) {
    return (stet_plugin_request){.name = name,
                                 .symbol = "the_plugin",
                                 .package = "a-package",
                                 .library = library,
                                 .library_size = sizeof library};
}

static void refused_with_a_hint(const char *name, const char *message, const char *hint) {
    const stet_plugin_request wanted = request(name);
    const stet_plugin *out = NULL;
    assert_int_equal(stet_plugin_load(&wanted, &out, &err), STET_UNSUPPORTED);
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

/* The start of a plug-in's source, with a table of functions of this many bytes. */
#define HEAD(size)                                                                                                     \
    "static const int *given; static void attach(const void *library) { if (!given) given = library; }"                \
    "static int sum(void) { return given[0] + given[1]; }"                                                             \
    "const struct { const char *version; unsigned long size; void (*attach)(const void *); int (*sum)(void); }"        \
    "the_plugin = {\"" STET_VERSION "\", " size ", attach, sum};"

static void another_table_of_functions_is_refused(void **state) {
    (void)state;
    compile("grown", HEAD("16"));
    refused_with_a_hint("grown", "another build of stet " STET_VERSION, "built with this stet");
}

static void this_version_opens_and_calls_through_the_table(void **state) {
    (void)state;
    compile("good", HEAD("8"));
    const struct plugin {
        stet_plugin head;
        int (*sum)(void);
    } * first;
    const stet_plugin_request wanted = request("good");
    const stet_plugin *out, *again;
    OK(stet_plugin_load(&wanted, &out, &err));
    first = (const void *)out;
    assert_int_equal(first->sum(), 42);
    OK(stet_plugin_load(&wanted, &again, &err));
    assert_ptr_equal(out, again);
}

int main(void) {
    setup();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_plugin_is_refused),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(another_table_of_functions_is_refused),
        cmocka_unit_test(this_version_opens_and_calls_through_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
