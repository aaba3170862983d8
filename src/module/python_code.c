/* python_code.c - files that a process of Python has imported or opened, compared with their documents. */

#include <string.h>

#include "files/path.h"
#include "module/bound.h"
#include "module/python.h"

void python_looks_release(python_looks *looks) {
    for (size_t i = 0; i < looks->len; i++)
        stet_free(looks->at[i].path);
    stet_vec_release(looks);
}

bool python_looks_add(python_state *s, stet_value list, python_looks *out) {
    if (stet_value_type(list) != STET_TYPE_ARRAY)
        return false;
    for (size_t i = 0; i < stet_value_count(list); i++) {
        stet_value pair = stet_value_at(list, i), path, state;
        size_t len, state_len;
        python_look look = {0};
        if (stet_value_type(pair) != STET_TYPE_ARRAY || stet_value_count(pair) != 2)
            return false;
        path = stet_value_at(pair, 0);
        state = stet_value_at(pair, 1);
        const char *text = stet_value_as_string(&path, &len), *print = stet_value_as_string(&state, &state_len);
        if (!text || strlen(text) != len)
            return false;
        if (print) {
            look.there = strcmp(print, "?") != 0;
            look.any = !stet_hash_of_hex(print, state_len, &look.hash);
        }
        if (stet_path_normal(s->root, "", text, &look.path, NULL) != STET_OK)
            continue; /* a file of stet's, or the project itself */
        *stet_vec_add(out) = look;
    }
    return true;
}

/* What the document of a file says in the run's snapshot; that it was asked is recorded, and so are the links on the way. */
static stet_status read_document(python_run *r, const char *path, stet_look *out, stet_error *err) {
    stet_value v;
    stet_error mine = STET_ERROR_INIT;
    char *id = stet_file_id(path);
    stet_status status = stet_run_read_doc(r->run, id, &v, &mine);
    *out = (stet_look){0};
    if (status == STET_OK && !stet_look_of_value(v, out))
        *out = (stet_look){.mode = 3}; /* damaged: no file is like that */
    if (status == STET_NOT_FOUND)
        status = STET_OK;
    else if (status != STET_OK)
        stet_error_move(err, &mine);
    stet_error_clear(&mine);
    stet_free(id);
    if (status == STET_OK)
        status = stet_bound_read_above(r->run, r->s->files, r->s->root, path, false, err);
    if (status == STET_OK)
        stet_bound_read_names(r->run, r->s->files, r->s->root, path);
    return status;
}

static bool agrees(const stet_look *said, const python_look *look) {
    return stet_look_there(said) == look->there &&
           (!look->there || look->any || stet_hash_equal(said->hash, look->hash));
}

static bool same(const stet_look *a, const stet_look *b) {
    return stet_look_there(a) == stet_look_there(b) &&
           (!stet_look_there(a) || (stet_hash_equal(a->hash, b->hash) && a->mode == b->mode));
}

/* For code of which no record is kept: what is there now. */
static bool is_on_disk(const python_state *s, const python_look *look) {
    char *full = stet_file_join(s->root, look->path);
    struct stat st;
    stet_hash hash;
    stet_error none = STET_ERROR_INIT;
    bool there = stat(full, &st) == 0, as_is = there == look->there;
    if (as_is && there && !look->any) {
        as_is = stet_file_hash(full, &hash, NULL, &none) == STET_OK && stet_hash_equal(hash, look->hash);
        stet_error_clear(&none);
    }
    stet_free(full);
    return as_is;
}

/* Files that nobody has followed before: their documents are made, all at once. */
static stet_status follow(python_run *r, const python_look *at, size_t count, stet_error *err) {
    STET_VEC(const char *) fresh = {0};
    stet_look known;
    stet_status status = STET_OK;
    for (size_t i = 0; i < count; i++)
        if (!stet_files_known(r->s->files, at[i].path, &known))
            *stet_vec_add(&fresh) = at[i].path;
    if (fresh.len > 0) {
        status = stet_files_update(r->s->files, fresh.at, NULL, fresh.len, err);
        if (status == STET_OK)
            status = stet_files_keep(r->s->files, err);
    }
    stet_vec_release(&fresh);
    return status;
}

/* What a file is now. Documents are left alone: that of an output of a command may not be stored yet. */
static stet_status look_now(const python_run *r, const char *path, stet_look *out, stet_error *err) {
    stet_look known;
    bool is_known = stet_files_known(r->s->files, path, &known);
    return stet_look_at(stet_files_root(r->s->files), path, is_known ? &known : NULL, out, err);
}

/* The document of this file is outdated: it is brought up to date, and this run conflicts with that. */
static stet_status renew(python_run *r, const char *path, stet_error *err) {
    r->outdated = true;
    return stet_files_update(r->s->files, (const char *const[]){path}, NULL, 1, err);
}

static stet_status compare(python_run *r, const python_look *look, bool *as_seen, stet_error *err) {
    stet_look said, now;
    bool unknown = look->any && !look->there;
    stet_status status = read_document(r, look->path, &said, err);
    if (status != STET_OK || (!unknown && agrees(&said, look)))
        return status;
    status = look_now(r, look->path, &now, err);
    if (status == STET_OK && !same(&said, &now))
        status = renew(r, look->path, err);
    if (status == STET_OK && !unknown && !agrees(&now, look))
        *as_seen = false;
    return status;
}

stet_status python_code_read(python_run *r, const python_look *at, size_t count, bool *as_seen, stet_error *err) {
    *as_seen = true;
    if (!r->recorded) {
        for (size_t i = 0; i < count; i++)
            if (!(at[i].any && !at[i].there) && !is_on_disk(r->s, &at[i]))
                *as_seen = false;
        return STET_OK;
    }
    stet_status status = follow(r, at, count, err);
    for (size_t i = 0; i < count && status == STET_OK; i++)
        status = compare(r, &at[i], as_seen, err);
    return status;
}

/* The file is open, or about to be: how it is now is remembered until the end. */
static stet_status remember(python_run *r, const char *path, stet_error *err) {
    stet_look now;
    for (size_t i = 0; i < r->opened.len; i++)
        if (strcmp(r->opened.at[i].path, path) == 0)
            return STET_OK;
    stet_status status = look_now(r, path, &now, err);
    if (status == STET_OK)
        *stet_vec_add(&r->opened) = (python_opened){stet_strdup(path), now};
    return status;
}

static bool is_given(const python_run *r, const char *path) {
    for (size_t i = 0; i < r->files.len; i++)
        if (strcmp(r->files.at[i], path) == 0)
            return true;
    return false;
}

static bool was_imported(const python_run *r, const char *path) {
    for (size_t i = 0; i < r->p->looks.len; i++)
        if (r->p->looks.at[i].there && strcmp(r->p->looks.at[i].path, path) == 0)
            return true;
    return false;
}

stet_status python_code_opened(python_run *r, const python_looks *at, bool lazy, stet_buf *refused, stet_error *err) {
    bool as_seen = true;
    stet_status status = STET_OK;
    if (!r->recorded)
        return STET_OK;
    for (size_t i = 0; i < at->len && stet_run_is_effect(r->run); i++) { /* Y4 */
        const python_look *look = &at->at[i];
        bool absent = lazy && !look->there && !look->any;
        if (absent || look->path[0] == '/' || is_given(r, look->path) || was_imported(r, look->path))
            continue;
        if (lazy)
            stet_buf_printf(refused,
                            "an effect imports what it needs before it begins: import %s at the top of the file",
                            look->path);
        else
            stet_buf_printf(refused, "an effect opens only files that its node names: add %s to its files", look->path);
        return STET_OK;
    }
    for (size_t i = 0; i < at->len && status == STET_OK; i++)
        if (!stet_run_is_effect(r->run) && (!lazy || at->at[i].there))
            status = remember(r, at->at[i].path, err);
    if (status == STET_OK)
        status = python_code_read(r, at->at, at->len, &as_seen, err);
    r->touched |= !as_seen;
    return status;
}

stet_status python_code_again(python_run *r, stet_error *err) {
    stet_status status = STET_OK;
    for (size_t i = 0; i < r->opened.len && status == STET_OK; i++) {
        const python_opened *o = &r->opened.at[i];
        stet_look now = {0};
        status = look_now(r, o->path, &now, err);
        if (status == STET_OK && !same(&o->look, &now))
            status = renew(r, o->path, err);
        else if (status == STET_OK && (o->look.ctime != now.ctime || o->look.inode != now.inode))
            r->touched = true; /* it may have been another one for a while */
    }
    return status;
}

void python_opened_release(python_run *r) {
    for (size_t i = 0; i < r->opened.len; i++)
        stet_free(r->opened.at[i].path);
    stet_vec_release(&r->opened);
}
