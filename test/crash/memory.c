/* memory.c - processes write one space at once and are killed while they do.
 *
 * No commit is lost or doubled, no process is overtaken by many others, and acknowledged commits are there.
 */

#include "../expect.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory/space.h"
#include "os/clock.h"

static stet_status bump(stet_tx *tx, void *ctx, stet_error *e) {
    stet_value n = stet_value_null();
    (void)ctx;
    stet_status st = stet_tx_get(tx, "counter/n", NULL, &n, e);
    if (st == STET_NOT_FOUND) {
        stet_error_clear(e);
        st = STET_OK;
    }
    return st != STET_OK ? st : stet_tx_set(tx, "counter/n", NULL, stet_value_int(stet_value_as_int(n) + 1), e);
}

static int64_t number(stet_space *s, const char *cell) {
    stet_value v = stet_value_null();
    stet_status st = stet_space_get(s, NULL, cell, NULL, -1, &v, &err);
    stet_error_clear(&err);
    return st == STET_OK ? stet_value_as_int(v) : 0;
}

static void sound(stet_space *s) {
    stet_buf problems = STET_BUF(0);
    size_t found, repaired;
    OK(stet_space_check(s, false, &problems, &found, &repaired, &err));
    if (found)
        fail_msg("%s", stet_buf_cstr(&problems));
    stet_buf_release(&problems);
}

/* What waiting costs is told by the commits of others that came before one that had been begun earlier, and not by the
 * clock: a machine that is busy delays all alike. With eight that always want to write seven are fair. One that was not
 * running when its turn came is overtaken by many, once; a queue that lets newcomers pass does it to every hundredth.
 */
enum { MANY = 80, SELDOM = 100 };

typedef struct waits {
    int64_t worst, many; /* most that came before, and how often there were more than MANY */
} waits;

/* Adds one `times` times, by a transaction that reads and writes. */
static int count_alone(const char *path, int times, waits *w) {
    stet_space *mine;
    if (stet_space_open_path(path, "x", 0, &mine, &err) != STET_OK)
        return 2;
    for (int i = 0; i < times; i++) {
        int64_t before;
        stet_commit_result r;
        if (stet_space_seq(mine, &before, &err) != STET_OK ||
            stet_space_transact(mine, NULL, bump, NULL, &r, &err) != STET_OK || !r.changed) {
            fprintf(stderr, "%s\n", err.message);
            return 3;
        }
        int64_t overtaken = r.seq - before - 1;
        w->worst = overtaken > w->worst ? overtaken : w->worst;
        w->many += overtaken > MANY;
    }
    stet_space_close(mine);
    return 0;
}

static void count_together(int processes, int times, const char *path) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    for (int p = 0; p < processes; p++)
        if (fork() == 0) {
            waits w = {0};
            int status = count_alone(path, times, &w);
            _exit(status ? status : write(pipes[1], &w, sizeof w) == sizeof w ? 0 : 4);
        }
    close(pipes[1]);
    waits all = {0}, one;
    int answers = 0;
    while (read(pipes[0], &one, sizeof one) == sizeof one) {
        all.worst = one.worst > all.worst ? one.worst : all.worst;
        all.many += one.many;
        answers++;
    }
    close(pipes[0]);
    for (int p = 0; p < processes; p++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_int_equal(answers, processes);
    stet_space *s;
    int64_t seq, commits = (int64_t)processes * times;
    OK(stet_space_open_path(path, "x", 0, &s, &err));
    assert_int_equal(number(s, "counter/n"), commits);
    OK(stet_space_seq(s, &seq, &err));
    assert_int_equal(seq, commits); /* none lost, none doubled */
    print_message(
        "# %d processes, %d each: at most %d others came before one that waited, more than %d of them %d times\n",
        processes, times, (int)all.worst, MANY, (int)all.many);
    assert_true(all.many <= commits / SELDOM);
    sound(s);
    stet_space_close(s);
}

static void two_count(void **state) {
    (void)state;
    count_together(2, getenv("STET_TEST_SHORT") ? 100 : 1000, "two.db");
}

static void eight_count(void **state) {
    (void)state;
    count_together(8, getenv("STET_TEST_SHORT") ? 100 : 1000, "eight.db");
}

/* Writes for ever: document "w<me>" counts up, and the shared counter with it, in one commit; every third time a group
 * of three. Each acknowledged number goes down the pipe. */
static void write_for_ever(int me, int out) {
    stet_space *s;
    char cell[32];
    if (stet_space_open_path("killed.db", "x", 0, &s, &err) != STET_OK)
        _exit(2);
    snprintf(cell, sizeof cell, "w%d", me);
    stet_value ops;
    static const char text[] = "[{\"op\":\"increment\",\"path\":\"\"}]";
    if (stet_json_parse(text, strlen(text), &ops, &err) != STET_OK)
        _exit(2);
    for (int64_t n = 1;;) {
        stet_group *g;
        int members = n % 3 ? 1 : 3;
        if (stet_group_begin(s, NULL, &g, &err) != STET_OK)
            _exit(3);
        for (int i = 0; i < members; i++) {
            stet_tx *tx;
            if (stet_tx_begin_in(g, &tx, &err) != STET_OK ||
                stet_tx_set(tx, cell, NULL, stet_value_int(n + i), &err) != STET_OK ||
                stet_tx_patch_value(tx, "sum", NULL, ops, &err) != STET_OK ||
                stet_group_add(g, tx, NULL, NULL, &err) != STET_OK)
                _exit(4);
        }
        if (stet_group_flush(g, &err) != STET_OK)
            _exit(5);
        n += members;
        int64_t acknowledged = n - 1;
        if (write(out, &acknowledged, sizeof acknowledged) != sizeof acknowledged)
            _exit(6);
        stet_group_end(g);
    }
}

static void killed_at_random(void **state) {
    (void)state;
    enum { WRITERS = 4 };
    int rounds = getenv("STET_TEST_LONG") ? 2000 : getenv("STET_TEST_SHORT") ? 40 : 200;
    unsigned random = 20261115;
    int me = 0;
    struct {
        pid_t pid;
        int in, me;
    } w[WRITERS] = {{0}};
    for (int i = 0; i < WRITERS; i++)
        w[i].pid = -1;
    stet_space *s;
    OK(stet_space_open_path("killed.db", "x", 0, &s, &err));
    for (int round = 0; round < rounds + WRITERS; round++) {
        int i = round % WRITERS;
        if (w[i].pid > 0) {
            random = random * 1103515245 + 12345;
            stet_clock_sleep_ms((random >> 16) % 12);
            kill(w[i].pid, SIGKILL);
            int status;
            assert_int_equal(waitpid(w[i].pid, &status, 0), w[i].pid);
            assert_true(WIFSIGNALED(status));
            int64_t acknowledged = 0, one;
            while (read(w[i].in, &one, sizeof one) == sizeof one)
                acknowledged = one;
            close(w[i].in);
            char cell[32];
            snprintf(cell, sizeof cell, "w%d", w[i].me);
            int64_t stored = number(s, cell);
            if (stored < acknowledged || stored > acknowledged + 3)
                fail_msg("writer %d: %d acknowledged, %d stored", w[i].me, (int)acknowledged, (int)stored);
            w[i].pid = -1;
        }
        if (round >= rounds)
            continue;
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        w[i].me = me++;
        w[i].pid = fork();
        if (w[i].pid == 0) {
            close(pipes[0]);
            write_for_ever(w[i].me, pipes[1]);
        }
        close(pipes[1]);
        w[i].in = pipes[0];
    }
    int64_t sum = 0;
    for (int i = 0; i < me; i++) {
        char cell[32];
        snprintf(cell, sizeof cell, "w%d", i);
        sum += number(s, cell);
    }
    assert_int_equal(number(s, "sum"), sum); /* both documents of every commit, or neither */
    print_message("# %d writers killed, %d commits stored\n", me, (int)sum);
    sound(s);
    stet_space_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_count),
        cmocka_unit_test(eight_count),
        cmocka_unit_test(killed_at_random),
    };
    return cmocka_run_group_tests_name("memory crash", tests, NULL, NULL);
}
