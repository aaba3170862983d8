/* exec_local.c - commands under a supervisor that outlives its client. */

#include "../expect.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/file.h"
#include "os/sys.h"
#include "process/local.h"

static char cwd[4096];
static stet_local *l;

static void locate(void) {
    char path[4200];
    snprintf(path, sizeof path, "%s/stet-supervise", getenv("STET_BUILD"));
    setenv("STET_SUPERVISE", path, 1);
    assert_non_null(getcwd(cwd, sizeof cwd));
}

static stet_hash key_of(const char *text) {
    return stet_hash_of(text, strlen(text));
}

static stet_task *start_with(const char *script, const stet_local_request *more) {
    const char *argv[] = {"sh", "-c", script, NULL}, *envp[] = {"PATH=/usr/bin:/bin", "X=1", NULL};
    stet_local_request r = more ? *more : (stet_local_request){0};
    r.key = key_of(script);
    r.node = "n";
    r.argv = r.argv ? r.argv : argv;
    r.envp = envp;
    r.cwd = cwd;
    stet_task *t;
    OK(stet_local_start(l, &r, &t, &err));
    stet_task_set_data(t, t);
    return t;
}

static stet_task *wait_one(void) {
    for (int i = 0; i < 1000; i++) {
        stet_task *t = stet_local_next(l);
        if (t)
            return t;
        struct pollfd p = {stet_local_fd(l), POLLIN, 0};
        poll(&p, 1, 30);
    }
    fail_msg("no command ended");
    return NULL;
}

static void output_is(const stet_task *t, bool error, const char *want) {
    stet_buf b = STET_BUF(0);
    stet_task_output(t, error, 1000, &b);
    assert_string_equal(stet_buf_cstr(&b), want);
    stet_buf_release(&b);
}

static void ends_and_streams(void **state) {
    (void)state;
    OK(stet_local_open("exec1", &l, &err));
    assert_null(stet_local_next(l));
    start_with("echo out; echo err >&2; echo $X; exit 3", NULL);
    stet_task *t = wait_one();
    const stet_task_end *e = stet_task_exit(t);
    assert_int_equal(e->state, STET_TASK_ENDED);
    assert_int_equal(e->exit.code, 3);
    assert_false(e->exit.signalled);
    assert_true(e->ended_ns >= e->started_ns);
    output_is(t, false, "out\n1\n");
    output_is(t, true, "err\n");
    stet_local_collected(l, t);
    t = start_with("kill -9 $$", NULL);
    assert_ptr_equal(wait_one(), t);
    assert_true(stet_task_exit(t)->exit.signalled);
    assert_int_equal(stet_task_exit(t)->exit.code, 9);
    stet_local_collected(l, t);
    t = start_with("cat", &(stet_local_request){.input = "given", .input_len = 5});
    wait_one();
    output_is(t, false, "given");
    stet_local_collected(l, t);
    const char *missing[] = {"no-such-program", NULL};
    t = start_with("x", &(stet_local_request){.argv = missing});
    wait_one();
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_REFUSED);
    assert_int_equal(stet_task_exit(t)->status, STET_NOT_FOUND);
    assert_non_null(strstr(stet_task_exit(t)->message, "no-such-program"));
    stet_local_collected(l, t);
    assert_int_equal(stet_local_running(l), 0);
    stet_local_close(l);
    stet_names names = {0};
    OK(stet_file_list("exec1", &names, &err));
    assert_int_equal(names.len, 0); /* a drive that ended well leaves nothing */
    stet_names_release(&names);
}

static void many_at_once(void **state) {
    (void)state;
    OK(stet_local_open("exec2", &l, &err));
    char script[64];
    for (int i = 0; i < 40; i++) {
        snprintf(script, sizeof script, "exit %d", i);
        start_with(script, NULL);
    }
    assert_int_equal(stet_local_running(l), 40);
    int sum = 0;
    for (int i = 0; i < 40; i++) {
        stet_task *t = wait_one();
        sum += stet_task_exit(t)->exit.code;
        stet_local_collected(l, t);
    }
    assert_int_equal(sum, 780);
    stet_local_close(l);
}

static void time_and_cancelling(void **state) {
    (void)state;
    OK(stet_local_open("exec3", &l, &err));
    /* Its children are in its group and go too. */
    stet_task *t = start_with("sleep 100 & echo $! > child; wait", &(stet_local_request){.timeout_ms = 200});
    wait_one();
    assert_true(stet_task_exit(t)->timed_out);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("child", 0, &b, &err));
    stet_clock_sleep_ms(50);
    stet_proc_id id;
    stet_error none = STET_ERROR_INIT;
    if (stet_proc_identify(atol(b.data), &id, &none) == STET_OK)
        assert_false(stet_proc_alive(id));
    stet_error_clear(&none);
    stet_buf_release(&b);
    stet_local_collected(l, t);
    t = start_with("trap '' TERM; while :; do sleep 0.01; done", NULL);
    stet_clock_sleep_ms(100);
    stet_local_cancel_all(l, 100);
    wait_one();
    assert_true(stet_task_exit(t)->exit.signalled);
    assert_int_equal(stet_task_exit(t)->exit.code, SIGKILL);
    assert_false(stet_task_exit(t)->timed_out);
    stet_local_collected(l, t);
    stet_local_close(l);
}

/* A client that is killed: a child of this test. */
static void client_killed(const char *dir, const char *script, int after_ms) {
    pid_t pid = fork();
    if (pid == 0) {
        stet_task *t;
        const char *argv[] = {"sh", "-c", script, NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
        stet_local_request r = {.key = key_of(script), .node = "n", .argv = argv, .envp = envp, .cwd = cwd};
        if (stet_local_open(dir, &l, NULL) != STET_OK || stet_local_start(l, &r, &t, NULL) != STET_OK)
            _exit(1);
        stet_clock_sleep_ms(after_ms);
        raise(SIGKILL);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
}

static void found_again_while_it_runs(void **state) {
    (void)state;
    const char *script = "sleep 0.5; echo once >> ran; exit 7";
    client_killed("exec4", script, 50);
    OK(stet_local_open("exec4", &l, &err));
    assert_true(stet_local_adopted(l));
    stet_task *t = stet_local_find(l, key_of(script));
    assert_non_null(t);
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_RUNNING);
    const char *none[] = {NULL};
    assert_ptr_equal(stet_local_in_the_way(l, "n", none, NULL), t);
    assert_null(stet_local_in_the_way(l, "n", none, t));
    assert_null(stet_local_in_the_way(l, "m", none, NULL));
    assert_null(stet_local_find(l, key_of("other")));
    stet_task_set_data(t, t);
    assert_ptr_equal(wait_one(), t);
    assert_int_equal(stet_task_exit(t)->exit.code, 7);
    stet_local_collected(l, t);
    assert_null(stet_local_find(l, key_of(script)));
    stet_local_close(l);
    stet_buf b = STET_BUF(0);
    OK(stet_file_read("ran", 0, &b, &err));
    assert_string_equal(b.data, "once\n");
    stet_buf_release(&b);
    OK(stet_local_open("exec4", &l, &err));
    assert_null(stet_local_find(l, key_of(script)));
    stet_local_close(l);
}

static void found_again_after_it_ended(void **state) {
    (void)state;
    const char *script = "echo text; exit 5";
    client_killed("exec5", script, 200);
    stet_clock_sleep_ms(100);
    OK(stet_local_open("exec5", &l, &err));
    stet_task *t = stet_local_find(l, key_of(script));
    assert_non_null(t);
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_ENDED);
    assert_int_equal(stet_task_exit(t)->exit.code, 5);
    output_is(t, false, "text\n");
    stet_local_close(l); /* not collected: it stays */
    OK(stet_local_open("exec5", &l, &err));
    t = stet_local_find(l, key_of(script));
    assert_non_null(t);
    stet_local_collected(l, t);
    stet_local_close(l);
    stet_names names = {0};
    OK(stet_file_list("exec5", &names, &err));
    assert_int_equal(names.len, 0);
    stet_names_release(&names);
}

static void a_supervisor_that_was_killed(void **state) {
    (void)state;
    OK(stet_local_open("exec6", &l, &err));
    stet_task *t = start_with("echo $PPID > super; echo $$ > pid; sleep 100", NULL);
    stet_buf b = STET_BUF(0);
    for (int i = 0; i < 100 && (b.len == 0 || !stet_file_exists("pid")); i++) {
        stet_clock_sleep_ms(20);
        stet_buf_clear(&b);
        if (stet_file_read("super", 0, &b, NULL) != STET_OK)
            stet_buf_clear(&b);
    }
    stet_clock_sleep_ms(50);
    stet_local_next(l);
    kill(atoi(stet_buf_cstr(&b)), SIGKILL);
    assert_ptr_equal(wait_one(), t);
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_LOST);
    stet_buf_clear(&b);
    OK(stet_file_read("pid", 0, &b, &err));
    stet_clock_sleep_ms(50);
    stet_proc_id id;
    stet_error none = STET_ERROR_INIT;
    if (stet_proc_identify(atol(b.data), &id, &none) == STET_OK)
        assert_false(stet_proc_alive(id)); /* ended with its group */
    stet_error_clear(&none);
    stet_local_collected(l, t);
    t = start_with("exit 0", NULL); /* and another supervisor takes over */
    wait_one();
    assert_int_equal(stet_task_exit(t)->exit.code, 0);
    stet_local_collected(l, t);
    stet_local_close(l);
    stet_buf_release(&b);
}

/* Whoever writes the same files finds what writes them, whatever the node is called. */
static void found_by_what_it_writes(void **state) {
    (void)state;
    static const char *const written[] = {"out/a", "dir", "line\nbreak%", NULL};
    pid_t pid = fork();
    if (pid == 0) {
        const char *argv[] = {"sh", "-c", "sleep 100", NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
        stet_local_request r = {
            .key = key_of("w"), .node = "n", .argv = argv, .envp = envp, .cwd = cwd, .outputs = written};
        stet_task *t;
        if (stet_local_open("exec8", &l, NULL) != STET_OK || stet_local_start(l, &r, &t, NULL) != STET_OK)
            _exit(1);
        while (!stet_local_begun(l, t))
            stet_clock_sleep_ms(1);
        raise(SIGKILL);
    }
    waitpid(pid, NULL, 0);
    OK(stet_local_open("exec8", &l, &err));
    static const struct {
        const char *path;
        bool found;
    } table[] = {
        {"out/a", true},           {"out", true}, {"out/a/b", true},      {"out/ab", false},      {"dir/x", true},
        {"dirx", false},           {"di", false}, {"line\nbreak%", true}, {"line\nbreak", false}, {"line", false},
        {"line%0Abreak%25", false}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *paths[] = {"other", table[i].path, NULL};
        bool found = stet_local_in_the_way(l, "m", paths, NULL) != NULL;
        if (found != table[i].found)
            fail_msg("%s: %d", table[i].path, found);
    }
    const char *paths[] = {"dir", NULL};
    stet_task *t = stet_local_in_the_way(l, "m", paths, NULL);
    stet_task_set_data(t, t);
    stet_local_cancel(l, t, 0); /* also if it is so young that its process is not known yet */
    assert_ptr_equal(wait_one(), t);
    assert_true(stet_task_exit(t)->cancelled);
    stet_local_collected(l, t);
    stet_local_close(l);
}

/* What a client asked for in its turn does not begin in that of the next. */
static void by_turns(void **state) {
    (void)state;
    OK(stet_file_mkdirs("exec9", 0755, &err));
    OK(stet_local_open("exec9", &l, &err));
    OK(stet_local_turn(l, &err));
    stet_task *t = start_with("echo 1", &(stet_local_request){.in_turn = true});
    wait_one();
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_ENDED);
    stet_local_collected(l, t);
    stet_local *other;
    OK(stet_local_open("exec9", &other, &err));
    OK(stet_local_turn(other, &err));
    t = start_with("echo late > late", &(stet_local_request){.in_turn = true});
    wait_one();
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_REFUSED);
    assert_true(stet_task_exit(t)->cancelled);
    assert_false(stet_file_exists("late"));
    OK(stet_local_look(other, &err));
    assert_null(stet_local_find(other, key_of("echo late > late"))); /* it was never begun */
    stet_local_collected(l, t);
    OK(stet_local_turn(l, &err)); /* and it is its turn again */
    t = start_with("echo again", &(stet_local_request){.in_turn = true});
    wait_one();
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_ENDED);
    stet_local_collected(l, t);
    stet_local_close(other);
    stet_local_close(l);
}

/* A supervisor without a client of ours: the other end of its socket. */
static int begin_supervisor(const char *dir) {
    int pair[2];
    stet_proc p;
    char *program = stet_supervisor_path();
    const char *argv[] = {program, dir, NULL};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    stet_proc_opts o = {.argv = argv, .stdin_fd = pair[1], .stdout_fd = -1, .stderr_fd = -1, .new_session = true};
    OK(stet_proc_spawn(&o, &p, &err));
    if (p.pidfd >= 0)
        close(p.pidfd);
    close(pair[1]);
    stet_free(program);
    return pair[0];
}

static void is_ready(int fd) {
    char text[2];
    assert_int_equal(recv(fd, text, 2, MSG_WAITALL), 2);
    assert_memory_equal(text, "R\n", 2);
}

/* Whoever looks asks whether a supervisor lives, and then reads its journal: this one begins in between. */
static int meanwhile = -1;
static stet_sys_action begin_meanwhile(stet_sys_fault *fault) {
    if (meanwhile < 0 && fault->call == STET_SYS_OPEN && fault->path && strstr(fault->path, "drive.1/journal")) {
        stet_sys_hook = NULL;
        meanwhile = begin_supervisor("exec12/drive.1");
        is_ready(meanwhile);
    }
    return STET_SYS_GO;
}

static void a_drive_that_only_begins_is_not_dead(void **state) {
    (void)state;
    OK(stet_file_mkdirs("exec12/drive.1", 0755, &err));
    stet_sys_hook = begin_meanwhile;
    OK(stet_local_open("exec12", &l, &err));
    stet_sys_hook = NULL;
    assert_true(meanwhile >= 0);
    stet_local_close(l);
    assert_true(stet_file_exists("exec12/drive.1/journal"));
    close(meanwhile);
}

/* Whoever asks whether it lives has its lock for a moment: it begins nevertheless. */
static void a_supervisor_waits_for_those_who_ask(void **state) {
    (void)state;
    stet_lock *lock;
    OK(stet_file_mkdirs("exec13/drive.1", 0755, &err));
    OK(stet_lock_open("exec13/drive.1/alive", STET_LOCK_PLAIN, &lock, &err));
    OK(stet_lock_take(lock, STET_LOCK_SHARED, 0, &err));
    int fd = begin_supervisor("exec13/drive.1");
    stet_clock_sleep_ms(200);
    stet_lock_close(lock);
    is_ready(fd);
    close(fd);
}

/* A command that has ended and that nobody has collected is found by who started it, too, as by any other. */
static void found_again_by_its_own_client(void **state) {
    (void)state;
    const char *notes[] = {"launched 12", NULL};
    OK(stet_file_mkdirs("exec14", 0755, &err));
    OK(stet_local_open("exec14", &l, &err));
    stet_task *t = start_with("echo 1", &(stet_local_request){.notes = notes});
    assert_null(stet_local_find(l, key_of("echo 1")));
    assert_ptr_equal(wait_one(), t);
    assert_null(stet_local_find(l, key_of("echo 1"))); /* somebody is at it */
    stet_task_set_data(t, NULL);
    assert_ptr_equal(stet_local_find(l, key_of("echo 1")), t);
    assert_string_equal(stet_task_note(t, 0), "launched 12");
    stet_task_set_data(t, t);
    assert_ptr_equal(wait_one(), t); /* it is told again */
    stet_task_set_data(t, NULL);
    const char *none[] = {NULL};
    stet_local_discard(l, "other", none);
    assert_ptr_equal(stet_local_find(l, key_of("echo 1")), t);
    stet_local_discard(l, "n", none);
    assert_null(stet_local_find(l, key_of("echo 1")));
    stet_local_close(l);
}

/* What the client said of a command is there for whoever finds it later, and for nobody else's. */
static void notes_stay(void **state) {
    (void)state;
    enum { MANY = 5000 };
    static const char *many[MANY + 1];
    static char texts[MANY][200];
    for (int i = 0; i < MANY; i++) {
        snprintf(texts[i], sizeof texts[i], "note %d %0150d", i, i);
        many[i] = texts[i];
    }
    const char *few[] = {"launched 12", "input 1 2 3 4 a%20b c", NULL};
    OK(stet_file_mkdirs("exec11", 0755, &err));
    OK(stet_local_open("exec11", &l, &err));
    start_with("sleep 0.3; echo few", &(stet_local_request){.notes = few});
    stet_task *t = start_with("sleep 0.3; echo many", &(stet_local_request){.notes = many});
    start_with("sleep 0.3; echo none", NULL);
    while (!stet_local_begun(l, t))
        stet_clock_sleep_ms(1);
    stet_local_close(l);
    OK(stet_local_open("exec11", &l, &err));
    t = stet_local_find(l, key_of("sleep 0.3; echo few"));
    assert_non_null(t);
    assert_string_equal(stet_task_note(t, 0), few[0]);
    assert_string_equal(stet_task_note(t, 1), few[1]);
    assert_null(stet_task_note(t, 2));
    stet_task_set_data(t, t);
    t = stet_local_find(l, key_of("sleep 0.3; echo many"));
    assert_non_null(t);
    for (size_t i = 0; i < MANY; i++)
        assert_string_equal(stet_task_note(t, i), many[i]);
    assert_null(stet_task_note(t, MANY));
    stet_task_set_data(t, t);
    for (int i = 0; i < 2; i++)
        stet_local_collected(l, wait_one());
    stet_local_close(l);
}

/* One that was stopped or failed has ended when all that it started has: a lock of the kernel tells. */
static void whole_families(void **state) {
    (void)state;
    static const char *const ways[] = {
        "sleep 100", "timeout 100 sleep 100", "setsid -w sleep 100", "(sleep 100 &) ; sleep 100",
        "timeout 100 sh -c 'trap \"\" TERM; sleep 100; sleep 100' >/dev/null 2>&1 </dev/null"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int kind = 0; kind < 4; kind++) { /* cancelled, killed, failed, its supervisor killed */
            char script[400];
            OK(stet_local_open("exec10", &l, &err));
            snprintf(script, sizeof script, "exec 9>family; flock -n 9 || exit 9; echo $PPID > super.new; %s %s",
                     kind == 2 ? "mv super.new super;" : "", kind == 2 ? "" : "mv super.new super;");
            size_t len = strlen(script);
            snprintf(script + len, sizeof script - len, kind == 2 ? "{ %s ; } & sleep 0.05; exit 3" : "%s; exit 4",
                     ways[i]);
            stet_task *t = start_with(script, NULL);
            stet_buf b = STET_BUF(0);
            while (stet_file_read("super", 0, &b, NULL) != STET_OK)
                stet_clock_sleep_ms(5);
            stet_clock_sleep_ms(40);
            if (kind == 0)
                stet_local_cancel(l, t, 20);
            else if (kind == 1)
                start_with("kill -9 $(ps -o pid= --ppid $PPID | grep -vw $$ | head -1)", NULL);
            else if (kind == 3)
                kill(atoi(b.data), SIGKILL);
            stet_task *ended = wait_one();
            if (kind == 1 && ended != t)
                ended = wait_one();
            assert_ptr_equal(ended, t);
            assert_int_equal(stet_task_exit(t)->state, kind == 3 ? STET_TASK_LOST : STET_TASK_ENDED);
            if (kind == 2)
                assert_int_equal(stet_task_exit(t)->exit.code, 3);
            if (system("exec 9>family; flock -n 9") != 0)
                fail_msg("way %zu, kind %d: somebody is left", i, kind);
            unlink("super");
            stet_buf_release(&b);
            stet_local_close(l);
            OK(stet_file_remove_tree("exec10", &err));
        }
}

static void damaged_journals(void **state) {
    (void)state;
    OK(stet_file_mkdirs("exec7/drive.1.1.x", 0755, &err));
    const char *text = "R\nB 1 zz 5 n\nB x\nE 99 0 0 0 1\nS\n\n\xFF\xFE garbage\nB 2 "
                       "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9 5 a b\nE 2 0 0 0";
    OK(stet_file_replace("exec7/drive.1.1.x/journal", text, strlen(text), 0644, &err));
    OK(stet_local_open("exec7", &l, &err));
    stet_task *t = stet_local_find(l, key_of("0"));
    assert_non_null(t);
    assert_int_equal(stet_task_exit(t)->state, STET_TASK_LOST); /* a torn line says nothing */
    stet_local_collected(l, t);
    stet_local_close(l);
}

int main(void) {
    locate();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_and_streams),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(time_and_cancelling),
        cmocka_unit_test(found_again_while_it_runs),
        cmocka_unit_test(found_again_after_it_ended),
        cmocka_unit_test(a_supervisor_that_was_killed),
        cmocka_unit_test(damaged_journals),
        cmocka_unit_test(found_by_what_it_writes),
        cmocka_unit_test(by_turns),
        cmocka_unit_test(a_drive_that_only_begins_is_not_dead),
        cmocka_unit_test(a_supervisor_waits_for_those_who_ask),
        cmocka_unit_test(found_again_by_its_own_client),
        cmocka_unit_test(notes_stay),
        cmocka_unit_test(whole_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
