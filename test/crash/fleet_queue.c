/* fleet_queue.c - 40 processes add to the queue while 8 workers drain it and are killed at random.
 *
 * Nothing is lost, nothing runs twice beyond what leases allow, attempts are counted, and hopeless entries are parked.
 */

#include "../expect.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "../fleet.h"
#include "fleet/queue.h"
#include "os/clock.h"

enum { ADDERS = 40, WORKERS = 8 };

static stet_queue q = {.home = "home"};

/* Each drive leaves a line "app begin" or "app end" in one file: what really ran. Of a poisonous entry its worker dies.
 */
static void note(const char *app, const char *what) {
    char line[100];
    int n = snprintf(line, sizeof line, "%s %s\n", app, what);
    int fd = open("ran", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0 || write(fd, line, (size_t)n) != n)
        _exit(3);
    close(fd);
}

static stet_status driver(const stet_drive_request *request, stet_drive_result *result, stet_error *e) {
    (void)e;
    /* Held as long as this process works on the entry, and let go by its death: two at once would meet here. */
    char path[64];
    snprintf(path, sizeof path, "held-%s", request->app);
    int held = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (held < 0 || flock(held, LOCK_EX | LOCK_NB) != 0)
        note(request->app, "overlap");
    note(request->app, "begin");
    if (strncmp(request->app, "poison", 6) == 0)
        raise(SIGKILL);
    stet_clock_sleep_ms(2);
    note(request->app, "end");
    close(held);
    result->verdict = STET_DRIVE_COMPLETED;
    return STET_OK;
}

static pid_t start_worker(void) {
    pid_t pid = fork();
    if (pid == 0) {
        stet_queue_work_report report;
        stet_queue_work_opts opts = {.driver = driver, .workers = 1, .limit = SIZE_MAX};
        /* Until nothing is left for some time: adders may still be at work. */
        for (int idle = 0; idle < 40;) {
            if (stet_queue_work(&q, &opts, &report, &err) != STET_OK)
                _exit(2);
            idle = report.done + report.returned + report.parked > 0 ? 0 : idle + 1;
            stet_clock_sleep_ms(25);
        }
        _exit(0);
    }
    return pid;
}

static int count_lines(const char *text, const char *line) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, line)) != NULL; at += strlen(line))
        n += at == text || at[-1] == '\n';
    return n;
}

/* Does the last line about `app` say `what`? */
static bool last_is(const char *text, const char *app, const char *what) {
    char begin[64];
    size_t len = (size_t)snprintf(begin, sizeof begin, "%s ", app);
    bool is = false;
    for (const char *line = text; line != NULL && *line != 0; line = strchr(line, '\n'), line += line != NULL)
        if (strncmp(line, begin, len) == 0)
            is = strncmp(line + len, what, strlen(what)) == 0;
    return is;
}

static void nothing_is_lost_and_nothing_runs_twice_beyond_leases(void **state) {
    (void)state;
    int each = getenv("STET_TEST_LONG") ? 40 : getenv("STET_TEST_SHORT") ? 1 : 3, kills = each * 15;
    pid_t adders[ADDERS], workers[WORKERS];
    for (int i = 0; i < ADDERS; i++)
        if ((adders[i] = fork()) == 0) {
            for (int k = 0; k < each; k++) {
                char app[32];
                stet_value entry;
                snprintf(app, sizeof app, "%s-%d-%d", i % 20 == 7 && k == 0 ? "poison" : "app", i, k);
                if (stet_queue_add(&q,
                                   &(stet_queue_spec){.app = app, .repo = "/p", .priority = k % 3, .max_attempts = 20},
                                   &entry, &err) != STET_OK)
                    _exit(1);
                stet_value_release(entry);
            }
            _exit(0);
        }
    unsigned seed = 12345;
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start_worker();
    int killed = 0;
    while (killed < kills) {
        stet_clock_sleep_ms(10 + rand_r(&seed) % 30);
        int i = rand_r(&seed) % WORKERS;
        kill(workers[i], SIGKILL);
        waitpid(workers[i], NULL, 0);
        killed++;
        workers[i] = start_worker();
    }
    int status;
    for (int i = 0; i < ADDERS; i++) {
        waitpid(adders[i], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    /* Workers go until nothing is left; poisonous entries kill some of them, and others follow. */
    for (;;) {
        int done = 0;
        for (int i = 0; i < WORKERS; i++) {
            waitpid(workers[i], &status, 0);
            if (WIFSIGNALED(status))
                killed++;
            else {
                assert_int_equal(WEXITSTATUS(status), 0);
                done++;
            }
        }
        stet_value open_ones;
        OK(stet_queue_list(&q, NULL, NULL, &open_ones, &err));
        size_t left = 0;
        for (size_t i = 0; i < stet_value_count(open_ones); i++) {
            stet_value s = stet_value_get(stet_value_at(open_ones, i), "status");
            left += strcmp(stet_value_as_string(&s, NULL), "pending") == 0 ||
                    strcmp(stet_value_as_string(&s, NULL), "leased") == 0;
        }
        stet_value_release(open_ones);
        if (left == 0)
            break;
        for (int i = 0; i < WORKERS; i++)
            workers[i] = start_worker();
    }

    stet_value entries;
    char *ran = fleet_read("ran");
    OK(stet_queue_list(&q, NULL, NULL, &entries, &err));
    assert_int_equal(stet_value_count(entries), ADDERS * each); /* nothing lost, nothing doubled */
    assert_null(strstr(ran, " overlap\n"));                     /* one lease at a time */
    int64_t cut_off = 0;
    for (size_t i = 0; i < stet_value_count(entries); i++) {
        stet_value e = stet_value_at(entries, i), app = stet_value_get(e, "app"), s = stet_value_get(e, "status");
        const char *name = stet_value_as_string(&app, NULL), *is = stet_value_as_string(&s, NULL);
        int64_t attempts = stet_value_as_int(stet_value_get(e, "attempts"));
        char begin[64], end[64];
        snprintf(begin, sizeof begin, "%s begin\n", name);
        snprintf(end, sizeof end, "%s end\n", name);
        int begun = count_lines(ran, begin), ended = count_lines(ran, end);
        assert_true(begun <= attempts); /* each run had a lease of its own */
        assert_true(attempts <= 20);
        if (strncmp(name, "poison", 6) == 0) {
            assert_string_equal(is, "parked"); /* hopeless */
            assert_int_equal(attempts, 20);
            assert_int_equal(ended, 0);
            cut_off += attempts;
        } else {
            assert_string_equal(is, "done");
            assert_true(ended >= 1);
            assert_true(last_is(ran, name, "end")); /* once done, it never begins again */
            cut_off += attempts - 1;
        }
    }
    /* Every attempt but the one that did it was cut off by a death: there are no more of those than deaths. */
    assert_true(cut_off <= killed);
    stet_value_release(entries);
    stet_free(ran);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_lost_and_nothing_runs_twice_beyond_leases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
