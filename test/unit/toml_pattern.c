/* toml_pattern.c - patterns in TOML: what they become, and the messages about mistakes, with the line. */

#include "../expect.h"

#include "base/json.h"
#include "graph/pattern_toml.h"

static char *convert(const char *text) {
    stet_value json, problems;
    OK(stet_pattern_toml_convert("stet.toml", text, strlen(text), NULL, &json, &problems, &err));
    assert_int_equal(stet_value_count(problems), 0);
    char *out = stet_json_print(json, STET_JSON_CANONICAL, NULL);
    stet_pattern *p;
    OK(stet_pattern_toml_parse("stet.toml", text, strlen(text), NULL, &p, NULL, &err));
    stet_pattern_free(p);
    stet_value_release(json);
    stet_value_release(problems);
    return out;
}

static void becomes(const char *text, const char *want) {
    char *got = convert(text);
    if (strcmp(got, want) != 0)
        fail_msg("got %s\nwant %s", got, want);
    stet_free(got);
}

static void has(const char *text, const char *part) {
    char *got = convert(text);
    if (!strstr(got, part))
        fail_msg("\"%s\" is not in %s", part, got);
    stet_free(got);
}

static void refused(const char *text, int line, const char *message) {
    stet_value problems;
    stet_pattern *p;
    assert_int_equal(stet_pattern_toml_parse("stet.toml", text, strlen(text), NULL, &p, &problems, &err), STET_INVALID);
    stet_value first = stet_value_at(problems, 0), m = stet_value_get(first, "message");
    if (stet_value_as_int(stet_value_get(first, "line")) != line || !strstr(stet_value_as_string(&m, NULL), message))
        fail_msg("line %d: %s (expected line %d: %s)", (int)stet_value_as_int(stet_value_get(first, "line")),
                 stet_value_as_string(&m, NULL), line, message);
    assert_true(stet_has_hint(&err));
    stet_value_release(problems);
    stet_error_clear(&err);
    assert_int_equal(stet_pattern_toml_parse("stet.toml", text, strlen(text), NULL, &p, NULL, NULL), STET_INVALID);
}

static void the_whole_form(void **state) {
    (void)state;
    becomes("name = \"sales\"\n"
            "[argument]\nyear = 2025\n"
            "[nodes.clean]\n"
            "command = [\"python3\", \"clean.py\", \"{raw}\", \"{out}\"]\n"
            "files = { raw = \"data/raw.csv\" }\n"
            "produces = { out = \"build/clean.csv\" }\n"
            "[nodes.total]\n"
            "javascript = \"({n}) => n\"\n"
            "inputs = { n = \"$clean/files/out/size\", y = \"$argument/year\", d = \"$$5\" }\n"
            "[result]\ntotal = \"$total\"\n",
            "{\"argument\":{\"default\":{\"year\":2025}},\"name\":\"sales\",\"nodes\":["
            "{\"id\":\"clean\",\"inputs\":{\"raw\":{\"/\":{\"link@1\":{\"id\":\"file:data/raw.csv\"}}}},\"module\":{"
            "\"argv\":[\"python3\",\"clean.py\",\"{raw}\",\"{out}\"],\"files\":[\"raw\"],\"produces\":{\"out\":\"build/"
            "clean.csv\"},"
            "\"type\":\"command\"}},"
            "{\"id\":\"total\",\"inputs\":{\"d\":\"$5\",\"n\":{\"$\":\"clean/files/out/size\"},\"y\":{\"$\":\"argument/"
            "year\"}},"
            "\"module\":{\"implementation\":\"({n}) => n\",\"type\":\"javascript\"}}],"
            "\"pattern\":1,\"result\":{\"total\":{\"$\":\"total\"}}}");
}

static void files_of_other_nodes(void **state) {
    (void)state;
    const char *a = "[nodes.a]\ncommand = \"x\"\nproduces = { out = \"b/a.o\", log = \"b/a.log\" }\n"
                    "[nodes.\"a.b\"]\ncommand = \"x\"\nproduces = \"b/b.o\"\n[nodes.c]\ncommand = \"y\"\n";
    char text[600];
    snprintf(text, sizeof text, "%sfiles = { x = \"$a.out\" }\n", a);
    has(text, "\"inputs\":{\"x\":{\"$\":\"a/files/out\"}}");
    snprintf(text, sizeof text, "%sfiles = \"./b/../b/a.o\"\n", a); /* by its path */
    has(text, "\"inputs\":{\"in\":{\"$\":\"a/files/out\"}}");
    snprintf(text, sizeof text, "%sfiles = { x = \"$a.b.out\" }\n", a); /* the longest name */
    has(text, "\"inputs\":{\"x\":{\"$\":\"a.b/files/out\"}}");
    snprintf(text, sizeof text, "%sfiles = { x = \"b/*.o\" }\n", a); /* a pattern takes them in */
    has(text, "\"x\":[{\"/\":{\"link@1\":{\"id\":\"glob:b/*.o\"}}},{\"made\":{\"$\":\"a/files/out\"},\"matching\":\"b/"
              "*.o\"},{\"made\":{\"$\":\"a.b/files/out\"},\"matching\":\"b/*.o\"}]");
    snprintf(text, sizeof text, "%safter = [\"a\"]\n", a);
    has(text, "\"inputs\":{\"after\":[{\"$\":\"a\"}]}");
    has("[nodes.a]\npython = \"s.py:f\"\n",
        "\"implementation\":{\"export\":\"f\",\"file\":\"s.py\"},\"type\":\"python\"");
    has("[nodes.a]\ncommand = \"x\"\nfiles = \"100%.c\"\n", "file:100%25.c");
    has("[nodes.a]\ncommand = \"x\"\nfiles = \"../up.c\"\n", "file:../up.c");
    has("[nodes.a]\ncommand = \"x\"\nproduces = [\"p\", \"q\"]\n", "\"produces\":{\"0\":\"p\",\"1\":\"q\"}");
    has("[nodes.a]\ncommand = \"x\"\n[nodes.b]\ncommand = \"y\"\n",
        "\"result\":{\"a\":{\"$\":\"a\"},\"b\":{\"$\":\"b\"}}");
}

static void of_many_nodes_the_result_names_none(void **state) {
    (void)state;
    stet_buf text = STET_BUF(0);
    for (int i = 0; i < 257; i++)
        stet_buf_printf(&text, "[nodes.n%d]\ncommand = \"x\"\n", i);
    char *got = convert(stet_buf_cstr(&text));
    assert_non_null(strstr(got, "\"wanted\":\"all\""));
    assert_null(strstr(got, "\"result\""));
    stet_free(got);
    stet_buf_release(&text);
}

/* The first thing that is said is what a person mistyped, not what is missing for that reason. */
static void a_misspelled_member_is_named_first_with_the_right_one(void **state) {
    (void)state;
    static const struct {
        const char *text, *hint;
    } cases[] = {{"[nodes.a]\ncomand = [\"true\"]\n", "did you mean `command`?"},
                 {"[nodes.a]\ncommand = [\"true\"]\nproduce = \"x\"\n", "did you mean `produces`?"},
                 {"[node.a]\ncommand = [\"true\"]\n", "did you mean `nodes`?"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stet_pattern *p;
        assert_int_equal(
            stet_pattern_toml_parse("stet.toml", cases[i].text, strlen(cases[i].text), NULL, &p, NULL, &err),
            STET_INVALID);
        assert_string_equal(err.hint, cases[i].hint);
        stet_error_clear(&err);
    }
}

/* The place is told once. */
static void a_text_that_is_no_toml_is_refused_with_its_line(void **state) {
    (void)state;
    stet_pattern *p;
    const char *text = "name = \"x\n";
    FAILS(stet_pattern_toml_parse("stet.toml", text, strlen(text), NULL, &p, NULL, &err), STET_INVALID,
          "stet.toml, line 1: a string without");
}

/* `each`: a list of files, and a map over it whose children are handed what the node refers to. */
static void a_command_for_each_file(void **state) {
    (void)state;
    static const char text[] = "[argument]\nflag = \"-O\"\n"
                               "[nodes.c]\neach = \"src/*.c\"\ncommand = [\"cc\", \"{flag}\", \"{in}\"]\n"
                               "inputs = { flag = \"$argument/flag\" }\nfiles = { h = \"a.h\" }\n"
                               "produces = \"b/{in.stem}.o\"\n"
                               "[nodes.l]\ncommand = \"ld {o}\"\nfiles = { o = \"$c.out\" }\n"
                               "[nodes.g]\ncommand = \"ls {in}\"\nfiles = \"b/*.o\"\n"
                               "[nodes.n]\ncommand = \"ls {in}\"\nfiles = \"d/*.o\"\n";
    has(text, "{\"id\":\"c.files\",\"inputs\":{\"files\":{\"/\":{\"link@1\":{\"id\":\"glob:src/*.c\"}}}},"
              "\"module\":{\"distinct\":[\"b/{in.stem}.o\"],\"name\":\"in\",\"ref\":\"files\",\"type\":\"ref\"}}");
    has(text, "{\"id\":\"c\",\"inputs\":{\"from0\":{\"$\":\"argument/flag\"},\"list\":{\"$\":\"c.files\"}},");
    has(text, "\"inputs\":{\"flag\":{\"$\":\"argument/from0\"},\"h\":{\"/\":{\"link@1\":{\"id\":\"file:a.h\"}}},"
              "\"in\":{\"$\":\"argument/element\"}}");
    has(text, "{\"id\":\"l\",\"inputs\":{\"o\":{\"each\":{\"$\":\"c\"},\"name\":\"out\"}}");
    /* A pattern that may take in what they make waits for them; another does not. */
    has(text, "{\"id\":\"g\",\"inputs\":{\"in\":[{\"/\":{\"link@1\":{\"id\":\"glob:b/*.o\"}}},"
              "{\"each\":{\"$\":\"c\"},\"matching\":\"b/*.o\",\"name\":\"out\"}]}");
    has(text, "{\"id\":\"n\",\"inputs\":{\"in\":{\"/\":{\"link@1\":{\"id\":\"glob:d/*.o\"}}}}");
    /* A path that one of them may have. */
    has("[nodes.c]\neach = \"src/*.c\"\ncommand = \"x\"\nproduces = \"{in.dir}/{in.stem}.o\"\n"
        "[nodes.l]\ncommand = \"ld {in}\"\nfiles = \"src/a.o\"\n",
        "{\"in\":[{\"/\":{\"link@1\":{\"id\":\"file:src/a.o\"}}},{\"each\":{\"$\":\"c\"},\"matching\":\"src/a.o\",");
    refused("[nodes.c]\neach = \"*.c\"\ncommand = \"x\"\nproduces = \"a.o\"\n", 4, "every command of the node");
    refused("[nodes.c]\neach = \"*.c\"\ncommand = \"x\"\nproduces = \"{in.stm}.o\"\n", 4, "is no part of a path");
    refused("[nodes.c]\nfiles = \"a.c\"\ncommand = \"x\"\nproduces = \"{in.stem}.o\"\n", 4, "for nodes with `each`");
    refused("[nodes.c]\neach = { a = \"x\", b = \"y\" }\ncommand = \"x\"\n", 2, "`each` has one name");
    refused("[nodes.c]\neach = \"x\"\nref = \"sum\"\n", 2, "`each` is for commands");
    refused("[nodes.c]\neach = \"*.c\"\nfiles = \"x\"\ncommand = \"x\"\n", 2, "there is an input \"in\" already");
}

static void mistakes(void **state) {
    (void)state;
    refused("[nodes.a]\ncommand = [\n", 3, "");
    refused("name = \"x\"\n", 0, "no nodes");
    refused("[nodes.a]\nfiles = \"x\"\n", 1, "says not what it does");
    refused("[nodes.a]\ncommand = 5\n", 2, "a list or a string");
    refused("[nodes.a]\ncommand = \"x\"\nref = \"sum\"\n", 1, "both");
    refused("[nodes.a]\ncommand = \"x\"\nfrob = 1\n", 3, "no member \"frob\"");
    refused("[nodes.a]\ncommand = \"x\"\nfiles = { b = \"$nope.out\" }\n", 3, "names no node");
    refused("[nodes.a]\ncommand = \"x\"\nproduces = \"o\"\n[nodes.b]\ncommand = \"x\"\nfiles = \"$a.frob\"\n", 6,
            "produces no file \"frob\"");
    refused("[nodes.a]\ncommand = \"x\"\nproduces = \"o\"\n[nodes.b]\ncommand = \"x\"\nproduces = \"./o\"\n", 6,
            "as well");
    refused("[nodes.a]\ncommand = \"x\"\nproduces = \"*.o\"\n", 3, "not searched for");
    refused("[nodes.a]\ncommand = \"x\"\nfiles = \".stet/config.toml\"\n", 3, "belongs to stet");
    refused("[nodes.a]\ncommand = \"x\"\nfiles = \"a[\"\n", 3, "never closed");
    refused("[nodes.a]\njavascript = \"1\"\ndepfile = \"x\"\n", 3, "for commands");
    refused("[nodes.a]\nref = \"sum\"\ninputs = { x = \"$nope\" }\n", 3, "nope");
    refused("frob = 1\n[nodes.a]\ncommand = \"x\"\n", 1, "no member \"frob\"");
    refused("[nodes.a]\npython = \"s.py\"\n", 2, "names no function");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_whole_form),
                                       cmocka_unit_test(files_of_other_nodes),
                                       cmocka_unit_test(a_misspelled_member_is_named_first_with_the_right_one),
                                       cmocka_unit_test(a_text_that_is_no_toml_is_refused_with_its_line),
                                       cmocka_unit_test(a_command_for_each_file),
                                       cmocka_unit_test(mistakes),
                                       cmocka_unit_test(of_many_nodes_the_result_names_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
