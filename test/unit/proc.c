/* proc.c - child processes: how they start, what they get, how they end; identity of processes and machine. */

#include "../expect.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "base/buf.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/proc.h"

/* Runs to the end with standard output in a file; returns the exit, and what was printed in `text`. */
static stet_proc_exit run(stet_proc_opts o, char text[4096]) {
    int fd = open("out", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    o.stdout_fd = fd;
    stet_proc p;
    stet_proc_exit e = {0};
    OK(stet_proc_spawn(&o, &p, &err));
    OK(stet_proc_wait(&p, 20000, &e, &err));
    assert_int_equal(p.pidfd, -1);
    ssize_t n = pread(fd, text, 4095, 0);
    assert_true(n >= 0);
    text[n] = 0;
    close(fd);
    return e;
}

#define OPTS(...) .argv = (const char *const[]){__VA_ARGS__, NULL}, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1

static void exits_and_output(void **state) {
    (void)state;
    char text[4096];
    int before = faults_descriptors();
    stet_proc_exit e = run((stet_proc_opts){OPTS("sh", "-c", "echo hi; cat; exit 3")}, text);
    assert_false(e.signalled);
    assert_int_equal(e.code, 3);
    assert_string_equal(text, "hi\n"); /* standard input was /dev/null */
    e = run((stet_proc_opts){OPTS("sh", "-c", "kill -9 $$")}, text);
    assert_true(e.signalled);
    assert_int_equal(e.code, SIGKILL);
    e = run((stet_proc_opts){OPTS("/bin/echo", "a b", "$x", ";")}, text); /* no shell */
    assert_string_equal(text, "a b $x ;\n");
    assert_int_equal(faults_descriptors(), before);
}

static void environment_and_directory(void **state) {
    (void)state;
    char text[4096];
    const char *env[] = {"A=1", "PATH=/usr/bin:/bin", NULL};
    OK(stet_file_mkdirs("some dir", 0755, &err));
    run((stet_proc_opts){OPTS("env"), .envp = env}, text);
    assert_string_equal(text, "A=1\nPATH=/usr/bin:/bin\n");
    run((stet_proc_opts){OPTS("pwd"), .cwd = "some dir"}, text);
    assert_non_null(strstr(text, "/some dir\n"));
    /* PATH is looked up by the child's environment, relative entries from its directory. */
    int fd = open("some dir/tool", O_WRONLY | O_CREAT, 0755);
    assert_true(write(fd, "echo tool $0\n", 13) == 13); /* no "#!": sh runs it */
    close(fd);
    const char *here[] = {"PATH=/nowhere::/bin", NULL};
    stet_proc_exit e = run((stet_proc_opts){OPTS("tool"), .envp = here, .cwd = "some dir"}, text);
    assert_int_equal(e.code, 0);
    assert_string_equal(text, "tool ./tool\n");
}

static void descriptors_are_not_inherited(void **state) {
    (void)state;
    char text[4096];
    int leak = open("/dev/null", O_RDONLY); /* not close-on-exec, above the standard ones */
    assert_true(leak > 2);
    int high = fcntl(leak, F_DUPFD, 200);
    run((stet_proc_opts){OPTS("sh", "-c", "ls /proc/self/fd | tr '\\n' ' '")}, text);
    assert_string_equal(text, "0 1 2 3 "); /* 3 is the listing's own */
    close(leak);
    close(high);
    /* Standard streams given in another order than their numbers, and one for two. */
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    stet_proc p;
    stet_proc_opts o = {OPTS("sh", "-c", "echo out; echo err >&2")};
    o.stdout_fd = o.stderr_fd = fds[1];
    OK(stet_proc_spawn(&o, &p, &err));
    close(fds[1]);
    ssize_t n = 0, got;
    while ((got = read(fds[0], text + n, 100)) > 0)
        n += got;
    close(fds[0]);
    assert_int_equal(n, 8);
    assert_memory_equal(text, "out\nerr\n", 8);
    OK(stet_proc_wait(&p, -1, NULL, &err));
    /* And swapped: what is standard output here is standard error there. */
    o = (stet_proc_opts){OPTS("sh", "-c", "echo x >&2")};
    o.stdout_fd = 2;
    o.stderr_fd = open("swapped", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    OK(stet_proc_spawn(&o, &p, &err));
    OK(stet_proc_wait(&p, -1, NULL, &err));
    close(o.stderr_fd);
    struct stat st;
    assert_int_equal(stat("swapped", &st), 0);
    assert_int_equal(st.st_size, 2);
}

static void what_cannot_start_says_so(void **state) {
    (void)state;
    stet_proc p;
    int before = faults_descriptors();
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("no-such-program-anywhere")}, &p, &err), STET_NOT_FOUND,
          "no-such-program-anywhere");
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("./absent")}, &p, &err), STET_NOT_FOUND, "./absent");
    close(open("plain", O_WRONLY | O_CREAT, 0644));
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("./plain")}, &p, &err), STET_DENIED, "./plain");
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS(".")}, &p, &err), STET_NOT_FOUND, ".");
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("./.")}, &p, &err), STET_DENIED, "./.");
    int fd = open("badinterp", O_WRONLY | O_CREAT, 0755);
    assert_true(write(fd, "#!/no/such/interpreter\n", 23) == 23);
    close(fd);
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("./badinterp")}, &p, &err), STET_NOT_FOUND, "interpreter");
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("true"), .cwd = "absent"}, &p, &err), STET_NOT_FOUND, "absent");
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("")}, &p, &err), STET_INVALID, "name");
    faults_arm(STET_SYS_SPAWN, 1, STET_SYS_FAIL, EAGAIN);
    FAILS(stet_proc_spawn(&(stet_proc_opts){OPTS("true")}, &p, &err), STET_IO, "true");
    faults_disarm();
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
    assert_int_equal(errno, ECHILD);
    assert_int_equal(faults_descriptors(), before);
}

static void waiting_and_killing(void **state) {
    (void)state;
    stet_proc p;
    stet_proc_exit e;
    OK(stet_proc_spawn(&(stet_proc_opts){OPTS("sleep", "100")}, &p, &err));
    assert_true(stet_proc_alive(p.id));
    assert_true(p.pidfd >= 0);
    FAILS(stet_proc_wait(&p, 30, &e, &err), STET_BUSY, "still running");
    FAILS(stet_proc_wait(&p, 0, &e, &err), STET_BUSY, "still running");
    stet_proc_kill(&p, SIGTERM);
    struct pollfd f = {.fd = p.pidfd, .events = POLLIN};
    assert_int_equal(poll(&f, 1, 5000), 1);
    assert_false(stet_proc_alive(p.id)); /* a zombie */
    OK(stet_proc_wait(&p, -1, &e, &err));
    assert_true(e.signalled && e.code == SIGTERM);
    FAILS(stet_proc_wait(&p, 100, &e, &err), STET_NOT_FOUND, "waited for already");
    stet_proc_kill(&p, SIGTERM); /* gone: nothing happens */

    /* Without a pidfd too. */
    OK(stet_proc_spawn(&(stet_proc_opts){OPTS("sleep", "100")}, &p, &err));
    close(p.pidfd);
    p.pidfd = -1;
    FAILS(stet_proc_wait(&p, 30, &e, &err), STET_BUSY, "still running");
    stet_proc_kill(&p, SIGKILL);
    OK(stet_proc_wait(&p, 5000, &e, &err));
    assert_int_equal(e.code, SIGKILL);
}

static void groups_end_together(void **state) {
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    stet_proc p;
    stet_proc_opts o = {OPTS("sh", "-c", "sleep 100 & sleep 100 & echo; wait"), .new_group = true};
    o.stdout_fd = fds[1];
    OK(stet_proc_spawn(&o, &p, &err));
    close(fds[1]);
    char c;
    assert_int_equal(read(fds[0], &c, 1), 1); /* its children run */
    assert_int_equal(getpgid((pid_t)p.id.pid), p.id.pid);
    stet_proc_kill(&p, SIGKILL);
    assert_int_equal(read(fds[0], &c, 1), 0); /* all who could write are gone */
    close(fds[0]);
    OK(stet_proc_wait(&p, 5000, NULL, &err));
    OK(stet_proc_spawn(&(stet_proc_opts){OPTS("sleep", "100"), .new_session = true}, &p, &err));
    assert_int_equal(getsid((pid_t)p.id.pid), p.id.pid);
    stet_proc_kill(&p, SIGKILL);
    OK(stet_proc_wait(&p, 5000, NULL, &err));
}

static void limits_hold(void **state) {
    (void)state;
    char text[4096];
    stet_proc_exit e =
        run((stet_proc_opts){OPTS("sh", "-c", "head -c 100000 /dev/zero > big"), .max_file_size = 1000}, text);
    assert_true(e.code != 0);
    struct stat st;
    assert_int_equal(stat("big", &st), 0);
    assert_true(st.st_size <= 1000);
    e = run((stet_proc_opts){OPTS("sh", "-c", "while :; do :; done"), .max_cpu_s = 1}, text);
    assert_true(e.signalled);
    e = run((stet_proc_opts){OPTS("/usr/bin/python3", "-c", "x = bytearray(1 << 30)"), .max_memory = 256 << 20}, text);
    assert_int_equal(e.code, 1); /* MemoryError */
    /* Ignored and blocked signals of ours are not the child's. */
    signal(SIGPIPE, SIG_IGN);
    sigset_t set, old;
    sigfillset(&set);
    sigprocmask(SIG_SETMASK, &set, &old);
    run((stet_proc_opts){OPTS("grep", "-E", "SigBlk|SigIgn", "/proc/self/status")}, text);
    sigprocmask(SIG_SETMASK, &old, NULL);
    signal(SIGPIPE, SIG_DFL);
    /* Signals 32 and 33 are the C library's own: it lets nobody change them, and whoever started us may have. */
    unsigned long long blocked, ignored, own = 3ull << 31;
    assert_int_equal(sscanf(text, "SigBlk:\t%llx\nSigIgn:\t%llx\n", &blocked, &ignored), 2);
    assert_int_equal(blocked & ~own, 0);
    assert_int_equal(ignored & ~own, 0);
}

static void identities(void **state) {
    (void)state;
    stet_proc_id self = stet_proc_self(), same, other;
    assert_int_equal(self.pid, getpid());
    assert_true(self.start > 0 && self.boot != 0);
    assert_true(stet_proc_alive(self));
    OK(stet_proc_identify(getpid(), &same, &err));
    assert_memory_equal(&same, &self, sizeof self);
    FAILS(stet_proc_identify(999999999, &other, &err), STET_NOT_FOUND, "999999999");
    FAILS(stet_proc_identify(-1, &other, &err), STET_NOT_FOUND, "-1");
    other = self;
    other.start++;
    assert_false(stet_proc_alive(other)); /* the pid was given to another */
    other = self;
    other.boot++;
    assert_false(stet_proc_alive(other)); /* of before the reboot, or of another machine */
    stet_value v = stet_proc_id_value(self);
    assert_true(stet_proc_id_of_value(v, &other));
    assert_memory_equal(&other, &self, sizeof self);
    stet_value_put(&v, "boot", stet_value_string("xyz"));
    assert_false(stet_proc_id_of_value(v, &other));
    stet_value_release(v);
    assert_false(stet_proc_id_of_value(stet_value_null(), &other));
    pid_t pid = fork();
    if (pid == 0) /* a forked child is another */
        _exit(stet_proc_self().pid == getpid() && stet_proc_alive(stet_proc_self()) ? 0 : 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void *wait_for_the_end(void *pipe) {
    char byte;
    while (read(*(int *)pipe, &byte, 1) > 0)
        ;
    return NULL;
}

/* Its files are open and its locks held as long as one of its threads is there, whatever became of the first. */
static void a_process_is_alive_until_its_last_thread_ends(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        close(ends[1]);
        if (pthread_create(&thread, NULL, wait_for_the_end, &ends[0]) != 0)
            _exit(1);
        pthread_exit(NULL);
    }
    close(ends[0]);
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (int i = 0; i < 2000; i++) { /* until its first thread is gone */
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[n] = 0;
        if (strstr(text, ") Z ") != NULL)
            break;
        stet_clock_sleep_ms(5);
    }
    assert_non_null(strstr(text, ") Z "));
    stet_proc_id id;
    OK(stet_proc_identify(pid, &id, &err));
    assert_true(stet_proc_alive(id));
    close(ends[1]);
    for (int i = 0; i < 2000 && stet_proc_alive(id); i++)
        stet_clock_sleep_ms(5);
    assert_false(stet_proc_alive(id)); /* not reaped yet: a zombie */
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void machine_ids(void **state) {
    (void)state;
    char a[40], b[40];
    OK(stet_machine_id("home/deep", a, &err));
    assert_int_equal(strlen(a), 32);
    OK(stet_machine_id("home/deep", b, &err));
    assert_string_equal(a, b);
    /* A copied home, under another host name: a new one. And one that is damaged. */
    static const char *const others[] = {"0123456789abcdef0123456789abcdef some-other-host\n", "", "junk", "\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        OK(stet_file_replace("home/deep/machine-id", others[i], strlen(others[i]), 0644, &err));
        OK(stet_machine_id("home/deep", b, &err));
        assert_string_not_equal(a, b);
        assert_int_equal(strspn(b, "0123456789abcdef"), 32);
    }
    /* Many at once agree. */
    OK(stet_file_remove_tree("home", &err));
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            char mine[40];
            _exit(stet_machine_id("home", mine, NULL) == STET_OK && write(fds[1], mine, 32) == 32 ? 0 : 1);
        }
    for (int i = 0; i < 8; i++) {
        int status;
        wait(&status);
        assert_int_equal(status, 0);
    }
    OK(stet_machine_id("home", a, &err));
    for (int i = 0; i < 8; i++) {
        assert_int_equal(read(fds[0], b, 32), 32);
        assert_memory_equal(a, b, 32);
    }
    close(fds[0]);
    close(fds[1]);
}

static void home_directories(void **state) {
    (void)state;
    char *dir;
    setenv("STET_HOME", "/a", 1);
    OK(stet_home_dir(&dir, &err));
    assert_string_equal(dir, "/a");
    stet_free(dir);
    setenv("STET_HOME", "relative", 1);
    FAILS(stet_home_dir(&dir, &err), STET_INVALID, "relative");
    unsetenv("STET_HOME");
    setenv("XDG_STATE_HOME", "/b", 1);
    OK(stet_home_dir(&dir, &err));
    assert_string_equal(dir, "/b/stet");
    stet_free(dir);
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/c", 1);
    OK(stet_home_dir(&dir, &err));
    assert_string_equal(dir, "/c/.local/state/stet");
    stet_free(dir);
    unsetenv("HOME");
    FAILS(stet_home_dir(&dir, &err), STET_INVALID, "STET_HOME");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exits_and_output),
        cmocka_unit_test(environment_and_directory),
        cmocka_unit_test(descriptors_are_not_inherited),
        cmocka_unit_test(what_cannot_start_says_so),
        cmocka_unit_test(waiting_and_killing),
        cmocka_unit_test(groups_end_together),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(identities),
        cmocka_unit_test(a_process_is_alive_until_its_last_thread_ends),
        cmocka_unit_test(machine_ids),
        cmocka_unit_test(home_directories),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
