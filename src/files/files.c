/* files.c - opens the files of a project, and records which ones are followed. */

#include "files/files.h"

#include <errno.h>
#include <string.h>

#include "files/glob.h"
#include "files/internal.h"
#include "files/path.h"
#include "os/clock.h"

#define DIR_OF_SPACE "local/files/%s"

static bool has_prefix(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool stet_files_key(const char *id, stet_buf *key) {
    size_t n = strcspn(id, ":") + 1;
    stet_buf_clear(key);
    if (has_prefix(id, STET_FILE_PREFIX))
        stet_buf_char(key, 'f');
    else if (has_prefix(id, STET_GLOB_PREFIX))
        stet_buf_char(key, 'g');
    else if (has_prefix(id, STET_ENV_PREFIX))
        stet_buf_char(key, 'e');
    else
        return false;
    return stet_path_unescape(id + n, strlen(id + n), key);
}

char *stet_files_id(const stet_files_entry *e) {
    stet_buf b = STET_BUF(0);
    stet_buf_str(&b, e->key[0] == 'f' ? STET_FILE_PREFIX : e->key[0] == 'g' ? STET_GLOB_PREFIX : STET_ENV_PREFIX);
    stet_path_escape(e->key + 1, &b);
    return stet_buf_take(&b, NULL);
}

/* Follows whatever has a document. */
static stet_status rebuild(stet_files *f, const char *prefix, stet_error *err) {
    stet_docname after = {0};
    char *last = NULL;
    bool more = true;
    stet_status status = STET_OK;
    stet_buf key = STET_BUF(0);
    while (more && status == STET_OK) {
        stet_arena arena = STET_ARENA_INIT;
        stet_doc_info *at;
        size_t count = 0;
        stet_doc_filter filter = {.prefix = prefix, .scope = "", .after = last ? &after : NULL, .limit = 1000};
        status = stet_space_list(f->space, 0, &filter, &arena, &at, &count, &more, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            if (stet_files_key(at[i].name.id, &key))
                stet_files_index_add(&f->index, key.data, key.len);
            if (i + 1 == count) {
                stet_free(last);
                last = stet_strdup(at[i].name.id);
                after = (stet_docname){last, ""};
            }
        }
        more = more && count > 0;
        stet_arena_release(&arena);
    }
    stet_free(last);
    stet_buf_release(&key);
    return status;
}

stet_status stet_files_open(stet_project *p, stet_space *s, stet_files **out, stet_error *err) {
    stet_files *f = stet_alloc_zero(sizeof *f);
    char *dir = stet_asprintf(DIR_OF_SPACE, stet_space_name(s));
    f->space = s;
    f->fresh = stet_value_null();
    f->root = stet_strdup(stet_project_root(p));
    f->dir = stet_project_path(p, dir);
    f->commands_path = stet_project_path(p, STET_FILES_COMMANDS_LOCK);
    stet_free(dir);
    f->root_fd = stet_sys_open(f->root, O_RDONLY | O_DIRECTORY, 0);
    if (f->root_fd < 0) {
        stet_status status = stet_fail_errno(err, errno, "cannot open %s", f->root);
        stet_files_close(f);
        return status;
    }
    *out = f;
    return STET_OK;
}

stet_status stet_files_ready(stet_files *f, stet_error *err) {
    if (f->loaded)
        return STET_OK;
    stet_error inner = STET_ERROR_INIT;
    stet_status status = stet_files_index_load(f->dir, stet_space_uuid(f->space), &f->index, &inner);
    if (status == STET_NOT_FOUND || status == STET_CORRUPT) {
        f->lost = true;
        stet_error_clear(&inner);
        status = rebuild(f, STET_FILE_PREFIX, &inner);
        if (status == STET_OK)
            status = rebuild(f, STET_GLOB_PREFIX, &inner);
        if (status == STET_OK)
            status = rebuild(f, STET_ENV_PREFIX, &inner);
        if (status == STET_OK)
            status = stet_space_seq(f->space, &f->index.seq, &inner);
        f->index.dirty = true; /* so that the next start does not find it lost again */
    }
    f->loaded = status == STET_OK;
    if (status != STET_OK)
        stet_files_index_release(&f->index);
    stet_error_move(err, &inner);
    return status;
}

/* For functions that can't fail: the next one that can tells. */
static bool ready(stet_files *f) {
    return f->loaded || (f->broken.status == STET_OK && stet_files_ready(f, &f->broken) == STET_OK);
}

void stet_files_close(stet_files *f) {
    if (!f)
        return;
    stet_files_index_release(&f->index);
    if (f->root_fd >= 0)
        stet_sys_close(f->root_fd);
    stet_error_clear(&f->broken);
    stet_value_release(f->fresh);
    stet_map_release(&f->told);
    stet_names_release(&f->dead);
    stet_lock_close(f->commands);
    stet_free(f->commands_path);
    stet_free(f->unsettled);
    stet_free(f->branch_name);
    stet_free(f->root);
    stet_free(f->dir);
    stet_free(f);
}

bool stet_files_was_lost(stet_files *f) {
    return ready(f) && f->lost;
}

const char *stet_files_space(const stet_files *f) {
    return stet_space_name(f->space);
}

const char *stet_files_branch(const stet_files *f) {
    return f->branch_name ? f->branch_name : "";
}

int stet_files_root(const stet_files *f) {
    return f->root_fd;
}

void stet_files_set_pending(stet_files *f, bool (*pending)(void *ctx, const char *path), void *ctx) {
    f->pending = pending;
    f->pending_ctx = ctx;
}

stet_status stet_files_commands(stet_files *f, stet_lock **out, stet_error *err) {
    stet_status status = STET_OK;
    if (!f->commands) {
        char *dir = stet_file_dirname(f->commands_path);
        status = stet_file_mkdirs(dir, 0755, err);
        if (status == STET_OK)
            status = stet_lock_open(f->commands_path, STET_LOCK_PLAIN, &f->commands, err);
        stet_free(dir);
    }
    *out = status == STET_OK ? f->commands : NULL;
    return status;
}

#define SCAN_MS 60000

stet_status stet_files_take_commands(stet_lock *lock, stet_error *err) {
    for (int ms = 0; ms < SCAN_MS; ms++) {
        stet_status status = stet_lock_take(lock, STET_LOCK_EXCLUSIVE, 0, NULL);
        if (status != STET_BUSY)
            return status == STET_OK ? status : stet_lock_take(lock, STET_LOCK_EXCLUSIVE, 0, err);
        if (stet_lock_take(lock, STET_LOCK_SHARED, 0, NULL) != STET_OK)
            break;
        stet_lock_drop(lock);
        stet_clock_sleep_ms(1);
    }
    return stet_lock_take(lock, STET_LOCK_EXCLUSIVE, 0, err);
}

void stet_files_look_begin(stet_files *f, bool *begun) {
    stet_lock *lock;
    *begun = false;
    if (f->busy || stet_files_commands(f, &lock, NULL) != STET_OK || stet_lock_held(lock))
        return; /* what can't be locked is looked at as it is: at worst something runs once more */
    *begun = true;
    f->busy = stet_lock_take(lock, STET_LOCK_SHARED, 0, NULL) == STET_BUSY;
}

void stet_files_look_end(stet_files *f, bool begun) {
    if (!begun)
        return;
    if (!f->busy)
        stet_lock_drop(f->commands);
    f->busy = false;
}

stet_status stet_files_follow(stet_files *f, const char *id, stet_error *err) {
    stet_buf key = STET_BUF(0);
    stet_status status = stet_files_ready(f, err);
    if (status == STET_OK && stet_files_key(id, &key))
        stet_files_index_add(&f->index, key.data, key.len);
    else if (status == STET_OK)
        status = stet_fail(err, STET_INVALID, "\"%.200s\" is no document of a file", id);
    stet_buf_release(&key);
    return status;
}

static stet_files_entry *entry_of(stet_files *f, const char *path, bool add) {
    stet_buf key = STET_BUF(0);
    stet_buf_char(&key, 'f');
    stet_buf_str(&key, path);
    stet_files_entry *e =
        add ? stet_files_index_add(&f->index, key.data, key.len) : stet_files_index_find(&f->index, key.data, key.len);
    stet_buf_release(&key);
    return e;
}

bool stet_files_known(stet_files *f, const char *path, stet_look *out) {
    const stet_files_entry *e = ready(f) ? entry_of(f, path, false) : NULL;
    if (!e || !e->looked)
        return false;
    *out = e->look;
    return true;
}

/* Patterns stand behind everything else in what is sorted. */
static stet_files_entry *next_pattern(stet_files *f, size_t *at) {
    stet_files_index *x = &f->index;
    if (*at == 0 && x->sorted > 0) {
        size_t high = x->sorted;
        while (*at < high) {
            size_t middle = *at + (high - *at) / 2;
            if (x->at.at[middle].key[0] < 'g')
                *at = middle + 1;
            else
                high = middle;
        }
    }
    while (*at < x->at.len) {
        stet_files_entry *e = &x->at.at[(*at)++];
        if (e->key[0] == 'g' && !e->gone)
            return e;
    }
    return NULL;
}

void stet_files_doubt(stet_files *f, stet_files_entry *e) {
    e->doubt = true;
    stet_files_index_touch(&f->index, e);
}

/* Patterns that can match the path or, of a directory, something below it. */
static void doubt_patterns(stet_files *f, const char *path, bool directory) {
    stet_files_entry *e;
    for (size_t at = 0; (e = next_pattern(f, &at)) != NULL;)
        if (!e->doubt && (stet_glob_match(e->key + 1, path) || (directory && stet_glob_below(e->key + 1, path))))
            stet_files_doubt(f, e);
}

/* Directories above it, and what is below it. */
static void doubt_around(stet_files *f, const char *path, bool directory) {
    stet_files_index *x = &f->index;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        char *above = stet_strndup(path, (size_t)(slash - path));
        stet_files_entry *e = entry_of(f, above, false);
        stet_free(above);
        if (e)
            stet_files_doubt(f, e);
    }
    size_t len = strlen(path);
    for (size_t i = 0; directory && i < x->at.len; i++) {
        stet_files_entry *e = &x->at.at[i];
        if (e->key[0] == 'f' && !e->gone && e->key_len > len + 1 && e->key[len + 1] == '/' &&
            memcmp(e->key + 1, path, len) == 0)
            stet_files_doubt(f, e);
    }
}

void stet_files_made_or_not(stet_files *f, const stet_files_entry *e) {
    doubt_patterns(f, e->key + 1, e->look.mode == STET_LOOK_DIRECTORY);
}

void stet_files_note(stet_files *f, const char *path, const stet_look *look) {
    if (!ready(f))
        return;
    stet_files_entry *e = entry_of(f, path, true);
    bool directory = look->mode == STET_LOOK_DIRECTORY || (e->looked && e->look.mode == STET_LOOK_DIRECTORY);
    bool other = !e->looked || directory || stet_look_there(&e->look) != stet_look_there(look) ||
                 ((e->look.flags ^ look->flags) & STET_LOOK_MADE) != 0;
    f->wrote |= !e->looked || !stet_look_same(&e->look, look);
    e->look = *look;
    e->looked = true;
    e->doubt = f->branch_name != NULL; /* the document that says so is not on the default branch */
    e->noted = stet_look_there(look);
    stet_files_index_touch(&f->index, e);
    if (other)
        doubt_patterns(f, path, directory);
    doubt_around(f, path, directory);
}

/* Actions that read a directory above it have taken it for a source. The document of the directory does not change with
 * whose file it is. */
static stet_status distrust_above(stet_files *f, const char *path, stet_error *err) {
    stet_status status = STET_OK;
    for (const char *slash = strchr(path, '/'); slash && status == STET_OK; slash = strchr(slash + 1, '/')) {
        char *dir = stet_strndup(path, (size_t)(slash - path)), *id = stet_file_id(dir);
        stet_numbers readers = {0};
        stet_arena arena = STET_ARENA_INIT;
        status = stet_observe_readers(f->space, f->branch, &(stet_docname){id, ""}, STET_PATH_ROOT, STET_VALUE,
                                      &readers, err);
        for (size_t i = 0; i < readers.len && status == STET_OK; i++) {
            stet_action_record r;
            status = stet_observe_brief(f->space, readers.at[i], &arena, &r, err);
            if (status == STET_OK)
                status = stet_observe_distrust(f->space, f->branch, &r.key, 1, STET_REASON_LEFT, err);
        }
        stet_arena_release(&arena);
        stet_numbers_release(&readers);
        stet_free(id);
        stet_free(dir);
    }
    return status;
}

stet_status stet_files_claim(stet_files *f, const char *path, stet_error *err) {
    stet_files_batch b = {.f = f, .since = STET_FILES_TRUST};
    stet_look now;
    bool news = false;
    stet_status status = stet_files_ready(f, err);
    if (status == STET_OK)
        status = stet_look_at(f->root_fd, path, NULL, &now, err);
    if (status != STET_OK || !stet_look_there(&now))
        return status;
    now.flags |= STET_LOOK_MADE;
    status = stet_files_put_made(&b, entry_of(f, path, true), &now, &news, err);
    if (status == STET_OK && news)
        status = distrust_above(f, path, err);
    status = stet_files_batch_end(&b, status, err);
    if (status == STET_OK) {
        stet_files_note(f, path, &now);
        entry_of(f, path, false)->noted = false; /* no command of this process has written it */
    }
    return status;
}

stet_status stet_files_update(stet_files *f, const char *const *paths, const stet_look *looks, size_t count,
                              stet_error *err) {
    stet_files_batch b = {.f = f, .since = STET_FILES_TRUST};
    stet_status status = stet_files_ready(f, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_files_entry *e = entry_of(f, paths[i], true);
        stet_look now;
        if (looks)
            now = looks[i];
        else
            status = stet_look_at(f->root_fd, paths[i], e->looked ? &e->look : NULL, &now, err);
        if (status == STET_OK)
            status = stet_files_bring_up(&b, entry_of(f, paths[i], true), &now, err);
    }
    return stet_files_batch_end(&b, status, err);
}

bool stet_files_in_doubt(stet_files *f, const char *id) {
    stet_buf key = STET_BUF(0);
    const stet_files_entry *e =
        ready(f) && stet_files_key(id, &key) ? stet_files_index_find(&f->index, key.data, key.len) : NULL;
    stet_buf_release(&key);
    return e && (e->doubt || !e->looked);
}

bool stet_files_is_linked(stet_files *f, const char *id) {
    stet_buf key = STET_BUF(0);
    const stet_files_entry *e =
        ready(f) && stet_files_key(id, &key) ? stet_files_index_find(&f->index, key.data, key.len) : NULL;
    stet_buf_release(&key);
    return !e || e->doubt || !e->looked || (e->look.flags & STET_LOOK_LINKED) != 0;
}

bool stet_files_is_stale(stet_files *f, const char *path) {
    const stet_files_entry *e = ready(f) ? entry_of(f, path, false) : NULL;
    return e && (e->doubt || !e->looked) && !e->noted;
}

bool stet_files_follows(stet_files *f, const char *id) {
    stet_buf key = STET_BUF(0);
    bool follows = ready(f) && stet_files_key(id, &key) && stet_files_index_find(&f->index, key.data, key.len);
    stet_buf_release(&key);
    return follows;
}

bool stet_files_is_made(stet_files *f, const char *path) {
    bool made = false;
    for (size_t end = strlen(path); end > 0 && !made && ready(f);) {
        char *part = stet_strndup(path, end);
        const stet_files_entry *e = entry_of(f, part, false);
        made = e && e->looked && (e->look.flags & STET_LOOK_MADE) != 0;
        stet_free(part);
        while (end > 0 && path[end - 1] != '/')
            end--;
        end -= end > 0;
    }
    return made;
}

void stet_files_unmatched(stet_files *f, stet_names *out) {
    const stet_files_entry *e;
    for (size_t at = 0; ready(f) && (e = next_pattern(f, &at)) != NULL;)
        if (e->looked && e->look.size == 0)
            *stet_vec_add(out) = stet_strdup(e->key + 1);
}

void stet_files_distrust_pattern(stet_files *f, const char *pattern) {
    stet_files_entry *e;
    for (size_t at = 0; ready(f) && (e = next_pattern(f, &at)) != NULL;)
        if (strcmp(e->key + 1, pattern) == 0)
            stet_files_doubt(f, e);
}

/* The directory of files that are looked at one after the other: is it reached through a link? */
typedef struct directory {
    char *path; /* or NULL */
    bool linked;
} directory;

static bool is_behind_link(const stet_files *f, const char *path, directory *last) {
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (!len || path[0] == '/' || strncmp(path, "../", 3) == 0)
        return false;
    if (!last->path || strlen(last->path) != len || strncmp(last->path, path, len) != 0) {
        stet_free(last->path);
        last->path = stet_strndup(path, len);
        char *real = stet_path_real(f->root, last->path);
        last->linked = !real || strcmp(real, last->path) != 0;
        stet_free(real);
    }
    return last->linked;
}

void stet_files_nodes_changed(stet_files *f) {
    stet_files_entry *e;
    directory last = {0};
    for (size_t i = 0; ready(f) && i < f->index.at.len; i++) {
        e = &f->index.at.at[i];
        e->noted = false;
        if (f->wrote && !e->gone && e->key[0] != 'e' &&
            ((e->look.flags & STET_LOOK_LINKED) || (e->key[0] == 'f' && is_behind_link(f, e->key + 1, &last))))
            stet_files_doubt(f, e);
    }
    stet_free(last.path);
    f->wrote = false;
    for (size_t at = 0; ready(f) && (e = next_pattern(f, &at)) != NULL;)
        if (e->look.flags & STET_LOOK_MADE)
            stet_files_doubt(f, e);
}

stet_status stet_files_rematch(stet_files *f, stet_error *err) {
    stet_status status = stet_files_ready(f, err);
    return status == STET_OK ? stet_files_look_at_rest(f, NULL, err) : status;
}

stet_status stet_files_save(stet_files *f, stet_error *err) {
    bool reloaded;
    if (f->broken.status != STET_OK) {
        stet_error_move(err, &f->broken);
        return err ? err->status : STET_IO;
    }
    if (!f->loaded)
        return STET_OK;
    stet_status status = stet_files_reconcile(f, err);
    if (status != STET_OK || !f->index.dirty || stet_space_read_only(f->space))
        return status;
    status = stet_files_index_save(f->dir, stet_space_uuid(f->space), &f->index, &reloaded, err);
    f->reloads += reloaded;
    return status;
}

#define NOTE_PREFIX "unsettled"
#define NOTE_AGE_S  (365 * 86400)

static stet_status sync_file(const char *dir, const char *name, stet_error *err) {
    char *path = stet_file_join(dir, name);
    stet_status status = STET_OK;
    int fd = stet_sys_open(path, O_RDONLY, 0);
    if (fd < 0 && errno != ENOENT)
        status = stet_fail_errno(err, errno, "%s: cannot open", path);
    if (fd >= 0 && stet_sys_fsync(fd) != 0)
        status = stet_fail_errno(err, errno, "%s: cannot sync", path);
    if (fd >= 0)
        stet_sys_close(fd);
    stet_free(path);
    return status;
}

stet_status stet_files_keep(stet_files *f, stet_error *err) {
    stet_status status = stet_files_save(f, err);
    if (status != STET_OK || !f->loaded || stet_space_read_only(f->space))
        return status;
    status = sync_file(f->dir, "index", err);
    if (status == STET_OK)
        status = sync_file(f->dir, "index.log", err);
    return status == STET_OK && stet_file_exists(f->dir) ? stet_file_sync_dir(f->dir, err) : status;
}

stet_status stet_files_unsettle(stet_files *f, stet_error *err) {
    if (f->unsettled)
        return STET_OK;
    char *path = stet_file_temp_name(f->dir, NOTE_PREFIX);
    stet_status status = stet_file_mkdirs(f->dir, 0755, err);
    if (status == STET_OK)
        status = stet_file_append(path, "", 0, true, err);
    if (status == STET_OK)
        status = stet_file_sync_dir(f->dir, err);
    if (status == STET_OK)
        f->unsettled = path;
    else
        stet_free(path);
    return status;
}

bool stet_files_unsettled(stet_files *f) {
    stet_names names = {0};
    bool any = false;
    stet_names_release(&f->dead);
    if (!stet_file_exists(f->dir) || stet_file_list(f->dir, &names, NULL) != STET_OK)
        return false;
    for (size_t i = 0; i < names.len; i++) {
        struct stat st;
        char *path = stet_file_join(f->dir, names.at[i]);
        bool other = has_prefix(names.at[i], NOTE_PREFIX) && (!f->unsettled || strcmp(path, f->unsettled) != 0);
        any |= other;
        if (other && stet_sys_stat(path, &st) == 0 && stet_file_temp_is_dead(names.at[i], NOTE_AGE_S, &st))
            *stet_vec_add(&f->dead) = stet_strdup(path);
        stet_free(path);
    }
    stet_names_release(&names);
    return any;
}

stet_status stet_files_settle(stet_files *f, stet_error *err) {
    stet_status status = STET_OK;
    if (f->unsettled || f->dead.len > 0)
        status = stet_files_keep(f, err);
    if (status == STET_OK && f->unsettled) {
        status = stet_file_remove(f->unsettled, err);
        stet_free(f->unsettled);
        f->unsettled = NULL;
    }
    for (size_t i = 0; i < f->dead.len && status == STET_OK; i++)
        status = stet_file_remove(f->dead.at[i], err);
    stet_names_release(&f->dead);
    return status;
}

stet_status stet_files_catch_up(stet_files *f, stet_error *err) {
    bool reloaded;
    if (!f->loaded)
        return STET_OK;
    stet_status status = stet_files_index_catch_up(f->dir, stet_space_uuid(f->space), &f->index, &reloaded, err);
    f->reloads += reloaded;
    return status == STET_OK ? stet_files_mirror(f, NULL, 0, err) : status;
}

bool stet_files_at(stet_files *f, size_t index, char **id, stet_look *look) {
    if (!ready(f))
        return false;
    stet_files_index_sort(&f->index);
    if (index >= f->index.at.len)
        return false;
    const stet_files_entry *e = &f->index.at.at[index];
    *id = e->gone ? NULL : stet_files_id(e);
    *look = e->looked ? e->look : (stet_look){0};
    return true;
}
