/* orphan.c - what commands of drives that died have written, where no node goes on with them. */

#include "module/orphan.h"

#include <stdio.h>
#include <string.h>

#include "files/path.h"
#include "module/command_run.h"
#include "os/clock.h"
#include "os/sys.h"
#include "project/project.h"

#define WAIT_MS 20000 /* for the end of a command that was killed */
#define KEEP_NS ((int64_t)7 * 24 * 3600 * 1000000000)

typedef struct orphans {
    const char *root;
    stet_files *files;
    bool (*may_come)(void *ctx, const char *path);
    void *ctx;
    stet_local *local;
    bool left; /* some are there that a node may go on with */
} orphans;

/* What follows this word in a note, from the i-th note on; NULL: there is none. */
static const char *said(const stet_task *t, const char *word, size_t *i) {
    const char *text;
    size_t len = strlen(word);
    while ((text = stet_task_note(t, (*i)++)) != NULL)
        if (strncmp(text, word, len) == 0)
            return text + len;
    return NULL;
}

static bool is_of(const stet_task *t, const char *word, const char *name) {
    size_t i = 0;
    const char *text = said(t, word, &i);
    return text && strcmp(text, name) == 0;
}

/* The next output, or NULL. Caller frees. */
static char *next_output(const stet_task *t, size_t *i) {
    const char *text;
    while ((text = said(t, "output ", i)) != NULL) {
        stet_buf path = STET_BUF(0);
        if (stet_path_unescape(text, strlen(text), &path))
            return stet_buf_take(&path, NULL);
        stet_buf_release(&path);
    }
    return NULL;
}

/* Does no node of the graph write one of its outputs any more? Only the graph of its own branch tells. */
static bool is_gone(const orphans *o, const stet_task *t) {
    bool gone = false;
    char *path;
    if (!is_of(t, "branch ", stet_files_branch(o->files)))
        return false;
    for (size_t i = 0; !gone && (path = next_output(t, &i)) != NULL; stet_free(path))
        gone = !o->may_come(o->ctx, path);
    return gone;
}

/* Was it written while the command ran? By either time: a copy may have kept the time of the original, and another name
 * for the file changes the other one. */
static bool is_from(const struct stat *st, int64_t from, int64_t to) {
    int64_t written = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
    int64_t changed = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
    return (written >= from && written <= to) || (changed >= from && changed <= to);
}

/* A directory to which somebody has added something since is claimed file by file. */
static stet_status claim(const orphans *o, const char *path, int64_t from, int64_t to, stet_error *err) {
    struct stat st;
    if (fstatat(stet_files_root(o->files), path, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return STET_OK;
    if (is_from(&st, from, to))
        return stet_files_claim(o->files, path, err);
    if (!S_ISDIR(st.st_mode))
        return STET_OK;
    stet_names names = {0};
    char *full = path[0] == '/' ? stet_strdup(path) : stet_file_join(o->root, path);
    stet_status status = stet_file_list(full, &names, err);
    for (size_t i = 0; i < names.len && status == STET_OK; i++) {
        char *below = stet_file_join(path, names.at[i]);
        status = claim(o, below, from, to, err);
        stet_free(below);
    }
    stet_names_release(&names);
    stet_free(full);
    return status;
}

static stet_status claim_all(const orphans *o, const stet_task *t, stet_error *err) {
    const stet_task_end *e = stet_task_exit(t);
    stet_status status = STET_OK;
    size_t at = 0;
    const char *launched = said(t, "launched ", &at);
    long long from = 0;
    char *path;
    if (launched && sscanf(launched, "%lld", &from) != 1)
        from = 0;
    int64_t to = e->state == STET_TASK_ENDED ? e->ended_ns : INT64_MAX; /* nobody knows when it ended */
    for (size_t i = 0; status == STET_OK && (path = next_output(t, &i)) != NULL; stet_free(path)) {
        char *real = command_real_output(o->root, path);
        status = claim(o, path, from, to, err);
        if (status == STET_OK && real)
            status = claim(o, real, from, to, err);
        stet_free(real);
    }
    return status;
}

/* R1. Returns whether any is still there. */
static bool end_gone(orphans *o, bool first) {
    bool any = false;
    for (size_t i = stet_local_count(o->local); i-- > 0;) {
        stet_task *t = stet_local_at(o->local, i);
        if (!t || stet_task_exit(t)->state != STET_TASK_RUNNING || !is_of(t, "space ", stet_files_space(o->files)))
            continue;
        if (!is_gone(o, t)) {
            o->left = true;
            continue;
        }
        if (first)
            stet_local_cancel(o->local, t, 0);
        any = true;
    }
    return any;
}

static stet_status take(orphans *o, stet_error *err) {
    stet_status status = STET_OK;
    int64_t until = stet_clock_monotonic_us() + (int64_t)WAIT_MS * 1000;
    for (bool first = true; status == STET_OK && end_gone(o, first); first = false) {
        if (stet_clock_monotonic_us() > until)
            return stet_fail(err, STET_BUSY, "a command that is gone from the graph still runs, and does not end");
        stet_clock_sleep_ms(5);
        status = stet_local_look(o->local, err);
    }
    for (size_t i = stet_local_count(o->local); status == STET_OK && i-- > 0;) {
        stet_task *t = stet_local_at(o->local, i);
        const stet_task_end *e = t ? stet_task_exit(t) : NULL;
        if (!t || e->state == STET_TASK_RUNNING || !is_of(t, "space ", stet_files_space(o->files)))
            continue;
        if (e->state != STET_TASK_REFUSED)
            status = claim_all(o, t, err);
        if (status == STET_OK && (is_gone(o, t) || stet_clock_ns() - e->started_ns > KEEP_NS))
            stet_local_collected(o->local, t);
        else
            o->left = true;
    }
    return status;
}

stet_status stet_orphans_take(stet_project *p, stet_files *files, bool (*may_come)(void *ctx, const char *path),
                              void *ctx, bool *left, stet_error *err) {
    orphans o = {.root = stet_project_root(p), .files = files, .may_come = may_come, .ctx = ctx};
    char *dir = stet_project_path(p, "local/exec"), *path = stet_project_path(p, STET_FILES_COMMANDS_LOCK);
    stet_lock *lock = NULL;
    stet_status status = stet_file_exists(dir) ? stet_local_open(dir, &o.local, err) : STET_OK;
    if (o.local && !stet_local_alone(o.local)) {
        status = stet_lock_open(path, STET_LOCK_PLAIN, &lock, err);
        bool mine = status == STET_OK && stet_files_take_commands(lock, NULL) == STET_OK;
        if (mine)
            status = stet_local_turn(o.local, err);
        if (mine && status == STET_OK)
            status = stet_local_look(o.local, err);
        if (mine && status == STET_OK)
            status = take(&o, err);
    }
    *left = o.left;
    stet_local_close(o.local);
    stet_lock_close(lock);
    stet_free(path);
    stet_free(dir);
    return status;
}
