/* fleet_bundle.c - a run as one file: every changed byte, wrong length and crafted path is refused. */

#include "../expect.h"

#include <errno.h>

#include "../faults.h"
#include "../fleet.h"
#include "fleet/bundle.h"
#include "fleet/run.h"

static char *one, *two;
static stet_project *from, *to;
static char id[256], dir[4096];

static int setup(void **state) {
    (void)state;
    one = fleet_project("one");
    two = fleet_project("two");
    OK(stet_project_open("one", &from, &err));
    OK(stet_project_open("two", &to, &err));
    stet_runfile *run;
    OK(stet_runfile_create(from, &(stet_runfile_spec){.name = "r"}, &run, &err));
    stet_runfile_task_start(run, "t");
    fleet_put(stet_runfile_task_log(run, "t"), "what it printed\n");
    stet_runfile_task_done(run, "t", NULL);
    strcpy(id, stet_runfile_id(run));
    strcpy(dir, stet_runfile_dir(run));
    stet_bundle_info info;
    FAILS(stet_bundle_export(dir, id, "early", false, &info, &err), STET_BUSY, "driven");
    OK(stet_runfile_finish(run, &err));
    stet_runfile_close(run);
    OK(stet_bundle_export(dir, id, "bundle", false, &info, &err));
    assert_int_equal(info.files, 3);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    stet_project_close(from);
    stet_project_close(to);
    free(one);
    free(two);
    return 0;
}

static size_t runs_in(const char *root) {
    char *path = stet_asprintf("%s/.stet/runs", root);
    stet_names names = {0};
    size_t n = 0;
    if (stet_file_exists(path)) {
        OK(stet_file_list(path, &names, &err));
        n = names.len;
    }
    stet_names_release(&names);
    stet_free(path);
    return n;
}

static void every_changed_byte_is_noticed(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0);
    stet_bundle_info info;
    OK(stet_file_read("bundle", 0, &b, &err));
    for (size_t i = 0; i < b.len; i += getenv("STET_TEST_SHORT") ? 37 : 3) {
        b.data[i] ^= 1;
        OK(stet_file_replace("changed", b.data, b.len, 0644, &err));
        stet_status st = stet_bundle_import(to, "changed", i % 2 == 0, &info, &err);
        if (st == STET_OK)
            print_message("# byte %zu of %zu\n", i, b.len);
        assert_true(st == STET_CORRUPT || st == STET_UNSUPPORTED || st == STET_LIMIT);
        stet_error_clear(&err);
        b.data[i] ^= 1;
    }
    for (size_t cut = 0; cut < b.len; cut += 1 + b.len / 60) {
        OK(stet_file_replace("changed", b.data, cut, 0644, &err));
        assert_int_equal(stet_bundle_import(to, "changed", false, &info, &err), STET_CORRUPT);
        stet_error_clear(&err);
    }
    stet_buf_str(&b, "more");
    OK(stet_file_replace("changed", b.data, b.len, 0644, &err));
    FAILS(stet_bundle_import(to, "changed", false, &info, &err), STET_CORRUPT, "longer or shorter");
    assert_int_equal(runs_in("two"), 0); /* not even a half-made one */
    stet_buf_release(&b);
}

/* A bundle whose sums are right, but which no export wrote. */
static void crafted(const char *path, const char *content, stet_status expected, const char *why) {
    stet_buf b = STET_BUF(0);
    char hex[STET_HASH_HEX];
    stet_bundle_info info;
    stet_hash_hex(stet_hash_of(content, strlen(content)), hex);
    stet_buf_printf(&b,
                    "{\"format\":\"stet-run\",\"version\":1,\"runId\":\"x\",\"files\":[{\"path\":\"%s\",\"size\":%zu,"
                    "\"sha256\":\"%s\"}]}\n%s",
                    path, strlen(content), hex, content);
    stet_hash_hex(stet_hash_of(b.data, b.len), hex);
    stet_buf_printf(&b, "{\"sha256\":\"%s\"}\n", hex);
    OK(stet_file_replace("crafted", b.data, b.len, 0644, &err));
    FAILS(stet_bundle_import(to, "crafted", false, &info, &err), expected, why);
    assert_int_equal(runs_in("two"), 0);
    stet_buf_release(&b);
}

static void crafted_files_write_nowhere_else(void **state) {
    (void)state;
    static const char *const paths[] = {
        "../state.json",     "/etc/passwd", "logs/../../x", "logs/a/b", "logs/", "logs/..", "driver.lock", "",
        "state.json\\u0000x"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        crafted(paths[i], "x", STET_CORRUPT, "no run has");
    crafted("events.jsonl", "x", STET_CORRUPT, "no state.json");
    crafted("state.json", "{}", STET_CORRUPT, "schemaVersion");
    char *other = fleet_state("other", "2026-01-01T00:00:00Z", DONE_TASK, "");
    crafted("state.json", other, STET_CORRUPT, "the id in it is \"other\"");
    stet_free(other);
    stet_bundle_info info;
    FAILS(stet_bundle_import(to, ".", false, &info, &err), STET_INVALID, "regular");
    FAILS(stet_bundle_import(to, "/dev/null", false, &info, &err), STET_INVALID, "regular");
    FAILS(stet_bundle_import(to, "absent", false, &info, &err), STET_NOT_FOUND, "absent");
    fleet_put("newer", "{\"format\":\"stet-run\",\"version\":2,\"runId\":\"x\",\"files\":[]}\n");
    FAILS(stet_bundle_import(to, "newer", false, &info, &err), STET_UNSUPPORTED, "version 2");
}

static void each_failing_call_imports_all_or_nothing(void **state) {
    (void)state;
    stet_bundle_info info;
    for (int64_t n = 1;; n++) {
        faults_arm_durable(n, STET_SYS_FAIL, ENOSPC);
        stet_status st = stet_bundle_import(to, "bundle", false, &info, &err);
        faults_disarm();
        stet_error_clear(&err);
        size_t there = runs_in("two");
        if (st == STET_OK || there == 1) {
            assert_int_equal(there, 1);
            stet_registry *reg = fleet_load(two, STET_SCOPE_REPO);
            assert_int_equal(reg->records.len, 1); /* whole */
            stet_registry_free(reg);
        } else
            assert_int_equal(there, 0);
        if (!faults_fired()) {
            assert_int_equal(st, STET_OK);
            break;
        }
        OK(stet_file_remove_tree("two/.stet/runs", &err));
    }
    FAILS(stet_bundle_import(to, "bundle", false, &info, &err), STET_CONFLICT, "already");
    FAILS(stet_bundle_export(dir, id, "bundle", false, &info, &err), STET_CONFLICT, "bundle");
    OK(stet_bundle_export(dir, id, "bundle", true, &info, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_changed_byte_is_noticed),
        cmocka_unit_test(crafted_files_write_nowhere_else),
        cmocka_unit_test(each_failing_call_imports_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
