/* scan.c - looking at everything that is followed, and bringing documents up to date. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "files/glob.h"
#include "files/internal.h"
#include "files/path.h"

#define THREADS     2
#define COMMIT_DOCS 20000
#define LIST_MAX    1000

/* ---- Documents ------------------------------------------------------------------------------------------------ */

/* What the document says. A damaged one says nothing that any file could be: it is written again. */
static stet_status document_look(stet_files *f, const char *id, stet_look *out, stet_error *err) {
    stet_doc_state doc;
    stet_status status = stet_space_load(f->space, 0, &(stet_docname){id, NULL}, -1, &doc, err);
    *out = (stet_look){0};
    if (status != STET_OK)
        return status;
    if (doc.exists && !stet_look_of_value(stet_get(doc.value, "value"), out))
        *out = (stet_look){.mode = 3};
    stet_release(doc.value);
    return STET_OK;
}

static void in_doubt(stet_files *f, stet_files_entry *e) {
    e->doubt = true;
    stet_files_index_touch(&f->index, e);
}

/* F2: documents that somebody changed since the index was written. */
stet_status stet_files_reconcile(stet_files *f, stet_error *err) {
    int64_t head;
    stet_status status = stet_space_seq(f->space, &head, err);
    stet_map seen = {0};
    stet_buf key = STET_BUF(0);
    if (status == STET_OK && head < f->index.seq) /* an older copy of the space was put back */
        for (size_t i = 0; i < f->index.at.len; i++)
            in_doubt(f, &f->index.at.at[i]);
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
            in_doubt(f, e);
        } else {
            status = document_look(f, text, &said, err);
            if (!e->looked || !stet_look_same(&said, &e->look))
                in_doubt(f, e);
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
    if (b->tx && status == STET_OK) {
        status = stet_tx_commit(b->tx, &result, err);
        /* Nobody else in between: nothing to compare next time. */
        if (status == STET_OK && result.changed && result.seq == x->seq + 1)
            x->seq = result.seq;
    } else {
        stet_tx_abort(b->tx);
    }
    b->tx = NULL;
    for (size_t i = 0; i < b->put.len && status != STET_OK; i++) {
        stet_files_entry *e = stet_files_index_find(x, b->put.at[i], strlen(b->put.at[i]));
        if (e)
            in_doubt(b->f, e);
    }
    stet_vec_clear(&b->put);
    return status;
}

stet_status stet_files_batch_end(stet_files_batch *b, stet_status status, stet_error *err) {
    status = flush(b, status, err);
    stet_vec_release(&b->put);
    return status;
}

/* Puts (or, with null, drops) a document. Consumes `value`. */
static stet_status batch_put(stet_files_batch *b, const stet_files_entry *e, const char *id, stet_value value,
                             stet_error *err) {
    stet_status status = STET_OK;
    stet_docname name = {id, NULL};
    if (b->put.len >= COMMIT_DOCS) /* not when the last is put: its row is set after that */
        status = flush(b, STET_OK, err);
    if (status == STET_OK && !b->tx)
        status = stet_tx_begin(b->f->space, "", &b->tx, err);
    if (status != STET_OK) {
        b->tx = NULL;
        stet_release(value);
        return status;
    }
    if (stet_typeof(value) == STET_NULL) {
        status = stet_tx_drop(b->tx, &name, err);
    } else {
        stet_value envelope = stet_object();
        stet_put(&envelope, "value", value);
        status = stet_tx_put(b->tx, &name, envelope, err);
    }
    if (b->report && stet_count(b->report->list) < LIST_MAX)
        stet_push(&b->report->list, stet_string(id));
    *stet_vec_add(&b->put) = e->key;
    return status;
}

/* Makes the document of a file what `now` says, if it does not say so yet. */
stet_status stet_files_bring_up(stet_files_batch *b, stet_files_entry *e, const stet_look *now, stet_error *err) {
    stet_look before = e->look;
    char *id = NULL;
    stet_status status = STET_OK;
    if (!e->looked || e->doubt) {
        id = stet_files_id(e);
        status = document_look(b->f, id, &before, err);
    }
    if (status == STET_OK && !stet_look_same(&before, now)) {
        if (!id)
            id = stet_files_id(e);
        status = batch_put(b, e, id, now->mode ? stet_look_value(now) : stet_null(), err);
        if (b->report) {
            b->report->appeared += before.mode == 0;
            b->report->vanished += now->mode == 0;
            b->report->changed += before.mode != 0 && now->mode != 0;
        }
    }
    if (status == STET_OK) {
        if (!e->looked || e->doubt || memcmp(&e->look, now, sizeof *now) != 0)
            stet_files_index_touch(&b->f->index, e);
        e->look = *now;
        e->looked = true;
        e->doubt = false;
    }
    stet_free(id);
    return status;
}

stet_status stet_files_forget(stet_files *f, const char *const *ids, size_t count, stet_error *err) {
    stet_files_batch b = {.f = f};
    stet_buf key = STET_BUF(0);
    stet_status status = stet_files_ready(f, err);
    if (status == STET_OK)
        status = stet_files_reconcile(f, err);
    for (size_t i = 0; i < count && status == STET_OK; i++) {
        stet_files_entry *e = stet_files_key(ids[i], &key) ? stet_files_index_find(&f->index, key.data, key.len) : NULL;
        if (e && (!e->looked || e->doubt || e->look.mode))
            status = batch_put(&b, e, ids[i], stet_null(), err);
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

/* ---- Patterns ------------------------------------------------------------------------------------------------- */

/* Is it a file, links followed? And a directory, links not followed? */
static void kind_of(const char *path, unsigned char type, bool *file, bool *dir) {
    struct stat st;
    *file = type == DT_REG;
    *dir = type == DT_DIR;
    if (type == DT_LNK)
        *file = stet_sys_stat(path, &st) == 0 && S_ISREG(st.st_mode);
    if (type == DT_UNKNOWN && stet_sys_lstat(path, &st) == 0) {
        *dir = S_ISDIR(st.st_mode);
        *file = S_ISREG(st.st_mode) || (S_ISLNK(st.st_mode) && stet_sys_stat(path, &st) == 0 && S_ISREG(st.st_mode));
    }
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

stet_status stet_files_walk(stet_files *f, const char *pattern, stet_files_visit visit, void *ctx, stet_names *out,
                            stet_error *err) {
    STET_VEC(char *) todo = {0};
    stet_status status = stet_glob_check(pattern, err);
    if (status != STET_OK)
        return status;
    *stet_vec_add(&todo) = stet_strndup(pattern, stet_glob_prefix(pattern));
    while (todo.len > 0 && status == STET_OK) {
        char *below = todo.at[--todo.len], *full = *below ? stet_file_join(f->root, below) : stet_strdup(f->root);
        if (visit)
            visit(ctx, below, false);
        DIR *dir = stet_sys_opendir(full);
        if (!dir && errno != ENOENT && errno != ENOTDIR)
            status = stet_fail_errno(err, errno, "cannot list %s", full);
        struct dirent *d;
        while (dir && status == STET_OK && (d = stet_sys_readdir(dir)) != NULL) {
            if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
                continue;
            char *path = *below ? stet_file_join(below, d->d_name) : stet_strdup(d->d_name);
            bool match = stet_glob_match(pattern, path), descend = stet_glob_below(pattern, path), file, is_dir;
            if (match || descend) {
                char *at = stet_file_join(f->root, path);
                if (visit && match && d->d_type != DT_REG && d->d_type != DT_DIR)
                    visit(ctx, path, true); /* a link that leads nowhere now may lead to a file later */
                kind_of(at, d->d_type, &file, &is_dir);
                if (match && file)
                    *stet_vec_add(out) = stet_strdup(path);
                if (descend && is_dir)
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

static stet_value link_to_file(const char *path) {
    char *id = stet_file_id(path);
    stet_value v = stet_file_link(id);
    stet_free(id);
    return v;
}

stet_status stet_files_scan_glob(stet_files_batch *b, size_t index, stet_files_visit visit, void *ctx,
                                 stet_error *err) {
    stet_files *f = b->f;
    char *pattern = stet_strdup(f->index.at.at[index].key + 1);
    stet_names names = {0};
    stet_status status = stet_files_walk(f, pattern, visit, ctx, &names, err);
    stet_hasher *h = stet_hasher_begin();
    stet_buf key = STET_BUF(0);
    for (size_t i = 0; i < names.len; i++) {
        stet_hasher_add(h, names.at[i], strlen(names.at[i]) + 1);
        stet_buf_clear(&key);
        stet_buf_char(&key, 'f');
        stet_buf_str(&key, names.at[i]);
        stet_files_index_add(&f->index, key.data, key.len);
    }
    stet_files_entry *e = &f->index.at.at[index]; /* adding may have moved it; its place is the same */
    stet_look now = {.hash = stet_hasher_end(h), .size = names.len, .mode = STET_GLOB_LOOKED};
    if (status == STET_OK && (!e->looked || e->doubt || !stet_hash_equal(now.hash, e->look.hash))) {
        stet_value v = stet_object();
        for (size_t i = 0; i < names.len; i++) {
            stet_buf_clear(&key);
            stet_path_escape(names.at[i], &key);
            stet_put_n(&v, key.data, key.len, link_to_file(names.at[i]));
        }
        char *id = stet_files_id(e);
        status = batch_put(b, e, id, v, err);
        stet_free(id);
        if (b->report)
            b->report->changed++;
        if (status == STET_OK) {
            e->look = now;
            e->looked = true;
            e->doubt = false;
            stet_files_index_touch(&f->index, e);
        }
    }
    stet_buf_release(&key);
    stet_names_release(&names);
    stet_free(pattern);
    return status;
}

/* ---- The scan ------------------------------------------------------------------------------------------------- */

typedef struct worker {
    stet_files *f;
    stet_look *now;
    size_t from, to, hashed;
    stet_status status;
    stet_error err;
} worker;

stet_look stet_files_variable(const char *name) {
    const char *value = getenv(name);
    if (!value)
        return (stet_look){0};
    size_t len = strlen(value);
    return (stet_look){.hash = stet_hash_of(value, len), .size = len, .mode = STET_LOOK_FILE};
}

static void *look_at_range(void *ctx) {
    worker *w = ctx;
    for (size_t i = w->from; i < w->to && w->status == STET_OK; i++) {
        const stet_files_entry *e = &w->f->index.at.at[i];
        if (e->gone || (e->key[0] == 'e' && w->f->no_variables))
            continue;
        if (e->key[0] == 'e')
            w->now[i] = stet_files_variable(e->key + 1);
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
    *report = (stet_files_report){.list = stet_array()};
    stet_files_batch b = {.f = f, .report = report};
    stet_status status = stet_files_ready(f, err);
    if (status == STET_OK)
        status = stet_files_reconcile(f, err);
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
        if (e->key[0] == 'g' || e->gone || (e->key[0] == 'e' && f->no_variables))
            continue;
        if (!e->looked || e->doubt || memcmp(&e->look, &now[i], sizeof *now) != 0)
            status = stet_files_bring_up(&b, e, &now[i], err);
    }
    stet_free(now);
    status = stet_files_batch_end(&b, status, err);
    report->followed = n - f->index.gone;
    if (status == STET_OK && f->index.dirty)
        status = stet_files_save(f, err);
    if (report == &own)
        stet_release(own.list);
    return status;
}
