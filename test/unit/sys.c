/* sys.c - the hook around system calls, and the faults that tests inject there. */

#include "../expect.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"

static void names_are_unique(void **state) {
    (void)state;
    for (int i = 0; i < STET_SYS_CALLS; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(stet_sys_call_name((stet_sys_call)i), stet_sys_call_name((stet_sys_call)j));
    assert_string_equal(stet_sys_call_name(STET_SYS_FSYNC), "fsync");
    assert_string_equal(stet_sys_call_name(STET_SYS_SQL), "sql");
}

static void without_a_hook_nothing_is_asked(void **state) {
    (void)state;
    assert_true(stet_sys_hook == NULL);
    int error_number = 5;
    assert_int_equal(stet_sys_ask(STET_SYS_OPEN, "x", &error_number), STET_SYS_GO);
    int fd = stet_sys_open("plain", O_RDWR | O_CREAT, 0644);
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(stet_sys_close(fd), 0);
    assert_int_equal(stet_sys_open("absent", O_RDONLY, 0), -1);
    assert_int_equal(errno, ENOENT);
}

static void the_nth_call_fails(void **state) {
    (void)state;
    faults_arm(STET_SYS_OPEN, 2, STET_SYS_FAIL, EMFILE);
    int a = stet_sys_open("plain", O_RDONLY, 0);
    assert_true(a >= 0);
    assert_false(faults_fired());
    assert_int_equal(stet_sys_open("plain", O_RDONLY, 0), -1);
    assert_int_equal(errno, EMFILE);
    assert_true(faults_fired());
    int b = stet_sys_open("plain", O_RDONLY, 0);
    assert_true(b >= 0);
    assert_int_equal(faults_count(), 3);
    faults_arm(STET_SYS_OPEN, 2, STET_SYS_FAIL, EMFILE);
    faults_sticky();
    int c = stet_sys_open("plain", O_RDONLY, 0);
    assert_true(c >= 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stet_sys_open("plain", O_RDONLY, 0), -1);
    faults_disarm();
    close(a);
    close(b);
    close(c);
}

static void paths_select(void **state) {
    (void)state;
    int other = open("other-file", O_RDWR | O_CREAT, 0644), this = open("this-file", O_RDWR | O_CREAT, 0644);
    faults_arm_any(1, STET_SYS_FAIL, ENOSPC);
    faults_path("this-");
    faults_sticky();
    struct stat st;
    assert_int_equal(stet_sys_stat("other-file", &st), 0);
    assert_int_equal(stet_sys_stat("this-file", &st), -1);
    assert_int_equal(stet_sys_write(other, "x", 1), 1); /* by descriptor too */
    assert_int_equal(stet_sys_write(this, "x", 1), -1);
    assert_int_equal(errno, ENOSPC);
    faults_disarm();
    close(other);
    close(this);
}

static void short_and_interrupted_transfers(void **state) {
    (void)state;
    int fd = open("transfer", O_RDWR | O_CREAT | O_TRUNC, 0644);
    faults_arm(STET_SYS_WRITE, 1, STET_SYS_SHORT, 0);
    assert_int_equal(stet_sys_write(fd, "12345678", 8), 4);
    faults_arm(STET_SYS_WRITE, 1, STET_SYS_SHORT, 0);
    assert_int_equal(stet_sys_write(fd, "5", 1), 1); /* never nothing */
    faults_arm_any(1, STET_SYS_EINTR, 0);
    faults_sticky();
    assert_int_equal(stet_sys_write(fd, "678", 3), 3); /* retried inside */
    assert_int_equal(stet_sys_fsync(fd), 0);
    assert_int_equal(stet_sys_ftruncate(fd, 8), 0);
    char bytes[16];
    assert_int_equal(stet_sys_pread(fd, bytes, 16, 0), 8);
    assert_memory_equal(bytes, "12345678", 8);
    int again = stet_sys_open("transfer", O_RDONLY, 0);
    assert_true(again >= 0);
    assert_int_equal(stet_sys_close(again), 0);
    faults_arm(STET_SYS_READ, 1, STET_SYS_SHORT, 0);
    assert_int_equal(stet_sys_pread(fd, bytes, 8, 0), 4);
    faults_disarm();
    close(fd);
}

static void a_failed_close_closes(void **state) {
    (void)state;
    int before = faults_descriptors();
    int fd = stet_sys_open("plain", O_RDONLY, 0);
    faults_arm(STET_SYS_CLOSE, 1, STET_SYS_FAIL, EIO);
    assert_int_equal(stet_sys_close(fd), -1);
    assert_int_equal(errno, EIO);
    faults_disarm();
    assert_int_equal(faults_descriptors(), before);
}

static void every_call_can_fail(void **state) {
    (void)state;
    struct stat st;
    struct flock lock = {.l_type = F_WRLCK, .l_len = 1};
    char bytes[4];
    int fd = open("all", O_RDWR | O_CREAT, 0644);
    DIR *dir = opendir(".");
    faults_arm_any(1, STET_SYS_FAIL, EXFULL);
    faults_sticky();
#define REFUSED(call)                                                                                                  \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        assert_int_equal((call), -1);                                                                                  \
        assert_int_equal(errno, EXFULL);                                                                               \
    } while (0)
    REFUSED(stet_sys_open("all", O_RDONLY, 0));
    REFUSED(stet_sys_openat(AT_FDCWD, "all", O_RDONLY, 0));
    REFUSED(stet_sys_read(fd, bytes, 4));
    REFUSED(stet_sys_pread(fd, bytes, 4, 0));
    REFUSED(stet_sys_write(fd, "x", 1));
    REFUSED(stet_sys_pwrite(fd, "x", 1, 0));
    REFUSED(stet_sys_fsync(fd));
    REFUSED(stet_sys_fdatasync(fd));
    REFUSED(stet_sys_ftruncate(fd, 1));
    REFUSED(stet_sys_rename("all", "b"));
    REFUSED(stet_sys_rename_new("all", "b"));
    REFUSED(stet_sys_link("all", "b"));
    REFUSED(stet_sys_symlink("all", "b"));
    REFUSED(stet_sys_unlink("all"));
    REFUSED(stet_sys_unlinkat(AT_FDCWD, "all", 0));
    REFUSED(stet_sys_mkdir("d", 0755));
    REFUSED(stet_sys_rmdir("d"));
    REFUSED(stet_sys_stat("all", &st));
    REFUSED(stet_sys_lstat("all", &st));
    REFUSED(stet_sys_fstat(fd, &st));
    REFUSED(stet_sys_chmod("all", 0600));
    REFUSED(stet_sys_fcntl_lock(fd, F_OFD_SETLK, &lock));
    assert_null(stet_sys_opendir("."));
    assert_int_equal(errno, EXFULL);
    assert_null(stet_sys_readdir(dir));
    assert_int_equal(errno, EXFULL);
    faults_disarm();
    assert_int_equal(access("all", F_OK), 0);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_not_equal(access("b", F_OK), 0);
    assert_int_not_equal(access("d", F_OK), 0);
    while (stet_sys_readdir(dir))
        ;
    assert_int_equal(errno, 0); /* the end is no failure */
    closedir(dir);
    close(fd);
}

static void killed_before_or_after(void **state) {
    (void)state;
    for (int after = 0; after < 2; after++) {
        unlink("killed");
        pid_t pid = fork();
        if (pid == 0) {
            faults_arm(STET_SYS_MKDIR, 1, after ? STET_SYS_KILL_AFTER : STET_SYS_KILL, 0);
            stet_sys_mkdir(after ? "killed-after" : "killed-before", 0755);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    assert_int_not_equal(access("killed-before", F_OK), 0);
    assert_int_equal(access("killed-after", F_OK), 0);
}

static void rename_new_never_replaces(void **state) {
    (void)state;
    close(open("from", O_RDWR | O_CREAT, 0644));
    close(open("taken", O_RDWR | O_CREAT, 0644));
    assert_int_equal(stet_sys_rename_new("from", "taken"), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(stet_sys_rename_new("from", "free"), 0);
    assert_int_not_equal(access("from", F_OK), 0);
    assert_int_equal(access("free", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(without_a_hook_nothing_is_asked),
        cmocka_unit_test(the_nth_call_fails),
        cmocka_unit_test(paths_select),
        cmocka_unit_test(short_and_interrupted_transfers),
        cmocka_unit_test(a_failed_close_closes),
        cmocka_unit_test(every_call_can_fail),
        cmocka_unit_test(killed_before_or_after),
        cmocka_unit_test(rename_new_never_replaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
