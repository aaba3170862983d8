/* file.c - a child is killed before or after each call that changes the disk.
 *
 * Either the old content is there or the new one, complete; a leftover temporary file is recognised as abandoned. The
 * order of calls is one that survives a power cut: a file is synced before it is renamed, and renamed before the
 * directory is synced.
 */

#include "../expect.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../faults.h"
#include "os/clock.h"
#include "os/file.h"

enum { LARGE = 300000 };

static char old_bytes[LARGE / 2], new_bytes[LARGE];

static stet_status replace(void) {
    return stet_file_replace("d/x", new_bytes, sizeof new_bytes, 0644, NULL);
}
static stet_status create(void) {
    return stet_file_create("d/y", new_bytes, sizeof new_bytes, 0644, NULL);
}
static stet_status append(void) {
    return stet_file_append("d/x", new_bytes, sizeof new_bytes, true, NULL);
}
static stet_status deep_create(void) {
    return stet_file_mkdirs("d/deep/er", 0755, NULL) == STET_OK ? stet_file_create("d/deep/er/z", "z", 1, 0644, NULL)
                                                                : STET_IO;
}

static char *content(const char *path, size_t *len) {
    stet_buf b = STET_BUF(0);
    *len = 0;
    if (stet_file_read(path, 0, &b, NULL) != STET_OK)
        return NULL;
    return stet_buf_take(&b, len);
}

static bool equals(const char *path, const char *a, size_t a_len, const char *b, size_t b_len) {
    size_t len;
    char *bytes = content(path, &len);
    bool same =
        bytes ? len == a_len + b_len && memcmp(bytes, a, a_len) == 0 && memcmp(bytes + a_len, b, b_len) == 0 : false;
    stet_free(bytes);
    return same;
}

static void sweep(const char *dir) {
    stet_names names = {0};
    OK(stet_file_list(dir, &names, &err));
    for (size_t i = 0; i < names.len; i++) {
        if (!strstr(names.at[i], ".stet-temp"))
            continue;
        struct stat st;
        char *path = stet_file_join(dir, names.at[i]);
        assert_int_equal(lstat(path, &st), 0);
        assert_true(stet_file_temp_is_dead(names.at[i], 3600, &st)); /* long before its age says so */
        OK(stet_file_remove(path, &err));
        stet_free(path);
    }
    stet_names_release(&names);
}

static bool run_killed(stet_status (*call)(void), int n, stet_sys_action action) {
    pid_t pid = fork();
    if (pid == 0) {
        faults_arm_durable(n, action, 0);
        _exit(call() == STET_OK ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGKILL);
        return true;
    }
    assert_int_equal(status, 0);
    return false;
}

static void reset_files(void) {
    OK(stet_file_remove_tree("d", &err));
    OK(stet_file_mkdirs("d", 0755, &err));
    OK(stet_file_replace("d/x", old_bytes, sizeof old_bytes, 0644, &err));
}

static void killed_at_each_point(void **state) {
    (void)state;
    faults_fast_directory();
    static const stet_sys_action actions[] = {STET_SYS_KILL, STET_SYS_KILL_AFTER};
    int kills = 0;
    for (int a = 0; a < 2; a++) {
        bool killed = true;
        for (int n = 1; killed; n++, kills++) {
            reset_files();
            killed = run_killed(replace, n, actions[a]);
            bool old = equals("d/x", old_bytes, sizeof old_bytes, "", 0);
            assert_true(old || equals("d/x", new_bytes, sizeof new_bytes, "", 0));
            assert_false(!killed && old);
            sweep("d");
        }
        killed = true;
        for (int n = 1; killed; n++, kills++) {
            reset_files();
            killed = run_killed(create, n, actions[a]);
            bool absent = !stet_file_exists("d/y");
            assert_true(absent || equals("d/y", new_bytes, sizeof new_bytes, "", 0));
            assert_false(!killed && absent);
            sweep("d");
        }
        killed = true;
        for (int n = 1; killed; n++, kills++) {
            reset_files();
            killed = run_killed(append, n, actions[a]);
            bool old = equals("d/x", old_bytes, sizeof old_bytes, "", 0);
            assert_true(old || equals("d/x", old_bytes, sizeof old_bytes, new_bytes, sizeof new_bytes));
            assert_false(!killed && old);
        }
        killed = true;
        for (int n = 1; killed; n++, kills++) {
            reset_files();
            killed = run_killed(deep_create, n, actions[a]);
            if (stet_file_exists("d/deep/er/z"))
                assert_true(equals("d/deep/er/z", "z", 1, "", 0));
            OK(stet_file_mkdirs("d/deep/er", 0755, &err)); /* what was half made is no obstacle */
            sweep("d/deep/er");
        }
    }
    print_message("# %d kills\n", kills);
    assert_true(kills > 20);
}

/* The order, as the hook sees it. Directories are told from files by what the descriptor is open on. */
static char order[64];
static size_t order_len;

static stet_sys_action record(stet_sys_fault *fault) {
    char c = 0;
    struct stat st;
    if (fault->call == STET_SYS_WRITE)
        c = 'w';
    else if (fault->call == STET_SYS_RENAME)
        c = 'r';
    else if (fault->call == STET_SYS_MKDIR)
        c = 'm';
    else if (fault->call == STET_SYS_FSYNC)
        c = fstat(fault->fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'D' : 's';
    if (c && order_len < sizeof order - 1) {
        order[order_len++] = c;
        order[order_len] = 0;
    }
    return STET_SYS_GO;
}

static const char *order_of(stet_status (*call)(void)) {
    order_len = 0;
    order[0] = 0;
    stet_sys_hook = record;
    stet_status status = call();
    stet_sys_hook = NULL;
    assert_int_equal(status, STET_OK);
    return order;
}

static void the_order_survives_a_power_cut(void **state) {
    (void)state;
    reset_files();
    assert_string_equal(order_of(replace), "wsrD");
    assert_string_equal(order_of(create), "wsrD");
    assert_string_equal(order_of(append), "ws");
    OK(stet_file_remove("d/x", &err));
    assert_string_equal(order_of(append), "wsD"); /* a new name is synced too */
    assert_string_equal(order_of(deep_create), "mDmDwsrD");
}

int main(void) {
    for (size_t i = 0; i < sizeof new_bytes; i++)
        new_bytes[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < sizeof old_bytes; i++)
        old_bytes[i] = (char)(i * 13 + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_point),
        cmocka_unit_test(the_order_survives_a_power_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
