/* fleet_state.c - a run's state.json: what conforms, what is refused, and how it is classified. */

#include "../expect.h"

#include "../fleet.h"
#include "fleet/state.h"

/* The rules again, written the way they are told, to hold the classifier against. */
static const char *told(const stet_state_counts *c) {
    uint32_t pending = c->tasks[STET_TASK_PENDING], running = c->tasks[STET_TASK_RUNNING],
             completed = c->tasks[STET_TASK_COMPLETED], failed = c->tasks[STET_TASK_FAILED],
             skipped = c->tasks[STET_TASK_SKIPPED];
    const struct {
        bool holds;
        const char *lifecycle;
    } rules[] = {
        {running > 0, "running"},
        {c->open_feedback > 0, "blocked"},
        {failed > 0, "failed"},
        {c->total > 0 && completed + skipped == c->total, "completed"},
        {c->gated_commits > 0 && pending == 0, "completed"},
        {completed > 0, "running"},
        {true, "queued"},
    };
    for (size_t i = 0;; i++)
        if (rules[i].holds)
            return rules[i].lifecycle;
}

/* Every combination of the conditions, so that each pair that conflicts is there with either outcome possible. */
static void the_first_rule_that_matches_wins(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 1u << 7; bits++) {
        stet_state_counts c = {.tasks = {bits & 1, bits >> 1 & 1, bits >> 2 & 1, bits >> 3 & 1, bits >> 4 & 1},
                               .open_feedback = bits >> 5 & 1,
                               .gated_commits = bits >> 6 & 1,
                               .commits = bits >> 6 & 1};
        for (int i = 0; i < STET_TASK_STATUSES; i++)
            c.total += c.tasks[i];
        assert_string_equal(stet_lifecycle_name(stet_lifecycle_of(&c)), told(&c));
    }
}

static stet_lifecycle classify(const char *tasks, const char *more) {
    char *text = fleet_state("r", "2026-01-01T00:00:00Z", tasks, more);
    stet_state s;
    OK(stet_state_parse(text, strlen(text), NULL, &s, &err));
    stet_lifecycle l = stet_lifecycle_of(&s.counts);
    stet_state_release(&s);
    OK(stet_state_parse_survey(text, strlen(text), NULL, &s, &err));
    assert_int_equal(stet_lifecycle_of(&s.counts), l);
    stet_state_release(&s);
    stet_free(text);
    return l;
}

#define OPEN   ",\"feedback\":[{\"id\":\"f\",\"status\":\"open\"}]"
#define TASKED ",\"feedback\":[{\"id\":\"f\",\"status\":\"tasked\"}]"
#define SOLVED ",\"feedback\":[{\"id\":\"f\",\"status\":\"resolved\"}]"
#define GATED  ",\"commits\":[{\"id\":\"c\",\"verifierGated\":true}]"
#define LOOSE  ",\"commits\":[{\"id\":\"c\",\"verifierGated\":false}]"

static void lifecycle_is_classified_from_the_text(void **state) {
    (void)state;
    const char *run = "{\"id\":\"r\",\"status\":\"running\"}", *bad = "{\"id\":\"f\",\"status\":\"failed\"}",
               *skip = "{\"id\":\"s\",\"status\":\"skipped\"}", *wait = "{\"id\":\"p\",\"status\":\"pending\"}";
    char both[200];
    assert_int_equal(classify("", ""), STET_LIFE_QUEUED);
    assert_int_equal(classify(wait, ""), STET_LIFE_QUEUED);
    assert_int_equal(classify(run, OPEN), STET_LIFE_RUNNING); /* 1 over 2 */
    snprintf(both, sizeof both, "%s,%s", run, bad);
    assert_int_equal(classify(both, ""), STET_LIFE_RUNNING);          /* 1 over 3 */
    assert_int_equal(classify(run, GATED), STET_LIFE_RUNNING);        /* 1 over 5 */
    assert_int_equal(classify(bad, OPEN), STET_LIFE_BLOCKED);         /* 2 over 3 */
    assert_int_equal(classify(DONE_TASK, TASKED), STET_LIFE_BLOCKED); /* 2 over 4: tasked is not resolved */
    assert_int_equal(classify("", OPEN GATED), STET_LIFE_BLOCKED);    /* 2 over 5 */
    assert_int_equal(classify(bad, SOLVED), STET_LIFE_FAILED);
    assert_int_equal(classify(bad, GATED), STET_LIFE_FAILED); /* 3 over 5 */
    assert_int_equal(classify(DONE_TASK, ""), STET_LIFE_COMPLETED);
    assert_int_equal(classify("", GATED), STET_LIFE_COMPLETED); /* a commit-only run */
    assert_int_equal(classify("", LOOSE), STET_LIFE_QUEUED);
    assert_int_equal(classify(HALF_DONE, GATED), STET_LIFE_RUNNING); /* something is pending: 6, not 5 */
    assert_int_equal(classify(HALF_DONE, ""), STET_LIFE_RUNNING);
    snprintf(both, sizeof both, "%s,%s", DONE_TASK, skip);
    assert_int_equal(classify(both, ""), STET_LIFE_COMPLETED);
}

static void refuse(const char *text, stet_status status, const char *why) {
    stet_state s;
    FAILS(stet_state_parse(text, strlen(text), "r", &s, &err), status, why);
    FAILS(stet_state_parse_survey(text, strlen(text), "r", &s, &err), status, why);
}

static void refuse_with(const char *from, const char *to, stet_status status, const char *why) {
    char *text = fleet_state("r", "2026-01-01T00:00:00Z", DONE_TASK, OPEN GATED), *at = strstr(text, from);
    assert_non_null(at);
    char *changed = stet_asprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    refuse(changed, status, why);
    stet_free(changed);
    stet_free(text);
}

static void what_does_not_conform_is_unreadable_and_never_success(void **state) {
    (void)state;
    refuse("", STET_CORRUPT, "");
    refuse("null", STET_CORRUPT, "null");
    refuse("[]", STET_CORRUPT, "array");
    refuse("{}", STET_CORRUPT, "schemaVersion");
    refuse_with("\"schemaVersion\":2", "\"schemaVersion\":3", STET_UNSUPPORTED, "schemaVersion is 3");
    refuse_with("\"schemaVersion\":2", "\"schemaVersion\":0", STET_CORRUPT, "none below 1");
    refuse_with("\"schemaVersion\":2", "\"schemaVersion\":\"2\"", STET_CORRUPT, "expected an integer");
    refuse_with("\"completed\"", "\"done\"", STET_CORRUPT, "tasks[0]: status is \"done\"");
    refuse_with("\"completed\"", "true", STET_CORRUPT, "status is a boolean");
    refuse_with("\"status\":\"completed\"", "\"x\":1", STET_CORRUPT, "status is missing");
    refuse_with("\"open\"", "\"closed\"", STET_CORRUPT, "feedback[0]: status is \"closed\"");
    refuse_with("\"verifierGated\":true", "\"verifierGated\":\"true\"", STET_CORRUPT, "expected a boolean");
    refuse_with("\"loopStage\":\"running\"", "\"loopStage\":\"flying\"", STET_CORRUPT, "loopStage");
    refuse_with("\"id\":\"r\"", "\"id\":\"other\"", STET_CORRUPT, "the id in it is \"other\"");
    refuse_with("\"id\":\"r\"", "\"id\":\"a/../b\"", STET_CORRUPT, "no run id");
    refuse_with("\"id\":\"r\"", "\"id\":\"..\"", STET_CORRUPT, "no run id");
    refuse_with("\"createdAt\":\"2026-01-01T00:00:00Z\"", "\"createdAt\":\"soon\"", STET_CORRUPT, "RFC 3339");
    refuse_with("\"createdAt\":\"2026-01-01T00:00:00Z\"", "\"createdAt\":5", STET_CORRUPT, "createdAt is an integer");
    refuse_with("\"updatedAt\":\"2026-01-01T00:00:00Z\",", "", STET_CORRUPT, "updatedAt is missing");
    refuse_with("\"inputs\":{", "\"labels\":[3],\"inputs\":{", STET_CORRUPT, "labels[0]");
    refuse_with("\"options\":{}", "\"options\":[]", STET_CORRUPT, "options is an array");
    refuse_with("\"app\":{", "\"provenance\":{\"generation\":\"1\"},\"app\":{", STET_CORRUPT, "generation");
    refuse_with(DONE_TASK, DONE_TASK "," DONE_TASK, STET_CORRUPT, "twice");
    refuse_with("[" DONE_TASK, "[7", STET_CORRUPT, "");
    refuse_with("\"tasks\":[", "\"tasks\":{\"x\":[", STET_CORRUPT, "");
}

/* Whoever looks at thousands does not keep the tasks; what it says of them is the same. */
static void a_survey_tells_what_reading_the_whole_tells(void **state) {
    (void)state;
    const char *tasks = DONE_TASK ",{\"id\":\"second-with-a-long-name\",\"status\":\"failed\",\"error\":"
                                  "{\"message\":\"the disk of the other machine is full\"},"
                                  "\"log\":\"logs/second-with-a-long-name.log\"},"
                                  "{\"id\":\"third-with-a-long-name\",\"status\":\"failed\","
                                  "\"error\":\"only a text, and a long one\"}";
    char *text = fleet_state("r", "2026-01-01T00:00:00Z", tasks, "");
    stet_state whole, survey;
    OK(stet_state_parse(text, strlen(text), "r", &whole, &err));
    OK(stet_state_parse_survey(text, strlen(text), "r", &survey, &err));
    assert_memory_equal(&whole.counts, &survey.counts, sizeof whole.counts);
    assert_true(stet_hash_equal(whole.fingerprint, survey.fingerprint));
    assert_true(stet_value_equal(stet_value_get(whole.failed, "id"), stet_value_get(survey.failed, "id")));
    assert_true(stet_value_equal(stet_value_get(whole.failed, "error"), stet_value_get(survey.failed, "error")));
    assert_int_equal(stet_value_count(stet_value_get(whole.root, "tasks")), 3);
    assert_int_equal(stet_value_count(stet_value_get(survey.root, "tasks")), 0);
    assert_true(stet_value_equal(stet_value_get(whole.root, "inputs"), stet_value_get(survey.root, "inputs")));
    stet_state_release(&whole);
    stet_state_release(&survey);
    stet_free(text);
}

static void deep_and_large_states_are_refused_within_bounds(void **state) {
    (void)state;
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "{\"schemaVersion\":2,\"inputs\":");
    for (int i = 0; i < 100000; i++)
        stet_buf_str(&b, "[");
    stet_state s;
    assert_int_equal(stet_state_parse(b.data, b.len, NULL, &s, &err), STET_LIMIT);
    stet_error_clear(&err);
    stet_buf_release(&b);
    fleet_put("large", "{}");
    assert_int_equal(truncate("large", (off_t)STET_STATE_MAX_BYTES + 1), 0);
    FAILS(stet_state_read("large", NULL, NULL, &s, &err), STET_LIMIT, "large has 33554433 bytes");
}

static void only_regular_files_are_opened(void **state) {
    (void)state;
    stet_state s;
    assert_int_equal(symlink("loop", "loop"), 0);
    FAILS(stet_state_read("loop", NULL, NULL, &s, &err), STET_CORRUPT, "symbolic link");
    assert_int_equal(mkfifo("fifo", 0644), 0);
    FAILS(stet_state_read("fifo", NULL, NULL, &s, &err), STET_CORRUPT, "not a regular file");
    assert_int_equal(mkdir("folder", 0755), 0);
    FAILS(stet_state_read("folder", NULL, NULL, &s, &err), STET_CORRUPT, "not a regular file");
    FAILS(stet_state_read("absent", NULL, NULL, &s, &err), STET_NOT_FOUND, "absent");
}

static void an_older_schema_is_migrated_in_memory(void **state) {
    (void)state;
    const char *old = "{\"schemaVersion\":1,\"id\":\"r\",\"createdAt\":\"2026-01-01T01:00:00+01:00\",\"updatedAt\":"
                      "\"2026-01-01T00:00:00.5Z\","
                      "\"loopStage\":\"interpret\",\"workflow\":{\"id\":\"w\",\"title\":\"T\",\"app\":{\"id\":\"a\","
                      "\"version\":\"3\"}},"
                      "\"tasks\":[{\"id\":\"t\",\"status\":\"pending\"}]}";
    stet_state s;
    fleet_put("old.json", old);
    OK(stet_state_read("old.json", "r", NULL, &s, &err));
    stet_value app = stet_value_get(stet_value_get(s.root, "app"), "id"), flow = stet_value_get(s.root, "workflowId"),
               title = stet_value_get(s.root, "title");
    assert_string_equal(stet_value_as_string(&app, NULL), "a");
    assert_string_equal(stet_value_as_string(&flow, NULL), "w");
    assert_string_equal(stet_value_as_string(&title, NULL), "T");
    assert_int_equal(stet_value_as_int(stet_value_get(s.root, "schemaVersion")), 2);
    assert_int_equal(s.updated_ms - s.created_ms, 500);
    stet_state_release(&s);
    char *now = fleet_read("old.json");
    assert_string_equal(now, old); /* never written back */
    stet_free(now);
}

static void run_ids(void **state) {
    (void)state;
    static const char *const good[] = {"a",        "20261115T174500Z-report-0a1b", "2026-11-15T17:45:00Z", "...", ".x",
                                       "A_b.c:d-e"};
    static const char *const bad[] = {"", ".", "..", "a/b", "a b", "a\n", "\xc3\xa9", "a\\b", "~new.1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(stet_run_id_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(stet_run_id_valid(bad[i], strlen(bad[i])));
    char longest[STET_RUN_ID_MAX + 2];
    memset(longest, 'a', sizeof longest);
    assert_true(stet_run_id_valid(longest, STET_RUN_ID_MAX));
    assert_false(stet_run_id_valid(longest, STET_RUN_ID_MAX + 1));
    assert_false(stet_run_id_valid("a\0b", 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_that_matches_wins),
        cmocka_unit_test(lifecycle_is_classified_from_the_text),
        cmocka_unit_test(what_does_not_conform_is_unreadable_and_never_success),
        cmocka_unit_test(a_survey_tells_what_reading_the_whole_tells),
        cmocka_unit_test(deep_and_large_states_are_refused_within_bounds),
        cmocka_unit_test(only_regular_files_are_opened),
        cmocka_unit_test(an_older_schema_is_migrated_in_memory),
        cmocka_unit_test(run_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
