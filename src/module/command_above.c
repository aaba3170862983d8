/* command_above.c - was a directory above what a command reads moved away and back while the command ran?
 *
 *   A1. A result counts only if every directory on the way to what the command reads stayed where it was from before the
 *       command began until after it ended. Another directory may have been there for a while: the files tell nothing of
 *       that, since neither their content nor their times change. The supervisor has the kernel's events, so a process
 *       that takes the command over hears of it as well.
 *   A2. Where a path leads through links, the way is that of its name and that of what it leads to.
 *   A3. What a dependency file names is known after the command has ended. Directories above it that were not watched are
 *       judged by their times: moving one changes the change time alone, which a file that is added afterwards hides.
 *       Whatever the times do not prove to have stayed is watched while the command runs again.
 *   A4. An effect is not repeated for it.
 */

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "files/glob.h"
#include "files/path.h"
#include "module/command_run.h"
#include "os/file.h"

#define TICK_NS 10000000 /* times of files are behind the clock by so much at most */

/* Adds the directories above an absolute path, up to the first one that is known: what is above that is known, too. */
static void add_above(command_run *c, const char *path, stet_names *added) {
    char *dir = stet_strdup(path), *slash;
    while ((slash = strrchr(dir, '/')) != NULL && slash > dir) {
        *slash = 0;
        size_t len = strlen(dir);
        if (stet_map_get(&c->held, dir, len))
            break;
        stet_map_put(&c->held, dir, len, (stet_slot){.n = 1});
        if (added)
            *stet_vec_add(added) = stet_strdup(dir);
    }
    stet_free(dir);
}

/* A2. `below`: a name in the directory, which itself is on the way. */
static void add_way(command_run *c, const char *full, bool linked, stet_names *added) {
    char real[PATH_MAX], *dir = stet_file_dirname(full);
    bool known = stet_map_get(&c->held, dir, strlen(dir)) != NULL;
    add_above(c, full, added);
    if (!known && realpath(dir, real) && strcmp(real, dir) != 0) {
        char *below = stet_file_join(real, "x");
        add_above(c, below, added);
        stet_free(below);
    }
    if (linked && realpath(full, real) && strcmp(real, full) != 0)
        add_above(c, real, added);
    stet_free(dir);
}

static void add_file(command_run *c, const command_file *f, stet_names *added) {
    char *full = command_full_path(c->state, f->path);
    if (f->look.mode == STET_LOOK_DIRECTORY) {
        char *below = stet_file_join(full, "x");
        add_way(c, below, false, added);
        stet_free(below);
    } else {
        add_way(c, full, f->look.link != 0, added);
    }
    stet_free(full);
}

void command_above_list(command_run *c) {
    const command_files *lists[] = {&c->spec.inputs, &c->spec.scripts, &c->found};
    if (stet_run_is_effect(c->run))
        return; /* A4 */
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < lists[k]->len; i++)
            add_file(c, &lists[k]->at[i], NULL);
    for (size_t i = 0; i < c->spec.patterns.len; i++) {
        const char *path = c->spec.patterns.at[i].path;
        char *way = stet_asprintf("%.*s/x", (int)stet_glob_prefix(path), path),
             *full = command_full_path(c->state, way);
        add_way(c, full, false, NULL);
        stet_free(full);
        stet_free(way);
    }
}

void command_above_paths(const command_run *c, command_words *out) {
    const void *key;
    size_t len;
    stet_slot *slot;
    struct stat st;
    for (size_t i = 0; stet_map_next(&c->held, &i, &key, &len, &slot);) {
        char *dir = stet_strndup(key, len);
        if (stet_sys_stat(dir, &st) == 0 && S_ISDIR(st.st_mode)) /* what is not there yet is the way to nothing */
            command_words_add(out, dir);
        else
            stet_free(dir);
    }
}

/* A3. Nothing was moved into its place: it has been there, and what is in it has not changed since either. */
static bool has_stayed(const command_run *c, const char *dir) {
    int64_t since = c->launched_ns ? c->launched_ns : c->end.started_ns - TICK_NS;
    struct stat st;
    if (stet_sys_stat(dir, &st) != 0)
        return true; /* nothing was found there */
    int64_t changed = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
            modified = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    return changed < since || (changed == since && modified == changed); /* it was made just before */
}

char *command_above_moved(command_run *c) {
    stet_names added = {0};
    char *moved = NULL;
    if (stet_run_is_effect(c->run))
        return NULL;
    if (c->end.moved)
        moved = stet_strdup("a directory above what it reads");
    for (size_t i = 0; i < c->found.len; i++)
        add_file(c, &c->found.at[i], &added);
    for (size_t i = 0; i < added.len && !moved; i++)
        if (!has_stayed(c, added.at[i]))
            moved = stet_strdup(added.at[i]);
    stet_names_release(&added);
    return moved;
}
