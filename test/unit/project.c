/* project.c - projects: making, finding and opening them; settings; where local files go. */

#include "../expect.h"

#include <errno.h>
#include <unistd.h>

#include "../faults.h"
#include "os/file.h"
#include "project/project.h"

static void put(const char *path, const char *text) {
    OK(stet_file_replace(path, text, strlen(text), 0644, &err));
}

static void expect_path(const stet_project *p, const char *relative, const char *below_root) {
    char *path = stet_project_path(p, relative), *expected = stet_file_join(stet_project_root(p), below_root);
    assert_string_equal(path, expected);
    stet_free(path);
    stet_free(expected);
}

static void init_find_open(void **state) {
    (void)state;
    stet_project *p;
    bool created = false;
    FAILS(stet_project_find(".", &p, &err), STET_NOT_FOUND, "no stet project");
    FAILS(stet_project_open(".", &p, &err), STET_NOT_FOUND, "no stet project");
    FAILS(stet_project_find("absent", &p, &err), STET_NOT_FOUND, "absent");
    stet_error e = STET_ERROR_INIT;
    assert_int_equal(stet_project_find(".", &p, &e), STET_NOT_FOUND);
    assert_non_null(strstr(e.hint, "stet init"));
    stet_error_clear(&e);

    OK(stet_project_init("one/project", &created, &err));
    assert_true(created);
    OK(stet_project_init("one/project", &created, &err));
    assert_false(created);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("one/project/.stet/.gitignore", 0, &b, &err));
    assert_int_equal(strncmp(b.data, "local/\n", 7), 0);
    stet_buf_release(&b);

    OK(stet_file_mkdirs("one/project/src/deep", 0755, &err));
    OK(stet_project_find("one/project/src/deep", &p, &err));
    char *real;
    OK(stet_file_realpath("one/project", &real, &err));
    assert_string_equal(stet_project_root(p), real);
    stet_free(real);
    assert_int_equal(stet_value_as_int(stet_value_get(stet_project_config(p), "version")), 1);
    expect_path(p, "persist", ".stet/persist");
    expect_path(p, "runs/x/state.json", ".stet/runs/x/state.json");
    expect_path(p, "local/spaces/main.db", ".stet/local/spaces/main.db");
    expect_path(p, "local", ".stet/local");
    expect_path(p, "localised", ".stet/localised");
    expect_path(p, "", ".stet");
    stet_project_close(p);
    stet_project_close(NULL);
    /* Opening has made nothing. */
    assert_int_equal(faults_names("one/project/.stet", ""), 2);
    FAILS(stet_project_open("one/project/src", &p, &err), STET_NOT_FOUND, "one/project/src");

    /* The nearest one wins; a .stet without a config.toml, as a killed init leaves it, is none. */
    OK(stet_project_init("one/project/src", &created, &err));
    OK(stet_file_mkdirs("one/project/src/deep/.stet", 0755, &err));
    OK(stet_project_find("one/project/src/deep", &p, &err));
    assert_string_equal(stet_file_basename(stet_project_root(p)), "src");
    stet_project_close(p);
    put("in-the-way", "");
    FAILS(stet_project_init("in-the-way", &created, &err), STET_IO, "in-the-way");
}

static void versions_and_bad_files(void **state) {
    (void)state;
    stet_project *p;
    OK(stet_project_init("v", NULL, &err));
    put("v/.stet/config.toml", "version = 2\n");
    FAILS(stet_project_open("v", &p, &err), STET_UNSUPPORTED, "version 2");
    FAILS(stet_project_find("v", &p, &err), STET_UNSUPPORTED, "version 1"); /* names what it knows */
    static const char *const bad[] = {"",
                                      "version = 0\n",
                                      "version = \"1\"\n",
                                      "version = 1.5\n",
                                      "version = [\n",
                                      "version = 1\nlocal = 5\n",
                                      "version = 1\nlocal = \"\"\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("v/.stet/config.toml", bad[i]);
        FAILS(stet_project_open("v", &p, &err), STET_INVALID, "v/.stet/config.toml");
    }
    char *large = malloc(2 << 20);
    memset(large, '#', 2 << 20);
    OK(stet_file_replace("v/.stet/config.toml", large, 2 << 20, 0644, &err));
    FAILS(stet_project_open("v", &p, &err), STET_LIMIT, "config.toml");
    free(large);
}

static void settings(void **state) {
    (void)state;
    stet_project *p;
    OK(stet_project_init("s", NULL, &err));
    put("s/.stet/config.toml", "version = 1\n[persist.defaults]\nmax_bytes = 5\n[a]\n\"b.c\" = 1\n");
    OK(stet_project_open("s", &p, &err));
    assert_int_equal(stet_value_as_int(stet_project_setting(p, "persist.defaults.max_bytes")), 5);
    assert_int_equal(stet_value_type(stet_project_setting(p, "persist.defaults")), STET_TYPE_OBJECT);
    static const char *const none[] = {"",
                                       ".",
                                       "absent",
                                       "persist.",
                                       "persist.absent",
                                       "version.x",
                                       "persist.defaults.max_bytes.x",
                                       "persist..defaults"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(stet_value_type(stet_project_setting(p, none[i])), STET_TYPE_NULL);
    stet_project_close(p);
}

static void trust(const char *dir) {
    stet_project *p;
    stet_value said;
    assert_int_equal(stet_project_open(dir, &p, &err), STET_DENIED);
    stet_error_clear(&err);
    OK(stet_project_trust(dir, STET_TRUST_GRANT, &said, &err));
    stet_value_release(said);
}

static void local_elsewhere(void **state) {
    (void)state;
    stet_project *p;
    OK(stet_project_init("l", NULL, &err));
    put("l/.stet/config.toml", "version = 1\nlocal = \"/var/tmp/elsewhere\"\n");
    trust("l");
    OK(stet_project_open("l", &p, &err));
    char *path = stet_project_path(p, "local/repo.db");
    assert_string_equal(path, "/var/tmp/elsewhere/repo.db");
    stet_free(path);
    path = stet_project_path(p, "local");
    assert_string_equal(path, "/var/tmp/elsewhere");
    stet_free(path);
    expect_path(p, "persist", ".stet/persist");
    stet_project_close(p);
    put("l/.stet/config.toml", "version = 1\nlocal = \"../near\"\n");
    trust("l");
    OK(stet_project_open("l", &p, &err));
    expect_path(p, "local/x", "../near/x");
    stet_project_close(p);
}

/* Whatever fails while one is made: there is none, or a whole one; and a second try makes it. */
static void failing_init(void **state) {
    (void)state;
    for (int n = 1;; n++) {
        char dir[32];
        bool created = false;
        stet_project *p;
        snprintf(dir, sizeof dir, "f%d", n);
        int before = faults_descriptors();
        faults_arm_any(n, STET_SYS_FAIL, ENOSPC);
        stet_status status = stet_project_init(dir, &created, &err);
        faults_disarm();
        assert_int_equal(faults_descriptors(), before);
        stet_error_clear(&err);
        if (!faults_fired()) {
            assert_int_equal(status, STET_OK);
            break;
        }
        if (stet_project_open(dir, &p, NULL) == STET_OK)
            stet_project_close(p);
        OK(stet_project_init(dir, &created, &err));
        OK(stet_project_open(dir, &p, &err));
        char *inner = stet_project_path(p, "");
        assert_int_equal(faults_names(inner, ""), 2); /* no temporary file */
        stet_free(inner);
        stet_project_close(p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(init_find_open),  cmocka_unit_test(versions_and_bad_files), cmocka_unit_test(settings),
        cmocka_unit_test(local_elsewhere), cmocka_unit_test(failing_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
