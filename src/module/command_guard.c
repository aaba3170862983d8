/* command_guard.c - was an input replaced and put back while its command ran?
 *
 *   G1. A result counts only if each file that its command reads was the same file, unwritten, from before the command
 *       began until after it ended. Content alone does not tell: another file may have been there for a while.
 *   G2. If the inode, the size or the modification time differs, the command runs again.
 *   G3. If only the change time differs, the file got a second name (`ln`, `cp -l`), another mode or access time, or
 *       was renamed and renamed back. The command runs again, and meanwhile the file and its directory are watched. If
 *       attributes change again, and the kernel reports nothing else, the command itself does so, and its result
 *       counts.
 *
 * Rejected: to watch all inputs always, since commands with many inputs are common and such commands are rare; to
 * compare the number of names, which stays the same if a file is renamed there and back and gets a new name.
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "files/look.h"
#include "files/path.h"
#include "module/command_run.h"
#include "os/file.h"

/* The directory itself, and those below it. */
static stet_status place_tree(stet_watch *w, const char *top) {
    STET_VEC(char *) todo = {0};
    stet_status status = STET_OK;
    *stet_vec_add(&todo) = stet_strdup(top);
    while (todo.len > 0) {
        char *dir = todo.at[--todo.len];
        stet_names names = {0};
        if (status == STET_OK)
            status = stet_watch_add(w, dir, NULL);
        if (status == STET_OK)
            status = stet_file_list(dir, &names, NULL);
        for (size_t i = 0; i < names.len; i++) {
            struct stat st;
            char *path = stet_file_join(dir, names.at[i]);
            if (stet_sys_lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && !stet_path_is_uncounted(path))
                *stet_vec_add(&todo) = stet_strdup(path);
            stet_free(path);
        }
        stet_names_release(&names);
        stet_free(dir);
    }
    stet_vec_release(&todo);
    return status;
}

/* What is there under this name, and the directory that has the name. */
static stet_status place_name(stet_watch *w, const char *path) {
    char *dir = stet_file_dirname(path);
    struct stat st;
    int number;
    stet_status status = stet_watch_add(w, dir, NULL);
    stet_free(dir);
    if (status == STET_OK && stet_sys_stat(path, &st) == 0)
        status = S_ISDIR(st.st_mode) ? place_tree(w, path) : stet_watch_place(w, path, true, &number, NULL);
    return status;
}

void command_guard_end(command_run *c) {
    stet_watch_close(c->guard);
    c->guard = NULL;
}

void command_guard_begin(command_run *c) {
    command_guard_end(c);
    command_patterns_begin(c);
    if (c->attributed.len == 0 || stet_watch_open(&c->guard, NULL) != STET_OK)
        return;
    stet_status status = STET_OK;
    for (size_t i = 0; i < c->attributed.len && status == STET_OK; i++) {
        char *full = command_full_path(c->state, c->attributed.at[i].path), real[PATH_MAX];
        status = place_name(c->guard, full);
        if (status == STET_OK && realpath(full, real) && strcmp(real, full) != 0)
            status = place_name(c->guard, real);
        stet_free(full);
    }
    if (status != STET_OK)
        command_guard_end(c);
}

/* Does the event speak of a guarded file? In a directory that is guarded as a whole everything counts. */
static bool concerns(const command_run *c, const stet_watch_event *e) {
    if (e->attributes)
        return false;
    if (!*e->name || e->kind == STET_WATCH_OVERFLOW)
        return true;
    char *path = stet_file_join(e->dir, e->name), real[PATH_MAX];
    bool yes = false;
    for (size_t i = 0; i < c->attributed.len && !yes; i++) {
        char *full = command_full_path(c->state, c->attributed.at[i].path);
        size_t n = strlen(full);
        yes = strncmp(path, full, n) == 0 && (!path[n] || path[n] == '/');
        if (!yes && realpath(full, real)) {
            n = strlen(real);
            yes = strncmp(path, real, n) == 0 && (!path[n] || path[n] == '/');
        }
        stet_free(full);
    }
    stet_free(path);
    return yes;
}

bool command_guard_heard(command_run *c) {
    stet_watch_event e;
    bool heard = !c->guard;
    stet_status status = STET_OK;
    while (!heard && (status = stet_watch_next(c->guard, &e, NULL)) == STET_OK)
        heard = concerns(c, &e);
    heard |= status != STET_OK && status != STET_NOT_FOUND;
    command_guard_end(c);
    return heard;
}
