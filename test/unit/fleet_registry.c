/* fleet_registry.c - the registry: derived, disposable, never the authority; one test per promise. */

#include "../expect.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <utime.h>

#include "../faults.h"
#include "../fleet.h"
#include "fleet/manage.h"
#include "fleet/overlay.h"
#include "fleet/query.h"
#include "fleet/repos.h"
#include "os/clock.h"

static char *one, *two;
static int number; /* of the test: each has projects and a home of its own */

static int setup(void **state) {
    (void)state;
    char name[32];
    snprintf(name, sizeof name, "t%d", number++);
    assert_int_equal(mkdir(name, 0755), 0);
    assert_int_equal(chdir(name), 0);
    one = fleet_project("one");
    two = fleet_project("two");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    free(one);
    free(two);
    return chdir("..");
}

/* As if it had been written long ago: a file that may still change unseen is read at every look. */
static void age(const char *root, const char *id) {
    char *path = stet_asprintf("%s/.stet/runs/%s/state.json", root, id);
    struct utimbuf old = {.actime = 1700000000, .modtime = 1700000000};
    assert_int_equal(utime(path, &old), 0);
    stet_free(path);
}

static void absent_before_the_first_refresh(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->status, STET_FLEET_INDEX_ABSENT);
    assert_int_equal(reg->records.len, 1); /* an empty registry serves what is there */
    assert_int_equal(reg->records.at[0]->lifecycle, STET_LIFE_COMPLETED);
    stet_registry_free(reg);
    fleet_refresh(one, STET_SCOPE_REPO);
    reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->status, STET_FLEET_INDEX_VALID);
    stet_registry_free(reg);
}

static void a_source_that_changed_makes_the_index_stale_and_is_named(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_run(one, "b", "2026-01-02T00:00:00Z", DONE_TASK, "");
    fleet_refresh(one, STET_SCOPE_REPO);
    fleet_run(one, "b", "2026-01-02T00:00:00Z", FAILED_TASK, "");
    fleet_run(one, "c", "2026-01-03T00:00:00Z", HALF_DONE, "");
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->status, STET_FLEET_INDEX_STALE);
    assert_int_equal(reg->stale.len, 1);
    assert_string_equal(reg->stale.at[0]->id, "b");
    assert_int_equal(reg->fresh.len, 1);
    assert_string_equal(reg->fresh.at[0]->id, "c");
    /* What is told is the source's, not the index's. */
    assert_int_equal(fleet_find(reg, "b")->lifecycle, STET_LIFE_FAILED);
    assert_int_equal(fleet_find(reg, "b")->freshness, STET_FRESH_STALE);
    assert_int_equal(fleet_find(reg, "a")->freshness, STET_FRESH_VALID);
    stet_value f = stet_registry_freshness(reg, 0),
               name = stet_value_get(stet_value_at(stet_value_get(f, "staleRuns"), 0), "runId");
    assert_string_equal(stet_value_as_string(&name, NULL), "b");
    stet_value_release(f);
    stet_registry_free(reg);
}

/* Any byte: also of a member that no record shows. */
static void the_fingerprint_covers_the_whole_content(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, ",\"extra\":1");
    fleet_refresh(one, STET_SCOPE_REPO);
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, ",\"extra\":2");
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->stale.len, 1);
    stet_registry_free(reg);
}

/* Same size, same inode, mtime put back: the time of change still tells. */
static void an_edit_that_hides_its_time_is_seen(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, ",\"extra\":1");
    age(one, "a");
    stet_clock_sleep_ms(2100); /* so that the row may be trusted at all */
    fleet_refresh(one, STET_SCOPE_REPO);
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->read, 0); /* unchanged: not read */
    stet_registry_free(reg);
    char *path = stet_asprintf("%s/.stet/runs/a/state.json", one);
    FILE *f = fopen(path, "r+");
    fseek(f, -3, SEEK_END); /* `1}` and the newline */
    fputs("2", f);
    fclose(f);
    age(one, "a");
    reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->read, 1);
    assert_int_equal(reg->stale.len, 1);
    assert_string_equal(reg->stale.at[0]->id, "a");
    stet_registry_free(reg);
    stet_free(path);
}

static void a_source_that_is_gone_is_missing_and_not_made_up(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_refresh(one, STET_SCOPE_REPO);
    char *dir = stet_asprintf("%s/.stet/runs/a", one);
    OK(stet_file_remove_tree(dir, &err));
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    const stet_fleet_record *rec = NULL, *last = NULL;
    assert_int_equal(reg->records.len, 0);
    assert_int_equal(reg->status, STET_FLEET_INDEX_STALE);
    assert_string_equal(reg->missing.at[0]->id, "a");
    FAILS(stet_registry_find(reg, "a", NULL, &rec, NULL, &last, &err), STET_NOT_FOUND, "no run a");
    assert_non_null(last);
    assert_int_equal(last->freshness, STET_FRESH_MISSING);
    stet_value next = stet_registry_next_action(reg);
    assert_string_equal(stet_value_as_string(&next, NULL), "stet registry refresh --scope repo");
    stet_value_release(next);
    stet_registry_free(reg);
    /* The refresh forgets it. */
    fleet_refresh(one, STET_SCOPE_REPO);
    reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->status, STET_FLEET_INDEX_VALID);
    assert_int_equal(reg->missing.len, 0);
    stet_registry_free(reg);
    stet_free(dir);
}

static void unreadable_and_newer_state_is_missing_and_never_success(void **state) {
    (void)state;
    fleet_run(one, "good", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_run(one, "bad", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_run(one, "newer", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_refresh(one, STET_SCOPE_REPO);
    char *bad = stet_asprintf("%s/.stet/runs/bad/state.json", one),
         *newer = stet_asprintf("%s/.stet/runs/newer/state.json", one);
    fleet_put(bad, "{\"schemaVersion\":2,\"id\":\"bad\",");
    fleet_put(newer, "{\"schemaVersion\":99,\"id\":\"newer\",\"tasks\":[]}");
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->records.len, 1); /* the others are not hidden */
    assert_int_equal(reg->unreadable.len, 2);
    assert_int_equal(reg->missing.len, 2);
    assert_int_equal(reg->counts[STET_LIFE_COMPLETED], 1);
    assert_string_equal(reg->unreadable.at[0].name, "bad");
    assert_int_equal(reg->unreadable.at[1].status, STET_UNSUPPORTED);
    const stet_fleet_record *rec, *last;
    FAILS(stet_registry_find(reg, "bad", NULL, &rec, NULL, &last, &err), STET_CORRUPT, "run bad in");
    assert_non_null(last);
    FAILS(stet_registry_find(reg, "newer", NULL, &rec, NULL, &last, &err), STET_UNSUPPORTED, "schemaVersion is 99");
    stet_registry_free(reg);
    stet_free(bad);
    stet_free(newer);
}

static void archived_is_an_overlay_that_never_touches_the_source(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", FAILED_TASK, "");
    char *path = stet_asprintf("%s/.stet/runs/a/state.json", one), *before = fleet_read(path);
    struct stat was, is;
    assert_int_equal(stat(path, &was), 0);
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    OK(stet_runs_archive(reg, &reg->records, false, "old", "me", "2026-02-01T00:00:00.000Z", &err));
    stet_registry_free(reg);
    reg = fleet_load(one, STET_SCOPE_REPO);
    stet_fleet_record *r = fleet_find(reg, "a");
    assert_int_equal(r->lifecycle, STET_LIFE_ARCHIVED);
    assert_int_equal(r->derived, STET_LIFE_FAILED);
    assert_string_equal(r->archive_reason, "old");
    assert_string_equal(r->archived_at, "2026-02-01T00:00:00.000Z");
    stet_fleet_query by_failed = {.statuses = 1u << STET_LIFE_FAILED}, without = {.leave_archived = true};
    assert_true(stet_fleet_query_match(&by_failed, r)); /* still found by what it is */
    assert_false(stet_fleet_query_match(&without, r));
    OK(stet_runs_archive(reg, &reg->records, true, NULL, NULL, "", &err));
    stet_registry_free(reg);
    reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(fleet_find(reg, "a")->lifecycle, STET_LIFE_FAILED);
    stet_registry_free(reg);
    char *after = fleet_read(path);
    assert_string_equal(before, after);
    assert_int_equal(stat(path, &is), 0);
    assert_true(was.st_ino == is.st_ino && was.st_mtime == is.st_mtime);
    stet_free(before);
    stet_free(after);
    stet_free(path);
}

static void archiving_thousands_replaces_one_file_once(void **state) {
    (void)state;
    char id[16];
    int many = getenv("STET_TEST_SHORT") ? 100 : 600;
    for (int i = 0; i < many; i++) {
        snprintf(id, sizeof id, "r%05d", i);
        fleet_run(one, id, "2026-01-01T00:00:00Z", DONE_TASK, "");
    }
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    faults_arm(STET_SYS_RENAME, 0, STET_SYS_GO, 0);
    OK(stet_runs_archive(reg, &reg->records, false, NULL, NULL, "2026-02-01T00:00:00.000Z", &err));
    faults_disarm();
    assert_int_equal(faults_count(), 1);
    stet_registry_free(reg);
    reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->counts[STET_LIFE_ARCHIVED], many);
    stet_registry_free(reg);
}

static void rerun_makes_a_linked_run_and_preserves_the_original(void **state) {
    (void)state;
    fleet_run(one, "orig", "2026-01-01T00:00:00Z", FAILED_TASK, "");
    char *path = stet_asprintf("%s/.stet/runs/orig/state.json", one), *before = fleet_read(path);
    char first[STET_RUN_ID_MAX + 1], second[STET_RUN_ID_MAX + 1];
    stet_value link, inputs = stet_value_object();
    stet_value_put(&inputs, "n", stet_value_int(7));
    stet_registry *reg = fleet_load(one, STET_SCOPE_HOME);
    OK(stet_runs_rerun(reg, fleet_find(reg, "orig"), inputs, "flaky", "me", first, &link, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(link, "generation")), 1);
    stet_value_release(link);
    stet_registry_free(reg);
    reg = fleet_load(one, STET_SCOPE_HOME);
    stet_fleet_record *r = fleet_find(reg, first);
    assert_string_equal(r->repo, one);
    assert_string_equal(r->provenance.rerun_of, "orig");
    assert_string_equal(r->provenance.rerun_of_repo, one);
    assert_string_equal(r->provenance.reason, "flaky");
    assert_int_equal(r->lifecycle, STET_LIFE_QUEUED); /* same tasks, none run */
    assert_int_equal(r->counts.total, 1);
    assert_non_null(strstr(r->inputs, "n=7"));
    assert_non_null(strstr(r->inputs, "k=needle-orig"));
    OK(stet_runs_rerun(reg, r, stet_value_null(), NULL, "me", second, &link, &err));
    assert_int_equal(stet_value_as_int(stet_value_get(link, "generation")), 2);
    stet_value origin = stet_value_get(link, "originRunId");
    assert_string_equal(stet_value_as_string(&origin, NULL), "orig"); /* pinned to the root of the chain */
    stet_value_release(link);
    stet_registry_free(reg);
    char *after = fleet_read(path);
    assert_string_equal(before, after);
    stet_free(before);
    stet_free(after);
    stet_free(path);
    stet_value_release(inputs);
}

/* Deleting what is derived, one file after the other, loses nothing that a run says. */
static void every_derived_file_can_be_deleted_and_rebuilt(void **state) {
    (void)state;
    char id[STET_RUN_ID_MAX + 1];
    stet_value link;
    fleet_run(one, "orig", "2026-01-01T00:00:00Z", FAILED_TASK, ",\"labels\":[\"own\"]");
    fleet_run(two, "other", "2026-01-02T00:00:00Z", DONE_TASK, "");
    fleet_refresh(two, STET_SCOPE_REPO);
    stet_registry *reg = fleet_load(one, STET_SCOPE_HOME);
    OK(stet_runs_rerun(reg, fleet_find(reg, "orig"), stet_value_null(), NULL, "me", id, &link, &err));
    stet_value labels = stet_value_array();
    stet_value_push(&labels, stet_value_string("laid-over"));
    OK(stet_runs_label(reg, fleet_find(reg, "orig"), labels, &err));
    OK(stet_runs_archive(reg, &reg->records, false, NULL, NULL, "2026-02-01T00:00:00.000Z", &err));
    stet_value_release(link);
    stet_value_release(labels);
    stet_registry_free(reg);
    fleet_refresh(one, STET_SCOPE_HOME);
    char *files[] = {stet_asprintf("%s/.stet/local/registry/index.json", one),
                     stet_asprintf("%s/.stet/local/registry/archive.json", one),
                     stet_asprintf("%s/.stet/local/registry/provenance.json", one),
                     stet_asprintf("%s/.stet/local/registry/labels.json", one),
                     stet_asprintf("%s/registry/index.json", fleet_home)};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_true(stet_file_exists(files[i]));
        OK(stet_file_remove(files[i], &err));
        reg = fleet_load(one, STET_SCOPE_HOME);
        assert_int_equal(reg->records.len, 3);
        assert_int_equal(stet_value_count(reg->problems), 0);
        assert_int_equal(fleet_find(reg, id)->provenance.generation, 1);
        stet_registry_free(reg);
        fleet_refresh(one, STET_SCOPE_REPO);
        reg = fleet_load(one, STET_SCOPE_REPO);
        assert_int_equal(reg->status, STET_FLEET_INDEX_VALID);
        stet_registry_free(reg);
    }
    reg = fleet_load(one, STET_SCOPE_HOME);
    assert_string_equal(fleet_find(reg, "orig")->labels, "own\n"); /* rows of the index kept no overlay */
    assert_int_equal(fleet_find(reg, "orig")->lifecycle, STET_LIFE_FAILED);
    assert_true(stet_file_exists(files[2])); /* links came back from the runs */
    stet_registry_free(reg);
    /* The list of projects, too: each comes back with its own refresh. In between, the current one counts all the same.
     */
    char *list = stet_asprintf("%s/registry", fleet_home), *own = stet_asprintf("%s/.stet/local/registry", one);
    OK(stet_file_remove_tree(list, &err));
    OK(stet_file_remove_tree(own, &err));
    reg = fleet_load(one, STET_SCOPE_HOME);
    assert_int_equal(reg->status, STET_FLEET_INDEX_ABSENT);
    assert_int_equal(reg->records.len, 2);
    stet_registry_free(reg);
    fleet_refresh(one, STET_SCOPE_REPO);
    fleet_refresh(two, STET_SCOPE_REPO);
    reg = fleet_load(one, STET_SCOPE_HOME);
    assert_int_equal(reg->status, STET_FLEET_INDEX_VALID);
    assert_int_equal(reg->records.len, 3);
    stet_registry_free(reg);
    stet_free(list);
    stet_free(own);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        stet_free(files[i]);
}

static void a_damaged_index_is_named_and_not_believed(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", FAILED_TASK, "");
    fleet_refresh(one, STET_SCOPE_REPO);
    char *path = stet_asprintf("%s/.stet/local/registry/index.json", one), *text = fleet_read(path);
    /* Somebody makes a success of it. */
    char *at = strstr(text, "\"failed\":1");
    assert_non_null(at);
    memcpy(at, "\"failed\":0", 10);
    fleet_put(path, text);
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(stet_value_count(reg->problems), 1);
    assert_int_equal(reg->status, STET_FLEET_INDEX_ABSENT);
    assert_int_equal(fleet_find(reg, "a")->lifecycle, STET_LIFE_FAILED);
    stet_registry_free(reg);
    size_t len = strlen(text);
    for (size_t cut = 0; cut < len; cut += 1 + len / 50) {
        text[cut] = 0;
        fleet_put(path, text);
        reg = fleet_load(one, STET_SCOPE_REPO);
        assert_int_equal(stet_value_count(reg->problems), 1);
        assert_int_equal(reg->records.len, 1);
        stet_registry_free(reg);
        text[cut] = ' ';
    }
    fleet_refresh(one, STET_SCOPE_REPO); /* makes a new one */
    reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->status, STET_FLEET_INDEX_VALID);
    stet_registry_free(reg);
    stet_free(text);
    stet_free(path);
}

static void one_corrupt_overlay_breaks_nothing_else(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_run(two, "b", "2026-01-02T00:00:00Z", DONE_TASK, "");
    fleet_refresh(two, STET_SCOPE_REPO);
    fleet_refresh(one, STET_SCOPE_REPO);
    char *path = stet_asprintf("%s/.stet/local/registry/archive.json", two);
    static const char *const bad[] = {"{",
                                      "[]",
                                      "{\"schemaVersion\":1,\"archived\":[]}",
                                      "{\"schemaVersion\":7}",
                                      "{\"schemaVersion\":1,\"archived\":{\"../x\":{}}}",
                                      "{\"schemaVersion\":1,\"archived\":{\"b\":true}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fleet_put(path, bad[i]);
        stet_registry *reg = fleet_load(one, STET_SCOPE_HOME);
        assert_int_equal(reg->records.len, 2);
        assert_int_equal(stet_value_count(reg->problems), 1);
        stet_value repo = stet_value_get(stet_value_at(reg->problems, 0), "repo");
        assert_string_equal(stet_value_as_string(&repo, NULL), two);
        stet_status st = stet_runs_archive(reg, &reg->records, false, NULL, NULL, "2026-02-01T00:00:00.000Z", &err);
        assert_int_equal(st, strstr(bad[i], "7}") ? STET_UNSUPPORTED : STET_CORRUPT);
        stet_error_clear(&err);
        stet_registry_free(reg);
        char *now = fleet_read(path); /* what can't be read is not overwritten */
        assert_string_equal(now, bad[i]);
        stet_free(now);
    }
    stet_free(path);
}

static void the_same_id_in_two_projects_is_two_runs(void **state) {
    (void)state;
    fleet_run(one, "same-id", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_run(two, "same-id", "2026-01-01T00:00:00Z", FAILED_TASK, "");
    fleet_refresh(one, STET_SCOPE_REPO);
    fleet_refresh(two, STET_SCOPE_REPO);
    const stet_fleet_record *rec;
    const char *from;
    stet_registry *reg = fleet_load(one, STET_SCOPE_HOME);
    assert_int_equal(reg->records.len, 2);
    assert_int_equal(reg->status, STET_FLEET_INDEX_VALID);
    OK(stet_registry_find(reg, "same-id", NULL, &rec, &from, NULL, &err));
    assert_string_equal(rec->repo, one);
    assert_string_equal(from, "repo");
    OK(stet_registry_find(reg, "same-id", two, &rec, &from, NULL, &err));
    assert_string_equal(from, "home");
    assert_int_equal(rec->lifecycle, STET_LIFE_FAILED);
    stet_fleet_records just_one = {0};
    *stet_vec_add(&just_one) = (stet_fleet_record *)rec;
    OK(stet_runs_archive(reg, &just_one, false, NULL, NULL, "2026-02-01T00:00:00.000Z", &err));
    stet_vec_release(&just_one);
    stet_registry_free(reg);
    reg = fleet_load(NULL, STET_SCOPE_HOME);
    assert_int_equal(reg->counts[STET_LIFE_ARCHIVED], 1); /* one of the two */
    FAILS(stet_registry_find(reg, "same-id", NULL, &rec, &from, NULL, &err), STET_CONFLICT, "in 2 projects");
    stet_registry_free(reg);
}

static void a_project_is_one_however_it_is_reached(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    assert_int_equal(symlink("one", "link"), 0);
    assert_int_equal(mkdir("one/deep", 0755), 0);
    fleet_refresh("link", STET_SCOPE_REPO);
    fleet_refresh("one/deep", STET_SCOPE_REPO);
    /* Somebody wrote the link into the list by hand. */
    char *path = stet_asprintf("%s/registry/repos.json", fleet_home), *cwd = getcwd(NULL, 0);
    char *text = stet_asprintf("{\"schemaVersion\":1,\"repos\":[{\"path\":\"%s/"
                               "link\",\"addedAt\":\"x\"},{\"path\":\"%s\",\"addedAt\":\"x\"}]}",
                               cwd, one);
    fleet_put(path, text);
    stet_registry *reg = fleet_load("link/deep", STET_SCOPE_HOME);
    assert_int_equal(reg->repos.len, 1);
    assert_int_equal(reg->records.len, 1);
    assert_string_equal(reg->records.at[0]->repo, one);
    stet_registry_free(reg);
    stet_free(text);
    stet_free(path);
    free(cwd);
}

static void a_directory_whose_name_is_not_the_id_in_it_is_unreadable(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    assert_int_equal(rename("one/.stet/runs/a", "one/.stet/runs/b"), 0);
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->records.len, 0);
    assert_string_equal(reg->unreadable.at[0].name, "b");
    assert_non_null(strstr(reg->unreadable.at[0].reason, "the id in it is \"a\""));
    stet_registry_free(reg);
}

static void the_order_is_fixed_and_pages_neither_overlap_nor_leave_a_gap(void **state) {
    (void)state;
    static const char *const times[] = {"2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.001Z",
                                        "2025-12-31T23:00:00-01:00", "2026-01-02"};
    char id[16];
    for (int i = 0; i < 40; i++) {
        snprintf(id, sizeof id, "r%02d", (i * 17) % 40);
        fleet_run(i % 2 ? one : two, id, times[i % 5], DONE_TASK, "");
    }
    fleet_run(one, "r01", times[0], DONE_TASK, ""); /* perhaps the same id in both */
    fleet_refresh(one, STET_SCOPE_REPO);
    fleet_refresh(two, STET_SCOPE_REPO);
    stet_registry *reg = fleet_load(one, STET_SCOPE_HOME);
    for (size_t i = 1; i < reg->records.len; i++)
        assert_true(stet_fleet_record_compare(reg->records.at[i - 1], reg->records.at[i]) < 0);
    for (int newest = 0; newest < 2; newest++) {
        size_t seen = 0;
        char *cursor = NULL;
        do {
            stet_fleet_query q = {.limit = 7, .cursor = cursor, .newest_first = newest};
            stet_fleet_page page;
            OK(stet_fleet_query_run(reg, &q, &page, &err));
            assert_int_equal(page.offset, seen);
            assert_int_equal(page.total, reg->records.len);
            for (size_t i = 0; i < page.rows.len; i++, seen++)
                assert_ptr_equal(page.rows.at[i], reg->records.at[newest ? reg->records.len - 1 - seen : seen]);
            stet_free(cursor);
            cursor = page.next_cursor ? stet_strdup(page.next_cursor) : NULL;
            stet_fleet_page_release(&page);
        } while (cursor != NULL);
        assert_int_equal(seen, reg->records.len);
    }
    stet_fleet_page page;
    OK(stet_fleet_query_run(reg, &(stet_fleet_query){.limit = 0}, &page, &err));
    assert_int_equal(page.rows.len, 0);
    stet_fleet_page_release(&page);
    FAILS(stet_fleet_query_run(reg, &(stet_fleet_query){.limit = 1, .cursor = "nonsense!"}, &page, &err), STET_INVALID,
          "no cursor");
    stet_registry_free(reg);
    stet_registry *again = fleet_load(two, STET_SCOPE_HOME); /* the same order from elsewhere */
    reg = fleet_load(one, STET_SCOPE_HOME);
    for (size_t i = 0; i < reg->records.len; i++)
        assert_string_equal(reg->records.at[i]->id, again->records.at[i]->id);
    assert_true(stet_hash_equal(reg->fingerprint, again->fingerprint));
    stet_registry_free(again);
    stet_registry_free(reg);
}

static void times_are_compared_as_times_and_not_as_text(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:30:00+02:00", DONE_TASK, ""); /* 22:30 of the day before */
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    int64_t midnight;
    assert_true(stet_time_parse("2026-01-01", 10, &midnight));
    stet_fleet_query since = {.since_ms = midnight}, until = {.until_ms = midnight};
    assert_false(stet_fleet_query_match(&since, reg->records.at[0]));
    assert_true(stet_fleet_query_match(&until, reg->records.at[0]));
    stet_registry_free(reg);
}

static void free_text_looks_where_it_is_told(void **state) {
    (void)state;
    fleet_run(one, "run-7", "2026-01-01T00:00:00Z", DONE_TASK, ",\"labels\":[\"nightly\"]");
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    static const char *const found[] = {"RUN-7",     "app",     "flow",       "title OF",   "one",
                                        "completed", "running", "needle-run", "nightly app"};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        stet_fleet_query q = {.text = found[i]};
        assert_true(stet_fleet_query_match(&q, reg->records.at[0]));
    }
    stet_fleet_query q = {.text = "nightly absent"};
    assert_false(stet_fleet_query_match(&q, reg->records.at[0]));
    stet_registry_free(reg);
}

static void the_digest_of_inputs_is_bounded(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, ",\"piece\":\"p\"");
    char *text = fleet_state("a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    stet_buf all = STET_BUF(0);
    char *at = strstr(text, "\"inputs\":{");
    stet_buf_add(&all, text, (size_t)(at - text) + 10);
    stet_buf_str(&all, "\"big\":\"");
    for (int i = 0; i < 200000; i++)
        stet_buf_str(&all, "\xc3\xa9");
    stet_buf_str(&all, "\",\"nul\":\"a\\u0000b\",\"list\":[1,2,3],");
    stet_buf_str(&all, at + 10);
    fleet_put("one/.stet/runs/a/state.json", all.data);
    stet_registry *reg = fleet_load(one, STET_SCOPE_REPO);
    assert_int_equal(reg->records.len, 1);
    assert_true(strlen(reg->records.at[0]->inputs) <= STET_FLEET_RECORD_INPUTS_MAX);
    stet_value v = stet_fleet_record_value(reg->records.at[0]); /* asserts valid UTF-8 */
    stet_value_release(v);
    stet_registry_free(reg);
    stet_buf_release(&all);
    stet_buf_release(&b);
    stet_free(text);
}

static void a_listed_project_that_is_gone_is_missing_and_no_error(void **state) {
    (void)state;
    fleet_run(two, "b", "2026-01-01T00:00:00Z", DONE_TASK, "");
    fleet_refresh(two, STET_SCOPE_REPO);
    OK(stet_file_remove_tree("two", &err));
    stet_registry *reg = fleet_load(one, STET_SCOPE_HOME);
    assert_int_equal(reg->records.len, 0);
    assert_int_equal(reg->missing.len, 1);
    assert_int_equal(stet_value_count(reg->problems), 0);
    stet_registry_free(reg);
}

/* The refresh under faults: the index is the old one, the new one, or absent; never one that is believed wrongly. */
static void each_failing_call_of_a_refresh_leaves_a_whole_index(void **state) {
    (void)state;
    fleet_run(one, "a", "2026-01-01T00:00:00Z", DONE_TASK, "");
    for (int64_t n = 1;; n++) {
        stet_registry *reg = NULL;
        stet_registry_opts opts = {.home = fleet_home, .root = one, .scope = STET_SCOPE_REPO};
        faults_arm_durable(n, STET_SYS_FAIL, ENOSPC);
        stet_status st = stet_registry_refresh(&opts, &reg, &err);
        faults_disarm();
        if (st == STET_OK)
            stet_registry_free(reg);
        stet_error_clear(&err);
        reg = fleet_load(one, STET_SCOPE_REPO);
        assert_int_equal(stet_value_count(reg->problems), 0);
        assert_int_equal(reg->records.len, 1);
        stet_registry_free(reg);
        if (!faults_fired()) {
            assert_int_equal(st, STET_OK);
            break;
        }
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(absent_before_the_first_refresh),
        T(a_source_that_changed_makes_the_index_stale_and_is_named),
        T(the_fingerprint_covers_the_whole_content),
        T(an_edit_that_hides_its_time_is_seen),
        T(a_source_that_is_gone_is_missing_and_not_made_up),
        T(unreadable_and_newer_state_is_missing_and_never_success),
        T(archived_is_an_overlay_that_never_touches_the_source),
        T(archiving_thousands_replaces_one_file_once),
        T(rerun_makes_a_linked_run_and_preserves_the_original),
        T(every_derived_file_can_be_deleted_and_rebuilt),
        T(a_damaged_index_is_named_and_not_believed),
        T(one_corrupt_overlay_breaks_nothing_else),
        T(the_same_id_in_two_projects_is_two_runs),
        T(a_project_is_one_however_it_is_reached),
        T(a_directory_whose_name_is_not_the_id_in_it_is_unreadable),
        T(the_order_is_fixed_and_pages_neither_overlap_nor_leave_a_gap),
        T(times_are_compared_as_times_and_not_as_text),
        T(free_text_looks_where_it_is_told),
        T(the_digest_of_inputs_is_bounded),
        T(a_listed_project_that_is_gone_is_missing_and_no_error),
        T(each_failing_call_of_a_refresh_leaves_a_whole_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
