/* watch.c - directory watches: what is reported, under which names, and that an overflow is reported too. */

#include "../expect.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "../faults.h"
#include "os/file.h"
#include "os/watch.h"

static void put(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("x", f);
    fclose(f);
}

/* Is there an event of this kind, directory and name among those of the next half second? Others are passed over. */
static bool told(stet_watch *w, stet_watch_kind kind, const char *dir, const char *name) {
    for (;;) {
        stet_watch_event e;
        stet_status status = stet_watch_next(w, &e, &err);
        if (status == STET_OK) {
            if (e.kind == kind && (!dir || strcmp(e.dir, dir) == 0) && strcmp(e.name, name) == 0)
                return true;
            continue;
        }
        assert_int_equal(status, STET_NOT_FOUND);
        struct pollfd f = {.fd = stet_watch_fd(w), .events = POLLIN};
        if (poll(&f, 1, 500) == 0)
            return false;
    }
}

static void drain(stet_watch *w) {
    stet_watch_event e;
    while (stet_watch_next(w, &e, &err) == STET_OK)
        ;
}

static void changes_are_told(void **state) {
    (void)state;
    stet_watch *w;
    stet_watch_event e;
    int before = faults_descriptors();
    OK(stet_file_mkdirs("a/sub", 0755, &err));
    OK(stet_file_mkdirs("b", 0755, &err));
    OK(stet_watch_open(&w, &err));
    OK(stet_watch_add(w, "a", &err));
    OK(stet_watch_add(w, "b", &err));
    OK(stet_watch_add(w, "b", &err)); /* again is nothing */
    assert_int_equal(stet_watch_next(w, &e, &err), STET_NOT_FOUND);
    put("a/f");
    assert_true(told(w, STET_WATCH_CREATED, "a", "f"));
    assert_true(told(w, STET_WATCH_CHANGED, "a", "f"));
    assert_int_equal(rename("a/f", "b/g"), 0);
    assert_true(told(w, STET_WATCH_REMOVED, "a", "f"));
    assert_true(told(w, STET_WATCH_CREATED, "b", "g"));
    assert_int_equal(unlink("b/g"), 0);
    assert_true(told(w, STET_WATCH_REMOVED, "b", "g"));
    assert_int_equal(chmod("a/sub", 0700), 0);
    assert_true(told(w, STET_WATCH_CHANGED, "a", "sub"));
    put("a/sub/deeper"); /* not what is below */
    assert_false(told(w, STET_WATCH_CREATED, NULL, "deeper"));
    assert_int_equal(mkdir("b/newdir", 0755), 0);
    OK(stet_watch_add(w, "b/newdir", &err));
    assert_true(told(w, STET_WATCH_CREATED, "b", "newdir"));
    assert_int_equal(rmdir("b/newdir"), 0);
    assert_true(told(w, STET_WATCH_REMOVED, "b/newdir", ""));
    drain(w);
    assert_int_equal(mkdir("b/newdir", 0755), 0); /* the same name again: a new watch */
    OK(stet_watch_add(w, "b/newdir", &err));
    put("b/newdir/x");
    assert_true(told(w, STET_WATCH_CREATED, "b/newdir", "x"));
    stet_watch_remove(w, "b/newdir");
    stet_watch_remove(w, "never added");
    drain(w);
    put("b/newdir/y");
    assert_false(told(w, STET_WATCH_CREATED, NULL, "y"));
    /* A directory that was moved away is not told of under its old name. */
    assert_int_equal(rename("b", "c"), 0);
    assert_true(told(w, STET_WATCH_REMOVED, "b", ""));
    put("c/z");
    assert_false(told(w, STET_WATCH_CREATED, NULL, "z"));
    stet_watch_close(w);
    stet_watch_close(NULL);
    assert_int_equal(faults_descriptors(), before);
}

static void failures(void **state) {
    (void)state;
    stet_watch *w;
    OK(stet_watch_open(&w, &err));
    FAILS(stet_watch_add(w, "absent", &err), STET_NOT_FOUND, "absent");
    put("file");
    FAILS(stet_watch_add(w, "file", &err), STET_INVALID, "file");
    faults_arm(STET_SYS_WATCH, 1, STET_SYS_FAIL, ENOSPC);
    stet_error e = STET_ERROR_INIT;
    assert_int_equal(stet_watch_add(w, ".", &e), STET_LIMIT);
    assert_non_null(strstr(e.hint, "max_user_watches"));
    stet_error_clear(&e);
    faults_arm(STET_SYS_READ, 1, STET_SYS_FAIL, EIO);
    stet_watch_event event;
    FAILS(stet_watch_next(w, &event, &err), STET_IO, "events");
    stet_watch_close(w);
    faults_arm(STET_SYS_WATCH, 1, STET_SYS_FAIL, EMFILE);
    assert_int_equal(stet_watch_open(&w, &e), STET_LIMIT);
    assert_non_null(strstr(e.hint, "max_user_instances"));
    stet_error_clear(&e);
    faults_disarm();
}

static void an_overflow_is_told(void **state) {
    (void)state;
    long limit = 16384;
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    if (f) {
        assert_int_equal(fscanf(f, "%ld", &limit), 1);
        fclose(f);
    }
    stet_watch *w;
    OK(stet_watch_open(&w, &err));
    OK(stet_file_mkdirs("many", 0755, &err));
    OK(stet_watch_add(w, "many", &err));
    for (long i = 0; i <= limit / 2 + 1; i++) { /* two events each, and no two in a row alike */
        int fd = open("many/x", O_WRONLY | O_CREAT, 0644);
        close(fd);
        unlink("many/x");
    }
    assert_true(told(w, STET_WATCH_OVERFLOW, NULL, ""));
    stet_watch_close(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_told),
        cmocka_unit_test(failures),
        cmocka_unit_test(an_overflow_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
