/* fleet_hostile.c - 500 hostile and broken runs among good ones.
 *
 * Each is counted and named, none crashes or hides the others, and none is shown as success.
 */

#include "../expect.h"

#include <sys/resource.h>

#include "../fleet.h"

enum { HOSTILE = 500, GOOD = 25 };

static uint64_t seed;

static uint32_t next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

static char *path_of(const char *root, const char *id, const char *name) {
    return stet_asprintf("%s/.stet/runs/%s/%s", root, id, name);
}

static void put_bytes(const char *path, const char *bytes, size_t len) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, len, f), len);
    fclose(f);
}

/* Puts `to` in place of the first `from`. */
static char *exchange(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    assert_non_null(at);
    return stet_asprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* One broken state of a kind. False: what came out may conform after all (random bytes), and then says something else.
 */
static bool break_it(const char *root, const char *id, int kind) {
    static const char *const wrong[][2] = {
        {"\"completed\"", "\"succeeded\""},
        {"\"completed\"", "1"},
        {"\"schemaVersion\":2", "\"schemaVersion\":3"},
        {"\"schemaVersion\":2", "\"schemaVersion\":9223372036854775807"},
        {"\"schemaVersion\":2", "\"schemaVersion\":99999999999999999999"},
        {"\"schemaVersion\":2", "\"schemaVersion\":-1"},
        {"\"schemaVersion\":2", "\"schemaVersion\":true"},
        {"\"createdAt\":\"", "\"createdAt\":\"x"},
        {"\"updatedAt\":\"2026", "\"updatedAt\":\"9999999"},
        {"\"loopStage\":\"running\"", "\"loopStage\":[]"},
        {"\"loopStage\":\"running\"", "\"loopStage\":\"\""},
        {"\"tasks\":[", "\"tasks\":\"\",\"x\":["},
        {"\"tasks\":[", "\"tasks\":[null,"},
        {"\"inputs\":{", "\"inputs\":3,\"y\":{"},
        {"\"options\":{}", "\"feedback\":[{\"status\":\"OPEN\"}]"},
        {"\"options\":{}", "\"commits\":[{\"verifierGated\":\"yes\"}]"},
        {"\"options\":{}", "\"commits\":{}"},
        {"\"options\":{}", "\"provenance\":[]"},
        {"\"app\":{", "\"app\":null,\"app\":{"},
        {"\"id\":\"t\"", "\"id\":\"\""},
        {"{\"schemaVersion\"", "[{\"schemaVersion\""},
    };
    char *file = path_of(root, id, "state.json"), *good = fleet_state(id, "2026-01-01T00:00:00Z", DONE_TASK, ""),
         *text = NULL;
    char *dir = path_of(root, id, "");
    OK(stet_file_mkdirs(dir, 0755, &err));
    size_t len = strlen(good);
    bool sure = true;
    switch (kind % 12) {
    case 0: /* cut off */
        put_bytes(file, good, next() % (len - 2));
        break;
    case 1: /* random bytes, NULs and all */
        for (size_t i = 0; i < 1 + next() % 8; i++)
            good[next() % len] = (char)next();
        put_bytes(file, good, len);
        sure = false;
        break;
    case 2: { /* deep */
        stet_buf b = STET_BUF(0);
        stet_buf_str(&b, "{\"schemaVersion\":2,\"inputs\":");
        for (uint32_t i = 0, n = 200 + next() % 5000; i < n; i++)
            stet_buf_str(&b, next() % 2 ? "[" : "{\"a\":");
        put_bytes(file, b.data, b.len);
        stet_buf_release(&b);
        break;
    }
    case 3: /* nothing there */
        break;
    case 4: /* links */
        assert_int_equal(symlink(next() % 2 ? "state.json" : "/dev/zero", file), 0);
        break;
    case 5: /* not a file */
        assert_int_equal(next() % 2 ? mkfifo(file, 0644) : mkdir(file, 0755), 0);
        break;
    case 6: /* another's id, or one with slashes */
        text = exchange(good, id, next() % 2 ? "../../escape" : "another");
        put_bytes(file, text, strlen(text));
        break;
    case 7: /* 200 MB, most of it a hole */
        put_bytes(file, good, len);
        assert_int_equal(truncate(file, 200 * 1024 * 1024), 0);
        break;
    case 8: /* empty, blank or of another kind */
        text = stet_strdup(next() % 2 ? "" : "\xef\xbb\xbf{}");
        put_bytes(file, text, strlen(text));
        break;
    case 9: /* not UTF-8 */
        text = exchange(good, "Title of", "Title \xff\xfe\xc3");
        put_bytes(file, text, strlen(text));
        break;
    default: { /* wrong members */
        size_t which = next() % (sizeof wrong / sizeof *wrong);
        text = exchange(good, wrong[which][0], wrong[which][1]);
        put_bytes(file, text, strlen(text));
        break;
    }
    }
    stet_free(text);
    stet_free(good);
    stet_free(file);
    stet_free(dir);
    return sure;
}

static int times_named(const stet_registry *reg, const char *id) {
    int n = 0;
    for (size_t i = 0; i < reg->unreadable.len; i++)
        n += strcmp(reg->unreadable.at[i].name, id) == 0;
    return n;
}

static void each_is_counted_and_named_and_none_is_success(void **state) {
    (void)state;
    seed = 20261115;
    char *root = fleet_project("p");
    int hostile = getenv("STET_TEST_LONG") ? HOSTILE * 10 : HOSTILE, unsure = 0;
    char id[64];
    for (int i = 0; i < GOOD; i++) {
        snprintf(id, sizeof id, "good-%04d", i);
        fleet_run(root, id, "2026-01-01T00:00:00Z", DONE_TASK, "");
    }
    bool *sure = stet_alloc_zero((size_t)hostile);
    for (int i = 0; i < hostile; i++) {
        snprintf(id, sizeof id, "bad-%04d", i);
        sure[i] = break_it(root, id, i);
        unsure += !sure[i];
    }
    /* And names that are no ids, and links in place of directories. */
    OK(stet_file_mkdirs("p/.stet/runs/white space", 0755, &err));
    OK(stet_file_mkdirs("p/.stet/runs/\xff\xfe", 0755, &err));
    assert_int_equal(symlink("loop", "p/.stet/runs/loop"), 0);
    assert_int_equal(symlink("good-0001", "p/.stet/runs/linked"), 0);
    fleet_put("p/.stet/runs/README", "not a run\n");
    for (int round = 0; round < 2; round++) {
        stet_registry *reg = fleet_load(root, STET_SCOPE_REPO);
        assert_int_equal(reg->records.len + reg->unreadable.len, (size_t)(GOOD + hostile + 4));
        assert_true(reg->records.len <= (size_t)(GOOD + unsure));
        for (int i = 0; i < GOOD; i++) {
            snprintf(id, sizeof id, "good-%04d", i);
            assert_int_equal(fleet_find(reg, id)->lifecycle, STET_LIFE_COMPLETED); /* not hidden */
        }
        for (int i = 0; i < hostile; i++) {
            snprintf(id, sizeof id, "bad-%04d", i);
            bool shown = fleet_find(reg, id) != NULL;
            assert_true(!sure[i] || !shown);
            assert_int_equal(times_named(reg, id), shown ? 0 : 1);
        }
        for (size_t i = 0; i < reg->unreadable.len; i++) {
            assert_true(reg->unreadable.at[i].status != STET_OK);
            assert_true(reg->unreadable.at[i].reason[0] != 0);
        }
        stet_value f = stet_registry_freshness(reg, 0); /* names are valid text */
        assert_int_equal(stet_value_count(stet_value_get(f, "unreadableRuns")), reg->unreadable.len);
        stet_value_release(f);
        stet_registry_free(reg);
        fleet_refresh(root, STET_SCOPE_REPO); /* and the same with an index */
    }
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    if (getenv("STET_TEST_SHORT") == NULL) /* sanitizers have shadows */
        assert_true(use.ru_maxrss < 60 * 1024);
    stet_free(sure);
    free(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_counted_and_named_and_none_is_success)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
