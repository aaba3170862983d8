/* files_watch.c - a watch over files, step by step: once the watch has answered, documents say what files are.
 *
 * That holds whatever happens to files and directories, and whoever else writes. The watch runs on a thread of its own
 * while a question waits, and stands still otherwise. So it meets everything that happens in between at once, or in the
 * pieces that a test chooses.
 */

#include "../expect.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../faults.h"
#include "files/files.h"
#include "files/path.h"
#include "files/watch.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/lock.h"

enum { FILES = 14 };
static const char *const paths[FILES] = {"b/a",     "b/c",   "b/ten/0", "b/ten/1", "b/ten/2", "b/x/y/z", "b/x/y/w",
                                         "b/x/top", "s/one", "s/d/two", "s/d/e/3", "s/link",  "top",     "b/x/dir"};

static stet_project *project;
static stet_space *space, *watch_space; /* of who asks, and of the watch */
static stet_files *files, *watch_files;
static stet_watcher *watcher;
static int number;

static void put(const char *path, const char *text) {
    char *dir = stet_file_dirname(path);
    if (stet_file_mkdirs(dir, 0755, NULL) == STET_OK) {
        int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
        if (fd >= 0) {
            assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
            close(fd);
        }
    }
    stet_free(dir);
}

static void begin_watch(void) {
    OK(stet_space_open(project, "main", 0, &watch_space, &err));
    OK(stet_files_open(project, watch_space, &watch_files, &err));
    OK(stet_watcher_open(project, watch_space, watch_files, &watcher, &err));
}

static void end_watch(void) {
    stet_watcher_close(watcher);
    stet_files_close(watch_files);
    stet_space_close(watch_space);
    watcher = NULL;
}

static void reopen(void) {
    stet_files_close(files);
    OK(stet_files_open(project, space, &files, &err));
}

static int set_up(void **state) {
    (void)state;
    char dir[32];
    snprintf(dir, sizeof dir, "w%d", number++);
    bool created;
    OK(stet_project_init(dir, &created, &err));
    assert_int_equal(chdir(dir), 0);
    OK(stet_project_open(".", &project, &err));
    OK(stet_space_open(project, "main", 0, &space, &err));
    OK(stet_files_open(project, space, &files, &err));
    for (int i = 0; i < FILES; i++) {
        char id[80];
        snprintf(id, sizeof id, "file:%s", paths[i]);
        OK(stet_files_follow(files, id, &err));
    }
    OK(stet_files_follow(files, "glob:s/**/*", &err));
    OK(stet_files_scan(files, NULL, &err));
    reopen();
    begin_watch();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (watcher)
        end_watch();
    stet_files_close(files);
    stet_space_close(space);
    stet_project_close(project);
    assert_int_equal(chdir(".."), 0);
    return 0;
}

static atomic_bool stop;
static stet_status stepped;

static void *keep_stepping(void *ctx) {
    (void)ctx;
    stepped = STET_OK;
    while (!atomic_load(&stop) && stepped == STET_OK)
        stepped = stet_watcher_step(watcher, 10, NULL, NULL);
    return NULL;
}

/* One question, as a run asks it. */
static bool ask(void) {
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_stepping, NULL), 0);
    bool answered = stet_files_ask(files, 5000);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    return answered;
}

/* Does the document, and does the index as another process would read it, say what the file is? */
static void is_true(const char *path, const char *after) {
    stet_doc_state d;
    stet_look now, said = {0}, row;
    char *id = stet_file_id(path);
    int root = open(".", O_RDONLY | O_DIRECTORY);
    OK(stet_look_at(root, path, NULL, &now, &err));
    close(root);
    OK(stet_space_load(space, 0, &(stet_docname){id, NULL}, -1, &d, &err));
    if (d.exists)
        assert_true(stet_look_of_value(stet_value_get(d.value, "value"), &said));
    if (!stet_look_same(&said, &now))
        fail_msg("after %s: the document of %s says mode %o, the file has %o", after, path, said.mode, now.mode);
    reopen();
    if (stet_files_known(files, path, &row) && !stet_look_same(&row, &now))
        fail_msg("after %s: the index says of %s mode %o, the file has %o", after, path, row.mode, now.mode);
    stet_value_release(d.value);
    stet_free(id);
}

static void all_true(const char *after) {
    if (!ask())
        fail_msg("after %s: no answer", after);
    for (int i = 0; i < FILES; i++)
        is_true(paths[i], after);
}

static void make_all(void) {
    for (int i = 0; i < FILES; i++)
        put(paths[i], paths[i]);
}

static void step(void) {
    OK(stet_watcher_step(watcher, 0, NULL, &err));
}

/* Files in directories that are made at the same time: before the kernel could be asked to listen there. */
static void directories_made_with_what_is_in_them(void **state) {
    (void)state;
    all_true("nothing");
    make_all();
    all_true("making everything");
    OK(stet_file_remove_tree("b", &err));
    all_true("removing b");
    assert_int_equal(mkdir("b", 0755), 0);
    step();
    assert_int_equal(mkdir("b/ten", 0755), 0);
    put("b/ten/0", "0");
    all_true("a directory after a step");
}

/* rm -rf, with a look after each thing that goes, as a slow machine has it. */
static void a_tree_goes_piece_by_piece(void **state) {
    (void)state;
    static const char *const order[] = {"b/ten/1", "b/ten/0", "b/ten/2", "b/ten", "b/x/y/z", "b/x/y/w", "b/x/y",
                                        "b/a",     "b/x/top", "b/x/dir", "b/x",   "b/c",     "b"};
    enum { PIECES = sizeof order / sizeof *order };
    for (int stepped_at = -1; stepped_at < PIECES; stepped_at++) {
        make_all();
        if (stepped_at % 3 != 0)
            all_true("making it");
        for (int i = 0; i < PIECES; i++) {
            assert_int_equal(remove(order[i]), 0);
            if (stepped_at == i || stepped_at == -1)
                step();
        }
        all_true("a tree that went");
    }
}

/* The tree goes and comes back, and goes again, between one look and the next: of what comes last nothing is missed. */
static void gone_and_back_and_gone(void **state) {
    (void)state;
    make_all();
    all_true("the start");
    OK(stet_file_remove_tree("b", &err));
    step();
    make_all();
    OK(stet_file_remove_tree("b", &err));
    all_true("gone, back, gone");
    make_all();
    step();
    OK(stet_file_remove_tree("b", &err));
    make_all();
    all_true("back, gone, back");
}

static void directories_moved_and_exchanged(void **state) {
    (void)state;
    make_all();
    all_true("the start");
    assert_int_equal(rename("b", "away"), 0);
    all_true("moved away");
    put("away/ten/0", "written while away");
    assert_int_equal(rename("away", "b"), 0);
    all_true("moved back");
    OK(stet_file_mkdirs("other/ten", 0755, &err));
    put("other/ten/0", "another 0");
    assert_int_equal(rename("b", "old"), 0);
    assert_int_equal(rename("other", "b"), 0);
    put("old/ten/1", "not of this tree any more");
    all_true("another in its place");
    OK(stet_file_remove_tree("b/ten", &err));
    assert_int_equal(symlink("../old/ten", "b/ten"), 0);
    all_true("a link in its place");
    put("old/ten/2", "through the link");
    all_true("changed behind the link");
    unlink("b/ten");
    all_true("the link gone");
}

/* While commands run nobody is told that documents are current; right afterwards they are. */
static void commands_run_meanwhile(void **state) {
    (void)state;
    make_all();
    all_true("the start");
    stet_lock *lock;
    char *path = stet_project_path(project, STET_FILES_COMMANDS_LOCK);
    OK(stet_lock_open(path, STET_LOCK_PLAIN, &lock, &err));
    OK(stet_lock_take(lock, STET_LOCK_EXCLUSIVE, 0, &err));
    unlink("b/a");
    assert_false(ask());
    put("b/a", "made by a command");
    /* Its document and its row are the drive's business: it has them both before the watch has looked. */
    stet_look now;
    const char *made = "b/a";
    int root = open(".", O_RDONLY | O_DIRECTORY);
    OK(stet_look_at(root, made, NULL, &now, &err));
    close(root);
    OK(stet_files_update(files, &made, &now, 1, &err));
    unlink("b/a"); /* and somebody deletes it before the drive has saved */
    stet_lock_drop(lock);
    OK(stet_files_save(files, &err));
    stet_lock_close(lock);
    stet_free(path);
    all_true("an output that was deleted as its command ended");
}

/* A drive saves rows that were true when it took them, after the watch has seen, committed and saved something newer.
 */
static void older_rows_saved_later(void **state) {
    (void)state;
    make_all();
    all_true("the start");
    stet_look old;
    OK(stet_files_scan(files, NULL, &err));
    assert_true(stet_files_known(files, "b/a", &old) && stet_look_there(&old));
    stet_files_note(files, "b/a", &old); /* not saved yet */
    unlink("b/a");
    step();
    step();
    OK(stet_files_save(files, &err));
    all_true("an older row");
    /* The other way: gone in the row, there by now. */
    stet_look none = {0};
    OK(stet_files_scan(files, NULL, &err));
    stet_files_note(files, "b/c", &none);
    put("b/c", "there again");
    step();
    OK(stet_files_save(files, &err));
    all_true("an older row of nothing");
    unlink("b/c");
    all_true("and gone");
}

/* Somebody writes into the documents of files himself. */
static stet_status spoil(stet_tx *tx, void *ctx, stet_error *e) {
    (void)ctx;
    stet_value envelope = stet_value_object();
    stet_value_put(&envelope, "value", stet_value_string("spoilt"));
    return stet_tx_put(tx, &(stet_docname){"file:b/a", NULL}, envelope, e);
}

static void documents_that_somebody_else_wrote(void **state) {
    (void)state;
    make_all();
    all_true("the start");
    OK(stet_space_transact(space, "", spoil, NULL, NULL, &err));
    all_true("a spoilt document");
}

/* The watch dies after it has answered: what it said was true then; nobody relies on it for what comes later. */
static void a_watch_that_dies(void **state) {
    (void)state;
    make_all();
    all_true("the start");
    put("top", "seen by the watch");
    assert_true(ask());
    end_watch();
    put("top", "not seen by it");
    stet_files_report r;
    OK(stet_files_refresh(files, &r, &err));
    stet_value_release(r.list);
    reopen();
    assert_false(stet_files_is_watched(files));
    assert_false(stet_files_ask(files, 5000));
    OK(stet_files_refresh(files, &r, &err));
    assert_true(r.changed >= 1);
    stet_value_release(r.list);
    begin_watch();
    all_true("a new watch");
}

/* A look that fails somewhere: no answer until one has passed, and then a true one. */
static void a_look_that_fails(void **state) {
    (void)state;
    static const stet_sys_call calls[] = {STET_SYS_OPEN, STET_SYS_READ, STET_SYS_SQL, STET_SYS_WRITE, STET_SYS_FSYNC};
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++)
        for (int n = 1; n < 12; n += 2) {
            char text[32];
            snprintf(text, sizeof text, "%zu %d", k, n);
            put("b/a", text);
            unlink(n % 4 == 1 ? "b/ten/0" : "b/ten/1");
            faults_arm(calls[k], n, STET_SYS_FAIL, EIO);
            stet_error ignored = STET_ERROR_INIT;
            stet_status status = stet_watcher_step(watcher, 0, NULL, &ignored);
            faults_disarm();
            stet_error_clear(&ignored);
            if (status != STET_OK) { /* it ended: the next one begins anew */
                end_watch();
                begin_watch();
            }
            stet_files_report r;
            bool answered = ask();
            OK(stet_files_refresh(files, &r, &err));
            stet_value_release(r.list);
            for (int i = 0; i < FILES; i++)
                is_true(paths[i], answered ? "a failure, answered" : "a failure, looked at");
            put("b/ten/0", text);
            put("b/ten/1", text);
        }
}

/* More than the kernel keeps: what is lost is looked for. */
static void an_overflow(void **state) {
    (void)state;
    make_all();
    all_true("the start");
    char limit[32] = "";
    int fd = open("/proc/sys/fs/inotify/max_queued_events", O_RDONLY);
    if (fd >= 0 && read(fd, limit, sizeof limit - 1) > 0)
        close(fd);
    long most = atol(limit);
    for (long i = 0; most > 0 && most <= 65536 && i < most / 2 + 100;
         i++) { /* two events each, none like the one before */
        char name[32];
        snprintf(name, sizeof name, "s/many%ld", i & 1);
        if (i & 2)
            unlink(name);
        else
            put(name, "x");
    }
    OK(stet_file_remove_tree("b", &err));
    put("s/one", "changed as well");
    all_true("an overflow");
}

/* Whether it was there or not. */
static void remove_tree(const char *path) {
    stet_error gone = STET_ERROR_INIT;
    if (stet_file_remove_tree(path, &gone) != STET_OK)
        stet_error_clear(&gone);
}

static void link_instead(const char *path, const char *target) {
    if (unlink(path) == 0)
        assert_int_equal(symlink(target, path), 0);
}

/* Anything, in any order, looked at or not. */
static void whatever_happens(void **state) {
    (void)state;
    const char *given = getenv("STET_SEED");
    srandom(given ? (unsigned)atol(given) : 7);
    int rounds = getenv("STET_TEST_LONG") ? 20000 : getenv("STET_TEST_SHORT") ? 150 : 600;
    static const char *const trees[] = {"b", "b/ten", "b/x", "b/x/y", "s", "s/d", "s/d/e"};
    enum { TREES = sizeof trees / sizeof *trees };
    for (int i = 0; i < rounds; i++) {
        char after[200] = "";
        for (long k = random() % 4; k >= 0; k--) {
            const char *path = paths[random() % FILES], *tree = trees[random() % TREES];
            char text[32];
            long kind = random() % 11;
            snprintf(text, sizeof text, "%ld", random() % 3);
            snprintf(after + strlen(after), sizeof after - strlen(after), "%ld %s %s; ", kind, path, tree);
            if (kind < 3)
                put(path, text);
            else if (kind == 3)
                remove(path);
            else if (kind == 4)
                remove_tree(tree);
            else if (kind == 5)
                rename(tree, "moved");
            else if (kind == 6)
                rename("moved", tree);
            else if (kind == 7)
                make_all();
            else if (kind == 8)
                link_instead(path, random() % 2 ? "nowhere/at/all" : paths[random() % FILES]);
            else if (kind == 9)
                chmod(path, random() % 2 ? 0755 : 0644);
            else if (kind == 10 && stet_file_exists("moved"))
                remove_tree("moved");
            if (random() % 3 == 0)
                step();
        }
        all_true(after);
        if (i % 97 == 96) {
            end_watch();
            begin_watch();
        }
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    faults_fast_directory();
    const struct CMUnitTest tests[] = {T(directories_made_with_what_is_in_them),
                                       T(a_tree_goes_piece_by_piece),
                                       T(gone_and_back_and_gone),
                                       T(directories_moved_and_exchanged),
                                       T(commands_run_meanwhile),
                                       T(older_rows_saved_later),
                                       T(documents_that_somebody_else_wrote),
                                       T(a_watch_that_dies),
                                       T(a_look_that_fails),
                                       T(an_overflow),
                                       T(whatever_happens)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
