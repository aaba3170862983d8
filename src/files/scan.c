/* scan.c - looks at every followed file and brings the documents up to date. */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "files/glob.h"
#include "files/internal.h"
#include "files/path.h"
#include "memory/observe.h"
#include "os/proc.h"
#include "project/project.h"

#define THREADS     2
#define COMMIT_DOCS 20000
#define LIST_MAX    1000

extern char **environ;

/* What the document says. A damaged one says nothing that any file could be: it is written again. */
static stet_status document_look(stet_files *f, const char *id, stet_look *out, stet_error *err) {
    stet_doc_state doc;
    stet_status status = stet_space_load(f->space, 0, &(stet_docname){id, NULL}, -1, &doc, err);
    *out = (stet_look){0};
    if (status != STET_OK)
        return status;
    if (doc.exists && !stet_look_of_value(stet_value_get(doc.value, "value"), out))
        *out = (stet_look){.mode = 3};
    else if (doc.exists && stet_value_as_bool(stet_value_get(stet_value_get(doc.value, "value"), "made")))
        out->flags = STET_LOOK_MADE;
    stet_value_release(doc.value);
    return STET_OK;
}

/* F2: documents that somebody changed since the index was written. */
stet_status stet_files_reconcile(stet_files *f, stet_error *err) {
    int64_t head;
    stet_status status = stet_space_seq(f->space, &head, err);
    stet_map seen = {0};
    stet_buf key = STET_BUF(0);
    if (status == STET_OK && head < f->index.seq) /* an older copy of the space was put back */
        for (size_t i = 0; i < f->index.at.len; i++)
            stet_files_doubt(f, &f->index.at.at[i]);
    while (status == STET_OK && f->index.seq < head) {
        stet_arena arena = STET_ARENA_INIT;
        stet_commit_record *at;
        size_t count = 0;
        status = stet_space_commits(f->space, f->index.seq, head, 1000, &arena, &at, &count, err);
        for (size_t i = 0; i < count && status == STET_OK; i++) {
            f->index.seq = at[i].seq;
            for (size_t k = 0; at[i].branch == 0 && k < at[i].len; k++) {
                const char *id = at[i].at[k].name.id;
                if (stet_files_key(id, &key) && !stet_map_get(&seen, id, strlen(id)))
                    stet_map_put(&seen, id, strlen(id), (stet_slot){.n = 1});
            }
        }
        if (count == 0)
            f->index.seq = head;
        f->index.dirty = true;
        stet_arena_release(&arena);
    }
    f->index.seq = status == STET_OK ? head : f->index.seq;
    const void *id;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; status == STET_OK && stet_map_next(&seen, &i, &id, &len, &slot);) {
        char *text = stet_strndup(id, len);
        stet_look said;
        stet_files_key(text, &key);
        stet_files_entry *e = stet_files_index_add(&f->index, key.data, key.len);
        if (e->key[0] == 'g') {
            stet_files_doubt(f, e);
        } else {
            status = document_look(f, text, &said, err);
            if (!e->looked || !stet_look_same(&said, &e->look) || ((said.flags ^ e->look.flags) & STET_LOOK_MADE) != 0)
                stet_files_doubt(f, e);
        }
        stet_free(text);
    }
    stet_map_release(&seen);
    stet_buf_release(&key);
    return status;
}

/* Commits what is in the transaction, or, if `status` is not STET_OK, aborts it. */
static stet_status flush(stet_files_batch *b, stet_status status, stet_error *err) {
    stet_commit_result result;
    stet_files_index *x = &b->f->index;
    bool raced = false;
    if (b->tx && status == STET_OK) {
        stet_error mine = STET_ERROR_INIT;
        status = stet_tx_commit(b->tx, &result, &mine);
        raced = status == STET_CONFLICT && b->since != STET_FILES_TRUST;
        if (raced)
            stet_error_clear(&mine);
        else
            stet_error_move(err, &mine);
        /* Nobody else in between: nothing to compare next time. */
        if (status == STET_OK && result.changed && result.seq == x->seq + 1)
            x->seq = result.seq;
        if (status == STET_OK)
            status = stet_files_mirror(b->f, b->put.at, b->put.len, err);
    } else {
        stet_tx_abort(b->tx);
    }
    b->tx = NULL;
    for (size_t i = 0; i < b->put.len && status != STET_OK; i++) {
        stet_files_entry *e = stet_files_index_find(x, b->put.at[i], strlen(b->put.at[i]));
        if (e)
            stet_files_doubt(b->f, e);
    }
    stet_vec_clear(&b->put);
    b->raced |= raced;
    return raced ? STET_OK : status;
}

stet_status stet_files_batch_end(stet_files_batch *b, stet_status status, stet_error *err) {
    status = flush(b, status, err);
    stet_vec_release(&b->put);
    return status;
}

/* F3, up to now; and reads the document, so that the commit finds out about the rest. */
static stet_status is_behind(stet_files_batch *b, const stet_docname *name, bool *behind, stet_error *err) {
    int64_t doc = 0, seq = 0;
    stet_value seen;
    stet_error none = STET_ERROR_INIT;
    stet_status status = stet_tx_read(b->tx, NULL, name, STET_PATH_ROOT, STET_RECURSIVE, &seen, &none);
    if (status == STET_NOT_FOUND || status == STET_CORRUPT) { /* a damaged one is written anew */
        stet_error_clear(&none);
        status = STET_OK;
    }
    stet_error_move(err, &none);
    if (status == STET_OK)
        status = stet_space_doc(b->f->space, name, &doc, err);
    if (status == STET_OK && doc)
        status = stet_space_head_seq(b->f->space, 0, doc, &seq, err);
    *behind = status == STET_OK && seq > b->since;
    return status;
}

/* Puts (or, with null, drops) a document, unless F3 does not hold: then *done is false. Consumes `value`. */
static stet_status batch_put(stet_files_batch *b, stet_files_entry *e, const char *id, stet_value value, bool *done,
                             stet_error *err) {
    stet_status status = STET_OK;
    bool behind = false;
    stet_docname name = {id, NULL};
    *done = false;
    if (b->put.len >= COMMIT_DOCS) /* not when the last is put: its row is set after that */
        status = flush(b, STET_OK, err);
    if (status == STET_OK && !b->tx)
        status = stet_tx_begin(b->f->space, "", &b->tx, err);
    if (status != STET_OK) {
        b->tx = NULL;
        stet_value_release(value);
        return status;
    }
    if (b->since != STET_FILES_TRUST)
        status = is_behind(b, &name, &behind, err);
    if (status != STET_OK || behind) {
        stet_value_release(value);
        b->raced |= behind;
        stet_files_doubt(b->f, e);
        return status;
    }
    if (stet_value_type(value) == STET_TYPE_NULL) {
        status = stet_tx_drop(b->tx, &name, err);
    } else {
        stet_value envelope = stet_value_object();
        stet_value_put(&envelope, "value", value);
        status = stet_tx_put(b->tx, &name, envelope, err);
    }
    if (b->report && stet_value_count(b->report->list) < LIST_MAX)
        stet_value_push(&b->report->list, stet_value_string(id));
    *stet_vec_add(&b->put) = e->key;
    *done = status == STET_OK;
    return status;
}

/* Is it still as a command wrote it? Of a link that leads nowhere only the index tells. */
static bool is_still_made(const stet_files_entry *e, const stet_look *before, const stet_look *now) {
    const stet_look *was = !before->mode && e->looked && !e->look.mode ? &e->look : before;
    return (was->flags & STET_LOOK_MADE) && stet_look_unaltered(was, now);
}

/* F4 */
static bool is_pending(const stet_files *f, const char *path) {
    return f->busy && f->pending && f->pending(f->pending_ctx, path);
}

/* Makes the document of a file what `now` says, if it does not say so yet. */
stet_status stet_files_bring_up(stet_files_batch *b, stet_files_entry *e, const stet_look *now, stet_error *err) {
    stet_look before = e->look, kept = *now;
    bool made = false;
    bool was_made = e->looked && (e->look.flags & STET_LOOK_MADE) != 0;
    char *id = NULL;
    bool done = true;
    stet_status status = STET_OK;
    if (!e->looked || e->doubt) {
        id = stet_files_id(e);
        status = document_look(b->f, id, &before, err);
    }
    if (status == STET_OK)
        made = is_still_made(e, &before, now);
    if (status == STET_OK && !stet_look_same(&before, now) && e->key[0] == 'f' && is_pending(b->f, e->key + 1)) {
        stet_files_doubt(b->f, e);
        done = false;
    } else if (status == STET_OK && !stet_look_same(&before, now)) {
        stet_value v = now->mode ? stet_look_value(now) : stet_value_null();
        if (!id)
            id = stet_files_id(e);
        if (now->mode && made)
            stet_value_put(&v, "made", stet_value_bool(true));
        status = batch_put(b, e, id, v, &done, err);
        if (b->report && done) {
            b->report->appeared += before.mode == 0;
            b->report->vanished += now->mode == 0;
            b->report->changed += before.mode != 0 && now->mode != 0;
        }
    }
    if (status == STET_OK && done) {
        kept.flags &= ~(uint32_t)STET_LOOK_MADE;
        kept.flags |= made ? STET_LOOK_MADE : 0;
        if (!e->looked || e->doubt || memcmp(&e->look, &kept, sizeof kept) != 0)
            stet_files_index_touch(&b->f->index, e);
        bool looked = e->looked;
        e->look = kept;
        e->looked = true;
        e->doubt = false;
        if (looked && was_made != ((kept.flags & STET_LOOK_MADE) != 0))
            stet_files_made_or_not(b->f, e);
    }
    stet_free(id);
    return status;
}

stet_status stet_files_put_made(stet_files_batch *b, stet_files_entry *e, const stet_look *now, bool *news,
                                stet_error *err) {
    stet_look before;
    char *id = stet_files_id(e);
    stet_status status = document_look(b->f, id, &before, err);
    *news = status == STET_OK && (!stet_look_same(&before, now) || !(before.flags & STET_LOOK_MADE));
    if (*news) {
        bool done;
        stet_value v = stet_look_value(now);
        stet_value_put(&v, "made", stet_value_bool(true));
        status = batch_put(b, e, id, v, &done, err);
    }
    stet_free(id);
    return status;
}

stet_status stet_files_forget(stet_files *f, const char *const *ids, size_t count, stet_error *err) {
    stet_files_batch b = {.f = f, .since = STET_FILES_TRUST};
    stet_buf key = STET_BUF(0);
    bool done;
    stet_status status = stet_files_ready(f, err);
    if (status == STET_OK)
        status = stet_files_reconcile(f, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_files_entry *e = stet_files_key(ids[i], &key) ? stet_files_index_find(&f->index, key.data, key.len) : NULL;
        if (e && (!e->looked || e->doubt || e->look.mode))
            status = batch_put(&b, e, ids[i], stet_value_null(), &done, err);
    }
    status = stet_files_batch_end(&b, status, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_files_entry *e = stet_files_key(ids[i], &key) ? stet_files_index_find(&f->index, key.data, key.len) : NULL;
        if (e)
            stet_files_index_drop(&f->index, e);
    }
    stet_buf_release(&key);
    return status == STET_OK ? stet_files_save(f, err) : status;
}

/* Is it a file, links followed? And a directory? Links to directories are followed where that can't go round in
 * circles: by patterns that name each level, as a shell does. */
static void kind_of(const char *path, unsigned char type, bool follow, bool *file, bool *dir) {
    struct stat st;
    *file = type == DT_REG;
    *dir = type == DT_DIR;
    if (*file || *dir)
        return;
    bool link = type == DT_LNK || (type == DT_UNKNOWN && stet_sys_lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
    if ((link || type == DT_UNKNOWN) && stet_sys_stat(path, &st) == 0) {
        *file = S_ISREG(st.st_mode);
        *dir = S_ISDIR(st.st_mode) && (follow || !link);
    }
}

static bool is_own_directory(const stet_files *f, const char *path) {
    if (!*path || !stet_project_has_own())
        return false;
    char *full = stet_file_join(f->root, path);
    bool own = stet_project_leads_to_own(full);
    stet_free(full);
    return own;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* *directory: the first directory that matches, if it is NULL before; the caller frees it. */
static stet_status walk(stet_files *f, const char *pattern, stet_files_visit visit, void *ctx, stet_names *out,
                        char **directory, stet_error *err) {
    STET_VEC(char *) todo = {0};
    stet_status status = stet_glob_check(pattern, err);
    if (status != STET_OK)
        return status;
    const char *deep = strstr(pattern, "**");
    bool follow = !deep || deep >= pattern + stet_glob_len(pattern);
    char *start = stet_strndup(pattern, stet_glob_prefix(pattern));
    if (is_own_directory(f, start))
        stet_free(start);
    else
        *stet_vec_add(&todo) = start;
    while (todo.len > 0 && status == STET_OK) {
        char *below = todo.at[--todo.len], *full = *below ? stet_file_join(f->root, below) : stet_strdup(f->root);
        if (visit)
            visit(ctx, below, false);
        DIR *dir = stet_sys_opendir(full);
        if (!dir && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
            status = stet_fail_errno(err, errno, "cannot list %s", full);
        struct dirent *d;
        while (dir && status == STET_OK && (d = stet_sys_readdir(dir)) != NULL) {
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                continue;
            char *path = *below ? stet_file_join(below, d->d_name) : stet_strdup(d->d_name);
            bool match = stet_glob_match(pattern, path), descend = stet_glob_below(pattern, path), file, is_dir;
            if (match || descend) {
                char *at = stet_file_join(f->root, path);
                if (visit && (match || follow) && d->d_type != DT_REG && d->d_type != DT_DIR)
                    visit(ctx, path, true); /* a link that leads nowhere now may lead somewhere later */
                kind_of(at, d->d_type, follow, &file, &is_dir);
                if (match && file)
                    *stet_vec_add(out) = stet_strdup(path);
                else if (match && is_dir && !*directory)
                    *directory = stet_strdup(path);
                if (descend && is_dir && !is_own_directory(f, path))
                    *stet_vec_add(&todo) = stet_strdup(path);
                stet_free(at);
            }
            stet_free(path);
        }
        if (dir)
            closedir(dir);
        stet_free(below);
        stet_free(full);
    }
    for (size_t i = 0; i < todo.len; i++)
        stet_free(todo.at[i]);
    stet_vec_release(&todo);
    if (out->len)
        qsort(out->at, out->len, sizeof *out->at, by_bytes);
    return status;
}

stet_status stet_files_walk(stet_files *f, const char *pattern, stet_files_visit visit, void *ctx, stet_names *out,
                            stet_error *err) {
    char *directory = NULL;
    stet_status status = walk(f, pattern, visit, ctx, out, &directory, err);
    stet_free(directory);
    return status;
}

char *stet_files_only_directory(stet_files *f, const char *pattern) {
    stet_names names = {0};
    char *directory = NULL;
    bool none = walk(f, pattern, NULL, NULL, &names, &directory, NULL) == STET_OK && names.len == 0;
    if (!none) {
        stet_free(directory);
        directory = NULL;
    }
    stet_names_release(&names);
    return directory;
}

static stet_value link_to_file(const char *path) {
    char *id = stet_file_id(path);
    stet_value v = stet_file_link(id);
    stet_free(id);
    return v;
}

stet_status stet_files_writers(stet_files *f, const char *path, stet_numbers *out, stet_error *err) {
    const unsigned surfaces = STET_WRITE_KNOWN | STET_WRITE_DECLARED | STET_WRITE_ENVELOPE;
    char *id = stet_file_id(path);
    stet_docname doc = {id, ""};
    stet_status status = stet_observe_writers(f->space, 0, &doc, STET_PATH_ROOT, surfaces, out, err);
    if (status == STET_OK && out->len == 0 && f->branch_name)
        status = stet_observe_writers(f->space, f->branch, &doc, STET_PATH_ROOT, surfaces, out, err);
    stet_free(id);
    return status;
}

/* Does an action write it? */
static stet_status is_written(stet_files *f, const char *path, bool *out, stet_error *err) {
    stet_numbers found = {0};
    stet_status status = stet_files_writers(f, path, &found, err);
    *out = found.len > 0;
    stet_numbers_release(&found);
    return status;
}

bool stet_files_is_written_by(stet_files *f, const char *path, const stet_docname *piece, const char *prefix) {
    stet_arena arena = STET_ARENA_INIT;
    bool by = false;
    for (size_t end = strlen(path); end > 0 && !by;) { /* itself, or a directory that it is in */
        stet_numbers found = {0};
        char *part = stet_strndup(path, end);
        if (stet_files_writers(f, part, &found, NULL) == STET_OK)
            for (size_t i = 0; i < found.len && !by; i++) {
                stet_action_record r;
                by = stet_observe_brief(f->space, found.at[i], &arena, &r, NULL) == STET_OK &&
                     strcmp(r.key.piece, piece->id) == 0 && strcmp(r.key.scope, piece->scope) == 0 &&
                     strncmp(r.key.action, prefix, strlen(prefix)) == 0;
            }
        stet_numbers_release(&found);
        stet_free(part);
        while (end > 0 && path[end - 1] != '/')
            end--;
        end -= end > 0;
    }
    stet_arena_release(&arena);
    return by;
}

bool stet_files_is_written_by_other(stet_files *f, const char *path, const char *name) {
    stet_arena arena = STET_ARENA_INIT;
    stet_numbers found = {0};
    bool other = stet_files_writers(f, path, &found, NULL) != STET_OK;
    for (size_t i = 0; i < found.len && !other; i++) {
        stet_action_record r;
        other = stet_observe_brief(f->space, found.at[i], &arena, &r, NULL) != STET_OK;
        char *whose =
            other ? NULL
                  : stet_asprintf("%s%s%s/%s", strncmp(r.key.piece, "piece:", 6) == 0 ? r.key.piece + 6 : r.key.piece,
                                  *r.key.scope ? "@" : "", r.key.scope, r.key.action);
        other = other || strcmp(whose, name) != 0;
        stet_free(whose);
    }
    stet_numbers_release(&found);
    stet_arena_release(&arena);
    return other;
}

/* Is the file, or the directory, as a command wrote it? What was never looked at is what its document says. *noted:
 * just now. */
static stet_status is_made(stet_files *f, const char *path, size_t len, bool *out, bool *noted, stet_error *err) {
    stet_buf key = STET_BUF(0);
    stet_status status = STET_OK;
    stet_buf_char(&key, 'f');
    stet_buf_add(&key, path, len);
    const stet_files_entry *e = stet_files_index_find(&f->index, key.data, key.len);
    stet_look look = e ? e->look : (stet_look){0};
    if (e && !e->looked) {
        char *id = stet_files_id(e);
        status = document_look(f, id, &look, err);
        stet_free(id);
    }
    *out = (look.flags & STET_LOOK_MADE) != 0;
    *noted = e && e->noted;
    stet_buf_release(&key);
    return status;
}

/* Is it an output (*made), itself or as part of a directory, and one that nobody writes any more (*left)? */
static stet_status is_leftover(stet_files *f, const char *path, bool *made, bool *left, stet_error *err) {
    stet_status status = STET_OK;
    size_t len = strlen(path);
    *left = false;
    bool written = false, output = false;
    for (size_t end = len; end > 0 && status == STET_OK && !output;) {
        status = is_made(f, path, end, &output, &written, err);
        if (status == STET_OK && output && !written) {
            char *part = stet_strndup(path, end);
            status = is_written(f, part, &written, err);
            stet_free(part);
        }
        while (end > 0 && path[end - 1] != '/')
            end--;
        end -= end > 0;
    }
    *made |= output;
    *left = output && !written;
    return status;
}

bool stet_files_is_left(stet_files *f, const char *path) {
    bool made = false, left = false;
    return stet_files_ready(f, NULL) == STET_OK && is_leftover(f, path, &made, &left, NULL) == STET_OK && left;
}

/* Does the pattern match something in this directory? */
static bool matches_below(stet_files *f, const char *pattern, const char *dir) {
    size_t len = strlen(dir);
    stet_names names = {0};
    bool below = stet_files_walk(f, pattern, NULL, NULL, &names, NULL) != STET_OK;
    for (size_t i = 0; i < names.len && !below; i++)
        below = strncmp(names.at[i], dir, len) == 0 && names.at[i][len] == '/';
    stet_names_release(&names);
    return below;
}

char *stet_files_find_made(stet_files *f, const char *top, bool pattern, bool left,
                           bool (*skip)(void *ctx, const char *path), void *ctx) {
    size_t len = strlen(top);
    if (stet_files_ready(f, NULL) != STET_OK)
        return NULL;
    for (size_t i = 0; i < f->index.at.len; i++) {
        const stet_files_entry *e = &f->index.at.at[i];
        const char *path = e->key + 1;
        if (e->key[0] != 'f' || e->gone || !e->looked || !(e->look.flags & STET_LOOK_MADE) ||
            (!stet_look_there(&e->look) && !e->look.link)) /* a link that leads to nothing is listed, too */
            continue;
        bool match = pattern && stet_glob_match(top, path),
             below = pattern && !match && e->look.mode == STET_LOOK_DIRECTORY && stet_glob_below(top, path);
        if (pattern ? !match && !below : strncmp(path, top, len) != 0 || path[len] != '/')
            continue;
        if (skip && skip(ctx, path))
            continue;
        bool made = false, nobody = false;
        struct stat st;
        if (left && (is_leftover(f, path, &made, &nobody, NULL) != STET_OK || !nobody))
            continue;
        if (fstatat(f->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && (!below || matches_below(f, top, path)))
            return stet_strdup(path);
    }
    return NULL;
}

/* A walk that tells whether what it finds depends on links. */
typedef struct link_search {
    stet_files_visit visit; /* or NULL */
    void *ctx;
    bool linked;
} link_search;

static void visit_links(void *ctx, const char *path, bool link) {
    link_search *s = ctx;
    s->linked |= link;
    if (s->visit)
        s->visit(s->ctx, path, link);
}

/* Is the directory that a pattern begins with reached through a link? */
static bool begins_behind_link(const stet_files *f, const char *pattern) {
    char *start = stet_strndup(pattern, stet_glob_prefix(pattern)),
         *real = *start ? stet_path_real_dir(f->root, start) : NULL;
    bool linked = real && strcmp(real, start) != 0;
    stet_free(real);
    stet_free(start);
    return linked;
}

/* F4, for a pattern: what is pending is matched if the document says so. Returns whether that made a difference. */
static stet_status match_pending(stet_files *f, const stet_files_entry *e, stet_names *names, bool *differs,
                                 stet_error *err) {
    stet_map now = {0}, was = {0};
    stet_buf path = STET_BUF(0);
    stet_doc_state doc;
    char *id = stet_files_id(e);
    stet_status status = stet_space_load(f->space, 0, &(stet_docname){id, NULL}, -1, &doc, err);
    stet_free(id);
    if (status != STET_OK)
        return status;
    stet_value said = doc.exists ? stet_value_get(doc.value, "value") : stet_value_null();
    size_t count = stet_value_type(said) == STET_TYPE_OBJECT ? stet_value_count(said) : 0, kept = 0;
    for (size_t i = 0; i < names->len; i++)
        stet_map_put(&now, names->at[i], strlen(names->at[i]), (stet_slot){.n = 1});
    for (size_t i = 0; i < count; i++) {
        size_t len;
        const char *key = stet_value_key_at(said, i, &len);
        stet_buf_clear(&path);
        if (stet_path_unescape(key, len, &path))
            stet_map_put(&was, stet_buf_cstr(&path), path.len, (stet_slot){.n = 1});
    }
    for (size_t i = 0; i < names->len; i++) {
        char *name = names->at[i];
        if (!stet_map_get(&was, name, strlen(name)) && is_pending(f, name))
            stet_free(name);
        else
            names->at[kept++] = name;
    }
    *differs = kept < names->len;
    names->len = kept;
    const void *name;
    size_t len;
    stet_slot *slot;
    for (size_t i = 0; stet_map_next(&was, &i, &name, &len, &slot);) {
        char *text = stet_strndup(name, len);
        if (!stet_map_get(&now, name, len) && is_pending(f, text)) {
            *stet_vec_add(names) = text;
            *differs = true;
        } else {
            stet_free(text);
        }
    }
    if (names->len)
        qsort(names->at, names->len, sizeof *names->at, by_bytes);
    stet_map_release(&now);
    stet_map_release(&was);
    stet_buf_release(&path);
    stet_value_release(doc.value);
    return STET_OK;
}

stet_status stet_files_scan_glob(stet_files_batch *b, size_t index, stet_files_visit visit, void *ctx,
                                 stet_error *err) {
    stet_files *f = b->f;
    char *pattern = stet_strdup(f->index.at.at[index].key + 1);
    stet_names names = {0};
    link_search links = {visit, ctx, begins_behind_link(f, pattern)};
    stet_status status = stet_files_walk(f, pattern, visit_links, &links, &names, err);
    bool differs = false;
    if (status == STET_OK && f->busy)
        status = match_pending(f, &f->index.at.at[index], &names, &differs, err);
    stet_hasher *h = stet_hasher_begin();
    stet_buf key = STET_BUF(0);
    size_t kept = 0;
    bool made = false;
    char *dir = NULL, *real = NULL; /* that the last one was in, and where that lies */
    for (size_t i = 0; i < names.len; i++) {
        bool left = false;
        stet_buf_clear(&key);
        stet_buf_char(&key, 'f');
        stet_buf_str(&key, names.at[i]);
        stet_files_index_add(&f->index, key.data, key.len); /* a leftover too: it counts when somebody edits it */
        if (status == STET_OK)
            status = is_leftover(f, names.at[i], &made, &left, err);
        const char *slash = strrchr(names.at[i], '/'); /* names are sorted: many are in one directory */
        size_t dir_len = slash ? (size_t)(slash - names.at[i]) : 0;
        if (!dir || strlen(dir) != dir_len || strncmp(dir, names.at[i], dir_len) != 0) {
            stet_free(dir);
            stet_free(real);
            dir = stet_strndup(names.at[i], dir_len);
            real = dir_len > 0 ? stet_path_real_dir(f->root, dir) : NULL;
        }
        if (status == STET_OK && !left && real && strcmp(real, dir) != 0) { /* reached through a link */
            char *other = stet_asprintf("%s%s", real, *real ? slash : slash + 1);
            status = is_leftover(f, other, &made, &left, err);
            stet_free(other);
            /* A command may have written it by its other name since it was looked at. */
            stet_files_doubt(f, stet_files_index_add(&f->index, key.data, key.len));
        }
        if (left) {
            stet_free(names.at[i]);
            continue;
        }
        stet_hasher_add(h, names.at[i], strlen(names.at[i]) + 1);
        names.at[kept++] = names.at[i];
    }
    names.len = kept;
    stet_free(dir);
    stet_free(real);
    stet_files_entry *e = &f->index.at.at[index]; /* adding may have moved it; its place is the same */
    stet_look now = {.hash = stet_hasher_end(h),
                     .size = names.len,
                     .mode = STET_GLOB_LOOKED,
                     .flags = (made ? STET_LOOK_MADE : 0) | (links.linked ? STET_LOOK_LINKED : 0)};
    if (status == STET_OK && (!e->looked || e->doubt || !stet_hash_equal(now.hash, e->look.hash))) {
        stet_value v = stet_value_object();
        for (size_t i = 0; i < names.len; i++) {
            stet_buf_clear(&key);
            stet_path_escape(names.at[i], &key);
            stet_value_put_n(&v, key.data, key.len, link_to_file(names.at[i]));
        }
        char *id = stet_files_id(e);
        bool done;
        status = batch_put(b, e, id, v, &done, err);
        stet_free(id);
        if (b->report && done)
            b->report->changed++;
        if (done) {
            e->look = now;
            e->looked = true;
            e->doubt = false;
            stet_files_index_touch(&f->index, e);
        }
    } else if (status == STET_OK && e->look.flags != now.flags) {
        e->look = now;
        stet_files_index_touch(&f->index, e);
    }
    if (differs)
        stet_files_doubt(f, &f->index.at.at[index]);
    stet_buf_release(&key);
    stet_names_release(&names);
    stet_free(pattern);
    return status;
}

/* Those that what was found out about files has put in doubt. */
stet_status stet_files_scan_doubted(stet_files_batch *b, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < b->f->index.at.len && status == STET_OK; i++) {
        const stet_files_entry *e = &b->f->index.at.at[i];
        if (e->key[0] == 'g' && !e->gone && (!e->looked || e->doubt))
            status = stet_files_scan_glob(b, i, NULL, NULL, err);
    }
    return status;
}

typedef struct worker {
    stet_files *f;
    stet_look *now;
    size_t from, to, hashed;
    stet_status status;
    stet_error err;
} worker;

bool stet_files_is_variable(const stet_files_entry *e) {
    return e->key[0] == 'e' && strncmp(e->key + 1, STET_WAY_VARIABLE, strlen(STET_WAY_VARIABLE)) != 0;
}

stet_look stet_files_variable(const stet_files *f, const char *name) {
    const char *value = strcmp(name, STET_PLACE_VARIABLE) == 0 ? f->root : getenv(name);
    char *program = NULL;
    if (strncmp(name, STET_WAY_VARIABLE, strlen(STET_WAY_VARIABLE)) == 0)
        value = program = stet_path_detour(f->root, name + strlen(STET_WAY_VARIABLE));
    if (strncmp(name, STET_PATH_VARIABLE, strlen(STET_PATH_VARIABLE)) == 0)
        value = program = stet_proc_find(name + strlen(STET_PATH_VARIABLE), (const char *const *)environ, NULL);
    if (!value)
        return (stet_look){0};
    size_t len = strlen(value);
    stet_look look = {.hash = stet_hash_of(value, len), .size = len, .mode = STET_LOOK_FILE};
    stet_free(program);
    return look;
}

bool stet_files_tells(stet_files *f, const stet_files_entry *e) {
    const char *name = e->key + 1;
    if (f->no_variables || strchr(name, '='))
        return !f->no_variables || !stet_files_is_variable(e);
    stet_look now = stet_files_variable(f, name); /* this process may have set it since */
    stet_slot print = {0}, *slot = stet_map_get(&f->told, name, strlen(name));
    memcpy(&print.n, now.hash.bytes, sizeof print.n);
    if (slot && slot->n == print.n)
        return false;
    stet_map_put(&f->told, name, strlen(name), print);
    return true;
}

static void *look_at_range(void *ctx) {
    worker *w = ctx;
    for (size_t i = w->from; i < w->to && w->status == STET_OK; i++) {
        const stet_files_entry *e = &w->f->index.at.at[i];
        if (e->gone || (stet_files_is_variable(e) && w->f->no_variables))
            continue;
        if (e->key[0] == 'e')
            w->now[i] = stet_files_variable(w->f, e->key + 1);
        if (e->key[0] != 'f')
            continue;
        w->status = stet_look_at(w->f->root_fd, e->key + 1, e->looked ? &e->look : NULL, &w->now[i], &w->err);
        w->hashed += w->now[i].mode != 0 && (!e->looked || e->look.flags != w->now[i].flags ||
                                             e->look.ctime != w->now[i].ctime || e->look.mtime != w->now[i].mtime);
    }
    return NULL;
}

/* Looks at all files, on more than one thread when there are many. */
static stet_status look_at_all(stet_files *f, stet_look *now, size_t *hashed, stet_error *err) {
    worker w[THREADS] = {{0}};
    pthread_t threads[THREADS];
    bool started[THREADS] = {false};
    size_t n = f->index.at.len, parts = n < 64 ? 1 : THREADS;
    for (size_t i = 0; i < parts; i++) {
        w[i] = (worker){.f = f, .now = now, .from = n * i / parts, .to = n * (i + 1) / parts};
        if (i > 0)
            started[i] = pthread_create(&threads[i], NULL, look_at_range, &w[i]) == 0;
    }
    look_at_range(&w[0]);
    stet_status status = STET_OK;
    for (size_t i = 0; i < parts; i++) {
        if (i > 0 && started[i])
            pthread_join(threads[i], NULL);
        else if (i > 0)
            look_at_range(&w[i]);
        if (status == STET_OK)
            status = w[i].status;
        *hashed += w[i].hashed;
        stet_error_move(err, &w[i].err);
    }
    return status;
}

stet_status stet_files_scan(stet_files *f, stet_files_report *report, stet_error *err) {
    stet_files_report own = {0};
    if (!report)
        report = &own;
    *report = (stet_files_report){.list = stet_value_array()};
    stet_files_batch b = {.f = f, .report = report};
    bool begun;
    stet_files_look_begin(f, &begun);
    stet_status status = stet_files_ready(f, err);
    if (status == STET_OK)
        status = stet_files_reconcile(f, err);
    b.since = f->index.seq;
    size_t globs = f->index.at.len;
    for (size_t i = 0; i < globs && status == STET_OK; i++)
        if (f->index.at.at[i].key[0] == 'g' && !f->index.at.at[i].gone)
            status = stet_files_scan_glob(&b, i, NULL, NULL, err);
    stet_files_index_sort(&f->index);
    size_t n = f->index.at.len;
    stet_look *now = stet_alloc_zero((n ? n : 1) * sizeof *now);
    if (status == STET_OK)
        status = look_at_all(f, now, &report->hashed, err);
    for (size_t i = 0; i < n && status == STET_OK; i++) {
        stet_files_entry *e = &f->index.at.at[i];
        if (e->key[0] == 'g' || e->gone || (e->key[0] == 'e' && !stet_files_tells(f, e)))
            continue;
        if (!e->looked || e->doubt || memcmp(&e->look, &now[i], sizeof *now) != 0)
            status = stet_files_bring_up(&b, e, &now[i], err);
    }
    stet_free(now);
    if (status == STET_OK)
        status = stet_files_scan_doubted(&b, err);
    status = stet_files_batch_end(&b, status, err);
    if (status == STET_OK && b.raced)
        status = stet_files_look_at_rest(f, report, err);
    stet_files_look_end(f, begun);
    if (status == STET_OK)
        status = stet_files_mirror(f, NULL, 0, err);
    report->followed = n - f->index.gone;
    if (status == STET_OK && f->index.dirty)
        status = stet_files_save(f, err);
    if (report == &own)
        stet_value_release(own.list);
    return status;
}
