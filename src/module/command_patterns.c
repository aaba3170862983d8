/* command_patterns.c - was anything added or removed, while a command ran, that one of its patterns can match?
 *
 *   W1. A result counts only if each pattern matched the same files from before the command began until after it ended.
 *       A file that existed for a moment may have been read, and leaves no trace: the kernel's file events report it.
 *   W2. Declared outputs are added and removed by the command, and do not count. They are removed, and their
 *       directories exist, before the watching begins.
 *   W3. For a pattern among the words of a shell string, the command itself may create and remove what matches. If the
 *       same path is reported a second time, it is taken for that, as with other files that words name
 *       (command_collect.c). Its outcome is not stored then, as it may be that of other inputs. A pattern of `files` is
 *       what the author says is read: there is no such exception.
 *   W5. A link on the way to what it reads that is replaced, even by the same link, has led nowhere for a moment: the
 *       result does not count. Files tell that by themselves when they are replaced; what lies behind a link does not.
 *   W4. A file that existed when the command began, and that is not among its inputs, was added too late to be among
 *       them: the result does not count.
 *
 * Where the kernel reports no events, a file that exists for a moment is not noticed. Where another process has started
 * the command, the times of directories tell whether anything was added or removed; the command may have done that.
 *
 * Rejected: comparing the times of directories, and watching only if they differ. Other commands write to the same
 * directories all the time, the times of directories are coarse, and adding a watch costs no more than a look.
 */

#include <string.h>

#include "files/glob.h"
#include "files/path.h"
#include "module/command_run.h"
#include "os/file.h"

#define TICK_NS 10000000 /* times of files are behind the clock by so much at most */

static bool is_at(const char *path, const char *top) {
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '/');
}

/* As it is written, or where links of the project are followed. */
static bool is_own(const command_run *c, const char *path) {
    const command_files *outputs = &c->spec.outputs;
    bool own = c->spec.depfile && strcmp(path, c->spec.depfile) == 0;
    for (size_t i = 0; i < outputs->len && !own; i++)
        own = is_at(path, outputs->at[i].path);
    char *real = own || !*path ? NULL : stet_path_real(c->state->root, path);
    for (size_t i = 0; i < outputs->len && !own && real; i++) {
        char *out = stet_path_real(c->state->root, outputs->at[i].path);
        own = out && is_at(real, out);
        stet_free(out);
    }
    stet_free(real);
    return own;
}

/* Is it as a command has written it, under one of its names? */
static bool is_made(const command_run *c, const char *path) {
    char *real = stet_path_real(c->state->root, path);
    bool made = stet_files_is_made(c->state->files, path) || (real && stet_files_is_made(c->state->files, real));
    stet_free(real);
    return made;
}

static void listen_to(void *ctx, const char *path, bool link) {
    command_run *c = ctx;
    if (link || !c->listens)
        return;
    char *full = *path ? command_full_path(c->state, path) : stet_strdup(c->state->root);
    stet_error err = STET_ERROR_INIT;
    int number;
    stet_status status = stet_watch_add_names(c->listens, full, &number, &err);
    if (status == STET_NOT_FOUND) { /* it may come to be: that is told by the directory above it */
        char *slash = strrchr(full, '/');
        if (*path && slash && slash > full + strlen(c->state->root)) {
            *slash = 0;
            listen_to(c, full + strlen(c->state->root) + 1, false);
        } else if (*path) {
            listen_to(c, "", false);
        }
    } else if (status != STET_OK && status != STET_INVALID) {
        stet_watch_close(c->listens);
        c->listens = NULL;
    }
    stet_error_clear(&err);
    stet_free(full);
}

static void note_paths(const command_files *files, stet_map *known) {
    for (size_t i = 0; i < files->len; i++)
        stet_map_put(known, files->at[i].path, strlen(files->at[i].path), (stet_slot){.n = 1});
}

/* W5. Links among the directories above a path. `last`: the directory that was looked at before; it is replaced. */
static void find_links(command_run *c, const char *path, char **last) {
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] != '/')
        n--;
    if (n < 2 || path[0] == '/' || strncmp(path, "../", 3) == 0 ||
        (*last && strlen(*last) == n && strncmp(*last, path, n) == 0))
        return;
    stet_free(*last);
    *last = stet_strndup(path, n);
    for (char *slash = strchr(*last, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *dir = stet_strndup(*last, (size_t)(slash - *last)), *full = command_full_path(c->state, dir);
        struct stat st;
        bool known = stet_sys_lstat(full, &st) != 0 || !S_ISLNK(st.st_mode);
        for (size_t i = 0; i < c->links.len && !known; i++)
            known = strcmp(c->links.at[i], dir) == 0;
        if (!known)
            *stet_vec_add(&c->links) = stet_strdup(dir);
        stet_free(full);
        stet_free(dir);
    }
}

static void find_all_links(command_run *c) {
    const command_files *lists[] = {&c->spec.inputs, &c->spec.scripts, &c->spec.patterns};
    char *last = NULL;
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < lists[k]->len; i++) {
            const char *path = lists[k]->at[i].path;
            char *way = k == 2 ? stet_asprintf("%.*s/", (int)stet_glob_prefix(path), path) : NULL;
            find_links(c, way ? way : path, &last);
            stet_free(way);
        }
    stet_free(last);
}

/* W3: was it heard of before? It is from now on. */
static bool heard_before(command_run *c, const char *path) {
    for (size_t i = 0; i < c->heard.len; i++)
        if (strcmp(c->heard.at[i], path) == 0)
            return true;
    *stet_vec_add(&c->heard) = stet_strdup(path);
    return false;
}

/* W4: does it count that this file is there? What a command has written is passed to this one by its node, and words find
 * it: what it is there for is told by its document, which may be stored only when this command has begun. */
static bool is_late(command_run *c, const command_file *pattern, const char *path) {
    if (pattern->matched)
        return !is_made(c, path);
    bool again = heard_before(c, path);
    c->unsure |= again;
    return !again;
}

void command_patterns_begin(command_run *c) {
    command_patterns_end(c);
    c->listening = true;
    c->unsure = false;
    if (stet_run_is_effect(c->run))
        return;
    find_all_links(c);
    if (c->spec.patterns.len == 0 && c->links.len == 0)
        return;
    if (stet_watch_open(&c->listens, NULL) != STET_OK)
        c->listens = NULL;
    for (size_t i = 0; i < c->links.len; i++) {
        char *dir = stet_file_dirname(c->links.at[i]);
        listen_to(c, strcmp(dir, ".") == 0 ? "" : dir, false);
        stet_free(dir);
    }
    stet_map known = {0};
    note_paths(&c->spec.inputs, &known);
    note_paths(&c->spec.scripts, &known);
    for (size_t i = 0; i < c->spec.patterns.len; i++) {
        const command_file *p = &c->spec.patterns.at[i];
        stet_names names = {0};
        stet_error none = STET_ERROR_INIT;
        if (stet_files_walk(c->state->files, p->path, listen_to, c, &names, &none) != STET_OK)
            stet_error_clear(&none); /* what can't be listed here can't be listed by the command */
        for (size_t k = 0; k < names.len && !c->late; k++)
            if (!stet_map_get(&known, names.at[k], strlen(names.at[k])) && !is_own(c, names.at[k]) &&
                is_late(c, p, names.at[k]))
                c->late = stet_strdup(names.at[k]); /* W4 */
        stet_names_release(&names);
    }
    stet_map_release(&known);
}

void command_patterns_end(command_run *c) {
    stet_watch_close(c->listens);
    stet_free(c->late);
    stet_names_release(&c->links);
    c->listens = NULL;
    c->late = NULL;
    c->listening = false;
}

/* Can one of the patterns match it, or something below it? */
static bool is_matched(command_run *c, const char *path, bool directory) {
    bool declared = false, word = false;
    for (size_t i = 0; i < c->spec.patterns.len && !declared; i++) {
        const command_file *p = &c->spec.patterns.at[i];
        if (!stet_glob_match(p->path, path) && !(directory && stet_glob_below(p->path, path)))
            continue;
        declared |= p->matched;
        word |= !p->matched;
    }
    bool again = word && heard_before(c, path);
    c->unsure |= again;
    return declared || (word && !again);
}

/* Is it a link, which may lead to a directory? */
static bool leads_on(const command_run *c, const char *path) {
    char *full = command_full_path(c->state, path);
    struct stat st;
    bool link = stet_sys_lstat(full, &st) == 0 && S_ISLNK(st.st_mode);
    stet_free(full);
    return link;
}

/* One thing that is listened to, where it is not known which was meant. */
static const char *what_is_heard(const command_run *c) {
    return c->spec.patterns.len > 0 ? c->spec.patterns.at[0].path : c->links.at[0];
}

/* What the event is about, if it counts. Caller frees. */
static char *matters(command_run *c, const stet_watch_event *e) {
    size_t root = strlen(c->state->root);
    if (e->kind == STET_WATCH_OVERFLOW)
        return stet_strdup(what_is_heard(c));
    const char *dir = strlen(e->dir) > root ? e->dir + root + 1 : "";
    char *path = !*e->name ? stet_strdup(dir) : *dir ? stet_file_join(dir, e->name) : stet_strdup(e->name);
    bool link = false;
    for (size_t i = 0; i < c->links.len; i++)
        link |= strcmp(c->links.at[i], path) == 0;
    if (!is_own(c, path) && (!*e->name || link || is_matched(c, path, e->is_dir || leads_on(c, path))))
        return path;
    stet_free(path);
    return NULL;
}

typedef struct times {
    const command_run *c;
    char *moved;
} times;

static void look_at_times(void *ctx, const char *path, bool link) {
    times *t = ctx;
    struct stat st;
    char *full = *path ? command_full_path(t->c->state, path) : stet_strdup(t->c->state->root);
    if (!link && !t->moved && stet_sys_stat(full, &st) == 0 &&
        (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec > t->c->end.started_ns - TICK_NS)
        t->moved = stet_strdup(*path ? path : ".");
    stet_free(full);
}

char *command_patterns_heard(command_run *c) {
    char *moved = NULL;
    stet_watch_event e;
    stet_status status = STET_OK;
    if (c->listening) {
        moved = c->late;
        c->late = NULL;
        while (c->listens && !moved && (status = stet_watch_next(c->listens, &e, NULL)) == STET_OK)
            moved = matters(c, &e);
        if (!moved && status != STET_OK && status != STET_NOT_FOUND)
            moved = stet_strdup(what_is_heard(c));
    } else if (!stet_run_is_effect(c->run)) {
        times t = {.c = c};
        for (size_t i = 0; i < c->spec.patterns.len; i++) {
            stet_names names = {0};
            stet_error none = STET_ERROR_INIT;
            if (stet_files_walk(c->state->files, c->spec.patterns.at[i].path, look_at_times, &t, &names, &none) !=
                STET_OK)
                stet_error_clear(&none);
            stet_names_release(&names);
        }
        moved = t.moved;
    }
    command_patterns_end(c);
    return moved;
}

stet_status command_patterns_match_again(const command_run *c, stet_error *err) {
    for (size_t i = 0; i < c->spec.patterns.len; i++)
        stet_files_distrust_pattern(c->state->files, c->spec.patterns.at[i].path);
    return stet_files_rematch(c->state->files, err);
}
