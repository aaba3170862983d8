/* cli.c - the words of a command line: every accepted form, and every mistake with its message. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/args.h"
#include "cli/help.h"

static const char *const states[] = {"pending", "running", "failed", NULL};

static const stet_param params[] = {
    {.name = "cell",
     .type = STET_PARAM_STRING,
     .flags = STET_PARAM_POSITIONAL | STET_PARAM_REQUIRED,
     .summary = "A cell"},
    {.name = "value", .type = STET_PARAM_JSON, .flags = STET_PARAM_POSITIONAL, .summary = "A value"},
    {.name = "limit", .letter = 'n', .type = STET_PARAM_INT, .summary = "How many"},
    {.name = "ratio", .type = STET_PARAM_NUMBER, .summary = "A ratio"},
    {.name = "dry-run", .letter = 'd', .type = STET_PARAM_BOOL, .summary = "Nothing is done"},
    {.name = "no-cache", .type = STET_PARAM_BOOL, .summary = "A name that begins with no"},
    {.name = "state", .type = STET_PARAM_ENUM, .flags = STET_PARAM_REPEATED, .summary = "States", .choices = states},
    {.name = "doc", .type = STET_PARAM_JSON, .summary = "A document"},
    {.name = "set", .type = STET_PARAM_PAIR, .summary = "Settings"},
    {.name = "include-content", .type = STET_PARAM_BOOL, .summary = "Content too", .optional_value = "true"},
    {.name = "text", .type = STET_PARAM_STRING, .summary = "A text"},
    {0},
};
static const stet_op op = {.name = "thing do", .summary = "Do a thing", .params = params};

static const stet_param plain_params[] = {
    {.name = "archived", .type = STET_PARAM_BOOL, .summary = "Archived ones"},
    {.name = "limit", .letter = 'n', .type = STET_PARAM_INT, .summary = "How many"},
    {0},
};
static const stet_op plain = {.name = "thing list", .summary = "List things", .params = plain_params};

/* Splits at blanks; a form feed inside a word stands for a blank. */
static int split(char *line, char **words) {
    int n = 0;
    for (char *word = strtok(line, " "); word; word = strtok(NULL, " ")) {
        for (char *c = word; *c; c++)
            *c = *c == '\f' ? ' ' : *c;
        words[n++] = word;
    }
    return n;
}

static stet_status parse(const stet_op *of, const char *line, stet_cli_words *w, stet_error *err) {
    static char copy[4096];
    static char *words[64];
    strcpy(copy, line);
    memset(w, 0, sizeof *w);
    return stet_cli_parse_for(of, split(copy, words), words, w, err);
}

static void gives_for(const stet_op *of, const char *line, const char *want) {
    stet_cli_words w;
    stet_error err = STET_ERROR_INIT;
    if (parse(of, line, &w, &err) != STET_OK)
        fail_msg("%s: %s", line, err.message);
    char *text = stet_json_print(w.given, STET_JSON_CANONICAL, NULL);
    if (strcmp(text, want) != 0)
        fail_msg("%s: gave %s, expected %s", line, text, want);
    stet_free(text);
    stet_cli_words_release(&w);
}

static void gives(const char *line, const char *want) {
    gives_for(&op, line, want);
}

static void refuses_for(const stet_op *of, const char *line, const char *message, const char *hint) {
    stet_cli_words w;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(parse(of, line, &w, &err), STET_INVALID);
    if (!strstr(err.message, message) || !strstr(err.hint, hint))
        fail_msg("%s: \"%s\" / \"%s\" lacks \"%s\" / \"%s\"", line, err.message, err.hint, message, hint);
    stet_error_clear(&err);
    stet_cli_words_release(&w);
    assert_int_equal(parse(of, line, &w, NULL), STET_INVALID); /* an error is optional */
    stet_cli_words_release(&w);
}

static void refuses(const char *line, const char *message, const char *hint) {
    refuses_for(&op, line, message, hint);
}

static void test_forms(void **state) {
    (void)state;
    gives("", "{}");
    gives("a", "{\"cell\":\"a\"}");
    gives("a 3", "{\"cell\":\"a\",\"value\":3}");
    gives("a -3", "{\"cell\":\"a\",\"value\":-3}");
    gives("a -5e-1 --limit 1", "{\"cell\":\"a\",\"limit\":1,\"value\":-0.5}");
    refuses("a -.5", "\"-.5\" is no JSON", "");
}

static void test_flags(void **state) {
    (void)state;
    gives("--limit 3", "{\"limit\":3}");
    gives("--limit=3", "{\"limit\":3}");
    gives("--limit -3", "{\"limit\":-3}");
    gives("--limit=-3", "{\"limit\":-3}");
    gives("-n 3", "{\"limit\":3}");
    gives("-n3", "{\"limit\":3}");
    gives("-n=3", "{\"limit\":3}");
    gives("-n-3", "{\"limit\":-3}");
    gives("-dn3", "{\"dry_run\":true,\"limit\":3}");
    gives("-dqn 3", "{\"dry_run\":true,\"limit\":3}");
    gives("a --dry-run", "{\"cell\":\"a\",\"dry_run\":true}");
    gives("--dry_run a", "{\"cell\":\"a\",\"dry_run\":true}");
    gives("--dry-run=false", "{\"dry_run\":false}");
    gives("--no-dry-run", "{\"dry_run\":false}");
    gives("--no_dry_run", "{\"dry_run\":false}");
    gives("--no-cache", "{\"no_cache\":true}");
    gives("--no-no-cache", "{\"no_cache\":false}");
    gives("--ratio 0.25", "{\"ratio\":0.25}");
    gives("--ratio -1", "{\"ratio\":-1}");
    gives("--state failed --state running", "{\"state\":[\"failed\",\"running\"]}");
    gives("--doc {\"a\":[1]}", "{\"doc\":{\"a\":[1]}}");
    gives("--set a=1 --set b=\"x=y\"", "{\"set\":{\"a\":1,\"b\":\"x=y\"}}");
    gives("--include-content a", "{\"cell\":\"a\",\"include_content\":true}");
    gives("--include-content=false", "{\"include_content\":false}");
    gives("--text=", "{\"text\":\"\"}");
    gives("--text=-x", "{\"text\":\"-x\"}");
    gives("--text=--json", "{\"text\":\"--json\"}");
    gives("--text -", "{\"text\":\"-\"}");
}

static void test_dashes(void **state) {
    (void)state;
    gives("-- -x", "{\"cell\":\"-x\"}");
    gives("-- --json", "{\"cell\":\"--json\"}");
    gives("--limit 2 -- -x -7", "{\"cell\":\"-x\",\"limit\":2,\"value\":-7}");
    gives("-- --", "{\"cell\":\"--\"}");
    gives("-0AbC", "{\"cell\":\"-0AbC\"}");
    refuses("-Abc", "thing do has no flag -Abc", "stet thing do -- -Abc");
    refuses("--text -x", "--text needs a value", "--text=-x");
    refuses("--text --json", "--text needs a value", "--text=--json");
    refuses("-n -x", "-n needs a value", "-n-x");
}

/* A boolean takes a following word only where no positional parameter could be meant by it. */
static void test_boolean_words(void **state) {
    (void)state;
    gives_for(&plain, "--archived false", "{\"archived\":false}");
    gives_for(&plain, "--archived true --limit 1", "{\"archived\":true,\"limit\":1}");
    gives("a --dry-run true", "{\"cell\":\"a\",\"dry_run\":true,\"value\":true}");
    refuses_for(&plain, "--archived no", "takes no argument", "--help");
}

static void test_mistakes(void **state) {
    (void)state;
    refuses("--limti 3", "has no flag --limti; it takes: --limit", "did you mean --limit?");
    refuses("--limti=3", "has no flag --limti;", "did you mean --limit?");
    refuses("--zzzzzzzz", "has no flag --zzzzzzzz", "--help");
    refuses("-x", "has no flag -x", "");
    refuses("--=3", "has no flag --", "");
}

static void test_mistaken_values(void **state) {
    (void)state;
    refuses("--limit", "--limit needs a value", "--help");
    refuses("--limit x", "an integer expected, not \"x\"", "");
    refuses("--limit 3x", "an integer expected", "");
    refuses("--limit=", "an integer expected", "");
    refuses("--limit=+3", "an integer expected", "");
    refuses("--limit 9223372036854775808", "does not fit in 64 bits", "");
    refuses("--ratio x", "a number expected", "");
    refuses("--ratio true", "a number expected", "");
    refuses("--ratio NaN", "a number expected", "");
    refuses("--dry-run=maybe", "true or false expected", "");
    refuses("--no-dry-run=true", "takes no value", "");
    refuses("--json=true", "--json takes no value", "");
    refuses("--limit 1 --limit 2", "--limit is given twice", "");
    refuses("--set a", "KEY=JSON expected", "for example");
    refuses("--set =1", "KEY=JSON expected", "");
    refuses("--set a=1 --set a=2", "a is given twice", "");
    refuses("--set a=x", "is no JSON", "'\"x\"'");
    refuses("a hello", "\"hello\" is no JSON", "'\"hello\"'");
    refuses("a {x", "is no JSON", "single quotes");
    refuses("a 1 2", "\"2\" is one argument too many", "--help");
    refuses("--doc - a -", "one value only", "");
    refuses("--cell a", "CELL is given by its place", "--help");
    refuses("--no-limit", "has no flag --no-limit", "");
    refuses("--color=pink", "none of: auto, always, never", "");
    refuses("--project=", "a directory expected", "");
    refuses("\xff", "not valid UTF-8", "");
}

static void test_globals(void **state) {
    (void)state;
    stet_cli_words w;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(parse(NULL, "--json -C dir project --quiet list --color=never", &w, &err), STET_OK);
    assert_true(w.json && w.quiet && !w.help);
    assert_string_equal(w.project, "dir");
    assert_int_equal(w.colour, STET_COLOUR_NEVER);
    assert_string_equal(w.op->name, "project list");
    stet_cli_words_release(&w);

    assert_int_equal(parse(NULL, "", &w, &err), STET_OK);
    assert_null(w.op);
    stet_cli_words_release(&w);

    assert_int_equal(parse(NULL, "project --help", &w, &err), STET_OK);
    assert_true(w.help && !w.op);
    assert_string_equal(w.noun, "project");
    stet_cli_words_release(&w);

    /* Help is shown whatever else is missing, and --json holds although it comes after the mistake. */
    assert_int_equal(parse(NULL, "project add a b c -h", &w, &err), STET_OK);
    assert_true(w.help);
    stet_cli_words_release(&w);
    assert_int_equal(parse(NULL, "nonsense --json", &w, &err), STET_INVALID);
    assert_true(w.json);
    stet_error_clear(&err);
    stet_cli_words_release(&w);
    assert_int_equal(parse(NULL, "nonsense -- --json", &w, &err), STET_INVALID);
    assert_false(w.json);
    stet_error_clear(&err);
    stet_cli_words_release(&w);
}

static void test_commands(void **state) {
    (void)state;
    refuses_for(NULL, "projct list", "there is no command \"projct\"", "did you mean: stet project?");
    refuses_for(NULL, "project lst", "project has no command \"lst\"", "did you mean: stet project list?");
    refuses_for(NULL, "project", "project needs one of its commands", "stet project --help");
    refuses_for(NULL, "--limit 3 project list", "before a command", "come after its name");
    refuses_for(NULL, "project\flist", "there is no command", "");
}

static void test_stdin(void **state) {
    (void)state;
    stet_cli_words w;
    stet_error err = STET_ERROR_INIT;
    assert_int_equal(parse(&op, "a -", &w, &err), STET_OK);
    assert_true(w.reads_stdin);
    assert_string_equal(w.stdin_param->name, "value");
    stet_cli_words_release(&w);
}

static void test_usage(void **state) {
    (void)state;
    stet_buf out = STET_BUF(4096);
    stet_help_usage(&out, &op);
    assert_string_equal(stet_buf_cstr(&out),
                        "stet thing do [--limit N] [--ratio X] [--dry-run] [--no-cache] [--state "
                        "pending|running|failed ...] [--doc JSON] [--set KEY=JSON ...] [--include-content[=BOOL]] "
                        "[--text TEXT] CELL [VALUE]");
    stet_buf_release(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),         cmocka_unit_test(test_flags),    cmocka_unit_test(test_dashes),
        cmocka_unit_test(test_boolean_words), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_mistaken_values),
        cmocka_unit_test(test_globals),       cmocka_unit_test(test_commands), cmocka_unit_test(test_stdin),
        cmocka_unit_test(test_usage),
    };
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
