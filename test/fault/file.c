/* file.c - each system call of each file operation fails, is cut short or interrupted, once or from then on.
 *
 * The operation is done or not done, no temporary file is left, and no descriptor is leaked.
 */

#include "../expect.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../faults.h"
#include "os/file.h"

#define OLD "the old content, which is there before"
#define NEW "the new content: longer than the old one, so that a torn write would show as neither of them"

static void put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static bool has(const char *path, const char *text) {
    char bytes[4096];
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return text == NULL;
    ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    return text && n == (ssize_t)strlen(text) && memcmp(bytes, text, (size_t)n) == 0;
}

/* One operation: how the world is before, the call, and whether it is as before or done. */
typedef struct operation {
    const char *name;
    void (*prepare)(void);
    stet_status (*call)(void);
    bool (*undone)(void);
    bool (*done)(void);
    bool half_allowed; /* may stop half way, as removing a tree does: then a second call ends it */
} operation;

static void old_file(void) {
    put("d/x", OLD);
}
static void no_file(void) {
    unlink("d/x");
}
static bool is_old(void) {
    return has("d/x", OLD);
}
static bool is_absent(void) {
    return has("d/x", NULL);
}
static bool is_new(void) {
    return has("d/x", NEW);
}
static bool is_appended(void) {
    return has("d/x", OLD NEW);
}
static bool is_absent_or_empty(void) {
    return has("d/x", NULL) || has("d/x", "");
}
static bool always(void) {
    return true;
}

static stet_status replace(void) {
    return stet_file_replace("d/x", NEW, strlen(NEW), 0644, &err);
}
static stet_status create(void) {
    return stet_file_create("d/x", NEW, strlen(NEW), 0644, &err);
}
static stet_status append(void) {
    return stet_file_append("d/x", NEW, strlen(NEW), true, &err);
}

static void no_dirs(void) {
    rmdir("m/a/b/c");
    rmdir("m/a/b");
    rmdir("m/a");
    rmdir("m");
}
static stet_status mkdirs(void) {
    return stet_file_mkdirs("m/a/b/c", 0755, &err);
}
static bool dirs_there(void) {
    return access("m/a/b/c", F_OK) == 0;
}

static void new_source(void) {
    put("source", NEW);
    unlink("d/x");
}
static stet_status copy_bytes(void) {
    return stet_file_copy("source", "d/x", 0644, false, NULL, &err);
}
static stet_status copy_link(void) {
    return stet_file_copy("source", "d/x", 0644, true, NULL, &err);
}

static void a_tree(void) {
    static const char *const dirs[] = {"tree", "tree/a", "tree/a/b", "tree/c"};
    for (size_t i = 0; i < 4; i++)
        mkdir(dirs[i], 0755);
    put("tree/a/f", "");
    put("tree/a/b/g", "");
    put("tree/h", "");
}
static stet_status remove_tree(void) {
    return stet_file_remove_tree("tree", &err);
}
static bool tree_is_gone(void) {
    return access("tree", F_OK) != 0;
}

static stet_status remove_file(void) {
    return stet_file_remove("d/x", &err);
}

static stet_status read_file(void) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, "before");
    stet_status status = stet_file_read("d/x", 0, &b, &err);
    assert_string_equal(stet_buf_cstr(&b), status == STET_OK ? "before" OLD : "before");
    stet_buf_release(&b);
    return status;
}
static stet_status list_dir(void) {
    stet_names names = {0};
    stet_status status = stet_file_list("d", &names, &err);
    assert_int_equal(names.len, status == STET_OK ? 1 : 0);
    stet_names_release(&names);
    return status;
}
static stet_status hash_file(void) {
    stet_hash h = {{0}};
    stet_status status = stet_file_hash("d/x", &h, NULL, &err);
    assert_true(stet_hash_equal(h, stet_hash_of(OLD, strlen(OLD))) == (status == STET_OK));
    return status;
}

static const operation operations[] = {
    {"replace", old_file, replace, is_old, is_new, false},
    {"replace where none was", no_file, replace, is_absent, is_new, false},
    {"create", no_file, create, is_absent, is_new, false},
    {"append", old_file, append, is_old, is_appended, false},
    {"append to a new one", no_file, append, is_absent_or_empty, is_new, false},
    {"mkdirs", no_dirs, mkdirs, always, dirs_there, true},
    {"copy", new_source, copy_bytes, is_absent, is_new, false},
    {"copy or link", new_source, copy_link, is_absent, is_new, false},
    {"remove a tree", a_tree, remove_tree, always, tree_is_gone, true},
    {"remove", old_file, remove_file, is_old, is_absent, false},
    {"read", old_file, read_file, always, always, false},
    {"list", old_file, list_dir, always, always, false},
    {"hash", old_file, hash_file, always, always, false},
};

typedef struct fault {
    const char *name;
    stet_sys_action action;
    int error_number;
    bool sticky;
} fault;

static const fault faults[] = {
    {"EIO", STET_SYS_FAIL, EIO, false},
    {"ENOSPC", STET_SYS_FAIL, ENOSPC, false},
    {"EACCES", STET_SYS_FAIL, EACCES, false},
    {"EIO from then on", STET_SYS_FAIL, EIO, true},
    {"ENOSPC from then on", STET_SYS_FAIL, ENOSPC, true},
    {"short", STET_SYS_SHORT, 0, false},
    {"short from then on", STET_SYS_SHORT, 0, true},
    {"interrupted", STET_SYS_EINTR, 0, false},
    {"interrupted from then on", STET_SYS_EINTR, 0, true},
};

static void try(const operation *op, const fault *f, int n, bool *fired) {
    op->prepare();
    int before = faults_descriptors();
    faults_arm_any(n, f->action, f->error_number);
    if (f->sticky)
        faults_sticky();
    stet_status status = op->call();
    faults_disarm();
    *fired = faults_fired();
#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("%s, call %d, %s: %s is not so (status %s: %s)", op->name, n, f->name, #condition,                \
                     stet_status_name(status), err.message);                                                           \
    } while (0)
    MUST(faults_descriptors() == before);
    MUST(faults_names(".", ".stet-temp") == 0 && faults_names("d", ".stet-temp") == 0);
    if (f->action != STET_SYS_FAIL || !*fired)
        MUST(status == STET_OK);
    MUST(status == err.status);
    if (status == STET_OK) {
        MUST(op->done());
    } else {
        MUST(err.message[0]);
        /* Once the name is in place, a directory that can't be synced is reported, though the new content is there. */
        MUST(op->undone() || op->done());
        MUST(status == STET_IO || status == STET_NOT_FOUND);
    }
    stet_error_clear(&err);
    if (op->half_allowed) {
        status = op->call();
        MUST(status == STET_OK && op->done());
    }
}

static void each_call_of_each_operation(void **state) {
    (void)state;
    assert_int_equal(mkdir("d", 0755), 0);
    int runs = 0;
    for (size_t o = 0; o < sizeof operations / sizeof *operations; o++)
        for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
            bool fired = true;
            for (int n = 1; fired; n++, runs++)
                try(&operations[o], &faults[f], n, &fired);
        }
    print_message("# %d runs\n", runs);
}

/* A write that is cut short and then fails, by the kernel itself: the limit of a file's size falls inside the record.
 */
static void a_record_that_does_not_fit(void **state) {
    (void)state;
    struct rlimit old, small = {.rlim_cur = strlen(OLD) + 10};
    put("fit", OLD);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    stet_status status = stet_file_append("fit", NEW, strlen(NEW), true, &err);
    stet_error_clear(&err);
    stet_status second = stet_file_replace("fit", NEW, strlen(NEW), 0644, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, STET_IO);
    assert_int_equal(second, STET_IO);
    stet_error_clear(&err);
    assert_true(has("fit", OLD));
    assert_int_equal(faults_names(".", ".stet-temp"), 0);
}

/* File systems between which the kernel does not copy: the bytes go through this process, whatever fails then. */
static void a_copy_by_hand(void **state) {
    (void)state;
    enum { SIZE = 600 * 1024 + 7 };
    char *bytes = malloc(SIZE), *copied = malloc(SIZE + 1);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 + i / 251);
    FILE *f = fopen("large", "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, SIZE, f), SIZE);
    fclose(f);
    static const int refusals[] = {EXDEV, EINVAL, ENOSYS, EOPNOTSUPP};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        faults_arm(STET_SYS_WRITE, 1, STET_SYS_FAIL, refusals[i]);
        OK(stet_file_copy("large", "by-hand", 0644, false, NULL, &err));
        faults_disarm();
        assert_true(faults_fired());
        assert_true(faults_count() > 2); /* the refusal, and a write for each chunk */
        f = fopen("by-hand", "r");
        assert_non_null(f);
        assert_int_equal(fread(copied, 1, SIZE + 1, f), SIZE);
        fclose(f);
        assert_memory_equal(bytes, copied, SIZE);
        unlink("by-hand");
    }
    /* Refused for good: the kernel's copy first, then the first write by hand. Nothing is left of the copy. */
    faults_arm(STET_SYS_WRITE, 1, STET_SYS_FAIL, EXDEV);
    faults_sticky();
    assert_int_equal(stet_file_copy("large", "by-hand", 0644, false, NULL, &err), STET_IO);
    faults_disarm();
    assert_non_null(strstr(err.message, "by-hand"));
    stet_error_clear(&err);
    assert_true(access("by-hand", F_OK) != 0);
    assert_int_equal(faults_names(".", ".stet-temp"), 0);
    free(bytes);
    free(copied);
}

/* A disk that is full for real says the same as the hook. Where mounting is not allowed, /dev/full gives the errno. */
static void a_full_device(void **state) {
    (void)state;
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    FAILS(stet_file_write_all(fd, "/dev/full", "x", 1, &err), STET_IO, "/dev/full");
    assert_int_equal(stet_file_write_all(fd, "/dev/full", "x", 1, &err), STET_IO);
    assert_non_null(strstr(err.hint, "space"));
    stet_error_clear(&err);
    close(fd);
}

int main(void) {
    faults_fast_directory();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_of_each_operation),
        cmocka_unit_test(a_record_that_does_not_fit),
        cmocka_unit_test(a_copy_by_hand),
        cmocka_unit_test(a_full_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
