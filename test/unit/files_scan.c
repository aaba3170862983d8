/* files_scan.c - files as documents: what a scan finds, what it does not read again, and what survives accidents. */

#include "../expect.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../faults.h"
#include "files/files.h"
#include "os/clock.h"
#include "os/file.h"

static stet_project *project;
static stet_space *space;
static stet_files *files;
static int number;

static void put(const char *path, const char *text) {
    char *dir = stet_file_dirname(path);
    OK(stet_file_mkdirs(dir, 0755, &err));
    stet_free(dir);
    int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static int set_up(void **state) {
    (void)state;
    char dir[32];
    snprintf(dir, sizeof dir, "p%d", number++);
    bool created;
    OK(stet_project_init(dir, &created, &err));
    assert_int_equal(chdir(dir), 0);
    OK(stet_project_open(".", &project, &err));
    OK(stet_space_open(project, "main", 0, &space, &err));
    OK(stet_files_open(project, space, &files, &err));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    stet_files_close(files);
    stet_space_close(space);
    stet_project_close(project);
    assert_int_equal(chdir(".."), 0);
    return 0;
}

static void reopen(void) {
    stet_files_close(files);
    OK(stet_files_open(project, space, &files, &err));
}

/* "ch" changed, "ap" appeared, "va" vanished, "ha" hashed at least. */
static void scan(size_t changed, size_t appeared, size_t vanished) {
    stet_files_report r;
    OK(stet_files_scan(files, &r, &err));
    if (r.changed != changed || r.appeared != appeared || r.vanished != vanished) {
        char *list = stet_json_print(r.list, STET_JSON_CANONICAL, NULL);
        fail_msg("changed %zu, appeared %zu, vanished %zu: %s", r.changed, r.appeared, r.vanished, list);
    }
    stet_value_release(r.list);
}

static char *doc(const char *id) {
    stet_doc_state d;
    OK(stet_space_load(space, 0, &(stet_docname){id, NULL}, -1, &d, &err));
    char *text =
        d.exists ? stet_json_print(stet_value_get(d.value, "value"), STET_JSON_CANONICAL, NULL) : stet_strdup("absent");
    stet_value_release(d.value);
    return text;
}

static void doc_is(const char *id, const char *part) {
    char *text = doc(id);
    if (!strstr(text, part))
        fail_msg("%s is %s, without %s", id, text, part);
    stet_free(text);
}

/* Past the tick of the file system's clock, so that what was just written is old. */
static void wait_tick(void) {
    stet_clock_sleep_ms(25);
}

static void a_file_through_its_life(void **state) {
    (void)state;
    OK(stet_files_follow(files, "file:a.txt", &err));
    scan(0, 0, 0);
    doc_is("file:a.txt", "absent");
    put("a.txt", "one");
    scan(0, 1, 0);
    doc_is("file:a.txt",
           "{\"hash\":\"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\",\"mode\":420,\"size\":3}");
    scan(0, 0, 0);
    put("a.txt", "two"); /* the same size, and likely within one tick */
    scan(1, 0, 0);
    put("a.txt", "six");
    scan(1, 0, 0);
    chmod("a.txt", 0755);
    scan(1, 0, 0);
    doc_is("file:a.txt", "\"mode\":493");
    chmod("a.txt", 0700); /* executable is executable */
    scan(0, 0, 0);
    unlink("a.txt");
    scan(0, 0, 1);
    doc_is("file:a.txt", "absent");
    reopen();
    assert_false(stet_files_was_lost(files));
    put("a.txt", "back"); /* followed though it was not there */
    scan(0, 1, 0);
}

static void touch_changes_nothing_and_reads_once(void **state) {
    (void)state;
    stet_files_report r;
    put("a", "x");
    OK(stet_files_follow(files, "file:a", &err));
    wait_tick();
    scan(0, 1, 0);
    OK(stet_files_scan(files, &r, &err));
    assert_int_equal(r.hashed, 0);
    stet_value_release(r.list);
    struct timespec times[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    utimensat(AT_FDCWD, "a", times, 0);
    wait_tick();
    OK(stet_files_scan(files, &r, &err));
    assert_int_equal(r.hashed, 1);
    assert_int_equal(r.changed, 0);
    stet_value_release(r.list);
    OK(stet_files_scan(files, &r, &err));
    assert_int_equal(r.hashed, 0);
    stet_value_release(r.list);
}

static void a_time_set_back_hides_nothing(void **state) {
    (void)state;
    put("a", "old");
    struct stat st;
    assert_int_equal(stat("a", &st), 0);
    OK(stet_files_follow(files, "file:a", &err));
    wait_tick();
    scan(0, 1, 0);
    put("a", "new"); /* same size, same modification time, same inode: the change time tells */
    struct timespec times[2] = {st.st_atim, st.st_mtim};
    utimensat(AT_FDCWD, "a", times, 0);
    scan(1, 0, 0);
}

static void patterns(void **state) {
    (void)state;
    put("src/a.c", "a");
    put("src/b.c", "b");
    put("src/n.txt", "n");
    OK(stet_files_follow(files, "glob:src/*.c", &err));
    scan(1, 2, 0);
    doc_is("glob:src/*.c", "{\"src/a.c\":{\"/\":{\"link@1\":{\"id\":\"file:src/a.c\"}}},\"src/b.c\":");
    scan(0, 0, 0);
    put("src/new\nline \xFF.c", "c");
    scan(1, 1, 0);
    doc_is("glob:src/*.c", "\"src/new%0Aline %FF.c\":{\"/\":{\"link@1\":{\"id\":\"file:src/new%0Aline %FF.c\"}}}");
    rename("src/b.c", "src/z.c");
    scan(1, 1, 1);
    reopen();
    scan(0, 0, 0);
    put("src/a.c", "changed");
    scan(1, 0, 0);
}

static void directories_and_links(void **state) {
    (void)state;
    put("d/x/y", "1");
    put("d/z", "2");
    OK(stet_files_follow(files, "file:d", &err));
    scan(0, 1, 0);
    doc_is("file:d", "\"mode\":16877,\"size\":2");
    scan(0, 0, 0);
    put("d/x/y", "3");
    scan(1, 0, 0);
    put("d/new", "4");
    scan(1, 0, 0);
    wait_tick();
    scan(0, 0, 0);
    assert_int_equal(symlink("d/z", "link"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    OK(stet_files_follow(files, "file:link", &err));
    OK(stet_files_follow(files, "file:dangling", &err));
    scan(0, 1, 0);
    put("d/z", "5"); /* seen through the link, and in the directory */
    scan(2, 0, 0);
    assert_int_equal(symlink("z", "d/inner"), 0);
    scan(1, 0, 0);
    assert_int_equal(mkdir("d/empty", 0777), 0); /* it counts, though nothing is in it */
    scan(1, 0, 0);
    put("elsewhere", "6");
    assert_int_equal(symlink("../elsewhere", "d/out"), 0);
    scan(1, 0, 0);
    put("elsewhere", "7"); /* what a link in a directory leads to counts */
    scan(1, 0, 0);
    put("other/deep/f", "8");
    assert_int_equal(symlink("../other", "d/more"), 0);
    assert_int_equal(symlink("..", "d/up"), 0);
    assert_int_equal(symlink("..", "other/deep/up"), 0);
    scan(1, 0, 0);
    put("other/deep/f", "9");
    scan(1, 0, 0);
    wait_tick();
    scan(0, 0, 0);
    unlink("link"); /* a link that says the same in other words leads to the same, and is another one */
    assert_int_equal(symlink("./d/z", "link"), 0);
    scan(1, 0, 0);
    mkfifo("pipe", 0600); /* neither a file nor a directory: as if nothing were there, and nobody waits for it */
    OK(stet_files_follow(files, "file:pipe", &err));
    mkfifo("d/pipe", 0600);
    scan(0, 0, 0);
}

static void a_lost_or_damaged_index_is_made_again(void **state) {
    (void)state;
    put("a", "1");
    put("b", "2");
    OK(stet_files_follow(files, "file:a", &err));
    OK(stet_files_follow(files, "glob:*", &err));
    scan(1, 2, 0);
    unlink(".stet/local/files/main/index");
    put("a", "changed");
    reopen();
    assert_true(stet_files_was_lost(files));
    scan(2, 0, 0); /* the pattern's document is written again, to the same value */
    stet_buf bytes = STET_BUF(0);
    OK(stet_file_read(".stet/local/files/main/index", 0, &bytes, &err));
    for (size_t i = 0; i < bytes.len; i += 7) {
        bytes.data[i] ^= 0x20;
        OK(stet_file_replace(".stet/local/files/main/index", bytes.data, i % 3 ? bytes.len : i, 0644, &err));
        bytes.data[i] ^= 0x20;
        reopen();
        assert_true(stet_files_was_lost(files));
    }
    stet_buf_release(&bytes);
    put("b", "changed");
    scan(2, 0, 0);
}

/* Else every start would look at all actions for files that they read. */
static void a_lost_index_without_entries_is_lost_once(void **state) {
    (void)state;
    OK(stet_files_save(files, &err));
    unlink(".stet/local/files/main/index");
    reopen();
    assert_true(stet_files_was_lost(files));
    OK(stet_files_save(files, &err));
    reopen();
    assert_false(stet_files_was_lost(files));
}

static void a_document_that_somebody_else_changed(void **state) {
    (void)state;
    put("a", "1");
    OK(stet_files_follow(files, "file:a", &err));
    wait_tick();
    scan(0, 1, 0);
    stet_tx *tx;
    OK(stet_tx_begin(space, "", &tx, &err));
    OK(stet_tx_set(tx, "file:a", NULL, stet_value_int(5), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    scan(1, 0, 0);
    doc_is("file:a", "\"size\":1");
    OK(stet_tx_begin(space, "", &tx, &err));
    OK(stet_tx_delete(tx, "file:a", NULL, &err));
    OK(stet_tx_commit(tx, NULL, &err));
    reopen();
    scan(0, 1, 0);
    doc_is("file:a", "\"size\":1");
}

static void looks_of_others_are_believed(void **state) {
    (void)state;
    stet_look look;
    put("out", "made");
    OK(stet_look_at(stet_files_root(files), "out", NULL, &look, &err));
    stet_files_note(files, "out", &look);
    stet_tx *tx;
    OK(stet_tx_begin(space, "", &tx, &err));
    OK(stet_tx_set(tx, "file:out", NULL, stet_look_value(&look), &err));
    OK(stet_tx_commit(tx, NULL, &err));
    OK(stet_files_save(files, &err));
    reopen();
    scan(0, 0, 0);
    assert_true(stet_files_known(files, "out", &look));
    const char *paths[] = {"out", "other"};
    put("other", "o");
    OK(stet_files_update(files, paths, NULL, 2, &err));
    doc_is("file:other", "\"size\":1");
}

static void many_files(void **state) {
    (void)state;
    char path[64], id[80];
    for (int i = 0; i < 3000; i++) {
        snprintf(path, sizeof path, "m/%d/%d", i % 30, i);
        put(path, path);
        snprintf(id, sizeof id, "file:%s", path);
        OK(stet_files_follow(files, id, &err));
    }
    scan(0, 3000, 0);
    reopen();
    scan(0, 0, 0);
    put("m/7/37", "changed");
    unlink("m/0/0");
    scan(1, 0, 1);
    OK(stet_files_follow(files, "file:zzz", &err));
    FAILS(stet_files_follow(files, "other:x", &err), STET_INVALID, "no document of a file");
}

static size_t followed(const char *id) {
    char *at;
    stet_look look;
    size_t found = 0;
    for (size_t i = 0; stet_files_at(files, i, &at, &look); i++) {
        found += at && strcmp(at, id) == 0;
        stet_free(at);
    }
    return found;
}

static void append(const char *bytes, size_t len) {
    int fd = open(".stet/local/files/main/index.log", O_WRONLY | O_APPEND);
    assert_true(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    close(fd);
}

static void two_that_save_lose_nothing_of_each_other(void **state) {
    (void)state;
    stet_files *other;
    put("a", "1");
    OK(stet_files_follow(files, "file:a", &err));
    scan(0, 1, 0);
    OK(stet_files_open(project, space, &other, &err));
    assert_false(stet_files_was_lost(other));
    OK(stet_files_follow(files, "file:not-there", &err)); /* nothing but the index knows of these */
    OK(stet_files_save(files, &err));
    OK(stet_files_follow(other, "file:neither", &err));
    OK(stet_files_save(other, &err));
    OK(stet_files_catch_up(files, &err));
    assert_int_equal(followed("file:neither"), 1);
    put("not-there", "now");
    put("neither", "too");
    scan(0, 2, 0);
    /* Enough for a new index in place of the log, while another has the old one in memory. */
    char id[64];
    for (int i = 0; i < 2000; i++) {
        snprintf(id, sizeof id, "file:many/%d", i);
        OK(stet_files_follow(files, id, &err));
    }
    OK(stet_files_save(files, &err));
    assert_int_not_equal(access(".stet/local/files/main/index.log", F_OK), 0);
    OK(stet_files_follow(other, "file:late", &err));
    OK(stet_files_save(other, &err));
    stet_files_close(other);
    reopen();
    assert_int_equal(followed("file:late") + followed("file:neither") + followed("file:many/1999"), 3);
    scan(0, 0, 0);
}

static void a_torn_log_ends_where_it_is_torn(void **state) {
    (void)state;
    put("a", "1");
    OK(stet_files_follow(files, "file:a", &err));
    scan(0, 1, 0);
    OK(stet_files_follow(files, "file:b", &err));
    OK(stet_files_save(files, &err));
    stet_buf bytes = STET_BUF(0);
    OK(stet_file_read(".stet/local/files/main/index.log", 0, &bytes, &err));
    append(bytes.data, bytes.len - 5); /* of a second batch, all but its end */
    reopen();
    assert_false(stet_files_was_lost(files));
    assert_int_equal(followed("file:b"), 1);
    OK(stet_files_follow(files, "file:c", &err)); /* what comes next is not hidden by it */
    OK(stet_files_save(files, &err));
    reopen();
    assert_int_equal(followed("file:b") + followed("file:c"), 2);
    put("c", "there");
    scan(0, 1, 0);
    /* Whatever byte is wrong: never more than a look too many. */
    stet_buf_clear(&bytes);
    OK(stet_file_read(".stet/local/files/main/index.log", 0, &bytes, &err));
    for (size_t i = 0; i < bytes.len; i += 5) {
        bytes.data[i] ^= 0x41;
        OK(stet_file_replace(".stet/local/files/main/index.log", bytes.data, bytes.len, 0644, &err));
        bytes.data[i] ^= 0x41;
        reopen();
        assert_int_equal(followed("file:a"), 1);
    }
    stet_buf_release(&bytes);
}

/* A scan that fails anywhere, in the handle of one who goes on with it, as a watch does. */
static void what_a_failed_scan_saw_is_written_by_the_next(void **state) {
    (void)state;
    OK(stet_files_follow(files, "file:a", &err));
    OK(stet_files_follow(files, "file:b", &err));
    OK(stet_files_follow(files, "glob:*.c", &err));
    int struck = 0;
    for (int n = 1;; n++) {
        stet_files_report r;
        char text[32];
        snprintf(text, sizeof text, "%d", n);
        n % 2 ? put("a", text) : (void)unlink("a");
        n % 3 ? put("b", text) : (void)unlink("b");
        n % 2 ? (void)unlink("x.c") : put("x.c", text);
        faults_arm_any(n, STET_SYS_FAIL, EIO);
        stet_status status = stet_files_scan(files, &r, &err);
        faults_disarm();
        struck += status != STET_OK;
        stet_error_clear(&err);
        stet_value_release(r.list);
        OK(stet_files_scan(files, &r, &err));
        stet_value_release(r.list);
        doc_is("file:a", n % 2 ? "hash" : "absent");
        doc_is("file:b", n % 3 ? "hash" : "absent");
        doc_is("glob:*.c", n % 2 ? "{}" : "x.c");
        if (!faults_fired())
            break;
    }
    assert_true(struck > 10);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {T(a_file_through_its_life),
                                       T(what_a_failed_scan_saw_is_written_by_the_next),
                                       T(touch_changes_nothing_and_reads_once),
                                       T(a_time_set_back_hides_nothing),
                                       T(patterns),
                                       T(directories_and_links),
                                       T(a_lost_or_damaged_index_is_made_again),
                                       T(a_lost_index_without_entries_is_lost_once),
                                       T(a_document_that_somebody_else_changed),
                                       T(looks_of_others_are_believed),
                                       T(two_that_save_lose_nothing_of_each_other),
                                       T(a_torn_log_ends_where_it_is_torn),
                                       T(many_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
